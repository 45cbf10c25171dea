"""Private location and scale of every column, from histograms that go from coarse to fine.

The signal-to-noise ratio (SNR) of a histogram is n over the standard deviation of the noise of a
count.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Self

import numpy as np
from numpy.typing import NDArray

from privtail.losses import LABELS, Targets
from privtail.summaries.histograms import (
    COARSE,
    DISTANCES,
    FINE,
    POWERS,
    Cells,
    nearly_none,
    usable_rows,
)
from privtail.summaries.mean_intervals import WindowHistogram
from privtail.summaries.prior import described
from privtail.summaries.summary import Summary
from privtail.trusted.batch import Batch
from privtail.trusted.curator import Curator
from privtail.trusted.events import Event, Plan, Round
from privtail.trusted.mechanisms.noise import GaussianNoise
from privtail.trusted.problem import Problem
from privtail.trusted.sampling import Everyone

Doubles = NDArray[np.float64]
Integers = NDArray[np.int64]

FINE_SNR = 30
"""SNR from which refined histograms have the finer cells, and tails are measured apart."""

LEAST_TARGET, MOST_TARGET = 0.3, 0.6
"""Bounds of the budget fraction of the target, whose location and scale matter most."""

LOCATING_SNR = 12
"""SNR from which a column can be located wherever it lies."""

TARGET_SNR = 16
"""SNR that the target gets beside features, as far as the bounds of its fraction admit."""

MAX_SNR = 2_000
"""SNR that is enough for every column, even for one that is nearly constant."""

LEAST_TAIL = 3.0
"""The tail of a column with refined histograms is at least this many scales: noise hides it."""

LEAST_DETECTED = 2 / 3
"""The part of the records that must be detected before the next histogram is refined.

Then the middle half of the detected records holds the median of all: the part that was not detected
and a quarter of the rest, 1/3 + 2/3 / 4, are one half.
"""

POOLING_SNR = 6.0
"""Below this SNR of a feature, one histogram and one scale for all features are more accurate."""

POOLING_SNR_SELECTING = 12.0
"""The same before a selection of features, which one scale for all leaves comparable."""

POOLING_SNR_LABELS = 2.0
"""The same for labels. It is lower for two reasons: features that are alike are described together
anyway, with a centre; and features in other units that are detected keep their own scale.
"""

AWAY = 2.0
"""A column lies far from zero if its median does by this many scales.

Then powers of two around zero are wide beside its scale, and say little about its tails.
"""

_TARGET = (-1,)


@dataclass(frozen=True, kw_only=True)
class ColumnSummaries:
    """Median and spread of every column, by noisy histograms over public edges.

    No bound is needed (docs/mathematics.md#histograms-of-powers). The first histogram has signed
    powers of two for edges, the same for any data. ``zooms`` more of the same cost follow.
    Indicators of declared categories need none: their centre is 0 and their scale 1/2.

    A column that lies far from zero, inside one power of two, is detected without a scale. Its next
    histogram is refined: its window lies around the cells of the middle half of the records, and
    cuts them into 32 cells, or into 64 from `FINE_SNR` on. A column that has a scale, or was not
    detected well enough, gets the same histogram again, and the counts are added. A feature without
    a scale at the end is nearly constant. It keeps the spread that the powers of two show, and is
    ``single`` if a refined histogram, too, shows one cell.

    If the SNR of a feature is below ``pooling_snr``, histograms are pooled: every record counts for
    one feature only, and all features share one window and one scale. Columns that noise hides
    among the powers of two are described by the posterior of an empirical-Bayes prior
    (`ColumnPrior`).

    Parameters
    ----------
    target : whether the target is summarized, too. It has a budget fraction of its own, which is
        larger if noise is.
    zooms : how many histograms follow the first.
    max_snr : the largest SNR of the mean of all histograms. Budget beyond it is not spent.
    pooling_snr : the SNR of a feature below which histograms are pooled.
    narrow : whether a nearly constant feature is described by the cell that holds it, for clipping,
        and tails of features far from zero are measured from the median (`DISTANCES`), as those of
        the target always are.
    cells : whether a cell that is not finite leaves its own column alone, and not its row
        (`Problem.cell_counts`). Then histograms are never pooled.

    **Privacy.** Edges follow from earlier releases. In each round one Gaussian release of the d
    histograms of features (l2 sensitivity sqrt(2 d) under replace-one) and one of the target's;
    together they cost what one release of noise ``multiplier`` costs, or less.
    """

    target: bool = False
    zooms: int = 3
    max_snr: int = 100_000
    pooling_snr: float = POOLING_SNR
    narrow: bool = False
    cells: bool = False

    @classmethod
    def of(cls, targets: Targets, *, selecting: bool = False) -> Self:
        """For a model of this kind of target; ``selecting`` if some features will be selected.

        The target is summarized, too, if it is numeric.
        """
        every = POOLING_SNR_LABELS if targets in LABELS else POOLING_SNR
        pooling_snr = POOLING_SNR_SELECTING if selecting else every
        return cls(target=targets == "real", max_snr=MAX_SNR, pooling_snr=pooling_snr)

    def max_noise_for_target(self, problem: Problem, features: int | None = None) -> float:
        """The largest noise multiplier at which histograms of the target have `LOCATING_SNR`.

        ``features`` is how many features are summarized beside it; all by default.
        """
        if not self.target:
            return math.inf
        beside = len(problem.measured) if features is None else features
        share = self._part(beside, math.inf) / (1 + self.zooms)
        return problem.n / problem.max_rows / LOCATING_SNR * math.sqrt(share)

    def max_noise_for_features(self, least: float, problem: Problem) -> float:
        """The largest noise multiplier at which histograms of a feature have `LOCATING_SNR`.

        ``least`` is the lowest multiplier that the histograms may have. If even that is too large
        for a histogram of every feature, the answer is for one that all features share.
        """
        share = (1 - self._part(len(problem.measured), 0.0)) / (1 + self.zooms)
        votes = 1 if self.pooled(least, problem) else max(1, len(problem.measured))
        return problem.n / problem.max_rows / LOCATING_SNR * math.sqrt(share / votes)

    def count_std(self, multiplier: float, problem: Problem) -> float:
        """Standard deviation of the noise of a count in one histogram of a feature."""
        return self._releases(multiplier, problem, len(problem.measured))[0].std

    def pooled(self, multiplier: float, problem: Problem) -> bool:
        """Whether noise is so large that each record counts for one feature only."""
        return any(
            release.pooled for release in self._releases(multiplier, problem, len(problem.measured))
        )

    def plan(self, multiplier: float, problem: Problem, features: int | None = None) -> Plan:
        """The histograms of ``features`` features, all by default, and of the target if any."""
        count = len(problem.measured) if features is None else features
        releases = self._releases(multiplier, problem, count)
        events = tuple(release.event(problem, self.cells) for release in releases)
        return (
            (Round(stage="column summaries", events=events, times=1 + self.zooms),)
            if events
            else ()
        )

    def run(
        self, curator: Curator, multiplier: float, features: tuple[int, ...] | None = None,
        part: Doubles | float = 1.0,
    ) -> Summary:  # fmt: skip
        """Releases the histograms and describes the columns by them.

        ``features`` are the columns to summarize; by default all that are not declared indicators.
        ``part`` of the n rows counts: one number for all columns, or one for each.
        """
        return self.searched(curator, multiplier, features, part)[0]

    def searched(
        self, curator: Curator, multiplier: float, features: tuple[int, ...] | None = None,
        part: Doubles | float = 1.0,
    ) -> tuple[Summary, list[list[WindowHistogram]]]:  # fmt: skip
        """As `run`; with ``narrow`` also all histograms of every feature, the closest one last."""
        problem = curator.problem
        columns = problem.measured if features is None else features
        releases, found = (
            self._releases(multiplier, problem, len(columns)),
            Summary.declared(problem.d),
        )
        groups = [columns] * bool(columns) + [_TARGET] * self.target
        rows = np.maximum(1, np.rint(np.multiply(part, problem.n))).astype(int)
        searches = [
            _Search(
                release, problem, which, np.broadcast_to(rows, release.votes),
                fixed=curator.sparse and which != _TARGET, kept=self.narrow, cells=self.cells,
            )
            for release, which in zip(releases, groups, strict=True)
        ]  # fmt: skip
        if not searches:
            return found, []
        for batch in curator.rounds(Everyone(), 1 + self.zooms):
            for search in searches:
                search.observe(batch)
        if columns:
            found.put(list(columns), searches[0].of_features(self.narrow))
        histograms = searches[0].histograms() if columns and self.narrow else []
        return (Summary.joined([found, searches[-1].found]) if self.target else found), histograms

    def _part(self, features: int, noise: float) -> float:
        """The fraction of the budget for the target beside ``features`` features.

        ``noise`` is that of a count over n, if the whole budget went into one histogram.
        """
        if not (features and self.target):
            return float(self.target)
        needed = (1 + self.zooms) * (TARGET_SNR * noise) ** 2
        return min(max(LEAST_TARGET, needed), MOST_TARGET)

    def _releases(self, multiplier: float, problem: Problem, columns: int) -> list[_Release]:
        """The histograms of a round, of ``columns`` features and, if summarized, of the target."""
        n, times, price = problem.n, math.sqrt(1 + self.zooms), multiplier * problem.max_rows
        part = self._part(columns, price / n)

        def std(votes: int, share: float, least: float) -> float:
            """The noise of a count over all rounds together."""
            return max(price * math.sqrt(votes / share), least) if price else 0.0

        releases = []
        if columns:
            one = std(columns, 1 - part, n / self.max_snr)
            pooled = columns > 1 and one * self.pooling_snr > n
            if pooled:
                part = self._part(columns, math.inf)
                one = std(1, 1 - part, n / self.max_snr)
            releases.append(_Release(columns, times * one, pooled))
        if self.target:
            releases.append(_Release(1, times * std(1, part, n / self.max_snr)))
        return releases


@dataclass(frozen=True)
class _Release:
    """A release of histograms of several columns with noise ``std`` in a count.

    If ``pooled``, it is one histogram, in which every record counts for one of the columns.
    """

    columns: int
    std: float
    pooled: bool = False

    @property
    def votes(self) -> int:
        """How many cells a record fills: one for each column, or one in all if ``pooled``."""
        return 1 if self.pooled else self.columns

    def noise(self, problem: Problem) -> GaussianNoise:
        """The noise, relative to the l2 radius of a record."""
        return GaussianNoise(self.std / math.sqrt(self.votes) / problem.max_rows)

    def event(self, problem: Problem, cells: bool = False) -> Event:
        """The release."""
        edges = len(POWERS.edges)
        answer = (
            problem.cell_counts(self.columns, edges)
            if cells
            else problem.histogram(self.columns, edges, self.pooled)
        )
        return self.noise(problem).event(answer)


@dataclass(frozen=True)
class Window:
    """The window of a histogram: cells in units of ``half`` around ``middle``."""

    cells: Cells = POWERS
    middle: float = 0.0
    half: float = 1.0

    @property
    def refined(self) -> bool:
        """Whether it lies around detected values; the first has powers of two around zero."""
        return self != Window()

    @property
    def edges(self) -> Doubles:
        """The edges in the units of the column."""
        return self.middle + self.half * self.cells.edges


class _Search:
    """The search for location and scale of some columns, by rounds of histograms.

    The first histogram of a column is over powers of two (``_first`` is its summary). Later ones
    may be over a refined window around the detected values (``_coarser`` is the summary before).
    Among many columns one may by chance be detected where it is not. So a window stays as it is if
    less than `LEAST_DETECTED` of the records were detected.

    Parameters
    ----------
    rows : (columns,) how many values of each count. Where missing numbers are filled in, it is as
        many as the first histogram shows.
    fixed : whether windows lie around zero.
    kept : whether histograms over windows that were left are kept.
    cells : as in `ColumnSummaries`.

    Attributes
    ----------
    found : the summary by all rounds together.
    """

    def __init__(
        self, release: _Release, problem: Problem, columns: tuple[int, ...], rows: Integers, *,
        fixed: bool, kept: bool, cells: bool,
    ) -> None:  # fmt: skip
        self._release, self._problem, self._columns, self._fixed = release, problem, columns, fixed
        self._rows, self._kept, self._cells = rows.copy(), kept, cells
        self._gaps = np.isin(columns, problem.optional) & (not release.pooled)
        self._empty = np.zeros(release.votes, dtype=np.bool_)
        count = release.votes
        clear = release.std <= rows.max() / FINE_SNR
        self._narrow = FINE if clear else COARSE
        told = kept or columns == _TARGET
        self._shows_tails = clear and told and not (fixed or release.pooled)
        self._windows = [Window() for _ in range(count)]
        self._left: list[list[WindowHistogram]] = [[] for _ in range(count)]
        self._hidden = np.zeros(count, dtype=np.bool_)
        self._sums, self._times = np.zeros((count, len(POWERS.edges) + 1)), np.zeros(count)
        self.found, self._first, self._coarser = (Summary.declared(count) for _ in range(3))

    @property
    def _refined(self) -> NDArray[np.bool_]:
        """(columns,) whether each has a refined window."""
        return np.array([window.refined for window in self._windows])

    def histograms(self) -> list[list[WindowHistogram]]:
        """The histograms of every column, over one window after the other."""
        histograms = [
            [*left, self._histogram(j)] if self._times[j] else left
            for j, left in enumerate(self._left)
        ]
        return histograms * self._release.columns if self._release.pooled else histograms

    def _histogram(self, j: int) -> WindowHistogram:
        """The histogram of one column over its present window."""
        window, noise = self._windows[j], self._release.std / math.sqrt(self._times[j])
        counts = self._sums[j] / self._times[j]
        return WindowHistogram(
            window.cells, window.middle, window.half, counts, np.full(len(counts), noise)
        )  # fmt: skip

    def of_features(self, narrow: bool) -> Summary:
        """The summary of the features.

        Narrow cells cannot show tails, so they are taken to be those of a Gaussian at least. Unless
        ``narrow``, a column without a scale has the spread that the powers of two show. A column
        that a refined histogram does not detect is spread over its window, and keeps its scale. A
        column of missing values alone is described as one of zeros.
        """
        found, first = self.found, self._first
        needles = ~(found.scale_known | self._hidden | narrow)
        scales = np.where(needles, first.scales, found.scales)
        widths = np.where(needles, first.widths, found.widths)
        deviations = np.where(needles, first.deviations, found.deviations)
        tails = np.where(needles, first.tails, found.tails)
        refined = self._refined
        summary = replace(
            found,
            scales=scales,
            widths=widths,
            deviations=np.maximum(deviations, refined * scales),
            tails=np.maximum(tails, refined * LEAST_TAIL * scales),
            single=found.single & refined & ~self._hidden & (found.detected_part >= LEAST_DETECTED),
        )
        summary.put(empty := self._empty & ~summary.detected, summary.take(empty).as_zeros())
        return summary.shared(self._release.columns) if self._release.pooled else summary

    def observe(self, batch: Batch) -> None:
        """Releases a histogram. The next one is refined for columns detected without a scale."""
        release, refined = self._release, self._refined
        edges = np.array([window.edges for window in self._windows])
        edges = edges[0] if release.pooled else edges
        answer = (
            batch.cell_counts(self._columns, edges)
            if self._cells
            else batch.histogram(self._columns, edges, release.pooled)
        )
        self._sums += answer.release(release.noise(self._problem)).reshape(self._sums.shape)
        self._times += 1
        stds = release.std / np.sqrt(self._times)
        self._count_gaps(stds)
        summary = self._described(stds)
        for wider in (self._first, self._coarser):
            wider.put(~refined, summary.take(~refined))
        middles, halves = np.array([(window.middle, window.half) for window in self._windows]).T
        end = float(self._narrow.edges[-1])
        self.found = self._coarser.refined_by(summary, middles, halves, end, LEAST_DETECTED)
        self._hidden = refined & ~summary.detected
        go = summary.detected & ~self.found.scale_known & (self.found.centres != 0)
        largest = math.sqrt(2 * math.log(self._sums.size))
        least = np.maximum(LEAST_DETECTED, largest * stds / self._rows)
        self._refine(np.flatnonzero(go & (summary.detected_part >= least)))
        if self._shows_tails:
            self._measure_tails(summary, halves)

    def _measure_tails(self, summary: Summary, halves: Doubles) -> None:
        """Counts distances from the median from now on, in columns far from zero with a scale.

        ``summary`` is by the present windows, in units of their ``halves``. A target takes its
        deviation and its tail from distances that were counted.
        """
        found = self.found
        far = found.detected & found.scale_known & (np.abs(found.centres) > AWAY * found.scales)
        moved = np.array([window.cells is DISTANCES for window in self._windows])
        shown = moved & summary.detected & (self._columns == _TARGET)
        found.tails[shown] = (halves * summary.tails)[shown]
        found.deviations[shown] = np.maximum(halves * summary.deviations, found.scales)[shown]
        for j in np.flatnonzero(far & ~moved).tolist():
            self._move(j, Window(DISTANCES, float(found.centres[j]), float(found.scales[j])))

    def _count_gaps(self, stds: Doubles) -> None:
        """Counts the numbers in columns with missing values, by the powers of two."""
        for j in np.flatnonzero(self._gaps & ~self._refined):
            counts = self._sums[j] / self._times[j]
            part, deviation = usable_rows(counts, stds[j], self._problem.n)
            self._rows[j] = max(1, round(part * self._problem.n))
            self._empty[j] = nearly_none(part, deviation)

    def _described(self, stds: Doubles) -> Summary:
        """The summary by all histograms over the present windows, in units of these."""
        summary = Summary.declared(len(stds))
        means = self._sums / self._times[:, None]
        alike: dict[tuple[Window, float, int], list[int]] = {}
        for j, window in enumerate(self._windows):
            alike.setdefault((window, self._times[j], int(self._rows[j])), []).append(j)
        for (window, _, rows), group in alike.items():
            summary.put(group, described(means[group], window.cells, stds[group[0]], rows))
        if self._release.columns > 1:
            unclear = self._refined & (summary.detected_part < LEAST_DETECTED)
            summary.detected[unclear] = False
        return summary

    def _refine(self, columns: NDArray[np.intp]) -> None:
        """Refines the windows of these columns: they move to the detected values."""
        middles, halves = self.found.window(self._fixed)
        for j in columns.tolist():
            self._move(j, Window(self._narrow, float(middles[j]), float(halves[j])))

    def _move(self, j: int, window: Window) -> None:
        """Counts one column in another window from now on."""
        self._coarser.put(j, self.found.take(j))
        if self._kept:
            self._left[j].append(self._histogram(j))
        self._windows[j], self._sums[j], self._times[j] = window, 0.0, 0.0
