"""Wang, Xiao, Devadas, Xu, ICML 2020: figures 1 to 4."""

from __future__ import annotations

import math
from typing import Any

from experiments.data.ridge_lognormal import RIDGE_LOGNORMAL
from experiments.methods import Auto, Published, gaussian_multiplier
from experiments.study import Axis, Choice, Grid, Metric, Setting, Study, Task
from privtail.algorithms import CatoniDescent
from privtail.linear_model import DPRidge
from privtail.trusted.budget import Budget
from privtail.trusted.problem import Problem


def catoni(task: Task, budget: Budget, setting: Setting) -> CatoniDescent:
    """Algorithm 4."""
    return CatoniDescent(
        steps=int(setting["steps"]), step_size=setting["step_size"], scale=setting["scale"],
        smoothing=math.log(1 / 0.05),
    )  # fmt: skip


def printed(algorithm: CatoniDescent, problem: Problem, budget: Budget) -> float:
    """Lines 1 and 4: variance 16 T d s^2/(9 n^2 rho)."""
    log_delta = math.log(1 / budget.delta)
    rho = (math.sqrt(log_delta + budget.epsilon) - math.sqrt(log_delta)) ** 2
    std = 4 * algorithm.scale * math.sqrt(algorithm.steps * problem.d / rho) / (3 * problem.n)
    return gaussian_multiplier(std, problem.gradient(algorithm.mean))


def auto(task: Task, options: dict[str, Any]) -> DPRidge:
    """The default of privtail for the same objective."""
    return DPRidge(alpha=0.01, **options)


STUDIES = (
    Study(
        name="wang2020-figure-1a",
        item="figure 1a",
        title="Ridge regression, lognormal noise: error against iteration",
        axis=Axis(name="iteration", label="iteration"),
        metrics=(Metric(name="error", label="estimation error ‖w − w*‖₂"),),
        data=(RIDGE_LOGNORMAL,),
        methods=(
            Published(name="Algorithm 4", build=catoni, printed=printed),
            Published(name="RGD", build=catoni, private=False),
            Auto(make=auto),
        ),
        quick=Grid(fixed={"n": 10_000, "d": 10}, epsilons=(0.1, 0.5, 1.0), repetitions=3),
        full=Grid(fixed={"n": 100_000, "d": 10}, epsilons=(0.1, 0.5, 1.0), repetitions=20),
        delta=lambda n: 1 / n,
        choices=(
            Choice(name="steps", value=50, reason="the curves are flat by then"),
            Choice(name="step_size", value=0.2, reason="below 1/curvature", other=0.5),
            Choice(name="scale", value=5.0, reason="several typical gradient coordinates"),
            Choice(name="sigma", value=1.0, reason="no sixth moment of the gradient"),
            Choice(name="alpha", value=0.01, reason="the bias stays below the error"),
        ),
    ),
)
