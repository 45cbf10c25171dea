"""Vectors of eight doubles for the compiled kernels: the source fixes the order of every sum.

A sum of many numbers is fast only if several run side by side, and a compiler may not reorder the
additions of a plain loop. With `Lanes` the kernel says which numbers are added to which: the same
IEEE operations on every processor, in one register where it has wide ones.

    s = splat(0.0)
    for j in range(0, d - d % 8, 8):
        s += load(x, j) * load(u, j)
    return total(s)

Only compiled functions can call these, and nothing is imported from Numba before one is compiled.
Numba's cache on disk does not see an edit of this file: touch `kernels.py` after one.
"""

# mypy: allow-untyped-calls, allow-untyped-defs, allow-untyped-decorators

from __future__ import annotations

import functools
import operator

from privtail.compilation import intrinsic

LANES = 8


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

    return _lanes()(array, index), lower


@intrinsic
def store(typingctx, array, index, lanes):
    """Write lanes to ``array.flat[index : index + 8]``, C-contiguous doubles; not checked."""
    from numba import types

    def lower(context, builder, signature, args):
        builder.store(args[2], _pointer(context, builder, signature.args[0], *args[:2]), align=8)
        return context.get_dummy_value()

    return types.void(array, index, lanes), lower


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
