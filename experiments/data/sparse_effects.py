"""Ten effects of size 1 among d: lasso with t(2) errors, logistic with log-logistic errors."""

from __future__ import annotations

import math

import numpy as np

from experiments.study import DataSet, Doubles, Setting, Task
from privtail.domains import L1
from privtail.losses import LogisticLoss, SquaredLoss

EFFECTS = 10


def _features(rng: np.random.Generator, setting: Setting) -> tuple[Doubles, Doubles]:
    """Gaussian columns of norm sqrt(n), or of norm 1 where ``unit_columns``; the effects.

    The penalty is in units of a feature.
    """
    n, d = int(setting["n"]), int(setting["d"])
    X = rng.standard_normal((n, d))
    norm = 1.0 if setting["unit_columns"] else math.sqrt(n)
    beta = np.zeros(d)
    beta[:EFFECTS] = rng.choice([-1.0, 1.0], min(EFFECTS, d))
    return X * (norm / np.linalg.norm(X, axis=0)), beta


def draw_lasso(rng: np.random.Generator, setting: Setting) -> Task:
    """Y = <x, beta> + e, e of Student's t with two degrees of freedom."""
    X, beta = _features(rng, setting)
    y = X @ beta + rng.standard_t(2, len(X))

    def measure(w: Doubles) -> dict[str, float]:
        return {"error": float(np.linalg.norm(w[:, 0] - beta))}

    truth = _truth(X, beta)
    penalty = L1(alpha=setting["penalty"] * truth["size"])
    return Task(X=X, y=y, loss=SquaredLoss(), domain=penalty, measure=measure, truth=truth)


def draw_logistic(rng: np.random.Generator, setting: Setting) -> Task:
    """Y = sign(<x, beta> + e), e log-logistic (1/2, 1/2), centred, in the reading ``errors``."""
    X, beta = _features(rng, setting)
    u = rng.uniform(size=len(X))
    e = scale_and_shape(u) if setting["errors"] else mu_and_sigma(u)
    y = (X @ beta + e > 0).astype(np.float64)

    def measure(w: Doubles) -> dict[str, float]:
        length = float(np.linalg.norm(w) * np.linalg.norm(beta))
        cosine = float(w[:, 0] @ beta) / length if length > 0 else 0.0
        angle = math.degrees(math.acos(min(1.0, max(-1.0, cosine))))
        return {"error": float(np.linalg.norm(w[:, 0] - beta)), "angle": angle}

    truth = _truth(X, beta)
    penalty = L1(alpha=setting["penalty"] * truth["size"])
    return Task(X=X, y=y, loss=LogisticLoss(), domain=penalty, measure=measure, truth=truth)


def mu_and_sigma(u: Doubles) -> Doubles:
    """W20's law: exp(1/2 + L/2), L logistic, less its mean."""
    return np.asarray(math.exp(0.5) * (np.sqrt(u / (1 - u)) - math.pi / 2))


def scale_and_shape(u: Doubles) -> Doubles:
    """Scale 1/2 and shape 1/2, less its median: it has no mean."""
    return np.asarray(0.5 * (u / (1 - u)) ** 2 - 0.5)


def _truth(X: Doubles, beta: Doubles) -> dict[str, float]:
    """The oracle's radius, and the size of a feature: 1 or, as printed, 1/sqrt(n)."""
    size = float(np.linalg.norm(X[:, 0])) / math.sqrt(len(X))
    return {"l1": float(np.abs(beta).sum()), "size": size}


LASSO = DataSet(name="lasso, t(2) errors", draw=draw_lasso, says="10 effects of size 1, n = 10,000")
LOGISTIC = DataSet(
    name="logistic, log-logistic errors", draw=draw_logistic,
    says="10 effects of size 1, n = 10,000",
)  # fmt: skip
