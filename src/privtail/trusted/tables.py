"""The door for tables: files to learn from, and from columns to features to predict.

Formal guarantee
----------------
None is needed and none is given: columns that were read are their owner's records again, to be
handed to a `Curator`; features are for prediction, and a prediction is as private as its row.
Learning goes through a `Curator` only.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from os import PathLike
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from privtail.dask_collections import announced, is_spread
from privtail.errors import InvalidInput
from privtail.schema.containers import repeated
from privtail.schema.declared import Label, require_categories
from privtail.schema.encoding import PLAIN, Encoding
from privtail.storage.queries import is_query
from privtail.trusted.records import InMemory, is_file, named
from privtail.trusted.records.arrays import (
    as_numbers,
    column_names,
    is_column,
    require_read,
    require_typed,
)
from privtail.trusted.records.tables import Table
from privtail.trusted.records.targets import canonical_label

if TYPE_CHECKING:
    from privtail.trusted.files import TableFile

__all__ = [
    "canonical_label",
    "column_blocks",
    "column_names",
    "holds_numbers",
    "is_column",
    "is_file",
    "named",
    "person_ids",
    "repeated",
    "require_categories",
    "require_read",
    "require_typed",
    "row_blocks",
    "table_blocks",
    "without_persons",
]

_BLOCK_ROWS = 8192


def person_ids(table: TableFile, column: str) -> NDArray[Any]:
    """Whose each row of a file is, (rows,), from a column that is read whole.

    Raises
    ------
    InvalidInput
        If there is no such column.
    """
    table.require([column], "of persons")
    return table.ids(column)


def without_persons(X: Any, groups: Any) -> tuple[Any, Any]:
    """A file without the column of persons that ``groups`` names, and their ids.

    Other data and groups stay as they are.
    """
    if is_file(X) and isinstance(groups, str):
        return X.without(groups), person_ids(X, groups)
    return X, groups


def holds_numbers(columns: Mapping[str, Any]) -> dict[str, bool]:
    """Whether columns hold numbers by their type; of a Dask collection by what it announces."""
    types = announced(columns) if is_spread(columns) else columns
    return {name: as_numbers(column).dtype.kind in "fiub" for name, column in types.items()}


def row_blocks(
    records: InMemory, fill: NDArray[np.float64] | None
) -> Iterator[NDArray[np.float64]]:
    """Features of rows in memory, in blocks; missing numbers count as ``fill``, if it is given."""
    one, zero = np.ones(records.d), np.zeros(records.d)
    for start in range(0, records.n, _BLOCK_ROWS):
        ids = slice(start, min(start + _BLOCK_ROWS, records.n))
        block = records.rows(ids).transformed(one, zero)
        yield block if fill is None else np.where(np.isnan(block), fill, block)


def table_blocks(
    data: Any, names: Sequence[str], categories: Mapping[str, Sequence[Label]],
    encoding: Encoding = PLAIN, fill: NDArray[np.float64] | None = None,
) -> Iterator[NDArray[np.float64]]:  # fmt: skip
    """The columns of these names of any table, encoded as a fit does, in blocks (rows, features).

    Missing numbers are NaN, but for features that have a ``fill`` (features,). ``data`` is a file
    or query, or what `open_table` gives of it, a data frame, an Arrow table, or a mapping of
    columns. Other columns are left out.

    Raises
    ------
    InvalidInput
        If it is none of these, a column is missing, or one holds text where numbers are needed.
    """
    if not is_query(data):
        require_read(data)
    numbers = [name for name in names if name not in categories]
    if isinstance(data, str | PathLike) or is_query(data):
        from privtail.trusted.files import TableFile

        data = TableFile(data, numeric=numbers, categories=categories)
    if is_file(data):
        data.require(names, "that the model was fitted on")
        categories = {name: data.typed(name, listed) for name, listed in categories.items()}
        kinds = {n: data.schema.element(n) if n in categories else float for n in names}
        empty = {name: np.empty(0, kind) for name, kind in kinds.items()}
        whole = Table(empty, categories, encoding)  # read once: what a block is, other rows decide
        for block in column_blocks(data, numbers, categories):
            yield from row_blocks(whole.like([block[name] for name in names]), fill)
        return
    present = {str(name): name for name in column_names(data) or ()}
    if not present:
        raise InvalidInput(
            f"The model finds columns by name, and {type(data).__name__} has none. Pass a data "
            "frame (frame.iloc[[0]] is one row), an Arrow table, a mapping of columns, or a file."
        )
    missing = [name for name in names if name not in present]
    if missing:
        raise InvalidInput(
            f"The data have no column {', '.join(map(repr, missing))}, which the model was "
            "fitted on. Columns are found by name: rename what was renamed."
        )
    columns = {name: data[present[name]] for name in names}
    yield from row_blocks(Table(columns, categories, encoding), fill)


def column_blocks(
    file: TableFile, numbers: Sequence[str], categories: Mapping[str, Sequence[Label]]
) -> Iterator[dict[str, Any]]:
    """Columns of a file in blocks of rows, for `Table.like`; the file is read once.

    Raises
    ------
    InvalidInput
        If the file is damaged, or was written to meanwhile.
    """
    file.require_readable(numbers)
    names = [*numbers, *categories]
    for batch in file.batches(names, set(categories)):
        cells = dict(zip(names, batch.columns, strict=True))
        yield {name: file.numbers(cells[name]) for name in numbers} | {
            name: file.labels(name, cells[name], listed) for name, listed in categories.items()
        }
