"""Catoni and Giulini's smoothed influence function, and fractions that come close to it.

Nothing here is trusted: the core forces what a fraction gives onto the declared range, whatever it
is.
"""

from __future__ import annotations

import math
from functools import cache

import numpy as np
from numpy.typing import NDArray
from scipy.special import comb, ndtr

from privtail.compilation import steady
from privtail.errors import InvalidInput


def catoni_bound(smoothing: float) -> float:
    """c_beta = (2 sqrt 2 / 3)(2 Phi(sqrt beta) - 1), the supremum of the smoothed influence."""
    return 2 * math.sqrt(2) / 3 * float(2 * ndtr(math.sqrt(smoothing)) - 1)


@steady
def catoni_influence(a: NDArray[np.float64], smoothing: float) -> NDArray[np.float64]:
    """E phi(a (1 + eta)), eta ~ N(0, 1/smoothing), in a numerically safe form; shape of ``a``.

    The printed closed form (Holland 2019, eq. 11; Wang et al. 2020, eq. 9) cancels catastrophically
    for large |a|. For small |a|/sqrt(smoothing) truncated moments are used, else Gauss-Legendre
    quadrature of phi on [-sqrt 2, sqrt 2] plus the two tails (docs/mathematics.md#catoni).
    """
    a = np.asarray(a, dtype=np.float64)
    positive = np.minimum(np.abs(a), 1e150)  # the function is constant long before that
    b = positive / math.sqrt(smoothing)
    root = math.sqrt(2.0)
    top = 2 * root / 3

    def density(x: NDArray[np.float64]) -> NDArray[np.float64]:
        return np.exp(-0.5 * x * x) / math.sqrt(2 * math.pi)

    result = np.zeros_like(positive)
    small = (b <= 0.35) & (b > 1e-150)
    m, s = positive[small], b[small]
    low, high = -(root + m) / s, (root - m) / s
    low, high = np.maximum(low, -40.0), np.clip(high, -40.0, 40.0)
    d_low, d_high = density(low), density(high)
    M0 = ndtr(high) - ndtr(low)
    M1 = d_low - d_high
    M2 = M0 + low * d_low - high * d_high
    M3 = (low**2 + 2) * d_low - (high**2 + 2) * d_high
    cubic = m**3 * M0 + 3 * m**2 * s * M1 + 3 * m * s**2 * M2 + s**3 * M3
    result[small] = m * M0 + s * M1 - cubic / 6 + top * (ndtr(-high) - ndtr(low))

    large = b > 0.35
    m, s = positive[large][:, None], b[large][:, None]
    nodes, weights = np.polynomial.legendre.leggauss(64)
    x = root * nodes
    middle = ((x - x**3 / 6) * density((x - m) / s) / s) @ (root * weights)
    tails = top * (ndtr((m - root) / s) - ndtr(-(root + m) / s))[:, 0]
    result[large] = middle + tails
    tiny = b <= 1e-150
    result[tiny] = positive[tiny]
    return np.copysign(np.minimum(result, catoni_bound(smoothing)), a)


@cache
def catoni_fraction(smoothing: float, degree: int) -> tuple[float, ...]:
    """P and Q, ``degree`` coefficients each, with |m P(m) / (1 + m Q(m)) - E phi| < 8e-7, m = |a|.

    Least squares of numerator - target x denominator in the basis m^k / (1 + m)^n, reweighted
    towards the largest error, of the least degree n that is accurate enough. P(0) = 1, the slope of
    E phi: entries far below the scale lose nothing, whatever the scale. Accuracy only: the
    kernel forces the result onto [-c_beta, c_beta] whatever the fraction is.
    """
    u = np.sin(np.linspace(0, np.pi / 2, 602))[1:-1] ** 2
    m = u / (1 - u)
    target = catoni_influence(m, smoothing)
    for n in range(7, degree + 1):
        k = np.arange(n + 1)
        sizes = comb(n, k)
        basis = sizes * u[:, None] ** k * (1 - u[:, None]) ** (n - k)
        first, rest = basis[:, 0], basis[:, 1:]
        columns = np.hstack([rest[:, 1:], -target[:, None] * rest])
        ahead = target * first - basis[:, 1] / n
        weights = below = np.ones_like(u)
        for _ in range(10):
            w = weights / below
            fit = np.linalg.lstsq(columns * w[:, None], ahead * w, rcond=None)[0]
            P = np.concatenate([[1.0], fit[: n - 1] * sizes[2:]])
            Q = fit[n - 1 :] * sizes[1:]
            below = first + rest @ fit[n - 1 :]
            error = np.abs(m * np.polyval(P[::-1], m) / (1 + m * np.polyval(Q[::-1], m)) - target)
            if error.max() < 8e-7 and (below > 0).all():
                padding = (0.0,) * (degree - n)
                return (*P.tolist(), *padding, *Q.tolist(), *padding)
            below = np.maximum(below, 1e-3)
            weights = weights * np.sqrt(0.2 + error / error.max())
    raise InvalidInput(
        f"No fraction reaches 8e-7 for smoothing={smoothing!r}. Take one nearer to 1."
    )
