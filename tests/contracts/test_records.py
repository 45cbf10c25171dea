"""Records: every container gives the same rows, shows nothing, and refuses only what is public."""

from __future__ import annotations

import copy
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

from privtail.errors import InvalidInput, NotReleased
from privtail.trusted.records import Dense, Sparse, Table, as_records
from privtail.trusted.records.targets import Labels, Numbers

pandas = pytest.importorskip("pandas")
SECRET = 87654.321


def plain(X: Any, ids: Any = slice(None), **options: Any) -> np.ndarray:
    """The rows of these ids as the kernels see them."""
    records = as_records(X, **options)
    ids = slice(0, records.n) if ids == slice(None) else ids
    return records.rows(ids).transformed(np.ones(records.d), np.zeros(records.d))


MATRIX = np.array([[1.5, 0.0, -2.0], [0.0, 0.0, 0.0], [4.0, 5.0, 6.0], [SECRET, -1.0, 0.25]])

CONTAINERS = {
    "array": MATRIX,
    "fortran": np.asfortranarray(MATRIX),
    "csr_matrix": sp.csr_matrix(MATRIX),
    "csr_array": sp.csr_array(MATRIX),
    "frame": pandas.DataFrame(MATRIX, columns=["a", "b", "c"]),
    "mapping": {"a": MATRIX[:, 0], "b": MATRIX[:, 1], "c": MATRIX[:, 2]},
    "lists": {"a": MATRIX[:, 0].tolist(), "b": MATRIX[:, 1].tolist(), "c": MATRIX[:, 2].tolist()},
}


@pytest.mark.parametrize("name", CONTAINERS)
def test_every_container_gives_the_same_rows(name: str) -> None:
    records = as_records(CONTAINERS[name])
    assert (records.n, records.d) == (4, 3)
    assert np.array_equal(plain(CONTAINERS[name]), MATRIX)
    ids = np.array([3, 0])
    rows = records.rows(ids)
    assert len(rows) == 2
    assert np.array_equal(rows.transformed(np.ones(3), np.zeros(3)), MATRIX[[3, 0]])
    assert len(records.rows(slice(1, 3))) == 2
    assert len(records.rows(np.array([], dtype=np.int64))) == 0


@pytest.mark.parametrize("name", CONTAINERS)
def test_records_show_and_pickle_nothing(name: str) -> None:
    records = as_records(CONTAINERS[name])
    for text in (repr(records), str(records), f"{records}"):
        assert "87654" not in text
    for out in (pickle.dumps, copy.copy, copy.deepcopy):
        with pytest.raises(NotReleased):
            out(records)


def test_targets_show_and_pickle_nothing() -> None:
    for targets in (Numbers([SECRET, 1.0], 2), Labels(["secret", "b"], 2)):
        assert "87654" not in repr(targets)
        assert "secret" not in repr(targets)
        for out in (pickle.dumps, copy.copy, copy.deepcopy):
            with pytest.raises(NotReleased):
                out(targets)


def test_nothing_is_copied_as_a_whole() -> None:
    for container in (MATRIX, np.asfortranarray(MATRIX), MATRIX.astype(np.float32)):
        assert as_records(container)._X is container  # type: ignore[union-attr]
    sparse = sp.csr_matrix(MATRIX)
    assert as_records(sparse)._X is sparse  # type: ignore[union-attr]


def test_no_block_of_rows_is_a_view(tmp_path: Path) -> None:
    """Else somebody could write to a row between its length and its sum."""
    X, y = np.ones((4, 3)), np.ones(4)
    mapped = np.memmap(tmp_path / "x.bin", dtype=np.float64, mode="w+", shape=X.shape)
    tables: tuple[Any, ...] = (X, np.asfortranarray(X), X[::2], X[:, :2], mapped, {"a": X[:, 0]})
    for table in tables:
        block: Any = as_records(table).rows(slice(0, 2))
        held = table["a"] if isinstance(table, dict) else table
        assert not np.may_share_memory(block.X, held)
    for target in (y, X[:, 0], mapped[:, 0]):
        assert not np.may_share_memory(Numbers(target, 4).rows(slice(0, 2)), target)


def test_the_owner_s_matrix_is_left_alone() -> None:
    X = sp.csr_matrix((np.ones(4), np.array([2, 0, 0, 1]), np.array([0, 3, 4])), shape=(2, 3))
    before = (X.data.copy(), X.indices.copy(), X.indptr.copy())
    assert np.array_equal(plain(X), [[2.0, 0.0, 1.0], [0.0, 1.0, 0.0]])
    for old, new in zip(before, (X.data, X.indices, X.indptr), strict=True):
        assert np.array_equal(old, new)


@settings(max_examples=60)
@given(st.data())
def test_sparse_rows_are_canonical(data: Any) -> None:
    """Duplicates summed, columns ascending, whatever flags the owner has set."""
    n, d = data.draw(st.integers(1, 5)), data.draw(st.integers(1, 4))
    lengths = data.draw(st.lists(st.integers(0, 30), min_size=n, max_size=n))
    total = sum(lengths)
    indices = data.draw(st.lists(st.integers(0, d - 1), min_size=total, max_size=total))
    values = data.draw(st.lists(st.integers(-9, 9), min_size=total, max_size=total))
    X = sp.csr_matrix(
        (np.array(values, float), np.array(indices, np.int64), np.cumsum([0, *lengths])),
        shape=(n, d),
    )
    expected = np.zeros((n, d))
    np.add.at(expected, (np.repeat(np.arange(n), lengths), indices), values)
    if data.draw(st.booleans()):
        X.has_canonical_format = True
    indptr, columns, entries = as_records(X).rows(slice(0, n)).parts  # type: ignore[union-attr]
    for i in range(n):
        row = columns[indptr[i] : indptr[i + 1]]
        assert (np.diff(row) > 0).all()
        dense = np.zeros(d)
        dense[row] = entries[indptr[i] : indptr[i + 1]]
        assert np.array_equal(dense, expected[i])


@pytest.mark.parametrize("index", [3, -1, 2**31 - 1])
def test_column_indices_outside_the_matrix_are_refused(index: int) -> None:
    X = sp.csr_matrix(MATRIX)
    X.indices[0] = index
    with pytest.raises((InvalidInput, ValueError, IndexError)):
        as_records(X).rows(slice(0, 4))


REFUSED = {
    "one dimension": lambda: Dense(np.zeros(3)),
    "three dimensions": lambda: Dense(np.zeros((2, 2, 2))),
    "text": lambda: Dense(np.array([["a", "b"]])),
    "objects": lambda: Dense(np.array([[None, SECRET]], dtype=object)),
    "complex": lambda: Dense(np.array([[1j]])),
    "csc": lambda: as_records(sp.csc_matrix(MATRIX)),
    "coo": lambda: Sparse(sp.coo_matrix(MATRIX)),
    "sparse complex": lambda: Sparse(sp.csr_matrix(MATRIX * 1j)),
    "text column": lambda: Table({"a": np.array(["x", "y"])}, {}),
    "columns of two lengths": lambda: Table({"a": [1, 2], "b": [1]}, {}),
    "no columns": lambda: Table({}, {}),
    "categories of a missing column": lambda: Table({"a": [1, 2]}, {"b": ["x"]}),
    "categories twice": lambda: Table({"a": ["x", "y"]}, {"a": ["x", "x"]}),
    "missing as a category": lambda: Table({"a": ["x", "y"]}, {"a": ["x", None]}),
    "short target": lambda: Numbers([1.0, 2.0], 3),
    "wide target": lambda: Numbers(np.zeros((3, 2)), 3),
    "text target": lambda: Numbers(np.array(["87654.321", "b"]), 2),
}


@pytest.mark.parametrize("name", REFUSED)
def test_refusals_quote_no_cell(name: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        REFUSED[name]()
    assert "87654" not in str(caught.value)


def test_categories_become_indicator_columns() -> None:
    table = Table({"x": [1.0, 2.0, np.nan], "c": ["b", "zzz", None]}, {"c": ["a", "b"]})
    assert table.names == ("x", "c=a", "c=b")
    found = plain({"x": [1.0, 2.0, np.nan], "c": ["b", "zzz", None]}, categories={"c": ["a", "b"]})
    assert np.array_equal(found, [[1, 0, 1], [2, 0, 0], [np.nan, 0, 0]], equal_nan=True)


@pytest.mark.parametrize("kind", ["Int64", "Float64", "boolean"])
def test_a_missing_cell_is_no_error(kind: str) -> None:
    """Nullable columns keep one type, so that a missing cell neither raises nor warns."""
    whole, holed = (
        pandas.DataFrame({"a": pandas.array([1, last], dtype=kind)}) for last in (0, None)
    )
    assert np.array_equal(plain(whole), [[1.0], [0.0]])
    assert np.array_equal(plain(holed), [[1.0], [np.nan]], equal_nan=True)


@pytest.mark.parametrize("kind", ["str", "object", "category", "string"])
def test_missing_labels_and_categories_of_a_frame(kind: str) -> None:
    """None, NaN and pandas' own missing value alike: no label, no error."""
    column = pandas.Series(["a", None, "b"], dtype=kind)
    labels = Labels(column, 3)
    labels.declare(("a", "b"))
    assert np.array_equal(labels.rows(slice(0, 3)), [0.0, np.nan, 1.0], equal_nan=True)
    found = plain(pandas.DataFrame({"c": column}), categories={"c": ["a", "b"]})
    assert np.array_equal(found, [[1, 0], [0, 0], [0, 1]])


@pytest.mark.parametrize(
    ("y", "classes", "codes"),
    [
        (["a", "b", "c"], ("b", "a"), [1, 0, np.nan]),
        ([0, 1, 2], (0, 1), [0, 1, np.nan]),
        ([0.0, -0.0, np.nan], (0, 1), [0, 0, np.nan]),
        ([True, False, True], (False, True), [1, 0, 1]),
        ([1, 0, 1], (False, True), [1, 0, 1]),
        (np.array(["1", 1, None], dtype=object), ("1", 1), [0, 1, np.nan]),
    ],
)
def test_labels_are_coded_by_the_declared_classes(y: Any, classes: Any, codes: Any) -> None:
    labels = Labels(y, 3)
    labels.declare(classes)
    assert np.array_equal(labels.rows(slice(0, 3)), codes, equal_nan=True)
    assert np.array_equal(labels.rows(np.array([2, 0])), [codes[2], codes[0]], equal_nan=True)


def test_labels_need_classes_before_they_have_codes() -> None:
    with pytest.raises(InvalidInput, match="Declare"):
        Labels(["a"], 1).rows(slice(0, 1))


@pytest.mark.parametrize(("n", "d"), [(1, 1), (5, 3), (8, 8), (17, 9), (100, 16), (65, 50)])
def test_blocks_of_columns_are_the_rows(n: int, d: int) -> None:
    """Turned eight by eight, with rests on both sides."""
    X = np.random.default_rng(n).standard_normal((n, d))
    for place, odd in enumerate([np.nan, np.inf, 5e-324, -0.0][: X.size]):
        X.flat[place * 7 % X.size] = odd
    columns = {f"x{j}": X[:, j] for j in range(d)}
    for container in (X, np.asfortranarray(X), np.repeat(X, 2, axis=1)[:, ::2], columns):
        records = as_records(container)
        for start, stop in ((0, n), (n // 3, n - n // 4), (n // 2, n // 2), (n // 2, n + 9)):
            ids = slice(start, stop)
            block = records.rows(ids)
            assert block.X.tobytes() == np.ascontiguousarray(X[ids]).tobytes()
        some = np.arange(0, n, 2)
        assert records.rows(some).X.tobytes() == X[some].tobytes()
