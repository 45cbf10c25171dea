"""How sure of its labels a model may be: the length of its margins, and its mean probability."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize
from scipy.special import expit, logit, softmax

from privtail.default.acceptance import lead
from privtail.default.intercept import Intercept
from privtail.losses import FARTHEST_ODDS, LABELS, Loss, OddsAgainst, Targets, WeightedLoss, cut_to
from privtail.summaries.histograms import Cells, Histogram
from privtail.trusted.curator import Curator
from privtail.trusted.events import Event, Plan, Round, compose
from privtail.trusted.mechanisms.noise import GaussianNoise
from privtail.trusted.problem import Problem

Doubles = NDArray[np.float64]

HIDDEN = 1 / 64
"""Part of the margins that is kept at least: nothing may show of how long they are."""

EVENLY = 1.0
"""Lead of the most frequent label, in log-odds, up to which all margins become shorter alike, so
that predicted labels stay the same. Beyond, the intercept is right on average."""

NEAREST = 0.5
"""Margins are cut no nearer to the constant's than this."""

UNSURE = 1.0
"""So many deviations of its noise a mean probability must be off to be corrected."""

FINE = 100
"""Counts with noise n over this or less are of finer cells."""


def _around_zero(sizes: NDArray[np.floating]) -> Cells:
    """Cells of log-odds with these ends on both sides of zero."""
    return Cells(np.concatenate([-sizes[::-1], sizes]), zero=len(sizes))


_FINE = _around_zero(np.concatenate([np.arange(1, 8) / 4, 2.0 ** np.arange(1, 32, 0.5)]))
_COARSE = _around_zero(2.0 ** np.arange(-2, 32))


@dataclass(frozen=True)
class Calibrated:
    """A model of labels, and what calibration found.

    Attributes
    ----------
    w : (rows, K).
    part : how many times longer its margins became.
    ends : where margins of two labels are cut: farther than those that surely occur no model is
        sure of anything.
    """

    w: Doubles
    part: float = 1.0
    ends: tuple[float, float] = (-math.inf, math.inf)


@dataclass(frozen=True)
class Calibration:
    """Calibration of a model of labels: as sure as it is right, and right on average.

    Slopes that are noise make margins that are too long, in units that noise hid many times too
    long: labels are as good as they were, probabilities are not. One histogram of the log-odds that
    the model gives against each label, above those of the constant, says what the log loss is for
    any length of what margins differ from the constant. They become shorter if that loses less. (Of
    more than two labels margins between one and all others are shortened, as if these were alike.)
    Where one of two labels leads by `EVENLY` the intercept then moves to where the mean probability
    is the part of the records that have the label (`Intercept`).

    **Privacy.** Gaussian releases of a histogram of l2 sensitivity sqrt 2, over public edges, and
    of a mean of one number.
    """

    noise: GaussianNoise
    level: Intercept
    targets: Targets = "class"

    def plan(self, problem: Problem) -> Plan:
        """One histogram and one number, of labels."""
        if self.targets not in LABELS:
            return ()
        first: Plan = (Round(stage="calibration", events=(self._event(problem),)),)
        return compose(first, self.level.plan(problem)) if problem.intercept else first

    def run(self, curator: Curator, loss: Loss, w: Doubles, constant: Doubles) -> Calibrated:
        """``w`` calibrated; a model of no labels as it is."""
        if self.targets not in LABELS:
            return Calibrated(w)
        usual = constant[curator.problem.d :].sum(axis=0)
        part, move, widest = self._longer(curator, loss, w, usual)
        rare = _leads(usual)
        shorter = constant + part * (w - constant) if rare else part * w
        if curator.problem.outputs > 1:
            if curator.problem.intercept:  # planned before it was known how many labels there are
                self.level.run(curator, loss, shorter, loss.lipschitz)
            return Calibrated(shorter, part)
        level = float(usual.sum())
        ends = level - widest, level + widest
        if _moves(curator.problem):
            moved = shorter.copy()
            moved[-1] += move
            moved = self._centred(curator, loss, moved, level, ends)
            shorter = moved if rare else shorter
        return Calibrated(shorter, part, ends)

    def _longer(
        self, curator: Curator, loss: Loss, w: Doubles, usual: Doubles
    ) -> tuple[float, float, float]:
        """How many times longer margins should be, the move of the intercept then, and their end.

        They end where they are cut, as far from the constant's as margins surely go, or nearer.
        """
        problem, labels = curator.problem, max(2, len(usual))
        std, cells = self._event(problem).std, self._cells(problem)
        own = np.append(cells.edges, 1.5 * FARTHEST_ODDS) + FARTHEST_ODDS
        edges = (3 * np.arange(labels)[:, None] * FARTHEST_ODDS + own).reshape(-1)
        counts = (
            curator.everyone()
            .derivative_norms(OddsAgainst(usual=tuple(usual.tolist())), w, edges[:-1])
            .release(self.noise)
            .reshape(labels, -1)
        )
        ends = np.concatenate([cells.edges[:1], cells.edges, cells.edges[-1:]])
        shown = _shown(counts, cells, std, problem.n)
        if not shown.any():
            return HIDDEN, 0.0, NEAREST
        farthest = float(np.maximum(-ends[:-1], ends[1:])[shown.any(axis=0)].max())
        weights = np.array(loss.weights)[:, None] if isinstance(loss, WeightedLoss) else 1.0
        margins = np.append(0.0, usual) if len(usual) == 1 else usual
        fit = _Fit(
            counts=np.where(shown, weights * counts, 0.0), middles=(ends[1:] + ends[:-1]) / 2,
            against=logit(1 - softmax(margins))[:, None],
            signs=np.array([[1.0], [-1.0]]) if _moves(problem) and _leads(usual)
            else np.zeros((labels, 1)),
        )  # fmt: skip
        cuts = farthest / 2.0 ** np.arange(40)
        return fit.best([cut for cut in cuts.tolist() if cut >= min(NEAREST, farthest)])

    def _centred(
        self, curator: Curator, loss: Loss, w: Doubles, usual: float, ends: tuple[float, float]
    ) -> Doubles:
        """``w``, its intercept moved by what the mean probability is off."""
        share = float(expit(usual))
        weights = loss.weights if isinstance(loss, WeightedLoss) else (1.0, 1.0)
        weight = 1 / ((1 - share) / weights[0] + share / weights[1])
        noise = self.level.deviation(curator.problem) * loss.lipschitz / weight
        least = max(min(noise, share / 2, (1 - share) / 2), 1e-12)

        def told(derivative: float) -> float:
            mean = min(max(share + derivative / weight, least), 1 - least)
            return float(logit(mean)) - usual

        return self.level.run(
            curator, cut_to(loss, ends), w, loss.lipschitz, doubt=UNSURE, told=told
        )

    def _cells(self, problem: Problem) -> Cells:
        return _FINE if self.noise.multiplier <= problem.n / problem.max_rows / FINE else _COARSE

    def _event(self, problem: Problem) -> Event:
        labels = max(2, problem.outputs)
        return self.noise.event(
            problem.derivative_norms(labels * (len(self._cells(problem).edges) + 1) - 1)
        )


@dataclass(frozen=True)
class _Fit:
    """A constant's log-odds against each label, and counts (labels, cells) of those beyond them.

    ``signs`` (labels, 1) says what a move of the intercept is for each.
    """

    counts: Doubles
    middles: Doubles
    against: Doubles
    signs: Doubles

    def best(self, cuts: list[float]) -> tuple[float, float, float]:
        """Length, move and end of the least log loss of margins that are cut somewhere."""
        start, bounds = np.array([0.5, 0.0]), [(0, 1), (-1, 1)]
        fits = [minimize(self._lost, start, (cut,), bounds=bounds) for cut in cuts]
        chosen = int(np.argmin([fit.fun for fit in fits]))
        x, cut = fits[chosen].x, cuts[chosen]
        length, move = max(HIDDEN, float(x[0])), float(x[1])
        return length, move, length * cut

    def _odds(self, x: Doubles, cut: float) -> Doubles:
        beyond = x[0] * self.middles.clip(-cut, cut)
        return np.asarray(self.against + beyond + x[1] * self.signs)

    def _lost(self, x: Doubles, cut: float) -> float:
        lost = float(np.sum(self.counts * np.logaddexp(0, self._odds(x, cut))))
        return lost / float(np.abs(self.counts).sum())


def _shown(counts: Doubles, cells: Cells, std: float, n: int) -> NDArray[np.bool_]:
    """Cells (labels, cells) of margins that surely occur with some label.

    What speaks for one label speaks against the others: a choice by margins, whatever the labels
    are, leaves it as it is how often each occurs there. Of more than two labels by their size.
    """
    first, second = counts if len(counts) == 2 else (counts.sum(axis=0),) * 2
    noise = std * math.sqrt(2 if len(counts) == 2 else 2 * len(counts))
    rows = n if len(counts) == 2 else 2 * n
    kept = Histogram(first + second[::-1], cells, noise).above_noise(rows) != 0
    return np.array([kept, *[kept[::-1]] * (len(counts) - 1)])


def _leads(usual: Doubles) -> bool:
    """Whether one label is so frequent at these ``usual`` margins that the others are rare."""
    return lead(usual[None]) >= EVENLY


def _moves(problem: Problem) -> bool:
    """Whether there is one intercept, of two labels."""
    return problem.intercept and problem.outputs == 1
