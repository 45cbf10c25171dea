"""What a fit notes and warns of: from released and public numbers alone."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from privtail.algorithms.result import Result
from privtail.trusted.problem import Problem

SLOPELESS = "All slopes are zero, so the model predicts a constant."
UNMATCHED = (
    "No declared category of column {!r} shows in what was released, so its slopes are zero. Too "
    "few rows hold one, or nearly all hold the same: compare the spelling with the column's."
)


def slopeless(result: Result, problem: Problem, multiplier: float) -> tuple[str, ...]:
    """A warning of a private model without slopes, with the reasons in its notes."""
    if multiplier == 0 or np.any(result.w[: problem.d]):
        return ()
    return (" ".join([SLOPELESS, *result.notes]),)


def unmatched(
    result: Result, names: Sequence[str], categories: Mapping[str, Sequence[Any]]
) -> tuple[str, ...]:
    """A warning of every column of categories of which no indicator is used.

    ``names`` are the columns in order. What is used was decided by released second moments.
    """
    if result.noise is None:
        return ()
    unused, found, first = np.isinf(result.noise), [], 0
    for name in names:
        width = len(categories.get(name, "1"))
        if name in categories and unused[first : first + width].all():
            found.append(UNMATCHED.format(name))
        first += width
    return tuple(found)
