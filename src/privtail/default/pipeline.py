"""The default, ``algorithm="auto"``: the stages of a fit, and the budget fraction of each.

`ScaledDescent.choose_stages` chooses the stages from public numbers: n, d, the kind of the target
and the noise multiplier. `plan` lists their releases, and `run` makes them. To read the default,
begin with `choose_stages` and the three lists below it, for numbers, amounts and labels. Each entry
is a stage with its budget weight (`Tuning`). ``report_["reasons"]`` says why a fit returned a
constant (`finish._reasons`): most often `Accept` or `AcceptLabels` found no gain. All releases and
the cost of each stage are in ``model.plan(n, d)``. See ``docs/background/how-it-works.md``, too.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import ClassVar, Literal, NamedTuple, get_args

from numpy.typing import ArrayLike

from privtail.algorithms.result import Result, require_no_start
from privtail.default.acceptance import Accept, Improvement, LimitExtrapolation
from privtail.default.allocation import BudgetFraction
from privtail.default.amounts import StartAtMeanAmount
from privtail.default.columns import SummarizeColumns
from privtail.default.finish import result_of
from privtail.default.fit import Fit, Stage, planned, run_stages
from privtail.default.intercept import (
    FitIntercept,
    MatchMean,
    MatchQuantile,
    MeanDerivative,
    StartAtInterceptOnly,
)
from privtail.default.labels import AcceptLabels, CountLabels, MatchFrequencies
from privtail.default.screening import SelectFeatures, detectable_features
from privtail.default.steps import Descend, DropRare, MeasureResiduals, Precondition, ShrinkSlopes
from privtail.default.tuning import Tuning
from privtail.domains import Domain, require
from privtail.errors import IncompatibleParts, InvalidInput
from privtail.losses import AMOUNTS, LABELS, AmountLoss, AnyLoss, Loss, Targets, require_margin
from privtail.summaries.column_summaries import ColumnSummaries
from privtail.trusted.budget import Neighbours
from privtail.trusted.curator import Curator
from privtail.trusted.events import Plan
from privtail.trusted.problem import Problem

Stages = tuple[Stage, ...]
Regime = Literal["all features", "few features", "intercept only"]


class Weighted(NamedTuple):
    """A stage and its budget weight.

    The stage gets its weight over the sum of all weights as a fraction of the budget, and ``build``
    makes the stage from that fraction. A stage without releases has the weight 0.
    """

    weight: float
    build: Callable[[BudgetFraction], Stage]


def build_stages(weighted: Iterable[Weighted], budget: BudgetFraction) -> Stages:
    """The stages, in order, with the budget divided among them."""
    weighted = tuple(weighted)
    fractions = budget.split([entry.weight for entry in weighted])
    return tuple(entry.build(part) for entry, part in zip(weighted, fractions, strict=True))


@dataclass(frozen=True, kw_only=True)
class ScaledDescent:
    """A private linear model that needs no bounds on the data. From no paper.

    Estimators set its parameters for ``algorithm="auto"``. An object of your own needs them all:
    ``squares=True`` for least squares, and ``targets`` and ``labels`` for labels. A descent with
    clipped, preconditioned gradients of standardized features begins at the intercept-only model.
    An acceptance test then keeps its slopes or sets them to zero.

    There are three regimes. "few features": features are selected first, where the noise of a
    gradient would hide every slope. "intercept only": no slopes are fitted, where the budget is too
    small for the scale of the target (never for counts and amounts). "all features": otherwise.

    Parameters
    ----------
    targets : what the target holds: ``Loss.targets``.
    squares : whether the loss is the squared one.
    quantile : whether the loss is that of a quantile, such as the median.
    sparsity : the largest number of features to use; None for all.
    selects : whether features may be selected where the noise over all of them is large.
    labels : the number of declared labels; 2 if none are declared.
    weighted : whether the losses of labels have weights. `MatchFrequencies` is then left out.
    neighbours : the neighbour relation of the budget.
    tuning : all tuned numbers.

    **Privacy.** Gaussian releases of histograms of l2 sensitivity sqrt(2 d) (features; sqrt 2 where
    each record votes for one of them) and sqrt 2 (target, labels, residuals), of counts of k
    indicators (sqrt(2 k)), of second moments of rows of length R (sqrt 2 R^2 / n), of gradients
    (2 threshold R / n), and of means of few numbers. Their composition is exact (Gaussian DP). A
    selection is one noisy top-k, composed by its bounded range. All else is post-processing.

    **Utility.** None proved; measured in ``benchmarks/accuracy.py``.
    """

    targets: Targets = "real"
    squares: bool = False
    quantile: bool = False
    sparsity: int | None = None
    selects: bool = True
    labels: int = 2
    weighted: bool = False
    neighbours: Neighbours = "replace_one"
    tuning: Tuning = Tuning()

    needs: ClassVar[tuple[str, ...]] = ("prox", "scaled")
    in_typical_rows: ClassVar[bool] = True

    def __post_init__(self) -> None:
        if self.targets not in (kinds := get_args(Targets)):
            raise InvalidInput(f"targets={self.targets!r}: give one of {', '.join(kinds)}.")

    def plan(self, multiplier: float, problem: Problem) -> Plan:
        """All releases, from public numbers. `BudgetFraction` defines ``multiplier``."""
        _, stages = self.choose_stages(multiplier, problem)
        return planned(stages, problem)

    def takes(self, loss: AnyLoss, problem: Problem) -> Loss:
        """The ``loss``, if it is one of a margin; for counts and amounts, Poisson or Tweedie.

        Raises
        ------
        IncompatibleParts
            For another loss, or one of labels if ``targets`` are none, and the reverse.
        """
        if (self.targets in LABELS) != (loss.targets in LABELS):
            mend = f"Pass targets={loss.targets!r}, and labels=K if there are K labels."
            raise IncompatibleParts(f"targets={self.targets!r} are not those of the loss. {mend}")
        if self.targets in AMOUNTS and not isinstance(loss, AmountLoss):
            raise IncompatibleParts(
                "ScaledDescent fits counts and amounts by PoissonLoss and TweedieLoss alone."
            )
        return require_margin(loss, needed_by="ScaledDescent")

    def run(
        self, curator: Curator, loss: AnyLoss, domain: Domain, multiplier: float,
        start: ArrayLike | None = None,
    ) -> Result:  # fmt: skip
        """Run all stages. The model of the result has the units of the raw features.

        Raises
        ------
        InvalidInput
            If ``start`` is given: the fit begins at the intercept-only model.
        """
        require(domain, *self.needs, needed_by="ScaledDescent")
        require_no_start(start)
        problem = curator.problem
        fit = Fit(curator, self.takes(loss, problem), domain, self.tuning)
        regime, stages = self.choose_stages(multiplier, problem)
        run_stages(stages, fit)
        return result_of(fit, regime, multiplier)

    def choose_stages(self, multiplier: float, problem: Problem) -> tuple[Regime, Stages]:
        """The regime of a fit and its stages in order, chosen by public numbers alone."""
        budget = BudgetFraction(multiplier, neighbours=self.neighbours)
        regime: Regime = "all features"
        stages = build_stages(self._slope_stages(problem, few=False), budget)
        if self._selects_features(stages, problem):
            regime = "few features"
            stages = build_stages(self._slope_stages(problem, few=True), budget)
        if problem.intercept and not _finds_target(stages, problem):
            regime, stages = "intercept only", build_stages(self._intercept_only_stages(), budget)
        return regime, stages

    def _selects_features(self, stages: Stages, problem: Problem) -> bool:
        """Whether a stage selects features.

        It does if ``sparsity`` asks for it. Except for counts and amounts, it also does if there
        are many features and a gradient over all of them has a large relative noise.
        """
        if self.sparsity is not None:
            return self.sparsity < problem.d
        tuning = self.tuning
        if not self.selects or self.targets in AMOUNTS or problem.d < tuning.many_features:
            return False
        most = tuning.max_relative_noise
        most *= math.sqrt(self.labels / 2) if self.targets in LABELS else 1.0
        return any(
            stage.relative_noise(problem) > most for stage in stages if isinstance(stage, Descend)
        )

    def _slope_stages(self, problem: Problem, *, few: bool) -> Iterator[Weighted]:
        """All stages of a fit with slopes. With ``few``, one of them selects features.

        The selected features get summaries of their own, so each summary has half of the weight.
        """
        summaries = ColumnSummaries.of(self.targets, selecting=few)
        weight = self.tuning.column_summaries / (2 if few else 1)
        yield Weighted(weight, lambda part: SummarizeColumns(summaries, part.histogram_noise()))
        if self.targets in LABELS:
            yield from self._label_stages(problem, few=few)
        elif self.targets in AMOUNTS:
            yield from self._amount_stages(problem, few=few)
        else:
            yield from self._numeric_stages(problem, few=few)

    def _numeric_stages(self, problem: Problem, *, few: bool) -> Iterator[Weighted]:
        """The stages after the column summaries, for a numeric target."""
        if few:
            yield _selection_stage(self.tuning, problem, self.sparsity, numbers=True)
        if problem.intercept:
            yield Weighted(self.tuning.other, self._intercept_only_start)
        yield from _descent_stages(self.tuning, problem, labels=False)
        yield _gain_stage(self.tuning, LimitExtrapolation)
        if problem.intercept and self.squares:
            yield _intercept_stage(self.tuning, FitIntercept, "mean residual")
        if problem.intercept and self.quantile:
            moves = self.tuning.intercept_moves
            yield _intercept_stage(self.tuning, MatchQuantile, "quantile", moves)
        yield _gain_stage(self.tuning, Accept)

    def _amount_stages(self, problem: Problem, *, few: bool) -> Iterator[Weighted]:
        """The stages after the column summaries, for counts and amounts."""
        yield _amount_start(self.tuning, problem)
        if few:
            yield _selection_stage(self.tuning, problem, self.sparsity, numbers=False)
        yield from _descent_stages(self.tuning, problem, labels=False)
        if problem.intercept:
            yield _intercept_stage(self.tuning, MatchMean, "target mean")
        yield _gain_stage(self.tuning, Accept)

    def _label_stages(self, problem: Problem, *, few: bool) -> Iterator[Weighted]:
        """The stages after the column summaries, for labels."""
        yield Weighted(self.tuning.label_counts, lambda part: CountLabels(part.histogram_noise()))
        if few:
            yield _selection_stage(self.tuning, problem, self.sparsity, numbers=False)
        yield from _descent_stages(self.tuning, problem, labels=True)
        yield _gain_stage(self.tuning, AcceptLabels)
        if problem.intercept and not self.weighted:
            weight = self.tuning.other
            yield Weighted(weight, lambda part: MatchFrequencies(part.unit_interval_noise()))

    def _intercept_only_stages(self) -> Iterator[Weighted]:
        """The stages of a fit without slopes; half of the budget is for the scale of a number."""
        if self.targets in LABELS:
            yield Weighted(1.0, lambda part: CountLabels(part.histogram_noise()))
            return
        summaries = ColumnSummaries(target=True)
        yield Weighted(
            1.0, lambda part: SummarizeColumns(summaries, part.histogram_noise(), features=False)
        )
        yield Weighted(1.0, self._intercept_only_start)

    def _intercept_only_start(self, budget: BudgetFraction) -> StartAtInterceptOnly:
        """The stage that fits an intercept; a quantile takes several mean derivatives."""
        moves = self.tuning.intercept_moves if self.quantile else 1
        return StartAtInterceptOnly(MeanDerivative(budget.mean_noise(moves), moves))


def _finds_target(stages: Stages, problem: Problem) -> bool:
    """Whether the noise is small enough for the scale, or the label counts, of the target."""
    return all(
        stage.finds_target(problem)
        for stage in stages
        if isinstance(stage, SummarizeColumns | CountLabels)
    )


def _descent_stages(tuning: Tuning, problem: Problem, *, labels: bool) -> Iterator[Weighted]:
    """The stages that fit slopes. All gradients together have the weight 1."""
    row_fraction = tuning.label_row_fraction if labels else 1.0
    weight, first = tuning.other, math.ceil((tuning.steps - 1) / 5)

    def descend(steps: int) -> Weighted:
        return Weighted(
            steps / tuning.steps, lambda part: Descend(part.mean_noise(steps), steps, row_fraction)
        )

    if problem.indicators:
        yield Weighted(tuning.label_counts, lambda part: DropRare(part.histogram_noise()))
    if problem.rows <= tuning.max_moments:
        yield Weighted(weight, lambda part: Precondition(part.histogram_noise(), row_fraction))
    else:
        yield Weighted(0.0, lambda _: Precondition(None, row_fraction))
    if first:
        yield descend(first)
    yield Weighted(weight, lambda part: MeasureResiduals(part.histogram_noise()))
    yield descend(tuning.steps - first)
    yield Weighted(0.0, lambda _: ShrinkSlopes())


def _intercept_stage(
    tuning: Tuning, kind: type[FitIntercept | MatchMean | MatchQuantile], by: str, moves: int = 1
) -> Weighted:
    """A stage that moves the intercept by ``moves`` mean derivatives of equal budget."""
    name, weight = f"intercept by {by}", moves * tuning.other
    return Weighted(weight, lambda part: kind(MeanDerivative(part.mean_noise(moves), moves, name)))


def _gain_stage(tuning: Tuning, kind: type[LimitExtrapolation | Accept | AcceptLabels]) -> Weighted:
    """A stage that releases mean gains of equal budget."""
    gains = kind.releases
    return Weighted(gains * tuning.other, lambda part: kind(Improvement(part.mean_noise(gains))))


def _amount_start(tuning: Tuning, problem: Problem) -> Weighted:
    """A histogram of the amounts and, if there is an intercept, their mean at half its budget."""
    weights = [tuning.column_summaries, tuning.column_summaries / 2][: 1 + problem.intercept]
    moves = tuning.intercept_moves if problem.exposure else 1

    def stage(budget: BudgetFraction) -> StartAtMeanAmount:
        histogram, *rest = budget.split(weights)
        means = (MeanDerivative(part.mean_noise(moves), moves) for part in rest)
        return StartAtMeanAmount(histogram.histogram_noise(), *means)

    return Weighted(sum(weights), stage)


def _selection_stage(
    tuning: Tuning, problem: Problem, sparsity: int | None, *, numbers: bool
) -> Weighted:
    """Selection of features, for numbers after a median, then their own column summaries."""
    most, moves = sparsity or problem.d, tuning.intercept_moves
    weights = [tuning.screening, tuning.column_summaries / 2]
    if numbers and problem.intercept:
        weights.append(2 * tuning.other)

    def stage(budget: BudgetFraction) -> SelectFeatures:
        screening, own, *rest = budget.split(weights)
        noise = screening.mean_noise().multiplier
        picks = detectable_features(most, noise, tuning.score_to_noise, problem)
        median = (MeanDerivative(s.mean_noise(moves), moves, "median of the target") for s in rest)
        own_noise = own.histogram_noise()
        return SelectFeatures(picks, noise * math.sqrt(picks), own_noise, *median)

    return Weighted(sum(weights), stage)
