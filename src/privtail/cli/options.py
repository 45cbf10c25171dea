"""Arguments that several verbs share."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

from privtail.errors import InvalidInput
from privtail.trusted.budget import Budget
from privtail.trusted.ledger import Ledger

Data = Annotated[
    Path,
    typer.Argument(
        show_default=False, help="A Parquet file, or CSV with a header, that fits in memory."
    ),
]
Epsilon = Annotated[
    float,
    typer.Option(
        show_default=False, help="Privacy budget; 0.1 is strong, 10 weak, inf not private."
    ),
]
Delta = Annotated[float, typer.Option(help="Its failure probability; well below 1/rows.")]
Relation = Annotated[
    Literal["replace_one", "zero_out"],
    typer.Option("--neighbours", help="A row replaced by any other, or emptied or filled."),
]
Noise = Annotated[
    Literal["exact", "simulated"],
    typer.Option(help="Simulated noise is fast, seeded and NOT PRIVATE: for rehearsals."),
]
Seed = Annotated[
    int | None,
    typer.Option(
        show_default=False, help="Seed of public choices, and of simulated noise; never of exact."
    ),
]
LedgerPath = Annotated[
    Path | None,
    typer.Option(
        "--ledger", show_default=False, help="Charge this budget (privtail budget --help)."
    ),
]
Force = Annotated[bool, typer.Option("--force", help="Overwrite the file if it exists.")]


def opened_ledger(path: Path | None) -> Ledger | None:
    """The ledger at this path.

    Raises
    ------
    InvalidInput
        If there is none, or it cannot be used.
    """
    if path is None:
        return None
    if not path.exists():
        raise InvalidInput(
            f"There is no ledger {path}. Start one with the total that may ever be spent on these "
            f"data: privtail budget {path} --epsilon 3 --delta 1e-5"
        )
    return Ledger(path)


def promise(budget: Budget, noise: str) -> str:
    """One line that says what is about to be promised."""
    relation = budget.neighbours.replace("_", "-")
    if noise == "simulated" or not budget.private:
        return "NOT PRIVATE: " + ("simulated noise" if budget.private else "epsilon is infinite")
    return f"ε = {budget.epsilon:g}, δ = {budget.delta:g}, {relation} neighbours, exact noise"


def advice(budget: Budget, rows: int) -> str | None:
    """A warning from public numbers."""
    if budget.delta > 1 / rows:
        return (
            f"Warning. δ = {budget.delta:g} is above 1/rows = {1 / rows:.2g}: a mechanism that "
            "publishes whole rows could keep such a promise."
        )
    return None
