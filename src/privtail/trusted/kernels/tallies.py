"""Blocks of values -> how many lie in each cell of a histogram.

Formal guarantee
----------------
A value adds one to one cell of one column, NaN to none. Which one is decided by comparisons with
public edges alone: the cell of x is the number of edges that are at most x. The leading bits of x
only say where the search among the edges begins.
"""

# mypy: allow-untyped-calls, allow-untyped-defs, allow-untyped-decorators

from __future__ import annotations

import numpy as np

from privtail.compilation import compiled

EVERY, NONE = -1, -2
"""What stands for the column in which a row counts: all columns, no column."""

_EXPONENTS = 2048


@compiled
def _slice_of(x, bits):
    """The index of the interval of x, of 4096 between powers of two in ascending order.

    Each begins with its power of two, which belongs to it: of negative numbers, which ascend as
    their bits descend, those of the next larger one tell that. Both zeros are one number.
    """
    if x == 0.0:
        return _EXPONENTS
    if x < 0.0:
        return _EXPONENTS - 1 - (((bits - 1) >> 52) & (_EXPONENTS - 1))
    return _EXPONENTS + (bits >> 52)


@compiled
def tally(values, bits, own, edges, edge_bits, sums):
    """Count values in the cells of their columns; NaN in none.

    values (rows, columns) float64, C-contiguous; own (rows,) the column a row counts in, `EVERY` or
    `NONE`; edges (columns, edges) ascending; bits and edge_bits are the same numbers as int64; sums
    (columns, edges + 1) are added to.
    """
    rows, columns = values.shape
    cuts = edges.shape[1]
    begins = np.zeros((columns, 2 * _EXPONENTS + 1), np.int32)
    for c in range(columns):
        for j in range(cuts):
            begins[c, _slice_of(edges[c, j], edge_bits[c, j]) + 1] += 1
        for k in range(2 * _EXPONENTS):
            begins[c, k + 1] += begins[c, k]
    for i in range(rows):
        if own[i] == NONE:
            continue
        first = 0 if own[i] == EVERY else own[i]
        last = columns if own[i] == EVERY else own[i] + 1
        for c in range(first, last):
            x = values[i, c]
            if x != x:
                continue
            k = _slice_of(x, bits[i, c])
            cell, end = begins[c, k], begins[c, k + 1]
            while cell < end:
                middle = (cell + end) >> 1
                if edges[c, middle] <= x:
                    cell = middle + 1
                else:
                    end = middle
            sums[c, cell] += 1.0
