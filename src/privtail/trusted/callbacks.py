"""Calls of losses and of a user's functions: built-in losses on blocks, others row by row.

Formal guarantee
----------------
The lemma needs each record's contribution to be a function of that record alone. Which losses may
see a block of rows is decided here, when a question is asked, from the type of the loss:

- Built-in losses are row-local loops of the core (`losses.rowwise`). A loss is built in if it has
  exactly one of these types (no subclass), and holds only the parameters of the type, as plain
  numbers. The loops are those that the types had when this file was imported. The code of the
  types themselves is called with no row.
- A `CustomLoss` is a loop of the core over two functions of one margin and one target.
- A `TruncatedLoss` says how far the core truncates rows. The loss inside it is called by these same
  rules, so wrapping gives it no trust.
- A `GeneralLoss` is called with a block only if a user promised ``trusted_rowwise``, and the
  privacy statement prints that promise.

Any other object is called with one record at a time, on fresh copies. If it raises, or returns a
wrong shape or type, it counts as 0 for that record. A function of a whole part, for sample and
aggregate, is called with one part at a time under the same rules. If it fails, the part's point is
the fallback. One process cannot enforce that a callback keeps no state between records or parts:
`CoreLoss` and `PURE_PART` state this assumption, and the privacy statement prints it. Warnings of
a callback are not shown, because they would tell of a record. An interrupt that a callback raises
does not end a fit: callbacks run outside the main thread, and only that one gets Ctrl-C.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, fields
from functools import partial
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from privtail.compilation import QUIET, apart, interpreted
from privtail.errors import IncompatibleParts
from privtail.losses import (
    LABELS,
    LOSSES,
    AnyLoss,
    CustomLoss,
    CutLoss,
    GeneralLoss,
    LabelProbability,
    LogTruncatedLoss,
    RelativeHuberLoss,
    TruncatedLoss,
    WeightedLoss,
    WrongLabel,
)
from privtail.trusted.exactly import is_one_of
from privtail.trusted.losses import rowwise
from privtail.trusted.losses.called import by_record, copied, reply
from privtail.trusted.losses.rowwise import Rowwise, Said

Doubles = NDArray[np.float64]
PartFunction = Callable[..., Any]
"""A function of the rows of a part, and of their targets if there are any, that gives a point."""
Gradients = Callable[[Doubles, Doubles, Doubles], Doubles]

PURE_PART = (
    "The answer of the aggregated function depends on its part alone; it neither prints nor warns."
)

_BUILT_IN: frozenset[Any] = frozenset(
    {
        *(type(loss) for loss in LOSSES),
        CutLoss,
        LabelProbability,
        LogTruncatedLoss,
        RelativeHuberLoss,
        WeightedLoss,
        WrongLabel,
    }
)
_OURS: dict[Any, Rowwise] = {kind: kind.rowwise for kind in _BUILT_IN | {CustomLoss}}
_NUMBERS = frozenset(
    {int, float, bool, type(None)}
    | {kind for kind in np.sctypeDict.values() if issubclass(kind, np.number)}
)


def built_in(loss: object) -> bool:
    """Whether ``loss`` has exactly a built-in type, with plain numbers as parameters."""
    if not is_one_of(loss, _BUILT_IN):
        return False
    kind: Any = type(loss)
    held = vars(loss)
    return held.keys() == {field.name for field in fields(kind)} and all(
        _plain(value) for value in held.values()
    )


def _copy(value: Any) -> Any:
    """A copy of a built-in loss and of built-in losses in it; any other object itself."""
    if type(value) is tuple:
        return tuple(map(_copy, value))
    if not is_one_of(value, _BUILT_IN):
        return value
    own = object.__new__(type(value))
    for name, held in vars(value).items():
        object.__setattr__(own, name, _copy(held))
    return own


def _plain(value: object) -> bool:
    if type(value) is tuple:
        return all(_plain(entry) for entry in value)
    return is_one_of(value, _NUMBERS) or built_in(value)


@dataclass(frozen=True)
class CoreLoss:
    """A loss as the core calls it. It was read and copied once, before the question.

    Attributes
    ----------
    values : losses (rows,) of margins (rows, K) and targets (rows,).
    derivatives : derivatives (rows, K) of the same.
    gradients : for a `GeneralLoss` or a `TruncatedLoss`, gradients (rows, w.size) of w, rows and
        targets; a record that fails gets NaN, which adds 0. None for a loss of margins.
    assumptions : assumptions of the promise if the loss is not built in; the statement prints them.
    """

    values: Callable[[Doubles, Doubles], Doubles]
    derivatives: Callable[[Doubles, Doubles], Doubles]
    gradients: Gradients | None
    assumptions: tuple[str, ...]


def core_loss(loss: AnyLoss) -> CoreLoss:
    """The loss as the core calls it: a copy if built in, which nobody can change after this."""
    loss = _copy(loss)
    if isinstance(loss, TruncatedLoss):
        inner = core_loss(loss.loss)
        truncated = partial(_truncated, inner, float(loss.bound), loss.loss.targets in LABELS)
        return CoreLoss(_no_margins, _no_margins, truncated, inner.assumptions)
    pure = f"The functions of the loss {loss.name!r} are pure: they keep no state between rows."
    if isinstance(loss, GeneralLoss):
        rowwise = bool(loss.trusted_rowwise)
        promise = (
            f"The loss {loss.name!r} is row-wise: what it says of a row depends on that row alone, "
            "and it raises for no finite row."
        )
        gradients = partial(_general, loss.gradient, rowwise)
        said = (pure, promise) if rowwise else (pure,)
        return CoreLoss(_no_margins, _no_margins, gradients, said)
    return CoreLoss(*_of_margins(loss), None, () if built_in(loss) else (pure,))


def _no_margins(margins: Doubles, y: Doubles) -> Doubles:
    raise IncompatibleParts("This question needs a loss of margins, not of all numbers of a row.")


def _of_margins(loss: Any) -> tuple[Callable[..., Doubles], Callable[..., Doubles]]:
    if type(loss) is CustomLoss or built_in(loss):
        values, derivatives = _ours(loss)
        called = _at_once if built_in(loss) else _quietly_at_once
        return partial(called, values, loss), partial(called, derivatives, loss)
    return partial(_one_by_one, loss.values, 1), partial(_one_by_one, loss.derivatives, 2)


def _ours(loss: Any) -> Rowwise:
    """The loops of a built-in loss, and of the one inside it."""
    own: Any = _OURS[type(loss)]
    if not is_one_of(loss, (CutLoss, WeightedLoss)):
        return cast(Rowwise, own)
    held = _ours(loss.loss)
    return Rowwise(*(partial(said, held=held) for said in own))


def _at_once(function: Said, loss: Any, margins: Doubles, y: Doubles) -> Doubles:
    with interpreted(False):
        return np.ascontiguousarray(function(loss, margins, y), dtype=np.float64)


def _quietly_at_once(function: Said, loss: Any, margins: Doubles, y: Doubles) -> Doubles:
    def answers() -> Doubles:
        with QUIET:
            return _at_once(function, loss, margins, y)

    return apart(answers)


def _one_by_one(function: Callable[..., Any], axes: int, margins: Doubles, y: Doubles) -> Doubles:
    return apart(partial(_each, function, axes, margins, y))


def _each(function: Callable[..., Any], axes: int, margins: Doubles, y: Doubles) -> Doubles:
    answers = np.zeros(margins.shape[:axes])
    with QUIET:
        for i in range(len(y)):
            called = partial(function, margins[i : i + 1].copy(), y[i : i + 1].copy())
            answers[i] = answer(called, answers.shape[1:], 0.0)
    return answers


def _general(
    gradient: Callable[..., Any], rowwise: bool, w: Doubles, x: Doubles, y: Doubles
) -> Doubles:
    finite = np.isfinite(x).all(axis=1) & np.isfinite(y)
    x, y = np.where(finite[:, None], x, 0.0), np.where(finite, y, 0.0)  # others count for nothing

    def answers() -> Doubles:
        with QUIET:
            return by_record(gradient, rowwise, w, x, y, w.shape).reshape(len(y), -1)

    gradients = apart(answers)
    gradients[~finite] = np.nan
    return gradients


def _truncated(
    inner: CoreLoss, bound: float, labels: bool, w: Doubles, x: Doubles, y: Doubles
) -> Doubles:
    with np.errstate(all="ignore"):
        rows, margins, kept = rowwise.truncated(bound, labels, w, x, y)
        return rowwise.gradients(rows, inner.derivatives(margins, kept)).reshape(len(y), -1)


def on_part(function: PartFunction, x: Doubles, y: Doubles | None, size: int) -> Doubles:
    """The point (size,) that ``function`` gives for one part of the records; NaN if it fails.

    It is called as ``function(x)``, or ``function(x, y)``, on fresh read-only copies.
    """
    copies = [copied(a) for a in (x, y) if a is not None]

    def point() -> Doubles:
        with QUIET:
            return answer(partial(function, *copies), (size,), math.nan)

    return apart(point)


def answer(called: Callable[[], Any], shape: tuple[int, ...], missing: float) -> Doubles:
    """The answer of a callback; ``missing`` if it raises or its answer has not this shape."""
    found = reply(called, shape)
    return np.full(shape, missing) if found is None else found
