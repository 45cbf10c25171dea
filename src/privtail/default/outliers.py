"""Whether a released model misses some records by far more than a constant does."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from privtail.default.acceptance import FINEST, no_finer
from privtail.losses import ExcessLoss, HuberLoss
from privtail.trusted.curator import Curator
from privtail.trusted.events import Event, Plan, Round
from privtail.trusted.means import BoundedMean
from privtail.trusted.mechanisms.noise import GaussianNoise
from privtail.trusted.problem import Problem

Doubles = NDArray[np.float64]

FAR = 3.0
"""Beyond so many scales a residual counts for what it is, not for its square.

No target that showed is farther than that from the centre: a tail that features explain is no harm.
"""

SPARED = 6.0
"""A record may lose so many squared scales more than it does with the constant."""

LEAST = 3.0
"""What it loses beyond is clamped here, or later where that can be seen."""

SERIOUS = 0.05
"""A mean loss of so many squared scales must be seen, however few records it comes from."""

VISIBLE = 3.5
"""It is seen at so many deviations of the noise: of 4,300 harmless models one is refused."""


@dataclass(frozen=True)
class OutlierCheck:
    """A model of a number is not kept that misses by far what a constant does not.

    A linear model extrapolates: with a code for missing values (-999), or a few rows in another
    unit, what holds for most records sends the predictions of the others anywhere. They are few, so
    the gain of the others hides them from `AcceptanceTest`. Here a record counts only for what it
    loses: its Huber loss (of residuals in scales of the target, so that one far target alone loses
    little) above that at the constant, less what a useful model may cost it.

    **Privacy.** One Gaussian release of a mean of values in [0, 1]: of half the range of a gain, so
    ``multiplier`` buys half the noise of one, in units of 1/n.
    """

    def plan(self, multiplier: float, problem: Problem) -> Plan:
        """One release."""
        return (
            Round(stage="outlier check", events=(_event(_noise(multiplier, problem), problem),)),
        )

    def run(
        self, curator: Curator, w: Doubles, constant: Doubles, unit: float, multiplier: float
    ) -> bool:
        """Whether ``w`` does harm; ``unit`` is a scale of the target that its tail fits."""
        problem, square = curator.problem, unit**2
        noise = _noise(multiplier, problem)
        std = _event(noise, problem).std
        clamped = BoundedMean(square * (max(LEAST, SERIOUS / std) if std > 0 else LEAST))
        margin = float(constant[problem.d, 0]) if problem.intercept else 0.0
        excess = ExcessLoss(
            loss=HuberLoss(threshold=FAR * unit), margin=margin, spared=SPARED * square
        )
        lost = float(curator.everyone().scores(excess, [w], clamped).release(noise)[0])
        return lost > VISIBLE * std * clamped.bound and multiplier > 0


def _noise(multiplier: float, problem: Problem) -> GaussianNoise:
    return no_finer(multiplier / 2, problem, FINEST)


def _event(noise: GaussianNoise, problem: Problem) -> Event:
    return noise.event(problem.scores(1, BoundedMean(1.0)))
