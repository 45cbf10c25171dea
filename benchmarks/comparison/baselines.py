"""Methods written by hand in NumPy, and fits without privacy.

The private ones draw floating-point noise: they show utility, and are no mechanisms. All are
calibrated exactly for replace-one neighbours.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
from scipy.optimize import brentq
from scipy.special import log_ndtr, ndtr, softmax

from benchmarks.comparison.problems import Doubles, Problem, Sample
from privtail.calibration import calibrate
from privtail.trusted.budget import Budget
from privtail.trusted.events import Event, Plan, Round
from privtail.trusted.sampling import PoissonBatches


@dataclass(frozen=True)
class Line:
    """A linear model, w of shape (d + 1, K): the last row is the intercept."""

    w: Doubles

    def predict(self, X: Doubles, classes: int) -> Doubles:
        """Numbers, or labels 0 .. classes - 1."""
        with np.errstate(all="ignore"):
            m = X @ self.w[:-1] + self.w[-1]
        if not classes:
            return np.asarray(m[:, 0])
        m = np.nan_to_num(m)
        return np.asarray((m[:, 0] > 0) if m.shape[1] == 1 else m.argmax(axis=1), dtype=float)

    @property
    def slopes(self) -> Doubles:
        """Of the first output."""
        return np.asarray(self.w[:-1, 0])


@cache
def gaussian_mu(epsilon: float, delta: float) -> float:
    """The mu of Gaussian differential privacy that is (epsilon, delta), exactly."""

    def spent(mu: float) -> float:
        tail = math.exp(epsilon + log_ndtr(-epsilon / mu - mu / 2))
        return float(ndtr(-epsilon / mu + mu / 2) - tail - delta)

    return float(brentq(spent, 1e-6, 100))


def _residuals(m: Doubles, y: Doubles, classes: int) -> Doubles:
    """Derivatives of half squares, or of the logistic loss, by the margins (n, K)."""
    if not classes:
        return m - y[:, None]
    if classes == 2:
        return np.asarray(sigmoid(m) - y[:, None])
    return np.asarray(softmax(m, axis=1) - np.eye(classes)[y.astype(int)])


def sigmoid(m: Doubles) -> Doubles:
    """1 / (1 + exp(-m)) without overflow."""
    return np.asarray(0.5 * (1 + np.tanh(m / 2)))


def _descended(
    X: Doubles, y: Doubles, classes: int, clip: float, step: float, std: float,
    batches: list[Any], size: float, rng: np.random.Generator,
) -> Line:  # fmt: skip
    """Rows' gradients clipped to norm ``clip``; noise ``std`` per step in units of ``clip``."""
    Z = np.column_stack([X, np.ones(len(X))])
    norms = np.linalg.norm(Z, axis=1)
    w = np.zeros((Z.shape[1], classes if classes > 2 else 1))
    for batch in batches:
        rows = Z[batch]
        with np.errstate(all="ignore"):
            r = _residuals(rows @ w, y[batch], classes)
            length = norms[batch] * np.linalg.norm(r, axis=1)
            r = np.nan_to_num(r * np.minimum(1, clip / np.maximum(length, 1e-300))[:, None])
        g = (rows.T @ r + clip * std * rng.standard_normal(w.shape)) / size
        w = w - step * g
    return Line(w)


def clipped_descent(
    problem: Problem, sample: Sample, epsilon: float, seed: int, *,
    clip: float = 1.0, step: float = 1.0, steps: int = 100,
) -> Line:  # fmt: skip
    """Full-batch gradient descent on clipped rows."""
    std = 2 * math.sqrt(steps) / gaussian_mu(epsilon, problem.delta)
    return _descended(
        sample.X, sample.y, problem.classes, clip, step, std, [slice(None)] * steps,
        len(sample.y), np.random.default_rng(seed),
    )  # fmt: skip


RATE, SGD_STEPS = 0.01, 1_000
FINE = 2.0**20


@cache
def sgd_noise(epsilon: float, delta: float, steps: int = SGD_STEPS, rate: float = RATE) -> float:
    """Noise of a clipped sum over Poisson batches, in clipping norms, under replace-one."""

    def plan(multiplier: float) -> Plan:
        event = Event(
            law="gaussian", scale=multiplier * FINE, radius=FINE, diameter=2 * FINE, coordinates=1,
            unit=1 / FINE, question="",
        )  # fmt: skip
        return (Round(events=(event,), times=steps, sampling=PoissonBatches(rate)),)

    return calibrate(plan, Budget(epsilon, delta))


def clipped_sgd(problem: Problem, sample: Sample, epsilon: float, seed: int) -> Line:
    """DP-SGD: Poisson batches of a hundredth, a thousand steps, clipped to 1, step 1."""
    rng, n = np.random.default_rng(seed), len(sample.y)
    batches = [np.flatnonzero(rng.random(n) < RATE) for _ in range(SGD_STEPS)]
    return _descended(
        sample.X, sample.y, problem.classes, 1.0, 1.0, sgd_noise(epsilon, problem.delta), batches,
        RATE * n, rng,
    )  # fmt: skip


@dataclass(frozen=True)
class Bounds:
    """Bounds of features, of the norm of a row after division by them, and of the target."""

    features: Doubles
    row: float
    target: float


GUESS = 100.0, 500.0
"""Round numbers that somebody who has not looked at the records may give for x and y."""


def guessed(problem: Problem) -> Bounds:
    """The same for all problems."""
    return Bounds(np.full(problem.d, GUESS[0]), math.sqrt(problem.d), GUESS[1])


def oracle(sample: Sample, share: float) -> Bounds:
    """Bounds that hold for this share of the records; they read the records: not private."""
    features = np.quantile(np.abs(sample.X), share, axis=0)
    features = np.where(features > 0, features, np.maximum(np.abs(sample.X).max(axis=0), 1e-300))
    row = float(np.quantile(np.linalg.norm(sample.X / features, axis=1), share))
    return Bounds(features, row, float(np.quantile(np.abs(sample.y), share)))


def adassp(problem: Problem, sample: Sample, epsilon: float, seed: int, bounds: Bounds) -> Line:
    """AdaSSP (Wang 2018) with two releases for its three: joint Gaussian noise, half of mu^2 each.

    The least eigenvalue is that of the noisy second moments, whose noise is symmetric, as their
    sensitivity allows: half the variance off the diagonal.
    """
    rng, mu = np.random.default_rng(seed), gaussian_mu(epsilon, problem.delta) / math.sqrt(2)
    Z = np.column_stack([sample.X / bounds.features, np.ones(len(sample.y))])
    reach = math.hypot(bounds.row, 1.0)
    Z *= np.minimum(1, reach / np.maximum(np.linalg.norm(Z, axis=1), 1e-300))[:, None]
    y = np.clip(sample.y, -bounds.target, bounds.target)
    p, std = Z.shape[1], math.sqrt(2) * reach**2 / mu
    noise = rng.standard_normal((p, p))
    second = Z.T @ Z + std * (noise + noise.T) / 2
    first = Z.T @ y + 2 * reach * bounds.target / mu * rng.standard_normal(p)
    smallest = max(float(np.linalg.eigvalsh(second)[0]), 0.0)
    ridge = max(0.0, std * math.sqrt(p * math.log(2 * p**2 / 0.05)) - smallest)
    w = np.linalg.lstsq(second + ridge * np.eye(p), first, rcond=None)[0]
    return Line(np.append(w[:-1] / bounds.features, w[-1])[:, None])


def constant(problem: Problem, sample: Sample) -> Line:
    """The mean, or the most frequent label."""
    w = np.zeros((problem.d + 1, problem.classes if problem.classes > 2 else 1))
    if not problem.classes:
        w[-1] = sample.y.mean()
    elif problem.classes == 2:
        w[-1] = np.mean(sample.y) - 0.5
    else:
        w[-1] = np.bincount(sample.y.astype(int), minlength=problem.classes)
    return Line(w)


def least_squares(problem: Problem, sample: Sample) -> Line:
    """scikit-learn's, on standardized features: it stops at units of 1e-6 and 1e6 together."""
    from sklearn.linear_model import LinearRegression

    return _standardized(LinearRegression(), sample)


def huber(problem: Problem, sample: Sample) -> Line:
    """scikit-learn's, on standardized features."""
    from sklearn.linear_model import HuberRegressor

    return _standardized(HuberRegressor(max_iter=300), sample)


def logistic(problem: Problem, sample: Sample) -> Line:
    """scikit-learn's, on standardized features."""
    from sklearn.linear_model import LogisticRegression

    return _standardized(LogisticRegression(max_iter=300), sample)


def _standardized(model: Any, sample: Sample) -> Line:
    centres, scales = sample.X.mean(axis=0), sample.X.std(axis=0)
    scales[scales == 0] = 1
    line = of_sklearn(model.fit((sample.X - centres) / scales, sample.y))
    slopes = line.w[:-1] / scales[:, None]
    return Line(np.vstack([slopes, line.w[-1] - centres @ slopes]))


def of_sklearn(model: Any) -> Line:
    """The linear function of a fitted model."""
    slopes = np.atleast_2d(model.coef_)
    return Line(np.vstack([slopes.T, np.ravel(model.intercept_)]))
