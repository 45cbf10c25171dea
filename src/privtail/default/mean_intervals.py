"""Where values of a column are clipped, and what clipping may cost: from released histograms."""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Self

import numpy as np
from numpy.typing import NDArray

from privtail.default.histograms import Cells, Histogram
from privtail.default.summary import SMALLEST, Summary

Doubles = NDArray[np.float64]

SURE = 1.645
"""A count is larger by so many deviations of its noise with a chance of 5 %."""

MISSED = 3.0
"""A closer look that misses rows by so many deviations is not believed to show all of them."""

LOST = 4.5
"""By so many, they are surely where no look shows them, and nothing bounds how far."""

OCTAVES = 2.0
"""Rows beyond a distance are counted up to so many doublings of it: few cells, little noise."""

WIDEST = 8
"""A range is widened by so many doublings at most."""

INWARD = 4
"""Doublings below the end of a range in which the tail is measured."""

NARROW = 1 / 64
"""Of a span in which rows are counted, the width of a cell that adds more noise than rows."""

STEEPEST = 8.0
"""A tail that falls with a larger power counts as one of this."""

USUAL_POWER = 2.0
"""Tails fall with this power, or more, unless it shows that they do not: variances are finite."""

SLOW_POWER = 1.3
"""The same of tails that show, but not beyond the end."""

FEW = 0.1
"""Part of the rows beyond a distance from which on they are a tail, whose decline tells."""

LEAST_POWER = 1.1
"""A tail that may fall with a power below this may have no mean."""


@dataclass(frozen=True, eq=False)
class View:
    """Counts of one column in cells, in units of ``half`` around ``middle``, with their noise."""

    cells: Cells
    middle: float
    half: float
    counts: Doubles
    stds: Doubles

    @property
    def ends(self) -> tuple[Doubles, Doubles]:
        """Lower and upper ends of all cells; the outermost have none."""
        edges = self.middle + self.half * self.cells.edges
        return np.append(-math.inf, edges), np.append(edges, math.inf)

    def shown(self, n: int) -> tuple[float, float] | None:
        """Ends of what stands out from the noise; None where nothing bounded does."""
        seen = np.flatnonzero(Histogram(self.counts, self.cells, self.stds).shown(n))
        if not len(seen):
            return None
        low, high = self.cells.point(seen[0], 0.0), self.cells.point(seen[-1], 1.0)
        return self.middle + self.half * low, self.middle + self.half * high

    def between(self, low: float, high: float) -> tuple[float, float]:
        """Rows in [low, high], as if values were spread evenly in each cell; their deviation.

        Cells near zero that are `NARROW` are not counted: there are many, and little is in them.
        """
        lows, highs = self.ends
        widths = highs - lows
        wide = np.isfinite(widths) & (widths > NARROW * (high - low))
        if self.cells.zero is not None:
            wide[self.cells.zero] = True
        inside = np.maximum(np.minimum(highs, high) - np.maximum(lows, low), 0.0)
        parts = np.divide(inside, widths, out=np.zeros_like(inside), where=wide)
        return float(parts @ self.counts), float(np.linalg.norm(parts * self.stds))

    def touched(self, low: float, high: float) -> tuple[float, float]:
        """Rows in all cells that [low, high] touches; their deviation."""
        lows, highs = self.ends
        cells = (highs > low) & (lows < high)
        return float(self.counts[cells].sum()), float(np.linalg.norm(self.stds[cells]))


@dataclass(frozen=True, eq=False)
class CutRange:
    """How far from its centre a column is clipped, and what is known of the rows beyond.

    **What is believed.** The logarithm of the part of the rows beyond a distance falls ever
    steeper in the logarithm of the distance, from where the tail was measured (so do Gaussian,
    lognormal, gamma and Pareto tails). So the steepest decline that was seen on the way bounds the
    rows beyond, and the sum of what they exceed the end by. Of a needle no tail was seen: rows that
    noise may hide are believed to lie where the farthest look showed any, or as far.

    Attributes
    ----------
    distance : where to clip.
    rows : part of the rows that may lie beyond.
    """

    distance: float
    rows: float
    _tails: tuple[_Tail | _Hidden, ...] = ()

    def excess(self, distance: float) -> tuple[float, float]:
        """What the mean loses below, and above, where it is clipped at this distance, at most.

        Infinite where nothing bounds it.
        """
        if not self._tails:
            return math.inf, math.inf
        below, above = (tail.excess(distance, SURE) for tail in self._tails)
        return below, above


UNKNOWN = CutRange(1.0, 1.0)
"""That of a column of which nothing but zeros shows, or nothing at all."""


def reach_of(views: Sequence[View], found: Summary, n: int) -> CutRange:
    """The reach of one column of ``n`` rows, from all looks at it; the closest one is the last.

    What the closest look shows is the range, unless rows are surely missing there: then that of the
    look before. It is widened while rows surely lie beyond.
    """
    centre, tail = float(found.centres[0]), float(found.tails[0])
    told = bool(found.reliable[0] & ~found.zeros[0])
    if not told:
        return replace(UNKNOWN, distance=tail)
    ranges = [view.shown(n) for view in views]
    ranges[0] = ranges[0] or (centre - tail, centre + tail)
    chosen, missing, unsure = 0, 0.0, 0.0
    for k in reversed(range(len(views))):
        here = ranges[k]
        if here is not None:
            chosen, (missing, unsure) = k, _missing(views, here, n)
            if missing <= MISSED * unsure:
                break
    distance, farthest = (_distance(ranges[k], centre) or tail for k in (chosen, 0))
    if chosen > 0 and not found.resolved[0]:
        rows = (max(missing, 0.0) + SURE * unsure) / n
        size = max(farthest, abs(centre))
        hidden = _Hidden(size * (1 + 1 / (USUAL_POWER - 1)), rows)
        return CutRange(distance, rows, (hidden, hidden))
    for _ in range(WIDEST):
        below, above = (_Tail.of(views[chosen], centre, side, n, distance) for side in (-1, 1))
        if not (below.shows or above.shows):
            break
        distance *= 2
    missing, unsure = _missing(views, (centre - distance, centre + distance), n)
    if missing > LOST * unsure:
        return replace(UNKNOWN, distance=distance)
    return CutRange(distance, below.beyond + above.beyond, (below, above))


def _distance(ends: tuple[float, float] | None, centre: float) -> float:
    """Of the farther end from the centre."""
    return max(ends[1] - centre, centre - ends[0]) if ends else 0.0


def _missing(views: Sequence[View], here: tuple[float, float], n: int) -> tuple[float, float]:
    """Rows outside of a range, or fewer, as all views together tell; and the deviation."""
    counts, stds = np.array([view.touched(*here) for view in views]).T
    if not stds.all():
        return n - float(counts.max()), 0.0
    weights = stds**-2.0
    inside = float(weights @ counts / weights.sum())
    return n - inside, float(1 / math.sqrt(weights.sum()))


@dataclass(frozen=True)
class _Hidden:
    """So many ``rows``, as part of all, that may lie at a distance."""

    distance: float
    rows: float

    def excess(self, distance: float, doubt: float) -> float:
        """Mean of what they exceed any distance by, at most."""
        return self.rows * self.distance


@dataclass(frozen=True, eq=False)
class _Tail:
    """Part of the rows beyond each of some distances on one side of a column's centre."""

    bases: Doubles
    rows: Doubles
    stds: Doubles

    @classmethod
    def of(cls, view: View, centre: float, side: int, n: int, end: float) -> Self:
        """That which a view shows; the farthest distance is ``end``."""
        bases, last = end * 2.0 ** -np.arange(INWARD + 1.0), centre + side * end * 2.0**OCTAVES
        spans = [sorted((centre + side * base, last)) for base in bases]
        rows, stds = np.array([view.between(*span) for span in spans]).T / n
        return cls(bases, rows, stds)

    @property
    def shows(self) -> bool:
        """Whether rows surely lie beyond the end."""
        return bool(self.rows[0] > MISSED * self.stds[0])

    @property
    def beyond(self) -> float:
        """Part of the rows that may lie beyond the end."""
        return float(max(self.rows[0], 0.0) + SURE * self.stds[0])

    def excess(self, distance: float, doubt: float) -> float:
        """Mean of what values exceed a distance by, at most; infinite where nothing bounds it.

        ``doubt`` : deviations by which counts are not believed.
        """
        highs = np.maximum(self.rows, 0.0) + doubt * self.stds
        lows = self.rows - doubt * self.stds
        usual, least = self._usual, math.inf
        for k, base in enumerate(self.bases[:-1]):
            if highs[k] <= 0:
                return 0.0
            inside = np.maximum(lows[k + 1 :], SMALLEST)
            falls = np.log2(inside / highs[k]) / np.arange(1, len(inside) + 1)
            power = min(max(float(falls.max()), usual if k == 0 else 0.0), STEEPEST)
            if power > LEAST_POWER:
                rest = highs[k] * base * (distance / base) ** (1 - power) / (power - 1)
                least = min(least, rest)
        return float(least)

    @functools.cached_property
    def _usual(self) -> float:
        """Power that rows beyond are believed to fall with, or more.

        `USUAL_POWER` where no tail shows; else what it fell with on the way to the end, where the
        noise hides it; `SLOW_POWER` or more unless they surely fell less inside.
        """
        lows, highs = self.rows - SURE * self.stds, self.rows + SURE * self.stds
        end = max(self.rows[0], self.stds[0])
        if not (lows > 0).any() or not end > 0:
            return USUAL_POWER
        falls = np.log2(np.maximum(self.rows[1:], SMALLEST) / end) / np.arange(1, len(self.rows))
        slow = (highs[1:-1] < FEW) & (highs[2:] < lows[1:-1] * 2**SLOW_POWER)
        return 0.0 if slow.any() else min(max(float(falls.max()), SLOW_POWER), USUAL_POWER)
