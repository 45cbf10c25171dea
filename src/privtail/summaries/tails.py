"""The tail of a column, as its released counts show it: a generalized Pareto law."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

Doubles = NDArray[np.float64]

SHAPES = np.concatenate([[-2.0, -1.0, -0.5, 1e-6], np.arange(1, 41) / 20])[:, None]
"""The shapes that are tried: 0 is an exponential law, 1/a a Pareto law of tail index a.

A law of shape 1 or more has no mean; of a negative shape it ends.
"""

SCALES = 2.0 ** (np.arange(-16, 7) / 2)
"""The scales that are tried, over the distance beyond which an excess is asked for."""

THRESHOLDS = np.append(0.0, 2.0 ** np.arange(-8, 0))
"""Lower bounds of the thresholds that are tried, over the same distance."""

FIRST = 5
"""The threshold that is tried first, 1/16.

Nearer to the centre it is the middle of the law that decides: from 0 on, intervals of Student's t
with 1.5 degrees of freedom hold .85 of the means.
"""


def mean_excess(
    near: Doubles, far: Doubles, counts: Doubles, stds: Doubles, end: float, most: float,
    level: float,
) -> float:  # fmt: skip
    """By how much values beyond ``end`` exceed it on average, at most.

    Generalized Pareto laws are fitted by weighted least squares to the counts from a threshold on;
    excesses of nearly all laws over a far threshold follow such a law (Pickands 1975). The answer
    is the largest mean excess among the laws whose chi-square is at most ``level``^2 above the
    least, a confidence bound by the likelihood ratio (Wilks 1938), and at most what is assumed.

    The threshold lies nearer where noise hides all rows beyond it, and then farther until the
    counts fit: until chi-square exceeds its mean by at most ``level`` deviations.

    Parameters
    ----------
    near, far : (cells,) distances of the ends of cells from the centre.
    counts, stds : (cells,) rows, and the standard deviation of noise and sampling of each.
    end : a distance from the centre.
    most : what is assumed. It is the answer where no threshold will do.
    level : in standard deviations.
    """
    at, seen = FIRST, False
    while 0 <= at < len(THRESHOLDS):
        threshold = near[near >= end * THRESHOLDS[at]].min(initial=end)
        kept = near >= threshold
        free = np.count_nonzero(kept) - 3  # shape, scale and number of rows are fitted
        fits, none = _fits(near[kept], far[kept], counts[kept], stds[kept], threshold, end)
        best = float(fits.max())
        if free < 1 or best <= level**2:
            if seen:
                break
            at -= 1
            continue
        if none - best <= free + level * math.sqrt(2 * free):
            over = np.maximum(end * SCALES + SHAPES * (end - threshold), 0.0)
            excesses = np.where(SHAPES < 1, over / np.maximum(1 - SHAPES, 0.05), most)
            return float(np.minimum(excesses[fits >= best - level**2], most).max())
        at, seen = at + 1, True
    return most


def _fits(
    near: Doubles, far: Doubles, counts: Doubles, stds: Doubles, threshold: float, end: float
) -> tuple[Doubles, float]:
    """(shapes, scales) by how much each law lowers chi-square, and the chi-square of no rows."""
    weights = stds**-2.0
    shape, scale = SHAPES[..., None], end * SCALES[:, None]
    parts = _beyond(near - threshold, shape, scale) - _beyond(far - threshold, shape, scale)
    fits = np.maximum(parts @ (counts * weights), 0.0) ** 2
    fits /= np.maximum(parts**2 @ weights, np.finfo(np.float64).tiny)
    return fits, float(counts**2 @ weights)


def _beyond(distance: Doubles, shape: Doubles, scale: Doubles) -> Doubles:
    """The part of a generalized Pareto law beyond distances."""
    inside = np.maximum(1 + shape * distance / scale, np.finfo(np.float64).tiny)
    return np.asarray(np.exp(-np.log(inside) / shape))
