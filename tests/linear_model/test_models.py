"""What every estimator must do, over MODELS: a new member is tested by existing."""

from __future__ import annotations

import io
import math
import pickle
import re
from contextlib import redirect_stderr
from pathlib import Path

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import sklearn
from scipy import sparse
from scipy.optimize import minimize
from sklearn.base import clone, is_classifier
from sklearn.linear_model import (
    ElasticNet,
    GammaRegressor,
    Lasso,
    LinearRegression,
    LogisticRegression,
    PoissonRegressor,
    QuantileRegressor,
    Ridge,
    TweedieRegressor,
)
from sklearn.metrics import mean_poisson_deviance
from sklearn.model_selection import GridSearchCV, GroupKFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer
from sklearn.utils.estimator_checks import estimator_checks_generator

import privtail
from privtail import Ledger
from privtail.domains import L1, L2
from privtail.errors import (
    BudgetExceeded,
    DeltaWarning,
    InvalidInput,
    NoiseWarning,
    PrivacyWarning,
    PrivtailError,
)
from privtail.linear_model import (
    MODELS,
    DPElasticNet,
    DPGeneralizedLinearEstimator,
    DPHuberRegressor,
    DPLADRegressor,
    DPLasso,
    DPLinearRegression,
    DPLogisticRegression,
    DPPoissonRegressor,
    DPQuantileRegressor,
    DPRidge,
    DPSparseRegressor,
)
from privtail.losses import CustomLoss, HuberLoss, MultinomialLoss
from privtail.model import Column, Model
from privtail.trusted.accountants import cost
from privtail.trusted.accounting.curves import GaussianDP

SIMULATED = {"noise": "simulated", "random_state": 0}
FREE = {"epsilon": math.inf, **SIMULATED}
EVERY = {**MODELS, "generalized": DPGeneralizedLinearEstimator}
every_model = pytest.mark.parametrize("name", EVERY)
some_models = pytest.mark.parametrize(
    "name", [pytest.param(n, marks=[pytest.mark.slow] * (k % 2)) for k, n in enumerate(EVERY)]
)
"""Every second model by `make test`, where nothing of a model's own is tried."""


@pytest.fixture(scope="module")
def table():
    """Correlated features in odd units, and a target of each kind."""
    rng = np.random.default_rng(0)
    X = rng.standard_t(4, (500, 3)) @ (np.eye(3) + 0.4 * rng.normal(size=(3, 3)))
    X = X * [1.0, 10.0, 0.1] + [0.0, 5.0, -2.0]
    signal = X @ [1.0, -0.05, 4.0]
    y = signal + rng.standard_t(3, 500)
    expected = np.exp(0.3 + np.clip(0.1 * signal, -3, 2))
    counts = rng.poisson(expected).astype(float)
    positive = expected * np.random.default_rng(1).gamma(2.0, 0.5, 500)
    return X, {
        "real": y,
        "count": counts,
        "positive": positive,
        "amount": counts * positive,
        "label": y > np.median(y),
        "three": np.digitize(y, [-9, -7]),
    }


def target(name, targets):
    return targets[
        {
            "poisson": "count",
            "gamma": "positive",
            "tweedie": "amount",
            "logistic": "label",
            "sparse-logistic": "label",
        }.get(name, "real")
    ]


# --- scikit-learn's checks ------------------------------------------------------------------


ONCE = {
    1e4: ("linear", "lad", "quantile", "poisson", "gamma", "generalized", "logistic", "sparse"),
    math.inf: ("ridge", "lasso", "elastic-net", "huber", "tweedie", "sparse-logistic"),
}
"""Where `make test` checks each model: privately, or, of those that differ little, without.

Regressors that follow each other get the two halves of the checks: half of them try each check.
"""


def checks():
    for epsilon, quick in ONCE.items():
        for own, (name, kind) in enumerate(EVERY.items()):
            model = kind(epsilon=epsilon, invalid="raise", **SIMULATED)
            for place, (estimator, check) in enumerate(estimator_checks_generator(model)):
                title = f"{name}-{epsilon:g}-{check.func.__name__}"
                later = not is_classifier(model) and (own + place) % 2
                marks = [pytest.mark.slow] * bool(name not in quick or later)
                yield pytest.param(estimator, check, id=title, marks=marks)


@pytest.mark.usefixtures("few_steps")
@pytest.mark.filterwarnings("ignore")  # checks fit tiny tables and warn of what they do to them
@pytest.mark.parametrize(("estimator", "check"), list(checks()))
def test_scikit_learns_checks(estimator, check):
    check(estimator)


def test_every_model_is_checked_quickly():
    assert EVERY.keys() == {name for names in ONCE.values() for name in names}


# --- what parameters mean ---------------------------------------------------------------------

TIGHT = {"tol": 1e-11, "max_iter": 100_000}
TWINS = {
    "linear": ({}, LinearRegression()),
    "ridge": ({"alpha": 30.0}, Ridge(alpha=30.0)),
    "lasso": ({"alpha": 0.1}, Lasso(alpha=0.1, **TIGHT)),
    "elastic-net": ({"alpha": 0.1, "l1_ratio": 0.3}, ElasticNet(alpha=0.1, l1_ratio=0.3, **TIGHT)),
    "lad": ({}, QuantileRegressor(alpha=0.0)),
    "quantile": (
        {"quantile": 0.8, "alpha": 0.02},
        QuantileRegressor(quantile=0.8, alpha=0.02),
    ),
    "poisson": ({"alpha": 0.1}, PoissonRegressor(alpha=0.1, **TIGHT)),
    "gamma": ({"alpha": 0.1}, GammaRegressor(alpha=0.1, **TIGHT)),
    "tweedie": (
        {"alpha": 0.1, "power": 1.3},
        TweedieRegressor(alpha=0.1, power=1.3, link="log", **TIGHT),
    ),
    "logistic": ({"C": 0.1}, LogisticRegression(C=0.1, **TIGHT)),
}


@pytest.mark.parametrize("name", TWINS)
def test_without_privacy_it_is_scikit_learns(table, name, half):
    """Every second model has an intercept in `make test`, and the others in `make check`."""
    intercept = (list(TWINS).index(name) + half) % 2 == 1
    X, targets = table
    parameters, twin = TWINS[name]
    y = target(name, targets)
    twin = clone(twin).set_params(fit_intercept=intercept).fit(X, y)
    model = MODELS[name](**parameters, fit_intercept=intercept, **FREE).fit(X, y)
    assert model.coef_ == pytest.approx(twin.coef_, abs=1e-3)
    assert model.predict(X) == pytest.approx(twin.predict(X), abs=1e-2)


@pytest.mark.parametrize("weight", [None, "balanced", {0: 3.0, 2: 0.5}])
def test_multinomial_without_privacy_is_scikit_learns(table, weight):
    X, targets = table
    twin = LogisticRegression(C=0.2, class_weight=weight, **TIGHT).fit(X, targets["three"])
    model = DPLogisticRegression(0.2, class_weight=weight, **FREE).fit(X, targets["three"])
    assert model.coef_ == pytest.approx(twin.coef_, abs=1e-3)
    assert model.predict_proba(X) == pytest.approx(twin.predict_proba(X), abs=1e-3)


@pytest.mark.parametrize("K", [2, 3])
def test_a_constant_column_is_no_reason_for_endless_steps(table, K):
    """Rounding moved what no gradient decides: all 3,000 steps, and slopes of .1 times the column.

    Three classes too leave a direction undecided, an intercept for all of them.
    """
    X, _ = table
    X, y = np.column_stack([X, np.full(len(X), 7.0)]), np.arange(len(X)) % K
    model = DPLogisticRegression(classes=range(K), **FREE).fit(X, y)
    assert model.n_iter_ < 300
    assert np.abs(model.coef_[:, 3]).max() < 0.03


def test_huber_minimises_its_objective(table):
    X, targets = table
    y = targets["real"]
    model = DPHuberRegressor(1.0, 0.5, **FREE).fit(X, y)
    t = model.threshold_
    assert 0.5 * np.std(y) < t < 2 * np.std(y)

    def objective(w):
        r = X @ w[:3] + w[3] - y
        slope = 2 * np.clip(r, -t, t)
        value = np.sum(np.where(np.abs(r) < t, r**2, 2 * t * np.abs(r) - t**2))
        return value + 0.5 * w[:3] @ w[:3], np.append(X.T @ slope + w[:3], slope.sum())

    best = minimize(objective, np.zeros(4), jac=True, method="BFGS", options={"gtol": 1e-7}).x
    assert model.coef_ == pytest.approx(best[:3], abs=1e-3)
    assert model.intercept_ == pytest.approx(best[3], abs=1e-3)


def test_any_loss_with_any_penalty(table):
    X, targets = table
    y = targets["real"]
    ridge = DPRidge(5.0, **FREE).fit(X, y)
    for loss in (
        "squared",
        CustomLoss(value=lambda m, y: (m - y) ** 2 / 2, derivative=lambda m, y: m - y),
    ):
        model = DPGeneralizedLinearEstimator(loss, L2(alpha=5.0 / len(y)), **FREE).fit(X, y)
        assert model.coef_ == pytest.approx(ridge.coef_, abs=1e-3)
    counts = DPGeneralizedLinearEstimator("poisson", L2(alpha=0.1), **FREE)
    twin = DPPoissonRegressor(0.1, **FREE).fit(X, targets["count"])
    assert counts.fit(X, targets["count"]).predict(X) == pytest.approx(twin.predict(X), abs=1e-6)
    private = DPGeneralizedLinearEstimator(
        HuberLoss(threshold=2.0), L1(alpha=0.1), epsilon=200.0, **SIMULATED
    )
    assert private.fit(X, y).score(X, y) > 0.2


def test_squares_are_the_same_model_under_either_name():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(5_000, 3))
    y = X[:, 0] + rng.lognormal(0, 1.5, 5_000)
    seeded = {"epsilon": 1, "noise": "simulated", "random_state": 0}
    named = DPGeneralizedLinearEstimator("squared", **seeded).fit(X, y)
    own = DPLinearRegression(**seeded).fit(X, y)
    assert named.coef_.tolist() == own.coef_.tolist()
    assert named.intercept_ == own.intercept_


# --- privately ----------------------------------------------------------------------------------


@pytest.mark.parametrize("unit", [1e-6, 1.0, 1e6])
@pytest.mark.parametrize("kind", [DPHuberRegressor, DPLADRegressor, DPQuantileRegressor])
def test_robust_losses_learn_in_any_unit(kind, unit):
    rng = np.random.default_rng(0)
    X = rng.standard_t(3, (20_000, 4))
    y = (X @ [1.0, -1.0, 0.5, 0.0] + 2 + rng.standard_t(3, 20_000)) * unit
    model = kind(alpha=0.0, epsilon=1.0, **SIMULATED).fit(X, y)
    assert np.abs(model.coef_ / unit - [1.0, -1.0, 0.5, 0.0]).max() < 0.25
    assert model.intercept_ / unit == pytest.approx(2.0, abs=0.25)


@pytest.mark.parametrize("level", [-5.0, 0.0, 7.0])
@pytest.mark.parametrize("epsilon", [0.05, 2.0])
def test_counts_rare_and_large(level, epsilon):
    rng = np.random.default_rng(1)
    X = rng.standard_t(3, (20_000, 3))
    mean = np.exp(level + 0.5 * np.tanh(X @ [1.0, -1.0, 0.5]))
    y = rng.poisson(mean)
    model = DPPoissonRegressor(0.0, epsilon=epsilon, **SIMULATED).fit(X, y)
    predicted = model.predict(X)
    assert np.isfinite(predicted).all()

    constant = mean_poisson_deviance(y, np.full(len(y), y.mean()))
    assert mean_poisson_deviance(y, predicted) < 1.5 * constant
    if epsilon == 2.0 and level >= 0:
        assert mean_poisson_deviance(y, predicted) < 0.95 * constant


@every_model
def test_private_fit_statement_plan_and_json(table, name, tmp_path):
    X, targets = table
    frame = pd.DataFrame(X, columns=["a", "b", "c"])
    y = target(name, targets)
    ledger = Ledger(epsilon=3.0, delta=1e-4)
    declared = {"classes": [False, True]} if "logistic" in name else {}
    model = EVERY[name](epsilon=2.0, ledger=ledger, random_state=0, **declared).fit(frame, y)
    assert model.privacy_.private
    assert 1.9 < model.privacy_.spent <= 2.0
    assert [e.epsilon for e in ledger.entries()] == [model.privacy_.spent]
    assert model.privacy_.plan == model.plan_.releases
    assert model.plan_.epsilon == model.privacy_.spent
    before = clone(model).plan(*X.shape)
    assert before.releases == model.plan_.releases
    assert before.noise_error == model.plan_.noise_error > 0
    same = clone(model).set_params(algorithm=model._algorithm())
    assert same.plan(*X.shape).noise_error == before.noise_error
    assert before.steps == model.n_iter_
    assert list(model.feature_names_in_) == ["a", "b", "c"]
    assert model.n_features_in_ == 3
    with pytest.raises(BudgetExceeded):
        clone(model).fit(frame, y)

    columns = [Column(c) for c in frame.columns]
    Model.of(model, target="y", columns=columns).save(tmp_path / "model.json")
    written = privtail.load(tmp_path / "model.json")
    assert written.kind == model.kind
    assert written.link == model.link
    if "logistic" in name:
        assert list(written.predict(frame)) == list(model.predict(frame))
        assert written.predict_proba(frame) == pytest.approx(model.predict_proba(frame))
    else:
        assert written.predict(frame) == pytest.approx(model.predict(frame), rel=1e-12)
    again = pickle.loads(pickle.dumps(model.set_params(ledger=None)))  # noqa: S301
    assert np.array_equal(again.predict(frame), model.predict(frame))


@some_models
def test_containers_give_one_model(table, name):
    X, targets = table
    X = np.round(X * 64) / 64
    y = target(name, targets)
    frame = pd.DataFrame(X, columns=["a", "b", "c"])
    expected = EVERY[name](epsilon=50.0, **SIMULATED).fit(frame, y)
    for other in (X, pl.DataFrame(frame), pa.Table.from_pandas(frame), dict(frame)):
        model = EVERY[name](epsilon=50.0, **SIMULATED).fit(other, y)
        assert np.array_equal(model.coef_, expected.coef_)
        assert model.n_features_in_ == 3
        assert model.predict(other[:9] if not isinstance(other, dict) else other)[:9] == (
            pytest.approx(expected.predict(frame)[:9])
        )
        if other is not X:
            assert list(model.feature_names_in_) == ["a", "b", "c"]
            with pytest.raises(ValueError, match="b"):
                model.predict(pd.DataFrame(X, columns=["a", "x", "c"]))
    csr = EVERY[name](epsilon=50.0, **SIMULATED).fit(sparse.csr_matrix(X), y)
    assert csr.predict(sparse.csr_matrix(X)).shape == y.shape


@every_model
def test_refit_forgets(table, name):
    X, targets = table
    y = target(name, targets)
    model = EVERY[name](epsilon=50.0, count_invalid=0.1, **SIMULATED)
    model.fit({"a": X[:, 0], "b": X[:, 1]}, y)
    assert model.n_features_in_ == 2
    assert 0 <= model.n_invalid_ < 30
    model.set_params(count_invalid=0.0).fit({"z": X[:, 0]}, y)
    assert model.n_features_in_ == 1
    assert list(model.feature_names_in_) == ["z"]
    assert not hasattr(model, "n_invalid_")
    model.fit(X, y)
    assert model.n_features_in_ == 3
    assert not hasattr(model, "feature_names_in_")


def searched(table, name, ledger):
    """Entries of a ledger of a grid of two models, cross-validated twice and refitted."""
    X, targets = table
    declared = {"classes": [False, True]} if "logistic" in name else {}
    model = EVERY[name](epsilon=1.0, ledger=ledger, **declared, **SIMULATED)
    assert clone(model).get_params() == model.get_params()
    pipe = make_pipeline(FunctionTransformer(), model)
    step = pipe.steps[-1][0]
    grid = GridSearchCV(pipe, {f"{step}__fit_intercept": [True, False]}, cv=2)
    grid.fit(X, target(name, targets))


@pytest.mark.usefixtures("simulated_is_booked")
@some_models
def test_clone_pipeline_and_grid_share_a_ledger(table, name):
    ledger = Ledger(epsilon=100.0, delta=1e-3)
    searched(table, name, ledger)
    assert len(ledger.entries()) == 5


@pytest.mark.usefixtures("simulated_is_booked")
def test_clones_share_a_ledger_on_disk(table, tmp_path):
    path = tmp_path / "budget.jsonl"
    ledger = Ledger(path, epsilon=100.0, delta=1e-3)
    for count, given in ((5, ledger), (10, str(path))):
        searched(table, "linear", given)
        assert len(ledger.entries()) == count


@every_model
def test_groups_by_metadata_routing(table, name):
    X, targets = table
    y = target(name, targets)
    groups = np.arange(len(y)) // 2
    with sklearn.config_context(enable_metadata_routing=True):
        model = EVERY[name](epsilon=50.0, max_rows=2, **SIMULATED).set_fit_request(groups=True)
        search = GridSearchCV(model, {"fit_intercept": [True]}, cv=GroupKFold(2))
        search.fit(X, y, groups=groups)
    assert "one person" in search.best_estimator_.privacy_.unit
    with pytest.raises(InvalidInput, match="max_rows"):
        EVERY[name](epsilon=50.0, **SIMULATED).fit(X, y, groups=groups)


@every_model
def test_what_is_not_a_parameter_is_refused_for_free(table, name, tmp_path):
    X, targets = table
    y = target(name, targets)
    ledger = Ledger(epsilon=1.0, delta=1e-5)
    odd = [
        ({"random_state": np.random.default_rng(0)}, "random_state"),
        ({"random_state": 1.5}, "random_state"),
        ({"epsilon": "1"}, "epsilon must be a number"),
        ({"epsilon": -1.0}, "epsilon"),
        ({"delta": 2.0}, "delta"),
        ({"ledger": tmp_path / "none.jsonl"}, "Make it first"),
        ({"ledger": 3}, "ledger"),
        ({"fit_intercept": "yes"}, "fit_intercept"),
        ({"invalid": "drop"}, "invalid"),
        ({"noise": "none"}, "noise"),
        ({"count_invalid": 1.0}, "count_invalid"),
        ({"count_invalid": "all"}, "count_invalid"),
        ({"categories": ["a"]}, "categories"),
        ({"algorithm": "gradient"}, "algorithm"),
        ({"algorithm": 3}, "algorithm"),
        ({"max_rows": 2}, "groups"),
    ]
    model = EVERY[name]()
    for parameter in ("alpha", "C", "threshold", "l1_ratio", "quantile"):
        if hasattr(model, parameter):
            odd += [({parameter: value}, parameter) for value in (-1.0, "1", math.nan)]
    for wrong, match in odd:
        with pytest.raises(InvalidInput, match=match):
            EVERY[name](**{"ledger": ledger, "epsilon": 0.5, **wrong}).fit(X, y)
    model = EVERY[name](epsilon=0.5, ledger=ledger)
    for records, labels, match in (
        (X[:, 0], y, "reshape|2D|dimension"),
        (X, None, "y is None"),
        (X, y[:-1], "shape"),
        (X + 0j, y, "Complex"),
    ):
        with pytest.raises(ValueError, match=match):
            model.fit(records, labels)
    with pytest.raises(InvalidInput, match=r"how far one row may move.*class_weight"):
        model.fit(X, y, sample_weight=np.ones(len(y)))
    with pytest.raises(TypeError, match="weights"):
        model.fit(X, y, weights=np.ones(len(y)))
    assert ledger.entries() == ()


@every_model
def test_warnings_come_from_public_numbers(table, name):
    X, targets = table
    y = target(name, targets)
    declared = {"classes": [False, True]} if "logistic" in name else {}
    kind = EVERY[name]
    with pytest.warns(DeltaWarning, match="1/n"):
        kind(delta=0.01, **declared, **SIMULATED).fit(X, y)
    with pytest.warns(NoiseWarning, match="Only strong effects|only a constant"):
        kind(epsilon=0.001, **declared, **SIMULATED).fit(X, y)
    quiet = kind(epsilon=10.0, **declared).plan(10_000, 3)
    assert quiet.warnings == ()
    assert len(kind(epsilon=0.001, delta=0.01, **declared).plan(150, 3).warnings) == 2
    assert kind(epsilon=math.inf, delta=0.5, **declared).plan(500, 3).warnings == ()
    assert issubclass(DeltaWarning, PrivacyWarning)


def test_the_plan_is_readable():
    plan = DPRidge(epsilon=0.5, delta=1e-5).plan(100_000, 10)
    assert plan.epsilon == pytest.approx(0.5, rel=1e-3)
    assert plan.cost.mu is not None
    assert GaussianDP(plan.cost.mu).delta(0.5) == pytest.approx(1e-5, rel=1e-2)
    text = plan.to_text()
    for part in ("n = 100,000", "d = 10", "noise error", "20 x 11 numbers", "ε = 0.5"):
        assert part in text
    assert "<pre>" in plan._repr_html_()
    assert DPRidge(epsilon=1.0).plan(100_000, 10).noise_error < plan.noise_error
    assert len(list(plan)) == len(plan)
    labels = DPLogisticRegression(classes=[0, 1]).plan(100_000, 10)
    assert "target" not in labels.to_text(), "labels have no scale"


def test_a_plan_says_what_share_of_the_cost_each_stage_takes():
    plan = DPRidge(epsilon=1.0).plan(10_000, 3)
    squares = [cost((part,), "replace_one").mu ** 2 for part in plan]
    assert sum(plan.shares) == pytest.approx(1)
    assert plan.shares == pytest.approx(np.array(squares) / sum(squares), rel=1e-6)
    assert "\n  descent, 10.3% of the cost:\n" in plan.to_text()
    assert "\n  acceptance test, 5.1% of the cost:\n" in plan.to_text()
    free = DPRidge(epsilon=math.inf).plan(100, 2)
    assert all(math.isnan(share) for share in free.shares)
    assert "% of the cost" not in free.to_text()


@pytest.mark.parametrize("kind", [DPLinearRegression, DPSparseRegressor])
def test_features_that_are_not_selected_do_not_warn_of_noise(kind):
    model = kind(epsilon=0.5, delta=1e-3)
    few, many = model.plan(1_000, 100), model.plan(1_000, 300)
    assert few.warnings == many.warnings == ()
    assert many.noise_error < 1.5 * few.noise_error
    drowned = kind(epsilon=0.5, delta=1e-3, algorithm="clipped-spgd").plan(1_000, 100)
    assert "Only strong effects" in drowned.warnings[0]


def test_slopes_that_noise_drowns_are_said_to_be_zero(table):
    X, _ = table
    rng = np.random.default_rng(5)
    model = DPRidge(epsilon=3.0, **SIMULATED).fit(X, rng.normal(size=len(X)))
    assert not model.coef_.any()
    assert "slopes are set to zero" in model.privacy_.notes[0]
    assert "slopes are set to zero" in " ".join(model.privacy_.to_text().split())
    from privtail.statement import Statement

    assert Statement.from_json(model.privacy_.to_json()) == model.privacy_


@every_model
def test_a_notebook_sees_the_statement(table, name):
    X, targets = table
    model = EVERY[name](epsilon=50.0, **SIMULATED)
    assert "NOT PRIVATE" not in model._repr_html_()
    model.fit(X, target(name, targets))
    for html in (model._repr_html_(), model._repr_mimebundle_()["text/html"]):
        assert "NOT PRIVATE: simulated noise" in html
        assert type(model).__name__ in html
    with sklearn.config_context(display="text"):
        assert not hasattr(model, "_repr_html_")
        assert "text/html" not in model._repr_mimebundle_()


def test_progress_on_request(table):
    X, targets = table
    with redirect_stderr(io.StringIO()) as stderr:
        DPRidge(**SIMULATED).fit(X, targets["real"])
    assert stderr.getvalue() == ""
    with redirect_stderr(io.StringIO()) as stderr:
        DPRidge(verbose=1, **SIMULATED).fit(X, targets["real"])
    lines = stderr.getvalue().splitlines()
    done, planned = (int(word) for word in lines[-1].split() if word.isdigit())
    assert done == planned > 30
    assert len(lines) <= 12


def test_invalid_rows_are_counted_when_paid_for(table):
    X, targets = table
    holes = X.copy()
    holes[:40] = np.nan
    model = DPRidge(epsilon=20.0, count_invalid=0.1, **SIMULATED).fit(holes, targets["real"])
    assert model.n_invalid_ == pytest.approx(40, abs=10)
    words = np.where(targets["label"], "yes", "no")
    misspelt = DPLogisticRegression(
        epsilon=20.0, count_invalid=0.1, classes=["yse", "no"], **SIMULATED
    ).fit(X, words)
    assert misspelt.n_invalid_ == pytest.approx(np.sum(words == "yes"), abs=10)
    assert misspelt.privacy_.cost.epsilon(1e-6) <= 20.0


def test_class_weights_move_the_border():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(20_000, 2))
    y = X[:, 0] + rng.normal(size=20_000) > 1.5
    shares = []
    for weight in (None, {True: 4.0}, "balanced"):
        model = DPLogisticRegression(
            epsilon=2.0, classes=[False, True], class_weight=weight, **SIMULATED
        )
        shares.append(model.fit(X, y).predict(X).mean())
    assert shares[0] < y.mean() < shares[1] < shares[2] < 0.5
    for wrong in ("equal", {True: -1.0}, {True: "x"}, [1, 2]):
        with pytest.raises(InvalidInput, match="weight"):
            DPLogisticRegression(classes=[False, True], class_weight=wrong).fit(X, y)


@pytest.mark.parametrize("classes", [None, ["no", "yes"]])
@pytest.mark.parametrize(("weight", "match"), [(0, "above 0"), (-1, "above 0"), (1e-300, "apart")])
def test_class_weights_are_checked_before_the_charge(classes, weight, match):
    """Without classes 0 was refused after it; the tiny one always, for a threshold of 0."""
    ledger = Ledger(epsilon=1.0, delta=1e-3)
    model = DPLogisticRegression(class_weight={"yes": weight}, classes=classes, ledger=ledger)
    with pytest.raises(InvalidInput, match=match):
        model.fit(np.ones((100, 1)), ["no", "yes"] * 50)
    assert not ledger.entries()


@pytest.mark.parametrize("name", MODELS)
def test_the_table_of_models(name):
    assert MODELS[name].kind == name
    kind = MODELS[name]
    first = ["C"] if name == "logistic" else ["sparsity"] if "sparse" in name else []
    names = list(kind().get_params())
    assert set(first) <= set(names)
    with pytest.raises(TypeError, match="positional"):
        kind(*range(8))


def test_a_file_is_fitted_on_by_the_names_of_its_columns(tmp_path):
    rng = np.random.default_rng(0)
    frame = {
        "age": rng.normal(size=500), "job": rng.choice(["cook", "clerk"], 500),
        "person": rng.integers(0, 100, 500),
    }  # fmt: skip
    y = frame["age"] + (frame["job"] == "cook")
    pq.write_table(pa.table({**frame, "cost": y}), tmp_path / "t.parquet")
    table = privtail.open_table(tmp_path / "t.parquet", categories={"job": ["clerk", "cook"]})
    options = {"epsilon": 3.0, "noise": "simulated", "random_state": 0, "max_rows": 9}
    streamed = DPRidge(**options).fit(table, "cost", groups="person")
    columns = {"age": frame["age"], "job": frame["job"]}
    held = DPRidge(categories={"job": ["clerk", "cook"]}, **options)
    held.fit(columns, y, groups=frame["person"])
    assert (streamed.coef_ == held.coef_).all()
    assert list(streamed.feature_names_in_) == ["age", "job"]
    assert (streamed.predict(columns) == held.predict(columns)).all()
    assert (streamed.predict(table) == held.predict(columns)).all()
    with pytest.raises(InvalidInput, match="'wages'"):
        DPRidge(**options).fit(table, "cost", groups="wages")


@pytest.mark.parametrize("categories", [["job"], {"job": []}])
def test_categories_that_say_nothing_are_refused_before_a_charge(categories):
    frame = pd.DataFrame({"age": [1.0, 2.0], "job": ["cook", "clerk"]})
    ledger = Ledger(epsilon=1.0, delta=1e-6)
    with pytest.raises(InvalidInput, match="categories"):
        DPLinearRegression(categories=categories, ledger=ledger).fit(frame, [1.0, 2.0])
    assert ledger.remaining == (1.0, 1e-6)


def test_columns_of_one_name_are_refused():
    frame = pd.DataFrame([[1.0, 2.0, 3.0]], columns=["b", "a", "a"])
    with pytest.raises(InvalidInput, match=r"Two columns have the name 'a'.* rename one"):
        DPLinearRegression().fit(frame, [1.0])
    with pytest.raises(InvalidInput, match=r"Two columns have the name 'a'.* rename one"):
        privtail.private_mean(frame, epsilon=1.0)


def test_a_parameter_in_a_call_of_fit_is_shown_its_place():
    with pytest.raises(TypeError, match=r"DPLinearRegression\(epsilon=\.\.\.\)"):
        DPLinearRegression().fit(np.ones((2, 1)), [1.0, 2.0], epsilon=1.0)


def test_a_plan_needs_whole_numbers():
    with pytest.raises(InvalidInput, match="n must be a whole number"):
        DPLinearRegression().plan(1e5, 3)


WRONG = [
    DPRidge(alpha=-1.0),
    DPLasso(alpha="1"),
    DPElasticNet(l1_ratio=3.0),
    DPQuantileRegressor(quantile=2.0),
    DPHuberRegressor(threshold=0.0),
    DPPoissonRegressor(alpha=math.inf),
    DPLogisticRegression(C=-1.0),
    DPGeneralizedLinearEstimator(loss=3),
    DPGeneralizedLinearEstimator(loss=MultinomialLoss(classes=3), algorithm="clipped-spgd"),
    DPGeneralizedLinearEstimator(domain=3),
    DPRidge(algorithm="frank-wolfe"),
    DPLinearRegression(invalid="drop"),
    DPLinearRegression(random_state=0.5),
]


@pytest.mark.parametrize("model", WRONG, ids=str)
def test_a_plan_refuses_what_fit_refuses(table, model):
    """With the same words, and before anything is charged."""
    X, targets = table
    model.set_params(ledger=Ledger(epsilon=9, delta=1e-5))
    with pytest.raises(PrivtailError) as planned:
        model.plan(500, 3)
    with pytest.raises(PrivtailError) as fitted:
        model.fit(X, targets["label"] if model.kind == "logistic" else targets["count"])
    assert str(planned.value) == str(fitted.value)
    assert model.ledger.entries() == ()


def test_a_weight_of_no_declared_class_is_refused():
    model = DPLogisticRegression(classes=["no", "yes"], class_weight={"Yes": 2.0})
    with pytest.raises(InvalidInput, match="class_weight names the label 'Yes'"):
        model.fit(np.eye(2), ["no", "yes"])


@pytest.mark.parametrize("frame", [pd.DataFrame, pl.DataFrame, pa.table, dict])
def test_persons_of_a_frame_are_not_named_by_a_column(table, frame):
    X, targets = table
    named = frame({"a": X[:, 0], "who": np.arange(500)})
    with pytest.raises(InvalidInput, match=r'groups=frame\["who"\]'):
        DPRidge(max_rows=2, **SIMULATED).fit(named, targets["real"], groups="who")


TIMES = ["datetime64[ms]", "timedelta64[ms]"]


@pytest.mark.parametrize("kind", TIMES)
@pytest.mark.parametrize("frame", [pd.DataFrame, pl.DataFrame, pa.table, dict])
def test_times_are_to_become_numbers(table, frame, kind):
    _, targets = table
    named = frame({"when": np.arange(500).astype(kind)})
    with pytest.raises(InvalidInput, match="'when' holds times"):
        DPRidge(**SIMULATED).fit(named, targets["real"])


def test_a_budget_that_is_too_small_is_called_so(table):
    with pytest.raises(InvalidInput, match=r"The budget is too small.*Raise epsilon; of"):
        DPRidge(epsilon=1e-12, delta=1e-10).plan(500, 3)


def test_a_ledger_in_memory_says_why_it_stays_in_its_process(table):
    X, targets = table
    model = DPRidge(ledger=Ledger(epsilon=99, delta=1e-4), **SIMULATED)
    search = GridSearchCV(model, {"alpha": [1.0]}, cv=2, n_jobs=2)
    with pytest.raises(pickle.PicklingError) as refused:
        search.fit(X, targets["real"])
    assert "Use a file: Ledger('budget.jsonl'" in str(refused.value.__cause__)


@pytest.mark.parametrize(
    ("X", "mend"),
    [
        ("claims.csv", "open_table('claims.csv')"),
        (Path("claims.csv"), "open_table('claims.csv')"),
        (np.ones(2), "x.reshape(-1, 1)"),
        (pd.Series([1.0, 2.0]), "x.to_frame()"),
        (pl.Series([1.0, 2.0]), "x.to_frame()"),
        (np.ones((2, 3, 4)), "x.reshape(len(x), -1)"),
    ],
    ids=str,
)
def test_what_is_no_table_is_refused_with_a_mend(X, mend):
    with pytest.raises(InvalidInput, match=re.escape(mend)):
        DPRidge().fit(X, np.ones(2))
