"""Problems drawn at random: how far from the constant, and how near to the fit without privacy.

    python -m benchmarks.drawn [--problems 200] [--first 0] [--rows 20000] [--all] [--task TASK]

Problem number i is drawn from ``default_rng([2026, i])``: the task (squares, huber, lad, labels of
2 or 3 classes, counts), n and d (log-uniform), a law of the features (one for all, or one for
each), powers of ten as units of every column and of the target, shifts, a law of the noise, the
part that is signal. Every default is fitted at four budgets, replace-one, delta = 1e-6.

``ratio`` is our error on fresh records over that of the best constant of the training records
(root mean squared error; mean absolute error for huber and lad; share of wrong labels; deviance of
counts). ``closed`` is the part of the gap between that constant and the fit without privacy that is
closed, where there is one. Noise is simulated: the law of exact noise, seeded and fast.
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import xlogy
from sklearn.linear_model import LinearRegression, LogisticRegression, PoissonRegressor
from sklearn.preprocessing import StandardScaler

from privtail.linear_model import (
    DPHuberRegressor,
    DPLADRegressor,
    DPLinearRegression,
    DPLogisticRegression,
    DPPoissonRegressor,
)

Doubles = NDArray[np.float64]
Rng = np.random.Generator

EPSILONS = (0.1, 0.5, 1.0, 3.0)
TEST = 20_000
LEVELS = (5, 25, 50, 75, 95, 100)
GAP = 0.98
"""There is a gap where the fit without privacy has at most this part of the constant's error."""

FEATURES: dict[str, Callable[[Rng, int], Doubles]] = {
    "normal": lambda rng, n: rng.normal(size=n),
    "t(2.5)": lambda rng, n: rng.standard_t(2.5, n),
    "t(3)": lambda rng, n: rng.standard_t(3, n),
    "lognormal": lambda rng, n: rng.lognormal(0, 1.5, n),
    "Pareto(1.5)": lambda rng, n: rng.pareto(1.5, n),
    "uniform": lambda rng, n: rng.uniform(0, 1, n),
    "rare": lambda rng, n: (rng.random(n) < 0.02).astype(float),
    "zeros": lambda rng, n: np.where(rng.random(n) < 0.8, 0.0, rng.lognormal(0, 1, n)),
    "contaminated": lambda rng, n: rng.normal(size=n) * np.where(rng.random(n) < 0.05, 100, 1),
    "constant": lambda rng, n: np.full(n, 3.0),
}
NOISE: dict[str, Callable[[Rng, int], Doubles]] = {
    "normal": lambda rng, n: rng.normal(size=n),
    "t(2.5)": lambda rng, n: rng.standard_t(2.5, n),
    "lognormal": lambda rng, n: rng.lognormal(0, 1.5, n),
    "Pareto(1.5)": lambda rng, n: rng.pareto(1.5, n),
    "uniform": lambda rng, n: rng.uniform(-1, 1, n),
    "contaminated": lambda rng, n: rng.normal(size=n) * np.where(rng.random(n) < 0.05, 100, 1),
}
TASKS = ("squares", "squares", "huber", "lad", "labels 2", "labels 3", "counts")


@dataclass
class Drawn:
    """A problem: training and test records, and in words how it was drawn."""

    task: str
    n: int
    X: Doubles
    y: Any
    X_test: Doubles
    y_test: Any
    words: dict[str, str] = field(default_factory=dict)

    def __str__(self) -> str:
        words = ", ".join(f"{name} {word}" for name, word in self.words.items())
        return f"{self.task}, n={self.n}, d={self.X.shape[1]}, {words}"

    def error(self, prediction: Any) -> float:
        """Of predictions of the test records."""
        if self.task == "counts":
            mean = np.maximum(prediction, 1e-300)
            terms = xlogy(self.y_test, self.y_test) - xlogy(self.y_test, mean)
            return float(2 * np.mean(terms - self.y_test + mean))
        if self.task.startswith("labels"):
            return float(np.mean(prediction != self.y_test))
        missed = prediction - self.y_test
        return float(
            np.sqrt(np.mean(missed**2)) if self.task == "squares" else np.abs(missed).mean()
        )

    def constant(self) -> float:
        """Error of the best constant of the training records."""
        if self.task.startswith("labels"):
            values, counts = np.unique(self.y, return_counts=True)
            return self.error(values[counts.argmax()])
        middle = np.mean if self.task in ("squares", "counts") else np.median
        return self.error(np.full(len(self.y_test), middle(self.y)))

    def without_privacy(self) -> float:
        """Error of the fit of scikit-learn (huber, lad: reweighted least squares)."""
        scaler = StandardScaler().fit(self.X)
        X, X_test = scaler.transform(self.X), scaler.transform(self.X_test)
        if self.task in ("huber", "lad"):
            w, b = _reweighted(X, self.y, 1.35 if self.task == "huber" else 1e-6)
            return self.error(X_test @ w + b)
        model: Any = LinearRegression()
        if self.task == "counts":
            model = PoissonRegressor(alpha=1e-3)
        elif self.task.startswith("labels"):
            if len(np.unique(self.y)) == 1:
                return self.constant()
            model = LogisticRegression(max_iter=50)
        with np.errstate(all="ignore"):
            return self.error(model.fit(X, self.y).predict(X_test))

    def ours(self, epsilon: float, seed: int) -> float:
        """Error of the default."""
        options: dict[str, Any] = {
            "epsilon": epsilon, "delta": 1e-6, "noise": "simulated", "random_state": seed
        }  # fmt: skip
        model: Any
        if self.task.startswith("labels"):
            model = DPLogisticRegression(classes=list(range(int(self.task[-1]))), **options)
        elif self.task == "huber":
            model = DPHuberRegressor(alpha=0.0, **options)
        elif self.task == "counts":
            model = DPPoissonRegressor(alpha=0.0, **options)
        else:
            kinds = {"squares": DPLinearRegression, "lad": DPLADRegressor}
            model = kinds[self.task](**options)
        return self.error(model.fit(self.X, self.y).predict(self.X_test))


def draw(number: int, most: int = 20_000, task: str | None = None) -> Drawn:
    """Problem ``number`` with at most so many training records."""
    rng = np.random.default_rng([2026, number])
    task = task or str(rng.choice(TASKS))
    n, d = (round(_log_uniform(rng, low, high)) for low, high in ((100, most), (1, 200)))
    words: dict[str, str] = {}
    Z = _features(rng, n + TEST, d, words)
    slopes = rng.normal(size=d) * (rng.random(d) < rng.choice([1.0, 0.3, 0.1]))
    if not slopes.any():
        slopes[0] = 1.0
    ratio = _log_uniform(rng, 0.05, 20)
    words["signal/noise"] = f"{ratio:.2g}"
    make = _labels if task.startswith("labels") else _counts if task == "counts" else _numbers
    y = make(rng, task, Z, slopes, ratio, words)
    X = _in_units(rng, Z, words)
    return Drawn(task, n, X[:n], y[:n], X[n:], y[n:], words)


def _log_uniform(rng: Rng, low: float, high: float) -> float:
    return float(np.exp(rng.uniform(np.log(low), np.log(high))))


def _spread(v: Doubles) -> float:
    low, high = np.quantile(v, [0.05, 0.95])
    spread = float(high - low) / 3.29 or float(np.std(v))
    return spread if spread > 1e-9 * float(np.abs(v).max()) else 1.0


def _features(rng: Rng, n: int, d: int, words: dict[str, str]) -> Doubles:
    """Columns of one law, or each of its own; correlated, or the last half copies of the first."""
    law = str(rng.choice([*(name for name in FEATURES if name != "constant"), "mixed", "mixed"]))
    names = [str(rng.choice(list(FEATURES))) if law == "mixed" else law for _ in range(d)]
    Z = np.column_stack([FEATURES[name](rng, n) for name in names])
    words["features"] = law
    kind = str(rng.choice(["independent", "independent", "correlated", "copies"]))
    if kind == "correlated":
        Z = Z + 2 * Z[:, :1]
    elif kind == "copies" and d > 1:
        Z[:, d // 2 :] = Z[:, : d - d // 2]
    if kind != "independent":
        words["features"] += f" {kind}"
    return Z


def _in_units(rng: Rng, Z: Doubles, words: dict[str, str]) -> Doubles:
    """Shifted by up to 1e3 spreads, in units of powers of ten."""
    X, d = Z.copy(), Z.shape[1]
    if rng.random() < 0.3:
        shifts = 10 ** rng.uniform(0, 3, d) * rng.choice([-1, 1], d)
        X += shifts * [_spread(column) for column in Z.T]
        words["features shifted"] = "up to 1e3"
    if rng.random() < 0.5:
        X *= 10.0 ** rng.uniform(-6, 6, d)
        words["units"] = "1e-6 to 1e6"
    return X


def _numbers(
    rng: Rng, task: str, Z: Doubles, slopes: Doubles, ratio: float, words: dict[str, str]
) -> Doubles:
    law = str(rng.choice(list(NOISE)))
    signal, noise = Z @ slopes, NOISE[law](rng, len(Z))
    y = ratio * signal / _spread(signal) + noise / _spread(noise)
    words["noise"] = law
    if rng.random() < 0.3:
        far = _log_uniform(rng, 1, 1e6)
        y = y + far * _spread(y)
        words["target +"] = f"{far:.2g}"
    if rng.random() < 0.5:
        unit = 10.0 ** rng.uniform(-6, 6)
        y = unit * y
        words["target x"] = f"{unit:.2g}"
    return y


def _labels(
    rng: Rng, task: str, Z: Doubles, slopes: Doubles, ratio: float, words: dict[str, str]
) -> NDArray[np.int64]:
    odds = _log_uniform(rng, 1, 100)
    words["imbalance"] = f"1:{odds:.2g}"
    signal = Z @ slopes
    scores = ratio * (signal - np.median(signal)) / _spread(signal) + rng.logistic(size=len(Z))
    if task == "labels 2":
        return np.asarray(scores > np.quantile(scores, odds / (1 + odds)), dtype=np.int64)
    rare = 1 / (2 + odds)
    low, high = np.quantile(scores, [rare, 1 - rare])
    return np.asarray((scores > low).astype(int) + (scores > high), dtype=np.int64)


def _counts(
    rng: Rng, task: str, Z: Doubles, slopes: Doubles, ratio: float, words: dict[str, str]
) -> Doubles:
    level, signal = rng.uniform(-2, 4), Z @ slopes
    part = ratio / (1 + ratio)
    margins = np.clip(part * (signal - np.median(signal)) / _spread(signal), -2, 2)
    words["level"] = f"{level:.1f}"
    return rng.poisson(np.exp(margins + level)).astype(float)


def _reweighted(X: Doubles, y: Doubles, threshold: float) -> tuple[Doubles, float]:
    """Huber's regression, the threshold in spreads of the residuals, by reweighting."""
    A = np.hstack([X, np.ones((len(X), 1))])
    w = np.zeros(A.shape[1])
    w[-1] = np.median(y)
    for _ in range(50):
        r = np.abs(y - A @ w)
        edge = threshold * max(float(np.median(r)) / 0.6745, 1e-12 * float(np.abs(y).max()))
        root = np.sqrt(np.minimum(1.0, edge / np.maximum(r, 1e-300)))[:, None]
        w = np.linalg.lstsq(root * A, root[:, 0] * y, rcond=1e-10)[0]
    return w[:-1], float(w[-1])


@dataclass(frozen=True)
class Row:
    """What came of one problem at one budget."""

    number: int
    epsilon: float
    n: int
    ratio: float
    closed: float
    words: str


def measure(numbers: range, most: int, task: str | None, show: bool) -> list[Row]:
    """Every problem at every budget."""
    rows = []
    for number in numbers:
        problem = draw(number, most, task)
        constant, reference = problem.constant(), problem.without_privacy()
        for epsilon in EPSILONS:
            error = problem.ours(epsilon, number)
            gap = constant - reference
            closed = (constant - error) / gap if reference <= GAP * constant else np.nan
            row = Row(number, epsilon, problem.n, error / constant, closed, str(problem))
            rows.append(row)
            if show:
                print(
                    f"{number:>5} {epsilon:>4g} {row.ratio:>9.4g} {closed:>7.3f}  {problem}",
                    flush=True,
                )
    return rows


def report(rows: list[Row]) -> None:
    """Quantiles by budget, by n epsilon, and the worst ten."""
    head = "".join(f"{level:>9} %" for level in LEVELS)
    for title, value in (("ratio to the constant", "ratio"), ("part of the gap closed", "closed")):
        print(f"\n{title:<26}{'fits':>6}{head}{'> 1.05':>9}")
        groups = [(f"epsilon = {e:g}", [r for r in rows if r.epsilon == e]) for e in EPSILONS]
        for low, high in ((0, 30), (30, 100), (100, 300), (300, 1000), (1000, np.inf)):
            some = [r for r in rows if low <= r.n * r.epsilon < high]
            groups.append((f"{low:g} <= n epsilon < {high:g}", some))
        for name, group in groups:
            values = np.array([getattr(row, value) for row in group])
            values = values[np.isfinite(values) | (value == "ratio")]
            if len(values):
                cells = "".join(f"{q:>11.4g}" for q in np.quantile(values, np.array(LEVELS) / 100))
                print(f"{name:<26}{len(values):>6}{cells}{np.sum(values > 1.05):>9}")
    print("\nworst ten")
    for row in sorted(rows, key=lambda row: -row.ratio)[:10]:
        print(f"{row.ratio:>10.4g}  epsilon={row.epsilon:g}, problem {row.number}: {row.words}")


def main() -> None:
    """Draw, fit and report."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--problems", type=int, default=200)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--rows", type=int, default=20_000, help="largest n (published: 100000)")
    parser.add_argument("--task", choices=sorted(set(TASKS)), help="one task for all")
    parser.add_argument("--all", action="store_true", help="print every fit")
    asked = parser.parse_args()
    begun = time.perf_counter()
    with warnings.catch_warnings(), np.errstate(over="ignore", invalid="ignore"):
        warnings.simplefilter("ignore")
        numbers = range(asked.first, asked.first + asked.problems)
        rows = measure(numbers, asked.rows, asked.task, asked.all)
    report(rows)
    print(f"\n{len(rows)} fits in {time.perf_counter() - begun:.0f} s")


if __name__ == "__main__":
    main()
