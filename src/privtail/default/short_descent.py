"""Much noise: a short descent, on all features or on few that most of the budget finds."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from privtail.algorithms.protocol import Algorithm
from privtail.algorithms.result import Result
from privtail.default.acceptance import AcceptanceTest
from privtail.default.calibration import Calibration
from privtail.default.intercept import Intercept, tiny_features
from privtail.default.label_counts import LabelCounts, of_labels, sharp, sharpest
from privtail.default.preconditioner import SHORT, Preconditioner
from privtail.default.scaled_descent import UNIT
from privtail.default.screening import CutRange, Screening, of_chosen
from privtail.default.shrinkage import apart, probabilities, shrunk
from privtail.default.standardization import (
    Standardization,
    reported,
    unbelieved,
    unproven,
    without_slopes,
)
from privtail.domains import Domain, require
from privtail.losses import (
    LABELS,
    AbsoluteLoss,
    AnyLoss,
    LogisticLoss,
    Loss,
    SquaredLoss,
    Targets,
    require_margin,
)
from privtail.summaries.column_summaries import ColumnSummaries
from privtail.summaries.summary import BEYOND, Summary
from privtail.trusted.curator import Curator
from privtail.trusted.events import Plan, Round, compose
from privtail.trusted.means import MallowsMean
from privtail.trusted.mechanisms.noise import GaussianNoise
from privtail.trusted.problem import Problem
from privtail.trusted.sampling import Everyone

Doubles = NDArray[np.float64]

CROWDED, CROWDED_LABELS = 0.06, 0.11
"""Length of a gradient's noise over the features that may be used, from which it is large."""

CENTRINGS = 3
"""Steps towards the median of the target: the scores of a selection need both signs alike."""

FAR = 2.0
"""A target whose centre is so many scales from zero lies in few cells."""

CLOSER = 4.0
"""So many deviations of its noise from a mean, the next one looks."""

BLUNT = 1.5
"""Counts of labels may be so many times noisier than `LabelCounts` wants them."""

CERTAIN = 1.5
"""`ColumnSummaries.enough_for_target` over this finds a target of any law, a closer look half."""

NARROW = 0.2
"""Residuals of a real target are clipped here, in its scales: little more than signs."""

BEND = 0.8
"""Density of a Gaussian within one deviation of its middle: curvature of clipped residuals."""

WALK = 0.5
"""Margins of labels that noise alone walks at most: the noisier, the shorter the path."""

FAR_WALK = 1.0
"""Where noise walks farther than this on a path of one curvature, it is large."""

LEFT = 0.8
"""Part of its curvature at the constant that a loss of labels keeps on the way."""

TIMES = 2.0
"""The descent ends when this many times the curvature has been walked: e^-2 are left."""

EARLY = 0.4
"""Part of the steps that comes before the second half of a selection of features."""

WIDE = 2.0
"""Scales of the target that the mean for a constant, and that of residuals, looks at."""

UNSURE = 2.0
"""A mean moves an intercept if it is beyond so many deviations of its noise."""

FAIR = 0.35
"""Gains are clamped where a margin is off by this part of a scale: small ones must be seen."""

CLEAR = 1.5
"""How far the score of a feature should stand above the largest noise of all others."""


@dataclass(frozen=True, kw_only=True)
class ShortDescent:
    """A selection, if asked for, and a short descent, for budgets that carry little more.

    1. Centre and scale the features and a numeric target by private quantiles; bring the target's
       centre to its median. For squares estimate its mean, for the intercept-only model
       (`Intercept`); of labels, how often they occur (`LabelCounts`), where the descent starts.
    2. With ``sparsity``, select features by a noisy top-k (`Screening`), as many of them as are
       `findable`; where they share one scale, by cuts that are chosen for them (`CutRange`). Of a
       real target half of them: the others after two fifths of the steps, by what these left of it,
       where what the first half explains no longer hides them. Without, buy second moments of all
       features: the `Preconditioner` of the steps.
    3. Steps with rows and residuals clipped to little more than their directions: there a gradient
       says most per unit of its sensitivity. The steps stop early, as a ridge would: of labels
       where noise alone has walked far. Of a real target their later two thirds are averaged.
       Without a selection slopes then shrink by how likely they are noise (`probabilities`). Of a
       target whose scale was not found no slopes are kept: the steps close in on it instead.
    4. For squares: the intercept is a mean of the residuals.
    5. Does the mean loss gain from the slopes? If not, the private constant (`AcceptanceTest`). Of
       labels, margins become as long as the model is right (`Calibration`).

    Not from a paper. Where noise is small beside what so many features may carry, or so large that
    most of the budget goes to a constant, ``fine`` is run instead; both count noise alike.

    Parameters
    ----------
    fine : the algorithm for less noise or more, and for no more features than ``sparsity``.
    sparsity : how many features may be used; None for all, which is best for two labels.
    steps : gradient releases; together they cost the same, however many they are.
    targets, squares : as in `ScaledDescent`.
    scale_share, centre_share, level_share, selection_share, reach_share, count_share,
    moment_share, descent_share, comparison_share, confidence_share : what the stages cost, in
        ``UNIT`` gradients; scales are bought twice with a selection (of all, of the selected), a
        level twice, centres `CENTRINGS` times, a comparison too; counts of labels, a reach, and
        what margins told, take less where less is enough.

    **Privacy.** Gaussian releases of histograms, of second moments, of ``steps`` mean gradients and
    of single numbers, and one noisy top-k or two, whose picks have the same noise; composition of
    their bounded range with Gaussians. The rest is post-processing.

    **Utility.** None proved; measured in ``benchmarks/accuracy.py``.
    """

    fine: Algorithm
    sparsity: int | None = None
    steps: int = 24
    targets: Targets = "real"
    squares: bool = False
    scale_share: float = 0.19
    centre_share: float = 0.04
    level_share: float = 0.08
    selection_share: float = 1.5
    reach_share: float = 0.03
    count_share: float = 2.4
    moment_share: float = 0.05
    descent_share: float = 0.6
    comparison_share: float = 0.07
    confidence_share: float = 0.02

    needs: ClassVar[tuple[str, ...]] = ("prox", "scaled")
    in_typical_rows: ClassVar[bool] = True

    def plan(self, multiplier: float, problem: Problem) -> Plan:
        """The five stages."""
        if not self._noisy(multiplier, problem):
            return self.fine.plan(multiplier, problem)
        least = self._least(problem)
        level, centre = self._level(multiplier).plan(problem), self._centre(multiplier)
        return compose(
            self._looks(multiplier, problem).plan(self._scales(multiplier), problem),
            centre.plan(problem) * CENTRINGS if self._centring(problem) else (),
            level if least else (),
            self._frequencies(multiplier, problem).plan(problem) if self._labels else (),
            self._reach(multiplier, problem).plan(problem)
            if self._cut(multiplier, problem)
            else (),
            self._descended(multiplier, problem),
            level if least else (),
            self._confidence(multiplier).plan(problem),
            self._compared.plan(self._comparison(multiplier), problem),
        )

    def takes(self, loss: AnyLoss, problem: Problem) -> Loss:
        """A loss of a margin."""
        return require_margin(loss, needed_by="ShortDescent")

    def run(
        self, curator: Curator, loss: AnyLoss, domain: Domain, multiplier: float,
        start: ArrayLike | None = None,
    ) -> Result:  # fmt: skip
        """The five stages; parameters in the units of the raw features."""
        problem = curator.problem
        loss = self.takes(loss, problem)
        if not self._noisy(multiplier, problem):
            return self.fine.run(curator, loss, domain, multiplier, start)
        require(domain, *self.needs, needed_by="ShortDescent")
        least, level = self._least(problem), self._level(multiplier)
        found = self._looks(multiplier, problem).run(curator, self._scales(multiplier))  # 1
        ranges = found.ranges()
        if self._centring(problem):
            found = self._centred(curator, found, multiplier)
        standard = Standardization.of(found, curator)
        loss, unit = standard.loss(loss), standard.unit
        constant = without_slopes(standard.start(problem, start), problem)
        if least:
            moved = level.run(curator, loss, constant, WIDE * unit, doubt=UNSURE)
            constant = moved if standard.seen else constant

        raw, rows = start, (1.0, 0.0)
        if self._labels:
            counts, rows = self._frequencies(multiplier, problem).run(curator)
            constant = of_labels(counts, loss, problem)
            raw = standard.raw(constant, problem) if start is None else start
        reach, width, chosen = 0.0, unit, np.zeros(0, dtype=np.intp)
        if self._cut(multiplier, problem):
            reach = self._reach(multiplier, problem).run(curator, loss, found)
        for picks, steps in self._turns(multiplier, problem):
            if picks:  # 2
                selection = self._selection(multiplier, picks, problem)
                found, chosen = selection.run(curator, loss, found, raw, chosen, reach)
                standard = Standardization.of(of_chosen(found, chosen, problem.d), curator)
            metric = self._metric(curator, multiplier, standard.scales < BEYOND)  # 3
            standard, metric = standard.without_rare(metric, curator)
            w = standard.start(problem, raw)
            if standard.resolved:
                w, noise = self._descent(
                    curator, loss, domain.scaled(1 / standard.scales), w, metric,
                    multiplier, unit, standard.scales < BEYOND, steps,
                )  # fmt: skip
            else:
                w, width = self._nearer(curator, w, multiplier, width, steps)
                noise = np.zeros(problem.d)
            raw = standard.raw(w, problem)
        if not standard.resolved and standard.seen:
            constant = w
        if least:  # 4
            w = level.run(curator, loss, w, WIDE * unit, doubt=UNSURE)
        if not self._labels and not least and standard.seen:
            constant = without_slopes(w, problem)
        calibrated = self._confidence(multiplier).run(curator, loss, w, constant)
        believed, cuts = calibrated.part, calibrated.ends
        noise, w = unbelieved(w, believed, noise), calibrated.w
        decision = self._compared.run(  # 5
            curator,
            loss,
            w,
            constant,
            FAIR * unit,
            self._comparison(multiplier),
            ends=cuts,
            part=believed,
        )
        doubts = standard.doubts(decision.verdict.keeps and standard.resolved)
        stated = standard.stated(noise, selected=self.sparsity is not None)
        return Result(
            standard.raw(constant if doubts else w, problem), self.steps, multiplier,
            unit=unit, scales=standard.scales, margin_range=cuts,
            noise=np.zeros(problem.d) if doubts else stated,
            notes=doubts or unproven(decision.verdict, believed), rows=rows, ranges=ranges,
            report=reported(
                "short descent", found, standard, self.targets, doubts, decision.gains,
                margins_kept=believed,
            ),
        )  # fmt: skip

    def _centred(self, curator: Curator, found: Summary, multiplier: float) -> Summary:
        """With the target's centre after Newton steps, for a Gaussian, to its median.

        A target so far from zero that one cell may hold most of it has no known scale: its centre
        is a mean clipped in that cell, then in what noise leaves of it.
        """
        standard, law = Standardization.of(found, curator), self._centre(multiplier)
        w, centres, scales = (
            standard.start(curator.problem, None),
            found.centres.copy(),
            found.scales.copy(),
        )
        closer = self._looks(multiplier, curator.problem).zooms > 0
        far = abs(standard.level) > FAR * standard.unit and not closer
        far = far or not standard.resolved
        middles, halves = found.window()
        unit = halves[-1] if far else standard.unit
        w[-1] = middles[-1] if far else w[-1]
        for _ in range(CENTRINGS):
            if far:
                w = law.run(curator, SquaredLoss(), w, unit)
                unit *= min(1.0, CLOSER * law.deviation(curator.problem))
            else:
                w = law.run(curator, AbsoluteLoss(), w, 1.0, BEND * unit)
        centres[-1], scales[-1] = w[-1, 0], unit
        known = np.append(found.scale_known[:-1], not far)
        return replace(found, centres=centres, scales=scales, scale_known=known)

    def _descent(
        self, curator: Curator, loss: Loss, domain: Domain, w: Doubles, metric: Preconditioner,
        multiplier: float, unit: float, active: NDArray[np.bool_], steps: int,
    ) -> tuple[Doubles, Doubles]:  # fmt: skip
        """Where the steps from ``w`` lead, and what noise adds to each slope at most.

        For real targets the average of their later two thirds; for labels the end of a path that
        is the shorter the farther noise alone would walk. Of all features slopes shrink that are
        likely noise; what they lost is added to their noise.
        """
        problem, law = curator.problem, self._step(multiplier)
        real = loss.targets == "real"
        threshold, bend = (NARROW * unit, NARROW * BEND) if real else sharpest(loss, w[problem.d :])
        rows = int(active.sum()) + int(problem.intercept)
        mean = MallowsMean(threshold, SHORT * math.sqrt(max(1, rows)))
        std = law.event(problem.gradient(mean)).std
        length = 1 / steps / SHORT / (bend if real else LEFT * bend)
        walk = length * std * metric.spread * math.sqrt(steps * problem.outputs)
        length *= TIMES if real or walk == 0 else min(TIMES, WALK / walk)
        skipped, total = steps // 3 if real else steps - 1, np.zeros_like(w)
        for t, batch in enumerate(curator.rounds(Everyone(), steps)):
            g = batch.gradient(loss, w, mean).release(law).reshape(w.shape)
            w = metric.step(domain, w, g, length)
            total += w if t >= skipped else 0.0
        kept = steps - skipped
        lasting = np.minimum(1.0, np.arange(steps, 0, -1) / kept)
        each = length * std * float(np.linalg.norm(lasting)) / np.sqrt(metric.values)
        w, deviations = total / kept, metric.deviations(each, problem.d)
        if self.sparsity is not None or not apart(domain):
            return w, deviations
        likely = probabilities(w[: problem.d], deviations)
        w, lost = shrunk(w, likely, metric)
        return w, deviations + lost

    def _nearer(
        self, curator: Curator, w: Doubles, multiplier: float, unit: float, steps: int
    ) -> tuple[Doubles, float]:
        """The constant model of ``w``, nearer to a target of which only the cell is known.

        And what noise leaves of ``unit``, half the width of the cell.

        No slope of it would be kept: in place of the steps, and for their price, clipped means of
        the residuals, each clipped to what noise leaves of the last.
        """
        problem, law = curator.problem, self._step(multiplier)
        w = without_slopes(w, problem)
        std = law.event(problem.gradient(MallowsMean(1.0, 1.0))).std
        with tiny_features(curator):
            for batch in curator.rounds(Everyone(), steps):
                g = batch.gradient(SquaredLoss(), w, MallowsMean(unit, 1.0)).release(law)
                w[problem.d :] -= g.reshape(w.shape)[problem.d :]
                unit *= min(1.0, CLOSER * std)
        return w, unit

    def _metric(
        self, curator: Curator, multiplier: float, active: NDArray[np.bool_]
    ) -> Preconditioner:
        """Of the active features (d,), and of the intercept."""
        intercept = np.ones(int(curator.problem.intercept), dtype=np.bool_)
        moving = np.append(active, intercept)
        if self.sparsity is not None:
            return Preconditioner.flat(moving)
        some = moving if moving.any() else ~moving
        return Preconditioner.bought(curator, self._moment(multiplier), some, SHORT)

    # ---------------------------------------------------------------- what the stages spend

    def _descended(self, multiplier: float, problem: Problem) -> Plan:
        """Selections, each with the steps that follow."""
        step = self._step(multiplier).event(problem.gradient(MallowsMean(1.0, 1.0)))
        plans, chosen = [], 0
        for picks, steps in self._turns(multiplier, problem):
            if picks:
                plans.append(self._selection(multiplier, picks, problem).plan(problem, chosen))
            else:
                plans.append(Preconditioner.plan(self._moment(multiplier), problem))
            plans.append((Round(stage="descent", events=(step,), times=steps),))
            chosen += picks
        return compose(*plans)

    def _turns(self, multiplier: float, problem: Problem) -> list[tuple[int, int]]:
        """How many features are selected, and so many steps with these and those before."""
        if self.sparsity is None:
            return [(0, self.steps)]
        picks = self._findable(multiplier, problem)
        if self.targets != "real" or problem.outputs > 1 or picks == 1 or self.steps == 1:
            return [(picks, self.steps)]
        early = max(1, round(EARLY * self.steps))
        return [(picks - picks // 2, early), (picks // 2, self.steps - early)]

    def _noisy(self, multiplier: float, problem: Problem) -> bool:
        """Whether the budget is too small for the stages of ``fine``, but not for a constant."""
        noise = multiplier * problem.max_rows / problem.n
        if self._labels and self._counting(multiplier) > BLUNT * sharp(problem):
            return False
        if self.sparsity is None:
            return self._walk(multiplier, problem) > FAR_WALK
        large = noise * math.sqrt(self.sparsity) > (CROWDED_LABELS if self._labels else CROWDED)
        return problem.d > self.sparsity and large and self._finds(0, multiplier, problem)

    def _walk(self, multiplier: float, problem: Problem) -> float:
        """How far noise alone walks on a path of one curvature, in margins of one label."""
        reach = SHORT * math.sqrt(problem.rows)
        std = self._step(multiplier).event(problem.gradient(MallowsMean(0.5, reach))).std
        walk = std * math.sqrt(problem.rows / self.steps)
        return walk / SHORT / (LEFT * LogisticLoss.curvature)

    def _finds(self, zooms: int, multiplier: float, problem: Problem) -> bool:
        """Whether the target is found for the usual share, with so many closer looks."""
        looks = replace(ColumnSummaries.of(self.targets), zooms=zooms)
        return CERTAIN * (1 + zooms) * self._scales(multiplier) < looks.enough_for_target(problem)

    def _price(self, share: float, multiplier: float) -> GaussianNoise:
        return GaussianNoise(multiplier / math.sqrt(UNIT * share))

    def _step(self, multiplier: float) -> GaussianNoise:
        return self._price(self.descent_share / self.steps, multiplier)

    def _scales(self, multiplier: float) -> float:
        return self._price(2 * self.scale_share, multiplier).multiplier

    def _moment(self, multiplier: float) -> GaussianNoise:
        return self._price(2 * self.moment_share, multiplier)

    def _centre(self, multiplier: float) -> Intercept:
        return Intercept(self._price(self.centre_share, multiplier))

    def _level(self, multiplier: float) -> Intercept:
        return Intercept(self._price(self.level_share, multiplier))

    def _comparison(self, multiplier: float) -> float:
        return self._price(self.comparison_share, multiplier).multiplier

    def _confidence(self, multiplier: float) -> Calibration:
        price = self._price(2 * self.confidence_share, multiplier)
        return Calibration(
            price, Intercept(self._price(self.level_share, multiplier)), self.targets
        )

    def _frequencies(self, multiplier: float, problem: Problem) -> LabelCounts:
        return LabelCounts.priced(self._comparison(multiplier), self._counting(multiplier), problem)

    def _counting(self, multiplier: float) -> float:
        """The least noise of counts of labels."""
        return self._price(self.count_share, multiplier).multiplier

    def _selection(self, multiplier: float, picks: int, problem: Problem) -> Screening:
        """Of so many features; all picks have the same noise."""
        price, scales = self._price(self.selection_share, multiplier), self._scales(multiplier)
        every, shared = self._findable(multiplier, problem), self._shared(multiplier, problem)
        return Screening(
            sparsity=picks, multiplier=price.multiplier * math.sqrt(every),
            own=scales * math.sqrt(every / picks) if shared else None,
        )  # fmt: skip

    def _reach(self, multiplier: float, problem: Problem) -> CutRange:
        return CutRange.priced(self._price(self.reach_share, multiplier), problem)

    def _cut(self, multiplier: float, problem: Problem) -> bool:
        """Whether features are selected that share one scale."""
        return self.sparsity is not None and self._shared(multiplier, problem)

    def _shared(self, multiplier: float, problem: Problem) -> bool:
        """Whether all features have one scale."""
        return self._looks(multiplier, problem).pooled(self._scales(multiplier), problem)

    def _findable(self, multiplier: float, problem: Problem) -> int:
        """How many features are selected in all."""
        price = self._price(self.selection_share, multiplier)
        return findable(self.sparsity or problem.d, price.multiplier, problem)

    def _looks(self, multiplier: float, problem: Problem) -> ColumnSummaries:
        """With a closer look at a target that may lie far from zero, where noise leaves room."""
        zooms = int(self._finds(1, multiplier, problem))
        looks = ColumnSummaries.of(self.targets, selecting=self.sparsity is not None)
        return replace(looks, zooms=zooms)

    @property
    def _compared(self) -> AcceptanceTest:
        return AcceptanceTest(targets=self.targets)

    @property
    def _labels(self) -> bool:
        return self.targets in LABELS

    def _centring(self, problem: Problem) -> bool:
        return self.targets == "real" and problem.intercept

    def _least(self, problem: Problem) -> bool:
        return self.squares and problem.intercept


def findable(most: int, multiplier: float, problem: Problem) -> int:
    """How many features a selection of this price can find: at most ``most``, at least one.

    k features that carry all of a target equally have quadrant correlations of up to 2 / (pi
    sqrt k); one top-k adds Gumbel noise of scale multiplier sqrt(k) / n, of which d have a maximum
    near log(d) scales.
    """
    noise = multiplier * problem.max_rows / problem.n * math.log(problem.d)
    return max(1, min(most, int(2 / math.pi / (CLEAR * noise)))) if noise > 0 else most
