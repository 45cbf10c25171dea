"""What a fit notes and warns of: from released and public numbers alone."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privtail.algorithms.result import Result
from privtail.default.amounts import HIDDEN_MEAN, NONE_DETECTED, TOO_LARGE
from privtail.default.finish import NARROWED, SUBTRACT
from privtail.schema.encoding import Design
from privtail.trusted.problem import Problem
from privtail.trusted.tables import column_names

Doubles = NDArray[np.float64]

SLOPELESS = "All slopes are zero, so the model predicts a constant."
UNMATCHED = (
    "No declared category of column {!r} was detected above the noise, or nearly all rows have the "
    "same one. So its slopes are zero. Compare the spelling with the column's."
)

TARGET_AMONG_FEATURES = (
    "The features hold a column {name!r}, which is the name of the target. If it is the target, "
    'leave it out: X.drop(columns=["{name}"]) of pandas and Dask, X.drop("{name}") of polars, '
    'X.drop_columns("{name}") of Arrow, fit(X, "{name}") of open_table. If not, give the target '
    "another name."
)


def target_among_features(features: Collection[str], y: Any) -> tuple[str, ...]:
    """A warning of features of which one has the target's name; names are public.

    Classes are asked for names: of a data frame an attribute may be cells.
    """
    columns = column_names(y)
    name = y.name if hasattr(type(y), "name") else None
    if columns is not None:
        name = columns[0] if len(columns) == 1 else None
    if not isinstance(name, str) or name not in features:
        return ()
    return (TARGET_AMONG_FEATURES.format(name=name),)


def slopeless(result: Result, problem: Problem, multiplier: float) -> tuple[str, ...]:
    """A warning of a private model without slopes, with the reasons in its notes."""
    if multiplier == 0 or np.any(result.w[: problem.d]):
        return ()
    return (" ".join([SLOPELESS, *result.notes]),)


def unsized(result: Result) -> tuple[str, ...]:
    """A warning where noise hides the amounts, or some are larger than any prediction."""
    return tuple(n for n in (NONE_DETECTED, HIDDEN_MEAN, TOO_LARGE) if n in result.notes)


def narrowed(result: Result) -> tuple[str, ...]:
    """A warning of a target that was located in a range and no closer, which slopes do not mend."""
    begin = NARROWED.partition("{")[0]
    return tuple(f"{note} {SUBTRACT}" for note in result.notes if note.startswith(begin))


def unmatched(noise: Doubles, report: Mapping[str, Any], design: Design) -> tuple[str, ...]:
    """A warning of every column of categories of which no indicator is used.

    What is used was decided by released counts. The ``noise`` (d,) of a feature that is not used is
    infinite, and zero if all slopes were set to zero later: then the ``report`` says it.
    """
    unused = np.isinf(noise)
    if report.get("regime") == "all features":
        unused = unused | ~report["feature_used"]
    return tuple(
        UNMATCHED.format(part.columns[0])
        for part, places in design.placed()
        if part.categorical and len(places) and unused[places.start : places.stop].all()
    )
