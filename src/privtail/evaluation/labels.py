"""How well a model tells labels, from noisy means and noisy counts."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privtail.calibration import calibrated
from privtail.coefficients import normal_quantile
from privtail.evaluation.curves import Bins, Noisy, chosen, curves_of, largest, refined
from privtail.evaluation.numbers import HALF, PERSONS
from privtail.evaluation.result import Estimate, Evaluation
from privtail.promised import Promised
from privtail.statement import state
from privtail.summaries.histograms import fewer, usable_rows
from privtail.trusted import row_errors
from privtail.trusted.curator import Curator
from privtail.trusted.events import Plan, Round
from privtail.trusted.mechanisms.noise import GaussianNoise
from privtail.trusted.problem import Problem
from privtail.trusted.row_errors import APART, LARGEST_LOSS, AnyModel
from privtail.trusted.sensitivity import Sensitivity

Doubles = NDArray[np.float64]

FINDING, COUNTING, MEANS = 0.1, 0.45, 0.45
"""Parts of the squared Gaussian-DP parameter: to find the bins, for their counts, for the means.

This holds under zero-out, for two labels. Under replace-one the parts are 7, 31 and 62 %: a
replaced row moves a mean twice as far as an emptied one, and a histogram sqrt 2 times as far.
"""

AHEAD = np.concatenate([np.arange(0.5, 8.0, 0.5), np.arange(8.0, 16.0), np.arange(16.0, 41.0, 4.0)])
GRID = np.concatenate([-AHEAD[::-1], [0.0], AHEAD])
"""Log-odds between which a first histogram counts rows; a second has as many edges, nearer ones."""

BINS = 21
LARGEST_CONFUSION = 20
"""A table of true and predicted labels is counted for at most this many labels."""

NO_LABEL = (
    "Nor does it if its label is none of the model's: compare the spelling. All numbers are those "
    "of the rows that count."
)


def of_labels(
    model: AnyModel, X: Any, y: Any, classes: tuple[Any, ...], promised: Promised, confidence: float
) -> Evaluation:
    """Accuracy, log loss and curves of the model, and of the shares of the labels."""
    rows = row_errors.likelihoods(X, y, model, classes)
    curator = rows.curator(**promised.options("evaluate: labels"))
    promised.warn(curator.problem.n)
    stages = _Stages(len(classes))
    multiplier = calibrated(curator, lambda m: stages.plan(m, curator.problem))
    sampled, z = promised.groups is None, normal_quantile(confidence)
    bins, std = stages.bins(curator, multiplier)
    table = stages.table(curator, multiplier, bins)
    means, mean_std = stages.means(curator, multiplier)
    n = curator.problem.n
    part = usable_rows(2 * n * means[:1], 2 * n * mean_std, n)
    numbers = _accuracy(means, mean_std, n, z, sampled)
    curves, confusion = None, table
    if table is not None:
        noisy = Noisy(std, sampled, z)
        numbers["constant_accuracy"] = noisy.estimate(lambda t: largest(t.sum(axis=1)), table)
        numbers["constant_log_loss"] = noisy.entropy(table)
        if bins is not None:
            curves, more = curves_of(table, bins, noisy)
            numbers |= more
            confusion = np.column_stack([half.sum(axis=1) for half in bins.halves(table)])
    notes = (*fewer(*part, n, NO_LABEL), *(() if sampled else (PERSONS,)))
    statement = state(curator, notes)
    return Evaluation(numbers, curves, confusion, classes, confidence, n, (statement,), notes)


@dataclass(frozen=True)
class _Stages:
    """The releases of an evaluation of a model of ``labels`` labels, in order."""

    labels: int

    def plan(self, multiplier: float, problem: Problem) -> Plan:
        rounds = []
        if self.labels == 2:
            cells = len(_of_both(GRID))
            finding = _round("bins of probability", multiplier, FINDING / 2, problem, cells)
            rounds += [finding, finding]
            cells = len(_of_both(GRID[1:BINS]))
            rounds.append(_round("rows by label and bin", multiplier, COUNTING, problem, cells))
        elif self.labels <= LARGEST_CONFUSION:
            cells = self.labels**2 - 1
            rounds.append(_round("true and predicted labels", multiplier, COUNTING, problem, cells))
        event = _noise(multiplier, MEANS).event(problem.means(HALF))
        return (*rounds, Round(stage="accuracy and log loss", events=(event,)))

    def bins(self, curator: Curator, multiplier: float) -> tuple[Bins | None, float]:
        """Bins that are about as full as each other, and the noise of the counts to come."""
        counting = _noise(multiplier, COUNTING)
        answer = curator.problem.histogram(1, 1)
        std = counting.event(answer).std
        if self.labels != 2:
            return None, std
        grid = refined(self._rows(curator, multiplier, GRID), GRID)
        return chosen(self._rows(curator, multiplier, grid), grid, BINS), std

    def _rows(self, curator: Curator, multiplier: float, grid: Doubles) -> Doubles:
        """Counts of the rows of both labels between log-odds, to find the bins."""
        asked = curator.everyone().histogram((-1,), _of_both(grid))
        counts = asked.release(_noise(multiplier, FINDING / 2)).reshape(2, -1)
        return np.asarray(counts.sum(axis=0))

    def table(self, curator: Curator, multiplier: float, bins: Bins | None) -> Doubles | None:
        """Counts by true label in rows, and bin or predicted label in columns."""
        if self.labels > LARGEST_CONFUSION:
            return None
        edges = np.arange(1, self.labels**2) - 0.5 if bins is None else _of_both(bins.edges)
        asked = curator.everyone().histogram((-1,), edges)
        return asked.release(_noise(multiplier, COUNTING)).reshape(self.labels, -1)

    def means(self, curator: Curator, multiplier: float) -> tuple[Doubles, float]:
        """Means over n of the columns of `likelihoods`, and the deviation of their noise."""
        asked, noise = curator.everyone().means(HALF), _noise(multiplier, MEANS)
        std = noise.event(asked.sensitivity).std
        return asked.release(noise), std


def _of_both(edges: Doubles) -> Doubles:
    """Edges of the log-odds of rows of the first label, then of the second."""
    return np.concatenate([edges, [APART / 2], APART + edges])


def _noise(multiplier: float, part: float) -> GaussianNoise:
    return GaussianNoise(multiplier / math.sqrt(part))


def _round(stage: str, multiplier: float, part: float, problem: Problem, edges: int) -> Round:
    asked: Sensitivity = problem.histogram(1, edges)
    return Round(stage=stage, events=(_noise(multiplier, part).event(asked),))


def _accuracy(means: Doubles, std: float, n: int, z: float, sampled: bool) -> dict[str, Estimate]:
    """Accuracy and log loss of the rows that count, which are a part of all."""
    part = max(2 * float(means[0]), 2 * std, 1 / n)
    shares = means[1:] / part
    noise = np.sqrt((std / part) ** 2 + (2 * std * shares / part) ** 2)
    wrong, loss, square = np.clip(shares + 0.5, 0.0, 1.0)
    spreads = np.sqrt([wrong * (1 - wrong), max(square - loss**2, 0.0)]) / math.sqrt(part * n)
    reach = z * np.hypot(noise[:2], spreads if sampled else 0.0)
    return {
        "accuracy": _within(1 - wrong, reach[0], 1.0),
        "log_loss": _within(LARGEST_LOSS * loss, LARGEST_LOSS * reach[1], LARGEST_LOSS),
    }


def _within(value: float, reach: float, most: float) -> Estimate:
    return Estimate(float(value), float(max(value - reach, 0)), float(min(value + reach, most)))
