"""Robust means of the papers, by their influence function, its range and a number of blocks.

Nothing here is trusted: a mean says of what range it is, and the core forces every contribution
onto that range, whatever the influence function gives. `privtail.trusted.means` has the lemma.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any

from privtail.errors import InvalidInput
from privtail.influence import catoni_bound, catoni_fraction
from privtail.trusted.means import (
    CATONI,
    CLAMP,
    FRACTION_DEGREE,
    TRUNCATE,
    Ball,
    Interval,
    RobustMean,
)


class _Positive:
    """A mean whose numbers are all above zero."""

    def __post_init__(self) -> None:
        numbers: Any = self
        for field in fields(numbers):
            value = getattr(self, field.name)
            if not value > 0:
                raise InvalidInput(f"{field.name} must be positive, got {value!r}.")


@dataclass(frozen=True)
class ClippedMean(_Positive):
    """Vectors scaled down to l2 norm at most ``threshold`` (Abadi et al. 2016)."""

    threshold: float
    blocks: int = 1

    @property
    def range(self) -> Ball:
        return Ball(self.threshold)


@dataclass(frozen=True)
class MallowsMean(_Positive):
    """Rows shrunk to ``row_length``, times derivatives shrunk to ``threshold`` (Mallows 1975).

    A long row is weighted by itself alone, not by its residual, so the minimiser moves under
    skewed noise in its intercept only. A mean of columns counts as one of derivatives 1.
    """

    threshold: float
    row_length: float
    blocks: int = 1

    @property
    def range(self) -> Ball:
        return Ball(self.threshold * self.row_length, self.row_length)


@dataclass(frozen=True)
class ClampedMean(_Positive):
    """Entries clamped to [-threshold, threshold] (Kamath et al. 2020; Xie et al., Algorithm 3)."""

    threshold: float
    blocks: int = 1

    @property
    def range(self) -> Interval:
        return Interval(self.threshold, CLAMP)


@dataclass(frozen=True)
class TruncatedMean(_Positive):
    """Entries outside [-threshold, threshold] count as 0 (Tao et al. 2022, Algorithms 1, 3)."""

    threshold: float
    blocks: int = 1

    @property
    def range(self) -> Interval:
        return Interval(self.threshold, TRUNCATE)


@dataclass(frozen=True)
class SmoothedCatoniMean(_Positive):
    """Catoni and Giulini's smoothed truncation (Holland 2019; Wang et al. 2020; Xie et al.).

    An entry x becomes scale x E phi((x/scale)(1 + eta)), eta ~ N(0, 1/smoothing), where
    phi(a) = a - a^3/6 on |a| <= sqrt 2 and +-2 sqrt(2)/3 beyond. The expectation is monotone in x,
    so it stays below ``scale * bound``, bound = (2 sqrt 2/3)(2 Phi(sqrt smoothing) - 1): up to 32 %
    less than the papers' 2 sqrt 2/3, for free.

    Parameters
    ----------
    scale : s of the papers, in units of the entries.
    smoothing : beta of the papers, between 0.3 and 100.
    """

    scale: float
    smoothing: float
    blocks: int = 1

    def __post_init__(self) -> None:
        super().__post_init__()
        if not 0.3 <= self.smoothing <= 100:
            raise InvalidInput(f"smoothing must lie in [0.3, 100], got {self.smoothing!r}.")

    @property
    def bound(self) -> float:
        """c_beta: the supremum of the influence function, in units of ``scale``."""
        return catoni_bound(self.smoothing)

    @property
    def range(self) -> Interval:
        coefficients = catoni_fraction(self.smoothing, FRACTION_DEGREE)
        return Interval(self.scale, CATONI, coefficients, limit=self.bound)


@dataclass(frozen=True)
class BoundedMean(_Positive):
    """Values clamped to [0, bound]: the range of one-signed scores such as losses."""

    bound: float
    blocks: int = 1

    @property
    def range(self) -> Interval:
        return Interval(self.bound, CLAMP, one_signed=True)


MEANS: tuple[RobustMean, ...] = (
    ClippedMean(1.0),
    ClippedMean(0.3, blocks=5),
    MallowsMean(0.7, 2.0),
    ClampedMean(1.0),
    ClampedMean(2.5, blocks=4),
    TruncatedMean(1.0),
    TruncatedMean(0.7, blocks=3),
    SmoothedCatoniMean(1.0, 1.0),
    SmoothedCatoniMean(3.0, 6.9, blocks=2),
)
"""Examples of every mean of gradients and columns; contract tests run over them."""
