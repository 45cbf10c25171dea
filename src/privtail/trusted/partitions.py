"""Records in partitions, and how one of them answers a question.

Formal guarantee
----------------
`answered` adds what a question's term makes of each block of rows: whole numbers as doubles within
a block, which never round, and int64 beyond it. It is a pure function of the question and of the
rows of the ids that the question sees. So the sum over all partitions is the same for any blocks,
threads, windows or workers, and for a task that is run again, as long as a record's contribution is
a function of that record and its id alone. Lengths of partitions are public, like n.

A block that is summed is a copy. So whoever writes to the container meanwhile (another thread or
process, or code of a user that is called in between) changes no row whose length was taken.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from privtail.errors import InvalidInput
from privtail.trusted.deals import Ids, Sample
from privtail.trusted.questions import Block, Question
from privtail.trusted.records import InMemory, Records, Rows, Targets, Window
from privtail.trusted.records.targets import Labels

Doubles = NDArray[np.float64]
Integers = NDArray[np.int64]
BLOCK_ROWS = 8192
COLUMNS = 32
"""Columns up to which a block has `BLOCK_ROWS` rows, or up to twice as many; with more, fewer."""


class Partitions(Protocol):
    """Records that answer questions, wherever they are; ids count through all partitions."""

    def sums(self, question: Question) -> Integers:
        """Exact sums over the records that the question sees, of its shape."""
        ...

    def counts(self, sample: Sample) -> Counter[Any]:
        """How often each label occurs among the sampled ids; private."""
        ...


def answered(question: Question, window: Window, ids: Ids | None = None) -> Integers:
    """The sums of a question over the rows of a window, or over those of ``ids``."""
    if ids is None:
        ids = question.sample.within(window.start, window.stop)
    total = np.zeros(question.shape, dtype=np.int64)
    records, targets = window.open()
    at_once = rows_at_once(records, question)
    targets = targets if question.targets else None
    dealt = question.deal.labels(window.start, window.stop)
    for part, rows, y, exposures in swept(records, targets, window.start, ids, at_once):
        sums, labels = np.zeros(question.shape), np.array(dealt[moved(part, window.start)])
        if len(labels) != len(rows):
            raise InvalidInput("A window must hold the rows that it is asked for.")
        block = Block(question.problem, question.map.applied(rows), y, labels, exposures)
        question.term.add(block, sums)
        total += sums.astype(np.int64)
    return total


def counted(sample: Sample, window: Window) -> Counter[Any]:
    """How often each label occurs among the sampled ids of a window."""
    part = window.open()[1]
    ids = sample.within(window.start, window.stop)
    return part.counts(moved(ids, window.start)) if isinstance(part, Labels) else Counter()


def swept(
    records: InMemory, targets: Targets | None, start: int, ids: Ids, at_once: int
) -> Iterator[tuple[Ids, Rows, Doubles, Doubles | None]]:
    """Ids, rows, targets (else 0) and exposures of block after block; ``start`` is the first id."""
    for part in pieces(ids, at_once):
        here = moved(part, start)
        found = records.rows(here)
        count = part.stop - part.start if isinstance(part, slice) else len(part)
        y = targets.rows(here) if targets else np.zeros(len(found))
        if not len(found) == len(y) == count:
            raise InvalidInput(
                "The container must return as many rows as asked for. Pass an array of NumPy."
            )
        yield part, found, y, targets.exposures(here) if targets else None


def rows_at_once(records: Records, question: Question) -> int:
    """Rows of a block; a cache holds those of a dense one."""
    if question.rows or records.sparse:
        return question.rows or BLOCK_ROWS
    return max(1, BLOCK_ROWS * COLUMNS // max(COLUMNS // 2, records.d))


def pieces(ids: Ids, rows: int) -> Iterator[Ids]:
    """The same ids, in blocks of ``rows``."""
    first, stop = (ids.start, ids.stop) if isinstance(ids, slice) else (0, len(ids))
    for start in range(first, stop, rows):
        part = slice(start, min(start + rows, stop))
        yield part if isinstance(ids, slice) else ids[part]


def moved(ids: Ids, start: int) -> Ids:
    """Positions in a window of ids that are positions among all records."""
    return slice(ids.start - start, ids.stop - start) if isinstance(ids, slice) else ids - start
