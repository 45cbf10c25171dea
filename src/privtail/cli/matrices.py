"""``privtail covariance`` and ``privtail correlation``: how columns go together."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

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
from privtail.spelling import counted

if TYPE_CHECKING:
    from privtail.describe.matrices import MatrixEstimate

Columns = Annotated[
    list[str] | None,
    typer.Option(
        metavar="COLUMN",
        show_default="every column of numbers",
        help="A column of numbers. Can be repeated.",
    ),
]
Out = Annotated[
    Path | None,
    file_option("Write the matrix, its intervals and their statement, as JSON."),
]


def covariance(
    data: Data, written: Written, promise: Promise, persons: Persons, chance: Chance,
    output: Output, column: Columns = None, numeric: Numeric = None,
    confidence: Confidence = 0.95, out: Out = None,
) -> None:  # fmt: skip
    r"""Release private covariances of every two columns.

    All pairs share one budget, and no bound on the data is needed. A row without a number in one of
    the columns does not count.

    For example:
      privtail covariance claims.csv --column cost --column days --epsilon 1
      privtail covariance claims.csv --epsilon 2 --out covariance.json
    """
    from privtail import private_covariance

    _release(
        private_covariance, "covariance", data, written, promise, persons, chance, output,
        column or [], numeric or [], confidence, out,
    )  # fmt: skip


def correlation(
    data: Data, written: Written, promise: Promise, persons: Persons, chance: Chance,
    output: Output, column: Columns = None, numeric: Numeric = None,
    confidence: Confidence = 0.95, out: Out = None,
) -> None:  # fmt: skip
    r"""Release private correlations of every two columns.

    All pairs share one budget, and no bound on the data is needed. A row without a number in one of
    the columns does not count.

    For example:
      privtail correlation claims.csv --column cost --column days --epsilon 1
      privtail correlation claims.csv --epsilon 2 --out correlation.json
    """
    from privtail import private_correlation

    _release(
        private_correlation, "correlation", data, written, promise, persons, chance, output,
        column or [], numeric or [], confidence, out,
    )  # fmt: skip


def _release(
    matrix: Callable[..., MatrixEstimate], name: str, data: str, written: Written,
    promise: Promise, persons: Persons, chance: Chance, output: Output, column: list[str],
    numeric: list[str], confidence: float, out: Path | None,
) -> None:  # fmt: skip
    budget, account = promise.budget, promise.account
    output.require_free(out, data, promise.ledger)
    table, owners = numbers_of(data, column, f"for a {name}", numeric, written, persons)
    told = f"{data}: {counted(table.n, 'row')}"
    with releasing(f"taking the {name}", told, budget, chance.noise, table.n, account):
        found = matrix(
            table, confidence=confidence, ledger=account, **promise.arguments, **chance.arguments,
            **owners,
        )  # fmt: skip
    deliver(
        name, str(found), found.privacy_, found.to_dict(), out, overwrite=output.force,
        warned=found.warnings_,
    )  # fmt: skip
