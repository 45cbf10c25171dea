"""W19 Algorithm 1 against its transcription and theorem 2."""

from __future__ import annotations

import math

import numpy as np
import pytest

from privtail.algorithms import FrankWolfe, FrankWolfeCorners, MirrorDescent, ProximalGradient
from privtail.domains import L1, ElasticNet, L2Ball, Unconstrained, within
from privtail.errors import InvalidInput
from privtail.losses import SigmoidLoss
from privtail.trusted.budget import Budget
from privtail.trusted.problem import Problem


def box(gradient, kind, X, y, *, T, gamma, G, prox, noise, R):
    """W19 Algorithm 1: x_1 ... x_T, of which x_R is returned; gradients clipped to G."""
    n = len(X)
    x = [np.zeros_like(noise[0])]
    for k in range(T):
        if k == len(noise):
            break  # x_{T+1} is never used
        grad = np.zeros_like(x[k])
        for i in range(n):
            g = gradient(kind, x[k], X[i], y[i])
            grad += g / max(1.0, np.linalg.norm(g) / G) / n
        # argmin <grad + noise, u> + |u - x|^2 / (2 gamma) + r(u)
        x.append(prox(x[k] - gamma * (grad + noise[k]), gamma))
    assert len(x) == T
    return x[R]


def soft(w, level):
    return np.sign(w) * np.maximum(np.abs(w) - level, 0)


def ball(w, radius=0.5):
    return w * min(1.0, radius / max(np.linalg.norm(w), 1e-300))


@pytest.mark.parametrize(
    ("domain", "prox"),
    [
        (Unconstrained(), lambda w, step: w),
        (L1(alpha=0.2), lambda w, step: soft(w, 0.2 * step)),
        (
            ElasticNet(alpha=0.5, l1_ratio=0.4),
            lambda w, step: soft(w, 0.2 * step) / (1 + 0.3 * step),
        ),
        (within(L1(alpha=0.2), L2Ball(radius=0.5)), lambda w, step: ball(soft(w, 0.2 * step))),
    ],
    ids=["none", "l1", "elastic", "l1-in-l2"],
)
def test_the_box(watched, case, gradient, keep_slopes, domain, prox):
    X, y, loss = case.records()
    algorithm = ProximalGradient(steps=6, step_size=0.3, threshold=1.5)
    w = watched.fit(
        algorithm, case.stored(X), y, loss, domain=domain, intercept=case.intercept, epsilon=20.0
    )
    expected = box(
        gradient, case.kind, case.rows(X), y, T=6, gamma=0.3, G=1.5,
        prox=lambda v, step: keep_slopes(case, v, lambda u: prox(u, step)),
        noise=[z.reshape(w.shape) for z in watched.noise], R=watched.picks[0],
    )  # fmt: skip
    assert np.abs(w - expected).max() < 1e-6
    assert watched.result.steps == len(watched.noise) == 5


def test_the_returned_iterate_is_uniform_and_a_public_choice(watched, make_problem):
    X, y, loss = make_problem("squared", 50, 1)
    algorithm = ProximalGradient(steps=4, step_size=0.3, threshold=1.5)
    for seed in range(80):
        watched.fit(algorithm, X, y, loss, seed=seed)
    counts = np.bincount(watched.picks, minlength=4)
    assert counts.sum() == 80
    assert counts.min() > 8
    start = [[0.25]]
    first = next(seed for seed, pick in enumerate(watched.picks) if pick == 0)
    assert watched.fit(algorithm, X, y, loss, seed=first, start=start) == start


def test_the_non_convex_loss_of_the_experiments(watched, make_problem):
    """1/(1 + exp(s m)): gradient -s p (1 - p) x, never longer than |x|/4."""
    X, y, _ = make_problem("logistic")

    def gradient(kind, w, x, label):
        s = 2 * label - 1
        p = 1 / (1 + np.exp(s * (w.T @ x)))
        return np.outer(x, -s * p * (1 - p))

    algorithm = ProximalGradient(steps=4, step_size=0.5, threshold=0.3)
    w = watched.fit(algorithm, X, y, SigmoidLoss(), domain=L1(alpha=0.01), epsilon=20.0)
    expected = box(
        gradient, "sigmoid", X, y, T=4, gamma=0.5, G=0.3,
        prox=lambda v, step: soft(v, 0.01 * step),
        noise=[z.reshape(w.shape) for z in watched.noise], R=watched.picks[0],
    )  # fmt: skip
    assert np.abs(w - expected).max() < 1e-6


@pytest.mark.parametrize("epsilon", [0.1, 1.0])
def test_theorem_2(epsilon):
    n, d, delta, L, G = 100_000, 10, 1e-5, 4.0, 1.5
    found = ProximalGradient.from_theory(n, d, Budget(epsilon, delta), curvature=L, lipschitz=G)
    assert found.steps == math.ceil(n * epsilon / math.sqrt(d * math.log(1 / delta)))
    assert found.step_size == 1 / (2 * L)
    assert found.threshold == G
    assert 2 <= found.steps <= 10_000


def test_tiny_problems_get_two_iterates():
    found = ProximalGradient.from_theory(1, 1, Budget(0.1, 1e-5), curvature=1, lipschitz=1)
    assert found.steps == 2


def test_the_noise_is_below_that_of_the_corrected_line_3():
    """2 G sqrt(T)/(n sqrt(2 rho)); at n^2 rho^2, as printed, it is over-noised for rho < 1."""
    from privtail.calibration import calibrate

    n, d, T, epsilon, delta = 10_000, 5, 20, 0.5, 1e-3
    algorithm = ProximalGradient(steps=T, step_size=1.0, threshold=3.0)
    problem = Problem(n=n, d=d)
    answer = problem.gradient(algorithm.mean)
    assert answer.diameter.l2 * answer.unit == pytest.approx(2 * 3.0 / n)
    assert answer.radius.l2 * answer.unit == pytest.approx(3.0 / n)
    multiplier = calibrate(lambda m: algorithm.plan(m, problem), Budget(epsilon, delta))
    ours = multiplier * answer.radius.l2 * answer.unit
    L = math.log(1 / delta)
    rho = (math.sqrt(L + epsilon) - math.sqrt(L)) ** 2
    corrected = math.sqrt(2 * 3.0**2 * T / (n**2 * rho))
    # The variance ratio of exact Gaussian DP and zCDP is .37 here
    # (docs/mathematics.md#composition); T - 1 of T steps.
    assert (ours / corrected) ** 2 == pytest.approx(0.37 * (T - 1) / T, rel=0.02)
    assert rho < 1
    assert ours < corrected < math.sqrt(2 * 3.0**2 * T / (n**2 * rho**2))


@pytest.mark.parametrize(
    "kind",
    [ProximalGradient, FrankWolfe, FrankWolfeCorners, MirrorDescent],
    ids=lambda k: k.__name__,
)
def test_a_single_iterate_is_refused(kind):
    """It would release nothing, and the fit would be charged its delta."""
    with pytest.raises(InvalidInput, match="steps must be a whole number of at least 2, got 1"):
        kind(steps=1, step_size=0.3, threshold=1.5)
