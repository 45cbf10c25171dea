"""``privtail summarize``: what every column of a table holds."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from privtail.cli.console import deliver, releasing, say
from privtail.cli.numbers import numbers_of
from privtail.cli.options import (
    Chance,
    Confidence,
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
            help="A column of numbers. Can be repeated.",
        ),
    ] = None,
    numeric: Numeric = None,
    confidence: Confidence = 0.95,
    out: Annotated[
        Path | None,
        file_option("Write the numbers and their statement (.json), or these and a page (.html)."),
    ] = None,
) -> None:
    r"""Summarize every column of numbers: a private describe().

    It prints for each column how many cells hold a number, their mean, standard deviation and
    quartiles, and the shares of zeros and of missing cells, with intervals. All columns share one
    budget, and no bound on the data is needed. For a CSV with columns of text, name the columns of
    numbers by --column. With --out summary.html it writes one page.

    For example:
      privtail summarize claims.csv --epsilon 1 --out summary.html
      privtail summarize claims.csv --column cost --column days --epsilon 0.5 \
        --out summary.json
    """
    from privtail.describe.summary import summarize as summarized

    budget, account = promise.budget, promise.account
    output.require_free(out, data, promise.ledger)
    if out is not None and out.suffix not in (".html", ".json"):
        raise InvalidInput(f"{out} needs a name that ends with .html or .json.")
    if out is not None:
        output.require_free(out.with_suffix(".json"), data, promise.ledger)
    table, owners = numbers_of(data, column or (), "to summarize", numeric or (), written, persons)
    told = f"{data}: {counted(table.n, 'row')}"
    with releasing("summarizing", told, budget, chance.noise, table.n, account):
        found = summarized(
            table, confidence=confidence, ledger=account, **promise.arguments, **chance.arguments,
            **owners,
        )  # fmt: skip
    content = {**found.to_dict(), "warnings": list(found.warnings_)}
    deliver(
        "summary", str(found), found.privacy_, content, out and out.with_suffix(".json"),
        overwrite=output.force, warned=found.warnings_,
    )  # fmt: skip
    if out is not None and out.suffix == ".html":
        _write_page(out, overwrite=output.force)


def _write_page(out: Path, *, overwrite: bool) -> None:
    """Write the page about the JSON file of this name, which stands beside it."""
    from privtail.reporting import page, read_content
    from privtail.written import written_whole

    text = page([read_content(out.with_suffix(".json"))], "Private summary")
    with written_whole(out, overwrite=overwrite) as file:
        file.write(text.encode() + b"\n")
    say(f"wrote {out}")
