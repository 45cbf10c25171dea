"""``privtail summarize``: what every column of a table holds."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from privtail.cli.console import releasing, say, show_bought, working
from privtail.cli.options import (
    Chance,
    Data,
    Numeric,
    Output,
    Persons,
    Promise,
    Written,
    counted,
)
from privtail.errors import InvalidInput

if TYPE_CHECKING:
    from privtail.describe.summary import Summary


def summarize(
    data: Data,
    written: Written,
    promise: Promise,
    persons: Persons,
    chance: Chance,
    output: Output,
    column: Annotated[
        list[str] | None,
        typer.Option(
            metavar="COLUMN",
            show_default="every column of numbers",
            help="A column of numbers. Repeat it.",
        ),
    ] = None,
    numeric: Numeric = None,
    confidence: Annotated[float, typer.Option(help="Of the intervals, between 0 and 1.")] = 0.95,
    out: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            show_default=False,
            help="Write a page for readers (.html), or the numbers and their statement (.json).",
        ),
    ] = None,
) -> None:
    r"""Summarize every column of numbers: a private describe().

    Of each column: how many cells hold a number, their mean, standard deviation and quartiles, and
    the shares of zeros and of missing cells, with intervals. All columns share one budget, and no
    bound on the data is needed. The page is one file with nothing to load.

    For example:
      privtail summarize claims.csv --epsilon 1 --out summary.html
      privtail summarize claims.csv --column cost --column days --epsilon 0.5 \
        --out summary.json
    """
    from privtail.describe.summary import summarize as summarized
    from privtail.trusted.tables import TableFile

    budget, account = promise.budget, promise.account
    output.require_free(out, data, promise.ledger)
    if out is not None and out.suffix not in (".html", ".json"):
        raise InvalidInput(f"{out} needs a name that ends with .html or .json.")
    with working(f"opening {data}"):
        dialect = written.dialect()
        table = TableFile(data, numeric=numeric or (), dialect=dialect)
        table.require(column or (), "to summarize")
        left_out = [name for name in table.names if column and name not in column]
        table = TableFile(data, numeric=numeric or (), drop=left_out, dialect=dialect)
        owners = persons.of(table)
        table = table.without(persons.groups) if persons.groups in table.kept() else table
        rows = table.n
    told = f"{data}: {counted(rows, 'row')}"
    with releasing("summarizing", told, budget, chance.noise, rows, account):
        found = summarized(
            table, confidence=confidence, ledger=account, **promise.arguments, **chance.arguments,
            **owners,
        )  # fmt: skip
    show_bought(f"{found}\n\n{found.privacy_}", "summary")
    for text in found.warnings_:
        say(f"\nWarning. {text}")
    if out is not None:
        _save(found, out, overwrite=output.force)
        say(f"\nwrote {out}")


def _save(found: Summary, out: Path, *, overwrite: bool) -> None:
    """Write a page, or JSON, by the name of the file."""
    from privtail.reporting import content_of, page
    from privtail.written import written_whole

    content = {"format": "privtail-summary", "version": 1, **found.to_dict()}
    content["warnings"] = list(found.warnings_)
    text = json.dumps(content, indent=1, ensure_ascii=False)
    if out.suffix == ".html":
        text = page([content_of(content, out.with_suffix(".json"))], "Private summary")
    with written_whole(out, overwrite=overwrite) as file:
        file.write(text.encode() + b"\n")
