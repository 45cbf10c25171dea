"""The default: a private descent in private units, in a private metric."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

from numpy.typing import ArrayLike

from privtail.algorithms.result import Result
from privtail.default.acceptance import ENOUGH, AcceptanceTest, no_finer
from privtail.default.calibration import Calibration
from privtail.default.intercept import Intercept
from privtail.default.intercept_only import MOVES, InterceptOnly
from privtail.default.label_counts import LabelCounts
from privtail.default.outliers import OutlierCheck
from privtail.default.preconditioner import SHORT
from privtail.default.screening import CutRange, Screening
from privtail.default.stages import (
    Accept,
    Calibrate,
    CheckOutliers,
    CountLabels,
    FirstSteps,
    Fit,
    FixConstant,
    LastSteps,
    MeasureResiduals,
    MoveIntercept,
    Precondition,
    SelectFeatures,
    Stage,
    Standardize,
    StartAtConstant,
    SummarizeColumns,
    finished,
    planned,
)
from privtail.domains import Domain, require
from privtail.losses import LABELS, AnyLoss, Loss, Targets, require_margin
from privtail.summaries.column_summaries import RARE, ColumnSummaries
from privtail.trusted.curator import Curator
from privtail.trusted.events import Plan
from privtail.trusted.mechanisms.noise import GaussianNoise
from privtail.trusted.problem import Problem

UNIT = 100
"""The descent costs what so many gradients of noise ``multiplier`` cost, however many it has."""

RAREST = 10_000
"""Sizes are counted with noise n over this, or more: few residuals may be most of their mean."""

MOST_CLIPPED = 0.65
"""However large the noise, a third of the records is not clipped."""

LARGEST_SHARE = 24.0
"""Column summaries, and label counts, cost at most so many times what the descent costs."""

CLEAR = 0.75
"""Column summaries cost this part of the usual share where it finds every feature."""

LARGEST_LEVEL = 8.0
"""The mean for the intercept-only model costs at most so many times what the descent costs."""

LARGEST_HARM = 0.05
"""The outlier check costs at most this part of what the descent costs."""

SHARP = 20
"""A mean of the target with noise n over this is good enough for a constant."""

MANY_ENOUGH = 10
"""With fewer features than these a comparison with a constant of numbers is dearer.

Slopes are found with so much noise that the usual one does not see their gain.
"""

UNCLAMPED = 4.0
"""Gains of counts are clamped late: their mean is bought at so many times the price."""


@dataclass(frozen=True, kw_only=True)
class ScaledDescent:
    """Full-batch proximal descent that needs to know nothing about the data.

    `stages` says what a fit releases, in which order and at what price; `plan` and `run` walk the
    same tuple. Where the largest budget fraction that a numeric target may take would not find it,
    there is an intercept-only model (`InterceptOnly`).

    Not from a paper. A step is a Newton step for a bound of the Hessian (Boehning and Lindsay
    1988) with the gradients of Mallows (1975): residuals clipped at the threshold, rows shrunk to
    their typical length, of labels to half of it (with budget to spare, to a longer one). Skewed
    noise moves their intercept alone, which `MoveIntercept` mends. The later two thirds of the
    iterates of a stage are averaged; of a loss with a kink the last tenth, after steps that shrink
    to nothing.

    Parameters
    ----------
    steps : gradient releases.
    level : which quantile of the residuals' sizes becomes the threshold, in (0, 1).
    most_noise : as in `FirstSteps`.
    targets : of the loss. A real target is centred and scaled too; labels are counted for the
        intercept-only model; counts begin where ``start`` says (`CountDescent`).
    squares : whether the loss is that of squares.
    sparsity : how many features may be used; None for all.
    scale_share, selection_share, reach_share, moment_share, size_share, level_share,
    comparison_share, confidence_share, harm_share : budget fractions, in parts of the variance
        budget of all gradients together: column summaries (all rounds), screening, its cut range,
        preconditioner, residual histogram, an intercept, acceptance test (each gain; of numbers
        more, with fewer features than `MANY_ENOUGH`), calibration, outlier check. They take less
        where less is enough; the outlier check, the label counts and the target more where not.

    **Privacy.** Gaussian releases: histograms of l2 sensitivity sqrt(2 d) (features) and sqrt 2
    (target or labels, residuals), second moments of rows of length R, sqrt 2 R^2/n; ``steps``
    gradients of 2 threshold R'/n; means of one number. With ``sparsity`` one noisy top-k, composed
    with these by its bounded range; else exact Gaussian composition. Everything else is
    post-processing.

    **Utility.** None proved; measured in ``benchmarks/accuracy.py``.
    """

    steps: int = 25
    level: float = 0.8
    most_noise: float = 1.0
    targets: Targets = "real"
    squares: bool = False
    sparsity: int | None = None
    scale_share: float = 0.6
    selection_share: float = 1.0
    reach_share: float = 0.02
    moment_share: float = 0.1
    size_share: float = 0.05
    level_share: float = 0.05
    comparison_share: float = 0.05
    confidence_share: float = 0.02
    harm_share: float = 0.02

    needs: ClassVar[tuple[str, ...]] = ("prox", "scaled")
    in_typical_rows: ClassVar[bool] = True

    def stages(self, multiplier: float, problem: Problem) -> tuple[Stage, ...]:
        """All stages of a fit, in order, computed from public numbers (n, d, the noise)."""
        law, clipped = self._price(1 / self.steps, multiplier), self._clipped(multiplier, problem)
        price, intercept = self._price(2 * self.moment_share, multiplier), self._intercept
        selects, labels, real = self.sparsity is not None, self._labels, self.targets == "real"
        least, first = self.squares and problem.intercept, self.steps // 5
        numbers = real and problem.intercept
        wide, if_missed = self._wide(multiplier, problem)
        stages: tuple[Stage | None, ...] = (
            SummarizeColumns(self._summaries, self._scales(multiplier, problem)),
            CountLabels(self._frequencies(multiplier, problem)) if labels else None,
            self._selection(multiplier, problem) if selects else None,
            Standardize(),
            StartAtConstant(self._level(multiplier, problem) if numbers else None),
            Precondition(price, SHORT if labels else 1.0),
            FirstSteps(law, first, self.most_noise, clipped),
            MeasureResiduals(self._sizes(multiplier, problem), clipped, self.steps - first),
            LastSteps(law, self.steps - first, wide, if_missed),
            MoveIntercept(intercept(multiplier), self._noisy(multiplier, problem))
            if least
            else None,
            FixConstant(known=numbers or labels),
            Calibrate(self._calibration(multiplier)) if labels else None,
            Accept(AcceptanceTest(targets=self.targets), self._comparison(multiplier, problem)),
            CheckOutliers(OutlierCheck(), self._harm(multiplier, problem)) if real else None,
        )
        return tuple(stage for stage in stages if stage)

    def plan(self, multiplier: float, problem: Problem) -> Plan:
        """The releases of the stages."""
        if self._alone(multiplier, problem):
            return self._constant.plan(self._whole(multiplier, problem), problem)
        return planned(self.stages(multiplier, problem), problem)

    def takes(self, loss: AnyLoss, problem: Problem) -> Loss:
        """A loss of a margin."""
        return require_margin(loss, needed_by="ScaledDescent")

    def run(
        self, curator: Curator, loss: AnyLoss, domain: Domain, multiplier: float,
        start: ArrayLike | None = None,
    ) -> Result:  # fmt: skip
        """The stages, one after the other; parameters in the units of the raw features."""
        problem = curator.problem
        loss = self.takes(loss, problem)
        require(domain, *self.needs, needed_by="ScaledDescent")
        if self._alone(multiplier, problem):
            return self._constant.run(curator, loss, self._whole(multiplier, problem), start)
        fit = Fit(curator, loss, domain, start)
        for stage in self.stages(multiplier, problem):
            stage.run(fit)
        return finished(fit, self.steps, multiplier, selected=self.sparsity is not None)

    # ---------------------------------------------------------------- what the stages spend

    def _price(self, share: float, multiplier: float) -> GaussianNoise:
        """Noise of one release that costs ``share`` of what the descent costs."""
        return GaussianNoise(multiplier / math.sqrt(UNIT * share))

    def _scales(self, multiplier: float, problem: Problem) -> float:
        """Noise of the column summaries: the usual share, less where that finds all.

        And more for the target.
        """
        clear, usual, least = (
            self._price(2 * share, multiplier).multiplier
            for share in (CLEAR * self.scale_share, self.scale_share, LARGEST_SHARE)
        )
        enough = max(usual, min(clear, self._summaries.enough_for_features(0.0, problem)))
        return max(least, min(enough, self._summaries.enough_for_target(problem)))

    def _alone(self, multiplier: float, problem: Problem) -> bool:
        """Whether the largest share that a target may take would not show it sharply."""
        least = self._price(2 * LARGEST_SHARE, multiplier).multiplier
        return self._numbers(problem) and least > self._summaries.enough_for_target(problem)

    def _whole(self, multiplier: float, problem: Problem) -> float:
        """Noise of one release that costs what the plan does with its first shares largest."""
        descent = 1 + self.moment_share + self.size_share + self.level_share
        last = 2 * self._gain_share(problem) + LARGEST_HARM
        share = LARGEST_SHARE + LARGEST_LEVEL + descent + last
        return self._price(share, multiplier).multiplier

    @property
    def _constant(self) -> InterceptOnly:
        return InterceptOnly(squares=self.squares)

    def _level(self, multiplier: float, problem: Problem) -> Intercept:
        """Of the constant: the usual share, or more where that would not do."""
        shares = self.level_share, LARGEST_LEVEL
        noise = self._sharp_enough(shares, SHARP, multiplier, problem)
        times = 1 if self.squares else MOVES
        return Intercept(GaussianNoise(noise * math.sqrt(times)), times)

    def _intercept(self, multiplier: float) -> Intercept:
        """Of the residuals."""
        return Intercept(self._price(self.level_share, multiplier))

    def _sizes(self, multiplier: float, problem: Problem) -> GaussianNoise:
        return no_finer(self._price(2 * self.size_share, multiplier).multiplier, problem, RAREST)

    def _comparison(self, multiplier: float, problem: Problem) -> float:
        return self._price(self._gain_share(problem), multiplier).multiplier

    def _calibration(self, multiplier: float) -> Calibration:
        price = self._price(2 * self.confidence_share, multiplier)
        return Calibration(price, self._intercept(multiplier), self.targets)

    def _harm(self, multiplier: float, problem: Problem) -> float:
        """Noise of the outlier check: the usual share, or more where that is blunt."""
        return self._sharp_enough((self.harm_share, LARGEST_HARM), ENOUGH, multiplier, problem)

    def _sharp_enough(
        self, shares: tuple[float, float], sharp: float, multiplier: float, problem: Problem
    ) -> float:
        """Noise n over ``sharp``, between what a usual and a largest of these ``shares`` buy."""
        usual, least = (self._price(share, multiplier).multiplier for share in shares)
        return max(least, min(usual, problem.n / problem.max_rows / sharp))

    def _gain_share(self, problem: Problem) -> float:
        """Of each gain of the acceptance test."""
        if self.targets == "count":
            return self.comparison_share * UNCLAMPED
        used = min(problem.d, self.sparsity or problem.d)
        few = max(1.0, MANY_ENOUGH / used) if self.targets == "real" else 1.0
        return self.comparison_share * few

    def _wide(self, multiplier: float, problem: Problem) -> tuple[int, bool]:
        """How many steps have a wider threshold, and whether only if the usual one misses much."""
        if not self.squares or self._noisy(multiplier, problem, 2.0):
            return 0, False
        return 3 * self.steps // 10, self._noisy(multiplier, problem)

    def _noisy(self, multiplier: float, problem: Problem, times: float = 1.0) -> bool:
        """Whether more than ``times`` (1 - ``level``) of the residuals are clipped."""
        return self._clipped(multiplier, problem) > times * (1 - self.level)

    def _clipped(self, multiplier: float, problem: Problem) -> float:
        """Part of the records whose residuals are clipped: the noisier a gradient, the more."""
        coordinates = problem.rows * problem.outputs
        noise = self._price(1 / self.steps, multiplier).multiplier
        relative = noise * problem.max_rows * math.sqrt(coordinates) / problem.n
        return min(MOST_CLIPPED, max(1 - self.level, 4 * relative))

    @property
    def _summaries(self) -> ColumnSummaries:
        return ColumnSummaries.of(self.targets, RARE, selecting=self.sparsity is not None)

    @property
    def _labels(self) -> bool:
        return self.targets in LABELS

    def _numbers(self, problem: Problem) -> bool:
        return self.targets == "real" and problem.intercept

    def _frequencies(self, multiplier: float, problem: Problem) -> LabelCounts:
        """As dear as a gain, or half as dear as scales may be, for they are two counts or few."""
        usual, least = (
            self._price(2 * share, multiplier).multiplier
            for share in (self.comparison_share, LARGEST_SHARE)
        )
        return LabelCounts.priced(usual, least, problem)

    def _selection(self, multiplier: float, problem: Problem) -> SelectFeatures:
        """Of features; of those that share one scale with a cut range, and own scales after it."""
        sparsity, scales = self.sparsity or problem.d, self._scales(multiplier, problem)
        shared = sparsity < problem.d and self._summaries.pooled(scales, problem)
        price = self._price(self.selection_share / sparsity, multiplier).multiplier
        screening = Screening(sparsity=sparsity, multiplier=price, own=scales if shared else None)
        reach = CutRange.priced(self._price(self.reach_share, multiplier), problem)
        return SelectFeatures(screening, reach if shared else None)
