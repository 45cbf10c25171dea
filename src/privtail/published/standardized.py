"""A published algorithm on privately standardized features, with parameters in their units."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike

from privtail.algorithms.protocol import MappedAlgorithm, require_loss
from privtail.algorithms.result import Result, require_no_start
from privtail.default.acceptance import Accept, Improvement
from privtail.default.amounts import StartAtMeanAmount
from privtail.default.columns import SummarizeColumns
from privtail.default.finish import result_of
from privtail.default.fit import Fit, Stage, planned
from privtail.default.intercept import MeanDerivative
from privtail.default.labels import AcceptLabels, CountLabels
from privtail.default.preconditioner import Preconditioner
from privtail.default.tuning import Tuning
from privtail.domains import Domain, require
from privtail.losses import AMOUNTS, LABELS, AnyLoss, Loss, Targets, require_margin
from privtail.summaries.column_summaries import ColumnSummaries
from privtail.summaries.standardization import Standardization
from privtail.trusted.curator import Curator
from privtail.trusted.events import Plan
from privtail.trusted.mechanisms.noise import GaussianNoise
from privtail.trusted.problem import Problem
from privtail.trusted.sampling import DisjointParts, PoissonBatches

Maker = Callable[[Problem, float], MappedAlgorithm]
"""From the public problem and the scale of a gradient's coordinate to an algorithm."""


@dataclass(frozen=True, kw_only=True)
class Standardized:
    """An algorithm on privately standardized features, with parameters in their units.

    What it returns is compared with an intercept-only model, as the default's slopes are.

    Parameters
    ----------
    make : makes the algorithm. What it releases must not depend on the scale; nor, but for how many
        numbers, on the outputs.
    targets : of the loss; a real target is scaled too.
    share, gain_share : parts of the algorithm's budget that column summaries, and each gain of the
        comparison, cost beside it.

    **Privacy.** Column summaries, of labels their counts, of counts their histogram and mean, the
    algorithm, the acceptance test; one plan.
    """

    make: Maker
    targets: Targets
    share: float = 0.6
    gain_share: float = 0.1

    needs: ClassVar[tuple[str, ...]] = ("prox", "scaled")

    def stages(self, multiplier: float, problem: Problem) -> tuple[Stage, ...]:
        """All stages of a fit, in order."""
        cost = _cost(self.make(problem, 1.0).plan(multiplier, problem))

        def noise(share: float) -> GaussianNoise:
            return GaussianNoise(multiplier / math.sqrt(cost * share))

        summaries = ColumnSummaries.of(self.targets)
        labels = (CountLabels(noise(4 * self.gain_share)),) if self.targets in LABELS else ()
        counts: tuple[Stage, ...] = ()
        gain = Improvement(noise(self.gain_share))
        if self.targets in AMOUNTS:
            mean = MeanDerivative(noise(self.gain_share)) if problem.intercept else None
            counts = (StartAtMeanAmount(noise(2 * self.gain_share), mean),)
        return (
            SummarizeColumns(summaries, noise(2 * self.share)),
            *labels,
            StandardizeByDeviation(),
            *counts,
            RunPublished(self.make, multiplier),
            AcceptLabels(gain) if labels else Accept(gain),
        )

    def plan(self, multiplier: float, problem: Problem) -> Plan:
        """The releases of the stages."""
        return planned(self.stages(multiplier, problem), problem)

    def takes(self, loss: AnyLoss, problem: Problem) -> Loss:
        """A loss of a margin that the algorithm takes."""
        loss = require_margin(loss, needed_by="Standardized")
        require_loss(self.make(problem, 1.0), loss, problem)
        return loss

    def run(
        self, curator: Curator, loss: AnyLoss, domain: Domain, multiplier: float,
        start: ArrayLike | None = None,
    ) -> Result:  # fmt: skip
        """The stages, one after the other; parameters in the units of the raw features.

        Raises
        ------
        InvalidInput
            If ``start`` is given: the fit begins at the intercept-only model.
        """
        require(domain, *self.needs, needed_by="Standardized")
        require_no_start(start)
        fit = Fit(curator, self.takes(loss, curator.problem), domain, Tuning())
        for stage in self.stages(multiplier, curator.problem):
            stage.run(fit)
        return replace(result_of(fit, "published algorithm", multiplier), slopes=None)


@dataclass(frozen=True)
class StandardizeByDeviation:
    """Scales features by their deviations: theorems assume second moments of 1."""

    def plan(self, problem: Problem) -> Plan:
        return ()

    def run(self, fit: Fit) -> None:
        fit.summary = replace(fit.summary, scales=fit.summary.deviations)
        fit.standard = Standardization.of(fit.summary, fit.problem, sparse=fit.curator.sparse)
        fit.loss = fit.standard.loss(fit.given_loss)
        if fit.given_loss.targets == "real" and fit.problem.intercept:
            fit.w = fit.intercept_only = fit.w.copy()
            fit.w[-1] = fit.standard.target.location


@dataclass(frozen=True)
class RunPublished:
    """The algorithm itself, from the intercept-only model on."""

    make: Maker
    multiplier: float

    def plan(self, problem: Problem) -> Plan:
        plan = self.make(problem, 1.0).plan(self.multiplier, problem)
        return tuple(replace(r, stage=r.stage or "published algorithm") for r in plan)

    def run(self, fit: Fit) -> None:
        algorithm = self.make(fit.problem, fit.standard.target.scale)
        domain = fit.domain.scaled(1 / fit.standard.scales)
        result = algorithm.run(
            fit.curator, fit.loss, domain, self.multiplier, fit.w, fit.standard.map
        )
        rows = fit.problem.rows
        fit.w, fit.preconditioner = (
            result.w,
            Preconditioner.from_moments(
                np.eye(rows), 0.0, np.ones(rows, dtype=np.bool_), math.sqrt(rows), clear_ratio=1.0
            ),
        )
        fit.notes, fit.steps = (*fit.notes, *result.notes), result.steps


def _cost(plan: Plan) -> float:
    """The cost of a plan, in releases of all records."""
    cost = 0.0
    for r in plan:
        rate = r.sampling.rate if isinstance(r.sampling, PoissonBatches) else 1.0
        parts = r.sampling.parts if isinstance(r.sampling, DisjointParts) else 1
        cost += r.times * rate**2 / parts
    return cost
