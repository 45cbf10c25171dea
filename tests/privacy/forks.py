"""A process that forks in the middle of a release."""

from __future__ import annotations

import os
from collections.abc import Callable

import pytest

from privtail.errors import NotPlanned
from privtail.trusted import allowance, opening


def unchecked(monkeypatch: pytest.MonkeyPatch) -> None:
    """Sabotage: nobody asks which process has paid."""
    for module in (allowance, opening):
        monkeypatch.setattr(module, "require_payer", lambda process: None)


def outcome_of_child(run: Callable[[Callable[[], None]], object]) -> int:
    """1 if ``run`` is refused in the child, and 0 if not; the parent must not be refused.

    ``run`` gets a function that forks at its first call.
    """
    children: list[int] = []

    def fork() -> None:
        if not children:
            children.append(os.fork())

    refused = False
    try:
        run(fork)
    except NotPlanned:
        refused = True
    if children == [0]:
        os._exit(int(refused))
    assert not refused
    return os.waitstatus_to_exitcode(os.waitpid(children[0], 0)[1])
