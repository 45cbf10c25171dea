"""Tables with declared categories, one-hot encoded block by block inside the core."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privtail.errors import InvalidInput
from privtail.schema.encoding import PLAIN, Encoding
from privtail.schema.kinds import column_refusal
from privtail.spelling import guess
from privtail.trusted import kernels
from privtail.trusted.private_rows import PrivateRows
from privtail.trusted.records.arrays import as_labels, as_numbers
from privtail.trusted.records.arrow import Distinct
from privtail.trusted.records.dense import DenseRows
from privtail.trusted.records.encoded import encoded
from privtail.trusted.records.kinds import public_type
from privtail.trusted.records.targets import Labels


class Table(PrivateRows):
    """Named columns of equal length, encoded; a declared category becomes one 0/1 feature.

    Parameters
    ----------
    columns : name -> one-dimensional array, in order.
    categories : name -> declared categories, or None where nobody can declare any. A value that
        was not declared is all zeros, and so is a missing one.
    encoding : what else is declared of the features. By default a missing number drops its row.

    Raises
    ------
    InvalidInput
        If a column is not numeric and its categories are not declared, or a declared one is
        missing. Never because of a cell.
    """

    sparse = False

    def __init__(
        self, columns: Mapping[str, Any], categories: Mapping[str, Sequence[Any]] | None,
        encoding: Encoding = PLAIN,
    ) -> None:  # fmt: skip
        if type(encoding) is not Encoding:
            raise InvalidInput("An encoding must be an Encoding, and no class derived from it.")
        # Read once: what is encoded has the places that were made for it, whatever a cell holds.
        declarable, columns = categories is not None, dict(columns.items())
        declared = {name: tuple(listed) for name, listed in (categories or {}).items()}
        unknown = [name for name in declared if name not in columns]
        if unknown:
            hint = guess(str(unknown[0]), map(str, columns))
            raise InvalidInput(
                "Categories are declared for missing columns: "
                f"{', '.join(map(repr, unknown))}.{hint} Use names that the data have."
            )
        self._parts: list[tuple[Any, int]] = []
        lengths = set()
        for name, values in columns.items():
            array: Any = values
            if not isinstance(values, Distinct):
                array = as_labels(values) if name in declared else as_numbers(values)
                if array.ndim != 1:
                    raise InvalidInput(f"Column {name!r} must be one-dimensional: [value] for one.")
            lengths.add(len(array))
            if name in declared:
                labels = Labels(array, len(array), column=name, source=values)
                labels.declare(declared[name])
                self._parts.append((labels, len(declared[name])))
            elif array.dtype.kind in "fiub":
                self._parts.append((array, 0))
            else:
                raise column_refusal(name, *public_type(values), declarable=declarable)
        if len(lengths) != 1:
            raise InvalidInput("A table needs columns of one length.")
        self._design = replace(encoding).design(tuple(columns), declared)
        self.n = lengths.pop()

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the features."""
        return self._design.names

    @property
    def d(self) -> int:
        """The number of features."""
        return len(self._design.names)

    @property
    def indicators(self) -> tuple[int, ...]:
        """Places of features in [0, 1] by declaration."""
        return self._design.bounded

    @property
    def categories(self) -> tuple[tuple[int, ...], ...]:
        """Places of the indicators of each category."""
        return self._design.categories

    @property
    def optional(self) -> tuple[int, ...]:
        """Places of features that are NaN where a number is missing, to be filled in."""
        return self._design.optional

    def like(self, columns: Sequence[Any]) -> Table:
        """Other rows: doubles, or `Distinct` labels where categories are declared."""
        other = object.__new__(Table)
        other._design, other.n = self._design, len(columns[0])
        other._parts = [
            (values.like(column) if width else column, width)
            for column, (values, width) in zip(columns, self._parts, strict=True)
        ]
        return other

    def rows(self, ids: slice | NDArray[np.int64]) -> DenseRows:
        """The rows of these ids, encoded."""
        count = len(range(*ids.indices(self.n))) if isinstance(ids, slice) else len(ids)
        columns, X = np.empty((self.d, count)), np.empty((count, self.d))
        with np.errstate(all="ignore"):
            cells = {
                name: values.codes(ids) if width else values[ids]
                for name, (values, width) in zip(self._design.columns, self._parts, strict=True)
            }
            encoded(self._design, cells, columns)
        kernels.rows_of(columns, 0, X)
        return DenseRows(X)

    def __repr__(self) -> str:
        return f"Table(rows={self.n}, features={self.d})"
