"""The script that shows the privacy errors of the papers prints what docs/errata.md says."""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path
from types import ModuleType

import pytest


@pytest.fixture(scope="module")
def script() -> ModuleType:
    path = Path(__file__).resolve().parents[2] / "docs" / "errata.py"
    if not path.is_file():
        pytest.skip("needs the repository around the tests")
    spec = importlib.util.spec_from_file_location("errata", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


SHOWN = {
    "W20-1": ["3.1e+06", "1.019"],
    "W20-2": ["324", "1.064", "at least 41"],
    "W20-3": ["5.30"],
    "W20-4": ["e+19", "0.9428"],
    "W19-1": ["0.5; true 0.0126", "7.0; true 6.2", "10.0; true 13.8"],
    "W19-Zhang": ["0.655", "1.59"],
    "X23-1": ["1.23 (zero-out), 2.65", "14.2 (zero-out), 24.7"],
    "X23-3": ["9.5 times"],
    "X23-4": ["0.554 (zero-out), 1.2", "4.8 (zero-out), 9.92"],
    "X23-5.4": ["1.0 at delta 1e-05; true 1.11", "3.0 at delta 1e-05; true 3.8"],
    "T22-1": ["1.0 at delta 1e-05; true 0.751", "0.001; true 11", "1e-05; true 10.4"],
    "T22-2": ["T = 10: claimed epsilon 1.0; true 2.69", "T = 40: claimed epsilon 1.0; true 5.98"],
    "W22": ["true 2.000; with 2 in the exponent 1.000", "1.0000 of"],
}


@pytest.mark.parametrize("key", SHOWN)
def test_an_erratum_shows_what_it_says(script: ModuleType, key: str) -> None:
    text = "\n".join(script.KEYS[key]())
    for number in SHOWN[key]:
        assert number in text


def test_every_erratum_is_listed(script: ModuleType) -> None:
    listed = Path(script.__file__ or "").with_suffix(".md").read_text()
    assert (
        set(re.findall(r"^\| `([^`]+)` \|", listed, re.MULTILINE)) == set(script.KEYS) == set(SHOWN)
    )
    with pytest.raises(SystemExit, match="no W99"):
        script.main(["W99"])
