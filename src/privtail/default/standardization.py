"""Privately standardized features: the way in, the way back, and published algorithms on them."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from privtail.algorithms.result import starting_point
from privtail.default.acceptance import Verdict
from privtail.default.preconditioner import Preconditioner
from privtail.losses import Loss, RelativeHuberLoss, Targets
from privtail.summaries.column_summaries import HELD
from privtail.summaries.summary import BEYOND, Summary
from privtail.trusted.curator import Curator
from privtail.trusted.problem import Problem

Doubles = NDArray[np.float64]

NO_LEVEL = (
    "The target was not found: it does not rise above the noise of its histogram. The slopes are "
    "set to zero, and the intercept is where the fit began. Either too few rows count (of the "
    "others a number is missing or not finite, in any column, or they are beyond max_rows, or "
    "nobody's), or half of the target lies beyond 2^64 (1.8e19), where the histogram ends: divide "
    "a target of such a size by a public number."
)
NO_SCALE = (
    "The scale of the target was not found, so the slopes are set to zero. This happens where most "
    "values are one and the same, or smaller than 2^-64 (5.4e-20), which is not told from zero: "
    "multiply a target of such a size by a public number. It also happens where the target lies "
    "far from zero beside its spread: subtract a public typical value."
)
NO_GAIN = (
    "The improvement over an intercept-only model is not significant, so the slopes are set to "
    "zero. More rows or a larger epsilon would help."
)
UNPROVEN = (
    "The improvement over an intercept-only model is not significant. The slopes are kept because "
    "it is likely, or because labels are about equally frequent, where such a model is no better "
    "than a coin."
)
MODEST = (
    "The model was more confident than it is accurate, or noise hides how confident it may be: its "
    "margins are multiplied by {:.2g}. The labels that it predicts are the same."
)
HARMFUL = (
    "With slopes the model misses some records by far, and an intercept-only model does not, so "
    "the slopes are set to zero. Typical causes are a code for missing values (-999) and a feature "
    "with few huge values: remove the code, or take logarithms."
)

LENGTHY = 0.5
"""A message says so where calibration keeps less than this part of the margins of labels."""

HEAVIER = 1.5
"""A feature whose tails reach so many times farther than is usual counts in larger units."""


def unproven(verdict: Verdict, believed: float = 1.0) -> tuple[str, ...]:
    """Messages about a model that is kept, and about the part of its margins that is."""
    modest = (MODEST.format(believed),) * (believed < LENGTHY)
    return (UNPROVEN,) * (verdict is Verdict.UNSURE) + modest


@dataclass(frozen=True)
class Standardization:
    """A public linear change of features and of the unit of a numeric target.

    Attributes
    ----------
    scales, centres : (d,) of the features; centres are 0 where they cannot be used.
    unit : scale of the target; 1 for labels.
    level : centre of the target; 0 for labels, or without an intercept.
    seen : whether the target's histogram rose above its noise; without it any move is noise.
    resolved : whether it told the target's scale, and not only a cell that holds it.
    deviation : root mean square of the target around its centre, as far as it was seen.
    zero : whether the median of the target is zero, wherever the rest of it lies that did not show.
    blank : whether nothing but zeros showed of the target: the size of the rest is not known.
    tail : distance of the farthest target that showed from its centre.
    """

    scales: Doubles
    centres: Doubles
    unit: float
    level: float
    seen: bool = True
    resolved: bool = True
    deviation: float = 1.0
    zero: bool = False
    blank: bool = False
    tail: float = 0.0

    @classmethod
    def of(cls, found: Summary, curator: Curator) -> Self:
        """From released scales (d,), or (d + 1,) with the target's; sets the curator's map.

        A feature that shows no spread is not used: of zeros, or beside an intercept of any value.
        """
        d, intercept = curator.problem.d, curator.problem.intercept
        unused = found.only_zeros | (found.single & intercept)
        scales = np.where(unused, BEYOND, found.scales)[:d]
        centres = np.where(found.detected, found.centres, 0.0)[:d]
        if curator.sparse or not intercept:
            centres[:] = 0.0
        curator.transform(1 / scales, -centres / scales)
        if len(found.scales) == d:
            return cls(scales, centres, 1.0, 0.0)
        unit = float(found.scales[d]) if found.scales[d] < BEYOND else 1.0
        seen, resolved = bool(found.detected[d]), bool(found.scale_known[d])
        deviation, tail = (
            float(size[d]) if size[d] < BEYOND else unit for size in (found.deviations, found.tails)
        )
        return cls(
            scales, centres, unit, float(found.centres[d]) * intercept, seen, resolved, deviation,
            bool(found.mostly_zeros[d] and found.shown[d] >= HELD), bool(found.only_zeros[d]),
            tail,
        )  # fmt: skip

    def without_rare(self, metric: Preconditioner, curator: Curator) -> tuple[Self, Preconditioner]:
        """Without indicators of which too few ones show; sets the curator's map.

        A slope of these would be noise, and raise that of the others.
        """
        problem = curator.problem
        kept, rare = self.scales < BEYOND, ~metric.shown[: problem.d]
        indicators = np.isin(np.arange(problem.d), problem.indicators)
        kept &= ~(indicators & rare)
        if not (kept.any() or problem.intercept) or np.array_equal(kept, self.scales < BEYOND):
            return self, metric
        self.restrict(curator, kept)
        active = np.append(kept, metric.active[problem.d :])
        return replace(self, scales=np.where(kept, self.scales, BEYOND)), metric.restricted(active)

    def restrict(self, curator: Curator, kept: NDArray[np.bool_]) -> None:
        """From now on other features than these (d,) count for nothing."""
        scales = np.where(kept, self.scales, BEYOND)
        curator.transform(1 / scales, np.where(kept, -self.centres / scales, 0.0))

    def loss(self, loss: Loss) -> Loss:
        """A loss that counts in target scales, in the target's units; others as they are."""
        return loss.at(self.unit) if isinstance(loss, RelativeHuberLoss) else loss

    def start(self, problem: Problem, start: ArrayLike | None) -> Doubles:
        """The constant model at the target's centre, or ``start``, given for raw features."""
        w = starting_point(problem, start)
        if problem.intercept:
            w[-1] += self.level if start is None else self.centres @ w[: problem.d]
        w[: problem.d] *= self.scales[:, None]
        return w

    def doubts(self, better: bool, harmful: bool = False) -> tuple[str, ...]:
        """Why not to trust a model that was found ``better`` than a constant or not, or harmful.

        Where nothing but zeros showed, slopes have no unit: a better model is so by chance.
        """
        if not self.seen:
            return (NO_LEVEL,)
        if self.blank:
            return (NO_SCALE,)
        if better:
            return (HARMFUL,) * harmful
        return (NO_GAIN if self.resolved else NO_SCALE,)

    def stated(self, noise: Doubles, *, selected: bool) -> Doubles:
        """``noise`` (d,) of slopes, in scales of the target; inf of a feature that is not used.

        Whether it is was told by a noisy histogram: nothing bounds what its slope would be. NaN
        where some were ``selected``, after which no theory gives the noise of the others.
        """
        return np.where(self.scales < BEYOND, noise / self.unit, np.nan if selected else np.inf)

    def raw(self, w: Doubles, problem: Problem) -> Doubles:
        """Parameters of the raw features; the slope of one that is not used is zero."""
        w, scales = w.copy(), self.scales[:, None]
        w[: problem.d] = np.where(scales < BEYOND, w[: problem.d] / scales, 0.0)
        if problem.intercept:
            w[-1] -= self.centres @ w[: problem.d]
        return w


def tail_adjusted(found: Summary) -> Summary:
    """Scales of features and a target, larger where tails are heavier than what they explain.

    How far tails reach is the root mean square of what showed over the spread between quartiles.
    What the bulk of the records says of such a feature need not hold for the few that decide its
    least squares, unless the target is as heavy, or three quarters of the features are. In units
    that grow with the square of the reach these few decide: where x^2 has its mass, x is of the
    size E x^2 / E|x|.
    """
    known = found.detected & (found.scales < BEYOND)
    reach = np.divide(found.deviations, found.scales, out=np.zeros_like(found.scales), where=known)
    features = known[:-1]
    if not features.any():
        return found
    most = float(np.quantile(reach[:-1][features], 0.25, method="lower"))
    usual = HEAVIER * max(most, float(reach[-1]))
    times = np.append(np.maximum(1.0, reach[:-1] / usual) ** 2, 1.0)
    return replace(found, scales=found.scales * times)


def reported(
    regime: str, summary: Summary, standard: Standardization, targets: Targets,
    reasons: tuple[str, ...], gains: tuple[float, float] | None = None, **more: Any,
) -> dict[str, Any]:  # fmt: skip
    """What every regime reports of a fit: `privtail.algorithms.result.Result.report`."""
    d = len(standard.scales)
    found: dict[str, Any] = {
        "regime": regime,
        "feature_location": summary.centres[:d],
        "feature_scale": np.where(summary.scales[:d] < BEYOND, summary.scales[:d], np.nan),
        "feature_used": standard.scales < BEYOND,
    }
    if targets == "real":
        found["target_location"], found["target_scale"] = standard.level, standard.unit
    if gains is not None:
        found["gain_over_noise"] = gains
    return {**found, **more, "accepted": not reasons, "reasons": reasons}


def without_slopes(w: Doubles, problem: Problem) -> Doubles:
    """The constant model with the intercept of ``w``."""
    constant = w.copy()
    constant[: problem.d] = 0.0
    return constant


def unbelieved(w: Doubles, believed: float, noise: Doubles) -> Doubles:
    """(d,) noise of slopes that become so many times as long; what they lose may be no noise."""
    lost = max(0.0, 1 - believed) * np.abs(w[: len(noise)]).max(axis=1)
    return np.asarray(max(1.0, believed) * noise + lost)
