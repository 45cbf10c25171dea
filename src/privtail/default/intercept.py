"""The intercept before and after a descent, from released mean derivatives."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass

import numpy as np
from scipy.special import ndtri

from privtail.default.fit import Doubles, Fit
from privtail.lines import root_of_line
from privtail.losses import Loss, QuantileLoss
from privtail.losses.magnitudes import curvature_of, kinked
from privtail.robust_means import ClippedMean
from privtail.summaries.summary import SMALLEST
from privtail.trusted.events import Event, Plan, Round
from privtail.trusted.mechanisms.noise import GaussianNoise
from privtail.trusted.problem import Problem


@dataclass(frozen=True)
class MeanDerivative:
    """The mean derivative (K,) of the loss in the margin, with derivatives clipped at a threshold.

    A stage releases it ``releases`` times; the plan shows them under the name ``stage``.
    """

    noise: GaussianNoise
    releases: int = 1
    stage: str = "intercept-only model"

    def plan(self, problem: Problem) -> Plan:
        """The releases, of K numbers each."""
        return (Round(stage=self.stage, events=(self._event(problem),), times=self.releases),)

    def deviation(self, problem: Problem) -> float:
        """Standard deviation of the noise, in units of the threshold."""
        return self._event(problem).std

    def release(self, fit: Fit, loss: Loss, w: Doubles, threshold: float) -> Doubles:
        """Release it once, at the model ``w`` with the prediction ranges of the fit."""
        asked = loss, w, ClippedMean(threshold), fit.prediction_ranges()
        return fit.everyone().derivatives(*asked).release(self.noise)

    def _event(self, problem: Problem) -> Event:
        return self.noise.event(problem.derivatives(ClippedMean(1.0)))


@dataclass(frozen=True)
class InterceptStage(ABC):
    """A stage that moves the intercept by mean derivatives."""

    mean: MeanDerivative

    def plan(self, problem: Problem) -> Plan:
        return self.mean.plan(problem)

    @abstractmethod
    def run(self, fit: Fit) -> None:
        """Make the planned releases, and move the intercept."""


@dataclass(frozen=True)
class StartAtInterceptOnly(InterceptStage):
    """Fits the intercept-only model of a numeric target, where the descent begins.

    A loss with a curvature takes one Newton step from the released median (for squares, to the
    mean). The step is shrunk by 1 / (1 + (noise / deviation)^2), because a mean is within one
    deviation of the median. A model of a quantile begins at the quantile of a Gaussian and moves by
    `at_quantile`. A quantile from .25 to .75 stays within the histogram cells of the quartiles,
    because half of the targets may be equal. If the lower quartile is zero, a quantile below it
    begins just below zero and is not above zero. Above an upper quartile of zero it is the reverse.
    """

    def run(self, fit: Fit) -> None:
        start, target = np.zeros_like(fit.w), fit.standard.target
        start[-1] = target.location
        moved = self._quantile(fit, start) if kinked(fit.loss) else self._newton_step(fit, start)
        fit.w = fit.intercept_only = moved if target.detected and not target.only_zeros else start

    def _quantile(self, fit: Fit, w: Doubles) -> Doubles:
        target, w = fit.standard.target, w.copy()
        scale = target.scale if target.scale_known else target.deviation / math.sqrt(3)
        q = fit.loss.quantile if isinstance(fit.loss, QuantileLoss) else 0.5
        w[-1] += scale * float(ndtri(q)) * target.scale_known
        low, high = fit.summary.lows[-1], fit.summary.highs[-1]
        ends = (low, high) if 0.25 <= q <= 0.75 else (-math.inf, math.inf)
        if q < 0.25 and low == -SMALLEST:  # the lower quartile is zero
            w[-1], ends = low, (-math.inf, -low)
        if q > 0.75 and high == SMALLEST:  # the upper quartile is zero
            w[-1], ends = high, (-high, math.inf)
        w = at_quantile(fit, self.mean, w, scale)
        w[-1] = np.clip(w[-1], *ends)
        return w

    def _newton_step(self, fit: Fit, w: Doubles) -> Doubles:
        target, loss, w = fit.standard.target, fit.loss, w.copy()
        curvature, noise = curvature_of(loss, target.scale), self.mean.deviation(fit.problem)
        threshold = min(loss.lipschitz, curvature * target.balanced(noise))
        shrunk = 1 / (1 + (threshold / curvature * noise / target.deviation) ** 2)
        w[-1] -= shrunk / curvature * self.mean.release(fit, loss, w, threshold)
        return w


@dataclass(frozen=True)
class FitIntercept(InterceptStage):
    """Fits the intercept of least squares, by the mean of the residuals.

    The descent clips residuals, so its intercept is closer to a median. The new intercept is that
    of the intercept-only model, less the slopes times the released means of the features, plus the
    mean residual that this leaves. The clipping threshold makes the bias equal to the noise.
    If the target is mostly zero, noise hides the tail of the residuals, and the tail of the target
    decides. Predictions are clipped, or a few rows with codes would move the mean. The
    intercept-only model moves by the same amount m, so that the acceptance test measures the gain
    of the slopes alone. If that model is returned, the move is m, or s^2 / m if |m| exceeds the
    noise s of the released target mean (positive-part James-Stein estimator of Green and
    Strawderman 1991, for an unbiased and a biased mean).
    """

    def run(self, fit: Fit) -> None:
        target, residuals, usable = fit.standard.target, fit.residuals, fit.residuals.part
        constant = fit.intercept_only.copy()
        constant[-1] = target.location + (constant[-1] - target.location) / usable
        w = constant + fit.preconditioner.with_intercept(fit.w[:-1])
        deviation = self.mean.deviation(fit.problem)
        wide = target.balanced(deviation)
        narrow = residuals.balanced(deviation / usable) if residuals.known else target.scale
        threshold = wide if fit.mostly_zero else min(narrow, fit.reach * target.tail + wide)
        move = -self.mean.release(fit, fit.loss, w, threshold)[0] / usable
        w[-1] += move
        if not target.only_zeros:  # its error is not known
            constant[-1] += move
            noise = max(wide * deviation / usable, np.finfo(np.float64).tiny)
            fit.excess_move = move * (1 - (noise / max(noise, abs(move))) ** 2)
        fit.w, fit.intercept_only = w, constant


@dataclass(frozen=True)
class MatchQuantile(InterceptStage):
    """Moves the intercept so that the fraction of targets below the model is the quantile.

    The descent does not move it far enough: steps shrink for a loss with a kink, and the mean
    derivative at an extreme quantile is small.
    """

    def run(self, fit: Fit) -> None:
        fit.w = at_quantile(fit, self.mean, fit.w, fit.standard.target.scale)


def at_quantile(fit: Fit, mean: MeanDerivative, w: Doubles, scale: float) -> Doubles:
    """The model ``w`` with the intercept at which the fraction of targets below is the quantile.

    The mean derivative of the loss is that fraction less the quantile. As a normal score it is
    about linear in the intercept, with the slope 1 / (scale of the residuals). The intercept moves
    to the root of the line that is fitted to all releases so far. ``scale`` is a guess of the scale
    of the residuals and of the error of the intercept. A score has an error of a quarter of its
    size, because residuals need not be Gaussian.
    """
    loss = fit.loss if isinstance(fit.loss, QuantileLoss) else QuantileLoss(quantile=0.5)
    q, noise = loss.quantile, mean.deviation(fit.problem) * loss.lipschitz
    least, move = min(max(noise, 1e-9), q / 2, (1 - q) / 2), 0.0
    scores = [(0.0, 0.0, 1.0)]
    for _ in range(mean.releases):
        moved = w.copy()
        moved[-1] += move * scale
        release = float(mean.release(fit, loss, moved, loss.lipschitz)[0])
        below = ndtri(np.clip(q + release, max(least, SMALLEST), 1 - max(least, 2.0**-53)))
        score = below - ndtri(q)
        density = math.exp(-(below**2) / 2) / math.sqrt(2 * math.pi)
        scores.append((move, score, math.hypot(noise / density, score / 4, 1e-9)))
        move = root_of_line(*np.array(scores).T)
    w = w.copy()
    w[-1] += move * scale
    return w


@dataclass(frozen=True)
class MatchMean(InterceptStage):
    """Moves the intercept so that the mean prediction of counts or amounts equals their mean.

    The descent clips derivatives, which biases the mean. Here they are clipped where the bias
    equals the noise. The mean derivative is the relative error of the mean prediction. If it is
    larger than its noise, the intercept moves by its `signed_log`.
    """

    def run(self, fit: Fit) -> None:
        deviation = self.mean.deviation(fit.problem)
        threshold = max(fit.threshold, fit.residuals.balanced(deviation))
        error = float(self.mean.release(fit, fit.loss, fit.w, threshold)[0])
        if abs(error) > threshold * deviation:
            fit.w = fit.w.copy()
            fit.w[-1] -= signed_log(error / fit.residuals.part)


def signed_log(error: float) -> float:
    """sign(error) log(1 + |error|): the change of a logarithm that corrects a relative error."""
    return math.copysign(math.log1p(abs(error)), error)
