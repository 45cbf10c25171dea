"""W20's logistic model: y = sign(1 / (1 + exp(<w*, x> + e)) - 1/2), e log-logistic minus its mean.

So the label is minus the sign of <w*, x> + e. The minimizer of the population risk is a multiple of
-w*, since rows are spherical; how long it is comes from a large sample of its own.
"""

from __future__ import annotations

import math
from functools import cache

import numpy as np
from scipy.optimize import brentq
from scipy.special import expit

from experiments.data.linear_lognormal import direction, features
from experiments.study import DataSet, Doubles, Setting, Task
from privtail.domains import L2, L2Ball, within
from privtail.losses import LogisticLoss


def noise(rng: np.random.Generator, n: int, sigma: float) -> Doubles:
    """Log-logistic noise of median 1 and shape ``sigma`` < 1, minus its mean."""
    mean = math.pi * sigma / math.sin(math.pi * sigma)
    return np.asarray(np.exp(sigma * rng.logistic(size=n)) - mean)


@cache
def length(sigma: float, alpha: float, freedom: float) -> float:
    """How long the minimizer of the population risk is, from a million records."""
    rng = np.random.default_rng(2020)
    n = 1_000_000
    x = features(rng, n, 1, freedom)[:, 0]
    right = np.where(x + noise(rng, n, sigma) < 0, -x, x)  # margin of w = -1 for its label

    def slope(c: float) -> float:
        return float(np.mean(right * expit(-c * right))) - alpha * c

    return float(brentq(slope, 0.0, 1000.0))


def draw(rng: np.random.Generator, setting: Setting) -> Task:
    """Records whose settings are n, d, freedom, sigma (of e), alpha and radius (of the model)."""
    n, d = int(setting["n"]), int(setting["d"])
    w_star = direction(rng, d)
    X = features(rng, n, d, setting["freedom"])
    y = ((X @ w_star)[:, 0] + noise(rng, n, setting["sigma"]) < 0).astype(np.float64)
    best = -w_star * length(setting["sigma"], setting["alpha"], setting["freedom"])

    def measure(w: Doubles) -> dict[str, float]:
        return {"error": float(np.linalg.norm(w - best))}

    return Task(
        X=X, y=y, loss=LogisticLoss(),
        domain=within(L2(alpha=setting["alpha"]), L2Ball(radius=setting["radius"])),
        measure=measure, truth={"alpha": setting["alpha"]},
    )  # fmt: skip


LOGISTIC_LOGLOGISTIC = DataSet(
    name="logistic, log-logistic noise", draw=draw,
    says="label minus the sign of <w*, x> + e, e log-logistic(0, sigma) minus its mean, |w*| = 1",
)  # fmt: skip
