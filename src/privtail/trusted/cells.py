"""Cells of histograms: which of them a value fills.

Formal guarantee
----------------
A value fills one cell, and which one is a comparison with public edges.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from privtail.errors import InvalidInput

Doubles = NDArray[np.float64]
Integers = NDArray[np.int64]


def ascending(edges: ArrayLike, columns: int) -> Doubles:
    """A copy of the edges of every column, (columns, edges): the common ones, or its own row."""
    cuts = np.array(edges, dtype=np.float64)
    if cuts.ndim != 1 and cuts.shape[:-1] != (columns,):
        raise InvalidInput(f"edges need one row, or one for each of the {columns} columns.")
    if cuts.size == 0 or not (np.diff(cuts) > 0).all():
        raise InvalidInput("edges must be strictly ascending lists of numbers.")
    return np.broadcast_to(cuts, (columns, cuts.shape[-1]))


def tally(values: Doubles, cuts: Doubles) -> Integers:
    """How many values lie in each of the len(cuts) + 1 cells."""
    cells = np.searchsorted(cuts, values, side="right")
    return np.bincount(cells, minlength=len(cuts) + 1)
