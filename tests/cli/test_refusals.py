"""Every refusal: exit code 2, one line that names file, column and mend, and never a cell."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import privtail
from privtail.cli import main

FIT = ("--model", "logistic", "--target", "late", "--epsilon", "1")
DECLARED = (*FIT, "--classes", "no,yes", "--categories", "job=clerk,nurse", "--drop", "note")
NUMBERS = ("--model", "linear", "--target", "cost", "--epsilon", "1", "--categories",
           "job=clerk,nurse", "--drop", "note", "--drop", "late")  # fmt: skip
ALL = ("--drop", "age", "--drop", "days", "--drop", "job", "--drop", "note", "--drop", "cost")


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("nothing.csv", *FIT), ["There is no file nothing.csv"]),
        ((".", *FIT), ["reads all files in .", "another folder"]),
        (("claims.csv", *FIT[:2], *FIT[4:]), ["--target COLUMN"]),
        (("claims.csv", *FIT, "--target", "Late"), ["no column 'Late'", "Is 'late' meant?"]),
        (("claims.csv", *FIT[2:], "--target", "Late"), ["no column 'Late'", "Is 'late' meant?"]),
        (("claims.csv", *FIT, "--target", "zzz"), ["no column 'zzz'", "age, days, job"]),
        (("claims.csv", *FIT), ["'job'", "hold text", "--categories job=", "--drop job"]),
        (("claims.parquet", *FIT), ["'job'", "hold text", "--categories job=", "--drop job"]),
        (("claims.csv", *DECLARED, "--drop", "nothing"), ["no column 'nothing'", "dropped"]),
        (("claims.csv", *DECLARED, "--drop", "age,days"), ["Repeat the option for each"]),
        (("claims.csv", *DECLARED, "--categories", "jop=a"), ["'jop'", "Is 'job' meant?"]),
        (("claims.csv", *DECLARED, "--categories", "job"), ["--categories job=a,b,c"]),
        (("claims.csv", *DECLARED, "--categories", "job:x,y"), ["--categories job=x,y"]),
        (("claims.csv", *DECLARED, "--categories", "job=a,,b"), ["values between commas"]),
        (("claims.csv", *DECLARED, "--categories", "job=a,a"), ["'job' is declared twice"]),
        (("claims.parquet", *DECLARED, "--categories", "days=1,b"), ["'days'", "'b'"]),
        (("claims.csv", *DECLARED, "--categories", "late=no,yes"), ["--classes a,b"]),
        (("claims.csv", *DECLARED, "--epsilon", "0"), ["must be positive", "--epsilon inf"]),
        (("claims.csv", *DECLARED, "--epsilon", "-1"), ["epsilon must be positive"]),
        (("claims.csv", *DECLARED, "--epsilon", "nan"), ["epsilon must be positive"]),
        (("claims.csv", *DECLARED, "--delta", "1"), ["delta must lie in [0, 1)", "--delta 1e-6"]),
        (("claims.csv", *DECLARED, "--epsilon", "two"), ["--epsilon"]),
        (("claims.csv", *DECLARED, "--model", "forest"), ["--model"]),
        (("claims.csv", *DECLARED, "--out", "no/model.json"), ["mkdir -p no"]),
        (("claims.csv", *DECLARED, "--out", "."), ["is a folder"]),
        (("claims.csv", *DECLARED, "--out", "claims.csv"), ["uses claims.csv already"]),
        (("claims.csv", *DECLARED, "--schema", "no.json"), ["The schema no.json"]),
        (("claims.csv", *DECLARED, "--schema", "claims.csv"), ["not a JSON object"]),
        (("claims.csv", *DECLARED, "--classes", "no"), ["two classes", "--classes no,yes"]),
        (("claims.csv", *DECLARED, "--model", "linear"), ["--model logistic"]),
        (("claims.csv", *NUMBERS[2:]), ["--model linear", "--model logistic"]),
        (("claims.csv", *DECLARED, "--alpha", "1"), ["logistic has no --alpha", "--C"]),
        (("claims.csv", *NUMBERS, "--model", "ridge", "--quantile", "0.5"), ["It has --alpha."]),
        (("claims.csv", *NUMBERS, "--model", "linear", "--C", "1"), ["It has --heteroscedastic."]),
        (("claims.csv", *NUMBERS, "--algorithm", "magic"), ["no algorithm 'magic'"]),
        (("claims.csv", *DECLARED, "--drop", "late"), ["'late' is the target"]),
        (
            ("claims.csv", *FIT, *ALL),
            ["claims.csv needs a column that is neither the target nor dropped"],
        ),
        (("claims.csv", *DECLARED, "--groups", "age"), ["--max-rows"]),
        (("claims.csv", *DECLARED, "--max-rows", "3"), ["--groups"]),
        (("claims.csv", *DECLARED, "--groups", "ages", "--max-rows", 3), ["Is 'age' meant?"]),
        (("claims.csv", *DECLARED, "--class-weight", "no:1"), ["--class-weight yes=2,no=1"]),
        (("claims.csv", *DECLARED, "--class-weight", "maybe=2"), ["'maybe'", "--classes"]),
        (("claims.csv", *DECLARED, "--plot", "no/fit.png"), ["mkdir -p no"]),
        (("claims.csv", "--model", "linear", "--target", "late", "--epsilon", 1, "--drop", "note",
          "--categories", "job=clerk"), ["'late'", "holds text", "--model logistic"]),
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
    "remark.csv": (b"# made today\nage,late\n1,xq7secretcell\n", "--comment '#'"),
    "remarks.csv": (b"age,late\n# made today\n1,xq7secretcell\n", "--comment '#'"),
    "piped.csv": (b"# made | today\nage,late\n1,xq7secretcell\n", "--comment '#'"),
    "latin.csv": (b"age,late\n1,xq7secretcell\xe9\n", "--encoding latin-1"),
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


@pytest.mark.parametrize(
    ("text", "wrong"),
    [
        ('{"target": "late", "target": "age"}', "'target' twice"),
        ('{"categories": {"job": ["a"], "job": ["b"]}}', "'job' twice"),
        ('{"categories": {"job": [NaN]}}', "not a JSON object"),
        ('{"categories": {"job": [1e400]}}', "not a JSON object"),
        ("[" * 100_000, "not a JSON object"),
    ],
)
def test_a_schema_that_readers_take_differently(shell, table, text, wrong):
    (shell.folder / "schema.json").write_text(text)
    assert wrong in shell.refused("fit", "claims.csv", *FIT, "--schema", "schema.json")


def test_what_a_schema_cannot_hold_goes_on_the_command_line(shell, table):
    for content, said in (
        ('{"groups": "person"}', "Other options"),
        ('{"feature": []}', "features"),
    ):
        (shell.folder / "schema.json").write_text(content)
        error = shell.refused("fit", "claims.csv", *FIT, "--schema", "schema.json")
        assert "base_levels" in error
        assert said in error
    (shell.folder / "schema.json").write_text('{"target": "late",\n}')
    error = shell.refused("fit", "claims.csv", *FIT, "--schema", "schema.json")
    assert "(line " in error


def test_what_a_ledger_has_cannot_be_changed_in_silence(shell):
    """Without --epsilon, four of these were not looked at, and the command succeeded."""
    shell("budget", "budget.jsonl", "--epsilon", 1, "--delta", "1e-6")
    for option, value in (
        ("--epsilon", 2), ("--delta", "1e-5"), ("--composition", "zcdp"), ("--data-set", "claims"),
        ("--neighbours", "zero_out"), ("--analyst", "ann=1"),
    ):  # fmt: skip
        assert "cannot be changed" in shell.refused("budget", "budget.jsonl", option, value)
        if option != "--epsilon":
            assert "--epsilon" in shell.refused("budget", "other.jsonl", option, value)
    shell("budget", "budget.jsonl", "--composition", "basic", "--neighbours", "replace_one")


def test_misspelt_names_of_papers(shell):
    assert "Is 'catoni-descent' meant?" in shell.refused(
        "theory", "catoni", "--n", "9", "--d", "2", "--epsilon", "1"
    )
    assert "Is 'catoni-descent' meant?" in shell.refused(
        "plan",
        "--rows",
        "90",
        "--features",
        "2",
        "--model",
        "linear",
        "--algorithm",
        "catoni-descend",
        "--epsilon",
        "1",
    )
    assert "Is 'wang2020-figure-1a' meant?" in shell.refused("reproduce", "wang2020-fig-1a")


def test_no_cell_of_a_refused_file_reaches_a_real_terminal(shell, table):
    """The whole process, so that nothing that a library prints is missed."""
    content, _ = FILES["ragged.csv"]
    (shell.folder / "ragged.csv").write_bytes(content)
    for name in ("claims.csv", "ragged.csv"):
        out = shell.process("fit", name, *FIT)
        assert out.returncode == 2
        assert len(out.stderr.splitlines()) == 1


NAMES = "epsilon|delta|neighbours|composition|classes|categories|numeric|drop|algorithm"
PYTHON = re.compile(rf"(?<!-)\b({NAMES})=|float\(|Ledger\(|Budget\(|\w\(\w*=")


def test_advice_is_for_the_command_line(shell, table):
    """Nobody at a prompt is told to type Python."""
    shell("budget", "b.jsonl", "--epsilon", 1, "--delta", "1e-6")
    shell("mean", "claims.csv", "--column", "days", "--epsilon", 0.9, "--ledger", "b.jsonl")
    (shell.folder / "comma.csv").write_text("a;b\n1,5;2\n")
    (shell.folder / "empty.jsonl").touch()
    shell("budget", "g.jsonl", "--epsilon", 9, "--delta", "1e-5", "--composition", "gdp")
    mean, judged = ("mean", "claims.csv", "--epsilon"), ("cross-validate", "claims.csv", *NUMBERS)
    said = [
        shell.refused("fit", "claims.csv", *FIT),
        shell.refused("fit", "claims.csv", *NUMBERS, "--epsilon", 0),
        shell.refused("fit", "claims.csv", *NUMBERS, "--delta", 1),
        shell.refused("fit", "claims.csv", *NUMBERS, "--target", "late"),
        shell.refused("fit", "claims.csv", *NUMBERS, "--algorithm", "magic"),
        shell.refused("fit", "claims.csv", *NUMBERS, "--algorithm", "kamath-spgd", "--delta", 0),
        shell.refused("fit", "claims.csv", *DECLARED, "--classes", "no"),
        shell.refused("fit", "comma.csv", "--target", "b", "--model", "linear", "--epsilon", 1),
        shell.refused(*mean, 1, "--column", "job"),
        shell.refused(*mean, 1, "--column", "days", "--ledger", "c.jsonl"),
        shell.refused("fit", "claims.csv", *NUMBERS, "--algorithm", "sample-and-aggregate",
                      "--epsilon", 0.1),
        shell.refused("fit", "claims.csv", *NUMBERS, "--feature", "bins(age)"),
        shell.refused("fit", "claims.csv", *FIT, "--delta", 0, "--categories",
                      "job=clerk,nurse", "--drop", "note"),
        shell.refused("fit", "claims.parquet", "--target", "age", "--classes", "a,b", "--epsilon",
                      1, "--drop", "job", "--drop", "note", "--drop", "late"),
        shell.refused("budget", "empty.jsonl"),
        shell.refused(*judged, "--algorithm", "kamath-spgd"),
        shell.refused(*judged, "--delta", 0.5),
        shell.refused(*judged, "--ledger", "g.jsonl"),
        shell.refused("budget", "b.jsonl", "--epsilon", 2),
        shell.refused("budget", "d.jsonl", "--epsilon", 1, "--composition", "gdp"),
        shell.refused(*mean, 1, "--column", "days", "--ledger", "b.jsonl", "--neighbours",
                      "zero_out"),
    ]  # fmt: skip
    for line in said:
        advice = re.split(r"(?<=[.;]) ", line)[2:]
        assert not any(PYTHON.search(part) for part in advice), line
    assert "--decimal , --thousands ." in said[7]
    assert "--categories" not in said[8]
    assert "holds text" in said[8]


def test_an_exhausted_budget_says_what_would_fit(shell, table):
    shell("budget", "b.jsonl", "--epsilon", 1, "--delta", "1e-5")
    words = ("mean", "claims.csv", "--column", "days", "--ledger", "b.jsonl", "--epsilon")
    shell(*words, 0.7)
    error = shell.refused(*words, 0.7, code=3)
    assert error.startswith("Budget refused. ")
    fits = re.search(r"--epsilon (\S+) --delta (\S+)$", error)
    assert fits
    assert 0.29 < float(fits[1]) <= 0.31
    assert f"has epsilon={fits[1]}, delta={fits[2]} left" in error
    assert all(len(number) <= 8 for number in re.findall(r"=([\d.]+)", error))
    assert f"left    ε = {fits[1]}, δ = {fits[2]}" in shell("budget", "b.jsonl").stdout
    shell(*words, fits[1], "--delta", "1e-6")


def test_a_budget_without_delta_is_asked_about(shell):
    error = shell.refused("budget", "b.jsonl", "--epsilon", 3)
    assert error.endswith("privtail budget b.jsonl --epsilon 3 --delta 1e-6")
    assert "left" in shell("budget", "b.jsonl", "--epsilon", 3, "--delta", 0).stdout


def test_advice_on_an_exhausted_delta_promises_no_fit(shell, table):
    shell("budget", "b.jsonl", "--epsilon", 1, "--delta", 0)
    words = ("mean", "claims.csv", "--column", "days", "--ledger", "b.jsonl", "--epsilon", 1)
    error = shell.refused(*words, code=3)
    assert "Nothing that needs a delta can be released" in error
    assert "What would fit" not in error


def test_a_model_does_not_go_to_a_file_called_minus(shell, table):
    error = shell.refused("fit", "claims.csv", *NUMBERS, "--out", "-")
    assert "--out model.json" in error


@pytest.mark.parametrize("kept", ["claims.csv", "b.jsonl", "m.json"])
def test_what_a_command_uses_is_not_replaced_even_with_force(shell, table, kept):
    shell("budget", "b.jsonl", "--epsilon", 1, "--delta", "1e-5")
    words = (*NUMBERS, "--ledger", "b.jsonl", "--force", "--out", kept, "--plot", "m.json")
    assert f"uses {kept} already" in shell.refused("fit", "claims.csv", *words)
    shell.refused("mean", "claims.csv", "--column", "days", "--epsilon", 1, "--ledger", "b.jsonl",
                  "--force", "--out", "claims.csv")  # fmt: skip


def test_a_picture_of_an_unknown_kind_is_refused_before_the_fit(shell, table):
    shell("budget", "b.jsonl", "--epsilon", 1, "--delta", "1e-5")
    words = (*NUMBERS, "--ledger", "b.jsonl", "--plot")
    for name in ("fit.foo", "fit", "fit.json"):
        assert ".png, .pdf, .svg" in shell.refused("fit", "claims.csv", *words, name)
        shell.refused("plan", "claims.csv", *words, name)
    assert "spent   ε = 0," in shell("budget", "b.jsonl").stdout


def test_a_column_that_is_needed_is_not_to_be_dropped(shell):
    """A target, and what a mean is taken of: advice is what the command can do."""
    when = pa.array([1, 2], pa.timestamp("us"))
    pq.write_table(pa.table({"when": when, "x": [1.0, 2.0]}), "t.parquet")
    said = [
        shell.refused("mean", "t.parquet", "--epsilon", 1, "--column", "when"),
        shell.refused("fit", "t.parquet", "--model", "linear", "--epsilon", 1, "--target", "when"),
    ]
    assert all(line.endswith(
        "'when' of t.parquet holds values of type timestamp[us]. Turn it into numbers, for example "
        "the days since a date that you choose."
    ) for line in said)  # fmt: skip


EMPTY = {
    "t.csv": lambda path: path.write_text("age,job,cost\n"),
    "t.parquet": lambda path: pq.write_table(ROWLESS, path),
    "t.arrow": lambda path: pa.ipc.new_file(path, ROWLESS.schema).close(),
}
ROWLESS = pa.table({"age": pa.array([], pa.int64()), "job": pa.array([], pa.string()),
                    "cost": pa.array([], pa.float64())})  # fmt: skip


@pytest.mark.parametrize("name", EMPTY)
def test_a_table_without_rows(shell, table, name):
    EMPTY[name](shell.folder / name)
    said = f"Error. {name} has no rows; it needs at least one."
    fit = ("--target", "cost", "--model", "linear", "--epsilon", 1, "--categories", "job=clerk")
    assert shell.refused("fit", name, *fit) == said
    assert shell.refused("plan", name, *fit) == said
    assert shell.refused("mean", name, "--column", "cost", "--epsilon", 1) == said
    shell("fit", "claims.csv", *fit, "--drop", "note", "--drop", "late", "--drop", "days")
    assert shell.refused("predict", "model.json", name) == said


def test_advice_can_be_pasted_whatever_the_names(shell, table):
    """Names with spaces and quotes, in every command that an error tells to type."""
    (shell.folder / "the schema.json").write_text(json.dumps({"numeric": []}))
    (shell.folder / "a b.csv").write_text("it's,y\n1,2\n")
    said = [
        shell.refused("fit", "claims.csv", *FIT, "--out", "a folder/m.json"),
        shell.refused("mean", "claims.csv", "--column", "age", "--epsilon", 1, "--ledger", "a b"),
        shell.refused("budget", "a b.jsonl", "--epsilon", 1),
        shell.refused("budget", "a b.jsonl", "--delta", 1e-6),
        shell.refused("budget", "a folder/b.jsonl", "--epsilon", 1, "--delta", 0),
        shell.refused("fit", "a b.csv", "--target", "y", "--model", "linear", "--epsilon", 1,
                      "--schema", "the schema.json"),
    ]  # fmt: skip
    assert "mkdir -p 'a folder'" in said[0]
    assert "privtail budget 'a b' --epsilon" in said[1]
    assert "privtail budget 'a b.jsonl' --epsilon" in said[2]
    assert "privtail budget 'a b.jsonl' --epsilon" in said[3]
    assert re.search(r"mkdir -p '.*a folder'", said[4])
    assert """--drop 'it'"'"'s'""" in said[5]


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("fit",), "privtail fit needs DATA."),
        (("mean", "claims.csv", "--epsilon", "1"), "privtail mean needs --column."),
        (("fit", "--clases", "no,yes"), "privtail fit has no option --clases. Is --classes meant?"),
        (("mean", "--eps", "1"), "privtail mean has no option --eps. Is --epsilon meant?"),
        (("plan", "--rows", "0"), "--rows"),
        (("mean", "--categories", "a=b"), "has no option --categories. Is --by meant?"),
        (("correlation", "--drop", "a"), "has no option --drop. Is --column meant?"),
        (("quantile", "--quantile", ".5"), "has no option --quantile. Is --level meant?"),
        (("cross-validate", "--k", "5"), "has no option --k. Is --folds meant?"),
        (("cross-validate", "--folds", "1"), "--folds must be 2 or more."),
        (("quantile", "--at", ".5"), "has no option --at. To see"),
        (("count", "--where", "a=b"), "has no option --where. To see"),
        (("mean", "-x"), "privtail mean has no option -x."),
        (("--foo",), "privtail has no option --foo."),
        (("fitt",), "There is no command 'fitt'. Is 'fit' meant?"),
        (("ledger", "budget.jsonl"), "There is no command 'ledger'. Is 'budget' meant?"),
        (("describe", "claims.csv"), "There is no command 'describe'. Is 'summarize' meant?"),
        (("median", "claims.csv"), "There is no command 'median'. Is 'quantile' meant?"),
        (("show", "model.json"), "There is no command 'show'. Is 'report' meant?"),
        (("verify", "a.json", "b.json"), "no place for 'b.json'. Run the command once for each"),
        (("mean", "--epsilon"), "The option --epsilon needs a value after it."),
        (("fit", "--force=3"), "The option --force takes no value."),
        (("fit", "--epsilon", "one"), "--epsilon must be a number such as 0.5."),
        (
            ("quantile", "--level", ".5,.9"),
            "--level must be a number such as 0.5. Repeat the option for each",
        ),
        (("fit", "--max-rows", "1.5"), "--max-rows must be a whole number."),
        (("export", "--to", "onnx"), "--to must be one of sql, python; got 'onnx'."),
        (("fit", "--model", "lgistic"), "got 'lgistic'. Is logistic meant?"),
        (
            ("mean", "a.csv", "b.csv", "--column", "x", "--epsilon", "1"),
            "no place for 'b.csv'. Put",
        ),
    ],
)
def test_arguments_are_refused_in_whole_sentences(shell, words, says):
    """In one line, without the words of Typer, and with the command that lists what there is."""
    result = shell(*words, code=2)
    said = result.stderr.strip()
    assert says in said
    assert re.fullmatch(r"Error\. .*[.?] To see what there is: privtail( [a-z-]+)? --help", said)
    assert not result.stdout


def test_every_page_has_the_same_exit_codes(shell):
    root = Path(privtail.__file__).parents[2]
    page = (root / "docs/guide/commands.md").read_text(encoding="utf-8")
    table = page.split("| exit code |")[1]
    codes = re.findall(r"^\| (\d+) \|", table, flags=re.MULTILINE)
    shown = shell("--help").stdout.split("Exit codes:")[1].split("Options:")[0]
    assert re.findall(r"\d+", shown) == codes
    assert re.findall(r"\d+", main.__doc__.split("Exit codes:")[1]) == codes
