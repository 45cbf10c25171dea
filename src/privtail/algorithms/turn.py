"""Coordinates in which features that go together are taken apart before rows are shrunk."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import NDArray

from privtail.algorithms.metric import LEAST, Metric
from privtail.losses import Loss
from privtail.trusted.batch import Batch
from privtail.trusted.curator import Curator
from privtail.trusted.means import MallowsMean
from privtail.trusted.mechanisms.noise import GaussianNoise

Doubles = NDArray[np.float64]

MOST = 128
"""Of more features a turned gradient takes several times as long as another."""

WORTH = 0.97
"""Rows are turned where that leaves less of the noise than this part."""

QUIET = 0.01
"""Noise of a gradient that moves predictions by less than this part of a residual is no matter.

A hundred of these, one after the other, add one per cent to its square.
"""

DOUBTED = 0.5
"""Part of what noise may hide that counts as curvature of every direction."""


@dataclass(frozen=True)
class Turn:
    """Rows whose features are as long as they were, and no longer go together.

    Where features go together most of a row's length is what all of them say, and noise is as long
    as that in every direction: also in those in which features differ, which tell their slopes
    apart and are many times shorter. Of features with covariance D C D (D their lengths, C their
    correlations), turned ones are D C^(-1/2) D^(-1) times the others, as far as second moments show
    it. Gradients are taken, shrunk and hidden there, and turned back: noise is then longer in the
    direction of what all features say, and short where they differ.

    Parameters and gradients outside are those of features as they were.

    Attributes
    ----------
    joint, inverse : (rows, rows) of what turns (z, 1); None where rows are left as they are.
    means : (d,) what is taken off the features first.
    gains : (r,) noise of a gradient that is turned back, along the principal directions.
    bent : (d,) noise of slopes after a step, in that which these gains would add if the noise of
        one direction knew nothing of the others'.
    spread : that of `Metric`, of such noise.
    shorter : length of a typical row that is turned, in that of one that is not.
    """

    joint: Doubles | None
    inverse: Doubles | None
    means: Doubles
    gains: Doubles
    bent: Doubles
    spread: float
    shorter: float

    @classmethod
    def of(cls, metric: Metric, curator: Curator, law: GaussianNoise) -> Self:
        """By what was released of second moments, if that is `WORTH` it with gradients' noise."""
        d = curator.problem.d
        count = len(metric.values)
        still = cls(None, None, np.zeros(d), np.ones(count), np.ones(d), metric.spread, 1.0)
        features = np.flatnonzero(metric.active[:d])
        if not (metric.likely.size and 2 <= len(features) <= d <= MOST):
            return still
        mean = MallowsMean(1.0, metric.short * metric.reach)
        if law.event(curator.problem.gradient(mean)).std * metric.spread < QUIET:
            return still
        moments = metric.vectors * (metric.likely + DOUBTED * metric.hidden) @ metric.vectors.T
        square, means = np.ix_(features, features), np.zeros(d)
        if metric.active[d:].any() and not curator.sparse:
            means[features] = moments[features, d] / moments[d, d]
            moments[:d, :d] -= moments[d, d] * np.outer(means, means)
        joint = np.eye(len(moments))
        joint[square] = _apart(moments[square])
        joint[:d, d:] = -(joint[:d, :d] @ means)[:, None]
        inverse = np.asarray(np.linalg.inv(joint), dtype=np.float64)
        gains = np.linalg.norm(metric.vectors.T @ inverse, axis=1)
        apart = metric.deviations(gains / np.sqrt(metric.values), d)
        true = np.linalg.norm((metric.inverse @ inverse)[:d], axis=1)
        bent = np.divide(true, apart, out=np.ones(d), where=apart > 0)
        walks = metric.parts / metric.values**2
        spread = metric.spread * math.sqrt(float(walks @ gains**2) / float(walks.sum()))
        lengths = np.linalg.norm(joint @ metric.vectors, axis=0)
        shorter = math.sqrt(float(metric.parts @ lengths**2))
        turned = cls(joint, inverse, means, gains, bent, spread, shorter)
        return turned if spread * shorter < WORTH * still.spread else still

    def gradient(
        self, curator: Curator, batch: Batch, loss: Loss, w: Doubles, mean: MallowsMean,
        law: GaussianNoise,
    ) -> Doubles:  # fmt: skip
        """(rows, K) a released gradient at ``w``, of rows that were turned before they shrank."""
        if self.joint is None or self.inverse is None:
            return batch.gradient(loss, w, mean).release(law).reshape(w.shape)
        map_, d = curator.map, curator.problem.d
        offsets, turn = map_.offsets - self.means, self.joint[:d, :d].T
        with curator.transformed(map_.scales, offsets, turn):
            g = batch.gradient(loss, self.inverse.T @ w, mean).release(law)
        return np.asarray(self.inverse @ g.reshape(w.shape))


def _apart(covariance: Doubles) -> Doubles:
    """D C^(-1/2) D^(-1) of a covariance D C D: features as long as before, and uncorrelated."""
    diagonal = np.diag(covariance)
    lengths = np.sqrt(np.maximum(diagonal, LEAST * diagonal.max()))
    values, vectors = np.linalg.eigh(covariance / np.outer(lengths, lengths))
    root = vectors / np.sqrt(np.maximum(values, LEAST * values[-1])) @ vectors.T
    return np.asarray(lengths[:, None] * root / lengths)
