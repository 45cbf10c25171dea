"""Proximal descent with preconditioned private gradients, and the noise of its result."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from privtail.default.preconditioner import Preconditioner
from privtail.domains import Domain
from privtail.lines import slope
from privtail.losses import Loss
from privtail.momentum import noise_factors
from privtail.robust_means import MallowsMean
from privtail.trusted.batch import Batch
from privtail.trusted.mechanisms.noise import GaussianNoise

Doubles = NDArray[np.float64]


@dataclass(frozen=True)
class Schedule:
    """Steps and clipping of one run of the descent.

    Attributes
    ----------
    mean : the clipping of residuals and rows (Mallows 1975).
    steps : the number of steps.
    step_size : the size of the first step.
    std : the standard deviation of the noise in a coordinate of a gradient.
    shrinking : whether step sizes decrease linearly to zero (Zamani and Glineur 2023). For a loss
        with a kink, steps of one size do not converge.
    momentum : the fraction of the last move that is added to a step (Nesterov 1983).
    """

    mean: MallowsMean
    steps: int
    step_size: float
    std: float
    shrinking: bool
    momentum: float

    @property
    def skipped(self) -> int:
        """The number of iterates that are left out of the average.

        The average is over the later half (Jain, Kakade, Kidambi, Netrapalli and Sidford 2018).
        With shrinking steps the result is the last iterate.
        """
        return self.steps - 1 if self.shrinking else self.steps // 2

    @property
    def step_sizes(self) -> Doubles:
        """(steps,) the size of each step."""
        steps = np.arange(self.steps)
        return self.step_size * (1 - steps / self.steps if self.shrinking else np.ones(self.steps))


@dataclass(frozen=True)
class DescentRun:
    """A finished run: its schedule, the loss, and the contraction of a step along its path."""

    schedule: Schedule
    loss: Loss
    contraction: float


def run_descent(
    batches: Iterator[Batch], loss: Loss, domain: Domain, w: Doubles, metric: Preconditioner,
    noise: GaussianNoise, schedule: Schedule,
) -> tuple[Doubles, float]:  # fmt: skip
    """Descend from ``w``, with one step for each batch.

    Returns the average (rows, K) of the later iterates, and the curvature of the loss, as estimated
    from the released gradients, as a multiple of the preconditioner. Noise of gradients does not
    depend on the iterates.
    """
    start = at = w
    total, points, gradients = np.zeros_like(w), [], []
    for step, batch in enumerate(batches):
        g = batch.gradient(loss, at, schedule.mean).release(noise).reshape(w.shape)
        points.append(metric.times(at - start))
        gradients.append(g)
        new = metric.step(domain, at, g, float(schedule.step_sizes[step]))
        total += new if step >= schedule.skipped else 0.0
        at, w = new + schedule.momentum * (new - w), new
    return total / (schedule.steps - schedule.skipped), slope(points, gradients)


def averaged_noise(
    schedule: Schedule, metric: Preconditioner, start: Doubles | float, contraction: Doubles | float
) -> Doubles:
    """(r,) standard deviations of the average of the iterates, along the principal directions.

    Each step adds noise, and contracts that before it by ``contraction``: (), (r,) or (k, r).
    ``start`` is the noise of the first iterate.
    """
    rates, each = np.unique(np.minimum(1.0, contraction), return_inverse=True)
    each = each.reshape(np.shape(contraction))
    found = noise_factors(rates, schedule.step_sizes, schedule.skipped, schedule.momentum)
    start_factor, noise_factor = (factors[each] for factors in found)
    added = schedule.std * noise_factor / np.sqrt(metric.curvatures)
    return np.asarray(np.hypot(start_factor * start, added))


def model_noise(
    runs: Iterable[DescentRun], metric: Preconditioner,
    contraction: Callable[[DescentRun], Doubles | float],
) -> Doubles:  # fmt: skip
    """(r,) standard deviations of the noise of a model, along the principal directions.

    ``contraction`` maps a run to the contraction of each of its steps, as in `averaged_noise`.
    """
    noise = np.zeros(len(metric.curvatures))
    for run in runs:
        noise = averaged_noise(run.schedule, metric, noise, contraction(run))
    return noise
