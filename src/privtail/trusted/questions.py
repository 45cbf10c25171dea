"""The terms of questions: the contribution of each row to a sum.

A `Question` is a sum over records. Its `Term` computes what a row adds. It holds public numbers,
the loss, and the rule that decides from an id alone whether and where a row counts. It holds no
record, no noise and no right to release. It can be pickled if its loss can, so a worker that holds
rows can compute the same integers. `Batch` asks questions, and `Problem` states their sensitivity.

Formal guarantee
----------------
A row's contribution is a function of that row, its target and exposure, its label (the block that
its id was dealt to) and public numbers. Every term forces it onto its range on the grid, or counts
the row in one cell per column, before it is added. So one record changes a sum by at most the
diameter of this range, or by one count in two cells per column.

An exposure is a column of the record. It moves the margin, and the range stays the same, so the
sensitivity is that without exposures. This holds for 1e308, subnormal numbers, NaN, zero and
negative numbers. A row whose exposure is NaN, zero or negative has the target NaN, and adds 0 where
a target is needed.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol, cast

import numpy as np
from numpy.typing import NDArray

from privtail.trusted import kernels
from privtail.trusted.callbacks import CoreLoss
from privtail.trusted.contributions import add, clamp, contribute, lengths, shrunk
from privtail.trusted.deals import Deal, Sample
from privtail.trusted.maps import FeatureMap, MappedRows, PredictionRanges
from privtail.trusted.means import Ball, Interval
from privtail.trusted.problem import Problem

Doubles = NDArray[np.float64]
Integers = NDArray[np.int64]
TILE = 32
"""Number of candidates that are scored at once."""


@dataclass(frozen=True, eq=False)
class Block:
    """Mapped rows with their targets, labels (dealt blocks) and, if there are any, exposures.

    Exposures are positive and finite; a row without such an exposure has no finite target.
    """

    problem: Problem
    rows: MappedRows
    y: Doubles
    labels: Integers
    exposures: Doubles | None = None

    def margins(
        self, w: Doubles, ranges: PredictionRanges | None = None, first: int = 0
    ) -> tuple[Doubles, Doubles, NDArray[np.bool_]]:
        """Margins, clipped to the ranges of a prediction; squared norms; which rows are finite.

        With exposures a margin is the logarithm of a rate, and the logarithm of the exposure is
        added to it.
        """
        d, rows = self.problem.d, self.rows
        b = w[d] if self.problem.intercept else np.zeros(w.shape[1])
        if ranges is not None and np.isfinite(ranges.features).any():
            rows = rows.clipped(ranges.features)
        margins, squares, valid = rows.margins(w[:d], b)
        margins = margins if ranges is None else ranges.clip(margins, first)
        if self.exposures is not None:
            logs = np.empty(len(margins))
            kernels.logarithms(np.ascontiguousarray(self.exposures), logs)
            margins = margins + logs[:, None]
        return margins, squares, valid & np.isfinite(self.y)

    def add_rows(
        self, rows: MappedRows, counted: bool | NDArray[np.bool_], residuals: Doubles,
        box: Ball | Interval, sums: Doubles,
    ) -> None:  # fmt: skip
        """Add rows times residuals, each product in its range, to ``sums`` (blocks, d, K)."""
        _, squares, valid = rows.margins(np.zeros((sums.shape[1], 1)), np.zeros(1))
        bits = self.problem.bits
        contribute(rows, squares, valid & counted, residuals, self.labels, False, box, bits, sums)

    def count(self, values: Doubles, own: Integers, edges: Doubles, sums: Doubles) -> None:
        """Count values (rows, columns) between ``edges``, in column ``own`` of each row."""
        values, edges = np.ascontiguousarray(values), np.array(edges, order="C")
        kernels.tally(values, values.view(np.int64), own, edges, edges.view(np.int64), sums)

    def count_norms(
        self, norms: Doubles, counted: NDArray[np.bool_], edges: Doubles, sums: Doubles
    ) -> None:
        """Count the norms (rows,) of the counted rows; NaN counts as infinity."""
        own = np.where(counted, kernels.EVERY, kernels.NONE)
        self.count(np.fmin(norms, np.inf)[:, None], own, edges[None], sums)


class Term(Protocol):
    """The contribution of each row to a sum."""

    def add(self, block: Block, sums: Doubles) -> None:
        """Add the contributions of the rows of a block to ``sums``, in place."""
        ...


@dataclass(frozen=True, eq=False)
class Question:
    """A sum over records.

    Attributes
    ----------
    term : computes what a row adds.
    shape : the shape of the sums, (blocks, ...).
    map : the feature map that is applied first.
    problem : the public sizes, with the bits of the grid.
    sample : the ids of the records in this round.
    deal : the label (block) of every id.
    targets : whether the term needs targets; otherwise rows have the target 0.
    rows : the largest number of rows that are summed at once; 0 for no limit.
    """

    term: Term
    shape: tuple[int, ...]
    map: FeatureMap
    problem: Problem
    sample: Sample
    deal: Deal
    targets: bool = True
    rows: int = 0


@dataclass(frozen=True, eq=False)
class Gradient:
    """A row adds its gradient in w, forced onto the range."""

    loss: CoreLoss
    w: Doubles
    range: Ball | Interval

    def add(self, block: Block, sums: Doubles) -> None:
        problem, rows = block.problem, block.rows
        if self.loss.gradients:
            x = rows.transformed()
            counted = np.isfinite(x).all(axis=1) & np.isfinite(block.y)
            flat = MappedRows.as_they_are(self.loss.gradients(self.w, x, block.y))
            ones, flat_sums = np.ones((len(flat), 1)), sums.reshape(len(sums), self.w.size, 1)
            block.add_rows(flat, counted, ones, self.range, flat_sums)
            return
        margins, squares, counted = block.margins(self.w)
        contribute(
            rows, squares, counted, self.loss.derivatives(margins, block.y), block.labels,
            problem.intercept, self.range, problem.bits, sums,
        )  # fmt: skip


@dataclass(frozen=True, eq=False)
class GradientNorms:
    """A row adds 1 to the cell of the l2 norm of its gradient in w, if that is finite."""

    loss: CoreLoss
    w: Doubles
    edges: Doubles

    def add(self, block: Block, sums: Doubles) -> None:
        if self.loss.gradients:
            norms = lengths(self.loss.gradients(self.w, block.rows.transformed(), block.y))
        else:
            margins, squares, _ = block.margins(self.w)
            with np.errstate(all="ignore"):
                norms = np.sqrt(squares + block.problem.intercept)
                norms *= lengths(self.loss.derivatives(margins, block.y))
        block.count_norms(norms, np.isfinite(norms), self.edges, sums[0])


@dataclass(frozen=True, eq=False)
class Derivatives:
    """A row adds the derivatives (K,) of its loss in the margins at w, forced onto the range."""

    loss: CoreLoss
    w: Doubles
    range: Ball | Interval
    ranges: PredictionRanges | None

    def add(self, block: Block, sums: Doubles) -> None:
        margins, _, counted = block.margins(self.w, self.ranges)
        ones = MappedRows.as_they_are(np.ones((len(block.y), 1)))
        derivatives = self.loss.derivatives(margins, block.y)
        block.add_rows(ones, counted, derivatives, self.range, sums)


@dataclass(frozen=True, eq=False)
class Means:
    """A row adds its features, forced onto the range."""

    range: Ball | Interval

    def add(self, block: Block, sums: Doubles) -> None:
        block.add_rows(block.rows, True, np.ones((len(block.y), 1)), self.range, sums)


@dataclass(frozen=True, eq=False)
class Scores:
    """A row adds its loss at each of the points, clamped to [0, radius]."""

    loss: CoreLoss
    points: tuple[Doubles, ...]
    range: Interval
    ranges: PredictionRanges | None

    def add(self, block: Block, sums: Doubles) -> None:
        bits, outputs = block.problem.bits, block.problem.outputs
        for first in range(0, len(self.points), TILE):
            tile = self.points[first : first + TILE]
            margins, _, counted = block.margins(np.hstack(tile), self.ranges, first * outputs)
            margins, targets = margins.reshape(-1, outputs), np.repeat(block.y, len(tile))
            with np.errstate(all="ignore"):
                values = self.loss.values(margins, targets) / self.range.radius
            clamp(values, self.range.steps(bits), bits)
            scores = np.maximum(values, 0.0).reshape(len(counted), len(tile))
            scores[~counted] = 0.0
            add(sums[:, first : first + TILE, 0], block.labels, scores)


@dataclass(frozen=True, eq=False)
class Improvement:
    """A row adds its loss at ``base`` less that at w, clamped to [-radius, radius]."""

    loss: CoreLoss
    w: Doubles
    base: Doubles
    range: Interval
    ranges: PredictionRanges | None

    def add(self, block: Block, sums: Doubles) -> None:
        bits = block.problem.bits
        margins, _, counted = block.margins(self.w, self.ranges)
        with np.errstate(all="ignore"):
            here = self.loss.values(margins, block.y)
            there = self.loss.values(block.margins(self.base)[0], block.y)
            gains = (there - here) / self.range.radius
        gains[~counted] = 0.0
        clamp(gains, self.range.steps(bits), bits)
        np.add.at(sums[:, 0, 0], block.labels, gains)


@dataclass(frozen=True, eq=False)
class Separations:
    """A row adds sign(z_j) times its clamped derivative in each margin at w, for each column j."""

    loss: CoreLoss
    w: Doubles
    range: Interval

    def add(self, block: Block, sums: Doubles) -> None:
        bits, z = block.problem.bits, block.rows.transformed()
        margins, _, _ = block.margins(self.w)
        counted = np.isfinite(z).all(axis=1) & np.isfinite(block.y)
        with np.errstate(all="ignore"):
            entries = self.loss.derivatives(margins, block.y) / self.range.radius
        clamp(entries.reshape(-1), self.range.steps(bits), bits)
        entries[~counted] = 0.0
        sums[0] += np.sign(np.where(counted[:, None], z, 0.0)).T @ entries


@dataclass(frozen=True, eq=False)
class Moments:
    """A row adds the products of all pairs of (z, 1, y), clipped to l2 norm ``radius``.

    With a ``gradient`` it adds those of its gradient, of one margin, shrunk onto the ball first.
    """

    radius: float
    target: bool
    gradient: Gradient | None = None

    def add(self, block: Block, sums: Doubles) -> None:
        z, bits, of = [block.rows.transformed()], block.problem.bits, self.gradient
        if block.problem.intercept:
            z.append(np.ones((len(block.y), 1)))
        if self.target:
            z.append(block.y[:, None])
        joint = np.ascontiguousarray(np.hstack(z))
        if of is not None:
            margins, squares, counted = block.margins(of.w)
            pulls = of.loss.derivatives(margins, block.y)
            pulls = shrunk(squares, pulls, block.problem.intercept, cast(Ball, of.range))
            with np.errstate(all="ignore"):
                joint *= np.where(counted[:, None], pulls, np.nan)
        valid = np.isfinite(joint).all(axis=1)
        margin = kernels.margin_of_safety(sums.shape[1], bits)
        kernels.moment_sum(joint, valid, self.radius, bits, margin, sums[0, :, 0])


@dataclass(frozen=True, eq=False)
class Histogram:
    """A row adds 1 to one cell of each column, between the (columns, edges) of that column.

    Column -1 is the target, and -2 its exposure. If ``pooled``, a row counts in one column only,
    that of its label. A missing number that is filled in counts in no cell.
    """

    columns: tuple[int, ...]
    edges: Doubles
    pooled: bool

    def add(self, block: Block, sums: Doubles) -> None:
        z = block.rows.transformed()
        valid = np.isfinite(z).all(axis=1)
        if any(column < 0 for column in self.columns):
            valid &= np.isfinite(block.y)
        z = block.rows.known()
        if self.columns != tuple(range(z.shape[1])):
            beside = block.y if block.exposures is None else np.stack([block.exposures, block.y])
            z = np.column_stack([
                np.atleast_2d(beside)[c] if c < 0 else z[:, c] for c in self.columns
            ])  # fmt: skip
        own = np.where(valid, block.labels if self.pooled else kernels.EVERY, kernels.NONE)
        block.count(z, own, self.edges, sums[0])


@dataclass(frozen=True, eq=False)
class DerivativeNorms:
    """A row adds 1 to the cell of the l2 norm of its derivatives in the margins at w."""

    loss: CoreLoss
    w: Doubles
    edges: Doubles

    def add(self, block: Block, sums: Doubles) -> None:
        margins, _, counted = block.margins(self.w)
        norms = lengths(self.loss.derivatives(margins, block.y))
        block.count_norms(norms, counted, self.edges, sums[0])


@dataclass(frozen=True, eq=False)
class InvalidRows:
    """A row adds 1 if one of its numbers is not finite."""

    def add(self, block: Block, sums: Doubles) -> None:
        _, _, counted = block.margins(np.zeros((block.problem.rows, 1)))
        sums[0, 0, 0] += np.count_nonzero(~counted)


def groups(z: Doubles, by: tuple[tuple[int, ...], ...]) -> Integers:
    """The group of every row: the index of its combination of categories; -1 for no group.

    Exactly one of the columns of a category is 1; otherwise the row has no group.
    """
    found, sure = np.zeros(len(z), np.int64), np.ones(len(z), np.bool_)
    for columns in by:
        one = z[:, columns] == 1
        found = found * len(columns) + one.argmax(axis=1)
        sure &= one.sum(axis=1) == 1
    return np.where(sure, found, -1)


@dataclass(frozen=True, eq=False)
class CellCounts:
    """A row adds 1 to one cell of each column, in the row's group.

    A value that is not finite counts in no cell; other values of the row still count.
    """

    columns: tuple[int, ...]
    edges: Doubles
    by: tuple[tuple[int, ...], ...]

    def add(self, block: Block, sums: Doubles) -> None:
        z = block.rows.transformed()
        group, width = groups(z, self.by), self.edges.shape[1] + 1
        for k, (column, edges) in enumerate(zip(self.columns, self.edges, strict=True)):
            counted = np.isfinite(z[:, column]) & (group >= 0)
            cells = np.searchsorted(edges, z[counted, column], side="right")
            places = group[counted] * width + cells
            counts = np.bincount(places, minlength=len(sums[0]) * width)
            sums[0, :, k] += counts.reshape(-1, width)


@dataclass(frozen=True, eq=False)
class ColumnMoments:
    """A row adds its values, clamped to [-1, 1], and their squares, in the row's group."""

    columns: tuple[int, ...]
    by: tuple[tuple[int, ...], ...]

    def add(self, block: Block, sums: Doubles) -> None:
        z = block.rows.transformed()
        group, step = groups(z, self.by), 2.0**block.problem.bits
        for k, column in enumerate(self.columns):
            counted = np.isfinite(z[:, column]) & (group >= 0)
            values = np.clip(z[counted, column], -1.0, 1.0)
            powers = np.rint(step * np.column_stack([values, values * values]))
            np.add.at(sums[0, :, k], group[counted], powers)
