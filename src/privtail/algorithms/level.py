"""The intercept of least squares: a clipped mean of the residuals."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from privtail.losses import Loss
from privtail.trusted.curator import Curator
from privtail.trusted.events import Event, Plan, Round
from privtail.trusted.means import ClippedMean
from privtail.trusted.mechanisms.noise import GaussianNoise
from privtail.trusted.problem import Problem

Doubles = NDArray[np.float64]

TINY = 2.0**-60
"""Features shrunk by this leave a gradient's intercept alone, and margins as they were."""


@dataclass(frozen=True)
class Level:
    """Moves an intercept by the mean of the residuals of squares.

    **Privacy.** One Gaussian release of a mean of values clipped at ``widest``.
    """

    noise: GaussianNoise

    def plan(self, problem: Problem) -> Plan:
        """One number."""
        return (Round(events=(self._event(problem),)),)

    def deviation(self, problem: Problem) -> float:
        """Standard deviation of the noise, in units of the clipping threshold."""
        return self._event(problem).std

    def run(
        self, curator: Curator, loss: Loss, w: Doubles, widest: float, doubt: float = 0.0
    ) -> Doubles:
        """``w`` with its intercept moved by the mean of the residuals, clipped at ``widest``.

        Below ``doubt`` deviations of the noise it does not move, beyond it moves less than seen
        (James and Stein 1961, for one number).
        """
        problem, map_ = curator.problem, curator.map
        d, flat = problem.d, w.copy()
        flat[:d] /= TINY
        curator.transform(map_.scales * TINY, map_.offsets * TINY)
        g = curator.everyone().gradient(loss, flat, ClippedMean(widest)).take([d])
        move = float(g.release(self.noise)[0])
        curator.transform(map_.scales, map_.offsets)
        w, unsure = w.copy(), doubt * widest * self.deviation(problem)
        if abs(move) > unsure:
            w[d] -= move * (1 - (unsure / move) ** 2)
        return w

    def _event(self, problem: Problem) -> Event:
        return self.noise.event(problem.gradient(ClippedMean(1.0)).take(1))
