"""``privtail mean``: private means of columns."""

from __future__ import annotations

import math
from collections.abc import Collection
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

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

if TYPE_CHECKING:
    from privtail.mean import MeanEstimate
    from privtail.schema.dialect import Dialect
    from privtail.statement import Statement
    from privtail.trusted.files import TableFile


def mean(
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
    numeric: Numeric = None,
    method: Annotated[
        Literal["clipped", "clamped", "truncated", "catoni", "ksu", "coinpress"],
        typer.Option(
            help="How the influence of one row is limited. clipped: its numbers are shortened "
            "to a common length. clamped: each is moved to the nearer end of a range. truncated: "
            "a number beyond the range counts as 0. catoni: a smooth function flattens large "
            "numbers. ksu: median of noisy means of 15 parts of the rows. coinpress: clipped "
            "again and again, to a range that shrinks. Keep clipped; the others are published "
            "alternatives, for comparison."
        ),
    ] = "clipped",
    out: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            show_default=False,
            help="Write the means and their statement, as JSON.",
        ),
    ] = None,
) -> None:
    r"""Release private means of columns.

    Several columns share one budget. No bound on the data is needed: centre and scale are estimated
    privately, from the same budget. A row without a number in one of the columns does not count.
    How many rows do is estimated too. The intervals of 95 % are for the means of these rows.

    For example:
      privtail mean claims.csv --column cost --epsilon 0.5
      privtail mean claims.csv --column cost --column days --epsilon 1 \
        --out means.json
    """
    from privtail.mean import private_mean

    budget, account = promise.budget, promise.account
    output.require_free(out, data, promise.ledger)
    with working("opening the table"):
        table = _opened(data, column, numeric or (), written.dialect())
        rows = table.n
    columns = [name for name in table.names if name in column]
    told = f"{table.path}: {counted(rows, 'row')}; mean of {', '.join(columns)}"
    with releasing("taking the mean", told, budget, chance.noise, rows, account):
        estimate = private_mean(
            table,
            method=method,
            ledger=account,
            **promise.arguments,
            **chance.arguments,
            **persons.of(table),
        )
    means, lines = _means(columns, estimate), []
    for name, one in means.items():
        low, high = (math.nan if end is None else end for end in one["interval"])
        within = f"[{low:.6g}, {high:.6g}]".replace("nan", "unknown")
        doubt = "" if one["reliable"] else "  (not reliable: the notes say why)"
        lines.append(f"{name} = {one['mean']:.6g} in {within}{doubt}")
    lines.append(
        f"[...] is a 95 % interval for the mean of these rows: it allows for noise and clipping, "
        f"not for sampling\n\n{estimate.privacy_}"
    )
    show_bought("\n".join(lines), "mean")
    for text in estimate.warnings_:
        say(f"\nWarning. {text}")
    if out is not None:
        _save(means, estimate.privacy_, out, overwrite=output.force)
        say(f"\nwrote {out}")


def _opened(
    data: str, columns: Collection[str], numeric: Collection[str], dialect: Dialect
) -> TableFile:
    """The file with these columns alone, which hold numbers; raises InvalidInput."""
    from privtail.trusted.files import TableFile

    opened = TableFile(data, dialect=dialect)
    others = [name for name in opened.names if name not in columns]
    numeric = [*numeric, *(name for name in opened.index if name in columns)]
    table = TableFile(data, numeric=numeric, drop=others, dialect=dialect)
    table.require(columns, "to take the mean of")
    for name in columns:
        table.require_numeric(name)
    return table


def _means(columns: Collection[str], estimate: MeanEstimate) -> dict[str, Any]:
    """What the output file says of every column; an end that is not known is None."""
    facts = zip(
        columns, estimate.value, estimate.noise_std, estimate.conf_int(sampling=False),
        estimate.reliable, strict=True,
    )  # fmt: skip
    return {
        name: {
            "mean": float(value), "noise_std": float(std),
            "interval": [float(end) if math.isfinite(end) else None for end in ends],
            "reliable": bool(reliable),
        }
        for name, value, std, ends, reliable in facts
    }  # fmt: skip


def _save(means: dict[str, Any], statement: Statement, out: Path, *, overwrite: bool) -> None:
    """Write means and their statement, as JSON."""
    from privtail.written import written_json

    content = {"format": "privtail-mean", "version": 1, "means": means}
    content["statement"] = statement.to_json()
    written_json(out, content, overwrite=overwrite)
