"""How long slopes should be for least squares, where little budget clips most records."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from privtail.algorithms.level import surely
from privtail.algorithms.metric import Metric
from privtail.algorithms.sizes import Sizes
from privtail.losses import SquaredLoss
from privtail.trusted.curator import Curator
from privtail.trusted.events import Event, Plan, Round
from privtail.trusted.means import ClampedMean
from privtail.trusted.mechanisms.noise import GaussianNoise
from privtail.trusted.problem import Problem

Doubles = NDArray[np.float64]

WIDE = 2.0
"""Scores count up to so many of their deviations when gains are clamped."""

PLENTY = 0.05
"""Part of the target's deviation that noise of a prediction may be."""

UNSURE = 2.0
"""Slopes that are too short by fewer deviations of the noise are long enough."""

LEAST = 2.0**-64
"""A score of less than this part of the residuals has no length."""


@dataclass(frozen=True)
class Stretch:
    """By how much slopes are too short: least squares of the target on the score that they make.

    A convex loss that is not the right one finds the direction of the slopes all the same, but not
    their length, if features are elliptical (Li and Duan 1989). Where most records are clipped, as
    of a target that is mostly zero, slopes are many times too short.

    The first of two numbers is what the slopes gain over a constant: if g, and the score has
    variance v, its best length is 1/2 + g/v of what it is. The second is what the longer slopes
    gain over the others: less than noise, and they stay what they were. Residuals count up to where
    noise adds what clamping misses, or further, while noise stays small beside the target.

    **Privacy.** Two Gaussian releases of means of clamped values.
    """

    noise: GaussianNoise

    def plan(self, problem: Problem) -> Plan:
        """Two gains."""
        return (Round(stage="slope rescaling", events=(self._event(problem),), times=2),)

    def run(
        self, curator: Curator, w: Doubles, constant: Doubles, sizes: Sizes, metric: Metric,
        deviation: float,
    ) -> tuple[float, float]:  # fmt: skip
        """How many times as long what ``w`` adds to the constant should be, and the noise of that.

        To the noise is added what it hides: lengths beyond it are less than seen (`surely`). 1 and
        0 if ``w`` is long enough. ``deviation`` is that of the target.
        """
        problem, move = curator.problem, w - constant
        std = self._event(problem).std
        squares = metric.coordinates(move, problem.d) ** 2
        variance = float(np.sum(metric.likely_rates[:, None] * squares))
        edge = max(sizes.balanced(WIDE * std), plenty(deviation, WIDE * std))
        if math.sqrt(variance) < LEAST * edge:
            variance = 0.0
        size = WIDE * math.sqrt(variance) * edge if variance else edge
        gain = self._gain(curator, w, constant, size)
        longer, noise = (gain / variance - 0.5, std * size / variance) if variance else (0.0, 0.0)
        kept = max(0.0, longer) * surely(longer, UNSURE * noise)
        size *= max(1.0, kept)
        gain = self._gain(curator, w + kept * move, w, size)
        return (1 + kept, noise + longer - kept) if kept > 0 and gain > std * size else (1.0, 0.0)

    def _gain(self, curator: Curator, w: Doubles, base: Doubles, size: float) -> float:
        """Of ``w`` over another, clamped at ``size``."""
        gains = curator.everyone().improvement(SquaredLoss(), w, base, ClampedMean(size))
        return float(gains.release(self.noise)[0])

    def _event(self, problem: Problem) -> Event:
        return self.noise.event(problem.improvement(ClampedMean(1.0)))


def plenty(deviation: float, noise: float) -> float:
    """Residuals clipped here, in ``noise`` of them, have one that is small beside the target."""
    return PLENTY * deviation / noise if noise > 0 else 0.0
