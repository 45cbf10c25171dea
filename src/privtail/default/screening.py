"""Private selection of the features most correlated with the target."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from privtail.default.fit import Fit
from privtail.default.intercept import MeanDerivative
from privtail.losses import AbsoluteLoss
from privtail.losses.magnitudes import largest_derivative
from privtail.robust_means import ClampedMean
from privtail.summaries.column_summaries import MAX_SNR, ColumnSummaries
from privtail.summaries.standardization import Standardization
from privtail.summaries.summary import UNUSED, Summary
from privtail.trusted.events import Plan, Round, compose
from privtail.trusted.mechanisms.noise import GaussianNoise
from privtail.trusted.mechanisms.selection import NoisyTopK
from privtail.trusted.problem import Problem

SIGN = 2.0**-30
"""Derivatives that are clamped at this fraction of their largest value become signs."""

DENSITY = math.sqrt(2 / math.pi)
"""Twice the density of a standard Gaussian at its median: the slope of a mean of signs."""

SELECTED = ColumnSummaries(max_snr=MAX_SNR)
"""The column summaries of the selected features."""


@dataclass(frozen=True)
class SelectFeatures:
    """Selects features by one noisy top-k of quadrant correlations (Blomqvist 1950).

    The score of a feature is the absolute mean of sign(feature) sign(residual), with residuals of
    the intercept-only model. It is bounded, whatever scales and tails are. The selected features
    get column summaries of their own. The other features are not used from now on.

    Parameters
    ----------
    picks : the number of features to select.
    noise : the scale of the Gumbel noise of each pick.
    summary_noise : the noise of the column summaries of the selected features.
    median : mean signs that first move a numeric target to its median, because scores need
        residuals of which half are positive. None for other targets.
    """

    picks: int
    noise: float
    summary_noise: GaussianNoise
    median: MeanDerivative | None = None

    def plan(self, problem: Problem) -> Plan:
        median = self.median.plan(problem) if self.median else ()
        scores = problem.separations(ClampedMean(1.0))
        top = NoisyTopK(self.noise, self.picks).event(scores)
        own = SELECTED.plan(self.summary_noise.multiplier, problem, self.picks)
        return compose(median, (Round(stage="screening", events=(top,)),), own)

    def run(self, fit: Fit) -> None:
        problem, summary = fit.problem, fit.summary
        d, outputs = problem.d, problem.outputs
        standard = Standardization.of(_sign_cuts(summary, d), problem, sparse=fit.curator.sparse)
        w, loss, largest = fit.intercept_only.copy(), fit.loss, 1.0
        if fit.has_labels:
            largest = largest_derivative(loss, w[d:])
        elif fit.given_loss.targets == "real":
            loss = AbsoluteLoss()
            w[d:] = standard.target.location
            if self.median:
                for _ in range(self.median.releases):
                    above = self.median.release(fit, loss, w, 1.0)
                    w[d:] -= above * standard.target.scale / DENSITY
        batch = fit.curator.everyone(standard.map)
        scores = batch.separations(loss, w, ClampedMean(largest * SIGN))
        best = scores.release(NoisyTopK(self.noise, self.picks))
        chosen = np.unique(best // outputs)
        rest = np.setdiff1d(np.arange(d), chosen)[: self.picks - len(chosen)]
        columns = tuple(int(j) for j in np.concatenate([chosen, rest]))
        own = SELECTED.run(fit.curator, self.summary_noise.multiplier, columns)
        scales = np.full_like(summary.scales, UNUSED)
        measured = np.setdiff1d(chosen, problem.indicators)  # indicators are declared
        summary.put(measured, own.take(measured))
        scales[chosen], scales[d:] = summary.scales[chosen], summary.scales[d:]
        fit.standardize(replace(summary, scales=scales))


def _sign_cuts(summary: Summary, d: int) -> Summary:
    """A summary whose centres are the points at which the sign of a feature changes.

    Each is halfway from the median to the middle of the quartiles. The upper part of a skewed
    feature is more informative. But both signs should be about equally frequent, or an excess of
    positive residuals would add to all scores.
    """
    middles = summary.lows + (summary.highs - summary.lows) / 2
    known = summary.scale_known & (np.arange(len(middles)) < d)
    places = np.where(known, summary.centres + (middles - summary.centres) / 2, summary.centres)
    return replace(summary, centres=places, detected=np.ones_like(summary.detected))


def detectable_features(most: int, noise: float, score_to_noise: float, problem: Problem) -> int:
    """The number of features that a selection can detect, at most ``most``.

    k equal features that explain all of a target have quadrant correlations of about
    2 / (pi sqrt k). A top-k that costs one mean of ``noise`` adds Gumbel noise of scale
    noise sqrt(k) / n to each score; the largest of d is about log(d) scales. A score should be
    ``score_to_noise`` times as large as that.
    """
    largest = noise * problem.max_rows / problem.n * math.log(problem.d)
    return max(1, min(most, int(2 / math.pi / (score_to_noise * largest)))) if largest > 0 else most
