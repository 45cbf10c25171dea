"""Quantiles of unbounded columns from adaptive histogram releases, whose cells close in on them."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

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
"""Exponents of the sizes that are told apart."""
SEPARATED = 3.7
"""A quantile lies beyond an edge if the count says so by this many standard deviations."""
EXTREME = 0.6
"""Standard deviations of noise that are added, because an end is the extreme of many edges."""
LEAST_OCTAVES = 2.0
"""With this many octaves, cells around zero are almost even."""
ZERO = 4 * 2.0**SMALL
"""What is smaller is not told from zero."""

_SIZES = 2.0 ** np.arange(SMALL, LARGE + 1, OCTAVES)
FIRST_EDGES = np.concatenate([-_SIZES[::-1], _SIZES])


@dataclass(frozen=True, kw_only=True)
class QuantileSearch:
    """Quantiles of each column at ``levels``, from `REFINEMENTS` + 1 histogram releases.

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
    octaves : how far below the larger end sizes are told from zero (`_cut`): half as many after
        each release that does not bring this end nearer to zero: cells at zero are too fine then.
    values : as the last release interpolates them. Where one cell surely holds a quantile, many
        values are the same, and it is the one with the fewest digits.
    total, total_std : values that counted, by all releases, and the deviation of its noise.
    """

    levels: tuple[float, ...]
    max_rows: int
    lows: Doubles = field(init=False)
    highs: Doubles = field(init=False)
    octaves: Doubles = field(init=False)
    values: Doubles = field(init=False)
    total: float = 0.0
    total_std: float = math.inf

    def __post_init__(self) -> None:
        size = len(self.levels)
        self.octaves = np.full(size, float(LARGE - SMALL))
        self.lows, self.highs = np.full(size, -np.inf), np.full(size, np.inf)
        self.values = np.zeros(size)

    def edges(self, size: int) -> Doubles:
        """So many edges: each bracket that may hold a quantile is divided, see `_cut`."""
        ends = np.clip([self.lows, self.highs], FIRST_EDGES[0], FIRST_EDGES[-1]).T.tolist()
        brackets = dict(zip(map(tuple, ends), self.octaves.tolist(), strict=True))
        each = size // len(brackets)
        points = [_cut(low, high, octaves, each) for (low, high), octaves in brackets.items()]
        cuts = np.unique(np.concatenate(points))[:size]
        beyond = 2.0 ** (LARGE + 1) * (1 + np.arange(size - len(cuts)))
        return np.concatenate([cuts, beyond])

    def update(self, edges: Doubles, counts: Doubles, std: float, deviations: float) -> None:
        """Narrow the brackets by the counts of one histogram release."""
        before = self._farthest()
        self._close_in(edges, counts, std, deviations)
        after = self._farthest()
        stays = np.isfinite(after) & (after > before / 2)
        self.octaves = np.where(stays, np.maximum(self.octaves / 2, LEAST_OCTAVES), self.octaves)

    def _farthest(self) -> Doubles:
        """The size of the larger end of each interval."""
        return np.maximum(np.abs(self.lows), np.abs(self.highs))

    def _close_in(self, edges: Doubles, counts: Doubles, std: float, deviations: float) -> None:
        below, total = np.cumsum(counts)[:-1], float(counts.sum())
        cells, noise = len(counts), std * math.sqrt(len(counts))
        if std == 0 or not math.isfinite(self.total_std):
            self.total, self.total_std = total, noise
        else:
            weight = self.total_std**2 / (self.total_std**2 + noise**2)
            self.total += weight * (total - self.total)
            self.total_std = 1 / math.hypot(1 / self.total_std, 1 / noise)
        before = np.arange(1, cells)
        for k, p in enumerate(self.levels):
            excess = below - p * total
            noisy = std**2 * ((1 - p) ** 2 * before + p**2 * (cells - before))
            sampled = self.max_rows * max(total, 1.0) * p * (1 - p)
            margin = np.sqrt((deviations + EXTREME) ** 2 * noisy + deviations**2 * sampled)
            low = np.max(edges[excess < -margin], initial=-np.inf)
            high = np.min(edges[excess > margin], initial=np.inf)
            one_cell = np.count_nonzero((edges >= low) & (edges <= high)) == 2
            self.values[k] = (
                shortest(low, high)
                if one_cell and math.isfinite(high - low)
                else _crossing(edges, excess, self.lows[k], self.highs[k])
            )
            if low < high and low < self.highs[k] and high > self.lows[k]:
                self.lows[k] = max(self.lows[k], low)
                self.highs[k] = min(self.highs[k], high)
        if len(self.levels):
            order = np.argsort(self.levels)
            self.values[order] = np.maximum.accumulate(self.values[order])

    def interval(self) -> tuple[Doubles, Doubles]:
        """Ends for each quantile; sizes that are not told from zero are zero."""
        low, high = (np.where(np.abs(end) < ZERO, 0.0, end) for end in (self.lows, self.highs))
        return low, high

    def reliable(self) -> NDArray[np.bool_]:
        """Whether the bracket of each quantile has two ends."""
        return np.isfinite(self.lows) & np.isfinite(self.highs)


def _cut(low: float, high: float, octaves: float, count: int) -> Doubles:
    """So many points from ``low`` to ``high``, even on a scale of logarithms that is even at zero.

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


def _crossing(edges: Doubles, excess: Doubles, low: float, high: float) -> float:
    """Where an ascending line through the excesses crosses zero, between two ends."""
    ascending = (np.maximum.accumulate(excess) + np.minimum.accumulate(excess[::-1])[::-1]) / 2
    inside = (edges >= low) & (edges <= high)
    x, y = edges[inside], ascending[inside]
    if len(x) == 0:
        return float(np.clip(0.0, low, high))
    j = int(np.searchsorted(y, 0.0))
    if j in (0, len(x)):
        return float(x[min(j, len(x) - 1)])
    a, b = float(x[j - 1]), float(x[j])
    if a <= 0 <= b and b - a <= ZERO:
        return 0.0
    fraction = -y[j - 1] / (y[j] - y[j - 1]) if y[j] > y[j - 1] else 0.5
    return a + float(fraction) * (b - a)


def shortest(low: float, high: float) -> float:
    """The number with the fewest decimals in [low, high)."""
    if low <= 0 < high:
        return 0.0
    for digits in range(-18, 25):
        number = float(f"{math.ceil(low * 10.0**digits) / 10.0**digits:.17g}")
        if low <= number < high:
            return number
    return low
