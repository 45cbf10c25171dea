"""Tao et al. 2022, descent (Algorithm 2, theorems 6 to 9): experiments of our own."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike

from experiments.claims import (
    MINIMAX,
    Claim,
    affordable,
    all_of,
    lower,
    no_slower,
    of,
    untestable,
    where_better,
)
from experiments.data.huber import HUBER
from experiments.data.means import LOGNORMAL, PARETO, SHIFTED_STUDENT
from experiments.methods import Auto, Printed, Published, gaussian_multiplier
from experiments.study import Choice, Grid, Setting, Study, Task
from experiments.tao2022_means import (
    AUTO_MEAN,
    BUDGET,
    CONFIDENCE,
    DELTA,
    FEATURES,
    NOTHING,
    RECORDS,
    RISK,
    THRESHOLD,
    exponent,
)
from privtail.algorithms import (
    MedianOfMeansDescent,
    Result,
)
from privtail.domains import Domain
from privtail.linear_model import DPHuberRegressor
from privtail.losses import AnyLoss
from privtail.trusted.budget import Budget
from privtail.trusted.curator import Curator
from privtail.trusted.events import Plan
from privtail.trusted.mechanisms.noise import GaussianNoise
from privtail.trusted.problem import Problem
from privtail.trusted.sampling import Everyone


@dataclass(frozen=True, kw_only=True)
class AllRecords:
    """Algorithm 2's strongly convex branch to the letter: line 8 passes X, not X_t."""

    descent: MedianOfMeansDescent

    needs: ClassVar[tuple[str, ...]] = ("prox",)

    def plan(self, multiplier: float, problem: Problem) -> Plan:
        """One release of all records per step."""
        return replace(self.descent, sampling=Everyone()).plan(multiplier, problem)

    def run(
        self, curator: Curator, loss: AnyLoss, domain: Domain, multiplier: float,
        start: ArrayLike | None = None,
    ) -> Result:  # fmt: skip
        """The last iterate."""
        this = self.descent
        w = np.zeros((curator.problem.rows, 1))
        for batch in curator.rounds(Everyone(), this.steps):
            g = batch.gradient(loss, w, this.mean).release(GaussianNoise(multiplier))
            w = domain.prox(w - this.step_size * g.reshape(w.shape), this.step_size)
        return Result(w, this.steps, multiplier)


def strongly_convex(task: Task, budget: Budget, setting: Setting) -> MedianOfMeansDescent:
    """Theorem 7 with a public number of steps, on disjoint parts."""
    found = MedianOfMeansDescent.from_theory(
        task.n, task.d, budget, moment=task.truth["u"], order=task.truth["v"],
        strong_convexity=1.0, curvature=1.0, most_steps=int(setting["steps"]),
        failure_probability=setting["failure_probability"],
    )  # fmt: skip
    return replace(found, threshold=found.threshold * setting["threshold_factor"])


def on_all_records(task: Task, budget: Budget, setting: Setting) -> AllRecords:
    """The same to the letter."""
    return AllRecords(descent=strongly_convex(task, budget, setting))


def printed_strongly_convex(algorithm: AllRecords, problem: Problem, budget: Budget) -> float:
    """Algorithm 3, line 12, at line 6's epsilon."""
    return _printed_step(algorithm.descent, problem, budget.epsilon, budget.delta)


def convex(task: Task, budget: Budget, setting: Setting) -> MedianOfMeansDescent:
    """Theorem 6 with T capped; a run without noise takes the parameters of epsilon = 1."""
    known = budget if budget.private else replace(budget, epsilon=1.0)
    found = MedianOfMeansDescent.from_theory(
        task.n, task.d, known, moment=task.truth["u"], order=task.truth["v"],
        gradient_norm=task.truth["gradient norm"], diameter=2.0,
        failure_probability=setting["failure_probability"], most_steps=int(setting["most_steps"]),
    )  # fmt: skip
    return replace(found, step_size=found.step_size * setting["step_factor"])


def printed_convex(algorithm: MedianOfMeansDescent, problem: Problem, budget: Budget) -> float:
    """Lines 3 and 8: eps/(2 sqrt(2 T log(2/delta))) and delta/(2 T) a step."""
    share = 2 * math.sqrt(2 * algorithm.steps * math.log(2 / budget.delta))
    return _printed_step(
        algorithm, problem, budget.epsilon / share, budget.delta / (2 * algorithm.steps)
    )


def _printed_step(
    algorithm: MedianOfMeansDescent, problem: Problem, epsilon: float, delta: float
) -> float:
    root = math.sqrt(8 * problem.d * math.log(1.25 / delta))
    std = root * algorithm.threshold * algorithm.blocks / (problem.n * epsilon)
    return gaussian_multiplier(std, problem.gradient(algorithm.mean))


PARTS = Published(name="Algorithm 2", build=strongly_convex, keeps_path=False)
ALL_RECORDS = Printed(
    Published(
        name="Algorithm 2, line 8", build=on_all_records, printed=printed_strongly_convex,
        keeps_path=False,
    )
)  # fmt: skip
STEPS = Choice(
    name="steps", value=10, other=40,
    reason="theorem 7 prints T by a G that is not defined; every step halves the distance, and "
    "2^-10 is below all errors. G = 1/n gives 30 to 46 steps",
)  # fmt: skip
STRONG_N = Study(
    name="tao2022-strong-n",
    item="theorems 7 and 8",
    title="Strongly convex, d = 2: excess risk against n",
    axis=RECORDS,
    metrics=(RISK,),
    data=(PARETO[0.5], PARETO[1.0], SHIFTED_STUDENT, LOGNORMAL),
    methods=(PARTS, ALL_RECORDS, AUTO_MEAN, NOTHING),
    quick=Grid(
        fixed={"d": 2}, points=(3e3, 1e4, 3e4, 1e5), epsilons=(1.0,), repetitions=30, varied=4
    ),
    full=Grid(
        fixed={"d": 2},
        points=(1e4, 3e4, 1e5, 3e5, 1e6, 3e6),
        epsilons=(0.1, 1.0),
        repetitions=20,
        varied=5,
    ),
    guides={
        **{PARETO[v].name: -2 * exponent(v) for v in (0.5, 1.0)},
        SHIFTED_STUDENT.name: -2 * exponent(0.5),
        LOGNORMAL.name: -2 * exponent(1.0),
    },
    floors={
        **{PARETO[v].name: -2 * exponent(v) for v in (0.5, 1.0)},
        SHIFTED_STUDENT.name: -2 * exponent(0.5),
        LOGNORMAL.name: -2 * exponent(1.0),
    },
    delta=lambda n: DELTA,
    choices=(CONFIDENCE, THRESHOLD, STEPS),
    claims=(
        Claim(
            "Ours: Algorithm 2 is (ε, δ)-DP with line 8 as the text at hand prints it, where every "
            "step reads all of X (errata T22-2).",
            affordable("Algorithm 2, line 8"),
        ),
        *(
            Claim(
                f"Its excess risk is O(n^-{2 * exponent(v):.2f}) for v = {v:g} (theorem 7).",
                no_slower("Algorithm 2", -2 * exponent(v), within=0.1, datasets=of(PARETO[v])),
            )
            for v in (0.5, 1.0)
        ),
        Claim(
            "So it is on t and lognormal data (theorem 7).",
            all_of(
                no_slower(
                    "Algorithm 2", -2 * exponent(0.5), within=0.1, datasets=of(SHIFTED_STUDENT)
                ),
                no_slower("Algorithm 2", -2 * exponent(1.0), within=0.1, datasets=of(LOGNORMAL)),
            ),
        ),
        Claim(
            "n^(-2v/(1+v)) is optimal (theorem 8).",
            untestable(MINIMAX),
        ),
        Claim(
            "Ours: Algorithm 2 is of use, that is better than w = 0, for n up to 100,000.",
            lower("Algorithm 2", "no data, w = 0"),
        ),
        Claim("Ours: private_mean is more accurate.", lower("auto", "Algorithm 2")),
    ),
    panels="dataset",
    expectation="excess risk ≤ Õ(u^(2/(1+v)) d^((1+2v)/(1+v)) (εn)^(-2v/(1+v)))",
)

STRONG_EPSILON = Study(
    name="tao2022-strong-epsilon",
    item="theorem 7",
    title="Strongly convex, d = 2, n = 30,000: excess risk against ε",
    axis=BUDGET,
    metrics=(RISK,),
    data=(PARETO[0.5], PARETO[1.0]),
    methods=(PARTS, ALL_RECORDS, AUTO_MEAN, NOTHING),
    quick=Grid(fixed={"d": 2, "n": 3e4}, epsilons=(0.1, 0.3, 1.0), repetitions=40, varied=0),
    full=Grid(fixed={"d": 2, "n": 1e6}, epsilons=(0.03, 0.1, 0.3, 1.0), repetitions=20, varied=5),
    guides={PARETO[v].name: -2 * exponent(v) for v in (0.5, 1.0)},
    floors={PARETO[v].name: -2 * exponent(v) for v in (0.5, 1.0)},
    delta=lambda n: DELTA,
    choices=(CONFIDENCE, THRESHOLD, STEPS),
    claims=(
        Claim(
            "The excess risk is O(ε^(-2v/(1+v))) (theorem 7).",
            all_of(
                *(
                    no_slower("Algorithm 2", -2 * exponent(v), within=0.1, datasets=of(PARETO[v]))
                    for v in (0.5, 1.0)
                )
            ),
        ),
    ),
    panels="dataset",
)

STRONG_D = Study(
    name="tao2022-strong-d",
    item="theorem 7",
    title="Strongly convex, n = 30,000: excess risk against d",
    axis=FEATURES,
    metrics=(RISK,),
    data=(PARETO[0.5], PARETO[1.0]),
    methods=(PARTS, ALL_RECORDS, AUTO_MEAN, NOTHING),
    quick=Grid(
        fixed={"n": 3e4}, points=(1, 2, 4, 8, 16), epsilons=(1.0,), repetitions=24, varied=0
    ),
    full=Grid(
        fixed={"n": 1e6}, points=(1, 3, 10, 30), epsilons=(0.1, 1.0), repetitions=20, varied=5
    ),
    guides={PARETO[v].name: 1 + exponent(v) for v in (0.5, 1.0)},
    floors={PARETO[v].name: 1 + exponent(v) for v in (0.5, 1.0)},
    delta=lambda n: DELTA,
    choices=(CONFIDENCE, THRESHOLD, STEPS),
    claims=(
        Claim(
            "The excess risk is O(d^((1+2v)/(1+v))), but for logarithms (theorem 7).",
            all_of(
                *(
                    no_slower("Algorithm 2", 1 + exponent(v), within=0.2, datasets=of(PARETO[v]))
                    for v in (0.5, 1.0)
                )
            ),
        ),
    ),
    panels="dataset",
)

CONVEX_N = Study(
    name="tao2022-convex-n",
    item="theorems 6 and 9",
    title="Convex, Huber's loss, d = 20: excess risk against n",
    axis=RECORDS,
    metrics=(RISK,),
    data=(HUBER[0.5], HUBER[1.0]),
    methods=(
        Published(name="Algorithm 2", build=convex, printed=printed_convex, keeps_path=False),
        Published(name="Algorithm 2, no noise", build=convex, private=False, keeps_path=False),
        Auto(make=lambda task, options: DPHuberRegressor(alpha=0.0, **options)),
        NOTHING,
    ),
    quick=Grid(fixed={"d": 20}, points=(1e3, 3e3, 1e4), epsilons=(1.0,), repetitions=6, varied=3),
    full=Grid(
        fixed={"d": 20},
        points=(1e3, 3e3, 1e4, 3e4, 1e5),
        epsilons=(0.1, 1.0),
        repetitions=10,
        varied=3,
    ),
    guides={HUBER[v].name: -exponent(v) for v in (0.5, 1.0)},
    floors={HUBER[v].name: -exponent(v) for v in (0.5, 1.0)},
    delta=lambda n: DELTA,
    choices=(
        CONFIDENCE,
        Choice(name="most_steps", value=600, reason="T of theorem 6 grows like n^(2v/(1+v))"),
        Choice(
            name="step_factor",
            value=1.0,
            other=0.1,
            reason="theorem 6's step takes no notice of the noise, which is about ten times R",
        ),
    ),
    claims=(
        Claim("Algorithm 2 is (ε, δ)-DP where it is convex.", affordable("Algorithm 2")),
        *(
            Claim(
                f"Its excess risk is O(n^-{exponent(v):.2f}) for v = {v:g} (theorem 6).",
                where_better(
                    "Algorithm 2",
                    "no data, w = 0",
                    no_slower("Algorithm 2", -exponent(v), within=0.1, datasets=of(HUBER[v])),
                    datasets=of(HUBER[v]),
                ),
            )
            for v in (0.5, 1.0)
        ),
        Claim(
            "It grows with d as d^((1+4v)/(2+2v)) at most (theorem 6).",
            untestable("no rate shows where the risk is not below that of w = 0, as it is here"),
        ),
        Claim(
            "n^(-v/(1+v)) is optimal (theorem 9).",
            untestable(MINIMAX),
        ),
        Claim("Ours: DPHuberRegressor is more accurate.", lower("auto", "Algorithm 2")),
    ),
    panels="dataset",
    expectation="excess risk ≤ Õ(d^((1+4v)/(2+2v)) (εn)^(-v/(1+v)))",
)

STUDIES = (STRONG_N, STRONG_EPSILON, STRONG_D, CONVEX_N)
