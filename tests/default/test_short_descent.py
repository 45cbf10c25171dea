"""The selection and the short descent for budgets that carry little more."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import sparse

from privtail.calibration import calibrate, calibrated
from privtail.default.scaled_descent import ScaledDescent
from privtail.default.short_descent import ShortDescent, findable
from privtail.domains import L2, Slopes, Unconstrained
from privtail.errors import IncompatibleParts
from privtail.linear_model import (
    DPLinearRegression,
    DPLogisticRegression,
    DPSparseClassifier,
    DPSparseRegressor,
)
from privtail.losses import GeneralLoss, LogisticLoss, MultinomialLoss, SquaredLoss, WeightedLoss
from privtail.trusted.accountants import cost
from privtail.trusted.budget import Budget
from privtail.trusted.curator import Curator
from privtail.trusted.events import plan_to_json
from privtail.trusted.ledger import Ledger
from privtail.trusted.problem import Problem

SIMULATED = {"noise": "simulated"}
SLOPES = np.array([1, -1, 0.5, -0.5, 0.25, -0.25, 1, -1, 0.5, -0.5])


def descent(sparsity=10, targets="real", squares=True):
    fine = ScaledDescent(targets=targets, squares=squares, sparsity=sparsity)
    return ShortDescent(sparsity=sparsity, fine=fine, targets=targets, squares=squares)


def lognormal(n, d, seed):
    """The heavy-tailed problem with ten slopes: columns and noise lognormal(0, 1.5)."""
    rng = np.random.default_rng(seed)
    X = rng.lognormal(0, 1.5, (n, d))
    return X, X[:, :10] @ SLOPES + 1 + rng.lognormal(0, 1.5, n) - math.exp(1.125)


def test_the_plan_is_the_five_stages():
    problem = Problem(n=1_000, d=100, intercept=True)
    plan = descent().plan(150.0, problem)
    assert [(e.question, e.coordinates, e.picks, r.times) for r in plan for e in r.events] == [
        ("histogram", 259, 1, 1),
        ("histogram", 259, 1, 1),
        ("gradient", 1, 1, 1),
        ("gradient", 1, 1, 1),
        ("gradient", 1, 1, 1),
        ("gradient", 1, 1, 1),
        ("means", 1, 1, 1),
        ("separations", 100, 4, 1),
        ("histogram", 4 * 259, 1, 4),
        ("gradient", 101, 1, 10),
        ("separations", 96, 3, 1),
        ("histogram", 3 * 259, 1, 4),
        ("gradient", 101, 1, 14),
        ("gradient", 1, 1, 1),
        ("improvement", 1, 1, 1),
        ("improvement", 1, 1, 1),
    ]
    laws = [r.events[0].law for r in plan]
    rho = {k: cost((r,), "replace_one").rho for k, r in enumerate(plan)}
    assert max(rho, key=rho.__getitem__) == laws.index("noisy_max")
    found = sum(rho[k] for k, law in enumerate(laws) if law == "noisy_max")
    assert found > 0.45 * sum(rho.values()), "about half of it finds features"
    picks = [r.events[0] for r, law in zip(plan, laws, strict=True) if law == "noisy_max"]
    assert len({pick.scale for pick in picks}) == 1, "bounded range is of picks that are alike"


def test_features_that_are_chosen_late_are_those_of_the_residuals():
    """A fiftieth of the variance is found in 30 of 30 others; beside the rest of it in 8."""
    for seed in range(5):
        rng = np.random.default_rng(seed)
        X = rng.normal(size=(2_000, 60))
        y = 3 * X[:, 7] + 0.4 * X[:, 41] + 0.1 * rng.normal(size=2_000)
        model = DPSparseRegressor(2, epsilon=0.4, delta=1e-4, random_state=seed, **SIMULATED)
        assert set(np.flatnonzero(model.fit(X, y).coef_)) == {7, 41}


def is_fine(algorithm, multiplier, problem):
    """Whether the plan is that of ``fine``."""
    plans = algorithm.plan(multiplier, problem), algorithm.fine.plan(multiplier, problem)
    return plan_to_json(plans[0]) == plan_to_json(plans[1])


def spent_of_budget(algorithm, problem, epsilon):
    """What is spent of a budget that the noise was calibrated to."""
    multiplier = calibrate(lambda m: algorithm.plan(m, problem), Budget(epsilon, 1e-5))
    return cost(algorithm.plan(multiplier, problem), "replace_one").epsilon(1e-5)


def test_little_noise_or_few_features_are_for_the_fine_algorithm():
    algorithm = descent()
    for multiplier, d, fine in (
        (18, 100, True),
        (50, 100, False),
        (900, 100, True),
        (90, 10, True),
    ):
        problem = Problem(n=1_000, d=d, intercept=True)
        assert is_fine(algorithm, multiplier, problem) == fine


@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize("targets", ["real", "class"])
@pytest.mark.parametrize("d", [20, 1_000])
@pytest.mark.parametrize("sparsity", [1, 10])
def test_every_budget_has_a_multiplier(sparsity, d, targets, intercept):
    """The bill jumps where the algorithm changes, and never beyond the budget."""
    algorithm = descent(sparsity, targets, squares=targets == "real")
    problem = Problem(n=10_000, d=d, intercept=intercept)
    for epsilon in np.geomspace(0.01, 1, 5):
        assert 0.7 * epsilon < spent_of_budget(algorithm, problem, float(epsilon)) <= epsilon


def test_as_many_features_as_noise_allows():
    problem = Problem(n=1_000, d=100)
    assert [findable(10, m, problem) for m in (0.0, 1.0, 10.0, 15.0, 40.0, 1e6)] == [
        10, 10, 9, 6, 2, 1,
    ]  # fmt: skip
    assert findable(10, 15.0, Problem(n=1_000, d=100, max_rows=3)) == 2
    assert findable(10, 15.0, Problem(n=1_000, d=100_000)) == 2


def test_what_matters_is_found():
    """Two of sixty features that carry nearly all of the target, found in 180 of 180 others."""
    for seed in range(10):
        rng = np.random.default_rng(seed)
        X = rng.standard_t(3, (1_000, 60))
        y = 3 * X[:, 7] - 3 * X[:, 41] + rng.standard_t(3, 1_000)
        model = DPSparseRegressor(2, epsilon=1.0, delta=1e-4, random_state=seed, **SIMULATED)
        model.fit(X, y)
        assert [r.times for r in model.privacy_.plan].count(14) == 1, "the short descent"
        assert set(np.flatnonzero(model.coef_)) == {7, 41}
        assert list(np.sign(model.coef_[[7, 41]])) == [1, -1]


def test_it_beats_the_constant_where_so_little_is_affordable():
    """At epsilon = 0.5 and delta = 1e-3, where `ScaledDescent` returns the constant."""
    ratios, right = [], []
    for seed in range(9):
        X, y = lognormal(1_000, 100, seed)
        T, t = lognormal(5_000, 100, seed + 100)
        model = DPSparseRegressor(epsilon=0.5, delta=1e-3, random_state=seed, **SIMULATED)
        ratios.append(np.std(t - model.fit(X, y).predict(T)) / np.std(t))
        label = DPSparseClassifier(
            classes=[0, 1], epsilon=0.5, delta=1e-3, random_state=seed, **SIMULATED
        )
        right.append(label.fit(X, y > 0).score(T, t > 0))
    assert np.median(ratios) < 0.65
    assert np.median(right) > 0.65


@pytest.mark.parametrize("epsilon", [0.02, 0.05, 0.1])
def test_it_is_never_worse_than_the_constant(epsilon):
    for seed in range(5):
        X, y = lognormal(1_000, 100, seed)
        model = DPSparseRegressor(epsilon=epsilon, delta=1e-3, random_state=seed, **SIMULATED)
        error = np.sqrt(np.mean((y - model.fit(X, y).predict(X)) ** 2))
        assert error < 1.05 * np.std(y)


@pytest.mark.usefixtures("simulated_is_booked")
@pytest.mark.parametrize(
    ("loss", "intercept", "csr", "sparsity"),
    [
        (SquaredLoss(), True, False, 3),
        (SquaredLoss(), False, False, 3),
        (SquaredLoss(), True, True, 3),
        (LogisticLoss(), True, False, 3),
        (MultinomialLoss(classes=3), False, True, 3),
        (LogisticLoss(), True, False, None),
        (LogisticLoss(), False, True, None),
        (WeightedLoss(loss=LogisticLoss(), weights=(0.6, 3.0)), True, False, None),
    ],
)
def test_what_was_planned_is_what_was_spent(loss, intercept, csr, sparsity):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(1_000, 40))
    y = rng.integers(0, 3, 1_000).astype(float) % max(2, loss.outputs)
    algorithm = descent(
        sparsity, "real" if loss.targets == "real" else "class", loss.targets == "real"
    )
    ledger = Ledger(epsilon=10.0, delta=1e-5)
    curator = Curator(
        sparse.csr_matrix(X) if csr else X, y, budget=Budget(0.8, 1e-5), ledger=ledger,
        intercept=intercept, outputs=loss.outputs, random_state=0, **SIMULATED,
    )  # fmt: skip
    multiplier = calibrated(curator, lambda m: algorithm.plan(m, curator.problem))
    penalty = L2(alpha=0.01)
    domain = Slopes(domain=penalty) if intercept else penalty
    result = algorithm.run(curator, loss, domain, multiplier)
    assert not curator._cursor, "every planned release was made"
    assert result.steps == 24
    assert np.isfinite(result.w).all()
    assert cost(curator.plan, "replace_one").epsilon(1e-5) <= 0.8


def everything(**options):
    """All features, for labels."""
    return ShortDescent(fine=ScaledDescent(targets="class"), targets="class", **options)


def test_without_a_selection_there_is_a_metric():
    problem = Problem(n=1_000, d=100, intercept=True)
    plan = everything().plan(100.0, problem)
    assert [(e.question, e.coordinates, r.times) for r in plan for e in r.events] == [
        ("histogram", 100 * 259, 2),
        ("histogram", 2, 1),
        ("moments", 101 * 102 // 2, 1),
        ("gradient", 101, 24),
        ("derivative norms", 138, 1),
        ("gradient", 1, 1),
        ("improvement", 1, 1),
        ("improvement", 1, 1),
    ]


def test_all_features_are_short_only_between_little_noise_and_too_much_for_counts():
    algorithm, problem = everything(), Problem(n=1_000, d=100, intercept=True)
    for multiplier, fine in ((5.0, True), (100.0, False), (2_000.0, True)):
        assert is_fine(algorithm, multiplier, problem) == fine


@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize("outputs", [1, 3])
@pytest.mark.parametrize("d", [1, 20, 1_000])
def test_without_a_selection_every_budget_has_a_multiplier(d, outputs, intercept):
    algorithm = DPLogisticRegression(epsilon=1.0)._default()
    problem = Problem(n=3_000, d=d, outputs=outputs, intercept=intercept)
    for epsilon in np.geomspace(0.01, 3, 5):
        assert 0.7 * epsilon < spent_of_budget(algorithm, problem, float(epsilon)) <= epsilon


def test_all_features_beat_the_constant_where_so_little_is_affordable():
    """At epsilon = 0.5 and delta = 1e-3, n = 1,000, d = 100."""
    right = []
    for seed in range(9):
        X, y = lognormal(1_000, 100, seed)
        T, t = lognormal(5_000, 100, seed + 100)
        model = DPLogisticRegression(
            classes=[0, 1], epsilon=0.5, delta=1e-3, random_state=seed, **SIMULATED
        )
        right.append(model.fit(X, y > 0).score(T, t > 0))
    assert np.median(right) > 0.56


def test_losses_by_record_are_refused():
    X = np.zeros((50, 40))
    curator = Curator(X, X[:, 0], budget=Budget(0.5, 1e-5), random_state=0, **SIMULATED)
    algorithm = descent(3)
    multiplier = calibrated(curator, lambda m: algorithm.plan(m, curator.problem))
    loss = GeneralLoss(value=lambda w, x, y: 0.0, gradient=lambda w, x, y: x)
    with pytest.raises(IncompatibleParts, match="margin"):
        algorithm.run(curator, loss, Unconstrained(), multiplier)


@pytest.mark.parametrize("epsilon", [0.3, 0.6])
@pytest.mark.parametrize("shift", [1e4, 3e5])
def test_a_constant_is_found_however_far_from_zero(epsilon, shift):
    """Without the steps it was off by up to 300 deviations; medians of five."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(2_000, 146))
    y = X[:, 0] + rng.normal(size=2_000) + shift
    models = [
        DPLinearRegression(epsilon=epsilon, random_state=seed, **SIMULATED).fit(X, y)
        for seed in range(5)
    ]
    off = [abs(float(model.predict(X).mean()) - y.mean()) for model in models]
    assert np.median(off) < 0.5
    assert max(off) < 2.0
