"""Calls of a function of somebody else: on fresh copies, and one row at a time.

Formal guarantee
----------------
What a row gets is what the functions say of copies of that row; NaN, or 0, where they raise or say
what is no number of the right shape. Only with ``rowwise``, which somebody promised, does a
function see more than one row. That it keeps no state between rows cannot be enforced here:
`callbacks` states it.
"""

from __future__ import annotations

import functools
import math
import numbers
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privtail.compilation import by_hand, compiled
from privtail.errors import InvalidInput
from privtail.trusted.losses.loops import block, derivatives_of, values_of
from privtail.trusted.losses.rowwise import Rowwise

Doubles = NDArray[np.float64]


def by_record(
    function: Callable[..., Any], rowwise: bool, w: Doubles, X: Doubles, y: Doubles,
    shape: tuple[int, ...],
) -> Doubles:  # fmt: skip
    """The values of ``function(w, x, y)`` at every row, (rows, *shape); NaN where it fails.

    With ``rowwise`` it is asked about all rows at once, and one row's failure takes no other along.
    """
    if y.shape != X.shape[:1]:
        raise InvalidInput(
            f"y must have one value for each of the {X.shape[0]} rows of X, got shape {y.shape}."
        )

    def said(rows: Any, shape: tuple[int, ...]) -> Doubles | None:
        target = y[rows]
        own = copied(target) if np.ndim(target) else float(target)
        return reply(lambda: function(copied(w), copied(X[rows]), own), shape, exact=True)

    if rowwise:
        from privtail.trusted.losses.together import together

        return together(said, np.arange(y.size), (y.size, *shape))
    out = np.full((y.size, *shape), np.nan)
    for i in range(y.size):
        answer = said(i, shape)
        if answer is not None:
            out[i] = answer
    return out


def reply(
    called: Callable[[], Any], shape: tuple[int, ...], *, exact: bool = False
) -> Doubles | None:
    """Its value, of this shape, or of this size unless ``exact``; None if it fails."""
    try:
        with np.errstate(all="ignore"):
            said = np.asarray(called())
        fits = said.shape == shape if exact else said.size == math.prod(shape)
        if fits and np.can_cast(said.dtype, np.float64, "same_kind"):
            return np.array(said, dtype=np.float64, order="C").reshape(shape)
    except BaseException as error:
        if isinstance(error, KeyboardInterrupt) and by_hand():
            raise
    return None


def copied(array: Any) -> NDArray[Any]:
    """A read-only copy that nobody else holds."""
    own: NDArray[Any] = np.array(array)
    own.flags.writeable = False
    return own


@functools.lru_cache(maxsize=128)
def loop_of(function: Callable[[float, float], float]) -> Callable[..., None]:
    """A loop of a function of one margin and one target over rows, compiled if that is possible."""
    nothing = np.empty(0)
    readonly, _ = block(nothing.reshape(0, 1), nothing, 1)
    try:
        loop = _guarded(compiled(function, cache=False, boundscheck=True))
        loop(readonly.reshape(-1), readonly.reshape(-1), nothing)
    except Exception:  # noqa: BLE001 - Numba refuses in many ways; no row is involved
        return _interpreted(function)
    return loop


def _guarded(
    function: Callable[[float, float], float],
) -> Callable[[Doubles, Doubles, Doubles], None]:
    @compiled(cache=False)
    def loop(margins: Doubles, y: Doubles, out: Doubles) -> None:
        for i in range(y.size):
            out[i] = np.nan
            try:  # noqa: SIM105 - Numba knows try, not suppress
                out[i] = function(margins[i], y[i])
            except Exception:  # noqa: BLE001, S110 - law 1: the row counts as 0
                pass

    return loop


def _interpreted(
    function: Callable[[float, float], float],
) -> Callable[[Doubles, Doubles, Doubles], None]:
    def loop(margins: Doubles, y: Doubles, out: Doubles) -> None:
        for i in range(y.size):
            out[i] = np.nan
            try:
                with np.errstate(all="ignore"):
                    result: object = function(float(margins[i]), float(y[i]))
                if isinstance(result, (numbers.Real, np.bool_)):
                    out[i] = float(result)
            except BaseException as error:
                if isinstance(error, KeyboardInterrupt) and by_hand():
                    raise

    return loop


def _custom_values(loss: Any, margins: Doubles, y: Doubles) -> Doubles:
    return values_of(loop_of(loss.value), margins, y)


def _custom_derivatives(loss: Any, margins: Doubles, y: Doubles) -> Doubles:
    return derivatives_of(loop_of(loss.derivative), margins, y)


CUSTOM = Rowwise(_custom_values, _custom_derivatives)
"""How two functions of somebody else are called, of one margin and one target."""
