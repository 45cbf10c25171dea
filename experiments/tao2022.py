"""Tao, Wu, Cheng, Wang, IJCAI 2022: experiments of our own, since the paper printed none.

The data have tails that the assumption on moments barely allows (`experiments.data.tails.barely`),
where a bound for all such laws can be seen; t and lognormal data stand beside them. The parameters
are those of the theorems with their O() at 1.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike

from experiments.claims import (
    Claim,
    affordable,
    all_of,
    close,
    decreasing,
    lower,
    no_faster,
    no_slower,
    slope,
    where_better,
)
from experiments.data.huber import HUBER
from experiments.data.means import ANY_V, LOGNORMAL, PARETO, SHIFTED_STUDENT, STUDENT
from experiments.data.sparse import (
    SPARSE_COLUMNS,
    SPARSE_LOGNORMAL,
    SPARSE_PARETO,
    SPARSE_STUDENT,
)
from experiments.methods import Auto, Printed, Published, Reference, gaussian_multiplier
from experiments.study import Axis, Choice, Grid, Metric, Setting, Study, Task
from privtail import private_mean
from privtail.algorithms import (
    LaplacePeeling,
    MedianOfMeansDescent,
    OneShotPeeling,
    Result,
    SparsePeeling,
)
from privtail.algorithms.peeling import Peeling
from privtail.domains import Domain
from privtail.linear_model import DPHuberRegressor, DPLasso
from privtail.losses import AnyLoss
from privtail.mean import median_of_means_threshold, truncation_threshold
from privtail.trusted.budget import Budget
from privtail.trusted.curator import Curator
from privtail.trusted.events import Plan, Round
from privtail.trusted.means import ClampedMean, TruncatedMean
from privtail.trusted.mechanisms.noise import GaussianNoise
from privtail.trusted.problem import Problem
from privtail.trusted.sampling import Everyone

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


# --- Means: Algorithms 1 and 3 -----------------------------------------------------------------


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


def of(*data: Any) -> list[str]:
    """Names of data sets."""
    return [d.name for d in data]


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
            all_of(
                *(
                    no_faster(
                        ("Algorithm 1", "auto"), -exponent(v), within=0.1, datasets=of(PARETO[v])
                    )
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
            "With second moments it goes as 1/√(nε) (remark 1).",
            slope("Algorithm 1", -0.5, within=0.08, datasets=of(PARETO[1.0])),
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
            "Medians of groups do better than one-dimensional means (remark 2).",
            lower("Algorithm 3", "Algorithm 3, one group"),
        ),
        Claim(
            "Algorithm 3 to the letter, line 7 summing all records, estimates the mean.",
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


# --- Descent: Algorithm 2 ----------------------------------------------------------------------


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
    delta=lambda n: DELTA,
    choices=(CONFIDENCE, THRESHOLD, STEPS),
    claims=(
        Claim("Algorithm 2 is (ε, δ)-DP, to the letter.", affordable("Algorithm 2, line 8")),
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
            all_of(
                *(
                    no_faster(
                        ("Algorithm 2", "auto"),
                        -2 * exponent(v),
                        within=0.2,
                        datasets=of(PARETO[v]),
                    )
                    for v in (0.5, 1.0)
                )
            ),
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
        Claim("Ours: DPHuberRegressor is more accurate.", lower("auto", "Algorithm 2")),
    ),
    panels="dataset",
    expectation="excess risk ≤ Õ(d^((1+4v)/(2+2v)) (εn)^(-v/(1+v)))",
)


# --- Sparse learning: Algorithms 4 and 5 -------------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class PeeledMean:
    """A clamped mean of the columns through Peeling (Algorithm 4)."""

    mean: ClampedMean
    peeling: Peeling

    needs: ClassVar[tuple[str, ...]] = ()

    def plan(self, multiplier: float, problem: Problem) -> Plan:
        """One peeling."""
        events = self.peeling.events(multiplier, problem.means(self.mean), 0)
        return (Round(events=events),)

    def run(
        self, curator: Curator, loss: AnyLoss, domain: Domain, multiplier: float,
        start: ArrayLike | None = None,
    ) -> Result:  # fmt: skip
        """The box."""
        answer = curator.everyone().means(self.mean)
        w = self.peeling.release(multiplier, answer, 0)
        return Result(w.reshape(-1, 1), 1, multiplier)


def printed_peeling(algorithm: Any, problem: Problem, budget: Budget) -> float:
    """Lines 3 and 6 of Algorithm 4."""
    return float(algorithm.peeling.printed_multiplier(budget))


def peeled(one_shot: bool) -> Any:
    """Algorithm 4 on a clamped mean, or its one-shot form."""

    def build(task: Task, budget: Budget, setting: Setting) -> PeeledMean:
        kind = OneShotPeeling if one_shot else LaplacePeeling
        return PeeledMean(
            mean=ClampedMean(setting["clamp"]), peeling=kind(sparsity=int(setting["sparsity"]))
        )

    return build


def hard_thresholding(one_shot: bool) -> Any:
    """Algorithm 5 by theorem 10."""

    def build(task: Task, budget: Budget, setting: Setting) -> SparsePeeling:
        found = SparsePeeling.from_theory(
            task.n, task.d, budget, sparsity=int(setting["sparsity"]), moment=task.truth["u"],
            order=task.truth["v"], failure_probability=setting["failure_probability"],
            printed=not one_shot,
        )  # fmt: skip
        steps = max(1, round(found.steps * setting["rounds"]))
        wider = (found.steps / steps) ** (1 / (1 + task.truth["v"]))
        mean = TruncatedMean(found.mean.range.radius * wider * setting["threshold_factor"])
        return replace(found, steps=steps, mean=mean)

    return build


ALGORITHM_4 = Published(
    name="Algorithm 4", build=peeled(one_shot=False), printed=printed_peeling, keeps_path=False
)
ALGORITHM_5 = Published(
    name="Algorithm 5", build=hard_thresholding(one_shot=False), printed=printed_peeling,
    keeps_path=False,
)  # fmt: skip
ONE_SHOT_4 = Published(name="one-shot peeling", build=peeled(one_shot=True), keeps_path=False)
ONE_SHOT_5 = Published(
    name="one-shot peeling", build=hard_thresholding(one_shot=True), keeps_path=False
)
LASSO = Auto(
    make=lambda task, options: DPLasso(alpha=2 * math.sqrt(math.log(task.d) / task.n), **options)
)
SPARSE = (ALGORITHM_5, ONE_SHOT_5, LASSO, NOTHING)
ROUNDS = Choice(
    name="rounds", value=1.0, other=0.5, reason="T = log n times this; theorem 10 leaves O~"
)
S_STAR = {"sparsity": 3, "d": 50}

SPARSE_N = Study(
    name="tao2022-sparse-n",
    item="theorems 10 and 11",
    title="Sparse line, d = 50, s* = 3: excess risk against n",
    axis=RECORDS,
    metrics=(RISK,),
    data=(SPARSE_PARETO[0.5], SPARSE_PARETO[1.0], SPARSE_STUDENT, SPARSE_LOGNORMAL),
    methods=SPARSE,
    quick=Grid(fixed=S_STAR, points=(3e3, 1e4, 3e4, 1e5), epsilons=(1.0,), repetitions=8, varied=2),
    full=Grid(
        fixed=S_STAR,
        points=(3e3, 1e4, 3e4, 1e5, 3e5, 1e6),
        epsilons=(0.1, 1.0),
        repetitions=20,
        varied=3,
    ),
    guides={
        **{SPARSE_PARETO[v].name: -2 * exponent(v) for v in (0.5, 1.0)},
        SPARSE_STUDENT.name: -1.0,
        SPARSE_LOGNORMAL.name: -1.0,
    },
    delta=lambda n: DELTA,
    choices=(CONFIDENCE, THRESHOLD, ROUNDS),
    claims=(
        Claim("Algorithm 5 is (ε, δ)-DP.", affordable("Algorithm 5")),
        *(
            Claim(
                f"Its excess risk is O(n^-{2 * exponent(v):.2f}), but for logarithms, for "
                f"v = {v:g} (theorem 10).",
                where_better(
                    "Algorithm 5",
                    "no data, w = 0",
                    no_slower(
                        "Algorithm 5",
                        -2 * exponent(v),
                        within=0.15,
                        datasets=of(SPARSE_PARETO[v]),
                    ),
                    datasets=of(SPARSE_PARETO[v]),
                ),
            )
            for v in (0.5, 1.0)
        ),
        Claim(
            "So it is on t and lognormal errors (theorem 10).",
            where_better(
                "Algorithm 5",
                "no data, w = 0",
                no_slower(
                    "Algorithm 5",
                    -1.0,
                    within=0.15,
                    datasets=of(SPARSE_STUDENT, SPARSE_LOGNORMAL),
                ),
                datasets=of(SPARSE_STUDENT, SPARSE_LOGNORMAL),
            ),
        ),
        Claim(
            "Ours: one-shot peeling does better at equal privacy.",
            lower("one-shot peeling", "Algorithm 5"),
        ),
        Claim("Ours: DPLasso is more accurate.", lower("auto", "Algorithm 5")),
    ),
    panels="dataset",
    expectation="excess risk ≤ Õ(s*^((1+2v)/(1+v)) (log d/(nε))^(2v/(1+v)))",
)


def sparse_study(
    name: str,
    title: str,
    axis: Axis,
    exponent: float | None,
    quick: Grid,
    full: Grid,
    *claims: Claim,
) -> Study:
    """Algorithm 5 on Pareto errors, v = 1, along another axis."""
    return Study(
        name=f"tao2022-sparse-{name}", item="theorem 10", title=title, axis=axis, metrics=(RISK,),
        data=(SPARSE_PARETO[1.0],), methods=SPARSE, quick=quick, full=full, delta=lambda n: DELTA,
        choices=(CONFIDENCE, THRESHOLD, ROUNDS), claims=claims,
        guides={} if exponent is None else {SPARSE_PARETO[1.0].name: exponent},
    )  # fmt: skip


SPARSE_S = sparse_study(
    "s", "Sparse line, d = 50: excess risk against s*",
    Axis(name="sparsity", label="entries s* of w* that are not 0", log=True), 1.5,
    Grid(fixed={"d": 50, "n": 1e5}, points=(1, 2, 4, 8, 16), epsilons=(1.0,), repetitions=8,
         varied=0),
    Grid(fixed={"d": 50, "n": 1e6}, points=(1, 2, 4, 8, 16), epsilons=(0.1, 1.0), repetitions=20,
         varied=3),
    Claim(
        "The excess risk is O(s*^((1+2v)/(1+v))) (theorem 10).",
        no_slower("Algorithm 5", 1.5, within=0.2),
    ),
)  # fmt: skip
SPARSE_D = sparse_study(
    "d", "Sparse line, s* = 3: excess risk against d", FEATURES, None,
    Grid(fixed={"sparsity": 3, "n": 3e4}, points=(10, 30, 100, 300), epsilons=(1.0,),
         repetitions=6, varied=0),
    Grid(fixed={"sparsity": 3, "n": 3e5}, points=(10, 30, 100, 300), epsilons=(0.1, 1.0),
         repetitions=20, varied=3),
    Claim(
        "The excess risk grows with the logarithm of d only: slower than √d (theorem 10).",
        no_slower("Algorithm 5", 0.5),
    ),
)  # fmt: skip
SPARSE_EPSILON = sparse_study(
    "epsilon", "Sparse line, d = 50, s* = 3: excess risk against ε", BUDGET, -1.0,
    Grid(fixed={**S_STAR, "n": 1e5}, epsilons=(0.25, 0.5, 1.0, 2.0), repetitions=8, varied=0),
    Grid(fixed={**S_STAR, "n": 1e6}, epsilons=(0.1, 0.3, 1.0), repetitions=20, varied=3),
    Claim(
        "The excess risk is O(ε^(-2v/(1+v))) (theorem 10).",
        no_slower("Algorithm 5", -1.0, within=0.15),
    ),
)  # fmt: skip

PEELING = Study(
    name="tao2022-peeling",
    item="Algorithm 4",
    title="Peeling a mean of 200 columns, n = 10,000: error against s",
    axis=Axis(name="sparsity", label="entries s", log=True),
    metrics=(ERROR,),
    data=(SPARSE_COLUMNS,),
    methods=(ALGORITHM_4, ONE_SHOT_4, NOTHING),
    quick=Grid(
        fixed={"n": 1e4, "d": 200},
        points=(1, 3, 10, 30),
        epsilons=(0.5, 1.0),
        repetitions=10,
        varied=5,
    ),
    full=Grid(
        fixed={"n": 1e5, "d": 200},
        points=(1, 3, 10, 30),
        epsilons=(0.1, 0.5, 1.0),
        repetitions=50,
        varied=10,
    ),
    delta=lambda n: DELTA,
    choices=(
        Choice(name="clamp", value=10.0, other=3.0, reason="beyond most of the columns' values"),
    ),
    claims=(
        Claim("Algorithm 4 is (ε, δ)-DP.", affordable("Algorithm 4")),
        Claim(
            "Ours: one-shot peeling does better at equal privacy.",
            lower("one-shot peeling", "Algorithm 4"),
        ),
    ),
)

STUDIES = (
    MEAN_N, MEAN_EPSILON, MEAN_V, MEDIANS_N, MEDIANS_D, STRONG_N, STRONG_EPSILON, STRONG_D,
    CONVEX_N, SPARSE_N, SPARSE_S, SPARSE_D, SPARSE_EPSILON, PEELING,
)  # fmt: skip
