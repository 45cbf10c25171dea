"""Questions about the records of one round, and the sweep that answers them."""

from __future__ import annotations

import itertools
import math
import operator
import os
import threading
from collections import Counter
from collections.abc import Callable, Generator, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import closing, suppress
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, NoReturn, cast

import numpy as np
from numpy.typing import ArrayLike, NDArray

from privtail.compilation import steady
from privtail.errors import IncompatibleParts, InvalidInput, NotReleased
from privtail.losses import AnyLoss, Loss
from privtail.trusted import callbacks, kernels
from privtail.trusted.callbacks import AskedLoss
from privtail.trusted.maps import MappedRows
from privtail.trusted.means import Ball, ClippedMean, Interval, RobustMean
from privtail.trusted.mechanisms.aggregate import SampleAndAggregate
from privtail.trusted.mechanisms.labels import StabilityHistogram
from privtail.trusted.mechanisms.trimmed import TrimmedMean
from privtail.trusted.opening import Opening
from privtail.trusted.problem import Problem
from privtail.trusted.records import Room, Stream, Window, formats
from privtail.trusted.records.targets import Labels
from privtail.trusted.sensitive import Sensitive
from privtail.trusted.sensitivity import Sensitivity

if TYPE_CHECKING:
    from privtail.trusted.curator import Curator

Doubles = NDArray[np.float64]
Integers = NDArray[np.int64]
Ids = slice | Integers
_Share = tuple[Window, Ids]
BLOCK_ROWS = 8192
VIEWED = 4
"""Blocks that are swept as one where they are views of the records and nothing is copied."""
COPIED = 32
"""Columns of which a block is copied before it is swept; of more, fewer rows: a cache holds it."""
PARTS = 8
"""A block is cut into so many at most: each has sums of its own to add."""
CACHED = 2**17
"""Numbers of a block whose gradients are written out record by record: a cache holds them."""
NARROW = 2**17
"""Numbers that a block holds at least where none is summed."""
SPARE = 2
"""Workers for each thread that is asked for: one that has to wait does not stop the others.

Threads of other libraries keep a processor busy after their work is done (a BLAS for .1 s).
"""
TILE = 32
"""Candidates that are scored in one go."""


def threads() -> int:
    """Worker threads: ``PRIVTAIL_THREADS``, else the processors this process may use."""
    asked = os.environ.get("PRIVTAIL_THREADS", "")
    if asked.isdecimal():
        return max(1, int(asked))
    usable = getattr(os, "sched_getaffinity", None)
    return len(usable(0)) if usable else os.cpu_count() or 1


class Batch:
    """Answers questions about the records of one round. The only door to the records."""

    def __init__(self, curator: Curator, problem: Problem, ids: Ids, opening: Opening) -> None:
        self._curator, self._ids, self._opening = curator, ids, opening
        self._problem = problem

    @property
    def problem(self) -> Problem:
        """The public sizes, as this batch sees them."""
        return self._problem

    def gradient(self, loss: AnyLoss, w: ArrayLike, mean: RobustMean) -> Sensitive:
        """Robust mean of the records' gradients at w, flattened row-major from (rows, K).

        A generalized-linear gradient is z outer r with r = loss.derivative(z.w, y); the range is
        enforced on it, not believed. Sensitivity: `Problem.gradient` (the lemma of `means`).
        """
        w, called = self._parameters(w), self._asked(loss)
        mean = _as_asked(self._finite(called, w, mean))
        rows = max(1, CACHED // w.size) if called.gradients else self._rows_at_once
        block = self._gradient_block(called, w, mean)
        sums = self._sweep(block, mean.blocks, w.shape, rows_at_once=rows)
        return self._answer(_median(sums), self.problem.gradient(mean))

    def means(self, mean: RobustMean) -> Sensitive:
        """Robust mean of the mapped columns, (d,). Sensitivity: `Problem.means` (the lemma)."""
        mean = _as_asked(mean)
        d, range_ = self.problem.d, mean.range
        if not math.isfinite(range_.radius):
            raise InvalidInput("A mean of columns needs a finite threshold.")
        zero = np.zeros((d, 1))

        def block(rows: MappedRows, y: Doubles, labels: Integers, sums: Doubles) -> None:
            _, squares, valid = rows.margins(zero, np.zeros(1))
            ones = np.ones((len(rows), 1))
            _contribute(rows, squares, valid, ones, labels, False, range_, self._bits, sums)

        sums = self._sweep(block, mean.blocks, (d, 1), targets=False)
        return self._answer(_median(sums), self.problem.means(mean))

    def scores(self, loss: Loss, candidates: Sequence[ArrayLike], mean: RobustMean) -> Sensitive:
        """Robust mean of the losses at each candidate w, forced onto the range of ``mean``.

        Sensitivity: `Problem.scores`; one-signed, so a record's absence lowers all scores.
        """
        mean = _as_asked(mean)
        answer = self.problem.scores(len(candidates), mean)
        called = self._asked(loss)
        points, outputs = [self._parameters(w) for w in candidates], self.problem.outputs
        box = cast(Interval, mean.range)
        limit = box.steps(self._bits)

        def block(rows: MappedRows, y: Doubles, labels: Integers, sums: Doubles) -> None:
            for first in range(0, len(points), TILE):
                tile = points[first : first + TILE]
                margins, _, valid = self._margins(rows, np.hstack(tile))
                margins, targets = margins.reshape(-1, outputs), np.repeat(y, len(tile))
                with np.errstate(all="ignore"):
                    values = called.values(margins, targets) / box.radius
                _clamp(values, limit, self._bits)
                scores = np.maximum(values, 0.0).reshape(len(y), len(tile))
                scores[~(valid & np.isfinite(y))] = 0.0
                _add(sums[:, first : first + TILE, 0], labels, scores)

        sums = self._sweep(block, mean.blocks, (len(points), 1))
        return self._answer(_median(sums), answer)

    def improvement(self, loss: Loss, w: ArrayLike, base: ArrayLike, mean: RobustMean) -> Sensitive:
        """Robust mean of how much smaller the losses are at ``w`` than at ``base``.

        A record whose loss is not a number at either adds 0. Sensitivity: `Problem.improvement`.
        """
        mean = _as_asked(mean)
        answer = self.problem.improvement(mean)
        called = self._asked(loss)
        points = self._parameters(w), self._parameters(base)
        box = cast(Interval, mean.range)

        def block(rows: MappedRows, y: Doubles, labels: Integers, sums: Doubles) -> None:
            found = [self._margins(rows, point) for point in points]
            with np.errstate(all="ignore"):
                here, there = (called.values(margins, y) for margins, _, _ in found)
                gains = (there - here) / box.radius
            gains[~(found[0][2] & np.isfinite(y))] = 0.0
            limit = box.steps(self._bits)
            _clamp(gains, limit, self._bits)
            np.add.at(sums[:, 0, 0], labels, gains)

        return self._answer(_median(self._sweep(block, mean.blocks, (1, 1))), answer)

    def separations(
        self, loss: Loss, w: ArrayLike, mean: RobustMean, reach: float = math.inf
    ) -> Sensitive:
        """How far a cut of each column parts the records' derivatives at w, (d K,) row-major.

        The largest |mean of c sign(z - t)| over the cut t = 0 and all others with |t| < ``reach``
        of a mapped column z; c is the record's derivative in a margin, forced onto the range of
        ``mean``. With all cuts, no unit or shift of a column matters. Sensitivity:
        `Problem.separations`. Beyond zero it takes 8 n bytes of memory per column, and one sweep
        for every `KEPT_BYTES`.
        """
        mean = _as_asked(mean)
        answer = self.problem.separations(mean)
        if not reach >= 0:
            raise InvalidInput(f"reach must be a number that is not negative, got {reach!r}.")
        w = self._parameters(w)
        called = self._asked(loss)
        box = cast(Interval, mean.range)
        limit, outputs, d = box.steps(self._bits), self.problem.outputs, self.problem.d
        n = len(self._curator.blocks(1))
        places, steps = np.arange(n), np.zeros((n if reach > 0 else 0, outputs))
        found = np.zeros((d, outputs), dtype=np.int64)
        for part in _split(d, formats.sweeps(n, d) if reach > 0 else 1):
            columns = np.zeros((part.stop - part.start if reach > 0 else 0, n))

            def block(
                rows: MappedRows, y: Doubles, seen: Integers, sums: Doubles,
                columns: Doubles = columns, part: slice = part,
            ) -> None:  # fmt: skip
                z = rows.transformed()
                margins, _, _ = self._margins(rows, w)
                counted = np.isfinite(z).all(axis=1) & np.isfinite(y)
                with np.errstate(all="ignore"):
                    entries = called.derivatives(margins, y) / box.radius
                _clamp(entries.reshape(-1), limit, self._bits)
                z = np.where(counted[:, None], z[:, part], 0.0)
                entries[~counted] = 0.0
                sums[0, part] += np.sign(z).T @ entries
                if reach > 0:
                    steps[seen], columns[:, seen] = entries, z.T

            sums = self._sweep(block, 1, found.shape, True, places, self._rows_at_once)
            found[part] = np.abs(sums[0, part])
            for j, values in enumerate(columns, part.start):
                kernels.widest_cut(values, np.argsort(values), steps, reach, found[j])
        return self._answer(found.reshape(-1), answer)

    def moments(self, radius: float, target: bool = False) -> Sensitive:
        """Second moments of the rows (z, 1, y) clipped to l2 norm ``radius``.

        Upper triangle row by row, off-diagonals times sqrt 2. Sensitivity: `Problem.moments`.
        """
        answer = self.problem.moments(radius, target)
        margin = kernels.margin_of_safety(answer.size, self._bits)

        def block(rows: MappedRows, y: Doubles, labels: Integers, sums: Doubles) -> None:
            z = [rows.transformed()]
            if self.problem.intercept:
                z.append(np.ones((len(rows), 1)))
            if target:
                z.append(y[:, None])
            joint = np.ascontiguousarray(np.hstack(z))
            valid = np.isfinite(joint).all(axis=1)
            kernels.moment_sum(joint, valid, radius, self._bits, margin, sums[0, :, 0])

        return self._answer(_median(self._sweep(block, 1, (answer.size, 1), target)), answer)

    def histogram(
        self, columns: Sequence[int], edges: ArrayLike, pooled: bool = False
    ) -> Sensitive:
        """Counts of mapped column values between public edges; column -1 is the (raw) target.

        Cell 0 lies below the first edge, cell e at or above edge e - 1. Flattened (columns,
        edges + 1). ``edges`` (edges,) are those of all columns, (columns, edges) one row for each.
        With ``pooled`` each record votes for one column, chosen by its id, and the columns are
        added, (edges + 1,). Rows with a non-finite number count nowhere. Sensitivity:
        `Problem.histogram`, whatever the edges: a record fills one cell per column.
        """
        columns = [operator.index(column) for column in columns]
        cuts = _ascending(edges, len(columns))
        cells = len(columns), cuts.shape[1] + 1
        answer = self.problem.histogram(len(columns), cells[1] - 1, pooled)
        voters = self._curator.blocks(len(columns)) if pooled else None

        def block(rows: MappedRows, y: Doubles, labels: Integers, sums: Doubles) -> None:
            z = rows.transformed()
            valid = np.isfinite(z).all(axis=1)
            if -1 in columns:
                valid &= np.isfinite(y)
            asked = [y if column == -1 else z[:, column] for column in columns]
            for c, values in enumerate(asked):
                counted = valid if voters is None else valid & (labels == c)
                sums[0, c, :] += _counts(values[counted], cuts[c])

        counts = self._sweep(block, 1, cells, -1 in columns, voters)
        counts = counts.sum(axis=1) if pooled else counts.reshape(1, -1)
        return self._answer(counts[0] << self._bits, answer)

    def derivative_norms(self, loss: Loss, w: ArrayLike, edges: ArrayLike) -> Sensitive:
        """Counts of the l2 norms of the records' gradients in their margins at w.

        Each record fills one cell between public edges. Sensitivity: `Problem.derivative_norms`.
        """
        w, cuts = self._parameters(w), _ascending(edges, 1)[0]
        called = self._asked(loss)

        def block(rows: MappedRows, y: Doubles, labels: Integers, sums: Doubles) -> None:
            margins, _, valid = self._margins(rows, w)
            lengths = _lengths(called.derivatives(margins, y))
            sums[0, 0, :] += _counts(lengths[valid & np.isfinite(y)], cuts)

        counts = self._sweep(block, 1, (1, len(cuts) + 1))
        answer = self.problem.derivative_norms(len(cuts))
        return self._answer(counts.reshape(-1) << self._bits, answer)

    def invalid_rows(self) -> Sensitive:
        """How many rows count as zero: a number that is not finite, or an undeclared label.

        One number; the target counts if there is one. Rows that do not count anyway (beyond
        ``max_rows``, or without an id) are left out. Sensitivity: `Problem.invalid_rows`.
        """
        zero = np.zeros((self.problem.d, 1))
        target = self._curator._targets is not None

        def block(rows: MappedRows, y: Doubles, labels: Integers, sums: Doubles) -> None:
            _, _, valid = rows.margins(zero, np.zeros(1))
            sums[0, 0] += np.count_nonzero(~(valid & np.isfinite(y)))

        count = self._sweep(block, 1, (1,), target)
        return self._answer(count.reshape(-1) << self._bits, self.problem.invalid_rows())

    def labels(self, mechanism: StabilityHistogram) -> list[Any]:
        """The labels that occur often enough, sorted; charged even when there is none.

        `StabilityHistogram` has the proof, for one row and for a person with several. Sensitivity:
        `Problem.labels`.
        """
        if type(mechanism) is not StabilityHistogram:
            raise IncompatibleParts("Labels are released by StabilityHistogram only.")
        targets = self._curator._targets
        if not isinstance(targets, Labels):
            raise InvalidInput("labels() needs a target of labels.")
        self._require_everyone("labels")
        counted = self.problem.labels()
        sampler = self._opening.charge(mechanism.event(counted))
        counts: Counter[Any] = Counter()
        for window in self._curator._windows(targets):
            part = window.open()[1]
            if isinstance(part, Labels):
                counts.update(part.counts(_moved(_within(self._ids, window), window.start)))
        found = targets.restored(mechanism.release(counts, counted, sampler))
        self._opening.released()
        return found

    def trimmed(self, loss: AnyLoss, w: ArrayLike, mechanism: TrimmedMean) -> Doubles:
        """Released trimmed means of the records' gradients at w, flattened row-major.

        A record brings one value per coordinate, a function of it alone; `TrimmedMean` has the
        proof. Takes 8 n bytes of memory per coordinate, and one sweep for every `KEPT_BYTES`.
        """
        w = self._parameters(w)
        called, (width, outputs) = self._asked(loss), w.shape

        def values(rows: MappedRows, y: Doubles) -> Doubles:
            if called.gradients:
                return called.gradients(w, rows.transformed(), y)
            margins, _, valid = self._margins(rows, w)
            residuals = called.derivatives(margins, y)
            z = rows.transformed()
            if self.problem.intercept:
                z = np.hstack([z, np.ones((len(rows), 1))])
            with np.errstate(all="ignore"):
                gradients = z[:, :, None] * residuals[:, None, :]
            gradients[~(valid & np.isfinite(y))] = 0.0
            return gradients.reshape(len(rows), width * outputs)

        return self._trimmed(mechanism, w.size, values, targets=True)

    def trimmed_means(self, mechanism: TrimmedMean) -> Doubles:
        """Released trimmed means of the mapped columns, (d,); like `trimmed`."""

        def values(rows: MappedRows, y: Doubles) -> Doubles:
            z = rows.transformed()
            z[~np.isfinite(z).all(axis=1)] = 0.0
            return z

        return self._trimmed(mechanism, self.problem.d, values, targets=False)

    def aggregate(
        self, function: callbacks.PartFunction, fallback: ArrayLike, mechanism: SampleAndAggregate
    ) -> Doubles:
        """The released centre of a function's values on disjoint parts, shape of ``fallback``.

        ``function(x)``, or ``function(x, y)`` where there is a target, sees the mapped rows of one
        part as a read-only copy; rows with a missing number are left out, and labels are their
        codes. Where it raises, or returns another number of values or a value that is not finite,
        the part says ``fallback``, a public point. `SampleAndAggregate` has the proof.
        """
        if type(mechanism) is not SampleAndAggregate:
            raise IncompatibleParts("A function on parts is released by SampleAndAggregate only.")
        point = np.array(fallback, dtype=np.float64)
        if not (point.size and np.isfinite(point).all()):
            raise InvalidInput("fallback must be a public point of finite numbers.")
        self._require_everyone("an aggregated function")
        self._curator.assume((callbacks.PURE_PART,))
        sampler = self._opening.charge(mechanism.event(self.problem, point.size))
        values = [
            callbacks.on_part(function, x, y, point.size) for x, y in self._parts(mechanism.blocks)
        ]
        points = mechanism.on_grid(np.array(values), point.reshape(-1))
        found = mechanism.release(points, point.reshape(-1), sampler).reshape(point.shape)
        self._opening.released()
        return found

    # ---------------------------------------------------------------- inside

    @property
    def _rows_at_once(self) -> int:
        """Long blocks where they are views, short ones where they are copies."""
        records, d = self._curator._records, self.problem.d
        if records.viewed:
            return max(BLOCK_ROWS, VIEWED * BLOCK_ROWS // self.problem.outputs)
        if records.sparse:
            return BLOCK_ROWS
        return max(1, BLOCK_ROWS * COPIED // max(COPIED // VIEWED, d))

    @property
    def _bits(self) -> int:
        return self.problem.bits

    def _asked(self, loss: AnyLoss) -> AskedLoss:
        called = callbacks.asked(loss)
        self._curator.assume(called.assumptions)
        return called

    def _parameters(self, w: ArrayLike) -> Doubles:
        array = np.array(w, dtype=np.float64, order="C")  # no callback holds what is multiplied
        shape = (self.problem.rows, self.problem.outputs)
        if array.shape != shape:
            raise InvalidInput(f"w needs shape {shape}, got {array.shape}.")
        return array

    def _margins(self, rows: MappedRows, w: Doubles) -> tuple[Doubles, Doubles, NDArray[np.bool_]]:
        d = self.problem.d
        b = w[d] if self.problem.intercept else np.zeros(w.shape[1])
        return rows.margins(w[:d], b)

    def _norms(
        self, rows: MappedRows, y: Doubles, called: AskedLoss, w: Doubles
    ) -> tuple[Doubles, NDArray[np.bool_]]:
        """L2 norms of the records' gradients, and whether the features are finite, (rows,) each."""
        margins, squares, valid = self._margins(rows, w)
        residuals = called.derivatives(margins, y)
        with np.errstate(all="ignore"):
            return np.sqrt(squares + self.problem.intercept) * _lengths(residuals), valid

    def _gradient_block(
        self, called: AskedLoss, w: Doubles, mean: RobustMean
    ) -> Callable[[MappedRows, Doubles, Integers, Doubles], None]:
        intercept, range_ = self.problem.intercept, mean.range
        if called.gradients:
            return self._general_block(called.gradients, w, range_)

        def block(rows: MappedRows, y: Doubles, labels: Integers, sums: Doubles) -> None:
            margins, squares, valid = self._margins(rows, w)
            valid &= np.isfinite(y)
            residuals = called.derivatives(margins, y)
            _contribute(
                rows, squares, valid, residuals, labels, intercept, range_, self._bits, sums
            )

        return block

    def _general_block(
        self, gradients: callbacks.Gradients, w: Doubles, range_: Ball | Interval
    ) -> Callable[[MappedRows, Doubles, Integers, Doubles], None]:
        flat_w = np.zeros((w.size, 1))

        def block(rows: MappedRows, y: Doubles, labels: Integers, sums: Doubles) -> None:
            x = rows.transformed()
            flat = MappedRows.as_they_are(gradients(w, x, y))
            _, squares, valid = flat.margins(flat_w, np.zeros(1))
            valid &= np.isfinite(x).all(axis=1) & np.isfinite(y)
            ones, view = np.ones((len(rows), 1)), sums.reshape(sums.shape[0], w.size, 1)
            _contribute(flat, squares, valid, ones, labels, False, range_, self._bits, view)

        return block

    def _trimmed(
        self,
        mechanism: TrimmedMean,
        size: int,
        values: Callable[[MappedRows, Doubles], Doubles],
        targets: bool,
    ) -> Doubles:
        if type(mechanism) is not TrimmedMean:
            raise IncompatibleParts("A trimmed mean is released by TrimmedMean only.")
        self._require_everyone("trimmed means")
        sampler = self._opening.charge(mechanism.event(self.problem, size))
        n = self.problem.n
        ids = np.arange(n)
        nothing = mechanism.on_grid(np.zeros((1, 1)), self._bits)[0, 0]
        released = []
        for part in _split(size, formats.sweeps(n, size)):
            columns = np.full((part.stop - part.start, n), nothing)

            def block(
                rows: MappedRows, y: Doubles, places: Integers, sums: Doubles,
                columns: Integers = columns, part: slice = part,
            ) -> None:  # fmt: skip
                run = len(places) == places[-1] + 1 - places[0]
                there = slice(places[0], places[-1] + 1) if run else places
                columns[:, there] = mechanism.on_grid(values(rows, y)[:, part], self._bits)

            self._sweep(block, 1, (1,), targets, ids, max(BLOCK_ROWS, NARROW // self.problem.d))
            released.append(mechanism.release(columns, self.problem, sampler))
        self._opening.released()
        return np.concatenate(released)

    def _parts(self, blocks: int) -> Iterator[tuple[Doubles, Doubles | None]]:
        """Valid rows and targets of one block after the other; a sweep for every `KEPT_BYTES`."""
        curator, n, d = self._curator, self.problem.n, self.problem.d
        deal, target = curator.blocks(blocks), curator._targets is not None
        places = np.empty(n, np.int64)
        places[np.argsort(deal, kind="stable")] = np.arange(n)
        ends = np.concatenate([[0], np.cumsum(np.bincount(deal, minlength=blocks))])
        ids = np.arange(n)
        for group in _split(blocks, formats.sweeps(n, d + 1)):
            begin, end = int(ends[group.start]), int(ends[group.stop])
            kept = np.full((end - begin, d + 1), np.nan)

            def block(
                rows: MappedRows, y: Doubles, seen: Integers, sums: Doubles,
                kept: Doubles = kept, begin: int = begin, end: int = end,
            ) -> None:  # fmt: skip
                z = rows.transformed()
                at = places[seen]
                wanted = (at >= begin) & (at < end)
                kept[at[wanted] - begin] = np.column_stack([z, y])[wanted]

            self._sweep(block, 1, (1,), target, ids)
            for b in range(group.start, group.stop):
                part = kept[ends[b] - begin : ends[b + 1] - begin]
                part = part[np.isfinite(part).all(axis=1)]
                yield part[:, :d], part[:, d] if target else None

    def _require_everyone(self, what: str) -> None:
        whole = self.problem.most == self.problem.n
        if self._ids is not self._curator._kept or not whole:
            raise InvalidInput(f"Ask for {what} in a round of Everyone: no theorem covers others.")

    def _finite(self, called: AskedLoss, w: Doubles, mean: RobustMean) -> RobustMean:
        """Without privacy an infinite clipping threshold becomes the largest gradient norm.

        Without privacy is a plan of infinite cost; a generous budget is not enough, since a ledger
        adds what the plan costs.
        """
        if not (isinstance(mean, ClippedMean) and mean.threshold == float("inf")):
            return mean
        if math.isfinite(self._curator._epsilon):
            raise InvalidInput(
                "An infinite threshold gives no privacy. Choose a finite one, or epsilon=inf."
            )
        largest = [0.0]

        def block(rows: MappedRows, y: Doubles, labels: Integers, sums: Doubles) -> None:
            if called.gradients:
                norms = np.linalg.norm(called.gradients(w, rows.transformed(), y), axis=1)
            else:
                norms, _ = self._norms(rows, y, called, w)
            largest.append(float(np.max(norms[np.isfinite(norms)], initial=0.0)))

        self._sweep(block, 1, (1, 1))
        return replace(mean, threshold=max(2 * max(largest), 1e-60))

    def _answer(self, value: Integers, sensitivity: Sensitivity) -> Sensitive:
        return Sensitive(value, sensitivity, self._opening)

    def _sweep(
        self,
        block: Callable[[MappedRows, Doubles, Integers, Doubles], None],
        blocks: int,
        shape: tuple[int, ...],
        targets: bool = True,
        labels: Integers | None = None,
        rows_at_once: int | None = None,
    ) -> Integers:
        """Exact int64 sums (blocks, *shape): blocks of rows on threads, then added."""
        at_once = rows_at_once or BLOCK_ROWS
        curator = self._curator
        if targets and curator._targets is None:
            raise InvalidInput("This question needs a target y.")
        deal = curator.blocks(blocks) if labels is None else labels

        rooms, map_ = threading.local(), curator.map

        @steady
        def one(share: _Share) -> Integers:
            window, ids = share
            copied = rooms.__dict__.setdefault("room", Room())
            records, source = window.open()
            total = np.zeros((blocks, *shape), dtype=np.int64)
            for part in _pieces(ids, at_once):
                here = _moved(part, window.start)
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

        spare = 1 if isinstance(curator._records, Stream) or threads() == 1 else SPARE
        return _added(one, self._shares(targets, at_once), (blocks, *shape), threads() * spare)

    def _shares(self, targets: bool, rows: int) -> Generator[_Share]:
        """What one thread sweeps at a time: a window of a file, or a block of what is in memory."""
        curator = self._curator
        for window in curator._windows(curator._targets if targets else None):
            ids = _within(self._ids, window)
            if isinstance(curator._records, Stream):
                yield window, ids
            else:
                yield from ((window, part) for part in _pieces(ids, rows))

    def __repr__(self) -> str:
        return f"Batch({self.problem})"

    def __reduce__(self) -> NoReturn:
        raise NotReleased("A batch holds private records and cannot be pickled or copied.")


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


def _split(size: int, parts: int) -> Iterator[slice]:
    """0 .. size - 1 in at most ``parts`` runs of about one length."""
    ends = [size * k // min(size, parts) for k in range(min(size, parts) + 1)]
    return (slice(*pair) for pair in itertools.pairwise(ends))


def _within(ids: Ids, window: Window) -> Ids:
    """Those of the (ascending) ids that a window holds."""
    if isinstance(ids, slice):
        return slice(max(ids.start, window.start), min(ids.stop, window.stop))
    first, stop = np.searchsorted(ids, [window.start, window.stop])
    return ids[first:stop]


def _moved(ids: Ids, start: int) -> Ids:
    """Positions in a window of ids that are positions among all records."""
    return slice(ids.start - start, ids.stop - start) if isinstance(ids, slice) else ids - start


def _contribute(
    rows: MappedRows, squares: Doubles, valid: NDArray[np.bool_], residuals: Doubles,
    labels: Integers, intercept: bool, range_: Ball | Interval, bits: int, sums: Doubles,
) -> None:  # fmt: skip
    if isinstance(range_, Ball):
        residuals = _shrunk(squares, residuals, intercept, range_)
        rows.ball_sum(squares, valid, residuals, labels, intercept, range_.radius, bits, sums)
    else:
        rows.box_sum(valid, residuals, labels, intercept, range_, bits, sums)


def _clamp(entries: Doubles, limit: int, bits: int) -> None:
    """Bring a flat array onto the grid in [-limit, limit], in place."""
    unused = np.zeros(2 * kernels.FRACTION_DEGREE)
    kernels.influence(entries, kernels.CLAMP, unused, limit, bits)


def _shrunk(squares: Doubles, residuals: Doubles, intercept: bool, ball: Ball) -> Doubles:
    """Residuals as the ball's reach has them: no larger than its threshold, less for long rows."""
    if ball.reach == math.inf:
        return residuals
    with np.errstate(all="ignore"):
        rows = np.minimum(1.0, ball.reach / np.sqrt(squares + intercept))
        factors: Doubles = rows * np.minimum(1.0, ball.radius / ball.reach / _lengths(residuals))
        return residuals * factors[:, None]


def _lengths(residuals: Doubles) -> Doubles:
    """L2 norm of every row, added in one order whatever the rows beside it."""
    squares = np.zeros(len(residuals))
    with np.errstate(all="ignore"):
        for column in residuals.T:
            squares += column * column
        lengths: Doubles = np.sqrt(squares)
        return lengths


def _median(sums: Integers) -> Integers:
    """Middle block sum of every coordinate; for an even count the two middle ones, added."""
    flat: Integers = np.sort(sums.reshape(sums.shape[0], -1), axis=0)
    k = len(flat)
    middle: Integers = flat[k // 2] if k % 2 else flat[k // 2 - 1] + flat[k // 2]
    return middle


def _add(sums: Doubles, labels: Integers, entries: Doubles) -> None:
    """Add every row of ``entries`` to the row of ``sums`` (blocks, columns) of its label."""
    if len(sums) == 1:
        sums[0] += entries.sum(axis=0)
    else:
        np.add.at(sums, labels, entries)


def _ascending(edges: ArrayLike, columns: int) -> Doubles:
    """A copy of the edges of every column, (columns, edges): the common ones, or its own row."""
    cuts = np.array(edges, dtype=np.float64)
    if cuts.ndim != 1 and cuts.shape[:-1] != (columns,):
        raise InvalidInput(f"edges need one row, or one for each of the {columns} columns.")
    if cuts.size == 0 or not (np.diff(cuts) > 0).all():
        raise InvalidInput("edges must be strictly ascending lists of numbers.")
    return np.broadcast_to(cuts, (columns, cuts.shape[-1]))


def _counts(values: Doubles, cuts: Doubles) -> Integers:
    """How many values lie in each of the len(cuts) + 1 cells."""
    cells = np.searchsorted(cuts, values, side="right")
    return np.bincount(cells, minlength=len(cuts) + 1)


@dataclass(frozen=True)
class _Asked:
    range: Ball | Interval
    blocks: int


def _as_asked(mean: RobustMean) -> _Asked:
    """The mean as it is now: its sum and its sensitivity come from one and the same reading.

    In plain numbers: an object that is divided by could look at all that it divides.
    """
    box = mean.range
    if type(box) is Ball:
        return _Asked(Ball(float(box.radius), float(box.reach)), mean.blocks)
    if type(box) is not Interval:
        raise IncompatibleParts(
            "The range of a mean must be a Ball or an Interval: their sensitivities are proved."
        )
    coefficients = tuple(float(c) for c in box.coefficients)
    plain = Interval(
        float(box.radius), int(box.kind), coefficients, float(box.limit), bool(box.one_signed)
    )
    return _Asked(plain, mean.blocks)
