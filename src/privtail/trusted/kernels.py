"""Compiled tiles: blocks of rows -> bounded contributions -> exact sums on an integer grid.

Formal guarantee
----------------
Let b be the number of grid bits. Every kernel turns one row into integers that depend on that row
and on public arguments alone (summation orders are fixed in the source, no fast-math), and

* `ball_sum` and `moment_sum`: the integer vector of a row has l2 norm at most 2^b;
* `box_sum`: every integer of a row lies in [-limit, limit], limit <= 2^b;

for every input, NaN, infinities and subnormals included. A row that holds a non-finite number, or
whose target is not finite, contributes 0. Integers are accumulated as doubles inside one block of
at most 2^18 rows (all partial sums stay below 2^53, so nothing is rounded) and returned as int64.

`ball_sum` clips x (outer) r. With q = |z|^2 and p = |r|^2 inside [1e-140, 1e140] the computed
squares carry a relative error below (d + K + 4) 2^-53, so |z||r|f <= R(1 - m) holds with the
margin m >= d 2^-48 to spare; rounding to the nearest grid point adds at most sqrt(D)/2 to the
norm, and m >= 8 sqrt(D) 2^-b pays for it. Outside that range the vector itself is computed from
max-scaled factors and accepted only if its own sum of squares passes.
"""

from __future__ import annotations

import math

import numpy as np

from privtail.compilation import compiled

CLAMP, TRUNCATE, CATONI = 0, 1, 2
"""Influence functions of `box_sum`."""

MAGIC = 1.5 * 2.0**52
"""(h + MAGIC) - MAGIC rounds |h| <= 2^51 to the nearest integer, ties to even."""


def margin_of_safety(size: int, bits: int) -> float:
    """Relative room left below the clipping radius for rounding errors of a vector of ``size``."""
    return max(2.0**-40, size * 2.0**-48, 8.0 * math.sqrt(size) * 2.0**-bits)


@compiled
def margins_dense(X, scales, offsets, w, b, margins, squares, valid):  # type: ignore[no-untyped-def]
    """Margins z.w + b, squared norms of z = x * scales + offsets, and finiteness, row by row.

    X (rows, d) C-contiguous float64; w (d, K); b (K,); margins (rows, K); squares, valid (rows,).
    Four explicit lanes fix the order of summation.
    """
    rows, d = X.shape
    outputs = w.shape[1]
    tail = d - d % 4
    u = np.empty(d)
    for k in range(outputs):
        shift = b[k]
        for j in range(d):
            u[j] = w[j, k] * scales[j]
            shift += w[j, k] * offsets[j]
        for i in range(rows):
            s0 = 0.0
            s1 = 0.0
            s2 = 0.0
            s3 = 0.0
            for j in range(0, tail, 4):
                s0 += X[i, j] * u[j]
                s1 += X[i, j + 1] * u[j + 1]
                s2 += X[i, j + 2] * u[j + 2]
                s3 += X[i, j + 3] * u[j + 3]
            for j in range(tail, d):
                s0 += X[i, j] * u[j]
            margins[i, k] = ((s0 + s1) + (s2 + s3)) + shift
    for i in range(rows):
        s0 = 0.0
        s1 = 0.0
        s2 = 0.0
        s3 = 0.0
        for j in range(0, tail, 4):
            z0 = X[i, j] * scales[j] + offsets[j]
            z1 = X[i, j + 1] * scales[j + 1] + offsets[j + 1]
            z2 = X[i, j + 2] * scales[j + 2] + offsets[j + 2]
            z3 = X[i, j + 3] * scales[j + 3] + offsets[j + 3]
            s0 += z0 * z0
            s1 += z1 * z1
            s2 += z2 * z2
            s3 += z3 * z3
        for j in range(tail, d):
            z0 = X[i, j] * scales[j] + offsets[j]
            s0 += z0 * z0
        squares[i] = (s0 + s1) + (s2 + s3)
        valid[i] = True
        if not squares[i] <= 1e300:
            for j in range(d):
                if not abs(X[i, j]) <= 1.7976931348623157e308:
                    valid[i] = False


@compiled
def margins_sparse(indptr, indices, data, scales, w, b, margins, squares, valid):  # type: ignore[no-untyped-def]
    """`margins_dense` for canonical CSR rows, to the same bits (no offsets: they fill the zeros).

    An entry goes to the lane that its column has in a dense row; adding the zeros changes nothing.
    """
    rows = indptr.shape[0] - 1
    d, outputs = w.shape
    tail = d - d % 4
    lanes = np.empty(4)
    for i in range(rows):
        valid[i] = True
        for k in range(outputs):
            lanes[:] = 0.0
            for t in range(indptr[i], indptr[i + 1]):
                j = indices[t]
                lanes[j % 4 if j < tail else 0] += data[t] * (w[j, k] * scales[j])
            margins[i, k] = ((lanes[0] + lanes[1]) + (lanes[2] + lanes[3])) + b[k]
        lanes[:] = 0.0
        for t in range(indptr[i], indptr[i + 1]):
            j = indices[t]
            z = data[t] * scales[j]
            lanes[j % 4 if j < tail else 0] += z * z
            if not abs(data[t]) <= 1.7976931348623157e308:
                valid[i] = False
        squares[i] = (lanes[0] + lanes[1]) + (lanes[2] + lanes[3])


@compiled
def merge_row(indices, data, order):  # type: ignore[no-untyped-def]
    """Sum the entries of one row that share a column, in storage order; returns how many remain.

    ``order`` sorts the row by column and keeps the storage order of equal columns. The merged
    columns and sums replace the first entries of ``indices`` and ``data``.
    """
    columns = indices[order]
    entries = data[order]
    kept = 0
    for t in range(columns.shape[0]):
        if t > 0 and columns[t] == indices[kept - 1]:
            data[kept - 1] += entries[t]
        else:
            indices[kept] = columns[t]
            data[kept] = entries[t]
            kept += 1
    return kept


@compiled
def _clip_row(z, r, count, intercept, radius, bits, margin, out):  # type: ignore[no-untyped-def]
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


@compiled
def ball_dense(  # type: ignore[no-untyped-def]
    X, scales, offsets, squares, valid, residuals, labels, intercept, radius, bits, margin, sums
):
    """Add clip(z outer r, radius) of every row, on the grid, to ``sums[label]``.

    X (rows, d); residuals (rows, K); sums (blocks, d + intercept, K) float64, changed in place.
    """
    rows, d = X.shape
    outputs = residuals.shape[1]
    grid = 2.0**bits
    extra = 1 if intercept else 0
    magic = 1.5 * 2.0**52
    z = np.empty(d)
    out = np.empty((d + extra, outputs))
    for i in range(rows):
        if not valid[i]:
            continue
        p = 0.0
        for k in range(outputs):
            p += residuals[i, k] * residuals[i, k]
        q = squares[i] + extra
        block = labels[i]
        if 1e-140 <= q <= 1e140 and 1e-140 <= p <= 1e140 and 1e-70 <= radius <= 1e70:
            norm = math.sqrt(q) * math.sqrt(p)
            limit = radius * (1.0 - margin)
            factor = 1.0 if norm <= limit else limit / norm
            for k in range(outputs):
                t = (residuals[i, k] * factor / radius) * grid
                if outputs == 1:
                    for j in range(d):
                        v = (X[i, j] * scales[j] + offsets[j]) * t
                        sums[block, j, 0] += (v + magic) - magic
                else:
                    for j in range(d):
                        v = (X[i, j] * scales[j] + offsets[j]) * t
                        sums[block, j, k] += (v + magic) - magic
                if intercept:
                    sums[block, d, k] += (t + magic) - magic
        else:
            for j in range(d):
                z[j] = X[i, j] * scales[j] + offsets[j]
            if _clip_row(z, residuals[i], d, intercept, radius, bits, margin, out):
                for j in range(d + extra):
                    for k in range(outputs):
                        sums[block, j, k] += (out[j, k] + magic) - magic


@compiled
def ball_sparse(  # type: ignore[no-untyped-def]
    indptr, indices, data, scales, squares, valid, residuals, labels, intercept, radius, bits,
    margin, sums,
):  # fmt: skip
    """`ball_dense` for canonical CSR rows."""
    rows = indptr.shape[0] - 1
    outputs = residuals.shape[1]
    grid = 2.0**bits
    extra = 1 if intercept else 0
    last = sums.shape[1] - 1
    magic = 1.5 * 2.0**52
    for i in range(rows):
        if not valid[i]:
            continue
        p = 0.0
        for k in range(outputs):
            p += residuals[i, k] * residuals[i, k]
        start, stop = indptr[i], indptr[i + 1]
        q = squares[i] + extra
        block = labels[i]
        if 1e-140 <= q <= 1e140 and 1e-140 <= p <= 1e140 and 1e-70 <= radius <= 1e70:
            norm = math.sqrt(q) * math.sqrt(p)
            limit = radius * (1.0 - margin)
            factor = 1.0 if norm <= limit else limit / norm
            for k in range(outputs):
                t = (residuals[i, k] * factor / radius) * grid
                for s in range(start, stop):
                    v = (data[s] * scales[indices[s]]) * t
                    sums[block, indices[s], k] += (v + magic) - magic
                if intercept:
                    sums[block, last, k] += (t + magic) - magic
        else:
            count = stop - start
            z = np.empty(count)
            for s in range(count):
                z[s] = data[start + s] * scales[indices[start + s]]
            out = np.empty((count + extra, outputs))
            if _clip_row(z, residuals[i], count, intercept, radius, bits, margin, out):
                for k in range(outputs):
                    for s in range(count):
                        sums[block, indices[start + s], k] += (out[s, k] + magic) - magic
                    if intercept:
                        sums[block, last, k] += (out[count, k] + magic) - magic


@compiled
def influence(entries, kind, coefficients, limit, bits):  # type: ignore[no-untyped-def]
    """Force a flat array of entries (in units of the range) onto grid integers in [-limit, limit].

    ``coefficients`` are those of P in h(a) = t P(2 t^2 - 1), t = a / sqrt(1 + a^2), lowest first
    (`CATONI`; at least one). NaN becomes 0. Changed in place.
    """
    grid = 2.0**bits
    magic = 1.5 * 2.0**52
    n = entries.shape[0]
    if kind == 1:
        for i in range(n):
            a = entries[i]
            entries[i] = a if abs(a) <= 1.0 else 0.0
    elif kind == 2:
        degree = coefficients.shape[0]
        if degree == 16:
            c0, c1, c2, c3 = coefficients[0], coefficients[1], coefficients[2], coefficients[3]
            c4, c5, c6, c7 = coefficients[4], coefficients[5], coefficients[6], coefficients[7]
            c8, c9, c10, c11 = coefficients[8], coefficients[9], coefficients[10], coefficients[11]
            c12, c13, c14, c15 = (
                coefficients[12], coefficients[13], coefficients[14], coefficients[15],
            )  # fmt: skip
            for i in range(n):
                a = entries[i]
                a = a if a < 1e150 else 1e150
                a = a if a > -1e150 else -1e150
                s = a * a
                q = 1.0 + s
                x = (s - 1.0) / q
                p = c14 + x * c15
                p = c13 + x * p
                p = c12 + x * p
                p = c11 + x * p
                p = c10 + x * p
                p = c9 + x * p
                p = c8 + x * p
                p = c7 + x * p
                p = c6 + x * p
                p = c5 + x * p
                p = c4 + x * p
                p = c3 + x * p
                p = c2 + x * p
                p = c1 + x * p
                p = c0 + x * p
                h = (a / math.sqrt(q)) * p
                entries[i] = h if entries[i] == entries[i] else 0.0
        else:
            x_ = np.empty(n)
            p_ = np.empty(n)
            for i in range(n):
                a = entries[i]
                a = a if a < 1e150 else 1e150
                a = a if a > -1e150 else -1e150
                s = a * a
                entries[i] = a / math.sqrt(1.0 + s) if entries[i] == entries[i] else 0.0
                x_[i] = (s - 1.0) / (1.0 + s)
                p_[i] = coefficients[degree - 1]
            for c in range(degree - 2, -1, -1):
                coefficient = coefficients[c]
                for i in range(n):
                    p_[i] = p_[i] * x_[i] + coefficient
            for i in range(n):
                entries[i] *= p_[i]
    for i in range(n):
        v = entries[i]
        v = v if v == v else 0.0
        v = v if v < 1.0 else 1.0
        v = v if v > -1.0 else -1.0
        v = ((v * grid) + magic) - magic
        v = v if v < limit else limit
        entries[i] = v if v > -limit else -limit


@compiled
def box_dense(  # type: ignore[no-untyped-def]
    X, scales, offsets, valid, residuals, labels, intercept, radius, kind, coefficients, limit,
    bits, sums,
):  # fmt: skip
    """Add influence(z_j r_k / radius) of every entry, on the grid, to ``sums[label, j, k]``."""
    rows, d = X.shape
    outputs = residuals.shape[1]
    extra = 1 if intercept else 0
    width = d + extra
    tile = max(1, min(64, 4096 // width))
    buffer = np.empty(tile * width)
    for first in range(0, rows, tile):
        count = min(tile, rows - first)
        for k in range(outputs):
            for i in range(count):
                row = first + i
                r = residuals[row, k] if valid[row] else 0.0
                start = i * width
                for j in range(d):
                    buffer[start + j] = ((X[row, j] * scales[j] + offsets[j]) * r) / radius
                if intercept:
                    buffer[start + d] = r / radius
                if not valid[row]:
                    for j in range(width):
                        buffer[start + j] = 0.0
            influence(buffer[: count * width], kind, coefficients, limit, bits)
            for i in range(count):
                block = labels[first + i]
                start = i * width
                for j in range(width):
                    sums[block, j, k] += buffer[start + j]


@compiled
def box_sparse(  # type: ignore[no-untyped-def]
    indptr, indices, data, scales, valid, residuals, labels, intercept, radius, kind,
    coefficients, limit, bits, sums,
):  # fmt: skip
    """`box_dense` for canonical CSR rows; every influence maps 0 to 0, so zeros add nothing."""
    rows = indptr.shape[0] - 1
    outputs = residuals.shape[1]
    extra = 1 if intercept else 0
    last = sums.shape[1] - 1
    for i in range(rows):
        if not valid[i]:
            continue
        start, stop = indptr[i], indptr[i + 1]
        count = stop - start
        block = labels[i]
        buffer = np.empty(count + extra)
        for k in range(outputs):
            r = residuals[i, k]
            for s in range(count):
                buffer[s] = ((data[start + s] * scales[indices[start + s]]) * r) / radius
            if intercept:
                buffer[count] = r / radius
            influence(buffer, kind, coefficients, limit, bits)
            for s in range(count):
                sums[block, indices[start + s], k] += buffer[s]
            if intercept:
                sums[block, last, k] += buffer[count]


@compiled
def moment_sum(rows, valid, radius, bits, margin, sums):  # type: ignore[no-untyped-def]
    """Add the upper triangle of clip(z) clip(z)^T / radius^2, off-diagonals times sqrt(2).

    rows (n, p) float64; sums (p (p + 1) / 2,) float64. The l2 norm of a row's vector is the
    squared norm of its clipped z, at most 1 - margin.
    """
    n, p = rows.shape
    u = np.empty((p, 1))
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
            for k in range(j, p):
                v = u[j, 0] * u[k, 0] * grid
                if k > j:
                    v *= root
                sums[t] += (v + magic) - magic
                t += 1
