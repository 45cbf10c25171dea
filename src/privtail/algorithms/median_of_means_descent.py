"""Projected descent on a truncated median of means: Tao et al. 2022, Algorithms 2 and 3."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike

from privtail.algorithms.approximate import require_approximate
from privtail.algorithms.gradient_rounds import gradient_rounds
from privtail.algorithms.parameters import Checked, preset
from privtail.algorithms.result import Result, starting_point
from privtail.domains import Domain, require
from privtail.losses import AnyLoss
from privtail.robust_means import TruncatedMean
from privtail.trusted.budget import Budget
from privtail.trusted.curator import Curator
from privtail.trusted.events import Plan
from privtail.trusted.maps import FeatureMap
from privtail.trusted.mechanisms.noise import GaussianNoise
from privtail.trusted.problem import Problem
from privtail.trusted.sampling import DisjointParts, Everyone, Sampling


@dataclass(frozen=True, kw_only=True)
class MedianOfMeansDescent(Checked):
    """Private stochastic convex optimization under 1 + v moments, v in (0, 1].

    Tao, Wu, Cheng, Wang, "Private stochastic convex optimization and sparse learning with
    heavy-tailed data revisited", IJCAI 2022, Algorithm 2 with the mean of Algorithm 3.

    ============  =====================  ====================================================
    paper         here                   meaning
    ============  =====================  ====================================================
    T             ``steps``              iterations
    eta           ``step_size``          step size
    tau           ``threshold``          entries beyond it count as 0
    m             ``blocks``             4 log(2 d / xi) groups
    X_t           ``sampling``           everyone (convex), disjoint parts (strongly convex)
    u, v          moment, order          E |g_j|^(1 + v) <= u
    R, Delta      gradient norm,         sup |grad L_D| and the diameter of the set (theorem 6)
                  diameter
    alpha, beta   strong convexity,      theorem 7
                  curvature
    ============  =====================  ====================================================

    **Privacy.** One Gaussian release per step with l2 diameter 2 tau m sqrt(d)/n. With disjoint
    parts a record is in one of them, so all together cost what one of them costs.

    **Utility.** Excess risk O~(d^((1+4v)/(2+2v)) (eps n)^(-v/(1+v))) if convex (theorem 6, first
    term) and O~(d^((1+2v)/(1+v)) (eps n)^(-2v/(1+v))) if strongly convex (theorem 7).

    **Deviations from the paper.** Line 8 passes X instead of X_t, which is not private on the
    strongly convex branch: here X_t and its size. Line 7 of Algorithm 3 sums over all records
    instead of the group; its groups are dealt by row id here, with the public divisor |X_t|/m.
    Advanced composition of line 3 is replaced by exact composition. Theorem 7 has a number G in its
    T and does not define it; here G = 1/n. A regularizer enters by its prox, which for a set is the
    projection of line 9.

    Parameters
    ----------
    steps : int
        Number of iterations, at least 1.
    step_size : float
        Step size, above 0, in your units.
    threshold : float
        Entries of a gradient beyond it count as 0; above 0.
    blocks : int
        Number of groups whose median is taken.
    sampling : Everyone, PoissonBatches or DisjointParts, default=Everyone()
        Which rows a step sees.

    Examples
    --------
    >>> import numpy as np
    >>> from privtail.algorithms import MedianOfMeansDescent
    >>> from privtail.linear_model import DPGeneralizedLinearEstimator
    >>> X = np.random.default_rng(0).normal(size=(2_000, 3))
    >>> algorithm = MedianOfMeansDescent(steps=20, step_size=0.3, threshold=2.0, blocks=5)
    >>> model = DPGeneralizedLinearEstimator(algorithm=algorithm, epsilon=1.0)
    >>> model.fit(X, X[:, 0]).coef_.shape
    (3,)
    """

    steps: int
    step_size: float
    threshold: float
    blocks: int
    sampling: Sampling = Everyone()

    needs: ClassVar[tuple[str, ...]] = ("prox",)

    @classmethod
    @preset
    def from_theory(
        cls,
        n: int,
        d: int,
        budget: Budget,
        *,
        moment: float,
        order: float = 1.0,
        curvature: float = 1.0,
        strong_convexity: float | None = None,
        gradient_norm: float = 1.0,
        diameter: float = 2.0,
        failure_probability: float = 0.05,
        most_steps: int = 500,
    ) -> Self:
        """Theorem 6 (convex), or theorem 7 when ``strong_convexity`` is given.

        ``steps`` is at most ``most_steps``, since theorem 6's T grows like n^(2v/(1+v)). On
        disjoint parts it is also so small that a group has a record on average. Theorem 6 does not
        use ``moment``.
        """
        require_approximate(budget, "MedianOfMeansDescent.from_theory")
        blocks = max(1, round(4 * math.log(2 * d / failure_probability)))
        if strong_convexity is None:
            threshold = (budget.epsilon * n / d**1.5) ** (1 / (1 + order))
            steps = (gradient_norm * budget.epsilon * n / (threshold * d**2)) ** 2
            steps = min(most_steps, max(1, math.ceil(steps)))
            step_size = diameter / (gradient_norm * math.sqrt(steps))
            return cls(steps=steps, step_size=step_size, threshold=threshold, blocks=blocks)
        a, b = strong_convexity, curvature
        contraction = (a * a + b * b + a * b) / (a + b) ** 2
        steps = max(1, math.ceil(math.log((a + b) / (a * b) / n) / math.log(contraction)))
        steps = min(most_steps, steps, max(1, n // blocks))
        threshold = (moment * budget.epsilon * n / (d**1.5 * math.sqrt(steps))) ** (1 / (1 + order))
        return cls(
            steps=steps, step_size=1 / (a + b), threshold=threshold, blocks=blocks,
            sampling=DisjointParts(steps),
        )  # fmt: skip

    @property
    def mean(self) -> TruncatedMean:
        """The robust mean of every step (Algorithm 3)."""
        return TruncatedMean(self.threshold, blocks=self.blocks)

    def plan(self, multiplier: float, problem: Problem) -> Plan:
        """One Gaussian release of a gradient per step."""
        return gradient_rounds(self.sampling, self.steps, self.mean, multiplier, problem)

    def run(
        self, curator: Curator, loss: AnyLoss, domain: Domain, multiplier: float,
        start: ArrayLike | None = None, map: FeatureMap | None = None,
    ) -> Result:  # fmt: skip
        """The loop as printed; returns the last iterate on disjoint parts, else the average."""
        require(domain, *self.needs, needed_by="MedianOfMeansDescent")
        w = starting_point(curator.problem, start)
        total = np.zeros_like(w)
        for batch in curator.rounds(self.sampling, self.steps, map):  # lines 1-7
            g = batch.gradient(loss, w, self.mean).release(GaussianNoise(multiplier))  # line 8
            w = domain.prox(w - self.step_size * g.reshape(w.shape), self.step_size)  # line 9
            total += w
        last = isinstance(self.sampling, DisjointParts)
        return Result(w if last else total / self.steps, self.steps, multiplier)  # lines 11-15
