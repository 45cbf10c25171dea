"""Containers to arrays, deciding by their public type and never by a cell."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from privtail.errors import InvalidInput


def as_numbers(values: Any) -> NDArray[Any]:
    """An array of the container's own numeric type; cells of lists that are no numbers are NaN.

    Nullable columns of pandas and polars become doubles with NaN, whether or not a cell is missing.
    """
    _refuse_masked(values)
    dtype = getattr(values, "dtype", None)
    if isinstance(values, list | tuple):
        return _listed(values)
    if type(values).__module__.startswith("polars"):
        return _from_polars(values)
    nullable = dtype is not None and not isinstance(dtype, np.dtype)
    if nullable and getattr(dtype, "kind", "O") in "biuf":
        return np.asarray(values.to_numpy(dtype=np.float64, na_value=np.nan))
    return np.asarray(values)


def as_labels(values: Any) -> NDArray[Any]:
    """An array of labels; lists and nullable columns become Python objects."""
    _refuse_masked(values)
    typed = isinstance(getattr(values, "dtype", None), np.dtype)
    return np.asarray(values) if typed else np.asarray(values, dtype=object)


def _refuse_masked(values: Any) -> None:
    if isinstance(values, np.ma.MaskedArray):
        raise InvalidInput(
            "Masked arrays are not accepted: their hidden values would count. Use x.filled(nan)."
        )


def _from_polars(values: Any) -> NDArray[Any]:
    import polars as pl

    if values.dtype.is_numeric() or values.dtype == pl.Boolean:
        return np.asarray(values.cast(pl.Float64).to_numpy())
    return np.asarray(values.to_numpy(), dtype=object)


def _listed(values: list[Any] | tuple[Any, ...]) -> NDArray[np.float64]:
    cells = np.array(values, dtype=object)
    numbers = np.full(cells.shape, np.nan)
    for position, cell in np.ndenumerate(cells):
        try:
            numbers[position] = float(cell)
        except Exception:  # noqa: BLE001, S112  what is not a number is missing
            continue
    return numbers
