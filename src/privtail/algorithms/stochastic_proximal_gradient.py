"""Private stochastic proximal gradient descent: Xie et al., Algorithms 1 to 4."""

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
from privtail.robust_means import ClampedMean, ClippedMean, SmoothedCatoniMean
from privtail.trusted.budget import Budget
from privtail.trusted.curator import Curator
from privtail.trusted.events import Plan
from privtail.trusted.maps import FeatureMap
from privtail.trusted.means import RobustMean
from privtail.trusted.mechanisms.noise import GaussianNoise
from privtail.trusted.problem import Problem
from privtail.trusted.sampling import Everyone, PoissonBatches, Sampling


@dataclass(frozen=True, kw_only=True)
class StochasticProximalGradient(Checked):
    """DP-SPGD: stochastic proximal gradient descent with clipped, Kamath or Holland gradients.

    Xie, Pietrosanu, Liu, Tu, Jiang, Kong, "Differentially private regularized stochastic convex
    optimization with heavy-tailed data" (Statistica Sinica): Algorithm 1 (clipped, `clipped`),
    Algorithm 2 with 3 (clamped median of means, `kamath`) and Algorithm 4 (smoothed Catoni,
    `holland`); the three differ in ``mean`` alone.

    ============  =====================  ====================================
    paper         here                   meaning
    ============  =====================  ====================================
    T             ``steps``              iterations; 5 n^2/m^2 in the experiments
    gamma_t       ``step_size``          step_size / (t + 1)^``decay``
    m             n x ``rate``           expected batch size
    C             threshold              of `ClippedMean`
    varrho        2 x threshold          of `ClampedMean`
    q             ``blocks``             3 log(2 p / zeta)
    s, nu         scale, smoothing       of `SmoothedCatoniMean`
    ============  =====================  ====================================

    **Privacy.** One Poisson-subsampled Gaussian release per step, by numerical composition (PLD).
    Groups are dealt by row id with the public divisor m/q.

    **Utility.** Corollary 1 (`kamath`): excess risk
    O~(T^(-1/2) + p^(3/2) (sqrt(p T) / (n eps))^((k-1)/k)); corollary 2 (`holland`):
    O~(T^(-1/2) + p T^(1/4) / sqrt(n eps)).

    **Deviations from the paper.** The printed noise spends 1.1 to 9 times the stated epsilon
    (docs/mathematics.md#printed-noise); noise comes from the accountant. Algorithm 3 cuts groups
    from the realised batch, which multiplies the sensitivity by (q + 1)/2; ours are fixed. The
    corollaries print gamma_t = K_1/sqrt(t) for t from 0 with K_1 the smoothness; theorem 1 asks for
    at most 1/K_1, so here 1/(K_1 sqrt(t + 1)).

    Parameters
    ----------
    mean : RobustMean
        How gradients are bounded, such as `ClippedMean`.
    steps : int
        Number of iterations, at least 1.
    step_size : float
        Step size of the first step, above 0; step t has step_size / (t + 1)^decay.
    decay : float, default=0.5
        Exponent with which step sizes fall.
    sampling : Everyone, PoissonBatches or DisjointParts, default=Everyone()
        Which rows a step sees.

    Examples
    --------
    >>> import numpy as np
    >>> from privtail.algorithms import StochasticProximalGradient
    >>> from privtail.robust_means import ClampedMean
    >>> from privtail.linear_model import DPGeneralizedLinearEstimator
    >>> X = np.random.default_rng(0).normal(size=(2_000, 3))
    >>> algorithm = StochasticProximalGradient(mean=ClampedMean(2.0), steps=20, step_size=0.3)
    >>> model = DPGeneralizedLinearEstimator(algorithm=algorithm, epsilon=1.0)
    >>> model.fit(X, X[:, 0]).coef_.shape
    (3,)
    """

    mean: RobustMean
    steps: int
    step_size: float
    decay: float = 0.5
    sampling: Sampling = Everyone()

    needs: ClassVar[tuple[str, ...]] = ("prox",)

    @classmethod
    @preset
    def clipped(
        cls, n: int, *, batch: int, threshold: float, step_size: float, decay: float = 0.5
    ) -> Self:
        """Algorithm 1 with steps = 5 n^2/m^2."""
        return cls._preset(ClippedMean(threshold), n, batch, step_size, decay)

    @classmethod
    @preset
    def kamath(
        cls, n: int, d: int, budget: Budget, *, step_size: float, batch: int | None = None,
        width: float | None = None, order: float = 2.0, failure_probability: float = 0.1,
        decay: float = 0.5,
    ) -> Self:  # fmt: skip
        """Algorithms 2 and 3: interval [-width/2, width/2], q = 3 log(2 d / zeta) groups.

        ``width`` None is varrho = (eps m / sqrt(d log(1/delta)))^(1/k) of corollary 1, for
        gradient coordinates whose k-th central moment (k = ``order``) is at most 1. ``batch`` None
        is the best in the corollary's bound, m = (n^k d^((4k-1)/2) / eps^(k-1))^(1/(2k-1)), at most
        n.
        """
        if batch is None or width is None:
            require_approximate(budget, "StochasticProximalGradient.kamath without width and batch")
        if batch is None:
            power = n**order * d ** (2 * order - 0.5) / budget.epsilon ** (order - 1)
            batch = min(n, math.ceil(power ** (1 / (2 * order - 1))))
        if width is None:
            root = math.sqrt(d * math.log(1 / budget.delta))
            width = (budget.epsilon * batch / root) ** (1 / order)
        groups = max(1, round(3 * math.log(2 * d / failure_probability)))
        mean = ClampedMean(width / 2, blocks=groups)
        return cls._preset(mean, n, batch, step_size, decay)

    @classmethod
    @preset
    def holland(
        cls, n: int, budget: Budget, *, batch: int, second_moment: float, step_size: float,
        failure_probability: float = 0.1, decay: float = 0.5,
    ) -> Self:  # fmt: skip
        """Algorithm 4 with lines 2 and 3 for coordinates of second moment at most tau.

        nu = sqrt(log(1/zeta)), s = sqrt(m eps tau) / (log(1/zeta) log^(1/4)(1/delta)).
        """
        require_approximate(budget, "StochasticProximalGradient.holland")
        log_failure = math.log(1 / failure_probability)
        scale = math.sqrt(batch * budget.epsilon * second_moment) / log_failure
        scale /= math.log(1 / budget.delta) ** 0.25
        mean = SmoothedCatoniMean(scale, math.sqrt(log_failure))
        return cls._preset(mean, n, batch, step_size, decay)

    @classmethod
    @preset
    def from_theory(
        cls, n: int, d: int, budget: Budget, *, second_moment: float, curvature: float,
        failure_probability: float = 0.1,
    ) -> Self:  # fmt: skip
        """Corollary 2 with the batch of remark 4, m = (n d)^(2/3) / eps^(1/3), at most n."""
        require_approximate(budget, "StochasticProximalGradient.from_theory")
        batch = min(n, math.ceil((n * d) ** (2 / 3) / budget.epsilon ** (1 / 3)))
        return cls.holland(
            n, budget, batch=batch, second_moment=second_moment, step_size=1 / curvature,
            failure_probability=failure_probability,
        )  # fmt: skip

    @classmethod
    def _preset(cls, mean: RobustMean, n: int, batch: int, step_size: float, decay: float) -> Self:
        sampling = Everyone() if batch >= n else PoissonBatches(batch / n)
        steps = max(1, round(5 * n * n / min(batch, n) ** 2))
        return cls(mean=mean, steps=steps, step_size=step_size, decay=decay, sampling=sampling)

    def plan(self, multiplier: float, problem: Problem) -> Plan:
        """One Gaussian release of a batch gradient per step."""
        return gradient_rounds(self.sampling, self.steps, self.mean, multiplier, problem)

    def run(
        self, curator: Curator, loss: AnyLoss, domain: Domain, multiplier: float,
        start: ArrayLike | None = None, map: FeatureMap | None = None,
    ) -> Result:  # fmt: skip
        """The loop as printed in Algorithm 1; returns the average of the T new iterates."""
        require(domain, *self.needs, needed_by="StochasticProximalGradient")
        w = starting_point(curator.problem, start)  # line 1
        total = np.zeros_like(w)
        for t, batch in enumerate(curator.rounds(self.sampling, self.steps, map)):  # lines 2-3
            g = batch.gradient(loss, w, self.mean).release(GaussianNoise(multiplier))  # lines 4-6
            step = self.step_size / (t + 1) ** self.decay
            w = domain.prox(w - step * g.reshape(w.shape), step)  # line 7
            total += w
        return Result(total / self.steps, self.steps, multiplier)
