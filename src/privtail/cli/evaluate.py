"""``privtail evaluate``: how well a model predicts private rows."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from privtail.cli.console import releasing, working
from privtail.cli.findings import Findings
from privtail.cli.held_out import Exposure, Target, held_out
from privtail.cli.options import (
    Chance,
    Data,
    Output,
    Persons,
    Promise,
    Written,
)
from privtail.spelling import counted


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
    findings: Findings,
    target: Target = None,
    exposure: Exposure = None,
) -> None:
    r"""Measure how well a model predicts held-out rows.

    For numbers: the mean absolute error, RMSE and R2, beside a constant that predicts the mean;
    for counts and amounts also deviance and D2.
    For labels: accuracy and log loss, beside a model that knows only how frequent each label is.
    For two labels also the area under the ROC curve, precision and recall. Every number has an
    interval, for privacy noise and sampling; a note says about how many huge errors noise may hide
    from the errors of numbers. Columns are found by name; others are ignored.

    For example:
      privtail evaluate model.json held-out.parquet --epsilon 0.5
      privtail evaluate late.json loans.csv --epsilon 1 --out quality.json \
        --plot quality.png
    """
    from privtail import evaluation, load

    budget, account = promise.budget, promise.account
    findings.require_free(output, model, data, promise.ledger)
    fitted = load(model)
    findings.require_drawable(fitted.classes or ())
    with working("opening the table"):
        column = fitted.target if target is None else target
        exposure = fitted.exposure if exposure is None else exposure
        table = held_out({model: fitted}, data, column, exposure, written)
        rows = table.n
    told = f"{table.path}: {counted(rows, 'row')}; {model}"
    with releasing("evaluating", told, budget, chance.noise, rows, account):
        found = evaluation.evaluate(
            fitted, table, column, confidence=findings.confidence, ledger=account,
            exposure=exposure, **promise.arguments, **chance.arguments, **persons.of(table),
        )  # fmt: skip
    findings.show(found, output)
