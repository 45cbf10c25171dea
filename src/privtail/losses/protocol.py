"""What a generalized-linear loss is."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, ClassVar, Literal, Protocol, runtime_checkable

import numpy as np

from privtail.errors import InvalidInput
from privtail.trusted.losses.rowwise import Rowwise

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Array = NDArray[np.float64]


Targets = Literal["real", "binary", "class", "count", "amount"]
LABELS: tuple[Targets, ...] = ("binary", "class")
"""Targets that name a class."""
AMOUNTS: tuple[Targets, ...] = ("count", "amount")
"""Targets that are not negative, whose logarithm of the mean is the margin."""


@runtime_checkable
class Loss(Protocol):
    """A generalized-linear loss.

    Attributes
    ----------
    name
        How people call it.
    outputs
        K, the number of margins of a row: 1 for all but the multinomial loss.
    targets
        What y holds: any number, 0/1, 0..K-1, counts, or amounts; always as float64.
    convex
        Whether ℓ(·, y) is convex for every y.
    curvature
        sup |∂²ℓ/∂m²| (spectral norm for K > 1); infinite at a kink or if unknown.
    lipschitz
        sup ‖∂ℓ/∂m‖₂; infinite if there is none or if unknown.
    """

    @property
    def name(self) -> str: ...
    @property
    def outputs(self) -> int: ...
    @property
    def targets(self) -> Targets: ...
    @property
    def convex(self) -> bool: ...
    @property
    def curvature(self) -> float: ...
    @property
    def lipschitz(self) -> float: ...

    def values(self, margins: Array, y: Array) -> Array:
        """Return ℓ(mᵢ, yᵢ), shape (rows,), of margins (rows, K) and targets (rows,)."""
        ...

    def derivatives(self, margins: Array, y: Array) -> Array:
        """Return ∂ℓ/∂m at (mᵢ, yᵢ), shape (rows, K)."""
        ...


class RowwiseLoss:
    """A loss whose loops over rows are in the core: it names them and computes nothing itself."""

    rowwise: ClassVar[Rowwise]

    def values(self, margins: Array, y: Array) -> Array:
        """Return ℓ(mᵢ, yᵢ), shape (rows,), of margins (rows, K) and targets (rows,)."""
        return self.rowwise.values(self, margins, y)

    def derivatives(self, margins: Array, y: Array) -> Array:
        """Return ∂ℓ/∂m at (mᵢ, yᵢ), shape (rows, K)."""
        return self.rowwise.derivatives(self, margins, y)


def require_threshold(threshold: float) -> None:
    """Refuse what is no positive finite number."""
    if not 0 < threshold < math.inf:
        raise InvalidInput(f"threshold must be positive and finite, got {threshold!r}.")
