"""Whether a released model serves the records better than a constant."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from privtail.losses import Loss
from privtail.trusted.curator import Curator
from privtail.trusted.events import Plan, Round
from privtail.trusted.means import ClampedMean
from privtail.trusted.mechanisms.noise import GaussianNoise
from privtail.trusted.problem import Problem

ENOUGH = 100
"""A mean over the records whose noise is its range over this decides all that matters here."""

Doubles = NDArray[np.float64]


@dataclass(frozen=True, kw_only=True)
class Comparison:
    """Keep a model if it lowers the mean loss of a constant by more than ``deviations`` of noise.

    A record's gain is clamped to the loss of a margin that is off by one scale of the target (to
    1 for labels and counts): neither the slopes' noise nor a few outlying records decide.

    **Privacy.** One Gaussian release of a mean of values in [-1, 1].
    """

    deviations: float = 2.0

    def plan(self, multiplier: float, problem: Problem) -> Plan:
        """One release."""
        answer = problem.improvement(ClampedMean(1.0))
        return (Round(events=(self._noise(multiplier, problem).event(answer),)),)

    def run(
        self, curator: Curator, loss: Loss, w: Doubles, constant: Doubles, unit: float,
        multiplier: float,
    ) -> bool:  # fmt: skip
        """Whether ``w`` is better; ``unit`` is the scale of a real target."""
        n, noise = curator.problem.n, self._noise(multiplier, curator.problem)
        bound = _loss_of_one(loss, unit)
        batch = curator.everyone()
        gain = batch.improvement(loss, w, constant, ClampedMean(bound)).release(noise)
        return bool(gain[0] > self.deviations * noise.multiplier * bound / n)

    def _noise(self, multiplier: float, problem: Problem) -> GaussianNoise:
        return GaussianNoise(max(multiplier, problem.n / ENOUGH) if multiplier > 0 else 0.0)


def _loss_of_one(loss: Loss, unit: float) -> float:
    """Loss of a real target that a margin misses by ``unit``; 1 for other targets."""
    if loss.targets != "real":
        return 1.0
    missed, hit = loss.values(np.array([[unit], [0.0]]), np.zeros(2))
    bound = float(missed - hit)
    return bound if 0 < bound < math.inf else 1.0
