"""The total budget of a data set: what may be spent, and what has been.

Formal guarantee
----------------
A ledger is a privacy filter: its limits are fixed when it is made, each plan is admitted or refused
from public numbers before a record is read, nothing is ever refunded, and all admitted plans
together are (epsilon, delta)-DP, also when each is chosen after seeing the releases of those before
it. Three filters are proved for such fully adaptive choices:

============  ==================================  ==================================================
composition   limits                              proof
============  ==================================  ==================================================
``basic``     sum epsilon_i <= epsilon and        Rogers, Roth, Ullman, Vadhan 2016
              sum delta_i <= delta
``zcdp``      sum rho_i <= R and                  Feldman and Zrnic 2021; with slack (approximate
              sum slack_i <= delta / 100          zCDP) Whitehouse, Ramdas, Rogers, Wu 2023
``gdp``       sum mu_i^2 <= M^2 and               Smith and Thakurta 2022; Koskela, Tobaben, Honkela
              sum slack_i <= delta / 100          2023
============  ==================================  ==================================================

R and M are the largest that ``ZeroConcentratedDP`` and ``GaussianDP`` convert to (epsilon, 0.99
delta). A slack is the probability that the theorem does not apply to a plan: the delta of a label
release, or of noise by a smooth sensitivity (see ``ButFor``). The two limits are fixed apart from
each other because no filter is proved for a limit on a function of both sums. Privacy loss
distributions are never added. The guarantee is that of the whole budget:
``spent`` is bookkeeping, not a smaller promise made afterwards.

Names of analysts, purposes and data sets are public, and so is what they refuse: an analyst's share
is a second limit, on the sum of that analyst's own plans, within the same total. Refusing more
plans leaves a filter one.

Sums are exact fractions of the decimals that ``repr`` shows: ten fits of 0.1 fill 1.0. A decimal
differs from its double by less than one part in 10^15.
"""

from __future__ import annotations

import math
import os
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from fractions import Fraction
from html import escape
from pathlib import Path
from types import MappingProxyType
from typing import Any, Protocol

from privtail import ledger_texts as texts
from privtail.errors import BudgetExceeded
from privtail.spelling import printable
from privtail.trusted.budget import Neighbours
from privtail.trusted.entries import (
    SLACK_SHARE,
    Amount,
    Composition,
    Entry,
    Terms,
    Unit,
    decimal,
    float_above,
    float_below,
    require_name,
)
from privtail.trusted.events import plan_from_json


class Pages(Protocol):
    """Exclusive or shared sight of all entries, and a way to append one."""

    @contextmanager
    def open(self, *, write: bool) -> Iterator[tuple[list[Entry], Callable[[Entry], None]]]: ...


class Memory:
    """Entries in the memory of one process, which alone may add to them."""

    def __init__(self) -> None:
        self._entries: list[Entry] = []
        self._lock, self._pid = threading.Lock(), os.getpid()

    @contextmanager
    def open(self, *, write: bool) -> Iterator[tuple[list[Entry], Callable[[Entry], None]]]:
        if write and os.getpid() != self._pid:
            raise texts.forked()
        with self._lock:
            yield list(self._entries), self._entries.append


@dataclass(frozen=True)
class Reservation:
    """Proof that a plan has been charged: its releases may follow."""

    number: int
    label: str
    epsilon: float
    delta: float
    ledger: str
    names: Mapping[str, str | None]

    def __str__(self) -> str:
        """The number of the entry, its ledger, and the public names that it carries."""
        named = (f"{name.replace('_', ' ')} {said!r}" for name, said in self.names.items() if said)
        return ", ".join([f"entry {self.number} of {self.ledger}", *named])


class Ledger:
    """The total budget of a data set, in memory or in a file that processes share.

    Parameters
    ----------
    path : path or None, default=None
        File of the ledger; None keeps it in the memory of this process. An existing file brings its
        own budget: give the path alone, or the same numbers again.
    epsilon : float or None, default=None
        The total epsilon that may be spent. A new ledger needs it.
    delta : float or None, default=None
        The total delta. A new ledger of a finite epsilon needs it; 0 admits pure epsilon-DP alone.
    neighbours : {"replace_one", "zero_out"} or None, default=None
        The relation that all plans are stated for; None for ``"replace_one"`` or that of the file.
    composition : {"basic", "zcdp", "gdp"} or None, default=None
        How costs add up; None for ``"basic"`` or that of the file. ``"basic"`` accepts every plan,
        ``"zcdp"`` those that have a rho, and ``"gdp"`` those with Gaussian noise alone. The last
        two admit many more small plans.
    data_set : str or None, default=None
        The name of the data set: a charge that names another one is refused.
    analysts : dict of str to float or None, default=None
        Who may charge the ledger, and the epsilon that each may spend in all, such as
        ``{"ann": 1.0, "bob": 0.5}``. The total holds for all of them together. Then every charge
        names its analyst (`by`). None admits everybody.

    Raises
    ------
    InvalidInput
        If the numbers cannot be used, differ from those of the file, or the file cannot be read,
        locked or trusted.

    Notes
    -----
    Copies (``copy``, ``deepcopy``, ``sklearn.clone``) are the same ledger. A file ledger pickles as
    its path; one in memory refuses to be pickled and to be charged after a fork.

    Examples
    --------
    >>> import numpy as np
    >>> from privtail import Ledger, private_mean
    >>> ledger = Ledger(epsilon=1.0, delta=1e-5)
    >>> mean = private_mean(np.arange(1_000.0), epsilon=0.25, delta=1e-6, ledger=ledger)
    >>> epsilon, delta = ledger.remaining
    >>> round(epsilon, 4)
    0.75
    """

    def __init__(
        self,
        path: str | os.PathLike[str] | None = None,
        *,
        epsilon: float | None = None,
        delta: float | None = None,
        neighbours: Neighbours | None = None,
        composition: Composition | None = None,
        data_set: str | None = None,
        analysts: Mapping[str, float] | None = None,
    ) -> None:
        given: dict[str, Any] = {
            "epsilon": epsilon,
            "delta": delta,
            "neighbours": neighbours,
            "composition": composition,
            "data_set": data_set,
            "analysts": dict(analysts) if isinstance(analysts, Mapping) else analysts,
        }
        given = {name: value for name, value in given.items() if value is not None}
        if not isinstance(path, str | os.PathLike | None):
            raise texts.no_path(path)
        if path is not None:
            self.path: Path | None = Path(path).absolute()
            from privtail.trusted.journal import File

            file = File(self.path)
            self._pages: Pages = file
            self.terms = file.begin(given)
        elif epsilon is None:
            raise texts.no_budget()
        else:
            self.path = None
            self._pages = Memory()
            self.terms = Terms.of(given)

    names: Mapping[str, str] = MappingProxyType({})
    """Who charges through this object, what for, and which data set (`by`)."""

    def by(
        self, analyst: str | None = None, *, purpose: str | None = None,
        data_set: str | None = None,
    ) -> Ledger:  # fmt: skip
        """The same ledger, whose charges carry these names.

        Parameters
        ----------
        analyst : str or None, default=None
            Who asks.
        purpose : str or None, default=None
            What for.
        data_set : str or None, default=None
            The name of the data set that is asked about.

        Returns
        -------
        Ledger
            It has the budget and the entries of this one.

        Raises
        ------
        InvalidInput
            If a name is no line of text, the ledger is of another data set, or it has analysts and
            this is none of them.

        Examples
        --------
        >>> from privtail import Ledger
        >>> ledger = Ledger(epsilon=2.0, delta=1e-5, analysts={"ann": 1.0, "bob": 0.5})
        >>> own = ledger.by("ann", purpose="tariff 2027")
        >>> own.names["analyst"]
        'ann'
        """
        given = {"analyst": analyst, "purpose": purpose, "data_set": data_set}
        plain = {name: require_name(name, value) for name, value in given.items()}
        named = {**self.names, **{name: v for name, v in plain.items() if v is not None}}
        self._require_names(named)
        other = object.__new__(Ledger)
        other.path, other._pages, other.terms = self.path, self._pages, self.terms
        other.names = MappingProxyType(named)
        return other

    def _require_names(self, named: Mapping[str, str]) -> None:
        """Refuse another data set, and whoever is no analyst of this ledger."""
        terms, data_set, analyst = self.terms, named.get("data_set"), named.get("analyst")
        if None not in (terms.data_set, data_set) and terms.data_set != data_set:
            raise texts.another_data_set(terms.data_set, data_set)
        if terms.analysts is not None and analyst is not None and analyst not in terms.analysts:
            raise texts.no_analyst(analyst, terms.analysts)

    def reserve(
        self,
        *,
        label: str,
        epsilon: float,
        delta: float,
        neighbours: Neighbours,
        plan: list[dict[str, Any]],
        mu: float | None = None,
        rho: float | None = None,
        unit: Unit = "row",
    ) -> Reservation:
        """Charge a plan, before any of its releases. Nothing is ever refunded.

        Parameters
        ----------
        label : str
            What will be fitted.
        epsilon : float
            Epsilon of the plan.
        delta : float
            Delta of the plan.
        neighbours : {"replace_one", "zero_out"}
            Relation of that cost.
        plan : list of dict
            The plan, by `plan_to_json`.
        mu : float or None, default=None
            Its parameter of Gaussian differential privacy, if it has one.
        rho : float or None, default=None
            Its parameter of zCDP, if it has one.
        unit : {"row", "person"}, default="row"
            Whether that relation is about one row or about one person with several.

        Returns
        -------
        Reservation
            Proof that the plan was charged.

        Raises
        ------
        BudgetExceeded
            If too little is left. No row was read.
        UnsupportedAccounting
            If this ledger's composition has no theorem for the plan, or it counts another unit.
        InvalidInput
            If a number cannot be used, or the file cannot be read, trusted or written.
        """
        entry = Entry(
            number=0,
            label=label,
            epsilon=epsilon,
            delta=delta,
            mu=mu,
            rho=rho,
            slack=_slack(plan, self.terms),
            neighbours=neighbours,
            plan=plan,
            time=datetime.now(UTC).isoformat(timespec="seconds"),
            pid=os.getpid(),
            unit=unit,
            **self.names,
        )
        self._require_names(self.names)
        if self.terms.analysts is not None and entry.analyst is None:
            raise texts.no_analyst(None, self.terms.analysts)
        self._require_theorem(entry)
        with self._pages.open(write=True) as (entries, append):
            if entries and entries[0].unit != unit:
                raise texts.another_unit(entry, entries[0].unit)
            losses, slacks = self._total([*entries, entry])
            most, slackest = self.terms.limits
            if losses > most or slacks > slackest:
                raise self._refusal(entry, entries)
            self._require_share(entry, entries)
            entry = replace(entry, number=len(entries) + 1)
            append(entry)
        own = {"data_set": self.terms.data_set, **self.names}
        place = "a ledger in memory" if self.path is None else repr(self.path.name)
        return Reservation(entry.number, label, entry.epsilon, entry.delta, place, own)

    def refuse_simulated(self, label: str) -> None:
        """Refuse simulated noise, unless nothing is promised.

        Parameters
        ----------
        label : str
            What would be fitted, for the error.

        Raises
        ------
        InvalidInput
            If the ledger promises a finite epsilon.
        """
        if math.isfinite(self.terms.epsilon):
            raise texts.simulated(label, self.terms)

    def _require_share(self, entry: Entry, entries: list[Entry]) -> None:
        """Refuse what is more than its analyst may spend: a bound within the total."""
        if self.terms.analysts is None or entry.analyst is None:
            return
        own = [e for e in entries if e.analyst == entry.analyst]
        share = self.terms.of_analyst(entry.analyst)
        if share is not None and self._total([*own, entry])[0] > share.limits[0]:
            left = float_below(max(decimal(share.epsilon) - self._total(own)[0], Fraction(0)))
            basic = self.terms.composition == "basic"
            raise texts.too_little_of_share(entry, share.epsilon, left if basic else None)

    def entries(self) -> tuple[Entry, ...]:
        """Everything that was reserved, oldest first."""
        with self._pages.open(write=False) as (entries, _):
            return tuple(entries)

    @property
    def spent(self) -> tuple[float, float]:
        """(epsilon, delta) of everything reserved so far; bookkeeping, not a smaller promise."""
        return self._spent(self.entries())

    @property
    def remaining(self) -> tuple[float, float]:
        """(epsilon, delta) that one more fit may ask for (zcdp, gdp: a fit of Gaussian noise).

        An analyst (`by`) may ask for no more than is left of the share.
        """
        entries, analyst = self.entries(), self.names.get("analyst")
        epsilon, delta = self._remaining(entries)
        share = None if analyst is None else self.terms.of_analyst(analyst)
        if share is not None:
            own = [entry for entry in entries if entry.analyst == analyst]
            epsilon = min(epsilon, self._remaining(own, share.limits[0])[0])
        return epsilon, delta

    def to_text(self) -> str:
        """A readable page: the budget, what was spent on what, what is left."""
        entries = self.entries()
        spent, left = self._spent(entries), self._remaining(entries)
        return texts.page(self.path, self.terms, entries, spent, left)

    def __str__(self) -> str:
        return printable(self.to_text())

    def _repr_html_(self) -> str:
        return f"<pre>{escape(self.to_text())}</pre>"

    def __repr__(self) -> str:
        arguments = [repr(str(self.path))] if self.path else []
        arguments += [f"{k}={v!r}" for k, v in self.terms.content.items() if v is not None]
        named = ", ".join(f"{k}={v!r}" for k, v in self.names.items())
        return f"Ledger({', '.join(arguments)})" + (f".by({named})" if named else "")

    def __copy__(self) -> Ledger:
        return self

    def __deepcopy__(self, memo: dict[int, Any]) -> Ledger:
        return self

    def __reduce__(self) -> tuple[Any, ...]:
        if self.path is None:
            raise texts.no_pickle(self.terms)
        return _opened, (str(self.path), dict(self.names))

    # ---------------------------------------------------------------- arithmetic

    def _require_theorem(self, entry: Entry) -> None:
        terms = self.terms
        if entry.neighbours != terms.neighbours:
            raise texts.other_neighbours(entry, terms)
        if math.isinf(entry.epsilon) and math.isfinite(terms.epsilon):
            raise texts.no_promise(entry, terms)
        parameter = {"basic": "epsilon", "zcdp": "rho", "gdp": "mu"}[terms.composition]
        if getattr(entry, parameter) is None:
            raise texts.no_parameter(entry, terms, parameter)

    def _total(self, entries: list[Entry] | tuple[Entry, ...]) -> tuple[Amount, Amount]:
        kind = self.terms.composition
        if kind == "basic":
            pairs = [(decimal(e.epsilon), decimal(e.delta)) for e in entries]
        elif kind == "zcdp":
            pairs = [(decimal(e.rho or 0.0), decimal(e.slack)) for e in entries]
        else:
            pairs = [(decimal(e.mu or 0.0) ** 2, decimal(e.slack)) for e in entries]
        zero: Amount = Fraction(0)
        return sum((p[0] for p in pairs), zero), sum((p[1] for p in pairs), zero)

    def _spent(self, entries: tuple[Entry, ...]) -> tuple[float, float]:
        losses, slacks = self._total(entries)
        if self.terms.composition == "basic":
            return float_above(losses), float_above(slacks)
        if not losses and not slacks:
            return 0.0, 0.0
        from privtail.trusted.accounting.curves import GaussianDP, ZeroConcentratedDP

        delta = self.terms.delta * (1 - float(SLACK_SHARE))
        if self.terms.composition == "zcdp":
            return ZeroConcentratedDP(float(losses)).epsilon(delta), self.terms.delta
        return GaussianDP(math.sqrt(losses)).epsilon(delta), self.terms.delta

    def _remaining(
        self, entries: tuple[Entry, ...] | list[Entry], share: Amount = math.inf
    ) -> tuple[float, float]:
        (losses, slacks), (most, slackest) = self._total(entries), self.terms.limits
        most = min(most, share)
        if self.terms.composition == "basic":
            left = most if math.isinf(most) else max(most - losses, Fraction(0))
            return float_below(left), float_below(max(slackest - slacks, Fraction(0)))
        from privtail.trusted.accounting.curves import GaussianDP

        squared = max(most - losses, Fraction(0)) * (2 if self.terms.composition == "zcdp" else 1)
        exact = GaussianDP(math.sqrt(squared) * (1 - 1e-12)).epsilon(self.terms.delta)
        epsilon = texts.digits_below(exact * (1 - 1e-9))
        return epsilon, self.terms.delta if epsilon else 0.0

    def _refusal(self, entry: Entry, entries: list[Entry]) -> BudgetExceeded:
        slack_left = self.terms.limits[1] - self._total(entries)[1]
        if self.terms.composition != "basic" and decimal(entry.slack) > slack_left:
            return texts.too_much_slack(entry, float(slack_left))
        return texts.too_little(entry, self.terms, self._remaining(entries))


def _opened(path: str, names: dict[str, str]) -> Ledger:
    ledger = Ledger(path)
    return ledger.by(**names) if names else ledger


def _slack(plan: list[dict[str, Any]], terms: Terms) -> float:
    """Probability that rho (zcdp) or mu (gdp) does not describe the plan, rounded up."""
    rounds = plan_from_json(plan)
    if terms.composition == "basic":
        return 0.0
    return math.fsum(e.delta * r.times for r in rounds for e in r.events) * (1 + 1e-15)
