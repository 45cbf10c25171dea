"""Intervals for the slopes of a population, and the table of slopes."""

from __future__ import annotations

import math
from dataclasses import replace
from functools import partial

import numpy as np
import pandas as pd
import pytest

from privtail import load
from privtail.algorithms import ProximalGradient
from privtail.coefficients import LEFT_OUT
from privtail.errors import AccuracyWarning, InvalidInput
from privtail.linear_model import (
    DPHuberRegressor,
    DPLADRegressor,
    DPLinearRegression,
    DPLogisticRegression,
    DPPoissonRegressor,
    DPRidge,
)
from privtail.model import Column, Model

SIMULATED = {"noise": "simulated", "random_state": 0}
SLOPES = np.array([1.0, -2.0, 0.0, 0.5])


def drawn(kind, seed, n=20_000):
    """A table, and an estimator, in which sampling errs as much as noise does at epsilon 5."""
    rng = np.random.default_rng(seed)
    X = rng.standard_t(5, (n, 4))
    margins = X @ SLOPES
    if kind == "labels":
        y = (rng.random(n) < 1 / (1 + np.exp(-margins))).astype(int)
        return X, y, SLOPES, partial(DPLogisticRegression, classes=[0, 1])
    if kind == "counts":
        X = rng.normal(size=(n, 4))
        return X, rng.poisson(np.exp(X @ SLOPES / 4)), SLOPES / 4, DPPoissonRegressor
    y = margins + rng.standard_t(3, n)
    return X, y, SLOPES, DPLinearRegression if kind == "numbers" else DPHuberRegressor


@pytest.mark.parametrize("kind", ["numbers", "huber", "labels", "counts"])
def test_intervals_hold_the_slopes_of_the_population(kind):
    """15 tables of 4 slopes: fewer than 52 of 60 by chance 3e-3, if they hold 95 % just so."""
    held = []
    for seed in range(15):
        X, y, w, make = drawn(kind, seed)
        model = make(epsilon=5.0, noise="simulated", random_state=seed).fit(X, y)
        low, high = model.conf_int().reshape(4, 2).T
        held.append((low <= w) & (w <= high))
    assert np.sum(held) >= 52


def test_the_noise_alone_is_no_interval_for_a_population():
    """What the default once was: it fails where many rows leave little noise."""
    held = []
    for seed in range(10):
        X, y, w, make = drawn("numbers", seed, n=50_000)
        model = make(epsilon=20.0, noise="simulated", random_state=seed).fit(X, y)
        low, high = model.conf_int(kind="noise").T
        held.append((low <= w) & (w <= high))
    assert np.mean(held) < 0.6


def held_where_spread_grows(make, **options):
    """How many of 30 fits hold the slope of the feature with which residuals spread."""
    held = 0
    for seed in range(30):
        rng = np.random.default_rng(seed)
        X = rng.normal(size=(8_000, 4))
        y = X @ SLOPES + np.abs(X[:, 0]) * rng.normal(size=8_000)
        model = make(epsilon=5.0, noise="simulated", random_state=seed, **options).fit(X, y)
        low, high = model.conf_int()[0]
        held += low <= SLOPES[0] <= high
    return held


@pytest.mark.parametrize("make", [DPLinearRegression, DPHuberRegressor])
def test_intervals_may_allow_for_residuals_that_spread_with_a_feature(make):
    """Fewer than 25 of 30 by chance 3e-3, if they hold 95 % just so; without it they hold .7."""
    assert held_where_spread_grows(make, heteroscedastic=True) >= 25
    assert held_where_spread_grows(make) < 25


def test_residuals_that_spread_cost_one_release_more():
    rows = {"n": 20_000, "d": 4}
    plain, more = (DPHuberRegressor(heteroscedastic=own).plan(**rows) for own in (False, True))
    stages = [[r.stage for r in plan.releases] for plan in (plain, more)]
    assert [s for s in stages[1] if s not in stages[0]] == ["spread of the residuals"]
    assert plain.noise_error < more.noise_error < 1.02 * plain.noise_error
    assert more.epsilon <= 1.0


@pytest.mark.parametrize(
    "options",
    [
        {"algorithm": "catoni"},
        {"alpha": 1.0},
        {"algorithm": ProximalGradient(steps=5, step_size=0.1, threshold=1.0)},
    ],
    ids=lambda options: next(iter(options)),
)
def test_no_budget_is_spent_on_standard_errors_that_do_not_exist(options):
    model = DPHuberRegressor(heteroscedastic=True, **options)
    with pytest.raises(InvalidInput, match="Leave heteroscedastic out"):
        model.plan(1_000, 2)
    with pytest.raises(InvalidInput, match="heteroscedastic must be True or False, got 1"):
        DPLinearRegression(heteroscedastic=1).plan(1_000, 2)


@pytest.mark.parametrize("kind", ["numbers", "labels", "counts"])
def test_sampling_errors_are_those_of_maximum_likelihood(kind):
    """Against the inverse of the information at the true slopes, from all rows and no noise."""
    X, y, w, make = drawn(kind, 0, n=50_000)
    model = make(epsilon=50.0, **SIMULATED).fit(X, y)
    Z = np.column_stack([X, np.ones(len(X))])
    m = X @ w
    weights = {
        "numbers": np.full(len(X), 1 / np.mean(np.clip(y - m, -2.5, 2.5) ** 2)),
        "labels": np.exp(-np.logaddexp(0, m) - np.logaddexp(0, -m)),
        "counts": np.exp(m),
    }[kind]
    expected = np.sqrt(np.diag(np.linalg.inv(Z.T @ (weights[:, None] * Z))))[:4]
    assert model.coef_sampling_std_.ravel() == pytest.approx(expected, rel=0.35)


def test_persons_count_as_one_row_each():
    X, y, _, make = drawn("numbers", 0)
    rows = make(epsilon=20.0, **SIMULATED).fit(X, y)
    persons = make(epsilon=40.0, max_rows=4, **SIMULATED).fit(X, y, groups=np.arange(len(X)) // 4)
    ratio = persons.coef_sampling_std_ / rows.coef_sampling_std_
    assert ratio == pytest.approx(np.full(4, 2.0), rel=0.2)


@pytest.mark.parametrize(
    "model",
    [DPRidge(epsilon=5.0), DPLADRegressor(epsilon=5.0), DPLinearRegression(epsilon=math.inf)],
    ids=lambda model: type(model).__name__,
)
def test_where_the_sampling_error_is_not_known(model):
    X, y, *_ = drawn("numbers", 0, n=5_000)
    model.set_params(**SIMULATED).fit(X, y)
    with pytest.raises(InvalidInput, match="sampling error"):
        model.conf_int()
    assert np.isfinite(model.conf_int(kind="noise")).all()
    assert "sampling error" in str(model.summary())
    with pytest.raises(InvalidInput, match="kind"):
        model.conf_int(kind="both")


def test_the_table_of_slopes():
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(
        {"age": rng.normal(size=20_000), "city": rng.choice(["Oslo", "Rome"], 20_000)}
    )
    y = frame["age"] + rng.normal(size=20_000)
    model = DPLinearRegression(
        epsilon=5.0, categories={"city": ["Oslo", "Rome"]}, drop={"city": "Oslo"}, **SIMULATED
    )
    table = model.fit(frame, y).summary(0.9)
    assert table.names == ("age", "city=Oslo", "city=Rome")
    assert table.p_value[0] < 1e-6 < table.p_value[2]
    assert table.low[0] < 1 < table.high[0]
    assert list(table.to_frame().index) == list(table.names)
    assert table.to_dict()["age"]["coef"] == model.coef_[0]
    text = str(table)
    assert "P>|z|" in text
    assert "0.05" in text
    assert model.privacy_.headline in text
    assert "<table>" in table._repr_html_()


@pytest.mark.parametrize(
    ("kind", "link"),
    [
        (DPLinearRegression, "identity"), (DPHuberRegressor, "identity"),
        (DPPoissonRegressor, "log"), (partial(DPLogisticRegression, classes=[0, 1]), "logit"),
    ],
)  # fmt: skip
def test_a_table_of_slopes_says_what_its_intervals_leave_out(kind, link):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(5_000, 1))
    y = rng.poisson(np.exp(1 + X[:, 0] / 3))
    table = kind(epsilon=5.0, **SIMULATED).fit(X, y > 2 if link == "logit" else y).summary()
    assert table.note == LEFT_OUT[link]
    assert table.note in " ".join(str(table).split())
    assert table.note in table._repr_html_()


def test_a_constant_has_a_table_that_says_so():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(500, 2)), rng.normal(size=500)
    with pytest.warns(AccuracyWarning, match="slopes"):
        model = DPLinearRegression(epsilon=0.05, **SIMULATED).fit(X, y)
    assert "private constant" in str(model.summary())


def test_a_table_says_which_features_are_constant_and_which_models_have_no_errors():
    """A feature of numbers has no count: its values are few, and a larger epsilon than inf none."""
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"x": rng.normal(size=2_000), "same": 5.0})
    y = X["x"] + rng.normal(size=2_000)
    said = str(DPLinearRegression(epsilon=2, **SIMULATED).fit(X, y).summary())
    assert "hardly more than one value was detected in each: same." in " ".join(said.split())
    with pytest.warns(AccuracyWarning, match="No feature is used"):
        constant = DPLinearRegression(epsilon=2, **SIMULATED).fit(X[["same"]], y)
    assert "is a private constant" in str(constant.summary())
    for kind in ("population", "noise"):
        with pytest.raises(InvalidInput, match="is a private constant"):
            constant.conf_int(kind=kind)
    exact = DPLinearRegression(epsilon=math.inf).fit(X, y)
    with pytest.raises(InvalidInput, match="for private fits alone"):
        exact.conf_int()
    assert "larger epsilon" not in str(exact.summary())


def alike(design, rng, n=20_000):
    """Four features of which the first two or three do not vary apart, and a target."""
    X = rng.normal(size=(n, 4))
    if design == "nearly a copy":
        X[:, 1] = X[:, 0] + 0.02 * X[:, 1]
    elif design == "a sum":
        X[:, 2] = X[:, 0] - X[:, 1]
    else:
        X[:, :3] = np.eye(3)[rng.choice(3, n, p=[0.5, 0.3, 0.2])]
    return X, X @ SLOPES + rng.normal(size=n), 2 if design == "nearly a copy" else 3


@pytest.mark.parametrize("design", ["nearly a copy", "a sum", "all indicators"])
def test_slopes_of_features_that_do_not_vary_apart_have_no_bounds(design):
    """Steps do not reach them: if they had intervals, 3 to 80 of 100 would hold.

    Noise makes a direction look as if features varied along it in about 1 of 100 fits.
    """
    bounded = np.zeros(4, dtype=int)
    for seed in range(12):
        X, y, together = alike(design, np.random.default_rng(seed), n=10_000)
        model = DPLinearRegression(epsilon=5.0, noise="simulated", random_state=seed).fit(X, y)
        ends = model.conf_int()
        bounded += np.isfinite(ends).all(axis=1)
        assert np.isfinite(model.conf_int(kind="noise")).all()
        assert np.isfinite(ends[together:]).all()
    assert bounded[:together].max() <= 1, bounded


def test_a_table_names_the_slopes_that_noise_hides_and_still_shows_them(tmp_path):
    X, y, _ = alike("nearly a copy", np.random.default_rng(0))
    X = pd.DataFrame({"net": X[:, 0], "gross": X[:, 1], "age": X[:, 2], "flat": 7.0})
    model = DPLinearRegression(epsilon=5.0, **SIMULATED).fit(X, y)
    table = model.summary()
    said = " ".join(str(table).split())
    assert "are nearly collinear: net, gross." in said
    assert "was detected in each: flat." in said
    lines = {line.split()[0]: line.split()[1:] for line in str(table).splitlines()[1:5]}
    assert lines.keys() == {"net", "gross", "age", "intercept"}
    assert [len(lines[name]) for name in ("net", "gross", "age")] == [1, 1, 6]
    assert np.isnan(table.p_value[:2]).all()
    model.save(tmp_path / "model.json")
    assert str(load(tmp_path / "model.json").summary()) == str(table)


def test_several_labels_have_a_row_each():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(5_000, 2))
    y = np.argmax(np.column_stack([X, np.zeros(5_000)]) + rng.gumbel(size=(5_000, 3)), axis=1)
    model = DPLogisticRegression(epsilon=5.0, classes=[0, 1, 2], **SIMULATED).fit(X, y)
    table = model.summary()
    assert table.names[:3] == ("0: x0", "0: x1", "1: x0")
    assert np.isnan(table.std_err).all()


def test_a_loaded_model_has_the_same_table(tmp_path):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"age": rng.normal(size=5_000), "none": np.zeros(5_000)})
    y = 2 * frame["age"] + rng.normal(size=5_000)
    model = DPLinearRegression(epsilon=5.0, **SIMULATED).fit(frame, y)
    written = Model.of(model, target="y", columns=[Column("age"), Column("none")])
    written.save(tmp_path / "model.json")
    read = load(tmp_path / "model.json").summary()
    assert str(read) == str(model.summary())
    assert read.high[1] == math.inf
    unknown = {name: [[None] * read.high.size] for name in ("noise_std", "sampling_std")}
    assert "no theory" in str(Model.from_json(written.to_json() | unknown).summary())


def test_a_feature_called_intercept_is_not_taken_for_the_intercept():
    X = pd.DataFrame({"intercept": np.random.default_rng(0).normal(size=2_000)})
    table = DPLinearRegression(epsilon=5.0, **SIMULATED).fit(X, 2 * X["intercept"] + 7).summary()
    names = [line.split()[0] for line in str(table).splitlines()[1:3]]
    assert names == ["intercept", "(intercept)"]
    assert table._repr_html_().count('"row">intercept<') == 1


def test_the_table_prints_digits_that_tell_the_ends_of_an_interval_apart():
    X = np.random.default_rng(0).normal(size=(20_000, 1))
    y = 1e6 * X[:, 0] + np.random.default_rng(1).normal(size=20_000)
    table = DPLinearRegression(epsilon=50.0, **SIMULATED).fit(X, y).summary(confidence=0.999)
    table = replace(
        table, coef=np.array([1e6]), low=np.array([1e6 - 0.5]), high=np.array([1e6 + 0.5])
    )
    head, line = str(table).splitlines()[:2]
    assert head.split()[-2:] == ["0.0005", "0.9995"]
    assert [line.split()[k] for k in (1, -2, -1)] == ["1000000", "999999.5", "1000000.5"]
    assert "<td>1000000.5</td>" in table._repr_html_()
    far = replace(
        table, coef=np.array([800.0]), low=np.array([799.0]), high=np.array([801.0]), log=True
    )
    assert "inf" in str(far)
    empty = replace(table, std_err=np.array([math.inf]))
    assert str(empty).splitlines()[1].split()[0] == "intercept"
