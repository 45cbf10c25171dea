"""Whether the model misses some records by far more than the intercept-only model does."""

from __future__ import annotations

from dataclasses import dataclass

from privtail.default.fit import Fit
from privtail.losses import ExcessLoss, HuberLoss
from privtail.trusted.events import Event, Plan, Round
from privtail.trusted.means import BoundedMean
from privtail.trusted.mechanisms.noise import GaussianNoise
from privtail.trusted.problem import Problem

HARMFUL = (
    "With slopes the model misses some records by far, and an intercept-only model does not, so "
    "the slopes are set to zero. Typical causes are a code for missing values (-999) and a feature "
    "with few huge values: remove the code, or take logarithms."
)


@dataclass(frozen=True)
class CheckOutliers:
    """Sets the slopes to zero where the model of a number does harm.

    A linear model extrapolates: with a code for missing values (-999), or a few rows in another
    unit, what holds for most records sends the predictions of the others anywhere. They are few, so
    the gain of the others hides them from the acceptance test. Here a record counts only for what
    it loses: its Huber loss above that at the intercept-only model, less what a useful model may
    cost it, the loss s of a residual at the threshold of that loss.

    The threshold is `Tuning.far` scales of the target, or where its tail ends if that is farther: a
    tail that features explain is no harm. What a record loses beyond is clamped at s, or later,
    where a mean of `Tuning.visible_loss` scales squared would still be seen, however few records
    it comes from.

    **Privacy.** One Gaussian release of a mean of values in [0, 1].
    """

    noise: GaussianNoise

    def plan(self, problem: Problem) -> Plan:
        return (Round(stage="outlier check", events=(self._event(problem),)),)

    def run(self, fit: Fit) -> None:
        problem, tuning, target = fit.problem, fit.tuning, fit.standard.target
        threshold = max(tuning.far * max(target.scale, target.deviation), target.tail)
        spared, noticed = threshold**2 / 2, tuning.sure * self._event(problem).std
        visible = tuning.visible_loss * (threshold / tuning.far) ** 2
        clamped = BoundedMean(max(spared, visible / noticed) if noticed > 0 else spared)
        margin = float(fit.constant[problem.d, 0]) if problem.intercept else 0.0
        excess = ExcessLoss(loss=HuberLoss(threshold=threshold), margin=margin, spared=spared)
        lost = float(fit.everyone().scores(excess, [fit.w], clamped).release(self.noise)[0])
        harmful = 0 < noticed * clamped.bound < lost
        fit.report["outliers_found"] = harmful
        if harmful and not fit.reasons:
            fit.reasons = (HARMFUL,)

    def _event(self, problem: Problem) -> Event:
        return self.noise.event(problem.scores(1, BoundedMean(1.0)))
