"""Losses: what one record contributes, as a function of its margin and its target.

A generalized-linear loss sees a record only through its K margins m = xᵀw + intercept and its
target y; its gradient in w is x ⊗ ∂ℓ(m, y)/∂m, which stays factored. The loops are compiled and
row-local: what row i gets is a bitwise function of ``margins[i]`` and ``y[i]``, whatever else is
in the block. Where a loss is not finite or the target is not one of its own the result may be
NaN; whoever sums it forces the range.

A new loss: two loops, a class, and one name in `LOSSES`.
"""

from __future__ import annotations

import functools
import math
import numbers
from dataclasses import MISSING, dataclass, fields
from statistics import NormalDist
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Protocol, runtime_checkable

import numpy as np

from privtail.compilation import compiled
from privtail.errors import IncompatibleParts, InvalidInput

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    Array = NDArray[np.float64]

Targets = Literal["real", "binary", "class", "count"]

LABELS: tuple[Targets, ...] = ("binary", "class")
"""Targets that name a class."""

POISSON_MARGIN = 30.0


@runtime_checkable
class Loss(Protocol):
    """A generalized-linear loss.

    Attributes
    ----------
    name
        How people call it.
    outputs
        K, the number of margins of a record: 1 for all but the multinomial loss.
    targets
        What y holds: any number, 0/1, 0..K-1, or counts; always as float64.
    convex
        Whether ℓ(·, y) is convex for every y.
    curvature
        sup |∂²ℓ/∂m²| (spectral norm for K > 1); infinite at a kink or if unknown.
    lipschitz
        sup ‖∂ℓ/∂m‖₂; infinite if there is none or if unknown.
    """

    @property
    def name(self) -> str: ...
    @property
    def outputs(self) -> int: ...
    @property
    def targets(self) -> Targets: ...
    @property
    def convex(self) -> bool: ...
    @property
    def curvature(self) -> float: ...
    @property
    def lipschitz(self) -> float: ...

    def values(self, margins: Array, y: Array) -> Array:
        """Return ℓ(mᵢ, yᵢ), shape (rows,), of margins (rows, K) and targets (rows,)."""
        ...

    def derivatives(self, margins: Array, y: Array) -> Array:
        """Return ∂ℓ/∂m at (mᵢ, yᵢ), shape (rows, K)."""
        ...


@dataclass(frozen=True, kw_only=True)
class SquaredLoss:
    """½ (m − y)²."""

    name: ClassVar[str] = "squared"
    outputs: ClassVar[int] = 1
    targets: ClassVar[Targets] = "real"
    convex: ClassVar[bool] = True
    curvature: ClassVar[float] = 1.0
    lipschitz: ClassVar[float] = math.inf

    def values(self, margins: Array, y: Array) -> Array:
        return _values(_squared_values, margins, y)

    def derivatives(self, margins: Array, y: Array) -> Array:
        return _derivatives(_squared_derivatives, margins, y)


@dataclass(frozen=True, kw_only=True)
class LogisticLoss:
    """log(1 + exp(−s m)) with s = 2y − 1 and y in {0, 1}."""

    name: ClassVar[str] = "logistic"
    outputs: ClassVar[int] = 1
    targets: ClassVar[Targets] = "binary"
    convex: ClassVar[bool] = True
    curvature: ClassVar[float] = 0.25
    lipschitz: ClassVar[float] = 1.0

    def values(self, margins: Array, y: Array) -> Array:
        return _values(_logistic_values, margins, y)

    def derivatives(self, margins: Array, y: Array) -> Array:
        return _derivatives(_logistic_derivatives, margins, y)


@dataclass(frozen=True, kw_only=True)
class MultinomialLoss:
    """log Σₖ exp(mₖ) − m_y with K symmetric margins and y in {0, …, K − 1}.

    A target that is no class gives NaN.
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
        margins, y = _block(margins, y, self.classes)
        out = np.empty(y.size)
        _multinomial_values(margins, y, out)
        return out

    def derivatives(self, margins: Array, y: Array) -> Array:
        margins, y = _block(margins, y, self.classes)
        out = np.empty(margins.shape)
        _multinomial_derivatives(margins, y, out)
        return out


@dataclass(frozen=True, kw_only=True)
class HuberLoss:
    """½ r² for |r| ≤ t, else t |r| − ½ t², with r = m − y and t the threshold."""

    threshold: float

    name: ClassVar[str] = "huber"
    outputs: ClassVar[int] = 1
    targets: ClassVar[Targets] = "real"
    convex: ClassVar[bool] = True
    curvature: ClassVar[float] = 1.0

    def __post_init__(self) -> None:
        _check_threshold(self.threshold)

    @property
    def lipschitz(self) -> float:
        return float(self.threshold)

    def values(self, margins: Array, y: Array) -> Array:
        return _values(_huber_values, margins, y, self.threshold)

    def derivatives(self, margins: Array, y: Array) -> Array:
        return _derivatives(_huber_derivatives, margins, y, self.threshold)


@dataclass(frozen=True, kw_only=True)
class RelativeHuberLoss(HuberLoss):
    """A `HuberLoss` whose threshold counts in scales of the target, once these are known."""

    def at(self, unit: float) -> HuberLoss:
        """The loss for targets of this scale, in their units."""
        return HuberLoss(threshold=self.threshold * unit)


@dataclass(frozen=True, kw_only=True)
class AbsoluteLoss:
    """|m − y|; the derivative at the kink is 0."""

    name: ClassVar[str] = "absolute"
    outputs: ClassVar[int] = 1
    targets: ClassVar[Targets] = "real"
    convex: ClassVar[bool] = True
    curvature: ClassVar[float] = math.inf
    lipschitz: ClassVar[float] = 1.0

    def values(self, margins: Array, y: Array) -> Array:
        return _values(_absolute_values, margins, y)

    def derivatives(self, margins: Array, y: Array) -> Array:
        return _derivatives(_absolute_derivatives, margins, y)

    def smoothed(self, width: float) -> SmoothedQuantileLoss:
        """Half of this loss with its kink rounded; the same minimisers as ``width`` goes to 0."""
        return SmoothedQuantileLoss(quantile=0.5, width=width)


@dataclass(frozen=True, kw_only=True)
class QuantileLoss:
    """q (y − m)⁺ + (1 − q) (m − y)⁺, minimised by the q-quantile; derivative 0 at the kink."""

    quantile: float

    name: ClassVar[str] = "quantile"
    outputs: ClassVar[int] = 1
    targets: ClassVar[Targets] = "real"
    convex: ClassVar[bool] = True
    curvature: ClassVar[float] = math.inf

    def __post_init__(self) -> None:
        if not 0 < self.quantile < 1:
            raise InvalidInput(f"quantile must lie in (0, 1), got {self.quantile!r}.")

    @property
    def lipschitz(self) -> float:
        return float(max(self.quantile, 1 - self.quantile))

    @property
    def usual(self) -> float:
        """Mean loss of a standard Gaussian at its quantile, which is its density there."""
        return NormalDist().pdf(NormalDist().inv_cdf(self.quantile))

    def values(self, margins: Array, y: Array) -> Array:
        return _values(_quantile_values, margins, y, self.quantile)

    def derivatives(self, margins: Array, y: Array) -> Array:
        return _derivatives(_quantile_derivatives, margins, y, self.quantile)

    def smoothed(self, width: float) -> SmoothedQuantileLoss:
        """The same with its kink rounded off within ``width``."""
        return SmoothedQuantileLoss(quantile=self.quantile, width=width)


@dataclass(frozen=True, kw_only=True)
class SmoothedQuantileLoss:
    """The Moreau envelope of `QuantileLoss`: its derivative (m − y)/width, cut to [−q, 1 − q]."""

    quantile: float
    width: float

    name: ClassVar[str] = "smoothed quantile"
    outputs: ClassVar[int] = 1
    targets: ClassVar[Targets] = "real"
    convex: ClassVar[bool] = True

    def __post_init__(self) -> None:
        QuantileLoss(quantile=self.quantile)
        if not 0 < self.width < math.inf:
            raise InvalidInput(f"width must be positive and finite, got {self.width!r}.")

    @property
    def curvature(self) -> float:
        return 1 / float(self.width)

    @property
    def lipschitz(self) -> float:
        return float(max(self.quantile, 1 - self.quantile))

    def values(self, margins: Array, y: Array) -> Array:
        return _values(_smoothed_values, margins, y, self.quantile, self.width)

    def derivatives(self, margins: Array, y: Array) -> Array:
        return _derivatives(_smoothed_derivatives, margins, y, self.quantile, self.width)


@dataclass(frozen=True, kw_only=True)
class PoissonLoss:
    """exp(m) − y m, the log link, for counts y; beyond |m| = 30 continued by its tangent.

    A count below zero is taken for 0.

    So the derivative is exp(c) − y with c the margin clipped to ±30, a number that is public, and
    the value is its integral: convex, and never an overflow of the exponential.

    All is divided by ``mean``. With a typical count there, gradients near a model that expects it
    are of the size 1, and ``curvature`` is what a step size should have in mind: that at twice the
    typical count. The supremum is exp(30) / mean. ``highest`` may be a smaller end than 30.
    """

    mean: float | None = None
    highest: float = POISSON_MARGIN

    name: ClassVar[str] = "poisson"
    outputs: ClassVar[int] = 1
    targets: ClassVar[Targets] = "count"
    convex: ClassVar[bool] = True
    lipschitz: ClassVar[float] = math.inf

    def __post_init__(self) -> None:
        if self.mean is not None and not 0 < self.mean < math.inf:
            raise InvalidInput(f"mean must be positive and finite, got {self.mean!r}.")
        if not -POISSON_MARGIN <= self.highest <= POISSON_MARGIN:
            raise InvalidInput(f"highest must lie in [-30, 30], got {self.highest!r}.")

    @property
    def curvature(self) -> float:
        return math.exp(POISSON_MARGIN) if self.mean is None else 2.0

    def values(self, margins: Array, y: Array) -> Array:
        return _values(_poisson_values, margins, y, self.highest) / (self.mean or 1.0)

    def derivatives(self, margins: Array, y: Array) -> Array:
        return _derivatives(_poisson_derivatives, margins, y, self.highest) / (self.mean or 1.0)


@dataclass(frozen=True, kw_only=True)
class SigmoidLoss:
    """1 / (1 + exp(s m)) with s = 2y − 1 and y in {0, 1}: a smooth, non-convex 0/1 loss.

    Source: Wang and Xu (AAAI 2019), section 6.
    """

    name: ClassVar[str] = "sigmoid"
    outputs: ClassVar[int] = 1
    targets: ClassVar[Targets] = "binary"
    convex: ClassVar[bool] = False
    curvature: ClassVar[float] = 1 / (6 * math.sqrt(3))
    lipschitz: ClassVar[float] = 0.25

    def values(self, margins: Array, y: Array) -> Array:
        return _values(_sigmoid_values, margins, y)

    def derivatives(self, margins: Array, y: Array) -> Array:
        return _derivatives(_sigmoid_derivatives, margins, y)


@dataclass(frozen=True, kw_only=True)
class BiweightLoss:
    """Tukey's (c²/6) (1 − (1 − (r/c)²)³) for |r| ≤ c, else c²/6; r = m − y, c the threshold."""

    threshold: float

    name: ClassVar[str] = "biweight"
    outputs: ClassVar[int] = 1
    targets: ClassVar[Targets] = "real"
    convex: ClassVar[bool] = False
    curvature: ClassVar[float] = 1.0

    def __post_init__(self) -> None:
        _check_threshold(self.threshold)

    @property
    def lipschitz(self) -> float:
        return 16 * float(self.threshold) / (25 * math.sqrt(5))

    def values(self, margins: Array, y: Array) -> Array:
        return _values(_biweight_values, margins, y, self.threshold)

    def derivatives(self, margins: Array, y: Array) -> Array:
        return _derivatives(_biweight_derivatives, margins, y, self.threshold)


@dataclass(frozen=True, kw_only=True)
class WeightedLoss:
    """A classification loss times the weight of the record's class.

    Parameters
    ----------
    loss : a `LogisticLoss` or a `MultinomialLoss`.
    weights : one positive number a class. A target that is no class gives NaN.
    """

    loss: LogisticLoss | MultinomialLoss
    weights: tuple[float, ...]

    convex: ClassVar[bool] = True

    def __post_init__(self) -> None:
        if type(self.loss) not in (LogisticLoss, MultinomialLoss):
            raise InvalidInput("Class weights belong to a LogisticLoss or a MultinomialLoss.")
        if len(self.weights) != max(2, self.loss.outputs):
            raise InvalidInput(f"There are {len(self.weights)} weights for another class count.")
        if not all(0 < weight < math.inf for weight in self.weights):
            raise InvalidInput("Class weights must be positive and finite.")

    @property
    def name(self) -> str:
        return f"weighted {self.loss.name}"

    @property
    def outputs(self) -> int:
        return self.loss.outputs

    @property
    def targets(self) -> Targets:
        return self.loss.targets

    @property
    def curvature(self) -> float:
        return self.loss.curvature * max(self.weights)

    @property
    def lipschitz(self) -> float:
        return self.loss.lipschitz * max(self.weights)

    def values(self, margins: Array, y: Array) -> Array:
        return self.loss.values(margins, y) * self._of(y)

    def derivatives(self, margins: Array, y: Array) -> Array:
        return self.loss.derivatives(margins, y) * self._of(y)[:, None]

    def _of(self, y: Array) -> Array:
        weights = np.full(len(y), np.nan)
        for code, weight in enumerate(self.weights):
            weights[y == code] = weight
        return weights


class _Score:
    """What is asked of a model, and not descended on: its values alone are used."""

    convex: ClassVar[bool] = False
    curvature: ClassVar[float] = math.inf
    lipschitz: ClassVar[float] = math.inf

    def derivatives(self, margins: Array, y: Array) -> Array:
        return np.zeros_like(margins)


@dataclass(frozen=True, kw_only=True)
class WrongLabel(_Score):
    """1 if the label that the margins predict is wrong, else 0: a score, nothing to descend on."""

    outputs: int = 1

    name: ClassVar[str] = "wrong label"
    targets: ClassVar[Targets] = "class"

    def values(self, margins: Array, y: Array) -> Array:
        one = self.outputs == 1
        predicted = margins[:, 0] > 0 if one else margins.argmax(axis=1)
        return np.asarray(predicted != y, dtype=np.float64)


FARTHEST_ODDS = 2.0**32
"""Log-odds beyond this are told from no others."""


@dataclass(frozen=True, kw_only=True)
class OddsAgainst(_Score):
    """Log-odds that margins give against the label that a record has, as derivatives.

    Above those at the ``usual`` margins, one for each output. They are cut to plus or minus
    `FARTHEST_ODDS`; 3 k + 1 times that is added for label k, so that a range is one label's.
    """

    usual: tuple[float, ...] = (0.0,)

    name: ClassVar[str] = "odds against"
    targets: ClassVar[Targets] = "class"

    @property
    def outputs(self) -> int:
        return len(self.usual)

    def values(self, margins: Array, y: Array) -> Array:
        usual = np.broadcast_to(np.array(self.usual), margins.shape)
        shift = self._against(margins, y) - self._against(usual, y)
        return shift.clip(-FARTHEST_ODDS, FARTHEST_ODDS) + (3 * y + 1) * FARTHEST_ODDS

    def derivatives(self, margins: Array, y: Array) -> Array:
        odds = np.zeros_like(margins)
        odds[:, 0] = self.values(margins, y)
        return odds

    @staticmethod
    def _against(margins: Array, y: Array) -> Array:
        if margins.shape[1] == 1:
            margins = np.column_stack([np.zeros(len(margins)), margins])
        margins, y = _block(margins, y, margins.shape[1])
        out = np.empty(y.size)
        _odds_against(margins, y, out)
        return out


@dataclass(frozen=True, kw_only=True)
class CutLoss:
    """``loss`` of margins cut to [``lowest``, ``highest``], as predictions are: no descent on it.

    Its derivatives are those of the loss where the cut leads, not zero beyond.
    """

    loss: LogisticLoss | MultinomialLoss | PoissonLoss | WeightedLoss
    lowest: float
    highest: float

    name: ClassVar[str] = "cut"
    convex: ClassVar[bool] = False

    def __post_init__(self) -> None:
        if type(self.loss) not in (LogisticLoss, MultinomialLoss, PoissonLoss, WeightedLoss):
            raise InvalidInput("Margins are cut for a loss of labels or counts.")

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

    def values(self, margins: Array, y: Array) -> Array:
        return self.loss.values(np.clip(margins, self.lowest, self.highest), y)

    def derivatives(self, margins: Array, y: Array) -> Array:
        return self.loss.derivatives(np.clip(margins, self.lowest, self.highest), y)


def cut_to(loss: Loss, ends: tuple[float, float]) -> Loss:
    """``loss`` of margins that are cut, if it is one of labels or counts and there are ends."""
    if ends != (-math.inf, math.inf) and isinstance(
        loss, LogisticLoss | MultinomialLoss | PoissonLoss | WeightedLoss
    ):
        return CutLoss(loss=loss, lowest=ends[0], highest=ends[1])
    return loss


@dataclass(frozen=True, kw_only=True)
class ExcessLoss(_Score):
    """``loss`` above that at one ``margin`` for all, and above what is ``spared``: a score."""

    loss: HuberLoss
    margin: float
    spared: float

    name: ClassVar[str] = "excess"
    outputs: ClassVar[int] = 1
    targets: ClassVar[Targets] = "real"

    def __post_init__(self) -> None:
        if type(self.loss) is not HuberLoss:
            raise InvalidInput("The excess is that of a HuberLoss.")

    def values(self, margins: Array, y: Array) -> Array:
        usual = self.loss.values(np.full_like(margins, self.margin), y)
        return self.loss.values(margins, y) - usual - self.spared


@dataclass(frozen=True, kw_only=True)
class LogTruncatedLoss:
    """ψ(scale |m − y|)/scale with ψ(a) = −log(1 − a + a^order/order) up to a = 1, then log(order).

    Close to |m − y| where that is small, and at most log(order)/scale: an ℓ1 loss for heavy tails.
    Values come from a table of ψ, to within 1e-6/scale (4e-9/scale for order 2).

    Source: Wang and Xu (ℓ1-norm regression), equations 2, 6 and 16; ι is the scale, θ the order.
    """

    scale: float
    order: float = 2.0

    name: ClassVar[str] = "log-truncated"
    outputs: ClassVar[int] = 1
    targets: ClassVar[Targets] = "real"
    convex: ClassVar[bool] = False
    curvature: ClassVar[float] = math.inf
    lipschitz: ClassVar[float] = 1.0

    def __post_init__(self) -> None:
        if not 0 < self.scale < math.inf:
            raise InvalidInput(f"scale must be positive and finite, got {self.scale!r}.")
        if not 1 < self.order <= 2:
            raise InvalidInput(f"order must lie in (1, 2], got {self.order!r}.")

    @property
    def bound(self) -> float:
        """The largest value."""
        return math.log(self.order) / self.scale

    def values(self, margins: Array, y: Array) -> Array:
        margins, y = _block(margins, y, 1)
        out = np.empty(y.size)
        table, slopes = _log_truncated_table(self.order)
        _log_truncated_values(margins.reshape(-1), y, self.scale, table, slopes, out)
        return out

    def derivatives(self, margins: Array, y: Array) -> Array:
        return _derivatives(_log_truncated_derivatives, margins, y, self.scale, self.order)


@dataclass(frozen=True, kw_only=True)
class CustomLoss:
    """A generalized-linear loss from two plain-Python functions of one margin and one target.

    Parameters
    ----------
    value, derivative
        Pure functions ``(margin, y) -> number``, for instance lambdas. They are compiled by Numba
        if it can, else called record by record. A record for which a function raises, or returns
        something that is not a real number, gets NaN (which a sum counts as 0), and no other
        record notices.
    name
        What the statement calls it.
    targets, convex, curvature, lipschitz
        As in `Loss`; what is declared here is believed, and can cost accuracy only.
    """

    value: Callable[[float, float], float]
    derivative: Callable[[float, float], float]
    name: str = "custom"
    targets: Targets = "real"
    convex: bool = False
    curvature: float = math.inf
    lipschitz: float = math.inf

    outputs: ClassVar[int] = 1

    def __post_init__(self) -> None:
        _check_functions(value=self.value, derivative=self.derivative)

    def values(self, margins: Array, y: Array) -> Array:
        return _values(_custom_loop(self.value), margins, y)

    def derivatives(self, margins: Array, y: Array) -> Array:
        return _derivatives(_custom_loop(self.derivative), margins, y)


@dataclass(frozen=True, kw_only=True)
class GeneralLoss:
    """A loss that is no function of a margin: a gradient of its own for every record.

    Parameters
    ----------
    value
        ``value(w, x, y) -> number`` for one record x of shape (d,).
    gradient
        ``gradient(w, x, y) -> array`` of the shape of w. Both functions get fresh read-only
        copies. A record for which one raises or returns another shape gets NaN.
    trusted_rowwise
        Whether both take a block, ``(w, X, y)`` with X (rows, d) and y (rows,), and return
        (rows,) and (rows, *w.shape) in which row i depends on record i alone. Nobody can check
        that: the privacy statement prints it as an assumption.
    name
        What the statement calls it.
    targets, convex, curvature, lipschitz
        As in `Loss`, with respect to w; believed.
    """

    value: Callable[[Array, Array, Any], Any]
    gradient: Callable[[Array, Array, Any], Any]
    trusted_rowwise: bool = False
    name: str = "general"
    targets: Targets = "real"
    convex: bool = False
    curvature: float = math.inf
    lipschitz: float = math.inf

    def __post_init__(self) -> None:
        _check_functions(value=self.value, gradient=self.gradient)

    def values(self, w: Array, X: Array, y: Array) -> Array:
        """Return ℓ(w, xᵢ, yᵢ), shape (rows,)."""
        return by_record(self.value, self.trusted_rowwise, w, X, y, ())

    def gradients(self, w: Array, X: Array, y: Array) -> Array:
        """Return the gradients in w at (xᵢ, yᵢ), shape (rows, *w.shape)."""
        return by_record(self.gradient, self.trusted_rowwise, w, X, y, w.shape)


def by_record(
    function: Callable[..., Any],
    rowwise: bool,
    w: Array,
    X: Array,
    y: Array,
    shape: tuple[int, ...],
) -> Array:
    """What ``function(w, x, y)`` says of every record, (rows, *shape); NaN where it fails.

    With ``rowwise`` it is asked about all records at once, and about one after the other if that
    fails: one record's failure must not take its block along.
    """
    if y.shape != X.shape[:1]:
        raise InvalidInput(f"X has {X.shape[0]} rows, y has shape {y.shape}.")
    out = np.full((y.size, *shape), np.nan)
    if rowwise:
        block = _answer(function, w, X, y, out.shape)
        if block is not None:
            return block
    for i in range(y.size):
        row = slice(i, i + 1) if rowwise else i
        answer = _answer(function, w, X[row], y[row], out[row].shape)
        if answer is not None:
            out[row] = answer
    return out


def require_margin(loss: AnyLoss, *, needed_by: str) -> Loss:
    """Return ``loss`` if it is one of a margin.

    Raises
    ------
    IncompatibleParts
        For a `GeneralLoss`.
    """
    if isinstance(loss, GeneralLoss | TruncatedLoss):
        raise IncompatibleParts(
            f"{needed_by} needs a loss of a margin, and {loss.name} is not one; for a GeneralLoss "
            "use ProximalGradient."
        )
    return loss


@dataclass(frozen=True, kw_only=True)
class TruncatedLoss:
    """``loss`` on records whose features and target are truncated to [-bound, bound].

    A number a becomes sign(a) min(|a|, bound); classes stay. The parameters may have a last row for
    an intercept, which multiplies 1. The loss must be a function of margins.
    """

    loss: Loss
    bound: float

    curvature: ClassVar[float] = math.inf
    lipschitz: ClassVar[float] = math.inf

    def __post_init__(self) -> None:
        _check_threshold(self.bound)
        inner: Any = self.loss
        if isinstance(inner, GeneralLoss | TruncatedLoss):
            raise InvalidInput(f"The loss {inner.name!r} has no margins of its own to truncate.")

    @property
    def name(self) -> str:
        return f"truncated {self.loss.name}"

    @property
    def targets(self) -> Targets:
        return self.loss.targets

    @property
    def convex(self) -> bool:
        return self.loss.convex

    def values(self, w: Array, X: Array, y: Array) -> Array:
        """Return ℓ of the truncated records, shape (rows,)."""
        _, margins, target = truncated_records(self.bound, self.targets, w, X, y)
        return self.loss.values(margins, target)

    def gradients(self, w: Array, X: Array, y: Array) -> Array:
        """Return the gradients in w of the truncated records, shape (rows, *w.shape)."""
        x, margins, target = truncated_records(self.bound, self.targets, w, X, y)
        return x[:, :, None] * self.loss.derivatives(margins, target)[:, None, :]


def truncated_records(
    bound: float, targets: Targets, w: Array, X: Array, y: Array
) -> tuple[Array, Array, Array]:
    """Truncated rows, with a column of ones if w has a row more; their margins; their targets."""
    x = np.ones((len(X), len(w)))
    np.clip(X, -bound, bound, out=x[:, : X.shape[1]])
    margins = np.zeros((len(x), w.shape[1]))
    for j in np.flatnonzero(w.any(axis=1)):  # in a fixed order, row by row
        margins += x[:, j : j + 1] * w[j]
    largest = bound if targets in ("real", "count") else math.inf
    return x, margins, np.clip(y, -largest, largest)


def _check_threshold(threshold: float) -> None:
    if not 0 < threshold < math.inf:
        raise InvalidInput(f"threshold must be positive and finite, got {threshold!r}.")


def _check_functions(**functions: object) -> None:
    for name, function in functions.items():
        if not callable(function):
            raise InvalidInput(f"{name} must be a function, got {type(function).__name__}.")
        if function.__hash__ is None:
            raise InvalidInput(f"{name} must be hashable; wrap it in a function.")


def _block(margins: Array, y: Array, outputs: int) -> tuple[Array, Array]:
    # Read-only and contiguous: one type, so that a loop is compiled once.
    margins = np.ascontiguousarray(margins, dtype=np.float64).view()
    y = np.ascontiguousarray(y, dtype=np.float64).view()
    if y.ndim != 1 or margins.shape != (y.size, outputs):
        raise InvalidInput(
            f"margins must have shape (rows, {outputs}) and y (rows,), "
            f"got {margins.shape} and {y.shape}."
        )
    margins.flags.writeable = False
    y.flags.writeable = False
    return margins, y


def _values(loop: Callable[..., None], margins: Array, y: Array, *parameters: float) -> Array:
    margins, y = _block(margins, y, 1)
    out = np.empty(y.size)
    loop(margins.reshape(-1), y, *map(float, parameters), out)
    return out


def _derivatives(loop: Callable[..., None], margins: Array, y: Array, *parameters: float) -> Array:
    return _values(loop, margins, y, *parameters).reshape(-1, 1)


@functools.lru_cache(maxsize=128)
def _custom_loop(function: Callable[[float, float], float]) -> Callable[..., None]:
    """Return a loop of ``function`` over records, compiled if that is possible."""
    nothing = np.empty(0)
    readonly, _ = _block(nothing.reshape(0, 1), nothing, 1)
    try:
        loop = _guarded(compiled(function, cache=False, boundscheck=True))
        loop(readonly.reshape(-1), readonly.reshape(-1), nothing)
    except Exception:  # noqa: BLE001 - Numba refuses in many ways; no record is involved
        return _interpreted(function)
    return loop


def _guarded(function: Callable[[float, float], float]) -> Callable[[Array, Array, Array], None]:
    @compiled(cache=False)
    def loop(margins: Array, y: Array, out: Array) -> None:
        for i in range(y.size):
            out[i] = np.nan
            try:  # noqa: SIM105 - Numba knows try, not suppress
                out[i] = function(margins[i], y[i])
            except Exception:  # noqa: BLE001, S110 - law 1: the record counts as 0
                pass

    return loop


def _interpreted(
    function: Callable[[float, float], float],
) -> Callable[[Array, Array, Array], None]:
    def loop(margins: Array, y: Array, out: Array) -> None:
        for i in range(y.size):
            out[i] = np.nan
            try:
                with np.errstate(all="ignore"):
                    result: object = function(float(margins[i]), float(y[i]))
                if isinstance(result, (numbers.Real, np.bool_)):
                    out[i] = float(result)
            except KeyboardInterrupt:
                raise
            except BaseException:  # noqa: BLE001, S110 - law 1: the record counts as 0
                pass

    return loop


def _answer(
    function: Callable[..., Any], w: Array, x: Array, y: Any, shape: tuple[int, ...]
) -> Array | None:
    """Return what ``function`` says of fresh read-only copies; None if it fails."""
    try:
        with np.errstate(all="ignore"):
            result = np.asarray(function(_copy(w), _copy(x), _copy(y) if np.ndim(y) else float(y)))
        if result.shape == shape and np.can_cast(result.dtype, np.float64, "same_kind"):
            return result.astype(np.float64)
    except KeyboardInterrupt:
        raise
    except BaseException:  # noqa: BLE001, S110 - law 1: the record counts as 0
        pass
    return None


def _copy(array: Array) -> Array:
    array = np.array(array)
    array.flags.writeable = False
    return array


# The loops. One margin per record but for the multinomial loss; all arrays are contiguous.


@compiled
def _exp(x: float) -> float:
    # Arithmetic alone, within 1 ulp: a vectorised library function may round the last rows of a
    # block differently from the first ones. NaN gives 0.
    x = x if x > -746.0 else -746.0
    x = x if x < 710.0 else 710.0
    k = math.floor(x * 1.4426950408889634 + 0.5)
    r = (x - k * 6.93147180369123816490e-01) - k * 1.90821492927058770002e-10
    p = 1.0 / 6227020800.0
    p = p * r + 1.0 / 479001600.0
    p = p * r + 1.0 / 39916800.0
    p = p * r + 1.0 / 3628800.0
    p = p * r + 1.0 / 362880.0
    p = p * r + 1.0 / 40320.0
    p = p * r + 1.0 / 5040.0
    p = p * r + 1.0 / 720.0
    p = p * r + 1.0 / 120.0
    p = p * r + 1.0 / 24.0
    p = p * r + 1.0 / 6.0
    p = p * r + 0.5
    p = (p * r) * r + r
    half = np.int64(k) >> 1
    rest = np.int64(k) - half
    low = np.int64((half + 1023) << 52).view(np.float64)
    high = np.int64((rest + 1023) << 52).view(np.float64)
    return ((1.0 + p) * low) * high


@compiled
def _log1p(t: float) -> float:
    # 2 artanh(t / (2 + t)) for t in [0, 1], arithmetic alone.
    u = 2.0 * t / (2.0 + t)
    q = 0.25 * u * u
    p = 0.0
    for k in range(35, 0, -2):
        p = p * q + 1.0 / k
    return u * p


@compiled
def _squared_values(margins: Array, y: Array, out: Array) -> None:
    for i in range(y.size):
        r = margins[i] - y[i]
        out[i] = 0.5 * r * r


@compiled
def _squared_derivatives(margins: Array, y: Array, out: Array) -> None:
    for i in range(y.size):
        out[i] = margins[i] - y[i]


@compiled
def _logistic_values(margins: Array, y: Array, out: Array) -> None:
    for i in range(y.size):
        z = (2.0 * y[i] - 1.0) * margins[i]
        out[i] = _log1p(_exp(-abs(z))) + (-z if z < 0.0 else 0.0)


@compiled
def _logistic_derivatives(margins: Array, y: Array, out: Array) -> None:
    for i in range(y.size):
        s = 2.0 * y[i] - 1.0
        z = s * margins[i]
        t = _exp(-abs(z))
        out[i] = -s * (t if z > 0.0 else 1.0) / (1.0 + t)


@compiled
def _multinomial_values(margins: Array, y: Array, out: Array) -> None:
    rows, classes = margins.shape
    for i in range(rows):
        if not (0.0 <= y[i] < classes and y[i] == math.floor(y[i])):
            out[i] = np.nan
            continue
        top = 0
        for k in range(1, classes):
            if margins[i, k] > margins[i, top]:
                top = k
        rest = 0.0
        for k in range(classes):
            if k != top:
                rest += _exp(margins[i, k] - margins[i, top])
        out[i] = math.log1p(rest) + (margins[i, top] - margins[i, int(y[i])])


@compiled
def _odds_against(margins: Array, y: Array, out: Array) -> None:
    rows, classes = margins.shape
    for i in range(rows):
        out[i] = np.nan
        if not (0.0 <= y[i] < classes and y[i] == math.floor(y[i])):
            continue
        label = int(y[i])
        top = 1 if label == 0 else 0
        for k in range(classes):
            if k != label and margins[i, k] > margins[i, top]:
                top = k
        others = 0.0
        for k in range(classes):
            if k != label:
                others += _exp(margins[i, k] - margins[i, top])
        out[i] = margins[i, top] - margins[i, label] + math.log(others)


@compiled
def _multinomial_derivatives(margins: Array, y: Array, out: Array) -> None:
    rows, classes = margins.shape
    for i in range(rows):
        if not (0.0 <= y[i] < classes and y[i] == math.floor(y[i])):
            for k in range(classes):
                out[i, k] = np.nan
            continue
        top = 0
        for k in range(1, classes):
            if margins[i, k] > margins[i, top]:
                top = k
        rest = 0.0
        for k in range(classes):
            if k != top:
                out[i, k] = _exp(margins[i, k] - margins[i, top])
                rest += out[i, k]
        out[i, top] = 1.0
        label = int(y[i])
        for k in range(classes):
            out[i, k] /= 1.0 + rest
        if label == top:
            out[i, label] = -rest / (1.0 + rest)
        else:
            out[i, label] -= 1.0


@compiled
def _huber_values(margins: Array, y: Array, threshold: float, out: Array) -> None:
    for i in range(y.size):
        r = abs(margins[i] - y[i])
        out[i] = 0.5 * r * r if r <= threshold else threshold * (r - 0.5 * threshold)


@compiled
def _huber_derivatives(margins: Array, y: Array, threshold: float, out: Array) -> None:
    for i in range(y.size):
        r = margins[i] - y[i]
        r = r if r < threshold else threshold
        out[i] = r if r > -threshold else -threshold


@compiled
def _absolute_values(margins: Array, y: Array, out: Array) -> None:
    for i in range(y.size):
        out[i] = abs(margins[i] - y[i])


@compiled
def _absolute_derivatives(margins: Array, y: Array, out: Array) -> None:
    for i in range(y.size):
        r = margins[i] - y[i]
        out[i] = (1.0 if r > 0.0 else 0.0) - (1.0 if r < 0.0 else 0.0)


@compiled
def _quantile_values(margins: Array, y: Array, quantile: float, out: Array) -> None:
    for i in range(y.size):
        r = margins[i] - y[i]
        out[i] = (1.0 - quantile) * r if r > 0.0 else -quantile * r


@compiled
def _quantile_derivatives(margins: Array, y: Array, quantile: float, out: Array) -> None:
    for i in range(y.size):
        r = margins[i] - y[i]
        out[i] = (1.0 - quantile if r > 0.0 else 0.0) - (quantile if r < 0.0 else 0.0)


@compiled
def _smoothed_values(
    margins: Array, y: Array, quantile: float, width: float, out: Array
) -> None:  # fmt: skip
    for i in range(y.size):
        r = margins[i] - y[i]
        g = r / width
        g = -quantile if g < -quantile else g
        g = 1 - quantile if g > 1 - quantile else g
        out[i] = g * (r - 0.5 * width * g)


@compiled
def _smoothed_derivatives(
    margins: Array, y: Array, quantile: float, width: float, out: Array
) -> None:  # fmt: skip
    for i in range(y.size):
        g = (margins[i] - y[i]) / width
        g = -quantile if g < -quantile else g
        out[i] = 1 - quantile if g > 1 - quantile else g


@compiled
def _poisson_values(margins: Array, y: Array, highest: float, out: Array) -> None:
    for i in range(y.size):
        m = margins[i]
        c = m if m > -POISSON_MARGIN else -POISSON_MARGIN
        c = c if c < highest else highest
        e = _exp(c)
        count = 0.0 if y[i] < 0.0 else y[i]
        out[i] = e + e * (m - c) - count * m


@compiled
def _poisson_derivatives(margins: Array, y: Array, highest: float, out: Array) -> None:
    for i in range(y.size):
        m = margins[i]
        c = m if m > -POISSON_MARGIN else -POISSON_MARGIN
        c = c if c < highest else highest
        out[i] = _exp(c) - (0.0 if y[i] < 0.0 else y[i])


@compiled
def _sigmoid_values(margins: Array, y: Array, out: Array) -> None:
    for i in range(y.size):
        z = (2.0 * y[i] - 1.0) * margins[i]
        t = _exp(-abs(z))
        out[i] = (t if z > 0.0 else 1.0) / (1.0 + t)


@compiled
def _sigmoid_derivatives(margins: Array, y: Array, out: Array) -> None:
    for i in range(y.size):
        s = 2.0 * y[i] - 1.0
        t = _exp(-abs(s * margins[i]))
        out[i] = -s * t / ((1.0 + t) * (1.0 + t))


@compiled
def _biweight_values(margins: Array, y: Array, threshold: float, out: Array) -> None:
    for i in range(y.size):
        u = (margins[i] - y[i]) / threshold
        q = u * u if abs(u) < 1.0 else 1.0
        out[i] = threshold * (threshold / 6.0) * (q * (3.0 + q * (q - 3.0)))


@compiled
def _biweight_derivatives(margins: Array, y: Array, threshold: float, out: Array) -> None:
    for i in range(y.size):
        r = margins[i] - y[i]
        u = r / threshold
        q = 1.0 - u * u
        out[i] = r * q * q if abs(u) < 1.0 else 0.0


_TABLE_CELLS = 2**14


@functools.lru_cache(maxsize=32)
def _log_truncated_table(order: float) -> tuple[Array, Array]:
    """ψ at the ends of equal cells of [0, 1], and what it gains in each cell."""
    a = np.linspace(0.0, 1.0, _TABLE_CELLS + 1)
    table = -np.log1p(a**order / order - a)
    slopes = np.append(np.diff(table), 0.0)
    table.flags.writeable = slopes.flags.writeable = False
    return table, slopes


@compiled
def _log_truncated_values(
    margins: Array, y: Array, scale: float, table: Array, slopes: Array, out: Array
) -> None:
    cells = table.size - 1
    for i in range(y.size):
        a = abs(margins[i] - y[i]) * scale
        a = a if a < 1.0 else 1.0
        j = int(a * cells)
        out[i] = (table[j] + (a * cells - j) * slopes[j]) / scale


@compiled
def _log_truncated_derivatives(
    margins: Array, y: Array, scale: float, order: float, out: Array
) -> None:
    for i in range(y.size):
        r = margins[i] - y[i]
        a = abs(r) * scale
        slope = (1.0 - a ** (order - 1.0)) / (1.0 - a + a**order / order) if a < 1.0 else 0.0
        out[i] = slope if r > 0.0 else -slope if r < 0.0 else 0.0


LOSSES: tuple[Loss, ...] = (
    SquaredLoss(),
    LogisticLoss(),
    MultinomialLoss(classes=3),
    HuberLoss(threshold=1.345),
    AbsoluteLoss(),
    QuantileLoss(quantile=0.8),
    SmoothedQuantileLoss(quantile=0.8, width=0.1),
    PoissonLoss(),
    SigmoidLoss(),
    BiweightLoss(threshold=4.685),
)
"""One example of every loss that has a name; the contract tests run over it."""


AnyLoss = Loss | GeneralLoss | TruncatedLoss


def loss_by_name(name: str, **parameters: Any) -> Loss:
    """Return the loss called ``name`` with these parameters.

    Raises
    ------
    InvalidInput
        For an unknown name, or parameters that the loss does not have or still needs.
    """
    table: dict[str, Any] = {loss.name: type(loss) for loss in LOSSES}
    if name not in table:
        raise InvalidInput(f"There is no loss {name!r}. There are: {', '.join(sorted(table))}.")
    wanted = {field.name for field in fields(table[name])}
    needed = {field.name for field in fields(table[name]) if field.default is MISSING}
    if not needed <= parameters.keys() <= wanted:
        needs = ", ".join(sorted(wanted)) or "nothing"
        given = ", ".join(sorted(parameters)) or "nothing"
        raise InvalidInput(f"The {name} loss takes {needs}, got {given}.")
    loss: Loss = table[name](**parameters)
    return loss
