"""Losses of labels."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from privtail.errors import InvalidInput
from privtail.losses.loops import (
    block,
    derivatives_of,
    logistic_derivatives,
    logistic_values,
    multinomial_derivatives,
    multinomial_values,
    sigmoid_derivatives,
    sigmoid_values,
    values_of,
)
from privtail.losses.protocol import Targets

if TYPE_CHECKING:
    from privtail.losses.protocol import Array


@dataclass(frozen=True, kw_only=True)
class LogisticLoss:
    """log(1 + exp(−s m)) with s = 2y − 1 and y in {0, 1}.

    Examples
    --------
    >>> import numpy as np
    >>> from privtail.losses import LogisticLoss
    >>> loss = LogisticLoss()
    >>> loss.values(np.array([[2.0]]), np.array([1.0])).round(3)
    array([0.127])
    """

    name: ClassVar[str] = "logistic"
    outputs: ClassVar[int] = 1
    targets: ClassVar[Targets] = "binary"
    convex: ClassVar[bool] = True
    curvature: ClassVar[float] = 0.25
    lipschitz: ClassVar[float] = 1.0

    def values(self, margins: Array, y: Array) -> Array:
        return values_of(logistic_values, margins, y)

    def derivatives(self, margins: Array, y: Array) -> Array:
        return derivatives_of(logistic_derivatives, margins, y)


@dataclass(frozen=True, kw_only=True)
class MultinomialLoss:
    """log Σₖ exp(mₖ) − m_y with K symmetric margins and y in {0, …, K − 1}.

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

    def values(self, margins: Array, y: Array) -> Array:
        margins, y = block(margins, y, self.classes)
        out = np.empty(y.size)
        multinomial_values(margins, y, out)
        return out

    def derivatives(self, margins: Array, y: Array) -> Array:
        margins, y = block(margins, y, self.classes)
        out = np.empty(margins.shape)
        multinomial_derivatives(margins, y, out)
        return out


@dataclass(frozen=True, kw_only=True)
class SigmoidLoss:
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

    name: ClassVar[str] = "sigmoid"
    outputs: ClassVar[int] = 1
    targets: ClassVar[Targets] = "binary"
    convex: ClassVar[bool] = False
    curvature: ClassVar[float] = 1 / (6 * math.sqrt(3))
    lipschitz: ClassVar[float] = 0.25

    def values(self, margins: Array, y: Array) -> Array:
        return values_of(sigmoid_values, margins, y)

    def derivatives(self, margins: Array, y: Array) -> Array:
        return derivatives_of(sigmoid_derivatives, margins, y)
