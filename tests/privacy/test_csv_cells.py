"""Neighbouring CSV files: a cell alone says what it is worth, and a line is a row."""

from __future__ import annotations

import contextlib
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from privtail import open_table
from privtail.errors import InvalidInput
from privtail.robust_means import ClippedMean
from privtail.trusted.budget import Budget
from privtail.trusted.curator import Curator
from privtail.trusted.events import Round
from privtail.trusted.files import formats
from privtail.trusted.files.cells import one_line_end, text_numbers
from privtail.trusted.files.streams import Stream
from privtail.trusted.files.table import TableFile
from privtail.trusted.mechanisms.noise import GaussianNoise
from privtail.trusted.records.persons import Persons

pa = pytest.importorskip("pyarrow")

ODD = [
    "true", "FALSE", "", "NA", "?", "nan", "-inf", "1e999", "2020-01-01", "12:30:00", "1,5", "1.5",
    "9223372036854775808", " 7 ", "+3", "0x1F", "007", "1_000", "a\nb", 'say ""hi""', "#1", "\t",
    "2020-01-01T00:00:00Z", "é", "１", "\u22123", "1e-320", "." , "12 abc", "null",
]  # fmt: skip
"""Cells that PyArrow, and others, take for a type of their own."""

COLUMNS = {
    "zeros and ones": lambda i: str(i % 2),
    "truths": lambda i: ("true", "False")[i % 2],
    "whole numbers": lambda i: str(i * 37 % 1_000 - 500),
    "fractions": lambda i: f"{i * 0.37 % 11:.3f}",
    "zeros and ones, later more": lambda i: str(i % 2 if i < 300 else i),
}


@pytest.fixture(autouse=True)
def small_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(formats, "WINDOW_ROWS", 97)
    monkeypatch.setattr(formats, "_READ_BYTES", 1_000)


def rows(path: Path, **options: Any) -> np.ndarray:
    """Every record as the kernels see it, in the order of ids."""
    windows = Stream(open_table(path, **options), None).windows(None)
    return np.vstack([w.open()[0].rows(slice(0, w.stop - w.start)).X for w in windows])


def written(folder: Path, cells: list[str], name: str = "t.csv") -> Path:
    path = folder / name
    text = "x,z\n" + "".join(f'"{cell}",1\n' for cell in cells)
    path.write_bytes(text.encode())
    return path


def moved(folder: Path, cells: list[str], at: int, odd: str) -> np.ndarray:
    """Which records differ between a file and its neighbour."""
    one = rows(written(folder, cells))
    other = rows(written(folder, [*cells[:at], odd, *cells[at + 1 :]], "other.csv"))
    assert one.shape == other.shape
    return np.flatnonzero((one.view(np.uint64) != other.view(np.uint64)).any(axis=1))


@pytest.mark.parametrize("odd", ODD)
@pytest.mark.parametrize("name", COLUMNS)
def test_a_cell_changes_its_own_record_alone(tmp_path: Path, name: str, odd: str) -> None:
    cells = [COLUMNS[name](i) for i in range(600)]
    for at in (0, 10, 599):
        assert set(moved(tmp_path, cells, at, odd)) <= {at}


def test_types_that_are_inferred_are_caught(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from pyarrow import csv

    honest = csv.ConvertOptions
    monkeypatch.setattr(
        csv, "ConvertOptions", lambda include_columns, column_types: honest(
            include_columns=include_columns
        )
    )  # fmt: skip
    monkeypatch.setattr("privtail.trusted.files.formats._wrapped", lambda _: False)  # of text alone
    cells = [COLUMNS["zeros and ones, later more"](i) for i in range(600)]
    with pytest.raises((AssertionError, InvalidInput)):
        assert set(moved(tmp_path, cells, 10, "true")) <= {10}


def test_a_numeral_is_read_alike_alone_and_among_others() -> None:
    rng = np.random.default_rng(3)
    letters = [*"0123456789..eE+-- nifa_x'\n\t", "true", "false", "nan", "inf"]
    cells = ["".join(rng.choice(letters, rng.integers(0, 6))) for _ in range(3_000)]
    together = text_numbers(pa.array(cells))
    alone = np.concatenate([text_numbers(pa.array([cell])) for cell in cells])
    assert np.array_equal(together, alone, equal_nan=True)
    assert np.isfinite(together).mean() > 0.1
    for cell, value in zip(cells, together.tolist(), strict=True):
        if np.isfinite(value) and not cell.strip().lower().startswith(("t", "f")):
            assert value == float(cell)


# Lines


LINES = ["1", "", "2", "", "", "3"]


@pytest.mark.parametrize("end", ["\n", "\r\n"])
@pytest.mark.parametrize("last", [True, False], ids=["ended", "open"])
@pytest.mark.parametrize("lines", [LINES, ["", *LINES, ""], [""] * 40 + ["1"], LINES * 500])
@pytest.mark.parametrize("header", ["x", "x,z"])
def test_a_blank_line_is_a_row(
    tmp_path: Path, end: str, last: bool, lines: list[str], header: str
) -> None:
    path = tmp_path / "t.csv"
    more = ",1" if header == "x,z" else ""
    text = end.join([header, *(line and line + more for line in lines)])
    path.write_bytes((text + end * last).encode())
    lines = lines if last or lines[-1] else lines[:-1]  # no line follows the last end of a line
    expected = [float(line) if line else np.nan for line in lines]
    assert open_table(path).n == len(lines)
    assert np.array_equal(rows(path, numeric=["x"])[:, 0], expected, equal_nan=True)


def test_blank_lines_that_are_skipped_are_caught(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from pyarrow import csv

    honest = csv.ParseOptions
    monkeypatch.setattr(
        csv, "ParseOptions", lambda ignore_empty_lines, **options: honest(**options)
    )
    with pytest.raises(AssertionError):
        test_a_blank_line_is_a_row(tmp_path, "\n", True, LINES, "x")


def test_a_blank_line_in_quotes_is_none(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text('x,job\n1,"a\n\nb"\n\n2,c"d\n\n3,"e\n"\n')
    found = rows(path, categories={"job": ["a\n\nb", 'c"d', "e\n"]})
    missing = [np.nan, 0, 0, 0]
    expected = [[1, 1, 0, 0], missing, [2, 0, 1, 0], missing, [3, 0, 0, 1]]
    assert np.array_equal(found, expected, equal_nan=True)


def test_ends_of_lines_in_quotes_do_not_depend_on_where_blocks_meet(tmp_path: Path) -> None:
    found = []
    for length in range(12):
        path = tmp_path / "t.csv"
        path.write_bytes(
            ("job,x\r\n" + "1" * length + ",1\r\n" + '"a\r\n\r\nb",2\r\n' * 900).encode()
        )
        found.append(rows(path, categories={"job": ["a\r\n\r\nb"]})[1:])
        ids = open_table(path).ids("job")
        assert set(ids[1:]) == {None}
        assert (found[-1] == [1, 2]).all()
    assert len(found[0]) == 900


def test_ends_of_lines_as_they_come_are_caught(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("privtail.trusted.files.table.one_line_end", lambda text: text)
    with pytest.raises(AssertionError):
        test_ends_of_lines_in_quotes_do_not_depend_on_where_blocks_meet(tmp_path)


# Sums


@pytest.mark.parametrize(("at", "odd"), [(5, "true"), (5, ""), (599, "1e308"), (0, "Infinity")])
@pytest.mark.parametrize("header", ["x", "x,z"])
def test_neighbours_differ_by_no_more_than_is_billed(
    tmp_path: Path, at: int, odd: str, header: str
) -> None:
    cells = [COLUMNS["zeros and ones, later more"](i) for i in range(600)]
    more = ",1" if header == "x,z" else ""
    answers = []
    for chosen in (cells, [*cells[:at], odd, *cells[at + 1 :]]):
        path = tmp_path / "t.csv"
        path.write_text(header + "\n" + "".join(f"{cell}{more}\n" for cell in chosen))
        curator = Curator(open_table(path), None, budget=Budget(1.0, 1e-6), noise="simulated")
        mean, noise = ClippedMean(1.0), GaussianNoise(10.0)
        curator.open((Round(events=(noise.event(curator.problem.means(mean)),)),))
        answers.append(curator.everyone().means(mean))
    assert answers[0].sensitivity == answers[1].sensitivity
    apart = np.linalg.norm((answers[0]._value - answers[1]._value).astype(float))
    assert apart <= answers[0].sensitivity.diameter.l2


def test_one_odd_cell_refuses_no_column(tmp_path: Path) -> None:
    cells = [str(i) for i in range(50)]
    for odd in ODD:
        path = written(tmp_path, [odd, *cells])
        assert open_table(path).features() == ("x", "z")


@pytest.mark.parametrize("cells", [["", ""], ["", "7"], ["7", "x"]])
def test_a_cell_of_an_empty_column_refuses_nothing(tmp_path: Path, cells: list[str]) -> None:
    """One record in a column that is empty otherwise: its cell decides no refusal."""
    path = tmp_path / "t.csv"
    path.write_text("a,b\n" + "".join(f"1,{cell}\n" for cell in [*cells, *[""] * 28]))
    assert len(Curator(open_table(path), budget=Budget(1.0, 1e-6)).problem.measured) == 2


OPEN_QUOTES = [
    'x\n1\n"2\n3\n4\n', 'x\n1\n"2\n3\n4', 'x\n1\n"2\n3\n4""\n',
    'x\r\n1\r\n"2\r\n3\r\n4\r\n', 'x,z\n1,1\n2,"2\n3,3\n4,4\n',
    'x,z\n1,1\n2,"2""\n3,3\n\n4,4""\n', 'x\n"1\n\n\n', 'x\n1\n"2\n3\n"4\n5\n',
    'x,z\n1,"1\n2,"2"\n3,3\n', 'z,x\n"1,1\n"2,2\n3,3\n', 'x,z\r1,"1\r2,"2\r',
]  # fmt: skip
CLOSED_QUOTES = [
    'x\n1\n"2\n3\n4"\n', 'x\n1\n"2\n3\n4"', 'x\n1\n"2\n3\n4"""\n',
    'x\r\n1\r\n"2\r\n3\r\n4\r\n"\r\n', 'x,z\n1,1\n2,"2\n3,3\n4,4"\n',
    'x,z\n1,1\n2,"2""\n3,3\n\n4,4"""', 'x\n1\n"\n\n\n"\n', 'x\n1\n"\n\n"',
]  # fmt: skip


@pytest.mark.parametrize("encoding", ["utf-8", "utf-16"])
@pytest.mark.parametrize("drop", [[], ["z"]])
@pytest.mark.parametrize("text", OPEN_QUOTES)
def test_a_stray_quote_that_hides_lines_is_refused(
    tmp_path: Path, text: str, drop: list[str], encoding: str
) -> None:
    """One cell would hold the lines after it, and n, which is public, would tell of it."""
    path = tmp_path / "t.csv"
    path.write_bytes(text.encode(encoding))
    drop = drop if "z" in text else []
    with pytest.raises(InvalidInput, match="a quote is not closed"):
        _ = open_table(path, drop=drop, encoding=encoding).n


@pytest.mark.parametrize("drop", [[], ["z"]])
@pytest.mark.parametrize("odd", ['#2,"2', '"#2","2', '#2,"2"",2', '#2,2,"2', '#2,2,"2""', '#"2,"'])
def test_a_stray_quote_in_a_comment_is_refused(tmp_path: Path, drop: list[str], odd: str) -> None:
    """The lines after it would be part of the comment, whose cells nobody sees."""
    path = tmp_path / "t.csv"
    path.write_text(f"x,z\n1,1\n{odd}\n3,3\n4,4\n")
    with pytest.raises(InvalidInput, match="a quote is not closed"):
        _ = open_table(path, comment="#", drop=drop).n


def test_a_quote_within_a_comment_is_none(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text('x,z\n1,1\n# it is "2,\n#2,"2"\n3,3\n')
    assert open_table(path, comment="#").n == 4


@pytest.mark.parametrize("encoding", ["utf-8", "utf-16"])
@pytest.mark.parametrize("text", CLOSED_QUOTES)
def test_a_last_cell_of_several_lines_is_one(tmp_path: Path, text: str, encoding: str) -> None:
    path = tmp_path / "t.csv"
    path.write_bytes(text.encode(encoding))
    assert open_table(path, encoding=encoding).n == 2


def test_stray_quotes_that_nobody_looks_for_are_caught(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(formats.Csv, "_require_closed", lambda _: None)
    path, found = tmp_path / "t.csv", []
    for odd in ("2", '"2'):
        path.write_text(f'x,z\n1,{odd}\n2,"3"\n3,4\n')
        with contextlib.suppress(InvalidInput):
            found.append(open_table(path).n)
    assert len(set(found)) == 2


def test_a_dropped_column_may_be_no_text(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(formats, "_READ_BYTES", 1 << 20)
    path = tmp_path / "t.csv"
    path.write_bytes(b'x,z\n1,"' + b"a\n" * 10**5 + b'"\n' + b"1,2\n" * 3 * 10**5 + b"1,\xff\n")
    assert open_table(path, drop=["z"]).n == 3 * 10**5 + 2


# Ids


SPELLINGS = ["x\ny", "x\r\ny", "x\ry"]


def seated(path: Path, first: str) -> list[int]:
    """Which rows count, one of each person, where the first two are of somebody else."""
    ids = [first, first, *SPELLINGS, "q"]
    path.write_text("id,v\n" + "".join(f'"{one}",1\n' for one in ids), newline="")
    found = Persons(open_table(path).ids("id"), len(ids)).seats(np.arange(len(ids)), 1)[0]
    return found.tolist()  # type: ignore[no-any-return]


def others_stay(path: Path) -> None:
    for first in SPELLINGS:
        assert [i for i in seated(path, first) if i > 1] == [i for i in seated(path, "z") if i > 1]


def test_an_id_with_the_end_of_a_line_is_nobodys(tmp_path: Path) -> None:
    """The hole: three persons were taken for one, and when one left, a row of another came in."""
    others_stay(tmp_path / "t.csv")
    assert seated(tmp_path / "t.csv", "z") == [0, 5]


def test_ids_that_become_one_are_seen(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def as_before(self: Any, name: str) -> Any:
        cells = [cell for batch in self.batches([name], ()) for cell in batch[name].to_pylist()]
        return np.array([one_line_end(cell) for cell in cells], object)

    monkeypatch.setattr(TableFile, "ids", as_before)
    with pytest.raises(AssertionError):
        others_stay(tmp_path / "t.csv")


@pytest.mark.parametrize("at", [0, 4_000])
def test_how_long_a_row_is_does_not_decide_whether_columns_are_text(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, at: int
) -> None:
    """A long row changed which rows came first: it crowded others out, or let more in."""
    monkeypatch.setattr(formats, "_READ_BYTES", 1 << 20)
    found = []
    for length in (1_000, 1_020_000, 2_500_000):
        lines = [f"{'abc' if i < 100 or i > 2_100 else i},{'1' * 1_000}" for i in range(4_001)]
        lines[at] = f"7,{'1' * length}"
        path = tmp_path / "t.csv"
        path.write_text("\n".join(["x,pad", *lines]))
        found.append(open_table(path, drop=["pad"]).features())
    assert found == [("x",)] * 3
