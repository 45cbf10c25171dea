"""What to do with a column whose type is not the one that is needed."""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import datetime
from numbers import Real
from typing import Any, Literal

import numpy as np

from privtail.errors import InvalidInput

Kind = Literal["numbers", "text"]

_DAYS = {
    "polars": "(x - datetime.date(2000, 1, 1)).dt.total_days()",
    "pyarrow": (
        'pyarrow.compute.days_between(pyarrow.scalar(datetime.date(2000, 1, 1)), x.cast("date32"))'
    ),
}
_SECONDS = {"polars": "x.dt.total_seconds()", "pyarrow": 'x.cast("int64")'}


def require_kind(kind: Kind | None, declared: Sequence[Any], column: str | None = None) -> None:
    """Refuse text that is declared for numbers, and numbers or times that are declared for text.

    ``column`` is the name of a column with categories; None for the labels.

    Raises
    ------
    InvalidInput
        If no cell of a column of this kind could match.
    """
    wrong = (Real, np.bool_) if kind == "text" else (str, bytes)
    if kind == "text":
        require_no_times(declared, "The target" if column is None else f"Column {column!r}")
    if kind is None or not any(isinstance(value, wrong) for value in declared):
        return
    given = "numbers" if kind == "text" else "text"
    few = [str(value) for value in declared[:2]] if kind == "text" else [0, 1]
    example, typed = json.dumps(few), ",".join(map(str, few))
    if column is None:
        raise InvalidInput(
            f"The labels are {kind}, but the declared ones, or those of the model, are {given}: no "
            f"row would match. Convert the labels, or declare {kind}, for example",
            f"classes={example}.",
            cli=f"--classes {typed}",
        )
    raise InvalidInput(
        f"Column {column!r} holds {kind}, but its declared categories are {given}: no row would "
        f"match. Convert the column, or declare {kind}, for example",
        f'categories={{"{column}": {example}}}.',
        cli=f"--categories {column}={typed}",
    )


def require_no_times(declared: Sequence[Any], what: str) -> None:
    """Refuse times that are declared for text, which may write them in any form.

    Raises
    ------
    InvalidInput
        ``what`` names the column, and begins a sentence.
    """
    if any(isinstance(value, datetime) for value in declared):
        raise InvalidInput(
            f"{what} holds text, and objects of datetime were declared: how the text writes them "
            'is not known. Declare its text, for example "2020-01-31 14:00:00".'
        )


def conversion(dtype: Any, library: str, what: str) -> str:
    """Why a column of this type is none of numbers, and how to make one; else nothing.

    ``library`` is that of its container; ``what`` names the column, and begins a sentence.
    """
    name = str(getattr(dtype, "pyarrow_dtype", dtype)).lower()
    if name.startswith(("duration", "timedelta")):
        mend = _SECONDS.get(library, 'x / numpy.timedelta64(1, "s")')
        return f"{what} holds times ({dtype}). Turn it into a number, for example x = {mend}"
    if name.startswith(("date", "timestamp")):
        start = 'numpy.datetime64("2000-01-01")'
        if getattr(getattr(dtype, "pyarrow_dtype", dtype), "tz", None) is not None:  # of pandas
            start = 'pandas.Timestamp("2000-01-01", tz="UTC")'
        mend = _DAYS.get(library, f'(x - {start}) / numpy.timedelta64(1, "D")')
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


def of_objects(dtype: Any, library: str, x: str) -> str:
    """How Python objects that are no numbers to NumPy become numbers; nothing for other types.

    ``x`` is the expression that names the column, or the array. What it holds is private, so all
    conversions are named.
    """
    if library == "polars" or not (dtype is None or dtype == np.dtype(object)):
        return ""
    seconds, days = f'{x}.astype("timedelta64[s]")', f'{x}.astype("datetime64[s]")'
    return (
        f"Objects become numbers by their kind: Decimal, bool by {x}.astype(float); durations in "
        f'seconds by {seconds} / numpy.timedelta64(1, "s"); dates in days by ({days} - '
        'numpy.datetime64("2000-01-01")) / numpy.timedelta64(1, "D").'
    )


def column_refusal(name: str, dtype: Any, library: str, *, declarable: bool) -> InvalidInput:
    """Why a column cannot be numbers by its type, and what to do."""
    times = conversion(dtype, library, f"Column {name!r}")
    if times:
        return InvalidInput(f"{times}, or drop it.")
    mend = f'Encode it by a public rule, for example frame["{name}"] == "a"'
    if declarable:
        mend = (
            f'Declare its categories, for example categories={{"{name}": ["a", "b"]}}, convert it '
            "if numbers are written as text"
        )
    objects = of_objects(dtype, library, f'frame["{name}"]')
    return InvalidInput(f"Column {name!r} is not numeric. {mend}, or drop it. {objects}".strip())


def target_refusal(dtype: Any, library: str, what: str = "target") -> InvalidInput:
    """Why a target or an exposure cannot be numbers by its type, and what to do."""
    times = conversion(dtype, library, f"The {what}")
    if times:
        return InvalidInput(f"{times}.")
    mend = f"The {what} is not numeric."
    if what == "target":
        mend += " For labels use a classifier such as DPLogisticRegression."
    objects = of_objects(dtype, library, "y" if what == "target" else what)
    return InvalidInput(f"{mend} {objects or 'Convert it if numbers are written as text.'}")


def rows_refusal(dtype: Any, library: str) -> InvalidInput:
    """Why an array cannot be rows of numbers by its type, and what to do."""
    times, objects = conversion(dtype, library, "X"), of_objects(dtype, library, "X")
    mend = (
        "X must hold numbers. For columns of text pass a data frame and declare their categories, "
        'for example categories={"city": ["Rome", "Oslo"]}.'
    )
    return InvalidInput(f"{times}." if times else f"{mend} {objects}".strip())
