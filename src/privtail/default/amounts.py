"""The intercept-only model of counts and amounts."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import cast

import numpy as np

from privtail.default.fit import Fit
from privtail.default.intercept import MeanDerivative, signed_log
from privtail.domains import Multiple
from privtail.losses import POISSON_MARGIN, AmountLoss, PoissonLoss, SquaredLoss
from privtail.summaries.amounts import COUNT_CELLS, RATES, AmountHistogram
from privtail.summaries.histograms import usable_rows
from privtail.trusted.events import Event, Plan, Round, compose
from privtail.trusted.mechanisms.noise import GaussianNoise
from privtail.trusted.problem import Problem

_ENDLESS = -POISSON_MARGIN, POISSON_MARGIN

NONE_DETECTED = (
    "No target above zero was detected above the noise of the histogram, so targets are clipped "
    "at 1 for their mean. Raise epsilon: where they are usually larger, the model is not "
    "reliable."
)

HIDDEN_MEAN = (
    "Noise hides much of the mean of the target, so predictions may be off by a factor of two or "
    "more. More rows or a larger epsilon would help."
)

TOO_LARGE = (
    "Some targets are larger than any prediction: predicted means are at most e^30 (1.07e13). "
    "Divide the target by a public number."
)


@dataclass(frozen=True)
class StartAtMeanAmount:
    """Releases a histogram of counts or amounts, and their mean for the intercept-only model.

    The curvature of the loss is unbounded. Near the mean it is a power of the mean, and the
    objective is divided by this power.

    Predicted margins are clipped. The upper end is the largest mean that the histogram allows,
    since a record with far features could have any prediction. The lower end for counts is half
    the noise of their mean (without an intercept, of the mean of their histogram), since the
    deviance of a count of 1 is unbounded if none is expected. For other amounts it is as far below
    the mean as the upper end is above it. With exposures a margin is the logarithm of a rate,
    clipped as for a row of the median exposure. No feature is used if no amount above zero was
    detected, because the loss then has no unit.

    Parameters
    ----------
    noise : of the histograms of the amounts and of their exposures.
    mean : releases the mean; None without an intercept.
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
        least, w = max(hidden / 2, 1 / fit.problem.n), np.zeros_like(fit.w)
        mean = amounts.mean or least
        top = amounts.largest_mean(mean, hidden, clip, whole=whole)
        fit.exposure = exposures.mean or 1.0 if exposures else 1.0
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
        low, high = _margin_ends(mean, top) if fit.curator.budget.private else _ENDLESS
        lowest = min(math.log(least), high) if whole else low
        usual = math.log(exposures.median) if exposures else 0.0
        fit.margin_range = lowest - usual, high - usual
        given = cast(AmountLoss, fit.given_loss)
        fit.loss = given.at(size, low, high)
        fit.domain = Multiple(domain=fit.domain, factor=size ** (given.power - 2))
        spread = amounts.dispersion(size, clip)
        lengths = exposures.dispersion(fit.exposure, math.inf) if exposures else 0.0
        fit.dispersion = max(spread - lengths, 1 / size) if whole else spread
        fit.min_threshold = amounts.min_threshold(size, fit.tuning.clipped_fraction)
        hidden_mean = size < fit.tuning.sure * clip * deviation
        fit.notes = (HIDDEN_MEAN,) * hidden_mean if amounts.positive else (NONE_DETECTED,)
        fit.notes += (TOO_LARGE,) * (math.log(top) > POISSON_MARGIN)
        fit.notes += (RATES,) * (whole and amounts.below_one)
        if not (whole or amounts.positive):
            fit.standard = fit.standard.only(np.zeros(fit.problem.d, np.bool_))

    def _histograms(
        self, fit: Fit
    ) -> tuple[AmountHistogram, AmountHistogram | None, tuple[float, float]]:
        """Histograms of the amounts and of their exposures, if any; `usable_rows`."""
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
        """The mean amount, from one release of the mean difference of the amounts from a centre.

        A row that is not usable has the difference 0. A record changes the mean least if the centre
        is the middle of [0, clip]. If rows are lost, the fraction of usable rows has an ``error``,
        and the centre minimizes the sum of both errors.
        """
        usable, error = rows
        deviation, w = release.deviation(fit.problem), np.zeros_like(fit.w)
        centre = clip / (1 + (error / deviation) ** 2) if error else clip
        w[-1] = min(clip / 2, centre)
        off = release.release(fit, SquaredLoss(), w, clip - w[-1, 0])[0]
        return float(w[-1, 0]) - float(off) / usable

    @staticmethod
    def _log_rate(
        fit: Fit, release: MeanDerivative, mean: float, clip: float, exposures: AmountHistogram
    ) -> float:
        """The logarithm of the mean rate, of counts over exposures.

        It begins at that of the histograms. Means of expected count less count then correct it.
        """
        w, rate = np.zeros_like(fit.w), math.log(mean / fit.exposure)
        longest = exposures.clip(release.deviation(fit.problem), 0.0)
        for _ in range(release.releases):
            w[-1] = rate
            threshold = max(clip, longest * math.exp(rate))
            rate -= signed_log(float(release.release(fit, PoissonLoss(), w, threshold)[0]) / mean)
        return rate

    def _event(self, problem: Problem) -> Event:
        return self.noise.event(problem.histogram(1 + problem.exposure, len(COUNT_CELLS.edges)))


def _margin_ends(mean: float, top: float) -> tuple[float, float]:
    """The range of margins up to the logarithm of ``top``, and as far below that of the mean."""
    highest = float(np.clip(math.log(top), -POISSON_MARGIN, POISSON_MARGIN))
    lowest = float(np.clip(2 * math.log(mean) - highest, -POISSON_MARGIN, highest))
    return lowest, highest
