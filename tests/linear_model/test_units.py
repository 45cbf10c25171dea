"""Any feature and any target in any unit: the same model, up to how its scale is interpolated."""

from __future__ import annotations

import numpy as np
import pytest

from privtail.linear_model import (
    DPHuberRegressor,
    DPLADRegressor,
    DPLinearRegression,
    DPLogisticRegression,
    DPPoissonRegressor,
)

UNITS = np.array([1e-6, 1e6, 1e3, 1e-1])


def table(n=6_000):
    rng = np.random.default_rng(5)
    columns = (
        rng.normal(size=n), rng.standard_t(3, n), rng.lognormal(0, 1, n), rng.uniform(0, 1, n)
    )  # fmt: skip
    X = np.column_stack(columns)
    return X, X @ [1.0, -1.0, 0.5, 2.0], rng


def absolute(predicted, y):
    return np.abs(predicted - y).mean()


def squared(predicted, y):
    """Root mean square, but for one row in 500: noise decides how far predictions reach."""
    return np.sqrt(np.mean(np.sort((predicted - y) ** 2)[: -len(y) // 500]))


@pytest.mark.parametrize("epsilon", [1.0, 3.0])
@pytest.mark.parametrize(
    ("model", "wrong"),
    [
        (DPLinearRegression(epsilon=1.0), squared),
        (DPHuberRegressor(epsilon=1.0, alpha=0.0), absolute),
        (DPLADRegressor(epsilon=1.0), absolute),
    ],
    ids=["squares", "huber", "lad"],
)
def test_numbers(model, wrong, epsilon):
    X, signal, rng = table()
    y = signal + rng.standard_t(3, len(X)) + 3
    model.set_params(epsilon=epsilon, noise="simulated", random_state=3)
    usual = wrong(model.fit(X, y).predict(X), y)
    assert usual < 0.9 * wrong(np.median(y), y)
    for factor in (1e-6, 10.0, 1e6):
        found = model.fit(X * UNITS, factor * y).predict(X * UNITS) / factor
        assert wrong(found, y) == pytest.approx(usual, rel=0.02)


@pytest.mark.parametrize("cuts", [(1.0,), (0.0, 2.0)], ids=["two", "three"])
def test_labels(cuts):
    X, signal, rng = table()
    y = np.digitize(signal + rng.logistic(size=len(X)), cuts)
    model = DPLogisticRegression(
        epsilon=3.0, C=np.inf, classes=list(range(len(cuts) + 1)), noise="simulated", random_state=3
    )
    usual = np.mean(model.fit(X, y).predict(X) != y)
    assert np.mean(model.fit(X * UNITS, y).predict(X * UNITS) != y) == pytest.approx(
        usual, rel=0.02
    )


def test_counts():
    X, signal, rng = table()
    y = rng.poisson(np.exp(np.clip(0.4 * signal, -2, 2) + 1)).astype(float)
    model = DPPoissonRegressor(epsilon=3.0, alpha=0.0, noise="simulated", random_state=3)

    def deviance(predicted):
        logs = np.where(y > 0, y * np.log(np.maximum(y, 1) / predicted), 0.0)
        return 2 * np.mean(logs - y + predicted)

    usual = deviance(model.fit(X, y).predict(X))
    assert usual < 0.5 * deviance(np.full(len(y), y.mean()))
    found = model.fit(X * UNITS, y).predict(X * UNITS)
    assert deviance(found) == pytest.approx(usual, rel=0.02)
