"""The ledger that somebody names: an object, or the path of a file."""

from __future__ import annotations

import os

from privtail import ledger_texts as texts
from privtail.errors import InvalidInput
from privtail.trusted.allowance import Allowance
from privtail.trusted.ledger import Ledger


def as_ledger(
    ledger: Ledger | Allowance | str | os.PathLike[str] | None,
) -> Ledger | Allowance | None:
    """A ledger, or that of an existing file.

    Raises
    ------
    InvalidInput
        For anything else, and where there is no such file.
    """
    if ledger is None or isinstance(ledger, Ledger | Allowance):
        return ledger
    if not isinstance(ledger, str | os.PathLike):
        raise InvalidInput(
            "ledger must be a Ledger, the path of one, or None: ledger=Ledger(epsilon=1.0, "
            "delta=1e-6)."
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
