"""Days, times and durations that somebody declared, as a column of a public type holds them."""

from __future__ import annotations

import re
from collections.abc import Sequence
from contextlib import suppress
from datetime import UTC, date, datetime, time, timedelta
from typing import Any

import numpy as np

from privtail.schema.declared import like_times, typed_times
from privtail.schema.types import is_day_or_time

_WRITTEN = re.compile(
    r"\d{4}-\d\d-\d\d([ T]\d\d:\d\d(:\d\d(\.\d{1,6})?)?)?([+-]\d\d:?\d\d|Z)?", re.ASCII
)
"""A day or a time as ISO 8601 writes it."""


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
    inner = _of_cells(dtype, library)
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
    inner = _of_cells(dtype, library)
    name = str(getattr(inner, "pyarrow_dtype", inner)).lower()
    return name.startswith(("date", "duration", "time"))


def _of_cells(dtype: Any, library: str) -> Any:
    """The type of the cells, also of a column of pandas' categories."""
    return dtype.categories.dtype if library == "pandas" and str(dtype) == "category" else dtype


def _read(declared: Any, wanted: str) -> datetime | timedelta | None:
    """A declared time to the microsecond; None for what is no time of the kind that is wanted."""
    with suppress(ValueError, OverflowError, TypeError):
        if isinstance(declared, str):
            declared = datetime.fromisoformat(declared) if _WRITTEN.fullmatch(declared) else None
        elif isinstance(declared, np.datetime64 | np.timedelta64):
            exact = declared.astype(f"{declared.dtype.kind}8[us]")
            declared = exact.item() if exact == declared else None
        elif getattr(declared, "nanosecond", getattr(declared, "nanoseconds", 0)):  # of pandas
            return None
        if isinstance(declared, date) and not isinstance(declared, datetime):
            declared = datetime.combine(declared, time())
        if wanted == "duration":
            return declared if isinstance(declared, timedelta) else None
        if isinstance(declared, datetime) and (declared.tzinfo is None) == (wanted == "clock"):
            return declared if wanted == "clock" else declared.astimezone(UTC)
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
