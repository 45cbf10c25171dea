"""How often intervals of slopes hold, and how wide they are: numbers of many fits.

A slope without bounds, and every slope of a fit without intervals, has infinite ends here. It
counts as refused; all other numbers are of the intervals with finite ends.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from privtail.errors import InvalidInput

Doubles = NDArray[np.float64]

LEVEL, NORMAL_REACH = 0.95, 1.96


def ends_of(model: Any) -> Doubles:
    """(d, 2) ends of the intervals of `LEVEL` for slopes of the population."""
    try:
        return np.asarray(model.conf_int(LEVEL).reshape(-1, 2))
    except InvalidInput:
        return np.tile([-np.inf, np.inf], (np.size(model.coef_), 1))


def refused(ends: Doubles) -> float:
    """How many fits have no intervals; a slope without bounds is a part of a fit."""
    return round(float(_open(ends).mean()) * len(ends), 2)


def held(ends: Doubles, truth: Doubles) -> dict[str, float]:
    """Part of the intervals (fits, d, 2) that hold slopes (d,) or (fits, d).

    ``held``, with its standard error by chance ``held_error``, and ``least``, of the slope that
    does worst among those with finite ends in half of the fits (NaN if there is none). Nothing if
    no interval has finite ends.
    """
    bounded = ~_open(ends)
    if not bounded.any():
        return {}
    inside = bounded & (ends[..., 0] <= truth) & (truth <= ends[..., 1])
    part = float(inside.sum() / bounded.sum())
    missed = (inside - part * bounded).sum(axis=1)
    often = bounded.mean(axis=0) >= 0.5
    each = inside[:, often].sum(axis=0) / bounded[:, often].sum(axis=0)
    return {
        "held": round(part, 4),
        "held_error": round(float(np.sqrt(np.sum(missed**2)) / bounded.sum()), 4),
        "least": round(float(each.min()), 4) if often.any() else np.nan,
    }


def width(ends: Doubles, errors: Doubles) -> float:
    """The median of half an interval over that of the true spread, the median over slopes.

    The true spread of a slope is the root mean square of its errors (fits, d).
    """
    widths = []
    for own, error in zip(ends.swapaxes(0, 1), errors.T, strict=True):
        bounded = ~_open(own)
        if bounded.any():
            half = np.median(own[bounded, 1] - own[bounded, 0]) / 2
            widths.append(half / NORMAL_REACH / np.sqrt(np.mean(error[bounded] ** 2)))
    return round(float(np.median(widths)), 3)


def _open(ends: Doubles) -> NDArray[np.bool_]:
    return np.asarray(~np.isfinite(ends).all(axis=-1))
