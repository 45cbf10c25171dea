"""Frank-Wolfe over corners on truncated records: HTP-LASSO of Hu et al."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar, Self

from numpy.typing import ArrayLike

from privtail.algorithms.approximate import require_approximate
from privtail.algorithms.frank_wolfe_corners import corner_event, noisy_corner
from privtail.algorithms.parameters import Checked, preset
from privtail.algorithms.result import Result, starting_point
from privtail.domains import Domain, require
from privtail.losses import AnyLoss, Loss, TruncatedLoss, require_margin
from privtail.robust_means import ClampedMean
from privtail.trusted.budget import Budget
from privtail.trusted.curator import Curator
from privtail.trusted.events import Plan, Round
from privtail.trusted.maps import FeatureMap
from privtail.trusted.problem import Problem
from privtail.trusted.sampling import Everyone


@dataclass(frozen=True, kw_only=True)
class TruncatedLasso(Checked):
    """HTP-LASSO: Frank-Wolfe for least squares on an l1 ball, with every number truncated.

    Hu, Ni, Xiao, Wang, "High dimensional differentially private stochastic optimization with
    heavy-tailed data", PODS 2022 (arXiv 2107.11136), HTP-LASSO.

    ============  =====================  =============================================
    paper         here                   meaning
    ============  =====================  =============================================
    T             ``steps``              iterations
    K             ``truncation``         features and target are truncated to [-K, K]
    lambda        ``radius``             of the l1 ball
    eta_t         2 / (t + 2)            weight of the new corner
    ============  =====================  =============================================

    **Privacy.** One exponential mechanism per step, of the scores -<v, g>. For ½ (y - <x, w>)^2
    with |w|_1 <= lambda a coordinate of a truncated record's gradient is at most K^2 (1 + lambda),
    and it is clamped to that: one record moves a score by at most 2 lambda (1 + lambda) K^2 / n.
    zCDP composition of bounded-range mechanisms.

    **Utility.** Excess risk O~(log(d) / (n eps)^(2/5)) under fourth moments of features and target.

    **Deviations from the paper.** Its text was not at hand. The algorithm is that of public code
    (docs/mathematics.md#boxes-not-at-hand); the O() in `from_theory` are recalled from memory. The
    sensitivity of the public code, 16 lambda K^2 / n for the squared loss without ½, is too small
    for lambda > 3. Advanced composition is replaced by that of bounded-range mechanisms. The start
    is projected onto the domain. The loop takes any loss of margins; the clamp is chosen for
    squares.

    Parameters
    ----------
    steps : int
        Number of iterations, at least 1.
    truncation : float
        Features and target are truncated to this size, above 0, in your units.
    radius : float, default=1.0
        Radius of the l1 ball, above 0: that of the domain. It says where gradients are clamped.

    Examples
    --------
    >>> import numpy as np
    >>> from privtail.algorithms import TruncatedLasso
    >>> from privtail.domains import L1Ball
    >>> from privtail.linear_model import DPGeneralizedLinearEstimator
    >>> X = np.random.default_rng(0).normal(size=(2_000, 3))
    >>> algorithm = TruncatedLasso(steps=20, truncation=2.0)
    >>> model = DPGeneralizedLinearEstimator(domain=L1Ball(radius=1.0), algorithm=algorithm,
    ...                                      fit_intercept=False, epsilon=1.0)
    >>> model.fit(X, X[:, 0]).coef_.shape
    (3,)
    """

    steps: int
    truncation: float
    radius: float = 1.0

    needs: ClassVar[tuple[str, ...]] = ("axes", "project")

    @classmethod
    @preset
    def from_theory(cls, n: int, budget: Budget, *, radius: float = 1.0) -> Self:
        """T = (n eps)^(2/5), K = (n eps)^(1/4) / T^(1/8), for numbers of fourth moment 1."""
        require_approximate(budget, "TruncatedLasso.from_theory")
        size = n * budget.epsilon
        steps = max(1, math.ceil(size**0.4))
        return cls(steps=steps, truncation=size**0.25 / steps**0.125, radius=radius)

    @property
    def mean(self) -> ClampedMean:
        """The robust mean of every step."""
        return ClampedMean(self.truncation**2 * (1 + self.radius))

    def plan(self, multiplier: float, problem: Problem) -> Plan:
        """One noisy maximum over the corners per step."""
        event = corner_event(problem.gradient(self.mean), multiplier)
        return (Round(sampling=Everyone(), events=(event,), times=self.steps),)

    def takes(self, loss: AnyLoss, problem: Problem) -> Loss:
        """A loss of a margin."""
        return require_margin(loss, needed_by="TruncatedLasso")

    def run(
        self, curator: Curator, loss: AnyLoss, domain: Domain, multiplier: float,
        start: ArrayLike | None = None, map: FeatureMap | None = None,
    ) -> Result:  # fmt: skip
        """The loop as printed; returns w_T."""
        known = require(domain, *self.needs, needed_by="TruncatedLasso")
        w = known.project(starting_point(curator.problem, start))
        shrunk = TruncatedLoss(loss=self.takes(loss, curator.problem), bound=self.truncation)
        for t, batch in enumerate(curator.rounds(Everyone(), self.steps, map), 1):
            v = noisy_corner(batch.gradient(shrunk, w, self.mean), known, w.shape, multiplier)
            w = (1 - 2 / (t + 2)) * w + 2 / (t + 2) * v
        return Result(w, self.steps, multiplier)
