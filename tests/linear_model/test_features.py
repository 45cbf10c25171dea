"""What is declared of columns: missing numbers, base levels, functions of columns."""

from __future__ import annotations

import json
import math
import sqlite3
import warnings
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from privtail import Ledger, PrivateSearchCV, evaluate, load, open_table
from privtail.errors import InvalidInput, MissingWarning
from privtail.export import to_code
from privtail.features import bins, cross, log, private_knots, spline
from privtail.linear_model import DPLinearRegression, DPPoissonRegressor, DPRidge
from privtail.schema.encoding import Encoding
from privtail.schema.features import Feature, parsed, written

SIMULATED = {"noise": "simulated", "random_state": 0}
GAP = 20.0


def claims(n: int = 20_000, seed: int = 0) -> tuple[pd.DataFrame, np.ndarray]:
    """Three in ten ages are missing, and cost GAP more than those of the same age."""
    rng = np.random.default_rng(seed)
    age, size = rng.normal(50, 10, n), rng.normal(size=n)
    gone = rng.random(n) < 0.3
    y = 2 * age + 3 * size + GAP * gone + rng.normal(size=n)
    return pd.DataFrame({"age": np.where(gone, np.nan, age), "size": size}), y


@pytest.fixture(scope="module")
def filled() -> DPLinearRegression:
    return DPLinearRegression(epsilon=2.0, missing="indicator", **SIMULATED).fit(*claims())


def test_a_missing_number_counts_as_the_centre_and_what_its_absence_says(
    filled: DPLinearRegression,
) -> None:
    names = filled.get_feature_names_out().tolist()
    assert names == ["age", "age=missing", "size", "size=missing"]
    assert filled.coef_[[0, 2]] == pytest.approx([2.0, 3.0], rel=0.1)
    centre = filled.fill_[0]
    assert centre == pytest.approx(50, abs=5)
    assert filled.coef_[1] + 2 * centre == pytest.approx(2 * 50 + GAP, abs=3)
    assert np.isnan(filled.fill_[[1, 3]]).all()
    X, y = claims(seed=1)
    assert filled.score(X, y) > 0.74  # the best is .757: the ages of three in ten are unknown
    dropped = DPLinearRegression(epsilon=2.0, **SIMULATED).fit(X, y)
    assert np.isnan(dropped.predict(X)).mean() == pytest.approx(0.3, abs=0.02)


def test_a_column_that_is_mostly_missing_is_found_where_it_lies() -> None:
    """Years far from zero, of which one in five is known: histograms count the known ones."""
    rng, n = np.random.default_rng(0), 20_000
    year, gone = rng.normal(2000, 10, n), rng.random(n) < 0.8
    y = np.where(gone, GAP, 2 * (year - 2000)) + rng.normal(0, 5, n)
    X = pd.DataFrame({"year": np.where(gone, np.nan, year)})
    model = DPLinearRegression(missing="indicator", **SIMULATED).fit(X, y)
    assert model.coef_ == pytest.approx([2.0, GAP], abs=2)
    assert model.coef_[0] == pytest.approx(2.0, rel=0.1)
    assert model.fill_[0] == pytest.approx(2000, abs=3)


@pytest.mark.parametrize("seed", range(3))
def test_a_column_without_any_number_is_not_used(seed: int) -> None:
    rng = np.random.default_rng(seed)
    X = pd.DataFrame({"a": rng.normal(size=5_000), "b": np.nan, "c": 0.0})
    model = DPLinearRegression(
        epsilon=5.0, missing="indicator", noise="simulated", random_state=seed
    )
    table = model.fit(X, X["a"] + rng.normal(size=5_000)).summary()
    unused = np.isinf(table.std_err)
    assert {"b", "c"} <= {name for name, no in zip(table.names, unused, strict=True) if no}
    assert not unused[table.names.index("a")]
    assert model.coef_[table.names.index("b")] == 0


def test_an_infinite_number_has_no_prediction_as_before(filled: DPLinearRegression) -> None:
    found = filled.predict(
        pd.DataFrame({"age": [np.nan, np.inf, 50.0], "size": [0.0, 0.0, np.nan]})
    )
    assert np.isnan(found).tolist() == [False, True, False]


@pytest.mark.parametrize("container", ["array", "arrow", "mapping", "csv", "parquet"])
def test_every_container_gives_the_same_fit_and_predictions(
    filled: DPLinearRegression, container: str, tmp_path: Path
) -> None:
    X, y = claims()
    table = pa.table({**{name: pa.array(X[name], from_pandas=True) for name in X}, "y": y})
    given = {
        "array": X.to_numpy(),
        "arrow": table.drop_columns("y"),
        "mapping": {name: X[name].to_list() for name in X},
    }.get(container)
    target: object = y
    if given is None:
        path, target = tmp_path / f"t.{container}", "y"
        if container == "csv":
            X.assign(y=y).to_csv(path, index=False)
        else:
            pq.write_table(table, path)
        given = open_table(path)
    model = DPLinearRegression(epsilon=2.0, missing="indicator", **SIMULATED).fit(given, target)
    assert np.array_equal(model.coef_, filled.coef_)
    if target is y:
        assert np.array_equal(model.predict(given), filled.predict(X))


def test_the_model_holds_what_missing_numbers_count_as(
    filled: DPLinearRegression, tmp_path: Path
) -> None:
    X, _ = claims(500, seed=3)
    filled.save(tmp_path / "m.json")
    model = load(tmp_path / "m.json")
    assert np.array_equal(model.predict(X), filled.predict(X))
    X.to_csv(tmp_path / "t.csv", index=False)
    assert np.array_equal(model.predict(tmp_path / "t.csv"), filled.predict(X))
    sklearn = model.to_sklearn()
    inside = model.design(X)
    assert sklearn.predict(inside) == pytest.approx(model.predict(X))
    content = json.loads((tmp_path / "m.json").read_text())
    content["fill"] = [None] * 4
    (tmp_path / "m.json").write_text(json.dumps(content))
    with pytest.raises(InvalidInput, match="'fill' must hold 4 numbers"):
        load(tmp_path / "m.json")


def test_targets_that_are_missing_still_drop_their_rows() -> None:
    X, y = claims(4_000)
    y[::2] = np.nan
    model = DPLinearRegression(
        epsilon=5.0, missing="indicator", count_invalid=0.1, **SIMULATED
    ).fit(X, y)  # fmt: skip
    assert model.n_invalid_ == pytest.approx(2_000, abs=100)


def test_raise_refuses_infinities_and_not_gaps() -> None:
    X, y = claims(4_000)
    model = DPLinearRegression(epsilon=5.0, missing="indicator", invalid="raise", **SIMULATED)
    model.fit(X, y)
    X.loc[0, "age"] = np.inf
    with pytest.raises(InvalidInput, match="contains NaN or infinity"):
        model.fit(X, y)


def test_another_word_for_missing_is_refused() -> None:
    with pytest.raises(InvalidInput, match='missing must be "drop" or "indicator"'):
        DPLinearRegression(missing="mean").fit(*claims(100))


# --- base levels and the table of slopes ----------------------------------------------------------

REGIONS = {"region": ["north", "south", "west"]}


def counts(n: int = 30_000, seed: int = 0) -> tuple[pd.DataFrame, np.ndarray]:
    """Counts that are twice as frequent in the south, and half as frequent in the west."""
    rng = np.random.default_rng(seed)
    region = rng.choice(REGIONS["region"], n)
    times = {"north": 1.0, "south": 2.0, "west": 0.5}
    y = rng.poisson(1.5 * np.array([times[one] for one in region]))
    return pd.DataFrame({"region": region}), y


@pytest.fixture(scope="module")
def rated() -> DPPoissonRegressor:
    model = DPPoissonRegressor(epsilon=5.0, categories=REGIONS, drop="first", **SIMULATED)
    return model.fit(*counts())


def test_relativities_compare_to_the_base_level(rated: DPPoissonRegressor, tmp_path: Path) -> None:
    assert rated.get_feature_names_out().tolist() == ["region=south", "region=west"]
    table = rated.table()
    assert table.names == ("region=north", "region=south", "region=west")
    assert table.relativity == pytest.approx([1.0, 2.0, 0.5], rel=0.1)
    assert table.coef[0] == 0
    assert np.isnan(table.std_err[0])
    assert (table.std_err[1:] > 0).all()
    text = str(table)
    assert "relativity" in text
    assert "region=north" in text
    rated.save(tmp_path / "m.json")
    loaded = load(tmp_path / "m.json")
    assert str(loaded.summary()) == text
    assert loaded.summary().to_dict()["region=north"]["relativity"] == 1
    assert loaded.get_feature_names_out().tolist() == list(loaded.features)
    assert "relativity" in loaded.summary()._repr_html_()


def test_a_value_that_was_not_declared_counts_as_the_base_level(rated: DPPoissonRegressor) -> None:
    found = rated.predict(pd.DataFrame({"region": ["north", "elsewhere"]}))
    assert found[0] == found[1]


def test_a_base_level_may_be_named_by_column() -> None:
    X, y = counts(5_000)
    X["fuel"] = np.where(np.arange(len(X)) % 2, "gas", "oil")
    declared = {**REGIONS, "fuel": ["gas", "oil"]}
    model = DPPoissonRegressor(categories=declared, drop={"region": "west"}, **SIMULATED).fit(X, y)
    names = model.get_feature_names_out().tolist()
    assert names == ["region=north", "region=south", "fuel=gas", "fuel=oil"]
    for drop, match in (
        ({"region": "east"}, "'east' of column 'region' must be one"),
        ({"region": "West"}, "Is 'west' meant"),
        ({"regoin": "west"}, "Is 'region' meant"),
        ("last", 'drop must be "first"'),
    ):
        with pytest.raises(InvalidInput, match=match):
            DPPoissonRegressor(categories=declared, drop=drop, **SIMULATED).fit(X, y)


def test_a_base_level_is_no_gap_of_a_file_to_predict(
    rated: DPPoissonRegressor, tmp_path: Path
) -> None:
    pd.DataFrame({"region": ["north"] * 5}).to_csv(tmp_path / "t.csv", index=False)
    rated.to_model().predict(tmp_path / "t.csv")  # a warning would be an error


def test_a_category_alone_beside_its_base_level_has_no_feature() -> None:
    X, y = counts(2_000)
    declared = {**REGIONS, "fuel": ["gas"]}
    model = DPPoissonRegressor(
        categories=declared, drop="first", features=[cross("region", "fuel")], **SIMULATED
    ).fit(X.assign(fuel="gas"), y)  # fmt: skip
    assert model.get_feature_names_out().tolist() == ["region=south", "region=west"]
    assert model.summary().names == ("region=north", "region=south", "region=west", "fuel=gas")
    assert model.predict(X.assign(fuel="gas")[:0]).shape == (0,)


# --- functions of columns -------------------------------------------------------------------------

EVERYTHING = [
    bins("age", [30, 50]),
    spline("pay", [1, 2, 4, 8]),
    log("size", 1),
    cross("region", bins("age", [40])),
    cross("size", log("pay")),
]


def policies(n: int = 4_000, seed: int = 0) -> tuple[pd.DataFrame, np.ndarray]:
    rng = np.random.default_rng(seed)
    X = pd.DataFrame({
        "age": rng.uniform(18, 80, n), "pay": 1 + rng.pareto(2, n), "size": rng.exponential(2, n),
        "region": rng.choice(REGIONS["region"], n),
    })  # fmt: skip
    y = np.cos(X["age"] / 10) + np.log(X["pay"]) + np.log1p(X["size"]) + rng.normal(0, 0.3, n)
    return X, y.to_numpy()


def strange() -> pd.DataFrame:
    X, _ = policies(60, seed=5)
    X.loc[:9, "pay"] *= 1e12
    X.loc[10:19, "age"] = np.nan
    X.loc[15:24, "size"] = np.nan
    X.loc[25:29, "size"] = -3.0
    X.loc[30:39, "region"] = "elsewhere"
    return X


@pytest.fixture(scope="module", params=["drop", "indicator"])
def curved(request: pytest.FixtureRequest) -> DPLinearRegression:
    return DPLinearRegression(
        epsilon=20.0, categories=REGIONS, drop="first", missing=request.param,
        features=EVERYTHING, **SIMULATED,
    ).fit(*policies())  # fmt: skip


def test_models_hold_their_features(curved: DPLinearRegression, tmp_path: Path) -> None:
    X, expected = strange(), curved.predict(strange())
    assert np.isnan(expected).any() == (curved.missing == "drop")
    curved.save(tmp_path / "m.json")
    model = load(tmp_path / "m.json")
    assert np.array_equal(model.predict(X), expected, equal_nan=True)
    pq.write_table(pa.Table.from_pandas(X), tmp_path / "t.parquet")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", MissingWarning)
        found = model.predict(tmp_path / "t.parquet")
    assert np.array_equal(found, expected, equal_nan=True)
    shown = json.loads((tmp_path / "m.json").read_text())["features"]
    assert shown[0] == "bins(age, 30, 50)"
    assert [parsed(text) for text in shown] == EVERYTHING


def test_sql_predicts_with_features(curved: DPLinearRegression) -> None:
    X = strange()
    with closing(sqlite3.connect(":memory:")) as base:
        base.create_function("LN", 1, lambda x: None if x is None else math.log(x))
        X.to_sql("t", base, index=False)
        code = to_code(curved.to_model(), "sql")
        rows = base.execute(f"SELECT {code} FROM t").fetchall()  # noqa: S608
    found = np.array(rows, dtype=float)[:, 0]
    assert found == pytest.approx(curved.predict(X), rel=1e-9, abs=1e-9, nan_ok=True)


def test_python_predicts_with_features(curved: DPLinearRegression) -> None:
    code: dict[str, Any] = {}
    exec(to_code(curved.to_model(), "python"), code)  # noqa: S102  our own text
    found = [code["predict"](row) for row in strange().to_dict("records")]
    assert found == pytest.approx(curved.predict(strange()), rel=1e-9, abs=1e-9, nan_ok=True)


def test_sklearn_predicts_with_features(curved: DPLinearRegression) -> None:
    X, _ = policies(200, seed=3)
    model = curved.to_model()
    assert curved.to_sklearn().predict(model.design(X)) == pytest.approx(curved.predict(X))


def test_a_feature_takes_the_place_of_its_column_unless_that_is_named() -> None:
    def names(*features: Feature) -> list[str]:
        return list(Encoding(features=features).design(["age", "pay"], {}).names)

    assert names(log("pay")) == ["age", "log(pay)"]
    assert names("pay", log("pay")) == ["age", "pay", "log(pay)"]
    assert names(cross("age", "pay")) == ["age", "pay", "age:pay"]
    with pytest.raises(InvalidInput, match="Is 'pay' meant"):
        names(log("pya"))
    with pytest.raises(InvalidInput, match=r"In Python write log\('pay', 1\) as a call"):
        names("log(pay, 1)")
    with pytest.raises(InvalidInput, match="Two features are called"):
        names(log("pay"), log("pay"))


def test_arrays_have_features_too() -> None:
    X, y = policies()
    rows = X[["age", "pay"]].to_numpy()
    given = [spline("x0", [20, 40, 60, 80]), log("x1")]
    model = DPLinearRegression(epsilon=20.0, features=given, **SIMULATED).fit(rows, y)
    plain = DPLinearRegression(epsilon=20.0, **SIMULATED).fit(rows, y)
    assert len(model.coef_) == 6
    assert model.score(rows, y) > plain.score(rows, y) + 0.1


@pytest.mark.parametrize(
    "text",
    ["bins(age, 20, 40)", "spline(age, 1, 2.5, 1e+20)", "linear_spline(age, 1, 2)", "log(pay)",
     "log(pay, 1)", "cross(region, fuel)", 'cross("a, b", bins("q\\"(", 3))', "age"],
)  # fmt: skip
def test_a_feature_is_read_as_it_is_written(text: str) -> None:
    assert parsed(written(parsed(text))) == parsed(text)


@pytest.mark.parametrize(
    "text",
    ["", "bins", "bins(", "bins(age", "bins(age)", "bins(age, x)", "bins(age, 2, 1)", "sin(age)",
     "bins(age, 1) + 1", "cross(a)", "cross(a, a)", "log(a, 1, 2)", "bins(log(a), 1)", "(a)",
     "__import__('os')", '"a', "log(a,)", "bins(a, nan)", "cross(" * 40, "log(a, 1))"],
)  # fmt: skip
def test_other_texts_are_no_feature(text: str) -> None:
    if text == "bins":
        assert parsed(text) == "bins"  # the name of a column
        return
    with pytest.raises(InvalidInput):
        parsed(text)


def test_too_few_knots_are_counted() -> None:
    with pytest.raises(InvalidInput, match="2 or more public knots, got a list of 1"):
        spline("age", [20])


def test_a_function_of_a_user_is_refused() -> None:
    X, y = policies(100)
    with pytest.raises(InvalidInput, match="would run on private rows"):
        DPLinearRegression(features=[np.log]).fit(X[["age"]], y)
    with pytest.raises(InvalidInput, match="features must be a list"):
        DPLinearRegression(features="bins(age, 1)").fit(X[["age"]], y)


def test_a_search_takes_features_and_refuses_what_it_cannot_score() -> None:
    X, y = policies()
    grid = {"alpha": [0.1, 1e6]}
    ridge = DPRidge(categories=REGIONS, drop="first", features=EVERYTHING)
    search = PrivateSearchCV(ridge, grid, trials=2, epsilon=20.0, **SIMULATED).fit(X, y)
    assert len(search.best_estimator_.coef_) == len(search.best_estimator_.get_feature_names_out())
    with pytest.raises(InvalidInput, match="A search scores rows before"):
        PrivateSearchCV(DPRidge(missing="indicator"), grid, **SIMULATED).fit(X[["age"]], y)


def test_models_are_evaluated_with_their_features(curved: DPLinearRegression) -> None:
    X, y = policies(seed=9)
    by_estimator = evaluate(curved, X, y, epsilon=1.0, **SIMULATED)
    by_model = evaluate(curved.to_model(), X, y, epsilon=1.0, **SIMULATED)
    assert by_estimator.to_dict()["numbers"] == by_model.to_dict()["numbers"]
    assert by_model.to_dict()["numbers"]["r2"]["value"] > 0.7


def test_knots_are_bought_at_quantiles() -> None:
    X, y = policies(20_000)
    ledger = Ledger(epsilon=1.0, delta=1e-5)
    knots = private_knots(X["age"], 4, epsilon=0.25, ledger=ledger)
    assert np.mean(X["age"].to_numpy()[:, None] < knots, axis=0) == pytest.approx(
        [0.125, 0.375, 0.625, 0.875], abs=0.05
    )
    model = DPLinearRegression(epsilon=0.75, ledger=ledger, features=[spline("age", knots)])
    assert len(model.fit(X[["age"]], y).coef_) == 5
    assert next(entry.label for entry in ledger.entries()) == "private_quantile"
    with pytest.raises(InvalidInput, match="one column"):
        private_knots(X[["age", "pay"]], 4, epsilon=1.0, **SIMULATED)
    assert private_knots(np.zeros(2_000), 3, epsilon=1.0, **SIMULATED) == [0.0]
