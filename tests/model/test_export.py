"""Models outside privtail: scikit-learn, SQL and plain Python predict the same."""

from __future__ import annotations

import json
import math
import pickle
import sqlite3
from contextlib import closing

import numpy as np
import pandas as pd
import pytest

from privtail import load
from privtail.errors import InvalidInput
from privtail.export import to_code
from privtail.linear_model import DPLinearRegression, DPLogisticRegression, DPPoissonRegressor

SIMULATED = {"noise": "simulated", "random_state": 0}
CITIES = {"city": ["Oslo", "L'Aquila"]}


def frame(n=4_000, seed=0):
    rng = np.random.default_rng(seed)
    return pd.DataFrame(
        {"age": rng.normal(size=n), 'odd "name"': rng.normal(size=n),
         "city": rng.choice(["Oslo", "L'Aquila"], n)}
    )  # fmt: skip


@pytest.fixture(scope="module", params=["numbers", "counts", "two labels", "three labels"])
def model(request):
    X, rng = frame(), np.random.default_rng(1)
    margins = X["age"] - 2 * X['odd "name"'] + (X["city"] == "Oslo")
    if request.param == "numbers":
        fitted = DPLinearRegression(epsilon=5.0, categories=CITIES, **SIMULATED)
        y = margins + rng.normal(size=len(X))
    elif request.param == "counts":
        fitted = DPPoissonRegressor(epsilon=5.0, categories=CITIES, **SIMULATED)
        y = rng.poisson(np.exp(margins / 4))
    else:
        classes = ["no", "yes"] if request.param == "two labels" else ["no", "so", "yes"]
        fitted = DPLogisticRegression(epsilon=5.0, classes=classes, categories=CITIES, **SIMULATED)
        cuts = [0.0] if len(classes) == 2 else [-1.0, 1.0]
        y = np.array(classes)[np.digitize(margins + rng.logistic(size=len(X)), cuts)]
    return fitted.fit(X, y).to_model("cost")


def strange():
    """Rows far outside, of unknown categories, and some with a gap or an infinite number."""
    X = frame(50, seed=2)
    X.loc[:10, "age"] *= 1e9
    X.loc[5:15, "city"] = "Roma"
    X.loc[3, 'odd "name"'] = np.nan
    X.loc[20, 'odd "name"'], X.loc[21, 'odd "name"'] = np.inf, -np.inf
    return X


def expected(model, X):
    return model.predict_proba(X) if model.classes else model.predict(X)[:, None]


def test_sql_predicts_the_same(model):
    X = strange()
    with closing(sqlite3.connect(":memory:")) as base:
        base.create_function("EXP", 1, lambda x: None if x is None else math.exp(x))
        X.to_sql("t", base, index=False)
        rows = base.execute(f"SELECT {to_code(model, 'sql')} FROM t").fetchall()  # noqa: S608
    found = np.array(rows, dtype=float)
    assert found == pytest.approx(expected(model, X), rel=1e-9, abs=1e-12, nan_ok=True)
    assert np.isnan(found[[3, 20, 21]]).all()


def test_python_predicts_the_same(model):
    X = strange()
    code: dict = {}
    exec(to_code(model, "python"), code)  # noqa: S102  our own text
    found = [code["predict"](row) for row in X.to_dict("records")]
    if model.classes:
        assert list(found[0]) == list(model.classes)
        found = [list(row.values()) for row in found]
    found = np.array(found, dtype=float).reshape(len(X), -1)
    assert found == pytest.approx(expected(model, X), rel=1e-9, abs=1e-12, nan_ok=True)
    assert np.isnan(found[[3, 20, 21]]).all()


def test_scikit_learn_predicts_the_same_where_nothing_is_clipped(model):
    X = frame(50, seed=3)
    plain = pickle.loads(pickle.dumps(model.to_sklearn()))  # noqa: S301  our own
    assert hasattr(plain.intercept_, "reshape"), "skl2onnx asks for it"
    design = model.design(X)
    said, own = plain.predict(design), model.predict(X)
    if not model.classes:
        inside = (said > model.target_range[0]) & (said < model.target_range[1])
        assert inside.mean() > 0.9
        assert said[inside] == pytest.approx(own[inside])
    else:
        raw = design @ model.coef.T + model.intercept
        inside = ((raw > model.margin_range[..., 0]) & (raw < model.margin_range[..., 1])).all(1)
        assert inside.mean() > 0.6
        assert (said == own)[inside].all()
        told = model.predict_proba(X)[inside]
        assert plain.predict_proba(design)[inside] == pytest.approx(told)


def test_another_language(model):
    with pytest.raises(InvalidInput, match="sql or python"):
        to_code(model, "cobol")
    with pytest.raises(InvalidInput, match=r"privtail\.load\(path\)"):
        to_code(DPLinearRegression(), "sql")


def test_an_estimator_saves_itself_and_an_array_model_takes_arrays(tmp_path):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(2_000, 2))
    model = DPLinearRegression(epsilon=5.0, **SIMULATED).fit(X, X @ [1.0, 2.0])
    model.save(tmp_path / "model.json", target="cost")
    read = load(tmp_path / "model.json")
    assert read.target == "cost"
    assert np.array_equal(read.predict(X), model.predict(X))
    with pytest.raises(InvalidInput, match="2 features"):
        read.predict(X[:, :1])
    with pytest.raises(InvalidInput, match="exists"):
        model.save(tmp_path / "model.json")


def test_the_ranges_of_margins_are_written_and_read(model):
    content = json.loads(model.to_text())
    assert type(model).from_json(content).margin_range.tolist() == model.margin_range.tolist()
    endless = type(model).from_json(content | {"margin_range": [None, None]})
    assert not np.isfinite(endless.margin_range).any()
    with pytest.raises(InvalidInput, match="margin_range"):
        type(model).from_json(content | {"margin_range": [[0.0, 1.0]] * 7})


def test_code_of_a_model_of_rates_says_that_it_predicts_rates():
    rng = np.random.default_rng(0)
    X, years = frame()[["age"]], rng.uniform(0.5, 2, 4_000)
    model = DPPoissonRegressor(epsilon=5.0, **SIMULATED)
    rates = model.fit(X, rng.poisson(years), exposure=years).to_model("claims")
    counts = model.fit(X, rng.poisson(years)).to_model("claims")
    for language in ("sql", "python"):
        said = "for an exposure of 1: multiply by that of a row"
        assert said in to_code(rates, language).splitlines()[0]
        assert said not in to_code(counts, language)
