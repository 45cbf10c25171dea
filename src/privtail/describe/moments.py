"""Counts, means and variances of columns, group by group, with the error of noise and clipping."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from privtail.summaries.column_ranges import ColumnRanges
from privtail.summaries.histograms import usable_rows
from privtail.trusted.curator import Curator
from privtail.trusted.events import Plan, Round
from privtail.trusted.maps import FeatureMap
from privtail.trusted.mechanisms.noise import GaussianNoise
from privtail.trusted.problem import Problem
from privtail.trusted.sensitivity import Sensitivity

Doubles = NDArray[np.float64]

COUNT_FRACTION = 0.05
"""Each release of counts costs this part of what the sums cost (replace-one)."""
SIGN = np.array([0.0, 5e-324])
"""Edges between which only zero lies."""
COUNT_SNR = 5.0
"""Sums are divided by a count only if it exceeds this many standard deviations of its noise."""
RANGES = ColumnRanges(cells=True)


@dataclass(frozen=True, eq=False)
class ReleasedMoments:
    """Counts, means and variances of columns as released: arrays (groups, columns).

    Attributes
    ----------
    count, zeros : cells that hold a number, and that hold zero; ``count_std`` the noise of either
        of them at most.
    mean, noise_std : of the numbers as clipped.
    variance, variance_std : the same of their variance.
    below, above : how far the mean may be off by clipping; infinite where nothing bounds it.
    squares : how much larger the variance may be, which clipping can only lessen.
    kurtosis : (columns,) of what stands out from the noise, and at least 3.
    reliable : whether ``below`` and ``above`` are finite, and noise hides neither the column nor
        the count. Where it hides the count, means are NaN.
    """

    count: Doubles
    zeros: Doubles
    count_std: float
    mean: Doubles
    noise_std: Doubles
    variance: Doubles
    variance_std: Doubles
    below: Doubles
    above: Doubles
    squares: Doubles
    kurtosis: Doubles
    reliable: NDArray[np.bool_]

    @property
    def deviation(self) -> Doubles:
        """The root of the variance."""
        return np.sqrt(self.variance)


@dataclass(frozen=True, kw_only=True)
class ColumnMoments:
    """Counts of columns, their ranges, and sums of their values, in disjoint groups.

    All groups share the ranges of the whole columns. What all rows of a group lose by clipping is
    at most what all rows of the table lose. So the bound for the mean of a group is that of the
    whole column, times the ratio of all rows to those of the group.

    **Privacy.** Gaussian releases of cell counts and column moments (`Problem`): a record is in one
    group, so their noise does not grow with the number of groups (parallel composition). Together
    they cost what one release of noise ``multiplier`` costs.
    """

    columns: tuple[int, ...]
    by: tuple[tuple[int, ...], ...] = ()

    @property
    def groups(self) -> int:
        """The number of groups."""
        return math.prod(map(len, self.by))

    def plan(self, multiplier: float, problem: Problem) -> Plan:
        """All releases."""
        counts, sums = self._counting(multiplier), self._summing(multiplier)
        return (
            *(Round(stage="counts", events=(counts.event(x),)) for x in self._counts(problem)),
            *RANGES.plan(multiplier, problem),
            Round(stage="sums", events=(sums.event(self._sums(problem)),)),
        )

    def run(self, curator: Curator, multiplier: float) -> ReleasedMoments:
        """Release the counts, ranges and sums, and compute the moments."""
        problem, own = curator.problem, list(self.columns)
        whole, std = self._counted(curator, multiplier, ())
        signs = self._counted(curator, multiplier, self.by)[0] if self.by else whole
        n, every = problem.n, whole[0]
        parts = np.array([usable_rows(one, std, n)[0] for one in every])
        summary, ranges = RANGES.run(curator, multiplier, parts)
        summary, ranges = summary.take(own), [ranges[j] for j in own]
        scales, offsets = np.ones(problem.d), np.zeros(problem.d)
        scales[own], offsets[own] = 1 / summary.tails, -summary.centres / summary.tails
        noise, batch = (
            self._summing(multiplier),
            curator.everyone(FeatureMap.of(problem.d, scales, offsets)),
        )
        answer = batch.column_moments(self.columns, self.by)
        sum_std = noise.event(answer.sensitivity).std
        sums = answer.release(noise).reshape(self.groups, len(own), 2)
        count, count_std = signs.sum(axis=-1), math.sqrt(3) * std
        known = count > COUNT_SNR * count_std
        rows = np.where(known, count, np.nan)
        first, second = sums[..., 0] / rows, sums[..., 1] / rows
        slope = second - 2 * first**2  # the derivative of the variance in the logarithm of rows
        lost = np.array([r.beyond(r.distance)[:, 1:] for r in ranges]).transpose(1, 2, 0)
        lost = np.where(known, lost[:, :, None] * (parts * n) / rows, np.inf)
        (below, below_squares), (above, above_squares) = lost
        return ReleasedMoments(
            count, signs[..., 1], count_std,
            summary.centres + summary.tails * first,
            summary.tails * np.hypot(sum_std, first * count_std) / rows,
            summary.tails**2 * np.maximum(second - first**2, 0.0),
            summary.tails**2 * np.hypot(sum_std * np.hypot(1, 2 * first), slope * count_std) / rows,
            below, above, below_squares + above_squares,
            np.array([r.kurtosis() for r in ranges]),
            known & summary.detected & np.isfinite(below) & np.isfinite(above),
        )  # fmt: skip

    def _counts(self, problem: Problem) -> tuple[Sensitivity, ...]:
        """Counts of all rows, and of the rows of each group if there are groups."""
        kinds = (1, self.groups) if self.by else (1,)
        return tuple(problem.cell_counts(len(self.columns), len(SIGN), k) for k in kinds)

    def _sums(self, problem: Problem) -> Sensitivity:
        return problem.column_moments(len(self.columns), self.groups)

    def _counted(
        self, curator: Curator, multiplier: float, by: tuple[tuple[int, ...], ...]
    ) -> tuple[Doubles, float]:
        """Values below zero, at zero and above, (groups, columns, 3), and the noise of each."""
        noise, edges = self._counting(multiplier), np.tile(SIGN, (len(self.columns), 1))
        answer = curator.everyone().cell_counts(self.columns, edges, by)
        std = noise.event(answer.sensitivity).std
        return answer.release(noise).reshape(-1, len(self.columns), 3), std

    def _counting(self, multiplier: float) -> GaussianNoise:
        return GaussianNoise(multiplier / math.sqrt(2 * COUNT_FRACTION))

    def _summing(self, multiplier: float) -> GaussianNoise:
        """As much noise as one mean has: a value and its square are sqrt 2 long, and not 1."""
        return GaussianNoise(multiplier / math.sqrt(2))
