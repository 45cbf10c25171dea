"""Coverage of `conf_int` for the slopes of the population, and its width over the error.

    python -m benchmarks.slopes [RUNS] [LAW ...]

Every run draws new rows and adds new (simulated) noise. ``held`` is the part of the intervals of
95 % that hold the true slopes, ``least`` that of the slope that does worst, ``width`` the median of
half an interval over 1.96 times the root mean square error of the estimate: 1 where an interval is
as wide as it should be. ``refused`` counts models that have no interval (all slopes are zero).
"""

from __future__ import annotations

import sys
import warnings
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privtail.errors import AccuracyWarning, InvalidInput
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
    "normal", "t(2.5)", "lognormal", "correlated", "huber", "labels", "heavy labels", "rare labels",
    "counts", "overdispersed",
)  # fmt: skip


def drawn(law: str, n: int, rng: np.random.Generator) -> tuple[Doubles, Any, Doubles, Any]:
    """Features, targets, true slopes and an estimator."""
    X = rng.normal(size=(n, 5))
    if law in ("labels", "heavy labels", "rare labels"):
        X = rng.standard_t(4, (n, 5)) if law == "heavy labels" else X
        w, centre = (ODDS / 2, -4.0) if law == "rare labels" else (ODDS, 0.0)
        y = rng.random(n) < 1 / (1 + np.exp(-(X @ w + centre)))
        return X, y.astype(int), w, partial(DPLogisticRegression, classes=[0, 1])
    if law in ("counts", "overdispersed"):
        means = np.exp(X @ RATES + 0.5) * (rng.gamma(2, 0.5, n) if law == "overdispersed" else 1.0)
        return X, rng.poisson(means), RATES, DPPoissonRegressor
    noise = rng.normal(size=n)
    if law == "t(2.5)":
        X, noise = rng.standard_t(2.5, (n, 5)), rng.standard_t(2.5, n)
    elif law == "lognormal":
        X, noise = rng.lognormal(0, 1, (n, 5)), rng.lognormal(0, 1, n)
    elif law == "correlated":
        X = X + 1.5 * X[:, [0]]
    elif law == "huber":
        X, noise = rng.standard_t(3, (n, 5)), rng.standard_t(1.5, n)
    return X, X @ SLOPES + noise, SLOPES, (
        DPHuberRegressor if law == "huber" else DPLinearRegression
    )  # fmt: skip


def main(runs: int, laws: tuple[str, ...]) -> None:
    """Print the table."""
    warnings.simplefilter("ignore", AccuracyWarning)
    print(f"{'law':<14}{'n':>8}{'epsilon':>8}{'held':>7}{'least':>7}{'width':>7}  refused")
    for law in laws:
        for n in ROWS:
            for epsilon in BUDGETS:
                held, found, halves, refused = [], [], [], 0
                for seed in range(runs):
                    X, y, w, kind = drawn(law, n, np.random.default_rng(seed))
                    model = kind(epsilon=epsilon, noise="simulated", random_state=seed).fit(X, y)
                    try:
                        low, high = model.conf_int().reshape(-1, 2).T
                    except InvalidInput:
                        refused += 1
                        continue
                    held.append((low <= w) & (w <= high))
                    found.append(np.ravel(model.coef_) - w)
                    halves.append((high - low) / 2 / 1.96)
                row = f"{law:<14}{n:>8,}{epsilon:>8g}"
                if held:
                    errors = np.sqrt(np.mean(np.square(found), axis=0))
                    width = np.median(np.median(halves, axis=0) / errors)
                    row += f"{np.mean(held):>7.3f}{np.mean(held, axis=0).min():>7.2f}{width:>7.2f}"
                print(f"{row:<51}  {refused}", flush=True)


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 20, tuple(sys.argv[2:]) or LAWS)
