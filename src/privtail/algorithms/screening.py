"""A first stage for many features: keep the few that the target goes with."""

from __future__ import annotations

import math
from dataclasses import dataclass, fields, replace

import numpy as np
from numpy.typing import NDArray

from privtail.algorithms.quantile_scales import BEYOND, RARE, QuantileScales, Scales
from privtail.algorithms.standardized import Standard
from privtail.losses import AbsoluteLoss, Loss
from privtail.trusted.curator import Curator
from privtail.trusted.events import Plan, Round, compose
from privtail.trusted.means import ClampedMean
from privtail.trusted.mechanisms.noise import GaussianNoise
from privtail.trusted.mechanisms.selection import NoisyTopK
from privtail.trusted.problem import Problem
from privtail.trusted.sensitive import INTEGER_LIMIT

NARROW = 0.2
"""Products of features and signs are clamped here, in scales: little more than signs."""


COMMON = 5.0
"""Noise of what all scores have in common, in that of one selected feature's: 4 % of the cost."""

CUTPART = 1.0
MANY = 32
"""So many scores, or more, have a mean that hardly depends on the features to be found."""


@dataclass(frozen=True, kw_only=True)
class Screening:
    """Keep ``sparsity`` features by one noisy top-k of quadrant correlations (Blomqvist 1950).

    The score of a feature is how often it and the residual of the constant model have the same
    sign: bounded, and blind to scales and tails. Where neither sign is as frequent as the other,
    all scores are off by about the same, which is bought and taken off. Features that shared one
    scale get their own afterwards, which is affordable for a few.

    **Privacy.** One Gaussian release of the mean of the scores, one selection under Gumbel noise,
    `QuantileScales` of ``sparsity`` columns.
    """

    sparsity: int

    def plan(self, multiplier: float, scales: float, shared: bool, problem: Problem) -> Plan:
        """The selection, with a range of ``multiplier``; then the scales, if they were shared."""
        d, outputs = problem.d, problem.outputs
        if self.sparsity >= d:
            return ()
        scores = problem.gradient(ClampedMean(1.0)).take(d * outputs)
        top = self._top(multiplier).event(replace(scores, one_signed=False))
        matrix = _sums(problem)
        closer = QuantileScales(enough=RARE).plan(scales, problem, self.sparsity)
        events = (_common(multiplier).event(scores.dot(matrix)), top) if len(matrix) else (top,)
        return compose((Round(events=events),), closer if shared else ())

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
        scores, matrix = scores.take(np.arange(d * outputs)), _sums(problem)
        if len(matrix):
            means = scores.dot(matrix).release(_common(multiplier)) / matrix[0].sum()
            scores = scores.shift(np.tile(-means, d))
        top = np.unique(scores.abs().release(self._top(multiplier)) // outputs)
        if shared:
            curator.transform(np.ones(d))
            rest = np.setdiff1d(np.arange(d), top)[: self.sparsity - len(top)]
            columns = tuple(int(j) for j in np.concatenate([top, rest]))
            own = QuantileScales(enough=RARE).run(curator, scales, columns)
            for field in fields(Scales):
                getattr(found, field.name)[top] = getattr(own, field.name)[top]
        kept = np.full_like(found.scales, BEYOND)
        kept[top], kept[d:] = found.scales[top], found.scales[d:]
        return replace(found, scales=kept)

    def _top(self, multiplier: float) -> NoisyTopK:
        return NoisyTopK(multiplier * math.sqrt(self.sparsity), self.sparsity)


def _common(multiplier: float) -> GaussianNoise:
    return GaussianNoise(COMMON * multiplier)


def _sums(problem: Problem) -> NDArray[np.int64]:
    """(K, d K) which adds the scores of every output; no rows where sums would be too large."""
    scores = problem.gradient(ClampedMean(1.0)).take(problem.d * problem.outputs)
    room = (INTEGER_LIMIT - 1) // (2 * scores.magnitude)
    chosen = (np.arange(problem.d) < room).astype(np.int64)
    rows = problem.outputs if min(problem.d, room) >= MANY else 0
    return np.kron(chosen, np.eye(problem.outputs, dtype=np.int64)).reshape(
        problem.outputs, problem.d * problem.outputs
    )[:rows]


def _cut(found: Scales, d: int) -> Scales:
    """With features centred between their quartiles: beyond its median a skewed one says more."""
    middles = found.lows + (found.highs - found.lows) / 2
    middles = found.centres + CUTPART * (middles - found.centres)
    places = np.where(found.resolved & (np.arange(len(middles)) < d), middles, found.centres)
    return replace(found, centres=places, reliable=np.ones_like(found.reliable))


def _steep(loss: Loss) -> float:
    """Size of a typical derivative: labels begin in the middle between all and nothing."""
    return 1.0 if loss.targets == "real" else 0.5
