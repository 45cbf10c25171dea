"""Contributions of records to sums: forced onto their range and the grid, then added.

Formal guarantee
----------------
Whatever a question computed from a row is forced onto the range before it is added, here or in the
kernel that is called here. The contribution of a row is a function, to the bit, of that row and of
public numbers, whatever other rows are in the block.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privtail.trusted import kernels
from privtail.trusted.maps import MappedRows
from privtail.trusted.means import Ball, Interval

Doubles = NDArray[np.float64]
Integers = NDArray[np.int64]


def contribute(
    rows: MappedRows, squares: Doubles, valid: NDArray[np.bool_], residuals: Doubles,
    labels: Integers, intercept: bool, range_: Ball | Interval, bits: int, sums: Doubles,
) -> None:  # fmt: skip
    """Add residuals times rows, each in its range, to ``sums`` (blocks, d + intercept, K)."""
    turned = np.zeros((sums.shape[0], sums.shape[2], sums.shape[1]))
    if isinstance(range_, Ball):
        ball: Any = kernels.ball_sparse if rows.sparse else kernels.ball_dense
        ball(
            *rows.kernel_arguments, squares, valid, shrunk(squares, residuals, intercept, range_),
            labels, intercept, range_.radius, bits,
            kernels.margin_of_safety(sums.shape[1] * sums.shape[2], bits), turned,
        )  # fmt: skip
    else:
        box: Any = kernels.box_sparse if rows.sparse else kernels.box_dense
        box(
            *rows.kernel_arguments, valid, residuals, labels, intercept, range_.radius, range_.kind,
            np.array(range_.coefficients), range_.steps(bits), bits, turned,
        )  # fmt: skip
    sums += turned.transpose(0, 2, 1)


def clamp(entries: Doubles, limit: int, bits: int) -> None:
    """Round a flat array to the grid and clamp it to [-limit, limit], in place."""
    unused = np.zeros(2 * kernels.FRACTION_DEGREE)
    kernels.influence(entries, kernels.CLAMP, unused, limit, bits)


def shrunk(squares: Doubles, residuals: Doubles, intercept: bool, ball: Ball) -> Doubles:
    """Residuals, clipped at radius / reach, and shrunk for rows longer than the ball's reach."""
    if ball.reach == math.inf:
        return residuals
    with np.errstate(all="ignore"):
        rows = np.minimum(1.0, ball.reach / np.sqrt(squares + intercept))
        factors: Doubles = rows * np.minimum(1.0, ball.radius / ball.reach / lengths(residuals))
        return residuals * factors[:, None]


def lengths(residuals: Doubles) -> Doubles:
    """The l2 norm of every row, summed in the same order whatever other rows are there."""
    squares = np.zeros(len(residuals))
    with np.errstate(all="ignore"):
        for column in residuals.T:
            squares += column * column
        return np.asarray(np.sqrt(squares))


def median(sums: Integers) -> Integers:
    """The median block sum of every coordinate; the sum of the two middle ones if even."""
    flat: Integers = np.sort(sums.reshape(sums.shape[0], -1), axis=0)
    k = len(flat)
    middle: Integers = flat[k // 2] if k % 2 else flat[k // 2 - 1] + flat[k // 2]
    return middle


def add(sums: Doubles, labels: Integers, entries: Doubles) -> None:
    """Add every row of ``entries`` to the row of ``sums`` (blocks, columns) of its label."""
    if len(sums) == 1:
        sums[0] += entries.sum(axis=0)
    else:
        np.add.at(sums, labels, entries)
