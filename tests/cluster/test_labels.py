"""Cells in partitions: what pandas makes of a column with an odd cell moves no other row."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

pa = pytest.importorskip("pyarrow")

from privtail.dask_collections import partitions
from privtail.errors import InvalidInput
from privtail.trusted.cluster import held
from privtail.trusted.cluster.held import Held, Reading
from privtail.trusted.records.targets import canonical_label

LARGE = 2**53 + 1
TIMES = pd.Series(pd.to_datetime(["2000-01-01", "2001-01-01"]))
CODES = {LARGE: 0, 3: 1}


WRITTEN: list[tuple[list[Any], list[Any]]] = [
    ([True, False], [1, 0]), ([1, 0], [1, 0]), ([2.5, 1.0], [2.5, 1]), ([-3, 2.5], [-3, 2.5]),
    ([1 + 0j, -3 + 0j], [1, -3]),
]  # fmt: skip
"""Cells, of which Dask writes text if one beside them makes pandas keep objects; their labels."""
PLACES = [1, 0, 2.5, -3]
CODES_WRITTEN = {"1": 0, "False": 1, "2.5": 2, "-3.0": 3}


def coded(column: Any, announced_type: str = "int64", codes: Any = CODES) -> list[Any]:
    """The codes of the first rows of a partition, as a target and as a category."""
    announced = pd.DataFrame({"c": pd.Series([], dtype=announced_type)})
    reading = Reading(announced, announced["c"], None, {"c": list(codes)}, True, bytes(32))
    part = Held(pd.DataFrame({"c": column}), column, None, reading)
    assert part.refused == ""
    records, targets = part.window(0, codes).open()
    assert targets is not None
    rows = slice(0, len(column) - 1)
    return [records.rows(rows).X.tolist(), np.nan_to_num(targets.rows(rows), nan=-1.0).tolist()]


def found(column: Any) -> list[Any]:
    """The labels that the first rows would buy."""
    values, places = held._cells(column, True)
    return [values[place] for place in places[:-1]]


def moved_alone() -> None:
    """Assert that the last cell of a partition changes nothing of the others."""
    for cells in ([LARGE, 3, 3], [3, 2**53, LARGE]):
        whole, gap = pd.Series(cells, dtype="int64"), pd.Series([*cells[:2], None])
        assert gap.dtype == np.float64
        assert coded(whole) == coded(gap)
        assert found(whole) == found(gap)
    for odd in (1j, 3 + 0j, "x", None):
        column = pd.Series([2.5, 3, odd])
        assert found(column) == [2.5, 3]
        assert held._numbers(column)[:2].tolist() == [2.5, 3.0]
        column = pd.Series([3 + 0j, 1, odd])
        assert found(column) == [3, 1]
        assert held._numbers(column)[:2].tolist() == [3.0, 1.0]
    assert found(pd.concat([TIMES, TIMES[:1]])) == found(pd.Series([*TIMES, "a"], dtype=object))
    for cells, labels in WRITTEN:
        for odd in ("x", None, cells[0]):
            objects = pd.Series([*cells, odd], dtype=object)
            for column in (objects, objects.astype("string[pyarrow]"), objects.astype(str)):
                assert found(column) == found(pd.Series([*cells, cells[0]])) == labels
                assert held._numbers(column)[:2].tolist() == labels
                assert coded(column, "string", CODES_WRITTEN) == [
                    [list(map(float, np.eye(4)[k])) for k in map(PLACES.index, labels)],
                    list(map(PLACES.index, labels)),
                ]


def test_a_missing_cell_moves_no_other_label() -> None:
    moved_alone()


@pytest.mark.parametrize("sabotaged", ["numbers", "times", "complex numbers", "text"])
def test_labels_by_the_type_of_a_partition_are_seen(
    monkeypatch: pytest.MonkeyPatch, sabotaged: str
) -> None:
    """Sabotage: numbers and times in the form that pandas has."""
    if sabotaged == "numbers":
        monkeypatch.setattr(held, "label", canonical_label)
    elif sabotaged == "complex numbers":
        monkeypatch.setattr(held, "_real", lambda cell: cell)
    elif sabotaged == "text":
        monkeypatch.setattr(held, "_read", lambda text: text)
    else:
        monkeypatch.setattr(held, "time_form", lambda cell: None)
    with pytest.raises(AssertionError):
        moved_alone()


def test_a_missing_truth_of_a_csv_moves_no_other_row(tmp_path: Path) -> None:
    """Dask wrote True and False of its partition as text, and all its rows lost their truths."""
    dask = pytest.importorskip("dask.dataframe")
    seen = []
    for cell in ("True", ""):
        paths = [tmp_path / f"{k}.csv" for k in range(2)]
        for path in paths:
            path.write_text("flag,k\nTrue,a\nFalse,b\nTrue,a\n")
        paths[1].write_text(f"flag,k\nTrue,a\nFalse,b\n{cell},a\n")
        frame = dask.from_map(pd.read_csv, paths)
        part = partitions(frame)[1].compute(scheduler="sync")
        announced = frame._meta
        reading = Reading(announced, None, None, {"k": ["a", "b"]}, False, bytes(32))
        records, _ = Held(part, None, None, reading).window(0, None).open()
        labels = found(part["flag"])
        seen.append([str(part["flag"].dtype), records.rows(slice(0, 2)).X.tolist(), labels])
    assert seen[0][0] != seen[1][0]
    assert seen[0][1:] == seen[1][1:] == [[[1.0, 1.0, 0.0], [0.0, 0.0, 1.0]], [1, 0]]


def test_text_that_is_a_number_is_a_label_as_it_is_declared() -> None:
    column = pd.Series(["007", "x7", "1e5", "nan", "j", "inf", "7"], dtype="string")
    assert found(column) == [7, "x7", 100_000, "nan", "j", "inf"]
    codes = {"007": 0, "x7": 1, "1E5": 2, "nan": 3, "j": 4, "inf": 5}
    assert coded(column, "string", codes)[1] == list(range(6))


@pytest.mark.parametrize("odd", ["5", "x", ""])
def test_an_odd_cell_of_a_csv_moves_no_other_row(odd: str) -> None:
    """Pandas left "007" and "true" as text, where they are 7 and True without that cell."""
    numbers, truths = (
        pd.read_csv(io.StringIO("c\n" + "\n".join([*cells, odd]) + "\n"), skip_blank_lines=False)
        for cells in (["007", "1.50", "-3e0"], ["true", "FALSE", "True"])
    )
    assert found(numbers["c"]) == held._numbers(numbers["c"])[:3].tolist() == [7, 1.5, -3]
    assert found(truths["c"]) == held._numbers(truths["c"])[:3].tolist() == [1, 0, 1]


def test_labels_that_are_one_number_are_refused() -> None:
    dd = pytest.importorskip("dask.dataframe")
    from privtail.trusted.cluster.spread import Spread

    frame = dd.from_pandas(pd.DataFrame({"c": ["1", "x"], "x": 1.0}), npartitions=1)
    for listed in (["1", "1.0"], ["true", "1"]):
        with pytest.raises(InvalidInput, match="are one number"):
            Spread(frame[["c"]], None, None, {"c": listed})
        with pytest.raises(InvalidInput, match="are one number"):
            Spread(frame[["x"]], frame["c"], listed, None)


def test_small_numbers_and_text_are_the_same_in_all_types() -> None:
    for kind in ("int8", "float32", "Int64", object):
        assert found(pd.Series([1, 2, 3], dtype=kind)) == [1, 2]
    assert found(pd.Series(["a", None, "b"])) == ["a", None]


ODD = {
    "lists": pa.array([[1.0], None]),
    "records": pa.array([{"a": 1}, None]),
    "times": pa.array([2**60, None]).cast(pa.timestamp("us", "UTC")),
    "times of a zone": pa.array([2**60, 0]).cast(pa.timestamp("us", "Europe/Rome")),
    "spans": pa.array([None, None], pa.month_day_nano_interval()),
}
"""What PyArrow may make of a partition in which one cell is odd and the others are missing."""


@pytest.mark.parametrize("column", ODD.values(), ids=ODD)
def test_a_partition_of_an_odd_type_is_not_refused(column: Any) -> None:
    """Its rows have neither numbers nor labels; a refusal would tell of the cell."""
    cells = pd.Series(pd.arrays.ArrowExtensionArray(column))
    announced = pd.DataFrame({"c": pd.Series([], dtype="float64"), "k": pd.Series([], dtype=str)})
    for target in ("c", "k"):
        reading = Reading(
            announced, announced[target], None, {"k": ["a"]}, target == "k", bytes(32)
        )
        part = Held(pd.DataFrame({"c": cells, "k": cells}), cells, None, reading)
        assert part.refused == ""
        records, targets = part.window(0, {"a": 0}).open()
        expected = [[np.nan, 0.0]] * 2
        assert np.array_equal(records.rows(slice(0, 2)).X, expected, equal_nan=True)
        assert targets is not None
        assert np.isnan(targets.rows(slice(0, 2))).all()


@pytest.mark.parametrize("cells", [[1, 2, 1], ["a", "b", "a"]])
def test_labels_of_one_column_are_a_vector(cells: Any) -> None:
    for kind in (None, object):
        values, places = held._cells(np.array(cells, dtype=kind)[:, None], True)
        assert (values, places.tolist()) == (cells[:2], [0, 1, 0])


@pytest.mark.parametrize("kind", ["M8[ns]", "M8[us, UTC]", "m8[s]", "timestamp[us][pyarrow]"])
def test_columns_of_times_have_no_labels(kind: str) -> None:
    """Whatever is declared: no row would match, and so the call is refused before any is read."""
    dd = pytest.importorskip("dask.dataframe")
    pytest.importorskip("distributed")
    from privtail.trusted.cluster.spread import Spread

    column = pd.Series([1, 2, 3, 4]).astype(kind.replace("M8", "datetime64"))
    frame = dd.from_pandas(pd.DataFrame({"c": column, "x": 1.0}), npartitions=2)
    with pytest.raises(InvalidInput, match="Turn the column into text"):
        Spread(frame, None, None, {"c": ["2000-01-01"]})
    for classes in ((), ["2000-01-01", "2000-01-02"]):
        with pytest.raises(InvalidInput, match="Turn the column into text"):
            Spread(frame[["x"]], frame["c"], classes, None)


@pytest.mark.parametrize("declared", [LARGE, -(2.0**60), pd.Timestamp("2000-01-01")])
def test_labels_that_no_row_can_hold_are_refused(declared: Any) -> None:
    dd = pytest.importorskip("dask.dataframe")
    pytest.importorskip("distributed")
    from privtail.trusted.cluster.spread import Spread

    frame = dd.from_pandas(pd.DataFrame({"c": [1, 2, 3, 4]}), npartitions=2)
    with pytest.raises(InvalidInput, match="no whole numbers from"):
        Spread(frame, None, None, {"c": [declared]})
    with pytest.raises(InvalidInput, match="no whole numbers from"):
        Spread(frame, frame["c"], [1, declared], None)
