"""Cells of columns -> features, row by row, as a public design says.

Formal guarantee
----------------
Every feature of a row is a function of the cells of that row and of public numbers, to the bit:
sums and products are those of IEEE doubles, and logarithms are taken one by one. A cell that is
missing or infinite decides nothing of another row. Bounded features are forced into [0, 1].
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import xlogy

from privtail.errors import InvalidInput
from privtail.schema.encoding import Cell, Design, Gap, Levels, Part, Product
from privtail.schema.features import Bins, Log, Spline
from privtail.trusted.exactly import is_one_of

Doubles = NDArray[np.float64]


def encoded(design: Design, cells: Mapping[str, NDArray[Any]], out: Doubles) -> None:
    """Write features (features, rows) to ``out``, from numbers or codes (rows,) of each column."""
    for part, places in design.placed():
        if not places:  # nothing is left beside a base level
            continue
        _put(part, cells, design.indicator, out[places.start : places.stop])


def _put(
    part: Part, cells: Mapping[str, NDArray[Any]], indicator: bool, out: Doubles
) -> None:  # fmt: skip
    source = part.source
    if isinstance(source, Product):
        factors = []
        for side in (source.left, source.right):
            factor = np.empty((len(side.names), out.shape[1]))
            _put(side, cells, indicator, factor)
            factors.append(factor)
        left, right = factors
        np.multiply(
            left[:, None], right[None], out=out.reshape(len(left), len(right), out.shape[1])
        )
        return
    x = cells[source.column]
    if isinstance(source, Cell):
        out[0] = x
        return
    if isinstance(source, Levels):
        _ones(x, part.base, out)
        return
    x = np.ascontiguousarray(x, dtype=np.float64)
    if not is_one_of(source, (Gap, Bins, Spline, Log)):
        raise InvalidInput("A feature is one of privtail.features.")
    if isinstance(source, Gap):
        out[0] = np.isnan(x)
        return
    if isinstance(source, Bins):
        edges = np.array([float(edge) for edge in source.edges])
        _ones(np.searchsorted(edges, x, side="right"), part.base, out)
    elif isinstance(source, Spline):
        _basis(source, x, out)
    else:
        moved = x + float(source.plus)  # a number of another class would see all rows
        moved = np.where(moved > 0, moved, np.nan)
        out[0] = np.where(np.isinf(x), x, xlogy(1.0, moved))
        return
    out[:, np.isnan(x)] = 0.0 if indicator else np.nan
    out[:, np.isinf(x)] = np.nan


def _ones(codes: NDArray[Any], base: int | None, out: Doubles) -> None:
    """1 in the row of every code, the others zero; -1 and the base level have no row."""
    out.fill(0.0)
    held = codes >= 0
    if base is not None:
        held &= codes != base
        codes = np.where(codes > base, codes - 1, codes)
    filled = np.flatnonzero(held)
    out[codes[filled], filled] = 1.0


def _basis(spline: Spline, x: Doubles, out: Doubles) -> None:
    """A B-spline basis, constant beyond its knots."""
    knots = np.array([float(knot) for knot in spline.knots])
    pieces = np.array(spline.pieces, dtype=np.float64, subok=False).copy()
    x = np.clip(x, knots[0], knots[-1])
    piece = np.clip(np.searchsorted(knots, x, side="right") - 1, 0, len(knots) - 2)
    away = x - knots[piece]
    out.fill(0.0)
    for coefficients in pieces:
        out *= away
        out += coefficients[piece].T
    np.clip(out, 0.0, 1.0, out=out)
