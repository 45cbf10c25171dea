"""The records of a fit, and one exact pass over them, block by block.

Formal guarantee
----------------
`Dataset.sums` adds what a question computes of each block of rows: whole numbers as doubles within
a block, which never round, and int64 beyond it. So a sum is the same for any blocks, threads or
windows, as long as a record's contribution is a function of that record alone. Blocks and parts are
dealt by id, which is a record's position, and by public chance.
"""

from __future__ import annotations

import itertools
import os
import threading
from collections.abc import Callable, Generator, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import closing, suppress
from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray

from privtail.compilation import steady
from privtail.errors import InvalidInput, NotReleased, require_whole
from privtail.trusted.maps import FeatureMap, MappedRows
from privtail.trusted.records import Records, Room, Stream, Targets, Window
from privtail.trusted.records.targets import Labels, Numbers

Doubles = NDArray[np.float64]
Integers = NDArray[np.int64]
Ids = slice | Integers
Block = Callable[[MappedRows, Doubles, Integers, Doubles], None]
"""Adds what rows, their targets and their labels bring to sums, in place."""
_Share = tuple[Window, Ids]
BLOCK_ROWS = 8192
VIEWED = 4
"""Blocks that are swept as one where they are views of the records and nothing is copied."""
COPIED = 32
"""Columns of which a block is copied before it is swept; of more, fewer rows: a cache holds it."""
SPARE = 2
"""Workers for each thread that is asked for: one that has to wait does not stop the others.

Threads of other libraries keep a processor busy after their work is done (a BLAS for .1 s).
"""


def threads() -> int:
    """Worker threads: ``PRIVTAIL_THREADS``, else the processors this process may use."""
    asked = os.environ.get("PRIVTAIL_THREADS", "")
    if asked.isdecimal():
        return max(1, int(asked))
    usable = getattr(os, "sched_getaffinity", None)
    return len(usable(0)) if usable else os.cpu_count() or 1


class Dataset:
    """Private records and targets, and public deals.

    Attributes
    ----------
    records, targets : what is private; targets are None where there are none.

    Parameters
    ----------
    chance : public randomness, for the deals.
    """

    def __init__(
        self, records: Records, targets: Targets | None, chance: np.random.Generator
    ) -> None:
        self.records, self.targets, self._chance = records, targets, chance
        self._deals: dict[int, Integers] = {}

    @property
    def sparse(self) -> bool:
        """Whether the records are CSR, which cannot be centred."""
        return self.records.sparse

    def blocks(self, count: int) -> Integers:
        """The public deal of the n ids into ``count`` blocks of equal size, (n,), read-only."""
        require_whole("count", count, 1)
        if count not in self._deals:
            n = self.records.n
            deal = np.zeros(n, np.int64) if count == 1 else self._chance.permutation(n)
            if count > 1:
                deal %= count
            deal.flags.writeable = False
            self._deals[count] = deal
        return self._deals[count]

    def windows(self, targets: Targets | None) -> Iterator[Window]:
        """One pass over the records, window by window; what is in memory is one window."""
        records = self.records
        if isinstance(records, Stream):
            yield from records.windows(targets)
        else:
            yield Window(0, records.n, lambda: (records, targets))

    def rows_at_once(self, outputs: int) -> int:
        """Long blocks where they are views, short ones where they are copies."""
        if self.records.viewed:
            return max(BLOCK_ROWS, VIEWED * BLOCK_ROWS // outputs)
        if self.sparse:
            return BLOCK_ROWS
        return max(1, BLOCK_ROWS * COPIED // max(COPIED // VIEWED, self.records.d))

    def sums(
        self,
        block: Block,
        map_: FeatureMap,
        ids: Ids,
        blocks: int,
        shape: tuple[int, ...],
        targets: bool = True,
        labels: Integers | None = None,
        rows_at_once: int | None = None,
    ) -> Integers:
        """Exact int64 sums (blocks, *shape): blocks of mapped rows on threads, then added."""
        at_once = rows_at_once or BLOCK_ROWS
        if targets and self.targets is None:
            raise InvalidInput("This question needs a target y.")
        deal = self.blocks(blocks) if labels is None else labels
        rooms = threading.local()

        @steady
        def one(share: _Share) -> Integers:
            window, ids = share
            copied = rooms.__dict__.setdefault("room", Room())
            records, source = window.open()
            total = np.zeros((blocks, *shape), dtype=np.int64)
            for part in _pieces(ids, at_once):
                here = moved(part, window.start)
                found = records.rows(here, copied)
                y = source.rows(here) if source and targets else np.zeros(len(found))
                if not len(found) == len(y) == len(deal[part]):
                    raise InvalidInput(
                        "The container returned another number of rows than asked for."
                    )
                sums = np.zeros((blocks, *shape))
                block(map_.applied(found), y, deal[part], sums)
                total += sums.astype(np.int64)
            return total

        spare = 1 if isinstance(self.records, Stream) or threads() == 1 else SPARE
        shares = self._shares(ids, targets, at_once)
        return _added(one, shares, (blocks, *shape), threads() * spare)

    def _shares(self, ids: Ids, targets: bool, rows: int) -> Generator[_Share]:
        """What one thread sweeps at a time: a window of a file, or a block of what is in memory."""
        for window in self.windows(self.targets if targets else None):
            here = within(ids, window)
            if isinstance(self.records, Stream):
                yield window, here
            else:
                yield from ((window, part) for part in _pieces(here, rows))

    def refuse_non_finite(self) -> None:
        """Raise InvalidInput if a number is not finite or a label is none: a leak, if asked for."""
        one, zero = np.ones(self.records.d), np.zeros(self.records.d)
        labels: set[Any] = set()
        for window in self.windows(self.targets):
            records, targets = window.open()
            if isinstance(targets, Labels):
                labels |= targets.occurring()
            for start in range(0, window.stop - window.start, BLOCK_ROWS):
                ids = slice(start, min(start + BLOCK_ROWS, window.stop - window.start))
                z = records.rows(ids).transformed(one, zero)
                y = targets.rows(ids) if isinstance(targets, Numbers) else np.zeros(1)
                for name, values in (("X", z), ("y", y)):
                    if not np.isfinite(values).all():
                        raise InvalidInput(
                            f"Input {name} contains NaN or infinity. With invalid='zero' such rows "
                            "count as zero."
                        )
        if isinstance(self.targets, Labels):
            self.targets.refuse_odd(labels)

    def __repr__(self) -> str:
        return f"Dataset({self.records!r})"

    def __reduce__(self) -> NoReturn:
        raise NotReleased("Private records cannot be pickled or copied.")


def _added(
    work: Callable[[_Share], Integers],
    shares: Generator[_Share],
    shape: tuple[int, ...],
    workers: int,
) -> Integers:
    """Sum of ``work`` over all shares.

    Every thread takes its next share by itself: reading a file is one share after the other while
    the other threads compute, and no more windows are in memory than there are workers.
    """
    lock, ended = threading.Lock(), threading.Event()
    first = list(itertools.islice(shares, 2))
    left = itertools.chain(first, shares)

    def run() -> Integers:
        total = np.zeros(shape, dtype=np.int64)
        try:
            while not ended.is_set():
                with lock:
                    share = next(left, None)
                if share is None:
                    break
                total += work(share)
        finally:
            ended.set()
        return total

    with closing(shares):
        if workers == 1 or len(first) < 2:
            return run()
        with ThreadPoolExecutor(workers) as pool:
            running: list[Future[Integers]] = []
            try:
                with suppress(RuntimeError):  # where no thread can be started, there is this one
                    for _ in range(workers):
                        running.append(pool.submit(run))  # noqa: PERF401  those that were started
                total = np.zeros(shape, np.int64) if running else run()
                total += sum(one.result() for one in running)
            finally:
                ended.set()
    return total


def _pieces(ids: Ids, rows: int) -> Iterator[Ids]:
    """The same ids, in blocks of ``rows``."""
    first, stop = (ids.start, ids.stop) if isinstance(ids, slice) else (0, len(ids))
    for start in range(first, stop, rows):
        part = slice(start, min(start + rows, stop))
        yield part if isinstance(ids, slice) else ids[part]


def within(ids: Ids, window: Window) -> Ids:
    """Those of the (ascending) ids that a window holds."""
    if isinstance(ids, slice):
        return slice(max(ids.start, window.start), min(ids.stop, window.stop))
    first, stop = np.searchsorted(ids, [window.start, window.stop])
    return ids[first:stop]


def moved(ids: Ids, start: int) -> Ids:
    """Positions in a window of ids that are positions among all records."""
    return slice(ids.start - start, ids.stop - start) if isinstance(ids, slice) else ids - start


def in_parts(size: int, parts: int) -> Iterator[slice]:
    """0 .. size - 1 in at most ``parts`` runs of about one length."""
    ends = [size * k // min(size, parts) for k in range(min(size, parts) + 1)]
    return (slice(*pair) for pair in itertools.pairwise(ends))
