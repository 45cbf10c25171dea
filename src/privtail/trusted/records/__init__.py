"""What can be swept in blocks. Holds the private data; prints and pickles none of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from privtail.trusted.records.dense import Dense, DenseRows
from privtail.trusted.records.sparse import Sparse, SparseRows
from privtail.trusted.records.tables import Table

Records = Dense | Sparse | Table
Rows = DenseRows | SparseRows

__all__ = ["Dense", "DenseRows", "Records", "Rows", "Sparse", "SparseRows", "Table", "as_records"]


def as_records(X: Any, categories: Mapping[str, Sequence[Any]] | None = None) -> Records:
    """Wrap an array, a CSR matrix or a data frame without copying it as a whole."""
    if hasattr(X, "tocsr"):
        return Sparse(X)
    if hasattr(X, "columns") and not isinstance(X, np.ndarray):
        return Table({str(name): X[name] for name in X.columns}, categories or {})
    if isinstance(X, Mapping):
        return Table(X, categories or {})
    return Dense(X)
