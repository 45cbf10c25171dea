"""``privtail export``: a model as SQL or as plain Python."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

from privtail.cli.console import say, show
from privtail.cli.options import Output


def export(
    model: Annotated[
        Path, typer.Argument(metavar="MODEL", show_default=False, help="A file of privtail fit.")
    ],
    output: Output,
    to: Annotated[Literal["sql", "python"], typer.Option(show_default=False, help="The language.")],
    out: Annotated[
        Path | None,
        typer.Option(metavar="FILE", show_default="-", help="Write here; - is standard output."),
    ] = None,
) -> None:
    """Write a model as code that needs no privtail.

    The code clips features and predictions as the model does. SQL is a list of expressions for a
    SELECT; Python is a file with a function predict(row). Cast Boolean columns to integers before
    the SQL: most databases compare no Boolean with a number. Exporting costs nothing, and the code
    is as public, or as secret, as the model.

    For example:
      privtail export model.json --to sql
      privtail export late.json --to python --out late.py
    """
    from privtail import load
    from privtail.export import to_code
    from privtail.written import written_whole

    if out == Path("-"):
        out = None
    output.require_free(out, model)
    text = to_code(load(model), to)
    if out is None:
        show(text.rstrip("\n"))
        return
    with written_whole(out, overwrite=output.force) as file:
        file.write(text.encode())
    say(f"wrote {out}")
