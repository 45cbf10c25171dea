"""l1 regression whose features have few moments, with a risk that is known almost exactly."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

import numpy as np
from scipy.special import gammaln, ndtri, stdtr, stdtrit

from experiments.data.tails import Lognormal, Pareto, StudentT, Tail, barely
from experiments.study import DataSet, Doubles, Setting, Task
from privtail.domains import L2Ball
from privtail.losses import AbsoluteLoss

ERRORS = StudentT(2.1)
TEST_ROWS = 20_000
RADIUS = 4.0


def excess_of_shift(c: Doubles, degrees: float = ERRORS.degrees) -> Doubles:
    """E |e - c| - E |e| for e of Student's t: 2 times the integral of F - 1/2 from 0 to c."""
    log_top = gammaln((degrees + 1) / 2) - gammaln(degrees / 2)
    log_top -= math.log(degrees * math.pi) / 2
    density = np.exp(log_top - (degrees + 1) / 2 * np.log1p(c * c / degrees))
    tail = 2 * ((degrees + c * c) * density - degrees * math.exp(log_top)) / (degrees - 1)
    return np.asarray(c * (2 * stdtr(degrees, c) - 1) + tail)


def stratified(law: Tail, count: int) -> Doubles:
    """|X| at ``count`` equally likely levels: a sample with little error in the tail."""
    level = (np.arange(count) + 0.5) / count
    if isinstance(law, Pareto):
        return np.asarray((1 - level) ** (-1 / law.shape))
    if isinstance(law, StudentT):
        return np.asarray(stdtrit(law.degrees, (1 + level) / 2))
    if isinstance(law, Lognormal):
        return np.asarray(np.exp(law.sigma * ndtri(level)))
    raise TypeError(law)


@dataclass(frozen=True)
class AbsoluteLine:
    """y = <w*, x> + e with |w*| = 2 in the ball of radius 4, e of t(2.1); tau = 1.

    ``of`` says what has the moment E |.|^order = 1: the norm of x (assumptions 1 and 3), whose
    direction is uniform, or every coordinate (assumptions 2 and 4), whose signs are fair.
    """

    law: Tail
    order: float
    of: Literal["norm", "coordinates"] = "norm"

    def __call__(self, rng: np.random.Generator, setting: Setting) -> Task:
        """``excess risk`` integrates e exactly, and x over public test records."""
        n, d = int(setting["n"]), int(setting["d"])
        w_star = rng.standard_normal((d, 1))
        w_star *= RADIUS / 2 / np.linalg.norm(w_star)
        X = self._features(rng, np.abs(self.law.draw(rng, self._shape(n, d))), d)
        y = (X @ w_star)[:, 0] + ERRORS.draw(rng, (n,))
        x = self._test(d)

        def measure(w: Doubles) -> dict[str, float]:
            return {"excess risk": float(excess_of_shift((x @ (w - w_star))[:, 0]).mean())}

        return Task(
            X=X, y=y, loss=AbsoluteLoss(), domain=L2Ball(radius=RADIUS), measure=measure,
            truth={"theta": self.order, "of": self.of, "w": w_star},
        )  # fmt: skip

    def _shape(self, n: int, d: int) -> tuple[int, int]:
        return (n, 1) if self.of == "norm" else (n, d)

    def _features(self, rng: np.random.Generator, sizes: Doubles, d: int) -> Doubles:
        sizes = sizes / self.law.moment(self.order) ** (1 / self.order)
        if self.of == "coordinates":
            return np.asarray(sizes * rng.choice(np.array([-1.0, 1.0]), sizes.shape))
        directions = rng.standard_normal((len(sizes), d))
        return np.asarray(sizes * directions / np.linalg.norm(directions, axis=1, keepdims=True))

    def _test(self, d: int) -> Doubles:
        public = np.random.default_rng(20221)
        columns = 1 if self.of == "norm" else d
        levels = stratified(self.law, TEST_ROWS)
        sizes = np.column_stack([public.permutation(levels) for _ in range(columns)])
        return self._features(public, sizes, d)


def absolute(law: Tail, order: float, of: Literal["norm", "coordinates"] = "norm") -> DataSet:
    """The data set of a law, scaled to have E |.|^order = 1."""
    what = "|x|" if of == "norm" else "x_j"
    return DataSet(
        name=f"{what} of {law.name}, theta = {order:g}", draw=AbsoluteLine(law, order, of)
    )


NORM = {theta: absolute(Pareto(barely(theta)), theta) for theta in (1.25, 1.5, 2.0)}
COORDINATES = {
    theta: absolute(StudentT(barely(theta)), theta, "coordinates") for theta in (1.5, 2.0)
}
NORM_LOGNORMAL = absolute(Lognormal(1.0), 2.0)
NORM_STUDENT = absolute(StudentT(barely(2.0)), 2.0)
