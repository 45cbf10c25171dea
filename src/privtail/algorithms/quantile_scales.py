"""Private location and scale of every column from logarithmic histograms that zoom in."""

from __future__ import annotations

import math
from dataclasses import dataclass, fields, replace
from typing import Self

import numpy as np
from numpy.typing import NDArray

from privtail.trusted.batch import Batch
from privtail.trusted.curator import Curator
from privtail.trusted.events import Event, Plan, Round
from privtail.trusted.mechanisms.noise import GaussianNoise
from privtail.trusted.problem import Problem
from privtail.trusted.sampling import Everyone

Doubles = NDArray[np.float64]

_POWERS = 2.0 ** np.arange(-64, 65)
EDGES = np.concatenate([-_POWERS[::-1], _POWERS])
"""Public edges of the first look: minus and plus 2^-64 ... 2^64. The middle cell holds zero."""

WINDOW = np.linspace(-4.0, 4.0, 257)
"""Public edges of a closer look, in spreads around the centre found so far."""

TARGET_SHARE = 1 / 3
"""Part of a look that goes to the target, whose scale and level matter most."""

_MAGNITUDES = ("scales", "deviations", "tails")

BEYOND = 2.0**1000
"""Scale of a column whose size the edges cannot tell: whatever it is, it counts for nothing."""

ZOOM_SHARE = 0.2
"""Part of the budget that all closer looks take together."""

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
    resolved : (columns,) whether the quantiles of the spread lie at least two cells apart.
    """

    centres: Doubles
    scales: Doubles
    deviations: Doubles
    tails: Doubles
    reliable: NDArray[np.bool_]
    resolved: NDArray[np.bool_]


@dataclass(frozen=True, kw_only=True)
class QuantileScales:
    """Median and spread of every column, bought with histograms over public edges.

    No bound is needed (ALGORITHMS 0b.11). The first look uses signed powers of two, the same for
    any data; indicators of declared categories need none (centre 0, scale 1/2). Columns that it
    does not resolve (they lie far from zero, inside one power of two) get ``zooms`` closer looks,
    each of which cuts the spread found so far into linear cells. What stays unresolved (a column
    that is nearly constant) keeps the spread of the first look. ``target`` includes the target
    column. Where the noise of a cell exceeds n/20, every record votes for one column only, and all
    columns share one scale.

    **Privacy.** Per look one Gaussian release of d histograms (l2 sensitivity sqrt(2 d) under
    replace-one) and one of the target's; together they cost what one release of
    noise ``multiplier`` costs.
    """

    target: bool = False
    zooms: int = 2

    def pooled(self, multiplier: float, problem: Problem) -> bool:
        """Whether one vote per record is all that the budget can carry."""
        return self._looks(multiplier, problem)[0].pooled

    def plan(self, multiplier: float, problem: Problem) -> Plan:
        """The first look, then the closer ones."""
        first, zoom, zooms = self._looks(multiplier, problem)
        if not (problem.measured or self.target):
            return ()
        look = Round(events=first.events(problem, len(EDGES), self.target))
        if zooms == 0:
            return (look,)
        return look, Round(events=zoom.events(problem, len(WINDOW), self.target), times=zooms)

    def run(self, curator: Curator, multiplier: float) -> Scales:
        """Release the histograms; what they describe is post-processing."""
        d = curator.problem.d
        if not (curator.problem.measured or self.target):
            return _declared(d)
        first, zoom, zooms = self._looks(multiplier, curator.problem)
        found = coarse = first.at(curator.everyone(), EDGES, EDGES if self.target else None)
        for batch in curator.rounds(Everyone(), zooms):
            centres, spreads = found.centres.copy(), found.scales
            if curator.sparse:
                centres[:d] = 0.0
            curator.transform(1 / spreads[:d], -centres[:d] / spreads[:d])
            target = centres[d] + spreads[d] * WINDOW if self.target else None
            found = _sharpened(found, zoom.at(batch, WINDOW, target), centres)
        curator.transform(np.ones(d))
        kept = {
            name: np.where(found.resolved, getattr(found, name), getattr(coarse, name))
            for name in _MAGNITUDES
        }
        return replace(found, **kept)

    def _looks(self, multiplier: float, problem: Problem) -> tuple[_Look, _Look, int]:
        """First look, closer look, and how many of these: pooled and none if noise drowns a cell.

        A column that a closer look can help fills few of its cells, so that look may be noisier.
        """
        share = ZOOM_SHARE if self.zooms else 0.0
        noise = multiplier / math.sqrt(1 - share)
        columns = len(problem.measured)
        first = _Look.of(noise, columns, self.target, pooled=False)
        if first.std > problem.n / 20:
            pooled = _Look.of(multiplier, min(columns, 1), self.target, pooled=True)
            return pooled, pooled, 0
        ratio = math.sqrt((1 - share) * self.zooms / share) if share else 1.0
        return first, _Look.of(ratio * noise, columns, self.target, pooled=False), self.zooms


@dataclass(frozen=True)
class _Look:
    """One histogram of every feature, and one of the target, with these noises of a count."""

    std: float
    target_std: float
    pooled: bool

    @classmethod
    def of(cls, multiplier: float, votes: int, target: bool, *, pooled: bool) -> Self:
        """Share what a release of this multiplier costs between ``votes`` cells and the target."""
        part = TARGET_SHARE if votes and target else float(target)
        std = multiplier * math.sqrt(votes / (1 - part)) if votes else 0.0
        return cls(std, multiplier / math.sqrt(part) if target else 0.0, pooled)

    def features(self, d: int) -> GaussianNoise:
        """Noise of the features' histogram, relative to its l2 radius."""
        return GaussianNoise(self.std if self.pooled else self.std / math.sqrt(d))

    def events(self, problem: Problem, edges: int, target: bool) -> tuple[Event, ...]:
        """The releases of one look."""
        columns, events = len(problem.measured), []
        if columns:
            answer = problem.histogram(columns, edges, self.pooled)
            events.append(self.features(columns).event(answer))
        if target:
            last = GaussianNoise(self.target_std)
            events.append(last.event(problem.histogram(1, edges)))
        return tuple(events)

    def at(self, batch: Batch, edges: Doubles, target_edges: Doubles | None) -> Scales:
        """Release and describe, in units of ``edges``; the target's cells lie at its own."""
        n, columns = batch.problem.n, batch.problem.measured
        found = _declared(batch.problem.d)
        if columns:
            noise = self.features(len(columns))
            counts = batch.histogram(columns, edges, self.pooled).release(noise)
            seen = described(counts.reshape(len(columns), -1), self.std, n, edges, self.pooled)
            for field in fields(Scales):
                getattr(found, field.name)[list(columns)] = getattr(seen, field.name)
        if target_edges is None:
            return found
        noise = GaussianNoise(self.target_std)
        last = batch.histogram((-1,), target_edges).release(noise)
        return _joined(found, described(last[None, :], self.target_std, n, edges, False))


def _declared(d: int) -> Scales:
    """What is public of d indicators."""
    half, one = np.full(d, 0.5), np.ones(d)
    known = np.ones(d, dtype=np.bool_)
    return Scales(np.zeros(d), half, half.copy(), one, known, known.copy())


def described(counts: Doubles, std: float, n: int, edges: Doubles, pooled: bool) -> Scales:
    """Describe columns from noisy counts (columns, cells) of standard deviation ``std``.

    Pooled columns have a part of the n votes each; only their sum says anything.
    """
    columns = len(counts)
    votes = n if pooled else n * columns
    together = _describe(counts.sum(axis=0), std * math.sqrt(columns), votes, edges)
    fallback = (0.0, *(together or (0.0, 1.0, 1.0, 1.0, True))[1:])
    found = [None if pooled else _describe(row, std, n, edges) for row in counts]
    table = np.array([fallback if one is None else one for one in found]).T.copy()
    reliable = np.array([one is not None and one[1] < BEYOND for one in found])
    return Scales(table[0], table[1], table[2], table[3], reliable, table[4] > 0)


def _joined(a: Scales, b: Scales) -> Scales:
    pairs = ((getattr(a, field.name), getattr(b, field.name)) for field in fields(Scales))
    return Scales(*(np.concatenate(pair) for pair in pairs))


def _sharpened(found: Scales, closer: Scales, centres: Doubles) -> Scales:
    """What is known after a closer look, given in spreads around ``centres``."""
    away = found.centres != 0  # a column of zeros is known as well as it can be
    better = found.reliable & closer.reliable & ~found.resolved & away
    inside = better & (closer.tails < WINDOW[-1])
    unit = np.where(better, found.scales, 1.0)
    seen = {name: np.where(better, getattr(closer, name), 1.0) for name in _MAGNITUDES}
    return Scales(
        np.where(better, centres + unit * np.where(better, closer.centres, 0.0), found.centres),
        np.where(better, unit * seen["scales"], found.scales),
        np.where(inside, unit * seen["deviations"], found.deviations),
        np.where(inside, unit * seen["tails"], found.tails),
        found.reliable,
        found.resolved | (better & closer.resolved),
    )


def _describe(
    counts: Doubles, std: float, n: int, edges: Doubles
) -> tuple[float, float, float, float, bool] | None:
    """Centre, spread, deviation, tail, resolved; None if less than half of n is above the noise."""
    kept = _signal(counts, std, edges)
    total = kept.sum()
    if total < 0.5 * n or total <= 0:
        return None
    if 2 * max(kept[0], kept[-1]) > total:
        return 0.0, BEYOND, BEYOND, BEYOND, True  # most of the column lies beyond the edges
    cells = np.flatnonzero(kept)
    middles = np.array([_inside(int(cell), 0.5, edges) for cell in cells])
    _, centre = _quantile(kept, 0.5, edges)
    deviation = math.sqrt(float(kept[cells] @ (middles - centre) ** 2 / total))
    first, last = _inside(int(cells[0]), 0.0, edges), _inside(int(cells[-1]), 1.0, edges)
    tail = max(abs(first - centre), abs(last - centre)) or 1.0
    spread, resolved = 0.0, False
    for (low, high), deviations in _SPREADS:
        (i, a), (j, b) = _quantile(kept, low, edges), _quantile(kept, high, edges)
        resolved = j - i >= 2
        if resolved or spread == 0:
            spread = (b - a) / deviations
        if resolved:
            break
    return centre, spread or deviation or tail, deviation or tail, tail, resolved


def _signal(counts: Doubles, std: float, edges: Doubles) -> Doubles:
    """Counts in runs of likely cells (2.5 deviations) that hold a sure one (6); 0 elsewhere.

    Zero is no neighbour of 2^-64: its cell among the powers of two is a run of its own.
    """
    if std == 0:
        return counts
    likely = counts > 2.5 * std
    runs: NDArray[np.int64] = np.cumsum(~likely, dtype=np.int64)
    if edges is EDGES:
        zero = len(_POWERS)
        runs[zero] += len(counts)
        runs[zero + 1 :] += 2 * len(counts)
    return np.where(likely & np.isin(runs, runs[counts > 6 * std]), counts, 0.0)


def _quantile(counts: Doubles, level: float, edges: Doubles) -> tuple[int, float]:
    """Cell and value of a quantile, interpolated linearly inside the cell."""
    cumulative = np.cumsum(counts)
    target = level * cumulative[-1]
    cell = int(np.searchsorted(cumulative, target, side="left"))
    below = cumulative[cell - 1] if cell else 0.0
    return cell, _inside(cell, (target - below) / counts[cell], edges)


def _inside(cell: int, fraction: float, edges: Doubles) -> float:
    """A point of a cell; the two unbounded ones are represented by their edge."""
    low = edges[max(cell - 1, 0)]
    high = edges[min(cell, len(edges) - 1)]
    if low == -_POWERS[0] and high == _POWERS[0]:
        return 0.0
    return float(low + fraction * (high - low))
