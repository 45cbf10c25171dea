"""W20 Algorithm 1 against the corrected box; the contracts of an algorithm that needs many rows."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import sparse

from privtail.algorithms import AggregatedMinimizer
from privtail.algorithms.aggregated_minimizer import minimized, suggested_smoothness
from privtail.domains import L1, L2Ball, Slopes, Unconstrained
from privtail.errors import BudgetExceeded, IncompatibleParts, InvalidInput
from privtail.linear_model import DPLinearRegression
from privtail.losses import AbsoluteLoss, GeneralLoss, LogisticLoss, SquaredLoss
from privtail.trusted.accountants import cost
from privtail.trusted.budget import NEIGHBOURS, Budget
from privtail.trusted.events import Round
from privtail.trusted.ledger import Ledger
from privtail.trusted.problem import Problem
from privtail.trusted.smooth.aggregate import blocks_needed


def box(points, *, Lambda, beta, gamma, u):
    """Lines 4-6, corrected: the smallest radii, a = ceil((1 + e^h/2)/(e^h - 1)), e^(-h k)."""
    m, p = points.shape
    t0 = (m + 1) // 2 + 1
    if p == 1:
        x = np.sort(points[:, 0])
        width = {t: min(x[i + t - 1] - x[i] for i in range(m - t + 1)) for t in range(t0, m + 1)}
        i = min(range(m - t0 + 1), key=lambda i: x[i + t0 - 1] - x[i])
        centre = np.array([(x[i] + x[i + t0 - 1]) / 2])
        S = max(width.get(t0 + k + 1, Lambda) * math.exp(-beta * k) for k in range(m))
        return centre + S / gamma * u
    h = beta / 2
    a = math.ceil((1 + math.exp(h) / 2) / (math.exp(h) - 1))
    assert a <= t0 + 1
    radii = [sorted(math.dist(point, other) for other in points) for point in points]

    def r(i, t):
        return radii[i][t - 1] if t <= m else Lambda

    def rho(t):
        return sum(sorted(r(i, t) for i in range(m))[:a]) / a

    S = max(2 * rho(t0 + k + 1) * math.exp(-h * k) for k in range(m))
    return points[min(range(m), key=lambda i: r(i, t0))] + S / gamma * u


MANY = {"blocks": 601, "radius": 3.0, "smoothness": 0.011, "delta": 1e-5, "iterations": 5}
CASES = [("squared", False, 2), ("squared", True, 1), ("logistic", True, 2), ("squared", False, 1)]


@pytest.mark.parametrize("storage", [np.asarray, sparse.csr_matrix], ids=["dense", "csr"])
@pytest.mark.parametrize(("kind", "intercept", "d"), CASES)
def test_the_box(watched, make_problem, kind, intercept, d, storage):
    X, y, loss = make_problem(kind, 400, d)
    algorithm = AggregatedMinimizer(blocks=31, radius=3.0, smoothness=0.3, delta=1e-5)
    assert blocks_needed(3, 0.3) <= 31
    w = watched.fit(
        algorithm, storage(X), y, loss, intercept=intercept, epsilon=40.0, domain=L2Ball(radius=9.0)
    )
    rows = np.column_stack([X, np.ones(len(X))]) if intercept else X
    deal = watched.curator.blocks(31)
    points = []
    domain = L2Ball(radius=9.0)
    domain = Slopes(domain=domain) if intercept else domain
    for b in range(31):
        chosen = deal == b
        start = np.zeros((rows.shape[1], 1))
        found = minimized(loss, domain, rows[chosen], y[chosen], start, 100).ravel()
        points.append(found * min(1.0, (1 - 2.0**-20) * 3.0 / np.linalg.norm(found)))
    centre = box(
        np.array(points), Lambda=6.0, beta=0.3, gamma=1 / watched.multiplier,
        u=np.zeros(len(points[0])),
    )  # fmt: skip
    (noise,) = watched.noise
    noisy = centre + noise
    limit = np.linalg.norm(noisy[: len(noisy) - intercept])
    factor = min(1.0, 9.0 / limit) if limit else 1.0
    noisy[: len(noisy) - intercept] *= factor
    assert np.abs(w.ravel() - noisy).max() < 1e-5


@pytest.mark.parametrize("p", [1, 2, 3])
@pytest.mark.parametrize("beta", [0.12, 0.4])
def test_centre_and_sensitivity_are_those_of_the_box(p, beta):
    """On random points, with heavy tails: S is the coefficient of u."""
    from privtail.trusted.smooth.aggregate import BITS, centre_of_attention

    rng = np.random.default_rng(p)
    for m in (blocks_needed(p, beta), blocks_needed(p, beta) + 9):
        points = np.clip(rng.standard_cauchy((m, p)) / 30, -0.5, 0.5)
        steps = np.trunc(points * 2.0**BITS).astype(np.int64)
        centre, size = centre_of_attention(steps, beta)
        real, unit = steps / 2.0**BITS, 2.0 ** -(BITS + 1)
        zero, one = (box(real, Lambda=2.0, beta=beta, gamma=1.0, u=u) for u in (0.0, 1.0))
        assert centre * unit == pytest.approx(zero, abs=1e-8)
        assert size * unit == pytest.approx((one - zero)[0], rel=1e-6)


@pytest.mark.parametrize("epsilon", [0.5, 1.0, 4.0])
@pytest.mark.parametrize("d", [1, 2, 5])
def test_line_1(epsilon, d):
    n, budget = 100_000, Budget(epsilon, 1e-6)
    found = AggregatedMinimizer.from_theory(n, d, budget, radius=2.0)
    assert found.smoothness == epsilon / (4 * (d + math.log(2e6)))
    assert found.smoothness == suggested_smoothness(epsilon, 1e-6, d)
    assert found.blocks >= blocks_needed(d, found.smoothness)
    rate = found.smoothness / (1 if d == 1 else 2)
    assert math.exp(-rate * found.blocks / 2) <= 0.0101
    found.plan(1.0, Problem(n=n, d=d))
    needed = found.blocks
    with pytest.raises(InvalidInput, match=f"at least {needed} rows"):
        AggregatedMinimizer.from_theory(needed - 1, d, budget, radius=2.0)
    for bad in (Budget(1.0), Budget(math.inf, 1e-6)):
        with pytest.raises(InvalidInput):
            AggregatedMinimizer.from_theory(n, d, bad, radius=1.0)


@pytest.mark.parametrize("epsilon", [30.0, 45.0, 60.0, 80.0, 120.0])
@pytest.mark.parametrize("d", [1, 4])
def test_a_large_budget_pays_for_the_suggested_smoothness(epsilon, d):
    """Of 80 and a smoothness of .9, the stretch of the noise took 80.4, whatever the noise."""
    budget = Budget(epsilon, 1e-6)
    found = AggregatedMinimizer.from_theory(20_000, d, budget, radius=2.0)
    plan = found.plan(1e6, Problem(n=20_000, d=d))
    assert 0 < cost(plan, "replace_one").epsilon(budget.delta) < 0.9 * epsilon


@pytest.mark.parametrize("neighbours", NEIGHBOURS)
@pytest.mark.parametrize("epsilon", [1.0, 5.0, math.inf])
def test_planned_is_spent_and_within_the_budget(watched, make_problem, epsilon, neighbours):
    X, y, loss = make_problem("squared", 2000, 2)
    ledger = Ledger(epsilon=epsilon, delta=1e-5, neighbours=neighbours)
    algorithm = AggregatedMinimizer(**MANY)
    w = watched.fit(algorithm, X, y, loss, epsilon=epsilon, neighbours=neighbours, ledger=ledger)
    assert np.isfinite(w).all()
    plan = algorithm.plan(watched.multiplier, Problem(n=2000, d=2))
    assert watched.curator.plan == plan
    ((sampling, events),) = watched.charged
    assert (Round(sampling=sampling, events=tuple(events)),) == plan
    bill = cost(plan, neighbours).epsilon(1e-5)
    assert bill <= epsilon
    assert math.isinf(epsilon) or bill > 0.99 * epsilon
    assert ledger.entries()[0].epsilon == bill
    with pytest.raises(BudgetExceeded):
        watched.fit(algorithm, X, y, loss, epsilon=0.1, ledger=ledger)


def test_a_seed_repeats_a_run_and_a_domain_is_kept(watched, make_problem):
    X, y, loss = make_problem("squared", 2000, 2)
    algorithm = AggregatedMinimizer(**MANY)
    runs = [
        watched.fit(algorithm, X, y, loss, seed=s, domain=L2Ball(radius=0.4)) for s in (1, 1, 2)
    ]
    assert np.array_equal(runs[0], runs[1])
    assert not np.array_equal(runs[0], runs[2])
    assert all(np.linalg.norm(w) <= 0.4 + 1e-9 for w in runs)


def test_nothing_in_the_records_raises_or_warns(watched):
    rng = np.random.default_rng(0)
    X, y = rng.standard_cauchy((700, 2)), rng.standard_cauchy(700)
    X[0], X[1, 1], X[2], X[3], X[4] = np.nan, np.inf, 1e308, -1e308, 5e-324
    y[5:8] = np.nan, -np.inf, 1e300
    algorithm = AggregatedMinimizer(**MANY)
    for records, target in (
        (X, y),
        (np.full((700, 2), np.nan), y),
        (np.zeros((700, 2)), np.zeros(700)),
        (np.full((700, 2), 1e300), np.full(700, -1e300)),
    ):
        w = watched.fit(algorithm, records, target, SquaredLoss(), intercept=False)
        assert np.isfinite(w).all()


def test_the_minimizer_of_a_part_is_the_minimizer():
    rng = np.random.default_rng(0)
    x, start = rng.normal(size=(50, 3)), np.zeros((3, 1))
    y = x @ [1.0, -1.0, 0.5] + rng.normal(size=50)
    found = minimized(SquaredLoss(), Unconstrained(), x, y, start, 500)
    assert found.ravel() == pytest.approx(np.linalg.lstsq(x, y, rcond=None)[0], abs=1e-6)
    labels = (y > 0).astype(float)
    w = minimized(LogisticLoss(), L1(alpha=0.05), x, labels, start, 2000)
    slope = x.T @ (1 / (1 + np.exp(-x @ w)) - labels[:, None]) / 50
    active = w != 0
    assert slope[active] == pytest.approx(-0.05 * np.sign(w[active]), abs=1e-4)
    assert (np.abs(slope[~active]) <= 0.05 + 1e-6).all()


@pytest.mark.parametrize("loss", [AbsoluteLoss(), "general"])
def test_a_loss_without_curvature_is_refused(watched, make_problem, loss):
    X, y, _ = make_problem("squared", 100, 1)
    if loss == "general":
        loss = GeneralLoss(value=lambda w, x, y: 0.0, gradient=lambda w, x, y: 0 * w)
        object.__setattr__(loss, "outputs", 1)
    algorithm = AggregatedMinimizer(blocks=31, radius=3.0, smoothness=0.3, delta=1e-5)
    with pytest.raises(IncompatibleParts, match="smooth loss"):
        watched.fit(algorithm, X, y, loss, epsilon=50.0)


def test_by_name_a_small_table_is_refused_before_the_charge():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 3))
    ledger = Ledger(epsilon=3.0, delta=1e-5)
    with pytest.raises(InvalidInput, match="rows"):
        DPLinearRegression(epsilon=1.0, algorithm="sample-and-aggregate", ledger=ledger).fit(
            X, X[:, 0]
        )
    assert ledger.entries() == ()
