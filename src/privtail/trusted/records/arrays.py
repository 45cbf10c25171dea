"""Containers to arrays, deciding by their public type and never by a cell.

Formal guarantee
----------------
What is public of a container is its length, the type of its cells where it has one, and, where its
class has a shape, that shape. A sequence of Python objects (a list, a tuple, a deque) has none but
its length: it is read cell by cell into one dimension, and what one cell becomes is a function of
that cell alone. NumPy would look at all cells together to find a shape and a type, so it is never
asked to. A cell that holds cells of its own is a missing value, and so is one whose class, or the
class of the sequence, raises anything when it is read; what they warn of is not shown.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from decimal import Decimal
from functools import partial
from numbers import Real
from operator import attrgetter
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from privtail.compilation import QUIET, apart, by_hand
from privtail.schema import containers
from privtail.trusted.exactly import is_one_of
from privtail.trusted.records.arrow import arrow_doubles, arrow_ids, arrow_objects
from privtail.trusted.records.kinds import LIBRARIES, home, is_from, room

_TYPED = ("__array__", "dtype", "__array_interface__", "__array_struct__")
"""What containers have whose cells are of one public type, or `object` by declaration."""
_LENDERS = ("array", "builtins", "jax", "jaxlib", "scipy", "torch")
"""Modules whose own containers lend memory of one type, whatever the cells are."""
_CONTAINERS = {
    "pandas": ("DataFrame", "Series", "Index", "api.extensions.ExtensionArray"),
    "polars": ("DataFrame", "Series"),
    "pyarrow": ("Table", "RecordBatch", "ChunkedArray", "Array"),
}
"""Classes of these libraries that hold rows; scalars, types and groups of rows are others."""


def is_listed(values: Any) -> bool:
    """Whether this is a sequence of cells without a type: a list, a tuple, a deque, a range."""
    if isinstance(values, str | bytes | bytearray | Mapping):
        return False
    if _is_typed(values) or _is_lent(values):
        return False
    return hasattr(values, "__len__") and hasattr(values, "__getitem__")


def _is_typed(values: Any) -> bool:
    """Whether a container says of which type its cells are.

    One of a class that nobody knows, with ``__array__`` alone, does not: NumPy would find a type
    that follows from the cells.
    """
    known = room(values) in LIBRARIES
    return _has(values, _TYPED[not known :])


def _has(values: Any, names: Iterable[str]) -> bool:
    """Whether a container, or its class, has one of these attributes; one that raises is there."""
    with suppress(Exception):  # which a class of somebody else may raise
        return any(hasattr(type(values), name) or hasattr(values, name) for name in names)
    return True


def _is_lent(values: Any) -> bool:
    """Whether the class of a container lends its memory, also by code of Python (3.12)."""
    with suppress(Exception):
        return hasattr(type(values), "__buffer__") or memoryview(values) is not None
    return False


def is_read_elsewhere(values: Any) -> bool:
    """Whether code of a class that nobody knows would make the array that is read.

    Its type may follow from a cell, whatever the class says, and it may be another one each time.
    So may the type of memory that such a class lends.
    """
    known = room(values) in (*LIBRARIES, *_LENDERS) or isinstance(values, Mapping)
    if known or is_listed(values):
        return False
    return _is_lent(values) or _has(values, _TYPED)


def is_column(values: Any) -> bool:
    """Whether this is one column given as a vector: a list always is, whatever its cells hold.

    Raises
    ------
    InvalidInput
        If it cannot be read: see `require_read`.
    """
    require_read(values)
    if is_listed(values):
        return True
    if room(values) == "pyarrow":
        return hasattr(values, "type")
    return len(getattr(values, "shape", (0, 0))) == 1


def column_names(values: Any) -> tuple[Any, ...] | None:
    """The public names of the columns of a table; None of what has none.

    The class is asked for them: of a data frame that has a column of the name ``column_names``, or
    a column that has a row of the name ``columns``, an attribute may be cells. So may what a class
    answers that no library holds.
    """
    if isinstance(values, Mapping):
        return tuple(values)
    if home(type(values)) not in LIBRARIES:
        return None
    known = (name for name in ("column_names", "columns") if hasattr(type(values), name))
    return next((tuple(getattr(values, name)) for name in known), None)


def column_of(values: Any) -> Any:
    """One column: that of a frame or a table of one, anything else as it is.

    Raises
    ------
    InvalidInput
        If a frame has another number of columns, or for a sparse matrix.
    """
    require_read(values)
    if hasattr(type(values), "tocsr"):
        raise containers.sparse_column()
    names = column_names(values)
    if names is None or isinstance(values, Mapping):
        return values
    if len(names) != 1:
        raise containers.several_columns(len(names))
    return values.iloc[:, 0] if hasattr(values, "iloc") else values[names[0]]


def require_read(values: Any) -> None:
    """Refuse masked arrays, iterators, sets, queries that nobody has run, and types nobody knows.

    So are classes that are derived from those of a library, whose code may let one cell decide the
    names, the shape or the type; and scalars, types and whatever else is no container.

    Raises
    ------
    InvalidInput
        By the container's class alone.
    """
    if isinstance(values, np.ma.MaskedArray):
        raise containers.masked()
    if isinstance(values, Mapping) and hasattr(type(values), "tocsr"):  # DOK; its keys are private
        raise containers.not_csr()
    library = room(values)
    if library in LIBRARIES and home(type(values)) not in LIBRARIES:
        kind = next(one for one in type.mro(type(values)) if home(one) in LIBRARIES)
        raise containers.derived(type(values).__name__, library, kind.__name__)
    dtype = values.dtype if library == "pandas" and hasattr(type(values), "dtype") else None
    if str(dtype) == "category" and not is_from(dtype, ("pandas",)):
        raise containers.derived(type(dtype).__name__, "pandas", "CategoricalDtype")
    for call in {"polars": ("collect",), "pyarrow": ("to_table", "read_all")}.get(library, ()):
        if hasattr(values, call):
            raise containers.not_run(type(values).__name__, call)
    typed = _has(values, _TYPED)
    if isinstance(values, Iterable) and not (typed or hasattr(values, "__getitem__")):
        raise containers.without_positions(type(values).__name__)
    if is_read_elsewhere(values):
        raise containers.class_unknown(type(values).__name__)
    if library in _CONTAINERS:
        held = attrgetter(*_CONTAINERS[library])(sys.modules[library])
        if not isinstance(values, held) or hasattr(type(values), "levels"):
            raise containers.no_array(type(values).__name__)
    elif isinstance(values, type):
        raise containers.no_array(type(values).__name__)


def require_typed(X: Any) -> None:
    """Refuse records of which nothing public says how many columns they have.

    That is a list of rows: each row would say it for itself. So is a query that nobody has run.

    Raises
    ------
    InvalidInput
        By the container's class alone.
    """
    require_read(X)
    if is_listed(X):
        raise containers.list_of_rows()


@np.errstate(all="ignore")
def as_numbers(values: Any) -> NDArray[Any]:
    """An array of the container's own numeric type; cells of lists that are no numbers are NaN.

    A list has no type but those of its cells, which are private: it is never refused for them.
    Columns of pandas, polars and Arrow that can miss cells become doubles with NaN, whether or not
    a cell is missing: NumPy would make objects of Boolean categories as soon as one is.
    """
    require_read(values)
    if is_listed(values):
        numbers = read(_cells(values, range(len(values))), _number, math.nan)
        return np.array(numbers, dtype=np.float64)
    values = _unwrapped(values)
    dtype = getattr(values, "dtype", None)
    if room(values) == "polars":
        return _from_polars(values)
    if room(values) == "pyarrow":
        return arrow_doubles(values)
    if str(dtype) == "category":
        return _from_categories(values)
    if is_from(dtype, ("pandas",)) and getattr(dtype, "kind", "O") in "biuf":
        return np.asarray(values.to_numpy(dtype=np.float64, na_value=np.nan))
    return _array(values)


@np.errstate(all="ignore")
def as_labels(values: Any) -> NDArray[Any]:
    """An array of labels; lists and columns that can miss cells become Python objects.

    Whole numbers stay whole: polars and categories of pandas would write all of them as doubles as
    soon as one cell is missing.
    """
    require_read(values)
    if is_listed(values):
        return np.fromiter(_cells(values, range(len(values))), dtype=object, count=len(values))
    values = _unwrapped(values)
    dtype = getattr(values, "dtype", None)
    if room(values) == "pyarrow":
        return arrow_objects(values)
    if room(values) == "polars" and dtype is not None:
        if dtype.is_nested():
            raise containers.no_labels(dtype)
        if not dtype.is_temporal():
            cells = _polars_text(values)
            cells = values.to_list() if cells is None else read(cells, _decoded, None)
            return np.fromiter(cells, dtype=object, count=len(values))
    if str(dtype) == "category":
        values = values.astype(object)
    typed = isinstance(dtype, np.dtype)
    return _array(values) if typed else _array(values, object)


def as_ids(values: Any) -> NDArray[Any]:
    """Labels to compare only: text of Arrow and polars comes as its bytes, and times as numbers."""
    values = _unwrapped(values)
    if room(values) == "polars":
        cells = _polars_text(values)
        if cells is not None:
            return np.fromiter(cells, dtype=object, count=len(values))
        if values.dtype.is_temporal():
            values = values.to_physical()  # Python's times end at microseconds
    return arrow_ids(values) if room(values) == "pyarrow" else as_labels(values)


def taken(values: Any, ids: NDArray[np.int64]) -> Any:
    """The rows of these ids, in a container of the same kind; copied."""
    if isinstance(values, Mapping):
        return {name: taken(column, ids) for name, column in values.items()}
    if hasattr(values, "iloc"):
        return values.iloc[ids]
    if room(values) in ("pandas", "pyarrow"):  # of pandas an index, or what a column holds
        return values.take(ids)
    if room(values) == "polars":
        return _polars_rows(values, ids)
    if hasattr(type(values), "tocsr"):
        return values.tocsr()[ids]
    if is_listed(values):
        return _cells(values, ids.tolist())
    return _array(values)[ids]


def require_apart(X: Any) -> None:
    """Refuse a container of which a row that is taken still holds cells of other rows.

    A dictionary of Arrow keeps all its values, a categorical column all categories, which may have
    been made of the cells, an index of several levels all labels, and a view of Arrow or a nested
    column of polars the memory of all cells.

    Raises
    ------
    InvalidInput
        By types alone.
    """
    for one in X.values() if isinstance(X, Mapping) else (X,):
        types: list[Any] = []
        levels = 1
        if room(one) == "pyarrow":
            types = one.schema.types if hasattr(type(one), "schema") else [one.type]
        elif room(one) == "pandas":
            types = list(one.dtypes) if hasattr(type(one), "columns") else [one.dtype]
            if hasattr(type(one), "index"):
                levels, types = one.index.nlevels, [*types, getattr(one.index, "dtype", None)]
        elif room(one) == "polars":
            types = list(one.dtypes) if hasattr(type(one), "columns") else [one.dtype]
        if levels > 1 or any(_lists_values(str(kind)) for kind in types):
            raise containers.shared_values()


def _lists_values(kind: str) -> bool:
    """Whether a column of this type lists values that other rows may hold."""
    of_polars = "Array(", "Categorical(", "Extension(", "List(", "Map(", "Struct("
    nested = kind.startswith(of_polars)
    return nested or "dictionary<" in kind or "_view" in kind or kind in ("Categorical", "category")


def _unwrapped(values: Any) -> Any:
    """What pandas keeps in Arrow, as Arrow: pandas may fail at cells that are no UTF-8.

    A table is no column: that of a class that nobody knows may make any array.
    """
    names = column_names(values)
    if names is not None:
        raise containers.several_columns(len(names))
    if room(values) != "pandas":
        return values
    from pandas import arrays as of_pandas

    array = getattr(values, "array", values)
    return array.__arrow_array__() if isinstance(array, of_pandas.ArrowExtensionArray) else values


def _array(values: Any, dtype: DTypeLike | None = None) -> NDArray[Any]:
    """An array of NumPy; where a cell makes pandas fail, of objects: that cell is missing.

    A column of pandas of a type that is not its own is one of objects: its class may be anything.
    """
    kind = getattr(values, "dtype", None)
    if room(values) != "pandas" or kind is None or is_from(kind, ("numpy", "pandas")):
        try:
            return np.asarray(values, dtype=dtype)
        except Exception:  # noqa: BLE001  its text may quote a cell
            if room(values) != "pandas":
                raise containers.no_array(type(values).__name__) from None
    cells = getattr(values, "array", values)
    found = read(range(len(cells)), cells.__getitem__, None)
    return np.fromiter(found, dtype=object, count=len(cells))


def _polars_text(values: Any) -> list[Any] | None:
    """Text of polars as bytes, which may be no UTF-8; None of a column of another type."""
    if not str(values.dtype).lower().startswith(("string", "categorical", "enum")):
        return None
    import polars as pl

    return list(values.cast(pl.String).cast(pl.Binary).to_list())


def _polars_rows(values: Any, ids: NDArray[np.int64]) -> Any:
    """Rows of polars; text and bytes in memory of their own, for a row shares that of all."""
    rows = values[ids]
    columns = rows.get_columns() if hasattr(type(rows), "columns") else [rows]
    own = [
        type(column)(column.name, column.to_list(), dtype=column.dtype)
        if str(column.dtype) in ("String", "Binary")
        else column
        for column in columns
    ]
    return type(rows)(own) if hasattr(type(rows), "columns") else own[0]


def _decoded(cell: Any) -> str | None:
    return None if cell is None else bytes.decode(cell, errors="replace")


def _from_polars(values: Any) -> NDArray[Any]:
    """Numbers and Booleans as doubles; anything else as no numbers, for a refusal."""
    import polars as pl

    if values.dtype.is_numeric() or values.dtype == pl.Boolean:
        return np.asarray(values.cast(pl.Float64).to_numpy())
    return np.empty(len(values), dtype=object)


def _from_categories(values: Any) -> NDArray[Any]:
    """Categories of pandas as doubles if they are numbers; as no numbers, for a refusal, else."""
    known = as_numbers(values.dtype.categories)
    if known.dtype.kind not in "fiub":
        return np.empty(len(values), dtype=object)
    doubles = np.append(known.astype(np.float64), np.nan)  # -1 is the code of a missing cell
    codes: NDArray[np.intp] = np.asarray(getattr(values, "array", values).codes, dtype=np.intp)
    return np.take(doubles, codes)


def read(cells: Iterable[Any], of: Callable[[Any], Any], missing: Any) -> list[Any]:
    """``of`` applied to every cell by itself; ``missing`` where it raises.

    The class of a cell may be code that is not ours.
    """

    def one(cell: Any) -> Any:
        try:
            return of(cell)
        except BaseException as error:
            if isinstance(error, KeyboardInterrupt) and by_hand():
                raise
            return missing

    with QUIET:
        return apart(partial(list, map(one, cells)))


def _cells(values: Any, places: Iterable[int]) -> list[Any]:
    """Cells of a sequence; None where its class, which may make them now, raises."""
    if is_one_of(values, (list, tuple, range)):
        return [values[place] for place in places]
    return read(places, values.__getitem__, None)


def _number(cell: Any) -> float:
    """One cell of a list as a double; NaN for what is not a number."""
    if isinstance(cell, Real | Decimal | str | bytes | np.bool_):
        with np.errstate(all="ignore"):
            return float(cell)
    return math.nan
