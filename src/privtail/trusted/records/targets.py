"""Targets: numbers, or labels coded against a declared (or released) list of classes."""

from __future__ import annotations

import math
import threading
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence, Sized
from contextlib import suppress
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privtail.errors import InvalidInput
from privtail.schema.kinds import require_kind, target_refusal
from privtail.schema.times import declared_cells
from privtail.trusted.exactly import are_of
from privtail.trusted.private_rows import PrivateRows
from privtail.trusted.records.arrays import as_labels, as_numbers, column_of, read
from privtail.trusted.records.arrow import Distinct
from privtail.trusted.records.kinds import element_type, kind_of, public_type


def _column(array: NDArray[Any], n: int, what: str = "target") -> NDArray[Any]:
    if array.ndim == 2 and array.shape[1] == 1:
        array = array[:, 0]
    if array.shape != (n,):
        raise InvalidInput(
            f"The {what} needs shape ({n},), one value for each row; got {array.shape}."
        )
    return array


class Numbers(PrivateRows):
    """A numeric target, read block by block; what is not a finite number drops its row.

    With ``exposure`` (n,), which says how much of something each target was counted on, so does an
    exposure that is not positive and finite.
    """

    def __init__(self, y: Any, n: int, exposure: Any = None) -> None:
        y = column_of(y)
        self._y = _column(as_numbers(y), n)
        if exposure is not None:
            given = column_of(exposure)
            array = _column(as_numbers(given), n, "exposure")
            if array.dtype.kind not in "fiub":
                raise target_refusal(*public_type(given), "exposure")
            exposure = Numbers(array, n)
        self._exposure: Numbers | None = exposure
        if self._y.dtype.kind not in "fiub":
            raise target_refusal(*public_type(y))

    def like(self, y: Any, exposure: Any = None) -> Numbers:
        """The target of other rows."""
        return Numbers(y, len(y), exposure)

    def part(self, ids: slice) -> Numbers:
        """The target of these ids, as one of its own."""
        return self.like(self._y[ids], self._exposure and self._exposure._y[ids])

    @property
    def exposed(self) -> bool:
        """Whether there is an exposure."""
        return self._exposure is not None

    def rows(self, ids: slice | NDArray[np.int64]) -> NDArray[np.float64]:
        """Targets of these ids; NaN where the exposure is not positive and finite."""
        with np.errstate(all="ignore"):
            y = np.array(self._y[ids], dtype=np.float64, order="C")
        if self._exposure is None:
            return y
        return np.where(_positive(self._exposure.rows(ids)), y, np.nan)

    def exposures(self, ids: slice | NDArray[np.int64]) -> NDArray[np.float64] | None:
        """Exposures of these ids, 1 where they are not positive and finite; None without them."""
        if self._exposure is None:
            return None
        found = self._exposure.rows(ids)
        return np.where(_positive(found), found, 1.0)


def _positive(x: NDArray[np.float64]) -> NDArray[np.bool_]:
    return np.asarray((x > 0) & (x < np.inf))


def canonical_label(value: Any) -> Any:
    """One form for equal labels, whatever record brings it.

    Whole numbers are ints (True is 1, -0.0 is 0), other numbers floats or, where no float is equal,
    the text of their digits. Text is plain text (not of a class of its own, such as a member of an
    enumeration), and what is missing, holds cells of its own or cannot be compared is None.
    """
    try:
        if isinstance(value, np.generic):
            value = value.item()
        if isinstance(value, str):
            return str.__str__(value)
        if isinstance(value, int):
            return int.__index__(value)
        if isinstance(value, float):
            number = float.__float__(value)
            return int(number) if number.is_integer() else None if math.isnan(number) else number
        if value is None or value != value:
            return None
        if isinstance(value, Decimal | Fraction | np.floating):
            return _of_number(value)
        if isinstance(value, bytes):
            return bytes.decode(value, errors="replace")
        return None if isinstance(value, Sized | Iterable) else str.__str__(str(value))
    except Exception:  # noqa: BLE001  a cell that cannot be compared must not show
        return None


def _of_number(value: Any) -> Any:
    """One form for equal numbers that are neither ints nor floats, rounding none."""
    text = str.__str__(str(value))
    if isinstance(value, Decimal) and value.is_finite():
        sign, digits, exponent = value.as_tuple()
        shown = "".join(map(str, digits)).rstrip("0") or "0"
        places = int(exponent) + len(digits) - len(shown) if value else 0
        if 0 <= places < _LONG:
            return int(value)
        text = str(Decimal((sign, tuple(map(int, shown)), places)))
    elif isinstance(value, Fraction) and value.denominator == 1:
        return int(value)
    with np.errstate(all="ignore"), suppress(OverflowError):
        number = float(value)
        if number == value:
            return int(number) if number.is_integer() else number
    return text


_LONG = 5_000
"""Zeros at the end of a decimal from which on it is not written out as a whole number."""


def distinct(
    cells: NDArray[Any], canonical: Callable[[Any], Any] = canonical_label
) -> tuple[list[Any], NDArray[np.int64]]:
    """Distinct ``canonical`` values and, for each cell, the position of its value; private."""
    if cells.dtype.kind in "fiubUS":  # NumPy raises at a cell that holds no character
        found, places = np.unique(cells, return_inverse=True)
        return read(range(len(found)), lambda k: canonical(found[k]), None), places.astype(np.int64)
    positions, each = dict[Any, int](), range(len(cells))
    objects = cells.tolist() if cells.dtype == object else read(each, cells.item, None)
    text = are_of(objects, (str, type(None)))  # canonical already: the long way gives the same
    labels = objects if text else read(objects, canonical, None)
    numbered = (positions.setdefault(v, len(positions)) for v in labels)
    inverse = np.fromiter(numbered, np.int64, len(cells))
    return list(positions), inverse


class Labels(PrivateRows):
    """A categorical target. Labels outside the declared classes drop their row.

    Parameters
    ----------
    y : (n,) labels, or `Distinct`.
    n : how many there are.
    column : the name of a column of a table, whose categories they are; None for a target.
    source : what y was read from already, whose type says what the labels are; by default y.
    """

    def __init__(
        self, y: Any, n: int, *, column: str | None = None, source: Any = None
    ) -> None:  # fmt: skip
        y = column_of(y)
        source = y if source is None else source
        self._name, self._kind, self._type = column, kind_of(source), public_type(source)
        self._y = np.empty(0) if isinstance(y, Distinct) else _column(as_labels(y), n)
        self._element = element_type(y)
        self._declared: Mapping[Any, int] | None = None
        self._found: Distinct | None = y if isinstance(y, Distinct) else None
        self._codes: NDArray[np.int32] | None = None
        self._lock = threading.Lock()

    def like(self, y: Any, codes: Mapping[Any, int] | None = None) -> Labels:
        """The target of other rows, with the same declaration, or that of these ``codes``."""
        other = Labels(y, len(y))
        other._declared, other._element = codes or self._declared, self._element
        return other

    exposed = False

    def exposures(self, ids: slice | NDArray[np.int64]) -> None:
        """Labels have none."""

    @property
    def codes_declared(self) -> Mapping[Any, int] | None:
        """The code of every declared label, which is public; None where none is declared."""
        return self._declared

    def part(self, ids: slice) -> Labels:
        """The target of these ids, as one of its own."""
        return self.like(self._y[ids])

    def declare(self, classes: tuple[Any, ...]) -> None:
        """Code the labels 0..K-1 in the order of ``classes``; reads no record yet."""
        require_kind(self._kind, classes, self._name)
        what = "the target" if self._name is None else f"column {self._name!r}"
        classes = declared_cells(*self._type, classes, what)
        code = {self._canonical(c): i for i, c in enumerate(classes)}
        if None in code or len(code) != len(classes):
            what = "Classes" if self._name is None else f"Categories of column {self._name!r}"
            raise InvalidInput(f"{what} must be distinct and must not be missing values.")
        self._declared, self._codes = code, None

    def refuse_odd(self, labels: set[Any]) -> None:
        """Raise InvalidInput if ``labels`` has missing or undeclared ones, fractions, or one alone.

        A leak, for those who ask for it.
        """
        if None in labels:
            raise InvalidInput(
                "Input y contains NaN or missing labels. With invalid='zero' such rows count as "
                "zero."
            )
        if len(labels) == 1:
            raise InvalidInput("Input y holds 1 class; a classifier needs two.")
        unknown = labels - set(self._declared or ())
        if any(isinstance(label, float) for label in unknown):
            raise InvalidInput(
                "Unknown label type: continuous. The labels are fractions; a classifier needs "
                "classes."
            )
        if self._declared and unknown:
            raise InvalidInput(
                "Input y holds a label that is not among the declared classes. With "
                "invalid='zero' such rows count as zero."
            )

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
        found = self._distinct()
        seen = np.bincount(found.positions[ids], minlength=len(found.values))
        counts: Counter[Any] = Counter()
        for position in np.flatnonzero(seen):
            counts[canonical_label(found.values[position])] += int(seen[position])
        counts.pop(None, None)
        return counts

    def _distinct(self) -> Distinct:
        """The rows by their distinct values; found at the first question."""
        with self._lock:
            if self._found is None:
                values, positions = distinct(self._y)
                whole = np.promote_types(np.int32, np.min_scalar_type(-len(values)))
                self._found = Distinct(values, positions.astype(whole))
            return self._found

    def rows(self, ids: slice | NDArray[np.int64]) -> NDArray[np.float64]:
        """Codes of these ids; NaN where the label is not declared."""
        codes = self.codes(ids).astype(np.float64)
        codes[codes < 0] = np.nan
        return codes

    def codes(self, ids: slice | NDArray[np.int64]) -> NDArray[np.int32]:
        """Codes of these ids; -1 where the label is not declared."""
        if self._declared is None:
            raise InvalidInput("Declare the classes first, or release them with labels().")
        found, codes = self._distinct(), self._codes
        if codes is None:
            listed = [self._declared.get(canonical_label(value), -1) for value in found.values]
            self._codes = codes = np.array(listed, dtype=np.int32)
        coded: NDArray[np.int32] = codes[found.positions[ids]]
        return coded


Targets = Numbers | Labels


@dataclass(frozen=True)
class Window:
    """Records ``start`` to ``stop`` - 1; ``open`` gives them, and their targets, as if alone."""

    start: int
    stop: int
    open: Callable[[], tuple[Any, Targets | None]]


def targets_of(
    y: Any, n: int, classes: Sequence[Any] | None, exposure: Any = None
) -> Targets | None:
    """Numbers (``classes`` None), or labels, declared unless ``()``; None where y is."""
    if y is None:
        return None
    if classes is None:
        return Numbers(y, n, exposure)
    labels = Labels(y, n)
    if classes:
        labels.declare(tuple(classes))
    return labels
