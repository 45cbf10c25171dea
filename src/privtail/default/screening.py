"""Screening: a private selection of the features most correlated with the target."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from privtail.default.fit import Fit
from privtail.default.intercept import MeanDerivative
from privtail.losses import AbsoluteLoss
from privtail.losses.magnitudes import largest_derivative
from privtail.robust_means import ClampedMean
from privtail.summaries.column_summaries import RARE, ColumnSummaries
from privtail.summaries.standardization import Standardization
from privtail.summaries.summary import BEYOND, Summary
from privtail.trusted.events import Plan, Round, compose
from privtail.trusted.mechanisms.noise import GaussianNoise
from privtail.trusted.mechanisms.selection import NoisyTopK
from privtail.trusted.problem import Problem

SIGN = 2.0**-30
"""Derivatives clamped at this part of their largest value are signs."""

DENSITY = math.sqrt(2 / math.pi)
"""Twice the density of a Gaussian at its median, in its scales: the slope of a mean of signs."""

OWN = ColumnSummaries(enough=RARE)
"""The column summaries that the chosen features get."""


@dataclass(frozen=True)
class SelectFeatures:
    """Chooses features by one noisy top-k of quadrant correlations (Blomqvist 1950).

    The score of a feature is how often it and the residual of the intercept-only model have the
    same sign. It is bounded, and scales and tails do not change it. The chosen features get column
    summaries of their own, for which the budget is enough if they are few. The other features are
    not used from now on.

    Parameters
    ----------
    picks : the number of features to choose.
    noise : the scale of the Gumbel noise of each pick.
    summary_noise : of the column summaries of the chosen features.
    median : mean signs, which first centre a numeric target at its median. Scores need residuals
        of which half are positive.

    **Privacy.** Gaussian mean signs of a number, a Gumbel choice, `ColumnSummaries` of the picks.
    """

    picks: int
    noise: float
    summary_noise: GaussianNoise
    median: MeanDerivative | None = None

    def plan(self, problem: Problem) -> Plan:
        centred = self.median.plan(problem) if self.median else ()
        scores = problem.separations(ClampedMean(1.0))
        top = NoisyTopK(self.noise, self.picks).event(scores)
        own = OWN.plan(self.summary_noise.multiplier, problem, self.picks)
        return compose(centred, (Round(stage="screening", events=(top,)),), own)

    def run(self, fit: Fit) -> None:
        problem, summary = fit.problem, fit.summary
        d, outputs = problem.d, problem.outputs
        standard = Standardization.of(_cut(summary, d), problem, sparse=fit.curator.sparse)
        w, loss, largest = fit.intercept_only.copy(), fit.loss, 1.0
        if fit.has_labels:
            largest = largest_derivative(loss, w[d:])
        elif fit.given_loss.targets == "real":
            loss = AbsoluteLoss()
            w[d:] = standard.target.location
            if self.median:
                for _ in range(self.median.times):
                    above = self.median.release(fit, loss, w, 1.0)
                    w[d:] -= above * standard.target.scale / DENSITY
        batch = fit.curator.everyone(standard.map)
        scores = batch.separations(loss, w, ClampedMean(largest * SIGN))
        best = scores.release(NoisyTopK(self.noise, self.picks))
        chosen = np.unique(best // outputs)
        rest = np.setdiff1d(np.arange(d), chosen)[: self.picks - len(chosen)]
        columns = tuple(int(j) for j in np.concatenate([chosen, rest]))
        own = OWN.run(fit.curator, self.summary_noise.multiplier, columns)
        scales = np.full_like(summary.scales, BEYOND)
        measured = np.setdiff1d(chosen, problem.indicators)  # of the others all is declared
        summary.put(measured, own.take(measured))
        scales[chosen], scales[d:] = summary.scales[chosen], summary.scales[d:]
        fit.standardize(replace(summary, scales=scales))


def _cut(summary: Summary, d: int) -> Summary:
    """A summary whose centres are where features are cut into two signs.

    That is halfway from the median to the middle of the cells of the quartiles. The upper part of a
    skewed feature tells more of the target. But both signs should be about equally frequent, or an
    excess of positive residuals would add to all scores.
    """
    middles = summary.lows + (summary.highs - summary.lows) / 2
    known = summary.scale_known & (np.arange(len(middles)) < d)
    places = np.where(known, summary.centres + (middles - summary.centres) / 2, summary.centres)
    return replace(summary, centres=places, detected=np.ones_like(summary.detected))


def detectable_features(most: int, noise: float, clear: float, problem: Problem) -> int:
    """The number of features that a selection can find, at most ``most``.

    k features that together explain all of a target equally have quadrant correlations of about
    2 / (pi sqrt k). A top-k that costs one mean of ``noise`` adds Gumbel noise of scale
    noise sqrt(k) / n to each score; the largest of d is near log(d) scales. A score should be
    ``clear`` times as large as that.
    """
    largest = noise * problem.max_rows / problem.n * math.log(problem.d)
    return max(1, min(most, int(2 / math.pi / (clear * largest)))) if largest > 0 else most
