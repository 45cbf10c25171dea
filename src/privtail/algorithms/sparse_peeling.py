"""Iterative hard thresholding with peeling: Tao et al. 2022, Algorithm 5, and Hu et al. 2022."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar, Self

from numpy.typing import ArrayLike

from privtail.algorithms.approximate import require_approximate
from privtail.algorithms.parameters import Checked, preset
from privtail.algorithms.peeling import LaplacePeeling, OneShotPeeling, Peeling
from privtail.algorithms.result import Result, starting_point
from privtail.domains import Domain, require
from privtail.losses import AnyLoss
from privtail.robust_means import SmoothedCatoniMean, TruncatedMean
from privtail.trusted.budget import Budget
from privtail.trusted.curator import Curator
from privtail.trusted.events import Plan, Round
from privtail.trusted.maps import FeatureMap
from privtail.trusted.means import RobustMean
from privtail.trusted.problem import Problem
from privtail.trusted.sampling import DisjointParts


@dataclass(frozen=True, kw_only=True)
class SparsePeeling(Checked):
    """Gradient descent over w with at most s entries that are not 0, for heavy-tailed gradients.

    Tao, Wu, Cheng, Wang, "Private stochastic convex optimization and sparse learning with
    heavy-tailed data revisited", IJCAI 2022, Algorithm 5 (`from_theory`: truncated gradients under
    moments of order 1 + v), and the sparse optimization of Hu, Ni, Xiao, Wang, "High dimensional
    differentially private stochastic optimization with heavy-tailed data", PODS 2022 (`smoothed`:
    smoothed Catoni gradients under second moments). The two differ in ``mean`` alone.

    ================  =====================  ====================================================
    paper             here                   meaning
    ================  =====================  ====================================================
    T                 ``steps``              iterations, and parts of the records
    eta_0             ``step_size``          step size
    s                 ``peeling.sparsity``   entries of w that are not 0
    B                 threshold              of `TruncatedMean`: entries beyond it count as 0
    k, beta           scale, smoothing       of `SmoothedCatoniMean` (Hu et al.)
    lambda            -                      l-infinity sensitivity of the step, 2 B eta_0 / m
    gamma_r, mu_r     curvature, strong      restricted smoothness and strong convexity
                      convexity
    u, v, s*          moment, order,         E |g_j|^(1 + v) <= u; entries of the best w
                      sparsity
    ================  =====================  ====================================================

    **Privacy.** The step w - eta_0 g of a part passes through ``peeling``, which pays for support
    and values. A record is in one part, so all parts together cost what one of them costs.

    **Utility.** Theorem 10: excess risk O~(s*^((1+2v)/(1+v)) (log(d) / (n eps))^(2v/(1+v))) under
    restricted strong convexity and smoothness; Hu et al.: O~(s*^(3/2) log(d) / (n eps)).

    **Deviations from the paper.** Parts are dealt by row id. Noise comes from the accountant: the
    printed one is private, but spends about half of its epsilon. ``peeling`` may be
    `LaplacePeeling`, the printed one, or `OneShotPeeling`. Hu et al.'s lambda is 4 sqrt 2 k eta /
    (3 m); ours is 2 c_beta k eta / m, where c_beta bounds the smoothed influence function
    (`SmoothedCatoniMean`). A regularizer enters by its prox after the peeling, which for a set is
    the projection. The intercept is not selected: it is always kept, and released like any value.

    Parameters
    ----------
    mean : RobustMean
        How gradients are bounded, such as `ClippedMean`.
    steps : int
        Number of iterations, and of parts of the records.
    step_size : float
        Step size, above 0, in your units.
    peeling : LaplacePeeling or OneShotPeeling
        How the support is selected and its values are released.

    Examples
    --------
    >>> import numpy as np
    >>> from privtail.algorithms import SparsePeeling
    >>> from privtail.algorithms import LaplacePeeling
    >>> from privtail.robust_means import ClampedMean
    >>> peeling = LaplacePeeling(sparsity=1)
    >>> from privtail.linear_model import DPGeneralizedLinearEstimator
    >>> X = np.random.default_rng(0).normal(size=(2_000, 3))
    >>> algorithm = SparsePeeling(mean=ClampedMean(2.0), steps=5, step_size=0.3, peeling=peeling)
    >>> model = DPGeneralizedLinearEstimator(algorithm=algorithm, epsilon=1.0)
    >>> model.fit(X, X[:, 0]).coef_.shape
    (3,)
    """

    mean: RobustMean
    steps: int
    step_size: float
    peeling: Peeling

    needs: ClassVar[tuple[str, ...]] = ("prox",)

    @classmethod
    @preset
    def from_theory(
        cls, n: int, d: int, budget: Budget, *, sparsity: int, moment: float, order: float = 1.0,
        curvature: float = 1.0, strong_convexity: float = 1.0, failure_probability: float = 0.05,
        printed: bool = False,
    ) -> Self:  # fmt: skip
        """Theorem 10, constants of O() set to 1.

        T = (gamma/mu) log n, s = (gamma/mu)^2 s*, at most d. ``printed`` takes `LaplacePeeling`
        instead of `OneShotPeeling`.
        """
        require_approximate(budget, "SparsePeeling.from_theory")
        condition = curvature / strong_convexity
        steps = min(n, max(1, math.ceil(condition * math.log(n))))
        s = min(d, math.ceil(condition**2 * sparsity))
        noise = math.log(d * steps / failure_probability) * math.sqrt(
            s * math.log(1 / budget.delta)
        )
        threshold = curvature * moment * n * budget.epsilon / (steps * noise)
        return cls(
            mean=TruncatedMean(threshold ** (1 / (1 + order))), steps=steps,
            step_size=2 / (3 * curvature),
            peeling=LaplacePeeling(sparsity=s) if printed else OneShotPeeling(sparsity=s),
        )  # fmt: skip

    @classmethod
    @preset
    def smoothed(
        cls, *, steps: int, step_size: float, scale: float, sparsity: int, smoothing: float = 1.0
    ) -> Self:
        """Hu et al.'s sparse optimization: smoothed Catoni gradients."""
        mean = SmoothedCatoniMean(scale, smoothing)
        peeling = OneShotPeeling(sparsity=sparsity)
        return cls(mean=mean, steps=steps, step_size=step_size, peeling=peeling)

    @property
    def sampling(self) -> DisjointParts:
        """One part per step."""
        return DisjointParts(self.steps)

    def plan(self, multiplier: float, problem: Problem) -> Plan:
        """One peeling per part."""
        step = problem.sampled(self.sampling).gradient(self.mean)
        events = self.peeling.events(multiplier, step, problem.intercept * problem.outputs)
        return (Round(sampling=self.sampling, events=events, times=self.steps),)

    def run(
        self, curator: Curator, loss: AnyLoss, domain: Domain, multiplier: float,
        start: ArrayLike | None = None, map: FeatureMap | None = None,
    ) -> Result:  # fmt: skip
        """The loop as printed; returns w^(T+1)."""
        require(domain, *self.needs, needed_by="SparsePeeling")
        w = starting_point(curator.problem, start)
        kept = curator.problem.intercept * curator.problem.outputs
        for batch in curator.rounds(self.sampling, self.steps, map):  # lines 1-2
            g = batch.gradient(loss, w, self.mean)  # lines 3-8
            step = g.scale(self.step_size).negate()  # line 9
            peeled = self.peeling.release(multiplier, step, kept, w.reshape(-1))  # line 10
            w = domain.prox(peeled.reshape(w.shape), self.step_size)
        return Result(w, self.steps, multiplier)  # line 12
