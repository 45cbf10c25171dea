"""Random splits of a table into 70 % to train on and 30 % to test on.

Columns are scaled by what the training rows say, as experimenters do who do not count it. The task
keeps the rows as they were (``truth``: raw, centre, spread) for a method that needs no scaling, and
measures w with an intercept too, as a last row.
"""

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
    """Lasso, columns divided by the root of their mean square.

    Risk is the mean of half the squared errors on the test rows plus the penalty.
    """
    train, test = _split(len(y), rng)
    scaled, truth = _scaled(X, train, np.zeros(X.shape[1]))
    domain, X_test, y_test = L1(alpha=setting["penalty"]), scaled[test], y[test]

    def measure(w: Doubles) -> dict[str, float]:
        slopes, margins = _margins(X_test, w)
        square = float(np.mean((margins[:, 0] - y_test) ** 2))
        return {"risk": square / 2 + domain.value(slopes), "rmse": float(np.sqrt(square))}

    return Task(
        X=scaled[train], y=y[train], loss=SquaredLoss(), domain=domain, measure=measure,
        truth=truth,
    )  # fmt: skip


def classification(X: Doubles, y: Doubles, rng: np.random.Generator, setting: Setting) -> Task:
    """l1-penalized logistic regression on standardized columns.

    Risk is the mean logistic loss on the test rows plus the penalty.
    """
    train, test = _split(len(y), rng)
    scaled, truth = _scaled(X, train, X[train].mean(axis=0))
    loss, domain = LogisticLoss(), L1(alpha=setting["penalty"])
    X_test, y_test = scaled[test], y[test]

    def measure(w: Doubles) -> dict[str, float]:
        slopes, margins = _margins(X_test, w)
        return {
            "risk": float(np.mean(loss.values(margins, y_test))) + domain.value(slopes),
            "wrong": float(np.mean((margins[:, 0] > 0) != (y_test > 0.5))),
        }

    return Task(X=scaled[train], y=y[train], loss=loss, domain=domain, measure=measure, truth=truth)


def _scaled(X: Doubles, train: Rows, centre: Doubles) -> tuple[Doubles, dict[str, Doubles]]:
    spread = np.sqrt(np.mean((X[train] - centre) ** 2, axis=0))
    spread = np.where(spread > 1e-12, spread, 1.0)
    return (X - centre) / spread, {"raw": X[train], "centre": centre, "spread": spread}


def _margins(X: Doubles, w: Doubles) -> tuple[Doubles, Doubles]:
    """Slopes, and margins (rows, 1) with the intercept if there is one."""
    d = X.shape[1]
    return w[:d], X @ w[:d] + w[d:].sum()
