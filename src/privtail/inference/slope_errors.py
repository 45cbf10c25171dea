"""Standard errors of the slopes of a fit, by noise and by sampling, from releases alone."""

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
"""By how much residuals may be larger in some rows than in all: factors from 1 to 256."""

CLEAR = 2.5
"""A direction is hidden if its expected second moment is at most this many stds of noise."""

HIDDEN = 0.02
"""A slope is hidden if hidden directions hold more than this part of its axis (squared length)."""


@dataclass(frozen=True)
class SlopeErrors:
    """Standard deviations of slopes, in scales of the target per scale of the feature.

    Attributes
    ----------
    noise : (d,) by noise; for a convex loss about an upper bound. Infinite for a feature that is
        not used; NaN where it is not known.
    sampling : (d,) by sampling from the population. Infinite for a slope that noise hides, or whose
        feature is not used; NaN where it is not known.
    """

    noise: Doubles
    sampling: Doubles

    @classmethod
    def of(cls, released: object, d: int) -> Self:
        """From what an algorithm released about d slopes (`Result.slopes`).

        Nothing is known if an algorithm passes on no `FittedSlopes`, or about a feature that was
        not selected. Slopes that were set to zero have no noise.
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
    """(d,) standard deviations of the slopes by noise.

    A step moves the model by a multiple of the preconditioned gradient. Along each principal
    direction this contracts the error by the curvature of the loss there, and adds noise. So the
    variance of the result follows from the curvatures. A curvature is the second moment of the
    features along the direction, times the `_contraction` of a step. The second moment is known up
    to noise: the deviation is averaged over a normal distribution, cut at zero. A second moment
    counts as zero if it is no larger than its noise, as along the difference of nearly equal
    features, or if none was released.

    Three possible biases are added: by shrinkage of a slope that may be real; by the difference of
    the slopes' common factor from its likely value; and by the error of that value (`likely_part`).
    If an estimate has a bias b and noise of deviation s, the interval +- z hypot(b, s) holds at
    least about as often as +- z s would without a bias, at confidences of 90 % and more.
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
    """(r,) deviations of the noise along principal directions, averaged over curvatures."""
    metric = slopes.preconditioner
    unsure = metric.std if math.isfinite(metric.std) else 0.0
    z, weights = np.polynomial.hermite_e.hermegauss(NODES)
    curvatures = np.maximum(0.0, metric.expected + unsure * z[:, None])
    rates = np.where(metric.expected > unsure, curvatures, 0.0) / metric.curvatures
    noise = model_noise(slopes.runs, metric, lambda run: _contraction(slopes, run) * rates)
    return np.asarray(weights @ noise / weights.sum())


def _contraction(slopes: FittedSlopes, run: DescentRun) -> float:
    """By how much a step contracts the error along a direction of second moment 1.

    For squares and Huber's loss it is the length of the step, times the share of residuals that is
    not clipped, times the second moment that is left of shrunk rows (`left_of_rows`). For other
    losses, or unknown residuals, it is estimated from the gradients; 0 for a loss with a kink.
    """
    if not (slopes.residuals.known and isinstance(run.loss, SquaredLoss | HuberLoss)):
        return 0.0 if run.schedule.shrinking else run.contraction
    unclipped = slopes.residuals.unclipped(run.schedule.mean.threshold)
    return (
        run.schedule.step_size * unclipped * left_of_rows(int(slopes.preconditioner.active.sum()))
    )


def sampling_deviations(slopes: FittedSlopes) -> Doubles:
    """(d,) standard deviations of the slopes over samples of the population; NaN if none is known.

    The sandwich H^-1 S H^-1 / n of an M-estimator. H is the mean Hessian, and S the second moments
    of gradients. Residuals are taken not to depend on the features in size, unless S was released
    (`_unequal_spread`). C is the covariance of the features, from released second moments.

    - For numbers H = P(residual is not clipped) C and S = E(clipped residual^2) C, from the
      histogram of residuals.
    - For two labels, counts and amounts H is the mean Hessian for Gaussian features
      (`inverse_hessian`), and S = H times the dispersion. This is 1 for labels, and
      E(residual^2) / E(Hessian weight) for others, for counts at least 1.

    Infinite for slopes that noise hides (`_hidden`). NaN without second moments, or if no true
    slopes would lead to fitted ones of this length (`likely_part`). Rows of one person count as one
    row. Exposures are taken not to depend on the features.
    """
    loss, d = slopes.loss, slopes.d
    unmeasured = slopes.w.shape[1] > 1 or math.isinf(slopes.preconditioner.std)
    part, _ = likely_part(slopes, _expected_noise(slopes))
    if unmeasured or math.isnan(part) or kinked(loss):
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
    found[_hidden(slopes)] = math.inf
    return found / slopes.standard.target.scale


def _hidden(slopes: FittedSlopes) -> NDArray[np.bool_]:
    """(d,) whether noise may hide that the feature of a slope is nearly collinear with others.

    Along a hidden direction steps may be too short, and no release bounds what is left to go.
    Noise also mixes the released directions: a clear one of second moment m has a part of about
    (std / m)^2 in each hidden one.
    """
    metric = slopes.preconditioner
    mixed = (metric.std / np.maximum(metric.expected, metric.std)) ** 2
    hidden = metric.expected <= CLEAR * metric.std
    parts = np.where(hidden, 1.0, hidden.sum() * mixed)
    return np.asarray(metric.directions[: slopes.d] ** 2 @ parts > HIDDEN)


def _dispersion(residuals: ResidualHistogram, threshold: float, times: float) -> float:
    """E(r^2) / P(r is not clipped)^2 for clipped residuals r, ``times`` as long before clipping."""
    clipped = np.minimum(times * residuals.middles, threshold)
    return float(residuals.parts @ clipped**2) / residuals.unclipped(threshold / times) ** 2


def _unequal_spread(slopes: FittedSlopes, threshold: float) -> Doubles:
    """(used,) by which factor residuals are larger in the rows that decide a slope; at least 1.

    A record with features z and clipped residual r has the influence (a.z) r on slope j, with a the
    j-th row of the inverse of the second moments C. If residuals were equally spread, its mean
    square would be (a.C a) E(r^2). By the released moments S of the gradients z r it is a.S a. The
    ratio compares mean squares of clipped residuals: with the weights (a.z)^2 and without. It is at
    most the largest ratio that clipping allows, less the deviation of its noise. The factor follows
    from it: the histogram of weighted residuals is taken to be the released one, stretched by the
    factor. It is 1 if no S was released.
    """
    used, residuals = np.flatnonzero(slopes.standard.used), slopes.residuals
    if slopes.gradient_moments is None:
        return np.ones(len(used))
    (moments, std), active = slopes.gradient_moments, slopes.preconditioner.active
    square = np.ix_(active, active)
    influences = np.linalg.inv(_second_moments(slopes)[square])[: len(used)]
    seen = np.einsum("ij,jk,ik->i", influences, moments[square], influences)
    clipped = np.minimum(TIMES[:, None] * residuals.middles, threshold) ** 2 @ residuals.parts
    known = clipped / max(clipped[0], np.finfo(np.float64).tiny)
    equal = np.maximum(clipped[0] * np.diag(influences), np.finfo(np.float64).tiny)
    noise = std * np.sum(influences**2, axis=1) / equal
    ratios = np.minimum(seen / equal, known[-1] - noise)
    return np.asarray(np.interp(ratios, known, TIMES))


def _second_moments(slopes: FittedSlopes) -> Doubles:
    """(rows, rows) of the features and 1; eigenvalues are at least what noise may hide."""
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
