"""The least noise that a budget asks for, found by search.

Nothing here is trusted: what is found is a number, and whoever opens a plan with it is told its
cost by the core.
"""

from __future__ import annotations

import math
from collections.abc import Callable

from privtail.compilation import steady
from privtail.errors import BudgetExceeded, UnsupportedAccounting
from privtail.trusted.accountants import cost
from privtail.trusted.accounting.bill import BoundedLoss, gaussian_guess, read
from privtail.trusted.accounting.curves import GaussianDP
from privtail.trusted.budget import Budget
from privtail.trusted.curator import Curator
from privtail.trusted.events import Plan

_CLOSED_TOLERANCE = 1e-6
_LOSS_TOLERANCE = 5e-4


def calibrated(curator: Curator, make_plan: Callable[[float], Plan]) -> float:
    """The smallest multiplier whose plan fits the curator's budget; opens that plan.

    No record is read. A curator runs one plan.

    Raises
    ------
    BudgetExceeded
        If no multiplier fits, or the ledger has too little left.
    """
    multiplier = calibrate(make_plan, curator.budget)
    curator.open(make_plan(multiplier))
    return multiplier


@steady
def calibrate(make_plan: Callable[[float], Plan], budget: Budget) -> float:
    """The smallest multiplier whose plan fits the budget.

    Parameters
    ----------
    make_plan : maps a multiplier, a common factor on every noise, to a plan. Called some ten times.
    budget : what may be spent. An infinite epsilon gives 0.0: no noise.

    Returns
    -------
    float
        ``cost(make_plan(m), budget.neighbours).epsilon(budget.delta) <= budget.epsilon`` holds at
        the returned m; the least such m is at most 0.1 % smaller.

    Raises
    ------
    BudgetExceeded
        If no amount of noise is enough, for example because of events of fixed cost.
    UnsupportedAccounting
        If no theorem covers the plan, or Gaussian noise is asked for pure epsilon-DP.

    Notes
    -----
    The search proves nothing, and nobody has to believe it: `Curator.open` prices the plan again.
    """
    if not budget.private:
        return 0.0
    bill = read(make_plan(1.0), budget.neighbours)
    if not bill.spends:
        return 0.0
    if budget.delta == 0 and (bill.gaussian or bill.concentrated or bill.searches):
        raise UnsupportedAccounting(
            "Gaussian or log-normal noise, or a search among trials, cannot give pure "
            "epsilon-DP: set delta, for example 1e-6."
        )
    start, tolerance = 1.0, _CLOSED_TOLERANCE
    if bill.batches:
        start = _found(lambda m: _guess(make_plan(m), budget), budget, start, tolerance)
        tolerance = _LOSS_TOLERANCE
    multiplier = _found(lambda m: _epsilon(make_plan(m), budget), budget, start, tolerance)
    final = cost(make_plan(multiplier), budget.neighbours)
    if not final.epsilon(budget.delta) <= budget.epsilon:
        raise BudgetExceeded(
            "The plan does not get cheaper with more noise: its cost is not a decreasing function "
            "of the multiplier. Use the multiplier as a common factor on every noise scale."
        )
    return multiplier


def _epsilon(plan: Plan, budget: Budget) -> float:
    return cost(plan, budget.neighbours).epsilon(budget.delta)


def _guess(plan: Plan, budget: Budget) -> float:
    """A fast approximation of `_epsilon` for Poisson plans: a start, never an answer."""
    bill = read(plan, budget.neighbours)
    slack = sum(g.delta * g.times for g in bill.groups if isinstance(g, BoundedLoss))
    slack += float(bill.failing)
    if not bill.gaussian and budget.delta <= 2 * slack + 1e-11:
        return _epsilon(plan, budget)
    mu = gaussian_guess(bill.groups, budget.neighbours)
    return GaussianDP(mu).epsilon(budget.delta - slack)


def _found(
    price: Callable[[float], float], budget: Budget, start: float, tolerance: float
) -> float:
    """Secants in (log multiplier, log epsilon): few evaluations of an expensive price."""
    target, multiplier = budget.epsilon, start
    low, high = (0.0, math.inf), (math.inf, 0.0)
    for _ in range(60):
        epsilon = price(multiplier)
        if epsilon > target:
            low = (multiplier, epsilon)
        else:
            high = (multiplier, epsilon)
        tight = high[1] >= target * (1 - tolerance)
        if math.isfinite(high[0]) and (tight or high[0] <= low[0] * (1 + tolerance)):
            return high[0]
        aim = target * (1 - tolerance / 3)
        both = low[0] > 0 and math.isfinite(high[0])
        if both and math.isfinite(low[1]) and high[1] > 0:
            slope = math.log(high[1] / low[1]) / math.log(high[0] / low[0])
            step = math.log(aim / high[1]) / slope
            reach = math.log(low[0] / high[0])
            multiplier = high[0] * math.exp(min(max(step, 0.98 * reach), 0.02 * reach))
        elif both:
            multiplier = math.sqrt(low[0] * high[0])
        else:
            ratio = epsilon / aim if 0 < epsilon < math.inf else 2.0 if epsilon else 0.5
            multiplier *= min(max(ratio, 0.25), 4.0)
        if multiplier > 1e18:
            break
    if math.isfinite(high[0]):
        return high[0]
    raise _out_of_reach(price(multiplier), budget)


def _out_of_reach(floor: float, budget: Budget) -> BudgetExceeded:
    return BudgetExceeded(
        f"No amount of noise meets epsilon={budget.epsilon:g}, delta={budget.delta:g}: with almost "
        f"infinite noise the plan still costs epsilon={floor:.4g}. Likely causes: an event of "
        "fixed cost (label discovery: raise its noise, lower its delta, or declare the labels; "
        "noise in proportion to a smooth sensitivity: lower its smoothness), or a delta too small "
        "to certify. Raise the budget or drop that event."
    )
