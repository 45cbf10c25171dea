"""``privtail evaluate``: numbers, files and refusals."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import pytest


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("evaluate")
    chance = np.random.default_rng(0)
    frame = pd.DataFrame(chance.normal(size=(4000, 2)), columns=["age", "income"])
    frame["cost"] = 3 + frame["age"] - frame["income"] + chance.normal(size=4000)
    frame["late"] = np.where(frame["age"] + chance.logistic(size=4000) > 0, "yes", "no")
    frame.to_csv(folder / "rows.csv", index=False)
    frame.to_parquet(folder / "rows.parquet")
    return folder


SIMULATED = ("--noise", "simulated", "--seed", 0)


def fitted(shell, folder, target, *more):
    model = folder / f"{target}.json"
    words = ("--target", target, "--epsilon", 2, "--out", model, *SIMULATED, *more)
    drop = "late" if target == "cost" else "cost"
    shell("fit", folder / "rows.parquet", *words, "--drop", drop, "--force")
    return model


def test_numbers_are_printed_and_written(shell, folder):
    model = fitted(shell, folder, "cost")
    out = folder / "cost-quality.json"
    said = shell(
        "evaluate", model, folder / "rows.csv", "--epsilon", 2, "--out", out, "--force", *SIMULATED
    )
    assert "RMSE" in said.stdout
    assert "R2" in said.stdout
    content = json.loads(out.read_bytes())
    assert content["format"] == "privtail-evaluation"
    assert content["numbers"]["mae"]["low"] < 0.8 < content["numbers"]["mae"]["high"]
    assert len(content["statements"]) == 2


def test_labels_are_drawn_and_verified(shell, folder):
    pytest.importorskip("matplotlib")
    model = fitted(shell, folder, "late", "--model", "logistic", "--classes", "no,yes")
    out, plot = folder / "late-quality.json", folder / "late.png"
    said = shell(
        "evaluate", model, folder / "rows.parquet", "--epsilon", 1, "--out", out, "--plot", plot,
        "--force",
    )  # fmt: skip
    assert "AUC" in said.stdout
    assert plot.read_bytes().startswith(b"\x89PNG")
    assert "recomputed" in shell("verify", out).stdout
    content = json.loads(out.read_bytes())
    content["statements"][0]["epsilon"] = 0.5
    out.write_text(json.dumps(content))
    shell("verify", out, code=1)


def test_what_cannot_be_done_is_refused_before_it_is_charged(shell, folder):
    cost = fitted(shell, folder, "cost")
    rows = folder / "rows.csv"
    ledger = folder / "ledger.json"
    shell("budget", ledger, "--epsilon", 1, "--delta", "1e-5")
    before = shell("budget", ledger).stdout
    charged = ("--epsilon", 0.5, "--ledger", ledger)
    said = shell.refused("evaluate", cost, rows, *charged, "--plot", folder / "cost.png")
    assert "two labels" in said
    said = shell.refused("evaluate", cost, rows, *charged, "--target", "price")
    assert "price" in said
    said = shell.refused("evaluate", cost, rows, *charged, "--target", "late")
    assert "late" in said
    said = shell.refused("evaluate", rows, rows, *charged)
    assert "rows.csv is not JSON. It must be a model" in said
    assert shell("budget", ledger).stdout == before


def test_a_kind_of_model_is_cross_validated(shell, folder):
    out, ledger, rows = folder / "folds.json", folder / "folds.jsonl", folder / "rows.parquet"
    shell("budget", ledger, "--epsilon", 3, "--delta", "1e-5")
    cost = ("--target", "cost", "--drop", "late", "--epsilon", 2, "--ledger", ledger)
    said = shell("cross-validate", rows, *cost, "--folds", 2, "--out", out)
    assert "R2" in said.stdout
    assert "2 fits and their evaluation" in said.stdout
    assert "recomputed" in shell("verify", out).stdout
    assert "cross_validate(DPLinearRegression)" in shell("budget", ledger).stdout
    numbers = json.loads(out.read_bytes())["numbers"]
    assert numbers["mae"]["low"] < 0.8 < numbers["mae"]["high"]
    assert "--max-rows" in shell.refused("cross-validate", rows, *cost, "--groups", "late")
    before = shell("budget", ledger).stdout
    late = ("--target", "late", "--drop", "cost", "--epsilon", 1, "--ledger", ledger)
    assert "--classes" in shell.refused("cross-validate", rows, *late)
    words = ("cross-validate", rows, *cost, "--out", "x.json")
    assert "--folds" in shell(*words, "--folds", 1, code=2).stderr
    said = shell.refused(*words, "--folds", 10**6)
    assert "there are no 1000000 folds. Give --folds" in said
    shell.refused("cross-validate", rows, *cost, "--folds", 2, code=3)
    assert shell("budget", ledger).stdout == before


def test_two_models_are_compared(shell, folder, tmp_path):
    """The worse one is fitted to permuted rows."""
    model, rows = fitted(shell, folder, "cost"), folder / "rows.parquet"
    frame = pd.read_parquet(rows)
    frame["cost"] = frame["cost"].sample(frac=1, random_state=0).to_numpy()
    frame.to_parquet(tmp_path / "permuted.parquet")
    worse, out, page = tmp_path / "worse.json", tmp_path / "compared.json", tmp_path / "page.html"
    shell(
        "fit", tmp_path / "permuted.parquet", "--target", "cost", "--epsilon", 2, "--drop", "late",
        "--out", worse, *SIMULATED,
    )  # fmt: skip
    ledger = tmp_path / "ledger.jsonl"
    shell("budget", ledger, "--epsilon", 2, "--delta", "1e-5")
    words = ("compare", worse, model, rows, "--epsilon", 1)
    said = shell(*words, "--ledger", ledger, "--out", out).stdout
    assert "The second model is better (one-sided p-value" in said
    assert "compare: numbers" in shell("budget", ledger).stdout
    content = json.loads(out.read_bytes())
    assert content["format"] == "privtail-comparison"
    assert content["first"] == str(worse)
    assert content["better"] == "second"
    assert content["difference"]["low"] > 0
    assert "recomputed" in shell("verify", out).stdout
    shell("report", out, "--out", page)
    text = page.read_text(encoding="utf-8")
    assert "cost.json does (one-sided p-value" in text
    assert "mean difference of absolute errors" in text
    same = shell("compare", model, model, rows, "--epsilon", 1, *SIMULATED).stdout
    assert "Neither model is shown to be better" in same


def test_models_that_cannot_be_compared_are_refused(shell, folder, tmp_path):
    cost, late = (
        fitted(shell, folder, "cost"),
        fitted(shell, folder, "late", "--model", "logistic", "--classes", "no,yes"),
    )
    rows = folder / "rows.parquet"
    refused = shell.refused("compare", cost, late, rows, "--epsilon", 1)
    assert "same classes" in refused
    assert "no column" in shell.refused(
        "compare", cost, cost, rows, "--epsilon", 1, "--target", "x"
    )
    out = tmp_path / "compared.json"
    words = ("compare", cost, cost, rows, "--epsilon", 1, "--confidence", 2, "--out", out)
    assert "confidence" in shell.refused(*words)
    assert not out.exists()


def test_models_of_other_categories_are_compared(shell, folder, tmp_path):
    """Each reads the categories that it knows."""
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"city": rng.choice(["Bonn", "Oslo", "Rome"], 4000)})
    frame["cost"] = rng.normal(frame["city"].map({"Bonn": 0, "Oslo": 2, "Rome": 9}))
    frame.to_csv(tmp_path / "rows.csv", index=False)
    for name, cities in (("all", "Rome,Oslo,Bonn"), ("some", "Bonn,Oslo")):
        shell(
            "fit", tmp_path / "rows.csv", "--target", "cost", "--epsilon", 5, *SIMULATED,
            "--categories", f"city={cities}", "--model", "linear", "--out",
            tmp_path / f"{name}.json",
        )  # fmt: skip
    said = shell(
        "compare", tmp_path / "all.json", tmp_path / "some.json", tmp_path / "rows.csv",
        "--epsilon", 5, *SIMULATED,
    ).stdout  # fmt: skip
    assert "better" in said
