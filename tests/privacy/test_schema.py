"""The schema is outside the core: what it is told must not depend on a cell."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import privtail
from privtail import open_table
from privtail.cli.accuracy import read_columns
from privtail.linear_model import DPLinearRegression
from privtail.schema import declared
from privtail.trusted.files.table import TableFile

pytest.importorskip("pyarrow")
pytestmark = pytest.mark.filterwarnings("ignore::privtail.errors.MissingWarning")

SCHEMA = str(Path(privtail.__file__).parent / "schema")
HEADER = "x,job,late,who,y\n"
TAME = [f"{i}.5,{'ab'[i % 2]},true,{i % 7},{i}\n" for i in range(60)]
WILD = [f"{10**i}e3,{'a c é'[i % 5]},no,p{i},-{i}\n" for i in range(60)]
MIXED = [*TAME[:-1], 'nonsense,"q""uote",?,,1e999\n']


def told(path: Path, rows: list[str], act: Callable[[TableFile], Any]) -> list[tuple[str, str]]:
    """The calls of functions of the schema, with what they were given."""
    path.write_text(HEADER + "".join(rows), encoding="utf-8")
    calls: list[tuple[str, str]] = []

    def watch(frame: Any, event: str, _: Any) -> None:
        code = frame.f_code
        if event == "call" and code.co_filename.startswith(SCHEMA) and code.co_name[0] != "<":
            given = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
            calls.append((code.co_name, repr([frame.f_locals[name] for name in given])))

    before = sys.getprofile()
    sys.setprofile(watch)
    try:
        act(
            open_table(
                path, categories={"job": ["a", "b"], "late": ["true", "false"]}, numeric=["x"]
            )
        )
    finally:
        sys.setprofile(before)
    return calls


def fit(table: TableFile) -> None:
    model = DPLinearRegression(
        epsilon=1.0, delta=1e-3, noise="simulated", random_state=0, max_rows=2
    )
    model.fit(table, "y", groups="who").predict(table)


def read(table: TableFile) -> None:
    read_columns(table, ["x", "y"], {"job": ["a", "b"], "late": ()})
    table.ids("who")
    table.require_readable(["y"])


@pytest.mark.parametrize("act", [fit, read])
@pytest.mark.parametrize("rows", [WILD, MIXED], ids=["wild", "mixed"])
def test_the_schema_is_told_nothing_of_a_cell(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, act: Any, rows: list[str]
) -> None:
    monkeypatch.setenv("PRIVTAIL_THREADS", "1")
    calls = told(tmp_path / "t.csv", TAME, act)
    assert {"separator_of", "typed", "require"} <= {name for name, _ in calls}
    assert told(tmp_path / "t.csv", rows, act) == calls


def test_a_cell_that_is_told_is_caught(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    honest = TableFile.numbers

    def telling(self: TableFile, column: Any) -> Any:
        declared.is_numeral(str(column[0].as_py()))
        return honest(self, column)

    monkeypatch.setattr(TableFile, "numbers", telling)
    with pytest.raises(AssertionError):
        test_the_schema_is_told_nothing_of_a_cell(tmp_path, monkeypatch, fit, WILD)
