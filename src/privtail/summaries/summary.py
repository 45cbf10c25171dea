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

BEYOND = 2.0**1000
"""The scale of a column that is not used, or lies beyond the edges: over it, values are about 0."""


FARTHER = 100.0
"""Values are clipped at this multiple of the distance to the farthest detected cell, by default.

Noise hides rare values farther out. A lower number clips values that right slopes predict: where
5 % of a feature are a hundred times as large as the others, and of Pareto(1.5). A tenth of it, for
predictions of the target, costs shifted lognormal targets 15 to 30 %.
`default.acceptance.LimitExtrapolation` takes a lower one unless clipping significantly loses.
"""


@dataclass(frozen=True)
class Summary:
    """Released descriptions of columns (features, then the target if it was asked for).

    Attributes
    ----------
    centres : (columns,) medians.
    scales : (columns,) distances of quantiles, in standard deviations of a Gaussian.
    deviations : (columns,) root mean square distances of detected values from the centres.
    tails : (columns,) distances from the centre to the outermost detected cell.
    lows, highs : (columns,) edges of the cells that hold the quartiles.
    detected : (columns,) whether the histogram of the column rose above its noise. If it did not,
        the centre is 0, scale and deviation are the deviation of all columns pooled, and the tail
        is theirs (1 if nothing was detected). A column whose histogram does not differ from those
        of most others is described by theirs. If noise hides a column among the powers of two, it
        is whether its location is likely known.
    scale_known : (columns,) whether the quantiles of the scale are at least two cells apart; true
        of a column that was not detected.
    shown : (columns,) the part of the records in detected cells.
    single : (columns,) whether one cell of every histogram of the column holds all that was
        detected.
    """

    centres: Doubles
    scales: Doubles
    deviations: Doubles
    tails: Doubles
    lows: Doubles
    highs: Doubles
    detected: NDArray[np.bool_]
    scale_known: NDArray[np.bool_]
    shown: Doubles
    single: NDArray[np.bool_]

    @classmethod
    def of_one(cls, *facts: float) -> Self:
        """The summary of one column, from its attributes in their order."""
        return cls(*(np.array([fact]) for fact in facts))

    @classmethod
    def unseen(cls) -> Self:
        """The summary of one column that was not detected."""
        return cls.of_one(0.0, 1.0, 1.0, 1.0, -1.0, 1.0, False, True, 0.0, False)

    @classmethod
    def declared(cls, columns: int) -> Self:
        """The public summary of this number of declared indicators."""
        return cls.of_one(0.0, 0.5, 0.5, 1.0, -1.0, 1.0, True, True, 1.0, False).repeated(columns)

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
        """One summary, of all columns together, for each of them."""
        lows, highs = (np.where(self.scale_known, x, self.centres) for x in (self.lows, self.highs))
        yes, one = np.ones(1, dtype=np.bool_), np.ones(1)
        known = replace(
            self, lows=lows, highs=highs, detected=~yes, scale_known=yes, shown=one, single=~yes
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

    def ranges(self, reach: float = FARTHER) -> Doubles:
        """(columns, 2) the range in which values may lie: ``reach`` times the tail on each side.

        It is `FARTHER` times the tail of a column that was not detected, for that tail is the one
        of others. The range of a column that is not known is infinite.
        """
        known = (self.scales < BEYOND) & (self.tails < BEYOND) & ~self.only_zeros
        reach_of_each = np.where(self.detected, reach, FARTHER)
        wide = np.where(known, reach_of_each * self.tails, np.inf)
        return np.column_stack([self.centres - wide, self.centres + wide])

    def window(self, fixed: bool = False) -> tuple[Doubles, Doubles]:
        """Middles and half widths (or 1) of closer windows; the middles are 0 if ``fixed``."""
        middles = np.zeros_like(self.lows) if fixed else self.lows + (self.highs - self.lows) / 2
        halves = np.maximum(self.highs - middles, middles - self.lows)
        return middles, np.minimum(np.where(halves > 0, halves, 1.0), BEYOND)

    def sharpened(
        self, closer: Self, middles: Doubles, halves: Doubles, end: float, held: float
    ) -> Self:
        """The summary, improved by a closer one in units of ``halves`` around ``middles``.

        Deviations and tails of columns that reach the ``end`` of the window stay as they are. If a
        column still has no scale, and less than the part ``held`` was detected, the rest of its
        values keeps its former deviation.
        """
        away = self.centres != 0  # a column of zeros is known as well as it can be
        better = self.detected & closer.detected & ~self.scale_known & away
        inside = better & (closer.tails < end)
        found = self.take(slice(None))
        found.scale_known[better], found.shown[better] = (
            closer.scale_known[better],
            closer.shown[better],
        )
        found.single[better] &= closer.single[better]
        for name in ("centres", "lows", "highs"):
            place = middles[better] + halves[better] * getattr(closer, name)[better]
            getattr(found, name)[better] = place
        for name, seen in (("scales", better), ("deviations", inside), ("tails", inside)):
            getattr(found, name)[seen] = halves[seen] * getattr(closer, name)[seen]
        few = inside & ~closer.scale_known & (closer.shown < held)
        part = np.maximum(closer.shown[few], 0.0)
        near, far = found.deviations[few], self.deviations[few]
        found.deviations[few] = np.hypot(np.sqrt(part) * near, np.sqrt(1 - part) * far)
        return found
