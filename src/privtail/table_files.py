"""Files of tables, to fit and to predict on: how a user opens them."""

from __future__ import annotations

import math
import os
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from privtail.errors import InvalidInput
from privtail.schema.declared import Label
from privtail.schema.dialect import Dialect
from privtail.trusted.events import SMOOTH, Event, Plan

if TYPE_CHECKING:
    from privtail.trusted.files import TableFile


def open_table(
    path: Any,
    *,
    categories: Mapping[str, Sequence[Label]] | None = None,
    numeric: Collection[str] = (),
    drop: Collection[str] = (),
    columns: Collection[str] | None = None,
    scratch: str | Path | None = None,
    decimal: str = ".",
    thousands: str | None = None,
    separator: str | None = None,
    encoding: str = "utf-8",
    comment: str | None = None,
    partition_columns: Collection[str] = (),
) -> TableFile:
    """Open Parquet, CSV or Arrow files as one table, which is read in blocks.

    Many files are one table: their rows follow each other in the sorted order of the paths. Apart
    from the noise, a fit gives the same result, to the last bit, as on one file or on a data frame
    of these rows. All files have one format and the same columns of the same types, as their
    footers or headers say. This is checked here, without a look at the rows. Columns may stand in
    another order, and dictionaries may differ, since categories are declared. Files that are added
    to a folder later do not count.

    If a column has no values in one file (type null), it has the type of the other files. If it
    holds whole numbers in one file and doubles in another, it holds doubles, and cannot hold ids of
    persons.

    Names of folders, such as ``year=2024/`` of Hive, show which values occur. They are read only if
    they are declared, and a statement then says that they are public.

    In folders and patterns, names that begin with ``.`` or ``_`` do not count. A URL such as
    ``s3://bucket/claims/`` is read by fsspec (``pip install 'privtail[remote]'``, and the package
    of that file system) or PyArrow, which look for keys where they usually do. Do not write to a
    file during a fit: a change, seen by size, time, ETag or checksum, stops the fit, which stays
    charged.

    A polars ``LazyFrame`` or a ``pyarrow.dataset.Dataset`` may be any program. So it is run once,
    now, and its rows go to a file without a name in ``scratch``, or in the folder for temporary
    files. These are the rows of the table, and their number is public, also after a filter.

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
    columns : collection of str or None, default=None
        The only columns to keep; None for all that are not in ``drop``. A target need not be among
        them.
    scratch : path or None, default=None
        A folder for a private copy that is decoded once, for many passes.
    decimal : str, default="."
        The decimal mark in numbers that are written as text, such as ``,`` in 1.234,5.
    thousands : str or None, default=None
        The mark between thousands, such as ``.`` in 1.234,5.
    separator : str or None, default=None
        The mark between the cells of a CSV. None finds ``,``, ``;`` and tab.
    encoding : str, default="utf-8"
        Encoding of a CSV, by a name that Python knows, such as ``utf-16`` or ``latin-1``.
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
    from privtail.trusted.files import TableFile

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
    if columns is not None:
        table = _only(table, columns)
    for name in table.kept():
        table.schema.type(name)  # which refuses one that differs between the files
    return table


def opened(data: Any) -> Any:
    """A path as a table; other data as they are."""
    return open_table(data) if isinstance(data, str | os.PathLike) else data


def _only(table: TableFile, columns: Collection[str]) -> TableFile:
    """The table without its other columns."""
    if isinstance(columns, str) or not (columns := tuple(columns)):
        raise InvalidInput(
            f"columns must be a list of columns, such as columns=[{columns or 'cost'!r}]."
        )
    table.require(columns, "to be kept")
    names = table.kept()
    if lost := [name for name in columns if name not in names]:
        raise InvalidInput(
            f"Column {lost[0]!r} is to be kept, but it is left out: it is in drop, or an index of "
            f"pandas. Take it out of drop, or declare an index by numeric=[{lost[0]!r}]."
        )
    for name in names:
        table = table if name in columns else table.without(name)
    return table


def passes(file: TableFile, plan: Plan) -> int:
    """How many times a fit of this plan will decode a file, at most: once a release.

    Peeling, which releases a support and its values from one question, needs fewer. Trimmed means
    and functions on parts keep numbers of every row, and decode the file once for every 256 MB of
    them. A CSV has been read once more, to count its rows. A scratch copy is decoded once in all.
    """
    if file.scratch is not None:
        return 1
    return sum(r.times * _sweeps(file, e) for r in plan for e in r.events)


def _sweeps(file: TableFile, event: Event) -> int:
    """How many times one release decodes the file."""
    if event.law not in SMOOTH:
        return 1 + math.isinf(event.unit)
    from privtail.trusted.smooth.questions import sweeps

    if event.law == "laplace_lognormal":
        return min(event.coordinates, sweeps(file.n, event.coordinates))
    width = sum(len(file.categories.get(name, "1")) for name in file.names)
    return sweeps(file.n, width)
