"""Questions about the records of one round."""

from __future__ import annotations

import itertools
import math
import operator
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, NoReturn, cast

import numpy as np
from numpy.typing import ArrayLike, NDArray

from privtail.errors import IncompatibleParts, InvalidInput, NotReleased
from privtail.losses import AnyLoss, Loss
from privtail.trusted import callbacks, partitions, questions
from privtail.trusted.callbacks import AskedLoss
from privtail.trusted.contributions import median
from privtail.trusted.dataset import Dataset
from privtail.trusted.deals import Seen
from privtail.trusted.maps import FeatureMap, PredictionRanges
from privtail.trusted.means import AskedMean, Ball, Interval, RobustMean, as_asked
from privtail.trusted.mechanisms.labels import StabilityHistogram
from privtail.trusted.opening import Opening
from privtail.trusted.problem import Problem
from privtail.trusted.questions import Question
from privtail.trusted.records.targets import Labels
from privtail.trusted.sensitive import Sensitive
from privtail.trusted.sensitivity import Sensitivity

Doubles = NDArray[np.float64]
Integers = NDArray[np.int64]
CACHED = 2**17
"""Numbers of a block whose gradients are written out record by record: a cache holds them."""
POWERS = 2.0 ** np.arange(-200.0, 1024.0)
"""Cells of norms of gradients, where nothing is promised."""


class Batch:
    """Answers questions about the records of one round. The only door to the records.

    Every method checks what it is asked, makes a `Question` of it, and puts the answer behind the
    door that `Problem` has the bounds for.

    Parameters
    ----------
    data : all records.
    problem : the public sizes, as this round sees them.
    seen : which ids are those of this round.
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
        seen: Seen,
        opening: Opening,
        *,
        map_: FeatureMap,
        everyone: bool,
        private: bool,
        assume: Callable[[Sequence[str]], None],
    ) -> None:
        self._data, self._seen, self._opening = data, seen, opening
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
        mean = self._finite(called, w, as_asked(mean))
        rows = max(1, CACHED // w.size) if called.gradients else 0
        term = questions.Gradient(called, w, mean.range)
        sums = self._sums(term, (mean.blocks, *w.shape), rows=rows)
        return self._answer(median(sums), self.problem.gradient(mean))

    def derivatives(
        self, loss: Loss, w: ArrayLike, mean: RobustMean, ranges: PredictionRanges | None = None
    ) -> Sensitive:
        """Robust mean of the derivatives of the records' losses in their margins at w, (K,).

        It is the gradient in the intercepts alone: a row counts as one constant feature 1, so how
        long it is does not matter. A row with a number that is not finite, or with an undeclared
        label, adds 0. With ``ranges``, of features and margins that are clipped, row by row.
        Sensitivity: `Problem.derivatives` (the lemma of `means`).
        """
        mean = _bounded(mean, "derivatives")
        term = questions.Derivatives(
            self._asked(loss), self._parameters(w), mean.range, _copied(ranges)
        )
        sums = self._sums(term, (mean.blocks, 1, self.problem.outputs), rows=0)
        return self._answer(median(sums), self.problem.derivatives(mean))

    def means(self, mean: RobustMean) -> Sensitive:
        """Robust mean of the mapped columns, (d,). Sensitivity: `Problem.means` (the lemma)."""
        mean = _bounded(mean, "columns")
        shape = mean.blocks, self.problem.d, 1
        sums = self._sums(questions.Means(mean.range), shape, targets=False)
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
        called, points = self._asked(loss), tuple(self._parameters(w) for w in candidates)
        term = questions.Scores(called, points, cast(Interval, mean.range), _copied(ranges))
        return self._answer(median(self._sums(term, (mean.blocks, len(points), 1))), answer)

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
        points = self._parameters(w), self._parameters(base)
        box = cast(Interval, mean.range)
        term = questions.Improvement(self._asked(loss), *points, box, _copied(ranges))
        return self._answer(median(self._sums(term, (mean.blocks, 1, 1))), answer)

    def separations(self, loss: Loss, w: ArrayLike, mean: RobustMean) -> Sensitive:
        """How far the sign of each column parts the records' derivatives at w, (d K,) row-major.

        |mean of c sign(z)| of a mapped column z; c is the record's derivative in a margin, forced
        onto the range of ``mean``. Sensitivity: `Problem.separations`.
        """
        mean = as_asked(mean)
        answer = self.problem.separations(mean)
        term = questions.Separations(
            self._asked(loss), self._parameters(w), cast(Interval, mean.range)
        )
        sums = self._sums(term, (1, self.problem.d, self.problem.outputs), rows=0)
        return self._answer(np.abs(sums).reshape(-1), answer)

    def moments(self, radius: float, target: bool = False) -> Sensitive:
        """Second moments of the rows (z, 1, y) clipped to l2 norm ``radius``.

        Upper triangle row by row, off-diagonals times sqrt 2. Sensitivity: `Problem.moments`.
        """
        radius, target = float(radius), bool(target)  # read once
        answer = self.problem.moments(radius, target)
        sums = self._sums(questions.Moments(radius, target), (1, answer.size, 1), targets=target)
        return self._answer(median(sums), answer)

    def histogram(
        self, columns: Sequence[int], edges: ArrayLike, pooled: bool = False
    ) -> Sensitive:
        """Counts of mapped column values between public edges.

        Column -1 is the (raw) target, and -2 its exposure.

        Cell 0 lies below the first edge, cell e at or above edge e - 1. Flattened (columns,
        edges + 1). ``edges`` (edges,) are those of all columns, (columns, edges) one row for each.
        With ``pooled`` each record votes for one column, chosen by its id, and the columns are
        added, (edges + 1,). Rows with a non-finite number count nowhere, and
        a missing number that is filled in counts nowhere in its column. Sensitivity:
        `Problem.histogram`, whatever the edges: a record fills one cell per column.
        """
        columns, pooled = tuple(map(operator.index, columns)), bool(pooled)  # read once
        cuts = ascending(edges, len(columns))
        if -2 in columns and not self.problem.exposure:
            raise InvalidInput("This table has no exposure. Pass one: exposure=.")
        cells = len(columns), cuts.shape[1] + 1
        answer = self.problem.histogram(len(columns), cells[1] - 1, pooled)
        term, dealt = questions.Histogram(columns, cuts, pooled), len(columns) if pooled else 1
        counts = self._sums(term, (1, *cells), targets=any(c < 0 for c in columns), dealt=dealt)
        counts = counts.sum(axis=1) if pooled else counts
        return self._answer(counts.reshape(-1) << self.problem.bits, answer)

    def cell_counts(
        self, columns: Sequence[int], edges: ArrayLike, by: Sequence[Sequence[int]] = ()
    ) -> Sensitive:
        """Counts of mapped column values between public edges, group by group.

        As `histogram`, but a cell that is not finite counts nowhere in its own column alone.
        ``by`` are the columns that indicate the values of each category; a row counts in the group
        of its categories, and nowhere if it has none. Flattened (groups, columns, edges + 1).
        Sensitivity: `Problem.cell_counts`.
        """
        columns, by = _columns(columns, by, self.problem.d)
        cuts, groups = ascending(edges, len(columns)), math.prod(map(len, by))
        answer = self.problem.cell_counts(len(columns), cuts.shape[1], groups)
        shape = 1, groups, len(columns), cuts.shape[1] + 1
        counts = self._sums(questions.CellCounts(columns, cuts, by), shape, targets=False)
        return self._answer(counts.reshape(-1) << self.problem.bits, answer)

    def column_moments(self, columns: Sequence[int], by: Sequence[Sequence[int]] = ()) -> Sensitive:
        """Sums of mapped columns clamped to [-1, 1], and of their squares, group by group.

        Cells that are not finite add nothing; groups are those of `cell_counts`. Flattened
        (groups, columns, 2). Sensitivity: `Problem.column_moments`.
        """
        columns, by = _columns(columns, by, self.problem.d)
        groups = math.prod(map(len, by))
        answer = self.problem.column_moments(len(columns), groups)
        shape = 1, groups, len(columns), 2
        sums = self._sums(questions.ColumnMoments(columns, by), shape, targets=False)
        return self._answer(sums.reshape(-1), answer)

    def derivative_norms(self, loss: Loss, w: ArrayLike, edges: ArrayLike) -> Sensitive:
        """Counts of the l2 norms of the records' gradients in their margins at w.

        Each record fills one cell between public edges. Sensitivity: `Problem.derivative_norms`.
        """
        w, cuts = self._parameters(w), ascending(edges, 1)[0]
        term = questions.DerivativeNorms(self._asked(loss), w, cuts)
        counts = self._sums(term, (1, 1, len(cuts) + 1))
        answer = self.problem.derivative_norms(len(cuts))
        return self._answer(counts.reshape(-1) << self.problem.bits, answer)

    def invalid_rows(self) -> Sensitive:
        """How many rows count as zero: a number that is not finite, or an undeclared label.

        One number; the target counts if there is one. Rows that do not count anyway (beyond
        ``max_rows``, or without an id) are left out. Sensitivity: `Problem.invalid_rows`.
        """
        target = self._data.targets is not None
        count = self._sums(questions.InvalidRows(), (1, 1, 1), targets=target)
        return self._answer(count.reshape(-1) << self.problem.bits, self.problem.invalid_rows())

    def labels(self, mechanism: StabilityHistogram) -> list[Any]:
        """The labels that occur often enough, sorted; charged even when there is none.

        `StabilityHistogram` has the proof, for one row and for a person with several. Sensitivity:
        `Problem.labels`.
        """
        if type(mechanism) is not StabilityHistogram:
            raise IncompatibleParts("Labels are released by StabilityHistogram only.")
        mechanism, targets = replace(mechanism), self._data.targets
        if not isinstance(targets, Labels):
            raise InvalidInput("labels() needs a target of labels.")
        self._require_everyone("labels")
        counted = self.problem.labels()
        sampler = self._opening.charge(mechanism.event(counted))
        counts = self._data.counts(self._seen)
        found = targets.restored(mechanism.release(counts, counted, sampler))
        self._opening.released()
        return found

    # ---------------------------------------------------------------- inside

    def _asked(self, loss: AnyLoss) -> AskedLoss:
        called = callbacks.asked(loss)
        if called.gradients and self._problem.exposure:
            raise IncompatibleParts(
                "A loss of all numbers of a row has no margin to add an exposure to. Leave it out."
            )
        self._assume(called.assumptions)
        return called

    def _parameters(self, w: ArrayLike) -> Doubles:
        array = np.array(w, dtype=np.float64).copy()  # no callback holds what is multiplied
        shape = (self.problem.rows, self.problem.outputs)
        if array.shape != shape:
            raise InvalidInput(f"w needs shape {shape}, got {array.shape}.")
        return array

    def _require_everyone(self, what: str) -> None:
        if not self._everyone or self.problem.most != self.problem.n:
            raise InvalidInput(f"Ask for {what} in a round of Everyone: no theorem covers others.")

    def _finite(self, called: AskedLoss, w: Doubles, mean: AskedMean) -> AskedMean:
        """Without privacy an infinite clipping threshold becomes a power of two above all norms.

        Without privacy is a plan of infinite cost; a generous budget is not enough, since a ledger
        adds what the plan costs.
        """
        if type(mean.range) is not Ball or mean.range.radius != math.inf:
            return mean
        if self._private:
            raise InvalidInput(
                "An infinite threshold gives no privacy. Choose a finite one, or epsilon=inf."
            )
        counts = self._sums(questions.GradientNorms(called, w, POWERS), (1, 1, len(POWERS) + 1))
        largest = np.flatnonzero(counts)[-1:].sum()
        return replace(mean, range=Ball(float(POWERS[min(largest, len(POWERS) - 1)])))

    def _answer(self, value: Integers, sensitivity: Sensitivity) -> Sensitive:
        return Sensitive(value, sensitivity, self._opening)

    def _sums(
        self, term: questions.Term, shape: tuple[int, ...], *, targets: bool = True,
        dealt: int = 0, rows: int | None = None,
    ) -> Integers:  # fmt: skip
        if targets and self._data.targets is None:
            raise InvalidInput("This question needs a target y.")
        question = Question(
            term, shape, self._map, self.problem, self._seen, self._data.deal(dealt or shape[0]),
            targets, partitions.BLOCK_ROWS if rows is None else rows,
        )  # fmt: skip
        return self._data.sums(question)

    def __repr__(self) -> str:
        return f"Batch({self.problem})"

    def __reduce__(self) -> NoReturn:
        raise NotReleased("A batch holds private rows and cannot be pickled or copied.")


def _columns(
    columns: Sequence[int], by: Sequence[Sequence[int]], d: int
) -> tuple[tuple[int, ...], tuple[tuple[int, ...], ...]]:
    """Plain copies of columns, and of those that indicate categories."""
    own = tuple(operator.index(column) for column in columns)
    groups = tuple(tuple(operator.index(column) for column in one) for one in by)
    if not own or not all(groups) or not all(0 <= c < d for c in (*own, *itertools.chain(*groups))):
        raise InvalidInput(f"Columns are whole numbers from 0 to {d - 1}; ask for at least one.")
    return own, groups


def _bounded(mean: RobustMean, of: str) -> AskedMean:
    """The mean as it is now, of a finite range."""
    now = as_asked(mean)
    if not math.isfinite(now.range.radius):
        raise InvalidInput(f"A mean of {of} needs a finite threshold.")
    return now


def ascending(edges: ArrayLike, columns: int) -> Doubles:
    """A copy of the edges of every column, (columns, edges): the common ones, or its own row."""
    cuts = np.array(edges, dtype=np.float64).copy()  # an __array__ may lend what it keeps
    if cuts.ndim != 1 and cuts.shape[:-1] != (columns,):
        raise InvalidInput(f"edges need one row, or one for each of the {columns} columns.")
    if cuts.size == 0 or not (np.diff(cuts) > 0).all():
        raise InvalidInput("edges must be strictly ascending lists of numbers.")
    return np.broadcast_to(cuts, (columns, cuts.shape[-1]))


def _copied(ranges: PredictionRanges | None) -> PredictionRanges | None:
    """A checked copy that nobody else holds."""
    return ranges and PredictionRanges.of(ranges.features, ranges.margins)
