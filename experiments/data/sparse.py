"""A sparse line whose errors have heavy tails."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from experiments.data.tails import Lognormal, Pareto, StudentT, Tail, barely
from experiments.study import DataSet, Doubles, Setting, Task
from privtail.domains import L2Ball
from privtail.losses import SquaredLoss


@dataclass(frozen=True)
class SparseLine:
    """y = <w*, x> + e: signs x_j, e centred, w* of ``sparsity`` equal entries and norm 1.

    The risk has curvature 1 in every direction. At w* the moment of a gradient coordinate is
    E |e|^(1+v), at most 2^(1+v) times the raw moment of the law of e.
    """

    law: Tail
    v: float

    def __call__(self, rng: np.random.Generator, setting: Setting) -> Task:
        """``excess risk`` is |w - w*|^2/2, ``found`` the share of w*'s entries that are not 0."""
        n, d, s = int(setting["n"]), int(setting["d"]), int(setting["sparsity"])
        w_star = np.zeros((d, 1))
        w_star[:s, 0] = (-1.0) ** np.arange(s) / math.sqrt(s)
        signs = rng.integers(0, 2, (n, d), dtype=np.int8)
        X: Doubles = np.asarray(1.0 - 2.0 * signs, dtype=np.float64)
        y = (X @ w_star)[:, 0] + self.law.draw(rng, (n,)) - self.law.mean

        def measure(w: Doubles) -> dict[str, float]:
            return {
                "excess risk": float(((w - w_star) ** 2).sum() / 2),
                "found": float(np.count_nonzero(w[:s]) / s),
            }

        return Task(
            X=X, y=y, loss=SquaredLoss(), domain=L2Ball(radius=1000.0), measure=measure,
            truth={"v": self.v, "u": self.law.moment(1 + self.v), "w": w_star},
        )  # fmt: skip


def sparse(law: Tail, v: float) -> DataSet:
    """The data set of a law that is known to have a moment of order 1 + v."""
    return DataSet(name=f"sparse, {law.name}, v = {v:g}", draw=SparseLine(law, v))


SPARSE_PARETO = {v: sparse(Pareto(barely(1 + v)), v) for v in (0.5, 1.0)}
SPARSE_STUDENT = sparse(StudentT(barely(2.0)), 1.0)
SPARSE_LOGNORMAL = sparse(Lognormal(1.0), 1.0)


def _columns(rng: np.random.Generator, setting: Setting) -> Task:
    """Columns of t(3) about means that are 1/sqrt(s) in ``sparsity`` columns and else 0."""
    n, d, s = int(setting["n"]), int(setting["d"]), int(setting["sparsity"])
    mean = np.zeros((d, 1))
    mean[:s, 0] = (-1.0) ** np.arange(s) / math.sqrt(s)
    X = mean[:, 0] + StudentT(3.0).draw(rng, (n, d))

    def measure(w: Doubles) -> dict[str, float]:
        return {"error": float(np.linalg.norm(w - mean))}

    return Task(
        X=X, y=np.zeros(n), loss=SquaredLoss(), domain=L2Ball(radius=1000.0), measure=measure,
        truth={"w": mean},
    )  # fmt: skip


SPARSE_COLUMNS = DataSet(name="sparse means, t(3)", draw=_columns)
