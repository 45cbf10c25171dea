"""Means by iterated re-centring: CoinPress."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from privtail.robust_means import ClippedMean
from privtail.trusted.curator import Curator
from privtail.trusted.events import Plan, Round
from privtail.trusted.maps import FeatureMap
from privtail.trusted.mechanisms.noise import GaussianNoise
from privtail.trusted.problem import Problem

Doubles = NDArray[np.float64]
TAIL = math.log(1 / 0.01)


@dataclass(frozen=True, kw_only=True)
class CoinPress:
    """Mean of columns of deviation at most 1, found in a ball that shrinks with every release.

    Biswas, Dong, Kamath, Ullman, "CoinPress: practical private mean and covariance estimation",
    NeurIPS 2020, the multivariate mean.

    ============  =====================  =======================================================
    paper         here                   meaning
    ============  =====================  =======================================================
    t, rho_i      ``shares``             parts of the budget of the steps
    c, r          0, ``radius`` sqrt(d)  ball that holds the mean at first
    gamma         reach                  distance from the mean up to which a record is not clipped
    ============  =====================  =======================================================

    **Privacy.** One Gaussian release per step; together they cost what one release of noise
    ``multiplier`` costs. The ball of a step is a function of the releases before it.

    **Utility.** The first radius costs accuracy in the first steps only: for normal columns n of
    order d/alpha^2 + d/(alpha sqrt(rho)) + sqrt(d log(radius) /rho) records give an error alpha.

    **Deviations from the paper.** Its gamma is the length of a normal vector. Heavy tails need
    more: gamma balances the bias d/(4 gamma), which deviations of 1 allow, against the noise, and
    is not below the paper's; the bias enters the next radius too. Every step clips the records
    themselves, where the authors' code clips what earlier steps have clipped.
    """

    radius: float = 2.0
    shares: tuple[float, ...] = (0.1, 0.2, 0.7)

    def noises(self, multiplier: float) -> list[GaussianNoise]:
        """The noise of every step."""
        return [GaussianNoise(multiplier / math.sqrt(share)) for share in self.shares]

    def plan(self, multiplier: float, problem: Problem) -> Plan:
        """One Gaussian release of a clipped mean per step."""
        answer = problem.means(ClippedMean(1.0))
        return tuple(
            Round(stage="mean", events=(z.event(answer),)) for z in self.noises(multiplier)
        )

    def run(
        self, curator: Curator, multiplier: float, scales: Doubles, centres: Doubles,
        part: float = 1.0,
    ) -> tuple[Doubles, Doubles, Doubles]:  # fmt: skip
        """Mean, standard deviation of its noise, and reach, (d,) each, of the raw columns.

        Values that are nearer to the ``centres`` than the reach are not clipped in the last step.

        ``scales`` and ``centres`` are the public units and starting point of the columns, which
        sparse records do not allow; ``part`` of the n rows counts.
        """
        n, d = curator.problem.n, curator.problem.d
        c, r = np.zeros(d), self.radius * math.sqrt(d)
        length = math.sqrt(d + 2 * math.sqrt(d * TAIL) + 2 * TAIL)
        std, reach = 0.0, np.zeros(d)
        for noise in self.noises(multiplier):
            slope = max(noise.multiplier * math.sqrt(d) / n, 1e-12)
            gamma = max(length, math.sqrt(d / (4 * slope)))
            map_ = FeatureMap.of(d, 1 / scales, -(centres / scales + c))
            answer = curator.everyone(map_).means(ClippedMean(r + gamma))
            std = noise.event(answer.sensitivity).std / part
            reach = np.maximum(r + gamma - np.abs(c), 0.0)
            c = c + answer.release(noise) / part
            r = math.sqrt(1 / n / part + std**2) * length + d / (4 * gamma)
        return centres + scales * c, std * scales, reach * scales
