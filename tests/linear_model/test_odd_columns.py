"""Columns that say nothing, or hide what they say, beside five that do."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
import pytest

from privtail import load
from privtail.errors import InvalidInput
from privtail.linear_model import (
    DPHuberRegressor,
    DPLADRegressor,
    DPLinearRegression,
    DPLogisticRegression,
    DPPoissonRegressor,
)
from privtail.model import Column, Model

SLOPES = np.array([1.0, -2.0, 0.0, 0.5, 3.0])
N = 20_000

pytestmark = pytest.mark.filterwarnings("ignore::privtail.errors.AccuracyWarning")


def mostly(value, other, few, rng):
    """A column of one value in all of twice ``N`` rows but a ``few`` in either half."""
    column = np.full(2 * N, value)
    for half in range(2):
        column[half * N + rng.choice(N, few, replace=False)] = other
    return column


def problem(sixth, seed):
    """Rows to fit on and as many to score on, (2N, 6), and their numbers."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(2 * N, 5))
    y = X @ SLOPES + rng.normal(size=2 * N)
    return np.column_stack([X, sixth(rng)]), y


def fitted(estimator, X, y, seed, **parameters):
    return estimator(epsilon=1.0, noise="simulated", random_state=seed, **parameters).fit(X, y)


ONE_CELL = {
    "1": lambda rng: np.ones(2 * N),
    "2020": lambda rng: np.full(2 * N, 2020.0),
    "-3": lambda rng: np.full(2 * N, -3.0),
    "1, three are 1e4": lambda rng: mostly(1.0, 1e4, 3, rng),
    "-3e-8, three are 2e-4": lambda rng: mostly(-3e-8, 2e-4, 3, rng),
    "a rare indicator, centred": lambda rng: mostly(-0.003, 0.997, 3, rng),
}


@pytest.mark.parametrize("share", [0.6, 1.0])
def test_a_column_beyond_all_histograms_does_not_shrink_the_rows(share):
    """A code of 1e308 in most rows: all slopes were zero, and labels got wrong ones."""
    X, y = problem(lambda rng: np.where(rng.random(2 * N) < share, np.finfo(float).max, 0.0), 0)
    model = fitted(DPLinearRegression, X[:N], y[:N], 0)
    assert model.coef_[5] == 0
    assert model.score(X[N:], y[N:]) > 0.9
    labels = fitted(DPLogisticRegression, X[:N], y[:N] > 0, 0, classes=[False, True])
    assert labels.score(X[N:], y[N:] > 0) > 0.85


@pytest.mark.parametrize("column", ONE_CELL)
@pytest.mark.parametrize("seed", range(2))
def test_a_column_that_shows_no_spread_is_not_used(column, seed):
    X, y = problem(ONE_CELL[column], seed)
    model = fitted(DPLinearRegression, X[:N], y[:N], seed)
    assert model.coef_[5] == 0
    assert model.coef_noise_std_[5] == np.inf
    assert model.coef_noise_std_[:5].max() < 0.05
    assert model.score(X[N:], y[N:]) > 0.9


def test_a_column_of_ones_is_used_without_an_intercept():
    X, y = problem(ONE_CELL["1"], 0)
    model = fitted(DPLinearRegression, X, y + 5, 0, fit_intercept=False)
    assert abs(model.coef_[5] - 5) < 0.3


@pytest.mark.parametrize("spread", ["timestamps", "numbers in turn", "two years"])
def test_a_spread_that_closer_looks_show_is_used(spread):
    """Far from zero beside its spread: ten thousand seconds in 2^30, a row's number, 2020 or 2021.

    Its slope is .5 of a deviation; it is missed by a tenth.
    """
    rng = np.random.default_rng(1)
    column = {
        "timestamps": 1.7e9 + 1e4 * rng.normal(size=2 * N),
        "numbers in turn": np.arange(2 * N) + 1e6,
        "two years": rng.choice([2020.0, 2021.0], 2 * N),
    }[spread]
    X, y = problem(lambda rng: column, 1)
    slope = 0.5 / column.std()
    model = fitted(DPLinearRegression, X, y + slope * (column - column.mean()), 1)
    assert model.coef_[5] == pytest.approx(slope, rel=0.3)


@pytest.mark.parametrize("estimator", [DPLinearRegression, DPLogisticRegression])
def test_a_declared_category_that_never_occurs_has_no_slope(estimator):
    """A slope of ten, each with a chance of a false alarm of 2.3 %, may stay."""
    pandas = pytest.importorskip("pandas")
    rng, categories = np.random.default_rng(0), list("abcdefghijkl")
    frame = pandas.DataFrame(rng.normal(size=(N, 2)), columns=["x", "z"])
    frame["kind"] = rng.choice(["a", "b"], N)
    y = frame.x - 2 * frame.z + (frame.kind == "a") + rng.normal(size=N)
    labels = estimator is DPLogisticRegression
    declared = {"classes": [False, True]} if labels else {}
    model = fitted(
        estimator, frame, y > 0 if labels else y, 0, categories={"kind": categories}, **declared
    )
    slopes = np.ravel(model.coef_)
    assert np.count_nonzero(slopes[4:]) <= 1
    assert slopes[2] - slopes[3] > 0.5


HIDDEN = {
    "normal, ten are 9999999": lambda rng: codes(rng.normal(size=2 * N), 9_999_999.0, rng),
    "lognormal, ten are -999": lambda rng: codes(rng.lognormal(size=2 * N), -999.0, rng),
    "timestamps, ten are 0": lambda rng: codes(1.7e9 + 1e4 * rng.normal(size=2 * N), 0.0, rng),
    "1e300 times a normal": lambda rng: 1e300 * rng.normal(size=2 * N),
}


def codes(column, code, rng):
    for half in range(2):
        column[half * N + rng.choice(N, 10, replace=False)] = code
    return column


@pytest.mark.parametrize("column", HIDDEN)
@pytest.mark.parametrize("seed", range(2))
def test_no_prediction_explodes(column, seed):
    """Without the sixth column R^2 is .93."""
    X, y = problem(HIDDEN[column], seed)
    model = fitted(DPLinearRegression, X[:N], y[:N], seed)
    assert model.score(X[N:], y[N:]) > 0.88


@pytest.fixture(scope="module")
def model():
    """Of five normals and a sixth with a code."""
    X, y = problem(HIDDEN["normal, ten are 9999999"], 0)
    return fitted(DPLinearRegression, X[:N], y[:N], 0)


@pytest.fixture(scope="module")
def written(model):
    return Model.of(model, target="y", columns=[Column(name) for name in "abcdef"])


@pytest.mark.parametrize("estimator", [DPHuberRegressor, DPLADRegressor])
def test_nor_do_robust_ones(estimator):
    X, y = problem(HIDDEN["normal, ten are 9999999"], 0)
    assert fitted(estimator, X[:N], y[:N], 0).score(X[N:], y[N:]) > 0.88


def test_predictions_are_those_of_clipped_features_and_stay_in_the_range_of_the_target(model):
    _, y = problem(HIDDEN["normal, ten are 9999999"], 0)
    far = 1e6 * np.random.default_rng(0).normal(size=(500, 6))
    lows, highs = model.feature_range_.T
    assert model.feature_range_.shape == (6, 2)
    assert np.all((lows < -3) & (highs > 3) & (highs < 1000))
    low, high = model.target_range_
    assert low < y.min()
    assert high > y.max()
    expected = np.clip(np.clip(far, lows, highs) @ model.coef_ + model.intercept_, low, high)
    assert np.allclose(model.predict(far), expected)
    inside = np.clip(far, -3, 3)
    assert np.array_equal(model.predict(inside), inside @ model.coef_ + model.intercept_)


@pytest.mark.parametrize("estimator", [DPLinearRegression, DPLogisticRegression])
def test_sparse_rows_are_predicted_as_dense_ones(estimator):
    """Also of features whose range does not hold zero."""
    sparse = pytest.importorskip("scipy.sparse")
    X, y = problem(lambda rng: 300 + rng.normal(size=2 * N), 0)
    labels = estimator is DPLogisticRegression
    declared = {"classes": [0, 1]} if labels else {}
    model = fitted(estimator, X[:N], (y[:N] > 0).astype(int) if labels else y[:N], 0, **declared)
    assert model.feature_range_[5, 0] > 0
    far = np.random.default_rng(0).normal(size=(100, 6)) * [1, 0, 1e3, 1, 1e6, 1]
    scored = "decision_function" if labels else "predict"
    dense, other = (getattr(model, scored)(rows) for rows in (far, sparse.csr_array(far)))
    assert np.allclose(dense, other, rtol=1e-9)


def test_without_privacy_nothing_is_clipped():
    X, y = problem(HIDDEN["lognormal, ten are -999"], 0)
    model = DPLinearRegression(epsilon=np.inf).fit(X[:2000], y[:2000])
    assert np.isinf(model.feature_range_).all()
    assert np.isinf(model.target_range_).all()


def test_a_constant_predicts_itself():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(500, 3)), rng.normal(50, 1, size=500)
    model = DPLinearRegression(epsilon=0.5, noise="simulated", random_state=0).fit(X, y)
    assert not model.coef_.any()
    assert np.all(model.predict(X) == model.intercept_)


def test_ranges_of_columns_and_of_counts():
    pandas = pytest.importorskip("pandas")
    rng = np.random.default_rng(0)
    frame = pandas.DataFrame({"x": rng.normal(size=N), "kind": rng.choice(["a", "b"], N)})
    model = fitted(
        DPPoissonRegressor, frame, rng.poisson(np.exp(0.5 * frame.x + 1)), 0,
        categories={"kind": ["a", "b"]},
    )  # fmt: skip
    assert model.feature_range_[1:].tolist() == [[0, 1], [0, 1]]
    low, high = model.target_range_
    assert 0 < low < 0.1  # half the noise of the mean
    assert 5 < high < np.inf
    assert model.predict(pandas.DataFrame({"x": [1e9, -1e9], "kind": "a"})).max() <= high


def test_a_written_model_keeps_its_ranges(tmp_path, model, written):
    written.save(tmp_path / "model.json")
    far = 1e6 * np.random.default_rng(0).normal(size=(50, 6))
    read, table = load(tmp_path / "model.json"), dict(zip("abcdef", far.T, strict=True))
    assert np.array_equal(read.feature_range, model.feature_range_)
    assert np.array_equal(read.predict(table), model.predict(far))


def test_a_model_without_ranges_is_refused(written):
    content = written.to_json()
    del content["feature_range"]
    with pytest.raises(InvalidInput, match="feature_range"):
        Model.from_json(content)


@pytest.mark.parametrize(
    "ranges", [3, [[0, 1]], [[1, 0]] * 6, [["a", "b"]] * 6, [[0, 1, 2]] * 6, {"a": 1}]
)
def test_ranges_that_mean_nothing_are_refused(written, ranges):
    with pytest.raises(InvalidInput, match="feature_range"):
        Model.from_json(written.to_json() | {"feature_range": ranges})


@pytest.mark.parametrize("drop", [None, {"s": "M"}])
@pytest.mark.parametrize("others", [0, 30])
def test_a_category_that_all_rows_hold_is_not_used(others, drop):
    """Noise moved up to 5 log odds from the intercept to its slope: rows of other levels got these.

    With 30 other rows noise lets a fit use it less than once in 300 times: all of these 5 pass with
    a chance above 98 %.
    """
    rng = np.random.default_rng(0)
    x = rng.normal(size=6_000)
    frame = pd.DataFrame({"x": x, "s": np.where(np.arange(6_000) < others, "M", "F")})
    labels = rng.random(6_000) < 1 / (1 + np.exp(-x - 1))
    declared = {"classes": [False, True], "categories": {"s": ["F", "M"]}, "drop": drop}
    for seed in range(5):
        model = fitted(DPLogisticRegression, frame, labels, seed, **declared)
        assert model.coef_[0, 1] == 0
        assert model.coef_[0, 0] > 0.5
        assert model.intercept_[0] == pytest.approx(1, abs=0.5)


def test_the_indicator_of_a_number_that_nearly_all_rows_miss_is_not_used():
    """Rows that have this number, and that noise hides, do not get a slope that is noise."""
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"x": rng.normal(size=6_000), "dose": math.nan})
    frame.loc[:29, "dose"] = rng.normal(size=30)
    labels = rng.random(6_000) < 1 / (1 + np.exp(-frame["x"].to_numpy() - 1))
    for seed in range(5):
        model = fitted(
            DPLogisticRegression, frame, labels, seed, classes=[False, True], missing="indicator"
        )
        slopes = dict(zip(model.get_feature_names_out(), model.coef_[0], strict=True))
        assert slopes["dose=missing"] == 0
        assert model.intercept_[0] == pytest.approx(1, abs=0.5)


def test_a_category_that_all_rows_hold_stands_in_for_an_intercept_that_is_left_out():
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"x": rng.normal(size=6_000), "s": "F"})
    y = frame["x"].to_numpy() + 3 + rng.normal(size=6_000)
    declared = {"categories": {"s": ["F", "M"]}, "fit_intercept": False}
    model = fitted(DPLinearRegression, frame, y, 0, **declared)
    assert model.coef_[1] == pytest.approx(3, abs=0.5)
