"""Median of the noisy clamped means of disjoint groups: Kamath, Singhal and Ullman's mean."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from privtail.robust_means import ClampedMean
from privtail.trusted.curator import Curator
from privtail.trusted.events import Plan, Round
from privtail.trusted.maps import FeatureMap
from privtail.trusted.mechanisms.noise import GaussianNoise
from privtail.trusted.problem import Problem
from privtail.trusted.sampling import DisjointParts

Doubles = NDArray[np.float64]


@dataclass(frozen=True, kw_only=True)
class MedianOfNoisyMeans:
    """Means of groups, each with noise of its own, and their median, column by column.

    Kamath, Singhal, Ullman, "Private mean estimation of heavy-tailed distributions", COLT 2020,
    Algorithms 1 and 2, with Gaussian noise.

    ============  =====================  =======================================================
    paper         here                   meaning
    ============  =====================  =======================================================
    m             ``groups``             200 log(2/beta) there; 10 to 30 are enough
    [a, b]        -1, 1                  range found before, the unit of the columns here
    ============  =====================  =======================================================

    **Privacy.** A record is in one group, so all groups cost what one costs.

    **Utility.** With k-th central moments at most 1, n of order log(1/beta) (1/alpha^2 + 1/(eps
    alpha^(k/(k-1)))) records give an error alpha with probability 1 - beta. Noise before the median
    is averaged by it: a median of exact group means (`ClampedMean` with blocks) needs noise for a
    sensitivity that is ``groups`` times as large.

    **Deviations from the paper.** Every group finds its range in half of its records there; here
    there is one private range for all, for a part of the budget, and all records are used. Gaussian
    noise, as in the paper's variant for concentrated privacy; columns one by one.
    """

    groups: int

    def plan(self, multiplier: float, problem: Problem) -> Plan:
        """One Gaussian release per group, of parts of one deal."""
        sampling = DisjointParts(self.groups)
        answer = problem.sampled(sampling).means(ClampedMean(1.0))
        event = GaussianNoise(multiplier).event(answer)
        return (Round(stage="mean", sampling=sampling, events=(event,), times=self.groups),)

    def run(
        self, curator: Curator, multiplier: float, scales: Doubles, centres: Doubles,
        part: float = 1.0,
    ) -> tuple[Doubles, Doubles, Doubles]:  # fmt: skip
        """Mean, standard deviation of its noise, and reach, (d,) each, of the raw columns.

        Values are clamped to ``centres`` +- ``scales``; ``part`` of the n rows counts.
        """
        map_ = FeatureMap.of(len(scales), 1 / scales, -centres / scales)
        noise, means, std = GaussianNoise(multiplier), [], 0.0
        for batch in curator.rounds(DisjointParts(self.groups), self.groups, map_):
            answer = batch.means(ClampedMean(1.0))
            std = noise.event(answer.sensitivity).std
            means.append(answer.release(noise))
        # The variance of a median of normals, exact for one group and for many.
        kept = math.sqrt(math.pi / 2 / (self.groups + math.pi / 2 - 1))
        mean = centres + scales * np.median(means, axis=0) / part
        return mean, kept * std * scales / part, scales
