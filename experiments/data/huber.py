"""A convex problem with heavy-tailed gradients: Huber's loss, features of Student's t."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from experiments.data.tails import StudentT, barely
from experiments.study import DataSet, Doubles, Setting, Task
from privtail.domains import L2Ball
from privtail.losses import HuberLoss

LOSS = HuberLoss(threshold=1.0)
ERRORS = StudentT(3.0)
TEST_ROWS = 50_000


@dataclass(frozen=True)
class HuberLine:
    """y = <w*, x> + e with |w*| = 1/2 in the unit ball, x of t(1 + v + .1) and e of t(3).

    A gradient coordinate is at most |x_j|, so its moment of order 1 + v is at most that of x_j.
    """

    v: float

    def __call__(self, rng: np.random.Generator, setting: Setting) -> Task:
        """``excess risk`` is a mean over public test records, whose errors have their own law."""
        n, d = int(setting["n"]), int(setting["d"])
        law = StudentT(barely(1 + self.v))
        w_star = np.full((d, 1), 0.5 / math.sqrt(d))
        X = law.draw(rng, (n, d))
        y = (X @ w_star)[:, 0] + ERRORS.draw(rng, (n,))
        public = np.random.default_rng(20220)
        x, e = law.draw(public, (TEST_ROWS, d)), ERRORS.draw(public, (TEST_ROWS,))
        least = LOSS.values(np.zeros((TEST_ROWS, 1)), e)

        def measure(w: Doubles) -> dict[str, float]:
            risk = LOSS.values(x @ (w - w_star), e) - least
            return {"excess risk": float(risk.mean())}

        return Task(
            X=X, y=y, loss=LOSS, domain=L2Ball(radius=1.0), measure=measure,
            truth={
                "v": self.v, "u": law.moment(1 + self.v), "w": w_star,
                "gradient norm": float(np.linalg.norm(x, axis=1).mean()),
            },
        )  # fmt: skip


HUBER = {v: DataSet(name=f"Huber line, v = {v:g}", draw=HuberLine(v)) for v in (0.5, 1.0)}
