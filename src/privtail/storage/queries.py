"""Queries of polars and Arrow: run once, into a Parquet file without a name.

Formal guarantee
----------------
A query may be any program over all of its rows, so nothing is assumed of it: it is run once, and
the rows that it gave are the records. Every pass reads these rows, so it does no harm if the query
would give others when it is run again (a sample, an order that is not fixed). As of a data frame,
the number of rows and the types of the columns are public, although a filter makes the one, and an
inferred schema the other, depend on cells; a statement says so. The promise covers rows that were
not computed from other rows. The file has no name, so nobody can open or change it, and it ends
with the process. What a query says when it fails may quote a cell: it is not shown.
"""

from __future__ import annotations

import mmap
import tempfile
from collections.abc import Hashable
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

from privtail.errors import InvalidInput

ASSUMPTION = (
    "The rows are those that a query gave, and their number is public; the promise holds for "
    "rows that were not computed from other rows."
)


@dataclass(frozen=True, eq=False)
class QueryResult:
    """The rows of a query, as a Parquet file."""

    _pages: mmap.mmap
    _shown: str

    def open(self) -> Any:
        """The file as PyArrow reads it."""
        import pyarrow as pa

        return pa.BufferReader(pa.py_buffer(self._pages))

    def state(self) -> Hashable:
        """Always the same: nobody can write to it."""
        return self._shown

    def __str__(self) -> str:
        return self._shown

    __repr__ = __str__


def _library(data: Any) -> str:
    return type(data).__module__.partition(".")[0]


def is_query(data: Any) -> bool:
    """Whether this is a polars LazyFrame or a dataset of PyArrow, by its class alone."""
    wanted = {"polars": "LazyFrame", "pyarrow": "Dataset"}.get(_library(data))
    return any(one.__name__ == wanted for one in type(data).__mro__)


def run(query: Any, folder: Path | None) -> QueryResult:
    """Run a query once, in pieces, into a nameless file in ``folder`` (None: that of the system).

    Raises
    ------
    InvalidInput
        If the folder cannot be used or is full, or the query fails.
    """
    shown = f"the {type(query).__name__}"
    try:
        with tempfile.TemporaryFile(dir=folder) as file:
            try:
                _write(query, file)
            except (OSError, KeyboardInterrupt, SystemExit):
                raise
            except BaseException as error:  # noqa: BLE001  polars panics with one; it may quote a cell
                raise InvalidInput(
                    f"The query fails ({type(error).__name__}). Run it without privtail to see why."
                ) from None
            return QueryResult(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ), shown)
    except OSError as error:
        raise InvalidInput(
            f"The rows of {shown} cannot be written to {folder or tempfile.gettempdir()}: "
            f"{error.strerror or 'is it full?'} Name a folder with more room by scratch=."
        ) from None


def _write(query: Any, file: IO[bytes]) -> None:
    if _library(query) == "polars":
        query.sink_parquet(file, compression="lz4")
    else:
        import pyarrow.parquet as pq

        with pq.ParquetWriter(file, query.schema, compression="lz4") as writer:
            for batch in query.to_batches():
                writer.write_batch(batch)
    file.flush()
