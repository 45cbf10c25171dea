"""Dask collections: the types that they announce, and their partitions. Nothing is computed."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any

import numpy as np

from privtail.errors import InvalidInput


def is_spread(*collections: Any) -> bool:
    """Whether one of these, or a column of a mapping, is a Dask collection."""
    columns = (
        column
        for one in collections
        for column in (one.values() if isinstance(one, Mapping) else (one,))
    )
    return any(
        kind.__module__.partition(".")[0] == "dask"
        for column in columns
        for kind in type(column).__mro__
    )


def announced(values: Any) -> Any:
    """A container without rows that has the types which a collection announces.

    Raises
    ------
    InvalidInput
        If this is no table of Dask, or announces no types.
    """
    if isinstance(values, Mapping):
        return {name: announced(column) for name, column in values.items()}
    if not is_spread(values):
        raise InvalidInput("The columns of X are all Dask collections, or none is.")
    kind = type(values)  # its class is asked: a delayed value says that it has every attribute
    if hasattr(kind, "_meta") and hasattr(kind, "to_delayed") and not hasattr(kind, "chunks"):
        return values._meta  # noqa: SLF001  Dask's name for its types
    if hasattr(kind, "chunks"):
        if values.dtype == object or any(map(math.isnan, values.shape[1:])):
            raise InvalidInput("A Dask array needs a numeric type and a known number of columns.")
        return np.empty((0, *values.shape[1:]), values.dtype)
    raise InvalidInput(
        f"A Dask {type(values).__name__} is no table: pass a Dask data frame or array."
    )


def partitions(values: Any) -> list[Any]:
    """The partitions of a collection, each as one delayed value (a mapping: of columns).

    Raises
    ------
    InvalidInput
        If the columns of a mapping have different numbers of them.
    """
    if isinstance(values, Mapping):
        columns = {name: partitions(column) for name, column in values.items()}
        if len(set(map(len, columns.values()))) > 1:
            raise InvalidInput("The columns of X differ in partitions. Take them from one frame.")
        return [
            dict(zip(columns, part, strict=True)) for part in zip(*columns.values(), strict=True)
        ]
    if hasattr(values, "chunks") and values.ndim > 1:
        values = values.rechunk(dict.fromkeys(range(1, values.ndim), -1))
    if hasattr(values, "simplify"):  # columns are chosen in the files, and no files are read as one
        with suppress(KeyError, ValueError):  # Dask cannot choose a column before categorize()
            values = values.simplify()
        return list(values.to_delayed(optimize_graph=False))
    return list(np.asarray(values.to_delayed(), dtype=object).ravel())


def own_tasks(parts: Sequence[Any], common: Any) -> list[dict[Any, Any]] | None:
    """The tasks of each delayed value, if a worker can run them by itself, else None.

    It cannot where a task is of two values (of a shuffle, for example), needs what a cluster keeps,
    or has annotations: it may be bound to some workers. ``common`` is the key that they may share.
    """
    from dask import delayed
    from dask.optimization import cull

    graph = delayed(list(parts)).__dask_graph__()
    if any(layer.annotations for layer in graph.layers.values()):
        return None
    whole = dict(graph)
    own = [cull(whole, [one.key])[0] for one in parts]
    shared = Counter(key for tasks in own for key in tasks if key != common)
    for tasks in own:
        for key, task in tasks.items():
            needed = getattr(task, "dependencies", None)
            if shared[key] > 1 or needed is None or not needed <= tasks.keys():
                return None
    return own
