"""Targets: numbers, or labels coded against a declared (or bought) list of classes."""

from __future__ import annotations

import math
from collections import Counter
from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray

from privtail.errors import InvalidInput, NotReleased
from privtail.trusted.records.arrays import as_labels, as_numbers


def _column(array: NDArray[Any], n: int) -> NDArray[Any]:
    if array.ndim == 2 and array.shape[1] == 1:
        array = array[:, 0]
    if array.shape != (n,):
        raise InvalidInput(f"The target needs shape ({n},), one value a record; got {array.shape}.")
    return array


class Numbers:
    """A numeric target, read block by block; what is not a finite number drops its row."""

    def __init__(self, y: Any, n: int) -> None:
        self._y = _column(as_numbers(y), n)
        if self._y.dtype.kind not in "fiub":
            raise InvalidInput(
                "The target is not numeric. "
                "For labels use a classifier such as DPLogisticRegression."
            )

    def rows(self, ids: slice | NDArray[np.int64]) -> NDArray[np.float64]:
        """Targets of these ids."""
        with np.errstate(all="ignore"):
            return np.ascontiguousarray(self._y[ids], dtype=np.float64)

    def __reduce__(self) -> NoReturn:
        raise NotReleased("Private records cannot be pickled.")


def canonical_label(value: Any) -> Any:
    """One form for equal labels, whatever record brings it.

    Whole numbers are ints (True is 1, -0.0 is 0), other numbers floats, text is text, and what is
    missing or cannot be compared is None.
    """
    try:
        if isinstance(value, np.generic):
            value = value.item()
        if value is None or value != value:
            return None
        if isinstance(value, int | float):
            whole = isinstance(value, int) or (math.isfinite(value) and value == int(value))
            return int(value) if whole else float(value)
        if isinstance(value, bytes):
            return value.decode(errors="replace")
        return value if isinstance(value, str) else str(value)
    except Exception:  # noqa: BLE001  a cell that cannot be compared must not show
        return None


class Labels:
    """A categorical target. Labels outside the declared classes drop their row."""

    def __init__(self, y: Any, n: int) -> None:
        self._y = _column(as_labels(y), n)
        self._codes: NDArray[np.int32] | None = None

    def declare(self, classes: tuple[Any, ...]) -> None:
        """Code the labels 0..K-1 in the order of ``classes``; -1 for anything else."""
        code = {self._canonical(c): i for i, c in enumerate(classes)}
        if None in code or len(code) != len(classes):
            raise InvalidInput("Classes must be distinct and must not be missing values.")
        values, inverse = self._distinct()
        coded = np.array([code.get(canonical_label(v), -1) for v in values], dtype=np.int32)
        self._codes = coded[inverse]

    def restored(self, labels: list[Any]) -> list[Any]:
        """Released labels in the column's public type: Booleans for a column of Booleans."""
        return [bool(v) for v in labels] if self._y.dtype.kind == "b" else labels

    def _canonical(self, declared: Any) -> Any:
        """A declared class as the column's public type would hold it: 0.1 in a float32 column."""
        if self._y.dtype.kind == "f" and isinstance(declared, int | float):
            return canonical_label(self._y.dtype.type(declared))
        return canonical_label(declared)

    def counts(self) -> Counter[Any]:
        """How often each canonical label occurs; private."""
        values, inverse = self._distinct()
        counts: Counter[Any] = Counter()
        for value, count in zip(values, np.bincount(inverse, minlength=len(values)), strict=True):
            counts[canonical_label(value)] += int(count)
        counts.pop(None, None)
        return counts

    def _distinct(self) -> tuple[list[Any], NDArray[np.int64]]:
        """Distinct raw values and, for each row, the position of its value among them."""
        if self._y.dtype.kind in "fiubUS":
            values, inverse = np.unique(self._y, return_inverse=True)
            return list(values), inverse.astype(np.int64)
        positions: dict[Any, int] = {}
        labels = (canonical_label(v) for v in self._y)
        inverse = np.fromiter(
            (positions.setdefault(v, len(positions)) for v in labels), np.int64, len(self._y)
        )
        return list(positions), inverse

    def rows(self, ids: slice | NDArray[np.int64]) -> NDArray[np.float64]:
        """Codes of these ids; NaN where the label is not declared."""
        if self._codes is None:
            raise InvalidInput("Declare the classes, or buy them with labels(), before this.")
        codes = self._codes[ids].astype(np.float64)
        codes[codes < 0] = np.nan
        return codes

    def __reduce__(self) -> NoReturn:
        raise NotReleased("Private records cannot be pickled.")
