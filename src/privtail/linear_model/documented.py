"""Docstrings of estimators: a parameter that several of them share is described once."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator

Entries = dict[str, str]
"""Names as written before the colon -> the whole entry."""

INHERITED = ("Parameters", "Attributes", "Raises")
"""Sections of which a class says what is its own."""

_TITLE = re.compile(r"^(\w[\w ]*)\n-{3,}\n", flags=re.MULTILINE)
_ENTRY = re.compile(r"^(?=\S)", flags=re.MULTILINE)


def documented(cls: type) -> str | None:
    """The docstring of a class, with what its parents say of parameters, attributes and errors.

    The entries of the class come first. One of a parent is left out where the class has an entry
    of that name.
    """
    if cls.__doc__ is None:
        return None
    summary, sections = _read(inspect.cleandoc(cls.__doc__))
    for parent in cls.__mro__[1:]:
        for title, text in _read(inspect.getdoc(parent) or "")[1].items():
            if title in INHERITED:
                sections[title] = _joined(sections.get(title, ""), text)
    first = [title for title in INHERITED if title in sections]
    order = [*first, *(title for title in sections if title not in first)]
    parts = [f"{title}\n{'-' * len(title)}\n{sections[title].rstrip()}" for title in order]
    return "\n\n".join([summary.rstrip(), *parts]) + "\n"


def _read(text: str) -> tuple[str, dict[str, str]]:
    """What stands above the first section, and the sections by title."""
    summary, *parts = _TITLE.split(text)
    return summary, dict(zip(parts[::2], parts[1::2], strict=True))


def _joined(own: str, inherited: str) -> str:
    """Both, without what the second says of names that the first describes."""
    known = {name for names, _ in _entries(own) for name in names}
    more = [entry for names, entry in _entries(inherited) if not known.intersection(names)]
    return "\n".join([own.rstrip(), *more]).lstrip("\n")


def _entries(text: str) -> Iterator[tuple[list[str], str]]:
    for entry in _ENTRY.split(text):
        if entry.strip():
            yield re.split(r",\s*", entry.split(" : ", 1)[0].strip()), entry.rstrip()
