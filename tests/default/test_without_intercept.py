"""Features far from zero in models without an intercept, where nothing centres them."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.metrics import mean_poisson_deviance

from privtail.linear_model import DPLADRegressor, DPLinearRegression, DPPoissonRegressor


def far(seed, n):
    """A time in seconds, which stands for the intercept, and three light features."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 4))
    X[:, 0] = 1.6e9 + 1e4 * rng.random(n)
    return rng, X


@pytest.mark.parametrize("kind", [DPLinearRegression, DPLADRegressor])
def test_a_feature_far_from_zero_leaves_the_others_their_slopes(kind):
    """In units of its spread a time made rows so long that other slopes were lost."""
    rng, X = far(0, 20_000)
    y = X @ [5 / 1.6e9, 1.0, -0.5, 0.0] + rng.normal(size=20_000)
    model = kind(epsilon=1.0, fit_intercept=False, noise="simulated", random_state=0).fit(X, y)
    np.testing.assert_allclose(model.coef_[1:], [1.0, -0.5, 0.0], atol=0.1)
    assert model.coef_[0] * 1.6e9 == pytest.approx(5.0, abs=0.2)


def test_predicted_counts_have_a_least_value():
    """Without one, predictions of 1e-13 had a deviance of 1.5 to 1.8 times that of predicting 1."""
    rng, X = far(1, 40_000)
    y = rng.poisson(np.exp(X @ [-3 / 1.6e9, 0.3, -0.3, 0.0])).astype(float)
    model = DPPoissonRegressor(
        epsilon=1.0, fit_intercept=False, noise="simulated", random_state=1
    ).fit(X[:30_000], y[:30_000])
    assert 1e-4 < model.target_range_[0] < 0.05
    deviances = [
        mean_poisson_deviance(y[30_000:], predicted)
        for predicted in (model.predict(X[30_000:]), np.ones(10_000))
    ]
    assert deviances[0] < 0.2 * deviances[1]
