"""One exact form for each time and each duration, whatever class brings it."""

from __future__ import annotations

from datetime import date, datetime, timedelta
from typing import Any, cast

import numpy as np

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
