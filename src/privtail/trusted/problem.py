"""The public sizes of a problem, and the sensitivity of every question about its records.

An algorithm plans with a `Problem` before any record is read. A `Batch` computes the answers to the
same questions, with the sensitivities that are computed here.

Formal guarantee
----------------
Every answer is a function of the contributions c_1 .. c_n of the n positions, and c_i is a function
of the record at i alone. Exchange one contribution for any other (diameter) or for nothing
(radius): every method below bounds in l1, l2 and l-infinity how far the answer moves, whatever the
others are. Now one person's rows change. At most m = ``max_rows`` of their positions count, the
same ones before and after (`Curator` says why), so at most m contributions change. Exchange them
one after the other: by the triangle inequality the answer moves by at most m times as far. This
needs nothing of the answer but the bound for one row. So it holds for sums, for medians of block
sums whichever blocks the m rows were dealt to, for clipped second moments, for histograms, and for
pooled ones, in which a position counts in its own column. Where the emptying of a record moves all
coordinates in one direction, so does every step, and so do m of them: one-signed answers stay
one-signed. Largest magnitudes do not grow: there are still n positions (``most`` of a part).
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from operator import index
from typing import Any

from privtail.errors import InvalidInput
from privtail.trusted.events import Recipe, read_once, read_whole
from privtail.trusted.means import Ball, Interval, RobustMean, checked_mean
from privtail.trusted.sampling import DisjointParts, PoissonBatches, Sampling
from privtail.trusted.sensitivity import Norms, Sensitivity


def _named(contribution: Ball | Interval) -> tuple[Any, ...]:
    """A range in a recipe; for an interval, all that its bounds and its unit depend on."""
    if isinstance(contribution, Ball):
        return "ball", float(contribution.radius)
    limit, one_signed = float(contribution.limit), bool(contribution.one_signed)
    return "interval", float(contribution.radius), limit, one_signed


@dataclass(frozen=True, kw_only=True)
class Problem:
    """Public sizes: n records, d features, K outputs, and whether there is an intercept.

    Attributes
    ----------
    expected : the expected number of records of a batch: the public divisor of every mean.
    indicators, categories : columns in [0, 1] by declaration; those of each category, one-hot.
    optional : columns in which a missing number is filled in, and does not drop its row.
    exposure : whether there are exposures.
    max_rows : the number of rows of one person that count; 1 protects a row. Every sensitivity is
        ``max_rows`` times that of one row.
    most : the largest number of rows that may count, if that is more than n. The rows of a part of
        the persons are n on average, but may be all. Grids and magnitudes have room for ``most``.
    """

    n: int
    d: int
    outputs: int = 1
    intercept: bool = False
    expected: float = 0.0
    indicators: tuple[int, ...] = ()
    categories: tuple[tuple[int, ...], ...] = ()
    optional: tuple[int, ...] = ()
    exposure: bool = False
    max_rows: int = 1
    most: int = 0

    def __post_init__(self) -> None:
        read_once(self, "n", "d", "outputs", "most", kind=index)
        read_whole(self, max_rows=1)
        if self.n == 0:
            raise InvalidInput("There are no rows: give at least one row.")
        if self.n < 1 or self.d < 1 or self.outputs < 1:
            raise InvalidInput(
                f"A problem needs at least one row, feature and output; got n={self.n}, "
                f"d={self.d}, outputs={self.outputs}."
            )
        read_once(self, "intercept", "exposure", kind=bool)
        read_once(self, "expected", kind=float)
        if self.expected == 0.0:
            object.__setattr__(self, "expected", float(self.n))
        if self.most < self.n:
            object.__setattr__(self, "most", self.n)

    def sampled(self, sampling: Sampling) -> Problem:
        """The problem of one batch of ``sampling``."""
        if isinstance(sampling, PoissonBatches):
            return replace(self, expected=self.n * sampling.rate)
        if isinstance(sampling, DisjointParts):
            if sampling.parts > self.n:
                raise InvalidInput(
                    f"Cannot deal {self.n} rows into {sampling.parts} parts: take at most {self.n}."
                )
            return replace(self, expected=self.n / sampling.parts)
        return replace(self, expected=float(self.n))

    @property
    def bits(self) -> int:
        """Grid bits b: a range spans 2^b steps, and ``most`` of them stay below 2^61."""
        return min(34, 60 - max(1, self.most - 1).bit_length())

    @property
    def measured(self) -> tuple[int, ...]:
        """Columns whose range nobody has declared."""
        declared = set(self.indicators)
        return tuple(j for j in range(self.d) if j not in declared)

    @property
    def rows(self) -> int:
        """Rows of w: features, and the intercept if there is one."""
        return self.d + self.intercept

    def gradient(self, mean: RobustMean) -> Sensitivity:
        """Mean gradient, size (d + intercept) K, row-major like w (the lemma of `means`)."""
        return self._mean(mean, self.rows * self.outputs, "gradient")

    def derivatives(self, mean: RobustMean) -> Sensitivity:
        """Mean derivative in the margins, size K.

        At a public w the K derivatives of the loss of a record are a function of that record alone.
        They are the gradient of one constant feature, and the same kernels force them onto the
        range of ``mean``. So the lemma of `means` holds, with K entries in place of (d + 1) K.
        """
        return self._mean(mean, self.outputs, "derivatives")

    def means(self, mean: RobustMean) -> Sensitivity:
        """Column means, size d (the lemma of `means`)."""
        return self._mean(mean, self.d, "means")

    def scores(self, count: int, mean: RobustMean) -> Sensitivity:
        """Mean losses of ``count`` candidates (the lemma of `means`, with a one-signed range)."""
        return self._mean(mean, count, "scores")

    def improvement(self, mean: RobustMean) -> Sensitivity:
        """Mean difference of the losses of two candidates, clamped; size 1 (lemma of `means`)."""
        if mean.range != Interval(mean.range.radius):
            raise InvalidInput("improvement needs a clamped range: use ClampedMean(threshold).")
        return self._mean(mean, 1, "improvement")

    def separations(self, mean: RobustMean) -> Sensitivity:
        """Absolute sums of derivatives times the sign of each column, size d K.

        A record adds c sign(x), with c in the range of ``mean``, which also contains -c. So the sum
        changes by no more than a sum of c, and its absolute value by no more than the sum.
        """
        if mean.range != Interval(mean.range.radius) or mean.blocks != 1:
            raise InvalidInput(
                "separations need a clamped range and one block: use ClampedMean(threshold)."
            )
        return self._mean(mean, self.d * self.outputs, "separations")

    def moments(self, radius: float, target: bool = False) -> Sensitivity:
        """Second moments of clipped (x, 1, y): upper triangle, off-diagonals times sqrt 2.

        For |u|, |v| <= 1 the distance of u u^T and v v^T is at most sqrt 2 in Frobenius norm,
        because their inner product (u.v)^2 is not negative.
        """
        columns = self.rows + target
        if not (radius > 0 and math.isfinite(radius)):
            raise InvalidInput(f"radius must be positive and finite, got {radius!r}.")
        R = 2.0**self.bits
        return self._answer(
            size=columns * (columns + 1) // 2,
            unit=radius * radius / R / self.expected,
            radius=Norms(math.inf, R, R),
            diameter=Norms(math.inf, math.nextafter(math.sqrt(2) * R, math.inf), math.inf),
            magnitude=self.most * 2**self.bits,
            question="moments",
            recipe=(("moments", float(radius), int(columns)),),
        )

    def histogram(self, columns: int, edges: int, pooled: bool = False) -> Sensitivity:
        """Counts of ``columns`` columns in ``edges`` + 1 cells each, size columns x cells.

        A record fills one cell per column. If ``pooled``, a record fills one cell of one column,
        and the columns are added: one cell of one histogram.
        """
        votes = 1 if pooled else columns
        size = votes * (edges + 1)
        recipe = (("histogram", int(columns), int(edges), bool(pooled)),)
        return self._counts(votes, size, "histogram", recipe)

    def _counts(self, votes: int, size: int, question: str, recipe: Recipe) -> Sensitivity:
        """Counts, of which a record adds 1 to at most ``votes``."""
        step = 2.0**self.bits
        diagonal = math.nextafter(math.sqrt(2 * votes) * step, math.inf)
        return self._answer(
            size=size,
            unit=1 / step,
            radius=Norms(votes * step, math.inf, step),
            diameter=Norms(2 * votes * step, diagonal, step),
            magnitude=self.most * 2**self.bits,
            one_signed=True,
            question=question,
            recipe=recipe,
        )

    def cell_counts(self, columns: int, edges: int, groups: int = 1) -> Sensitivity:
        """Counts of columns in ``edges`` + 1 cells each, in ``groups`` groups of rows.

        A record fills at most one cell per column, all in the one group that it is in. Replaced, it
        leaves these cells and fills as many others, in the same group or in another: each of 2 C
        counts moves by at most one, so l2 sqrt(2 C), however many groups there are.
        """
        size = groups * columns * (edges + 1)
        recipe = (("cell counts", int(columns), int(edges), int(groups)),)
        return self._counts(columns, size, "cell counts", recipe)

    def column_moments(self, columns: int, groups: int = 1) -> Sensitivity:
        """Sums of values z in [-1, 1] of columns and of their squares, in ``groups`` groups.

        A record adds (z, z^2) per column, in one group: radius sqrt 2 in l2. Replaced in its group
        it moves them by (a - b)^2 (1 + (a + b)^2) <= 4, squared, for |a - b| + |a + b| <= 2; moved
        to another group by (a^2 + a^4) + (b^2 + b^4) <= 4. So the diameter is 2 sqrt C. Numbers are
        rounded to the grid: at most half a step in each of 4 C coordinates, so sqrt C steps, or a
        whole one in each of 2 C, so sqrt(2 C).
        """
        R = 2.0**self.bits
        root = math.nextafter(math.sqrt(columns), math.inf)
        return self._answer(
            size=2 * groups * columns,
            unit=1 / R,
            radius=Norms(2 * columns * R, math.inf, R),
            diameter=Norms(4 * columns * R, 2 * root * (R + 1), 2 * R),
            magnitude=self.most * 2**self.bits,
            question="column moments",
            recipe=(("column moments", int(columns), int(groups)),),
        )

    def labels(self) -> Sensitivity:
        """Counts of the labels that one person can move: at most two for each row that counts.

        A row adds 1 to the count of its label. Replacing it changes two counts by 1.
        """
        counts = self.histogram(1, 2 * self.max_rows - 1)
        return replace(counts, one_signed=False, question="labels", recipe=(("labels",),))

    def derivative_norms(self, edges: int) -> Sensitivity:
        """Counts of norms of derivatives in ``edges`` + 1 cells; a record fills one cell."""
        recipe = (("derivative norms", int(edges)),)
        return replace(self.histogram(1, edges), question="derivative norms", recipe=recipe)

    def invalid_rows(self) -> Sensitivity:
        """The number of rows that count as zero, size 1.

        A record adds 0 or 1, so replacing it moves the count by at most 1, and so does emptying
        it, whether an empty slot is taken as nothing (0) or as a row of missing numbers (1).
        """
        step = 2.0**self.bits
        one = Norms(step, step, step)
        return self._answer(
            size=1,
            unit=2.0**-self.bits,
            radius=one,
            diameter=one,
            magnitude=self.most * 2**self.bits,
            one_signed=True,
            question="invalid rows",
            recipe=(("invalid rows",),),
        )

    def _answer(self, *, radius: Norms, diameter: Norms, **others: Any) -> Sensitivity:
        """Bounds for one row, made bounds for one person."""
        return Sensitivity(
            radius=radius.times(self.max_rows), diameter=diameter.times(self.max_rows), **others
        )

    def _mean(self, mean: RobustMean, size: int, question: str) -> Sensitivity:
        mean = checked_mean(mean)
        if mean.blocks > self.n:
            raise InvalidInput(
                f"Cannot deal {self.n} rows into {mean.blocks} blocks: take at most {self.n}."
            )
        contribution = mean.range
        one_signed = isinstance(contribution, Interval) and contribution.one_signed
        if one_signed != (question == "scores"):
            raise InvalidInput(
                "A one-signed range is for scores(); use ClampedMean here."
                if one_signed
                else "scores need a one-signed range: use BoundedMean(bound)."
            )
        radius, diameter = contribution.norms(size, self.bits)
        middle = 2 - mean.blocks % 2  # block sums that the median averages, kept as their sum
        largest = 2**self.bits if isinstance(contribution, Ball) else contribution.steps(self.bits)
        return self._answer(
            size=size,
            unit=contribution.radius * 2.0**-self.bits * mean.blocks / middle / self.expected,
            radius=radius,
            diameter=diameter,
            magnitude=self.most * largest * middle,
            one_signed=one_signed and mean.blocks == 1,
            question=question,
            recipe=(("mean", question, int(size), int(mean.blocks), *_named(contribution)),),
        )
