"""The kind of cells by the public type of a column: numbers, text, times, or unknown.

Formal guarantee
----------------
Only types are read, never a cell. A list or a column of Python objects may hold anything, so it is
never refused here. A class belongs to the library that holds it under its name.
"""

from __future__ import annotations

import sys
from array import array
from operator import attrgetter
from typing import Any

import numpy as np

from privtail.schema.kinds import Kind
from privtail.schema.types import is_number, is_text

LIBRARIES = ("dask", "numpy", "pandas", "polars", "pyarrow")
_NAMED: dict[str, np.dtype[Any]] = {
    **dict.fromkeys(("boolean", "bool", "bool[pyarrow]"), np.dtype(np.bool_)),
    **dict.fromkeys(("float32", "float", "float[pyarrow]"), np.dtype(np.float32)),
}


def room(values: Any) -> str:
    """The library that the class of a container is from, or one that it is derived from."""
    rooms = list(map(home, type.mro(type(values))))
    return next((name for name in rooms if name in LIBRARIES), rooms[0])


def is_from(value: Any, libraries: tuple[str, ...]) -> bool:
    """Whether the class of a value is of one of these libraries, and not derived from theirs."""
    return home(type(value)) in libraries


def home(kind: type) -> str:
    """The library that holds a class; none of one that is not where it says to be."""
    try:
        place = str.__str__(kind.__module__)
        held = attrgetter(kind.__qualname__)(sys.modules[place]) is kind
    except Exception:  # noqa: BLE001  a class of classes may raise anything
        return ""
    return place.partition(".")[0] if held else ""


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


def public_type(values: Any) -> tuple[Any, str]:
    """The type that a container says of its cells, and the library that the container is from."""
    return _type(values), room(values)


def _type(values: Any) -> Any:
    if type(values) is array:
        return np.asarray(values[:0]).dtype
    return getattr(values, "dtype", getattr(values, "type", None))
