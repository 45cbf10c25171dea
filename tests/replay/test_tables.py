"""Whole records in every table, by every estimator: a neighbour with the same releases is the same.

Record 0 is the one that is replaced, since what looks at a first cell to guess a type looks there.
"""

from __future__ import annotations

import gzip
from collections.abc import Callable, Mapping
from functools import partial
from itertools import starmap
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from replays import differences, played

from privtail import (
    Ledger,
    PrivateSearchCV,
    cross_validate,
    linear_model,
    open_table,
    private_mean,
)
from privtail.algorithms import ProximalGradient
from privtail.features import bins, cross, log, spline
from privtail.losses import CustomLoss, GeneralLoss, SquaredLoss, TruncatedLoss
from privtail.mean import METHODS
from privtail.published import NAMES

pandas = pytest.importorskip("pandas")
polars = pytest.importorskip("polars")
pa = pytest.importorskip("pyarrow")

import pyarrow.parquet as pq

N = 40
SEEDED: dict[str, Any] = {"noise": "simulated", "random_state": 0}
ONE_STEP = ProximalGradient(steps=2, step_size=0.1, threshold=1.0)

Columns = Mapping[str, list[Any]]


def records() -> dict[str, list[Any]]:
    """Two features, a category, and targets of every kind."""
    rng = np.random.default_rng(60)
    a, b = rng.standard_t(3, (2, N)).round(3)
    return {
        "a": a.tolist(), "b": b.tolist(), "k": ["xy"[i % 2] for i in range(N)],
        "y": (a - b + rng.normal(size=N)).round(3).tolist(),
        "count": rng.poisson(2.0, N).astype(float).tolist(),
        "label": ["no" if i % 3 else "yes" for i in range(N)],
    }  # fmt: skip


def with_first(columns: Columns, **cells: Any) -> dict[str, list[Any]]:
    return {
        name: [cells[name], *column[1:]] if name in cells else list(column)
        for name, column in columns.items()
    }


# Tables


def doubles(columns: Columns) -> Any:
    return np.array([columns["a"], columns["b"]], dtype=np.float64).T


def as_objects(columns: Columns) -> Any:
    out = np.empty((N, 2), dtype=object)
    for j, name in enumerate("ab"):
        for i, cell in enumerate(columns[name]):
            out[i, j] = cell
    return out


def frame(dtype: str) -> Callable[[Columns], Any]:
    return lambda columns: pandas.DataFrame(
        {name: pandas.Series(columns[name], dtype=object).astype(dtype) for name in "ab"}
    )


def repeated(columns: Columns) -> Any:
    """A CSR matrix that stores every entry in two halves, and record 0 in many parts."""
    X = doubles(columns)
    pieces = [[[row[0]] * 2, [row[1]] * 3] for row in X]
    data = [v for row in pieces for cells in row for v in np.array(cells) / len(cells)]
    indices = [j for row in pieces for j, cells in enumerate(row) for _ in cells]
    return sp.csr_matrix((data, indices, np.arange(N + 1) * 5), shape=(N, 2))


TABLES: dict[str, Callable[[Columns], Any]] = {
    "array": doubles,
    "by columns": lambda columns: np.asfortranarray(doubles(columns)),
    "float32": lambda columns: doubles(columns).astype(np.float32),
    "objects": as_objects,
    "pandas": frame("float64"),
    "pandas objects": frame("object"),
    "pandas Float64": frame("Float64"),
    "pandas double[pyarrow]": frame("double[pyarrow]"),
    "polars": lambda columns: polars.DataFrame(
        {name: columns[name] for name in "ab"}, dict.fromkeys("ab", polars.Float64)
    ),
    "lazy": lambda columns: polars.LazyFrame(
        {name: columns[name] for name in "ab"}, dict.fromkeys("ab", polars.Float64)
    ),
    "arrow": lambda columns: pa.table(
        {name: pa.chunked_array([[c] for c in columns[name]], pa.float64()) for name in "ab"}
    ),
    "batch": lambda columns: pa.record_batch(
        {name: pa.array(columns[name], pa.float64()) for name in "ab"}
    ),
    "mapping of lists": lambda columns: {name: list(columns[name]) for name in "ab"},
    "mapping of arrays": lambda columns: dict(zip("ab", doubles(columns).T, strict=True)),
    "sparse": lambda columns: sp.csr_array(doubles(columns)),
    "sparse repeated": repeated,
    "masked": lambda columns: np.ma.masked_invalid(doubles(columns)),
    "lists": lambda columns: [[columns[name][i] for name in "ab"] for i in range(N)],
    "tuples": lambda columns: tuple(zip(columns["a"], columns["b"], strict=True)),
    "rows of arrays": lambda columns: list(doubles(columns)),
}

REFUSED = {"objects", "pandas objects", "lazy", "masked", "lists", "tuples", "rows of arrays"}
"""Tables that are refused, whatever they hold."""

FIRST: dict[str, dict[str, Any]] = {
    "large": {"a": 1e308, "b": -1e308, "y": 1e308, "count": 1e308, "label": "yes", "k": "y"},
    "subnormal": {"a": 5e-324, "b": 0.0, "y": 5e-324, "count": 5e-324, "label": "no"},
    "infinite": {"a": np.inf, "b": -np.inf, "y": -np.inf, "count": np.inf, "label": "other"},
    "one large": {"a": 1e10, "y": -3.5, "count": 2.0**53 + 2, "k": "z"},
    "empty": dict.fromkeys(("a", "b", "y", "count", "label", "k")),
    "no target": dict.fromkeys(("y", "count", "label")),
}
"""What record 0 may hold instead."""
ODD: dict[str, dict[str, Any]] = {
    "text": {"a": "abc", "y": "abc"}, "truth": {"a": "true", "b": True, "y": "true"},
    "no text": {"a": "", "y": ""}, "bytes": {"a": b"7", "b": b"\xff", "y": b"7"},
    "list": {"a": [1.0], "b": [1.0, 2.0], "y": [1.0]}, "dictionary": {"a": {}, "y": {"a": 1}},
    "complex": {"a": 1j, "b": np.complex128(1j), "y": 1j}, "whole": {"a": 10**400, "y": 2**70},
    "arrays": {"a": np.ones(1), "b": np.ones((2, 2)), "y": np.ones(1)},
}  # fmt: skip
"""The same for tables of Python objects."""
UNTYPED = {"objects", "pandas objects", "mapping of lists", "lists", "tuples", "rows of arrays"}

Ask = Callable[[Any, Columns, str], Any]


def asked(ask: Ask, make: Callable[[Columns], Any], columns: Columns, near: str) -> Any:
    return ask(make(columns), columns, near)


def replayed(ask: Ask, make: Callable[[Columns], Any], rows: Mapping[str, Any]) -> list[str]:
    """What tells records from their neighbours, under both relations."""
    base, found = records(), []
    ours = {near: played(partial(asked, ask, make, base, near)) for near in RELATIONS}
    for name, cells in rows.items():
        theirs = with_first(base, **cells)
        try:
            make(theirs)
        except Exception:  # noqa: BLE001, S112  this table cannot hold such a record
            continue
        emptied = name in ("empty", "no target")
        for near in RELATIONS[: 1 + emptied]:
            tape = played(partial(asked, ask, make, theirs, near), ours[near])
            texts = differences(ours[near], tape, emptied=near == "zero_out")
            found += [f"{name}, {near}: {text}" for text in texts]
    return found


RELATIONS = ("replace_one", "zero_out")


def ridge(X: Any, columns: Columns, near: str) -> Any:
    model = linear_model.DPRidge(
        epsilon=0.5, algorithm=ONE_STEP, neighbours=near, count_invalid=0.1, verbose=1,
        ledger=Ledger(epsilon=1.0, delta=1e-5), random_state=0,
    )  # fmt: skip
    return model.fit(X, columns["y"])


@pytest.mark.parametrize("table", TABLES)
def test_every_table(table: str) -> None:
    rows = {**FIRST, **ODD} if table in UNTYPED else FIRST
    assert replayed(ridge, TABLES[table], rows) == []
    tape = played(lambda: ridge(TABLES[table](records()), records(), "replace_one"))
    assert tape.refused == (table in REFUSED)
    assert len(tape.releases) == 2 * (not tape.refused)


# Estimators


def fitted(model: Callable[..., Any], target: str, **options: Any) -> Ask:
    given = {"epsilon": 500.0, **SEEDED, **options}
    return lambda X, columns, near: model(neighbours=near, **given).fit(X, columns[target])


def mean(method: str) -> Ask:
    return lambda X, columns, near: private_mean(
        X, epsilon=2.0, method=method, neighbours=near, **SEEDED
    )


def search(model: Any, grid: Mapping[str, Any], target: str) -> Ask:
    return lambda X, columns, near: PrivateSearchCV(
        model, grid, trials=2, epsilon=500.0, neighbours=near, **SEEDED
    ).fit(X, columns[target])


def peeking(margin: Any, y: Any) -> Any:
    """A function that looks at the records beside its own, if it can."""
    return margin - np.max(y) + np.size(y)


def general(value: Any) -> GeneralLoss:
    return GeneralLoss(
        value=lambda w, x, y: np.max(y) + np.size(y),
        gradient=lambda w, x, y: np.full(w.shape, value(y)),
    )


class Theirs:
    """A loss of somebody else, whose rows are not its own."""

    name, outputs, targets, convex = "theirs", 1, "real", False
    curvature = lipschitz = 1.0

    def values(self, margins: Any, y: Any) -> Any:
        return margins[:, 0] - y.max()

    def derivatives(self, margins: Any, y: Any) -> Any:
        return np.full_like(margins, 1.0 if y.max() > 40 else -1.0)


PEEKING = CustomLoss(value=peeking, derivative=peeking)
WITH = {"loss": TruncatedLoss(loss=Theirs(), bound=50.0), "algorithm": ONE_STEP}  # type: ignore[arg-type]
LETTERS = {"k": ["x", "y"]}
LABELS = ["no", "yes"]

ESTIMATORS: dict[str, Ask] = {
    **{
        name: fitted(model, {"poisson": "count"}.get(name, "y"))
        for name, model in linear_model.MODELS.items()
        if "logistic" not in name and "sparse" not in name
    },
    "heteroscedastic": fitted(linear_model.DPLinearRegression, "y", heteroscedastic=True),
    "sparse": fitted(linear_model.DPSparseRegressor, "y", sparsity=1),
    "logistic": fitted(linear_model.DPLogisticRegression, "label", classes=LABELS),
    "bought": fitted(linear_model.DPLogisticRegression, "label", delta=0.1),
    "balanced": fitted(
        linear_model.DPLogisticRegression, "label", classes=LABELS, class_weight="balanced"
    ),
    "three": fitted(linear_model.DPLogisticRegression, "label", classes=[*LABELS, "other"]),
    "sparse labels": fitted(
        linear_model.DPSparseClassifier, "label", classes=LABELS, sparsity=1
    ),
    "generalized": fitted(linear_model.DPGeneralizedLinearEstimator, "y", loss="absolute"),
    "loss of a user": fitted(linear_model.DPGeneralizedLinearEstimator, "y", loss=Theirs()),
    "peeking loss": fitted(
        linear_model.DPGeneralizedLinearEstimator, "y", loss=PEEKING, algorithm=ONE_STEP
    ),
    "general loss": fitted(
        linear_model.DPGeneralizedLinearEstimator, "y", algorithm=ONE_STEP,
        loss=general(lambda y: np.max(y) + np.size(y)),
    ),
    "truncated loss": fitted(linear_model.DPGeneralizedLinearEstimator, "y", **WITH),
    "truncated squares": fitted(
        linear_model.DPGeneralizedLinearEstimator, "y", algorithm=ONE_STEP,
        loss=TruncatedLoss(loss=SquaredLoss(), bound=50.0),
    ),
    "exposure": lambda X, columns, near: linear_model.DPPoissonRegressor(
        epsilon=500.0, neighbours=near, **SEEDED
    ).fit(X, columns["count"], exposure=columns["y"]),
    "scaler": fitted(linear_model.DPScaler, "y"),
    "mean of columns": fitted(linear_model.DPMean, "y"),
    **{f"mean {method}": mean(method) for method in METHODS},
    "search": search(linear_model.DPRidge(), {"alpha": [1.0, 10.0]}, "y"),
    "search among labels": search(
        linear_model.DPLogisticRegression(classes=LABELS), {"C": [1.0, 10.0]}, "label"
    ),
    "search among counts": search(linear_model.DPPoissonRegressor(), {"alpha": [1.0]}, "count"),
}  # fmt: skip


@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_every_estimator(estimator: str) -> None:
    rows = {name: FIRST[name] for name in ("large", "empty")}
    assert replayed(ESTIMATORS[estimator], doubles, rows) == []


@pytest.mark.parametrize("estimator", ["mean catoni", "linear", "logistic", "poisson"])
def test_numpy_may_be_told_to_raise(estimator: str) -> None:
    """Then arithmetic on a record that overflows would be an error, and tell."""

    def ask(X: Any, columns: Columns, near: str) -> Any:
        with np.errstate(all="raise"):
            return ESTIMATORS[estimator](X, columns, near)

    rows = {name: FIRST[name] for name in ("large", "subnormal", "infinite")}
    assert replayed(ask, doubles, rows) == []


@pytest.mark.slow
@pytest.mark.parametrize("table", ["mapping of lists", "sparse"])
@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_every_estimator_of_more_tables(estimator: str, table: str) -> None:
    rows = {name: FIRST[name] for name in ("one large", "infinite", "no target")}
    assert replayed(ESTIMATORS[estimator], TABLES[table], rows) == []


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("labels", [False, True], ids=["numbers", "labels"])
def test_every_named_algorithm(name: str, labels: bool) -> None:
    model, target = linear_model.DPLinearRegression, "y"
    options: dict[str, Any] = {"algorithm": name, "epsilon": 100.0}
    if labels:
        model, target, options["classes"] = linear_model.DPLogisticRegression, "label", LABELS
    rows = {name: FIRST[name] for name in ("large", "empty")}
    ask, base = fitted(model, target, **options), records()
    assert replayed(ask, doubles, rows) == []
    assert played(partial(asked, ask, doubles, base, "replace_one")).releases


ENCODINGS: dict[str, dict[str, Any]] = {
    "gaps": {"missing": "indicator"},
    "base levels": {"missing": "indicator", "drop": "first"},
    "functions": {
        "missing": "indicator",
        "features": ["b", bins("a", [0, 1]), spline("b", [-1, 0, 2]), log("b", 1), cross("k", "b")],
    },
    "functions that drop rows": {
        "drop": "first", "features": [bins("a", [0, 1]), cross("k", "b"), cross("a", "b")],
    },
}  # fmt: skip


@pytest.mark.parametrize("declared", ENCODINGS)
def test_declared_features(declared: str) -> None:
    """Of an exchange alone: a row of gaps is a row, and no empty slot."""

    def ask(columns: Columns) -> Any:
        model = linear_model.DPLinearRegression(
            epsilon=500.0, categories=LETTERS, **SEEDED, **ENCODINGS[declared]
        )
        return model.fit({name: columns[name] for name in "abk"}, columns["y"])

    base = {**records(), "a": [None, *records()["a"][1:-1], np.nan]}
    ours = played(partial(ask, base))
    assert ours.releases
    for name, cells in {**FIRST, **ODD, "gap": {"b": None}, "edge": {"a": 1.0, "b": 2.0}}.items():
        tape = played(partial(ask, with_first(base, **cells)), ours)
        assert differences(ours, tape) == [], name


def categories(X: Any, columns: Columns, near: str) -> Any:
    model = linear_model.DPLinearRegression(
        epsilon=2.0, categories=LETTERS, neighbours=near, **SEEDED
    )
    return model.fit({**X, "k": columns["k"]}, columns["y"])


def test_declared_categories() -> None:
    odd = {"a list": {"k": ["x"]}, "a number": {"k": 1}, "a set": {"k": {"x"}}}
    assert replayed(categories, TABLES["mapping of lists"], {**FIRST, **odd}) == []


# Persons

IDS = [f"p{i // 2}" for i in range(N)]


def persons(model: Callable[..., Any], target: str, **options: Any) -> Callable[..., Any]:
    def ask(columns: Columns, ids: Any, near: str) -> Any:
        made = model(epsilon=500.0, delta=0.1, neighbours=near, max_rows=2, **SEEDED, **options)
        return made.fit(doubles(columns), columns[target], ids)

    return ask


def mean_of_persons(columns: Columns, ids: Any, near: str) -> Any:
    return private_mean(
        columns["a"], epsilon=2.0, neighbours=near, max_rows=2, groups=ids, **SEEDED
    )


def search_of_persons(columns: Columns, ids: Any, near: str) -> Any:
    model, grid = linear_model.DPRidge(), {"alpha": [1.0, 10.0]}
    made = PrivateSearchCV(
        model, grid, trials=2, epsilon=500.0, neighbours=near, max_rows=2, **SEEDED
    )
    return made.fit(doubles(columns), columns["y"], ids)


def folds_of_persons(columns: Columns, ids: Any, near: str) -> Any:
    model, X = linear_model.DPRidge(max_rows=2), doubles(columns)
    return cross_validate(
        model, X, columns["y"], epsilon=500.0, delta=0.1, cv=3, neighbours=near, groups=ids,
        **SEEDED,
    )  # fmt: skip


PERSONS: dict[str, Callable[..., Any]] = {
    "linear": persons(linear_model.DPLinearRegression, "y"),
    "bought": persons(linear_model.DPLogisticRegression, "label", algorithm=ONE_STEP),
    "mean": mean_of_persons,
    "search": search_of_persons,
    "folds": folds_of_persons,
}

HOLDERS: dict[str, Callable[[list[Any]], Any]] = {
    "list": list,
    "objects": lambda ids: np.array([*ids, None], dtype=object)[:-1],
    "pandas": lambda ids: pandas.Series(ids, dtype="str"),
    "arrow": lambda ids: pa.array(ids, pa.string()),
    "polars": lambda ids: polars.Series(ids, dtype=polars.String),
}


@pytest.mark.parametrize("near", RELATIONS)
@pytest.mark.parametrize("asked", PERSONS)
def test_every_row_of_a_person_may_change(asked: str, near: str) -> None:
    ask, base = PERSONS[asked], records()
    theirs: dict[str, list[Any]] = {name: list(column) for name, column in base.items()}
    for name, cell in FIRST["empty" if near == "zero_out" else "large"].items():
        if name in theirs and not (cell is None and name == "label"):
            theirs[name][:2] = [cell if cell is not None else np.nan] * 2
    for new in (None,) if near == "zero_out" else ("new", None):
        for held, holder in HOLDERS.items():
            try:
                other = holder([new, new, *IDS[2:]])
            except Exception:  # noqa: BLE001, S112  this column cannot hold such an id
                continue
            if asked != "mean" and held != "list":
                continue
            ours = played(lambda holder=holder: ask(base, holder(IDS), near))
            tape = played(lambda other=other: ask(theirs, other, near), ours)
            assert differences(ours, tape, emptied=near == "zero_out") == []
            assert not ours.refused


# Files


def in_parquet(path: Path, columns: Columns) -> None:
    kinds = {"k": pa.string(), "label": pa.string()}
    pq.write_table(
        pa.table({n: pa.array(c, kinds.get(n, pa.float64())) for n, c in columns.items()}), path
    )


def in_arrow(path: Path, columns: Columns) -> None:
    kinds = {"k": pa.string(), "label": pa.string()}
    table = pa.table({n: pa.array(c, kinds.get(n, pa.float64())) for n, c in columns.items()})
    with pa.ipc.new_file(path, table.schema) as file:
        file.write_table(table)


def in_csv(path: Path, columns: Columns) -> None:
    def cell(value: Any) -> str:
        return "" if value is None else value if isinstance(value, str) else repr(float(value))

    lines = [
        ",".join(columns),
        *starmap(_line, zip(*(map(cell, c) for c in columns.values()), strict=True)),
    ]
    path.write_bytes("\n".join([*lines, ""]).encode("utf-8", "surrogateescape"))


def _line(*cells: str) -> str:
    return ",".join(cells)


def in_gzip(path: Path, columns: Columns) -> None:
    in_csv(path, columns)
    path.write_bytes(gzip.compress(path.read_bytes()))


def in_folder(path: Path, columns: Columns) -> None:
    path.mkdir(exist_ok=True)
    for start in range(0, N, 8):
        rows = {name: column[start : start + 8] for name, column in columns.items()}
        in_parquet(path / f"{start}.parquet", rows)


FILES: dict[str, Callable[[Path, Columns], None]] = {
    "t.parquet": in_parquet, "t.arrow": in_arrow, "t.csv": in_csv, "t.csv.gz": in_gzip,
    "folder": in_folder,
}  # fmt: skip

IN_CSV: dict[str, dict[str, Any]] = {
    "true": {"a": "true", "y": "True"}, "hex": {"a": "0x1f", "y": "0x1f"},
    "thousands": {"a": '"1,234"', "y": '"1,234"'}, "quote": {"a": '"1"', "k": '"x"', "label": '""'},
    "half a quote": {"a": 'a"b', "k": '"x'}, "nul": {"a": "\0", "k": "x\0"},
    "not UTF-8": {"k": "\udcff", "label": "\udcff", "a": "\udcff"}, "date": {"a": "2020-01-01"},
    "line": {"k": '"x\ny"'}, "more cells": {"k": "x,y,z"}, "spaces": {"a": "  7 ", "label": " no"},
    "whole": {"a": "9" * 400}, "words": {"a": "n/a", "b": "NULL", "y": "nan"},
}  # fmt: skip


def file_told_apart(folder: Path, name: str, rows: Mapping[str, Any]) -> list[str]:
    path, base, found = folder / name, records(), []

    def ask(target: str) -> Any:
        table = open_table(path, categories=LETTERS, drop=[t for t in TARGETS if t != target])
        if target == "label":
            return linear_model.DPLogisticRegression(
                classes=LABELS, algorithm=ONE_STEP, epsilon=9.0, **SEEDED
            ).fit(table, target)
        return linear_model.DPRidge(algorithm=ONE_STEP, epsilon=0.5, **SEEDED).fit(table, target)

    for target in TARGETS:
        FILES[name](path, base)
        ours = played(lambda target=target: ask(target))
        assert not ours.refused
        for row, cells in rows.items():
            FILES[name](path, with_first(base, **cells))
            tape = played(lambda target=target: ask(target), ours)
            texts = differences(ours, tape, excused="csv" in name)
            found += [f"{row}, {target}: {text}" for text in texts]
    return found


TARGETS = ("y", "count", "label")


@pytest.mark.parametrize("name", FILES)
def test_every_file(tmp_path: Path, name: str) -> None:
    rows = {**FIRST, **IN_CSV} if "csv" in name else FIRST
    assert file_told_apart(tmp_path, name, rows) == []


@pytest.mark.parametrize("cell", ["", "true", "0x1f", '"1,234"', '""', "abc", "1e999", "\0"])
def test_a_file_of_one_column(tmp_path: Path, cell: str) -> None:
    """A missing cell is a blank line there, and a row like any other."""
    path = tmp_path / "t.csv"

    def ask(cells: list[str]) -> Any:
        path.write_text("\n".join(["a", *cells, ""]))
        return private_mean(open_table(path, numeric=["a"]), epsilon=1.0, threshold=1.0, **SEEDED)

    base = [str(float(i)) for i in range(N)]
    ours = played(lambda: ask(base))
    for at in (0, N - 1):
        tape = played(lambda at=at: ask([*base[:at], cell, *base[at + 1 :]]), ours)
        assert differences(ours, tape, excused=True) == []
        assert not tape.refused or cell == "\0"
