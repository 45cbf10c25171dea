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
    """The best intercept-only model of a numeric target, where the descent begins.

    For squares it moves from the median to the mean, by one clipped mean of residuals. For another
    loss it moves a few times by the mean derivative. A quantile begins where that of a Gaussian is,
    and `at_quantile` moves it.

    A move of the others is multiplied by 1 / (1 + (noise / away)^2), where ``away`` is how far off
    the median may be: a scale for a median, a deviation for a mean, which is no farther from a
    median. So the error of a mean is the root of this factor times the noise. Under the absolute
    loss a median of zero does not move.
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
    """Where a mean clips residuals; ``noise`` is that of a threshold of 1.

    Clipping at t misses (|x| - t)+ <= x^2 / (4 t), on average at most deviation^2 / (4 t); here
    that is as much as the noise, ``noise`` times t. Without noise nothing lies beyond the tail.
    """
    return target.deviation / (2 * math.sqrt(noise)) if noise > 0 else target.tail


def _expected(target: Target) -> float:
    """How far off the median may be."""
    return target.scale if target.scale_known else target.deviation / math.sqrt(3)
