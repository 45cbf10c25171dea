"""Private Frank-Wolfe that selects a corner by a noisy maximum: Wang and Xu 2019, Algorithm 4."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from privtail.algorithms.approximate import require_approximate
from privtail.algorithms.parameters import Checked, preset
from privtail.algorithms.result import Result, starting_point
from privtail.domains import Domain, require
from privtail.losses import AnyLoss
from privtail.robust_means import ClampedMean
from privtail.trusted.budget import Budget
from privtail.trusted.curator import Curator
from privtail.trusted.events import Event, Plan, Round
from privtail.trusted.maps import FeatureMap
from privtail.trusted.mechanisms.selection import NoisyMax
from privtail.trusted.problem import Problem
from privtail.trusted.sampling import Everyone
from privtail.trusted.sensitive import Sensitive
from privtail.trusted.sensitivity import Sensitivity


@dataclass(frozen=True, kw_only=True)
class FrankWolfeCorners(Checked):
    """DP-FW-L1: Frank-Wolfe that selects a corner by a noisy maximum, on an l1 ball or a simplex.

    Wang & Xu, "Differentially private empirical risk minimization with smooth non-convex loss
    functions: a non-stationary view", AAAI 2019, Algorithm 4. Minimizes F(w), which need not be
    convex, over the convex hull of a finite set A.

    ============  =====================  ====================================
    paper         here                   meaning
    ============  =====================  ====================================
    T             ``steps``              number of iterates x_1 ... x_T
    gamma         ``step_size``          weight of the new corner, at most 1
    G             ``threshold``          l1-Lipschitz constant; here every coordinate of a record's
                                         gradient is clamped to it
    A             ``domain.axes``        2 d corners of an l1 ball, d of a simplex
    |C|_2         norm                   largest l2 norm of C: the radius
    eta           failure probability    of theorem 6
    ============  =====================  ====================================

    **Privacy.** T - 1 exponential mechanisms (a maximum under Gumbel noise, in linear time) of the
    scores -<v, g>, which one record moves by at most |C|_1 2 threshold / n each; zCDP composition
    of bounded-range mechanisms, or basic composition for delta = 0.

    **Utility.** Theorem 6: with probability 1 - eta the expected Frank-Wolfe gap is O(|C|_1
    log(1/delta)^(1/4) sqrt(log(n |A| / eta)) / sqrt(n eps)) for an l1-Lipschitz, L-smooth loss with
    G = L = 1. The dimension enters by its logarithm.

    **Deviations from the paper.** In the text at hand line 2 ends after "where"; its privacy needs
    the score above. Advanced composition (lemma 1) is replaced by that of bounded-range mechanisms,
    which needs a quarter of the noise or less. Definition 2 bounds an l1-Lipschitz loss with an l2
    norm, a misprint. Gradients are clamped instead of assumed bounded. x_(T+1) is never used, so
    T - 1 releases suffice. The start is projected onto C. The points of A must lie on the axes, all
    at one distance from 0.

    Parameters
    ----------
    steps : int
        Number of iterates x_1 ... x_T, at least 2. One corner fewer is released.
    step_size : float
        Weight of the new corner, in (0, 1].
    threshold : float
        Every coordinate of a record's gradient is clamped to it; above 0.

    Examples
    --------
    >>> import numpy as np
    >>> from privtail.algorithms import FrankWolfeCorners
    >>> from privtail.domains import L1Ball
    >>> from privtail.linear_model import DPGeneralizedLinearEstimator
    >>> X = np.random.default_rng(0).normal(size=(2_000, 3))
    >>> algorithm = FrankWolfeCorners(steps=20, step_size=0.1, threshold=2.0)
    >>> model = DPGeneralizedLinearEstimator(domain=L1Ball(radius=2.0), algorithm=algorithm,
    ...                                      fit_intercept=False, epsilon=1.0)
    >>> model.fit(X, X[:, 0]).coef_.shape
    (3,)
    """

    steps: int
    step_size: float
    threshold: float

    needs: ClassVar[tuple[str, ...]] = ("axes", "project")
    fewest_steps: ClassVar[int] = 2
    longest_step: ClassVar[float] = 1.0

    @classmethod
    @preset
    def from_theory(
        cls, n: int, d: int, budget: Budget, *, lipschitz: float, norm: float,
        failure_probability: float = 0.05,
    ) -> Self:  # fmt: skip
        """Theorem 6 with |A| = 2 d, the constant of its O() set to 1."""
        require_approximate(budget, "FrankWolfeCorners.from_theory")
        logs = math.log(2 * d * n / failure_probability) * math.sqrt(math.log(1 / budget.delta))
        steps = max(2, math.ceil(n * budget.epsilon / logs))
        step_size = min(1.0, math.sqrt(2 / (steps * norm**2)))
        return cls(steps=steps, step_size=step_size, threshold=lipschitz)

    @property
    def mean(self) -> ClampedMean:
        """The robust mean of every step."""
        return ClampedMean(self.threshold)

    def plan(self, multiplier: float, problem: Problem) -> Plan:
        """One noisy maximum over the corners between each pair of iterates."""
        event = corner_event(problem.gradient(self.mean), multiplier)
        return (Round(sampling=Everyone(), events=(event,), times=self.steps - 1),)

    def run(
        self, curator: Curator, loss: AnyLoss, domain: Domain, multiplier: float,
        start: ArrayLike | None = None, map: FeatureMap | None = None,
    ) -> Result:  # fmt: skip
        """The loop as printed; returns x_R for a uniform R."""
        known = require(domain, *self.needs, needed_by="FrankWolfeCorners")
        iterates = [known.project(starting_point(curator.problem, start))]
        for batch in curator.rounds(Everyone(), self.steps - 1, map):  # line 1
            x = iterates[-1]
            v = noisy_corner(batch.gradient(loss, x, self.mean), known, x.shape, multiplier)  # 2
            iterates.append((1 - self.step_size) * x + self.step_size * v)  # line 3
        chosen = curator.uniform(self.steps)  # line 5
        return Result(iterates[chosen], self.steps - 1, multiplier)


def corner_event(gradient: Sensitivity, multiplier: float) -> Event:
    """The bill of one `noisy_corner`, for as many corners as there can be."""
    return NoisyMax(multiplier).event(gradient.mirror())


def noisy_corner(
    gradient: Sensitive, domain: Any, shape: tuple[int, int], multiplier: float
) -> NDArray[np.float64]:
    """The corner v, of this shape, that a noisy maximum of -<v, gradient> selects."""
    length, symmetric = domain.axes(*shape)
    scores = gradient.negate()
    picked = (scores.mirror() if symmetric else scores).release(NoisyMax(multiplier))
    v = np.zeros(shape)
    v.reshape(-1)[picked % v.size] = length if picked < v.size else -length
    return v
