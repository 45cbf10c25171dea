"""Questions about the records of one round: what each computes, and its sensitivity.

**What is billed.** A question returns a `Sensitive`, which shows nothing and costs nothing. Its
`release` is matched with the next event of the plan, whose whole cost was reserved before any
record was read. The event holds the law, the noise over the sensitivity, and the number of
coordinates. The bounds below hold for one row, as l2 norms, with n, n rate or n / parts records in
a round; for a person they are multiplied by ``max_rows``. `Problem` has them in all norms.
"""

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
from privtail.trusted.callbacks import CoreLoss
from privtail.trusted.contributions import median
from privtail.trusted.dataset import Dataset
from privtail.trusted.deals import Sample
from privtail.trusted.maps import FeatureMap, PredictionRanges
from privtail.trusted.means import Ball, CheckedMean, Interval, RobustMean, checked_mean
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
    """Answers questions about the records of one round. Nothing else reads the records.

    Every method checks and copies its arguments, sums a `Question` over the records, and returns
    the sums as a `Sensitive` with the sensitivity that `Problem` states.

    Parameters
    ----------
    data : all records.
    problem : the public sizes in this round.
    sample : the ids of the records in this round.
    opening : the right to make the planned releases of the round.
    map_ : the public feature map of all questions; an own copy.
    everyone : whether the round has all records that count.
    private : whether the plan has a finite cost.
    assume : takes the assumptions of a question, for the statement.
    """

    def __init__(
        self, data: Dataset, problem: Problem, sample: Sample, opening: Opening, *,
        map_: FeatureMap, everyone: bool, private: bool, assume: Callable[[Sequence[str]], None],
    ) -> None:  # fmt: skip
        self._data, self._sample, self._opening = data, sample, opening
        self._problem, self._everyone, self._private = problem, everyone, private
        self._assume, self._map = assume, map_

    @property
    def problem(self) -> Problem:
        """The public sizes, as this batch sees them."""
        return self._problem

    def gradient(self, loss: AnyLoss, w: ArrayLike, mean: RobustMean) -> Sensitive:
        """Robust mean of the gradients of the loss at w, flattened row-major from (rows, K).

        A generalized-linear gradient is z outer r with r = loss.derivative(z.w, y). Sensitivity:
        blocks x diameter / n, because the gradient of a record is forced onto the range of
        ``mean``, and a record changes one of the block sums, whose median is taken.
        """
        w, called = self._parameters(w), self._core_loss(loss)
        mean = self._finite(called, w, checked_mean(mean))
        rows = max(1, CACHED // w.size) if called.gradients else 0
        term = questions.Gradient(called, w, mean.range)
        sums = self._sums(term, (mean.blocks, *w.shape), rows=rows)
        return self._answer(median(sums), self.problem.gradient(mean))

    def derivatives(
        self, loss: Loss, w: ArrayLike, mean: RobustMean, ranges: PredictionRanges | None = None
    ) -> Sensitive:
        """Robust mean of the derivatives (K,) of the loss in the margins at w.

        This is the gradient in the intercepts, whatever the features are. A row with a number that
        is not finite, or with an undeclared label, adds 0. ``ranges`` clip features and margins
        first. Sensitivity: blocks x diameter / n, as of `gradient`, for K numbers.
        """
        mean = _bounded(mean, "derivatives")
        term = questions.Derivatives(
            self._core_loss(loss), self._parameters(w), mean.range, self._ranges(ranges)
        )
        sums = self._sums(term, (mean.blocks, 1, self.problem.outputs), rows=0)
        return self._answer(median(sums), self.problem.derivatives(mean))

    def means(self, mean: RobustMean) -> Sensitive:
        """Robust mean (d,) of the mapped columns.

        Sensitivity: blocks x diameter / n, because a row is forced onto the range of ``mean``.
        """
        mean = _bounded(mean, "columns")
        shape = mean.blocks, self.problem.d, 1
        sums = self._sums(questions.Means(mean.range), shape, targets=False)
        return self._answer(median(sums), self.problem.means(mean))

    def scores(
        self, loss: Loss, candidates: Sequence[ArrayLike], mean: RobustMean,
        ranges: PredictionRanges | None = None,
    ) -> Sensitive:  # fmt: skip
        """Robust mean of the losses at each candidate w, one number per candidate.

        ``ranges`` clip features first, and margins, of which each candidate may have its own.
        Sensitivity: blocks x bound / n per candidate, because each loss is forced onto [0, bound],
        the range of ``mean``. All scores move in the same direction if a record is emptied.
        """
        mean = checked_mean(mean)
        answer = self.problem.scores(len(candidates), mean)
        called, points = self._core_loss(loss), tuple(self._parameters(w) for w in candidates)
        ranges = self._ranges(ranges, len(points))
        term = questions.Scores(called, points, cast(Interval, mean.range), ranges)
        return self._answer(median(self._sums(term, (mean.blocks, len(points), 1))), answer)

    def improvement(
        self, loss: Loss, w: ArrayLike, base: ArrayLike, mean: RobustMean,
        ranges: PredictionRanges | None = None,
    ) -> Sensitive:  # fmt: skip
        """Robust mean of the loss at ``base`` less the loss at ``w``: one number.

        ``ranges`` clip features and margins at ``w`` only. A record whose loss is NaN at either
        adds 0. Sensitivity: 2 blocks x threshold / n, because each difference is clamped to
        [-threshold, threshold], the range of ``mean``.
        """
        mean = checked_mean(mean)
        answer = self.problem.improvement(mean)
        points = self._parameters(w), self._parameters(base)
        box = cast(Interval, mean.range)
        term = questions.Improvement(self._core_loss(loss), *points, box, self._ranges(ranges))
        return self._answer(median(self._sums(term, (mean.blocks, 1, 1))), answer)

    def separations(self, loss: Loss, w: ArrayLike, mean: RobustMean) -> Sensitive:
        """Absolute mean of c sign(z) for each mapped column z and margin, (d K,) row-major.

        c is the derivative of the loss in the margin at w, clamped to [-threshold, threshold], the
        range of ``mean``. Sensitivity: 2 threshold / n per number, because c sign(z) has this range
        too, and |a| changes by no more than a.
        """
        mean = checked_mean(mean)
        answer = self.problem.separations(mean)
        term = questions.Separations(
            self._core_loss(loss), self._parameters(w), cast(Interval, mean.range)
        )
        sums = self._sums(term, (1, self.problem.d, self.problem.outputs), rows=0)
        return self._answer(np.abs(sums).reshape(-1), answer)

    def moments(self, radius: float, target: bool = False) -> Sensitive:
        """Second moments of the rows (z, 1, y) clipped to l2 norm ``radius``.

        The upper triangle, row by row; off-diagonals are multiplied by sqrt 2. Sensitivity:
        sqrt 2 radius^2 / n, because |u u^T - v v^T|_F <= sqrt 2 for |u|, |v| <= 1.
        """
        radius, target = float(radius), bool(target)  # read once
        answer = self.problem.moments(radius, target)
        sums = self._sums(questions.Moments(radius, target), (1, answer.size, 1), targets=target)
        return self._answer(median(sums), answer)

    def gradient_moments(self, loss: AnyLoss, w: ArrayLike, mean: RobustMean) -> Sensitive:
        """Second moments of the gradients of a loss with one margin, forced onto a ball of l2 norm.

        The triangle is that of `moments`, and the ball that of ``mean``. Sensitivity: that of
        `moments` for the radius of the ball, because the gradient of a record is no longer.
        """
        w, called, mean = self._parameters(w), self._core_loss(loss), _bounded(mean, "gradients")
        if not (
            type(mean.range) is Ball and w.shape[1] == mean.blocks == 1 and not called.gradients
        ):
            raise IncompatibleParts("Moments of gradients need one margin, a ball and one block.")
        answer = self.problem.moments(mean.range.radius)
        gradient = questions.Gradient(called, w, mean.range)
        term = questions.Moments(mean.range.radius, False, gradient)
        return self._answer(median(self._sums(term, (1, answer.size, 1))), answer)

    def histogram(
        self, columns: Sequence[int], edges: ArrayLike, pooled: bool = False
    ) -> Sensitive:
        """Counts of the values of mapped columns between public edges, (columns, edges + 1) flat.

        Column -1 is the raw target, and -2 its exposure. Cell 0 is below the first edge, and cell
        e at or above edge e - 1. ``edges`` (edges,) are for all columns; (columns, edges) has one
        row for each. With ``pooled`` each record counts in one column only, chosen by its id, and
        the columns are added, (edges + 1,). A row with a non-finite number counts nowhere. A
        missing number that is filled in counts nowhere in its column. Sensitivity:
        sqrt(2 columns), or sqrt 2 if pooled, because a record is in one cell per column, and a
        replaced one leaves that cell for another.
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
        """Counts of the values of mapped columns between public edges, for each group of rows.

        As `histogram`, but a value that is not finite leaves the other columns of its row alone.
        ``by`` are the indicator columns of each category. A row counts in the group of its
        categories, and nowhere without one. Flattened (groups, columns, edges + 1). Sensitivity:
        sqrt(2 columns), because a record is in one group, and in one cell per column there.
        """
        columns, by = _columns(columns, by, self.problem.d)
        cuts, groups = ascending(edges, len(columns)), math.prod(map(len, by))
        answer = self.problem.cell_counts(len(columns), cuts.shape[1], groups)
        shape = 1, groups, len(columns), cuts.shape[1] + 1
        counts = self._sums(questions.CellCounts(columns, cuts, by), shape, targets=False)
        return self._answer(counts.reshape(-1) << self.problem.bits, answer)

    def column_moments(self, columns: Sequence[int], by: Sequence[Sequence[int]] = ()) -> Sensitive:
        """Sums of mapped columns clamped to [-1, 1], and of their squares, for each group of rows.

        Values that are not finite add 0; groups are those of `cell_counts`. Flattened (groups,
        columns, 2). Sensitivity: 2 sqrt(columns), because (a - b)^2 + (a^2 - b^2)^2 <= 4 for a, b
        in [-1, 1], and a^2 + a^4 + b^2 + b^4 <= 4 if the group changes.
        """
        columns, by = _columns(columns, by, self.problem.d)
        groups = math.prod(map(len, by))
        answer = self.problem.column_moments(len(columns), groups)
        shape = 1, groups, len(columns), 2
        sums = self._sums(questions.ColumnMoments(columns, by), shape, targets=False)
        return self._answer(sums.reshape(-1), answer)

    def derivative_norms(self, loss: Loss, w: ArrayLike, edges: ArrayLike) -> Sensitive:
        """Counts of the l2 norms of the derivatives of the loss in the margins at w.

        For the squared loss these are the absolute residuals. Sensitivity: sqrt 2, because a record
        is in one cell between public edges.
        """
        w, cuts = self._parameters(w), ascending(edges, 1)[0]
        term = questions.DerivativeNorms(self._core_loss(loss), w, cuts)
        counts = self._sums(term, (1, 1, len(cuts) + 1))
        answer = self.problem.derivative_norms(len(cuts))
        return self._answer(counts.reshape(-1) << self.problem.bits, answer)

    def invalid_rows(self) -> Sensitive:
        """The number of rows that count as zero: with a non-finite number, or an undeclared label.

        A target is one of the numbers, if there is one. Rows beyond ``max_rows`` or without an id
        are left out. Sensitivity: 1, because a record adds 0 or 1.
        """
        target = self._data.targets is not None
        count = self._sums(questions.InvalidRows(), (1, 1, 1), targets=target)
        return self._answer(count.reshape(-1) << self.problem.bits, self.problem.invalid_rows())

    def labels(self, mechanism: StabilityHistogram) -> list[Any]:
        """The labels whose noisy count is above a threshold, sorted: released at once.

        Sensitivity: a replaced row changes two counts by 1. `StabilityHistogram` has the proof, for
        a row and for a person with several. Billed: its epsilon and delta, even if no label is
        found.
        """
        if type(mechanism) is not StabilityHistogram:
            raise IncompatibleParts("Labels are released by StabilityHistogram only.")
        mechanism, targets = replace(mechanism), self._data.targets
        if not isinstance(targets, Labels):
            raise InvalidInput("labels() needs a target of labels.")
        self._require_everyone("labels")
        counted = self.problem.labels()
        sampler = self._opening.charge(mechanism.event(counted))
        counts = self._data.counts(self._sample)
        found = targets.restored(mechanism.release(counts, counted, sampler))
        self._opening.released()
        return found

    # ---------------------------------------------------------------- inside

    def _core_loss(self, loss: AnyLoss) -> CoreLoss:
        called = callbacks.core_loss(loss)
        if getattr(loss, "outputs", self.problem.outputs) != self.problem.outputs:
            raise IncompatibleParts("Give Curator(outputs=...) the margins of the loss for a row.")
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

    def _ranges(self, ranges: Any, candidates: int = 1) -> PredictionRanges | None:
        """A checked copy that nobody else holds."""
        if ranges is None:
            return None
        own = PredictionRanges.of(ranges.features, ranges.margins)
        if own.margins.shape not in ((2,), (candidates * self.problem.outputs, 2)):
            raise InvalidInput("Give one range for all margins, or one for each of them.")
        return own

    def _require_everyone(self, what: str) -> None:
        if not self._everyone or self.problem.most != self.problem.n:
            raise InvalidInput(f"Ask for {what} in a round of Everyone: no theorem covers others.")

    def _finite(self, called: CoreLoss, w: Doubles, mean: CheckedMean) -> CheckedMean:
        """Replace an infinite threshold by a power of two above all norms, without privacy only.

        Without privacy means a plan of infinite cost. A large budget is not enough, since a ledger
        adds the cost of the plan.
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
            term, shape, self._map, self.problem, self._sample, self._data.deal(dealt or shape[0]),
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
    """Checked plain copies of columns, and of the indicator columns of categories."""
    own = tuple(operator.index(column) for column in columns)
    groups = tuple(tuple(operator.index(column) for column in one) for one in by)
    if not own or not all(groups) or not all(0 <= c < d for c in (*own, *itertools.chain(*groups))):
        raise InvalidInput(f"Columns are whole numbers from 0 to {d - 1}; ask for at least one.")
    return own, groups


def _bounded(mean: RobustMean, of: str) -> CheckedMean:
    """A copy of the mean, which must have a finite range."""
    now = checked_mean(mean)
    if not math.isfinite(now.range.radius):
        raise InvalidInput(f"A mean of {of} needs a finite threshold.")
    return now


def ascending(edges: ArrayLike, columns: int) -> Doubles:
    """A copy of the edges as (columns, edges), with one common row repeated."""
    cuts = np.array(edges, dtype=np.float64).copy()  # an __array__ may lend what it keeps
    if cuts.ndim != 1 and cuts.shape[:-1] != (columns,):
        raise InvalidInput(f"edges need one row, or one for each of the {columns} columns.")
    if cuts.size == 0 or not (np.diff(cuts) > 0).all():
        raise InvalidInput("edges must be strictly ascending lists of numbers.")
    return np.broadcast_to(cuts, (columns, cuts.shape[-1]))
