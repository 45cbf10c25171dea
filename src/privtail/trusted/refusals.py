"""Refusals that read cells, for those who ask for scikit-learn's manners: outside the guarantee."""

from __future__ import annotations

from typing import Any

import numpy as np

from privtail.errors import InvalidInput


def as_plain_numbers(X: Any) -> Any:
    """An array of Python objects as doubles; anything else as it is.

    Formal guarantee
    ----------------
    None: whether it raises depends on the cells. No error quotes one.

    Raises
    ------
    TypeError
        If a cell is neither a number nor text.
    InvalidInput
        If a text is no number.
    """
    if not isinstance(X, np.ndarray) or X.dtype != object:
        return X
    try:
        return X.astype(np.float64)
    except TypeError:
        raise TypeError("Every cell of X as an argument must be a string or a number.") from None
    except ValueError:
        raise InvalidInput("X holds text that is no number.") from None
