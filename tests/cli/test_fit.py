from __future__ import annotations

import json
import os
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyarrow import feather

import privtail
from privtail.data import adult_schema, write_adult_splits
from privtail.linear_model import DPLogisticRegression
from privtail.statement import Statement

LOGISTIC = (
    "--target", "late", "--classes", "no,yes", "--model", "logistic", "--epsilon", 5,
    "--categories", "job=clerk,nurse", "--drop", "note", "--drop", "cost",
    "--noise", "simulated", "--seed", 0,
)  # fmt: skip
LINEAR = (
    "--target", "cost", "--model", "linear", "--epsilon", 5, "--categories", "job=clerk,nurse",
    "--drop", "note", "--drop", "late", "--noise", "simulated", "--seed", 0,
)  # fmt: skip


def test_a_classifier_from_parquet(shell, table):
    result = shell("fit", "claims.parquet", *LOGISTIC)
    model = privtail.load("model.json")
    assert model.kind == "logistic"
    assert model.classes == ("no", "yes")
    assert model.features == ("age", "days", "job=clerk", "job=nurse")
    assert str(model.statement) in result.stdout
    right = model.predict(table.to_pandas()) == table["late"].to_numpy()
    assert right.mean() > 0.8


def test_the_same_model_from_every_format(shell, table):
    feather.write_feather(table, "claims.arrow")
    shell("fit", "claims.parquet", *LOGISTIC, "--out", "a.json")
    a = privtail.load("a.json")
    for words, said in (
        (("claims.csv",), "once, into"),
        (("claims.arrow",), "once, into"),
        (("claims.csv", "--scratch", "."), "once, into a file without a name in ."),
        (("claims.csv", "--scratch", "none"), "passes over the file"),
    ):
        found = shell("fit", *words, *LOGISTIC, "--out", "b.json", "--force")
        assert said in found.output
        b = privtail.load("b.json")
        assert (a.coef == b.coef).all()
        assert (a.intercept == b.intercept).all()


def test_a_rate_of_an_exposure(shell):
    rng = np.random.default_rng(0)
    age, years = rng.normal(size=2_000), rng.uniform(0.1, 1.0, 2_000)
    claims = rng.poisson(2 * years * np.exp(0.5 * age))
    pq.write_table(pa.table({"age": age, "years": years, "claims": claims}), "policies.parquet")
    words = "policies.parquet", "--target", "claims", "--exposure", "years", "--epsilon", 5
    shell("plan", *words, "--model", "poisson")
    shell("fit", *words, "--model", "poisson", "--noise", "simulated", "--out", "rate.json")
    model = privtail.load("rate.json")
    assert model.features == ("age",)
    assert model.exposure == "years"
    rates = shell("predict", "rate.json", "policies.parquet").stderr
    assert "These are rates" in rates
    assert "--exposure years" in rates
    asked = "predict", "rate.json", "policies.parquet", "--exposure", "years"
    assert "rates" not in shell(*asked, "--out", "counts.csv").stderr
    counts = np.loadtxt("counts.csv", skiprows=1)
    assert counts == pytest.approx(model.predict({"age": age}) * years)
    said = shell(
        "evaluate", "rate.json", "policies.parquet", "--epsilon", 5, "--noise", "simulated"
    ).stdout
    assert "D2" in said
    assert "deviance" in said
    for other in ("linear", "huber"):
        error = shell.refused("fit", *words, "--model", other, "--out", "x.json")
        assert "takes no exposure" in error


def test_standard_errors_for_an_unequal_spread(shell, table):
    words = "claims.parquet", "--target", "cost", "--model", "linear", "--epsilon", 2
    drop = [f"--drop={name}" for name in table.column_names if name not in ("cost", "days")]
    said = shell("plan", *words, *drop, "--heteroscedastic").stdout
    assert "spread of the residuals" in said
    assert "spread of the residuals" not in shell("plan", *words, *drop).stdout
    error = shell.refused("plan", *words, *drop, "--algorithm", "catoni", "--heteroscedastic")
    assert "Leave heteroscedastic out" in error
    error = shell.refused(
        "plan", "claims.parquet", "--target", "cost", "--model", "ridge", "--epsilon", 2, *drop,
        "--heteroscedastic",
    )  # fmt: skip
    assert "has no --heteroscedastic" in error


def test_every_verb_takes_a_folder_or_a_pattern(shell, table):
    Path("parts").mkdir()
    for i, start in enumerate(range(0, table.num_rows, 800)):
        pq.write_table(table.slice(start, 800), f"parts/{i}.parquet")
    Path("parts/_SUCCESS").touch()
    a = shell(
        "mean",
        "claims.parquet",
        "--column",
        "days",
        "--epsilon",
        1,
        "--seed",
        0,
        "--noise",
        "simulated",
    )
    shell("fit", "claims.parquet", *LOGISTIC, "--out", "a.json")
    shell("predict", "a.json", "claims.parquet", "--out", "a.csv")
    for data in ("parts", "parts/*.parquet"):
        plan = shell("plan", data, *LOGISTIC[:-4])
        assert f"{data}: 3,000 rows" in plan.output
        b = shell(
            "mean", data, "--column", "days", "--epsilon", 1, "--seed", 0, "--noise", "simulated"
        )
        assert a.stdout.splitlines()[0] == b.stdout.splitlines()[0]
        shell("fit", data, *LOGISTIC, "--out", "b.json", "--force")
        assert (privtail.load("a.json").coef == privtail.load("b.json").coef).all()
        shell("predict", "a.json", data, "--out", "b.csv", "--force")
        assert Path("a.csv").read_text() == Path("b.csv").read_text()
    said = shell.refused("predict", "a.json", "parts", "--out", "parts/p.csv")
    assert "reads all files in parts" in said
    said = shell.refused("predict", "a.json", "parts/*", "--out", "parts/1.parquet", "--force")
    assert "uses parts/1.parquet already" in said
    odd = table.slice(0, 9).set_column(1, "days", pa.array(["many"] * 9))
    pq.write_table(odd, "parts/odd.parquet")
    assert "'days' of parts/odd.parquet" in shell.refused("fit", "parts", *LOGISTIC)
    assert "--drop days" in shell.refused("mean", "parts", "--column", "days", "--epsilon", 1)
    shell("mean", "parts", "--column", "cost", "--epsilon", 1, "--seed", 0, "--noise", "simulated")


@pytest.mark.parametrize("frame", ["pandas", "polars", "arrow"])
def test_the_same_model_from_every_frame(shell, table, frame):
    pytest.importorskip(frame if frame != "arrow" else "pyarrow")
    shell("fit", "claims.parquet", *LOGISTIC)
    features = table.select(["age", "days", "job"])
    if frame == "pandas":
        features = features.to_pandas()
    elif frame == "polars":
        import polars as pl

        features = pl.from_arrow(features)
    direct = DPLogisticRegression(
        epsilon=5, classes=["no", "yes"], categories={"job": ["clerk", "nurse"]},
        noise="simulated", random_state=0,
    ).fit(features, table["late"].to_numpy())  # fmt: skip
    model = privtail.load("model.json")
    assert (model.coef == direct.coef_).all()
    predicted = model.predict({name: table[name] for name in ("age", "days", "job")})
    assert (predicted[:5] == model.predict(table.to_pandas())[:5]).all()


def test_the_type_of_the_target_chooses_the_model(shell, table):
    for target, other, kind in (("late", "cost", "logistic"), ("cost", "late", "linear")):
        shell("fit", "claims.parquet", "--target", target, "--epsilon", 5, "--categories",
              "job=clerk,nurse", "--drop", "note", "--drop", other, "--noise", "simulated",
              "--force")  # fmt: skip
        assert privtail.load("model.json").kind == kind


def test_persons_and_a_bought_count(shell, table):
    result = shell("fit", "claims.parquet", *LINEAR, "--drop", "days", "--groups", "age",
                   "--max-rows", 2, "--count-invalid", 0.1)  # fmt: skip
    assert "rows counted as zero" in result.stdout
    assert privtail.load("model.json").statement.unit.startswith("one person")


def test_a_parameter_reaches_the_model(shell, table):
    sizes = []
    for alpha in (0, 1e9):
        shell("fit", "claims.parquet", *LINEAR, "--model", "ridge", "--alpha", alpha, "--force")
        sizes.append(np.abs(privtail.load("model.json").coef).max())
    assert sizes[1] < 1e-2 * sizes[0]


def test_the_file_gives_what_the_estimator_gives(shell, table):
    shell("fit", "claims.parquet", *LOGISTIC)
    age = table["age"].to_numpy()
    columns = {"age": age, "days": table["days"].to_numpy(), "job": table["job"].to_numpy()}
    direct = DPLogisticRegression(
        epsilon=5, classes=["no", "yes"], categories={"job": ["clerk", "nurse"]},
        noise="simulated", random_state=0,
    ).fit(columns, table["late"].to_numpy())  # fmt: skip
    assert (privtail.load("model.json").coef == direct.coef_).all()


def test_a_regression(shell, table):
    shell("fit", "claims.csv", *LINEAR)
    model = privtail.load("model.json")
    assert model.kind == "linear"
    assert model.classes is None
    predicted = model.predict(table.to_pandas())
    assert np.isnan(predicted[5])
    error = (predicted - table["cost"].to_numpy())[np.isfinite(predicted)]
    assert np.median(np.abs(error)) < 0.5 * np.std(table["cost"].to_numpy())


def test_exact_noise_is_private_and_verified(shell, table):
    words = [w for w in LOGISTIC if w not in ("--noise", "simulated", "--seed", 0)]
    shell("fit", "claims.parquet", *words)
    assert privtail.load("model.json").statement.private
    shell("verify", "model.json")


def test_what_it_will_do_is_said_before_and_kept(shell, table):
    said = shell("fit", "claims.parquet", *LOGISTIC).stderr
    assert "3,000 rows, 3 columns, 4 features" in said
    assert "NOT PRIVATE: simulated noise" in said
    plan = privtail.load("model.json").statement.plan
    for r in plan:
        for event in r.events:
            assert event.question in said
    assert f"{plan[-2].times} x {plan[-2].events[0].coordinates} number" in said


def test_bought_labels(shell, table):
    words = [w for w in LOGISTIC if w not in ("--classes", "no,yes")]
    shell("fit", "claims.parquet", *words)
    assert privtail.load("model.json").classes == ("no", "yes")


def test_bought_labels_that_are_integers(shell, table):
    label = pa.array((table["late"].to_numpy() == "yes").astype(int))
    pq.write_table(table.set_column(5, "late", label), "numbers.parquet")
    words = [w for w in LOGISTIC if w not in ("--classes", "no,yes")]
    shell("fit", "numbers.parquet", *words)
    assert json.loads(Path("model.json").read_text())["classes"] == [0, 1]
    out = shell("predict", "model.json", "numbers.parquet").stdout.splitlines()
    assert out[0] == "prediction,probability of 0,probability of 1"
    assert out[1][:2] in ("0,", "1,")


def test_a_schema_file(shell, table):
    schema = {
        "target": "late", "classes": ["no", "yes"], "numeric": ["age", "days"],
        "categories": {"job": ["clerk", "nurse"]}, "drop": ["note", "cost"],
    }  # fmt: skip
    (shell.folder / "schema.json").write_text(json.dumps(schema))
    simulated = ("--noise", "simulated", "--seed", 0, "--epsilon", 5, "--model", "logistic")
    shell("fit", "claims.parquet", "--schema", "schema.json", *simulated, "--out", "a.json")
    shell("fit", "claims.parquet", *LOGISTIC, "--out", "b.json")
    assert (privtail.load("a.json").coef == privtail.load("b.json").coef).all()


def test_odd_cells_in_a_declared_number_count_as_missing(shell, table):
    text = table["age"].cast(pa.string()).to_pylist()
    text[5] = shell.cell
    odd = table.set_column(0, "age", pa.array(text))
    pq.write_table(odd, "odd.parquet")
    (shell.folder / "schema.json").write_text('{"numeric": ["age", "days"]}')
    shell("fit", "odd.parquet", *LOGISTIC, "--schema", "schema.json", "--out", "a.json")
    shell("fit", "claims.parquet", *LOGISTIC, "--out", "b.json")
    assert (privtail.load("a.json").coef == privtail.load("b.json").coef).all()


def test_adult(shell):
    train, test = write_adult_splits(shell.folder)
    (shell.folder / "adult.json").write_text(json.dumps({**adult_schema(), "drop": []}))
    shell("fit", train, "--schema", "adult.json", "--model", "logistic", "--epsilon", 2,
          "--noise", "simulated", "--seed", 1)  # fmt: skip
    shell("predict", "model.json", test, "--out", "predictions.csv")
    predicted = np.loadtxt("predictions.csv", dtype=str, delimiter=",", skiprows=1)[:, 0]
    assert (predicted == pq.read_table(test)["income"].to_numpy()).mean() > 0.83


# Budgets


@pytest.mark.usefixtures("simulated_is_booked")
def test_an_exhausted_ledger_refuses_the_second_fit(shell, table):
    shell("budget", "budget.jsonl", "--epsilon", 6, "--delta", "1e-5")
    exact = [w for w in LOGISTIC if w not in ("--noise", "simulated", "--seed", 0)]
    shell("fit", "claims.parquet", *exact, "--ledger", "budget.jsonl")
    error = shell.refused(
        "fit", "claims.parquet", *exact, "--ledger", "budget.jsonl", "--out", "b.json", code=3
    )
    assert error.startswith("Budget refused. ")
    assert "DPLogisticRegression" in shell("budget", "budget.jsonl").stdout


def test_a_missing_ledger_says_how_to_start_one(shell, table):
    error = shell.refused("fit", "claims.parquet", *LOGISTIC, "--ledger", "budget.jsonl")
    assert "privtail budget budget.jsonl --epsilon 1" in error


# Interruptions


@pytest.mark.parametrize("moment", ["fit", "write"])
def test_an_interrupted_run_leaves_nothing(shell, table, monkeypatch, moment):
    def stop(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    if moment == "fit":
        monkeypatch.setattr(DPLogisticRegression, "fit", stop)
    else:
        monkeypatch.setattr(os, "fsync", stop)
    assert "Interrupted." in shell.refused("fit", "claims.parquet", *LOGISTIC, code=130)


def test_a_model_that_cannot_be_written_is_not_lost(shell, table, monkeypatch):
    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    result = shell("fit", "claims.parquet", *LOGISTIC, code=2)
    assert "model.json cannot be written: No space left on device." in result.stderr
    saved = json.loads(result.stdout)
    assert Statement.from_json(saved["statement"]).label == "DPLogisticRegression"
    assert not list(shell.folder.glob("*model.json*"))


def test_an_unexpected_error_shows_neither_text_nor_traceback(shell, table, monkeypatch):
    def broken(*_: object, **__: object) -> None:
        raise RuntimeError(shell.cell)

    monkeypatch.setattr(DPLogisticRegression, "fit", broken)
    assert "unexpected RuntimeError" in shell.refused("fit", "claims.parquet", *LOGISTIC)


def test_a_fit_without_privacy_says_so(shell, table):
    said = shell("fit", "claims.parquet", *LINEAR, "--epsilon", "inf").stdout
    assert said.startswith("NOT PRIVATE")
    assert not privtail.load("model.json").statement.private
    assert "NOT VERIFIED" in shell("verify", "model.json", code=1).stdout


@pytest.mark.parametrize(
    ("name", "start"), [("a.PNG", b"\x89PNG"), ("a.pdf", b"%PDF"), ("a.svg", b"<?xml")]
)
def test_pictures_of_every_kind(shell, name, start):
    words = ("--rows", 1000, "--features", 2, "--model", "linear", "--epsilon", 1)
    shell("plan", *words, "--plot", name)
    assert (shell.folder / name).read_bytes().startswith(start)


def test_a_plan_takes_the_names_of_python_too(shell):
    words = ("--model", "linear", "--epsilon", 1)
    said = shell("plan", "--n", 1000, "--d", 2, *words).stdout
    assert said == shell("plan", "--rows", 1000, "--features", 2, *words).stdout


def test_sparse_models_keep_as_many_features_as_they_may(shell, table):
    for words, kind in ((LINEAR, "sparse"), (LOGISTIC, "sparse-logistic")):
        chosen = [kind if word in ("linear", "logistic") else word for word in words]
        shell("fit", "claims.parquet", *chosen, "--sparsity", 1, "--force")
        model = privtail.load("model.json")
        assert model.kind == kind
        assert np.count_nonzero(model.coef) <= 1
        shell("predict", "model.json", "claims.parquet", "--out", f"{kind}.csv")


def test_missing_numbers_may_count(shell, table):
    days = table["days"].to_numpy().astype(float)
    days[::3] = np.nan
    place = table.column_names.index("days")
    gaps = table.set_column(place, "days", pa.array(days, from_pandas=True))
    pq.write_table(gaps, "gaps.parquet")
    words = ("gaps.parquet", *LINEAR, "--missing", "indicator")
    shell("fit", *words)
    model = privtail.load("model.json")
    assert "days=missing" in model.features
    Path("facts.json").write_text('{"missing": "indicator"}')
    shell("fit", "gaps.parquet", *LINEAR, "--schema", "facts.json", "--out", "again.json")
    assert (privtail.load("again.json").coef == model.coef).all()
    shell("predict", "model.json", "gaps.parquet", "--out", "p.csv")
    assert "" not in Path("p.csv").read_text().splitlines()


def test_features_and_base_levels(shell, table):
    words = (
        "claims.parquet", *LINEAR, "--feature", "bins(age, 30, 60)", "--feature", "log(days, 1)",
        "--feature", "cross(job, bins(age, 30, 60))", "--base-level", "first",
    )  # fmt: skip
    said = shell("fit", *words).stdout
    model = privtail.load("model.json")
    names = ("30<=age<60", "age>=60", "log(days+1)", "job=nurse")
    assert model.features[:4] == names
    assert "job=clerk " in said
    assert "age<30 " in said
    declared = {"features": [words[i] for i in (-7, -5, -3)], "base_levels": {"job": "clerk"}}
    Path("facts.json").write_text(json.dumps(declared))
    shell("fit", "claims.parquet", *LINEAR, "--schema", "facts.json", "--out", "b.json")
    assert privtail.load("b.json").features[:3] == ("age<30", "30<=age<60", "age>=60")
    shell("fit", "claims.parquet", *LINEAR, "--base-level", "job=nurse", "--out", "c.json")
    assert privtail.load("c.json").features == ("age", "days", "job=clerk")
    shell("predict", "b.json", "claims.parquet", "--out", "p.csv")
    for wrong in (("--feature", "sin(age)"), ("--base-level", "job"), ("--feature", "log(agee)")):
        shell("fit", "claims.parquet", *LINEAR, *wrong, "--out", "d.json", code=2)


def test_a_ledger_with_shares(shell, table):
    shell(
        "budget", "own.jsonl", "--epsilon", 2, "--delta", 1e-4, "--data-set", "claims",
        "--analyst", "ann=1", "--analyst", "bob=0.5",
    )  # fmt: skip
    words = (
        "mean", "claims.parquet", "--column", "days", "--delta", 1e-6, "--ledger", "own.jsonl",
        "--data-set", "claims",
    )  # fmt: skip
    shell(*words, "--epsilon", 0.4, "--analyst", "bob", "--purpose", "a first look")
    said = shell("budget", "own.jsonl").stdout
    for word in ("of      claims", "bob", "a first look", "share   ann"):
        assert word in said
    assert "share of 'bob'" in shell.refused(*words, "--epsilon", 0.4, "--analyst", "bob", code=3)
    assert "--analyst ann" in shell.refused(*words, "--epsilon", 0.4)
    error = shell.refused(*words[:-1], "visits", "--epsilon", 0.4, "--analyst", "ann")
    assert "'visits'" in error
    assert "go with --ledger" in shell.refused(
        "mean", "claims.parquet", "--column", "days", "--epsilon", 1, "--analyst", "ann"
    )
    assert "ann=1.0" in shell.refused(
        "budget", "x.jsonl", "--epsilon", 1, "--delta", 0, "--analyst", "ann"
    )
