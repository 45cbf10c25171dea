"""Online News Popularity (Fernandes et al. 2015): shared more than 1,400 times or not."""

from __future__ import annotations

import numpy as np

from experiments.data.real import table
from experiments.data.splits import classification
from experiments.study import DataSet, Setting, Task


def draw(rng: np.random.Generator, setting: Setting) -> Task:
    """A random split of ``rows`` records of the parts that are random samples."""
    frame = table("news")
    frame = frame[frame["part"] != "early_block"].iloc[: int(setting["rows"])]
    X = frame.drop(columns=["row", "part", "shares"]).to_numpy(dtype=np.float64)
    return classification(X, (frame["shares"] > 1400).to_numpy(np.float64), rng, setting)


NEWS = DataSet(
    name="online news", draw=draw, needs=("news",),
    says="20,000 rows, 59 columns; shared more than 1,400 times or not",
)  # fmt: skip
