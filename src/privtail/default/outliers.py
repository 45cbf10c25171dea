"""Whether the model misses some records by far more than the intercept-only model does."""

from __future__ import annotations

from dataclasses import dataclass

from privtail.default.fit import Fit
from privtail.losses import ExcessLoss, HuberLoss
from privtail.trusted.events import Event, Plan, Round
from privtail.trusted.means import BoundedMean
from privtail.trusted.mechanisms.noise import GaussianNoise
from privtail.trusted.problem import Problem

FAR = 3.0
"""Beyond so many scales a residual counts for what it is, not for its square.

No target that was detected is farther than that from the centre: a tail that features explain is no
harm.
"""

SPARED = 6.0
"""A record may lose so many squared scales more than it does with the intercept-only model."""

LEAST = 3.0
"""What it loses beyond is clamped here, or later where that can be seen."""

SERIOUS = 0.05
"""A mean loss of so many squared scales must be seen, however few records it comes from."""

VISIBLE = 3.5
"""It is seen at so many deviations of the noise: of 4,300 harmless models one is refused."""

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
    it loses: its Huber loss (of residuals in scales of the target, so that one far target alone
    loses little) above that at the intercept-only model, less what a useful model may cost it.

    **Privacy.** One Gaussian release of a mean of values in [0, 1].
    """

    noise: GaussianNoise

    def plan(self, problem: Problem) -> Plan:
        return (Round(stage="outlier check", events=(self._event(problem),)),)

    def run(self, fit: Fit) -> None:
        problem, target, std = fit.problem, fit.standard.target, self._event(fit.problem).std
        unit = max(target.scale, target.deviation, target.tail / FAR)
        clamped = BoundedMean(unit**2 * (max(LEAST, SERIOUS / std) if std > 0 else LEAST))
        margin = float(fit.constant[problem.d, 0]) if problem.intercept else 0.0
        huber = HuberLoss(threshold=FAR * unit)
        excess = ExcessLoss(loss=huber, margin=margin, spared=SPARED * unit**2)
        lost = float(fit.everyone().scores(excess, [fit.w], clamped).release(self.noise)[0])
        harmful = std > 0 and lost > VISIBLE * std * clamped.bound
        fit.report["outliers_found"] = harmful
        if harmful and not fit.reasons:
            fit.reasons = (HARMFUL,)

    def _event(self, problem: Problem) -> Event:
        return self.noise.event(problem.scores(1, BoundedMean(1.0)))
