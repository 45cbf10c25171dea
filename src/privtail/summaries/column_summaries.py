"""Private location and scale of every column from logarithmic histograms that zoom in."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Self

import numpy as np
from numpy.typing import NDArray

from privtail.losses import LABELS, Targets
from privtail.summaries.histograms import COARSE, FINE, POWERS, part_that_counts
from privtail.summaries.mean_intervals import View
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

FINE_FROM = 30
"""Looks are through the finer window where a cell's noise is n over this, or less."""

LEAST_TARGET, MOST_TARGET = 0.3, 0.6
"""Bounds of the budget's part that goes to the target, whose scale and level matter most."""

SHARP = 12
"""A column whose counts have noise n over this is found wherever it lies."""

SHARPER = 16
"""Beside features, the target gets what makes a look at it so sharp, between these bounds."""

RARE = 2_000
"""Columns may be one number for nearly all records: counts may be as fine as n over this."""

UNSHOWN = 3.0
"""How many deviations a column reaches that was looked at closer: its tails are below the noise."""

HELD = 2 / 3
"""A look goes closer to where this part of the records showed, or more.

What the middle half of them has is then the median of all: a third and a quarter of the rest are
one half.
"""

POOLING = 6.0
"""Noise of n over this hides a feature so that a scale for all of them is of more use."""

POOLING_SELECTING = 12.0
"""The same where features are to be selected: one scale for all leaves them comparable."""

POOLING_LABELS = 2.0
"""The same for all slopes of labels: features that are alike are described together anyway.

They have centres then; and where units differ, those that show have their own.
"""

_TARGET = (-1,)


@dataclass(frozen=True, kw_only=True)
class ColumnSummaries:
    """Median and spread of every column, bought with histograms over public edges.

    No bound is needed (docs/mathematics.md#histograms-of-powers). The first look uses signed powers
    of two, the same for any data; indicators of declared categories need none (centre 0, scale
    1/2). ``zooms`` more looks of the same price follow. Columns that are detected without a scale
    (they lie far from zero, inside one power of two) are looked at through a window around the
    cells of their middle half, which it cuts into 32, or into 64 where noise is small. A column
    that need not go closer, or did not show enough, is looked at through the same window again, and
    its counts are added. A feature that stays unresolved (it is nearly constant) keeps the spread
    among the powers of two. It is ``single`` only if a closer look showed one cell too: one among
    the powers of two may hold a spread. ``target`` includes the target column, with a part of the
    budget of its own: the larger, the noisier. Where all looks together have noise above n over
    ``pooling`` in a feature's cell, every record votes for one feature only, and all features share
    one window and one scale. ``enough``: all looks together need no less noise in a cell
    than n over this. ``narrow``: also a needle is described
    by the cell that holds it, for what is clipped there. ``cells``: a
    cell that is not finite leaves its own column alone, and not its row (`Problem.cell_counts`);
    votes are not shared then. Columns that noise hides among the powers of two are described by
    what is likely, given all of them (`ColumnPrior`).

    **Privacy.** Edges are made of what earlier looks released. Per look one Gaussian release of d
    histograms (l2 sensitivity sqrt(2 d) under replace-one) and one of the target's; together they
    cost what one release of noise ``multiplier`` costs, or less.
    """

    target: bool = False
    zooms: int = 3
    enough: int = 100_000
    pooling: float = POOLING
    narrow: bool = False
    cells: bool = False

    @classmethod
    def of(cls, targets: Targets, *, selecting: bool = False) -> Self:
        """For a model of the target, or for ``selecting`` some of its features.

        The target's column is included where it holds real numbers.
        """
        every = POOLING_LABELS if targets in LABELS else POOLING
        pooling = POOLING_SELECTING if selecting else every
        return cls(target=targets == "real", enough=RARE, pooling=pooling)

    def enough_for_target(self, problem: Problem, features: int | None = None) -> float:
        """The largest noise multiplier at which every look at the target is `SHARP`.

        Beside looks at so many features (all by default).
        """
        if not self.target:
            return math.inf
        beside = len(problem.measured) if features is None else features
        share = self._part(beside, math.inf) / (1 + self.zooms)
        return problem.n / problem.max_rows / SHARP * math.sqrt(share)

    def enough_for_features(self, least: float, problem: Problem) -> float:
        """The largest noise multiplier at which every look at features is `SHARP`.

        Of one vote, where the ``least`` multiplier that the looks may have carries no more; at 0
        every feature has its own.
        """
        share = (1 - self._part(len(problem.measured), 0.0)) / (1 + self.zooms)
        votes = 1 if self.pooled(least, problem) else max(1, len(problem.measured))
        return problem.n / problem.max_rows / SHARP * math.sqrt(share / votes)

    def pooled(self, multiplier: float, problem: Problem) -> bool:
        """Whether one vote per record is all that the budget can carry."""
        return any(look.pooled for look in self._looks(multiplier, problem, len(problem.measured)))

    def plan(self, multiplier: float, problem: Problem, features: int | None = None) -> Plan:
        """The looks, at so many features (all by default)."""
        count = len(problem.measured) if features is None else features
        looks = self._looks(multiplier, problem, count)
        events = tuple(look.event(problem, self.cells) for look in looks)
        return (
            (Round(stage="column summaries", events=events, times=1 + self.zooms),)
            if events
            else ()
        )

    def run(
        self, curator: Curator, multiplier: float, features: tuple[int, ...] | None = None,
        part: Doubles | float = 1.0,
    ) -> Summary:  # fmt: skip
        """Release the histograms; what they describe is post-processing.

        ``features`` are the columns to look at; by default those that nobody has declared. ``part``
        of the n rows counts, of every column or of all.
        """
        return self.looked(curator, multiplier, features, part)[0]

    def looked(
        self, curator: Curator, multiplier: float, features: tuple[int, ...] | None = None,
        part: Doubles | float = 1.0,
    ) -> tuple[Summary, list[list[View]]]:  # fmt: skip
        """As `run`; and of a ``narrow`` one the looks at every feature, the closest one last."""
        problem = curator.problem
        columns = problem.measured if features is None else features
        looks, found = self._looks(multiplier, problem, len(columns)), Summary.declared(problem.d)
        asked = [columns] * bool(columns) + [_TARGET] * self.target
        rows = np.maximum(1, np.rint(np.multiply(part, problem.n))).astype(int)
        sights = [
            _Sight(
                look, problem, which, np.broadcast_to(rows, look.votes),
                fixed=curator.sparse and which != _TARGET, kept=self.narrow, cells=self.cells,
            )
            for look, which in zip(looks, asked, strict=True)
        ]  # fmt: skip
        if not sights:
            return found, []
        for batch in curator.rounds(Everyone(), 1 + self.zooms):
            for sight in sights:
                sight.look(batch)
        if columns:
            found.put(list(columns), sights[0].of_features(self.narrow))
        views = sights[0].views() if columns and self.narrow else []
        return (Summary.joined([found, sights[-1].found]) if self.target else found), views

    def _part(self, features: int, noise: float) -> float:
        """Of the budget, for the target beside so many features.

        All of it would buy one count with ``noise``, relative to n.
        """
        if not (features and self.target):
            return float(self.target)
        needed = (1 + self.zooms) * (SHARPER * noise) ** 2
        return min(max(LEAST_TARGET, needed), MOST_TARGET)

    def _looks(self, multiplier: float, problem: Problem, columns: int) -> list[_Look]:
        """Any one of the looks: at so many features if there are any, at the target if asked."""
        n, times, price = problem.n, math.sqrt(1 + self.zooms), multiplier * problem.max_rows
        part = self._part(columns, price / n)

        def std(votes: int, share: float, least: float) -> float:
            """Of a count of all looks together."""
            return max(price * math.sqrt(votes / share), least) if price else 0.0

        looks = []
        if columns:
            one = std(columns, 1 - part, n / self.enough)
            pooled = columns > 1 and one * self.pooling > n
            if pooled:
                part = self._part(columns, math.inf)
                one = std(1, 1 - part, n / self.enough)
            looks.append(_Look(columns, times * one, pooled))
        if self.target:
            looks.append(_Look(1, times * std(1, part, n / self.enough)))
        return looks


@dataclass(frozen=True)
class _Look:
    """A histogram of so many columns, or of all ``pooled``, with noise ``std`` in a count."""

    columns: int
    std: float
    pooled: bool = False

    @property
    def votes(self) -> int:
        """Cells that a record fills; also, how many columns are told apart."""
        return 1 if self.pooled else self.columns

    def noise(self, problem: Problem) -> GaussianNoise:
        """Relative to the l2 radius."""
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


class _Sight:
    """What is known of columns after some looks of one kind.

    A column is looked at among the powers of two (``_first`` is what these said), then through a
    window around what was found (``_coarser``). ``fixed``: windows are around zero. Of many columns
    one may show by chance where it is not: what shows less than `HELD` of it is not followed.
    ``rows``: how many values of each count; of columns in which missing numbers are filled in, as
    many as show. ``kept``: looks through windows that were left are
    remembered. ``cells``: as of `ColumnSummaries`.

    Attributes
    ----------
    found : what all looks together say.
    """

    def __init__(
        self, look: _Look, problem: Problem, columns: tuple[int, ...], rows: Integers, *,
        fixed: bool, kept: bool, cells: bool,
    ) -> None:  # fmt: skip
        self._look, self._problem, self._columns, self._fixed = look, problem, columns, fixed
        self._rows, self._cells = rows.copy(), cells
        self._gaps = np.isin(columns, problem.optional) & (not look.pooled)
        self._left: list[tuple[NDArray[np.intp], list[View]]] | None = [] if kept else None
        count = look.votes
        self._window = FINE if look.std <= rows.max() / FINE_FROM else COARSE
        self._edges = np.tile(POWERS.edges, (count, 1))
        self._middles, self._halves = np.zeros(count), np.ones(count)
        self._closer, self._hidden = (np.zeros(count, dtype=np.bool_) for _ in range(2))
        self._sums, self._times = np.zeros((count, len(POWERS.edges) + 1)), np.zeros(count)
        self.found, self._first, self._coarser = (Summary.declared(count) for _ in range(3))

    def views(self) -> list[list[View]]:
        """All looks at every column, through one window after the other."""
        count = len(self._closer)
        views: list[list[View]] = [[] for _ in range(count)]
        looked = np.flatnonzero(self._times)
        now = (looked, self._through(looked))
        for columns, through in (*(self._left or ()), now):
            for j, view in zip(columns, through, strict=True):
                views[j].append(view)
        return views * self._look.columns if self._look.pooled else views

    def _through(self, columns: NDArray[np.intp]) -> list[View]:
        """What was seen of these columns through their present windows."""
        return [
            View(
                self._window if self._closer[j] else POWERS,
                float(self._middles[j]), float(self._halves[j]),
                self._sums[j] / self._times[j],
                np.full(self._sums.shape[1], self._look.std / math.sqrt(self._times[j])),
            )
            for j in columns
        ]  # fmt: skip

    def of_features(self, narrow: bool) -> Summary:
        """``found``, where tails that narrow cells cannot show are those of a Gaussian, or more.

        Unless ``narrow`` a needle, which no look resolves, has its size among the powers of two. A
        column that shows no more when it is looked at closer is no needle: it fills its window.
        """
        found, first = self.found, self._first
        needles = ~(found.scale_known | self._hidden | narrow)
        scales = np.where(needles, first.scales, found.scales)
        deviations = np.where(needles, first.deviations, found.deviations)
        tails = np.where(needles, first.tails, found.tails)
        seen = replace(
            found,
            scales=scales,
            deviations=np.maximum(deviations, self._closer * scales),
            tails=np.maximum(tails, self._closer * UNSHOWN * scales),
            single=found.single & self._closer & ~self._hidden & (found.shown >= HELD),
        )
        return seen.shared(self._look.columns) if self._look.pooled else seen

    def look(self, batch: Batch) -> None:
        """Buy a histogram; look closer next time, if it shows where a column is, not its spread."""
        look = self._look
        edges = self._edges[0] if look.pooled else self._edges
        answer = (
            batch.cell_counts(self._columns, edges)
            if self._cells
            else batch.histogram(self._columns, edges, look.pooled)
        )
        self._sums += answer.release(look.noise(self._problem)).reshape(self._sums.shape)
        self._times += 1
        stds = look.std / np.sqrt(self._times)
        self._count_gaps(stds)
        seen = self._described(stds)
        for wider in (self._first, self._coarser):
            wider.put(~self._closer, seen.take(~self._closer))
        end = float(self._window.edges[-1])
        self.found = self._coarser.sharpened(seen, self._middles, self._halves, end, HELD)
        self._hidden = self._closer & ~seen.detected
        go = seen.detected & ~self.found.scale_known & (self.found.centres != 0)
        largest = math.sqrt(2 * math.log(self._sums.size))
        held = np.maximum(HELD, largest * stds / self._rows)
        self._approach(np.flatnonzero(go & (seen.shown >= held)))

    def _count_gaps(self, stds: Doubles) -> None:
        """Find how many numbers a column has of which some may be missing, among powers of two."""
        for j in np.flatnonzero(self._gaps & ~self._closer):
            part, _ = part_that_counts(self._sums[j] / self._times[j], stds[j], self._problem.n)
            self._rows[j] = max(1, round(part * self._problem.n))

    def _described(self, stds: Doubles) -> Summary:
        """What all looks through the present windows say, in units of these."""
        seen = Summary.declared(len(stds))
        means = self._sums / self._times[:, None]
        for group in self._groups():
            cells = self._window if self._closer[group[0]] else POWERS
            rows = int(self._rows[group[0]])
            seen.put(group, described(means[group], cells, stds[group[0]], rows))
        if self._look.columns > 1:
            seen.detected[self._closer & (seen.shown < HELD)] = False
        return seen

    def _groups(self) -> list[list[int]]:
        """Columns in groups that are seen through one window, with as many rows and one noise."""
        windows = np.column_stack(
            [self._closer, self._middles, self._halves, self._times, self._rows]
        )
        groups: dict[tuple[float, ...], list[int]] = {}
        for j, window in enumerate(windows):
            groups.setdefault(tuple(window), []).append(j)
        return list(groups.values())

    def _approach(self, columns: NDArray[np.intp]) -> None:
        """Begin to look at these through windows around what was found of them."""
        if self._left is not None:
            self._left.append((columns, self._through(columns)))
        self._coarser.put(columns, self.found.take(columns))
        middles, halves = (x[columns] for x in self.found.window(self._fixed))
        self._middles[columns], self._halves[columns] = middles, halves
        self._edges[columns] = middles[:, None] + halves[:, None] * self._window.edges
        self._closer[columns] = True
        self._sums[columns], self._times[columns] = 0.0, 0.0
