"""Losses of counts and of other amounts that are not negative, with a log link."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

from privtail.errors import InvalidInput
from privtail.losses.protocol import RowwiseLoss, Targets
from privtail.trusted.losses.loops import POISSON_MARGIN
from privtail.trusted.losses.rowwise import POISSON, TWEEDIE, Rowwise


@dataclass(frozen=True, kw_only=True)
class PoissonLoss(RowwiseLoss):
    """Poisson loss: exp(m) − y m for counts y with the log link; a tangent beyond |m| = 30.

    A count below zero is taken for 0. The derivative is exp(c) − y, where c is the margin clipped
    to ±30, which is a public number. So the loss is convex, and the exponential never overflows.

    The loss is divided by ``mean``. If that is a typical count, gradients are about 1 near a model
    that expects it, and ``curvature`` is the second derivative at twice this count: a step size
    goes by it. The largest second derivative is exp(30) / mean. ``highest`` may be below 30.

    Parameters
    ----------
    mean : float or None, default=None
        A typical count, by which all is divided; None divides by nothing.
    highest : float, default=POISSON_MARGIN
        The margin beyond which the loss is continued by its tangent, at most 30.

    Raises
    ------
    InvalidInput
        If a parameter is outside its range.

    Examples
    --------
    >>> import numpy as np
    >>> from privtail.losses import PoissonLoss
    >>> loss = PoissonLoss(mean=1.0)
    >>> loss.values(np.array([[1.0]]), np.array([3.0])).round(3)
    array([-0.282])
    """

    mean: float | None = None
    highest: float = POISSON_MARGIN

    rowwise: ClassVar[Rowwise] = POISSON
    name: ClassVar[str] = "poisson"
    outputs: ClassVar[int] = 1
    targets: ClassVar[Targets] = "count"
    power: ClassVar[float] = 1.0
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

    def at(self, mean: float, lowest: float, highest: float) -> PoissonLoss:
        """The loss for counts of this mean; its lower end is public."""
        return PoissonLoss(mean=mean, highest=highest)


@dataclass(frozen=True, kw_only=True)
class TweedieLoss(RowwiseLoss):
    """Tweedie loss: half the unit deviance of amounts y, up to a constant, with the log link.

    It is exp((2 - p) m) / (2 - p) - y exp((1 - p) m) / (1 - p), where p is the ``power`` in [1, 2].
    The derivative is exp((2 - p) m) - y exp((1 - p) m). Power 1 is Poisson. Power 2 is gamma, with
    the loss m + y exp(-m). Powers between are compound Poisson-gamma models, with zeros. The loss
    is convex in m. Beyond the public margins ``lowest`` and ``highest``, at most 30 from zero, it
    is continued by its tangents.

    An amount below zero is taken for 0. At power 2 a gamma model allows no zero: its deviance there
    is infinite. The derivative is finite, so the mean is estimated all the same.

    The loss is divided by ``mean`` ** (2 - p). If that is a typical amount, derivatives near a
    model that expects it are about as large as relative errors. ``curvature`` is then what a step
    size goes by. The second derivative has no bound: without a mean ``curvature`` is infinite.

    Parameters
    ----------
    power : float
        p, in [1, 2].
    mean : float or None, default=None
        A typical amount; None divides by nothing.
    lowest : float, default=-30.0
        The margin below which the loss is continued by its tangent.
    highest : float, default=30.0
        The margin above which the loss is continued by its tangent.

    Raises
    ------
    InvalidInput
        If a parameter is outside its range.

    Examples
    --------
    >>> import numpy as np
    >>> from privtail.losses import TweedieLoss
    >>> loss = TweedieLoss(power=1.5, mean=1.0)
    >>> loss.values(np.array([[1.0]]), np.array([3.0])).round(3)
    array([6.937])
    """

    power: float
    mean: float | None = None
    lowest: float = -POISSON_MARGIN
    highest: float = POISSON_MARGIN

    rowwise: ClassVar[Rowwise] = TWEEDIE
    name: ClassVar[str] = "tweedie"
    outputs: ClassVar[int] = 1
    targets: ClassVar[Targets] = "amount"
    convex: ClassVar[bool] = True
    lipschitz: ClassVar[float] = math.inf

    def __post_init__(self) -> None:
        require_power(self.power)
        if self.mean is not None and not 0 < self.mean < math.inf:
            raise InvalidInput(f"mean must be positive and finite, got {self.mean!r}.")
        if not -POISSON_MARGIN <= self.lowest <= self.highest <= POISSON_MARGIN:
            raise InvalidInput(
                "lowest and highest must lie in [-30, 30], in this order, got "
                f"{self.lowest!r} and {self.highest!r}."
            )

    @property
    def curvature(self) -> float:
        return math.inf if self.mean is None else 2.0

    def at(self, mean: float, lowest: float, highest: float) -> TweedieLoss:
        """The loss for amounts of this mean, between these margins."""
        return TweedieLoss(power=self.power, mean=mean, lowest=lowest, highest=highest)


AmountLoss = PoissonLoss | TweedieLoss


def require_power(power: float) -> None:
    """Refuse the power of a variance that a Tweedie loss does not have.

    Raises
    ------
    InvalidInput
        Unless it lies in [1, 2], where the loss is convex.
    """
    if not 1 <= power <= 2:
        raise InvalidInput(
            f"power must lie in [1, 2], got {power!r}: 1 for counts, 2 for positive amounts, "
            "between for amounts of which many are zero. For power 0 use DPLinearRegression."
        )
