"""Coverage and width of the intervals of `privtail.evaluate`.

    python -m benchmarks.evaluations [SEEDS]

Models without privacy, of counts with a large budget, are evaluated; the truth is what scikit-learn
says of these same rows, and of labels what it says of ten times as many. Printed are the part of
the intervals of 95 % that hold it, and the median width over the value. Noise is simulated.
"""

from __future__ import annotations

import sys
import warnings
from collections import defaultdict
from functools import cache
from typing import Any

import numpy as np
import pandas as pd
from sklearn import metrics
from sklearn.linear_model import LinearRegression, LogisticRegression

from privtail import evaluate
from privtail.data.catalogue import located
from privtail.errors import AccuracyWarning
from privtail.linear_model import DPPoissonRegressor

LAWS = ("normal", "t(3)", "lognormal", "rare", "shares")
ROWS, BUDGETS = (2_000, 20_000), (0.5, 2.0)
OF_NUMBERS = ("mae", "rmse", "r2", "constant_rmse")
OF_COUNTS = ("mae", "deviance", "constant_deviance", "d2")
OF_LABELS = ("accuracy", "log_loss", "auc", "precision", "recall")


def of_numbers(law: str, n: int, epsilon: float, seed: int) -> tuple[Any, dict[str, float]]:
    """An evaluation of least squares, and the truth."""
    chance = np.random.default_rng(seed)
    if law == "shares":
        table = _table("news-14").sample(n, random_state=seed)
        X, y = table.drop(columns="shares").to_numpy(float), table["shares"].to_numpy(float)
    else:
        X = chance.normal(size=(n, 3))
        noise = {
            "normal": chance.normal(size=n),
            "t(3)": chance.standard_t(3, n),
            "lognormal": chance.lognormal(0, 1, n),
            "rare": np.where(chance.random(n) < 0.01, 50 * (1 + chance.pareto(1.6, n)), 0.0),
        }[law]
        y = 10 + X @ [1.0, -2.0, 0.5] + noise
    model = LinearRegression().fit(X[:500], y[:500])
    found = evaluate(
        model, X, y, epsilon=epsilon, trusted_rowwise=True, noise="simulated", random_state=seed
    )
    said = model.predict(X)
    truth = {
        "mae": metrics.mean_absolute_error(y, said),
        "rmse": metrics.root_mean_squared_error(y, said),
        "r2": metrics.r2_score(y, said),
        "constant_rmse": float(y.std()),
    }
    return found, truth


@cache
def _counts() -> tuple[DPPoissonRegressor, pd.DataFrame, pd.Series]:
    """Poisson regression of comments on blogs on twelve columns, and other rows."""
    table = _table("blogfeedback")
    X, y = table.iloc[:, 50:62].astype(float), table["target"].astype(float)
    model = DPPoissonRegressor(epsilon=10, noise="simulated", random_state=0)
    return model.fit(X[:20_000], y[:20_000]), X[20_000:], y[20_000:]


def of_counts(law: str, n: int, epsilon: float, seed: int) -> tuple[Any, dict[str, float]]:
    """An evaluation of counts with the tail of ``law``, and the truth."""
    model, X, y = _counts()
    X, y = X.sample(n, random_state=seed), y.sample(n, random_state=seed)
    found = evaluate(model, X, y, epsilon=epsilon, noise="simulated", random_state=seed)
    said = model.predict(X)
    least = metrics.mean_poisson_deviance(y, np.full(n, y.mean()))
    deviance = metrics.mean_poisson_deviance(y, said)
    truth = {
        "mae": metrics.mean_absolute_error(y, said),
        "deviance": deviance,
        "constant_deviance": least,
        "d2": 1 - deviance / least,
    }
    return found, truth


@cache
def _table(name: str) -> pd.DataFrame:
    """Real rows: shares of news, and comments on blogs, have tails of index 1.6."""
    path = located(name)
    if path is None:
        raise SystemExit(f"{name} is not there: name the folder of real data in PRIVTAIL_DATA.")
    return pd.read_parquet(path)


def of_labels(share: str, n: int, epsilon: float, seed: int) -> tuple[Any, dict[str, float]]:
    """An evaluation of logistic regression, and the truth."""
    chance = np.random.default_rng(seed)
    X = chance.normal(size=(11 * n, 3))
    odds = X @ [1.0, -2.0, 0.5] - {"even": 0.0, "rare": 4.0}[share]
    y = (chance.random(len(X)) < 1 / (1 + np.exp(-odds))).astype(int)
    model = LogisticRegression().fit(X[:1000], y[:1000])
    found = evaluate(
        model, X[-n:], y[-n:], epsilon=epsilon, trusted_rowwise=True, noise="simulated",
        random_state=seed,
    )  # fmt: skip
    chances, said = model.predict_proba(X)[:, 1], model.predict(X)
    truth = {
        "accuracy": metrics.accuracy_score(y, said),
        "log_loss": metrics.log_loss(y, np.clip(chances, 1e-3, 1 - 1e-3)),
        "auc": metrics.roc_auc_score(y, chances),
        "precision": metrics.precision_score(y, said),
        "recall": metrics.recall_score(y, said),
    }
    return found, truth


def main(seeds: int) -> None:
    """Print the table."""
    warnings.simplefilter("ignore", AccuracyWarning)
    cells = [(of_numbers, law, OF_NUMBERS) for law in LAWS]
    cells += [(of_counts, "blogfeedback", OF_COUNTS)]
    cells += [(of_labels, share, OF_LABELS) for share in ("even", "rare")]
    for make, law, names in cells:
        for n in ROWS:
            for epsilon in BUDGETS:
                held, wide = defaultdict(list), defaultdict(list)
                for seed in range(seeds):
                    found, truth = make(law, n, epsilon, seed)
                    for name in names:
                        one = found[name]
                        held[name].append(one.low <= truth[name] <= one.high)
                        wide[name].append((one.high - one.low) / abs(truth[name]))
                row = [f"{x} {np.mean(held[x]):.2f} {np.median(wide[x]):.2f}" for x in names]
                print(f"{law:<13}{n:>7,}{epsilon:>5g}   {'   '.join(row)}", flush=True)


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 20)
