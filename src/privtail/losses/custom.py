"""Losses of somebody's own: two functions, called row by row or compiled."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from privtail.errors import InvalidInput
from privtail.losses.protocol import RowwiseLoss, Targets
from privtail.trusted.losses.called import CUSTOM, by_record
from privtail.trusted.losses.rowwise import Rowwise

if TYPE_CHECKING:
    from collections.abc import Callable

    from privtail.losses.protocol import Array


@dataclass(frozen=True, kw_only=True)
class CustomLoss(RowwiseLoss):
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

    rowwise: ClassVar[Rowwise] = CUSTOM
    outputs: ClassVar[int] = 1

    def __post_init__(self) -> None:
        _check_functions(value=self.value, derivative=self.derivative)


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


def _check_functions(**functions: object) -> None:
    for name, function in functions.items():
        if not callable(function):
            raise InvalidInput(f"{name} must be a function, got {type(function).__name__}.")
        if function.__hash__ is None:
            raise InvalidInput(f"{name} must be hashable; wrap it in a function.")
