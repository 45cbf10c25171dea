"""Standardized features: the map from raw features, and the way back."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Self

import numpy as np
from numpy.typing import NDArray

from privtail.losses import Loss, RelativeHuberLoss
from privtail.summaries.summary import BEYOND, Summary
from privtail.trusted.maps import FeatureMap
from privtail.trusted.problem import Problem

Doubles = NDArray[np.float64]


@dataclass(frozen=True)
class Target:
    """What a column summary says of a numeric target; of labels and counts nothing is said.

    Attributes
    ----------
    location, scale : its median, and its spread in standard deviations of a Gaussian; where the
        scale is not known, about a third of the width of the cell that holds it.
    deviation : root mean square around the location, of what was detected.
    tail : distance from the location to the farthest cell that was detected.
    detected : whether its histogram rose above the noise.
    scale_known : whether the quantiles of some pair, from the quartiles to 1 % and 99 %, lie at
        least two cells apart.
    only_zeros : whether nothing but zeros was detected.
    median_zero : whether the median of what was detected is zero.
    """

    location: float = 0.0
    scale: float = 1.0
    deviation: float = 1.0
    tail: float = 0.0
    detected: bool = True
    scale_known: bool = True
    only_zeros: bool = False
    median_zero: bool = False

    @classmethod
    def of(cls, summary: Summary, column: int, *, intercept: bool) -> Self:
        """From the column of the target; without an intercept it is not centred."""
        scale, deviation, tail = (
            float(size[column]) for size in (summary.scales, summary.deviations, summary.tails)
        )
        scale = scale if scale < BEYOND else 1.0
        return cls(
            location=float(summary.centres[column]) * intercept,
            scale=scale,
            deviation=deviation if deviation < BEYOND else scale,
            tail=tail if tail < BEYOND else scale,
            detected=bool(summary.detected[column]),
            scale_known=bool(summary.scale_known[column]),
            only_zeros=bool(summary.only_zeros[column]),
            median_zero=bool(summary.detected[column] and summary.centres[column] == 0),
        )

    @property
    def has_scale(self) -> bool:
        """Whether slopes have a unit: it was detected, its scale is known, and not only zeros."""
        return self.detected and self.scale_known and not self.only_zeros


@dataclass(frozen=True)
class Standardization:
    """z = (x - centre) / scale for every feature, and what is known of a numeric target.

    Attributes
    ----------
    scales, centres : (d,); the scale of a feature that is not used is `BEYOND`.
    target : location and scale of the target.
    """

    scales: Doubles
    centres: Doubles
    target: Target

    @classmethod
    def of(cls, summary: Summary, problem: Problem, *, sparse: bool) -> Self:
        """From a summary of the features, and of the target if it has d + 1 columns.

        A feature of which only zeros, or beside an intercept only one value, was detected is not
        used. Sparse features, and those beside no intercept, are scaled and not centred.
        """
        d = problem.d
        unused = summary.only_zeros | (summary.single & problem.intercept)
        scales = np.where(unused, BEYOND, summary.scales)[:d]
        centres = np.where(summary.detected, summary.centres, 0.0)[:d]
        if sparse or not problem.intercept:
            centres = np.zeros(d)
        numeric = len(summary.scales) > d
        target = Target.of(summary, d, intercept=problem.intercept) if numeric else Target()
        return cls(scales, centres, target)

    @property
    def used(self) -> NDArray[np.bool_]:
        """(d,) which features may have a slope."""
        return self.scales < BEYOND

    @property
    def map(self) -> FeatureMap:
        """The map of the features."""
        return FeatureMap.of(len(self.scales), 1 / self.scales, -self.centres / self.scales)

    def only(self, used: NDArray[np.bool_]) -> Self:
        """The same, with no other features than these (d,)."""
        centres = np.where(used, self.centres, 0.0)
        return replace(self, scales=np.where(used, self.scales, BEYOND), centres=centres)

    def loss(self, loss: Loss) -> Loss:
        """A loss that counts in scales of the target, in its units; others as they are."""
        return loss.at(self.target.scale) if isinstance(loss, RelativeHuberLoss) else loss

    def raw(self, w: Doubles, problem: Problem) -> Doubles:
        """Parameters (rows, K) of the raw features; the slope of one that is not used is zero."""
        w, d = w.copy(), problem.d
        w[:d] = np.where(self.used[:, None], w[:d] / self.scales[:, None], 0.0)
        if problem.intercept:
            w[d] -= self.centres @ w[:d]
        return w


def tail_adjusted(summary: Summary, heavier: float) -> Summary:
    """Larger scales for features whose tails are heavier than those of the target and of others.

    The length of a tail is the root mean square of what was detected over the scale. What the bulk
    of the records says of a slope need not hold for the few records in a tail, which decide least
    squares, unless the target has that tail, or three quarters of the features do. Beyond
    ``heavier`` times what is usual a scale grows with the square of the length: x^2 has its mass
    at values of the size E x^2 / E|x|.
    """
    known = summary.detected & (summary.scales < BEYOND)
    length = np.divide(
        summary.deviations, summary.scales, out=np.zeros_like(summary.scales), where=known
    )
    features = known[:-1]
    if not features.any():
        return summary
    most = float(np.quantile(length[:-1][features], 0.25, method="lower"))
    usual = heavier * max(most, float(length[-1]))
    times = np.append(np.maximum(1.0, length[:-1] / usual) ** 2, 1.0)
    return replace(summary, scales=summary.scales * times)


def without_slopes(w: Doubles, problem: Problem) -> Doubles:
    """The intercept-only model with the intercept of ``w``."""
    constant = w.copy()
    constant[: problem.d] = 0.0
    return constant
