"""Whether fits of odd columns, drawn at random, do worse than a constant.

    python -m benchmarks.random_tables [--first 0] [--tables 300] [--through-origin]

A table has 4,000 to 30,000 rows for training and one to twelve columns: light or heavy tails, codes
for missing values, constants, ids, times, counts, amounts that are mostly zero, far modes, rare
flags, and copies, sums, squares and products of others. Effects follow a column out to five widths
and end there, so extrapolation does harm. Printed for each kind of target is the skill on 20,000
new rows: 1 - (mean loss of the model) / (mean loss of the constant). Losses are squared, absolute,
logistic and Poisson deviance. The product of rows and epsilon is 10,000 or more. Noise is
simulated. The default was not tuned on tables above number 10,000.
"""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, xlogy

from privtail.linear_model import (
    DPLADRegressor,
    DPLinearRegression,
    DPLogisticRegression,
    DPPoissonRegressor,
)

Doubles = NDArray[np.float64]
Draw = Callable[[np.random.Generator, int, list[Doubles]], Doubles]

TESTED, HARM = 20_000, -0.05
LEAST = 10_000.0
"""The least product of rows and epsilon."""


def _coded(rng: np.random.Generator, n: int, _: list[Doubles]) -> Doubles:
    x, share = rng.normal(size=n), rng.choice([0.0005, 0.01, 0.1])
    x[rng.random(n) < share] = rng.choice([-999.0, 9_999.0, 9_999_999.0, -1.0])
    return x


def _normal(rng: np.random.Generator, n: int, _: list[Doubles]) -> Doubles:
    away = rng.choice([0.0, 0.0, 10.0 ** rng.uniform(-3, 9)])
    return away + 10.0 ** rng.uniform(-6, 6) * rng.normal(size=n)


def _copy(rng: np.random.Generator, n: int, others: list[Doubles]) -> Doubles:
    noise = rng.choice([0.0, 1e-6, 0.01])
    return others[rng.integers(len(others))] + noise * rng.normal(size=n)


def _amounts(rng: np.random.Generator, n: int, _: list[Doubles]) -> Doubles:
    there = rng.random(n) < rng.choice([0.002, 0.05, 0.3])
    return np.where(there, rng.lognormal(rng.choice([0, 6]), 2, n), 0.0)


def _modes(rng: np.random.Generator, n: int, _: list[Doubles]) -> Doubles:
    far = rng.random(n) < rng.choice([0.01, 0.5])
    return rng.normal(size=n) + 1e5 * far


COLUMNS: tuple[Draw, ...] = (
    _normal,
    _coded,
    _amounts,
    _modes,
    lambda rng, n, _: rng.lognormal(0, rng.uniform(0.5, 3), n),
    lambda rng, n, _: rng.standard_t(rng.uniform(1, 3), n),
    lambda rng, n, _: rng.pareto(rng.uniform(0.8, 2.5), n),
    lambda rng, n, _: (rng.random(n) < 10.0 ** rng.uniform(-4, -0.3)).astype(float),
    lambda rng, n, _: np.full(n, rng.choice([0.0, 1.0, -3.0, 2020.0, 1e-9, 1e12])),
    lambda rng, n, _: rng.permutation(n) + float(rng.integers(0, 10**6)),
    lambda rng, n, _: 1.6e9 + 10.0 ** rng.uniform(3, 8) * rng.random(n),
    lambda rng, n, _: rng.poisson(rng.choice([0.01, 0.3, 5, 1_000]), n).astype(float),
    lambda rng, n, _: rng.random(n),
    lambda rng, n, _: np.round(rng.gamma(2, 20, n), -1),
)
MADE: tuple[Draw, ...] = (
    _copy,
    lambda rng, n, others: others[0] + others[-1],
    lambda rng, n, others: others[-1] ** 2,
    lambda rng, n, others: others[0] * others[-1],
)
"""Columns that are made of others."""


class Task(NamedTuple):
    """A kind of target, its model, and the mean loss of predictions."""

    target: Callable[[np.random.Generator, Doubles], Doubles]
    model: Any
    loss: Callable[[Doubles, Doubles], float]
    constant: Callable[[Doubles], float] = np.mean
    at_origin: float = 0.0


def _numbers(rng: np.random.Generator, margin: Doubles) -> Doubles:
    noise = rng.choice([0.1, 1.0, 3.0]) * rng.normal(size=len(margin))
    return 10.0 ** rng.uniform(-6, 8) * (margin + noise + rng.choice([0, 0, 50]))


def _heavy(rng: np.random.Generator, margin: Doubles) -> Doubles:
    return 10.0 ** rng.uniform(-6, 8) * (margin + rng.standard_t(rng.uniform(1.2, 3), len(margin)))


def _spend(rng: np.random.Generator, margin: Doubles) -> Doubles:
    sizes = np.exp(margin.clip(-3, 3) + rng.uniform(0.3, 1.5) * rng.normal(size=len(margin)))
    return 10.0 ** rng.uniform(-6, 8) * sizes * (rng.random(len(margin)) < rng.choice([1.0, 0.3]))


def _label(rng: np.random.Generator, margin: Doubles) -> Doubles:
    shift = rng.choice([0.0, rng.uniform(2, 5)])
    return (rng.random(len(margin)) < expit(margin - shift)).astype(float)


def _count(rng: np.random.Generator, margin: Doubles) -> Doubles:
    return rng.poisson(np.exp(margin.clip(-3, 3) + rng.choice([-3, 0, 2]))).astype(float)


def _logistic(y: Doubles, p: Doubles) -> float:
    p = np.clip(p, 1e-12, 1 - 1e-12)
    return float(-np.mean(xlogy(y, p) + xlogy(1 - y, 1 - p)))


def _deviance(y: Doubles, mean: Doubles) -> float:
    mean = np.maximum(mean, 1e-12)
    return float(np.mean(xlogy(y, y / mean) - y + mean))


def _squared(y: Doubles, found: Doubles) -> float:
    return float(np.mean((y - found) ** 2))


TASKS = {
    "numbers": Task(_numbers, DPLinearRegression, _squared),
    "heavy-tailed noise": Task(_heavy, DPLinearRegression, _squared),
    "amounts": Task(_spend, DPLinearRegression, _squared),
    "absolute deviations": Task(
        _heavy, DPLADRegressor, lambda y, found: float(np.mean(abs(y - found))), np.median
    ),
    "labels": Task(_label, DPLogisticRegression, _logistic, at_origin=0.5),
    "counts": Task(_count, DPPoissonRegressor, _deviance, at_origin=1.0),
}


def bounded(x: Doubles) -> Doubles:
    """A column in widths around its median, no farther than five."""
    low, middle, high = np.quantile(x, [0.1, 0.5, 0.9])
    return np.clip((x - middle) / (high - low or x.std() or 1.0), -5, 5)


def skill(number: int, *, intercept: bool = True) -> tuple[str, float]:
    """The kind of target of a table, and the skill of the default on it."""
    rng = np.random.default_rng(number)
    n, epsilon = int(rng.choice([4_000, 10_000, 30_000])), float(rng.choice([1.0, 3.0, 10.0]))
    columns: list[Doubles] = []
    for _ in range(rng.integers(1, 13)):
        draws = COLUMNS + MADE * bool(columns)
        columns.append(draws[rng.integers(len(draws))](rng, n + TESTED, columns))
    X = np.column_stack(columns)
    slopes = rng.choice([0.05, 0.3, 1.0]) * rng.normal(size=X.shape[1])
    slopes *= rng.random(X.shape[1]) < 0.6
    name = str(rng.choice(list(TASKS)))
    task = TASKS[name]
    y = task.target(rng, np.column_stack([bounded(x) for x in columns]) @ slopes)
    classes = {"classes": [0, 1]} if name == "labels" else {}
    model = task.model(
        epsilon=max(epsilon, LEAST / n), fit_intercept=intercept, noise="simulated",
        random_state=number, **classes,
    ).fit(X[:n], y[:n])  # fmt: skip
    found = model.predict_proba(X[n:])[:, 1] if classes else model.predict(X[n:])
    best = float(task.constant(y[:n])) if intercept else task.at_origin
    base = task.loss(y[n:], np.full(TESTED, best))
    return name, 1 - task.loss(y[n:], found) / base if base else 0.0


def main() -> None:
    """A line for each kind of target."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--tables", type=int, default=300)
    parser.add_argument("--through-origin", action="store_true", help="without an intercept")
    asked = parser.parse_args()
    warnings.simplefilter("ignore")
    found: dict[str, list[float]] = {name: [] for name in TASKS}
    for number in range(asked.first, asked.first + asked.tables):
        name, one = skill(number, intercept=not asked.through_origin)
        found[name].append(one)
    for name, skills in found.items():
        skill_of = np.array(skills)
        left = np.exp(np.mean(np.log(np.maximum(1 - skill_of, 1e-4)))) if skills else np.nan
        print(
            f"{name:>20}: {len(skills):>4} tables, loss {left:.3f} of the constant's, "
            f"{np.count_nonzero(skill_of < HARM):>3} below {HARM}, "
            f"worst {skill_of.min(initial=1.0):.2f}"
        )


if __name__ == "__main__":
    main()
