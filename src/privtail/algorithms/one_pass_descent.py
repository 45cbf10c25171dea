"""Accelerated descent in one pass over clipped gradients: Lowy and Razaviyayn 2023."""

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
from privtail.trusted.sampling import DisjointParts


@dataclass(frozen=True, kw_only=True)
class OnePassDescent(Checked):
    """Accelerated gradient descent in one pass: every step sees new records, in clipped gradients.

    Lowy, Razaviyayn, "Private stochastic optimization with large worst-case Lipschitz parameter",
    ALT 2023 (arXiv 2209.07403), Algorithm 4. Minimizes a smooth convex population risk over a set
    when the norm of a gradient has moments of order k; no record's gradient has to be bounded.

    ============  =====================  ==================================================
    paper         here                   meaning
    ============  =====================  ==================================================
    T             ``steps``              iterations, and parts of the records
    eta           1/(2 ``step_size``)    of eta_t = 4 eta/(t (t + 1)), at least 2 beta
    C             ``threshold``          clipping radius of a gradient
    beta          smoothness             Lipschitz constant of the gradient of the risk
    r, k          moment, order          (E |g|^k)^(1/k) <= r
    D             diameter               of the set
    ============  =====================  ==================================================

    **Privacy.** One Gaussian release per part of m = n/T records with l2 diameter 2 threshold / m.
    A record is in one part, so all parts together cost what one of them costs.

    **Utility.** Excess risk O(r D (1/sqrt(n) + q^(1 - 1/k) + ((beta D/r)^(1/4) q)^(4(k-1)/(5k-1))),
    q = sqrt(d)/(n eps), under eps^2/2-zCDP: docs/mathematics.md#one-pass derives it.

    **Deviations from the paper.** The algorithm is from notes that were taken of the text; see
    docs/mathematics.md#boxes-not-at-hand. The parts are random. Noise comes from the exact
    accountant. A regularizer enters by its prox, which for a set is the projection.

    Parameters
    ----------
    steps : int
        Number of iterations, and of parts of the records, at least 1.
    step_size : float
        First step, above 0 and at most 1/(4 beta), in your units; step t is t times as long.
    threshold : float
        Clipping threshold of a gradient, above 0, in the units of gradients.

    Examples
    --------
    >>> import numpy as np
    >>> from privtail.algorithms import OnePassDescent
    >>> from privtail.domains import L2Ball
    >>> from privtail.linear_model import DPGeneralizedLinearEstimator
    >>> X = np.random.default_rng(0).normal(size=(2_000, 3))
    >>> algorithm = OnePassDescent(steps=20, step_size=0.3, threshold=2.0)
    >>> model = DPGeneralizedLinearEstimator(domain=L2Ball(radius=2.0), algorithm=algorithm,
    ...                                      epsilon=1.0)
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
        cls, n: int, d: int, budget: Budget, *, moment: float, smoothness: float, diameter: float,
        order: float = 2.0,
    ) -> Self:  # fmt: skip
        """The paper's T and C, the constants of O() set to 1, at the zCDP that the budget allows.

        T = min((beta D/r)^(2k/(5k-1)) q^(-2(k-1)/(5k-1)), sqrt(beta D/r) n^(1/4)), rounded up, and
        C = r (q sqrt(T))^(-1/k), for q = sqrt(d)/(n eps'): eps'^2/2-zCDP is (epsilon, delta)-DP.
        eta = max(2 beta, S T^(3/2)/D) for the error S of a gradient, S^2 = (2 C T q)^2 + r^2 T/n.
        ``d`` counts the entries of w, an intercept included.
        """
        require_approximate(budget, "OnePassDescent.from_theory")
        logs = math.log(1 / budget.delta)
        zcdp = math.sqrt(2) * (math.sqrt(logs + budget.epsilon) - math.sqrt(logs))
        q, ratio, k = math.sqrt(d) / (n * zcdp), smoothness * diameter / moment, order
        private = (ratio**k / q ** (k - 1)) ** (2 / (5 * k - 1))
        steps = min(n, max(1, math.ceil(min(private, math.sqrt(ratio) * n**0.25))))
        threshold = moment * (q * math.sqrt(steps)) ** (-1 / k)
        error = math.hypot(2 * threshold * steps * q, moment * math.sqrt(steps / n))
        eta = max(2 * smoothness, error * steps**1.5 / diameter)
        return cls(steps=steps, step_size=1 / (2 * eta), threshold=threshold)

    @property
    def mean(self) -> ClippedMean:
        """The robust mean of every step."""
        return ClippedMean(self.threshold)

    @property
    def sampling(self) -> DisjointParts:
        """One part per step."""
        return DisjointParts(self.steps)

    def plan(self, multiplier: float, problem: Problem) -> Plan:
        """One Gaussian release of a gradient per part."""
        return gradient_rounds(self.sampling, self.steps, self.mean, multiplier, problem)

    def run(
        self, curator: Curator, loss: AnyLoss, domain: Domain, multiplier: float,
        start: ArrayLike | None = None, map: FeatureMap | None = None,
    ) -> Result:  # fmt: skip
        """The loop as printed; returns the aggregated iterate."""
        require(domain, *self.needs, needed_by="OnePassDescent")
        w = average = starting_point(curator.problem, start)
        for t, batch in enumerate(curator.rounds(self.sampling, self.steps, map), 1):
            weight, step = 2 / (t + 1), t * self.step_size
            middle = (1 - weight) * average + weight * w
            g = batch.gradient(loss, middle, self.mean).release(GaussianNoise(multiplier))
            w = domain.prox(w - step * g.reshape(w.shape), step)
            average = (1 - weight) * average + weight * w
        return Result(average, self.steps, multiplier)
