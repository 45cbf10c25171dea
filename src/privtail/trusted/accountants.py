"""The privacy cost of a plan.

A plan is read once into a `Bill`: Gaussians that everyone is in (label discovery, too), bounded
losses (Laplace, noisy max, smooth Gaussian), concentrated ones (Laplace log-normal), Poisson
batches. Each theorem that covers the bill becomes a curve, and a `Cost` answers with the smallest
of them. Events hold (law, scale, radius, diameter); only the bill divides.

============================================  ==================================================
releases                                      theorems
============================================  ==================================================
Gaussians; everyone or disjoint parts         exact Gaussian DP
Laplace, noisy max, smooth Gaussian           pure epsilon (and their delta), zCDP
both                                          zCDP; Gaussian DP + basic composition
noisy max alike, alone or beside Gaussians    the above; bounded range + Gaussian DP
Laplace log-normal, with any of the above     zCDP
Poisson batches of Gaussians, anything whole  PLD; under zero-out and beside other laws RDP too
Poisson batches of other laws                 amplified epsilon, PLD
Poisson batch with both                       none known: UnsupportedAccounting
Poisson batches and Laplace log-normal        none known: UnsupportedAccounting
best of a secret number of trials, and the    RDP (not beside Poisson batches)
above
label discovery, with any of the above        that of a Gaussian in its place, but for its
                                              delta
============================================  ==================================================
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from fractions import Fraction

from privtail.compilation import steady
from privtail.errors import InvalidInput, UnsupportedAccounting
from privtail.trusted.accounting.bill import Bill, BoundedLoss, SampledGaussian, read
from privtail.trusted.accounting.curves import (
    ApproximateDP,
    Basic,
    ButFor,
    Curve,
    GaussianDP,
    NoPrivacy,
    Searched,
    ZeroConcentratedDP,
    decimal,
    rounded_up,
    search_surcharge,
    up,
)
from privtail.trusted.accounting.ranges import BoundedRange
from privtail.trusted.budget import Neighbours
from privtail.trusted.events import Plan


@dataclass(frozen=True)
class Cost:
    """The privacy of a plan: the smallest bound among the theorems that cover it.

    Attributes
    ----------
    curves : the theorems, each a valid bound on its own.
    mu, rho : exact Gaussian-DP and zCDP parameters, or None where the theorem does not apply.
    slack : probability that must be added to delta beside ``mu`` or ``rho``: that of label
        discovery, and of smooth Gaussian noise.

    Formal guarantee
    ----------------
    Every ``epsilon(delta)`` is proved for every input: a minimum of valid bounds, each rounded up.
    It is infinite when nothing finite is known for that delta.
    """

    curves: tuple[Curve, ...]
    mu: float | None = None
    rho: float | None = None
    slack: float = 0.0

    def epsilon(self, delta: float) -> float:
        """The smallest proved epsilon for this delta, never below the truth."""
        return self.best(delta).epsilon(delta)

    def theorem(self, delta: float) -> str:
        """The theorem that gives ``epsilon(delta)``."""
        return self.best(delta).theorem

    def best(self, delta: float) -> Curve:
        """The curve that gives ``epsilon(delta)``."""
        _check_probability(delta)
        return min(self.curves, key=lambda curve: curve.epsilon(delta))


@steady
def cost(plan: Plan, neighbours: Neighbours) -> Cost:
    """Privacy cost of a plan.

    Parameters
    ----------
    plan : rounds as planned (or as released: planned equals spent).
    neighbours : the relation the answer is stated for.

    Raises
    ------
    UnsupportedAccounting
        If a Poisson batch releases Gaussian and other noise, or is beside a search or beside
        Laplace log-normal noise.
    InvalidInput
        If an event has a negative or non-finite scale or sensitivity.

    Formal guarantee
    ----------------
    Gaussians compose to mu = sqrt(sum (sensitivity / scale)^2) (exact; see `GaussianDP`). Labels
    that are found are a Gaussian release but for their delta (`StabilityHistogram`, `ButFor`).
    Discrete Laplace noise is epsilon = sensitivity / scale, hence epsilon tanh(epsilon / 2)-zCDP
    (attained by randomised response). A Gumbel noisy max whose score changes lie in an interval of
    length G is an exponential mechanism of bounded range eta = G / scale (Durfee and Rogers 2019;
    Dong, Durfee, Rogers 2020), hence eta-DP and eta^2/8-zCDP (Cesar and Rogers 2021; Hoeffding's
    lemma) per pick; a maximum under discrete Laplace noise is G / scale-DP and billed like Laplace
    noise. Noise in proportion to a smooth sensitivity is priced in `smooth`. A deal of disjoint
    parts costs what its most used part costs. All releases of a Poisson batch are one event:
    Gaussians with ratios z_i merge into (sum z_i^-2)^(-1/2); other laws of total loss epsilon
    become log(1 + q (e^epsilon - 1)) with q times their delta (Balle, Barthe, Gaboardi 2018; under
    replace-one their advanced joint convexity needs epsilon for both relations, and the larger one
    is used).
    """
    bill = read(plan, neighbours)
    if bill.noiseless:
        return Cost((NoPrivacy(),))
    found = _batch_cost(bill) if bill.batches else _whole_cost(bill)
    if not bill.failing:
        return found
    failing = rounded_up(bill.failing)
    curves = tuple(_but_for(curve, failing) for curve in found.curves)
    return replace(found, curves=curves, slack=up(found.slack + failing))


# --- theorems -------------------------------------------------------------------------------------


def _whole_cost(bill: Bill) -> Cost:
    pure = bill.pure
    slack = rounded_up(pure.slack)
    if not bill.spends:
        return Cost((pure,), mu=0.0, rho=0.0)
    if bill.searches:
        return Cost((_but_for(_searched(bill), slack),), slack=slack)
    if bill.concentrated:
        return _assemble(None, bill.rho, slack)
    selected = _selected(bill)
    if not bill.mu_squares:
        return _assemble(None, bill.rho, slack, (pure, *selected))
    if not bill.bounded:
        return _assemble(bill.mu, bill.rho, 0.0)
    return _assemble(None, bill.rho, slack, (Basic(GaussianDP(bill.mu), pure), *selected))


def _selected(bill: Bill) -> tuple[Curve, ...]:
    """The exact theorem for selections alike, beside Gaussians."""
    if bill.selections is None or not BoundedRange.covers(*bill.selections):
        return ()
    return (BoundedRange(bill.mu, *bill.selections),)


def _searched(bill: Bill) -> Searched:
    surcharges = [(*search_surcharge(rho, trials), times) for rho, trials, times in bill.searches]
    shift = up(math.fsum(shift * times for shift, _, times in surcharges))
    logarithm = math.fsum(math.log(factor) * times for _, factor, times in surcharges)
    factor = math.exp(logarithm) * (1 + 1e-12) if logarithm < 700 else math.inf
    return Searched(bill.rho, shift, factor)


def _batch_cost(bill: Bill) -> Cost:
    if bill.searches:
        raise UnsupportedAccounting(
            "Poisson batches and a search among trials have no common theorem here. Search with "
            "full batches."
        )
    if bill.concentrated:
        raise UnsupportedAccounting(
            "Poisson batches and Laplace log-normal noise have no common theorem. Use one of them "
            "alone."
        )
    from privtail.trusted.accounting.loss import PrivacyLoss, Renyi

    curves: list[Curve] = [PrivacyLoss(bill.groups, bill.neighbours)]
    sampled = [g for g in bill.batches if isinstance(g, SampledGaussian)]
    if not bill.gaussian:
        pairs = [g for g in bill.groups if isinstance(g, BoundedLoss)]
        loss = sum((Fraction(g.epsilon) * g.times for g in pairs), Fraction(0))
        failing = sum((decimal(g.delta) * g.times for g in pairs), Fraction(0))
        curves.append(ApproximateDP(loss, failing))
    elif bill.neighbours == "zero_out" and bill.bounded and len(sampled) == len(bill.batches):
        slack = rounded_up(bill.pure.slack)
        curves.append(_but_for(Renyi(tuple(sampled), bill.rho), slack))
    return Cost(tuple(curves))


def _assemble(
    mu: float | None, rho: float | None, slack: float, known: tuple[Curve, ...] = ()
) -> Cost:
    """A cost with the curves that mu and rho give. Exact Gaussian DP is never above zCDP."""
    curves = list(known)
    if mu is not None:
        curves.append(_but_for(GaussianDP(mu), slack))
    elif rho is not None:
        curves.append(_but_for(ZeroConcentratedDP(rho), slack))
    return Cost(tuple(curves), mu, rho, slack)


def _but_for(curve: Curve, slack: float) -> Curve:
    return ButFor(curve, slack) if slack else curve


def _check_probability(delta: float) -> None:
    if not 0 <= delta <= 1:
        raise InvalidInput(f"delta must lie in [0, 1], got {delta!r}.")
