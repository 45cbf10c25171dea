"""Intercepts: a mean for squares, a quantile for its loss, and none that noise makes."""

from __future__ import annotations

import math

import numpy as np
import pytest

from privtail.default.intercept import MatchQuantile, MeanDerivative
from privtail.errors import AccuracyWarning
from privtail.linear_model import (
    DPHuberRegressor,
    DPLADRegressor,
    DPLinearRegression,
    DPQuantileRegressor,
)
from privtail.losses import (
    QuantileLoss,
    SquaredLoss,
)
from privtail.trusted.mechanisms.noise import GaussianNoise
from privtail.trusted.problem import Problem
from tests.default.conftest import identity, released, staged
from tests.default.test_pipeline import SQUARES

SIMULATED = {"noise": "simulated"}
LITTLE = MeanDerivative(GaussianNoise(1.0))


def test_a_release_is_the_clipped_mean_derivative():
    y = np.array([-1.0, 0.0, 50.0, 2.0] * 500)
    stage = MeanDerivative(GaussianNoise(1e-6))

    class Once:
        plan = stage.plan

        def run(self, fit):
            self.seen = stage.release(fit, SquaredLoss(), fit.w, 3.0)

    once = Once()
    staged([once], np.ones((2_000, 1)), y)
    assert once.seen == pytest.approx(-np.mean(np.clip(y, -3, 3)), abs=1e-4)
    assert stage.deviation(Problem(n=2_000, d=1, intercept=True)) == pytest.approx(1e-6 / 2_000)


@pytest.mark.parametrize("unit", [0.4, 1.0, 2.5])
@pytest.mark.parametrize("start", [-1.0, 1.0])
def test_an_intercept_moves_to_its_quantile_whatever_the_unit(unit, start):
    y = np.random.default_rng(0).lognormal(size=20_000)
    fit = staged(
        [MatchQuantile(MeanDerivative(GaussianNoise(30.0), releases=3))], np.zeros((len(y), 1)), y,
        QuantileLoss(quantile=0.8), w=np.array([[0.0], [start + np.quantile(y, 0.8)]]),
        standard=identity(1, scale=unit),
    )  # fmt: skip
    assert np.mean(y < fit.w[1, 0]) == pytest.approx(0.8, abs=0.03)


@pytest.mark.parametrize("q", [math.ulp(0.0), 1 - math.ulp(0.5)])
@pytest.mark.parametrize("start", [-1e9, 1e9])
def test_the_most_extreme_quantiles_have_a_model(q, start):
    """All targets are on one side: the fraction below is then cut where a normal score is finite.

    It was infinite there, and a fit that was paid for ended in a division by zero.
    """
    fit = staged(
        [MatchQuantile(MeanDerivative(GaussianNoise(30.0), releases=3))], np.zeros((500, 1)),
        np.zeros(500), QuantileLoss(quantile=q), w=np.array([[0.0], [start]]),
        standard=identity(1),
    )  # fmt: skip
    assert np.isfinite(fit.w).all()


# ---------------------------------------------------------------- whole fits


@pytest.mark.parametrize("q", [0.1, 0.95])
def test_a_model_of_a_quantile_covers_so_many_new_rows(q):
    """The deviation of three fits was .003; without the stage 3 % lay below where .1 should."""
    off = []
    for seed in range(3):
        rng = np.random.default_rng(seed)
        X = rng.normal(size=(60_000, 3))
        y = X @ [1.0, -2.0, 0.5] + rng.normal(size=len(X))
        model = DPQuantileRegressor(q, random_state=seed, **SIMULATED).fit(X[:20_000], y[:20_000])
        off.append(np.mean(y[20_000:] < model.predict(X[20_000:])) - q)
    assert np.abs(off).max() < 0.015


@pytest.mark.parametrize("sign", [1.0, -1.0])
@pytest.mark.parametrize("share", [0.6, 0.94])
def test_a_quantile_that_many_zeros_have_is_zero(share, sign):
    """Of 30,000 targets. Predictions below all of them cost 1.3 to 4 times as much as zeros do."""
    rng = np.random.default_rng(0)
    y = np.where(rng.random(30_000) < share, 0.0, rng.lognormal(3, 1, 30_000))
    for q in (0.05, 0.1, 0.2):
        level = q if sign > 0 else 1 - q
        model = DPQuantileRegressor(level, epsilon=3.0, random_state=0, **SIMULATED)
        found = model.fit(rng.normal(size=(30_000, 2)), sign * y).predict(np.zeros((1, 2)))
        assert found == pytest.approx([0.0], abs=1e-15)


def test_skewed_noise_moves_no_slope_and_the_intercept_is_a_mean():
    rng = np.random.default_rng(0)
    X, w = rng.lognormal(0, 1.5, (100_000, 4)), np.array([1.0, -1.0, 0.5, 0.0])
    y = X @ w + rng.lognormal(0, 1.5, len(X))
    found = [released(X, y, algorithm=SQUARES, random_state=s).w[:, 0] for s in range(3)]
    assert np.median([np.linalg.norm(v[:4] - w) for v in found]) < 0.01
    assert found[1][4] == pytest.approx(np.exp(1.125), rel=0.1)


def test_an_intercept_that_noise_hides_is_that_of_the_constant():
    """Steps of clipped residuals went to .3 of the mean: RMSE 2 % above that of a constant.

    Noise of the released mean is a quarter of it; over 40 seeds the part is .87 on average.
    """
    parts = []
    for seed in range(8):
        rng = np.random.default_rng(seed)
        X = rng.normal(size=(3_000, 8))
        some = rng.random(3_000) < 1 / (1 + np.exp(1.5 - 1.3 * X[:, 0]))
        y = np.where(some, np.maximum(0, 10 + 5 * X[:, 0]), 0)
        model = DPLinearRegression(epsilon=0.7, delta=1e-6, random_state=seed, **SIMULATED)
        fit = model.fit(X, y).predict(X)
        parts.append(np.mean(fit) / np.mean(y))
        assert np.mean((fit - y) ** 2) < 1.02 * np.var(y)
    assert np.mean(parts) > 0.65


def test_a_constant_keeps_the_tail_that_noise_hides_in_the_residuals():
    """90 % zeros and a Pareto tail: the mean of 12 fits was .24 of the true one.

    Over 60 seeds a fit has .59 with a deviation of .22: 12 are below .4 once in 700 times.
    """
    parts = []
    for seed in range(12):
        rng = np.random.default_rng(seed)
        X, some = rng.normal(size=(5_000, 5)), rng.random(5_000) < 0.1
        y = np.where(some, 1 + rng.pareto(1.5, 5_000), 0)
        model = DPLinearRegression(epsilon=1.0, random_state=seed, **SIMULATED).fit(X, y)
        parts.append(model.intercept_ / np.mean(y))
    assert np.mean(parts) > 0.4


def test_slopes_of_mostly_zeros_keep_the_tail_that_noise_hides_in_the_residuals():
    """Lognormal claims that an indicator explains: predictions had .32 of their mean.

    Over 40 seeds a fit has .71 with a deviation of .16: 12 are below .5 once in 300,000 times.
    """
    parts = []
    for seed in range(12):
        rng = np.random.default_rng(seed)
        X = (rng.random((5_000, 5)) < 0.3).astype(float)
        some = rng.random(5_000) < 0.1 + 0.5 * X[:, 0]
        y = np.where(some, rng.lognormal(7, 1.5, 5_000), 0)
        model = DPLinearRegression(epsilon=1.0, random_state=seed, **SIMULATED).fit(X, y)
        assert model.coef_.any()
        parts.append(np.mean(model.predict(X)) / np.mean(y))
    assert np.mean(parts) > 0.5


def test_few_far_rows_do_not_move_every_prediction():
    """200 of 50,000 rows hold up to 1e5. Residuals there moved the intercept by -200.

    All predictions ended at one end of the range, at 33 times the error of the constant, and the
    constant had moved too. Noise for residuals as large did the same.
    """
    for seed in range(3):
        rng = np.random.default_rng(seed)
        X, noise = rng.normal(size=(50_000, 2)), rng.normal(size=50_000)
        y = X[:, 0] + noise
        far = rng.permutation(50_000)[:200]
        X[far, 0], y[far] = rng.uniform(0, 1e5, 200), noise[far]
        model = DPLinearRegression(epsilon=10.0, random_state=seed, **SIMULATED).fit(X, y)
        assert abs(model.intercept_) < 0.1
        assert model.score(X, y) > 0.4


def test_slopes_are_not_kept_for_what_their_intercept_gains():
    """Amounts of which 70 % are zero, beside features of no effect: 10 of 14 fits kept slopes.

    Now 3 do: the constant has both estimates of the mean, as they have.
    """
    kept = 0
    for seed in range(14):
        rng = np.random.default_rng(seed)
        X = rng.normal(size=(5_000, 5))
        y = np.where(rng.random(5_000) < 0.7, 0, rng.lognormal(7.8, 1.0, 5_000))
        model = DPLinearRegression(epsilon=1.0, random_state=seed, **SIMULATED).fit(X, y)
        kept += bool(model.coef_.any())
    assert kept <= 4


def test_missing_rows_do_not_pull_the_intercept_of_least_squares():
    """Half are missing: a mean over all n rows went from the centre, 7.4, half of the way to it."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(100_000, 3))
    y = X @ [3.0, -3.0, 1.5] + rng.lognormal(2.0, 1.0, 100_000)
    X[rng.random(len(X)) < 0.5, 0] = np.nan
    found = [
        DPLinearRegression(epsilon=1.0, random_state=seed, **SIMULATED).fit(X, y).intercept_
        for seed in range(3)
    ]
    assert np.abs(np.array(found) - math.exp(2.5)).max() < 0.6


def test_missing_rows_do_not_pull_the_constant_that_slopes_are_compared_with():
    """It would be 9.8 of 12.2, and noise in slopes would be kept for the sake of the intercept."""
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(100_000, 3)), rng.lognormal(2.0, 1.0, 100_000)
    X[rng.random(len(X)) < 0.5, 0] = np.nan
    for seed in range(3):
        model = DPLinearRegression(epsilon=1.0, random_state=seed, **SIMULATED).fit(X, y)
        assert np.abs(model.coef_).max() < 0.1
        assert abs(model.intercept_ - math.exp(2.5)) < 1.0


@pytest.mark.parametrize("estimator", [DPLinearRegression, DPHuberRegressor])
@pytest.mark.parametrize("complete", [0.4, 0.1])
def test_the_few_rows_that_are_complete_are_fitted(estimator, complete):
    """Of half or more of n nothing shows; of those that count it does, and the statement says so.

    With a tenth no slope was found, and predictions were farther off than those of a constant. The
    range of the target cuts .04 of the variance of these: 4 % of the 5,000 rows show no tail.
    """
    rng = np.random.default_rng(0)
    X = rng.lognormal(size=(50_000, 5))
    y = X @ [1.0, -1.0, 0.5, 0.0, 0.0] + rng.normal(size=50_000)
    missing = np.where(rng.random(X.shape) > complete**0.2, np.nan, X)
    model = estimator(epsilon=1.0, delta=1e-6, random_state=0, **SIMULATED).fit(missing, y)
    assert np.mean((model.predict(X) - y) ** 2) < 0.15 * np.var(y)
    assert any("A row does not count if a number" in note for note in model.privacy_.notes)


@pytest.mark.parametrize("epsilon", [0.3, 0.6])
@pytest.mark.parametrize("shift", [1e4, 3e5])
def test_an_intercept_is_found_however_far_from_zero(epsilon, shift):
    """It was off by up to 300 deviations; medians of five."""
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


def test_a_constant_of_a_target_whose_scale_was_not_found_is_where_the_steps_led():
    """Fifteen million spreads from zero: the released mean is off by more than three mostly."""
    off = []
    for seed in range(6):
        rng = np.random.default_rng(seed)
        X = rng.normal(size=(2_000, 20))
        y = X @ rng.normal(size=20) / np.sqrt(20) + rng.normal(size=2_000) + 1.5e7
        model = DPLinearRegression(epsilon=0.5, delta=1e-6, random_state=seed, **SIMULATED)
        off.append(np.sqrt(np.mean((model.fit(X, y).predict(X) - y) ** 2)) / y.std())
    assert np.median(off) < 3


@pytest.mark.parametrize("epsilon", [1.0, 4.0])
@pytest.mark.parametrize("rest", ["lognormal", "one other"])
def test_a_mean_beside_a_spike_that_is_not_zero_is_found(rest, epsilon):
    """Most targets are 7.3; a tenth are larger. The intercept was 7.3, the mean is 12 or 13."""
    for seed in range(3):
        rng = np.random.default_rng(seed)
        X = rng.normal(size=(20_000, 3))
        other = rng.lognormal(4, 0.5, 20_000) if rest == "lognormal" else 50.0
        y = np.where(rng.random(20_000) < 0.1, 7.3 + other, 7.3)
        model = DPLinearRegression(epsilon=epsilon, noise="simulated", random_state=seed).fit(X, y)
        assert abs(model.predict(X).mean() - y.mean()) < 0.1 * y.std()


def test_a_spike_whose_rest_noise_hides_is_told():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(20_000, 3))
    y = np.where(rng.random(20_000) < 0.01, 7.3 + rng.lognormal(4, 0.5, 20_000), 7.3)
    model = DPLinearRegression(noise="simulated", random_state=0)
    with pytest.warns(AccuracyWarning, match="most values are equal"):
        model.fit(X, y)
    assert not model.coef_.any()


def test_the_median_of_a_target_that_is_mostly_one_number_is_that_number():
    """Three moves halved the way back to 42: the error was up to 2.5 times the constant's."""
    for seed in range(5):
        rng = np.random.default_rng(seed)
        X, y = rng.normal(size=(20_000, 4)), np.full(20_000, 42.0)
        other = rng.random(20_000) < 0.05
        y[other] += rng.normal(0, 5, other.sum())
        model = DPLADRegressor(epsilon=10.0, random_state=seed, **SIMULATED).fit(X, y)
        assert np.mean(np.abs(y - model.predict(X))) < 1.05 * np.mean(np.abs(y - 42))
