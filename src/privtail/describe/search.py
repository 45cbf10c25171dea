"""Quantiles of unbounded columns from adaptive histogram releases, whose cells close in on them."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import ArrayLike, NDArray

from privtail.coefficients import normal_quantile
from privtail.trusted.curator import Curator
from privtail.trusted.events import Event, Plan, Round
from privtail.trusted.mechanisms.noise import GaussianNoise
from privtail.trusted.problem import Problem

Doubles = NDArray[np.float64]

REFINEMENTS = 7
"""Histogram releases that close in on the quantiles, before the last. 1.7e9 -+ 1e5 needs five."""
LAST_FRACTION = 0.5
"""Fraction of the budget of the last histogram release, which gives the interval."""
EDGES, LAST_EDGES = 9, 14
"""Edges around each quantile in a histogram release, and in the last one."""
OCTAVES = 8
"""Edges of the first histogram release are every eighth power of two."""
SMALL, LARGE = -64, 64
"""Exponents of the sizes that are measured."""
SEPARATED = 3.7
"""A quantile lies beyond an edge if the count says so by this many standard deviations."""
EXTREME = 0.6
"""Standard deviations of noise that are added, because an end is the extreme of many edges."""
LEAST_OCTAVES = 2.0
"""With this many octaves, cells around zero are almost even."""
ZERO = 4 * 2.0**SMALL
"""What is smaller is not told from zero."""
NEAR_ZERO = 1e-6
"""Nor is a value that is this part of its bracket, if that holds zero."""

NEAR = 2.0
"""A quantile probably lies beyond an edge if the count says so by this many standard deviations."""
MOST_EDGES = 16
"""Edges that divide one bracket, at most: each adds noise to the sums over cells."""
UNUSED = 2.0**1000
"""Edges that are not needed begin here. Larger values are not counted."""

_SIZES = 2.0 ** np.arange(SMALL, LARGE + 1, OCTAVES)
FIRST_EDGES = np.concatenate([-_SIZES[::-1], _SIZES])


@dataclass(frozen=True, kw_only=True)
class QuantileSearch:
    """Quantiles of each column at ``levels``, from `REFINEMENTS` + 1 histogram releases.

    The edges of a release divide, for each level, the bracket in which its quantile probably lies.
    What lies below and above a bracket is counted by every release, and averaged.

    **Privacy.** `REFINEMENTS` + 1 Gaussian releases of cell counts (l2 sensitivity
    sqrt(2 columns) under replace-one), the edges of each made of what earlier ones released.
    Together they cost what one of noise ``multiplier`` costs.
    """

    levels: tuple[float, ...]

    def plan(self, multiplier: float, problem: Problem, columns: int) -> Plan:
        """All histogram releases."""
        return tuple(
            Round(stage="quantiles", events=(self._event(multiplier, problem, columns, k),))
            for k in range(REFINEMENTS + 1)
        )

    def run(
        self, curator: Curator, multiplier: float, columns: tuple[int, ...], confidence: float
    ) -> list[ColumnQuantiles]:
        """The quantiles of every column, with intervals of this confidence."""
        problem = curator.problem
        found = [ColumnQuantiles(self.levels, problem.max_rows) for _ in columns]
        for k in range(REFINEMENTS + 1):
            size = self._size(k)
            edges = np.array([one.edges(size) if k else FIRST_EDGES for one in found])
            answer = curator.everyone().cell_counts(columns, edges)
            noise = self._noise(multiplier, k)
            std = noise.event(answer.sensitivity).std
            counts = answer.release(noise).reshape(len(columns), size + 1)
            deviations = SEPARATED if k < REFINEMENTS else normal_quantile(confidence)
            for one, cuts, cells in zip(found, edges, counts, strict=True):
                one.update(cuts, cells, std, deviations)
        return found

    def _size(self, release: int) -> int:
        if release == 0:
            return len(FIRST_EDGES)
        return len(self.levels) * (EDGES if release < REFINEMENTS else LAST_EDGES)

    def _noise(self, multiplier: float, release: int) -> GaussianNoise:
        fraction = LAST_FRACTION if release == REFINEMENTS else (1 - LAST_FRACTION) / REFINEMENTS
        return GaussianNoise(multiplier / math.sqrt(fraction))

    def _event(self, multiplier: float, problem: Problem, columns: int, release: int) -> Event:
        answer = problem.cell_counts(columns, self._size(release))
        return self._noise(multiplier, release).event(answer)


@dataclass
class ColumnQuantiles:
    """Quantiles of one column, with the brackets that histogram releases gave so far.

    Attributes
    ----------
    lows, highs : edges between which each quantile surely lies; infinite where none is known.
    near : edges between which each quantile probably lies. The next release divides these brackets.
    outside : numbers of values below and above each bracket of ``near``, each with its variance.
        Every release counts them again, and they are averaged.
    octaves : how many octaves below the larger end still get cells of their own (`_cut`). Nearer to
        zero, cells are even. If a release does not halve the larger end, cells near zero were too
        fine, so the next release has half as many octaves.
    values : as the last release interpolates them. If one cell surely holds a quantile, many values
        are probably the same. Then the value is the number with the fewest digits in that cell.
    total, total_std : values that counted, by all releases, and the deviation of its noise.
    """

    levels: tuple[float, ...]
    max_rows: int
    lows: Doubles = field(init=False)
    highs: Doubles = field(init=False)
    near: Doubles = field(init=False)
    outside: Doubles = field(init=False)
    octaves: Doubles = field(init=False)
    values: Doubles = field(init=False)
    total: float = 0.0
    total_std: float = math.inf

    def __post_init__(self) -> None:
        size = len(self.levels)
        self.octaves = np.full(size, float(LARGE - SMALL))
        self.lows, self.highs = np.full(size, -np.inf), np.full(size, np.inf)
        self.near = np.stack([self.lows, self.highs], axis=1)
        self.outside = np.zeros((size, 2, 2))
        self.values = np.zeros(size)

    def edges(self, size: int) -> Doubles:
        """The edges of a release: each bracket of ``near`` is divided, see `_cut`.

        Edges that are not needed lie close together beyond all values.
        """
        ends = np.clip(self.near, FIRST_EDGES[0], FIRST_EDGES[-1]).tolist()
        brackets = dict(zip(map(tuple, ends), self.octaves.tolist(), strict=True))
        each = min(size // len(brackets), MOST_EDGES)
        points = [_cut(low, high, octaves, each) for (low, high), octaves in brackets.items()]
        cuts = np.unique(np.concatenate(points))
        return np.concatenate([cuts, UNUSED * (1 + 2.0**-40 * np.arange(size - len(cuts)))])

    def update(self, edges: Doubles, counts: Doubles, std: float, deviations: float) -> None:
        """Narrow the brackets by the counts of one histogram release."""
        used = np.count_nonzero(edges < UNUSED)
        edges, counts = edges[:used], counts[: used + 1]
        self.total, variance = _averaged((self.total, self.total_std**2), counts, std)
        self.total_std = math.sqrt(variance)
        before = np.abs(self.near).max(axis=1)
        for k in range(len(self.levels)):
            self._close_in(k, edges, counts, std, deviations)
        after = np.abs(self.near).max(axis=1)
        stays = np.isfinite(after) & (after > before / 2)
        self.octaves = np.where(stays, np.maximum(self.octaves / 2, LEAST_OCTAVES), self.octaves)
        low, high = self.near.T
        width, holds = high - low, (low < ZERO) & (high > -ZERO) & np.isfinite(high - low)
        tiny = np.maximum(np.where(holds, NEAR_ZERO * width, 0.0), ZERO)
        self.values[np.abs(self.values) < tiny] = 0.0
        order = np.argsort(self.levels)
        self.values[order] = np.sort(self.values)

    def _close_in(
        self, k: int, edges: Doubles, counts: Doubles, std: float, deviations: float
    ) -> None:
        """Compare the numbers of values below and above every edge of the bracket of level k."""
        p, (left, right) = self.levels[k], self.near[k]
        first, last = np.searchsorted(edges, left, "right"), np.searchsorted(edges, right)
        points = np.concatenate([[left], edges[first:last], [right]])
        sums = np.concatenate([[0.0], np.cumsum(counts[first : last + 1])])
        noise = std**2 * np.arange(len(points))
        lower = _averaged(self.outside[k, 0], counts[:first], std)
        upper = _averaged(self.outside[k, 1], counts[last + 1 :], std)
        below = np.stack([lower[0] + sums, lower[1] + noise], axis=1)
        above = np.stack([upper[0] + sums[-1] - sums, upper[1] + noise[::-1]], axis=1)
        excess = (1 - p) * below[:, 0] - p * above[:, 0]
        noisy = (1 - p) ** 2 * below[:, 1] + p**2 * above[:, 1]
        sampled = self.max_rows * max(self.total, 1.0) * p * (1 - p)

        def margin(z: float) -> Doubles:
            return np.asarray(np.sqrt((z + EXTREME) ** 2 * noisy + z**2 * sampled))

        low = np.max(points[excess < -margin(deviations)], initial=-np.inf)
        high = np.min(points[excess > margin(deviations)], initial=np.inf)
        if low < high and low < self.highs[k] and high > self.lows[k]:
            self.lows[k] = max(self.lows[k], low)
            self.highs[k] = min(self.highs[k], high)
        under = np.flatnonzero(excess < -margin(NEAR))
        over = np.flatnonzero(excess > margin(NEAR))
        i = int(under[-1]) if len(under) else 0
        j = int(over[0]) if len(over) else len(points) - 1
        if i >= j:
            i, j = 0, len(points) - 1
        one_cell = np.count_nonzero((points >= low) & (points <= high)) == 2
        self.values[k] = (
            shortest(low, high)
            if one_cell and math.isfinite(high - low)
            else _crossing(points[i : j + 1], excess[i : j + 1])
        )
        self.near[k], self.outside[k] = (points[i], points[j]), (below[i], above[j])
        if excess[i] > 0:
            self._retreat(k, 0, self.lows[k])
        if excess[j] < 0:
            self._retreat(k, 1, self.highs[k])

    def _retreat(self, k: int, side: int, end: float) -> None:
        """An end of ``near`` was wrong: go back to the sure one. Nobody knows what is beyond it."""
        self.near[k, side] = end
        self.outside[k, side] = 0.0, math.inf if math.isfinite(end) else 0.0

    def interval(self) -> tuple[Doubles, Doubles]:
        """Ends for each quantile; sizes that are not told from zero are zero."""
        low, high = (np.where(np.abs(end) < ZERO, 0.0, end) for end in (self.lows, self.highs))
        return low, high

    def reliable(self) -> NDArray[np.bool_]:
        """Whether the bracket of each quantile has two ends."""
        return np.isfinite(self.lows) & np.isfinite(self.highs)


def _cut(low: float, high: float, octaves: float, count: int) -> Doubles:
    """Points from ``low`` to ``high``, even on a scale of logarithms that is even at zero.

    Points far from zero grow by a factor. They are evenly spaced nearer to zero than the larger
    end over 2^octaves, and everywhere if the ends are within a factor of four.
    """
    unit = max(abs(low), abs(high), 2.0**SMALL) * 2.0**-octaves
    a, b = np.arcsinh(np.array([low, high]) / unit)
    if b - a <= 2 * math.log(2):
        points = low + (high - low) * np.linspace(0, 1, count)
    else:
        points = unit * np.sinh(np.linspace(a, b, count))
    points[0], points[-1] = low, high
    return points


def _averaged(known: ArrayLike, counts: Doubles, std: float) -> tuple[float, float]:
    """A number of values and its variance, after it has been counted again in these cells."""
    (before, variance), counted = np.asarray(known).tolist(), float(counts.sum())
    noise = std**2 * len(counts)
    if noise == 0 or math.isinf(variance):
        return counted, noise
    weight = variance / (variance + noise)
    return before + weight * (counted - before), weight * noise


def _crossing(points: Doubles, excess: Doubles) -> float:
    """Where an ascending line through the excesses crosses zero, between two ends."""
    ascending = (np.maximum.accumulate(excess) + np.minimum.accumulate(excess[::-1])[::-1]) / 2
    inside = np.isfinite(points)
    x, y = points[inside], ascending[inside]
    if len(x) == 0:
        return 0.0
    j = int(np.searchsorted(y, 0.0))
    if j in (0, len(x)):
        return float(x[min(j, len(x) - 1)])
    a, b = float(x[j - 1]), float(x[j])
    fraction = -y[j - 1] / (y[j] - y[j - 1]) if y[j] > y[j - 1] else 0.5
    return a + float(fraction) * (b - a)


def shortest(low: float, high: float) -> float:
    """The number with the fewest decimals in [low, high)."""
    if low <= 0 < high:
        return 0.0
    for digits in range(-18, 25):
        number = float(f"{math.ceil(low * 10.0**digits)}e{-digits}")
        if low <= number < high:
            return number
    return low
