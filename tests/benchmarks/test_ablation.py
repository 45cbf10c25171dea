"""Variants change what they name, and runs are compared cell by cell."""

from __future__ import annotations

import re
from dataclasses import fields

import numpy as np
import pandas as pd
import pytest

from benchmarks.ablation import page
from benchmarks.ablation.report import paired, summary
from benchmarks.ablation.runner import fitted
from benchmarks.ablation.variants import VARIANTS, changed
from benchmarks.drawn import Drawn
from privtail.default import Tuning


def _rows(error: float) -> pd.DataFrame:
    return pd.DataFrame(
        {
            "variant": "as is", "group": "drawn", "problem": "drawn 0", "words": "few rows",
            "task": "squares", "n": 100, "d": 2, "epsilon": 0.5, "seed": [0, 1], "slopes": np.nan,
            "error": [error / 2, error * 2], "log_loss": np.nan, "seconds": 1.0, "rounds": 112,
            "constant": False,
        }
    )  # fmt: skip


def test_a_ratio_is_of_geometric_means_over_seeds() -> None:
    found = summary(paired(_rows(0.5), _rows(0.6)))
    assert found.loc["drawn", "error"] == pytest.approx(1.2)
    assert found.loc["all", "> 10 % worse"] == 1
    assert "table" not in found.index


def test_the_page_says_what_the_results_say() -> None:
    text = page.PAGE.read_text(encoding="utf-8")
    assert page.filled(text, pd.read_parquet(page.RESULTS)) == text


def test_the_page_has_every_tuned_number_and_its_value() -> None:
    part = page.PAGE.read_text(encoding="utf-8").split("\n## Tuned numbers\n")[1].split("<!--")[0]
    said = [
        pair
        for names, values in re.findall(r"^\| (`[^|]+`) \| ([^|]+) \|", part, re.MULTILINE)
        for pair in zip(re.findall("`(.+?)`", names), map(float, values.split(", ")), strict=True)
    ]
    assert said == [(field.name, field.default) for field in fields(Tuning)]


@pytest.mark.parametrize("variant", [*VARIANTS, "steps 50 momentum 0.2"])
def test_a_variant_changes_what_is_there(variant: str) -> None:
    with changed(variant):
        pass


@pytest.mark.parametrize("variant", ["no such part", "steps", "magic 2"])
def test_what_is_no_variant_is_refused(variant: str) -> None:
    with pytest.raises(ValueError, match="names no number of Tuning"), changed(variant):
        pass


def test_a_change_of_a_number_ends_with_its_run() -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(600, 2))
    y = X[:, 0] + rng.normal(size=600)
    records = Drawn("squares", 400, X[:400], y[:400], X[400:], y[400:])
    before = fitted(records, 2.0, 0)
    with changed("steps 50"):
        assert fitted(records, 2.0, 0)["rounds"] == before["rounds"] + 25
    assert fitted(records, 2.0, 0)["error"] == before["error"]
