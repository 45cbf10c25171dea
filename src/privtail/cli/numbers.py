"""The columns that a verb describes."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Any

import typer

from privtail.cli.console import working
from privtail.cli.options import Persons, Written
from privtail.cli.schema import Label, named_values
from privtail.errors import InvalidInput

if TYPE_CHECKING:
    from privtail.trusted.files import TableFile

By = Annotated[
    list[str] | None,
    typer.Option(
        metavar="COLUMN=A,B,C",
        show_default=False,
        help="One result for each of these values of a column. Rows with other values are in no "
        "group. Repeat it for a second column.",
    ),
]


def groups_of(by: Sequence[str] | None) -> dict[str, tuple[Label, ...]]:
    """Column -> its categories, of ``--by``; raises InvalidInput."""
    found: dict[str, tuple[Label, ...]] = {}
    for text in by or ():
        name, values = named_values(text, "--by")
        found[name] = (*found.get(name, ()), *values)
    if len(found) > 2:
        raise InvalidInput("Groups are of one column or of two. Leave a --by out.")
    return found


def numbers_of(
    data: str, columns: Collection[str], purpose: str, numeric: Collection[str], written: Written,
    persons: Persons, by: Mapping[str, Sequence[Label]] | None = None,
) -> tuple[TableFile, dict[str, Any]]:  # fmt: skip
    """The file with these columns, or all, less that of ``persons``; and whose its rows are.

    With ``by`` no others than these columns and those to group by.

    Raises
    ------
    InvalidInput
        If a column is missing, which is said with the ``purpose``, or holds text; or the file
        cannot be read.
    """
    from privtail.trusted.files import TableFile

    by = by or {}
    with working(f"opening {data}"):
        dialect = written.dialect()
        table = TableFile(data, numeric=numeric, dialect=dialect)
        table.require(columns, purpose)
        table.require(by, "to group by")
        kept = {*columns, *by}
        left_out = [name for name in table.names if kept and name not in kept]
        numeric = [*numeric, *(name for name in table.index if name in columns)]
        table = TableFile(data, categories=by, numeric=numeric, drop=left_out, dialect=dialect)
        for name in columns:
            table.require_numeric(name)
        owners = persons.of(table)
        table = table.without(persons.groups) if persons.groups in table.kept() else table
        table.require_rows()
    return table, owners
