"""Table files as batches of columns: Parquet, CSV and Arrow, never whole in memory.

Formal guarantee
----------------
Nothing here computes on a cell but PyArrow's decoding. Which rows share a batch follows from the
layout of the file, and no sum depends on it. Every cell of a CSV is read as text, so that no cell
decides what another one is worth, and every line after the header is a row, a blank one too: n and
the ids of other rows do not depend on what a cell holds. A stray quote would hide the ends of
lines: a file with one that is closed nowhere, within a cell, or in a comment is refused. Two stray
quotes, of which the second ends a cell of another row, are a cell of several lines to every reader:
such a file is malformed, and nothing is promised of its n. So is one with a row of more than 64 MB.
"""

from __future__ import annotations

import csv
import io
import mmap
import sys
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from functools import cached_property
from pathlib import Path
from typing import Any

from privtail.schema.columns import index_of
from privtail.schema.dialect import refuse_dialect
from privtail.schema.headers import Header
from privtail.trusted.files.headers import HEADER_BYTES, read_header
from privtail.trusted.files.source import Source

WINDOW_ROWS = 16_384
"""At most this many rows are handed out at once."""
TOGETHER = 16
"""Windows of Parquet that are decoded, and handed out, as one: PyArrow's calls take time."""
TOGETHER_CELLS = 2**22
"""At most this many cells are in such windows, 32 MB of numbers; else they are handed out alone."""

FIRST_ROWS = 2_000
"""Rows at the beginning that decide whether a column of a CSV is refused as text."""
RUN_ROWS = 2**17
"""Row groups are put together up to this many rows; a thread decodes them by itself."""

_AS_DICTIONARIES = {"PLAIN", "PLAIN_DICTIONARY", "RLE", "RLE_DICTIONARY", "BIT_PACKED"}
"""How text of a Parquet file may be written that PyArrow can read as dictionaries."""

_READ_BYTES = 1 << 20
_LONGEST = 64
"""How many times longer blocks of a CSV with a long row may be: PyArrow needs whole rows."""
_KEPT_WINDOWS = 32


class Parquet:
    """A Parquet file. Pages are read as they are needed, however large a row group is.

    Attributes
    ----------
    lengths : rows of its runs, which threads can read at one time; here some row groups each.
    """

    def __init__(self, source: Source) -> None:
        self._source = source
        with self._open() as file:
            self.names = tuple(file.schema_arrow.names)
            self.index = index_of(file.schema_arrow)
            self.types = dict(zip(self.names, file.schema_arrow.types, strict=True))
            self._footer = file.metadata
            paths = (file.schema.column(j).path for j in range(len(file.schema)))
            self._places = {path: j for j, path in enumerate(paths)}
        groups: list[list[int]] = []
        lengths: list[int] = []
        for group in range(self._footer.num_row_groups):
            if not lengths or lengths[-1] >= RUN_ROWS:
                groups.append([])
                lengths.append(0)
            groups[-1].append(group)
            lengths[-1] += self._footer.row_group(group).num_rows
        self._groups, self.lengths = groups, tuple(lengths)

    @property
    def runs(self) -> int:
        """The number of runs."""
        return len(self.lengths)

    def batches(self, names: Sequence[str], labels: Collection[str], run: int) -> Iterator[Any]:
        """Record batches of the columns ``names``, in order; text of ``labels`` as dictionaries."""
        names, groups = list(names), self._groups[run]
        known = [
            n for n in labels if n in self._places and self._written(n, groups) <= _AS_DICTIONARIES
        ]
        with self._open(read_dictionary=known, metadata=self._footer) as file:
            together = min(TOGETHER, TOGETHER_CELLS // (WINDOW_ROWS * max(1, len(names))))
            rows = WINDOW_ROWS * max(1, together)
            for batch in file.iter_batches(rows, groups, names, use_threads=False):
                yield batch.select(names)

    def _written(self, name: str, groups: list[int]) -> set[str]:
        """How the text of a column is written; some writers choose it by how long the cells are."""
        place = self._places[name]
        columns = (self._footer.row_group(group).column(place) for group in groups)
        return {encoding for column in columns for encoding in column.encodings}

    @contextmanager
    def _open(self, **options: Any) -> Iterator[Any]:
        import pyarrow.parquet as pq

        with self._source.open() as file:
            yield pq.ParquetFile(file, pre_buffer=False, buffer_size=_READ_BYTES, **options)


class Arrow:
    """An Arrow file or stream; one of this machine is mapped into memory, page by page.

    One batch may be the whole file, so it cannot be read without the map; and who cuts a mapped
    file short while it is read ends the process (SIGBUS). Write a new file beside it instead.
    """

    runs = 1

    def __init__(self, source: Source) -> None:
        self._source = source
        schema = self._open()[0]
        self.names = tuple(schema.names)
        self.index = index_of(schema)
        self.types = dict(zip(self.names, schema.types, strict=True))

    @cached_property
    def lengths(self) -> tuple[int]:
        """Number of rows, from one pass over the heads of the batches."""
        return (sum(batch.num_rows for batch in self._open()[1]),)

    def batches(self, names: Sequence[str], labels: Collection[str], run: int) -> Iterator[Any]:
        """Record batches of the columns ``names``, in order."""
        _, batches, pages = self._open()
        windows = 0
        for batch in batches:
            columns = batch.select(list(names))
            for start in range(0, batch.num_rows, WINDOW_ROWS):
                yield columns.slice(start, WINDOW_ROWS)
                windows += 1
                if pages is not None and windows % _KEPT_WINDOWS == 0:
                    pages.madvise(mmap.MADV_DONTNEED)

    def _open(self) -> tuple[Any, Iterator[Any], mmap.mmap | None]:
        """The schema, the batches (views of the file unless compressed), and its pages."""
        import pyarrow as pa

        file, pages = self._source.open(), None
        if isinstance(self._source.path, Path):
            with file:
                pages = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
            file = pa.BufferReader(pa.py_buffer(pages))
        if self._source.beginning[:6] == b"ARROW1":
            found = pa.ipc.open_file(file)
            return found.schema, map(found.get_batch, range(found.num_record_batches)), pages
        stream = pa.ipc.open_stream(file)
        return stream.schema, iter(stream), pages


class Csv:
    """A CSV file with a header, all of it text; ``lengths`` take one pass over it.

    Parameters
    ----------
    header : its first line.
    drop : columns that nobody will ask for.
    """

    runs = 1

    def __init__(self, source: Source, header: Header, drop: Collection[str]) -> None:
        import pyarrow as pa

        self._source, self._header, self._longer = source, header, 1
        self._written = {name.strip(" "): name for name in header.names}
        self.names = tuple(name.strip(" ") for name in header.names)
        self.types = dict.fromkeys(self.names, pa.string())
        self.index: tuple[str, ...] = ()
        self._kept = [name for name in self.names if name not in set(drop)] or self.names[:1]

    @cached_property
    def lengths(self) -> tuple[int]:
        """Number of rows. The same pass meets every cell that later passes will read.

        Where a cell holds the end of a line, a stray quote may have made one row of several: then
        all quotes are checked. And where a row is longer than a block, blocks are made longer.
        """
        import pyarrow as pa

        while True:
            try:
                return (self._counted(),)
            except pa.ArrowInvalid as error:
                if "straddling" not in str(error) or self._longer >= _LONGEST:
                    raise
                self._longer *= 8

    def _counted(self) -> int:
        rows, wrapped = 0, False
        for batch in self.batches(self.names, (), 0):
            rows += batch.num_rows
            wrapped = wrapped or _wrapped(batch)
        if wrapped:
            self._require_closed()
        return rows

    def _require_closed(self) -> None:
        """Refuse a quote that is never closed, or is closed within a cell."""
        dialect, largest = self._header.dialect, csv.field_size_limit(sys.maxsize)
        try:
            with (
                self._source.open() as file,
                io.TextIOWrapper(file, dialect.encoding, "replace", newline="") as text,
            ):
                for _ in csv.reader(text, delimiter=dialect.separator or ",", strict=True):
                    pass
        except csv.Error:
            raise self._source.malformed("") from None
        finally:
            csv.field_size_limit(largest)

    def batches(self, names: Sequence[str], labels: Collection[str], run: int) -> Iterator[Any]:
        """Record batches of the columns ``names``, in order, as text."""
        comment = self._header.dialect.comment
        names = list(names)
        if comment is None:
            blocks = self._blocks(names, labels)
        else:
            blocks = self._commented(names, labels, comment)
        for batch in blocks:
            for start in range(0, batch.num_rows, WINDOW_ROWS):
                yield batch.slice(start, WINDOW_ROWS)

    def _commented(self, names: list[str], labels: Collection[str], comment: str) -> Iterator[Any]:
        """Blocks in which lines that begin with ``comment`` are rows without values.

        A file is refused if a row with the end of a line begins so: a quote in a comment that is
        closed nowhere would hide other rows, and no cell of a comment is seen later.
        """
        import pyarrow as pa
        import pyarrow.compute as pc

        odd: list[int] = []

        def seen(row: Any) -> str:
            if not row.text.startswith(comment) or not {"\n", "\r"}.isdisjoint(row.text):
                return "error"
            odd.append(row.number - self._header.above - 2)
            return "skip"

        start, first = 0, self.names[0]
        for batch in self._blocks(list(dict.fromkeys([*names, first])), labels, seen):
            begun = pc.starts_with(batch[first], comment)
            if _wrapped(batch.filter(begun)):
                raise self._source.malformed("")
            ids = pc.if_else(begun, None, pa.array(range(batch.num_rows))).to_pylist()
            while odd and odd[0] <= start + len(ids):
                ids.insert(odd.pop(0) - start, None)
            start += len(ids)
            yield batch.select(names).take(pa.array(ids, pa.int64()))
        if odd:
            nothing = pa.nulls(len(odd), pa.string())
            yield pa.record_batch([nothing] * len(names), names=names)

    def _blocks(
        self, names: list[str], labels: Collection[str],
        seen: Callable[[Any], str] | None = None,
    ) -> Iterator[Any]:  # fmt: skip
        """Blocks as PyArrow reads them; ``seen`` judges rows of too many or too few cells.

        Columns that were left out are bytes, for nobody may need their text, unless asked for as
        ``labels``.
        """
        import pyarrow as pa
        from pyarrow import csv as arrow_csv

        written = [self._written[name] for name in names]
        dialect, texts = self._header.dialect, {*self._kept, *labels}
        with arrow_csv.open_csv(
            self._source.open(),
            read_options=arrow_csv.ReadOptions(
                block_size=_READ_BYTES * self._longer,
                use_threads=seen is None,  # else rows have no numbers
                encoding=dialect.encoding,
                skip_rows=self._header.above,
            ),
            parse_options=arrow_csv.ParseOptions(
                delimiter=dialect.separator,
                newlines_in_values=True,
                ignore_empty_lines=False,
                invalid_row_handler=seen,
            ),
            convert_options=arrow_csv.ConvertOptions(
                include_columns=written,
                column_types={
                    self._written[name]: pa.string() if name in texts else pa.binary()
                    for name in names
                },
            ),
        ) as reader:
            for batch in reader:
                yield batch.rename_columns(names)


def _wrapped(batch: Any) -> bool:
    """Whether a cell of text holds the end of a line."""
    texts = (bytes(column.buffers()[2] or b"") for column in batch.columns)
    return any(b"\n" in text or b"\r" in text for text in texts)


Format = Parquet | Arrow | Csv


def format_of(source: Source, drop: Collection[str]) -> Format:
    """The format of a file, by how it begins.

    Raises
    ------
    InvalidInput
        If it is damaged or no table, or something is declared of it that is of a CSV.
    """
    import pyarrow as pa

    try:
        if source.kind == "Parquet":
            refuse_dialect(source.path, source.dialect)
            return Parquet(source)
        if source.kind == "Arrow":
            refuse_dialect(source.path, source.dialect)
            return Arrow(source)
    except (pa.ArrowException, OSError):
        raise source.malformed("") from None
    header = read_header(source.path, source.start(HEADER_BYTES), source.dialect)
    source.untyped = True
    return Csv(source, header, drop)
