"""Second moments as the core releases them: an upper triangle."""

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
