"""Small budgets: how often the default keeps slopes, and what that gains or spoils.

    python -m benchmarks.faint [--seeds 40] [--task numbers]

Ten features matter, as in ``benchmarks/accuracy.py`` (the others say nothing). "strong" targets are
as there, in "faint" ones of numbers the features say .3 times as much, and in "none" the target is
permuted. Labels are ones as often as the part that is named, at most half. "kept" is the share of
the fits that keep slopes; "mean", "median" and "worst" are of the test error (RMSE, share of wrong
labels) over that of the training mean or of the most frequent label.
"""

from __future__ import annotations

import argparse
import warnings

import numpy as np
from numpy.typing import NDArray

from benchmarks import accuracy
from benchmarks.accuracy import SLOPES
from benchmarks.comparison.problems import lognormal
from privtail.linear_model import DPLinearRegression, DPLogisticRegression

Doubles = NDArray[np.float64]

LAWS = {name: accuracy.LAWS[name] for name in ("gauss", "t(2.5)")} | {"lognormal": lognormal}
SIZES = {
    "numbers": ((1_000, 10, 0.2, 1e-3), (5_000, 10, 0.1, 1e-6), (2_000, 60, 0.3, 1e-4)),
    "labels": ((1_000, 10, 0.1, 1e-3), (1_000, 10, 0.2, 1e-3), (1_000, 60, 0.3, 1e-3)),
}
"""n, d, epsilon, delta."""
STRENGTHS = {"strong": 1.0, "faint": 0.3, "none": 0.0}
ONES = (0.5, 0.45, 0.4, 0.27, 0.1)
TESTED = 20_000


def drawn(law: str, n: int, d: int, seed: int) -> tuple[np.random.Generator, Doubles, Doubles]:
    """The generator, features and noise of training and test rows."""
    rng = np.random.default_rng([seed, n, d])
    return rng, *LAWS[law](rng, n + TESTED, d)


def numbers(
    law: str, n: int, d: int, epsilon: float, delta: float, strength: float, seed: int
) -> tuple[float, bool]:
    """Error over that of the mean, and whether slopes are kept."""
    rng, X, noise = drawn(law, n, d, seed)
    told = X[:, : len(SLOPES)] @ SLOPES
    y = told * strength + noise if strength else rng.permutation(told + noise)
    model = DPLinearRegression(epsilon=epsilon, delta=delta, noise="simulated", random_state=seed)
    off = model.fit(X[:n], y[:n]).predict(X[n:]) - y[n:]
    constant = y[n:] - y[:n].mean()
    return float(np.linalg.norm(off) / np.linalg.norm(constant)), bool(model.coef_.any())


def labels(
    law: str, n: int, d: int, epsilon: float, delta: float, strength: float, ones: float, seed: int
) -> tuple[float, bool]:
    """Share of wrong labels over that of the most frequent label, and whether slopes are kept."""
    rng, X, noise = drawn(law, n, d, seed)
    score = X[:, : len(SLOPES)] @ SLOPES + noise
    y = (score > np.quantile(score, 1 - ones)).astype(float)
    y = y if strength else rng.permutation(y)
    model = DPLogisticRegression(
        epsilon=epsilon, delta=delta, classes=[0, 1], noise="simulated", random_state=seed
    )
    wrong = np.mean(model.fit(X[:n], y[:n]).predict(X[n:]) != y[n:])
    return float(wrong / y[n:].mean()), bool(model.coef_.any())


def line(name: str, fits: list[tuple[float, bool]]) -> str:
    """What came of so many fits."""
    errors, kept = np.array(fits).T
    return (
        f"{name:<52}{kept.mean():>6.2f}{errors.mean():>8.3f}{np.median(errors):>8.3f}"
        f"{errors.max():>8.2f}"
    )


def main() -> None:
    """Print a line for every law, size and strength."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--seeds", type=int, default=40)
    parser.add_argument("--task", choices=sorted(SIZES), help="one of the two")
    asked = parser.parse_args()
    warnings.simplefilter("ignore")
    print(f"{'':<52}{'kept':>6}{'mean':>8}{'median':>8}{'worst':>8}")
    for law in LAWS:
        for n, d, epsilon, delta in SIZES["numbers"] if asked.task != "labels" else ():
            for name, strength in STRENGTHS.items():
                fits = [numbers(law, n, d, epsilon, delta, strength, s) for s in range(asked.seeds)]
                print(line(f"numbers, {law}, {n} x {d}, eps {epsilon:g}, {name}", fits), flush=True)
        for n, d, epsilon, delta in SIZES["labels"] if asked.task != "numbers" else ():
            for ones in ONES:
                for name in ("strong", "none"):
                    fits = [
                        labels(law, n, d, epsilon, delta, STRENGTHS[name], ones, s)
                        for s in range(asked.seeds)
                    ]
                    what = f"labels, {law}, {n} x {d}, eps {epsilon:g}, ones {ones:g}, {name}"
                    print(line(what, fits), flush=True)


if __name__ == "__main__":
    main()
