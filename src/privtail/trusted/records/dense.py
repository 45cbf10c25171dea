"""Dense records: any memory order, float32, float64, integers or booleans, memory maps."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from privtail.errors import InvalidInput
from privtail.schema.kinds import rows_refusal
from privtail.trusted import kernels
from privtail.trusted.private_rows import PrivateRows
from privtail.trusted.records.arrays import as_numbers
from privtail.trusted.records.kinds import public_type

Doubles = NDArray[np.float64]


class Dense(PrivateRows):
    """A two-dimensional array that is read block by block and never copied as a whole.

    A block is a copy, so a row is as long as when its length was taken, whoever writes to the array
    meanwhile: another thread, another process (a memory map), or a function of a user.
    """

    sparse = False
    indicators: tuple[int, ...] = ()
    categories: tuple[tuple[int, ...], ...] = ()
    optional: tuple[int, ...] = ()

    def __init__(self, X: Any) -> None:
        array = as_numbers(X)
        if array.ndim != 2:
            mend = "For a single feature use x.reshape(-1, 1)."
            if hasattr(X, "to_frame"):
                mend = "For a single feature use x.to_frame()."
            if array.ndim > 2:
                mend = "For all numbers of a row as features use x.reshape(len(x), -1)."
            raise InvalidInput(
                f"X needs two dimensions (rows, features), got shape {array.shape}. {mend}"
            )
        if array.dtype.kind not in "fiub":
            raise rows_refusal(*public_type(array))
        self._X = array
        turned = array.flags.f_contiguous and not array.flags.c_contiguous
        self._turned = array.T if turned and array.dtype == np.float64 else None
        self.n, self.d = array.shape

    def rows(self, ids: slice | NDArray[np.int64]) -> DenseRows:
        """The rows of these ids as contiguous doubles, copied."""
        if isinstance(ids, slice):
            places = range(*ids.indices(self.n))
            block = np.empty((len(places), self.d))
            if self._turned is not None and places.step == 1:
                kernels.rows_of(self._turned, places.start, block)
                return DenseRows(block)
        else:
            block = np.empty((np.size(ids), self.d))
        with np.errstate(all="ignore"):
            np.copyto(block, self._X[ids], casting="unsafe")
        return DenseRows(block)

    def columns(self) -> dict[str, NDArray[Any]]:
        """Views of the columns by the names that a model gives them."""
        return {f"x{j}": self._X[:, j] for j in range(self.d)}

    def __repr__(self) -> str:
        return f"Dense(rows={self.n}, features={self.d}, dtype={self._X.dtype})"


class DenseRows:
    """One block of rows."""

    sparse = False

    def __init__(self, X: Doubles) -> None:
        self.X = X

    def __len__(self) -> int:
        return int(self.X.shape[0])

    def kernel_arguments(self, scales: Doubles, offsets: Doubles) -> tuple[Doubles, ...]:
        """The arrays of these rows, scaled and centred, that the kernels take first."""
        return self.X, scales, offsets

    def dense(self) -> Doubles:
        """The rows themselves, (rows, d), contiguous."""
        return self.X

    def transformed(self, scales: Doubles, offsets: Doubles) -> Doubles:
        """Dense rows after scaling and centring, (rows, d)."""
        with np.errstate(all="ignore"):
            z = self.X * scales
            return np.add(z, offsets, out=z)
