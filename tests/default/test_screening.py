"""The selection of features: how many, which ones, and what they are described by."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from privtail.default.columns import SummarizeColumns
from privtail.default.labels import CountLabels
from privtail.default.screening import SelectFeatures, detectable_features
from privtail.errors import InvalidInput
from privtail.linear_model import DPLinearRegression, DPSparseClassifier, DPSparseRegressor
from privtail.losses import LogisticLoss, MultinomialLoss, SquaredLoss
from privtail.summaries.column_summaries import ColumnSummaries
from privtail.summaries.summary import UNUSED
from privtail.trusted.mechanisms.noise import GaussianNoise
from privtail.trusted.problem import Problem
from tests.default.conftest import staged

SIMULATED = {"noise": "simulated"}
FAINT = 1e-9
D = 60
SLOPES = np.array([1, -1, 0.5, -0.5, 0.25, -0.25, 1, -1, 0.5, -0.5])


def lognormal(n, d, seed):
    """The heavy-tailed problem with ten slopes: columns and noise lognormal(0, 1.5)."""
    rng = np.random.default_rng(seed)
    X = rng.lognormal(0, 1.5, (n, d))
    return X, X[:, :10] @ SLOPES + 1 + rng.lognormal(0, 1.5, n) - np.exp(1.125)


def table(seed=0, n=2_000):
    """Lognormal columns, and the logarithm of one of them with noise."""
    rng = np.random.default_rng(seed)
    X = rng.lognormal(0, 1.5, (n, D))
    return X, np.log(X[:, 7]) / 1.5 + 0.5 * rng.normal(size=n)


def chosen(X, y, loss=None, picks=1, **options):
    """The fit after a selection nearly without noise, and the features that it left."""
    loss, n = loss or SquaredLoss(), len(X)
    noise = GaussianNoise(n / 40)
    stages = [
        SummarizeColumns(ColumnSummaries.of(loss.targets, selecting=True), noise),
        *([CountLabels(GaussianNoise(1.0))] if loss.targets != "real" else []),
        SelectFeatures(picks, FAINT, GaussianNoise(1.0)),
    ]
    fit = staged(stages, X, y, loss, **options)
    return fit, np.flatnonzero(fit.summary.scales[: X.shape[1]] < UNUSED).tolist()


@pytest.mark.parametrize("seed", range(3))
def test_the_feature_that_tells_the_target_is_found(seed):
    X, y = table(seed)
    assert chosen(X, y)[1] == [7]
    assert chosen(X, -y)[1] == [7]
    assert chosen(np.log(X), y, intercept=False)[1] == [7]


@pytest.mark.parametrize("classes", [2, 3])
def test_what_labels_go_with_is_found(classes):
    X, told = table(n=4_000)
    y = np.searchsorted(np.quantile(told, [0.3, 0.7][: classes - 1]), told).astype(float)
    loss = LogisticLoss() if classes == 2 else MultinomialLoss(classes=3)
    assert chosen(X, y, loss, classes=tuple(range(classes)))[1] == [7]


def test_chosen_features_are_described_in_their_own_units():
    X, y = table(n=4_000)
    units = np.where(np.arange(D) == 7, 4.0, 1.0)
    fit, found = chosen(X * units, y, picks=2)
    assert 7 in found
    assert len(found) == 2
    assert fit.summary.centres[7] == pytest.approx(np.median(4 * X[:, 7]), rel=0.2)
    target = fit.summary.scales[D]
    assert target == pytest.approx(np.std(y), rel=0.2), "the target keeps its scale"


def test_as_many_features_are_selected_as_noise_allows():
    """Each of k picks has sqrt(k) times the noise of one that costs as much."""
    problem = Problem(n=1_000, d=100)
    counts = [detectable_features(10, m, 1.5, problem) for m in (0.0, 1.0, 10.0, 15.0, 40.0, 1e6)]
    assert counts == [10, 10, 9, 6, 2, 1]
    assert detectable_features(10, 15.0, 1.5, Problem(n=1_000, d=100, max_rows=3)) == 2
    assert detectable_features(10, 15.0, 1.5, Problem(n=1_000, d=100_000)) == 2
    assert detectable_features(100, 1.0, 1.5, problem) == 92, "noise alone limits it"
    assert detectable_features(100, 0.0, 1.5, problem) == 100


# ---------------------------------------------------------------- whole fits


def test_what_matters_is_found():
    """Two of sixty features that carry nearly all of the target."""
    for seed in range(6):
        rng = np.random.default_rng(seed)
        X = rng.standard_t(3, (1_000, 60))
        y = 3 * X[:, 7] - 3 * X[:, 41] + rng.standard_t(3, 1_000)
        model = DPSparseRegressor(2, epsilon=1.0, delta=1e-4, random_state=seed, **SIMULATED)
        model.fit(X, y)
        assert set(np.flatnonzero(model.coef_)) == {7, 41}
        assert list(np.sign(model.coef_[[7, 41]])) == [1, -1]


def test_selected_features_alone_are_used_and_fitted():
    rng = np.random.default_rng(0)
    X = rng.standard_t(3, (5_000, 60))
    y = X[:, 7] - X[:, 30] + rng.normal(size=len(X))
    model = DPSparseRegressor(2, epsilon=2.0, delta=1e-6, random_state=0, **SIMULATED).fit(X, y)
    assert set(np.flatnonzero(model.coef_)) == {7, 30}
    assert model.coef_[[7, 30]] == pytest.approx([1.0, -1.0], abs=0.3)


def test_it_beats_the_constant_where_so_little_is_affordable():
    """At epsilon = 0.5 and delta = 1e-3, n = 1,000, d = 100.

    The ratio was .82 with the seeds below, and the limit of extrapolation, four tails where noise
    hides what lies beyond, has a part in it: with a limit of eight the ratio was below .8.
    """
    ratios, right = [], []
    for seed in range(9):
        X, y = lognormal(1_000, 100, seed)
        T, t = lognormal(5_000, 100, seed + 100)
        options = {"epsilon": 0.5, "delta": 1e-3, "random_state": seed, **SIMULATED}
        model = DPSparseRegressor(**options).fit(X, y)
        ratios.append(np.std(t - model.predict(T)) / np.std(t))
        label = DPSparseClassifier(classes=[0, 1], **options).fit(X, y > 0)
        right.append(label.score(T, t > 0))
    assert np.median(ratios) < 0.88
    assert np.median(right) > 0.65


@pytest.mark.parametrize("epsilon", [0.02, 0.1])
def test_it_is_never_worse_than_the_constant(epsilon):
    for seed in range(5):
        X, y = lognormal(1_000, 100, seed)
        model = DPSparseRegressor(epsilon=epsilon, delta=1e-3, random_state=seed, **SIMULATED)
        error = np.sqrt(np.mean((y - model.fit(X, y).predict(X)) ** 2))
        assert error < 1.05 * np.std(y)


def test_intervals_are_refused_after_a_selection():
    rng = np.random.default_rng(0)
    X = rng.standard_t(3, (1_000, 100))
    y = X[:, 0] - 2 * X[:, 1] + X[:, 2] + rng.standard_t(3, 1_000)
    model = DPLinearRegression(epsilon=1.0, delta=1e-6, random_state=0, **SIMULATED).fit(X, y)
    assert 0 < np.count_nonzero(model.coef_) < 50
    assert (np.isnan(model.coef_noise_std_) == (model.coef_ == 0)).all()
    with pytest.raises(InvalidInput, match="few were selected"):
        model.conf_int()


def test_a_chosen_indicator_stays_as_it_was_declared():
    rng = np.random.default_rng(0)
    kinds, x = np.array(["a", "b"])[(rng.random(4_000) < 0.3).astype(int)], rng.normal(size=4_000)
    y = 5.0 * (kinds == "b") + 0.5 * rng.normal(size=4_000)
    model = DPSparseRegressor(
        1, epsilon=5.0, categories={"kind": ["a", "b"]}, noise="simulated", random_state=0
    )
    model.fit(pd.DataFrame({"kind": kinds, "x": x}), y)
    (found,) = np.flatnonzero(model.coef_)
    assert found < 2
    assert model.report_["feature_location"][found] == 0.0
    assert model.report_["feature_scale"][found] == 0.5
