"""``privtail fit``: from a table to a private model."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, Literal

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
from privtail.cli.schema import Schema
from privtail.errors import InvalidInput
from privtail.trusted.budget import Budget
from privtail.trusted.events import Plan


def fit(
    data: Data,
    epsilon: Epsilon,
    model: Annotated[
        Literal["linear", "logistic"],
        typer.Option(show_default=False, help="Numbers: linear. Labels: logistic."),
    ],
    target: Annotated[
        str | None, typer.Option(show_default=False, help="Column to predict.")
    ] = None,
    delta: Delta = 1e-6,
    schema: Annotated[
        Path | None,
        typer.Option(
            show_default=False,
            help="JSON with any of target, classes, numeric, categories, drop. A column under "
            "numeric is never refused: what is not a number in it drops its row.",
        ),
    ] = None,
    categories: Annotated[
        list[str] | None,
        typer.Option(
            metavar="COLUMN=A,B,C",
            show_default=False,
            help="Declare the categories of a column. Others count as none of them. Repeat it.",
        ),
    ] = None,
    classes: Annotated[
        str | None,
        typer.Option(
            metavar="A,B",
            show_default=False,
            help="Declare the labels of the target. Undeclared, they cost a tenth of the budget.",
        ),
    ] = None,
    drop: Annotated[
        list[str] | None,
        typer.Option(metavar="COLUMN", show_default=False, help="Leave a column out. Repeat it."),
    ] = None,
    neighbours: Relation = "replace_one",
    noise: Noise = "exact",
    seed: Seed = None,
    ledger: LedgerPath = None,
    out: Annotated[Path, typer.Option(help="Where the model goes, as JSON.")] = Path("model.json"),
    force: Force = False,
) -> None:
    """Fit a private model and write it with its privacy statement.

    Every column but the target is a feature. A column of text needs its categories declared, since
    which values occur in private rows is itself private. A row without a usable number in some
    column counts as zero. Before it starts, the command says what it will release.

    For example:
      privtail fit claims.csv --target cost --model linear --epsilon 1 --drop claim_id
      privtail fit loans.csv --target late --model logistic --epsilon 2 --categories job=clerk,cook
      privtail fit loans.parquet --target late --classes no,yes --model logistic --epsilon 0.5
      privtail fit adult.parquet --schema adult.json --model logistic --epsilon 1 --ledger b.jsonl
    """
    from privtail.model import Column, Model, require_writable
    from privtail.trusted.tables import TableFile, typed_labels

    budget = Budget(epsilon, delta, neighbours)
    require_writable(out, overwrite=force)
    account = opened_ledger(ledger)
    facts = Schema.declared(
        schema, target=target, classes=classes, categories=categories or (), drop=drop or ()
    )
    if model == "linear" and facts.classes is not None:
        raise InvalidInput("A linear model predicts numbers, not classes. Use --model logistic.")
    table = TableFile(data)
    features = facts.features(table)
    name = str(facts.target)

    labels: dict[str, Any] = dict(facts.categories)
    if model == "logistic":
        labels[name] = facts.classes
    with working(f"reading {data}"):
        columns = table.columns([*features, name], labels, facts.numeric or ())
    declared = {
        column: typed_labels(column, values, columns[column])
        for column, values in labels.items()
        if values is not None
    }
    target_values = columns.pop(name)
    inputs = tuple(Column(column, declared.get(column)) for column in features)
    estimator = _estimator(
        model,
        epsilon=epsilon,
        delta=delta,
        neighbours=neighbours,
        noise=noise,
        random_state=seed,
        ledger=account,
        categories={column: declared[column] for column in features if column in declared},
        **({} if model == "linear" else {"classes": declared.get(name)}),
    )
    rows, width = len(target_values), sum(len(column.features) for column in inputs)
    encoded = sum(len(column.features) for column in inputs if column.categories is not None)
    plan = estimator.plan(rows, width, encoded)
    say(
        f"{data}: {_count(rows, 'row')}, {_count(len(inputs), 'column')}, "
        f"{_count(width, 'feature')}"
    )
    say(f"{model} model of {name!r}: {promise(budget, noise)}")
    say(_outline(plan))
    warning = advice(budget, rows)
    if warning:
        say(warning)
    with working(f"fitting ({sum(r.times * len(r.events) for r in plan)} releases)"):
        estimator.fit(columns, target_values)

    fitted = Model.of(estimator, target=name, columns=inputs)
    try:
        fitted.save(out, overwrite=force)
    except InvalidInput:
        say("The budget is spent and the file failed, so the model follows on standard output.")
        show(fitted.to_text())
        raise
    show(str(fitted.statement))
    say(f"\nwrote {out}")


def _estimator(model: str, **parameters: Any) -> Any:
    from privtail.linear_model import DPLinearRegression, DPLogisticRegression

    kinds: dict[str, Any] = {"linear": DPLinearRegression, "logistic": DPLogisticRegression}
    return kinds[model](**parameters)


def _count(count: int, noun: str) -> str:
    return f"{count:,} {noun}{'s' * (count != 1)}"


def _outline(plan: Plan) -> str:
    """One line per kind of release."""
    lines = []
    for r in plan:
        for event in r.events:
            times = _count(event.coordinates, "number")
            if r.times > 1:
                times = f"{r.times:,} times {times}"
            noise = f"noise {event.scale / event.radius:.3g} x what one row adds"
            lines.append(f"  {event.question:<15} {times}, {noise if event.scale else 'no noise'}")
    return "\n".join(["will release", *lines])
