"""Table files swept window by window, and their scratch copies on disk.

Formal guarantee
----------------
A window holds the rows of consecutive ids, an id being a row's position in the file, and encodes
them as a `Table` in memory does; so each record's contribution is the same bits, whatever the
format, the layout of the file or the number of threads. n is the number of rows that was counted
before the plan; a file that gives another number, or that was written to since it was opened, is
refused. A scratch copy is a file without a name: nobody can open it, and it ends with the process.
"""

from __future__ import annotations

import mmap
import os
import shutil
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import NDArray

from privtail.errors import InvalidInput
from privtail.schema.encoding import PLAIN, Encoding
from privtail.trusted.private_rows import PrivateRows
from privtail.trusted.records.arrow import Distinct
from privtail.trusted.records.tables import Table
from privtail.trusted.records.targets import (
    Labels,
    Numbers,
    Targets,
    Window,
    canonical_label,
    targets_of,
)

if TYPE_CHECKING:
    from privtail.schema.declared import Label
    from privtail.trusted.files.table import TableFile


class Stream(PrivateRows):
    """The features of a table file, decoded again in every pass.

    Parameters
    ----------
    file : what to read, and what is declared about it.
    target : a column that is no feature.
    encoding : what is declared of the features beside categories.

    Raises
    ------
    InvalidInput
        If a column is neither numeric nor has declared categories, or no row or column is left.
    """

    sparse = False

    def __init__(
        self, file: TableFile, target: str | None, encoding: Encoding = PLAIN
    ) -> None:  # fmt: skip
        self._target = None if target is None else str.__str__(target)  # every block is read alike
        self._file, self._encoding = file, encoding
        self._features = file.features(target)
        self._categories = {n: c for n, c in file.categories.items() if n in self._features}
        self._empty = Table(
            {
                name: np.empty(
                    0, file.schema.element(name) if name in self._categories else np.float64
                )
                for name in self._features
            },
            self._categories,
            encoding,
        )
        self.d, self.names, self.optional = self._empty.d, self._empty.names, self._empty.optional
        self.indicators, self.categories = self._empty.indicators, self._empty.categories
        self._classes: tuple[Label, ...] = ()
        self.n = file.n

    def target(self, classes: Sequence[Any] | None) -> Targets:
        """The target column: numbers (``classes`` None), or labels, declared unless ``()``."""
        name = str(self._target)
        if classes is None:
            self._file.require_numeric(name, mend="For labels use a classifier.")
            exposure = None if self._file.exposure is None else np.empty(0)
            return Numbers(np.empty(0), 0, exposure)
        self._classes = self._file.typed(name, classes)
        labels = Labels(np.empty(0, self._file.schema.element(name)), 0)
        if self._classes:
            labels.declare(self._classes)
        return labels

    def runs(self, targets: Targets | None) -> list[Iterator[Window]]:
        """One pass: windows of consecutive ids, with ``targets`` if a question needs them.

        Several runs may be read at once, each by one thread at a time.
        """
        own = targets is not None and self._target is not None
        names = [*self._features, *(self._beside(targets) if own else ())]
        labelled = {name for name in self._features if name in self._categories}
        if own and isinstance(targets, Labels):
            labelled.add(str(self._target))
        return [
            self._windows(start, run, targets) for start, run in self._file.runs(names, labelled)
        ]

    def _beside(self, targets: Targets | None) -> tuple[str, ...]:
        """The columns of the target and, if it has one, of its exposure."""
        exposed = targets is not None and targets.exposed
        return (str(self._target), *((str(self._file.exposure),) if exposed else ()))

    def windows(self, targets: Targets | None) -> Iterator[Window]:
        """One pass, one run after the other."""
        for run in self.runs(targets):
            yield from run

    def _windows(self, start: int, run: Iterator[Any], targets: Targets | None) -> Iterator[Window]:
        for batch in run:
            stop = start + batch.num_rows
            yield Window(start, stop, partial(self._opened, batch, slice(start, stop), targets))
            start = stop

    def scratch(self, folder: Path, targets: Targets | None) -> tuple[Table, Any]:
        """Decode once into a private memory map in ``folder``: features, and the target if any.

        The target comes as a list: itself, and its exposure if it has one.

        Numbers keep their width where doubles would add nothing, labels become small codes.

        Raises
        ------
        InvalidInput
            If the folder cannot be written to, or has too little room: the bytes are named.
        """
        kinds = [
            np.min_scalar_type(len(self._categories[name]))
            if name in self._categories
            else self._file.schema.width(name)
            for name in self._features
        ]
        own = targets is not None and self._target is not None
        if own:
            coded = isinstance(targets, Labels)
            beside = self._beside(targets)
            kinds += [
                np.dtype(np.int32) if coded else self._file.schema.width(name) for name in beside
            ]
        labels: dict[Any, int] = {}
        with _Scratch(folder, self.n, kinds) as scratch:
            for window in self.windows(targets):
                table, part = window.open()
                for j, (values, width) in enumerate(table._parts):
                    scratch.write(j, window.start, values if width == 0 else _codes(values, width))
                if own and part is not None:
                    for j, cells in enumerate(_columns(part, labels), len(self._features)):
                        scratch.write(j, window.start, cells)
            columns = scratch.columns()
        features = {
            name: Distinct([*self._categories[name], None], column)
            if name in self._categories
            else column
            for name, column in zip(self._features, columns, strict=False)
        }
        target: Any = columns[len(self._features) :] if own else None
        if own and isinstance(targets, Labels):
            target = [Distinct(list(labels), columns[-1])]
        return Table(features, self._categories, self._encoding), target

    def _opened(
        self, batch: Any, ids: slice, targets: Targets | None
    ) -> tuple[Table, Targets | None]:
        """One window in memory; its target is the last column of the batch, or part of an array."""
        table = self._empty.like(
            [
                self._file.labels(name, column, self._categories[name])
                if name in self._categories
                else self._file.numbers(column)
                for name, column in zip(self._features, batch.columns, strict=False)
            ]
        )
        if targets is None:
            return table, None
        if self._target is None:
            return table, targets.part(ids)
        columns = batch.columns[len(self._features) :]
        if isinstance(targets, Labels):
            return table, targets.like(self._file.labels(self._target, columns[0], self._classes))
        return table, targets.like(*map(self._file.numbers, columns))

    def __repr__(self) -> str:
        return f"Stream(rows={self.n}, features={self.d})"


class _Scratch:
    """A nameless file, readable by its owner alone, that holds columns one after the other."""

    def __init__(self, folder: Path, n: int, kinds: Sequence[np.dtype[Any]]) -> None:
        self._folder, self._n, self._kinds = folder, n, kinds
        sizes = [-(-n * kind.itemsize // 64) * 64 for kind in kinds]
        self._starts = [sum(sizes[:j]) for j in range(len(sizes))]
        self._bytes = sum(sizes)

    def __enter__(self) -> Self:
        try:
            free = shutil.disk_usage(self._folder).free
            if free < self._bytes:
                raise self._full()
            self._file = tempfile.TemporaryFile(dir=self._folder)
            self._file.truncate(self._bytes)
        except OSError as error:
            raise InvalidInput(
                f"The scratch folder {self._folder} cannot be used: {error.strerror}. Name "
                "another, or leave scratch out."
            ) from None
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()

    def write(self, j: int, row: int, values: NDArray[Any]) -> None:
        kind = self._kinds[j]
        with np.errstate(all="ignore"):
            cells = np.ascontiguousarray(values, dtype=kind).view(np.uint8)
        view, place = cells.data, self._starts[j] + row * kind.itemsize
        try:
            while view:
                written = os.pwrite(self._file.fileno(), view, place)
                view, place = view[written:], place + written
        except OSError:
            raise self._full() from None

    def columns(self) -> list[NDArray[Any]]:
        """The columns, mapped read-only; the file ends when the last of them does."""
        whole = mmap.mmap(self._file.fileno(), self._bytes, access=mmap.ACCESS_READ)
        return [
            np.frombuffer(whole, kind, self._n, start)
            for kind, start in zip(self._kinds, self._starts, strict=True)
        ]

    def _full(self) -> InvalidInput:
        return InvalidInput(
            f"The scratch folder {self._folder} needs {self._bytes:,} free bytes. Name one with "
            "more room, or leave scratch out: then every pass decodes the file again."
        )


def _codes(labels: Labels, width: int) -> NDArray[np.int32]:
    """Codes of a whole window; ``width`` for what is not declared."""
    codes = labels.codes(slice(None))
    return np.where(codes < 0, width, codes)


def _columns(part: Targets, labels: dict[Any, int]) -> list[NDArray[Any]]:
    """Numbers of a window, or positions among ``labels``, which grow as they are met."""
    if isinstance(part, Numbers):
        exposures = part.exposures(slice(None))
        return [part.rows(slice(None)), *(() if exposures is None else (exposures,))]
    found = part._distinct()
    used = np.bincount(found.positions, minlength=len(found.values)) > 0
    places = np.zeros(len(found.values), dtype=np.int32)
    for i in np.flatnonzero(used).tolist():
        places[i] = labels.setdefault(canonical_label(found.values[i]), len(labels))
    column: NDArray[np.int32] = places[found.positions]
    return [column]


def streamed(
    file: TableFile, y: Any, classes: Sequence[Any] | None,
    categories: Mapping[str, Sequence[Any]] | None, encoding: Encoding, exposure: Any,
) -> tuple[Stream | Table, Targets | None]:  # fmt: skip
    """Records and targets of a file, as `records.opened` gives them.

    Raises
    ------
    InvalidInput
        If it was written to after it was opened: later it would be refused after the charge.
    """
    file.require_unchanged()
    column = y if isinstance(y, str) else None
    file = file.declaring(categories or {})
    stream = Stream(file, column, encoding)
    own = stream.target(classes) if column is not None else None
    targets = own or targets_of(y, stream.n, classes, exposure)
    if file.scratch is None:
        return stream, targets
    table, copied = file.copy(
        (column, file.exposure, classes and tuple(map(repr, classes)), repr(encoding)),
        lambda folder: stream.scratch(folder, targets),
    )
    return table, targets if copied is None or targets is None else targets.like(*copied)
