"""Losses that hold another one, of changed rows or margins, or weighted."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike

from privtail.errors import InvalidInput
from privtail.losses.amounts import PoissonLoss, TweedieLoss
from privtail.losses.categorical import LogisticLoss, MultinomialLoss
from privtail.losses.custom import GeneralLoss
from privtail.losses.protocol import LABELS, Loss, RowwiseLoss, Targets, require_threshold
from privtail.trusted.losses.rowwise import CUT, WEIGHTED, Rowwise, gradients, truncated

if TYPE_CHECKING:
    from privtail.losses.protocol import Array


class _Wrapper:
    """A loss that holds another one, and is like it in what it does not say itself."""

    loss: Loss

    @property
    def outputs(self) -> int:
        return self.loss.outputs

    @property
    def targets(self) -> Targets:
        return self.loss.targets

    @property
    def curvature(self) -> float:
        return self.loss.curvature

    @property
    def lipschitz(self) -> float:
        return self.loss.lipschitz


@dataclass(frozen=True, kw_only=True)
class WeightedLoss(_Wrapper, RowwiseLoss):
    """A classification loss times the weight of the row's class.

    Parameters
    ----------
    loss : LogisticLoss or MultinomialLoss
        The loss that is weighted.
    weights : tuple of float
        One positive number a class. A target that is no class gives NaN.

    Raises
    ------
    InvalidInput
        If a parameter is outside its range.

    Examples
    --------
    >>> import numpy as np
    >>> from privtail.losses import LogisticLoss, WeightedLoss
    >>> loss = WeightedLoss(loss=LogisticLoss(), weights=(1.0, 5.0))
    >>> loss.values(np.array([[2.0]]), np.array([1.0])).round(3)
    array([0.635])
    """

    loss: LogisticLoss | MultinomialLoss
    weights: tuple[float, ...]

    rowwise: ClassVar[Rowwise] = WEIGHTED
    convex: ClassVar[bool] = True

    def __post_init__(self) -> None:
        if type(self.loss) not in (LogisticLoss, MultinomialLoss):
            raise InvalidInput("Class weights belong to a LogisticLoss or a MultinomialLoss.")
        classes = max(2, self.loss.outputs)
        if len(self.weights) != classes:
            raise InvalidInput(
                f"{classes} classes need {classes} weights, not {len(self.weights)}."
            )
        if not all(0 < weight < math.inf for weight in self.weights):
            raise InvalidInput("Class weights must be positive and finite.")

    @property
    def name(self) -> str:
        return f"weighted {self.loss.name}"

    @property
    def curvature(self) -> float:
        return super().curvature * max(self.weights)

    @property
    def lipschitz(self) -> float:
        return super().lipschitz * max(self.weights)


@dataclass(frozen=True, kw_only=True)
class CutLoss(_Wrapper, RowwiseLoss):
    """``loss`` of margins cut to [``lowest``, ``highest``], as predictions are: no descent on it.

    With K margins there may be K ends. Its derivatives are those of the loss where the cut leads,
    not zero beyond.
    """

    loss: LogisticLoss | MultinomialLoss | PoissonLoss | TweedieLoss | WeightedLoss
    lowest: float | tuple[float, ...]
    highest: float | tuple[float, ...]

    rowwise: ClassVar[Rowwise] = CUT
    name: ClassVar[str] = "cut"
    convex: ClassVar[bool] = False

    def __post_init__(self) -> None:
        if type(self.loss) not in (
            LogisticLoss, MultinomialLoss, PoissonLoss, TweedieLoss, WeightedLoss
        ):  # fmt: skip
            raise InvalidInput("Margins are cut for a loss of labels, counts or amounts alone.")


def cut_to(loss: Loss, ends: ArrayLike) -> Loss:
    """``loss`` of margins that are cut, if it is one of labels or amounts and there are ends.

    ``ends`` are one pair (2,), or a pair for each margin (K, 2).
    """
    pairs = np.asarray(ends, dtype=np.float64)
    if np.isfinite(pairs).any() and isinstance(
        loss, LogisticLoss | MultinomialLoss | PoissonLoss | TweedieLoss | WeightedLoss
    ):
        low, high = np.atleast_2d(pairs).T.tolist()
        return CutLoss(loss=loss, lowest=tuple(low), highest=tuple(high))
    return loss


@dataclass(frozen=True, kw_only=True)
class TruncatedLoss(_Wrapper):
    """``loss`` on rows whose features and target are truncated to [-bound, bound].

    A number a becomes sign(a) min(|a|, bound); classes stay. The parameters may have a last row for
    an intercept, which multiplies 1.

    Parameters
    ----------
    loss : Loss
        A function of margins.
    bound : float
        Above 0, in units of the features and of the target.

    Raises
    ------
    InvalidInput
        If a parameter is outside its range.

    Examples
    --------
    >>> import numpy as np
    >>> from privtail.losses import SquaredLoss, TruncatedLoss
    >>> loss = TruncatedLoss(loss=SquaredLoss(), bound=1.0)
    >>> loss.values(np.ones((1, 1)), np.array([[5.0]]), np.array([0.0]))
    array([0.5])
    """

    loss: Loss
    bound: float

    curvature: ClassVar[float] = math.inf
    lipschitz: ClassVar[float] = math.inf

    def __post_init__(self) -> None:
        require_threshold(self.bound)
        inner: Any = self.loss
        if isinstance(inner, GeneralLoss | TruncatedLoss):
            raise InvalidInput(
                f"The loss {inner.name!r} has no margins of its own to truncate. Use another."
            )

    @property
    def name(self) -> str:
        return f"truncated {self.loss.name}"

    @property
    def convex(self) -> bool:
        return self.loss.convex

    def values(self, w: Array, X: Array, y: Array) -> Array:
        """Return ℓ of the truncated rows, shape (rows,)."""
        _, margins, target = truncated(self.bound, self.targets in LABELS, w, X, y)
        return self.loss.values(margins, target)

    def gradients(self, w: Array, X: Array, y: Array) -> Array:
        """Return the gradients in w of the truncated rows, shape (rows, *w.shape)."""
        x, margins, target = truncated(self.bound, self.targets in LABELS, w, X, y)
        return gradients(x, self.loss.derivatives(margins, target))
