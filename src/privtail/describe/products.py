"""Covariances and correlations of columns, from private second moments of clipped rows."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from privtail.second_moments import symmetric
from privtail.summaries.column_ranges import ColumnRanges
from privtail.summaries.histograms import ROWS_MISSING, usable_rows
from privtail.summaries.mean_intervals import NOISE_BOUND
from privtail.trusted.curator import Curator
from privtail.trusted.events import Plan, Round
from privtail.trusted.maps import FeatureMap
from privtail.trusted.mechanisms.noise import GaussianNoise
from privtail.trusted.problem import Problem

Doubles = NDArray[np.float64]

COUNT_FRACTION = 0.03
"""The count of rows costs this part of what the products cost (replace-one)."""
RANGES = ColumnRanges(share=0.15)
"""They get less than those of means, because counts of clipped values bound the bias. It is a part
of what ranges and products cost together, and 10 % of all. With .3, correlations were 17 % farther
off in the median of 24 cells of `benchmarks.covariances`, and intervals were wider.
"""
TAIL_FRACTION = 0.5
"""Counts of clipped values, which bound the bias of clipping, cost this part of the products' cost
(replace-one)."""

FARTHEST = 2.0**200
"""Clipping distances have squares that are numbers."""


@dataclass(frozen=True, eq=False)
class Products:
    """Covariances (d, d) as released, and the errors that they may have.

    Attributes
    ----------
    value : of rows as clipped.
    noise_std, sampling_std : deviations of each.
    below, above : how far clipping may have moved them; infinite where nothing bounds it.
    """

    value: Doubles
    noise_std: Doubles
    sampling_std: Doubles
    below: Doubles
    above: Doubles

    def correlations(self, z: float) -> tuple[Doubles, Doubles, Doubles]:
        """Correlations and the ends of their intervals, ``z`` deviations wide.

        A correlation moves by what its covariance moves, and by half of its size times what the two
        variances move; each relative to the deviations.
        """
        own = np.diag(self.value)
        with np.errstate(all="ignore"):
            size = np.sqrt(np.outer(own, own))
            value = np.where(size > 0, np.clip(self.value / size, -1.0, 1.0), 0.0)
            noise, lost = self.noise_std / size, np.maximum(self.below, self.above) / size
            half = np.abs(value) / 2
            spread = np.sqrt(
                noise**2 + half**2 * np.add.outer(np.diag(noise) ** 2, np.diag(noise) ** 2)
            )
            fourth = self.sampling_std / size  # of an elliptical law: (1 - r^2) of it
            sampled = fourth * (1 - value**2) / np.sqrt(1 + value**2)
            lost = lost + half * np.add.outer(np.diag(lost), np.diag(lost))
            half_width = z * np.hypot(spread, sampled) + lost
        half_width = np.where(np.isfinite(half_width), half_width, 2.0)
        low, high = np.maximum(value - half_width, -1.0), np.minimum(value + half_width, 1.0)
        for table in (value, low, high):
            np.fill_diagonal(table, 1.0)
        return value, low, high


@dataclass(frozen=True)
class MeanProducts:
    """Rows that count, ranges of columns, and mean products of rows clipped in l2 norm.

    **How it clips.** With z = (x - centre) / distance a row u = (z, 1) is clipped to the radius
    sqrt(d + 1). It is longer only where the sum of all z^2 - 1 is above zero. Let S be the sum over
    columns of the mean by which z^2 exceeds 1. Clipping takes at most S / 2 from a mean of z_j z_k,
    and at most S from one of z_j^2. A second bound is made of what the own columns lose, and of the
    part of the rows that are clipped (`_lost`).

    **Privacy.** Gaussian releases of a count, of column histograms (`ColumnRanges`, and of what is
    clipped), and of clipped second moments (`Problem.moments`). Together they cost what one of
    noise ``multiplier`` costs.
    """

    def plan(self, multiplier: float, problem: Problem) -> Plan:
        """All releases."""
        count = _counting(multiplier, COUNT_FRACTION).event(problem.histogram(1, 1))
        tails = _counting(multiplier, TAIL_FRACTION).event(problem.histogram(problem.d, 2))
        products = _summing(multiplier).event(problem.moments(_radius(problem)))
        return (
            Round(stage="rows that count", events=(count,)),
            *RANGES.plan(multiplier, problem),
            Round(stage="tails", events=(tails,)),
            Round(stage="products", events=(products,)),
        )

    def run(self, curator: Curator, multiplier: float) -> Products:
        """Release the count, ranges, tails and products, and compute the covariances."""
        problem, noise = curator.problem, _counting(multiplier, COUNT_FRACTION)
        n, d, radius = problem.n, problem.d, _radius(problem)
        answer = curator.everyone().histogram((0,), [0.0])
        std = noise.event(answer.sensitivity).std
        part, part_std = usable_rows(answer.release(noise), std, n)
        summary, ranges = RANGES.run(curator, multiplier, part)
        ends = np.minimum(summary.tails, FARTHEST)
        map_ = FeatureMap.of(d, 1 / ends, -summary.centres / ends)
        rows = self._clipped(curator, map_, multiplier)
        answer, noise = curator.everyone(map_).moments(radius), _summing(multiplier)
        std = noise.event(answer.sensitivity).std / part
        released = symmetric(answer.release(noise) / part, d + 1)
        means, value = released[:d, d], released[:d, :d]
        value = value - np.outer(means, means)
        np.fill_diagonal(value, np.maximum(np.diag(value), 0.0))
        noise_std = np.where(np.eye(d, dtype=np.bool_), std, std / math.sqrt(2))
        of_means = np.hypot.outer(means, means) * std / math.sqrt(2)
        noise_std = np.hypot(np.hypot(noise_std, of_means), np.abs(value) * part_std / part)
        own = np.array([r.squares(*x).sum() for r, *x in zip(ranges, ends, rows, strict=True)])
        if part <= ROWS_MISSING * part_std:  # it may be that no row counts: nothing bounds an entry
            own = np.full(d, np.inf)
        below, above = _lost(own / ends**2, float(rows.sum()) / (part * n), means, radius)
        fourth = np.array([r.kurtosis() for r in ranges])
        units = np.outer(ends, ends)
        sampled = _sampled(value, fourth) * math.sqrt(problem.max_rows / max(part * n, 1.0))
        return Products(*(units * x for x in (value, noise_std, sampled, below, above)))

    def _clipped(self, curator: Curator, map_: FeatureMap, multiplier: float) -> Doubles:
        """How many rows lie beyond both ends of each column, (d, 2), at most."""
        noise, d = _counting(multiplier, TAIL_FRACTION), curator.problem.d
        answer = curator.everyone(map_).histogram(range(d), [-1.0, 1.0])
        std = noise.event(answer.sensitivity).std
        counts = answer.release(noise).reshape(d, 3)[:, [0, 2]]
        return np.maximum(counts, 0.0) + NOISE_BOUND * std


def _radius(problem: Problem) -> float:
    return math.sqrt(problem.d + 1)


def _counting(multiplier: float, fraction: float) -> GaussianNoise:
    return GaussianNoise(multiplier / math.sqrt(2 * fraction))


def _summing(multiplier: float) -> GaussianNoise:
    """Relative to the squared radius; it costs as much as one mean."""
    return GaussianNoise(multiplier / math.sqrt(2))


def _lost(own: Doubles, rows: float, means: Doubles, radius: float) -> tuple[Doubles, Doubles]:
    """How far covariances of z may lie below, and above, what was released: clipping alone.

    ``own``: what mean squares of each column exceed 1 by. ``rows``: the part that is clipped.
    """
    every, rows = own.sum(), min(rows, 1.0)
    pairs = np.minimum(every, np.add.outer(own, own) + 2 * rows) / 2
    np.fill_diagonal(pairs, np.minimum(every, own + rows))
    with np.errstate(invalid="ignore"):  # 0 times infinity: nothing bounds it
        of_means = np.minimum(every / radius, np.sqrt(rows * (own + rows)))
        moved = np.outer(np.abs(means), of_means)
        moved = moved + moved.T + np.outer(of_means, of_means)
    moved = np.where(np.isnan(moved), np.inf, moved)
    above = pairs + moved
    below = above.copy()
    np.fill_diagonal(below, np.diag(moved))
    return below, above


def _sampled(value: Doubles, fourth: Doubles) -> Doubles:
    """Deviation of the product of two entries, for an elliptical law with such kurtoses."""
    own = np.diag(value)
    heavy = np.sqrt(np.outer(fourth, fourth)) / 3
    variance = heavy * (np.outer(own, own) + 2 * value**2) - value**2
    return np.asarray(np.sqrt(np.maximum(variance, 0.0)))
