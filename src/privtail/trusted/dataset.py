"""The records of a fit on this machine: one pass over them, on threads, block by block.

Formal guarantee
----------------
`Dataset.sums` adds what `partitions.answered` says of disjoint runs of ids, all of which together
are those that the question sees. The order in which threads take them does not matter: whole
numbers are added.
"""

from __future__ import annotations

import itertools
import os
import threading
from collections import Counter
from collections.abc import Callable, Generator, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import closing, suppress
from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray

from privtail.compilation import steady
from privtail.errors import InvalidInput, NotReleased, require_whole
from privtail.trusted import partitions
from privtail.trusted.deals import Deal, Ids, Seen
from privtail.trusted.maps import FeatureMap
from privtail.trusted.partitions import Partitions, answered, counted, pieces, rows_at_once, swept
from privtail.trusted.questions import Question
from privtail.trusted.records import Room, Rows, Stream, Targets, Window
from privtail.trusted.records.targets import Labels, Numbers

Doubles = NDArray[np.float64]
Integers = NDArray[np.int64]
_Share = tuple[Window, Ids]
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
    """Private records and targets in one partition, and public deals.

    Attributes
    ----------
    records, targets : what is private; targets are None where there are none.

    Parameters
    ----------
    key : public chance, for the deals.
    away : who answers for records that are not in this process.
    """

    def __init__(
        self, records: Any, targets: Targets | None, key: bytes, away: Partitions | None = None
    ) -> None:
        self.records, self.targets, self._key, self._away = records, targets, key, away
        self._deals: dict[int, Deal] = {}
        self._rooms = threading.local()

    @property
    def sparse(self) -> bool:
        """Whether the records are CSR, which cannot be centred."""
        return bool(self.records.sparse)

    @property
    def lengths(self) -> tuple[int, ...]:
        """Here one partition, which is swept window by window."""
        return (self.records.n,) if self._away is None else self._away.lengths

    def deal(self, count: int) -> Deal:
        """The public deal of the n ids into ``count`` blocks of equal size."""
        require_whole("count", count, 1)
        return self._deals.setdefault(count, Deal(self.records.n, count, self._key))

    def sums(self, question: Question) -> Integers:
        """Exact int64 sums over the records that the question sees, of its shape."""
        if self._away is not None:
            return self._away.sums(question)
        if question.targets and self.targets is None:
            raise InvalidInput("This question needs a target y.")
        at_once = rows_at_once(self.records, question)
        return self._added(
            lambda window, ids: answered(question, window, ids, self._room()),
            self._shares(question.seen, question.targets, at_once),
            question.shape,
        )

    def counts(self, seen: Seen) -> Counter[Any]:
        """How often each label occurs among the ids that are seen; private."""
        if self._away is not None:
            return self._away.counts(seen)
        counts: Counter[Any] = Counter()
        for window in self.windows(True):
            counts.update(counted(seen, window))
        return counts

    def visit(
        self, work: Callable[[Ids, Rows, Doubles], None], seen: Seen, targets: bool, at_once: int
    ) -> None:
        """Call ``work`` with the ids, rows and targets of one block after the other."""

        def one(window: Window, ids: Ids) -> Integers:
            opened = window.open()
            for block in swept(*opened, window.start, ids, at_once, self._room()):
                work(*block)
            return np.zeros(1, np.int64)

        self._added(one, self._shares(seen, targets, at_once), (1,))

    def _room(self) -> Room:
        """Memory of this thread."""
        room: Room = self._rooms.__dict__.setdefault("room", Room())
        return room

    def windows(self, targets: bool) -> Iterator[Window]:
        """One pass over the records, window by window; what is in memory is one window."""
        if self._away is not None:
            raise InvalidInput("This needs all rows on one machine, and they are on a cluster.")
        records, needed = self.records, self.targets if targets else None
        if isinstance(records, Stream):
            yield from records.windows(needed)
        else:
            yield Window(0, records.n, lambda: (records, needed))

    def _shares(self, seen: Seen, targets: bool, at_once: int) -> Generator[_Share]:
        """What one thread sweeps at a time: a window of a file, or a block of what is in memory."""
        for window in self.windows(targets):
            ids = seen.within(window.start, window.stop)
            if isinstance(self.records, Stream):
                yield window, ids
            else:
                yield from ((window, part) for part in pieces(ids, at_once))

    def _added(
        self, work: Callable[[Window, Ids], Integers], shares: Generator[_Share],
        shape: tuple[int, ...],
    ) -> Integers:  # fmt: skip
        spare = 1 if isinstance(self.records, Stream) or threads() == 1 else SPARE
        return added(steady(lambda share: work(*share)), shares, shape, threads() * spare)

    def refuse_non_finite(self) -> None:
        """Raise InvalidInput if a number is not finite or a label is none: a leak, if asked for."""
        if self._away is not None:
            raise InvalidInput(
                "invalid='raise' reads all rows on one machine, and these are on a Dask cluster. "
                "With invalid='zero' rows that are not finite count as zero."
            )
        d, optional = self.records.d, self.records.optional
        seen = FeatureMap.of(d, np.ones(d), optional=optional)
        labels: set[Any] = set()
        for window in self.windows(True):
            records, targets = window.open()
            if isinstance(targets, Labels):
                labels |= targets.occurring()
            for start in range(0, window.stop - window.start, partitions.BLOCK_ROWS):
                ids = slice(start, min(start + partitions.BLOCK_ROWS, window.stop - window.start))
                z = seen.applied(records.rows(ids)).transformed()
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


def added(
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


def in_parts(size: int, parts: int) -> Iterator[slice]:
    """0 .. size - 1 in at most ``parts`` runs of about one length."""
    ends = [size * k // min(size, parts) for k in range(min(size, parts) + 1)]
    return (slice(*pair) for pair in itertools.pairwise(ends))
