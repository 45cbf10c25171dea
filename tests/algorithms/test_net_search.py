"""W22 Algorithms 1 and 2 against the corrected boxes and theorems 1 and 2."""

from __future__ import annotations

import math

import numpy as np
import pytest

from privtail.algorithms import NetSearch
from privtail.calibration import calibrate, calibrated
from privtail.domains import Box, L1Ball, L2Ball, Unconstrained
from privtail.errors import IncompatibleParts, InvalidInput
from privtail.losses import AbsoluteLoss, LogTruncatedLoss, SquaredLoss
from privtail.trusted.accountants import cost
from privtail.trusted.budget import Budget
from privtail.trusted.curator import Curator
from privtail.trusted.problem import Problem


def psi(a, theta):
    """Equations 6 and 16."""
    if a < 0:
        return -psi(-a, theta)
    return -math.log(1 - a + a**theta / theta) if a <= 1 else math.log(theta)


def risk(w, X, y, iota, theta):
    """Equation 2."""
    return sum(psi(iota * abs(y[i] - X[i] @ w), theta) for i in range(len(X))) / (len(X) * iota)


def box(net, X, y, *, iota, theta, gumbel):
    """Lines 1 and 2: the exponential mechanism as a maximum under Gumbel noise."""
    scores = [-risk(w, X, y, iota, theta) for w in net]
    return net[int(np.argmax(np.array(scores) + gumbel))], scores


@pytest.mark.parametrize("theta", [2.0, 1.5, 1.1])
@pytest.mark.parametrize("d", [1, 2, 3, 5])
@pytest.mark.parametrize(
    "domain", [L2Ball(radius=1.5), L1Ball(radius=1.5), Box(low=-1.0, high=1.5)]
)
def test_the_boxes(watched, make_problem, domain, d, theta, monkeypatch):
    X, y, _ = make_problem("squared", 60, d)
    algorithm = NetSearch(points=80, scale=0.4, order=theta)
    nets = []
    scatter = type(domain).scatter
    monkeypatch.setattr(
        type(domain), "scatter", lambda self, u: nets.append(scatter(self, u)) or nets[-1]
    )
    w = watched.fit(algorithm, X, y, AbsoluteLoss(), domain=domain, epsilon=2.0, delta=0.0)
    net = nets[0] if d > 3 else domain.net(80, d).points
    assert bool(nets) == (d > 3)
    expected, _ = box(net, X, y, iota=0.4, theta=theta, gumbel=watched.noise[0])
    assert np.array_equal(w[:, 0], expected)
    assert max(domain.value(v) for v in net) == 0
    assert watched.result.steps == 1


@pytest.mark.parametrize("theta", [2.0, 1.5, 1.1])
@pytest.mark.parametrize("iota", [0.02, 1.0, 30.0])
def test_scores_are_the_truncated_risk(theta, iota):
    """Within 1e-6 of the formula, although no logarithm is taken."""
    rng = np.random.default_rng(0)
    r = np.concatenate([np.linspace(-2, 2, 40_001), rng.standard_cauchy(2000), [0, 1, -1]]) / iota
    loss = LogTruncatedLoss(scale=iota, order=theta)
    values = loss.values(r[:, None], np.zeros(len(r)))
    exact = np.array([psi(iota * abs(v), theta) for v in r]) / iota
    assert np.abs(values - exact).max() < (4e-9 if theta == 2 else 1e-6) / iota
    assert values.min() == 0
    assert values.max() == pytest.approx(loss.bound)
    h = 1e-6 / iota
    numeric = [(psi(iota * abs(v + h), theta) - psi(iota * abs(v - h), theta)) / (2 * h) for v in r]
    away = (np.abs(r) > 0.01 / iota) & (np.abs(np.abs(r) * iota - 1) > 1e-3)
    derivatives = loss.derivatives(r[:, None], np.zeros(len(r)))[:, 0]
    assert np.abs(derivatives - np.array(numeric) / iota)[away].max() < 1e-5
    assert np.abs(derivatives).max() <= loss.lipschitz
    whole = loss.values(r[:, None], np.ones(len(r)))
    for i in (0, 7, 41_000):
        assert loss.values(r[i : i + 1, None], np.ones(1))[0] == whole[i]
    hostile = np.array([np.nan, np.inf, -np.inf, 1e308, -1e308])
    with np.errstate(all="raise"):
        assert np.all(loss.values(hostile[:, None], -hostile) <= loss.bound * (1 + 1e-15))
        loss.derivatives(hostile[:, None], -hostile)


def test_a_truncated_loss_has_its_range():
    for arguments in ({"scale": 0.0}, {"scale": 1.0, "order": 1.0}, {"scale": 1.0, "order": 2.5}):
        with pytest.raises(InvalidInput):
            LogTruncatedLoss(**arguments)


def probabilities(scores, exponent):
    weights = np.exp(exponent * (np.array(scores) - max(scores)))
    return weights / weights.sum()


@pytest.mark.parametrize("theta", [2.0, 1.5])
def test_the_printed_exponent_is_two_epsilon_and_ours_is_epsilon(theta):
    """21 records, net {0, 1}, x = 1: one label moves from far below to far above.

    See docs/mathematics.md#printed-noise.
    """
    n, iota, epsilon, net = 21, 1.0, 1.0, [np.zeros(1), np.ones(1)]
    X = np.ones((n, 1))
    worst = {"printed": 0.0, "ours": 0.0}
    for k in range(n):
        laws = []
        for first in (0.0, 1.0):
            y = np.where(np.arange(n) < k, 1.0, 0.0)
            y[-1] = first
            _, scores = box(net, X, y, iota=iota, theta=theta, gumbel=0.0)
            printed = n * iota * epsilon / math.log(theta)
            laws.append([probabilities(scores, printed), probabilities(scores, printed / 2)])
        for i, name in enumerate(worst):
            ratio = np.abs(np.log(laws[0][i] / laws[1][i])).max()
            worst[name] = max(worst[name], float(ratio))
    assert 1.5 * epsilon < worst["printed"] <= 2 * epsilon + 1e-9
    assert worst["ours"] <= epsilon
    if theta == 2.0:
        assert worst["printed"] == pytest.approx(2.0, abs=0.001)


@pytest.mark.parametrize(("neighbours", "factor"), [("replace_one", 2.0), ("zero_out", 1.0)])
def test_the_exponent_follows_from_the_bill(neighbours, factor):
    """Delta = log(theta)/(n iota); Gumbel scale 2 Delta/eps, or Delta/eps under zero-out."""
    n, iota, epsilon = 500, 0.3, 0.7
    algorithm = NetSearch(points=40, scale=iota, order=1.4)
    problem = Problem(n=n, d=2)
    m = calibrate(lambda m: algorithm.plan(m, problem), Budget(epsilon, 0.0, neighbours))
    ((event,),) = [r.events for r in algorithm.plan(m, problem)]
    delta = math.log(1.4) / (n * iota)
    assert event.diameter * event.unit == pytest.approx(delta)
    assert event.scale * event.unit == pytest.approx(factor * delta / epsilon, rel=1e-5)
    assert cost(algorithm.plan(m, problem), neighbours).epsilon(0.0) <= epsilon


def test_lattices_cover_their_set():
    """Every point of the set has a candidate within the stated spacing, also after scaling."""
    rng = np.random.default_rng(1)
    for d in (1, 2, 3):
        scales = np.arange(1.0, d + 1)
        for domain in (
            L2Ball(radius=1.5), L1Ball(radius=0.7), Box(low=-0.5, high=[1.0, 2.0, 3.0][:d]),
            L2Ball(radius=1.5).scaled(scales), L1Ball(radius=0.7).scaled(scales),
        ):  # fmt: skip
            for most in (1, 7, 300):
                net = domain.net(most, d)
                assert 1 <= len(net.points) <= most
                assert max(domain.value(v) for v in net.points) == 0
                inside = np.array([domain.project(3 * rng.normal(size=d)) for _ in range(300)])
                inside[:150] *= rng.uniform(size=(150, 1)) if not isinstance(domain, Box) else 1
                distances = np.linalg.norm(inside[:, None] - net.points[None], axis=2).min(axis=1)
                assert distances.max() <= net.spacing * (1 + 1e-9)
    with pytest.raises(InvalidInput, match="at least one point"):
        L2Ball(radius=1.0).net(0, 2)


def test_scattered_points_are_uniform(rng):
    """Kolmogorov and Smirnov on the gauge: P(gauge <= t) = t^d in a ball."""
    from scipy import stats

    u = rng.uniform(size=(20_000, 6))
    for domain, gauge in (
        (L2Ball(radius=1.5), lambda p: np.linalg.norm(p, axis=1) / 1.5),
        (L1Ball(radius=0.7), lambda p: np.abs(p).sum(axis=1) / 0.7),
        (Box(low=-1.0, high=1.0), lambda p: np.abs(p).max(axis=1)),
    ):
        points = domain.scatter(u)
        assert points.shape == (20_000, 5)
        assert gauge(points).max() <= 1
        assert stats.kstest(gauge(points) ** 5, stats.uniform.cdf).pvalue > 1e-4
        assert abs(points.mean()) < 0.01
    scaled = L1Ball(radius=0.7).scaled(np.arange(1.0, 6.0))
    assert max(scaled.value(v) for v in scaled.scatter(u)[:500]) == 0


def test_the_price_of_random_points(rng):
    """R (log(1/eta)/N)^(1/d) to an inner point, with probability 1 - eta."""
    d, N, eta = 6, 2000, 0.05
    target = np.full(d, 0.1)
    price = (math.log(1 / eta) / N) ** (1 / d)
    missed = 0
    for _ in range(200):
        points = L2Ball(radius=1.0).scatter(rng.uniform(size=(N, d + 1)))
        missed += np.linalg.norm(points - target, axis=1).min() > price
    assert missed <= 25  # a binomial of 200 and .05 exceeds it once in 3e5
    assert (math.log(20) / 1e5) ** (1 / 10) == pytest.approx(0.35, abs=0.005)


def test_nets_that_do_not_fit_are_refused_with_numbers():
    budget, n = Budget(1.0), 100_000
    with pytest.raises(InvalidInput, match=r"2\.16e\+17 points in 3 .* GB .* hours .* spacing="):
        NetSearch.from_theory(n, 3, budget, moment=1.0)
    spacing = 6 / 2e6 ** (1 / 3)
    found = NetSearch.from_theory(n, 3, budget, moment=1.0, spacing=spacing)
    assert found.points == pytest.approx(2e6, rel=1e-3)
    found.plan(1.0, Problem(n=n, d=3))
    for points, n, d in ((3_000_000, 1000, 3), (100_000, 1000, 1000), (10_000, 10**9, 3)):
        search = NetSearch(points=points, scale=1.0)
        with pytest.raises(InvalidInput, match=f"for {n} rows.*take points=") as refusal:
            search.plan(1.0, Problem(n=n, d=d))
        instead = int(str(refusal.value).split("points=")[1].split()[0])
        NetSearch(points=instead, scale=1.0).plan(1.0, Problem(n=n, d=d))


def test_what_does_not_fit_is_refused(watched, make_problem):
    X, y, _ = make_problem("squared")
    curator = Curator(X, y, budget=Budget(1.0), noise="simulated")
    algorithm = NetSearch(points=10, scale=1.0)
    m = calibrated(curator, lambda m: algorithm.plan(m, curator.problem))
    with pytest.raises(IncompatibleParts, match="AbsoluteLoss"):
        algorithm.run(curator, SquaredLoss(), L2Ball(radius=1.0), m)
    with pytest.raises(IncompatibleParts, match="Unconstrained has no `net`"):
        algorithm.run(curator, AbsoluteLoss(), Unconstrained(), m)


@pytest.mark.parametrize("epsilon", [0.1, 1.0])
@pytest.mark.parametrize("moment_of", ["norm", "coordinates"])
def test_theorems_1_and_2(epsilon, moment_of):
    n, d, tau, eta, diameter = 100_000, 2, 1.7, 0.05, 3.0
    factor = d if moment_of == "norm" else 1
    for theta in (2.0, 1.4):
        found = NetSearch.from_theory(
            n, d, Budget(epsilon), moment=tau, order=theta, moment_of=moment_of,
            diameter=diameter, spacing=0.02,
        )  # fmt: skip
        logs = factor * math.log(n) * math.log(1 / eta)
        assert found.scale == pytest.approx((logs / (n * epsilon)) ** (1 / theta) / tau)
        assert found.points == math.ceil((3 * diameter / 0.02) ** d)
        assert found.order == theta
    one = NetSearch.from_theory(1000, 1, Budget(epsilon), moment=tau)
    assert one.points == 3 * 2 * 1000
    with pytest.raises(InvalidInput, match="finite"):
        NetSearch.from_theory(n, d, Budget(math.inf), moment=tau)


def test_it_finds_the_line(watched):
    """n = 20,000, heavy tails in features and noise, epsilon = 1, pure: within a few spacings."""
    rng = np.random.default_rng(2)
    X, w = rng.standard_t(2.5, (20_000, 2)), np.array([0.8, -0.5])
    y = X @ w + rng.standard_t(2.1, 20_000)
    algorithm = NetSearch(points=3000, scale=0.1)
    ball = L2Ball(radius=1.5)
    found = watched.fit(algorithm, X, y, AbsoluteLoss(), domain=ball, epsilon=1.0, delta=0.0)
    assert np.linalg.norm(found[:, 0] - w) < 3 * ball.net(3000, 2).spacing < 0.2
