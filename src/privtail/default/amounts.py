"""The intercept-only model of counts and amounts."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import cast

import numpy as np
from numpy.typing import NDArray

from privtail.default.fit import Amounts, Fit
from privtail.default.intercept import MeanDerivative, relative
from privtail.domains import Multiple
from privtail.losses import POISSON_MARGIN, AmountLoss, PoissonLoss, SquaredLoss
from privtail.summaries.histograms import Cells, Histogram, part_that_counts
from privtail.trusted.events import Event, Plan, Round, compose
from privtail.trusted.mechanisms.noise import GaussianNoise
from privtail.trusted.problem import Problem

Doubles = NDArray[np.float64]

COUNT_CELLS = Cells(np.append(-1.0, 2.0 ** (np.arange(-63, 65) - 0.5)), zero=1)
"""Public cells for counts and amounts: below -1, up to 2^-63.5, and around every power of two."""

_EDGES = COUNT_CELLS.edges
_ENDLESS = -POISSON_MARGIN, POISSON_MARGIN
_MIDDLES = np.concatenate([[0.0, 0.0], _EDGES[1:-1] * math.sqrt(2), _EDGES[-1:]])

NONE_DETECTED = (
    "No targets above zero rose above the noise of their histogram: for the mean they are clipped "
    "at 1. Where they are usually larger, the model says little; raise epsilon."
)


@dataclass(frozen=True)
class AmountHistogram:
    """Counts (cells,) of amounts in `COUNT_CELLS`; 0 where noise hides them.

    An amount is taken for the middle of its cell, on a scale of logarithms.
    """

    counts: Doubles

    @classmethod
    def of(cls, counts: Doubles, std: float, n: int) -> AmountHistogram:
        """From counts with noise of deviation ``std``.

        A count is kept if its cell stands out from the noise, or if its cell is in the run of the
        other cells that stands out most. Large amounts thin out over many cells, none of which
        holds enough to stand out alone.
        """
        histogram = Histogram(counts, COUNT_CELLS, std)
        shown = histogram.above_noise(n)
        rest = replace(histogram, counts=np.where(shown > 0, 0.0, counts))
        return cls(shown + rest.surest_run())

    @property
    def positive(self) -> bool:
        """Whether any amount above zero was detected."""
        return bool(self.counts[2:].any())

    @property
    def parts(self) -> Doubles:
        """(cells,) the part of the detected amounts in each cell."""
        return np.asarray(self.counts / max(float(self.counts.sum()), 1.0))

    @property
    def mean(self) -> float:
        """The mean of the detected amounts; 0 if there are none."""
        return float(self.parts @ _MIDDLES)

    @property
    def median(self) -> float:
        """The median of the detected amounts above zero; 1 if there are none."""
        above = np.cumsum(self.counts[2:])
        middle = int(np.searchsorted(above, above[-1] / 2))
        return float(_MIDDLES[2 + middle]) if above[-1] > 0 else 1.0

    def largest_mean(self, mean: float, hidden: float, clip: float, *, whole: bool) -> float:
        """The largest mean of a record that the detected amounts allow.

        Of amounts it is the end c of the highest cell that was detected, or ``clip`` if that is
        lower. Of counts it is the l with l + 3 sqrt(l) = c: a record with a larger mean would have
        a larger count. It is at least twice the mean; of counts more by ``hidden``, for
        noise may hide so large a part of the records, with a count of 1 each.
        """
        cells, top = np.flatnonzero(self.counts), mean
        if len(cells):
            top = min(clip, max(0.0, _EDGES[min(int(cells[-1]), len(_EDGES) - 1)]))
        if not whole:
            return max(top, 2 * mean)
        return max((math.sqrt(top + 9 / 4) - 3 / 2) ** 2, 2 * mean + hidden)

    def dispersion(self, mean: float, clip: float) -> float:
        """The mean square of y / mean - 1 of clipped amounts y; 1 if nothing was detected."""
        if not self.positive:
            return 1.0
        return float(self.parts @ (np.minimum(_MIDDLES, clip) / mean - 1) ** 2) or 1.0

    def least_threshold(self, mean: float, part: float) -> float:
        """The lowest threshold of y / mean - 1 at which clipping takes this part off the mean."""
        away = np.abs(_MIDDLES / mean - 1)
        thresholds = np.unique(away)
        missed = np.array([self.parts @ np.maximum(away - t, 0.0) for t in thresholds])
        return float(thresholds[np.argmax(missed <= part)])

    def clip(self, deviation: float, least: float) -> float:
        """Where amounts are clipped before a mean: where clipping misses as much as noise adds.

        ``deviation`` is that of the noise for a clip of 1. The clip is ``least`` or more; it is 1
        where nothing above zero was detected.
        """
        if not self.positive:
            return 1.0
        parts, edges = self.parts, _EDGES[2:]
        missed = np.array([parts @ np.maximum(_MIDDLES - edge, 0.0) for edge in edges])
        return max(least, float(edges[np.argmin((deviation * edges) ** 2 + missed**2)]))


@dataclass(frozen=True)
class StartAtMeanAmount:
    """A histogram of the amounts, and their mean: the intercept-only model.

    The curvature of a loss of counts or amounts is unbounded. Near the mean it is a power of the
    mean, by which the objective is divided.

    Predicted margins end above at the largest mean that the histogram allows: a record with far
    features would else be expected to hold any amount. Those of counts end below at half the noise
    of their mean: the deviance of a count of 1 where none is expected has no bound. Those of other
    amounts end as far below the mean as above it.

    With an exposure a margin is the logarithm of a rate, and ends where that of a row of the median
    exposure does.

    Parameters
    ----------
    noise : of the histogram, and of that of the exposures.
    mean : the release of the mean; None without an intercept.

    **Privacy.** Gaussian releases of a histogram of l2 sensitivity sqrt 2 (2 with exposures), and
    of clipped means.
    """

    noise: GaussianNoise
    mean: MeanDerivative | None

    def plan(self, problem: Problem) -> Plan:
        first = Round(stage="target histogram", events=(self._event(problem),))
        return compose((first,), self.mean.plan(problem) if self.mean else ())

    def run(self, fit: Fit) -> None:
        amounts, exposures, rows = self._histograms(fit)
        whole = fit.given.targets == "count"
        deviation = self.mean.deviation(fit.problem) if self.mean else 0.0
        clip = amounts.clip(deviation / 2, 1.0 if whole else 0.0)
        hidden = fit.tuning.sure * self._event(fit.problem).std / fit.problem.n
        mean = amounts.mean or max(hidden / 2, 1 / fit.problem.n)
        top = amounts.largest_mean(mean, hidden, clip, whole=whole)
        least, w = 0.0, np.zeros_like(fit.w)
        if self.mean:
            least = max(clip * deviation / 4, (1.0 if whole else clip) / fit.problem.n)
            if exposures is None:
                mean = max(self._released(fit, self.mean, clip, rows), least)
                w[-1] = math.log(mean)
            else:
                mean = max(mean, least)
                w[-1] = self._log_rate(fit, self.mean, mean, clip, exposures)
            top = max(top, 2 * mean)
        fit.w = fit.constant = w
        size = mean if self.mean else max(mean, 1.0)
        ends = _margin_ends(mean, top) if fit.curator.budget.private else _ENDLESS
        lowest = ends[0]
        if whole:
            lowest = min(math.log(least), ends[1]) if least else -math.inf
        usual = math.log(exposures.median) if exposures else 0.0
        fit.margins = lowest - usual, ends[1] - usual
        given = cast(AmountLoss, fit.given)
        fit.loss = given.at(size, *ends)
        fit.domain = Multiple(domain=fit.domain, factor=size ** (given.power - 2))
        fit.amounts = Amounts(
            dispersion=1 / size if whole else amounts.dispersion(size, clip),
            exposure=exposures.mean or 1.0 if exposures else 1.0,
            least_threshold=amounts.least_threshold(size, fit.tuning.clipped),
        )
        fit.remarks = (NONE_DETECTED,) * (not amounts.positive)

    def _histograms(
        self, fit: Fit
    ) -> tuple[AmountHistogram, AmountHistogram | None, tuple[float, float]]:
        """The amounts; their exposures if there are any; `part_that_counts` of the rows."""
        problem, std = fit.problem, self._event(fit.problem).std
        columns = (-1, -2) if problem.exposure else (-1,)
        released = fit.curator.everyone().histogram(columns, _EDGES).release(self.noise)
        columnwise = released.reshape(len(columns), -1)
        amounts, *exposures = (AmountHistogram.of(one, std, problem.n) for one in columnwise)
        rows = part_that_counts(columnwise[0], std, problem.n)
        return amounts, exposures[0] if exposures else None, rows

    @staticmethod
    def _released(
        fit: Fit, release: MeanDerivative, clip: float, rows: tuple[float, float]
    ) -> float:
        """The mean amount, by one release of the mean difference of the amounts from a centre.

        A row that does not count has the difference 0. A record moves the mean least if the centre
        is the middle of [0, clip]. Where rows are lost, and the part that counts is known up to
        ``unsure``, the centre is where the errors of both together are least.
        """
        part, unsure = rows
        deviation, w = release.deviation(fit.problem), np.zeros_like(fit.w)
        centre = clip / (1 + (unsure / deviation) ** 2) if unsure else clip
        w[-1] = min(clip / 2, centre)
        off = release.release(fit, SquaredLoss(), w, clip - w[-1, 0])[0]
        return float(w[-1, 0]) - float(off) / part

    @staticmethod
    def _log_rate(
        fit: Fit, release: MeanDerivative, mean: float, clip: float, exposures: AmountHistogram
    ) -> float:
        """The logarithm of the mean rate, of counts to exposures.

        That of the two histograms is moved a few times by the mean derivative, which is the
        expected count less the count.
        """
        w, rate = np.zeros_like(fit.w), math.log(mean / (exposures.mean or 1.0))
        longest = exposures.clip(release.deviation(fit.problem), 0.0)
        for _ in range(release.times):
            w[-1] = rate
            threshold = max(clip, longest * math.exp(rate))
            rate -= relative(float(release.release(fit, PoissonLoss(), w, threshold)[0]) / mean)
        return rate

    def _event(self, problem: Problem) -> Event:
        return self.noise.event(problem.histogram(1 + problem.exposure, len(_EDGES)))


def _margin_ends(mean: float, top: float) -> tuple[float, float]:
    """Margins between which a loss is as it is: up to a mean ``top``, and as far below the mean."""
    highest = float(np.clip(math.log(top), -POISSON_MARGIN, POISSON_MARGIN))
    lowest = float(np.clip(2 * math.log(mean) - highest, -POISSON_MARGIN, highest))
    return lowest, highest
