"""What presets from theorems on (epsilon, delta) ask of a budget."""

from __future__ import annotations

from privtail.errors import InvalidInput
from privtail.trusted.budget import Budget


def require_approximate(budget: Budget, needed_by: str) -> None:
    """Refuse a budget with an infinite epsilon or delta 0, which the theorem does not cover.

    Raises
    ------
    InvalidInput
        If epsilon is infinite or delta is 0.
    """
    if not (budget.private and budget.delta > 0):
        raise InvalidInput(
            f"{needed_by} needs a finite epsilon and delta > 0, for example",
            "Budget(1.0, 1e-6). Give the parameters themselves for anything else.",
            cli="--epsilon 1 --delta 1e-6.",
        )
