"""Units and zeros that nobody knows: what fits under much noise lose by them.

    python -m benchmarks.units [--seeds 40]

1,000 rows, epsilon .5; ten features matter, as in ``benchmarks/accuracy.py``. "spread" features are
in units of 10^U(-s, s), "moved" ones have their zero moved by U(-s, s). Mean test errors (RMSE,
share of wrong labels) of the default: of 100 features, of which few are selected, and of 20.
"""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Callable
from functools import partial
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.accuracy import SLOPES
from benchmarks.faint import drawn
from privtail.errors import NoiseWarning
from privtail.linear_model import (
    DPLinearRegression,
    DPLogisticRegression,
    DPSparseClassifier,
    DPSparseRegressor,
)

Doubles = NDArray[np.float64]

N, MANY, FEW, EPSILON, DELTA = 1_000, 100, 20, 0.5, 1e-3
MODELS: dict[tuple[str, int], Callable[..., Any]] = {
    ("numbers", MANY): partial(DPSparseRegressor, len(SLOPES)),
    ("labels", MANY): partial(DPSparseClassifier, len(SLOPES), classes=[0.0, 1.0]),
    ("numbers", FEW): DPLinearRegression,
    ("labels", FEW): partial(DPLogisticRegression, classes=[0.0, 1.0]),
}
LAWS = ("lognormal", "gauss", "t(2.5)")
TABLES = (("spread", 0.0), ("spread", 0.5), ("spread", 1.0), ("spread", 3.0), ("moved", 5.0))


def disguised(X: Doubles, how: str, size: float, rng: np.random.Generator) -> Doubles:
    """The same features, in other units or with other zeros."""
    drawn_ = rng.uniform(-size, size, X.shape[1])
    return X * 10.0**drawn_ if how == "spread" else X + drawn_


def error(task: str, law: str, d: int, how: str, size: float, seed: int) -> float:
    """Of one fit, on fresh rows."""
    rng, X, noise = drawn(law, N, d, seed)
    y = X[:, : len(SLOPES)] @ SLOPES + noise
    X = disguised(X, how, size, rng)
    y = y if task == "numbers" else (y > np.median(y)).astype(float)
    model = MODELS[task, d](epsilon=EPSILON, delta=DELTA, noise="simulated", random_state=seed)
    fitted = model.fit(X[:N], y[:N]).predict(X[N:])
    if task == "numbers":
        return float(np.sqrt(np.mean((fitted - y[N:]) ** 2)))
    return float(np.mean(fitted != y[N:]))


def main() -> None:
    """Print a line for every task, law and disguise."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--seeds", type=int, default=40)
    asked = parser.parse_args()
    warnings.simplefilter("ignore", NoiseWarning)
    for d in (MANY, FEW):
        print(f"{d} features".ljust(32) + f"{'error':>10}")
        for task, law, (how, size) in product(("labels", "numbers"), LAWS, TABLES):
            fits = [error(task, law, d, how, size, seed) for seed in range(asked.seeds)]
            words = f"{task}, {law}, {how} {size:g}"
            print(f"{words:32}{np.mean(fits):>10.4g}", flush=True)


if __name__ == "__main__":
    main()
