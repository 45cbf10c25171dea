"""``privtail budget``: start a ledger, or show what is left."""

from __future__ import annotations

import math
import shlex
from pathlib import Path
from typing import Annotated, Literal

import typer

from privtail.cli.console import show
from privtail.errors import InvalidInput


def budget(
    file: Annotated[Path, typer.Argument(metavar="FILE", show_default=False, help="The ledger.")],
    epsilon: Annotated[
        float | None, typer.Option(show_default=False, help="Start the ledger with this total.")
    ] = None,
    delta: Annotated[
        float | None, typer.Option(show_default=False, help="Total δ; keep it at most 1/(10 rows).")
    ] = None,
    neighbours: Annotated[
        Literal["replace_one", "zero_out"] | None,
        typer.Option(
            show_default="replace_one", help="Which two tables the promise compares, for every fit."
        ),
    ] = None,
    composition: Annotated[
        Literal["basic", "zcdp", "gdp"] | None,
        typer.Option(
            show_default="basic", help="How costs add; zcdp and gdp admit more small fits."
        ),
    ] = None,
    data_set: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            show_default=False,
            help="The data set of the ledger. Others are refused.",
        ),
    ] = None,
    analyst: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME=ε",
            show_default=False,
            help="An analyst, and the ε that they may spend in all. Can be repeated.",
        ),
    ] = None,
) -> None:
    r"""Start a ledger, or show what is left.

    A ledger holds the total that may ever be spent on one data set. A command with --ledger FILE
    is charged before it reads a row, and refused (exit code 3) if too little is left. Nothing is
    refunded, and the total cannot be changed.

    For example:
      privtail budget budget.jsonl --epsilon 2 --delta 2e-6
      privtail budget budget.jsonl
      privtail budget claims.jsonl --epsilon 2 --delta 2e-6 --data-set claims \
        --analyst ann=1 --analyst bob=0.5
    """
    from privtail.ledgers import existing
    from privtail.trusted.ledger import Ledger

    asked = {epsilon, delta, neighbours, composition, data_set, *(analyst or ())} != {None}
    if not asked or (epsilon is None and not file.exists()):
        ledger = existing(file)
    else:
        if epsilon is not None and epsilon < math.inf and delta is None and not file.exists():
            raise InvalidInput(
                "Say how much δ may be spent in all, since most fits need some and a budget cannot "
                f"be changed: privtail budget {shlex.quote(str(file))} --epsilon {epsilon:g} "
                "--delta 1e-6"
            )
        ledger = Ledger(
            file, epsilon=epsilon, delta=delta, neighbours=neighbours, composition=composition,
            data_set=data_set, analysts=_shares(analyst),
        )  # fmt: skip
    show(str(ledger))


def _shares(given: list[str] | None) -> dict[str, float] | None:
    """Shares of analysts, as they were typed; raises InvalidInput."""
    if not given:
        return None
    try:
        pairs = [one.rsplit("=", 1) for one in given]
        return {name: float(epsilon) for name, epsilon in pairs}
    except ValueError:
        raise InvalidInput("A share is a name and an epsilon: --analyst ann=1.0") from None
