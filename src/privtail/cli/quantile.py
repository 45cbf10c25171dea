"""``privtail quantile``: private quantiles of columns."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from privtail.cli.console import deliver, releasing
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
from privtail.spelling import counted, finite_or_none

if TYPE_CHECKING:
    from privtail.describe.estimates import QuantileEstimate


def quantile(
    data: Data,
    written: Written,
    column: Annotated[
        list[str],
        typer.Option(
            metavar="COLUMN", show_default=False, help="A column of numbers. Can be repeated."
        ),
    ],
    promise: Promise,
    persons: Persons,
    chance: Chance,
    output: Output,
    level: Annotated[
        list[float] | None,
        typer.Option(
            metavar="LEVEL",
            show_default="0.25, 0.5 and 0.75",
            help="Which quantile, between 0 and 1. Can be repeated.",
        ),
    ] = None,
    numeric: Numeric = None,
    confidence: Confidence = 0.95,
    out: Annotated[
        Path | None,
        file_option("Write the quantiles, their intervals and their statement, as JSON."),
    ] = None,
) -> None:
    r"""Release private quantiles of columns, such as medians.

    All columns and levels share one budget, and no bound on the data is needed. A missing cell is
    left out of its own column alone. The intervals are for the population.

    For example:
      privtail quantile claims.csv --column cost --epsilon 1
      privtail quantile claims.csv --column cost --column days \
        --level 0.5 --level 0.9 --epsilon 1 --out quantiles.json
    """
    from privtail import private_quantile

    budget, account = promise.budget, promise.account
    output.require_free(out, data, promise.ledger)
    table, owners = numbers_of(
        data, column, "to take quantiles of", numeric or (), written, persons
    )
    told = f"{data}: {counted(table.n, 'row')}"
    levels = {} if level is None else {"levels": level}
    with releasing("taking quantiles", told, budget, chance.noise, table.n, account):
        found = private_quantile(
            table, confidence=confidence, ledger=account, **levels, **promise.arguments,
            **chance.arguments, **owners,
        )  # fmt: skip
    said = f"[...] is a {100 * confidence:g} % interval for the quantile of the population"
    deliver(
        "quantile", f"{found}\n{said}", found.privacy_, _content(found), out,
        overwrite=output.force, warned=found.warnings_,
    )  # fmt: skip


def _content(found: QuantileEstimate) -> dict[str, Any]:
    """What the output file says; an end that is not known is None."""
    return {
        "quantiles": {
            name: [
                {"level": level, **{name: finite_or_none(x) for name, x in facts.items()}}
                for level, facts in levels.items()
            ]
            for name, levels in found.to_dict().items()
        },
        "confidence": found.confidence,
        "warnings": list(found.warnings_),
        "statement": found.privacy_.to_json(),
    }
