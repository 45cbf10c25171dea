"""What a fitted model says of the way to it: released numbers, by name."""

from __future__ import annotations

import math

import numpy as np
import pytest

from privtail.linear_model import DPLinearRegression, DPLogisticRegression, DPSparseRegressor

RNG = np.random.default_rng(0)
X = RNG.normal(size=(4_000, 4)) * [1.0, 10.0, 0.1, 0.0] + [0.0, 5.0, 0.0, 7.0]
Y = X @ [1.0, 0.2, -10.0, 0.0] + RNG.normal(size=4_000)
SIMULATED = {"noise": "simulated", "random_state": 0}


def test_a_descent_reports_what_it_found():
    report = DPLinearRegression(epsilon=2.0, **SIMULATED).fit(X, Y).report_
    assert report["regime"] == "all features"
    assert report["feature_scale"][:3] == pytest.approx([1.0, 10.0, 0.1], rel=0.2)
    assert report["feature_location"][1] == pytest.approx(5.0, abs=2.0)
    assert report["feature_used"].tolist() == [True, True, True, False]
    assert report["target_scale"] == pytest.approx(Y.std(), rel=0.2)
    assert report["accepted"]
    assert report["reasons"] == ()
    assert min(report["gain_over_noise"]) > 2
    assert 0 < report["clipping_threshold"] < math.inf
    assert 0.5 <= report["reach"] <= 100.0
    assert report["row_length"] == pytest.approx(2.0), "three features and the intercept"


@pytest.mark.parametrize(
    ("model", "regime"),
    [
        (DPLinearRegression(epsilon=0.01, **SIMULATED), "intercept only"),
        (DPLogisticRegression(epsilon=2.0, classes=[0, 1], **SIMULATED), "all features"),
        (DPLinearRegression(algorithm="clipped-spgd", **SIMULATED), "published algorithm"),
        (DPLinearRegression(epsilon=math.inf, delta=0.0), "without privacy"),
    ],
)
def test_every_regime_says_which_it_is(model, regime):
    y = Y if isinstance(model, DPLinearRegression) else (Y > 0).astype(int)
    assert model.fit(X, y).report_["regime"] == regime


def test_a_selection_of_features_says_so():
    wide = np.random.default_rng(2).standard_t(3, (1_000, 60))
    model = DPSparseRegressor(2, epsilon=1.0, delta=1e-4, **SIMULATED)
    report = model.fit(wide, 3 * wide[:, 7] - 3 * wide[:, 41]).report_
    assert report["regime"] == "few features"
    assert np.flatnonzero(report["feature_used"]).tolist() == [7, 41]


def test_a_model_without_slopes_reports_the_reasons():
    noise = np.random.default_rng(1).normal(size=len(X))
    model = DPLinearRegression(epsilon=0.1, noise="simulated", random_state=1).fit(X, noise)
    assert not model.coef_.any()
    assert not model.report_["accepted"]
    assert model.report_["reasons"][0] in model.privacy_.notes
    assert model.report_["gain_over_noise"][0] < 2
