"""The budget of one trial of a search, or of the fit of one fold."""

from __future__ import annotations

import math
import os
import threading
from fractions import Fraction
from typing import Any, NoReturn

from privtail.errors import BudgetExceeded, NotPlanned, NotReleased
from privtail.trusted.budget import Neighbours
from privtail.trusted.entries import Amount, Unit


class Allowance:
    """A ledger for one trial of a search: it admits plans up to a total zCDP cost.

    Formal guarantee
    ----------------
    Admits plans of at most ``rho`` in total, in zCDP without slack (a zCDP filter, as in `Ledger`;
    the sum is exact), in the process ``payer``. Plans must have the neighbours and the unit of the
    search: one row, or one person of those with ``seats``, whose rows are the only ones that the
    curator may hold. A trial without an admitted plan fails. Noise is exact if ``exact``.
    """

    def __init__(
        self, rho: float, neighbours: Neighbours, seats: Any = None, *, payer: int,
        exact: bool = True,
    ) -> None:  # fmt: skip
        self._rho, self._seats, self._exact, self._payer = rho, seats, exact, payer
        self._lock, self._of = threading.Lock(), (neighbours, "row" if seats is None else "person")
        self._used: Amount | None = None

    def require(self, seats: Any, exact: bool) -> None:
        """Refuse other records than those of this trial, and simulated noise for exact noise."""
        if seats is not self._seats:
            raise NotPlanned("A trial of this search fits the persons that were dealt to it.")
        if self._exact and not exact:
            raise NotPlanned("A trial of this search needs exact noise, as the search promises it.")

    def reserve(
        self, *, label: str, epsilon: float, delta: float, neighbours: Neighbours,
        plan: list[dict[str, Any]], mu: float | None = None, rho: float | None = None,
        unit: Unit = "row",
    ) -> None:  # fmt: skip
        """Admit a plan of the trial, or raise BudgetExceeded; NotPlanned in a forked child."""
        require_payer(self._payer)
        fails = any(event["delta"] for r in plan for event in r["events"])
        known = rho is not None and 0 <= rho < math.inf and not fails
        with self._lock:
            used = (self._used or 0) + (Fraction(rho or 0) if known else math.inf)
            if not used <= self._rho or (neighbours, unit) != self._of:
                raise BudgetExceeded(
                    f"{label} asks for more than a trial of this search may spend. Candidates need "
                    "full batches and declared classes."
                )
            self._used = used

    def __copy__(self) -> Allowance:
        return self

    def __deepcopy__(self, memo: dict[int, Any]) -> Allowance:
        return self

    def __reduce__(self) -> NoReturn:
        raise NotReleased("An allowance is of one search: it cannot be pickled.")

    @property
    def spent(self) -> bool:
        """Whether a plan was admitted."""
        return self._used is not None


def require_payer(process: int) -> None:
    """Refuse to go on in another process than this one, which has paid."""
    if process != os.getpid():
        raise NotPlanned("A forked process cannot release what its parent has paid for.")
