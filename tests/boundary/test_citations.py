"""Docstrings cite sections of docs/mathematics.md that are there."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "mathematics.md"


@pytest.mark.skipif(not PAGE.is_file(), reason="needs the repository around the tests")
def test_cited_sections_exist_and_every_section_is_cited_or_explained() -> None:
    sections = set(re.findall(r"^\(([\w-]+)\)=$", PAGE.read_text(encoding="utf-8"), re.MULTILINE))
    cited = set()
    for folder in ("src", "tests", "benchmarks", "experiments"):
        for file in (ROOT / folder).rglob("*.py"):
            text = file.read_text(encoding="utf-8")
            cited |= set(re.findall(r"mathematics\.md#([\w-]+)", text))
    assert cited <= sections
    assert len(cited) >= 8
