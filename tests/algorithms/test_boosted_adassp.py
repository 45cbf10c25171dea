"""Boosted AdaSSP beside a transcription of its published code, fed the same noise."""

from __future__ import annotations

import math

import numpy as np
import pytest

from privtail.algorithms import BoostedAdaSSP
from privtail.domains import L2Ball, Unconstrained
from privtail.errors import IncompatibleParts
from privtail.losses import HuberLoss
from privtail.trusted.accountants import cost
from privtail.trusted.budget import Budget
from privtail.trusted.events import Round
from privtail.trusted.problem import Problem


def transcribed(X, y, noise, std, *, rounds, radius, bound, project=lambda w: w):
    """Algorithm 1 of Tang et al. 2023 for sums, as Google Research has it; noise is of means."""
    n, p = X.shape
    length = np.maximum(np.linalg.norm(X, axis=1), 1e-300)
    shortened = X * np.minimum(1, radius / length)[:, None]
    second = shortened.T @ shortened
    upper = iter(noise[0])
    for i in range(p):
        for j in range(i, p):
            z = next(upper) * n / (1 if i == j else math.sqrt(2))
            second[i, j] += z
            second[j, i] = second[i, j]
    least = max(np.linalg.eigvalsh(second)[0], 0.0)
    ridge = max(0.0, n * std * math.sqrt(p * math.log(2 * p * p / 0.05)) - least)
    gamma = np.linalg.inv(second + ridge * np.eye(p))
    theta = np.zeros(p)
    for t in range(rounds):
        total = np.zeros(p)
        for x, target in zip(X, y, strict=True):
            brought = x * np.clip(target - x @ theta, -bound, bound)
            total += brought * min(1, radius * bound / max(np.linalg.norm(brought), 1e-300))
        theta = project(theta + gamma @ (total - n * noise[1 + t]))
    return theta


@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("ball", [None, 0.5])
def test_it_is_the_published_code(watched, make_problem, intercept, ball):
    X, y, loss = make_problem("squared", 300, 3)
    algorithm = BoostedAdaSSP(steps=6, radius=3.0, threshold=2.0)
    domain = Unconstrained() if ball is None else L2Ball(radius=ball)

    def project(w):
        slopes = w[:3] * min(1, 1 if ball is None else ball / max(np.linalg.norm(w[:3]), 1e-300))
        return np.append(slopes, w[3:])

    w = watched.fit(algorithm, X, y, loss, domain=domain, intercept=intercept, epsilon=2.0)
    rows = np.column_stack([X, np.ones(300)]) if intercept else X
    plan = algorithm.plan(watched.multiplier, watched.curator.problem)
    expected = transcribed(
        rows, y, watched.noise, plan[0].events[0].std, rounds=6, radius=3.0, bound=2.0,
        project=project,
    )  # fmt: skip
    assert np.abs(w[:, 0] - expected).max() < 1e-5


def test_without_noise_and_bounds_that_bind_it_is_least_squares(watched, make_problem):
    X, y, loss = make_problem("squared", 400, 3)
    algorithm = BoostedAdaSSP(steps=3, radius=1e4, threshold=1e4)
    w = watched.fit(algorithm, X, y, loss, epsilon=math.inf)
    assert np.abs(w[:, 0] - np.linalg.lstsq(X, y, rcond=None)[0]).max() < 1e-4


def test_many_rounds_minimize_the_loss_of_clipped_residuals(watched, make_problem):
    """Huber's, whose mean derivative in w is 0 at the end."""
    X, y, loss = make_problem("squared", 400, 3)
    algorithm = BoostedAdaSSP(steps=200, radius=100.0, threshold=0.5)
    w = watched.fit(algorithm, X, y, loss, epsilon=math.inf)
    slopes = HuberLoss(threshold=0.5).derivatives((X @ w), y)
    assert np.abs(X.T @ slopes.reshape(-1)).max() / 400 < 1e-3


def test_moments_cost_as_much_as_a_round():
    problem = Problem(n=1_000, d=5, intercept=True)
    plan = BoostedAdaSSP(steps=30, radius=2.0, threshold=0.3).plan(50.0, problem)
    parts = [cost((Round(sampling=r.sampling, events=r.events),), "replace_one") for r in plan]
    assert parts[0].epsilon(1e-6) == pytest.approx(parts[1].epsilon(1e-6), rel=1e-4)


def test_the_published_noise_spends_more_than_it_says():
    """The authors' code: std mu times the sensitivity, where a release of its own asks for 1/mu."""
    budget = Budget(1.0, 1e-6)
    algorithm = BoostedAdaSSP.from_theory(10_000, 10, budget)
    assert (algorithm.steps, algorithm.radius, algorithm.threshold) == (100, 1.0, 1.0)
    mu = 0.2
    plan = algorithm.plan(2 * mu, Problem(n=10_000, d=10))
    assert cost(plan, "replace_one").epsilon(1e-6) > 500


def test_it_takes_squares_alone():
    algorithm = BoostedAdaSSP(steps=2, radius=1.0, threshold=1.0)
    with pytest.raises(IncompatibleParts, match="SquaredLoss"):
        algorithm.takes(HuberLoss(threshold=1.0), Problem(n=60, d=2))
