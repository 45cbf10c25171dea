"""Straight lines through noisy points."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

Doubles = NDArray[np.float64]


def slope(points: Sequence[Doubles], values: Sequence[Doubles]) -> float:
    """The least-squares slope of vectors over points, both less their means; 0 of equal points."""
    x, g = np.array(points), np.array(values)
    x, g = x - x.mean(axis=0), g - g.mean(axis=0)
    square = float(np.sum(x**2))
    return float(np.sum(x * g)) / square if square > 0 else 0.0


def root_of_line(moves: Doubles, scores: Doubles, errors: Doubles) -> float:
    """The root of the likeliest line through the scores; its slope is 1 / scale, 1/8 to 8."""
    scales, weights = 2.0 ** (np.arange(-12, 13) / 4), errors**-2
    intercepts = moves - scales[:, None] * scores
    roots = intercepts @ weights / weights.sum()
    errors = ((intercepts - roots[:, None]) / scales[:, None]) ** 2 @ weights + np.log(scales) ** 2
    return float(roots[errors.argmin()])
