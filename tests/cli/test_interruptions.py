"""Interrupted or killed, a command leaves nothing half-written, and the ledger keeps the charge."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv as arrow_csv
import pytest

import privtail
from privtail.trusted.ledger import Ledger


@pytest.fixture
def started(shell):
    """A fit that takes long enough to be stopped; it has been charged when this returns."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=(200_000, 8))
    names = [f"x{j}" for j in range(8)]
    arrow_csv.write_csv(pa.table(dict(zip(names, x.T, strict=True))), "long.csv")
    shell("budget", "budget.jsonl", "--epsilon", 3, "--delta", "1e-5")
    process = subprocess.Popen(
        [sys.executable, "-m", "privtail.cli", "fit", "long.csv", "--target", "x0", "--model",
         "linear", "--epsilon", "1", "--ledger", "budget.jsonl", "--out", "model.json"],
        env={**os.environ, "PYTHONPATH": str(Path(privtail.__file__).parents[1])},
        stderr=subprocess.PIPE,
        text=True,
    )  # fmt: skip
    deadline = time.monotonic() + 60
    while not Ledger("budget.jsonl").entries():
        assert time.monotonic() < deadline
        assert process.poll() is None
        time.sleep(0.05)
    yield process
    process.kill()
    process.wait()


@pytest.mark.parametrize("stop", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_a_stopped_fit_leaves_no_model_and_keeps_its_charge(shell, started, stop):
    time.sleep(0.3)
    started.send_signal(stop)
    _, said = started.communicate(timeout=60)
    assert started.returncode == (-9 if stop == signal.SIGKILL else 130)
    assert "Traceback" not in said
    if stop != signal.SIGKILL:
        assert "budget.jsonl was charged ε = " in said
        assert said.splitlines()[-1].startswith("Interrupted. ")
    assert sorted(path.name for path in shell.folder.iterdir()) == ["budget.jsonl", "long.csv"]
    assert len(Ledger("budget.jsonl").entries()) == 1
