"""``privtail count``: how many rows there are."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from privtail.cli.console import deliver, releasing
from privtail.cli.numbers import By, groups_of, numbers_of
from privtail.cli.options import (
    Chance,
    Data,
    Numeric,
    Output,
    Persons,
    Promise,
    Written,
    file_option,
)
from privtail.errors import InvalidInput
from privtail.spelling import counted

if TYPE_CHECKING:
    from privtail.describe.estimates import CountEstimate


def count(
    data: Data,
    written: Written,
    promise: Promise,
    persons: Persons,
    chance: Chance,
    output: Output,
    by: By = None,
    column: Annotated[
        list[str] | None,
        typer.Option(
            metavar="COLUMN",
            show_default="every column of numbers",
            help="A row counts if it has a number in this column. Can be repeated.",
        ),
    ] = None,
    numeric: Numeric = None,
    out: Annotated[
        Path | None,
        file_option("Write the counts, their intervals and their statement, as JSON."),
    ] = None,
) -> None:
    r"""Release a private count of rows, or of the rows of each category.

    A row counts if it has a number in every column of numbers. With --by the rows of each category
    are counted, whatever other columns hold. A row is in one group at most, so all groups share one
    budget.

    For example:
      privtail count claims.csv --column cost --epsilon 0.5
      privtail count loans.parquet --by job=clerk,cook --epsilon 1
      privtail count loans.parquet --by job=clerk,cook --by late=no,yes \
        --epsilon 1 --out counts.json
    """
    from privtail import private_count

    budget, account, categories = promise.budget, promise.account, groups_of(by)
    if categories and column:
        raise InvalidInput(
            "With --by a row counts whatever its numbers are. Leave --column out, or --by."
        )
    output.require_free(out, data, promise.ledger)
    table, owners = numbers_of(
        data, column or (), "to count", numeric or (), written, persons, categories
    )
    told = f"{data}: {counted(table.n, 'row')}"
    with releasing("counting", told, budget, chance.noise, table.n, account):
        found = private_count(
            table, by=list(categories) or None, categories=categories or None, ledger=account,
            **promise.arguments, **chance.arguments, **owners,
        )  # fmt: skip
    deliver(
        "count", str(found), found.privacy_, _content(found, list(categories)), out,
        overwrite=output.force, warned=found.warnings_,
    )  # fmt: skip


def _content(found: CountEstimate, by: list[str]) -> dict[str, Any]:
    """What the output file says."""
    ends = found.conf_int().reshape(-1, 2)
    values = found.value if found.groups else [found.value]
    counts = [
        {"group": list(group), "value": float(value), "low": float(low), "high": float(high)}
        for group, value, (low, high) in zip(found.groups or ((),), values, ends, strict=True)
    ]
    return {
        "by": by, "counts": counts, "confidence": 0.95,
        "noise_std": found.noise_std, "warnings": list(found.warnings_),
        "statement": found.privacy_.to_json(),
    }  # fmt: skip
