"""What the public type of a column says of its cells: numbers, text, times, or nothing.

Formal guarantee
----------------
Types alone are read, never a cell. A list, and a column of Python objects, may hold anything: of
these nothing is said, and so nothing is refused.
"""

from __future__ import annotations

from collections.abc import Sequence
from numbers import Real
from typing import Any, Literal

import numpy as np

from privtail.errors import InvalidInput
from privtail.trusted.records.arrow import is_number, is_text

Kind = Literal["numbers", "text"]

_BOOLEAN, _SINGLE = np.dtype(np.bool_), np.dtype(np.float32)
_NAMED = {
    "boolean": _BOOLEAN, "bool": _BOOLEAN, "bool[pyarrow]": _BOOLEAN,
    "float32": _SINGLE, "float": _SINGLE, "float[pyarrow]": _SINGLE,
}  # fmt: skip

_DAYS = {
    "polars": "(x - datetime.date(2000, 1, 1)).dt.total_days()",
    "pyarrow": (
        'pyarrow.compute.days_between(pyarrow.scalar(datetime.date(2000, 1, 1)), x.cast("date32"))'
    ),
}
_SECONDS = {"polars": "x.dt.total_seconds()", "pyarrow": 'x.cast("int64")'}


def room(values: Any) -> str:
    """The library that the class of a container is from."""
    return type(values).__module__.partition(".")[0]


def element_type(values: Any) -> np.dtype[Any] | None:
    """The public type of a column's cells; None where a cell may be anything."""
    dtype = _type(values)
    return dtype if isinstance(dtype, np.dtype) else _NAMED.get(str(dtype).lower())


def kind_of(values: Any) -> Kind | None:
    """Whether the type of a column says that its labels are numbers, or text."""
    dtype = _type(values)
    if room(values) == "pandas" and str(dtype) == "category":
        return kind_of(dtype.categories)
    dtype = getattr(dtype, "pyarrow_dtype", dtype)
    name = str(dtype).lower()
    if room(dtype) == "polars":
        numeric = dtype.is_numeric() or name == "boolean"
        text = name.startswith(("string", "categorical", "enum"))
    elif room(dtype) == "pyarrow":
        dtype = dtype.value_type if name.startswith("dictionary") else dtype
        numeric, text = is_number(dtype) or str(dtype) == "bool", is_text(dtype)
    else:
        kind = getattr(dtype, "kind", "O")
        numeric, text = kind in "fiub", kind in "SU" or name in ("str", "string")
    return "numbers" if numeric else "text" if text else None


def require_kind(kind: Kind | None, declared: Sequence[Any], column: str | None = None) -> None:
    """Refuse text that is declared for numbers, and numbers that are declared for text.

    ``column`` is the name of a column with categories; None for the labels.

    Raises
    ------
    InvalidInput
        If no cell of a column of this kind could match.
    """
    wrong = (Real, np.bool_) if kind == "text" else (str, bytes)
    if kind is None or not any(isinstance(value, wrong) for value in declared):
        return
    given = "numbers were" if kind == "text" else "text was"
    example = '["0", "1"]' if kind == "text" else "[0, 1]"
    if column is None:
        raise InvalidInput(
            f"The labels are {kind}, but {given} declared: no row would match. Declare {kind}, for "
            f"example classes={example}."
        )
    raise InvalidInput(
        f"Column {column!r} holds {kind}, but its declared categories are "
        f"{given.partition(' ')[0]}: no row would match. Declare {kind}, for example "
        f'categories={{"{column}": {example}}}, or convert the column.'
    )


def conversion(values: Any, what: str) -> str:
    """Why a column of this type is no column of numbers, and how to make one; else nothing.

    ``what`` names the column at the beginning of a sentence.
    """
    dtype, library = _type(values), room(values)
    name = str(getattr(dtype, "pyarrow_dtype", dtype)).lower()
    if name.startswith(("duration", "timedelta")):
        mend = _SECONDS.get(library, 'x / numpy.timedelta64(1, "s")')
        return f"{what} holds times ({dtype}). Turn it into a number, for example x = {mend}"
    if name.startswith(("date", "timestamp")):
        mend = _DAYS.get(
            library, '(x - numpy.datetime64("2000-01-01")) / numpy.timedelta64(1, "D")'
        )
        return (
            f"{what} holds times ({dtype}). Turn it into a number, for example the days since a "
            f"date that you choose: x = {mend}"
        )
    if name.startswith("time"):
        return (
            f"{what} holds times ({dtype}). Turn it into a number, for example the hours since "
            "midnight"
        )
    return ""


def of_objects(values: Any, x: str) -> str:
    """How Python objects that are no numbers to NumPy become numbers; nothing for other types.

    ``x`` is the expression that names the column, or the array. What it holds is private, so all
    conversions are named.
    """
    dtype = _type(values)
    if room(values) == "polars" or not (dtype is None or dtype == np.dtype(object)):
        return ""
    seconds, days = f'{x}.astype("timedelta64[s]")', f'{x}.astype("datetime64[s]")'
    return (
        f"Python objects become numbers by their kind: Decimal by {x}.astype(float); durations in "
        f'seconds by {seconds} / numpy.timedelta64(1, "s"); dates in days by ({days} - '
        'numpy.datetime64("2000-01-01")) / numpy.timedelta64(1, "D").'
    )


def _type(values: Any) -> Any:
    return getattr(values, "dtype", getattr(values, "type", None))
