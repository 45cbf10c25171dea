"""Random tables whose columns have unlike tails: the default beside a constant and scikit-learn.

    python -m benchmarks.mixed_tails [KIND ...] [--problems 50] [--rows 20000] [--epsilon 1]

A table has 1 to 60 columns, each of one of 22 laws: Gaussian, lognormal, Student and Pareto of
many scales, values over 17 powers of ten, indicators, few values, counts, mostly zeros, times in
seconds, ids, years, codes (-999), constants, row numbers. Some columns are copies. Up to eight of
them matter, each within its quantiles .001 and .999. Targets are numbers (squared or absolute
error), labels, counts, or amounts.

"ratio" is the loss of the default on new rows over that of the constant of the fitted rows, and
"closed" the part of what a fit without privacy gains on that constant, where that is 3 % or more.
`tail_adjusted` was chosen with other draws of these laws; nothing else was tuned with them. Noise
is simulated.
"""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.linear_model import LinearRegression, LogisticRegression, PoissonRegressor
from sklearn.metrics import (
    log_loss,
    mean_absolute_error,
    mean_poisson_deviance,
    root_mean_squared_error,
)
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from privtail.linear_model import (
    DPLADRegressor,
    DPLinearRegression,
    DPLogisticRegression,
    DPPoissonRegressor,
    DPTweedieRegressor,
)

Doubles = NDArray[np.float64]

KINDS = ("squares", "absolute", "labels", "counts", "amounts")
TESTED = 5_000
ENDS = (0.001, 0.999)
"""Quantiles within which a column matters, and to which it is clipped without privacy."""

GAIN = 0.97
"""A fit without privacy gains enough where its loss is below this part of the constant's."""


def column(rng: np.random.Generator, n: int) -> Any:
    """A column of one of 22 laws."""
    power, any_power = 10 ** rng.uniform(-2, 2), 10 ** rng.uniform(-3, 3)
    rare, dense = 10 ** rng.uniform(-3, -0.3), rng.uniform(0.3, 0.98)
    laws: tuple[Callable[[], Any], ...] = (
        lambda: rng.normal(rng.normal() * 10.0 ** rng.integers(-1, 3), power, n),
        lambda: rng.lognormal(rng.normal(), rng.uniform(0.3, 2.5), n),
        lambda: rng.standard_t(rng.uniform(1.5, 5), n) * any_power,
        lambda: rng.integers(0, rng.integers(2, 8), n),
        lambda: rng.random(n) < rare,
        lambda: rng.poisson(10 ** rng.uniform(-1.5, 1.5), n),
        lambda: np.where(rng.random(n) < dense, 0, rng.lognormal(2, 1.5, n)),
        lambda: 1.6e9 + rng.uniform(0, 3e7, n),
        lambda: rng.integers(1, 3 * n, n),
        lambda: rng.beta(0.5, 0.5, n),
        lambda: np.round(rng.normal(40, 15, n)),
        lambda: rng.choice([1, 10, 100, 1000], n),
        lambda: -rng.exponential(any_power, n),
        lambda: np.where(rng.random(n) < 0.03, -999, rng.normal(50, 12, n)),
        lambda: np.full(n, rng.normal()),
        lambda: np.arange(n),
        lambda: rng.choice([-1, 1], n) * rng.pareto(1.3, n),
        lambda: np.sin(np.arange(n) / 50) + 0.1 * rng.normal(size=n),
        lambda: np.exp(rng.uniform(-20, 20, n)),
        lambda: 1900 + rng.integers(20, 120, n),
        lambda: rng.uniform(0, 100, n),
        lambda: np.abs(rng.normal(size=n)) ** 3,
    )
    return laws[rng.integers(len(laws))]()


def table(rng: np.random.Generator, n: int) -> tuple[Doubles, Doubles]:
    """Features, and the sum of their effects."""
    d = int(rng.choice([1, 2, 5, 10, 30, 60]))
    X = np.column_stack([column(rng, n) for _ in range(d)]).astype(np.float64)
    for j in range(1, d):
        if rng.random() < 0.15:
            X[:, j] = X[:, 0] + 0.1 * X[:, j] if rng.random() < 0.5 else X[:, j - 1]
    effects = np.zeros(n)
    for j in rng.choice(d, min(d, int(rng.integers(1, 9))), replace=False):
        inside = np.clip(X[:, j], *np.quantile(X[:, j], ENDS))
        spread = inside.std()
        effects += rng.normal() * (inside - inside.mean()) / spread if spread > 0 else 0.0
    return X, effects


def losses(kind: str, seed: int, rows: int, epsilon: float) -> tuple[int, float, float, float]:
    """Columns, and losses of the default, of the constant, and without privacy, on new rows."""
    rng = np.random.default_rng([99, seed, KINDS.index(kind)])
    X, effects = table(rng, rows + TESTED)
    own = {"epsilon": epsilon, "noise": "simulated", "random_state": seed}
    ends = np.quantile(X[:rows], ENDS, axis=0)
    clipped = np.clip(X, *ends)
    train, test = slice(rows), slice(rows, None)
    model: Any
    plain: Any
    loss: Callable[..., float]
    if kind in ("squares", "absolute"):
        laws = (
            rng.normal,
            lambda size: rng.standard_t(2, size),
            lambda size: rng.lognormal(size=size),
        )
        y = effects + rng.uniform(0.1, 3) * laws[rng.integers(3)](size=len(X))
        y = y * 10 ** rng.uniform(-3, 4) + rng.normal() * 10 ** rng.uniform(-2, 4)
        squares = kind == "squares"
        model = (DPLinearRegression if squares else DPLADRegressor)(**own)
        plain = make_pipeline(StandardScaler(), LinearRegression())
        loss = root_mean_squared_error if squares else mean_absolute_error
        constant: Any = np.mean(y[train]) if squares else np.median(y[train])
    elif kind == "labels":
        y = rng.random(len(X)) < 1 / (1 + np.exp(rng.choice([0, 2, 4]) - effects))
        y = y.astype(int)
        model = DPLogisticRegression(classes=[0, 1], **own)
        plain = make_pipeline(StandardScaler(), LogisticRegression(max_iter=300))
        loss, constant = log_loss, np.mean(y[train])
    else:
        means = np.exp(0.5 * np.clip(effects, -3, 3) + rng.choice([-2, 0, 2]))
        amounts = kind == "amounts"
        y = means * rng.gamma(2, 0.5, len(X)) * (rng.random(len(X)) > rng.uniform(0.1, 0.9))
        y = y if amounts else rng.poisson(means)
        model = (DPTweedieRegressor if amounts else DPPoissonRegressor)(**own)
        plain = make_pipeline(StandardScaler(), PoissonRegressor(alpha=1e-6, max_iter=300))
        loss, constant = mean_poisson_deviance, np.mean(y[train])
    told = [model.fit(X[train], y[train]), plain.fit(clipped[train], y[train])]
    answer = "predict_proba" if kind == "labels" else "predict"
    private, best = (
        loss(y[test], getattr(one, answer)(Z[test]))
        for one, Z in zip(told, (X, clipped), strict=True)
    )
    return X.shape[1], private, loss(y[test], np.full(TESTED, constant)), best


def main() -> None:
    """A line for each problem, then a summary of each kind."""
    warnings.simplefilter("ignore")
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("kinds", nargs="*", default=KINDS)
    parser.add_argument("--problems", type=int, default=50)
    parser.add_argument("--first", type=int, default=0, help="the first seed")
    parser.add_argument("--rows", type=int, default=20_000)
    parser.add_argument("--epsilon", type=float, default=1.0)
    asked = parser.parse_args()
    for kind in asked.kinds:
        ratios, closed = [], []
        for seed in range(asked.first, asked.first + asked.problems):
            d, private, constant, best = losses(kind, seed, asked.rows, asked.epsilon)
            ratios.append(private / constant)
            part = (constant - private) / (constant - best) if best < GAIN * constant else np.nan
            closed.append(part)
            print(f"{kind:<9}{seed:>4}{d:>4} columns  ratio {ratios[-1]:6.3f}  closed {part:6.2f}")
        print(
            f"{kind}: ratio {np.exp(np.mean(np.log(ratios))):.3f} in the geometric mean, "
            f"{max(ratios):.3f} at most; closed {np.nanmean(np.clip(closed, -1, 1)):.2f} on average"
            f" of {np.sum(np.isfinite(closed))} problems",
            flush=True,
        )


if __name__ == "__main__":
    main()
