"""`privtail covariance` and `privtail correlation`."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv as arrow_csv
import pytest

from privtail import verify
from privtail.trusted.ledger import Ledger


@pytest.fixture
def claims(shell):
    chance = np.random.default_rng(0)
    cost = chance.normal(size=4_000)
    days = cost + chance.normal(size=4_000)
    text = [shell.cell] * len(cost)
    arrow_csv.write_csv(pa.table({"cost": cost, "days": days, "note": text}), "claims.csv")
    shell("budget", "budget.jsonl", "--epsilon", 3, "--delta", "1e-5")
    return "claims.csv"


@pytest.mark.parametrize(("verb", "truth"), [("covariance", 1.0), ("correlation", 0.707)])
def test_a_matrix_is_released_charged_and_written(shell, claims, verb, truth):
    words = [verb, claims, "--epsilon", 2, "--ledger", "budget.jsonl", "--out", "matrix.json"]
    words += ["--column", "cost", "--column", "days"]
    assert "cost, days:" in shell(*words).stdout
    written = json.loads(Path("matrix.json").read_text(encoding="utf-8"))
    assert written["format"] == f"privtail-{verb}"
    assert written["columns"] == ["cost", "days"]
    assert written["low"][0][1] < truth < written["high"][0][1]
    assert verify(written["statement"])
    assert Ledger("budget.jsonl").spent[0] <= 2
    shell.refused(*words)
    assert len(Ledger("budget.jsonl").entries()) == 1
    assert "claim" in shell.refused(verb, claims, "--epsilon", 1, "--column", "claim")


def test_one_column_is_told_how_to_name_two(shell, claims):
    error = shell.refused("correlation", claims, "--epsilon", 1, "--column", "cost")
    assert "--column cost --column days" in error
