"""What Chromium is asked of every page of the documentation (`docs/browser.py`) is answered."""

from __future__ import annotations

import runpy
from pathlib import Path

import pytest

import privtail

BROWSER = runpy.run_path(str(Path(privtail.__file__).parents[2] / "docs/browser.py"))
WORD = "incomprehensibilities" * 4
PAGE = (
    "<!doctype html><html lang='en'><head><title>x</title>{head}</head><body>{body}</body></html>"
)


def write(site: Path, name: str, body: str = "<p>A page.</p>", head: str = "") -> None:
    (site / name).write_text(PAGE.format(head=head, body=body), encoding="utf-8")


def faults(site: Path) -> list[str]:
    if (program := BROWSER["chromium"]()) is None:
        pytest.skip("no Chromium is here")
    return BROWSER["faults"](site, program)


def test_a_good_page_has_no_fault(tmp_path):
    write(tmp_path, "a.html", f"<div style='overflow-x: auto'><pre>{WORD}</pre></div>")
    assert faults(tmp_path) == []


def test_errors_of_the_console_and_files_that_are_not_there_are_found(tmp_path):
    write(tmp_path, "a.html", "<script>console.error('planted'); nothing();</script>")
    write(tmp_path, "b.html", "<img src='no.png' alt='none'>")
    said = faults(tmp_path)
    assert said[:2] == ["a.html: planted", "a.html: ReferenceError: nothing is not defined"]
    assert len(said) == 3
    assert said[2].startswith("b.html: Failed to load resource: net::ERR_FILE_NOT_FOUND")


@pytest.mark.parametrize(("wide", "widths"), [(300, []), (900, [400]), (1500, [400, 1400])])
def test_a_page_wider_than_its_window_is_found(tmp_path, wide, widths):
    write(tmp_path, "a.html", f"<p class='planted' style='width: {wide}px; margin: 0'>Wide.</p>",
          "<style>body { margin: 0 }</style>")  # fmt: skip
    said = [f"a.html: at {one} pixels it is {wide} pixels wide: <p class=\"planted\">: Wide."
            for one in widths]  # fmt: skip
    assert faults(tmp_path) == said


def test_a_box_of_the_text_that_must_be_scrolled_is_found(tmp_path):
    write(tmp_path, "a.html", "<main style='overflow-x: auto'><h1>A</h1><p class='planted' "
          "style='width: 900px'>Wide.</p></main>")  # fmt: skip
    assert faults(tmp_path) == [
        'a.html: at 400 pixels it is 900 pixels wide: <p class="planted">: Wide.'
    ]


def test_a_search_that_finds_nothing_is_found(tmp_path, monkeypatch):
    monkeypatch.setitem(BROWSER["faults"].__globals__, "SEARCH", 1.0)
    write(tmp_path, "search.html", "<ul id='search-results'></ul>")
    assert faults(tmp_path) == ["search.html: finds nothing for the word epsilon"]


def test_without_chromium_ci_alone_fails(tmp_path, monkeypatch, capsys):
    monkeypatch.setitem(BROWSER["main"].__globals__, "chromium", lambda: None)
    monkeypatch.setenv("CI", "true")
    assert "No Chromium is here" in BROWSER["main"](tmp_path)
    monkeypatch.delenv("CI")
    assert BROWSER["main"](tmp_path) is None
    assert "No Chromium is here" in capsys.readouterr().err
