"""The stages of the descent: preconditioner, steps, clipping threshold, shrunk slopes."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

from privtail.default.descent import (
    Run,
    Schedule,
    added_noise,
    descended,
    lasting,
    model_noise,
    shown_contraction,
)
from privtail.default.fit import Fit
from privtail.default.labels import lead
from privtail.default.preconditioner import Preconditioner
from privtail.default.shrinkage import probabilities
from privtail.domains import may_be_zero
from privtail.losses import AMOUNTS, HuberLoss, RelativeHuberLoss, WeightedLoss
from privtail.losses.magnitudes import curvature_of, kinked, largest_derivative
from privtail.robust_means import MallowsMean
from privtail.second_moments import symmetric
from privtail.summaries.residuals import ResidualHistogram
from privtail.trusted.events import Plan, Round
from privtail.trusted.mechanisms.noise import GaussianNoise
from privtail.trusted.problem import Problem

Doubles = NDArray[np.float64]

LONGEST = 2.0**10
"""Without noise rows count up to so many typical lengths: squares keep 12 digits of the grid."""


@dataclass(frozen=True)
class Precondition:
    """Releases the second moments of the features, which become the metric of the steps.

    Steps shrink rows to ``row_part`` of the length of a typical row. Here rows are clipped to twice
    that, or without noise to `LONGEST` times as much. Declared indicators that are not
    significantly often 1 are not used from now on. If ``noise`` is None nothing is
    released, and all directions are taken for alike.
    """

    noise: GaussianNoise | None
    row_part: float

    def plan(self, problem: Problem) -> Plan:
        if self.noise is None:
            return ()
        event = self.noise.event(problem.moments(1.0))
        return (Round(stage="preconditioner", events=(event,)),)

    def run(self, fit: Fit) -> None:
        active = _active(fit.standard.used, fit.problem)
        if self.noise is None:
            fit.preconditioner = Preconditioner.without_moments(active)
        else:
            fit.preconditioner = self._of_moments(fit, self.noise, active)
        fit.report["row_length"] = self.row_part * fit.preconditioner.row_length

    def _of_moments(
        self, fit: Fit, noise: GaussianNoise, active: NDArray[np.bool_]
    ) -> Preconditioner:
        problem, clip = fit.problem, 2 * self.row_part * math.sqrt(active.sum())
        std = noise.event(problem.moments(clip)).std
        clip *= 1.0 if std > 0 else LONGEST
        moments = symmetric(fit.everyone().moments(clip).release(noise), problem.rows)
        rare = np.isin(np.arange(problem.d), problem.indicators)
        rare &= (np.diag(moments) <= fit.tuning.significant * std)[: problem.d]
        if (fit.standard.used & ~rare).any() or problem.intercept:
            fit.standard = fit.standard.only(fit.standard.used & ~rare)
        fewer = _active(fit.standard.used, problem)
        length = clip / 2 / self.row_part * math.sqrt(fewer.sum() / active.sum())
        return Preconditioner.of_moments(moments, std, fewer, length, outstanding=1 / self.row_part)


def _active(used: NDArray[np.bool_], problem: Problem) -> NDArray[np.bool_]:
    """(rows,) whether each coordinate moves: used features and the intercept; all if none is."""
    active = np.append(used, np.ones(int(problem.intercept), dtype=np.bool_))
    return active if active.any() else ~active


@dataclass(frozen=True)
class MeasureResiduals:
    """A histogram of the sizes of the residuals, from which the next `Descend` takes its threshold.

    A Huber loss whose threshold is given in scales of the residuals gets its unit here.
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
    """Proximal steps from the present model, of which the later ones are averaged.

    A step is a Newton step for an estimated bound of the Hessian (Boehning and Lindsay 1988), with
    residuals clipped at the `threshold`, and rows shrunk to ``row_part`` of
    `Preconditioner.row_length` (Mallows 1975).
    """

    noise: GaussianNoise
    steps: int
    row_part: float

    def plan(self, problem: Problem) -> Plan:
        event = self.noise.event(problem.gradient(MallowsMean(1.0, 1.0)))
        return (Round(stage="descent", events=(event,), times=self.steps),)

    def run(self, fit: Fit) -> None:
        scale, metric = fit.standard.target.scale, fit.preconditioner
        fit.threshold = fit.report["clipping_threshold"] = self.threshold(fit)
        schedule = self.schedule(fit, fit.threshold)
        domain = fit.domain.scaled(1 / fit.standard.scales)
        fit.w, curvature = descended(
            fit.rounds(self.steps), fit.loss, domain, fit.w, metric, self.noise, schedule
        )
        fit.steps += self.steps
        shown = shown_contraction(curvature, schedule, fit.loss, scale, fit.tuning)
        fit.runs += (Run(schedule, fit.loss, shown),)

    def relative_noise(self, problem: Problem) -> float:
        """The noise in a coordinate of a gradient, for rows of length sqrt(d) and residuals of 1.

        A feature that explains all of the target has a gradient of 1.
        """
        return self.noise.multiplier * problem.max_rows * math.sqrt(problem.rows) / problem.n

    def threshold(self, fit: Fit) -> float:
        """Where residuals are clipped.

        Until residuals are known it is the threshold of Gaussian residuals of the
        target's scale, or of labels their largest derivative at the intercept-only model. Then it
        is a quantile of the residuals, if that is lower: a higher one for rare labels. A loss with
        a kink has no threshold but the bound of its derivatives.

        A quantile is too low where few rows carry the mean: for counts, for amounts, and for
        squares of a target that is mostly zero. There the threshold is at least the one at which
        clipping misses as much as noise adds; of counts and amounts, also `Fit.min_threshold`:
        noise may hide from the residuals what the amounts have shown.
        """
        loss, residuals, clipped = fit.loss, fit.residuals, self._clipped(fit)
        if not residuals.known:
            return max(self._expected(fit, clipped), fit.min_threshold)
        found = min(fit.threshold, loss.lipschitz)
        if not kinked(loss):
            heaviest = max(loss.weights) if isinstance(loss, WeightedLoss) else 1.0
            found = min(found, heaviest * residuals.quantile(1 - clipped * fit.rarest_label))
        if fit.mostly_zero or fit.given_loss.targets in AMOUNTS:
            found = max(found, fit.min_threshold, self._balanced(fit, residuals))
            found = min(loss.lipschitz, found)
        return found

    def _clipped(self, fit: Fit) -> float:
        """The part of the residuals that is clipped: more where noise is large."""
        relative = self.relative_noise(fit.problem) * math.sqrt(fit.problem.outputs)
        return max(fit.tuning.clipped, relative / (relative + fit.tuning.half_clipped))

    @staticmethod
    def _expected(fit: Fit, clipped: float) -> float:
        """The threshold where no residuals are known."""
        loss, scale = fit.loss, fit.standard.target.scale
        if fit.has_labels:
            largest = largest_derivative(loss, fit.intercept_only[fit.problem.d :])
            return min(loss.lipschitz, largest)
        if kinked(loss):
            return loss.lipschitz
        usual = scale * float(ndtri(1 - clipped / 2))
        return min(loss.lipschitz, usual * curvature_of(loss, scale))

    def _balanced(self, fit: Fit, residuals: ResidualHistogram) -> float:
        """The threshold at which clipping misses as much as the noise of these steps adds."""
        schedule, metric = self.schedule(fit, 1.0), fit.preconditioner
        contraction = schedule.length * curvature_of(fit.loss, fit.standard.target.scale)
        noise = added_noise(schedule, metric, 0.0, contraction * metric.likely_rates)
        return residuals.balanced(math.sqrt(float(np.mean(noise**2))))

    def schedule(self, fit: Fit, threshold: float) -> Schedule:
        """The steps for one clipping threshold.

        A step is as long as the curvature allows, which shrinks as rows are shrunk. It is shorter
        if noise alone would move the prediction of a typical row by more than `Tuning.most_walk`
        scales of the target. For labels the scale is one unit of log-odds, or the lead of the most
        frequent label if that is more.
        """
        loss, scale, metric = fit.loss, fit.standard.target.scale, fit.preconditioner
        mean = MallowsMean(threshold, self.row_part * metric.row_length)
        std = self.noise.event(fit.problem.gradient(mean)).std
        momentum = 0.0 if kinked(loss) else fit.tuning.momentum
        length = 1 / min(1.0, mean.row_length / metric.typical) / curvature_of(loss, scale)
        walk = std * float(np.linalg.norm(lasting(momentum, self.steps))) * metric.spread
        if walk > 0:
            leads = max(1.0, lead(fit.intercept_only[fit.problem.d :])) if fit.has_labels else 1.0
            length = min(length, fit.tuning.most_walk * scale * leads / walk)
        return Schedule(mean, self.steps, length, std, kinked(loss), momentum)


@dataclass(frozen=True)
class ShrinkSlopes:
    """Multiplies each slope by the probability that it is more than noise. Releases nothing.

    `probabilities` computes it. What a slope loses is added to its stated noise, because it may
    have been real. Slopes that a penalty or a set ties together stay as they are.
    """

    def plan(self, problem: Problem) -> Plan:
        return ()

    def run(self, fit: Fit) -> None:
        d, metric = fit.problem.d, fit.preconditioner
        if may_be_zero(fit.domain):
            noise = metric.deviations(model_noise(fit.runs, metric, lambda run: run.shown), d)
            slopes = fit.w[:d]
            less = slopes * (probabilities(slopes, noise, fit.tuning.prior_slopes) - 1)
            fit.w = fit.w + metric.joint(less, len(fit.w))
            fit.shrinkage = np.abs(less).max(axis=1)
