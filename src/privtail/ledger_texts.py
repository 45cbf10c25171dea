"""What a ledger prints and says, from its public numbers. It decides nothing."""

from __future__ import annotations

import math
import shlex
from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from pathlib import Path
from typing import Any, Protocol

from privtail.errors import (
    BudgetExceeded,
    InvalidInput,
    UnsupportedAccounting,
    told,
)

UNREAD = "No row was read."
Pair = tuple[float, float]
"""An epsilon and a delta."""


class Terms(Protocol):
    """The total of a ledger."""

    @property
    def epsilon(self) -> float: ...
    @property
    def delta(self) -> float: ...
    @property
    def neighbours(self) -> str: ...
    @property
    def composition(self) -> str: ...
    @property
    def data_set(self) -> str | None: ...
    @property
    def analysts(self) -> Mapping[str, float] | None: ...


class Entry(Protocol):
    """A plan, as a ledger writes it down."""

    @property
    def number(self) -> int: ...
    @property
    def time(self) -> str: ...
    @property
    def label(self) -> str: ...
    @property
    def epsilon(self) -> float: ...
    @property
    def delta(self) -> float: ...
    @property
    def slack(self) -> float: ...
    @property
    def rho(self) -> float | None: ...
    @property
    def neighbours(self) -> str: ...
    @property
    def unit(self) -> str: ...
    @property
    def analyst(self) -> str | None: ...
    @property
    def purpose(self) -> str | None: ...
    @property
    def data_set(self) -> str | None: ...


def page(
    place: Path | None, terms: Terms, entries: Sequence[Entry], spent: Pair, left: Pair
) -> str:
    """A readable page: the budget, what was spent on what, what is left."""
    said = [n for n in ("analyst", "purpose", "data_set") if any(getattr(e, n) for e in entries)]
    rows = [("", "time", "fit", "ε", "δ", *(name.replace("_", " ") for name in said))]
    rows += [
        (str(e.number), e.time, e.label, f"{e.epsilon:.6g}", f"{e.delta:.6g}",
         *(getattr(e, name) or "" for name in said))
        for e in entries
    ]  # fmt: skip
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    table = ["  ".join(map(str.ljust, row, widths)).rstrip() for row in rows]
    lines = [
        f"privtail ledger {place or 'in memory'}",
        f"budget  {terms}",
        "spent   ε = {:g}, δ = {:g}".format(*map(digits_above, spent)),
        "left    ε = {:g}, δ = {:g}".format(*map(digits_below, left)),
    ]
    if terms.data_set is not None:
        lines.insert(1, f"of      {terms.data_set}")
    for name, share in (terms.analysts or {}).items():
        own = digits_above(math.fsum(e.epsilon for e in entries if e.analyst == name))
        lines.append(f"share   {name}: ε = {share:g}; the ε of its entries add up to {own:g}")
    return "\n".join([*lines, "", *table] if entries else lines)


def digits_below(x: float) -> float:
    """Six digits of x, rounded down: what is printed of a budget can be typed, and fits."""
    return _digits(x, math.floor)


def digits_above(x: float) -> float:
    """Six digits of x, rounded up."""
    return _digits(x, math.ceil)


def _digits(x: float, whole: Callable[[Fraction], int]) -> float:
    if not 0 < x < math.inf:
        return x
    step = Fraction(10) ** (math.floor(math.log10(x)) - 5)
    return float(whole(Fraction(repr(x)) / step) * step)


# --- refusals of a plan ---------------------------------------------------------------------------


def share_above_total(name: str, share: float, total: float) -> InvalidInput:
    """A new ledger would promise an analyst what it refuses."""
    return InvalidInput(
        f"The share of {name!r} is epsilon = {share!r}, and the total is {total!r}: nobody may "
        f"spend more than that. Give {name!r} {total!r} at most, or the ledger a larger epsilon."
    )


def another_data_set(own: str | None, other: str | None) -> InvalidInput:
    """A charge names another data set than the ledger."""
    return InvalidInput(
        f"This ledger is the budget of {own!r}, and the data set is called {other!r}. Use the "
        f"ledger of {other!r}, or correct the name. {UNREAD}"
    )


def no_analyst(name: str | None, analysts: Mapping[str, float]) -> InvalidInput:
    """Somebody without a share asks, or nobody says who does."""
    who = "nobody is named" if name is None else f"{name!r} is none of them"
    return InvalidInput(
        f"This ledger has shares for {', '.join(map(repr, analysts))}, and {who}. Say who asks:",
        f"ledger=ledger.by({next(iter(analysts))!r}).",
        cli=f"--analyst {shlex.quote(next(iter(analysts)))}",
    )


def too_little_of_share(entry: Entry, share: float, left: float | None) -> BudgetExceeded:
    """The analyst's own share has too little left."""
    most = None if left is None else digits_below(left)
    rest = "" if most is None else f", of which ε = {most:g} is left"
    what = (
        f"{entry.label} needs ε = {entry.epsilon:.6g}, and the share of {entry.analyst!r} is "
        f"ε = {share:g}{rest}. Nothing was charged. {UNREAD}"
    )
    if most is None:
        return BudgetExceeded(
            what, "Ask for less: ledger.remaining is what is left.", cli="Ask for less."
        )
    if most <= 0:
        return BudgetExceeded(what, "Only the owner of the data can grant more, by a new ledger.")
    return BudgetExceeded(
        what, f"Ask for at most epsilon={most:g}.", cli=f"What would fit: --epsilon {most:g}"
    )


def another_unit(entry: Entry, counted: str) -> UnsupportedAccounting:
    """The ledger counts rows and the plan is stated for persons, or the other way round."""
    return UnsupportedAccounting(
        f"This ledger counts what one {counted} loses and {entry.label} is stated for one "
        f"{entry.unit}; their epsilons do not add. Keep a second ledger: in one, all calls or "
        "none have",
        "groups= and max_rows=.",
        cli="--groups and --max-rows.",
    )


def other_neighbours(entry: Entry, terms: Terms) -> UnsupportedAccounting:
    """The plan is stated for another relation."""
    return UnsupportedAccounting(
        f"This ledger counts {terms.neighbours!r} neighbours and {entry.label} is stated "
        f"for {entry.neighbours!r}; their epsilons do not add.",
        f"Use neighbours={terms.neighbours!r}.",
        cli=f"Use --neighbours {terms.neighbours}.",
    )


def no_promise(entry: Entry, terms: Terms) -> BudgetExceeded:
    """The plan promises nothing, and the ledger does."""
    return BudgetExceeded(
        f"{entry.label} asks for an infinite epsilon, which is no privacy, and this ledger "
        f"promises epsilon={terms.epsilon!r}. {UNREAD} Give a finite epsilon; a ledger for "
        "results without privacy is",
        "Ledger(epsilon=float('inf')).",
        cli="privtail budget none.jsonl --epsilon inf.",
    )


def simulated(label: str, terms: Terms) -> InvalidInput:
    """The noise of the plan protects nobody."""
    return InvalidInput(
        f"{label} asks for simulated noise, which protects nobody, and this ledger "
        f"promises epsilon={terms.epsilon!r}. {UNREAD}",
        "Use noise='exact'; for an experiment leave the ledger out: ledger=None.",
        cli="Leave --noise out; for an experiment leave --ledger out.",
    )


def no_parameter(entry: Entry, terms: Terms, parameter: str) -> UnsupportedAccounting:
    """The composition of the ledger adds what the plan does not have."""
    only = {"mu": "Gaussian noise on full batches has a mu", "rho": "full batches have a rho"}
    known = "basic" if entry.rho is None else "zcdp"
    return UnsupportedAccounting(
        f"{entry.label} has no {parameter}, which {terms.composition} composition adds: only "
        f"{only[parameter]}, and no search has one. {UNREAD} Keep the budget of this in a ledger "
        "with",
        f"composition={known!r}.",
        cli=f"--composition {known}.",
    )


def too_much_slack(entry: Entry, left: float) -> BudgetExceeded:
    """The theorem describes the plan but for a larger probability than is left."""
    return BudgetExceeded(
        f"{entry.label} needs slack {entry.slack:.3g} (the delta of label discovery, or of sample "
        f"and aggregate), and {left:.3g} of delta / 100 is left. {UNREAD} Declare labels that were "
        "to be found, or keep the budget in a ledger with",
        "composition='basic'.",
        cli="--composition basic.",
    )


def too_little(entry: Entry, terms: Terms, left: Pair) -> BudgetExceeded:
    """The plan costs more than is left."""
    epsilon, delta = map(digits_below, left)
    what = (
        f"{entry.label} asks for epsilon={digits_above(entry.epsilon):g}, "
        f"delta={digits_above(entry.delta):g}. This ledger has epsilon={epsilon:g}, "
        f"delta={delta:g} left, of epsilon={terms.epsilon!r}, delta={terms.delta!r}. "
        f"{UNREAD} Spent budget never comes back."
    )
    if epsilon <= 0 or delta <= 0 < entry.delta:
        return BudgetExceeded(
            what,
            f"Nothing {'' if epsilon <= 0 else 'that needs a delta '}can be released any more "
            "unless the owner grants a new budget.",
        )
    law = "" if terms.composition == "basic" else ", with Gaussian noise"
    return BudgetExceeded(
        what,
        f"Ask for at most epsilon={epsilon:g}, delta={delta:g}{law}.",
        cli=f"What would fit{law}: --epsilon {epsilon:g} --delta {delta:g}",
    )


# --- refusals of a ledger -------------------------------------------------------------------------


def no_pickle(terms: Terms) -> InvalidInput:
    """A ledger in memory is of one process."""
    return InvalidInput(
        "A ledger in memory cannot be pickled or sent to another process: the copy would "
        "not know what this one spends. Use a file: Ledger('budget.jsonl', "
        f"epsilon={terms.epsilon!r}, delta={terms.delta!r}); or n_jobs=1; or set "
        "ledger=None before saving an estimator."
    )


def forked() -> InvalidInput:
    """A ledger in memory is not that of a forked child."""
    return InvalidInput(
        "A ledger in memory cannot be charged from a forked process: its parent would not "
        "see it. Use a file: Ledger('budget.jsonl', epsilon=..., delta=...)."
    )


def no_path(given: object) -> InvalidInput:
    """What was given first is no path."""
    return InvalidInput(
        f"The path of a ledger must be text, got {told(given)}. Name its budget: "
        "Ledger(epsilon=1.0, delta=1e-6)."
    )


def no_budget() -> InvalidInput:
    """A new ledger was given no epsilon."""
    return InvalidInput(
        "A ledger needs a total budget: Ledger(epsilon=1.0, delta=1e-6), or the path of an "
        "existing one."
    )


def no_ledger(name: str) -> InvalidInput:
    """There is no file of this name."""
    return InvalidInput(
        "There is no ledger",
        f"{name!r}. Make it first: Ledger({name!r}, epsilon=1.0, delta=1e-6).",
        cli=f"{name}. Start one with the total that may ever be spent on these data: "
        f"privtail budget {shlex.quote(name)} --epsilon 1 --delta 1e-6",
    )


def another_budget(path: Path, name: str, found: Any, asked: Any) -> InvalidInput:
    """The file has other terms than those that were asked for."""
    return InvalidInput(
        f"{path} has {name}={found!r}, and {name}={asked!r} was "
        "asked for. A budget cannot be changed.",
        f"Open it with Ledger({str(path)!r}) alone.",
        cli=f"To see it: privtail budget {shlex.quote(str(path))}",
    )


def broken(path: Path, number: int, what: str) -> InvalidInput:
    """A line of the file cannot be trusted."""
    return InvalidInput(
        f"Line {number} of the ledger {path} {what}: an entry was edited, deleted or "
        "reordered, so what was spent is not known. Restore the file from a backup; only the "
        "owner of the data can grant a new budget."
    )


def unusable(path: Path, error: OSError, *, write: bool) -> InvalidInput:
    """The file cannot be opened, locked, read or written."""
    if isinstance(error, FileNotFoundError):
        if path.parent.is_dir():
            return not_started(path)
        return InvalidInput(
            f"The folder {path.parent} does not exist. Make it first: "
            f"mkdir -p {shlex.quote(str(path.parent))}"
        )
    if isinstance(error, IsADirectoryError | NotADirectoryError):
        return InvalidInput(f"{path} is not a file. Give a file name, like 'budget.jsonl'.")
    if isinstance(error, PermissionError):
        what, mode = ("write", "u+rw") if write else ("read", "u+r")
        return InvalidInput(
            f"No permission to {what} the ledger {path}. Ask its owner, or: chmod {mode} "
            f"{shlex.quote(str(path))} (and w on its folder to start a new one)."
        )
    return InvalidInput(
        f"The ledger {path} cannot be opened, locked, read or written: {error.strerror}. Put it on "
        "a local, writable disk."
    )


def not_started(path: Path, why: str = "") -> InvalidInput:
    """There is no ledger, or an empty file: what to type."""
    return InvalidInput(
        f"There is no ledger at {path}{why}. To start one:",
        f"Ledger({str(path)!r}, epsilon=1.0, delta=1e-6).",
        cli=f"privtail budget {shlex.quote(str(path))} --epsilon 1 --delta 1e-6",
    )
