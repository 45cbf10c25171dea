"""Acceptance test of the slopes of numbers and amounts, and the limit of their extrapolation."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from privtail.default.fit import Decision, Doubles, Fit
from privtail.losses import AmountLoss, Loss
from privtail.losses.magnitudes import loss_off_by
from privtail.robust_means import ClampedMean
from privtail.summaries.histograms import bonferroni
from privtail.summaries.summary import MAX_REACH
from privtail.trusted.batch import Batch
from privtail.trusted.events import Event, Plan, Round
from privtail.trusted.maps import PredictionRanges
from privtail.trusted.mechanisms.noise import GaussianNoise
from privtail.trusted.problem import Problem

NEUTRAL_REACH, LEAST_REACH = 8.0, 0.5
"""Tail lengths at which values are clipped: if clipping neither gains nor loses, and the least."""


@dataclass(frozen=True)
class Improvement:
    """The mean gain of a model over a base: loss of the base less loss of the model, clamped."""

    noise: GaussianNoise

    def plan(self, problem: Problem, releases: int, stage: str = "acceptance test") -> Plan:
        """The releases of several gains, in one round."""
        return (Round(stage=stage, events=(self._event(problem),) * releases),)

    def deviation(self, problem: Problem) -> float:
        """Standard deviation of the noise, in units of the clamp."""
        return self._event(problem).std

    def release(
        self, batch: Batch, loss: Loss, w: Doubles, base: Doubles, clamp: float,
        ranges: PredictionRanges | None = None,
    ) -> float:  # fmt: skip
        """Release the mean gain of ``w`` over ``base``, in units of the clamp.

        ``ranges`` clip features and margins at ``w``, not at ``base``.
        """
        answer = batch.improvement(loss, w, base, ClampedMean(clamp), ranges)
        return float(answer.release(self.noise)[0]) / clamp

    def _event(self, problem: Problem) -> Event:
        return self.noise.event(problem.improvement(ClampedMean(1.0)))


@dataclass(frozen=True)
class LimitExtrapolation:
    """Clips features and predictions of a model of numbers, which limits its extrapolation.

    The tail of a column ends at the farthest histogram cell above the noise. Noise may hide values
    beyond it. Slopes predict these well if the tail is heavy. They predict badly a code for missing
    values (-999), a few rows in another unit, or an effect that levels off. So the mean gain of
    clipping the model at the tails is released, clamped for each record at the loss of a margin
    that is off by half a scale of the target.

    Values are clipped at a power of `NEUTRAL_REACH` lengths of their tails. The exponent is 1 if
    clipping neither gains nor loses, and falls with the gain. Clipping inside the tails, down to
    `LEAST_REACH`, changes many predictions, so it needs a significant gain. If clipping loses
    significantly, values are clipped farther out, at `MAX_REACH` at most.
    """

    improvement: Improvement

    releases: ClassVar[int] = 1

    def plan(self, problem: Problem) -> Plan:
        return self.improvement.plan(problem, self.releases, "extrapolation")

    def run(self, fit: Fit) -> None:
        clamp = loss_off_by(fit.loss, fit.standard.target.scale / 2)
        fit.reach = 1.0  # for the gain of clipping at the tails
        ranges = fit.prediction_ranges()
        gain = self.improvement.release(fit.everyone(), fit.loss, fit.w, fit.w, clamp, ranges)
        gain /= max(self.improvement.deviation(fit.problem), float(np.finfo(np.float64).tiny))
        significant = fit.tuning.significant
        if gain > significant:  # inside the tails
            exponent = significant - gain
        elif gain > 0:
            exponent = max(1 - gain, 0.0)
        else:  # hidden records cost more the farther they are
            exponent = 1 - min(gain + significant, 0.0)
        fit.reach = max(LEAST_REACH, min(MAX_REACH, NEUTRAL_REACH ** min(exponent, MAX_REACH)))
        fit.overshoots = gain > fit.tuning.sure


@dataclass(frozen=True)
class Accept:
    """Keeps the slopes of numbers, counts and amounts if they lower the mean loss.

    Two mean gains over the intercept-only model are released, with the gain of each record clamped.

    - The near clamp is so low that a few far records do not decide. For numbers it is a typical
      loss, that of a margin off by one scale of the target. For amounts a typical loss is half the
      dispersion, and the clamp is `Tuning.far_gain` times as much. For counts it is a typical loss,
      and typical margins are shrunk to two `Tuning.small_gain`, which detects a weaker signal.
    - The far gain detects a model that is far off for a few records. Its clamp is at least the near
      one (for counts, that of amounts), and so large that a mean loss of `Tuning.small_gain`
      typical losses is just significant, or of the near gain, if this is sure and less.

    The improvement is significant if one gain is significant (`bonferroni`) and the other is no
    significant loss, or if the far gain is sure. Slopes are kept if the improvement is significant,
    or if the near gain is likely and the far one above zero.

    If the scale of the target is not known, the intercept-only model takes the intercept of the
    model, which later releases moved. Otherwise gains would be those of the better intercept.
    """

    improvement: Improvement

    releases: ClassVar[int] = 2

    def plan(self, problem: Problem) -> Plan:
        return self.improvement.plan(problem, self.releases)

    def run(self, fit: Fit) -> None:
        deviation, tuning, d = self.improvement.deviation(fit.problem), fit.tuning, fit.problem.d
        batch, ranges, unit = fit.everyone(), fit.prediction_ranges(), deviation or 1.0
        if fit.standard.target.without_scale:
            fit.intercept_only, fit.excess_move = fit.w.copy(), 0.0
            fit.intercept_only[:d] = 0.0
        near_clamp, far_clamp, typical = self._clamps(fit)
        w, base = fit.w, fit.intercept_only
        if fit.given_loss.targets == "count":
            longer = fit.preconditioner.typical_margin(w[:d]) / (2 * tuning.small_gain)
            w = base + (w - base) / max(1.0, longer)
        near = self.improvement.release(batch, fit.loss, w, base, near_clamp, ranges) / unit
        small = tuning.small_gain * typical / far_clamp / unit
        if near > tuning.sure:
            small = min(small, near * near_clamp / far_clamp)
        far_clamp *= max(1.0, small / tuning.significant)
        far = self.improvement.release(batch, fit.loss, fit.w, base, far_clamp, ranges) / unit
        if deviation == 0:
            return
        no_loss = min(near, far) > -tuning.significant
        significant = no_loss and max(near, far) > bonferroni(tuning.significant)
        significant = significant or far > tuning.sure
        kept = significant or (near > tuning.likely and far > 0)
        fit.decision = Decision(kept, significant, (near, far))

    @staticmethod
    def _clamps(fit: Fit) -> tuple[float, float, float]:
        """The near clamp, the least far clamp, and a typical loss."""
        if isinstance(fit.loss, AmountLoss):
            typical = fit.dispersion / 2
            far = fit.tuning.far_gain * typical
            return typical if fit.given_loss.targets == "count" else far, far, typical
        one = loss_off_by(fit.loss, fit.standard.target.scale)
        if fit.mostly_zero and fit.residuals.known:
            one = max(one, loss_off_by(fit.loss, math.sqrt(fit.residuals.mean_square())))
        return one, one, one
