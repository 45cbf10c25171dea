"""Proximal steps in a metric, averaged; and what the noise of their gradients adds."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import brentq

from privtail.default.intercept import bend, kinked
from privtail.default.preconditioner import Preconditioner
from privtail.default.residuals import ResidualHistogram
from privtail.default.shrinkage import apart, probabilities, shrunk
from privtail.domains import L2, Domain, Unconstrained, of_slopes
from privtail.losses import Loss
from privtail.trusted.curator import Curator
from privtail.trusted.means import MallowsMean
from privtail.trusted.mechanisms.noise import GaussianNoise
from privtail.trusted.sampling import Everyone

Doubles = NDArray[np.float64]

MOMENTUM = 0.5
"""Part of its last move that a step goes on before the next gradient (Nesterov 1983).

Steps are short where noise hides the curvature of a direction, and where most residuals of long
rows are clipped. With momentum they lead twice as far.
"""

LONGER = 2.0
"""With a wider threshold rows are shrunk to so many reaches: second moments know them so long."""

SURE = 1 / 3
"""Part of the curvature that gradients show on which the stated noise counts.

What they show is that of the directions in which the path went: others may be flatter. Less counts
where noise may be more than the rest of what second moments show of a direction.
"""

WALKING = 0.5
"""Noise of steps with a wider threshold may walk this part of a typical residual.

Where most records are one and the same the target's scale says little of the few that decide.
"""

STAYING = 0.5
"""Features leave halfway if no more than this part of them stay."""

SHORTEST = 6
"""With fewer steps, no feature leaves halfway."""

FLATTER = 2.0
"""Gradients show a contraction that is too large by about so many parts of the steps.

Iterates that noise moved and their own mean are compared; a path that begins far off, less so.
"""


@dataclass(frozen=True)
class _Phase:
    """Steps with one threshold.

    Attributes
    ----------
    mean : how rows and residuals are clipped.
    steps, length : how many, and how long the first is.
    std : noise of a gradient.
    shrinking : whether steps become shorter, to nothing: at a kink steps of one length go to and
        fro for ever.
    skipped : iterates that do not enter the average.
    momentum : part of the last move that a step goes on; none where steps become shorter.
    """

    mean: MallowsMean
    steps: int
    length: float
    std: float
    shrinking: bool
    skipped: int
    momentum: float

    @property
    def lengths(self) -> Doubles:
        """(steps,) of all steps (shrinking: Zamani and Glineur 2023)."""
        steps = np.arange(self.steps)
        return self.length * (1 - steps / self.steps if self.shrinking else np.ones(self.steps))


class _Trail:
    """A path from ``w``: where it is, the sum of its last iterates, what its gradients show.

    Attributes
    ----------
    w, steps, total : the last iterate, how many there were, the sum of those that were not skipped.
    at : where the next gradient is asked for.
    """

    def __init__(self, w: Doubles):
        self.w, self.at, self.steps, self.total = w, w, 0, np.zeros_like(w)
        self._first, self._away, self._gradient = w, np.zeros_like(w), np.zeros_like(w)
        self._square = self._product = 0.0

    def add(self, g: Doubles, w: Doubles, metric: Preconditioner, phase: _Phase) -> None:
        """With gradient ``g`` at the last point a step leads to ``w``."""
        away = metric.times(self.at - self._first)
        self._away, self._gradient = self._away + away, self._gradient + g
        self._square += float(np.sum(away**2))
        self._product += float(np.sum(away * g))
        self.total += w if self.steps >= phase.skipped else 0.0
        self.at = w + phase.momentum * (w - self.w)
        self.w, self.steps = w, self.steps + 1

    @property
    def curvature(self) -> float:
        """How many times that of the metric the gradients show.

        The slope of a line by least squares: noise of a gradient is not in the point it is at.
        """
        square = self._square - float(np.sum(self._away**2)) / self.steps
        product = self._product - float(np.sum(self._away * self._gradient)) / self.steps
        return product / square if square > 0 else 0.0


class Descent:
    """Proximal steps in a metric, from noisy gradients of rows and residuals that are clipped.

    Parameters
    ----------
    metric : of the steps; rows are shrunk to its reach, or to the part of it that it says.
    law : the noise of every gradient.
    unit : scale of the target; noise alone walks at most ``most_noise`` of them, or, with a wider
        threshold, `WALKING` residuals.

    Attributes
    ----------
    loss : what the steps minimise.
    """

    def __init__(
        self, curator: Curator, loss: Loss, domain: Domain, metric: Preconditioner,
        law: GaussianNoise, unit: float, most_noise: float,
    ):  # fmt: skip
        self._curator, self.loss, self._domain = curator, loss, domain
        self._metric = metric
        self._law, self._unit, self._most = law, unit, most_noise * unit
        self._noise, self._guess = np.zeros((2, len(metric.values)))
        self._lost = np.zeros(curator.problem.d)

    def run(self, w: Doubles, threshold: float, steps: int) -> Doubles:
        """Average of the last iterates from ``w``; ``w`` without a step."""
        return self._run(w, self._phase(threshold, 1.0, steps)) if steps else w

    def thinned(
        self, w: Doubles, threshold: float, steps: int,
        restrict: Callable[[NDArray[np.bool_]], None],
    ) -> Doubles:  # fmt: skip
        """`run`; then slopes shrink to the part of them that is likely no noise (`probabilities`).

        Halfway, features leave whose slopes are likelier noise than not, if they are many and some
        stay: rows of the others are shorter, and so is the noise of a gradient. ``restrict`` is
        told which stay, (d,).
        """
        if not (steps and apart(self._domain)):
            return self.run(w, threshold, steps)
        phase, trail = self._phase(threshold, 1.0, steps), _Trail(w)
        if steps >= SHORTEST and not phase.shrinking:
            self._walk(trail, phase, steps // 2)
            half = replace(phase, steps=trail.steps)
            likely = self._likely(half, trail)
            active = self._metric.active[: len(likely)]
            kept = active & (likely.max(axis=1) > 0.5)
            if 0 < kept.sum() <= STAYING * active.sum():
                w = self._shrunk(self._end(half, trail), likely * kept[:, None])
                restrict(kept)
                self._restrict(kept)
                phase, trail = self._phase(threshold, 1.0, steps - half.steps), _Trail(w)
        self._walk(trail, phase, phase.steps - trail.steps)
        likely = self._likely(phase, trail)
        return self._shrunk(self._end(phase, trail), likely)

    @property
    def noise(self) -> Doubles:
        """(d,) standard deviation of what noise adds to the slopes of the last averages.

        What slopes lost that were taken for noise is added: it may have been none.
        """
        return self._deviations(self._noise) + self._lost

    def widened(
        self, w: Doubles, threshold: float, steps: int, sizes: ResidualHistogram
    ) -> Doubles:
        """From ``w`` on with a wider threshold and longer rows, as far as it is no noise."""
        d, n, metric = self._curator.problem.d, self._curator.problem.n, self._metric
        wider = max(threshold, self.balanced(sizes, steps))
        residuals = sizes.mean_square(wider)
        phase = self._phase(wider, LONGER, steps, WALKING * math.sqrt(residuals), momentum=0.0)
        before, bold = self._noise, self._run(w, phase)
        seen = metric.coordinates(bold - w, d)
        shares = _shares(seen, self._variances(phase) + residuals / n)
        shares = shares if self._turns else np.full_like(shares, shares.mean())
        self._noise = (1 - shares) * before + shares * self._noise
        return np.vstack([w[:d] + metric.slopes(shares[:, None] * seen, d), bold[d:]])

    def balanced(self, sizes: ResidualHistogram, steps: int) -> float:
        """The threshold at which so many steps add as much noise to a direction as it misses."""
        variances = self._variances(self._phase(1.0, 1.0, steps))
        return sizes.balanced(math.sqrt(float(variances.mean())))

    def missed(self, sizes: ResidualHistogram, threshold: float, steps: int) -> float:
        """Mean square of residuals up to the `balanced` threshold, over that up to this one.

        1 where the threshold shows none, or there are no steps.
        """
        shown = sizes.mean_square(threshold) if steps else 0.0
        return sizes.mean_square(self.balanced(sizes, steps)) / shown if shown > 0 else 1.0

    def _phase(
        self, threshold: float, longer: float, steps: int, walking: float = 0.0,
        momentum: float = MOMENTUM,
    ) -> _Phase:  # fmt: skip
        """So many steps, as long as curvature and noise allow; rows ``longer`` times the reach.

        Where typical rows are shrunk, so is the curvature. Noise may walk to ``walking`` at least.
        """
        problem, metric = self._curator.problem, self._metric
        reach = metric.short * longer * metric.reach
        mean = MallowsMean(threshold, reach)
        std = self._law.event(problem.gradient(mean)).std
        shrinking = kinked(self.loss)
        momentum = 0.0 if shrinking else momentum
        typical = math.sqrt(min(float(metric.active.sum()), float(metric.values.sum())))
        first = 1 / min(1.0, reach / typical) / bend(self.loss, self._unit)
        walk = std * float(np.linalg.norm(_lasting(momentum, steps))) * metric.spread
        length = min(first, max(self._most, walking) / walk) if walk > 0 else first
        skipped = steps - max(1, steps // 10) if shrinking else steps // 3
        return _Phase(mean, steps, length, std, shrinking, skipped, momentum)

    def _run(self, w: Doubles, phase: _Phase) -> Doubles:
        trail = _Trail(w)
        self._walk(trail, phase, phase.steps)
        return self._end(phase, trail)

    def _walk(self, trail: _Trail, phase: _Phase, steps: int) -> None:
        """So many steps more."""
        lengths = phase.lengths
        for batch in self._curator.rounds(Everyone(), steps):
            at, length = trail.at, float(lengths[trail.steps])
            g = batch.gradient(self.loss, at, phase.mean).release(self._law).reshape(at.shape)
            trail.add(g, self._metric.step(self._domain, at, g, length), self._metric, phase)

    def _end(self, phase: _Phase, trail: _Trail) -> Doubles:
        """The average of the last iterates; from now on its noise is that of the start."""
        shown = self._shown(phase, trail)
        rates = np.minimum(SURE * self._metric.rates, self._metric.sure_rates)
        sure = 0.0 if phase.shrinking else shown
        self._noise = self._after(phase, self._noise, sure * rates)
        self._guess = self._after(phase, self._guess, shown)
        return self._mean(phase, trail)

    @staticmethod
    def _mean(phase: _Phase, trail: _Trail) -> Doubles:
        return trail.total / (trail.steps - phase.skipped)

    def _shown(self, phase: _Phase, trail: _Trail) -> Doubles:
        """By what part a step contracts, as far as the gradients tell."""
        shown = phase.length * min(trail.curvature, bend(self.loss, self._unit))
        doubt = FLATTER * (1 - phase.momentum) / phase.steps
        return np.full_like(self._guess, max(0.0, shown - doubt))

    def _likely(self, phase: _Phase, trail: _Trail) -> Doubles:
        """(d, K) how likely the slopes of an average are more than noise."""
        each = self._after(phase, self._guess, self._shown(phase, trail))
        slopes = self._mean(phase, trail)[: self._curator.problem.d]
        return probabilities(slopes, self._deviations(each))

    def _deviations(self, each: Doubles) -> Doubles:
        """(d,) of the slopes, given those (r,) along the principal directions."""
        return self._metric.deviations(each, self._curator.problem.d)

    def _shrunk(self, w: Doubles, likely: Doubles) -> Doubles:
        """With these parts (d, K) of the slopes; what they lost may have been no noise."""
        w, lost = shrunk(w, likely, self._metric)
        self._lost = self._lost + lost
        return w

    def _restrict(self, kept: NDArray[np.bool_]) -> None:
        """To these features (d,); the noise of the others stays what it was."""
        self._lost = np.where(kept, self._lost, self.noise)
        fewer = self._metric.restricted(np.append(kept, self._metric.active[len(kept) :]))
        self._noise = self._metric.carried(self._noise, fewer)
        self._guess = self._metric.carried(self._guess, fewer)
        self._metric = fewer

    def _variances(self, phase: _Phase) -> Doubles:
        """What noise adds to an average of iterates, along the principal directions."""
        most = phase.length * bend(self.loss, self._unit) * self._metric.likely_rates
        return self._after(phase, np.zeros_like(self._noise), most) ** 2

    def _after(self, phase: _Phase, start: Doubles, contraction: Doubles) -> Doubles:
        """Deviations of an average of iterates, given those of the start: principal directions."""
        rates, each = np.unique(np.minimum(1.0, contraction), return_inverse=True)
        lasting, left = (x[each] for x in _kept(rates, phase))
        added = phase.std * left / np.sqrt(self._metric.values)
        return np.asarray(np.hypot(lasting * start, added))

    @property
    def _turns(self) -> bool:
        """Whether parts of a move may be taken along any direction, not of all slopes alike."""
        return isinstance(of_slopes(self._domain), Unconstrained | L2)


def _lasting(momentum: float, steps: int) -> Doubles:
    """(steps,) how far each of so many moves has led in the end where nothing contracts it."""
    ages = np.arange(steps, 0, -1)
    return np.asarray((1 - momentum**ages) / (1 - momentum))


def _kept(rates: Doubles, phase: _Phase) -> tuple[Doubles, Doubles]:
    """Parts of the start, and lengths of all steps, that an average keeps at these rates (r,).

    A move in a direction that a step contracts by ``rate`` lives on as h, where h(k + 1) =
    (1 - rate) ((1 + momentum) h(k) - momentum h(k - 1)).
    """
    steps, skipped, momentum = phase.steps, phase.skipped, phase.momentum

    def lived(before: float) -> Doubles:
        h = [np.full_like(rates, before), np.ones_like(rates)]
        for _ in range(steps):
            h.append((1 - rates) * ((1 + momentum) * h[-1] - momentum * h[-2]))
        return np.array(h[1:])

    lasting = lived(1.0)[1 + skipped :].mean(axis=0)
    sums = np.vstack([np.zeros_like(rates), np.cumsum(lived(0.0), axis=0)])
    ages = np.arange(steps, 0, -1)
    each = (sums[ages] - sums[np.maximum(ages - (steps - skipped), 0)]) / (steps - skipped)
    return lasting, np.linalg.norm(phase.lengths[:, None] * each, axis=0)


def _shares(seen: Doubles, variances: Doubles) -> Doubles:
    """(r,) how much of a move, (r, K) coordinates, noise of these variances does not explain.

    True moves are taken to vary alike in all of them, by as much as makes the squares that are seen
    what they should be on average (Paule and Mandel 1982).
    """
    if not np.all(variances > 0):
        return np.ones_like(variances)
    typical = float(variances.mean())
    squares, noise = np.mean(seen**2, axis=1) / typical, variances / typical

    def unexplained(moves: float) -> float:
        return float(np.mean(squares / (moves + noise))) - 1

    if unexplained(0.0) <= 0:
        return np.zeros_like(noise)
    moves = float(brentq(unexplained, 0.0, float(squares.sum())))
    return np.asarray(moves / (moves + noise))
