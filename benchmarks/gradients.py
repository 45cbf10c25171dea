"""Robust gradients against the plain one by two BLAS products, X @ w and X.T @ r.

Run it with ``make bench`` or ``python -m benchmarks.gradients [case ...]``; ``--list`` names the
cases. Median ratio of 15 interleaved pairs, two threads, exact sums; best of three processes where
a limit is set. The plain gradient is the two products alone: its residuals are given.
"""

from __future__ import annotations

import json
import math
import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.special import ndtr

from benchmarks.protocol import PROCESSES, in_a_process, machine, pairs
from privtail.losses import LogisticLoss, MultinomialLoss, SquaredLoss
from privtail.robust_means import ClippedMean, SmoothedCatoniMean
from privtail.trusted.budget import Budget
from privtail.trusted.curator import Curator
from privtail.trusted.events import Round
from privtail.trusted.means import RobustMean

SMOOTHING = 4.0
MEANS: dict[str, RobustMean] = {
    "clipped": ClippedMean(10.0),
    "Catoni": SmoothedCatoniMean(10.0, SMOOTHING),
}
PROBLEMS: dict[str, dict[str, Any]] = {
    "float64": {},
    "one thread": {"threads": 1},
    "float32": {"kind": "float32"},
    "column-major": {"kind": "column-major"},
    "d = 10": {"d": 10},
    "logistic": {"loss": LogisticLoss()},
    "K = 7, d = 54": {"d": 54, "loss": MultinomialLoss(classes=7)},
    "CSR, d = 100, 10 %": {"d": 100, "kind": "CSR"},
}
LIMITS: dict[str, float] = {
    "clipped, float64": 1.2,
    "Catoni, float64": 1.5,
    "clipped, K = 7, d = 54": 1.5,
    "clipped, column-major": 3.0,
    "Catoni, column-major": 3.0,
}
CASES = [f"{mean}, {problem}" for problem in PROBLEMS for mean in MEANS]
PRINTED = "Catoni as printed, n = 1e5"


def records(n: int, d: int, kind: str) -> Any:
    """Lognormal rows, made in blocks."""
    if kind == "CSR":
        return sp.random(n, d, density=0.1, format="csr", random_state=0)
    rng = np.random.default_rng(0)
    order = "F" if kind == "column-major" else "C"
    X = np.empty((n, d), np.float32 if kind == "float32" else np.float64, order=order)
    for start in range(0, n, 10_000):
        rows = X[start : start + 10_000]
        rows[:] = np.exp(rng.standard_normal(rows.shape, dtype=np.float32))
    return X


def problem(
    n: int = 1_000_000, d: int = 50, kind: str = "float64", loss: Any = None, threads: int = 2
) -> tuple[Any, np.ndarray, np.ndarray, Any]:
    """Records, targets, parameters (d, K) and loss."""
    loss = loss or SquaredLoss()
    rng = np.random.default_rng(1)
    X = records(n, d, kind)
    y = (
        rng.standard_normal(n)
        if loss.targets == "real"
        else rng.integers(0, max(2, loss.outputs), n)
    )
    return X, np.asarray(y, dtype=np.float64), 0.1 * rng.standard_normal((d, loss.outputs)), loss


def gradient(
    X: Any, y: np.ndarray, w: np.ndarray, loss: Any, mean: RobustMean
) -> Callable[[], Any]:
    """Our gradient, summed exactly and not yet released."""
    curator = Curator(X, y, budget=Budget(1.0, 1e-6), outputs=w.shape[1])
    curator.open((Round(events=()),))
    batch = curator.everyone()
    return lambda: batch.gradient(loss, w, mean)


def plain(X: Any, w: np.ndarray) -> Callable[[], Any]:
    """The two products of the plain gradient, on the same array."""
    w = w.astype(X.dtype)
    r = np.ascontiguousarray(X @ w)
    return lambda: (X @ w, X.T @ r)


def printed(X: np.ndarray, y: np.ndarray, w: np.ndarray, scale: float) -> np.ndarray:
    """The smoothed Catoni gradient by the closed form of the papers (Holland 2019, eq. 11)."""
    a = X * (X @ w - y[:, None]) / scale
    b = np.abs(a) / math.sqrt(SMOOTHING)
    root, pi = math.sqrt(2), math.sqrt(2 * math.pi)
    low, high = (root - a) / b, (root + a) / b
    f_low, f_high = ndtr(-low), ndtr(-high)
    e_low, e_high = np.exp(-low * low / 2), np.exp(-high * high / 2)
    correction = (
        2 * root / 3 * (f_low - f_high)
        - (a - a**3 / 6) * (f_low + f_high)
        + b / pi * (1 - a * a / 2) * (e_high - e_low)
        + a * b * b / 2 * (f_high + f_low + (high * e_high + low * e_low) / pi)
        + b**3 / (6 * pi) * ((2 + low**2) * e_low - (2 + high**2) * e_high)
    )
    total: np.ndarray = scale * np.mean(a * (1 - b * b / 2) - a**3 / 6 + correction, axis=0)
    return total


def measured(case: str) -> dict[str, Any]:
    """One process's measurement of a case."""
    if case == PRINTED:
        n = 100_000
        X, y, w, loss = problem(n)
        ours = gradient(X, y, w, loss, MEANS["Catoni"])
        start = time.perf_counter()
        with np.errstate(all="ignore"):
            printed(X, y, w, 10.0)
        slow = time.perf_counter() - start
        fast = pairs(ours, lambda: None)["ours"]
        return {"ratio": fast / slow, "ours": fast, "theirs": slow}
    mean, _, name = case.partition(", ")
    X, y, w, loss = problem(**PROBLEMS[name])
    return pairs(gradient(X, y, w, loss, MEANS[mean]), plain(X, w))


def main(chosen: list[str]) -> None:
    """Measure in fresh processes and print the table."""
    print(machine("numba", "scipy"))
    print(f"\n{'gradient, n = 1e6':34}{'ours, ms':>10}{'plain, ms':>11}{'ratio':>8}{'at most':>9}")
    for case in chosen or [*CASES, PRINTED]:
        threads = str(PROBLEMS.get(case.partition(", ")[2], {}).get("threads", 2))
        settings = {"PRIVTAIL_THREADS": threads, "OPENBLAS_NUM_THREADS": threads}
        count = PROCESSES if case in LIMITS or case == PRINTED else 1
        runs = [
            in_a_process("-m", "benchmarks.gradients", "--measure", case, **settings)
            for _ in range(count)
        ]
        best = min(runs, key=lambda run: run["ratio"])
        shown, limit = f"{best['ratio']:.2f}", str(LIMITS.get(case, ""))
        if case == PRINTED:
            shown, limit = f"1/{1 / best['ratio']:.0f}", "1/100"
        ours, theirs = 1e3 * best["ours"], 1e3 * best["theirs"]
        print(f"{case:34}{ours:10.1f}{theirs:11.1f}{shown:>8}{limit:>9}", flush=True)


if __name__ == "__main__":
    if sys.argv[1:2] == ["--measure"]:
        print(json.dumps(measured(sys.argv[2])))
    elif sys.argv[1:2] == ["--list"]:
        print(*CASES, PRINTED, sep="\n")
    else:
        main(sys.argv[1:])
