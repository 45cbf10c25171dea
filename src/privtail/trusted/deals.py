"""Which records count, and where: decided from ids alone, never from what a record holds.

Formal guarantee
----------------
An id is a record's position, which neighbours share. So whoever is exchanged is seen by the same
rounds, in the same blocks, and nobody else is because of it.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

Integers = NDArray[np.int64]
RUN = 4096
"""Ids whose coins are drawn at once."""
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
class Coins:
    """Every id with probability ``rate``, rounded down to 2^-64: one Poisson batch.

    ``key`` are 256 secret bits. They go where the question goes: to who holds the rows anyway.

    Formal guarantee
    ----------------
    An id's coin compares 64 bits of the stream SHAKE-256(key, number of the run of ids) with the
    rate (FIPS 202). Without the key that stream cannot be told from fair bits in any time that
    somebody has, which is what the operating system's own generator promises; so the theorem for
    independent coins holds as it did of coins from there, if every round has a key of its own that
    nobody knows. `ExactSampler` takes it from the operating system, whatever ``random_state``.

    A coin is a function of the key and the id. So all releases of a batch see the same records, and
    a task that is run again does too: were coins drawn again, two batches would be opened for the
    price of one.
    """

    rate: float
    key: bytes

    def within(self, start: int, stop: int) -> Ids:
        if self.rate == 1:
            return slice(start, stop)
        threshold = np.uint64(min(int(self.rate * 2**64), 2**64 - 1))
        heads = [np.zeros(0, np.int64)]
        for run in range(start // RUN, -(-stop // RUN)):
            stream = hashlib.shake_256(self.key + run.to_bytes(8, "little")).digest(8 * RUN)
            words = np.frombuffer(stream, dtype="<u8")
            heads.append(run * RUN + np.flatnonzero(words < threshold))
        return Listed(np.concatenate(heads)).within(start, stop)


@dataclass(frozen=True, eq=False, repr=False)
class Deal:
    """A label 0 .. ``blocks`` - 1 for every id."""

    blocks: int
    places: Integers

    def labels(self, ids: Ids) -> Integers:
        """The labels of these ids."""
        return self.places[ids]
