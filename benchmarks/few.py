"""When a selection among few features is worth it: all slopes, or those of ten.

    python -m benchmarks.few [--seeds 5]

1,000 rows, epsilon .5. Ten features matter or all do, in units of 10^U(-1, 1). The columns are
test errors over those of a constant (geometric mean over laws and seeds) where all slopes are
fitted, where ten are, and what the default does (`FewOrAll`: decided by n, d and the noise).
"""

from __future__ import annotations

import argparse
import warnings
from unittest.mock import patch

import numpy as np
from scipy.stats import gmean

from benchmarks.faint import drawn
from benchmarks.units import disguised
from privtail.algorithms import few_or_all
from privtail.errors import NoiseWarning
from privtail.linear_model import DPLinearRegression, DPLogisticRegression

N, EPSILON, DELTA = 1_000, 0.5, 1e-3
LAWS = ("lognormal", "gauss", "t(2.5)")
FEATURES = (20, 30, 40, 60)
RULES: dict[str, dict[str, float]] = {
    "all": {"SOME": np.inf, "MANY": np.inf},
    "ten": {"SOME": 0, "MANY": 0, "CROWDED": 0, "CROWDED_LABELS": 0},
    "default": {},
}


def error(task: str, law: str, d: int, active: int, seed: int) -> float:
    """Of one fit, on fresh rows, over that of a constant."""
    rng, X, noise = drawn(law, N, d, seed)
    typical = np.subtract(*np.quantile(X, [0.75, 0.25], axis=0))
    slopes = rng.choice([-1, -0.5, 0.5, 1], d) * (rng.permutation(d) < active) / typical
    told = X @ slopes + noise
    X = disguised(X, "spread", 1.0, rng)
    options = {"epsilon": EPSILON, "delta": DELTA, "noise": "simulated", "random_state": seed}
    if task == "numbers":
        fitted = DPLinearRegression(**options).fit(X[:N], told[:N]).predict(X[N:])
        return float(np.linalg.norm(fitted - told[N:]) / np.linalg.norm(told[N:] - told.mean()))
    y = (told > np.median(told)).astype(float)
    labels = DPLogisticRegression(classes=[0.0, 1.0], **options).fit(X[:N], y[:N])
    return float(np.mean(labels.predict(X[N:]) != y[N:]) / 0.5)


def main() -> None:
    """Print a line for every task, number of features and how many matter."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--seeds", type=int, default=5)
    asked = parser.parse_args()
    warnings.simplefilter("ignore", NoiseWarning)
    print(f"{'':<24}" + "".join(f"{rule:>10}" for rule in RULES))
    for task in ("numbers", "labels"):
        for d in FEATURES:
            for active in (10, d):
                means = []
                for rule in RULES.values():
                    with patch.dict(vars(few_or_all), rule):
                        fits = [
                            error(task, law, d, active, seed)
                            for law in LAWS
                            for seed in range(asked.seeds)
                        ]
                    means.append(f"{gmean(fits):>10.3f}")
                print(f"{task}, {active} of {d} matter".ljust(24) + "".join(means), flush=True)


if __name__ == "__main__":
    main()
