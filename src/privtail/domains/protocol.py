"""What all domains have, and the weights of features."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol, runtime_checkable

import numpy as np

from privtail.errors import InvalidInput
from privtail.spelling import counted

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

    Array = NDArray[np.float64]


@runtime_checkable
class Domain(Protocol):
    """What all domains have. The other operations are asked for with `require`."""

    def value(self, w: Array) -> float:
        """Return the regularizer at w, or 0 inside and infinity outside of a set."""
        ...

    def prox(self, w: Array, step: float) -> Array:
        """Return argmin over v of ½ ‖v − w‖² + step · value(v), of the shape of w."""
        ...

    def scaled(self, scales: ArrayLike) -> Domain:
        """Return the domain of v = w / scales, for a positive vector ``scales`` (d,)."""
        ...


class Weights:
    """A positive vector, one entry per feature, immutable; by default 1 for every feature."""

    def __init__(self, vector: ArrayLike = 1.0) -> None:
        self._vector = np.array(vector, dtype=np.float64)
        self._vector.flags.writeable = False

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Weights) and np.array_equal(self._vector, other._vector)

    def __hash__(self) -> int:
        return hash(self._vector.tobytes())

    def times(self, scales: ArrayLike) -> Weights:
        """Return the product, which `InvalidInput` refuses if it is not positive and finite."""
        factors = np.asarray(scales, dtype=np.float64)
        if factors.ndim != 1 or not np.all((factors > 0) & np.isfinite(factors)):
            raise InvalidInput("scales must be a vector of positive, finite numbers.")
        if self._vector.ndim and self._vector.shape != factors.shape:
            raise InvalidInput(
                f"scales must have {counted(self._vector.size, 'entry', 'entries')}, got "
                f"{factors.size}."
            )
        return Weights(self._vector * factors)

    def like(self, w: Array) -> Array:
        """Return the weights so that they broadcast against w, (d,) or (d, K)."""
        if not self._vector.ndim:
            return self._vector
        if w.shape[:1] != self._vector.shape:
            raise InvalidInput(
                f"w must have {counted(self._vector.size, 'feature')}, as when this domain was "
                f"scaled; its shape is {w.shape}."
            )
        return self._vector.reshape(-1, *[1] * (w.ndim - 1))

    def entries(self, d: int, outputs: int) -> Array:
        """Return one weight per entry of w, shape (d, outputs)."""
        shape = np.empty((d, outputs))
        return np.broadcast_to(self.like(shape), shape.shape)


ONES = Weights()
