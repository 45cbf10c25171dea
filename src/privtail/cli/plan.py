"""``privtail plan``: what a fit would release, before anything is read or spent."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from privtail.cli.console import say, show, working
from privtail.cli.models import Choice
from privtail.cli.options import Output, Persons, Promise, Written
from privtail.cli.schema import Declared
from privtail.errors import InvalidInput


def plan(
    declared: Declared,
    written: Written,
    promise: Promise,
    choice: Choice,
    persons: Persons,
    output: Output,
    data: Annotated[
        str | None,
        typer.Argument(
            metavar="[DATA]", show_default=False, help="The table to plan for, as fit takes it."
        ),
    ] = None,
    rows: Annotated[
        int | None,
        typer.Option(
            "--rows",
            "--n",
            min=1,
            metavar="N",
            show_default=False,
            help="Number of rows, if there is no table yet.",
        ),
    ] = None,
    features: Annotated[
        int | None,
        typer.Option(
            "--features",
            "--d",
            min=1,
            metavar="D",
            show_default=False,
            help="Number of features, if there is no table yet.",
        ),
    ] = None,
    plot: Annotated[
        Path | None,
        typer.Option(metavar="FILE.png", show_default=False, help="Draw the noise against ε."),
    ] = None,
) -> None:
    r"""Say what a fit would release and cost; spend nothing.

    It prints the releases with their noise, the share of the cost of each stage, the error that
    noise is expected to make, and how often the rows are read. From a table it takes only the names
    and types of the columns, and the number of rows. With --ledger it says whether the ledger would
    accept the fit. The options are those of fit.

    For example:
      privtail plan claims.csv --target cost --model ridge --epsilon 1
      privtail plan --rows 100000 --features 20 --model poisson \
        --epsilon 0.5 --plot plan.png
      privtail plan adult.parquet --schema adult.json --epsilon 1 \
        --ledger budget.jsonl
    """
    from privtail.cli.picture import draw_plan, require_drawable
    from privtail.cli.task import Task

    budget, account = promise.budget, promise.account
    output.require_free(plot, data, promise.ledger, declared.schema)
    require_drawable(plot)
    parameters = {"max_rows": persons.max_rows, **promise.arguments}
    if data is None:
        estimator, sizes = _by_sizes(rows, features, declared, choice, parameters)
        found = estimator.plan(*sizes)
        show(str(found))
    else:
        with working("opening the table"):
            task = Task.of(data, declared, written, choice, persons)
            estimator = task.estimator(choice, **parameters)
            sizes = (rows or task.table.n, *task.sizes)
            found = estimator.plan(*sizes)
        show(f"{task}\n{found}\n{task.reading(found)}")
    if account is not None:
        show(_fits(found.epsilon, budget.delta, account.remaining))
    if plot is not None:
        draw_plan(plot, estimator, sizes, overwrite=output.force)
        say(f"wrote {plot}")


def _by_sizes(
    rows: int | None, features: int | None, declared: Declared, choice: Choice,
    parameters: dict[str, Any],
) -> tuple[Any, tuple[Any, ...]]:  # fmt: skip
    """The estimator for a table that is not there, and how large that is; raises InvalidInput."""
    if rows is None or features is None or choice.model is None:
        raise InvalidInput(
            "Name a table, or say how large it is: privtail plan --rows 100000 --features 20 "
            "--model linear --epsilon 1"
        )
    exposed = () if choice.exposure is None else (True,)
    labels = declared.facts().classes
    classes = {} if labels is None else {"classes": labels}
    return choice.estimator(choice.model, **classes, **parameters), (rows, features, (), *exposed)


def _fits(epsilon: float, delta: float, left: tuple[float, float]) -> str:
    """Whether a ledger would admit the plan."""
    from privtail.ledger_texts import digits_below

    enough = epsilon <= left[0] and delta <= left[1]
    verdict = "would fit" if enough else "would be REFUSED"
    epsilon, delta = map(digits_below, left)
    return f"ledger       {verdict}: ε = {epsilon:g}, δ = {delta:g} are left"
