"""``privtail evaluate``: how well a model predicts private rows."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Any

import typer

from privtail.cli.console import releasing, say, show_bought, working
from privtail.cli.options import (
    Chance,
    Data,
    Output,
    Persons,
    Promise,
    Written,
    counted,
)
from privtail.errors import InvalidInput


def evaluate(
    model: Annotated[
        Path, typer.Argument(metavar="MODEL", show_default=False, help="A file of privtail fit.")
    ],
    data: Data,
    written: Written,
    promise: Promise,
    persons: Persons,
    chance: Chance,
    output: Output,
    target: Annotated[
        str | None,
        typer.Option(
            metavar="COLUMN",
            show_default="the column that the model was fitted to",
            help="The true values.",
        ),
    ] = None,
    exposure: Annotated[
        str | None,
        typer.Option(
            metavar="COLUMN",
            show_default="that of the model, if it has one",
            help="For models of counts and amounts: a column with how long, or how much, each row "
            "was observed.",
        ),
    ] = None,
    confidence: Annotated[
        float, typer.Option(help="Confidence of the intervals, between 0 and 1.")
    ] = 0.95,
    out: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            show_default=False,
            help="Write the numbers, curves and statements, as JSON.",
        ),
    ] = None,
    plot: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            show_default=False,
            help="Draw the curves of a model of two labels: a .png, .svg or .pdf.",
        ),
    ] = None,
) -> None:
    r"""Measure how well a model predicts held-out rows.

    For numbers: the mean absolute error, RMSE and R2, beside a constant that predicts the mean;
    for counts and amounts also deviance and D2.
    For labels: accuracy and log loss, beside a model that knows only how frequent each label is.
    For two labels also the area under the ROC curve, precision and recall. Every number has an
    interval, for privacy noise and sampling. Columns are found by name; others are ignored.

    For example:
      privtail evaluate model.json held-out.parquet --epsilon 0.5
      privtail evaluate late.json loans.csv --epsilon 1 --out quality.json \
        --plot quality.png
    """
    from privtail import evaluation, load
    from privtail.trusted.tables import TableFile

    budget, account = promise.budget, promise.account
    for file, others in ((out, (plot,)), (plot, (out,))):
        output.require_free(file, model, data, promise.ledger, *others)
    fitted = load(model)
    if plot is not None:
        require_drawable(plot, 0 if fitted.classes is None else len(fitted.classes))
    with working("opening the table"):
        column = fitted.target if target is None else target
        dialect = written.dialect()
        exposure = fitted.exposure if exposure is None else exposure
        beside = [column, *([] if exposure is None else [exposure])]
        numeric = [*fitted.numeric, *(beside if fitted.classes is None else [])]
        needed = [*(one.name for one in fitted.columns), *beside]
        TableFile(data, dialect=dialect).require(needed, f"needed by {model}")
        table = TableFile(data, numeric=numeric, categories=fitted.categories, dialect=dialect)
        rows = table.n
    told = f"{table.path}: {counted(rows, 'row')}; {model}"
    with releasing("evaluating", told, budget, chance.noise, rows, account):
        found = evaluation.evaluate(
            fitted, table, column, confidence=confidence, ledger=account, exposure=exposure,
            **promise.arguments, **chance.arguments, **persons.of(table),
        )  # fmt: skip
    texts = [str(found), *(str(statement) for statement in found.statements)]
    show_bought("\n\n".join(texts), "evaluation")
    if out is not None:
        save(found.to_dict(), out, overwrite=output.force)
        say(f"\nwrote {out}")
    if plot is not None:
        draw(found.plot(), plot, overwrite=output.force)
        say(f"\nwrote {plot}")


def require_drawable(plot: Path, labels: int) -> None:
    """Refuse, before anything is spent, a picture that could not be drawn."""
    import importlib.util

    if labels != 2:
        raise InvalidInput("Curves are drawn of a model of two labels. Leave --plot out.")
    if plot.suffix not in (".png", ".svg", ".pdf"):
        raise InvalidInput(f"{plot} needs a name that ends with .png, .svg or .pdf.")
    if importlib.util.find_spec("matplotlib") is None:
        raise InvalidInput("Pictures need Matplotlib: pip install 'privtail[plot]'.")


def save(content: dict[str, Any], out: Path, *, overwrite: bool) -> None:
    """Write what an evaluation found."""
    from privtail.written import written_whole

    content = {"format": "privtail-evaluation", "version": 1, **content}
    with written_whole(out, overwrite=overwrite) as file:
        file.write(json.dumps(content, indent=1, ensure_ascii=False, default=str).encode() + b"\n")


def draw(figure: Any, out: Path, *, overwrite: bool) -> None:
    """Write a figure, in the format that its name ends with."""
    from privtail.written import written_whole

    with written_whole(out, overwrite=overwrite) as file:
        figure.savefig(file, format=out.suffix.lstrip("."), dpi=150)
