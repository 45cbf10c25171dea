"""Targets: numbers, or labels coded against a declared (or bought) list of classes."""

from __future__ import annotations

import math
import threading
from collections import Counter
from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray

from privtail.errors import InvalidInput, NotReleased
from privtail.trusted.records.arrays import as_labels, as_numbers, element_type


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
        if value is None or isinstance(value, np.ndarray) or value != value:
            return None
        if isinstance(value, int | float):
            whole = isinstance(value, int) or (math.isfinite(value) and value == int(value))
            return int(value) if whole else float(value)
        if isinstance(value, bytes):
            return value.decode(errors="replace")
        return value if isinstance(value, str) else str(value)
    except Exception:  # noqa: BLE001  a cell that cannot be compared must not show
        return None


def distinct(cells: NDArray[Any]) -> tuple[list[Any], NDArray[np.int64]]:
    """Distinct values and, for each cell, the position of its value among them; private.

    Values of objects are canonical labels; those of a typed array are its own.
    """
    if cells.dtype.kind in "fiubUS":
        values, inverse = np.unique(cells, return_inverse=True)
        return list(values), inverse.astype(np.int64)
    positions: dict[Any, int] = {}
    objects = cells.tolist()
    # Text is canonical already; the same positions come out of the long way.
    plain = set(map(type, objects)) <= {str, type(None)}
    labels = objects if plain else map(canonical_label, objects)
    inverse = np.fromiter(
        (positions.setdefault(v, len(positions)) for v in labels), np.int64, len(cells)
    )
    return list(positions), inverse


class Labels:
    """A categorical target. Labels outside the declared classes drop their row."""

    def __init__(self, y: Any, n: int) -> None:
        self._y = _column(as_labels(y), n)
        self._element = element_type(y)
        self._declared: dict[Any, int] | None = None
        self._codes: NDArray[np.int32] | None = None
        self._lock = threading.Lock()

    def declare(self, classes: tuple[Any, ...]) -> None:
        """Code the labels 0..K-1 in the order of ``classes``; reads no record yet."""
        numeric = self._element is not None and self._element.kind in "fiub"
        if numeric and any(isinstance(c, str) for c in classes):
            raise InvalidInput(
                "The labels are numbers, but text was declared: no row would match. Declare "
                "numbers, for example classes=[0, 1]."
            )
        code = {self._canonical(c): i for i, c in enumerate(classes)}
        if None in code or len(code) != len(classes):
            raise InvalidInput("Classes must be distinct and must not be missing values.")
        self._declared, self._codes = code, None

    def restored(self, labels: list[Any]) -> list[Any]:
        """Released labels in the column's public type: Booleans for a column of Booleans."""
        boolean = self._element is not None and self._element.kind == "b"
        return [bool(v) for v in labels] if boolean else labels

    def _canonical(self, declared: Any) -> Any:
        """A declared class as the column's public type would hold it: 0.1 in a float32 column."""
        element = self._element
        if element is not None and element.kind == "f" and isinstance(declared, int | float):
            return canonical_label(element.type(declared))
        return canonical_label(declared)

    def counts(self, ids: slice | NDArray[np.int64] = slice(None)) -> Counter[Any]:
        """How often each canonical label occurs among these ids, where it does; private."""
        values, inverse = self._distinct()
        seen = np.bincount(inverse[ids], minlength=len(values))
        counts: Counter[Any] = Counter()
        for position in np.flatnonzero(seen):
            counts[canonical_label(values[position])] += int(seen[position])
        counts.pop(None, None)
        return counts

    def _distinct(self) -> tuple[list[Any], NDArray[np.int64]]:
        return distinct(self._y)

    def rows(self, ids: slice | NDArray[np.int64]) -> NDArray[np.float64]:
        """Codes of these ids; NaN where the label is not declared."""
        codes = self.codes(ids).astype(np.float64)
        codes[codes < 0] = np.nan
        return codes

    def codes(self, ids: slice | NDArray[np.int64]) -> NDArray[np.int32]:
        """Codes of these ids; -1 where the label is not declared."""
        return self._coded()[ids]

    def _coded(self) -> NDArray[np.int32]:
        """Codes of all rows, -1 for what is not declared; made at the first question."""
        if self._declared is None:
            raise InvalidInput("Declare the classes, or buy them with labels(), before this.")
        with self._lock:
            if self._codes is None:
                values, inverse = self._distinct()
                coded = [self._declared.get(canonical_label(value), -1) for value in values]
                self._codes = np.array(coded, dtype=np.int32)[inverse]
            return self._codes

    def __reduce__(self) -> NoReturn:
        raise NotReleased("Private records cannot be pickled.")
