"""What a noisy histogram shows of a column: which cells stand out, location, spread."""

from __future__ import annotations

import functools
import math
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr, ndtri

from privtail.summaries.summary import SMALLEST, UNUSED, Summary

Doubles = NDArray[np.float64]
Integers = NDArray[np.intp]

CELL_ABOVE = 2.6
"""A single cell near 1 is significant if its count is this many deviations above zero.

Other runs of cells need more, by the logarithms of two priors: 1/k^2 for the exponent k of a run's
ends, and 1/l for its length l. Among d columns the prior of the farthest exponents is lower by 1/d,
and that of exponents near 1 is the same.
"""

MARGIN_BESIDE_ZEROS = 6.0
"""Squared deviations that a run needs in addition if only zeros were detected besides it.

If such a run were noise, the unit of the column would be wrong, and the few records with other
values might become rows of any length.
"""

REFINED_RUN_ABOVE = 3.7
"""As `CELL_ABOVE`, for any run of cells of a refined histogram, where the column surely lies."""

LIKELY_CELL, SURE_CELL = 2.5, 6.0
"""A cell likely, or surely, holds records if its count is this many deviations above zero.

A count of noise alone is that large in one cell of 160, and in one of a billion.
"""

ROWS_MISSING = 3.0
"""Not all rows count if the sum of all cells is this many deviations below n."""

OTHERS = (
    "A row does not count if a number is missing or not finite, if it is beyond max_rows, or if it "
    "belongs to no person."
)
FEWER = (
    "About {counted:,} of the {n:,} rows count, with noise of standard deviation {noise:,}. "
    + OTHERS
)
HIDDEN = "Noise hides how many of the {n:,} rows count. It may be none{most}. " + OTHERS
UNLIKELY = "; more than {most:,} are unlikely"
"""Sentences of a statement where not all rows count (`fewer`)."""

TENTHS = ((0.1, 0.9), 2.563)
"""The pair of `SPREADS` that gives the width of a column."""

SPREADS = (
    ((0.25, 0.75), 1.349),
    TENTHS,
    ((0.03, 0.97), 3.762),
    ((0.01, 0.99), 4.653),
)
"""Pairs of quantile levels and their distance in standard deviations of a Gaussian."""

ZERO_SPREADS = (*SPREADS, ((0.003, 0.997), 5.496), ((0.001, 0.999), 6.180))
"""The same for a column of mostly zeros, of which only the other values show the scale."""


@dataclass(frozen=True, eq=False)
class Cells:
    """Cells between public edges; the first and the last are unbounded.

    Attributes
    ----------
    edges : (cells - 1,), ascending.
    zero : the cell that holds zero, among powers of two; None for the cells of a refined window.
    """

    edges: Doubles
    zero: int | None = None

    @property
    def refined(self) -> bool:
        """Whether these are the cells of a refined window, where the column lies in [-2, 2]."""
        return self.zero is None

    def bounds(self, cell: int) -> tuple[float, float]:
        """The ends of a cell; both ends of an unbounded cell are its edge."""
        low, high = max(cell - 1, 0), min(cell, len(self.edges) - 1)
        return float(self.edges[low]), float(self.edges[high])

    def point(self, cell: int, fraction: float) -> float:
        """The point at a fraction of a cell's width; of the cell around zero it is 0."""
        low, high = self.bounds(cell)
        return 0.0 if cell == self.zero else low + fraction * (high - low)

    def quantile(self, counts: Doubles, level: float) -> tuple[int, float]:
        """Cell and value of a quantile, interpolated linearly inside the cell."""
        cumulative = np.cumsum(counts)
        target = level * cumulative[-1]
        cell = int(np.searchsorted(cumulative, target, side="left"))
        below = cumulative[cell - 1] if cell else 0.0
        return cell, self.point(cell, float((target - below) / counts[cell]))

    def spread(self, counts: Doubles) -> tuple[float, bool]:
        """The scale by the innermost pair of quantiles that is two cells apart, and whether one is.

        If no pair is, the scale is that of the first pair which is not one point.
        """
        spread, zeros = 0.0, self.zero is not None and 2 * counts[self.zero] > counts.sum()
        for levels, deviations in ZERO_SPREADS if zeros else SPREADS:
            (i, a), (j, b) = (self.quantile(counts, level) for level in levels)
            scale_known = j - i >= 2 and i > 0 and j < len(self.edges)
            if scale_known or spread == 0:
                spread = (b - a) / deviations
            if scale_known:
                return spread, True
        return spread, False

    def without_zeros(self, counts: Doubles) -> Doubles:
        """These counts, with 0 in the cell around zero if there is one."""
        return np.where(np.arange(len(counts)) == self.zero, 0.0, counts)

    @functools.cached_property
    def sides(self) -> tuple[Integers, ...]:
        """The sequences of cells in which a run may lie, each of the shape (cells, parts).

        Among powers of two a run lies above zero, or below it, or it is one of magnitudes and has
        two parts. In a refined window it lies between -2 and 2.
        """
        inner = np.arange(1, len(self.edges))
        if self.zero is None:
            return (inner[(self.edges[:-1] >= -2) & (self.edges[1:] <= 2), None],)
        above = inner[inner > self.zero]
        below = 2 * self.zero - above
        if below[0] < 1:
            return (above[:, None],)
        return above[:, None], below[:, None], np.column_stack([above, below])

    def needed(self, columns: int) -> Doubles | float:
        """The squared deviations that a run needs; among powers of two, by its begin and end.

        Many ``columns`` need more: the largest of many columns of noise is larger.
        """
        if self.zero is None:
            return REFINED_RUN_ABOVE**2 + 2 * math.log(columns)
        return _prior(len(self.sides[0]), columns)


@functools.lru_cache(maxsize=4)
def _prior(cells: int, columns: int) -> Doubles:
    """(begin, end) the squared deviations needed: more for runs far from 1 and for long runs."""
    ends = np.arange(cells + 1)
    exponents = np.abs(ends - cells // 2)
    farthest = np.maximum(exponents[:, None], exponents[None, :])
    lengths = np.maximum(ends[None, :] - ends[:, None], 1)
    power = 2 + math.log(columns) / math.log(1 + cells // 2)
    return np.asarray(CELL_ABOVE**2 + 2 * power * np.log(1 + farthest) + 2 * np.log(lengths))


_SIZES = SMALLEST * 2.0 ** np.arange(129)
POWERS = Cells(np.concatenate([-_SIZES[::-1], _SIZES]), zero=len(_SIZES))
"""The cells of the first histogram, between minus and plus 2^-64 ... 2^64."""


def _window(cells: int) -> Cells:
    """``cells`` edges from -2 to 2, and powers of sqrt 2 beyond them; as many as `POWERS` has."""
    beyond = 2.0 ** (1 + np.arange(1, (len(POWERS.edges) - cells) // 2 + 1) / 2)
    edges = np.concatenate([-beyond[::-1], np.linspace(-2.0, 2.0, cells), beyond])
    return Cells(edges)


COARSE, FINE = _window(66), _window(130)
"""The cells of a refined window. The middle half of the detected records is in [-1, 1].

They are as many as those of `POWERS`, so that any histogram may follow any other.
"""

_SCALES = 2.0 ** np.arange(-2, len(_SIZES) - 2)
DISTANCES = Cells(np.concatenate([-_SCALES[::-1], _SCALES]))
"""The cells of distances from the median, in scales: powers of two. As many as `POWERS` has."""


@dataclass(frozen=True)
class Histogram:
    """Noisy counts (cells,) of the values of one of ``columns`` columns.

    ``std`` is the standard deviation of the noise, one number or one for each cell.
    """

    counts: Doubles
    cells: Cells
    std: Doubles | float
    columns: int = 1

    @property
    def stds(self) -> Doubles:
        """(cells,) the standard deviation of the noise of each cell."""
        return np.broadcast_to(self.std, self.counts.shape)

    def described(self, n: int) -> Summary | None:
        """Location, scale and tail of ``n`` records; None if nothing stands out from the noise."""
        cells, kept = self.cells, self.shown(n)
        single = np.count_nonzero(kept) == 1 and bool(np.any(self.std))
        single = single and not self._beside(kept).any()
        total = kept.sum()
        if total <= 0:
            return None
        if 2 * max(kept[0], kept[-1]) > total:  # most lies beyond the edges
            return Summary.of_one(0.0, *[UNUSED] * 4, -1.0, 1.0, False, True, 0.0, False)
        detected = np.flatnonzero(kept).tolist()
        first, last = detected[0], detected[-1]
        (i, _), (middle, centre), (j, _) = (
            cells.quantile(kept, level) for level in (0.25, 0.5, 0.75)
        )
        middles = np.array([cells.point(cell, 0.5) for cell in detected])
        deviation = math.sqrt(float(kept[detected] / total @ (middles - centre) ** 2))
        spread, scale_known = cells.spread(kept)
        gaps: Integers = np.cumsum(kept == 0)
        body = np.where((kept > 0) & (gaps == gaps[middle]), kept, 0.0)
        levels, width = TENTHS
        (_, low), (_, high) = (cells.quantile(body, level) for level in levels)
        ends = cells.point(first, 0.0), cells.point(last, 1.0)
        tail = max(abs(end - centre) for end in ends) or 1.0
        inside = self.counts[first : last + 1].sum() if cells.refined else total
        scale = spread or deviation or tail
        return Summary.of_one(
            centre, scale, max(scale, (high - low) / width), deviation or tail, tail,
            cells.bounds(i)[0], cells.bounds(j)[1], True, scale_known, float(inside) / n, single,
        )  # fmt: skip

    def shown(self, n: int) -> Doubles:
        """Counts in cells `above_noise`. If these hold only zeros, also counts in a sure run."""
        kept = self.above_noise(n)
        if not kept.any() or self.cells.without_zeros(kept).any():
            return kept
        return kept + self._beside(kept)

    def _beside(self, kept: Doubles) -> Doubles:
        """Counts in the run that surely stands out among the cells that are not ``kept``."""
        return replace(self, counts=np.where(kept, 0.0, self.counts)).surest_run(
            margin=MARGIN_BESIDE_ZEROS
        )

    def above_noise(self, n: int) -> Doubles:
        """Counts in cells that stand out from the noise; 0 elsewhere.

        If these cells hold less than half of the records, it is the counts in the run of cells that
        stands out most as a whole.
        """
        part, _ = usable_rows(self.counts, self.std, n)
        kept = self.sure_cells()
        return kept if 2 * kept.sum() >= part * n else self.surest_run(part * n / 4)

    def sure_cells(self) -> Doubles:
        """Counts in runs of likely cells that contain a sure one (`SURE_CELL`); 0 elsewhere.

        Zero is no neighbour of 2^-64: its cell among the powers of two is a run of its own.
        """
        counts, zero = self.counts, self.cells.zero
        if not np.any(self.std):
            return counts
        likely = counts > LIKELY_CELL * self.std
        runs: Integers = np.cumsum(~likely)
        if zero is not None:
            runs[zero] += len(counts)
            runs[zero + 1 :] += 2 * len(counts)
        return np.where(likely & np.isin(runs, runs[counts > SURE_CELL * self.std]), counts, 0.0)

    def surest_run(self, least: float = 0.0, margin: float = 0.0) -> Doubles:
        """Counts in the run of bounded cells that stands out most from the noise; 0 elsewhere.

        A run must hold ``least`` records, and have ``margin`` squared deviations more than needed.
        """
        nothing = np.zeros_like(self.counts)
        if not np.any(self.std):
            return nothing
        best, chosen = 0.0, self.cells.sides[0][:0]
        needed = self.cells.needed(self.columns) + margin
        unit = float(np.min(self.std))
        counts, variances = self.counts / unit, np.square(self.stds / unit)
        for side in self.cells.sides:
            sums, noise = (x[side].sum(axis=1) for x in (counts, variances))
            height, run = _most_significant(sums, noise, least / unit, needed)
            if height > best:
                best, chosen = height, side[run]
        nothing[chosen] = np.maximum(self.counts[chosen], 0.0)
        return nothing


def _most_significant(
    counts: Doubles, variances: Doubles, least: float, needed: Doubles | float
) -> tuple[float, slice]:
    """The run that most exceeds what it needs, and by how many squared deviations.

    It holds ``least`` records or more. It begins and ends with a count above zero, because other
    counts at its ends would make it less significant.
    """
    above = np.flatnonzero(counts > 0)
    if len(above) == 0:
        return 0.0, slice(0)
    ends = np.ix_(above, above + 1)
    sums, noises = (np.append(0.0, np.cumsum(x)) for x in (counts, variances))
    mass, noise = (x[ends[1]] - x[ends[0]] for x in (sums, noises))
    possible = (noise > 0) & (mass >= least) & (mass > 0)
    squares = np.divide(mass**2, noise, out=np.zeros_like(mass), where=possible)
    wanted = needed if isinstance(needed, float) else needed[ends]
    heights = np.where(possible, squares - wanted, 0.0)
    first, last = np.unravel_index(int(heights.argmax()), heights.shape)
    return float(heights[first, last]), slice(int(above[first]), int(above[last]) + 1)


def bonferroni(deviations: float, tests: int = 2) -> float:
    """The threshold for the largest of several test statistics, at the level of one.

    The level of each test is that of ``deviations``, divided by ``tests`` (Bonferroni 1936).
    """
    return -float(ndtri(ndtr(-deviations) / tests))


def usable_rows(counts: Doubles, std: Doubles | float, n: int) -> tuple[float, float]:
    """The part of ``n`` rows that the cells of one column hold, and its standard deviation.

    These are 1 and 0 if noise allows that the cells hold all rows.
    """
    noise = float(np.hypot.reduce(np.broadcast_to(std, counts.shape)))
    part, deviation = float(counts.sum()) / n, noise / n
    unsure = ROWS_MISSING * deviation
    if unsure >= 1 or 1 - part <= unsure:
        return 1.0, 0.0
    return max(part, unsure, 1 / n), deviation


def fewer(part: float, deviation: float, n: int, consequence: str) -> tuple[str, ...]:
    """The sentence of a statement on the `usable_rows` of ``n`` rows; none if all may count."""
    if part >= 1:
        return ()
    noise = max(1, round(deviation * n))
    said = FEWER.format(counted=round(part * n), n=n, noise=noise)
    if nearly_none(part, deviation):
        most = math.ceil(2 * ROWS_MISSING * deviation * n)
        said = HIDDEN.format(n=n, most=UNLIKELY.format(most=most) if most < n else "")
    return (f"{said} {consequence}",)


def most_are_lost(part: float, deviation: float) -> bool:
    """Whether less than half of the rows seem to count, or likely nearly none."""
    return part < 0.5 or nearly_none(part, deviation)


def nearly_none(part: float, deviation: float) -> bool:
    """Whether noise allows that no row counts, and not that all do."""
    return part <= ROWS_MISSING * deviation
