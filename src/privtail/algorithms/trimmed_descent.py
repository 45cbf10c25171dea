"""Gradient descent with trimmed means: Wang et al. 2020, Algorithms 2 and 3."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Self

from numpy.typing import ArrayLike

from privtail.algorithms.approximate import require_approximate
from privtail.algorithms.parameters import Checked, preset
from privtail.algorithms.result import Result, starting_point
from privtail.domains import Domain, require
from privtail.errors import InvalidInput
from privtail.losses import AnyLoss
from privtail.trusted.budget import Budget
from privtail.trusted.curator import Curator
from privtail.trusted.events import Plan, Round
from privtail.trusted.maps import FeatureMap
from privtail.trusted.problem import Problem
from privtail.trusted.sampling import Everyone

if TYPE_CHECKING:
    from privtail.trusted.smooth.trimmed import TrimmedMean

UNBOUNDED = 2.0**20
"""How far values reach where they are not clipped, in widths of the interval of their mean."""


@dataclass(frozen=True, kw_only=True)
class TrimmedDescent(Checked):
    """Gradient descent with trimmed means, whose noise follows a smooth sensitivity.

    Wang, Xiao, Devadas, Xu, "On differentially private stochastic convex optimization with
    heavy-tailed data", ICML 2020, Algorithm 3, with the mean of Algorithm 2 (Bun and Steinke 2019).
    Minimizes the population risk over a convex set when every coordinate of the gradient is
    sub-exponential and its mean lies in a known interval.

    ============  =====================  =======================================================
    paper         here                   meaning
    ============  =====================  =======================================================
    T             ``steps``              iterations
    eta           ``step_size``          step size, 1/curvature in theorem 5
    a, b          ``low``, ``high``      interval of the mean of a gradient's coordinate
    --            ``reach``              width of the interval of values over b - a; `UNBOUNDED`
                                         as printed, 1 to clip values onto [a, b]
    m             ``trim``               values left out at either end; None for n/10
    t, s          ``smoothness``         t over the epsilon of one trimmed mean; s follows
    eps~          multiplier             1/multiplier is the epsilon of one mean, eps~/sqrt(d T)
    alpha, beta   strong convexity,      theorem 5
                  curvature
    ============  =====================  =======================================================

    **Privacy.** d T trimmed means, each (eps~^2/(d T))/2-zCDP, so eps~^2/2-zCDP, where eps~ =
    sqrt(2 log(1/delta) + 2 eps) - sqrt(2 log(1/delta)); the accountant's conversion of zCDP
    gives a slightly larger eps~. Both neighbour relations.

    **Utility.** Theorem 5, strongly convex: excess risk O(d^2 log^2 n log(1/delta)/(n eps^2)) with
    the sub-exponential parameter and the conditioning left out (its proof is disputed, see
    docs/mathematics.md#disputed-proofs). A trimmed mean of a skewed gradient is not its mean: a
    bias remains.

    **Deviations from the paper.** Line 1 of Algorithm 2 has the scale max((x_(n) - x_(1))/(n - 2m),
    e^(-m t)(b - a)): not t-smooth, and so not private: on 1000 zeros against 999 zeros and one huge
    value it changes by far more than e^t. Here a proved t-smooth sensitivity of the trimmed mean
    that is truncated onto [a, b] (`TrimmedMean`), which is exact where truncation does not bind.
    Line 3's noise sinh(Y) with t = eps^2/16, s = eps/4 becomes Laplace log-normal with its optimal
    sigma. A small epsilon per mean needs this: for sinh(Y) a smoothness t costs sqrt(2 t). With m =
    O(1) as printed the noise would stay near b - a, so here m is a part of n. The text at hand
    prints eps/sqrt(d T) in line 4 of Algorithm 3, probably for eps~/sqrt(d T), which is (eps,
    delta)-DP. A regularizer enters by its prox, which for a set is the projection of line 5.

    **Clipped values.** `clipped` is not in the paper: it clips every value of a gradient onto [a,
    b]. Then [a, b] has to hold nearly all values, not their mean alone. Its smooth sensitivity
    falls to (b - a)/(n - 2m) at most, where that of a truncated mean may be b - a.

    Parameters
    ----------
    steps : int
        Number of iterations, at least 1.
    step_size : float
        Step size, above 0, in your units.
    low : float
        Lower end of the interval for the mean of a gradient's coordinate.
    high : float
        Its upper end.
    trim : int or None, default=None
        Values left out at either end; None for n/10.
    smoothness : float, default=0.1
        t as a fraction of the epsilon of one trimmed mean, in (0, 1). The sensitivity that sets the
        noise changes by a factor of at most e^t if one record changes.
    reach : float, default=UNBOUNDED
        Width of the interval of values over high - low; 1 clips values onto it.

    Raises
    ------
    InvalidInput
        If a parameter is outside its range.

    Examples
    --------
    >>> import numpy as np
    >>> from privtail.algorithms import TrimmedDescent
    >>> from privtail.linear_model import DPGeneralizedLinearEstimator
    >>> X = np.random.default_rng(0).normal(size=(2_000, 3))
    >>> algorithm = TrimmedDescent(steps=5, step_size=0.3, low=-5.0, high=5.0)
    >>> model = DPGeneralizedLinearEstimator(algorithm=algorithm, epsilon=1.0)
    >>> model.fit(X, X[:, 0]).coef_.shape
    (3,)
    """

    steps: int
    step_size: float
    low: float
    high: float
    trim: int | None = None
    smoothness: float = 0.1
    reach: float = UNBOUNDED

    needs: ClassVar[tuple[str, ...]] = ("prox",)

    @classmethod
    def clipped(
        cls, *, steps: int, step_size: float, low: float, high: float, trim: int | None = None,
        smoothness: float = 0.1,
    ) -> Self:  # fmt: skip
        """Clip every value onto [low, high]: less noise, but the mean is that of clipped values."""
        return cls(
            steps=steps, step_size=step_size, low=low, high=high, trim=trim,
            smoothness=smoothness, reach=1.0,
        )  # fmt: skip

    @classmethod
    @preset
    def from_theory(
        cls,
        n: int,
        d: int,
        budget: Budget,
        *,
        low: float,
        high: float,
        curvature: float,
        strong_convexity: float,
    ) -> Self:
        """Theorem 5: (curvature / strong convexity) log n steps of 1/curvature, constants at 1."""
        require_approximate(budget, "TrimmedDescent.from_theory")
        if not 0 < strong_convexity <= curvature:
            raise InvalidInput(
                "Theorem 5 needs 0 < strong_convexity <= curvature, got "
                f"strong_convexity={strong_convexity} and curvature={curvature}."
            )
        steps = max(1, math.ceil(curvature / strong_convexity * math.log(n)))
        return cls(steps=steps, step_size=1 / curvature, low=low, high=high)

    def mechanism(self, multiplier: float, problem: Problem) -> TrimmedMean:
        """Algorithm 2 as every step uses it; 1/multiplier is its epsilon."""
        from privtail.trusted.smooth.trimmed import TrimmedMean

        trim = problem.n // 10 if self.trim is None else self.trim
        return TrimmedMean(
            multiplier=multiplier, trim=trim, low=self.low, high=self.high,
            smoothness=self.smoothness, reach=self.reach,
        )  # fmt: skip

    def plan(self, multiplier: float, problem: Problem) -> Plan:
        """One trimmed mean per coordinate and step."""
        mechanism = self.mechanism(multiplier, problem)
        event = mechanism.event(problem, problem.rows * problem.outputs)
        return (Round(events=(event,), times=self.steps),)

    def run(
        self, curator: Curator, loss: AnyLoss, domain: Domain, multiplier: float,
        start: ArrayLike | None = None, map: FeatureMap | None = None,
    ) -> Result:  # fmt: skip
        """The loop as printed; returns w^T."""
        from privtail.trusted.smooth.questions import trimmed_gradient

        require(domain, *self.needs, needed_by="TrimmedDescent")
        mechanism = self.mechanism(multiplier, curator.problem)
        w = starting_point(curator.problem, start)
        for batch in curator.rounds(Everyone(), self.steps, map):  # line 2
            g = trimmed_gradient(batch, loss, w, mechanism)  # lines 3-4
            w = domain.prox(w - self.step_size * g.reshape(w.shape), self.step_size)  # line 5
        return Result(w, self.steps, multiplier)
