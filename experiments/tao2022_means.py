"""Tao, Wu, Cheng, Wang, IJCAI 2022, means (theorems 1 to 3): experiments of our own.

The paper printed none. The data have tails that the assumption on moments barely allows
(`experiments.data.tails.barely`), where a bound for all such laws can be seen; t and lognormal data
stand beside them. The parameters are those of the theorems with their O() at 1.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike

from experiments.claims import (
    MINIMAX,
    Claim,
    affordable,
    all_of,
    close,
    decreasing,
    lower,
    no_faster,
    no_slower,
    of,
    slope,
    untestable,
)
from experiments.data.means import ANY_V, LOGNORMAL, PARETO, STUDENT
from experiments.methods import Auto, Printed, Published, Reference, gaussian_multiplier
from experiments.study import Axis, Choice, Grid, Metric, Setting, Study, Task
from privtail import private_mean
from privtail.algorithms import (
    Result,
)
from privtail.algorithms.mean_thresholds import median_of_means_threshold, truncation_threshold
from privtail.domains import Domain
from privtail.losses import AnyLoss
from privtail.robust_means import TruncatedMean
from privtail.trusted.budget import Budget
from privtail.trusted.curator import Curator
from privtail.trusted.events import Plan, Round
from privtail.trusted.mechanisms.noise import GaussianNoise
from privtail.trusted.problem import Problem

DELTA = 1e-6
"""Of all studies, so that slopes against n hold no logarithm of it."""

ERROR = Metric(name="error", label="error |w − E x|₂")
RISK = Metric(name="excess risk", label="excess risk")
RECORDS = Axis(name="n", label="records n", log=True)
BUDGET = Axis(name="epsilon", label="budget ε", log=True)
FEATURES = Axis(name="d", label="features d", log=True)

CONFIDENCE = Choice(
    name="failure_probability", value=0.05, other=0.5,
    reason="xi of the theorems, which leave it open; it sets the number of groups",
)  # fmt: skip
THRESHOLD = Choice(
    name="threshold_factor", value=1.0, other=0.25,
    reason="the threshold of the theorem with its O() at 1; a smaller one has less noise",
)  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class NoisyMean:
    """One release of a truncated (median of) mean(s) of the columns, ``times`` a public number."""

    mean: TruncatedMean
    times: int = 1

    needs: ClassVar[tuple[str, ...]] = ()

    def plan(self, multiplier: float, problem: Problem) -> Plan:
        """One Gaussian release."""
        return (Round(events=(GaussianNoise(multiplier).event(problem.means(self.mean)),)),)

    def run(
        self, curator: Curator, loss: AnyLoss, domain: Domain, multiplier: float,
        start: ArrayLike | None = None,
    ) -> Result:  # fmt: skip
        """The box."""
        released = curator.everyone().means(self.mean).release(GaussianNoise(multiplier))
        return Result(self.times * released.reshape(-1, 1), 1, multiplier)


def truncated(task: Task, budget: Budget, setting: Setting) -> NoisyMean:
    """Algorithm 1 with line 1's B, column by column."""
    threshold = truncation_threshold(
        task.n, budget.epsilon, budget.delta, moment=task.truth["u"], order=task.truth["v"],
        failure_probability=setting["failure_probability"],
    )  # fmt: skip
    return NoisyMean(mean=TruncatedMean(threshold * setting["threshold_factor"]))


def printed_truncated(algorithm: NoisyMean, problem: Problem, budget: Budget) -> float:
    """Line 3: variance 8 B^2 log(1.25/delta)/(n eps)^2, for one column."""
    root = math.sqrt(8 * math.log(1.25 / budget.delta))
    std = root * algorithm.mean.threshold / (problem.n * budget.epsilon)
    return gaussian_multiplier(std, problem.means(algorithm.mean))


def medians(task: Task, budget: Budget, setting: Setting) -> NoisyMean:
    """Algorithm 3 with the tau that balances theorem 3."""
    threshold, blocks = median_of_means_threshold(
        task.n, task.d, budget.epsilon, budget.delta, moment=task.truth["u"],
        order=task.truth["v"], failure_probability=setting["failure_probability"],
    )  # fmt: skip
    return NoisyMean(mean=TruncatedMean(threshold * setting["threshold_factor"], blocks))


def one_group(task: Task, budget: Budget, setting: Setting) -> NoisyMean:
    """Algorithm 3 without medians: one group."""
    return NoisyMean(mean=replace(medians(task, budget, setting).mean, blocks=1))


def line_7(task: Task, budget: Budget, setting: Setting) -> NoisyMean:
    """Algorithm 3 to the letter: every group sums all records, and divides by n/m."""
    mean = medians(task, budget, setting).mean
    return NoisyMean(mean=replace(mean, blocks=1), times=mean.blocks)


def printed_medians(algorithm: NoisyMean, problem: Problem, budget: Budget) -> float:
    """Line 12: variance 8 tau^2 m^2 d ln(1.25/delta)/(n eps)^2, m the groups or line 7's factor."""
    groups = algorithm.mean.blocks * algorithm.times
    root = math.sqrt(8 * problem.d * math.log(1.25 / budget.delta))
    std = root * algorithm.mean.threshold * groups / (problem.n * budget.epsilon)
    return gaussian_multiplier(std / algorithm.times, problem.means(algorithm.mean))


class PrivateMean:
    """`private_mean` with its default, as an estimator."""

    def __init__(self, options: dict[str, Any]) -> None:
        self.options = {k: v for k, v in options.items() if k != "fit_intercept"}

    def fit(self, X: ArrayLike, y: ArrayLike) -> PrivateMean:
        """Keep the mean of the columns as coefficients."""
        found = private_mean(X, **self.options)
        self.coef_, self.privacy_ = np.asarray(found.value), found.privacy_
        return self


ALGORITHM_1 = Published(
    name="Algorithm 1", build=truncated, printed=printed_truncated, keeps_path=False
)
ALGORITHM_3 = Published(
    name="Algorithm 3", build=medians, printed=printed_medians, keeps_path=False
)
COLUMN_BY_COLUMN = Published(name="Algorithm 3, one group", build=one_group, keeps_path=False)
TO_THE_LETTER = Printed(
    Published(name="Algorithm 3, line 7", build=line_7, printed=printed_medians, keeps_path=False)
)
AUTO_MEAN = Auto(make=lambda task, options: PrivateMean(options))
SAMPLE_MEAN = Reference(name="sample mean", solve=lambda task, setting: task.X.mean(axis=0))
NOTHING = Reference(name="no data, w = 0", solve=lambda task, setting: np.zeros(task.d))


def exponent(v: float) -> float:
    """v/(1 + v)."""
    return v / (1 + v)


MEANS = (PARETO[0.25], PARETO[0.5], PARETO[1.0], STUDENT, LOGNORMAL)

MEAN_N = Study(
    name="tao2022-mean-n",
    item="theorems 1 and 2",
    title="Mean of one column: error against n",
    axis=RECORDS,
    metrics=(ERROR,),
    data=MEANS,
    methods=(ALGORITHM_1, AUTO_MEAN, SAMPLE_MEAN),
    quick=Grid(
        fixed={"d": 1}, points=(1e3, 3e3, 1e4, 3e4, 1e5), epsilons=(1.0,), repetitions=60, varied=10
    ),
    full=Grid(
        fixed={"d": 1},
        points=(1e3, 3e3, 1e4, 3e4, 1e5, 3e5, 1e6, 3e6),
        epsilons=(0.1, 1.0),
        repetitions=100,
        varied=20,
    ),
    guides={
        **{PARETO[v].name: -exponent(v) for v in (0.25, 0.5, 1.0)},
        STUDENT.name: -exponent(0.5),
        LOGNORMAL.name: -exponent(1.0),
    },
    floors={
        **{PARETO[v].name: -exponent(v) for v in (0.25, 0.5, 1.0)},
        STUDENT.name: -exponent(0.5),
        LOGNORMAL.name: -exponent(1.0),
    },
    delta=lambda n: DELTA,
    choices=(CONFIDENCE, THRESHOLD),
    claims=(
        Claim("Algorithm 1 is (ε, δ)-DP.", affordable("Algorithm 1")),
        *(
            Claim(
                f"Its error is O(n^-{exponent(v):.2f}) for v = {v:g} (theorem 1).",
                no_slower("Algorithm 1", -exponent(v), datasets=of(PARETO[v])),
            )
            for v in (0.25, 0.5, 1.0)
        ),
        Claim(
            "So it is on t and lognormal data (theorem 1).",
            all_of(
                no_slower("Algorithm 1", -exponent(0.5), datasets=of(STUDENT)),
                no_slower("Algorithm 1", -exponent(1.0), datasets=of(LOGNORMAL)),
            ),
        ),
        Claim(
            "The rate is optimal: where moments end at 1 + v nothing falls faster (theorem 2).",
            untestable(MINIMAX),
        ),
        Claim(
            "Ours: where moments end at 1 + v Algorithm 1 falls no faster than its bound.",
            all_of(
                *(
                    no_faster("Algorithm 1", -exponent(v), within=0.1, datasets=of(PARETO[v]))
                    for v in (0.25, 0.5, 1.0)
                )
            ),
        ),
        Claim(
            "Ours: private_mean by default, which knows neither u nor v, is at least as accurate.",
            lower("auto", "Algorithm 1"),
        ),
    ),
    panels="dataset",
    expectation="|error| ≤ O(u^(1/(1+v)) (log(1/ξ) √log(1/δ)/(nε))^(v/(1+v))), and no private "
    "estimator does better",
)

MEAN_EPSILON = Study(
    name="tao2022-mean-epsilon",
    item="theorems 1 and 2",
    title="Mean of one column, n = 30,000: error against ε",
    axis=BUDGET,
    metrics=(ERROR,),
    data=(PARETO[0.5], PARETO[1.0]),
    methods=(ALGORITHM_1, AUTO_MEAN, SAMPLE_MEAN),
    quick=Grid(fixed={"n": 3e4, "d": 1}, epsilons=(0.03, 0.1, 0.3, 1.0), repetitions=80, varied=0),
    full=Grid(
        fixed={"n": 1e6, "d": 1}, epsilons=(0.01, 0.03, 0.1, 0.3, 1.0), repetitions=100, varied=20
    ),
    guides={PARETO[v].name: -exponent(v) for v in (0.5, 1.0)},
    floors={PARETO[v].name: -exponent(v) for v in (0.5, 1.0)},
    delta=lambda n: DELTA,
    choices=(CONFIDENCE, THRESHOLD),
    claims=(
        Claim(
            "The error is O(ε^(-v/(1+v))) (theorem 1).",
            all_of(
                *(no_slower("Algorithm 1", -exponent(v), datasets=of(PARETO[v])) for v in (0.5, 1))
            ),
        ),
        Claim(
            "With second moments it is O(1/√(nε)) (remark 1).",
            no_slower("Algorithm 1", -0.5, within=0.08, datasets=of(PARETO[1.0])),
        ),
    ),
    panels="dataset",
)

MEAN_V = Study(
    name="tao2022-mean-v",
    item="theorem 1",
    title="Mean of one Pareto(1.1 + v) column, n = 30,000: error against v",
    axis=Axis(name="v", label="moments 1 + v: v"),
    metrics=(ERROR,),
    data=(ANY_V,),
    methods=(ALGORITHM_1, AUTO_MEAN, SAMPLE_MEAN),
    quick=Grid(
        fixed={"n": 3e4, "d": 1},
        points=(0.1, 0.25, 0.5, 0.75, 1.0),
        epsilons=(1.0,),
        repetitions=30,
        varied=0,
    ),
    full=Grid(
        fixed={"n": 1e6, "d": 1},
        points=(0.1, 0.25, 0.5, 0.75, 1.0),
        epsilons=(0.1, 1.0),
        repetitions=100,
        varied=20,
    ),
    delta=lambda n: DELTA,
    choices=(CONFIDENCE, THRESHOLD),
    claims=(Claim("Fewer moments, larger error.", decreasing("Algorithm 1")),),
)

MEDIANS_N = Study(
    name="tao2022-medians-n",
    item="theorem 3",
    title="Mean of five columns: error against n",
    axis=RECORDS,
    metrics=(ERROR,),
    data=(PARETO[0.5], PARETO[1.0], LOGNORMAL),
    methods=(ALGORITHM_3, COLUMN_BY_COLUMN, TO_THE_LETTER, AUTO_MEAN, SAMPLE_MEAN),
    quick=Grid(
        fixed={"d": 5}, points=(1e3, 3e3, 1e4, 3e4), epsilons=(1.0,), repetitions=30, varied=6
    ),
    full=Grid(
        fixed={"d": 5},
        points=(3e3, 1e4, 3e4, 1e5, 3e5, 1e6),
        epsilons=(0.1, 1.0),
        repetitions=50,
        varied=10,
    ),
    guides={**{PARETO[v].name: -exponent(v) for v in (0.5, 1.0)}, LOGNORMAL.name: -exponent(1.0)},
    delta=lambda n: DELTA,
    choices=(CONFIDENCE, THRESHOLD),
    claims=(
        Claim("Algorithm 3 is (ε, δ)-DP.", affordable("Algorithm 3")),
        Claim(
            "Its error is O(n^(-v/(1+v))) for the best τ (theorem 3).",
            all_of(
                *(
                    no_slower("Algorithm 3", -exponent(v), within=0.1, datasets=of(PARETO[v]))
                    for v in (0.5, 1)
                )
            ),
        ),
        Claim(
            "Ours: medians of groups do better than one-dimensional means (as bounds: remark 2).",
            lower("Algorithm 3", "Algorithm 3, one group"),
        ),
        Claim(
            "Ours: Algorithm 3 estimates the mean with line 7 as the text at hand prints it, where "
            "every group sums all records.",
            close("Algorithm 3, line 7", "Algorithm 3", within=1.5, datasets=of(LOGNORMAL)),
        ),
        Claim(
            "Ours: private_mean by default is at least as accurate.", lower("auto", "Algorithm 3")
        ),
    ),
    panels="dataset",
)

MEDIANS_D = Study(
    name="tao2022-medians-d",
    item="theorem 3",
    title="Mean of d columns, n = 10,000: error against d",
    axis=FEATURES,
    metrics=(ERROR,),
    data=(PARETO[0.5], PARETO[1.0]),
    methods=(ALGORITHM_3, COLUMN_BY_COLUMN, AUTO_MEAN, SAMPLE_MEAN),
    quick=Grid(fixed={"n": 1e4}, points=(1, 3, 10, 30), epsilons=(1.0,), repetitions=30, varied=0),
    full=Grid(
        fixed={"n": 3e5}, points=(1, 3, 10, 30, 100), epsilons=(0.1, 1.0), repetitions=20, varied=5
    ),
    guides={PARETO[v].name: 0.5 + exponent(v) / 2 for v in (0.5, 1.0)},
    delta=lambda n: DELTA,
    choices=(CONFIDENCE, THRESHOLD),
    claims=(
        Claim(
            "Its error grows like d^(1/2 + v/(2(1+v))) for the best τ, but for logarithms "
            "(theorem 3).",
            all_of(
                *(
                    slope("Algorithm 3", 0.5 + exponent(v) / 2, within=0.3, datasets=of(PARETO[v]))
                    for v in (0.5, 1)
                )
            ),
        ),
    ),
    panels="dataset",
)

STUDIES = (MEAN_N, MEAN_EPSILON, MEAN_V, MEDIANS_N, MEDIANS_D)
