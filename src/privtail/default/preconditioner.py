"""The preconditioner of the descent, from released second moments of the features."""

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
"""Curvatures are at least this fraction of the largest one; rounding hides smaller ones."""


@dataclass(frozen=True)
class Preconditioner:
    """A positive matrix that likely bounds the Hessian of a loss with curvature 1.

    Attributes
    ----------
    matrix, inverse : (rows, rows), or (rows,) if diagonal. The inverse is 0 for coordinates that
        are not active.
    curvatures : (r,) eigenvalues of the matrix over the active coordinates, the largest first.
    directions : (rows, r) their eigenvectors; (rows,) if the matrix is diagonal.
    noise_norm : the spectral norm of the noise of the second moments; infinite if there are none.
    row_length : the length of a typical row. Steps shrink longer rows to it, or to a part of it.
    noise_gain : the deviation of the prediction of a typical row after a step of size 1, if each
        coordinate of the gradient has noise of deviation 1.
    std : standard deviation of the noise in an entry of the second moments; infinite without any.
    expected : (r,) expected curvatures, given the released ones (`likely_curvatures`), or 0.
    """

    matrix: Doubles
    inverse: Doubles
    curvatures: Doubles
    directions: Doubles
    noise_norm: float
    row_length: float
    noise_gain: float
    std: float
    expected: Doubles

    @classmethod
    def without_moments(cls, active: NDArray[np.bool_]) -> Self:
        """Every direction has the curvature sqrt(active coordinates), the length of a row."""
        length = math.sqrt(active.sum())
        curvatures, each = np.full(len(active), length), active.astype(np.float64)
        inverse, none = each / length, np.zeros(len(active))
        return cls(curvatures, inverse, curvatures, each, math.inf, length, 1.0, math.inf, none)

    @classmethod
    def from_moments(
        cls, moments: Doubles, std: float, active: NDArray[np.bool_], row_length: float,
        *, clear_ratio: float,
    ) -> Self:  # fmt: skip
        """From released second moments.

        A step is the gradient over the curvature of a direction, so a curvature must not be too
        small. It is the expected one plus the spectral norm of the noise, and at most the trace,
        which bounds all curvatures. A norm above 1, the curvature of a typical direction, would
        make all steps short. A curvature is then at most ``row_length``, which bounds gradients,
        unless the released one is at least ``clear_ratio`` times the norm. Coordinates that are
        not ``active`` get the largest curvature.
        """
        rows, square = len(active), np.ix_(active, active)
        released, vectors = np.linalg.eigh(moments[square])
        released, vectors = released[::-1].copy(), vectors[:, ::-1]
        noise_norm = math.sqrt(2 * len(released)) * std
        trace = max(float(released.sum()), 0.0)
        top = min(trace + math.sqrt(2) * noise_norm, 4 * row_length**2)
        expected = np.maximum(likely_curvatures(released, std), 0.0)
        values = expected + noise_norm
        if noise_norm > 1:
            unclear = released < clear_ratio * noise_norm
            values[unclear] = np.minimum(values[unclear], row_length)
            top = min(top, max(row_length, float(values.max())))
        top = max(top, SINGULAR)
        values = np.clip(values, SINGULAR * top, top)
        matrix, inverse = values.max() * np.eye(rows), np.zeros((rows, rows))
        matrix[square] = vectors * values @ vectors.T
        inverse[square] = vectors / values @ vectors.T
        likely = expected if expected.any() else np.ones_like(expected)
        fractions = likely / likely.sum()
        noise_gain = math.sqrt(
            max(float(len(values)), trace) * float(np.sum(fractions / values**2))
        )
        directions = np.zeros((rows, len(values)))
        directions[active] = vectors
        return cls(
            matrix, inverse, values, directions, noise_norm, row_length, noise_gain, std, expected
        )

    @property
    def active(self) -> NDArray[np.bool_]:
        """(rows,) whether the model may move along each coordinate."""
        return (self.inverse if self.inverse.ndim == 1 else np.diag(self.inverse)) > 0

    @property
    def capped_length(self) -> float:
        """The length of a typical row in which each direction has a square of at most 1."""
        return math.sqrt(min(float(self.active.sum()), float(self.curvatures.sum())))

    @property
    def expected_contraction(self) -> Doubles:
        """(r,) the expected contraction of each direction by a step of size 1."""
        return np.asarray(np.minimum(1.0, self.expected / self.curvatures))

    def principal_coordinates(self, slopes: Doubles) -> Doubles:
        """(r, K) coordinates along the principal directions, of `with_intercept`."""
        along = _times(self.directions.T, self.with_intercept(slopes))
        return np.sqrt(self.curvatures)[:, None] * along

    def typical_margin(self, slopes: Doubles) -> float:
        """The root mean square of the margins of `with_intercept`."""
        return float(np.linalg.norm(self.principal_coordinates(slopes)))

    def with_intercept(self, slopes: Doubles) -> Doubles:
        """(rows, K) slopes (d, K), and below them the intercept at which mean margins are 0."""
        rows, d = len(self.matrix), len(slopes)
        beside = np.zeros((rows - d, slopes.shape[1]))
        if rows > d and self.matrix.ndim == 2:
            beside[0] = -self.matrix[d, :d] @ slopes / self.matrix[d, d]
        return np.vstack([slopes, beside])

    def times(self, w: Doubles) -> Doubles:
        """The matrix times ``w`` (rows, K)."""
        return _times(self.matrix, w)

    def slope_stds(self, coordinates: Doubles, d: int) -> Doubles:
        """(d,) standard deviations of slopes, from those (r,) of principal coordinates."""
        variances = _times(self.directions**2, (coordinates**2 / self.curvatures)[:, None])
        return np.sqrt(variances[:d, 0])

    def step(self, domain: Domain, w: Doubles, g: Doubles, step_size: float) -> Doubles:
        """Argmin over v of <g, v> + |v - w|^2 / (2 step_size) in this norm + domain(v)."""
        newton = w - step_size * _times(self.inverse, g)
        rate = step_size / float(self.curvatures[0])
        v = domain.prox(newton, rate)
        if self.matrix.ndim == 1 or np.array_equal(v, newton):
            return v
        return proximal_point(
            domain, lambda u: self.matrix @ (u - newton) / step_size, v, rate, away=w
        )


def _times(matrix: Doubles, w: Doubles) -> Doubles:
    """The matrix, or the diagonal one with this diagonal, times ``w`` (rows, K)."""
    return np.asarray(matrix[:, None] * w if matrix.ndim == 1 else matrix @ w)
