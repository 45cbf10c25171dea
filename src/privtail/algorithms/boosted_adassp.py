"""Least squares by boosting with one private matrix of second moments: Tang et al. 2023."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from privtail.algorithms.approximate import require_approximate
from privtail.algorithms.parameters import Checked, preset
from privtail.algorithms.result import Result, starting_point
from privtail.domains import Domain, require
from privtail.errors import IncompatibleParts
from privtail.losses import AnyLoss, HuberLoss, SquaredLoss
from privtail.robust_means import ClippedMean
from privtail.second_moments import symmetric
from privtail.trusted.budget import Budget
from privtail.trusted.curator import Curator
from privtail.trusted.events import Plan, Round
from privtail.trusted.maps import FeatureMap
from privtail.trusted.mechanisms.noise import GaussianNoise
from privtail.trusted.problem import Problem
from privtail.trusted.sampling import Everyone

Doubles = NDArray[np.float64]


@dataclass(frozen=True, kw_only=True)
class BoostedAdaSSP(Checked):
    """Least squares from one noisy matrix of second moments and many noisy gradients.

    Tang, Aydore, Kearns, Rho, Roth, Wang, Wang, Wu, "Improved differentially private regression via
    gradient boosting", SaTML 2024 (arXiv 2303.03451): Algorithm 1, after the code of its authors
    and that of Google Research. It fits AdaSSP (Wang 2018) again in every round, to clipped
    residuals. The second moments are released once and serve all rounds.

    ============  =====================  ====================================
    paper         here                   meaning
    ============  =====================  ====================================
    T             ``steps``              rounds of boosting; 100 in the authors' code
    tau           ``radius``             bound of the norm of a row
    1             ``threshold``          bound of a residual
    lambda        ridge                  what noise may have taken from the least eigenvalue
    Gamma         inverse                inverse of the noisy second moments plus the ridge
    ============  =====================  ====================================

    **Privacy.** One Gaussian release of second moments, whose l2 diameter is sqrt(2) radius^2 / n,
    and one of a mean gradient per round, with 2 radius threshold / n; exact composition. Under
    replace-one all releases have the same part of the budget, as in the authors' code.

    **Utility.** Only code was at hand, so no theorem is quoted. For rows within ``radius`` it
    minimizes the Huber loss with this ``threshold``. That is least squares if no residual exceeds
    it.

    **Deviations from the paper.** The least eigenvalue is that of the noisy moments, which costs
    nothing. Residuals are of whole rows, and the core bounds the norm of row times clipped residual
    where the code shortens a row first: for rows within ``radius`` both are the same. Noise comes
    from the accountant: the authors' code that was read multiplies by the mu of Gaussian
    differential privacy, by which it ought to divide, and gives every release the whole budget.
    After every round the model is projected onto the domain.

    Parameters
    ----------
    steps : int
        Number of rounds, at least 1.
    radius : float
        Bound of the l2 norm of a row with its constant feature, above 0.
    threshold : float
        Bound of a residual, above 0, in units of the target.
    failure_probability : float, default=0.05
        Probability with which noise may exceed the ridge, between 0 and 1.

    Raises
    ------
    IncompatibleParts
        If the loss is another than least squares.

    Examples
    --------
    >>> import numpy as np
    >>> from privtail.algorithms import BoostedAdaSSP
    >>> from privtail.linear_model import DPGeneralizedLinearEstimator
    >>> X = np.random.default_rng(0).normal(size=(2_000, 3))
    >>> algorithm = BoostedAdaSSP(steps=5, radius=3.0, threshold=2.0)
    >>> model = DPGeneralizedLinearEstimator(algorithm=algorithm, epsilon=1.0)
    >>> model.fit(X, X[:, 0]).coef_.shape
    (3,)
    """

    steps: int
    radius: float
    threshold: float
    failure_probability: float = 0.05

    needs: ClassVar[tuple[str, ...]] = ("project",)

    @classmethod
    @preset
    def from_theory(
        cls, n: int, d: int, budget: Budget, *, radius: float = 1.0, threshold: float = 1.0
    ) -> Self:
        """The authors' settings, which no theorem sets: 100 rounds, and bounds of 1."""
        require_approximate(budget, "BoostedAdaSSP.from_theory")
        return cls(steps=100, radius=radius, threshold=threshold)

    @property
    def mean(self) -> ClippedMean:
        """The robust mean of every round."""
        return ClippedMean(self.radius * self.threshold)

    def takes(self, loss: AnyLoss, problem: Problem) -> None:
        """`SquaredLoss`."""
        if not isinstance(loss, SquaredLoss):
            raise IncompatibleParts(
                "BoostedAdaSSP fits least squares: it takes SquaredLoss() alone."
            )

    def plan(self, multiplier: float, problem: Problem) -> Plan:
        """One release of second moments, one of a gradient per round."""
        moments = self._noise(multiplier).event(problem.moments(self.radius))
        gradient = GaussianNoise(multiplier).event(problem.gradient(self.mean))
        return (
            Round(sampling=Everyone(), events=(moments,)),
            Round(sampling=Everyone(), events=(gradient,), times=self.steps),
        )

    def run(
        self, curator: Curator, loss: AnyLoss, domain: Domain, multiplier: float,
        start: ArrayLike | None = None, map: FeatureMap | None = None,
    ) -> Result:  # fmt: skip
        """The rounds; the sum of their models."""
        known = require(domain, *self.needs, needed_by="BoostedAdaSSP")
        problem = curator.problem
        self.takes(loss, problem)
        noise = self._noise(multiplier)
        triangle = curator.everyone(map).moments(self.radius).release(noise)
        inverse = self._inverse(
            symmetric(triangle, problem.rows), noise.event(problem.moments(self.radius)).std
        )
        w, clipped = starting_point(problem, start), HuberLoss(threshold=self.threshold)
        for batch in curator.rounds(Everyone(), self.steps, map):
            g = batch.gradient(clipped, w, self.mean).release(GaussianNoise(multiplier))
            w = known.project(w - inverse @ g.reshape(w.shape))
        return Result(w, self.steps, multiplier)

    def _noise(self, multiplier: float) -> GaussianNoise:
        """The noise of the moments: it makes them cost as much as one round under replace-one."""
        return GaussianNoise(multiplier / math.sqrt(2))

    def _inverse(self, moments: Doubles, std: float) -> Doubles:
        """The inverse of noisy moments plus the ridge, without directions of no curvature."""
        p = len(moments)
        values, vectors = np.linalg.eigh(moments)
        worst = std * math.sqrt(p * math.log(2 * p**2 / self.failure_probability))
        values = values + max(0.0, worst - max(float(values[0]), 0.0))
        used = values > max(1e-12 * float(values[-1]), 1e-300)
        inverses = np.where(used, 1 / np.where(used, values, 1.0), 0.0)
        return np.asarray((vectors * inverses) @ vectors.T)
