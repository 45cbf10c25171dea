"""The default: clipped proximal gradient on privately scaled features, with a bought threshold."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from privtail.algorithms.quantile_scales import ENOUGH, QuantileScales, above_noise
from privtail.algorithms.result import Result
from privtail.algorithms.standardized import Standard
from privtail.domains import Domain, require
from privtail.errors import IncompatibleParts
from privtail.losses import AnyLoss, GeneralLoss, Loss
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
    4. If the target's scale was not found, or the released gradients do not show that the loss
       fell, shrink to the private constant.

    Stage 4 costs nothing: the trapezoid sum of <gradient, move> along the path estimates the change
    of the clipped loss without bias (the noise of a gradient enters its own move with the public
    expectation -step std^2 size), with a public standard deviation of at most
    std |path| sqrt(1.25). The slopes are kept if the estimate lies a deviation below zero.

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
    scale_share: float = 0.5
    threshold_share: float = 0.1
    check_share: float = 0.1

    needs: ClassVar[tuple[str, ...]] = ("prox", "scaled")

    def plan(self, multiplier: float, problem: Problem) -> Plan:
        """Scales, threshold, descent."""
        descent = GaussianNoise(multiplier).event(problem.gradient(ClippedMean(1.0)))
        norms = problem.gradient_norms(len(LEVELS))
        return compose(
            QuantileScales(target=self.scale_target).plan(self._scales(multiplier), problem),
            (
                Round(events=(GaussianNoise(self._threshold(multiplier, problem.n)).event(norms),)),
                Round(events=(descent,), times=self.steps),
                Round(events=(GaussianNoise(self._check(multiplier, problem.n)).event(problem.improved()),)),
            ),
        )

    def run(
        self, curator: Curator, loss: AnyLoss, domain: Domain, multiplier: float,
        start: ArrayLike | None = None,
    ) -> Result:  # fmt: skip
        """The four stages; parameters in the units of the raw features."""
        if isinstance(loss, GeneralLoss):
            raise IncompatibleParts(
                "ScaledDescent needs a loss of a margin; for a GeneralLoss use ProximalGradient."
            )
        require(domain, *self.needs, needed_by="ScaledDescent")
        problem = curator.problem
        found = QuantileScales(target=self.scale_target).run(curator, self._scales(multiplier))  # 1
        standard = Standard.of(found, curator)
        unit, w = standard.unit, standard.start(problem, start)
        domain = domain.scaled(1 / standard.scales)
        threshold = self._buy_threshold(curator, loss, w, unit, multiplier)  # 2
        mean = ClippedMean(threshold)
        std = multiplier * threshold / problem.n
        walk = std * math.sqrt(float(np.sum(self._lengths**2)) * w.size)
        longest = self.pace * unit / threshold, 1 / (2 * loss.curvature)
        first = min(*longest, self.most_noise * unit / walk if walk > 0 else math.inf)

        total, move, kept = np.zeros_like(w), np.zeros_like(w), 0
        change = moved = changes = 0.0
        for t, batch in enumerate(curator.rounds(Everyone(), self.steps)):  # 3
            g = batch.gradient(loss, w, mean).release(GaussianNoise(multiplier)).reshape(w.shape)
            change += 0.5 * float(np.sum(g * move))
            if 2 * (t + 1) > self.steps:
                total, changes, kept = total + w, changes + change, kept + 1
            step = first * self._lengths[t]
            move = domain.prox(w - step * g, step) - w
            w = w + move
            change += 0.5 * (float(np.sum(g * move)) + step * std**2 * w.size)
            moved += float(np.sum(move**2))
        w = total / kept if standard.seen else standard.start(problem, start)  # 4
        constant = w.copy()
        constant[: problem.d] = 0.0
        noise = self._check(multiplier, problem.n)
        won = float(curator.everyone().improved(loss, w, constant).release(GaussianNoise(noise))[0])
        if not standard.resolved or won < problem.n / 2 + 2 * noise:
            w = constant
        return Result(standard.raw(w, problem), self.steps, multiplier)

    @property
    def _lengths(self) -> NDArray[np.float64]:
        """Lengths of the steps in units of the first."""
        return np.arange(1.0, self.steps + 1) ** -self.decay

    def _scales(self, multiplier: float) -> float:
        return multiplier / math.sqrt(2 * self.steps * self.scale_share)

    def _threshold(self, multiplier: float, n: int) -> float:
        std = multiplier / math.sqrt(2 * self.steps * self.threshold_share)
        return max(std, n / ENOUGH) if std > 0 else 0.0

    def _check(self, multiplier: float, n: int) -> float:
        std = multiplier / math.sqrt(4 * self.steps * self.check_share)
        return max(std, n / ENOUGH) if std > 0 else 0.0

    def _buy_threshold(
        self, curator: Curator, loss: Loss, w: NDArray[np.float64], unit: float, multiplier: float
    ) -> float:
        n = curator.problem.n
        std = self._threshold(multiplier, n)
        counts = curator.everyone().gradient_norms(loss, w, LEVELS).release(GaussianNoise(std))
        kept = above_noise(counts, std, n, LEVELS)
        if kept.sum() <= 0:
            return unit * math.sqrt(curator.problem.rows)
        noise = multiplier * math.sqrt(w.size) / n
        level = 1 - min(0.9, max(1 - self.level, 4 * noise))
        cell = int(np.searchsorted(np.cumsum(kept), level * kept.sum()))
        return float(LEVELS[min(cell, len(LEVELS) - 1)])
