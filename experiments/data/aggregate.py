"""A strongly convex line with heavy-tailed errors, for minimizers of many small parts."""

from __future__ import annotations

import numpy as np

from experiments.data.tails import Lognormal
from experiments.study import DataSet, Doubles, Setting, Task
from privtail.domains import L2Ball
from privtail.losses import SquaredLoss

ERRORS = Lognormal(1.0)
RADIUS = 2.0
"""Of the set of models; half of the paper's Lambda."""


def draw(rng: np.random.Generator, setting: Setting) -> Task:
    """A line y = <w*, x> + ``noise`` (e - E e), x normal, |w*| = 1; the risk is |w - w*|^2/2."""
    n, d = int(setting["records"]), int(setting["d"])
    w_star = rng.standard_normal((d, 1))
    w_star /= np.linalg.norm(w_star)
    X = rng.standard_normal((n, d))
    y = (X @ w_star)[:, 0] + setting["noise"] * (ERRORS.draw(rng, (n,)) - ERRORS.mean)

    def measure(w: Doubles) -> dict[str, float]:
        return {"excess risk": float(((w - w_star) ** 2).sum() / 2)}

    variance = setting["noise"] ** 2 * (ERRORS.moment(2.0) - ERRORS.mean**2)
    return Task(
        X=X, y=y, loss=SquaredLoss(), domain=L2Ball(radius=RADIUS), measure=measure,
        truth={"w": w_star, "second moment": variance},
    )  # fmt: skip


AGGREGATE = DataSet(name="line, lognormal(1) errors", draw=draw)
