"""Which records count, and where: decided from ids alone, never from what a record holds.

Formal guarantee
----------------
An id is a record's position, which neighbours share. So whoever is exchanged is seen by the same
rounds, in the same blocks, and nobody else is because of it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

Integers = NDArray[np.int64]
Ids = slice | Integers
"""Ascending positions among all records."""


class Seen(Protocol):
    """Which ids a round sees."""

    def within(self, start: int, stop: int) -> Ids:
        """Those of ``start`` .. ``stop`` - 1."""
        ...


@dataclass(frozen=True, eq=False, repr=False)
class Listed:
    """The ids of a list, or all of a slice."""

    ids: Ids

    def within(self, start: int, stop: int) -> Ids:
        if isinstance(self.ids, slice):
            return slice(max(self.ids.start, start), min(self.ids.stop, stop))
        first, last = np.searchsorted(self.ids, [start, stop])
        return self.ids[first:last]


@dataclass(frozen=True, eq=False, repr=False)
class Deal:
    """A label 0 .. ``blocks`` - 1 for every id."""

    blocks: int
    places: Integers

    def labels(self, ids: Ids) -> Integers:
        """The labels of these ids."""
        return self.places[ids]
