"""Records in the partitions of Dask collections, asked from the driver.

Formal guarantee
----------------
`Spread` adds what `workers.answer` says of disjoint partitions, all of which together are all
records: the same int64 sums as in memory, however often a task ran. The driver alone has ledger,
sampler and noise; what comes from workers goes behind the door of `Sensitive` with the charge of
its event, after all tasks of a question have answered. So a task that is run again releases
nothing.

Lengths of partitions are public, like n. A partition is read by position: X and y need equal
lengths, and what their index says does not matter. Where a partition is computed again and its
cells have changed (an unordered shuffle, a file that was written to), the fit ends: this refusal,
like that of a file which was written to, is outside the promise, and so is one whose graph fails.

Scheduler, workers and their folders hold records: they are inside the boundary.
"""

from __future__ import annotations

import asyncio
import itertools
import uuid
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

import privtail
from privtail.dask_client import balanced, found, is_lost
from privtail.dask_collections import announced, is_spread, own_tasks, partitions
from privtail.errors import InvalidInput
from privtail.losses import AnyLoss
from privtail.schema.containers import class_unknown
from privtail.schema.declared import plain
from privtail.schema.encoding import PLAIN, Encoding
from privtail.schema.times import holds_times
from privtail.trusted.callbacks import core_loss
from privtail.trusted.cluster.held import (
    CHANGED,
    FAILED,
    Held,
    Reading,
    Sent,
    Unread,
    facts,
    label,
    moved,
    require_one_type,
)
from privtail.trusted.cluster.probe import DIFFERS
from privtail.trusted.cluster.seats import decided, joined, shared
from privtail.trusted.cluster.workers import (
    Partial,
    SentLoss,
    answer,
    apart,
    pickled,
    tried,
)
from privtail.trusted.dataset import in_parts
from privtail.trusted.deals import Deal, Sample
from privtail.trusted.events import SMOOTH, Plan
from privtail.trusted.mechanisms.samplers import secret
from privtail.trusted.private_rows import PrivateRows
from privtail.trusted.problem import Problem
from privtail.trusted.questions import Question
from privtail.trusted.records.arrays import column_names, column_of, require_read
from privtail.trusted.records.kinds import home, kind_of, public_type
from privtail.trusted.records.targets import Labels, canonical_label

ASSUMED = (
    "Rows are on a Dask cluster: its scheduler, workers, logs and spill folders are trusted.",
    "So are its connections: TLS protects them.",
    "Lengths of partitions are public, like n.",
)
UNEQUAL = (
    "Labels of a Dask collection are no times, and no whole numbers from 2^53 on, also as text: "
    "pandas writes these otherwise in a partition where one is missing. Turn the column into text, "
    "of such numbers with a letter before them, or write the rows to Parquet and pass what "
    "privtail.open_table(folder) gives."
)
ALIKE = (
    "Two labels of a Dask collection are one number, such as '1' and '1.0', or 'True' and 1: Dask "
    "may write a number as text in a partition. Declare one of them."
)
LOST = (
    "The Dask cluster did not answer: its scheduler or too many workers were lost. What was "
    "charged stays charged; nothing more is released. Start it again, with fewer rows a worker."
)
MEMORY = 0.5
"""Part of the workers' memory that decoded rows may take; if they need more, passes read again."""
TASKS = 4
"""Tasks for each thread of the workers, where partitions are read again: a fast one does more."""


def _require_equal(
    X: Any, y: Any, classes: Sequence[Any] | None, categories: Mapping[str, Sequence[Any]]
) -> None:
    """Refuse labels, declared or of a column, that pandas does not write alike in all partitions.

    Raises
    ------
    InvalidInput
        By types, and by what is declared.
    """
    columns = [X[name] for name in column_names(X) or () if str(name) in categories]
    columns += [] if classes is None else [column_of(announced(y))]
    timed = any(holds_times(*public_type(column)) for column in columns)
    declared = itertools.chain(classes or (), *categories.values())
    if timed or any(label(one) is None for one in declared):
        raise InvalidInput(UNEQUAL)
    for listed in (classes or (), *categories.values()):
        if len(set(map(label, listed))) < len(set(map(canonical_label, listed))):
            raise InvalidInput(ALIKE)


def _require_of_dask(*collections: Any) -> None:
    """Refuse what only says to be of Dask: its code could let a cell decide what it announces."""
    for one in collections:
        for column in one.values() if isinstance(one, Mapping) else (one,):
            require_read(column)
            if column is not None and is_spread(column) and home(type(column)) != "dask":
                raise class_unknown(type(column).__name__)


class Spread(PrivateRows):
    """Records and targets in the partitions of Dask collections.

    Attributes
    ----------
    lengths : of the partitions; public.
    targets : numbers, or labels, without rows; they know what is declared.
    n, d, names, indicators, categories, optional : as other records.
    assumptions : what a promise rests on beside them.

    Parameters
    ----------
    X, y, classes, categories, encoding, exposure : as `records.opened` takes them.
    groups : whose each row is, or None.

    Raises
    ------
    InvalidInput
        If X and y are not in equal partitions, or types do not fit, or no client is there.
    """

    sparse = False
    assumptions = ASSUMED

    def __init__(
        self, X: Any, y: Any, classes: Sequence[Any] | None,
        categories: Mapping[str, Sequence[Any]] | None, encoding: Encoding = PLAIN,
        exposure: Any = None, groups: Any = None,
    ) -> None:  # fmt: skip
        _require_of_dask(X, y, groups, exposure)
        if exposure is not None:
            if is_spread(X) != is_spread(exposure):
                raise InvalidInput(
                    "X and exposure are both Dask collections, or neither is. From one frame pass "
                    'X=ddf[features] and exposure=ddf["years"].'
                )
            y = {"y": y, "exposure": exposure}
        if y is not None and is_spread(X) != is_spread(y):
            raise InvalidInput(
                "X and y are both Dask collections, or neither is. From one frame pass "
                'X=ddf[features] and y=ddf["cost"]; for arrays dask.array.from_array(y, chunks).'
            )
        if groups is not None and is_spread(X) != is_spread(groups):
            raise InvalidInput(
                "X and groups are both Dask collections, or neither is. From one frame pass "
                'X=ddf[features] and groups=ddf["customer"].'
            )
        if categories is not None:  # read once: workers and driver encode alike
            categories = {plain(name): tuple(listed) for name, listed in categories.items()}
        _require_equal(announced(X), y, classes, categories or {})
        own = {name: tuple(map(canonical_label, c)) for name, c in (categories or {}).items()}
        self._client = found()
        self._reading = Reading(
            announced(X),
            None if y is None else announced(y),
            None if groups is None else announced(groups),
            categories and own,
            classes is not None,
            secret(),
            replace(encoding),
        )
        empty, self.targets = self._reading.empty()
        if groups is not None:
            require_one_type(self._reading.groups)
        self.d, self.names = empty.d, getattr(empty, "names", None)
        self.indicators, self.optional = empty.indicators, empty.optional
        self.categories = empty.categories
        if classes and isinstance(self.targets, Labels):
            self.targets.declare(tuple(classes))
        self._parts = self._delayed(partitions(X), y=y, groups=groups)
        self._seats: list[Any] | None = None
        self._unread: list[Unread] | None = None
        self._kept: list[Any] | None = self._client.compute(self._parts)
        told = self._gathered([self._submitted(facts, future) for future in self._kept])
        self.lengths = tuple(lengths[0] for lengths, _, _ in told)
        self._checksums = [checksum for _, checksum, _ in told]
        self._refuse(told)
        self.n = sum(self.lengths)
        if self.n == 0:
            raise InvalidInput(
                "Found 0 rows: all partitions of X are empty. Pass at least one row."
            )
        self._placed: list[tuple[str | None, list[int]]] | None = None
        if self._fits():
            self._balance()
        else:
            self._kept, tasks = None, own_tasks(self._parts, self._reading_key)
            if tasks is not None:
                pairs = zip(tasks, self._parts, strict=True)
                self._unread = [Unread(own, part.key) for own, part in pairs]
        self._probes: dict[SentLoss | None, bytes] = {}

    # ---------------------------------------------------------------- questions

    def sums(self, question: Question) -> NDArray[np.int64]:
        """Exact sums over the records that the question sees, of its shape."""
        total = np.zeros(question.shape, dtype=np.int64)
        for partial in self._partials(question):
            total += partial.value
        return total

    def counts(self, sample: Sample) -> Counter[Any]:
        """How often each label occurs among the sampled ids; private.

        Of a column of text, numbers are the text that they were read from (`held.label`).
        """
        found = sum((partial.value for partial in self._partials(sample)), Counter[Any]())
        text = kind_of(column_of(self._reading.y)) == "text"
        return Counter({str(one): n for one, n in found.items()}) if text else found

    def rehearse(self, plan: Plan, problem: Problem, loss: AnyLoss | None) -> None:
        """Refuse what workers cannot do, and workers that compute other bits, before the charge."""
        if any(event.law in SMOOTH for r in plan for event in r.events):
            raise InvalidInput(
                "Trimmed means and sample-and-aggregate need all rows on one machine, and these "
                "are on a Dask cluster. algorithm='auto' works there."
            )
        shape = problem.rows, getattr(loss, "outputs", problem.outputs)
        sent = None if loss is None else pickled(core_loss(loss), problem.d, shape)
        for _ in range(2):  # a worker that died is not asked twice
            found = self._reached(lambda: self._client.run(tried, Sent(sent), on_error="return"))
            told = list(found.values())
            if not any(isinstance(one, Exception) and is_lost(one) for one in told):
                break
        else:
            raise InvalidInput(LOST)
        if not told:
            raise InvalidInput("The Dask cluster has no worker: wait for one, or add one.")
        if any(isinstance(one, Exception) or one[0] != privtail.__version__ for one in told):
            raise InvalidInput(
                "A Dask worker cannot run privtail, or runs another version of it than this "
                "process: install the same version everywhere."
            )
        self._require_alike(sent, (probe for _, probe in told))

    def seat(self, order: Deal, max_rows: int) -> None:
        """Decide whose rows count, once a fit and after its charge: see `seats`."""
        from dask import delayed

        workers = max(1, len(self._workers()))
        shares, ends = min(workers, len(self.lengths)), self._ends()
        held = self._parts if self._kept is None else self._kept
        key = secret()
        owned = [
            delayed(shared, nout=shares)(
                Sent((order, shares, key, start, checksum)), one, dask_key_name=_key()
            )
            for one, start, checksum in zip(held, ends[:-1], self._checksums, strict=True)
        ]
        found = [
            delayed(decided, nout=len(held))(
                [one[k] for one in owned], max_rows, ends, dask_key_name=_key()
            )
            for k in range(shares)
        ]
        parts = [
            delayed(joined)([one[i] for one in found], dask_key_name=_key())
            for i in range(len(held))
        ]
        self._seats = self._reached(lambda: self._client.compute(parts))

    # ---------------------------------------------------------------- tasks

    def _ends(self) -> list[int]:
        """The first id of every partition, and the end of the last one."""
        return [0, *itertools.accumulate(self.lengths)]

    def _partials(self, task: Question | Sample) -> list[Partial]:
        codes = self.targets.codes_declared if isinstance(self.targets, Labels) else None
        task, loss = apart(task)
        sent = Sent((task, loss, codes))
        groups = self._groups()
        starts = self._ends()
        given = []
        for _, places in groups:
            held: Any = [(self._kept or self._unread or self._parts)[i] for i in places]
            held = Sent(held) if self._unread else held
            seats = None if self._seats is None else [self._seats[i] for i in places]
            given.append((sent, self.n, held, [starts[i] for i in places], seats))
        if self._kept is None:
            tasks = self._again(given)
        else:
            tasks = [
                self._submitted(answer, *one, where=where)
                for one, (where, _) in zip(given, groups, strict=True)
            ]
        partials: list[Partial] = self._gathered(tasks)
        if any(
            partial.where != where for partial, (where, _) in zip(partials, groups, strict=True)
        ):
            self._placed = None
        for partial, (_, places) in zip(partials, groups, strict=True):
            if partial.refused:
                raise InvalidInput(partial.refused)
            self._require_alike(loss, [partial.probe])
            if partial.checksums != tuple(self._checksums[i] for i in places):
                raise InvalidInput(CHANGED)
        return partials

    def _require_alike(self, loss: SentLoss | None, probes: Iterable[tuple[bytes, bytes]]) -> None:
        """Refuse a worker that computes otherwise than any that was asked before."""
        for probe, of_loss in probes:
            alike = probe == self._probes.setdefault(None, probe)
            if loss is not None:
                alike &= of_loss == self._probes.setdefault(loss, of_loss)
            if not alike:
                raise InvalidInput(DIFFERS)

    def _groups(self) -> list[tuple[str | None, list[int]]]:
        """Partitions by the worker that holds them; one that is nowhere is by itself.

        Workers are asked for again when one has answered for another. Where partitions are read
        again, each task has some that follow each other.
        """
        places = range(len(self.lengths))
        if self._kept is None:
            threads = sum(worker["nthreads"] for worker in self._workers().values())
            tasks = TASKS * threads if self._unread else len(places)
            return [(None, list(places[run])) for run in in_parts(len(places), max(1, tasks))]
        if self._placed is None:
            kept = self._kept
            found = self._reached(lambda: self._client.who_has(kept))
            groups: dict[str, list[int]] = {}
            nowhere = []
            for i in places:
                holders = sorted(found.get(kept[i].key, ()))
                if holders:
                    groups.setdefault(holders[0], []).append(i)
                else:
                    nowhere.append(i)
            self._placed = [*groups.items(), *((None, [i]) for i in nowhere)]
        return self._placed

    def _balance(self) -> None:
        """Let no worker hold most of the rows, where moving partitions helps."""
        kept = self._kept or []
        held: dict[str, list[int]] = {worker: [] for worker in self._workers()}
        for where, places in self._groups():
            if where is not None:
                held.setdefault(where, []).extend(places)
        for one, where in balanced(held, self.lengths):
            kept[one] = self._submitted(moved, kept[one], where=where)
            self._placed = None

    def _submitted(self, work: Callable[..., Any], *args: Any, where: str | None = None) -> Any:
        pinned = {} if where is None else {"workers": [where], "allow_other_workers": True}
        return self._reached(
            lambda: self._client.submit(work, *args, key=_key(), pure=False, **pinned)
        )

    def _again(self, given: Sequence[tuple[Any, ...]]) -> list[Any]:
        """Answers of partitions that are read for them alone, asked for in one graph."""
        from dask import delayed

        delayed_answer = delayed(answer, traverse=False)
        tasks = [delayed_answer(*one, dask_key_name=_key()) for one in given]
        return list(self._reached(lambda: self._client.compute(tasks)))

    def _gathered(self, futures: list[Any]) -> list[Any]:
        return list(self._reached(lambda: self._client.gather(futures)))

    def _reached(self, call: Callable[[], Any]) -> Any:
        """The answer of the cluster. An error may quote a cell, so it is not shown."""
        try:
            return call()
        except (Exception, asyncio.CancelledError) as error:  # noqa: BLE001
            text = LOST if is_lost(error) or self._client.status != "running" else FAILED
        raise InvalidInput(text)

    def _delayed(self, parts: list[Any], **beside: Any) -> list[Any]:
        """One task a partition, which reads it and keeps it decoded."""
        from dask import delayed

        columns = []
        for name, values in beside.items():
            found = [None] * len(parts) if values is None else partitions(values)
            if len(found) != len(parts):
                raise InvalidInput(
                    f"X and {name} differ in partitions: {len(parts)} and "
                    f"{len(found)}. Take both from one frame, or repartition one like the other."
                )
            columns.append(found)
        self._reading_key = _key()
        reading = delayed(self._reading, traverse=False, pure=False, name=self._reading_key)
        read = delayed(Held, traverse=True, pure=False)
        return [
            read(*cells, reading, dask_key_name=_key())
            for cells in zip(parts, *columns, strict=True)
        ]

    def _refuse(self, told: Sequence[tuple[tuple[int, int, int], bytes, str]]) -> None:
        for i, ((rows, *others), _, refused) in enumerate(told):
            if refused:
                raise InvalidInput(refused)
            for name, count in zip(("y", "groups"), others, strict=True):
                if count != rows:
                    raise InvalidInput(
                        f"In partition {i}, X and {name} differ in rows: {rows} and "
                        f"{count}. Take both from one frame. Rows belong together by position."
                    )

    def _workers(self) -> dict[str, Any]:
        """The facts of all workers; by default some versions of the scheduler tell of five."""
        found = self._reached(lambda: self._client.scheduler_info(n_workers=-1))
        return dict(found["workers"])

    def _fits(self) -> bool:
        limits = [worker["memory_limit"] for worker in self._workers().values()]
        return 0 in limits or 8.0 * self.n * (self.d + 1) <= MEMORY * sum(limits)

    def __repr__(self) -> str:
        return f"Spread(rows={self.n}, features={self.d})"


def _key() -> str:
    return f"privtail-{uuid.uuid4().hex}"
