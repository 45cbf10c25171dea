"""The stages of a fit in order, with their budget weights: for numbers, amounts and labels."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import NamedTuple

from privtail.default.acceptance import Accept, Improvement, LimitExtrapolation
from privtail.default.allocation import BudgetFraction
from privtail.default.amounts import StartAtMeanAmount
from privtail.default.columns import SummarizeColumns
from privtail.default.fit import Stage
from privtail.default.intercept import (
    FitIntercept,
    InterceptStage,
    MatchMean,
    MatchQuantile,
    MeanDerivative,
    StartAtInterceptOnly,
)
from privtail.default.labels import AcceptLabels, CountLabels, MatchFrequencies
from privtail.default.screening import SelectFeatures, detectable_features
from privtail.default.steps import (
    Descend,
    DropRare,
    MeasureResiduals,
    MeasureSpread,
    Precondition,
    ShrinkSlopes,
)
from privtail.default.tuning import Tuning
from privtail.losses import AMOUNTS, LABELS, Targets
from privtail.summaries.column_summaries import ColumnSummaries
from privtail.summaries.indicator_counts import IndicatorCounts
from privtail.trusted.problem import Problem

Stages = tuple[Stage, ...]


class Weighted(NamedTuple):
    """A stage and its budget weight.

    A stage gets a fraction of the budget: its weight over the sum of all weights. ``build`` makes
    the stage from that fraction. A stage without releases has the weight 0.
    """

    weight: float
    build: Callable[[BudgetFraction], Stage]


def build_stages(weighted: Iterable[Weighted], budget: BudgetFraction) -> Stages:
    """The stages, in order, with the budget divided among them."""
    weighted = tuple(weighted)
    fractions = budget.split([entry.weight for entry in weighted])
    return tuple(entry.build(part) for entry, part in zip(weighted, fractions, strict=True))


@dataclass(frozen=True, kw_only=True)
class ModelStages:
    """The stages that fit a model: the base of `ScaledDescent`, which describes the parameters."""

    targets: Targets = "real"
    squares: bool = False
    quantile: bool = False
    sparsity: int | None = None
    selects: bool = True
    labels: int = 2
    weighted: bool = False
    heteroscedastic: bool = False
    tuning: Tuning = Tuning()

    def slope_stages(self, problem: Problem, *, few: bool) -> Iterator[Weighted]:
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

    def intercept_only_stages(self) -> Iterator[Weighted]:
        """The stages of a fit without slopes; for numbers, half of the budget finds the scale."""
        if self.targets in LABELS:
            yield self._label_counts(1.0)
            return
        summaries = ColumnSummaries(target=True)
        yield Weighted(
            1.0, lambda part: SummarizeColumns(summaries, part.histogram_noise(), features=False)
        )
        yield self._intercept_only_start(1.0)

    def _numeric_stages(self, problem: Problem, *, few: bool) -> Iterator[Weighted]:
        """The stages after the column summaries, for a numeric target."""
        if few:
            yield self._selection(problem)
        if problem.intercept:
            yield self._intercept_only_start(self.tuning.other)
        yield from self._descent(problem)
        if self.heteroscedastic and not few and problem.rows <= self.tuning.max_moments:
            yield Weighted(self.tuning.other, lambda part: MeasureSpread(part.histogram_noise()))
        yield self._gains(LimitExtrapolation)
        if problem.intercept and self.squares:
            yield self._intercept(FitIntercept, "mean residual")
        if problem.intercept and self.quantile:
            yield self._intercept(MatchQuantile, "quantile", self.tuning.intercept_moves)
        yield self._gains(Accept)

    def _amount_stages(self, problem: Problem, *, few: bool) -> Iterator[Weighted]:
        """The stages after the column summaries, for counts and amounts."""
        yield self._amount_start(problem)
        if few:
            yield self._selection(problem)
        yield from self._descent(problem)
        if problem.intercept:
            yield self._intercept(MatchMean, "target mean")
        yield self._gains(Accept)

    def _label_stages(self, problem: Problem, *, few: bool) -> Iterator[Weighted]:
        """The stages after the column summaries, for labels."""
        yield self._label_counts(self.tuning.label_counts)
        if few:
            yield self._selection(problem)
        yield from self._descent(problem)
        yield self._gains(AcceptLabels)
        if problem.intercept and not self.weighted:
            weight = self.tuning.other
            yield Weighted(weight, lambda part: MatchFrequencies(part.unit_interval_noise()))

    def _label_counts(self, weight: float) -> Weighted:
        """The stage that counts the labels."""
        return Weighted(weight, lambda part: CountLabels(part.histogram_noise()))

    def _intercept_only_start(self, weight: float) -> Weighted:
        """The stage that fits an intercept-only model; of a quantile, releases share the weight."""
        moves = self.tuning.intercept_moves if self.quantile else 1
        return Weighted(
            weight, lambda part: StartAtInterceptOnly(MeanDerivative(part.mean_noise(moves), moves))
        )

    def _amount_start(self, problem: Problem) -> Weighted:
        """A histogram of the amounts and, with an intercept, their mean for half its weight."""
        weight = self.tuning.column_summaries
        weights = [weight, weight / 2][: 1 + problem.intercept]
        moves = self.tuning.intercept_moves if problem.exposure else 1

        def stage(budget: BudgetFraction) -> StartAtMeanAmount:
            histogram, *rest = budget.split(weights)
            means = (MeanDerivative(part.mean_noise(moves), moves) for part in rest)
            return StartAtMeanAmount(histogram.histogram_noise(), *means)

        return Weighted(sum(weights), stage)

    def _selection(self, problem: Problem) -> Weighted:
        """For numbers, a median of the target. Then a selection, and summaries of its features."""
        tuning, most, moves = self.tuning, self.sparsity or problem.d, self.tuning.intercept_moves
        weights = [tuning.screening, tuning.column_summaries / 2]
        if self.targets == "real" and problem.intercept:
            weights.append(2 * tuning.other)

        def stage(budget: BudgetFraction) -> SelectFeatures:
            screening, own, *rest = budget.split(weights)
            noise = screening.mean_noise().multiplier
            picks = detectable_features(most, noise, tuning.score_to_noise, problem)
            median = (
                MeanDerivative(s.mean_noise(moves), moves, "median of the target") for s in rest
            )
            own_noise = own.histogram_noise()
            return SelectFeatures(picks, noise * math.sqrt(picks), own_noise, *median)

        return Weighted(sum(weights), stage)

    def _descent(self, problem: Problem) -> Iterator[Weighted]:
        """The stages that fit slopes. All gradients together have the weight 1."""
        tuning = self.tuning
        row_fraction = tuning.label_row_fraction if self.targets in LABELS else 1.0
        weight, first = tuning.other, math.ceil((tuning.steps - 1) / 5)

        def descend(steps: int) -> Weighted:
            return Weighted(
                steps / tuning.steps,
                lambda part: Descend(part.mean_noise(steps), steps, row_fraction),
            )

        if problem.indicators:
            yield Weighted(
                tuning.label_counts, lambda part: DropRare(IndicatorCounts(part.histogram_noise()))
            )
        if problem.rows <= tuning.max_moments:
            yield Weighted(weight, lambda part: Precondition(part.histogram_noise(), row_fraction))
        else:
            yield Weighted(0.0, lambda _: Precondition(None, row_fraction))
        if first:
            yield descend(first)
        yield Weighted(weight, lambda part: MeasureResiduals(part.histogram_noise()))
        yield descend(tuning.steps - first)
        yield Weighted(0.0, lambda _: ShrinkSlopes())

    def _intercept(self, kind: type[InterceptStage], by: str, moves: int = 1) -> Weighted:
        """A stage that moves the intercept by ``moves`` mean derivatives of equal budget."""
        name, weight = f"intercept by {by}", moves * self.tuning.other
        return Weighted(
            weight, lambda part: kind(MeanDerivative(part.mean_noise(moves), moves, name))
        )

    def _gains(self, kind: type[LimitExtrapolation | Accept | AcceptLabels]) -> Weighted:
        """A stage that releases mean gains, each with the same budget."""
        gains, weight = kind.releases, kind.releases * self.tuning.other
        return Weighted(weight, lambda part: kind(Improvement(part.mean_noise(gains))))
