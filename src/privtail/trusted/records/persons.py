"""The persons of rows: at most m rows of every person count."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal
from enum import Enum
from fractions import Fraction
from ipaddress import IPv4Address, IPv6Address
from typing import Any
from uuid import UUID

import numpy as np
from numpy.typing import NDArray

from privtail.errors import InvalidInput
from privtail.trusted.deals import Ids, Listed, Sample
from privtail.trusted.exactly import are_of, is_one_of
from privtail.trusted.private_rows import PrivateRows
from privtail.trusted.records.arrays import as_ids, column_of
from privtail.trusted.records.kinds import home, is_from
from privtail.trusted.records.targets import canonical_label, distinct
from privtail.trusted.records.times import time_form

Integers = NDArray[np.int64]


class Persons(PrivateRows):
    """One id per row, a number or text; rows with a missing id belong to nobody and never count.

    Formal guarantee
    ----------------
    Ids are compared, never ordered or shown: `seats` depends on which positions hold one person's
    rows, on public priorities and on ``max_rows``, and what it says of a person depends on that
    person's positions alone. So when the rows and the id of one person are exchanged for those of
    a person who has no row elsewhere, in the same positions, nothing changes; when they are
    emptied, that person's seats vanish and all others stay.

    That needs different ids to stay different: were two persons taken for one, the seats of one
    would depend on the other. So ids are never rounded to doubles, bytes are not decoded, and
    ``Decimal("0.1")`` is not the text ``"0.1"``, although it is the same label. An id of a class
    that is neither Python's own, NumPy's nor pandas', or that does not show all that it holds, is a
    missing one.
    """

    def __init__(self, groups: Any, n: int) -> None:
        array = as_ids(column_of(groups))
        if array.shape != (n,):
            raise InvalidInput(
                f"groups needs one person id per row, shape ({n},); got shape {array.shape}."
            )
        self._groups = array

    def seats(self, priority: Integers, max_rows: int) -> tuple[Integers, Integers]:
        """Positions that count, ascending, and for each the first position of its person.

        ``priority`` is a public permutation of the n positions: a person's rows of lowest priority
        count, and the lowest of all speaks for the person wherever persons are sampled.
        """
        ids, person = owners(self._groups)
        known = np.array([v is not None for v in ids], dtype=np.bool_)
        positions = np.flatnonzero(known[person])
        return seated(person[positions], positions, priority[positions], max_rows)


def owners(ids: Any) -> tuple[list[Any], Integers]:
    """Ids in one form, None for a missing one; and for each row the place of its id among them."""
    return distinct(as_ids(column_of(ids)), _identity)


def seated(
    person: Integers, positions: Integers, priority: Integers, max_rows: int
) -> tuple[Integers, Integers]:
    """Whose rows count among these, which are all rows of some persons: see `Persons.seats`."""
    order = np.lexsort((priority, person))
    sorted_persons = person[order]
    first = np.searchsorted(sorted_persons, sorted_persons)
    counted = np.arange(len(order)) - first < max_rows
    kept, leaders = positions[order[counted]], positions[order[first[counted]]]
    ascending = np.argsort(kept)
    return kept[ascending], leaders[ascending]


def sample_mask(sample: Sample, n: int) -> NDArray[np.bool_] | None:
    """(n,) whether each position is in the sample; None if all are."""
    ids = sample.within(0, n)
    if isinstance(ids, slice):
        return None
    found = np.zeros(n, dtype=np.bool_)
    found[ids] = True
    return found


def rows_of_sampled(positions: Integers, leaders: Ids, mask: NDArray[np.bool_] | None) -> Listed:
    """The positions whose person is sampled. A person is if the first of its positions is."""
    return Listed(positions if mask is None else positions[mask[leaders]])


@dataclass(frozen=True, eq=False, repr=False)
class Seats(PrivateRows):
    """Some persons of a table, with those of their rows that count: one part of a deal.

    Attributes
    ----------
    n : public size of the part, a divisor: its share of ``rows``, whatever rows fall into it.
    rows : how many positions the table has.
    max_rows : how many rows of a person count.
    positions, leaders : as `Persons.seats` gives them, for the persons of the part alone.

    Formal guarantee
    ----------------
    A person is in the part if the first of the person's positions was dealt to it, by public
    chance. So all rows of a person that count are in one part, and where one person's are, and
    whether they are, moves nobody else: the guarantee of `Persons.seats` holds of the part.
    """

    n: int
    rows: int
    max_rows: int
    positions: Integers
    leaders: Integers

    def __post_init__(self) -> None:
        for name in ("positions", "leaders"):  # copies that nobody can make writable
            own = np.array(getattr(self, name), np.int64).tobytes()
            object.__setattr__(self, name, np.frombuffer(own, np.int64))

    def __repr__(self) -> str:
        return f"Seats(n={self.n}, rows={self.rows}, max_rows={self.max_rows})"


_SCALARS = {
    Decimal: (), complex: (), Fraction: ("_numerator", "_denominator"), UUID: ("int",),
    IPv4Address: ("_ip",), IPv6Address: ("_ip", "_scope_id"),
}  # fmt: skip
"""Classes of Python whose objects show all that they hold, if that is of plain classes itself."""
_SPANS = ("Interval", "Period")  # of pandas: what they hold is read, not what they show


def _shows_all(cell: Any) -> bool:
    """Whether a cell is of one of these classes, and so is what it holds."""
    held = next((names for kind, names in _SCALARS.items() if type(cell) is kind), None)
    return held is not None and are_of((getattr(cell, n) for n in held), (int, str, type(None)))


def _identity(cell: Any) -> Any:
    """A canonical label, but bytes as they are, and what is no text no equal of its text.

    Equal times are one id, whatever class they are of: see `time_form`. What is of a class that
    nobody knows is missing: it may show two persons as one text, or compare them as it likes. So is
    a member of an enumeration that is not where it says to be: two of them may have one name.
    """
    if isinstance(cell, bytes):
        return bytes.__getitem__(cell, slice(None))
    label = canonical_label(cell)
    moment = None if label is None else time_form(cell)
    if moment is not None or isinstance(cell, str):
        return label if moment is None else moment
    known = isinstance(cell, int | float) or _shows_all(cell)
    known |= isinstance(cell, np.generic) and is_from(cell, ("numpy",))
    known |= isinstance(cell, Enum) and home(type(cell)) != ""
    if not (known or (is_from(cell, ("pandas",)) and type(cell).__name__ in _SPANS)):
        return None
    if type(cell).__name__ == "Period":  # beyond the calendar the text of several is one
        return f"period, {cell.freqstr}", cell.ordinal
    if isinstance(cell, complex | np.complexfloating):  # 1 and 1+0j are one person
        parts = _identity(cell.real), _identity(cell.imag)
        return parts[0] if parts[1] == 0 else None if None in parts else ("complex", repr(parts))
    if type(cell).__name__ == "Interval":  # so are the intervals from 0 and from 0.0
        ends = tuple(map(_identity, (cell.left, cell.right)))
        return None if None in ends else (f"interval, {cell.closed}", repr(ends))
    if isinstance(label, str):
        if isinstance(cell, Enum):
            label = str.__str__(object.__getattribute__(cell, "_name_"))
        elif not is_one_of(cell, (Decimal, Fraction)):  # whose equals are written differently
            label = str.__str__(repr(cell))
        return type.__repr__(type(cell)), label
    return label
