"""The exponential mechanism over a net of models: l1 regression of Wang and Xu."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar, Literal, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from privtail.algorithms.parameters import Checked, preset
from privtail.algorithms.result import Result
from privtail.domains import Domain, require
from privtail.errors import IncompatibleParts, InvalidInput
from privtail.losses import AbsoluteLoss, AnyLoss, LogTruncatedLoss
from privtail.robust_means import BoundedMean
from privtail.trusted.budget import Budget
from privtail.trusted.curator import Curator
from privtail.trusted.events import Plan, Round
from privtail.trusted.maps import FeatureMap
from privtail.trusted.mechanisms.selection import NoisyMax
from privtail.trusted.problem import Problem
from privtail.trusted.sampling import Everyone

LATTICE_DIMENSIONS = 3
"""Up to here a net is a lattice, above it is random."""

MOST_GIGABYTES = 1.0
MOST_HOURS = 4.0
"""Limits of a search, in memory and on two cores."""


@dataclass(frozen=True, kw_only=True)
class NetSearch(Checked):
    """Private l1 regression, min E |<x, w> - y| over a bounded set, for pure epsilon.

    Wang & Xu, "Differentially private l1-norm linear regression with heavy-tailed data",
    Algorithm 1 (second moments, ``order`` 2) and Algorithm 2 (theta-th moments, 1 < theta < 2).

    ============  =====================  ====================================================
    paper         here                   meaning
    ============  =====================  ====================================================
    zeta-net      ``points``             most candidates: the finest lattice up to three
                                         dimensions, random points above
    iota          ``scale``              of the residual in psi
    theta         ``order``              order of the moments that features have
    psi           `LogTruncatedLoss`     truncation function (6) and (16)
    tau           moment                 (E |x|_2^theta)^(1/theta), or that of every coordinate
    Delta         diameter               of the set
    eta           failure probability    enters ``scale``
    ============  =====================  ====================================================

    **Privacy.** One exponential mechanism of the scores -L_iota(w), L_iota = mean of psi(iota r) /
    iota. psi is between 0 and log(theta), so replacing a record moves a score by at most
    log(theta) / (n iota), in either direction: Pr ~ exp(-n iota eps L_iota / (2 log theta)) is
    eps-DP. Emptying a record moves all scores in one direction, which costs half.

    **Utility.** Theorem 1: excess risk O(tau sqrt(d log(n) log(1/eta) / (n eps))) for a 1/n-net,
    order 2; theorem 2: O~(tau (d / (n eps))^((theta - 1)/theta)). With moments of every coordinate
    alone, O~(tau d (1 / (n eps))^((theta - 1)/theta)).

    **The price of a net.** A lattice of N points leaves a distance of about |set|/N^(1/d). Random
    points leave, to an inner point of a ball of radius R and with probability 1 - eta, R
    (log(1/eta)/N)^(1/d): .35 R for 1e5 points in ten dimensions at eta = .05, up to twice that at
    the border. The risk grows by tau times that distance. A 1/n-net has (3 Delta n)^d points. A
    search that needs more than `MOST_GIGABYTES` or `MOST_HOURS` is refused.

    **Deviations from the paper.** The printed exponent has no 2, and is exactly 2 eps-DP; its
    sensitivity is given as 2 log(theta)/(n iota) in one place and half of it, which is right, in
    another. psi is read from a table, within 1e-6. Theorem 2 prints the exponent (theta - 1)/theta
    in iota for moments of coordinates, where 1/theta balances its terms. There is no intercept: add
    a constant feature. A start is ignored.

    Parameters
    ----------
    points : int
        Most candidates in the net.
    scale : float
        Where residuals are truncated, in one over the units of the target; above 0.
    order : float, default=2.0
        Order of the moments that features have, in (1, 2].

    Raises
    ------
    InvalidInput
        If a parameter is outside its range.

    Examples
    --------
    >>> import numpy as np
    >>> from privtail.algorithms import NetSearch
    >>> from privtail.domains import L2Ball
    >>> ball = L2Ball(radius=2.0)
    >>> from privtail.linear_model import DPGeneralizedLinearEstimator
    >>> X = np.random.default_rng(0).normal(size=(2_000, 3))
    >>> algorithm = NetSearch(points=50, scale=2.0)
    >>> model = DPGeneralizedLinearEstimator(loss="absolute", domain=ball, algorithm=algorithm,
    ...                                      fit_intercept=False, epsilon=1.0)
    >>> model.fit(X, X[:, 0]).coef_.shape
    (3,)
    """

    points: int
    scale: float
    order: float = 2.0

    needs: ClassVar[tuple[str, ...]] = ("net", "scatter")

    @classmethod
    @preset
    def from_theory(
        cls, n: int, d: int, budget: Budget, *, moment: float, order: float = 2.0,
        moment_of: Literal["norm", "coordinates"] = "norm", diameter: float = 2.0,
        spacing: float | None = None, failure_probability: float = 0.05,
    ) -> Self:  # fmt: skip
        """Theorems 1 and 2, constants of O() set to 1; ``spacing`` is zeta, 1/n if None.

        iota = (d log(n) log(1/eta) / (n eps))^(1/theta) / tau, without d for ``"coordinates"``.

        Raises
        ------
        InvalidInput
            If the net's (3 Delta / zeta)^d points are too many.
        """
        if not budget.private:
            raise InvalidInput("NetSearch.from_theory needs a finite epsilon.")
        zeta = 1 / n if spacing is None else spacing
        logs = math.log(n) * math.log(1 / failure_probability) * (d if moment_of == "norm" else 1)
        scale = (logs / (n * budget.epsilon)) ** (1 / order) / moment
        points = max(1.0, 3 * diameter / zeta) ** d
        least = 3 * diameter / _most(n, d) ** (1 / d)
        _require_room(points, n, d, f"spacing={least:.3g} or more")
        return cls(points=math.ceil(points), scale=scale, order=order)

    @property
    def loss(self) -> LogTruncatedLoss:
        """psi(iota r) / iota."""
        return LogTruncatedLoss(scale=self.scale, order=self.order)

    @property
    def mean(self) -> BoundedMean:
        """The mean of the truncated losses."""
        return BoundedMean(self.loss.bound)

    def plan(self, multiplier: float, problem: Problem) -> Plan:
        """One noisy maximum over the net.

        Raises
        ------
        InvalidInput
            If the net fits neither memory nor time.
        """
        n, d = problem.n, problem.d
        _require_room(self.points, n, d, f"points={math.floor(_most(n, d))} or less")
        event = NoisyMax(multiplier).event(problem.scores(self.points, self.mean))
        return (Round(sampling=Everyone(), events=(event,)),)

    def takes(self, loss: AnyLoss, problem: Problem) -> None:
        """`AbsoluteLoss`."""
        if not isinstance(loss, AbsoluteLoss):
            raise IncompatibleParts("NetSearch is an l1 regression: it takes AbsoluteLoss() alone.")

    def run(
        self, curator: Curator, loss: AnyLoss, domain: Domain, multiplier: float,
        start: ArrayLike | None = None, map: FeatureMap | None = None,
    ) -> Result:  # fmt: skip
        """The two lines as printed."""
        require(domain, *self.needs, needed_by="NetSearch")
        self.takes(loss, curator.problem)
        net = self._net(curator, domain)  # line 1
        scores = curator.everyone(map).scores(self.loss, list(net), self.mean).negate()
        w = net[scores.release(NoisyMax(multiplier))]  # line 2
        return Result(w, 1, multiplier)

    def _net(self, curator: Curator, domain: Any) -> NDArray[np.float64]:
        """The candidates, (count, d, 1)."""
        d = curator.problem.d
        if d <= LATTICE_DIMENSIONS:
            points = domain.net(self.points, d).points
        else:
            points = domain.scatter(curator.uniforms(self.points, d + 1))
        return np.asarray(points[:, :, None])


def _gigabytes(points: float, d: int) -> float:
    return points * (400 + 24 * d) / 1e9


def _hours(points: float, n: int, d: int) -> float:
    return points * n * (2 + d / 6) * 1e-9 / 3600


def _most(n: int, d: int) -> float:
    return min(MOST_GIGABYTES / _gigabytes(1, d), MOST_HOURS / _hours(1, n, d))


def _require_room(points: float, n: int, d: int, instead: str) -> None:
    if points > _most(n, d):
        raise InvalidInput(
            f"A net of {points:.3g} points in {d} dimensions needs about "
            f"{_gigabytes(points, d):.2g} GB and, for {n} rows, {_hours(points, n, d):.2g} "
            f"hours on two cores. At most {MOST_GIGABYTES:g} GB and {MOST_HOURS:g} hours are "
            f"allowed: take {instead}."
        )
