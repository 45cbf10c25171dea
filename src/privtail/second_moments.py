"""Released second moments: the matrix, and what noise did to its eigenvalues."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

Doubles = NDArray[np.float64]


def symmetric(triangle: Doubles, rows: int) -> Doubles:
    """The symmetric matrix of an upper triangle with off-diagonals times sqrt 2."""
    matrix = np.zeros((rows, rows))
    matrix[np.triu_indices(rows)] = triangle / math.sqrt(2)
    matrix += matrix.T
    matrix[np.diag_indices(rows)] /= math.sqrt(2)
    return matrix


def likely_curvatures(seen: Doubles, std: float) -> Doubles:
    """(r,) the expected curvatures along eigenvectors of a noisy matrix with eigenvalues ``seen``.

    Noise turns the eigenvectors. Along the first the true curvature is less than the eigenvalue,
    along the last it is more (Bun, Allez, Bouchaud and Potters 2016, for a Gaussian orthogonal
    ensemble). ``std`` is the noise in an entry; eigenvalues closer than that are not told apart.
    """
    if std == 0:
        return seen
    gaps = seen[:, None] - seen
    return np.asarray(seen - std**2 * np.sum(gaps / (gaps**2 + std**2 / 2), axis=1))
