"""The records of a round, and their blocks: decided by ids alone, never by values.

Formal guarantee
----------------
An id is the position of a record, and neighbours have the same positions. So a replaced record is
in the same rounds and the same blocks, and it changes these for no other record.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from privtail.compilation import compiled
from privtail.errors import InvalidInput

Integers = NDArray[np.int64]
ROUNDS = 6
RUN = 2**14
"""Number of ids whose coins are drawn at once."""
Ids = slice | Integers
"""Ascending positions among all records."""


class Sample(Protocol):
    """The ids that are in a round."""

    def within(self, start: int, stop: int) -> Ids:
        """The ids of the sample among ``start`` .. ``stop`` - 1."""
        ...


@dataclass(frozen=True, eq=False, repr=False)
class Listed:
    """The ids in a list, or all ids of a slice."""

    ids: Ids

    def within(self, start: int, stop: int) -> Ids:
        if isinstance(self.ids, slice):
            return slice(max(self.ids.start, start), min(self.ids.stop, stop))
        first, last = np.searchsorted(self.ids, [start, stop])
        return self.ids[first:last]


@dataclass(frozen=True, eq=False, repr=False)
class Coins:
    """A Poisson batch: every id with probability ``rate``, rounded down to 2^-64.

    ``key`` is 256 secret bits. They are sent to the workers that hold the rows.

    Formal guarantee
    ----------------
    An id's coin compares 64 bits with the rate: 16 of the stream SHAKE-256(key, number of the run
    of ids), and, where these leave it open, 48 of SHAKE-256(key, id, mark) (FIPS 202). Without
    the key such streams cannot be told from fair bits in any time that somebody has, which is what
    the operating system's own generator promises. So the theorem for independent coins holds as it
    does of coins from there, if every round has a key of its own that nobody knows: `ExactSampler`
    takes it from the operating system, whatever ``random_state``.

    A coin is a function of the key and the id. So all releases of a batch see the same records, and
    a task that is run again does too: were coins drawn again, two batches would be opened for the
    price of one.
    """

    rate: float
    key: bytes

    def within(self, start: int, stop: int) -> Ids:
        if self.rate == 1:
            return slice(start, stop)
        high, low = divmod(int(self.rate * 2**64), 2**48)
        heads = [np.zeros(0, np.int64)]
        for run in range(start // RUN, -(-stop // RUN)):
            words = np.frombuffer(self._stream(run, b"", 2 * RUN), dtype="<u2")
            found = words < high
            for i in np.flatnonzero(words == high).tolist():
                found[i] = int.from_bytes(self._stream(run * RUN + i, b"low", 6), "little") < low
            heads.append(run * RUN + np.flatnonzero(found))
        return Listed(np.concatenate(heads)).within(start, stop)

    def _stream(self, number: int, mark: bytes, size: int) -> bytes:
        return hashlib.shake_256(self.key + number.to_bytes(8, "little") + mark).digest(size)


@dataclass(frozen=True, eq=False, repr=False)
class Deal:
    """A label 0 .. ``blocks`` - 1 for each of n ids: its place in a shuffle, modulo ``blocks``.

    Formal guarantee
    ----------------
    The shuffle is a bijection of 0 .. n - 1: a Feistel network of `ROUNDS` halves permutes a power
    of two above n, and is walked along from an id until a place below n comes (Black and Rogaway
    2002). So the sizes of blocks differ by one at most, and are public.

    Privacy needs nothing else of a deal, and no randomness: the lemma of `means`, and the cost of
    disjoint parts, hold for every fixed division of ids, since neighbours differ in the record at
    an id and not in its label. The key is public chance (``random_state``). It is for accuracy:
    files come sorted, and a block of neighbours in a file is like no other block.
    """

    n: int
    blocks: int
    key: bytes
    _last: dict[tuple[int, int], Integers] = field(default_factory=dict)

    def labels(self, start: int, stop: int) -> Integers:
        """The labels of ``start`` .. ``stop`` - 1, read-only; those of the last run are kept.

        Raises
        ------
        InvalidInput
            If these are not among the n ids: no walk from another one need end.
        """
        if not 0 <= start <= stop <= self.n:
            raise InvalidInput(
                f"Ids must be among the {self.n} of this deal, got {start} .. {stop}."
            )
        if self.blocks == 1:
            return np.broadcast_to(np.int64(0), (stop - start,))
        labels = self._last.get((start, stop))
        if labels is None:
            seed = hashlib.shake_256(self.key + self.blocks.to_bytes(8, "little"))
            keys = np.frombuffer(seed.digest(8 * ROUNDS), dtype=np.uint64)
            labels = np.arange(start, stop)
            shuffle(labels, self.n, self.blocks, keys)
            labels.flags.writeable = False
            self._last.clear()
            self._last[start, stop] = labels
        return labels

    def __reduce__(self) -> tuple[Any, ...]:
        return Deal, (self.n, self.blocks, self.key)


@dataclass(frozen=True, eq=False, repr=False)
class Part:
    """The ids of one label of a deal."""

    deal: Deal
    label: int

    def within(self, start: int, stop: int) -> Ids:
        return start + np.flatnonzero(self.deal.labels(start, stop) == self.label)


@compiled
def _mixed(x: Any, key: Any) -> Any:
    """32 bits of a half and a key (the finalizer of a hash, two multiplications)."""
    z = (x ^ key) * np.uint64(0x9E3779B97F4A7C15)
    z = (z ^ (z >> np.uint64(32))) * np.uint64(0xD6E8FEB86659FD93)
    return z >> np.uint64(32)


@compiled
def _permuted(place: Any, shift: Any, low: Any, high: Any, keys: Any) -> Any:
    left, right = place >> shift, place & low
    for r in range(0, keys.shape[0], 2):
        left ^= _mixed(right, keys[r]) & high
        right ^= _mixed(left, keys[r + 1]) & low
    return left << shift | right


@compiled
def shuffle(ids: Any, n: int, blocks: int, keys: Any) -> None:
    """Put in place of every id its place among n, modulo ``blocks``; ``keys`` are ``ROUNDS``."""
    bits = 8  # of fewer, few shuffles are Feistel networks
    while 1 << bits < n:
        bits += 1
    one, shift = np.uint64(1), np.uint64(bits // 2)
    low, high = (one << shift) - one, (one << np.uint64(bits - bits // 2)) - one
    for i in range(ids.shape[0]):
        place = _permuted(np.uint64(ids[i]), shift, low, high, keys)
        while place >= np.uint64(n):
            place = _permuted(place, shift, low, high, keys)
        ids[i] = np.int64(place % np.uint64(blocks))
