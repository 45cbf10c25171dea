"""Private mirror descent with Gaussian gradients: Wang and Xu 2019, Algorithm 3."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike

from privtail.algorithms.approximate import require_approximate
from privtail.algorithms.bregman import Euclidean, Geometry
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
class MirrorDescent(Checked):
    """DP-PMD: mirror descent with noisy gradients, with a regularizer on a bounded convex set.

    Wang & Xu, "Differentially private empirical risk minimization with smooth non-convex loss
    functions: a non-stationary view", AAAI 2019, Algorithm 3. Minimizes F(w) + r(w) over C. F need
    not be convex; C has to be symmetric.

    ============  =====================  ====================================
    paper         here                   meaning
    ============  =====================  ====================================
    T             ``steps``              number of iterates x_1 ... x_T
    gamma         ``step_size``          1/(2 L |C|_2^2) in theorem 5, L the smoothness
    G             ``threshold``          Lipschitz constant; here an enforced clipping radius
    w, V          ``geometry``           `Euclidean`, `Entropy` on a simplex, `PNorm` on an l1 ball
    |C|_2, G_C    norm, width            largest l2 norm and Gaussian width of C
    ============  =====================  ====================================

    **Privacy.** T - 1 Gaussian releases with l2 diameter 2 threshold / n; exact composition.

    **Utility.** Theorem 5: the expected norm of the generalized projected gradient of the returned
    iterate is O(|C|_2^(3/2) ((|C|_2^2 + G_C^2) log(1/delta))^(1/4) / sqrt(n eps)) for a
    G-Lipschitz, L-smooth loss and a V of modulus 1 in the norm whose unit ball is C.

    **Deviations from the paper.** Noise: see `FrankWolfe`. Gradients are clipped instead of assumed
    bounded. The algorithm prints V(u, x) for V(u, x_k), and the definition before it has 1/2 for
    1/gamma. x_(T+1) is never used, so T - 1 releases suffice. The start is projected onto C. A
    simplex is not centrally symmetric; theorem 5 does not speak of it.

    Parameters
    ----------
    steps : int
        Number of iterates x_1 ... x_T, at least 2. One gradient fewer is released.
    step_size : float
        Step size, above 0, in your units.
    threshold : float
        Clipping threshold of a gradient, above 0, in the units of gradients.
    geometry : Euclidean, Entropy or PNorm, default=Euclidean()
        The mirror map: `Entropy` on a simplex, `PNorm` on an l1 ball.

    Examples
    --------
    >>> import numpy as np
    >>> from privtail.algorithms import MirrorDescent
    >>> from privtail.domains import L2Ball
    >>> from privtail.linear_model import DPGeneralizedLinearEstimator
    >>> X = np.random.default_rng(0).normal(size=(2_000, 3))
    >>> algorithm = MirrorDescent(steps=20, step_size=0.3, threshold=2.0)
    >>> model = DPGeneralizedLinearEstimator(domain=L2Ball(radius=2.0), algorithm=algorithm,
    ...                                      epsilon=1.0)
    >>> model.fit(X, X[:, 0]).coef_.shape
    (3,)
    """

    steps: int
    step_size: float
    threshold: float
    geometry: Geometry = Euclidean()

    needs: ClassVar[tuple[str, ...]] = ("prox",)
    fewest_steps: ClassVar[int] = 2

    @classmethod
    @preset
    def from_theory(
        cls, n: int, budget: Budget, *, curvature: float, lipschitz: float, norm: float,
        width: float, geometry: Geometry,
    ) -> Self:  # fmt: skip
        """Theorem 5, the constant of its O() set to 1.

        ``width`` is sqrt(2 log(2 d)) radius for an l1 ball.
        """
        require_approximate(budget, "MirrorDescent.from_theory")
        spread = (norm**2 + width**2) * math.log(1 / budget.delta)
        steps = n * budget.epsilon * norm / math.sqrt(spread)
        return cls(
            steps=max(2, math.ceil(steps)), step_size=1 / (2 * curvature * norm**2),
            threshold=lipschitz, geometry=geometry,
        )  # fmt: skip

    @property
    def mean(self) -> ClippedMean:
        """The robust mean of every step."""
        return ClippedMean(self.threshold)

    def plan(self, multiplier: float, problem: Problem) -> Plan:
        """One Gaussian release of a gradient between each pair of iterates."""
        return gradient_rounds(Everyone(), self.steps - 1, self.mean, multiplier, problem)

    def suits(self, domain: Domain, problem: Problem) -> None:
        """Where the step of the geometry is known: it is tried at the start, without a gradient."""
        self.geometry.check(domain)
        start = domain.prox(np.zeros((problem.d, problem.outputs)), 0.0)
        self.geometry.step(domain, start, np.zeros_like(start), self.step_size)

    def run(
        self, curator: Curator, loss: AnyLoss, domain: Domain, multiplier: float,
        start: ArrayLike | None = None, map: FeatureMap | None = None,
    ) -> Result:  # fmt: skip
        """The loop as printed; returns x_R for a uniform R."""
        require(domain, *self.needs, needed_by="MirrorDescent")
        self.geometry.check(domain)
        iterates = [domain.prox(starting_point(curator.problem, start), 0.0)]
        for batch in curator.rounds(Everyone(), self.steps - 1, map):  # line 1
            x = iterates[-1]
            g = batch.gradient(loss, x, self.mean).release(GaussianNoise(multiplier))
            iterates.append(self.geometry.step(domain, x, g.reshape(x.shape), self.step_size))  # 2
        chosen = curator.uniform(self.steps)  # line 4
        return Result(iterates[chosen], self.steps - 1, multiplier)
