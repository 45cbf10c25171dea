"""The intercept: where a descent begins, and where it moves after one, by means of derivatives."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

from privtail.default.fit import Fit
from privtail.losses import LabelProbability, Loss, QuantileLoss
from privtail.losses.magnitudes import curvature_of, kinked
from privtail.robust_means import BoundedMean, ClippedMean
from privtail.trusted.events import Event, Plan, Round
from privtail.trusted.mechanisms.noise import GaussianNoise
from privtail.trusted.problem import Problem

Doubles = NDArray[np.float64]


@dataclass(frozen=True)
class MeanDerivative:
    """Releases of the mean derivative (K,) of the loss in the margins, clipped at a threshold.

    ``stage`` is the name of the releases in the plan.

    **Privacy.** ``times`` Gaussian releases of a mean of vectors of length 1, times the threshold.
    """

    noise: GaussianNoise
    times: int = 1
    stage: str = "intercept"

    def plan(self, problem: Problem) -> Plan:
        """So many releases of K numbers."""
        return (Round(stage=self.stage, events=(self._event(problem),), times=self.times),)

    def deviation(self, problem: Problem) -> float:
        """Standard deviation of the noise, in units of the threshold."""
        return self._event(problem).std

    def release(self, fit: Fit, loss: Loss, w: Doubles, threshold: float) -> Doubles:
        """One release, at the predictions of the model ``w``, clipped as those of the fit are."""
        asked = loss, w, ClippedMean(threshold), fit.prediction_ranges()
        return fit.everyone().derivatives(*asked).release(self.noise)

    def _event(self, problem: Problem) -> Event:
        return self.noise.event(problem.derivatives(ClippedMean(1.0)))


@dataclass(frozen=True)
class StartAtInterceptOnly:
    """Fits the intercept-only model of a numeric target, where the descent begins.

    It begins at the released median. One clipped mean derivative moves it to the minimum of a loss
    with a curvature; for squares that is the mean. It is multiplied by 1 / (1 + (noise /
    deviation)^2), because a mean is within one deviation of the median. A quantile begins at that
    of a Gaussian. `at_quantile` moves it, but not across a quartile: half of the targets may be one
    number, which moves miss.
    """

    mean: MeanDerivative

    def plan(self, problem: Problem) -> Plan:
        return self.mean.plan(problem)

    def run(self, fit: Fit) -> None:
        start, target = np.zeros_like(fit.w), fit.standard.target
        start[-1] = target.location
        moved = self._quantile(fit, start) if kinked(fit.loss) else self._minimum(fit, start)
        fit.w = fit.intercept_only = start if not target.detected or target.only_zeros else moved

    def _quantile(self, fit: Fit, w: Doubles) -> Doubles:
        target, w = fit.standard.target, w.copy()
        unit = target.scale if target.scale_known else target.deviation / math.sqrt(3)
        q = fit.loss.quantile if isinstance(fit.loss, QuantileLoss) else 0.5
        w[-1] += unit * float(ndtri(q)) * target.scale_known
        w = at_quantile(fit, self.mean, fit.loss, w, unit)
        if 0.25 <= q <= 0.75:
            w[-1] = np.clip(w[-1], fit.summary.lows[-1], fit.summary.highs[-1])
        return w

    def _minimum(self, fit: Fit, w: Doubles) -> Doubles:
        target, loss, w = fit.standard.target, fit.loss, w.copy()
        steep, noise = curvature_of(loss, target.scale), self.mean.deviation(fit.problem)
        most = min(loss.lipschitz, steep * target.balanced(noise))
        kept = 1 / (1 + (most / steep * noise / target.deviation) ** 2)
        w[-1] -= kept / steep * self.mean.release(fit, loss, w, most)
        return w


@dataclass(frozen=True)
class FitIntercept:
    """Fits the intercept of least squares.

    The descent clips residuals, so its intercept is rather that of a median. Here it is the
    intercept-only model, less the slopes times the means of the features, which second moments
    hold, plus the mean of the residuals there, clipped where that misses as much as noise adds.
    Residuals are of clipped predictions, or a few rows with codes would move all. The
    intercept-only model moves as much: the acceptance test measures the gain of slopes alone.
    """

    mean: MeanDerivative

    def plan(self, problem: Problem) -> Plan:
        return self.mean.plan(problem)

    def run(self, fit: Fit) -> None:
        problem, target, part = fit.problem, fit.standard.target, fit.residuals.part
        d, constant, threshold = problem.d, fit.intercept_only.copy(), target.scale
        constant[d] = target.location + (constant[d] - target.location) / part
        w = constant + fit.preconditioner.joint(fit.w[:d], len(fit.w))
        deviation = self.mean.deviation(problem)
        if fit.residuals.known:
            clipped = fit.reach * target.tail + target.balanced(deviation)
            threshold = min(fit.residuals.balanced(deviation / part), clipped)
        move = -self.mean.release(fit, fit.loss, w, threshold)[0] / part
        w[d] += move
        constant[d] += 0.0 if target.only_zeros else move  # nothing tells how sure a move is
        fit.w, fit.intercept_only = w, constant


@dataclass(frozen=True)
class MatchQuantile:
    """The part of the targets below the model becomes the quantile that its loss asks for.

    Steps get shorter at a kink, and the mean derivative that moves the intercept of a far quantile
    is small. So the intercept lags behind the slopes when a descent ends.
    """

    mean: MeanDerivative

    def plan(self, problem: Problem) -> Plan:
        return self.mean.plan(problem)

    def run(self, fit: Fit) -> None:
        fit.w = at_quantile(fit, self.mean, fit.loss, fit.w, fit.standard.target.scale)


def at_quantile(fit: Fit, mean: MeanDerivative, loss: Loss, w: Doubles, unit: float) -> Doubles:
    """The model ``w`` with its intercept where the part of the targets below is the quantile.

    The mean derivative of the loss is that part less the quantile. On the scale of Gaussian scores
    it is about a line in the intercept, whose slope is 1 over the spread of the residuals. So the
    intercept moves to where the line through all releases crosses zero. The spread is about
    ``unit``, and so is how far off the intercept may be. Residuals need not be Gaussian, so a score
    is taken to be off by a quarter of its size, besides its noise.
    """
    loss = loss if isinstance(loss, QuantileLoss) else QuantileLoss(quantile=0.5)
    q, noise = loss.quantile, mean.deviation(fit.problem) * loss.lipschitz
    least, move = min(max(noise, 1e-9), q / 2, (1 - q) / 2), 0.0
    seen = [(0.0, 0.0, 1.0)]
    for _ in range(mean.times):
        moved = w.copy()
        moved[-1] += move * unit
        release = float(mean.release(fit, loss, moved, loss.lipschitz)[0])
        below = ndtri(np.clip(q + release, least, 1 - least))
        score = below - ndtri(q)
        density = math.exp(-(below**2) / 2) / math.sqrt(2 * math.pi)
        seen.append((move, score, math.hypot(noise / density, score / 4, 1e-9)))
        move = _root(*np.array(seen).T)
    w = w.copy()
    w[-1] += move * unit
    return w


def _root(moves: Doubles, scores: Doubles, errors: Doubles) -> float:
    """Where the likeliest line through the scores crosses zero; spreads from 1/8 to 8 are tried."""
    spreads, weights = 2.0 ** (np.arange(-12, 13) / 4), errors**-2
    away = moves - spreads[:, None] * scores
    roots = away @ weights / weights.sum()
    misses = ((away - roots[:, None]) / spreads[:, None]) ** 2 @ weights + np.log(spreads) ** 2
    return float(roots[misses.argmin()])


@dataclass(frozen=True)
class MatchMean:
    """Makes the mean prediction of counts or amounts equal their mean.

    The descent clips derivatives, so it loses a part of the mean. Here they are clipped where that
    misses as much as noise adds. The mean derivative is the relative error of the mean prediction.
    If it is larger than its noise, the intercept moves by its logarithm.
    """

    mean: MeanDerivative

    def plan(self, problem: Problem) -> Plan:
        return self.mean.plan(problem)

    def run(self, fit: Fit) -> None:
        deviation = self.mean.deviation(fit.problem)
        threshold = max(fit.threshold, fit.residuals.balanced(deviation))
        seen = float(self.mean.release(fit, fit.loss, fit.w, threshold)[0])
        if abs(seen) > threshold * deviation:
            fit.w = fit.w.copy()
            fit.w[-1] -= relative(seen / fit.residuals.part)


def relative(error: float) -> float:
    """How far a logarithm moves to correct a relative error: sign(error) log(1 + |error|)."""
    return math.copysign(math.log1p(abs(error)), error)


@dataclass(frozen=True)
class MatchFrequencies:
    """Makes the mean probability of every label equal its released frequency.

    Where the two differ by more than the noise of the mean, the margin of the label moves by the
    logarithm of frequency over mean probability, times 1 - (noise / difference)^2. All margins stay
    if labels are about equally frequent, so that predicted labels do not change.

    **Privacy.** One Gaussian release of means of values in [0, 1].
    """

    noise: GaussianNoise

    def plan(self, problem: Problem) -> Plan:
        return (Round(stage="intercept", events=(self._event(problem),)),)

    def run(self, fit: Fit) -> None:
        problem, (part, _) = fit.problem, fit.usable_rows
        seen = self._mean_probabilities(fit) / part
        if fit.labels_even:
            return
        margins, two = fit.intercept_only[problem.d], problem.outputs == 1
        if two:  # that of the second label over the first
            margins, seen = np.append(0.0, margins), np.append(1 - seen, seen)
        frequencies = np.exp(margins - np.logaddexp.reduce(margins))
        noise = self._event(problem).std / part
        least = np.minimum(max(noise, 1e-12), frequencies / 2)
        move = np.log(frequencies) - np.log(np.maximum(seen, least))
        off = np.maximum(np.abs(seen - frequencies), max(noise, 1e-12))
        move *= 1 - (noise / off) ** 2
        w = fit.w.copy()
        w[problem.d] += move[1] - move[0] if two else move
        fit.w = w

    def _mean_probabilities(self, fit: Fit) -> Doubles:
        """The released mean probability of the second of two labels (1,), or of all (K,)."""
        problem = fit.problem
        each = [np.roll(fit.w, -label, axis=1) for label in range(problem.outputs)]
        chance = LabelProbability(outputs=problem.outputs)
        scores = fit.everyone().scores(chance, each, BoundedMean(1.0), fit.prediction_ranges())
        return scores.release(self.noise)

    def _event(self, problem: Problem) -> Event:
        return self.noise.event(problem.scores(problem.outputs, BoundedMean(1.0)))
