"""Sparse least squares on truncated records: the sparse linear regression of Hu et al."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar, Self

from numpy.typing import ArrayLike

from privtail.algorithms.approximate import require_approximate
from privtail.algorithms.parameters import Checked, preset
from privtail.algorithms.peeling import OneShotPeeling
from privtail.algorithms.result import Result
from privtail.algorithms.sparse_peeling import SparsePeeling
from privtail.domains import Domain, require
from privtail.losses import AnyLoss, Loss, TruncatedLoss, require_margin
from privtail.robust_means import ClampedMean
from privtail.trusted.budget import Budget
from privtail.trusted.curator import Curator
from privtail.trusted.events import Plan
from privtail.trusted.maps import FeatureMap
from privtail.trusted.problem import Problem


@dataclass(frozen=True, kw_only=True)
class TruncatedSparseRegression(Checked):
    """Sparse least squares for heavy tails: truncate every number, then `SparsePeeling`.

    Hu, Ni, Xiao, Wang, "High dimensional differentially private stochastic optimization with
    heavy-tailed data", PODS 2022 (arXiv 2107.11136).

    ============  =====================  =============================================
    paper         here                   meaning
    ============  =====================  =============================================
    T             ``steps``              iterations, and parts of the records
    eta           ``step_size``          step size
    K             ``truncation``         features and target are truncated to [-K, K]
    s             ``sparsity``           entries of w that are not 0
    kappa, s*     condition, sparsity    condition number; entries of the best w
    lambda        -                      2 K^2 eta (sqrt(s) + 1) / m
    ============  =====================  =============================================

    **Privacy.** For ½ (y - <x, w>)^2 with s-sparse |w|_2 <= 1 a coordinate of a truncated record's
    gradient is at most K^2 (sqrt(s) + 1), and it is clamped to that. A record is in one part, so
    all parts together cost what one of them costs.

    **Utility.** Excess risk O~(s*^2 log(d) / (n eps)) under fourth moments of features and target.

    **Deviations from the paper.** Its text was not at hand. The algorithm is that of public code
    (docs/mathematics.md#boxes-not-at-hand); the O() in `from_theory` are recalled from memory.
    After the peeling the paper projects onto the unit ball; here the domain does this: pass
    L2Ball(radius=1.0). Without it the clamping costs accuracy, never privacy. The peeling is
    `OneShotPeeling`. The public code has epsilon inside the root of its noise, which is too little
    noise for epsilon < 1. The loop is that of `SparsePeeling`.

    Parameters
    ----------
    steps : int
        Number of iterations, and of parts of the records.
    step_size : float
        Step size, above 0, in your units.
    truncation : float
        Features and target are truncated to this size, above 0, in your units.
    sparsity : int
        Entries of w that are not 0, at least 1.

    Examples
    --------
    >>> import numpy as np
    >>> from privtail.algorithms import TruncatedSparseRegression
    >>> from privtail.linear_model import DPGeneralizedLinearEstimator
    >>> X = np.random.default_rng(0).normal(size=(2_000, 3))
    >>> algorithm = TruncatedSparseRegression(steps=5, step_size=0.3, truncation=2.0, sparsity=1)
    >>> model = DPGeneralizedLinearEstimator(algorithm=algorithm, epsilon=1.0)
    >>> model.fit(X, X[:, 0]).coef_.shape
    (3,)
    """

    steps: int
    step_size: float
    truncation: float
    sparsity: int

    needs: ClassVar[tuple[str, ...]] = ("prox",)

    @classmethod
    @preset
    def from_theory(
        cls, n: int, d: int, budget: Budget, *, sparsity: int, condition: float = 1.0,
        curvature: float = 1.0,
    ) -> Self:  # fmt: skip
        """T = log n, s = kappa^2 s*, at most d, K = (n eps/(s T))^(1/4), eta = 2/(3 curvature)."""
        require_approximate(budget, "TruncatedSparseRegression.from_theory")
        steps = min(n, max(1, math.ceil(math.log(n))))
        s = min(d, math.ceil(condition**2 * sparsity))
        truncation = (n * budget.epsilon / (s * steps)) ** 0.25
        return cls(steps=steps, step_size=2 / (3 * curvature), truncation=truncation, sparsity=s)

    @property
    def descent(self) -> SparsePeeling:
        """The loop on truncated records."""
        bound = self.truncation**2 * (math.sqrt(self.sparsity) + 1)
        return SparsePeeling(
            mean=ClampedMean(bound), steps=self.steps, step_size=self.step_size,
            peeling=OneShotPeeling(sparsity=self.sparsity),
        )  # fmt: skip

    def plan(self, multiplier: float, problem: Problem) -> Plan:
        """One peeling per part."""
        return self.descent.plan(multiplier, problem)

    def takes(self, loss: AnyLoss, problem: Problem) -> Loss:
        """A loss of a margin."""
        return require_margin(loss, needed_by="TruncatedSparseRegression")

    def run(
        self, curator: Curator, loss: AnyLoss, domain: Domain, multiplier: float,
        start: ArrayLike | None = None, map: FeatureMap | None = None,
    ) -> Result:  # fmt: skip
        """The loop as printed; returns w_T."""
        require(domain, *self.needs, needed_by="TruncatedSparseRegression")
        shrunk = TruncatedLoss(loss=self.takes(loss, curator.problem), bound=self.truncation)
        return self.descent.run(curator, shrunk, domain, multiplier, start, map)
