"""Ways to find w: a published algorithm, privtail's default, a fit without privacy."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from experiments.study import (
    AS_PRINTED,
    AUTO,
    MOST_POINTS,
    NO_PRIVACY,
    STATED,
    Accounting,
    Cell,
    Doubles,
    Outcome,
    Setting,
    Task,
)
from privtail.algorithms.protocol import Algorithm
from privtail.calibration import calibrate
from privtail.domains import Domain
from privtail.trusted.accountants import cost
from privtail.trusted.budget import Budget
from privtail.trusted.curator import Curator
from privtail.trusted.events import Plan
from privtail.trusted.mechanisms.noise import GaussianNoise
from privtail.trusted.problem import Problem
from privtail.trusted.sensitivity import Sensitivity

SLACK = 1 + 1e-9
"""A budget of just what a plan costs."""

LEAST = 1e-12
"""The budget of a plan that costs delta alone: its epsilon is 0, which no budget may be."""


def gaussian_multiplier(std: float, answer: Sensitivity) -> float:
    """The multiplier of Gaussian noise with this standard deviation on ``answer``.

    For example ``gaussian_multiplier(sigma, problem.sampled(algorithm.sampling).gradient(mean))``.
    """
    return std / GaussianNoise(1.0).event(answer).std


def concentrated(budget: Budget) -> float:
    """The rho of rho + 2 sqrt(rho log(1/delta)) = eps, by which the papers set Gaussian noise."""
    logs = math.log(1 / budget.delta)
    return (math.sqrt(logs + budget.epsilon) - math.sqrt(logs)) ** 2


class Watched:
    """A domain that keeps what its prox and projection returned: the path of an algorithm.

    With ``averages`` it keeps their running means.
    """

    def __init__(self, domain: Domain, *, averages: bool = False) -> None:
        self.domain = domain
        self.averages = averages
        self.path: list[Doubles] = []

    def value(self, w: Doubles) -> float:
        """As of the domain."""
        return self.domain.value(w)

    def prox(self, w: Doubles, step: float) -> Doubles:
        """As of the domain, kept."""
        return self._kept(self.domain.prox(w, step))

    def project(self, w: Doubles) -> Doubles:
        """As of the domain, kept."""
        domain: Any = self.domain
        return self._kept(domain.project(w))

    def scaled(self, scales: ArrayLike) -> Domain:
        """As of the domain."""
        return self.domain.scaled(scales)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.domain, name)

    def _kept(self, w: Doubles) -> Doubles:
        before = len(self.path)
        mean = (before * self.path[-1] + w) / (before + 1) if self.averages and before else w
        self.path.append(mean)
        return w


def thinned(path: list[Doubles]) -> tuple[tuple[int, Doubles], ...]:
    """At most `MOST_POINTS` of the path, the first and the last among them, counted from 1."""
    if not path:
        return ()
    steps = np.unique(np.geomspace(1, len(path), min(MOST_POINTS, len(path))).round().astype(int))
    return tuple((int(t), path[t - 1]) for t in steps)


@dataclass(frozen=True, kw_only=True)
class Published:
    """An algorithm of a paper.

    Attributes
    ----------
    build : algorithm of (task, budget, setting). The budget is the stated one, also as printed.
    printed : noise multiplier that the paper prints, of (algorithm, problem, budget); None where
        the paper's noise is not told apart from the calibrated one.
    private : False runs it once, without noise, as a baseline.
    start : first w of (task, rng), or None for zeros.
    domain : where it runs, of (task, setting); None for that of the task.
    keeps_path : whether the iterates are rows of their own (with the axis ``iteration``).
    averages : whether its answer after t steps is the mean of t iterates.
    """

    name: str
    build: Callable[[Task, Budget, Setting], Algorithm]
    printed: Callable[[Any, Problem, Budget], float] | None = None
    private: bool = True
    start: Callable[[Task, np.random.Generator], Doubles] | None = None
    domain: Callable[[Task, Setting], Domain] | None = None
    keeps_path: bool = True
    averages: bool = False

    @property
    def accountings(self) -> tuple[Accounting, ...]:
        """As printed and at the stated epsilon, or without privacy."""
        if not self.private:
            return (NO_PRIVACY,)
        return (STATED,) if self.printed is None else (AS_PRINTED, STATED)

    def run(self, task: Task, cell: Cell, setting: Setting, seed: int) -> Outcome:
        """Calibrate, or price the printed noise; then run on the simulated sampler."""
        budget = Budget(cell.epsilon, cell.delta, cell.neighbours)
        algorithm = self.build(task, budget, setting)
        problem = Problem(n=task.n, d=task.d, intercept=task.intercept)
        if cell.accounting == AS_PRINTED:
            assert self.printed is not None
            multiplier = self.printed(algorithm, problem, budget)
        else:
            multiplier = _calibrated(algorithm, problem, budget)  # type: ignore[arg-type]
        plan = algorithm.plan(multiplier, problem)
        spent = _priced(plan, cell.delta, cell.neighbours)
        curator = Curator(
            task.X, task.y, budget=replace(budget, epsilon=max(spent * SLACK, LEAST)),
            noise="simulated", random_state=seed, intercept=task.intercept,
            classes=(0.0, 1.0) if task.loss.targets == "binary" else None,
        )  # fmt: skip
        curator.open(plan)
        domain = task.domain if self.domain is None else self.domain(task, setting)
        watched = Watched(domain, averages=self.averages)
        start = None if self.start is None else self.start(task, np.random.default_rng(seed))
        result = algorithm.run(
            curator, task.loss, watched if self.keeps_path else domain, multiplier, start
        )
        return Outcome(
            w=result.w, epsilon_true=spent, path=thinned(watched.path),
            statement=_sentence(plan, spent, cell),
        )  # fmt: skip


@dataclass(frozen=True)
class Printed:
    """A published algorithm as printed alone, where at the stated epsilon it is another one."""

    method: Published
    accountings: tuple[Accounting, ...] = (AS_PRINTED,)

    @property
    def name(self) -> str:
        """That of the method."""
        return self.method.name

    def run(self, task: Task, cell: Cell, setting: Setting, seed: int) -> Outcome:
        """As the method does."""
        return self.method.run(task, cell, setting, seed)


@dataclass(frozen=True, kw_only=True)
class Auto:
    """The default of privtail: ``make(task, options)`` returns an estimator.

    The options go to it as they are, and hold epsilon, delta, neighbours, fit_intercept, noise and
    random_state.
    """

    make: Callable[[Task, dict[str, Any]], Any]
    name: str = "auto"
    accountings: tuple[Accounting, ...] = (AUTO,)

    def run(self, task: Task, cell: Cell, setting: Setting, seed: int) -> Outcome:
        """Fit the estimator."""
        options = {
            "epsilon": cell.epsilon, "delta": cell.delta, "neighbours": cell.neighbours,
            "fit_intercept": task.intercept, "noise": "simulated", "random_state": seed,
        }  # fmt: skip
        model = self.make(task, options).fit(task.X, task.y)
        spent = _priced(model.privacy_.plan, cell.delta, cell.neighbours)
        return Outcome(
            w=coefficients(model, task), epsilon_true=spent,
            statement=_sentence(model.privacy_.plan, spent, cell),
        )  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class Reference:
    """A fit without privacy: ``solve(task, setting)`` returns w, or a fitted scikit-learn model."""

    name: str
    solve: Callable[[Task, Setting], Any]
    accountings: tuple[Accounting, ...] = (NO_PRIVACY,)

    def run(self, task: Task, cell: Cell, setting: Setting, seed: int) -> Outcome:
        """Solve."""
        found = self.solve(task, setting)
        w = coefficients(found, task) if hasattr(found, "coef_") else np.asarray(found, float)
        return Outcome(w=w.reshape(-1, 1), epsilon_true=math.inf, statement="not private")


def coefficients(model: Any, task: Task) -> Doubles:
    """The w, (d + intercept, 1), of a fitted linear model."""
    w = np.asarray(model.coef_, dtype=np.float64).ravel()
    return (np.append(w, model.intercept_) if task.intercept else w).reshape(-1, 1)


@cache
def _calibrated(algorithm: Algorithm, problem: Problem, budget: Budget) -> float:
    return calibrate(lambda multiplier: algorithm.plan(multiplier, problem), budget)


@cache
def _priced(plan: Plan, delta: float, neighbours: Any) -> float:
    return cost(plan, neighbours).epsilon(delta)


def _sentence(plan: Plan, spent: float, cell: Cell) -> str:
    if math.isinf(spent):
        return "not private: no noise"
    laws = ", ".join(sorted({e.law for r in plan for e in r.events}))
    releases = sum(len(r.events) * r.times for r in plan)
    return (
        f"NOT PRIVATE: simulated; {releases} releases ({laws}), epsilon {spent:.4g} at delta "
        f"{cell.delta:.3g}, {cell.neighbours}"
    )
