"""Every benchmark starts: what it imports of the library and of others is there."""

from __future__ import annotations

import os
import runpy
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SCRIPTS = sorted((ROOT / "benchmarks").glob("*.py"))


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda path: path.stem)
def test_a_benchmark_starts(script: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(ROOT))
    monkeypatch.syspath_prepend(str(script.parent))
    started = runpy.run_path(str(script), run_name="started")
    assert script.stem in ("protocol", "slopes", "interval_coverage") or callable(started["main"])


def test_no_benchmark_takes_the_name_of_a_module_that_a_library_imports() -> None:
    """`python benchmarks/fit.py` puts the folder first; Numba looks for a module "coverage"."""
    libraries = "import numba, pandas, pyarrow.dataset, scipy.stats, sklearn.linear_model"
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "benchmarks")}
    subprocess.run([sys.executable, "-W", "error", "-c", libraries], env=environment, check=True)
