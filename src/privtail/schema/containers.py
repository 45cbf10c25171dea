"""Refusals of containers by their class and type: what happened, and what to pass instead."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from privtail.errors import InvalidInput, told


def named_column(option: str, name: str) -> InvalidInput:
    """A name stands where only a file has columns by name."""
    return InvalidInput(
        f"{option}={name!r} names a column, which goes with a file: privtail.open_table(path). Of "
        f'a data frame pass two parts: X=frame.drop(columns=["{name}"]), {option}=frame["{name}"].'
    )


def without_groups(max_rows: object) -> InvalidInput:
    """``max_rows`` was given, and nobody says which rows belong to one person."""
    return InvalidInput(
        f"max_rows={told(max_rows)} bounds the rows of one person, and groups does not say "
        "whose row is whose. Pass groups= as well: one person id per row."
    )


def without_max_rows() -> InvalidInput:
    """Persons are named, and nobody says how many rows of one count."""
    return InvalidInput(
        "groups needs max_rows: how many rows of one person may count, for example max_rows=5. "
        "Noise grows with it; further rows of a person are left out."
    )


def not_csr() -> InvalidInput:
    """A sparse matrix of another format."""
    return InvalidInput(
        "A sparse matrix must be a CSR matrix of SciPy: use scipy.sparse.csr_array(X)."
    )


def sparse_column() -> InvalidInput:
    """A sparse matrix where one column is needed."""
    return InvalidInput(
        "A target, an exposure and ids cannot be sparse: pass a dense column, y.toarray().ravel()."
    )


def repeated(names: Iterable[object]) -> InvalidInput:
    """Two columns of one name."""
    name, _ = Counter(map(str, names)).most_common(1)[0]
    return InvalidInput(
        f"Two columns have the name {name!r}. Column names must be distinct: rename one, or leave "
        "it out."
    )


def masked() -> InvalidInput:
    """A masked array of NumPy."""
    return InvalidInput(
        "Masked arrays are not accepted: their hidden values would count. Use x.filled(nan)."
    )


def not_run(kind: str, call: str) -> InvalidInput:
    """A query of polars or Arrow that nobody has run."""
    return InvalidInput(
        f"A {kind} is a query that was not run yet: call {call}() first. If its rows are more "
        "than memory holds, pass what privtail.open_table gives of it."
    )


def without_positions(kind: str) -> InvalidInput:
    """A set, or an iterator."""
    return InvalidInput(
        f"A container of type {kind} has no rows that can be read by their number. Make it a list, "
        "list(x), or an array."
    )


def list_of_rows() -> InvalidInput:
    """A list of rows, each of which would say how many columns there are."""
    return InvalidInput(
        "X is a list of rows, so the number of its columns is not public: it would depend on a "
        "row. Pass an array, X=numpy.array(X, dtype=float), or named columns, such as a data "
        "frame."
    )


def several_columns(count: int) -> InvalidInput:
    """A table where one column is needed."""
    return InvalidInput(
        f'One column is needed here, and this table has {count}. Pass frame["cost"].'
    )


def no_labels(kind: object, beside: str = "") -> InvalidInput:
    """A column of labels whose type is none of labels."""
    return InvalidInput(
        f"A column of labels or ids holds values of type {kind}{beside}, not numbers or text. Turn "
        "it into one of these."
    )


def no_array(kind: str) -> InvalidInput:
    """A container that NumPy cannot read."""
    return InvalidInput(
        f"A container of type {kind} cannot be read as an array of NumPy. Pass an array, a data "
        "frame, or a list for each column."
    )


def class_unknown(kind: str) -> InvalidInput:
    """A container of which an array is made by code that no known library holds."""
    return InvalidInput(
        f"A container of type {kind} is of a class that is not known here, and what an array of it "
        "holds may depend on one cell. Pass what it wraps, a list, list(x), or an array of a type "
        "that you choose, numpy.asarray(x, dtype=float)."
    )


def derived(kind: str, library: str, base: str) -> InvalidInput:
    """A container of a class that somebody derived from one of a library."""
    mend = f"{library}.{base}(x)" if base in ("DataFrame", "Series") else "list(x)"
    mend = {
        "dask": "x.map_partitions(pandas.DataFrame)",
        "numpy": "numpy.asarray(x)",
        "pyarrow": "x.storage",
    }.get(library, mend)
    return InvalidInput(
        f"The class {kind} is derived from {base} of {library}, and its own code may let one cell "
        f"decide what is read. Pass one of {library} itself: {mend}."
    )


def shared_values() -> InvalidInput:
    """A container of which one row holds what other rows hold."""
    return InvalidInput(
        "The model would see more than one row at a time. These list the values of all rows: a "
        "categorical column, a dictionary or a view of Arrow, an index of several levels, and a "
        "nested column of polars. Pass text, "
        'frame.astype({"column": "str"}); decoded columns of Arrow, '
        "column.cast(column.type.value_type); and frame.reset_index(). Or say "
        "trusted_rowwise=True, if a prediction depends on its own row alone."
    )
