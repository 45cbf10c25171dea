"""Containers to arrays, deciding by their public type and never by a cell."""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal
from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from privtail.errors import InvalidInput
from privtail.trusted.records.arrow import arrow_doubles, arrow_ids, arrow_objects

_BOOLEAN, _SINGLE = np.dtype(np.bool_), np.dtype(np.float32)
_NAMED = {
    "boolean": _BOOLEAN, "bool": _BOOLEAN, "bool[pyarrow]": _BOOLEAN,
    "float32": _SINGLE, "float": _SINGLE, "float[pyarrow]": _SINGLE,
}  # fmt: skip


def as_numbers(values: Any) -> NDArray[Any]:
    """An array of the container's own numeric type; cells of lists that are no numbers are NaN.

    A list has no type but those of its cells, which are private: it is never refused for them.
    Columns of pandas, polars and Arrow that can miss cells become doubles with NaN, whether or not
    a cell is missing.
    """
    _refuse_masked(values)
    dtype = getattr(values, "dtype", None)
    if isinstance(values, list | tuple):
        return _listed(values)
    if _room(values) == "polars":
        return _from_polars(values)
    if _room(values) == "pyarrow":
        return arrow_doubles(values)
    nullable = dtype is not None and not isinstance(dtype, np.dtype)
    if nullable and getattr(dtype, "kind", "O") in "biuf":
        return np.asarray(values.to_numpy(dtype=np.float64, na_value=np.nan))
    return _array(values)


def as_labels(values: Any) -> NDArray[Any]:
    """An array of labels; lists and columns that can miss cells become Python objects.

    Whole numbers stay whole: polars and categories of pandas would write all of them as doubles as
    soon as one cell is missing.
    """
    _refuse_masked(values)
    dtype = getattr(values, "dtype", None)
    if _room(values) == "pyarrow":
        return arrow_objects(values)
    if _room(values) == "polars" and dtype is not None and dtype.is_numeric():
        return np.fromiter(values.to_list(), dtype=object, count=len(values))
    if str(dtype) == "category":
        values = values.astype(object)
    typed = isinstance(dtype, np.dtype)
    return _array(values) if typed else _array(values, object)


def as_ids(values: Any) -> NDArray[Any]:
    """Labels to compare only: text of Arrow comes as its bytes, valid or not."""
    return arrow_ids(values) if _room(values) == "pyarrow" else as_labels(values)


def taken(values: Any, ids: NDArray[np.int64]) -> Any:
    """The rows of these ids, in a container of the same kind; copied."""
    if isinstance(values, Mapping):
        return {name: taken(column, ids) for name, column in values.items()}
    if hasattr(values, "iloc"):
        return values.iloc[ids]
    if _room(values) == "pyarrow":
        return values.take(ids)
    if _room(values) == "polars" or hasattr(values, "tocsr"):
        return (values.tocsr() if hasattr(values, "tocsr") else values)[ids]
    if isinstance(values, list | tuple):
        return [values[i] for i in ids.tolist()]
    return _array(values)[ids]


def element_type(values: Any) -> np.dtype[Any] | None:
    """The public type of a column's cells; None where a cell may be anything."""
    dtype = getattr(values, "dtype", getattr(values, "type", None))
    return dtype if isinstance(dtype, np.dtype) else _NAMED.get(str(dtype).lower())


def _room(values: Any) -> str:
    return type(values).__module__.partition(".")[0]


def _refuse_masked(values: Any) -> None:
    if isinstance(values, np.ma.MaskedArray):
        raise InvalidInput(
            "Masked arrays are not accepted: their hidden values would count. Use x.filled(nan)."
        )


def _array(values: Any, dtype: DTypeLike | None = None) -> NDArray[Any]:
    try:
        return np.asarray(values, dtype=dtype)
    except Exception:  # noqa: BLE001  its text may quote a cell
        raise InvalidInput(
            "A column or an array cannot be read: text that is not UTF-8, or rows of different "
            "lengths."
        ) from None


def _from_polars(values: Any) -> NDArray[Any]:
    import polars as pl

    if values.dtype.is_numeric() or values.dtype == pl.Boolean:
        return np.asarray(values.cast(pl.Float64).to_numpy())
    return np.asarray(values.to_numpy(), dtype=object)


def _listed(values: list[Any] | tuple[Any, ...]) -> NDArray[np.float64]:
    cells = _array(values, object)
    numbers = np.full(cells.shape, np.nan)
    for position, cell in np.ndenumerate(cells):
        if isinstance(cell, Real | Decimal | str | bytes | np.bool_):
            try:
                numbers[position] = float(cell)
            except Exception:  # noqa: BLE001, S112  what is not a number is missing
                continue
    return numbers
