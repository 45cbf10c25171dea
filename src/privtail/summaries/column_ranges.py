"""Where columns lie: what is released before a mean, to know where to clip."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from privtail.summaries.column_summaries import POOLING, ColumnSummaries
from privtail.summaries.mean_intervals import CutRange, cut_range_of
from privtail.summaries.summary import Summary
from privtail.trusted.curator import Curator
from privtail.trusted.events import Plan
from privtail.trusted.problem import Problem

Doubles = NDArray[np.float64]

SCALE_SHARE, LARGEST_SHARE = 0.15, 0.5
"""Parts of the squared Gaussian-DP parameter that buy centre and scale: usually, and at most.

More than usual goes there where less would not find a column that lies far from zero.
"""


@dataclass(frozen=True, kw_only=True)
class ColumnRanges:
    """Centre, scale and clipping distance of columns, and what clipping may cost.

    A mean that is clipped to a cell that holds nearly all loses little: if it loses a part p of the
    records, it is off by sqrt(p) deviations at most.

    **Privacy.** That of `ColumnSummaries`, of which this is post-processing.

    Attributes
    ----------
    cells : whether a cell that is not finite leaves its own column alone, and not its row.
    """

    cells: bool = False

    @property
    def _looks(self) -> ColumnSummaries:
        pooling = 0.0 if self.cells else POOLING
        return ColumnSummaries(narrow=True, cells=self.cells, pooling=pooling)

    def plan(self, multiplier: float, problem: Problem) -> Plan:
        """The looks, beside a mean with noise ``multiplier``."""
        return self._looks.plan(self._noise(multiplier, problem), problem)

    def run(
        self, curator: Curator, multiplier: float, part: Doubles | float = 1.0
    ) -> tuple[Summary, list[CutRange]]:
        """All columns; ``part`` of the n rows counts, in all or in each that nobody declared."""
        problem = curator.problem
        found, views = self._looks.looked(curator, self._noise(multiplier, problem), part=part)
        found = _around_zero(found) if curator.sparse else found
        reaches = [CutRange.declared()] * problem.d
        parts = np.broadcast_to(part, len(views))
        for j, seen, rows in zip(problem.measured, views, parts, strict=True):
            reaches[j] = cut_range_of(seen, found.take([j]), max(1, round(rows * problem.n)))
        return replace(found, tails=np.array([reach.distance for reach in reaches])), reaches

    def unsure(self, multiplier: float, problem: Problem) -> bool:
        """Whether the noise is so large that a column may be looked for in the wrong place."""
        noise = self._noise(multiplier, problem)
        return noise > self._looks.enough_for_features(noise, problem) * (1 + 1e-9)

    def _noise(self, multiplier: float, problem: Problem) -> float:
        """Of one release that pays for the looks."""
        usual, least = (
            multiplier * math.sqrt((1 - share) / (2 * share))
            for share in (SCALE_SHARE, LARGEST_SHARE)
        )
        return max(least, min(usual, self._looks.enough_for_features(least, problem)))


def _around_zero(found: Summary) -> Summary:
    """The same columns as seen from zero, for records that cannot be centred."""
    away = np.abs(found.centres)
    return replace(
        found,
        centres=np.zeros_like(away),
        scales=np.hypot(found.scales, away),
        deviations=np.hypot(found.deviations, away),
        tails=found.tails + away,
    )
