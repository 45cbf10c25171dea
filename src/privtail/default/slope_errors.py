"""How far the slopes of a fit are off, by noise and by sampling, from releases alone."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from privtail.default.fit import Fit, Run
from privtail.default.likely_slopes import left_of_rows, likely_part
from privtail.losses import AmountLoss, HuberLoss, SquaredLoss
from privtail.losses.hessians import inverse_hessian
from privtail.losses.magnitudes import kinked

Doubles = NDArray[np.float64]


def noise_deviations(fit: Fit) -> Doubles:
    """(d,) standard deviations of what noise did to the slopes.

    A step moves the model by a multiple of the preconditioned gradient. That contracts it along
    each principal direction by the curvature of the loss there, and adds noise. So the variance of
    the result follows exactly from the curvatures. A curvature is that of the features times the
    `_contraction` of a step. The features' own is told to the noise of an entry of the moments: one
    standard deviation less than the expected one is counted on. Where no second moments were
    released, none is.

    Beside the noise stands what shrinking took from a slope, because it may have been real, and how
    far the margins of labels are from a likely length (`likely_part`). Both are biases. For a
    bias b and a noise of deviation s, plus or minus z hypot(b, s) holds as often as z s would
    without a bias, at confidences of 90 % and more.
    """
    metric, decision, d = fit.preconditioner, fit.decision, fit.problem.d
    rates = np.maximum(0.0, metric.likely - metric.std) / metric.curvatures
    noise = fit.noise(lambda run: _contraction(fit, run) * rates)
    whole = np.abs(fit.w[:d]).max(axis=1) / max(decision.part, np.finfo(np.float64).tiny)
    likely = likely_part(fit)
    off = (1.0 if math.isnan(likely) else likely) - decision.part
    moved = math.hypot(off, decision.part_deviation) * whole
    return np.asarray(np.sqrt(metric.deviations(noise, d) ** 2 + fit.shrunk**2 + moved**2))


def _contraction(fit: Fit, run: Run) -> float:
    """By how much a step of a run contracts a direction in which features have the curvature 1.

    For squares and Huber's loss it is the length of the step, times the part of the residuals that
    is not clipped, times what is left of the rows (`left_of_rows`). For other losses, and where no
    residuals are known, it is what the gradients show, and nothing at a kink.
    """
    if not (fit.residuals.known and isinstance(run.loss, SquaredLoss | HuberLoss)):
        return 0.0 if run.schedule.shrinking else run.shown
    unclipped = fit.residuals.unclipped(run.schedule.mean.threshold)
    return run.schedule.length * unclipped * left_of_rows(int(fit.preconditioner.active.sum()))


def sampling_deviations(fit: Fit) -> Doubles | None:
    """(d,) standard deviations of the slopes over samples of the population, from releases alone.

    The unit is a scale of the target per scale of the feature. None if no release tells.

    The sandwich H^-1 S H^-1 / n of an M-estimator, H the mean Hessian and S the second moments of
    gradients, for residuals whose size does not depend on the features. With C the covariance of
    the features, from the released second moments,

    - of numbers H = P(residual is not clipped) C and S = E(clipped residual^2) C, from the
      histogram of residuals;
    - of two labels, counts and amounts H is the mean Hessian for Gaussian features
      (`inverse_hessian`), and S = H times the dispersion: 1 for labels, E(residual^2) / E(g) for
      others, and for counts at least 1.

    Where the noise of a second moment is as large as one of a standardized feature, no release
    tells how far the steps came; nor does one where slopes are longer than any truth makes them.
    Rows of one person count as one row. Exposures are taken not to depend on the features.
    """
    metric, problem, d = fit.preconditioner, fit.problem, fit.problem.d
    if metric.std >= 1 or problem.outputs > 1 or kinked(fit.loss) or math.isnan(likely_part(fit)):
        return None
    used, (mean, covariance) = fit.standard.used, _of_features(fit)
    parts, sizes = fit.residuals.parts, fit.residuals.middles
    if fit.given.targets == "real":
        clipped = float(parts @ np.minimum(sizes, fit.threshold) ** 2)
        dispersion = clipped / fit.residuals.unclipped(fit.threshold) ** 2
        inverse = np.linalg.inv(covariance)
    else:
        w = fit.w[:d, 0][used]
        centre = float(fit.w[d:, 0].sum() + w @ mean) + math.log(fit.exposure)
        inverse, curvature = inverse_hessian(fit.loss, covariance, w, centre)
        dispersion = 1.0
        if isinstance(fit.loss, AmountLoss):
            unit = (fit.loss.mean or 1.0) ** (2 - fit.loss.power)
            spread = float(parts @ sizes**2) * unit**2 / curvature
            dispersion = max(1.0, spread) if fit.loss.power == 1 else spread
    n = problem.n * fit.part_that_counts[0] / problem.max_rows
    found = np.full(d, math.inf)
    found[used] = np.sqrt(dispersion * np.maximum(np.diag(inverse), 0.0) / n)
    return found / fit.standard.target.scale


def _of_features(fit: Fit) -> tuple[Doubles, Doubles]:
    """Mean and covariance of the used features; a curvature is at least what noise may hide."""
    metric, problem = fit.preconditioner, fit.problem
    curvatures = np.maximum(metric.likely, metric.hidden)
    moments = metric.directions * np.where(curvatures > 0, curvatures, 1.0) @ metric.directions.T
    used = np.flatnonzero(fit.standard.used)
    square = moments[np.ix_(used, used)]
    if not problem.intercept:
        return np.zeros(len(used)), square
    beside, own = moments[used, problem.d], moments[problem.d, problem.d]
    return beside / own, square - np.outer(beside, beside) / own
