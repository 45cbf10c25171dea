"""Counts with a log link: their histogram and mean, and a loss in units of the mean."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray
from scipy.special import xlogy

from privtail.default.fit import Fit
from privtail.default.intercept import MeanDerivative
from privtail.domains import Multiple
from privtail.losses import POISSON_MARGIN, PoissonLoss, SquaredLoss
from privtail.summaries.histograms import Cells, Histogram
from privtail.trusted.events import Event, Plan, Round, compose
from privtail.trusted.mechanisms.noise import GaussianNoise
from privtail.trusted.problem import Problem

Doubles = NDArray[np.float64]

COUNT_CELLS = Cells(np.append(-1.0, 2.0 ** (np.arange(-63, 65) - 0.5)), zero=1)
"""Public cells for counts: below zero, zero, then one around every power of two."""

_EDGES = COUNT_CELLS.edges
_LOWEST, _HIGHEST = np.append([0.0, 0.0], _EDGES[1:]), np.append(_EDGES.clip(0), math.inf)
_MIDDLES = np.concatenate([[0.0, 0.0], _EDGES[1:-1] * math.sqrt(2), _EDGES[-1:]])

NONE_DETECTED = (
    "No counts above zero rose above the noise of their histogram: for the mean they are clipped "
    "at 1. Where counts are usually larger, the model says little; raise epsilon."
)


@dataclass(frozen=True)
class StartAtMeanCount:
    """A histogram of the counts, and their mean: the constant model, where the descent begins.

    The curvature of exp(margin) is unbounded; near the mean it is the mean. So the objective is
    divided by the mean. The mean clips where that misses as much as noise adds. Margins count up to
    the logarithm of the highest count that was detected: a record far out would else be expected to
    hold any number of them.

    Parameters
    ----------
    histogram : noise of the histogram.
    mean : the release of the mean; None without an intercept.

    **Privacy.** Gaussian releases of a histogram of l2 sensitivity sqrt 2, and of a clipped mean.
    """

    histogram: GaussianNoise
    mean: MeanDerivative | None

    def plan(self, problem: Problem) -> Plan:
        first = Round(stage="target histogram", events=(self._event(problem),))
        return compose((first,), self.mean.plan(problem) if self.mean else ())

    def run(self, fit: Fit) -> None:
        problem = fit.problem
        std, n = self._event(problem).std, problem.n
        released = fit.curator.everyone().histogram((-1,), _EDGES).release(self.histogram)
        counts = _detected(Histogram(released, COUNT_CELLS, std), n)
        deviation = self.mean.deviation(problem) if self.mean else 0.0
        clip = _clip(counts, deviation, fit.tuning.negligible)
        mean, top = _described(counts, fit.tuning.sure * std / n, n, clip)
        w = np.zeros_like(fit.w)
        if self.mean:
            least = max(clip * deviation / 4, 1 / n)
            w[-1] = clip / 2
            off = self.mean.release(fit, SquaredLoss(), w, clip / 2)[0]
            mean = max(clip / 2 - float(off), least)
            w[-1], top = math.log(mean), max(top, 2 * mean)
        size = mean if self.mean else max(mean, 1.0)
        private = fit.curator.budget.private
        highest = min(math.log(top), POISSON_MARGIN) if private else POISSON_MARGIN
        fit.given = fit.loss = PoissonLoss(mean=size, highest=highest)
        fit.domain = Multiple(domain=fit.domain, factor=1 / size)
        fit.w = fit.constant = w
        fit.margins = -math.inf, highest
        fit.remarks = (NONE_DETECTED,) * (not counts[2:].any())

    def _event(self, problem: Problem) -> Event:
        return self.histogram.event(problem.histogram(1, len(_EDGES)))


def _detected(histogram: Histogram, n: int) -> Doubles:
    """Counts in cells above the noise, and in the run of the others that stands out most; else 0.

    Large counts thin out over many cells, in none of which there are enough to be detected.
    """
    shown = histogram.above_noise(n)
    rest = replace(histogram, counts=np.where(shown > 0, 0.0, histogram.counts))
    return shown + rest.surest_run()


def _described(counts: Doubles, hidden: float, n: int, clip: float) -> tuple[float, float]:
    """Mean, and the largest expected count l that the highest cell c allows: l + 3 sqrt(l) = c.

    But no more than ``clip`` allows. Noise may have hidden the part ``hidden`` of the records.
    """
    cells = np.flatnonzero(counts)
    mean = float(counts @ _MIDDLES) / max(float(counts.sum()), 1.0) or max(hidden / 2, 1 / n)
    highest = max(0.0, _EDGES[min(int(cells[-1]), len(_EDGES) - 1)]) if len(cells) else mean
    top = min(clip, highest) if len(cells) else mean
    return mean, max((math.sqrt(top + 9 / 4) - 3 / 2) ** 2, 2 * mean + hidden)


def _clip(counts: Doubles, deviation: float, negligible: float) -> float:
    """Where a mean of these counts misses as much as noise adds, which has half of ``deviation``.

    Or where noise adds no more than a ``negligible`` part to the deviance: what was not detected
    may be most of the mean. 1 where nothing but zeros was detected.
    """
    parts, edges = counts / max(float(counts.sum()), 1.0), _EDGES[2:]
    missed = np.array([parts @ np.maximum(_MIDDLES - edge, 0.0) for edge in edges])
    balanced = max(1.0, float(edges[np.argmin((deviation / 2 * edges) ** 2 + missed**2)]))
    mean = float(parts @ _MIDDLES)
    if not 0 < mean < math.inf or deviation == 0:
        return balanced
    nearest = np.clip(mean, _LOWEST, _HIGHEST)
    deviance = 2 * float(parts @ (xlogy(nearest, nearest / mean) - nearest + mean))
    return max(balanced, math.sqrt(negligible * deviance * mean) / (deviation / 2))
