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
from privtail.trusted.kernels.lanes import load, splat, total, turn


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


@compiled
def margins_dense(X, scales, offsets, w, b, margins, squares, valid):
    """Margins z.w + b, squared norms of z = x * scales + offsets, and finiteness, row by row.

    X (rows, d) C-contiguous float64; w (d, K); b (K,); margins (rows, K); squares, valid (rows,).
    The order of summation is fixed here: column j adds to lane j % 8, the lanes are folded by
    halves, and the last d % 8 columns are summed from left to right and added at the end.
    """
    rows, d = X.shape
    outputs = w.shape[1]
    tail = d - d % 8
    u = np.empty((outputs, d))
    shift = np.empty(outputs)
    for k in range(outputs):
        shift[k] = b[k]
        for j in range(d):
            u[k, j] = w[j, k] * scales[j]
            shift[k] += w[j, k] * offsets[j]
    for i in range(rows):
        for k in range(outputs):
            s = splat(0.0)
            rest = 0.0
            for j in range(0, tail, 8):
                s += load(X, i * d + j) * load(u, k * d + j)
            for j in range(tail, d):
                rest += X[i, j] * u[k, j]
            margins[i, k] = (total(s) + rest) + shift[k]
        s = splat(0.0)
        rest = 0.0
        for j in range(0, tail, 8):
            z = load(X, i * d + j) * load(scales, j) + load(offsets, j)
            s += z * z
        for j in range(tail, d):
            entry = X[i, j] * scales[j] + offsets[j]
            rest += entry * entry
        squares[i] = total(s) + rest
        valid[i] = True
        if not squares[i] <= 1e300:
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
