"""Proximal steps with preconditioned private gradients, and the noise of their average."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from privtail.default.preconditioner import Preconditioner
from privtail.default.tuning import Tuning
from privtail.domains import Domain
from privtail.losses import Loss
from privtail.losses.magnitudes import curvature_of
from privtail.robust_means import MallowsMean
from privtail.trusted.batch import Batch
from privtail.trusted.mechanisms.noise import GaussianNoise

Doubles = NDArray[np.float64]


@dataclass(frozen=True)
class Schedule:
    """The steps of one run of the descent.

    Attributes
    ----------
    mean : how residuals and rows are clipped (Mallows 1975).
    steps : the number of steps.
    length : the length of the first step.
    std : the standard deviation of the noise in a coordinate of a gradient.
    shrinking : whether the steps shrink linearly to zero (Zamani and Glineur 2023). At a kink steps
        of one length go to and fro for ever.
    momentum : the fraction of the last move that is added to a step (Nesterov 1983).
    """

    mean: MallowsMean
    steps: int
    length: float
    std: float
    shrinking: bool
    momentum: float

    @property
    def skipped(self) -> int:
        """The number of iterates before those that are averaged.

        The later half is averaged (Jain, Kakade, Kidambi, Netrapalli and Sidford 2018). Where steps
        shrink, the last iterate is the result.
        """
        return self.steps - 1 if self.shrinking else self.steps // 2

    @property
    def lengths(self) -> Doubles:
        """(steps,) the length of each step."""
        steps = np.arange(self.steps)
        return self.length * (1 - steps / self.steps if self.shrinking else np.ones(self.steps))


@dataclass(frozen=True)
class Run:
    """A run of the descent: its steps, the loss, and the contraction that its gradients show."""

    schedule: Schedule
    loss: Loss
    shown: float


def descended(
    batches: Iterator[Batch], loss: Loss, domain: Domain, w: Doubles, metric: Preconditioner,
    noise: GaussianNoise, schedule: Schedule,
) -> tuple[Doubles, float]:  # fmt: skip
    """Makes a step from ``w`` for each batch.

    Returns the average (rows, K) of the later iterates, and the curvature of the loss that the
    gradients show, as a multiple of the preconditioner.
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
    """The slope of the gradients over the points, by least squares.

    A gradient's noise is independent of the point where it was taken.
    """
    x, g = np.array(points), np.array(gradients)
    x, g = x - x.mean(axis=0), g - g.mean(axis=0)
    square = float(np.sum(x**2))
    return float(np.sum(x * g)) / square if square > 0 else 0.0


def shown_contraction(
    curvature: float, schedule: Schedule, loss: Loss, scale: float, tuning: Tuning
) -> float:
    """By how much these steps contract a direction, as their gradients show.

    Gradients show the ``curvature`` only of directions in which the path went.
    """
    spurious = tuning.spurious_contraction * (1 - schedule.momentum) / schedule.steps
    return max(0.0, schedule.length * min(curvature, curvature_of(loss, scale)) - spurious)


def added_noise(
    schedule: Schedule, metric: Preconditioner, start: Doubles | float, contraction: Doubles | float
) -> Doubles:
    """(r,) standard deviations of the average of the iterates along the principal directions.

    Steps contract the noise ``start`` of the model where they began, by ``contraction`` (one, (r,)
    or several of these, (k, r)) each, and add their own.
    """
    rates, each = np.unique(np.minimum(1.0, contraction), return_inverse=True)
    each = each.reshape(np.shape(contraction))
    of_start, left = (x[each] for x in _kept(rates, schedule))
    added = schedule.std * left / np.sqrt(metric.curvatures)
    return np.asarray(np.hypot(of_start * start, added))


def model_noise(
    runs: Iterable[Run], metric: Preconditioner, contraction: Callable[[Run], Doubles | float]
) -> Doubles:
    """(r,) standard deviations of the noise of a model along the principal directions.

    ``contraction`` says by how much each step of a run contracts them: one, (r,) or (k, r).
    """
    noise = np.zeros(len(metric.curvatures))
    for run in runs:
        noise = added_noise(run.schedule, metric, noise, contraction(run))
    return noise


def lasting(momentum: float, steps: int) -> Doubles:
    """(steps,) how far each move leads by the last step, where nothing contracts it.

    Momentum makes a move of 1 lead to 1 + momentum + momentum^2 + ...
    """
    ages = np.arange(steps, 0, -1)
    return np.asarray((1 - momentum**ages) / (1 - momentum))


def _kept(rates: Doubles, schedule: Schedule) -> tuple[Doubles, Doubles]:
    """What the average of the iterates keeps of the start and of each gradient's noise.

    A step contracts a direction by its rate in ``rates`` (r,). After k more steps a move of 1 is
    h(k), with h(k + 1) = (1 - rate) ((1 + momentum) h(k) - momentum h(k - 1)). Returned are (r,)
    the factor of the start, and (r,) the root of the summed squares of the factors of all steps.
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
