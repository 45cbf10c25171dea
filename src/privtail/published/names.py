"""Published algorithms by name, on standardized features, with parameters a theorem suggests."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace

from privtail.algorithms.aggregated_minimizer import AggregatedMinimizer
from privtail.algorithms.approximate import require_approximate
from privtail.algorithms.catoni_descent import CatoniDescent
from privtail.algorithms.median_of_means_descent import MedianOfMeansDescent
from privtail.algorithms.one_pass_descent import OnePassDescent
from privtail.algorithms.peeling import OneShotPeeling
from privtail.algorithms.protocol import MappedAlgorithm
from privtail.algorithms.proximal_gradient import ProximalGradient
from privtail.algorithms.sparse_peeling import SparsePeeling
from privtail.algorithms.stochastic_proximal_gradient import StochasticProximalGradient
from privtail.algorithms.trimmed_descent import TrimmedDescent
from privtail.errors import InvalidInput
from privtail.losses import Targets
from privtail.published.standardized import Standardized
from privtail.robust_means import TruncatedMean
from privtail.spelling import guess
from privtail.trusted.budget import Budget
from privtail.trusted.problem import Problem

Maker = Callable[[Problem, float, Budget, float], MappedAlgorithm]
"""From the problem, the scale of a gradient, the budget and the curvature of the loss."""

BATCHES = 6
"""Expected batches per pass of the stochastic algorithms (Xie et al. use n/6)."""


def _catoni(problem: Problem, unit: float, budget: Budget, curvature: float) -> MappedAlgorithm:
    return CatoniDescent.from_theory(
        problem.n, problem.rows * problem.outputs, budget, second_moment=unit**2,
        curvature=2 * curvature, strong_convexity=curvature / 2,
    )  # fmt: skip


def _proximal(problem: Problem, unit: float, budget: Budget, curvature: float) -> MappedAlgorithm:
    threshold = unit * math.sqrt(problem.rows)
    return ProximalGradient(steps=100, step_size=1 / (2 * curvature), threshold=threshold)


def _clipped(problem: Problem, unit: float, budget: Budget, curvature: float) -> MappedAlgorithm:
    return StochasticProximalGradient.clipped(
        problem.n, batch=_batch(problem), threshold=unit * math.sqrt(problem.rows),
        step_size=1 / curvature,
    )  # fmt: skip


def _kamath(problem: Problem, unit: float, budget: Budget, curvature: float) -> MappedAlgorithm:
    return StochasticProximalGradient.kamath(
        problem.n, problem.rows * problem.outputs, budget, batch=_batch(problem), width=10 * unit,
        step_size=1 / (2 * curvature),
    )  # fmt: skip


def _holland(problem: Problem, unit: float, budget: Budget, curvature: float) -> MappedAlgorithm:
    return StochasticProximalGradient.holland(
        problem.n, budget, batch=_batch(problem), second_moment=unit**2,
        step_size=1 / (2 * curvature),
    )  # fmt: skip


def _median(problem: Problem, unit: float, budget: Budget, curvature: float) -> MappedAlgorithm:
    blocks = min(round(4 * math.log(40 * problem.rows * problem.outputs)), problem.n)
    return MedianOfMeansDescent(
        steps=30, step_size=1 / (3 * curvature), threshold=2 * unit, blocks=blocks
    )


def _peeling(problem: Problem, unit: float, budget: Budget, curvature: float) -> MappedAlgorithm:
    return SparsePeeling(
        mean=TruncatedMean(2 * unit), steps=8, step_size=1 / (2 * curvature),
        peeling=OneShotPeeling(sparsity=min(10, problem.d)),
    )  # fmt: skip


def _trimmed(problem: Problem, unit: float, budget: Budget, curvature: float) -> MappedAlgorithm:
    return TrimmedDescent(
        steps=30, step_size=1 / (3 * curvature), low=-unit, high=unit, smoothness=0.3
    )


def _clipped_trimmed(
    problem: Problem, unit: float, budget: Budget, curvature: float
) -> MappedAlgorithm:
    return TrimmedDescent.clipped(
        steps=30, step_size=1 / (3 * curvature), low=-10 * unit, high=10 * unit, smoothness=0.3
    )


def _one_pass(problem: Problem, unit: float, budget: Budget, curvature: float) -> MappedAlgorithm:
    return OnePassDescent.from_theory(
        problem.n, problem.rows, budget, moment=unit * math.sqrt(problem.rows),
        smoothness=2 * curvature, diameter=unit,
    )  # fmt: skip


def _aggregated(problem: Problem, unit: float, budget: Budget, curvature: float) -> MappedAlgorithm:
    # Half of the budget's delta stays with the scales.
    half = replace(budget, delta=budget.delta / 2)
    parameters = problem.rows * problem.outputs
    return AggregatedMinimizer.from_theory(problem.n, parameters, half, radius=10 * unit)


def _batch(problem: Problem) -> int:
    return max(1, math.ceil(problem.n / BATCHES))


NAMES: dict[str, Maker] = {
    "catoni-descent": _catoni,
    "proximal-gradient": _proximal,
    "clipped-spgd": _clipped,
    "kamath-spgd": _kamath,
    "holland-spgd": _holland,
    "median-of-means-descent": _median,
    "sparse-peeling": _peeling,
    "trimmed-descent": _trimmed,
    "clipped-trimmed-descent": _clipped_trimmed,
    "sample-and-aggregate": _aggregated,
    "one-pass-descent": _one_pass,
}
"""Names that the estimators' ``algorithm`` takes, besides ``"auto"``."""

_BOUNDED = "it searches a bounded set, on which its parameters depend"
_BASELINE = "it is a baseline: its step size and gradient bound have no default"
OBJECTS: dict[str, str] = {
    "frank-wolfe": _BOUNDED,
    "mirror-descent": "it needs a mirror map that suits its set",
    "frank-wolfe-corners": _BOUNDED,
    "heavy-tailed-frank-wolfe": _BOUNDED,
    "truncated-lasso": _BOUNDED,
    "truncated-sparse-regression": "it needs an interval that holds the target",
    "smoothed-peeling": 'it is "sparse-peeling" with another mean',
    "net-search": _BOUNDED,
    "noisy-descent": _BASELINE,
    "random-round-descent": _BASELINE,
    "boosted-adassp": "its bounds of rows and of residuals have no default",
}
"""Published algorithms that run as objects only, and why."""


def named(
    name: str, budget: Budget, curvature: float, *, targets: Targets, sparsity: int | None = None,
    outputs: int | None = None,
) -> Standardized:  # fmt: skip
    """The algorithm called ``name``, for a loss of this curvature.

    ``sparsity`` is how many entries "sparse-peeling" keeps; 10 if None. ``outputs`` is what a plan
    has room for, if less may run: a smoothness that follows from it must be the planned one.

    Raises
    ------
    InvalidInput
        For an unknown name, or a budget that its presets cannot use.
    """
    if name in OBJECTS:
        from privtail.algorithms import TABLE

        kind = next(row.algorithm.__name__ for row in TABLE if row.name == name)
        raise InvalidInput(
            f"The algorithm {name!r} does not run by name: {OBJECTS[name]}.",
            f"Give DPGeneralizedLinearEstimator the object, algorithm={kind}(...); "
            f"help(privtail.algorithms.{kind}) has an example. By name there are: auto, "
            f"{', '.join(NAMES)}.",
            cli="To see those that do: privtail algorithms",
        )
    if name not in NAMES:
        raise InvalidInput(
            f"There is no algorithm {name!r}.{guess(name, (*NAMES, *OBJECTS))} There are: auto, "
            f"{', '.join(NAMES)}.",
            "Or give an object such as CatoniDescent(steps=50, step_size=0.1, scale=10.0, "
            "smoothing=3.0).",
            cli="To see them: privtail algorithms",
        )
    require_approximate(budget, f"The algorithm {name!r}")
    make = NAMES[name]

    def algorithm(problem: Problem, unit: float) -> MappedAlgorithm:
        if make is _aggregated and outputs is not None:
            problem = replace(problem, outputs=outputs)
        made = make(problem, unit, budget, curvature)
        if isinstance(made, SparsePeeling) and sparsity is not None:
            return replace(made, peeling=OneShotPeeling(sparsity=min(sparsity, problem.d)))
        return made

    return Standardized(make=algorithm, targets=targets)
