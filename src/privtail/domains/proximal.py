"""Proximal points in a metric, by steps with the proximal point that a domain has."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from privtail.domains.protocol import Domain

Doubles = NDArray[np.float64]


def proximal_point(
    domain: Domain, slope: Callable[[Doubles], Doubles], start: Doubles, rate: float, *,
    away: Doubles, least: float = 0.0,
) -> Doubles:  # fmt: skip
    """Argmin over v of domain(v) + a quadratic whose gradient is ``slope``.

    At most sixty steps of FISTA (Beck and Teboulle 2009) with the restart of O'Donoghue and Candes
    2015. It stops after a step shorter than 1e-7 of the distance to ``away``, plus ``least``.
    """
    v = u = start
    momentum = 1.0
    for _ in range(60):
        new = domain.prox(u - rate * slope(u), rate)
        step = new - v
        if np.sum((u - new) * step) > 0:
            momentum = 1.0
        if np.max(np.abs(new - u)) <= 1e-7 * np.max(np.abs(new - away)) + least:
            return new
        following = (1 + math.sqrt(1 + 4 * momentum**2)) / 2
        v, u = new, new + (momentum - 1) / following * step
        momentum = following
    return v
