"""``privtail compare``: which of two models predicts private rows better."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from privtail.cli.console import deliver, releasing, working
from privtail.cli.held_out import Exposure, Target, held_out
from privtail.cli.options import (
    Chance,
    Confidence,
    Data,
    Output,
    Persons,
    Promise,
    Written,
    file_option,
)
from privtail.spelling import counted


def compare(
    first: Annotated[
        Path, typer.Argument(metavar="FIRST", show_default=False, help="A file of privtail fit.")
    ],
    second: Annotated[
        Path, typer.Argument(metavar="SECOND", show_default=False, help="Another one.")
    ],
    data: Data,
    written: Written,
    promise: Promise,
    persons: Persons,
    chance: Chance,
    output: Output,
    target: Target = None,
    exposure: Exposure = None,
    confidence: Confidence = 0.95,
    out: Annotated[
        Path | None,
        file_option("Write the difference, its interval and their statement, as JSON."),
    ] = None,
) -> None:
    r"""Find out which of two models predicts held-out rows better.

    The difference of the mean losses, with an interval and a p-value: of absolute errors for
    numbers, of log losses for labels. Losses of a row are subtracted before they are averaged, so
    the difference is known better than from two evaluations, and for one budget. Columns are found
    by name; others are ignored.

    For example:
      privtail compare model.json other.json held-out.parquet --epsilon 0.5
      privtail compare model.json other.json held-out.csv --epsilon 1 --out compared.json
    """
    from privtail import evaluation, load

    budget, account = promise.budget, promise.account
    output.require_free(out, first, second, data, promise.ledger)
    models = {file: load(file) for file in (first, second)}
    one, other = models[first], models[second]
    with working("opening the table"):
        column = one.target if target is None else target
        exposure = one.exposure if exposure is None else exposure
        table = held_out(models, data, column, exposure, written)
        rows = table.n
    told = f"{table.path}: {counted(rows, 'row')}; {first} and {second}"
    with releasing("comparing", told, budget, chance.noise, rows, account):
        found = evaluation.compare(
            one, other, table, column, confidence=confidence, ledger=account, exposure=exposure,
            **promise.arguments, **chance.arguments, **persons.of(table),
        )  # fmt: skip
    content = {
        "first": str(first), "second": str(second), "n": rows, "confidence": confidence,
        **found.to_dict(),
    }  # fmt: skip
    deliver("comparison", str(found), found.privacy_, content, out, overwrite=output.force)
