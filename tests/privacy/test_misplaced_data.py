"""Data in the place of a setting: the refusal shows no cell of them."""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal
from typing import Any, Literal

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from scipy import sparse

import privtail
from privtail import DPScaler, Ledger
from privtail.errors import InvalidInput
from privtail.features import bins, cross, log, spline
from privtail.linear_model import DPLinearRegression, DPLogisticRegression, DPRidge
from privtail.schema.dialect import Dialect

SECRET = 424242.0
FRAME = pd.DataFrame({"cost": [SECRET, 2.0, 3.0] * 20, "name": ["alice", "bob", "eve"] * 20})
COST, CELLS, X = FRAME["cost"], FRAME["cost"].to_numpy(), FRAME[["cost"]]
FITTED = DPLinearRegression(epsilon=50, noise="simulated", random_state=0).fit(
    CELLS[:, None], CELLS
)

CALLS: dict[str, Callable[[], Any]] = {
    "plan": lambda: DPLinearRegression(epsilon=1).plan(X, COST),
    "epsilon": lambda: privtail.private_mean(COST, epsilon=COST),  # type: ignore[arg-type]
    "max_rows": lambda: privtail.private_mean(COST, epsilon=1, groups=COST, max_rows=COST),  # type: ignore[arg-type]
    "levels": lambda: privtail.private_quantile(COST, FRAME[["cost", "name"]], epsilon=1),
    "edges": lambda: privtail.private_histogram(COST, edges=FRAME, epsilon=1),  # type: ignore[arg-type]
    "bins": lambda: privtail.private_histogram(COST, COST, epsilon=1),  # type: ignore[arg-type]
    "confidence": lambda: privtail.private_mean(COST, epsilon=1).conf_int(COST),  # type: ignore[arg-type]
    "alpha": lambda: DPRidge(alpha=COST, epsilon=1).fit(X, COST),  # type: ignore[arg-type]
    "random_state": lambda: DPRidge(random_state=COST, epsilon=1).fit(X, COST),  # type: ignore[arg-type]
    "intercept": lambda: DPRidge(fit_intercept=COST, epsilon=1).fit(X, COST),  # type: ignore[arg-type]
    "features": lambda: DPRidge(features=COST, epsilon=1).fit(X, COST),  # type: ignore[arg-type]
    "drop": lambda: DPRidge(drop=CELLS.tolist(), epsilon=1).fit(X, COST),  # type: ignore[arg-type]
    "column": lambda: bins(COST, [1.0, 2.0]),  # type: ignore[arg-type]
    "knots": lambda: spline("cost", COST),
    "order": lambda: spline("cost", CELLS),
    "offset": lambda: log("cost", COST),  # type: ignore[arg-type]
    "cross": lambda: cross(COST, "name"),  # type: ignore[arg-type]
    "path": lambda: Ledger(FRAME),  # type: ignore[arg-type]
    "method": lambda: privtail.private_mean(COST, method=CELLS.tolist(), epsilon=1),  # type: ignore[arg-type]
    "noise": lambda: privtail.private_mean(COST, noise=CELLS.tolist(), epsilon=1),  # type: ignore[arg-type]
    "neighbours": lambda: privtail.private_mean(COST, neighbours=CELLS.tolist(), epsilon=1),  # type: ignore[arg-type]
    "max_rows alone": lambda: DPRidge(max_rows=COST, epsilon=1).fit(X, COST),  # type: ignore[arg-type]
    "invalid": lambda: DPRidge(invalid=CELLS.tolist(), epsilon=1).fit(X, COST),  # type: ignore[arg-type]
    "missing": lambda: DPRidge(missing=CELLS.tolist(), epsilon=1).fit(X, COST),  # type: ignore[arg-type]
    "feature": lambda: DPRidge(features=[COST], epsilon=1).fit(X, COST),  # type: ignore[list-item]
    "degree": lambda: spline("cost", [1.0, 2.0], degree=CELLS.tolist()),  # type: ignore[arg-type]
    "kind": lambda: FITTED.conf_int(kind=CELLS.tolist()),  # type: ignore[arg-type]
    "predict": lambda: FITTED.predict(["alice", "bob"]),
    "composition": lambda: Ledger(epsilon=1.0, delta=1e-6, composition=CELLS.tolist()),  # type: ignore[arg-type]
    "decimal": lambda: Dialect(decimal=COST),  # type: ignore[arg-type]
    "separator": lambda: Dialect(separator=COST),  # type: ignore[arg-type]
    "encoding": lambda: Dialect(encoding=COST),  # type: ignore[arg-type]
    "comment": lambda: Dialect(comment=COST),  # type: ignore[arg-type]
    "data set": lambda: Ledger(epsilon=1.0, delta=1e-6, data_set=FRAME),  # type: ignore[arg-type]
}


@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS)
def test_a_refusal_shows_no_cell(call: Callable[[], Any]) -> None:
    with pytest.raises(InvalidInput) as refused:
        call()
    assert not any(cell in str(refused.value) for cell in ("424242", "alice", "2.0"))


SEEDED: dict[str, Any] = {"epsilon": 50, "noise": "simulated", "random_state": 0}
SCALER = DPScaler(**SEEDED).fit(CELLS[:, None])
STRICT = DPScaler(invalid="raise", **SEEDED).fit(CELLS[:, None])
USES: dict[str, Callable[[Any], Any]] = {
    "predict": FITTED.predict, "transform": SCALER.transform, "back": SCALER.inverse_transform,
    "strict": STRICT.transform,
}  # fmt: skip
WORDS = FRAME["name"].tolist()
ROWS: dict[str, Any] = {
    "list": CELLS.tolist(), "words": WORDS, "rows of words": [[word] for word in WORDS],
    "objects": np.array([[word] for word in WORDS], dtype=object),
    "vector of objects": np.array(WORDS, dtype=object), "text of numpy": np.array(WORDS)[:, None],
    "number": SECRET, "no dimension": np.array(SECRET), "three": CELLS[:, None, None],
    "index": pd.Index(CELLS), "complex": CELLS[:, None] * 1j, "arrow": pa.array(CELLS),
    "chunks": pa.chunked_array([WORDS]), "polars": pl.Series("cost", CELLS),
    "polars words": pl.Series("cost", WORDS), "decimals": pl.Series([Decimal(424242)]),
    "structure": pa.array([{"cost": SECRET}]), "uneven": [[SECRET], [SECRET, 2.0]],
}  # fmt: skip
TABLES: dict[str, Any] = {
    "frame": FRAME[["name"]].set_axis(["cost"], axis=1),
    "categories": FRAME[["name"]].set_axis(["cost"], axis=1).astype("category"),
    "polars": pl.DataFrame({"cost": WORDS}), "arrow": pa.table({"cost": WORDS}),
    "huge": pd.DataFrame({"cost": [10**400] * 3}),
}  # fmt: skip


@pytest.mark.parametrize("use", USES)
@pytest.mark.parametrize("rows", ROWS)
def test_a_refusal_of_rows_to_use_shows_no_cell(rows: str, use: str) -> None:
    """scikit-learn shows a vector, and the first text that is no number."""
    with pytest.raises((TypeError, ValueError)) as refused:
        USES[use](ROWS[rows])
    _require_hidden(refused.value)


@pytest.mark.parametrize("invalid", ["zero", "raise"])
@pytest.mark.parametrize("table", TABLES)
def test_a_refusal_of_a_table_to_use_shows_no_cell(
    table: str, invalid: Literal["zero", "raise"]
) -> None:
    model = DPScaler(invalid=invalid, **SEEDED).fit(X)
    with pytest.raises((TypeError, ValueError)) as refused:
        model.transform(TABLES[table])
    _require_hidden(refused.value)


def test_a_frame_that_slices_by_labels_shows_no_cell(monkeypatch: pytest.MonkeyPatch) -> None:
    """As pandas 2 does for an index of fractions: `X[:0]` has the rows up to the label 0."""
    plain = pd.DataFrame.__getitem__

    def by_label(self: pd.DataFrame, key: Any) -> Any:
        return self.loc[key] if isinstance(key, slice) else plain(self, key)

    frame = TABLES["frame"].set_axis(-np.arange(len(WORDS)) / 2)
    monkeypatch.setattr(pd.DataFrame, "__getitem__", by_label)
    with pytest.raises((TypeError, ValueError)) as refused:
        DPScaler(**SEEDED).fit(X).transform(frame)
    _require_hidden(refused.value)


def _require_hidden(error: BaseException) -> None:
    cause = None if error.__suppress_context__ else error.__context__
    told = f"{error} {error.__cause__!r} {cause!r}"
    assert not any(cell in told for cell in ("424242", "4.24242", "alice", "bob", "eve'"))


def test_what_is_public_of_rows_to_use_is_said() -> None:
    with pytest.raises(ValueError, match="Reshape your data"):
        SCALER.transform(CELLS)
    with pytest.raises(ValueError, match="X has 2 features, but DPScaler is expecting 1"):
        SCALER.transform(np.ones((3, 2)))
    with pytest.raises(ValueError, match=r"now missing:\n- cost"):
        DPScaler(**SEEDED).fit(X).transform(FRAME[["name"]])
    with pytest.raises(InvalidInput, match="NaN or infinity"):
        STRICT.transform([[np.nan]])
    assert SCALER.transform([[1.0], [2.0]]).shape == (2, 1)
    assert FITTED.predict([[1.0], [None]]).shape == (2,)


def test_a_refusal_shows_a_number_or_a_text() -> None:
    with pytest.raises(InvalidInput, match="got -1"):
        DPLinearRegression(epsilon=1).plan(-1, 3)
    with pytest.raises(InvalidInput, match=r"got 'one'\."):
        privtail.private_mean(np.ones(30), epsilon="one")  # type: ignore[arg-type]


SPARSE: dict[str, Callable[[Any], Any]] = {
    "fit": lambda Z: DPRidge(epsilon=1).fit(Z, COST),
    "target": lambda Z: DPRidge(epsilon=1).fit(X, Z),
    "predict": FITTED.predict,
    "model": lambda Z: FITTED.to_model().predict(Z),
    "mean": lambda Z: privtail.private_mean(Z, epsilon=1),
    "scaler": lambda Z: DPScaler(epsilon=1).fit(Z),
    "summarize": lambda Z: privtail.summarize(Z, epsilon=1),
    "quantile": lambda Z: privtail.private_quantile(Z, 0.5, epsilon=1),
    "evaluate": lambda Z: privtail.evaluate(FITTED, Z, COST, epsilon=1),
    "groups": lambda Z: privtail.private_mean(COST, epsilon=1, groups=Z, max_rows=1),
}


@pytest.mark.parametrize("call", SPARSE)
@pytest.mark.parametrize("kind", [sparse.dok_array, sparse.dok_matrix])
def test_a_sparse_matrix_that_is_a_dict_is_refused_by_its_class(kind: Any, call: str) -> None:
    """Its keys, the places of the cells that are not zero, were taken for names of columns."""
    said = []
    for cells in (CELLS, np.where(CELLS > 2.5, CELLS, 0.0), np.zeros_like(CELLS)):
        with pytest.raises(InvalidInput) as caught:
            SPARSE[call](kind(cells[:, None]))
        said.append(str(caught.value))
    assert len(set(said)) == 1
    assert str(SECRET) not in said[0]


@pytest.mark.parametrize("kind", [sparse.csr_array, sparse.csr_matrix, sparse.coo_array])
@pytest.mark.parametrize("call", ["target", "labels", "groups"])
def test_a_sparse_matrix_in_the_place_of_a_column_is_told_the_dense_one(
    kind: Any, call: str
) -> None:
    calls = {
        **SPARSE,
        "labels": lambda Z: DPLogisticRegression(epsilon=1, classes=[0, 1]).fit(X, Z),
    }
    with pytest.raises(InvalidInput, match=r"pass a dense column, y\.toarray\(\)\.ravel\(\)"):
        calls[call](kind(CELLS[:, None]))
