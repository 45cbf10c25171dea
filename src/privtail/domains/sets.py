"""Convex sets."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from privtail.domains.arithmetic import (
    axes_of,
    fill_to,
    inside,
    l2_norm,
    multiplier_of,
    one_length,
    penalty,
    require_radius,
    require_table,
    shrink,
)
from privtail.domains.protocol import ONES, Weights
from privtail.errors import InvalidInput
from privtail.spelling import counted

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.typing import ArrayLike

    from privtail.domains.protocol import Array


@dataclass(frozen=True, kw_only=True)
class L2Ball:
    """The l2 ball: ‖w‖₂ ≤ radius.

    Parameters
    ----------
    radius : float
        Above 0, in units of the slopes.

    Raises
    ------
    InvalidInput
        If a parameter is outside its range.

    Examples
    --------
    >>> import numpy as np
    >>> from privtail.domains import L2Ball
    >>> domain = L2Ball(radius=1.0)
    >>> domain.project(np.array([3.0, 0.5])).round(3)
    array([0.986, 0.164])
    """

    radius: float
    _weights: Weights = field(default=ONES, repr=False)

    def __post_init__(self) -> None:
        require_radius(self.radius)

    def value(self, w: Array) -> float:
        with np.errstate(over="ignore"):
            return inside(l2_norm(self._weights.like(w) * w) - self.radius, self.radius)

    def prox(self, w: Array, step: float) -> Array:
        return self.project(w)

    def project(self, w: Array) -> Array:
        return self.shrink(w, np.zeros(()), np.zeros(()))

    def shrink(self, w: Array, a: Array, b: Array) -> Array:
        c = self._weights.like(w)
        v = shrink(w, a, b)
        v /= 1 + multiplier_of(c * v, c**2 / (1 + b), self.radius)
        v *= self.radius / max(l2_norm(c * v), self.radius)
        return v

    def minimize_linear(self, g: Array) -> Array:
        c = self._weights.like(g)
        direction = g / c
        norm = l2_norm(direction)
        if norm == 0:
            return np.zeros_like(direction)
        top = float(np.max(np.abs(direction)))
        direction /= top
        direction *= -self.radius / (norm / top)
        return np.asarray(direction / c)

    def net(self, points: int, d: int) -> Net:
        c = self._weights.entries(d, 1)[:, 0]

        def excess(q: Array) -> Array:
            return np.asarray((np.linalg.norm(q * c, axis=1) - self.radius) / np.max(c))

        return _lattice(points, -self.radius / c, self.radius / c, excess, self.project)

    def scatter(self, uniforms: Array) -> Array:
        from scipy.special import ndtri  # here, so that importing domains stays fast

        directions: Array = ndtri(uniforms[:, :-1])
        directions /= np.linalg.norm(directions, axis=1, keepdims=True)
        c = self._weights.entries(directions.shape[1], 1)[:, 0]
        depths = uniforms[:, -1:] ** (1 / directions.shape[1])
        return np.asarray(self.radius * depths * directions / c)

    def diameter(self, d: int, outputs: int = 1) -> float:
        return 2 * self.radius / float(np.min(self._weights.entries(d, outputs)))

    def scaled(self, scales: ArrayLike) -> L2Ball:
        return L2Ball(radius=self.radius, _weights=self._weights.times(scales))


@dataclass(frozen=True, kw_only=True)
class L1Ball:
    """The l1 ball: ‖w‖₁ ≤ radius.

    Parameters
    ----------
    radius : float
        Above 0, in units of the slopes.

    Raises
    ------
    InvalidInput
        If a parameter is outside its range.

    Examples
    --------
    >>> import numpy as np
    >>> from privtail.domains import L1Ball
    >>> domain = L1Ball(radius=1.0)
    >>> domain.project(np.array([3.0, 0.5])).round(3)
    array([1., 0.])
    """

    radius: float
    _weights: Weights = field(default=ONES, repr=False)

    def __post_init__(self) -> None:
        require_radius(self.radius)

    def value(self, w: Array) -> float:
        norm = penalty(w, self._weights.like(w), np.zeros(()))
        return inside(norm - self.radius, self.radius)

    def prox(self, w: Array, step: float) -> Array:
        return self.project(w)

    def project(self, w: Array) -> Array:
        return self.shrink(w, np.zeros(()), np.zeros(()))

    def shrink(self, w: Array, a: Array, b: Array) -> Array:
        c = np.broadcast_to(self._weights.like(w), w.shape)
        v = shrink(w, a, b)
        with np.errstate(over="ignore"):
            if np.sum(c * np.abs(v)) <= self.radius:
                return v
            return np.sign(w) * fill_to(np.maximum(np.abs(w) - a, 0.0) / c, c, b, self.radius)

    def minimize_linear(self, g: Array) -> Array:
        c = np.broadcast_to(self._weights.like(g), g.shape)
        j = np.unravel_index(np.argmax(np.abs(g) / c), g.shape)
        v = np.zeros(g.shape)
        v[j] = math.copysign(self.radius / c[j], -g[j])
        return v

    def corners(self, d: int, outputs: int = 1) -> Array:
        positive = axes_of(self.radius / self._weights.entries(d, outputs))
        return np.concatenate([positive, -positive])

    def axes(self, d: int, outputs: int = 1) -> tuple[float, bool]:
        return one_length(self.radius / self._weights.entries(d, outputs)), True

    def net(self, points: int, d: int) -> Net:
        c = self._weights.entries(d, 1)[:, 0]

        def excess(q: Array) -> Array:
            return np.asarray((np.abs(q) @ c - self.radius) / np.linalg.norm(c))

        return _lattice(points, -self.radius / c, self.radius / c, excess, self.project)

    def scatter(self, uniforms: Array) -> Array:
        u, rest = uniforms[:, :-1], -np.log(uniforms[:, -1:])
        laplace = np.sign(u - 0.5) * -np.log(2 * np.minimum(u, 1 - u))
        share = laplace / (np.sum(np.abs(laplace), axis=1, keepdims=True) + rest)
        return np.asarray(self.radius * share / self._weights.entries(u.shape[1], 1)[:, 0])

    def diameter(self, d: int, outputs: int = 1) -> float:
        return 2 * self.radius / float(np.min(self._weights.entries(d, outputs)))

    def scaled(self, scales: ArrayLike) -> L1Ball:
        return L1Ball(radius=self.radius, _weights=self._weights.times(scales))


@dataclass(frozen=True, kw_only=True)
class Box:
    """A box: low ≤ w ≤ high, entry by entry.

    Infinite ends are allowed: ``Box(low=0, high=math.inf)`` are the non-negative w; then there is
    no ``minimize_linear``.

    Parameters
    ----------
    low : float or sequence of float
        The lower end, or one per feature.
    high : float or sequence of float
        The upper end, or one per feature.

    Raises
    ------
    InvalidInput
        If a parameter is outside its range.

    Examples
    --------
    >>> import numpy as np
    >>> from privtail.domains import Box
    >>> domain = Box(low=0.0, high=1.0)
    >>> domain.project(np.array([3.0, 0.5])).round(3)
    array([1. , 0.5])
    """

    low: float | Sequence[float]
    high: float | Sequence[float]
    _weights: Weights = field(default=ONES, repr=False)

    def __post_init__(self) -> None:
        for name in ("low", "high"):
            ends = np.asarray(getattr(self, name), dtype=np.float64)
            if ends.ndim > 1:
                raise InvalidInput(f"{name} must be a number or one number per feature.")
            object.__setattr__(self, name, tuple(ends.tolist()) if ends.ndim else float(ends))
        low, high = np.asarray(self.low), np.asarray(self.high)
        if low.ndim and high.ndim and low.shape != high.shape:
            raise InvalidInput(f"low must have the {high.size} entries of high, not {low.size}.")
        if not np.all((low <= high) & (low < math.inf) & (high > -math.inf)):
            raise InvalidInput("Every low must be at most its high, and neither NaN.")

    def value(self, w: Array) -> float:
        low, high = self._ends(w)
        with np.errstate(over="ignore"):
            excess = np.maximum(low - w, w - high)
        size = np.maximum(1.0, np.where(w < low, np.abs(low), np.abs(high)))
        return inside(float(np.max(excess / size)), 1.0)

    def prox(self, w: Array, step: float) -> Array:
        return self.project(w)

    def project(self, w: Array) -> Array:
        return self.shrink(w, np.zeros(()), np.zeros(()))

    def shrink(self, w: Array, a: Array, b: Array) -> Array:
        return np.clip(shrink(w, a, b), *self._ends(w))

    def minimize_linear(self, g: Array) -> Array:
        low, high = self._finite_ends(g)
        return np.where(g > 0, low, high)

    def corners(self, d: int, outputs: int = 1) -> Array:
        low, high = self._finite_ends(np.empty((d, outputs)))
        size = d * outputs
        require_table(2.0**size * size)
        high_or_low = (np.arange(2**size)[:, None] >> np.arange(size)) & 1
        return np.where(high_or_low.reshape(-1, d, outputs), high, low)

    def net(self, points: int, d: int) -> Net:
        low, high = (
            np.broadcast_to(end, (d, 1))[:, 0] for end in self._finite_ends(np.empty((d, 1)))
        )
        return _lattice(points, low, high, lambda q: np.zeros(len(q)), self.project)

    def scatter(self, uniforms: Array) -> Array:
        d = uniforms.shape[1] - 1
        low, high = (
            np.broadcast_to(end, (d, 1))[:, 0] for end in self._finite_ends(np.empty((d, 1)))
        )
        return np.asarray(low + (high - low) * uniforms[:, :-1])

    def diameter(self, d: int, outputs: int = 1) -> float:
        low, high = self._ends(np.empty((d, outputs)))
        return l2_norm(np.broadcast_to(high - low, (d, outputs)))

    def scaled(self, scales: ArrayLike) -> Box:
        return Box(low=self.low, high=self.high, _weights=self._weights.times(scales))

    def _ends(self, w: Array) -> tuple[Array, Array]:
        c = self._weights.like(w)
        column = (-1, *[1] * (w.ndim - 1))
        ends = [np.asarray(end, dtype=np.float64) for end in (self.low, self.high)]
        for end in ends:
            if end.ndim and end.size != len(w):
                raise InvalidInput(
                    f"The box must have {counted(len(w), 'feature')}, as w has; got {end.size}."
                )
        low, high = (end.reshape(column) if end.ndim else end for end in ends)
        return low / c, high / c

    def _finite_ends(self, w: Array) -> tuple[Array, Array]:
        low, high = self._ends(w)
        if not (np.all(np.isfinite(low)) and np.all(np.isfinite(high))):
            raise InvalidInput("A box with an infinite end has no corners. Give finite ends.")
        return low, high


@dataclass(frozen=True, kw_only=True)
class Simplex:
    """The simplex: w ≥ 0 with Σ w = radius.

    Parameters
    ----------
    radius : float, default=1.0
        Above 0, in units of the slopes.

    Raises
    ------
    InvalidInput
        If a parameter is outside its range.

    Examples
    --------
    >>> import numpy as np
    >>> from privtail.domains import Simplex
    >>> domain = Simplex()
    >>> domain.project(np.array([3.0, 0.5])).round(3)
    array([1., 0.])
    """

    radius: float = 1.0
    _weights: Weights = field(default=ONES, repr=False)

    def __post_init__(self) -> None:
        require_radius(self.radius)

    def value(self, w: Array) -> float:
        with np.errstate(over="ignore", invalid="ignore"):
            mass = self._weights.like(w) * w
            excess = max(abs(float(np.sum(mass)) - self.radius), -float(np.min(mass)))
        return inside(excess, self.radius)

    def prox(self, w: Array, step: float) -> Array:
        return self.project(w)

    def project(self, w: Array) -> Array:
        return self.shrink(w, np.zeros(()), np.zeros(()))

    def shrink(self, w: Array, a: Array, b: Array) -> Array:
        c = np.broadcast_to(self._weights.like(w), w.shape)
        return fill_to((w - a) / c, c, b, self.radius)

    def minimize_linear(self, g: Array) -> Array:
        c = np.broadcast_to(self._weights.like(g), g.shape)
        j = np.unravel_index(np.argmin(g / c), g.shape)
        v = np.zeros(g.shape)
        v[j] = self.radius / c[j]
        return v

    def corners(self, d: int, outputs: int = 1) -> Array:
        return axes_of(self.radius / self._weights.entries(d, outputs))

    def axes(self, d: int, outputs: int = 1) -> tuple[float, bool]:
        return one_length(self.radius / self._weights.entries(d, outputs)), False

    def diameter(self, d: int, outputs: int = 1) -> float:
        lengths = np.sort((self.radius / self._weights.entries(d, outputs)).reshape(-1))
        return float(np.hypot(*lengths[-2:])) if lengths.size > 1 else 0.0

    def scaled(self, scales: ArrayLike) -> Simplex:
        return Simplex(radius=self.radius, _weights=self._weights.times(scales))


class Net(NamedTuple):
    """Points of a set, (count, d); every point of the set has one of them within ``spacing``."""

    points: Array
    spacing: float


def _lattice(
    most: int, low: Array, high: Array, excess: Callable[[Array], Array],
    project: Callable[[Array], Array],
) -> Net:  # fmt: skip
    """The finest lattice of at most ``most`` cells that covers the set, centres projected onto it.

    A cell may be left out if ``excess``, a lower bound on the distance of its centre from the set,
    is more than half its diagonal. The projection brings no point of the set further away.
    """
    if most < 1:
        raise InvalidInput(f"A net needs at least one point, got {most!r}.")

    def cells(sides: int) -> tuple[Array, Array, float]:
        width = (high - low) / sides
        axes = [end + size * (np.arange(sides) + 0.5) for end, size in zip(low, width, strict=True)]
        centres = np.stack([axis.reshape(-1) for axis in np.meshgrid(*axes, indexing="ij")], axis=1)
        beyond, spacing = excess(centres), l2_norm(width) / 2
        near = beyond <= spacing
        return centres[near], beyond[near], spacing

    few = math.floor(most ** (1 / len(low)) + 1e-9)
    many = 2 * few + 2  # the cube around a ball of three dimensions has up to 1.9^3 times its size
    while many - few > 1:
        middle = (few + many) // 2
        few, many = (middle, many) if len(cells(middle)[0]) <= most else (few, middle)
    points, beyond, spacing = cells(few)
    for i in np.flatnonzero(beyond > 0):
        points[i] = project(points[i])
    return Net(points, spacing)
