"""What is missing in rows to predict.

They are their owner's, and a prediction is as private as its row: so they are counted as they are.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privtail.errors import MissingWarning, warn
from privtail.spelling import counted

WRITTEN = (
    "A number in text counts as missing if its marks were not declared: 1,234.5 needs "
    'thousands=","; 1.234,5 needs decimal="," and thousands="." (--decimal , --thousands .).'
)


class Gaps:
    """A count of the rows to predict that get no prediction, and of categories that none holds.

    Parameters
    ----------
    columns : of every column the name, the places of its features, and whether these are categories
        of which each value but the undeclared has one.
    """

    def __init__(self, columns: Iterable[tuple[str, Sequence[int], bool]]) -> None:
        self._columns = [(name, list(places), exhaustive) for name, places, exhaustive in columns]
        self._rows = self._empty = 0
        self._missing = np.zeros(len(self._columns), np.int64)
        self._matched = np.zeros(len(self._columns), np.int64)

    def counting(self, designs: Iterable[Any]) -> Iterator[Any]:
        """The same blocks of encoded features (rows, features), counted as they pass."""
        for features in designs:
            self._count(features)
            yield features

    def _count(self, features: NDArray[np.float64]) -> None:
        finite = np.isfinite(features)
        self._rows += len(features)
        self._empty += int(np.count_nonzero(~finite.all(axis=1)))
        for k, (_, places, exhaustive) in enumerate(self._columns):
            if exhaustive:
                self._matched[k] += np.count_nonzero(features[:, places])
            else:
                self._missing[k] += np.count_nonzero(~finite[:, places].all(axis=1))

    def warn(self, *, of_file: bool) -> None:
        """Warn of what `said` says; without a file only of what predictions do not show."""
        for text in self.said() if of_file else self._unmatched():
            warn(text, MissingWarning)

    def said(self) -> list[str]:
        """What to say of the rows that have passed."""
        found = []
        if self._empty:
            shares = zip(self._columns, self._missing, strict=True)
            where = ", ".join(f"{name!r} ({count:,})" for (name, *_), count in shares if count)
            some = f"{self._empty:,} of {counted(self._rows, 'row')}"
            have = "has" if self._empty == 1 else "have"
            found.append(f"{some} {have} no prediction: a number is missing in {where}. {WRITTEN}")
        return found + self._unmatched()

    def _unmatched(self) -> list[str]:
        return [
            f"No row holds a category of {name!r} that the model knows: compare the spelling, and "
            "whether both are text or numbers."
            for k, (name, _, exhaustive) in enumerate(self._columns)
            if exhaustive and self._rows and not self._matched[k]
        ]
