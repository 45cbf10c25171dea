"""The rows on which models are judged."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from privtail.cli.options import Written
from privtail.cli.schema import Label

if TYPE_CHECKING:
    from privtail.model import Model
    from privtail.trusted.files import TableFile

Target = Annotated[
    str | None,
    typer.Option(
        metavar="COLUMN",
        show_default="the column that the model was fitted to",
        help="The true values.",
    ),
]
Exposure = Annotated[
    str | None,
    typer.Option(
        metavar="COLUMN",
        show_default="that of the model, if it has one",
        help="For models of counts and amounts: a column with how long, or how much, each row "
        "was observed.",
    ),
]


def held_out(
    models: Mapping[Path, Model], data: str, target: str, exposure: str | None, written: Written
) -> TableFile:
    """The table, with the columns that all models need.

    Raises
    ------
    InvalidInput
        If one is missing, or the file cannot be read.
    """
    from privtail.trusted.files import TableFile

    dialect = written.dialect()
    beside = [target, *([] if exposure is None else [exposure])]
    numeric: list[str] = []
    categories: dict[str, list[Label]] = {}
    for file, model in models.items():
        needed = [*(one.name for one in model.columns), *beside]
        TableFile(data, dialect=dialect).require(needed, f"needed by {file}")
        numeric += [*model.numeric, *(beside if model.classes is None else [])]
        for name, listed in model.categories.items():
            categories[name] = list(dict.fromkeys([*categories.get(name, ()), *listed]))
    return TableFile(
        data, numeric=[*dict.fromkeys(numeric)], categories=categories, dialect=dialect
    )
