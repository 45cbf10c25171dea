"""Calls of a function of somebody else that was promised to be row-wise: on many rows at once.

Formal guarantee
----------------
What a row gets is what the function says of it in a block of a public number of rows, or NaN where
it fails of that row alone. A product rounds a row by how many rows are in the block. So where some
rows fail, another row stands in for them, and the block stays as long as it is.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

Doubles = NDArray[np.float64]
Said = Callable[[NDArray[np.int64], tuple[int, ...]], Doubles | None]
"""The answer of this shape for the rows of some ids; None if it fails."""


def together(said: Said, ids: NDArray[np.int64], shape: tuple[int, ...]) -> Doubles:
    """What is said of the rows of these ids, (rows, ...); NaN of those of which it fails alone."""
    found = said(ids, shape)
    if found is not None:
        return found
    alone = [said(ids[i : i + 1], (1, *shape[1:])) for i in range(len(ids))]
    fine = [i for i, one in enumerate(alone) if one is not None]
    found = np.full(shape, np.nan)
    if fine:
        held = np.full_like(ids, ids[fine[0]])
        held[fine] = ids[fine]
        again = said(held, shape)
        each = [one for one in alone if one is not None]
        found[fine] = np.concatenate(each) if again is None else again[fine]
    return found
