"""Whether a released model serves the records better than a constant."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from privtail.losses import Loss, WeightedLoss
from privtail.trusted.curator import Curator
from privtail.trusted.events import Plan, Round
from privtail.trusted.means import ClampedMean
from privtail.trusted.mechanisms.noise import GaussianNoise
from privtail.trusted.problem import Problem

ENOUGH = 100
"""A mean over the records whose noise is its range over this decides all that matters here."""

COUNTED = 0.5
"""Gains of counts are clamped to this part of the mean count."""

Doubles = NDArray[np.float64]


@dataclass(frozen=True, kw_only=True)
class Comparison:
    """Keep a model if it lowers the mean loss of a constant by more than ``deviations`` of noise.

    A record's gain is clamped to the loss of a margin that is off by one scale of the target (to 1
    for labels, COUNTED for counts): neither noise of slopes nor a few outlying records decide. Of
    ``labels``, counts are bought first, since a trained intercept is too noisy for a constant.

    **Privacy.** One Gaussian release of a mean of values in [-1, 1], and one of a histogram of the
    labels; ``multiplier`` is the noise of the first in units of 1/n; the second has half of it, in
    counts.
    """

    labels: bool = False
    deviations: float = 2.0

    def plan(self, multiplier: float, problem: Problem) -> Plan:
        """One or two releases."""
        events = [self._noise(multiplier, problem).event(problem.improvement(ClampedMean(1.0)))]
        if self.labels:
            counts = problem.histogram(1, max(1, problem.outputs - 1))
            events.insert(0, self._noise(multiplier / 2, problem).event(counts))
        return (Round(events=tuple(events)),)

    def run(
        self, curator: Curator, loss: Loss, w: Doubles, constant: Doubles, unit: float,
        multiplier: float,
    ) -> tuple[Doubles, bool]:  # fmt: skip
        """The constant to compare with, and whether ``w`` is better; without noise it stays.

        ``unit`` is the scale of a real target.
        """
        problem, noise = curator.problem, self._noise(multiplier, curator.problem)
        batch = curator.everyone()
        if self.labels:
            edges = np.arange(max(1, problem.outputs - 1)) + 0.5
            less = self._noise(multiplier / 2, problem)
            counts = batch.histogram((-1,), edges).release(less)
            if loss.targets in ("binary", "class") and problem.intercept:
                if isinstance(loss, WeightedLoss):
                    counts = counts * loss.weights
                constant = np.zeros_like(w)
                constant[-1] = _log_odds(counts, max(1.0, less.multiplier), problem)
        bound = _loss_of_one(loss, unit)
        gain = batch.improvement(loss, w, constant, ClampedMean(bound)).release(noise)
        better = gain[0] > self.deviations * noise.multiplier * bound / problem.n
        return constant, bool(better or multiplier == 0)

    def _noise(self, multiplier: float, problem: Problem) -> GaussianNoise:
        return GaussianNoise(max(multiplier, problem.n / ENOUGH) if multiplier > 0 else 0.0)


def _log_odds(counts: Doubles, noise: float, problem: Problem) -> Doubles:
    """Margins of a constant model from noisy counts of labels; no count is less than its noise."""
    logs = np.log(np.maximum(counts, noise))
    return logs[1:] - logs[:1] if problem.outputs == 1 else logs - logs.mean()


def _loss_of_one(loss: Loss, unit: float) -> float:
    """Loss of a real target that a margin misses by ``unit``; 1 for labels, COUNTED for counts."""
    if loss.targets == "count":
        return COUNTED
    if loss.targets != "real":
        return 1.0
    missed, hit = loss.values(np.array([[unit], [0.0]]), np.zeros(2))
    bound = float(missed - hit)
    return bound if 0 < bound < math.inf else 1.0
