"""The work of a worker on a question: one task for all partitions that it holds.

Formal guarantee
----------------
`answer` is a pure function of the question and of the partitions: it may run twice, or on another
worker. It never raises, because Dask would log the arguments of a task that does. What it returns
shows nothing of itself.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

import privtail
from privtail.compilation import steady
from privtail.errors import InvalidInput
from privtail.trusted.callbacks import CoreLoss
from privtail.trusted.cluster.held import FAILED, Codes, Held, Sent
from privtail.trusted.cluster.probe import probed, probed_loss
from privtail.trusted.cluster.seats import Seated
from privtail.trusted.dataset import added, keep_freed_memory, shares
from privtail.trusted.deals import Ids, Sample
from privtail.trusted.partitions import answered, counted, rows_at_once
from privtail.trusted.questions import Question
from privtail.trusted.records import Window
from privtail.trusted.records.persons import rows_of_sampled, sample_mask

Integers = NDArray[np.int64]


@dataclass(frozen=True, repr=False)
class SentLoss:
    """The loss of a question, which a worker opens and probes once, and not in every round.

    Attributes
    ----------
    pickled : the loss, as the core calls it.
    d, shape : numbers of a row, and the shape of its parameters.
    """

    pickled: bytes
    d: int
    shape: tuple[int, ...]


Task = tuple[Question | Sample, SentLoss | None, Codes | None]
"""What is asked without its loss, or of which ids labels are counted; its loss; codes of labels."""


@dataclass(frozen=True, eq=False, repr=False)
class Partial:
    """The answer of one task; private.

    Attributes
    ----------
    value : sums, or a counter of labels.
    checksums : of the partitions that it read.
    probe : what this worker makes of the public probe, and of the loss of the question.
    where : the address of this worker.
    refused : why there is no value; no text quotes a cell.
    """

    value: Any
    checksums: tuple[bytes, ...]
    probe: tuple[bytes, bytes]
    where: str
    refused: str = ""


def answer(
    sent: Sent, n: int, held: Sequence[Held] | Sent, starts: Sequence[int],
    seats: Sequence[Seated] | None,
) -> Partial:  # fmt: skip
    """The answer of some partitions, whose first ids are ``starts``, of n rows.

    Those that were sent as tasks are read one after the other, and none is kept. With ``seats`` the
    rows of a person count that have one.
    """
    from distributed import get_worker

    where, total = get_worker().address, None
    checksums: tuple[bytes, ...] = ()
    try:
        for run, read in _runs(held):
            value, found = _read(
                sent, n, read(), starts[run], None if seats is None else seats[run]
            )
            total, checksums = value if total is None else total + value, checksums + found
        return Partial(total, checksums, (probed(), _probe_of(sent.value[1])), where)
    except InvalidInput as error:
        return Partial(None, checksums, (b"", b""), where, str(error))
    except Exception:  # noqa: BLE001  its text may quote a cell
        return Partial(None, checksums, (b"", b""), where, FAILED)


def _runs(held: Sequence[Held] | Sent) -> Iterator[tuple[slice, Callable[[], Sequence[Held]]]]:
    """Partitions that are summed together: all that are held, or each that is read for it."""
    if not isinstance(held, Sent):
        yield slice(None), lambda: held
    else:
        for i, one in enumerate(held.value):
            yield slice(i, i + 1), one.read


def _read(
    sent: Sent, n: int, held: Sequence[Held], starts: Sequence[int], seats: Sequence[Seated] | None
) -> tuple[Any, tuple[bytes, ...]]:
    """The answer of some partitions, and their checksums."""
    told = [*(one.refused for one in held), *(one.refused for one in seats or ())]
    refused = next(filter(None, told), "")
    if refused:
        raise InvalidInput(refused)
    task, loss, codes = sent.value
    if loss is not None:
        task = replace(task, term=replace(task.term, loss=_opened(loss)))
    sample = task.sample if isinstance(task, Question) else task
    samples = [sample] * len(held)
    if seats is not None:
        mask = sample_mask(sample, n)
        samples = [rows_of_sampled(one.positions, one.leaders, mask) for one in seats]
    windows = [one.window(start, codes) for one, start in zip(held, starts, strict=True)]
    pairs = list(zip(windows, samples, strict=True))
    value = _summed(task, pairs) if isinstance(task, Question) else _counted(pairs)
    return value, tuple(one.checksum for one in held)


def apart(task: Question | Sample) -> tuple[Question | Sample, SentLoss | None]:
    """The task without its loss, and the loss."""
    loss = getattr(task.term, "loss", None) if isinstance(task, Question) else None
    if loss is None:
        return task, None
    assert isinstance(task, Question)  # noqa: S101  for the type checker
    problem, term = task.problem, cast("Any", task.term)
    shape = np.shape(getattr(term, "w", np.empty((problem.rows, problem.outputs))))
    return replace(task, term=replace(term, loss=None)), pickled(loss, problem.d, shape)


def pickled(loss: CoreLoss, d: int, shape: tuple[int, ...]) -> SentLoss:
    """A loss on its way, with functions of a notebook, too."""
    from cloudpickle import dumps  # type: ignore[import-untyped]

    return SentLoss(dumps(loss), d, shape)


@lru_cache(maxsize=32)
def _opened(loss: SentLoss) -> CoreLoss:
    from cloudpickle import loads

    found: CoreLoss = loads(loss.pickled)  # from the driver, as all tasks are
    return found


@lru_cache(maxsize=32)
def _probe_of(loss: SentLoss | None) -> bytes:
    return b"" if loss is None else probed_loss(_opened(loss), loss.d, loss.shape)


def tried(sent: Sent) -> tuple[str, tuple[bytes, bytes]]:
    """The version of this worker, and what it makes of the public probe and of a loss."""
    return privtail.__version__, (probed(), _probe_of(sent.value))


def _counted(windows: Sequence[tuple[Window, Sample]]) -> Counter[Any]:
    return sum((counted(sample, window) for window, sample in windows), Counter())


def _summed(question: Question, windows: Sequence[tuple[Window, Sample]]) -> Integers:
    from distributed import get_worker

    keep_freed_memory()

    def one(share: tuple[Window, Ids]) -> Integers:
        return answered(question, *share)

    runs = [
        shares(window, seen, rows_at_once(window.open()[0], question)) for window, seen in windows
    ]
    return added(steady(one), runs, question.shape, get_worker().state.nthreads)
