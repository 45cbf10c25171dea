"""Gradient descent with smoothed Catoni gradients: Wang et al. 2020, Algorithm 4."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar, Literal, Self

from numpy.typing import ArrayLike

from privtail.algorithms.approximate import require_approximate
from privtail.algorithms.gradient_rounds import gradient_rounds
from privtail.algorithms.parameters import Checked, preset
from privtail.algorithms.result import Result, starting_point
from privtail.domains import Domain, require
from privtail.errors import InvalidInput
from privtail.losses import AnyLoss
from privtail.robust_means import SmoothedCatoniMean
from privtail.trusted.budget import Budget
from privtail.trusted.curator import Curator
from privtail.trusted.events import Plan
from privtail.trusted.maps import FeatureMap
from privtail.trusted.mechanisms.noise import GaussianNoise
from privtail.trusted.problem import Problem
from privtail.trusted.sampling import Everyone, PoissonBatches, Sampling


@dataclass(frozen=True, kw_only=True)
class CatoniDescent(Checked):
    """Heavy-tailed private stochastic convex optimization with known second moments.

    Wang, Xiao, Devadas, Xu, "On differentially private stochastic convex optimization with
    heavy-tailed data", ICML 2020, Algorithm 4. Minimizes the population risk over a convex set
    when every coordinate of the gradient has second moment at most v.

    ============  =====================  =============================================
    paper         here                   meaning
    ============  =====================  =============================================
    T             ``steps``              iterations
    eta           ``step_size``          step size, 1/curvature in theorems 7 and 8
    s             ``scale``              where the influence function bends
    beta          ``smoothing``          precision of the multiplicative noise (line 1)
    v             second moment          bound on E g_j^2, enters ``scale``
    delta'        failure probability    enters ``scale`` and ``smoothing``
    alpha, beta   strong convexity,      of the population risk (theorem 7's beta is not
                  curvature              line 1's)
    ============  =====================  =============================================

    **Privacy.** One Gaussian release per step of a vector of D numbers, the entries of w. Its l2
    diameter is 2 scale c_beta sqrt(D)/n, where c_beta bounds the smoothed influence function
    (`SmoothedCatoniMean`); theorem 7 has 2 sqrt 2/3 for c_beta. Exact Gaussian composition.

    **Utility.** Theorem 7: excess risk O~(d^2 log(1/delta)/(n eps^2)) if strongly convex (its proof
    is disputed, see docs/mathematics.md#disputed-proofs); theorem 8: O~(d^(2/3)/(n eps^2)^(1/3)) if
    convex.

    **Deviations from the paper.** In floating point the printed polynomial form of (10) exceeds its
    bound for large gradients; here the influence function is evaluated stably and forced onto its
    range. Sensitivity uses c_beta instead of 2 sqrt 2/3. Noise comes from the exact accountant
    instead of the zCDP formula of lines 1 and 4. ``scale`` is free; `from_theory` offers the
    paper's. With ``PoissonBatches`` (``batch`` in `from_theory`) this is the stochastic variant of
    the paper's experiments. Theorem 7 does not cover it; here privacy loss distributions do. A
    regularizer (their ridge) enters by its prox, which for a set is the projection of line 5.

    Parameters
    ----------
    steps : int
        Number of iterations, at least 1.
    step_size : float
        Step size, above 0, in your units.
    scale : float
        Where the influence function bends, above 0, in the units of gradients.
    smoothing : float
        Precision of the multiplicative noise, above 0.
    sampling : Everyone, PoissonBatches or DisjointParts, default=Everyone()
        Which rows a step sees.

    Examples
    --------
    >>> import numpy as np
    >>> from privtail.algorithms import CatoniDescent
    >>> from privtail.linear_model import DPGeneralizedLinearEstimator
    >>> X = np.random.default_rng(0).normal(size=(2_000, 3))
    >>> algorithm = CatoniDescent(steps=20, step_size=0.3, scale=10.0, smoothing=3.0)
    >>> model = DPGeneralizedLinearEstimator(algorithm=algorithm, epsilon=1.0)
    >>> model.fit(X, X[:, 0]).coef_.shape
    (3,)
    """

    steps: int
    step_size: float
    scale: float
    smoothing: float
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
        second_moment: float,
        curvature: float,
        strong_convexity: float | None = None,
        distance: float = 1.0,
        failure_probability: float = 0.05,
        scale: Literal["private", "paper"] = "private",
        batch: int | None = None,
    ) -> Self:
        """Parameters of theorem 7 (``strong_convexity`` given) or 8, constants of O() set to 1.

        ``d`` counts the entries of w, an intercept included; ``distance`` is |w^0 - w*|.
        ``scale="paper"`` is line 1's s = sqrt(n v / (2 log(1/delta'))), tuned for the non-private
        error; ``"private"`` balances the bias v (1 + 1/beta) / (2 s) against the noise, which is
        linear in s (docs/mathematics.md#catoni). ``batch`` gives the stochastic variant of the
        experiments: Poisson batches with this expected number of records. With many steps they need
        about the noise of as many full gradients, so the private balance is the same.
        """
        require_approximate(budget, "CatoniDescent.from_theory")
        log_failure = math.log(1 / failure_probability)
        log_delta = math.log(1 / budget.delta)
        rho = (math.sqrt(log_delta + budget.epsilon) - math.sqrt(log_delta)) ** 2
        if strong_convexity is None:
            steps = (distance * math.sqrt(n * rho) / d) ** (2 / 3)
        else:
            steps = curvature / strong_convexity * math.log(n)
        steps = max(1, math.ceil(steps))
        seen = n if batch is None else batch
        s = math.sqrt(seen * second_moment / (2 * log_failure))
        if scale == "private":
            slope = 4 * math.sqrt(2) * math.sqrt(d * steps) / (3 * n * math.sqrt(2 * rho))
            s = min(s, math.sqrt(second_moment * (1 + 1 / log_failure) / (2 * slope)))
        return cls(
            steps=steps, step_size=1 / curvature, scale=s, smoothing=log_failure,
            sampling=_sampling(n, batch),
        )  # fmt: skip

    @classmethod
    @preset
    def holland(
        cls,
        n: int,
        *,
        steps: int,
        second_moment: float,
        curvature: float,
        batch: int | None = None,
        failure_probability: float = 0.05,
    ) -> Self:
        """The paper's baseline RGD (Holland 2019, RGD-Mult); with ``batch`` its stochastic variant.

        The same descent with the scale and smoothing of lemma 3, which are best without privacy:
        s = sqrt(m v/(2 log(1/delta'))) and beta = 2 log(1/delta') for m records a step. It is the
        non-private baseline at epsilon = inf, and private at any other. Holland estimates v for
        every coordinate from the rows; here it is known.
        """
        log_failure = math.log(1 / failure_probability)
        seen = n if batch is None else batch
        return cls(
            steps=steps,
            step_size=1 / curvature,
            scale=math.sqrt(seen * second_moment / (2 * log_failure)),
            smoothing=2 * log_failure,
            sampling=_sampling(n, batch),
        )

    @property
    def mean(self) -> SmoothedCatoniMean:
        """The robust mean of every step."""
        return SmoothedCatoniMean(self.scale, self.smoothing)

    def plan(self, multiplier: float, problem: Problem) -> Plan:
        """One Gaussian release of a gradient per step."""
        return gradient_rounds(self.sampling, self.steps, self.mean, multiplier, problem)

    def run(
        self, curator: Curator, loss: AnyLoss, domain: Domain, multiplier: float,
        start: ArrayLike | None = None, map: FeatureMap | None = None,
    ) -> Result:  # fmt: skip
        """The loop as printed; returns w^T."""
        require(domain, *self.needs, needed_by="CatoniDescent")
        w = starting_point(curator.problem, start)
        for batch in curator.rounds(self.sampling, self.steps, map):  # line 2
            g = batch.gradient(loss, w, self.mean).release(GaussianNoise(multiplier))  # lines 3-4
            w = domain.prox(w - self.step_size * g.reshape(w.shape), self.step_size)  # line 5
        return Result(w, self.steps, multiplier)


def _sampling(n: int, batch: int | None) -> Sampling:
    if batch is None:
        return Everyone()
    if batch > n:
        raise InvalidInput(
            f"batch={batch} is more than the n={n} rows. Leave it out, and every step sees all."
        )
    return PoissonBatches(batch / n)
