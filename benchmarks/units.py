"""Units and zeros that nobody knows: what a selection among many features loses by them.

    python -m benchmarks.units [--seeds 40]

1,000 rows, 100 features, epsilon .5: all features share one scale, and ten of them matter, as in
``benchmarks/accuracy.py``. "spread" features are in units of 10^U(-s, s), "moved" ones have their
zero moved by U(-s, s). The three columns are mean test errors (RMSE, share of wrong labels) where
features are cut at zero, at the best of all cuts, and at what the fit buys (`Reach`).
"""

from __future__ import annotations

import argparse
import warnings
from unittest.mock import patch

import numpy as np
from numpy.typing import NDArray

from benchmarks.accuracy import SLOPES
from benchmarks.faint import drawn
from privtail.algorithms import screening
from privtail.errors import NoiseWarning
from privtail.linear_model import DPSparseClassifier, DPSparseRegressor

Doubles = NDArray[np.float64]

N, D, EPSILON, DELTA = 1_000, 100, 0.5, 1e-3
LAWS = ("lognormal", "gauss", "t(2.5)")
CUTS = {"at zero": np.inf, "anywhere": -np.inf, "bought": screening.UNBALANCED}
TABLES = (("spread", 0.0), ("spread", 0.5), ("spread", 1.0), ("spread", 3.0), ("moved", 5.0))


def disguised(X: Doubles, how: str, size: float, rng: np.random.Generator) -> Doubles:
    """The same features, in other units or with other zeros."""
    drawn_ = rng.uniform(-size, size, X.shape[1])
    return X * 10.0**drawn_ if how == "spread" else X + drawn_


def error(task: str, law: str, how: str, size: float, seed: int) -> float:
    """Of one fit, on fresh rows."""
    rng, X, noise = drawn(law, N, D, seed)
    told = X[:, : len(SLOPES)] @ SLOPES + noise
    X = disguised(X, how, size, rng)
    options = {"epsilon": EPSILON, "delta": DELTA, "noise": "simulated", "random_state": seed}
    if task == "numbers":
        number = DPSparseRegressor(len(SLOPES), **options).fit(X[:N], told[:N])
        return float(np.sqrt(np.mean((number.predict(X[N:]) - told[N:]) ** 2)))
    y = (told > np.median(told)).astype(float)
    label = DPSparseClassifier(len(SLOPES), classes=[0.0, 1.0], **options).fit(X[:N], y[:N])
    return float(np.mean(label.predict(X[N:]) != y[N:]))


def main() -> None:
    """Print a line for every task, law and disguise."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--seeds", type=int, default=40)
    asked = parser.parse_args()
    warnings.simplefilter("ignore", NoiseWarning)
    print(f"{'':<32}" + "".join(f"{cut:>10}" for cut in CUTS))
    for task in ("labels", "numbers"):
        for law in LAWS:
            for how, size in TABLES:
                means = []
                for least in CUTS.values():
                    with patch.object(screening, "UNBALANCED", least):
                        fits = [error(task, law, how, size, seed) for seed in range(asked.seeds)]
                    means.append(f"{np.mean(fits):>10.4g}")
                print(f"{task}, {law}, {how} {size:g}".ljust(32) + "".join(means), flush=True)


if __name__ == "__main__":
    main()
