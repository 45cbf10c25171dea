"""``privtail histogram``: how many rows lie in each bin of a column."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from privtail.cli.console import deliver, releasing
from privtail.cli.numbers import numbers_of
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


def histogram(
    data: Data,
    written: Written,
    column: Annotated[
        list[str], typer.Option(metavar="COLUMN", show_default=False, help="A column of numbers.")
    ],
    promise: Promise,
    persons: Persons,
    chance: Chance,
    output: Output,
    bins: Annotated[
        int | None, typer.Option(metavar="K", show_default="20", help="How many bins.")
    ] = None,
    edge: Annotated[
        list[float] | None,
        typer.Option(
            metavar="NUMBER",
            show_default=False,
            help="An edge of a bin, in ascending order. Repeat it. Without edges a part of the "
            "budget finds them.",
        ),
    ] = None,
    numeric: Numeric = None,
    out: Annotated[
        Path | None,
        file_option("Write edges, counts, intervals and the statement, as JSON."),
    ] = None,
) -> None:
    r"""Release a private histogram of one column.

    No bound on the data is needed. Without --edge, bins of equal width lie between two private
    quantiles, which cost 30 % of the budget. What lies outside of the bins is counted, too. Missing
    cells count nowhere.

    For example:
      privtail histogram claims.csv --column cost --epsilon 1
      privtail histogram claims.csv --column cost --edge 0 --edge 1 --edge 10 \
        --epsilon 0.5 --out histogram.json
    """
    from privtail import private_histogram

    budget, account = promise.budget, promise.account
    if edge and bins is not None:
        raise InvalidInput("Edges say how many bins there are. Leave --bins out, or --edge.")
    if len(column) > 1:
        raise InvalidInput("A histogram is of one --column. Run the command once for each.")
    output.require_free(out, data, promise.ledger)
    table, owners = numbers_of(data, column, "for a histogram", numeric or (), written, persons)
    told = f"{data}: {counted(table.n, 'row')}; histogram of {column[0]}"
    with releasing("counting", told, budget, chance.noise, table.n, account):
        found = private_histogram(
            table, 20 if bins is None else bins, edges=edge or None, ledger=account,
            **promise.arguments, **chance.arguments, **owners,
        )  # fmt: skip
    deliver(
        "histogram", str(found), found.privacy_, {"column": column[0], **found.to_dict()}, out,
        overwrite=output.force, warned=found.warnings_,
    )  # fmt: skip
