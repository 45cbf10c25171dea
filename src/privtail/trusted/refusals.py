"""Refusals that read cells, of rows to predict and for scikit-learn's manners: no guarantee."""

from __future__ import annotations

from typing import Any

import numpy as np

from privtail.errors import InvalidInput
from privtail.trusted.records.arrays import is_listed, is_read_elsewhere


def as_known(values: Any) -> Any:
    """What NumPy makes of a container of a class that nobody knows: its type may follow from cells.

    Anything else stays as it is.
    """
    return np.asarray(values) if is_read_elsewhere(values) else values


def as_plain_numbers(X: Any) -> Any:
    """A list, or an array of Python objects, as an array of doubles; anything else as it is.

    Formal guarantee
    ----------------
    None: whether it raises depends on the cells. No error quotes one.

    Raises
    ------
    TypeError
        If a cell is neither a number nor text.
    InvalidInput
        If a text is no number, or rows of a list have different lengths.
    """
    X = as_known(X)
    if not is_listed(X) and not (isinstance(X, np.ndarray) and X.dtype == object):
        return X
    try:
        return np.asarray(X, dtype=np.float64)
    except TypeError:
        raise TypeError("Every cell of X as an argument must be a string or a number.") from None
    except ValueError:
        raise InvalidInput(
            "X holds text that is no number, or rows of different lengths."
        ) from None
