"""Private location and scale of every column from one signed, logarithmic histogram."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from privtail.trusted.curator import Curator
from privtail.trusted.events import Plan, Round
from privtail.trusted.mechanisms.noise import GaussianNoise
from privtail.trusted.problem import Problem

Doubles = NDArray[np.float64]

_POWERS = 2.0 ** np.arange(-64, 65)
EDGES = np.concatenate([-_POWERS[::-1], _POWERS])
"""Public edges: minus and plus 2^-64 ... 2^64. The middle cell holds zero."""

_SPREADS = (
    ((0.25, 0.75), 1.349),
    ((0.1, 0.9), 2.563),
    ((0.03, 0.97), 3.762),
    ((0.01, 0.99), 4.653),
)
"""Pairs of quantile levels and their distance in standard deviations of a Gaussian."""


@dataclass(frozen=True)
class Scales:
    """Released descriptions of columns (features, then the target if it was asked for).

    Attributes
    ----------
    centres : (columns,) medians.
    scales : (columns,) spreads between quantiles, in standard deviations of a Gaussian.
    deviations : (columns,) root mean squares around the centres of what was seen.
    tails : (columns,) distances from the centre to the outermost cell above its noise.
    reliable : (columns,) whether the histogram of the column rose above its noise. Where it did
        not, the centre is 0 and the rest is that of all columns pooled (1 if nothing was seen).
    """

    centres: Doubles
    scales: Doubles
    deviations: Doubles
    tails: Doubles
    reliable: NDArray[np.bool_]


@dataclass(frozen=True, kw_only=True)
class QuantileScales:
    """Median and spread of every column, bought with one histogram over signed powers of two.

    No bound is needed: the edges are the same public numbers for any data (ALGORITHMS 0b.11).
    ``target`` includes the target column. Where the noise of a cell exceeds n/20, every record
    votes for one column only (``pooled``), and all columns share one scale.
    """

    target: bool = False

    def columns(self, problem: Problem) -> tuple[int, ...]:
        """Feature columns, and -1 for the target."""
        return (*range(problem.d), *((-1,) if self.target else ()))

    def pooled(self, multiplier: float, problem: Problem) -> bool:
        """Whether one vote per record is all that the budget can carry."""
        return multiplier * math.sqrt(len(self.columns(problem))) > problem.n / 20

    def plan(self, multiplier: float, problem: Problem) -> Plan:
        """One Gaussian release of a histogram."""
        columns, pooled = self.columns(problem), self.pooled(multiplier, problem)
        answer = problem.histogram(len(columns), len(EDGES), pooled)
        return (Round(events=(GaussianNoise(multiplier).event(answer),)),)

    def run(self, curator: Curator, multiplier: float) -> Scales:
        """Release the histogram; the rest is post-processing."""
        problem = curator.problem
        columns, pooled = self.columns(problem), self.pooled(multiplier, problem)
        counts = curator.everyone().histogram(columns, EDGES, pooled)
        noisy = counts.release(GaussianNoise(multiplier)).reshape(len(columns), -1)
        votes = 1 if pooled else len(columns)
        return from_histogram(noisy, multiplier * math.sqrt(votes), problem.n, pooled)


def from_histogram(noisy: Doubles, std: float, n: int, pooled: bool) -> Scales:
    """Describe columns from noisy counts (columns, cells) of standard deviation ``std``."""
    columns = len(noisy)
    votes = n if pooled else n * columns
    shared = _describe(noisy.sum(axis=0), std * math.sqrt(columns), votes) or (0.0, 1.0, 1.0, 1.0)
    fallback = (0.0, *shared[1:])
    found = [None if pooled else _describe(counts, std, n) for counts in noisy]
    described = np.array([fallback if one is None else one for one in found]).T.copy()
    reliable = np.array([one is not None for one in found])
    return Scales(described[0], described[1], described[2], described[3], reliable)


def _describe(counts: Doubles, std: float, n: int) -> tuple[float, float, float, float] | None:
    """Centre, spread, deviation and tail, or None if less than half of n rises above the noise."""
    kept = np.where(counts > 3.5 * std, counts, 0.0)
    total = kept.sum()
    if total < 0.5 * n:
        return None
    centre = _quantile(kept, 0.5)
    cells = np.flatnonzero(kept)
    middles = np.array([_inside(int(cell), 0.5) for cell in cells])
    deviation = math.sqrt(float(kept[cells] @ (middles - centre) ** 2 / total))
    first, last = _inside(int(cells[0]), 0.0), _inside(int(cells[-1]), 1.0)
    tail = max(abs(first - centre), abs(last - centre)) or 1.0
    spread = deviation or tail
    for (low, high), deviations in _SPREADS:
        width = _quantile(kept, high) - _quantile(kept, low)
        if width > 0:
            spread = width / deviations
            break
    return centre, spread, deviation or tail, tail


def _quantile(counts: Doubles, level: float) -> float:
    """Quantile of a histogram over `EDGES`, interpolated linearly inside its cell."""
    cumulative = np.cumsum(counts)
    target = level * cumulative[-1]
    cell = int(np.searchsorted(cumulative, target, side="left"))
    below = cumulative[cell - 1] if cell else 0.0
    return _inside(cell, (target - below) / counts[cell])


def _inside(cell: int, fraction: float) -> float:
    """A point of a cell; the two unbounded ones are represented by their edge."""
    low = EDGES[max(cell - 1, 0)]
    high = EDGES[min(cell, len(EDGES) - 1)]
    if low == -_POWERS[0] and high == _POWERS[0]:
        return 0.0
    return float(low + fraction * (high - low))
