"""Counts: a bought mean, and a descent that starts there."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import xlogy

from privtail.algorithms.protocol import Algorithm, require_loss
from privtail.algorithms.result import Result, starting_point
from privtail.default.intercept import Intercept
from privtail.domains import Domain, Multiple, require
from privtail.errors import IncompatibleParts
from privtail.losses import POISSON_MARGIN, AnyLoss, PoissonLoss, SquaredLoss
from privtail.summaries.histograms import Cells, Histogram
from privtail.trusted.curator import Curator
from privtail.trusted.events import Plan, Round, compose
from privtail.trusted.mechanisms.noise import GaussianNoise
from privtail.trusted.problem import Problem

POWERS = 2.0 ** np.arange(-63, 64)
EDGES = np.concatenate([[-1.0], POWERS / math.sqrt(2), POWERS[-1:] * math.sqrt(2)])
"""Public edges for counts: below zero, zero, then a cell around every power of two."""

CELLS = Cells(EDGES, zero=1)
_LOWEST, _HIGHEST = np.append([0.0, 0.0], EDGES[1:]), np.append(EDGES.clip(0), math.inf)
_MIDDLES = np.concatenate([[0.0, 0.0], POWERS, POWERS[-1:] * math.sqrt(2)])

NONE_SEEN = (
    "No counts above zero rose above the noise of their histogram: for the mean they are clipped "
    "at 1. Where counts are usually larger, the model says little; raise epsilon."
)

VISIBLE = 20
"""A histogram of counts with noise n over this shows how far they reach."""

SHARP = 40
"""A clipped mean with noise n over this does for a constant."""

NEGLIGIBLE = 0.01
"""So much more deviance by noise of the mean, as part of that of the counts, is no loss."""

LARGEST_SHARE = 20.0
"""Steps that both may cost each, in parts of all, where less would not do."""


@dataclass(frozen=True, kw_only=True)
class CountDescent:
    """`PoissonLoss` by another algorithm that starts at the logarithm of a private mean.

    The curvature of exp(margin) is unbounded; near the mean it is the mean. So a histogram of the
    counts over public edges is bought first, then (with an intercept) their mean, clipped where
    that misses as much as noise adds. The objective is divided by the mean, and the descent starts
    from the constant model. Margins count up to the highest count that was seen: a record
    far out would else be expected to hold any number of them.

    Parameters
    ----------
    inner : the algorithm of the descent.
    share : variance budget of the histogram, and of the mean, as parts of ``steps`` full-batch
        releases; they take less where less is enough, and more where it would be too little.
    steps : releases of the inner algorithm.

    **Privacy.** One Gaussian release of a histogram of l2 sensitivity sqrt 2, one of a clipped
    mean, then the inner plan.
    """

    inner: Algorithm
    steps: int = 100
    share: float = 0.05

    needs: ClassVar[tuple[str, ...]] = ("prox", "scaled")
    in_typical_rows: ClassVar[bool] = True

    def plan(self, multiplier: float, problem: Problem) -> Plan:
        """The histogram of the counts, their mean, the descent."""
        noise = self._counting(multiplier, problem)
        counts = noise.event(problem.histogram(1, len(EDGES)))
        first = Round(stage="target histogram", events=(counts,))
        level = self._level(multiplier, problem).plan(problem) if problem.intercept else ()
        return compose((first,), level, self.inner.plan(multiplier, problem))

    def takes(self, loss: AnyLoss, problem: Problem) -> None:
        """`PoissonLoss`, if the inner algorithm takes it."""
        if not isinstance(loss, PoissonLoss):
            raise IncompatibleParts(
                "CountDescent is for PoissonLoss; its inner algorithm for more."
            )
        require_loss(self.inner, loss, problem)

    def run(
        self, curator: Curator, loss: AnyLoss, domain: Domain, multiplier: float,
        start: ArrayLike | None = None,
    ) -> Result:  # fmt: skip
        """Buy the mean, start there; parameters in the units of the raw features."""
        problem, law = curator.problem, self._counting(multiplier, curator.problem)
        self.takes(loss, problem)
        require(domain, *self.needs, needed_by="CountDescent")
        released = curator.everyone().histogram((-1,), EDGES).release(law)
        std = law.event(problem.histogram(1, len(EDGES))).std
        counts = _shown(Histogram(released, CELLS, std), problem.n)
        level = self._level(multiplier, problem)
        clip = _clip(counts, level.deviation(problem))
        mean, top = _described(counts, std, problem.n, clip)
        w = starting_point(problem, start)
        if problem.intercept:
            least = max(clip * level.deviation(problem) / 4, 1 / problem.n)
            middle = np.zeros_like(w)
            middle[-1] = clip / 2
            mean = max(float(level.run(curator, SquaredLoss(), middle, clip / 2)[-1, 0]), least)
            w[-1] = math.log(mean) if start is None else w[-1]
            top = max(top, 2 * mean)
        size = mean if problem.intercept else max(mean, 1.0)
        part = Multiple(domain=domain, factor=1 / size)
        highest = min(math.log(top), POISSON_MARGIN) if curator.budget.private else POISSON_MARGIN
        loss = PoissonLoss(mean=size, highest=highest)
        result = self.inner.run(curator, loss, part, multiplier, w)
        doubts = (NONE_SEEN,) * (not counts[2:].any())
        return replace(result, margin_range=(-math.inf, highest), notes=(*result.notes, *doubts))

    def _counting(self, multiplier: float, problem: Problem) -> GaussianNoise:
        return self._priced(multiplier / math.sqrt(2), VISIBLE, problem)

    def _level(self, multiplier: float, problem: Problem) -> Intercept:
        return Intercept(self._priced(multiplier, SHARP, problem))

    def _priced(self, multiplier: float, sharp: int, problem: Problem) -> GaussianNoise:
        """The usual share of steps of ``multiplier``, less where sharp, or more to become so."""
        usual, least = (
            multiplier / math.sqrt(self.steps * share) for share in (self.share, LARGEST_SHARE)
        )
        return GaussianNoise(max(least, min(usual, problem.n / problem.max_rows / sharp)))


def _shown(histogram: Histogram, n: int) -> NDArray[np.float64]:
    """Counts in cells above the noise, and in the run of the others that stands out most; else 0.

    Large counts thin out over many cells, in none of which there are enough to be seen.
    """
    shown = histogram.above_noise(n)
    rest = replace(histogram, counts=np.where(shown > 0, 0.0, histogram.counts))
    return shown + rest.surest_run()


def _described(counts: NDArray[np.float64], std: float, n: int, clip: float) -> tuple[float, float]:
    """Mean, and the largest expected count that the highest cell seen allows: l + 3 sqrt(l).

    But no more than ``clip`` allows.
    """
    seen = np.flatnonzero(counts)
    hidden = 3.5 * std / n
    mean = float(counts @ _MIDDLES) / max(float(counts.sum()), 1.0) or max(hidden / 2, 1 / n)
    top = min(clip, max(0.0, EDGES[min(int(seen[-1]), len(EDGES) - 1)])) if len(seen) else mean
    return mean, max((math.sqrt(top + 9 / 4) - 3 / 2) ** 2, 2 * mean + hidden)


def _clip(counts: NDArray[np.float64], deviation: float) -> float:
    """Where a mean of these counts misses as much as noise adds, which has half of ``deviation``.

    Or where noise is `NEGLIGIBLE` still: what does not show may be most of the mean. 1 where
    nothing shows but zeros.
    """
    parts, edges = counts / max(float(counts.sum()), 1.0), EDGES[2:]
    missed = np.array([parts @ np.maximum(_MIDDLES - edge, 0.0) for edge in edges])
    balanced = max(1.0, float(edges[np.argmin((deviation / 2 * edges) ** 2 + missed**2)]))
    mean = float(parts @ _MIDDLES)
    if not 0 < mean < math.inf or deviation == 0:
        return balanced
    nearest = np.clip(mean, _LOWEST, _HIGHEST)
    deviance = 2 * float(parts @ (xlogy(nearest, nearest / mean) - nearest + mean))
    return max(balanced, math.sqrt(NEGLIGIBLE * deviance * mean) / (deviation / 2))
