"""``privtail predict``: apply a model to a table."""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from privtail.cli.console import say, show, working
from privtail.cli.options import Data, Force

if TYPE_CHECKING:
    from privtail.model import Model


def predict(
    model: Annotated[Path, typer.Argument(show_default=False, help="A file of privtail fit.")],
    data: Data,
    out: Annotated[
        Path | None,
        typer.Option(show_default=False, help="Write CSV here instead of to standard output."),
    ] = None,
    force: Force = False,
) -> None:
    """Predict one row for every row of a table, as CSV.

    Columns are found by name, in any order; more of them do no harm. A category that the model does
    not know counts as none; where a number is missing the prediction is empty. A prediction tells
    about the row it was made from: it is as private as that row.

    For example:
      privtail predict model.json new.csv --out predictions.csv
      privtail predict model.json new.parquet | head
    """
    from privtail import load
    from privtail.model import require_writable, written_whole
    from privtail.trusted.tables import TableFile

    if out is not None:
        require_writable(out, overwrite=force)
    fitted = load(model)
    table = TableFile(data)
    table.require([column.name for column in fitted.columns], f"{model} was fitted on it")
    numbers = [column.name for column in fitted.columns if column.categories is None]
    labels = {c.name: c.categories for c in fitted.columns if c.categories is not None}
    with working(f"reading {data}"):
        columns = table.columns(numbers, labels, numbers)

    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows(_rows(fitted, columns))
    if out is None:
        show(text.getvalue().rstrip("\n"))
        return
    with written_whole(out, overwrite=force) as file:
        file.write(text.getvalue().encode())
    say(f"wrote {out}")


def _rows(model: Model, columns: dict[str, Any]) -> Iterator[list[str]]:
    """A header, then one row per prediction; empty where a number is missing."""
    predicted = model.predict(columns)
    if model.classes is None:
        yield ["prediction"]
        for value in predicted.tolist():
            yield ["" if math.isnan(value) else repr(value)]
        return
    yield ["prediction", *(f"probability of {label}" for label in model.classes)]
    for label, chances in zip(predicted, model.predict_proba(columns).tolist(), strict=True):
        yield (
            [str(label), *(f"{p:.6g}" for p in chances)]
            if label is not None
            else [""] * (1 + len(chances))
        )
