"""Columns that say nothing, or hide what they say, beside five that do."""

from __future__ import annotations

import numpy as np
import pytest

from privtail.linear_model import DPLinearRegression, DPLogisticRegression

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
