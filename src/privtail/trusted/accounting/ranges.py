"""Selections by Gumbel noise beside Gaussian releases: what they cost together."""

from __future__ import annotations

import functools
import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import log_ndtr, ndtr

from privtail.trusted.accounting.curves import ULP, first_below, up

Doubles = NDArray[np.float64]

CELLS = 12
"""Least number of cells in the range of one pick; privacy losses are sorted into them."""

COARSEST = 0.1
"""Largest width of a cell."""

MOST_PICKS = 64
"""Largest number of picks; for more the bound takes too much time."""

LARGEST = 100.0
"""From this loss of all picks together on, no privacy is claimed."""


@dataclass(frozen=True)
class BoundedRange:
    """``picks`` selections whose losses span at most ``span``, beside mu-GDP releases.

    Formal guarantee
    ----------------
    Let L be the loss that was met so far, under the first of two neighbours, and F_j(x) the largest
    E (1 - e^(x - L))_+ that j picks can reach. So delta(epsilon) = F(epsilon), F being that of all
    picks. F_0(x) = (1 - e^x)_+ is convex in z = e^x. The losses of one pick lie in [t - span, t]
    for some t in [0, span] that the past may choose, and e^-L has mean 1: among such laws a convex
    function of e^-L has the largest mean under the one on the two ends, so

        F_j(x) = sup over t of p F_(j-1)(x - t) + (1 - p) F_(j-1)(x - t + span),
        p = (e^span - e^t) / (e^span - 1)

    (Dong, Durfee, Rogers 2020), convex in z again. A Gaussian release of parameter m has loss N(m^2
    / 2, m^2) whatever the past. A supremum of means is at most the mean of suprema: with all
    Gaussian releases first, the picks know most, so whatever the order, adaptive or not,
    delta(epsilon) <= E F_picks(epsilon - N(mu^2 / 2, mu^2)).

    F is held on a grid of x and taken for linear in z between: above it, for it is convex. With
    s = e^t between two points of the grid what is maximized is A + B s - C / s, exactly. On the
    grid F is the price of a law of losses, whose part at x costs the Gaussian delta(epsilon - x).
    A guard is added to delta, below which nothing is certified. All numbers are at most 1: heights
    and slopes times z, for F is convex. A pick rounds a few dozen times, and what it loses at a
    point of the grid reaches delta with a weight of which all sum to at most 1; a part of the law
    rounds a few times.
    """

    mu: float
    span: float
    picks: int

    @property
    def theorem(self) -> str:
        """With the name of what is beside the selections."""
        return "bounded range + Gaussian DP" if self.mu else "bounded range"

    @staticmethod
    def covers(span: float, picks: int) -> bool:
        """Whether this can be computed in fair time."""
        return span > 1e-9 and picks <= MOST_PICKS and picks * span <= LARGEST

    def delta(self, epsilon: float) -> float:
        """The bound, with its guard."""
        losses, parts, guard = _losses(self.span, self.picks)
        return min(1.0, max(0.0, float(parts @ _gaussian(self.mu, epsilon - losses))) + guard)

    def epsilon(self, delta: float) -> float:
        """The smallest epsilon whose delta, guard included, is small enough."""
        if delta >= 1:
            return 0.0
        if delta <= 2 * _losses(self.span, self.picks)[2]:
            return math.inf
        return first_below(self.delta, delta, self.picks * self.span, 1e-9)


def _gaussian(mu: float, epsilons: Doubles) -> Doubles:
    """delta(epsilon) of mu-GDP, also for negative epsilons; not rounded up."""
    if mu == 0:
        return np.maximum(0.0, -np.expm1(epsilons))
    a, b = epsilons / mu - mu / 2, epsilons / mu + mu / 2
    return np.asarray(ndtr(-a) - np.exp(epsilons + log_ndtr(-b)))


@functools.lru_cache(maxsize=256)
def _losses(span: float, picks: int) -> tuple[Doubles, Doubles, float]:
    """A law that dominates all picks: losses, the part of the mass at each, and the guard."""
    cells = max(CELLS, math.ceil(span / COARSEST))
    width = up(span) / cells
    x: Doubles = width * np.arange(-picks * cells, picks * cells + 1, dtype=np.float64)
    z, prices = np.exp(x), np.maximum(0.0, -np.expm1(x))
    for _ in range(picks):
        prices = _picked(prices, z, width, cells)
    slopes = np.concatenate([[-1.0], np.diff(prices) / np.diff(z), [0.0]])
    return x, z * np.diff(slopes), ULP * (16 * len(x) + 64 * picks)


def _picked(prices: Doubles, z: Doubles, width: float, cells: int) -> Doubles:
    """The prices before one more pick, at the same points."""
    odds = math.exp(cells * width)
    outer = np.exp(width * np.arange(-cells, 0))
    nodes = np.concatenate([z[0] * outer, z, z[-1] / outer[::-1]])
    values = np.concatenate([1 - z[0] * outer, prices, np.zeros(cells)])
    slopes = -np.diff(values) / np.diff(nodes)
    heights = values[:-1] + slopes * nodes[:-1]
    best, n = np.zeros_like(prices), len(z)
    for cell in range(cells):
        near = slice(cells - cell - 1, cells - cell - 1 + n)
        far = slice(2 * cells - cell - 1, 2 * cells - cell - 1 + n)
        low, high = math.exp(cell * width), math.exp((cell + 1) * width)
        rising = heights[far] - heights[near]
        falling = (slopes[near] - slopes[far]) * z * odds
        inner = np.sqrt(np.maximum(falling, 0.0) / np.maximum(-rising, 1e-30))
        for s in (low, high, np.clip(inner, low, high)):
            close = heights[near] - slopes[near] * z / s
            away = heights[far] - slopes[far] * z * odds / s
            np.maximum(best, ((odds - s) * close + (s - 1) * away) / (odds - 1), out=best)
    return best
