"""Full-batch private proximal gradient with a random iterate: Wang and Xu 2019, Algorithm 1."""

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
from privtail.trusted.sampling import Everyone


@dataclass(frozen=True, kw_only=True)
class ProximalGradient(Checked):
    """DP-PGD: proximal gradient descent with noisy gradients, with a regularizer and a convex set.

    Wang & Xu, "Differentially private empirical risk minimization with smooth non-convex loss
    functions: a non-stationary view", AAAI 2019, Algorithm 1. Minimizes F(w) + r(w) over C. F need
    not be convex, and r need not be smooth.

    ============  =====================  ====================================
    paper         here                   meaning
    ============  =====================  ====================================
    T             ``steps``              number of iterates x_1 ... x_T
    gamma         ``step_size``          1/(2 L) in theorem 2, L the smoothness
    G             ``threshold``          Lipschitz constant; here an enforced clipping radius
    ============  =====================  ====================================

    **Privacy.** T - 1 Gaussian releases with l2 diameter 2 threshold / n; exact composition.

    **Utility.** Theorem 2: the expected norm of the projected gradient of the returned iterate is
    O((p log(1/delta))^(1/4) / sqrt(n eps)) for a G-Lipschitz, L-smooth loss.

    **Deviations from the paper.** Line 3 prints rho^2 for rho and L for G in the noise
    (docs/mathematics.md#printed-noise); the accountant's noise replaces it. Gradients are clipped
    instead of assumed bounded. x_(T+1) is never used, so T - 1 releases suffice. The step size is
    public; the paper's experiments use a line search on raw data, which is not private.

    Parameters
    ----------
    steps : int
        Number of iterates x_1 ... x_T, at least 2. One gradient fewer is released.
    step_size : float
        Step size, above 0, in your units.
    threshold : float
        Clipping threshold of a gradient, above 0, in the units of gradients.

    Examples
    --------
    >>> import numpy as np
    >>> from privtail.algorithms import ProximalGradient
    >>> from privtail.linear_model import DPGeneralizedLinearEstimator
    >>> X = np.random.default_rng(0).normal(size=(2_000, 3))
    >>> algorithm = ProximalGradient(steps=20, step_size=0.3, threshold=2.0)
    >>> model = DPGeneralizedLinearEstimator(algorithm=algorithm, epsilon=1.0)
    >>> model.fit(X, X[:, 0]).coef_.shape
    (3,)
    """

    steps: int
    step_size: float
    threshold: float

    needs: ClassVar[tuple[str, ...]] = ("prox",)
    fewest_steps: ClassVar[int] = 2

    @classmethod
    @preset
    def from_theory(
        cls, n: int, d: int, budget: Budget, *, curvature: float, lipschitz: float
    ) -> Self:
        """Theorem 2, the constant of its O() set to 1.

        T = n eps / sqrt(p log(1/delta)), step 1/(2 L), threshold G.
        """
        require_approximate(budget, "ProximalGradient.from_theory")
        steps = n * budget.epsilon / math.sqrt(d * math.log(1 / budget.delta))
        return cls(
            steps=max(2, math.ceil(steps)), step_size=1 / (2 * curvature), threshold=lipschitz
        )

    @property
    def mean(self) -> ClippedMean:
        """The robust mean of every step."""
        return ClippedMean(self.threshold)

    def plan(self, multiplier: float, problem: Problem) -> Plan:
        """One Gaussian release of a gradient between each pair of iterates."""
        return gradient_rounds(Everyone(), self.steps - 1, self.mean, multiplier, problem)

    def run(
        self, curator: Curator, loss: AnyLoss, domain: Domain, multiplier: float,
        start: ArrayLike | None = None, map: FeatureMap | None = None,
    ) -> Result:  # fmt: skip
        """The loop as printed; returns x_R for a uniform R."""
        require(domain, *self.needs, needed_by="ProximalGradient")
        iterates = [starting_point(curator.problem, start)]
        for batch in curator.rounds(Everyone(), self.steps - 1, map):  # line 1
            x = iterates[-1]
            g = batch.gradient(loss, x, self.mean).release(GaussianNoise(multiplier))  # line 3
            x = domain.prox(x - self.step_size * g.reshape(x.shape), self.step_size)  # line 2
            iterates.append(x)
        chosen = curator.uniform(self.steps)  # line 5
        return Result(iterates[chosen], self.steps - 1, multiplier)
