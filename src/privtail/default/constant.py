"""Intercept-only models, where the descent begins: of numbers, amounts and labels."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import cast

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri, xlogy

from privtail.default.descent import curvature_of, kinked
from privtail.default.fit import Fit
from privtail.default.intercept import MeanDerivative, relative
from privtail.default.standardization import Target
from privtail.domains import Multiple
from privtail.losses import (
    POISSON_MARGIN,
    AbsoluteLoss,
    AmountLoss,
    Loss,
    PoissonLoss,
    QuantileLoss,
    SquaredLoss,
    WeightedLoss,
)
from privtail.summaries.histograms import Cells, Histogram, part_that_counts
from privtail.trusted.events import Event, Plan, Round, compose
from privtail.trusted.mechanisms.noise import GaussianNoise
from privtail.trusted.problem import Problem

Doubles = NDArray[np.float64]

COUNT_CELLS = Cells(np.append(-1.0, 2.0 ** (np.arange(-63, 65) - 0.5)), zero=1)
"""Public cells for counts and amounts: below -1, up to 2^-63.5, and around every power of two."""

_EDGES = COUNT_CELLS.edges
_LOWEST, _HIGHEST = np.append([0.0, 0.0], _EDGES[1:]), np.append(_EDGES.clip(0), math.inf)
_MIDDLES = np.concatenate([[0.0, 0.0], _EDGES[1:-1] * math.sqrt(2), _EDGES[-1:]])

NONE_DETECTED = (
    "No targets above zero rose above the noise of their histogram: for the mean they are clipped "
    "at 1. Where they are usually larger, the model says little; raise epsilon."
)


@dataclass(frozen=True)
class StartAtConstant:
    """The best intercept-only model of a numeric target, where the descent begins.

    For squares it moves from the median to the mean, by one clipped mean of residuals. For another
    loss it moves a few times by the mean derivative; a quantile begins where that of a Gaussian is.

    A move is multiplied by 1 / (1 + (noise / away)^2), where ``away`` is how far off the median may
    be: a scale for a median, a deviation for a mean, which is no farther from a median. So the
    error of a mean is the root of this factor times the noise. Under the absolute loss a median of
    zero does not move.
    """

    mean: MeanDerivative

    def plan(self, problem: Problem) -> Plan:
        return self.mean.plan(problem)

    def run(self, fit: Fit) -> None:
        target, loss = fit.standard.target, fit.loss
        start = np.zeros_like(fit.w)
        start[-1] = target.location
        moved = self._quantile(fit, loss, start) if isinstance(loss, QuantileLoss) else (
            self._minimum(fit, loss, start)
        )  # fmt: skip
        zero = isinstance(loss, AbsoluteLoss) and target.median_zero
        stays = not target.detected or target.only_zeros or zero
        fit.w = fit.constant = start if stays else moved

    def _minimum(self, fit: Fit, loss: Loss, w: Doubles) -> Doubles:
        target = fit.standard.target
        steep, noise = curvature_of(loss, target.scale), self.mean.deviation(fit.problem)
        most, away = loss.lipschitz, _expected(target)
        if not kinked(loss):
            most, away = min(most, steep * balanced(target, noise)), target.deviation
        error = most / steep * noise
        kept = 1 / (1 + (error / away) ** 2)
        fit.constant_error = error * math.sqrt(kept)
        for _ in range(self.mean.times):
            w = w.copy()
            w[-1] -= kept / steep * self.mean.release(fit, loss, w, most)
        return w

    def _quantile(self, fit: Fit, loss: QuantileLoss, w: Doubles) -> Doubles:
        """In steps that are right for a Gaussian of the target's scale."""
        target, unit = fit.standard.target, _expected(fit.standard.target)
        w = w.copy()
        w[-1] += unit * float(ndtri(loss.quantile)) if target.scale_known else 0.0
        noise = self.mean.deviation(fit.problem) * loss.lipschitz
        length = unit / (1 + (noise / loss.usual) ** 2)
        least = min(max(noise, 1e-9), loss.quantile / 2, (1 - loss.quantile) / 2)
        for _ in range(self.mean.times):
            below = loss.quantile + self.mean.release(fit, loss, w, loss.lipschitz)
            below = np.clip(below, least, 1 - least)
            w = w.copy()
            w[-1] -= length * (ndtri(below) - ndtri(loss.quantile))
        return w


def balanced(target: Target, noise: float) -> float:
    """Where a mean clips residuals; ``noise`` is that of a threshold of 1.

    Clipping at t misses (|x| - t)+ <= x^2 / (4 t), on average at most deviation^2 / (4 t); here
    that is as much as the noise, ``noise`` times t. Without noise nothing lies beyond the tail.
    """
    return target.deviation / (2 * math.sqrt(noise)) if noise > 0 else target.tail


def _expected(target: Target) -> float:
    """How far off the median may be."""
    return target.scale if target.scale_known else target.deviation / math.sqrt(3)


@dataclass(frozen=True)
class StartAtMeanAmount:
    """A histogram of the amounts, and their mean: the constant model, where the descent begins.

    The curvature of a loss of counts or amounts is unbounded; near the mean it is a power of the
    mean, by which the objective is divided. The mean clips where that misses as much as noise adds.
    Margins end where the highest count that was detected is three deviations above the expected
    one: a record far out would else be expected to hold any number of them. Below they end where
    half the noise of the mean does: where none is expected and there is one, the deviance has no
    end. Those of other amounts end at the highest that was detected, and as far below the mean.

    With an exposure a margin is the logarithm of a rate, and ends where a row of the median
    exposure does. The mean rate is that of the histograms, moved a few times by the mean
    derivative: the expected count less the count.

    Parameters
    ----------
    histogram : noise of the histogram, and of that of the exposures.
    mean : the release of the mean; None without an intercept.

    **Privacy.** Gaussian releases of a histogram of l2 sensitivity sqrt 2 (2 with exposures), and
    of clipped means.
    """

    histogram: GaussianNoise
    mean: MeanDerivative | None

    def plan(self, problem: Problem) -> Plan:
        first = Round(stage="target histogram", events=(self._event(problem),))
        return compose((first,), self.mean.plan(problem) if self.mean else ())

    def run(self, fit: Fit) -> None:
        problem, n = fit.problem, fit.problem.n
        std = self._event(problem).std
        counts, exposures, (part, unsure) = self._histograms(fit, std)
        deviation = self.mean.deviation(problem) if self.mean else 0.0
        whole = fit.given.targets == "count"
        clip = _clip(counts, deviation, fit.tuning.negligible, 1.0 if whole else 0.0)
        mean, top = _described(counts, fit.tuning.sure * std / n, n, clip, whole=whole)
        w, least = np.zeros_like(fit.w), 0.0
        if self.mean:
            least = max(clip * deviation / 4, (1.0 if whole else clip) / n)
            if exposures is None:
                w[-1] = _centre(clip, deviation, unsure)
                off = self.mean.release(fit, SquaredLoss(), w, clip - w[-1, 0])[0]
                mean = max(float(w[-1, 0]) - float(off) / part, least)
                w[-1], top = math.log(mean), max(top, 2 * mean)
            else:
                mean = max(mean, least)
                w[-1], top = self._rate(fit, self.mean, mean, clip, exposures), max(top, 2 * mean)
        size = mean if self.mean else max(mean, 1.0)
        end, lowest, highest = -math.inf, -POISSON_MARGIN, POISSON_MARGIN
        if fit.curator.budget.private:
            end = math.log(least) if least else end
            highest = float(np.clip(math.log(top), -POISSON_MARGIN, POISSON_MARGIN))
            lowest = float(np.clip(2 * math.log(mean) - highest, -POISSON_MARGIN, highest))
        given = cast(AmountLoss, fit.given)
        fit.given = fit.loss = given.at(size, lowest, highest)
        fit.domain = Multiple(domain=fit.domain, factor=size ** (given.power - 2))
        fit.dispersion = 1 / size if whole else _dispersion(counts, size, clip)
        fit.least_threshold = _reach(counts, size, fit.tuning.clipped)
        fit.w = fit.constant = w
        usual = 1.0 if exposures is None else _median(exposures)
        fit.exposure = 1.0 if exposures is None else _mean(exposures)
        unit = math.log(usual)
        fit.margins = (end if whole else lowest) - unit, highest - unit
        fit.remarks = (NONE_DETECTED,) * (not counts[2:].any())

    def _histograms(
        self, fit: Fit, std: float
    ) -> tuple[Doubles, Doubles | None, tuple[float, float]]:
        """Counts by cell of the amounts, and of their exposures if there are any.

        And the part of the rows that counts, with its standard deviation.
        """
        columns = (-1, -2) if fit.problem.exposure else (-1,)
        released = fit.curator.everyone().histogram(columns, _EDGES).release(self.histogram)
        columnwise = released.reshape(len(columns), -1)
        found = [_detected(Histogram(one, COUNT_CELLS, std), fit.problem.n) for one in columnwise]
        part = part_that_counts(columnwise[0], std, fit.problem.n)
        return found[0], found[1] if fit.problem.exposure else None, part

    @staticmethod
    def _rate(
        fit: Fit, release: MeanDerivative, mean: float, clip: float, exposures: Doubles
    ) -> float:
        """Logarithm of the mean rate: of counts to exposures."""
        w, rate = np.zeros_like(fit.w), math.log(mean / _mean(exposures))
        deviation, negligible = release.deviation(fit.problem), fit.tuning.negligible
        longest = _clip(exposures, 2 * deviation, negligible, 0.0)
        for _ in range(release.times):
            w[-1] = rate
            threshold = max(clip, longest * math.exp(rate))
            rate -= relative(float(release.release(fit, PoissonLoss(), w, threshold)[0]) / mean)
        return rate

    def _event(self, problem: Problem) -> Event:
        return self.histogram.event(problem.histogram(1 + problem.exposure, len(_EDGES)))


def _centre(clip: float, deviation: float, unsure: float) -> float:
    """Where differences are taken from, of which a mean is made; a row that is lost counts as it.

    In the midst, clip / 2, of [0, clip] a record moves the mean least. Where rows are lost, and the
    part that counts is known up to ``unsure``, it is where both errors together are least.
    """
    return clip * min(1 / 2, 1 / (1 + (unsure / deviation) ** 2) if unsure else 1.0)


def _mean(counts: Doubles) -> float:
    """Of what was detected; 1 for nothing."""
    return float(counts @ _MIDDLES) / max(float(counts.sum()), 1.0) or 1.0


def _median(counts: Doubles) -> float:
    """Of what was detected above zero; 1 for nothing."""
    above = np.cumsum(counts[2:])
    return float(_MIDDLES[2:][np.searchsorted(above, above[-1] / 2)]) if above[-1] > 0 else 1.0


def _detected(histogram: Histogram, n: int) -> Doubles:
    """Counts in cells above the noise, and in the run of the others that stands out most; else 0.

    Large counts thin out over many cells, in none of which there are enough to be detected.
    """
    shown = histogram.above_noise(n)
    rest = replace(histogram, counts=np.where(shown > 0, 0.0, histogram.counts))
    return shown + rest.surest_run()


def _described(
    counts: Doubles, hidden: float, n: int, clip: float, *, whole: bool
) -> tuple[float, float]:
    """Mean, and the largest expected count l that the highest cell c allows: l + 3 sqrt(l) = c.

    But no more than ``clip`` allows. Noise may have hidden the part ``hidden`` of the records. Of
    amounts that are not whole numbers the largest expected one is c, and no cell is hidden.
    """
    cells = np.flatnonzero(counts)
    mean = float(counts @ _MIDDLES) / max(float(counts.sum()), 1.0) or max(hidden / 2, 1 / n)
    highest = max(0.0, _EDGES[min(int(cells[-1]), len(_EDGES) - 1)]) if len(cells) else mean
    top = min(clip, highest) if len(cells) else mean
    if not whole:
        return mean, max(top, 2 * mean)
    return mean, max((math.sqrt(top + 9 / 4) - 3 / 2) ** 2, 2 * mean + hidden)


def _dispersion(counts: Doubles, mean: float, clip: float) -> float:
    """Mean square of y / mean - 1 of amounts y that are clipped; 1 if not known, or none."""
    if not counts[2:].any():
        return 1.0
    relative = np.minimum(_MIDDLES, clip) / mean - 1
    return float(counts @ relative**2 / counts.sum()) or 1.0


def _reach(counts: Doubles, mean: float, part: float) -> float:
    """The least threshold of y / mean - 1 that takes no more than a part off the mean."""
    parts, away = counts / max(float(counts.sum()), 1.0), np.abs(_MIDDLES / mean - 1)
    thresholds = np.unique(away)
    missed = np.array([parts @ np.maximum(away - t, 0.0) for t in thresholds])
    return float(thresholds[np.argmax(missed <= part)])


def _clip(counts: Doubles, deviation: float, negligible: float, least: float) -> float:
    """Where a mean of these counts misses as much as noise adds, which has half of ``deviation``.

    Or where noise adds no more than a ``negligible`` part to the deviance: what was not detected
    may be most of the mean. It is ``least`` or more, and 1 where nothing but zeros was detected.
    """
    parts, edges = counts / max(float(counts.sum()), 1.0), _EDGES[2:]
    missed = np.array([parts @ np.maximum(_MIDDLES - edge, 0.0) for edge in edges])
    if not counts[2:].any():
        return 1.0
    balanced = max(least, float(edges[np.argmin((deviation / 2 * edges) ** 2 + missed**2)]))
    mean = float(parts @ _MIDDLES)
    if not 0 < mean < math.inf or deviation == 0:
        return balanced
    nearest = np.clip(mean, _LOWEST, _HIGHEST)
    deviance = 2 * float(parts @ (xlogy(nearest, nearest / mean) - nearest + mean))
    return max(balanced, math.sqrt(negligible * deviance * mean) / (deviation / 2))


@dataclass(frozen=True)
class CountLabels:
    """Counts of the labels; the intercept-only model that has their frequencies.

    Of two labels, predicted probabilities are kept away from 0 and 1 by the noise of a count over
    n: nothing that was released can tell a probability nearer to these.

    **Privacy.** One Gaussian release of a histogram of l2 sensitivity sqrt 2.
    """

    noise: GaussianNoise

    def plan(self, problem: Problem) -> Plan:
        return (Round(stage="label counts", events=(self._event(problem),)),)

    def run(self, fit: Fit) -> None:
        problem = fit.problem
        edges = np.arange(_labels(problem) - 1) + 0.5
        counts = fit.curator.everyone().histogram((-1,), edges).release(self.noise)
        std = self._event(problem).std
        fit.rows = part_that_counts(counts, std, problem.n)
        counts = np.maximum(counts, max(1.0, std))
        if problem.intercept:
            weights = fit.loss.weights if isinstance(fit.loss, WeightedLoss) else 1.0
            logs = np.log(counts * weights)
            fit.w = fit.constant = np.zeros((problem.rows, problem.outputs))
            fit.w[-1] = logs[1:] - logs[:1] if problem.outputs == 1 else logs - logs.mean()
        fit.rarity = float(len(counts) * counts.min() / counts.sum())
        unsure = fit.tuning.likely * math.sqrt(2) * std * len(counts) / problem.n
        apart = float(np.ptp(np.append(0.0, fit.constant[problem.d :])))
        fit.even = apart + unsure <= fit.tuning.lenient_lead
        if problem.outputs == 1:
            most = math.log(max(2.0, problem.n / max(1.0, std)))
            fit.margins = -most, most

    def _event(self, problem: Problem) -> Event:
        return self.noise.event(problem.histogram(1, _labels(problem) - 1))


def lead(intercept: Doubles) -> float:
    """How far the largest margin of an intercept-only model of labels is above the second.

    ``intercept`` is (1, K), or (0, K) for none.
    """
    if intercept.size == 0:
        return 0.0
    margins = np.sort(intercept[0]) if intercept.size > 1 else np.array([0.0, abs(intercept[0, 0])])
    return float(margins[-1] - margins[-2])


def largest_derivative(loss: Loss, intercept: Doubles) -> float:
    """The largest derivative (its l2 norm) of a loss of labels at an intercept-only model."""
    labels = np.arange(max(2, loss.outputs), dtype=np.float64)
    margins = np.repeat(intercept.sum(axis=0, keepdims=True), len(labels), axis=0)
    return float(np.linalg.norm(loss.derivatives(margins, labels), axis=1).max())


def _labels(problem: Problem) -> int:
    return max(2, problem.outputs)
