"""Wang, Xiao, Devadas, Xu, ICML 2020, Algorithm 3 with Algorithm 2: as printed, and private.

As printed the noise of line 1 of Algorithm 2 follows a scale that one record can multiply by any
factor (docs/errata.md, W20-2). No budget pays for that, so the printed line is a transcription that
reads records without any privacy of its own. At the stated epsilon it is `TrimmedDescent`, which
truncates the same mean and has a smooth bound that is proved.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from experiments.methods import Published, Watched, thinned
from experiments.study import (
    AS_PRINTED,
    STATED,
    Accounting,
    Cell,
    Doubles,
    Outcome,
    Setting,
    Task,
)
from privtail.algorithms import TrimmedDescent
from privtail.losses import LogisticLoss, SquaredLoss
from privtail.trusted.budget import Budget
from privtail.trusted.problem import Problem


@dataclass(frozen=True, kw_only=True)
class AlgorithmThree:
    """Algorithm 3 with [a, b] = [-kappa/2, kappa/2]."""

    name: str
    kappa: float
    accountings: tuple[Accounting, ...] = (AS_PRINTED, STATED)

    def run(self, task: Task, cell: Cell, setting: Setting, seed: int) -> Outcome:
        """The transcription, or `TrimmedDescent`."""
        if cell.accounting == AS_PRINTED:
            return self._printed(task, cell, setting, np.random.default_rng(seed))
        return Published(name=self.name, build=self._private).run(task, cell, setting, seed)

    def _private(self, task: Task, budget: Budget, setting: Setting) -> TrimmedDescent:
        return TrimmedDescent(
            steps=int(setting["steps"]), step_size=setting["step_size"], low=-self.kappa / 2,
            high=self.kappa / 2, trim=int(setting["trimmed_part"] * task.n),
        )  # fmt: skip

    def _printed(
        self, task: Task, cell: Cell, setting: Setting, rng: np.random.Generator
    ) -> Outcome:
        domain, step = Watched(task.domain), setting["step_size"]
        X = np.hstack([task.X, np.ones((task.n, 1))]) if task.intercept else task.X
        steps, trim = int(setting["steps"]), int(setting["trimmed_part"] * task.n)
        a_call = tilde(cell.epsilon, cell.delta) / math.sqrt(X.shape[1] * steps)
        w, loss = np.zeros((X.shape[1], 1)), task.loss
        assert isinstance(loss, SquaredLoss | LogisticLoss)
        for _ in range(steps):  # line 2
            values = X * loss.derivatives(X @ w, task.y)  # line 3
            g = algorithm_2(values, a_call, -self.kappa / 2, self.kappa / 2, trim, rng)  # line 4
            w = domain.prox(w - step * g.reshape(w.shape), step)  # line 5
        return Outcome(
            w=w, epsilon_true=math.inf, path=thinned(domain.path),
            statement="NOT PRIVATE: a transcription of a box that is private at no epsilon",
        )  # fmt: skip


def tilde(epsilon: float, delta: float) -> float:
    """Line 1 of Algorithm 3; in line 4 the text at hand prints epsilon, probably a lost tilde."""
    logs = 2 * math.log(1 / delta)
    return math.sqrt(logs + 2 * epsilon) - math.sqrt(logs)


def algorithm_2(
    values: Doubles, epsilon: float, a: float, b: float, trim: int, rng: np.random.Generator
) -> Doubles:
    """Lines 1 to 3 as printed, of every column of ``values`` (n, d)."""
    t, s, kept = epsilon**2 / 16, epsilon / 4, len(values) - 2 * trim
    x = np.sort(values, axis=0)  # line 1
    scale = np.maximum((x[-1] - x[0]) / kept, math.exp(-trim * t) * (b - a))
    mean = np.clip(x[trim : len(x) - trim].mean(axis=0), a, b)  # line 2
    noise = np.sinh(rng.standard_normal(len(mean)))
    return np.asarray(mean + scale / s * noise)  # line 3


def clipped(kappa: float, task: Task, budget: Budget, setting: Setting) -> TrimmedDescent:
    """`AlgorithmThree` with every value clipped onto [a, b]: no box of the paper."""
    return TrimmedDescent.clipped(
        steps=int(setting["steps"]), step_size=setting["step_size"], low=-kappa / 2,
        high=kappa / 2, trim=int(setting["trimmed_part"] * task.n),
    )  # fmt: skip


def tilde_a_call(algorithm: TrimmedDescent, problem: Problem, budget: Budget) -> float:
    """epsilon~ / sqrt(d T) a call, theorem 4 in its corrected form."""
    calls = problem.rows * algorithm.steps
    return math.sqrt(calls) / tilde(budget.epsilon, budget.delta)
