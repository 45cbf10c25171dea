"""BlogFeedback (Buza 2014): comments of the next day, 0 to 1424, most often 0."""

from __future__ import annotations

import numpy as np

from experiments.data.real import table
from experiments.data.splits import regression
from experiments.study import DataSet, Setting, Task


def draw(rng: np.random.Generator, setting: Setting) -> Task:
    """A random split of the training part of the table, or of its first ``rows``."""
    frame = table("blogfeedback")
    frame = frame[frame["split"] == "train"].iloc[: int(setting["rows"])]
    X = frame.drop(columns=["target", "split"]).to_numpy(dtype=np.float64)
    return regression(X, frame["target"].to_numpy(dtype=np.float64), rng, setting)


BLOG = DataSet(
    name="blogfeedback", draw=draw, needs=("blogfeedback",),
    says="52,397 rows, 280 columns divided by their root mean square; 70 % to train on",
)  # fmt: skip
