"""The stages of the descent: indicators, moments, residuals, gradients, shrinkage, spread."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from scipy.special import ndtri

from privtail.default.descent import DescentRun, Schedule, averaged_noise, model_noise, run_descent
from privtail.default.fit import Fit
from privtail.default.preconditioner import Preconditioner
from privtail.default.shrinkage import probabilities
from privtail.domains import may_be_zero
from privtail.losses import AMOUNTS, HuberLoss, RelativeHuberLoss, WeightedLoss
from privtail.losses.magnitudes import curvature_of, kinked, largest_derivative, margin_gap
from privtail.momentum import momentum_sums
from privtail.robust_means import MallowsMean
from privtail.second_moments import symmetric
from privtail.summaries.indicator_counts import IndicatorCounts
from privtail.summaries.residuals import ResidualHistogram
from privtail.trusted.events import Plan, Round
from privtail.trusted.mechanisms.noise import GaussianNoise
from privtail.trusted.problem import Problem

LONGEST = 2.0**10
"""Without noise, rows are clipped at this many typical lengths: squares keep 12 digits."""


@dataclass(frozen=True)
class DropRare:
    """Counts the rows of each declared indicator, such as a category.

    An indicator is used from now on only if it surely has rows (`Tuning.sure`). With an intercept,
    a category is used only if there are surely rows without it, too. Without one, features stay as
    they are if none would be left.
    """

    counts: IndicatorCounts

    def plan(self, problem: Problem) -> Plan:
        return self.counts.plan(problem)

    def run(self, fit: Fit) -> None:
        used = fit.standard.used & self.counts.detected(fit.curator.everyone(), fit.tuning.sure)
        if used.any() or fit.problem.intercept:
            fit.standard = fit.standard.only(used)


@dataclass(frozen=True)
class Precondition:
    """Releases the second moments of the features, for the preconditioner of the steps.

    Steps shrink rows to ``row_fraction`` of the length of a typical row. Here rows are clipped to
    twice that length, or without noise to `LONGEST` times as much. If ``noise`` is None nothing is
    released, and the preconditioner is a multiple of the identity.
    """

    noise: GaussianNoise | None
    row_fraction: float

    def plan(self, problem: Problem) -> Plan:
        if self.noise is None:
            return ()
        event = self.noise.event(problem.moments(1.0))
        return (Round(stage="preconditioner", events=(event,)),)

    def run(self, fit: Fit) -> None:
        problem = fit.problem
        active = np.append(fit.standard.used, np.ones(int(problem.intercept), np.bool_))
        active = active if active.any() else ~active
        if self.noise is None:
            fit.preconditioner = Preconditioner.without_moments(active)
            return
        clip = 2 * self.row_fraction * math.sqrt(active.sum())
        std = self.noise.event(problem.moments(clip)).std
        clip *= 1.0 if std > 0 else LONGEST
        moments = symmetric(fit.everyone().moments(clip).release(self.noise), problem.rows)
        length, ratio = clip / 2 / self.row_fraction, 1 / self.row_fraction
        fit.preconditioner = Preconditioner.from_moments(
            moments, std, active, length, clear_ratio=ratio
        )


@dataclass(frozen=True)
class MeasureResiduals:
    """Releases a histogram of absolute residuals; the next `Descend` clips at a quantile of it.

    A Huber loss whose threshold is relative to the scale of the residuals gets this scale here.
    """

    noise: GaussianNoise

    def plan(self, problem: Problem) -> Plan:
        return ResidualHistogram.plan(self.noise, problem)

    def run(self, fit: Fit) -> None:
        residuals = ResidualHistogram.released(fit.everyone(), self.noise, fit.loss, fit.w)
        fit.residuals = residuals
        if not fit.has_labels:
            fit.usable_rows = residuals.part, residuals.deviation
        if isinstance(fit.given_loss, RelativeHuberLoss):
            edge = min(fit.loss.lipschitz, residuals.proposed(fit.given_loss.threshold))
            fit.loss = HuberLoss(threshold=edge)


@dataclass(frozen=True)
class Descend:
    """Releases gradients: proximal steps from the present model; later iterates are averaged.

    A step is a Newton step for an estimated bound of the Hessian (Boehning and Lindsay 1988).
    Residuals are clipped at `threshold`, and rows are shrunk to ``row_fraction`` of
    `Preconditioner.row_length` (Mallows 1975).
    """

    noise: GaussianNoise
    steps: int
    row_fraction: float

    def plan(self, problem: Problem) -> Plan:
        event = self.noise.event(problem.gradient(MallowsMean(1.0, 1.0)))
        return (Round(stage="descent", events=(event,), times=self.steps),)

    def run(self, fit: Fit) -> None:
        fit.threshold = self.threshold(fit)
        schedule, metric = self.schedule(fit, fit.threshold), fit.preconditioner
        domain = fit.domain.scaled(1 / fit.standard.scales)
        fit.w, curvature = run_descent(
            fit.rounds(self.steps), fit.loss, domain, fit.w, metric, self.noise, schedule
        )
        curvature = min(curvature, curvature_of(fit.loss, fit.standard.target.scale))
        spurious = fit.tuning.spurious_contraction * (1 - schedule.momentum) / self.steps
        contraction = max(0.0, schedule.step_size * curvature - spurious)
        fit.steps += self.steps
        fit.runs += (DescentRun(schedule, fit.loss, contraction),)

    def relative_noise(self, problem: Problem) -> float:
        """The noise in a coordinate of a gradient, over a gradient that explains the target."""
        return self.noise.multiplier * problem.max_rows * math.sqrt(problem.rows) / problem.n

    def threshold(self, fit: Fit) -> float:
        """The clipping threshold of residuals (of the derivative of the loss).

        With a residual histogram it is the upper edge of the cell with the quantile 1 - f
        (`_clipped_fraction`) of nonzero residuals (a higher one for rare labels), or the threshold
        before if that is lower. Until then it is that of `_before_residuals`.

        A quantile is too low where few rows carry the mean: for counts, amounts, and squares of a
        target that is mostly zero. The threshold is then at least the one at which the bias of
        clipping equals the noise; for counts and amounts, also `Fit.min_threshold`.
        """
        loss, residuals, clipped = fit.loss, fit.residuals, self._clipped_fraction(fit)
        if not residuals.known:
            return max(self._before_residuals(fit, clipped), fit.min_threshold)
        found = min(fit.threshold, loss.lipschitz)
        if not kinked(loss):
            heaviest = max(loss.weights) if isinstance(loss, WeightedLoss) else 1.0
            found = min(found, heaviest * residuals.quantile(1 - clipped * fit.rarest_label))
        if fit.mostly_zero or fit.given_loss.targets in AMOUNTS:
            found = max(found, fit.min_threshold, self._balanced(fit))
            found = min(loss.lipschitz, found)
        return found

    def _clipped_fraction(self, fit: Fit) -> float:
        """The fraction f of residuals that are clipped; it is larger where noise is large."""
        relative = self.relative_noise(fit.problem) * math.sqrt(fit.problem.outputs)
        fraction = relative / (relative + fit.tuning.half_clipped_noise)
        return max(fit.tuning.clipped_fraction, fraction)

    @staticmethod
    def _before_residuals(fit: Fit, clipped: float) -> float:
        """Of numbers, the quantile 1 - f of Gaussian residuals of the target's scale.

        Of labels, the largest derivative at the intercept-only model; with a kink, that of all.
        """
        loss, scale = fit.loss, fit.standard.target.scale
        if fit.has_labels:
            largest = largest_derivative(loss, fit.intercept_only[fit.problem.d :])
            return min(loss.lipschitz, largest)
        if kinked(loss):
            return loss.lipschitz
        usual = scale * float(ndtri(1 - clipped / 2))
        return min(loss.lipschitz, usual * curvature_of(loss, scale))

    def _balanced(self, fit: Fit) -> float:
        """The threshold at which the bias of clipping equals the noise of these steps."""
        schedule, metric = self.schedule(fit, 1.0), fit.preconditioner
        contraction = schedule.step_size * curvature_of(fit.loss, fit.standard.target.scale)
        noise = averaged_noise(schedule, metric, 0.0, contraction * metric.expected_contraction)
        return fit.residuals.balanced(math.sqrt(float(np.mean(noise**2))))

    def schedule(self, fit: Fit, threshold: float) -> Schedule:
        """The steps for one clipping threshold.

        The step size is 1 over the curvature, which is smaller as rows are shrunk. It is smaller if
        noise alone would move the prediction of a typical row by more than `Tuning.max_noise_walk`
        scales of the target. For labels the scale is 1 in log-odds, or the lead in log-odds of the
        most frequent label if that is more.
        """
        loss, scale, metric = fit.loss, fit.standard.target.scale, fit.preconditioner
        mean = MallowsMean(threshold, self.row_fraction * metric.row_length)
        std = self.noise.event(fit.problem.gradient(mean)).std
        momentum = 0.0 if kinked(loss) else fit.tuning.momentum
        size = 1 / min(1.0, mean.row_length / metric.capped_length) / curvature_of(loss, scale)
        walk = std * float(np.linalg.norm(momentum_sums(momentum, self.steps))) * metric.noise_gain
        if walk > 0:
            leads = margin_gap(fit.intercept_only[fit.problem.d :]) if fit.has_labels else 1.0
            size = min(size, fit.tuning.max_noise_walk * scale * max(1.0, leads) / walk)
        return Schedule(mean, self.steps, size, std, kinked(loss), momentum)


@dataclass(frozen=True)
class ShrinkSlopes:
    """Multiplies each slope by its posterior probability to be real. Releases nothing.

    `probabilities` computes it. The change of a slope is added to its stated noise, because the
    slope may be real. Slopes that a domain ties together (`may_be_zero`) stay as they are.
    """

    def plan(self, problem: Problem) -> Plan:
        return ()

    def run(self, fit: Fit) -> None:
        d, metric = fit.problem.d, fit.preconditioner
        if may_be_zero(fit.domain):
            noise = metric.slope_stds(model_noise(fit.runs, metric, lambda run: run.contraction), d)
            slopes = fit.w[:d]
            change = slopes * (probabilities(slopes, noise, fit.tuning.prior_nonzero_slopes) - 1)
            fit.w = fit.w + metric.with_intercept(change)
            fit.shrinkage = np.abs(change).max(axis=1)


@dataclass(frozen=True)
class MeasureSpread:
    """Releases second moments of the gradients, for standard errors where spreads are unequal.

    Residuals are clipped as in the last descent, and rows at twice the length of its rows.
    """

    noise: GaussianNoise

    def plan(self, problem: Problem) -> Plan:
        event = self.noise.event(problem.moments(1.0))
        return (Round(stage="spread of the residuals", events=(event,)),)

    def run(self, fit: Fit) -> None:
        clip = MallowsMean(fit.threshold, 2 * fit.preconditioner.row_length)
        std = self.noise.event(fit.problem.moments(clip.range.radius)).std
        answer = fit.everyone().gradient_moments(fit.loss, fit.w, clip)
        fit.gradient_moments = symmetric(answer.release(self.noise), fit.problem.rows), std
