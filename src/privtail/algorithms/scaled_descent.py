"""The default: a private descent in private units, in a private metric."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import ndtri

from privtail.algorithms.comparison import Comparison, no_finer
from privtail.algorithms.frequencies import Frequencies, of_labels, rarity, sharpest
from privtail.algorithms.level import Level
from privtail.algorithms.metric import Metric
from privtail.algorithms.quantile_scales import BEYOND, RARE, QuantileScales, above_noise
from privtail.algorithms.result import Result
from privtail.algorithms.screening import Screening
from privtail.algorithms.standardized import Standard, without_slopes
from privtail.domains import L2, Domain, Slopes, Unconstrained, require
from privtail.errors import IncompatibleParts
from privtail.losses import (
    AnyLoss,
    GeneralLoss,
    HuberLoss,
    Loss,
    SquaredLoss,
    Targets,
    WeightedLoss,
)
from privtail.trusted.curator import Curator
from privtail.trusted.events import Plan, Round, compose
from privtail.trusted.means import MallowsMean
from privtail.trusted.mechanisms.noise import GaussianNoise
from privtail.trusted.problem import Problem
from privtail.trusted.sampling import Everyone

Doubles = NDArray[np.float64]

SIZES = 2.0 ** np.arange(-64, 65, 0.5)
"""Public edges for the sizes of derivatives."""

RAREST = 10_000
"""Sizes are counted with noise n over this, or more: few residuals may be most of their mean."""

MOST_CLIPPED = 0.65
"""However large the noise, a third of the records is not clipped."""

LARGEST_SHARE = 24.0
"""Part of the descent's variance budget for what too little would not find: scales, labels."""

LARGEST_LEVEL = 8.0
"""The same for the level, of which the looks at the target know something already."""

SHARP = 20
"""A mean of the target with noise n over this is good enough for a constant."""

MOVES = 3
"""Of a constant that is not a mean: each takes it most of the way that is left."""

NARROWEST, WIDEST = 1.5, 6.0
"""Deviations of the target that the mean for a constant looks at: at least, and at most."""

UNEVEN = 0.1
"""It looks further as long as its noise is less than this part of a deviation."""

DOUBT = 2.0
"""What noise may explain of a move counts so many times against it."""

LONGER = 2.0
"""Rows are shrunk to this many times the reach at last: so long the second moments know them."""

BLOCK = 10
"""Principal directions whose moves are judged together."""

RUNGS = 3
"""Wider thresholds that are tried, each with a tenth of the steps."""

UNCLAMPED = 4.0
"""Gains of counts are clamped late: their mean is bought at so many times the price."""

NEGLIGIBLE = 0.02
"""Noise of an intercept, in residuals, that nobody would notice in a prediction."""

CONTRACTS = 0.15
"""Part of the metric's curvature that records with clipped squares are taken to have.

It enters the stated noise alone. Other losses may be flat where the records are: 0.
"""

STEEPEST = 2.0**20
"""A curvature beyond this (a kink, an exponential) says nothing about where the records are."""


@dataclass(frozen=True, kw_only=True)
class ScaledDescent:
    """Full-batch proximal descent that needs to know nothing about the data.

    1. Centre and scale every feature (and a numeric target) by private quantiles. With
       ``sparsity``, keep the features that the target goes with (`Screening`).
    2. For numbers: the mean of the target, or what else is the best constant (`Level`); how often
       labels occur (`Frequencies`).
    3. Buy second moments of the features: the `Metric` of the steps.
    4. A fifth of the steps, with a threshold for Gaussian residuals of the target's scale.
    5. Buy the sizes of the residuals (of derivatives): a quantile of them is the threshold of the
       steps that follow. It is ``level``, or lower where noise is large beside it; higher with a
       rare label, and of counts up to where noise adds what clipping misses.
    6. For squares, unless noise is large: three tenths of the steps with wider thresholds, up to
       where noise adds as much to a direction as clipping may miss, and with rows up to twice as
       long. Blocks of principal directions of a move are kept as far as they are longer than noise
       explains: least squares where residuals depend on features, else the robust fit.
    7. For squares: the intercept is a mean of the residuals, clipped where noise would be seen.
    8. Does the mean loss gain from the slopes? If not beyond the noise, or if it loses where
       records are far off, or if the target was not found, shrink to the private constant
       (`Comparison`).

    Not from a paper. A step is a Newton step for a bound of the Hessian (Boehning and Lindsay
    1988) with the gradients of Mallows (1975): residuals clipped at the threshold, rows shrunk to
    their typical length (with budget to spare, to a longer one). Skewed noise moves their intercept
    alone, which stage 7 mends. The later two thirds of the iterates of a stage are averaged.

    Parameters
    ----------
    steps : gradient releases.
    level : which quantile of the sizes becomes the threshold, in (0, 1).
    most_noise : cap on the steps, so that noise alone walks at most this many target scales.
    targets : of the loss. A real target is centred and scaled too; of labels, counts are bought for
        the constant; counts begin where ``start`` says (`CountDescent`).
    squares : whether the loss is that of squares.
    sparsity : how many features may be used; None for all.
    scale_share, selection_share, moment_share, size_share, level_share, comparison_share : parts of
        the descent's variance budget for stages 1 (each look at the scales; the selection), 3, 5,
        2 and 7 (each), and 8; they take less where less is enough.

    **Privacy.** Gaussian releases: histograms of l2 sensitivity sqrt(2 d) (features) and sqrt 2
    (target or labels, sizes), second moments of rows of length R, sqrt 2 R^2/n; ``steps`` gradients
    of 2 threshold R'/n; means of one number. With ``sparsity`` one noisy top-k, and composition in
    zCDP; else exact Gaussian composition. Everything else is post-processing.

    **Utility.** None proved; measured in ``benchmarks/accuracy.py``.
    """

    steps: int = 100
    level: float = 0.8
    most_noise: float = 1.0
    targets: Targets = "real"
    squares: bool = False
    sparsity: int | None = None
    scale_share: float = 0.6
    selection_share: float = 1.0
    moment_share: float = 0.1
    size_share: float = 0.05
    level_share: float = 0.05
    comparison_share: float = 0.05

    needs: ClassVar[tuple[str, ...]] = ("prox", "scaled")

    def plan(self, multiplier: float, problem: Problem) -> Plan:
        """The eight stages."""
        scales, first = self._scales(multiplier, problem), self.steps // 5
        sizes = self._sizes(multiplier, problem).event(problem.derivative_norms(len(SIZES)))
        descent = GaussianNoise(multiplier).event(problem.gradient(MallowsMean(1.0, 1.0)))
        begin, end = self._levels(multiplier, problem)
        plan = compose(
            self._looks.plan(scales, problem),
            self._screened(multiplier, problem),
            begin.plan(problem) if self._numbers(problem) else (),
            self._frequencies(multiplier, problem).plan(problem) if self._labels else (),
            Metric.plan(self._price(2 * self.moment_share, multiplier), problem),
            (Round(events=(descent,), times=first), Round(events=(sizes,))),
            (Round(events=(descent,), times=self.steps - first),),
            end.plan(problem) if self._least(problem) else (),
            Comparison(targets=self.targets).plan(self._comparison(multiplier), problem),
        )
        return tuple(r for r in plan if r.times)

    def run(
        self, curator: Curator, loss: AnyLoss, domain: Domain, multiplier: float,
        start: ArrayLike | None = None,
    ) -> Result:  # fmt: skip
        """The eight stages; parameters in the units of the raw features."""
        if isinstance(loss, GeneralLoss):
            raise IncompatibleParts(
                "ScaledDescent needs a loss of a margin; for a GeneralLoss use ProximalGradient."
            )
        require(domain, *self.needs, needed_by="ScaledDescent")
        problem = curator.problem
        standard = self._standard(curator, loss, multiplier)  # 1
        loss, unit = standard.loss(loss), standard.unit
        domain = domain.scaled(1 / standard.scales)
        w = begin = standard.start(problem, start)
        first, last = self._levels(multiplier, problem)
        if self._numbers(problem):  # 2
            bend = _bend(loss, unit)
            reach = min(WIDEST, max(NARROWEST, UNEVEN / max(first.deviation(problem), 1e-300)))
            widest = min(bend * reach * standard.deviation, loss.lipschitz)
            doubt = 0.0 if standard.resolved else 1.0
            moved = first.run(curator, loss, w, widest, 1 / bend, doubt)
            w = begin = moved if standard.seen else begin
        rare = 1.0
        if self._labels:
            often = self._frequencies(multiplier, problem).run(curator)
            begin, rare = of_labels(often, loss, problem), rarity(often)
            w = begin if start is None else w

        descent = _Descent(
            curator, loss, domain, self._metric(curator, standard, multiplier),  # 3
            GaussianNoise(multiplier), unit, self.most_noise,
        )  # fmt: skip
        threshold = self._expected(loss, unit, multiplier, problem)
        if self._labels:
            threshold = min(threshold, sharpest(loss, begin[problem.d :])[0])
        short, usual, wide = self._phases(multiplier, problem)
        w = descent.run(w, threshold, short)  # 4
        counts = self._counts(curator, loss, w, multiplier)  # 5
        clipped = self._clipped(multiplier, problem, rare)
        threshold = min(threshold, self._seen(counts, loss, clipped))
        if self.targets == "count":
            threshold = min(loss.lipschitz, max(threshold, descent.balanced(counts, usual)))
        w = descent.run(w, threshold, usual)
        if self.squares:  # 6
            w = descent.widened(w, threshold, wide, counts)
        if self._least(problem):  # 7
            w = last.run(
                curator, loss, w, _widest(counts, last.deviation(problem), unit), doubt=1.0
            )

        known = self._numbers(problem) or self._labels or start is not None or not standard.seen
        constant = without_slopes(begin if known else w, problem)
        better = Comparison(targets=self.targets).run(  # 8
            curator, loss, w, constant,
            standard.deviation if wide else unit,
            self._comparison(multiplier), _size(counts) if wide else 0.0,
        )  # fmt: skip
        doubts = standard.doubts(better)
        return Result(
            standard.raw(constant if doubts else w, problem), self.steps, multiplier,
            unit=unit, scales=standard.scales,
            noise=np.zeros(problem.d) if doubts else descent.noise[: problem.d] / unit,
            notes=doubts,
        )  # fmt: skip

    # ---------------------------------------------------------------- what the stages spend

    def _price(self, share: float, multiplier: float) -> GaussianNoise:
        """Noise of one release that costs ``share`` of what the descent costs."""
        return GaussianNoise(multiplier / math.sqrt(self.steps * share))

    def _scales(self, multiplier: float, problem: Problem) -> float:
        """Noise of the looks: the usual share, or more where that would not find the target."""
        usual, least = (
            self._price(2 * share, multiplier).multiplier
            for share in (self.scale_share, LARGEST_SHARE)
        )
        return max(least, min(usual, self._looks.sharp(problem)))

    def _levels(self, multiplier: float, problem: Problem) -> tuple[Level, Level]:
        """Of the constant: the usual share, or more where that would not do; and of the end."""
        usual, least = (
            self._price(share, multiplier) for share in (self.level_share, LARGEST_LEVEL)
        )
        sharp = problem.n / problem.max_rows / SHARP
        first = max(least.multiplier, min(usual.multiplier, sharp))
        times = 1 if self.squares else MOVES
        return Level(GaussianNoise(first * math.sqrt(times)), times), Level(usual)

    def _sizes(self, multiplier: float, problem: Problem) -> GaussianNoise:
        return no_finer(self._price(2 * self.size_share, multiplier).multiplier, problem, RAREST)

    def _comparison(self, multiplier: float) -> float:
        share = self.comparison_share * (UNCLAMPED if self.targets == "count" else 1.0)
        return self._price(share, multiplier).multiplier

    def _phases(self, multiplier: float, problem: Problem) -> tuple[int, int, int]:
        """Steps of stages 4, 5 and 6; with little budget none would be of use in the last."""
        noisy = self._clipped(multiplier, problem) > 1 - self.level
        first, third = self.steps // 5, RUNGS * (self.steps // 10) * (self.squares and not noisy)
        return first, self.steps - first - third, third

    @property
    def _looks(self) -> QuantileScales:
        return QuantileScales.of(self.targets, enough=RARE)

    @property
    def _labels(self) -> bool:
        return self.targets in ("binary", "class")

    def _frequencies(self, multiplier: float, problem: Problem) -> Frequencies:
        """Half as dear as scales may be, for they are two counts or few."""
        usual, least = (
            self._price(2 * share, multiplier).multiplier
            for share in (2 * self.comparison_share, LARGEST_SHARE)
        )
        return Frequencies.priced(usual, least, problem)

    def _numbers(self, problem: Problem) -> bool:
        return self.targets == "real" and problem.intercept

    def _least(self, problem: Problem) -> bool:
        return self.squares and problem.intercept

    # ---------------------------------------------------------------- the stages

    def _screened(self, multiplier: float, problem: Problem) -> Plan:
        """What the selection releases."""
        if self.sparsity is None:
            return ()
        return Screening(sparsity=self.sparsity).plan(
            *self._screening(multiplier, problem), problem
        )

    def _screening(self, multiplier: float, problem: Problem) -> tuple[float, float, bool]:
        """Noise of the selection, that of the looks, and whether features shared a scale."""
        scales = self._scales(multiplier, problem)
        price = self._price(self.selection_share, multiplier).multiplier
        return price, scales, self._looks.pooled(scales, problem)

    def _standard(self, curator: Curator, loss: Loss, multiplier: float) -> Standard:
        """Private units; features that were not selected count for nothing."""
        found = self._looks.run(curator, self._scales(multiplier, curator.problem))
        if self.sparsity is not None:
            found = Screening(sparsity=self.sparsity).run(
                curator, loss, found, *self._screening(multiplier, curator.problem)
            )
        return Standard.of(found, curator)

    def _metric(self, curator: Curator, standard: Standard, multiplier: float) -> Metric:
        intercept = np.ones(int(curator.problem.intercept), dtype=np.bool_)
        active = np.append(standard.scales < BEYOND, intercept)
        price = self._price(2 * self.moment_share, multiplier)
        return Metric.bought(curator, price, active if active.any() else ~active)

    def _clipped(self, multiplier: float, problem: Problem, rare: float = 1.0) -> float:
        """Part of the records whose residuals are clipped: the noisier a gradient, the more.

        Were they all of the rarest label, no more of these than of the others.
        """
        coordinates = problem.rows * problem.outputs
        relative = multiplier * problem.max_rows * math.sqrt(coordinates) / problem.n
        return min(MOST_CLIPPED, max(1 - self.level, 4 * relative)) * rare

    def _expected(self, loss: Loss, unit: float, multiplier: float, problem: Problem) -> float:
        """The threshold for Gaussian residuals of the target's scale."""
        bend = loss.curvature if 0 < loss.curvature < STEEPEST else math.inf
        if loss.lipschitz < math.inf and (bend == math.inf or loss.targets in ("binary", "class")):
            return loss.lipschitz
        usual = unit * float(ndtri(1 - self._clipped(multiplier, problem) / 2))
        return min(loss.lipschitz, usual * (bend if bend < math.inf else 1.0))

    def _counts(self, curator: Curator, loss: Loss, w: Doubles, multiplier: float) -> Doubles:
        """Released counts of the sizes of derivatives, those before class weights.

        With them the classes would be sorted into clipped and not.
        """
        problem, noise = curator.problem, self._sizes(multiplier, curator.problem)
        plain = loss.loss if isinstance(loss, WeightedLoss) else loss
        counts = curator.everyone().derivative_norms(plain, w, SIZES).release(noise)
        std = noise.event(problem.derivative_norms(len(SIZES))).std
        return above_noise(counts, std, problem.n, SIZES)

    def _seen(self, counts: Doubles, loss: Loss, clipped: float) -> float:
        """The threshold that clips as many of the records with a derivative as it should."""
        if loss.lipschitz < STEEPEST <= loss.curvature:
            return loss.lipschitz  # a kink: how often either side occurs says nothing
        heaviest = max(loss.weights) if isinstance(loss, WeightedLoss) else 1.0
        moving = np.where(np.arange(len(counts)) > 0, counts, 0.0)
        if moving.sum() <= 0:
            return math.inf
        below = (1 - clipped) * moving.sum()
        cell = int(np.searchsorted(np.cumsum(moving), below))
        return heaviest * float(SIZES[min(cell, len(SIZES) - 1)])


class _Descent:
    """Proximal steps in a metric, from noisy gradients.

    Attributes
    ----------
    noise : (rows,) standard deviation of what noise adds to the last averages.
    """

    def __init__(
        self, curator: Curator, loss: Loss, domain: Domain, metric: Metric, law: GaussianNoise,
        unit: float, most_noise: float,
    ):  # fmt: skip
        self._curator, self._loss, self._domain, self._metric = curator, loss, domain, metric
        self._law, self._unit, self._most = law, unit, most_noise * unit
        self.noise = np.zeros(curator.problem.rows)

    def run(self, w: Doubles, threshold: float, steps: int, longer: float = 1.0) -> Doubles:
        """Average of the later two thirds of the iterates from ``w``; ``w`` without a step.

        Rows are shrunk to so many times the reach.
        """
        if steps == 0:
            return w
        metric, mean = self._metric, MallowsMean(threshold, longer * self._metric.reach)
        std = self._law.event(self._curator.problem.gradient(mean)).std
        length = self._length(std * math.sqrt(steps * w.shape[1]))
        total, skipped = np.zeros_like(w), steps // 3
        for t, batch in enumerate(self._curator.rounds(Everyone(), steps)):
            g = batch.gradient(self._loss, w, mean).release(self._law)
            w = metric.step(self._domain, w, g.reshape(w.shape), length)
            total += w if t >= skipped else 0.0
        self._add(length * std * metric.moves, steps, skipped, self._rate(length))
        return total / (steps - skipped)

    def widened(self, w: Doubles, threshold: float, steps: int, counts: Doubles) -> Doubles:
        """From ``w`` on with wider thresholds and longer rows, as far as they show more than noise.

        Blocks of principal directions of a move are shortened by what their length owes to noise.
        """
        if steps == 0:
            return w
        d, n, metric = self._curator.problem.d, self._curator.problem.n, self._metric
        steps //= RUNGS
        sizes, parts = _parts(counts)
        widest = max(threshold, self.balanced(counts, steps))
        for wide, longer in np.geomspace((threshold, 1.0), (widest, LONGER), RUNGS + 1)[1:]:
            move = self.run(w, wide, steps, longer) - w
            square = float(parts @ np.minimum(sizes, wide) ** 2)
            noise = self._variances(wide, longer, steps) + square / n
            seen = metric.coordinates(move, d)
            kept = metric.slopes(_shares(seen, noise, self._block(d)) * seen, d)
            w = w + np.vstack([kept, move[d:]])
        return w

    def balanced(self, counts: Doubles, steps: int) -> float:
        """The threshold at which so many steps add as much noise to a direction as it misses."""
        return balanced(counts, math.sqrt(float(self._variances(1.0, 1.0, steps).mean())))

    def _block(self, d: int) -> int:
        """Directions that are judged together: all where slopes may not move one by one."""
        domain = self._domain.domain if isinstance(self._domain, Slopes) else self._domain
        return BLOCK if isinstance(domain, Unconstrained | L2) else d + 1

    def _variances(self, threshold: float, longer: float, steps: int) -> Doubles:
        """What noise adds to an average of iterates, along the principal directions."""
        metric, mean = self._metric, MallowsMean(threshold, longer * self._metric.reach)
        std = self._law.event(self._curator.problem.gradient(mean)).std
        length = self._length(std * math.sqrt(steps))
        rates = length * _bend(self._loss, self._unit) * metric.rates
        left = np.array([_left(float(rate), steps, steps // 3) for rate in rates])
        return np.asarray((length * std * left) ** 2 / metric.values)

    def _length(self, walk: float) -> float:
        """As far as curvature and noise allow."""
        first = 1 / _bend(self._loss, self._unit)
        walk *= self._metric.spread
        return min(first, self._most / walk) if walk > 0 else first

    def _rate(self, length: float) -> float:
        """The part by which a step contracts what noise did before."""
        squares = isinstance(self._loss, SquaredLoss | HuberLoss)
        return CONTRACTS * min(1.0, length * _bend(self._loss, self._unit)) if squares else 0.0

    def _add(self, step: Doubles, steps: int, skipped: int, rate: float) -> None:
        """What noise of deviation ``step`` per step adds to the average of a linear recursion.

        ``rate`` is the part by which a step contracts; that of the start is what is left of it.
        """
        times = np.arange(steps)
        start = float(np.mean((1 - rate) ** (times[skipped:] + 1)))
        self.noise = np.hypot(start * self.noise, step * _left(rate, steps, skipped))


def _left(rate: float, steps: int, skipped: int) -> float:
    """Deviation of an average of iterates whose noise of deviation 1 contracts at this rate."""
    times = np.arange(steps)
    gaps = times[skipped:] - times[:, None]
    left = np.where(gaps >= 0, (1 - min(1.0, rate)) ** np.maximum(gaps, 0), 0.0).mean(axis=1)
    return float(np.linalg.norm(left))


def _shares(seen: Doubles, variances: Doubles, size: int) -> Doubles:
    """(rows, 1) how much of a move (rows, 1) in blocks of this size noise does not explain.

    James and Stein 1961, block by block (Cai 1999).
    """
    shares = np.zeros_like(seen)
    for first in range(0, len(seen), size):
        block = slice(first, first + size)
        square = float(np.sum(seen[block] ** 2))
        noise = DOUBT * float(np.sum(variances[block]))
        shares[block] = max(0.0, 1 - noise / square) if square > 0 else 0.0
    return shares


def _bend(loss: Loss, unit: float) -> float:
    """Curvature of a loss; of one with a kink, over moves of the target's scale."""
    bend = loss.curvature if loss.curvature < STEEPEST else loss.lipschitz / unit
    return bend if 0 < bend < math.inf else 1.0


def balanced(counts: Doubles, deviation: float) -> float:
    """Threshold of residuals of these sizes that misses as much on average as its noise adds.

    ``deviation`` is that of the noise in units of the threshold.
    """
    sizes, parts = _parts(counts)
    missed = np.array([parts @ np.maximum(sizes - edge, 0.0) for edge in SIZES])
    return float(SIZES[np.argmin((deviation * SIZES) ** 2 + missed**2)])


def _widest(counts: Doubles, deviation: float, unit: float) -> float:
    """Where to clip residuals for an intercept: `balanced`, or where noise is negligible still."""
    if deviation == 0:
        return float(SIZES[-1])
    sizes, parts = _parts(counts)
    plenty = NEGLIGIBLE * math.sqrt(parts @ sizes**2) / deviation
    return max(balanced(counts, deviation), plenty) if parts.any() else unit


def _size(counts: Doubles) -> float:
    """Root mean square of the sizes."""
    sizes, parts = _parts(counts)
    return math.sqrt(float(parts @ sizes**2))


def _parts(counts: Doubles) -> tuple[Doubles, Doubles]:
    """Sizes that stand for the cells, and the part of the records in each."""
    return np.append(SIZES, SIZES[-1]), counts / max(float(counts.sum()), 1.0)
