"""Full-batch private gradient descent with a random iterate: Wang, Ye, Xu 2017."""

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
class NoisyDescent(Checked):
    """DP-GD: noisy gradient descent for smooth losses, which need not be convex.

    Wang, Ye, Xu, "Differentially private empirical risk minimization revisited: faster and more
    general", NeurIPS 2017. Wang and Xu (AAAI 2019) compare with it in their figure 4.

    ============  =====================  ====================================
    paper         here                   meaning
    ============  =====================  ====================================
    T             ``steps``              iterations
    eta           ``step_size``          1/L, L the smoothness
    G             ``threshold``          Lipschitz constant; here an enforced clipping radius
    c             constant               factor of the noise variance; the paper leaves it open
    ============  =====================  ====================================

    **Privacy.** One Gaussian release per step with l2 diameter 2 threshold / n; exact composition.
    `printed_multiplier` and `quoted_multiplier` are the noise of the papers: open their plan to see
    what it truly costs.

    **Utility.** The expected norm of the gradient at the returned iterate is
    O((p log(1/delta))^(1/4) / sqrt(n eps)) for a G-Lipschitz, L-smooth loss.

    **Deviations from the paper.** Its text was not at hand: docs/mathematics.md#boxes-not-at-hand
    has the algorithm that is used. Noise comes from the accountant unless a printed multiplier is
    asked for. Gradients are clipped instead of assumed bounded. A regularizer enters by its prox.

    Parameters
    ----------
    steps : int
        Number of iterations, at least 1.
    step_size : float
        Step size, above 0, in your units.
    threshold : float
        Clipping threshold of a gradient, above 0, in the units of gradients.

    Examples
    --------
    >>> import numpy as np
    >>> from privtail.algorithms import NoisyDescent
    >>> from privtail.linear_model import DPGeneralizedLinearEstimator
    >>> X = np.random.default_rng(0).normal(size=(2_000, 3))
    >>> algorithm = NoisyDescent(steps=20, step_size=0.3, threshold=2.0)
    >>> model = DPGeneralizedLinearEstimator(algorithm=algorithm, epsilon=1.0)
    >>> model.fit(X, X[:, 0]).coef_.shape
    (3,)
    """

    steps: int
    step_size: float
    threshold: float

    needs: ClassVar[tuple[str, ...]] = ("prox",)

    @classmethod
    @preset
    def from_theory(
        cls, n: int, d: int, budget: Budget, *, curvature: float, lipschitz: float
    ) -> Self:
        """T = n eps / sqrt(p log(1/delta)), the constant of its O() set to 1, and step 1/L."""
        require_approximate(budget, "NoisyDescent.from_theory")
        steps = n * budget.epsilon / math.sqrt(d * math.log(1 / budget.delta))
        return cls(steps=max(1, math.ceil(steps)), step_size=1 / curvature, threshold=lipschitz)

    def printed_multiplier(self, budget: Budget, constant: float) -> float:
        """The paper's sigma / (G/n): sigma^2 = c G^2 T log(1/delta) / (n^2 eps^2)."""
        require_approximate(budget, "NoisyDescent.printed_multiplier")
        return math.sqrt(constant * self.steps * math.log(1 / budget.delta)) / budget.epsilon

    def quoted_multiplier(self, budget: Budget, *, over_steps: bool) -> float:
        """The noise that Wang and Xu 2019 quote for Zhang et al.: for all steps, or as printed.

        sigma / (G/n) of sigma^2 = 32 log(1/delta) log(T/delta) G^2 / (n^2 eps^2), times T with
        ``over_steps``. Without it the noise is too small from T = 122 on at (.5, 1e-3).
        """
        require_approximate(budget, "NoisyDescent.quoted_multiplier")
        logs = math.log(1 / budget.delta) * math.log(self.steps / budget.delta)
        return math.sqrt(32 * logs * (self.steps if over_steps else 1)) / budget.epsilon

    @property
    def mean(self) -> ClippedMean:
        """The robust mean of every step."""
        return ClippedMean(self.threshold)

    def plan(self, multiplier: float, problem: Problem) -> Plan:
        """One Gaussian release of a gradient per step."""
        return gradient_rounds(Everyone(), self.steps, self.mean, multiplier, problem)

    def run(
        self, curator: Curator, loss: AnyLoss, domain: Domain, multiplier: float,
        start: ArrayLike | None = None, map: FeatureMap | None = None,
    ) -> Result:  # fmt: skip
        """The loop; returns x_R for a uniform R in 1 ... T."""
        require(domain, *self.needs, needed_by="NoisyDescent")
        iterates = [starting_point(curator.problem, start)]
        for batch in curator.rounds(Everyone(), self.steps, map):
            x = iterates[-1]
            g = batch.gradient(loss, x, self.mean).release(GaussianNoise(multiplier))
            iterates.append(domain.prox(x - self.step_size * g.reshape(x.shape), self.step_size))
        chosen = curator.uniform(self.steps) + 1
        return Result(iterates[chosen], self.steps, multiplier)
