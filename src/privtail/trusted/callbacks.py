"""Calling losses: ours on blocks, everybody else's record by record.

Formal guarantee
----------------
The lemma needs each record's contribution to be a function of that record alone. Built-in losses
are row-local loops. `CustomLoss` and `GeneralLoss` guard every record themselves. Any other object
is called with one record at a time, on fresh copies; what it raises, or returns in a wrong shape or
type, counts as 0 for that record. A function of a whole part, for sample and aggregate, is called
on one part at a time under the same rules: where it fails, the part's point is the fallback. That a
callback keeps no state between records or parts cannot be enforced inside one process:
`assumptions` and `PURE_PART` state it, and the privacy statement prints it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privtail.losses import (
    LOSSES,
    AnyLoss,
    CustomLoss,
    ExcessLoss,
    GeneralLoss,
    LogTruncatedLoss,
    Loss,
    OddsAgainst,
    PredictedCount,
    RelativeHuberLoss,
    WeightedLoss,
    WrongLabel,
)

Doubles = NDArray[np.float64]
PartFunction = Callable[..., Any]
"""From the rows of a part, and their targets if there are any, to a point."""

PURE_PART = (
    "The answer of the aggregated function depends on its part alone; it neither prints nor warns."
)

BUILT_IN = frozenset(
    {
        *(type(loss) for loss in LOSSES),
        ExcessLoss,
        LogTruncatedLoss,
        OddsAgainst,
        PredictedCount,
        RelativeHuberLoss,
        WeightedLoss,
        WrongLabel,
    }
)


def assumptions(loss: AnyLoss) -> tuple[str, ...]:
    """What the promise rests on when ``loss`` is not one of ours."""
    if type(loss) in BUILT_IN:
        return ()
    pure = f"The functions of the loss {loss.name!r} are pure: they keep no state between records."
    if isinstance(loss, GeneralLoss) and loss.trusted_rowwise:
        return pure, f"The loss {loss.name!r} is row-wise: row i depends on record i alone."
    return (pure,)


def values(loss: Loss, margins: Doubles, y: Doubles) -> Doubles:
    """Losses (rows,)."""
    return _rowwise(loss, loss.values, margins, y, (len(y),))


def derivatives(loss: Loss, margins: Doubles, y: Doubles) -> Doubles:
    """Derivatives (rows, K)."""
    return np.ascontiguousarray(_rowwise(loss, loss.derivatives, margins, y, margins.shape))


def gradients(loss: GeneralLoss, w: Doubles, x: Doubles, y: Doubles) -> Doubles:
    """Gradients (rows, w.size) of a general loss; a record that fails gets NaN, which adds 0."""
    with np.errstate(all="ignore"):
        return np.ascontiguousarray(GeneralLoss.gradients(loss, w, x, y).reshape(len(y), -1))


def on_part(function: PartFunction, x: Doubles, y: Doubles | None, size: int) -> Doubles:
    """What ``function`` says of one part of the records, (size,); NaN where it fails.

    It is called as ``function(x)``, or ``function(x, y)``, on fresh read-only copies.
    """
    copies = [np.array(a) for a in (x, y) if a is not None]
    for copy in copies:
        copy.flags.writeable = False
    with np.errstate(all="ignore"):
        try:
            answer = np.asarray(function(*copies))
            if answer.size == size and np.can_cast(answer.dtype, np.float64, "same_kind"):
                return np.array(answer, dtype=np.float64).reshape(-1)
        except KeyboardInterrupt:
            raise
        except BaseException:  # noqa: BLE001  a failure depends on the records: it must not show
            return np.full(size, np.nan)
    return np.full(size, np.nan)


def _rowwise(
    loss: Loss,
    function: Callable[[Doubles, Doubles], Any],
    margins: Doubles,
    y: Doubles,
    shape: tuple[int, ...],
) -> Doubles:
    with np.errstate(all="ignore"):
        if type(loss) in BUILT_IN or type(loss) is CustomLoss:
            return np.asarray(function(margins, y), dtype=np.float64)
        answers = np.zeros(shape)
        for i in range(len(y)):
            try:
                answer = np.asarray(function(margins[i : i + 1].copy(), y[i : i + 1].copy()))
                if np.can_cast(answer.dtype, np.float64, "same_kind"):
                    answers[i] = answer.reshape(shape[1:])
            except KeyboardInterrupt:
                raise
            except BaseException:  # noqa: BLE001  a failure depends on the record: it must not show
                answers[i] = 0.0
        return answers
