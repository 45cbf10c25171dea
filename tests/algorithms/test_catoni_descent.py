"""W20 Algorithm 4 against its transcription, its theorems and docs/mathematics.md#catoni."""

from __future__ import annotations

import math

import mpmath as mp
import numpy as np
import pytest

from privtail.algorithms import CatoniDescent
from privtail.domains import L2, L1Ball, L2Ball, Unconstrained
from privtail.errors import InvalidInput
from privtail.influence import catoni_bound
from privtail.losses import SquaredLoss
from privtail.trusted.accountants import cost
from privtail.trusted.budget import Budget
from privtail.trusted.problem import Problem
from privtail.trusted.sampling import Everyone, PoissonBatches


def box(gradient, catoni, kind, X, y, *, T, eta, s, beta, project, noise, batches, m):
    """W20 Algorithm 4; the batch variant of its experiments divides by the expected size m."""
    w = np.zeros_like(noise[0])
    for t in range(T):
        g = np.zeros_like(w)
        for i in batches[t]:
            grad = gradient(kind, w, X[i], y[i])
            for j in range(g.shape[0]):
                for k in range(g.shape[1]):
                    g[j, k] += s / m * catoni(grad[j, k] / s, beta)
        w = project(w - eta * (g + noise[t]))
    return w


def l2_ball(w, radius=0.6):
    return w * min(1.0, radius / np.linalg.norm(w))


def l1_ball(w, radius=0.7):
    """Bisection on the threshold of soft thresholding."""
    if np.abs(w).sum() <= radius:
        return w
    low, high = 0.0, np.abs(w).max()
    for _ in range(200):
        middle = (low + high) / 2
        inside = np.maximum(np.abs(w) - middle, 0).sum() <= radius
        low, high = (low, middle) if inside else (middle, high)
    return np.sign(w) * np.maximum(np.abs(w) - high, 0)


@pytest.mark.parametrize(
    ("domain", "projection"),
    [
        (Unconstrained(), lambda w: w),
        (L2Ball(radius=0.6), l2_ball),
        (L1Ball(radius=0.7), l1_ball),
        (L2(alpha=0.5), lambda w: w / (1 + 0.2 * 0.5)),
    ],
    ids=["free", "l2", "l1", "ridge"],
)
def test_the_box(watched, case, gradient, catoni, keep_slopes, domain, projection):
    X, y, loss = case.records()
    algorithm = CatoniDescent(steps=3, step_size=0.2, scale=2.0, smoothing=3.0)
    w = watched.fit(
        algorithm, case.stored(X), y, loss, domain=domain, intercept=case.intercept, epsilon=20.0
    )
    expected = box(
        gradient, catoni, case.kind, case.rows(X), y, T=3, eta=0.2, s=2.0, beta=3.0,
        project=lambda v: keep_slopes(case, v, projection),
        noise=[z.reshape(w.shape) for z in watched.noise], batches=watched.batches, m=len(X),
    )  # fmt: skip
    assert np.abs(w - expected).max() < 1e-6
    assert watched.result.steps == len(watched.noise) == 3


def test_the_stochastic_variant_divides_by_the_expected_size(
    watched, make_problem, gradient, catoni
):
    X, y, loss = make_problem("squared", 50, 1)
    algorithm = CatoniDescent(
        steps=3, step_size=0.2, scale=2.0, smoothing=3.0, sampling=PoissonBatches(0.25)
    )
    w = watched.fit(algorithm, X, y, loss, epsilon=8.0)
    sizes = {len(b) for b in watched.batches}
    assert len(sizes) > 1
    expected = box(
        gradient, catoni, "squared", X, y, T=3, eta=0.2, s=2.0, beta=3.0, project=lambda v: v,
        noise=[z.reshape(w.shape) for z in watched.noise], batches=watched.batches, m=12.5,
    )  # fmt: skip
    assert np.abs(w - expected).max() < 1e-6


@pytest.mark.parametrize("a", [-7.0, -0.4, 1e-3, 0.9, 2.5, 40.0])
def test_the_closed_form_of_the_transcription_is_the_expectation(catoni, a):
    """The closed form is that of Holland 2019; this is what it has to equal."""
    beta, c = 3.0, 2 * mp.sqrt(2) / 3

    def phi(u):
        return u - u**3 / 6 if abs(u) <= mp.sqrt(2) else c * mp.sign(u)

    def integrand(eta):
        return phi(a * (1 + eta / mp.sqrt(beta))) * mp.npdf(eta)

    corners = [mp.sqrt(beta) * (r / a - 1) for r in (-mp.sqrt(2), mp.sqrt(2))]
    cuts = sorted([-12, -3, -1, 0, 1, 3, 12, *(x for x in corners if abs(x) < 12)])
    assert abs(mp.quad(integrand, cuts) - catoni(a, beta)) < 1e-9


def rho(epsilon, delta):
    return (math.sqrt(math.log(1 / delta) + epsilon) - math.sqrt(math.log(1 / delta))) ** 2


@pytest.mark.parametrize("epsilon", [0.1, 1.0])
def test_theorem_7(epsilon):
    n, d, v, beta, alpha, failure = 100_000, 10, 5.0, 2.0, 0.5, 0.01
    found = CatoniDescent.from_theory(
        n, d, Budget(epsilon, 1e-5), second_moment=v, curvature=beta, strong_convexity=alpha,
        failure_probability=failure, scale="paper",
    )  # fmt: skip
    assert found.steps == math.ceil(beta / alpha * math.log(n)) == 47
    assert found.step_size == 1 / beta
    assert found.smoothing == pytest.approx(math.log(1 / failure))
    assert found.scale == pytest.approx(math.sqrt(n * v / (2 * math.log(1 / failure))))


@pytest.mark.parametrize("epsilon", [0.1, 1.0])
def test_theorem_8(epsilon):
    n, d, delta = 100_000, 10, 1e-5
    found = CatoniDescent.from_theory(
        n, d, Budget(epsilon, delta), second_moment=5.0, curvature=2.0, distance=3.0
    )
    steps = (3.0 * math.sqrt(n) * math.sqrt(rho(epsilon, delta)) / d) ** (2 / 3)
    assert found.steps == math.ceil(steps)
    assert 1 <= found.steps <= 1000
    assert 1 < found.scale < 289


def per_coordinate_noise(algorithm, n, d, budget):
    """Standard deviation of the noise of one coordinate, as calibrated by the accountant."""
    from privtail.calibration import calibrate

    problem = Problem(n=n, d=d)
    answer = problem.gradient(algorithm.mean)
    multiplier = calibrate(lambda m: algorithm.plan(m, problem), budget)
    return multiplier * answer.radius.l2 * answer.unit


def test_the_worked_numbers_of_the_balance():
    """v=5, n=1e5, d=10, T=50, (1, 1e-5): s=289 is noise .60 as printed, s*=40 is .083."""
    n, d, T, v, budget = 100_000, 10, 50, 5.0, Budget(1.0, 1e-5)
    rate = 49.9 / math.log(n)
    settings = {"second_moment": v, "curvature": rate, "strong_convexity": 1.0}
    paper = CatoniDescent.from_theory(n, d, budget, **settings, scale="paper")
    private = CatoniDescent.from_theory(n, d, budget, **settings)
    assert paper.steps == private.steps == T
    log_failure, zcdp = math.log(20), rho(1.0, 1e-5)

    assert paper.scale == pytest.approx(289, abs=0.5)
    printed = math.sqrt(8 * v * d * T / (9 * log_failure * n * zcdp))
    assert printed == pytest.approx(0.60, abs=0.005)
    kappa = 4 * math.sqrt(2) * math.sqrt(d * T) / (3 * n * math.sqrt(2 * zcdp))
    assert kappa * paper.scale == pytest.approx(printed)

    # s* minimises bias + noise of the printed calibration.
    def error(s):
        return v / (2 * s) * (1 + 1 / log_failure) + kappa * s

    assert private.scale == pytest.approx(40, abs=0.5)
    assert kappa * private.scale == pytest.approx(0.083, abs=5e-4)
    assert error(private.scale) <= min(error(private.scale * f) for f in (0.99, 1.01))

    # The exact accountant and c_beta need less noise than the printed calibration.
    ours = per_coordinate_noise(private, n, d, budget)
    gain = catoni_bound(log_failure) / (2 * math.sqrt(2) / 3)
    assert gain == pytest.approx(0.917, abs=1e-3)
    assert ours == pytest.approx(0.0565, abs=2e-3)
    assert ours < gain * kappa * private.scale


@pytest.mark.parametrize("strong", [0.5, None], ids=["theorem 7", "theorem 8"])
@pytest.mark.parametrize("batch", [None, 2_000], ids=["full", "batches"])
def test_the_private_scale_has_the_smaller_error(watched, strong, batch):
    """Simulated, lognormal errors: s* against the s of line 1, all else equal, three seeds each."""
    n, d, budget = 20_000, 5, Budget(0.5, 1e-5)
    rng = np.random.default_rng(0)
    X, w = rng.normal(size=(n, d)), np.full(d, 0.4)
    y = X @ w + rng.lognormal(size=n) - math.exp(0.5)
    errors = {}
    for scale in ("private", "paper"):
        algorithm = CatoniDescent.from_theory(
            n, d, budget, second_moment=5.0, curvature=2.0, strong_convexity=strong, scale=scale,
            batch=batch,
        )  # fmt: skip
        found = [
            watched.fit(algorithm, X, y, SquaredLoss(), epsilon=0.5, seed=seed)[:, 0]
            for seed in range(3)
        ]
        errors[scale] = np.mean([np.linalg.norm(v - w) for v in found])
        sampling = Everyone() if batch is None else PoissonBatches(0.1)
        assert algorithm.sampling == sampling
        (planned,) = watched.curator.plan
        assert (planned.sampling, planned.times) == (sampling, algorithm.steps)
        assert cost(watched.curator.plan, "replace_one").epsilon(1e-5) == pytest.approx(
            0.5, rel=1e-2
        )
    assert errors["private"] < errors["paper"]
    if strong:  # the few steps of theorem 8 leave both on the way
        assert errors["private"] < 0.8 * errors["paper"]
        assert errors["private"] < 0.3 * np.linalg.norm(w)


def test_the_private_scale_never_exceeds_the_papers():
    for epsilon in (0.1, 1.0, 100.0):
        for n in (50, 10_000_000):
            budget = Budget(epsilon, 1e-6)
            scales = [
                CatoniDescent.from_theory(
                    n, 1, budget, second_moment=1.0, curvature=1.0, scale=s
                ).scale
                for s in ("private", "paper")
            ]
            assert 0 < scales[0] <= scales[1] < math.inf


def test_sensitivity_is_that_of_the_bounded_influence():
    """Theorem 7's 4 sqrt(2) s sqrt(d) / (3 n), with c_beta for 2 sqrt(2)/3; half if emptied."""
    algorithm = CatoniDescent(steps=3, step_size=0.1, scale=7.0, smoothing=2.0)
    answer = Problem(n=1000, d=4).gradient(algorithm.mean)
    expected = 2 * 7.0 * catoni_bound(2.0) * math.sqrt(4) / 1000
    assert answer.diameter.l2 * answer.unit == pytest.approx(expected, rel=1e-6)
    assert answer.radius.l2 * answer.unit == pytest.approx(expected / 2, rel=1e-6)
    assert expected < 4 * math.sqrt(2) * 7.0 * 2 / (3 * 1000)


def test_a_smoothing_that_has_no_polynomial_is_refused_from_public_numbers():
    algorithm = CatoniDescent(steps=1, step_size=0.1, scale=1.0, smoothing=0.01)
    with pytest.raises(InvalidInput, match="smoothing"):
        algorithm.plan(1.0, Problem(n=10, d=1))


@pytest.mark.parametrize("batch", [None, 20])
def test_the_baseline_is_the_same_code_without_noise(
    watched, make_problem, gradient, catoni, batch
):
    """Holland 2019, RGD and stochastic: lemma 3's scale and smoothing, epsilon = inf."""
    X, y, loss = make_problem("squared", 60, 2)
    algorithm = CatoniDescent.holland(
        60, steps=3, second_moment=2.0, curvature=5.0, batch=batch, failure_probability=0.1
    )
    m = batch or 60
    assert algorithm.scale == pytest.approx(math.sqrt(m * 2.0 / (2 * math.log(10))))
    assert algorithm.smoothing == pytest.approx(2 * math.log(10))
    w = watched.fit(algorithm, X, y, loss, epsilon=math.inf)
    expected = box(
        gradient, catoni, "squared", X, y, T=3, eta=0.2, s=algorithm.scale,
        beta=algorithm.smoothing, project=lambda v: v, noise=[np.zeros((2, 1))] * 3,
        batches=watched.batches, m=m,
    )  # fmt: skip
    assert np.abs(w - expected).max() < 1e-5
    assert watched.curator.noise == "none"
    assert not any(np.any(z) for z in watched.noise)
