"""Losses of numbers."""

from __future__ import annotations

import math
from dataclasses import dataclass
from statistics import NormalDist
from typing import ClassVar

from privtail.errors import InvalidInput
from privtail.losses.protocol import RowwiseLoss, Targets, require_threshold
from privtail.trusted.losses.rowwise import (
    ABSOLUTE,
    BIWEIGHT,
    HUBER,
    LOG_TRUNCATED,
    QUANTILE,
    SMOOTHED,
    SQUARED,
    Rowwise,
)


@dataclass(frozen=True, kw_only=True)
class SquaredLoss(RowwiseLoss):
    """Squared loss: ½ (m − y)².

    Examples
    --------
    >>> import numpy as np
    >>> from privtail.losses import SquaredLoss
    >>> loss = SquaredLoss()
    >>> loss.values(np.array([[2.0]]), np.array([0.0])).round(3)
    array([2.])
    """

    rowwise: ClassVar[Rowwise] = SQUARED
    name: ClassVar[str] = "squared"
    outputs: ClassVar[int] = 1
    targets: ClassVar[Targets] = "real"
    convex: ClassVar[bool] = True
    curvature: ClassVar[float] = 1.0
    lipschitz: ClassVar[float] = math.inf


@dataclass(frozen=True, kw_only=True)
class HuberLoss(RowwiseLoss):
    """Huber loss: ½ r² for |r| ≤ t, else t |r| − ½ t², with r = m − y and t the threshold.

    Parameters
    ----------
    threshold : float
        Where the loss becomes linear, above 0, in units of the target.

    Raises
    ------
    InvalidInput
        If a parameter is outside its range.

    Examples
    --------
    >>> import numpy as np
    >>> from privtail.losses import HuberLoss
    >>> loss = HuberLoss(threshold=1.0)
    >>> loss.values(np.array([[2.0]]), np.array([0.0])).round(3)
    array([1.5])
    """

    threshold: float

    rowwise: ClassVar[Rowwise] = HUBER
    name: ClassVar[str] = "huber"
    outputs: ClassVar[int] = 1
    targets: ClassVar[Targets] = "real"
    convex: ClassVar[bool] = True
    curvature: ClassVar[float] = 1.0

    def __post_init__(self) -> None:
        require_threshold(self.threshold)

    @property
    def lipschitz(self) -> float:
        return float(self.threshold)


@dataclass(frozen=True, kw_only=True)
class RelativeHuberLoss(HuberLoss):
    """A `HuberLoss` whose threshold is a multiple of the scale of the target.

    A fit that releases this scale turns it into a `HuberLoss`. Until then the scale counts as 1.

    Parameters
    ----------
    threshold : float
        Where the loss becomes linear, above 0, in scales of the target.

    Raises
    ------
    InvalidInput
        If a parameter is outside its range.

    Examples
    --------
    >>> import numpy as np
    >>> from privtail.losses import RelativeHuberLoss
    >>> loss = RelativeHuberLoss(threshold=1.0)
    >>> loss.values(np.array([[2.0]]), np.array([0.0])).round(3)
    array([1.5])
    """

    def at(self, unit: float) -> HuberLoss:
        """The loss for targets of this scale, in their units."""
        return HuberLoss(threshold=self.threshold * unit)


@dataclass(frozen=True, kw_only=True)
class AbsoluteLoss(RowwiseLoss):
    """Absolute loss: |m − y|; the derivative at the kink is 0.

    Examples
    --------
    >>> import numpy as np
    >>> from privtail.losses import AbsoluteLoss
    >>> loss = AbsoluteLoss()
    >>> loss.values(np.array([[2.0]]), np.array([0.0])).round(3)
    array([2.])
    """

    rowwise: ClassVar[Rowwise] = ABSOLUTE
    name: ClassVar[str] = "absolute"
    outputs: ClassVar[int] = 1
    targets: ClassVar[Targets] = "real"
    convex: ClassVar[bool] = True
    curvature: ClassVar[float] = math.inf
    lipschitz: ClassVar[float] = 1.0

    def smoothed(self, width: float) -> SmoothedQuantileLoss:
        """Half of this loss with its kink rounded; the same minimisers as ``width`` goes to 0."""
        return SmoothedQuantileLoss(quantile=0.5, width=width)


@dataclass(frozen=True, kw_only=True)
class QuantileLoss(RowwiseLoss):
    """Quantile loss: q (y − m)⁺ + (1 − q) (m − y)⁺; the derivative at the kink is 0.

    The q-quantile minimises its mean.

    Parameters
    ----------
    quantile : float
        q, in (0, 1).

    Raises
    ------
    InvalidInput
        If a parameter is outside its range.

    Examples
    --------
    >>> import numpy as np
    >>> from privtail.losses import QuantileLoss
    >>> loss = QuantileLoss(quantile=0.9)
    >>> loss.values(np.array([[2.0]]), np.array([0.0])).round(3)
    array([0.2])
    """

    quantile: float

    rowwise: ClassVar[Rowwise] = QUANTILE
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

    def smoothed(self, width: float) -> SmoothedQuantileLoss:
        """The same with its kink rounded off within ``width``."""
        return SmoothedQuantileLoss(quantile=self.quantile, width=width)


@dataclass(frozen=True, kw_only=True)
class SmoothedQuantileLoss(RowwiseLoss):
    """The Moreau envelope of `QuantileLoss`: its derivative (m − y)/width, cut to [−q, 1 − q].

    Parameters
    ----------
    quantile : float
        q, in (0, 1).
    width : float
        How wide the kink is rounded, above 0, in units of the target.

    Raises
    ------
    InvalidInput
        If a parameter is outside its range.

    Examples
    --------
    >>> import numpy as np
    >>> from privtail.losses import SmoothedQuantileLoss
    >>> loss = SmoothedQuantileLoss(quantile=0.9, width=0.5)
    >>> loss.values(np.array([[2.0]]), np.array([0.0])).round(3)
    array([0.197])
    """

    quantile: float
    width: float

    rowwise: ClassVar[Rowwise] = SMOOTHED
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


@dataclass(frozen=True, kw_only=True)
class BiweightLoss(RowwiseLoss):
    """Tukey's biweight loss: (c²/6) (1 − (1 − (r/c)²)³) for |r| ≤ c, else c²/6.

    Here r = m − y, and c is the threshold.

    Parameters
    ----------
    threshold : float
        Where the loss becomes constant, above 0, in units of the target.

    Raises
    ------
    InvalidInput
        If a parameter is outside its range.

    Examples
    --------
    >>> import numpy as np
    >>> from privtail.losses import BiweightLoss
    >>> loss = BiweightLoss(threshold=1.0)
    >>> loss.values(np.array([[2.0]]), np.array([0.0])).round(3)
    array([0.167])
    """

    threshold: float

    rowwise: ClassVar[Rowwise] = BIWEIGHT
    name: ClassVar[str] = "biweight"
    outputs: ClassVar[int] = 1
    targets: ClassVar[Targets] = "real"
    convex: ClassVar[bool] = False
    curvature: ClassVar[float] = 1.0

    def __post_init__(self) -> None:
        require_threshold(self.threshold)

    @property
    def lipschitz(self) -> float:
        return 16 * float(self.threshold) / (25 * math.sqrt(5))


@dataclass(frozen=True, kw_only=True)
class LogTruncatedLoss(RowwiseLoss):
    """ψ(scale |m − y|)/scale with ψ(a) = −log(1 − a + a^order/order) up to a = 1, then log(order).

    Close to |m − y| where that is small, and at most log(order)/scale: an ℓ1 loss for heavy tails.
    Values come from a table of ψ, to within 1e-6/scale (4e-9/scale for order 2).

    Source: Wang and Xu (ℓ1-norm regression), equations 2, 6 and 16; ι is the scale, θ the order.

    Parameters
    ----------
    scale : float
        ι, above 0: errors beyond 1/scale count the same. In one over the units of the target.
    order : float, default=2.0
        θ, in (1, 2]: how many moments the errors have.

    Raises
    ------
    InvalidInput
        If a parameter is outside its range.

    Examples
    --------
    >>> import numpy as np
    >>> from privtail.losses import LogTruncatedLoss
    >>> loss = LogTruncatedLoss(scale=1.0)
    >>> loss.values(np.array([[2.0]]), np.array([0.0])).round(3)
    array([0.693])
    """

    scale: float
    order: float = 2.0

    rowwise: ClassVar[Rowwise] = LOG_TRUNCATED
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
