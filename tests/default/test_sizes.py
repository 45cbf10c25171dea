"""The room of the default stays so small that it is read at one sitting."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

import privtail.default

ROOM, FILE, FUNCTION, CLASS = 2_500, 350, 50, 12
"""Lines of all files, of a file and of a function, and methods of a class."""

FILES = sorted(Path(privtail.default.__file__).parent.glob("**/*.py"))


def oversized(source: str) -> Iterator[str]:
    """Names of functions and classes that are too long; docstrings count."""
    if source.count("\n") > FILE:
        yield "the file"
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            if (node.end_lineno or 0) - node.lineno >= FUNCTION:
                yield node.name
        elif isinstance(node, ast.ClassDef):
            methods = [part for part in node.body if isinstance(part, ast.FunctionDef)]
            if len(methods) > CLASS:
                yield node.name


def test_the_room_is_short() -> None:
    assert len(FILES) > 10
    assert sum(path.read_text(encoding="utf-8").count("\n") for path in FILES) <= ROOM


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_files_functions_and_classes_are_short(path: Path) -> None:
    assert list(oversized(path.read_text(encoding="utf-8"))) == []


def test_what_is_too_long_is_caught() -> None:
    function = "def long():\n" + "    x = 1\n" * FUNCTION
    methods = "class Wide:\n" + "".join(f"    def m{i}(self): ...\n" for i in range(CLASS + 1))
    assert list(oversized(function + methods)) == ["long", "Wide"]
    assert list(oversized("def short():\n" + "    x = 1\n" * (FUNCTION - 1))) == []
    assert list(oversized("x = 1\n" * (FILE + 1))) == ["the file"]
