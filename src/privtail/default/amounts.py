"""The intercept-only model of counts and amounts."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import cast

import numpy as np
from numpy.typing import NDArray

from privtail.default.fit import Fit
from privtail.default.intercept import MeanDerivative, signed_log
from privtail.domains import Multiple
from privtail.losses import POISSON_MARGIN, AmountLoss, PoissonLoss, SquaredLoss
from privtail.summaries.amounts import COUNT_CELLS, AmountHistogram
from privtail.summaries.histograms import usable_rows
from privtail.trusted.events import Event, Plan, Round, compose
from privtail.trusted.mechanisms.noise import GaussianNoise
from privtail.trusted.problem import Problem

Doubles = NDArray[np.float64]

_ENDLESS = -POISSON_MARGIN, POISSON_MARGIN

NONE_DETECTED = (
    "No target above zero was detected above the noise of the histogram, so targets are clipped "
    "at 1 for their mean. Raise epsilon: where they are usually larger, the model is not "
    "reliable."
)

TOO_LARGE = (
    "Some targets are larger than any prediction: predicted means are at most e^30 (1.07e13). "
    "Divide the target by a public number."
)


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
    mean: MeanDerivative | None = None

    def plan(self, problem: Problem) -> Plan:
        first = Round(stage="target histogram", events=(self._event(problem),))
        return compose((first,), self.mean.plan(problem) if self.mean else ())

    def run(self, fit: Fit) -> None:
        amounts, exposures, rows = self._histograms(fit)
        whole = fit.given_loss.targets == "count"
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
        fit.w = fit.intercept_only = w
        size = mean if self.mean else max(mean, 1.0)
        ends = _margin_ends(mean, top) if fit.curator.budget.private else _ENDLESS
        lowest = ends[0]
        if whole:
            lowest = min(math.log(least), ends[1]) if least else -math.inf
        usual = math.log(exposures.median) if exposures else 0.0
        fit.margin_range = lowest - usual, ends[1] - usual
        given = cast(AmountLoss, fit.given_loss)
        fit.loss = given.at(size, *ends)
        fit.domain = Multiple(domain=fit.domain, factor=size ** (given.power - 2))
        fit.dispersion = 1 / size if whole else amounts.dispersion(size, clip)
        fit.exposure = exposures.mean or 1.0 if exposures else 1.0
        fit.min_threshold = amounts.min_threshold(size, fit.tuning.clipped_fraction)
        too_large = math.log(top) > POISSON_MARGIN
        fit.notes = (NONE_DETECTED,) * (not amounts.positive) + (TOO_LARGE,) * too_large

    def _histograms(
        self, fit: Fit
    ) -> tuple[AmountHistogram, AmountHistogram | None, tuple[float, float]]:
        """The amounts; their exposures if there are any; `usable_rows` of the rows."""
        problem, std = fit.problem, self._event(fit.problem).std
        columns = (-1, -2) if problem.exposure else (-1,)
        released = fit.curator.everyone().histogram(columns, COUNT_CELLS.edges).release(self.noise)
        columnwise = released.reshape(len(columns), -1)
        amounts, *exposures = (AmountHistogram.of(one, std, problem.n) for one in columnwise)
        rows = usable_rows(columnwise[0], std, problem.n)
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
        for _ in range(release.releases):
            w[-1] = rate
            threshold = max(clip, longest * math.exp(rate))
            rate -= signed_log(float(release.release(fit, PoissonLoss(), w, threshold)[0]) / mean)
        return rate

    def _event(self, problem: Problem) -> Event:
        return self.noise.event(problem.histogram(1 + problem.exposure, len(COUNT_CELLS.edges)))


def _margin_ends(mean: float, top: float) -> tuple[float, float]:
    """Margins between which a loss is as it is: up to a mean ``top``, and as far below the mean."""
    highest = float(np.clip(math.log(top), -POISSON_MARGIN, POISSON_MARGIN))
    lowest = float(np.clip(2 * math.log(mean) - highest, -POISSON_MARGIN, highest))
    return lowest, highest
