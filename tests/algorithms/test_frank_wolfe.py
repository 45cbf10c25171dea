"""W19 Algorithms 2, 3 and 4 against their transcriptions and theorems 4, 5 and 6."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.optimize import minimize

from privtail.algorithms import FrankWolfe, FrankWolfeCorners, MirrorDescent
from privtail.algorithms.bregman import Entropy, Euclidean, PNorm
from privtail.algorithms.frank_wolfe import frank_wolfe_gap
from privtail.calibration import calibrate
from privtail.domains import (
    L1,
    Box,
    L1Ball,
    L2Ball,
    Simplex,
    Slopes,
    Unconstrained,
    within,
)
from privtail.errors import IncompatibleParts, InvalidInput
from privtail.trusted.accountants import cost
from privtail.trusted.budget import Budget
from privtail.trusted.problem import Problem


def mean_gradient(gradient, kind, x, X, y, force):
    """1/n of the sum of the records' gradients, each forced onto its range."""
    return sum(force(gradient(kind, x, X[i], y[i])) for i in range(len(X))) / len(X)


def clip(G):
    return lambda g: g / max(1.0, np.linalg.norm(g) / G)


def l2_vertex(g, radius):
    return -radius * g / np.linalg.norm(g)


def l1_corners(shape, radius):
    size = math.prod(shape)
    axes = radius * np.eye(size).reshape(size, *shape)
    return [*axes, *-axes]


def simplex_corners(shape, radius):
    return l1_corners(shape, radius)[: math.prod(shape)]


def box_vertex(g, low, high):
    return np.where(g > 0, low, high)


def best_corner(corners):
    return lambda g: max(corners(g.shape, 1.5), key=lambda v: np.sum(v * -g))


def fw_l2(gradient, kind, X, y, *, start, T, gamma, G, vertex, noise, R):
    """W19 Algorithm 2."""
    x = [start]
    for t in range(T - 1):
        g = mean_gradient(gradient, kind, x[t], X, y, clip(G)) + noise[t]
        v = vertex(g)
        x.append(x[t] + gamma * (v - x[t]))
    return x[R]


@pytest.mark.parametrize(
    ("domain", "vertex"),
    [
        (L2Ball(radius=1.5), lambda g: l2_vertex(g, 1.5)),
        (L1Ball(radius=1.5), best_corner(l1_corners)),
        (Simplex(radius=1.5), best_corner(simplex_corners)),
        (Box(low=-0.5, high=1.0), lambda g: box_vertex(g, -0.5, 1.0)),
    ],
    ids=["l2", "l1", "simplex", "box"],
)
def test_algorithm_2(watched, case, gradient, domain, vertex):
    X, y, loss = case.records()
    algorithm = FrankWolfe(steps=6, step_size=0.3, threshold=1.5)
    w = watched.fit(algorithm, case.stored(X), y, loss, domain=domain, epsilon=20.0)
    expected = fw_l2(
        gradient, case.kind, X, y, start=domain.project(np.zeros(w.shape)), T=6, gamma=0.3,
        G=1.5, vertex=vertex, noise=[z.reshape(w.shape) for z in watched.noise],
        R=watched.picks[0],
    )  # fmt: skip
    assert np.abs(w - expected).max() < 1e-6
    assert watched.result.steps == len(watched.noise) == 5
    assert domain.value(w) == 0


def fw_l1(gradient, kind, X, y, *, start, T, gamma, G, corners, gumbels, R):
    """W19 Algorithm 4: line 2 by the law of the exponential mechanism, a maximum under Gumbel."""
    x = [start]
    for t in range(T - 1):
        g = mean_gradient(gradient, kind, x[t], X, y, lambda v: np.clip(v, -G, G))
        scores = [np.sum(-v * g) for v in corners]
        v = corners[int(np.argmax(np.array(scores) + gumbels[t]))]
        x.append((1 - gamma) * x[t] + gamma * v)
    return x[R]


@pytest.mark.parametrize("domain", [L1Ball(radius=1.5), Simplex(radius=1.5)], ids=["l1", "simplex"])
def test_algorithm_4(watched, case, gradient, domain):
    X, y, loss = case.records()
    algorithm = FrankWolfeCorners(steps=8, step_size=0.3, threshold=1.2)
    w = watched.fit(algorithm, case.stored(X), y, loss, domain=domain, epsilon=20.0)
    corners = (l1_corners if isinstance(domain, L1Ball) else simplex_corners)(w.shape, 1.5)
    # Our scores are those of unit corners.
    expected = fw_l1(
        gradient, case.kind, X, y, start=domain.project(np.zeros(w.shape)), T=8, gamma=0.3,
        G=1.2, corners=corners, gumbels=[1.5 * z for z in watched.noise], R=watched.picks[0],
    )  # fmt: skip
    assert np.abs(w - expected).max() < 1e-6
    assert all(len(z) == len(corners) for z in watched.noise)
    assert domain.value(w) == 0


def bregman(h, slope):
    return lambda u, x: h(u) - h(x) - np.sum(slope(x) * (u - x))


def pnorm(p):
    def h(x):
        return np.sum(np.abs(x) ** p) ** (2 / p) / (2 * (p - 1))

    def slope(x):
        norm = np.sum(np.abs(x) ** p) ** (1 / p)
        if norm == 0:
            return np.zeros_like(x)
        return np.sign(x) * np.abs(x) ** (p - 1) * norm ** (2 - p) / (p - 1)

    return bregman(h, slope)


def entropy(radius):
    return bregman(
        lambda x: radius * np.sum(x * np.log(np.maximum(x, 1e-300))),
        lambda x: radius * (np.log(np.maximum(x, 1e-300)) + 1),
    )


EUCLIDEAN = bregman(lambda x: np.sum(x**2) / 2, lambda x: x)
GEOMETRIES = {
    "euclidean": (Euclidean(), L1Ball(radius=0.7), EUCLIDEAN),
    "entropy": (Entropy(), Simplex(radius=0.7), entropy(0.7)),
    "p-norm": (PNorm(1.4), L1Ball(radius=0.7), pnorm(1.4)),
    "penalised": (PNorm(1.4), within(L1(alpha=0.3), L1Ball(radius=0.7)), pnorm(1.4)),
}  # fmt: skip


@pytest.mark.parametrize("name", GEOMETRIES)
@pytest.mark.parametrize("shape", [(3, 1), (2, 3), (1, 1)])
@pytest.mark.parametrize("size", [0.1, 1.0, 30.0])
def test_a_bregman_step_is_the_minimiser(name, shape, size):
    """Against a general solver in u = a - b, a and b >= 0, and against points around it."""
    geometry, domain, V = GEOMETRIES[name]
    rng = np.random.default_rng(1)
    x = domain.prox(0.2 * np.abs(rng.normal(size=shape)) + 0.01, 0.0)
    g, gamma = size * rng.normal(size=shape), 0.4
    u = geometry.step(domain, x, g, gamma)
    assert u.shape == shape
    assert domain.value(u) < math.inf

    def objective(v):
        return np.sum(g * v) + V(v, x) / gamma + domain.value(v)

    for t in (1e-3, 1e-2, 0.1, 1.0):
        for _ in range(50):
            other = domain.prox(u + t * rng.normal(size=shape), 0.0)
            other = other if not isinstance(domain, Simplex) else np.maximum(other, 0)
            if domain.value(other) < math.inf:
                assert objective(u) <= objective(other) + 1e-9

    n, simplex = u.size, isinstance(domain, Simplex)
    alpha = 0.3 if name == "penalised" else 0.0

    def smooth(ab):
        v = (ab[:n] - ab[n:]).reshape(shape)
        return np.sum(g * v) + V(v, x) / gamma + alpha * ab.sum()

    start = np.concatenate([np.maximum(x.ravel(), 1e-9), np.full(n, 0 if simplex else 1e-9)])
    found = minimize(
        smooth, start, bounds=[(0, None)] * n + [(0, 0 if simplex else None)] * n,
        constraints={"type": "eq" if simplex else "ineq", "fun": lambda ab: 0.7 - ab.sum()},
        method="SLSQP", options={"ftol": 1e-13, "maxiter": 500},
    )  # fmt: skip
    assert smooth(np.concatenate([np.maximum(u, 0).ravel(), np.maximum(-u, 0).ravel()])) <= (
        found.fun + 1e-8
    )


@pytest.mark.parametrize("name", GEOMETRIES)
def test_algorithm_3(watched, case, gradient, name):
    geometry, domain, _ = GEOMETRIES[name]
    X, y, loss = case.records()
    algorithm = MirrorDescent(steps=5, step_size=0.3, threshold=1.5, geometry=geometry)
    w = watched.fit(algorithm, case.stored(X), y, loss, domain=domain, epsilon=20.0)
    x = [domain.prox(np.zeros(w.shape), 0.0)]
    for k in range(4):
        g = mean_gradient(gradient, case.kind, x[k], X, y, clip(1.5))
        x.append(geometry.step(domain, x[k], g + watched.noise[k].reshape(w.shape), 0.3))
    assert np.abs(w - x[watched.picks[0]]).max() < 1e-6
    assert watched.result.steps == len(watched.noise) == 4


def test_euclidean_mirror_descent_keeps_an_intercept_and_the_others_refuse_it(
    watched, make_problem
):
    X, y, loss = make_problem("squared")
    algorithm = MirrorDescent(steps=4, step_size=0.3, threshold=1.5)
    assert watched.fit(algorithm, X, y, loss, intercept=True).shape == (4, 1)
    for geometry, inner in ((PNorm(1.5), L1Ball(radius=1.0)), (Entropy(), Simplex())):
        with pytest.raises(IncompatibleParts, match=type(geometry).__name__):
            geometry.check(Slopes(domain=inner))
        with pytest.raises(IncompatibleParts):
            geometry.check(Unconstrained())
        geometry.check(inner)
    with pytest.raises(InvalidInput, match="p must lie"):
        PNorm(1.0)
    assert PNorm.sharp(1000).p == pytest.approx(1 + 1 / math.log(1000))
    assert PNorm.sharp(1).p == 2


def test_unequal_corners_are_refused(watched, make_problem):
    X, y, loss = make_problem("squared")
    scaled = L1Ball(radius=1.0).scaled([1.0, 2.0, 3.0])
    with pytest.raises(IncompatibleParts, match="different lengths"):
        watched.fit(
            FrankWolfeCorners(steps=4, step_size=0.3, threshold=1.2), X, y, loss, domain=scaled
        )
    assert L1Ball(radius=1.0).scaled([2.0, 2.0]).axes(2) == (0.5, True)
    assert Simplex(radius=3.0).axes(2) == (3.0, False)


def test_the_frank_wolfe_gap():
    """0 at a constrained minimum, and max over the corners of <v - w, -g>."""
    ball, g = L1Ball(radius=1.0), np.array([[3.0], [-1.0]])
    w = np.array([[0.25], [0.5]])
    corners = l1_corners((2, 1), 1.0)
    assert frank_wolfe_gap(ball, w, g) == pytest.approx(max(np.sum((v - w) * -g) for v in corners))
    assert frank_wolfe_gap(ball, np.array([[-1.0], [0.0]]), g) == 0
    with pytest.raises(IncompatibleParts):
        frank_wolfe_gap(Unconstrained(), w, g)


def test_without_privacy_the_gap_goes_down(watched, make_problem):
    X, y, loss = make_problem("squared", 200, 3)
    X = np.clip(X, -3, 3)
    ball = L1Ball(radius=0.8)
    start = ball.project(np.zeros((3, 1)))
    for algorithm in (
        FrankWolfe(steps=400, step_size=0.01, threshold=math.inf),
        FrankWolfeCorners(steps=400, step_size=0.01, threshold=1e4),
    ):
        best = math.inf
        for seed in range(6):
            w = watched.fit(algorithm, X, y, loss, domain=ball, epsilon=math.inf, seed=seed)
            best = min(best, frank_wolfe_gap(ball, w, X.T @ (X @ w - y[:, None]) / 200))
        first = frank_wolfe_gap(ball, start, X.T @ (X @ start - y[:, None]) / 200)
        assert best < 0.05 * first


def test_the_scores_move_by_two_thresholds_and_cost_an_eighth_of_eta_squared():
    """Delta = 2 |C|_1 G/n: eta = 2 Delta/b and rho = eta^2/8 a step."""
    n, G, m, T = 1000, 1.5, 300.0, 9
    algorithm = FrankWolfeCorners(steps=T, step_size=0.1, threshold=G)
    problem = Problem(n=n, d=4)
    (r,) = algorithm.plan(m, problem)
    (event,) = r.events
    assert (r.times, event.coordinates, event.picks) == (T - 1, 8, 1)
    assert event.diameter * event.unit == pytest.approx(2 * G / n)
    eta = 2 * event.diameter / event.scale
    assert cost((r,), "replace_one").rho == pytest.approx((T - 1) * eta**2 / 8)


def test_a_quarter_of_the_noise_of_lemma_1():
    """eps_0 = eps / sqrt(8 T log(1/delta)) (lemma 1) against that of bounded range."""
    n, T, epsilon, delta = 10_000, 101, 0.5, 1e-5
    algorithm = FrankWolfeCorners(steps=T, step_size=0.1, threshold=1.0)
    problem = Problem(n=n, d=20)
    m = calibrate(lambda m: algorithm.plan(m, problem), Budget(epsilon, delta))
    lemma = epsilon / math.sqrt(8 * (T - 1) * math.log(1 / delta))
    printed = 2 * 2 / lemma  # scale 2 Delta / eps_0 in units of the radius, Delta = 2 radii
    assert 4 < printed / m < 5.1


@pytest.mark.parametrize("epsilon", [0.1, 1.0])
def test_theorems_4_5_and_6(epsilon):
    n, d, delta, G, L, R = 100_000, 10, 1e-5, 1.5, 4.0, 2.0
    width = R * math.sqrt(2 * math.log(2 * d))
    spread = (R**2 + width**2) * math.log(1 / delta)
    budget = Budget(epsilon, delta)

    four = FrankWolfe.from_theory(n, budget, lipschitz=G, norm=R, width=width)
    assert four.steps == math.ceil(n * epsilon / math.sqrt(spread))
    assert four.step_size == pytest.approx(spread**0.25 / (R * math.sqrt(n * epsilon)))

    five = MirrorDescent.from_theory(
        n, budget, curvature=L, lipschitz=G, norm=R, width=width, geometry=PNorm.sharp(d)
    )
    assert five.steps == math.ceil(n * epsilon * R / math.sqrt(spread))
    assert five.step_size == 1 / (2 * L * R**2)
    assert five.geometry == PNorm.sharp(d)

    six = FrankWolfeCorners.from_theory(n, d, budget, lipschitz=G, norm=R)
    logs = math.sqrt(math.log(1 / delta)) * math.log(2 * d * n / 0.05)
    assert six.steps == math.ceil(n * epsilon / logs)
    assert six.step_size == pytest.approx(math.sqrt(2 / (six.steps * R**2)))
    assert all(a.threshold == G and a.step_size < 1 for a in (four, five, six))
