"""Proximal steps in a metric, averaged; and what the noise of their gradients adds."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from privtail.algorithms.level import bend, kinked
from privtail.algorithms.metric import Metric
from privtail.algorithms.sizes import Sizes
from privtail.domains import L2, Domain, Slopes, Unconstrained
from privtail.losses import HuberLoss, Loss, SquaredLoss
from privtail.trusted.curator import Curator
from privtail.trusted.means import MallowsMean
from privtail.trusted.mechanisms.noise import GaussianNoise
from privtail.trusted.sampling import Everyone

Doubles = NDArray[np.float64]

RUNGS = 3
"""Wider thresholds that are tried, each with a tenth of the steps."""

LONGER = 2.0
"""Rows are shrunk to this many times the reach at last: so long the second moments know them."""

BLOCK = 10
"""Principal directions whose moves are judged together."""

DOUBT = 2.0
"""What noise may explain of a move counts so many times against it."""

CONTRACTS = 0.2
"""Part of the metric's curvature that records with clipped squares are taken to have.

It enters the stated noise alone. Other losses may be flat where the records are: 0.
"""


@dataclass(frozen=True)
class _Phase:
    """Steps with one threshold.

    Attributes
    ----------
    mean : how rows and residuals are clipped.
    steps, length : how many, and how long the first is.
    std : noise of a gradient.
    shrinking : whether steps become shorter, to nothing: at a kink steps of one length go to and
        fro for ever.
    """

    mean: MallowsMean
    steps: int
    length: float
    std: float
    shrinking: bool

    @property
    def skipped(self) -> int:
        """Iterates that do not enter the average: a third, or all but the last tenth."""
        return self.steps - max(1, self.steps // 10) if self.shrinking else self.steps // 3

    @property
    def lengths(self) -> Doubles:
        """(steps,) of all steps (shrinking: Zamani and Glineur 2023)."""
        steps = np.arange(self.steps)
        return self.length * (1 - steps / self.steps if self.shrinking else np.ones(self.steps))


class AveragedDescent:
    """Proximal steps in a metric, from noisy gradients of rows and residuals that are clipped.

    Parameters
    ----------
    metric : of the steps; rows are shrunk to its reach.
    law : the noise of every gradient.
    unit : scale of the target; noise alone walks at most ``most_noise`` of them.

    Attributes
    ----------
    loss : what the steps minimise.
    """

    def __init__(
        self, curator: Curator, loss: Loss, domain: Domain, metric: Metric, law: GaussianNoise,
        unit: float, most_noise: float,
    ):  # fmt: skip
        self._curator, self.loss, self._domain, self._metric = curator, loss, domain, metric
        self._law, self._unit, self._most = law, unit, most_noise * unit
        self._noise = np.zeros(len(metric.values))

    def run(self, w: Doubles, threshold: float, steps: int) -> Doubles:
        """Average of the last iterates from ``w``; ``w`` without a step."""
        return self._run(w, self._phase(threshold, 1.0, steps)) if steps else w

    @property
    def noise(self) -> Doubles:
        """(d,) standard deviation of what noise adds to the slopes of the last averages."""
        return self._metric.deviations(self._noise, self._curator.problem.d)

    def widened(
        self, w: Doubles, threshold: float, steps: int, sizes: Sizes,
        pays: Callable[[Doubles, Doubles, float], bool],
    ) -> Doubles:  # fmt: skip
        """From ``w`` on with wider thresholds and longer rows, as far as they show more than noise.

        Blocks of principal directions of a move are shortened by what their length owes to noise;
        but for the last move, if the whole of it ``pays`` at its threshold.
        """
        d, n, metric = self._curator.problem.d, self._curator.problem.n, self._metric
        steps //= RUNGS
        widest = max(threshold, self.balanced(sizes, steps))
        for wide, longer in np.geomspace((threshold, 1.0), (widest, LONGER), RUNGS + 1)[1:]:
            phase, before = self._phase(wide, longer, steps), self._noise
            bold = self._run(w, phase)
            noise = self._variances(phase) + sizes.mean_square(wide) / n
            seen, bolder = metric.coordinates(bold - w, d), self._noise
            shares = _shares(seen, noise, self._block(d))
            w = np.vstack([w[:d] + metric.slopes(shares * seen, d), bold[d:]])
            self._noise = _mixed(before, bolder, shares.mean(axis=1))
        if pays(bold, w, widest):
            w, self._noise = bold, bolder
        return w

    def balanced(self, sizes: Sizes, steps: int) -> float:
        """The threshold at which so many steps add as much noise to a direction as it misses."""
        variances = self._variances(self._phase(1.0, 1.0, steps))
        return sizes.balanced(math.sqrt(float(variances.mean())))

    def _phase(self, threshold: float, longer: float, steps: int) -> _Phase:
        """So many steps, as long as curvature and noise allow; rows ``longer`` times the reach."""
        problem, mean = self._curator.problem, MallowsMean(threshold, longer * self._metric.reach)
        std = self._law.event(problem.gradient(mean)).std
        first = 1 / bend(self.loss, self._unit)
        walk = std * math.sqrt(steps * problem.outputs) * self._metric.spread
        length = min(first, self._most / walk) if walk > 0 else first
        return _Phase(mean, steps, length, std, kinked(self.loss))

    def _run(self, w: Doubles, phase: _Phase) -> Doubles:
        total, lengths = np.zeros_like(w), phase.lengths
        for t, batch in enumerate(self._curator.rounds(Everyone(), phase.steps)):
            g = batch.gradient(self.loss, w, phase.mean).release(self._law)
            w = self._metric.step(self._domain, w, g.reshape(w.shape), float(lengths[t]))
            total += w if t >= phase.skipped else 0.0
        lasting, added = self._averaged(phase, _contracts(self.loss))
        self._noise = np.hypot(lasting * self._noise, added)
        return total / (phase.steps - phase.skipped)

    def _variances(self, phase: _Phase) -> Doubles:
        """What noise adds to an average of iterates, along the principal directions."""
        return self._averaged(phase, 1.0)[1] ** 2

    def _averaged(self, phase: _Phase, curved: float) -> tuple[Doubles, Doubles]:
        """What an average of iterates keeps of the start's noise, and deviations of its own.

        Along the principal directions, where the loss has this part of the curvature assumed.
        """
        contraction = curved * phase.length * bend(self.loss, self._unit) * self._metric.rates
        rates, each = np.unique(np.minimum(1.0, contraction), return_inverse=True)
        left = np.array([_left(float(rate), phase) for rate in rates])[each]
        kept = np.arange(phase.skipped, phase.steps) + 1
        start = np.mean((1 - rates[:, None]) ** kept, axis=1)[each]
        return start, np.asarray(phase.std * left / np.sqrt(self._metric.values))

    def _block(self, d: int) -> int:
        """Directions that are judged together: all where slopes may not move one by one."""
        domain = self._domain.domain if isinstance(self._domain, Slopes) else self._domain
        return BLOCK if isinstance(domain, Unconstrained | L2) else d + 1


def _contracts(loss: Loss) -> float:
    """Part of the curvature assumed that is counted on in the noise that is stated."""
    return CONTRACTS if isinstance(loss, SquaredLoss | HuberLoss) else 0.0


def _mixed(before: Doubles, after: Doubles, shares: Doubles) -> Doubles:
    """Noise of a fit that went these shares of the way from one to the next."""
    return np.asarray((1 - shares) * before + shares * after)


def _left(rate: float, phase: _Phase) -> float:
    """Length of what an average keeps of the steps where a step contracts at this rate."""
    times = np.arange(phase.steps)
    gaps = times[phase.skipped :] - times[:, None]
    left = np.where(gaps >= 0, (1 - min(1.0, rate)) ** np.maximum(gaps, 0), 0.0).mean(axis=1)
    return float(np.linalg.norm(phase.lengths * left))


def _shares(seen: Doubles, variances: Doubles, size: int) -> Doubles:
    """(rows, 1) how much of a move (rows, 1) in blocks of this size noise does not explain.

    James and Stein 1961, block by block (Cai 1999).
    """
    shares = np.zeros_like(seen)
    for first in range(0, len(seen), size):
        block = slice(first, first + size)
        square = float(np.sum(seen[block] ** 2))
        noise = DOUBT * float(np.sum(variances[block]))
        shares[block] = max(0.0, 1 - noise / square) if square > 0 else 0.0
    return shares
