"""The right to make the planned releases of one opened batch."""

from __future__ import annotations

import os
import threading
from dataclasses import replace
from typing import NoReturn

from privtail.errors import NotPlanned, NotReleased
from privtail.trusted.events import Event
from privtail.trusted.mechanisms.samplers import Sampler


class Opening:
    """Hands out noise for the planned events of one batch, in order, each once.

    Formal guarantee
    ----------------
    Every planned event is matched at most once: in this process (a lock), in its children (none:
    after a fork nothing can be released), and never after the batch has been closed.
    """

    def __init__(self, events: tuple[Event, ...], sampler: Sampler) -> None:
        self._events, self._next, self._sampler = events, 0, sampler
        self._open, self._process = True, os.getpid()
        self._lock = threading.Lock()

    def charge(self, event: Event) -> Sampler:
        """Match the release with the next planned event and hand out the noise.

        Raises
        ------
        NotPlanned
            If the batch is closed, the event is not the planned one, or this is a forked child.
        """
        with self._lock:
            if self._process != os.getpid():
                raise NotPlanned("A forked process cannot release what its parent has paid for.")
            if not self._open:
                raise NotPlanned(
                    "This batch is closed: a later round has begun. Release everything that you "
                    "need of a batch before asking for the next one, and plan it as one round."
                )
            planned = self._events[self._next] if self._next < len(self._events) else None
            if planned is None or not _pays_for(planned, event):
                raise NotPlanned(
                    f"The next planned release is {planned}, but {event} was asked for. "
                    "plan() and run() of the algorithm must agree."
                )
            self._next += 1
            return self._sampler

    def close(self) -> None:
        """Nothing can be released from this batch any more."""
        with self._lock:
            self._open = False

    def __reduce__(self) -> NoReturn:
        raise NotReleased("The right to release cannot be pickled or copied.")


def _pays_for(planned: Event, event: Event) -> bool:
    """Equal but for what only readers see; fewer coordinates than planned cost no more."""
    same = replace(event, unit=planned.unit, question=planned.question)
    fits = event.coordinates <= planned.coordinates
    return fits and replace(same, coordinates=planned.coordinates) == planned
