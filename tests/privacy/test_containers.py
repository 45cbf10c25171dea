"""Containers of Python objects: what a cell holds decides nothing about the others."""

from __future__ import annotations

import math
import warnings
from collections import UserList, deque
from datetime import date
from decimal import Decimal
from fractions import Fraction
from itertools import product
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest

from privtail import DPMean, DPScaler, private_mean
from privtail.errors import InvalidInput
from privtail.linear_model import DPRidge, PrivateSearchCV
from privtail.trusted.records import as_records
from privtail.trusted.records.arrays import is_column
from privtail.trusted.records.persons import Persons
from privtail.trusted.records.targets import Labels, Numbers, canonical_label


class Cells:
    """A sequence that no class of Python knows."""

    def __init__(self, cells: Any) -> None:
        self._cells = list(cells)

    def __len__(self) -> int:
        return len(self._cells)

    def __getitem__(self, place: int) -> Any:
        return self._cells[place]


SEQUENCES: list[Any] = [list, tuple, deque, UserList, Cells]
OTHERS: list[list[Any]] = [
    [1.0, 2.0, 3.0],
    ["a", "b", "1"],
    [[1.0], [2.0], [3.0]],
    [[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]],
    [np.ones(2), np.zeros(2), np.ones(2)],
]
ODD: list[Any] = [
    "no",
    "",
    b"x",
    None,
    math.nan,
    10**400,
    Decimal("sNaN"),
    1j,
    [1.0],
    [],
    7.0,
    (1.0, 2.0),
    [[1.0]],
    np.ones((1, 2)),
    deque([1.0]),
    {"a"},
    range(2),
    object(),
    date(2020, 1, 1),
    np.datetime64("2020-01-01"),
    Fraction(1, 3),
]


def as_number_cells(values: Any) -> list[Any]:
    return as_records({"a": values}).rows(slice(0, 3)).X[:, 0].tolist()  # type: ignore[union-attr]


def as_label_cells(values: Any) -> list[Any]:
    labels = Labels(values, 3)
    labels.declare(("a", "b", "1", 1, 2, 3))
    return labels.codes(slice(0, 3)).tolist()


def as_category_cells(values: Any) -> list[Any]:
    table = as_records({"a": values}, {"a": ["a", "b", 1, 2, 3]})
    return table.rows(slice(0, 3)).X.tolist()  # type: ignore[union-attr]


def as_person_cells(values: Any) -> list[Any]:
    positions, _ = Persons(values, 3).seats(np.arange(3), 1)
    return [place in positions for place in range(3)]


def as_target_cells(values: Any) -> list[Any]:
    return Numbers(values, 3).rows(slice(0, 3)).tolist()


READERS = [as_number_cells, as_target_cells, as_label_cells, as_category_cells, as_person_cells]


def read_alone(read: Any, make: Any, cells: list[Any], odd: Any, place: int) -> None:
    """Assert that a cell changes what is read at its place, and nowhere else."""
    changed = [*cells[:place], odd, *cells[place + 1 :]]
    before, after = read(make(cells)), read(make(changed))
    for other in set(range(3)) - {place}:
        assert np.array_equal(before[other], after[other], equal_nan=True)


@pytest.mark.parametrize("make", SEQUENCES)
@pytest.mark.parametrize("read", READERS)
def test_a_cell_never_decides_how_others_are_read(read: Any, make: Any) -> None:
    """The hole was a shape: lists of one number are a column only if all cells are."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for cells, odd, place in product(OTHERS, ODD, range(3)):
            read_alone(read, make, cells, odd, place)


def test_the_check_sees_the_shape_that_numpy_finds() -> None:
    """Sabotage: what `np.asarray` makes of a list depends on all cells together."""

    def found(values: Any) -> list[Any]:
        array = np.asarray(values, object)
        return [float(cell) if isinstance(cell, float) else math.nan for cell in array.reshape(3)]

    with pytest.raises(AssertionError):
        read_alone(found, list, [[1.0], [2.0], [3.0]], 3.0, 2)


@pytest.mark.parametrize("read", [as_label_cells, as_category_cells, as_person_cells])
def test_a_cell_of_an_object_column_is_read_alone(read: Any) -> None:
    def array(cells: list[Any]) -> Any:
        return np.fromiter(cells, object, len(cells))

    def series(cells: list[Any]) -> Any:
        return pd.Series(array(cells), dtype=object)

    def objects(cells: list[Any]) -> Any:
        return pl.Series(cells, dtype=pl.Object)

    for make, cells, odd, place in product((array, series, objects), OTHERS, ODD, range(3)):
        read_alone(read, make, cells, odd, place)


def test_cells_that_hold_cells_are_no_label_and_nobody() -> None:
    for cell in ([1.0], (1,), {"a": 1}, {1}, np.ones(1), deque("a"), [["a"]], bytearray(b"a")):
        assert canonical_label(cell) is None
        assert as_person_cells([cell, "b", cell]) == [False, True, False]
    for label in (1, 2.5, "a", b"a", True, Fraction(1, 2), date(2020, 1, 1)):
        assert canonical_label(label) is not None


def test_a_list_is_one_column_whatever_it_holds() -> None:
    for make, cells, odd in product(SEQUENCES, OTHERS, ODD):
        assert is_column(make([odd, *cells]))
    for cells in ([[1, 2], 3.0, 4.0], [3.0, [1, 2], 4.0], [[1, 2], [3, 4]]):
        found = private_mean(cells, epsilon=1, threshold=1.0, noise="simulated", random_state=0)
        assert isinstance(found.value, float)


@pytest.mark.parametrize("row", [[1.0, 2.0], None, [1.0], "ab", 3.0, [[1.0], [2.0]], np.ones(2)])
@pytest.mark.parametrize("place", [0, 1])
def test_a_list_of_rows_is_refused_whatever_they_hold(row: Any, place: int) -> None:
    """Only rows could say how many columns there are: with arrays the type says it."""
    rows: list[Any] = [[1.0, 2.0], [3.0, 4.0]]
    rows[place] = row
    y, texts = [1.0, 2.0], set()
    for make in SEQUENCES:
        search = PrivateSearchCV(DPRidge(), {"alpha": [1.0]})
        for model in (DPRidge(), DPScaler(), DPMean(), search):
            with pytest.raises(InvalidInput, match=r"X=numpy.array\(X, dtype=float\)") as caught:
                model.fit(make(rows), y)
            texts.add(str(caught.value))
    assert len(texts) == 1


def test_scikit_learns_manners_take_a_list_of_rows() -> None:
    x = np.random.default_rng(0).normal(size=(200, 2))
    model = DPRidge(epsilon=9.0, invalid="raise", noise="simulated", random_state=0)
    assert np.array_equal(
        model.fit(x.tolist(), x[:, 0].tolist()).coef_, model.fit(x, x[:, 0]).coef_
    )
    with pytest.raises(InvalidInput, match="rows of different lengths"):
        model.fit([[1.0], [1.0, 2.0]], [1.0, 2.0])


def test_one_cell_does_not_unlock_the_targets_of_all() -> None:
    """The attack: 999 targets counted or not, as the last was a list or a number."""
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(1000, 1)), rng.normal(5, 1, 1000)
    nested: list[Any] = [[float(v)] for v in y]
    found = [
        DPRidge(epsilon=0.5, noise="simulated", random_state=0).fit(X, target).intercept_
        for target in (nested, [*nested[:-1], float(y[-1])], y.tolist())
    ]
    assert found[0] == found[1]
    assert abs(found[2] - 5) < 1
