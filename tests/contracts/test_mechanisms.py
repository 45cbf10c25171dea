"""Noise has the law that is billed, at the scale that is billed, and every test could tell.

Tests of the exact sampler use the operating system's randomness: with ALPHA = 1e-6 per comparison
and fewer than a hundred comparisons, all of them together raise a false alarm once in 10^4 runs.
Seeded tests have no false alarm once they pass; their level is the same.
"""

from __future__ import annotations

import ctypes
import enum
import itertools
import math
import os
import platform
import subprocess
import sys
import threading
from collections import Counter
from types import SimpleNamespace
from typing import Any

import mpmath
import numpy as np
import pytest
from scipy import stats

from privtail.errors import InvalidInput
from privtail.trusted.budget import Budget
from privtail.trusted.curator import Curator
from privtail.trusted.events import Round
from privtail.trusted.mechanisms import samplers
from privtail.trusted.mechanisms.labels import StabilityHistogram
from privtail.trusted.mechanisms.noise import GaussianNoise, LaplaceNoise
from privtail.trusted.mechanisms.samplers import ExactSampler
from privtail.trusted.mechanisms.selection import LaplaceMax, NoisyMax, NoisyTopK
from privtail.trusted.mechanisms.simulated import SimulatedSampler
from privtail.trusted.records.targets import Labels, canonical_label
from privtail.trusted.sensitivity import Norms, Sensitivity

ALPHA = 1e-6
DRAWS = 40_000
WRONG = (2 / 3, 3 / 2)
SAMPLERS = pytest.mark.parametrize(
    "sampler", [ExactSampler(), SimulatedSampler(7)], ids=["exact", "simulated"]
)


def gaussian_law(scale: float) -> tuple[np.ndarray, np.ndarray]:
    """Support and probabilities of a rounded normal."""
    k = np.arange(-math.ceil(12 * scale) - 3, math.ceil(12 * scale) + 4)
    p = np.diff(stats.norm.cdf((np.append(k, k[-1] + 1) - 0.5) / scale))
    return k, p / p.sum()


def laplace_law(scale: float) -> tuple[np.ndarray, np.ndarray]:
    """Support and probabilities of the discrete Laplace."""
    k = np.arange(-math.ceil(45 * scale) - 3, math.ceil(45 * scale) + 4)
    p = np.exp(-np.abs(k) / scale)
    return k, p / p.sum()


def chi_square(draws: np.ndarray, law: tuple[np.ndarray, np.ndarray]) -> float:
    """p-value of Pearson's test over about 40 cells of at least 25 expected draws."""
    k, p = law
    assert draws.min() >= k[0]
    assert draws.max() <= k[-1]
    cumulative = np.cumsum(p)
    cells = np.minimum((cumulative * 40 - 1e-12).astype(int), 39)
    starts = np.flatnonzero(np.diff(cells, prepend=-1))
    expected = np.add.reduceat(p, starts) * len(draws)
    observed = np.add.reduceat(np.bincount(draws - k[0], minlength=len(k)), starts)
    small = expected < 25
    if small.any():
        big = int(np.argmax(expected))
        expected[big] += expected[small].sum()
        observed[big] += observed[small].sum()
        expected, observed = expected[~small], observed[~small]
    statistic = ((observed - expected) ** 2 / expected).sum()
    return float(stats.chi2.sf(statistic, len(expected) - 1))


LAWS = {"gaussian": gaussian_law, "laplace": laplace_law}
EXACT_SCALES = (0.5, 1.0, 3.3, 40.0, 1000.0)


@pytest.mark.parametrize("scale", EXACT_SCALES)
@pytest.mark.parametrize("law", LAWS)
def test_exact_noise_has_its_law(law: str, scale: float) -> None:
    """ALPHA a case; a scale that is wrong by two thirds or three halves is rejected."""
    values = np.full(DRAWS, 1_000_003, dtype=np.int64)
    draws = getattr(ExactSampler(), law)(values, scale) - values
    assert chi_square(draws, LAWS[law](scale)) > ALPHA
    for factor in WRONG:
        wide = draws[np.abs(draws) <= 12 * scale * min(factor, 1)]
        assert chi_square(wide, LAWS[law](scale * factor)) < ALPHA, factor


@pytest.mark.parametrize("scale", [100.0, 1000.0])
@pytest.mark.parametrize("law", LAWS)
def test_simulated_noise_has_the_same_law(law: str, scale: float) -> None:
    """ALPHA a case, as for exact noise."""
    values = np.full(DRAWS, -77, dtype=np.int64)
    draws = getattr(SimulatedSampler(1), law)(values, scale) - values
    assert chi_square(draws, LAWS[law](scale)) > ALPHA
    for factor in WRONG:
        wide = draws[np.abs(draws) <= 12 * scale * min(factor, 1)]
        assert chi_square(wide, LAWS[law](scale * factor)) < ALPHA, factor


@pytest.mark.parametrize("scale", [2.0**20, 3.7e9, 2.0**45])
@pytest.mark.parametrize("law", LAWS)
def test_both_samplers_have_one_law(law: str, scale: float) -> None:
    """Kolmogorov and Smirnov, at scales where the estimators work; and against the continuum."""
    values = np.zeros(DRAWS, dtype=np.int64)
    exact = getattr(ExactSampler(), law)(values, scale)
    simulated = getattr(SimulatedSampler(2), law)(values, scale)
    assert stats.ks_2samp(exact, simulated).pvalue > ALPHA
    continuous = stats.norm if law == "gaussian" else stats.laplace
    for draws in (exact, simulated):
        assert stats.kstest(draws / scale, continuous.cdf).pvalue > ALPHA
        for factor in WRONG:
            assert stats.kstest(draws / scale / factor, continuous.cdf).pvalue < ALPHA
            assert stats.ks_2samp(draws * factor, simulated).pvalue < ALPHA


@SAMPLERS
@pytest.mark.parametrize("law", LAWS)
def test_coordinates_are_independent(sampler: Any, law: str) -> None:
    """Correlation of neighbouring coordinates and of successive calls, at ALPHA each."""
    a, b = (getattr(sampler, law)(np.zeros(DRAWS, np.int64), 1e6) for _ in range(2))
    limit = stats.norm.isf(ALPHA / 2) / math.sqrt(DRAWS) * 1.3
    for x, y in ((a[1:], a[:-1]), (a, b)):
        assert abs(np.corrcoef(x, y)[0, 1]) < limit
    assert abs(np.corrcoef(a, a + b)[0, 1]) > limit


def first_bits(count: int) -> np.ndarray:
    """(count, 2) the first 64 bits of uniform variables; the first rows are the awkward ones."""
    ends = [0, 1, 2, 2**11, 2**32, 2**63, 2**64 - 2, 2**64 - 1]
    quarters = [2**62 - 1, 2**62, 2**62 + 1, 3 * 2**62, 2**61, 5 * 2**61, 2**63 - 1]
    awkward = list(itertools.product(ends + quarters, repeat=2))
    drawn = np.random.default_rng(0).integers(0, 2**64, (count, 2), dtype=np.uint64)
    drawn[: len(awkward)] = np.array(awkward, dtype=np.uint64)
    return drawn


def wrong_roundings(bits: np.ndarray, scale: float) -> tuple[int, int]:
    """How often the short way decides otherwise than the long one does, and how often it decides.

    At both ends of what the bits leave open, and in between.
    """
    noise, decided = samplers._short_way(bits[:, 0], bits[:, 1], scale)
    wrong = 0
    for i in np.flatnonzero(decided):
        for rest in itertools.product((0, 2**64 - 1), repeat=2):
            cells = [(int(b) << 64) | more for b, more in zip(bits[i], rest, strict=True)]
            exact = samplers._rounded(
                lambda iv, u, v: iv.mpf(scale) * samplers._normal(iv, u, v), cells
            )
            wrong += exact != noise[i]
    return wrong, int(decided.sum())


LONG = np.finfo(np.longdouble).eps < 2.0**-60


@pytest.mark.parametrize(
    ("scale", "usual"), [(0.3, True), (2.0**41 / 3, True), (2.0**46, LONG), (1e200, False)]
)
def test_the_short_way_rounds_as_the_long_one_does(scale: float, usual: bool) -> None:
    """Which one is taken shows in nothing; where numbers are too large the long one is taken."""
    bits = first_bits(600)
    wrong, decided = wrong_roundings(bits, scale)
    assert wrong == 0
    assert decided > 400 if usual else decided == 0


def test_a_short_way_with_a_wrong_constant_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    """The twin: 2 pi is off by 2^-41."""
    monkeypatch.setattr(samplers, "_TWO_PI", samplers._TWO_PI + np.longdouble(2) ** -41)
    assert wrong_roundings(first_bits(600), 2.0**41 / 3)[0] > 0


@pytest.mark.skipif(not LONG, reason="long double is double")
def test_logarithms_in_doubles_are_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    """As musl has them on aarch64; the twin believes what the type says."""
    log = np.log
    monkeypatch.setattr(np, "log", lambda x: log(np.float64(x)).astype(np.longdouble))
    measure = samplers._error_of_functions.__wrapped__
    monkeypatch.setattr(samplers, "_error_of_functions", measure)
    assert wrong_roundings(first_bits(600), 2.0**41 / 3)[0] == 0
    monkeypatch.setattr(samplers, "_error", lambda: np.finfo(np.longdouble).eps)
    assert wrong_roundings(first_bits(600), 2.0**46)[0] > 0


@pytest.mark.skipif(
    (platform.system(), platform.machine()) != ("Linux", "x86_64"), reason="x87 on Linux"
)
def test_floats_that_are_shorter_than_their_type_are_noticed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """As in Windows Subsystem for Linux 1; the twin believes what the type says."""
    libm, before, short = ctypes.CDLL("libm.so.6"), (ctypes.c_ubyte * 64)(), (ctypes.c_ubyte * 64)()
    libm.fegetenv(before)
    libm.fegetenv(short)
    short[1] = short[1] & ~3 | 2  # the processor's 53 bits of precision
    samplers._error()  # what was measured before says nothing here
    libm.fesetenv(short)
    try:
        found = wrong_roundings(first_bits(600), 2.0**41 / 3)[0]
        monkeypatch.setattr(samplers, "_error", lambda: np.finfo(np.longdouble).eps)
        believing = wrong_roundings(first_bits(600), 2.0**41 / 3)[0]
    finally:
        libm.fesetenv(before)
    assert found == 0
    assert believing > 0


def test_floating_point_is_as_good_as_the_short_way_assumes() -> None:
    """Logarithms and cosines of the machine's longest floats are off by one spacing or so."""
    real = np.longdouble
    allowed = float(np.finfo(real).eps)
    assert samplers._error() <= 2 * allowed
    x = (first_bits(3000)[:, 0] >> np.uint64(1)).astype(real) / real(2) ** 63
    with mpmath.workdps(60):
        for u in x[(x > 0) & (x < 1)]:
            logarithm, cosine = _exactly(np.log(u)), _exactly(np.cos(samplers._TWO_PI * u))
            assert abs(logarithm / mpmath.log(_exactly(u)) - 1) < allowed
            angle = _exactly(samplers._TWO_PI * u)
            assert abs(cosine - mpmath.cos(angle)) < allowed
        assert abs(_exactly(samplers._TWO_PI) / (2 * mpmath.pi) - 1) < allowed / 2


def missed(name: str) -> int:
    """How often an enclosure misses its number where mpmath's function is off by 512 spacings."""
    iv = samplers._intervals()
    iv.prec = 100

    def off(x: Any) -> Any:
        return getattr(iv, name)(x) * (1 + iv.mpf(2) ** (9 - iv.prec))

    worse, wrong = SimpleNamespace(prec=iv.prec, mpf=iv.mpf, **{name: off}), 0
    with mpmath.workprec(300):
        for k in range(1, 400, 7):
            enclosure = getattr(samplers, f"_{name}")(worse, iv.mpf(k) / 64)
            low, high = (mpmath.make_mpf(end) for end in enclosure._mpi_)
            wrong += not low <= getattr(mpmath, name)(mpmath.mpf(k) / 64) <= high
    return wrong


@pytest.mark.parametrize("name", ["log", "exp", "cos"])
def test_functions_of_mpmath_may_be_a_little_off(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The twin believes them."""
    assert missed(name) == 0
    monkeypatch.setattr(samplers, "_slack", lambda iv: 0)
    assert missed(name) > 0


def test_an_exponential_that_mpmath_misses_is_enclosed() -> None:
    iv = samplers._intervals()
    iv.prec = 53
    enclosure = samplers._exp(iv, iv.mpf(3893924827815215) / 2**50)
    with mpmath.workprec(300):
        low, high = (mpmath.make_mpf(end) for end in enclosure._mpi_)
        assert low < mpmath.exp(mpmath.mpf(3893924827815215) / 2**50) < high


def _exactly(x: np.longdouble) -> mpmath.mpf:
    mantissa, exponent = np.frexp(x)
    return mpmath.ldexp(mpmath.mpf(int(mantissa * np.longdouble(2) ** 128)), int(exponent) - 128)


def wrong_draws(monkeypatch: pytest.MonkeyPatch) -> int:
    """How many draws are not what their own 32 random bytes say, computed apart from the sampler.

    Large scales need the long way, and all bytes; sums beyond 2^62 are cut.
    """
    wrong, values = 0, np.array([[-(2**61), 5, 2**62 - 1, 2**61]] * 50, dtype=np.int64)
    for scale in (0.3, 2.0**41 / 3, 2.0**46, 2.0**54, 2.0**58, 2.0**61):
        given = np.random.default_rng(0).bytes(32 * values.size)
        once = iter([given])
        monkeypatch.setattr(os, "urandom", lambda count, once=once: next(once)[:count])
        noisy = ExactSampler().gaussian(values, scale)
        assert noisy.shape == values.shape
        with mpmath.workdps(80):
            for i, value in enumerate(values.ravel().tolist()):
                u, v = (
                    (int.from_bytes(given[at : at + 16], "big") + mpmath.mpf(1) / 2) / 2**128
                    for at in (32 * i, 32 * i + 16)
                )
                normal = mpmath.sqrt(-2 * mpmath.log(u)) * mpmath.cos(2 * mpmath.pi * v)
                exact = int(mpmath.nint(value + scale * normal))
                wrong += int(noisy.ravel()[i]) != min(max(exact, -(2**62)), 2**62)
    return wrong


def test_every_draw_is_the_rounding_of_its_own_bytes(monkeypatch: pytest.MonkeyPatch) -> None:
    """The law needs no test beyond this one: it is that of a function of uniform variables."""
    assert wrong_draws(monkeypatch) == 0


def _undoubting(u: np.ndarray, v: np.ndarray, scale: float) -> tuple[np.ndarray, np.ndarray]:
    radius = np.sqrt(-2 * np.log((u.astype(np.longdouble) + 0.5) / 2.0**64))
    angle = samplers._TWO_PI * (v.astype(np.longdouble) + 0.5) / 2.0**64
    return np.rint(scale * radius * np.cos(angle)).astype(np.int64), np.ones(len(u), bool)


SHORT = samplers._short_way
TWINS = {
    "no width": _undoubting,
    "a bit used twice": lambda u, v, scale: SHORT(u, v ^ ((u ^ v) & 2**40), scale),
    "an angle used twice": lambda u, v, scale: SHORT(u, np.roll(v, 1), scale),
    "rounded upwards": lambda u, v, scale: (SHORT(u, v, scale)[0] + 1, SHORT(u, v, scale)[1]),
}


@pytest.mark.parametrize("twin", TWINS)
def test_draws_that_are_not_are_caught(twin: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where nothing is in doubt for the twin, what its bytes say is lost."""
    monkeypatch.setattr(samplers, "_short_way", TWINS[twin])
    assert wrong_draws(monkeypatch) > 0


def test_threads_do_not_share_a_precision() -> None:
    """One draw that needs more bits leaves the precision of another thread as it is."""
    here, there = samplers._intervals(), []
    run = threading.Thread(target=lambda: there.append(samplers._intervals()))
    run.start()
    run.join()
    assert samplers._intervals() is here
    assert there[0] is not here


def test_noise_is_added_to_the_value() -> None:
    values = np.array([-(2**61), -5, 0, 2**61], dtype=np.int64)
    for sampler in (ExactSampler(), SimulatedSampler(0)):
        for law in LAWS:
            moved = getattr(sampler, law)(values, 2.0) - values
            assert np.abs(moved).max() < 200


@pytest.mark.parametrize("draw", ["gaussian", "laplace", "top"])
def test_what_is_read_only_gets_exact_noise(draw: str) -> None:
    """OpenDP takes no array that cannot be written to."""
    values = np.arange(3, dtype=np.int64)
    values.flags.writeable = False
    further = (2,) if draw == "top" else ()
    assert len(getattr(ExactSampler(), draw)(values, 1.0, *further)) == (2 if further else 3)
    assert values.tolist() == [0, 1, 2]


def test_simulated_noise_is_seeded_and_exact_noise_is_not() -> None:
    values = np.zeros(8, np.int64)
    same = [SimulatedSampler(5).gaussian(values, 1e9).tolist() for _ in range(2)]
    assert same[0] == same[1]
    assert SimulatedSampler(6).gaussian(values, 1e9).tolist() != same[0]
    # Equal with probability below 10^-60.
    assert (
        ExactSampler().gaussian(values, 1e9).tolist()
        != ExactSampler().gaussian(values, 1e9).tolist()
    )
    assert ExactSampler.exact
    assert not SimulatedSampler.exact


# Selection


def peeled(scores: np.ndarray, scale: float, picks: int) -> dict[tuple[int, ...], float]:
    """Probabilities of ordered picks by exponential mechanisms that remove what they chose."""
    law = {}
    for order in itertools.permutations(range(len(scores)), picks):
        left, p = list(range(len(scores))), 1.0
        for i in order:
            weights = np.exp((scores[left] - scores.max()) / scale)
            p *= float(weights[left.index(i)] / weights.sum())
            left.remove(i)
        law[order] = p
    return law


def order_test(found: Counter[tuple[int, ...]], law: dict[tuple[int, ...], float]) -> float:
    total = sum(found.values())
    expected = np.array([p * total for p in law.values()])
    observed = np.array([found[order] for order in law])
    assert expected.min() > 5
    return float(stats.chisquare(observed, expected).pvalue)


@SAMPLERS
@pytest.mark.parametrize(("picks", "draws"), [(1, 4_000), (2, 6_000), (3, 8_000)])
def test_top_k_is_peeled_exponential_mechanisms(sampler: Any, picks: int, draws: int) -> None:
    """Gumbel noise: every ordered outcome at its exact probability, ALPHA a case."""
    scores, scale = np.array([0, 130, 60, -40], dtype=np.int64), 100.0
    found = Counter(tuple(sampler.top(scores, scale, picks).tolist()) for _ in range(draws))
    assert order_test(found, peeled(scores, scale, picks)) > ALPHA
    for factor in WRONG:
        assert order_test(found, peeled(scores, scale * factor, picks)) < ALPHA


def test_laplace_noisy_max_would_be_rejected() -> None:
    """Laplace noise selects too, but has not the bounded range that is billed."""
    rng = np.random.default_rng(0)
    scores, scale = np.array([0, 130, 60, -40]), 100.0
    noisy = scores + rng.laplace(0, scale, (40_000, 4))
    found = Counter((int(i),) for i in noisy.argmax(axis=1))
    assert order_test(found, peeled(scores, scale, 1)) < ALPHA


def laplace_choice(scores: np.ndarray, scale: float) -> np.ndarray:
    """Probability that each score plus discrete Laplace noise is the first of the largest."""
    k, p = laplace_law(scale)
    low, high = int(scores.min() + k[0]), int(scores.max() + k[-1])
    support = np.arange(low, high + 1)
    below = []  # P(score + noise < v) and P(<= v)
    mass = []
    for s in scores:
        law = np.zeros(len(support))
        law[int(s) + k - low] = p
        mass.append(law)
        total = np.cumsum(law)
        below.append((np.concatenate([[0.0], total[:-1]]), total))
    chances = []
    for j in range(len(scores)):
        wins = mass[j].copy()
        for i, (strictly, weakly) in enumerate(below):
            if i != j:
                wins *= strictly if i < j else weakly
        chances.append(wins.sum())
    return np.array(chances)


def test_a_laplace_maximum_has_its_law() -> None:
    """Exact and simulated noise, ALPHA each; ties go to the first."""
    scores, scale = np.array([0, 3, 2, -1], dtype=np.int64), 2.5
    law = laplace_choice(scores, scale)
    assert law.sum() == pytest.approx(1.0)
    s = a_sensitivity(radius=1.0, diameter=2.0)
    for sampler in (ExactSampler(), SimulatedSampler(5)):
        draws = [LaplaceMax(scale).release(scores, s, sampler) for _ in range(6_000)]
        found = np.bincount(draws, minlength=4)
        assert stats.chisquare(found, law * 6_000).pvalue > ALPHA
        for factor in WRONG:
            wrong = laplace_choice(scores, scale * factor)
            assert stats.chisquare(found, wrong * 6_000).pvalue < ALPHA


@pytest.mark.parametrize("scale", [2.5, 7.0])
def test_a_laplace_maximum_costs_what_is_billed(scale: float) -> None:
    """Exact laws on neighbours; half the noise, and half the bill, are caught."""
    from privtail.trusted.accountants import cost

    s = a_sensitivity(size=3, radius=1.0, diameter=2.0)
    event = LaplaceMax(scale).event(s)
    assert event.law == "laplace_max"
    epsilon = cost((Round(events=(event,)),), "replace_one").epsilon(0.0)
    assert epsilon == pytest.approx(2 * event.diameter / scale)
    start = np.array([4, 0, -2])
    worst = halved = 0.0
    for change in itertools.product((-2, 0, 2), repeat=3):
        for base in (start, start[::-1], 3 * start):
            pair = base, base + np.array(change)
            p, q = (laplace_choice(v, scale) for v in pair)
            worst = max(worst, float(np.abs(np.log(p / q)).max()))
            p, q = (laplace_choice(v, scale / 2) for v in pair)
            halved = max(halved, float(np.abs(np.log(p / q)).max()))
    assert 0.9 * epsilon < worst <= epsilon * (1 + 1e-9)
    assert halved > epsilon
    one_sided = cost((Round(events=(event,)),), "zero_out").epsilon(0.0)
    assert one_sided == pytest.approx(epsilon / 2)


@SAMPLERS
@pytest.mark.parametrize("rate", [0.01, 0.3, 0.9999])
def test_coins(sampler: Any, rate: float) -> None:
    """Binomial test at ALPHA; two thirds and three halves of the rate are rejected."""
    count = 200_000
    heads = len(sampler.coins(rate).within(0, count))
    assert stats.binomtest(heads, count, rate).pvalue > ALPHA
    assert stats.binomtest(heads, count, rate * 2 / 3).pvalue < ALPHA
    assert stats.binomtest(heads, count, min(rate * 1.5, 1 - 1e-9)).pvalue < ALPHA
    assert sampler.coins(1).within(0, 10) == slice(0, 10)


# Events


def a_sensitivity(size: int = 4, radius: float = 8.0, diameter: float = 16.0, **more: Any) -> Any:
    arguments: dict[str, Any] = {"magnitude": 100, "unit": 0.5} | more
    return Sensitivity(
        size=size,
        radius=Norms(math.inf, radius, math.inf),
        diameter=Norms(math.inf, diameter, math.inf),
        **arguments,
    )


MECHANISMS = {
    "gaussian": (GaussianNoise, "l2"),
    "laplace": (LaplaceNoise, "l1"),
    "noisy_max": (NoisyMax, "linf"),
    "top": (lambda m: NoisyTopK(m, 3), "linf"),
    "laplace_max": (LaplaceMax, "linf"),
}


@pytest.mark.parametrize("name", MECHANISMS)
@pytest.mark.parametrize("multiplier", [0.0, 0.3, 7.0, 1e9])
def test_events_hold_scale_radius_and_diameter_in_the_norm_of_the_law(
    name: str, multiplier: float
) -> None:
    make, norm = MECHANISMS[name]
    s = a_sensitivity(one_signed=True, question="what")
    event = make(multiplier).event(s)
    assert event.radius == getattr(s.radius, norm)
    assert event.diameter == getattr(s.diameter, norm)
    assert event.scale == multiplier * event.radius
    assert event.law == ("noisy_max" if name == "top" else name)
    assert event.picks == (3 if name == "top" else 1)
    assert event.coordinates == 4
    assert event.unit == 0.5
    assert event.question == "what"
    assert event.one_signed == (norm == "linf")


@pytest.mark.parametrize("name", ["gaussian", "laplace"])
def test_the_noise_that_is_drawn_is_the_noise_that_is_billed(name: str) -> None:
    """Seeded; ALPHA. The released vector in real units has std (or b) = event.scale x unit."""
    make, _ = MECHANISMS[name]
    s = a_sensitivity(size=DRAWS, radius=2.0**30, diameter=2.0**31)
    mechanism = make(0.7)
    noise = mechanism.release(np.full(DRAWS, 6, np.int64), s, SimulatedSampler(3)) - 3.0
    scale = mechanism.event(s).scale * s.unit
    law = stats.norm if name == "gaussian" else stats.laplace
    assert stats.kstest(noise / scale, law.cdf).pvalue > ALPHA
    for factor in WRONG:
        assert stats.kstest(noise / scale / factor, law.cdf).pvalue < ALPHA


@pytest.mark.parametrize("name", ["noisy_max", "top"])
def test_the_choice_that_is_made_is_the_choice_that_is_billed(name: str) -> None:
    make, _ = MECHANISMS[name]
    s = a_sensitivity(radius=100.0, diameter=100.0)
    mechanism, sampler = make(0.5), SimulatedSampler(4)
    scores = np.array([0, 65, 30, -20], dtype=np.int64)
    picks = mechanism.event(s).picks
    draws = [np.atleast_1d(mechanism.release(scores, s, sampler)) for _ in range(8_000)]
    found = Counter(tuple(d.tolist()) for d in draws)
    scale = mechanism.event(s).scale
    assert order_test(found, peeled(scores, scale, picks)) > ALPHA
    for factor in WRONG:
        assert order_test(found, peeled(scores, scale * factor, picks)) < ALPHA


@pytest.mark.parametrize("name", MECHANISMS)
def test_no_noise_is_the_value_itself(name: str) -> None:
    make, _ = MECHANISMS[name]
    value = np.array([3, 9, -4, 1], dtype=np.int64)
    out = make(0.0).release(value, a_sensitivity(), ExactSampler())
    if name in ("gaussian", "laplace"):
        assert out.tolist() == [1.5, 4.5, -2.0, 0.5]
    else:
        assert np.atleast_1d(out).tolist() == [1, 0, 3][: 3 if name == "top" else 1]


@pytest.mark.parametrize("name", MECHANISMS)
@pytest.mark.parametrize("multiplier", [-1.0, math.inf, math.nan])
def test_multipliers_are_finite(name: str, multiplier: float) -> None:
    make, _ = MECHANISMS[name]
    with pytest.raises(InvalidInput, match="multiplier"):
        make(multiplier).event(a_sensitivity())


@pytest.mark.parametrize("name", MECHANISMS)
def test_head_room_is_refused_from_public_numbers(name: str) -> None:
    """OpenDP saturates at the ends of int64; ours never comes near."""
    make, _ = MECHANISMS[name]
    tight = a_sensitivity(radius=2.0**50, diameter=2.0**51, magnitude=2**61)
    make(2.0).event(tight)
    with pytest.raises(InvalidInput, match="too small"):
        make(2.0**7).event(tight)
    with pytest.raises(InvalidInput, match="too small"):
        make(2.0**20).event(tight)


def test_no_more_picks_than_scores() -> None:
    with pytest.raises(InvalidInput, match="pick"):
        NoisyTopK(1.0, 5).event(a_sensitivity())
    with pytest.raises(InvalidInput, match="picks"):
        NoisyTopK(1.0, 0)


# Labels


def buy(y: Any) -> list[Any]:
    """All labels that occur: without noise."""
    curator = Curator(np.zeros((len(y), 1)), y, budget=Budget(math.inf), classes=(), random_state=0)
    mechanism = StabilityHistogram(0.0, 1e-6)
    curator.open((Round(events=(mechanism.event(curator.problem.labels()),)),))
    return curator.everyone().labels(mechanism)


@pytest.mark.parametrize(
    ("value", "canonical"),
    [
        (-0.0, 0.0), (math.nan, None), (None, None), (np.float32("nan"), None), (np.int8(3), 3),
        (np.float32(0.5), 0.5), (np.str_("x"), "x"), (np.bool_(True), True), ("x", "x"), (2, 2),
        (np.datetime64("NaT"), None),
    ],
)  # fmt: skip
def test_canonical_labels(value: Any, canonical: Any) -> None:
    found = canonical_label(value)
    assert found == canonical
    if isinstance(found, float):
        assert math.copysign(1, found) == 1
    assert not isinstance(found, np.generic)


def test_missing_labels_are_no_labels() -> None:
    missing = [None, math.nan, float("nan"), np.float32("nan"), "a", "a"]
    assert buy(np.array(missing, dtype=object)) == ["a"]
    assert buy(np.array([math.nan, 1.0, -0.0, 0.0])) == [0.0, 1.0]


class Colour(str, enum.Enum):  # noqa: UP042  unlike a StrEnum it prints its name
    """Text that is equal to plain text and prints as something else."""

    RED = "red"


class Loud(str):
    """Text that shouts."""

    __slots__ = ()

    def __str__(self) -> str:
        return Loud(self.upper())


class Shouting:
    """No text, but it turns into some."""

    def __str__(self) -> str:
        return Loud("red")


@pytest.mark.parametrize("odd", [Colour.RED, Loud("red"), Shouting()])
def test_one_cell_of_a_class_of_its_own_changes_no_label(odd: Any) -> None:
    found = buy(np.array([odd, "red", "blue"], dtype=object))
    assert found == ["blue", "red"]
    assert {type(label) for label in found} == {str}


@pytest.mark.parametrize("odd", ["pandas NA", "array", "unprintable", "set", "tuple"])
def test_no_label_makes_the_purchase_fail(odd: str) -> None:
    """An error is a release: a strange cell is a strange label, or missing."""
    pandas = pytest.importorskip("pandas")

    class Unprintable:
        def __str__(self) -> str:
            raise ValueError("no")

        __repr__ = __str__

    y = np.empty(30, dtype=object)
    y[:] = "a"
    y[0] = {
        "pandas NA": pandas.NA, "array": np.array([1, 2]), "unprintable": Unprintable(),
        "set": {1, 2}, "tuple": (1, math.nan),
    }[odd]  # fmt: skip
    assert "a" in buy(y)
    labels = Labels(y, 30)
    labels.declare(("a",))
    assert np.isnan(labels.rows(slice(0, 30))[0])


@pytest.mark.parametrize("first", [1, 1.0, True, np.int8(1), np.float64(1.0)])
def test_equal_labels_of_different_types_are_one_label_of_one_type(first: Any) -> None:
    """Which of 1, 1.0 and True is released must not depend on who came first."""
    y = np.empty(50, dtype=object)
    y[:] = 1
    y[0] = first
    rest = np.empty(50, dtype=object)
    rest[:] = 1
    found, reference = buy(y), buy(rest)
    assert found == reference
    assert [type(v) for v in found] == [type(v) for v in reference]


# Noise whose size is private


@pytest.mark.parametrize("law", ["lognormal", "normal"])
def test_scaled_noise_of_both_samplers_has_one_law(law: str) -> None:
    """ALPHA a comparison; 2500 draws, since correct rounding takes half a millisecond each."""
    values, sizes = np.full(2500, 77, np.int64), np.full(2500, 3e9)

    def draw(sampler: Any, factor: float = 1.0) -> np.ndarray:
        if law == "normal":
            return sampler.scaled_normal(values, sizes, 2.5 * factor) - values
        return sampler.scaled_laplace_lognormal(values, sizes, 2.5 * factor, 0.4) - values

    exact, simulated = draw(ExactSampler()), draw(SimulatedSampler(3))
    assert stats.ks_2samp(exact, simulated).pvalue > ALPHA
    rng = np.random.default_rng(4)
    noise = rng.normal(size=100_000)
    if law == "lognormal":
        noise = rng.laplace(size=100_000) * np.exp(0.4 * rng.normal(size=100_000))
    assert stats.ks_2samp(exact, 7.5e9 * noise).pvalue > ALPHA
    for factor in WRONG:
        wrong = np.abs(7.5e9 * factor * noise)
        assert stats.ks_2samp(np.abs(exact), wrong).pvalue < ALPHA
        assert stats.ks_2samp(np.abs(simulated), wrong).pvalue < ALPHA
    assert abs(np.corrcoef(np.sign(exact[1:]), np.sign(exact[:-1]))[0, 1]) < 0.15


def test_scaled_noise_follows_the_size_of_each_entry() -> None:
    values, sizes = np.zeros(600, np.int64), np.repeat([0.0, 1e3, 1e9], 200)
    for sampler in (ExactSampler(), SimulatedSampler(1)):
        for noise in (
            sampler.scaled_normal(values, sizes, 1.0),
            sampler.scaled_laplace_lognormal(values, sizes, 1.0, 0.2),
        ):
            spread = [np.median(np.abs(part)) for part in noise.reshape(3, 200)]
            assert spread[0] == 0
            assert 1e5 < spread[2] / spread[1] < 1e7
            assert noise.dtype == np.int64


def test_scaled_noise_is_correctly_rounded(monkeypatch: pytest.MonkeyPatch) -> None:
    """The same bits through 100 digits of point arithmetic, also where they must be refined."""
    import mpmath as mp

    from privtail.trusted.mechanisms import samplers

    rng = np.random.default_rng(0)
    asked: list[bytes] = []

    def bits(count: int) -> bytes:
        asked.append(rng.bytes(count))
        return asked[-1]

    monkeypatch.setattr(samplers.os, "urandom", bits)
    for trial in range(60):
        asked.clear()
        value, size = int(rng.integers(-(2**60), 2**60)), float(rng.choice([0.7, 1e9, 2.0**58]))
        normal = trial % 2 == 0
        arguments = (np.array([value]), np.array([size]), 0.9)
        if normal:
            (found,) = ExactSampler().scaled_normal(*arguments)
        else:
            (found,) = ExactSampler().scaled_laplace_lognormal(*arguments, 0.3)
        count = 2 if normal else 4
        with mp.workdps(100):
            cells = [int.from_bytes(b"".join(asked[i::count]), "big") for i in range(count)]
            width = 8 * sum(map(len, asked[::count]))
            u = [(mp.mpf(k) + 0.5) / mp.mpf(2) ** width for k in cells]
            z = mp.sqrt(-2 * mp.log(u[-2])) * mp.cos(2 * mp.pi * u[-1])
            if not normal:
                z = mp.log(u[0] / u[1]) * mp.exp(mp.mpf(0.3) * z)
            exact = int(mp.nint(value + mp.mpf(size) * mp.mpf(0.9) * z))
        assert found == min(max(exact, -(2**62)), 2**62)
    asked.clear()
    (found,) = ExactSampler().scaled_normal(np.array([0]), np.array([2.0**200]), 1.0)
    assert abs(int(found)) == 2**62
    assert len(asked) > 2, "128 bits cannot place 2^200 among integers"


def test_zero_bits_are_refined(monkeypatch: pytest.MonkeyPatch) -> None:
    """A uniform variable below 2^-128 has an unbounded logarithm until more bits are there."""
    from privtail.trusted.mechanisms import samplers

    answers = [bytes(16), b"\x80" * 16, b"\x01" * 8, b"\x80" * 8]
    monkeypatch.setattr(samplers.os, "urandom", lambda count: answers.pop(0))
    (found,) = ExactSampler().scaled_normal(np.array([0]), np.array([1000.0]), 1.0)
    assert 1000 * 13 < abs(int(found)) < 1000 * 20
    assert answers == []


FIRST_DRAW = """
import numpy as np
from mpmath.libmp import libelefun
from privtail.trusted.mechanisms import samplers

found = []
for constant in (libelefun.pi_fixed, libelefun.ln2_fixed):
    (cell,) = constant.__closure__
    def watched(precision, honest=cell.cell_contents, **options):
        found.append(samplers._LOCK.locked())
        return honest(precision, **options)
    watched.memo_prec, watched.memo_val = -1, None
    cell.cell_contents = watched
samplers.ExactSampler().gaussian(np.zeros(1, np.int64), 9.0)
assert found and all(found), found
"""


def test_one_thread_at_a_time_finds_the_digits_of_constants() -> None:
    """mpmath stores a constant and its precision one after the other: two threads can mix them.

    A short pi of a high precision is zero for ever, and all noise of one sign.
    """
    subprocess.run([sys.executable, "-W", "ignore", "-c", FIRST_DRAW], check=True, timeout=120)
