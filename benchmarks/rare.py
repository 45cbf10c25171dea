"""Rare labels, coded and heavy-tailed features, counts and amounts that are mostly zero.

    python -m benchmarks.rare [labels] [coded] [counts] [claims] [few] [amounts] [many]
        [--rows 20000] [--seeds 3]

"labels": ones of 11, 5, 1 and .2 %; "coded": labels whose features hold codes or heavy tails, at
n epsilon of 2,000 and more; "counts": means of .02 to 1; "claims": amounts of which 50 to 99.9 %
are zero, beside features of no effect; "few": labels with 10, 5, 3 and 1 % ones at n epsilon of
2,000; "amounts": Tweedie regression with 30 to 1,000 claims at epsilon 1; "many": three and four
labels at n epsilon of 1,500 and 6,000, where "share" is how many, "signal" the part of the first,
and the first number is the accuracy. Every line has the private model's number and, in brackets,
that of the fit without privacy (scikit-learn, standardized features); losses are those of test
rows over the loss of the training mean ("above 1.05" is how often they exceed that), and "mean" is
the mean prediction over the mean of the target.
"""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Callable, Iterator
from itertools import product

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit
from sklearn.linear_model import LogisticRegression, PoissonRegressor
from sklearn.metrics import (
    log_loss,
    mean_poisson_deviance,
    mean_tweedie_deviance,
    roc_auc_score,
)
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from privtail.linear_model import (
    DPLinearRegression,
    DPLogisticRegression,
    DPPoissonRegressor,
    DPTweedieRegressor,
)

Doubles = NDArray[np.float64]

TESTED = 50_000
SHARES = (0.11, 0.05, 0.01, 0.002)
LAWS = ("gauss", "t", "lognormal", "indicators")
CODES = ("code", "far code", "t", "lognormal", "turned", "saturated")


def features(law: str, rng: np.random.Generator, rows: int) -> tuple[Doubles, Doubles]:
    """Six features, and what of them the target follows (bounded, of scale one)."""
    if law == "indicators":
        X = (rng.random((rows, 6)) < np.array([0.5, 0.3, 0.2, 0.1, 0.05, 0.02])).astype(float)
        return X, X / 0.35
    if law in ("t", "lognormal"):
        X = rng.standard_t(2.5, (rows, 6)) if law == "t" else rng.lognormal(0, 1, (rows, 6))
        middle, spread = np.median(X, axis=0), np.subtract(*np.quantile(X, [0.75, 0.25], axis=0))
        return X, np.tanh((X - middle) / spread)
    X = rng.normal(size=(rows, 6))
    seen = X.copy()
    if law in ("code", "far code"):
        X[rng.random(rows) < 0.05, 0] = -999.0 if law == "code" else 1e7
    elif law == "turned":
        X[rng.random(rows) < 0.03, 0] *= -100.0
    elif law == "saturated":
        X = np.sign(X) * np.abs(X) ** 3
        seen = np.sign(seen)
    return X, seen


def labels(
    law: str, share: float, signal: float, rows: int, seed: int
) -> tuple[Doubles, Doubles, float]:
    """Features, labels, and the share of ones in the law that they are drawn by."""
    rng = np.random.default_rng(seed)
    X, seen = features(law, rng, rows)
    score = signal * seen @ np.array([1.0, -0.6, 0.4, 0.0, 0.0, 0.3])
    low, high = -40.0, 40.0
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if expit(score + middle).mean() < share else (low, middle)
    return X, (rng.random(rows) < expit(score + low)).astype(float), share


def of_labels(law: str, share: float, signal: float, n: int, epsilon: float, seed: int) -> Doubles:
    """AUC, log loss and mean probability; the same of scikit-learn."""
    X, y, _ = labels(law, share, signal, n + TESTED, seed)
    model = DPLogisticRegression(
        epsilon=epsilon, delta=n**-1.1, classes=[0.0, 1.0], noise="simulated", random_state=seed
    )
    open_ = make_pipeline(StandardScaler(), LogisticRegression())
    found = []
    for fitted in (model.fit(X[:n], y[:n]), open_.fit(X[:n], y[:n])):
        p = fitted.predict_proba(X[n:])[:, 1]
        constant = log_loss(y[n:], np.full(TESTED, y[:n].mean()))
        found += [
            roc_auc_score(y[n:], p), log_loss(y[n:], p) / constant,
            fitted.predict_proba(X[:n])[:, 1].mean() / y[:n].mean(),
        ]  # fmt: skip
    return np.array(found)


def of_counts(law: str, mean: float, signal: float, n: int, epsilon: float, seed: int) -> Doubles:
    """Deviance, part of fits with slopes, and mean; the same of scikit-learn."""
    rng = np.random.default_rng(seed)
    X, seen = features(law, rng, n + TESTED)
    rate = np.exp(signal * seen @ np.array([1.0, -0.6, 0.4, 0.0, 0.0, 0.3]))
    y = rng.poisson(rate * mean / rate.mean()).astype(float)
    model = DPPoissonRegressor(epsilon=epsilon, delta=n**-1.1, noise="simulated", random_state=seed)
    open_ = make_pipeline(StandardScaler(), PoissonRegressor(alpha=0, max_iter=1000))
    found = []
    for fitted in (model.fit(X[:n], y[:n]), open_.fit(X[:n], y[:n])):
        p = fitted.predict(X[n:])
        constant = mean_poisson_deviance(y[n:], np.full(TESTED, y[:n].mean()))
        coef = fitted.coef_ if fitted is model else fitted[-1].coef_
        found += [
            float(np.any(coef)), mean_poisson_deviance(y[n:], np.maximum(p, 1e-9)) / constant,
            fitted.predict(X[:n]).mean() / y[:n].mean(),
        ]  # fmt: skip
    return np.array(found)


def of_claims(law: str, zeros: float, _: float, n: int, epsilon: float, seed: int) -> Doubles:
    """Squared error, part of fits with slopes, and mean; the same of the mean."""
    rng = np.random.default_rng(seed)
    rows = n + TESTED
    X, _ = features("gauss", rng, rows)
    amounts = rng.lognormal(7, 1.5, rows) if law == "lognormal" else 1_000 * rng.pareto(1.5, rows)
    y = np.where(rng.random(rows) < zeros, 0.0, amounts)
    model = DPLinearRegression(
        epsilon=epsilon, delta=n**-1.1, noise="simulated", random_state=seed
    ).fit(X[:n], y[:n])
    p = model.predict(X[n:])
    lost = np.mean((p - y[n:]) ** 2) / np.mean((y[:n].mean() - y[n:]) ** 2)
    return np.array([float(np.any(model.coef_)), lost, p.mean() / y[:n].mean(), 0.0, 1.0, 1.0])


def of_amounts(
    law: str, claims: float, signal: float, n: int, epsilon: float, seed: int
) -> Doubles:
    """Part of fits with slopes, Tweedie deviance, and mean; the same of the mean."""
    rng = np.random.default_rng(seed)
    X, seen = features(law, rng, n + TESTED)
    rate = np.exp(signal * seen @ np.array([1.0, -0.6, 0.4, 0.0, 0.0, 0.3]))
    happens = rng.random(n + TESTED) < claims / n * rate / rate.mean()
    y = np.where(happens, rng.gamma(1.5, 700.0, n + TESTED), 0.0)
    model = DPTweedieRegressor(
        power=1.5, epsilon=epsilon, delta=n**-1.1, noise="simulated", random_state=seed
    ).fit(X[:n], y[:n])
    p, constant = model.predict(X[n:]), np.full(TESTED, y[:n].mean())
    lost = [mean_tweedie_deviance(y[n:], one, power=1.5) for one in (p, constant)]
    mean = p.mean() / y[:n].mean()
    return np.array([float(np.any(model.coef_)), lost[0] / lost[1], mean, 0.0, 1.0, 1.0])


def of_many(law: str, labels: float, most: float, n: int, epsilon: float, seed: int) -> Doubles:
    """Accuracy, log loss, and mean probability of the first label; the same of scikit-learn."""
    rng, K, rows = np.random.default_rng(seed), int(labels), n + TESTED
    X = rng.standard_t(2, (rows, 8)) if law == "t" else rng.normal(size=(rows, 8))
    if law == "zeros":
        X = (rng.random((rows, 8)) < 0.3) * rng.lognormal(1, 1.5, (rows, 8))
    margins = 0.7 * np.tanh(X) @ rng.normal(size=(8, K))
    margins += np.log([most, *np.full(K - 1, (1 - most) / (K - 1))])
    y = (margins + rng.gumbel(size=margins.shape)).argmax(axis=1)
    if law == "code":
        X[rng.random(X.shape) < 0.02] = -999.0
    model = DPLogisticRegression(
        epsilon=epsilon, classes=list(range(K)), noise="simulated", random_state=seed
    )
    open_ = make_pipeline(StandardScaler(), LogisticRegression())
    shares, found = np.bincount(y[:n]) / n, []
    for fitted in (model.fit(X[:n], y[:n]), open_.fit(X[:n], y[:n])):
        p = fitted.predict_proba(X[n:])
        constant = log_loss(y[n:], np.tile(shares, (TESTED, 1)))
        found += [np.mean(p.argmax(1) == y[n:]), log_loss(y[n:], p) / constant]
        found += [fitted.predict_proba(X[:n])[:, 0].mean() / shares[0]]
    return np.array(found)


Case = tuple[str, Callable[..., Doubles], str, float, float, float]


def cases(rows: int) -> Iterator[Case]:
    """Name of the kind, what measures it, law, share, signal, epsilon."""
    for law, share, signal in product(LAWS, SHARES, (0.3, 0.8)):
        yield "labels", of_labels, law, share, signal, max(1.0, 2_000 / rows / share)
    for law, share, epsilon in product(CODES, (0.5, 0.1), (2_000 / rows, 8_000 / rows, 8.0)):
        yield "coded", of_labels, law, share, 0.8, epsilon
    for law, mean, epsilon in product(LAWS, (0.02, 0.15, 1.0), (1.0, 4.0)):
        yield "counts", of_counts, law, mean, 0.3, epsilon
    for law, zeros, epsilon in product(
        ("lognormal", "pareto"), (0.5, 0.7, 0.9, 0.99, 0.999), (0.5, 1.0, 4.0)
    ):
        yield "claims", of_claims, law, zeros, 0.0, epsilon
    for law, share, signal in product(("gauss", "t"), (0.1, 0.05, 0.03, 0.01), (0.0, 0.8)):
        yield "few", of_labels, law, share, signal, 2_000 / rows
    for law, labels, most, size in product(
        ("gauss", "t", "code", "zeros"), (3, 4), (0.5, 0.9), (1_500, 6_000)
    ):
        yield "many", of_many, law, labels, most, size / rows
    for claims in (30, 50, 100, 200, 400, 1_000):
        yield "amounts", of_amounts, "gauss", claims, 0.5, 1.0


def main() -> None:
    """Print a line a case: medians over the seeds, and the worst of them."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("kinds", nargs="*", default=["labels", "coded", "counts", "claims"])
    parser.add_argument("--rows", type=int, default=20_000)
    parser.add_argument("--seeds", type=int, default=3)
    asked = parser.parse_args()
    warnings.simplefilter("ignore")
    print(f"kind law share signal epsilon, n = {asked.rows:,}: auc or part with slopes, loss, mean")
    for kind, measure, law, share, signal, epsilon in cases(asked.rows):
        if kind not in asked.kinds:
            continue
        every = np.array(
            [measure(law, share, signal, asked.rows, epsilon, s) for s in range(asked.seeds)]
        )
        a, b, c, d, e, f = np.median(every, axis=0)
        print(
            f"{kind:7} {law:10} {share:<6g} {signal:<4g} {epsilon:<6g} {a:.3f} ({d:.3f}) "
            f"{b:.3f} ({e:.3f}) {c:.3f} ({f:.3f})  worst loss {every[:, 1].max():.3f}, "
            f"above 1.05 {np.mean(every[:, 1] > 1.05):.3f}, "
            f"mean {every[:, 2].min():.3f} to {every[:, 2].max():.3f}",
            flush=True,
        )  # fmt: skip


if __name__ == "__main__":
    main()
