"""The histogram of the sizes of residuals: derivatives of a loss in the margin, at a model."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import NDArray

from privtail.losses import Loss, WeightedLoss
from privtail.summaries.histograms import Cells, Histogram, usable_rows
from privtail.trusted.batch import Batch
from privtail.trusted.events import Event, Plan, Round
from privtail.trusted.mechanisms.noise import GaussianNoise
from privtail.trusted.problem import Problem

Doubles = NDArray[np.float64]

SIZE_CELLS = Cells(2.0 ** np.arange(-64, 65, 0.5), zero=0)
"""Public cells in which sizes are counted."""

LEAST_UNCLIPPED = 0.05
"""The smallest part of the residuals that is taken to be unclipped."""

_EDGES = SIZE_CELLS.edges
_ENDS = np.append(_EDGES, _EDGES[-1])


@dataclass(frozen=True)
class ResidualHistogram:
    """A released histogram of the sizes of residuals: derivatives of the loss in the margin.

    Thresholds take the upper edge of a cell for its sizes, and scales its middle.

    **Privacy.** One Gaussian release of a histogram of l2 sensitivity sqrt 2.

    Attributes
    ----------
    counts : (cells,) counts; 0 where noise hides them.
    part : the part of the n rows that counts; 1 unless it is surely less.
    deviation : the standard deviation of the noise in ``part``; 0 if that is 1.
    bound : the largest size that the loss has; many residuals may have just this size.
    """

    counts: Doubles
    part: float = 1.0
    deviation: float = 0.0
    bound: float = math.inf

    @classmethod
    def unknown(cls) -> Self:
        """No residual was measured."""
        return cls(np.zeros(len(_ENDS)))

    @property
    def known(self) -> bool:
        """Whether any residual rose above the noise."""
        return bool(self.counts.any())

    @classmethod
    def plan(cls, noise: GaussianNoise, problem: Problem) -> Plan:
        """One histogram."""
        return (Round(stage="residual histogram", events=(_event(noise, problem),)),)

    @classmethod
    def released(cls, batch: Batch, noise: GaussianNoise, loss: Loss, w: Doubles) -> Self:
        """Releases the histogram at ``w``, of derivatives before class weights multiply them."""
        plain = loss.loss if isinstance(loss, WeightedLoss) else loss
        counts = batch.derivative_norms(plain, w, _EDGES).release(noise)
        std, n = _event(noise, batch.problem).std, batch.problem.n
        part, deviation = usable_rows(counts, std, n)
        shown = Histogram(counts, SIZE_CELLS, std).above_noise(n)
        return cls(shown, part, deviation, plain.lipschitz)

    @property
    def parts(self) -> Doubles:
        """(cells,) the part of the residuals in each cell."""
        return np.asarray(self.counts / max(float(self.counts.sum()), 1.0))

    @property
    def middles(self) -> Doubles:
        """(cells,) sizes in the middle of each cell, on a scale of logarithms."""
        return _ENDS / math.sqrt(_EDGES[1] / _EDGES[0])

    def mean_square(self) -> float:
        """The mean square of the sizes."""
        return float(self.parts @ _ENDS**2)

    def unclipped(self, threshold: float) -> float:
        """The part of the sizes below a threshold, `LEAST_UNCLIPPED` or more.

        A cell counts by its middle. If clipped sizes may be in the cell of the threshold, because
        the loss has no larger ones, that cell does not count.
        """
        whole = threshold >= _ENDS if threshold >= self.bound else threshold > self.middles
        return max(float(self.parts[whole].sum()), LEAST_UNCLIPPED)

    def quantile(self, part: float) -> float:
        """The lowest edge below which this part of the sizes above zero lies; inf without any."""
        moving = np.where(np.arange(len(self.counts)) > 0, self.counts, 0.0)
        if moving.sum() <= 0:
            return math.inf
        cell = int(np.searchsorted(np.cumsum(moving), part * moving.sum()))
        return float(_EDGES[min(cell, len(_EDGES) - 1)])

    def balanced(self, deviation: float) -> float:
        """The threshold at which clipping misses as much on average as noise adds.

        ``deviation`` is the standard deviation of the noise for a threshold of 1.
        """
        parts = self.parts
        missed = np.array([parts @ np.maximum(_ENDS - edge, 0.0) for edge in _EDGES])
        return float(_EDGES[np.argmin((deviation * _EDGES) ** 2 + missed**2)])

    def proposed(self, relative: float) -> float:
        """Huber's threshold: ``relative`` times the scale s with mean min(r, relative s)^2 = s^2.

        scikit-learn's `HuberRegressor` finds the same scale together with the slopes (Huber 1964,
        proposal 2). Without a solution, as for ``relative`` of 1 or less, it is infinite.
        """
        parts, middles = self.parts, self.middles
        excess = np.array(
            [parts @ np.minimum(middles, t) ** 2 - (t / relative) ** 2 for t in _EDGES]
        )
        if not excess[0] > 0 > excess[-1]:
            return math.inf
        end = int(np.argmax(excess <= 0))
        low, high = excess[end - 1], excess[end]
        return float(_EDGES[end - 1] + (_EDGES[end] - _EDGES[end - 1]) * low / (low - high))


def _event(noise: GaussianNoise, problem: Problem) -> Event:
    return noise.event(problem.derivative_norms(len(_EDGES)))
