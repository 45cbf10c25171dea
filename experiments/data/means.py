"""Columns of independent copies of one law, and their mean: the problem of T22's lower bounds."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from experiments.data.tails import Laplace, Lognormal, Pareto, StudentT, Tail, barely
from experiments.study import DataSet, Doubles, Setting, Task
from privtail.domains import L2Ball
from privtail.losses import GeneralLoss

RADIUS = 1000.0
"""Of the set: so large that projecting onto it never hides an error."""

MEAN_LOSS = GeneralLoss(
    value=lambda w, x, y: ((x - w[:, 0]) ** 2).sum(axis=1) / 2,
    gradient=lambda w, x, y: (w[:, 0] - x)[:, :, None],
    trusted_rowwise=True,
    name="half squared distance",
    convex=True,
    curvature=1.0,
)
"""|w - x|^2 / 2: strongly convex and smooth with constants 1, minimized by the mean."""


@dataclass(frozen=True)
class Columns:
    """Records of d columns ``shift`` + law; the moment of order 1 + ``v`` is known, or a bound."""

    law: Tail
    v: float
    shift: float = 0.0

    @property
    def moment(self) -> float:
        """E |X|^(1+v); with a shift 2^v (E |X - shift|^(1+v) + shift^(1+v)), which is no less."""
        raw = self.law.moment(1 + self.v)
        return 2**self.v * (raw + abs(self.shift) ** (1 + self.v)) if self.shift else raw

    def __call__(self, rng: np.random.Generator, setting: Setting) -> Task:
        """``error`` is the distance to the mean, ``excess risk`` half its square."""
        n, d = int(setting["n"]), int(setting["d"])

        def measure(w: Doubles) -> dict[str, float]:
            error = float(np.linalg.norm(w[:, 0] - self.law.mean - self.shift))
            return {"error": error, "excess risk": error**2 / 2}

        return Task(
            X=self.shift + self.law.draw(rng, (n, d)), y=np.zeros(n), loss=MEAN_LOSS,
            domain=L2Ball(radius=RADIUS), measure=measure,
            truth={"v": self.v, "u": self.moment},
        )  # fmt: skip


def means(law: Tail, v: float, shift: float = 0.0) -> DataSet:
    """The data set of a law that is known to have a moment of order 1 + v."""
    moved = f"{shift:g} + " if shift else ""
    return DataSet(name=f"{moved}{law.name}, v = {v:g}", draw=Columns(law, v, shift))


PARETO = {v: means(Pareto(barely(1 + v)), v) for v in (0.25, 0.5, 0.75, 1.0)}
"""Tails that v barely allows: here a rate for the whole class can be seen."""
STUDENT = means(StudentT(barely(1.5)), 0.5)
SHIFTED_STUDENT = means(StudentT(barely(1.5)), 0.5, shift=1.0)
"""Where w = 0 is not the answer."""
LOGNORMAL = means(Lognormal(1.0), 1.0)
LAPLACE = means(Laplace(), 1.0, shift=1.0)
"""Symmetric and without heavy tails."""


def _any_v(rng: np.random.Generator, setting: Setting) -> Task:
    return Columns(Pareto(barely(1 + setting["v"])), setting["v"])(rng, setting)


ANY_V = DataSet(name="Pareto(1.1 + v)", draw=_any_v)
"""One data set for an axis of v."""
