"""The default, ``algorithm="auto"``: which stages a fit has, and at what noise.

A fit is a tuple of stages. `ScaledDescent.chosen` makes it from public numbers: n, d, the kind of
the target and the noise that the budget pays for. `plan` lists the releases of the stages, and
`run` makes them.

To read the whole default, begin with `ScaledDescent.chosen` and the three lists below it: numbers,
amounts, labels. A line of a list holds the weight of a stage in the budget and the stage itself.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import ClassVar, Literal, NamedTuple, get_args

from numpy.typing import ArrayLike

from privtail.algorithms.result import Result, require_no_start
from privtail.default.acceptance import Accept, AcceptLabels, Improvement, LimitExtrapolation
from privtail.default.allocation import Share
from privtail.default.amounts import StartAtMeanAmount
from privtail.default.columns import SummarizeColumns
from privtail.default.finish import finished
from privtail.default.fit import Fit, Stage, planned, run_stages
from privtail.default.intercept import (
    FitIntercept,
    MatchFrequencies,
    MatchMean,
    MatchQuantile,
    MeanDerivative,
    StartAtConstant,
)
from privtail.default.labels import CountLabels
from privtail.default.screening import SelectFeatures, findable
from privtail.default.steps import Descend, MeasureResiduals, Precondition, ShrinkSlopes
from privtail.default.tuning import Tuning
from privtail.domains import Domain, require
from privtail.errors import IncompatibleParts, InvalidInput
from privtail.losses import AMOUNTS, LABELS, AmountLoss, AnyLoss, Loss, Targets, require_margin
from privtail.summaries.column_summaries import ColumnSummaries
from privtail.trusted.budget import Neighbours
from privtail.trusted.curator import Curator
from privtail.trusted.events import Plan
from privtail.trusted.problem import Problem

CONSTANT = "intercept-only model"
"""The name of the releases that find it."""

Regime = Literal["all features", "few features", "intercept only"]


class Line(NamedTuple):
    """A stage of a fit and its price.

    ``weight`` over the sum of all weights is the fraction of the budget that the stage gets, and
    ``stage`` makes the stage from that share. A stage without releases has the weight 0.
    """

    weight: float
    stage: Callable[[Share], Stage]


def made(lines: Iterable[Line], budget: Share) -> tuple[Stage, ...]:
    """The stages of these lines, in order, with the budget divided among them."""
    lines = tuple(lines)
    shares = budget.divided([line.weight for line in lines])
    return tuple(line.stage(share) for line, share in zip(lines, shares, strict=True))


@dataclass(frozen=True, kw_only=True)
class ScaledDescent:
    """A private linear model that needs to know nothing about the data. From no paper.

    The features are scaled by noisy histograms. A descent with preconditioned, clipped gradients
    begins at the intercept-only model. A test of the improvement keeps its slopes or sets them to
    zero.

    There are three regimes. Where the noise of a gradient over many features would hide every
    slope, few features are selected first. Where the budget does not even find the target, it goes
    to an intercept-only model (never for counts and amounts). Else all features are used.

    Parameters
    ----------
    targets : what the target holds, as of the loss.
    squares : whether the loss is that of squares.
    quantile : whether the loss is that of a quantile, such as the median.
    sparsity : how many features may be used; None for all.
    selects : whether few features may be selected where noise over all is large.
    labels : how many labels are declared; 2 where they are still to be discovered.
    weighted : whether the losses of labels have weights: frequencies are then not matched.
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
        """All releases, from public numbers; ``multiplier`` as in `Share`."""
        _, stages = self.chosen(multiplier, problem)
        return planned(stages, problem)

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
        require_no_start(start)
        problem = curator.problem
        fit = Fit(curator, self.takes(loss, problem), domain, self.tuning)
        regime, stages = self.chosen(multiplier, problem)
        run_stages(stages, fit)
        return finished(fit, regime, multiplier)

    # ---------------------------------------------------------------- the regime

    def chosen(self, multiplier: float, problem: Problem) -> tuple[Regime, tuple[Stage, ...]]:
        """The regime of a fit and its stages in order, decided by public numbers."""
        budget = Share(multiplier, neighbours=self.neighbours)
        regime: Regime = "all features"
        stages = made(self._lines(problem, few=False), budget)
        if self._selects_features(stages, problem):
            regime, stages = "few features", made(self._lines(problem, few=True), budget)
        if problem.intercept and not _finds_target(stages, problem):
            regime, stages = "intercept only", made(self._intercept_only(), budget)
        return regime, stages

    def _selects_features(self, stages: tuple[Stage, ...], problem: Problem) -> bool:
        """Whether few features are selected.

        They are if ``sparsity`` asks for it; except for counts and amounts also if features are
        many, and the noise of a gradient over all of them would hide every slope.
        """
        if self.sparsity is not None:
            return self.sparsity < problem.d
        tuning = self.tuning
        if not self.selects or self.targets in AMOUNTS or problem.d < tuning.many_features:
            return False
        most = tuning.crowded * (math.sqrt(self.labels / 2) if self.targets in LABELS else 1.0)
        return any(
            stage.relative_noise(problem) > most for stage in stages if isinstance(stage, Descend)
        )

    # ---------------------------------------------------------------- stages and their prices

    def _lines(self, problem: Problem, *, few: bool) -> Iterator[Line]:
        """All stages of a fit with slopes, in order; with ``few``, some features are selected."""
        tuning = self.tuning
        summaries = ColumnSummaries.of(self.targets, selecting=few)
        yield Line(
            tuning.column_summaries / (2 if few else 1),
            lambda share: SummarizeColumns(summaries, share.count_noise()),
        )
        if self.targets in LABELS:
            yield from self._labels(problem, few=few)
        elif self.targets in AMOUNTS:
            yield from self._amounts(problem, few=few)
        else:
            yield from self._numbers(problem, few=few)

    def _numbers(self, problem: Problem, *, few: bool) -> Iterator[Line]:
        """The stages of a numeric target, after the column summaries."""
        if few:
            yield _selection(self.tuning, problem, self.sparsity, numbers=True)
        if problem.intercept:
            yield Line(self.tuning.others, self._constant)
        yield from _descent(self.tuning, problem, labels=False)
        yield _gains(self.tuning, LimitExtrapolation)
        if problem.intercept and self.squares:
            yield _intercept(self.tuning, FitIntercept)
        if problem.intercept and self.quantile:
            yield _intercept(self.tuning, MatchQuantile, self.tuning.moves)
        yield _gains(self.tuning, Accept)

    def _amounts(self, problem: Problem, *, few: bool) -> Iterator[Line]:
        """The stages of counts and amounts, after the column summaries."""
        yield _mean_amount(self.tuning, problem)
        if few:
            yield _selection(self.tuning, problem, self.sparsity, numbers=False)
        yield from _descent(self.tuning, problem, labels=False)
        if problem.intercept:
            yield _intercept(self.tuning, MatchMean)
        yield _gains(self.tuning, Accept)

    def _labels(self, problem: Problem, *, few: bool) -> Iterator[Line]:
        """The stages of labels, after the column summaries."""
        yield Line(self.tuning.label_counts, lambda share: CountLabels(share.count_noise()))
        if few:
            yield _selection(self.tuning, problem, self.sparsity, numbers=False)
        yield from _descent(self.tuning, problem, labels=True)
        yield _gains(self.tuning, AcceptLabels)
        if problem.intercept and not self.weighted:
            yield Line(self.tuning.others, lambda share: MatchFrequencies(share.one_sided_noise()))

    def _intercept_only(self) -> Iterator[Line]:
        """The stages of a fit without slopes: one half of the budget for the scale of a number."""
        if self.targets in LABELS:
            yield Line(1.0, lambda share: CountLabels(share.count_noise()))
            return
        summaries = ColumnSummaries(target=True)
        yield Line(
            1.0, lambda share: SummarizeColumns(summaries, share.count_noise(), features=False)
        )
        yield Line(1.0, self._constant)

    def _constant(self, share: Share) -> StartAtConstant:
        """A few moves lead to a quantile, and one to another constant."""
        moves = self.tuning.moves if self.quantile else 1
        return StartAtConstant(MeanDerivative(share.mean_noise(moves), moves, CONSTANT))


def _finds_target(stages: tuple[Stage, ...], problem: Problem) -> bool:
    """Whether the noise of these stages lets them find the intercept-only model."""
    return all(
        stage.finds_target(problem)
        for stage in stages
        if isinstance(stage, SummarizeColumns | CountLabels)
    )


def _descent(tuning: Tuning, problem: Problem, *, labels: bool) -> Iterator[Line]:
    """From the intercept-only model to slopes; all gradients together have the weight 1."""
    row_part = tuning.label_row_length if labels else 1.0
    first = math.ceil((tuning.steps - 1) / 5)

    def descend(steps: int) -> Line:
        return Line(
            steps / tuning.steps, lambda share: Descend(share.mean_noise(steps), steps, row_part)
        )

    if problem.rows <= tuning.most_moments:
        yield Line(tuning.others, lambda share: Precondition(share.count_noise(), row_part))
    else:
        yield Line(0.0, lambda _: Precondition(None, row_part))
    if first:
        yield descend(first)
    yield Line(tuning.others, lambda share: MeasureResiduals(share.count_noise()))
    yield descend(tuning.steps - first)
    yield Line(0.0, lambda _: ShrinkSlopes())


def _intercept(
    tuning: Tuning, kind: type[FitIntercept | MatchMean | MatchQuantile], moves: int = 1
) -> Line:
    """A stage that moves the intercept by so many mean derivatives, and pays for each alike."""
    return Line(
        moves * tuning.others, lambda share: kind(MeanDerivative(share.mean_noise(moves), moves))
    )


def _gains(tuning: Tuning, kind: type[LimitExtrapolation | Accept | AcceptLabels]) -> Line:
    """A stage that releases mean gains, and pays for each alike."""
    gains = kind.releases
    return Line(gains * tuning.others, lambda share: kind(Improvement(share.mean_noise(gains))))


def _mean_amount(tuning: Tuning, problem: Problem) -> Line:
    """A histogram of the amounts; beside an intercept, for half of its price, their mean."""
    weights = [tuning.column_summaries, tuning.column_summaries / 2][: 1 + problem.intercept]
    moves = tuning.moves if problem.exposure else 1

    def stage(share: Share) -> StartAtMeanAmount:
        histogram, *rest = share.divided(weights)
        means = (MeanDerivative(part.mean_noise(moves), moves, CONSTANT) for part in rest)
        return StartAtMeanAmount(histogram.count_noise(), *means)

    return Line(sum(weights), stage)


def _selection(tuning: Tuning, problem: Problem, sparsity: int | None, *, numbers: bool) -> Line:
    """The median of a numeric target with an intercept, a noisy top-k, summaries of the picks."""
    most, moves = sparsity or problem.d, tuning.moves
    weights = [tuning.screening, tuning.column_summaries / 2]
    if numbers and problem.intercept:
        weights.append(2 * tuning.others)

    def stage(share: Share) -> SelectFeatures:
        screening, own, *rest = share.divided(weights)
        noise = screening.mean_noise().multiplier
        picks = findable(most, noise, tuning.clear, problem)
        median = (MeanDerivative(s.mean_noise(moves), moves, "median of the target") for s in rest)
        own_noise = own.count_noise()
        return SelectFeatures(picks, noise * math.sqrt(picks), own_noise, *median)

    return Line(sum(weights), stage)
