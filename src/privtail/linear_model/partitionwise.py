"""Predictions of Dask collections, made by partitions when they are computed."""

from __future__ import annotations

import copy
import functools
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from privtail.dask_collections import announced, is_spread
from privtail.errors import InvalidInput

Predict = Callable[..., Any]


def partitionwise(predict: Predict) -> Predict:
    """Decorate a method of X: for a Dask collection it returns one with the same partitions.

    A data frame gives a series with its index, or a frame of several columns. An array gives one.
    """

    @functools.wraps(predict)
    def lazily(self: Any, X: Any) -> Any:
        if not is_spread(X):
            return predict(self, X)
        check_is_fitted(self)
        if isinstance(X, Mapping):
            raise InvalidInput(
                "Columns of a Dask cluster are predicted as one frame: pass ddf[features]."
            )
        types = announced(X)
        model = copy.copy(self)
        model.ledger = None
        model._in_partition = True  # noqa: SLF001  a copy of its own
        if hasattr(X, "chunks"):
            return _of_array(getattr(model, predict.__name__), X)
        work = functools.partial(_of_frame, predict.__name__, model)
        return X.map_partitions(work, meta=work(types))

    return lazily


def _of_array(predict: Predict, X: Any) -> Any:
    X = X.rechunk({1: -1})
    meta = predict(np.empty((0, X.shape[1]), X.dtype))
    if meta.ndim == 1:
        return X.map_blocks(predict, drop_axis=1, dtype=meta.dtype, meta=meta)
    chunks = X.chunks[0], (meta.shape[1],)
    return X.map_blocks(predict, chunks=chunks, dtype=meta.dtype, meta=meta)


def _of_frame(name: str, model: Any, part: Any) -> Any:
    import pandas as pd

    found = getattr(model, name)(part)
    kind: Any = pd.Series if found.ndim == 1 else pd.DataFrame
    return kind(found, index=part.index)
