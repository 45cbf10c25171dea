"""The door for tables: files to learn from, and from columns to features to predict.

Formal guarantee
----------------
None is needed and none is given: columns that were read are their owner's records again, to be
handed to a `Curator`; features are for prediction, and a prediction is as private as its row.
Learning goes through a `Curator` only.
"""

from __future__ import annotations

import shlex
from collections.abc import Collection, Iterator, Mapping, Sequence
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privtail.errors import InvalidInput
from privtail.schema.declared import Label
from privtail.schema.dialect import Dialect
from privtail.schema.encoding import PLAIN, Encoding
from privtail.trusted.cluster.spread import announced, is_spread
from privtail.trusted.records.arrays import (
    as_numbers,
    column_names,
    is_column,
    require_read,
    require_typed,
)
from privtail.trusted.records.files import (
    TableFile,
)
from privtail.trusted.records.queries import is_query
from privtail.trusted.records.tables import Table, require_categories
from privtail.trusted.records.targets import canonical_label

__all__ = [
    "TableFile",
    "canonical_label",
    "column_names",
    "feature_blocks",
    "is_column",
    "is_spread",
    "numeric_names",
    "open_table",
    "person_ids",
    "require_categories",
    "require_read",
    "require_typed",
    "table_blocks",
]

_BLOCK_ROWS = 8192


def open_table(
    path: Any,
    *,
    categories: Mapping[str, Sequence[Label]] | None = None,
    numeric: Collection[str] = (),
    drop: Collection[str] = (),
    scratch: str | Path | None = None,
    decimal: str = ".",
    thousands: str | None = None,
    separator: str | None = None,
    encoding: str = "utf-8",
    comment: str | None = None,
    partition_columns: Collection[str] = (),
) -> TableFile:
    """Parquet, CSV or Arrow files to fit on, read in blocks and never whole in memory.

    Many files are one table: their rows follow each other in the sorted order of the paths, so a
    fit gives the same bits as on one file or on a data frame of these rows. All files are of one
    format and have the same columns of the same types, as their footers or headers say; this is
    checked here, and no record decides it. Columns may stand in another order, and dictionaries
    may differ, since categories are declared. Files that are added to a folder later do not count.

    A column that one file holds without values (type null) has the type of the other files; whole
    numbers in one and doubles in another are doubles.

    Names of folders, such as ``year=2024/`` of Hive, are read only if they are declared: they tell
    who exists, and a statement says then that they are public.

    In folders and patterns, names that begin with ``.`` or ``_`` do not count. A URL such as
    ``s3://bucket/claims/`` is read by fsspec (``pip install 'privtail[remote]'``, and the package
    of that file system) or PyArrow, which look for keys where they usually do. Nobody may write to
    a file during a fit: that stops the fit, which stays charged; a change is seen by size, time,
    ETag or checksum.

    A polars ``LazyFrame`` or a ``pyarrow.dataset.Dataset`` may be any program, so it is run once,
    now, into a nameless file in ``scratch`` or else the folder for temporary files. The rows that
    it gives are the records, and how many they are is public, also after a filter.

    Parameters
    ----------
    path : path, list of paths, LazyFrame or Dataset
        A file; a folder, with the folders in it; a pattern such as ``claims/*.parquet`` (``**`` for
        folders of any depth); or a list of these. A CSV has a header; it may be compressed
        (``.csv.gz``, ``.csv.bz2``, ``.csv.zst``).
    categories : mapping of str to sequence, or None, default=None
        Column to its declared categories, one-hot encoded.
    numeric : collection of str, default=()
        Columns of numbers by declaration. A row with a cell that is no number does not count.
    drop : collection of str, default=()
        Columns to leave out. An index of pandas is left out unless it is declared.
    scratch : path or None, default=None
        A folder for a private copy that is decoded once, for many passes.
    decimal : str, default="."
        The decimal mark in numbers that are written as text, such as ``,`` in 1.234,5.
    thousands : str or None, default=None
        The mark between thousands, such as ``.`` in 1.234,5.
    separator : str or None, default=None
        The mark between the cells of a CSV. None finds ``,``, ``;`` and tab.
    encoding : str, default="utf-8"
        Of a CSV: a name that Python knows, such as ``utf-16`` or ``latin-1``.
    comment : str or None, default=None
        How lines of a CSV begin that are skipped above the header; below it they are rows without
        values.
    partition_columns : collection of str, default=()
        Columns that the names of folders hold: ``["year"]`` for ``year=2024/``.

    Returns
    -------
    TableFile
        For X of an estimator, with the name of the target column as y.

    Raises
    ------
    InvalidInput
        If this is no table, a declared column is missing, or the files differ; the error names
        the file and the column.

    Examples
    --------
    >>> import privtail
    >>> from privtail.data import ADULT
    >>> table = privtail.open_table(ADULT)
    >>> len(table.names)
    16

    A folder of files is opened in the same way:

    >>> import pyarrow.parquet as pq
    >>> import tempfile
    >>> from pathlib import Path
    >>> rows = pq.read_table(ADULT)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     pq.write_table(rows[:20_000], Path(folder, "part-0.parquet"))
    ...     pq.write_table(rows[20_000:], Path(folder, "part-1.parquet"))
    ...     privtail.open_table(folder).n == privtail.open_table(ADULT).n
    True
    """
    dialect = Dialect(
        decimal=decimal,
        thousands=thousands,
        separator=separator,
        encoding=encoding,
        comment=comment,
        partition_columns=partition_columns,
    )
    table = TableFile(
        path,
        categories=categories,
        numeric=numeric,
        drop=drop,
        scratch=scratch,
        dialect=dialect,
    )
    table.require_alike()
    return table


def person_ids(table: TableFile, column: str) -> NDArray[Any]:
    """Whose each row of a file is, (rows,), from a column that is read whole.

    Raises
    ------
    InvalidInput
        If there is no such column.
    """
    table.require([column], "of persons")
    return table.ids(column)


def numeric_names(data: Any, names: Sequence[str]) -> tuple[str, ...]:
    """Those of these columns that hold numbers by their type, which is public.

    Of a Dask collection by the type that it announces. A CSV has no types, and only its cells could
    say which columns are left out of an answer: so text in one is refused, as by a fit.

    Raises
    ------
    InvalidInput
        If a column of a CSV holds text.
    """
    if isinstance(data, TableFile):
        text = data.texts(names, data.numeric)
        if text and data.untyped:
            listed = ", ".join(map(repr, text))
            raise InvalidInput(
                f"{data.path} has text in {listed}, and a CSV has no types by which columns could "
                "be left out.",
                f"Leave them out yourself: open_table(path, drop=[{listed}]).",
                cli=f"Name those of numbers: --column {shlex.quote(_other(names, text))}",
            )
        return tuple(name for name in names if name not in text)
    columns = {name: data[name] for name in names}
    types = announced(columns) if is_spread(columns) else columns
    return tuple(name for name in names if as_numbers(types[name]).dtype.kind in "fiub")


def _other(names: Sequence[str], text: Sequence[str]) -> str:
    return next((str(name) for name in names if name not in text), "cost")


def feature_blocks(
    columns: Mapping[str, Any], categories: Mapping[str, Sequence[Label]],
    encoding: Encoding = PLAIN, fill: NDArray[np.float64] | None = None,
) -> Iterator[NDArray[np.float64]]:  # fmt: skip
    """Encode columns as a fit does, in blocks (rows, features); NaN where a number is missing.

    But for features that have a ``fill`` (features,): there missing numbers count as that.

    Raises
    ------
    InvalidInput
        If a column is neither numeric nor has declared categories.
    """
    table = Table(columns, categories, encoding)
    one, zero = np.ones(table.d), np.zeros(table.d)
    for start in range(0, table.n, _BLOCK_ROWS):
        block = table.rows(slice(start, start + _BLOCK_ROWS)).transformed(one, zero)
        yield block if fill is None else np.where(np.isnan(block), fill, block)


def table_blocks(
    data: Any, names: Sequence[str], categories: Mapping[str, Sequence[Label]],
    encoding: Encoding = PLAIN, fill: NDArray[np.float64] | None = None,
) -> Iterator[NDArray[np.float64]]:  # fmt: skip
    """The columns of these names of any table, as `feature_blocks`; others are left out.

    ``data`` is a file or query, or what `open_table` gives of it, a data frame, an Arrow table, or
    a mapping of columns.

    Raises
    ------
    InvalidInput
        If it is none of these, a column is missing, or one holds text where numbers are needed.
    """
    if not is_query(data):
        require_read(data)
    numbers = [name for name in names if name not in categories]
    if isinstance(data, str | PathLike) or is_query(data):
        data = TableFile(data, numeric=numbers, categories=categories)
    if isinstance(data, TableFile):
        data.require(names, "that the model was fitted on")
        categories = {name: data.typed(name, listed) for name, listed in categories.items()}
        for block in column_blocks(data, numbers, categories):
            columns = {name: block[name] for name in names}
            yield from feature_blocks(columns, categories, encoding, fill)
        return
    present = {str(name): name for name in column_names(data) or ()}
    if not present:
        raise InvalidInput(
            f"The model finds columns by name, and {type(data).__name__} has none. Pass a data "
            "frame, an Arrow table, a mapping of columns, or a file."
        )
    missing = [name for name in names if name not in present]
    if missing:
        raise InvalidInput(
            f"The data have no column {', '.join(map(repr, missing))}, which the model was "
            "fitted on. Columns are found by name: rename what was renamed."
        )
    columns = {name: data[present[name]] for name in names}
    yield from feature_blocks(columns, categories, encoding, fill)


def column_blocks(
    file: TableFile, numbers: Sequence[str], categories: Mapping[str, Sequence[Label]]
) -> Iterator[dict[str, Any]]:
    """Columns of a file in blocks of rows, for `feature_blocks`; the file is read once.

    Raises
    ------
    InvalidInput
        If the file is damaged, or was written to meanwhile.
    """
    file.require_readable(numbers)
    names = [*numbers, *categories]
    for batch in file.batches(names, set(categories)):
        cells = dict(zip(names, batch.columns, strict=True))
        yield {name: file.numbers(name, cells[name]) for name in numbers} | {
            name: file.labels(name, cells[name], listed) for name, listed in categories.items()
        }
