"""Laws of tables with known slopes, for `benchmarks.intervals`."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privtail.linear_model import (
    DPHuberRegressor,
    DPLinearRegression,
    DPLogisticRegression,
    DPPoissonRegressor,
)

Doubles = NDArray[np.float64]

SLOPES = np.array([1.0, -2.0, 0.0, 0.5, 3.0])
ODDS = np.array([1.0, -2.0, 0.0, 0.5, 1.0])
RATES = np.array([0.3, -0.5, 0.0, 0.1, 0.4])
ROWS, BUDGETS = (2_000, 20_000, 200_000), (0.2, 1.0, 5.0)
LAWS = (
    "normal", "t(2.5)", "lognormal", "correlated", "near copy", "sum", "indicators", "huber",
    "labels", "heavy labels", "rare labels", "long labels", "counts", "overdispersed",
    "unequally dispersed",
)  # fmt: skip


def drawn(law: str, n: int, rng: np.random.Generator) -> tuple[Doubles, Any, Doubles, Any]:
    """Features, targets, true slopes and an estimator."""
    X = rng.normal(size=(n, 5))
    if law.endswith("labels"):
        X = rng.standard_t(4, (n, 5)) if law == "heavy labels" else X
        w, centre = {"rare labels": (ODDS / 2, -4.0), "long labels": (4 * ODDS, 0.0)}.get(
            law, (ODDS, 0.0)
        )
        y = rng.random(n) < 1 / (1 + np.exp(-(X @ w + centre)))
        return X, y.astype(int), w, partial(DPLogisticRegression, classes=[0, 1])
    if law in ("counts", "overdispersed", "unequally dispersed"):
        spread = 0.1 + 2 * X[:, 0] ** 2 if law == "unequally dispersed" else 0.5
        means = np.exp(X @ RATES + 0.5) * (
            1.0 if law == "counts" else rng.gamma(1 / spread, spread, n)
        )
        return X, rng.poisson(means), RATES, DPPoissonRegressor
    noise = rng.normal(size=n)
    if law == "t(2.5)":
        X, noise = rng.standard_t(2.5, (n, 5)), rng.standard_t(2.5, n)
    elif law == "lognormal":
        X, noise = rng.lognormal(0, 1, (n, 5)), rng.lognormal(0, 1, n)
    elif law == "correlated":
        X = X + 1.5 * X[:, [0]]
    elif law == "near copy":
        X[:, 1] = X[:, 0] + 0.1 * X[:, 1]
    elif law == "sum":
        X[:, 3] = X[:, :3].sum(axis=1)
    elif law == "indicators":
        X[:, 1:] = np.eye(4)[rng.choice(4, n, p=[0.4, 0.3, 0.2, 0.1])]
    elif law == "huber":
        X, noise = rng.standard_t(3, (n, 5)), rng.standard_t(1.5, n)
    return X, X @ SLOPES + noise, SLOPES, (
        DPHuberRegressor if law == "huber" else DPLinearRegression
    )  # fmt: skip
