"""``privtail mean``: private means of columns."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Literal

import typer

from privtail.cli.console import say, show, working
from privtail.cli.options import (
    Data,
    Delta,
    Epsilon,
    Force,
    LedgerPath,
    Noise,
    Relation,
    Seed,
    advice,
    opened_ledger,
    promise,
)
from privtail.trusted.budget import Budget


def mean(
    data: Data,
    column: Annotated[
        list[str], typer.Option(show_default=False, help="A column of numbers. Repeat it.")
    ],
    epsilon: Epsilon,
    delta: Delta = 1e-6,
    method: Annotated[
        Literal["clipped", "clamped", "truncated", "catoni"],
        typer.Option(help="How a row is kept from counting too much."),
    ] = "clipped",
    neighbours: Relation = "replace_one",
    noise: Noise = "exact",
    seed: Seed = None,
    ledger: LedgerPath = None,
    out: Annotated[
        Path | None,
        typer.Option(show_default=False, help="Write the means and their statement, as JSON."),
    ] = None,
    force: Force = False,
) -> None:
    """Release private means of columns.

    Several columns share one budget. No bound on the data is needed: centre and scale are bought
    from the same budget. Every row must have a number in each column, else it counts as zero.

    For example:
      privtail mean claims.csv --column cost --epsilon 0.5
      privtail mean claims.parquet --column cost --column days --epsilon 1 --out means.json
    """
    from privtail.mean import private_mean
    from privtail.model import require_writable, written_whole
    from privtail.trusted.tables import TableFile

    budget = Budget(epsilon, delta, neighbours)
    if out is not None:
        require_writable(out, overwrite=force)
    account = opened_ledger(ledger)
    table = TableFile(data)
    table.require(column, "to take the mean of")
    with working(f"reading {data}"):
        columns = table.columns(column)
    rows = len(next(iter(columns.values())))
    say(f"{data}: {rows:,} rows; mean of {', '.join(columns)}: {promise(budget, noise)}")
    warning = advice(budget, rows)
    if warning:
        say(warning)
    with working("taking the mean"):
        estimate = private_mean(
            columns,
            epsilon=epsilon,
            delta=delta,
            method=method,
            neighbours=neighbours,
            noise=noise,
            random_state=seed,
            ledger=account,
        )
    found = {
        name: {"mean": float(value), "noise_std": float(std), "reliable": bool(reliable)}
        for name, value, std, reliable in zip(
            columns, estimate.value, estimate.noise_std, estimate.reliable, strict=True
        )
    }
    for name, one in found.items():
        doubt = "" if one["reliable"] else "  (not reliable: its scale is below the noise)"
        show(f"{name} = {one['mean']:.6g} ± {one['noise_std']:.2g}{doubt}")
    show(f"± is one standard deviation of the privacy noise\n\n{estimate.privacy_}")
    if out is not None:
        content = {"format": "privtail-mean", "version": 1, "means": found}
        content["statement"] = estimate.privacy_.to_json()
        with written_whole(out, overwrite=force) as file:
            file.write(json.dumps(content, indent=1, ensure_ascii=False).encode() + b"\n")
        say(f"\nwrote {out}")
