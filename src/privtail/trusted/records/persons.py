"""Who the rows belong to: at most m rows of every person count."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray

from privtail.errors import InvalidInput, NotReleased
from privtail.trusted.records.arrays import as_ids, column_of
from privtail.trusted.records.targets import canonical_label, distinct

Integers = NDArray[np.int64]


class Persons:
    """One id per row, a number or text; rows with a missing id belong to nobody and never count.

    Formal guarantee
    ----------------
    Ids are compared, never ordered or shown: `seats` depends on which positions hold one person's
    rows, on public priorities and on ``max_rows``, and what it says of a person depends on that
    person's positions alone. So when the rows and the id of one person are exchanged for those of
    a person who has no row elsewhere, in the same positions, nothing changes; when they are
    emptied, that person's seats vanish and all others stay.

    That needs different ids to stay different: were two persons taken for one, the seats of one
    would depend on the other. So ids are never rounded to doubles, and bytes are not decoded.
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
        ids, person = distinct(self._groups, _identity)
        missing = np.array([v is None or v != v for v in ids])  # noqa: PLR0124  NaN
        order = np.lexsort((priority, person))
        sorted_persons = person[order]
        first = np.searchsorted(sorted_persons, sorted_persons)
        rank = np.arange(len(order)) - first
        counted = (rank < max_rows) & ~missing[sorted_persons]
        positions, leaders = order[counted], order[first[counted]]
        ascending = np.argsort(positions)
        return positions[ascending], leaders[ascending]

    def __reduce__(self) -> NoReturn:
        raise NotReleased("Private rows cannot be pickled.")


@dataclass(frozen=True, eq=False, repr=False)
class Seats:
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

    def __repr__(self) -> str:
        return f"Seats(n={self.n}, rows={self.rows}, max_rows={self.max_rows})"

    def __reduce__(self) -> NoReturn:
        raise NotReleased("Private rows cannot be pickled.")


def _identity(cell: Any) -> Any:
    """A canonical label, but bytes as they are, of no class of their own."""
    plain = isinstance(cell, bytes)
    return bytes.__getitem__(cell, slice(None)) if plain else canonical_label(cell)
