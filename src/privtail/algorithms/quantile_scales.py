"""Private location and scale of every column from logarithmic histograms that zoom in."""

from __future__ import annotations

import math
from dataclasses import dataclass, fields, replace
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from privtail.algorithms.comparison import ENOUGH
from privtail.losses import Targets
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


def _window(cells: int) -> Doubles:
    """So many edges from -2 to 2, and beyond them powers of sqrt 2: as many as `EDGES`."""
    beyond = 2.0 ** (1 + np.arange(1, (len(EDGES) - cells) // 2 + 1) / 2)
    return np.concatenate([-beyond[::-1], np.linspace(-2.0, 2.0, cells), beyond])


COARSE, FINE = _window(66), _window(130)
"""Public edges of a closer look: the cells that held the middle half are from -1 to 1.

They are as many as those of the first look, so that any look may follow any other.
"""

FINE_FROM = 30
"""Looks are through the finer window where a cell's noise is n over this, or less."""

TARGET_SHARE = 0.6
"""Part of the budget that goes to the target, whose scale and level matter most."""

SHARP = 12
"""A column whose counts have noise n over this is found wherever it lies."""

RARE = 400
"""Features may be zero for nearly all records: counts of them may be as fine as n over this."""

SURE = 4.5
"""How many deviations above zero a run of cells must stand to be believed.

Of 400 histograms of noise alone one or two have such a run.
"""

LIKELY = 2.6
"""The same for one cell near 1. Priors 1/k^2 of exponents k and 1/l of lengths l say the rest.

Of d columns the prior of the farthest exponents is lower by 1/d, that of those near 1 as it was.
"""

INSIDE = 3.7
"""The same for cells of a closer look at a column, which is known to lie there."""

UNSHOWN = 3.0
"""How many deviations a column reaches that was looked at closer: its tails are below the noise."""

HELD = 2 / 3
"""A look goes closer to where this part of the records showed, or more."""

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
    shown : (columns,) part of the records in cells above the noise.
    """

    centres: Doubles
    scales: Doubles
    deviations: Doubles
    tails: Doubles
    lows: Doubles
    highs: Doubles
    reliable: NDArray[np.bool_]
    resolved: NDArray[np.bool_]
    shown: Doubles

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

    def shared(self, columns: int) -> Self:
        """So many columns that one description is of: which of them it fits is not known."""
        places = (np.where(self.resolved, x, self.centres) for x in (self.lows, self.highs))
        lows, highs = (np.repeat(x, columns) for x in places)
        one, known = np.ones(columns), np.ones(columns, dtype=np.bool_)
        centres, scales, deviations, tails = (
            np.repeat(getattr(self, name), columns) for name in ("centres", *_MAGNITUDES)
        )
        return type(self)(centres, scales, deviations, tails, lows, highs, ~known, known, one)


@dataclass(frozen=True, kw_only=True)
class QuantileScales:
    """Median and spread of every column, bought with histograms over public edges.

    No bound is needed (ALGORITHMS 0b.11). The first look uses signed powers of two, the same for
    any data; indicators of declared categories need none (centre 0, scale 1/2). ``zooms`` more
    looks of the same price follow. Columns that are seen and not resolved (they lie far from zero,
    inside one power of two) are looked at through a window around the cells that hold their middle
    half, which it cuts into 32, or into 64 where noise is small. A column that need not go closer,
    or did not show enough, is looked at through the same window again, and its counts are added. A
    feature that stays unresolved (it is nearly constant) keeps the spread among the powers of two.
    ``target`` includes the target column, with a part of the budget of its own. Where all looks
    together have noise above n over ``pooling`` in a feature's cell, every record votes for one
    feature only, and all features share one window and one scale. ``enough``: all looks together
    need no less noise in a feature's cell than n over this; one at the target no less than n/100.
    ``narrow``: also a needle is described by the cell that holds it, for what is clipped there.

    **Privacy.** Edges are made of what earlier looks released. Per look one Gaussian release of d
    histograms (l2 sensitivity sqrt(2 d) under replace-one) and one of the target's; together they
    cost what one release of noise ``multiplier`` costs, or less.
    """

    target: bool = False
    zooms: int = 3
    enough: int = 100_000
    pooling: float = 12
    narrow: bool = False

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

    def clear(self, least: float, problem: Problem) -> float:
        """The largest noise multiplier at which every look at features is `SHARP`.

        Of one vote, where the ``least`` multiplier that the looks may have carries no more.
        """
        share = (1 - TARGET_SHARE * self.target) / (1 + self.zooms)
        votes = 1 if self.pooled(least, problem) else max(1, len(problem.measured))
        return problem.n / problem.max_rows / SHARP * math.sqrt(share / votes)

    def pooled(self, multiplier: float, problem: Problem) -> bool:
        """Whether one vote per record is all that the budget can carry."""
        return self._look(multiplier, problem, len(problem.measured)).pooled

    def plan(self, multiplier: float, problem: Problem, features: int | None = None) -> Plan:
        """The looks, at so many features (all by default)."""
        count = len(problem.measured) if features is None else features
        events = self._look(multiplier, problem, count).events(problem)
        return (Round(events=events, times=1 + self.zooms),) if events else ()

    def run(
        self, curator: Curator, multiplier: float, features: tuple[int, ...] | None = None
    ) -> Scales:
        """Release the histograms; what they describe is post-processing.

        ``features`` are the columns to look at; by default those that nobody has declared.
        """
        problem = curator.problem
        columns = problem.measured if features is None else features
        look = self._look(multiplier, problem, len(columns))
        found = _declared(problem.d)
        if not look.votes and not self.target:
            return found
        count = 1 if look.pooled else len(columns)
        sight = _Sight(count, look.std, problem.n, fixed=curator.sparse, many=len(columns) > 1)
        aim = _Sight(1, look.target_std, problem.n)
        curator.transform(np.ones(problem.d))
        for batch in curator.rounds(Everyone(), 1 + self.zooms):
            if look.votes:
                edges = sight.edges[0] if look.pooled else sight.edges
                answer = batch.histogram(columns, edges, look.pooled)
                sight.add(answer.release(look.features()))
            if self.target:
                aim.add(batch.histogram((-1,), aim.edges).release(look.last()))
        if look.votes:
            seen = sight.with_tails(sight.found if self.narrow else sight.with_needles())
            _put(found, list(columns), seen.shared(len(columns)) if look.pooled else seen)
        return _joined(found, aim.found) if self.target else found

    def _look(self, multiplier: float, problem: Problem, columns: int) -> _Look:
        """Any one of the looks at so many columns."""
        n, m, times = problem.n, problem.max_rows, math.sqrt(1 + self.zooms)
        part = TARGET_SHARE if columns and self.target else float(self.target)

        def std(votes: int, share: float, least: float) -> float:
            """Of a count of all looks together."""
            if votes == 0 or share == 0 or multiplier == 0:
                return 0.0
            return max(multiplier * m * math.sqrt(votes / share), least)

        target = times * std(int(self.target), part, n / ENOUGH / times)
        one = std(columns, 1 - part, n / self.enough)
        pooled = columns > 1 and one > n / self.pooling
        one = std(1, 1 - part, n / self.enough) if pooled else one
        return _Look(m, columns, 1 if pooled else columns, times * one, self.target, target, pooled)


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
    pooled: bool

    def features(self) -> GaussianNoise:
        """Noise of the features' histogram, relative to its l2 radius."""
        return GaussianNoise(self.std / math.sqrt(self.votes) / self.rows)

    def last(self) -> GaussianNoise:
        """Noise of the target's histogram."""
        return GaussianNoise(self.target_std / self.rows)

    def events(self, problem: Problem) -> tuple[Event, ...]:
        """The releases of one look."""
        events = []
        if self.votes:
            answer = problem.histogram(self.columns, len(EDGES), self.pooled)
            events.append(self.features().event(answer))
        if self.target:
            events.append(self.last().event(problem.histogram(1, len(EDGES))))
        return tuple(events)


class _Sight:
    """What is known of columns after some looks, each with noise ``std`` in a count.

    ``fixed``: windows are around zero. ``many``: these are some of many columns, of which one may
    show by chance where it is not: what shows less than `HELD` of it is not followed.

    Attributes
    ----------
    found : what all looks together say.
    edges : (columns, edges) that the next look goes through.
    """

    def __init__(
        self, columns: int, std: float, n: int, *, fixed: bool = False, many: bool = False
    ) -> None:
        self._std, self._n, self._fixed, self._many = std, n, fixed, many
        self._window = FINE if std <= n / FINE_FROM else COARSE
        self._middles, self._halves = np.zeros(columns), np.ones(columns)
        self._closer, self._hidden = (np.zeros(columns, dtype=np.bool_) for _ in range(2))
        self._looks, self._counts = np.zeros(columns), np.zeros((columns, len(EDGES) + 1))
        self.edges = np.tile(EDGES, (columns, 1))
        self.found, self._first, self._coarser = (_declared(columns) for _ in range(3))

    def with_needles(self) -> Scales:
        """``found``, where a needle, which no look resolves, has its size among the powers of two.

        A column that shows no more when it is looked at closer is no needle: it fills its window.
        """
        needles = ~self.found.resolved & ~self._hidden
        sizes = {
            name: np.where(needles, getattr(self._first, name), getattr(self.found, name))
            for name in _MAGNITUDES
        }
        return replace(self.found, **sizes)

    def with_tails(self, found: Scales) -> Scales:
        """``found``, where tails that narrow cells cannot show are those of a Gaussian, or more."""
        deviations = np.maximum(found.deviations, self._closer * found.scales)
        tails = np.maximum(found.tails, self._closer * UNSHOWN * found.scales)
        return replace(found, deviations=deviations, tails=tails)

    def add(self, counts: Doubles) -> None:
        """Look again; closer next time, if that shows where a column is and not its spread."""
        self._counts += counts.reshape(self._counts.shape)
        self._looks += 1
        means, stds = self._counts / self._looks[:, None], self._std / np.sqrt(self._looks)
        first, closer = np.flatnonzero(~self._closer), np.flatnonzero(self._closer)
        seen = _declared(len(self._looks))
        if len(first):
            _put(seen, first, described(means[first], stds[first[0]], self._n, EDGES))
            _put(self._first, first, _take(seen, first))
        for group in self._groups(closer):
            _put(seen, group, described(means[group], stds[group[0]], self._n, self._window))
        if self._many:
            seen.reliable[closer] &= seen.shown[closer] >= HELD
        sharper = _sharpened(
            self._coarser, seen, self._middles, self._halves, float(self._window[-1])
        )
        self.found = _take(seen, slice(None))
        _put(self.found, closer, _take(sharper, closer))
        self._hidden = self._closer & ~seen.reliable
        go = seen.reliable & ~self.found.resolved & (self.found.centres != 0)
        largest = math.sqrt(2 * math.log(self._counts.size))
        held = np.maximum(HELD, largest * stds / self._n)
        self._approach(np.flatnonzero(go & (seen.shown >= held)))

    def _groups(self, columns: NDArray[np.intp]) -> list[NDArray[np.intp]]:
        """These columns, in groups that are seen through one window."""
        groups: dict[tuple[float, ...], list[int]] = {}
        for j in columns:
            key = float(self._middles[j]), float(self._halves[j]), float(self._looks[j])
            groups.setdefault(key, []).append(int(j))
        return [np.array(group) for group in groups.values()]

    def _approach(self, columns: NDArray[np.intp]) -> None:
        """Begin to look at these through windows around what was found of them."""
        _put(self._coarser, columns, _take(self.found, columns))
        middles, halves = self.found.window(self._fixed)
        self._middles[columns], self._halves[columns] = middles[columns], halves[columns]
        self.edges[columns] = (
            self._middles[columns, None] + self._halves[columns, None] * self._window
        )
        self._closer[columns] = True
        self._looks[columns], self._counts[columns] = 0, 0.0


def _put(into: Scales, columns: Any, values: Scales) -> None:
    for field in fields(Scales):
        getattr(into, field.name)[columns] = getattr(values, field.name)


def _take(scales: Scales, columns: Any) -> Scales:
    return Scales(*(getattr(scales, field.name)[columns].copy() for field in fields(Scales)))


def _declared(d: int) -> Scales:
    """What is public of d indicators."""
    half, one, known = np.full(d, 0.5), np.ones(d), np.ones(d, dtype=np.bool_)
    return Scales(
        np.zeros(d), half, half.copy(), one, -one, one.copy(), known, known.copy(), one.copy()
    )


def described(counts: Doubles, std: float, n: int, edges: Doubles) -> Scales:
    """Describe columns from noisy counts (columns, cells) of standard deviation ``std``."""
    columns = len(counts)
    together = _describe(counts.sum(axis=0), std * math.sqrt(columns), n * columns, edges)
    fallback = (0.0, *together[1:4], -1.0, 1.0, True, 0.0) if together else _UNSEEN
    found = [_describe(row, std, n, edges, columns) for row in counts]
    if together:
        alike = _alike(counts, std, edges)
        k = int(alike.sum())
        they = _describe(counts[alike].sum(axis=0), std * math.sqrt(k), n * k, edges) if k else None
        found = [they or one if same else one for same, one in zip(alike, found, strict=True)]
    table = np.array([one or fallback for one in found], dtype=np.float64).T.copy()
    reliable = np.array([one is not None and one[1] < BEYOND for one in found])
    centres, scales, deviations, tails, lows, highs, resolved, shown = table
    return Scales(centres, scales, deviations, tails, lows, highs, reliable, resolved > 0, shown)


def _alike(counts: Doubles, std: float, edges: Doubles) -> NDArray[np.bool_]:
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
            not (
                _signal(left, noise, edges).any() or _run(left, noise, 0, edges, len(counts)).any()
            )
            for left in counts - others
        ]
    )
    usual = counts[alike].sum(axis=0)
    if edges is EDGES:
        usual[_ZERO] = 0.0
    shown = _signal(usual, std * math.sqrt(alike.sum()), edges).sum()
    some = 2 * alike.sum() >= len(alike) and shown > LIKELY * std * alike.sum()
    return alike if some else np.zeros_like(alike)


def _joined(a: Scales, b: Scales) -> Scales:
    pairs = ((getattr(a, field.name), getattr(b, field.name)) for field in fields(Scales))
    return Scales(*(np.concatenate(pair) for pair in pairs))


def _sharpened(
    found: Scales, closer: Scales, middles: Doubles, halves: Doubles, end: float
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
        found.resolved | (better & closer.resolved), np.where(better, closer.shown, found.shown),
    )  # fmt: skip


_Description = tuple[float, float, float, float, float, float, bool, float]
_UNSEEN: _Description = (0.0, 1.0, 1.0, 1.0, -1.0, 1.0, True, 0.0)


def _describe(
    counts: Doubles, std: float, n: int, edges: Doubles, columns: int = 1
) -> _Description | None:
    """Centre, spread, deviation, tail, low, high, resolved, shown; None if too little shows."""
    kept = above_noise(counts, std, n, edges, columns)
    if edges is EDGES and kept[_ZERO] == kept.sum() > 0:
        rest = counts.copy()
        rest[_ZERO] = 0.0
        kept = kept + _run(rest, std, 0, edges, columns)
    total = kept.sum()
    if total <= 0:
        return None
    if 2 * max(kept[0], kept[-1]) > total:
        return 0.0, BEYOND, BEYOND, BEYOND, -1.0, 1.0, True, 0.0  # most lies beyond the edges
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
    low, high = float(low), float(high)
    held = counts[cells[0] : cells[-1] + 1].sum() if _closer(edges) else total
    return centre, spread, deviation or tail, tail, low, high, resolved, float(held) / n


def _closer(edges: Doubles) -> bool:
    return edges is COARSE or edges is FINE


def above_noise(counts: Doubles, std: float, n: int, edges: Doubles, columns: int = 1) -> Doubles:
    """Counts in cells that stand out from noise of deviation ``std``; 0 elsewhere.

    If less than half of n shows cell by cell, the run of cells that stands out most as a whole.
    """
    kept = _signal(counts, std, edges)
    return kept if 2 * kept.sum() >= n else _run(counts, std, n, edges, columns)


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


def _run(counts: Doubles, std: float, n: int, edges: Doubles, columns: int = 1) -> Doubles:
    """Counts in the run of bounded cells that stands out most from the noise; 0 elsewhere.

    Among the powers of two a run lies on one side of zero, or on both (then it is one of
    magnitudes). All are 0 if no run of a quarter of n is sure. What is sure, a prior that has seen
    no data says: far from 1, and long, runs must stand out more.
    """
    nothing = np.zeros_like(counts)
    if std == 0:
        return nothing
    inner = np.arange(1, len(counts) - 1)
    closer = _closer(edges)
    if closer:
        inner = inner[(edges[:-1] >= -2) & (edges[1:] <= 2)]
    sides = [inner[:, None]]
    if edges is EDGES:
        above = inner[inner > _ZERO]
        below = len(counts) - 1 - above
        sides = [above[:, None], below[:, None], np.column_stack([above, below])]
    best, chosen = 0.0, inner[:0]
    sure = None if edges is EDGES else INSIDE if closer else SURE
    needed = _needed(len(sides[0]), sure, columns)
    for cells in sides:
        height, first, last = _most_significant(
            counts[cells].sum(axis=1), std * math.sqrt(cells.shape[1]), n, needed
        )
        if height > best:
            best, chosen = height, cells[first:last].reshape(-1)
    nothing[chosen] = np.maximum(counts[chosen], 0.0)
    return nothing


def _needed(cells: int, sure: float | None, columns: int = 1) -> Doubles:
    """Squared deviations that a run must stand out, by its begin and end.

    ``sure`` of them wherever it is, or, among powers of two, as many as their prior says. Of many
    ``columns`` one shows more by chance: in a window anywhere, among the powers far from 1.
    """
    ends = np.arange(cells + 1)
    if sure is not None:
        return np.full((cells + 1, cells + 1), sure**2 + 2 * math.log(columns))
    exponents = np.abs(ends - cells // 2)
    farthest = np.maximum(exponents[:, None], exponents[None, :])
    lengths = np.maximum(ends[None, :] - ends[:, None], 1)
    power = 2 + math.log(columns) / math.log(1 + cells // 2)
    return np.asarray(LIKELY**2 + 2 * power * np.log(1 + farthest) + 2 * np.log(lengths))


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
