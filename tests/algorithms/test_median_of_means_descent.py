"""T22 Algorithm 2 with Algorithm 3 against the corrected boxes and theorems 6 and 7."""

from __future__ import annotations

import math

import numpy as np
import pytest

from privtail.algorithms import MedianOfMeansDescent
from privtail.domains import Box, L2Ball, Unconstrained
from privtail.trusted.accountants import cost
from privtail.trusted.budget import Budget
from privtail.trusted.problem import Problem
from privtail.trusted.sampling import DisjointParts, Everyone


def dphdme(gradients, labels, *, tau, m, size):
    """Algorithm 3, corrected: line 7 sums group k alone; ``size`` is that of X_t."""
    shape = gradients[0].shape
    mu = np.zeros(shape)
    for j in np.ndindex(shape):
        means = []
        for k in range(m):
            total = 0.0
            for g, label in zip(gradients, labels, strict=True):
                if label == k and abs(g[j]) <= tau:
                    total += g[j]
            means.append(m / size * total)
        mu[j] = np.median(means)
    return mu


def box(gradient, kind, X, y, *, T, eta, tau, m, labels, parts, project, noise, strongly_convex):
    """Algorithm 2, corrected: line 8 passes X_t."""
    w = [np.zeros_like(noise[0])]
    size = len(X) / T if strongly_convex else len(X)
    for t in range(T):
        X_t = parts[t] if strongly_convex else range(len(X))
        gradients = [gradient(kind, w[-1], X[i], y[i]) for i in X_t]
        g = dphdme(gradients, [labels[i] for i in X_t], tau=tau, m=m, size=size) + noise[t]
        w.append(project(w[-1] - eta * g))
    return w[-1] if strongly_convex else sum(w[1:]) / T


@pytest.mark.parametrize("blocks", [5, 4])
@pytest.mark.parametrize("strongly_convex", [False, True], ids=["convex", "strongly-convex"])
@pytest.mark.parametrize(
    ("domain", "projection"),
    [
        (Unconstrained(), lambda w: w),
        (L2Ball(radius=0.6), lambda w: w * min(1.0, 0.6 / np.linalg.norm(w))),
        (Box(low=-0.1, high=0.4), lambda w: np.clip(w, -0.1, 0.4)),
    ],
    ids=["free", "ball", "box"],
)
def test_the_box(watched, case, gradient, keep_slopes, domain, projection, strongly_convex, blocks):
    X, y, loss = case.records()
    T = 3
    algorithm = MedianOfMeansDescent(
        steps=T, step_size=0.3, threshold=1.2, blocks=blocks,
        sampling=DisjointParts(T) if strongly_convex else Everyone(),
    )  # fmt: skip
    w = watched.fit(
        algorithm, case.stored(X), y, loss, domain=domain, intercept=case.intercept, epsilon=50.0
    )
    expected = box(
        gradient, case.kind, case.rows(X), y, T=T, eta=0.3, tau=1.2, m=blocks,
        labels=watched.curator.blocks(blocks), parts=watched.batches,
        project=lambda v: keep_slopes(case, v, projection),
        noise=[z.reshape(w.shape) for z in watched.noise], strongly_convex=strongly_convex,
    )  # fmt: skip
    assert np.abs(w - expected).max() < 1e-6
    if strongly_convex:
        assert sorted(np.concatenate(watched.batches)) == list(range(len(X)))


def test_disjoint_parts_do_not_compose():
    """T steps on T parts cost one step; on everyone they cost sqrt(T) times mu."""
    problem = Problem(n=1000, d=3)
    settings = {"step_size": 0.1, "threshold": 1.0, "blocks": 5}
    one = MedianOfMeansDescent(steps=1, **settings).plan(3.0, problem)
    everyone = MedianOfMeansDescent(steps=9, **settings).plan(3.0, problem)
    parts = MedianOfMeansDescent(steps=9, sampling=DisjointParts(9), **settings)
    mu = cost(one, "replace_one").mu
    assert cost(everyone, "replace_one").mu == pytest.approx(3 * mu)
    assert cost(parts.plan(3.0, problem), "replace_one").mu == pytest.approx(mu)


def test_sensitivity():
    """2 tau m sqrt(d)/n, n the size of X_t; half of it for an even number of groups."""
    n, d, tau = 1000, 4, 1.5
    for m, parts in ((5, 1), (4, 1), (5, 10)):
        algorithm = MedianOfMeansDescent(steps=parts, step_size=1.0, threshold=tau, blocks=m)
        problem = Problem(n=n, d=d).sampled(DisjointParts(parts))
        answer = problem.gradient(algorithm.mean)
        expected = 2 * tau * m * math.sqrt(d) / (n / parts) / (2 - m % 2)
        assert answer.diameter.l2 * answer.unit == pytest.approx(expected, rel=1e-6)
        assert answer.radius.l2 * answer.unit == pytest.approx(expected / 2, rel=1e-6)


@pytest.mark.parametrize("epsilon", [0.1, 1.0])
@pytest.mark.parametrize("v", [0.5, 1.0])
def test_theorem_6(epsilon, v):
    n, d, R, Delta, xi = 100_000, 10, 1.5, 2.0, 0.05
    found = MedianOfMeansDescent.from_theory(
        n, d, Budget(epsilon, 1e-5), moment=3.0, order=v, gradient_norm=R, diameter=Delta
    )
    tau = (epsilon * n / d**1.5) ** (1 / (1 + v))
    T = R**2 * epsilon**2 * n**2 / (tau**2 * d**4)
    assert found.threshold == pytest.approx(tau)
    assert found.steps == max(1, min(500, math.ceil(T)))
    assert found.step_size == pytest.approx(Delta / (R * math.sqrt(found.steps)))
    assert found.blocks == round(4 * math.log(2 * d / xi)) == 24
    assert found.sampling == Everyone()
    assert 1 < tau < 1e4


@pytest.mark.parametrize("epsilon", [0.1, 1.0])
@pytest.mark.parametrize("v", [0.5, 1.0])
def test_theorem_7(epsilon, v):
    n, d, u, alpha, beta = 100_000, 10, 3.0, 0.5, 2.0
    found = MedianOfMeansDescent.from_theory(
        n, d, Budget(epsilon, 1e-5), moment=u, order=v, strong_convexity=alpha, curvature=beta
    )
    G = 1 / n
    T = math.log((alpha + beta) * G / (alpha * beta)) / math.log(
        (alpha**2 + beta**2 + alpha * beta) / (alpha + beta) ** 2
    )
    assert found.steps == math.ceil(T)
    assert 10 < found.steps < 200
    assert found.sampling == DisjointParts(found.steps)
    assert found.step_size == 1 / (alpha + beta)
    tau = (u * epsilon * n / (d**1.5 * math.sqrt(found.steps))) ** (1 / (1 + v))
    assert found.threshold == pytest.approx(tau)


def test_small_problems_get_a_plan_that_exists():
    for n in (1, 50):
        budget = Budget(1.0, 1e-5)
        for convexity in (None, 0.5):
            found = MedianOfMeansDescent.from_theory(
                max(n, 50), 1, budget, moment=1.0, strong_convexity=convexity
            )
            found.plan(1.0, Problem(n=max(n, 50), d=1))
