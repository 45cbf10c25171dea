"""Private Frank-Wolfe with Gaussian gradients: Wang and Xu 2019, Algorithm 2."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

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
class FrankWolfe(Checked):
    """DP-FW-L2: Frank-Wolfe with noisy gradients, on a bounded symmetric convex set.

    Wang & Xu, "Differentially private empirical risk minimization with smooth non-convex loss
    functions: a non-stationary view", AAAI 2019, Algorithm 2. Minimizes F(w) over C. F need not be
    convex: the aim is a point with a small `frank_wolfe_gap`.

    ============  =====================  ====================================
    paper         here                   meaning
    ============  =====================  ====================================
    T             ``steps``              number of iterates x_1 ... x_T
    gamma         ``step_size``          weight of the new vertex, at most 1
    G             ``threshold``          Lipschitz constant; here an enforced clipping radius
    |C|_2, G_C    norm, width            largest l2 norm and Gaussian width of C (theorem 4)
    ============  =====================  ====================================

    **Privacy.** T - 1 Gaussian releases with l2 diameter 2 threshold / n; exact composition.

    **Utility.** Theorem 4: the expected Frank-Wolfe gap of the returned iterate is O(|C|_2
    ((|C|_2^2 + G_C^2) log(1/delta))^(1/4) / sqrt(n eps)) for a G-Lipschitz, L-smooth loss with G =
    L = 1. The width of C takes the place of the dimension.

    **Deviations from the paper.** Noise comes from the accountant: theorem 1 leaves its constant
    open, and line 3 of Algorithm 1, which it may be taken from, prints rho^2 for rho and L for G.
    Gradients are clipped instead of assumed bounded. The gradient is taken at x_t; the paper prints
    x. Theorem 4 prints |C|_2 for |C|_2^2 in the step size. x_(T+1) is never used, so T - 1 releases
    suffice. The start is projected onto C. There is no intercept: it is free, and C is bounded.

    Parameters
    ----------
    steps : int
        Number of iterates x_1 ... x_T, at least 2. One gradient fewer is released.
    step_size : float
        Weight of the new vertex, in (0, 1].
    threshold : float
        Clipping threshold of a gradient, above 0, in the units of gradients.

    Examples
    --------
    >>> import numpy as np
    >>> from privtail.algorithms import FrankWolfe
    >>> from privtail.domains import L2Ball
    >>> from privtail.linear_model import DPGeneralizedLinearEstimator
    >>> X = np.random.default_rng(0).normal(size=(2_000, 3))
    >>> algorithm = FrankWolfe(steps=20, step_size=0.1, threshold=2.0)
    >>> model = DPGeneralizedLinearEstimator(domain=L2Ball(radius=2.0), algorithm=algorithm,
    ...                                      fit_intercept=False, epsilon=1.0)
    >>> model.fit(X, X[:, 0]).coef_.shape
    (3,)
    """

    steps: int
    step_size: float
    threshold: float

    needs: ClassVar[tuple[str, ...]] = ("minimize_linear", "project")
    fewest_steps: ClassVar[int] = 2
    longest_step: ClassVar[float] = 1.0

    @classmethod
    @preset
    def from_theory(
        cls, n: int, budget: Budget, *, lipschitz: float, norm: float, width: float
    ) -> Self:
        """Theorem 4, the constant of its O() set to 1.

        ``width`` is sqrt(2 log(2 d)) radius for an l1 ball.
        """
        require_approximate(budget, "FrankWolfe.from_theory")
        spread = (norm**2 + width**2) * math.log(1 / budget.delta)
        size = n * budget.epsilon
        return cls(
            steps=max(2, math.ceil(size / math.sqrt(spread))),
            step_size=min(1.0, spread**0.25 / (norm * math.sqrt(size))),
            threshold=lipschitz,
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
        known = require(domain, *self.needs, needed_by="FrankWolfe")
        iterates = [known.project(starting_point(curator.problem, start))]
        for batch in curator.rounds(Everyone(), self.steps - 1, map):
            x = iterates[-1]
            g = batch.gradient(loss, x, self.mean).release(GaussianNoise(multiplier))
            v = known.minimize_linear(g.reshape(x.shape))
            iterates.append(x + self.step_size * (v - x))
        chosen = curator.uniform(self.steps)
        return Result(iterates[chosen], self.steps - 1, multiplier)


def frank_wolfe_gap(domain: Any, w: NDArray[np.float64], g: NDArray[np.float64]) -> float:
    """Largest <v - w, -g> of v in C, g the gradient at w: 0 where w is stationary on C."""
    known = require(domain, "minimize_linear", needed_by="frank_wolfe_gap")
    return float(np.sum((w - known.minimize_linear(g)) * g))
