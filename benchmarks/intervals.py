"""How often intervals hold what they promise, and how wide they are beside the noise.

    PYTHONPATH=src python benchmarks/intervals.py [RUNS]

Means: tables are drawn anew, so sampling error counts. Slopes: one table, noise drawn anew; the
centre is the mean of all runs that use the feature, which is what the releases lead to without
noise.
"""

from __future__ import annotations

import sys
import warnings
from typing import Any

import numpy as np

from privtail.linear_model import DPHuberRegressor, DPLinearRegression, DPLogisticRegression, DPMean

LEVEL = 0.95


def means(runs: int, n: int, epsilon: float, method: Any) -> dict[str, float]:
    """Share of the intervals of `DPMean` that hold the true mean."""
    laws: dict[str, Any] = {
        "normal": (lambda rng: rng.normal(7, 2, n), 7.0),
        "t(3)": (lambda rng: rng.standard_t(3, n), 0.0),
        "exponential": (lambda rng: rng.exponential(1, n), 1.0),
        "lognormal(0, 1)": (lambda rng: rng.lognormal(0, 1, n), float(np.exp(0.5))),
    }
    inside = np.zeros(len(laws))
    truth = np.array([mean for _, mean in laws.values()])
    for seed in range(runs):
        rng = np.random.default_rng(seed)
        X = np.column_stack([draw(rng) for draw, _ in laws.values()])
        model = DPMean(method, epsilon=epsilon, noise="simulated", random_state=seed).fit(X)
        low, high = model.conf_int(LEVEL).T
        inside += (low <= truth) & (truth <= high)
    return dict(zip(laws, inside / runs, strict=True))


def correlated(rng: np.random.Generator, size: tuple[int, int]) -> Any:
    """t(3) features of which two are nearly the same."""
    X = rng.standard_t(3, size)
    X[:, 1] = 0.9 * X[:, 0] + 0.3 * X[:, 1]
    return X


def very_rare(rng: np.random.Generator, size: tuple[int, int]) -> Any:
    """Normal features, and two that are 1 in 1 % of the rows."""
    X = rng.normal(size=size)
    X[:, 3:] = rng.binomial(1, 0.01, (size[0], 2))
    return X


def alike(rng: np.random.Generator, size: tuple[int, int]) -> Any:
    """Normal features of which two are the same."""
    X = rng.normal(size=size)
    X[:, 4] = X[:, 3]
    return X


def one_hot(rng: np.random.Generator, size: tuple[int, int]) -> Any:
    """A normal feature and all indicators of a category, which add up to the intercept's."""
    X, rows = rng.normal(size=size), size[0]
    X[:, 1:] = np.eye(size[1] - 1)[rng.choice(size[1] - 1, rows, p=[0.4, 0.3, 0.2, 0.1])]
    return X


DESIGNS: dict[str, Any] = {
    "normal": lambda rng, size: rng.normal(size=size),
    "t(3)": lambda rng, size: rng.standard_t(3, size),
    "t(3), correlated": correlated,
    "lognormal(0, 1.5)": lambda rng, size: rng.lognormal(0, 1.5, size),
    "rare binary": lambda rng, size: rng.binomial(1, 0.1, size).astype(float),
    "very rare binary": very_rare,
    "two alike": alike,
    "one-hot": one_hot,
}


def slopes(runs: int, kind: Any, design: str, epsilon: float) -> tuple[float, float]:
    """Coverage of ``conf_int(kind="noise")``, and stated over actual deviation.

    A feature that is zero in nearly all rows is not used in every run.
    """
    rng = np.random.default_rng(0)
    X = DESIGNS[design](rng, (20_000, 5))
    signal = X @ [1.0, -1.0, 0.5, 0.0, 2.0]
    y = signal + signal.std() / 3 * rng.standard_t(3, 20_000)
    labels = kind is DPLogisticRegression
    options: dict[str, Any] = {"classes": [0, 1]} if labels else {}
    target = (y > np.median(y)).astype(int) if labels else y
    models = [
        kind(epsilon=epsilon, noise="simulated", random_state=seed, **options).fit(X, target)
        for seed in range(runs)
    ]
    found = np.array([model.coef_.ravel() for model in models])
    ends = np.array([model.conf_int(LEVEL, kind="noise").reshape(-1, 2) for model in models])
    stated = np.array([model.coef_noise_std_ for model in models])
    used = np.isfinite(stated)
    found, stated = (np.where(used, x, np.nan) for x in (found, stated))
    centre = np.nanmean(found, axis=0)
    inside = (ends[..., 0] <= centre) & (centre <= ends[..., 1])
    ratio = np.nanmean(stated, axis=0).mean() / np.nanstd(found, axis=0, ddof=1).mean()
    return float(inside[used].mean()), float(ratio)


def main(runs: int) -> None:
    """Print both tables."""
    warnings.simplefilter("ignore")
    print(f"coverage of {LEVEL:.0%} intervals, {runs} runs")
    for method in ("clamped", "clipped", "coinpress"):
        for n, epsilon in ((2_000, 1.0), (50_000, 0.5)):
            cells = means(runs, n, epsilon, method).items()
            text = ", ".join(f"{law} {share:.3f}" for law, share in cells)
            print(f"mean, {method:<9} n={n:>6,} ε={epsilon:g}: {text}", flush=True)
    for kind in (DPLinearRegression, DPHuberRegressor, DPLogisticRegression):
        for design in DESIGNS:
            covered, ratio = slopes(max(runs // 10, 10), kind, design, 1.0)
            title = f"{kind.__name__}, {design}"
            print(f"slopes, {title}: {covered:.3f}, stated/actual noise {ratio:.1f}", flush=True)


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 200)
