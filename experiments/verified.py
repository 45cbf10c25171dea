"""Whether stored rows are those that the present code gives.

A row is a function of the code and of its cell. A line is a method in a study. Some cells of every
line are computed again (`picked`), and their numbers are compared with the stored ones. A line is
stale if a number differs by more than `TOLERANCE`, or if the line has other cells than its grid.
"""

from __future__ import annotations

import json
import math
import subprocess
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import pandas as pd

from experiments.cells import SECONDS, Row, run_cell
from experiments.study import Cell, Study

ROOT = Path(__file__).resolve().parents[1]
TOLERANCE = 1e-6
"""Relative: rows are stored in single precision, and other machines round otherwise."""
LEAST = 1e-12
"""A difference that is none: what is left where two numbers near 1 cancel."""
CELLS = 3
"""Of a line, computed again."""
DEAR = 1.0
"""Seconds of a fit: a line's dearer cells are computed again only if it has no others."""
RECORD = "verified.json"
"""Beside the results: when each study's rows were compared last, and with which code."""

T = TypeVar("T")
Parts = dict[Cell, pd.DataFrame]


def parts(study: Study, frame: pd.DataFrame, *, full: bool) -> Parts:
    """The stored rows of every cell of a study's grid that has some."""
    return _by_cell(study, frame, lambda groups: dict(iter(groups)), full=full)


def counts(study: Study, frame: pd.DataFrame, *, full: bool) -> dict[Cell, int]:
    """The number of stored rows of every cell of a study's grid that has some."""
    return _by_cell(study, frame, lambda groups: groups.size().to_dict(), full=full)


def _by_cell(
    study: Study, frame: pd.DataFrame, of: Callable[[Any], dict[Any, T]], *, full: bool
) -> dict[Cell, T]:
    columns = ["variant", "dataset", "method", "accounting", "epsilon", "repetition"]
    columns += ["x"] * bool(study.grid(full=full).points)
    there = of(frame.astype(dict.fromkeys(columns[:4], str)).groupby(columns))
    found = {cell: there.get(tuple(getattr(cell, c) for c in columns))
             for cell in study.cells(full=full)}  # fmt: skip
    return {cell: what for cell, what in found.items() if what is not None}


def whole(study: Study, frame: pd.DataFrame, there: Mapping[Cell, int], *, full: bool) -> list[str]:
    """The methods whose stored rows are of the cells of the grid, all of them and no others.

    ``there`` are the `counts` of the frame.
    """
    lost = {cell.method for cell in study.cells(full=full) if cell not in there}
    kept = frame["method"].astype(str).value_counts()
    found = pd.Series(0, index=[m.name for m in study.methods])
    for cell, rows in there.items():
        found[cell.method] += rows
    return [m.name for m in study.methods
            if m.name not in lost and kept[m.name] == found[m.name]]  # fmt: skip


def picked(there: Parts, method: str) -> list[Cell]:
    """The cells of a line that are computed again: at most `CELLS`, of the first repetition.

    The cheapest comes first. Then comes what differs from those before it in most of data set,
    accounting, budget, variation and point, and of these the cheapest, if it is not `DEAR`.
    """
    cost = {c: float(rows["seconds"].iloc[0]) for c, rows in there.items()
            if c.method == method and c.repetition == 0}  # fmt: skip
    chosen: list[Cell] = []
    seen: set[tuple[str, Any]] = set()
    while len(chosen) < CELLS:
        left = [c for c in cost if c not in chosen and (not chosen or cost[c] <= DEAR)]
        left = [c for c in left if not chosen or _levels(c) - seen]
        if not left:
            break
        best = min(left, key=lambda c: (-len(_levels(c) - seen) * bool(chosen), cost[c]))
        chosen.append(best)
        seen |= _levels(best)
    return chosen


def _levels(cell: Cell) -> set[tuple[str, Any]]:
    names = ("variant", "dataset", "accounting", "epsilon", "x")
    return {(name, getattr(cell, name)) for name in names[: 4 if math.isnan(cell.x) else 5]}


def differences(study: Study, frame: pd.DataFrame, *, full: bool) -> dict[str, str]:
    """By method: what is wrong with its stored rows; nothing where nothing is."""
    there = parts(study, frame, full=full)
    complete = whole(study, frame, {c: len(rows) for c, rows in there.items()}, full=full)
    asked = [m.name for m in study.methods]
    wrong = {name: "its cells are not those of the grid" for name in asked if name not in complete}
    cells = [cell for name in asked if name in complete for cell in picked(there, name)]
    for cell in sorted(cells, key=lambda c: (c.variant, c.dataset, str(c.x))):
        if cell.method not in wrong:
            said = difference(there[cell].to_dict("records"), run_cell(study, cell, full=full))
            if said:
                wrong[cell.method] = f"{_place(cell)}: {said}"
    return {name: wrong[name] for name in asked if name in wrong}


def _place(cell: Cell) -> str:
    said = [cell.variant, cell.dataset, cell.accounting, f"epsilon {cell.epsilon:g}"]
    said += [] if math.isnan(cell.x) else [f"x {cell.x:g}"]
    return ", ".join(part for part in said if part)


def difference(stored: Sequence[Row], rows: Sequence[Row]) -> str:
    """What differs between two lists of rows of one cell; empty if nothing does."""
    before, now = ([r for r in part if r["metric"] != SECONDS] for part in (stored, rows))
    if [r["metric"] for r in before] != [r["metric"] for r in now]:
        return f"{len(before)} numbers are stored, and there are {len(now)}"
    for name in ("value", "epsilon_true", "delta", "n", "d", "x"):
        old, new = (np.array([r[name] for r in part], np.float32) for part in (before, now))
        same = np.isclose(new, old, rtol=TOLERANCE, atol=LEAST, equal_nan=True)
        if not same.all():
            k = int(np.argmin(same))
            what = before[k]["metric"] if name == "value" else name
            return f"{what} is {old[k]:.7g} in the results, and now {new[k]:.7g}"
    return ""


def remember(names: Iterable[str], results: Path) -> None:
    """Write down that the rows of these studies are those of the present code."""
    known = remembered(results)
    now = {"date": datetime.now(UTC).date().isoformat(), "commit": _commit()}
    known |= dict.fromkeys(names, now)
    lines = json.dumps(dict(sorted(known.items())), indent=1)
    results.mkdir(parents=True, exist_ok=True)
    (results / RECORD).write_text(f"{lines}\n", encoding="utf-8")


def remembered(results: Path) -> dict[str, dict[str, str]]:
    """By study: date and commit of the last comparison, or of its run."""
    path = results / RECORD
    return json.loads(path.read_text(encoding="utf-8")) if path.is_file() else {}


def _commit() -> str:
    """The present commit; a plus says that files have changed since."""
    said = [
        subprocess.run(
            ["git", *words], cwd=ROOT, capture_output=True, text=True, check=False
        ).stdout
        for words in (
            ("rev-parse", "--short=7", "HEAD"),
            ("status", "--porcelain", "src", "experiments"),
        )
    ]
    return said[0].strip() + "+" * bool(said[1])
