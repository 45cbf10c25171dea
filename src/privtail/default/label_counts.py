"""How often each label occurs: the constant model of labels."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import NDArray

from privtail.losses import Loss, MultinomialLoss, WeightedLoss
from privtail.summaries.histograms import part_that_counts
from privtail.trusted.curator import Curator
from privtail.trusted.events import Event, Plan, Round
from privtail.trusted.mechanisms.noise import GaussianNoise
from privtail.trusted.problem import Problem

Doubles = NDArray[np.float64]

SHARP = 30
"""Counts of labels with noise n over this tell the most frequent one."""


@dataclass(frozen=True)
class LabelCounts:
    """Counts of the labels, since a trained intercept is too noisy for a constant.

    **Privacy.** One Gaussian release of a histogram of l2 sensitivity sqrt 2.
    """

    noise: GaussianNoise

    @classmethod
    def priced(cls, usual: float, least: float, problem: Problem) -> Self:
        """With a noise multiplier ``usual``, or down to ``least`` where it would not be sharp."""
        return cls(GaussianNoise(max(least, min(usual, sharp(problem)))))

    def plan(self, problem: Problem) -> Plan:
        """One histogram."""
        return (Round(stage="label counts", events=(self._event(problem),)),)

    def run(self, curator: Curator) -> tuple[Doubles, tuple[float, float]]:
        """(labels,) positive counts, and the `part_that_counts` of the rows.

        What noise may hide counts for as much.
        """
        edges = np.arange(_labels(curator.problem) - 1) + 0.5
        counts = curator.everyone().histogram((-1,), edges).release(self.noise)
        std = self._event(curator.problem).std
        rows = part_that_counts(counts, std, curator.problem.n)
        return np.maximum(counts, max(1.0, std)), rows

    def _event(self, problem: Problem) -> Event:
        return self.noise.event(problem.histogram(1, _labels(problem) - 1))


def sharp(problem: Problem) -> float:
    """The largest noise multiplier of counts that tell the most frequent label."""
    return problem.n / problem.max_rows / SHARP


def of_labels(counts: Doubles, loss: Loss, problem: Problem) -> Doubles:
    """The constant model of positive counts of labels; without an intercept it is zero."""
    constant = np.zeros((problem.rows, problem.outputs))
    if problem.intercept:
        logs = np.log(counts * (loss.weights if isinstance(loss, WeightedLoss) else 1.0))
        constant[-1] = logs[1:] - logs[:1] if problem.outputs == 1 else logs - logs.mean()
    return constant


def rarity(counts: Doubles) -> float:
    """How often the rarest label occurs, in parts of how often it would if all did alike."""
    return float(len(counts) * counts.min() / counts.sum())


def sharpest(loss: Loss, constant: Doubles) -> tuple[float, float]:
    """The largest derivative of a loss of labels at a constant model, and its curvature there.

    ``constant`` is the intercept (1, K), or (0, K) for none.
    """
    margins, labels = _every_label(loss, constant)
    plain = loss.loss if isinstance(loss, WeightedLoss) else loss
    p = np.exp(-plain.values(margins, labels))
    bend = float(np.linalg.eigvalsh(np.diag(p) - np.outer(p, p))[-1])
    bend *= loss.curvature / MultinomialLoss.curvature
    sizes = np.linalg.norm(derivatives(loss, constant), axis=1)
    return float(sizes.max()), bend


def derivatives(loss: Loss, constant: Doubles) -> Doubles:
    """Of a loss of labels at a constant model (1, K), or (0, K), for every label: (labels, K)."""
    return loss.derivatives(*_every_label(loss, constant))


def _every_label(loss: Loss, constant: Doubles) -> tuple[Doubles, Doubles]:
    """The margins of a constant model, (labels, K), and the labels."""
    labels = np.arange(max(2, loss.outputs), dtype=np.float64)
    return np.repeat(constant.sum(axis=0, keepdims=True), len(labels), axis=0), labels


def _labels(problem: Problem) -> int:
    return max(2, problem.outputs)
