"""Results that are measured cell by cell, and the parts of pages that are made of them."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd


def measure_missing(
    results: Path, cells: Iterable[dict[str, Any]], fits: int,
    measure: Callable[..., dict[str, Any]],
) -> None:  # fmt: skip
    """Add the line of every cell that is not in the file with ``fits`` or more, as it is measured.

    Parameters
    ----------
    results : a CSV with the columns of a cell, ``fits`` and what was measured.
    cells : names and values of the columns that tell a cell.
    fits : of each line.
    measure : makes a line of the values of a cell, and ``fits``.
    """
    for cell in cells:
        found = pd.read_csv(results) if results.exists() else pd.DataFrame()
        same = np.zeros(len(found), dtype=bool)
        if len(found):
            same = (found[list(cell)] == list(cell.values())).all(axis=1)
            if (found["fits"][same] >= fits).any():
                continue
        line = measure(*cell.values(), fits)
        print(line, flush=True)
        kept = pd.concat([found[~same], pd.DataFrame([line])], ignore_index=True)
        kept.to_csv(results, index=False)


def filled(page: str, make: Callable[[str], Iterable[str]], names: str = "[a-z-]+") -> str:
    """The page with its parts between ``<!-- begin NAME -->`` and ``<!-- end NAME -->`` anew.

    Parameters
    ----------
    page : text.
    make : makes the lines of the part of a name.
    names : a pattern of the names of parts that are made; others stay.
    """

    def part(match: re.Match[str]) -> str:
        name = match["name"]
        body = "\n".join(make(name))
        return f"<!-- begin {name} -->\n{body}\n<!-- end {name} -->"

    pattern = rf"<!-- begin (?P<name>{names}) -->\n.*?<!-- end (?P=name) -->"
    return re.sub(pattern, part, page, flags=re.DOTALL)
