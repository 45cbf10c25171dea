"""Counts: a bought mean, and a descent that starts there."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from privtail.algorithms.protocol import Algorithm
from privtail.algorithms.result import Result, starting_point
from privtail.domains import Domain, Multiple, require
from privtail.errors import IncompatibleParts
from privtail.losses import POISSON_MARGIN, AnyLoss, PoissonLoss
from privtail.trusted.curator import Curator
from privtail.trusted.events import Plan, Round, compose
from privtail.trusted.mechanisms.noise import GaussianNoise
from privtail.trusted.problem import Problem

POWERS = 2.0 ** np.arange(-63, 64)
EDGES = np.append(POWERS / math.sqrt(2), POWERS[-1] * math.sqrt(2))
"""Public edges for counts: a cell for zero, then one around every power of two."""


@dataclass(frozen=True, kw_only=True)
class CountDescent:
    """`PoissonLoss` by another algorithm that starts at the logarithm of a private mean.

    The curvature of exp(margin) is unbounded; near the mean it is the mean. So a histogram of the
    counts over public edges is bought first, the objective is divided by the mean, and the descent
    starts from the constant model. Margins count up to the highest count that was seen: a record
    far out would else be expected to hold any number of them.

    Parameters
    ----------
    inner : the algorithm of the descent.
    share : variance budget of the histogram, as a part of ``steps`` full-batch releases.
    steps : releases of the inner algorithm.

    **Privacy.** One Gaussian release of a histogram of l2 sensitivity sqrt 2, then the inner plan.
    """

    inner: Algorithm
    steps: int = 100
    share: float = 0.05

    needs: ClassVar[tuple[str, ...]] = ("prox", "scaled")

    def plan(self, multiplier: float, problem: Problem) -> Plan:
        """The histogram of the counts, then the descent."""
        noise = GaussianNoise(self._mean(multiplier))
        first = Round(events=(noise.event(problem.histogram(1, len(EDGES))),))
        return compose((first,), self.inner.plan(multiplier, problem))

    def run(
        self, curator: Curator, loss: AnyLoss, domain: Domain, multiplier: float,
        start: ArrayLike | None = None,
    ) -> Result:  # fmt: skip
        """Buy the mean, start there; parameters in the units of the raw features."""
        if not isinstance(loss, PoissonLoss):
            raise IncompatibleParts(
                "CountDescent is for PoissonLoss; its inner algorithm for more."
            )
        require(domain, *self.needs, needed_by="CountDescent")
        problem, std = curator.problem, self._mean(multiplier)
        counts = curator.everyone().histogram((-1,), EDGES).release(GaussianNoise(std))
        mean, top = _described(counts, std, problem.n)
        w = starting_point(problem, start)
        if problem.intercept and start is None:
            w[-1] = math.log(mean)
        size = mean if problem.intercept else max(mean, 1.0)
        part = Multiple(domain=domain, factor=1 / size)
        highest = min(math.log(top), POISSON_MARGIN) if curator.budget.private else POISSON_MARGIN
        loss = PoissonLoss(mean=size, highest=highest)
        return replace(self.inner.run(curator, loss, part, multiplier, w), highest=highest)

    def _mean(self, multiplier: float) -> float:
        return multiplier / math.sqrt(2 * self.steps * self.share)


def _described(counts: NDArray[np.float64], std: float, n: int) -> tuple[float, float]:
    """Mean, and the largest expected count that the highest cell seen allows: l + 3 sqrt(l)."""
    kept = np.where(counts > 3.5 * std, counts, 0.0)
    seen = np.flatnonzero(kept)
    middles = np.concatenate([[0.0], POWERS, POWERS[-1:]])
    mean = float(kept @ middles) / max(float(kept.sum()), 1.0)
    hidden = 3.5 * std / n
    mean = mean or max(hidden / 2, 1 / n)
    top = EDGES[min(int(seen[-1]), len(EDGES) - 1)] if len(seen) else mean
    return mean, max((math.sqrt(float(top) + 9 / 4) - 3 / 2) ** 2, 2 * mean + hidden)
