"""The cost of noise in proportion to a smooth sensitivity.

A function S of the data is a t-smooth sensitivity of f if, for all neighbours x and x',
|f(x) - f(x')| <= S(x) and S(x) <= e^t S(x') (Nissim, Raskhodnikova and Smith 2007). The release is
f(x) + c S(x) Z. Between neighbours it changes in two steps: from f(x) + c S(x) Z the centre moves
by at most S(x), to f(x') + c S(x) Z; then the noise is stretched by a factor in [e^-t, e^t], to
f(x') + c S(x') Z. Both relations of the library replace a record's value by another one (by 0 where
its slot is emptied), so both pay for these two steps.
"""

from __future__ import annotations

import functools
import math

from scipy.special import gammainc, gammaincc

from privtail.trusted.accounting.curves import ULP, GaussianDP, first_below, up
from privtail.trusted.events import Event

# Parts of delta that the moved centre may take; every one gives a proved bound.
_PARTS = (0.02, 0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.98)


def lognormal_rho(event: Event) -> float:
    """The rho of zCDP of one coordinate of ``laplace_lognormal`` noise, rounded up.

    Formal guarantee
    ----------------
    Z = X e^(sigma Y) with X Laplace and Y normal, t = ``smoothness``, sigma = ``spread`` and
    c = ``scale`` is (t/sigma + e^(3 sigma^2/2)/c)^2/2-zCDP (Bun and Steinke 2019). Centre: the
    density of Z is g(z) = E[e^(-sigma Y) exp(-|z| e^(-sigma Y))]/2, so |d log g/dz| is the mean of
    e^(-sigma Y) under weights e^(-sigma Y) exp(-|z| e^(-sigma Y)). The last factor rises where
    e^(-sigma Y) falls, so by Chebyshev's inequality this mean is largest at z = 0, where it is
    e^(2 sigma^2)/e^(sigma^2/2). A move by S is b = e^(3 sigma^2/2)/c times S: pure b-DP, hence
    b^2/2-zCDP. Stretching: e^t Z = X e^(sigma (Y + t/sigma)) is post-processing of a normal moved
    by a = t/sigma: a^2/2-zCDP. Both: the triangle inequality of Renyi divergences, with its free
    order at k = 1 + a/b, gives D_alpha <= alpha (a + b)^2/2. A unit of ``radius`` rows costs
    radius^2 times that (group privacy of zCDP).
    """
    stretched = event.smoothness / event.spread if event.spread else math.inf
    moved = math.exp(1.5 * event.spread**2) / event.scale
    return up(up(max(event.radius, event.diameter) * up(stretched + up(moved))) ** 2 / 2)


def smooth_gaussian_loss(event: Event) -> float:
    """Epsilon of ``smooth_gaussian`` noise at the event's delta, rounded up; may be infinite.

    Formal guarantee
    ----------------
    Moving the centre is (1/scale)-Gaussian DP: (epsilon_1, delta_1) on its exact curve. Stretching
    p normal coordinates (`_stretching`) is (epsilon_2, delta_2). One after the other, P(A) <=
    e^epsilon_1 (e^epsilon_2 R(A) + delta_2) + delta_1, so every split of delta into delta_1 +
    e^epsilon_1 delta_2 proves epsilon_1 + epsilon_2; the least of some splits is returned.
    """
    if not 0 < event.delta < 1 or (event.radius, event.diameter) != (1, 1):
        return math.inf
    centre = GaussianDP(up(1 / event.scale))
    best = math.inf
    for part in _PARTS:
        moved = centre.epsilon(part * event.delta)
        if moved < min(best, 700):
            left = (1 - part) * (1 - 4 * ULP) * event.delta * math.exp(-moved) * (1 - 4 * ULP)
            stretched = _stretching(event.smoothness, event.coordinates, left)
            best = min(best, up(moved + stretched))
    return best


@functools.lru_cache(maxsize=4096)
def _stretching(t: float, p: int, delta: float) -> float:
    """Epsilon at ``delta`` of N(0, I) against N(0, e^(2u) I) in p coordinates, all |u| <= t.

    Formal guarantee
    ----------------
    The squared length is sufficient, e^(2u) chi^2_p: a family with monotone likelihood ratio. Its
    most powerful test of u = 0 against any u > 0 (or any u < 0) is one test, whose power grows with
    |u|; so the trade-off is worst at u = t or u = -t. At u > 0, log p/q = p u - r^2 (1 -
    e^(-2u))/2 > epsilon below a radius, at u < 0 beyond one, and delta(epsilon) is the difference
    of two chi^2 probabilities, formed with 1e-10 of the larger one added for rounding.
    """
    if t == 0:
        return 0.0

    def delta_of(epsilon: float) -> float:
        inside = 2 * (p * t - epsilon) / -math.expm1(-2 * t)
        outside = 2 * (p * t + epsilon) / math.expm1(2 * t)
        grown = math.exp(min(epsilon, 700.0))
        near = 0.0
        if inside > 0:
            likely = float(gammainc(p / 2, inside / 2))
            near = likely - grown * float(gammainc(p / 2, inside / 2 * math.exp(-2 * t)))
            near += 1e-10 * likely
        likely = float(gammaincc(p / 2, outside / 2))
        far = likely - grown * float(gammaincc(p / 2, outside / 2 * math.exp(2 * t)))
        return max(near, far + 1e-10 * likely)

    return first_below(delta_of, delta, p * t + 1.0, 1e-9)
