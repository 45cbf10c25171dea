"""No answer below the truth, planned = calibrated, and every published number we rely on."""

from __future__ import annotations

import math
from dataclasses import replace

import mpmath as mp
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import norm

from privtail.calibration import calibrate
from privtail.errors import BudgetExceeded, InvalidInput, UnsupportedAccounting
from privtail.trusted.accountants import (
    Cost,
    cost,
)
from privtail.trusted.accounting.bill import SampledGaussian
from privtail.trusted.accounting.curves import GaussianDP, ZeroConcentratedDP
from privtail.trusted.accounting.loss import PrivacyLoss
from privtail.trusted.budget import Budget
from privtail.trusted.events import Event, Plan, Round
from privtail.trusted.sampling import DisjointParts, Everyone, PoissonBatches

UNIT = 2.0**30  # grid steps per unit of radius
BOTH = pytest.mark.parametrize("neighbours", ["replace_one", "zero_out"])


def gaussian(z: float, coordinates: int = 1) -> Event:
    """std = z radii, on a fine grid."""
    return Event(
        law="gaussian", scale=z * UNIT, radius=UNIT, diameter=2 * UNIT, coordinates=coordinates
    )


def laplace(b: float) -> Event:
    return Event(law="laplace", scale=b * UNIT, radius=UNIT, diameter=2 * UNIT, coordinates=1)


def noisy_max(b: float, picks: int = 1, one_signed: bool = False) -> Event:
    return Event(
        law="noisy_max", scale=b * UNIT, radius=UNIT, diameter=UNIT, coordinates=9, picks=picks,
        one_signed=one_signed,
    )  # fmt: skip


def labels(z: float, delta: float) -> Event:
    return replace(gaussian(z, 2), law="gaussian_labels", delta=delta)


def plan(*events: Event, times: int = 1, rate: float | None = None, parts: int = 0) -> Plan:
    sampling = PoissonBatches(rate) if rate else DisjointParts(parts) if parts else Everyone()
    return (Round(sampling=sampling, events=events, times=times),)


def true_gaussian_delta(mu: float, epsilon: float) -> mp.mpf:
    with mp.workdps(80):
        mu, epsilon = mp.mpf(mu), mp.mpf(epsilon)
        tail = mp.erfc((epsilon / mu + mu / 2) / mp.sqrt(2)) / 2
        return mp.erfc((epsilon / mu - mu / 2) / mp.sqrt(2)) / 2 - mp.exp(epsilon) * tail


def true_batch_delta(q: float, z: float, epsilon: float, neighbours: str) -> float:
    """Hockey-stick divergence of one Poisson batch in one dimension, both directions."""
    shift = 1 / z

    def density(x: float, centre: float) -> float:
        return (1 - q) * norm.pdf(x) + q * norm.pdf(x - centre)

    def mass_above(x: float, centre: float) -> float:
        return float((1 - q) * norm.sf(x) + q * norm.sf(x - centre))

    def directed(first: float, second: float) -> float:
        side = 1 if first > second else -1

        def excess(y: float) -> float:
            x = side * y
            return math.log(density(x, first)) - math.log(density(x, second)) - epsilon

        low, high = -20.0, 30.0
        if excess(high) <= 0:
            return 0.0
        for _ in range(200):
            middle = (low + high) / 2
            low, high = (low, middle) if excess(middle) > 0 else (middle, high)
        a, b = side * first, side * second
        return mass_above(high, a) - math.exp(epsilon) * mass_above(high, b)

    other = -shift if neighbours == "replace_one" else 0.0
    return max(directed(shift, other), directed(other, shift))


def rho_of(epsilon: float, delta: float) -> float:
    """The simple zCDP conversion, inverted (section 0)."""
    inverse = math.log(1 / delta)
    return (math.sqrt(inverse + epsilon) - math.sqrt(inverse)) ** 2


def exact_mu(epsilon: float, delta: float) -> float:
    """The largest mu that meets (epsilon, delta)."""
    return 1 / calibrate(lambda m: plan(gaussian(m)), Budget(epsilon, delta, "zero_out"))


# --- Gaussian DP ----------------------------------------------------------------------------------


@pytest.mark.parametrize("mu", [1e-6, 1e-3, 0.1, 0.7, 1.0, 3.0, 30.0, 1e3])
@pytest.mark.parametrize("epsilon", [0.0, 1e-6, 1e-3, 0.1, 1.0, 5.0, 50.0, 1e3, 1e4])
def test_gaussian_delta_against_mpmath(mu: float, epsilon: float) -> None:
    if epsilon / mu > 200:
        assert GaussianDP(mu).log_delta(epsilon) <= -((epsilon / mu - mu / 2) ** 2) / 2 * (1 - 1e-9)
        return
    truth = true_gaussian_delta(mu, epsilon)
    with mp.workdps(50):
        error = mp.mpf(GaussianDP(mu).log_delta(epsilon)) - mp.log(truth)
    assert 0 <= error < 1e-7


@settings(max_examples=150, deadline=None)
@given(st.floats(1e-3, 50), st.floats(0, 60))
def test_gaussian_delta_is_never_below_the_truth(mu: float, epsilon: float) -> None:
    if epsilon / mu < 60:
        answer = GaussianDP(mu).delta(epsilon)
        assert answer >= true_gaussian_delta(mu, epsilon) or answer == 0.0


@settings(max_examples=100, deadline=None)
@given(st.floats(1e-6, 1e3), st.floats(-280, -0.01))
def test_gaussian_epsilon_inverts_delta(mu: float, log10_delta: float) -> None:
    delta = 10.0**log10_delta
    epsilon = GaussianDP(mu).epsilon(delta)
    assert GaussianDP(mu).delta(epsilon) <= delta * (1 + 1e-12)
    assert epsilon == 0 or GaussianDP(mu).delta(epsilon * (1 - 1e-9)) > delta * (1 - 1e-6)


def theorems(bill: Cost) -> list[str]:
    return [curve.theorem for curve in bill.curves]


@BOTH
def test_gaussians_compose_in_squares(neighbours: str) -> None:
    mixed = cost((*plan(gaussian(2.0), times=3), *plan(gaussian(5.0))), neighbours)
    shift = 2 if neighbours == "replace_one" else 1
    assert mixed.mu == pytest.approx(shift * math.sqrt(3 / 4 + 1 / 25), rel=1e-13)
    assert mixed.rho == pytest.approx(mixed.mu**2 / 2)
    assert theorems(mixed) == ["Gaussian DP (exact)"]
    truth = true_gaussian_delta(mixed.mu * (1 - 1e-12), mixed.epsilon(1e-6))
    assert 0.999e-6 < truth <= 1e-6


def test_classical_gaussian_formula_fails_for_large_epsilon() -> None:
    def actual(epsilon: float, delta: float) -> float:
        std = math.sqrt(2 * math.log(1.25 / delta)) / epsilon
        return GaussianDP(1 / std).delta(epsilon)

    assert actual(1, 1e-5) == pytest.approx(4e-8, rel=0.15)
    assert actual(10, 1e-3) == pytest.approx(3.4e-3, rel=0.02)
    assert actual(10, 1e-5) == pytest.approx(2.3e-5, rel=0.02)


@pytest.mark.parametrize(("epsilon", "ratio"), [(0.1, 0.22), (0.5, 0.37), (2, 0.53), (5, 0.64)])
def test_variance_saved_by_gaussian_dp(epsilon: float, ratio: float) -> None:
    saved = 2 * rho_of(epsilon, 1e-3) / exact_mu(epsilon, 1e-3) ** 2
    assert saved == pytest.approx(ratio, abs=0.006)


@pytest.mark.parametrize(
    ("epsilon", "c_zcdp", "c_gdp"),
    [(0.1, 8.06, 1.75), (0.5, 8.29, 3.08), (2, 9.12, 4.84), (5, 10.7, 6.89)],
)
def test_constants_of_private_gradient_descent(epsilon: float, c_zcdp: float, c_gdp: float) -> None:
    scale = 4 * epsilon**2 / math.log(1e3)
    assert scale / (2 * rho_of(epsilon, 1e-3)) == pytest.approx(c_zcdp, rel=5e-3)
    assert scale / exact_mu(epsilon, 1e-3) ** 2 == pytest.approx(c_gdp, rel=5e-3)


def test_noise_of_two_hundred_steps() -> None:
    assert math.sqrt(200) / exact_mu(0.5, 1e-3) == pytest.approx(65, abs=0.5)
    assert math.sqrt(200 / (2 * rho_of(0.5, 1e-3))) == pytest.approx(107, abs=0.5)


# --- printed noise of the papers ------------------------------------------------------------------


def test_w19_line_3_squares_rho() -> None:
    factors = [1 / rho_of(e, 1e-3) for e in (0.1, 0.5, 2, 5)]
    assert factors == pytest.approx([2783, 114, 7.9, 1.5], rel=0.03)
    actual = [GaussianDP(math.sqrt(2) * rho_of(e, 1e-3)).epsilon(1e-3) for e in (7, 10)]
    assert actual == pytest.approx([6.2, 13.8], abs=0.06)


def test_w20_3_without_the_tilde() -> None:
    assert 0.5 + math.sqrt(2 * math.log(1e5)) == pytest.approx(5.3, abs=0.01)
    assert ZeroConcentratedDP(0.5).epsilon(1e-5) < 5.3


def test_w22_exponential_mechanism_is_twice_its_epsilon() -> None:
    assert cost(plan(noisy_max(1.0)), "replace_one").epsilon(0) == 2.0
    assert cost(plan(noisy_max(1.0, one_signed=True)), "zero_out").epsilon(0) == 1.0


@pytest.mark.parametrize(("epsilon", "delta"), [(1, 4.3e-5), (3, 3.2e-4), (0.5, 1.7e-5)])
def test_x23_one_shot_is_under_noised(epsilon: float, delta: float) -> None:
    std = math.sqrt(math.log(1e5)) / epsilon
    actual = GaussianDP(cost(plan(gaussian(std)), "zero_out").mu).delta(epsilon)
    assert actual == pytest.approx(delta, rel=0.02)
    assert cost(plan(gaussian(math.sqrt(math.log(1e5)) / 0.1)), "zero_out").epsilon(1e-5) < 0.1


@pytest.mark.parametrize("steps", [30, 100, 1000])
def test_t22_2_advanced_composition(steps: int) -> None:
    epsilon, delta = 1.0, 1e-5
    each = epsilon / (2 * math.sqrt(2 * steps * math.log(2 / delta)))
    printed = math.sqrt(2 * math.log(1.25 * 2 * steps / delta)) / each
    assert 14.5 < printed * exact_mu(epsilon, delta) / math.sqrt(steps) < 17.5
    assert 11 < printed * math.sqrt(2 * rho_of(epsilon, delta) / steps) < 12.7


def test_t22_4_peeling_is_over_noised() -> None:
    rho = 2.5 / (32 * math.log(1e5))
    assert rho + 2 * math.sqrt(rho * math.log(1e5)) == pytest.approx(0.57, abs=0.005)
    assert ZeroConcentratedDP(rho).epsilon(1e-5) < 0.57


@pytest.mark.parametrize(
    ("epsilon", "share", "add_remove", "replace_one"),
    [
        (0.5, 20, 1.21, 2.65), (0.5, 6, 1.23, 2.65), (0.5, 2, 1.24, 2.65), (0.5, 1, 1.20, 2.66),
        (1, 20, 2.77, 6.06), (1, 6, 2.82, 6.02), (1, 2, 2.86, 5.97), (1, 1, 2.66, 6.07),
        (3, 6, 14.2, 24.7), (3, 2, 13.0, 22.4), (3, 1, 10.1, 25.5),
        pytest.param(3, 20, 14.3, 26.6, marks=pytest.mark.slow),
    ],
)  # fmt: skip
def test_x23_table(epsilon: float, share: int, add_remove: float, replace_one: float) -> None:
    z = math.sqrt(math.log(1e4)) / epsilon
    rounds = plan(gaussian(z), times=5 * share**2, rate=1 / share)
    assert cost(rounds, "zero_out").epsilon(1e-4) == pytest.approx(add_remove, rel=6e-3)
    assert cost(rounds, "replace_one").epsilon(1e-4) == pytest.approx(replace_one, rel=6e-3)


# --- zCDP and pure epsilon ------------------------------------------------------------------------


@settings(max_examples=60, deadline=None)
@given(st.floats(1e-4, 30), st.floats(-200, -0.5))
def test_zcdp_conversion_is_valid_and_tighter_than_the_simple_one(rho: float, log10: float) -> None:
    delta = 10.0**log10
    epsilon = ZeroConcentratedDP(rho).epsilon(delta)
    assert epsilon >= GaussianDP(math.sqrt(2 * rho)).epsilon(delta) * (1 - 1e-9)
    assert epsilon <= rho + 2 * math.sqrt(rho * math.log(1 / delta)) + 1e-12
    assert ZeroConcentratedDP(rho).delta(epsilon) <= delta * (1 + 1e-6) or epsilon == 0


@pytest.mark.parametrize("rho", [1e-6, 0.01, 0.5, 20.0])
@pytest.mark.parametrize("delta", [1e-3, 1e-9, 1e-100])
def test_zcdp_conversion_against_mpmath(rho: float, delta: float) -> None:
    def at(u: mp.mpf) -> mp.mpf:
        a = 1 + mp.exp(u)
        return a * rho + mp.log(1 / (a * mp.mpf(delta))) / (a - 1) + mp.log(1 - 1 / a)

    with mp.workdps(40):
        centre = mp.log(mp.log(1 / mp.mpf(delta)) / rho) / 2
        best = mp.findroot(lambda u: mp.diff(at, u), centre)
        truth = max(mp.mpf(0), at(best))
        assert 0 <= ZeroConcentratedDP(rho).epsilon(delta) - truth <= 1e-9 * (1 + truth)


@pytest.mark.parametrize("epsilon", [0.01, 0.3, 1.0, 4.0, 12.0])
def test_pure_epsilon_is_epsilon_tanh_zcdp(epsilon: float) -> None:
    rho = cost(plan(laplace(1 / epsilon)), "zero_out").rho
    with mp.workdps(40):
        e = mp.mpf(epsilon)
        p = 1 / (1 + mp.exp(-e))
        truth = (2 * p - 1) * e  # KL of randomised response: attained
        assert 0 <= rho - truth < 1e-12 * truth
        for a in map(mp.mpf, ("1.01", "1.5", "2", "5", "40", "1000")):
            moment = p**a * (1 - p) ** (1 - a) + (1 - p) ** a * p ** (1 - a)
            assert mp.log(moment) / (a - 1) <= a * rho


def test_discrete_laplace_is_not_billed_as_the_continuous_one() -> None:
    assert cost(plan(laplace(1.0)), "zero_out").rho == pytest.approx(0.462, abs=5e-4)
    assert math.exp(-1) == pytest.approx(0.368, abs=5e-4)


@pytest.mark.parametrize(("eta", "exact"), [(1, 0.1233), (2, 0.4745), (4, 1.670), (8, 4.923)])
def test_bounded_range_is_an_eighth_of_eta_squared(eta: float, exact: float) -> None:
    rho = cost(plan(noisy_max(2 / eta)), "replace_one").rho
    assert rho == pytest.approx(eta**2 / 8, rel=1e-2 if eta == 8 else 1e-12)
    largest, worst_order = 0.0, 0.0
    for i in range(1, 400):
        t = eta * i / 400
        q = -math.expm1(t - eta) / (math.exp(t) - math.exp(t - eta))
        p = math.exp(t) * q
        largest = max(largest, p * t + (1 - p) * (t - eta))
        for a in (1.5, 2.0, 8.0, 64.0):
            log_moment = math.log(q * math.exp(a * t) + (1 - q) * math.exp(a * (t - eta)))
            worst_order = max(worst_order, log_moment / (a * (a - 1)))
    assert largest == pytest.approx(exact, rel=1e-3)
    assert max(largest, worst_order) <= rho


def test_noisy_max_of_several_picks() -> None:
    three = cost(plan(noisy_max(4.0, picks=3)), "replace_one")
    assert three.epsilon(0) == 1.5
    assert three.rho == pytest.approx(3 * 0.5**2 / 8)
    assert theorems(three) == ["pure epsilon", "bounded range", "zCDP"]
    many = cost(plan(noisy_max(20.0), times=400), "replace_one")
    assert many.theorem(1e-6) == "zCDP"
    assert many.epsilon(1e-6) < many.epsilon(0) == 40.0


def test_gumbel_against_the_advanced_composition_of_htp_lasso() -> None:
    steps, delta, epsilon = 50, 1e-6, 0.1
    printed = epsilon / (2 * math.sqrt(2 * steps * math.log(1 / delta)))
    ours = math.sqrt(8 * rho_of(epsilon, delta) / steps)
    assert ours / printed == pytest.approx(4, rel=0.01)


def test_pure_laplace_is_exact_rational_arithmetic() -> None:
    tenth = Event(law="laplace", scale=10, radius=1, diameter=1, coordinates=1)
    assert cost(plan(tenth, times=10), "replace_one").epsilon(0) == 1.0


def test_labels_pay_their_delta_once_per_release() -> None:
    answer = cost((*plan(labels(20.0, 1e-7)), *plan(gaussian(10.0))), "zero_out")
    assert answer.epsilon(1e-8) == answer.epsilon(1e-7) == math.inf
    both = GaussianDP(math.hypot(0.05, 0.1))
    assert answer.epsilon(1e-6) == pytest.approx(both.epsilon(0.9e-6), rel=1e-6)
    assert answer.slack == pytest.approx(1e-7)
    assert answer.mu == pytest.approx(both.mu)
    twice = cost(plan(labels(20.0, 1e-7), times=2), "zero_out")
    assert twice.epsilon(1.9e-7) == math.inf
    root = GaussianDP(0.05 * math.sqrt(2))
    assert twice.epsilon(3e-7) == pytest.approx(root.epsilon(1e-7), rel=1e-6)


@BOTH
@pytest.mark.parametrize(
    "others",
    [
        plan(noisy_max(9.0, picks=3)),
        (*plan(gaussian(5.0)), *plan(noisy_max(9.0))),
        (*plan(gaussian(5.0)), *plan(laplace(9.0))),
        plan(gaussian(2.0), times=20, rate=0.05),
        (*plan(gaussian(5.0)), *plan(laplace(9.0), rate=0.1)),
    ],
    ids=["selections", "bounded range", "mixture", "batches", "batches of laplace"],
)
def test_labels_cost_what_a_gaussian_and_their_delta_cost(others: Plan, neighbours: str) -> None:
    """In every theorem: the same as with plain Gaussian noise, at what they leave of delta."""
    found, plain = plan(labels(20.0, 1e-8)), plan(gaussian(20.0, 2))
    answer, same = (cost((*first, *others), neighbours) for first in (found, plain))
    assert answer.slack == pytest.approx(same.slack + 1e-8)
    assert (answer.mu, answer.rho) == (same.mu, same.rho)
    for delta in (1e-6, 1e-4):
        assert answer.epsilon(delta) == pytest.approx(same.epsilon(delta - 1e-8), rel=1e-6)
    assert answer.epsilon(1e-8) == math.inf


def test_mixture_is_the_smallest_of_its_theorems() -> None:
    answer = cost((*plan(gaussian(10.0)), *plan(laplace(1000.0))), "zero_out")
    assert answer.theorem(1e-6) == "Gaussian DP (exact) + pure epsilon"
    assert answer.mu is None
    assert answer.rho is not None


# --- Poisson batches ------------------------------------------------------------------------------


def test_a_poisson_batch_is_one_sample() -> None:
    def epsilon(rounds: Plan) -> float:
        return cost(rounds, "zero_out").epsilon(1e-6)

    assert epsilon(plan(gaussian(1.0), times=2, rate=0.01)) == pytest.approx(0.425, abs=2e-3)
    assert epsilon(plan(gaussian(1.0), times=5, rate=0.01)) == pytest.approx(0.516, abs=2e-3)
    assert epsilon(plan(*[gaussian(1.0)] * 2, rate=0.01)) == pytest.approx(1.436, abs=2e-3)
    assert epsilon(plan(*[gaussian(1.0)] * 5, rate=0.01)) == pytest.approx(5.63, abs=5e-3)


@BOTH
@pytest.mark.parametrize(("q", "z"), [(0.01, 1.0), (0.2, 0.7), (0.5, 3.0), (0.001, 0.5)])
@pytest.mark.parametrize("delta", [1e-4, 1e-7])
def test_one_batch_against_the_exact_divergence(
    q: float, z: float, delta: float, neighbours: str
) -> None:
    epsilon = cost(plan(gaussian(z), rate=q), neighbours).epsilon(delta)
    assert true_batch_delta(q, z, epsilon, neighbours) <= delta
    if epsilon > 0.01:
        assert true_batch_delta(q, z, 0.995 * epsilon, neighbours) > delta


@BOTH
@pytest.mark.parametrize(("z", "times"), [(2.0, 1), (30.0, 100), (4.0, 1000)])
@pytest.mark.parametrize("delta", [1e-3, 1e-6, 1e-9])
def test_pld_at_rate_one_is_gaussian_dp(
    z: float, times: int, delta: float, neighbours: str
) -> None:
    mu = (2 if neighbours == "replace_one" else 1) * math.sqrt(times) / z
    loss = PrivacyLoss((SampledGaussian(1.0, z, times),), neighbours)
    exact = GaussianDP(mu).epsilon(delta)
    assert exact <= loss.epsilon(delta) <= exact * 1.003
    sampled = cost(plan(gaussian(z), times=times, rate=1.0), neighbours)
    assert theorems(sampled) == ["Gaussian DP (exact)"]
    assert sampled.epsilon(delta) == pytest.approx(exact, rel=1e-6)


def test_z_means_two_things_in_dp_accounting() -> None:
    assert PrivacyLoss((SampledGaussian(1.0, 2.0, 1),), "replace_one").epsilon(1e-5) == (
        pytest.approx(4.38, abs=0.01)
    )
    with_zcdp = ZeroConcentratedDP(1 / 8).epsilon(1e-5)
    assert with_zcdp == pytest.approx(2.17, abs=0.08)


@BOTH
def test_rates_near_one_are_continuous(neighbours: str) -> None:
    whole = cost(plan(gaussian(3.0), times=10), neighbours).epsilon(1e-6)
    nearly = cost(plan(gaussian(3.0), times=10, rate=1 - 1e-9), neighbours).epsilon(1e-6)
    assert whole * (1 - 1e-5) <= nearly <= whole * 1.002


def test_composed_batches_are_above_the_optimistic_bound() -> None:
    from dp_accounting.pld import privacy_loss_distribution as pld

    low = pld.from_gaussian_mechanism(
        1.4147, pessimistic_estimate=False, sampling_prob=0.01, use_connect_dots=False,
        value_discretization_interval=1e-5,
    ).self_compose(1000)  # fmt: skip
    answer = cost(plan(gaussian(1.4147), times=1000, rate=0.01), "zero_out").epsilon(1e-5)
    assert low.get_epsilon_for_delta(1e-5) <= answer <= 1.001


@pytest.mark.parametrize(("neighbours", "printed"), [("zero_out", 2.8), ("replace_one", 6.0)])
def test_one_hundred_eighty_batches(neighbours: str, printed: float) -> None:
    rounds = plan(gaussian(math.sqrt(math.log(1e4))), times=180, rate=1 / 6)
    assert cost(rounds, neighbours).epsilon(1e-4) == pytest.approx(printed, abs=0.05)


@BOTH
def test_gaussians_beside_batches(neighbours: str) -> None:
    batches = plan(gaussian(2.0), times=50, rate=0.05)
    both = cost((*batches, *plan(gaussian(4.0))), neighbours)
    alone = [cost(p, neighbours).epsilon(5e-7) for p in (batches, plan(gaussian(4.0)))]
    assert max(alone) < both.epsilon(1e-6) < sum(alone)
    assert both.mu is None
    assert both.rho is None


def test_other_laws_beside_batches() -> None:
    mixed = (*plan(gaussian(2.0), times=50, rate=0.05), *plan(noisy_max(20.0), times=30))
    zero_out, replace_one = (cost(mixed, near) for near in ("zero_out", "replace_one"))
    assert theorems(zero_out) == ["PLD (dp_accounting)", "RDP"]
    assert theorems(replace_one) == ["PLD (dp_accounting)"]
    assert 0 < zero_out.epsilon(1e-6) < replace_one.epsilon(1e-6) < 12
    single = (*plan(gaussian(2.0), rate=0.05), *plan(laplace(2.0)))
    alone = cost(plan(gaussian(2.0), rate=0.05), "zero_out").epsilon(1e-6)
    assert alone < cost(single, "zero_out").epsilon(1e-6) <= (alone + 0.5) * 1.06


@BOTH
def test_batches_of_other_laws_are_amplified(neighbours: str) -> None:
    base = 2.0 if neighbours == "replace_one" else 1.0
    answer = cost(plan(laplace(1.0), rate=0.1), neighbours)
    assert answer.epsilon(0) == pytest.approx(math.log1p(0.1 * math.expm1(base)), rel=1e-12)
    with pytest.raises(UnsupportedAccounting, match="Labels"):
        cost(plan(labels(2.0, 1e-6), rate=0.1), neighbours)


def test_a_batch_with_two_kinds_of_noise_has_no_theorem() -> None:
    with pytest.raises(UnsupportedAccounting, match="Round of their own"):
        cost(plan(gaussian(1.0), laplace(1.0), rate=0.1), "zero_out")


# --- disjoint parts, no noise, nothing ------------------------------------------------------------


@pytest.mark.parametrize("event", [gaussian(3.0), laplace(3.0), noisy_max(3.0)])
@pytest.mark.parametrize(("times", "parts", "seen"), [(4, 4, 1), (5, 4, 2), (8, 4, 2), (3, 9, 1)])
def test_a_deal_costs_its_most_used_part(event: Event, times: int, parts: int, seen: int) -> None:
    dealt = cost(plan(event, times=times, parts=parts), "replace_one")
    assert dealt == cost(plan(event, times=seen), "replace_one")
    two_deals = plan(event, times=times, parts=parts) * 2
    assert cost(two_deals, "replace_one").rho == pytest.approx(2 * dealt.rho)


@BOTH
def test_nothing_costs_nothing(neighbours: str) -> None:
    free = replace(gaussian(0.0), radius=0.0, diameter=0.0)
    for rounds in ((), plan(gaussian(1.0), times=0), plan(free), plan(free, rate=0.1)):
        assert cost(rounds, neighbours).epsilon(0) == 0
        assert cost(rounds, neighbours).epsilon(1e-6) == 0
    assert calibrate(lambda m: (), Budget(1.0, 1e-6, neighbours)) == 0.0


@BOTH
@pytest.mark.parametrize("rate", [None, 0.1])
@pytest.mark.parametrize("event", [gaussian(0.0), laplace(0.0), noisy_max(0.0)])
def test_no_noise_is_infinite(event: Event, rate: float | None, neighbours: str) -> None:
    bare = cost((*plan(gaussian(9.0)), *plan(event, rate=rate)), neighbours)
    assert bare.epsilon(0.5) == math.inf
    assert "not private" in bare.theorem(0.5)


def test_extreme_ratios_do_not_crash() -> None:
    for z in (1e-200, 1e-8, 1e8, 1e200):
        for near in ("zero_out", "replace_one"):
            event = Event(law="gaussian", scale=2.0**20, radius=2.0**20 / z, diameter=2.0**21 / z,
                          coordinates=1)  # fmt: skip
            if math.isfinite(event.diameter):
                for rate in (None, 0.1):
                    epsilon = cost(plan(event, rate=rate), near).epsilon(1e-6)
                    assert epsilon == 0 if z > 1e6 else epsilon > 1e4


@pytest.mark.parametrize("broken", [{"scale": math.nan}, {"radius": math.inf}, {"diameter": -1.0}])
def test_numbers_that_cannot_be_used(broken: dict[str, float]) -> None:
    with pytest.raises(InvalidInput, match="finite"):
        cost(plan(replace(gaussian(1.0), **broken)), "zero_out")
    with pytest.raises(InvalidInput, match="neighbours"):
        cost((), "add_remove")  # type: ignore[arg-type]
    with pytest.raises(InvalidInput, match="delta"):
        cost((), "zero_out").epsilon(math.nan)


# --- noise on integers ----------------------------------------------------------------------------


def rounded_normal(k: int, s: float) -> mp.mpf:
    """P(Z = k) of a normal of deviation ``s``, rounded."""
    half = mp.mpf(1) / 2
    return mp.ncdf((k + half) / s) - mp.ncdf((k - half) / s)


def discrete_gaussian(k: int, s: float) -> mp.mpf:
    """P(Z = k) where P(k) falls as a normal density does on whole numbers."""
    total = mp.jtheta(3, 0, mp.exp(-1 / (2 * mp.mpf(s) ** 2)))
    return mp.exp(-(mp.mpf(k) ** 2) / (2 * mp.mpf(s) ** 2)) / total


def exceeds_gaussian_dp(law, s: float, moved: int) -> bool:
    """Whether integer noise hides a change of ``moved`` less than Gaussian DP says."""
    with mp.workdps(40):
        reach = int(14 * s) + 3
        here = [law(k, s) for k in range(-reach, reach + moved + 1)]
        there = [law(k - moved, s) for k in range(-reach, reach + moved + 1)]
        curve = GaussianDP(moved / s)
        return any(
            mp.fsum(max(p - mp.exp(epsilon) * q, 0) for p, q in zip(here, there, strict=True))
            > curve.delta(epsilon) * (1 + 1e-12) + 1e-25
            for epsilon in (0.0, 0.1, 0.5, 1.0, 2.0, 5.0)
        )


@pytest.mark.parametrize("s", [0.3, 0.7, 1.0, 3.3, 10.0])
@pytest.mark.parametrize("moved", [1, 2])
def test_rounded_noise_is_gaussian_dp_at_any_scale(s: float, moved: int) -> None:
    assert not exceeds_gaussian_dp(rounded_normal, s, moved)


def test_another_law_on_integers_is_not() -> None:
    """The twin: discrete Gaussian noise has the price of zCDP alone where steps are coarse."""
    assert exceeds_gaussian_dp(discrete_gaussian, 0.7, 1)


def test_the_price_does_not_depend_on_the_unit() -> None:
    coarse = Event(law="gaussian", scale=10.0, radius=1.0, diameter=2.0, coordinates=5)
    fine = replace(coarse, scale=10.0 * UNIT, radius=UNIT, diameter=2 * UNIT)
    for rate in (1.0, 0.1):
        both = [cost(plan(event, rate=rate), "zero_out").epsilon(1e-6) for event in (coarse, fine)]
        assert both[0] == both[1]
    assert cost(plan(coarse), "zero_out").mu == pytest.approx(0.1, rel=1e-12)


# --- calibration ----------------------------------------------------------------------------------

MAKERS = {
    "gaussian": lambda m: plan(gaussian(m), times=40),
    "laplace": lambda m: plan(laplace(m), times=3),
    "noisy max": lambda m: plan(noisy_max(m, picks=4), times=7),
    "mixture": lambda m: (*plan(gaussian(3 * m), times=9), *plan(noisy_max(m)), *plan(laplace(m))),
    "labels": lambda m: (*plan(labels(40.0, 1e-8)), *plan(gaussian(m))),
    "parts": lambda m: plan(gaussian(m), times=10, parts=3),
    "batches": lambda m: plan(gaussian(m), gaussian(2 * m), times=100, rate=0.02),
    "batches and labels": lambda m: (
        *plan(labels(40.0, 1e-8)),
        *plan(gaussian(m), times=20, rate=0.1),
    ),
    "batches of laplace": lambda m: plan(laplace(m), times=20, rate=0.1),
}


@BOTH
@pytest.mark.parametrize("name", MAKERS)
@pytest.mark.parametrize("epsilon", [0.3, 4.0])
def test_calibration_is_safe_and_tight(name: str, epsilon: float, neighbours: str) -> None:
    budget = Budget(epsilon, 1e-6, neighbours)
    make = MAKERS[name]
    multiplier = calibrate(make, budget)
    assert cost(make(multiplier), neighbours).epsilon(1e-6) <= epsilon
    assert cost(make(multiplier * (1 - 2e-3)), neighbours).epsilon(1e-6) > epsilon


@settings(max_examples=25, deadline=None)
@given(st.floats(1e-3, 50), st.floats(-12, -1), st.floats(1e-6, 1e6), st.booleans())
def test_calibration_round_trip(epsilon: float, log10: float, unit: float, swap: bool) -> None:
    near = "replace_one" if swap else "zero_out"
    budget = Budget(epsilon, 10.0**log10, near)

    def make(m: float) -> Plan:
        return plan(gaussian(unit * m), times=7)

    multiplier = calibrate(make, budget)
    assert cost(make(multiplier), near).epsilon(budget.delta) <= epsilon


def test_calibration_without_privacy() -> None:
    assert calibrate(MAKERS["mixture"], Budget(math.inf)) == 0.0


def test_pure_epsilon_calibration() -> None:
    exact = calibrate(MAKERS["laplace"], Budget(1.0))
    assert exact == pytest.approx(6.0, rel=2e-6)
    assert exact >= 6.0
    sampled = calibrate(MAKERS["batches of laplace"], Budget(1.0, 0.0, "zero_out"))
    assert cost(MAKERS["batches of laplace"](sampled), "zero_out").epsilon(0) <= 1.0


def test_calibration_says_why_it_cannot() -> None:
    with pytest.raises(UnsupportedAccounting, match="cannot give pure epsilon-DP: set delta"):
        calibrate(MAKERS["gaussian"], Budget(1.0))
    for rate in (None, 0.1):
        with pytest.raises(BudgetExceeded, match="label discovery"):
            calibrate(
                lambda m, rate=rate: (*plan(labels(9.0, 1e-7)), *plan(gaussian(m), rate=rate)),
                Budget(0.5, 1e-6),
            )
        with pytest.raises(BudgetExceeded, match="No amount of noise"):
            calibrate(
                lambda m, rate=rate: (*plan(labels(9.0, 1e-5)), *plan(gaussian(m), rate=rate)),
                Budget(5.0, 1e-6),
            )
    with pytest.raises(BudgetExceeded, match="too small to certify"):
        calibrate(MAKERS["batches"], Budget(1.0, 1e-14))


@pytest.mark.parametrize(
    ("rate", "steps", "epsilon", "sigma"),
    [
        (0.01, 1000, 0.1, 9.8044), (0.01, 1000, 1.0, 1.4149), (0.001, 10_000, 0.1, 3.1931),
        (0.001, 10_000, 1.0, 0.7415), (1.0, 100, 0.1, 307.52), (1.0, 100, 1.0, 37.306),
    ],
)  # fmt: skip
def test_calibration_is_as_good_as_the_best_peer(
    rate: float, steps: int, epsilon: float, sigma: float
) -> None:
    ours = calibrate(
        lambda m: plan(gaussian(m, 10), times=steps, rate=rate), Budget(epsilon, 1e-5, "zero_out")
    )
    assert ours == pytest.approx(sigma, rel=8e-3)
    assert ours <= sigma * 1.001


# --- monotone in every argument -------------------------------------------------------------------


@settings(max_examples=40, deadline=None)
@given(
    st.sampled_from([gaussian, laplace, noisy_max]),
    st.floats(0.2, 50), st.floats(1.0, 3.0), st.integers(1, 50), st.floats(-9, -2),
)  # fmt: skip
def test_closed_costs_are_monotone(make, z, factor, times, log10) -> None:  # type: ignore[no-untyped-def]
    delta = 10.0**log10

    def epsilon(event: Event, times: int = times, near: str = "replace_one") -> float:
        return cost(plan(event, times=times), near).epsilon(delta)  # type: ignore[arg-type]

    here, slack = epsilon(make(z)), 1 + 1e-9
    assert epsilon(make(z * factor)) <= here * slack
    assert epsilon(make(z), times + 1) * slack >= here
    assert epsilon(make(z), near="zero_out") <= here * slack
    wider = replace(make(z), diameter=make(z).diameter * factor)
    assert epsilon(wider) * slack >= here
    assert cost(plan(make(z), times=times), "replace_one").epsilon(delta / 2) * slack >= here


@BOTH
def test_batch_costs_are_monotone(neighbours: str) -> None:
    def epsilon(z: float = 1.5, times: int = 60, rate: float = 0.05, delta: float = 1e-6) -> float:
        return cost(plan(gaussian(z), times=times, rate=rate), neighbours).epsilon(delta)

    here = epsilon()
    assert epsilon(z=1.6) < here < epsilon(z=1.4)
    assert epsilon(times=50) < here < epsilon(times=70)
    assert epsilon(rate=0.04) < here < epsilon(rate=0.06) < epsilon(rate=1.0)
    assert epsilon(delta=1e-5) < here < epsilon(delta=1e-7)


# --- sabotaged twins ------------------------------------------------------------------------------


def below_the_truth(billed: float, truth: float, delta: float) -> bool:
    return billed < math.inf and truth > delta * (1 + 1e-9)


def test_halved_sensitivity_is_caught() -> None:
    honest = gaussian(2.0)
    halved = replace(honest, radius=honest.radius / 2, diameter=honest.diameter / 2)
    for event, caught in ((honest, False), (halved, True)):
        billed = cost(plan(event), "replace_one").epsilon(1e-6)
        assert below_the_truth(billed, float(true_gaussian_delta(1.0, billed)), 1e-6) is caught


def test_a_batch_billed_as_two_samples_is_caught() -> None:
    grouped = plan(gaussian(1.0), gaussian(1.0), rate=0.01)
    separate = plan(gaussian(1.0), times=2, rate=0.01)
    for rounds, caught in ((grouped, False), (separate, True)):
        billed = cost(rounds, "zero_out").epsilon(1e-6)
        truth = true_batch_delta(0.01, 1 / math.sqrt(2), billed, "zero_out")
        assert below_the_truth(billed, truth, 1e-6) is caught


def test_replace_one_read_as_zero_out_is_caught() -> None:
    for near, caught in (("replace_one", False), ("zero_out", True)):
        billed = cost(plan(gaussian(1.0), rate=0.1), near).epsilon(1e-6)
        truth = true_batch_delta(0.1, 1.0, billed, "replace_one")
        assert below_the_truth(billed, truth, 1e-6) is caught
