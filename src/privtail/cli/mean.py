"""``privtail mean``: private means of columns."""

from __future__ import annotations

import math
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

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
from privtail.spelling import counted, finite_or_none, with_interval

if TYPE_CHECKING:
    from privtail.cli.schema import Label
    from privtail.mean import MeanEstimate


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
    by: By = None,
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
        file_option("Write the means and their statement, as JSON."),
    ] = None,
) -> None:
    r"""Release private means of columns.

    Several columns share one budget. No bound on the data is needed: centre and scale are estimated
    privately, from the same budget. A row without a number in one of the columns does not count.
    How many count is estimated too. The intervals of 95 % are for the means of these rows.

    With --by there is a mean for each group of rows, and all groups share one budget. A missing
    cell is then left out of its own column alone.

    For example:
      privtail mean claims.csv --column cost --epsilon 0.5
      privtail mean claims.csv --column cost --column days --epsilon 1 \
        --out means.json
      privtail mean loans.parquet --column days --by job=clerk,cook --epsilon 1
    """
    from privtail.mean import private_mean

    budget, account, categories = promise.budget, promise.account, groups_of(by)
    twice = [name for name in categories if name in column]
    if twice:
        raise InvalidInput(f"{twice[0]!r} is a column to group by: leave out its --column.")
    output.require_free(out, data, promise.ledger)
    table, owners = numbers_of(
        data, column, "to take the mean of", numeric or (), written, persons, categories
    )
    columns, rows = [name for name in table.names if name in column], table.n
    told = f"{table.path}: {counted(rows, 'row')}; mean of {', '.join(columns)}"
    grouped: dict[str, Any] = (
        {"by": list(categories), "categories": categories} if categories else {}
    )
    with releasing("taking the mean", told, budget, chance.noise, rows, account):
        estimate = private_mean(
            table,
            method=method,
            ledger=account,
            **grouped,
            **promise.arguments,
            **chance.arguments,
            **owners,
        )
    means, lines = _means(estimate), []
    for group, found in means.items():
        where = f"{', '.join(map(str, group))}: " if group else ""
        for name, one in found.items():
            at, low, high = (math.nan if x is None else x for x in (one["mean"], *one["interval"]))
            said = with_interval(at, low, high, 6, " in").replace("nan", "unknown")
            doubt = "" if one["reliable"] else "  (not reliable: the notes say why)"
            lines.append(f"{where}{name} = {said}{doubt}")
    lines.append(
        "[...] is a 95 % interval for the mean of these rows: it allows for noise and clipping, "
        "not for sampling"
    )
    content = _content(means, list(categories)) | {"statement": estimate.privacy_.to_json()}
    deliver(
        "mean", "\n".join(lines), estimate.privacy_, content, out, overwrite=output.force,
        warned=estimate.warnings_,
    )  # fmt: skip


def _means(estimate: MeanEstimate) -> dict[tuple[Label, ...], dict[str, dict[str, Any]]]:
    """What the output file says of every column in every group; without --by there is one group.

    A number that is not known is None.
    """
    import numpy as np

    groups = estimate.groups or ((),)
    ends = estimate.conf_int(sampling=False).reshape(-1, 2)
    numbers = map(np.ravel, (estimate.value, estimate.noise_std, estimate.reliable))
    facts = [
        {
            "mean": finite_or_none(value), "noise_std": finite_or_none(std),
            "interval": [finite_or_none(end) for end in pair],
            "reliable": bool(reliable),
        }
        for value, std, reliable, pair in zip(*numbers, ends, strict=True)
    ]  # fmt: skip
    columns, width = estimate.columns, len(estimate.columns)
    return {
        group: dict(zip(columns, facts[k * width : (k + 1) * width], strict=True))
        for k, group in enumerate(groups)
    }


def _content(means: Mapping[tuple[Label, ...], Any], by: list[str]) -> dict[str, Any]:
    """What the output file says."""
    if not by:
        return {"means": means[()]}
    return {
        "by": by,
        "groups": [{"group": list(group), "means": one} for group, one in means.items()],
    }
