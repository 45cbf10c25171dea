"""From features to predictions: scores, labels, probabilities and expected counts."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from privtail.errors import InvalidInput
from privtail.spelling import counted
from privtail.trusted.tables import table_blocks

Link = Literal["identity", "log", "logit"]

LINKS: dict[str, Link] = {
    "linear": "identity",
    "ridge": "identity",
    "lasso": "identity",
    "elastic-net": "identity",
    "huber": "identity",
    "lad": "identity",
    "quantile": "identity",
    "poisson": "log",
    "gamma": "log",
    "tweedie": "log",
    "logistic": "logit",
    "sparse": "identity",
    "sparse-logistic": "logit",
}
"""How a model of each kind makes predictions of its scores; a generalized one says it itself."""

GENERALIZED = "generalized"
LARGEST_LOG = 30.0
"""Expected counts are exp(score) of scores clipped to plus or minus this."""


def scores_of(
    designs: Iterable[Any], coef: NDArray[np.float64], intercept: Any,
    feature_range: NDArray[np.float64],
) -> NDArray[np.float64]:  # fmt: skip
    """Scores (rows, K) of blocks of features, dense or CSR; NaN in rows that are not `finite`.

    Features are clipped to their ranges (features, 2).
    """
    scores = [np.empty((0, len(coef)))]
    with np.errstate(all="ignore"):
        for features in designs:
            inside, zero = _clipped(features, *feature_range.T)
            block = np.asarray(inside @ coef.T + zero @ coef.T + intercept, dtype=np.float64)
            block[~finite(features)] = np.nan
            scores.append(block)
    return np.concatenate(scores)


def cut(scores: NDArray[np.float64], ends: NDArray[np.float64]) -> NDArray[np.float64]:
    """Scores clipped to one pair of ends (2,), or each of K (rows, K) to its own (K, 2).

    Of equal scores, the one that was largest before stays so, by 1e-12.
    """
    found = np.clip(scores, ends[..., 0], ends[..., 1])
    if scores.ndim == 2:
        found[np.arange(len(found)), scores.argmax(axis=1)] += 1e-12
    return found


def _clipped(
    features: Any, lows: NDArray[np.float64], highs: NDArray[np.float64]
) -> tuple[Any, NDArray[np.float64]]:
    """Features between their ends, less what zeros of them become (features,) if they are CSR."""
    if not hasattr(features, "tocsr"):
        return np.clip(features, lows, highs), np.zeros(features.shape[1])
    lows, highs = (np.broadcast_to(ends, features.shape[1]) for ends in (lows, highs))
    zero, inside = np.clip(0.0, lows, highs), features.tocsr(copy=True)
    inside.sum_duplicates()
    at = inside.indices
    inside.data = np.clip(inside.data, lows[at], highs[at]) - zero[at]
    return inside, zero


def finite(features: Any) -> NDArray[np.bool_]:
    """Which rows of features, dense or CSR, hold finite numbers alone."""
    if not hasattr(features, "tocsr"):
        return np.asarray(np.isfinite(features).all(axis=1))
    rows = np.repeat(np.arange(features.shape[0]), np.diff(features.indptr))
    whole_rows = np.ones(features.shape[0], dtype=np.bool_)
    whole_rows[rows[~np.isfinite(features.data)]] = False
    return whole_rows


def likely_labels(scores: NDArray[np.float64], classes: NDArray[Any]) -> NDArray[Any]:
    """The most probable label of every row; where a score is NaN none: NaN of numbers, or None."""
    two = scores.ndim == 1
    labels: NDArray[Any] = classes[(scores > 0).astype(int) if two else scores.argmax(axis=1)]
    unknown = np.isnan(scores if two else scores.sum(axis=1))
    if unknown.any():
        numbers = classes.dtype.kind in "iuf"
        labels = labels.astype(np.float64 if numbers else object)
        labels[unknown] = np.nan if numbers else None
    return labels


def numbered(rows: NDArray[Any], names: Sequence[str]) -> dict[str, NDArray[Any]]:
    """Columns of an array by name, for a model that was fitted on an array.

    Raises
    ------
    InvalidInput
        If there are more or fewer columns than names.
    """
    if rows.ndim != 2 or rows.shape[1] != len(names):
        raise InvalidInput(
            f"The model takes {counted(len(names), 'feature')}, in an array of shape "
            f"(rows, {len(names)}); got {rows.shape}."
        )
    return dict(zip(names, rows.T, strict=True))


def label_array(labels: Sequence[Any]) -> NDArray[Any]:
    """Labels as an array that keeps the type of each: text and numbers together are objects."""
    kinds = {isinstance(label, str) for label in labels}
    return np.array(labels, dtype=object if len(kinds) > 1 else None)


def probabilities(scores: NDArray[np.float64]) -> NDArray[np.float64]:
    """(rows, classes) probabilities, from scores (rows,) of the second class or (rows, classes)."""
    from scipy.special import expit, softmax

    if scores.ndim == 1:
        return np.column_stack([expit(-scores), expit(scores)])
    return np.asarray(softmax(scores, axis=1))


def exposure_column(data: Any, name: str) -> NDArray[np.float64]:
    """(rows, 1) the exposures in a column of a table, which may have no rows."""
    return np.concatenate([np.empty((0, 1)), *table_blocks(data, [name], {})])


def usable_exposure(exposure: Any, rows: int) -> NDArray[np.float64]:
    """Exposures of ``rows`` to predict, or one for all; NaN where not positive and finite."""
    if isinstance(exposure, str):
        raise InvalidInput(
            f"exposure={exposure!r} names a column. Pass its values, for example "
            f"exposure=frame[{exposure!r}]."
        )
    found = np.asarray(exposure, dtype=np.float64).reshape(-1)
    if len(found) not in (1, rows):
        raise InvalidInput(
            f"There are {rows} rows and {len(found)} exposures. Pass one number for each of these "
            "rows, or one for all."
        )
    return np.broadcast_to(np.where((found > 0) & (found < np.inf), found, np.nan), (rows,))


def expected_counts(scores: NDArray[np.float64]) -> NDArray[np.float64]:
    """Expected counts of a model with the log link, before they are clipped to their range."""
    return np.exp(np.clip(scores, -LARGEST_LOG, LARGEST_LOG))
