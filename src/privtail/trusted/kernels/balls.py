"""Contributions of bounded l2 norm: clipped vectors and second moments, summed on the grid.

Formal guarantee
----------------
Let b be the number of grid bits. `ball_dense`, `ball_sparse` and `moment_sum`: the integer vector
of a row has l2 norm at most 2^b, for every input.

`ball_dense` and `ball_sparse` clip x (outer) r. With q = |z|^2 and p = |r|^2 inside [1e-140, 1e140]
the computed squares carry a relative error below (d + K + 4) 2^-53, so |z||r|f <= R(1 - m) holds
with the margin m >= d 2^-48 to spare; rounding to the nearest grid point adds at most sqrt(D)/2 to
the norm, and m >= 8 sqrt(D) 2^-b pays for it. Outside that range the vector itself is computed from
max-scaled factors and accepted only if its own sum of squares passes.
"""

# mypy: allow-untyped-calls, allow-untyped-defs, allow-untyped-decorators

from __future__ import annotations

import math

import numpy as np

from privtail.compilation import compiled
from privtail.trusted.kernels.lanes import gated, load, splat, store


def margin_of_safety(size: int, bits: int) -> float:
    """Relative room left below the clipping radius for rounding errors of a vector of ``size``."""
    return max(2.0**-40, size * 2.0**-48, 8.0 * math.sqrt(size) * 2.0**-bits)


@compiled
def _clip_row(z, r, count, intercept, radius, bits, margin, out):
    """Slow, safe clipping of (z, 1?) outer r to ``radius`` in grid units; False if it must be 0.

    The vector is built from factors scaled by their largest entry, so nothing under- or overflows
    before its own norm is checked.
    """
    outputs = r.shape[0]
    top_z = 1.0 if intercept else 0.0
    top_r = 0.0
    for j in range(count):
        if not abs(z[j]) <= 1.7976931348623157e308:
            return False
        top_z = max(top_z, abs(z[j]))
    for k in range(outputs):
        if not abs(r[k]) <= 1.7976931348623157e308:
            return False
        top_r = max(top_r, abs(r[k]))
    if top_z == 0.0 or top_r == 0.0:
        return False
    extra = 1 if intercept else 0
    total = 0.0
    for k in range(outputs):
        for j in range(count + extra):
            entry = (z[j] / top_z if j < count else 1.0 / top_z) * (r[k] / top_r)
            out[j, k] = entry
            total += entry * entry
    norm = math.sqrt(total)
    # The length of z outer r, in units of the radius, capped at 1 - margin.
    length = (top_z / radius) * top_r
    if not length <= (1.0 - margin) / norm:
        length = (1.0 - margin) / norm
    check = 0.0
    for k in range(outputs):
        for j in range(count + extra):
            out[j, k] *= length
            check += out[j, k] * out[j, k]
    if not check <= 1.0 - margin / 2.0:
        return False
    grid = 2.0**bits
    for k in range(outputs):
        for j in range(count + extra):
            out[j, k] *= grid
    return True


AHEAD = 1024
"""Rows whose factors are found in one go: fast, and in little memory."""
TILE = 16
"""Rows that are added column by column, so that a register holds what eight columns add up to."""


@compiled
def _clip_factors(squares, residuals, intercept, radius, bits, margin, factors, safe):
    """Factors that bring (z, 1?) outer r into the ball, in grid units, and where they are safe."""
    rows, outputs = residuals.shape
    extra = 1.0 if intercept else 0.0
    limit = radius * (1.0 - margin)
    grid = 2.0**bits
    usual = 1e-70 <= radius <= 1e70
    for i in range(rows):
        factors[i] = 0.0
    for k in range(outputs):
        for i in range(rows):
            factors[i] += residuals[i, k] * residuals[i, k]
    for i in range(rows):
        p, q = factors[i], squares[i] + extra
        norm = math.sqrt(q * p)
        factors[i] = ((1.0 - margin) / norm if norm > limit else 1.0 / radius) * grid
        safe[i] = usual & (q >= 1e-140) & (q <= 1e140) & (p >= 1e-140) & (p <= 1e140)


@compiled
def ball_dense(
    X, scales, offsets, squares, valid, residuals, labels, intercept, radius, bits, margin, sums
):
    """Add clip(z outer r, radius) of every row, on the grid, to ``sums[label]``.

    X (rows, d); residuals (rows, K); sums (blocks, K, d + intercept) float64, changed in place.
    The last columns of a row, and its intercept, fill up one more vector.
    """
    rows, d = X.shape
    blocks, outputs, width = sums.shape
    wide = d - d % 8
    padded = wide + 8
    totals = np.zeros((blocks, outputs, padded))
    all_scales, all_offsets = np.zeros(padded), np.zeros(padded)
    for j in range(d):
        all_scales[j], all_offsets[j] = scales[j], offsets[j]
    if intercept:
        all_offsets[d] = 1.0
    magic = 1.5 * 2.0**52
    M, lanes, end = splat(magic), load(np.arange(8.0), 0), splat(d - wide - 1.0)
    factors = np.empty(AHEAD)
    safe = np.empty(AHEAD, dtype=np.bool_)
    kept, places = np.empty(TILE, np.int64), np.empty(TILE, np.int64)
    pulls = np.empty(TILE)
    z, out = np.empty(width), np.empty((width, outputs))
    for first in range(0, rows, TILE):
        if first % AHEAD == 0:
            ahead = slice(first, first + AHEAD)
            _clip_factors(
                squares[ahead], residuals[ahead], intercept, radius, bits, margin, factors, safe
            )
        count = 0
        for i in range(first, min(first + TILE, rows)):
            if not valid[i]:
                continue
            if safe[i % AHEAD] and i * d + padded <= rows * d:
                kept[count] = i
                count += 1
                continue
            for j in range(d):
                z[j] = X[i, j] * scales[j] + offsets[j]
            if safe[i % AHEAD]:  # one of the last rows: a vector would end behind them
                z[d:] = 1.0
                for k in range(outputs):
                    t = residuals[i, k] * factors[i % AHEAD]
                    for j in range(width):
                        out[j, k] = z[j] * t
            elif not _clip_row(z, residuals[i], d, intercept, radius, bits, margin, out):
                continue
            for k in range(outputs):
                for j in range(width):
                    sums[labels[i], k, j] += (out[j, k] + magic) - magic
        for k in range(outputs):
            for s in range(count):
                pulls[s] = residuals[kept[s], k] * factors[kept[s] % AHEAD]
                places[s] = (labels[kept[s]] * outputs + k) * padded
            for j in range(0, width, 8):
                scale, offset = load(all_scales, j), load(all_offsets, j)
                place, total = j, splat(0.0)
                for s in range(count):
                    if places[s] + j != place:
                        store(totals, place, load(totals, place) + total)
                        place, total = places[s] + j, splat(0.0)
                    x = load(X, kept[s] * d + j)
                    if j >= wide:
                        x = gated(x, lanes, end)
                    total += ((x * scale + offset) * splat(pulls[s]) + M) - M
                store(totals, place, load(totals, place) + total)
    sums += totals[:, :, :width]


@compiled
def ball_sparse(
    indptr, indices, data, scales, squares, valid, residuals, labels, intercept, radius, bits,
    margin, sums,
):  # fmt: skip
    """`ball_dense` for canonical CSR rows."""
    rows, outputs = residuals.shape
    last = sums.shape[2] - 1
    magic = 1.5 * 2.0**52
    factors = np.empty(AHEAD)
    safe = np.empty(AHEAD, dtype=np.bool_)
    for i in range(rows):
        at = i % AHEAD
        if at == 0:
            ahead = slice(i, i + AHEAD)
            _clip_factors(
                squares[ahead], residuals[ahead], intercept, radius, bits, margin, factors, safe
            )
        if not valid[i]:
            continue
        start, stop = indptr[i], indptr[i + 1]
        block = labels[i]
        if safe[at]:
            for k in range(outputs):
                t = residuals[i, k] * factors[at]
                for s in range(start, stop):
                    v = (data[s] * scales[indices[s]]) * t
                    sums[block, k, indices[s]] += (v + magic) - magic
                if intercept:
                    sums[block, k, last] += (t + magic) - magic
        else:
            count = stop - start
            z = np.empty(count)
            for s in range(count):
                z[s] = data[start + s] * scales[indices[start + s]]
            out = np.empty((count + 1, outputs))
            if _clip_row(z, residuals[i], count, intercept, radius, bits, margin, out):
                for k in range(outputs):
                    for s in range(count):
                        sums[block, k, indices[start + s]] += (out[s, k] + magic) - magic
                    if intercept:
                        sums[block, k, last] += (out[count, k] + magic) - magic


@compiled
def moment_sum(rows, valid, radius, bits, margin, sums):
    """Add the upper triangle of clip(z) clip(z)^T / radius^2, off-diagonals times sqrt(2).

    rows (n, p) float64; sums (p (p + 1) / 2,) float64. The l2 norm of a row's vector is the
    squared norm of its clipped z, at most 1 - margin.
    """
    n, p = rows.shape
    u = np.empty((p, 1))
    z = u.reshape(p)
    one = np.ones(1)
    root = math.sqrt(2.0)
    magic = 1.5 * 2.0**52
    grid = 2.0**bits
    for i in range(n):
        if not valid[i]:
            continue
        if not _clip_row(rows[i], one, p, False, radius, 0, margin, u):
            continue
        t = 0
        for j in range(p):
            x, others, beside = z[j], z[j + 1 :], sums[t + 1 : t + p - j]
            sums[t] += (x * x * grid + magic) - magic
            for k in range(len(others)):
                beside[k] += (x * others[k] * grid * root + magic) - magic
            t += p - j
