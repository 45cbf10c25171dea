"""What can be swept in blocks. Holds the private data; prints and pickles none of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from privtail.errors import InvalidInput
from privtail.trusted.records.dense import Dense, DenseRows
from privtail.trusted.records.sparse import Sparse, SparseRows
from privtail.trusted.records.tables import Table

Records = Dense | Sparse | Table
Rows = DenseRows | SparseRows

__all__ = ["Dense", "DenseRows", "Records", "Rows", "Sparse", "SparseRows", "Table", "as_records"]


def _require_categories(categories: Any) -> None:
    lists = categories.values() if isinstance(categories, Mapping) else [categories or ()]
    odd = any(isinstance(c, str) or not isinstance(c, Sequence | np.ndarray) for c in lists)
    if odd or not (categories is None or isinstance(categories, Mapping)):
        raise InvalidInput(
            "categories must map a column to its list of values, for example "
            'categories={"city": ["Rome", "Oslo"]}.'
        )


def _named(frame: Any, names: list[Any]) -> dict[str, Any]:
    if not all(isinstance(name, str) for name in names):
        raise InvalidInput("Column names must be strings: use frame.rename(columns=str).")
    if len(set(names)) != len(names):
        raise InvalidInput("Column names must be distinct.")
    return {name: frame[name] for name in names}


def as_records(X: Any, categories: Mapping[str, Sequence[Any]] | None = None) -> Records:
    """Wrap an array, a CSR matrix or a data frame without copying it as a whole."""
    _require_categories(categories)
    if hasattr(X, "tocsr") and not categories:
        return Sparse(X)
    names = getattr(X, "column_names", None) or getattr(X, "columns", None)
    if names is not None and not isinstance(X, np.ndarray):
        return Table(_named(X, list(names)), categories or {})
    if isinstance(X, Mapping):
        return Table(X, categories or {})
    if categories:
        raise InvalidInput("categories need named columns: pass a data frame, not an array.")
    return Dense(X)
