"""The stages of the descent: preconditioner, steps, clipping threshold, shrunk slopes."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

from privtail.algorithms.second_moments import symmetric
from privtail.default.constant import largest_derivative, lead
from privtail.default.descent import (
    NoiseOfSteps,
    Schedule,
    curvature_of,
    descended,
    kinked,
    lasting,
)
from privtail.default.fit import Fit
from privtail.default.preconditioner import Preconditioner
from privtail.default.residuals import ResidualHistogram
from privtail.default.shrinkage import may_be_zero, probabilities
from privtail.losses import AMOUNTS, HuberLoss, RelativeHuberLoss, SquaredLoss, WeightedLoss
from privtail.trusted.events import Plan, Round
from privtail.trusted.means import MallowsMean
from privtail.trusted.mechanisms.noise import GaussianNoise
from privtail.trusted.problem import Problem

Doubles = NDArray[np.float64]

LONGEST = 2.0**10
"""Without noise rows count up to so many typical lengths: squares keep 32 of 52 digits."""


@dataclass(frozen=True)
class Precondition:
    """Second moments of the features, clipped to twice the length to which steps shrink rows.

    That is ``row_part`` of the length of a typical row, or a longer one while noise stays small.
    Declared indicators whose squares are not significant are not used from now on. Where ``noise``
    is None nothing is released, and all directions are taken for alike.
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
        fit.noise_of_steps = NoiseOfSteps.none(fit.preconditioner)
        fit.report["row_length"] = self.row_part * fit.preconditioner.row_length

    def _of_moments(
        self, fit: Fit, noise: GaussianNoise, active: NDArray[np.bool_]
    ) -> Preconditioner:
        problem, tuning, typical = fit.problem, fit.tuning, math.sqrt(active.sum())
        clip = 2 * self.row_part * typical
        hidden = math.sqrt(2) * typical * noise.event(problem.moments(clip)).std
        if hidden > 0:
            clip *= min(LONGEST, max(1.0, math.sqrt(tuning.hidden_curvature / hidden)))
        else:
            clip *= LONGEST
        std = noise.event(problem.moments(clip)).std
        moments = symmetric(fit.everyone().moments(clip).release(noise), problem.rows)
        rare = np.isin(np.arange(problem.d), problem.indicators)
        rare &= (np.diag(moments) <= tuning.significant * std)[: problem.d]
        if (fit.standard.used & ~rare).any() or problem.intercept:
            fit.standard = fit.standard.only(fit.standard.used & ~rare)
        fewer = _active(fit.standard.used, problem)
        length = clip / 2 / self.row_part * math.sqrt(fewer.sum() / active.sum())
        return Preconditioner.of_moments(
            moments, std, fewer, length, outstanding=tuning.outstanding / self.row_part
        )  # fmt: skip


def _active(used: NDArray[np.bool_], problem: Problem) -> NDArray[np.bool_]:
    """(rows,) the used features and the intercept; all features if there would be none."""
    active = np.append(used, np.ones(int(problem.intercept), dtype=np.bool_))
    return active if active.any() else ~active


@dataclass(frozen=True)
class ExpectResiduals:
    """The first clipping threshold: that of Gaussian residuals of the target's scale.

    The part ``clipped`` of them lies above it. That of labels is their largest derivative at the
    intercept-only model. Releases nothing.
    """

    clipped: float

    def plan(self, problem: Problem) -> Plan:
        return ()

    def run(self, fit: Fit) -> None:
        loss, threshold = fit.loss, fit.loss.lipschitz
        if fit.labels:
            threshold = min(threshold, largest_derivative(loss, fit.constant[fit.problem.d :]))
        elif not kinked(loss):
            usual = fit.standard.target.scale * float(ndtri(1 - self.clipped / 2))
            threshold = min(threshold, usual * curvature_of(loss, fit.standard.target.scale))
        fit.threshold = max(threshold, fit.least_threshold)


@dataclass(frozen=True)
class Descend:
    """Proximal steps from the present model; then the average of the later ones.

    A step is a Newton step for an estimated bound of the Hessian (Boehning and Lindsay 1988), with
    residuals clipped at the threshold, and rows shrunk to ``row_part`` of
    `Preconditioner.row_length` (Mallows 1975).
    """

    noise: GaussianNoise
    steps: int
    row_part: float

    def plan(self, problem: Problem) -> Plan:
        event = self.noise.event(problem.gradient(MallowsMean(1.0, 1.0)))
        return (Round(stage="descent", events=(event,), times=self.steps),)

    def run(self, fit: Fit) -> None:
        if not self.steps:
            return
        scale, metric = fit.standard.target.scale, fit.preconditioner
        schedule = self.schedule(fit, fit.threshold)
        domain = fit.domain.scaled(1 / fit.standard.scales)
        fit.w, curvature = descended(
            fit.rounds(self.steps), fit.loss, domain, fit.w, metric, self.noise, schedule
        )
        fit.steps += self.steps
        fit.noise_of_steps = fit.noise_of_steps.after(
            curvature, schedule, metric, fit.loss, scale, fit.tuning
        )

    def schedule(self, fit: Fit, threshold: float) -> Schedule:
        """Steps as long as curvature allows, and as noise does; residuals clip at a threshold.

        Where typical rows are shrunk, so is the curvature. Noise alone moves the prediction of a
        typical row by at most `Tuning.most_walk` scales of the target; of labels by as many
        log-odds, or as many times the lead of the most frequent one if that is more.
        """
        loss, scale, metric = fit.loss, fit.standard.target.scale, fit.preconditioner
        mean = MallowsMean(threshold, self.row_part * metric.row_length)
        std = self.noise.event(fit.problem.gradient(mean)).std
        momentum = 0.0 if kinked(loss) else fit.tuning.momentum
        typical = math.sqrt(min(float(metric.active.sum()), float(metric.curvatures.sum())))
        length = 1 / min(1.0, mean.reach / typical) / curvature_of(loss, scale)
        walk = std * float(np.linalg.norm(lasting(momentum, self.steps))) * metric.spread
        if walk > 0:
            leads = max(1.0, lead(fit.constant[fit.problem.d :])) if fit.labels else 1.0
            length = min(length, fit.tuning.most_walk * scale * leads / walk)
        return Schedule(mean, self.steps, length, std, kinked(loss), momentum)


@dataclass(frozen=True)
class MeasureResiduals:
    """A histogram of the sizes of residuals: one of its quantiles lowers the threshold.

    The part ``clipped`` of the records lies above it; less with a rare label. The threshold of
    counts and amounts is at least the one at which the noise of the ``following`` steps is what
    clipping misses, and at which clipping takes no large part off their mean. The first holds of
    squares of a target that is mostly zero, too: a quantile would clip all others. A Huber loss of
    no given unit gets its threshold.
    """

    noise: GaussianNoise
    clipped: float
    following: Descend

    def plan(self, problem: Problem) -> Plan:
        return ResidualHistogram.plan(self.noise, problem)

    def run(self, fit: Fit) -> None:
        residuals = ResidualHistogram.released(fit.everyone(), self.noise, fit.loss, fit.w)
        fit.residuals = residuals
        if not fit.labels:
            fit.rows = residuals.part, residuals.deviation
        if isinstance(fit.given, RelativeHuberLoss):
            edge = min(fit.loss.lipschitz, residuals.proposed(fit.given.threshold))
            fit.loss = HuberLoss(threshold=edge)
        most = fit.loss.lipschitz
        fit.threshold = min(fit.threshold, most, self._quantile(fit, residuals))
        rare = isinstance(fit.loss, SquaredLoss) and fit.standard.target.median_zero
        if self.following.steps and (rare or fit.given.targets in AMOUNTS):
            least = residuals.missing(fit.tuning.clipped) if fit.least_threshold else 0.0
            balanced = self._balanced(fit, residuals)
            fit.threshold = min(most, max(fit.threshold, least, balanced))
        fit.report["clipping_threshold"] = fit.threshold

    def _quantile(self, fit: Fit, residuals: ResidualHistogram) -> float:
        loss = fit.loss
        if kinked(loss):
            return loss.lipschitz  # a kink: how often either side occurs says nothing
        heaviest = max(loss.weights) if isinstance(loss, WeightedLoss) else 1.0
        return heaviest * residuals.quantile(1 - self.clipped * fit.rarity)

    def _balanced(self, fit: Fit, residuals: ResidualHistogram) -> float:
        schedule, scale = self.following.schedule(fit, 1.0), fit.standard.target.scale
        noise = NoiseOfSteps.expected(schedule, fit.preconditioner, fit.loss, scale)
        return residuals.balanced(math.sqrt(float(np.mean(noise**2))))


@dataclass(frozen=True)
class ShrinkSlopes:
    """Each slope shrinks by how likely it is more than noise (`probabilities`). Releases nothing.

    What a slope loses is added to its stated noise: it may have been none. Slopes that a penalty or
    a set ties together stay as they are.
    """

    def plan(self, problem: Problem) -> Plan:
        return ()

    def run(self, fit: Fit) -> None:
        d, metric, noise = fit.problem.d, fit.preconditioner, fit.noise_of_steps
        fit.noise = metric.deviations(noise.stated, d)
        if may_be_zero(fit.domain):
            slopes, likely = fit.w[:d], metric.deviations(noise.likely, d)
            less = slopes * (probabilities(slopes, likely, fit.tuning.prior_slopes) - 1)
            fit.w = fit.w + metric.joint(less, len(fit.w))
            fit.noise = fit.noise + np.abs(less).max(axis=1)
