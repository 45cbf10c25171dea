"""Sample and aggregate: the centre of attention of a function's values on disjoint parts."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from privtail.errors import InvalidInput
from privtail.trusted.events import Event, read_once, read_whole
from privtail.trusted.mechanisms.noise import require_multiplier
from privtail.trusted.mechanisms.samplers import Sampler
from privtail.trusted.problem import Problem

Integers = NDArray[np.int64]
Doubles = NDArray[np.float64]

BITS = 28
"""Grid steps in a radius: squared distances, up to 2^58, are exact."""
ROUNDING = 2.0**-30
"""Taken off the smoothness, and added to S, for what floating point can do to S."""


@dataclass(frozen=True, kw_only=True)
class SampleAndAggregate:
    """Centre of attention with noise in proportion to its smooth sensitivity.

    Parameters
    ----------
    multiplier : 1/gamma of Wang, Xiao, Devadas, Xu 2020, Algorithm 1: noise per sensitivity.
    blocks : m, how many disjoint parts the records are dealt into.
    radius : values are forced into the ball of this radius around the fallback point; half of the
        paper's Lambda.
    smoothness : beta.
    delta : additive term of the guarantee of this release.

    Formal guarantee
    ----------------
    A record is in one part, so replacing it (or emptying its slot) replaces one of the m points s_i
    of the ball. Let t0 be the least integer above (m + 1)/2, r_i(t) the distance from s_i to its
    t-th nearest point, itself included, and Lambda for t > m; ' means after the replacement. The
    centre is s_i with the least r_i(t0). With h = beta/2 and a = ceil((1 + e^h/2)/(e^h - 1)), which
    is at most t0 + 1 (else refused), rho(t) is the mean of the a *smallest* r_i(t), and

        S = 2 max_k rho(t0 + k + 1) e^(-h k).

    Local sensitivity: the balls of t0 points around both centres share one of the m - 1 common
    points, so the centre moves by at most min r(t0) + min r'(t0). A common point i has r'_i(t) <=
    r_i(t + 1), so min r'(t0) is at most the second smallest r(t0 + 1); both together are at most
    twice the mean of the a >= 2 smallest r(t0 + 1), hence at most S.

    Smoothness: let t > t0. The a centres of rho(t + 1) lose at most one, l. Let c be the best of
    the others. The ball around c with t + 1 >= a + 1 points holds a common point q that is not
    among them, with r'_q(t) <= 2 r_c(t + 1). In the ball around l there are common points too, with
    r(t + 1) <= 2 r_l(t + 1), so r_c <= 2 r_l. With A the sum over the a - 1 others, a rho'(t) <= A
    + 2 r_c and a rho(t + 1) >= A + r_c/2, A >= (a - 1) r_c: the ratio is at most (a + 1)/(a - 1/2)
    <= e^h. One more factor e^h pays for the shift of k.

    One dimension allows any centre: the middle of the shortest interval with t0 points. With w(t)
    the shortest length with t points, w'(t) <= w(t + 1), and S = max_k w(t0 + k + 1) e^(-beta k) is
    exactly beta-smooth, for every m.

    The points are whole steps of a public grid, so distances and the choice of the centre are
    exact; `ROUNDING` covers the floating-point means. The noisy centre is formed exactly and then
    rounded to that grid. `smooth_gaussian_loss` has the cost. No S leaves this module.
    """

    multiplier: float
    blocks: int
    radius: float
    smoothness: float
    delta: float

    def __post_init__(self) -> None:
        require_multiplier(self)
        read_whole(self, blocks=3)
        read_once(self, "radius", "smoothness", "delta", kind=float)
        if not 0 < self.radius < math.inf:
            raise InvalidInput(f"radius must be positive and finite, got {self.radius!r}.")
        if not 4 * ROUNDING < self.smoothness < 1:
            raise InvalidInput(f"smoothness must lie in (4e-9, 1), got {self.smoothness!r}.")
        if not 0 <= self.delta < 1:
            raise InvalidInput(f"delta must lie in [0, 1), got {self.delta!r}.")

    def event(self, problem: Problem, size: int) -> Event:
        """The bill of one aggregated point of ``size`` coordinates."""
        if problem.max_rows > 1:
            raise InvalidInput(
                "Sample and aggregate protects one row: several rows of a person would be in "
                "several parts. Use groups with max_rows=1."
            )
        needed = blocks_needed(size, self.smoothness)
        if self.blocks < needed:
            raise InvalidInput(
                f"{self.blocks} parts are too few for smoothness={self.smoothness:.3g} in {size} "
                f"dimensions: its proof needs blocks={needed}, and so at least {needed} rows, "
                "several in each part to be of use. A larger epsilon allows a larger smoothness."
            )
        if self.blocks > problem.n:
            raise InvalidInput(
                f"Cannot deal {problem.n} rows into {self.blocks} parts: at least {self.blocks} "
                "rows are needed, several in each part to be of use."
            )
        return Event(
            law="smooth_gaussian",
            scale=self.multiplier,
            radius=1.0,
            diameter=1.0,
            coordinates=size,
            delta=self.delta,
            smoothness=self.smoothness,
            unit=self.radius * 2.0**-BITS,
            question="sample and aggregate",
        )

    def on_grid(self, values: Doubles, fallback: Doubles) -> Integers:
        """Points (m, p) in grid steps from the fallback, of l2 norm at most 2^BITS.

        What is not finite is the fallback, 0.
        """
        with np.errstate(all="ignore"):
            moved = (values - fallback) / self.radius
            largest = np.abs(moved).max(axis=1, initial=0.0, keepdims=True)
            direction = moved / largest
            lengths = np.sqrt((direction * direction).sum(axis=1, keepdims=True))
            inside = direction * np.minimum(largest, (1 - 2.0**-20) / lengths)
            steps = np.trunc(np.where(np.isfinite(inside), inside, 0.0) * 2.0**BITS)
            squares = (steps * steps).sum(axis=1, keepdims=True)
        whole = np.isfinite(moved).all(axis=1, keepdims=True)
        kept = whole & (squares <= 4.0**BITS * (1 - 2.0**-30))
        return np.where(kept, steps, 0.0).astype(np.int64)

    def release(self, points: Integers, fallback: Doubles, sampler: Sampler) -> Doubles:
        """The noisy centre of attention of the grid points (m, p), in real units."""
        centre, size = centre_of_attention(points, self.smoothness)
        if self.multiplier:
            sizes = np.full(len(centre), size)
            centre = sampler.scaled_normal(centre, sizes, self.multiplier)
        return fallback + centre * (self.radius * 2.0 ** -(BITS + 1))


def blocks_needed(size: int, smoothness: float) -> int:
    """The least number of parts for which the proof holds in ``size`` dimensions."""
    return 3 if size == 1 else max(3, 2 * _averaged(smoothness) - 5)


def _averaged(smoothness: float) -> int:
    """a: how many of the smallest radii are averaged."""
    h = (smoothness - ROUNDING) / 2
    return math.ceil((1 + math.exp(h) / 2) / math.expm1(h) * (1 + 1e-9))


def centre_of_attention(points: Integers, smoothness: float) -> tuple[Integers, float]:
    """Centre (p,) of the grid points (m, p) and its smooth sensitivity, in *half* grid steps."""
    m, p = points.shape
    most = (m + 1) // 2 + 1  # t0
    beta = smoothness - ROUNDING
    if p == 1:
        centre, widths = _interval(points[:, 0], most)
        rate = beta
    else:
        centre, widths = _ball(points, most, _averaged(smoothness))
        rate = beta / 2
    k = np.arange(len(widths))
    size = float(np.max(widths * np.exp(-rate * k))) * (1 + ROUNDING)
    return centre, max(1.0, size)


def _interval(x: Integers, most: int) -> tuple[Integers, Doubles]:
    """Twice the middle of the shortest interval with t0 points; 2 w(t) for t > t0."""
    x, m = np.sort(x), len(x)
    first = int(np.argmin(x[most - 1 :] - x[: m - most + 1]))
    widths = [int((x[t - 1 :] - x[: m - t + 1]).min()) for t in range(most + 1, m + 1)]
    centre = x[first : first + 1] + x[first + most - 1]
    return centre, 2.0 * np.array([*widths, 2 ** (BITS + 1)], dtype=np.float64)


def _ball(points: Integers, most: int, averaged: int) -> tuple[Integers, Doubles]:
    """Twice the point with the least r(t0); 4 rho(t) for t > t0."""
    m = len(points)
    squares = np.empty((m, m - most + 1), np.int64)
    for i, point in enumerate(points):
        apart = points - point
        squares[i] = np.sort((apart * apart).sum(axis=1))[most - 1 :]
    centre = 2 * points[int(np.argmin(squares[:, 0]))]
    smallest = np.partition(squares[:, 1:], averaged - 1, axis=0)[:averaged]
    means = np.sqrt(smallest.astype(np.float64)).mean(axis=0)
    return centre, 4.0 * np.concatenate([means, [2.0 ** (BITS + 1)]])
