"""What is declared of columns: missing numbers, base levels, functions of columns."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from privtail import load, open_table
from privtail.errors import InvalidInput
from privtail.linear_model import DPLinearRegression

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
