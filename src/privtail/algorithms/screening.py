"""A first stage for many features: keep the few that the target goes with."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike, NDArray

from privtail.algorithms.quantile_scales import RARE, QuantileScales
from privtail.algorithms.scales import BEYOND, Scales
from privtail.algorithms.standardized import Standard
from privtail.losses import AbsoluteLoss, Loss
from privtail.trusted.curator import Curator
from privtail.trusted.events import Plan, Round, compose
from privtail.trusted.means import ClampedMean
from privtail.trusted.mechanisms.selection import NoisyTopK
from privtail.trusted.problem import Problem

Columns = NDArray[np.intp]

NARROW = 2.0**-30
"""Products of features and signs are clamped here, in scales: they are signs, in any unit."""


@dataclass(frozen=True, kw_only=True)
class Screening:
    """Choose ``sparsity`` features by one noisy top-k of quadrant correlations (Blomqvist 1950).

    The score of a feature is how often it and the residual of a model, at first the constant one,
    have the same sign: bounded, and blind to scales and tails. Features that shared one scale get
    their own afterwards, which is affordable for a few.

    **Privacy.** One selection under Gumbel noise, `QuantileScales` of ``sparsity`` columns.
    """

    sparsity: int

    def plan(
        self, multiplier: float, scales: float, shared: bool, problem: Problem, chosen: int = 0
    ) -> Plan:
        """The selection, each pick with noise ``multiplier``; then scales, if they were shared.

        So many features are ``chosen`` already.
        """
        if self.sparsity >= problem.d:
            return ()
        scores = replace(problem.gradient(ClampedMean(1.0)), one_signed=False)
        left = (problem.d - chosen) * problem.outputs
        top = NoisyTopK(multiplier, self.sparsity).event(scores.take(left))
        closer = QuantileScales(enough=RARE).plan(scales, problem, self.sparsity)
        return compose((Round(events=(top,)),), closer if shared else ())

    def run(
        self, curator: Curator, loss: Loss, found: Scales, multiplier: float, scales: float,
        shared: bool, raw: ArrayLike | None = None, chosen: Columns | None = None,
    ) -> tuple[Scales, Columns]:  # fmt: skip
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
        w = Standard.of(_cut(found, d), curator).start(problem, raw)
        signs = AbsoluteLoss() if loss.targets == "real" else loss
        scores = curator.everyone().gradient(signs, w, ClampedMean(NARROW * _steep(signs)))
        asked = (left[:, None] * outputs + np.arange(outputs)).ravel()
        best = scores.take(asked).abs().release(NoisyTopK(multiplier, self.sparsity))
        top = np.unique(left[best // outputs])
        if shared:
            curator.transform(np.ones(d))
            rest = np.setdiff1d(left, top)[: self.sparsity - len(top)]
            columns = tuple(int(j) for j in np.concatenate([top, rest]))
            own = QuantileScales(enough=RARE).run(curator, scales, columns)
            found.put(top, own.take(top))
        return found, np.union1d(before, top)


def of_chosen(found: Scales, chosen: Columns, d: int) -> Scales:
    """The same where the other features of ``d`` count for nothing."""
    scales = np.full_like(found.scales, BEYOND)
    scales[chosen], scales[d:] = found.scales[chosen], found.scales[d:]
    return replace(found, scales=scales)


def _cut(found: Scales, d: int) -> Scales:
    """With features cut halfway from the median to the middle of the quartiles' cells.

    Beyond its median a skewed feature says more; but both of its signs should be about as frequent,
    or what the target's signs have too much of would add to all scores.
    """
    middles = found.lows + (found.highs - found.lows) / 2
    resolved = found.resolved & (np.arange(len(middles)) < d)
    places = np.where(resolved, found.centres + (middles - found.centres) / 2, found.centres)
    return replace(found, centres=places, reliable=np.ones_like(found.reliable))


def _steep(loss: Loss) -> float:
    """Size of a typical derivative: labels begin in the middle between all and nothing."""
    return 1.0 if loss.targets == "real" else 0.5
