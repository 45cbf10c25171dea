"""Released summaries of columns: location, scale, tail, and whether these are known."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

Doubles = NDArray[np.float64]

SMALLEST = 2.0**-64
"""Smaller absolute values are in the histogram cell of zero."""

UNUSED = 2.0**1000
"""The scale of a column that is not used or lies beyond all edges. Values over it are about 0."""

MAX_REACH = 100.0
"""Values are clipped at this multiple of the distance to the farthest detected cell, by default.

Noise hides rare values farther out. A lower number clips values that correct slopes predict: those
of Pareto(1.5), and of features of which 5 % are a hundred times as large as the others. A tenth of
it, for predictions of the target, costs shifted lognormal targets 15 to 30 %.
`default.acceptance.LimitExtrapolation` takes a lower one unless clipping significantly loses.
"""


@dataclass(frozen=True)
class Summary:
    """Released location, scale and tail of columns: features, then the target if it is summarized.

    Attributes
    ----------
    centres : (columns,) medians.
    scales : (columns,) distances of quantiles, in standard deviations of a Gaussian.
    widths : (columns,) distances of the quantiles .1 and .9 of the values in cells around the
        median that no empty cell separates, in standard deviations of a Gaussian; or the scale, if
        it is larger.
    deviations : (columns,) root mean square distances of detected values from the centres.
    tails : (columns,) distances from the centre to the outermost detected cell.
    lows, highs : (columns,) edges of the cells that hold the quartiles.
    detected : (columns,) whether the histogram of the column rose above its noise. For a column
        that `ColumnPrior` describes, it is whether the posterior knows the location. A column that
        is not detected has the centre 0, and the deviation and the tail of all columns pooled (1
        if nothing was detected). Its scale is that deviation, too.
    scale_known : (columns,) whether the quantiles of the scale are at least two cells apart; true
        of a column that was not detected.
    detected_part : (columns,) the part of the records in detected cells.
    single : (columns,) whether one cell of every histogram of the column holds all that was
        detected.
    """

    centres: Doubles
    scales: Doubles
    widths: Doubles
    deviations: Doubles
    tails: Doubles
    lows: Doubles
    highs: Doubles
    detected: NDArray[np.bool_]
    scale_known: NDArray[np.bool_]
    detected_part: Doubles
    single: NDArray[np.bool_]

    @classmethod
    def of_one(cls, *facts: float) -> Self:
        """The summary of one column, from its attributes in their order."""
        return cls(*(np.array([fact]) for fact in facts))

    @classmethod
    def undetected(cls) -> Self:
        """The summary of one column that was not detected."""
        return cls.of_one(0.0, 1.0, 1.0, 1.0, 1.0, -1.0, 1.0, False, True, 0.0, False)

    @classmethod
    def declared(cls, columns: int) -> Self:
        """The public summary of this number of declared indicators."""
        one = cls.of_one(0.0, 0.5, 0.5, 0.5, 1.0, -1.0, 1.0, True, True, 1.0, False)
        return one.repeated(columns)

    @classmethod
    def joined(cls, parts: Sequence[Self]) -> Self:
        """Columns of all parts, one after the other."""
        names = (field.name for field in fields(cls))
        return cls(*(np.concatenate([getattr(part, name) for part in parts]) for name in names))

    def take(self, columns: Any) -> Self:
        """A copy of these columns."""
        return type(self)(*(getattr(self, field.name)[columns].copy() for field in fields(self)))

    def put(self, columns: Any, values: Self) -> None:
        """Change these columns."""
        for field in fields(self):
            getattr(self, field.name)[columns] = getattr(values, field.name)

    def repeated(self, columns: int) -> Self:
        """The summary of one column, repeated."""
        return self.take(np.zeros(columns, dtype=np.intp))

    def shared(self, columns: int) -> Self:
        """The one summary of all columns pooled, for each of these columns."""
        lows, highs = (np.where(self.scale_known, x, self.centres) for x in (self.lows, self.highs))
        yes, one = np.ones(1, dtype=np.bool_), np.ones(1)
        known = replace(
            self,
            lows=lows,
            highs=highs,
            detected=~yes,
            scale_known=yes,
            detected_part=one,
            single=~yes,
        )
        return known.repeated(columns)

    @property
    def mostly_zeros(self) -> NDArray[np.bool_]:
        """(columns,) whether the middle half of the detected values is zero."""
        return np.asarray((self.lows == -SMALLEST) & (self.highs == SMALLEST))

    @property
    def only_zeros(self) -> NDArray[np.bool_]:
        """(columns,) whether only zeros were detected: the size of the rest is unknown."""
        return self.mostly_zeros & ~self.scale_known

    def as_zeros(self) -> Self:
        """The same columns, as if only zeros were detected."""
        least, no = np.full_like(self.lows, SMALLEST), np.zeros_like(self.scale_known)
        return replace(self, lows=-least, highs=least, scale_known=no)

    def ranges(self, reach: float = MAX_REACH) -> Doubles:
        """(columns, 2) the range in which values may lie: ``reach`` times the tail on each side.

        It is `MAX_REACH` times the tail of a column that was not detected, for that tail is the one
        of others. The range of a column that is not known is infinite.
        """
        known = (self.scales < UNUSED) & (self.tails < UNUSED) & ~self.only_zeros
        reach_of_each = np.where(self.detected, reach, MAX_REACH)
        wide = np.where(known, reach_of_each * self.tails, np.inf)
        return np.column_stack([self.centres - wide, self.centres + wide])

    def window(self, fixed: bool = False) -> tuple[Doubles, Doubles]:
        """Middles and half widths (or 1) of refined windows; the middles are 0 if ``fixed``."""
        middles = np.zeros_like(self.lows) if fixed else self.lows + (self.highs - self.lows) / 2
        halves = np.maximum(self.highs - middles, middles - self.lows)
        return middles, np.minimum(np.where(halves > 0, halves, 1.0), UNUSED)

    def refined_by(
        self, finer: Self, middles: Doubles, halves: Doubles, end: float, least_detected: float
    ) -> Self:
        """The summary, improved by the summary of a refined histogram.

        ``finer`` is in units of ``halves`` around ``middles``. A column that reaches the ``end`` of
        its window keeps its deviation and its tail. If a column still has no scale, and a smaller
        part than ``least_detected`` was detected, its other values keep their former deviation.
        """
        away = self.centres != 0  # a column of zeros is known as well as it can be
        better = self.detected & finer.detected & ~self.scale_known & away
        inside = better & (finer.tails < end)
        found = self.take(slice(None))
        found.scale_known[better] = finer.scale_known[better]
        found.detected_part[better] = finer.detected_part[better]
        found.single[better] &= finer.single[better]
        sizes = {"scales": better, "widths": better, "deviations": inside, "tails": inside}
        for name in ("centres", "lows", "highs"):
            place = middles[better] + halves[better] * getattr(finer, name)[better]
            getattr(found, name)[better] = place
        for name, known in sizes.items():
            getattr(found, name)[known] = halves[known] * getattr(finer, name)[known]
        few = inside & ~finer.scale_known & (finer.detected_part < least_detected)
        part = np.maximum(finer.detected_part[few], 0.0)
        near, far = found.deviations[few], self.deviations[few]
        found.deviations[few] = np.hypot(np.sqrt(part) * near, np.sqrt(1 - part) * far)
        return found
