"""Values and derivatives of our losses at a block of rows.

Formal guarantee
----------------
Nothing of a loss is read but public numbers. So the result for row i is a function of row i: a loop
of `loops` over its margins and its target, and element-wise operations of NumPy, whose result for
an entry does not depend on the others.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from privtail.trusted.losses import loops

Doubles = NDArray[np.float64]
Said = Callable[[Any, Doubles, Doubles], Doubles]
"""From a loss, margins (rows, K) and targets (rows,)."""


class Rowwise(NamedTuple):
    """The two functions of a loss: values (rows,), and derivatives in the margins (rows, K)."""

    values: Said
    derivatives: Said


def _looped(
    loop: Callable[..., None], called: Callable[..., Doubles], numbers: tuple[str, ...],
    unit: Callable[[Any], float] | None, loss: Any, margins: Doubles, y: Doubles,
) -> Doubles:  # fmt: skip
    found = called(loop, margins, y, *(getattr(loss, name) for name in numbers))
    return found if unit is None else found / unit(loss)


def _of_one_margin(
    values: Callable[..., None], derivatives: Callable[..., None], *numbers: str,
    unit: Callable[[Any], float] | None = None,
) -> Rowwise:  # fmt: skip
    """Two loops that take these numbers of the loss; all is divided by a ``unit``.

    What it gives can be pickled: a question is sent to workers.
    """
    return Rowwise(
        partial(_looped, values, loops.values_of, numbers, unit),
        partial(_looped, derivatives, loops.derivatives_of, numbers, unit),
    )


def _poisson_unit(loss: Any) -> float:
    return float(loss.mean or 1.0)


def _tweedie_unit(loss: Any) -> float:
    return 1.0 if loss.mean is None else float(loss.mean ** (2.0 - loss.power))


SQUARED = _of_one_margin(loops.squared_values, loops.squared_derivatives)
HUBER = _of_one_margin(loops.huber_values, loops.huber_derivatives, "threshold")
ABSOLUTE = _of_one_margin(loops.absolute_values, loops.absolute_derivatives)
QUANTILE = _of_one_margin(loops.quantile_values, loops.quantile_derivatives, "quantile")
SMOOTHED = _of_one_margin(
    loops.smoothed_values, loops.smoothed_derivatives, "quantile", "width"
)  # fmt: skip
BIWEIGHT = _of_one_margin(loops.biweight_values, loops.biweight_derivatives, "threshold")
LOGISTIC = _of_one_margin(loops.logistic_values, loops.logistic_derivatives)
SIGMOID = _of_one_margin(loops.sigmoid_values, loops.sigmoid_derivatives)
POISSON = _of_one_margin(
    loops.poisson_values, loops.poisson_derivatives, "highest", unit=_poisson_unit
)
TWEEDIE = _of_one_margin(
    loops.tweedie_values, loops.tweedie_derivatives, "power", "lowest", "highest",
    unit=_tweedie_unit,
)  # fmt: skip


def _log_truncated_values(loss: Any, margins: Doubles, y: Doubles) -> Doubles:
    margins, y = loops.block(margins, y, 1)
    out = np.empty(y.size)
    table, slopes = loops.log_truncated_table(float(loss.order))
    loops.log_truncated_values(margins.reshape(-1), y, float(loss.scale), table, slopes, out)
    return out


def _log_truncated_derivatives(loss: Any, margins: Doubles, y: Doubles) -> Doubles:
    loop = loops.log_truncated_derivatives
    return loops.derivatives_of(loop, margins, y, loss.scale, loss.order)


LOG_TRUNCATED = Rowwise(_log_truncated_values, _log_truncated_derivatives)


def _multinomial_values(loss: Any, margins: Doubles, y: Doubles) -> Doubles:
    margins, y = loops.block(margins, y, loss.outputs)
    out = np.empty(y.size)
    loops.multinomial_values(margins, y, out)
    return out


def _multinomial_derivatives(loss: Any, margins: Doubles, y: Doubles) -> Doubles:
    margins, y = loops.block(margins, y, loss.outputs)
    out = np.empty(margins.shape)
    loops.multinomial_derivatives(margins, y, out)
    return out


MULTINOMIAL = Rowwise(_multinomial_values, _multinomial_derivatives)


def _weights(weights: tuple[float, ...], y: Doubles) -> Doubles:
    """The weight of each row's class; NaN where the target is none."""
    found = np.full(len(y), np.nan)
    for code, weight in enumerate(weights):
        found[y == code] = weight
    return found


_Which = Literal["values", "derivatives"]


def _weighted(
    which: _Which, loss: Any, margins: Doubles, y: Doubles, *, held: Rowwise | None = None
) -> Doubles:
    found: Doubles = getattr(held or loss.loss.rowwise, which)(loss.loss, margins, y)
    weights = _weights(loss.weights, y)
    return found * (weights if found.ndim == 1 else weights[:, None])


def _cut(
    which: _Which, loss: Any, margins: Doubles, y: Doubles, *, held: Rowwise | None = None
) -> Doubles:
    margins = np.clip(margins, *(_ends(end, margins) for end in (loss.lowest, loss.highest)))
    found: Doubles = getattr(held or loss.loss.rowwise, which)(loss.loss, margins, y)
    return found


def _ends(end: Any, margins: Doubles) -> Doubles:
    """A plain copy of one end of all margins, or of one for each: never of one for each row."""
    return np.broadcast_to(np.array(end, np.float64), margins.shape[1:])


WEIGHTED = Rowwise(partial(_weighted, "values"), partial(_weighted, "derivatives"))
CUT = Rowwise(partial(_cut, "values"), partial(_cut, "derivatives"))


def _wrong(loss: Any, margins: Doubles, y: Doubles) -> Doubles:
    predicted = margins[:, 0] > 0 if loss.outputs == 1 else margins.argmax(axis=1)
    return np.asarray(predicted != y, dtype=np.float64)


def _probability(loss: Any, margins: Doubles, y: Doubles) -> Doubles:
    if loss.outputs == 1:
        chances = SIGMOID.values(loss, margins, np.zeros_like(y))
    else:
        chances = MULTINOMIAL.derivatives(loss, margins, np.ones_like(y))[:, 0]
    return np.where(np.isnan(y), np.nan, chances)


def _flat(loss: Any, margins: Doubles, y: Doubles) -> Doubles:
    return np.zeros_like(margins)


WRONG_LABEL = Rowwise(_wrong, _flat)
LABEL_PROBABILITY = Rowwise(_probability, _flat)


def truncated(
    bound: float, labels: bool, w: Doubles, X: Doubles, y: Doubles
) -> tuple[Doubles, Doubles, Doubles]:
    """Truncated rows, with a column of ones if w has a row more; their margins; their targets."""
    x = np.ones((len(X), len(w)))
    np.clip(X, -bound, bound, out=x[:, : X.shape[1]])
    margins = np.zeros((len(x), w.shape[1]))
    for j in np.flatnonzero(w.any(axis=1)):  # in a fixed order, row by row
        margins += x[:, j : j + 1] * w[j]
    return x, margins, y if labels else np.clip(y, -bound, bound)


def gradients(x: Doubles, derivatives: Doubles) -> Doubles:
    """Rows (rows, d) times derivatives in their margins (rows, K), (rows, d, K)."""
    return x[:, :, None] * derivatives[:, None, :]
