"""Entries forced into an interval by an influence function, summed on the grid.

Formal guarantee
----------------
Every integer of a row lies in [-limit, limit], limit <= 2^b of b grid bits, for every input: what
an influence function gives is forced there, NaN to 0.
"""

# mypy: allow-untyped-calls, allow-untyped-defs, allow-untyped-decorators

from __future__ import annotations

import math

import numpy as np

from privtail.compilation import compiled
from privtail.trusted.kernels.lanes import (
    fma,
    gated,
    greater,
    lesser,
    load,
    magnitude,
    signed,
    splat,
    store,
)

CLAMP, TRUNCATE, CATONI = 0, 1, 2
"""Influence functions of `box_dense` and `box_sparse`."""

FRACTION_DEGREE = 12
"""Coefficients of each of the two polynomials of the smoothed influence."""


@compiled
def _cubic(c0, c1, c2, c3, m, m2):
    return fma(fma(c3, m, c2), m2, fma(c1, m, c0))


@compiled
def _smoothed(a, far, one, c):
    """With the sign of a, m P(m) / (1 + m Q(m)) of m = min(|a|, far). Doubles or lanes."""
    m = lesser(far, magnitude(a))
    m2 = m * m
    m4 = m2 * m2
    P = fma(_cubic(c[4], c[5], c[6], c[7], m, m2), m4, _cubic(c[0], c[1], c[2], c[3], m, m2))
    Q = fma(
        _cubic(c[16], c[17], c[18], c[19], m, m2), m4, _cubic(c[12], c[13], c[14], c[15], m, m2)
    )
    return signed((m * P) / fma(m, Q, one), a)


@compiled
def _smoothed_more(a, far, one, c):
    """`_smoothed` with all twelve coefficients of each polynomial."""
    m = lesser(far, magnitude(a))
    m2 = m * m
    m4 = m2 * m2
    m8 = m4 * m4
    P = fma(_cubic(c[4], c[5], c[6], c[7], m, m2), m4, _cubic(c[0], c[1], c[2], c[3], m, m2))
    Q = fma(
        _cubic(c[16], c[17], c[18], c[19], m, m2), m4, _cubic(c[12], c[13], c[14], c[15], m, m2)
    )
    P = fma(_cubic(c[8], c[9], c[10], c[11], m, m2), m8, P)
    Q = fma(_cubic(c[20], c[21], c[22], c[23], m, m2), m8, Q)
    return signed((m * P) / fma(m, Q, one), a)


@compiled
def _forced(v, low, high, infinity, magic):
    """The integer in [low, high] nearest to v; 0 for NaN. Doubles or lanes."""
    v = greater(lesser(gated(v, v, infinity), high), low)
    return (v + magic) - magic


@compiled
def _is_short(c):
    return not (c[8] or c[9] or c[10] or c[11] or c[20] or c[21] or c[22] or c[23])


@compiled
def _doubles(c):
    return (
        c[0], c[1], c[2], c[3], c[4], c[5], c[6], c[7], c[8], c[9], c[10], c[11],
        c[12], c[13], c[14], c[15], c[16], c[17], c[18], c[19], c[20], c[21], c[22], c[23],
    )  # fmt: skip


@compiled
def _splats(c):
    return (
        splat(c[0]), splat(c[1]), splat(c[2]), splat(c[3]), splat(c[4]), splat(c[5]),
        splat(c[6]), splat(c[7]), splat(c[8]), splat(c[9]), splat(c[10]), splat(c[11]),
        splat(c[12]), splat(c[13]), splat(c[14]), splat(c[15]), splat(c[16]), splat(c[17]),
        splat(c[18]), splat(c[19]), splat(c[20]), splat(c[21]), splat(c[22]), splat(c[23]),
    )  # fmt: skip


@compiled
def influence(entries, kind, coefficients, limit, bits):
    """Force a flat array of entries (in units of the range) onto grid integers in [-limit, limit].

    ``coefficients`` are those of h(a) = m P(m) / (1 + m Q(m)), m = |a|: twelve of P, then twelve of
    Q, lowest first (`CATONI`). NaN becomes 0. Changed in place.
    """
    grid, high = 2.0**bits, float(limit)
    far, magic = 1e15, 1.5 * 2.0**52
    c = _doubles(coefficients)
    short = _is_short(c)
    for i in range(entries.shape[0]):
        a = entries[i]
        if kind == 2:
            a = _smoothed(a, far, 1.0, c) if short else _smoothed_more(a, far, 1.0, c)
        elif kind == 1:
            a = gated(a, magnitude(a), 1.0)
        entries[i] = _forced(a * grid, -high, high, math.inf, magic)


@compiled
def box_dense(
    X, scales, offsets, valid, residuals, labels, intercept, radius, kind, coefficients, limit,
    bits, sums,
):  # fmt: skip
    """Add influence(z_j r_k / radius) of every entry, on the grid, to ``sums[label, k, j]``.

    The last columns of a row, and its intercept, fill up one more vector.
    """
    rows, d = X.shape
    blocks, outputs, width = sums.shape
    tail = d - d % 8
    padded = tail + 8
    totals = np.zeros((blocks, outputs, padded))
    last = np.zeros(8)
    last_scales = np.zeros(8)
    last_offsets = np.zeros(8)
    for j in range(tail, d):
        last_scales[j - tail], last_offsets[j - tail] = scales[j], offsets[j]
    if intercept:
        last[d - tail] = 1.0
        last_scales[d - tail] = 1.0
    c = _splats(coefficients)
    smooth = kind == 2
    short = _is_short(coefficients)
    far, one, magic = splat(1e15), splat(1.0), splat(1.5 * 2.0**52)
    low, high, grid = splat(-float(limit)), splat(float(limit)), splat(2.0**bits)
    infinity = splat(math.inf)
    for i in range(rows):
        if not valid[i]:
            continue
        for j in range(tail, d):
            last[j - tail] = X[i, j]
        for k in range(outputs):
            t = splat(residuals[i, k] / radius)
            row = (labels[i] * outputs + k) * padded
            for j in range(0, width, 8):
                if j < tail:
                    z = load(X, i * d + j) * load(scales, j) + load(offsets, j)
                else:
                    z = load(last, 0) * load(last_scales, 0) + load(last_offsets, 0)
                a = z * t
                if smooth:
                    a = _smoothed(a, far, one, c) if short else _smoothed_more(a, far, one, c)
                elif kind == 1:
                    a = gated(a, magnitude(a), one)
                v = _forced(a * grid, low, high, infinity, magic)
                store(totals, row + j, load(totals, row + j) + v)
    sums += totals[:, :, :width]


@compiled
def box_sparse(
    indptr, indices, data, scales, valid, residuals, labels, intercept, radius, kind,
    coefficients, limit, bits, sums,
):  # fmt: skip
    """`box_dense` for canonical CSR rows; every influence maps 0 to 0, so zeros add nothing."""
    rows, outputs = residuals.shape
    last = sums.shape[2] - 1
    for first in range(0, rows, 64):
        stop = min(first + 64, rows)
        origin = indptr[first]
        stored = indptr[stop] - origin
        tile = np.empty(stored + stop - first)
        for k in range(outputs):
            tile[:] = 0.0
            for i in range(first, stop):
                if valid[i]:
                    t = residuals[i, k] / radius
                    for s in range(indptr[i], indptr[i + 1]):
                        tile[s - origin] = (data[s] * scales[indices[s]]) * t
                    tile[stored + i - first] = t
            influence(tile, kind, coefficients, limit, bits)
            for i in range(first, stop):
                for s in range(indptr[i], indptr[i + 1]):
                    sums[labels[i], k, indices[s]] += tile[s - origin]
                if intercept:
                    sums[labels[i], k, last] += tile[stored + i - first]
