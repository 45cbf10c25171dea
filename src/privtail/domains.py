"""Domains: what is asked of w besides a small loss, a regularizer or a set or both.

w has shape (d,) or (d, K); norms run over all entries, groups over features. A domain has the
operations that are known exactly for it, and no others; an algorithm says what it needs with
`require`:

- ``value(w)``: the regularizer at w; 0 in a set (up to rounding), infinity outside;
- ``prox(w, step)``: argmin over v of ½ ‖v − w‖² + step · value(v);
- ``scaled(scales)``: the same domain for v where w = scales · v;
- ``project(w)``: the nearest point of a set;
- ``minimize_linear(g)``: a point of a bounded set where ⟨g, w⟩ is least;
- ``corners(d, outputs)``: the vertices of a polytope, shape (corners, d, outputs);
- ``axes(d, outputs)``: the length of vertices that all lie on the axes, and whether their
  negatives are vertices too;
- ``net(points, d)``: at most this many points of a bounded set, one row each, on a lattice that
  comes within ``spacing`` of every point of the set;
- ``scatter(uniforms)``: points spread uniformly over a bounded set, one per row of uniform numbers
  in (0, 1), shape (points, d + 1);
- ``diameter(d, outputs)``: the largest ℓ2 distance of two points of a set.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, runtime_checkable

import numpy as np

from privtail.errors import IncompatibleParts, InvalidInput

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.typing import ArrayLike, NDArray

    Array = NDArray[np.float64]

MEMBERSHIP_TOLERANCE = 1e-9
LARGEST_TABLE = 2**27  # entries of corners: 1 GB


@runtime_checkable
class Domain(Protocol):
    """What all domains have. The other operations are asked for with `require`."""

    def value(self, w: Array) -> float:
        """Return the regularizer at w, or 0 inside and infinity outside of a set."""
        ...

    def prox(self, w: Array, step: float) -> Array:
        """Return argmin over v of ½ ‖v − w‖² + step · value(v), of the shape of w."""
        ...

    def scaled(self, scales: ArrayLike) -> Domain:
        """Return the domain of v = w / scales, for a positive vector ``scales`` (d,)."""
        ...


class Weights:
    """A positive vector, one entry per feature, immutable; by default 1 for every feature."""

    def __init__(self, vector: ArrayLike = 1.0) -> None:
        self._vector = np.array(vector, dtype=np.float64)
        self._vector.flags.writeable = False

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Weights) and np.array_equal(self._vector, other._vector)

    def __hash__(self) -> int:
        return hash(self._vector.tobytes())

    def times(self, scales: ArrayLike) -> Weights:
        """Return the product, which `InvalidInput` refuses if it is not positive and finite."""
        factors = np.asarray(scales, dtype=np.float64)
        if factors.ndim != 1 or not np.all((factors > 0) & np.isfinite(factors)):
            raise InvalidInput("scales must be a vector of positive, finite numbers.")
        if self._vector.ndim and self._vector.shape != factors.shape:
            raise InvalidInput(f"scales has {factors.size} entries, not {self._vector.size}.")
        return Weights(self._vector * factors)

    def like(self, w: Array) -> Array:
        """Return the weights so that they broadcast against w, (d,) or (d, K)."""
        if not self._vector.ndim:
            return self._vector
        if w.shape[:1] != self._vector.shape:
            raise InvalidInput(
                f"w has shape {w.shape}, this domain was scaled for {self._vector.size} features."
            )
        return self._vector.reshape(-1, *[1] * (w.ndim - 1))

    def entries(self, d: int, outputs: int) -> Array:
        """Return one weight per entry of w, shape (d, outputs)."""
        shape = np.empty((d, outputs))
        return np.broadcast_to(self.like(shape), shape.shape)


ONES = Weights()


# --- No domain -------------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class Unconstrained:
    """All of ℝ^(d×K), and no regularizer."""

    def value(self, w: Array) -> float:
        return 0.0

    def prox(self, w: Array, step: float) -> Array:
        return np.array(w, dtype=np.float64)

    def project(self, w: Array) -> Array:
        return np.array(w, dtype=np.float64)

    def diameter(self, d: int, outputs: int = 1) -> float:
        return math.inf

    def scaled(self, scales: ArrayLike) -> Unconstrained:
        ONES.times(scales)
        return self


# --- Regularizers ----------------------------------------------------------------------------
#
# `coefficients(w, step)` are (a, b) with step · value(v) = Σ a |v| + ½ Σ b v²: with them a set
# knows the joint prox.


@dataclass(frozen=True, kw_only=True)
class L1:
    """alpha ‖w‖₁."""

    alpha: float
    _weights: Weights = field(default=ONES, repr=False)

    def __post_init__(self) -> None:
        _check_alpha(self.alpha)

    def value(self, w: Array) -> float:
        return _penalty(w, *self.coefficients(w, 1.0))

    def prox(self, w: Array, step: float) -> Array:
        return _shrink(w, *self.coefficients(w, step))

    def coefficients(self, w: Array, step: float) -> tuple[Array, Array]:
        c = self._weights.like(w)
        return step * self.alpha * c, 0 * c

    def scaled(self, scales: ArrayLike) -> L1:
        return L1(alpha=self.alpha, _weights=self._weights.times(scales))


@dataclass(frozen=True, kw_only=True)
class L2:
    """½ alpha ‖w‖₂²."""

    alpha: float
    _weights: Weights = field(default=ONES, repr=False)

    def __post_init__(self) -> None:
        _check_alpha(self.alpha)

    def value(self, w: Array) -> float:
        return _penalty(w, *self.coefficients(w, 1.0))

    def prox(self, w: Array, step: float) -> Array:
        return _shrink(w, *self.coefficients(w, step))

    def coefficients(self, w: Array, step: float) -> tuple[Array, Array]:
        c = self._weights.like(w)
        return 0 * c, step * self.alpha * c**2

    def scaled(self, scales: ArrayLike) -> L2:
        return L2(alpha=self.alpha, _weights=self._weights.times(scales))


@dataclass(frozen=True, kw_only=True)
class ElasticNet:
    """alpha (l1_ratio ‖w‖₁ + ½ (1 − l1_ratio) ‖w‖₂²), as in scikit-learn."""

    alpha: float
    l1_ratio: float
    _weights: Weights = field(default=ONES, repr=False)

    def __post_init__(self) -> None:
        _check_alpha(self.alpha)
        if not 0 <= self.l1_ratio <= 1:
            raise InvalidInput(f"l1_ratio must lie in [0, 1], got {self.l1_ratio!r}.")

    def value(self, w: Array) -> float:
        return _penalty(w, *self.coefficients(w, 1.0))

    def prox(self, w: Array, step: float) -> Array:
        return _shrink(w, *self.coefficients(w, step))

    def coefficients(self, w: Array, step: float) -> tuple[Array, Array]:
        c = self._weights.like(w)
        return (
            step * self.alpha * self.l1_ratio * c,
            step * self.alpha * (1 - self.l1_ratio) * c**2,
        )

    def scaled(self, scales: ArrayLike) -> ElasticNet:
        weights = self._weights.times(scales)
        return ElasticNet(alpha=self.alpha, l1_ratio=self.l1_ratio, _weights=weights)


@dataclass(frozen=True, kw_only=True)
class GroupLasso:
    """alpha Σ over groups of √(group size) ‖w[group]‖₂.

    Parameters
    ----------
    alpha
        Strength, at least 0.
    groups
        Disjoint collections of feature numbers. A feature in none of them is not penalised.
    """

    alpha: float
    groups: Sequence[Sequence[int]]

    def __post_init__(self) -> None:
        _check_alpha(self.alpha)
        groups = tuple(tuple(int(j) for j in group) for group in self.groups)
        features = [j for group in groups for j in group]
        if len(set(features)) < len(features) or min(features, default=0) < 0 or () in groups:
            raise InvalidInput("groups must be disjoint, non-empty, of numbers from 0.")
        object.__setattr__(self, "groups", groups)

    def value(self, w: Array) -> float:
        self._check(w)
        norms = [math.sqrt(len(group)) * _norm(w[list(group)]) for group in self.groups]
        return self.alpha * math.fsum(norms) if all(map(math.isfinite, norms)) else math.inf

    def prox(self, w: Array, step: float) -> Array:
        self._check(w)
        v = np.array(w, dtype=np.float64)
        for group in map(list, self.groups):
            norm = _norm(w[group])
            threshold = step * self.alpha * math.sqrt(len(group))
            v[group] *= 1 - threshold / norm if norm > threshold else 0.0
        return v

    def scaled(self, scales: ArrayLike) -> GroupLasso:
        raise IncompatibleParts(
            "GroupLasso has no closed form under private feature scales. Either fit without "
            "scales, or take a domain that has one: Unconstrained, L1, L2, ElasticNet, L2Ball, "
            "L1Ball, Box, Simplex."
        )

    def _check(self, w: Array) -> None:
        last = max((j for group in self.groups for j in group), default=-1)
        if last >= len(w):
            raise InvalidInput(f"groups name feature {last}, but w has {len(w)} features.")


# --- Sets ------------------------------------------------------------------------------------
#
# `shrink(w, a, b)` is argmin over v in the set of ½ ‖v − w‖² + Σ a |v| + ½ Σ b v², the joint prox
# of the set and a regularizer with these coefficients.


@dataclass(frozen=True, kw_only=True)
class L2Ball:
    """‖w‖₂ ≤ radius."""

    radius: float
    _weights: Weights = field(default=ONES, repr=False)

    def __post_init__(self) -> None:
        _check_radius(self.radius)

    def value(self, w: Array) -> float:
        with np.errstate(over="ignore"):
            return _inside(_norm(self._weights.like(w) * w) - self.radius, self.radius)

    def prox(self, w: Array, step: float) -> Array:
        return self.project(w)

    def project(self, w: Array) -> Array:
        return self.shrink(w, np.zeros(()), np.zeros(()))

    def shrink(self, w: Array, a: Array, b: Array) -> Array:
        c = self._weights.like(w)
        v = _shrink(w, a, b)
        v /= 1 + _multiplier(c * v, c**2 / (1 + b), self.radius)
        v *= self.radius / max(_norm(c * v), self.radius)
        return v

    def minimize_linear(self, g: Array) -> Array:
        c = self._weights.like(g)
        direction = g / c
        norm = _norm(direction)
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
    """‖w‖₁ ≤ radius."""

    radius: float
    _weights: Weights = field(default=ONES, repr=False)

    def __post_init__(self) -> None:
        _check_radius(self.radius)

    def value(self, w: Array) -> float:
        norm = _penalty(w, self._weights.like(w), np.zeros(()))
        return _inside(norm - self.radius, self.radius)

    def prox(self, w: Array, step: float) -> Array:
        return self.project(w)

    def project(self, w: Array) -> Array:
        return self.shrink(w, np.zeros(()), np.zeros(()))

    def shrink(self, w: Array, a: Array, b: Array) -> Array:
        c = np.broadcast_to(self._weights.like(w), w.shape)
        v = _shrink(w, a, b)
        with np.errstate(over="ignore"):
            if np.sum(c * np.abs(v)) <= self.radius:
                return v
            return np.sign(w) * _fill(np.maximum(np.abs(w) - a, 0.0) / c, c, b, self.radius)

    def minimize_linear(self, g: Array) -> Array:
        c = np.broadcast_to(self._weights.like(g), g.shape)
        j = np.unravel_index(np.argmax(np.abs(g) / c), g.shape)
        v = np.zeros(g.shape)
        v[j] = math.copysign(self.radius / c[j], -g[j])
        return v

    def corners(self, d: int, outputs: int = 1) -> Array:
        positive = _axes(self.radius / self._weights.entries(d, outputs))
        return np.concatenate([positive, -positive])

    def axes(self, d: int, outputs: int = 1) -> tuple[float, bool]:
        return _one_length(self.radius / self._weights.entries(d, outputs)), True

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
    """low ≤ w ≤ high, entry by entry.

    Parameters
    ----------
    low, high
        Numbers, or one number per feature. Infinite ends are allowed: ``Box(low=0,
        high=math.inf)`` are the non-negative w; then there is no ``minimize_linear``.
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
            raise InvalidInput(f"low has {low.size} entries, high has {high.size}.")
        if not np.all((low <= high) & (low < math.inf) & (high > -math.inf)):
            raise InvalidInput("Every low must be at most its high, and neither NaN.")

    def value(self, w: Array) -> float:
        low, high = self._ends(w)
        with np.errstate(over="ignore"):
            excess = np.maximum(low - w, w - high)
        size = np.maximum(1.0, np.where(w < low, np.abs(low), np.abs(high)))
        return _inside(float(np.max(excess / size)), 1.0)

    def prox(self, w: Array, step: float) -> Array:
        return self.project(w)

    def project(self, w: Array) -> Array:
        return self.shrink(w, np.zeros(()), np.zeros(()))

    def shrink(self, w: Array, a: Array, b: Array) -> Array:
        return np.clip(_shrink(w, a, b), *self._ends(w))

    def minimize_linear(self, g: Array) -> Array:
        low, high = self._finite_ends(g)
        return np.where(g > 0, low, high)

    def corners(self, d: int, outputs: int = 1) -> Array:
        low, high = self._finite_ends(np.empty((d, outputs)))
        size = d * outputs
        _check_table(2.0**size * size)
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
        return _norm(np.broadcast_to(high - low, (d, outputs)))

    def scaled(self, scales: ArrayLike) -> Box:
        return Box(low=self.low, high=self.high, _weights=self._weights.times(scales))

    def _ends(self, w: Array) -> tuple[Array, Array]:
        c = self._weights.like(w)
        column = (-1, *[1] * (w.ndim - 1))
        ends = [np.asarray(end, dtype=np.float64) for end in (self.low, self.high)]
        for end in ends:
            if end.ndim and end.size != len(w):
                raise InvalidInput(f"The box has {end.size} features, w has {len(w)}.")
        low, high = (end.reshape(column) if end.ndim else end for end in ends)
        return low / c, high / c

    def _finite_ends(self, w: Array) -> tuple[Array, Array]:
        low, high = self._ends(w)
        if not (np.all(np.isfinite(low)) and np.all(np.isfinite(high))):
            raise InvalidInput("A box with an infinite end has no corners. Give finite ends.")
        return low, high


@dataclass(frozen=True, kw_only=True)
class Simplex:
    """w ≥ 0 with Σ w = radius."""

    radius: float = 1.0
    _weights: Weights = field(default=ONES, repr=False)

    def __post_init__(self) -> None:
        _check_radius(self.radius)

    def value(self, w: Array) -> float:
        with np.errstate(over="ignore", invalid="ignore"):
            mass = self._weights.like(w) * w
            excess = max(abs(float(np.sum(mass)) - self.radius), -float(np.min(mass)))
        return _inside(excess, self.radius)

    def prox(self, w: Array, step: float) -> Array:
        return self.project(w)

    def project(self, w: Array) -> Array:
        return self.shrink(w, np.zeros(()), np.zeros(()))

    def shrink(self, w: Array, a: Array, b: Array) -> Array:
        c = np.broadcast_to(self._weights.like(w), w.shape)
        return _fill((w - a) / c, c, b, self.radius)

    def minimize_linear(self, g: Array) -> Array:
        c = np.broadcast_to(self._weights.like(g), g.shape)
        j = np.unravel_index(np.argmin(g / c), g.shape)
        v = np.zeros(g.shape)
        v[j] = self.radius / c[j]
        return v

    def corners(self, d: int, outputs: int = 1) -> Array:
        return _axes(self.radius / self._weights.entries(d, outputs))

    def axes(self, d: int, outputs: int = 1) -> tuple[float, bool]:
        return _one_length(self.radius / self._weights.entries(d, outputs)), False

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
        beyond, spacing = excess(centres), _norm(width) / 2
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


# --- Two at once -----------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class Within:
    """A regularizer restricted to a set; made by `within`, which knows the exact pairs."""

    regularizer: Any
    constraint: Any

    def value(self, w: Array) -> float:
        outside: float = self.constraint.value(w)
        return outside + float(self.regularizer.value(w))

    def prox(self, w: Array, step: float) -> Array:
        if isinstance(self.regularizer, GroupLasso):  # a norm: shrink first, then pull radially
            v: Array = self.constraint.project(self.regularizer.prox(w, step))
        else:
            v = self.constraint.shrink(w, *self.regularizer.coefficients(w, step))
        return v

    def scaled(self, scales: ArrayLike) -> Within:
        return Within(
            regularizer=self.regularizer.scaled(scales),
            constraint=self.constraint.scaled(scales),
        )


def within(regularizer: Domain, constraint: Domain) -> Domain:
    """Return ``regularizer`` restricted to the set ``constraint``.

    Its prox is exact: in all these pairs both conditions of optimality are met by one shrinkage
    and one multiplier of the set.

    Raises
    ------
    IncompatibleParts
        For a pair whose joint prox is not known in closed form.
    """
    if isinstance(regularizer, Unconstrained):
        return constraint
    if isinstance(constraint, Unconstrained):
        return regularizer
    separable = isinstance(regularizer, L1 | L2 | ElasticNet)
    if separable and isinstance(constraint, L2Ball | L1Ball | Box | Simplex):
        return Within(regularizer=regularizer, constraint=constraint)
    if isinstance(regularizer, GroupLasso) and isinstance(constraint, L2Ball):
        return Within(regularizer=regularizer, constraint=constraint)
    raise IncompatibleParts(
        f"The joint prox of {_name(regularizer)} within {_name(constraint)} is not known. Known "
        "are L1, L2 or ElasticNet within L2Ball, L1Ball, Box or Simplex; GroupLasso within "
        "L2Ball; and Unconstrained in either place."
    )


@dataclass(frozen=True, kw_only=True)
class Slopes:
    """A domain for all rows of w but the last, the intercept, which nothing happens to.

    ``scaled`` takes one scale per slope. There is no linear minimiser, since the intercept is
    free, and the diameter is that of the slopes.
    """

    domain: Any

    def value(self, w: Array) -> float:
        return float(self.domain.value(w[:-1]))

    def prox(self, w: Array, step: float) -> Array:
        return np.concatenate([self.domain.prox(w[:-1], step), w[-1:]])

    @property
    def project(self) -> Callable[[Array], Array]:
        """The projection of the slopes, where the domain has one."""
        project = self.domain.project
        return lambda w: np.concatenate([project(w[:-1]), w[-1:]])

    @property
    def diameter(self) -> Callable[..., float]:
        """The diameter in the slopes, where the domain has one."""
        diameter: Callable[..., float] = self.domain.diameter
        return diameter

    def scaled(self, scales: ArrayLike) -> Slopes:
        return Slopes(domain=self.domain.scaled(scales))


def of_slopes(domain: Domain) -> Domain:
    """What a domain asks of the slopes, whether or not it leaves the intercept free."""
    return domain.domain if isinstance(domain, Slopes) else domain


@dataclass(frozen=True, kw_only=True)
class Multiple:
    """A domain times a positive factor, as when an objective is divided by a number."""

    domain: Domain
    factor: float

    def value(self, w: Array) -> float:
        return self.factor * self.domain.value(w)

    def prox(self, w: Array, step: float) -> Array:
        return self.domain.prox(w, self.factor * step)

    def scaled(self, scales: ArrayLike) -> Multiple:
        return Multiple(domain=self.domain.scaled(scales), factor=self.factor)


# --- Solutions in one unknown ----------------------------------------------------------------


def _shrink(w: Array, a: Array, b: Array) -> Array:
    """Return argmin over v of ½ (v − w)² + a |v| + ½ b v², entry by entry."""
    v: Array = np.sign(w) * np.maximum(np.abs(w) - a, 0.0) / (1 + b)
    return v


def _penalty(w: Array, a: Array, b: Array) -> float:
    """Return Σ a |w| + ½ Σ b w²."""
    with np.errstate(over="ignore"):
        return float(np.sum(a * np.abs(w)) + 0.5 * np.sum(b * w * w))


def _fill(levels: Array, c: Array, b: Array, radius: float) -> Array:
    """Return v = c (levels − λ)⁺ / (1 + b) with the λ for which Σ c v = radius.

    In depths below the highest level, so that nothing cancels however high it is. An axis whose
    c² underflows stays 0: it would count for nothing in the sum.
    """
    with np.errstate(over="ignore", under="ignore", invalid="ignore"):
        shares = np.broadcast_to(c**2 / (1 + b), levels.shape)
        if not shares.any():
            return np.zeros_like(levels)
        levels = np.where(shares > 0, levels, -np.inf)
        depth = np.max(levels) - levels
        order = np.argsort(depth, axis=None)
        sunk = depth.reshape(-1)[order]
        share = shares.reshape(-1)[order]
        surface = (radius + np.cumsum(share * sunk)) / np.cumsum(share)
        wet = np.logical_and.accumulate((sunk < surface) & np.isfinite(surface))
        last = max(int(np.count_nonzero(wet)), 1) - 1
        return np.asarray(c * np.maximum(surface[last] - depth, 0.0) / (1 + b))


def _multiplier(z: Array, curvature: Array, radius: float) -> Array:
    """Return λ · curvature with λ ≥ 0 least such that ‖z / (1 + λ · curvature)‖₂ ≤ radius.

    Newton's method on 1/‖·‖, which is concave in λ: from the left it never oversteps.
    """
    norm = _norm(z)
    if not norm > radius:
        return np.zeros(())
    top = float(np.max(np.abs(z)))
    z = z / top
    radius = max(radius / top, 1e-290)
    curvature = np.clip(np.broadcast_to(curvature, z.shape), 1e-290, 1e290)
    lam, most = ((_norm(z) / radius - 1) / float(f(curvature)) for f in (np.max, np.min))
    for _ in range(200):
        if not lam < most:
            break
        scale = 1 / (1 + lam * curvature)
        norm = _norm(z * scale)
        decay = float(np.sum(curvature * scale * (z * scale / norm) ** 2))
        step = (norm / radius - 1) / decay
        if not step > 4e-16 * lam:
            break
        lam = min(lam + step, most)
    return lam * curvature


def _norm(x: Array) -> float:
    """Return ‖x‖₂, without overflow on the way."""
    top = float(np.max(np.abs(x), initial=0.0))
    if top == 0 or not math.isfinite(top):
        return top
    return top * float(np.sqrt(np.sum(np.square(x / top))))


def _one_length(lengths: Array) -> float:
    if np.ptp(lengths) > 0:
        raise IncompatibleParts(
            "The corners of this domain have different lengths, because its features were scaled. "
            "Scale the records instead, with Curator.transform."
        )
    return float(lengths.reshape(-1)[0])


def _axes(lengths: Array) -> Array:
    _check_table(float(lengths.size) ** 2)
    return np.diag(lengths.reshape(-1)).reshape(lengths.size, *lengths.shape)


# --- Checks ----------------------------------------------------------------------------------


def _inside(excess: float, size: float) -> float:
    return 0.0 if excess <= MEMBERSHIP_TOLERANCE * size else math.inf


def _check_alpha(alpha: float) -> None:
    if not 0 <= alpha < math.inf:
        raise InvalidInput(f"alpha must be at least 0 and finite, got {alpha!r}.")


def _check_radius(radius: float) -> None:
    if not 0 < radius < math.inf:
        raise InvalidInput(f"radius must be positive and finite, got {radius!r}.")


def _check_table(entries: float) -> None:
    if entries > LARGEST_TABLE:
        raise InvalidInput("There are too many corners to list. Use minimize_linear.")


def _name(domain: object) -> str:
    if isinstance(domain, Within):
        return f"{_name(domain.regularizer)} within {_name(domain.constraint)}"
    if isinstance(domain, Slopes):
        return f"Slopes of {_name(domain.domain)}"
    return type(domain).__name__


def _listed(names: Sequence[str]) -> str:
    return " and ".join(f"`{name}`" for name in names)


# --- The registry, and what an algorithm asks of it --------------------------------------------

DOMAINS: tuple[Domain, ...] = (
    Unconstrained(),
    L1(alpha=0.3),
    L2(alpha=0.7),
    ElasticNet(alpha=0.5, l1_ratio=0.4),
    GroupLasso(alpha=0.3, groups=((0, 2), (1,))),
    L2Ball(radius=1.5),
    L1Ball(radius=1.5),
    Box(low=-0.5, high=1.0),
    Simplex(radius=1.0),
    within(L1(alpha=0.3), L2Ball(radius=1.0)),
    within(ElasticNet(alpha=0.5, l1_ratio=0.4), L1Ball(radius=1.0)),
)
"""One example of every domain, and two pairs; the contract tests run over it."""


def require(domain: Domain, *operations: str, needed_by: str) -> Any:
    """Return ``domain`` if it has all ``operations``.

    Raises
    ------
    IncompatibleParts
        Otherwise; the message lists what is missing and which domains fit.
    """
    missing = [name for name in operations if not hasattr(domain, name)]
    if not missing:
        return domain
    fitting = (other for other in DOMAINS if all(hasattr(other, name) for name in operations))
    raise IncompatibleParts(
        f"{needed_by} needs {_listed(operations)} of its domain; {_name(domain)} has no "
        f"{_listed(missing)}. Domains that fit: {', '.join(map(_name, fitting)) or 'none'}."
    )
