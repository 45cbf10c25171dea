"""The problems of the table: laws of features and noise, sizes, shifts, units, real tables.

A problem draws one training and one test part per repetition, the same for all methods and
budgets. The laws are those of ``benchmarks/accuracy.py``.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache, partial
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from benchmarks.accuracy import LAWS, SLOPES
from privtail.data import adult_schema
from privtail.data.catalogue import CATALOGUE, located

Doubles = NDArray[np.float64]

TESTED = 50_000
"""Test rows of a synthetic problem."""

EPSILONS = (0.1, 0.5, 1.0, 3.0)
REAL_EPSILONS = (0.1, 0.5, 1.0, 2.0, 3.0)
INFINITE_VARIANCE = "gauss, Pareto(1.5) noise"


@dataclass(frozen=True, kw_only=True)
class Sample:
    """Training and test rows; where known the mean of the test targets, slopes and units."""

    X: Doubles
    y: Doubles
    X_test: Doubles
    y_test: Doubles
    mean: Doubles | None = None
    slopes: Doubles | None = None
    units: Doubles | float = 1.0


@dataclass(frozen=True, kw_only=True)
class Problem:
    """A task for all methods.

    Attributes
    ----------
    name, group : in the table; ``lognormal``, ``laws``, ``shifts`` or ``real``.
    draw : the sample of a repetition.
    classes : number of classes, 0 .. classes - 1; 0 for numbers.
    n, d : training rows, features.
    against_mean : the error is that against the known mean, since the noise has no variance.
    wide : the estimators with few slopes are asked too.
    needs : a table of `privtail.data.catalogue`.
    """

    name: str
    group: str
    draw: Callable[[int], Sample]
    n: int
    d: int
    classes: int = 0
    delta: float = 1e-6
    epsilons: tuple[float, ...] = EPSILONS
    against_mean: bool = False
    needs: str = ""

    @property
    def wide(self) -> bool:
        """Whether so many features are there that few of them may be better."""
        return self.d >= 50

    @property
    def metric(self) -> str:
        """What ``error`` is."""
        if self.classes:
            return "share of wrong labels"
        return "RMSE against the mean" if self.against_mean else "RMSE"

    def scores(
        self, sample: Sample, predicted: Doubles, slopes: Doubles | None
    ) -> Mapping[str, float]:
        """Errors of predictions for the test part; infinite where they are no numbers."""
        predicted = np.nan_to_num(np.ravel(predicted), nan=np.inf)
        if self.classes:
            return {"error": float(np.mean(predicted != sample.y_test))}
        with np.errstate(over="ignore", invalid="ignore"):
            found = {
                "error": _rms(predicted - sample.y_test),
                "mae": float(np.mean(np.abs(predicted - sample.y_test))),
            }
            if sample.mean is not None:
                found["against_mean"] = _rms(predicted - sample.mean)
            if slopes is not None and sample.slopes is not None:
                away = (np.ravel(slopes) - sample.slopes) * sample.units
                found["coefficient"] = float(np.linalg.norm(away))
        if self.against_mean:
            found["error"] = found["against_mean"]
        return found


def _rms(x: Doubles) -> float:
    return float(np.sqrt(np.mean(np.square(x))))


def _rng(name: str, repetition: int) -> np.random.Generator:
    return np.random.default_rng([*name.encode(), repetition])


def _synthetic(
    law: Callable[[np.random.Generator, int, int], tuple[Doubles, Doubles]],
    rng: np.random.Generator, n: int, d: int, *, labels: bool = False, units: Any = 1.0,
    far: tuple[Any, float] = (0.0, 0.0), level: float = 0.0,
) -> Sample:  # fmt: skip
    w = np.zeros(d)
    w[: len(SLOPES)] = SLOPES
    parts: list[Doubles] = []
    for rows in (n, TESTED):
        X, noise = law(rng, rows, d)
        mean = X @ w + 1
        y = (mean + noise > level).astype(float) if labels else mean + noise + far[1]
        parts += [X * units + far[0], y, mean + far[1]]
    X, y, _, X_test, y_test, mean = parts
    known = {} if labels else {"mean": mean, "slopes": w / units, "units": units}
    return Sample(X=X, y=y, X_test=X_test, y_test=y_test, **known)


def lognormal(rng: np.random.Generator, n: int, d: int) -> tuple[Doubles, Doubles]:
    """Features (n, d) and noise of mean zero."""
    return rng.lognormal(0, 1.5, (n, d)), rng.lognormal(0, 1.5, n) - math.exp(1.125)


def _sizes() -> list[Problem]:
    """From few rows of many features to many of few; delta is 1/n."""
    found = []
    for labels in (False, True):
        for d in (10, 100):
            for n in (1_000, 10_000, 100_000):
                name = f"{'labels' if labels else 'numbers'}, lognormal, n={n}, d={d}"

                def draw(
                    r: int, name: str = name, n: int = n, d: int = d, labels: bool = labels
                ) -> Sample:
                    return _synthetic(lognormal, _rng(name, r), n, d, labels=labels)

                found.append(
                    Problem(name=name, group="lognormal", draw=draw, n=n, d=d, classes=2 * labels,
                            delta=1 / n)
                )  # fmt: skip
    return found


LABELLED = {"t(2.5)": 1.0, "gauss": 1.0, "correlated": 1.0, "gauss, t(2.5) noise": 5.0}
"""Laws of labels, and the level above which a label is 1: the last has few ones."""


def _laws() -> list[Problem]:
    found = []
    d = len(SLOPES)
    for law, make in LAWS.items():
        units = np.logspace(-6, 6, d) if law.startswith("scales") else 1.0
        few = law in ("t(2.5)", "gauss", "gauss, 5 % of noise x 100", "scales 1e-6 to 1e6")
        for n in (1_000, 10_000) if few else (10_000,):
            name = f"numbers, {law}, n={n}"

            def draw(r: int, name: str = name, n: int = n, make: Any = make, units: Any = units
            ) -> Sample:  # fmt: skip
                return _synthetic(make, _rng(name, r), n, d, units=units)

            found.append(
                Problem(name=name, group="laws", draw=draw, n=n, d=d,
                        against_mean=law == INFINITE_VARIANCE)
            )  # fmt: skip
    for law, level in LABELLED.items():
        rare = ", few ones" if level > 1 else ""
        name = f"labels, {law}{rare}, n=10000"

        def drawn(r: int, name: str = name, make: Any = LAWS[law], level: float = level) -> Sample:
            return _synthetic(make, _rng(name, r), 10_000, d, labels=True, level=level)

        found.append(Problem(name=name, group="laws", draw=drawn, n=10_000, d=d, classes=2))
    return found


def _shifts() -> list[Problem]:
    """The target, the features, or both far from zero by a random number."""
    found, d, n = [], len(SLOPES), 10_000
    for what in ("target", "features", "target and features"):
        name = f"numbers, {what} shifted, n={n}"

        def draw(r: int, name: str = name, what: str = what) -> Sample:
            rng = _rng(name, r)
            by = rng.choice([-1, 1], d + 1) * 10 ** rng.uniform(1, 4, d + 1)
            features = by[:d] if "features" in what else 0.0
            target = float(by[d]) if "target" in what else 0.0
            return _synthetic(lognormal, rng, n, d, far=(features, target))

        found.append(Problem(name=name, group="shifts", draw=draw, n=n, d=d))
    return found


MOST_ROWS = 90_000
"""Covertype is cut to so many of its shuffled rows."""


@cache
def _table(name: str) -> pd.DataFrame:
    path = located(name)
    assert path is not None, f"{name} is not here: `privtail data` says where to get it"
    return pd.read_parquet(path)


def _adult_features() -> pd.DataFrame:
    """Adult with a column of 0 and 1 per declared category."""
    frame, schema = _table("adult"), adult_schema()
    columns = [frame[name].astype(float) for name in schema["numeric"]]
    for name, values in schema["categories"].items():
        columns += [(frame[name] == v).astype(float).rename(f"{name}={v}") for v in values]
    return pd.concat(columns, axis=1)


def _adult() -> tuple[pd.DataFrame, Any]:
    return _adult_features(), (_table("adult")["income"] == ">50K").to_numpy(float)


def _hours() -> tuple[pd.DataFrame, Any]:
    income = (_table("adult")["income"] == ">50K").astype(float)
    X = pd.concat([_adult_features(), income], axis=1)
    return X.drop(columns="hours_per_week"), X["hours_per_week"].to_numpy()


def _blog() -> tuple[pd.DataFrame, Any]:
    frame = _table("blogfeedback")
    return frame.drop(columns=["target", "split"]), frame["target"].to_numpy(float)


def _news(columns: int) -> tuple[pd.DataFrame, Any]:
    frame = _table("news" if columns == 59 else "news-14")
    drop = ["shares", "row", "part"]
    return frame.drop(columns=drop, errors="ignore"), frame["shares"].to_numpy(float)


def _popular() -> tuple[pd.DataFrame, Any]:
    X, shares = _news(14)
    return X, (shares > 1400).astype(float)


def _forest() -> tuple[pd.DataFrame, Any]:
    frame = _table("covertype").iloc[:MOST_ROWS]
    return frame.drop(columns="Cover_Type"), (frame["Cover_Type"] == 2).to_numpy(float)


def _crops() -> tuple[pd.DataFrame, Any]:
    frame = _table("winnipeg")
    return frame.drop(columns=["label", "src"]), np.unique(frame["label"], return_inverse=True)[1]


def _split(read: Callable[[], tuple[pd.DataFrame, Any]], repetition: int) -> Sample:
    """Two thirds of the rows at random to train."""
    X, y = _read(read)
    order = np.random.default_rng(repetition).permutation(len(y))
    train, test = order[: 2 * len(y) // 3], order[2 * len(y) // 3 :]
    return Sample(X=X[train], y=y[train], X_test=X[test], y_test=y[test])


@cache
def _read(read: Callable[[], tuple[pd.DataFrame, Any]]) -> tuple[Doubles, Doubles]:
    X, y = read()
    return X.to_numpy(np.float64), np.asarray(y, dtype=np.float64)


_NEWS, _NEWS_14 = partial(_news, 59), partial(_news, 14)
_TABLES: tuple[tuple[str, str, int, int, Callable[[], tuple[pd.DataFrame, Any]]], ...] = (
    ("Adult, income", "adult", 108, 2, _adult),
    ("Adult, hours", "adult", 108, 0, _hours),
    ("BlogFeedback, comments", "blogfeedback", 280, 0, _blog),
    ("Online News, shares, 59 columns", "news", 59, 0, _NEWS),
    ("Online News, shares, 14 columns", "news-14", 14, 0, _NEWS_14),
    ("Online News, popular, 14 columns", "news-14", 14, 2, _popular),
    ("Covertype, class 2", "covertype", 54, 2, _forest),
    ("Winnipeg, four crops", "winnipeg", 174, 4, _crops),
)


def _real() -> list[Problem]:
    return [
        Problem(
            name=name, group="real", draw=partial(_split, read), d=d, classes=classes, needs=needs,
            n=2 * min(CATALOGUE[needs].rows, MOST_ROWS) // 3, epsilons=REAL_EPSILONS,
        )
        for name, needs, d, classes, read in _TABLES
    ]  # fmt: skip


def problems() -> list[Problem]:
    """All of them."""
    return [*_sizes(), *_laws(), *_shifts(), *_real()]


def here(problem: Problem) -> bool:
    """Whether the table that a problem reads is here."""
    return not problem.needs or located(problem.needs) is not None
