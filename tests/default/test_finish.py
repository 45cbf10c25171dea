"""What a user is told: the model, its noise, and why slopes are zero."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

from privtail.default import ScaledDescent
from privtail.default.finish import HARMFUL, PENALIZED
from privtail.domains import L1
from privtail.errors import AccuracyWarning
from privtail.inference import SlopeErrors
from privtail.linear_model import (
    DPGammaRegressor,
    DPGeneralizedLinearEstimator,
    DPLADRegressor,
    DPLasso,
    DPLinearRegression,
    DPLogisticRegression,
    DPPoissonRegressor,
)
from privtail.losses import LogisticLoss
from privtail.summaries.standardization import Target
from tests.default.conftest import linear, released

SIMULATED = {"noise": "simulated"}


def test_a_model_without_slopes_says_why():
    X, y, _ = linear()
    assert released(X, y).notes == ()
    noise = np.random.default_rng(1).normal(size=len(y))
    for target, epsilon, note in (
        (noise, 0.05, "is not significant, so the slopes"),
        (np.full_like(y, 7.0), 1.0, "scale of the target could not be estimated"),
        (y[:300], 0.05, "no cell of its histogram is above the noise"),
    ):
        result = released(X[: len(target)], target, epsilon=epsilon)
        assert not result.w[:3].any()
        assert not SlopeErrors.of(result.slopes, 3).noise.any()
        assert note in result.notes[0]
        assert result.report["reasons"][0] == result.notes[0]
        assert not result.report["accepted"]


@pytest.mark.parametrize(("size", "note"), [(1e30, "divide"), (1e-30, "multiply")])
def test_a_target_of_a_size_that_no_cell_tells_is_to_be_rescaled(size, note):
    X, y, _ = linear()
    notes = released(X, size * y).notes
    assert f"{note} a target of such a size by a public number" in notes[0]


def test_a_penalty_that_leaves_no_slope_is_the_reason_for_a_constant():
    """And not the noise, of which a larger epsilon would help."""
    X, y, _ = linear(n=4_000)
    with pytest.warns(AccuracyWarning, match="The penalty or the constraint sets all slopes to"):
        model = DPLasso(alpha=1e3, noise="simulated", random_state=0).fit(X, y)
    assert model.report_["reasons"] == (PENALIZED,)
    with pytest.warns(AccuracyWarning, match="The scale of the target could not be estimated"):
        DPLasso(noise="simulated", random_state=0).fit(X, np.full(4_000, 5.0))


@pytest.mark.parametrize("intercept", [True, False])
def test_a_penalty_that_leaves_no_slope_is_the_reason_where_labels_are_even(intercept):
    """Slopes that are all zero are not "kept, because they likely help"."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(4_000, 3))
    labels = np.where(rng.random(4_000) < 1 / (1 + np.exp(-X[:, 0])), 1.0, -1.0)
    model = DPGeneralizedLinearEstimator(
        loss="logistic", domain=L1(alpha=100.0), fit_intercept=intercept, noise="simulated",
        random_state=0,
    )  # fmt: skip
    with pytest.warns(AccuracyWarning, match="The penalty or the constraint sets all slopes to"):
        model.fit(X, labels)
    assert not model.coef_.any()
    assert model.report_["reasons"] == (PENALIZED,)


def test_slopes_that_harm_a_few_rows_are_not_called_insignificant():
    """More budget would not help against 400 rows that go the other way."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(20_000, 2))
    y = 0.3 * X[:, 0] + rng.normal(size=20_000)
    X[:400, 0], y[:400] = 20, -6
    with pytest.warns(AccuracyWarning, match="seem to worsen a few far more"):
        model = DPLinearRegression(epsilon=1, noise="simulated", random_state=0).fit(X, y)
    near, far = model.report_["gain_over_noise"]
    assert near > 5
    assert far < -2
    assert model.report_["reasons"] == (HARMFUL,)


def test_a_constant_of_amounts_in_few_rows_may_be_too_low():
    """It is 558 to 824 where means are 820 to 940: noise hides the tail of the residuals."""
    for seed in range(3):
        rng = np.random.default_rng(seed)
        X, amounts = rng.normal(size=(5_000, 5)), rng.lognormal(7.5, 1.0, 5_000)
        y = np.where(rng.random(5_000) < 0.3, amounts, 0.0)
        note = "predictions are too low on average. privtail.private_mean"
        assert note in " ".join(released(X, y, epsilon=1.0).notes)
        assert note not in " ".join(released(X, X[:, 0] + y**0, epsilon=1.0).notes)


@pytest.mark.parametrize("model", [DPLADRegressor, DPLinearRegression])
def test_a_target_far_from_zero_warns_of_its_intercept(model):
    """1e9 beside a scale of 4: errors were 20 times the constant's, and nothing said so."""
    X, y, _ = linear(n=20_000)
    for seed in range(3):
        with pytest.warns(AccuracyWarning, match="intercept may be off by as much") as caught:
            model(epsilon=3.0, delta=1e-6, random_state=seed, **SIMULATED).fit(X, 1e9 + y)
        assert "subtract" in str(caught[0].message)


def test_slopes_are_not_accepted_for_a_better_intercept(monkeypatch):
    """1e9 beside a scale of 3: the intercept moves after the start; slopes were kept in 7 of 8."""

    def accepted(seed):
        X, y, _ = linear(seed=seed, n=5_000)
        model = DPLADRegressor(epsilon=1.0, random_state=seed, **SIMULATED)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", AccuracyWarning)
            return model.fit(X, 1e9 + y).report_["accepted"]

    assert sum(map(accepted, range(8))) <= 3
    monkeypatch.setattr(Target, "without_scale", False)
    assert sum(map(accepted, range(8))) > 3, "the twin is caught"


@pytest.mark.parametrize("model", [DPPoissonRegressor, DPGammaRegressor])
def test_amounts_that_no_prediction_reaches_are_told(model):
    """Predictions end at e^30: of a mean of 1e16 they were a thousandth, and nothing said so."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(5_000, 2))
    y = rng.gamma(5, 1e10 * np.exp(0.5 * X[:, 0]) / 5)
    options = {"epsilon": 2.0, "random_state": 0, **SIMULATED}
    assert not model(**options).fit(X, y).warnings_
    with pytest.warns(AccuracyWarning, match="predicted means are at most e"):
        fitted = model(**options).fit(X, 1e6 * y)
    assert fitted.predict(X).max() < 1.1e13


def test_noise_of_a_feature_that_is_not_used_is_not_bounded():
    X, y, _ = linear(n=5_000)
    X[:, 1] = 0.0
    result = released(X, y, epsilon=2.0)
    assert result.w[1, 0] == 0.0
    assert np.isinf(SlopeErrors.of(result.slopes, 3).noise).tolist() == [False, True, False]


def test_stated_noise_is_not_less_than_what_is_seen():
    """Deviations of 30 fits of the same records, slope by slope."""
    X, y, _ = linear(n=2_000)
    models = [
        DPLinearRegression(epsilon=2.0, delta=1e-6, random_state=seed, **SIMULATED).fit(X, y)
        for seed in range(30)
    ]
    seen = np.std([model.coef_ for model in models], axis=0)
    stated = np.mean([model.coef_noise_std_ for model in models], axis=0)
    assert (seen < 1.3 * stated).all()
    assert (stated < 5 * seen).all()


def test_margins_of_labels_end_where_the_result_says():
    X, y, _ = linear(n=4_000)
    y = (y > 2).astype(int)
    model = DPLogisticRegression(epsilon=2.0, classes=[0, 1], random_state=0, **SIMULATED)
    low, high = model.fit(X, y).margin_range_
    assert model.decision_function([[1e9, 0, 0], [-1e9, 0, 0]]).tolist() == [high, low]
    assert low < model.intercept_[0] < high


def test_labels_report_how_much_of_the_margins_was_kept():
    X, y, _ = linear(n=4_000)
    result = released(
        X, (y > 2).astype(float), LogisticLoss(), 2.0, ScaledDescent(targets="binary"),
        classes=(0, 1),
    )  # fmt: skip
    report = result.report
    assert 0 < report["margins_kept"] <= 1
    assert report["regime"] == "all features"
    assert len(report["gain_over_noise"]) == 2
    assert "target_scale" not in report
