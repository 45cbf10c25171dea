"""The default: clipped proximal gradient on privately scaled features, with a bought threshold."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from privtail.algorithms.quantile_scales import QuantileScales
from privtail.algorithms.result import Result, starting_point
from privtail.domains import Domain, require
from privtail.losses import Loss
from privtail.trusted.curator import Curator
from privtail.trusted.events import Plan, Round, compose
from privtail.trusted.means import ClippedMean
from privtail.trusted.mechanisms.noise import GaussianNoise
from privtail.trusted.problem import Problem
from privtail.trusted.sampling import Everyone

LEVELS = 2.0 ** np.arange(-64, 65, 0.5)
"""Public edges for gradient norms."""


@dataclass(frozen=True, kw_only=True)
class ScaledDescent:
    """Full-batch clipped proximal gradient that needs to know nothing about the data.

    1. Centre and scale every feature (and a numeric target) by private quantiles.
    2. Buy a clipping threshold: the ``level`` quantile of the gradient norms at the start.
    3. ``steps`` clipped, noisy, full-batch proximal steps of decaying length; average of the
       second half of the iterates.
    4. If the planned noise is larger than what was found, shrink to the private constant.

    Not from a paper: clipping is Abadi et al. 2016, proximal steps W19 Algorithm 1.

    Parameters
    ----------
    steps : gradient releases.
    level : which quantile of the starting gradient norms becomes the threshold, in (0, 1).
    pace : first step length in units of target scale / threshold.
    decay : step t is the first step over t^decay.
    most_noise : cap on the first step, so that noise alone walks at most this many target scales.
    scale_target : centre and scale a numeric target too.
    scale_share, threshold_share : parts of the descent's variance budget spent on steps 1 and 2.

    **Privacy.** Three kinds of Gaussian releases: one histogram of l2 sensitivity sqrt(2 d), one
    of sqrt 2, ``steps`` gradients of 2 threshold/n. Exact Gaussian composition. Everything else is
    post-processing of what was released.

    **Utility.** None proved; measured in ``benchmarks/``.
    """

    steps: int = 100
    level: float = 0.9
    pace: float = 2.0
    decay: float = 0.5
    most_noise: float = 0.3
    scale_target: bool = True
    scale_share: float = 0.1
    threshold_share: float = 0.05

    def plan(self, multiplier: float, problem: Problem) -> Plan:
        """Scales, threshold, descent."""
        descent = GaussianNoise(multiplier).event(problem.gradient(ClippedMean(1.0)))
        norms = problem.gradient_norms(len(LEVELS))
        return compose(
            QuantileScales(target=self.scale_target).plan(self._scales(multiplier), problem),
            (
                Round(events=(GaussianNoise(self._threshold(multiplier)).event(norms),)),
                Round(events=(descent,), times=self.steps),
            ),
        )

    def run(
        self, curator: Curator, loss: Loss, domain: Domain, multiplier: float,
        start: ArrayLike | None = None,
    ) -> Result:  # fmt: skip
        """The four stages; parameters in the units of the raw features."""
        require(domain, "prox", "scaled", needed_by="ScaledDescent")
        problem, d = curator.problem, curator.problem.d
        numeric = self.scale_target
        found = QuantileScales(target=numeric).run(curator, self._scales(multiplier))  # 1
        scales, centres = found.scales[:d], found.centres[:d]
        if curator.sparse or not problem.intercept:
            centres = np.zeros(d)
        curator.transform(1 / scales, -centres / scales)
        domain = domain.scaled(1 / scales)

        w = starting_point(problem, start)
        unit = float(found.scales[d]) if numeric else 1.0
        if numeric and problem.intercept and start is None:
            w[d] = found.centres[d]
        threshold = self._buy_threshold(curator, loss, w, unit, multiplier)  # 2
        mean = ClippedMean(threshold)
        reach = self._walk(problem, threshold, multiplier)
        first = min(
            self.pace * unit / threshold,
            1 / (2 * loss.curvature),
            self.most_noise * unit / reach if reach > 0 else math.inf,
        )

        total, kept = np.zeros_like(w), 0
        for t, batch in enumerate(curator.rounds(Everyone(), self.steps), start=1):  # 3
            g = batch.gradient(loss, w, mean).release(GaussianNoise(multiplier))
            step = first / t**self.decay
            w = domain.prox(w - step * g.reshape(w.shape), step)
            if 2 * t > self.steps:
                total, kept = total + w, kept + 1
        w = self._shrunk(total / kept, problem, first * reach)  # 4
        w[:d] /= scales[:, None]
        if problem.intercept:
            w[d] -= centres @ w[:d]
        return Result(w, self.steps, multiplier)

    def _scales(self, multiplier: float) -> float:
        return multiplier / math.sqrt(2 * self.steps * self.scale_share)

    def _threshold(self, multiplier: float) -> float:
        return multiplier / math.sqrt(2 * self.steps * self.threshold_share)

    def _buy_threshold(
        self, curator: Curator, loss: Loss, w: NDArray[np.float64], unit: float, multiplier: float
    ) -> float:
        std = self._threshold(multiplier)
        counts = curator.everyone().gradient_norms(loss, w, LEVELS).release(GaussianNoise(std))
        kept = np.where(counts > 3.5 * std, counts, 0.0)
        if kept.sum() <= 0:
            return unit * math.sqrt(curator.problem.rows)
        cell = int(np.searchsorted(np.cumsum(kept), self.level * kept.sum()))
        return float(LEVELS[min(cell, len(LEVELS) - 1)])

    def _walk(self, problem: Problem, threshold: float, multiplier: float) -> float:
        """Length of the last iterate if gradients were noise alone and the first step were 1."""
        std = multiplier * threshold / problem.n
        walked = float(np.sum(np.arange(1, self.steps + 1) ** (-2 * self.decay)))
        return std * math.sqrt(walked * problem.rows * problem.outputs)

    def _shrunk(self, w: NDArray[np.float64], problem: Problem, noise: float) -> NDArray[np.float64]:
        """Positive-part shrinkage of the slopes once noise is half of what was released."""
        slopes = w[: problem.d]
        signal = float(np.sum(slopes**2))
        if noise**2 > 0.5 * signal:
            slopes *= max(0.0, 1 - noise**2 / signal) if signal > 0 else 0.0
        return w
