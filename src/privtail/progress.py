"""Watching long work: how many rounds are done. Public numbers only."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

Callback = Callable[[int, int, str], object]


class _Display:
    """A callback that is switched off by its first failure."""

    def __init__(self, callback: Callback) -> None:
        self.callback = callback
        self.failure: Exception | None = None

    def show(self, done: int, planned: int, stage: str) -> None:
        if self.failure is None:
            try:
                self.callback(done, planned, stage)
            except Exception as error:  # noqa: BLE001  a display must not lose a paid release
                self.failure = error


_WATCHED: ContextVar[_Display | None] = ContextVar("privtail_progress", default=None)


@contextmanager
def watching(callback: Callback) -> Iterator[None]:
    """Call ``callback(done_rounds, planned_rounds, stage)`` after every round of every fit inside.

    All are public, from the plan; ``stage`` names what the round was for, such as ``"descent"``
    (empty where the algorithm gives no name). Each fit counts its own rounds. The callback runs in
    the thread of the fit. An inner ``watching`` replaces the outer one until it ends, and a thread
    watches what was asked for in its own context.

    A callback that fails does not cost a release that was paid for: it is not called again, the
    fit goes on, and a `RuntimeWarning` names the failure when the watch ends. What is not an
    `Exception` (KeyboardInterrupt, SystemExit) passes through.
    """
    display = _Display(callback)
    token = _WATCHED.set(display)
    try:
        yield
    finally:
        _WATCHED.reset(token)
    if display.failure is not None:
        warnings.warn(
            f"The progress display failed with {type(display.failure).__name__} and was switched "
            "off. The fit is not affected.",
            RuntimeWarning,
            stacklevel=3,
        )


def report(done: int, planned: int, stage: str) -> None:
    """Tell whoever watches this context."""
    display = _WATCHED.get()
    if display is not None:
        display.show(done, planned, stage)
