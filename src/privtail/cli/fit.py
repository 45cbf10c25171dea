"""``privtail fit``: from a table to a private model."""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from privtail.cli.console import charging, say, show_released, working
from privtail.cli.models import Choice
from privtail.cli.options import Chance, Data, Output, Persons, Promise, Scratch, Written, promised
from privtail.cli.schema import Declared
from privtail.errors import AccuracyWarning, InvalidInput, PrivacyWarning

if TYPE_CHECKING:
    from privtail.model import Model
    from privtail.trusted.events import Round


def fit(
    data: Data,
    declared: Declared,
    written: Written,
    promise: Promise,
    choice: Choice,
    persons: Persons,
    chance: Chance,
    output: Output,
    out: Annotated[
        Path,
        typer.Option(
            metavar="FILE",
            help="Where the model goes, as JSON. Publish it only if the budget was approved, "
            "nothing else used the rows, and the number of rows and all names in the file may "
            "be public.",
        ),
    ] = Path("model.json"),
    plot: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE.png",
            show_default=False,
            help="Draw the coefficients with their noise, and the noise error against ε.",
        ),
    ] = None,
    scratch: Scratch = None,
) -> None:
    r"""Fit a private model and write it with its statement.

    Every column but the target is a feature. A column of text needs its categories declared, since
    which values occur in private rows is itself private. A row without a usable number in some
    column does not count. Before it starts, the command says what it will release.

    For example:
      privtail fit claims.csv --target cost --model linear --epsilon 1
      privtail fit claims.csv --target cost --model ridge --alpha 0.1 \
        --epsilon 1 --drop claim_id --out ridge.json --plot ridge.png
      privtail fit loans.parquet --target late --classes no,yes \
        --categories job=clerk,cook --epsilon 2 --out late.json
      privtail fit visits.parquet --target cost --epsilon 1 \
        --groups person --max-rows 5 --count-invalid 0.02 --out visits.json
      privtail fit adult.parquet --schema adult.json --epsilon 1 \
        --ledger budget.jsonl --out income.json
    """
    from privtail.cli.picture import draw_fit, require_drawable
    from privtail.cli.task import Task
    from privtail.model import Model

    budget, account = promise.budget, promise.account
    if str(out) == "-":
        raise InvalidInput("A model goes into a file: --out model.json. Its statement is printed.")
    output.require_free(out, plot, data, promise.ledger, declared.schema)
    output.require_free(plot, data, promise.ledger, declared.schema)
    require_drawable(plot)
    with working("opening the table"):
        task = Task.of(data, declared, written, choice, persons, scratch)
        estimator = task.estimator(
            choice,
            ledger=account,
            max_rows=persons.max_rows,
            **promise.arguments,
            **chance.arguments,
        )
        plan = estimator.plan(task.table.n, *task.sizes)
    say(f"{task}\n{promised(budget, chance.noise)}\n{plan}\n{task.reading(plan)}")
    with charging(account, "fitting", budget), warnings.catch_warnings():
        warnings.simplefilter("ignore", PrivacyWarning)  # the plan has said so
        warnings.simplefilter("ignore", AccuracyWarning)  # they follow the statement
        exposed = {"exposure": choice.exposure} if choice.exposure else {}
        groups = persons.of(task.table).get("groups")
        estimator.fit(task.table, task.target, groups=groups, **exposed)

    fitted = Model.of(estimator, target=task.target, columns=task.columns)
    _save(fitted, out, overwrite=output.force)
    say(f"wrote {out}\n")
    table = replace(fitted.summary(), headline="")  # the statement begins with it
    released = f"{fitted.statement}\n\n{table}"
    if choice.count_invalid:
        released += f"\n\n{estimator.n_invalid_:,} ± {_noise(plan):.2g} rows counted as zero"
    show_released(released, "statement")
    for text in estimator.warnings_:
        say(f"\nWarning. {text}")
    if plot is not None:
        draw_fit(plot, estimator, fitted, overwrite=output.force)
        say(f"wrote {plot}")


def _save(fitted: Model, out: Path, *, overwrite: bool) -> None:
    """Write the model; where that fails the model is shown, because its budget is spent."""
    try:
        fitted.save(out, overwrite=overwrite)
    except InvalidInput:
        say("The budget is spent and the file failed, so the model follows on standard output.")
        show_released(fitted.to_text(), "model")
        raise


def _noise(plan: Iterable[Round]) -> float:
    """Standard deviation of the Laplace noise in the count of invalid rows."""
    events = [e for r in plan for e in r.events if e.question == "invalid rows"]
    return math.sqrt(2) * events[0].scale * events[0].unit
