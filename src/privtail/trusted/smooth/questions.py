"""Questions that are released with noise in proportion to a smooth sensitivity.

Formal guarantee
----------------
A record brings values of its own to a trimmed mean, and is in one part of an aggregated function,
in rounds of everyone. `TrimmedMean` and `SampleAndAggregate` have the proofs; their event is
charged before a record is read.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

import numpy as np
from numpy.typing import ArrayLike, NDArray

from privtail.errors import IncompatibleParts, InvalidInput
from privtail.losses import AnyLoss
from privtail.trusted import partitions
from privtail.trusted.batch import Batch
from privtail.trusted.callbacks import PURE_PART, PartFunction, on_part
from privtail.trusted.dataset import in_parts
from privtail.trusted.deals import Ids
from privtail.trusted.questions import Block
from privtail.trusted.records import Rows
from privtail.trusted.smooth.aggregate import SampleAndAggregate
from privtail.trusted.smooth.trimmed import TrimmedMean

Doubles = NDArray[np.float64]
Integers = NDArray[np.int64]
SMOOTH_MECHANISMS: tuple[type, ...] = (TrimmedMean, SampleAndAggregate)
NARROW = 2**17
"""Numbers that a block holds at least where none is summed."""
KEPT_BYTES = 2**28
"""Memory for numbers that a question keeps of every record; it takes a sweep for each."""


def sweeps(n: int, numbers: int) -> int:
    """The number of passes of a question that keeps ``numbers`` doubles of each of n records."""
    return -(-8 * n * numbers // KEPT_BYTES)


def trimmed_gradient(batch: Batch, loss: AnyLoss, w: ArrayLike, mechanism: TrimmedMean) -> Doubles:
    """Released trimmed means of the records' gradients at w, flattened row-major.

    A record brings one value per coordinate, a function of it alone; `TrimmedMean` has the
    proof. Takes 8 n bytes of memory per coordinate, and one sweep for every `KEPT_BYTES`.
    """
    w = batch._parameters(w)
    called = batch._core_loss(loss)

    def values(block: Block) -> Doubles:
        z = block.rows.transformed()
        if called.gradients:
            return called.gradients(w, z, block.y)
        margins, _, counted = block.margins(w)
        residuals = called.derivatives(margins, block.y)
        if batch.problem.intercept:
            z = np.hstack([z, np.ones((len(z), 1))])
        with np.errstate(all="ignore"):
            gradients = z[:, :, None] * residuals[:, None, :]
        gradients[~counted] = 0.0
        return gradients.reshape(len(z), w.size)

    return _trimmed(batch, mechanism, w.size, values)


def aggregate(
    batch: Batch, function: PartFunction, fallback: ArrayLike, mechanism: SampleAndAggregate
) -> Doubles:
    """The released centre of a function's values on disjoint parts, shape of ``fallback``.

    ``function(x)``, or ``function(x, y)`` where there is a target, sees the mapped rows of one
    part as a read-only copy; rows with a missing number are left out, and labels are their
    codes. Where it raises, or returns another number of values or a value that is not finite,
    the part says ``fallback``, a public point. `SampleAndAggregate` has the proof.
    """
    if type(mechanism) is not SampleAndAggregate:
        raise IncompatibleParts("A function on parts is released by SampleAndAggregate only.")
    mechanism = replace(mechanism)
    point = np.array(fallback, dtype=np.float64).copy()  # an __array__ may lend what it keeps
    if not (point.size and np.isfinite(point).all()):
        raise InvalidInput("fallback must be a public point of finite numbers.")
    batch._require_everyone("an aggregated function")
    batch._assume((PURE_PART,))
    sampler = batch._opening.charge(mechanism.event(batch.problem, point.size))
    values = [on_part(function, x, y, point.size) for x, y in _parts(batch, mechanism.blocks)]
    points = mechanism.on_grid(np.array(values), point.reshape(-1))
    found = mechanism.release(points, point.reshape(-1), sampler).reshape(point.shape)
    batch._opening.released()
    return found


def _trimmed(
    batch: Batch, mechanism: TrimmedMean, size: int, values: Callable[[Block], Doubles]
) -> Doubles:
    if type(mechanism) is not TrimmedMean:
        raise IncompatibleParts("A trimmed mean is released by TrimmedMean only.")
    mechanism = replace(mechanism)
    batch._require_everyone("trimmed means")
    sampler = batch._opening.charge(mechanism.event(batch.problem, size))
    n, no_labels = batch.problem.n, np.zeros(0, np.int64)
    bits = mechanism.bits(batch.problem)
    nothing = mechanism.on_grid(np.zeros((1, 1)), bits)[0, 0]
    released = []
    for part in in_parts(size, sweeps(n, size)):
        columns = np.full((part.stop - part.start, n), nothing)

        def block(
            ids: Ids, rows: Rows, y: Doubles, columns: Integers = columns, part: slice = part
        ) -> None:
            seen = Block(batch.problem, batch._map.applied(rows), y, no_labels)
            columns[:, ids] = mechanism.on_grid(values(seen)[:, part], bits)

        at_once = max(partitions.BLOCK_ROWS, NARROW // batch.problem.d)
        batch._data.visit(block, batch._sample, True, at_once)
        released.append(mechanism.release(columns, batch.problem, sampler))
    batch._opening.released()
    return np.concatenate(released)


def _parts(batch: Batch, blocks: int) -> Iterator[tuple[Doubles, Doubles | None]]:
    """Valid rows and targets of one block after the other; a sweep for every `KEPT_BYTES`."""
    data, n, d = batch._data, batch.problem.n, batch.problem.d
    deal, target = data.deal(blocks).labels(0, n), data.targets is not None
    places = np.empty(n, np.int64)
    places[np.argsort(deal, kind="stable")] = np.arange(n)
    ends = np.concatenate([[0], np.cumsum(np.bincount(deal, minlength=blocks))])
    for group in in_parts(blocks, sweeps(n, d + 1)):
        begin, end = int(ends[group.start]), int(ends[group.stop])
        kept = np.full((end - begin, d + 1), np.nan)

        def block(
            ids: Ids, rows: Rows, y: Doubles,
            kept: Doubles = kept, begin: int = begin, end: int = end,
        ) -> None:  # fmt: skip
            z, at = batch._map.applied(rows).transformed(), places[ids]
            wanted = (at >= begin) & (at < end)
            kept[at[wanted] - begin] = np.column_stack([z, y])[wanted]

        data.visit(block, batch._sample, target, partitions.BLOCK_ROWS)
        for b in range(group.start, group.stop):
            part = kept[ends[b] - begin : ends[b + 1] - begin]
            part = part[np.isfinite(part).all(axis=1)]
            yield part[:, :d], part[:, d] if target else None
