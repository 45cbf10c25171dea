"""Columns that say nothing, or hide what they say: no prediction may cost more than a constant's.

    python -m benchmarks.odd_columns [--seeds 4] [--rows 20000] [--epsilon 1]

Five Gaussian features have slopes 1, -2, 0, .5 and 3; beside them stands a column of every family.
Printed is the worst score over all seeds on as many new rows: R^2 of numbers, D^2 (the part of the
deviance, or of the log loss, of a constant that is explained) of counts and labels.
"""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array
from sklearn.metrics import d2_absolute_error_score, d2_tweedie_score, log_loss, r2_score

from privtail.linear_model import (
    DPHuberRegressor,
    DPLADRegressor,
    DPLinearRegression,
    DPLogisticRegression,
    DPPoissonRegressor,
    DPRidge,
)

Doubles = NDArray[np.float64]
Rng = np.random.Generator

SLOPES = np.array([1.0, -2.0, 0.0, 0.5, 3.0])


def _with(column: Doubles, value: float, part: float | int, rng: Rng) -> Doubles:
    """With a value in so many rows, or in this part of them, of either half."""
    n = len(column) // 2
    few = part if isinstance(part, int) else round(part * n)
    for half in range(2):
        column[half * n + rng.choice(n, few, replace=False)] = value
    return column


FAMILIES: dict[str, Callable[[Rng, int, Doubles], Doubles]] = {
    "none": lambda rng, n, X: rng.normal(size=n),
    "1, three rows 1e4": lambda rng, n, X: _with(np.ones(n), 1e4, 3, rng),
    "-3e-8, three rows 2e-4": lambda rng, n, X: _with(np.full(n, -3e-8), 2e-4, 3, rng),
    "-.003, three rows .997": lambda rng, n, X: _with(np.full(n, -0.003), 0.997, 3, rng),
    "normal, ten rows 9999999": lambda rng, n, X: _with(rng.normal(size=n), 9999999.0, 10, rng),
    "zeros": lambda rng, n, X: np.zeros(n),
    "ones": lambda rng, n, X: np.ones(n),
    "2020": lambda rng, n, X: np.full(n, 2020.0),
    "2020 or 2021": lambda rng, n, X: rng.choice([2020.0, 2021.0], n),
    "1 % ones": lambda rng, n, X: _with(np.zeros(n), 1.0, 0.01, rng),
    ".1 % ones": lambda rng, n, X: _with(np.zeros(n), 1.0, 0.001, rng),
    "zeros, three rows 1e6": lambda rng, n, X: _with(np.zeros(n), 1e6, 3, rng),
    "normal, .1 % -999": lambda rng, n, X: _with(rng.normal(size=n), -999.0, 0.001, rng),
    "normal, 5 % -999": lambda rng, n, X: _with(rng.normal(size=n), -999.0, 0.05, rng),
    "lognormal, ten rows 1e9": lambda rng, n, X: _with(rng.lognormal(size=n), 1e9, 10, rng),
    "timestamps": lambda rng, n, X: 1.7e9 + 1e4 * rng.normal(size=n),
    "timestamps, ten rows 0": lambda rng, n, X: _with(
        1.7e9 + 1e4 * rng.normal(size=n), 0.0, 10, rng
    ),
    "numbers of rows": lambda rng, n, X: 1e6 + rng.permutation(n),
    "a tenth at 1e6": lambda rng, n, X: rng.normal(size=n) + 1e6 * (rng.random(n) < 0.1),
    "90 % 1, the rest lognormal": lambda rng, n, X: np.where(
        rng.random(n) < 0.9, 1.0, 1 + rng.lognormal(0, 2, n)
    ),
    "Pareto(1.1)": lambda rng, n, X: rng.pareto(1.1, n),
    "Cauchy": lambda rng, n, X: rng.standard_cauchy(n),
    "a copy": lambda rng, n, X: X[:, 4].copy(),
    "a copy, ten rows 9999999": lambda rng, n, X: _with(X[:, 4].copy(), 9999999.0, 10, rng),
    "the sum of the others": lambda rng, n, X: X.sum(axis=1),
    "1e300 normals": lambda rng, n, X: 1e300 * rng.normal(size=n),
    "1e-300 normals": lambda rng, n, X: 1e-300 * rng.normal(size=n),
}

MODELS: dict[str, type[Any]] = {
    "linear": DPLinearRegression,
    "ridge": DPRidge,
    "huber": DPHuberRegressor,
    "lad": DPLADRegressor,
    "logistic": DPLogisticRegression,
    "poisson": DPPoissonRegressor,
}


def score(name: str, family: str, seed: int, n: int, epsilon: float, **options: Any) -> float:
    """Of a fit on n rows, on as many others."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(2 * n, 5))
    X = np.column_stack([X, FAMILIES[family](rng, 2 * n, X)])
    margins = X[:, :5] @ SLOPES
    sparse = options.pop("sparse", False)
    options |= {"epsilon": epsilon, "noise": "simulated", "random_state": seed}
    if name == "logistic":
        y = (rng.random(2 * n) < 1 / (1 + np.exp(-margins))).astype(float)
        options["classes"] = [0.0, 1.0]
    elif name == "poisson":
        y = rng.poisson(np.exp(0.3 * margins)).astype(float)
    else:
        y = margins + rng.normal(size=2 * n)
    rows = csr_array(X) if sparse else X
    model = MODELS[name](**options).fit(rows[:n], y[:n])
    test = y[n:]
    if name == "logistic":
        constant = log_loss(test, np.full(n, y[:n].mean()))
        return 1 - float(log_loss(test, model.predict_proba(rows[n:])) / constant)
    found = model.predict(rows[n:])
    if name == "poisson":
        return float(d2_tweedie_score(test, np.maximum(found, 1e-300), power=1))
    measure = d2_absolute_error_score if name == "lad" else r2_score
    return float(measure(test, found))


def main() -> None:
    """Print the table and the worst."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0] if __doc__ else None)
    parser.add_argument("--seeds", type=int, default=4)
    parser.add_argument("--rows", type=int, default=20_000)
    parser.add_argument("--epsilon", type=float, default=1.0)
    parser.add_argument("--models", nargs="+", default=list(MODELS), choices=list(MODELS))
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    kinds: dict[str, dict[str, Any]] = {
        name: {"name": name} for name in options.models
    } | {
        f"{name}, {words}": {"name": name} | how
        for name in options.models
        if name in ("linear", "logistic")
        for words, how in (("no intercept", {"fit_intercept": False}), ("CSR", {"sparse": True}))
    }  # fmt: skip
    worst = (np.inf, "")
    for family in FAMILIES:
        print(f"{family:>28}", end="", flush=True)
        for words, how in kinds.items():
            scores = [
                score(family=family, seed=seed, n=options.rows, epsilon=options.epsilon, **how)
                for seed in range(options.seeds)
            ]
            worst = min(worst, (min(scores), f"{words}, {family}"))
            print(f"  {words} {min(scores):.3f}", end="", flush=True)
        print()
    print(f"worst: {worst[0]:.3f} ({worst[1]})")


if __name__ == "__main__":
    main()
