"""No fit may be twice as wrong as a constant: in any unit, on hard tables, with small budgets."""

from __future__ import annotations

import math

import numpy as np
import pytest

from privtail.algorithms import NAMES
from privtail.errors import InvalidInput
from privtail.linear_model import DPLinearRegression, DPLogisticRegression

EPSILONS = (0.05, 1.0)


def heavy(n, seed):
    """Ten lognormal(0, 1.5) features; skewed, heavy noise of mean zero."""
    rng = np.random.default_rng(seed)
    X = rng.lognormal(0, 1.5, (n, 10))
    slopes = np.array([1, -1, 0.5, -0.5, 0.25, -0.25, 1, -1, 0.5, -0.5])
    return X, X @ slopes + 1 + rng.lognormal(0, 1.5, n) - math.exp(1.125)


def ratio(X, y, epsilon, seed=0, algorithm="auto"):
    """Root mean squared error over that of the mean."""
    model = DPLinearRegression(
        epsilon=epsilon, algorithm=algorithm, noise="simulated", random_state=seed
    )
    wrong = model.fit(X, y).predict(X) - y
    return math.sqrt(np.mean(wrong**2)) / np.std(y)


@pytest.mark.parametrize("n", [1_000, 10_000])
@pytest.mark.parametrize("factor", [1e-6, 1.0, 1e6])
def test_in_any_unit(n, factor):
    X, y = heavy(n, 0)
    one = np.where(np.arange(10) == 0, factor, 1.0)
    for epsilon in EPSILONS:
        for features, target in ((X * one, y), (X * factor, y), (X, y * factor)):
            assert ratio(features, target, epsilon) < 1.2


def rare(X, y):
    """A feature that is zero but for a few records, where it is huge."""
    spikes = np.where(np.arange(len(y)) % 50 == 0, 1e6, 0.0)
    return np.column_stack([X, spikes]), y


def wide(X, y):
    """Ninety features that say nothing, of all sizes."""
    rng = np.random.default_rng(1)
    return np.hstack([X, rng.standard_t(2, (len(y), 90)) * np.logspace(-6, 6, 90)]), y


TABLES = {
    "rare": rare,
    "wide": wide,
    "mostly zero target": lambda X, y: (X, np.where(y > np.quantile(y, 0.7), y, 0.0)),
    "no signal": lambda X, y: (X, np.random.default_rng(2).permutation(y)),
    "far target": lambda X, y: (X, y + 1e5),
    "far features": lambda X, y: (X + 1e5, y),
    "one feature": lambda X, y: (X[:, :1], y),
    "two values": lambda X, y: (X, (y > 0) + 0.0),
}


@pytest.mark.parametrize("table", TABLES)
def test_on_hard_tables(table):
    for n, epsilons in ((2_000, (0.1, 1.0)), (20_000, (0.05, 1.0))):
        X, y = TABLES[table](*heavy(n, 0))
        for epsilon in epsilons:
            assert ratio(X, y, epsilon) < 1.6


@pytest.mark.parametrize("algorithm", sorted(set(NAMES) - {"sample-and-aggregate"}))
def test_the_published_algorithms_by_name(algorithm):
    for table, epsilon in (("wide", 0.1), ("wide", 1.0), ("rare", 1.0), ("far target", 1.0)):
        assert ratio(*TABLES[table](*heavy(3_000, 0)), epsilon, algorithm=algorithm) < 1.6


def test_too_few_records_are_refused_and_not_misused():
    with pytest.raises(InvalidInput, match="at least"):
        ratio(*heavy(3_000, 0), 0.1, algorithm="sample-and-aggregate")


@pytest.mark.parametrize("n", [2_000, 10_000])
def test_labels(n):
    X, y = heavy(n, 0)
    for labels in (y > 0, y > np.quantile(y, 0.9), y > np.quantile(y, 0.2)):
        for epsilon in EPSILONS:
            model = DPLogisticRegression(
                epsilon=epsilon, classes=[False, True], noise="simulated", random_state=0
            )
            wrong = np.mean(model.fit(X, labels).predict(X) != labels)
            assert wrong < 2 * min(np.mean(labels), 1 - np.mean(labels))
