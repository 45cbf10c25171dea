"""Wang & Xu, l1-norm regression: experiments of our own, since the paper printed none.

The features have moments that the theorems barely allow; tau = 1. The parameters are those of the
theorems with their O() at 1. Up to three dimensions the net is a lattice, above it is random.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from experiments.claims import (
    Claim,
    affordable,
    all_of,
    close,
    decreasing,
    lower,
    no_slower,
    of,
    where_better,
)
from experiments.data.absolute import COORDINATES, NORM, NORM_LOGNORMAL, NORM_STUDENT
from experiments.methods import Auto, Published, Reference
from experiments.study import Axis, Choice, Grid, Metric, Setting, Study, Task
from privtail.algorithms import NetSearch
from privtail.linear_model import DPLADRegressor
from privtail.trusted.budget import Budget
from privtail.trusted.problem import Problem

RISK = Metric(name="excess risk", label="excess risk")
RECORDS = Axis(name="n", label="records n", log=True)
NONE = "no data, w = 0"
SEARCH = "Algorithms 1 and 2"
PROOF = "the exponent of the proof"


def scale(task: Task, budget: Budget, setting: Setting) -> float:
    """The iota of theorems 1 and 2, (d log(n) log(1/eta)/(n eps))^(1/theta), times a factor."""
    logs = math.log(task.n) * math.log(1 / setting["failure_probability"])
    logs *= task.d if task.truth["of"] == "norm" else 1
    iota = (logs / (task.n * budget.epsilon)) ** (1 / task.truth["theta"])
    return float(setting["scale_factor"] * iota)


def search(task: Task, budget: Budget, setting: Setting) -> NetSearch:
    """Algorithm 1 for theta = 2, else 2, on a net of so many points."""
    return NetSearch(
        points=int(setting["points"]),
        scale=scale(task, budget, setting),
        order=task.truth["theta"],
    )


def other_scale(task: Task, budget: Budget, setting: Setting) -> NetSearch:
    """Theorem 2's printed iota for moments of coordinates: exponent (theta - 1)/theta."""
    theta = task.truth["theta"]
    iota = scale(task, budget, setting) ** (theta - 1)
    return NetSearch(points=int(setting["points"]), scale=iota, order=theta)


def printed(algorithm: NetSearch, problem: Problem, budget: Budget) -> float:
    """Line 2: Pr ~ exp(-n iota eps L/log(theta)), where eps/(2 log(theta)) is eps-DP."""
    return 1 / budget.epsilon


def of_the_proof(algorithm: NetSearch, problem: Problem, budget: Budget) -> float:
    """The sensitivity 2 log(theta)/(n iota) of the proof in the exponential mechanism."""
    return 4 / budget.epsilon


def auto(task: Task, options: dict[str, Any]) -> DPLADRegressor:
    """The default, which needs a delta."""
    return DPLADRegressor(**(options | {"delta": 1e-6}))


def exponent(theta: float) -> float:
    """(theta - 1)/theta."""
    return (theta - 1) / theta


PUBLISHED = Published(name=SEARCH, build=search, printed=printed, keeps_path=False)
DEFAULT = Auto(make=auto)
METHODS = (
    PUBLISHED,
    DEFAULT,
    Reference(name=NONE, solve=lambda task, setting: np.zeros(task.d)),
)
CHOICES = (
    Choice(
        name="failure_probability",
        value=0.05,
        reason="eta of the theorems, which leave it open",
    ),
    Choice(
        name="scale_factor",
        value=1.0,
        other=3.0,
        reason="iota with its O() at 1; a larger one truncates more and has less noise",
    ),
)
WITH_POINTS = (
    *CHOICES,
    Choice(
        name="points",
        value=1600,
        other=400,
        reason="a 1/n-net has (3 Delta n)^d points; the risk is quadratic at its minimum, and 40 "
        "by 40 are fine enough for all errors here",
    ),
)


def rate(theta: float, data: Any, sentence: str) -> Claim:
    """Excess risk against n."""
    return Claim(
        sentence,
        where_better(
            SEARCH,
            NONE,
            no_slower(SEARCH, -exponent(theta), within=0.1, datasets=of(data)),
            datasets=of(data),
        ),
    )


BY_N = (NORM[1.25], NORM[1.5], NORM[2.0], COORDINATES[1.5], COORDINATES[2.0], NORM_STUDENT,
        NORM_LOGNORMAL)  # fmt: skip

FULL_BY_N = Grid(
    fixed={"d": 2, "points": 10_000},
    points=(1e3, 3e3, 1e4, 3e4, 1e5),
    epsilons=(0.2, 1.0),
    repetitions=20,
    varied=3,
)

ERROR_N = Study(
    name="wang2022-n",
    item="theorems 1 and 2",
    title="ℓ1 regression, d = 2: excess risk against n",
    axis=RECORDS,
    metrics=(RISK,),
    data=BY_N,
    methods=METHODS,
    quick=Grid(
        fixed={"d": 2}, points=(1e3, 3e3, 1e4, 3e4), epsilons=(0.2,), repetitions=10, varied=3
    ),
    full=FULL_BY_N,
    guides={
        **{NORM[t].name: -exponent(t) for t in NORM},
        **{COORDINATES[t].name: -exponent(t) for t in COORDINATES},
        NORM_STUDENT.name: -0.5,
        NORM_LOGNORMAL.name: -0.5,
    },
    delta=lambda n: 0.0,
    choices=WITH_POINTS,
    claims=(
        Claim("Algorithms 1 and 2 are ε-DP.", affordable(SEARCH)),
        rate(2.0, NORM[2.0], "With second moments the excess risk is Õ(n^-0.5) (theorem 1)."),
        *(
            rate(
                t,
                NORM[t],
                f"With moments of order {t:g} it is Õ(n^-{exponent(t):.2f}) (theorem 2).",
            )
            for t in (1.5, 1.25)
        ),
        *(
            rate(
                t,
                COORDINATES[t],
                f"With moments of order {t:g} of every coordinate it is "
                f"Õ(n^-{exponent(t):.2f}) (theorem {1 if t == 2 else 2}).",
            )
            for t in (1.5, 2.0)
        ),
        rate(2.0, NORM_STUDENT, "So it is on features of t (theorem 1)."),
        rate(2.0, NORM_LOGNORMAL, "So it is on lognormal features (theorem 1)."),
        Claim("Ours: DPLADRegressor, (ε, 1e-6)-DP, is more accurate.", lower("auto", SEARCH)),
        Claim("Ours: it is for every law and every n.", lower("auto", SEARCH, everywhere=True)),
    ),
    panels="dataset",
    expectation="excess risk ≤ Õ(τ (d/(nε))^((θ−1)/θ)) under moments of the norm, "
    "Õ(τ d (1/(nε))^((θ−1)/θ)) under those of coordinates; ε-DP",
)

ERROR_EPSILON = Study(
    name="wang2022-epsilon",
    item="theorems 1 and 2",
    title="ℓ1 regression, d = 2, n = 10,000: excess risk against ε",
    axis=Axis(name="epsilon", label="budget ε", log=True),
    metrics=(RISK,),
    data=(NORM[1.5], NORM[2.0]),
    methods=(
        *METHODS,
        Published(name=PROOF, build=search, printed=of_the_proof, keeps_path=False),
    ),
    quick=Grid(fixed={"d": 2, "n": 1e4}, epsilons=(0.05, 0.1, 0.2, 0.5), repetitions=12, varied=0),
    full=Grid(
        fixed={"d": 2, "n": 1e5, "points": 10_000},
        epsilons=(0.02, 0.05, 0.1, 0.2, 0.5, 1.0),
        repetitions=16,
        varied=3,
    ),
    guides={NORM[t].name: -exponent(t) for t in (1.5, 2.0)},
    delta=lambda n: 0.0,
    choices=WITH_POINTS,
    claims=(
        Claim(
            "The excess risk is Õ(ε^-((θ−1)/θ)) (theorems 1 and 2).",
            all_of(
                *(
                    no_slower(SEARCH, -exponent(t), within=0.1, datasets=of(NORM[t]))
                    for t in (1.5, 2.0)
                )
            ),
        ),
        Claim(
            "With the sensitivity that the proof states the mechanism is ε-DP.",
            affordable(PROOF),
        ),
    ),
    panels="dataset",
)

ERROR_THETA = Study(
    name="wang2022-theta",
    item="theorem 2",
    title="ℓ1 regression, d = 2, n = 10,000: what a wrong θ costs",
    axis=RECORDS,
    metrics=(RISK,),
    data=(COORDINATES[1.5],),
    methods=(
        PUBLISHED,
        Published(name="ι as printed", build=other_scale, keeps_path=False),
        DEFAULT,
    ),
    quick=Grid(
        fixed={"d": 2}, points=(1e3, 3e3, 1e4, 3e4), epsilons=(0.2,), repetitions=10, varied=0
    ),
    full=FULL_BY_N,
    delta=lambda n: 0.0,
    choices=WITH_POINTS,
    claims=(
        Claim(
            "ι with the printed exponent (θ − 1)/θ does as well as with 1/θ, which balances the "
            "terms of the bound (theorem 2).",
            close("ι as printed", SEARCH, within=1.1),
        ),
    ),
    panels="dataset",
)

ERROR_D = Study(
    name="wang2022-d",
    item="theorems 1 and 2",
    title="ℓ1 regression, n = 10,000: excess risk against d, on nets of equal size",
    axis=Axis(name="d", label="features d", log=True),
    metrics=(RISK,),
    data=(NORM[1.5], NORM[2.0], COORDINATES[2.0]),
    methods=METHODS,
    quick=Grid(
        fixed={"n": 1e4}, points=(1, 2, 3, 5, 10), epsilons=(0.2,), repetitions=12, varied=0
    ),
    full=Grid(
        fixed={"n": 1e5, "points": 20_000},
        points=(1, 2, 3, 5, 10, 20),
        epsilons=(0.2, 1.0),
        repetitions=8,
        varied=2,
    ),
    guides={**{NORM[t].name: exponent(t) for t in (1.5, 2.0)}, COORDINATES[2.0].name: 1.0},
    delta=lambda n: 0.0,
    choices=WITH_POINTS,
    claims=(
        Claim(
            "Ours: on nets that can be searched, which are not the theorems' of (3 Δ n)^d points, "
            "the excess risk still grows like d^((θ−1)/θ) at most, for moments of the norm.",
            where_better(
                SEARCH,
                NONE,
                all_of(
                    *(
                        no_slower(SEARCH, exponent(t), within=0.1, datasets=of(NORM[t]))
                        for t in (1.5, 2.0)
                    )
                ),
                datasets=of(NORM[1.5], NORM[2.0]),
            ),
        ),
        Claim(
            "Ours: on these nets it still grows like d at most, for moments of coordinates.",
            where_better(
                SEARCH,
                NONE,
                no_slower(SEARCH, 1.0, within=0.1, datasets=of(COORDINATES[2.0])),
                datasets=of(COORDINATES[2.0]),
            ),
        ),
    ),
    panels="dataset",
)

ERROR_POINTS = Study(
    name="wang2022-points",
    item="Algorithm 1, line 1",
    title="ℓ1 regression, n = 10,000: excess risk against the size of the net",
    axis=Axis(name="points", label="points of the net", log=True),
    metrics=(RISK,),
    data=(NORM[2.0],),
    methods=METHODS,
    quick=Grid(
        fixed={"n": 1e4, "d": 8},
        points=(100, 400, 1600, 6400),
        epsilons=(1.0,),
        repetitions=6,
        varied=0,
    ),
    full=Grid(
        fixed={"n": 1e5, "d": 8},
        points=(100, 1000, 10_000, 100_000),
        epsilons=(1.0,),
        repetitions=4,
        varied=0,
    ),
    delta=lambda n: 0.0,
    choices=CHOICES,
    claims=(
        Claim("A larger net does better: a 1/n-net is out of reach.", decreasing(SEARCH)),
        Claim("Ours: DPLADRegressor, which needs no net, is more accurate.", lower("auto", SEARCH)),
    ),
)

STUDIES = (ERROR_N, ERROR_EPSILON, ERROR_THETA, ERROR_D, ERROR_POINTS)
