"""Every benchmark starts: what it imports of the library and of others is there."""

from __future__ import annotations

import runpy
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SCRIPTS = sorted((ROOT / "benchmarks").glob("*.py"))


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda path: path.stem)
def test_a_benchmark_starts(script: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(ROOT))
    started = runpy.run_path(str(script), run_name="started")
    assert script.stem in ("protocol", "slopes", "interval_coverage") or callable(started["main"])
