"""Smooth sensitivities are smooth, by enumeration, and noise in proportion to them is billed right.

Every data set of a small public grid is enumerated with all its neighbours, so nothing is left to
chance. The sensitivities that W20 prints, and other tempting ones, fail the same tests.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
import pytest
from scipy import stats

from privtail.algorithms.aggregated_minimizer import suggested_smoothness
from privtail.calibration import calibrate
from privtail.errors import InvalidInput, UnsupportedAccounting
from privtail.robust_means import ClippedMean
from privtail.trusted.accountants import cost
from privtail.trusted.budget import NEIGHBOURS, Budget
from privtail.trusted.events import Event, Round
from privtail.trusted.mechanisms.noise import GaussianNoise
from privtail.trusted.problem import Problem
from privtail.trusted.sampling import DisjointParts, PoissonBatches
from privtail.trusted.smooth import aggregate
from privtail.trusted.smooth.accounting import lognormal_rho, smooth_gaussian_loss
from privtail.trusted.smooth.aggregate import (
    SampleAndAggregate,
    blocks_needed,
    centre_of_attention,
)
from privtail.trusted.smooth.trimmed import TrimmedMean, best_spread, decay, trimmed_sum

Data = tuple[Any, ...]
Sensitivity = Callable[[Data], float]


def neighbours(data: Data, values: Any) -> set[Data]:
    """All multisets that differ from this one in one element."""
    found = {
        tuple(sorted((*data[:i], *data[i + 1 :], v))) for i in range(len(data)) for v in values
    }
    return found - {data}


def worst(values: Any, n: int, function: Callable[[Data], Any], size: Sensitivity) -> Any:
    """Largest |f(x) - f(y)| / S(x), and largest log S(x)/S(y), over all neighbours x, y."""
    size, function = cache(size), cache(function)
    local = steep = 0.0
    for x in itertools.combinations_with_replacement(values, n):
        for y in neighbours(x, values):
            apart = np.linalg.norm(np.subtract(function(x), function(y)))
            local = max(local, float(apart) / size(x))
            steep = max(steep, abs(math.log(size(x) / size(y))))
    return local, steep


# --- trimmed means -----------------------------------------------------------------------------

TOP = 8
SIZES = [(1, 0), (2, 0), (3, 1), (4, 1), (5, 1), (5, 2), (6, 2)]


EVERYTHING = (0, TOP)


def trimmed(
    m: int, t: float, mean: tuple[int, int] = EVERYTHING
) -> tuple[Callable[[Data], int], Sensitivity]:
    """The sum whose mean is truncated onto ``mean``, and its sensitivity."""

    def both(x: Data) -> tuple[int, float]:
        kept = len(x) - 2 * m
        inside = (kept * mean[0], kept * mean[1])
        return trimmed_sum(np.array(x, np.int64), m, TOP, decay(t, m, 3), inside)

    return lambda x: both(x)[0], lambda x: both(x)[1]


@pytest.mark.parametrize("t", [0.05, 0.4, 1.3])
@pytest.mark.parametrize(("n", "m"), SIZES)
def test_a_trimmed_sum_has_an_exactly_smooth_sensitivity(n: int, m: int, t: float) -> None:
    values = range(TOP + 1)
    local, steep = worst(values, n, *trimmed(m, t))
    assert local <= 1.0
    assert steep <= t
    assert local == 1.0, "the local sensitivity is attained"
    assert steep > 0.9 * t or t > 1, "and so is the smoothness"


@pytest.mark.parametrize("mean", [(3, 5), (2, 3), (0, 1)])
@pytest.mark.parametrize("t", [0.05, 0.4, 1.3])
@pytest.mark.parametrize(
    ("n", "m"), [*SIZES[:-1], pytest.param(*SIZES[-1], marks=pytest.mark.slow)]
)
def test_so_has_a_trimmed_sum_whose_mean_is_truncated(
    n: int, m: int, t: float, mean: tuple[int, int]
) -> None:
    """Values on 0 .. 8, their mean on a narrower interval: W20 Algorithm 2, line 2."""
    local, steep = worst(range(TOP + 1), n, *trimmed(m, t, mean))
    assert local <= 1.0
    assert steep <= t


@pytest.mark.parametrize(("n", "m"), [(3, 1), (5, 1), (5, 2)])
@pytest.mark.parametrize("mean", [EVERYTHING, (1, TOP), (4, 5), (0, 2)])
def test_it_is_the_definition(n: int, m: int, mean: tuple[int, int]) -> None:
    """S = max_k e^(-t k) max over y at distance k of the local sensitivity, nothing more.

    Where truncation binds, S is at least that, and above it by e^(3 t) at most.
    """
    t, values = 0.3, (0, 1, 4, 7, TOP)
    function, size = trimmed(m, t, mean)
    sets = list(itertools.combinations_with_replacement(values, n))
    near = {x: neighbours(x, values) for x in sets}
    local = {x: max(abs(function(x) - function(y)) for y in near[x]) for x in sets}
    over = []
    for x in sets:
        reached, best = {x}, 1.0
        for k in range(n + 1):
            best = max(best, math.exp(-t * k) * max(local[y] for y in reached))
            reached |= {z for y in reached for z in near[y]}
        over.append(size(x) / best)
    assert min(over) >= 1 - 1e-9
    assert max(over) <= (1 + 1e-9 if mean == EVERYTHING else math.exp(3 * t))


def printed_scale(m: int, t: float) -> Sensitivity:
    """W20 Algorithm 2, line 1, for the sum."""

    def size(x: Data) -> float:
        return max(x[-1] - x[0], (len(x) - 2 * m) * math.exp(-m * t) * TOP)

    return size


def cut_first(m: int, t: float) -> Sensitivity:
    """The sensitivity of values clipped onto [3, 5], for a mean truncated onto it."""

    def size(x: Data) -> float:
        clipped = np.clip(np.array(x, np.int64), 3, 5)
        return trimmed_sum(clipped - 3, m, 2, decay(t, m, 1), (0, 2 * (len(x) - 2 * m)))[1]

    return size


def local(m: int, t: float) -> Sensitivity:
    """The local sensitivity alone, kept away from 0."""

    def size(x: Data) -> float:
        n, p = len(x), (0, *x, TOP)
        return max(1.0, p[n - m + 1] - p[m + 1], p[n - m] - p[m])

    return size


@pytest.mark.parametrize(
    ("twin", "n", "m", "t"),
    [
        (printed_scale, 5, 2, 2.0),
        (printed_scale, 6, 2, 2.0),
        (local, 5, 1, 0.6),
        (local, 6, 2, 0.6),
    ],
)
def test_the_printed_sensitivity_is_caught(twin: Any, n: int, m: int, t: float) -> None:
    _, steep = worst(range(TOP + 1), n, trimmed(m, t)[0], twin(m, t))
    assert steep > 1.5 * t


@pytest.mark.parametrize(("n", "m"), [(4, 1), (5, 1), (6, 2)])
def test_the_sensitivity_of_clipped_values_is_not_that_of_a_truncated_mean(n: int, m: int) -> None:
    function, _ = trimmed(m, 0.4, (3, 5))
    local, _ = worst(range(TOP + 1), n, function, cut_first(m, 0.4))
    assert local > 1.2


def test_the_counterexample_of_the_printed_sensitivity() -> None:
    """1000 zeros on [-1, 1] and one of them replaced: printed 1 : 324, allowed e^t, ours e^t."""
    n, m, t, bits = 1000, 100, 1 / 16, 30
    zeros = np.full(n, 2**29, np.int64)
    hit = zeros.copy()
    hit[0] = 2**30
    weights = decay(t, m, bits)
    all_sums = (0, (n - 2 * m) * 2**bits)
    ours = [trimmed_sum(x.copy(), m, 2**bits, weights, all_sums)[1] for x in (zeros, hit)]
    assert abs(math.log(ours[1] / ours[0])) <= t
    printed = [max(raw / (n - 2 * m), math.exp(-m * t) * 2) for raw in (0.0, 1000.0)]
    assert printed[1] / printed[0] == pytest.approx(324, rel=0.01)


def naive(x: Any, m: int, top: int, t: float, most: int) -> float:
    """The formula of the docstring, O(m^2)."""
    n, p = len(x), [0, *sorted(int(v) for v in x), top]
    return max(
        min(most, p[j] - p[i]) * math.exp(-t * (j - i - (n - 2 * m)))
        for i in range(m + 2)
        for j in range(n - m, n + 2)
        if j - i >= n - 2 * m
    )


@pytest.mark.parametrize("kind", ["uniform", "ends", "cauchy", "constant", "geometric", "ties"])
def test_divide_and_conquer_finds_the_maximum(kind: str) -> None:
    rng = np.random.default_rng(1)
    for _ in range(250):
        n = int(rng.integers(1, 40))
        m, bits = int(rng.integers(0, (n + 1) // 2)), int(rng.integers(2, 34))
        top, t = 2**bits, float(rng.choice([1e-6, 1e-3, 0.03, 0.3, 2.0, 9.0]))
        x = {
            "uniform": rng.integers(0, top + 1, n),
            "ends": rng.choice([0, top // 2, top], n),
            "cauchy": np.clip(rng.standard_cauchy(n) * top / 100 + top / 2, 0, top),
            "constant": np.full(n, rng.integers(0, top + 1)),
            "geometric": top * np.exp(-rng.random() * np.arange(n)),
            "ties": rng.integers(0, 3, n),
        }[kind].astype(np.int64)
        first, last = sorted(int(v) for v in (n - 2 * m) * rng.integers(0, top + 1, 2))
        if rng.random() < 0.5:
            first, last = 0, (n - 2 * m) * top
        total, size = trimmed_sum(x.copy(), m, top, decay(t, m, bits), (first, last))
        assert total == np.clip(np.sort(x)[m : n - m].sum(), first, last)
        expected = max(1.0, naive(x, m, top, t, last - first))
        assert math.log(size) == pytest.approx(math.log(expected), abs=1e-10)


def test_a_million_values_take_no_longer_than_they_must() -> None:
    """No data set with ties or plateaus makes the search quadratic: it would run for minutes."""
    m, bits = 100_000, 30
    rng = np.random.default_rng(0)
    for x in (np.zeros(10**6), rng.random(10**6) * 2**30, np.where(rng.random(10**6) < 0.5, 0, 9)):
        for t in (1e-5, 1e-3, 0.1):
            for most in (800_000 * 2**bits, 2**20):
                trimmed_sum(x.astype(np.int64), m, 2**bits, decay(t, m, bits), (0, most))


@pytest.mark.parametrize("smoothness", [0.01, 0.04, 0.1, 0.3, 0.9])
def test_sigma_is_the_best(smoothness: float) -> None:
    def variance(sigma: float) -> float:
        s = math.exp(-1.5 * sigma**2) * (1 - smoothness / sigma)
        return 2 * math.exp(2 * sigma**2) / s**2

    sigma = best_spread(smoothness)
    assert 5 / smoothness * sigma**3 - 5 * sigma**2 - 1 == pytest.approx(0, abs=1e-9)
    assert variance(sigma) <= min(variance(sigma * 1.01), variance(sigma * 0.99))


# --- the centre of attention -------------------------------------------------------------------


@pytest.fixture
def coarse(monkeypatch: pytest.MonkeyPatch) -> None:
    """A ball of radius 2 on the integer grid: Lambda is 4 steps."""
    monkeypatch.setattr(aggregate, "BITS", 1)


def line(m: int) -> list[tuple[int]]:
    return [(v,) for v in range(-2, 3)]


def plane(m: int) -> list[tuple[int, int]]:
    grid = itertools.product(range(-2, 3), repeat=2)
    return [v for v in grid if v[0] ** 2 + v[1] ** 2 <= 4 and (m <= 5 or v[1] >= 0)]


def attention(beta: float) -> tuple[Callable[[Data], Any], Sensitivity]:
    def both(x: Data) -> tuple[Any, float]:
        return centre_of_attention(np.array(x, np.int64), beta)

    return lambda x: both(x)[0], lambda x: both(x)[1]


@pytest.mark.usefixtures("coarse")
@pytest.mark.parametrize("beta", [0.1, 0.5, 0.95])
@pytest.mark.parametrize("m", [3, 4, 5, 8])
def test_the_interval_has_an_exactly_smooth_sensitivity(m: int, beta: float) -> None:
    local, steep = worst(line(m), m, *attention(beta))
    assert local <= 1.0
    assert steep <= beta
    assert steep > 0.99 * beta or m == 3, "attained; three points always need the whole range"


@pytest.mark.usefixtures("coarse")
@pytest.mark.parametrize(("m", "beta"), [(4, 0.95), (5, 0.95), (7, 0.6)])
def test_the_ball_has_a_smooth_sensitivity(m: int, beta: float) -> None:
    """7 points of the half disc; the others of the whole one."""
    assert blocks_needed(2, beta) <= m
    values = plane(m)
    if m == 7:
        values = values[::2]
    local, steep = worst(values, m, *attention(beta))
    assert local <= 1.0
    assert steep <= beta


def printed_attention(beta: float, largest: bool) -> Sensitivity:
    """W20 Algorithm 1, line 5, with s = 1; "top" as the largest or the smallest radii."""

    def size(x: Data) -> float:
        points, m = np.array(x, float), len(x)
        most, averaged = (m + 1) // 2 + 1, min(m, math.ceil(1 / beta))
        apart = np.sort(np.linalg.norm(points[:, None] - points[None], axis=2), axis=1)
        radii = np.concatenate([apart, np.full((m, 1), 2.0 ** (aggregate.BITS + 1))], axis=1)
        best = 0.0
        for k in range(m - most + 1):
            ranked = np.sort(radii[:, most + k])
            chosen = ranked[-averaged:] if largest else ranked[:averaged]
            best = max(best, 2 * chosen.mean() * math.exp(-beta * k))
        return max(0.5, best)

    return size


@pytest.mark.usefixtures("coarse")
@pytest.mark.parametrize("largest", [True, False])
def test_the_printed_bounds_on_attention_are_caught(largest: bool) -> None:
    beta = 0.6
    function, _ = attention(beta)
    _, steep = worst(plane(7)[::2], 7, function, printed_attention(beta, largest))
    assert steep > 1.2 * beta


@pytest.mark.parametrize("beta", [0.9, 0.1, 0.01])
def test_refusals_say_how_many_records_are_needed(beta: float) -> None:
    needed = blocks_needed(3, beta)
    mechanism = SampleAndAggregate(
        multiplier=1.0, blocks=needed, radius=1.0, smoothness=beta, delta=1e-6
    )
    mechanism.event(Problem(n=needed, d=3), 3)
    with pytest.raises(InvalidInput, match=f"at least {needed} rows"):
        mechanism.event(Problem(n=needed - 1, d=3), 3)
    mechanism.event(Problem(n=needed, d=3), 1)
    if needed > 3:
        fewer = replace(mechanism, blocks=needed - 1)
        fewer.event(Problem(n=needed, d=3), 1)
        with pytest.raises(InvalidInput, match=f"at least {needed} rows"):
            fewer.event(Problem(n=10 * needed, d=3), 3)


@pytest.mark.parametrize(
    "value",
    [1e308, -1e308, 1e200, math.inf, -math.inf, math.nan, 5e-324, 0.3, 1.0, 1 + 1e-9],
)
def test_points_are_forced_into_the_ball(value: float) -> None:
    mechanism = SampleAndAggregate(multiplier=1.0, blocks=3, radius=2.0, smoothness=0.1, delta=1e-6)
    fallback = np.array([1.0, -1.0, 0.0])
    rows = [[value, 0, 0], [value, value, -value], [1, -1, value], [3, -1, 0], [1, -1, 0]]
    points = mechanism.on_grid(np.array(rows), fallback)
    assert points.dtype == np.int64
    assert all(sum(int(v) ** 2 for v in p) <= 4**28 for p in points)
    if not math.isfinite(value):
        assert not points[:3].any()
    assert points[3][0] == pytest.approx(2**28, rel=1e-5)
    assert not points[4].any()


# --- what the noise costs ----------------------------------------------------------------------


def log_density(z: np.ndarray, sigma: float) -> np.ndarray:
    """Of X e^(sigma Y), by quadrature over Y."""
    y = np.linspace(-12, 12, 1201)
    inner = -sigma * y - np.abs(z)[:, None] * np.exp(-sigma * y) - y * y / 2
    top = inner.max(axis=1, keepdims=True)
    total = np.exp(inner - top).sum(axis=1) * (y[1] - y[0])
    return top[:, 0] + np.log(total / 2 / math.sqrt(2 * math.pi))


@pytest.mark.parametrize("smoothness", [0.04, 0.3])
@pytest.mark.parametrize("epsilon", [0.3, 1.0])
def test_lognormal_noise_costs_at_most_its_rho(smoothness: float, epsilon: float) -> None:
    """Renyi divergences of the worst shift and stretch, both ways: 0.15 to 1 of the bound."""
    mechanism = TrimmedMean(
        multiplier=1 / epsilon, trim=1, low=0.0, high=1.0, smoothness=smoothness
    )
    event = mechanism.event(Problem(n=50, d=1), 1)
    rho = lognormal_rho(event)
    assert rho == pytest.approx(epsilon**2 / 2)
    z = np.sinh(np.linspace(-9, 9, 6001))
    weights = np.gradient(z)
    shift, sigma = 1 / event.scale, event.spread
    p = log_density(z, sigma)
    highest = 0.0
    for u in (-event.smoothness, event.smoothness):
        for v in (-shift, shift):
            q = log_density((z - v) * math.exp(-u), sigma) - u
            for order in (1.01, 2.0, 8.0, 32.0):
                for a, b in ((p, q), (q, p)):
                    logs = order * a + (1 - order) * b
                    moment = (np.exp(np.minimum(logs, 600)) * weights).sum()
                    highest = max(highest, math.log(moment) / (order - 1) / order / rho)
    assert 0.15 < highest <= 1.0


def hockey_stick(epsilon: float, p: int, v: float, stretch: float) -> float:
    """sup_A P(A) - e^eps Q(A), P = N(0, I_p) and Q = N(v, stretch^2 I_p), exactly."""
    if stretch == 1:
        return stats.norm.sf(epsilon / v - v / 2) - math.exp(epsilon) * stats.norm.sf(
            epsilon / v + v / 2
        )
    k = 1 - stretch**-2  # log p/q = p log stretch - k |x + v/(stretch^2 k)|^2/2 + ...
    centre = v / (stretch**2 * k)
    rest = p * math.log(stretch) + v * v / (2 * stretch**2) + k * centre**2 / 2
    square = 2 * (rest - epsilon) / k
    law = stats.ncx2.cdf if k > 0 else stats.ncx2.sf
    if square <= 0:
        return 0.0
    at_p = law(square, p, centre**2)
    at_q = law(square / stretch**2, p, ((centre + v) / stretch) ** 2)
    return float(at_p - math.exp(epsilon) * at_q)


@pytest.mark.parametrize("p", [1, 2, 10])
@pytest.mark.parametrize("epsilon", [0.3, 1.0, 4.0])
@pytest.mark.parametrize("part", [0.3, 1.0, 1.7])
def test_a_smooth_gaussian_costs_at_most_its_epsilon(p: int, epsilon: float, part: float) -> None:
    """The exact divergence of moved and stretched Gaussians stays below delta, not far below."""
    delta = 1e-5
    beta = part * suggested_smoothness(epsilon, delta, p)

    def event(multiplier: float) -> Event:
        return Event(
            law="smooth_gaussian", scale=multiplier, radius=1.0, diameter=1.0, coordinates=p,
            smoothness=beta, delta=delta,
        )  # fmt: skip

    def plan(multiplier: float) -> Any:
        return (Round(events=(event(multiplier),)),)

    multiplier = calibrate(plan, Budget(epsilon, delta))
    loss = smooth_gaussian_loss(event(multiplier))
    assert 0.999 * epsilon < loss <= epsilon

    def exact(multiplier: float) -> float:
        moves, bends = (0.5 / multiplier, 1 / multiplier), (-beta, -beta / 2, 0.0, beta / 2, beta)
        return max(
            hockey_stick(epsilon, p, v * min(1.0, math.exp(u)), math.exp(u))
            for v in moves for u in bends
        )  # fmt: skip

    assert exact(multiplier) <= delta
    assert exact(multiplier / 2) > delta, "the bound has some power"


def test_prices_add_and_mixtures_are_converted_or_refused() -> None:
    problem = Problem(n=200, d=2)
    trimmed = TrimmedMean(multiplier=9.0, trim=20, low=-1.0, high=1.0)
    several = Round(events=(trimmed.event(problem, 2),), times=7)
    for near in NEIGHBOURS:
        bill = cost((several,), near)
        assert bill.rho == pytest.approx(14 / 9.0**2 / 2)
        assert bill.mu is None
        assert bill.theorem(1e-6) == "zCDP"
        assert math.isinf(bill.epsilon(0.0))
        gaussian = Round(events=(GaussianNoise(5.0).event(problem.means(ClippedMean(1.0))),))
        both = cost((several, gaussian), near)
        assert both.rho == pytest.approx(bill.rho + cost((gaussian,), near).rho)
    parts = Round(events=(trimmed.event(problem, 1),), times=4, sampling=DisjointParts(4))
    assert cost((parts,), "replace_one").rho == pytest.approx(1 / 9.0**2 / 2)
    aggregated = SampleAndAggregate(
        multiplier=8.0, blocks=150, radius=1.0, smoothness=0.02, delta=1e-7
    )
    once = cost((Round(events=(aggregated.event(problem, 1),)),), "replace_one")
    assert math.isinf(once.epsilon(0.9e-7))
    twice = cost((Round(events=(aggregated.event(problem, 1),), times=2),), "replace_one")
    assert twice.epsilon(2e-7) == pytest.approx(2 * once.epsilon(1e-7))
    mixed = cost((Round(events=(aggregated.event(problem, 1),)), several), "replace_one")
    assert mixed.slack >= 1e-7
    assert mixed.epsilon(1e-6) > max(once.epsilon(1e-6), 1e-9)


@pytest.mark.parametrize("mechanism", ["trimmed", "aggregated"])
def test_poisson_batches_have_no_theorem(mechanism: str) -> None:
    problem = Problem(n=200, d=2)
    event = {
        "trimmed": TrimmedMean(multiplier=9.0, trim=20, low=-1.0, high=1.0).event(problem, 1),
        "aggregated": SampleAndAggregate(
            multiplier=8.0, blocks=150, radius=1.0, smoothness=0.02, delta=1e-7
        ).event(problem, 1),
    }[mechanism]
    with pytest.raises(UnsupportedAccounting, match="Everyone"):
        cost((Round(events=(event,), sampling=PoissonBatches(0.1)),), "replace_one")
    gaussian = GaussianNoise(5.0).event(problem.sampled(PoissonBatches(0.1)).means(ClippedMean(1)))
    if mechanism == "trimmed":
        with pytest.raises(UnsupportedAccounting, match="common theorem"):
            cost(
                (
                    Round(events=(event,)),
                    Round(events=(gaussian,), sampling=PoissonBatches(0.1)),
                ),
                "replace_one",
            )


def test_pure_epsilon_is_refused() -> None:
    problem = Problem(n=200, d=2)

    def plan(multiplier: float) -> Any:
        mechanism = TrimmedMean(multiplier=multiplier, trim=20, low=-1.0, high=1.0)
        return (Round(events=(mechanism.event(problem, 1),)),)

    with pytest.raises(UnsupportedAccounting, match="delta"):
        calibrate(plan, Budget(1.0))


@pytest.mark.parametrize(
    "arguments",
    [
        {"multiplier": math.nan}, {"multiplier": -1.0}, {"trim": -1}, {"trim": 1.5}, {"low": 1.0},
        {"low": -math.inf}, {"high": math.nan}, {"smoothness": 0.0}, {"smoothness": 1.0},
        {"low": -1e308, "high": 1e308}, {"reach": 0.5}, {"reach": math.inf}, {"reach": math.nan},
        {"low": -1e305, "high": 1e305, "reach": 1e6},
    ],
)  # fmt: skip
def test_what_a_trimmed_mean_cannot_be(arguments: dict[str, Any]) -> None:
    good: dict[str, Any] = {"multiplier": 1.0, "trim": 2, "low": -1.0, "high": 1.0}
    with pytest.raises(InvalidInput):
        TrimmedMean(**(good | arguments))
    with pytest.raises(InvalidInput, match="leaves none"):
        TrimmedMean(**good).event(Problem(n=4, d=1), 1)


@pytest.mark.parametrize(
    "arguments",
    [
        {"multiplier": math.inf}, {"blocks": 2}, {"blocks": 2.5}, {"radius": 0.0},
        {"radius": math.inf}, {"smoothness": 0.0}, {"smoothness": 1.0}, {"delta": 1.0},
        {"delta": -0.1},
    ],
)  # fmt: skip
def test_what_an_aggregate_cannot_be(arguments: dict[str, Any]) -> None:
    good: dict[str, Any] = {
        "multiplier": 1.0, "blocks": 9, "radius": 1.0, "smoothness": 0.1, "delta": 1e-6,
    }  # fmt: skip
    with pytest.raises(InvalidInput):
        SampleAndAggregate(**(good | arguments))
