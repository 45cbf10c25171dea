"""How far slopes extrapolate, and whether they are kept, because they lower the loss."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, ndtr, ndtri

from privtail.default.fit import Decision, Fit
from privtail.default.labels import margin_gap
from privtail.default.tuning import Tuning
from privtail.losses import AmountLoss, Loss, WeightedLoss, cut_to
from privtail.losses.magnitudes import loss_off_by, unclamped
from privtail.robust_means import ClampedMean
from privtail.summaries.summary import FARTHER
from privtail.trusted.batch import Batch
from privtail.trusted.events import Event, Plan, Round
from privtail.trusted.maps import PredictionRanges
from privtail.trusted.mechanisms.noise import GaussianNoise
from privtail.trusted.problem import Problem

Doubles = NDArray[np.float64]


@dataclass(frozen=True)
class Improvement:
    """Releases of the mean gain of a model over another one; the gain of a record is clamped.

    **Privacy.** A Gaussian release of a mean of values in [-1, 1], in units of the clamp.
    """

    noise: GaussianNoise

    def plan(self, problem: Problem, releases: int, stage: str = "acceptance test") -> Plan:
        """The releases of so many gains, in one round."""
        return (Round(stage=stage, events=(self._event(problem),) * releases),)

    def deviation(self, problem: Problem) -> float:
        """Standard deviation of the noise, in units of the clamp."""
        return self._event(problem).std

    def release(
        self, batch: Batch, loss: Loss, w: Doubles, base: Doubles, clamp: float,
        ranges: PredictionRanges | None = None,
    ) -> float:  # fmt: skip
        """The mean gain of ``w`` over ``base``, in units of the clamp.

        ``ranges`` are those to which features and margins are clipped at ``w``, not at ``base``.
        """
        answer = batch.improvement(loss, w, base, ClampedMean(clamp), ranges)
        return float(answer.release(self.noise)[0]) / clamp

    def _event(self, problem: Problem) -> Event:
        return self.noise.event(problem.improvement(ClampedMean(1.0)))


@dataclass(frozen=True)
class LimitExtrapolation:
    """How far a model of numbers extrapolates: where features and predictions are clipped.

    The column summaries say where the tail of a column ends, the farthest cell that rose above the
    noise. Farther out noise hides records. There may be none, or a heavy tail that the slopes
    predict, or values that the slopes of all other records send anywhere: a code for missing values
    (-999), a few rows in another unit, an effect that levels off. So the model is compared with
    itself, clipped to the tails. The mean gain of clipping is released. The gain of a record is
    clamped at the loss of a margin that is off by one scale of the target: the comparison counts
    records, however far they lie.

    If clipping significantly loses, values may lie `FARTHER` tails from their location. If it
    likely gains, they may lie one tail from it. Else it is `Tuning.unclear_reach` tails. The first
    test is stricter, because far predictions of values that noise hides cost more than clipped
    ones: by chance one fit in 44 reaches far.
    """

    improvement: Improvement

    releases: ClassVar[int] = 1

    def plan(self, problem: Problem) -> Plan:
        return self.improvement.plan(problem, self.releases, "extrapolation")

    def run(self, fit: Fit) -> None:
        one, ranges = loss_off_by(fit.loss, fit.standard.target.scale), fit.prediction_ranges(1.0)
        gain = self.improvement.release(fit.everyone(), fit.loss, fit.w, fit.w, one, ranges)
        tuning, deviation = fit.tuning, self.improvement.deviation(fit.problem)
        fit.reach = 1.0 if gain > tuning.likely * deviation else tuning.unclear_reach
        if gain < -tuning.significant * deviation:
            fit.reach = FARTHER
        fit.overshoots = gain > tuning.sure * deviation
        fit.report["reach"] = fit.reach


@dataclass(frozen=True)
class Accept:
    """Keeps the slopes of numbers, counts and amounts if they lower the mean loss.

    Two mean gains over the intercept-only model are released. The near one is clamped at the loss
    of a margin that is off by one scale of the target (for counts and amounts at half of
    `Tuning.far_gain`, times the dispersion), so that a few far records do not decide. The far one
    is clamped as far out as noise lets a loss of `Tuning.small_gain` be seen. It shows a model
    that is far off for a few records.

    The slopes are significantly better if one gain is significant (`_bonferroni`), and the other is
    no significant loss. They also are if the far gain is sure. The slopes are kept then, and also
    if the near gain is likely and the far one above zero.

    Of a target without a scale the intercept-only model takes the intercept of the model, which
    later releases moved: else gains would be those of the better intercept.
    """

    improvement: Improvement

    releases: ClassVar[int] = 2

    def plan(self, problem: Problem) -> Plan:
        return self.improvement.plan(problem, self.releases)

    def run(self, fit: Fit) -> None:
        deviation, tuning = self.improvement.deviation(fit.problem), fit.tuning
        batch, ranges = fit.everyone(), fit.prediction_ranges()
        if fit.standard.target.without_scale:
            fit.intercept_only = fit.w.copy()
            fit.intercept_only[: fit.problem.d] = 0.0
        near, far = (
            self.improvement.release(batch, fit.loss, fit.w, fit.intercept_only, clamp, ranges)
            for clamp in self._clamps(fit, tuning.significant * deviation)
        )
        if deviation == 0:
            return
        near, far = near / deviation, far / deviation
        no_loss = min(near, far) > -tuning.significant
        significant = no_loss and max(near, far) > _bonferroni(tuning.significant)
        significant = significant or far > tuning.sure
        kept = significant or (near > tuning.likely and far > 0)
        fit.decision = Decision(kept, significant, (near, far))

    @staticmethod
    def _clamps(fit: Fit, noticed: float) -> tuple[float, float]:
        """Where the gains are clamped; a gain of ``noticed`` clamps is significant."""
        loss, seen = fit.loss, fit.tuning.small_gain / noticed if noticed > 0 else 0.0
        if isinstance(loss, AmountLoss):
            typical = fit.dispersion / 2  # half a typical deviance
            near = fit.tuning.far_gain * typical
            return near, max(near, seen * typical)
        one = loss_off_by(loss, fit.standard.target.scale)
        if fit.mostly_zero and fit.residuals.known:
            one = max(one, loss_off_by(loss, math.sqrt(fit.residuals.mean_square())))
        return one, one * max(1.0, seen)


@dataclass(frozen=True)
class Candidate:
    """A model of labels whose gain is released.

    Its margins are those of the base, plus a ``part`` of what the fitted margins differ from them,
    between the ``ends``. Gains of records are clamped at ``clamp``, in nats.
    """

    part: float
    clamp: float
    ends: tuple[float, float]


@dataclass(frozen=True)
class AcceptLabels:
    """Keeps the slopes of labels that lower the log loss, with margins of the best length.

    The base is the intercept-only model, or margins of zero where labels are about equally
    frequent. The mean gains of three candidates over the base are released:

    - a part so small that a typical margin moves by `Tuning.small_gain`, where gains are clamped:
      it shows a weak signal. The margins of two labels are cut where a gain would be clamped;
    - the whole margins;
    - of two labels, the margins cut half of `Tuning.far_gain` log-odds from those of the
      intercept-only model: with these a code such as -999 in a feature makes no prediction certain.
      Of more labels, a quarter of the margins.

    `label_decision` says what follows from the three numbers.
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
        typical = float(
            np.linalg.norm(fit.preconditioner.principal_coordinates(fit.w[:d], len(fit.w)))
        )
        candidates = self._candidates(fit, typical)
        gains = np.array([
            self.improvement.release(
                batch, cut_to(fit.loss, each.ends), base + each.part * (fit.w - base), base,
                each.clamp,
            )
            for each in candidates
        ])  # fmt: skip
        if deviation == 0:
            return
        fit.decision, fit.margin_range = label_decision(
            candidates, gains, deviation, typical, middle, fit.tuning,
            coin=even and not isinstance(fit.loss, WeightedLoss),
        )  # fmt: skip
        fit.w = base + fit.decision.margin_factor * (fit.w - base)

    @staticmethod
    def _candidates(fit: Fit, typical: float) -> tuple[Candidate, ...]:
        """The three candidates; ``typical`` is the root mean square of the fitted margins."""
        near, far, margins = fit.tuning.small_gain, fit.tuning.far_gain, fit.margin_range
        small = min(1.0, near / typical) if typical > 0 else 1.0
        first, last = Candidate(small, near, margins), Candidate(0.25, far, margins)
        if fit.problem.outputs == 1:
            middle = float(fit.intercept_only[fit.problem.d :].sum())
            low, high = np.clip([middle - far / 2, middle + far / 2], *margins)
            last = Candidate(1.0, far, (float(low), float(high)))
            weights = fit.loss.weights if isinstance(fit.loss, WeightedLoss) else (1.0, 1.0)
            base = 0.0 if fit.labels_even else middle
            first = replace(first, ends=unclamped(base, near, weights))
        return first, Candidate(1.0, far, margins), last


def label_decision(
    candidates: Sequence[Candidate], gains: Doubles, deviation: float, typical: float,
    middle: float, tuning: Tuning, *, coin: bool,
) -> tuple[Decision, tuple[float, float]]:  # fmt: skip
    """The decision on slopes of labels, and the ends of the margins, from released gains alone.

    The part of the margins is the one that gains most under the law of `best_part`, or all of them
    with ends where these likely gain more. Where no gain is significant, it is the first part:
    hardly more than the signs of the margins.

    Heavy tails of features break the law: a few margins are far longer than `typical`, and what
    they lose is not in the first gain. Where the whole margins gain nothing significant, those of
    two labels end `Tuning.sure` typical lengths from the base, as normal ones do. With more labels,
    a part whose own gain is a significant loss is not kept.

    Slopes are kept if gains are significant together, or if the first and the largest other one are
    likely. With a ``coin``, where labels are about equally frequent, a model has nothing to spoil:
    slopes are kept unless the first gain is a significant loss.

    Parameters
    ----------
    candidates : the small part, the whole margins, others; those with other ends come last.
    gains : of the candidates, in units of their clamps.
    deviation : of the noise of a gain, in the same units.
    typical : root mean square of the fitted margins.
    middle : log-odds of the base: of the second of two labels, else of the most frequent one.
    """
    ends = candidates[1].ends
    whole = [candidates[0], *(each for each in candidates[1:] if each.ends == ends)]
    seen = gains[: len(whole)]
    part, best, height, off = best_part(whole, seen, deviation, typical, middle)
    best = max(best / whole[-1].clamp, float(seen[1:].max()))
    for each, gain in zip(candidates[len(whole) :], gains[len(whole) :], strict=True):
        if gain > best + tuning.likely * deviation:
            off, part, ends = math.hypot(off, each.part - part), each.part, each.ends
            best, height = float(gain), float(gain) / deviation
    near, far = float(gains[0]) / deviation, best / deviation
    significant = height > _bonferroni(tuning.significant)
    kept = significant or min(near, far) > tuning.likely
    kept = kept or (coin and near > -tuning.significant)
    if not significant:
        part, off = candidates[0].part, 0.0
    decision = Decision(kept, significant, (near, far), part, off)
    line = tuning.significant * deviation
    if len(whole) == len(candidates):
        return _harmless(decision, whole[1:], gains[1:], line), ends
    if ends == candidates[1].ends and gains[1] <= line:
        reach = tuning.sure * part * typical
        ends = max(ends[0], middle - reach), min(ends[1], middle + reach)
    return decision, ends


def _harmless(
    decision: Decision, candidates: Sequence[Candidate], gains: Doubles, line: float
) -> Decision:
    """The decision for a part of the margins that does not lose more than ``line``.

    No slope is kept if all candidates do.
    """
    parts = [each.part for each, gain in zip(candidates, gains, strict=True) if gain >= -line]
    part = min(decision.margin_factor, max(parts, default=decision.margin_factor))
    return replace(decision, kept=decision.kept and bool(parts), margin_factor=part)


def best_part(
    candidates: Sequence[Candidate], gains: Doubles, deviation: float, typical: float, middle: float
) -> tuple[float, float, float, float]:
    """The part of the margins that gains most, its gain, how significant, and how well known.

    The law: log-odds are ``middle`` plus a true part of normal margins with the root mean square
    ``typical``. It gives the expected gain of every candidate, with log-odds cut to its ends and
    gains clamped record by record. The true part, and one factor near 1 that multiplies all gains,
    are fitted to the noisy ``gains`` by least squares. Tried are eighths of an octave down to
    2^-12, and zero: no part is farther than 5 % from one.

    The significance is that of the sum of the gains whose weights are what the law expects of each
    (a matched filter), in standard deviations of its noise. The sum is mainly the first gain or
    mainly the others: that is two tests (`_bonferroni`). ``deviation`` is that of the noise of a
    gain; both are in units of its clamp.

    The last number is the standard deviation of the true part around the best one, given the noisy
    gains, if all parts up to 1 are equally likely before.
    """
    places, weights = np.polynomial.hermite_e.hermegauss(32)
    z, weights = typical * places, weights / weights.sum()
    parts, most = np.array([(each.part, each.clamp) for each in candidates]).T[:, :, None]
    cuts = np.array([each.ends for each in candidates])
    truths = np.append(2.0 ** (-np.arange(97) / 8), 0.0)
    moved = np.clip(middle + parts * z, cuts[:, :1], cuts[:, 1:]) - middle
    zero = np.logaddexp(0, middle) - np.logaddexp(0, middle + moved)
    one, zero = (np.clip(gain, -most, most) * weights for gain in (zero + moved, zero))
    p = expit(middle + truths[:, None] * z)
    expected = one @ p.T + zero @ (1 - p).T
    curves, seen = expected / (deviation * most), gains / deviation
    factors = np.maximum((seen @ curves + 1) / (np.sum(curves**2, axis=0) + 1), 0.0)
    misses = np.sum((factors * curves - seen[:, None]) ** 2, axis=0) + (factors - 1) ** 2
    best = int(misses.argmin())
    part = float(truths[best])
    own = np.logaddexp(0, middle) - np.logaddexp(0, middle + part * z)
    gain = float((own + part * z * expit(middle + part * z)) @ weights)
    filters = np.maximum(curves, 0.0)
    lengths = np.maximum(np.linalg.norm(filters, axis=0), np.finfo(np.float64).tiny)
    height = float((seen @ filters / lengths).max())
    likelihoods = truths * np.exp((misses[best] - misses) / 2)  # truths: as far apart as they lie
    between = part * math.log(2) / 8 / math.sqrt(12)
    off = math.sqrt(
        float(likelihoods @ (truths - part) ** 2) / max(float(likelihoods.sum()), 1e-300)
    )
    return part, float(factors[best]) * gain, height, math.hypot(off, between)


def _bonferroni(deviations: float) -> float:
    """The threshold for the larger of two tests, as strict as ``deviations`` is for one.

    Two tests are two chances to be wrong (Bonferroni 1936).
    """
    return -float(ndtri(ndtr(-deviations) / 2))
