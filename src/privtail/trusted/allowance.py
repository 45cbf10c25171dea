"""The budget of one trial of a search, or of the fit of one fold."""

from __future__ import annotations

import math
import threading
from fractions import Fraction
from typing import Any, NoReturn

from privtail.errors import BudgetExceeded, NotPlanned, NotReleased
from privtail.trusted.budget import Neighbours
from privtail.trusted.entries import Unit


class Allowance:
    """A ledger for one trial of a search: it admits plans up to a total zCDP cost.

    Formal guarantee
    ----------------
    Admits plans of at most ``rho`` in total, in zCDP without slack (a zCDP filter, as in `Ledger`;
    the sum is exact). Plans must have the neighbours and the unit of the search: one row, or one
    person of those with ``seats``, whose rows are the only ones that the curator may hold. A trial
    without an admitted plan fails. A copy is the same allowance.
    """

    def __init__(self, rho: float, neighbours: Neighbours, seats: Any = None) -> None:
        self._rho, self._neighbours, self._spent = rho, neighbours, False
        self._seats, self._used, self._lock = seats, Fraction(0), threading.Lock()

    def require(self, seats: Any) -> None:
        """Refuse records other than those of this trial."""
        if seats is not self._seats:
            raise NotPlanned("A trial of this search fits the persons that were dealt to it.")

    def reserve(
        self, *, label: str, epsilon: float, delta: float, neighbours: Neighbours,
        plan: list[dict[str, Any]], mu: float | None = None, rho: float | None = None,
        unit: Unit = "row",
    ) -> None:  # fmt: skip
        """Admit a plan of the trial, or raise BudgetExceeded."""
        fails = any(event["delta"] for r in plan for event in r["events"])
        known = rho is not None and 0 <= rho < math.inf and not fails
        with self._lock:
            used = self._used + (Fraction(rho) if known and rho is not None else 0)
            dear = math.isfinite(self._rho) and not (known and used <= Fraction(self._rho))
            if dear or neighbours != self._neighbours or unit != self._unit:
                raise BudgetExceeded(
                    f"{label} asks for more than a trial of this search may spend. Candidates need "
                    "full batches and declared classes."
                )
            self._spent, self._used = True, used

    def __copy__(self) -> Allowance:
        return self

    def __deepcopy__(self, memo: dict[int, Any]) -> Allowance:
        return self

    def __reduce__(self) -> NoReturn:
        raise NotReleased("An allowance is of one search: it cannot be pickled.")

    @property
    def _unit(self) -> Unit:
        return "row" if self._seats is None else "person"

    @property
    def spent(self) -> bool:
        """Whether a plan was admitted."""
        return self._spent
