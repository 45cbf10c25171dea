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
    """exp(m) − y m, the log link, for counts y; beyond |m| = 30 continued by its tangent.

    A count below zero is taken for 0.

    So the derivative is exp(c) − y with c the margin clipped to ±30, a number that is public, and
    the value is its integral: convex, and never an overflow of the exponential.

    All is divided by ``mean``. With a typical count there, gradients near a model that expects it
    are of the size 1, and ``curvature`` is what a step size should have in mind: that at twice the
    typical count. The supremum is exp(30) / mean. ``highest`` may be a smaller end than 30.

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
    """Half the unit deviance of Tweedie models, but for a constant, of amounts y and the log link.

    exp((2 - p) m) / (2 - p) - y exp((1 - p) m) / (1 - p) with p the ``power`` in [1, 2], so the
    derivative is exp((2 - p) m) - y exp((1 - p) m): 1 is Poisson, 2 is gamma, m + y exp(-m), and
    what lies between is a compound Poisson-gamma model, with zeros. Convex in m; beyond the public
    margins ``lowest`` and ``highest``, at most 30 from zero, it is continued by its tangents.

    An amount below zero is taken for 0. At power 2 that is no amount of the model, whose deviance
    there is infinite; the derivative is not, and the mean stays what is estimated.

    All is divided by ``mean`` ** (2 - p). With a typical amount there, derivatives near a model
    that expects it are of the size of relative errors, and ``curvature`` is what a step size should
    have in mind. There is no supremum: it is infinite without a mean.

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
