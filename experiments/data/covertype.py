"""Covertype (Blackard 1998): the most frequent kind of forest against the rest."""

from __future__ import annotations

import numpy as np

from experiments.data.real import table
from experiments.data.splits import classification
from experiments.data.stationarity import classified, normalized
from experiments.study import DataSet, Doubles, Setting, Task

LOW = (1859, 0, 0, 0, -173, 0, 0, 0, 0, 0)
HIGH = (3858, 360, 66, 1397, 601, 7117, 254, 254, 254, 7173)
"""Ranges of the ten measured columns, from the documentation; the other 44 are 0 or 1."""


def records(n: int) -> tuple[Doubles, Doubles]:
    """The first ``n`` rows of the shuffled table; measured columns are brought to [-1, 1]."""
    frame = table("covertype").iloc[:n]
    y = (frame["Cover_Type"] == 2).to_numpy(dtype=np.float64)
    X = frame.drop(columns="Cover_Type").to_numpy(dtype=np.float64)
    low, high = np.array(LOW), np.array(HIGH)
    X[:, : len(LOW)] = 2 * (X[:, : len(LOW)] - low) / (high - low) - 1
    return X, y


def draw_sigmoid(rng: np.random.Generator, setting: Setting) -> Task:
    """``rows`` records (``n`` where n is the axis) of the first 200,000, of norm ``row_norm``."""
    X, y = records(200_000)
    rows = min(int(setting["rows"] if "rows" in setting else setting["n"]), len(y))
    chosen = np.sort(rng.choice(len(y), rows, replace=False))
    return classified(normalized(X[chosen], setting["row_norm"]), y[chosen], setting)


def draw_logistic(rng: np.random.Generator, setting: Setting) -> Task:
    """A random split of ``rows`` records."""
    return classification(*records(int(setting["rows"])), rng, setting)


SIGMOID = DataSet(
    name="covertype", draw=draw_sigmoid, needs=("covertype",),
    says="200,000 rows of norm 4 after the documented ranges; class 2 against the rest",
)  # fmt: skip
LOGISTIC = DataSet(
    name="covertype", draw=draw_logistic, needs=("covertype",),
    says="20,000 rows, class 2 against the rest",
)  # fmt: skip
