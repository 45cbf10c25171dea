"""Containers of Python objects: what a cell holds decides nothing about the others."""

from __future__ import annotations

import array
import math
import pickle
import re
import sys
import warnings
from collections import UserList, deque
from datetime import date, timedelta
from decimal import Decimal
from fractions import Fraction
from itertools import product
from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

from privtail import (
    DPMean,
    DPScaler,
    Ledger,
    cross_validate,
    evaluate,
    open_table,
    private_count,
    private_covariance,
    private_mean,
    private_quantile,
    summarize,
)
from privtail.errors import InvalidInput
from privtail.linear_model import (
    DPLogisticRegression,
    DPPoissonRegressor,
    DPRidge,
    PrivateSearchCV,
)
from privtail.trusted.files.cells import distinct
from privtail.trusted.records import arrays, as_records, kinds, persons
from privtail.trusted.records.arrays import column_names, is_column, require_apart, taken
from privtail.trusted.records.arrow import decoded, joined
from privtail.trusted.records.persons import Persons
from privtail.trusted.records.targets import Labels, Numbers, canonical_label
from privtail.trusted.row_errors import OutsideModel, Predicted
from privtail.trusted.tables import table_blocks

DAY = np.timedelta64(1, "D")


class Cells:
    """A sequence that no class of Python knows."""

    def __init__(self, cells: Any) -> None:
        self._cells = list(cells)

    def __len__(self) -> int:
        return len(self._cells)

    def __getitem__(self, place: int) -> Any:
        return self._cells[place]


class Untyped(Cells):
    """A sequence of which NumPy makes an array whose type follows from the cells."""

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Any:
        return np.array(self._cells, dtype=dtype)


class Framed(Untyped):
    """A sequence that has names of columns, as a table has: of a class that nobody knows."""

    columns = ("a",)


SEQUENCES: list[Any] = [list, tuple, deque, UserList, Cells, Untyped, Framed]
OTHERS: list[list[Any]] = [
    [1.0, 2.0, 3.0],
    ["a", "b", "1"],
    [[1.0], [2.0], [3.0]],
    [[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]],
    [np.ones(2), np.zeros(2), np.ones(2)],
]
ODD: list[Any] = [
    "no",
    "",
    b"x",
    None,
    math.nan,
    10**400,
    Decimal("sNaN"),
    1j,
    [1.0],
    [],
    7.0,
    (1.0, 2.0),
    [[1.0]],
    np.ones((1, 2)),
    deque([1.0]),
    {"a"},
    range(2),
    object(),
    date(2020, 1, 1),
    np.datetime64("2020-01-01"),
    Fraction(1, 3),
]


def as_number_cells(values: Any) -> list[Any]:
    return as_records({"a": values}).rows(slice(0, 3)).X[:, 0].tolist()  # type: ignore[union-attr]


def as_label_cells(values: Any) -> list[Any]:
    labels = Labels(values, 3)
    labels.declare(("a", "b", "1", 1, 2, 3))
    return labels.codes(slice(0, 3)).tolist()


def as_category_cells(values: Any) -> list[Any]:
    table = as_records({"a": values}, {"a": ["a", "b", 1, 2, 3]})
    return table.rows(slice(0, 3)).X.tolist()  # type: ignore[union-attr]


def as_person_cells(values: Any) -> list[Any]:
    positions, _ = Persons(values, 3).seats(np.arange(3), 1)
    return [place in positions for place in range(3)]


def as_target_cells(values: Any) -> list[Any]:
    return Numbers(values, 3).rows(slice(0, 3)).tolist()


READERS = [as_number_cells, as_target_cells, as_label_cells, as_category_cells, as_person_cells]


def read_alone(
    read: Any, make: Any, cells: list[Any], odd: Any, place: int, before: Any = None
) -> None:
    """Assert that a cell changes what is read at its place, and nowhere else."""
    before = read(make(cells)) if before is None else before
    after = read(make([*cells[:place], odd, *cells[place + 1 :]]))
    for other in set(range(3)) - {place}:
        assert np.array_equal(before[other], after[other], equal_nan=True)


@pytest.mark.parametrize("make", SEQUENCES)
@pytest.mark.parametrize("read", READERS)
def test_a_cell_never_decides_how_others_are_read(read: Any, make: Any) -> None:
    """The hole was a shape: lists of one number are a column only if all cells are."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for cells in OTHERS:
            before = read(make(cells))
            for odd, place in product(ODD, range(3)):
                read_alone(read, make, cells, odd, place, before)


@pytest.mark.parametrize("index", [2, 77, -1, -2, 2**30])
@pytest.mark.parametrize(
    "listed", [["l", "r"], [1.5, 2.5], [b"l", b"r"], [timedelta(1), timedelta(2)]]
)
def test_an_index_to_no_value_is_a_missing_cell(index: int, listed: list[Any]) -> None:
    """Arrow, or NumPy, would name the index in an error, of one record in a damaged file."""
    values = pa.array(listed)
    memory = pa.py_buffer(np.array([0, 1, index, 1], np.int32).tobytes())
    kind = pa.dictionary(pa.int32(), values.type)
    cells = pa.DictionaryArray.from_buffers(kind, 4, [None, memory], values)
    honest = pa.array([listed[0], listed[1], None, listed[1]])
    for read in (arrays.as_labels, arrays.as_ids):
        assert read(cells).tolist() == read(honest).tolist()
    found = distinct(cells)
    assert [found.values[k] for k in found.positions] == arrays.as_labels(honest).tolist()
    if isinstance(listed[0], float):
        assert np.array_equal(arrays.as_numbers(cells), [1.5, 2.5, math.nan, 2.5], equal_nan=True)


@pytest.mark.parametrize("kind", [pa.string(), pa.binary()])
def test_a_value_that_occurs_often_has_room(kind: Any) -> None:
    """Arrow fails where the repeated values of a dictionary take 2 GB in its shorter types."""
    cells = pa.array(["a", "b", "a"]).cast(kind).dictionary_encode()
    other = pa.array(["c"]).cast(kind)
    for one in (decoded(cells), joined([cells, other]), joined([other, cells])):
        assert str(one.type) == f"large_{kind}"
    assert decoded(cells).to_pylist() == cells.to_pylist()


class Decoding(Cells):
    """A sequence that makes its cells when they are read, and fails at some of them."""

    def __getitem__(self, place: int) -> Any:
        cell = super().__getitem__(place)
        if isinstance(cell, bytes):
            raise TypeError(cell)
        return cell


@pytest.mark.parametrize("read", READERS)
def test_a_cell_that_a_sequence_cannot_make_is_missing(read: Any) -> None:
    """It ended the call with an error that quoted it, and other rows had no prediction."""
    for cells, place in product(OTHERS, range(3)):
        read_alone(read, Decoding, cells, b"secret", place)


def unpredicted(cells: list[Any]) -> list[bool]:
    """Which rows a model of somebody else says nothing of."""
    table = {"c": Decoding(cells), "x": np.zeros(3)}
    model = OutsideModel(lambda rows: [float(cell) for cell in rows["c"]])
    return np.isnan(Predicted(table, np.zeros(3), model)._predicted).tolist()


def test_a_cell_that_cannot_be_made_takes_no_other_row_along(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    cells = [1.0, b"secret", 3.0]
    assert unpredicted(cells) == [False, True, False]
    monkeypatch.setattr(arrays, "_cells", lambda values, places: [list(values)[i] for i in places])
    assert unpredicted([1.0, 2.0, 3.0]) == [False] * 3
    assert unpredicted(cells) == [True] * 3, "the twin is caught"
    with pytest.raises(TypeError):
        as_target_cells(Decoding(cells))


@pytest.mark.parametrize("verb", ["search", "folds"])
def test_a_cell_that_cannot_be_made_does_not_end_a_deal(verb: str) -> None:
    cells = [*range(39), b"secret"]
    X, y = {"c": Decoding(cells), "x": np.zeros(40)}, np.zeros(40)
    ledger = Ledger(epsilon=math.inf, delta=0.1)
    options = {"epsilon": 50.0, "noise": "simulated", "ledger": ledger}
    if verb == "search":
        PrivateSearchCV(DPRidge(), {"algorithm": ["auto"]}, trials=1, **options).fit(X, y)
    else:
        cross_validate(DPRidge(), X, y, cv=2, **options)
    assert len(ledger.entries()) == 1


def test_the_check_sees_the_shape_that_numpy_finds() -> None:
    """Sabotage: what `np.asarray` makes of a list depends on all cells together."""

    def found(values: Any) -> list[Any]:
        array = np.asarray(values, object)
        return [float(cell) if isinstance(cell, float) else math.nan for cell in array.reshape(3)]

    with pytest.raises(AssertionError):
        read_alone(found, list, [[1.0], [2.0], [3.0]], 3.0, 2)


def test_the_check_sees_a_type_that_follows_from_the_cells(monkeypatch: pytest.MonkeyPatch) -> None:
    """Sabotage: whoever has ``__array__`` is believed to have a type."""
    monkeypatch.setattr(arrays, "_is_typed", lambda values: hasattr(values, "__array__"))
    monkeypatch.setattr(arrays, "is_read_elsewhere", lambda values: False)
    assert as_number_cells(Untyped([True, False, True])) == [1.0, 0.0, 1.0]
    with pytest.raises(InvalidInput, match="is not numeric"):
        as_number_cells(Untyped([True, False, None]))


class Wrapped(Untyped):
    """A column of another library, which has types of its own."""

    dtype = "Int64?"

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Any:
        missing = any(cell is None for cell in self._cells)
        return np.array(self._cells, dtype=float if missing else None).astype(dtype)


@pytest.mark.parametrize("missing", [3, None])
def test_a_column_of_a_type_that_nobody_knows_is_refused_by_its_class(missing: Any) -> None:
    """The attack: a missing id made doubles of the others, and two persons became one."""
    ids = Wrapped([2**53, 2**53 + 1, missing])
    for read in (as_number_cells, as_label_cells, lambda x: Persons(x, 3)):
        with pytest.raises(InvalidInput, match="Wrapped is of a class that is not known"):
            read(ids)


def test_the_check_sees_a_type_that_nobody_knows(monkeypatch: pytest.MonkeyPatch) -> None:
    """Sabotage: whatever says that it has a type is believed."""
    monkeypatch.setattr(arrays, "is_read_elsewhere", lambda values: False)
    counts = [
        len(Persons(Wrapped([2**53, 2**53 + 1, cell]), 3).seats(np.arange(3), 1)[0])
        for cell in (3, None)
    ]
    assert counts == [3, 1], "the row of one person followed from the id of another"


class Declared(Untyped):
    """A container that says a type of NumPy, and holds another one where a cell is missing."""

    dtype = np.dtype(np.float64)


class Shapeless:
    """A container of which the array alone tells a shape and a type."""

    def __init__(self, cells: Any) -> None:
        self._cells = cells

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Any:
        return np.array(self._cells, dtype=dtype)


@pytest.mark.parametrize("make", [Declared, Shapeless])
@pytest.mark.parametrize("missing", [3.0, None])
def test_an_array_that_code_of_an_unknown_class_makes_is_refused(make: Any, missing: Any) -> None:
    for read in (as_number_cells, as_label_cells, as_target_cells, lambda x: Persons(x, 3)):
        with pytest.raises(InvalidInput, match=f"{make.__name__} is of a class that is not known"):
            read(make([1.0, 2.0, missing]))


def test_rows_to_predict_may_be_of_any_class() -> None:
    x = np.random.default_rng(0).normal(size=(50, 2))
    model = DPRidge(epsilon=9.0, noise="simulated", random_state=0).fit(x, x[:, 0])
    scaler = DPScaler(epsilon=9.0, noise="simulated", random_state=0).fit(x)
    for make in (Declared, Shapeless):
        assert np.array_equal(model.predict(make(x)), model.predict(x))
        assert np.array_equal(scaler.transform(make(x)), scaler.transform(x))


def test_the_check_sees_an_array_that_follows_from_a_cell(monkeypatch: pytest.MonkeyPatch) -> None:
    """Sabotage: a class that says a type of NumPy, or that has an array at all, is believed."""
    monkeypatch.setattr(arrays, "is_read_elsewhere", lambda values: False)
    for make in (Declared, Shapeless):
        assert as_target_cells(make([1.0, 2.0, 3.0])) == [1.0, 2.0, 3.0]
        with pytest.raises(InvalidInput, match="not numeric"):
            as_target_cells(make([1.0, 2.0, None]))


class Interface(Untyped):
    """A container that lends memory of an array whose type follows from the cells."""

    @property
    def __array_interface__(self) -> Any:
        self._lent = np.array(self._cells)
        return self._lent.__array_interface__


class Struct(Untyped):
    """The same for code of C."""

    @property
    def __array_struct__(self) -> Any:
        self._lent = np.array(self._cells)
        return self._lent.__array_struct__


class Lent(Wrapped):
    """The same by DLPack."""

    def __dlpack__(self, **_: Any) -> Any:
        return np.array(self._cells).__dlpack__()


class Raising(Untyped):
    @property
    def dtype(self) -> Any:
        raise LookupError(self._cells)


class Array(list[Any]):
    __array_interface__ = Interface.__array_interface__
    _cells = property(list)


@pytest.mark.parametrize("make", [Interface, Struct, Lent, Raising, Array])
@pytest.mark.parametrize("cell", [3, None, "a", [1.0, 2.0]])
def test_memory_that_an_unknown_class_lends_is_refused(make: Any, cell: Any) -> None:
    """The attack: an id of one person made doubles of the others, as with ``__array__`` above."""
    for read in (as_number_cells, as_label_cells, as_target_cells, lambda x: Persons(x, 3)):
        with pytest.raises(InvalidInput, match="class that is not known"):
            read(make([2**53, 2**53 + 1, cell]))


def test_the_check_sees_memory_whose_type_follows_from_a_cell(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Sabotage: memory that is lent is believed to be of one type, whatever the class."""
    monkeypatch.setattr(arrays, "is_read_elsewhere", lambda values: False)
    counts = [
        len(Persons(Interface([2**53, 2**53 + 1, cell]), 3).seats(np.arange(3), 1)[0])
        for cell in (3, 3.5)
    ]
    assert counts == [3, 2], "the row of one person followed from the id of another"


class Shifting(type):
    """A class of classes that names a place where a class is, and another one the next time."""

    places = ("builtins", "numpy")
    __qualname__ = "object"  # type: ignore[assignment]

    @property
    def __module__(cls) -> str:  # type: ignore[override]
        cls.asked = 1 - getattr(cls, "asked", 1)
        return cls.places[cls.asked]

    @property
    def __mro__(cls) -> Any:  # type: ignore[override]
        return (np.ndarray,)


def claiming(library: str) -> list[Any]:
    """Classes that say to be of a library, and whose arrays have a type that follows from a cell.

    They name no class, one of the library, one in a module that is not there, and no text at all.
    """
    names = [("Lent", library), ("ndarray", library), ("Array", f"{library}.no"), ("Array", 3)]
    made = [type(name, (Wrapped,), {"__array__": Untyped.__array__, "__module__": place})
            for name, place in names]  # fmt: skip
    return [*made, Shifting("Array", (Wrapped,), {"__array__": Untyped.__array__})]


@pytest.mark.parametrize("library", [*kinds.LIBRARIES, *arrays._LENDERS, "datetime"])
def test_a_class_is_of_a_library_that_holds_it(library: str) -> None:
    """The attack: ``__module__ = "numpy"`` was believed."""
    for make in claiming(library):
        for read in (as_number_cells, as_target_cells, lambda x: Persons(x, 3)):
            with pytest.raises(InvalidInput, match="class that is not known"):
                read(make([2**53, 2**53 + 1, 3]))
        assert persons._identity(make([1.0])) is None


def test_the_check_sees_a_library_that_is_only_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """Sabotage: a class is where it says to be."""
    for room in (arrays, kinds):
        monkeypatch.setattr(room, "home", lambda kind: str(kind.__module__).partition(".")[0])
    make = claiming("numpy")[0]
    assert as_target_cells(make([1.0, 2.0, 3.0])) == [1.0, 2.0, 3.0]
    with pytest.raises(InvalidInput, match="target"):  # a refusal that a cell decided
        as_target_cells(make([1.0, 2.0, "a"]))


def test_a_type_of_pandas_is_one_that_pandas_holds() -> None:
    """Code of another type would make doubles of all cells together."""
    claimed = type("OwnNumbers", (OwnNumbers,), {"__module__": "pandas.core.arrays.integer"})
    column = pd.Series(type("Numbers", (ForeignNumbers,), {"dtype": claimed()})([1.0, None]))
    with pytest.raises(InvalidInput, match="not numeric"):
        Numbers(column, 2)


class Derived(pd.Series):  # type: ignore[misc]
    """A column of pandas that makes its arrays itself: their type follows from a cell."""

    @property
    def _constructor(self) -> Any:
        return Derived

    def __array__(self, *_: Any, **__: Any) -> Any:
        cells = pd.Series.__array__(self)
        return cells.astype(object) if np.isnan(cells).any() else cells


class Cast(pl.Series):
    """The same of polars."""

    def cast(self, *_: Any, **__: Any) -> Any:
        return pl.Series([str(cell) for cell in self.to_list()])


class Sized(np.ndarray):
    """An array whose shape follows from a cell."""

    def __new__(cls, cells: Any) -> Any:
        return np.array(cells).view(cls)

    @property
    def shape(self) -> Any:  # type: ignore[override]
        return (3,) if np.isfinite(np.asarray(self)).all() else (3, 1, 1)


class Wide(pd.DataFrame):  # type: ignore[misc]
    """A frame whose names follow from a cell."""

    @property
    def columns(self) -> Any:  # type: ignore[override]
        odd = np.isnan(pd.DataFrame.to_numpy(self)).any()
        return pd.Index(["a", "b"] if odd else ["a"])


class Tall(pl.DataFrame):
    """A frame of polars whose height follows from a cell."""

    def __init__(self, cells: Any) -> None:
        super().__init__({"a": cells}, strict=False)

    def __len__(self) -> int:
        return 3 - int(pl.DataFrame.to_numpy(self).max() > 2)


class Extended(pa.ExtensionType):  # type: ignore[misc]
    def __init__(self) -> None:
        super().__init__(pa.float64(), "privtail.test")

    def __arrow_ext_serialize__(self) -> bytes:
        return b""

    def __arrow_ext_class__(self) -> Any:
        return Stored


class Stored(pa.ExtensionArray):  # type: ignore[misc]
    """A column of Arrow of a class of somebody else."""


DERIVED: dict[str, tuple[Any, str]] = {
    "column of pandas": (Derived, r"pandas\.Series\(x\)"),
    "column of polars": (Cast, r"polars\.Series\(x\)"),
    "array": (Sized, r"numpy\.asarray\(x\)"),
    "frame of pandas": (lambda x: Wide({"a": x}), r"pandas\.DataFrame\(x\)"),
    "frame of polars": (Tall, r"polars\.DataFrame\(x\)"),
    "column of Arrow": (
        lambda x: pa.ExtensionArray.from_storage(Extended(), pa.array(x)), r"x\.storage"
    ),
    }  # fmt: skip


@pytest.mark.parametrize("kind", DERIVED)
def test_a_class_that_is_derived_from_one_of_a_library_is_refused(kind: str) -> None:
    """The attacks: one cell decided the type, the shape, or how many columns there are."""
    make, mend = DERIVED[kind]
    x, y = np.ones((3, 2)), np.ones(3)
    calls: list[Any] = [
        as_records,
        as_number_cells,
        as_target_cells,
        lambda odd: Persons(odd, 3),
        lambda odd: DPRidge(epsilon=1.0).fit(odd, y),
        lambda odd: DPRidge(epsilon=1.0).fit(x, odd),
        lambda odd: DPLogisticRegression(epsilon=1.0, classes=[0, 1]).fit(x, odd),
        lambda odd: DPPoissonRegressor(epsilon=1.0).fit(x, y, exposure=odd),
        lambda odd: private_mean(odd, epsilon=1.0),
        lambda odd: private_quantile(odd, 0.5, epsilon=1.0),
        lambda odd: summarize(odd, epsilon=1.0),
        lambda odd: private_mean(y, epsilon=1.0, groups=odd, max_rows=1),
        lambda odd: evaluate(MODEL, odd, y, epsilon=1.0),
        lambda odd: evaluate(MODEL, x, odd, epsilon=1.0),
        lambda odd: evaluate(OutsideLinear(), odd, y, epsilon=1.0),
        lambda odd: cross_validate(DPRidge(), odd, y, epsilon=1.0, cv=2),
        lambda odd: PrivateSearchCV(DPRidge(), {"algorithm": ["auto"]}, epsilon=1.0).fit(odd, y),
    ]
    for cell in (3.0, math.nan):
        for call in calls:
            with pytest.raises(InvalidInput, match=f"is derived from .* Pass one of .*: {mend}"):
                call(make([1.0, 2.0, cell]))


class OutsideLinear:
    def predict(self, rows: Any) -> Any:
        return np.zeros(len(rows))


def test_the_check_sees_a_derived_class_that_is_believed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Sabotage: a class is of the library of whatever it is derived from."""
    origin = kinds.home

    def believed(kind: type) -> str:
        found = list(map(origin, type.mro(kind)))
        return next((name for name in found if name in kinds.LIBRARIES), found[0])

    monkeypatch.setattr(arrays, "home", believed)
    assert as_target_cells(Derived([1.0, 2.0, 3.0])) == [1.0, 2.0, 3.0]
    assert as_records(Wide({"a": [1.0, 2.0, 3.0]})).d == 1
    with pytest.raises(InvalidInput, match="not numeric"):  # refusals that a cell decided
        as_target_cells(Derived([1.0, 2.0, math.nan]))
    with pytest.raises(IndexError):
        as_records(Wide({"a": [1.0, 2.0, math.nan]}))


class Seeing(pd.CategoricalDtype):  # type: ignore[misc]
    """Categories whose type follows from a cell, which the type has seen."""

    seen = math.nan

    @property
    def categories(self) -> Any:
        return super().categories.astype(object if np.isnan(Seeing.seen) else float)


@pytest.mark.parametrize("cell", [3.0, math.nan])
def test_a_type_of_categories_that_is_derived_is_refused(
    cell: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Seeing, "seen", cell)
    column = pd.Series([1.0, 2.0, cell]).astype(Seeing([1.0, 2.0, 3.0]))
    for read in READERS:
        for one in (column, column.array):
            with pytest.raises(InvalidInput, match="derived from CategoricalDtype of pandas"):
                read(one)
    monkeypatch.setattr(arrays, "is_from", lambda *_: True)
    if math.isnan(cell):  # the twin
        with pytest.raises(InvalidInput, match="not numeric"):
            as_target_cells(column)
    else:
        assert as_target_cells(column) == [1.0, 2.0, 3.0]


@pytest.mark.parametrize("cell", [3.0, math.nan])
def test_a_class_that_only_says_to_be_of_dask_is_refused(cell: float) -> None:
    """What it announces may follow from a cell."""
    meta = pd.DataFrame({"a": [cell]}).astype(object if np.isnan(cell) else float)
    made = {"__module__": "dask.x", "_meta": meta.iloc[:0], "to_delayed": lambda *_, **__: []}
    fake = type("Frame", (), made)()
    for X, y in ((fake, np.ones(3)), (fake, fake), ({"a": fake}, fake), (np.ones((3, 1)), fake)):
        with pytest.raises(InvalidInput, match="class that is not known"):
            DPRidge(epsilon=1.0).fit(X, y)


@pytest.mark.parametrize("name", ["tocsr", "collect", "to_table", "iloc", "chunks", "schema"])
def test_a_column_may_be_called_as_a_method_is(name: str) -> None:
    """A frame that has a column of the name ``tocsr`` was taken for a sparse matrix."""
    for make in (pd.DataFrame, pl.DataFrame, pa.table, dict):
        assert as_records(make({name: [1.0, 2.0], "b": [3.0, 4.0]})).d == 2


def grouped() -> Any:
    return pd.DataFrame({"a": [1.0, 2.0, 3.0]}).groupby("a")


NO_CONTAINERS: list[Any] = [
    pa.scalar(1.0), pa.scalar("a"), pa.scalar([1.0, 2.0, 3.0]), pa.schema([("a", pa.int64())]),
    pa.field("a", pa.int64()), pa.int64(), pa.Tensor.from_numpy(np.ones(3)), grouped(),
    grouped()["a"], pd.Series([1.0, 2.0, 3.0]).rolling(2), pd.Series(["a", "b", "c"]).str,
    pd.MultiIndex.from_tuples([(1, 2)] * 3), pd.Timestamp("2020-01-01"), pl.col("a"), pl.Float64(),
    np.float64, float, pl.Float64, pd.DataFrame,
]  # fmt: skip


@pytest.mark.parametrize("one", NO_CONTAINERS, ids=lambda one: f"{type(one).__name__}")
def test_what_is_no_container_is_refused_in_a_sentence(one: Any) -> None:
    """They raised AttributeError, TypeError or ValueError of NumPy, pandas and Arrow."""
    X, y = np.ones((3, 2)), np.ones(3)
    with pytest.raises(InvalidInput, match=r"[Pp]ass |needs"):
        DPRidge().fit(one, y)
    with pytest.raises(InvalidInput, match=r"[Pp]ass |needs"):
        DPRidge().fit(X, one)
    with pytest.raises(InvalidInput, match=r"[Pp]ass |needs"):
        DPLogisticRegression(classes=[0, 1]).fit(X, one)
    for verb in (private_mean, private_count, private_quantile, private_covariance, summarize):
        with pytest.raises(InvalidInput, match=r"[Pp]ass |needs"):
            verb(one, *([0.5] if verb is private_quantile else ()), epsilon=1.0)
    with pytest.raises(InvalidInput, match=r"[Pp]ass |needs"):
        private_mean(y, epsilon=1.0, groups=one, max_rows=1)


@pytest.mark.parametrize("names", [[1, 2], [("a", "x"), ("a", "y")], [None, 1.5]])
def test_names_of_columns_that_are_no_text_are_its_text(names: list[Any]) -> None:
    """Columns of several levels raised AttributeError; so did whole numbers in a description."""
    frame = pd.DataFrame(np.ones((30, 2)))
    frame.columns = pd.Index(names)
    shown = [str(name) for name in frame.columns]
    columns = dict(zip(names, np.ones((2, 30)), strict=True))
    for data in (frame, columns):
        assert as_records(data).names == tuple(shown if data is frame else map(str, names))  # type: ignore[union-attr]
        found = summarize(data, epsilon=1.0)
        assert all(name in str(found) for name in map(str, names) if data is columns)
        with pytest.raises(InvalidInput, match="they have "):
            private_count(data, by="a", categories={"a": [1]}, epsilon=1.0)
    with pytest.raises(InvalidInput, match="Column names must be strings"):
        summarize({"a": np.ones(3), 1: np.ones(3)}, epsilon=1.0)


def test_memory_of_one_type_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    """As Python lends it, and libraries whose arrays are of one type."""
    listed = array.array("d", [1.0, 2.0])
    tensor = type("Tensor", (), {"__module__": "torch", "dtype": "float64", "__array__": lent})
    monkeypatch.setitem(sys.modules, "torch", SimpleNamespace(Tensor=tensor))
    for one in (listed, memoryview(listed), tensor()):
        assert arrays.as_numbers(one).tolist() == [1.0, 2.0]
    assert arrays.as_numbers(bytearray([1, 2])).tolist() == [1, 2]


def lent(_: Any, dtype: Any = None, copy: bool | None = None) -> Any:
    return np.array([1.0, 2.0], dtype)


class Own(pd.api.extensions.ExtensionDtype):
    """A type of another library for pandas."""

    name, type = "own", object


class Foreign(pd.api.extensions.ExtensionArray):
    """A column of it; NumPy finds its shape in the cells."""

    dtype = Own()

    def __init__(self, cells: list[Any]) -> None:
        self._cells = cells

    def __len__(self) -> int:
        return len(self._cells)

    def __getitem__(self, place: Any) -> Any:
        return self._cells[place]

    def copy(self) -> Foreign:
        return self


@pytest.mark.parametrize("cell", [(1, 2), (1,), None, 1])
def test_a_column_of_pandas_of_a_foreign_type_is_read_cell_by_cell(cell: Any) -> None:
    """Two cells of two entries made a table of them: a refusal that one of the cells decided."""
    column = pd.Series(Foreign([(1, 2), cell]), copy=False)
    for read in (arrays.as_numbers, arrays.as_labels):
        assert read(column).shape == (2,)
        assert read(column).dtype == object


class OwnNumbers(Own):
    """A type of another library that says it is one of numbers."""

    name, kind = "own numbers", "f"


class ForeignNumbers(Foreign):
    dtype = OwnNumbers()

    def isna(self) -> Any:
        return np.array([cell is None for cell in self._cells])


@pytest.mark.parametrize("cell", [2.0, None, "secret", (1, 2)])
def test_numbers_of_a_foreign_type_are_refused_by_it(
    cell: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Code of that type made doubles of all cells, and failed with an error that quoted one."""
    column = pd.Series(ForeignNumbers([1.0, cell]), copy=False)
    with pytest.raises(InvalidInput, match="not numeric"):
        Numbers(column, 2)
    monkeypatch.setattr(arrays, "is_from", lambda *_: True)
    if cell == "secret":
        with pytest.raises(ValueError, match="secret"):
            Numbers(column, 2)


@pytest.mark.parametrize("read", [as_label_cells, as_category_cells, as_person_cells])
def test_a_cell_of_an_object_column_is_read_alone(read: Any) -> None:
    def array(cells: list[Any]) -> Any:
        return np.fromiter(cells, object, len(cells))

    def series(cells: list[Any]) -> Any:
        return pd.Series(array(cells), dtype=object)

    def objects(cells: list[Any]) -> Any:
        return pl.Series(cells, dtype=pl.Object)

    for make, cells, odd, place in product((array, series, objects), OTHERS, ODD, range(3)):
        read_alone(read, make, cells, odd, place)


def test_cells_that_hold_cells_are_no_label_and_nobody() -> None:
    for cell in ([1.0], (1,), {"a": 1}, {1}, np.ones(1), deque("a"), [["a"]], bytearray(b"a")):
        assert canonical_label(cell) is None
        assert as_person_cells([cell, "b", cell]) == [False, True, False]
    for label in (1, 2.5, "a", b"a", True, Fraction(1, 2), date(2020, 1, 1)):
        assert canonical_label(label) is not None


def test_a_list_is_one_column_whatever_it_holds() -> None:
    for make, cells, odd in product(SEQUENCES, OTHERS, ODD):
        assert is_column(make([odd, *cells]))
    for cells in ([[1, 2], 3.0, 4.0], [3.0, [1, 2], 4.0], [[1, 2], [3, 4]]):
        found = private_mean(cells, epsilon=1, threshold=1.0, noise="simulated", random_state=0)
        assert isinstance(found.value, float)


@pytest.mark.parametrize("row", [[1.0, 2.0], None, [1.0], "ab", 3.0, [[1.0], [2.0]], np.ones(2)])
@pytest.mark.parametrize("place", [0, 1])
def test_a_list_of_rows_is_refused_whatever_they_hold(row: Any, place: int) -> None:
    """Only rows could say how many columns there are: with arrays the type says it."""
    rows: list[Any] = [[1.0, 2.0], [3.0, 4.0]]
    rows[place] = row
    y, texts = [1.0, 2.0], set()
    for make in SEQUENCES:
        search = PrivateSearchCV(DPRidge(), {"alpha": [1.0]})
        for model in (DPRidge(), DPScaler(), DPMean(), search):
            with pytest.raises(InvalidInput, match=r"X=numpy.array\(X, dtype=float\)") as caught:
                model.fit(make(rows), y)
            texts.add(str(caught.value))
    assert len(texts) == 1


def test_scikit_learns_manners_take_a_list_of_rows() -> None:
    x = np.random.default_rng(0).normal(size=(200, 2))
    model = DPRidge(epsilon=9.0, invalid="raise", noise="simulated", random_state=0)
    assert np.array_equal(
        model.fit(x.tolist(), x[:, 0].tolist()).coef_, model.fit(x, x[:, 0]).coef_
    )
    with pytest.raises(InvalidInput, match="rows of different lengths"):
        model.fit([[1.0], [1.0, 2.0]], [1.0, 2.0])


def test_one_cell_does_not_unlock_the_targets_of_all() -> None:
    """The attack: 999 targets counted or not, as the last was a list or a number."""
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(1000, 1)), rng.normal(5, 1, 1000)
    nested: list[Any] = [[float(v)] for v in y]
    found = [
        DPRidge(epsilon=0.5, noise="simulated", random_state=0).fit(X, target).intercept_
        for target in (nested, [*nested[:-1], float(y[-1])], y.tolist())
    ]
    assert abs(found[0] - found[1]) < 0.01  # one target counts, or none
    assert abs(found[2] - 5) < 1


# Columns of other libraries, and what their types say


Y = np.random.default_rng(0).normal(3.0, 1.0, 400)
X = np.random.default_rng(1).normal(size=(400, 2))
COLUMNS: dict[str, Any] = {
    "array": Y,
    "one column": Y[:, None],
    "series": pd.Series(Y),
    "arrow series": pd.Series(Y, dtype=pd.ArrowDtype(pa.float64())),
    "frame": pd.DataFrame({"y": Y}),
    "polars": pl.Series(Y),
    "polars frame": pl.DataFrame({"y": Y}),
    "arrow": pa.array(Y),
    "chunks": pa.chunked_array([Y[:100], Y[100:]]),
    "table": pa.table({"y": Y}),
    "batch": pa.table({"y": Y}).to_batches()[0],
    "list": Y.tolist(),
    "deque": deque(Y.tolist()),
    "buffer": memoryview(Y),
}


@pytest.mark.parametrize("name", COLUMNS)
@pytest.mark.filterwarnings("ignore:A column-vector y")
def test_every_column_is_a_target_labels_persons_and_a_mean(name: str) -> None:
    column = COLUMNS[name]
    assert np.array_equal(Numbers(column, 400).rows(slice(0, 400)), Y)
    assert Labels(column, 400).counts() == Labels(Y, 400).counts()
    mean = private_mean(column, epsilon=1, noise="simulated", random_state=0)
    assert np.ravel(mean.value) == pytest.approx([3.02], abs=0.1)
    assert isinstance(mean.value, float) == (name not in SEVERAL)
    model = DPRidge(epsilon=1, noise="simulated", random_state=0)
    assert model.fit(X, column).intercept_ == model.fit(X, Y).intercept_
    if name != "one column":
        positions, _ = Persons(column, 400).seats(np.arange(400), 1)
        assert len(positions) == 400


SEVERAL = ("one column", "frame", "polars frame", "table", "batch")
"""Containers with room for several columns, of which the means are an array."""


@pytest.mark.parametrize("kind", [pd.DataFrame, pl.DataFrame, pa.table])
def test_a_target_of_several_columns_is_refused(kind: Any) -> None:
    both = kind({"a": Y, "b": Y})
    for read in (Numbers, Labels, Persons):
        with pytest.raises(InvalidInput, match="One column is needed here, and this table has 2"):
            read(both, 400)


def test_a_query_is_to_be_run_first() -> None:
    lazy = pl.LazyFrame({"y": Y})
    for call in (
        lambda: private_mean(lazy, epsilon=1),
        lambda: DPRidge().fit(lazy, Y),
        lambda: DPRidge().fit(X, lazy),
        lambda: DPRidge(max_rows=1).fit(X, Y, lazy),
        lambda: (
            DPRidge(noise="simulated").fit(pd.DataFrame(X, columns=["a", "b"]), Y).predict(lazy)
        ),
    ):
        with pytest.raises(InvalidInput, match=r"call collect\(\) first.*open_table"):
            call()
    assert np.concatenate(list(table_blocks(lazy, ["y"], {})))[:, 0].tolist() == list(Y)
    reader = pa.RecordBatchReader.from_batches(pa.schema([]), [])
    with pytest.raises(InvalidInput, match=r"call read_all\(\) first"):
        DPRidge().fit(reader, Y)


TYPED: dict[str, Any] = {
    "array": (np.array(["a", "b"]), np.array([0, 1])),
    "list of a type": (
        array.array("u" if sys.version_info < (3, 13) else "w", "ab"),
        array.array("b", [0, 1]),
    ),
    "series": (pd.Series(["a", "b"]), pd.Series([0, 1])),
    "string": (pd.Series(["a", "b"], dtype="string"), pd.Series([0, 1], dtype="Int64")),
    "arrow series": (
        pd.Series(["a", "b"], dtype=pd.ArrowDtype(pa.string())),
        pd.Series([True, False], dtype=pd.ArrowDtype(pa.bool_())),
    ),
    "category": (pd.Series(["a", "b"], dtype="category"), pd.Series([0, 1], dtype="category")),
    "polars": (pl.Series(["a", "b"]), pl.Series([0.0, 1.0])),
    "polars category": (pl.Series(["a", "b"], dtype=pl.Categorical), pl.Series([True, False])),
    "enum": (pl.Series(["a", "b"], dtype=pl.Enum(["a", "b"])), pl.Series([0, 1], dtype=pl.UInt8)),
    "arrow": (pa.array(["a", "b"]), pa.array([0, 1])),
    "dictionary": (pa.array(["a", "b"]).dictionary_encode(), pa.array([0, 1]).dictionary_encode()),
}


@pytest.mark.parametrize("name", TYPED)
def test_declared_numbers_for_text_and_text_for_numbers_are_refused(name: str) -> None:
    """By the column's type alone, for labels and categories; messages say which of them."""
    text, numbers = TYPED[name]
    for column, right, wrong, what in (
        (text, ("a", "b"), (0, 1), "text"),
        (numbers, (0, 1), ("a", "b"), "numbers"),
    ):
        labels = Labels(column, 2)
        labels.declare(right)
        assert sorted(labels.codes(slice(0, 2)).tolist()) == [0, 1]
        with pytest.raises(
            InvalidInput, match=f"The labels are {what}, but .* no row would match"
        ) as no:
            Labels(column, 2).declare(wrong)
        assert what == "numbers" or 'classes=["0", "1"]' in str(no.value)
        assert as_records({"c": column}, {"c": right}).rows(slice(0, 2)).dense().sum() == 2
        with pytest.raises(InvalidInput, match=f"Column 'c' holds {what}, but .* categories") as no:
            as_records({"c": column}, {"c": wrong})
        assert "label" not in str(no.value)
    with pytest.raises(InvalidInput, match="Categories of column 'c' must be distinct"):
        as_records({"c": text}, {"c": ["a", "a"]})


@pytest.mark.parametrize("make", [list, deque, lambda v: np.array(v, dtype=object)])
def test_a_column_of_any_objects_is_refused_no_declaration(make: Any) -> None:
    for cells, declared in product((["a", "b"], [0, 1], ["a", 1]), (["a", "b"], [0, 1])):
        Labels(make(cells), 2).declare(tuple(declared))
        as_records({"c": make(cells)}, {"c": declared})


@pytest.mark.parametrize("frame", [pd.DataFrame, pl.DataFrame, pa.table, dict])
def test_categories_are_of_one_kind_at_fit_and_at_predict(frame: Any) -> None:
    codes = np.arange(400) % 2
    text = np.array(["0", "1"])[codes]
    for fitted, declared, other in ((codes, [0, 1], text), (text, ["0", "1"], codes)):
        model = DPRidge(epsilon=9, categories={"c": declared}, noise="simulated", random_state=0)
        with pytest.raises(InvalidInput, match="Column 'c' holds"):
            model.fit(frame({"c": other}), Y)
        model.fit(frame({"c": fitted}), Y)
        assert len(model.predict(frame({"c": fitted}))) == 400
        with pytest.raises(InvalidInput, match="Column 'c' holds"):
            model.predict(frame({"c": other}))


def test_a_file_holds_fitted_categories_in_its_own_type_or_is_refused(tmp_path: Any) -> None:
    codes = np.arange(400) % 2
    text = np.array(["0", "1"])[codes]
    pq.write_table(pa.table({"c": codes}), tmp_path / "codes.parquet")
    pq.write_table(pa.table({"c": text}), tmp_path / "text.parquet")
    (tmp_path / "either.csv").write_text("c\n" + "\n".join(text))
    model = DPRidge(epsilon=9, noise="simulated", random_state=0)
    for cells, declared, good in ((codes, [0, 1], "codes"), (text, ["0", "1"], "text")):
        model.set_params(categories={"c": declared}).fit(pd.DataFrame({"c": cells}), Y + 5 * codes)
        right = model.predict(pd.DataFrame({"c": cells}))
        assert len(set(right)) == 2
        for name in (f"{good}.parquet", "either.csv"):
            assert np.array_equal(model.predict(open_table(tmp_path / name)), right)
    assert np.array_equal(model.predict(open_table(tmp_path / "codes.parquet")), right)
    model.set_params(categories={"c": [0, 1]}).fit(pd.DataFrame({"c": codes}), Y + 5 * codes)
    with pytest.raises(InvalidInput, match="Column 'c' holds text"):
        model.predict(open_table(tmp_path / "text.parquet"))


DAYS = np.arange("2020-01-01", "2020-01-05", dtype="datetime64[D]").astype("datetime64[ms]")
TIMES: dict[str, tuple[Any, str]] = {
    "numpy days": (DAYS, 'numpy.timedelta64(1, "D")'),
    "numpy spans": (DAYS - DAYS[0], 'numpy.timedelta64(1, "s")'),
    "pandas days": (pd.Series(DAYS), "numpy.datetime64"),
    "pandas spans": (pd.Series(DAYS - DAYS[0]), "numpy.timedelta64"),
    "pandas arrow": (pd.Series(DAYS, dtype=pd.ArrowDtype(pa.timestamp("ms"))), "days since"),
    "polars days": (pl.Series(DAYS), "total_days"),
    "polars spans": (pl.Series(DAYS - DAYS[0]), "total_seconds"),
    "polars times": (pl.Series(DAYS).dt.time(), "hours since midnight"),
    "arrow days": (pa.array(DAYS), "days_between"),
    "arrow spans": (pa.array(DAYS - DAYS[0]), "int64"),
}


@pytest.mark.parametrize("name", TIMES)
def test_times_say_which_column_and_how_to_convert_it(name: str) -> None:
    column, mend = TIMES[name]
    with pytest.raises(InvalidInput, match="Column 'when' holds times") as feature:
        as_records({"when": column})
    with pytest.raises(InvalidInput, match="The target holds times") as target:
        Numbers(column, 4)
    assert mend in str(feature.value)
    assert mend in str(target.value)


def test_the_conversions_that_are_named_work() -> None:
    day = date(2000, 1, 1)
    days = (DAYS - np.datetime64("2000-01-01")) / np.timedelta64(1, "D")
    assert days.tolist() == [7305, 7306, 7307, 7308]
    assert ((pd.Series(DAYS) - np.datetime64("2000-01-01")) / np.timedelta64(1, "D") == days).all()
    assert (pl.Series(DAYS) - day).dt.total_days().to_list() == days.tolist()
    assert (
        pc.days_between(pa.scalar(day), pa.array(DAYS).cast("date32")).to_pylist() == days.tolist()
    )
    assert as_number_cells((pl.Series(DAYS[:3]) - day).dt.total_days()) == days[:3].tolist()


def test_decimals_are_numbers_where_a_type_says_so() -> None:
    cells = [Decimal("1.5"), None, Decimal(2)]
    arrow = pa.array(cells, pa.decimal128(5, 2))
    for column in (
        arrow,
        pa.array(cells, pa.decimal256(50, 2)),
        pd.Series(cells, dtype=pd.ArrowDtype(arrow.type)),
        pl.Series(cells, dtype=pl.Decimal(5, 2)),
        cells,
    ):
        assert np.array_equal(as_number_cells(column), [1.5, math.nan, 2.0], equal_nan=True)
        assert np.array_equal(as_target_cells(column), [1.5, math.nan, 2.0], equal_nan=True)
    objects = pd.Series(cells, dtype=object)
    with pytest.raises(InvalidInput, match=r"'pay' .*Decimal.*frame\[\"pay\"\].astype\(float\)"):
        as_records(pd.DataFrame({"pay": objects}))
    with pytest.raises(InvalidInput, match=r"Decimal.*y.astype\(float\)"):
        Numbers(objects, 3)
    assert as_number_cells(objects.astype(float))[0] == 1.5


def test_python_objects_name_the_conversion_of_each_kind() -> None:
    days = [date(2020, 1, 1), date(2020, 1, 2), None]
    spans = [timedelta(days=1), timedelta(hours=1), None]
    made: dict[str, Any] = {
        "astype(float)": ([True, False, None], lambda x: x.astype(float), [1, 0]),
        'astype("datetime64[s]") - numpy.datetime64("2000-01-01")': (
            days,
            lambda x: (x.astype("datetime64[s]") - np.datetime64("2000-01-01")) / DAY,
            [7305, 7306],
        ),
        'astype("timedelta64[s]") / numpy.timedelta64(1, "s")': (
            spans,
            lambda x: x.astype("timedelta64[s]") / np.timedelta64(1, "s"),
            [86400, 3600],
        ),
    }
    for expression, (cells, converted, numbers) in made.items():
        for column in (np.array(cells, dtype=object), pd.Series(cells, dtype=object)):
            with pytest.raises(InvalidInput, match=f"'pay' .*{re.escape(expression)}"):
                as_records({"pay": column})
            with pytest.raises(InvalidInput, match=re.escape(f"y.{expression}")):
                Numbers(column, 3)
            assert (np.asarray(converted(column))[:2] == numbers).all()
    with pytest.raises(InvalidInput, match=r"Decimal, bool by X.astype\(float\)"):
        as_records(np.array([days, days], dtype=object))


@pytest.mark.parametrize("make", [iter, set, lambda cells: (cell for cell in cells)])
def test_what_can_be_read_once_or_has_no_order_is_refused_by_its_type(make: Any) -> None:
    for entrust in (
        lambda: private_mean(make([1.0, 2.0]), epsilon=1.0),
        lambda: as_records(make([1.0, 2.0])),
        lambda: Numbers(make([1.0, 2.0]), 2),
        lambda: Labels(make(["a", "b"]), 2),
    ):
        with pytest.raises(InvalidInput, match=r"Make it a list, list\(x\)"):
            entrust()


def test_a_misspelt_column_of_categories_is_told_from_its_neighbour() -> None:
    frame = pd.DataFrame({"job": ["a", "b"], "age": [1.0, 2.0]})
    with pytest.raises(InvalidInput, match=r"'Jobs'\. Is 'job' meant\?"):
        as_records(frame, {"Jobs": ["a", "b"]})


@pytest.mark.parametrize("nested", [pl.List(pl.Int64), pl.Array(pl.Int64, 2)])
def test_columns_of_lists_are_refused_by_their_type(nested: Any) -> None:
    for cells in ([[1, 2], [3, 4]], [None, [3, 4]], [None, None]):
        column = pl.Series(cells, dtype=nested)
        texts = set()
        for read in (Labels, Persons, Numbers):
            with pytest.raises(InvalidInput) as caught:
                read(column, 2)
            texts.add(str(caught.value))
        with pytest.raises(InvalidInput, match="'c' is not numeric"):
            as_records({"c": column})
        assert len(texts) == 2


def test_a_scaler_turns_what_it_was_fitted_on(tmp_path: Any) -> None:
    columns = {"a": X[:, 0], "b": X[:, 1]}
    pq.write_table(pa.table(columns), tmp_path / "x.parquet")
    frames = (pd.DataFrame(columns), pl.DataFrame(columns), pa.table(columns), columns)
    found = [
        DPScaler(epsilon=9.0, noise="simulated", random_state=0).fit_transform(frame)
        for frame in (*frames, open_table(tmp_path / "x.parquet"))
    ]
    assert np.allclose(found, found[0], rtol=1e-12, atol=0)


@pytest.mark.parametrize(
    "equal",
    [
        [7, 7.0, Decimal(7), Decimal("7.00"), Decimal("0.7E+1"), Fraction(7), np.longdouble(7)],
        [0.5, Decimal("0.5"), Decimal("0.50"), Fraction(1, 2), np.longdouble(0.5), np.float32(0.5)],
        [Decimal("0.1"), Decimal("0.10"), Decimal("1E-1")],
        [10**30, Decimal("1E+30"), Decimal("1000E+27"), Fraction(10**30)],
        [0, -0.0, Decimal("-0"), Decimal("0E+9"), Decimal("0E-9"), Fraction(0)],
        [math.inf, Decimal("Infinity"), np.longdouble("inf")],
        [Decimal("1E+9999999"), Decimal("10E+9999998")],
    ],
)
def test_equal_numbers_are_one_label_and_one_person(equal: list[Any]) -> None:
    """Three spellings of one person's id let three times as many rows count."""
    forms = {repr(canonical_label(cell)) for cell in equal}
    assert len(forms) == 1
    positions, _ = Persons(equal, len(equal)).seats(np.arange(len(equal)), 1)
    assert len(positions) == 1


@pytest.mark.parametrize(
    "equal",
    [
        [1, 1 + 0j, np.complex64(1), np.clongdouble(1), complex(1, -0.0)],
        [2j, np.complex64(2j), complex(-0.0, 2), np.clongdouble(2j)],
    ],
)
def test_equal_complex_numbers_are_one_person(equal: list[Any]) -> None:
    """Four spellings of one id, by class and text, let four times as many rows count."""
    assert len(set(equal)) == 1
    positions, _ = Persons(equal, len(equal)).seats(np.arange(len(equal)), 1)
    assert len(positions) == 1


def test_different_numbers_stay_different_persons() -> None:
    ids: list[Any] = [
        Decimal("0.1"), 0.1, Fraction(1, 3), Decimal("0." + "3" * 40), Decimal("0." + "3" * 41),
        Decimal(2**53 + 1), 2**53, np.longdouble(2**53) + np.longdouble(0.5), Fraction(10**400, 3),
        1 + 2j, 2 + 1j, "(1+2j)", 1, 1j, -1j,
    ]  # fmt: skip
    positions, _ = Persons(ids, len(ids)).seats(np.arange(len(ids)), 1)
    assert len(positions) == len(ids)


@pytest.mark.filterwarnings("ignore::privtail.errors.AccuracyWarning")
def test_columns_are_named_by_the_class_of_a_table_and_never_by_a_cell() -> None:
    """An attribute of a frame may be a column, and one of a column a cell: a refusal quoted it."""
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"column_names": rng.normal(size=200), "x": rng.normal(size=200)})
    y = pd.Series(rng.normal(size=200), index=["columns", "type", *map(str, range(198))])
    assert list(frame.column_names) == list(frame["column_names"])  # as pandas has it: cells
    assert y.columns == y.iloc[0]
    assert column_names(frame) == ("column_names", "x")
    assert column_names(y) is None
    model = DPRidge(epsilon=1.0, noise="simulated", random_state=0).fit(frame, y)
    same = DPRidge(epsilon=1.0, noise="simulated", random_state=0).fit(frame.to_numpy(), [*y])
    np.testing.assert_array_equal(model.coef_, same.coef_)
    assert list(model.feature_names_in_) == list(frame.columns)
    assert len(model.predict(frame)) == 200
    assert "200 rows" in str(evaluate(model, frame, y, epsilon=1.0, noise="simulated"))
    assert "column_names" in str(summarize(frame, epsilon=1.0, noise="simulated"))


def test_a_column_is_called_by_its_name() -> None:
    for column in (pd.Series(["f"], name="sex"), pl.Series("sex", ["f"])):
        with pytest.raises(InvalidInput, match="Column 'sex' is not numeric"):
            private_mean(column, epsilon=1)
    for column in (pd.Series(["f"]), np.array(["f"]), pl.Series(["f"])):
        with pytest.raises(InvalidInput, match="Column 'x' is not numeric"):
            private_mean(column, epsilon=1)
    summary = summarize(pd.Series(Y, name="sex"), epsilon=1, noise="simulated", random_state=0)
    assert list(summary.columns) == ["sex"]


# Classes derived from those of pandas and polars, and cells at which these fail


class Frame(pd.DataFrame):
    """A data frame of somebody else."""

    @property
    def _constructor(self) -> Any:
        return Frame


class Column(pd.Series):
    """A column of somebody else."""

    @property
    def _constructor(self) -> Any:
        return Column


def no_utf8(cells: list[Any]) -> Any:
    """Text of Arrow that nobody has checked."""
    buffers = pa.array([str(cell).encode("latin-1") for cell in cells], pa.large_binary()).buffers()
    return pa.Array.from_buffers(pa.large_string(), len(cells), buffers)


def moments(cells: list[Any]) -> Any:
    """Times with an offset from UTC, which for Python begin in the year 1 and end in 9999."""
    times = pd.Series(np.array(cells, "M8[s]"))
    return times.dt.tz_localize("UTC").dt.tz_convert("Europe/Berlin")


def of_arrow(cells: list[Any]) -> Any:
    return pd.Series(pd.arrays.ArrowExtensionArray(no_utf8(cells)))


def of_polars(cells: list[Any]) -> Any:
    return pl.Series(pl.from_arrow(no_utf8(cells)))


def keys(values: Any) -> list[Any]:
    ids, places = persons.owners(values)
    return [ids[place] for place in places]


def labels_of(values: Any) -> list[Any]:
    found = Labels(values, 3)._distinct()
    return [found.values[place] for place in found.positions]


FAILING: dict[str, tuple[Any, list[Any], list[Any]]] = {
    "pandas, no UTF-8": (of_arrow, ["a", "b", "c"], ["\xff", "\xc3("]),
    "polars, no UTF-8": (of_polars, ["a", "b", "c"], ["\xff", "\xc3("]),
    "times beyond Python's": (
        moments, ["2000-01-01", "2001-01-01", "2002-01-01"], ["-20000-01-01", "290000-01-01", "NaT"]
    ),
}  # fmt: skip


def alone(name: str) -> None:
    """Assert that a cell at which the library fails changes nothing of the other cells."""
    make, cells, odd = FAILING[name]
    for read, cell in product((keys, labels_of), odd):
        assert read(make([*cells[:2], cell]))[:2] == read(make(cells))[:2]


@pytest.mark.parametrize("name", FAILING)
def test_a_cell_at_which_a_library_fails_is_missing_or_marked(name: str) -> None:
    """Whether the column could be read at all told that such a cell is there."""
    alone(name)


def test_the_check_sees_a_library_that_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    """Sabotage: no library is known, and nothing is read cell by cell."""
    honest = arrays._polars_text

    def strict(values: Any) -> list[Any]:  # as polars is, whose panic cannot be caught
        return [bytes.decode(cell).encode() for cell in honest(values) or ()]

    monkeypatch.setattr(arrays, "_polars_text", strict)
    with pytest.raises(UnicodeDecodeError):
        alone("polars, no UTF-8")
    monkeypatch.setattr(arrays, "is_read_elsewhere", lambda values: False)
    monkeypatch.setattr(arrays, "room", lambda values: "")
    with pytest.raises(InvalidInput, match="type Series cannot be read"):
        alone("pandas, no UTF-8")
    with pytest.raises(InvalidInput, match="type Series cannot be read"):
        alone("times beyond Python's")


def test_a_model_is_shown_no_categories_of_a_derived_frame(monkeypatch: pytest.MonkeyPatch) -> None:
    """The attack: a model that says how many categories there are says it of every row."""
    frame = Frame({"a": pd.Categorical(["x", "y", "x", "z"])})
    for shown in (frame, pd.DataFrame(frame), {"a": Column(frame["a"])}):
        with pytest.raises(InvalidInput, match="more than one row at a time"):
            require_apart(shown)
    monkeypatch.setattr(arrays, "room", lambda values: type(values).__module__.partition(".")[0])
    require_apart(frame)


TEXT = ["a" * 30, "a" * 30, "secret" * 6]


def shown_to_a_model(values: Any) -> bytes:
    """All memory of a row, and what is stored of it."""
    row = taken(values, np.array([0]))
    table = row.to_arrow(compat_level=pl.CompatLevel.newest())
    buffers = [b for c in table.columns for piece in c.chunks for b in piece.buffers() if b]
    return pickle.dumps(row) + b"".join(buffer.to_pybytes() for buffer in buffers)


def test_the_memory_of_a_row_holds_no_text_of_others(monkeypatch: pytest.MonkeyPatch) -> None:
    """Text of polars that is longer than twelve bytes lies in memory that rows share."""
    frame = pl.DataFrame({"t": TEXT, "b": [cell.encode() for cell in TEXT], "x": [1, 2, 3]})
    assert b"secret" not in shown_to_a_model(frame)
    assert taken(frame, np.array([2, 0])).equals(frame[[2, 0]])
    assert taken(frame["t"], np.array([2, 0])).equals(frame["t"][[2, 0]])
    monkeypatch.setattr(arrays, "_polars_rows", lambda values, ids: values[ids])
    assert b"secret" in shown_to_a_model(frame)


@pytest.mark.parametrize(
    "column",
    [
        pl.Series([[cell] for cell in TEXT]),
        pl.Series([{"t": cell} for cell in TEXT]),
        pl.Series([[cell] for cell in TEXT], dtype=pl.Array(pl.String, 1)),
        pa.array([[cell] for cell in TEXT], pa.list_view(pa.string())),
        pa.array(TEXT, pa.string_view()),
        pd.Series(pd.arrays.ArrowExtensionArray(pa.array(TEXT, pa.string_view()))),
    ],
)
def test_a_model_is_shown_no_column_whose_rows_share_memory(column: Any) -> None:
    with pytest.raises(InvalidInput, match="more than one row at a time"):
        require_apart({"c": column})


@pytest.mark.parametrize("cell", [[1.0], [2.0, 3.0], None])
def test_what_is_no_label_is_refused_by_its_type(tmp_path: Any, cell: Any) -> None:
    """Arrow failed at it, with an error of its own: at lists, and at dictionaries of views."""
    views = pa.array(["a", "b", "a" if cell else None], pa.string_view()).dictionary_encode()
    for read in (Labels, Persons, Numbers):
        with pytest.raises(InvalidInput, match=r"holds values of type|not numeric"):
            read(views, 3)
    pq.write_table(pa.table({"c": [[1.0], [2.0], cell], "x": [1.0, 2.0, 3.0]}), tmp_path / "a")
    model = DPLogisticRegression(epsilon=1.0, classes=["a", "b"], noise="simulated")
    model.fit({"x": np.arange(3.0)}, ["a", "b", "a"])
    table = open_table(tmp_path / "a")
    for call in (
        lambda: open_table(tmp_path / "a", categories={"c": ["a"]}),
        lambda: evaluate(model, table, "c", epsilon=1.0),
        lambda: model.fit(table, "c"),
    ):
        with pytest.raises(InvalidInput, match="holds values of type list<"):
            call()


NINE, ROWS = np.ones((9, 2)), {"a": np.ones(9), "k": ["x"] * 9}
OPTIONS: dict[str, Any] = {
    "by": lambda odd: private_count(ROWS, by=odd, categories=["x"], epsilon=1.0),
    "categories": lambda odd: private_count(ROWS, by="k", categories=odd, epsilon=1.0),
    "categories of k": lambda odd: summarize(ROWS, categories={"k": odd}, epsilon=1.0),
    "epsilon": lambda odd: private_count(NINE, epsilon=odd),
    "delta": lambda odd: private_mean(NINE, epsilon=1.0, delta=odd),
    "random_state": lambda odd: private_count(NINE, epsilon=1.0, random_state=odd),
    "confidence": lambda odd: private_covariance(NINE, epsilon=1.0, confidence=odd),
    "threshold": lambda odd: private_mean(NINE, epsilon=1.0, threshold=odd),
    "centre": lambda odd: private_mean(NINE, epsilon=1.0, threshold=1.0, centre=odd),
    "blocks": lambda odd: private_mean(NINE, epsilon=1.0, blocks=odd),
    "cv": lambda odd: cross_validate(DPRidge(), NINE, NINE[:, 0], epsilon=1.0, cv=odd),
    "y": lambda odd: evaluate(MODEL, NINE, odd, epsilon=1.0),
    "power": lambda odd: evaluate(MODEL, NINE, NINE[:, 0], epsilon=1.0, power=odd),
    "quantile": lambda odd: evaluate(MODEL, NINE, NINE[:, 0], epsilon=1.0, quantile=odd),
    "path": lambda odd: Ledger(odd, epsilon=1.0, delta=0.0),
}
MODEL = DPRidge(epsilon=50.0, noise="simulated", random_state=0).fit(NINE, NINE[:, 0])
ODD_OPTIONS: list[Any] = [
    -1, 1.5, math.nan, 10**400, object(), len, float, np.timedelta64(1, "D"), 1j, pa.scalar(1), ...,
]  # fmt: skip


FITTING: dict[str, list[Any]] = {
    "epsilon": [1.5], "threshold": [1.5], "power": [1.5],
    "centre": [-1, 1.5, np.timedelta64(1, "D"), pa.scalar(1)],
    "random_state": [10**400],
}  # fmt: skip


@pytest.mark.parametrize("option", OPTIONS)
def test_an_option_that_is_none_is_refused_in_a_sentence(option: str) -> None:
    """They raised TypeError of Python, or of NumPy, and one of them after a charge."""
    for odd in ODD_OPTIONS:
        if repr(odd) not in map(repr, FITTING.get(option, [])):
            with pytest.raises(InvalidInput, match=r"must|needs|Group by|text|at most 9|9 at most"):
                OPTIONS[option](odd)
