"""The default, ``algorithm="auto"``: which stages a fit has, and at what noise.

A fit is a tuple of stages. `ScaledDescent.stages` makes it from public numbers: n, d, the kind of
the target and the noise that the budget pays for. `plan` lists the releases of the tuple and `run`
walks it.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar, Literal

from numpy.typing import ArrayLike

from privtail.algorithms.result import Result
from privtail.default.acceptance import Accept, AcceptLabels, CheckOutliers, Improvement
from privtail.default.allocation import Allocation
from privtail.default.columns import Standardize, SummarizeColumns
from privtail.default.constant import CountLabels, StartAtConstant, StartAtMeanAmount
from privtail.default.finish import finished
from privtail.default.fit import Fit, Stage, planned, run_stages
from privtail.default.intercept import FitIntercept, MatchFrequencies, MatchMean, MeanDerivative
from privtail.default.screening import SelectFeatures, findable
from privtail.default.steps import (
    Descend,
    ExpectResiduals,
    MeasureResiduals,
    Precondition,
    ShrinkSlopes,
)
from privtail.default.tuning import Tuning
from privtail.domains import Domain, require
from privtail.errors import IncompatibleParts
from privtail.losses import AMOUNTS, LABELS, AmountLoss, AnyLoss, Loss, Targets, require_margin
from privtail.summaries.column_summaries import RARE, ColumnSummaries
from privtail.trusted.budget import Neighbours
from privtail.trusted.curator import Curator
from privtail.trusted.events import Plan
from privtail.trusted.problem import Problem

CONSTANT = "intercept-only model"
"""The stage of the releases that find it."""

Regime = Literal["all features", "few features", "intercept only"]


@dataclass(frozen=True, kw_only=True)
class ScaledDescent:
    """A private linear model that needs to know nothing about the data. From no paper.

    The features are scaled by noisy histograms. A descent with preconditioned, clipped gradients
    begins at the intercept-only model. A test of the improvement keeps its slopes or sets them to
    zero.

    There are three regimes. Where the noise of a gradient over many features would hide every
    slope, few features are selected first. Where the budget does not even find the target, it goes
    to an intercept-only model. Else all features are used.

    Parameters
    ----------
    targets : what the target holds, as of the loss.
    squares : whether the loss is that of squares.
    sparsity : how many features may be used; None for all.
    selects : whether few features may be selected where noise over all is large.
    labels : how many labels are declared; 2 where they are still to be discovered.
    neighbours : the relation that the budget is stated for.
    tuning : all tuned numbers.

    **Privacy.** Gaussian releases of histograms of l2 sensitivity sqrt(2 d) (features; sqrt 2 where
    each record votes for one of them) and sqrt 2 (target, labels, residuals), of second moments of
    rows of length R (sqrt 2 R^2 / n), of gradients (2 threshold R / n), of means of few numbers. A
    selection is one noisy top-k, composed with these by its bounded range; else composition is
    exact. All else is post-processing.

    **Utility.** None proved; measured in ``benchmarks/accuracy.py``.
    """

    targets: Targets = "real"
    squares: bool = False
    sparsity: int | None = None
    selects: bool = True
    labels: int = 2
    neighbours: Neighbours = "replace_one"
    tuning: Tuning = Tuning()

    needs: ClassVar[tuple[str, ...]] = ("prox", "scaled")
    in_typical_rows: ClassVar[bool] = True

    def plan(self, multiplier: float, problem: Problem) -> Plan:
        """All releases, from public numbers; ``multiplier`` as in `Allocation`."""
        return planned(self.stages(multiplier, problem), problem)

    def takes(self, loss: AnyLoss, problem: Problem) -> Loss:
        """A loss of a margin; of counts and amounts `PoissonLoss` or `TweedieLoss`.

        Raises
        ------
        IncompatibleParts
            For another loss.
        """
        if self.targets in AMOUNTS and not isinstance(loss, AmountLoss):
            raise IncompatibleParts(
                "ScaledDescent fits counts and amounts by PoissonLoss and TweedieLoss alone."
            )
        return require_margin(loss, needed_by="ScaledDescent")

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
        require(domain, *self.needs, needed_by="ScaledDescent")
        problem = curator.problem
        fit = Fit(curator, self.takes(loss, problem), domain, self.tuning, start)
        run_stages(self.stages(multiplier, problem), fit)
        return finished(fit, self.regime(multiplier, problem), multiplier)

    # ---------------------------------------------------------------- which stages

    def regime(self, multiplier: float, problem: Problem) -> Regime:
        """Which stages a fit has, decided by n, d, the target's kind and the noise."""
        tuning, few = self.tuning, self.sparsity is not None and self.sparsity < problem.d
        if self.sparsity is None and self.selects and problem.d >= tuning.many_features:
            crowded = tuning.crowded * (
                math.sqrt(self.labels / 2) if self.targets in LABELS else 1.0
            )
            every = self._allocation(multiplier, problem, few=False)
            few = self.targets not in AMOUNTS and self._relative_noise(every, problem) > crowded
        if not self._finds_constant(self._allocation(multiplier, problem, few=few), problem, few):
            return "intercept only"
        return "few features" if few else "all features"

    def _finds_constant(self, a: Allocation, problem: Problem, few: bool) -> bool:
        """Whether this allocation finds the intercept-only model."""
        if self.targets == "real" and problem.intercept:
            enough = ColumnSummaries.of(self.targets, selecting=few)
            noise = a.count_noise("column_summaries").multiplier
            return noise <= enough.enough_for_target(problem)
        if self.targets in LABELS and problem.intercept:
            noise = a.count_noise("label_counts").multiplier * problem.max_rows
            return noise <= problem.n / self.tuning.known_labels
        return True

    def stages(self, multiplier: float, problem: Problem) -> tuple[Stage, ...]:
        """All stages of a fit, in order."""
        regime = self.regime(multiplier, problem)
        if regime == "intercept only":
            return self._intercept_only(multiplier, problem)
        few = regime == "few features"
        a = self._allocation(multiplier, problem, few=few)
        summaries = ColumnSummaries.of(self.targets, selecting=few)
        first = SummarizeColumns(summaries, a.count_noise("column_summaries"))
        standardize = (*((self._selection(a, problem),) if few else ()), Standardize())
        descent, intercept = self._descent(a, problem), problem.intercept
        stages: tuple[Stage | None, ...]
        if self.targets in LABELS:
            stages = (
                first,
                CountLabels(a.count_noise("label_counts")),
                *standardize,
                *descent,
                AcceptLabels(Improvement(a.mean_noise("gains", AcceptLabels.releases))),
                MatchFrequencies(a.one_sided_noise("intercept")) if intercept else None,
            )
        elif self.targets in AMOUNTS:
            moves = self.tuning.moves if problem.exposure else 1
            noise = a.mean_noise("mean_count", moves)
            mean = MeanDerivative(noise, moves, CONSTANT) if intercept else None
            stages = (
                first,
                StartAtMeanAmount(a.count_noise("count_histogram"), mean),
                *standardize,
                *descent,
                MatchMean(MeanDerivative(a.mean_noise("intercept"))) if intercept else None,
                Accept(Improvement(a.mean_noise("gains", 2))),
            )
        else:
            fits = self.squares and intercept
            stages = (
                first,
                *standardize,
                self._constant(a) if intercept else None,
                *descent,
                FitIntercept(MeanDerivative(a.mean_noise("intercept"))) if fits else None,
                Accept(Improvement(a.mean_noise("gains", 2))),
                CheckOutliers(a.one_sided_noise("outliers")),
            )
        return tuple(stage for stage in stages if stage)

    def _descent(self, a: Allocation, problem: Problem) -> tuple[Stage, ...]:
        """From the intercept-only model to slopes."""
        tuning, noise = self.tuning, a.mean_noise("gradients", self.tuning.steps)
        relative = self._relative_noise(a, problem) * math.sqrt(problem.outputs)
        clipped = max(tuning.clipped, relative / (relative + tuning.half_clipped))
        row_part = tuning.label_row_length if self.targets in LABELS else 1.0
        moments = a.count_noise("moments") if problem.rows <= tuning.most_moments else None
        first = Descend(noise, min(tuning.first_steps, tuning.steps), row_part)
        last = Descend(noise, tuning.steps - first.steps, row_part)
        return (
            Precondition(moments, row_part),
            ExpectResiduals(clipped),
            first,
            MeasureResiduals(a.count_noise("residual_histogram"), clipped, last),
            last,
            ShrinkSlopes(),
        )

    def _selection(self, a: Allocation, problem: Problem) -> SelectFeatures:
        """As many features as noise allows."""
        tuning, noise = self.tuning, a.mean_noise("screening").multiplier
        picks = findable(self.sparsity or tuning.few_features, noise, tuning.clear, problem)
        own, numbers = ColumnSummaries(enough=RARE), self.targets == "real" and problem.intercept
        moves = tuning.moves
        median = None
        if numbers:
            median = MeanDerivative(a.mean_noise("median", moves), moves, "median of the target")
        return SelectFeatures(
            picks, noise * math.sqrt(picks), own, a.count_noise("own_summaries"), median
        )  # fmt: skip

    def _constant(self, a: Allocation) -> StartAtConstant:
        """To a mean one move leads; to another constant a few."""
        moves = 1 if self.squares else self.tuning.moves
        return StartAtConstant(MeanDerivative(a.mean_noise("constant", moves), moves, CONSTANT))

    def _intercept_only(self, multiplier: float, problem: Problem) -> tuple[Stage, ...]:
        """Of numbers most of the budget finds the target, the rest is for the intercept there."""
        if self.targets in LABELS:
            noise = self._divided(multiplier, {"label_counts": 1.0}).count_noise("label_counts")
            return (CountLabels(noise),)
        most = self.tuning.locating
        a = self._divided(multiplier, {"column_summaries": most, "constant": 1 - most})
        summaries, noise = ColumnSummaries(target=True), a.count_noise("column_summaries")
        return (
            SummarizeColumns(summaries, noise, features=False),
            Standardize(),
            self._constant(a),
        )

    # ---------------------------------------------------------------- what they cost

    def _allocation(self, multiplier: float, problem: Problem, *, few: bool) -> Allocation:
        """Of the budget among the stages of a fit."""
        tuning, labels, other = self.tuning, self.targets in LABELS, self.tuning.others
        weights = {
            "column_summaries": tuning.column_summaries,
            "moments": tuning.moments,
            "gradients": 1.0,
            "residual_histogram": other,
            "gains": other * (AcceptLabels.releases if labels else 2),
        }
        if labels:
            weights["label_counts"] = tuning.label_counts
        elif self.targets in AMOUNTS:
            weights["count_histogram"] = tuning.column_summaries
            weights["mean_count"] = tuning.column_summaries / 2
        else:
            weights["outliers"] = other
            weights |= {"constant": other} if problem.intercept else {}
        if problem.intercept and (self.targets != "real" or self.squares):
            weights["intercept"] = other
        if few:
            weights["column_summaries"] /= 2
            weights["own_summaries"] = weights["column_summaries"]
            weights["screening"] = tuning.screening
            weights |= {"median": 2 * other} if "constant" in weights else {}
        return self._divided(multiplier, weights)

    def _divided(self, multiplier: float, weights: dict[str, float]) -> Allocation:
        return Allocation(multiplier, weights, self.neighbours)

    def _relative_noise(self, allocation: Allocation, problem: Problem) -> float:
        """Noise in a coordinate of a gradient, for rows of length sqrt(d) and residuals of 1.

        A feature that explains all of the target has a gradient of 1.
        """
        noise = allocation.mean_noise("gradients", self.tuning.steps).multiplier
        return noise * problem.max_rows * math.sqrt(problem.rows) / problem.n
