"""Data sets of one or many files: which files they are, and one pass over all of them.

Formal guarantee
----------------
The order of the rows is that of the paths, and of the rows in each file, so ids count through all
files. Names of files, their sizes, the types in their footers and their numbers of rows are public.
They decide every refusal here, and in which type a column is read; no cell does. A cell of a
partition column follows from the name of a folder, and so from the position of its row. No file is
read twice: a file that is found under two names is refused, for its records would count twice.
"""

from __future__ import annotations

import itertools
from collections.abc import Collection, Hashable, Iterator, Sequence
from contextlib import AbstractContextManager
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privtail.errors import InvalidInput
from privtail.schema.alike import Types, refuse_mixed
from privtail.schema.columns import refuse_repeated
from privtail.schema.dialect import Dialect
from privtail.schema.partitions import partition_values
from privtail.storage.queries import QueryResult
from privtail.storage.remote import RemoteFile
from privtail.trusted.files import formats
from privtail.trusted.files.formats import format_of
from privtail.trusted.files.source import Place, Source, changed
from privtail.trusted.records.arrow import undictionaried

Runs = list[tuple[int, Iterator[Any]]]
"""Record batches of every run, and the id of its first row."""


def _ends(lengths: Sequence[int]) -> list[int]:
    return [0, *itertools.accumulate(lengths)]


def _refuse_twice(paths: Sequence[Place]) -> None:
    known: dict[Hashable, Place] = {}
    for path in paths if len(paths) > 1 else ():
        itself = _itself(path)
        other = known.get(itself)
        known[itself] = path
        if other is not None:
            what = (
                f"{path} is named twice" if other == path else f"{path} is the file {other} again"
            )
            raise InvalidInput(f"{what}: its rows would count twice. Name it once.")


def _itself(path: Place) -> Hashable:
    """An identity of a file, the same for two names of it."""
    if isinstance(path, RemoteFile):
        found = path.itself
        return _itself(found) if isinstance(found, Path) else found
    if isinstance(path, QueryResult):
        return path
    try:
        state = path.stat()
    except OSError as error:
        raise InvalidInput(
            f"{path} cannot be read: {error.strerror}. Name a file that you may read."
        ) from None
    return state.st_dev, state.st_ino


class Files:
    """The files of a table, opened, in the order of their rows.

    Parameters
    ----------
    name, paths : what errors call the table, and its files.
    dialect : how a CSV is written.
    drop : columns that nobody will ask for.

    Attributes
    ----------
    untyped : whether they are CSV.
    names, index : the columns of any of them, and those that were an index of pandas.
    types : their types.

    Raises
    ------
    InvalidInput
        If one is no table, of another format than the others, or named twice.
    """

    def __init__(
        self, name: Place | str, paths: Sequence[Place], dialect: Dialect, drop: Collection[str]
    ) -> None:
        _refuse_twice(paths)
        self._sources = [Source(path, dialect) for path in paths]
        self._name = name
        refuse_mixed(
            self._name, paths, [source.kind for source in self._sources],
            [not source.beginning for source in self._sources],
        )  # fmt: skip
        self._formats = [format_of(source, drop) for source in self._sources]
        for source, one in zip(self._sources, self._formats, strict=True):
            refuse_repeated(source.path, one.names)
        self.untyped = self._sources[0].untyped
        self.names = tuple(dict.fromkeys(name for one in self._formats for name in one.names))
        self.index = tuple(dict.fromkeys(name for one in self._formats for name in one.index))
        self.types = Types(paths, [one.types for one in self._formats], self.names)
        self._partitions = {name: self._partition(name) for name in dialect.partition_columns}
        self.names += tuple(self._partitions)

    @cached_property
    def lengths(self) -> tuple[int, ...]:
        """Rows of every run; of CSV files, from one pass over them."""
        found: list[int] = []
        for source, one in zip(self._sources, self._formats, strict=True):
            with source.refusing():
                found += one.lengths
        return tuple(found)

    @property
    def n(self) -> int:
        """Number of rows."""
        return sum(self.lengths)

    def runs(self, names: Sequence[str], labels: Collection[str]) -> list[Iterator[Any]]:
        """Record batches of the columns ``names``, run by run; several runs may be read at once.

        A file that was written to before its run ends is refused.
        """
        return [
            self._run(i, run, names, labels)
            for i, one in enumerate(self._formats)
            for run in range(one.runs)
        ]

    def counted_runs(
        self, names: Sequence[str], labels: Collection[str], kept: NDArray[np.bool_] | None
    ) -> Runs:
        """The ``kept`` rows of all runs, with the id of the first of each among those.

        A run that has another number of rows than was counted is refused.
        """
        ids = [slice(*ends) for ends in itertools.pairwise(_ends(self.lengths))]
        sizes = self.lengths
        if kept is not None:
            sizes = tuple(int(np.count_nonzero(kept[some])) for some in ids)
        runs = self.runs(names, labels)
        return [
            (first, self._counted(run, some, kept))
            for first, run, some in zip(_ends(sizes)[:-1], runs, ids, strict=True)
        ]

    def _counted(
        self, run: Iterator[Any], ids: slice, kept: NDArray[np.bool_] | None
    ) -> Iterator[Any]:
        import pyarrow as pa

        seen = ids.start
        for batch in run:
            start, seen = seen, seen + batch.num_rows
            if seen > ids.stop:
                break
            if kept is None:
                yield batch
            elif kept[start:seen].any():
                yield batch.filter(pa.array(kept[start:seen]))
        if seen != ids.stop:
            self.require_unchanged()
            raise changed(self._name)

    def _run(
        self, i: int, run: int, names: Sequence[str], labels: Collection[str]
    ) -> Iterator[Any]:
        with self._sources[i].refusing():
            for batch in self._read(i, run, names, labels):
                if batch.num_rows:
                    yield batch
        self._sources[i].require_unchanged()

    def _read(
        self, i: int, run: int, names: Sequence[str], labels: Collection[str]
    ) -> Iterator[Any]:
        """Batches of one run of a file, as if all files had its columns in one type."""
        one, casts = self._formats[i], self.types.casts[i]
        held = [name for name in names if name not in self._partitions]
        batches = one.batches(held or one.names[: len(names[:1])], set(labels) & set(held), run)
        if len(held) == len(names) and not casts:
            yield from batches
            return
        import pyarrow as pa

        for batch in batches:
            columns = [
                pa.repeat(self._partitions[name][i], batch.num_rows)
                if name in self._partitions
                else _cast(batch[name], casts.get(name))
                for name in names
            ]
            yield pa.record_batch(columns, names=list(names))

    def beginnings(self, names: Sequence[str]) -> list[Any]:
        """The first rows; how many does not depend on how long one of them is."""
        found: list[Any] = []
        more = formats.FIRST_ROWS
        for i, (source, one) in enumerate(zip(self._sources, self._formats, strict=True)):
            with source.refusing():
                rows = sum(one.lengths)  # which finds how long the blocks of a CSV must be
                for batch in self._read(i, 0, names, ()) if rows and more else ():
                    found.append(batch.slice(0, more))
                    more -= found[-1].num_rows
                    if not more:
                        break
        return found

    def refusing(self) -> AbstractContextManager[None]:
        """PyArrow's errors about cells, as errors that quote none."""
        return self._sources[0].refusing()

    def require_unchanged(self) -> None:
        """Refuse the first file that was written to since it was opened."""
        for source in self._sources:
            source.require_unchanged()

    def _partition(self, name: str) -> Any:
        """A column of the names of folders, one cell for each file."""
        import pyarrow as pa

        if name in self.names:
            path = next(
                source.path
                for source, one in zip(self._sources, self._formats, strict=True)
                if name in one.names
            )
            raise InvalidInput(
                f"{path} has a column {name!r} of its own, so names of folders cannot be that "
                f"column: leave {name!r} out of the partition columns."
            )
        column = pa.array(partition_values([source.path for source in self._sources], name))
        self.types[name] = column.type
        return column


def _cast(column: Any, kind: Any) -> Any:
    """A column in another type; whole numbers beyond 2^53 round, as they do in all other files."""
    import pyarrow as pa

    if kind is None:
        return column
    if str(column.type) == "null":
        return pa.nulls(len(column), kind)
    if str(column.type).startswith("dictionary"):
        column = undictionaried(column)
    return column.cast(kind, safe=False)
