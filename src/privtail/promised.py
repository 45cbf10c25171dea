"""The budget of one call, from where it is taken, and where noise comes from."""

from __future__ import annotations

import os
from dataclasses import dataclass, replace
from typing import Any, Literal, Self

from privtail.errors import BudgetExceeded, DeltaWarning, warn
from privtail.ledgers import as_ledger
from privtail.table_files import opened
from privtail.trusted.allowance import Allowance
from privtail.trusted.budget import Budget, Neighbours
from privtail.trusted.entries import decimal, float_below
from privtail.trusted.ledger import Ledger
from privtail.trusted.tables import without_persons


@dataclass(frozen=True, kw_only=True)
class Promised:
    """What is promised for a call as a whole: arguments as of `private_mean`."""

    epsilon: float
    delta: float
    neighbours: Neighbours
    noise: Literal["exact", "simulated"]
    random_state: int | None
    ledger: Ledger | Allowance | str | os.PathLike[str] | None
    groups: Any
    max_rows: int | None

    def require_left(self) -> None:
        """Refuse before the first of several plans what the ledger cannot pay for as a whole.

        Raises
        ------
        BudgetExceeded
            If less than epsilon and delta is left.
        """
        Budget(self.epsilon, self.delta, self.neighbours)
        ledger = as_ledger(self.ledger)
        if not isinstance(ledger, Ledger):
            return
        epsilon, delta = ledger.remaining
        if self.epsilon > epsilon or self.delta > delta:
            raise BudgetExceeded(
                f"This costs epsilon = {self.epsilon:g} and delta = {self.delta:g}, but the ledger "
                f"has {epsilon:.4g} and {delta:.4g} left. Nothing was charged: ask for less, or "
                "use another ledger."
            )

    def warn(self, n: int) -> None:
        """Warn if delta is above one over the number of rows, which is public."""
        warn_of_delta(Budget(self.epsilon, self.delta, self.neighbours), n)

    def over(self, data: Any) -> tuple[Any, Self]:
        """Data and promise, where ``groups`` may name the column of a file that holds persons.

        Raises
        ------
        InvalidInput
            If there is no such file, or no such column of it.
        """
        if not isinstance(self.groups, str):
            return data, self
        table, persons = without_persons(opened(data), self.groups)
        return table, replace(self, groups=persons)  # the core refuses a name without a file

    def options(self, label: str, part: float = 1.0) -> dict[str, Any]:
        """Options of the `Curator` of a plan, for this part of epsilon and delta."""
        whole = Budget(self.epsilon, self.delta, self.neighbours)
        return {
            "budget": Budget(_of(part, whole.epsilon), _of(part, whole.delta), whole.neighbours),
            "ledger": as_ledger(self.ledger),
            "noise": self.noise,
            "random_state": self.random_state,
            "groups": self.groups,
            "max_rows": self.max_rows,
            "label": label,
        }


def warn_of_delta(budget: Budget, n: int) -> None:
    """Issue the warning of `large_delta`, if there is one."""
    text = large_delta(budget, n, "This call")
    if text:
        warn(text, DeltaWarning)


def large_delta(budget: Budget, n: int, what: str) -> str:
    """What a delta above 1/n would allow; nothing of a smaller one, or without privacy."""
    if not budget.private or budget.delta <= 1 / n:
        return ""
    return (
        f"delta = {budget.delta:g} is above 1/n = {1 / n:.3g}. {what} publishes no row, but so "
        "large a delta would also allow publishing one random row. A stronger promise costs "
        f"little: a delta of {below_one_of(n):g}."
    )


def below_one_of(n: int) -> float:
    """A power of ten that is at most a tenth of 1/n."""
    return 10.0 ** -(len(str(n - 1)) + 1)


def _of(part: float, whole: float) -> float:
    """A part of the whole in decimals, as a ledger adds them, rounded down."""
    return float_below(decimal(part) * decimal(whole))
