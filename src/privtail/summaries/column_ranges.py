"""The releases before a mean that show where to clip its columns."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from privtail.summaries.column_summaries import POOLING_SNR, ColumnSummaries
from privtail.summaries.mean_intervals import SIGNIFICANT, CutRange, cut_range_of
from privtail.summaries.summary import Summary
from privtail.trusted.curator import Curator
from privtail.trusted.events import Plan
from privtail.trusted.problem import Problem

Doubles = NDArray[np.float64]

SCALE_SHARE, LARGEST_SHARE = 0.3, 0.5
"""What the histograms cost, as a part of their cost and that of the mean, usually and at most.

This holds under replace-one. Under zero-out the parts are .46 and two thirds. A count of rows is
paid on top. Histograms get more than usual if less would not locate a column far from zero.

`benchmarks.means` compared .3 with .15. With .3 intervals are .6 to .9 times as wide in the median
of each class of columns, and .4 times for 2,000 normal values at epsilon 1. They hold as often. For
columns against their assumption, rows that noise hides show from .7 times the n epsilon on. Values
of light tails are 10 to 15 % farther off, those of heavy tails about as far, and those of columns
of zeros 5 to 15 % less. With .4 and .5 intervals shrink further, but values of light tails are 20
to 40 % farther off.
"""


@dataclass(frozen=True, kw_only=True)
class ColumnRanges:
    """Centre, scale and clipping distance of columns, and what clipping may cost.

    Clipping to a range that holds nearly all records costs little: a mean that loses a part p of
    the records is off by at most sqrt(p) deviations.

    **Privacy.** That of `ColumnSummaries`, of which this is post-processing.

    Attributes
    ----------
    cells : whether a cell that is not finite leaves its own column alone, and not its row.
    share : what they usually cost, as `SCALE_SHARE` says.
    """

    cells: bool = False
    share: float = SCALE_SHARE

    @property
    def _summaries(self) -> ColumnSummaries:
        pooling_snr = 0.0 if self.cells else POOLING_SNR
        return ColumnSummaries(narrow=True, cells=self.cells, pooling_snr=pooling_snr)

    def plan(self, multiplier: float, problem: Problem) -> Plan:
        """The histograms to release before a mean with noise ``multiplier``."""
        return self._summaries.plan(self._noise(multiplier, problem), problem)

    def run(
        self, curator: Curator, multiplier: float, part: Doubles | float = 1.0
    ) -> tuple[Summary, list[CutRange]]:
        """The summary and the clipping range of every column.

        ``part`` of the n rows counts: one number for all columns, or one for each that is measured.
        """
        problem = curator.problem
        found, histograms = self._summaries.searched(
            curator, self._noise(multiplier, problem), part=part
        )
        found = _around_zero(found) if curator.sparse else found
        ranges = [CutRange.declared()] * problem.d
        parts = np.broadcast_to(part, len(histograms))
        for j, seen, rows in zip(problem.measured, histograms, parts, strict=True):
            usable = max(1, round(rows * problem.n))
            ranges[j] = cut_range_of(seen, found.take([j]), usable, len(histograms))
        return replace(found, tails=np.array([one.distance for one in ranges])), ranges

    def unsure(self, multiplier: float, problem: Problem) -> bool:
        """Whether the noise is so large that a column may be found in the wrong place."""
        noise = self._noise(multiplier, problem)
        return noise > self._summaries.max_noise_for_features(noise, problem) * (1 + 1e-9)

    def hiding(self, text: str, multiplier: float, problem: Problem) -> tuple[str, ...]:
        """The note ``text`` with how many cells noise may hide, to two digits; none below two.

        They are cells of a column that have one size, far from all others.
        """
        std = self._summaries.count_std(self._noise(multiplier, problem), problem)
        return hiding_rows(text, std)

    def _noise(self, multiplier: float, problem: Problem) -> float:
        """The noise of a single release that costs what all histograms do."""
        usual, least = (
            multiplier * math.sqrt((1 - share) / (2 * share))
            for share in (self.share, LARGEST_SHARE)
        )
        return max(least, min(usual, self._summaries.max_noise_for_features(least, problem)))


def hiding_rows(text: str, std: float) -> tuple[str, ...]:
    """The note ``text`` with how many rows a count with such noise may hide; none below two."""
    rows = SIGNIFICANT * std
    return (text.format(rows=int(float(f"{rows:.2g}"))),) * (rows >= 2)


def _around_zero(found: Summary) -> Summary:
    """The same columns with the centre 0, for records that cannot be centred."""
    away = np.abs(found.centres)
    return replace(
        found,
        centres=np.zeros_like(away),
        scales=np.hypot(found.scales, away),
        widths=np.hypot(found.widths, away),
        deviations=np.hypot(found.deviations, away),
        tails=found.tails + away,
    )
