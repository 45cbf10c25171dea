"""The accelerated one-pass descent of Lowy and Razaviyayn 2023 against its box and its rate."""

from __future__ import annotations

import math

import numpy as np
import pytest

from privtail.algorithms import OnePassDescent
from privtail.domains import Box, L2Ball, Unconstrained
from privtail.trusted.accountants import cost
from privtail.trusted.budget import Budget
from privtail.trusted.problem import Problem


def box(gradient, kind, X, y, *, T, eta, C, parts, project, noise):
    """Algorithm 4: w_t = argmin alpha_t <g, w> + (eta_t/2) |w_(t-1) - w|^2, for the mean oracle."""
    w = w_ag = np.zeros_like(noise[0])
    for t in range(1, T + 1):
        alpha, eta_t = 2 / (t + 1), 4 * eta / (t * (t + 1))
        w_md = (1 - alpha) * w_ag + alpha * w
        total = np.zeros_like(w)
        for i in parts[t - 1]:
            g = gradient(kind, w_md, X[i], y[i])
            total += g * min(1.0, C / max(np.linalg.norm(g), 1e-300))
        g = total / (len(X) / T) + noise[t - 1]
        w = project(w - alpha / eta_t * g)
        w_ag = alpha * w + (1 - alpha) * w_ag
    return w_ag


@pytest.mark.parametrize(
    ("domain", "projection"),
    [
        (Unconstrained(), lambda w: w),
        (L2Ball(radius=0.2), lambda w: w * min(1.0, 0.2 / np.linalg.norm(w))),
        (Box(low=-0.1, high=0.4), lambda w: np.clip(w, -0.1, 0.4)),
    ],
    ids=["free", "ball", "box"],
)
def test_the_box(watched, case, gradient, keep_slopes, domain, projection):
    X, y, loss = case.records()
    T = 4
    w = watched.fit(
        OnePassDescent(steps=T, step_size=0.1, threshold=1.2), case.stored(X), y, loss,
        domain=domain, intercept=case.intercept, epsilon=50.0,
    )  # fmt: skip
    expected = box(
        gradient, case.kind, case.rows(X), y, T=T, eta=5.0, C=1.2, parts=watched.batches,
        project=lambda v: keep_slopes(case, v, projection),
        noise=[z.reshape(w.shape) for z in watched.noise],
    )  # fmt: skip
    assert np.abs(w - expected).max() < 1e-6
    assert sorted(np.concatenate(watched.batches)) == list(range(len(X)))


def test_all_parts_cost_what_one_costs():
    """l2 diameter 2 C/(n/T), and parts do not compose."""
    n, T, C = 1_000, 10, 1.5
    problem, algorithm = Problem(n=n, d=4), OnePassDescent(steps=T, step_size=0.1, threshold=C)
    answer = problem.sampled(algorithm.sampling).gradient(algorithm.mean)
    assert answer.diameter.l2 * answer.unit == pytest.approx(2 * C * T / n, rel=1e-6)
    one = OnePassDescent(steps=1, step_size=0.1, threshold=C)
    bills = [cost(a.plan(3.0, problem), "replace_one").mu for a in (algorithm, one)]
    assert bills[0] == pytest.approx(bills[1])


@pytest.mark.parametrize("k", [2.0, 4.0])
@pytest.mark.parametrize("epsilon", [0.1, 1.0])
def test_the_parameters_balance_the_errors(epsilon, k):
    """With these T and C the bias is the noise's error, and both are what acceleration leaves."""
    n, d, r, beta, D = 10**7, 50, 2.0, 9.0, 3.0
    budget = Budget(epsilon, 1e-6)
    found = OnePassDescent.from_theory(
        n, d, budget, moment=r, smoothness=beta, diameter=D, order=k
    )  # fmt: skip
    log = math.log(1e6)
    zcdp = math.sqrt(2) * (math.sqrt(log + epsilon) - math.sqrt(log))
    assert zcdp**2 / 2 + zcdp * math.sqrt(2 * log) == pytest.approx(epsilon), "its conversion"
    T, C = found.steps, found.threshold
    bias, noise = r**k / C ** (k - 1), C * math.sqrt(d * T) / (n * zcdp)
    assert bias == pytest.approx(noise)
    left = beta * D / T**2
    assert math.ceil(math.sqrt(beta * D / r) * n**0.25) == T or 0.5 < left / bias < 2
    assert found.step_size <= 1 / (4 * beta)


def test_clipping_pays_where_tails_are_heavy(watched):
    """With the theory's threshold it finds slopes that no bound of gradients knows of."""
    rng = np.random.default_rng(0)
    X, slopes = rng.standard_t(4, (40_000, 3)), np.array([0.5, -0.3, 0.2])
    y = X @ slopes + rng.standard_t(2.1, 40_000)
    from privtail.losses import SquaredLoss

    errors = []
    for threshold in (0.01, None, 1e5):
        algorithm = OnePassDescent.from_theory(
            40_000, 3, Budget(1.0, 1e-6), moment=4.0, smoothness=2.0, diameter=1.0
        )
        if threshold is not None:
            algorithm = OnePassDescent(
                steps=algorithm.steps, step_size=algorithm.step_size, threshold=threshold
            )
        w = watched.fit(algorithm, X, y, SquaredLoss(), domain=L2Ball(radius=1.0), delta=1e-6)
        errors.append(float(np.linalg.norm(w[:, 0] - slopes)))
    assert errors[1] < min(errors[0], errors[2]) / 2
