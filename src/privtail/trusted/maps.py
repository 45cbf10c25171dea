"""The public map of features, and a block of rows that is seen through it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from privtail.errors import InvalidInput
from privtail.trusted import kernels
from privtail.trusted.means import Interval
from privtail.trusted.records import DenseRows, Room, Rows

Doubles = NDArray[np.float64]


@dataclass(frozen=True)
class FeatureMap:
    """Public map of features z = (x * scales + offsets) turn; the intercept column stays 1.

    ``turn`` (d, d) mixes features; with None each stays by itself. A row's z is a function of that
    row and of the map, to the bit. Where z of a turned row is no finite number, the row is invalid.
    """

    scales: Doubles
    offsets: Doubles
    turn: Doubles | None = None

    @classmethod
    def of(
        cls, d: int, scales: ArrayLike, offsets: ArrayLike | None = None,
        turn: ArrayLike | None = None,
    ) -> Self:  # fmt: skip
        """Copies that nobody else holds, checked: d scales and offsets, turn (d, d)."""
        s, o = _copy(scales), np.zeros(d) if offsets is None else _copy(offsets)
        t = None if turn is None else _copy(turn)
        if s.shape != (d,) or o.shape != (d,) or (t is not None and t.shape != (d, d)):
            raise InvalidInput(f"scales and offsets need shape ({d},), and turn ({d}, {d}).")
        if not (np.isfinite(s).all() and (s > 0).all() and np.isfinite(o).all()):
            raise InvalidInput("scales must be positive and finite, offsets finite.")
        if t is not None and not np.isfinite(t).all():
            raise InvalidInput("turn must hold finite numbers.")
        return cls(s, o, t)

    def applied(self, rows: Rows, room: Room) -> MappedRows:
        """Rows as every question about them sees them; turned ones are in ``room``."""
        if self.turn is None:
            return MappedRows(rows, self.scales, self.offsets)
        X = rows.dense()
        (n, d), lanes = X.shape, kernels.LANES
        wide = np.zeros((d, d + -d % lanes))
        wide[:, :d] = self.turn
        panels = np.ascontiguousarray(wide.reshape(d, -1, lanes).transpose(1, 0, 2))
        turned = room.of(n * d + lanes)
        kernels.turned(X, self.scales, self.offsets, panels, turned)
        return MappedRows.as_they_are(turned[: n * d].reshape(n, d))


def _copy(numbers: ArrayLike) -> Doubles:
    copy = np.array(numbers, dtype=np.float64).copy()  # an __array__ may lend what it keeps
    copy.flags.writeable = False
    return copy


class MappedRows:
    """One block of rows, with one map for all that is asked of it.

    A norm and the contribution that it bounds are of the same z, whoever changes the curator's map
    meanwhile.
    """

    def __init__(self, rows: Rows, scales: Doubles, offsets: Doubles) -> None:
        self._rows, self._scales, self._offsets = rows, scales, offsets

    @classmethod
    def as_they_are(cls, z: Doubles) -> Self:
        """Rows z (rows, d) themselves."""
        return cls(DenseRows(z), np.ones(z.shape[1]), np.zeros(z.shape[1]))

    def __len__(self) -> int:
        return len(self._rows)

    def margins(self, w: Doubles, b: Doubles) -> tuple[Doubles, Doubles, NDArray[np.bool_]]:
        """Margins z.w + b (rows, K), squared norms of z (rows,) and finiteness (rows,)."""
        return self._rows.margins(self._scales, self._offsets, w, b)

    def ball_sum(
        self, squares: Doubles, valid: NDArray[np.bool_], residuals: Doubles,
        labels: NDArray[np.int64], intercept: bool, radius: float, bits: int, sums: Doubles,
    ) -> None:  # fmt: skip
        """Add l2-clipped contributions to ``sums`` (blocks, d + intercept, K)."""
        self._rows.ball_sum(
            self._scales, self._offsets, squares, valid, residuals, labels, intercept, radius, bits,
            sums,
        )  # fmt: skip

    def box_sum(
        self, valid: NDArray[np.bool_], residuals: Doubles, labels: NDArray[np.int64],
        intercept: bool, box: Interval, bits: int, sums: Doubles,
    ) -> None:  # fmt: skip
        """Add entrywise influences to ``sums`` (blocks, d + intercept, K)."""
        self._rows.box_sum(
            self._scales, self._offsets, valid, residuals, labels, intercept, box, bits, sums
        )

    def transformed(self) -> Doubles:
        """Dense z, (rows, d)."""
        return self._rows.transformed(self._scales, self._offsets)
