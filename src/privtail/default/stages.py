"""The stages of a fit: what each releases, and what it does with it."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import partial
from typing import Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import ndtri

from privtail.algorithms.result import Result
from privtail.default.acceptance import AcceptanceTest, Decision, Verdict, lead
from privtail.default.calibration import Calibration
from privtail.default.descent import Descent
from privtail.default.intercept import STEEPEST, Intercept, kinked
from privtail.default.intercept_only import clipped_at, settled
from privtail.default.label_counts import LabelCounts, of_labels, rarity, sharpest
from privtail.default.outliers import FAR, OutlierCheck
from privtail.default.preconditioner import Preconditioner
from privtail.default.residuals import ResidualHistogram
from privtail.default.screening import CutRange, Screening, of_chosen
from privtail.default.standardization import (
    Standardization,
    reported,
    tail_adjusted,
    unbelieved,
    unproven,
    without_slopes,
)
from privtail.domains import Domain
from privtail.losses import LABELS, HuberLoss, Loss, RelativeHuberLoss, WeightedLoss
from privtail.summaries.column_summaries import ColumnSummaries
from privtail.summaries.summary import BEYOND, Summary
from privtail.trusted.curator import Curator
from privtail.trusted.events import Plan, Round, compose
from privtail.trusted.means import MallowsMean
from privtail.trusted.mechanisms.noise import GaussianNoise
from privtail.trusted.problem import Problem

Doubles = NDArray[np.float64]

AGREEING = 2.0
"""Deviations of the noise by which a mean of predictions may differ from the released mean.

The noise is that of the mean, and of the means of the features among the second moments.
"""

MISSED = 8.0
"""Where a wide threshold shows so many times the squares of a usual one, noise may be larger."""


@dataclass
class Fit:
    """What a fit has released so far, and what follows from it; parameters are standardized.

    Attributes
    ----------
    curator, given, domain, start : what the fit was called with; ``given`` is the loss.
    loss : the loss in the units of the target.
    summary : of the columns.
    standard : the map from raw to standardized features and target.
    counted : the intercept-only model (rows, K) of labels, from their counts; None of others.
    constant : the intercept-only model (rows, K) with which the fit is compared.
    rarity : how often the rarest label occurs, in parts of how often it would if all did alike.
    rows : part of the n rows that counts, and the deviation of its noise; None if not known.
    preconditioner, descent, residuals : of the stages of these names.
    w : the model (rows, K).
    begin : the model from which the descent began.
    constant_noise : standard deviation of the noise in the mean of the target; 0 where none was
        released.
    threshold : at which residuals are clipped.
    noise : (d,) standard deviations of what noise adds to the slopes.
    widened : whether the last steps had the wider threshold.
    cuts : margins beyond which predictions are cut.
    kept_margins : part of the margins of labels that calibration kept.
    decision, harmful : of the acceptance test and of the outlier check.
    """

    curator: Curator
    given: Loss
    domain: Domain
    start: ArrayLike | None = None
    loss: Loss = field(init=False)
    summary: Summary = field(init=False)
    standard: Standardization = field(init=False)
    counted: Doubles | None = None
    constant: Doubles = field(init=False)
    rarity: float = 1.0
    rows: tuple[float, float] | None = None
    preconditioner: Preconditioner = field(init=False)
    descent: Descent = field(init=False)
    residuals: ResidualHistogram = field(init=False)
    w: Doubles = field(init=False)
    begin: Doubles = field(init=False)
    constant_noise: float = 0.0
    threshold: float = math.inf
    noise: Doubles = field(init=False)
    widened: bool = False
    cuts: tuple[float, float] = (-math.inf, math.inf)
    kept_margins: float = 1.0
    decision: Decision = Decision(Verdict.BETTER)
    harmful: bool = False

    def __post_init__(self) -> None:
        self.loss = self.given

    @property
    def problem(self) -> Problem:
        """Public sizes."""
        return self.curator.problem


class Stage(Protocol):
    """One step of a fit: what it will release, and the release."""

    def plan(self, problem: Problem) -> Plan:
        """All releases of the stage, from public numbers."""
        ...

    def run(self, fit: Fit) -> None:
        """Make the planned releases and put what follows from them into the fit."""
        ...


def planned(stages: Iterable[Stage], problem: Problem) -> Plan:
    """The releases of these stages, in their order."""
    return tuple(r for r in compose(*(stage.plan(problem) for stage in stages)) if r.times)


@dataclass(frozen=True)
class SummarizeColumns:
    """Location and scale of every column, and of a numeric target (`ColumnSummaries`)."""

    summaries: ColumnSummaries
    multiplier: float

    def plan(self, problem: Problem) -> Plan:
        return self.summaries.plan(self.multiplier, problem)

    def run(self, fit: Fit) -> None:
        fit.summary = self.summaries.run(fit.curator, self.multiplier)


@dataclass(frozen=True)
class CountLabels:
    """How often each label occurs: the intercept-only model of labels (`LabelCounts`)."""

    counts: LabelCounts

    def plan(self, problem: Problem) -> Plan:
        return self.counts.plan(problem)

    def run(self, fit: Fit) -> None:
        counts, fit.rows = self.counts.run(fit.curator)
        fit.counted, fit.rarity = of_labels(counts, fit.loss, fit.problem), rarity(counts)


@dataclass(frozen=True)
class SelectFeatures:
    """The features that go with the target (`Screening`); the others are not used from now on.

    ``cut_range`` says where features are cut that share one scale.
    """

    screening: Screening
    cut_range: CutRange | None

    def plan(self, problem: Problem) -> Plan:
        first = self.cut_range.plan(problem) if self.cut_range else ()
        return compose(first, self.screening.plan(problem))

    def run(self, fit: Fit) -> None:
        curator, cuts = fit.curator, self.cut_range
        reach = cuts.run(curator, fit.loss, fit.summary) if cuts else 0.0
        summary, chosen = self.screening.run(
            curator, fit.loss, fit.summary, fit.counted, reach=reach
        )
        fit.summary = of_chosen(summary, chosen, fit.problem.d)


@dataclass(frozen=True)
class Standardize:
    """Centre and scale what was released of the columns. Releases nothing.

    Beside a numeric target, features of heavier tails count in larger units (`tail_adjusted`).
    """

    def plan(self, problem: Problem) -> Plan:
        return ()

    def run(self, fit: Fit) -> None:
        numeric = fit.given.targets == "real"
        summary = tail_adjusted(fit.summary) if numeric else fit.summary
        fit.standard = Standardization.of(summary, fit.curator)
        fit.loss = fit.standard.loss(fit.given)


@dataclass(frozen=True)
class StartAtConstant:
    """The intercept-only model, from which the descent begins.

    Of numbers it is the mean of the target, or what else is the best constant (`settled`), for
    which ``intercept`` pays; of labels it is known already.
    """

    intercept: Intercept | None

    def plan(self, problem: Problem) -> Plan:
        return self.intercept.plan(problem) if self.intercept else ()

    def run(self, fit: Fit) -> None:
        standard, problem = fit.standard, fit.problem
        if fit.counted is not None:
            given = fit.start is not None
            fit.w = standard.start(problem, fit.start) if given else fit.counted
            fit.begin = fit.counted
            return
        if self.intercept:
            fit.w = settled(fit.curator, fit.loss, standard, self.intercept, fit.start)
            deviation = self.intercept.deviation(problem)
            fit.constant_noise = deviation * clipped_at(fit.loss, standard, deviation)
        else:
            fit.w = standard.start(problem, fit.start)
        fit.begin = fit.w


@dataclass(frozen=True)
class Precondition:
    """Second moments of the features, the metric of the steps (`Preconditioner`).

    Indicators of which too few ones show are not used from now on. Steps shrink rows to the part
    ``short`` of their typical length.
    """

    noise: GaussianNoise
    short: float

    def plan(self, problem: Problem) -> Plan:
        return Preconditioner.plan(self.noise, problem)

    def run(self, fit: Fit) -> None:
        intercept = np.ones(int(fit.problem.intercept), dtype=np.bool_)
        active = np.append(fit.standard.scales < BEYOND, intercept)
        active = active if active.any() else ~active
        metric = Preconditioner.bought(fit.curator, self.noise, active, self.short)
        fit.standard, fit.preconditioner = fit.standard.without_rare(metric, fit.curator)


@dataclass(frozen=True)
class FirstSteps:
    """Steps with the threshold that residuals would have if features explained nothing.

    Parameters
    ----------
    law : the noise of every gradient.
    steps : how many.
    most_noise : noise alone walks at most so many scales of the target; of labels, as many margins,
        or times the margin by which the most frequent one leads.
    clipped : part of the records whose residuals are clipped.
    """

    law: GaussianNoise
    steps: int
    most_noise: float
    clipped: float

    def plan(self, problem: Problem) -> Plan:
        return _steps(self.law, self.steps, problem)

    def run(self, fit: Fit) -> None:
        d, unit, labels = fit.problem.d, fit.standard.unit, fit.given.targets in LABELS
        leads = max(1.0, lead(fit.begin[d:])) if labels else 1.0
        fit.descent = Descent(
            fit.curator, fit.loss, fit.domain.scaled(1 / fit.standard.scales), fit.preconditioner,
            self.law, unit, self.most_noise * leads,
        )  # fmt: skip
        fit.threshold = self._threshold(fit)
        fit.w = fit.descent.run(fit.w, fit.threshold, self.steps)

    def _threshold(self, fit: Fit) -> float:
        """For Gaussian residuals of the target's scale; for labels that of the constant."""
        loss = fit.loss
        most, labels = loss.lipschitz, fit.given.targets in LABELS
        if labels:
            most = min(most, sharpest(loss, fit.begin[fit.problem.d :])[0])
        bend = loss.curvature if 0 < loss.curvature < STEEPEST else math.inf
        if loss.lipschitz < math.inf and (bend == math.inf or labels):
            return most
        usual = fit.standard.unit * float(ndtri(1 - self.clipped / 2))
        return min(most, usual * (bend if bend < math.inf else 1.0))


@dataclass(frozen=True)
class MeasureResiduals:
    """Sizes of the residuals (`ResidualHistogram`): a quantile becomes the threshold.

    The part ``clipped`` of the records lies above it; less with a rare label. The threshold of
    counts is at least that at which noise adds what clipping misses. A Huber loss of no given unit
    gets its threshold.

    Parameters
    ----------
    noise : of a cell.
    clipped : part of the records whose residuals are clipped.
    left : steps that follow.
    """

    noise: GaussianNoise
    clipped: float
    left: int

    def plan(self, problem: Problem) -> Plan:
        return ResidualHistogram.plan(self.noise, problem)

    def run(self, fit: Fit) -> None:
        residuals = ResidualHistogram.bought(fit.curator, self.noise, fit.loss, fit.w)
        fit.residuals = residuals
        if isinstance(fit.given, RelativeHuberLoss):
            edge = min(fit.loss.lipschitz, residuals.proposed(fit.given.threshold))
            fit.loss = fit.descent.loss = HuberLoss(threshold=edge)
        most = fit.loss.lipschitz
        fit.threshold = min(fit.threshold, most, self._quantile(fit, residuals))
        if fit.given.targets == "count":
            balanced = fit.descent.balanced(residuals, self.left)
            fit.threshold = min(most, max(fit.threshold, balanced))

    def _quantile(self, fit: Fit, residuals: ResidualHistogram) -> float:
        loss = fit.loss
        if kinked(loss):
            return loss.lipschitz  # a kink: how often either side occurs says nothing
        heaviest = max(loss.weights) if isinstance(loss, WeightedLoss) else 1.0
        return heaviest * residuals.quantile(1 - self.clipped * fit.rarity)


@dataclass(frozen=True)
class LastSteps:
    """Steps with the threshold of `MeasureResiduals`; then slopes shrink that are likely noise.

    For squares ``wide`` of them have a threshold that clips fewer residuals, unless noise is large
    (`Descent.widened`): least squares where residuals depend on features, else the robust fit.

    Parameters
    ----------
    law : the noise of every gradient.
    steps : how many, the wide ones with them.
    wide : how many of them have the wider threshold.
    wide_if_missed : whether they have it only where the usual threshold misses most of the squares
        of residuals, as of a target that is mostly zero.
    """

    law: GaussianNoise
    steps: int
    wide: int = 0
    wide_if_missed: bool = False

    def plan(self, problem: Problem) -> Plan:
        return _steps(self.law, self.steps, problem)

    def run(self, fit: Fit) -> None:
        descent, threshold = fit.descent, fit.threshold
        wide = self.wide
        if wide and self.wide_if_missed:
            missed = descent.missed(fit.residuals, threshold, wide)
            wide = wide if missed > MISSED else 0
        restrict = partial(fit.standard.restrict, fit.curator)
        fit.w = descent.thinned(fit.w, threshold, self.steps - wide, restrict)
        if wide:
            fit.w = descent.widened(fit.w, threshold, wide, fit.residuals)
        fit.widened, fit.noise = bool(wide), descent.noise


@dataclass(frozen=True)
class MoveIntercept:
    """The intercept of least squares: a mean of residuals of the rows that count.

    It is that of the constant, with what second moments say of the means of the features, and moves
    by a mean of the residuals, clipped where noise would be seen. It moves no farther than the
    noise of the released means explains (`AGREEING`). Large noise (``noisy``) hides large
    residuals, in which most of a mean may lie: then only the noise of the means of features counts,
    and a move counts as far as it is no noise.
    """

    intercept: Intercept
    noisy: bool

    def plan(self, problem: Problem) -> Plan:
        return self.intercept.plan(problem)

    def run(self, fit: Fit) -> None:
        problem, standard, part = fit.problem, fit.standard, fit.residuals.part
        d, w, begin = problem.d, fit.w, fit.begin
        centre = standard.start(problem, fit.start)[-1]
        begin = np.vstack([begin[:-1], centre + (begin[-1] - centre) / part])
        w = begin + fit.preconditioner.joint(w[:d] - begin[:d], len(w))
        widest = fit.residuals.widest(self.intercept.deviation(problem) / part, standard.unit)
        moved = self.intercept.run(
            fit.curator, fit.loss, w, widest, length=1 / part, doubt=float(self.noisy)
        )
        moment_noise = fit.preconditioner.std * float(np.linalg.norm(w[:d] - begin[:d]))
        doubt = (
            AGREEING * math.hypot(moment_noise, 0.0 if self.noisy else fit.constant_noise) / part
        )
        most = doubt if fit.constant_noise else math.inf
        fit.begin, fit.w = begin, w + np.clip(moved - w, -most, most)


@dataclass(frozen=True)
class FixConstant:
    """The intercept-only model that the fit is compared with. Releases nothing.

    It is the one from which the descent began if its intercept was ``known``, or given, or the
    target was not found; else the intercept is that of the model.
    """

    known: bool

    def plan(self, problem: Problem) -> Plan:
        return ()

    def run(self, fit: Fit) -> None:
        known = self.known or fit.start is not None or not fit.standard.seen
        fit.constant = without_slopes(fit.begin if known else fit.w, fit.problem)


@dataclass(frozen=True)
class Calibrate:
    """As sure of labels as the model is right (`Calibration`)."""

    calibration: Calibration

    def plan(self, problem: Problem) -> Plan:
        return self.calibration.plan(problem)

    def run(self, fit: Fit) -> None:
        calibrated = self.calibration.run(fit.curator, fit.loss, fit.w, fit.constant)
        fit.kept_margins, fit.cuts = calibrated.part, calibrated.ends
        fit.noise = unbelieved(fit.w, calibrated.part, fit.noise)
        fit.w = calibrated.w


@dataclass(frozen=True)
class Accept:
    """Whether the mean loss gains from the slopes (`AcceptanceTest`)."""

    test: AcceptanceTest
    multiplier: float

    def plan(self, problem: Problem) -> Plan:
        return self.test.plan(self.multiplier, problem)

    def run(self, fit: Fit) -> None:
        unit = fit.standard.deviation if fit.widened else fit.standard.unit
        size = math.sqrt(fit.residuals.mean_square()) if fit.widened else 0.0
        fit.decision = self.test.run(
            fit.curator, fit.loss, fit.w, fit.constant, unit, self.multiplier, size, fit.cuts,
            fit.kept_margins,
        )  # fmt: skip


@dataclass(frozen=True)
class CheckOutliers:
    """Whether some numbers are missed by far, and not with a constant (`OutlierCheck`)."""

    check: OutlierCheck
    multiplier: float

    def plan(self, problem: Problem) -> Plan:
        return self.check.plan(self.multiplier, problem)

    def run(self, fit: Fit) -> None:
        standard = fit.standard
        unit = standard.deviation if fit.widened else standard.unit
        far = max(unit, standard.deviation, standard.tail / FAR)
        fit.harmful = self.check.run(fit.curator, fit.w, fit.constant, far, self.multiplier)


def finished(fit: Fit, steps: int, multiplier: float, *, selected: bool) -> Result:
    """The model, or the intercept-only model where there are reasons against its slopes.

    Of a target whose scale was not found, the intercept is that on which the steps closed in.
    """
    standard, problem, w, constant = fit.standard, fit.problem, fit.w, fit.constant
    reasons = standard.doubts(fit.decision.verdict.keeps, fit.harmful)
    if standard.seen and not (standard.resolved or standard.blank):
        constant = without_slopes(w, problem)
    stated = standard.stated(fit.noise, selected=selected)
    return Result(
        standard.raw(constant if reasons else w, problem), steps, multiplier,
        unit=standard.unit, scales=standard.scales, margin_range=fit.cuts,
        noise=np.zeros(problem.d) if reasons else stated,
        notes=reasons or unproven(fit.decision.verdict, fit.kept_margins),
        rows=fit.rows or (fit.residuals.part, fit.residuals.deviation),
        threshold=fit.loss.threshold if isinstance(fit.loss, HuberLoss) else None,
        ranges=fit.summary.ranges(),
        report=reported(
            "descent", fit.summary, standard, fit.given.targets, reasons, fit.decision.gains,
            clipping_threshold=fit.threshold,
            row_length=fit.preconditioner.short * fit.preconditioner.reach,
            wide_threshold_used=fit.widened,
            outliers_found=fit.harmful,
            margins_kept=fit.kept_margins,
        ),
    )  # fmt: skip


def _steps(law: GaussianNoise, steps: int, problem: Problem) -> Plan:
    """So many gradients."""
    event = law.event(problem.gradient(MallowsMean(1.0, 1.0)))
    return (Round(stage="descent", events=(event,), times=steps),)
