"""How much of the way from the constant to the fit without privacy the defaults go, on real tables.

    python -m benchmarks.real [TABLE ...] [--epsilon 2] [--seeds 9] [--data FOLDER]

Every table as it was published, nothing scaled or clipped: two thirds of the rows to fit, the rest
to test. ``closed`` is (constant - ours) / (constant - without privacy), the median of the seeds,
for: root mean squared error (linear, against least squares), mean absolute error (huber and lad,
against scikit-learn's Huber fit of standardized features; the constant is the median) and the share
of wrong labels (logistic, against scikit-learn's of standardized features). Replace-one, noise
simulated.
"""

from __future__ import annotations

import argparse
import math
import warnings
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow.parquet as pq
from numpy.typing import NDArray
from sklearn.linear_model import HuberRegressor, LinearRegression, LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from privtail.data import ADULT, adult_schema
from privtail.data.catalogue import BESIDE, CATALOGUE, folder
from privtail.linear_model import (
    DPHuberRegressor,
    DPLADRegressor,
    DPLinearRegression,
    DPLogisticRegression,
)

REGRESSORS = {"linear": DPLinearRegression, "huber": DPHuberRegressor, "lad": DPLADRegressor}


@dataclass(frozen=True)
class Table:
    """A table split into train and test."""

    name: str
    X: Any
    y: Any
    X_test: Any
    y_test: Any
    tasks: tuple[str, ...]
    categories: dict[str, list[str]] | None = None

    def dense(self, X: Any) -> NDArray[np.float64]:
        """The numbers that scikit-learn sees; categories as indicators."""
        if self.categories is None:
            return np.asarray(X, dtype=np.float64)
        parts = [
            (X[name].to_numpy()[:, None] == np.array(self.categories[name])).astype(float)
            if name in self.categories
            else X[name].to_numpy(np.float64)[:, None]
            for name in X.columns
        ]
        return np.hstack(parts)

    def missed(self, task: str, prediction: Any) -> float:
        """The error that ``task`` is judged by."""
        if task == "logistic":
            return float(np.mean(prediction != self.y_test))
        off = np.abs(prediction - self.y_test)
        return math.sqrt(np.mean(off**2)) if task == "linear" else float(np.mean(off))

    def constant(self, task: str) -> float:
        """Error of the best constant of the training rows."""
        if task == "logistic":
            values, counts = np.unique(self.y, return_counts=True)
            return self.missed(task, values[counts.argmax()])
        return self.missed(task, np.mean(self.y) if task == "linear" else np.median(self.y))

    def without_privacy(self, task: str) -> float:
        """Error of scikit-learn."""
        model: Any = {
            "linear": LinearRegression(),
            "logistic": make_pipeline(StandardScaler(), LogisticRegression(max_iter=1000)),
        }.get(task, make_pipeline(StandardScaler(), HuberRegressor(alpha=0, max_iter=1000)))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            model.fit(self.dense(self.X), self.y)
        return self.missed(task, model.predict(self.dense(self.X_test)))

    def ours(self, task: str, epsilon: float, seed: int, **options: Any) -> float:
        """Error of the default."""
        options |= {
            "epsilon": epsilon,
            "delta": 1e-6,
            "categories": self.categories,
            "noise": "simulated",
            "random_state": seed,
        }
        if task == "logistic":
            model: Any = DPLogisticRegression(classes=np.unique(self.y).tolist(), **options)
        else:
            model = REGRESSORS[task](**options)
        return self.missed(task, model.fit(self.X, self.y).predict(self.X_test))


NUMBERS, LABELS = ("linear", "huber", "lad"), ("logistic",)

Reader = Callable[[Path], Table]


def _adult(target: str, tasks: tuple[str, ...]) -> Reader:
    def read(data: Path) -> Table:
        schema, table = adult_schema(), pq.read_table(ADULT).to_pandas()
        categories = dict(schema["categories"])
        table["income"] = (table["income"] == ">50K").astype(int)
        columns = [c for c in (*schema["numeric"], *categories) if c != target]
        train, test = (table[table["split"] == part] for part in ("train", "test"))
        return Table(
            f"adult {target}", train[columns], train[target].to_numpy(), test[columns],
            test[target].to_numpy(), tasks, categories,
        )  # fmt: skip

    return read


def _file(
    name: str, file: str, target: str, tasks: tuple[str, ...],
    labels: Callable[[Any], Any] = lambda y: y,
) -> Reader:  # fmt: skip
    def read(data: Path) -> Table:
        table = loaded(data, file)
        y = labels(table[target].to_numpy())
        X = table.drop(columns=target).to_numpy(np.float64)
        order = np.random.default_rng(0).permutation(len(y))
        train, test = order[: 2 * len(y) // 3], order[2 * len(y) // 3 :]
        y = y.astype(np.float64) if "linear" in tasks else y.astype(int)
        return Table(name, X[train], y[train], X[test], y[test], tasks)

    return read


BLOG, FOREST, NEWS, WIDE, CROPS = (
    CATALOGUE[name].file for name in ("blogfeedback", "covertype", "news-14", "news", "winnipeg")
)

NO_DATA = {BLOG: ["split"], CROPS: ["src"], WIDE: ["row", "part"]}
"""Columns of a file that are no data."""


def loaded(data: Path, file: str) -> pd.DataFrame:
    """A file without the columns that are no data."""
    table: pd.DataFrame = pq.read_table(data / file).to_pandas()
    return table.drop(columns=NO_DATA.get(file, []))


TABLES: dict[str, Reader] = {
    "hours": _adult("hours_per_week", NUMBERS),
    "income": _adult("income", ("linear", "logistic")),
    "blog": _file("blog comments", BLOG, "target", NUMBERS),
    "crops": _file("crops label", CROPS, "label", NUMBERS),
    "crop": _file("crops which", CROPS, "label", LABELS),
    "news": _file("news shares", NEWS, "shares", NUMBERS),
    "wide": _file("wide news shares", WIDE, "shares", NUMBERS),
    "popular": _file("news > 1400", NEWS, "shares", LABELS, lambda y: y > 1400),
    "forest": _file("forest cover", FOREST, "Cover_Type", NUMBERS),
    "spruce": _file("forest 2/rest", FOREST, "Cover_Type", LABELS, lambda y: y == 2),
    "commented": _file("blog any comment", BLOG, "target", LABELS, lambda y: y > 0),
}


HEADER = (
    f"{'table':<28} {'task':<9} {'eps':>6} {'constant':>10} {'no privacy':>10} {'ours':>10} "
    f"{'closed':>7} {'worst':>7}"
)


@dataclass(frozen=True)
class Fits:
    """Errors of a constant, without privacy, and ours, one for every seed."""

    table: str
    task: str
    epsilon: float
    constant: float
    without_privacy: float
    ours: NDArray[np.float64]

    def __str__(self) -> str:
        closed = (self.constant - self.ours) / (self.constant - self.without_privacy)
        return (
            f"{self.table:<28.28} {self.task:<9} {self.epsilon:>6g} {self.constant:>10.5g} "
            f"{self.without_privacy:>10.5g} {np.median(self.ours):>10.5g} "
            f"{np.median(closed):>7.2f} {closed.min():>7.2f}"
        )


def fits(tables: Iterable[Table], epsilons: list[float], seeds: int) -> Iterator[Fits]:
    """For every table, task and budget."""
    for table in tables:
        for task in table.tasks:
            constant, reference = table.constant(task), table.without_privacy(task)
            for epsilon in epsilons:
                ours = np.array([table.ours(task, epsilon, seed) for seed in range(seeds)])
                yield Fits(table.name, task, epsilon, constant, reference, ours)


def main() -> None:
    """Print the table, all sets by default."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("tables", nargs="*", metavar="TABLE", help=", ".join(TABLES))
    parser.add_argument("--epsilon", type=float, nargs="+", default=[2.0])
    parser.add_argument("--seeds", type=int, default=9)
    parser.add_argument("--data", type=Path, default=folder() or Path(BESIDE))
    asked = parser.parse_args()
    if unknown := set(asked.tables) - set(TABLES):
        parser.error(f"unknown table {min(unknown)!r}; there are {', '.join(TABLES)}")
    print(HEADER)
    tables = (TABLES[name](asked.data) for name in asked.tables or TABLES)
    for each in fits(tables, asked.epsilon, asked.seeds):
        print(each, flush=True)


if __name__ == "__main__":
    main()
