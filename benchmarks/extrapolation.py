"""Rows that do not follow the line, and columns without tails: what a limit of predictions costs.

    python -m benchmarks.extrapolation [--seeds 10] [--reach 8]

Ten tables: codes in .4 % of the rows; rows that are 5 to 25 times as long; bounded effects of
t(1.5) and of Cauchy columns; columns of zeros that act by being zero; a logarithmic effect of a
lognormal column; effects of lognormal columns that end at five widths, on a target far from zero;
and, following the line, normal, uniform and lognormal columns. Printed are the root mean squared
errors of least squares on new rows, over those of the constant ("bad" tables) or of the fit without
privacy ("good" ones): the geometric mean and the worst of the seeds. The last line counts the fits
of bad tables that are more than 5 % above the constant. ``--reach`` is how many tails predictions
reach where clipping neither gains nor loses. Noise is simulated.
"""

from __future__ import annotations

import argparse
import warnings

import numpy as np
from numpy.typing import NDArray

from privtail.default import acceptance
from privtail.linear_model import DPLinearRegression

Doubles = NDArray[np.float64]

TESTED, ABOVE = 10_000, 1.05
SLOPES = np.array([1.0, -2.0, 0.0, 0.5, 3.0])
CELLS = ((2_000, 1.0), (5_000, 1.0), (20_000, 1.0), (20_000, 0.3))


def codes(rng: np.random.Generator, n: int) -> tuple[Doubles, Doubles]:
    """Light columns, two with a code in .4 % of the rows."""
    X = rng.normal(size=(n, 5))
    y = X @ [1.0, 1.0, 0.3, 0.0, 0.0] + rng.normal(size=n)
    for j in range(2):
        X[rng.random(n) < 0.004, j] = -25.0 * (j + 1)
    return X, y


def long_rows(rng: np.random.Generator, n: int) -> tuple[Doubles, Doubles]:
    """One row in a hundred is 5 to 25 times as long, and its target does not follow."""
    X = rng.normal(size=(n, 6))
    y = X @ [1.0, 0.5, -0.5, 0.0, 0.0, 0.0] + rng.normal(size=n)
    long = rng.random(n) < 0.01
    X[long] *= rng.uniform(5, 25, (long.sum(), 1))
    return X, y


def bounded(rng: np.random.Generator, n: int) -> tuple[Doubles, Doubles]:
    """Bounded effects of t(1.5) columns."""
    X = rng.standard_t(1.5, (n, 5))
    return X, np.tanh(X @ [1.0, -1.0, 0.5, 0.0, 0.0]) + 0.5 * rng.normal(size=n)


def cauchy(rng: np.random.Generator, n: int) -> tuple[Doubles, Doubles]:
    """Bounded effects of Cauchy columns."""
    X = rng.standard_cauchy((n, 5))
    return X, np.tanh(X @ [0.5, -0.5, 0.5, 0.0, 0.0]) + 0.5 * rng.normal(size=n)


def zeros(rng: np.random.Generator, n: int) -> tuple[Doubles, Doubles]:
    """Columns that are mostly zero, and act by being zero."""
    there = rng.random((n, 6)) < 0.3
    X = np.where(there, rng.lognormal(1, 1.5, (n, 6)), 0.0)
    return X, there @ [1.0, -1.0, 0.5, 0.5, 0.0, 0.0] + 0.7 * rng.normal(size=n)


def logarithm(rng: np.random.Generator, n: int) -> tuple[Doubles, Doubles]:
    """A logarithmic effect of a lognormal column."""
    X = rng.normal(size=(n, 5))
    y = 2.0 * X[:, 0] + X[:, 1:].sum(axis=1) + rng.normal(size=n)
    X[:, 0] = np.exp(2.0 * X[:, 0])
    return X, y


def ending(rng: np.random.Generator, n: int) -> tuple[Doubles, Doubles]:
    """Effects of lognormal columns that end at five widths; the target lies far from zero."""
    X = rng.lognormal(0, 2, (n, 4))
    low, middle, high = np.quantile(X, [0.1, 0.5, 0.9], axis=0)
    effects = ((X - middle) / (high - low)).clip(-5, 5)
    return X, 300 + effects @ [1.0, 0.5, 0.5, 0.0] + 0.3 * rng.normal(size=n)


def normal(rng: np.random.Generator, n: int) -> tuple[Doubles, Doubles]:
    """Normal columns."""
    X = rng.normal(size=(n, 5))
    return X, X @ SLOPES + rng.normal(size=n)


def uniform(rng: np.random.Generator, n: int) -> tuple[Doubles, Doubles]:
    """Uniform columns."""
    X = rng.random((n, 5))
    return X, X @ SLOPES + 0.2 * rng.normal(size=n)


def lognormal(rng: np.random.Generator, n: int) -> tuple[Doubles, Doubles]:
    """Lognormal columns and noise."""
    X = rng.lognormal(0, 1, (n, 5))
    return X, X @ SLOPES + rng.lognormal(0, 1, n)


BAD = (codes, long_rows, bounded, cauchy, zeros, logarithm, ending)
GOOD = (normal, uniform, lognormal)


def main() -> None:
    """A line for every table and cell."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--reach", type=float, default=acceptance.NEUTRAL_REACH)
    asked = parser.parse_args()
    acceptance.NEUTRAL_REACH = asked.reach
    warnings.simplefilter("ignore")
    bad: list[float] = []
    for n, epsilon in CELLS:
        for table in (*BAD, *GOOD):
            ratios = []
            for seed in range(asked.seeds):
                X, y = table(np.random.default_rng(7919 * seed + n), n + TESTED)
                model = DPLinearRegression(epsilon=epsilon, noise="simulated", random_state=seed)
                error = model.fit(X[:n], y[:n]).predict(X[n:]) - y[n:]
                A = np.column_stack([X, np.ones(len(X))])
                best = A[n:] @ np.linalg.lstsq(A[:n], y[:n], rcond=None)[0] - y[n:]
                base = y[n:].std() if table in BAD else np.sqrt(np.mean(best**2))
                ratios.append(float(np.sqrt(np.mean(error**2)) / base))
            bad += ratios if table in BAD else []
            mean = np.exp(np.mean(np.log(ratios)))
            cell = f"n {n:>6}  epsilon {epsilon:<4g}{table.__name__:>10}"
            print(f"{cell}: {mean:.3f}, worst {max(ratios):.3f}", flush=True)
    print(f"bad tables: {sum(one > ABOVE for one in bad)} of {len(bad)} fits above {ABOVE}")


if __name__ == "__main__":
    main()
