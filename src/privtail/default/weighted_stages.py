"""The stages of a fit and their budget weights, as they stand in the lists of `ScaledDescent`."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple

from privtail.default.acceptance import Accept, Improvement, LimitExtrapolation
from privtail.default.allocation import BudgetFraction
from privtail.default.amounts import StartAtMeanAmount
from privtail.default.fit import Stage
from privtail.default.intercept import (
    FitIntercept,
    MatchMean,
    MatchQuantile,
    MeanDerivative,
    StartAtInterceptOnly,
)
from privtail.default.labels import AcceptLabels
from privtail.default.screening import SelectFeatures, detectable_features
from privtail.default.steps import Descend, DropRare, MeasureResiduals, Precondition, ShrinkSlopes
from privtail.default.tuning import Tuning
from privtail.trusted.problem import Problem

Stages = tuple[Stage, ...]


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


def intercept_only_start(tuning: Tuning, weight: float, *, quantile: bool) -> Weighted:
    """The stage that fits an intercept-only model; a quantile takes several mean derivatives."""
    moves = tuning.intercept_moves if quantile else 1
    return Weighted(
        weight, lambda part: StartAtInterceptOnly(MeanDerivative(part.mean_noise(moves), moves))
    )


def descent_stages(tuning: Tuning, problem: Problem, *, labels: bool) -> Iterator[Weighted]:
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


def intercept_stage(
    tuning: Tuning, kind: type[FitIntercept | MatchMean | MatchQuantile], by: str, moves: int = 1
) -> Weighted:
    """A stage that moves the intercept by ``moves`` mean derivatives of equal budget."""
    name, weight = f"intercept by {by}", moves * tuning.other
    return Weighted(weight, lambda part: kind(MeanDerivative(part.mean_noise(moves), moves, name)))


def gain_stage(tuning: Tuning, kind: type[LimitExtrapolation | Accept | AcceptLabels]) -> Weighted:
    """A stage that releases mean gains of equal budget."""
    gains = kind.releases
    return Weighted(gains * tuning.other, lambda part: kind(Improvement(part.mean_noise(gains))))


def amount_start(tuning: Tuning, problem: Problem) -> Weighted:
    """A histogram of the amounts and, if there is an intercept, their mean at half its budget."""
    weights = [tuning.column_summaries, tuning.column_summaries / 2][: 1 + problem.intercept]
    moves = tuning.intercept_moves if problem.exposure else 1

    def stage(budget: BudgetFraction) -> StartAtMeanAmount:
        histogram, *rest = budget.split(weights)
        means = (MeanDerivative(part.mean_noise(moves), moves) for part in rest)
        return StartAtMeanAmount(histogram.histogram_noise(), *means)

    return Weighted(sum(weights), stage)


def selection_stage(
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
