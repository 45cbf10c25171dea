"""Robust means: a bounded influence function, its range, and a number of public blocks.

Formal guarantee (the lemma)
----------------------------
A row is mapped into a bounded range; rows are dealt by id to k public blocks; the answer is the
coordinatewise median of the k block sums times k/n. Replacing one record moves one block sum by at
most diameter_p(range) in lp, and the median of any coordinate by no more than that block's
coordinate moved; so the answer moves by at most k diameter_p(range) / n in every lp, whatever the
influence function. For even k the median is the mean of the two middle sums: it is kept as their
integer sum on half the unit, which one block moves by no more than its own change. Emptying a
record: radius for diameter. The kernels force whatever an influence function returns onto the
range, so a new mean needs no proof.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cache
from typing import Protocol

import numpy as np
from numpy.typing import NDArray
from scipy.special import comb, ndtr

from privtail.compilation import steady
from privtail.errors import InvalidInput
from privtail.trusted.kernels import CATONI, CLAMP, FRACTION_DEGREE, TRUNCATE
from privtail.trusted.sensitivity import Norms


@dataclass(frozen=True)
class Ball:
    """Contributions of l2 norm at most ``radius``; 2^b grid steps.

    With a finite ``reach``, row and derivative are shrunk first: the row z to this length, the
    derivative in its margins to radius / reach. So far as that leaves the ball, it is enforced.
    """

    radius: float
    reach: float = math.inf

    def norms(self, size: int, bits: int) -> tuple[Norms, Norms]:
        """Radius and diameter of the range in grid units."""
        R = 2.0**bits
        return Norms(math.inf, R, R), Norms(math.inf, 2 * R, 2 * R)


@dataclass(frozen=True)
class Interval:
    """Entries in [-limit, limit] x ``radius`` (or [0, limit] when ``one_signed``).

    The kernels sum integers up to 2^b as doubles and read the coefficients unchecked, so another
    limit, kind or number of coefficients is refused here.

    Parameters
    ----------
    radius : unit of the entries.
    kind : influence function of `kernels`.
    coefficients : of the smoothed influence, as `catoni_fraction` gives them.
    limit : in units of ``radius``, in (0, 1].
    one_signed : whether the entries are not negative.
    """

    radius: float
    kind: int = CLAMP
    coefficients: tuple[float, ...] = (0.0,) * (2 * FRACTION_DEGREE)
    limit: float = 1.0
    one_signed: bool = False

    def __post_init__(self) -> None:
        known = self.kind in (CLAMP, TRUNCATE, CATONI) and 0 < self.limit <= 1
        unsaid = self.kind == CATONI and not any(self.coefficients)
        if not known or unsaid or len(self.coefficients) != 2 * FRACTION_DEGREE:
            raise InvalidInput(
                "An Interval needs a known kind of influence, a limit in (0, 1], and the "
                "coefficients of catoni_fraction() for the smoothed one."
            )

    def steps(self, bits: int) -> int:
        """The largest integer an entry can become: ``limit`` rounded down to the grid."""
        return math.floor(self.limit * 2.0**bits)

    def norms(self, size: int, bits: int) -> tuple[Norms, Norms]:
        """Radius and diameter of the range in grid units."""
        c = float(self.steps(bits))
        width = c if self.one_signed else 2 * c
        return Norms(size * c, math.inf, c), Norms(size * width, math.inf, width)


class RobustMean(Protocol):
    """What the core needs to know of a mean: its range and its blocks."""

    @property
    def blocks(self) -> int:
        """Number of public blocks; 1 is the plain mean."""
        ...

    @property
    def range(self) -> Ball | Interval:
        """Where contributions live, and the influence function that brings them there."""
        ...


def _positive(**arguments: float) -> None:
    for name, value in arguments.items():
        if not value > 0:
            raise InvalidInput(f"{name} must be positive, got {value!r}.")


@dataclass(frozen=True)
class ClippedMean:
    """Vectors scaled down to l2 norm at most ``threshold`` (Abadi et al. 2016)."""

    threshold: float
    blocks: int = 1

    def __post_init__(self) -> None:
        _positive(threshold=self.threshold, blocks=self.blocks)

    @property
    def range(self) -> Ball:
        return Ball(self.threshold)


@dataclass(frozen=True)
class MallowsMean:
    """Rows shrunk to length ``reach``, times derivatives shrunk to ``threshold`` (Mallows 1975).

    A long row is weighted by itself alone, not by its residual, so the minimiser moves under
    skewed noise in its intercept only. A mean of columns counts as one of derivatives 1.
    """

    threshold: float
    reach: float
    blocks: int = 1

    def __post_init__(self) -> None:
        _positive(threshold=self.threshold, reach=self.reach, blocks=self.blocks)

    @property
    def range(self) -> Ball:
        return Ball(self.threshold * self.reach, self.reach)


@dataclass(frozen=True)
class ClampedMean:
    """Entries clamped to [-threshold, threshold] (Kamath et al. 2020; X23 Algorithm 3)."""

    threshold: float
    blocks: int = 1

    def __post_init__(self) -> None:
        _positive(threshold=self.threshold, blocks=self.blocks)

    @property
    def range(self) -> Interval:
        return Interval(self.threshold, CLAMP)


@dataclass(frozen=True)
class TruncatedMean:
    """Entries outside [-threshold, threshold] count as 0 (T22 Algorithms 1 and 3)."""

    threshold: float
    blocks: int = 1

    def __post_init__(self) -> None:
        _positive(threshold=self.threshold, blocks=self.blocks)

    @property
    def range(self) -> Interval:
        return Interval(self.threshold, TRUNCATE)


@dataclass(frozen=True)
class SmoothedCatoniMean:
    """Catoni and Giulini's smoothed truncation (Holland 2019; W20 Algorithm 4, X23 Algorithm 4).

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
        _positive(scale=self.scale, smoothing=self.smoothing, blocks=self.blocks)
        if not 0.3 <= self.smoothing <= 100:
            raise InvalidInput(f"smoothing must lie in [0.3, 100], got {self.smoothing!r}.")

    @property
    def bound(self) -> float:
        """c_beta: the supremum of the influence function, in units of ``scale``."""
        return catoni_bound(self.smoothing)

    @property
    def range(self) -> Interval:
        coefficients = catoni_fraction(self.smoothing)
        return Interval(self.scale, CATONI, coefficients, limit=self.bound)


@dataclass(frozen=True)
class BoundedMean:
    """Values clamped to [0, bound]: the range of one-signed scores such as losses."""

    bound: float
    blocks: int = 1

    def __post_init__(self) -> None:
        _positive(bound=self.bound, blocks=self.blocks)

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


def catoni_bound(smoothing: float) -> float:
    """c_beta = (2 sqrt 2 / 3)(2 Phi(sqrt beta) - 1), the supremum of the smoothed influence."""
    return 2 * math.sqrt(2) / 3 * float(2 * ndtr(math.sqrt(smoothing)) - 1)


@steady
def catoni_influence(a: NDArray[np.float64], smoothing: float) -> NDArray[np.float64]:
    """E phi(a (1 + eta)), eta ~ N(0, 1/smoothing), in a numerically safe form; shape of ``a``.

    The printed closed form (Holland 2019, eq. 11; W20 eq. 9) cancels catastrophically for large
    |a|. For small |a|/sqrt(smoothing) truncated moments are used, else Gauss-Legendre quadrature
    of phi on [-sqrt 2, sqrt 2] plus the two tails (ALGORITHMS 1d).
    """
    a = np.asarray(a, dtype=np.float64)
    positive = np.minimum(np.abs(a), 1e150)  # the function is constant long before that
    b = positive / math.sqrt(smoothing)
    root = math.sqrt(2.0)
    top = 2 * root / 3

    def density(x: NDArray[np.float64]) -> NDArray[np.float64]:
        return np.exp(-0.5 * x * x) / math.sqrt(2 * math.pi)

    result = np.zeros_like(positive)
    small = (b <= 0.35) & (b > 1e-150)
    m, s = positive[small], b[small]
    low, high = -(root + m) / s, (root - m) / s
    low, high = np.maximum(low, -40.0), np.clip(high, -40.0, 40.0)
    d_low, d_high = density(low), density(high)
    M0 = ndtr(high) - ndtr(low)
    M1 = d_low - d_high
    M2 = M0 + low * d_low - high * d_high
    M3 = (low**2 + 2) * d_low - (high**2 + 2) * d_high
    cubic = m**3 * M0 + 3 * m**2 * s * M1 + 3 * m * s**2 * M2 + s**3 * M3
    result[small] = m * M0 + s * M1 - cubic / 6 + top * (ndtr(-high) - ndtr(low))

    large = b > 0.35
    m, s = positive[large][:, None], b[large][:, None]
    nodes, weights = np.polynomial.legendre.leggauss(64)
    x = root * nodes
    middle = ((x - x**3 / 6) * density((x - m) / s) / s) @ (root * weights)
    tails = top * (ndtr((m - root) / s) - ndtr(-(root + m) / s))[:, 0]
    result[large] = middle + tails
    tiny = b <= 1e-150
    result[tiny] = positive[tiny]
    return np.copysign(np.minimum(result, catoni_bound(smoothing)), a)


@cache
def catoni_fraction(smoothing: float) -> tuple[float, ...]:
    """P and Q with |m P(m) / (1 + m Q(m)) - E phi| < 8e-7 for m = |a|, as `influence` asks.

    Least squares of numerator - target x denominator in the basis m^k / (1 + m)^n, reweighted
    towards the largest error, of the least degree n that is accurate enough. P(0) = 1, the slope of
    E phi: entries far below the scale lose nothing, whatever the scale. Accuracy only: the
    kernel forces the result onto [-c_beta, c_beta] whatever the fraction is.
    """
    u = np.sin(np.linspace(0, np.pi / 2, 602))[1:-1] ** 2
    m = u / (1 - u)
    target = catoni_influence(m, smoothing)
    for n in range(7, FRACTION_DEGREE + 1):
        k = np.arange(n + 1)
        sizes = comb(n, k)
        basis = sizes * u[:, None] ** k * (1 - u[:, None]) ** (n - k)
        first, rest = basis[:, 0], basis[:, 1:]
        columns = np.hstack([rest[:, 1:], -target[:, None] * rest])
        ahead = target * first - basis[:, 1] / n
        weights = below = np.ones_like(u)
        for _ in range(10):
            w = weights / below
            fit = np.linalg.lstsq(columns * w[:, None], ahead * w, rcond=None)[0]
            P = np.concatenate([[1.0], fit[: n - 1] * sizes[2:]])
            Q = fit[n - 1 :] * sizes[1:]
            below = first + rest @ fit[n - 1 :]
            error = np.abs(m * np.polyval(P[::-1], m) / (1 + m * np.polyval(Q[::-1], m)) - target)
            if error.max() < 8e-7 and (below > 0).all():
                padding = (0.0,) * (FRACTION_DEGREE - n)
                return (*P.tolist(), *padding, *Q.tolist(), *padding)
            below = np.maximum(below, 1e-3)
            weights = weights * np.sqrt(0.2 + error / error.max())
    raise InvalidInput(f"No fraction reaches 8e-7 for smoothing={smoothing!r}.")
