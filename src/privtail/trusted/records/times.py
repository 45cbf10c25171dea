"""One exact form for each time and each duration, whatever class brings it.

Formal guarantee
----------------
`declared_cells` reads what is declared and the type of a column, which are public, and no cell.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from contextlib import suppress
from datetime import UTC, date, datetime, timedelta
from typing import Any, cast

import numpy as np

from privtail.schema.declared import like_times, typed_times
from privtail.schema.types import is_day_or_time
from privtail.trusted.records.kinds import is_from

_SECOND = 10**18
"""In attoseconds, the finest unit of NumPy."""
_DAY = 86_400 * _SECOND
_UNITS = {
    "W": 7 * _DAY, "D": _DAY, "h": 3_600 * _SECOND, "m": 60 * _SECOND, "s": _SECOND,
    "ms": 10**15, "us": 10**12, "ns": 10**9, "ps": 10**6, "fs": 10**3, "as": 1,
}  # fmt: skip

_EPOCH = date(1970, 1, 1).toordinal()

Form = tuple[str, int]


def time_form(cell: Any) -> Form | None:
    """A canonical form of a time: a kind, and a whole number; None for what is no time.

    A date is its midnight, as in NumPy. A time with an offset from UTC is a moment; one without
    equals no moment. What NumPy cannot write in days keeps its own unit. The fields of Python's
    classes are read, not what a class derived from them says.
    """
    if isinstance(cell, datetime | timedelta):
        if is_from(cell, ("pandas",)) and hasattr(cell, "asm8"):  # in UTC if an offset is known
            kind, count = _of_numpy(cast(Any, cell).asm8)
            return ("moment" if getattr(cell, "tzinfo", None) is not None else kind), count
        return _of_datetime(cell) if isinstance(cell, datetime) else ("duration", _length(cell))
    if isinstance(cell, date):
        return "clock", (date.toordinal(cell) - _EPOCH) * _DAY
    return _of_numpy(cell) if isinstance(cell, np.datetime64 | np.timedelta64) else None


def _of_datetime(cell: datetime) -> Form:
    hour, minute, second, micro = (
        getattr(datetime, name).__get__(cell)
        for name in ("hour", "minute", "second", "microsecond")
    )
    seconds = (hour * 60 + minute) * 60 + second
    clock = (datetime.toordinal(cell) - _EPOCH) * _DAY + seconds * _SECOND + micro * _UNITS["us"]
    offset = datetime.utcoffset(cell)
    return ("clock", clock) if offset is None else ("moment", clock - _length(offset))


def _length(span: timedelta) -> int:
    days, seconds, micro = (
        getattr(timedelta, name).__get__(span) for name in ("days", "seconds", "microseconds")
    )
    return cast(int, days * _DAY + seconds * _SECOND + micro * _UNITS["us"])


def _of_numpy(cell: np.datetime64 | np.timedelta64) -> Form:
    kind = "clock" if isinstance(cell, np.datetime64) else "duration"
    unit, multiple = np.datetime_data(cell.dtype)
    count = int(cell.astype(np.int64)) * multiple
    if unit in _UNITS:
        return kind, count * _UNITS[unit]
    if kind == "clock":  # years and months
        days = cell.astype("M8[D]")
        if days.astype(cell.dtype) == cell:
            return kind, int(days.astype(np.int64)) * _DAY
    if unit == "generic":
        return f"{kind} of no unit", count
    return f"{kind} in months", count * (12 if unit == "Y" else 1)


_WRITTEN = re.compile(
    r"\d{4}-\d\d-\d\d([ T]\d\d:\d\d(:\d\d(\.\d{1,6})?)?)?([+-]\d\d:?\d\d|Z)?", re.ASCII
)
"""A day or a time as ISO 8601 writes it."""
_START = datetime(1970, 1, 1)  # noqa: DTZ001  of a clock


def declared_cells(
    dtype: Any, library: str, declared: Sequence[Any], what: str
) -> tuple[Any, ...]:  # fmt: skip
    """Declared labels as cells of a column of this public type; changed in columns of times alone.

    Parameters
    ----------
    dtype, library : the type of the cells, and the library of the container that says so.
    what : what the refusal calls the column.

    Raises
    ------
    InvalidInput
        If one is no time of this type: no row could match it.
    """
    arrow = getattr(dtype, "pyarrow_dtype", dtype if library == "pyarrow" else None)
    if arrow is not None:
        arrow = arrow.value_type if str(arrow).startswith("dictionary") else arrow
        return typed_times(what, declared, arrow) if is_day_or_time(arrow) else tuple(declared)
    inner = dtype.categories.dtype if library == "pandas" and str(dtype) == "category" else dtype
    name = str(inner).lower()
    if not name.startswith(("date", "duration", "timedelta")):
        return tuple(declared)
    zone = getattr(inner, "time_zone", getattr(inner, "tz", None))
    wanted = "clock" if zone is None else "moment"
    times = [_read(one, wanted if name.startswith("date") else "duration") for one in declared]
    if None not in times:
        with suppress(Exception):  # a time that the type cannot hold
            return _cells(inner, dtype, library, times)
    raise like_times(what, inner, "duration" if not name.startswith("date") else wanted)


def holds_times(dtype: Any, library: str) -> bool:
    """Whether a column of this public type holds days, times or durations."""
    if library == "pandas" and str(dtype) == "category":
        dtype = dtype.categories.dtype
    name = str(getattr(dtype, "pyarrow_dtype", dtype)).lower()
    return name.startswith(("date", "duration", "time"))


def _read(declared: Any, wanted: str) -> datetime | timedelta | None:
    """A declared time to the microsecond; None for what is no time of the kind that is wanted."""
    with suppress(ValueError, OverflowError):
        if isinstance(declared, str):
            if wanted == "duration" or not _WRITTEN.fullmatch(declared):
                return None
            declared = datetime.fromisoformat(declared)
        form = time_form(declared)
        if form is None or form[0] != wanted or form[1] % _UNITS["us"]:
            return None
        since = timedelta(microseconds=form[1] // _UNITS["us"])
        found = since if wanted == "duration" else _START + since
        return found.replace(tzinfo=UTC) if wanted == "moment" else found  # type: ignore[union-attr]
    return None


def _cells(inner: Any, dtype: Any, library: str, times: Sequence[Any]) -> tuple[Any, ...]:
    """Times as cells of such a column are read."""
    if library == "polars":
        import polars as pl

        made = pl.Series(times)
        cells = made.cast(inner)
        _require_same(cells.cast(made.dtype).to_list(), made.to_list())
        return tuple(np.asarray(cells, dtype=object).tolist())
    if isinstance(dtype, np.dtype):
        exact = np.array(times, "m8[us]" if dtype.kind == "m" else "M8[us]")
        typed = exact.astype(dtype)
        _require_same(typed.astype(exact.dtype).tolist(), exact.tolist())
        return tuple(typed.tolist())
    import pandas as pd

    if str(inner).startswith("timedelta"):
        return tuple(map(pd.Timedelta, times))
    zone = getattr(inner, "tz", None)
    stamps = map(pd.Timestamp, times)
    return tuple(stamps if zone is None else (one.tz_convert(zone) for one in stamps))


def _require_same(found: Sequence[Any], given: Sequence[Any]) -> None:
    if found != given:
        raise ValueError
