"""Whether a released model serves the records better than a constant."""

from __future__ import annotations

import math
from dataclasses import dataclass
from enum import Enum

import numpy as np
from numpy.typing import NDArray
from scipy.special import softmax, xlogy
from scipy.stats import poisson

from privtail.losses import (
    LABELS,
    POISSON_MARGIN,
    Loss,
    PoissonLoss,
    QuantileLoss,
    Targets,
    WeightedLoss,
    cut_to,
)
from privtail.trusted.curator import Curator
from privtail.trusted.events import Event, Plan, Round
from privtail.trusted.means import ClampedMean
from privtail.trusted.mechanisms.noise import GaussianNoise
from privtail.trusted.problem import Problem

ENOUGH = 100
"""A mean over the records whose noise is its range over this decides all that matters here."""

FINEST = 10_000
"""A comparison is as fine as the range of a gain over this; no model is worth a finer one."""

LARGEST_MEAN = 100.0
"""Of Poisson counts of a larger mean the half deviance is the same, one half."""

VISIBLE = 0.01
"""Gains of real targets are clamped as late as this part of a typical loss can still be seen."""

BEYOND_NOISE = 2.0
"""So many deviations of the noise are more than noise."""

SURER = 1.5
"""So many times as much must be gained where a few records, that are missed by far, decide."""

HIDDEN = 0.5
"""Noise that hides half of the largest gain there may be hides all models: none is kept."""

LIKELY = 1.0
"""So many deviations make a gain of numbers likely, if farther records show one too.

To ask for two loses slopes that help: models of noise lose as much as useful ones gain, so few of
them seem to gain at all.
"""

EVEN = 0.2
"""Lead of the most frequent label, in log-odds, at which gains and losses are feared alike.

There 55 of a hundred records have it. With less there is little to spoil.
"""

FAINT = 0.125
"""Gains of labels and counts are clamped here, in nats: small ones must be seen."""

RARE = 2.0
"""Those of counts, and where one label leads, are clamped here: what a few records lose where a
model expects less of all must count beside what most gain."""

HARMFUL = 0.05
"""A loss of this part of a constant's of labels or counts must be seen, however few lose it."""

SERIOUS = 0.1
"""A loss of this part of a typical loss must be seen, however few records it comes from."""

Doubles = NDArray[np.float64]


class Verdict(Enum):
    """Whether a model is kept: it surely gains, it may gain or has nothing to spoil, or not."""

    BETTER, UNSURE, NOT_BETTER = range(3)

    @property
    def keeps(self) -> bool:
        """Whether the model is kept."""
        return self is not Verdict.NOT_BETTER


@dataclass(frozen=True)
class Decision:
    """Whether the model is kept, and its two mean gains in standard deviations of their noise."""

    verdict: Verdict
    gains: tuple[float, float] = (math.inf, math.inf)


@dataclass(frozen=True, kw_only=True)
class AcceptanceTest:
    """Keep a model if it likely lowers the mean loss of a constant.

    Two mean gains are bought, which differ in where a record's gain is clamped. The first is
    clamped early, so that neither noise of slopes nor a few outlying records decide: at the loss of
    a margin that is off by one scale of the target, of labels and counts at `FAINT`. The second is
    clamped as late as a loss that matters can still be seen: a model that surely loses there is not
    kept, for it is far off where features are large, and one that surely gains there is, whatever
    most records do. Where the first is likely a gain, the second must be one too.

    Labels are judged by their log loss and counts by their deviance: of a rare event no useful
    model predicts that it happens, so nothing can be learned from how many labels are right. Where
    labels occur about equally often a constant is no better than a coin, and it is enough that the
    model is not surely worse.

    **Privacy.** Gaussian releases of two means of values in [-1, 1]; ``multiplier`` is the noise of
    each in units of 1/n.
    """

    targets: Targets = "real"

    def plan(self, multiplier: float, problem: Problem) -> Plan:
        """Two releases."""
        return (Round(stage="acceptance test", events=(self._event(multiplier, problem),) * 2),)

    def run(
        self, curator: Curator, loss: Loss, w: Doubles, constant: Doubles, unit: float,
        multiplier: float, size: float = 0.0, ends: tuple[float, float] = (-math.inf, math.inf),
        part: float = 1.0,
    ) -> Decision:  # fmt: skip
        """Whether ``w`` is better than the constant; without noise it is.

        Of margins that became ``part`` as long, gains are clamped as much earlier. They
        are cut to ``ends``, as predictions are; those of counts at the highest.

        ``unit`` is the scale of a real target; gains up to the loss of a margin that is off by
        ``size`` count in full.
        """
        problem, noise = curator.problem, no_finer(multiplier, curator.problem, FINEST)
        batch = curator.everyone()
        told = cut_to(loss, (ends[0], loss.highest) if isinstance(loss, PoissonLoss) else ends)
        deviation = self._event(multiplier, problem).std
        noticed = BEYOND_NOISE * deviation
        usual = constant[problem.d :]
        gains = [
            float(
                batch.improvement(told, w, constant, ClampedMean(bound)).release(noise)[0] / bound
            )
            for bound in self._bounds(loss, usual, unit, size, noticed, part)
        ]
        if multiplier == 0:
            return Decision(Verdict.BETTER)
        first, second = (gain / deviation for gain in gains)
        needed = _needed(loss, usual) if self.targets in LABELS else LIKELY
        sure = first > BEYOND_NOISE and second > -BEYOND_NOISE
        likely = first > needed and second > (0.0 if needed > 0 else -BEYOND_NOISE)
        kept = sure or likely or second > SURER * BEYOND_NOISE
        if not kept or (noticed >= HIDDEN and needed > 0):
            return Decision(Verdict.NOT_BETTER, (first, second))
        best = max(first, second / SURER)
        verdict = Verdict.BETTER if best > BEYOND_NOISE else Verdict.UNSURE
        return Decision(verdict, (first, second))

    def _bounds(
        self, loss: Loss, usual: Doubles, unit: float, size: float, noticed: float, part: float
    ) -> tuple[float, float]:
        """Where the two gains are clamped; ``usual`` is the intercept of the constant."""
        if self.targets == "real":
            one = _loss_of_one(loss, unit)
            least = _loss_of_one(loss, size) if size > 0 else 0.0
            near, wide = (
                max(1.0, seen / noticed) if noticed > 0 else 1.0 for seen in (VISIBLE, SERIOUS)
            )
            return max(least, one * near), max(least, one * wide)
        near = FAINT * min(1.0, part)
        if lead(usual) > EVEN or self.targets == "count":
            near = RARE * _nat(loss)
        seen = HARMFUL * _usual_loss(loss, usual) / noticed if noticed > 0 else 1.0
        return near, max(near, seen)

    @staticmethod
    def _event(multiplier: float, problem: Problem) -> Event:
        """One gain, in units of its clamp."""
        gain = problem.improvement(ClampedMean(1.0))
        return no_finer(multiplier, problem, FINEST).event(gain)


def no_finer(multiplier: float, problem: Problem, enough: int = ENOUGH) -> GaussianNoise:
    """Noise of this multiplier, but not less than n / ``enough``."""
    least = problem.n / problem.max_rows / enough
    return GaussianNoise(max(multiplier, least) if multiplier > 0 else 0.0)


def _loss_of_one(loss: Loss, unit: float) -> float:
    """Loss of a real target that a margin misses by ``unit``; of a quantile what is usual there."""
    if isinstance(loss, QuantileLoss):
        return unit * loss.usual
    missed, hit = loss.values(np.array([[unit], [0.0]]), np.zeros(2))
    bound = float(missed - hit)
    return bound if 0 < bound < math.inf else 1.0


def _nat(loss: Loss) -> float:
    """A nat of log likelihood: `PoissonLoss` is divided by the mean."""
    return 1 / loss.mean if isinstance(loss, PoissonLoss) and loss.mean else 1.0


def _usual_loss(loss: Loss, intercept: Doubles) -> float:
    """Mean loss of a constant model of labels or counts whose probabilities are right.

    Of counts the half deviance of Poisson's law.
    """
    if isinstance(loss, PoissonLoss):
        mean = min(math.exp(min(float(intercept.sum()), POISSON_MARGIN)), LARGEST_MEAN)
        counts = np.arange(math.ceil(mean + 10 * math.sqrt(mean) + 10))
        halves = xlogy(counts, counts / mean) - counts + mean
        return float(poisson(mean).pmf(counts) @ halves) * _nat(loss)
    margins = intercept.sum(axis=0)
    margins = np.append(0.0, margins) if margins.size == 1 else margins
    often = softmax(margins)
    return float(np.sum(often * -np.log(often)))


def lead(intercept: Doubles) -> float:
    """How far the largest margin of a constant model of labels is above the second.

    ``intercept`` is (1, K), or (0, K) for none.
    """
    if intercept.size == 0:
        return 0.0
    margins = np.sort(intercept[0]) if intercept.size > 1 else np.array([0.0, abs(intercept[0, 0])])
    return float(margins[-1] - margins[-2])


def _needed(loss: Loss, intercept: Doubles) -> float:
    """How many deviations of the noise a gain of labels must be.

    From no sure loss to a likely gain, the farther the most frequent label leads. ``intercept`` is
    (1, K), or (0, K) for none.
    """
    if isinstance(loss, WeightedLoss) or intercept.size == 0:
        return LIKELY
    return LIKELY - (LIKELY + BEYOND_NOISE) * math.exp2(-lead(intercept) / EVEN)
