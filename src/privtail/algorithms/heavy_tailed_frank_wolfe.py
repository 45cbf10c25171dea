"""Frank-Wolfe on disjoint parts with smoothed Catoni gradients: HTDP-FW of Hu et al."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar, Self

from numpy.typing import ArrayLike

from privtail.algorithms.frank_wolfe_corners import corner_event, noisy_corner
from privtail.algorithms.parameters import Checked, preset
from privtail.algorithms.result import Result, starting_point
from privtail.domains import Domain, require
from privtail.errors import InvalidInput
from privtail.losses import AnyLoss
from privtail.robust_means import SmoothedCatoniMean
from privtail.trusted.budget import Budget
from privtail.trusted.curator import Curator
from privtail.trusted.events import Plan, Round
from privtail.trusted.maps import FeatureMap
from privtail.trusted.problem import Problem
from privtail.trusted.sampling import DisjointParts


@dataclass(frozen=True, kw_only=True)
class HeavyTailedFrankWolfe(Checked):
    """HTDP-FW: Frank-Wolfe on disjoint parts with smoothed Catoni gradients.

    Hu, Ni, Xiao, Wang, "High dimensional differentially private stochastic optimization with
    heavy-tailed data", PODS 2022 (arXiv 2107.11136), HTDP-FW. Minimizes the population risk over an
    l1 ball or a simplex when every coordinate of the gradient has second moment at most tau.

    ============  =====================  =============================================
    paper         here                   meaning
    ============  =====================  =============================================
    T             ``steps``              iterations, and parts of the records
    s             ``scale``              where the influence function bends
    beta          ``smoothing``          precision of the multiplicative noise
    V             ``domain.axes``        corners of the domain
    eta_t         2 / (t + 2)            weight of the new corner
    tau           second moment          bound on E g_j^2, enters ``scale``
    zeta          failure probability    enters ``scale``
    ============  =====================  =============================================

    **Privacy.** One exponential mechanism per part, of the scores -<v, g>, which one record moves
    by at most |V|_1 2 s c_beta / m each, m = n/T, where c_beta bounds the smoothed influence
    function (`SmoothedCatoniMean`). A record is in one part, so all parts together cost what one of
    them costs. This is pure epsilon if delta = 0.

    **Utility.** Excess risk O~(log(d) / (n eps)^(1/3)) for a smooth convex loss.

    **Deviations from the paper.** Its text was not at hand. The algorithm is that of public code
    (docs/mathematics.md#boxes-not-at-hand); the O() in `from_theory` are recalled from memory.
    c_beta replaces 2 sqrt 2/3. The correction term of the public code is not bounded; here it has
    the stable form of `SmoothedCatoniMean`. Parts are dealt by row id instead of position. The
    start is projected onto the domain.

    Parameters
    ----------
    steps : int
        Number of iterations, and of parts of the records.
    scale : float
        Where the influence function bends, above 0, in the units of gradients.
    smoothing : float, default=1.0
        Precision of the multiplicative noise, above 0.

    Raises
    ------
    InvalidInput
        If a parameter is outside its range.

    Examples
    --------
    >>> import numpy as np
    >>> from privtail.algorithms import HeavyTailedFrankWolfe
    >>> from privtail.domains import L1Ball
    >>> from privtail.linear_model import DPGeneralizedLinearEstimator
    >>> X = np.random.default_rng(0).normal(size=(2_000, 3))
    >>> algorithm = HeavyTailedFrankWolfe(steps=20, scale=10.0)
    >>> model = DPGeneralizedLinearEstimator(domain=L1Ball(radius=2.0), algorithm=algorithm,
    ...                                      fit_intercept=False, epsilon=1.0)
    >>> model.fit(X, X[:, 0]).coef_.shape
    (3,)
    """

    steps: int
    scale: float
    smoothing: float = 1.0

    needs: ClassVar[tuple[str, ...]] = ("axes", "project")

    @classmethod
    @preset
    def from_theory(
        cls, n: int, d: int, budget: Budget, *, second_moment: float,
        failure_probability: float = 0.05,
    ) -> Self:  # fmt: skip
        """T = (n eps)^(1/3), s = sqrt(n eps tau / (T log(2 d^2 T / zeta))), constants set to 1."""
        if not budget.private:
            raise InvalidInput("HeavyTailedFrankWolfe.from_theory needs a finite epsilon.")
        steps = min(n, max(1, math.ceil((n * budget.epsilon) ** (1 / 3))))
        logs = math.log(2 * d * d * steps / failure_probability)
        scale = math.sqrt(n * budget.epsilon * second_moment / (steps * logs))
        return cls(steps=steps, scale=scale)

    @property
    def mean(self) -> SmoothedCatoniMean:
        """The robust mean of every step."""
        return SmoothedCatoniMean(self.scale, self.smoothing)

    @property
    def sampling(self) -> DisjointParts:
        """One part per step."""
        return DisjointParts(self.steps)

    def plan(self, multiplier: float, problem: Problem) -> Plan:
        """One noisy maximum over the corners per part."""
        answer = problem.sampled(self.sampling).gradient(self.mean)
        event = corner_event(answer, multiplier)
        return (Round(sampling=self.sampling, events=(event,), times=self.steps),)

    def run(
        self, curator: Curator, loss: AnyLoss, domain: Domain, multiplier: float,
        start: ArrayLike | None = None, map: FeatureMap | None = None,
    ) -> Result:  # fmt: skip
        """The loop as printed; returns w_T."""
        known = require(domain, *self.needs, needed_by="HeavyTailedFrankWolfe")
        w = known.project(starting_point(curator.problem, start))
        for t, batch in enumerate(curator.rounds(self.sampling, self.steps, map), 1):
            v = noisy_corner(batch.gradient(loss, w, self.mean), known, w.shape, multiplier)
            w = (1 - 2 / (t + 2)) * w + 2 / (t + 2) * v
        return Result(w, self.steps, multiplier)
