"""``privtail predict``: apply a model to a table."""

from __future__ import annotations

import csv
import io
import math
import shlex
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from privtail.cli.console import counting, say, show, working
from privtail.cli.options import Data, Output, Written
from privtail.errors import InvalidInput

if TYPE_CHECKING:
    from privtail.model import Model
    from privtail.trusted.files import TableFile

RATES = (
    "Note. These are rates, expected for an exposure of 1. Of a row with its own exposure: "
    "--exposure {name}"
)


def predict(
    model: Annotated[
        Path, typer.Argument(metavar="MODEL", show_default=False, help="A file of privtail fit.")
    ],
    data: Data,
    written: Written,
    output: Output,
    exposure: Annotated[
        str | None,
        typer.Option(
            metavar="COLUMN",
            show_default=False,
            help="A column by which the predicted rate is multiplied: for how long, or how much, "
            "each row was observed.",
        ),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            show_default="-",
            help="Write CSV here; - is standard output.",
        ),
    ] = None,
) -> None:
    """Write one prediction for every row of a table, as CSV.

    Columns are found by name, in any order; others are ignored. A category that the model does not
    know counts as none. Where a number is missing, the prediction is empty. A prediction reveals
    its row, so keep it as secret as that row. Features and predictions are clipped to the ranges
    that the model holds, so that it does not extrapolate far.

    For example:
      privtail predict model.json claims.csv --out predictions.csv
      privtail predict late.json loans.parquet
    """
    from privtail import load
    from privtail.trusted.files import TableFile
    from privtail.written import written_whole

    if out == Path("-"):
        out = None
    output.require_free(out, model, data)
    fitted = load(model)
    needed = [column.name for column in fitted.columns]
    dialect = written.dialect()
    TableFile(data, dialect=dialect).require(needed, f"needed by {model}")
    table = TableFile(data, numeric=fitted.numeric, categories=fitted.categories, dialect=dialect)
    gaps = fitted.gaps()
    times = None
    if exposure is not None:
        times = _exposures(fitted, TableFile(data, numeric=[exposure], dialect=dialect), exposure)
    with working("opening the table"):
        rows = table.n
    pages = _pages(fitted, gaps.counting(fitted.designs(table)), rows, times)
    if out is None:
        for text in pages:
            show(text.rstrip("\n"))
    else:
        with (
            counting(f"predicting {table.path}", "row"),
            written_whole(out, overwrite=output.force) as file,
        ):
            for text in pages:
                file.write(text.encode())
        say(f"wrote {out}")
    if fitted.exposure is not None and exposure is None:
        say(RATES.format(name=shlex.quote(fitted.exposure)))
    for text in gaps.said():
        say(f"Warning. {text}")


def _exposures(model: Model, table: TableFile, name: str) -> Any:
    """The exposures of all rows."""
    from privtail.model.predicting import exposure_column, usable_exposure

    if model.link != "log":
        raise InvalidInput(f"A {model.kind} model has no exposure: leave out --exposure.")
    found = exposure_column(table, name)
    return usable_exposure(found, len(found))


def _pages(model: Model, designs: Iterable[Any], rows: int, exposures: Any = None) -> Iterator[str]:
    """CSV text: a header, then the predictions of one block after the other."""
    from privtail.progress import report

    labels = () if model.classes is None else model.classes
    yield _csv([["prediction", *(f"probability of {label}" for label in labels)]])
    first = 0
    for features in designs:
        last = first + len(features)
        times = 1.0 if exposures is None else exposures[first:last]
        yield _csv(_rows(model, model.scores([features]), times))
        report(last, rows, "")
        first = last


def _csv(rows: Iterable[list[str]]) -> str:
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows(rows)
    return text.getvalue()


def _rows(model: Model, scores: Any, times: Any) -> Iterator[list[str]]:
    """One row per prediction; empty where a number is missing."""
    import numpy as np

    from privtail.model.predicting import likely_labels, probabilities

    if model.classes is None:
        for value in (model.answers(scores) * times).tolist():
            yield ["" if math.isnan(value) else repr(value)]
        return
    labels = likely_labels(scores, np.array(model.classes, dtype=object))
    for label, chances in zip(labels, probabilities(scores).tolist(), strict=True):
        yield (
            [str(label), *(f"{p:.6g}" for p in chances)]
            if label is not None
            else [""] * (1 + len(chances))
        )
