"""What noise did to the slopes of a fit, from releases alone."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray
from scipy.special import chdtr, chdtrc, gammaln

from privtail.default.descent import added_noise
from privtail.default.fit import Fit, Run
from privtail.default.sampling import LEAST
from privtail.losses import HuberLoss, SquaredLoss

Doubles = NDArray[np.float64]


def noise_deviations(fit: Fit) -> Doubles:
    """(d,) standard deviations of what noise did to the slopes.

    A step moves the model by a multiple of the preconditioned gradient. That contracts it along
    each principal direction by the curvature of the loss there, and adds noise. So the variance of
    the result follows exactly from the curvatures. A curvature is that of the features times the
    `_contraction` of a step. The features' own is told to the noise of an entry of the moments: one
    standard deviation less than the expected one is counted on. Where no second moments were
    released, none is.

    Added is what shrinking and shorter margins took from a slope, because it may have been real,
    and what noise did to the length of the margins.
    """
    metric, decision, d = fit.preconditioner, fit.decision, fit.problem.d
    likely = metric.likely if metric.likely.size else np.zeros(len(metric.curvatures))
    rates = np.maximum(0.0, likely - metric.std) / metric.curvatures
    noise = np.zeros_like(rates)
    for run in fit.runs:
        noise = added_noise(run.schedule, metric, noise, _contraction(fit, run) * rates)
    whole = np.abs(fit.w[:d]).max(axis=1) / max(decision.part, np.finfo(np.float64).tiny)
    off = math.hypot(1 - decision.part, decision.part_deviation)
    return np.asarray(metric.deviations(noise, d) + fit.shrunk + off * whole)


def _contraction(fit: Fit, run: Run) -> float:
    """By how much a step of a run contracts a direction in which features have the curvature 1.

    For squares and Huber's loss it is the length of the step, times the part of the residuals that
    is not clipped, times what is left of the rows (`_left_of_rows`). For other losses, and where no
    residuals are known, it is what the gradients show, and nothing at a kink.
    """
    if not (fit.residuals.known and isinstance(run.loss, SquaredLoss | HuberLoss)):
        return 0.0 if run.schedule.shrinking else run.shown
    clipped = fit.residuals.middles >= run.schedule.mean.threshold
    unclipped = max(1 - float(fit.residuals.parts[clipped].sum()), LEAST)
    return run.schedule.length * unclipped * _left_of_rows(int(fit.preconditioner.active.sum()))


def _left_of_rows(r: int) -> float:
    """The part of second moments that is left where rows are shrunk to a typical length.

    For normal rows of r coordinates: E |x| min(|x|, sqrt(r)) / r. Whatever the law is, it is half
    of the released moments at least, whose rows are clipped to twice that length.
    """
    length = math.sqrt(2) * math.exp(gammaln((r + 1) / 2) - gammaln(r / 2))
    return float(chdtr(r + 2, r) + length * chdtrc(r + 1, r) / math.sqrt(r))
