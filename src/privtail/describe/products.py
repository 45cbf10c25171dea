"""Covariances and correlations of columns, from private second moments of clipped rows."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from privtail.second_moments import symmetric
from privtail.summaries.column_ranges import ColumnRanges, hiding_rows
from privtail.summaries.histograms import ROWS_MISSING, Cells, usable_rows
from privtail.summaries.mean_intervals import NOISE_BOUND, SIGNIFICANT, CutRange, WindowHistogram
from privtail.trusted.curator import Curator
from privtail.trusted.events import Event, Plan, Round
from privtail.trusted.maps import FeatureMap
from privtail.trusted.mechanisms.noise import GaussianNoise
from privtail.trusted.problem import Problem

Doubles = NDArray[np.float64]
Integers = NDArray[np.int64]

COUNT_FRACTION = 0.03
"""The count of rows costs this part of what the products cost (replace-one)."""
RANGES = ColumnRanges(share=0.15)
"""They get less than those of means, because `TAILS` bound the bias. With .3, intervals of
correlations were 6 % wider in the geometric mean of 24 cells of `benchmarks.covariances`.
"""
TAIL_FRACTION = 0.35
"""Counts of `TAILS` cost this part of what the products cost (replace-one)."""

FARTHEST = 2.0**200
"""Clipping distances have squares that are numbers."""

LEAST_WEIGHT = 0.5
"""Noise may show a mean weight of clipped rows below this one; means are not divided by it."""

HIDDEN = (
    "Noise may hide about {rows:,} rows that lie far from all others, such as codes for missing "
    "numbers. Covariances, correlations and finite ends of intervals do not allow for them: make "
    "codes missing first."
)

_DISTANCES = 2.0 ** (-np.arange(10, -1, -1) / 2)
TAILS = Cells(np.concatenate([-_DISTANCES[::-1], _DISTANCES]))
"""Cells of distances from the centre, in units of the range of a column."""

MOST_CLOSER = 4
"""Clipping distances are at most this many cells of `TAILS` less than the range.

Cells that hold no more rows than noise explains need not lie inside. If they did, correlations
would be 80 % farther off in the geometric mean of 24 cells of `benchmarks.covariances`, and
intervals 6 % wider.
"""


@dataclass(frozen=True, eq=False)
class Products:
    """Covariances (d, d) as released, and the errors that they may have.

    Clipping takes away a matrix of weighted products of rows, which is positive semidefinite: true
    variances are at most ``lost`` larger, and no covariance differs by more than the root of the
    product of what two variances lose.

    Attributes
    ----------
    value : of rows as clipped.
    noise_std, sampling_std : deviations of each.
    lost : (d,) how much larger a variance may be; infinite where nothing bounds it.
    """

    value: Doubles
    noise_std: Doubles
    sampling_std: Doubles
    lost: Doubles

    def covariances(self, z: float) -> tuple[Doubles, Doubles]:
        """The ends of the intervals of the covariances, ``z`` deviations wide."""
        half_width = z * np.hypot(self.noise_std, self.sampling_std)
        with np.errstate(invalid="ignore"):  # 0 times infinity
            lost = np.sqrt(np.outer(self.lost, self.lost))
        lost = np.where(np.isnan(lost), np.inf, lost)
        low, high = self.value - half_width - lost, self.value + half_width + lost
        np.fill_diagonal(low, np.maximum(np.diag(self.value - half_width), 0.0))
        return low, high

    def correlations(self, z: float) -> tuple[Doubles, Doubles, Doubles]:
        """Correlations and the ends of their intervals, ``z`` deviations wide.

        Noise moves a correlation by what it moves the covariance, and by half of its size times
        what it moves the two variances; each relative to the deviations.
        """
        own = np.diag(self.value)
        with np.errstate(all="ignore"):
            size = np.sqrt(np.outer(own, own))
            value = np.where(size > 0, np.clip(self.value / size, -1.0, 1.0), 0.0)
            noise, half = self.noise_std / size, np.abs(value) / 2
            spread = np.sqrt(
                noise**2 + half**2 * np.add.outer(np.diag(noise) ** 2, np.diag(noise) ** 2)
            )
            fourth = self.sampling_std / size  # of an elliptical law: (1 - r^2) of it
            sampled = fourth * (1 - value**2) / np.sqrt(1 + value**2)
            half_width = z * np.hypot(spread, sampled)
            low = -_highest(-value, self.lost / own) - half_width
            high = _highest(value, self.lost / own) + half_width
        low = np.where(low > -1, low, -1.0)  # also where it is not a number
        high = np.where(high < 1, high, 1.0)
        for table in (value, low, high):
            np.fill_diagonal(table, 1.0)
        return value, low, high


@dataclass(frozen=True)
class MeanProducts:
    """Rows that count, ranges of columns, and mean products of rows clipped in l2 norm.

    **How it clips.** With z = (x - centre) / distance a row u = (z, 1) is clipped to the radius
    sqrt(d + 1). So its product has the weight w = min(1, (d + 1) / |u|^2), and the mean of
    (1 - w) u u' is taken away. It is positive semidefinite. So the covariance matrix exceeds the
    weighted one by such a matrix, too, and a variance exceeds the weighted one by at most the mean
    of (1 - w) (z_j - m_j)^2, where m are the weighted means. Of this sum, z_j^2 has at most the sum
    over all columns of what z^2 exceeds 1 by. It also has at most what z_j^2 exceeds 1 by and the
    part of the rows that are clipped.

    **Privacy.** Gaussian releases of a count, of column histograms (`ColumnRanges`, and of what is
    clipped), and of clipped second moments (`Problem.moments`). Together they cost what one of
    noise ``multiplier`` costs.
    """

    def plan(self, multiplier: float, problem: Problem) -> Plan:
        """All releases."""
        count = _counting(multiplier, COUNT_FRACTION).event(problem.histogram(1, 1))
        tails = self._tail_event(multiplier, problem)
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
        tails, tail_std = self._tails(curator, _map(summary.centres, ends), multiplier)
        cells = np.array([_hidden_cells(own, tail_std) for own in tails])
        ends *= 2.0 ** (-cells / 2)
        map_ = _map(summary.centres, ends)
        answer, noise = curator.everyone(map_).moments(radius), _summing(multiplier)
        std = noise.event(answer.sensitivity).std / part
        released = symmetric(answer.release(noise) / part, d + 1)
        means = released[:d, d] / min(max(released[d, d], LEAST_WEIGHT), 1.0)
        value = released[:d, :d] - np.outer(means, released[:d, d])
        np.fill_diagonal(value, np.maximum(np.diag(value), 0.0))
        noise_std = np.where(np.eye(d, dtype=np.bool_), std, std / math.sqrt(2))
        of_means = np.hypot.outer(means, means) * std / math.sqrt(2)
        noise_std = np.hypot(np.hypot(noise_std, of_means), np.abs(value) * part_std / part)
        lost = _lost(ranges, tails, tail_std, cells, part * n, means)
        missing = part <= ROWS_MISSING * part_std  # no row may count
        lost[missing | (summary.tails > FARTHEST)] = np.inf
        fourth = np.array([r.kurtosis() for r in ranges])
        sampled = _sampled(value, fourth) * math.sqrt(problem.max_rows / max(part * n, 1.0))
        units = np.outer(ends, ends)
        return Products(units * value, units * noise_std, units * sampled, ends**2 * lost)

    def hiding(self, multiplier: float, problem: Problem) -> tuple[str, ...]:
        """A note of how many rows the counts beyond both ends of a range may hide."""
        return hiding_rows(HIDDEN, math.sqrt(2) * self._tail_event(multiplier, problem).std)

    @staticmethod
    def _tail_event(multiplier: float, problem: Problem) -> Event:
        """The release of the counts of `TAILS`."""
        noise = _counting(multiplier, TAIL_FRACTION)
        return noise.event(problem.histogram(problem.d, len(TAILS.edges)))

    def _tails(
        self, curator: Curator, map_: FeatureMap, multiplier: float
    ) -> tuple[Doubles, float]:
        """Counts (d, cells) of distances from the centre of each column, and their noise."""
        problem, noise = curator.problem, _counting(multiplier, TAIL_FRACTION)
        answer = curator.everyone(map_).histogram(range(problem.d), TAILS.edges)
        std = self._tail_event(multiplier, problem).std
        return answer.release(noise).reshape(problem.d, -1), std


def _radius(problem: Problem) -> float:
    return math.sqrt(problem.d + 1)


def _counting(multiplier: float, fraction: float) -> GaussianNoise:
    return GaussianNoise(multiplier / math.sqrt(2 * fraction))


def _summing(multiplier: float) -> GaussianNoise:
    """Relative to the squared radius; it costs as much as one mean."""
    return GaussianNoise(multiplier / math.sqrt(2))


def _map(centres: Doubles, ends: Doubles) -> FeatureMap:
    return FeatureMap.of(len(ends), 1 / ends, -centres / ends)


def _hidden_cells(counts: Doubles, std: float) -> int:
    """How many cells of `TAILS` inside of the range hold no more rows than noise explains."""
    inside = counts[1 : 1 + MOST_CLOSER] + counts[-2 : -2 - MOST_CLOSER : -1]
    shown = inside > SIGNIFICANT * math.sqrt(2) * std
    return int(np.argmax(shown)) if shown.any() else MOST_CLOSER


def _lost(
    ranges: list[CutRange], counts: Doubles, std: float, cells: Integers, rows: float,
    means: Doubles,
) -> Doubles:  # fmt: skip
    """(d,) how much larger variances of z may be than those of clipped rows.

    ``counts`` (d, cells) of the ``rows`` lie in the cells of `TAILS`, each with noise ``std``;
    columns are clipped so many ``cells`` closer than their ranges. ``means`` are those of clipped
    rows.
    """
    beyond = np.array([
        (own[: 1 + k].sum(), own[-1 - k :].sum()) for own, k in zip(counts, cells, strict=True)
    ])  # fmt: skip
    stds = std * np.sqrt(1.0 + np.column_stack([cells, cells]))
    most = np.maximum(beyond, 0.0) + NOISE_BOUND * stds
    excess = np.full_like(beyond, math.inf)
    for j, one in enumerate(ranges):
        closer = 2.0 ** (-cells[j] / 2)
        tails = WindowHistogram(TAILS, 0.0, 1 / closer, counts[j], np.full_like(counts[j], std))
        recounted = one.recounted(tails, closer * one.distance)
        for k in np.flatnonzero(np.isfinite(one.beyond(one.distance)[:, 2])):
            excess[j, k] = recounted.excess((-1, 1)[k], most[j, k])
    clipped = min(_at_most(np.ones_like(beyond), beyond, stds) / rows, 1.0)
    every = _at_most(excess, beyond, stds) / rows
    own = np.array([_at_most(*x) for x in zip(excess, beyond, stds, strict=True)]) / rows
    lost = np.minimum(every, own + clipped)
    return np.asarray((np.sqrt(lost) + np.abs(means) * math.sqrt(clipped)) ** 2)


def _at_most(weights: Doubles, counts: Doubles, stds: Doubles) -> float:
    """An upper bound of a weighted sum of counts, by the law of their noise."""
    if not np.isfinite(weights).all():
        return math.inf
    noise = NOISE_BOUND * float(np.linalg.norm(weights * stds))
    return max(float(np.sum(weights * counts)), 0.0) + noise


def _highest(value: Doubles, lost: Doubles) -> Doubles:
    """The highest correlations if variances may be ``lost`` larger, relative to their values.

    Of (r + sqrt(x y)) / sqrt((1 + x) (1 + y)), for x and y from zero to what is lost. For r above
    zero it falls where one of them exceeds the other by more than the factor 1 / r^2.
    """
    x, y = np.broadcast_arrays(lost[:, None], lost[None, :])
    with np.errstate(all="ignore"):
        most = np.maximum(value, 0.0) ** -2.0
        ends = ((x, np.fmin(y, most * x)), (np.fmin(x, most * y), y))
        found = [(value + np.sqrt(a * b)) / np.sqrt((1 + a) * (1 + b)) for a, b in ends]
    return np.asarray(np.where(np.isfinite(x * y), np.fmax(*found), 1.0))


def _sampled(value: Doubles, fourth: Doubles) -> Doubles:
    """Deviation of the product of two entries, for an elliptical law with such kurtoses."""
    own = np.diag(value)
    heavy = np.sqrt(np.outer(fourth, fourth)) / 3
    variance = heavy * (np.outer(own, own) + 2 * value**2) - value**2
    return np.asarray(np.sqrt(np.maximum(variance, 0.0)))
