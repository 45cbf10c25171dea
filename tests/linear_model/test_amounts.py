"""Gamma and Tweedie regression: severity and pure premium."""

from __future__ import annotations

import math
import warnings
from functools import partial

import numpy as np
import pytest
from sklearn.linear_model import TweedieRegressor
from sklearn.metrics import d2_tweedie_score

from privtail import load
from privtail.errors import AccuracyWarning, InvalidInput
from privtail.linear_model import (
    DPGammaRegressor,
    DPPoissonRegressor,
    DPTweedieRegressor,
    PrivateSearchCV,
)

SIMULATED = {"noise": "simulated", "random_state": 0}
SLOPES = np.array([0.4, -0.3, 0.0])


def drawn(kind, seed=0, n=20_000, unit=1000.0):
    """Features, amounts, and the power of their variance."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 3))
    mean = np.exp(X @ SLOPES)
    if kind == "severity":
        return X, unit * mean * rng.gamma(1.0, 1.0, n), 2.0
    if kind == "heavy severity":
        return X, unit * mean * 1.5 * rng.pareto(2.5, n), 2.0
    claims = rng.poisson(0.2 * mean)
    sizes = rng.gamma(np.maximum(claims, 1e-9), unit)
    return X, np.where(claims > 0, sizes, 0.0), 1.5


@pytest.mark.parametrize(("kind", "epsilon", "part"), [
    ("severity", 1.0, 0.9), ("heavy severity", 5.0, 0.9), ("pure premium", 5.0, 0.85),
    *(pytest.param(*case, marks=pytest.mark.slow) for case in (
        ("severity", 5.0, 0.98), ("heavy severity", 1.0, 0.7), ("pure premium", 2.0, 0.5),
    )),
])  # fmt: skip
def test_most_of_what_scikit_learn_explains_without_privacy(kind, epsilon, part):
    """The median of three fits: of pure premiums one in ten predicts a constant at epsilon 2."""
    X, y, power = drawn(kind)
    Z, z, _ = drawn(kind, seed=1)
    free = TweedieRegressor(power=power, alpha=0.0, link="log", max_iter=1000).fit(X, y)
    best = d2_tweedie_score(z, free.predict(Z), power=power)
    make = partial(DPTweedieRegressor, power=power, epsilon=epsilon, noise="simulated")
    scores = [make(random_state=seed).fit(X, y).score(Z, z) for seed in range(3)]
    assert np.median(scores) > part * best


@pytest.mark.parametrize("kind", ["severity", "heavy severity", "pure premium"])
@pytest.mark.parametrize("epsilon", [0.5, 1.0])
def test_never_much_worse_than_a_constant(kind, epsilon):
    """Where noise hides the slopes, and where there are none; the constant is bought, too.

    Few rows at a small budget do not show the size of an amount; then a warning says so.
    """
    for seed in range(3):
        X, y, power = drawn(kind, seed, n=5_000)
        nothing = np.random.default_rng(seed).permutation(y)
        for target in (y, nothing):
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", AccuracyWarning)
                model = DPTweedieRegressor(
                    power=power, epsilon=epsilon, noise="simulated", random_state=seed
                ).fit(X, target)
            assert model.score(X, np.maximum(target, 1e-9)) > -0.2


def test_amounts_may_be_counted_in_any_unit():
    """A power of two moves the cells of the histogram; cells far from 1 must show more."""
    X, y, _ = drawn("pure premium")
    found = [
        DPTweedieRegressor(epsilon=5.0, **SIMULATED).fit(X, unit * y).predict(X) / unit
        for unit in (1.0, 2.0**-20, 2.0**20)
    ]
    assert found[1] == pytest.approx(found[0], rel=5e-3)
    assert found[2] == pytest.approx(found[0], rel=5e-3)


def test_what_is_expected_is_what_was_seen_on_average():
    """The descent clips residuals; the intercept is matched afterwards."""
    for kind, make in (
        ("severity", DPGammaRegressor), ("pure premium", partial(DPTweedieRegressor, power=1.5)),
    ):  # fmt: skip
        X, y, _ = drawn(kind)
        model = make(epsilon=5.0, **SIMULATED).fit(X, y)
        assert model.predict(X).mean() == pytest.approx(y.mean(), rel=0.07)


def test_predictions_lie_in_a_released_range():
    X, y, _ = drawn("severity")
    model = DPGammaRegressor(epsilon=5.0, **SIMULATED).fit(X, y)
    low, high = model.target_range_
    assert 0 < low < y.mean() / 5 < 5 * y.mean() < high < 1e6
    far = model.predict(np.array([[1e6, -1e6, 0.0], [-1e6, 1e6, 0.0]]))
    assert (low <= far).all()
    assert (far <= high).all()


def test_hostile_amounts_move_nothing_far():
    X, y, _ = drawn("severity")
    spoilt = y.copy()
    spoilt[:8] = [1e308, -1e308, np.nan, np.inf, -np.inf, 5e-324, 0.0, -1.0]
    models = [DPGammaRegressor(epsilon=1.0, **SIMULATED).fit(X, t) for t in (y, spoilt)]
    assert models[1].coef_ == pytest.approx(models[0].coef_, abs=0.05)
    assert models[1].predict(X) == pytest.approx(models[0].predict(X), rel=0.1)


@pytest.mark.parametrize("seed", range(6))
def test_an_amount_that_is_always_the_same_ends_no_fit(seed):
    """Its dispersion is zero, and gains cannot be clamped at that: a fit ended after the charge."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        model = DPTweedieRegressor(
            power=1.5, epsilon=1e9, delta=1e-9, neighbours="zero_out", max_rows=2,
            noise="simulated", random_state=seed,
        )  # fmt: skip
        model.fit(np.array([[1e308]]), np.array([1e308]), groups=[0])
    assert np.isfinite(model.predict(np.zeros((1, 1)))).all()


def test_a_power_of_1_is_poisson_and_of_2_is_gamma():
    X, y, _ = drawn("pure premium", unit=1.0)
    for power, twin in ((1.0, DPPoissonRegressor), (2.0, DPGammaRegressor)):
        free = {"epsilon": math.inf, **SIMULATED}
        model = DPTweedieRegressor(power=power, **free).fit(X, y)
        other = twin(**free).fit(X, y)
        assert model.coef_ == pytest.approx(other.coef_, abs=1e-4)


@pytest.mark.parametrize("power", [0.0, 0.5, 3.0, math.nan, "1.5", None])
def test_other_powers_are_refused(power):
    said = "power 0 use DPLinearRegression" if isinstance(power, float) else "power must be"
    with pytest.raises(InvalidInput, match=said):
        DPTweedieRegressor(power=power, **SIMULATED).fit(np.ones((5, 1)), np.ones(5))


def test_saved_and_in_scikit_learn(tmp_path):
    X, y, _ = drawn("pure premium")
    model = DPTweedieRegressor(power=1.4, epsilon=5.0, **SIMULATED).fit(X, y)
    model.save(tmp_path / "model.json", target="cost")
    loaded = load(tmp_path / "model.json")
    assert loaded.predict(X) == pytest.approx(model.predict(X))
    plain = model.to_sklearn()
    assert plain.predict(X) == pytest.approx(loaded.predict(X), rel=1e-9)


def test_standard_errors_hold_at_any_size():
    """The dispersion was taken for that of counts of mean 1: ten times too large at mean .1."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(100_000, 2))
    for mean in (0.1, 5.0):
        rate = mean * np.exp(0.3 * X[:, 0])
        model = DPPoissonRegressor(epsilon=100.0, **SIMULATED).fit(X, rng.poisson(rate))
        Z = np.column_stack([X, np.ones(len(X))])
        exact = np.sqrt(np.diag(np.linalg.inv(Z.T @ (rate[:, None] * Z))))[:2]
        assert model.coef_sampling_std_ == pytest.approx(exact, rel=0.35)
    model = DPGammaRegressor(epsilon=100.0, **SIMULATED)
    model.fit(X, 1e4 * np.exp(0.3 * X[:, 0]) * rng.gamma(2.0, 0.5, len(X)))
    assert model.coef_sampling_std_ == pytest.approx(math.sqrt(0.5 / len(X)), rel=0.35)


def test_a_rate_in_place_of_counts_is_warned_of():
    """Its slopes are zero, and the only advice was more rows or a larger epsilon."""
    rng = np.random.default_rng(0)
    X, people = rng.normal(size=(20_000, 3)), rng.lognormal(9, 0.5, 20_000)
    cases = rng.poisson(people * 1e-3 * np.exp(X @ [0.4, -0.3, 0.0]))
    rare = rng.poisson(np.full(20_000, 0.02))
    for seed in range(3):
        model = DPPoissonRegressor(noise="simulated", random_state=seed)
        with pytest.warns(AccuracyWarning, match="multiply a rate by a public number"):
            assert not model.fit(X, cases / people).coef_.any()
        for target, exposure in ((cases, people), (1_000 * cases / people, None), (rare, None)):
            with warnings.catch_warnings(record=True) as found:
                warnings.simplefilter("always")
                model.fit(X, target, exposure=exposure)
            assert not any("no count is" in str(one.message) for one in found)


def test_a_search_scores_amounts():
    X, y, _ = drawn("severity", n=5_000)
    search = PrivateSearchCV(
        DPGammaRegressor(), {"alpha": [0.0, 100.0]}, trials=5, epsilon=8.0, **SIMULATED
    )
    assert search.fit(X, y).best_params_["alpha"] == 0.0


@pytest.mark.parametrize("kind", ["counts", "gamma", "tweedie"])
def test_rows_that_are_lost_do_not_move_the_mean(kind):
    """They counted as half of the clipping threshold: 3.2, 14 and 12,000 for 1, 1 and 320.

    A factor of 1.2 is five deviations of the noise.
    """
    rng = np.random.default_rng(0)
    X, lost = rng.normal(size=(40_000, 3)), rng.random(40_000) < 0.4
    rate = np.exp(0.3 * X[:, 0])
    amounts = rate * rng.gamma(2, 0.5, 40_000)
    model, y = {
        "counts": (DPPoissonRegressor, rng.poisson(rate)),
        "gamma": (DPGammaRegressor, amounts),
        "tweedie": (DPTweedieRegressor, np.where(rng.random(40_000) < 0.7, 0, 1_000 * amounts)),
    }[kind]
    gaps = X.copy()
    gaps[lost, 1] = np.nan
    fitted = model(epsilon=2, **SIMULATED).fit(gaps, y)
    assert any("rows count" in note for note in fitted.privacy_.notes)
    assert 1 / 1.2 < fitted.predict(X).mean() / y.mean() < 1.2
