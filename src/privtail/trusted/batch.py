"""Questions about the records of one round."""

from __future__ import annotations

import math
import operator
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, NoReturn, cast

import numpy as np
from numpy.typing import ArrayLike, NDArray

from privtail.errors import IncompatibleParts, InvalidInput, NotReleased
from privtail.losses import AnyLoss, Loss
from privtail.trusted import callbacks, kernels
from privtail.trusted.callbacks import AskedLoss
from privtail.trusted.cells import ascending, tally
from privtail.trusted.contributions import add, clamp, contribute, lengths, median
from privtail.trusted.dataset import Block, Dataset, Ids, moved, within
from privtail.trusted.maps import FeatureMap, MappedRows, PredictionRanges
from privtail.trusted.means import (
    AskedMean,
    Ball,
    ClippedMean,
    Interval,
    RobustMean,
    as_asked,
)
from privtail.trusted.mechanisms.labels import StabilityHistogram
from privtail.trusted.opening import Opening
from privtail.trusted.problem import Problem
from privtail.trusted.records.targets import Labels
from privtail.trusted.sensitive import Sensitive
from privtail.trusted.sensitivity import Sensitivity

Doubles = NDArray[np.float64]
Integers = NDArray[np.int64]
CACHED = 2**17
"""Numbers of a block whose gradients are written out record by record: a cache holds them."""
TILE = 32
"""Candidates that are scored in one go."""


class Batch:
    """Answers questions about the records of one round. The only door to the records.

    Parameters
    ----------
    data : all records; ``ids`` are those of this round.
    problem : the public sizes, as this round sees them.
    opening : the right to make the round's planned releases.
    map_ : the public feature map of all its questions; nobody else holds it.
    everyone : whether the round has all records that count.
    private : whether the plan promises anything.
    assume : is told what a promise rests on.
    """

    def __init__(
        self,
        data: Dataset,
        problem: Problem,
        ids: Ids,
        opening: Opening,
        *,
        map_: FeatureMap,
        everyone: bool,
        private: bool,
        assume: Callable[[Sequence[str]], None],
    ) -> None:
        self._data, self._ids, self._opening = data, ids, opening
        self._problem, self._everyone, self._private = problem, everyone, private
        self._assume, self._map = assume, map_

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
        mean = as_asked(self._finite(called, w, mean))
        rows = max(1, CACHED // w.size) if called.gradients else self._rows_at_once
        block = self._gradient_block(called, w, mean)
        sums = self._sweep(block, mean.blocks, w.shape, rows_at_once=rows)
        return self._answer(median(sums), self.problem.gradient(mean))

    def derivatives(self, loss: Loss, w: ArrayLike, mean: RobustMean) -> Sensitive:
        """Robust mean of the derivatives of the records' losses in their margins at w, (K,).

        It is the gradient in the intercepts alone: a row counts as one constant feature 1, so how
        long it is does not matter. A row with a number that is not finite, or with an undeclared
        label, adds 0. Sensitivity: `Problem.derivatives` (the lemma of `means`).
        """
        mean = _bounded(mean, "derivatives")
        w, called, range_ = self._parameters(w), self._asked(loss), mean.range

        def block(rows: MappedRows, y: Doubles, labels: Integers, sums: Doubles) -> None:
            margins, _, valid = self._margins(rows, w)
            valid &= np.isfinite(y)
            residuals, ones = called.derivatives(margins, y), np.ones(len(rows))
            constant = MappedRows.as_they_are(ones[:, None])
            contribute(constant, ones, valid, residuals, labels, False, range_, self._bits, sums)

        shape = 1, self.problem.outputs
        sums = self._sweep(block, mean.blocks, shape, rows_at_once=self._rows_at_once)
        return self._answer(median(sums), self.problem.derivatives(mean))

    def means(self, mean: RobustMean) -> Sensitive:
        """Robust mean of the mapped columns, (d,). Sensitivity: `Problem.means` (the lemma)."""
        mean = _bounded(mean, "columns")
        d, range_ = self.problem.d, mean.range
        zero = np.zeros((d, 1))

        def block(rows: MappedRows, y: Doubles, labels: Integers, sums: Doubles) -> None:
            _, squares, valid = rows.margins(zero, np.zeros(1))
            ones = np.ones((len(rows), 1))
            contribute(rows, squares, valid, ones, labels, False, range_, self._bits, sums)

        sums = self._sweep(block, mean.blocks, (d, 1), targets=False)
        return self._answer(median(sums), self.problem.means(mean))

    def scores(
        self, loss: Loss, candidates: Sequence[ArrayLike], mean: RobustMean,
        ranges: PredictionRanges | None = None,
    ) -> Sensitive:  # fmt: skip
        """Robust mean of the losses at each candidate w, forced onto the range of ``mean``.

        With ``ranges``, of features and margins that are clipped, row by row. Sensitivity:
        `Problem.scores`; one-signed, so a record's absence lowers all scores.
        """
        mean = as_asked(mean)
        answer = self.problem.scores(len(candidates), mean)
        called = self._asked(loss)
        points, outputs = [self._parameters(w) for w in candidates], self.problem.outputs
        box = cast(Interval, mean.range)
        limit = box.steps(self._bits)

        def block(rows: MappedRows, y: Doubles, labels: Integers, sums: Doubles) -> None:
            for first in range(0, len(points), TILE):
                tile = points[first : first + TILE]
                margins, _, valid = self._margins(rows, np.hstack(tile), ranges)
                margins, targets = margins.reshape(-1, outputs), np.repeat(y, len(tile))
                with np.errstate(all="ignore"):
                    values = called.values(margins, targets) / box.radius
                clamp(values, limit, self._bits)
                scores = np.maximum(values, 0.0).reshape(len(y), len(tile))
                scores[~(valid & np.isfinite(y))] = 0.0
                add(sums[:, first : first + TILE, 0], labels, scores)

        sums = self._sweep(block, mean.blocks, (len(points), 1))
        return self._answer(median(sums), answer)

    def improvement(
        self, loss: Loss, w: ArrayLike, base: ArrayLike, mean: RobustMean,
        ranges: PredictionRanges | None = None,
    ) -> Sensitive:  # fmt: skip
        """Robust mean of how much smaller the losses are at ``w`` than at ``base``.

        At ``w``, with ``ranges``, of features and margins that are clipped, row by row. A record
        whose loss is not a number at either adds 0. Sensitivity: `Problem.improvement`.
        """
        mean = as_asked(mean)
        answer = self.problem.improvement(mean)
        called = self._asked(loss)
        w, base = self._parameters(w), self._parameters(base)
        box = cast(Interval, mean.range)

        def block(rows: MappedRows, y: Doubles, labels: Integers, sums: Doubles) -> None:
            found = self._margins(rows, w, ranges), self._margins(rows, base)
            with np.errstate(all="ignore"):
                here, there = (called.values(margins, y) for margins, _, _ in found)
                gains = (there - here) / box.radius
            gains[~(found[0][2] & np.isfinite(y))] = 0.0
            limit = box.steps(self._bits)
            clamp(gains, limit, self._bits)
            np.add.at(sums[:, 0, 0], labels, gains)

        return self._answer(median(self._sweep(block, mean.blocks, (1, 1))), answer)

    def separations(self, loss: Loss, w: ArrayLike, mean: RobustMean) -> Sensitive:
        """How far the sign of each column parts the records' derivatives at w, (d K,) row-major.

        |mean of c sign(z)| of a mapped column z; c is the record's derivative in a margin, forced
        onto the range of ``mean``. Sensitivity: `Problem.separations`.
        """
        mean = as_asked(mean)
        answer = self.problem.separations(mean)
        w = self._parameters(w)
        called = self._asked(loss)
        box = cast(Interval, mean.range)
        limit = box.steps(self._bits)

        def block(rows: MappedRows, y: Doubles, labels: Integers, sums: Doubles) -> None:
            z = rows.transformed()
            margins, _, _ = self._margins(rows, w)
            counted = np.isfinite(z).all(axis=1) & np.isfinite(y)
            with np.errstate(all="ignore"):
                entries = called.derivatives(margins, y) / box.radius
            clamp(entries.reshape(-1), limit, self._bits)
            entries[~counted] = 0.0
            sums[0] += np.sign(np.where(counted[:, None], z, 0.0)).T @ entries

        shape = self.problem.d, self.problem.outputs
        sums = self._sweep(block, 1, shape, rows_at_once=self._rows_at_once)
        return self._answer(np.abs(sums[0]).reshape(-1), answer)

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

        return self._answer(median(self._sweep(block, 1, (answer.size, 1), target)), answer)

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
        cuts = ascending(edges, len(columns))
        cells = len(columns), cuts.shape[1] + 1
        answer = self.problem.histogram(len(columns), cells[1] - 1, pooled)
        voters = self._data.blocks(len(columns)) if pooled else None

        def block(rows: MappedRows, y: Doubles, labels: Integers, sums: Doubles) -> None:
            z = rows.transformed()
            valid = np.isfinite(z).all(axis=1)
            if -1 in columns:
                valid &= np.isfinite(y)
            asked = [y if column == -1 else z[:, column] for column in columns]
            for c, values in enumerate(asked):
                counted = valid if voters is None else valid & (labels == c)
                sums[0, c, :] += tally(values[counted], cuts[c])

        counts = self._sweep(block, 1, cells, -1 in columns, voters)
        counts = counts.sum(axis=1) if pooled else counts.reshape(1, -1)
        return self._answer(counts[0] << self._bits, answer)

    def derivative_norms(self, loss: Loss, w: ArrayLike, edges: ArrayLike) -> Sensitive:
        """Counts of the l2 norms of the records' gradients in their margins at w.

        Each record fills one cell between public edges. Sensitivity: `Problem.derivative_norms`.
        """
        w, cuts = self._parameters(w), ascending(edges, 1)[0]
        called = self._asked(loss)

        def block(rows: MappedRows, y: Doubles, labels: Integers, sums: Doubles) -> None:
            margins, _, valid = self._margins(rows, w)
            norms = lengths(called.derivatives(margins, y))
            sums[0, 0, :] += tally(norms[valid & np.isfinite(y)], cuts)

        counts = self._sweep(block, 1, (1, len(cuts) + 1))
        answer = self.problem.derivative_norms(len(cuts))
        return self._answer(counts.reshape(-1) << self._bits, answer)

    def invalid_rows(self) -> Sensitive:
        """How many rows count as zero: a number that is not finite, or an undeclared label.

        One number; the target counts if there is one. Rows that do not count anyway (beyond
        ``max_rows``, or without an id) are left out. Sensitivity: `Problem.invalid_rows`.
        """
        zero = np.zeros((self.problem.d, 1))
        target = self._data.targets is not None

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
        targets = self._data.targets
        if not isinstance(targets, Labels):
            raise InvalidInput("labels() needs a target of labels.")
        self._require_everyone("labels")
        counted = self.problem.labels()
        sampler = self._opening.charge(mechanism.event(counted))
        counts: Counter[Any] = Counter()
        for window in self._data.windows(targets):
            part = window.open()[1]
            if isinstance(part, Labels):
                counts.update(part.counts(moved(within(self._ids, window), window.start)))
        found = targets.restored(mechanism.release(counts, counted, sampler))
        self._opening.released()
        return found

    # ---------------------------------------------------------------- inside

    @property
    def _rows_at_once(self) -> int:
        return self._data.rows_at_once(self.problem.outputs)

    @property
    def _bits(self) -> int:
        return self.problem.bits

    def _asked(self, loss: AnyLoss) -> AskedLoss:
        called = callbacks.asked(loss)
        self._assume(called.assumptions)
        return called

    def _parameters(self, w: ArrayLike) -> Doubles:
        array = np.array(w, dtype=np.float64, order="C")  # no callback holds what is multiplied
        shape = (self.problem.rows, self.problem.outputs)
        if array.shape != shape:
            raise InvalidInput(f"w needs shape {shape}, got {array.shape}.")
        return array

    def _margins(
        self, rows: MappedRows, w: Doubles, ranges: PredictionRanges | None = None
    ) -> tuple[Doubles, Doubles, NDArray[np.bool_]]:
        d = self.problem.d
        b = w[d] if self.problem.intercept else np.zeros(w.shape[1])
        if ranges is None:
            return rows.margins(w[:d], b)
        if np.isfinite(ranges.features).any():
            rows = rows.clipped(ranges.features)
        margins, squares, valid = rows.margins(w[:d], b)
        return np.clip(margins, *ranges.margins), squares, valid

    def _norms(
        self, rows: MappedRows, y: Doubles, called: AskedLoss, w: Doubles
    ) -> tuple[Doubles, NDArray[np.bool_]]:
        """L2 norms of the records' gradients, and whether the features are finite, (rows,) each."""
        margins, squares, valid = self._margins(rows, w)
        residuals = called.derivatives(margins, y)
        with np.errstate(all="ignore"):
            return np.sqrt(squares + self.problem.intercept) * lengths(residuals), valid

    def _gradient_block(self, called: AskedLoss, w: Doubles, mean: RobustMean) -> Block:
        intercept, range_ = self.problem.intercept, mean.range
        if called.gradients:
            return self._general_block(called.gradients, w, range_)

        def block(rows: MappedRows, y: Doubles, labels: Integers, sums: Doubles) -> None:
            margins, squares, valid = self._margins(rows, w)
            valid &= np.isfinite(y)
            residuals = called.derivatives(margins, y)
            contribute(rows, squares, valid, residuals, labels, intercept, range_, self._bits, sums)

        return block

    def _general_block(
        self, gradients: callbacks.Gradients, w: Doubles, range_: Ball | Interval
    ) -> Block:
        flat_w = np.zeros((w.size, 1))

        def block(rows: MappedRows, y: Doubles, labels: Integers, sums: Doubles) -> None:
            x = rows.transformed()
            flat = MappedRows.as_they_are(gradients(w, x, y))
            _, squares, valid = flat.margins(flat_w, np.zeros(1))
            valid &= np.isfinite(x).all(axis=1) & np.isfinite(y)
            ones, view = np.ones((len(rows), 1)), sums.reshape(sums.shape[0], w.size, 1)
            contribute(flat, squares, valid, ones, labels, False, range_, self._bits, view)

        return block

    def _require_everyone(self, what: str) -> None:
        if not self._everyone or self.problem.most != self.problem.n:
            raise InvalidInput(f"Ask for {what} in a round of Everyone: no theorem covers others.")

    def _finite(self, called: AskedLoss, w: Doubles, mean: RobustMean) -> RobustMean:
        """Without privacy an infinite clipping threshold becomes the largest gradient norm.

        Without privacy is a plan of infinite cost; a generous budget is not enough, since a ledger
        adds what the plan costs.
        """
        if not (isinstance(mean, ClippedMean) and mean.threshold == float("inf")):
            return mean
        if self._private:
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
        block: Block,
        blocks: int,
        shape: tuple[int, ...],
        targets: bool = True,
        labels: Integers | None = None,
        rows_at_once: int | None = None,
    ) -> Integers:
        return self._data.sums(
            block, self._map, self._ids, blocks, shape, targets, labels, rows_at_once
        )

    def __repr__(self) -> str:
        return f"Batch({self.problem})"

    def __reduce__(self) -> NoReturn:
        raise NotReleased("A batch holds private records and cannot be pickled or copied.")


def _bounded(mean: RobustMean, of: str) -> AskedMean:
    """The mean as it is now, of a finite range."""
    now = as_asked(mean)
    if not math.isfinite(now.range.radius):
        raise InvalidInput(f"A mean of {of} needs a finite threshold.")
    return now
