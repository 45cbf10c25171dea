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
    """Released centres and scales of columns (features, then the target if it was asked for).

    Attributes
    ----------
    centres, scales : (columns,). A column whose histogram drowned in the noise has centre 0 and
        the pooled scale of the others (1 if nothing was seen at all).
    tails : (columns,) distance from the centre to the outermost cell that rose above its noise.
    reliable : (columns,) whether the histogram of the column rose above its noise.
    """

    centres: Doubles
    scales: Doubles
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
    """Centres and scales from noisy counts (columns, cells) of standard deviation ``std``."""
    columns = len(noisy)
    centres, scales, tails = np.zeros(columns), np.ones(columns), np.ones(columns)
    reliable = np.zeros(columns, dtype=np.bool_)
    if not pooled:
        for c in range(columns):
            found = _describe(noisy[c], std, n)
            if found is not None:
                centres[c], scales[c], tails[c] = found
                reliable[c] = True
    if not reliable.all():
        shared = _describe(noisy.sum(axis=0), std * math.sqrt(columns), n)
        if shared is not None:
            scales[~reliable], tails[~reliable] = shared[1], shared[2]
    return Scales(centres, scales, tails, reliable)


def _describe(counts: Doubles, std: float, n: int) -> tuple[float, float, float] | None:
    """Median, spread and tail of one histogram, or None if little of it rises above the noise."""
    kept = np.where(counts > 3.5 * std, counts, 0.0)
    total = kept.sum()
    if total < (0.2 * n if std == 0 else 6 * std):
        return None
    centre = _quantile(kept, 0.5)
    occupied = np.flatnonzero(kept)
    ends = (
        abs(_inside(int(occupied[0]), 0.0) - centre),
        abs(_inside(int(occupied[-1]), 1.0) - centre),
    )
    tail = max(ends) or 1.0
    for (low, high), deviations in _SPREADS:
        a, b = _quantile(kept, low), _quantile(kept, high)
        if b > a:
            return centre, (b - a) / deviations, tail
    return centre, tail, tail


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
