"""What is printed can be printed, and is in plain grammar, also of one row, column or entry."""

from __future__ import annotations

import io
import os
import re
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import privtail
from privtail import Ledger, private_mean, verify
from privtail.errors import AccuracyWarning
from privtail.gaps import Gaps
from privtail.linear_model import DPLogisticRegression, DPRidge
from privtail.spelling import counted, printable, some_of

ENCODINGS = ["ascii", "latin-1", "cp1252", "utf-8"]


@pytest.fixture(scope="module")
def shown():
    """One of everything that says what it is."""
    x = np.random.default_rng(0).normal(size=(200, 2))
    ledger = Ledger(epsilon=9.0, delta=1e-3)
    model = DPRidge(ledger=ledger, random_state=0).fit(x, x[:, 0])
    return (
        model.privacy_, model.plan_, ledger, *ledger.entries(), verify(model.privacy_),
        private_mean(x[:, 0], epsilon=1.0), privtail.private_count(x, epsilon=1.0),
        privtail.private_quantile(x[:, 0], epsilon=1.0), model.summary(),
        privtail.private_histogram(x[:, 0], 3, epsilon=1.0),
        privtail.private_covariance(x, epsilon=1.0), privtail.summarize(x, epsilon=1.0),
        privtail.evaluate(model, x, x[:, 0], epsilon=1.0),
        privtail.compare(model, model, x, x[:, 0], epsilon=1.0),
    )  # fmt: skip


def run(encoding, *words):
    source = str(Path(privtail.__file__).parents[1])
    done = subprocess.run(
        [sys.executable, *words],
        env={**os.environ, "PYTHONPATH": source, "PYTHONIOENCODING": f"{encoding}:strict"},
        capture_output=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.decode(encoding), done.stderr.decode(encoding)


@pytest.mark.parametrize("encoding", ENCODINGS)
def test_everything_can_be_printed(encoding, shown, monkeypatch):
    written = io.BytesIO()
    stream = io.TextIOWrapper(written, encoding, errors="strict", write_through=True)
    monkeypatch.setattr(sys, "stdout", stream)
    for one in shown:
        stream.write(f"{one}\n{one!r}\n")
    out = written.getvalue().decode(encoding)
    letter = "ε" if encoding == "utf-8" else "eps"
    assert f"({letter} = 1, " in out
    assert "?" not in out.replace("?  ", "")
    assert "\\u" not in out


@pytest.mark.parametrize("encoding", ENCODINGS[:2])
def test_the_command_line_can_be_printed(encoding, tmp_path):
    table = tmp_path / "rows.csv"
    table.write_text("größe,y\n" + "\n".join(f"{i % 7},{i % 5}" for i in range(300)), "utf-8")
    arguments = (table, "--target", "y", "--epsilon", "1", "--model", "linear")
    out, err = run(encoding, "-m", "privtail.cli", "plan", *map(str, arguments))
    assert "eps" in out + err
    assert "ε" not in out + err


def test_what_no_encoding_has_is_escaped():
    class Stream(io.StringIO):
        encoding = "latin-1"

    assert printable("σ² ± 1, größe", Stream()) == "sigma^2 +- 1, größe"
    assert printable("語", Stream()) == "\\u8a9e"


def test_one_and_many() -> None:
    assert [counted(n, "row") for n in (0, 1, 2, 1000)] == [
        "0 rows",
        "1 row",
        "2 rows",
        "1,000 rows",
    ]
    assert counted(2, "pass", "passes") == "2 passes"
    text = "{some} {are} not reliable."
    assert some_of(text, 1, 1, "mean") == "The mean is not reliable."
    assert some_of(text, 1, 3, "entry", "entries") == "1 of 3 entries is not reliable."
    assert some_of(text, 2, 3, "mean") == "2 of 3 means are not reliable."
    assert some_of("In {some} all is zero.", 1, 1, "column") == "In the column all is zero."


TINY: dict[str, Any] = {"epsilon": 0.01, "noise": "simulated", "random_state": 0}
FEW = np.arange(4.0)
ODD = re.compile(r"\b1 (rows|columns|features|numbers|passes|entries|means|quantiles|steps|bins)\b")


@pytest.mark.parametrize(
    ("ask", "said"),
    [
        (lambda: privtail.private_mean(FEW, **TINY), "The mean is not reliable"),
        (lambda: privtail.private_quantile(FEW, 0.5, **TINY), "The quantile is not reliable"),
        (lambda: privtail.private_covariance(FEW[:, None], **TINY), "The entry is not reliable"),
        (lambda: privtail.private_histogram(FEW, bins=2, **TINY), "are not reliable"),
        (lambda: privtail.summarize({"a": FEW}, **TINY), "of a are not reliable"),
    ],
)
def test_one_is_said_as_one(ask: Any, said: str) -> None:
    with pytest.warns(AccuracyWarning, match=said) as caught:
        found = ask()
    texts = [*(str(one.message) for one in caught), *found.privacy_.notes]
    assert not [text for text in texts if ODD.search(text)]
    assert "1 of 1" not in " ".join(texts)


def test_a_plan_of_one_feature_is_said_as_of_one() -> None:
    assert "d = 1 feature: nothing" in DPRidge().plan(n=5_000, d=1).to_text()
    tiny = DPLogisticRegression(epsilon=1e-3, classes=[0, 1]).plan(n=100, d=1).to_text()
    assert "1 pass over" in tiny
    assert not ODD.search(tiny)


def test_a_row_without_prediction_is_said_as_one() -> None:
    gaps = Gaps([("a", [0], False)])
    list(gaps.counting([np.array([[np.nan]])]))
    assert gaps.said()[0].startswith("1 of 1 row has no prediction")


def test_one_row_below_the_bins_is_said_as_one() -> None:
    found = privtail.private_histogram(FEW, edges=[0, 2, 4], **TINY)
    assert not ODD.search(replace(found, below=1.0, above=1.0)._repr_html_())
