"""`privtail count`, `quantile`, `histogram`, and `mean --by`."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv as arrow_csv
import pyarrow.parquet as pq
import pytest

from privtail import verify
from privtail.trusted.ledger import Ledger

N = 4_000
NORTH = N // 4


@pytest.fixture
def claims(shell):
    chance = np.random.default_rng(0)
    place = np.where(np.arange(N) % 4 == 0, "north", "south").astype(object)
    place[1] = shell.cell
    table = pa.table({
        "cost": chance.normal(size=N) + np.where(place == "north", 5.0, 3.0),
        "days": chance.exponential(size=N),
        "late": (np.arange(N) % 2).tolist(),
        "place": place,
        "person": np.arange(N) // 2,
    })  # fmt: skip
    arrow_csv.write_csv(table, "claims.csv")
    pq.write_table(table, "claims.parquet")
    shell("budget", "budget.jsonl", "--epsilon", 3, "--delta", "1e-5")
    return "claims.csv"


RELEASES = {
    "count": ["--column", "cost"],
    "count-by": ["--by", "place=north,south", "--by", "late=0,1"],
    "quantile": ["--column", "cost", "--column", "days", "--level", 0.5, "--level", 0.9],
    "histogram": ["--column", "cost", "--bins", 8],
    "mean": ["--column", "cost", "--by", "place=north,south"],
    "covariance": ["--column", "cost", "--column", "days"],
    "correlation": ["--column", "cost", "--column", "days"],
}


@pytest.mark.parametrize("name", RELEASES)
def test_what_is_written_is_charged_verified_and_reported(shell, claims, name):
    verb = name.removesuffix("-by")
    words = [verb, claims, *RELEASES[name], "--epsilon", 2, "--ledger", "budget.jsonl"]
    printed = shell(*words, "--out", "found.json").stdout
    assert printed.count("-differentially private for one row") == 1
    written = json.loads(Path("found.json").read_text(encoding="utf-8"))
    assert written["format"] == f"privtail-{verb}"
    assert verify(written["statement"])
    assert Ledger("budget.jsonl").spent[0] <= 2
    assert "from the releases alone" in shell("verify", "found.json").stdout
    shell("report", "found.json", "--out", "found.html")
    page = Path("found.html").read_text(encoding="utf-8")
    assert written["statement"]["label"] in page
    shell.refused(*words, "--out", "found.json")
    assert len(Ledger("budget.jsonl").entries()) == 1


def test_counts_and_means_of_groups(shell, claims):
    said = shell("count", claims, "--by", "place=north,south", "--epsilon", 5, "--out", "n.json")
    assert "north = " in said.stdout
    written = json.loads(Path("n.json").read_text(encoding="utf-8"))
    assert written["by"] == ["place"]
    found = {one["group"][0]: one["value"] for one in written["counts"]}
    assert found == pytest.approx({"north": NORTH, "south": N - NORTH - 1}, abs=30)
    words = ["--column", "days", "--column", "cost", "--by", "place=north,south", "--epsilon", 5]
    assert "north: cost = " in shell("mean", claims, *words, "--out", "m.json").stdout
    written = json.loads(Path("m.json").read_text(encoding="utf-8"))
    means = {one["group"][0]: one["means"]["cost"]["mean"] for one in written["groups"]}
    assert means == pytest.approx({"north": 5, "south": 3}, abs=0.3)


def test_means_that_are_not_known_can_be_reported(shell, claims):
    """JSON has no NaN: with one in it, no command would read what the budget paid for."""
    words = ["--column", "days", "--by", "place=south,nowhere", "--epsilon", 0.2]
    said = shell("mean", claims, *words, "--noise", "simulated", "--seed", 0, "--out", "m.json")
    assert "nowhere: days = unknown in [unknown, unknown]" in said.stdout
    written = json.loads(Path("m.json").read_text(encoding="utf-8"))
    (unknown,) = (one["means"] for one in written["groups"] if one["group"] == ["nowhere"])
    assert unknown["days"] == {
        "mean": None, "noise_std": None, "interval": [None, None], "reliable": False,
    }  # fmt: skip
    shell("report", "m.json", "--out", "m.html")
    assert "nowhere, days" in Path("m.html").read_text(encoding="utf-8")


def test_counts_that_noise_hides_are_warned_of(shell, claims):
    words = ["--epsilon", 1, "--noise", "simulated", "--seed", 0, "--out", "n.json"]
    said = shell("count", claims, "--by", "place=North,South", *words)
    (warned,) = json.loads(Path("n.json").read_text(encoding="utf-8"))["warnings"]
    assert f"Warning. {warned}" in said.stderr
    assert "perhaps no row has a declared category" in warned
    shell("report", "n.json", "--out", "n.html")
    assert warned in Path("n.html").read_text(encoding="utf-8")


def test_quantiles_and_histograms(shell, claims):
    words = ["--column", "cost", "--level", 0.5, "--epsilon", 5, "--out", "q.json"]
    shell("quantile", claims, *words)
    found = json.loads(Path("q.json").read_text(encoding="utf-8"))["quantiles"]["cost"]
    assert [one["level"] for one in found] == [0.5]
    assert found[0]["low"] < 3.5 < found[0]["high"] + 0.2
    words = ["--column", "cost", "--edge", -1, "--edge", 3, "--epsilon", 5, "--out", "h.json"]
    shell("histogram", claims, *words)
    found = json.loads(Path("h.json").read_text(encoding="utf-8"))
    assert (found["column"], found["edges"]) == ("cost", [-1, 3])
    assert found["below"] + found["above"] + sum(found["counts"]) == pytest.approx(N, abs=50)


def test_persons_are_protected(shell, claims):
    for verb, words in (
        ("count", ["--by", "late=0,1"]),
        ("count", ["--column", "cost"]),
        ("quantile", ["--column", "cost"]),
        ("histogram", ["--column", "cost"]),
        ("mean", ["--column", "cost", "--by", "late=0,1"]),
    ):
        words += ["--epsilon", 2, "--groups", "person", "--max-rows", 2]
        assert "one person" in shell(verb, claims, *words).stdout


def test_rows_of_a_typed_file_are_counted_without_its_text(shell, claims):
    assert "rows = " in shell("count", "claims.parquet", "--epsilon", 1).stdout
    said = shell.refused("count", claims, "--epsilon", 1)
    assert "'place'" in said
    assert "--column cost" in said


@pytest.mark.parametrize(
    ("words", "match"),
    [
        (["count", "--column", "pay"], "no column 'pay'"),
        (["count", "--by", "pay=a,b"], "no column 'pay' (to group by)"),
        (["count", "--by", "place"], "--by place=a,b,c"),
        (["count", "--by", "place=north,north"], "declared twice"),
        (["count", "--by", "place=a", "--column", "cost"], "Leave --column out"),
        (["count", "--by", "a=1", "--by", "b=1", "--by", "c=1"], "Leave a --by out"),
        (["quantile", "--column", "pay"], "no column 'pay'"),
        (["quantile", "--column", "place"], "text"),
        (["quantile", "--column", "cost", "--level", 2], "example --level 0.25"),
        (["quantile", "--column", "cost", "--confidence", 2], "confidence"),
        (["histogram", "--column", "place"], "text"),
        (["histogram", "--column", "cost", "--column", "days"], "once for each"),
        (["histogram", "--column", "cost", "--bins", 0], "at least 1"),
        (["histogram", "--column", "cost", "--bins", 5, "--edge", 1], "--bins out"),
        (["histogram", "--column", "cost", "--edge", 1], "ascending numbers, for example --edge 0"),
        (["histogram", "--column", "cost", "--bins", 4_001], "than rows: --bins 4000"),
        (["mean", "--column", "late", "--by", "late=0,1"], "leave out its --column"),
        (["mean", "--column", "place", "--by", "late=0,1"], "text"),
        (["mean", "--column", "cost", "--by", "late=0,1", "--method", "ksu"], "--method out"),
        (["mean", "--column", "cost", "--by", "late=no,yes"], "'no'"),
    ],
)  # fmt: skip
def test_mistakes_are_named_and_cost_nothing(shell, claims, words, match):
    verb, *others = words
    for file in ("claims.csv", "claims.parquet"):
        if file == "claims.csv" and match == "'no'":
            continue  # a CSV has no types: no row matches
        said = shell.refused(verb, file, *others, "--epsilon", 1, "--ledger", "budget.jsonl")
        assert match in said
        for foreign in ("--categories", "--drop"):
            assert foreign not in said
    assert not Ledger("budget.jsonl").entries()


@pytest.mark.parametrize("name", ["count", "quantile", "histogram"])
def test_epsilon_zero_and_a_table_without_rows_are_refused(shell, claims, name):
    assert "epsilon" in shell.refused(name, claims, *RELEASES[name], "--epsilon", 0)
    arrow_csv.write_csv(arrow_csv.read_csv(claims).slice(0, 0), "none.csv")
    assert "no rows" in shell.refused(name, "none.csv", *RELEASES[name], "--epsilon", 1)


def test_every_column_of_numbers_is_named_where_text_must_be_left_out(shell, claims):
    """The first alone may be an id."""
    said = shell.refused("summarize", claims, "--epsilon", 1)
    assert "--column cost --column days --column late --column person" in said
