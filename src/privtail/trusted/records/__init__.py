"""Records that can be swept in blocks. They hold the private data, and print and pickle none."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from os import PathLike
from typing import TYPE_CHECKING, Any, TypeAlias, TypeGuard

from privtail.errors import InvalidInput
from privtail.schema.containers import named_column, repeated
from privtail.schema.declared import require_categories
from privtail.schema.encoding import PLAIN, Encoding
from privtail.storage.remote import plain
from privtail.trusted.private_rows import PrivateFile
from privtail.trusted.records.arrays import column_names, require_typed
from privtail.trusted.records.dense import Dense, DenseRows
from privtail.trusted.records.sparse import Sparse, SparseRows
from privtail.trusted.records.tables import Table
from privtail.trusted.records.targets import Targets, Window, targets_of

if TYPE_CHECKING:
    from privtail.trusted.files.streams import Stream
    from privtail.trusted.files.table import TableFile

InMemory = Dense | Sparse | Table
Records: TypeAlias = "InMemory | Stream"
Rows = DenseRows | SparseRows

__all__ = [
    "Dense", "DenseRows", "InMemory", "Records", "Rows", "Sparse", "SparseRows", "Table",
    "Targets", "Window", "as_records", "is_file", "named", "opened", "targets_of",
]  # fmt: skip


def is_file(X: Any) -> TypeGuard[TableFile]:
    """Whether this is what `privtail.open_table` gives, and of no class derived from that.

    Code of another class would see all rows.
    """
    if not isinstance(X, PrivateFile):
        return False
    from privtail.trusted.files.table import TableFile

    return type(X) is TableFile


def opened(
    X: Any, y: Any, classes: Sequence[Any] | None, categories: Mapping[str, Sequence[Any]] | None,
    encoding: Encoding = PLAIN, exposure: Any = None,
) -> tuple[Records, Targets | None]:  # fmt: skip
    """Records and targets: numbers, or labels (``classes`` not None), declared unless ``()``.

    The exposure of a file is a column, `TableFile.exposure`; its room is loaded with the first one.

    Raises
    ------
    InvalidInput
        If shapes or types do not fit. Never because of a cell that a table may hold.
    """
    require_categories(categories)
    if is_file(X):
        from privtail.trusted.files.streams import streamed

        return streamed(X, y, classes, categories, encoding, exposure)
    if isinstance(X, str | PathLike):
        raise InvalidInput(f"X is a path. Pass privtail.open_table({plain(str(X))!r}) instead.")
    if isinstance(y, str):
        raise named_column("y", y)
    records = as_records(X, categories, encoding)
    return records, targets_of(y, records.n, classes, exposure)


def named(frame: Any, names: Sequence[Any]) -> dict[str, Any]:
    """The columns of a frame or a mapping by their names as text, in order.

    Raises
    ------
    InvalidInput
        If two names are one, or some are text and others are not.
    """
    if len({isinstance(name, str) for name in names}) > 1:
        raise InvalidInput(
            "Column names must be strings: use frame.set_axis(map(str, frame.columns), axis=1)."
        )
    if len(set(map(str, names))) != len(names):
        raise repeated(names)
    return {str(name): frame[name] for name in names}


def as_records(
    X: Any, categories: Mapping[str, Sequence[Any]] | None = None, encoding: Encoding = PLAIN
) -> Records:  # fmt: skip
    """Wrap an array, a CSR matrix or a data frame without copying it as a whole."""
    require_categories(categories)
    if is_file(X):
        return opened(X, None, None, categories, encoding)[0]
    require_typed(X)
    if hasattr(type(X), "tocsr") and not categories:
        if not encoding.plain:
            raise InvalidInput(
                "Indicators of missing numbers, and features of columns, need a dense table: pass "
                "X.toarray(), or a data frame."
            )
        return Sparse(X)
    names = column_names(X)
    if names is not None:
        return Table(named(X, names), categories, encoding)
    if categories:
        raise InvalidInput("categories need named columns: pass a data frame, not an array.")
    array = Dense(X)
    return array if encoding.plain else Table(array.columns(), None, encoding)
