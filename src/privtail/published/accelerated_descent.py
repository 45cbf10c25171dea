"""Without privacy: accelerated proximal gradient in the metric of the second moments."""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from privtail.algorithms.result import Result, require_no_start
from privtail.default.amounts import StartAtMeanAmount
from privtail.default.columns import SummarizeColumns
from privtail.default.fit import Fit, Stage, planned
from privtail.default.intercept import MeanDerivative
from privtail.default.tuning import Tuning
from privtail.domains import Domain, proximal_point, require
from privtail.errors import InvalidInput
from privtail.losses import (
    AMOUNTS,
    AbsoluteLoss,
    AnyLoss,
    Loss,
    QuantileLoss,
    Targets,
    require_margin,
)
from privtail.losses.magnitudes import curvature_of
from privtail.robust_means import ClippedMean
from privtail.second_moments import symmetric
from privtail.summaries.column_summaries import ColumnSummaries
from privtail.trusted.curator import Curator
from privtail.trusted.events import Plan, Round, compose
from privtail.trusted.mechanisms.noise import GaussianNoise
from privtail.trusted.problem import Problem

Doubles = NDArray[np.float64]

WIDTHS = (0.1, 0.01, 1e-3, 1e-4, 1e-5)
"""To what part of the target's scale a kink is rounded, stage by stage."""

CLOSE = 1e-10
"""A step this small against the iterate is the last one; 1e4 times that before the last stage."""

STALLED, PATIENCE = 1e-7, 100
"""Steps below ``STALLED`` that did not halve in ``PATIENCE`` steps end a fit of a smooth loss.

They are rounding errors. Where kinks are rounded off, right steps are as slow.
"""


@dataclass(frozen=True, kw_only=True)
class AcceleratedDescent:
    """The minimiser to many digits, for epsilon = infinity only.

    FISTA (Beck & Teboulle 2009) with the restart of O'Donoghue & Candes 2015, where distances are
    measured by the second moments of the standardized features: what their correlations cost is
    paid in d x d arithmetic and not in passes over the records. Kinks are rounded off ever less.

    Parameters
    ----------
    steps : gradients at most; a smooth loss needs a few dozen.
    targets : of the loss; a real target is centred and scaled too.
    """

    steps: int = 3000
    targets: Targets = "real"

    needs: ClassVar[tuple[str, ...]] = ("prox", "scaled")

    def plan(self, multiplier: float, problem: Problem) -> Plan:
        """Column summaries, the constant of counts, second moments, gradients."""
        noise = GaussianNoise(multiplier)
        gradient = noise.event(problem.gradient(ClippedMean(math.inf)))
        return compose(
            planned(self._first(multiplier, problem), problem),
            (
                Round(stage="preconditioner", events=(noise.event(problem.moments(1.0)),)),
                Round(stage="descent", events=(gradient,), times=self.steps),
            ),
        )

    def takes(self, loss: AnyLoss, problem: Problem) -> Loss:
        """A loss of a margin."""
        return require_margin(loss, needed_by="AcceleratedDescent")

    def run(
        self, curator: Curator, loss: AnyLoss, domain: Domain, multiplier: float,
        start: ArrayLike | None = None,
    ) -> Result:  # fmt: skip
        """Column summaries, metric, and as many gradients as it takes.

        Raises
        ------
        InvalidInput
            For a private budget, or if ``start`` is given: the fit begins at a constant.
        """
        if curator.budget.private:
            raise InvalidInput(
                "AcceleratedDescent is for epsilon=inf; privately use ScaledDescent."
            )
        require(domain, *self.needs, needed_by="AcceleratedDescent")
        require_no_start(start)
        problem = curator.problem
        fit = Fit(curator, self.takes(loss, problem), domain, Tuning())
        for first in self._first(multiplier, problem):
            first.run(fit)
        standard, scale = fit.standard, fit.standard.target.scale
        metric = self._metric(fit, multiplier)
        domain, w, used = fit.domain.scaled(1 / standard.scales), fit.w.copy(), 0
        if problem.intercept and self.targets == "real":
            w[-1] = standard.target.location
        batches, stages = fit.rounds(self.steps), _stages(fit.loss, scale)
        for left, stage in zip(range(len(stages), 0, -1), stages, strict=True):
            path = _Path(stage, domain, metric, scale, w)
            close = CLOSE if left == 1 else 1e4 * CLOSE
            for batch in itertools.islice(batches, (self.steps - used) // left):
                used += 1
                g = batch.gradient(stage, path.ahead, ClippedMean(math.inf))
                length = path.move(g.release(GaussianNoise(multiplier)).reshape(w.shape))
                if length <= close or (path.stalled(length) and len(stages) == 1):
                    break
            w = path.w
        report = {"regime": "without privacy", "accepted": True, "reasons": ()}
        return Result(
            standard.raw(w, problem), used, multiplier, unit=scale, centres=standard.centres,
            report=report,
        )  # fmt: skip

    def _first(self, multiplier: float, problem: Problem) -> tuple[Stage, ...]:
        noise = GaussianNoise(multiplier)
        summaries = SummarizeColumns(ColumnSummaries.of(self.targets), noise)
        mean = MeanDerivative(noise) if problem.intercept else None
        counts = (StartAtMeanAmount(noise, mean),) if self.targets in AMOUNTS else ()
        return (summaries, *counts)

    @staticmethod
    def _metric(fit: Fit, multiplier: float) -> Doubles:
        """Second moments (rows, rows) of standardized features, and a little on the diagonal."""
        summary, standard, d = fit.summary, fit.standard, fit.problem.d
        tails = summary.tails[:d] + np.abs(summary.centres[:d] - standard.centres)
        tails = np.minimum(tails / standard.scales, 2.0**20)
        radius = math.sqrt(float(np.sum(tails**2)) + 1)
        rows = fit.problem.rows
        triangle = fit.everyone().moments(radius).release(GaussianNoise(multiplier))
        metric = symmetric(triangle, rows)
        return np.asarray(metric + 1e-4 * (float(np.trace(metric)) / rows or 1.0) * np.eye(rows))


def _stages(loss: Loss, unit: float) -> tuple[Loss, ...]:
    if isinstance(loss, AbsoluteLoss | QuantileLoss):
        return tuple(loss.smoothed(unit * width) for width in WIDTHS)
    return (loss,)


class _Path:
    """The iterates of one stage: where to ask for a gradient, and what to do with it."""

    def __init__(self, loss: Loss, domain: Domain, metric: Doubles, unit: float, w: Doubles):
        self.domain, self.metric, self.w, self.ahead = domain, metric, w, w
        self._largest = float(np.linalg.eigvalsh(metric)[-1])
        self._bend = curvature_of(loss, unit)
        self._unit, self._momentum = unit, 1.0
        self._least, self._since = math.inf, 0
        self._before: tuple[Doubles, Doubles] | None = None

    def move(self, g: Doubles) -> float:
        """One step with the gradient at ``ahead``; returns its length against iterate and unit."""
        self._measure(g)
        w = self._proximal(g)
        step = w - self.w
        if self._inner(self.ahead - w, step) > 0:
            self._momentum = 1.0
        momentum = (1 + math.sqrt(1 + 4 * self._momentum**2)) / 2
        length = math.sqrt(max(self._inner(w - self.ahead, w - self.ahead), 0.0))
        self.ahead = w + (self._momentum - 1) / momentum * step
        self.w, self._momentum = w, momentum
        return length / (math.sqrt(max(self._inner(w, w), 0.0)) + self._unit)

    def stalled(self, length: float) -> bool:
        """Whether steps are small, and have not halved for long."""
        self._since += 1
        if length <= self._least / 2:
            self._least, self._since = length, 0
        return length <= STALLED and self._since >= PATIENCE

    def _measure(self, g: Doubles) -> None:
        """Raise the curvature to what the last two gradients show."""
        if self._before is not None:
            moved = self.ahead - self._before[0]
            square = self._inner(moved, moved)
            seen = float(np.sum((g - self._before[1]) * moved)) / square if square > 0 else 0.0
            if seen > self._bend * (1 + 1e-6):
                self._bend, self._momentum = 1.2 * seen, 1.0
        self._before = self.ahead, g

    def _proximal(self, g: Doubles) -> Doubles:
        """Argmin of <g, v> + bend/2 |v - ahead|^2 + domain(v), in the metric."""
        rate = 1 / (self._bend * self._largest)
        newton = self.ahead - np.linalg.solve(self.metric, g) / self._bend
        slow = float(np.max(np.abs(self.domain.prox(self.ahead - rate * g, rate) - self.ahead)))
        fast = float(np.max(np.abs(self.domain.prox(newton, rate) - newton)))
        return proximal_point(
            self.domain, lambda u: g + self._bend * (self.metric @ (u - self.ahead)),
            newton if fast <= slow else self.ahead, rate, away=self.ahead,
            least=1e-15 * self._unit,
        )  # fmt: skip

    def _inner(self, a: Doubles, b: Doubles) -> float:
        return float(np.sum(a * (self.metric @ b)))
