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

# mypy: allow-untyped-calls, allow-untyped-defs, allow-untyped-decorators

from __future__ import annotations

import functools
import math
import operator

import numpy as np

from privtail.compilation import compiled, intrinsic

CLAMP, TRUNCATE, CATONI = 0, 1, 2
"""Influence functions of `box_sum`."""

FRACTION_DEGREE = 12
"""Coefficients of each of the two polynomials of the smoothed influence."""

MAGIC = 1.5 * 2.0**52
"""(h + MAGIC) - MAGIC rounds |h| <= 2^51 to the nearest integer, ties to even."""


def margin_of_safety(size: int, bits: int) -> float:
    """Relative room left below the clipping radius for rounding errors of a vector of ``size``."""
    return max(2.0**-40, size * 2.0**-48, 8.0 * math.sqrt(size) * 2.0**-bits)


LANES = 8
"""Doubles in a vector.

A sum of many numbers is fast only if several run side by side, and a compiler may not reorder the
additions of a plain loop. With vectors the source says which numbers are added to which: the same
IEEE operations on every processor, in one register where it has wide ones.
"""


@functools.cache
def _lanes():
    """Numba's type of eight doubles, with its additions, subtractions and products."""
    from llvmlite import ir
    from numba import types
    from numba.extending import lower_builtin, models, register_model, type_callable

    class Lanes(types.Type):
        def __init__(self):
            super().__init__(name="Lanes")

    @register_model(Lanes)
    class _Model(models.PrimitiveModel):
        def __init__(self, dmm, fe_type):
            super().__init__(dmm, fe_type, ir.VectorType(ir.DoubleType(), LANES))

    lanes = Lanes()
    for symbol, instruction in (
        (operator.add, "fadd"), (operator.sub, "fsub"), (operator.mul, "fmul"),
        (operator.iadd, "fadd"),
    ):  # fmt: skip

        @type_callable(symbol)
        def _typed(context):
            return lambda a, b: lanes if a == b == lanes else None

        @lower_builtin(symbol, lanes, lanes)
        def _lowered(context, builder, signature, args, instruction=instruction):
            return getattr(builder, instruction)(*args)

    return lanes


def _is_flat(array):
    from numba import types

    return isinstance(array, types.Array) and (array.dtype, array.layout) == (types.float64, "C")


def _pointer(context, builder, array_type, array, index):
    from llvmlite import ir
    from numba.np.arrayobj import make_array

    data = make_array(array_type)(context, builder, array).data
    vector = ir.VectorType(ir.DoubleType(), LANES).as_pointer()
    return builder.bitcast(builder.gep(data, [index]), vector)


@intrinsic
def load(typingctx, array, index):
    """Lanes of ``array.flat[index : index + 8]``, C-contiguous doubles; not checked."""

    def lower(context, builder, signature, args):
        return builder.load(_pointer(context, builder, signature.args[0], *args), align=8)

    return (_lanes()(array, index), lower) if _is_flat(array) else None


@intrinsic
def store(typingctx, array, index, lanes):
    """Write lanes to ``array.flat[index : index + 8]``, C-contiguous doubles; not checked."""
    from numba import types

    def lower(context, builder, signature, args):
        builder.store(args[2], _pointer(context, builder, signature.args[0], *args[:2]), align=8)
        return context.get_dummy_value()

    return (types.void(array, index, lanes), lower) if _is_flat(array) and array.mutable else None


@intrinsic
def splat(typingctx, number):
    """Lanes that all hold ``number``."""
    from numba import types

    def lower(context, builder, signature, args):
        from llvmlite import ir

        lanes = ir.Constant(ir.VectorType(ir.DoubleType(), LANES), ir.Undefined)
        for k in range(LANES):
            lanes = builder.insert_element(lanes, args[0], ir.IntType(32)(k))
        return lanes

    return _lanes()(types.float64), lower


@intrinsic
def total(typingctx, lanes):
    """Sum of the lanes, folded by halves: ((0+4) + (2+6)) + ((1+5) + (3+7))."""
    from numba import types

    def lower(context, builder, signature, args):
        from llvmlite import ir

        parts = [builder.extract_element(args[0], ir.IntType(32)(k)) for k in range(LANES)]
        while len(parts) > 1:
            half = len(parts) // 2
            parts = [builder.fadd(parts[k], parts[k + half]) for k in range(half)]
        return parts[0]

    return types.float64(lanes), lower


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


@compiled
def _clip_factors(squares, residuals, intercept, radius, bits, margin, factors, safe):
    """Factors that bring (z, 1?) outer r into the ball, in grid units, and where they are safe."""
    rows, outputs = residuals.shape
    extra = 1.0 if intercept else 0.0
    limit = radius * (1.0 - margin)
    grid = 2.0**bits
    usual = 1e-70 <= radius <= 1e70
    for i in range(rows):
        p = 0.0
        for k in range(outputs):
            p += residuals[i, k] * residuals[i, k]
        q = squares[i] + extra
        norm = math.sqrt(q * p)
        factors[i] = ((1.0 - margin) / norm if norm > limit else 1.0 / radius) * grid
        safe[i] = usual & (q >= 1e-140) & (q <= 1e140) & (p >= 1e-140) & (p <= 1e140)


@compiled
def ball_dense(
    X, scales, offsets, squares, valid, residuals, labels, intercept, radius, bits, margin, sums
):
    """Add clip(z outer r, radius) of every row, on the grid, to ``sums[label]``.

    X (rows, d); residuals (rows, K); sums (blocks, K, d + intercept) float64, changed in place.
    """
    rows, d = X.shape
    outputs, width = sums.shape[1:]
    tail = d - d % 8
    magic = 1.5 * 2.0**52
    M = splat(magic)
    factors = np.empty(rows)
    safe = np.empty(rows, dtype=np.bool_)
    _clip_factors(squares, residuals, intercept, radius, bits, margin, factors, safe)
    z = np.empty(d)
    out = np.empty((width, outputs))
    for i in range(rows):
        if not valid[i]:
            continue
        block = labels[i]
        if safe[i]:
            for k in range(outputs):
                row = (block * outputs + k) * width
                t = residuals[i, k] * factors[i]
                for j in range(0, tail, 8):
                    v = (load(X, i * d + j) * load(scales, j) + load(offsets, j)) * splat(t)
                    store(sums, row + j, load(sums, row + j) + ((v + M) - M))
                for j in range(tail, d):
                    entry = (X[i, j] * scales[j] + offsets[j]) * t
                    sums[block, k, j] += (entry + magic) - magic
                if intercept:
                    sums[block, k, d] += (t + magic) - magic
        else:
            for j in range(d):
                z[j] = X[i, j] * scales[j] + offsets[j]
            if _clip_row(z, residuals[i], d, intercept, radius, bits, margin, out):
                for k in range(outputs):
                    for j in range(width):
                        sums[block, k, j] += (out[j, k] + magic) - magic


@compiled
def ball_sparse(
    indptr, indices, data, scales, squares, valid, residuals, labels, intercept, radius, bits,
    margin, sums,
):  # fmt: skip
    """`ball_dense` for canonical CSR rows."""
    rows, outputs = residuals.shape
    last = sums.shape[2] - 1
    magic = 1.5 * 2.0**52
    factors = np.empty(rows)
    safe = np.empty(rows, dtype=np.bool_)
    _clip_factors(squares, residuals, intercept, radius, bits, margin, factors, safe)
    for i in range(rows):
        if not valid[i]:
            continue
        start, stop = indptr[i], indptr[i + 1]
        block = labels[i]
        if safe[i]:
            for k in range(outputs):
                t = residuals[i, k] * factors[i]
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
def _cubic(c0, c1, c2, c3, m, m2):
    return (c0 + c1 * m) + (c2 + c3 * m) * m2


@compiled
def _forced(v, grid, limit):
    """The grid integer in [-limit, limit] nearest to ``v * grid``; 0 for NaN."""
    v = v * grid
    v = v if v == v else 0.0
    v = v if v < limit else limit
    v = v if v > -limit else -limit
    return (v + 1.5 * 2.0**52) - 1.5 * 2.0**52


@compiled
def influence(entries, kind, coefficients, limit, bits):
    """Force a flat array of entries (in units of the range) onto grid integers in [-limit, limit].

    ``coefficients`` are those of h(a) = m P(m) / (1 + m Q(m)), m = |a|: twelve of P, then twelve of
    Q, lowest first (`CATONI`). NaN becomes 0. Changed in place.
    """
    grid = 2.0**bits
    limit = float(limit)
    n = entries.shape[0]
    if kind == 0:
        for i in range(n):
            entries[i] = _forced(entries[i], grid, limit)
        return
    if kind == 1:
        for i in range(n):
            a = entries[i]
            entries[i] = _forced(a if abs(a) <= 1.0 else 0.0, grid, limit)
        return
    c = coefficients
    p0, p1, p2, p3, p4, p5 = c[0], c[1], c[2], c[3], c[4], c[5]
    p6, p7, p8, p9, p10, p11 = c[6], c[7], c[8], c[9], c[10], c[11]
    q0, q1, q2, q3, q4, q5 = c[12], c[13], c[14], c[15], c[16], c[17]
    q6, q7, q8, q9, q10, q11 = c[18], c[19], c[20], c[21], c[22], c[23]
    short = not (p8 or p9 or p10 or p11 or q8 or q9 or q10 or q11)
    if short:
        for i in range(n):
            a = entries[i]
            m = abs(a) if abs(a) < 1e15 else 1e15
            m2 = m * m
            m4 = m2 * m2
            P = _cubic(p0, p1, p2, p3, m, m2) + _cubic(p4, p5, p6, p7, m, m2) * m4
            Q = _cubic(q0, q1, q2, q3, m, m2) + _cubic(q4, q5, q6, q7, m, m2) * m4
            h = math.copysign((m * P) / (1.0 + m * Q), a)
            entries[i] = _forced(h if a == a else 0.0, grid, limit)
        return
    for i in range(n):
        a = entries[i]
        m = abs(a) if abs(a) < 1e15 else 1e15
        m2 = m * m
        m4 = m2 * m2
        P = _cubic(p0, p1, p2, p3, m, m2) + _cubic(p4, p5, p6, p7, m, m2) * m4
        Q = _cubic(q0, q1, q2, q3, m, m2) + _cubic(q4, q5, q6, q7, m, m2) * m4
        P += _cubic(p8, p9, p10, p11, m, m2) * (m4 * m4)
        Q += _cubic(q8, q9, q10, q11, m, m2) * (m4 * m4)
        h = math.copysign((m * P) / (1.0 + m * Q), a)
        entries[i] = _forced(h if a == a else 0.0, grid, limit)


@compiled
def box_dense(
    X, scales, offsets, valid, residuals, labels, intercept, radius, kind, coefficients, limit,
    bits, sums,
):  # fmt: skip
    """Add influence(z_j r_k / radius) of every entry, on the grid, to ``sums[label, k, j]``."""
    rows, d = X.shape
    outputs, width = sums.shape[1:]
    tail = d - d % 8
    size = max(1, 2048 // width)
    tile = np.empty(size * width)
    for first in range(0, rows, size):
        stop = min(first + size, rows)
        for k in range(outputs):
            for i in range(first, stop):
                start = (i - first) * width
                t = residuals[i, k] / radius
                for j in range(0, tail, 8):
                    z = load(X, i * d + j) * load(scales, j) + load(offsets, j)
                    store(tile, start + j, z * splat(t))
                for j in range(tail, d):
                    tile[start + j] = (X[i, j] * scales[j] + offsets[j]) * t
                if intercept:
                    tile[start + d] = t
            influence(tile[: (stop - first) * width], kind, coefficients, limit, bits)
            for i in range(first, stop):
                if valid[i]:
                    start = (i - first) * width
                    row = (labels[i] * outputs + k) * width
                    for j in range(0, tail, 8):
                        store(sums, row + j, load(sums, row + j) + load(tile, start + j))
                    for j in range(tail, width):
                        sums[labels[i], k, j] += tile[start + j]


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


@compiled
def moment_sum(rows, valid, radius, bits, margin, sums):
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
