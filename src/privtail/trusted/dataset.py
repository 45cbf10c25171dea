"""The records of a fit on this machine: one pass over them, on threads, block by block.

Formal guarantee
----------------
`Dataset.sums` adds what `partitions.answered` says of disjoint runs of ids, all of which together
are those that the question sees. The order in which threads take them does not matter: whole
numbers are added.
"""

from __future__ import annotations

import ctypes
import functools
import itertools
import os
import threading
from collections import Counter, deque
from collections.abc import Callable, Generator, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import closing, suppress
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from privtail.compilation import steady
from privtail.errors import InvalidInput, require_whole
from privtail.trusted.deals import Deal, Ids, Listed, Sample
from privtail.trusted.maps import FeatureMap
from privtail.trusted.partitions import Partitions, answered, counted, pieces, rows_at_once, swept
from privtail.trusted.private_rows import PrivateRows
from privtail.trusted.problem import Problem
from privtail.trusted.questions import InvalidRows, Question
from privtail.trusted.records import InMemory, Rows, Targets, Window
from privtail.trusted.records.targets import Labels, Numbers

Doubles = NDArray[np.float64]
Integers = NDArray[np.int64]
_Share = tuple[Window, Ids]
_Run = tuple[threading.Lock, Iterator[_Share]]
SPARE = 2
"""Workers for each thread that is asked for: one that has to wait does not stop the others.

Threads of other libraries keep a processor busy after their work is done (a BLAS for .1 s).
"""
MOST_KEPT = 2**25
"""Bytes of an array that glibc may take from memory that was freed; it keeps twice as much.

These are the limits that glibc sets itself once an array of that size has been freed.
"""


def threads() -> int:
    """Worker threads: ``PRIVTAIL_THREADS``, else the processors this process may use."""
    setting = os.environ.get("PRIVTAIL_THREADS", "")
    if setting.isdecimal():
        return max(1, int(setting))
    usable = getattr(os, "sched_getaffinity", None)
    return len(usable(0)) if usable else os.cpu_count() or 1


@functools.cache
def keep_freed_memory() -> None:
    """Tell glibc to keep some memory that was freed; elsewhere nothing happens.

    It may go back to the system at once: from a process that has freed no large array yet, and
    from a worker as Dask starts it. Every block of a sweep would then pay for fresh pages, which
    can cost more than the sweep.
    """
    trim_threshold, mmap_threshold = -1, -3
    with suppress(AttributeError, OSError, TypeError):
        allocator = ctypes.CDLL(None)
        allocator.mallopt(mmap_threshold, MOST_KEPT)
        allocator.mallopt(trim_threshold, 2 * MOST_KEPT)


class Dataset(PrivateRows):
    """Private records and targets in one partition, and public deals.

    Attributes
    ----------
    records, targets : what is private; targets are None where there are none.

    Parameters
    ----------
    key : public chance, for the deals.
    away : what answers for records that are not in this process.
    """

    def __init__(
        self, records: Any, targets: Targets | None, key: bytes, away: Partitions | None = None
    ) -> None:
        self.records, self.targets, self._key, self._away = records, targets, key, away
        self._deals: dict[int, Deal] = {}

    @property
    def sparse(self) -> bool:
        """Whether the records are CSR, which cannot be centred."""
        return bool(self.records.sparse)

    def deal(self, count: int) -> Deal:
        """The public deal of the n ids into ``count`` blocks of equal size."""
        count = require_whole("count", count, 1)
        return self._deals.setdefault(count, Deal(self.records.n, count, self._key))

    def sums(self, question: Question) -> Integers:
        """Exact int64 sums over the records that the question sees, of its shape."""
        if self._away is not None:
            return self._away.sums(question)
        at_once = rows_at_once(self.records, question)
        return self._added(
            lambda window, ids: answered(question, window, ids),
            question.sample, question.targets, at_once, question.shape,
        )  # fmt: skip

    def counts(self, sample: Sample) -> Counter[Any]:
        """How often each label occurs among the sampled ids; private."""
        if self._away is not None:
            return self._away.counts(sample)
        counts: Counter[Any] = Counter()
        for window in self.windows(True):
            counts.update(counted(sample, window))
        return counts

    def visit(
        self,
        work: Callable[[Ids, Rows, Doubles], None],
        sample: Sample,
        targets: bool,
        at_once: int,
    ) -> None:
        """Call ``work`` with ids, rows and targets of one block after the other; not exposures."""

        def one(window: Window, ids: Ids) -> Integers:
            opened = window.open()
            blocks = swept(*opened, window.start, ids, at_once)
            for part, rows, y, _ in blocks:
                work(part, rows, y)
            return np.zeros(1, np.int64)

        self._added(one, sample, targets, at_once, (1,))

    def windows(self, targets: bool) -> Iterator[Window]:
        """One pass over the records, window by window; what is in memory is one window."""
        for run in self._runs(targets):
            yield from run

    def _runs(self, targets: bool) -> list[Iterator[Window]]:
        """One pass over the records, in runs that threads can read at one time."""
        if self._away is not None:
            raise InvalidInput(
                "This needs all rows on one machine, and they are on a Dask cluster. Write them to "
                "Parquet, and pass what privtail.open_table(folder) gives."
            )
        records, needed = self.records, self.targets if targets else None
        if isinstance(records, InMemory):
            return [iter([Window(0, records.n, lambda: (records, needed))])]
        return cast("list[Iterator[Window]]", records.runs(needed))

    def _shares(self, run: Iterator[Window], sample: Sample, at_once: int) -> Generator[_Share]:
        """The pieces that a thread sweeps at a time: windows of a file, or blocks in memory."""
        for window in run:
            if isinstance(self.records, InMemory):
                yield from shares(window, sample, at_once)
            else:
                yield window, sample.within(window.start, window.stop)

    def _added(
        self, work: Callable[[Window, Ids], Integers], sample: Sample, targets: bool, at_once: int,
        shape: tuple[int, ...],
    ) -> Integers:  # fmt: skip
        keep_freed_memory()
        runs = [self._shares(run, sample, at_once) for run in self._runs(targets)]
        spare = SPARE if isinstance(self.records, InMemory) and threads() > 1 else 1
        return added(steady(lambda share: work(*share)), runs, shape, threads() * spare)

    def refuse_non_finite(self) -> None:
        """Raise InvalidInput for a non-finite number or an undeclared label: a leak by choice."""
        if self._invalid(targets=isinstance(self.targets, Numbers)):
            name = "X" if self._invalid(targets=False) else "y"
            raise InvalidInput(
                f"Input {name} contains NaN or infinity. With invalid='zero' such rows "
                "count as zero."
            )
        if isinstance(self.targets, Labels):
            counts = self.counts(Listed(slice(0, self.records.n)))
            missing = {None} if counts.total() < self.records.n else set()
            self.targets.refuse_odd({*counts, *missing})

    def _invalid(self, targets: bool) -> bool:
        """Whether a row has a number that is not finite."""
        n, d, everyone = self.records.n, self.records.d, Listed(slice(0, self.records.n))
        map_ = FeatureMap.of(d, np.ones(d), optional=self.records.optional)
        question = Question(
            InvalidRows(), (1, 1, 1), map_, Problem(n=n, d=d), everyone, self.deal(1), targets
        )
        return bool(self.sums(question).any())

    def __repr__(self) -> str:
        return f"Dataset({self.records!r})"


def shares(window: Window, sample: Sample, at_once: int) -> Generator[_Share]:
    """The sampled ids of a window, block by block."""
    for part in pieces(sample.within(window.start, window.stop), at_once):
        yield window, part


def added(
    work: Callable[[_Share], Integers],
    runs: Sequence[Generator[_Share]],
    shape: tuple[int, ...],
    workers: int,
) -> Integers:
    """Sum of ``work`` over all shares of all runs.

    Every thread reads a run of its own, share by share, and sums what it has read. A thread that
    finds no run left helps another: one of them reads while the other sums. So no more shares are
    in memory than there are workers.
    """
    failed, left = threading.Event(), _Left(runs)

    def run() -> Integers:
        total = np.zeros(shape, dtype=np.int64)
        try:
            for share in left:
                total += work(share)
                if failed.is_set():
                    break
        except BaseException:
            failed.set()
            raise
        return total

    with closing(left):
        if workers == 1 or left.at_most_one():
            return run()
        with ThreadPoolExecutor(workers) as pool:
            running: list[Future[Integers]] = []
            try:
                with suppress(RuntimeError):  # where no thread can be started, there is this one
                    for _ in range(workers):
                        running.append(pool.submit(run))  # noqa: PERF401  those that were started
                total = np.zeros(shape, np.int64) if running else run()
                total += sum(one.result() for one in running)
            except BaseException:
                failed.set()
                raise
    return total


class _Left:
    """Shares of runs, for several threads: each iterates by itself, and each share comes once."""

    def __init__(self, runs: Sequence[Generator[_Share]]) -> None:
        self._runs = runs
        self._lock = threading.Lock()
        self._waiting: deque[_Run] = deque((threading.Lock(), run) for run in runs)
        self._begun: deque[_Run] = deque()

    def at_most_one(self) -> bool:
        """Whether there is one run of one share, or none; reads at most two shares ahead."""
        if len(self._waiting) != 1:
            return not self._waiting
        lock, run = self._waiting.pop()
        first = list(itertools.islice(run, 2))
        self._waiting.append((lock, itertools.chain(first, run)))
        return len(first) < 2

    def __iter__(self) -> Iterator[_Share]:
        while True:
            with self._lock:
                if self._waiting:
                    self._begun.append(self._waiting.popleft())
                if not self._begun:
                    return
                found = self._begun[-1]
                self._begun.rotate()
            yield from self._of(*found)
            with self._lock:
                if found in self._begun:
                    self._begun.remove(found)

    def _of(self, lock: threading.Lock, run: Iterator[_Share]) -> Iterator[_Share]:
        while True:
            with lock:
                share = next(run, None)
            if share is None:
                return
            yield share

    def close(self) -> None:
        """End all runs, those too that nobody has begun."""
        for run in self._runs:
            run.close()


def in_parts(size: int, parts: int) -> Iterator[slice]:
    """0 .. size - 1 in at most ``parts`` runs of about one length."""
    ends = [size * k // min(size, parts) for k in range(min(size, parts) + 1)]
    return (slice(*pair) for pair in itertools.pairwise(ends))
