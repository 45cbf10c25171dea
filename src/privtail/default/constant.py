"""The intercept-only model of a numeric target."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

from privtail.default.descent import curvature_of, kinked
from privtail.default.fit import Fit
from privtail.default.intercept import MeanDerivative, at_quantile
from privtail.default.standardization import Target
from privtail.losses import AbsoluteLoss, Loss, QuantileLoss
from privtail.trusted.events import Plan
from privtail.trusted.problem import Problem

Doubles = NDArray[np.float64]


@dataclass(frozen=True)
class StartAtConstant:
    """Fits the intercept-only model of a numeric target, where the descent begins.

    It begins at the released median. For squares one clipped mean of residuals moves it to the
    mean. For another loss a few mean derivatives move it to the minimum. A quantile begins at that
    of a Gaussian, and `at_quantile` moves it.

    The moves of all but quantiles are multiplied by 1 / (1 + (noise / away)^2). Here ``away`` is
    how far off the median may be: one scale of the target, or for squares one deviation, because a
    mean is within one deviation of the median. So the error of the mean is its noise times the
    root of that factor. Under the absolute loss a median of zero does not move.
    """

    mean: MeanDerivative

    def plan(self, problem: Problem) -> Plan:
        return self.mean.plan(problem)

    def run(self, fit: Fit) -> None:
        target, loss = fit.standard.target, fit.loss
        start = np.zeros_like(fit.w)
        start[-1] = target.location
        if isinstance(loss, QuantileLoss):
            unit, first = _expected(target), start.copy()
            first[-1] += unit * float(ndtri(loss.quantile)) if target.scale_known else 0.0
            moved = at_quantile(fit, self.mean, loss, first, unit)
        else:
            moved = self._minimum(fit, loss, start)
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


def balanced(target: Target, noise: float) -> float:
    """The threshold t of a clipped mean of residuals at which clipping misses what noise adds.

    ``noise`` is the standard deviation of the noise for a threshold of 1. Clipping at t misses
    (|x| - t)+ <= x^2 / (4 t), which is on average at most deviation^2 / (4 t). The noise is
    ``noise`` times t. Without noise the threshold is where the tail ends.
    """
    return target.deviation / (2 * math.sqrt(noise)) if noise > 0 else target.tail


def _expected(target: Target) -> float:
    """How far off the median may be."""
    return target.scale if target.scale_known else target.deviation / math.sqrt(3)
