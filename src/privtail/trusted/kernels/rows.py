"""Blocks of rows -> copies, margins, norms: each row by itself.

Formal guarantee
----------------
What a row gives depends on that row and on public arguments alone, to the bit: orders of summation
are fixed in the source. No range is enforced here.
"""

# mypy: allow-untyped-calls, allow-untyped-defs, allow-untyped-decorators

from __future__ import annotations

import numpy as np

from privtail.compilation import compiled
from privtail.trusted.kernels.lanes import load, splat, store, totals, turn


@compiled
def rows_of(columns, start, out):
    """Copy rows ``start`` onwards of a column-major array to ``out`` (rows, d), both float64.

    ``columns`` (d, n) is the transpose of the array, C-contiguous.
    """
    d, n = columns.shape
    rows = out.shape[0]
    wide, long = d - d % 8, rows - rows % 8
    for j in range(0, wide, 8):
        for i in range(0, long, 8):
            turn(columns, j * n + start + i, n, out, i * d + j, d)
    for j in range(d):
        for i in range(long if j < wide else 0, rows):
            out[i, j] = columns[j, start + i]


@compiled
def logarithms(x, out):
    """Natural logarithms of positive finite numbers (rows,), each by itself to the bit."""
    # 2 artanh((m - 1) / (m + 1)) of the mantissa m, arithmetic alone: a vectorised library function
    # may round the last rows of a block differently from the first ones.
    for i in range(x.size):
        v, shift = x[i], 1023
        if v < 2.2250738585072014e-308:
            v, shift = v * 18014398509481984.0, 1077
        bits = np.float64(v).view(np.int64)
        k = (bits >> 52) - shift
        m = np.int64((bits & 4503599627370495) | 4607182418800017408).view(np.float64)
        if m > 1.4142135623730951:
            m, k = 0.5 * m, k + 1
        u = (m - 1.0) / (m + 1.0)
        q, p = u * u, 0.0
        for j in range(25, 1, -2):
            p = (p + 1.0 / j) * q
        e = np.float64(k)
        out[i] = e * 6.93147180369123816490e-01 + (
            (2.0 * u * p + e * 1.90821492927058770002e-10) + 2.0 * u
        )


@compiled(inline=True)
def _eight_margins(X, at, d, u, k, tile):
    """Sums of products with ``u[k]`` of the eight rows of ``X.flat[at:]``."""
    wide = d - d % 8
    a = b = c = e = f = g = h = i = rest = splat(0.0)
    for j in range(0, wide, 8):
        own, place = load(u, k * d + j), at + j
        a += load(X, place) * own
        b += load(X, place + d) * own
        c += load(X, place + 2 * d) * own
        e += load(X, place + 3 * d) * own
        f += load(X, place + 4 * d) * own
        g += load(X, place + 5 * d) * own
        h += load(X, place + 6 * d) * own
        i += load(X, place + 7 * d) * own
    for j in range(wide, d):
        rest += load(tile, 8 * (j - wide)) * splat(u[k, j])
    return totals(a, b, c, e, f, g, h, i) + rest


@compiled(inline=True)
def _squared(x, scale, offset):
    z = x * scale + offset
    return z * z


@compiled(inline=True)
def _eight_squares(X, at, d, scales, offsets, tile):
    """Squared norms of the mapped eight rows of ``X.flat[at:]``."""
    wide = d - d % 8
    a = b = c = e = f = g = h = i = rest = splat(0.0)
    for j in range(0, wide, 8):
        scale, offset, place = load(scales, j), load(offsets, j), at + j
        a += _squared(load(X, place), scale, offset)
        b += _squared(load(X, place + d), scale, offset)
        c += _squared(load(X, place + 2 * d), scale, offset)
        e += _squared(load(X, place + 3 * d), scale, offset)
        f += _squared(load(X, place + 4 * d), scale, offset)
        g += _squared(load(X, place + 5 * d), scale, offset)
        h += _squared(load(X, place + 6 * d), scale, offset)
        i += _squared(load(X, place + 7 * d), scale, offset)
    for j in range(wide, d):
        rest += _squared(load(tile, 8 * (j - wide)), splat(scales[j]), splat(offsets[j]))
    return totals(a, b, c, e, f, g, h, i) + rest


@compiled
def _in_eights(X, rows, scales, offsets, u, shift, margins, squares):
    """Margins and squared norms of the first ``rows``, a multiple of 8: of eight side by side.

    Reads up to seven numbers behind these rows.
    """
    outputs, d = u.shape
    tile, found = np.empty((8, 8)), np.empty((8, 1))
    for i in range(0, rows, 8):
        if d % 8:
            turn(X, i * d + d - d % 8, d, tile, 0, 8)
        for k in range(outputs):
            lanes = _eight_margins(X, i * d, d, u, k, tile) + splat(shift[k])
            if outputs == 1:
                store(margins, i, lanes)
            else:
                store(found, 0, lanes)
                for r in range(8):
                    margins[i + r, k] = found[r, 0]
        store(squares, i, _eight_squares(X, i * d, d, scales, offsets, tile))


@compiled
def margins_dense(X, scales, offsets, w, b, margins, squares, valid):
    """Margins z.w + b, squared norms of z = x * scales + offsets, and finiteness, row by row.

    X (rows, d) C-contiguous float64; w (d, K); b (K,); margins (rows, K); squares, valid (rows,).
    The order of summation is fixed here: column j adds to lane j % 8, the lanes are folded by
    halves, and the last d % 8 columns are summed from left to right and added at the end.
    """
    rows, d = X.shape
    outputs = w.shape[1]
    u = np.empty((outputs, d))
    shift = np.empty(outputs)
    for k in range(outputs):
        shift[k] = b[k]
        for j in range(d):
            u[k, j] = w[j, k] * scales[j]
            shift[k] += w[j, k] * offsets[j]
    whole = rows - rows % 8
    while d % 8 and whole and (rows - whole) * d < 7:
        whole -= 8
    _in_eights(X, whole, scales, offsets, u, shift, margins, squares)
    last = np.zeros((24, d))
    last_margins, last_squares = np.empty((16, outputs)), np.empty(16)
    for i in range(whole, rows):
        for j in range(d):
            last[i - whole, j] = X[i, j]
    _in_eights(last, 16, scales, offsets, u, shift, last_margins, last_squares)
    for i in range(whole, rows):
        squares[i] = last_squares[i - whole]
        for k in range(outputs):
            margins[i, k] = last_margins[i - whole, k]
    for i in range(rows):
        valid[i] = squares[i] <= 1e300
    for i in range(rows):
        if not valid[i]:
            valid[i] = True
            for j in range(d):
                if not abs(X[i, j]) <= 1.7976931348623157e308:
                    valid[i] = False


@compiled
def margins_sparse(indptr, indices, data, scales, w, b, margins, squares, valid):
    """`margins_dense` for canonical CSR rows, to the same bits (no offsets: they fill the zeros).

    An entry goes to the lane that its column has in a dense row; adding the zeros changes nothing.
    """
    rows = indptr.shape[0] - 1
    d, outputs = w.shape
    tail = d - d % 8
    u = np.empty((outputs, d))
    for k in range(outputs):
        for j in range(d):
            u[k, j] = w[j, k] * scales[j]
    s = np.empty(9)
    for i in range(rows):
        valid[i] = True
        for k in range(outputs):
            s[:] = 0.0
            for t in range(indptr[i], indptr[i + 1]):
                j = indices[t]
                s[j & 7 if j < tail else 8] += data[t] * u[k, j]
            lanes = ((s[0] + s[4]) + (s[2] + s[6])) + ((s[1] + s[5]) + (s[3] + s[7]))
            margins[i, k] = (lanes + s[8]) + b[k]
        s[:] = 0.0
        for t in range(indptr[i], indptr[i + 1]):
            j = indices[t]
            z = data[t] * scales[j]
            s[j & 7 if j < tail else 8] += z * z
            if not abs(data[t]) <= 1.7976931348623157e308:
                valid[i] = False
        lanes = ((s[0] + s[4]) + (s[2] + s[6])) + ((s[1] + s[5]) + (s[3] + s[7]))
        squares[i] = lanes + s[8]


@compiled
def merge_row(indices, data, order):
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
