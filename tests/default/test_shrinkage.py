"""Slopes that are likely noise: how likely, and what the descent does with it."""

from __future__ import annotations

import numpy as np
import pytest

from privtail.calibration import calibrated
from privtail.default.few_features import CROWDED, CROWDED_LABELS, MANY, FewOrAll
from privtail.default.preconditioner import Preconditioner, symmetric
from privtail.default.scaled_descent import ScaledDescent
from privtail.default.shrinkage import probabilities
from privtail.domains import L1Ball
from privtail.errors import InvalidInput
from privtail.linear_model import (
    DPGeneralizedLinearEstimator,
    DPLinearRegression,
    DPLogisticRegression,
)
from privtail.trusted.budget import Budget
from privtail.trusted.curator import Curator
from privtail.trusted.mechanisms.noise import GaussianNoise
from privtail.trusted.problem import Problem

SIMULATED = {"noise": "simulated", "random_state": 0}


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
    assert (probabilities(np.zeros((3, 0)), np.ones(3)) == 1).all()


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


def test_a_restricted_metric_is_that_of_the_features_that_stay():
    X = np.random.default_rng(0).normal(size=(5_000, 6))
    X[:, 1] += X[:, 0]
    curator = Curator(X, X[:, 0], budget=Budget(100, 1e-3), intercept=True, **SIMULATED)
    noise = GaussianNoise(
        calibrated(curator, lambda m: Preconditioner.plan(GaussianNoise(m), curator.problem))
    )
    whole = Preconditioner.bought(curator, noise, np.ones(7, dtype=np.bool_), short=0.5)
    kept = np.array([True, True, False, False, False, False, True])
    fewer = whole.restricted(kept)
    assert fewer.reach == pytest.approx(whole.reach * np.sqrt(3 / 7))
    assert (fewer.active == kept).all()
    assert fewer.short == whole.short == 0.5
    spread = fewer.vectors * fewer.values @ fewer.vectors.T
    close = np.ix_(kept, kept)
    assert spread[close] == pytest.approx(whole.moments[close], abs=4 * fewer.hidden)
    same = whole.carried(np.ones(7), whole)
    assert same == pytest.approx(np.ones(7))
    slope = whole.deviations(np.ones(7), 6)
    assert fewer.deviations(whole.carried(np.ones(7), fewer), 6)[[0, 1]] == pytest.approx(
        slope[[0, 1]], rel=0.35
    )


def test_noise_is_no_curvature_where_features_cancel():
    """In half of the metrics the direction without any seems to have some."""
    flat, seeming, counted = np.array([1, -1, 0, 0]) / np.sqrt(2), 0, 0
    moments = np.eye(4) - np.outer(flat, flat)
    for seed in range(200):
        noise = symmetric(np.random.default_rng(seed).normal(0, 0.03, 10), 4)
        metric = Preconditioner._of(moments + noise, 0.03, np.ones(4, dtype=np.bool_), 2.0)
        assert metric.sure_rates[:3] == pytest.approx(metric.rates[:3], rel=0.2)
        seeming += metric.rates[-1] > 0
        counted += metric.sure_rates[-1] > 0
    assert seeming > 60
    assert counted < 30


@pytest.mark.parametrize("spectrum", [np.ones(20), np.repeat([6.0, 0.3], [3, 17])])
def test_curvature_is_told_to_the_noise_of_an_entry(spectrum):
    """What is seen of the first and last directions is off by more than twice as much."""
    missed, seeming, every = [], [], np.ones(20, dtype=np.bool_)
    for seed in range(50):
        noise = symmetric(np.random.default_rng(seed).normal(0, 0.1, 210), 20)
        metric = Preconditioner._of(np.diag(spectrum) + noise, 0.1, every, 5.0)
        there = np.sum(metric.vectors * (spectrum[:, None] * metric.vectors), axis=0)
        missed.append(metric.likely_rates * metric.values - there)
        seeming.append(metric.rates * metric.values - there)
    assert np.std(missed) < 0.12
    assert np.std(seeming) > 0.2


def hidden_metric(spectrum, seed, short=1.0):
    """Of moments of which noise hides 14 in any direction; rows have length 10."""
    noise = symmetric(np.random.default_rng(seed).normal(0, 1.0, 5050), 100)
    return Preconditioner._of(
        np.diag(spectrum) + noise, 1.0, np.ones(100, dtype=np.bool_), 10.0, short
    )


def test_curvature_that_noise_does_not_hide_shortens_steps():
    """No step may be more than twice as long as the curvature along it allows."""
    spectrum = np.append(21.0, np.ones(99))
    for seed in range(20):
        metric = hidden_metric(spectrum, seed)
        assert metric.matrix[0, 0] > spectrum[0] / 2
        assert (metric.values[1:] == 10.0).all()


def test_rows_that_steps_shrink_have_less_curvature():
    assert (hidden_metric(np.append(21.0, np.ones(99)), 0, 0.5).values == 10.0).all()
    assert hidden_metric(np.append(42.0, np.ones(99)), 0, 0.5).largest > 21


def test_noise_is_taken_for_no_curvature_where_there_is_none():
    for seed in range(20):
        assert (hidden_metric(np.ones(100), seed).values == 10.0).all()


def sparse_problem(n=4_000, d=80, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.standard_t(3, (n, d))
    return X, X[:, 0] - 2 * X[:, 1] + X[:, 2] + rng.standard_t(3, n)


def test_features_leave_where_most_say_nothing():
    X, y = sparse_problem(n=20_000)
    model = DPLinearRegression(epsilon=1.0, delta=1e-6, **SIMULATED).fit(X, y)
    left = model.coef_ == 0
    assert not left[:3].any()
    assert left[3:].mean() > 0.7
    ends = model.conf_int()
    assert (ends[:, 1] > ends[:, 0]).all()
    without = np.array([1, -2, 1] + [0] * 77)
    assert np.mean((ends[:, 0] <= without) & (without <= ends[:, 1])) > 0.9


def test_no_feature_leaves_where_all_say_something():
    rng = np.random.default_rng(0)
    X = rng.standard_t(3, (20_000, 60))
    y = X @ rng.choice([-1, 1], 60) + rng.standard_t(3, 20_000)
    model = DPLinearRegression(epsilon=1.0, delta=1e-6, **SIMULATED).fit(X, y)
    assert (model.coef_ != 0).all()


def test_a_domain_that_ties_slopes_keeps_all():
    X, y = sparse_problem()
    estimator = DPGeneralizedLinearEstimator(
        domain=L1Ball(radius=10.0), epsilon=3.0, delta=1e-6, **SIMULATED
    )
    assert isinstance(estimator._default(), ScaledDescent)
    assert np.mean(estimator.fit(X, y).coef_ == 0) < 0.9


def test_many_slopes_without_an_effect_are_taken_for_noise():
    """Of few nobody can tell, and they are left alone."""
    rng = np.random.default_rng(0)
    few, many = (np.mean([probabilities(rng.normal(size=(d, 1)), np.ones(d)).mean()
                          for _ in range(20)]) for d in (5, 200))  # fmt: skip
    assert many < 0.6
    assert few > 0.9


def test_under_much_noise_few_strong_effects_on_labels_are_found():
    """The share of right labels is .67 without shrinking, and .5 for the constant."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(4_000, 200))
    y = (3 * X[:, 0] + X[:, 1] + rng.logistic(size=4_000) > 0).astype(int)
    estimator = DPLogisticRegression(epsilon=3.0, delta=1e-6, classes=[0, 1], **SIMULATED)
    model = estimator.fit(X[:1_000], y[:1_000])
    assert model.n_iter_ == 16
    assert np.mean(model.predict(X[1_000:]) == y[1_000:]) > 0.76
    strongest = np.abs(model.coef_).argmax()
    assert strongest == 0
    assert model.coef_noise_std_.min() > 0


def test_features_that_count_for_nothing_are_no_evidence_of_noise():
    """Of 600 features, too many for second moments, 570 are constant."""
    active = np.arange(600) < 30
    metric = Preconditioner.flat(active), Preconditioner._alike(active)
    for deviations in (m.deviations(np.ones(600), 600) for m in metric):
        assert (deviations[:30] > 0).all()
        assert not deviations[30:].any()
        w = np.where(active, np.random.default_rng(0).normal(0, 1.8, 600), 0.0)[:, None]
        kept = probabilities(w * deviations[:1], deviations) * w
        assert np.abs(kept).sum() > 0.7 * np.abs(w).sum()


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
    labels = list(range(26))
    estimator = DPLogisticRegression(epsilon=0.5, delta=1e-6, classes=labels, **SIMULATED)
    assert estimator.fit(X[:6_000], y[:6_000]).score(X[6_000:], y[6_000:]) > 0.45


@pytest.mark.parametrize(
    ("targets", "labels", "most"),
    [("real", 2, CROWDED), ("class", 2, CROWDED_LABELS), ("class", 8, 2 * CROWDED_LABELS)],
)
def test_few_are_selected_where_noise_over_all_is_large(targets, labels, most):
    fine = ScaledDescent(targets=targets)
    either = FewOrAll.of(fine, fine, labels)
    edge = most * 1_000 / np.sqrt(MANY)
    for multiplier, d, chosen in (
        (edge * 1.01, MANY, either.few),
        (edge * 0.99, MANY, either.every),
        (edge * 9.99, MANY - 1, either.every),
    ):
        problem = Problem(n=1_000, d=d, intercept=True)
        assert either.plan(multiplier, problem) == chosen.plan(multiplier, problem)


def test_intervals_are_refused_after_a_selection():
    X, y = sparse_problem(n=2_000, d=100)
    model = DPLinearRegression(epsilon=1.0, delta=1e-6, **SIMULATED).fit(X, y)
    assert 0 < np.count_nonzero(model.coef_) <= 10
    assert (np.isnan(model.coef_noise_std_) == (model.coef_ == 0)).all()
    with pytest.raises(InvalidInput, match="few were selected"):
        model.conf_int()


@pytest.mark.parametrize(("n", "d", "epsilon"), [
    (1_000, 49, 0.3), (1_000, 49, 5.0), (3_000, 60, 1.0), (3_000, 60, 5.0), (3_000, 300, 0.3),
])  # fmt: skip
@pytest.mark.parametrize("classes", [None, [0, 1]])
def test_fits_spend_what_was_planned_also_for_bought_labels(n, d, epsilon, classes):
    X, y = sparse_problem(n, d)
    estimator = DPLogisticRegression(classes=classes, epsilon=epsilon, **SIMULATED)
    fitted = estimator.fit(X, y > 0) if classes is None else estimator.fit(X, (y > 0).astype(int))
    assert len(fitted.privacy_.plan) == len(fitted.plan_.releases)
    assert fitted.coef_.shape == (1, d)
