"""W20's linear model: y = <w*, x> + e with centred lognormal e."""

from __future__ import annotations

import math

import numpy as np

from experiments.study import DataSet, Doubles, Setting, Task
from privtail.domains import L2
from privtail.losses import SquaredLoss


def draw(rng: np.random.Generator, setting: Setting) -> Task:
    """Draw n records of d features; ``sigma`` is that of the noise, ``alpha`` the ridge."""
    n, d = int(setting["n"]), int(setting["d"])
    w_star = rng.standard_normal((d, 1))
    w_star /= np.linalg.norm(w_star)
    X = rng.standard_normal((n, d))
    sigma = setting["sigma"]
    e = rng.lognormal(0.0, sigma, n) - math.exp(sigma**2 / 2)
    y = (X @ w_star)[:, 0] + e

    def measure(w: Doubles) -> dict[str, float]:
        return {"error": float(np.linalg.norm(w - w_star))}

    return Task(
        X=X, y=y, loss=SquaredLoss(), domain=L2(alpha=setting["alpha"]), measure=measure,
        truth={"w": w_star},
    )  # fmt: skip


RIDGE_LOGNORMAL = DataSet(name="linear, lognormal noise", draw=draw)
