"""``privtail cross-validate``: how well a kind of model predicts private rows."""

from __future__ import annotations

from typing import Annotated

import typer

from privtail.cli.console import releasing, working
from privtail.cli.findings import Findings
from privtail.cli.models import Choice
from privtail.cli.options import Chance, Data, Output, Persons, Promise, Scratch, Written
from privtail.cli.schema import Declared


def cross_validate(
    data: Data,
    declared: Declared,
    written: Written,
    promise: Promise,
    choice: Choice,
    persons: Persons,
    chance: Chance,
    output: Output,
    findings: Findings,
    folds: Annotated[
        int,
        typer.Option(min=2, metavar="K", help="How many models are fitted, each without one fold."),
    ] = 5,
    scratch: Scratch = None,
) -> None:
    r"""Measure a kind of model by cross-validation.

    The rows are divided at random into K folds, by position alone. A model is fitted without each
    fold, and all rows are evaluated together, each with the model that was fitted without it. The
    numbers are those of privtail evaluate. ε is the total of all fits and of the evaluation, and a
    ledger is charged once. No model is written: privtail fit makes one, from a budget of its own.

    For example:
      privtail cross-validate claims.csv --target cost --model ridge --epsilon 2
      privtail cross-validate visits.parquet --target cost --epsilon 4 \
        --groups person --max-rows 5
      privtail cross-validate loans.parquet --target late --classes no,yes \
        --folds 10 --epsilon 2 --out quality.json --plot quality.png
    """
    from privtail import evaluation
    from privtail.cli.task import Task

    budget, account = promise.budget, promise.account
    findings.require_free(output, data, promise.ledger, declared.schema)
    with working("opening the table"):
        task = Task.of(data, declared, written, choice, persons, scratch, copies=folds + 1)
        estimator = task.estimator(choice, max_rows=persons.max_rows)
    findings.require_drawable(task.classes or ())
    groups = persons.of(task.table).get("groups")
    told = f"{task}, {folds} folds"
    with releasing("cross-validating", told, budget, chance.noise, task.table.n, account):
        found = evaluation.cross_validate(
            estimator, task.table, task.target, cv=folds, confidence=findings.confidence,
            groups=groups, ledger=account, exposure=choice.exposure, **promise.arguments,
            **chance.arguments,
        )  # fmt: skip
    findings.show(found, output)
