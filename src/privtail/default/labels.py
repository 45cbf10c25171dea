"""The intercept-only model of labels, from their released counts."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from privtail.default.fit import Fit
from privtail.losses import WeightedLoss
from privtail.summaries.column_summaries import SHARP
from privtail.summaries.histograms import usable_rows
from privtail.trusted.events import Event, Plan, Round
from privtail.trusted.mechanisms.noise import GaussianNoise
from privtail.trusted.problem import Problem

Doubles = NDArray[np.float64]


@dataclass(frozen=True)
class CountLabels:
    """Releases the counts of the labels. The intercept-only model predicts their frequencies.

    Margins of two labels are clipped where a probability is the noise of a count over n, because
    the release cannot tell smaller probabilities from 0.

    **Privacy.** One Gaussian release of a histogram of l2 sensitivity sqrt 2.
    """

    noise: GaussianNoise

    def plan(self, problem: Problem) -> Plan:
        return (Round(stage="label counts", events=(self._event(problem),)),)

    def finds_target(self, problem: Problem) -> bool:
        """Whether the noise is small enough for the counts, by the bound of a column (`SHARP`)."""
        return self.noise.multiplier * problem.max_rows <= problem.n / SHARP

    def run(self, fit: Fit) -> None:
        problem = fit.problem
        edges = np.arange(_labels(problem) - 1) + 0.5
        counts = fit.curator.everyone().histogram((-1,), edges).release(self.noise)
        std = self._event(problem).std
        fit.usable_rows = usable_rows(counts, std, problem.n)
        counts = np.maximum(counts, max(1.0, std))
        if problem.intercept:
            weights = fit.loss.weights if isinstance(fit.loss, WeightedLoss) else 1.0
            logs = np.log(counts * weights)
            fit.w = fit.intercept_only = np.zeros((problem.rows, problem.outputs))
            fit.w[-1] = logs[1:] - logs[:1] if problem.outputs == 1 else logs - logs.mean()
        noise = fit.tuning.likely * math.sqrt(2) * std * len(counts) / problem.n
        difference = float(np.ptp(np.append(0.0, fit.intercept_only[problem.d :])))
        fit.rarest_label = float(len(counts) * counts.min() / counts.sum())
        fit.labels_even = difference + noise <= fit.tuning.even_log_odds
        if problem.outputs == 1:
            most = math.log(max(2.0, problem.n / max(1.0, std)))
            fit.margin_range = -most, most

    def _event(self, problem: Problem) -> Event:
        return self.noise.event(problem.histogram(1, _labels(problem) - 1))


def margin_gap(intercept: Doubles) -> float:
    """The largest margin of an intercept-only model of labels, less the second largest.

    ``intercept`` has the shape (1, K), or (0, K) without an intercept.
    """
    if intercept.size == 0:
        return 0.0
    margins = np.sort(intercept[0]) if intercept.size > 1 else np.array([0.0, abs(intercept[0, 0])])
    return float(margins[-1] - margins[-2])


def _labels(problem: Problem) -> int:
    return max(2, problem.outputs)
