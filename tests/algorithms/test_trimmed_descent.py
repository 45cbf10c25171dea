"""W20 Algorithm 3 with Algorithm 2 against the corrected boxes and theorem 5."""

from __future__ import annotations

import math

import numpy as np
import pytest

from privtail.algorithms import TrimmedDescent
from privtail.calibration import calibrate
from privtail.domains import L1, L2Ball, Unconstrained
from privtail.errors import InvalidInput
from privtail.trusted.accountants import cost
from privtail.trusted.budget import Budget
from privtail.trusted.mechanisms.simulated import SimulatedSampler
from privtail.trusted.problem import Problem


def smooth_sensitivity(x, m, a, b, t, clipped):
    """max_k e^(-k t) max_(0 <= l <= k + 1) (x_(n-m+1+k-l) - x_(m+1-l))/(n - 2 m), at most b - a.

    Of clipped values x in [a, b], else of values without bounds.
    """
    n = len(x)
    p = [a if clipped else -math.inf, *sorted(x), b if clipped else math.inf]
    best = 0.0
    for k in range(2 * m + 2):
        for j in range(k + 2):
            high, low = min(n - m + 1 + k - j, n + 1), max(m + 1 - j, 0)
            moved = min((p[high] - p[low]) / (n - 2 * m), b - a)
            best = max(best, math.exp(-k * t) * moved)
    return best


def algorithm_2(D, *, epsilon, a, b, m, c, clipped, Z):
    """Corrected: a smooth S, Laplace log-normal with its best sigma."""
    t = c * epsilon
    sigma = max(np.roots([5 * epsilon / t, -5, 0, -1]), key=lambda r: -abs(r.imag)).real
    s = math.exp(-1.5 * sigma**2) * (epsilon - t / sigma)
    x = sorted(min(max(float(v), a), b) if clipped else float(v) for v in D)
    trimmed = min(max(sum(x[m : len(x) - m]) / (len(x) - 2 * m), a), b)
    X, Y = Z
    return trimmed + smooth_sensitivity(x, m, a, b, t, clipped) / s * X * math.exp(sigma * Y)


def algorithm_3(gradient, kind, X, y, *, T, eta, a, b, m, c, clipped, multiplier, project, Z):
    """Corrected: eps~/sqrt(d T) per call, which is 1/multiplier."""
    w = np.zeros(Z[0][0].shape)
    for t in range(T):
        gradients = np.array([gradient(kind, w, x, v) for x, v in zip(X, y, strict=True)])
        g = np.zeros_like(w)
        for j in np.ndindex(w.shape):
            g[j] = algorithm_2(
                gradients[(slice(None), *j)], epsilon=1 / multiplier, a=a, b=b, m=m, c=c,
                clipped=clipped, Z=(Z[t][0][j], Z[t][1][j]),
            )  # fmt: skip
        w = project(w - eta * g)
    return w


@pytest.fixture
def drawn(monkeypatch):
    """The Laplace and normal variables of every call."""
    seen = []

    def scaled(self, values, sizes, scale, spread):
        x = self._rng.laplace(0.0, 1.0, values.shape)
        y = self._rng.normal(0.0, 1.0, values.shape)
        seen.append((x, y))
        return np.rint(values + sizes * scale * x * np.exp(spread * y)).astype(np.int64)

    monkeypatch.setattr(SimulatedSampler, "scaled_laplace_lognormal", scaled)
    return seen


@pytest.mark.parametrize("trim", [0, 3, 20])
@pytest.mark.parametrize(
    ("domain", "projection"),
    [
        (Unconstrained(), lambda w: w),
        (L2Ball(radius=0.6), lambda w: w * min(1.0, 0.6 / np.linalg.norm(w))),
        (L1(alpha=0.2), lambda w: np.sign(w) * np.maximum(np.abs(w) - 0.06, 0)),
    ],
    ids=["free", "ball", "l1"],
)
@pytest.mark.parametrize("make", [TrimmedDescent, TrimmedDescent.clipped], ids=["box", "clipped"])
def test_the_box(watched, drawn, case, gradient, keep_slopes, domain, projection, trim, make):
    X, y, loss = case.records()
    algorithm = make(steps=3, step_size=0.3, low=-2.0, high=1.5, trim=trim, smoothness=0.2)
    w = watched.fit(
        algorithm, case.stored(X), y, loss, domain=domain, intercept=case.intercept, epsilon=50.0
    )
    shape = w.shape
    expected = algorithm_3(
        gradient, case.kind, case.rows(X), y, T=3, eta=0.3, a=-2.0, b=1.5, m=trim, c=0.2,
        clipped=make != TrimmedDescent, multiplier=watched.multiplier,
        project=lambda v: keep_slopes(case, v, projection),
        Z=[(x.reshape(shape), v.reshape(shape)) for x, v in drawn],
    )  # fmt: skip
    assert np.abs(w - expected).max() < 1e-6


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 3.0])
def test_a_call_gets_what_theorem_4_says_or_slightly_more(epsilon):
    """eps~ = sqrt(2 L + 2 eps) - sqrt(2 L), eps~/sqrt(d T) a call; the conversion is better."""
    d, T, delta = 7, 11, 1e-5
    algorithm = TrimmedDescent(steps=T, step_size=0.1, low=-1.0, high=1.0)
    problem = Problem(n=1000, d=d)
    multiplier = calibrate(lambda m: algorithm.plan(m, problem), Budget(epsilon, delta))
    L = math.log(1 / delta)
    printed = (math.sqrt(2 * L + 2 * epsilon) - math.sqrt(2 * L)) / math.sqrt(d * T)
    assert printed <= 1 / multiplier < 1.5 * printed
    rho = cost(algorithm.plan(multiplier, problem), "replace_one").rho
    assert rho == pytest.approx(d * T / multiplier**2 / 2)
    # The text at hand prints eps without the tilde: not (eps, delta)-DP.
    literal = algorithm.plan(math.sqrt(d * T) / epsilon, problem)
    assert cost(literal, "replace_one").epsilon(delta) > 2 * epsilon


def test_theorem_5():
    found = TrimmedDescent.from_theory(
        10_000, 5, Budget(1.0, 1e-5), low=-3.0, high=4.0, curvature=2.0, strong_convexity=0.5
    )
    assert found.steps == math.ceil(4 * math.log(10_000))
    assert found.step_size == 0.5
    assert (found.low, found.high) == (-3.0, 4.0)
    found.plan(1.0, Problem(n=10_000, d=5))
    small = TrimmedDescent.from_theory(
        50, 1, Budget(1.0, 1e-5), low=-1.0, high=1.0, curvature=1.0, strong_convexity=1.0
    )
    small.plan(1.0, Problem(n=50, d=1))
    for budget, strong in ((Budget(1.0), 0.5), (Budget(1.0, 1e-5), 0.0), (Budget(1.0, 1e-5), 3.0)):
        with pytest.raises(InvalidInput):
            TrimmedDescent.from_theory(
                100, 1, budget, low=-1.0, high=1.0, curvature=2.0, strong_convexity=strong
            )


def test_wide_bounds_cost_little(watched, make_problem):
    """The promise of a smooth sensitivity: noise follows the spread, not the interval."""
    X, y, loss = make_problem("squared", 5000, 3)
    X = np.clip(X, -3, 3)
    truth = np.linspace(1.0, -1.0, 3)
    errors = {}
    for reach in (10.0, 1000.0):
        algorithm = TrimmedDescent.clipped(
            steps=10, step_size=0.5, low=-reach, high=reach, trim=500, smoothness=0.3
        )
        w = watched.fit(algorithm, X, y, loss, intercept=True, epsilon=5.0)
        errors[reach] = np.linalg.norm(w[:3, 0] - truth)
    assert errors[10.0] < 0.3
    assert errors[1000.0] < 0.3


def test_it_beats_its_printed_noise_by_orders_of_magnitude():
    """N = 1e5, d = 10, T = 50, b - a = 40, eps = 1: std 0.01, not 3e4.

    See docs/mathematics.md#trimmed-mean.
    """
    from privtail.trusted.smooth.trimmed import decay, trimmed_sum

    problem = Problem(n=100_000, d=10)
    algorithm = TrimmedDescent.clipped(
        steps=50, step_size=0.1, low=-20.0, high=20.0, smoothness=0.04
    )
    multiplier = calibrate(lambda m: algorithm.plan(m, problem), Budget(1.0, 1e-5))
    mechanism = algorithm.mechanism(multiplier, problem)
    x = np.random.default_rng(0).standard_t(2.5, problem.n)
    grid = mechanism.on_grid(x[:, None], problem.bits)[0]
    weights = decay(mechanism.t(problem), mechanism.trim, problem.bits)
    inside = mechanism.inside(problem)
    _, size = trimmed_sum(grid, mechanism.trim, 2**problem.bits, weights, inside)
    event = mechanism.event(problem, 10)
    std = size * event.unit * event.scale * math.sqrt(2) * math.exp(event.spread**2)
    assert 0.003 < std < 0.02
