"""Whether a released model serves the records better than a constant."""

from __future__ import annotations

import math
from dataclasses import dataclass
from enum import Enum

import numpy as np
from numpy.typing import NDArray

from privtail.losses import (
    LABELS,
    Loss,
    PoissonLoss,
    PredictedCount,
    QuantileLoss,
    Targets,
    WeightedLoss,
    WrongLabel,
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
"""Gains of labels that are all as frequent are clamped here: small margins must be seen."""

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


@dataclass(frozen=True, kw_only=True)
class Comparison:
    """Keep a model if it likely lowers the mean loss of a constant.

    Two mean gains are bought. Of numbers, the second is clamped as late as a loss of `SERIOUS` can
    still be seen: a model that surely loses there is not kept, for it is far off where features are
    large, and one that surely gains there is, whatever most records do; where the first is likely a
    gain, the second must be one too. Of labels, it is how many more are right (with class weights,
    the gain clamped at 1): they may not seem fewer, and that or both together must be visible.
    Where labels occur about equally often a constant is no better than a coin, and it is enough
    that the model is not surely worse.

    A record's gain is clamped to the loss of a margin that is off by one scale of the target (to
    the highest count seen; for labels to what the most frequent one loses where another becomes as
    likely): neither noise of slopes nor a few outlying records decide.

    **Privacy.** Gaussian releases of two means of values in [-1, 1]; ``multiplier`` is the noise of
    each in units of 1/n.
    """

    targets: Targets = "real"

    def plan(self, multiplier: float, problem: Problem) -> Plan:
        """Two releases."""
        return (Round(stage="acceptance test", events=(self._event(multiplier, problem),) * 2),)

    def run(
        self, curator: Curator, loss: Loss, w: Doubles, constant: Doubles, unit: float,
        multiplier: float, size: float = 0.0,
    ) -> Verdict:  # fmt: skip
        """Whether ``w`` is better than the constant; without noise it is.

        ``unit`` is the scale of a real target; gains up to the loss of a margin that is off by
        ``size`` count in full.
        """
        problem, noise = curator.problem, no_finer(multiplier, curator.problem, FINEST)
        batch = curator.everyone()
        deviation = self._event(multiplier, problem).std
        noticed = BEYOND_NOISE * deviation
        scores: list[tuple[Loss, float]]
        if self._labels:
            wrong = loss if isinstance(loss, WeightedLoss) else WrongLabel(outputs=loss.outputs)
            scores = [(loss, _loss_of_turning(constant[problem.d :])), (wrong, 1.0)]
        else:
            visible = VISIBLE if loss.targets == "real" else 0.0
            least = _loss_of_one(loss, size) if size > 0 else 0.0
            seen = [max(1.0, p / noticed) if noticed > 0 else 1.0 for p in (visible, SERIOUS)]
            told = _predicted(loss)
            scores = [(told, max(least, _loss_of_one(loss, unit) * part)) for part in seen]
        gains = [
            float(
                batch.improvement(score, w, constant, ClampedMean(bound)).release(noise)[0] / bound
            )
            for score, bound in scores
        ]
        if multiplier == 0:
            return Verdict.BETTER
        first, second = (gain / deviation for gain in gains)
        if self._labels:
            best = max(second, (first + second) / math.sqrt(2))
            needed = _needed(loss, constant[problem.d :])
            kept = best > needed and (needed <= 0 or (second > 0 and noticed < HIDDEN))
        else:
            best = max(first, second / SURER)
            sure = first > BEYOND_NOISE and second > -BEYOND_NOISE
            likely = first > LIKELY and second > 0
            kept = (sure or likely or second > SURER * BEYOND_NOISE) and noticed < HIDDEN
        if not kept:
            return Verdict.NOT_BETTER
        return Verdict.BETTER if best > BEYOND_NOISE else Verdict.UNSURE

    @staticmethod
    def _event(multiplier: float, problem: Problem) -> Event:
        """One gain, in units of its clamp."""
        gain = problem.improvement(ClampedMean(1.0))
        return no_finer(multiplier, problem, FINEST).event(gain)

    @property
    def _labels(self) -> bool:
        return self.targets in LABELS


def no_finer(multiplier: float, problem: Problem, enough: int = ENOUGH) -> GaussianNoise:
    """Noise of this multiplier, but not less than n / ``enough``."""
    least = problem.n / problem.max_rows / enough
    return GaussianNoise(max(multiplier, least) if multiplier > 0 else 0.0)


def _predicted(loss: Loss) -> Loss:
    """The loss of predictions, which for counts have an end where margins have none."""
    if not isinstance(loss, PoissonLoss):
        return loss
    return PredictedCount(mean=loss.mean, highest=loss.highest)


def _loss_of_one(loss: Loss, unit: float) -> float:
    """Loss of a real target that a margin misses by ``unit``; of a quantile what is usual there.

    For counts the largest one that the loss's highest expected count l allows, l + 3 sqrt(l).
    """
    if isinstance(loss, PoissonLoss):
        root = math.exp(loss.highest / 2)
        return root * (root + 3) / (loss.mean or 1.0)
    if loss.targets != "real":
        return 1.0
    if isinstance(loss, QuantileLoss):
        return unit * loss.usual
    missed, hit = loss.values(np.array([[unit], [0.0]]), np.zeros(2))
    bound = float(missed - hit)
    return bound if 0 < bound < math.inf else 1.0


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

    From no sure loss to a sure gain, the farther the most frequent label leads. ``intercept`` is
    (1, K), or (0, K) for none.
    """
    if isinstance(loss, WeightedLoss) or intercept.size == 0:
        return BEYOND_NOISE
    return BEYOND_NOISE * (1 - 2 * math.exp2(-lead(intercept) / EVEN))


def _loss_of_turning(intercept: Doubles) -> float:
    """What a record of the most frequent label loses when another label becomes as likely."""
    return max(FAINT, math.log(2 / (1 + math.exp(-lead(intercept)))))
