"""The best constant of a numeric target, and nothing else."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import ndtri

from privtail.algorithms.result import Result
from privtail.default.intercept import Intercept, bend
from privtail.default.standardization import NO_LEVEL, Standardization, reported
from privtail.losses import AbsoluteLoss, Loss, QuantileLoss
from privtail.summaries.column_summaries import ColumnSummaries
from privtail.summaries.summary import Summary
from privtail.trusted.curator import Curator
from privtail.trusted.events import Plan, compose
from privtail.trusted.mechanisms.noise import GaussianNoise
from privtail.trusted.problem import Problem

Doubles = NDArray[np.float64]

PLACE = ColumnSummaries(target=True)
"""The looks at the target, where nothing else is looked at."""

BLUNT = 2.0
"""Looks whose noise is so many times that of sharp ones may show a target where it is not."""

MOVES = 3
"""Of a constant that is not a mean: each takes it most of the way that is left."""

NARROWEST, WIDEST = 1.5, 6.0
"""Deviations of the target that the mean for a constant looks at: at least, and at most."""

UNEVEN = 0.1
"""It looks further as long as its noise is less than this part of a deviation."""

SKEWED = 1 / 3
"""Deviations between a mean and a median where tails are long: .23 of a lognormal with sigma 1.5,
.47 of one that is zero in 70 % of the rows, never more than 1."""

NO_SLOPES = (
    "The budget is too small for slopes: all of it went to the location of the target, and the "
    "slopes are zero."
)

NARROWED = (
    "The budget locates the target no better than within a range of width {width:.2g} that holds "
    "most of it: the intercept may be off by as much."
)
UNSURE = "The noise is so large that the target may have been looked for in the wrong place."
SUBTRACT = (
    "A target far from zero takes more budget: if a typical value is public, subtract it first."
)


def settled(
    curator: Curator,
    loss: Loss,
    standard: Standardization,
    level: Intercept,
    start: ArrayLike | None = None,
) -> Doubles:
    """The constant model of the target's centre, or ``start``, moved to what suits the loss.

    A move is shortened by what noise may be of it. The centre is expected to be off by a scale, a
    mean by `SKEWED` deviations if that is more; where no scale was found, anything lies anywhere in
    the cell of the centre. A quantile of the middle half that is known to be zero does not move.
    Another quantile is looked for where that of a Gaussian is.
    """
    w = standard.start(curator.problem, start)
    expected = standard.unit if standard.resolved else standard.deviation / math.sqrt(3)
    if isinstance(loss, QuantileLoss):
        first = start is None and standard.resolved
        moved = _quantile(curator, loss, w, level, expected, first=first)
    else:
        steep, noise = bend(loss, standard.unit), level.deviation(curator.problem)
        widest = clipped_at(loss, standard, noise)
        away = max(expected, SKEWED * standard.deviation)
        trusted = 1 / (1 + (widest / steep * noise / away) ** 2)
        moved = level.run(curator, loss, w, widest, trusted / steep)
    middle = isinstance(loss, AbsoluteLoss) or (
        isinstance(loss, QuantileLoss) and 0.25 <= loss.quantile <= 0.75
    )
    exact = middle and standard.zero and start is None
    return moved if standard.seen and not (exact or standard.blank) else w


def clipped_at(loss: Loss, standard: Standardization, noise: float) -> float:
    """Where the derivatives of the mean for the constant are clipped; ``noise`` is relative."""
    reach = min(WIDEST, max(NARROWEST, UNEVEN / max(noise, 1e-300)))
    return min(bend(loss, standard.unit) * reach * standard.deviation, loss.lipschitz)


def _quantile(
    curator: Curator, loss: QuantileLoss, w: Doubles, level: Intercept, unit: float, *, first: bool
) -> Doubles:
    """``w``, its intercept moved to a quantile, in steps that are right for a Gaussian's.

    ``first`` it goes from the centre to where a Gaussian of scale ``unit`` has its quantile.
    """
    score = float(ndtri(loss.quantile))
    w = w.copy()
    w[-1] += first * unit * score
    noise = level.deviation(curator.problem) * loss.lipschitz
    told = partial(_too_high, loss.quantile, noise)
    length = unit / (1 + (noise / loss.usual) ** 2)
    return level.run(curator, loss, w, loss.lipschitz, length, told=told)


def _too_high(quantile: float, noise: float, derivative: float) -> float:
    """How far a level is above a Gaussian's quantile, in its deviations.

    The mean derivative says how much more lies below than should, with ``noise``.
    """
    least = min(max(noise, 1e-9), quantile / 2, (1 - quantile) / 2)
    below = min(max(quantile + derivative, least), 1 - least)
    return float(ndtri(below) - ndtri(quantile))


@dataclass(frozen=True)
class InterceptOnly:
    """All of the budget for the place of the target, then for a mean there.

    A target is found where half of the records stand out from the noise of a cell: nothing else
    that a small budget may buy is worth as much. What no budget of this size can find is said: a
    Gaussian release of counts tells at most (n mu / max_rows)^2 / 4 nats of a place, and one of K
    places, each as likely as any other, takes log K.

    Parameters
    ----------
    squares : whether the loss is that of squares; else its constant takes `MOVES`.
    share : part of the variance budget that the place may spend.

    **Privacy.** Gaussian releases of histograms of the target and of one number; together they cost
    what one gradient of noise ``multiplier`` costs.
    """

    squares: bool = False
    share: float = 0.75

    def plan(self, multiplier: float, problem: Problem) -> Plan:
        """The looks, then the means."""
        looks, level = self._prices(multiplier)
        return compose(PLACE.plan(looks, problem, 0), level.plan(problem))

    def run(
        self, curator: Curator, loss: Loss, multiplier: float, start: ArrayLike | None = None
    ) -> Result:
        """A model whose slopes are zero, unless ``start`` has others."""
        looks, level = self._prices(multiplier)
        found = PLACE.run(curator, looks, ())
        d = curator.problem.d
        found = replace(found, scales=np.append(np.ones(d), found.scales[d:]))
        standard = Standardization.of(found, curator)
        w = settled(curator, standard.loss(loss), standard, level, start)
        notes = self._notes(standard, found, looks, curator.problem)
        return Result(
            standard.raw(w, curator.problem), 0, multiplier, unit=standard.unit,
            noise=np.zeros(d), notes=notes,
            report=reported("intercept only", found, standard, "real", notes),
        )  # fmt: skip

    @staticmethod
    def _notes(
        standard: Standardization, found: Summary, looks: float, problem: Problem
    ) -> tuple[str, ...]:
        """What the statement says of the place, and what to do where it is not sure."""
        if not standard.seen:
            return NO_LEVEL, SUBTRACT
        width = 2 * float(found.window()[1][problem.d])
        doubts = (NARROWED.format(width=width),) * (not standard.resolved)
        doubts += (UNSURE,) * (looks > BLUNT * PLACE.enough_for_target(problem, 0))
        return NO_SLOPES, *doubts, *(SUBTRACT,) * bool(doubts)

    def _prices(self, multiplier: float) -> tuple[float, Intercept]:
        """Noise of one release that pays for all looks, and that of the means."""
        looks = multiplier / math.sqrt(2 * self.share)
        times = 1 if self.squares else MOVES
        return looks, Intercept(
            GaussianNoise(multiplier * math.sqrt(times / (1 - self.share))), times
        )
