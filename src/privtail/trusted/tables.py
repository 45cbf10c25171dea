"""The door for tables: from a file to columns for a curator, from columns to features to predict.

Formal guarantee
----------------
None is needed and none is given: columns that were read are their owner's records again, to be
handed to a `Curator`; features are for prediction, and a prediction is as private as its row.
Learning goes through a `Curator` only.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privtail.trusted.records.files import Label, TableFile, typed_labels, whole
from privtail.trusted.records.tables import Table

__all__ = ["Label", "TableFile", "feature_blocks", "typed_labels", "whole"]

_BLOCK_ROWS = 8192


def feature_blocks(
    columns: Mapping[str, Any], categories: Mapping[str, Sequence[Label]]
) -> Iterator[NDArray[np.float64]]:
    """Encode columns as a fit does, in blocks (rows, features); NaN where a number is missing.

    Raises
    ------
    InvalidInput
        If a column is neither numeric nor has declared categories.
    """
    table = Table(columns, categories)
    one, zero = np.ones(table.d), np.zeros(table.d)
    for start in range(0, table.n, _BLOCK_ROWS):
        yield table.rows(slice(start, start + _BLOCK_ROWS)).transformed(one, zero)
