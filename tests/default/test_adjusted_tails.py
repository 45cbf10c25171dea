"""Larger scales for features with heavier tails."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from sklearn.metrics import log_loss, mean_poisson_deviance, roc_auc_score

from privtail.default.tuning import Tuning
from privtail.linear_model import DPLinearRegression, DPLogisticRegression, DPPoissonRegressor
from privtail.summaries.histograms import POWERS, Histogram
from privtail.summaries.standardization import tail_adjusted
from privtail.summaries.summary import UNUSED, Summary
from tests.summaries.test_prior import counted

HEAVIER = Tuning().heavy_tail_ratio
SIMULATED = {"noise": "simulated"}


def summary(columns=3):
    """Every column has the centre 2, the scale 3 and was detected."""
    ones, yes = np.ones(columns), np.ones(columns, dtype=np.bool_)
    return Summary(2 * ones, 3 * ones, 3 * ones, 3 * ones, ones, -ones, ones, yes, yes, ones, ~yes)


def adjusted(found, features):
    """By root mean squares, as for numbers."""
    return tail_adjusted(found, found.deviations, HEAVIER, features)


def test_scales_grow_with_the_length_of_tails_that_are_heavier_than_usual():
    """By what a tail is longer than 1.5 times the usual one: of the target, or of most features."""
    found = replace(summary(5), deviations=3 * np.array([1.0, 2.0, 12.0, 1.0, 2.0]))
    assert adjusted(found, 4).scales.tolist() == [3, 3, 3 * 4.0, 3, 3]
    heavy = replace(found, deviations=np.where(np.arange(5) == 4, 36.0, found.deviations))
    assert adjusted(heavy, 4).scales.tolist() == found.scales.tolist()
    no_target = adjusted(found, 5).scales
    assert no_target == pytest.approx([3, 4, 24, 3, 4])
    alike = replace(found, deviations=12 * found.scales)
    assert adjusted(alike, 4).scales.tolist() == found.scales.tolist()
    unknown = replace(found, scales=np.full(5, UNUSED), deviations=np.full(5, UNUSED))
    assert adjusted(unknown, 4).scales.tolist() == unknown.scales.tolist()


def test_the_width_of_a_column_is_that_of_its_quantiles_and_no_code_widens_it():
    """The cells of quantiles interpolate, so the width of a normal column is about its scale."""
    rng = np.random.default_rng(0)
    normal, wide = rng.normal(0, 1, 100_000), np.exp(rng.uniform(-20, 20, 100_000))
    part = rng.random(100_000)
    columns = (normal, *(np.where(part < p, -999, normal) for p in (0.05, 0.12, 0.2)), wide)
    found = [Histogram(counted(x[:, None])[0], POWERS, 0.0).described(len(x)) for x in columns]
    *length, far = [float(s.widths[0] / s.scales[0]) for s in found]
    assert length[0] < 1.5
    assert length == pytest.approx([length[0]] * 4, rel=0.3)
    assert far == pytest.approx((np.exp(16) / 2.563) / (np.exp(10) / 1.349), rel=0.5)
    assert found[1].deviations[0] > 3 * found[0].deviations[0]


# ---------------------------------------------------------------- whole fits


@pytest.mark.parametrize(("law", "most"), [("capped", 0.9), ("root", 0.6)])
def test_a_feature_of_heavier_tails_than_the_target_is_fitted_where_its_squares_are(law, most):
    """The slope of the bulk would lead far away in the tail: to 2.7 times the constant, and .85."""
    rng = np.random.default_rng(0)
    X, z = rng.normal(size=(20_000, 5)), rng.normal(size=20_000)
    X[:, 0] = np.exp(2 * z) if law == "capped" else z**4
    effect = np.minimum(X[:, 0], 2.0) if law == "capped" else z**2
    y = effect + X[:, 1] + rng.normal(size=20_000)
    model = DPLinearRegression(epsilon=1, random_state=0, **SIMULATED).fit(X, y)
    assert np.mean((y - model.predict(X)) ** 2) < most * np.var(y)


def test_a_feature_over_many_powers_of_ten_does_not_spoil_a_model_of_counts():
    """Noise in its slope moved a tenth of the predictions to their ends: a constant was left."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(20_000, 5))
    X[:, 0] = np.exp(rng.uniform(-20, 20, 20_000))
    y = rng.poisson(np.exp(1 + 0.7 * X[:, 1]))
    told = DPPoissonRegressor(random_state=0, **SIMULATED).fit(X, y).predict(X)
    constant = np.full(len(y), y.mean())
    assert mean_poisson_deviance(y, told) < 0.6 * mean_poisson_deviance(y, constant)


def test_a_feature_over_many_powers_of_ten_does_not_hide_the_others_from_labels():
    """Noise in its slope moved margins to their ends: no more than a constant was left."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(20_000, 5))
    X[:, 0] = np.exp(rng.uniform(-20, 20, 20_000))
    y = (rng.random(20_000) < 1 / (1 + np.exp(-1.5 * X[:, 1]))).astype(int)
    model = DPLogisticRegression(classes=[0, 1], random_state=0, **SIMULATED).fit(X, y)
    assert log_loss(y, model.predict_proba(X)) < 0.82 * math.log(2)


def test_a_code_in_many_rows_does_not_hide_the_other_values_from_labels():
    """With 12 % of them, quantiles of all values were the code: AUC .60 in place of .75."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(20_000, 5))
    y = (rng.random(20_000) < 1 / (1 + np.exp(-1.5 * X[:, 0] - 0.5 * X[:, 1]))).astype(int)
    X[rng.random(20_000) < 0.12, 0] = -999
    model = DPLogisticRegression(classes=[0, 1], random_state=0, **SIMULATED).fit(X, y)
    assert roc_auc_score(y, model.predict_proba(X)[:, 1]) > 0.7


def test_one_noisy_cell_beside_a_tail_does_not_change_the_unit_of_a_feature():
    """A slope was missed by fifty times its error: .88 in place of 1."""
    rng = np.random.default_rng(0)
    X = rng.standard_t(3, (50_000, 3))
    y = X @ [1.0, 2.0, -1.0] + rng.normal(size=50_000)
    model = DPLinearRegression(epsilon=5, random_state=0, **SIMULATED).fit(X, y)
    assert model.coef_ == pytest.approx([1.0, 2.0, -1.0], abs=0.02)


def test_one_feature_that_does_not_show_does_not_hide_the_others():
    """Noise hides a feature or two of ten, of units from 1e-6 to 1e6, in most of these fits.

    Were its unit guessed too small, all rows would be as long as its values, and shrunk: then 11 of
    20 fits are the constant, whose error is 3.6.
    """
    errors = []
    for seed in range(10):
        rng = np.random.default_rng(seed)
        units = 10.0 ** rng.permutation(np.linspace(-6, 6, 10))
        X, Z = rng.normal(size=(2, 1_000, 10))
        w = np.array([1, -1, 0.5, -0.5, 0.25, -0.25, 1, -1, 2, -2])
        y = X @ w + rng.standard_t(3, 1_000)
        model = DPLinearRegression(epsilon=1.0, random_state=seed, **SIMULATED)
        errors.append(np.std(model.fit(X * units, y).predict(Z * units) - Z @ w))
    assert np.sum(np.array(errors) < 3.2) >= 8
    assert np.median(errors) < 2.2


def test_amounts_that_are_rare_and_large_are_no_disaster():
    """Their zeros show and they do not: a unit of 1, found in noise, made 1 fit in 5 useless."""
    errors = []
    for seed in range(8):
        rng = np.random.default_rng(seed)
        G = rng.normal(size=(10_000, 5))
        A = np.where(rng.random((10_000, 20)) < 0.003, 1e6 * rng.lognormal(size=(10_000, 20)), 0.0)
        X, y = np.hstack([G, A]), G.sum(axis=1) + rng.normal(size=10_000)
        model = DPLinearRegression(epsilon=1.0, random_state=seed, **SIMULATED)
        errors.append(np.std(model.fit(X[:5_000], y[:5_000]).predict(X[5_000:]) - y[5_000:]))
    assert max(errors) < 0.5 * np.sqrt(6)
