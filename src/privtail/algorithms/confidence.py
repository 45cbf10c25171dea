"""How sure of its labels a model may be: the length of its margins, from what they told."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize_scalar
from scipy.special import log_expit

from privtail.algorithms.comparison import no_finer
from privtail.algorithms.histogram import Cells, Histogram
from privtail.losses import LABELS, Loss, OddsAgainst, Targets, WeightedLoss
from privtail.trusted.curator import Curator
from privtail.trusted.events import Event, Plan, Round
from privtail.trusted.mechanisms.noise import GaussianNoise
from privtail.trusted.problem import Problem

Doubles = NDArray[np.float64]

ENOUGH = 40
"""Counts with noise n over this tell how long margins should be."""

GAINS = 0.2
"""Models of two labels are right so much more often than a coin."""

HIDDEN = 1 / 64
"""Part of the margins that is kept where nothing shows of how long they are."""

SLIGHTLY = 1e-3
"""Margins that are shorter by this part lose no less: they are not too long."""

_SIZES = 2.0 ** np.arange(-3, 9)
CELLS = Cells(np.concatenate([-_SIZES[::-1], _SIZES]), zero=len(_SIZES))
"""Cells of log-odds against the label that a record has: above zero the model is wrong."""

_ENDS = np.concatenate([CELLS.edges[:1], CELLS.edges, CELLS.edges[-1:]])
_MIDDLES = np.sign(_ENDS[1:] + _ENDS[:-1]) * np.sqrt(np.abs(_ENDS[1:] * _ENDS[:-1]))
_MIDDLES[CELLS.zero] = 0.0


@dataclass(frozen=True)
class Confidence:
    """The part of its margins with which a model of labels is as sure as it is right.

    Slopes that are noise make margins that are too long, in units that noise hid many times too
    long: labels are as good as they were, probabilities are not. One histogram of the log-odds that
    the model gives the labels that there are says what the log loss is for any length of margins.
    The part, 1 at most, that loses least is multiplied with what noise leaves of it. (Of more than
    two labels margins between one and all others are shortened, as if these were alike.)

    **Privacy.** One Gaussian release of a histogram of l2 sensitivity sqrt 2, over public edges.
    """

    noise: GaussianNoise
    targets: Targets = "class"

    @classmethod
    def priced(cls, noise: GaussianNoise, targets: Targets, problem: Problem) -> Self:
        """With this noise, or with more where that is `ENOUGH`."""
        return cls(no_finer(noise.multiplier, problem, ENOUGH), targets)

    def plan(self, problem: Problem) -> Plan:
        """One histogram, of labels."""
        return (
            (Round(stage="calibration", events=(self._event(problem),)),)
            if self.targets in LABELS
            else ()
        )

    def run(self, curator: Curator, loss: Loss, w: Doubles) -> float:
        """In (0, 1]; 1 without noise, and of what is no label."""
        if self.targets not in LABELS:
            return 1.0
        plain = loss.loss if isinstance(loss, WeightedLoss) else loss
        odds = np.exp(CELLS.edges)
        counts = (
            curator.everyone()
            .derivative_norms(OddsAgainst(outputs=plain.outputs), w, odds)
            .release(self.noise)
        )
        std, n = self._event(curator.problem).std, curator.problem.n
        if not std:
            return 1.0
        kept = Histogram(counts, CELLS, std).above_noise(n)
        if not kept.any():
            return HIDDEN
        deviation = std * math.sqrt(np.count_nonzero(kept)) / (2 * n)
        left = GAINS**2 / (GAINS**2 + deviation**2)
        others = math.log(max(2, plain.outputs) - 1)

        def lost(part: float) -> float:
            return -float(kept @ log_expit(part * (others - _MIDDLES) - others))

        if lost(1.0) <= lost(1 - SLIGHTLY):
            return left
        return left * float(minimize_scalar(lost, bounds=(0, 1), method="bounded").x)

    def _event(self, problem: Problem) -> Event:
        return self.noise.event(problem.derivative_norms(len(CELLS.edges)))
