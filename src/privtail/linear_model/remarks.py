"""What a fit notes and warns of: from released and public numbers alone."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from privtail.algorithms.result import Result
from privtail.default.amounts import NONE_DETECTED, TOO_LARGE
from privtail.default.finish import NARROWED, SUBTRACT
from privtail.schema.encoding import Design
from privtail.trusted.problem import Problem

Doubles = NDArray[np.float64]

SLOPELESS = "All slopes are zero, so the model predicts a constant."
UNMATCHED = (
    "No declared category of column {!r} was detected above the noise, so its slopes are zero. Too "
    "few rows hold one, or nearly all hold the same: compare the spelling with the column's."
)


def slopeless(result: Result, problem: Problem, multiplier: float) -> tuple[str, ...]:
    """A warning of a private model without slopes, with the reasons in its notes."""
    if multiplier == 0 or np.any(result.w[: problem.d]):
        return ()
    return (" ".join([SLOPELESS, *result.notes]),)


def unsized(result: Result) -> tuple[str, ...]:
    """A warning of amounts of which nothing but zeros showed, or which predictions do not reach."""
    return tuple(note for note in (NONE_DETECTED, TOO_LARGE) if note in result.notes)


def narrowed(result: Result) -> tuple[str, ...]:
    """A warning of a target that was seen in one range and no closer, which slopes do not mend."""
    begin = NARROWED.partition("{")[0]
    return tuple(f"{note} {SUBTRACT}" for note in result.notes if note.startswith(begin))


def unmatched(noise: Doubles, design: Design) -> tuple[str, ...]:
    """A warning of every column of categories of which no indicator is used.

    What is used was decided by released second moments. Of a feature that is not used the ``noise``
    (d,) is infinite.
    """
    unused = np.isinf(noise)
    return tuple(
        UNMATCHED.format(part.columns[0])
        for part, places in design.placed()
        if part.categorical and len(places) and unused[places.start : places.stop].all()
    )
