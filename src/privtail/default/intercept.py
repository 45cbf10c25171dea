"""The intercept of a constant model, or of least squares: clipped means of derivatives."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from privtail.losses import Loss
from privtail.trusted.curator import Curator
from privtail.trusted.events import Event, Plan, Round
from privtail.trusted.means import ClippedMean
from privtail.trusted.mechanisms.noise import GaussianNoise
from privtail.trusted.problem import Problem
from privtail.trusted.sampling import Everyone

Doubles = NDArray[np.float64]

STEEPEST = 2.0**20
"""A curvature beyond this (a kink, an exponential) says nothing about where the records are."""

TINY = 2.0**-60
"""Features shrunk by this leave a gradient's intercept alone, and margins as they were."""


@dataclass(frozen=True)
class Intercept:
    """Moves an intercept by the mean derivative: for squares, that of the residuals.

    **Privacy.** ``times`` Gaussian releases of a mean of values clipped at ``widest``.
    """

    noise: GaussianNoise
    times: int = 1

    def plan(self, problem: Problem) -> Plan:
        """One number, so many times."""
        return (Round(stage="intercept", events=(self._event(problem),), times=self.times),)

    def deviation(self, problem: Problem) -> float:
        """Standard deviation of the noise, in units of the clipping threshold."""
        return self._event(problem).std

    def run(
        self, curator: Curator, loss: Loss, w: Doubles, widest: float, length: float = 1.0,
        doubt: float = 0.0, told: Callable[[float], float] = float,
    ) -> Doubles:  # fmt: skip
        """``w``, its intercept moved ``length`` times the mean derivative, clipped at ``widest``.

        Or ``length`` times the distance that it has ``told``.

        Below ``doubt`` deviations of the noise it does not move, beyond it moves less than seen
        (`surely`).
        """
        problem, mean = curator.problem, ClippedMean(widest)
        d, flat = problem.d, w.copy()
        flat[:d] /= TINY
        unsure = doubt * widest * self.deviation(problem)
        with tiny_features(curator):
            for batch in curator.rounds(Everyone(), self.times):
                move = float(batch.gradient(loss, flat, mean).take([d]).release(self.noise)[0])
                if abs(move) > unsure:
                    flat[d] -= length * told(move) * surely(move, unsure)
        return np.vstack([w[:d], flat[d:]])

    def _event(self, problem: Problem) -> Event:
        return self.noise.event(problem.gradient(ClippedMean(1.0)).take(1))


def surely(seen: float, unsure: float) -> float:
    """Part of one number beyond ``unsure`` that is no noise (James and Stein 1961); 0 below."""
    return 1 - (unsure / seen) ** 2 if abs(seen) > unsure else 0.0


@contextmanager
def tiny_features(curator: Curator) -> Iterator[None]:
    """Rows are as long as their intercept meanwhile: features count `TINY` times what they did."""
    map_ = curator.map
    with curator.transformed(map_.scales * TINY, map_.offsets * TINY):
        yield


def bend(loss: Loss, unit: float) -> float:
    """Curvature of a loss; of one with a kink, over moves of the target's scale."""
    bend = loss.curvature if loss.curvature < STEEPEST else loss.lipschitz / unit
    return bend if 0 < bend < math.inf else 1.0


def kinked(loss: Loss) -> bool:
    """Whether derivatives jump, so that no step is short enough for its curvature."""
    return loss.lipschitz < STEEPEST <= loss.curvature
