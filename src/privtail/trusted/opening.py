"""The right to make the planned releases of one opened batch."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from typing import Any, NoReturn

from privtail.errors import NotPlanned, NotReleased
from privtail.trusted.allowance import require_payer
from privtail.trusted.events import SMOOTH, Event
from privtail.trusted.mechanisms.samplers import Sampler


class Opening:
    """Matches every release of a batch with its next planned event, and then gives out the noise.

    Formal guarantee
    ----------------
    Every planned event is matched at most once. A lock ensures it in this process. A forked process
    can release nothing, also if it forks after the match, and nobody can after the batch is closed.

    ``on_finish`` is called once: after the last planned release, or when the batch is closed.
    """

    def __init__(
        self,
        events: tuple[Event, ...],
        sampler: Sampler,
        on_finish: Callable[[], None] = lambda: None,
    ) -> None:
        self._events, self._next, self._sampler = events, 0, sampler
        self._open, self._process = True, os.getpid()
        self._on_finish: Callable[[], None] | None = on_finish
        self._lock = threading.Lock()

    def charge(self, event: Event) -> Sampler:
        """Match the release with the next planned event and hand out the noise.

        Raises
        ------
        NotPlanned
            If the batch is closed, the event is not the planned one, or this is a forked child.
        """
        with self._lock:
            require_payer(self._process)
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

    def released(self) -> None:
        """Record that a matched release was made; raise NotPlanned in a forked child."""
        require_payer(self._process)
        if self._next == len(self._events):
            self._finish()

    def close(self) -> None:
        """Allow no further release from this batch."""
        with self._lock:
            self._open = False
        self._finish()

    def _finish(self) -> None:
        with self._lock:
            on_finish, self._on_finish = self._on_finish, None
        if on_finish is not None:
            on_finish()

    def __reduce__(self) -> NoReturn:
        raise NotReleased("The right to release cannot be pickled or copied.")


def _pays_for(planned: Event, event: Event) -> bool:
    """Whether the planned event costs at least as much as the event that is released.

    Equal events do. So does a plan of more coordinates (for labels that are not known yet), if the
    release has the planned noise over sensitivity, or up to 2^-30 more, computed exactly. Without
    noise the sensitivity must be at most the planned one. Noise by a smooth sensitivity has a cost
    of another form: the sensitivity must be the planned one, and the noise may be larger.
    """
    if replace(planned, unit=event.unit) == event:
        return True
    sizes: dict[str, Any] = {"scale": 1.0, "radius": 1.0, "diameter": 1.0, "coordinates": 1}
    same = replace(planned, unit=event.unit, **sizes) == replace(event, **sizes)
    if planned.scale == 0 or event.scale == 0:
        known = planned.radius >= event.radius and planned.diameter >= event.diameter
        return same and known and planned.scale == event.scale
    if not same:
        return False
    if event.law in SMOOTH:  # their price is no function of the noise per sensitivity
        moved = (planned.radius, planned.diameter) == (event.radius, event.diameter)
        return moved and planned.scale <= event.scale and event.coordinates <= planned.coordinates
    factor = Fraction(event.scale) / Fraction(planned.scale)
    radius = Fraction(planned.radius) * factor
    return (
        radius * (1 - Fraction(1, 2**30)) <= Fraction(event.radius) <= radius
        and Fraction(event.diameter) <= Fraction(planned.diameter) * factor
        and event.coordinates <= planned.coordinates
    )
