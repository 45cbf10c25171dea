"""Accuracy of the defaults: beside the constant predictor and beside the fit without privacy.

    python -m benchmarks.accuracy [SECTION ...] [--quick] [--seeds 3]

Sections: lognormal (what the documentation quotes), regimes, units, shifts. Every row is the median
and the worst of several seeds; "ratio" is the worst over the constant predictor (root mean squared
error, or share of wrong labels). Noise is simulated: the same law as exact noise, seeded and fast.
Other laws, real tables and other methods are in ``python -m benchmarks.comparison``.
"""

from __future__ import annotations

import argparse
import math
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from privtail.linear_model import DPLinearRegression, DPLogisticRegression

Doubles = NDArray[np.float64]
SLOPES = (1.0, -1.0, 0.5, -0.5, 0.25, -0.25, 1.0, -1.0, 0.5, -0.5)
BOUND = 2.0
"""No fit may be this many times worse than the constant predictor."""


@dataclass(frozen=True)
class Case:
    """A problem split into train and test, and a budget."""

    name: str
    X: Any
    y: Any
    X_test: Any
    y_test: Any
    epsilon: float
    delta: float = 1e-6
    classes: tuple[Any, ...] | None = None

    def wrong(self, prediction: Any) -> float:
        """Root mean squared error, or share of wrong labels."""
        if self.classes is None:
            return math.sqrt(np.mean((prediction - self.y_test) ** 2))
        return float(np.mean(prediction != self.y_test))

    def ours(self, seed: int) -> float:
        """Test error of our default."""
        options: dict[str, Any] = {
            "epsilon": self.epsilon,
            "delta": self.delta,
            "noise": "simulated",
            "random_state": seed,
        }
        model: Any = DPLinearRegression(**options)
        if self.classes is not None:
            model = DPLogisticRegression(classes=list(self.classes), **options)
        return self.wrong(model.fit(self.X, self.y).predict(self.X_test))

    def constant(self) -> float:
        """Test error of the training mean, or of the most frequent training label."""
        if self.classes is None:
            return self.wrong(np.mean(self.y))
        values, counts = np.unique(self.y, return_counts=True)
        return self.wrong(values[counts.argmax()])

    def without_privacy(self) -> float:
        """Test error of scikit-learn on the raw numbers."""
        if self.classes is None:
            return self.wrong(LinearRegression().fit(self.X, self.y).predict(self.X_test))
        model = make_pipeline(StandardScaler(), LogisticRegression(max_iter=300))
        return self.wrong(model.fit(self.X, self.y).predict(self.X_test))


def lognormal(n: int, d: int, *, labels: bool = False, seed: int = 0) -> tuple[Any, Any, Any, Any]:
    """Lognormal features and noise, ten slopes; train (n) and test (100,000)."""
    rng = np.random.default_rng(seed)
    w = np.zeros(d)
    w[: len(SLOPES)] = SLOPES
    parts: list[Any] = []
    for rows in (n, 100_000):
        X = rng.lognormal(0, 1.5, (rows, d))
        y = X @ w + 1 + rng.lognormal(0, 1.5, rows) - math.exp(1.125)
        parts += [X, (y > 0).astype(int) if labels else y]
    return tuple(parts)  # type: ignore[return-value]


def quoted(quick: bool) -> Iterator[Case]:
    """The problem of the documentation: n = 100,000, d = 10."""
    for labels in (False, True):
        problem = lognormal(100_000, 10, labels=labels)
        for epsilon in (0.1,) if quick else (0.05, 0.1, 0.5, 1.0):
            name = f"{'labels' if labels else 'numbers'} n=100000 d=10"
            yield Case(name, *problem, epsilon, 1e-5, classes=(0, 1) if labels else None)


LAWS: dict[str, Callable[[np.random.Generator, int, int], tuple[Doubles, Doubles]]] = {
    "t(2.5)": lambda rng, n, d: (rng.standard_t(2.5, (n, d)), rng.standard_t(2.5, n)),
    "gauss": lambda rng, n, d: (rng.normal(size=(n, d)), rng.normal(size=n)),
    "gauss, t(2.5) noise": lambda rng, n, d: (rng.normal(size=(n, d)), rng.standard_t(2.5, n)),
    "gauss, Pareto(1.5) noise": lambda rng, n, d: (
        rng.normal(size=(n, d)), rng.pareto(1.5, n) - 2,
    ),
    "gauss, 5 % of noise x 100": lambda rng, n, d: (
        rng.normal(size=(n, d)), rng.normal(size=n) * np.where(rng.random(n) < 0.05, 100, 1),
    ),
    "correlated": lambda rng, n, d: (_chain(rng, n, d), rng.normal(size=n)),
    "correlated lognormal": lambda rng, n, d: (
        np.exp(_chain(rng, n, d)), rng.standard_t(3, size=n),
    ),
    "scales 1e-6 to 1e6": lambda rng, n, d: (rng.standard_t(3, (n, d)), 7 + rng.normal(size=n)),
    "weak": lambda rng, n, d: (rng.normal(size=(n, d)), 15 * rng.normal(size=n)),
}  # fmt: skip
"""Laws of features and noise, on which the default was tuned; with them it is compared."""


def _chain(rng: np.random.Generator, n: int, d: int) -> Doubles:
    """Gaussian features, neighbours of which have the correlation .9."""
    apart = np.abs(np.subtract.outer(np.arange(d), np.arange(d)))
    return np.asarray(rng.normal(size=(n, d)) @ np.linalg.cholesky(0.9**apart).T)


def regimes(quick: bool) -> Iterator[Case]:
    """From few rows of many features to many rows of few."""
    for labels in (False, True):
        for d in (10, 100):
            for n in (1_000, 10_000) if quick else (1_000, 10_000, 100_000):
                problem = lognormal(n, d, labels=labels)
                for epsilon in (0.05, 0.1, 0.5, 1.0):
                    name = f"{'labels' if labels else 'numbers'} n={n} d={d}"
                    classes = (0, 1) if labels else None
                    yield Case(name, *problem, epsilon, min(1e-5, 1 / n**1.5), classes=classes)


def units(quick: bool) -> Iterator[Case]:
    """A feature, all features or the target in other units."""
    factors = (1e-6, 1e6) if quick else (1e-6, 1e-3, 1e3, 1e6)
    for n in (1_000, 10_000):
        X, y, X_test, y_test = lognormal(n, 10)
        one, every = np.eye(10)[0], np.ones(10)
        for factor in factors:
            for name, sizes, size in (
                ("a feature", 1 + (factor - 1) * one, 1.0),
                ("features", factor * every, 1.0),
                ("target", every, factor),
            ):
                for epsilon in (0.05, 0.1, 1.0):
                    yield Case(
                        f"{name} x {factor:g} n={n}",
                        X * sizes, size * y, X_test * sizes, size * y_test, epsilon,
                    )  # fmt: skip


def shifts(quick: bool) -> Iterator[Case]:
    """The target or the features far from zero."""
    for n in (2_000, 20_000):
        X, y, X_test, y_test = lognormal(n, 10)
        for far in (1e3, 1e5) if quick else (1e2, 1e3, 1e4, 1e5, 1e6):
            for epsilon in (0.05, 0.1, 0.5, 1.0):
                yield Case(f"target + {far:g} n={n}", X, y + far, X_test, y_test + far, epsilon)
                yield Case(f"features + {far:g} n={n}", X + far, y, X_test + far, y_test, epsilon)


def measure(case: Case, seeds: int) -> float:
    """Print a row; return the worst seed over the constant predictor."""
    constant, reference = case.constant(), case.without_privacy()
    begun = time.perf_counter()
    ours = [case.ours(seed) for seed in range(seeds)]
    seconds = (time.perf_counter() - begun) / seeds
    ratio = max(ours) / constant
    print(
        f"{case.name:<44} {case.epsilon:>5g} {np.median(ours):>11.5g} {max(ours):>11.5g} "
        f"{constant:>11.5g} {reference:>11.5g} {ratio:>7.3f}{'!' if ratio > BOUND else ' '} "
        f"{seconds:>6.2f}",
        flush=True,
    )
    return ratio


def main() -> None:
    """Measure the sections that were asked for, all by default."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    cases = {"lognormal": quoted, "regimes": regimes, "units": units, "shifts": shifts}
    parser.add_argument("sections", nargs="*", metavar="SECTION", help=", ".join(cases))
    parser.add_argument("--quick", action="store_true", help="fewer rows, one minute or two")
    parser.add_argument("--seeds", type=int, default=3)
    asked = parser.parse_args()
    if unknown := set(asked.sections) - set(cases):
        parser.error(f"unknown section {min(unknown)!r}; there are {', '.join(cases)}")
    worst, where = 0.0, ""
    for section in asked.sections or cases:
        print(
            f"\n{section:<44} {'eps':>5} {'median':>11} {'worst seed':>11} {'constant':>11} "
            f"{'no privacy':>11} {'ratio':>8} {'s':>6}"
        )
        for case in cases[section](asked.quick):
            ratio = measure(case, asked.seeds)
            if ratio > worst:
                worst, where = ratio, f"{case.name}, epsilon {case.epsilon:g}"
    print(f"\nworst ratio to the constant predictor: {worst:.3f} ({where})")


if __name__ == "__main__":
    main()
