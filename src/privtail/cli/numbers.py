"""The columns of numbers that a verb describes."""

from __future__ import annotations

from collections.abc import Collection
from typing import TYPE_CHECKING, Any

from privtail.cli.console import working
from privtail.cli.options import Persons, Written

if TYPE_CHECKING:
    from privtail.trusted.files import TableFile


def numbers_of(
    data: str, columns: Collection[str], purpose: str, numeric: Collection[str], written: Written,
    persons: Persons,
) -> tuple[TableFile, dict[str, Any]]:  # fmt: skip
    """The file with these columns, or all, less that of ``persons``; and whose its rows are.

    Raises
    ------
    InvalidInput
        If a column is missing, which is said with the ``purpose``, or the file cannot be read.
    """
    from privtail.trusted.files import TableFile

    with working(f"opening {data}"):
        dialect = written.dialect()
        table = TableFile(data, numeric=numeric, dialect=dialect)
        table.require(columns, purpose)
        left_out = [name for name in table.names if columns and name not in columns]
        table = TableFile(data, numeric=numeric, drop=left_out, dialect=dialect)
        owners = persons.of(table)
        table = table.without(persons.groups) if persons.groups in table.kept() else table
        table.require_rows()
    return table, owners
