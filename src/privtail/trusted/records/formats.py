"""Table files as batches of columns: Parquet, CSV and Arrow, never whole in memory.

Formal guarantee
----------------
Nothing here computes on a cell but PyArrow's decoding. Which rows share a batch follows from the
layout of the file, and no sum depends on it. A cell of a CSV becomes the same number whichever way
its column is read: what PyArrow's reader takes for a double `text_numbers` takes for the same one,
or neither finds a finite number.
"""

from __future__ import annotations

import mmap
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

WINDOW_ROWS = 16_384
"""At most this many rows are handed out at once."""
KEPT_BYTES = 2**28
"""Memory for numbers that a question keeps of every record; it takes a sweep for each."""

_READ_BYTES = 1 << 20
_KEPT_WINDOWS = 32
_BAD_NUMBER = re.compile(r"^In CSV column #(\d+): .*CSV conversion error to double")


def sweeps(n: int, numbers: int) -> int:
    """How often n records are read by a question that keeps ``numbers`` doubles of each."""
    return -(-8 * n * numbers // KEPT_BYTES)


class Parquet:
    """A Parquet file. Pages are read as they are needed, however large a row group is."""

    def __init__(self, path: Path) -> None:
        self._path = path
        with self._open() as file:
            self.names = tuple(file.schema_arrow.names)
            self.types = dict(zip(self.names, file.schema_arrow.types, strict=True))
            self.n = int(file.metadata.num_rows)

    def batches(self, names: Sequence[str], labels: Collection[str]) -> Iterator[Any]:
        """Record batches of the columns ``names``, in order; text of ``labels`` as dictionaries."""
        with self._open(read_dictionary=list(labels)) as file:
            for batch in file.iter_batches(WINDOW_ROWS, columns=list(names), use_threads=False):
                yield batch.select(list(names))

    def _open(self, **options: Any) -> Any:
        import pyarrow.parquet as pq

        return pq.ParquetFile(self._path, pre_buffer=False, buffer_size=_READ_BYTES, **options)


class Arrow:
    """An Arrow file or stream, mapped into memory; pages that were read are given back.

    One batch may be the whole file, so it cannot be read without the map; and who cuts a mapped
    file short while it is read ends the process (SIGBUS). Write a new file beside it instead.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        schema = self._open()[0]
        self.names = tuple(schema.names)
        self.types = dict(zip(self.names, schema.types, strict=True))

    @cached_property
    def n(self) -> int:
        """Number of rows, from one pass over the heads of the batches."""
        return sum(batch.num_rows for batch in self._open()[1])

    def batches(self, names: Sequence[str], labels: Collection[str]) -> Iterator[Any]:
        """Record batches of the columns ``names``, in order."""
        _, batches, pages = self._open()
        windows = 0
        for batch in batches:
            columns = batch.select(list(names))
            for start in range(0, batch.num_rows, WINDOW_ROWS):
                yield columns.slice(start, WINDOW_ROWS)
                windows += 1
                if windows % _KEPT_WINDOWS == 0:
                    pages.madvise(mmap.MADV_DONTNEED)

    def _open(self) -> tuple[Any, Iterator[Any], mmap.mmap]:
        """The schema, the batches (views of the file unless compressed), and its pages."""
        import pyarrow as pa

        with self._path.open("rb") as file:
            pages = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        source = pa.BufferReader(pa.py_buffer(pages))
        if pages[:6] == b"ARROW1":
            found = pa.ipc.open_file(source)
            return found.schema, map(found.get_batch, range(found.num_record_batches)), pages
        stream = pa.ipc.open_stream(source)
        return stream.schema, iter(stream), pages


class Csv:
    """A CSV file with a header; ``n`` takes one pass over it.

    Parameters
    ----------
    names : name -> name as the header writes it.
    text : columns to read as text.
    numeric : columns to read as numbers. The first block decides what other columns are.
    drop : columns that nobody will ask for.
    """

    def __init__(
        self, path: Path, delimiter: str, names: Mapping[str, str], text: Collection[str],
        numeric: Collection[str], drop: Collection[str],
    ) -> None:  # fmt: skip
        self._path, self._delimiter, self.written = path, delimiter, dict(names)
        self.names = tuple(names)
        self._declared = set(text), set(numeric)
        self._kept = [name for name in names if name not in set(drop)]
        self._irregular: set[str] = set()

    @cached_property
    def types(self) -> dict[str, Any]:
        """The type of every column: as declared, or as the first block of the file suggests."""
        import pyarrow as pa
        import pyarrow.types as kind

        text, numeric = self._declared
        fixed = {**dict.fromkeys(text, pa.string()), **dict.fromkeys(numeric, pa.float64())}
        with self._open(self.names, {}) as reader:
            found = dict(zip(self.names, reader.schema.types, strict=True))
        return {
            name: fixed.get(name, pa.float64() if kind.is_integer(one) else one)
            for name, one in found.items()
        }

    @cached_property
    def n(self) -> int:
        """Number of rows. The same pass meets every cell that later passes will convert."""
        import pyarrow as pa

        while True:
            try:
                return sum(batch.num_rows for batch in self.batches(self._kept, ()))
            except pa.ArrowInvalid as error:
                found = _BAD_NUMBER.match(str(error))
                if not found:
                    raise
                self._irregular.add(self.names[int(found[1])])

    def batches(self, names: Sequence[str], labels: Collection[str]) -> Iterator[Any]:
        """Record batches of the columns ``names``, in order; ``labels`` as text.

        A column of numbers in which some cell is none comes as text.
        """
        import pyarrow as pa
        import pyarrow.types as kind

        def read_as(name: str) -> Any:
            number = kind.is_floating(self.types[name]) and name not in labels
            return pa.float64() if number and name not in self._irregular else pa.string()

        with self._open(names, {name: read_as(name) for name in names}) as reader:
            for batch in reader:
                for start in range(0, batch.num_rows, WINDOW_ROWS):
                    yield batch.slice(start, WINDOW_ROWS)

    def _open(self, names: Sequence[str], types: Mapping[str, Any]) -> Any:
        from pyarrow import csv as arrow_csv

        return arrow_csv.open_csv(
            self._path,
            read_options=arrow_csv.ReadOptions(block_size=_READ_BYTES),
            parse_options=arrow_csv.ParseOptions(
                delimiter=self._delimiter, newlines_in_values=True
            ),
            convert_options=arrow_csv.ConvertOptions(
                include_columns=[self.written[name] for name in names],
                column_types={self.written[name]: one for name, one in types.items()},
            ),
        )


Format = Parquet | Arrow | Csv
