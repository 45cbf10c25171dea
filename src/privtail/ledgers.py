"""The ledger that somebody names: an object, or the path of a file."""

from __future__ import annotations

import functools
import os
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

from privtail import ledger_texts as texts
from privtail.errors import InvalidInput
from privtail.trusted.allowance import Allowance
from privtail.trusted.exactly import is_one_of
from privtail.trusted.ledger import Ledger

Verb = TypeVar("Verb", bound=Callable[..., Any])


def as_ledger(
    ledger: Ledger | Allowance | str | os.PathLike[str] | None,
) -> Ledger | Allowance | None:
    """A ledger, or that of an existing file.

    Raises
    ------
    InvalidInput
        For anything else, and where there is no such file.
    """
    if ledger is None or is_one_of(ledger, (Ledger, Allowance)):
        return ledger  # type: ignore[return-value]
    if not isinstance(ledger, str | os.PathLike):
        raise InvalidInput(
            "ledger must be a Ledger and of no class derived from it, the path of one, or None: "
            "ledger=Ledger(epsilon=1.0, delta=1e-6)."
        )
    return existing(ledger)


def existing(path: str | os.PathLike[str]) -> Ledger:
    """The ledger in this file.

    Raises
    ------
    InvalidInput
        If there is none, or it cannot be used.
    """
    if not os.path.exists(path):  # noqa: PTH110  a str or a path
        raise texts.no_ledger(os.fspath(path))
    return Ledger(path)


def interruptible(verb: Verb) -> Verb:
    """Decorate a function with a ``ledger``: Ctrl-C says what this was charged.

    The sentence is a note of the KeyboardInterrupt, below its traceback.
    """

    @functools.wraps(verb)
    def told(*args: Any, **kwargs: Any) -> Any:
        with telling_charge(kwargs.get("ledger")):
            return verb(*args, **kwargs)

    return told  # type: ignore[return-value]


@contextmanager
def telling_charge(ledger: Any) -> Iterator[None]:
    """Note on a KeyboardInterrupt what happened inside was charged to this ledger."""
    account = None
    if isinstance(ledger, Ledger):
        account = ledger
    elif isinstance(ledger, str | os.PathLike) and os.path.exists(ledger):  # noqa: PTH110
        account = Ledger(ledger)
    before = 0 if account is None else len(account.entries())
    try:
        yield
    except KeyboardInterrupt as interrupt:
        traceback.clear_frames(interrupt.__traceback__)  # they may hold the lock, and hold rows
        if account is not None:
            interrupt.add_note(charged(account, before))
        raise


def charged(account: Ledger | None, before: int) -> str:
    """What this process has charged to the ledger since it had ``before`` entries."""
    if account is None:
        return "Nothing was released. There was no ledger, so nothing was charged."
    own = [entry for entry in account.entries()[before:] if entry.pid == os.getpid()]
    name = account.path or "The ledger"
    if not own:
        return f"{name} was not charged."
    spent = " and ".join(f"ε = {entry.epsilon:.6g}, δ = {entry.delta:.6g}" for entry in own)
    return f"{name} was charged {spent}: that is spent, though nothing was shown."
