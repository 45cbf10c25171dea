"""Second moments of the features as a metric: steps as long as each direction allows."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Self

import numpy as np
from numpy.typing import NDArray

from privtail.domains import Domain
from privtail.trusted.curator import Curator
from privtail.trusted.events import Plan, Round
from privtail.trusted.mechanisms.noise import GaussianNoise
from privtail.trusted.problem import Problem

Doubles = NDArray[np.float64]

WIDEST = 512
"""With more coordinates, second moments are too many: all directions are taken for alike."""

VISIBLE = 0.05
"""Longer rows count for what they are while noise hides no more than this curvature."""

LONGEST = 1024.0
"""So many times the length of a typical row is as long as any."""

SHORT = 0.5
"""Of labels rows are shrunk to this part of their typical length: their directions decide."""

OUTSTANDING = 1.25
"""A direction has more curvature than noise hides where so many times as much is seen of it.

Noise adds a quarter of its spectral norm to a curvature of just that norm (Benaych-Georges and
Nadakuditi 2011); without one, it shows none above its norm.
"""

SHOWN = 2.0
"""An indicator has ones if its square stands so many deviations of its noise above zero."""

LEAST = 1e-5
"""No direction counts for less than this part of the largest."""


@dataclass(frozen=True)
class Preconditioner:
    """A positive matrix that bounds the curvature of a loss of curvature 1.

    Attributes
    ----------
    matrix, inverse : (rows, rows), or (rows,) diagonals; the inverse is 0 where a coordinate is
        not active.
    values, vectors : the principal directions of the active coordinates, those of large curvature
        first: (r,) curvatures, (rows, r) directions; or (rows,) diagonals, 0 where not active.
    hidden : how much of each curvature may be noise.
    reach : longer rows are shrunk to this length.
    spread : length of what a unit of noise in every coordinate moves in a step of 1, seen in
        predictions: where features go together, less than where each goes its own way.
    moments, std : (rows, rows) what was released, and the noise of an entry; (0, 0) if nothing was.
    seen : (r,) curvatures as they were released, along the principal directions; (0,) without.
    likely : (r,) what curvature there likely is along the principal directions; (0,) without.
    short : part of the reach to which steps shrink rows.
    """

    matrix: Doubles
    inverse: Doubles
    values: Doubles
    vectors: Doubles
    hidden: float
    reach: float
    spread: float
    moments: Doubles = field(default_factory=lambda: np.zeros((0, 0)))
    std: float = 0.0
    seen: Doubles = field(default_factory=lambda: np.zeros(0))
    likely: Doubles = field(default_factory=lambda: np.zeros(0))
    short: float = 1.0

    @classmethod
    def plan(cls, noise: GaussianNoise, problem: Problem) -> Plan:
        """Second moments, if they are not too many."""
        if problem.rows > WIDEST:
            return ()
        return (Round(stage="preconditioner", events=(noise.event(problem.moments(1.0)),)),)

    @classmethod
    def bought(
        cls, curator: Curator, noise: GaussianNoise, active: NDArray[np.bool_], short: float = 1.0
    ) -> Self:
        """Second moments of rows clipped to twice what steps shrink them to.

        That is the reach, that of a typical row or longer, or a ``short`` part of it. A direction
        counts for what was seen and the spectral norm of the noise, but for no more than the trace,
        which bounds all; of short rows for what is likely there, as noise is spread over all
        directions. Where noise hides the curvature of a typical direction, 1, it is enough that no
        step leads too far (gradients are bounded by the reach), but in directions that are
        `OUTSTANDING`, by so much more as rows are short: they have so much less curvature for the
        length of a step.
        """
        rows, problem = int(active.sum()), curator.problem
        if problem.rows > WIDEST:
            return cls._alike(active, short)
        reach = math.sqrt(rows)
        hidden = math.sqrt(2 * rows) * noise.event(problem.moments(2 * short * reach)).std
        reach *= min(LONGEST, max(1.0, math.sqrt(VISIBLE / hidden))) if hidden > 0 else LONGEST
        clip = 2 * short * reach
        std = noise.event(problem.moments(clip)).std
        triangle = curator.everyone().moments(clip).release(noise)
        return cls._of(symmetric(triangle, problem.rows), std, active, reach, short)

    def restricted(self, active: NDArray[np.bool_]) -> Self:
        """The same where fewer coordinates are active: their rows are shorter."""
        if self.moments.size == 0:
            return self._alike(active, self.short)
        shorter = math.sqrt(active.sum() / len(self.values))
        return self._of(self.moments, self.std, active, self.reach * shorter, self.short)

    @classmethod
    def flat(cls, active: NDArray[np.bool_]) -> Self:
        """All active coordinates alike and of curvature 1, which nobody has to buy."""
        rows, count = len(active), int(active.sum())
        reach, ones, each = math.sqrt(count), np.ones(rows), active.astype(np.float64)
        return cls(ones, each, ones, each, math.inf, reach, reach)

    @classmethod
    def _alike(cls, active: NDArray[np.bool_], short: float = 1.0) -> Self:
        """Without moments: all directions have the largest curvature there may be."""
        rows, reach = len(active), math.sqrt(active.sum())
        curvatures, each = np.full(rows, reach), active.astype(np.float64)
        return cls(
            curvatures, each / reach, curvatures, each, math.inf, reach, 1.0, short=short
        )  # fmt: skip

    @classmethod
    def _of(
        cls, moments: Doubles, std: float, active: NDArray[np.bool_], reach: float,
        short: float = 1.0,
    ) -> Self:  # fmt: skip
        """From released moments; coordinates that are not active count as the largest."""
        rows, square = len(active), np.ix_(active, active)
        seen, vectors = np.linalg.eigh(moments[square])
        seen, vectors = seen[::-1].copy(), vectors[:, ::-1]
        hidden = math.sqrt(2 * len(seen)) * std
        trace = max(float(seen.sum()), 0.0)
        top = min(trace + math.sqrt(2) * hidden, 4 * reach**2)
        true = np.maximum(likely(seen, std), 0.0)
        values = (np.maximum(seen, 0.0) if short == 1 else true) + hidden
        if hidden > 1:
            unsure = seen < OUTSTANDING / short * hidden
            values[unsure] = np.minimum(values[unsure], reach)
            top = min(top, max(reach, float(values.max())))
        top = max(top, LEAST)
        values = np.clip(values, LEAST * top, top)
        matrix, inverse = values.max() * np.eye(rows), np.zeros((rows, rows))
        matrix[square] = vectors * values @ vectors.T
        inverse[square] = vectors / values @ vectors.T
        moved = float(np.sum(_parts(true) / values**2))
        spread = math.sqrt(max(float(len(values)), trace) * moved)
        every = np.zeros((rows, len(values)))
        every[active] = vectors
        return cls(
            matrix, inverse, values, every, hidden, reach, spread, moments, std, seen, true, short
        )

    @property
    def largest(self) -> float:
        """The largest curvature."""
        return float(self.values.max())

    @property
    def active(self) -> NDArray[np.bool_]:
        """(rows,) which coordinates move."""
        return (self.inverse if self.inverse.ndim == 1 else np.diag(self.inverse)) > 0

    @property
    def rates(self) -> Doubles:
        """(r,) parts by which a step of 1 contracts each principal direction, by what was seen."""
        return np.maximum(0.0, 1 - self.hidden / self.values)

    @property
    def shown(self) -> NDArray[np.bool_]:
        """(rows,) whether the square of a coordinate stands above its noise; all if not known."""
        if self.moments.size == 0:
            return np.ones(len(self.matrix), dtype=np.bool_)
        return np.asarray(np.diag(self.moments) > SHOWN * self.std)

    @property
    def sure_rates(self) -> Doubles:
        """(r,) the same, counting on no more curvature than there is whatever noise did.

        The k-th smallest that was seen is at most the k-th smallest that is there, and the largest
        that noise shows in k directions: sqrt(2 k) deviations of an entry. In a direction in which
        features cancel there is none, and noise walks on.
        """
        if self.seen.size == 0:
            return np.zeros_like(self.values)
        noise = self.std * np.sqrt(2 * np.arange(len(self.seen), 0, -1))
        return np.asarray(np.maximum(0.0, self.seen - noise) / self.values)

    @property
    def likely_rates(self) -> Doubles:
        """(r,) the same, for the curvature that there is on average."""
        if self.seen.size == 0:
            return self.rates
        return np.asarray(np.minimum(1.0, self.likely / self.values))

    def coordinates(self, move: Doubles, d: int) -> Doubles:
        """(r, K) of a move of the slopes (d, K) along the principal directions.

        Their squares add up to its length in the metric, with the best move of the intercept beside
        it.
        """
        return np.sqrt(self.values)[:, None] * _times(
            self.vectors.T, self.joint(move[:d], len(move))
        )

    def joint(self, move: Doubles, rows: int) -> Doubles:
        """A move of the slopes (d, K) with the best one of the intercept, if ``rows`` are more."""
        d = len(move)
        beside = np.zeros((rows - d, move.shape[1]))
        if rows > d and self.matrix.ndim == 2:
            beside[0] = -self.matrix[d, :d] @ move / self.matrix[d, d]
        return np.vstack([move, beside])

    def times(self, w: Doubles) -> Doubles:
        """The matrix times (rows, K)."""
        return _times(self.matrix, w)

    def slopes(self, coordinates: Doubles, d: int) -> Doubles:
        """The slopes (d, K) that have these coordinates."""
        return _times(self.vectors, coordinates / np.sqrt(self.values)[:, None])[:d]

    def deviations(self, coordinates: Doubles, d: int) -> Doubles:
        """(d,) of the slopes, given those (r,) of independent coordinates."""
        variances = _times(self.vectors**2, (coordinates**2 / self.values)[:, None])
        return np.sqrt(variances[:d, 0])

    def carried(self, deviations: Doubles, onto: Self) -> Doubles:
        """Deviations (r,) of independent coordinates, along the directions of another metric."""
        if self.vectors.ndim == 1 or onto.vectors.ndim == 1:
            return np.where(onto.inverse > 0, deviations * np.sqrt(onto.values / self.values), 0.0)
        spread = onto.vectors.T @ self.vectors * (deviations / np.sqrt(self.values))
        return np.asarray(np.sqrt(onto.values) * np.linalg.norm(spread, axis=1))

    def step(self, domain: Domain, w: Doubles, g: Doubles, length: float) -> Doubles:
        """Argmin over v of <g, v> + |v - w|^2 / (2 length) in the metric + domain(v)."""
        newton = w - length * _times(self.inverse, g)
        rate = length / self.largest
        v = domain.prox(newton, rate)
        if self.matrix.ndim == 1 or np.array_equal(v, newton):
            return v
        return proximal_point(
            domain, lambda u: self.matrix @ (u - newton) / length, v, rate, away=w
        )


def proximal_point(
    domain: Domain, slope: Callable[[Doubles], Doubles], start: Doubles, rate: float, *,
    away: Doubles, least: float = 0.0,
) -> Doubles:  # fmt: skip
    """Argmin of a quadratic with this ``slope`` + domain(v), by sixty accelerated steps at most.

    FISTA (Beck and Teboulle 2009) with the restart of O'Donoghue and Candes 2015. It ends with a
    step of 1e-7 of the way from ``away``, or of ``least`` more.
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


def _parts(likely: Doubles) -> Doubles:
    return likely / likely.sum() if likely.any() else np.full(len(likely), 1 / len(likely))


def likely(seen: Doubles, std: float) -> Doubles:
    """(r,) the curvature that there is on average where (r,) curvatures were ``seen``.

    Noise of ``std`` in an entry turns the directions of what is seen: in the first there is less
    than was seen, in the last more (Bun, Allez, Bouchaud and Potters 2016, for a Gaussian
    orthogonal ensemble). Directions that are closer than the noise of an entry are not told apart.
    """
    if std == 0:
        return seen
    gaps = seen[:, None] - seen
    return np.asarray(seen - std**2 * np.sum(gaps / (gaps**2 + std**2 / 2), axis=1))


def symmetric(triangle: Doubles, rows: int) -> Doubles:
    """The symmetric matrix of an upper triangle with off-diagonals times sqrt 2."""
    matrix = np.zeros((rows, rows))
    matrix[np.triu_indices(rows)] = triangle / math.sqrt(2)
    matrix += matrix.T
    matrix[np.diag_indices(rows)] /= math.sqrt(2)
    return matrix


def _times(matrix: Doubles, w: Doubles) -> Doubles:
    """The matrix (or its diagonal) times (rows, K)."""
    return np.asarray(matrix[:, None] * w if matrix.ndim == 1 else matrix @ w)
