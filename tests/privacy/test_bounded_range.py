"""Selections beside Gaussian releases cost no less than any attacker can show, and hardly more."""

from __future__ import annotations

import functools
import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.integrate import quad
from scipy.optimize import brentq
from scipy.stats import binom, norm

from privtail.calibration import calibrate
from privtail.trusted.accountants import cost
from privtail.trusted.accounting import ranges
from privtail.trusted.accounting.curves import GaussianDP, ZeroConcentratedDP
from privtail.trusted.accounting.ranges import BoundedRange
from privtail.trusted.budget import Budget
from privtail.trusted.events import Event, Plan, Round
from tests.privacy.deltas import delta_of

UNIT = 2.0**30
EPSILONS = (-0.1, 0.0, 0.05, 0.2, 0.5, 1.0, 2.0)


def priced(mu: float, epsilon: float) -> float:
    """delta(epsilon) of mu-GDP by another formula than ours, also for negative epsilons."""
    if mu == 0:
        return max(0.0, -math.expm1(epsilon))
    near, far = ((epsilon / mu + sign * mu / 2) / math.sqrt(2) for sign in (-1, 1))
    return (math.erfc(near) - math.exp(epsilon) * math.erfc(far)) / 2


def first(t: float, span: float) -> float:
    """Probability of the loss t of the two-point law on t and t - span."""
    return (math.exp(span) - math.exp(t)) / math.expm1(span)


def steady(mu: float, span: float, picks: int, epsilon: float) -> float:
    """The best attack whose picks all have the same two losses."""
    worst = 0.0
    for t in np.linspace(0, span, 41):
        ups = np.arange(picks + 1)
        losses = ups * t + (picks - ups) * (t - span)
        parts = binom.pmf(ups, picks, first(t, span))
        worst = max(
            worst, sum(p * priced(mu, epsilon - x) for p, x in zip(parts, losses, strict=True))
        )
    return worst


def adaptive(mu: float, span: float, picks: int, epsilon: float) -> float:
    """The best attack on a grid whose picks depend on earlier ones, before a Gaussian release."""
    if picks == 0:
        return priced(mu, epsilon)
    return max(
        first(t, span) * adaptive(mu, span, picks - 1, epsilon - t)
        + (1 - first(t, span)) * adaptive(mu, span, picks - 1, epsilon - t + span)
        for t in np.linspace(0, span, 13)
    )


def peeled(span: float, picks: int) -> list[tuple[float, float]]:
    """Probabilities of every outcome of a top-k of five equal scores, and of a neighbour's."""
    width = span / 2
    change = width * np.array([1, -1, -1, 1, -1])
    outcomes = []
    for order in itertools.permutations(range(5), picks):
        here = there = 1.0
        left = list(range(5))
        for j in order:
            here /= len(left)
            there *= math.exp(change[j]) / sum(math.exp(change[i]) for i in left)
            left.remove(j)
        outcomes.append((here, there))
    return outcomes


@functools.cache
def shown(mu: float, span: float, picks: int, epsilon: float) -> float:
    """What three attackers show."""
    table = peeled(span, min(picks, 5))
    top = max(
        sum(p * priced(mu, epsilon - math.log(p / q)) for p, q in pairs)
        for pairs in (table, [(q, p) for p, q in table])
    )
    some = adaptive(mu, span, picks, epsilon) if picks <= 3 else 0.0
    return max(top, some, steady(mu, span, picks, epsilon))


CASES = [(0.0, 0.3, 1), (0.0, 1.5, 3), (0.2, 0.1, 3), (0.5, 0.05, 10), (0.1, 0.4, 2), (1.0, 2.0, 3)]


def undercut() -> float:
    """The largest part of an attacker's delta that the bound leaves out, over all cases."""
    return max(
        shown(mu, span, picks, epsilon) / BoundedRange(mu, span, picks).delta(epsilon) - 1
        for mu, span, picks in CASES
        for epsilon in EPSILONS
        if BoundedRange(mu, span, picks).delta(epsilon) > 0
    )


@pytest.fixture
def fresh():
    """No law of another version of the recursion is left behind."""
    ranges._losses.cache_clear()
    yield
    ranges._losses.cache_clear()


def test_no_attacker_shows_more(fresh):
    assert undercut() < 1e-9


def middle(prices, z, width, cells):
    """Sabotaged: an attacker is taken to choose the middle."""
    nodes, s = np.log(z), cells * width / 2
    p = first(s, 2 * s)
    price = lambda x: np.interp(x, nodes, prices, left=np.nan)  # noqa: E731
    near = np.where(nodes - s < nodes[0], -np.expm1(nodes - s), price(nodes - s))
    return p * near + (1 - p) * price(np.minimum(nodes + s, nodes[-1]))


def halved(prices, z, width, cells):
    """Sabotaged: half of the range."""
    return RIGHT(prices, z, width / 2, cells)


def lower(prices, z, width, cells):
    """Sabotaged: the price of a loss one cell below."""
    return np.append(RIGHT(prices, z, width, cells)[1:], 0.0)


RIGHT = ranges._picked


@pytest.mark.parametrize("twin", [middle, halved, lower])
def test_sabotaged_twins_are_caught(twin, fresh, monkeypatch):
    monkeypatch.setattr(ranges, "_picked", twin)
    assert undercut() > 1e-3


@pytest.mark.parametrize("span", [1e-3, 0.3, 4.0, 30.0])
def test_one_pick_has_a_closed_form(span):
    for epsilon in np.linspace(-span, span, 17)[:-1]:
        exact = (math.exp(span / 2) - math.exp(epsilon / 2)) ** 2 / math.expm1(span)
        bound = BoundedRange(0.0, span, 1).delta(epsilon)
        assert exact * (1 - 1e-12) <= bound <= exact + span / 500


@pytest.mark.parametrize(("mu", "span", "picks"), [(0.3, 0.1, 4), (0.1, 0.3, 2), (0.5, 0.05, 10)])
def test_it_is_hardly_more_than_the_best_attack_known(mu, span, picks):
    """The picks know the Gaussian release in the bound alone: what that costs is little."""
    for epsilon in (0.0, 0.2, 0.5):
        bound = BoundedRange(mu, span, picks).epsilon(steady(mu, span, picks, epsilon))
        assert bound <= 1.07 * epsilon + 0.02


def test_a_pick_that_knows_the_gaussian_release_is_the_bound():
    mu, span = 0.4, 0.3

    def once(x: float) -> float:
        x = min(max(x, -60.0), span)
        inside = (math.exp(span / 2) - math.exp(x / 2)) ** 2 / math.expm1(span)
        return inside if x > -span else -math.expm1(x)

    for epsilon in (0.0, 0.3, 0.8):
        exact, error = quad(
            lambda v: once(epsilon - v) * norm.pdf(v, mu * mu / 2, mu),  # noqa: B023
            -4, 4, limit=500, points=[epsilon - span, epsilon + span],
        )  # fmt: skip
        bound = BoundedRange(mu, span, 1).delta(epsilon)
        assert exact - 10 * error <= bound <= 1.02 * exact


@settings(deadline=None, max_examples=60)
@given(
    mu=st.floats(1e-6, 5),
    span=st.floats(1e-6, 3),
    picks=st.integers(1, 20),
    epsilon=st.floats(0, 5),
)
def test_the_law_is_one_and_theorems_agree(mu, span, picks, epsilon):
    losses, parts, guard = ranges._losses(span, picks)
    assert parts.min() > -1e-13 * picks / span
    assert parts.sum() == pytest.approx(1.0, abs=guard)
    assert parts @ np.exp(-losses) == pytest.approx(1.0, abs=guard)
    curve = BoundedRange(mu, span, picks)
    delta = curve.delta(epsilon)
    assert delta >= GaussianDP(mu).delta(epsilon) * (1 - 1e-9) - guard
    concentrated = ZeroConcentratedDP(mu * mu / 2 + picks * span * span / 8)
    assert delta <= concentrated.delta(epsilon) * 1.02 + guard + 1e-9
    assert curve.delta(picks * span + 40 * mu + mu * mu) <= 2 * guard + 1e-300
    if guard * 3 < delta < 1:
        assert curve.epsilon(delta) == pytest.approx(epsilon, abs=1e-5, rel=1e-6)


def selection(scale: float, picks: int = 5) -> Event:
    return Event(
        law="noisy_max", scale=scale * UNIT, radius=UNIT, diameter=UNIT, coordinates=9, picks=picks
    )


def gaussian(scale: float) -> Event:
    return Event(law="gaussian", scale=scale * UNIT, radius=UNIT, diameter=2 * UNIT, coordinates=1)


def both(multiplier: float) -> Plan:
    return (
        Round(events=(gaussian(4 * multiplier),)),
        Round(events=(selection(multiplier * math.sqrt(5)),)),
    )


def test_a_budget_buys_less_noise_than_by_zcdp():
    """A sixth of the variance, or more, at (.5, .001)."""
    budget = Budget(0.5, 1e-3)
    found = calibrate(both, budget)
    plan = both(found)
    bill = cost(plan, "replace_one")
    assert bill.theorem(1e-3) == "bounded range + Gaussian DP"
    assert bill.epsilon(1e-3) <= 0.5
    assert ZeroConcentratedDP(bill.rho).epsilon(1e-3) > 0.5
    by_zcdp = calibrate_by_zcdp(0.5, 1e-3)
    assert (by_zcdp / found) ** 2 > 7 / 6


def calibrate_by_zcdp(epsilon: float, delta: float) -> float:
    def excess(multiplier: float) -> float:
        rho = cost(both(multiplier), "replace_one").rho
        return ZeroConcentratedDP(rho).epsilon(delta) - epsilon

    return brentq(excess, 0.1, 1e4)


def theorems(bill):
    return [curve.theorem for curve in bill.curves]


def test_only_selections_alike_are_covered():
    plain = Round(events=(gaussian(4.0),))
    unlike = (plain, Round(events=(selection(9.0),)), Round(events=(selection(8.0),)))
    assert "bounded range + Gaussian DP" not in theorems(cost(unlike, "replace_one"))
    laplace = Event(law="laplace", scale=9 * UNIT, radius=UNIT, diameter=2 * UNIT, coordinates=1)
    beside = (plain, Round(events=(selection(9.0), laplace)))
    assert "bounded range + Gaussian DP" not in theorems(cost(beside, "replace_one"))
    many = (plain, Round(events=(selection(900.0),), times=ranges.MOST_PICKS))
    assert "bounded range + Gaussian DP" not in theorems(cost(many, "replace_one"))
    alike = (plain, Round(events=(selection(9.0),), times=3))
    assert "bounded range + Gaussian DP" in theorems(cost(alike, "replace_one"))


@pytest.mark.parametrize("neighbours", ["replace_one", "zero_out"])
def test_one_sign_halves_the_range_under_zero_out_alone(neighbours):
    event = Event(
        law="noisy_max", scale=4 * UNIT, radius=UNIT, diameter=UNIT, coordinates=9, one_signed=True
    )
    curves = cost((Round(events=(event,)),), neighbours).curves
    (curve,) = (one for one in curves if isinstance(one, BoundedRange))
    assert curve.span == (0.25 if neighbours == "zero_out" else 0.5)


@pytest.mark.parametrize("multiplier", [2.0, 8.0])
@pytest.mark.parametrize("times", [1, 3])
def test_a_bill_is_what_an_attacker_of_this_plan_shows_or_more(multiplier, times):
    """With the parameters of the plan, worked out here: mu = 2/std, a range of 2 diameters / b."""
    plan = (
        Round(events=(gaussian(4 * multiplier),), times=2),
        Round(events=(selection(8 * multiplier, picks=2),), times=times),
    )
    mu, span, picks = math.sqrt(2) * 2 / (4 * multiplier), 2 / (8 * multiplier), 2 * times
    bill = cost(plan, "replace_one")
    for epsilon in EPSILONS[1:]:
        attacked = shown(mu, span, picks, epsilon)
        assert delta_of(bill, epsilon) >= attacked * (1 - 1e-9)
    assert delta_of(bill, 0.0) <= 1.1 * shown(mu, span, picks, 0.0)
