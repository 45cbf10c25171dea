"""How far the slopes of a fit are off, by noise and by sampling, from releases alone."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import NDArray

from privtail.default.descent import DescentRun, model_noise
from privtail.default.fitted import FittedSlopes
from privtail.inference.likely_slopes import left_of_rows, likely_part
from privtail.losses import AmountLoss, HuberLoss, SquaredLoss
from privtail.losses.hessians import NODES, inverse_hessian
from privtail.losses.magnitudes import kinked
from privtail.summaries.residuals import ResidualHistogram

Doubles = NDArray[np.float64]

TIMES = 2.0 ** (np.arange(65) / 8)
"""How many times as long residuals may be in some rows as in all, from 1 to 256."""


@dataclass(frozen=True)
class SlopeErrors:
    """Standard deviations of slopes, in scales of the target per scale of the feature.

    Attributes
    ----------
    noise : (d,) of what noise adds to the slopes, for a convex loss about at most; infinite of a
        feature that is not used; NaN where it is not known.
    sampling : (d,) of the slopes over samples of the population; NaN where nothing that was
        released tells.
    """

    noise: Doubles
    sampling: Doubles

    @classmethod
    def of(cls, released: object, d: int) -> Self:
        """From what an algorithm released of d slopes (`Result.slopes`).

        Nothing is known of the slopes of an algorithm that hands over no `FittedSlopes`. Slopes
        that were set to zero have no noise. Nothing is known of a feature that was not selected.
        """
        unknown = np.full(d, math.nan)
        if not isinstance(released, FittedSlopes):
            return cls(unknown, unknown)
        used = released.standard.used
        unused = unknown if released.selected else np.full(d, math.inf)
        if not released.kept:
            return cls(np.zeros(d) if used.any() else unused, unknown)
        noise = np.where(used, noise_deviations(released), unused)
        return cls(noise, unknown if released.selected else sampling_deviations(released))


def noise_deviations(slopes: FittedSlopes) -> Doubles:
    """(d,) standard deviations of what noise did to the slopes.

    A step moves the model by a multiple of the preconditioned gradient. That contracts it along
    each principal direction by the curvature of the loss there, and adds noise. So the variance of
    the result follows exactly from the curvatures. A curvature is that of the features times the
    `_contraction` of a step. The features' own is told to the noise of an entry of the moments, so
    it has a normal law above zero, over which the deviation is averaged. Where the expected one is
    no larger than that noise, as of features that are alike, and where no second moments were
    released, no curvature is counted on.

    Three possible biases are added: what shrinking took from a slope, because it may have been
    real; how far margins are from a likely length; and how sure that is (`likely_part`). For a bias
    b and a noise of deviation s, plus or minus z hypot(b, s) holds as often as z s would without a
    bias, at confidences of 90 % and more.
    """
    metric, decision, d = slopes.preconditioner, slopes.decision, slopes.d
    noise = _expected_noise(slopes)
    whole = np.abs(slopes.w[:d]).max(axis=1) / max(
        decision.margin_factor, np.finfo(np.float64).tiny
    )
    likely, unsure = likely_part(slopes, noise)
    if math.isnan(likely):
        likely, unsure = 1.0, 0.0
    moved = math.hypot(likely - decision.margin_factor, decision.margin_factor_std, unsure) * whole
    variances = metric.slope_stds(noise, d) ** 2 + slopes.shrinkage**2 + moved**2
    return np.asarray(np.sqrt(variances) / slopes.standard.target.scale)


def _expected_noise(slopes: FittedSlopes) -> Doubles:
    """(r,) expected deviations of the noise along principal directions of unsure curvatures."""
    metric = slopes.preconditioner
    unsure = metric.std if math.isfinite(metric.std) else 0.0
    z, weights = np.polynomial.hermite_e.hermegauss(NODES)
    curvatures = np.maximum(0.0, metric.expected + unsure * z[:, None])
    rates = np.where(metric.expected > unsure, curvatures, 0.0) / metric.curvatures
    noise = model_noise(slopes.runs, metric, lambda run: _contraction(slopes, run) * rates)
    return np.asarray(weights @ noise / weights.sum())


def _contraction(slopes: FittedSlopes, run: DescentRun) -> float:
    """By how much a step of a run contracts a direction in which features have the curvature 1.

    For squares and Huber's loss it is the length of the step, times the part of the residuals that
    is not clipped, times what is left of the rows (`left_of_rows`). For other losses, and where no
    residuals are known, it is what the gradients show, and nothing at a kink.
    """
    if not (slopes.residuals.known and isinstance(run.loss, SquaredLoss | HuberLoss)):
        return 0.0 if run.schedule.shrinking else run.contraction
    unclipped = slopes.residuals.unclipped(run.schedule.mean.threshold)
    return (
        run.schedule.step_size * unclipped * left_of_rows(int(slopes.preconditioner.active.sum()))
    )


def sampling_deviations(slopes: FittedSlopes) -> Doubles:
    """(d,) standard deviations of the slopes over samples of the population; NaN if none is known.

    The sandwich H^-1 S H^-1 / n of an M-estimator, H the mean Hessian and S the second moments of
    gradients, for residuals whose size does not depend on the features. (Where S was released, it
    may depend on them: `_unequal_spread`.) With C the covariance of the features, from the released
    second moments,

    - of numbers H = P(residual is not clipped) C and S = E(clipped residual^2) C, from the
      histogram of residuals;
    - of two labels, counts and amounts H is the mean Hessian for Gaussian features
      (`inverse_hessian`), and S = H times the dispersion: 1 for labels, E(residual^2) / E(g) for
      others, and for counts at least 1.

    Where the noise of a second moment is as large as one of a standardized feature, no release
    tells how far the steps came; nor does one where slopes are longer than any truth makes them.
    Rows of one person count as one row. Exposures are taken not to depend on the features.
    """
    loss, d = slopes.loss, slopes.d
    several = slopes.w.shape[1] > 1
    part, _ = likely_part(slopes, _expected_noise(slopes))
    hidden = slopes.preconditioner.std >= 1 or math.isnan(part)
    if several or hidden or kinked(loss):
        return np.full(d, math.nan)
    used, (mean, covariance) = slopes.standard.used, _of_features(slopes)
    parts, sizes = slopes.residuals.parts, slopes.residuals.middles
    dispersion: Doubles | float
    if loss.targets == "real":
        threshold = slopes.runs[-1].schedule.mean.threshold
        times = _unequal_spread(slopes, threshold)
        dispersion = np.array([_dispersion(slopes.residuals, threshold, t) for t in times])
        inverse = np.linalg.inv(covariance)
    else:
        w = slopes.w[:d, 0][used]
        centre = float(slopes.w[d:, 0].sum() + w @ mean) + math.log(slopes.exposure)
        inverse, curvature = inverse_hessian(loss, covariance, w, centre)
        dispersion = 1.0
        if isinstance(loss, AmountLoss):
            unit = (loss.mean or 1.0) ** (2 - loss.power)
            spread = float(parts @ sizes**2) * unit**2 / curvature
            dispersion = max(1.0, spread) if loss.power == 1 else spread
    found = np.full(d, math.inf)
    found[used] = np.sqrt(dispersion * np.maximum(np.diag(inverse), 0.0) / slopes.rows)
    return found / slopes.standard.target.scale


def _dispersion(residuals: ResidualHistogram, threshold: float, times: float) -> float:
    """E(r^2) / P(r is not clipped)^2 of clipped residuals r that are ``times`` as long before."""
    clipped = np.minimum(times * residuals.middles, threshold)
    return float(residuals.parts @ clipped**2) / residuals.unclipped(threshold / times) ** 2


def _unequal_spread(slopes: FittedSlopes, threshold: float) -> Doubles:
    """(used,) how many times as long residuals are in the rows that decide a slope; at least 1.

    A row has the influence a.z r on a slope, with a that row of the inverse of the features' second
    moments C, and r its clipped residual. If residuals were equally spread, the mean square of it
    would be (a.C a) E(r^2). The released moments S of the gradients z r say that it is a.S a. The
    ratio, less the deviation of its noise, is the mean square of the clipped residuals with the
    weights (a.z)^2, over that without. They are taken to have the released histogram, times a
    factor, which follows from it. It is 1 where no moments of gradients were released.
    """
    used, residuals = np.flatnonzero(slopes.standard.used), slopes.residuals
    if slopes.gradient_moments is None:
        return np.ones(len(used))
    (moments, std), active = slopes.gradient_moments, slopes.preconditioner.active
    square = np.ix_(active, active)
    influences = np.linalg.inv(_second_moments(slopes)[square])[: len(used)]
    seen = np.einsum("ij,jk,ik->i", influences, moments[square], influences)
    seen -= std * np.sum(influences**2, axis=1)
    clipped = np.minimum(TIMES[:, None] * residuals.middles, threshold) ** 2 @ residuals.parts
    ratios = seen / np.maximum(clipped[0] * np.diag(influences), np.finfo(np.float64).tiny)
    known = clipped / max(clipped[0], np.finfo(np.float64).tiny)
    return np.asarray(np.interp(ratios, known, TIMES))


def _second_moments(slopes: FittedSlopes) -> Doubles:
    """(rows, rows) of the features and 1; a curvature is at least what noise may hide."""
    metric = slopes.preconditioner
    curvatures = np.maximum(metric.expected, metric.noise_norm)
    curvatures = np.where(curvatures > 0, curvatures, 1.0)
    return np.asarray(metric.directions * curvatures @ metric.directions.T)


def _of_features(slopes: FittedSlopes) -> tuple[Doubles, Doubles]:
    """Mean and covariance of the used features."""
    moments, d = _second_moments(slopes), slopes.d
    used = np.flatnonzero(slopes.standard.used)
    square = moments[np.ix_(used, used)]
    if len(slopes.w) == d:
        return np.zeros(len(used)), square
    beside, own = moments[used, d], moments[d, d]
    return beside / own, square - np.outer(beside, beside) / own
