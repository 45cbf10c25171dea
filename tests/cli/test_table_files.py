from __future__ import annotations

import copy
import gzip
import json
import lzma
import pickle
import zipfile
from decimal import Decimal
from pathlib import Path

import fsspec
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from privtail.cli.accuracy import read_columns
from privtail.errors import InvalidInput, NotReleased
from privtail.schema.declared import typed_labels
from privtail.trusted.files.table import TableFile


def parquet(shell, **columns):
    pq.write_table(pa.table(columns), "t.parquet")
    return TableFile("t.parquet")


@pytest.mark.parametrize(
    "column",
    [
        pa.array([1, None, 3], pa.int64()),
        pa.array([1, None, 3], pa.uint8()),
        pa.array([1, None, 3], pa.float32()),
        pa.array([Decimal(1), None, Decimal(3)]),
        pa.array([1, None, 3]).dictionary_encode(),
    ],
    ids=lambda column: str(column.type)[:20],
)
def test_numbers_of_every_kind_become_doubles(shell, column):
    values = read_columns(parquet(shell, x=column), ["x"])["x"]
    assert values.dtype == np.float64
    np.testing.assert_array_equal(values, [1, np.nan, 3])


def test_a_null_changes_no_dtype(shell):
    for cells in ([True, False], [True, None]):
        file = parquet(shell, x=pa.array(cells, pa.bool_()))
        assert read_columns(file, ["x"])["x"].dtype == np.float64
        assert read_columns(file, [], {"x": ()})["x"].dtype == object


def test_large_integers_are_rounded_and_not_refused(shell):
    values = read_columns(parquet(shell, x=pa.array([2**62 + 1])), ["x"])["x"]
    assert values[0] == 2.0**62


@pytest.mark.parametrize("kind", [pa.string(), pa.large_string(), pa.dictionary(pa.int8(), "utf8")])
def test_labels_are_text(shell, kind):
    file = parquet(shell, x=pa.array(["a", None, "b"]).cast(kind))
    assert read_columns(file, [], {"x": ["a"]})["x"].tolist() == ["a", None, "b"]


def test_truths_are_lower_case(shell):
    file = parquet(shell, x=["True", "false"], y=[True, False])
    found = read_columns(file, [], {"x": ["True", "False"], "y": [True, False]})
    assert found["x"].tolist() == ["true", "false"]
    assert found["y"].tolist() == [True, False]
    for name in "xy":
        assert typed_labels(name, ["True", "False"], False) == ("true", "false")


def test_declared_numbers_meet_the_column(shell):
    file = parquet(shell, x=[1, 2], y=["1", "2"])
    found = read_columns(file, [], {"x": ["1", "2"], "y": [1, 2]})
    assert found["x"].tolist() == list(typed_labels("x", ["1", "2"], True)) == [1, 2]
    assert found["y"].tolist() == list(typed_labels("y", [1, 2], False)) == ["1", "2"]


def test_csv_labels_that_look_like_numbers(shell):
    (shell.folder / "t.csv").write_text("zip,grade\n007,1\n7,1.0\n,x\n")
    found = read_columns(TableFile("t.csv"), [], {"zip": ["007", "7"], "grade": ["1", "2"]})
    assert found["zip"].tolist() == ["007", "7", ""]
    np.testing.assert_array_equal(found["grade"].astype(float), [1, 1, np.nan])


def test_csv_text_as_declared_numbers(shell):
    cells = ["1", " 2 ", "-.5", "1e3", "1e400", "", "NA", "1_0", "0x1", "nan", "inf", '"3"']
    (shell.folder / "t.csv").write_text("x,z\n" + "".join(f"{cell},0\n" for cell in cells))
    values = read_columns(TableFile("t.csv"), ["x"])["x"]
    nan = np.nan
    expected = [1, 2, -0.5, 1e3, nan, nan, nan, nan, nan, nan, nan, 3]
    np.testing.assert_array_equal(values, expected)


@pytest.mark.parametrize("delimiter", [",", ";", "\t"])
@pytest.mark.parametrize("start", ["", "\ufeff"])
def test_csv_dialects(shell, delimiter, start):
    lines = [["a", '"b, c; d\t"', "e"], ["1", '"two\nlines"', "3"]]
    text = start + "\r\n".join(delimiter.join(line) for line in lines)
    (shell.folder / "t.csv").write_bytes(text.encode())
    file = TableFile("t.csv")
    assert file.names == ("a", "b, c; d\t", "e")
    found = read_columns(file, ["a", "e"], {"b, c; d\t": ["x"]})
    assert found["b, c; d\t"].tolist() == ["two\nlines"]
    assert found["e"].tolist() == [3]


def test_only_the_asked_columns_are_read(shell):
    file = parquet(shell, x=[1], when=pa.array([1], pa.timestamp("s")), y=[2])
    assert list(read_columns(file, ["y", "x"])) == ["y", "x"]


def test_a_category_named_na_is_a_category(shell):
    (shell.folder / "t.csv").write_text("country\nNA\nnull\n")
    found = read_columns(TableFile("t.csv"), [], {"country": ["NA", "null"]})
    assert found["country"].tolist() == ["NA", "null"]


def test_text_declared_for_numbers(shell):
    with pytest.raises(InvalidInput, match="'x' holds numbers, but 'a'"):
        typed_labels("x", ["a"], True)


def test_a_file_shows_and_pickles_nothing(shell):
    file = parquet(shell, x=["cell"])
    assert "cell" not in repr(file)
    for take in (pickle.dumps, copy.copy):
        with pytest.raises(NotReleased):
            take(file)


@pytest.mark.parametrize("text", ["x,y\r1,2\r3,4\r", 'x,"y\n' + "1,2\n" * 60_000])
def test_a_header_that_cannot_be_read_is_refused(shell, text):
    (shell.folder / "t.csv").write_text(text, newline="")
    error = shell.refused("mean", "t.csv", "--column", "x", "--epsilon", 1)
    assert error.startswith("Error. The first line of t.csv cannot be read")


def test_a_compressed_file_that_is_not_read_is_to_be_decompressed(shell):
    (shell.folder / "my t.csv.xz").write_bytes(lzma.compress(b"x,y\n1,2\n"))
    error = shell.refused("mean", "my t.csv.xz", "--column", "x", "--epsilon", 1)
    assert "Decompress it first: unxz -c 'my t.csv.xz' > 'my t.csv'" in error


def test_verbs_read_compressed_files_and_urls(shell):
    """One table, as a file, compressed, and of a file system that has no folder here."""
    content = b"x,y\n" + b"1,2\n3,4\n" * 50
    Path("t.csv").write_bytes(content)
    Path("t.csv.gz").write_bytes(gzip.compress(content))
    fsspec.filesystem("memory").pipe("/verbs/t.csv.gz", gzip.compress(content))
    places = [
        "t.csv",
        "t.csv.gz",
        "memory://verbs/t.csv.gz",
        "memory://verbs",
        Path("t.csv").resolve().as_uri(),
    ]
    means, answers = set(), set()
    for place in places:
        means.add(shell("mean", place, "--column", "x", *QUICK).stdout)
        fit = (place, "--target", "y", "--model", "linear", *QUICK)
        shell("plan", *fit[:5], "--epsilon", 1)
        shell("fit", *fit, "--force")
        answers.add(shell("predict", "model.json", place).stdout)
    assert len(means) == len(answers) == 1
    assert "no file memory://verbs/u.csv" in shell.refused(
        "mean", "memory://verbs/u.csv", "--column", "x", *QUICK
    )
    assert "uses t.csv already" in shell.refused(
        "mean", places[-1], "--column", "x", *QUICK, "--out", "t.csv", "--force"
    )


def test_advice_quotes_names_with_spaces(shell):
    (shell.folder / "my file.csv").write_text("a b;when;y\n1,5;2024-01-01;2\n")
    fit = ("fit", "my file.csv", "--target", "y", "--model", "linear", "--epsilon", 1)
    error = shell.refused(*fit)
    assert "--categories 'a b'=a,b,c" in error
    assert "--drop 'a b'" in error


def european(rows=600):
    """Claims with costs of some thousands, as an office writes them and as a machine does."""
    rng = np.random.default_rng(1)
    days = rng.integers(1, 4000, rows) / 4
    cost = 10 * days + rng.normal(0, 5, rows)

    def office(number):
        return f"{number:,.2f}".translate(str.maketrans(",.", ".,"))

    lines = [f"{office(x)};{office(y)}" for x, y in zip(days, cost, strict=True)]
    plain = [f"{x:.2f},{y:.2f}" for x, y in zip(days, cost, strict=True)]
    Path("office.csv").write_text("\n".join(["days;cost", *lines]), encoding="utf-16")
    Path("plain.csv").write_text("\n".join(["days,cost", *plain]))


OFFICE = ("--decimal", ",", "--thousands", ".", "--encoding", "utf-16")
QUICK = ("--epsilon", 1, "--noise", "simulated", "--seed", 0)


def test_numbers_of_an_office_are_those_of_a_machine(shell):
    european()
    fit = ("--target", "cost", "--model", "linear", *QUICK)
    shell("fit", "office.csv", *fit, *OFFICE, "--out", "office.json")
    shell("fit", "plain.csv", *fit, "--out", "plain.json")
    written = {"decimal": ",", "thousands": ".", "encoding": "utf-16", "separator": ";"}
    Path("schema.json").write_text(json.dumps(written))
    shell("fit", "office.csv", *fit, "--schema", "schema.json", "--out", "schema-office.json")
    models = [json.loads(Path(f"{name}.json").read_text()) for name in ("office", "plain")]
    models.append(json.loads(Path("schema-office.json").read_text()))
    assert models[0]["coef"] == models[1]["coef"] == models[2]["coef"]
    mean = [
        shell("mean", *words, "--column", "cost", *QUICK).stdout.splitlines()[0]
        for words in (("office.csv", *OFFICE), ("plain.csv",))
    ]
    assert mean[0] == mean[1]
    predicted = [
        shell("predict", "plain.json", *words).stdout
        for words in (("office.csv", *OFFICE), ("plain.csv",))
    ]
    assert predicted[0] == predicted[1]
    plan = shell("plan", "office.csv", "--target", "cost", "--model", "linear", "--epsilon", 1,
                 *OFFICE)  # fmt: skip
    assert "600 rows" in plan.stdout


def test_numbers_that_most_cells_are_not_are_refused(shell):
    european()
    shell("fit", "plain.csv", "--target", "cost", "--model", "linear", *QUICK)
    wide = ("--encoding", "utf-16")
    for words in (
        ("mean", "office.csv", "--column", "cost", "--numeric", "cost", "--epsilon", 1, *wide),
        ("fit", "office.csv", "--target", "cost", "--model", "linear", "--numeric", "cost",
         "--numeric", "days", "--out", "other.json", "--epsilon", 1, *wide),
        ("predict", "model.json", "office.csv", *wide),
    ):  # fmt: skip
        assert "--decimal , --thousands ." in shell.refused(*words)
    assert "--encoding utf-16" in shell.refused("predict", "model.json", "office.csv")
    Path("grouped.csv").write_text("x\n" + '"1,234.56"\n' * 600 + "75.5\n" * 400)
    mean = ("mean", "grouped.csv", "--column", "x", "--numeric", "x", *QUICK)
    assert "--thousands ," in shell.refused(*mean)
    first = shell(*mean, "--thousands", ",").stdout.splitlines()[0]
    assert abs(float(first.split()[2]) - 770.9) < 100


def test_columns_of_one_character_between(shell):
    Path("t.csv").write_text("x\x1fy\n" + "1\x1f2\n3\x1f4\n" * 50)
    error = shell.refused("mean", "t.csv", "--column", "x", *QUICK)
    assert r"--separator $'\x1f'" in error
    shell("mean", "t.csv", "--column", "x", *QUICK, "--separator", "\x1f")


@pytest.mark.parametrize("name", ["data.zip", "t.csv.xz", "t.xz"])
def test_what_is_decompressed_can_be_opened(shell, name):
    content = b"x,y\n" + b"1,2\n3,4\n" * 50
    if name == "data.zip":
        with zipfile.ZipFile(name, "w") as archive:
            archive.writestr("inside", content)
    else:
        Path(name).write_bytes(lzma.compress(content))
    mean = ("--column", "x", *QUICK)
    plain = shell.refused("mean", name, *mean).partition(" > ")[2]
    assert plain in ("data.csv", "t.csv")
    Path(plain).write_bytes(content)
    shell("mean", plain, *mean)


def test_categories_of_one_column_add_up(shell):
    Path("t.csv").write_text("job,y\n" + "a,1\nb,2\nc,3\n" * 200)
    fit = ("fit", "t.csv", "--target", "y", "--model", "linear", *QUICK)
    shell(*fit, "--categories", "job=a,b", "--categories", "job=c")
    column = json.loads(Path("model.json").read_text())["columns"][0]
    assert column == {"name": "job", "categories": ["a", "b", "c"]}
    fit = (*fit, "--out", "other.json")
    assert "twice" in shell.refused(*fit, "--categories", "job=a,b", "--categories", "job=b")


def test_numbers_are_refused_for_a_column_of_text(shell):
    """No row would match: the types of columns are public, but for those of a CSV."""
    x = np.arange(400.0)
    text, truth = np.where(x > 200, "yes", "no").tolist(), (x > 200).tolist()
    data = pa.table({"x": x, "y": text, "b": truth, "k": (x % 3).astype(int)})
    pq.write_table(data, "t.parquet")
    pq.write_table(data.set_column(3, "k", pa.array((x % 3).astype(int).astype(str))), "s.parquet")
    fit = ("fit", "t.parquet", "--epsilon", 1, "--model", "logistic", "--target")
    assert "'y' holds text" in shell.refused(*fit, "y", "--classes", "0,1")
    assert "'b' holds true and false" in shell.refused(*fit, "b", "--classes", "no,yes",
                                                       "--categories", "y=no,yes")  # fmt: skip
    assert "'y' holds text" in shell.refused(*fit, "b", "--classes", "0,1", "--categories",
                                             "y=0,1")  # fmt: skip
    assert "'k' holds numbers" in shell.refused(*fit, "b", "--classes", "0,1", "--categories",
                                                "k=a,b", "--categories", "y=no")  # fmt: skip
    linear = ("--target", "x", "--model", "linear", *QUICK, "--drop", "y", "--drop", "b")
    shell("fit", "t.parquet", *linear, "--categories", "k=0,1")
    assert "'k' holds text" in shell.refused("predict", "model.json", "s.parquet")
    typed = TableFile("s.parquet").typed("k", ["0", "1"])
    assert typed == ("0", "1")
    assert TableFile("t.parquet").typed("b", [0, 1]) == (0, 1)


@pytest.mark.parametrize("kind", ["parquet", "arrow"])
def test_an_index_of_pandas_is_no_feature(shell, kind):
    pandas = pytest.importorskip("pandas")
    index = pandas.Index(np.arange(300), name="id")
    frame = pandas.DataFrame({"x": np.arange(300.0), "y": np.arange(300.0)}, index=index)
    for made, name in ((frame, "id"), (frame.rename_axis(None)[::-1], "__index_level_0__")):
        if kind == "parquet":
            made.to_parquet("t.parquet")
        else:
            table = pa.Table.from_pandas(made)
            with pa.ipc.new_file("t.arrow", table.schema) as writer:
                writer.write_table(table)
        file = TableFile(f"t.{kind}")
        assert file.features("y") == ("x",)
        assert set(TableFile(f"t.{kind}", numeric=[name]).features("y")) == {"x", name}
        assert set(TableFile(f"t.{kind}", categories={name: [1]}).features("y")) == {"x", name}
        assert file.features(name) == ("x", "y")
        shell("mean", f"t.{kind}", "--column", name, *QUICK)
        plan = shell("plan", f"t.{kind}", "--target", "y", "--model", "linear", "--epsilon", 1)
        assert f"(not {name!r}, an index of pandas)" in plan.stdout


@pytest.mark.parametrize(
    ("column", "mend"),
    [
        (pa.array([1] * 9, pa.date32()), "the days since a date"),
        (pa.array([1] * 9, pa.timestamp("ms")), "the days since a date"),
        (pa.array([1] * 9, pa.duration("s")), "of seconds"),
        (pa.array([1] * 9, pa.time32("s")), "of seconds"),
    ],
    ids=lambda value: str(getattr(value, "type", "")),
)
def test_times_are_to_be_turned_into_numbers(shell, column, mend):
    pq.write_table(pa.table({"x": np.arange(9.0), "t": column}), "t.parquet")
    fit = ("fit", "t.parquet", "--model", "linear", "--epsilon", 1, "--target")
    for error in (shell.refused(*fit, "x"), shell.refused(*fit, "t")):
        assert "Column 't' of t.parquet" in error
        assert mend in error


@pytest.mark.parametrize("kind", [pa.decimal128(12, 2), pa.decimal256(50, 2)])
def test_decimals_are_numbers(shell, kind):
    cells = [None, *(Decimal(i) / 4 for i in range(300))]
    pq.write_table(pa.table({"x": pa.array(cells, kind), "y": pa.array(cells, kind)}), "t.parquet")
    pq.write_table(
        pa.table({"x": pa.array(cells, kind).cast("f8"), "y": pa.array(cells, kind).cast("f8")}),
        "f.parquet",
    )
    for name in "tf":
        shell("fit", f"{name}.parquet", "--target", "y", "--model", "linear", *QUICK, "--out", name)
    assert json.loads(Path("t").read_text())["coef"] == json.loads(Path("f").read_text())["coef"]


def test_columns_of_folders_by_an_option_and_by_a_schema(shell):
    for year in (2023, 2024):
        Path(f"rows/year={year}").mkdir(parents=True)
        Path(f"rows/year={year}/a.csv").write_text("x,y\n" + "1,2\n3,4\n" * 50)
    fit = ("--target", "y", "--model", "linear")
    assert "year" not in shell("plan", "rows", *fit, "--epsilon", 1).stdout
    declared = ("--partition-column", "year")
    said = "The names of folders are public. They are columns of the table: year."
    shell("fit", "rows", *fit, *declared, *QUICK)
    first = Path("model.json").read_text()
    assert said in first
    Path("schema.json").write_text('{"numeric": ["x"], "partition_columns": ["year"]}')
    error = shell.refused("fit", "rows", *fit, "--schema", "schema.json", *QUICK, "--force")
    assert "Column 'year' of rows is not in the schema" in error
    Path("schema.json").write_text('{"numeric": ["x", "year"], "partition_columns": ["year"]}')
    shell("fit", "rows", *fit, "--schema", "schema.json", *QUICK, "--force")
    names = [
        [c["name"] for c in json.loads(t)["columns"]]
        for t in (first, Path("model.json").read_text())
    ]
    assert names == [["x", "year"], ["x", "year"]]
    assert len(shell("predict", "model.json", "rows", *declared).stdout.splitlines()) == 201
    assert "year = " in shell("mean", "rows", "--column", "year", *declared, *QUICK).stdout
    Path("schema.json").write_text('{"partition_columns": "year"}')
    assert "wrong in 'partition_columns'" in shell.refused(
        "fit", "rows", *fit, "--schema", "schema.json", *QUICK, "--force"
    )
