"""Losses of labels."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

from privtail.errors import InvalidInput
from privtail.losses.protocol import RowwiseLoss, Targets
from privtail.trusted.losses.rowwise import LOGISTIC, MULTINOMIAL, SIGMOID, Rowwise


@dataclass(frozen=True, kw_only=True)
class LogisticLoss(RowwiseLoss):
    """Logistic loss: log(1 + exp(−s m)) with s = 2y − 1 and y in {0, 1}.

    Examples
    --------
    >>> import numpy as np
    >>> from privtail.losses import LogisticLoss
    >>> loss = LogisticLoss()
    >>> loss.values(np.array([[2.0]]), np.array([1.0])).round(3)
    array([0.127])
    """

    rowwise: ClassVar[Rowwise] = LOGISTIC
    name: ClassVar[str] = "logistic"
    outputs: ClassVar[int] = 1
    targets: ClassVar[Targets] = "binary"
    convex: ClassVar[bool] = True
    curvature: ClassVar[float] = 0.25
    lipschitz: ClassVar[float] = 1.0


@dataclass(frozen=True, kw_only=True)
class MultinomialLoss(RowwiseLoss):
    """Multinomial loss: log Σₖ exp(mₖ) − m_y with K symmetric margins and y in {0, …, K − 1}.

    A target that is no class gives NaN.

    Parameters
    ----------
    classes : int
        K, at least 2.

    Raises
    ------
    InvalidInput
        If a parameter is outside its range.

    Examples
    --------
    >>> import numpy as np
    >>> from privtail.losses import MultinomialLoss
    >>> loss = MultinomialLoss(classes=3)
    >>> loss.values(np.array([[0.0, 2.0, 1.0]]), np.array([1.0])).round(3)
    array([0.408])
    """

    classes: int

    rowwise: ClassVar[Rowwise] = MULTINOMIAL
    name: ClassVar[str] = "multinomial"
    targets: ClassVar[Targets] = "class"
    convex: ClassVar[bool] = True
    curvature: ClassVar[float] = 0.5
    lipschitz: ClassVar[float] = math.sqrt(2.0)

    def __post_init__(self) -> None:
        if self.classes < 2 or self.classes != int(self.classes):
            raise InvalidInput(f"classes must be an integer of at least 2, got {self.classes!r}.")

    @property
    def outputs(self) -> int:
        return self.classes


@dataclass(frozen=True, kw_only=True)
class SigmoidLoss(RowwiseLoss):
    """1 / (1 + exp(s m)) with s = 2y − 1 and y in {0, 1}: a smooth, non-convex 0/1 loss.

    Source: Wang and Xu (AAAI 2019), section 6.

    Examples
    --------
    >>> import numpy as np
    >>> from privtail.losses import SigmoidLoss
    >>> loss = SigmoidLoss()
    >>> loss.values(np.array([[2.0]]), np.array([1.0])).round(3)
    array([0.119])
    """

    rowwise: ClassVar[Rowwise] = SIGMOID
    name: ClassVar[str] = "sigmoid"
    outputs: ClassVar[int] = 1
    targets: ClassVar[Targets] = "binary"
    convex: ClassVar[bool] = False
    curvature: ClassVar[float] = 1 / (6 * math.sqrt(3))
    lipschitz: ClassVar[float] = 0.25
