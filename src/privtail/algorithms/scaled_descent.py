"""The default: a private descent in private units, in a private metric."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import partial
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import ndtri

from privtail.algorithms.averaged_descent import AveragedDescent
from privtail.algorithms.comparison import ENOUGH, Comparison, lead, no_finer
from privtail.algorithms.confidence import Confidence
from privtail.algorithms.constant import MOVES, Constant, settled
from privtail.algorithms.frequencies import Frequencies, of_labels, rarity, sharpest
from privtail.algorithms.harm import FAR, Harm
from privtail.algorithms.level import STEEPEST, Level, kinked
from privtail.algorithms.metric import SHORT, Metric
from privtail.algorithms.quantile_scales import RARE, QuantileScales
from privtail.algorithms.result import Result
from privtail.algorithms.scales import BEYOND, Scales
from privtail.algorithms.screening import Reach, Screening, of_chosen
from privtail.algorithms.sizes import Sizes
from privtail.algorithms.standardized import (
    Standard,
    tail_adjusted,
    unbelieved,
    unproven,
    without_slopes,
)
from privtail.domains import Domain, require
from privtail.losses import (
    LABELS,
    AnyLoss,
    HuberLoss,
    Loss,
    RelativeHuberLoss,
    Targets,
    WeightedLoss,
    require_margin,
)
from privtail.trusted.curator import Curator
from privtail.trusted.events import Plan, Round, compose
from privtail.trusted.means import MallowsMean
from privtail.trusted.mechanisms.noise import GaussianNoise
from privtail.trusted.problem import Problem

Doubles = NDArray[np.float64]

RAREST = 10_000
"""Sizes are counted with noise n over this, or more: few residuals may be most of their mean."""

MISSED = 8.0
"""Where a wide threshold shows so many times the squares of a usual one, noise may be larger."""

MOST_CLIPPED = 0.65
"""However large the noise, a third of the records is not clipped."""

LARGEST_SHARE = 24.0
"""Part of the descent's variance budget for what too little would not find: scales, labels."""

CLEAR = 0.75
"""So much of the usual share of the scales is enough where it finds every feature."""

LARGEST_LEVEL = 8.0
"""The same for the level, of which the looks at the target know something already."""

LARGEST_HARM = 0.05
"""The same for the look for harm, which is done to few of the records."""

SHARP = 20
"""A mean of the target with noise n over this is good enough for a constant."""

MANY_ENOUGH = 10
"""With fewer features than these a comparison with a constant of numbers is dearer.

Slopes are found with so much noise that the usual one does not see their gain.
"""

UNCLAMPED = 4.0
"""Gains of counts are clamped late: their mean is bought at so many times the price."""


@dataclass(frozen=True, kw_only=True)
class ScaledDescent:
    """Full-batch proximal descent that needs to know nothing about the data.

    1. Centre and scale every feature (and a numeric target) by private quantiles; beside a numeric
       target, features of heavier tails by more (`tail_adjusted`). Buy how often labels occur
       (`Frequencies`). With ``sparsity``, keep the features that the target goes with
       (`Screening`, and `Reach` where they share one scale).
    2. For numbers: the mean of the target, or what else is the best constant (`Level`).
    3. Buy second moments of the features: the `Metric` of the steps. Indicators of which too few
       ones show are not used.
    4. A fifth of the steps, with a threshold for Gaussian residuals of the target's scale.
    5. Buy the sizes of the residuals (of derivatives): a quantile of them is the threshold of the
       steps that follow. It is ``level``, or lower where noise is large beside it; higher with a
       rare label, and of counts up to where noise adds what clipping misses. Halfway features
       leave whose slopes are likely noise, if most are; at the end slopes are shrunk by how likely
       they are noise (empirical Bayes; not where a domain ties them to each other).
    6. For squares, unless noise is large: three tenths of the steps with a threshold where noise
       adds as much to a direction as clipping may miss, and with rows twice as long. The move is
       kept, along each principal direction, as far as noise does not explain it: least squares
       where residuals depend on features, else the robust fit. Noise may be twice as large where
       the threshold of stage 5 shows little of the residuals, as of targets that are mostly zero.
    7. For squares: the intercept is that of stage 2, with what second moments say of the
       means of the features, and a mean of the residuals of the rows that count, clipped where
       noise would be seen; where noise is large, as far as it is none.
    8. Does the mean loss gain from the slopes? If that is not likely, or if it loses where
       records are far off (`Comparison`), or if some numbers are missed by far (`Harm`), or if the
       target was not found, shrink to the private constant; of a target whose scale was not found,
       to that on which the steps closed in. Of labels, margins become as long as the model is
       right (`Confidence`).

    Where the largest share of stage 1 would not find a numeric target, there is a `Constant` and no
    more.

    Not from a paper. A step is a Newton step for a bound of the Hessian (Boehning and Lindsay
    1988) with the gradients of Mallows (1975): residuals clipped at the threshold, rows shrunk to
    their typical length, of labels to half of it (with budget to spare, to a longer one). Skewed
    noise moves their intercept alone, which stage 7 mends. The later two thirds of the iterates of
    a stage are averaged; of a loss with a kink the last tenth, after steps that shrink to nothing.

    Parameters
    ----------
    steps : gradient releases.
    level : which quantile of the sizes becomes the threshold, in (0, 1).
    most_noise : cap on the steps, so that noise alone walks at most this many target scales (in
        stage 6 half a residual, if that is more); of labels, as many margins, or times the margin
        by which the most frequent one leads.
    targets : of the loss. A real target is centred and scaled too; of labels, counts are bought for
        the constant; counts begin where ``start`` says (`CountDescent`).
    squares : whether the loss is that of squares.
    sparsity : how many features may be used; None for all.
    scale_share, selection_share, reach_share, moment_share, size_share, level_share,
    comparison_share, confidence_share, harm_share : parts of the descent's variance budget for
        stages 1 (each look at the scales; the selection; its reach), 3, 5, 2 and 7 (each), and 8
        (each gain, of numbers more, with fewer features than `MANY_ENOUGH`; margins of labels;
        harm); they take less where less is enough, harm more where not.

    **Privacy.** Gaussian releases: histograms of l2 sensitivity sqrt(2 d) (features) and sqrt 2
    (target or labels, sizes), second moments of rows of length R, sqrt 2 R^2/n; ``steps`` gradients
    of 2 threshold R'/n; means of one number. With ``sparsity`` one noisy top-k, composed with these
    by its bounded range; else exact Gaussian composition. Everything else is post-processing.

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
    reach_share: float = 0.02
    moment_share: float = 0.1
    size_share: float = 0.05
    level_share: float = 0.05
    comparison_share: float = 0.05
    confidence_share: float = 0.02
    harm_share: float = 0.02

    needs: ClassVar[tuple[str, ...]] = ("prox", "scaled")
    in_typical_rows: ClassVar[bool] = True

    def plan(self, multiplier: float, problem: Problem) -> Plan:
        """The eight stages."""
        if self._alone(multiplier, problem):
            return self._constant.plan(self._whole(multiplier, problem), problem)
        short, usual, wide = self._phases(multiplier, problem)
        descent = GaussianNoise(multiplier).event(problem.gradient(MallowsMean(1.0, 1.0)))
        plan = compose(
            self._looks.plan(self._scales(multiplier, problem), problem),
            self._frequencies(multiplier, problem).plan(problem) if self._labels else (),
            self._screened(multiplier, problem),
            self._level(multiplier, problem).plan(problem) if self._numbers(problem) else (),
            Metric.plan(self._price(2 * self.moment_share, multiplier), problem),
            (Round(stage="descent", events=(descent,), times=short),),
            Sizes.plan(self._sizes(multiplier, problem), problem),
            (Round(stage="descent", events=(descent,), times=usual + wide),),
            self._end(multiplier).plan(problem) if self._least(problem) else (),
            self._confidence(multiplier).plan(problem),
            self._sure.plan(self._comparison(multiplier, problem), problem),
            Harm().plan(self._harm(multiplier, problem), problem) if self.targets == "real" else (),
        )
        return tuple(r for r in plan if r.times)

    def takes(self, loss: AnyLoss, problem: Problem) -> Loss:
        """A loss of a margin."""
        return require_margin(loss, needed_by="ScaledDescent")

    def run(
        self, curator: Curator, loss: AnyLoss, domain: Domain, multiplier: float,
        start: ArrayLike | None = None,
    ) -> Result:  # fmt: skip
        """The eight stages; parameters in the units of the raw features."""
        problem = curator.problem
        loss = self.takes(loss, problem)
        require(domain, *self.needs, needed_by="ScaledDescent")
        if self._alone(multiplier, problem):
            return self._constant.run(curator, loss, self._whole(multiplier, problem), start)
        found = self._looks.run(curator, self._scales(multiplier, problem))  # 1
        constant, rare, rows = None, 1.0, None
        if self._labels:
            often, rows = self._frequencies(multiplier, problem).run(curator)
            constant, rare = of_labels(often, loss, problem), rarity(often)
        standard = self._standard(curator, loss, found, multiplier, constant)
        given, loss = loss, standard.loss(loss)
        w, begin = self._begun(curator, loss, standard, multiplier, start, constant)  # 2
        metric = self._metric(curator, standard, multiplier)  # 3
        standard, metric = standard.without_rare(metric, curator)
        descent = AveragedDescent(
            curator, loss, domain.scaled(1 / standard.scales), metric, GaussianNoise(multiplier),
            standard.unit, self.most_noise * self._turning(begin, problem),
        )  # fmt: skip
        short, *_ = self._phases(multiplier, problem)
        threshold = self._expected(loss, standard.unit, begin, multiplier, problem)
        w = descent.run(w, threshold, short)  # 4
        sizes = Sizes.bought(curator, self._sizes(multiplier, problem), loss, w)  # 5
        if isinstance(given, RelativeHuberLoss):
            edge = min(loss.lipschitz, sizes.proposed(given.threshold))
            loss = descent.loss = HuberLoss(threshold=edge)
        clipped = self._clipped(multiplier, problem, rare)
        threshold = min(threshold, loss.lipschitz, self._seen(sizes, loss, clipped))
        if self.targets == "count":
            threshold = min(
                loss.lipschitz, max(threshold, descent.balanced(sizes, self.steps - short))
            )
        missed = descent.missed(sizes, threshold, self._last)
        _, usual, wide = self._phases(multiplier, problem, missed)
        w = descent.thinned(w, threshold, usual, partial(standard.restrict, curator))
        if wide:  # 6
            w = descent.widened(w, threshold, wide, sizes)
        unclipped, noise = bool(wide), descent.noise
        if self._least(problem):  # 7
            coarse = standard.start(problem, start)[-1]
            begin = np.vstack([begin[:-1], coarse + (begin[-1] - coarse) / sizes.part])
            w = begin + metric.joint(w[: problem.d] - begin[: problem.d], len(w))
            end = self._end(multiplier)
            widest = sizes.widest(end.deviation(problem) / sizes.part, standard.unit)
            noisy = self._noisy(multiplier, problem)
            w = end.run(curator, loss, w, widest, length=1 / sizes.part, doubt=float(noisy))
        known = self._numbers(problem) or self._labels or start is not None or not standard.seen
        constant = without_slopes(begin if known else w, problem)
        unit = standard.deviation if unclipped else standard.unit
        calibrated = self._confidence(multiplier).run(curator, loss, w, constant)
        believed, cuts = calibrated.part, calibrated.ends
        noise, w = unbelieved(w, believed, noise), calibrated.w
        verdict = self._sure.run(  # 8
            curator, loss, w, constant, unit, self._comparison(multiplier, problem),
            math.sqrt(sizes.mean_square()) if unclipped else 0.0, cuts, believed,
        )  # fmt: skip
        far = max(unit, standard.deviation, standard.tail / FAR)
        harmful = self.targets == "real" and Harm().run(
            curator, w, constant, far, self._harm(multiplier, problem)
        )
        doubts = standard.doubts(verdict.keeps, harmful)
        nearer = standard.seen and not (standard.resolved or standard.blank)
        constant = without_slopes(w, problem) if nearer else constant
        stated = standard.stated(noise, selected=self.sparsity is not None)
        return Result(
            standard.raw(constant if doubts else w, problem), self.steps, multiplier,
            unit=standard.unit, scales=standard.scales, lowest=cuts[0], highest=cuts[1],
            noise=np.zeros(problem.d) if doubts else stated,
            notes=doubts or unproven(verdict, believed),
            rows=rows or (sizes.part, sizes.deviation),
            threshold=loss.threshold if isinstance(loss, HuberLoss) else None,
            ends=found.ends(),
        )  # fmt: skip

    # ---------------------------------------------------------------- what the stages spend

    def _price(self, share: float, multiplier: float) -> GaussianNoise:
        """Noise of one release that costs ``share`` of what the descent costs."""
        return GaussianNoise(multiplier / math.sqrt(self.steps * share))

    def _scales(self, multiplier: float, problem: Problem) -> float:
        """Noise of the looks: the usual share, less where that finds all, more for the target."""
        clear, usual, least = (
            self._price(2 * share, multiplier).multiplier
            for share in (CLEAR * self.scale_share, self.scale_share, LARGEST_SHARE)
        )
        enough = max(usual, min(clear, self._looks.clear(0.0, problem)))
        return max(least, min(enough, self._looks.sharp(problem)))

    def _alone(self, multiplier: float, problem: Problem) -> bool:
        """Whether the largest share that a target may take would not show it sharply."""
        least = self._price(2 * LARGEST_SHARE, multiplier).multiplier
        return self._numbers(problem) and least > self._looks.sharp(problem)

    def _whole(self, multiplier: float, problem: Problem) -> float:
        """Noise of one gradient that costs what all stages cost where labels and scales do most."""
        descent = 1 + self.moment_share + self.size_share + self.level_share
        last = 2 * self._gain_share(problem) + LARGEST_HARM
        share = LARGEST_SHARE + LARGEST_LEVEL + descent + last
        return self._price(share, multiplier).multiplier

    @property
    def _constant(self) -> Constant:
        return Constant(squares=self.squares)

    def _level(self, multiplier: float, problem: Problem) -> Level:
        """Of the constant: the usual share, or more where that would not do."""
        shares = self.level_share, LARGEST_LEVEL
        noise = self._sharp_enough(shares, SHARP, multiplier, problem)
        times = 1 if self.squares else MOVES
        return Level(GaussianNoise(noise * math.sqrt(times)), times)

    def _end(self, multiplier: float) -> Level:
        """Of the residuals."""
        return Level(self._price(self.level_share, multiplier))

    def _sizes(self, multiplier: float, problem: Problem) -> GaussianNoise:
        return no_finer(self._price(2 * self.size_share, multiplier).multiplier, problem, RAREST)

    @property
    def _sure(self) -> Comparison:
        return Comparison(targets=self.targets)

    def _comparison(self, multiplier: float, problem: Problem) -> float:
        return self._price(self._gain_share(problem), multiplier).multiplier

    def _confidence(self, multiplier: float) -> Confidence:
        price = self._price(2 * self.confidence_share, multiplier)
        return Confidence(price, Level(self._price(self.level_share, multiplier)), self.targets)

    def _harm(self, multiplier: float, problem: Problem) -> float:
        """Noise of stage 8's look for harm: the usual share, or more where that is blunt."""
        return self._sharp_enough((self.harm_share, LARGEST_HARM), ENOUGH, multiplier, problem)

    def _sharp_enough(
        self, shares: tuple[float, float], sharp: float, multiplier: float, problem: Problem
    ) -> float:
        """Noise n over ``sharp``, between what a usual and a largest of these ``shares`` buy."""
        usual, least = (self._price(share, multiplier).multiplier for share in shares)
        return max(least, min(usual, problem.n / problem.max_rows / sharp))

    def _gain_share(self, problem: Problem) -> float:
        """Of each gain that stage 8 buys."""
        if self.targets == "count":
            return self.comparison_share * UNCLAMPED
        used = min(problem.d, self.sparsity or problem.d)
        few = max(1.0, MANY_ENOUGH / used) if self.targets == "real" else 1.0
        return self.comparison_share * few

    def _phases(
        self, multiplier: float, problem: Problem, missed: float = 1.0
    ) -> tuple[int, int, int]:
        """Steps of stages 4, 5 and 6; with little budget none would be of use in the last.

        Unless the threshold of stage 5 misses most of what residuals are: then less budget will do.
        """
        noisy = self._noisy(multiplier, problem, 2.0 if missed > MISSED else 1.0)
        first, last = self.steps // 5, 0 if noisy else self._last
        return first, self.steps - first - last, last

    def _noisy(self, multiplier: float, problem: Problem, times: float = 1.0) -> bool:
        """Whether noise is so many times larger than a threshold at ``level`` is made for."""
        return self._clipped(multiplier, problem) > times * (1 - self.level)

    @property
    def _last(self) -> int:
        """Steps of stage 6, if there is one."""
        return 3 * self.steps // 10 if self.squares else 0

    @property
    def _looks(self) -> QuantileScales:
        return QuantileScales.of(self.targets, RARE, selecting=self.sparsity is not None)

    @property
    def _labels(self) -> bool:
        return self.targets in LABELS

    def _frequencies(self, multiplier: float, problem: Problem) -> Frequencies:
        """As dear as a gain, or half as dear as scales may be, for they are two counts or few."""
        usual, least = (
            self._price(2 * share, multiplier).multiplier
            for share in (self.comparison_share, LARGEST_SHARE)
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
        return compose(
            self._reach(multiplier, problem).plan(problem)
            if self._shared(multiplier, problem)
            else (),
            self._screening(multiplier, problem).plan(problem),
        )

    def _screening(self, multiplier: float, problem: Problem) -> Screening:
        sparsity, shared = self.sparsity or problem.d, self._shared(multiplier, problem)
        return Screening(
            sparsity=sparsity,
            multiplier=self._price(self.selection_share / sparsity, multiplier).multiplier,
            own=self._scales(multiplier, problem) if shared else None,
        )

    def _reach(self, multiplier: float, problem: Problem) -> Reach:
        return Reach.priced(self._price(self.reach_share, multiplier), problem)

    def _shared(self, multiplier: float, problem: Problem) -> bool:
        """Whether features are selected that share one scale."""
        some = self.sparsity is not None and self.sparsity < problem.d
        return some and self._looks.pooled(self._scales(multiplier, problem), problem)

    def _standard(
        self, curator: Curator, loss: Loss, found: Scales, multiplier: float,
        constant: Doubles | None,
    ) -> Standard:  # fmt: skip
        """Private units; features that were not selected count for nothing."""
        problem = curator.problem
        if self.sparsity is not None:
            shared = self._shared(multiplier, problem)
            reach = self._reach(multiplier, problem).run(curator, loss, found) if shared else 0.0
            found, chosen = self._screening(multiplier, problem).run(
                curator, loss, found, constant, reach=reach
            )
            found = of_chosen(found, chosen, problem.d)
        return Standard.of(tail_adjusted(found) if self.targets == "real" else found, curator)

    def _begun(
        self, curator: Curator, loss: Loss, standard: Standard, multiplier: float,
        start: ArrayLike | None, constant: Doubles | None,
    ) -> tuple[Doubles, Doubles]:  # fmt: skip
        """Where the descent starts, and the constant if it is known."""
        problem = curator.problem
        if constant is not None:
            return constant if start is None else standard.start(problem, start), constant
        if self._numbers(problem):
            w = settled(curator, loss, standard, self._level(multiplier, problem), start)
        else:
            w = standard.start(problem, start)
        return w, w

    def _turning(self, constant: Doubles, problem: Problem) -> float:
        """Margin that turns the constant's label, at least 1; 1 for numbers."""
        return max(1.0, lead(constant[problem.d :])) if self._labels else 1.0

    def _metric(self, curator: Curator, standard: Standard, multiplier: float) -> Metric:
        intercept = np.ones(int(curator.problem.intercept), dtype=np.bool_)
        active = np.append(standard.scales < BEYOND, intercept)
        price = self._price(2 * self.moment_share, multiplier)
        short = SHORT if self._labels else 1.0
        return Metric.bought(curator, price, active if active.any() else ~active, short)

    def _clipped(self, multiplier: float, problem: Problem, rare: float = 1.0) -> float:
        """Part of the records whose residuals are clipped: the noisier a gradient, the more.

        Were they all of the rarest label, no more of these than of the others.
        """
        coordinates = problem.rows * problem.outputs
        relative = multiplier * problem.max_rows * math.sqrt(coordinates) / problem.n
        return min(MOST_CLIPPED, max(1 - self.level, 4 * relative)) * rare

    def _expected(
        self, loss: Loss, unit: float, begin: Doubles, multiplier: float, problem: Problem
    ) -> float:
        """The threshold for Gaussian residuals of the target's scale; for labels at a constant."""
        most = loss.lipschitz
        if self._labels:
            most = min(most, sharpest(loss, begin[problem.d :])[0])
        bend = loss.curvature if 0 < loss.curvature < STEEPEST else math.inf
        if loss.lipschitz < math.inf and (bend == math.inf or loss.targets in LABELS):
            return most
        usual = unit * float(ndtri(1 - self._clipped(multiplier, problem) / 2))
        return min(most, usual * (bend if bend < math.inf else 1.0))

    def _seen(self, sizes: Sizes, loss: Loss, clipped: float) -> float:
        """The threshold that clips as many of the records with a derivative as it should."""
        if kinked(loss):
            return loss.lipschitz  # a kink: how often either side occurs says nothing
        heaviest = max(loss.weights) if isinstance(loss, WeightedLoss) else 1.0
        return heaviest * sizes.quantile(1 - clipped)
