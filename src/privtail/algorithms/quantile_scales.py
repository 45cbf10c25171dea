"""Private location and scale of every column from logarithmic histograms that zoom in."""

from __future__ import annotations

import math
from dataclasses import dataclass, fields, replace
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from privtail.algorithms.comparison import ENOUGH
from privtail.losses import Targets
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

_ZERO = len(_POWERS)

WINDOW = np.linspace(-2.0, 2.0, 65)
"""Public edges of a closer look: the cells that held the middle half are its half."""


def _window(cells: int) -> Doubles:
    """So many edges from -2 to 2, and beyond them powers of sqrt 2: as many as `EDGES`."""
    beyond = 2.0 ** (1 + np.arange(1, (len(EDGES) - cells) // 2 + 1) / 2)
    return np.concatenate([-beyond[::-1], np.linspace(-2.0, 2.0, cells), beyond])


COARSE, FINE = _window(66), _window(130)
"""The same for the target, so that any look may follow any other; and where noise is small."""

FINE_FROM = 30
"""Looks at the target are through the finer window where a cell's noise is n over this, or less."""

TARGET_SHARE = 0.6
"""Part of the budget that goes to the target, whose scale and level matter most."""

ZOOM_SHARE = 0.2
"""Part of the features' budget that all closer looks take together; the target's are equal."""

POOLED = 12
"""Noise of a cell above n over this: features share one histogram."""

SHARP = 12
"""A target whose counts have noise n over this is found wherever it lies."""

RARE = 400
"""Features may be zero for nearly all records: counts of them may be as fine as n over this."""

SURE = 4.5
"""How many deviations above zero a run of cells must stand to be believed.

Of 400 histograms of noise alone one or two have such a run.
"""

LIKELY = 2.6
"""The same for one cell near 1. Priors 1/k^2 of exponents k and 1/l of lengths l say the rest."""

INSIDE = 3.7
"""The same for cells of a closer look at the target, which is known to lie there."""

HELD = 2 / 3
"""A look at the target goes closer to where this part of the records showed, or more."""

_MAGNITUDES = ("scales", "deviations", "tails")

BEYOND = 2.0**1000
"""Scale of a column whose size the edges cannot tell: whatever it is, it counts for nothing."""

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
    lows, highs : (columns,) edges of the cells that hold the quartiles.
    reliable : (columns,) whether the histogram of the column rose above its noise. Where it did
        not, the centre is 0 and the rest is that of all columns pooled (1 if nothing was seen).
        A column whose histogram does not differ from those of most others is described by theirs.
    resolved : (columns,) whether the quantiles of the spread lie at least two cells apart.
    """

    centres: Doubles
    scales: Doubles
    deviations: Doubles
    tails: Doubles
    lows: Doubles
    highs: Doubles
    reliable: NDArray[np.bool_]
    resolved: NDArray[np.bool_]

    @property
    def zeros(self) -> NDArray[np.bool_]:
        """(columns,) whether nothing but zeros showed; nobody knows how large the rest is."""
        inside = (self.lows == EDGES[_ZERO - 1]) & (self.highs == EDGES[_ZERO])
        return np.asarray(inside & ~self.resolved)

    def window(self, fixed: bool = False) -> tuple[Doubles, Doubles]:
        """Middles and half widths (or 1) of where to look closer; around zero if ``fixed``."""
        middles = np.zeros_like(self.lows) if fixed else self.lows + (self.highs - self.lows) / 2
        halves = np.maximum(self.highs - middles, middles - self.lows)
        return middles, np.minimum(np.where(halves > 0, halves, 1.0), BEYOND)


@dataclass(frozen=True, kw_only=True)
class QuantileScales:
    """Median and spread of every column, bought with histograms over public edges.

    No bound is needed (ALGORITHMS 0b.11). The first look uses signed powers of two, the same for
    any data; indicators of declared categories need none (centre 0, scale 1/2). Columns that it
    does not resolve (they lie far from zero, inside one power of two) get ``zooms`` closer looks,
    each of which cuts the cells that hold the middle half into 32. A feature that stays unresolved
    (it is nearly constant) keeps the spread of the first look. ``target`` includes the target
    column, with a part of the budget of its own; looks at it that need not go closer, or did not
    see it yet, are through the same window again, and their counts are added. Where the noise of a
    feature's cell exceeds n/12, every record votes for one feature only, and all features share one
    scale. ``enough``: the first look at features needs no less noise than n over this; other counts
    no less than n/100.

    **Privacy.** Per look one Gaussian release of d histograms (l2 sensitivity sqrt(2 d) under
    replace-one) and one of the target's; together they cost what one release of noise
    ``multiplier`` costs, or less.
    """

    target: bool = False
    zooms: int = 3
    enough: int = 100_000

    @classmethod
    def of(cls, targets: Targets, enough: int = 100_000) -> Self:
        """With the target's column where it holds real numbers."""
        return cls(target=targets == "real", enough=enough)

    def sharp(self, problem: Problem) -> float:
        """The largest noise multiplier at which every look at the target is `SHARP`."""
        if not self.target:
            return math.inf
        part = TARGET_SHARE if problem.measured else 1.0
        return problem.n / problem.max_rows / SHARP * math.sqrt(part / (1 + self.zooms))

    def pooled(self, multiplier: float, problem: Problem) -> bool:
        """Whether one vote per record is all that the budget can carry."""
        return self._looks(multiplier, problem, len(problem.measured))[0].pooled

    def plan(self, multiplier: float, problem: Problem, features: int | None = None) -> Plan:
        """The first look, then the closer ones, at so many features (all by default)."""
        count = len(problem.measured) if features is None else features
        first, closer = self._looks(multiplier, problem, count)
        look = Round(events=first.events(problem, len(EDGES)))
        zoom = Round(events=closer.events(problem, len(WINDOW)), times=self.zooms)
        if zoom.events == look.events:
            look, zoom = replace(look, times=1 + self.zooms), replace(zoom, times=0)
        return tuple(r for r in (look, zoom) if r.events and r.times)

    def run(
        self, curator: Curator, multiplier: float, features: tuple[int, ...] | None = None
    ) -> Scales:
        """Release the histograms; what they describe is post-processing.

        ``features`` are the columns to look at; by default those that nobody has declared.
        """
        d = curator.problem.d
        columns = curator.problem.measured if features is None else features
        first, closer = self._looks(multiplier, curator.problem, len(columns))
        if not first.votes and not self.target:
            return _declared(d)
        batch, sight = curator.everyone(), _Sight(first.target_std)
        found = coarse = first.at(batch, columns, EDGES)
        if self.target:
            sight.add(batch, first.last())
        for batch in curator.rounds(Everyone(), self.zooms if closer.votes or self.target else 0):
            middles, halves = found.window(curator.sparse)
            curator.transform(1 / halves, -middles / halves)
            found = _sharpened(found, closer.at(batch, columns, WINDOW), middles, halves)
            if self.target:
                sight.add(batch, closer.last())
        curator.transform(np.ones(d))
        kept = {
            name: np.where(found.resolved, getattr(found, name), getattr(coarse, name))
            for name in _MAGNITUDES
        }
        found = replace(found, **kept)
        return _joined(found, sight.found) if self.target else found

    def _looks(self, multiplier: float, problem: Problem, columns: int) -> tuple[_Look, _Look]:
        """First and closer look at so many columns.

        A feature that a closer look can help fills few of its cells, so that look may be noisier.
        """
        n, m = problem.n, problem.max_rows
        part = TARGET_SHARE if columns and self.target else float(self.target)

        def std(votes: int, share: float, enough: int = ENOUGH) -> float:
            if votes == 0 or share == 0 or multiplier == 0:
                return 0.0
            return max(multiplier * m * math.sqrt(votes / share), n / enough)

        target = std(int(self.target), part / (1 + self.zooms))
        zooms = ZOOM_SHARE if self.zooms else 0.0
        first = std(columns, (1 - part) * (1 - zooms), self.enough)
        if first > n / POOLED:
            pooled = _Look(m, columns, 1, std(1, 1 - part), self.target, target, pooled=True)
            return pooled, replace(pooled, votes=0)
        closer = std(columns, (1 - part) * zooms / max(1, self.zooms))
        one = _Look(m, columns, columns, first, self.target, target)
        return one, replace(one, std=closer)


@dataclass(frozen=True)
class _Look:
    """One histogram of each of ``columns`` features, and one of the target.

    ``std`` and ``target_std`` are the noises of a count; a record has ``votes`` for features, a
    person ``rows`` records.
    """

    rows: int
    columns: int
    votes: int
    std: float
    target: bool
    target_std: float
    pooled: bool = False

    def features(self) -> GaussianNoise:
        """Noise of the features' histogram, relative to its l2 radius."""
        return GaussianNoise(self.std / math.sqrt(self.votes) / self.rows)

    def last(self) -> GaussianNoise:
        """Noise of the target's histogram."""
        return GaussianNoise(self.target_std / self.rows)

    def events(self, problem: Problem, edges: int) -> tuple[Event, ...]:
        """The releases of one look."""
        events = []
        if self.votes:
            answer = problem.histogram(self.columns, edges, self.pooled)
            events.append(self.features().event(answer))
        if self.target:
            events.append(self.last().event(problem.histogram(1, len(EDGES))))
        return tuple(events)

    def at(self, batch: Batch, columns: tuple[int, ...], edges: Doubles) -> Scales:
        """Release and describe the features, in units of ``edges``."""
        n, found = batch.problem.n, _declared(batch.problem.d)
        if self.votes:
            counts = batch.histogram(columns, edges, self.pooled).release(self.features())
            counts = counts.reshape(-1, len(edges) + 1)
            seen = described(counts, self.std, n, edges, len(columns) if self.pooled else 1)
            for field in fields(Scales):
                getattr(found, field.name)[list(columns)] = getattr(seen, field.name)
        return found


class _Sight:
    """What is known of the target after some looks, each with noise ``std`` in a count."""

    def __init__(self, std: float) -> None:
        self._std, self._looks = std, 0
        self._edges, self._middle, self._half = EDGES, np.zeros(1), np.ones(1)
        self._counts = np.zeros(len(EDGES) + 1)
        self.found = self._coarser = described(self._counts[None, :], 1.0, 1, EDGES)

    def add(self, batch: Batch, law: GaussianNoise) -> None:
        """Look again; closer next time, if that shows where it is and not its spread."""
        edges = EDGES if self._edges is EDGES else self._middle + self._half * self._edges
        self._counts = self._counts + batch.histogram((-1,), edges).release(law)
        self._looks += 1
        mean, std = self._counts[None, :] / self._looks, self._std / math.sqrt(self._looks)
        seen = described(mean, std, batch.problem.n, self._edges)
        if self._edges is EDGES:
            self.found = seen
        else:
            self.found = _sharpened(self._coarser, seen, self._middle, self._half, self._edges[-1])
        closer = seen.reliable & ~self.found.resolved & (self.found.centres != 0)
        shown = above_noise(mean[0], std, batch.problem.n, self._edges).sum()
        if closer.all() and shown >= HELD * batch.problem.n:
            self._coarser, (self._middle, self._half) = self.found, self.found.window()
            fine = self._std <= batch.problem.n / FINE_FROM
            self._edges, self._looks = FINE if fine else COARSE, 0
            self._counts = np.zeros_like(self._counts)


def _declared(d: int) -> Scales:
    """What is public of d indicators."""
    half, one, known = np.full(d, 0.5), np.ones(d), np.ones(d, dtype=np.bool_)
    return Scales(np.zeros(d), half, half.copy(), one, -one, one.copy(), known, known.copy())


def described(counts: Doubles, std: float, n: int, edges: Doubles, sharing: int = 1) -> Scales:
    """Describe columns from noisy counts (columns, cells) of standard deviation ``std``.

    Or so many columns that are ``sharing`` one row of counts.
    """
    columns = len(counts)
    together = _describe(counts.sum(axis=0), std * math.sqrt(columns), n * columns, edges)
    centre = together[0] if together and sharing > 1 else 0.0
    places = (-1.0, 1.0)
    if together and sharing > 1:
        places = together[4:6] if together[6] else (centre, centre)
    fallback = (centre, *together[1:4], *places, True) if together else _UNSEEN
    found = [_describe(row, std, n, edges) for row in counts] if sharing == 1 else sharing * [None]
    if together and sharing == 1 and edges is EDGES:
        alike = _alike(counts, std)
        k = int(alike.sum())
        they = _describe(counts[alike].sum(axis=0), std * math.sqrt(k), n * k, edges) if k else None
        found = [they or one if same else one for same, one in zip(alike, found, strict=True)]
    table = np.array([one or fallback for one in found], dtype=np.float64).T.copy()
    reliable = np.array([one is not None and one[1] < BEYOND for one in found])
    centres, scales, deviations, tails, lows, highs, resolved = table
    return Scales(centres, scales, deviations, tails, lows, highs, reliable, resolved > 0)


def _alike(counts: Doubles, std: float) -> NDArray[np.bool_]:
    """Columns whose counts do not stand out from those of the others, where most do not.

    What they show together says more of these than their own noise. Where that is hardly more than
    zeros, the rest of one column would drown in noise: each is left at what it shows.
    """
    rest = len(counts) - 1
    if rest == 0 or std == 0:
        return np.zeros(len(counts), dtype=np.bool_)
    others, noise = (counts.sum(axis=0) - counts) / rest, std * math.sqrt(1 + 1 / rest)
    alike = np.array(
        [
            not (_signal(left, noise, EDGES).any() or _run(left, noise, 0, EDGES).any())
            for left in counts - others
        ]
    )
    usual = counts[alike].sum(axis=0)
    usual[_ZERO] = 0.0
    shown = _signal(usual, std * math.sqrt(alike.sum()), EDGES).sum()
    some = 2 * alike.sum() >= len(alike) and shown > LIKELY * std * alike.sum()
    return alike if some else np.zeros_like(alike)


def _joined(a: Scales, b: Scales) -> Scales:
    pairs = ((getattr(a, field.name), getattr(b, field.name)) for field in fields(Scales))
    return Scales(*(np.concatenate(pair) for pair in pairs))


def _sharpened(
    found: Scales, closer: Scales, middles: Doubles, halves: Doubles, end: float = WINDOW[-1]
) -> Scales:
    """What is known after a closer look, given in units of ``halves`` around ``middles``.

    Sizes of columns that reach the ``end`` of what was looked at remain as they were.
    """
    away = found.centres != 0  # a column of zeros is known as well as it can be
    better = found.reliable & closer.reliable & ~found.resolved & away
    inside = better & (closer.tails < end)

    def places(name: str) -> Any:
        return np.where(better, middles + halves * getattr(closer, name), getattr(found, name))

    def sizes(name: str, where: NDArray[np.bool_]) -> Any:
        unit = np.where(where, halves, 1.0)
        return np.where(where, unit * getattr(closer, name), getattr(found, name))

    return Scales(
        places("centres"), sizes("scales", better), sizes("deviations", inside),
        sizes("tails", inside), places("lows"), places("highs"), found.reliable,
        found.resolved | (better & closer.resolved),
    )  # fmt: skip


_Description = tuple[float, float, float, float, float, float, bool]
_UNSEEN: _Description = (0.0, 1.0, 1.0, 1.0, -1.0, 1.0, True)


def _describe(counts: Doubles, std: float, n: int, edges: Doubles) -> _Description | None:
    """Centre, spread, deviation, tail, low, high, resolved; None if too little shows."""
    kept = above_noise(counts, std, n, edges)
    if edges is EDGES and kept[_ZERO] == kept.sum() > 0:
        rest = counts.copy()
        rest[_ZERO] = 0.0
        kept = kept + _run(rest, std, 0, edges)
    if edges is WINDOW and kept.max() >= n - 2 * std:
        kept = np.where(kept == kept.max(), kept, 0.0)  # what one cell may hold alone, it does
    total = kept.sum()
    if total <= 0:
        return None
    if 2 * max(kept[0], kept[-1]) > total:
        return 0.0, BEYOND, BEYOND, BEYOND, -1.0, 1.0, True  # most lies beyond the edges
    cells = np.flatnonzero(kept)
    middles = np.array([_inside(int(cell), 0.5, edges) for cell in cells])
    _, centre = _quantile(kept, 0.5, edges)
    deviation = math.sqrt(float(kept[cells] / total @ (middles - centre) ** 2))
    first, last = _inside(int(cells[0]), 0.0, edges), _inside(int(cells[-1]), 1.0, edges)
    tail = max(abs(first - centre), abs(last - centre)) or 1.0
    (i, _), (j, _) = _quantile(kept, 0.25, edges), _quantile(kept, 0.75, edges)
    low, high = edges[max(i - 1, 0)], edges[min(j, len(edges) - 1)]
    spread, resolved = 0.0, False
    for levels, deviations in _SPREADS:
        (i, a), (j, b) = (_quantile(kept, level, edges) for level in levels)
        resolved = j - i >= 2 and i > 0 and j < len(edges)
        if resolved or spread == 0:
            spread = (b - a) / deviations
        if resolved:
            break
    spread = spread or deviation or tail
    return centre, spread, deviation or tail, tail, float(low), float(high), resolved


def above_noise(counts: Doubles, std: float, n: int, edges: Doubles) -> Doubles:
    """Counts in cells that stand out from noise of deviation ``std``; 0 elsewhere.

    If less than half of n shows cell by cell, the run of cells that stands out most as a whole.
    """
    kept = _signal(counts, std, edges)
    return kept if 2 * kept.sum() >= n else _run(counts, std, n, edges)


def _signal(counts: Doubles, std: float, edges: Doubles) -> Doubles:
    """Counts in runs of likely cells (2.5 deviations) that hold a sure one (6); 0 elsewhere.

    Zero is no neighbour of 2^-64: its cell among the powers of two is a run of its own.
    """
    if std == 0:
        return counts
    likely = counts > 2.5 * std
    runs: NDArray[np.int64] = np.cumsum(~likely, dtype=np.int64)
    if edges is EDGES:
        runs[_ZERO] += len(counts)
        runs[_ZERO + 1 :] += 2 * len(counts)
    return np.where(likely & np.isin(runs, runs[counts > 6 * std]), counts, 0.0)


def _run(counts: Doubles, std: float, n: int, edges: Doubles) -> Doubles:
    """Counts in the run of bounded cells that stands out most from the noise; 0 elsewhere.

    Among the powers of two a run lies on one side of zero, or on both (then it is one of
    magnitudes). All are 0 if no run of a quarter of n is sure. What is sure, a prior that has seen
    no data says: far from 1, and long, runs must stand out more.
    """
    nothing = np.zeros_like(counts)
    if std == 0:
        return nothing
    inner = np.arange(1, len(counts) - 1)
    closer = edges is COARSE or edges is FINE
    if closer:
        inner = inner[(edges[:-1] >= -2) & (edges[1:] <= 2)]
    sides = [inner[:, None]]
    if edges is EDGES:
        above = inner[inner > _ZERO]
        below = len(counts) - 1 - above
        sides = [above[:, None], below[:, None], np.column_stack([above, below])]
    best, chosen = 0.0, inner[:0]
    needed = _needed(len(sides[0]), None if edges is EDGES else INSIDE if closer else SURE)
    for cells in sides:
        height, first, last = _most_significant(
            counts[cells].sum(axis=1), std * math.sqrt(cells.shape[1]), n, needed
        )
        if height > best:
            best, chosen = height, cells[first:last].reshape(-1)
    nothing[chosen] = np.maximum(counts[chosen], 0.0)
    return nothing


def _needed(cells: int, sure: float | None) -> Doubles:
    """Squared deviations that a run must stand out, by its begin and end.

    ``sure`` of them wherever it is, or, among powers of two, as many as their prior says.
    """
    ends = np.arange(cells + 1)
    if sure is not None:
        return np.full((cells + 1, cells + 1), sure**2)
    exponents = np.abs(ends - cells // 2)
    farthest = np.maximum(exponents[:, None], exponents[None, :])
    lengths = np.maximum(ends[None, :] - ends[:, None], 1)
    return np.asarray(LIKELY**2 + 4 * np.log(1 + farthest) + 2 * np.log(lengths))


def _most_significant(
    counts: Doubles, std: float, n: int, needed: Doubles
) -> tuple[float, int, int]:
    """Squared height beyond what is needed, begin and end of the surest run of at least n/4."""
    sums = np.concatenate([[0.0], np.cumsum(counts)])
    mass = sums[None, :] - sums[:, None]
    lengths = np.arange(len(sums))[None, :] - np.arange(len(sums))[:, None]
    possible = (lengths > 0) & (mass >= n / 4) & (mass > 0)
    heights = (mass / std) ** 2 / np.maximum(lengths, 1) - needed
    heights = np.where(possible, heights, 0.0)
    first, last = np.unravel_index(int(heights.argmax()), heights.shape)
    return float(heights[first, last]), int(first), int(last)


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
