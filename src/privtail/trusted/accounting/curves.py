"""Closed forms: Gaussian DP, zCDP, (epsilon, delta), and searches among trials.

Every number returned is an upper bound of the theorem's number: floating-point error is covered
by a guard that is added, never subtracted.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Protocol

from scipy.special import erfcx, ndtr

ULP = 2.0**-52
_HALF_LOG_TAU = 0.5 * math.log(2 * math.pi)


class Curve(Protocol):
    """One theorem about one sequence of releases: epsilon for every delta."""

    @property
    def theorem(self) -> str:
        """Name of the theorem."""
        ...

    def epsilon(self, delta: float) -> float:
        """An epsilon for which the releases are (epsilon, delta)-DP; inf when none is known."""
        ...


def up(x: float) -> float:
    """``x`` plus what a few roundings can have lost."""
    return x * (1 + 8 * ULP)


def rounded_up(x: Fraction) -> float:
    """The least double that is not below ``x``."""
    try:
        nearest = float(x)
    except OverflowError:
        return math.inf
    return nearest if Fraction(nearest) >= x else math.nextafter(nearest, math.inf)


def decimal(x: float) -> Fraction:
    """The number as it is written: 0.1 is one tenth."""
    return Fraction(repr(float(x)))


def _smallest(objective: Callable[[float], float], low: float, high: float) -> float:
    """The best value met by a golden-section search; never below the true minimum."""
    ratio = (math.sqrt(5) - 1) / 2
    left, right = high - ratio * (high - low), low + ratio * (high - low)
    at_left, at_right = objective(left), objective(right)
    best = min(at_left, at_right)
    for _ in range(70):
        if at_left <= at_right:
            high, right, at_right = right, left, at_left
            left = high - ratio * (high - low)
            at_left = objective(left)
        else:
            low, left, at_left = left, right, at_right
            right = low + ratio * (high - low)
            at_right = objective(right)
        best = min(best, at_left, at_right)
    return best


def first_below(
    delta: Callable[[float], float], target: float, high: float, tolerance: float = 1e-12
) -> float:
    """The smallest epsilon, rounded up by ``tolerance``, with ``delta(epsilon) <= target``."""
    if delta(0.0) <= target:
        return 0.0
    low = 0.0
    while delta(high) > target:
        low, high = high, 2 * high
        if math.isinf(high):
            return math.inf
    while high - low > tolerance * high:
        middle = 0.5 * (low + high)
        if delta(middle) <= target:
            high = middle
        else:
            low = middle
    return high


@dataclass(frozen=True)
class NoPrivacy:
    """Something was released without noise."""

    theorem: str = field(default="no noise: not private", init=False)

    def epsilon(self, delta: float) -> float:
        """Always infinite (a delta of 1 promises nothing)."""
        return math.inf


@dataclass(frozen=True)
class ApproximateDP:
    """(loss, slack)-DP, kept as exact fractions; a delta is taken at its decimal value.

    Formal guarantee
    ----------------
    Sums of (epsilon_i, delta_i) compose, also when chosen adaptively (Dwork, Kenthapadi, McSherry,
    Mironov, Naor 2006; Rogers, Roth, Ullman, Vadhan 2016).
    """

    loss: Fraction
    slack: Fraction = Fraction(0)

    @property
    def theorem(self) -> str:
        """``pure epsilon`` when nothing may fail."""
        return "basic composition" if self.slack else "pure epsilon"

    def epsilon(self, delta: float) -> float:
        """The loss when ``delta`` covers the slack, else infinity."""
        if not self.loss and not self.slack:
            return 0.0
        if decimal(delta) < self.slack:
            return math.inf
        written = rounded_up(self.loss)
        below = math.nextafter(written, 0.0)
        # The double that prints as 0.3 lies below 3/10 and still means it.
        return below if math.isfinite(written) and decimal(below) >= self.loss else written


@dataclass(frozen=True)
class GaussianDP:
    """mu-Gaussian differential privacy: as hard to attack as N(0, 1) against N(mu, 1).

    Formal guarantee
    ----------------
    Adaptive Gaussian releases with ratios mu_i = sensitivity_i / std_i are exactly mu-GDP with
    mu^2 = sum mu_i^2, and delta(epsilon) = Phi(-epsilon/mu + mu/2) - e^epsilon Phi(-epsilon/mu -
    mu/2) (Balle and Wang 2018; Dong, Roth, Su 2022). The fully adaptive
    filter adds mu^2 as well (Smith and Thakurta 2022; Koskela, Tobaben, Honkela 2023).

    Both terms equal phi(a) times Mills ratios at a = epsilon/mu - mu/2 and b = a + mu, so the
    difference is formed inside the logarithm, with its rounding error added to it.
    """

    mu: float
    theorem: str = field(default="Gaussian DP (exact)", init=False)

    def log_delta(self, epsilon: float) -> float:
        """Logarithm of delta(epsilon), rounded up."""
        if self.mu == 0:
            return -math.inf
        if math.isinf(self.mu):
            return 0.0
        a, b = epsilon / self.mu - self.mu / 2, epsilon / self.mu + self.mu / 2
        log_phi = -0.5 * a * a - _HALF_LOG_TAU
        scale = math.sqrt(math.pi / 2)
        mills_b = scale * float(erfcx(b / math.sqrt(2)))
        guard = 4 * ULP * (1 + abs(a) * b)
        if a < 0:
            value = float(ndtr(-a)) - math.exp(log_phi) * mills_b
            return min(0.0, math.log(max(value, 0.0) + 8 * ULP + guard * math.exp(log_phi)))
        mills_a = scale * float(erfcx(a / math.sqrt(2)))
        difference = max(mills_a - mills_b, 0.0) + 8 * ULP * mills_a
        return min(0.0, log_phi + math.log(difference) + guard)

    def delta(self, epsilon: float) -> float:
        """The exact curve, rounded up."""
        log_delta = self.log_delta(epsilon)
        return math.exp(log_delta) * (1 + 4 * ULP) if log_delta < 0 else 1.0

    def epsilon(self, delta: float) -> float:
        """The exact curve inverted, rounded up."""
        if self.mu == 0 or delta >= 1:
            return 0.0
        if delta <= 0 or math.isinf(self.mu):
            return math.inf
        target = math.log(delta) - 2 * ULP * (1 - math.log(delta))
        high = self.mu * (self.mu / 2 + math.sqrt(2 * -target))
        return first_below(self.log_delta, target, high)


@dataclass(frozen=True)
class ZeroConcentratedDP:
    """Zero-concentrated differential privacy of parameter ``rho``.

    Formal guarantee
    ----------------
    rho adds under adaptive composition (Bun and Steinke 2016) and in fully adaptive filters
    (Feldman and Zrnic 2021). rho-zCDP gives (epsilon, delta) with log delta = (a - 1)(a rho -
    epsilon) - a log a + (a - 1) log(a - 1) for every a > 1 (Canonne, Kamath, Steinke 2020,
    Proposition 12), so a search that misses the best ``a`` is loose, not wrong.
    """

    rho: float
    theorem: str = field(default="zCDP", init=False)

    def epsilon(self, delta: float) -> float:
        """The conversion at the best order found, rounded up."""
        if self.rho == 0:
            return 0.0
        remaining = delta * (1 - 2 * ULP)
        if remaining <= 0 or math.isinf(self.rho):
            return math.inf
        if remaining >= 1:
            return 0.0
        log_inverse = -math.log(remaining)

        def at(u: float) -> float:
            excess, log_order = math.exp(u), math.log1p(math.exp(u))
            terms = (
                (1 + excess) * self.rho,
                log_inverse / excess,
                -log_order / excess,
                u,
                -log_order,
            )
            return math.fsum(terms) + 8 * ULP * math.fsum(map(abs, terms))

        centre = 0.5 * (math.log(log_inverse) - math.log(self.rho))
        return max(0.0, _smallest(at, centre - 10, centre + 10))

    def delta(self, epsilon: float) -> float:
        """The conversion at the best order found, rounded up."""
        if self.rho == 0:
            return 0.0
        if math.isinf(self.rho):
            return 1.0

        def at(u: float) -> float:
            excess, log_order = math.exp(u), math.log1p(math.exp(u))
            terms = (
                excess * (1 + excess) * self.rho,
                -excess * epsilon,
                excess * u,
                -(1 + excess) * log_order,
            )
            return math.fsum(terms) + 8 * ULP * math.fsum(map(abs, terms))

        centre = math.log(max(epsilon / self.rho - 1, 1e-3) / 2)
        log_delta = min(0.0, _smallest(at, centre - 10, centre + 10))
        return math.exp(log_delta) * (1 + 4 * ULP) if log_delta < 0 else 1.0


@dataclass(frozen=True)
class ButFor:
    """A theorem about all that is released, but for an accident of probability ``slack``.

    Formal guarantee
    ----------------
    Let P and Q be the laws of all releases on two neighbours, and P' and Q' laws that ``curve``
    compares. Let P reach every outcome h, without an accident, with probability w(h) P'(h), where
    w(h) >= 1 - s; likewise Q and Q'. This is so, s the slack, if each release, whatever was said
    before, meets an accident with probability at most s_i, independently of what it says otherwise,
    and the s_i sum to at most s along every path. For any set S, with N the other outcomes, P(N) >=
    (1 - s) P'(N), so P(S) <= s + (1 - s) P'(S); and Q(S) >= (1 - s) Q'(S). Hence P(S) <= s +
    (1 - s)(e^epsilon Q'(S) + delta) <= e^epsilon Q(S) + delta + s: the slack adds to delta, once,
    whatever the theorem and whatever is chosen after an accident.
    """

    curve: Curve
    slack: float

    @property
    def theorem(self) -> str:
        """That of the curve."""
        return f"{self.curve.theorem} but for {self.slack:.3g}"

    def epsilon(self, delta: float) -> float:
        """That of the curve, at what the slack leaves of delta."""
        if delta < self.slack:
            return math.inf
        return self.curve.epsilon((delta - self.slack) * (1 - 4 * ULP))


@dataclass(frozen=True)
class Basic:
    """Two independent groups of releases, one after the other: epsilons and deltas add."""

    first: Curve
    second: ApproximateDP

    @property
    def theorem(self) -> str:
        """Both names."""
        return f"{self.first.theorem} + {self.second.theorem}"

    def epsilon(self, delta: float) -> float:
        """The second group takes its slack, the first the rest of delta."""
        remaining = delta - rounded_up(self.second.slack) * (1 + ULP)
        total = self.second.epsilon(delta) + self.first.epsilon(remaining)
        return total * (1 + 2 * ULP)


@dataclass(frozen=True)
class Searched:
    """The best of a secret number of trials, and rho-zCDP releases beside them.

    ``shift`` and ``factor`` are those of `search_surcharge`, added and multiplied over all
    searches; ``rho`` is that of one trial of each, plus everything else.

    Formal guarantee
    ----------------
    At every order a > 1 the Renyi divergence is at most a rho + shift + log(factor)/(a - 1): those
    of `search_surcharge` for each search and rho a for the rest add up, also when chosen adaptively
    (Mironov 2017). In the conversion of `ZeroConcentratedDP`, log delta = (a - 1)(D - epsilon) -
    ..., the shift comes off epsilon and the factor multiplies delta.
    """

    rho: float
    shift: float
    factor: float
    theorem: str = field(default="best of a secret number of trials (RDP)", init=False)

    def epsilon(self, delta: float) -> float:
        """The conversion at the best order found, rounded up."""
        below = delta * (1 - 4 * ULP)
        return up(self.shift + ZeroConcentratedDP(self.rho).epsilon(below / up(self.factor)))


def search_surcharge(rho: float, trials: int) -> tuple[float, float]:
    """(shift, factor) of a search whose trials are rho-zCDP and ``trials`` on average.

    Formal guarantee
    ----------------
    Let g = 1/trials, P(K = k) = g (1 - g)^(k-1), f(x) = E x^K = g x/(1 - (1 - g) x), and let Q, Q'
    be the law of a trial's outcome on two neighbours, ordered by score (equal scores by a random
    number that each trial draws: among exchangeable trials, keeping the first comes to the same).
    All K trials are at most y with probability f(F(y)), F(y) = Q(<= y). So the best is y with
    probability A(y) = f(F(y)) - f(F(<y)) = Q(y) E_u f'(F_u), where F_u = Q(<y) + u Q(y), u uniform.
    By convexity of s^a t^(1-a),

        sum A^a A'^(1-a) <= sum_y Q(y)^a Q'(y)^(1-a) E_u [f'(F_u)^a f'(F'_u)^(1-a)]
                         <= e^((a-1) a rho) max_u f'(F_u) (f'(F_u)/f'(F'_u))^(a-1).

    f'(x) = g/(1 - (1 - g) x)^2 is at most 1/g = trials: the factor. Let p = g + (1 - g)(1 - F_u),
    which is at least g; then f'(F_u)/f'(F'_u) = (p'/p)^2. Now p is the probability of an event of
    one trial and two public coins: that a coin of bias g shows, or the outcome is none of those
    that F_u counts. A Renyi divergence of order b bounds it, p' <= (e^(b rho) p)^(1 - 1/b), so
    p'/p <= e^((b - 1) rho) g^(-1/b) for every b >= 1. Together D_a <= a rho + 2 ((b - 1) rho +
    log(trials)/b) + log(trials)/(a - 1): Papernot and Steinke 2022, theorem 2 with eta = 1. The
    best b is sqrt(log(trials)/rho), or 1; any b is a bound.
    """
    logarithm = up(math.log(trials))
    if logarithm == 0 or rho == 0:
        return 0.0, float(trials) if rho else 1.0
    order = max(1.0, math.sqrt(logarithm / rho))
    return up(2 * up((order - 1) * rho + logarithm / order)), float(trials)
