"""What a histogram of counts or amounts tells: mean, median, dispersion, where to clip."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from privtail.summaries.histograms import Cells, Histogram

Doubles = NDArray[np.float64]

COUNT_CELLS = Cells(np.append(-1.0, 2.0 ** (np.arange(-63, 65) - 0.5)), zero=1)
"""Public cells for counts and amounts: below -1, up to 2^-63.5, and around every power of two."""

_EDGES = COUNT_CELLS.edges
_ONE = int(np.searchsorted(_EDGES, 1.0))
_MIDDLES = np.concatenate([[0.0, 0.0], _EDGES[1:-1] * math.sqrt(2), _EDGES[-1:]])

RATES = (
    "All targets that were detected are below 1, and no count is. Where they are so small, noise "
    "hides effects: give counts with their exposure, or multiply a rate by a public number."
)


@dataclass(frozen=True)
class AmountHistogram:
    """Counts (cells,) of amounts in `COUNT_CELLS`; 0 where noise hides them.

    An amount is taken for the middle of its cell, on a scale of logarithms.
    """

    counts: Doubles

    @classmethod
    def of(cls, counts: Doubles, std: float, n: int) -> AmountHistogram:
        """From counts with noise of deviation ``std``.

        A count is kept if its cell stands out from the noise, or if its cell is in the run of the
        other cells that stands out most. Large amounts thin out over many cells, none of which
        holds enough to stand out alone.
        """
        histogram = Histogram(counts, COUNT_CELLS, std)
        shown = histogram.above_noise(n)
        rest = replace(histogram, counts=np.where(shown > 0, 0.0, counts))
        return cls(shown + rest.surest_run())

    @property
    def positive(self) -> bool:
        """Whether any amount above zero was detected."""
        return bool(self.counts[2:].any())

    @property
    def below_one(self) -> bool:
        """Whether amounts above zero were detected, and none of 1 or more."""
        return self.positive and not self.counts[_ONE:].any()

    @property
    def parts(self) -> Doubles:
        """(cells,) the part of the detected amounts in each cell."""
        return np.asarray(self.counts / max(float(self.counts.sum()), 1.0))

    @property
    def mean(self) -> float:
        """The mean of the detected amounts; 0 if there are none."""
        return float(self.parts @ _MIDDLES)

    @property
    def median(self) -> float:
        """The median of the detected amounts above zero; 1 if there are none."""
        above = np.cumsum(self.counts[2:])
        middle = int(np.searchsorted(above, above[-1] / 2))
        return float(_MIDDLES[2 + middle]) if above[-1] > 0 else 1.0

    def largest_mean(self, mean: float, hidden: float, clip: float, *, whole: bool) -> float:
        """The largest mean of a record that the detected amounts allow.

        For amounts it is the end c of the highest cell that was detected, or ``clip`` if that is
        lower. For counts it is the l with l + 3 sqrt(l) = c: a record with a larger mean would have
        a larger count. It is at least twice the mean; of counts more by ``hidden``, for
        noise may hide so large a part of the records, with a count of 1 each.
        """
        cells, top = np.flatnonzero(self.counts), mean
        if len(cells):
            top = min(clip, max(0.0, _EDGES[min(int(cells[-1]), len(_EDGES) - 1)]))
        if not whole:
            return max(top, 2 * mean)
        return max((math.sqrt(top + 9 / 4) - 3 / 2) ** 2, 2 * mean + hidden)

    def dispersion(self, mean: float, clip: float) -> float:
        """The mean square of y / mean - 1 of clipped amounts y; 1 if nothing was detected."""
        if not self.positive:
            return 1.0
        return float(self.parts @ (np.minimum(_MIDDLES, clip) / mean - 1) ** 2) or 1.0

    def min_threshold(self, mean: float, part: float) -> float:
        """The lowest threshold of y / mean - 1 at which clipping takes this part off the mean."""
        away = np.abs(_MIDDLES / mean - 1)
        thresholds = np.unique(away)
        missed = np.array([self.parts @ np.maximum(away - t, 0.0) for t in thresholds])
        return float(thresholds[np.argmax(missed <= part)])

    def clip(self, deviation: float, least: float) -> float:
        """Where amounts are clipped before a mean: where clipping misses as much as noise adds.

        ``deviation`` is that of the noise for a clip of 1. The clip is ``least`` or more; it is 1
        where nothing above zero was detected.
        """
        if not self.positive:
            return 1.0
        parts, edges = self.parts, _EDGES[2:]
        missed = np.array([parts @ np.maximum(_MIDDLES - edge, 0.0) for edge in edges])
        return max(least, float(edges[np.argmin((deviation * edges) ** 2 + missed**2)]))
