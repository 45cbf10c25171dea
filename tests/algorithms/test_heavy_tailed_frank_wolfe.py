"""HTDP-FW and HTP-LASSO of Hu et al. against the corrected boxes."""

from __future__ import annotations

import math

import numpy as np
import pytest

from privtail.algorithms import HeavyTailedFrankWolfe, TruncatedLasso
from privtail.calibration import calibrate
from privtail.domains import L1Ball, Simplex
from privtail.errors import InvalidInput
from privtail.influence import catoni_bound
from privtail.losses import GeneralLoss, SquaredLoss, TruncatedLoss
from privtail.trusted.accountants import cost
from privtail.trusted.budget import Budget
from privtail.trusted.problem import Problem


def corners(domain, shape):
    """The vertices, as vectors of this shape."""
    size = math.prod(shape)
    axes = domain.radius * np.eye(size).reshape(size, *shape)
    return [*axes, *-axes] if isinstance(domain, L1Ball) else list(axes)


def choose(vertices, g, gumbel):
    scores = [-np.sum(v * g) for v in vertices]
    return vertices[int(np.argmax(np.array(scores) + gumbel))]


DOMAINS = pytest.mark.parametrize(
    "domain", [L1Ball(radius=1.5), Simplex(radius=0.5)], ids=["l1", "simplex"]
)


def htdp_fw(gradient, kind, X, y, *, vertices, start, T, s, beta, catoni, parts, gumbels):
    """HTDP-FW on parts dealt by id, with the divisor n/T."""
    w, m = start, len(X) / T
    for t in range(1, T + 1):
        g = np.zeros_like(w)
        for i in parts[t - 1]:
            one = gradient(kind, w, X[i], y[i])
            for j in np.ndindex(g.shape):
                g[j] += s / m * catoni(one[j] / s, beta)
        eta = 2 / (t + 2)
        w = (1 - eta) * w + eta * choose(vertices, g, gumbels[t - 1])
    return w


@DOMAINS
def test_htdp_fw(watched, case, gradient, catoni, domain):
    X, y, loss = case.records()
    algorithm = HeavyTailedFrankWolfe(steps=3, scale=2.0, smoothing=1.5)
    w = watched.fit(algorithm, case.stored(X), y, loss, domain=domain, epsilon=5.0, delta=0.0)
    expected = htdp_fw(
        gradient, case.kind, X, y, vertices=corners(domain, w.shape),
        start=domain.project(np.zeros(w.shape)), T=3, s=2.0, beta=1.5, catoni=catoni,
        parts=watched.batches, gumbels=[domain.radius * z for z in watched.noise],
    )  # fmt: skip
    assert np.abs(w - expected).max() < 1e-6
    assert sorted(np.concatenate(watched.batches)) == list(range(len(X)))


def test_parts_are_pure_and_do_not_compose():
    """Score sensitivity 2 s c_beta / m per unit corner; T parts cost one."""
    n, T, s = 900, 9, 3.0
    algorithm = HeavyTailedFrankWolfe(steps=T, scale=s)
    problem = Problem(n=n, d=5)
    plan = algorithm.plan(40.0, problem)
    (event,) = plan[0].events
    assert event.diameter * event.unit == pytest.approx(
        2 * s * catoni_bound(1.0) / (n / T), rel=1e-6
    )
    assert event.diameter * event.unit < 4 * math.sqrt(2) * s / (3 * n / T)
    epsilon = cost(plan, "replace_one").epsilon(0.0)
    assert epsilon == pytest.approx(2 * event.diameter / event.scale)
    m = calibrate(lambda m: algorithm.plan(m, problem), Budget(1.0))
    assert m == pytest.approx(4.0, rel=1e-4)


@pytest.mark.parametrize("epsilon", [0.1, 1.0])
def test_htdp_fw_parameters(epsilon):
    n, d, tau = 100_000, 1000, 5.0
    found = HeavyTailedFrankWolfe.from_theory(n, d, Budget(epsilon), second_moment=tau)
    T = math.ceil((n * epsilon) ** (1 / 3))
    assert found.steps == T
    logs = math.log(2 * d * d * T / 0.05)
    assert found.scale == pytest.approx(math.sqrt(n * epsilon * tau / (T * logs)))
    with pytest.raises(InvalidInput, match="finite"):
        HeavyTailedFrankWolfe.from_theory(n, d, Budget(math.inf), second_moment=tau)
    assert HeavyTailedFrankWolfe.from_theory(2, 1, Budget(99.0), second_moment=1.0).steps == 2


def htp_lasso(gradient, kind, X, y, *, vertices, start, T, K, bound, gumbels):
    """HTP-LASSO; every entry of a record's gradient within ``bound``."""
    x_, y_ = (np.sign(a) * np.minimum(np.abs(a), K) for a in (X, y))
    y_ = y_ if kind == "squared" else y
    w = start
    for t in range(1, T + 1):
        each = [gradient(kind, w, x_[i], y_[i]) for i in range(len(X))]
        g = sum(np.clip(one, -bound, bound) for one in each) / len(X)
        eta = 2 / (t + 2)
        w = (1 - eta) * w + eta * choose(vertices, g, gumbels[t - 1])
    return w


@DOMAINS
def test_htp_lasso(watched, case, gradient, domain):
    X, y, loss = case.records()
    algorithm = TruncatedLasso(steps=4, truncation=1.3, radius=1.5)
    w = watched.fit(algorithm, case.stored(X), y, loss, domain=domain, epsilon=20.0)
    expected = htp_lasso(
        gradient, case.kind, X, y, vertices=corners(domain, w.shape),
        start=domain.project(np.zeros(w.shape)), T=4, K=1.3, bound=1.3**2 * 2.5,
        gumbels=[domain.radius * z for z in watched.noise],
    )  # fmt: skip
    assert np.abs(w - expected).max() < 1e-6


def test_no_truncated_gradient_is_clamped_on_the_ball():
    """|x_j (<x, w> - y)| <= K^2 (1 + lambda), and it is attained."""
    K, radius = 1.3, 4.0
    rng = np.random.default_rng(0)
    X, y = 100 * rng.standard_cauchy((2000, 3)), 100 * rng.standard_cauchy(2000)
    loss = TruncatedLoss(loss=SquaredLoss(), bound=K)
    bound = TruncatedLasso(steps=1, truncation=K, radius=radius).mean.threshold
    assert bound == pytest.approx(K**2 * (1 + radius))
    found = max(
        np.abs(loss.gradients(w, X, y)).max() for w in corners(L1Ball(radius=radius), (3, 1))
    )
    assert found == pytest.approx(bound)


def test_the_sensitivity_of_the_public_code_is_too_small_beyond_three():
    """It has 16 lambda K^2/n for the square; 4 lambda (1 + lambda) K^2/n is attained."""
    n, K = 1000, 1.3
    for radius, enough in ((1.0, True), (3.0, True), (4.0, False)):
        algorithm = TruncatedLasso(steps=1, truncation=K, radius=radius)
        answer = Problem(n=n, d=3).gradient(algorithm.mean)
        ours = 2 * radius * answer.diameter.linf * answer.unit  # without the half
        assert ours == pytest.approx(4 * radius * (1 + radius) * K**2 / n)
        assert (16 * radius * K**2 / n >= ours * (1 - 1e-9)) == enough


@pytest.mark.parametrize("epsilon", [0.1, 1.0])
def test_htp_lasso_parameters(epsilon):
    n = 100_000
    found = TruncatedLasso.from_theory(n, Budget(epsilon, 1e-5), radius=2.0)
    assert found.steps == math.ceil((n * epsilon) ** 0.4)
    assert found.truncation == pytest.approx((n * epsilon) ** 0.25 / found.steps**0.125)
    assert found.radius == 2.0


def test_a_truncated_loss_is_row_local_and_needs_margins():
    """Row i of a block has the bits of record i alone, with an intercept and without."""
    rng = np.random.default_rng(1)
    X, y = rng.standard_cauchy((50, 4)), rng.standard_cauchy(50)
    loss = TruncatedLoss(loss=SquaredLoss(), bound=0.7)
    for rows in (4, 5):
        w = rng.normal(size=(rows, 1))
        block, values = loss.gradients(w, X, y), loss.values(w, X, y)
        for i in range(50):
            assert np.array_equal(block[i : i + 1], loss.gradients(w, X[i : i + 1], y[i : i + 1]))
            x = np.append(np.clip(X[i], -0.7, 0.7), np.ones(rows - 4))
            r = x @ w[:, 0] - np.clip(y[i], -0.7, 0.7)
            assert values[i] == pytest.approx(r * r / 2)
            assert block[i, :, 0] == pytest.approx(x * r)
    general = GeneralLoss(value=lambda w, x, y: 0.0, gradient=lambda w, x, y: w)
    with pytest.raises(InvalidInput, match="margins"):
        TruncatedLoss(loss=general, bound=1.0)
    with pytest.raises(InvalidInput, match="threshold"):
        TruncatedLoss(loss=SquaredLoss(), bound=math.inf)
