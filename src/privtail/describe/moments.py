"""Means and deviations of columns, group by group: what noise hides is clipped, and said."""

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

COUNT_SHARE = 0.05
"""What counts of rows and of zeros cost, beside the sums."""
SIGN = np.array([0.0, 5e-324])
"""Edges between which only zero lies."""
SEEN = 5.0
"""So many deviations of its noise a count needs, to divide by."""
RANGES = ColumnRanges(cells=True)


@dataclass(frozen=True, eq=False)
class Seen:
    """What was released of columns, group by group: arrays (groups, columns).

    Attributes
    ----------
    count, zeros : cells that hold a number, and that hold zero; ``count_std`` the noise of either
        of them at most.
    mean, noise_std : of the numbers as clipped.
    variance, variance_std : the same of their variance.
    below, above : how far the mean may be off by clipping; infinite where nothing bounds it.
    squares : how much larger the variance may be, which clipping can only lessen.
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
    reliable: NDArray[np.bool_]

    @property
    def deviation(self) -> Doubles:
        """The root of the variance."""
        return np.sqrt(self.variance)


@dataclass(frozen=True, kw_only=True)
class ColumnMoments:
    """Counts of columns, their ranges, and sums of their values, in disjoint groups.

    All groups share the ranges of the whole columns. What all rows of a group lose by clipping is
    at most what all rows of the table lose, so its mean loses so much more as it has fewer rows.

    **Privacy.** Gaussian releases of cell counts and column moments (`Problem`): a record is in one
    group, so their noise does not grow with the number of groups (parallel composition). Together
    they cost what one release of noise ``multiplier`` costs.
    """

    columns: tuple[int, ...]
    by: tuple[tuple[int, ...], ...] = ()

    @property
    def groups(self) -> int:
        """How many there are."""
        return math.prod(map(len, self.by))

    def plan(self, multiplier: float, problem: Problem) -> Plan:
        """All releases."""
        counts, sums = self._counting(multiplier), self._summing(multiplier)
        return (
            *(Round(stage="counts", events=(counts.event(x),)) for x in self._counts(problem)),
            *RANGES.plan(multiplier, problem),
            Round(stage="sums", events=(sums.event(self._sums(problem)),)),
        )

    def run(self, curator: Curator, multiplier: float) -> Seen:
        """What the releases say."""
        problem, own = curator.problem, list(self.columns)
        whole, std = self._counted(curator, multiplier, ())
        signs = self._counted(curator, multiplier, self.by)[0] if self.by else whole
        n, every = problem.n, whole[0]
        parts = np.array([usable_rows(one, std, n)[0] for one in every])
        found, reaches = RANGES.run(curator, multiplier, parts)
        found, reaches = found.take(own), [reaches[j] for j in own]
        scales, offsets = np.ones(problem.d), np.zeros(problem.d)
        scales[own], offsets[own] = 1 / found.tails, -found.centres / found.tails
        noise, batch = (
            self._summing(multiplier),
            curator.everyone(FeatureMap.of(problem.d, scales, offsets)),
        )
        answer = batch.column_moments(self.columns, self.by)
        sum_std = noise.event(answer.sensitivity).std
        sums = answer.release(noise).reshape(self.groups, len(own), 2)
        count, count_std = signs.sum(axis=-1), math.sqrt(3) * std
        known = count > SEEN * count_std
        rows = np.where(known, count, np.nan)
        first, second = sums[..., 0] / rows, sums[..., 1] / rows
        unsure = second - 2 * first**2  # the derivative of the variance in the logarithm of rows
        lost = np.array([r.beyond(r.distance)[:, 1:] for r in reaches]).transpose(1, 2, 0)
        lost = np.where(known, lost[:, :, None] * (parts * n) / rows, np.inf)
        (below, below_squares), (above, above_squares) = lost
        return Seen(
            count, signs[..., 1], count_std,
            found.centres + found.tails * first,
            found.tails * np.hypot(sum_std, first * count_std) / rows,
            found.tails**2 * np.maximum(second - first**2, 0.0),
            found.tails**2 * np.hypot(sum_std * np.hypot(1, 2 * first), unsure * count_std) / rows,
            below, above, below_squares + above_squares,
            known & found.detected & np.isfinite(below) & np.isfinite(above),
        )  # fmt: skip

    def _counts(self, problem: Problem) -> tuple[Sensitivity, ...]:
        """Of all rows, and of those of each group if there are any."""
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
        return GaussianNoise(multiplier / math.sqrt(2 * COUNT_SHARE))

    def _summing(self, multiplier: float) -> GaussianNoise:
        """As much noise as one mean has: a value and its square are sqrt 2 long, and not 1."""
        return GaussianNoise(multiplier / math.sqrt(2))
