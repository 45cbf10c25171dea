"""Theorems with a rate that no figure of their paper shows, against n: experiments of our own.

Wang et al. 2020, theorems 5, 6 and 8; Wang and Xu 2019, theorem 3; Xie et al., theorem 2 and
corollaries 1 and 2. The parameters are those of the theorems with their O() at 1, and the data have
tails that the assumptions barely allow, but for theorem 5, which assumes sub-exponential gradients.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace

from experiments.claims import Claim, all_of, no_slower, of, where_better
from experiments.data.huber import HUBER
from experiments.data.means import LAPLACE, LOGNORMAL, PARETO
from experiments.data.stationarity import POPULATION
from experiments.methods import Auto, Published
from experiments.study import Choice, DataSet, Grid, Method, Metric, Setting, Study, Task
from experiments.tao2022_means import (
    AUTO_MEAN,
    CONFIDENCE,
    DELTA,
    ERROR,
    NOTHING,
    RECORDS,
    RISK,
    SAMPLE_MEAN,
)
from experiments.wang2019 import ALGORITHM_1, LIPSCHITZ
from privtail.algorithms import (
    CatoniDescent,
    ProximalGradient,
    StochasticProximalGradient,
    TrimmedDescent,
)
from privtail.linear_model import DPHuberRegressor
from privtail.robust_means import ClampedMean
from privtail.trusted.budget import Budget

CURVATURE = Choice(
    name="curvature", value=1.5, other=21.0,
    reason="of the population risk, on public rows; the bound E x² = 21 makes steps so short that "
    "the few of the theorems end far from the answer",
)  # fmt: skip
RANGE = 2.0
"""[-2, 2] holds the means of the gradients that theorem 5 has to know."""


# --- Algorithms with the parameters of theorems ----------------------------------------------


def theorem_5(task: Task, budget: Budget, setting: Setting) -> TrimmedDescent:
    """Algorithm 3 in its private form, for a loss with constants 1."""
    return TrimmedDescent.from_theory(
        task.n, task.d, budget, low=-RANGE, high=RANGE, curvature=1.0, strong_convexity=1.0
    )


def theorem_6(task: Task, budget: Budget, setting: Setting) -> CatoniDescent:
    """Estimator (12), which is one step of size 1 from 0 of Algorithm 4."""
    smoothing = 2 * math.log(1 / setting["failure_probability"])
    scale = math.sqrt(task.n * task.truth["u"] / smoothing)
    return CatoniDescent(steps=1, step_size=1.0, scale=scale, smoothing=smoothing)


def theorem_8(task: Task, budget: Budget, setting: Setting) -> CatoniDescent:
    """Algorithm 4 for a convex loss."""
    return CatoniDescent.from_theory(
        task.n, task.d, budget, second_moment=task.truth["u"], curvature=setting["curvature"],
        distance=0.5, failure_probability=setting["failure_probability"], scale="paper",
    )  # fmt: skip


def population(task: Task, budget: Budget, setting: Setting) -> ProximalGradient:
    """Algorithm 1 of Wang and Xu as its theorem 2 sets it."""
    return ProximalGradient.from_theory(
        task.n, task.d, budget, curvature=task.truth["curvature"], lipschitz=LIPSCHITZ
    )


def corollary_1(task: Task, budget: Budget, setting: Setting) -> StochasticProximalGradient:
    """Algorithms 2 and 3 with the batch that is best in the bound, for second moments of 1."""
    found = StochasticProximalGradient.kamath(
        task.n, task.d, budget, step_size=1 / setting["curvature"],
        failure_probability=setting["failure_probability"],
    )  # fmt: skip
    mean = found.mean
    assert isinstance(mean, ClampedMean)
    return replace(found, mean=replace(mean, threshold=math.sqrt(task.truth["u"]) * mean.threshold))


def corollary_2(task: Task, budget: Budget, setting: Setting) -> StochasticProximalGradient:
    """Algorithm 4 with the batch of remark 4."""
    return StochasticProximalGradient.from_theory(
        task.n, task.d, budget, second_moment=task.truth["u"],
        curvature=setting["curvature"],
        failure_probability=setting["failure_probability"],
    )  # fmt: skip


def theorem_2(task: Task, budget: Budget, setting: Setting) -> StochasticProximalGradient:
    """Algorithm 3 of Xie et al., which is one step of size 1 from 0 on all records."""
    whole = StochasticProximalGradient.kamath(
        task.n, task.d, budget, batch=task.n, step_size=1.0,
        failure_probability=setting["failure_probability"],
    )  # fmt: skip
    mean = whole.mean
    assert isinstance(mean, ClampedMean)
    wide = replace(mean, threshold=math.sqrt(task.truth["u"]) * mean.threshold)
    return replace(whole, mean=wide, steps=1)


def theorem_3(task: Task, budget: Budget, setting: Setting) -> StochasticProximalGradient:
    """Lines 2 to 8 of Algorithm 4 of Xie et al., once and on all records."""
    whole = StochasticProximalGradient.holland(
        task.n, budget, batch=task.n, second_moment=task.truth["u"], step_size=1.0,
        failure_probability=setting["failure_probability"],
    )  # fmt: skip
    return replace(whole, steps=1)


def _published(name: str, build: object) -> Published:
    return Published(name=name, build=build, keeps_path=False)  # type: ignore[arg-type]


HUBER_DEFAULT = Auto(make=lambda task, options: DPHuberRegressor(alpha=0.0, **options))
"""The default of privtail, told nothing."""


# --- Studies ---------------------------------------------------------------------------------


def against_n(
    name: str, item: str, title: str, data: tuple[DataSet, ...], methods: tuple[Method, ...],
    slopes: tuple[float, float | None], claims: tuple[Claim, ...], *, d: int, metric: Metric = RISK,
    quick: tuple[float, ...] = (1e4, 3e4, 1e5), full: tuple[float, ...] = (1e4, 3e4, 1e5, 3e5, 1e6),
    choices: tuple[Choice, ...] = (CONFIDENCE,), fixed: Mapping[str, float] | None = None,
    expectation: str, note: str = "",
) -> Study:  # fmt: skip
    """A study whose theorem has the first of the ``slopes``, and its lower bound the second."""
    upper, least = slopes
    same = {"d": d} | dict(fixed or {})
    return Study(
        name=name, item=item, title=title, axis=RECORDS, metrics=(metric,), data=data,
        methods=methods, delta=lambda n: DELTA, choices=choices, claims=claims,
        quick=Grid(fixed=same, points=quick, epsilons=(1.0,), repetitions=12, varied=0),
        full=Grid(fixed=same, points=full, epsilons=(0.5, 1.0), repetitions=20, varied=3),
        guides={d.name: upper for d in data},
        floors={} if least is None else {d.name: least for d in data},
        panels="dataset", expectation=expectation, note=note,
    )  # fmt: skip


def rate(
    sentence: str, method: str, exponent: float, data: tuple[DataSet, ...], *, guarded: bool = False
) -> Claim:
    """A claim of an upper bound; ``guarded`` leaves it open where w = 0 is as good."""
    checks = [no_slower(method, exponent, within=0.1, datasets=of(one)) for one in data]
    if guarded:
        checks = [
            where_better(method, NOTHING.name, check, datasets=of(one))
            for check, one in zip(checks, data, strict=True)
        ]
    return Claim(sentence, all_of(*checks))


HEAVY = (PARETO[1.0], LOGNORMAL)
CONVEX = (HUBER[1.0],)
TRIMMED, CATONI = "Algorithm 3", "Algorithm 4"
KAMATH, HOLLAND = "DP-SPGD(K)", "DP-SPGD(H)"

STUDIES = (
    against_n(
        "wang2020-theorem-5", "theorem 5", "Strongly convex, d = 2: Algorithm 3 against n",
        (LAPLACE,), (_published(TRIMMED, theorem_5), AUTO_MEAN, NOTHING), (-1.0, None),
        (rate("The excess risk of Algorithm 3 is Õ(1/n) (theorem 5).", TRIMMED, -1.0, (LAPLACE,),
              guarded=True),),
        d=2, choices=(), expectation="excess risk ≤ O(d² log² n log(1/δ)/(n ε²))",
        note="At 10,000 records the noise is as large as [a, b]: the smooth sensitivity has a term "
        "e^(-mt) (b − a), which n/10 trimmed values do not make small. Hence the steep fall.",
    ),
    against_n(
        "wang2020-theorem-6", "theorem 6", "Mean of one column: estimator (12) against n",
        HEAVY, (_published("Estimator (12)", theorem_6), AUTO_MEAN, SAMPLE_MEAN), (-0.5, -0.5),
        (rate("The error of estimator (12) is O(n^(-1/2)) (theorem 6).", "Estimator (12)", -0.5,
              HEAVY),),
        d=1, metric=ERROR, quick=(1e3, 1e4, 1e5),
        expectation="|A(D) − E x| ≤ O(√(v log(1/δ) log(1/δ′)/(n ε²)))",
    ),
    against_n(
        "wang2020-theorem-8", "theorem 8", "Convex, Huber's loss, d = 5: Algorithm 4 against n",
        CONVEX, (_published(CATONI, theorem_8), HUBER_DEFAULT, NOTHING), (-1 / 3, -0.5),
        (rate("For convex losses the excess risk of Algorithm 4 is Õ(n^(-1/3)) (theorem 8).",
              CATONI, -1 / 3, CONVEX, guarded=True),),
        d=5, choices=(CONFIDENCE, CURVATURE),
        expectation="excess risk ≤ Õ(d^(2/3)/(n ε²)^(1/3)) for n of order d²/ε²",
    ),
    against_n(
        "wang2019-theorem-3", "theorem 3", "Gradient of the population risk against n, p = 10",
        (POPULATION,), (replace(ALGORITHM_1, build=population, printed=None, keeps_path=False),),
        (-0.5, None),
        (rate("The gradient of the population risk falls at least as n^(-1/2) (theorem 3).",
              ALGORITHM_1.name, -0.5, (POPULATION,)),),
        d=10, metric=Metric(name="population_gradient", label="norm of the population gradient"),
        quick=(1e3, 3e3, 1e4), full=(1e3, 3e3, 1e4, 3e4, 1e5), fixed={"row_norm": 4.0}, choices=(),
        expectation="|E ∇f(x_R, z)| ≤ O(τ √(p log n)/√(n ε)), but for logarithms of β and δ",
    ),
    against_n(
        "xie2023-theorems-2-3", "theorems 2 and 3", "Mean of two columns: (K) and (H) against n",
        HEAVY, (_published(KAMATH, theorem_2), _published(HOLLAND, theorem_3), AUTO_MEAN,
                SAMPLE_MEAN), (-0.5, -0.5),
        (rate("The error of Algorithm 3 is Õ(n^(-1/2)) for k = 2 and the best ϱ (theorem 2).",
              KAMATH, -0.5, HEAVY),
         rate("The error of a gradient of Algorithm 4 is Õ(n^(-1/2)) (theorem 3).", HOLLAND, -0.5,
              HEAVY)),
        d=2, metric=ERROR, quick=(1e3, 1e4, 1e5),
        expectation="of order n^((1−k)/k) for (K) and n^(-1/2) for (H), but for logarithms",
    ),
    against_n(
        "xie2023-corollaries", "corollaries 1 and 2",
        "Convex, Huber's loss, d = 5, the best batches: (K) and (H) against n",
        CONVEX, (_published(KAMATH, corollary_1), _published(HOLLAND, corollary_2), HUBER_DEFAULT,
                 NOTHING), (-1 / 3, -0.5),
        (rate("The excess risk of (K) is Õ(n^(-1/3)) for k = 2 (corollary 1).", KAMATH, -1 / 3,
              CONVEX, guarded=True),
         rate("The excess risk of (H) is Õ(n^(-1/3)) (corollary 2, remark 4).", HOLLAND, -1 / 3,
              CONVEX, guarded=True)),
        d=5, choices=(CONFIDENCE, CURVATURE),
        expectation="excess risk ≤ Õ(p^(7/6)/(nε)^(1/3)) for (K), Õ(p^(2/3)/(nε)^(1/3)) for "
        "(H)",
    ),
)  # fmt: skip
