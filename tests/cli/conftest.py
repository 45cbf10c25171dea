"""A command line in an empty folder, watched: no cell and no traceback may leave it."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("typer")
pa = pytest.importorskip("pyarrow")

import pyarrow.csv as arrow_csv
import pyarrow.parquet as pq
from typer.testing import CliRunner

import privtail
from privtail.cli.application import application

CELL = "xq7secretcell"


class Shell:
    """Runs `privtail` and looks at everything it says."""

    cell = CELL  # a word that stands in private cells only

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def __call__(self, *words: object, code: int = 0):
        result = CliRunner().invoke(application, [str(word) for word in words])
        assert CELL not in result.output
        assert "Traceback" not in result.output
        assert result.exit_code == code, result.output
        return result

    def process(self, *words: object) -> subprocess.CompletedProcess[str]:
        """The same as a process of its own."""
        source = str(Path(privtail.__file__).parents[1])
        out = subprocess.run(
            [sys.executable, "-m", "privtail.cli", *(str(word) for word in words)],
            env={**os.environ, "PYTHONPATH": source},
            capture_output=True,
            text=True,
            check=False,
        )
        assert CELL not in out.stdout + out.stderr
        assert "Traceback" not in out.stderr
        return out

    def refused(self, *words: object, code: int = 2) -> str:
        """The one line of an error."""
        before = sorted(self.folder.rglob("*"))
        error = self(*words, code=code).stderr.strip().splitlines()[-1]
        assert sorted(self.folder.rglob("*")) == before
        return error


@pytest.fixture
def shell(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "500")
    return Shell(tmp_path)


def claims(rows: int = 3000) -> pa.Table:
    """Made-up insurance claims with one secret in every column that can hold text."""
    rng = np.random.default_rng(0)
    age, days = rng.integers(18, 90, rows), rng.pareto(2.5, rows)
    job = rng.choice(["clerk", "nurse"], rows).astype(object)
    late = np.where(age + 20 * (job == "nurse") + rng.normal(0, 5, rows) > 60, "yes", "no")
    job[7] = late[9] = CELL
    note = np.full(rows, "fine", dtype=object)
    note[3] = CELL
    return pa.table({
        "age": pa.array(age, pa.int64(), mask=np.arange(rows) == 5),
        "days": days,
        "job": job,
        "note": note,
        "cost": 3 * age + 10 * days,
        "late": late.astype(object),
    })  # fmt: skip


@pytest.fixture
def table(shell):
    """`claims.parquet` and `claims.csv` in the working folder; returns the Arrow table."""
    made = claims()
    pq.write_table(made, "claims.parquet")
    arrow_csv.write_csv(made, "claims.csv")
    return made
