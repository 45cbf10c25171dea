"""The baselines of W19's figure 4: their boxes, and what their own noise truly costs."""

from __future__ import annotations

import math

import numpy as np
import pytest

from privtail.algorithms import NoisyDescent, RandomRoundDescent
from privtail.calibration import calibrate
from privtail.domains import Unconstrained
from privtail.trusted.accountants import cost
from privtail.trusted.budget import Budget
from privtail.trusted.problem import Problem
from privtail.trusted.sampling import PoissonBatches


def clipped_sum(gradient, kind, w, X, y, ids, G):
    total = np.zeros_like(w)
    for i in ids:
        g = gradient(kind, w, X[i], y[i])
        total += g / max(1.0, np.linalg.norm(g) / G)
    return total


def test_dp_gd(watched, case, gradient):
    """Wang, Ye, Xu 2017: x_k = x_(k-1) - eta (grad F + z), x_R for R uniform in 1 ... T."""
    X, y, loss = case.records()
    algorithm = NoisyDescent(steps=5, step_size=0.3, threshold=1.5)
    w = watched.fit(
        algorithm, case.stored(X), y, loss, domain=Unconstrained(), intercept=case.intercept,
        epsilon=20.0,
    )  # fmt: skip
    rows, n = case.rows(X), len(X)
    x = [np.zeros(w.shape)]
    for k in range(5):
        g = clipped_sum(gradient, case.kind, x[k], rows, y, range(n), 1.5) / n
        x.append(x[k] - 0.3 * (g + watched.noise[k].reshape(w.shape)))
    assert np.abs(w - x[1:][watched.picks[0]]).max() < 1e-6


def test_rrpsgd(watched, case, gradient):
    """Zhang et al. 2017: w_(t+1) = w_t - eta (grad l(w_t, xi_t) + z_t), up to a random round."""
    X, y, loss = case.records()
    algorithm = RandomRoundDescent(rows=len(X), steps=40, step_size=0.2, threshold=1.5)
    w = watched.fit(
        algorithm, case.stored(X), y, loss, domain=Unconstrained(), intercept=case.intercept,
        epsilon=50.0,
    )  # fmt: skip
    rows = case.rows(X)
    x = [np.zeros(w.shape)]
    for t in range(40):
        g = clipped_sum(gradient, case.kind, x[t], rows, y, watched.batches[t], 1.5)
        x.append(x[t] - 0.2 * (g + watched.noise[t].reshape(w.shape)))
    assert np.abs(w - x[1 + watched.picks[0]]).max() < 1e-6
    assert {0, 1} <= {len(b) for b in watched.batches}


def true_epsilon(algorithm, multiplier, problem, delta):
    return cost(algorithm.plan(multiplier, problem), "replace_one").epsilon(delta)


PROBLEM = Problem(n=200_000, d=54)


def test_the_quoted_noise_is_short_of_its_factor():
    """At (.5, 1e-3), T = 200, z = sigma/(2G/n): 735 with the factor T, 51.9 without,
    65 needed; without it the bound breaks from T = 122 on at .5, and from T = 75 on at 2.
    See docs/mathematics.md#boxes-not-at-hand.
    """
    budget = Budget(0.5, 1e-3)
    algorithm = NoisyDescent(steps=200, step_size=1.0, threshold=1.0)
    z = {over: algorithm.quoted_multiplier(budget, over_steps=over) / 2 for over in (True, False)}
    assert z[True] == pytest.approx(735, abs=1)
    assert z[False] == pytest.approx(51.9, abs=0.1)
    needed = calibrate(lambda m: algorithm.plan(m, PROBLEM), budget) / 2
    assert needed == pytest.approx(65, abs=1)
    for epsilon, last in ((0.5, 121), (2.0, 74)):
        costs = []
        for steps in (last, last + 1):
            shorter = NoisyDescent(steps=steps, step_size=1.0, threshold=1.0)
            multiplier = shorter.quoted_multiplier(Budget(epsilon, 1e-3), over_steps=False)
            costs.append(true_epsilon(shorter, multiplier, PROBLEM, 1e-3))
        assert costs[0] <= epsilon < costs[1]


@pytest.mark.parametrize(
    ("epsilon", "zcdp", "gdp"), [(0.1, 8.06, 1.75), (0.5, 8.29, 3.08), (2.0, 9.12, 4.84)]
)
def test_the_constant_that_is_left_open(epsilon, zcdp, gdp):
    """C by zCDP and by exact Gaussian DP, in units of the sensitivity 2 G/n: x 4.

    See docs/mathematics.md#boxes-not-at-hand.
    """
    budget = Budget(epsilon, 1e-3)
    algorithm = NoisyDescent(steps=200, step_size=1.0, threshold=1.0)
    L = math.log(1e3)
    rho = (math.sqrt(L + epsilon) - math.sqrt(L)) ** 2
    assert 2 * epsilon**2 / (rho * L) == pytest.approx(zcdp, rel=0.002)
    exact = algorithm.printed_multiplier(budget, gdp * 1.01)
    short = algorithm.printed_multiplier(budget, gdp * 0.95)
    assert true_epsilon(algorithm, exact, PROBLEM, 1e-3) <= epsilon
    assert true_epsilon(algorithm, short, PROBLEM, 1e-3) > epsilon


def test_the_noise_of_rrpsgd_is_far_more_than_it_needs():
    """n = 200, T = n^2, at (.5, 1e-3): about a tenth of the stated epsilon."""
    n, budget = 200, Budget(0.5, 1e-3)
    algorithm = RandomRoundDescent(rows=n, steps=n * n, step_size=0.1, threshold=1.0)
    sigma = algorithm.printed_multiplier(budget)
    assert sigma == pytest.approx(2 * math.sqrt(math.log(3 * n / 1e-3) * math.log(2e3)) / 0.5)
    spent = true_epsilon(algorithm, sigma, Problem(n=n, d=3), 1e-3)
    assert 0.01 < spent < 0.2


def test_parameters():
    n, d, delta, L, G = 1000, 10, 1e-5, 4.0, 1.5
    budget = Budget(0.5, delta)
    gd = NoisyDescent.from_theory(n, d, budget, curvature=L, lipschitz=G)
    assert gd.steps == math.ceil(n * 0.5 / math.sqrt(d * math.log(1 / delta)))
    assert (gd.step_size, gd.threshold) == (1 / L, G)
    sgd = RandomRoundDescent.from_theory(n, d, budget, curvature=L, lipschitz=G, gap=2.0)
    assert (sgd.steps, sgd.rows) == (100_000, n)
    assert RandomRoundDescent.from_theory(20, d, budget, curvature=L, lipschitz=G).steps == 400
    sigma = G * sgd.printed_multiplier(budget)
    assert sgd.step_size == pytest.approx(math.sqrt(2 * 2.0 / (L * sgd.steps * d)) / sigma)
    assert sgd.sampling == PoissonBatches(1 / n)
