"""The stages of labels alone: their counts, the acceptance test, matched frequencies."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np
from scipy.special import expit

from privtail.default.acceptance import Improvement
from privtail.default.fit import Decision, Doubles, Fit
from privtail.default.tuning import Tuning
from privtail.losses import LabelProbability, WeightedLoss, cut_to
from privtail.losses.label_margins import (
    Candidate,
    Ends,
    best_factor,
    longest_without_loss,
    unclamped,
)
from privtail.losses.magnitudes import margin_gap
from privtail.robust_means import BoundedMean
from privtail.summaries.column_summaries import LOCATING_SNR
from privtail.summaries.histograms import bonferroni, usable_rows
from privtail.trusted.events import Event, Plan, Round
from privtail.trusted.mechanisms.noise import GaussianNoise
from privtail.trusted.problem import Problem


@dataclass(frozen=True)
class CountLabels:
    """Releases the counts of the labels. The intercept-only model predicts their frequencies.

    If all rows may count, counts move by equal numbers until they add up to n. A probability below
    p, the noise of a count over n, is not told from 0: log-odds of two labels end at L = -log p.
    Margins of K labels end at -L / 2 and at L (1 - 1 / K), where a label is L above all others.
    If the margin of this model is farther out, they end there.
    """

    noise: GaussianNoise

    def plan(self, problem: Problem) -> Plan:
        return (Round(stage="label counts", events=(self._event(problem),)),)

    def finds_target(self, problem: Problem) -> bool:
        """Whether counts have `LOCATING_SNR`, the signal-to-noise ratio that locates a column."""
        return self.noise.multiplier * problem.max_rows <= problem.n / LOCATING_SNR

    def run(self, fit: Fit) -> None:
        problem = fit.problem
        edges = np.arange(max(1, problem.outputs - 1)) + 0.5
        counts = fit.curator.everyone().histogram((-1,), edges).release(self.noise)
        std = self._event(problem).std
        fit.usable_rows = usable_rows(counts, std, problem.n)
        counts += (fit.usable_rows[0] * problem.n - counts.sum()) / len(counts)
        counts = np.maximum(counts, max(1.0, std))
        if problem.intercept:
            logs = np.log(counts * _weights(fit))
            start = np.zeros((problem.rows, problem.outputs))
            start[-1] = logs[1:] - logs[:1] if problem.outputs == 1 else logs - logs.mean()
            fit.w = fit.intercept_only = start
        noise = fit.tuning.likely * math.sqrt(2) * std * len(counts) / problem.n
        difference = float(np.ptp(np.append(0.0, fit.intercept_only[problem.d :])))
        fit.rarest_label = float(len(counts) * counts.min() / counts.sum())
        fit.labels_even = difference + noise <= fit.tuning.even_log_odds
        most, base = math.log(max(2.0, problem.n / max(1.0, std))), fit.intercept_only[-1]
        ends = np.minimum(base, -most / 2), np.maximum(base, most * (1 - 1 / len(counts)))
        fit.margin_range = (-most, most) if len(base) == 1 else np.column_stack(ends)

    def _event(self, problem: Problem) -> Event:
        return self.noise.event(problem.histogram(1, max(1, problem.outputs - 1)))


@dataclass(frozen=True)
class AcceptLabels:
    """Keeps the slopes of labels if they lower the log loss, with margins of the best length.

    The base is the intercept-only model, or margins of zero if labels are about equally frequent.
    Three mean gains over the base are released:

    - of margins shrunk so far that a typical one moves by `Tuning.small_gain`, where gains are
      clamped: it detects a weak signal. Margins are cut where a gain is clamped;
    - of all the margins;
    - of margins cut at half of `Tuning.far_gain` log-odds from the intercept-only model, so that a
      code such as -999 in a feature makes no prediction certain.

    Each of more than two margins may move by half of what log-odds of two labels may, because two
    margins can move in opposite directions. `label_decision` follows from the three numbers.
    """

    improvement: Improvement

    releases: ClassVar[int] = 3

    def plan(self, problem: Problem) -> Plan:
        return self.improvement.plan(problem, self.releases)

    def run(self, fit: Fit) -> None:
        deviation, even = self.improvement.deviation(fit.problem), fit.labels_even
        base = np.zeros_like(fit.intercept_only) if even else fit.intercept_only
        d, batch = fit.problem.d, fit.everyone()
        middle = float(base[d:].sum()) if fit.problem.outputs == 1 else margin_gap(base[d:])
        typical = fit.preconditioner.typical_margin(fit.w[:d])
        candidates = self._candidates(fit, typical, middle)
        centres, (lows, highs) = base[d:].sum(axis=0), np.transpose(fit.margin_range)

        def margin_range(ends: Ends) -> Doubles:
            """The ends of log-odds as ends of margins: of two labels they are the same."""
            if fit.problem.outputs == 1:
                return np.array(ends)
            halves = (np.array(ends) - middle) / 2
            return np.asarray(np.clip(centres + halves[:, None], lows, highs).T)

        gains = np.array([
            self.improvement.release(
                batch, cut_to(fit.loss, margin_range(each.ends)),
                base + each.factor * (fit.w - base), base, each.clamp,
            )
            for each in candidates
        ])  # fmt: skip
        if deviation == 0:
            return
        fit.decision, ends = label_decision(
            candidates, gains, deviation, typical, middle, fit.tuning,
            even=even and not isinstance(fit.loss, WeightedLoss), weight=max(_weights(fit)),
        )  # fmt: skip
        fit.margin_range = margin_range(ends)
        fit.w = base + fit.decision.margin_factor * (fit.w - base)

    @staticmethod
    def _candidates(fit: Fit, typical: float, middle: float) -> tuple[Candidate, ...]:
        """The three candidates; ``typical`` is the root mean square of the fitted margins."""
        near, far, weights = fit.tuning.small_gain, fit.tuning.far_gain, _weights(fit)
        small = min(1.0, near / typical) if typical > 0 else 1.0
        move, most = 2 * near / max(weights), math.inf
        first = middle - move, middle + move
        if fit.problem.outputs == 1:
            first, most = unclamped(middle, near, weights), float(np.max(fit.margin_range))
        low, high = np.clip([middle - far / 2, middle + far / 2], -most, most).tolist()
        whole, cut = Candidate(1.0, far, (-most, most)), Candidate(1.0, far, (low, high))
        return Candidate(small, near, first), whole, cut


def label_decision(
    candidates: Sequence[Candidate], gains: Doubles, deviation: float, typical: float,
    middle: float, tuning: Tuning, *, even: bool, weight: float = 1.0,
) -> tuple[Decision, Ends]:  # fmt: skip
    """The decision on slopes of labels, and the ends of the margins, from released gains alone.

    Margins are multiplied by the factor of `best_factor`. Whole margins, cut at the ends of the
    last candidate, are taken instead if they likely gain more. If no gain is significant, the
    factor is that of the first candidate. `_shorten` cuts margins unless whole ones gain
    significantly. The ends of the last candidate also cut them if it likely gains more.

    Slopes are kept if gains are significant together, or if the first and the largest other one are
    likely. If labels are ``even`` (about equally frequent), the base predicts by chance. Slopes are
    then kept unless the first gain is a significant loss.

    Parameters
    ----------
    candidates : the small factor, the whole margins, the cut ones.
    gains : of the candidates, in units of their clamps.
    deviation : of the noise of a gain, in the same units.
    typical : root mean square of the fitted margins.
    middle : log-odds of the base: of the second of two labels, else of the most frequent one.
    weight : the largest weight of a label.
    """
    (first, whole, cut), ends, own = candidates, candidates[1].ends, gains[:2]
    factor, best, significance, std = best_factor((first, whole), own, deviation, typical, middle)
    best = max(best / whole.clamp, float(gains[1]))
    if gains[2] > best + tuning.likely * deviation:
        std, factor, ends = math.hypot(std, cut.factor - factor), cut.factor, cut.ends
        best, significance = float(gains[2]), float(gains[2]) / deviation
    near, far = float(gains[0]) / deviation, best / deviation
    significant = significance > bonferroni(tuning.significant)
    kept = significant or min(near, far) > tuning.likely
    kept = kept or (even and near > -tuning.significant)
    if not significant:
        factor, std = first.factor, 0.0
    decision = Decision(kept, significant, (near, far), factor, std)
    if ends == whole.ends and gains[1] <= tuning.significant * deviation:
        decision, reach = _shorten(decision, first, gains, typical, middle, tuning, weight)
        ends = tuple(np.clip(middle + reach, *ends).tolist())
    if gains[2] > gains[1] + tuning.likely * deviation:
        ends = tuple(np.clip(ends, *cut.ends).tolist())
    return decision, ends


def _shorten(
    decision: Decision, first: Candidate, gains: Doubles, typical: float, middle: float,
    tuning: Tuning, weight: float,
) -> tuple[Decision, Doubles]:  # fmt: skip
    """The decision on margins, and the ends of the difference of log-odds from the base.

    Some margins are far longer than ``typical`` if features have heavy tails, and the first gain is
    clamped before their losses. So margins end at `Tuning.sure` typical lengths. If whole margins
    lose, many may be so long, and margins need not be normal. Then margins and ends are those of
    the first candidate, times `longest_without_loss`, which holds for all margins.
    """
    if gains[1] >= 0:
        return decision, np.array([-1, 1]) * tuning.sure * decision.margin_factor * typical
    ends, gain = np.subtract(first.ends, middle), float(gains[0]) * first.clamp
    most = decision.margin_factor / first.factor
    times = longest_without_loss(middle, ends, gain, most, weight)
    return replace(decision, margin_factor=times * first.factor), times * ends


@dataclass(frozen=True)
class MatchFrequencies:
    """Moves intercepts so that the mean probability of every label equals its released frequency.

    If the difference of the two is significant, the intercept of the label moves by the logarithm
    of frequency over mean probability, times 1 - (significant difference / difference)^2. If labels
    are about equally frequent, no intercept moves, so that predicted labels do not change. Of two
    labels the rarer is measured, because noise is in proportion to its largest probability.
    """

    noise: GaussianNoise

    def plan(self, problem: Problem) -> Plan:
        return (Round(stage="intercept by label frequencies", events=(self._event(problem),)),)

    def run(self, fit: Fit) -> None:
        problem, (usable, _), ranges = fit.problem, fit.usable_rows, fit.prediction_ranges()
        margins, two, labels = fit.intercept_only[problem.d], problem.outputs == 1, problem.outputs
        sign, largest = 1.0, 1.0
        if two:  # margins of the rarer label over the other
            sign = -1.0 if margins[0] > 0 else 1.0
            margins, ends = np.append(0.0, sign * margins), np.sort(sign * ranges.margins)
            largest = float(expit(ends[1]))
        else:
            ends = np.concatenate([np.roll(ranges.margins, -k, axis=0) for k in range(labels)])
        models = [np.roll(sign * fit.w, -k, axis=1) for k in range(labels)]  # label k comes first
        probability, mean = LabelProbability(outputs=labels), BoundedMean(largest)
        ranges = replace(ranges, margins=ends)
        scores = fit.everyone().scores(probability, models, mean, ranges)
        means = scores.release(self.noise) / usable
        if fit.labels_even:
            return
        means = np.append(1 - means, means) if two else means
        frequencies = np.exp(margins - np.logaddexp.reduce(margins))
        noise = max(largest * self._event(problem).std / usable, 1e-12)
        move = np.log(frequencies) - np.log(np.maximum(means, np.minimum(noise, frequencies / 2)))
        sure = fit.tuning.significant * noise
        move *= 1 - (sure / np.maximum(np.abs(means - frequencies), sure)) ** 2
        w = fit.w.copy()
        w[problem.d] += sign * (move[1] - move[0]) if two else move
        fit.w = w

    def _event(self, problem: Problem) -> Event:
        return self.noise.event(problem.scores(problem.outputs, BoundedMean(1.0)))


def _weights(fit: Fit) -> tuple[float, ...]:
    loss, labels = fit.loss, max(2, fit.problem.outputs)
    return loss.weights if isinstance(loss, WeightedLoss) else (1.0,) * labels
