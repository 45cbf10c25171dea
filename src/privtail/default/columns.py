"""The first stages: column summaries, and the standardization that follows from them."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from privtail.default.fit import Fit
from privtail.default.standardization import Standardization, tail_adjusted
from privtail.summaries.column_summaries import ColumnSummaries
from privtail.summaries.summary import Summary
from privtail.trusted.events import Plan
from privtail.trusted.mechanisms.noise import GaussianNoise
from privtail.trusted.problem import Problem


@dataclass(frozen=True)
class SummarizeColumns:
    """Location, scale and tail of every column, and of a numeric target: noisy histograms.

    ``noise`` is that of one histogram that would cost what all of them do.
    """

    summaries: ColumnSummaries
    noise: GaussianNoise

    def plan(self, problem: Problem) -> Plan:
        return self.summaries.plan(self.noise.multiplier, problem)

    def run(self, fit: Fit) -> None:
        fit.summary = self.summaries.run(fit.curator, self.noise.multiplier)


@dataclass(frozen=True)
class SummarizeTarget:
    """The same of the target alone; the features are left as they are."""

    summaries: ColumnSummaries
    noise: GaussianNoise

    def plan(self, problem: Problem) -> Plan:
        return self.summaries.plan(self.noise.multiplier, problem, 0)

    def run(self, fit: Fit) -> None:
        found, d = self.summaries.run(fit.curator, self.noise.multiplier, ()), fit.problem.d
        fit.summary = replace(found, scales=np.append(np.ones(d), found.scales[d:]))


@dataclass(frozen=True)
class LeaveColumns:
    """Releases nothing of the columns: a model of labels that has no slopes."""

    def plan(self, problem: Problem) -> Plan:
        return ()

    def run(self, fit: Fit) -> None:
        d = fit.problem.d
        fit.summary = replace(Summary.declared(d), scales=np.ones(d))


@dataclass(frozen=True)
class Standardize:
    """Centres and scales the features by what was released of them. Releases nothing.

    Beside a numeric target, features of heavier tails get larger scales (`tail_adjusted`), but not
    without privacy, where steps go on until nothing changes.
    """

    adjust_tails: bool = True

    def plan(self, problem: Problem) -> Plan:
        return ()

    def run(self, fit: Fit) -> None:
        summary = fit.summary
        if fit.given.targets == "real" and self.adjust_tails:
            summary = tail_adjusted(summary, fit.tuning.heavier_tails)
        fit.standard = Standardization.of(summary, fit.problem, sparse=fit.curator.sparse)
        fit.loss = fit.standard.loss(fit.given)
