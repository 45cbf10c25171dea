"""Second moments of the features as a metric: steps as long as each direction allows."""

from __future__ import annotations

import math
from dataclasses import dataclass
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

LEAST = 1e-5
"""No direction counts for less than this part of the largest."""


@dataclass(frozen=True)
class Metric:
    """A positive matrix that bounds the curvature of a loss of curvature 1.

    Attributes
    ----------
    matrix, inverse : (rows, rows), or (rows,) diagonals; the inverse is 0 where a coordinate is
        not active.
    reach : length of a typical row; longer ones are shrunk to it.
    spread : length of what a unit of noise in every coordinate moves in a step of 1, seen in
        predictions.
    largest : the largest curvature.
    """

    matrix: Doubles
    inverse: Doubles
    reach: float
    spread: float
    largest: float

    @classmethod
    def plan(cls, noise: GaussianNoise, problem: Problem) -> Plan:
        """Second moments, if they are not too many."""
        if problem.rows > WIDEST:
            return ()
        return (Round(events=(noise.event(problem.moments(1.0)),)),)

    @classmethod
    def bought(cls, curator: Curator, noise: GaussianNoise, active: NDArray[np.bool_]) -> Self:
        """Second moments of rows clipped to twice the reach, as far as they rise above noise.

        A direction counts for what was seen and the spectral norm of the noise, but for no more
        than the trace, which bounds all. Where noise hides the curvature of a typical direction,
        1, it is enough that no step leads too far: gradients are bounded by the reach.
        """
        rows, problem = int(active.sum()), curator.problem
        reach = math.sqrt(rows)
        if problem.rows > WIDEST:
            flat = np.full(problem.rows, reach)
            return cls(flat, active / reach, reach, 1.0, reach)
        std = noise.event(problem.moments(2 * reach)).std
        found = _square(curator.everyone().moments(2 * reach).release(noise), problem.rows)
        values, vectors = np.linalg.eigh(found[np.ix_(active, active)])
        spectral, trace = math.sqrt(2) * reach * std, max(float(values.sum()), 0.0)
        top = min(trace + 2 * reach * std, 4 * rows)
        if spectral > 1:
            top = min(top, reach)
        top = max(top, LEAST)
        values = np.clip(np.maximum(values, 0.0) + spectral, LEAST * top, top)
        matrix, inverse = top * np.eye(problem.rows), np.zeros((problem.rows, problem.rows))
        matrix[np.ix_(active, active)] = vectors * values @ vectors.T
        inverse[np.ix_(active, active)] = vectors / values @ vectors.T
        spread = math.sqrt(max(1.0, trace / rows) * float(np.sum(1 / values**2)))
        return cls(matrix, inverse, reach, spread, float(values.max()))

    @property
    def moves(self) -> Doubles:
        """(rows,) how far a unit of noise in every coordinate moves each in a step of 1."""
        return self.inverse if self.inverse.ndim == 1 else np.linalg.norm(self.inverse, axis=1)

    @property
    def noise(self) -> float:
        """Length, in the metric, of such a move."""
        inverse = self.inverse if self.inverse.ndim == 1 else np.diagonal(self.inverse)
        return math.sqrt(float(inverse.sum()))

    def length(self, slopes: Doubles) -> float:
        """Length of a move of the slopes (d, 1) with the best move of the intercept beside it."""
        d, M = len(slopes), self.matrix
        if M.ndim == 2 and len(M) > d:
            M = M[:d, :d] - M[:d, d:] @ M[d:, :d] / M[-1, -1]
        return math.sqrt(max(0.0, float(np.sum(slopes * _times(M[:d], slopes)))))

    def step(self, domain: Domain, w: Doubles, g: Doubles, length: float) -> Doubles:
        """Argmin over v of <g, v> + |v - w|^2 / (2 length) in the metric + domain(v)."""
        newton = w - length * _times(self.inverse, g)
        rate = length / self.largest
        v = u = domain.prox(newton, rate)
        if self.matrix.ndim == 1 or np.array_equal(v, newton):
            return v
        momentum = 1.0
        for _ in range(60):
            slope = self.matrix @ (u - newton) / length
            new = domain.prox(u - rate * slope, rate)
            step = new - v
            if np.sum((u - new) * step) > 0:
                momentum = 1.0
            if np.max(np.abs(new - u)) <= 1e-7 * np.max(np.abs(new - w)):
                return new
            following = (1 + math.sqrt(1 + 4 * momentum**2)) / 2
            v, u = new, new + (momentum - 1) / following * step
            momentum = following
        return v


def _times(matrix: Doubles, w: Doubles) -> Doubles:
    """The matrix (or its diagonal) times (rows, K)."""
    return np.asarray(matrix[:, None] * w if matrix.ndim == 1 else matrix @ w)


def _square(triangle: Doubles, rows: int) -> Doubles:
    """The symmetric matrix of an upper triangle with off-diagonals times sqrt 2."""
    matrix = np.zeros((rows, rows))
    matrix[np.triu_indices(rows)] = triangle / math.sqrt(2)
    matrix += matrix.T
    matrix[np.diag_indices(rows)] /= math.sqrt(2)
    return matrix
