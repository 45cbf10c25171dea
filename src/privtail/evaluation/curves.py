"""Curves of a classifier of two labels, and numbers that are made of noisy counts."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, xlogy

from privtail.evaluation.result import Curves, Estimate

Doubles = NDArray[np.float64]

STEPS = 33
"""How many counts of a label are tried, from one end of its interval to the other."""

SHOWN = 4.0
"""A bin shows the share of a label if its rows exceed this many deviations of their noise."""


@dataclass(frozen=True, eq=False)
class Bins:
    """Bins of log-odds between ``edges``, and the probability that is typical of each."""

    edges: Doubles
    predicted: Doubles

    def halves(self, table: Doubles) -> tuple[Doubles, Doubles]:
        """Columns of a table where the first label is likelier, and where the second is."""
        cut = int(np.searchsorted(self.edges, 0.0)) + 1
        return table[:, :cut], table[:, cut:]


def refined(counts: Doubles, grid: Doubles) -> Doubles:
    """As many edges as a grid has, between which rows are about as many; one is 0.

    Within a cell rows are taken to be spread evenly. So the log-odds of a model that hardly tells
    rows apart, all in one cell, get many edges: in one bin they would be ties, and the area 1/2.
    """
    held = np.maximum(counts, 0.0) + 1e-9
    ends = np.concatenate([[grid[0] - 1], grid, [grid[-1] + 1]])
    shares = (np.arange(len(grid)) + 0.5) / len(grid)
    edges: Doubles = np.interp(shares, np.concatenate([[0.0], held.cumsum() / held.sum()]), ends)
    edges[np.argmin(np.abs(edges))] = 0.0
    return edges


def chosen(counts: Doubles, grid: Doubles, bins: int) -> Bins:
    """Bins with about equally many rows, from noisy counts in a grid; one of them ends at 0."""
    held = np.maximum(counts, 0.0) + 1e-9
    below = np.cumsum(held)[:-1] / held.sum()
    wanted = np.arange(1, bins - 1) / (bins - 1)
    taken = {int(np.argmin(np.abs(grid)))}
    for share in wanted:
        free = [i for i in range(len(grid)) if i not in taken]
        taken.add(min(free, key=lambda i: (abs(below[i] - share), i)))
    at = sorted(taken)
    steps = np.concatenate([[grid[0]], (grid[1:] + grid[:-1]) / 2, [grid[-1]]])
    parts = np.split(np.arange(len(held)), np.array(at) + 1)
    typical = [np.average(expit(steps[cells]), weights=held[cells]) for cells in parts]
    return Bins(grid[at], np.array(typical))


@dataclass(frozen=True)
class Noisy:
    """Errors of what is made of counts: their noise, and the sampling of the rows.

    A function f of the counts c deviates by sqrt(sum (df/dc)^2 (std^2 + c)): the delta method, with
    counts of rows that come independently. A negative count is kept: if it were cut at zero, sums
    of counts would be too large on average.
    """

    std: float
    sampled: bool
    z: float

    def estimate(
        self, of: Callable[[Doubles], float], table: Doubles, most: float = 1.0
    ) -> Estimate:
        """A number in [0, ``most``] of a table of counts, with its interval.

        It is not known where noise may be all that the table holds.
        """
        if table.sum() <= self.z * self.std * math.sqrt(table.size):
            return Estimate(math.nan, 0.0, most)
        value, step, variance = of(table), max(self.std, 1.0), 0.0
        for place in np.ndindex(table.shape):
            up, down = table.copy(), table.copy()
            up[place] += step
            down[place] -= step
            slope = (of(up) - of(down)) / (2 * step)
            spread = self.std**2 + (max(float(table[place]), 0.0) if self.sampled else 0.0)
            variance += slope**2 * spread
        reach = self.z * math.sqrt(variance)
        if not math.isfinite(value + reach):
            return Estimate(math.nan, 0.0, most)
        value = min(max(value, 0.0), most)
        return Estimate(value, max(value - reach, 0.0), min(value + reach, most))

    def entropy(self, table: Doubles) -> Estimate:
        """Log loss of the shares of the labels in rows, with its interval.

        The delta method fails for rare labels: where a count is below zero, the entropy has no
        slope. So each count is moved through its interval, while the others stay. The interval of
        the entropy adds the squares of these changes. Its lower end assumes that no row has a
        label that noise hides.
        """
        if table.sum() <= self.z * self.std * math.sqrt(table.size):
            return Estimate(math.nan, 0.0, math.inf)
        counts = table.sum(axis=1)
        extra = self.z**2 / 2 if self.sampled else 0.0  # of the score interval of a Poisson mean
        variance = self.std**2 * table.shape[1] + extra / 2
        reach = self.z * np.sqrt(variance + (np.maximum(counts, 0.0) if self.sampled else 0.0))
        ways = np.linspace(counts + extra - reach, counts + extra + reach, STEPS)
        shown = np.where(ways[0] > 0, counts, 0.0)
        value, least, labels = entropy(counts), entropy(shown), range(len(counts))
        fall = math.hypot(*(least - min(_along(shown, ways, k)) for k in labels))
        rise = math.hypot(*(max(value, *_along(counts, ways, k)) - value for k in labels))
        low = max(min(least - fall, value), 0.0) if shown.any() else 0.0
        return Estimate(value, low, min(value + rise, math.log(len(counts))))


def largest(counts: Doubles) -> float:
    """The share of the most frequent label."""
    return float(counts.max() / counts.sum()) if counts.sum() > 0 else math.nan


def entropy(counts: Doubles) -> float:
    """Log loss of the shares of the labels."""
    counts = np.maximum(counts, 0.0)
    if not counts.sum() > 0:
        return math.nan
    shares = counts / counts.sum()
    return float(0.0 - xlogy(shares, shares).sum())  # never -0


def _along(counts: Doubles, ways: Doubles, label: int) -> list[float]:
    """The entropy at each count that is tried of one label, while the others stay."""
    found = []
    for one in ways[:, label]:
        moved = counts.copy()
        moved[label] = one
        found.append(entropy(moved))
    return found


def area(table: Doubles) -> float:
    """The chance that a row of the second label stands above one of the first; ties count half."""
    first, second = table
    if not (first.sum() > 0 and second.sum() > 0):
        return math.nan
    above = first.cumsum() - first / 2
    return float(second @ above / (first.sum() * second.sum()))


def curves_of(table: Doubles, bins: Bins, noisy: Noisy) -> tuple[Curves, dict[str, Estimate]]:
    """ROC, precision and recall, calibration; the area, and both rates at probability 1/2."""

    def precision(t: Doubles) -> float:
        second = bins.halves(t)[1].sum(axis=1)
        return float(second[1] / second.sum()) if second.sum() > 0 else math.nan

    def recall(t: Doubles) -> float:
        return float(bins.halves(t)[1][1].sum() / t[1].sum()) if t[1].sum() > 0 else math.nan

    numbers = {
        "auc": noisy.estimate(area, table),
        "precision": noisy.estimate(precision, table),
        "recall": noisy.estimate(recall, table),
    }
    counts = np.maximum(table, 0.0)
    above = np.cumsum(counts[:, ::-1], axis=1)  # rows of both labels at or above a bin
    with np.errstate(all="ignore"):
        rates = np.column_stack([np.zeros(2), above / above[:, -1:]])
        positive = above.sum(axis=0)
        precisions = (above[1] / positive)[::-1]
        recalls = (above[1] / above[1, -1])[::-1]
    observed, low, high = _observed(table, noisy)
    return (
        Curves(
            expit(bins.edges), bins.predicted, observed, low, high, rates[0], rates[1], precisions,
            recalls,
        ),
        numbers,
    )  # fmt: skip


def _second(counts: Doubles) -> float:
    return float(counts[1] / counts.sum()) if counts.sum() > 0 else math.nan


def _observed(table: Doubles, noisy: Noisy) -> tuple[Doubles, Doubles, Doubles]:
    """The share of the second label in every bin, and its interval; NaN where noise hides it."""
    found = np.full((3, table.shape[1]), np.nan)
    for place in np.flatnonzero(table.sum(axis=0) > SHOWN * math.sqrt(2) * noisy.std):
        one = noisy.estimate(_second, table[:, place])
        found[:, place] = one.value, one.low, one.high
    return found[0], found[1], found[2]
