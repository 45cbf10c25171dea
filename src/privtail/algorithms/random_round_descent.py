"""Random-round private stochastic gradient descent: Zhang et al. 2017."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar, Self

from numpy.typing import ArrayLike

from privtail.algorithms.approximate import require_approximate
from privtail.algorithms.gradient_rounds import gradient_rounds
from privtail.algorithms.parameters import Checked, preset
from privtail.algorithms.result import Result, starting_point
from privtail.domains import Domain, require
from privtail.losses import AnyLoss
from privtail.robust_means import ClippedMean
from privtail.trusted.budget import Budget
from privtail.trusted.curator import Curator
from privtail.trusted.events import Plan
from privtail.trusted.maps import FeatureMap
from privtail.trusted.mechanisms.noise import GaussianNoise
from privtail.trusted.problem import Problem
from privtail.trusted.sampling import PoissonBatches


@dataclass(frozen=True, kw_only=True)
class RandomRoundDescent(Checked):
    """RRPSGD: stochastic gradient descent with about one row a step, for smooth losses.

    Zhang, Zheng, Mou, Wang, "Efficient private ERM for smooth objectives", IJCAI 2017. The loss
    need not be convex. Wang and Xu (AAAI 2019) compare with it in their figure 4.

    ============  =====================  ====================================
    paper         here                   meaning
    ============  =====================  ====================================
    n^2           ``steps``              largest value of the random number of rounds R
    eta           ``step_size``          step size
    G             ``threshold``          Lipschitz constant; here an enforced clipping radius
    xi            ``sampling``           one row in expectation
    ============  =====================  ====================================

    **Privacy.** One Poisson-subsampled Gaussian release per step, by numerical composition (PLD).
    `printed_multiplier` is the noise of the paper: open its plan to see what it truly costs.

    **Utility.** The expected norm of the gradient at the returned iterate is
    O((p log(1/delta) log(n/delta))^(1/4) / sqrt(n eps)) for a G-Lipschitz, L-smooth loss.

    **Deviations from the paper.** Its text was not at hand: docs/mathematics.md#boxes-not-at-hand
    has the algorithm that is used. The printed noise is recalled from memory. A row is in a batch
    with probability 1/n instead of one row being drawn, since that has an exact accountant. All
    ``steps`` are run and the iterate of a uniform R is returned, which has the law of stopping
    there. n^2 steps are feasible only if n is small. A regularizer enters by its prox.

    Parameters
    ----------
    rows : int
        Number of rows n, which is public.
    steps : int
        Number of iterations, at least 1.
    step_size : float
        Step size, above 0, in your units.
    threshold : float
        Clipping threshold of a gradient, above 0, in the units of gradients.

    Examples
    --------
    >>> import numpy as np
    >>> from privtail.algorithms import RandomRoundDescent
    >>> from privtail.domains import L2Ball
    >>> from privtail.linear_model import DPGeneralizedLinearEstimator
    >>> X = np.random.default_rng(0).normal(size=(2_000, 3))
    >>> algorithm = RandomRoundDescent(rows=2_000, steps=20, step_size=0.3, threshold=2.0)
    >>> model = DPGeneralizedLinearEstimator(domain=L2Ball(radius=2.0), algorithm=algorithm,
    ...                                      epsilon=1.0)
    >>> model.fit(X, X[:, 0]).coef_.shape
    (3,)
    """

    rows: int
    steps: int
    step_size: float
    threshold: float

    needs: ClassVar[tuple[str, ...]] = ("prox",)

    @classmethod
    @preset
    def from_theory(
        cls, n: int, d: int, budget: Budget, *, curvature: float, lipschitz: float,
        gap: float = 1.0, most_steps: int = 100_000,
    ) -> Self:  # fmt: skip
        """n^2 steps, at most ``most_steps``, and Ghadimi and Lan's step size for the printed noise.

        min(1/L, sqrt(2 gap / (L T p sigma^2))); ``gap`` is F(x_1) - min F.
        """
        require_approximate(budget, "RandomRoundDescent.from_theory")
        steps = min(n * n, most_steps)
        sigma = _printed(n, budget) * lipschitz
        step_size = min(1 / curvature, math.sqrt(2 * gap / (curvature * steps * d)) / sigma)
        return cls(rows=n, steps=steps, step_size=step_size, threshold=lipschitz)

    def printed_multiplier(self, budget: Budget) -> float:
        """The paper's sigma / G: sigma^2 = 4 G^2 log(3 n / delta) log(2 / delta) / eps^2."""
        return _printed(self.rows, budget)

    @property
    def mean(self) -> ClippedMean:
        """The robust mean of every step."""
        return ClippedMean(self.threshold)

    @property
    def sampling(self) -> PoissonBatches:
        """One row in expectation."""
        return PoissonBatches(1 / self.rows)

    def plan(self, multiplier: float, problem: Problem) -> Plan:
        """One Gaussian release of a batch gradient per step."""
        return gradient_rounds(self.sampling, self.steps, self.mean, multiplier, problem)

    def run(
        self, curator: Curator, loss: AnyLoss, domain: Domain, multiplier: float,
        start: ArrayLike | None = None, map: FeatureMap | None = None,
    ) -> Result:  # fmt: skip
        """The loop; returns the iterate of a uniform R in 1 ... ``steps``."""
        require(domain, *self.needs, needed_by="RandomRoundDescent")
        chosen = curator.uniform(self.steps) + 1
        w = returned = starting_point(curator.problem, start)
        for t, batch in enumerate(curator.rounds(self.sampling, self.steps, map), 1):
            g = batch.gradient(loss, w, self.mean).release(GaussianNoise(multiplier))
            w = domain.prox(w - self.step_size * g.reshape(w.shape), self.step_size)
            returned = w if t == chosen else returned
        return Result(returned, self.steps, multiplier)


def _printed(n: int, budget: Budget) -> float:
    require_approximate(budget, "RandomRoundDescent")
    return (
        2 * math.sqrt(math.log(3 * n / budget.delta) * math.log(2 / budget.delta)) / budget.epsilon
    )
