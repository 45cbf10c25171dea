"""Mean Hessians of generalized linear losses, for Gaussian features."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

from privtail.losses.amounts import AmountLoss
from privtail.losses.protocol import Loss

Doubles = NDArray[np.float64]

NODES = 40
"""Points of a Gauss-Hermite rule, for means over Gaussian margins."""

LARGEST_LOG = 30.0
"""Margins of counts are clipped to plus or minus this."""

LEAST = 0.05
"""At least this part of the curvature along the slopes is taken to be left."""


def inverse_hessian(
    loss: Loss, covariance: Doubles, w: Doubles, centre: float
) -> tuple[Doubles, float]:
    """The inverse (d, d) of the mean Hessian for slopes ``w`` (d,), and the mean E(g) below.

    The mean Hessian is that of g(m) x x', g the derivative of the link at the margin m; with a
    variance of the power p of the mean it is exp((2 - p) m). For Gaussian margins around ``centre``
    (Stein's lemma) a free intercept leaves E(g) C + (E(g'') - E(g')^2 / E(g)) C w w' C of it, C the
    ``covariance`` of the features.
    """
    variance = float(w @ covariance @ w)
    mean, along = _curvature(_slope(loss), centre, variance)
    inverse = np.linalg.inv(covariance)
    left = max(1 + along / mean * variance, LEAST)
    inverse -= (left - 1) / (left * max(variance, 1e-300)) * np.outer(w, w)
    return np.asarray(inverse / mean), mean


def _slope(loss: Loss) -> Callable[[Doubles], Doubles]:
    """The mean derivative, in the margin, of the derivative of a loss of labels or amounts."""
    if not isinstance(loss, AmountLoss):
        return lambda margins: np.asarray(expit(margins) * expit(-margins))
    rest = 2 - loss.power
    return lambda margins: np.exp(rest * np.clip(margins, -LARGEST_LOG, LARGEST_LOG))


def _curvature(
    slope: Callable[[Doubles], Doubles], centre: float, variance: float
) -> tuple[float, float]:
    """E g and E g'' - (E g')^2 / E g of Gaussian margins, by Hermite polynomials.

    E g' = E(g z) / s and E g'' = E(g (z^2 - 1)) / s^2 of m = centre + s z.
    """
    z, weights = np.polynomial.hermite_e.hermegauss(NODES)
    weights, s = weights / weights.sum(), max(math.sqrt(variance), 1e-3)
    g = slope(centre + s * z)
    mean, first, second = (float(weights @ (g * p)) for p in (1.0, z / s, (z**2 - 1) / s**2))
    mean = max(mean, 1e-300)
    return mean, second - first**2 / mean
