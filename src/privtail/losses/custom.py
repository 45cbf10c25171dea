"""Losses of somebody's own: two functions, called row by row or compiled."""

from __future__ import annotations

import functools
import math
import numbers
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from privtail.compilation import by_hand, compiled
from privtail.errors import InvalidInput
from privtail.losses.loops import block, derivatives_of, values_of
from privtail.losses.protocol import Targets

if TYPE_CHECKING:
    from collections.abc import Callable

    from privtail.losses.protocol import Array


@dataclass(frozen=True, kw_only=True)
class CustomLoss:
    """A generalized-linear loss from two plain-Python functions of one margin and one target.

    Both are pure functions, for instance lambdas. They are compiled by Numba if it can, else called
    row by row. A row for which a function raises, or returns something that is not a real
    number, gets NaN (which a sum counts as 0), and no other row notices. What is declared of the
    loss is believed, and can cost accuracy only.

    Parameters
    ----------
    value : callable
        ``(margin, y) -> number``: the loss.
    derivative : callable
        ``(margin, y) -> number``: its derivative in the margin.
    name : str, default="custom"
        What the statement calls it.
    targets : {"real", "count", "class"}, default="real"
        What the target holds.
    convex : bool, default=False
        Whether the loss is convex in the margin.
    curvature : float, default=inf
        The largest second derivative in the margin.
    lipschitz : float, default=inf
        The largest first derivative in the margin.

    Raises
    ------
    InvalidInput
        If a parameter is outside its range.

    Examples
    --------
    >>> import numpy as np
    >>> from privtail.losses import CustomLoss
    >>> loss = CustomLoss(value=lambda m, y: (m - y) ** 4, derivative=lambda m, y: 4 * (m - y) ** 3)
    >>> loss.values(np.array([[2.0]]), np.array([0.0]))
    array([16.])
    """

    value: Callable[[float, float], float]
    derivative: Callable[[float, float], float]
    name: str = "custom"
    targets: Targets = "real"
    convex: bool = False
    curvature: float = math.inf
    lipschitz: float = math.inf

    outputs: ClassVar[int] = 1

    def __post_init__(self) -> None:
        _check_functions(value=self.value, derivative=self.derivative)

    def values(self, margins: Array, y: Array) -> Array:
        return values_of(_custom_loop(self.value), margins, y)

    def derivatives(self, margins: Array, y: Array) -> Array:
        return derivatives_of(_custom_loop(self.derivative), margins, y)


@dataclass(frozen=True, kw_only=True)
class GeneralLoss:
    """A loss that is no function of a margin: a gradient of its own for every row.

    Both functions get fresh read-only copies. A row for which one raises or returns another
    shape gets NaN. What is declared of the loss is believed, and can cost accuracy only.

    Parameters
    ----------
    value : callable
        ``value(w, x, y) -> number`` for one row x of shape (d,).
    gradient : callable
        ``gradient(w, x, y) -> array`` of the shape of w.
    trusted_rowwise : bool, default=False
        Whether both take a block, ``(w, X, y)`` with X (rows, d) and y (rows,), and return (rows,)
        and (rows, *w.shape) in which entry i depends on row i of X and y alone. Nobody can check
        that: the privacy statement prints it as an assumption.
    name : str, default="general"
        What the statement calls it.
    targets : {"real", "count", "class"}, default="real"
        What the target holds.
    convex : bool, default=False
        Whether the loss is convex in the parameters w.
    curvature : float, default=inf
        The largest second derivative in the parameters w.
    lipschitz : float, default=inf
        The largest first derivative in the parameters w.

    Raises
    ------
    InvalidInput
        If a parameter is outside its range.

    Examples
    --------
    >>> import numpy as np
    >>> from privtail.losses import GeneralLoss
    >>> loss = GeneralLoss(value=lambda w, x, y: (x @ w[:, 0] - y) ** 2,
    ...                    gradient=lambda w, x, y: 2 * (x @ w[:, 0] - y) * x[:, None])
    >>> loss.targets
    'real'
    """

    value: Callable[[Array, Array, Any], Any]
    gradient: Callable[[Array, Array, Any], Any]
    trusted_rowwise: bool = False
    name: str = "general"
    targets: Targets = "real"
    convex: bool = False
    curvature: float = math.inf
    lipschitz: float = math.inf

    def __post_init__(self) -> None:
        _check_functions(value=self.value, gradient=self.gradient)

    def values(self, w: Array, X: Array, y: Array) -> Array:
        """Return ℓ(w, xᵢ, yᵢ), shape (rows,)."""
        return by_record(self.value, self.trusted_rowwise, w, X, y, ())

    def gradients(self, w: Array, X: Array, y: Array) -> Array:
        """Return the gradients in w at (xᵢ, yᵢ), shape (rows, *w.shape)."""
        return by_record(self.gradient, self.trusted_rowwise, w, X, y, w.shape)


def by_record(
    function: Callable[..., Any],
    rowwise: bool,
    w: Array,
    X: Array,
    y: Array,
    shape: tuple[int, ...],
) -> Array:
    """What ``function(w, x, y)`` says of every row, (rows, *shape); NaN where it fails.

    With ``rowwise`` it is asked about all rows at once, and about one after the other if that
    fails: one row's failure must not take its block along.
    """
    if y.shape != X.shape[:1]:
        raise InvalidInput(
            f"y must have one value for each of the {X.shape[0]} rows of X, got shape {y.shape}."
        )
    out = np.full((y.size, *shape), np.nan)
    if rowwise:
        block = _answer(function, w, X, y, out.shape)
        if block is not None:
            return block
    for i in range(y.size):
        row = slice(i, i + 1) if rowwise else i
        answer = _answer(function, w, X[row], y[row], out[row].shape)
        if answer is not None:
            out[row] = answer
    return out


def _check_functions(**functions: object) -> None:
    for name, function in functions.items():
        if not callable(function):
            raise InvalidInput(f"{name} must be a function, got {type(function).__name__}.")
        if function.__hash__ is None:
            raise InvalidInput(f"{name} must be hashable; wrap it in a function.")


@functools.lru_cache(maxsize=128)
def _custom_loop(function: Callable[[float, float], float]) -> Callable[..., None]:
    """Return a loop of ``function`` over rows, compiled if that is possible."""
    nothing = np.empty(0)
    readonly, _ = block(nothing.reshape(0, 1), nothing, 1)
    try:
        loop = _guarded(compiled(function, cache=False, boundscheck=True))
        loop(readonly.reshape(-1), readonly.reshape(-1), nothing)
    except Exception:  # noqa: BLE001 - Numba refuses in many ways; no row is involved
        return _interpreted(function)
    return loop


def _guarded(function: Callable[[float, float], float]) -> Callable[[Array, Array, Array], None]:
    @compiled(cache=False)
    def loop(margins: Array, y: Array, out: Array) -> None:
        for i in range(y.size):
            out[i] = np.nan
            try:  # noqa: SIM105 - Numba knows try, not suppress
                out[i] = function(margins[i], y[i])
            except Exception:  # noqa: BLE001, S110 - law 1: the row counts as 0
                pass

    return loop


def _interpreted(
    function: Callable[[float, float], float],
) -> Callable[[Array, Array, Array], None]:
    def loop(margins: Array, y: Array, out: Array) -> None:
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


def _answer(
    function: Callable[..., Any], w: Array, x: Array, y: Any, shape: tuple[int, ...]
) -> Array | None:
    """Return what ``function`` says of fresh read-only copies; None if it fails."""
    try:
        with np.errstate(all="ignore"):
            result = np.asarray(function(_copy(w), _copy(x), _copy(y) if np.ndim(y) else float(y)))
        if result.shape == shape and np.can_cast(result.dtype, np.float64, "same_kind"):
            return np.array(result, dtype=np.float64, order="C")
    except BaseException as error:
        if isinstance(error, KeyboardInterrupt) and by_hand():
            raise
    return None


def _copy(array: Array) -> Array:
    array = np.array(array)
    array.flags.writeable = False
    return array
