"""Rates: counts and amounts for an exposure, from arrays, frames, files and a cluster."""

from __future__ import annotations

import math
import warnings

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from sklearn.linear_model import PoissonRegressor, TweedieRegressor
from sklearn.metrics import d2_tweedie_score

import privtail
from privtail.errors import InvalidInput
from privtail.linear_model import (
    DPGammaRegressor,
    DPLinearRegression,
    DPPoissonRegressor,
    DPTweedieRegressor,
)

SIMULATED = {"noise": "simulated", "random_state": 0}
FREE = {"epsilon": math.inf, **SIMULATED}
SLOPES = np.array([0.4, -0.3, 0.0])


def drawn(n=20_000, unit=1.0, rate=0.3, seed=0):
    """Policies, claims, and years (in another unit) that they were insured."""
    rng = np.random.default_rng(seed)
    X, years = rng.normal(size=(n, 3)), rng.beta(0.8, 0.8, n).clip(1 / 365)
    return X, rng.poisson(rate * years * np.exp(X @ SLOPES)).astype(float), unit * years


def policies(n=2_000):
    X, claims, years = drawn(n)
    frame = pd.DataFrame(X, columns=["a", "b", "c"])
    frame["fuel"] = np.where(X[:, 0] > 0, "gas", "oil")
    frame["claims"], frame["years"] = claims, years
    frame.loc[::97, "years"] = [0.0, -1.0, np.nan, np.inf, 1e308, 5e-324, 0.5] * 3
    return frame


def test_without_privacy_it_is_scikit_learns_weighted_rate():
    X, y, years = drawn(1_000)
    twin = PoissonRegressor(alpha=0.0, tol=1e-10, max_iter=10_000)
    twin.fit(X, y / years, sample_weight=years)
    model = DPPoissonRegressor(**FREE).fit(X, y, exposure=years)
    assert model.coef_ == pytest.approx(twin.coef_, abs=1e-3)
    assert model.predict(X) == pytest.approx(twin.predict(X), rel=1e-2)
    assert model.predict(X, years) == pytest.approx(years * twin.predict(X), rel=1e-2)
    score = d2_tweedie_score(y / years, twin.predict(X), power=1, sample_weight=years)
    assert model.score(X, y, exposure=years) == pytest.approx(score, abs=1e-3)


def test_amounts_have_the_weights_that_the_docstring_says():
    X, y, years = drawn(1_000)
    cost = y * np.random.default_rng(1).gamma(2.0, 500.0, len(y))
    twin = TweedieRegressor(power=1.5, alpha=0.0, link="log", tol=1e-10, max_iter=10_000)
    twin.fit(X, cost / years, sample_weight=years**0.5)
    model = DPTweedieRegressor(power=1.5, **FREE).fit(X, cost, exposure=years)
    assert model.coef_ == pytest.approx(twin.coef_, abs=2e-3)


@pytest.mark.parametrize("unit", [1.0, 365.0, 1e-6])
def test_slopes_and_rates_are_found_in_any_unit(unit):
    """Slopes have standard errors of about .02 and noise; 5 deviations, seeds are fixed."""
    X, y, years = drawn(40_000, unit)
    model = DPPoissonRegressor(epsilon=2.0, **SIMULATED).fit(X, y, exposure=years)
    assert model.coef_ == pytest.approx(SLOPES, abs=0.1)
    assert model.predict(X, years).mean() == pytest.approx(y.mean(), rel=0.1)
    assert 0.3 / unit * 3 < model.target_range_[1] < 0.3 / unit * 1e4


def test_who_leaves_the_exposure_out_finds_another_rate():
    X, y, years = drawn(20_000, 365.0)
    model = DPPoissonRegressor(epsilon=5.0, **SIMULATED)
    plain = model.fit(X, y).predict(X).mean()
    rate = model.fit(X, y, exposure=years).predict(X).mean()
    assert plain == pytest.approx(y.mean(), rel=0.1)
    assert rate == pytest.approx(y.sum() / years.sum(), rel=0.1)


def test_what_was_planned_is_what_is_spent():
    X, y, years = drawn(3_000)
    model = DPGammaRegressor(**SIMULATED).fit(X, y, exposure=years)
    assert list(model.plan_) == list(model.plan(3_000, 3, exposure=True))
    assert list(model.plan_) != list(model.plan(3_000, 3))
    assert model.privacy_.epsilon <= 1.0


def test_frames_files_and_scratch_give_the_same_bits(tmp_path):
    frame = policies()
    pq.write_table(pa.Table.from_pandas(frame, preserve_index=False), tmp_path / "p.parquet")
    frame.to_csv(tmp_path / "p.csv", index=False)
    declared = {"fuel": ["gas", "oil"]}
    X, y, years = frame.drop(columns=["claims", "years"]), frame["claims"], frame["years"]
    first = DPPoissonRegressor(categories=declared, **SIMULATED).fit(X, y, exposure=years)
    assert first.exposure_ == "years"
    for name, options in (
        ("p.parquet", {}), ("p.parquet", {"scratch": tmp_path}), ("p.csv", {}),
    ):  # fmt: skip
        table = privtail.open_table(tmp_path / name, categories=declared, **options)
        other = DPPoissonRegressor(**SIMULATED).fit(table, "claims", exposure="years")
        np.testing.assert_array_equal(other.coef_, first.coef_)
        assert other.feature_names_in_.tolist() == ["a", "b", "c", "fuel"]
    arrow = pa.Table.from_pandas(X, preserve_index=False)
    other = DPPoissonRegressor(categories=declared, **SIMULATED)
    other.fit(arrow, pa.array(y), exposure=pa.array(years))
    np.testing.assert_array_equal(other.coef_, first.coef_)


def test_a_saved_model_predicts_rates_and_counts(tmp_path):
    frame = policies()
    X, y, years = frame[["a", "b", "c"]], frame["claims"], frame["years"]
    model = DPPoissonRegressor(epsilon=5.0, **SIMULATED).fit(X, y, exposure=years)
    model.save(tmp_path / "m.json", target="claims")
    loaded = privtail.load(tmp_path / "m.json")
    assert loaded.exposure == "years"
    assert loaded.predict(frame) == pytest.approx(model.predict(X))
    counts = loaded.predict(frame, exposure="years")
    np.testing.assert_allclose(counts, model.predict(X, years))
    usable = (years > 0) & (years < np.inf)
    np.testing.assert_array_equal(np.isnan(counts), ~usable)
    plain = DPPoissonRegressor(**SIMULATED).fit(X, y).to_model()
    assert plain.exposure is None


def test_persons_have_exposures_too():
    X, y, years = drawn(5_000)
    model = DPPoissonRegressor(epsilon=20.0, max_rows=2, **SIMULATED)
    model.fit(X, y, groups=np.arange(5_000) // 2, exposure=years)
    assert np.isfinite(model.coef_).all()


def test_refusals():
    X, y, years = drawn(100)
    model = DPPoissonRegressor(**SIMULATED)
    with pytest.raises(InvalidInput, match="names a column"):
        model.fit(pd.DataFrame(X), y, exposure="years")
    with pytest.raises(InvalidInput, match="shape"):
        model.fit(X, y, exposure=years[:-1])
    with pytest.raises(InvalidInput, match="auto"):
        DPPoissonRegressor(algorithm="catoni-descent").fit(X, y, exposure=years)
    with pytest.raises(InvalidInput, match="sample_weight"):
        model.fit(X, y, sample_weight=years)


def test_the_name_of_a_column_is_no_exposure_to_predict_with():
    X = np.arange(40.0)[:, None]
    model = DPPoissonRegressor(epsilon=math.inf).fit(X, np.ones(40), exposure=np.ones(40))
    with pytest.raises(InvalidInput, match=r"exposure=frame\['years'\]"):
        model.predict(X, "years")


def test_exposures_to_predict_with_are_as_many_as_the_rows():
    X = np.arange(40.0)[:, None]
    model = DPPoissonRegressor(epsilon=math.inf).fit(X, np.ones(40), exposure=np.ones(40))
    for predict in (model.predict, model.to_model().predict):
        for rows in (X, X[:1]):
            with pytest.raises(InvalidInput, match="Pass one number for each of these rows"):
                predict(rows, np.ones(39))
        np.testing.assert_array_equal(predict(X, 2.0), 2 * predict(X))


def test_a_score_of_rates_needs_exposures():
    X, y, years = drawn(500)
    model = DPPoissonRegressor(epsilon=math.inf).fit(X, y, exposure=years)
    with pytest.raises(InvalidInput, match="predicts rates: pass exposure="):
        model.score(X, y)
    score = model.score(X, y, exposure=years)
    assert model.score(X, y / years, sample_weight=years) == pytest.approx(score)
    assert model.score(X, y / years, exposure=1) == pytest.approx(
        model.score(X, y / years, np.ones(500))
    )


def test_logarithms_of_exposures_are_told_of():
    X, y, years = drawn(20_000)
    with pytest.raises(TypeError, match=r"exposure=numpy.exp\(offset\)"):
        DPPoissonRegressor().fit(X, y, offset=np.log(years))
    for exposure, told in ((np.minimum(np.log(years), 0), True), (None, False)):
        model = DPPoissonRegressor(**SIMULATED)  # noise hides 20,000 lost rows in none of 1e6 fits
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            model.fit(X, y if told else np.full(20_000, np.nan), exposure=exposure)
        found = " ".join(str(one.message) for one in caught)
        assert "Noise hides how many" in found
        assert ("exposure is not above 0" in found) == told


def test_refusals_name_what_is_no_number():
    X, y, years = drawn(n=500)
    model = DPPoissonRegressor(**SIMULATED)
    with pytest.raises(InvalidInput, match=r"The exposure is not numeric. Convert it"):
        model.fit(X, y, exposure=pd.Series(years).astype(str))
    with pytest.raises(InvalidInput, match=r"The target is not numeric.*Convert it if numbers"):
        model.fit(X, pd.Series(y).astype(str), exposure=years)
    with pytest.raises(InvalidInput, match=r"takes no exposure.*DPPoissonRegressor"):
        DPLinearRegression(**SIMULATED).fit(X, y, exposure=years)


def test_exposures_of_many_sizes_hide_no_slopes():
    """They spread counts, but not rates: as a dispersion of rates they hid slopes of 2 in 10."""
    for seed in range(10):
        rng = np.random.default_rng(seed)
        X, exposure = rng.normal(size=(2_000, 5)), rng.lognormal(0, 1, 2_000)
        y = rng.poisson(2 * np.exp(0.3 * X[:, 0] - 0.2 * X[:, 1]) * exposure)
        model = DPPoissonRegressor(epsilon=1, noise="simulated", random_state=seed)
        assert model.fit(X, y, exposure=exposure).coef_.any()
