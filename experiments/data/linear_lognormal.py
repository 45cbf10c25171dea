"""W20's linear model: y = <w*, x> + e, e lognormal minus its mean."""

from __future__ import annotations

import math

import numpy as np

from experiments.study import DataSet, Doubles, Setting, Task
from privtail.domains import L2, L2Ball, within
from privtail.losses import SquaredLoss


def features(rng: np.random.Generator, n: int, d: int, freedom: float) -> Doubles:
    """Isotropic rows of variance 1: Gaussian, or Student's t of finitely many degrees > 2."""
    X = rng.standard_normal((n, d))
    if math.isfinite(freedom):
        X *= np.sqrt((freedom - 2) / rng.chisquare(freedom, (n, 1)))
    return X


def direction(rng: np.random.Generator, d: int) -> Doubles:
    """A uniform direction, (d, 1)."""
    w = rng.standard_normal((d, 1))
    return np.asarray(w / np.linalg.norm(w))


def draw(rng: np.random.Generator, setting: Setting) -> Task:
    """Records whose settings are n, d, freedom, sigma (of e), alpha and radius (of the model)."""
    n, d = int(setting["n"]), int(setting["d"])
    w_star = direction(rng, d)
    X = features(rng, n, d, setting["freedom"])
    sigma = setting["sigma"]
    e = rng.lognormal(0.0, sigma, n) - math.exp(sigma**2 / 2)
    best = w_star / (1 + setting["alpha"])

    def measure(w: Doubles) -> dict[str, float]:
        return {"error": float(np.linalg.norm(w - best))}

    return Task(
        X=X, y=(X @ w_star)[:, 0] + e, loss=SquaredLoss(),
        domain=within(L2(alpha=setting["alpha"]), L2Ball(radius=setting["radius"])),
        measure=measure, truth={"alpha": setting["alpha"]},
    )  # fmt: skip


LINEAR_LOGNORMAL = DataSet(
    name="linear, lognormal noise", draw=draw,
    says="y = <w*, x> + e, e lognormal(0, sigma) minus its mean, |w*| = 1",
)  # fmt: skip
