"""Tao et al. 2022, sparse learning (Algorithms 4 and 5, theorems 10 and 11): our experiments."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any, ClassVar

from numpy.typing import ArrayLike

from experiments.claims import (
    MINIMAX,
    Claim,
    affordable,
    lower,
    no_slower,
    of,
    untestable,
    where_better,
)
from experiments.data.sparse import (
    SPARSE_COLUMNS,
    SPARSE_LOGNORMAL,
    SPARSE_PARETO,
    SPARSE_STUDENT,
)
from experiments.methods import Auto, Published
from experiments.study import Axis, Choice, Grid, Setting, Study, Task
from experiments.tao2022_means import (
    AUTO_MEAN,
    BUDGET,
    CONFIDENCE,
    DELTA,
    ERROR,
    FEATURES,
    NOTHING,
    RECORDS,
    RISK,
    THRESHOLD,
    exponent,
)
from privtail.algorithms import (
    LaplacePeeling,
    OneShotPeeling,
    Result,
    SparsePeeling,
)
from privtail.algorithms.peeling import Peeling
from privtail.domains import Domain
from privtail.linear_model import DPLasso
from privtail.losses import AnyLoss
from privtail.robust_means import ClampedMean, TruncatedMean
from privtail.trusted.budget import Budget
from privtail.trusted.curator import Curator
from privtail.trusted.events import Plan, Round
from privtail.trusted.problem import Problem


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
    quick=Grid(fixed=S_STAR, points=(3e3, 1e4, 3e4, 1e5), epsilons=(1.0,), repetitions=6, varied=2),
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
    floors={
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
            "The rate is nearly optimal (theorem 11).",
            untestable(MINIMAX),
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
    floor: float | None,
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
        floors={} if floor is None else {SPARSE_PARETO[1.0].name: floor},
    )  # fmt: skip


SPARSE_S = sparse_study(
    "s", "Sparse line, d = 50: excess risk against s*",
    Axis(name="sparsity", label="entries s* of w* that are not 0", log=True), 1.5, 0.5,
    Grid(fixed={"d": 50, "n": 1e5}, points=(1, 2, 4, 8, 16), epsilons=(1.0,), repetitions=6,
         varied=0),
    Grid(fixed={"d": 50, "n": 1e6}, points=(1, 2, 4, 8, 16), epsilons=(0.1, 1.0), repetitions=20,
         varied=3),
    Claim(
        "The excess risk is O(s*^((1+2v)/(1+v))) (theorem 10).",
        no_slower("Algorithm 5", 1.5, within=0.2),
    ),
)  # fmt: skip
SPARSE_D = sparse_study(
    "d", "Sparse line, s* = 3: excess risk against d", FEATURES, None, None,
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
    "epsilon", "Sparse line, d = 50, s* = 3: excess risk against ε", BUDGET, -1.0, -1.0,
    Grid(fixed={**S_STAR, "n": 1e5}, epsilons=(0.25, 0.5, 1.0, 2.0), repetitions=6, varied=0),
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
    methods=(ALGORITHM_4, ONE_SHOT_4, AUTO_MEAN, NOTHING),
    quick=Grid(
        fixed={"n": 1e4, "d": 200},
        points=(1, 3, 10, 30),
        epsilons=(0.5, 1.0),
        repetitions=10,
        varied=3,
    ),
    full=Grid(
        fixed={"n": 1e5, "d": 200},
        points=(1, 3, 10, 30),
        epsilons=(0.1, 0.5, 1.0),
        repetitions=16,
        varied=5,
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

STUDIES = (SPARSE_N, SPARSE_S, SPARSE_D, SPARSE_EPSILON, PEELING)
