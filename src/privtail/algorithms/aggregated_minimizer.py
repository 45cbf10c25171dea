"""Empirical minimizers of disjoint parts, aggregated: Wang et al. 2020, Algorithm 1."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from privtail.algorithms.approximate import require_approximate
from privtail.algorithms.parameters import Checked, preset
from privtail.algorithms.result import Result, starting_point
from privtail.domains import Domain, require
from privtail.errors import IncompatibleParts, InvalidInput
from privtail.losses import AnyLoss, GeneralLoss, Loss, TruncatedLoss
from privtail.spelling import counted
from privtail.trusted.budget import Budget
from privtail.trusted.curator import Curator
from privtail.trusted.events import Plan, Round
from privtail.trusted.maps import FeatureMap
from privtail.trusted.problem import Problem

if TYPE_CHECKING:
    from privtail.trusted.smooth.aggregate import SampleAndAggregate

Doubles = NDArray[np.float64]
LARGEST = 0.5
"""The largest smoothness that is suggested.

Noise that is stretched by e^beta costs about (e^(2 beta) - 1)(d + log(2/delta)). The paper's beta
leaves half of epsilon, 2 beta (d + log(2/delta)), for this cost. For a large beta that is too
little. Above .63 even the whole epsilon is too little: no amount of noise meets the budget.
"""


def suggested_smoothness(epsilon: float, delta: float, size: int) -> float:
    """The paper's beta = epsilon/(4 (d + log(2/delta))), and `LARGEST` for a large epsilon."""
    return min(LARGEST, epsilon / (4 * (size + math.log(2 / delta))))


@dataclass(frozen=True, kw_only=True)
class AggregatedMinimizer(Checked):
    """Heavy-tailed private stochastic convex optimization from many small minimizers.

    Wang, Xiao, Devadas, Xu, "On differentially private stochastic convex optimization with
    heavy-tailed data", ICML 2020, Algorithm 1 (Nissim, Raskhodnikova, Smith 2007). Its function f
    is the minimizer of the empirical risk, as in theorem 2. `smooth.questions.aggregate` takes any
    f.

    ============  =====================  =======================================================
    paper         here                   meaning
    ============  =====================  =======================================================
    m             ``blocks``             number of subsets
    Lambda        2 ``radius``           diameter of the ball that minimizers are forced into
    beta          ``smoothness``         epsilon/(4 (d + log(2/delta))) in line 1
    gamma         1/multiplier           line 1; here from the accountant
    delta         ``delta``              additive term of the guarantee
    f             ``iterations``         steps of proximal gradient descent on a subset
    s             1                      subsets that a row is in
    ============  =====================  =======================================================

    **Privacy.** One point whose noise follows a smooth sensitivity: (epsilon, delta)-DP. Both steps
    of its proof, moving and stretching a Gaussian, have exact curves. Both neighbour relations.

    **Utility.** Theorem 2: excess risk O~((curvature/strong convexity)^2 d^3/(n eps^4)) times the
    least risk, for n of order d^2/eps^2 times the size that theorem 1's (1) asks of a subset. Here
    the centre is within the radius of the closest majority of the minimizers.

    **Deviations from the paper.** Line 2 draws subsets that overlap; disjoint parts have s = 1 and
    need no rejection. Line 5 averages the "top" radii; with the largest the bound is not smooth by
    any factor, and with the smallest not by e^beta: `SampleAndAggregate` has a bound that is proved
    (docs/mathematics.md#aggregation), which needs a number of parts that line 1's eps > 2 d/sqrt(m)
    does not give. In one dimension any centre is allowed, and the bound is exact. Line 1's gamma is
    several times smaller than necessary. The noisy centre is projected onto the set.

    Parameters
    ----------
    blocks : int
        Number of subsets of the records.
    radius : float
        Radius of the ball that minimizers are forced into, above 0.
    smoothness : float
        beta, in (0, 1): one record changes the smooth sensitivity by a factor of at most e^beta.
    delta : float
        Additive term of the guarantee, in (0, 1).
    iterations : int, default=100
        Steps of proximal gradient descent on a subset.

    Raises
    ------
    InvalidInput
        If a parameter is outside its range.

    Examples
    --------
    >>> import numpy as np
    >>> from privtail.algorithms import AggregatedMinimizer
    >>> from privtail.linear_model import DPGeneralizedLinearEstimator
    >>> X = np.random.default_rng(0).normal(size=(2_000, 3))
    >>> algorithm = AggregatedMinimizer(blocks=400, radius=1.0, smoothness=0.1, delta=1e-7)
    >>> model = DPGeneralizedLinearEstimator(algorithm=algorithm, epsilon=8.0)
    >>> model.fit(X, X[:, 0]).coef_.shape
    (3,)
    """

    blocks: int
    radius: float
    smoothness: float
    delta: float
    iterations: int = 100

    needs: ClassVar[tuple[str, ...]] = ("prox",)

    @classmethod
    @preset
    def from_theory(cls, n: int, d: int, budget: Budget, *, radius: float) -> Self:
        """Line 1's smoothness, and enough parts that Lambda counts for a hundredth of itself.

        In the smooth sensitivity Lambda stands where about half of the m parts are replaced. Each
        of these parts gives a factor e^-beta in one dimension, and e^(-beta/2) in more. ``d``
        counts the entries of w, an intercept included.

        Raises
        ------
        InvalidInput
            If n rows are fewer than the parts that are needed.
        """
        from privtail.trusted.smooth.aggregate import blocks_needed

        require_approximate(budget, "AggregatedMinimizer.from_theory")
        smoothness = suggested_smoothness(budget.epsilon, budget.delta, d)
        useful = math.ceil(2 * math.log(100) / smoothness * (1 if d == 1 else 2))
        blocks = max(blocks_needed(d, smoothness), useful)
        if n < blocks:
            raise InvalidInput(
                f"Sample and aggregate needs at least {blocks} rows for {counted(d, 'parameter')} "
                f"at epsilon={budget.epsilon:g}: one in each of its {blocks} parts, and more to be "
                f"accurate. There are {n}. Take a larger epsilon, or",
                "algorithm='auto'.",
                cli="--algorithm auto.",
            )
        return cls(blocks=blocks, radius=radius, smoothness=smoothness, delta=budget.delta)

    def mechanism(self, multiplier: float) -> SampleAndAggregate:
        """What lines 4 to 6 do; ``multiplier`` is 1/gamma."""
        from privtail.trusted.smooth.aggregate import SampleAndAggregate

        return SampleAndAggregate(
            multiplier=multiplier, blocks=self.blocks, radius=self.radius,
            smoothness=self.smoothness, delta=self.delta,
        )  # fmt: skip

    def plan(self, multiplier: float, problem: Problem) -> Plan:
        """One release."""
        event = self.mechanism(multiplier).event(problem, problem.rows * problem.outputs)
        return (Round(events=(event,)),)

    def takes(self, loss: AnyLoss, problem: Problem) -> Loss:
        """A smooth loss of a margin."""
        if isinstance(loss, GeneralLoss | TruncatedLoss) or not math.isfinite(loss.curvature):
            raise IncompatibleParts(
                f"AggregatedMinimizer needs a smooth loss of x.w, and {loss.name} is not one. Give "
                "smooth.questions.aggregate a minimizer of your own."
            )
        return loss

    def run(
        self, curator: Curator, loss: AnyLoss, domain: Domain, multiplier: float,
        start: ArrayLike | None = None, map: FeatureMap | None = None,
    ) -> Result:  # fmt: skip
        """The algorithm as printed; returns A(D). Where a minimizer fails, ``start`` counts."""
        from privtail.trusted.smooth.questions import aggregate

        require(domain, *self.needs, needed_by="AggregatedMinimizer")
        smooth = self.takes(loss, curator.problem)
        w = starting_point(curator.problem, start)
        intercept = curator.problem.intercept

        def minimizer(x: Doubles, y: Doubles) -> Doubles:
            rows = np.hstack([x, np.ones((len(x), 1))]) if intercept else x
            return minimized(smooth, domain, rows, y, w, self.iterations)

        batch = curator.everyone(map)  # line 2
        w = aggregate(batch, minimizer, w, self.mechanism(multiplier))  # lines 3-6
        return Result(domain.prox(w, 0.0), 1, multiplier)


def minimized(
    loss: Loss, domain: Domain, x: Doubles, y: Doubles, start: Doubles, iterations: int
) -> Doubles:
    """Accelerated proximal gradient descent on the mean loss of x (rows, D) (Beck, Teboulle)."""
    smooth = loss.curvature * float(np.linalg.norm(x, 2)) ** 2 / len(x)
    step, w, ahead, momentum = 1 / smooth, start, start, 1.0
    for _ in range(iterations):
        gradient = x.T @ loss.derivatives(x @ ahead, y) / len(x)
        closer = domain.prox(ahead - step * gradient, step)
        longer = (1 + math.sqrt(1 + 4 * momentum**2)) / 2
        ahead = closer + (momentum - 1) / longer * (closer - w)
        w, momentum = closer, longer
    return w
