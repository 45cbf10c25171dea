"""Compiled tiles: blocks of rows -> bounded contributions -> exact sums on an integer grid.

Formal guarantee
----------------
Let b be the number of grid bits. Every kernel turns one row into numbers that depend on that row
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
    """Numba's type of eight doubles, with its sums, differences, products and quotients."""
    from llvmlite import ir
    from numba import types
    from numba.extending import lower_builtin, models, register_model, type_callable

    class Lanes(types.Type):
        def __init__(self):
            super().__init__(name="Lanes")

        def __reduce__(self):
            return _lanes, ()

    @register_model(Lanes)
    class _Model(models.PrimitiveModel):
        def __init__(self, dmm, fe_type):
            super().__init__(dmm, fe_type, ir.VectorType(ir.DoubleType(), LANES))

    lanes = Lanes()
    for symbol, instruction in (
        (operator.add, "fadd"), (operator.sub, "fsub"), (operator.mul, "fmul"),
        (operator.truediv, "fdiv"), (operator.iadd, "fadd"),
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
def turn(typingctx, columns, index, height, rows, place, width):
    """Transpose 8 x 8 doubles: lane r of column c goes to lane c of row r; not checked.

    Column c is ``columns.flat[index + c height :]``, row r ``rows.flat[place + r width :]``.
    """
    from numba import types

    def lower(context, builder, signature, args):
        from llvmlite import ir

        source, index, height, target, place, width = args
        lanes = []
        for k in range(LANES):
            at = builder.add(index, builder.mul(height, ir.Constant(height.type, k)))
            pointer = _pointer(context, builder, signature.args[0], source, at)
            lanes.append(builder.load(pointer, align=8))
        for step in (1, 2, 4):
            low = [k if not k & step else k - step + LANES for k in range(LANES)]
            high = [k + step if not k & step else k + LANES for k in range(LANES)]
            masks = [ir.Constant(ir.VectorType(ir.IntType(32), LANES), m) for m in (low, high)]
            for k in range(LANES):
                if not k & step:
                    pair = lanes[k], lanes[k + step]
                    lanes[k], lanes[k + step] = (builder.shuffle_vector(*pair, m) for m in masks)
        for k in range(LANES):
            at = builder.add(place, builder.mul(width, ir.Constant(width.type, k)))
            pointer = _pointer(context, builder, signature.args[3], target, at)
            builder.store(lanes[k], pointer, align=8)
        return context.get_dummy_value()

    if not (_is_flat(columns) and _is_flat(rows) and rows.mutable):
        return None
    whole = types.intp
    return types.void(columns, whole, whole, rows, whole, whole), lower


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


def _elementwise(*args):
    """The type of arguments that are all doubles or all lanes."""
    from numba import types

    return args[0] if args[0] in (types.float64, _lanes()) and len({*args}) == 1 else None


def _llvm(name):
    """Lower to the LLVM intrinsic of this name, for a double or for lanes."""

    def lower(context, builder, signature, args):
        from llvmlite import ir
        from numba.core.cgutils import get_or_insert_function

        suffix = f"v{LANES}f64" if isinstance(args[0].type, ir.VectorType) else "f64"
        kind = ir.FunctionType(args[0].type, [a.type for a in args])
        return builder.call(get_or_insert_function(builder.module, kind, f"{name}.{suffix}"), args)

    return lower


@intrinsic
def fma(typingctx, a, b, c):
    """The product a * b plus c, rounded once; the same bits on every processor."""
    common = _elementwise(a, b, c)
    return (common(a, b, c), _llvm("llvm.fma")) if common else None


@intrinsic
def magnitude(typingctx, a):
    """The absolute value."""
    common = _elementwise(a)
    return (common(a), _llvm("llvm.fabs")) if common else None


@intrinsic
def signed(typingctx, a, b):
    """The magnitude of a with the sign of b."""
    common = _elementwise(a, b)
    return (common(a, b), _llvm("llvm.copysign")) if common else None


@intrinsic
def lesser(typingctx, a, b):
    """The value a if a < b, else b (also where a is NaN)."""

    def lower(context, builder, signature, args):
        return builder.select(builder.fcmp_ordered("<", *args), *args)

    common = _elementwise(a, b)
    return (common(a, b), lower) if common else None


@intrinsic
def greater(typingctx, a, b):
    """The value a if a > b, else b (also where a is NaN)."""

    def lower(context, builder, signature, args):
        return builder.select(builder.fcmp_ordered(">", *args), *args)

    common = _elementwise(a, b)
    return (common(a, b), lower) if common else None


@intrinsic
def gated(typingctx, a, b, limit):
    """The value a where b <= limit, else 0 (also where b is NaN)."""

    def lower(context, builder, signature, args):
        open_ = builder.fcmp_ordered("<=", args[1], args[2])
        return builder.select(open_, args[0], args[0].type(None))

    common = _elementwise(a, b, limit)
    return (common(a, b, limit), lower) if common else None


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
def widest_cut(values, order, steps, reach, found):
    """Raise ``found`` (K,) to the largest |sum of steps above a cut - sum below| over cuts.

    A cut is below all ``values`` (n,), which ``order`` sorts, between two neighbours, or above all,
    if some |t| < reach lies there. ``steps`` (n, K) are whole numbers whose absolute values add up
    to less than 2^62.
    """
    for k in range(steps.shape[1]):
        below, above, low = 0, 0, -math.inf
        for i in order:
            above += int(steps[i, k])
        for i in order:
            if low < values[i] and low < reach and values[i] > -reach:
                found[k] = max(found[k], abs(above - below))
            step, low = int(steps[i, k]), values[i]
            above -= step
            below += step
        if low < reach:
            found[k] = max(found[k], abs(above - below))


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
    last_scales[: d - tail] = scales[tail:]
    last_offsets[: d - tail] = offsets[tail:]
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
