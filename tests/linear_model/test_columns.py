"""Means and scales of columns: what they learn, what they pay, and scikit-learn's manners."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
import pytest
import sklearn
from scipy import sparse
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import RobustScaler, StandardScaler
from sklearn.utils.estimator_checks import estimator_checks_generator

from privtail import DPMean, DPScaler, Ledger, check_pipeline, private_mean
from privtail.errors import BudgetExceeded, InvalidInput
from privtail.linear_model import (
    DPHuberRegressor,
    DPLinearRegression,
    DPLogisticRegression,
    DPPoissonRegressor,
    DPRidge,
    DPSparseRegressor,
    PrivateSearchCV,
)

SIMULATED = {"noise": "simulated", "random_state": 0}
COLUMNS = (DPMean, DPScaler)


@pytest.fixture
def frame():
    """Columns of odd units and tails."""
    rng = np.random.default_rng(0)
    t = rng.standard_t(2.5, 20_000)
    pay = rng.lognormal(8, 1, 20_000)
    return pd.DataFrame({"t": t, "pay": pay, "year": rng.normal(2000, 3, 20_000)})


def checks():
    for private, epsilon in enumerate((math.inf, 1e4)):
        for kind in COLUMNS:
            model = kind(epsilon=epsilon, invalid="raise", **SIMULATED)
            for place, (estimator, check) in enumerate(estimator_checks_generator(model)):
                title = f"{kind.__name__}-{epsilon:g}-{check.func.__name__}"
                marks = [pytest.mark.slow] * ((private + place) % 2)
                yield pytest.param(estimator, check, id=title, marks=marks)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(("estimator", "check"), list(checks()))
def test_scikit_learns_checks(estimator, check):
    check(estimator)


def test_the_mean_is_private_mean(frame):
    for method in ("clipped", "catoni", "coinpress"):
        model = DPMean(method, epsilon=1.0, **SIMULATED).fit(frame)
        function = private_mean(frame, epsilon=1.0, method=method, **SIMULATED)
        assert np.array_equal(model.mean_, function.value)
        assert np.array_equal(model.noise_std_, function.noise_std)
        assert np.array_equal(model.conf_int(0.9), function.conf_int(0.9))
        assert model.privacy_.plan == function.privacy_.plan
        assert model.estimate_.columns == function.columns
        lines = str(model.estimate_).splitlines()
        assert lines[:-1] == str(function).splitlines()[:-1]
    assert str(DPMean(**SIMULATED).fit(frame.to_numpy()).estimate_).startswith("x0 = ")
    assert list(model.feature_names_in_) == ["t", "pay", "year"]
    off = np.abs(model.mean_ - frame.mean()) / frame.std()
    assert off.max() < 0.1


@pytest.mark.parametrize("kind", COLUMNS)
def test_who_takes_no_categories_is_not_told_to_declare_them(kind, frame):
    named = frame.assign(job="clerk")
    for fit in (kind(**SIMULATED).fit, lambda x: private_mean(x, epsilon=1)):
        with pytest.raises(InvalidInput, match=r"'job' is not numeric. Encode .* or drop it"):
            fit(named)
    for model in (DPRidge(), PrivateSearchCV(DPRidge(), {"alpha": [1.0]})):
        with pytest.raises(InvalidInput, match=r"'job' is not numeric. Declare its categories"):
            model.fit(named, np.zeros(len(named)))


def test_the_scaler_is_a_private_robust_scaler(frame):
    model = DPScaler(epsilon=1.0, **SIMULATED).set_output(transform="pandas")
    scaled = model.fit_transform(frame)
    twin = RobustScaler(unit_variance=True).fit(frame)
    assert model.scale_ == pytest.approx(twin.scale_, rel=0.2)
    assert np.abs((model.center_ - twin.center_) / twin.scale_).max() < 0.2
    assert list(scaled.columns) == list(model.get_feature_names_out()) == list(frame.columns)
    assert isinstance(scaled, pd.DataFrame)
    assert model.inverse_transform(scaled) == pytest.approx(frame.to_numpy(), rel=1e-9)
    again = DPScaler(False, True, epsilon=1.0, **SIMULATED).fit(frame)
    assert again.center_ is None
    assert again.transform(frame) == pytest.approx(frame.to_numpy() / again.scale_)
    with pytest.raises(ValueError, match="feature names"):
        model.transform(frame.rename(columns={"t": "s"}))


@pytest.mark.usefixtures("simulated_is_booked")
def test_sparse_columns_are_scaled_and_not_centred():
    X = sparse.random(5_000, 3, 0.5, random_state=0, format="csr")
    ledger = Ledger(epsilon=1.0, delta=1e-5)
    with pytest.raises(InvalidInput, match="with_centering=False"):
        DPScaler(epsilon=1.0, ledger=ledger).fit(X)
    assert ledger.entries() == ()
    model = DPScaler(False, epsilon=1.0, **SIMULATED).fit(X)
    assert model.transform(X).toarray() == pytest.approx(X.toarray() / model.scale_)
    assert model.inverse_transform(model.transform(X)).toarray() == pytest.approx(X.toarray())
    assert DPMean(epsilon=5.0, **SIMULATED).fit(X).mean_ == pytest.approx(
        np.asarray(X.mean(axis=0)).ravel(), abs=0.05
    )


@pytest.mark.usefixtures("simulated_is_booked")
def test_a_pipeline_pays_for_its_scaler(frame):
    y = frame.pop("pay")
    ledger = Ledger(epsilon=2.0, delta=1e-4)
    pipe = make_pipeline(DPScaler(epsilon=0.5, ledger=ledger), DPRidge(epsilon=1.0, ledger=ledger))
    found = check_pipeline(pipe)
    assert found
    assert [step.verdict for step in found.steps] == ["pays", "pays"]
    assert not check_pipeline(make_pipeline(StandardScaler(), DPMean()))
    assert not check_pipeline(DPScaler(noise="simulated"))
    pipe.fit(frame, y)
    assert [e.label for e in ledger.entries()] == ["DPScaler", "DPRidge"]
    assert sum(e.epsilon for e in ledger.entries()) <= 1.5
    with pytest.raises(BudgetExceeded):
        pipe.fit(frame, y)
    assert clone(pipe).get_params().keys() == pipe.get_params().keys()
    free = Ledger(epsilon=100.0, delta=1e-3)
    pipe = make_pipeline(DPScaler(ledger=free, **SIMULATED), DPRidge(ledger=free, **SIMULATED))
    GridSearchCV(pipe, {"dpridge__alpha": [0.1, 1.0]}, cv=2).fit(frame, y)
    assert len(free.entries()) == 10


@pytest.mark.parametrize("kind", COLUMNS)
def test_hostile_columns_cost_no_error(kind, hostile):
    X, y = hostile
    model = kind(epsilon=1.0, **SIMULATED).fit(X, y)
    learned = (model.mean_,) if kind is DPMean else (model.center_, model.scale_)
    assert all(np.isfinite(array).all() for array in learned)
    if kind is DPScaler:
        assert (model.scale_ > 0).all()
        assert model.transform(X).shape == X.shape
    assert "NOT PRIVATE" in model._repr_html_()


@pytest.mark.parametrize("kind", COLUMNS)
def test_persons_refusals_and_statement(kind, frame):
    groups = np.arange(len(frame)) // 2
    with sklearn.config_context(enable_metadata_routing=True):
        assert "groups" in str(kind().set_fit_request(groups=True).get_metadata_routing())
    model = kind(epsilon=1.0, max_rows=2, random_state=0).fit(frame, groups=groups)
    assert "one person" in model.privacy_.unit
    assert model.privacy_.private
    ledger = Ledger(epsilon=1.0, delta=1e-5)
    for wrong, match in (
        ({"epsilon": -1.0}, "epsilon"), ({"invalid": "drop"}, "invalid"),
        ({"random_state": 1.5}, "random_state"), ({"max_rows": 2}, "groups"),
    ):  # fmt: skip
        with pytest.raises(InvalidInput, match=match):
            kind(**{"ledger": ledger, **wrong}).fit(frame)
    with pytest.raises(InvalidInput, match="sample_weight"):
        kind(ledger=ledger).fit(frame, sample_weight=groups)
    assert ledger.entries() == ()


def test_where_no_theory_gives_an_interval(frame):
    for method, options in (
        ("ksu", {}),
        ("clamped", {"blocks": 5}),
        ("clipped", {"threshold": 1e6}),
    ):
        estimate = private_mean(frame, epsilon=5.0, method=method, **options, **SIMULATED)
        with pytest.raises(InvalidInput, match="sampling=False"):
            estimate.conf_int()
        assert estimate.conf_int(sampling=False).shape == (3, 2)
    person = DPMean(epsilon=5.0, max_rows=2, **SIMULATED)
    with pytest.raises(InvalidInput, match="not independent"):
        person.fit(frame, groups=np.arange(len(frame))).conf_int()
    for level in (0.0, 1.0, 95):
        with pytest.raises(InvalidInput, match="confidence"):
            DPMean(**SIMULATED).fit(frame).conf_int(level)


@pytest.mark.slow
@pytest.mark.parametrize("kind", [DPLinearRegression, DPHuberRegressor, DPLogisticRegression])
def test_intervals_for_slopes_hold_what_noise_did(kind):
    """40 x 4 intervals of 95 % around the mean of all runs; below .9 by chance 1e-2 if just so."""
    rng = np.random.default_rng(0)
    X = rng.standard_t(3, (5_000, 4))
    X[:, 1] += X[:, 0]
    y = X @ [1.0, -1.0, 0.5, 2.0] + rng.standard_t(3, 5_000)
    y = (y > 0).astype(int) if kind is DPLogisticRegression else y
    declared = {"classes": [0, 1]} if kind is DPLogisticRegression else {}
    models = [
        kind(epsilon=1.0, noise="simulated", random_state=seed, **declared).fit(X, y)
        for seed in range(40)
    ]
    centre = np.mean([model.coef_ for model in models], axis=0)
    ends = np.array([model.conf_int(0.95, kind="noise") for model in models])
    assert ends.shape == (40, *centre.shape, 2)
    assert np.mean((ends[..., 0] <= centre) & (centre <= ends[..., 1])) > 0.9
    thin = np.array([model.conf_int(0.01, kind="noise") for model in models])
    assert np.mean((thin[..., 0] <= centre) & (centre <= thin[..., 1])) < 0.9


def test_where_no_theory_gives_intervals_for_slopes():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(2_000, 3))
    y = X @ [1.0, 2.0, 3.0]
    named = DPRidge(epsilon=50.0, algorithm="proximal-gradient", **SIMULATED).fit(X, y)
    assert np.isnan(named.coef_noise_std_).all()
    with pytest.raises(InvalidInput, match="no theory"):
        named.conf_int()
    constant = DPRidge(epsilon=0.05, **SIMULATED).fit(X, rng.normal(size=2_000))
    with pytest.raises(InvalidInput, match="private constant"):
        constant.conf_int()
    free = DPRidge(epsilon=math.inf, **SIMULATED).fit(X, y)
    assert not free.coef_noise_std_.any()
    assert np.array_equal(free.conf_int(kind="noise")[:, 0], free.coef_)
    model = DPRidge(epsilon=5.0, **SIMULATED).fit(X, y)
    wide, narrow = (np.diff(model.conf_int(level, kind="noise")) for level in (0.99, 0.5))
    assert (wide > narrow).all()
    assert model.conf_int(0.95, kind="noise")[:, 1] - model.coef_ == pytest.approx(
        1.96 * model.coef_noise_std_, rel=1e-3
    )


@pytest.mark.parametrize("kind", [DPLinearRegression, DPLogisticRegression])
@pytest.mark.parametrize("epsilon", [0.2, 3.0])
def test_nothing_bounds_the_slope_of_a_feature_that_is_not_used(kind, epsilon):
    rng = np.random.default_rng(0)
    X = np.column_stack([rng.normal(size=(10_000, 2)), np.zeros(10_000)])
    y = X @ [1.0, 2.0, 0.0] + rng.logistic(size=10_000)  # labels told apart have no length
    declared = {"classes": [0, 1]} if kind is DPLogisticRegression else {}
    y = (y > 0).astype(int) if declared else y
    model = kind(epsilon=epsilon, **declared, **SIMULATED).fit(X, y)
    low, high = model.conf_int().reshape(3, 2).T
    assert np.isfinite(high[:2] - low[:2]).all()
    assert (model.coef_.ravel()[2], low[2], high[2]) == (0, -math.inf, math.inf)


@pytest.mark.parametrize("kind", [DPLinearRegression, DPLogisticRegression])
def test_where_no_feature_is_used_all_slopes_are_zero(kind):
    X = np.random.default_rng(0).standard_t(2.5, (50, 3)) * 1e300
    declared = {"classes": [0, 1]} if kind is DPLogisticRegression else {}
    y = (X[:, 0] > 0).astype(int) if declared else X[:, 0] / 1e300
    model = kind(epsilon=1e4, fit_intercept=False, **declared, **SIMULATED).fit(X, y)
    assert not model.coef_.any()
    assert np.isinf(model.coef_noise_std_).all()


@pytest.mark.parametrize("epsilon", [0.2, 3.0])
def test_no_noise_is_stated_of_slopes_that_were_not_selected(epsilon):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(5_000, 63))
    y = X[:, :2] @ [1.0, 2.0] + 0.1 * rng.normal(size=5_000)
    model = DPSparseRegressor(10, epsilon=epsilon, **SIMULATED).fit(X, y)
    unknown = np.isnan(model.coef_noise_std_)
    assert not model.coef_[unknown].any()
    assert np.isfinite(model.coef_noise_std_[~unknown]).all()
    assert not unknown[:2].any()
    assert unknown.sum() >= 53


def test_a_rare_indicator_counts_if_the_budget_shows_it():
    """One that is 1 in a two-hundredth of the rows, as no declared category: its slope is 10."""
    rng = np.random.default_rng(0)
    X = np.column_stack([rng.normal(size=(50_000, 2)), rng.random(50_000) < 0.005])
    y = X @ [1.0, 1.0, 10.0] + rng.normal(size=50_000)
    model = DPLinearRegression(epsilon=3.0, **SIMULATED).fit(X, y)
    assert model.coef_[2] == pytest.approx(10.0, rel=0.1)


def test_intervals_for_means_cover():
    """Binomial band of chance 1e-6 below .95, for 3 columns of 80 tables.

    They hold more than 95 %: what clipping may have cost is bounded, not known.
    """
    rng = np.random.default_rng(5)
    inside = np.zeros(3)
    for seed in range(80):
        X = np.column_stack(
            [rng.standard_t(4, 2_000), rng.normal(7, 2, 2_000), rng.uniform(0, 1, 2_000)]
        )
        model = DPMean("clamped", epsilon=1.0, noise="simulated", random_state=seed).fit(X)
        low, high = model.conf_int(0.95).T
        inside += (low <= [0.0, 7.0, 0.5]) & (high >= [0.0, 7.0, 0.5])
    assert inside.sum() / 240 > 0.87
    assert (inside / 80 > 0.79).all()


def test_a_column_called_like_a_category_is_refused_before_the_charge():
    """A table of slopes by name would lose one of the two."""
    x, ledger = np.random.default_rng(0).normal(size=200), Ledger(epsilon=1.0, delta=1e-5)
    frame = pd.DataFrame({"region=north": x, "region": ["north", "south"] * 100})
    model = DPLinearRegression(categories={"region": ["north", "south"]}, ledger=ledger)
    with pytest.raises(InvalidInput, match="Two features are called 'region=north'"):
        model.fit(frame, x)
    assert ledger.entries() == ()


def test_refusals_name_the_exposure_and_numbers_that_are_text() -> None:
    X, y = np.ones((30, 1)), np.ones(30)
    with pytest.raises(InvalidInput, match=r"The exposure needs shape \(30,\).*got \(1,\)"):
        DPPoissonRegressor().fit(X, y, exposure=[1.0])
    ages = pd.DataFrame({"age": ["34", "51"] * 15})
    with pytest.raises(InvalidInput, match="convert it if numbers are written as text"):
        DPPoissonRegressor().fit(ages, y)
