"""How a CSV is written is declared: options, what they refuse, and which option an error names."""

from __future__ import annotations

import codecs
import contextlib
from encodings.aliases import aliases
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from privtail import open_table
from privtail.errors import InvalidInput, MissingWarning
from privtail.linear_model import DPLinearRegression
from privtail.schema.dialect import Dialect
from privtail.trusted.files import formats
from privtail.trusted.files.cells import text_numbers
from privtail.trusted.files.streams import Stream

pa = pytest.importorskip("pyarrow")
pc = pytest.importorskip("pyarrow.compute")
pq = pytest.importorskip("pyarrow.parquet")

NAN = float("nan")


def rows(path: Path, **options: Any) -> list[list[float]]:
    """The records as the kernels see them."""
    windows = Stream(open_table(path, **options), None).windows(None)
    parts = [w.open()[0].rows(slice(0, w.stop - w.start)).X for w in windows]
    return np.vstack(parts).tolist()  # type: ignore[no-any-return]


def refused(make: Any) -> str:
    with pytest.raises(InvalidInput) as caught:
        make()
    assert "secret" not in str(caught.value) + caught.value.cli
    return str(caught.value)


@pytest.mark.parametrize(
    ("dialect", "cell", "number"),
    [
        ({"thousands": ","}, "1,234.56", 1234.56),
        ({"thousands": ","}, "-1,234,567", -1234567.0),
        ({"thousands": ","}, "12,34,567.5", 1234567.5),
        ({"thousands": ","}, "123", 123.0),
        ({"thousands": ","}, "1234.5", 1234.5),
        ({"thousands": ","}, "1,5", NAN),
        ({"thousands": ","}, ",123", NAN),
        ({"thousands": ","}, "1,,234", NAN),
        ({"decimal": ",", "thousands": "."}, "1.234,56", 1234.56),
        ({"decimal": ",", "thousands": "."}, "1.5", NAN),
        ({"decimal": ",", "thousands": "."}, "1.234", 1234.0),
        ({"decimal": ",", "thousands": "."}, ",5e2", 50.0),
        ({"decimal": ","}, "1,5", 1.5),
        ({"decimal": ","}, "1.5", NAN),
        ({"decimal": ","}, "nan", NAN),
        ({"decimal": ","}, "TRUE", 1.0),
        ({"thousands": " "}, " 1 234 ", 1234.0),
        ({"thousands": "\u202f"}, "1\u202f234", 1234.0),
        ({"thousands": "'"}, "1'234'567", 1234567.0),
    ],
)
def test_a_number_is_read_as_declared(dialect: Any, cell: str, number: float) -> None:
    others = ["7", "", cell, "x", "1e3"]
    found = text_numbers(pa.array(others), Dialect(**dialect))
    assert np.array_equal(found, [7, NAN, number, NAN, 1000], equal_nan=True)


FILES = [
    ('x;y\n"1.234,5";2\n0,5;3\n', {"decimal": ",", "thousands": "."}),
    ("x|y\n1234.5|2\n0.5|3\n", {"separator": "|"}),
    ("x\x1fy\n1234.5\x1f2\n0.5\x1f3\n", {"separator": "\x1f"}),
    ("# of\n\n# 'today\nx,y\n1234.5,2\n0.5,3\n", {"comment": "#"}),
    ("sep=;\nx;y\n1234.5;2\n0.5;3\n", {"comment": "sep="}),
    ("\n\r\nx,y\n1234.5,2\n0.5,3\n", {}),
    ('"x"\t y \n1,234.5\t2\n0.5\t3\n', {"thousands": ","}),
]


@pytest.mark.parametrize("encoding", ["utf-8", "utf-16", "utf-16-le", "latin-1", "utf-8-sig"])
@pytest.mark.parametrize(("text", "options"), FILES)
def test_a_file_is_read_as_declared(tmp_path: Path, text: str, options: Any, encoding: str) -> None:
    path = tmp_path / "t.csv"
    path.write_bytes(text.encode(encoding))
    options = options if encoding == "utf-8" else {**options, "encoding": encoding}
    assert open_table(path, **options).names == ("x", "y")
    assert rows(path, **options) == [[1234.5, 2], [0.5, 3]]


def test_names_and_labels_in_an_encoding(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_bytes("größe,ort\n1,Köln\n2,Bonn\n".encode("latin-1"))
    options: Any = {"encoding": "latin-1", "categories": {"ort": ["Köln"]}}
    assert rows(path, **options) == [[1, 1], [2, 0]]
    assert "encoding='latin-1'" in refused(lambda: open_table(path))
    later = tmp_path / "later.csv"
    later.write_bytes(b"x,y\n" + b"1,2\n" * 300_000 + "1,é\n".encode("latin-1"))
    assert "encoding='latin-1'" in refused(lambda: open_table(later).n)
    assert "encoding" in refused(lambda: open_table(later, encoding="ascii").n)


def test_a_line_of_comment_below_the_header_is_a_row_without_values(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("privtail.trusted.files.formats._READ_BYTES", 40)
    path = tmp_path / "t.csv"
    lines = ["#a", "x,y", "1,2", "# b", "", "3,4", "#5,6", "# 7,8,9", '"#",9', "5,6", "#", "#"]
    path.write_text("\n".join(lines + lines[2:] * 20) + "\n")
    nothing, part = [NAN, NAN], [[1, 2], [NAN, NAN], [NAN, NAN], [3, 4]]
    part += [nothing, nothing, nothing, [5, 6], nothing, nothing]
    assert open_table(path, comment="#").n == len(part) * 21
    assert np.array_equal(rows(path, comment="#", numeric=["x", "y"]), part * 21, equal_nan=True)
    job: Any = rows(path, comment="#", numeric=["y"], categories={"x": ["#", "1"]})
    assert np.array_equal(job[:2], [[0, 1, 2], [0, 0, NAN]], equal_nan=True)


@pytest.mark.parametrize("at", [0, 50, 99])
@pytest.mark.parametrize("comment", [None, "#"])
def test_a_long_row_is_a_row(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, at: int, comment: Any
) -> None:
    monkeypatch.setattr(formats, "_READ_BYTES", 64)
    path, found = tmp_path / "t.csv", []
    for cell in ("7", "1" * 100, '"' + "1" * 4_000 + '"'):
        lines = [f"{cell if i == at else i},{i}\n" for i in range(100)]
        path.write_text("".join(["x,y\n", *lines]))
        assert open_table(path, comment=comment).features() == ("x", "y")
        found.append(np.delete(rows(path, comment=comment), at, axis=0))
    assert found[0].shape == (99, 2)
    assert all(np.array_equal(found[0], other) for other in found)
    monkeypatch.setattr(formats, "_LONGEST", 1)
    assert "more than 64 MB" in refused(lambda: open_table(path).n)
    monkeypatch.undo()
    monkeypatch.setattr(formats, "_READ_BYTES", 16)
    assert "more than 64 MB" in refused(lambda: open_table(path).n)


def test_text_has_room_for_a_cell_of_any_length(monkeypatch: pytest.MonkeyPatch) -> None:
    """Arrow fails at 1.4 GB of the shorter type of text, whose letters may become longer."""
    honest, kinds = pc.utf8_lower, []

    def lower(cells: Any) -> Any:
        kinds.append(str(cells.type))
        return honest(cells)

    monkeypatch.setattr(pc, "utf8_lower", lower)
    for kind in (pa.string(), pa.large_string()):
        assert np.array_equal(text_numbers(pa.array(["x", "true"], kind)), [NAN, 1], equal_nan=True)
    assert kinds == ["large_string"] * 2


NAMED = {
    "utf-16": ("a,b\n1,secret\n".encode("utf-16"), "encoding='utf-16'"),
    "utf-16 without a mark": ("a,b\n1,secret\n".encode("utf-16-le"), "encoding='utf-16-le'"),
    "pipes": (b"a|b\n1|2\n", "separator='|'"),
    "unit separators": (b"a\x1fb\n1\x1f2\n", r"separator='\x1f'"),
    "a word to Excel": (b"sep=;\na;b\n1;2\n", "comment='sep='"),
    "latin-1": (b"a,b\n1,\xe9\n", "encoding='latin-1'"),
}


@pytest.mark.parametrize("name", NAMED)
def test_what_a_file_is_is_named(tmp_path: Path, name: str) -> None:
    content, says = NAMED[name]
    (tmp_path / "t.csv").write_bytes(content)
    assert says in refused(lambda: open_table(tmp_path / "t.csv").n)


COMMAS = "x;y\n" + "0,5;1\n1.234,5;2\n" * 500
GROUPED = "x,y\n" + '"1,234.56",1\n' * 600 + "12.5,2\n" * 400


@pytest.mark.parametrize(("text", "says"), [(COMMAS, 'decimal=","'), (GROUPED, 'thousands=","')])
@pytest.mark.parametrize("numeric", [(), ("x",)])
def test_most_cells_unreadable_is_refused(
    tmp_path: Path, text: str, says: str, numeric: Any
) -> None:
    path = tmp_path / "t.csv"
    path.write_text(text)
    file = open_table(path, numeric=numeric)
    for make in (file.features, lambda: file.require_numeric("x")):
        assert says in refused(make)
    model = DPLinearRegression(epsilon=1.0, noise="simulated", random_state=0)
    model.fit({"x": np.arange(500.0)}, np.arange(500.0))
    assert says in refused(lambda: model.predict(open_table(path, numeric=numeric)))
    pq.write_table(pa.table({"x": ["1,234.5"] * 9 + ["1"]}), tmp_path / "t.parquet")
    file = open_table(tmp_path / "t.parquet", numeric=["x"])
    assert 'thousands=","' in refused(file.features)


def test_marks_of_missing_numbers_refuse_no_column(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text("x,y\n" + "?,1\nNA,2\n,3\n4,5\n" * 50)
    assert open_table(path).features() == ("x", "y")
    path.write_text("x,y\n" + "?,1\nNA,2\n,3\n" * 50)
    assert open_table(path).features() == ("x", "y")  # one record with a value would tell
    assert open_table(path, numeric=["x"]).features() == ("x", "y")


def test_one_row_without_a_number_is_predicted_as_missing(tmp_path: Path) -> None:
    model = DPLinearRegression(epsilon=1.0, noise="simulated", random_state=0)
    model.fit({"x": np.arange(500.0)}, np.arange(500.0))
    for cell in ("", "NA", '""'):
        (tmp_path / "t.csv").write_text(f"x,z\n{cell},1\n")
        with pytest.warns(MissingWarning, match=r"1 of 1 row has .* in 'x' \(1\)"):
            assert np.isnan(model.predict(open_table(tmp_path / "t.csv"))).tolist() == [True]


@pytest.mark.parametrize(
    "options",
    [
        {"decimal": ",", "thousands": ","}, {"decimal": ""}, {"decimal": "1"}, {"thousands": "--"},
        {"separator": "||"}, {"separator": '"'}, {"separator": "é"}, {"encoding": "utf-99"},
        {"encoding": "base64"}, {"encoding": "a\0b"}, {"comment": ""},
    ],
    ids=str,
)  # fmt: skip
def test_an_option_that_says_nothing_is_refused(tmp_path: Path, options: Any) -> None:
    (tmp_path / "t.csv").write_text("x,y\n1,2\n")
    (name, *_) = options
    assert name in refused(lambda: open_table(tmp_path / "t.csv", **options))


ESCAPES = [
    b"\x1b$B", b"\x1b$C", b"\x1b$(Q", b"\x1b$(O", b"\x1b(I", b"\x1b$)C\x0e", b"\x0e", b"~", b"~{",
    b"+AAo-", b"+AG", b"\\", b"\\n", b"\\u000a", b"\x81", b"\x8e", b"\x8f", b"\xfe", b"abc-x",
]  # fmt: skip
"""What shifts, ends or hides a line in some encodings."""


def _moves_others(encoding: str) -> bool:
    """Whether a cell can end its line, or change how the next lines are read."""
    after = "\n1.5,xy,2\n3,ab,4\n"
    for cell in ESCAPES:
        with contextlib.suppress(UnicodeError):
            text = codecs.getincrementaldecoder(encoding)().decode(cell + after.encode(), True)
            if not text.endswith(after) or len(text.splitlines()) != 3:
                return True
    return False


ENCODINGS = {*aliases.values(), "unicode_escape", "raw_unicode_escape"}


@pytest.mark.parametrize("encoding", sorted(ENCODINGS))
def test_an_encoding_reads_every_line_by_itself_or_is_refused(encoding: str) -> None:
    """Else one cell of a record, such as the text ESC $ C in ISO-2022-KR, would change others."""
    with contextlib.suppress(InvalidInput):
        Dialect(encoding=encoding)
        with contextlib.suppress(UnicodeError):
            assert "1,a\n".encode(encoding) != b"1,a\n" or not _moves_others(encoding)


@pytest.mark.parametrize(
    "encoding", ["iso2022_kr", "ISO-2022-JP-2", "iso2022_jp_3", "hz", "utf-7", "unicode_escape"]
)
def test_encodings_with_a_state_are_refused(encoding: str) -> None:
    assert _moves_others(encoding)
    assert "one cell could change" in refused(lambda: Dialect(encoding=encoding))


def test_options_of_a_csv_are_refused_for_other_files(tmp_path: Path) -> None:
    pq.write_table(pa.table({"x": ["1,5"]}), tmp_path / "t.parquet")
    for option in ({"separator": ";"}, {"encoding": "latin-1"}, {"comment": "#"}):
        assert "is no CSV" in refused(lambda o=option: open_table(tmp_path / "t.parquet", **o))
    assert rows(tmp_path / "t.parquet", numeric=["x"], decimal=",") == [[1.5]]
