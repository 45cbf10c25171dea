"""Whether a released model serves the records better than a constant."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from privtail.losses import Loss, Targets, WeightedLoss
from privtail.trusted.curator import Curator
from privtail.trusted.events import Plan, Round
from privtail.trusted.means import ClampedMean
from privtail.trusted.mechanisms.noise import GaussianNoise
from privtail.trusted.problem import Problem

ENOUGH = 100
"""A mean over the records whose noise is its range over this decides all that matters here."""

FINEST = 10_000
"""A comparison is as fine as the range of a gain over this; no model is worth a finer one."""

VISIBLE = 0.01
"""Gains of real targets are clamped as late as this part of a typical loss can still be seen."""

COUNTED = 0.5
"""Gains of counts are clamped to this part of the mean count."""

Doubles = NDArray[np.float64]


@dataclass(frozen=True, kw_only=True)
class Comparison:
    """Keep a model if it lowers the mean loss of a constant by more than ``deviations`` of noise.

    A record's gain is clamped to the loss of a margin that is off by one scale of the target (to 1
    for labels, COUNTED for counts): neither noise of slopes nor a few outlying records decide.
    Where ``targets`` are labels, how often each occurs is bought first, since a trained intercept
    is too noisy for a constant.

    **Privacy.** One Gaussian release of a mean of values in [-1, 1], and one of a histogram of the
    labels; ``multiplier`` is the noise of the first in units of 1/n; the second has half of it, in
    counts.
    """

    targets: Targets = "real"
    deviations: float = 2.0

    def plan(self, multiplier: float, problem: Problem) -> Plan:
        """One or two releases."""
        events = [
            no_finer(multiplier, problem, FINEST).event(problem.improvement(ClampedMean(1.0)))
        ]
        if self._labels:
            counts = problem.histogram(1, max(1, problem.outputs - 1))
            events.insert(0, no_finer(multiplier / 2, problem).event(counts))
        return (Round(events=tuple(events)),)

    def run(
        self, curator: Curator, loss: Loss, w: Doubles, constant: Doubles, unit: float,
        multiplier: float, size: float = 0.0,
    ) -> tuple[Doubles, bool]:  # fmt: skip
        """The constant to compare with, and whether ``w`` is better; without noise it stays.

        ``unit`` is the scale of a real target; gains up to the loss of a margin that is off by
        ``size`` count in full.
        """
        problem, noise = curator.problem, no_finer(multiplier, curator.problem, FINEST)
        batch = curator.everyone()
        if self._labels:
            edges = np.arange(max(1, problem.outputs - 1)) + 0.5
            less = no_finer(multiplier / 2, problem)
            answer = problem.histogram(1, len(edges))
            counts = batch.histogram((-1,), edges).release(less)
            if problem.intercept:
                counts = np.maximum(counts, max(1.0, less.event(answer).std))
                constant = np.zeros_like(w)
                constant[-1] = _log_odds(counts, loss, problem)
        bound = _loss_of_one(loss, unit)
        if loss.targets == "real" and multiplier > 0:
            relative = noise.event(problem.improvement(ClampedMean(1.0))).std
            bound *= max(1.0, VISIBLE / (self.deviations * relative))
            bound = max(bound, _loss_of_one(loss, size)) if size > 0 else bound
        mean = ClampedMean(bound)
        gain = batch.improvement(loss, w, constant, mean).release(noise)
        better = gain[0] > self.deviations * noise.event(problem.improvement(mean)).std
        return constant, bool(better or multiplier == 0)

    @property
    def _labels(self) -> bool:
        return self.targets in ("binary", "class")


def no_finer(multiplier: float, problem: Problem, enough: int = ENOUGH) -> GaussianNoise:
    """Noise of this multiplier, but not less than n / ``enough``."""
    least = problem.n / problem.max_rows / enough
    return GaussianNoise(max(multiplier, least) if multiplier > 0 else 0.0)


def _log_odds(counts: Doubles, loss: Loss, problem: Problem) -> Doubles:
    """Margins of the constant model of positive counts of labels."""
    weights = loss.weights if isinstance(loss, WeightedLoss) else 1.0
    logs = np.log(counts * weights)
    return np.asarray(logs[1:] - logs[:1] if problem.outputs == 1 else logs - logs.mean())


def _loss_of_one(loss: Loss, unit: float) -> float:
    """Loss of a real target that a margin misses by ``unit``; 1 for labels, COUNTED for counts."""
    if loss.targets == "count":
        return COUNTED
    if loss.targets != "real":
        return 1.0
    missed, hit = loss.values(np.array([[unit], [0.0]]), np.zeros(2))
    bound = float(missed - hit)
    return bound if 0 < bound < math.inf else 1.0
