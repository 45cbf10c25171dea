"""One partition of a Dask collection, as records in the memory of a worker.

Formal guarantee
----------------
What a partition's columns are is decided by the types that the collection announces, before a
partition is read: in a column of numbers a cell that is no number is NaN, which drops its row,
whatever type the partition gave its column; of labels those count that are the same in all types
that pandas may give (`label`). Where one cell makes pandas keep objects, a partition of a CSV has
the text of all cells, and Dask may write it: so text that is a number, true or false, however it is
written, is that number, in labels too. So no refusal depends on a cell. Nothing here shows a cell;
a partition can be pickled, because workers hand it to each other and put it on their disks.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from privtail.errors import InvalidInput
from privtail.schema.encoding import PLAIN, Encoding
from privtail.schema.times import holds_times
from privtail.schema.types import is_label
from privtail.trusted.kernels.digests import digested
from privtail.trusted.records import Dense, InMemory, Targets, Window, as_records
from privtail.trusted.records.arrays import (
    as_ids,
    as_numbers,
    column_names,
    column_of,
    read,
    require_read,
)
from privtail.trusted.records.arrow import Distinct
from privtail.trusted.records.kinds import public_type
from privtail.trusted.records.persons import Persons, owners
from privtail.trusted.records.targets import Labels, Numbers, canonical_label, distinct
from privtail.trusted.records.times import time_form

FAILED = (
    "A task failed on a Dask worker. What it said is not shown, for it may quote a row: see the "
    "logs of the workers, or whether the collection itself can be computed."
)
CHANGED = (
    "A partition was computed again and is not what it was: the graph is not deterministic (a "
    "sample, an unordered shuffle), or its files were written to. Write the rows to Parquet first."
)
ROUNDED = 2**53
"""From here on not every whole number is a double."""
Codes = Mapping[Any, int]
_Cells = tuple[list[Any], NDArray[Any]]
"""Distinct values (of numbers none), and numbers or the positions of values."""


@dataclass(frozen=True, eq=False, repr=False)
class Reading:
    """How partitions are read as records: empty containers of the announced types, declarations.

    Attributes
    ----------
    X, y, groups : without rows; y is None where there is no target, and a mapping of the target
        and its exposure where it has one; groups is None where rows are protected.
    categories : column -> its declared categories.
    labelled : whether the target holds labels.
    key : of checksums; secret, and new in every fit.
    encoding : what is declared of the features beside categories.
    """

    X: Any
    y: Any
    groups: Any
    categories: Mapping[str, Sequence[Any]] | None
    labelled: bool
    key: bytes
    encoding: Encoding = PLAIN

    def empty(self) -> tuple[Any, Targets | None]:
        """Records and targets without rows. Raises InvalidInput if types do not fit."""
        records = as_records(self.X, self.categories, self.encoding)
        if self.y is None:
            return records, None
        if self.labelled:
            return records, Labels(self.y, 0)
        columns = self.y.values() if isinstance(self.y, Mapping) else [self.y]
        return records, Numbers(next(iter(columns)), 0, *list(columns)[1:])


class Sent:
    """A value on its way to a worker. It shows nothing, and Dask does not look into it."""

    def __init__(self, value: Any) -> None:
        self.value = value

    def __repr__(self) -> str:
        return "Sent()"


class Held:
    """A partition that was read.

    Attributes
    ----------
    lengths : how many rows X, y and groups have; public.
    owners : ids of persons, and for each row the place of its id; none where rows are protected.
    checksum : of all cells; private.
    refused : why it could not be read; no text quotes a cell.
    """

    def __init__(self, X: Any, y: Any, groups: Any, reading: Reading) -> None:
        self.refused, self.lengths, self.checksum = "", (0, 0, 0), b""
        self._reading = reading
        self._columns: list[_Cells] = []
        self._targets: list[_Cells] = []
        self._codes: Codes | None = None
        self.owners: _Cells = [], np.empty(0, np.int64)
        self._open: tuple[InMemory, Targets | None] | None = None
        try:
            self._read(X, y, groups)
        except InvalidInput as error:
            self.refused = str(error)
        except Exception:  # noqa: BLE001  its text may quote a cell
            self.refused = FAILED

    def window(self, start: int, codes: Codes | None) -> Window:
        """Its records, the first of which has the id ``start``; labels are coded by ``codes``."""
        if self._open is None or self._codes != codes:
            self._open, self._codes = self._opened(codes), codes
        opened = self._open
        return Window(start, start + self.lengths[0], lambda: opened)

    def _read(self, X: Any, y: Any, groups: Any) -> None:
        reading = self._reading
        if isinstance(reading.X, np.ndarray):
            array = _numbers(X)
            if array.ndim != 2 or array.shape[1] != reading.X.shape[1]:
                raise InvalidInput(
                    "A chunk of X must have as many columns as X announces, and has not."
                )
            self._columns = [([], array)]
        else:
            require_read(X)
            names, held = column_names(reading.X) or (), column_names(X) or ()
            for name in names:
                if name not in held:
                    raise InvalidInput(f"Every partition needs column {name!r}, which X announces.")
            labelled = set(reading.categories or ())
            self._columns = [_cells(X[name], str(name) in labelled) for name in names]
        rows = len(self._columns[0][1])
        if reading.y is not None:
            columns = y.values() if isinstance(y, Mapping) else [y]
            self._targets = [_cells(column_of(one), reading.labelled) for one in columns]
        lengths = {len(array) for _, array in self._targets}
        if len(lengths) > 1:
            raise InvalidInput(
                "A partition of the exposure and that of y differ in rows. Take "
                "both from one frame."
            )
        if reading.groups is not None:
            require_typed_alike(groups, reading.groups)
            self.owners = owners(groups)
        owned = rows if reading.groups is None else len(self.owners[1])
        self.lengths = rows, lengths.pop() if lengths else rows, owned
        digest = hashlib.blake2b(digest_size=16)
        for values, array in (*self._columns, *self._targets, self.owners):
            digest.update(repr((array.dtype.str, array.shape)).encode())
            for value in values:
                one = spelt(value)
                digest.update(len(one).to_bytes(8, "little") + b"?"[: value is None] + one)
            digest.update(digested(array, reading.key))
        self.checksum = digest.digest()

    def _opened(self, codes: Codes | None) -> tuple[InMemory, Targets | None]:
        empty, targets = self._reading.empty()
        if isinstance(empty, Dense):
            records: Any = Dense(self._columns[0][1])
        elif isinstance(self._reading.X, np.ndarray):
            records = empty.like(list(self._columns[0][1].T))
        else:
            names = column_names(self._reading.X) or ()
            labelled = self._reading.categories or {}
            records = empty.like(
                [
                    _declared(*cells, labelled[str(name)]) if str(name) in labelled else cells[1]
                    for name, cells in zip(names, self._columns, strict=True)
                ]
            )
        if targets is None or not self._targets:
            return records, None
        if isinstance(targets, Labels):
            codes = codes and {label(one): code for one, code in codes.items()}
            return records, targets.like(Distinct(*self._targets[0]), codes)
        return records, targets.like(*(array for _, array in self._targets))

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_open": None}

    def __sizeof__(self) -> int:
        cells = [*self._columns, *self._targets, self.owners]
        return sum(array.nbytes + 64 * len(values) for values, array in cells)

    def __repr__(self) -> str:
        return "Held()"


class Unread:
    """A partition by its tasks, which a worker runs within the one that asks.

    Parameters
    ----------
    tasks : of a graph, the last of which makes a `Held`.
    last : its key.
    """

    def __init__(self, tasks: Mapping[Any, Any], last: Any) -> None:
        self._tasks, self._last = tasks, last

    def read(self) -> list[Held]:
        """The partition, which is not kept."""
        from dask import get

        return [get(self._tasks, self._last)]

    def __repr__(self) -> str:
        return "Unread()"


def require_one_type(announced: Any) -> None:
    """Refuse, of ids on a cluster, a type that says nothing of them: Python objects.

    One id may then be a whole number in one partition and a double in another, which rounds it, and
    its person would be two.

    Raises
    ------
    InvalidInput
        By the announced type alone.
    """
    Persons(announced, 0)
    if "object" in _form(announced):
        raise InvalidInput(
            "The groups of a Dask collection are Python objects, and the ids of one person could "
            'differ by partition. Give the column one type: groups=ddf["id"].astype("int64"), '
            'or .astype("string[pyarrow]") for text.'
        )


def require_typed_alike(ids: Any, announced: Any) -> None:
    """Refuse ids of another type than was announced: two forms of one id would be two persons.

    Whole numbers of all widths have one form; so has text of NumPy, however long. Doubles have
    another: they round what is larger than 2^53, and pandas makes doubles of whole numbers where
    one is missing. So this refusal may follow from a missing cell; like that of a malformed file,
    it is outside the promise. The type of an empty part says nothing.

    Raises
    ------
    InvalidInput
        By the types alone.
    """
    if len(ids) and _form(ids) != _form(announced):
        raise InvalidInput(
            "A partition of groups has another type than the collection announces, and the ids of "
            "one person could differ: whole numbers become doubles where one is missing. Read the "
            'column in a type that can miss cells, dtype_backend="pyarrow" of '
            "dask.dataframe.read_parquet, or pass what privtail.open_table(folder) gives."
        )


def _form(ids: Any) -> str:
    """The part of a type that decides which form an id has."""
    column = column_of(ids)[:0]
    read, own = as_ids(column).dtype, cast(Any, getattr(column, "dtype", None))
    if str(own) == "category":
        return f"category of {_form(own.categories)}"
    if read.kind in "US":
        return read.kind
    if read.kind in "iub":
        return "whole numbers"
    return read.str if read.kind == "f" else f"{own} {getattr(own, 'storage', '')}"


def moved(held: Held) -> Held:
    """The same partition, on the worker that runs this."""
    return held


def facts(held: Held) -> tuple[tuple[int, int, int], bytes, str]:
    """The facts of a partition for the driver: lengths, checksum, and why it was refused."""
    return held.lengths, held.checksum, held.refused


def spelt(value: Any) -> bytes:
    """Bytes of a label or an id in its one form, the same in every process; of None there are none.

    Digits are not asked for: Python writes none of a whole number that is too long.
    """
    if value is None:
        return b""
    if isinstance(value, int):
        return b"i" + value.to_bytes(value.bit_length() // 8 + 1, "little", signed=True)
    if isinstance(value, float):
        return b"f" + value.hex().encode()
    if isinstance(value, tuple):  # an id that is no text, by its class and its text
        return b"o" + b"\0".join(map(spelt, value))
    return b"b" + value if isinstance(value, bytes) else b"s" + value.encode(errors="surrogatepass")


def _cells(values: Any, labelled: bool) -> _Cells:
    if not labelled:
        return [], _numbers(values)
    kind, library = public_type(values)
    arrow = getattr(kind, "pyarrow_dtype", None)
    if arrow is not None and (holds_times(kind, library) or not is_label(arrow)):
        return [None], np.zeros(len(values), np.int32)
    cells = Labels(values, len(values))._y
    if cells.dtype.kind in "mM":
        cells = np.empty(len(cells), object)
    values, positions = distinct(cells, label)
    values = [label(one) if isinstance(one, str) else one for one in values]
    return values, positions.astype(np.int32)


def _declared(values: list[Any], positions: NDArray[Any], categories: Sequence[Any]) -> Distinct:
    """Labels of which those that are declared are spelt as the declaration has them."""
    spelling = {label(one): one for one in categories}
    return Distinct([spelling.get(one, one) for one in values], positions)


def label(cell: Any) -> Any:
    """A canonical label, if it does not depend on the type that pandas gave the cells beside it.

    Where one is missing, pandas makes doubles of whole numbers, which rounds those from 2^53 on. It
    has two forms of times. Such labels are missing, whatever the partition. The text of a number is
    that number (see `_real`).
    """
    cell = _real(cell)
    found = None if time_form(cell) is not None else canonical_label(cell)
    return None if isinstance(found, int | float) and abs(found) >= ROUNDED else found


def _numbers(values: Any) -> NDArray[Any]:
    """A column, or an array, as numbers, whatever type this partition gave it."""
    array = as_numbers(values)
    if array.dtype.kind in "fiub":
        return array
    if array.ndim == 1:  # pandas may fail at all cells of such a type together
        held = getattr(values, "array", values)
        cells = read(range(len(held)), held.__getitem__, None)
    else:
        cells = np.asarray(values, dtype=object).ravel().tolist()
    return as_numbers(read(cells, _real, None)).reshape(array.shape)


def _real(cell: Any) -> Any:
    """A complex number as a real one, if it is: where one is not, pandas makes all complex.

    So is the text of a number, of true or of false, in any spelling: where one cell is something
    else, pandas leaves all cells of a CSV as text, and Dask makes text of all.
    """
    if isinstance(cell, str):
        cell = _read(str.__str__(cell))
    if not isinstance(cell, complex | np.complexfloating):
        return cell
    return cell.real if cell.imag == 0 else None


def _read(text: str) -> Any:
    """The number or truth that is written as this text; text that is none as it is."""
    if text.strip().lower() in ("true", "false"):
        return text.strip().lower() == "true"
    with suppress(ValueError):
        return int(text)
    with suppress(ValueError):
        if math.isfinite(float(text)):
            return float(text)
    with suppress(ValueError):
        if str(complex(text)) == text:
            return complex(text)
    return text
