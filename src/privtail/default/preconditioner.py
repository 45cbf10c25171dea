"""The preconditioner: released second moments, so that steps fit the curvature of a direction."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import NDArray

from privtail.domains import Domain, proximal_point
from privtail.second_moments import likely_curvatures

Doubles = NDArray[np.float64]

SINGULAR = math.sqrt(np.finfo(np.float64).eps)
"""No direction counts for less than this part of the largest curvature, which rounding hides."""


@dataclass(frozen=True)
class Preconditioner:
    """A positive matrix that likely bounds the Hessian of a loss of curvature 1.

    Attributes
    ----------
    matrix, inverse : (rows, rows), or (rows,) if diagonal. The inverse is 0 for coordinates that
        are not active.
    curvatures : (r,) eigenvalues of the matrix over the active coordinates, the largest first.
    directions : (rows, r) their eigenvectors; (rows,) if the matrix is diagonal.
    hidden : the spectral norm of the noise: how much of a curvature noise may hide.
    row_length : the length of a typical row. Steps shrink longer rows to it, or to a part of it.
    spread : how far noise of 1 in every coordinate of a gradient moves the prediction of a typical
        row, in a step of length 1.
    std : the standard deviation of the noise in an entry of the second moments; infinite if they
        were not released.
    likely : (r,) the expected curvatures, given the released ones; 0 if nothing was released.
    """

    matrix: Doubles
    inverse: Doubles
    curvatures: Doubles
    directions: Doubles
    hidden: float
    row_length: float
    spread: float
    std: float
    likely: Doubles

    @classmethod
    def without_moments(cls, active: NDArray[np.bool_]) -> Self:
        """All directions have one curvature: the square root of their number, a typical length."""
        length = math.sqrt(active.sum())
        curvatures, each = np.full(len(active), length), active.astype(np.float64)
        inverse, likely = each / length, np.zeros(len(active))
        return cls(curvatures, inverse, curvatures, each, math.inf, length, 1.0, math.inf, likely)

    @classmethod
    def of_moments(
        cls, moments: Doubles, std: float, active: NDArray[np.bool_], row_length: float,
        *, outstanding: float,
    ) -> Self:  # fmt: skip
        """From released second moments.

        A step along a direction is the gradient over the curvature there. So a curvature must not
        be too small: it is the likely one plus the spectral norm of the noise, and at most the
        trace, which bounds all curvatures. A norm above 1, the curvature of a typical direction,
        would make all steps short. Then a direction counts for at most the row length, which bounds
        gradients, unless it shows more than ``outstanding`` times the norm. Coordinates that are
        not active get the largest curvature.
        """
        rows, square = len(active), np.ix_(active, active)
        seen, vectors = np.linalg.eigh(moments[square])
        seen, vectors = seen[::-1].copy(), vectors[:, ::-1]
        hidden = math.sqrt(2 * len(seen)) * std
        trace = max(float(seen.sum()), 0.0)
        top = min(trace + math.sqrt(2) * hidden, 4 * row_length**2)
        likely = np.maximum(likely_curvatures(seen, std), 0.0)
        values = likely + hidden
        if hidden > 1:
            unsure = seen < outstanding * hidden
            values[unsure] = np.minimum(values[unsure], row_length)
            top = min(top, max(row_length, float(values.max())))
        top = max(top, SINGULAR)
        values = np.clip(values, SINGULAR * top, top)
        matrix, inverse = values.max() * np.eye(rows), np.zeros((rows, rows))
        matrix[square] = vectors * values @ vectors.T
        inverse[square] = vectors / values @ vectors.T
        parts = likely / likely.sum() if likely.any() else np.full(len(likely), 1 / len(likely))
        spread = math.sqrt(max(float(len(values)), trace) * float(np.sum(parts / values**2)))
        directions = np.zeros((rows, len(values)))
        directions[active] = vectors
        return cls(matrix, inverse, values, directions, hidden, row_length, spread, std, likely)

    @property
    def active(self) -> NDArray[np.bool_]:
        """(rows,) whether each coordinate moves."""
        return (self.inverse if self.inverse.ndim == 1 else np.diag(self.inverse)) > 0

    @property
    def typical(self) -> float:
        """The length of a typical row, of which no direction counts for more than 1."""
        return math.sqrt(min(float(self.active.sum()), float(self.curvatures.sum())))

    @property
    def likely_rates(self) -> Doubles:
        """(r,) the expected part by which a step of length 1 contracts each direction."""
        return np.asarray(np.minimum(1.0, self.likely / self.curvatures))

    def coordinates(self, slopes: Doubles, rows: int) -> Doubles:
        """(r, K) coordinates of slopes (d, K) and their best intercept along the directions.

        The sum of their squares is the squared length in this metric: the mean square margin.
        """
        turned = _times(self.directions.T, self.joint(slopes, rows))
        return np.sqrt(self.curvatures)[:, None] * turned

    def joint(self, slopes: Doubles, rows: int) -> Doubles:
        """(rows, K) slopes (d, K) and, if there is one, the intercept that centres the margins."""
        d = len(slopes)
        beside = np.zeros((rows - d, slopes.shape[1]))
        if rows > d and self.matrix.ndim == 2:
            beside[0] = -self.matrix[d, :d] @ slopes / self.matrix[d, d]
        return np.vstack([slopes, beside])

    def times(self, w: Doubles) -> Doubles:
        """The matrix times (rows, K)."""
        return _times(self.matrix, w)

    def deviations(self, coordinates: Doubles, d: int) -> Doubles:
        """(d,) standard deviations of slopes, given those (r,) of independent coordinates."""
        variances = _times(self.directions**2, (coordinates**2 / self.curvatures)[:, None])
        return np.sqrt(variances[:d, 0])

    def step(self, domain: Domain, w: Doubles, g: Doubles, length: float) -> Doubles:
        """Argmin over v of <g, v> + |v - w|^2 / (2 length) in this matrix + domain(v)."""
        newton = w - length * _times(self.inverse, g)
        rate = length / float(self.curvatures[0])
        v = domain.prox(newton, rate)
        if self.matrix.ndim == 1 or np.array_equal(v, newton):
            return v
        return proximal_point(
            domain, lambda u: self.matrix @ (u - newton) / length, v, rate, away=w
        )


def _times(matrix: Doubles, w: Doubles) -> Doubles:
    """The matrix (or its diagonal) times (rows, K)."""
    return np.asarray(matrix[:, None] * w if matrix.ndim == 1 else matrix @ w)
