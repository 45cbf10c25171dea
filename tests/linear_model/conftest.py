"""Records for the estimators, and the problem of the published comparison."""

from __future__ import annotations

import numpy as np
import pytest

from privtail.published.accelerated_descent import AcceleratedDescent

SLOPES = np.array([1, -1, 0.5, -0.5, 0.25, -0.25, 1, -1, 0.5, -0.5])


def heavy(n: int, seed: int):
    """Ten lognormal(0, 1.5) features; skewed, heavy noise of mean zero."""
    rng = np.random.default_rng(seed)
    X = rng.lognormal(0, 1.5, (n, 10))
    return X, X @ SLOPES + 1 + rng.lognormal(0, 1.5, n) - np.exp(1.5**2 / 2)


@pytest.fixture(scope="session")
def large():
    """Training and test records of the comparison: n = 1e5, d = 10."""
    return (*heavy(100_000, 1), *heavy(100_000, 2))


@pytest.fixture
def small():
    """A small problem: X (1500, 3) and a real target."""
    rng = np.random.default_rng(3)
    X = rng.standard_t(4, (1_500, 3))
    return X, X @ [1.0, -1.0, 0.5] + 2.0 + rng.standard_t(3, 1_500)


@pytest.fixture
def few_steps(monkeypatch):
    """200 steps without privacy in place of 3,000, which separable labels take to the last."""
    monkeypatch.setitem(AcceleratedDescent.__init__.__kwdefaults__, "steps", 200)


HOSTILE = {
    "constant column": lambda X, y: (np.column_stack([X[:, :2], np.full(len(X), 7.0)]), y),
    "constant target": lambda X, y: (X, np.full(len(X), 3.0)),
    "missing target": lambda X, y: (X, np.full(len(X), np.nan)),
    "missing records": lambda X, y: (np.full_like(X, np.nan), y),
    "some missing": lambda X, y: (np.where(X > 3, np.nan, X), np.where(y > 9, np.inf, y)),
    "zeros": lambda X, y: (np.zeros_like(X), y),
    "huge records": lambda X, y: (np.full_like(X, 1e300), y),
    "huge target": lambda X, y: (X, y * 1e300),
    "everything huge": lambda X, y: (X * 1e305, y * 1e305),
    "tiny": lambda X, y: (X * 1e-310, y * 1e-310),
    "one record": lambda X, y: (X[:1], y[:1]),
    "two records": lambda X, y: (X[:2], y[:2]),
    "duplicates": lambda X, y: (np.repeat(X[:1], 500, axis=0), np.repeat(y[:1], 500)),
}


@pytest.fixture(params=HOSTILE)
def hostile(request, small):
    """Records that nothing may be said about."""
    return HOSTILE[request.param](*small)
