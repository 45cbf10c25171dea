"""Standardized features: the map from raw features, and the way back."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Self

import numpy as np
from numpy.typing import NDArray

from privtail.losses import Loss, RelativeHuberLoss
from privtail.summaries.summary import UNUSED, Summary
from privtail.trusted.maps import FeatureMap
from privtail.trusted.problem import Problem

Doubles = NDArray[np.float64]


@dataclass(frozen=True)
class Target:
    """Location, scale and tail of a numeric target; other targets have the defaults.

    Attributes
    ----------
    location : the median.
    scale : the spread, in standard deviations of a Gaussian; if it is not known, about a third of
        the width of the cell that holds the target.
    deviation : the root mean square distance of the detected values from the location.
    tail : the distance from the location to the farthest detected cell.
    detected : whether the histogram rose above the noise.
    scale_known : whether some pair of quantiles, from the quartiles to 1 % and 99 %, is at least
        two cells apart.
    only_zeros : whether nothing but zeros was detected.
    median_zero : whether the median of the detected values is zero.
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
        """From the target's column of a summary; without an intercept the location is 0."""
        scale, deviation, tail = (
            float(size[column]) for size in (summary.scales, summary.deviations, summary.tails)
        )
        scale = scale if scale < UNUSED else 1.0
        return cls(
            location=float(summary.centres[column]) * intercept,
            scale=scale,
            deviation=deviation if deviation < UNUSED else scale,
            tail=tail if tail < UNUSED else scale,
            detected=bool(summary.detected[column]),
            scale_known=bool(summary.scale_known[column]),
            only_zeros=bool(summary.only_zeros[column]),
            median_zero=bool(summary.detected[column] and summary.centres[column] == 0),
        )

    @property
    def without_scale(self) -> bool:
        """Whether values other than zero were detected, but no scale of them."""
        return self.detected and not (self.scale_known or self.only_zeros)

    def balanced(self, noise: float) -> float:
        """The threshold t of a clipped mean of residuals at which clipping misses what noise adds.

        ``noise`` is the standard deviation of the noise for a threshold of 1. Clipping at t misses
        (|x| - t)+ <= x^2 / (4 t), which is on average at most deviation^2 / (4 t). The noise is
        ``noise`` times t. Without noise the threshold is where the tail ends.
        """
        return self.deviation / (2 * math.sqrt(noise)) if noise > 0 else self.tail


@dataclass(frozen=True)
class Standardization:
    """z = (x - centre) / scale for every feature, and the summary of a numeric target.

    Attributes
    ----------
    scales, centres : (d,); the scale of a feature that is not used is `UNUSED`.
    target : location and scale of the target.
    """

    scales: Doubles
    centres: Doubles
    target: Target

    @classmethod
    def of(cls, summary: Summary, problem: Problem, *, sparse: bool) -> Self:
        """From a summary of the features, and of the target if it has d + 1 columns.

        A feature is not used if only zeros were detected; with an intercept also if only one value
        was. Features are not centred if they are sparse, or if there is no intercept. Their scale
        is then at least the size of their median: in units of their spread they would hide others.
        """
        d = problem.d
        unused = summary.only_zeros | (summary.single & problem.intercept)
        scales = np.where(unused, UNUSED, summary.scales)[:d]
        centres = np.where(summary.detected, summary.centres, 0.0)[:d]
        if sparse or not problem.intercept:
            scales = np.where(scales < UNUSED, np.maximum(scales, np.abs(centres)), scales)
            centres = np.zeros(d)
        numeric = len(summary.scales) > d
        target = Target.of(summary, d, intercept=problem.intercept) if numeric else Target()
        return cls(scales, centres, target)

    @property
    def used(self) -> NDArray[np.bool_]:
        """(d,) whether each feature may have a slope."""
        return self.scales < UNUSED

    @property
    def map(self) -> FeatureMap:
        """The map of the features; those that are not used become zero, whatever their size."""
        factors = self.used / self.scales
        return FeatureMap.of(len(factors), factors, -self.centres * factors)

    def ranges(self, raw: Doubles, problem: Problem) -> Doubles:
        """(d, 2) the ranges ``raw`` of raw features as ranges of standardized ones.

        Features that are not used, and indicators, have no ends.
        """
        ended = self.used.copy()
        ended[list(problem.indicators)] = False
        mapped = (raw - self.centres[:, None]) / self.scales[:, None]
        return np.where(ended[:, None], mapped, [-np.inf, np.inf])

    def only(self, used: NDArray[np.bool_]) -> Self:
        """The same, with no other features than these (d,)."""
        centres = np.where(used, self.centres, 0.0)
        return replace(self, scales=np.where(used, self.scales, UNUSED), centres=centres)

    def loss(self, loss: Loss) -> Loss:
        """The loss in the units of the target: only a `RelativeHuberLoss` changes."""
        return loss.at(self.target.scale) if isinstance(loss, RelativeHuberLoss) else loss

    def raw(self, w: Doubles, problem: Problem) -> Doubles:
        """(rows, K) parameters for the raw features; slopes of features not used are zero."""
        w, d = w.copy(), problem.d
        w[:d] = np.where(self.used[:, None], w[:d] / self.scales[:, None], 0.0)
        if problem.intercept:
            w[d] -= self.centres @ w[:d]
        return w


def tail_adjusted(summary: Summary, sizes: Doubles, heavier: float, d: int) -> Summary:
    """Larger scales for those of the ``d`` features that have heavier tails than usual.

    Most records decide a slope, but the few records in a heavy tail decide the mean loss. There the
    slope may be wrong, and noise in it may move predictions to the ends of their range, unless the
    target or three quarters of the features have such a tail.

    The length of a tail is the ``sizes`` (columns,) over the scale: `Summary.deviations`, but
    `Summary.widths` for labels. Their margins are clipped. Codes such as -999 have a large
    deviation, and a scale by deviations would hide the other values; they are outside the width.

    The usual length is ``heavier`` times the larger of the lower quartile of the features' lengths
    and the length of the target, if it is a number. A scale is at least its size over the usual
    length.
    """
    known = summary.detected & (summary.scales < UNUSED) & (sizes > 0)
    length = np.divide(sizes, summary.scales, out=np.zeros_like(sizes), where=known)
    if not known[:d].any():
        return summary
    most = float(np.quantile(length[:d][known[:d]], 0.25, method="lower"))
    usual = heavier * max([most, *length[d:]])
    return replace(summary, scales=summary.scales * np.maximum(1.0, length / usual))
