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
    from privtail.model.model import model_of
    from privtail.statement import verification

    written = verification.read(file)
    answers = verification.verify_all(written)
    if written.get("format") == "privtail-model":
        model_of(written, file)
    show("\n\n".join(map(str, answers)))
    if not all(answers):
        raise typer.Exit(1)
