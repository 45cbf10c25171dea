"""The first stages: column summaries, and the standardization that follows from them."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from privtail.default.fit import Fit
from privtail.default.tuning import Tuning
from privtail.summaries.column_summaries import SHARP, ColumnSummaries
from privtail.summaries.standardization import Standardization
from privtail.summaries.summary import BEYOND, Summary
from privtail.trusted.events import Plan
from privtail.trusted.mechanisms.noise import GaussianNoise
from privtail.trusted.problem import Problem


@dataclass(frozen=True)
class SummarizeColumns:
    """Releases histograms that show the location, scale and tail of every column.

    A numeric target is one of the columns. ``noise`` is the noise of a single histogram that would
    cost what all of them do. Without ``features`` the target alone is summarized, and features keep
    the scale 1.
    """

    summaries: ColumnSummaries
    noise: GaussianNoise
    features: bool = True

    def plan(self, problem: Problem) -> Plan:
        return self.summaries.plan(self.noise.multiplier, problem, None if self.features else 0)

    def finds_target(self, problem: Problem, tuning: Tuning) -> bool:
        """Whether the noise is small enough for the scale of a numeric target."""
        return self.noise.multiplier <= self.summaries.enough_for_target(problem)

    def run(self, fit: Fit) -> None:
        columns = None if self.features else ()
        found = self.summaries.run(fit.curator, self.noise.multiplier, columns)
        if not self.features:
            # at this noise a cell of one histogram that holds all rows is one deviation high
            all_rows = SHARP * self.summaries.enough_for_target(fit.problem, 0)
            fit.unsure = self.noise.multiplier * fit.tuning.sure > all_rows
            scales = np.append(fit.summary.scales, found.scales[fit.problem.d :])
            found = replace(found, scales=scales)
        fit.summary = found


@dataclass(frozen=True)
class Standardize:
    """Centres and scales the features by their column summaries. Releases nothing.

    Where the target is numeric, features with heavier tails get larger scales (`tail_adjusted`).
    """

    def plan(self, problem: Problem) -> Plan:
        return ()

    def run(self, fit: Fit) -> None:
        summary = fit.summary
        if fit.given.targets == "real":
            summary = tail_adjusted(summary, fit.tuning.heavier_tails)
        fit.standard = Standardization.of(summary, fit.problem, sparse=fit.curator.sparse)
        fit.loss = fit.standard.loss(fit.loss)


def tail_adjusted(summary: Summary, heavier: float) -> Summary:
    """Larger scales for features with heavier tails than the target and most other features.

    The bulk of the records decides a slope, but the few records in a heavy tail decide the squared
    error. The slope need not be right there, unless the target has such a tail, or three quarters
    of the features do. The length of a tail is the root mean square deviation over the scale. It is
    usual up to ``heavier`` times the larger of the target's length and the lower quartile of the
    features' lengths. A scale is multiplied by the square of what exceeds that: x^2 has its mass at
    values of the size E x^2 / E|x|.
    """
    known = summary.detected & (summary.scales < BEYOND)
    length = np.divide(
        summary.deviations, summary.scales, out=np.zeros_like(summary.scales), where=known
    )
    features = known[:-1]
    if not features.any():
        return summary
    most = float(np.quantile(length[:-1][features], 0.25, method="lower"))
    usual = heavier * max(most, float(length[-1]))
    times = np.append(np.maximum(1.0, length[:-1] / usual) ** 2, 1.0)
    return replace(summary, scales=summary.scales * times)
