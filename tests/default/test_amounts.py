"""Counts with a log link: their mean, and how far they reach."""

from __future__ import annotations

import math

import numpy as np
import pytest
from sklearn.metrics import mean_tweedie_deviance

from privtail.default import ScaledDescent
from privtail.default.amounts import NONE_DETECTED, StartAtMeanAmount
from privtail.default.finish import NO_FEATURE
from privtail.default.intercept import MeanDerivative
from privtail.errors import AccuracyWarning
from privtail.linear_model import DPLinearRegression, DPPoissonRegressor, DPTweedieRegressor
from privtail.losses import PoissonLoss
from privtail.trusted.mechanisms.noise import GaussianNoise
from tests.default.conftest import released, staged

SIMULATED = {"noise": "simulated"}


def started(y, noise=1.0, seed=0):
    stage = StartAtMeanAmount(GaussianNoise(noise), MeanDerivative(GaussianNoise(noise)))
    return staged([stage], np.ones((len(y), 1)), y, PoissonLoss(), random_state=seed)


@pytest.mark.parametrize("mean", [0.05, 1.0, 30.0, 1e4])
def test_a_descent_begins_at_the_mean_count_in_units_of_it(mean):
    y = np.random.default_rng(0).poisson(mean, 5_000).astype(float)
    fit = started(y)
    assert math.exp(fit.intercept_only[-1, 0]) == pytest.approx(y.mean(), rel=0.1)
    assert fit.loss.mean == pytest.approx(y.mean(), rel=0.1)
    assert fit.domain.factor == pytest.approx(1 / fit.loss.mean)
    low, high = fit.margin_range
    assert 0 < math.exp(low) < 0.02 * max(y.mean(), 1.0)  # half the noise of the mean
    assert math.exp(high) >= 1.9 * y.mean()
    assert fit.notes == ()


@pytest.mark.parametrize("count", [1e13, 2.0**62, 1e200])
def test_margins_of_enormous_counts_have_an_order(count):
    """The lowest lay above the highest, and the fit was refused after the charge."""
    low, high = started(np.full(500, count)).margin_range
    assert low <= high
    with pytest.warns(AccuracyWarning):
        DPPoissonRegressor(epsilon=3.0, random_state=0, **SIMULATED).fit(
            np.random.default_rng(0).normal(size=(500, 2)), np.full(500, count)
        )


def test_a_few_enormous_counts_move_the_mean_no_farther_than_it_is_clipped():
    y = np.random.default_rng(0).poisson(2.0, 5_000).astype(float)
    y[:3] = 1e12
    assert math.exp(started(y, 20.0).intercept_only[-1, 0]) < 4.0


def test_where_nothing_but_zeros_was_detected_that_is_said():
    for seed in range(3):
        fit = started(np.zeros(500), 30.0, seed)
        assert fit.notes == (NONE_DETECTED,)
        assert math.exp(fit.intercept_only[-1, 0]) <= 1.0


def test_where_no_amounts_were_detected_the_model_is_a_constant():
    """Thirty claims of some 1,000 each: slopes made the deviance 22 to 50 times the constant's.

    Nothing tells the size of a claim, so that the constant is too low, and costs 16 times as much.
    """
    for seed in range(3):
        rng = np.random.default_rng(seed)
        X = rng.normal(size=(3_000, 5))
        y = np.where(rng.random(3_000) < 0.01, rng.gamma(2, 500, 3_000), 0.0)
        with pytest.warns(AccuracyWarning):
            model = DPTweedieRegressor(epsilon=1.0, random_state=seed, **SIMULATED).fit(X, y)
        assert NONE_DETECTED in model.privacy_.notes
        assert NO_FEATURE in model.privacy_.notes
        assert not model.coef_.any()
        assert model.predict(X)[0] < 1


@pytest.mark.parametrize("rate", [-1.0, 2.0, 7.0])
def test_counts_with_an_exponential_link(rate):
    rng = np.random.default_rng(0)
    X, w = rng.normal(size=(20_000, 3)), np.array([0.5, -0.5, 0.2])
    y = rng.poisson(np.exp(X @ w + rate)).astype(float)
    found = released(X, y, PoissonLoss(), algorithm=ScaledDescent(targets="count")).w[:, 0]
    assert np.abs(found[:3] - w).max() < 0.2
    assert abs(found[3] - rate) < 0.2


def test_counts_that_are_mostly_zero_are_fitted_by_squares_too():
    """Three narrower thresholds, one by one, lost two fifths of the slopes."""
    closed = []
    for seed in range(3):
        rng = np.random.default_rng(seed)
        X = rng.normal(size=(20_000, 1)) + 0.5 * rng.normal(size=(20_000, 10))
        y = rng.negative_binomial(0.3, 1 / (1 + 2 * np.exp(0.7 * (X[:, 0] - X[:, 1]))))
        design = np.column_stack([X, np.ones(len(y))])
        best = design @ np.linalg.lstsq(design, y, rcond=None)[0]
        model = DPLinearRegression(epsilon=2.0, delta=1e-6, random_state=seed, **SIMULATED)
        gains = [np.var(y) - np.mean((fit - y) ** 2) for fit in (model.fit(X, y).predict(X), best)]
        closed.append(gains[0] / gains[1])
    assert np.mean(closed) > 0.65


def test_units_of_features_change_no_prediction():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(5_000, 2))
    y = rng.poisson(np.exp(0.5 * X[:, 0])).astype(float)
    one, other = (
        DPPoissonRegressor(epsilon=2.0, random_state=0, **SIMULATED).fit(Z, y).predict(Z)
        for Z in (X, X * [2.0**-20, 2.0**20])
    )
    assert other == pytest.approx(one, rel=1e-2)


@pytest.mark.parametrize(("kind", "power"), [(DPPoissonRegressor, 1.0), (DPTweedieRegressor, 1.5)])
def test_large_amounts_in_three_rows_of_a_hundred_keep_their_mean(kind, power):
    """Noise hides them from the residuals, but not from the amounts.

    The deviance was 1.3 and 3.4 times that of the mean, and the mean prediction .1 and .2 of it.
    """
    ratios, means = [], []
    for seed in range(4):
        rng = np.random.default_rng(seed)
        X = rng.normal(size=(20_000, 2))
        large = np.exp(6 + X[:, 0] / 2 + rng.normal(size=20_000))
        y = np.where(rng.random(20_000) < 0.97, 0.0, large)
        found = kind(epsilon=1.0, random_state=seed, **SIMULATED).fit(X[:10_000], y[:10_000])
        predicted, rest = found.predict(X[10_000:]), y[10_000:]
        constant = np.full(10_000, y[:10_000].mean())
        ratios.append(
            mean_tweedie_deviance(rest, predicted, power=power)
            / mean_tweedie_deviance(rest, constant, power=power)
        )
        means.append(predicted.mean() / rest.mean())
    assert np.median(ratios) < 1.1
    assert np.median(means) > 0.4
