"""The first stage: column summaries, which standardize the columns."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from privtail.default.fit import Fit
from privtail.summaries.column_summaries import LOCATING_SNR, ColumnSummaries
from privtail.trusted.events import Plan
from privtail.trusted.mechanisms.noise import GaussianNoise
from privtail.trusted.problem import Problem


@dataclass(frozen=True)
class SummarizeColumns:
    """Releases histograms of the columns, and standardizes these by their location and scale.

    A numeric target is one of the columns. `ColumnSummaries` divides the budget among a coarse
    histogram of each column and closer ones; ``noise`` is that of one histogram with all of it.
    Without ``features`` the target alone is summarized, and features keep the scale 1.
    """

    summaries: ColumnSummaries
    noise: GaussianNoise
    features: bool = True

    def plan(self, problem: Problem) -> Plan:
        return self.summaries.plan(self.noise.multiplier, problem, None if self.features else 0)

    def finds_target(self, problem: Problem) -> bool:
        """Whether noise does not hide the scale of a numeric target; True for other targets."""
        return self.noise.multiplier <= self.summaries.max_noise_for_target(problem)

    def run(self, fit: Fit) -> None:
        columns = None if self.features else ()
        found = self.summaries.run(fit.curator, self.noise.multiplier, columns)
        if not self.features:
            # the noise at which a count of all rows is one standard deviation
            hiding = LOCATING_SNR * self.summaries.max_noise_for_target(fit.problem, 0)
            fit.target_doubtful = self.noise.multiplier > hiding / fit.tuning.sure
            scales = np.append(fit.summary.scales, found.scales[fit.problem.d :])
            found = replace(found, scales=scales)
        fit.standardize(found)
