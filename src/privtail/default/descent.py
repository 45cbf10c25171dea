"""Proximal steps with preconditioned private gradients, and what noise adds to their average."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from privtail.default.preconditioner import Preconditioner
from privtail.default.tuning import Tuning
from privtail.domains import Domain
from privtail.losses import Loss
from privtail.trusted.batch import Batch
from privtail.trusted.means import MallowsMean
from privtail.trusted.mechanisms.noise import GaussianNoise

Doubles = NDArray[np.float64]


def curvature_of(loss: Loss, unit: float) -> float:
    """Curvature of a loss; of one with a kink, over moves of the target's scale."""
    found = loss.curvature if loss.curvature < math.inf else loss.lipschitz / unit
    return found if 0 < found < math.inf else 1.0


def kinked(loss: Loss) -> bool:
    """Whether derivatives jump, so that no step is short enough for its curvature."""
    return loss.lipschitz < math.inf == loss.curvature


@dataclass(frozen=True)
class Schedule:
    """Steps with one clipping threshold.

    Attributes
    ----------
    mean : how residuals and rows are clipped (Mallows 1975).
    steps, length : how many, and how long the first is.
    std : noise in a coordinate of a gradient.
    shrinking : whether steps become shorter, to nothing (Zamani and Glineur 2023): at a kink steps
        of one length go to and fro for ever.
    momentum : part of its last move that a step goes on (Nesterov 1983).
    """

    mean: MallowsMean
    steps: int
    length: float
    std: float
    shrinking: bool
    momentum: float

    @property
    def skipped(self) -> int:
        """Iterates before those that are averaged: the later half, at a kink the last one.

        (Jain, Kakade, Kidambi, Netrapalli and Sidford 2018 on tails of iterates at a constant
        step.)
        """
        return self.steps - 1 if self.shrinking else self.steps // 2

    @property
    def lengths(self) -> Doubles:
        """(steps,) of all steps."""
        steps = np.arange(self.steps)
        return self.length * (1 - steps / self.steps if self.shrinking else np.ones(self.steps))


def descended(
    batches: Iterator[Batch], loss: Loss, domain: Domain, w: Doubles, metric: Preconditioner,
    noise: GaussianNoise, schedule: Schedule,
) -> tuple[Doubles, float]:  # fmt: skip
    """Steps from ``w``, one for each batch: the average of the later iterates, (rows, K).

    And the curvature of the loss, in multiples of the preconditioner's, as the gradients show it.
    """
    start = at = w
    total, points, gradients = np.zeros_like(w), [], []
    for step, batch in enumerate(batches):
        g = batch.gradient(loss, at, schedule.mean).release(noise).reshape(w.shape)
        points.append(metric.times(at - start))
        gradients.append(g)
        new = metric.step(domain, at, g, float(schedule.lengths[step]))
        total += new if step >= schedule.skipped else 0.0
        at, w = new + schedule.momentum * (new - w), new
    return total / (schedule.steps - schedule.skipped), _curvature(points, gradients)


def _curvature(points: list[Doubles], gradients: list[Doubles]) -> float:
    """The slope of gradients over points: a line by least squares.

    The noise of a gradient is not in the point that it is at.
    """
    x, g = np.array(points), np.array(gradients)
    x, g = x - x.mean(axis=0), g - g.mean(axis=0)
    square = float(np.sum(x**2))
    return float(np.sum(x * g)) / square if square > 0 else 0.0


@dataclass(frozen=True)
class NoiseOfSteps:
    """What noise adds to a model, along the principal directions of the preconditioner.

    Attributes
    ----------
    stated : (r,) standard deviations, counting on little curvature: rather too large.
    likely : (r,) the same, counting on the curvature that the gradients show.
    """

    stated: Doubles
    likely: Doubles

    @classmethod
    def none(cls, metric: Preconditioner) -> NoiseOfSteps:
        """Of a model that no noise has moved."""
        return cls(np.zeros(len(metric.curvatures)), np.zeros(len(metric.curvatures)))

    @classmethod
    def expected(
        cls, schedule: Schedule, metric: Preconditioner, loss: Loss, scale: float
    ) -> Doubles:
        """(r,) standard deviations of the average of such steps, before they are made."""
        rates = schedule.length * curvature_of(loss, scale) * metric.likely_rates
        return _added(schedule, metric, np.zeros(len(metric.curvatures)), rates)

    def after(
        self, curvature: float, schedule: Schedule, metric: Preconditioner, loss: Loss,
        scale: float, tuning: Tuning,
    ) -> NoiseOfSteps:  # fmt: skip
        """Of the average of these steps, whose gradients show a ``curvature`` of the loss.

        Steps contract the noise of their start, and add their own. Gradients show the curvature of
        the directions in which the path went, and others may be flatter: stated noise counts on it
        as far as second moments surely show a direction.
        """
        spurious = tuning.spurious_contraction * (1 - schedule.momentum) / schedule.steps
        shown = max(0.0, schedule.length * min(curvature, curvature_of(loss, scale)) - spurious)
        counted = 0.0 if schedule.shrinking else shown
        return NoiseOfSteps(
            _added(schedule, metric, self.stated, counted * metric.sure_rates),
            _added(schedule, metric, self.likely, np.full_like(self.likely, shown)),
        )


def _added(
    schedule: Schedule, metric: Preconditioner, start: Doubles, contraction: Doubles
) -> Doubles:
    """Deviations (r,) of an average of iterates, given those of the start."""
    rates, each = np.unique(np.minimum(1.0, contraction), return_inverse=True)
    of_start, left = (x[each] for x in _kept(rates, schedule))
    added = schedule.std * left / np.sqrt(metric.curvatures)
    return np.asarray(np.hypot(of_start * start, added))


def lasting(momentum: float, steps: int) -> Doubles:
    """(steps,) how far each of so many moves has led in the end where nothing contracts it."""
    ages = np.arange(steps, 0, -1)
    return np.asarray((1 - momentum**ages) / (1 - momentum))


def _kept(rates: Doubles, schedule: Schedule) -> tuple[Doubles, Doubles]:
    """Parts of the start, and lengths of all steps, that an average keeps at these rates (r,).

    A move in a direction that a step contracts by ``rate`` lives on as h, where h(k + 1) =
    (1 - rate) ((1 + momentum) h(k) - momentum h(k - 1)).
    """
    steps, skipped, momentum = schedule.steps, schedule.skipped, schedule.momentum

    def lived(before: float) -> Doubles:
        h = [np.full_like(rates, before), np.ones_like(rates)]
        for _ in range(steps):
            h.append((1 - rates) * ((1 + momentum) * h[-1] - momentum * h[-2]))
        return np.array(h[1:])

    of_start = lived(1.0)[1 + skipped :].mean(axis=0)
    sums = np.vstack([np.zeros_like(rates), np.cumsum(lived(0.0), axis=0)])
    ages = np.arange(steps, 0, -1)
    each = (sums[ages] - sums[np.maximum(ages - (steps - skipped), 0)]) / (steps - skipped)
    return of_start, np.linalg.norm(schedule.lengths[:, None] * each, axis=0)
