"""What is missing in rows to predict.

They are their owner's, and a prediction is as private as its row: so they are counted as they are.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privtail.errors import MissingWarning

WRITTEN = (
    "Where numbers are read from text, one in other marks than declared is missing: 1,234.5 needs "
    'thousands=","; 1.234,5 needs decimal="," and thousands="." (--decimal , --thousands .).'
)


class Gaps:
    """A count of the rows to predict that get no prediction, and of categories that none holds.

    Parameters
    ----------
    columns : pairs of a column's name and its categories; None of a column of numbers.
    """

    def __init__(self, columns: Iterable[tuple[str, Sequence[Any] | None]]) -> None:
        self._columns = list(columns)
        self._rows = self._empty = 0
        self._missing = np.zeros(len(self._columns), np.int64)
        self._matched = np.zeros(len(self._columns), np.int64)

    def counting(self, designs: Iterable[Any]) -> Iterator[Any]:
        """The same blocks of encoded features (rows, features), counted as they pass."""
        for features in designs:
            self._count(features)
            yield features

    def _count(self, features: NDArray[np.float64]) -> None:
        finite, first = np.isfinite(features), 0
        self._rows += len(features)
        self._empty += int(np.count_nonzero(~finite.all(axis=1)))
        for place, (_, categories) in enumerate(self._columns):
            width = 1 if categories is None else len(categories)
            if categories is None:
                self._missing[place] += np.count_nonzero(~finite[:, first])
            else:
                self._matched[place] += np.count_nonzero(features[:, first : first + width])
            first += width

    def warn(self) -> None:
        """Warn of what `said` says."""
        for text in self.said():
            warnings.warn(text, MissingWarning, stacklevel=2)

    def said(self) -> list[str]:
        """What to say of the rows that have passed."""
        found = []
        if self._empty:
            shares = zip(self._columns, self._missing, strict=True)
            where = ", ".join(f"{name!r} ({count:,})" for (name, _), count in shares if count)
            found.append(
                f"{self._empty:,} of {self._rows:,} rows have no prediction: a number is missing "
                f"in {where}. {WRITTEN}"
            )
        for place, (name, categories) in enumerate(self._columns):
            if categories is not None and self._rows and not self._matched[place]:
                found.append(
                    f"No row holds a category of {name!r} that the model knows: compare the "
                    "spelling."
                )
        return found
