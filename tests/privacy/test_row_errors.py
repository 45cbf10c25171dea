"""Rows that say how well a model predicts: each is a function of its record alone."""

from __future__ import annotations

import itertools
import pickle
from typing import Any, ClassVar

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from sklearn.metrics import mean_tweedie_deviance

from privtail.errors import InvalidInput, NotReleased
from privtail.trusted import row_errors
from privtail.trusted.row_errors import LinearModel, OutsideModel

ODD = [1e308, -1e308, 5e-324, -5e-324, 0.0, np.nan, np.inf, -np.inf, 1e200, 3.0]
N, D = 12, 3


def linear(link: str, outputs: int = 1) -> LinearModel:
    chance = np.random.default_rng(5)
    endless = np.array([-np.inf, np.inf])
    return LinearModel(
        chance.normal(size=(outputs, D)), chance.normal(size=outputs),
        np.tile([-4.0, 1e300], (D, 1)), endless, endless, link, None, {},
    )  # fmt: skip


class Careless:
    """A model that raises, warns, and answers nonsense for some rows."""

    def predict(self, X: Any) -> Any:
        total = float(X.sum())
        if total > 1e100:
            raise ValueError(f"cell {total}")
        return np.array(["text"]) if total < -3 else X.sum(axis=1)

    def predict_proba(self, X: Any) -> Any:
        p = 1 / (1 + np.exp(-self.predict(X)))
        return np.column_stack([1 - p, p])


class Standardizing:
    """A model that looks at all rows that it is given: not row-wise."""

    def predict(self, X: Any) -> Any:
        return (X - X.mean(axis=0)).sum(axis=1)


def asked(X: Any, y: Any, model: Any, exposure: Any = None) -> dict[str, row_errors.RowErrors]:
    """Every kind of row that can be asked for."""
    found = {}
    if isinstance(model, OutsideModel) or model.link != "logit":
        predicted = row_errors.Predicted(X, y, model)
        found["target"], found["errors"] = predicted.target(), predicted.errors(0.5, 2.0)
        found["coverage"] = predicted.below()
        shares = np.ones(len(y)) if exposure is None else exposure
        exposed = row_errors.Predicted(X, y, model, shares)
        found["target and exposure"] = exposed.target()
        for power in (1.0, 1.5, 2.0):
            found[f"target {power}"] = exposed.target(power)
            found[f"deviance {power}"] = predicted.errors(0.5, 2.0, power)
            found[f"exposed deviance {power}"] = exposed.errors(0.5, 2.0, power)
        found["differences"] = row_errors.differences(X, y, model, linear("identity"))
        return found
    classes = tuple(range(max(2, len(model.coef))))
    found["likelihoods"] = row_errors.likelihoods(X, y, model, classes)
    found["excess"] = row_errors.excess_losses(X, y, model, model, classes)
    return found


def rows(found: row_errors.RowErrors) -> np.ndarray:
    places = found._places
    columns = found._columns
    return columns if places is None else np.column_stack([columns, places])


MODELS = {
    "identity": linear("identity"),
    "log": linear("log"),
    "two labels": linear("logit"),
    "three labels": linear("logit", 3),
    "of others": OutsideModel(Careless().predict),
}


def moved(model: Any, X: np.ndarray, y: np.ndarray) -> set[int]:
    """Rows that differ for some neighbour whose record 7 is another."""
    found, before = set(), asked(X, y, model)
    for cell, target in itertools.product(ODD, [*ODD, 1.0, 2.0]):
        other, others, exposure = X.copy(), y.copy(), np.ones(len(y))
        other[7, 1], others[7], exposure[7] = cell, target, cell
        for name, after in asked(other, others, model, exposure).items():
            same = (rows(before[name]) == rows(after)) | (
                np.isnan(rows(before[name])) & np.isnan(rows(after))
            )
            found |= set(np.flatnonzero(~same.all(axis=1)).tolist())
    return found


@pytest.mark.parametrize("name", MODELS)
def test_a_record_moves_its_own_row_alone(name):
    chance = np.random.default_rng(0)
    X, y = chance.normal(size=(N, D)), chance.integers(0, 3, N).astype(float)
    with np.errstate(all="ignore"):
        assert moved(MODELS[name], X, y) == {7}


def test_a_model_that_looks_at_other_rows_is_caught_when_it_is_promised_not_to():
    """The sabotaged twin: called with many rows at once it moves rows of others."""
    chance = np.random.default_rng(0)
    X, y = chance.normal(size=(N, D)), chance.normal(size=N)
    with np.errstate(all="ignore"):
        assert len(moved(OutsideModel(Standardizing().predict, trusted_rowwise=True), X, y)) > 1
        assert moved(OutsideModel(Standardizing().predict), X, y) == {7}


@pytest.mark.parametrize("said", ["raises", "another length", "text"])
def test_a_row_at_which_a_trusted_model_fails_takes_no_other_along(said):
    """The attack: models of scikit-learn refuse a missing number, and with it the whole block."""

    def first(rows: Any) -> Any:
        if not np.isfinite(rows).all():
            if said == "raises":
                raise ValueError("Input X contains NaN.")
            return np.zeros(len(rows) + 1) if said == "another length" else ["?"] * len(rows)
        return rows[:, 0] + len(rows) * 1e-9  # as a product rounds by how many rows there are

    chance = np.random.default_rng(0)
    X, y = chance.normal(size=(N, D)), chance.normal(size=N)
    model = OutsideModel(first, trusted_rowwise=True)
    before = model.predictions(X, None)
    X[7, 1] = np.nan
    after = model.predictions(X, None)
    assert np.array_equal(before, X[:, 0] + N * 1e-9)
    assert set(np.flatnonzero(before != after)) == {7}
    assert np.isnan(after[7])
    assert moved(model, np.where(np.isnan(X), 0.0, X), y) == {7}


def test_a_coverage_over_the_rows_that_count_is_caught(monkeypatch):
    """The sabotaged twin: shares that are divided by a count of the table move rows of others."""

    def shares(self: Any) -> Any:
        valid = np.isfinite(self._y) & ~np.isnan(self._predicted)
        below = np.where(valid, self._y <= self._predicted, np.nan) / valid.sum()
        return row_errors.RowErrors(below[:, None], None, ())

    chance = np.random.default_rng(0)
    X, y = chance.normal(size=(N, D)), chance.normal(size=N)
    with np.errstate(all="ignore"):
        honest = row_errors.Predicted(X, y, MODELS["identity"]).below()._columns
        assert set(np.unique(honest)) == {-0.5, 0.5}
        monkeypatch.setattr(row_errors.Predicted, "below", shares)
        assert len(moved(MODELS["identity"], X, y)) > 1


def test_deviances_in_units_of_the_whole_table_are_caught(monkeypatch):
    """The sabotaged twin: a deviance over the mean of all targets moves rows of others."""
    honest = row_errors.deviances

    def relative(y: Any, expected: Any, power: float) -> Any:
        return honest(y, expected, power) / np.nanmean(np.abs(y))

    monkeypatch.setattr(row_errors, "deviances", relative)
    chance = np.random.default_rng(0)
    X, y = chance.normal(size=(N, D)), chance.poisson(2.0, N).astype(float)
    with np.errstate(all="ignore"):
        assert len(moved(MODELS["log"], X, y)) > 1


def test_amounts_that_the_whole_table_allows_are_caught(monkeypatch):
    """The sabotaged twin: what is allowed follows from the smallest amount, and rows of others."""
    monkeypatch.setattr(row_errors, "_allowed", lambda y, power: y >= np.nanmin(y) + 1)
    chance = np.random.default_rng(0)
    X, y = chance.normal(size=(N, D)), chance.poisson(2.0, N).astype(float)
    with np.errstate(all="ignore"):
        assert len(moved(MODELS["log"], X, y)) > 1


@pytest.mark.parametrize(("power", "counted"), [(None, 6), (1.0, 5), (1.5, 5), (2.0, 4)])
def test_a_target_that_no_model_of_a_power_allows_is_none(power, counted):
    y = np.array([-3.0, 0.0, 1.0, 2.0, 3.0, 1e9, np.nan, np.inf])
    found = row_errors.Predicted(np.ones((8, D)), y, MODELS["log"]).target(power)._columns
    assert np.isfinite(found).sum() == counted


@pytest.mark.parametrize("power", [1.0, 1.3, 2.0])
def test_deviances_are_scikit_learns(power):
    chance = np.random.default_rng(0)
    y, expected = chance.gamma(1.0, 3.0, 50), chance.gamma(2.0, 3.0, 50)
    y[:5] = 0.0 if power < 2 else 1.0
    with np.errstate(all="raise"):
        found = row_errors.deviances(y, expected, power)
    for own, one, said in zip(found, y, expected, strict=True):
        assert own == pytest.approx(mean_tweedie_deviance([one], [said], power=power), abs=1e-12)
    odd = row_errors.deviances(np.array([-1.0, np.nan, np.inf, 0.0]), np.ones(4), 2.0)
    assert np.isnan(odd).all()
    far = row_errors.deviances(np.ones(4), np.array([0.0, -1.0, np.inf, np.nan]), power)
    assert (far[:3] == row_errors._FARTHEST).all()
    assert np.isnan(far[3])


@pytest.mark.parametrize("outputs", [1, 3])
def test_rows_of_labels_lie_in_their_range(outputs):
    """Means of labels clamp at 1/2; what is outside would be biased, not less private."""
    X = np.array(list(itertools.product(ODD, ODD, ODD)))
    y = np.arange(len(X)) % 4
    model = linear("logit", outputs)
    with np.errstate(all="ignore"):
        for found in asked(X, y, model).values():
            columns = found._columns
            seen = columns[np.isfinite(columns).all(axis=1)]
            assert len(seen)
            assert np.abs(seen).max() <= 0.5


def test_places_of_two_labels_cannot_be_mistaken():
    X = np.random.default_rng(0).normal(size=(200, D)) * 1e3
    y = np.arange(200) % 2
    found = row_errors.likelihoods(X, y, linear("logit"), (0, 1))
    places = found._places
    assert ((places > row_errors.APART / 2) == (y == 1)).all()


def test_nothing_is_shown_of_a_row(capsys, recwarn):
    chance = np.random.default_rng(0)
    X, y = chance.normal(size=(N, D)), chance.normal(size=N)
    X[3] = 1e150
    found = row_errors.Predicted(X, y, OutsideModel(Careless().predict)).errors(0.0, 1.0)
    assert "1e+" not in repr(found)
    with pytest.raises(NotReleased):
        pickle.dumps(found)
    assert capsys.readouterr() == ("", "")
    assert not recwarn.list


def test_numbers_of_a_model_are_plain_copies():
    """An array of another class would see blocks of rows in whatever it is combined with."""

    class Spy(np.ndarray):
        seen: ClassVar[list[int]] = []

        def __array_ufunc__(self, ufunc, method, *inputs, **kwargs):
            plain = [np.asarray(x) for x in inputs]
            self.seen.extend(x.size for x in plain)
            return getattr(ufunc, method)(*plain, **kwargs)

    endless = np.array([-np.inf, np.inf])
    model = LinearModel(
        np.ones((1, D)).view(Spy), np.zeros(1).view(Spy), np.tile(endless, (D, 1)).view(Spy),
        endless.view(Spy), endless.view(Spy), "identity", None, {},
    )  # fmt: skip
    Spy.seen.clear()
    row_errors.Predicted(np.zeros((N, D)), np.zeros(N), model)
    assert not Spy.seen


def dictionary(cells):
    return pa.array(cells).dictionary_encode()


def kept_in_pandas(cells):
    column = dictionary(cells)
    return pd.DataFrame({"x": pd.Series(column, dtype=pd.ArrowDtype(column.type))})


KEPT = {
    "dictionary": (
        lambda cells: pa.table({"x": dictionary(cells)}),
        lambda row: [float(len(row["x"].chunk(0).dictionary))],
    ),
    "pandas": (
        kept_in_pandas,
        lambda row: [float(len(row["x"].array.__arrow_array__().chunk(0).dictionary))],
    ),
    "mapping": (
        lambda cells: {"x": dictionary(cells)},
        lambda row: [float(len(row["x"].dictionary))],
    ),
    "categories": (
        lambda cells: pd.DataFrame({"x": pd.Categorical(cells)}),
        lambda row: [float(len(row["x"].cat.categories))],
    ),
    "index of categories": (
        lambda cells: pd.DataFrame({"x": 0.0}, pd.CategoricalIndex(cells)),
        lambda row: [float(len(row.index.categories))],
    ),
    "levels": (
        lambda cells: pd.DataFrame({"x": 0.0}, pd.MultiIndex.from_arrays([cells] * 2)),
        lambda row: [float(len(row.index.levels[0]))],
    ),
}


@pytest.mark.parametrize("name", KEPT)
def test_a_row_that_still_holds_other_rows_is_refused(monkeypatch, name):
    """One record moved what is said of all."""
    make, predict = KEPT[name]
    model = OutsideModel(predict)
    with pytest.raises(InvalidInput, match="more than one row"):
        model.predictions(make([*"aab"]), None)
    tables = make([*"aab"]), make([*"aaa"])
    monkeypatch.setattr(row_errors, "require_apart", lambda _: None)
    one, other = (model.predictions(table, None) for table in tables)
    assert (one != other).all(), "the twin is caught"


def test_rows_that_are_apart_are_asked_about():
    for table in (
        pa.table({"x": [1.0, 2.0]}), pd.DataFrame({"x": [1.0, 2.0]}, ["b", "a"]),
        {"x": np.ones(2)}, np.ones((2, 1)), pl.DataFrame({"x": [1.0, 2.0]}),
        pl.DataFrame({"x": pl.Series(["a", "b"], dtype=pl.Enum(["a", "b"]))}),
    ):  # fmt: skip
        assert (OutsideModel(lambda row: [7.0]).predictions(table, None) == 7).all()


@pytest.mark.parametrize("kind", [pl.Categorical, pl.Categorical(pl.Categories("of_a_test"))])
def test_a_categorical_column_of_polars_is_refused(monkeypatch, kind):
    """The number of a category is the place of its first row among all."""
    table = pl.DataFrame({"x": pl.Series(["z", "y", "b"], dtype=kind)})
    model = OutsideModel(lambda row: [float(row["x"].to_physical()[0])])
    for one in (table, {"x": table["x"]}):
        with pytest.raises(InvalidInput, match="more than one row"):
            model.predictions(one, None)
    monkeypatch.setattr(row_errors, "require_apart", lambda _: None)
    assert len({*model.predictions(table, None).ravel()}) == 3, "the twin is caught"
