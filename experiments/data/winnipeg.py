"""Winnipeg crops (Khosravi 2020), 3,901 of 325,834 rows: corn or peas against two other crops."""

from __future__ import annotations

import numpy as np

from experiments.data.real import table
from experiments.data.splits import classification
from experiments.study import DataSet, Setting, Task


def draw(rng: np.random.Generator, setting: Setting) -> Task:
    """A random split."""
    frame = table("winnipeg").sample(frac=1.0, random_state=0).iloc[: int(setting["rows"])]
    X = frame.drop(columns=["label", "src"]).to_numpy(dtype=np.float64)
    return classification(X, frame["label"].isin([1, 2]).to_numpy(np.float64), rng, setting)


CROPS = DataSet(
    name="winnipeg (3,901 rows)", draw=draw, needs=("winnipeg",),
    says="3,901 rows, 174 columns; corn or peas against canola or broadleaf; for shape only",
)  # fmt: skip
