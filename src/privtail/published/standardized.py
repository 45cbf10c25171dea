"""A published algorithm on privately standardized features, with parameters in their units."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import ClassVar

from numpy.typing import ArrayLike

from privtail.algorithms.protocol import Algorithm, require_loss
from privtail.algorithms.result import Result
from privtail.default.acceptance import AcceptanceTest
from privtail.default.label_counts import LabelCounts, of_labels
from privtail.default.standardization import (
    Standardization,
    reported,
    unproven,
    without_slopes,
)
from privtail.domains import Domain, require
from privtail.losses import LABELS, AnyLoss, Loss, Targets, require_margin
from privtail.summaries.column_summaries import ColumnSummaries
from privtail.trusted.curator import Curator
from privtail.trusted.events import Plan, compose
from privtail.trusted.problem import Problem
from privtail.trusted.sampling import DisjointParts, PoissonBatches


@dataclass(frozen=True, kw_only=True)
class Standardized:
    """An algorithm on privately standardized features, with parameters in their units.

    What the algorithm returns is compared with a constant, as `ScaledDescent` does.

    Parameters
    ----------
    make : from the public problem and the scale of a gradient's coordinate to the algorithm. What
        it releases must not depend on the scale; nor, but for how many numbers, on the outputs.
    targets : of the loss; a real target is scaled too.
    share, comparison_share : parts of the algorithm's variance budget that the scales and the
        comparison may spend.

    **Privacy.** `ColumnSummaries`, the algorithm, `LabelCounts`, `AcceptanceTest`; one plan.
    """

    make: Callable[[Problem, float], Algorithm]
    targets: Targets
    share: float = 0.6
    comparison_share: float = 0.1

    needs: ClassVar[tuple[str, ...]] = ("prox", "scaled")

    def plan(self, multiplier: float, problem: Problem) -> Plan:
        """Scales, the algorithm, comparison."""
        plan = self.make(problem, 1.0).plan(multiplier, problem)
        compared = _priced(multiplier, plan, self.comparison_share)
        return compose(
            ColumnSummaries.of(self.targets).plan(
                _priced(multiplier, plan, 2 * self.share), problem
            ),
            tuple(replace(r, stage=r.stage or "published algorithm") for r in plan),
            self._frequencies(compared, problem).plan(problem) if self._labels else (),
            AcceptanceTest(targets=self.targets).plan(compared, problem),
        )

    def takes(self, loss: AnyLoss, problem: Problem) -> Loss:
        """A loss of a margin that the algorithm takes."""
        loss = require_margin(loss, needed_by="Standardized")
        require_loss(self.make(problem, 1.0), loss, problem)
        return loss

    def run(
        self, curator: Curator, loss: AnyLoss, domain: Domain, multiplier: float,
        start: ArrayLike | None = None,
    ) -> Result:  # fmt: skip
        """Standardize, run, compare, and go back to raw features."""
        problem = curator.problem
        loss = self.takes(loss, problem)
        require(domain, *self.needs, needed_by="Standardized")
        plan = self.make(problem, 1.0).plan(multiplier, problem)
        prices = _priced(multiplier, plan, 2 * self.share)
        found = ColumnSummaries.of(self.targets).run(curator, prices)
        # Second moments of 1, which is what the theorems' step sizes and thresholds assume.
        standard = Standardization.of(replace(found, scales=found.deviations), curator)
        loss = standard.loss(loss)
        begin = standard.start(problem, start)
        algorithm = self.make(problem, standard.unit)
        result = algorithm.run(curator, loss, domain.scaled(1 / standard.scales), multiplier, begin)
        compared = _priced(multiplier, plan, self.comparison_share)
        constant = begin if self.targets == "real" else without_slopes(result.w, problem)
        if self._labels:
            counts, rows = self._frequencies(compared, problem).run(curator)
            result = replace(result, rows=rows)
            constant = of_labels(counts, loss, problem)
        decision = AcceptanceTest(targets=self.targets).run(
            curator, loss, result.w, constant, standard.unit, compared
        )
        doubts = standard.doubts(decision.verdict.keeps)
        w = standard.raw(constant if doubts else result.w, problem)
        return replace(
            result, w=w, unit=standard.unit, scales=standard.scales, ranges=found.ranges(),
            notes=(*result.notes, *(doubts or unproven(decision.verdict))),
            report=reported(
                "published algorithm", found, standard, self.targets, doubts, decision.gains
            ),
        )  # fmt: skip

    @property
    def _labels(self) -> bool:
        return self.targets in LABELS

    @staticmethod
    def _frequencies(multiplier: float, problem: Problem) -> LabelCounts:
        return LabelCounts.priced(multiplier / 2, multiplier / 2, problem)


def _priced(multiplier: float, plan: Plan, share: float) -> float:
    """Noise multiplier of one release that costs ``share`` of what ``plan`` costs."""
    rounds = 0.0
    for r in plan:
        rate = r.sampling.rate if isinstance(r.sampling, PoissonBatches) else 1.0
        parts = r.sampling.parts if isinstance(r.sampling, DisjointParts) else 1
        rounds += r.times * rate**2 / parts
    return multiplier / math.sqrt(rounds * share)
