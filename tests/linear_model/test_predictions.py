"""Rows to predict: one rule for missing numbers, and every container, fitted or loaded."""

from __future__ import annotations

import math
import warnings
from decimal import Decimal
from fractions import Fraction
from itertools import product

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from pyarrow import csv, parquet
from scipy import sparse
from sklearn.pipeline import make_pipeline

import privtail
from privtail import evaluate
from privtail.errors import InvalidInput, MissingWarning
from privtail.linear_model import DPLogisticRegression, DPPoissonRegressor, DPRidge
from privtail.model import Column, Model

SIMULATED = {"noise": "simulated", "random_state": 0, "epsilon": 50.0}
HOLES = {1: np.nan, 4: np.inf, 5: -np.inf}
FULL = [0, 2, 3, 6, 7]


@pytest.fixture(scope="module")
def records():
    rng = np.random.default_rng(3)
    X = rng.normal(size=(400, 2))
    odd = X[:8].copy()
    for row, value in HOLES.items():
        odd[row, 1] = value
    return X, odd


def targets(X, kind):
    score = X @ [2.0, -1.0]
    return {
        "number": score,
        "count": np.round(np.exp(np.clip(score, -2, 2))),
        "text": np.where(score > 0, "yes", "no"),
        "code": np.where(score > 0, 7, 5),
        "three": np.digitize(score, [-1, 1]),
    }[kind]


def model_of(kind, **options):
    named = {"number": DPRidge, "count": DPPoissonRegressor}
    return named.get(kind, DPLogisticRegression)(**SIMULATED, **options)


def containers(rows, folder):
    """The same rows in every container with names; a null is how most of them miss a number."""
    frame = pd.DataFrame(rows, columns=["a", "b"])
    table = pa.Table.from_pandas(frame, preserve_index=False)
    csv.write_csv(table, folder / "rows.csv")
    parquet.write_table(table, folder / "rows.parquet")
    yield from (frame, pl.DataFrame(frame), pl.from_arrow(table), table, dict(frame))
    yield {"b": frame["b"].to_numpy(), "other": ["x"] * len(frame), "a": frame["a"].to_numpy()}
    yield from (folder / "rows.parquet", str(folder / "rows.csv"))
    yield privtail.open_table(folder / "rows.parquet")


KINDS = ["number", "count", "text", "code", "three"]


def none_in(labels):
    """Where there is no prediction."""
    return np.array(
        [label is None or (np.isreal(label) and np.isnan(label)) for label in labels.tolist()]
    )


@pytest.mark.filterwarnings("ignore::privtail.errors.MissingWarning")  # of files
@pytest.mark.parametrize("kind", KINDS)
def test_a_missing_number_has_no_prediction_whatever_the_rows_are(records, kind, tmp_path):
    X, odd = records
    frame = pd.DataFrame(X, columns=["a", "b"])
    model = model_of(kind).fit(frame, targets(X, kind))
    unnamed = model_of(kind).fit(X, targets(X, kind))
    columns = [Column("a"), Column("b")]
    Model.of(model, target="y", columns=columns).save(tmp_path / "model.json")
    loaded = privtail.load(tmp_path / "model.json")
    missing = np.isin(np.arange(len(odd)), list(HOLES))
    expected = unnamed.predict(odd[FULL])
    arrays = [odd, odd.astype(object), sparse.csr_matrix(odd), sparse.csc_matrix(odd)]
    found = [unnamed.predict(rows) for rows in arrays]
    for one in (model, loaded):
        found += [one.predict(rows) for rows in containers(odd, tmp_path)]
    for labels in found:
        assert none_in(labels).tolist() == missing.tolist()
        assert labels[FULL].tolist() == pytest.approx(expected.tolist()) or (
            labels[FULL].tolist() == expected.tolist()
        )
    if kind not in ("number", "count"):
        for one, rows in ((unnamed, odd), (model, dict(pd.DataFrame(odd, columns=["a", "b"])))):
            chances = one.predict_proba(rows)
            assert np.isnan(chances).all(axis=1).tolist() == missing.tolist()
            assert chances[FULL].sum(axis=1) == pytest.approx(1.0)


@pytest.mark.parametrize("kind", KINDS)
def test_scikit_learns_manners_refuse_in_every_container(records, kind, tmp_path):
    X, odd = records
    model = model_of(kind, invalid="raise")
    model.fit(pd.DataFrame(X, columns=["a", "b"]), targets(X, kind))
    for rows in containers(odd, tmp_path):
        with pytest.raises(InvalidInput, match="NaN or infinity"):
            model.predict(rows)
    for rows in containers(odd[FULL], tmp_path):
        assert len(model.predict(rows)) == len(FULL)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("cell", [None, math.nan, Decimal("0.5"), Fraction(1, 2)])
def test_a_list_is_predicted_as_its_array(records, kind, cell):
    """A cell that is None, or a Decimal, was a TypeError of NumPy."""
    X, _ = records
    model = model_of(kind).fit(X, targets(X, kind))
    rows = [[1.0, 2.0], [cell, 1.0]]
    expected = model.predict(np.array(rows, dtype=object).astype(float))
    for given in (rows, tuple(map(tuple, rows)), np.array(rows, dtype=object)):
        found = model.predict(given)
        assert [str(answer) for answer in found] == [str(answer) for answer in expected]


@pytest.mark.parametrize("kind", KINDS)
def test_no_rows_have_no_predictions(records, kind, tmp_path):
    X, _ = records
    frame = pd.DataFrame(X, columns=["a", "b"])
    model = model_of(kind).fit(frame, targets(X, kind))
    Model.of(model, target="y", columns=[Column("a"), Column("b")]).save(tmp_path / "model.json")
    loaded = privtail.load(tmp_path / "model.json")
    unnamed = model_of(kind).fit(X, targets(X, kind))
    answers = [unnamed.predict(X[:0]), unnamed.predict(sparse.csr_matrix(X[:0]))]
    for rows in (
        frame[:0],
        pl.DataFrame(frame)[:0],
        pa.Table.from_pandas(frame)[:0],
        {"a": [], "b": []},
    ):
        answers += [model.predict(rows), loaded.predict(rows)]
        assert loaded.design(rows).shape == (0, 2)
    for answer in answers:
        assert answer.shape == (0,)
    if kind == "three":
        assert loaded.predict_proba(frame[:0]).shape == (0, 3)


def test_categories_and_loaded_models_take_every_container(records, tmp_path):
    X, _ = records
    frame = pd.DataFrame({"a": X[:, 0], "job": np.where(X[:, 1] > 0, "cook", "clerk")})
    model = DPRidge(categories={"job": ["clerk", "cook"]}, **SIMULATED)
    model.fit(frame, X @ [1.0, 2.0])
    columns = [Column("a"), Column("job", ("clerk", "cook"))]
    Model.of(model, target="y", columns=columns).save(tmp_path / "model.json")
    loaded = privtail.load(tmp_path / "model.json")
    table = pa.Table.from_pandas(frame, preserve_index=False)
    csv.write_csv(table, tmp_path / "rows.csv")
    parquet.write_table(table, tmp_path / "rows.parquet")
    expected = model.predict(frame)
    for rows in (
        pl.DataFrame(frame), table, dict(frame), tmp_path / "rows.csv", tmp_path / "rows.parquet",
        privtail.open_table(tmp_path / "rows.csv", categories={"job": ["clerk", "cook"]}),
        privtail.open_table(tmp_path / "rows.parquet", categories={"job": ["clerk", "cook"]}),
    ):  # fmt: skip
        assert model.predict(rows) == pytest.approx(expected)
        assert loaded.predict(rows) == pytest.approx(expected)


def test_categories_that_no_row_to_predict_holds_are_warned_of(records):
    """Text for numbers in a column of objects, whose cells alone say so; evaluations say nothing.

    Predictions are as private as their rows, and what is evaluated is not to be predicted.
    """
    X, _ = records
    code = (X[:, 1] > 0).astype(int)
    y = X @ [1.0, 2.0]
    frame = pd.DataFrame({"a": X[:, 0], "code": code})
    model = DPRidge(categories={"code": [0, 1]}, **SIMULATED).fit(frame, y)
    loaded = model.to_model()
    cells = pd.Series(code.astype(str), dtype=object)
    wrong = {"a": X[:, 0], "code": cells}
    for one, rows in product(
        (model, loaded), (pd.DataFrame(wrong), wrong, {**wrong, "code": [*cells]})
    ):
        with pytest.warns(MissingWarning, match="No row holds a category of 'code'") as caught:
            one.predict(rows)
        assert len(caught) == 1
    mixed = {"a": X[:, 0], "code": [0, *cells[1:]]}
    for one, rows in product((model, loaded), (frame, mixed, pd.DataFrame(wrong)[:0])):
        with warnings.catch_warnings(action="error"):
            one.predict(rows)
    with warnings.catch_warnings(action="error", category=MissingWarning):
        for one in (model, loaded, make_pipeline("passthrough", model)):
            evaluate(one, pd.DataFrame(wrong), y, **SIMULATED)


def test_what_a_loaded_model_cannot_use_is_named(records, tmp_path):
    X, _ = records
    model = DPRidge(**SIMULATED).fit(pd.DataFrame(X, columns=["a", "b"]), X[:, 0])
    loaded = Model.of(model, target="y", columns=[Column("a"), Column("b")])
    for rows in (X, X.tolist(), None, 3.0):
        with pytest.raises(InvalidInput, match="by name"):
            loaded.predict(rows)
    with pytest.raises(InvalidInput, match="no column 'b'"):
        loaded.predict({"a": [1.0]})
    with pytest.raises(InvalidInput, match=r"nothing\.csv"):
        loaded.predict(tmp_path / "nothing.csv")
    unnamed = DPRidge(**SIMULATED).fit(X, X[:, 0])
    with pytest.raises(InvalidInput, match="1 features"):
        unnamed.predict({"a": [1.0]})


def test_one_row_alone_is_refused_with_what_to_type(records):
    X, _ = records
    frame = pd.DataFrame(X, columns=["a", "b"])
    frame["c"] = np.where(X[:, 0] > 0, "x", "y")
    plain = DPRidge(**SIMULATED).fit(frame[["a"]], X[:, 0])
    known = DPRidge(categories={"c": ["x", "y"]}, **SIMULATED).fit(frame, X[:, 0])
    for model in (plain, known, known.to_model("target")):
        with pytest.raises(InvalidInput, match=r"frame\.iloc\[\[0\]\]"):
            model.predict(frame.iloc[0])
        with pytest.raises(InvalidInput, match=r"\[value\] for one"):
            model.predict({"a": 1.0, "b": 2.0, "c": "x"} if model is not plain else {"a": 1.0})
