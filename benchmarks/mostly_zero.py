"""Random targets that are mostly zero (claims, sales, visits): the default beside another method.

    python -m benchmarks.mostly_zero [--problems 150] [--beside clipped-spgd]

Drawn are rows (2,500 to 40,000), features (4 to 49; normal, lognormal, t with 4 degrees of freedom,
or indicators), how many of them matter, the share of zeros (.4 to .95), units, and epsilon (.1 to
2). The target is a score beyond a threshold, any size where a score is beyond it, a gamma where a
coin says so, or a count. "error" is the test RMSE over that of the training mean, "closed" the part
of what least squares gains on that mean, on average over problems where that is 3 % or more.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privtail.linear_model import DPLinearRegression

Doubles = NDArray[np.float64]

TESTED = 8_000
DELTA = 1e-6
GAIN = 0.97
"""Least squares gains enough where its error is below this part of the mean's."""


def features(rng: np.random.Generator, law: str, rows: int, d: int) -> Doubles:
    """(rows, d)."""
    laws: dict[str, Callable[[], Any]] = {
        "normal": lambda: rng.normal(size=(rows, d)),
        "lognormal": lambda: rng.lognormal(0, 0.7, (rows, d)),
        "t": lambda: rng.standard_t(4, (rows, d)),
        "indicators": lambda: rng.random((rows, d)) < rng.uniform(0.05, 0.6, d),
    }
    return np.asarray(laws[law](), dtype=np.float64)


def target(rng: np.random.Generator, law: str, score: Doubles, zeros: float) -> Doubles:
    """(rows,) of which about the part ``zeros`` is zero."""
    rows, noisy = len(score), score * rng.uniform(0.4, 1.2) + rng.normal(size=len(score))
    beyond = noisy - np.quantile(noisy, zeros)
    if law == "beyond":
        return np.asarray(np.maximum(beyond, 0) ** rng.uniform(1, 2))
    if law == "any size":
        return np.asarray((beyond > 0) * rng.lognormal(0, rng.uniform(0.3, 1.2), rows))
    if law == "gamma":
        some = rng.random(rows) < (1 - zeros) * np.exp(0.5 * score)
        return np.asarray(some * np.exp(0.4 * score) * rng.gamma(1.5, 1, rows))
    return rng.poisson(np.exp(0.6 * score) * (1 - zeros)).astype(np.float64)


def problem(number: int) -> tuple[str, float, Doubles, Doubles]:
    """What it is, its epsilon, and its records, the last `TESTED` of which are for the test."""
    rng = np.random.default_rng([7, number])
    n, d = int(10 ** rng.uniform(3.4, 4.6)), int(rng.integers(4, 50))
    epsilon, zeros = float(rng.choice([0.1, 0.2, 0.5, 1.0, 2.0])), float(rng.uniform(0.4, 0.95))
    design = str(rng.choice(["normal", "lognormal", "t", "indicators"]))
    law = str(rng.choice(["beyond", "any size", "gamma", "count"]))
    X = features(rng, design, n + TESTED, d)
    w = np.where(np.arange(d) < rng.integers(1, min(d, 8) + 1), rng.normal(size=d), 0.0)
    score = (X - X.mean(axis=0)) @ w
    y = target(rng, law, score / score.std(), zeros) * 10 ** rng.uniform(-2, 4)
    return f"{n:>6}{d:>4}  {design:<11}{law:<9}{np.mean(y == 0):>6.2f}{epsilon:>5g}", epsilon, X, y


def main() -> None:
    """A line for every problem, then the summary."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--problems", type=int, default=150)
    parser.add_argument("--beside", default="clipped-spgd", help="what `algorithm` takes")
    asked = parser.parse_args()
    print(f"{'n':>6}{'d':>4}  {'features':<11}{'target':<9}{'zeros':>6}{'eps':>5}"
          f"{'error':>9}{asked.beside:>24}{'least squares':>15}")  # fmt: skip
    found = []
    for number in range(asked.problems):
        title, epsilon, X, y = problem(number)
        train, test = slice(None, -TESTED), slice(-TESTED, None)
        scale = np.sqrt(np.mean((y[test] - y[train].mean()) ** 2))
        A = np.hstack([X, np.ones((len(y), 1))])
        best = A[test] @ np.linalg.lstsq(A[train], y[train], rcond=None)[0]
        fits = [
            DPLinearRegression(
                epsilon=epsilon, delta=DELTA, algorithm=algorithm, noise="simulated",
                random_state=number,
            ).fit(X[train], y[train]).predict(X[test])
            for algorithm in ("auto", asked.beside)
        ]  # fmt: skip
        errors = [float(np.sqrt(np.mean((p - y[test]) ** 2)) / scale) for p in (*fits, best)]
        found.append(errors)
        print(f"{title}{errors[0]:>9.3f}{errors[1]:>24.3f}{errors[2]:>15.3f}", flush=True)
    every = np.array(found)
    some = every[every[:, 2] < GAIN]
    closed = np.mean((1 - some[:, :2]) / (1 - some[:, 2:]), axis=0)
    for name, errors, part in zip(("auto", asked.beside), every.T, closed, strict=False):
        print(f"{name}: closed {part:.3f} of {len(some)} problems; error above 1.05 in "
              f"{np.mean(errors > 1.05):.1%}, worst {errors.max():.2f}")  # fmt: skip


if __name__ == "__main__":
    main()
