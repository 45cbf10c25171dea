"""Sparse records: SciPy CSR, made canonical block by block."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from privtail.errors import InvalidInput
from privtail.schema.containers import not_csr
from privtail.trusted import kernels
from privtail.trusted.exactly import is_one_of
from privtail.trusted.private_rows import PrivateRows

Doubles = NDArray[np.float64]


class Sparse(PrivateRows):
    """A CSR matrix. Each block is canonicalised in its own copy before any kernel sees it.

    A row may legally store fifty entries in one column; an influence function applied to the
    entries instead of to their sum would lose its bound. Indices are checked against the width.
    """

    sparse = True
    indicators: tuple[int, ...] = ()
    categories: tuple[tuple[int, ...], ...] = ()
    optional: tuple[int, ...] = ()

    def __init__(self, X: Any) -> None:
        if not is_one_of(X, (sp.csr_matrix, sp.csr_array)):
            raise not_csr()
        self._X: Any = X
        if self._X.dtype.kind not in "fiub":
            raise InvalidInput(f"X must hold numbers, got {self._X.dtype}.")
        self.n, self.d = self._X.shape
        if not _well_formed(self._X):
            raise InvalidInput(
                "This CSR matrix is malformed: column indices outside its width, row pointers "
                "out of order, or parts of different lengths. Rebuild it, for example with "
                "scipy.sparse.csr_matrix(X.tocoo())."
            )

    def rows(self, ids: slice | NDArray[np.int64]) -> SparseRows:
        """The rows of these ids: duplicates summed, columns sorted, indices checked."""
        with np.errstate(all="ignore"):
            block = sp.csr_matrix(self._X[ids], dtype=np.float64, copy=True)
        if not _well_formed(block):
            raise InvalidInput("The matrix was changed during the fit. Leave it alone, or copy it.")
        return SparseRows(_canonical(block))

    def __repr__(self) -> str:
        return f"Sparse(rows={self.n}, features={self.d}, dtype={self._X.dtype})"


def _well_formed(X: Any) -> bool:
    data, indices, indptr = X.data, X.indices, X.indptr
    whole = indices.dtype.kind in "iu" and indptr.dtype.kind in "iu"
    if not (whole and indptr.shape == (X.shape[0] + 1,) and data.shape == (indices.size,)):
        return False
    inside = indices.size == 0 or (indices.min() >= 0 and indices.max() < X.shape[1])
    ordered = indptr[0] == 0 and (indptr[1:] >= indptr[:-1]).all() and indptr[-1] <= data.size
    return bool(inside and ordered)


def _canonical(block: Any) -> Any:
    """Sort and merge every row by itself: its bits must not depend on the other rows."""
    indptr, indices, data = block.indptr, block.indices.astype(np.int64), block.data
    sizes = np.diff(indptr)
    rising = np.diff(indices) > 0
    rising[indptr[1:-1][(indptr[1:-1] > 0) & (indptr[1:-1] < indices.size)] - 1] = True
    if rising.all():
        return block
    kept = sizes.astype(np.int64)
    for i in range(len(sizes)):
        row = slice(indptr[i], indptr[i + 1])
        columns, entries = indices[row], data[row]
        kept[i] = kernels.merge_row(columns, entries, np.argsort(columns, kind="stable"))
    inside = np.arange(indices.size) - np.repeat(indptr[:-1], sizes) < np.repeat(kept, sizes)
    pointers = np.concatenate([[0], np.cumsum(kept)])
    return sp.csr_matrix((data[inside], indices[inside], pointers), shape=block.shape)


class SparseRows:
    """One canonical block. Offsets must be zero."""

    sparse = True

    def __init__(self, block: Any) -> None:
        self.block = block
        self.parts = (block.indptr.astype(np.int64), block.indices.astype(np.int64), block.data)

    def __len__(self) -> int:
        return int(self.block.shape[0])

    def kernel_arguments(self, scales: Doubles, offsets: Doubles) -> tuple[NDArray[Any], ...]:
        """The arrays of these rows, scaled, that the kernels take first."""
        return *self.parts, scales

    def dense(self) -> Doubles:
        """The rows with their zeros, (rows, d), contiguous."""
        return np.ascontiguousarray(self.block.toarray())

    def transformed(self, scales: Doubles, offsets: Doubles) -> Doubles:
        """Dense rows after scaling, (rows, d)."""
        with np.errstate(all="ignore"):
            return np.asarray(self.dense() * scales)
