"""What is printed can be printed: Greek letters have names where an encoding lacks them."""

from __future__ import annotations

import io
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import privtail
from privtail import Ledger, private_mean, verify
from privtail.linear_model import DPRidge
from privtail.spelling import printable

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
