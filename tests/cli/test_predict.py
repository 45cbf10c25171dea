from __future__ import annotations

import csv
import json
import math
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyarrow import feather

import privtail
from privtail.errors import InvalidInput, MissingWarning
from privtail.model import Model
from privtail.written import written_whole

SIMULATED = ("--noise", "simulated", "--seed", 0, "--epsilon", 5)


@pytest.fixture
def model(shell, table):
    declared = ("--classes", "no,yes", "--categories", "job=clerk,nurse")
    dropped = ("--drop", "note", "--drop", "cost")
    words = ("fit", "claims.parquet", "--target", "late", "--model", "logistic")
    shell(*words, *declared, *dropped, *SIMULATED)
    return privtail.load("model.json")


def rows(text: str) -> list[list[str]]:
    return list(csv.reader(text.splitlines()))


def test_predictions(shell, model, table):
    out = rows(shell("predict", "model.json", "claims.csv").stdout)
    assert out[0] == ["prediction", "probability of no", "probability of yes"]
    assert len(out) == 1 + len(table)
    assert out[6] == ["", "", ""]
    assert out[1][0] == model.predict(table.to_pandas())[0]
    chances = np.array([[float(p) for p in row[1:]] for row in out[1:] if row[0]])
    assert np.allclose(chances.sum(axis=1), 1, atol=1e-5)


def test_columns_are_found_by_name(shell, model, table):
    frame = table.to_pandas()
    assert (model.predict(frame) == model.predict(frame[frame.columns[::-1]])).all()
    assert (model.decision_function(frame)[:5] == model.decision_function(frame[:5])).all()


def test_an_undeclared_category_is_all_zeros(model):
    with pytest.warns(MissingWarning, match="'job'"):
        score = model.decision_function({"age": [1.0], "days": [2.0], "job": ["cook"]})
    linear = model.intercept + model.coef[0, :2] @ [1, 2]
    assert score == pytest.approx(linear.clip(*model.margin_range))


def test_a_renamed_column_is_named(shell, model, table):
    pq.write_table(table.rename_columns(["Age", *table.column_names[1:]]), "new.parquet")
    error = shell.refused("predict", "model.json", "new.parquet")
    assert "no column 'age'" in error
    assert "Is 'Age' meant?" in error
    with pytest.raises(InvalidInput, match="no column 'age'"):
        model.predict(table.to_pandas().rename(columns={"age": "Age"}))


def test_what_is_missing_in_rows_to_predict_is_counted(shell, model, table):
    """Of the command's own rows, on standard error; the predictions are what they were."""
    assert (
        "1 of 3,000 rows has no prediction" in shell("predict", "model.json", "claims.csv").stderr
    )
    Path("t.csv").write_text('age,days,job\n"1,234.5",1,CLERK\n40,x,cook\n,2,nurses\n50,3,\n')
    found = shell("predict", "model.json", "t.csv", "--out", "p.csv")
    assert "3 of 4 rows have no prediction: a number is missing in 'age' (2), 'days' (1)." in (
        found.stderr
    )
    assert "--thousands ." in found.stderr
    assert "No row holds a category of 'job' that the model knows" in found.stderr
    assert "1 of 4" not in found.stderr
    with pytest.warns(MissingWarning) as caught:
        labels = model.predict("t.csv")
    assert [label is None for label in labels] == [True, True, True, False]
    assert len(caught) == 2
    Path("whole.csv").write_text("age,days,job\n40,1,clerk\n50,3,nobody\n")
    assert "Warning" not in shell("predict", "model.json", "whole.csv").stderr
    assert len(model.predict("whole.csv")) == 2


def test_out_is_not_overwritten_without_force(shell, model):
    shell("predict", "model.json", "claims.csv", "--out", "p.csv")
    assert "--force" in shell.refused("predict", "model.json", "claims.csv", "--out", "p.csv")
    shell("predict", "model.json", "claims.csv", "--out", "p.csv", "--force")


def test_a_dash_is_standard_output(shell, model):
    out = shell("predict", "model.json", "claims.csv", "--out", "-").stdout
    assert out == shell("predict", "model.json", "claims.csv").stdout
    assert not Path("-").exists()


@pytest.mark.parametrize("name", ["claims.csv", "claims.arrow", "claims.feather"])
def test_every_format_gives_the_same_predictions(shell, model, table, name):
    if name.endswith("arrow"):
        with pa.ipc.new_stream(name, table.schema) as sink:
            sink.write_table(table, max_chunksize=700)
    if name.endswith("feather"):
        feather.write_feather(table, name)
    expected = shell("predict", "model.json", "claims.parquet").stdout
    assert shell("predict", "model.json", name).stdout == expected


def test_a_file_that_breaks_in_the_middle_gives_no_file(shell, model, table):
    text = Path("claims.csv").read_text()
    Path("broken.csv").write_text(text * 40 + "1,2\n")
    error = shell.refused("predict", "model.json", "broken.csv", "--out", "p.csv")
    assert "broken.csv is not a regular CSV file" in error


def test_a_model_survives_its_file(model):
    again = Model.from_json(json.loads(model.to_text()))
    assert again.to_text() == model.to_text()
    assert again.statement == model.statement


def test_three_classes(shell):
    rng = np.random.default_rng(1)
    x = rng.integers(0, 3, 3000)
    made = pa.table({"x": x + rng.normal(0, 0.1, 3000), "y": np.array(["a", "b", "c"])[x]})
    pq.write_table(made, "t.parquet")
    shell("fit", "t.parquet", "--target", "y", "--classes", "a,b,c", "--model", "logistic",
          *SIMULATED)  # fmt: skip
    model = privtail.load("model.json")
    assert model.coef.shape == (3, 1)
    assert np.isfinite(model.predict_proba({"x": [0.0, 1.0]})).all()
    assert set(model.predict(made.to_pandas())) <= {"a", "b", "c"}


# Files that are no models


@pytest.mark.parametrize("content", ["", "[]", "{}", "\x00", '{"format": "privtail-statement"}'])
def test_a_file_that_is_not_ours(shell, table, content):
    (shell.folder / "m.json").write_text(content)
    assert "m.json" in shell.refused("predict", "m.json", "claims.csv")


def test_a_missing_model(shell, table):
    assert "There is no file m.json" in shell.refused("predict", "m.json", "claims.csv")


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("version", 7), ("noise_std", [[-1.0] * 4]), ("sampling_std", "x"),
        ("link", "log"), ("kind", "linear"), ("kind", "forest"), ("target", 3),
        ("target_range", [1, 0]), ("margin_range", [1, 0]),
        ("columns", []),
        ("columns", [3]), ("columns", [{"name": "age"}]), ("classes", ["no"] * 2),
        ("classes", None), ("coef", [[1.0]]), ("coef", [["a"] * 4]), ("coef", [[math.inf] * 4]),
        ("coef", "x"), ("intercept", None), ("statement", {}), ("statement", None),
    ],
)  # fmt: skip
def test_an_edited_model(model, field, value):
    content = {**json.loads(model.to_text()), field: value}
    Path("edited.json").write_text(json.dumps(content))
    with pytest.raises(InvalidInput, match=r"edited\.json is (no model of privtail|not JSON)"):
        privtail.load("edited.json")


# Verification


def test_verify(shell, table):
    words = ("fit", "claims.parquet", "--target", "cost", "--model", "linear", "--epsilon", 1,
             "--drop", "note", "--drop", "late", "--drop", "job")  # fmt: skip
    shell(*words)
    assert "from the releases alone" in shell("verify", "model.json").stdout
    content = json.loads(Path("model.json").read_text())
    content["statement"]["epsilon"] = 0.5
    Path("lie.json").write_text(json.dumps(content))
    assert "NOT VERIFIED" in shell("verify", "lie.json", code=1).stdout


def test_a_verified_file_is_read_once(shell, model, monkeypatch):
    """What was verified and what was loaded could be two files, if it changed meanwhile."""
    reads, read_bytes = [], Path.read_bytes
    monkeypatch.setattr(Path, "read_bytes", lambda path: reads.append(path) or read_bytes(path))
    shell("verify", "model.json", code=1)
    assert reads == [Path("model.json")]


def test_simulated_noise_is_not_verified(shell, model):
    assert "NOT VERIFIED" in shell("verify", "model.json", code=1).stdout


@pytest.mark.parametrize("value", [[[1.0]], "x", [[math.inf] * 4]])
def test_verify_reads_the_model_too(shell, model, value):
    content = {**json.loads(model.to_text()), "coef": value}
    Path("edited.json").write_text(json.dumps(content))
    assert "edited.json" in shell.refused("verify", "edited.json")


@pytest.mark.parametrize("verb", ["verify", "report", "predict"])
def test_a_folder_in_place_of_a_model_is_named(shell, table, verb):
    Path("models").mkdir()
    rest = {"report": ("--out", "r.html"), "predict": ("claims.csv",)}.get(verb, ())
    assert "models is a folder" in shell.refused(verb, "models", *rest)


@pytest.mark.parametrize("verb", ["verify", "report", "predict"])
def test_a_ledger_in_place_of_a_model_is_named(shell, table, verb):
    shell("budget", "budget.jsonl", "--epsilon", 1, "--delta", 1e-6)
    rest = {"report": ("--out", "r.html"), "predict": ("claims.csv",)}.get(verb, ())
    said = shell.refused(verb, "budget.jsonl", *rest)
    assert "budget.jsonl is a ledger, not a model" in said
    assert said.endswith("To see what was spent: privtail budget budget.jsonl")


def test_verify_needs_a_statement(shell, table):
    said = shell.refused("verify", "claims.csv")
    assert (
        "claims.csv is not JSON. It must be a model, an evaluation, a statement or another result"
        in said
    )


# Means and ledgers


def test_means(shell, table):
    words = ("mean", "claims.csv", "--column", "days", "--column", "age", "--epsilon", 2)
    result = shell(*words, "--noise", "simulated", "--seed", 0, "--out", "means.json")
    assert "days = " in result.stdout
    found = json.loads(Path("means.json").read_text())["means"]
    assert found["age"]["mean"] == pytest.approx(np.nanmean(table["age"].to_numpy()), abs=3)
    assert "NOT VERIFIED" in shell("verify", "means.json", code=1).stdout


def test_means_of_text_are_refused(shell, table):
    error = shell.refused("mean", "claims.csv", "--column", "note", "--epsilon", 1)
    assert "'note'" in error


def test_delta_above_one_over_rows_is_a_warning(shell, table):
    words = ("mean", "claims.csv", "--column", "days", "--epsilon", 1, "--delta", 0.01)
    assert "Warning." in shell(*words, "--noise", "simulated").stderr


def test_budget(shell):
    assert "ε = 3" in shell("budget", "b.jsonl", "--epsilon", 3, "--delta", "1e-5").stdout
    assert "spent" in shell("budget", "b.jsonl").stdout
    assert "privtail budget c.jsonl --epsilon" in shell.refused("budget", "c.jsonl")


# Whole or not at all


def test_a_file_appears_whole_or_not_at_all(tmp_path):
    path = tmp_path / "file"

    def interrupted(*, overwrite: bool) -> None:
        with written_whole(path, overwrite=overwrite) as file:
            file.write(b"half")
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted(overwrite=False)
    assert list(tmp_path.iterdir()) == []
    path.write_bytes(b"old")
    with pytest.raises(KeyboardInterrupt):
        interrupted(overwrite=True)
    assert path.read_bytes() == b"old"
    assert list(tmp_path.iterdir()) == [path]
