"""Who the rows belong to: at most m rows of every person count."""

from __future__ import annotations

from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray

from privtail.errors import InvalidInput, NotReleased
from privtail.trusted.records.arrays import as_labels
from privtail.trusted.records.targets import distinct

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
    """

    def __init__(self, groups: Any, n: int) -> None:
        array = as_labels(groups)
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
        ids, person = distinct(self._groups)
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
        raise NotReleased("Private records cannot be pickled.")
