"""Linear classifiers by their sigmoid loss, and how far from stationary they are."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from experiments.study import DataSet, Doubles, Setting, Task
from privtail.algorithms.frank_wolfe import frank_wolfe_gap
from privtail.domains import L1, L1Ball
from privtail.losses import SigmoidLoss

LOSS = SigmoidLoss()

STATIONARY = 1e-4
"""Whatever is measured below this is called this: a hundredth of what noise leaves."""


def normalized(X: Doubles, row_norm: float) -> Doubles:
    """Rows of one norm: with 4 the loss is 1-Lipschitz, its slope being at most 1/4."""
    lengths = np.linalg.norm(X, axis=1, keepdims=True)
    return np.asarray(row_norm * X / np.where(lengths > 0, lengths, 1.0))


def classified(X: Doubles, y: Doubles, setting: Setting) -> Task:
    """The paper's objective, a mean sigmoid loss and (lambda/2) |w|_1, or its loss on an l1 ball.

    ``truth`` holds the step size 1/(2 L), times ``pace``, for the smoothness L of the mean loss.
    It is read off the records, as the paper's line search reads them; neither is in the budget.
    """
    n = len(X)
    curvature = LOSS.curvature * float(np.linalg.eigvalsh(X.T @ X / n)[-1])
    step = setting.get("pace", 1.0) / (2 * curvature)
    ball = "radius" in setting
    domain = L1Ball(radius=setting["radius"]) if ball else L1(alpha=setting["penalty"] / 2)

    def measure(w: Doubles) -> dict[str, float]:
        margins = X @ w
        g = X.T @ LOSS.derivatives(margins, y) / n
        norm = float(np.linalg.norm(w - domain.prox(w - step * g, step)) / step)
        found = {
            "gradient_norm": max(norm, STATIONARY),
            "risk": float(np.mean(LOSS.values(margins, y)) + (0.0 if ball else domain.value(w))),
            "wrong": float(np.mean((margins[:, 0] > 0) != (y > 0.5))),
        }
        return found | ({"gap": max(frank_wolfe_gap(domain, w, g), STATIONARY)} if ball else {})

    truth = {"step_size": step, "curvature": curvature}
    return Task(X=X, y=y, loss=LOSS, domain=domain, measure=measure, truth=truth)


def draw(rng: np.random.Generator, setting: Setting) -> Task:
    """Gaussian rows of one norm, and the side of a random plane on which they lie.

    Where ``informative`` is set the features beyond that many are a hundredth as large and tell
    nothing: more parameters, nearly the same problem.
    """
    n, d = int(setting["n"]), int(setting["d"])
    used = min(d, int(setting.get("informative", d)))
    X = rng.standard_normal((n, d))
    X[:, used:] *= 0.01
    y = (X[:, :used] @ rng.standard_normal(used) > 0).astype(np.float64)
    return classified(normalized(X, setting["row_norm"]), y, setting)


HALFSPACES = DataSet(
    name="synthetic", draw=draw, says="Gaussian rows of norm 4, labels sign(<w*, x>)"
)


FRESH = 100_000
"""Records that stand for the population."""


def draw_population(rng: np.random.Generator, setting: Setting) -> Task:
    """Records as of `draw`; ``population_gradient`` is that of the loss on fresh ones."""
    n, d = int(setting["n"]), int(setting["d"])
    X = rng.standard_normal((n + FRESH, d))
    y = (X @ rng.standard_normal(d) > 0).astype(np.float64)
    X = normalized(X, setting["row_norm"])
    found = classified(X[:n], y[:n], dict(setting) | {"penalty": 0.0})
    fresh, labels = X[n:], y[n:]

    def measure(w: Doubles) -> dict[str, float]:
        g = fresh.T @ LOSS.derivatives(fresh @ w, labels) / FRESH
        return {"population_gradient": float(np.linalg.norm(g))}

    return replace(found, measure=measure)


POPULATION = DataSet(
    name="synthetic, fresh rows", draw=draw_population,
    says=f"as synthetic; the gradient is measured on {FRESH:,} rows that no fit has read",
)  # fmt: skip
