"""Warnings of a fit come from released numbers, one for every answer that says little."""

from __future__ import annotations

import math
import re
import warnings

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from sklearn.linear_model import PoissonRegressor

from privtail import DPMean, Ledger, PrivateSearchCV, cross_validate, open_table, private_mean
from privtail.errors import AccuracyWarning
from privtail.linear_model import (
    DPLasso,
    DPLinearRegression,
    DPLogisticRegression,
    DPPoissonRegressor,
    DPRidge,
    DPTweedieRegressor,
)
from privtail.summaries.histograms import fewer, most_are_lost, usable_rows

SIMULATED = {"noise": "simulated", "random_state": 0}


def told(model, X, y):
    """The accuracy warnings of a fit."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", AccuracyWarning)
        model.fit(X, y)
    found = [str(w.message) for w in caught if w.category is AccuracyWarning]
    assert found == list(model.warnings_)
    return found


@pytest.fixture(scope="module")
def records():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(3_000, 3))
    return X, X @ [1.0, 2.0, 0.0] + rng.normal(size=3_000)


def test_an_ordinary_fit_warns_of_nothing(records):
    X, y = records
    for model in (DPLinearRegression(**SIMULATED), DPRidge(epsilon=5.0, **SIMULATED)):
        assert told(model, X, y) == []
    assert told(DPLogisticRegression(classes=[False, True], **SIMULATED), X, y > 0) == []
    assert told(DPPoissonRegressor(epsilon=5.0, **SIMULATED), X, np.round(np.exp(y / 3))) == []


def test_all_slopes_zero_is_warned_of_with_the_reason(records):
    X, _ = records
    noise = np.random.default_rng(1).normal(size=len(X))
    model = DPLinearRegression(epsilon=0.3, **SIMULATED)
    [said] = told(model, X, noise)
    assert not model.coef_.any()
    assert said.startswith("All slopes are zero, so the model predicts a constant.")
    assert model.privacy_.notes[0] in said


@pytest.mark.parametrize("epsilon", [1.0, 5.0])
def test_misspelt_labels_are_warned_of(records, epsilon):
    X, y = records
    labels = np.where(y > 0, "yes", "no")
    model = DPLogisticRegression(epsilon=epsilon, classes=["Yes", "No"], **SIMULATED)
    found = [said for said in told(model, X, labels) if "rows count" in said]
    assert len(found) == 1
    assert "compare the spelling" in found[0]
    assert "Noise hides how many" in found[0]


def test_a_column_that_is_missing_everywhere_is_warned_of(records):
    """Noise was read as rows: 1,884 of 3,000 at epsilon 1, 416 at 5, where none counted."""
    X, y = records
    X = X.copy()
    X[:, 2] = np.nan
    for seed in range(4):
        model = DPRidge(**SIMULATED | {"random_state": seed, "epsilon": 5.0})
        assert any("Noise hides" in said for said in told(model, X, y))
        assert not any(re.search(r"About [\d,]+ of", note) for note in model.privacy_.notes)


def test_many_lost_rows_are_warned_of_and_few_are_noted(records):
    X, y = records
    for lost, warned in ((0.83, True), (0.35, False)):
        holes = X.copy()
        holes[np.random.default_rng(2).random(len(X)) < lost, 1] = np.nan
        model = DPRidge(epsilon=8.0, **SIMULATED)
        found = [said for said in told(model, holes, y) if "rows count" in said]
        assert bool(found) == warned
        assert any("standard deviation" in note for note in model.privacy_.notes)


def test_what_is_said_of_labels_is_said_of_labels_alone():
    """1,000 rows of a weak effect: slopes are kept, and nobody knows whether they help."""
    rng = np.random.default_rng(3)
    X = rng.normal(size=(1_000, 2))
    y, lost = X[:, 0] / 3 + rng.normal(size=1_000), X.copy()
    lost[:600] = np.nan
    found = list(DPLinearRegression(epsilon=5, **SIMULATED).fit(lost, y).privacy_.notes)
    for seed in range(20):
        model = DPLinearRegression(epsilon=1, noise="simulated", random_state=seed).fit(X, y)
        found += model.privacy_.notes
    assert "label" not in " ".join(found)
    assert "likely help." in " ".join(found)
    assert "does not count if a number is missing" in " ".join(found)


def test_many_lost_rows_are_warned_of_where_noise_hides_how_many(records):
    """Of complete rows that is said in 1 of 740 fits."""
    X, y = records
    for seed in range(3):
        for lost in (0.0, 0.83):
            holes = X.copy()
            holes[np.random.default_rng(seed).random(len(X)) < lost, 1] = np.nan
            model = DPLinearRegression(**SIMULATED | {"random_state": seed})
            found = [said for said in told(model, holes, y) if "Noise hides how many" in said]
            assert bool(found) == bool(lost)


def test_too_little_data_is_a_cause_that_is_named(records):
    """At n epsilon of 3,000 the histogram of the target is noise too, and was blamed for it."""
    X, y = records
    said = told(DPLinearRegression(**SIMULATED), np.where([False, True, False], np.nan, X), y)
    assert "a number is missing" in said[0]
    with pytest.warns(AccuracyWarning, match="not reliable"):
        mean = private_mean(np.full(3_000, np.nan), epsilon=1.0, **SIMULATED)
    assert any("too few rows count" in note for note in mean.privacy_.notes)


KINDS = {
    "numbers": (DPLinearRegression, lambda y: y),
    "labels": (lambda **o: DPLogisticRegression(classes=[False, True], **o), lambda y: y > 0),
    "counts": (DPPoissonRegressor, lambda y: np.round(np.exp(y / 3))),
}


@pytest.mark.parametrize("kind", KINDS)
def test_categories_that_no_row_holds_are_warned_of(records, kind):
    """As numbers of a column of text, or misspelt; one of two columns, and with neither."""
    X, y = records
    model, target = KINDS[kind]
    jobs = np.random.default_rng(3).choice(["a", "b"], len(X)).astype(object)
    frame = {"x": X[:, 0], "job": jobs, "z": X[:, 1], "town": jobs}
    y = target(y + (jobs == "a"))
    for job, expected in ((["a", "b"], []), (["1", "2"], ["'job'"]), (["A", "b"], [])):
        fitted = model(epsilon=5.0, categories={"job": job, "town": ["a", "b"]}, **SIMULATED)
        found = [said for said in told(fitted, frame, y) if "category" in said]
        assert len(found) == len(expected)
        assert all(name in said for name, said in zip(expected, found, strict=True))
        assert all(said in fitted.privacy_.notes for said in found)


def test_categories_that_no_row_holds_are_warned_of_without_slopes(records):
    """Whether a category shows was decided before the slopes were set to zero."""
    X, _ = records
    job = np.where(X[:, 1] > 0, "cook", "clerk")
    frame, noise = (
        pd.DataFrame({"a": X[:, 0], "job": job}),
        np.random.default_rng(1).normal(size=len(X)),
    )
    for declared, misspelt in ((["cook", "clerk"], False), (["Cook", "Clerk"], True)):
        model = DPLinearRegression(categories={"job": declared}, **SIMULATED)
        found = told(model, frame, noise)
        assert not model.coef_.any()
        assert [said for said in found if "No declared category of column 'job'" in said] == (
            found[1:] if misspelt else []
        )
        assert len(found) == 1 + misspelt


def test_numbers_in_other_marks_are_warned_of_by_fit_and_mean(tmp_path):
    """A tenth of the rows and more; the released count decides, and the option is named."""
    rng = np.random.default_rng(0)
    for large, warned in ((0.3, True), (0.0, False)):
        amounts = np.where(rng.random(5_000) < large, "1,234.56", "12.5")
        lines = [f'"{amount}",{i % 7}' for i, amount in enumerate(amounts)]
        path = tmp_path / f"{large}.csv"
        path.write_text("amount,y\n" + "\n".join(lines) + "\n")
        table = open_table(path, numeric=["amount"], drop=["y"])
        models = (DPMean(epsilon=5.0, **SIMULATED), DPLinearRegression(epsilon=5.0, **SIMULATED))
        for model, data, y in (
            (models[0], table, None),
            (models[1], open_table(path, numeric=["amount"]), "y"),
        ):
            found = [said for said in told(model, data, y) if "rows count" in said]
            assert bool(found) == warned
            assert all('thousands=","' in said for said in found)
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            mean = private_mean(table, epsilon=5.0, **SIMULATED)
        assert [str(w.message) for w in caught] == list(mean.warnings_)
        marked = open_table(path, numeric=["amount"], drop=["y"], thousands=",")
        assert not any("rows count" in said for said in told(models[0], marked, None))


def test_few_lost_rows_of_an_array_are_no_warning(records):
    X, _ = records
    X = np.where(np.random.default_rng(2).random(X.shape) < 0.1, np.nan, X)
    assert not any("rows count" in said for said in told(DPMean(epsilon=5.0, **SIMULATED), X, None))


@pytest.mark.parametrize("truth", [0.0, 0.2, 0.5, 0.95, 1.0])
def test_a_number_of_rows_is_said_with_its_noise(truth):
    """The truth lies within 4 deviations of what is said: a false alarm in 1 of 16,000 draws."""
    rng, n, std = np.random.default_rng(5), 3_000, 20.0
    for _ in range(50):
        counts = np.array([truth * n, 0.0, 0.0]) + rng.normal(0, std, 3)
        part, deviation = usable_rows(counts, std, n)
        for said in fewer(part, deviation, n, ""):
            numbers = [int(text.replace(",", "")) for text in re.findall(r"\d[\d,]*", said)]
            if said.startswith("About"):
                counted, _, noise = numbers[:3]
                assert abs(counted - truth * n) <= 4 * noise + 1
            else:
                assert truth * n <= numbers[1]
        if truth == 0:
            assert most_are_lost(part, deviation)
        if truth >= 0.95:
            assert not most_are_lost(part, deviation)


def test_a_penalty_that_silences_small_units_is_said(records):
    X, y = records
    for model, unit in ((DPLasso(epsilon=5.0, **SIMULATED), 0.01), (DPRidge(**SIMULATED), 1e-3)):
        found = [said for said in told(model, X * [1.0, unit, 1.0], y) if "penalty alone" in said]
        assert len(found) == 1
        assert "1 of 3 features" in found[0]
        model.set_params(alpha=1e-5)
        found = told(model, X * [1.0, unit, 1.0], y)
        assert not any("penalty alone" in said for said in found)


@pytest.mark.parametrize("unit", [1.0, 1e-4])
def test_defaults_have_no_penalty_that_knows_units(records, unit):
    X, y = records
    plain = DPLogisticRegression(epsilon=8.0, classes=[False, True], **SIMULATED)
    there = plain.fit(X, y > 0).coef_[0]
    small = plain.fit(X * [1.0, unit, 1.0], y > 0).coef_[0] * [1.0, unit, 1.0]
    assert small == pytest.approx(there, abs=0.3)
    assert abs(small[1]) > 0.5


def test_warnings_as_errors_keep_what_was_paid_for(records):
    X, _ = records
    model = DPLinearRegression(epsilon=0.3, **SIMULATED)
    with warnings.catch_warnings():
        warnings.simplefilter("error", AccuracyWarning)
        with pytest.raises(AccuracyWarning):
            model.fit(X, np.random.default_rng(1).normal(size=len(X)))
    assert model.predict(X).shape == (len(X),)


def test_the_score_of_counts_is_that_of_scikit_learn(records):
    X, y = records
    counts = np.round(np.exp(y / 3))
    model = DPPoissonRegressor(epsilon=1e6, **SIMULATED).fit(X, counts)
    twin = PoissonRegressor(alpha=0.0).fit(X, counts)
    twin.coef_, twin.intercept_ = model.coef_, model.intercept_
    assert model.score(X, counts) == pytest.approx(twin.score(X, counts), abs=0.01)
    search = PrivateSearchCV(DPPoissonRegressor(), {"alpha": [0.0]}, trials=1, **SIMULATED)
    search.fit(X, counts)
    assert search.score(X, counts) == search.best_estimator_.score(X, counts)
    assert math.isnan(model.score(X, np.full(len(X), 2.0)))  # it was a ZeroDivisionError


@pytest.mark.parametrize("seed", range(3))
def test_amounts_of_a_size_that_nothing_showed_are_warned_of(seed):
    """Zeros in 95 % of few rows: the model says little, though it has slopes (truth about 100)."""
    rng = np.random.default_rng(seed)
    X, amounts = rng.normal(size=(400, 4)), 1_000 * rng.pareto(1.5, 400)
    y = np.where(rng.random(400) < 0.95, 0.0, amounts)
    model = DPTweedieRegressor(epsilon=4, **SIMULATED)
    found = told(model, X, y)
    assert model.predict(X).max() < 1
    assert any("No target above zero was detected above the noise" in text for text in found)


def test_counts_whose_mean_noise_hides_are_warned_of():
    """About 35 events among 1,000 rows; then 3,500 among 100,000."""
    rng = np.random.default_rng(6)
    X = rng.normal(size=(100_000, 3))
    y = rng.poisson(np.exp(-3.5 + X @ [0.5, -0.3, 0]))
    for seed in range(8):
        model = DPPoissonRegressor(epsilon=1, noise="simulated", random_state=seed)
        hidden = re.compile("Noise hides much of the mean of the target|No target above zero")
        assert any(hidden.search(text) for text in told(model, X[:1_000], y[:1_000]))
        assert not any(hidden.search(text) for text in told(model, X, y))


def of_pandas(frame):
    return frame, frame["cost"]


def of_polars(frame):
    table = pl.from_pandas(frame)
    return table, table["cost"]


def of_arrow(frame):
    table = pa.Table.from_pandas(frame)
    return table, table.select(["cost"])


def of_a_mapping(frame):
    return {name: frame[name] for name in frame}, frame["cost"]


CONTAINERS = (of_pandas, of_polars, of_arrow, of_a_mapping)


@pytest.fixture
def costs(records):
    X, y = records
    return pd.DataFrame({"age": X[:, 0], "days": X[:, 1], "cost": y})


@pytest.mark.parametrize("container", CONTAINERS)
def test_a_target_among_the_features_is_told_before_the_charge(costs, container):
    X, y = container(costs)
    ledger = Ledger(epsilon=5, delta=1e-4)
    for model in (DPLinearRegression(ledger=ledger), DPLogisticRegression(classes=[0, 1])):
        with (
            warnings.catch_warnings(action="error"),
            pytest.raises(AccuracyWarning, match=r"X\.drop\(columns=\[\"cost\"\]\)"),
        ):
            model.fit(X, y)
    assert not ledger.entries()
    with pytest.warns(AccuracyWarning, match="'cost', which is the name of the target") as caught:
        DPLinearRegression(**SIMULATED).fit(X, y)
    assert {w.filename for w in caught} == {__file__}


def test_a_target_among_the_columns_of_a_file_is_told(costs, tmp_path):
    """Where the column itself is passed, and not its name."""
    costs.to_parquet(tmp_path / "costs.parquet")
    table = open_table(tmp_path / "costs.parquet")
    with pytest.warns(AccuracyWarning, match=r'fit\(X, "cost"\) of open_table'):
        DPLinearRegression(**SIMULATED).fit(table, costs["cost"])


def test_searches_and_cross_validations_tell_it_too(costs):
    X, y = of_pandas(costs)
    with pytest.warns(AccuracyWarning, match="name of the target"):
        cross_validate(DPRidge(), X, y, epsilon=2, **SIMULATED)
    with pytest.warns(AccuracyWarning, match="name of the target"):
        PrivateSearchCV(DPRidge(), {"alpha": [0.1, 1.0]}, trials=1, **SIMULATED).fit(X, y)


def test_a_target_of_another_name_or_of_none_is_no_matter(costs, tmp_path):
    features, y = costs[["age", "days"]], costs["cost"]
    numbered = pd.DataFrame(features.to_numpy())
    costs.to_parquet(tmp_path / "costs.parquet")
    for X, target in (
        (features, y), (features, y.rename(None)), (costs[["age"]], y.to_numpy()),
        (numbered, pd.Series(y.to_numpy(), name=0)),
        (open_table(tmp_path / "costs.parquet"), "cost"),
        (pd.DataFrame({"name": y, "columns": y}), features["age"]),
    ):  # fmt: skip
        DPRidge(**SIMULATED).fit(X, target)
