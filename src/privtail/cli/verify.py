"""``privtail verify``: recompute what a model cost."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from privtail.cli.console import show


def verify(
    file: Annotated[
        Path,
        typer.Argument(
            metavar="FILE",
            show_default=False,
            help="A model, an evaluation, a statement or another result, as JSON.",
        ),
    ],
) -> None:
    """Recompute what a file cost, from its releases alone.

    Exit code 0: the promise is differential privacy and the releases keep it. 1: it does not hold.
    2: the file holds no statement, or a model that cannot be used. The command cannot tell whether
    these releases were made, or whether somebody edited the coefficients.

    For example:
      privtail verify model.json
    """
    from privtail import load
    from privtail.json_files import json_of
    from privtail.statement import verification

    answers = verification.verify_all(file)
    if json_of(file, verification.NEEDED)[0].get("format") == "privtail-model":
        load(file)
    show("\n\n".join(map(str, answers)))
    if not all(answers):
        raise typer.Exit(1)
