"""Every refusal: exit code 2, one line that names file, column and mend, and never a cell."""

from __future__ import annotations

import json

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

FIT = ("--model", "logistic", "--target", "late", "--epsilon", "1")
DECLARED = (*FIT, "--classes", "no,yes", "--categories", "job=clerk,nurse", "--drop", "note")


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("nothing.csv", *FIT), ["There is no file nothing.csv"]),
        ((".", *FIT), ["is a folder"]),
        (("claims.csv", *FIT[:2], *FIT[4:]), ["--target COLUMN"]),
        (("claims.csv", *FIT, "--target", "Late"), ["no column 'Late'", "Is 'late' meant?"]),
        (("claims.csv", *FIT, "--target", "zzz"), ["no column 'zzz'", "age, days, job"]),
        (("claims.csv", *FIT), ["'job'", "holds text", "--categories job=", "--drop job"]),
        (("claims.parquet", *FIT), ["'job'", "holds text", "--categories job=", "--drop job"]),
        (("claims.csv", *DECLARED, "--drop", "nothing"), ["no column 'nothing'", "dropped"]),
        (("claims.csv", *DECLARED, "--categories", "jop=a"), ["'jop'", "Is 'job' meant?"]),
        (("claims.csv", *DECLARED, "--categories", "job"), ["--categories column=a,b,c"]),
        (("claims.csv", *DECLARED, "--categories", "job=a,,b"), ["values between commas"]),
        (("claims.csv", *DECLARED, "--categories", "job=a,a"), ["'job' is declared twice"]),
        (("claims.parquet", *DECLARED, "--categories", "days=1,b"), ["'days'", "'b'"]),
        (("claims.csv", *DECLARED, "--categories", "late=no,yes"), ["--classes a,b"]),
        (("claims.csv", *DECLARED, "--epsilon", "0"), ["epsilon must be positive"]),
        (("claims.csv", *DECLARED, "--epsilon", "-1"), ["epsilon must be positive"]),
        (("claims.csv", *DECLARED, "--epsilon", "nan"), ["epsilon must be positive"]),
        (("claims.csv", *DECLARED, "--delta", "1"), ["delta must lie in [0, 1)"]),
        (("claims.csv", *DECLARED, "--epsilon", "two"), ["--epsilon"]),
        (("claims.csv", *DECLARED, "--model", "forest"), ["--model"]),
        (("claims.csv", *DECLARED, "--out", "no/model.json"), ["mkdir -p no"]),
        (("claims.csv", *DECLARED, "--out", "."), ["is a folder"]),
        (("claims.csv", *DECLARED, "--out", "claims.csv"), ["exists already", "--force"]),
        (("claims.csv", *DECLARED, "--schema", "no.json"), ["The schema no.json"]),
        (("claims.csv", *DECLARED, "--schema", "claims.csv"), ["not a JSON object"]),
        (("claims.csv", *DECLARED, "--classes", "no"), ["at least two classes"]),
        (("claims.csv", *DECLARED, "--model", "linear"), ["--model logistic"]),
        (("claims.csv", "--model", "linear", "--target", "note", "--epsilon", 1, "--drop", "late",
          "--categories", "job=clerk"), ["'note'", "holds text"]),
    ],
)  # fmt: skip
def test_fit_refuses(shell, table, words, says):
    error = shell.refused("fit", *words)
    assert all(text in error for text in says), error


FILES = {
    "twice.csv": (b"age,late,age\n1,xq7secretcell,2\n", "more than one column 'age'"),
    "bare.csv": (b"39,xq7secretcell,39\n40,b,2\n", "Add a first line with the names"),
    "empty.csv": (b"", "is empty"),
    "rowless.csv": (b"age,late\n", "has no rows"),
    "ragged.csv": (b"age,late\n1,xq7secretcell\n1,2,xq7secretcell\n", "more or fewer cells"),
    "latin.csv": (b"age,late\n1,xq7secretcell\xe9\n", "iconv"),
    "unnamed.csv": (b",age,late\n0,1,no\n", "Column 1 of unnamed.csv has no name"),
    "image.png": (b"\x89PNG\r\n", "is not a table"),
    "binary.csv": (b"age\0,late\n", "is not a table"),
    "damaged.parquet": (b"PAR1xq7secretcell", "damaged Parquet"),
    "model.json": (b"{}", "is not a table"),
}


@pytest.mark.parametrize("name", FILES)
def test_what_is_not_a_table(shell, name):
    content, says = FILES[name]
    (shell.folder / name).write_bytes(content)
    error = shell.refused("fit", name, *FIT, "--classes", "no,yes", "--out", "out.json")
    assert says in error, error
    assert error.startswith("Error. ")


def test_a_damaged_page_of_a_parquet_file(shell, table):
    data = bytearray((shell.folder / "claims.parquet").read_bytes())
    data[4 : len(data) // 2] = bytes(len(data) // 2 - 4)
    (shell.folder / "broken.parquet").write_bytes(data)
    error = shell.refused("fit", "broken.parquet", *DECLARED)
    assert "broken.parquet is a damaged Parquet file" in error


@pytest.mark.parametrize(
    "column",
    [
        pa.array([1, 2], pa.timestamp("us")),
        pa.array([1, 2], pa.date32()),
        pa.array([[1], [2]]),
        pa.array([b"xq7secretcell", b"b"]),
        pa.nulls(2),
    ],
    ids=lambda column: str(column.type),
)
def test_columns_of_other_types(shell, column):
    pq.write_table(pa.table({"when": column, "late": ["no", "yes"]}), "t.parquet")
    error = shell.refused("fit", "t.parquet", *FIT, "--classes", "no,yes")
    assert "'when'" in error
    assert "--drop when" in error


def test_two_columns_of_one_name_in_parquet(shell):
    twice = pa.Table.from_arrays([pa.array([1]), pa.array([2])], ["age", "age"])
    pq.write_table(twice, "t.parquet")
    assert "more than one column 'age'" in shell.refused("fit", "t.parquet", *FIT)


def test_a_column_that_the_schema_does_not_know(shell, table):
    schema = {"numeric": ["age"], "categories": {"job": ["clerk"]}, "drop": ["note"]}
    (shell.folder / "schema.json").write_text(json.dumps(schema))
    error = shell.refused("fit", "claims.csv", *FIT, "--schema", "schema.json")
    assert "'days'" in error
    assert "--drop days" in error


@pytest.mark.parametrize(
    ("content", "wrong"),
    [
        ({"targets": "late"}, "targets"),
        ({"target": 3}, "target"),
        ({"classes": "no"}, "classes"),
        ({"categories": ["job"]}, "categories"),
        ({"categories": {"job": "clerk"}}, "job"),
        ({"categories": {"job": [None]}}, "job"),
    ],
)
def test_a_wrong_schema(shell, table, content, wrong):
    (shell.folder / "schema.json").write_text(json.dumps(content))
    assert repr(wrong) in shell.refused("fit", "claims.csv", *FIT, "--schema", "schema.json")


def test_no_cell_of_a_refused_file_reaches_a_real_terminal(shell, table):
    """The whole process, so that nothing that a library prints is missed."""
    content, _ = FILES["ragged.csv"]
    (shell.folder / "ragged.csv").write_bytes(content)
    for name in ("claims.csv", "ragged.csv"):
        out = shell.process("fit", name, *FIT)
        assert out.returncode == 2
        assert len(out.stderr.splitlines()) == 1
