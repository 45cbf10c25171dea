"""Slopes that are likely noise: how likely, and what a fit does with them."""

from __future__ import annotations

import numpy as np
import pytest

from privtail.default import Tuning
from privtail.default.preconditioner import Preconditioner
from privtail.default.shrinkage import probabilities as believed
from privtail.domains import (
    L1,
    L2,
    ElasticNet,
    L1Ball,
    L2Ball,
    Multiple,
    Slopes,
    Unconstrained,
    may_be_zero,
    of_slopes,
)
from privtail.linear_model import DPLinearRegression, DPLogisticRegression, DPPoissonRegressor

SIMULATED = {"noise": "simulated", "random_state": 0}


def probabilities(slopes, deviations):
    """With the prior of the default."""
    return believed(slopes, deviations, Tuning().prior_nonzero_slopes)


def slopes(d, active, size, seed=0):
    rng = np.random.default_rng(seed)
    w = np.zeros((d, 1))
    w[:active, 0] = size * rng.choice([-1, 1], active)
    return w + rng.normal(size=(d, 1))


def test_few_large_slopes_stay_and_the_others_leave():
    likely = probabilities(slopes(200, 10, 6.0), np.ones(200))[:, 0]
    assert likely[:10].min() > 0.9
    assert np.mean(likely[10:] > 0.5) < 0.03


def test_where_all_say_something_all_stay():
    rng = np.random.default_rng(0)
    likely = probabilities(rng.normal(0, 4, (200, 1)), np.ones(200))
    assert likely.mean() > 0.9


def test_without_noise_all_are_certain():
    w = slopes(20, 5, 1.0)
    assert (probabilities(w, np.zeros(20)) == 1).all()


@pytest.mark.parametrize("factor", [1e-300, 1e-100, 1e100, 1e150])
def test_units_change_nothing(factor):
    w = slopes(50, 5, 6.0)
    assert probabilities(w * factor, np.full(50, factor)) == pytest.approx(
        probabilities(w, np.ones(50)), abs=1e-9
    )


@pytest.mark.parametrize("value", [0.0, 1e-320, 1e160])
def test_any_slopes_have_probabilities(value):
    likely = probabilities(np.full((30, 2), value), np.ones(30))
    assert (likely >= 0).all()
    assert (likely <= 1).all()


def test_many_slopes_without_an_effect_are_taken_for_noise():
    """Of few nobody can tell, and they are left alone."""
    rng = np.random.default_rng(0)
    few, many = (np.mean([probabilities(rng.normal(size=(d, 1)), np.ones(d)).mean()
                          for _ in range(20)]) for d in (5, 200))  # fmt: skip
    assert many < 0.6
    assert few > 0.9


def test_features_that_count_for_nothing_are_no_evidence_of_noise():
    """Of 600 features, too many for second moments, 570 are constant."""
    active = np.arange(600) < 30
    deviations = Preconditioner.without_moments(active).slope_stds(np.ones(600), 600)
    w = np.where(active, np.random.default_rng(0).normal(0, 1.8, 600), 0.0)[:, None]
    kept = probabilities(w * deviations[:1], deviations) * w
    assert np.abs(kept).sum() > 0.7 * np.abs(w).sum()


def test_a_domain_that_ties_slopes_keeps_all():
    free = (Unconstrained(), L1(alpha=0.1), L2(alpha=0.1), ElasticNet(alpha=0.1, l1_ratio=0.5))
    for domain in free:
        assert may_be_zero(domain)
        assert may_be_zero(Slopes(domain=domain))
        assert may_be_zero(Multiple(domain=Slopes(domain=domain), factor=3.0))
        assert of_slopes(Slopes(domain=Multiple(domain=domain, factor=3.0))) is domain
    for domain in (L1Ball(radius=1.0), L2Ball(radius=1.0)):
        assert not may_be_zero(Slopes(domain=domain))
        assert not may_be_zero(Multiple(domain=Slopes(domain=domain), factor=3.0))


# ---------------------------------------------------------------- whole fits


def sparse_problem(n=4_000, d=80):
    rng = np.random.default_rng(0)
    X = rng.standard_t(3, (n, d))
    return X, X[:, 0] - 2 * X[:, 1] + X[:, 2] + rng.standard_t(3, n)


def test_slopes_shrink_where_most_say_nothing_and_intervals_say_by_how_much():
    X, y = sparse_problem(n=20_000)
    model = DPLinearRegression(epsilon=1.0, delta=1e-6, **SIMULATED).fit(X, y)
    assert model.coef_[:3] == pytest.approx([1, -2, 1], abs=0.15)
    assert np.median(np.abs(model.coef_[3:])) < 0.02
    ends = model.conf_int()
    assert (ends[:, 1] > ends[:, 0]).all()
    true = np.array([1, -2, 1] + [0] * 77)
    assert np.mean((ends[:, 0] <= true) & (true <= ends[:, 1])) > 0.9


def test_slopes_of_counts_shrink_as_those_of_numbers_do():
    """The median of the others is .019 where the domain of counts hides that of the slopes."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(6_000, 60))
    y = rng.poisson(np.exp(0.5 * X[:, 0] - 0.5 * X[:, 1]))
    model = DPPoissonRegressor(epsilon=1.0, delta=1e-6, **SIMULATED).fit(X, y)
    assert model.coef_[:2] == pytest.approx([0.5, -0.5], abs=0.2)
    assert np.median(np.abs(model.coef_[2:])) < 0.002


def test_no_slope_is_lost_where_all_say_something():
    rng = np.random.default_rng(0)
    X, w = rng.standard_t(3, (20_000, 60)), rng.choice([-1, 1], 60)
    y = X @ w + rng.standard_t(3, 20_000)
    model = DPLinearRegression(epsilon=1.0, delta=1e-6, **SIMULATED).fit(X, y)
    assert (model.coef_ * w > 0.5).all()


def test_under_much_noise_few_strong_effects_on_labels_are_found():
    """The share of right labels is .67 without shrinking, and .5 for the constant."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(4_000, 200))
    y = (3 * X[:, 0] + X[:, 1] + rng.logistic(size=4_000) > 0).astype(int)
    estimator = DPLogisticRegression(epsilon=3.0, delta=1e-6, classes=[0, 1], **SIMULATED)
    model = estimator.fit(X[:1_000], y[:1_000])
    assert np.mean(model.predict(X[1_000:]) == y[1_000:]) > 0.76
    assert np.abs(model.coef_).argmax() == 0


@pytest.mark.parametrize("classes", [None, [0, 1]])
def test_features_that_are_all_constant_fail_no_fit(classes):
    estimator = DPLogisticRegression(
        epsilon=0.1 if classes else 0.5, classes=classes, fit_intercept=False, **SIMULATED
    )
    assert not estimator.fit(np.zeros((3_000, 600)), np.arange(3_000) % 2).coef_.any()


def test_margins_of_many_labels_may_walk_as_far_as_that_of_two():
    """With one cap on all margins together the share of right labels is .24."""
    rng = np.random.default_rng(0)
    middles = 2 * rng.normal(size=(26, 6))
    y = rng.integers(0, 26, 9_000)
    X = middles[y] + rng.normal(size=(9_000, 6)) * np.linspace(0.3, 2, 6)
    estimator = DPLogisticRegression(
        epsilon=0.5, delta=1e-6, classes=list(range(26)), **SIMULATED
    )  # fmt: skip
    assert estimator.fit(X[:6_000], y[:6_000]).score(X[6_000:], y[6_000:]) > 0.45
