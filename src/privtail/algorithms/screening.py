"""A first stage for many features: keep the few that the target goes with."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from privtail.algorithms.quantile_scales import RARE, QuantileScales
from privtail.algorithms.scales import BEYOND, Scales
from privtail.algorithms.standardized import Standard
from privtail.losses import AbsoluteLoss, Loss
from privtail.trusted.curator import Curator
from privtail.trusted.events import Plan, Round, compose
from privtail.trusted.means import ClampedMean
from privtail.trusted.mechanisms.selection import NoisyTopK
from privtail.trusted.problem import Problem

NARROW = 2.0**-30
"""Products of features and signs are clamped here, in scales: they are signs, in any unit."""


@dataclass(frozen=True, kw_only=True)
class Screening:
    """Keep ``sparsity`` features by one noisy top-k of quadrant correlations (Blomqvist 1950).

    The score of a feature is how often it and the residual of the constant model have the same
    sign: bounded, and blind to scales and tails. Features that shared one scale get their own
    afterwards, which is affordable for a few.

    **Privacy.** One selection under Gumbel noise, `QuantileScales` of ``sparsity`` columns.
    """

    sparsity: int

    def plan(self, multiplier: float, scales: float, shared: bool, problem: Problem) -> Plan:
        """The selection, with a range of ``multiplier``; then the scales, if they were shared."""
        if self.sparsity >= problem.d:
            return ()
        scores = replace(problem.gradient(ClampedMean(1.0)), one_signed=False)
        top = self._top(multiplier).event(scores.take(problem.d * problem.outputs))
        closer = QuantileScales(enough=RARE).plan(scales, problem, self.sparsity)
        return compose((Round(events=(top,)),), closer if shared else ())

    def run(
        self, curator: Curator, loss: Loss, found: Scales, multiplier: float, scales: float,
        shared: bool,
    ) -> Scales:  # fmt: skip
        """``found``, where the features that are left out count for nothing."""
        problem = curator.problem
        d, outputs = problem.d, problem.outputs
        if self.sparsity >= d:
            return found
        w = Standard.of(_cut(found, d), curator).start(problem, None)
        signs = AbsoluteLoss() if loss.targets == "real" else loss
        scores = curator.everyone().gradient(signs, w, ClampedMean(NARROW * _steep(signs)))
        scores = scores.take(np.arange(d * outputs)).abs()
        top = np.unique(scores.release(self._top(multiplier)) // outputs)
        if shared:
            curator.transform(np.ones(d))
            rest = np.setdiff1d(np.arange(d), top)[: self.sparsity - len(top)]
            columns = tuple(int(j) for j in np.concatenate([top, rest]))
            own = QuantileScales(enough=RARE).run(curator, scales, columns)
            found.put(top, own.take(top))
        kept = np.full_like(found.scales, BEYOND)
        kept[top], kept[d:] = found.scales[top], found.scales[d:]
        return replace(found, scales=kept)

    def _top(self, multiplier: float) -> NoisyTopK:
        return NoisyTopK(multiplier * math.sqrt(self.sparsity), self.sparsity)


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
