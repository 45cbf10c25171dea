"""A first stage for many features: keep the few that the target goes with."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from privtail.default.acceptance import no_finer
from privtail.default.label_counts import derivatives
from privtail.default.standardization import Standardization
from privtail.losses import LABELS, AbsoluteLoss, Loss
from privtail.summaries.column_summaries import RARE, ColumnSummaries
from privtail.summaries.summary import BEYOND, Summary
from privtail.trusted.curator import Curator
from privtail.trusted.events import Event, Plan, Round, compose
from privtail.trusted.means import ClampedMean, Interval
from privtail.trusted.mechanisms.noise import GaussianNoise
from privtail.trusted.mechanisms.selection import NoisyTopK
from privtail.trusted.problem import Problem

Columns = NDArray[np.intp]

NARROW = 2.0**-30
"""Derivatives that are clamped here are signs."""

UNBALANCED = 0.38
"""Mean size of the mean signs of features from which the cut that they share parts them badly."""

ENOUGH = 20
"""A mean with noise 1 over this tells that."""


@dataclass(frozen=True)
class Signs:
    """Entries clamped to few steps of the grid: signs, of which many columns can be added."""

    size: float = 2.0**-20
    blocks: int = 1

    @property
    def range(self) -> Interval:
        return Interval(1.0, limit=self.size)


@dataclass(frozen=True)
class CutRange:
    """How far from zero features are cut that share one scale: not at all, or anywhere.

    In equal units the cut at zero says most, for the best of all cuts has a score where there is
    nothing to find. In units of their own features lie on one side of it.

    **Privacy.** One Gaussian release of the sum of the sizes of the mean signs.
    """

    noise: GaussianNoise

    @classmethod
    def priced(cls, noise: GaussianNoise, problem: Problem) -> Self:
        """With this noise, or with more where that is `ENOUGH`."""
        return cls(no_finer(noise.multiplier, problem, ENOUGH))

    def plan(self, problem: Problem) -> Plan:
        """One number."""
        return (Round(stage="screening", events=(self._event(problem),)),)

    def run(self, curator: Curator, loss: Loss, found: Summary) -> float:
        """0, or infinite; 0 where the constant model is not as often below targets as above."""
        problem = curator.problem
        standard = Standardization.of(_cut(found, problem.d), curator)
        total = curator.everyone().means(Signs()).abs().dot(_each(problem)).release(self.noise)
        size = float(total[0]) / Signs.size / len(problem.measured)
        even = problem.intercept and not standard.zero and loss.targets in (*LABELS, "real")
        return math.inf if even and size > UNBALANCED else 0.0

    def _event(self, problem: Problem) -> Event:
        return self.noise.event(problem.means(Signs()).dot(_each(problem)))


@dataclass(frozen=True, kw_only=True)
class Screening:
    """Choose ``sparsity`` features by one noisy top-k of quadrant correlations (Blomqvist 1950).

    The score of a feature is how often it and the residual of a model, at first the constant one,
    have the same sign: bounded, and blind to scales and tails. With a `CutRange` beyond zero it is
    that of the feature's best cut, and residuals of labels count by their sizes. Features that
    shared one scale get their own afterwards, which is affordable for a few.

    Parameters
    ----------
    sparsity : features to choose.
    multiplier : noise of each pick.
    own : noise of the looks at what is chosen; None where features have scales of their own.

    **Privacy.** One selection under Gumbel noise, `ColumnSummaries` of ``sparsity`` columns.
    """

    sparsity: int
    multiplier: float
    own: float | None

    def plan(self, problem: Problem, chosen: int = 0) -> Plan:
        """The selection, where so many features are ``chosen`` already; then scales."""
        if self.sparsity >= problem.d:
            return ()
        left = (problem.d - chosen) * problem.outputs
        scores = problem.separations(ClampedMean(1.0)).take(left)
        top = NoisyTopK(self.multiplier, self.sparsity).event(scores)
        looks = ColumnSummaries(enough=RARE)
        closer = () if self.own is None else looks.plan(self.own, problem, self.sparsity)
        return compose((Round(stage="screening", events=(top,)),), closer)

    def run(
        self, curator: Curator, loss: Loss, found: Summary, raw: ArrayLike | None = None,
        chosen: Columns | None = None, reach: float = 0.0,
    ) -> tuple[Summary, Columns]:  # fmt: skip
        """What is ``found`` with scales of their own, and all features that are chosen now.

        Those that were ``chosen`` already are not asked for; residuals are those of the model of
        ``raw`` features.
        """
        problem = curator.problem
        d, outputs = problem.d, problem.outputs
        before = np.zeros(0, dtype=np.intp) if chosen is None else chosen
        left = np.setdiff1d(np.arange(d), before)
        if self.sparsity >= d:
            return found, left
        w = Standardization.of(_cut(found, d), curator).start(problem, raw)
        loss = AbsoluteLoss() if loss.targets == "real" else loss
        mean = ClampedMean(_largest(loss, w[d:]) * (1.0 if reach else NARROW))
        asked = (left[:, None] * outputs + np.arange(outputs)).ravel()
        scores = curator.everyone().separations(loss, w, mean, reach).take(asked)
        best = scores.release(NoisyTopK(self.multiplier, self.sparsity))
        top = np.unique(left[best // outputs])
        if self.own is not None:
            curator.transform(np.ones(d))
            rest = np.setdiff1d(left, top)[: self.sparsity - len(top)]
            columns = tuple(int(j) for j in np.concatenate([top, rest]))
            own = ColumnSummaries(enough=RARE).run(curator, self.own, columns)
            found.put(top, own.take(top))
        return found, np.union1d(before, top)


def of_chosen(found: Summary, chosen: Columns, d: int) -> Summary:
    """The same where the other features of ``d`` count for nothing."""
    scales = np.full_like(found.scales, BEYOND)
    scales[chosen], scales[d:] = found.scales[chosen], found.scales[d:]
    return replace(found, scales=scales)


def _cut(found: Summary, d: int) -> Summary:
    """With features cut halfway from the median to the middle of the quartiles' cells.

    Beyond its median a skewed feature says more; but both of its signs should be about as frequent,
    or what the target's signs have too much of would add to all scores.
    """
    middles = found.lows + (found.highs - found.lows) / 2
    resolved = found.scale_known & (np.arange(len(middles)) < d)
    places = np.where(resolved, found.centres + (middles - found.centres) / 2, found.centres)
    return replace(found, centres=places, detected=np.ones_like(found.detected))


def _largest(loss: Loss, constant: NDArray[np.float64]) -> float:
    """The largest derivative of labels at a constant model; 1 of numbers, where signs do."""
    if loss.targets not in LABELS:
        return 1.0
    return float(np.abs(derivatives(loss, constant)).max())


def _each(problem: Problem) -> NDArray[np.int64]:
    """Ones for the columns that are measured, (1, d)."""
    ones = np.zeros((1, problem.d), dtype=np.int64)
    ones[:, list(problem.measured)] = 1
    return ones
