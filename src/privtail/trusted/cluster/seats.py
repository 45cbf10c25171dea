"""Whose rows count, where the rows of one person are in several partitions: one shuffle by person.

Formal guarantee
----------------
What is decided is `Persons.seats` of all rows together. Each id is sent to one share, which is a
function of the id alone: equal ids have one form in all partitions (`require_typed_alike`), and a
form has the same bytes on every worker (`spelt`). So a share has all rows of each of its persons,
and decides of them as one machine does: from their positions, a public shuffle and ``max_rows``. A
row is in one share, so the positions that count are those of one machine, and for each the first
one of its person is, too. By the argument of `Persons`, neighbours differ in the contributions of
``max_rows`` rows at most, whatever the partitions and the number of shares.

The decision is made once a fit, from the cells that the driver was told of when it counted the
rows: `shared` refuses a partition whose cells have changed. All else is a pure function of that, so
a task that is run again decides the same. Ids and positions stay on the workers; nothing here
raises, because Dask would log the arguments of a task that does.
"""

from __future__ import annotations

import hashlib
import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privtail.trusted.cluster.held import CHANGED, FAILED, Held, Sent, spelt
from privtail.trusted.records.persons import seated

Integers = NDArray[np.int64]


@dataclass(frozen=True, eq=False, repr=False)
class Owned:
    """Rows of one partition whose persons are in one share; private.

    Attributes
    ----------
    ids : of persons.
    person, positions, priority : of every row, the place of its id, its own id, and when its turn
        is.
    refused : why there is none; no text quotes a cell.
    """

    ids: Sequence[Any]
    person: Integers
    positions: Integers
    priority: Integers
    refused: str = ""


@dataclass(frozen=True, eq=False, repr=False)
class Seated:
    """Positions of one partition that count, ascending, and the first of each one's person."""

    positions: Integers
    leaders: Integers
    refused: str = ""


NOTHING = np.empty(0, np.int64)


def shared(sent: Sent, held: Held) -> tuple[Owned, ...]:
    """The rows of a partition, by the share of their person.

    Sent are a shuffle of all ids, how many shares there are, a key, the first id of the partition,
    and its checksum as the driver was told it.
    """
    order, shares, key, start, checksum = sent.value
    owned: tuple[Owned, ...]
    refused = held.refused or ("" if held.checksum == checksum else CHANGED)
    try:
        if not refused:
            ids, person = held.owners
            share = np.array([_share(one, shares, key) for one in ids], dtype=np.int64)[person]
            priority = order.labels(start, start + len(person))
            owned = tuple(
                _owned(ids, person, priority, start, np.flatnonzero(share == k))
                for k in range(shares)
            )
            return owned
    except Exception:  # noqa: BLE001  its text may quote a cell
        refused = FAILED
    owned = (Owned([], NOTHING, NOTHING, NOTHING, refused),) * shares
    return owned


def decided(owned: Sequence[Owned], max_rows: int, ends: Sequence[int]) -> tuple[Seated, ...]:
    """Whose rows count among the persons of a share, for each partition between two ``ends``."""
    refused = next((one.refused for one in owned if one.refused), "")
    try:
        if not refused:
            places: dict[Any, int] = {}
            persons = [
                np.array([places.setdefault(i, len(places)) for i in one.ids], np.int64)[one.person]
                for one in owned
            ]
            kept, leaders = seated(
                np.concatenate(persons),
                np.concatenate([one.positions for one in owned]),
                np.concatenate([one.priority for one in owned]),
                max_rows,
            )
            cuts = np.searchsorted(kept, ends).tolist()
            return tuple(
                Seated(kept[a:b].copy(), leaders[a:b].copy()) for a, b in itertools.pairwise(cuts)
            )
    except Exception:  # noqa: BLE001  its text may quote a cell
        refused = FAILED
    return (Seated(NOTHING, NOTHING, refused),) * (len(ends) - 1)


def joined(parts: Sequence[Seated]) -> Seated:
    """The seats of one partition, from all shares."""
    refused = next((one.refused for one in parts if one.refused), "")
    positions = np.concatenate([one.positions for one in parts])
    leaders = np.concatenate([one.leaders for one in parts])
    ascending = np.argsort(positions)
    return Seated(positions[ascending], leaders[ascending], refused)


def _share(one: Any, shares: int, key: bytes) -> int:
    """The share of a person; none of a row without an id.

    The key is secret and new in every fit: nobody can make ids that all fall into one share, whose
    worker would then hold them all.
    """
    if one is None:
        return -1
    digest = hashlib.blake2b(spelt(one), key=key, digest_size=8).digest()
    return int.from_bytes(digest, "little") % shares


def _owned(
    ids: list[Any], person: Integers, priority: Integers, start: int, rows: Integers
) -> Owned:
    used, places = np.unique(person[rows], return_inverse=True)
    own = [ids[i] for i in used.tolist()]
    return Owned(own, places.astype(np.int64), start + rows, priority[rows])
