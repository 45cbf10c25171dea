"""Faults that were there, or could be, put back: the replay tells neighbours apart."""

from __future__ import annotations

import sys
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import test_columns as columns
import test_tables as tables

from privtail.trusted import callbacks
from privtail.trusted.files import table as files
from privtail.trusted.mechanisms.noise import GaussianNoise
from privtail.trusted.records import dense, targets
from privtail.trusted.records import tables as named

Patch = pytest.MonkeyPatch


def by_all_cells(values: Any) -> Any:
    """What NumPy takes a list for, looking at all of its cells together."""
    cells = np.asarray(values, dtype=object)
    out = np.full(cells.shape, np.nan)
    for place, cell in np.ndenumerate(cells):
        if isinstance(cell, float | int):
            out[place] = cell
    return out


def labels_by_all_cells(values: Any) -> Any:
    return np.asarray(values, dtype=object)


@pytest.mark.parametrize("question", ["mean", "target", "numbered labels"])
def test_a_shape_of_all_cells_together(monkeypatch: Patch, question: str) -> None:
    for module in (dense, targets, named):
        monkeypatch.setattr(module, "as_numbers", by_all_cells)
        if hasattr(module, "as_labels"):
            monkeypatch.setattr(module, "as_labels", labels_by_all_cells)
    assert columns.told_apart(question, "list", "lists of one", ["large"])


@pytest.mark.parametrize("cell", ["unhashable class", "class as text"])
@pytest.mark.parametrize("question", ["labels", "bought labels", "category"])
def test_types_of_cells_in_a_set(monkeypatch: Patch, question: str, cell: str) -> None:
    def in_a_set(values: Any, kinds: Any) -> bool:
        return set(map(type, values)) <= set(kinds)

    monkeypatch.setattr(targets, "are_of", in_a_set)
    assert columns.told_apart(question, "list", "text", [cell])


@pytest.mark.parametrize("what", ["warning", "error", "text"])
def test_a_cell_that_shows_itself(monkeypatch: Patch, what: str) -> None:
    honest = targets.as_numbers

    def telling(values: Any) -> Any:
        found = honest(values)
        if not np.isfinite(found).all():
            if what == "error":
                raise ValueError("missing")
            if what == "warning":
                warnings.warn("missing", stacklevel=1)
            else:
                sys.stderr.write("missing")
        return found

    monkeypatch.setattr(targets, "as_numbers", telling)
    assert columns.told_apart("target", "list", "numbers", ["none"])


def test_a_file_whose_types_are_inferred(monkeypatch: Patch, tmp_path: Path) -> None:
    """One true in a block, and all of it is truths."""
    honest = files.TableFile.numbers

    def inferred(self: Any, column: Any) -> Any:
        cells = [str(cell).lower() for cell in column.to_pylist()]
        if "true" not in cells:
            return honest(self, column)
        truths = {"true": 1.0, "1": 1.0, "false": 0.0, "0": 0.0}
        return np.array([truths.get(cell, np.nan) for cell in cells])

    assert tables.file_told_apart(tmp_path, "t.csv", {"true": {"a": "true"}}) == []
    monkeypatch.setattr(files.TableFile, "numbers", inferred)
    assert tables.file_told_apart(tmp_path, "t.csv", {"true": {"a": "true"}})


def test_a_blank_line_that_is_no_row(monkeypatch: Patch, tmp_path: Path) -> None:
    from pyarrow import csv

    honest = csv.ParseOptions
    monkeypatch.setattr(
        csv, "ParseOptions", lambda **options: honest(**{**options, "ignore_empty_lines": True})
    )
    with pytest.raises(AssertionError):
        tables.test_a_file_of_one_column(tmp_path, "")


def test_a_loss_that_sees_other_records(monkeypatch: Patch) -> None:
    def at_once(function: Any, axes: int, margins: Any, y: Any) -> Any:
        return np.asarray(function(margins, y))

    rows = {"large": tables.FIRST["large"]}
    ask = tables.ESTIMATORS["truncated loss"]
    assert tables.replayed(ask, tables.doubles, rows) == []
    monkeypatch.setattr(callbacks, "_one_by_one", at_once)
    assert tables.replayed(ask, tables.doubles, rows)


def test_a_bill_that_is_too_small(monkeypatch: Patch) -> None:
    honest = GaussianNoise.event

    def cheap(self: Any, sensitivity: Any) -> Any:
        event = honest(self, sensitivity)
        object.__setattr__(event, "diameter", event.diameter / 4)
        return event

    monkeypatch.setattr(GaussianNoise, "event", cheap)
    found = tables.replayed(tables.ridge, tables.doubles, {"large": tables.FIRST["large"]})
    assert any("moved by" in text for text in found)
