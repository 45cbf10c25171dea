"""One column in every container: what a cell holds shows in its own contribution alone."""

from __future__ import annotations

import array
import ctypes
import datetime as dt
import enum
import warnings
from collections import UserList, deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from replays import Tape, differences, played

from privtail import cross_validate, private_mean
from privtail.algorithms import ProximalGradient
from privtail.linear_model import DPLogisticRegression, DPPoissonRegressor, DPRidge
from privtail.trusted.exactly import is_one_of

pandas = pytest.importorskip("pandas")
polars = pytest.importorskip("polars")
pa = pytest.importorskip("pyarrow")

N = 10
RNG = np.random.default_rng(36)
X, Y = RNG.normal(size=(N, 2)), RNG.normal(size=N)
SEEDED: dict[str, Any] = {"noise": "simulated", "random_state": 0}
ONE_STEP = ProximalGradient(steps=2, step_size=0.1, threshold=1.0)

# Cells


class Hostile:
    """A cell that nobody can look at."""

    def fail(self, *_: Any) -> Any:
        raise RuntimeError("a secret")

    __float__ = __int__ = __index__ = __bool__ = __str__ = __repr__ = __len__ = __iter__ = fail
    __eq__ = __ne__ = __lt__ = __hash__ = __array__ = __getitem__ = __abs__ = __complex__ = fail


class Number(float):
    """A number that is none when it is asked."""

    __float__ = __eq__ = __ne__ = __hash__ = Hostile.fail  # type: ignore[assignment]


class Whole(int):
    __float__ = __eq__ = __ne__ = __hash__ = __int__ = Hostile.fail  # type: ignore[assignment]


class Text(str):
    __slots__ = ()
    __eq__ = __ne__ = __hash__ = __str__ = Hostile.fail  # type: ignore[assignment]


class Leaves:
    """A cell that ends the program when somebody looks at it."""

    def leave(self, *_: Any) -> Any:
        raise SystemExit(2)

    __float__ = __str__ = __repr__ = __len__ = __eq__ = __ne__ = __hash__ = leave


class Interrupts(float):
    def __float__(self) -> float:
        raise KeyboardInterrupt

    __eq__ = __ne__ = __hash__ = __float__  # type: ignore[assignment]


class Warns(float):
    """A number that warns, and whose conversions are of its own class, of which Python warns."""

    def __float__(self) -> float:
        warnings.warn("a secret", stacklevel=2)
        return Warns(2.0)

    def __str__(self) -> str:
        warnings.warn("a secret", stacklevel=2)
        return "a"

    def __int__(self) -> int:
        return Whole(2)


class Shaped:
    """What NumPy takes for an array of its own."""

    shape, dtype, ndim = (3,), np.dtype(float), 1

    def __array__(self, *_: Any, **__: Any) -> Any:
        return np.arange(3.0)

    def __len__(self) -> int:
        return 3

    def __getitem__(self, k: int) -> float:
        return (0.0, 1.0, 2.0)[k]


class Classless:
    """What raises when its class is asked for, as a proxy of something that is gone does."""

    @property
    def __class__(self) -> Any:
        raise RuntimeError("a secret")

    @__class__.setter
    def __class__(self, _: Any) -> None:
        raise RuntimeError("a secret")


class Unhashable(type):
    """What raises when a class is put into a set."""

    __eq__ = __hash__ = Hostile.fail  # type: ignore[assignment]


class OfUnhashable(metaclass=Unhashable):
    pass


class AsText(type):
    """A class that says it is that of text."""

    def __eq__(cls, _: object) -> bool:
        return True

    def __hash__(cls) -> int:
        return hash(str)


class OfAsText(metaclass=AsText):
    __eq__ = __hash__ = Hostile.fail  # type: ignore[assignment]


class Colour(enum.StrEnum):
    RED = "red"


ENDLESS: list[Any] = [1.0]
ENDLESS.append(ENDLESS)

CELLS: dict[str, Any] = {
    "large": 1e308, "negative": -1e308, "subnormal": 5e-324, "nan": float("nan"),
    "infinite": float("-inf"), "minus zero": -0.0, "none": None, "text": "abc", "a": "a", "b": "b",
    "true": "true", "empty text": "", "numeral": " 7 ", "hex": "0x1f", "comma": "1,234",
    "wide digit": "\uff11", "surrogate": "\ud800", "nul": "a\0b", "long": "9" * 5_000,
    "bytes": b"7", "odd bytes": b"\xff\xfe", "list": [1.0], "two": [1.0, 2.0], "nested": [[1.0]],
    "no cells": [], "tuple": (1.0,), "dict": {"a": 1.0}, "set": {1.0}, "range": range(2),
    "hostile": Hostile(), "hostile number": Number(2.0), "hostile int": Whole(2),
    "hostile text": Text("a"), "leaves": Leaves(), "interrupts": Interrupts(2.0),
    "warns": Warns(2.0), "warns of a fraction": Warns(2.5), "shaped": Shaped(),
    "classless": Classless(), "unhashable class": OfUnhashable(), "class as text": OfAsText(),
    "decimal": Decimal("2.5"),
    "signalling": Decimal("sNaN"), "fraction": Fraction(1, 3), "complex": 1 + 2j,
    "complex of numpy": np.complex128(1 + 2j), "date": dt.date(2020, 1, 1),
    "time": dt.datetime(2020, 1, 1, tzinfo=dt.UTC), "span": dt.timedelta(1), "bool": True,
    "bool of numpy": np.False_, "huge": 10**400, "beyond 64 bits": 2**64, "beyond 53": 2**53 + 1,
    "one cell": np.ones(1), "no dimension": np.array(3.0), "array": np.ones((2, 2)),
    "objects": np.array([None, "a"], dtype=object), "nat": pandas.NaT, "na": pandas.NA,
    "datetime64": np.datetime64("NaT"), "half": np.float16(7),
    "long double": np.longdouble("1e4000"),
    "series": pandas.Series([1.0]), "polars": polars.Series([1.0]), "arrow": pa.scalar(1.0),
    "arrow null": pa.scalar(None), "enum": Colour.RED, "generator": (x for x in ()), "type": float,
    "function": len, "ellipsis": ..., "itself": ENDLESS,
}  # fmt: skip

PLAIN = (float, int, str, bytes, bool, Decimal, type(None))
"""Types of the cells that columns with a type are offered."""

# Containers


def objects(cells: Iterable[Any]) -> Any:
    """An array of Python objects, filled one by one: NumPy looks at none of them."""
    listed = list(cells)
    out = np.empty(len(listed), dtype=object)
    for position, cell in enumerate(listed):
        out[position] = cell
    return out


class Sequence:
    """A sequence of somebody else."""

    def __init__(self, cells: Iterable[Any]) -> None:
        self._cells = list(cells)

    def __len__(self) -> int:
        return len(self._cells)

    def __getitem__(self, k: Any) -> Any:
        return self._cells[k]


def arrow(kind: Any) -> Callable[[Any], Any]:
    return lambda cells: pa.array(list(cells), type=kind)


def fields(cells: Iterable[Any]) -> Any:
    return np.array([(cell, 0.0) for cell in cells], dtype=[("c", float), ("x", float)])


def series(dtype: Any) -> Callable[[Any], Any]:
    return lambda cells: pandas.Series(objects(cells)).astype(dtype)


def of_polars(dtype: Any, *holds: type) -> Callable[[Any], Any]:
    """A column of polars, which panics over cells of some other types."""

    def make(cells: Any) -> Any:
        if holds and not all(isinstance(cell, (*holds, type(None))) for cell in cells):
            raise TypeError
        return polars.Series("c", list(cells), dtype=dtype)

    return make


CATEGORIES = pandas.CategoricalDtype(["a", "b", "c"])

COLUMNS: dict[str, Callable[[Any], Any]] = {
    "list": list,
    "tuple": tuple,
    "deque": deque,
    "user list": UserList,
    "sequence": Sequence,
    "array of objects": objects,
    "column of objects": lambda cells: objects(cells).reshape(-1, 1),
    "float64": lambda cells: np.array(list(cells), dtype=np.float64),
    "column of float64": lambda cells: np.array(list(cells), dtype=np.float64).reshape(-1, 1),
    "float32": lambda cells: np.array(list(cells), dtype=np.float32),
    "int64": lambda cells: np.array(list(cells), dtype=np.int64),
    "bool": lambda cells: np.array([{False: False, True: True}[c] for c in cells]),
    "text of numpy": lambda cells: np.array(list(cells), dtype="U8"),
    "bytes of numpy": lambda cells: np.array(list(cells), dtype="S8"),
    "big-endian": lambda cells: np.array(list(cells), dtype=">f8"),
    "field of records": lambda cells: fields(cells)["c"],
    "records": fields,
    "array": lambda cells: array.array("d", cells),
    "memory": lambda cells: memoryview(array.array("d", cells)),
    "memory of ctypes": lambda cells: (ctypes.c_double * N)(*cells),
    "masked": lambda cells: np.ma.masked_invalid(np.array(list(cells), dtype=np.float64)),
    "pandas": lambda cells: pandas.Series(np.array(list(cells), dtype=np.float64)),
    "pandas objects": lambda cells: pandas.Series(objects(cells), dtype=object),
    "pandas frame": lambda cells: pandas.DataFrame({"c": np.array(list(cells), np.float64)}),
    "pandas frame of objects": lambda cells: pandas.DataFrame({"c": objects(cells)}, dtype=object),
    "pandas index": lambda cells: pandas.Index(objects(cells), dtype=object),
    "pandas Float64": series("Float64"),
    "pandas Int64": series("Int64"),
    "pandas boolean": series("boolean"),
    "pandas sparse": lambda cells: pandas.Series(
        pandas.arrays.SparseArray(np.array(list(cells), np.float64), fill_value=0.0)
    ),
    "pandas string": series("string"),
    "pandas str": series("str"),
    "pandas category": series(CATEGORIES),
    "pandas category of numbers": series(pandas.CategoricalDtype([0.0, 1.0, 2.0, 3.0])),
    "pandas category of whole numbers": series(pandas.CategoricalDtype([0, 1, 2, 3])),
    "pandas category of truths": series(pandas.CategoricalDtype([False, True])),
    "array of pandas": lambda cells: pandas.array(objects(cells), dtype="boolean"),
    "pandas index of truths": lambda cells: pandas.Index(objects(cells), dtype="boolean"),
    "pandas double[pyarrow]": series("double[pyarrow]"),
    "pandas int64[pyarrow]": series("int64[pyarrow]"),
    "pandas string[pyarrow]": series(pandas.ArrowDtype(pa.string())),
    "polars Float64": of_polars(polars.Float64, float, int),
    "polars Int64": of_polars(polars.Int64, int),
    "polars Decimal": of_polars(polars.Decimal(38, 3), Decimal, int),
    "polars Boolean": of_polars(polars.Boolean, bool),
    "polars String": of_polars(polars.String, str),
    "polars Categorical": of_polars(polars.Categorical, str),
    "polars Enum": of_polars(polars.Enum(["a", "b", "c"]), str),
    "polars Object": of_polars(polars.Object),
    "polars List": of_polars(polars.List(polars.Float64), list),
    "polars frame": lambda cells: of_polars(polars.Float64, float, int)(cells).to_frame(),
    "arrow double": arrow(pa.float64()),
    "arrow chunks": lambda cells: pa.chunked_array([[c] for c in cells], type=pa.float64()),
    "arrow int64": arrow(pa.int64()),
    "arrow bool": arrow(pa.bool_()),
    "arrow string": arrow(pa.string()),
    "arrow view": arrow(pa.string_view()),
    "arrow binary": arrow(pa.binary()),
    "arrow decimal": arrow(pa.decimal128(20, 3)),
    "arrow dictionary": lambda cells: pa.array(list(cells), pa.string()).dictionary_encode(),
    "arrow list": arrow(pa.list_(pa.float64())),
    "arrow table": lambda cells: pa.table({"c": pa.array(list(cells), pa.float64())}),
}

UNTYPED = {
    "list", "tuple", "deque", "user list", "sequence", "array of objects", "column of objects",
    "pandas objects", "pandas frame of objects", "pandas index", "polars Object",
}  # fmt: skip
"""Containers in which a cell may be anything."""

NUMBERS = [float(k % 4) for k in range(N)]
BASES: dict[str, list[Any]] = {
    "numbers": NUMBERS,
    "whole numbers": [k % 4 for k in range(N)],
    "truths": [k % 2 == 0 for k in range(N)],
    "text": ["ab"[k % 2] for k in range(N)],
    "lists of one": [[value] for value in NUMBERS],
    "rows of two": [[value, 1.0] for value in NUMBERS],
    "arrays of one": [np.array([value]) for value in NUMBERS],
}
"""What the records hold beside an odd cell."""

# Questions


def ridge(**options: Any) -> DPRidge:
    return DPRidge(epsilon=0.5, algorithm=ONE_STEP, **SEEDED, **options)


def classifier(**options: Any) -> DPLogisticRegression:
    return DPLogisticRegression(epsilon=500.0, delta=0.1, algorithm=ONE_STEP, **SEEDED, **options)


LETTERS = {"c": ["a", "b"]}
QUESTIONS: dict[str, Callable[[Any, str], Any]] = {
    "mean": lambda c, near: private_mean(
        c, epsilon=1.0, threshold=1.0, neighbours=near, **SEEDED
    ),
    "target": lambda c, near: ridge(neighbours=near).fit(X, c),
    "feature": lambda c, near: ridge(neighbours=near).fit({"c": c, "x": X[:, 0]}, Y),
    "records": lambda c, near: ridge(neighbours=near).fit(c, Y),
    "category": lambda c, near: ridge(neighbours=near, categories=LETTERS).fit(
        {"c": c, "x": X[:, 0]}, Y
    ),
    "numbered category": lambda c, near: ridge(neighbours=near, categories={"c": [0, 1, 2]}).fit(
        {"c": c, "x": X[:, 0]}, Y
    ),
    "labels": lambda c, near: classifier(neighbours=near, classes=["a", "b"]).fit(X, c),
    "numbered labels": lambda c, near: classifier(neighbours=near, classes=[0, 1, 2]).fit(X, c),
    "bought labels": lambda c, near: classifier(neighbours=near).fit(X, c),
    "exposure": lambda c, near: DPPoissonRegressor(
        epsilon=500.0, neighbours=near, **SEEDED
    ).fit(X, np.abs(Y).round(), exposure=c),
    "counted": lambda c, near: ridge(neighbours=near, count_invalid=0.1).fit(X, c),
    "parts": lambda c, near: cross_validate(
        ridge(), {"c": c, "x": X[:, 0]}, Y, epsilon=500.0, delta=0.1, cv=2, neighbours=near,
        **SEEDED,
    ),
}  # fmt: skip


@dataclass(frozen=True)
class Kind:
    """The public side of a container."""

    type: type
    length: int
    shape: Any
    element: str


def kind(container: Any) -> Kind:
    element = getattr(container, "dtypes", getattr(container, "dtype", None))
    element = getattr(container, "schema", getattr(container, "type", element))
    return Kind(type(container), len(container), getattr(container, "shape", None), str(element))


def built(make: Callable[[Any], Any], cells: list[Any]) -> Any:
    """The container, or None where it cannot hold these cells."""
    try:
        return make(cells)
    except Exception:  # noqa: BLE001  each library refuses in its own way
        return None


def offered(column: str, base: str) -> bool:
    """Whether a column may hold the cells of a base; polars panics over some others."""
    return column in UNTYPED or all(type(cell) in PLAIN for cell in BASES[base])


def neighbours(column: str, base: list[Any], cells: Iterable[str]) -> dict[str, Any]:
    """Containers of one public kind whose first cell is another.

    The first, since what guesses a type from a cell looks there.
    """
    make = COLUMNS[column]
    first = kind(make(base))
    out = {}
    for name in cells:
        cell = CELLS[name]
        if column not in UNTYPED and not is_one_of(cell, PLAIN):
            continue
        other = built(make, [cell, *base[1:]])
        if other is not None and kind(other) == first:
            out[name] = other
    return out


def told_apart(question: str, column: str, base: str, cells: Iterable[str]) -> list[str]:
    """What the question shows of one cell of the column, under either relation."""
    make, ask = COLUMNS[column], QUESTIONS[question]
    ours = built(make, BASES[base]) if offered(column, base) else None
    if ours is None:
        return []
    others = neighbours(column, BASES[base], cells)
    if not others:
        return []
    found = []
    tape = played(lambda: ask(ours, "replace_one"))
    for name, other in others.items():
        replayed = played(lambda other=other: ask(other, "replace_one"), tape)
        found += [f"{name}: {text}" for text in differences(tape, replayed)]
    if "none" in others and question != "exposure":  # whose row still has features
        empty = played(lambda: ask(others["none"], "zero_out"))
        filled = {"base": ours, **{k: v for k, v in others.items() if k in ("large", "a", "list")}}
        for name, other in filled.items():
            replayed = played(lambda other=other: ask(other, "zero_out"), empty)
            found += [f"{name} emptied: {t}" for t in differences(empty, replayed, emptied=True)]
    return found


@pytest.mark.slow
@pytest.mark.parametrize("column", COLUMNS)
@pytest.mark.parametrize("base", ["numbers", "text", "rows of two"])
def test_every_question_of_every_column(column: str, base: str) -> None:
    for question in QUESTIONS:
        assert told_apart(question, column, base, CELLS) == []


@pytest.mark.parametrize("question", [q for q in QUESTIONS if "numbered" not in q and q != "parts"])
def test_every_cell_of_a_list(question: str, half: int) -> None:
    """Among lists of one, where a shape of all of them would be that of a column."""
    some = list(CELLS)[(list(QUESTIONS).index(question) + half) % 2 :: 2]
    assert told_apart(question, "list", "lists of one", some) == []


@pytest.mark.parametrize("question", ["category", "labels", "bought labels"])
@pytest.mark.parametrize("dtype", ["<U1", ">U1", "<U1,f4"])
def test_what_is_no_character(question: str, dtype: str) -> None:
    """NumPy holds it in a column of text or a record, and raises when somebody looks at it."""
    codes = np.zeros((N, 1 + dtype.endswith("f4")), f"{dtype[0]}u4")
    codes[:, 0] = [ord("ab"[k % 2]) for k in range(N)]

    def tape(first: int, before: Tape | None = None) -> Tape:
        near = codes.copy()
        near[0, 0] = first
        return played(lambda: QUESTIONS[question](near.view(dtype)[:, 0], "replace_one"), before)

    ours = tape(ord("a"))
    assert ours.releases
    for code in (0x110000, 2**32 - 1, 0xD800):
        assert differences(ours, tape(code, ours)) == []


TELLING = (
    "large", "none", "text", "list", "two", "hostile", "shaped", "decimal", "na", "classless",
    "leaves", "interrupts", "warns", "unhashable class", "class as text",
)  # fmt: skip
"""The cells at which libraries stumble most."""


@pytest.mark.parametrize("column", COLUMNS)
def test_every_column(column: str) -> None:
    bases = ("lists of one",) if column in UNTYPED else ("numbers", "truths", "text")
    for base in bases:
        for question in ("target", "category", "labels"):
            assert told_apart(question, column, base, TELLING) == []


@pytest.mark.slow
@pytest.mark.parametrize("column", COLUMNS)
def test_every_column_of_exposures(column: str) -> None:
    bases = ("lists of one",) if column in UNTYPED else ("numbers", "truths")
    for base in bases:
        assert told_apart("exposure", column, base, TELLING) == []


OF_TRUTHS = {
    "bool", "pandas boolean", "pandas category of truths", "array of pandas",
    "pandas index of truths", "polars Boolean", "arrow bool",
}  # fmt: skip
"""Containers that are of truths whatever they hold."""
ALIKE = {
    "float64",
    "float32",
    "pandas",
    "pandas frame",
    "arrow double",
    "polars Float64",
    "records",
}
"""One container of every library, of which rows are taken as of its others."""


@pytest.mark.parametrize(
    "column",
    [
        pytest.param(name, marks=[pytest.mark.slow] * (name not in OF_TRUTHS | ALIKE))
        for name in COLUMNS
        if name not in UNTYPED
    ],
)
def test_parts_of_every_column(column: str) -> None:
    """Rows that are taken of a column of truths kept no type of their own: a gap was refused."""
    assert told_apart("parts", column, "truths", ("none", "nan")) == []


NEVER_READ = {"masked", "memory of ctypes", "polars List", "arrow list"}


@pytest.mark.parametrize("column", COLUMNS)
def test_columns_are_read(column: str) -> None:
    """Of one that is refused whatever it holds, no neighbours could be told apart."""
    held = [built(COLUMNS[column], BASES[base]) for base in BASES if offered(column, base)]
    asked = [(ask, c) for ask in QUESTIONS.values() for c in held if c is not None]
    read = any(not played(lambda: ask(c, "replace_one")).refused for ask, c in asked)  # noqa: B023
    assert read == (column not in NEVER_READ)


@pytest.mark.parametrize("question", QUESTIONS)
def test_questions_release_something(question: str) -> None:
    column, base = ("float64", "numbers") if question == "records" else ("list", "text")
    cells = COLUMNS[column](BASES[base])
    if question == "records":
        cells = cells.reshape(-1, 1)
    assert played(lambda: QUESTIONS[question](cells, "replace_one")).releases
