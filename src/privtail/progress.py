"""Watching long work: how many rounds are done. Public numbers only."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

from privtail.errors import warn
from privtail.spelling import counted

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
        warn(
            f"The progress display failed with {type(display.failure).__name__} and was switched "
            "off. The fit is not affected.",
            RuntimeWarning,
        )


def report(done: int, planned: int, stage: str) -> None:
    """Tell whoever watches this context."""
    display = _WATCHED.get()
    if display is not None:
        display.show(done, planned, stage)


class TimeLeft:
    """Seconds left, by the pace since the first round: compilation comes before it."""

    def __init__(self) -> None:
        self.first = self.last = 0
        self.began = 0.0

    def after(self, done: int, planned: int) -> float | None:
        """Seconds left after ``done`` rounds; None while there is no pace, and at the end."""
        now = time.monotonic()
        if done <= self.last or not self.last:
            self.first, self.began = done, now
        self.last = done
        if not self.first < done < planned:
            return None
        return (now - self.began) / (done - self.first) * (planned - done)


@contextmanager
def progress_bar(text: str = "privtail") -> Iterator[None]:
    """Show the rounds of all calls inside ``with`` as a bar with the time left.

    With tqdm installed it is the bar of ``tqdm.auto``, which is a widget in a notebook with
    ipywidgets. Without tqdm a fit writes ten lines to standard error. The numbers are public: they
    come from the plan.

    Parameters
    ----------
    text : str, default="privtail"
        What stands before the bar.

    Returns
    -------
    context manager
        For ``with``.

    Examples
    --------
    >>> import numpy as np
    >>> from privtail import private_mean, progress_bar
    >>> with progress_bar():
    ...     mean = private_mean(np.arange(1000.0), epsilon=1.0)
    """
    try:
        from tqdm.auto import tqdm
    except ImportError:
        with watching(_Lines(text)):
            yield
        return
    shown = _Bars(lambda planned: tqdm(total=planned, desc=text, unit="round"))
    try:
        with watching(shown):
            yield
    finally:
        shown.close()


class _Bars:
    """One bar for each fit."""

    def __init__(self, make: Callable[[int], Any]) -> None:
        self.make = make
        self.bar: Any = None

    def __call__(self, done: int, planned: int, stage: str) -> None:
        if self.bar is None or planned != self.bar.total or done < self.bar.n:
            self.close()
            self.bar = self.make(planned)
        self.bar.set_postfix_str(stage, refresh=False)
        self.bar.update(done - self.bar.n)

    def close(self) -> None:
        """Leave the bar as it is."""
        if self.bar is not None:
            self.bar.close()


class _Lines:
    """Ten lines for each fit."""

    def __init__(self, text: str) -> None:
        self.text, self.time_left = text, TimeLeft()

    def __call__(self, done: int, planned: int, stage: str) -> None:
        left = self.time_left.after(done, planned)
        if done == planned or done % max(1, planned // 10) == 0:
            where = f" ({stage})" if stage else ""
            until = "" if left is None else f", {counted(round(left), 'second')} left"
            sys.stderr.write(f"{self.text}: {done} of {counted(planned, 'round')}{where}{until}\n")
