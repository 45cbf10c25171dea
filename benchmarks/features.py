"""What declared features buy on Adult: the same fits with and without them.

    python -m benchmarks.features [SEEDS]

Models are fitted to the published training rows and judged on the test rows. Edges and knots are
round numbers. ``gaps`` are the same rows with every third age missing. Noise is simulated.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd
import pyarrow.parquet as pq
from sklearn.metrics import log_loss, roc_auc_score

from privtail.data import ADULT, adult_schema
from privtail.errors import AccuracyWarning, PrivacyWarning
from privtail.features import bins, spline
from privtail.linear_model import DPLinearRegression, DPLogisticRegression

BUDGETS = (0.2, 1.0, 5.0)
AGE = spline("age", [20, 30, 40, 50, 60, 70], degree=1)
AMOUNTS = [
    AGE,
    bins("capital_gain", [1, 3_000, 5_000, 10_000]),
    bins("capital_loss", [1, 1_500, 2_000, 2_500]),
    bins("hours_per_week", [20, 35, 45, 60]),
]


def parts() -> tuple[pd.DataFrame, pd.DataFrame]:
    """Training and test rows, as they were published."""
    table = pq.read_table(ADULT).to_pandas()
    train, test = (table[table["split"] == one].drop(columns="split") for one in ("train", "test"))
    return train, test


def with_gaps(rows: pd.DataFrame) -> pd.DataFrame:
    """The same rows with every third age missing."""
    rows = rows.assign(age=rows["age"].astype(float))
    rows.loc[rows.index[::3], "age"] = np.nan
    return rows


def incomes(epsilon: float, seed: int, **declared: Any) -> tuple[float, ...]:
    """Accuracy, log loss and AUC of incomes."""
    (train, test), schema = parts(), adult_schema()
    model = DPLogisticRegression(
        epsilon=epsilon, classes=schema["classes"], categories=schema["categories"],
        noise="simulated", random_state=seed, **declared,
    ).fit(train.drop(columns="income"), train["income"])  # fmt: skip
    chances = model.predict_proba(test.drop(columns="income"))[:, 1]
    high = (test["income"] == schema["classes"][1]).to_numpy()
    right = float(np.mean((chances > 0.5) == high))
    return right, float(log_loss(high, chances)), float(roc_auc_score(high, chances))


def hours(epsilon: float, seed: int, *, gaps: bool = False, **declared: Any) -> tuple[float, ...]:
    """R^2 of the hours that somebody works; of rows without a prediction, by the mean."""
    (train, test), schema = parts(), adult_schema()
    if gaps:
        train, test = with_gaps(train), with_gaps(test)
    categories = {name: schema["categories"][name] for name in ("sex", "workclass")}
    columns, y = ["age", *categories], test["hours_per_week"].to_numpy()
    model = DPLinearRegression(
        epsilon=epsilon, categories=categories, noise="simulated", random_state=seed, **declared
    ).fit(train[columns], train["hours_per_week"])
    said = model.predict(test[columns])
    said = np.where(np.isnan(said), np.nanmean(said), said)
    return (float(1 - np.mean((y - said) ** 2) / np.var(y)),)


CASES: Sequence[tuple[str, Any, dict[str, dict[str, Any]]]] = (
    (
        "income: accuracy, log loss, AUC",
        incomes,
        {
            "as it is": {},
            "curve of age": {"features": [AGE]},
            "bins of amounts, too": {"features": AMOUNTS},
        },
    ),
    ("hours: R2", hours, {"as it is": {}, "curve of age": {"features": [AGE]}}),
    (
        "hours, gaps: R2",
        hours,
        {
            "as it is": {"gaps": True},
            "indicator": {"gaps": True, "missing": "indicator"},
            "indicator, curve": {"gaps": True, "missing": "indicator", "features": [AGE]},
        },
    ),
)


def main(seeds: int = 3) -> None:
    """Print the mean over seeds of every case."""
    for kind in (AccuracyWarning, PrivacyWarning):
        warnings.simplefilter("ignore", kind)
    for title, run, ways in CASES:
        print(title)
        for name, declared in ways.items():
            for epsilon in BUDGETS:
                found = np.mean([run(epsilon, seed, **declared) for seed in range(seeds)], axis=0)
                shown = "  ".join(f"{x:8.4f}" for x in found)
                print(f"  {name:<20} epsilon {epsilon:<4g} {shown}", flush=True)


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
