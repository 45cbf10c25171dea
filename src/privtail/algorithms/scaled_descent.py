"""The default: clipped proximal gradient on privately scaled features, with a bought threshold."""

from __future__ import annotations

import math
from dataclasses import dataclass, fields, replace
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from privtail.algorithms.comparison import Comparison, no_finer
from privtail.algorithms.quantile_scales import BEYOND, QuantileScales, Scales, above_noise
from privtail.algorithms.result import Result
from privtail.algorithms.standardized import Standard, without_slopes
from privtail.domains import Domain, require
from privtail.errors import IncompatibleParts
from privtail.losses import (
    AbsoluteLoss,
    AnyLoss,
    GeneralLoss,
    LogisticLoss,
    Loss,
    MultinomialLoss,
    Targets,
    WeightedLoss,
)
from privtail.trusted.curator import Curator
from privtail.trusted.events import Plan, Round, compose
from privtail.trusted.means import ClampedMean, ClippedMean
from privtail.trusted.mechanisms.noise import GaussianNoise
from privtail.trusted.mechanisms.selection import NoisyTopK
from privtail.trusted.problem import Problem
from privtail.trusted.sampling import Everyone

LEVELS = 2.0 ** np.arange(-64, 65, 0.5)
"""Public edges for gradient norms."""


RARE = 400
"""Features may be zero for nearly all records: counts of them may be as fine as n over this."""

MOST_CLIPPED = 0.9
"""However large the noise, a tenth of the records at the start is not clipped."""

LARGEST_SHARE = 6.0
"""Part of the descent's variance budget for the scales, where too little would find nothing."""

NARROW = 0.5
"""Products of features and signs are clamped here, in scales: little more than signs."""

STEEPEST = 2.0**20
"""A curvature beyond this (a kink, an exponential) says nothing about where the records are."""


@dataclass(frozen=True, kw_only=True)
class ScaledDescent:
    """Full-batch clipped proximal gradient that needs to know nothing about the data.

    1. Centre and scale every feature (and a numeric target) by private quantiles.
    2. Buy a clipping threshold: a quantile of the gradient norms at the start. It is ``level``, or
       lower if noise is large beside the threshold: then bias is the lesser evil.
    3. ``steps`` clipped, noisy, full-batch proximal steps of decaying length; average of the
       second half of the iterates.
    4. Buy one number: does the mean loss gain from the slopes (of labels: over what their bought
       counts predict)? If not beyond the noise, or if the
       target's scale was not found, shrink to the private constant.

    Not from a paper: clipping is Abadi et al. 2016, proximal steps W19 Algorithm 1.

    Parameters
    ----------
    steps : gradient releases.
    level : which quantile of the starting gradient norms becomes the threshold, in (0, 1).
    pace : first step length in units of target scale / threshold; so far a step moves at most.
    decay : step t is the first step over t^decay.
    most_noise : cap on the first step, so that noise alone walks at most this many target scales.
    targets : of the loss. A real target is centred and scaled too; of labels, counts are bought for
        the constant; counts begin where ``start`` says (`CountDescent`).
    sparsity : how many features may be used; None for all. They are selected by one noisy top-k of
        robust marginal scores before the descent.
    scale_share, threshold_share, comparison_share : parts of the descent's variance budget that
        stages 1, 2 and 4 may spend; they take less where less is enough.

    **Privacy.** Four kinds of Gaussian releases: histograms of l2 sensitivity sqrt(2 d) (features)
    and sqrt 2 (target or labels, gradient norms), ``steps`` gradients of 2 threshold/n, one mean of
    values in [-1, 1]. Exact Gaussian composition. Everything else is post-processing.

    **Utility.** None proved; measured in ``benchmarks/accuracy.py``.
    """

    steps: int = 100
    level: float = 0.9
    pace: float = 2.0
    decay: float = 0.5
    most_noise: float = 1.0
    targets: Targets = "real"
    sparsity: int | None = None
    scale_share: float = 0.6
    selection_share: float = 1.0
    threshold_share: float = 0.1
    comparison_share: float = 0.1

    needs: ClassVar[tuple[str, ...]] = ("prox", "scaled")

    def plan(self, multiplier: float, problem: Problem) -> Plan:
        """Scales, threshold, descent, comparison."""
        norms = self._norms(multiplier, problem).event(problem.gradient_norms(len(LEVELS)))
        descent = GaussianNoise(multiplier).event(problem.gradient(ClippedMean(1.0)))
        return compose(
            self._looks.plan(self._scales(multiplier, problem), problem),
            self._selection(multiplier, problem),
            (Round(events=(norms,)), Round(events=(descent,), times=self.steps)),
            self._compared.plan(self._comparison(multiplier), problem),
        )

    def run(
        self, curator: Curator, loss: AnyLoss, domain: Domain, multiplier: float,
        start: ArrayLike | None = None,
    ) -> Result:  # fmt: skip
        """The four stages; parameters in the units of the raw features."""
        if isinstance(loss, GeneralLoss):
            raise IncompatibleParts(
                "ScaledDescent needs a loss of a margin; for a GeneralLoss use ProximalGradient."
            )
        require(domain, *self.needs, needed_by="ScaledDescent")
        problem = curator.problem
        found = self._looks.run(curator, self._scales(multiplier, problem))  # 1
        standard = Standard.of(found, curator)
        loss = standard.loss(loss)
        if self._picks(problem):
            standard = self._selected(curator, standard, found, multiplier)
        w = begin = standard.start(problem, start)
        domain = domain.scaled(1 / standard.scales)
        threshold = self._threshold(curator, loss, w, standard.unit, multiplier)  # 2
        std = GaussianNoise(multiplier).event(problem.gradient(ClippedMean(threshold))).std
        lengths = self._lengths(loss, threshold, standard.unit, std, w.size)

        total = np.zeros_like(w)
        for t, batch in enumerate(curator.rounds(Everyone(), self.steps)):  # 3
            g = batch.gradient(loss, w, ClippedMean(threshold)).release(GaussianNoise(multiplier))
            if 2 * (t + 1) > self.steps:
                total += w
            w = domain.prox(w - lengths[t] * g.reshape(w.shape), float(lengths[t]))
        w = total / (self.steps - self.steps // 2)

        constant = without_slopes(w, problem) if standard.seen else begin
        constant, better = self._compared.run(  # 4
            curator, loss, w, constant, standard.unit, self._comparison(multiplier)
        )
        doubts = standard.doubts(better)
        return Result(
            standard.raw(constant if doubts else w, problem), self.steps, multiplier,
            unit=standard.unit, scales=standard.scales,
            noise=0.0 if doubts else self._noise(lengths * std) / standard.unit, notes=doubts,
        )  # fmt: skip

    def _lengths(
        self, loss: Loss, threshold: float, unit: float, std: float, size: int
    ) -> NDArray[np.float64]:
        """Lengths of the steps: as far as pace, curvature and noise allow, then decaying."""
        decay = np.arange(1.0, self.steps + 1) ** -self.decay
        walk = std * math.sqrt(float(np.sum(decay**2)) * size)
        # Over moves of a target scale the gradient changes by no more than twice its bound.
        curvature = loss.curvature if loss.curvature < STEEPEST else math.inf
        curvature = min(curvature, loss.lipschitz / unit)
        first = self.pace * unit / threshold
        if 0 < curvature < math.inf:
            first = min(first, 1 / curvature)
        if walk > 0:
            first = min(first, self.most_noise * unit / walk)
        return first * decay

    def _noise(self, steps: NDArray[np.float64]) -> float:
        """Deviation of the averaged iterates if step t adds noise of deviation ``steps[t]``.

        A step on a convex loss brings two paths no further apart, so what a step adds never grows.
        It is in those of the averaged iterates that come after it.
        """
        first = self.steps // 2
        after = self.steps - 1 - np.maximum(np.arange(self.steps), first - 1)
        return float(np.linalg.norm(steps * after / (self.steps - first)))

    # ---------------------------------------------------------------- selection

    def _picks(self, problem: Problem) -> int:
        """How many features are selected; 0 if all of them stay."""
        return self.sparsity if self.sparsity and self.sparsity < problem.d else 0

    def _selection(self, multiplier: float, problem: Problem) -> Plan:
        """The largest scores; then the scales of the selected features, if all shared one."""
        picks = self._picks(problem)
        if not picks:
            return ()
        scores = replace(problem.gradient(ClampedMean(1.0)), one_signed=False)
        scores = scores.take(problem.d * problem.outputs)
        plan: Plan = (Round(events=(self._top(multiplier, problem).event(scores),)),)
        prices = self._scales(multiplier, problem)
        if self._looks.pooled(prices, problem):
            plan = compose(plan, QuantileScales(enough=RARE).plan(prices, problem, picks))
        return plan

    def _top(self, multiplier: float, problem: Problem) -> NoisyTopK:
        picks = self._picks(problem)
        return NoisyTopK(multiplier * math.sqrt(picks / (self.steps * self.selection_share)), picks)

    def _selected(
        self, curator: Curator, standard: Standard, found: Scales, multiplier: float
    ) -> Standard:
        """Keep the features whose clamped products with the sign of the residual are largest.

        Quadrant correlations (Blomqvist 1950): bounded, and blind to scales and heavy tails.
        """
        problem = curator.problem
        loss: Loss = AbsoluteLoss()
        if self.targets in ("binary", "class"):
            one = problem.outputs == 1
            loss = LogisticLoss() if one else MultinomialLoss(classes=problem.outputs)
        w = standard.start(problem, None)
        scores = curator.everyone().gradient(loss, w, ClampedMean(NARROW))
        scores = scores.take(np.arange(problem.d * problem.outputs)).abs()
        top = scores.release(self._top(multiplier, problem)) // problem.outputs
        support = np.unique(top)
        prices = self._scales(multiplier, problem)
        if self._looks.pooled(prices, problem):
            curator.transform(np.ones(problem.d))
            kept = tuple(int(j) for j in top)
            closer = QuantileScales(enough=RARE).run(curator, prices, kept)
            for field in fields(Scales):
                getattr(found, field.name)[support] = getattr(closer, field.name)[support]
        scales = np.full_like(found.scales, BEYOND)
        scales[support], scales[problem.d :] = found.scales[support], found.scales[problem.d :]
        return Standard.of(replace(found, scales=scales), curator)

    # ---------------------------------------------------------------- descent

    def _scales(self, multiplier: float, problem: Problem) -> float:
        """Noise of the looks: the usual share, or more where that would not find the target."""
        usual, least = (
            multiplier / math.sqrt(2 * self.steps * share)
            for share in (self.scale_share, LARGEST_SHARE)
        )
        return max(least, min(usual, self._looks.sharp(problem)))

    @property
    def _looks(self) -> QuantileScales:
        return QuantileScales.of(self.targets, enough=RARE)

    @property
    def _compared(self) -> Comparison:
        return Comparison(targets=self.targets)

    def _comparison(self, multiplier: float) -> float:
        return multiplier / math.sqrt(self.steps * self.comparison_share)

    def _norms(self, multiplier: float, problem: Problem) -> GaussianNoise:
        return no_finer(multiplier / math.sqrt(2 * self.steps * self.threshold_share), problem)

    def _threshold(
        self, curator: Curator, loss: Loss, w: NDArray[np.float64], unit: float, multiplier: float
    ) -> float:
        """A released quantile of the gradient norms; the noisier a gradient, the lower.

        Norms are those before class weights, which would sort the classes into clipped and not.
        """
        problem, noise, heaviest = curator.problem, self._norms(multiplier, curator.problem), 1.0
        if isinstance(loss, WeightedLoss):
            heaviest, loss = max(loss.weights), loss.loss
        counts = curator.everyone().gradient_norms(loss, w, LEVELS).release(noise)
        std = noise.event(problem.gradient_norms(len(LEVELS))).std
        kept = above_noise(counts, std, problem.n, LEVELS)
        kept[0] = 0.0  # records without a gradient
        if kept.sum() <= 0:
            return heaviest * unit * math.sqrt(problem.rows)
        relative = multiplier * problem.max_rows * math.sqrt(w.size) / problem.n
        clipped = min(MOST_CLIPPED, max(1 - self.level, 4 * relative))
        cell = int(np.searchsorted(np.cumsum(kept), (1 - clipped) * kept.sum()))
        return heaviest * float(LEVELS[min(cell, len(LEVELS) - 1)])
