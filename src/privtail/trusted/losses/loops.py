"""The loops of the losses: compiled, and row by row.

Formal guarantee
----------------
What a loop writes for row i is a function of ``margins[i]``, of ``y[i]`` and of public numbers, to
the bit, whatever else is in the block: it reads nothing else, takes exponentials by arithmetic
alone, and asks the library for other functions number by number. It may be any number; whoever sums
it forces the range. All arrays are contiguous, with one margin per row but for the multinomial
loss.
"""

from __future__ import annotations

import functools
import math
from typing import TYPE_CHECKING

import numpy as np

from privtail.compilation import compiled
from privtail.errors import InvalidInput

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    Array = NDArray[np.float64]


POISSON_MARGIN = 30.0


def block(margins: Array, y: Array, outputs: int) -> tuple[Array, Array]:
    """Views of both, read-only and contiguous: one type, so that a loop is compiled once."""
    margins = np.ascontiguousarray(margins, dtype=np.float64).view()
    y = np.ascontiguousarray(y, dtype=np.float64).view()
    if y.ndim != 1 or margins.shape != (y.size, outputs):
        raise InvalidInput(
            f"margins must have shape (rows, {outputs}) and y (rows,), "
            f"got {margins.shape} and {y.shape}."
        )
    margins.flags.writeable = False
    y.flags.writeable = False
    return margins, y


def values_of(loop: Callable[..., None], margins: Array, y: Array, *parameters: float) -> Array:
    """The values of a loop of one margin at these rows, (rows,)."""
    margins, y = block(margins, y, 1)
    out = np.empty(y.size)
    loop(margins.reshape(-1), y, *map(float, parameters), out)
    return out


def derivatives_of(
    loop: Callable[..., None], margins: Array, y: Array, *parameters: float
) -> Array:
    """As `values_of`, (rows, 1)."""
    return values_of(loop, margins, y, *parameters).reshape(-1, 1)


@compiled
def _exp(x: float) -> float:
    # Arithmetic alone, within 1 ulp: a vectorised library function may round the last rows of a
    # block differently from the first ones. NaN gives 0.
    x = x if x > -746.0 else -746.0
    x = x if x < 710.0 else 710.0
    k = math.floor(x * 1.4426950408889634 + 0.5)
    r = (x - k * 6.93147180369123816490e-01) - k * 1.90821492927058770002e-10
    p = 1.0 / 6227020800.0
    p = p * r + 1.0 / 479001600.0
    p = p * r + 1.0 / 39916800.0
    p = p * r + 1.0 / 3628800.0
    p = p * r + 1.0 / 362880.0
    p = p * r + 1.0 / 40320.0
    p = p * r + 1.0 / 5040.0
    p = p * r + 1.0 / 720.0
    p = p * r + 1.0 / 120.0
    p = p * r + 1.0 / 24.0
    p = p * r + 1.0 / 6.0
    p = p * r + 0.5
    p = (p * r) * r + r
    half = np.int64(k) >> 1
    rest = np.int64(k) - half
    low = np.int64((half + 1023) << 52).view(np.float64)
    high = np.int64((rest + 1023) << 52).view(np.float64)
    return ((1.0 + p) * low) * high


@compiled
def _log1p(t: float) -> float:
    # 2 artanh(t / (2 + t)) for t in [0, 1], arithmetic alone.
    u = 2.0 * t / (2.0 + t)
    q = 0.25 * u * u
    p = 0.0
    for k in range(35, 0, -2):
        p = p * q + 1.0 / k
    return u * p


@compiled
def squared_values(margins: Array, y: Array, out: Array) -> None:
    for i in range(y.size):
        r = margins[i] - y[i]
        out[i] = 0.5 * r * r


@compiled
def squared_derivatives(margins: Array, y: Array, out: Array) -> None:
    for i in range(y.size):
        out[i] = margins[i] - y[i]


@compiled
def logistic_values(margins: Array, y: Array, out: Array) -> None:
    for i in range(y.size):
        z = (2.0 * y[i] - 1.0) * margins[i]
        out[i] = _log1p(_exp(-abs(z))) + (-z if z < 0.0 else 0.0)


@compiled
def logistic_derivatives(margins: Array, y: Array, out: Array) -> None:
    for i in range(y.size):
        s = 2.0 * y[i] - 1.0
        z = s * margins[i]
        t = _exp(-abs(z))
        out[i] = -s * (t if z > 0.0 else 1.0) / (1.0 + t)


@compiled
def multinomial_values(margins: Array, y: Array, out: Array) -> None:
    rows, classes = margins.shape
    for i in range(rows):
        if not (0.0 <= y[i] < classes and y[i] == math.floor(y[i])):
            out[i] = np.nan
            continue
        top = 0
        for k in range(1, classes):
            if margins[i, k] > margins[i, top]:
                top = k
        rest = 0.0
        for k in range(classes):
            if k != top:
                rest += _exp(margins[i, k] - margins[i, top])
        out[i] = math.log1p(rest) + (margins[i, top] - margins[i, int(y[i])])


@compiled
def multinomial_derivatives(margins: Array, y: Array, out: Array) -> None:
    rows, classes = margins.shape
    for i in range(rows):
        if not (0.0 <= y[i] < classes and y[i] == math.floor(y[i])):
            for k in range(classes):
                out[i, k] = np.nan
            continue
        top = 0
        for k in range(1, classes):
            if margins[i, k] > margins[i, top]:
                top = k
        rest = 0.0
        for k in range(classes):
            if k != top:
                out[i, k] = _exp(margins[i, k] - margins[i, top])
                rest += out[i, k]
        out[i, top] = 1.0
        label = int(y[i])
        for k in range(classes):
            out[i, k] /= 1.0 + rest
        if label == top:
            out[i, label] = -rest / (1.0 + rest)
        else:
            out[i, label] -= 1.0


@compiled
def huber_values(margins: Array, y: Array, threshold: float, out: Array) -> None:
    for i in range(y.size):
        r = abs(margins[i] - y[i])
        out[i] = 0.5 * r * r if r <= threshold else threshold * (r - 0.5 * threshold)


@compiled
def huber_derivatives(margins: Array, y: Array, threshold: float, out: Array) -> None:
    for i in range(y.size):
        r = margins[i] - y[i]
        r = r if r < threshold else threshold
        out[i] = r if r > -threshold else -threshold


@compiled
def absolute_values(margins: Array, y: Array, out: Array) -> None:
    for i in range(y.size):
        out[i] = abs(margins[i] - y[i])


@compiled
def absolute_derivatives(margins: Array, y: Array, out: Array) -> None:
    for i in range(y.size):
        r = margins[i] - y[i]
        out[i] = (1.0 if r > 0.0 else 0.0) - (1.0 if r < 0.0 else 0.0)


@compiled
def quantile_values(margins: Array, y: Array, quantile: float, out: Array) -> None:
    for i in range(y.size):
        r = margins[i] - y[i]
        out[i] = (1.0 - quantile) * r if r > 0.0 else -quantile * r


@compiled
def quantile_derivatives(margins: Array, y: Array, quantile: float, out: Array) -> None:
    for i in range(y.size):
        r = margins[i] - y[i]
        out[i] = (1.0 - quantile if r > 0.0 else 0.0) - (quantile if r < 0.0 else 0.0)


@compiled
def smoothed_values(
    margins: Array, y: Array, quantile: float, width: float, out: Array
) -> None:  # fmt: skip
    for i in range(y.size):
        r = margins[i] - y[i]
        g = r / width
        g = -quantile if g < -quantile else g
        g = 1 - quantile if g > 1 - quantile else g
        out[i] = g * (r - 0.5 * width * g)


@compiled
def smoothed_derivatives(
    margins: Array, y: Array, quantile: float, width: float, out: Array
) -> None:  # fmt: skip
    for i in range(y.size):
        g = (margins[i] - y[i]) / width
        g = -quantile if g < -quantile else g
        out[i] = 1 - quantile if g > 1 - quantile else g


@compiled
def poisson_values(margins: Array, y: Array, highest: float, out: Array) -> None:
    for i in range(y.size):
        m = margins[i]
        c = m if m > -POISSON_MARGIN else -POISSON_MARGIN
        c = c if c < highest else highest
        e = _exp(c)
        count = 0.0 if y[i] < 0.0 else y[i]
        out[i] = e + e * (m - c) - count * m


@compiled
def poisson_derivatives(margins: Array, y: Array, highest: float, out: Array) -> None:
    for i in range(y.size):
        m = margins[i]
        c = m if m > -POISSON_MARGIN else -POISSON_MARGIN
        c = c if c < highest else highest
        out[i] = _exp(c) - (0.0 if y[i] < 0.0 else y[i])


@compiled
def tweedie_values(
    margins: Array, y: Array, power: float, lowest: float, highest: float, out: Array
) -> None:
    for i in range(y.size):
        m = margins[i]
        c = m if m > lowest else lowest
        c = c if c < highest else highest
        amount = 0.0 if y[i] < 0.0 else y[i]
        up, down = _exp((2.0 - power) * c), amount * _exp((1.0 - power) * c)
        own = c if power == 2.0 else up / (2.0 - power)
        own += -amount * c if power == 1.0 else down / (power - 1.0)
        out[i] = own + (up - down) * (m - c)


@compiled
def tweedie_derivatives(
    margins: Array, y: Array, power: float, lowest: float, highest: float, out: Array
) -> None:
    for i in range(y.size):
        m = margins[i]
        c = m if m > lowest else lowest
        c = c if c < highest else highest
        amount = 0.0 if y[i] < 0.0 else y[i]
        out[i] = _exp((2.0 - power) * c) - amount * _exp((1.0 - power) * c)


@compiled
def sigmoid_values(margins: Array, y: Array, out: Array) -> None:
    for i in range(y.size):
        z = (2.0 * y[i] - 1.0) * margins[i]
        t = _exp(-abs(z))
        out[i] = (t if z > 0.0 else 1.0) / (1.0 + t)


@compiled
def sigmoid_derivatives(margins: Array, y: Array, out: Array) -> None:
    for i in range(y.size):
        s = 2.0 * y[i] - 1.0
        t = _exp(-abs(s * margins[i]))
        out[i] = -s * t / ((1.0 + t) * (1.0 + t))


@compiled
def biweight_values(margins: Array, y: Array, threshold: float, out: Array) -> None:
    for i in range(y.size):
        u = (margins[i] - y[i]) / threshold
        q = u * u if abs(u) < 1.0 else 1.0
        out[i] = threshold * (threshold / 6.0) * (q * (3.0 + q * (q - 3.0)))


@compiled
def biweight_derivatives(margins: Array, y: Array, threshold: float, out: Array) -> None:
    for i in range(y.size):
        r = margins[i] - y[i]
        u = r / threshold
        q = 1.0 - u * u
        out[i] = r * q * q if abs(u) < 1.0 else 0.0


_TABLE_CELLS = 2**14


@functools.lru_cache(maxsize=32)
def log_truncated_table(order: float) -> tuple[Array, Array]:
    """ψ at the ends of equal cells of [0, 1], and what it gains in each cell."""
    a = np.linspace(0.0, 1.0, _TABLE_CELLS + 1)
    table = -np.log1p(a**order / order - a)
    slopes = np.append(np.diff(table), 0.0)
    table.flags.writeable = slopes.flags.writeable = False
    return table, slopes


@compiled
def log_truncated_values(
    margins: Array, y: Array, scale: float, table: Array, slopes: Array, out: Array
) -> None:
    cells = table.size - 1
    for i in range(y.size):
        a = abs(margins[i] - y[i]) * scale
        a = a if a < 1.0 else 1.0
        a = a if a > 0.0 else 0.0  # whatever the scale: within the table
        j = int(a * cells)
        out[i] = (table[j] + (a * cells - j) * slopes[j]) / scale


@compiled
def log_truncated_derivatives(
    margins: Array, y: Array, scale: float, order: float, out: Array
) -> None:
    for i in range(y.size):
        r = margins[i] - y[i]
        a = abs(r) * scale
        slope = (1.0 - a ** (order - 1.0)) / (1.0 - a + a**order / order) if a < 1.0 else 0.0
        out[i] = slope if r > 0.0 else -slope if r < 0.0 else 0.0
