"""Few features under much noise: nearly all of the budget finds them, a short descent fits them."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from privtail.algorithms.comparison import Comparison
from privtail.algorithms.level import Level
from privtail.algorithms.protocol import Algorithm
from privtail.algorithms.quantile_scales import BEYOND, QuantileScales, Scales
from privtail.algorithms.result import Result
from privtail.algorithms.screening import Screening
from privtail.algorithms.standardized import Standard, without_slopes
from privtail.domains import Domain, require
from privtail.errors import IncompatibleParts
from privtail.losses import AbsoluteLoss, AnyLoss, GeneralLoss, Loss, Targets, WeightedLoss
from privtail.trusted.curator import Curator
from privtail.trusted.events import Plan, Round, compose
from privtail.trusted.means import MallowsMean
from privtail.trusted.mechanisms.noise import GaussianNoise
from privtail.trusted.problem import Problem
from privtail.trusted.sampling import Everyone

Doubles = NDArray[np.float64]

UNIT = 100
"""Shares count the cost of so many gradients, as they do in `ScaledDescent`."""

CROWDED = 0.45
"""Noise of a gradient, times the features that may be used, from which they are too many."""

SHORT = 0.5
"""Rows are shrunk to this part of their typical length: their directions decide."""

NARROW = 0.2
"""Residuals of a real target are clipped here, in its scales: little more than signs."""

BEND = 0.8
"""Density of a Gaussian within one deviation of its middle: curvature of clipped residuals."""

STEEP = 0.2
"""Curvature of the logistic loss for margins of ordinary size."""

MEDIAN = 0.8

FAIR = 0.5

TIMES = 2.4
"""The descent ends when this many times the curvature has been walked: e^-2.4 are left."""

WIDE = 3.0
"""Deviations of the target that the mean for a constant looks at."""


@dataclass(frozen=True, kw_only=True)
class SparseDescent:
    """A selection and a short descent, for budgets that carry little more.

    1. Centre and scale the features and a numeric target by private quantiles; for squares buy
       the mean of the target, for the constant model (`Level`).
    2. Select features by one noisy top-k (`Screening`): as many of ``sparsity`` as noise allows.
    3. A few steps on these, with rows and residuals clipped to little more than their directions:
       what a gradient says per unit of its sensitivity is most there. The steps stop early, as a
       ridge would, and their later two thirds are averaged.
    4. For squares: the intercept is a mean of the residuals.
    5. Buy one number: does the mean loss gain from the slopes? If not, the private constant.

    Not from a paper. Where a gradient's noise is small beside what so many features may carry,
    ``fine`` is run instead; both count noise alike.

    Parameters
    ----------
    sparsity : how many features may be used.
    fine : the algorithm for little noise, or for no more features than ``sparsity``.
    steps : gradient releases.
    targets, squares : as in `ScaledDescent`.
    scale_share, selection_share, descent_share, level_share, comparison_share : what the stages
        cost, in ``UNIT`` gradients; the scales (twice: of all, of the selected), the level (twice).

    **Privacy.** Gaussian releases of histograms, of ``steps`` mean gradients and of two or three
    single numbers, and one noisy top-k; composition in zCDP. The rest is post-processing.

    **Utility.** None proved; measured in ``benchmarks/accuracy.py``.
    """

    sparsity: int
    fine: Algorithm
    steps: int = 16
    targets: Targets = "real"
    squares: bool = False
    scale_share: float = 0.3
    selection_share: float = 1.6
    descent_share: float = 0.8
    level_share: float = 0.1
    comparison_share: float = 0.1

    needs: ClassVar[tuple[str, ...]] = ("prox", "scaled")

    def plan(self, multiplier: float, problem: Problem) -> Plan:
        """Scales, level, selection, descent, level, comparison."""
        if not self._noisy(multiplier, problem):
            return self.fine.plan(multiplier, problem)
        level = self._level(multiplier).plan(problem) if self._least(problem) else ()
        step = self._step(multiplier).event(problem.gradient(MallowsMean(1.0, 1.0)))
        return compose(
            self._looks.plan(self._scales(multiplier), problem),
            self._level(multiplier).plan(problem) if self._real(problem) else (),
            level,
            self._screening(multiplier, problem).plan(*self._selecting(multiplier, problem)),
            (Round(events=(step,), times=self.steps),),
            level,
            self._compared.plan(self._comparison(multiplier), problem),
        )

    def run(
        self, curator: Curator, loss: AnyLoss, domain: Domain, multiplier: float,
        start: ArrayLike | None = None,
    ) -> Result:  # fmt: skip
        """The five stages; parameters in the units of the raw features."""
        problem = curator.problem
        if not self._noisy(multiplier, problem):
            return self.fine.run(curator, loss, domain, multiplier, start)
        if isinstance(loss, GeneralLoss):
            raise IncompatibleParts("SparseDescent needs a loss of a margin.")
        require(domain, *self.needs, needed_by="SparseDescent")
        found = self._looks.run(curator, self._scales(multiplier))  # 1
        found = self._centred(curator, found, multiplier)
        whole = Standard.of(found, curator)
        loss = whole.loss(loss)
        begin = whole.start(problem, start)
        if self._least(problem):
            moved = self._level(multiplier).run(curator, loss, begin, WIDE * whole.deviation)
            begin = moved if whole.seen else begin

        found = self._screening(multiplier, problem).run(  # 2
            curator, loss, found, *self._selecting(multiplier, problem)[:-1]
        )
        standard = Standard.of(found, curator)
        begin[: problem.d] *= (standard.scales / whole.scales)[:, None]
        active = standard.scales < BEYOND
        w, noise = self._descent(  # 3
            curator, loss, domain.scaled(1 / standard.scales), begin, multiplier, standard.unit,
            active,
        )  # fmt: skip
        if self._least(problem):  # 4
            w = self._level(multiplier).run(curator, loss, w, WIDE * standard.unit, 1.0)
        known = self._least(problem) or not standard.seen
        constant, better = self._compared.run(  # 5
            curator, self._judged(loss), w, begin if known else without_slopes(w, problem),
            FAIR * standard.unit, self._comparison(multiplier),
        )  # fmt: skip
        doubts = standard.doubts(better)
        return Result(
            standard.raw(constant if doubts else w, problem), self.steps, multiplier,
            unit=standard.unit, scales=standard.scales,
            noise=np.where(active, 0.0 if doubts else noise / standard.unit, 0.0), notes=doubts,
        )  # fmt: skip

    def _centred(self, curator: Curator, found: Scales, multiplier: float) -> Scales:
        """With the target's centre after one step towards its median."""
        problem = curator.problem
        if not self._real(problem):
            return found
        standard = Standard.of(found, curator)
        w = standard.start(problem, None)
        moved = self._level(multiplier).run(curator, AbsoluteLoss(), w, 1.0) - w
        centres = found.centres.copy()
        centres[-1] += MEDIAN * standard.unit * moved[-1, 0]
        return replace(found, centres=centres)

    def _descent(
        self, curator: Curator, loss: Loss, domain: Domain, w: Doubles, multiplier: float,
        unit: float, active: NDArray[np.bool_],
    ) -> tuple[Doubles, float]:  # fmt: skip
        """The average of the later steps from ``w``, and what noise adds to each slope at most."""
        moving = np.append(active, np.ones(int(curator.problem.intercept), dtype=np.bool_))
        reach = SHORT * math.sqrt(moving.sum())
        real = loss.targets == "real"
        mean = MallowsMean(NARROW * unit if real else loss.lipschitz / 2, reach)
        length = TIMES / self.steps / SHORT / (NARROW * BEND if real else STEEP)
        law, skipped, total = self._step(multiplier), self.steps // 3, np.zeros_like(w)
        for t, batch in enumerate(curator.rounds(Everyone(), self.steps)):
            g = batch.gradient(loss, w, mean).release(law)
            w = domain.prox(w - length * moving[:, None] * g.reshape(w.shape), length)
            total += w if t >= skipped else 0.0
        kept = self.steps - skipped
        lasting = np.minimum(1.0, np.arange(self.steps, 0, -1) / kept)
        noise = length * law.event(curator.problem.gradient(mean)).std * np.linalg.norm(lasting)
        return _shrunk(total / kept, JS*float(noise), curator.problem.d), float(noise)

    def _judged(self, loss: Loss) -> Loss:
        """With gains of labels clamped sooner: those of a shrunk model are small."""
        if loss.targets == "real":
            return loss
        weights = loss.weights if isinstance(loss, WeightedLoss) else (1.0,) * max(2, loss.outputs)
        plain = loss.loss if isinstance(loss, WeightedLoss) else loss
        return WeightedLoss(loss=plain, weights=tuple(w / FAIR**2 for w in weights))

    # ---------------------------------------------------------------- what the stages spend

    def _noisy(self, multiplier: float, problem: Problem) -> bool:
        """Whether noise decides: a budget too small for the many stages of ``fine``."""
        noise = multiplier * problem.max_rows / problem.n
        return problem.d > self.sparsity and noise * self.sparsity > CROWDED

    def _price(self, share: float, multiplier: float) -> GaussianNoise:
        return GaussianNoise(multiplier / math.sqrt(UNIT * share))

    def _step(self, multiplier: float) -> GaussianNoise:
        return self._price(self.descent_share / self.steps, multiplier)

    def _scales(self, multiplier: float) -> float:
        return self._price(2 * self.scale_share, multiplier).multiplier

    def _level(self, multiplier: float) -> Level:
        return Level(self._price(self.level_share, multiplier))

    def _comparison(self, multiplier: float) -> float:
        return self._price(self.comparison_share, multiplier).multiplier

    def _selecting(self, multiplier: float, problem: Problem) -> tuple[float, float, bool, Problem]:
        """Noise of the selection, that of the looks, whether features shared a scale."""
        price = self._price(self.selection_share, multiplier).multiplier
        scales = self._scales(multiplier)
        return price, scales, self._looks.pooled(scales, problem), problem

    def _screening(self, multiplier: float, problem: Problem) -> Screening:
        price = self._price(self.selection_share, multiplier).multiplier
        return Screening(sparsity=findable(self.sparsity, price, problem))

    @property
    def _looks(self) -> QuantileScales:
        return replace(QuantileScales.of(self.targets), zooms=1)

    @property
    def _compared(self) -> Comparison:
        return Comparison(targets=self.targets)

    def _real(self, problem: Problem) -> bool:
        return self.targets == "real" and problem.intercept and MEDIAN > 0

    def _least(self, problem: Problem) -> bool:
        return self.squares and problem.intercept


CLEAR = 1.5
"""How far the score of a feature should stand above the largest noise of all others."""


def findable(most: int, multiplier: float, problem: Problem) -> int:
    """How many features a selection of this price can find: at most ``most``, at least one.

    k features that carry all of a target equally have quadrant correlations of up to 2 / (pi
    sqrt k); one top-k adds Gumbel noise of scale multiplier sqrt(k) / n, of which d have a maximum
    near log(d) scales.
    """
    noise = multiplier * problem.max_rows / problem.n * math.log(problem.d)
    return max(1, min(most, int(2 / math.pi / (CLEAR * noise)))) if noise > 0 else most


JS = 1.0


def _shrunk(w: Doubles, noise: float, d: int) -> Doubles:
    """Slopes less what noise of this deviation may explain (James and Stein 1961, one by one)."""
    w = w.copy()
    squares = np.maximum(w[:d] ** 2, 1e-300)
    w[:d] *= np.maximum(0.0, 1 - noise**2 / squares)
    return w
