"""The public feature map, and blocks of rows that are transformed by it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from privtail.errors import InvalidInput
from privtail.trusted import kernels
from privtail.trusted.records import DenseRows, Rows

Doubles = NDArray[np.float64]


@dataclass(frozen=True)
class FeatureMap:
    """The public feature map z = x * scales + offsets; the intercept column stays 1.

    A missing number (NaN) in one of the ``optional`` columns is replaced by the x of z = 0, a
    public number. So the transformed row is a function of the row alone.
    """

    scales: Doubles
    offsets: Doubles
    optional: tuple[int, ...] = ()

    @classmethod
    def of(
        cls, d: int, scales: ArrayLike, offsets: ArrayLike | None = None,
        optional: tuple[int, ...] = (),
    ) -> Self:  # fmt: skip
        """A map of checked private copies of d scales and offsets.

        A scale of 0 leaves a column out: all its numbers become the offset.
        """
        s, o = _copy(scales), _copy(np.zeros(d) if offsets is None else offsets)
        if s.shape != (d,) or o.shape != (d,):
            raise InvalidInput(f"scales and offsets need shape ({d},).")
        if not (np.isfinite(s).all() and (s >= 0).all() and np.isfinite(o).all()):
            raise InvalidInput("scales must be finite and not negative, offsets finite.")
        return cls(s, o, optional)

    def __reduce__(self) -> tuple[Any, ...]:
        return FeatureMap.of, (len(self.scales), self.scales, self.offsets, self.optional)

    def applied(self, rows: Rows) -> MappedRows:
        """The rows, transformed by the map."""
        if not self.optional:
            return MappedRows(rows, self.scales, self.offsets)
        X = rows.dense().copy()
        missing, places = np.zeros(X.shape, np.bool_), list(self.optional)
        missing[:, places] = np.isnan(X[:, places])
        with np.errstate(all="ignore"):
            fill = -self.offsets / self.scales
        fill[~np.isfinite(fill)] = 0.0
        X[missing] = np.broadcast_to(fill, X.shape)[missing]
        return MappedRows(DenseRows(X), self.scales, self.offsets, missing)


def _copy(numbers: ArrayLike) -> Doubles:
    copy = np.array(numbers, dtype=np.float64).copy()  # an __array__ may lend what it keeps
    copy.flags.writeable = False
    return copy


@dataclass(frozen=True)
class PredictionRanges:
    """The public ranges to which a released model clips features and margins when it predicts.

    Attributes
    ----------
    features : (d, 2), of mapped columns. margins : (2,), or (m, 2) with a pair for each margin.
    """

    features: Doubles
    margins: Doubles

    @classmethod
    def of(cls, features: ArrayLike, margins: ArrayLike) -> Self:
        """Checked private copies of pairs of a low and a high end."""
        ranges = cls(_copy(features), _copy(margins))
        for pairs in (ranges.features, np.atleast_2d(ranges.margins)):
            if not (pairs.ndim == 2 and pairs.shape[1] == 2 and (pairs[:, 0] <= pairs[:, 1]).all()):
                raise InvalidInput("Ranges must be pairs of a low and a high end.")
        return ranges

    def clip(self, margins: Doubles, first: int = 0) -> Doubles:
        """Margins (rows, m), clipped; of several pairs, to those from the ``first`` on."""
        part = slice(first, first + margins.shape[1]) if self.margins.ndim > 1 else ...
        ends = self.margins[part]
        return np.clip(margins, ends[..., 0], ends[..., 1])


class MappedRows:
    """A block of rows with one feature map for all questions.

    A norm and the contribution that it bounds come from the same z: a batch holds a copy of its
    map, which no callback and no other thread can change.
    """

    def __init__(
        self, rows: Rows, scales: Doubles, offsets: Doubles,
        missing: NDArray[np.bool_] | None = None,
    ) -> None:  # fmt: skip
        self._rows, self._scales, self._offsets = rows, scales, offsets
        self._missing = missing

    @classmethod
    def as_they_are(cls, z: Doubles) -> Self:
        """The rows z (rows, d), not transformed."""
        return cls(DenseRows(z), _copy(np.ones(z.shape[1])), _copy(np.zeros(z.shape[1])))

    def __len__(self) -> int:
        return len(self._rows)

    def margins(self, w: Doubles, b: Doubles) -> tuple[Doubles, Doubles, NDArray[np.bool_]]:
        """Margins z.w + b (rows, K), squared norms of z (rows,) and finiteness (rows,)."""
        margins, squares = np.empty((len(self), w.shape[1])), np.empty(len(self))
        valid = np.empty(len(self), dtype=np.bool_)
        kernel: Any = kernels.margins_sparse if self.sparse else kernels.margins_dense
        kernel(*self.kernel_arguments, w, b, margins, squares, valid)
        return margins, squares, valid

    @property
    def sparse(self) -> bool:
        """Whether the kernels for CSR rows are used."""
        return self._rows.sparse

    @property
    def kernel_arguments(self) -> tuple[NDArray[Any], ...]:
        """The arrays of these rows that the kernels take first."""
        return self._rows.kernel_arguments(self._scales, self._offsets)

    def transformed(self) -> Doubles:
        """Dense z, (rows, d)."""
        z = self._rows.transformed(self._scales, self._offsets)
        if self._missing is not None:
            z[self._missing] = 0.0  # not a rounding error, which would have a sign
        return z

    def known(self) -> Doubles:
        """Dense z, with NaN in place of missing numbers that are filled in."""
        z = self.transformed()
        return z if self._missing is None else np.where(self._missing, np.nan, z)

    def clipped(self, ranges: Doubles) -> MappedRows:
        """Rows z with finite numbers clipped to their ranges (d, 2)."""
        z = self.transformed()
        return self.as_they_are(np.where(np.isfinite(z), np.clip(z, *ranges.T), z))
