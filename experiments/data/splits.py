"""Random splits of a table into 70 % to train on and 30 % to test on."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from experiments.study import Doubles, Setting, Task
from privtail.domains import L1
from privtail.losses import LogisticLoss, SquaredLoss

TRAINED = 0.7
Rows = NDArray[np.int64]


def _split(n: int, rng: np.random.Generator) -> tuple[Rows, Rows]:
    order = rng.permutation(n)
    return order[: int(TRAINED * n)], order[int(TRAINED * n) :]


def regression(X: Doubles, y: Doubles, rng: np.random.Generator, setting: Setting) -> Task:
    """Lasso, columns divided by the root of their mean square: that reads the training rows.

    Risk is the mean of half the squared errors on the test rows plus the penalty.
    """
    train, test = _split(len(y), rng)
    sizes = np.sqrt(np.mean(X[train] ** 2, axis=0))
    X = X / np.where(sizes > 0, sizes, 1.0)
    domain = L1(alpha=setting["penalty"])
    X_test, y_test = X[test], y[test]

    def measure(w: Doubles) -> dict[str, float]:
        square = float(np.mean((X_test @ w[:, 0] - y_test) ** 2))
        return {"risk": square / 2 + domain.value(w), "rmse": float(np.sqrt(square))}

    return Task(X=X[train], y=y[train], loss=SquaredLoss(), domain=domain, measure=measure)


def classification(X: Doubles, y: Doubles, rng: np.random.Generator, setting: Setting) -> Task:
    """l1-penalized logistic regression on standardized columns: that reads the training rows.

    Risk is the mean logistic loss on the test rows plus the penalty.
    """
    train, test = _split(len(y), rng)
    centre, spread = X[train].mean(axis=0), X[train].std(axis=0)
    X = (X - centre) / np.where(spread > 0, spread, 1.0)
    loss, domain = LogisticLoss(), L1(alpha=setting["penalty"])
    X_test, y_test = X[test], y[test]

    def measure(w: Doubles) -> dict[str, float]:
        margins = X_test @ w
        return {
            "risk": float(np.mean(loss.values(margins, y_test))) + domain.value(w),
            "wrong": float(np.mean((margins[:, 0] > 0) != (y_test > 0.5))),
        }

    return Task(X=X[train], y=y[train], loss=loss, domain=domain, measure=measure)
