"""Questions about records, as values: what a block of rows adds to a sum.

A question holds public numbers, the loss, and what decides from an id alone whether and where a row
counts. It holds no record, noise or right to release, and can be pickled if its loss can: whoever
holds rows answers it, and answers it again, with the same integers.

Formal guarantee
----------------
What a term adds for a row is a function of that row, its target, its label (the block that its id
was dealt to) and public numbers. Every term forces it onto its range on the grid, or counts the row
in one cell a column, before it is added. `Problem` has the sensitivity of every answer.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from privtail.trusted import kernels
from privtail.trusted.callbacks import AskedLoss
from privtail.trusted.cells import tally
from privtail.trusted.contributions import add, clamp, contribute, lengths
from privtail.trusted.deals import Deal, Seen
from privtail.trusted.maps import FeatureMap, MappedRows, PredictionRanges
from privtail.trusted.means import Ball, Interval
from privtail.trusted.problem import Problem

Doubles = NDArray[np.float64]
Integers = NDArray[np.int64]
TILE = 32
"""Candidates that are scored in one go."""


class Term(Protocol):
    """What rows add to a sum."""

    def add(
        self, problem: Problem, rows: MappedRows, y: Doubles, labels: Integers, sums: Doubles
    ) -> None:
        """Add what mapped rows, their targets and their labels bring to ``sums``, in place."""
        ...


@dataclass(frozen=True, eq=False)
class Question:
    """A sum over records.

    Attributes
    ----------
    term : what a row adds.
    shape : of the sums, (blocks, ...).
    map : the features, as the term sees them.
    problem : the public sizes, with the bits of the grid.
    seen : which ids count.
    deal : the label of every id.
    targets : whether the term needs targets; rows have the target 0 if not.
    rows : how many are summed at once at most; 0 leaves it to who holds them.
    """

    term: Term
    shape: tuple[int, ...]
    map: FeatureMap
    problem: Problem
    seen: Seen
    deal: Deal
    targets: bool = True
    rows: int = 0


@dataclass(frozen=True, eq=False)
class Gradient:
    """Gradients in w, each in its range."""

    loss: AskedLoss
    w: Doubles
    range: Ball | Interval

    def add(
        self, problem: Problem, rows: MappedRows, y: Doubles, labels: Integers, sums: Doubles
    ) -> None:
        counted = np.isfinite(y)
        if self.loss.gradients:
            x = rows.transformed()
            counted &= np.isfinite(x).all(axis=1)
            flat = MappedRows.as_they_are(self.loss.gradients(self.w, x, y))
            sums = sums.reshape(len(sums), self.w.size, 1)
            return _add_rows(flat, counted, labels, self.range, problem.bits, sums)
        margins, squares, valid = margins_of(problem, rows, self.w)
        residuals, counted = self.loss.derivatives(margins, y), valid & counted
        contribute(
            rows, squares, counted, residuals, labels, problem.intercept, self.range, problem.bits,
            sums,
        )  # fmt: skip
        return None


@dataclass(frozen=True, eq=False)
class GradientNorms:
    """Counts of the l2 norms of finite gradients in w, in cells between edges."""

    loss: AskedLoss
    w: Doubles
    edges: Doubles

    def add(
        self, problem: Problem, rows: MappedRows, y: Doubles, labels: Integers, sums: Doubles
    ) -> None:
        if self.loss.gradients:
            norms = lengths(self.loss.gradients(self.w, rows.transformed(), y))
        else:
            margins, squares, _ = margins_of(problem, rows, self.w)
            with np.errstate(all="ignore"):
                norms = np.sqrt(squares + problem.intercept)
                norms *= lengths(self.loss.derivatives(margins, y))
        sums[0, 0, :] += tally(norms[np.isfinite(norms)], self.edges)


@dataclass(frozen=True, eq=False)
class Derivatives:
    """Derivatives in the margins at w, each in its range: gradients of one constant feature."""

    loss: AskedLoss
    w: Doubles
    range: Ball | Interval

    def add(
        self, problem: Problem, rows: MappedRows, y: Doubles, labels: Integers, sums: Doubles
    ) -> None:
        margins, _, valid = margins_of(problem, rows, self.w)
        valid &= np.isfinite(y)
        residuals, ones = self.loss.derivatives(margins, y), np.ones(len(rows))
        constant = MappedRows.as_they_are(ones[:, None])
        contribute(
            constant, ones, valid, residuals, labels, False, self.range, problem.bits, sums
        )  # fmt: skip


@dataclass(frozen=True, eq=False)
class Means:
    """The rows themselves, each in its range."""

    range: Ball | Interval

    def add(
        self, problem: Problem, rows: MappedRows, y: Doubles, labels: Integers, sums: Doubles
    ) -> None:
        _add_rows(rows, np.isfinite(y), labels, self.range, problem.bits, sums)


@dataclass(frozen=True, eq=False)
class Scores:
    """Losses at each of some points, clamped to [0, radius]."""

    loss: AskedLoss
    points: tuple[Doubles, ...]
    range: Interval
    ranges: PredictionRanges | None

    def add(
        self, problem: Problem, rows: MappedRows, y: Doubles, labels: Integers, sums: Doubles
    ) -> None:
        limit = self.range.steps(problem.bits)
        for first in range(0, len(self.points), TILE):
            tile = self.points[first : first + TILE]
            margins, _, valid = margins_of(problem, rows, np.hstack(tile), self.ranges)
            margins, targets = margins.reshape(-1, problem.outputs), np.repeat(y, len(tile))
            with np.errstate(all="ignore"):
                values = self.loss.values(margins, targets) / self.range.radius
            clamp(values, limit, problem.bits)
            scores = np.maximum(values, 0.0).reshape(len(y), len(tile))
            scores[~(valid & np.isfinite(y))] = 0.0
            add(sums[:, first : first + TILE, 0], labels, scores)


@dataclass(frozen=True, eq=False)
class Improvement:
    """By how much smaller losses are at w than at ``base``, clamped to both sides."""

    loss: AskedLoss
    w: Doubles
    base: Doubles
    range: Interval
    ranges: PredictionRanges | None

    def add(
        self, problem: Problem, rows: MappedRows, y: Doubles, labels: Integers, sums: Doubles
    ) -> None:
        found = margins_of(problem, rows, self.w, self.ranges), margins_of(problem, rows, self.base)
        with np.errstate(all="ignore"):
            here, there = (self.loss.values(margins, y) for margins, _, _ in found)
            gains = (there - here) / self.range.radius
        gains[~(found[0][2] & np.isfinite(y))] = 0.0
        clamp(gains, self.range.steps(problem.bits), problem.bits)
        np.add.at(sums[:, 0, 0], labels, gains)


@dataclass(frozen=True, eq=False)
class Separations:
    """Derivatives in the margins at w, clamped, with the sign of every column."""

    loss: AskedLoss
    w: Doubles
    range: Interval

    def add(
        self, problem: Problem, rows: MappedRows, y: Doubles, labels: Integers, sums: Doubles
    ) -> None:
        z = rows.transformed()
        margins, _, _ = margins_of(problem, rows, self.w)
        counted = np.isfinite(z).all(axis=1) & np.isfinite(y)
        with np.errstate(all="ignore"):
            entries = self.loss.derivatives(margins, y) / self.range.radius
        clamp(entries.reshape(-1), self.range.steps(problem.bits), problem.bits)
        entries[~counted] = 0.0
        sums[0] += np.sign(np.where(counted[:, None], z, 0.0)).T @ entries


@dataclass(frozen=True, eq=False)
class Moments:
    """Second moments of rows (z, 1, y), each clipped to l2 norm ``radius``."""

    radius: float
    target: bool

    def add(
        self, problem: Problem, rows: MappedRows, y: Doubles, labels: Integers, sums: Doubles
    ) -> None:
        z = [rows.transformed()]
        if problem.intercept:
            z.append(np.ones((len(rows), 1)))
        if self.target:
            z.append(y[:, None])
        joint = np.ascontiguousarray(np.hstack(z))
        valid = np.isfinite(joint).all(axis=1)
        margin = kernels.margin_of_safety(sums.shape[1], problem.bits)
        kernels.moment_sum(joint, valid, self.radius, problem.bits, margin, sums[0, :, 0])


@dataclass(frozen=True, eq=False)
class Histogram:
    """Counts of columns (-1: the target) between the edges of each, (columns, edges).

    If ``pooled``, a row counts in the column of its label alone.
    """

    columns: tuple[int, ...]
    edges: Doubles
    pooled: bool

    def add(
        self, problem: Problem, rows: MappedRows, y: Doubles, labels: Integers, sums: Doubles
    ) -> None:
        z = rows.transformed()
        valid = np.isfinite(z).all(axis=1)
        if -1 in self.columns:
            valid &= np.isfinite(y)
        for c, column in enumerate(self.columns):
            values = y if column == -1 else z[:, column]
            counted = valid & (labels == c) if self.pooled else valid
            sums[0, c, :] += tally(values[counted], self.edges[c])


@dataclass(frozen=True, eq=False)
class DerivativeNorms:
    """Counts of the l2 norms of derivatives in the margins at w, in cells between edges."""

    loss: AskedLoss
    w: Doubles
    edges: Doubles

    def add(
        self, problem: Problem, rows: MappedRows, y: Doubles, labels: Integers, sums: Doubles
    ) -> None:
        margins, _, valid = margins_of(problem, rows, self.w)
        norms = lengths(self.loss.derivatives(margins, y))
        sums[0, 0, :] += tally(norms[valid & np.isfinite(y)], self.edges)


@dataclass(frozen=True, eq=False)
class InvalidRows:
    """How many rows have a number that is not finite."""

    def add(
        self, problem: Problem, rows: MappedRows, y: Doubles, labels: Integers, sums: Doubles
    ) -> None:
        _, _, valid = rows.margins(np.zeros((problem.d, 1)), np.zeros(1))
        sums[0, 0, 0] += np.count_nonzero(~(valid & np.isfinite(y)))


def margins_of(
    problem: Problem, rows: MappedRows, w: Doubles, ranges: PredictionRanges | None = None
) -> tuple[Doubles, Doubles, NDArray[np.bool_]]:
    """Margins of rows, clipped to the ranges of a prediction; squared norms; finiteness."""
    d = problem.d
    b = w[d] if problem.intercept else np.zeros(w.shape[1])
    if ranges is None:
        return rows.margins(w[:d], b)
    if np.isfinite(ranges.features).any():
        rows = rows.clipped(ranges.features)
    margins, squares, valid = rows.margins(w[:d], b)
    return np.clip(margins, *ranges.margins), squares, valid


def _add_rows(
    rows: MappedRows, counted: NDArray[np.bool_], labels: Integers, range_: Ball | Interval,
    bits: int, sums: Doubles,
) -> None:  # fmt: skip
    """Add the counted rows, each in its range, to ``sums`` (blocks, d, 1)."""
    _, squares, valid = rows.margins(np.zeros((sums.shape[1], 1)), np.zeros(1))
    ones = np.ones((len(rows), 1))
    contribute(rows, squares, valid & counted, ones, labels, False, range_, bits, sums)
