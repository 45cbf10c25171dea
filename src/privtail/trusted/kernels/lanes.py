"""Eight doubles side by side, for compiled code.

Formal guarantee
----------------
Every operation is the IEEE one on each lane, on every processor; the source says which numbers are
added to which.
"""

# mypy: allow-untyped-calls, allow-untyped-defs, allow-untyped-decorators

from __future__ import annotations

import functools
import operator

from privtail.compilation import intrinsic

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
def totals(typingctx, a, b, c, d, e, f, g, h):
    """Sums of the lanes of each, folded by halves: ((0+4) + (2+6)) + ((1+5) + (3+7)).

    A sum of one argument is in one lane of the answer; all eight are folded side by side.
    """

    def lower(context, builder, signature, args):
        from llvmlite import ir

        parts, half = list(args), LANES // 2
        while half:
            low = [p for p in range(2 * LANES) if p % (2 * half) < half]
            masks = [
                ir.Constant(ir.VectorType(ir.IntType(32), LANES), [p + shift for p in low])
                for shift in (0, half)
            ]
            pairs = zip(parts[::2], parts[1::2], strict=True)
            parts = [
                builder.fadd(*(builder.shuffle_vector(*pair, mask) for mask in masks))
                for pair in pairs
            ]
            half //= 2
        return parts[0]

    lanes = _elementwise(a, b, c, d, e, f, g, h)
    return (lanes(*[lanes] * LANES), lower) if lanes == _lanes() else None


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
