"""Fits every method to every problem, resumably: one small Parquet file per method.

A row is a problem, a budget and a repetition. What is there already is not computed again, and a
run that is stopped loses half a minute at most. How often a method is run on a problem depends on
its median seconds there: `RUNS`.
"""

from __future__ import annotations

import math
import multiprocessing
import os
import re
import time
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from benchmarks.comparison.methods import METHODS, Method
from benchmarks.comparison.peers import PeerFailed
from benchmarks.comparison.problems import Problem, problems
from privtail.errors import PrivtailError

RESULTS = Path(__file__).resolve().parents[1] / "results"
COLUMNS = (
    "problem", "epsilon", "repetition", "error", "mae", "against_mean", "coefficient", "seconds",
)  # fmt: skip
ALL = 9
RUNS = ((1.0, ALL), (5.0, 3), (math.inf, 1))
"""Repetitions of fits that take at most so many times the patience with a method."""
SAVED = 30.0
"""Seconds between two savings."""

Row = dict[str, Any]


@dataclass(frozen=True)
class Work:
    """Everything that is missing of one sample."""

    problem: str
    repetition: int
    cells: tuple[tuple[str, float], ...]
    until: float


def path_of(method: str, folder: Path = RESULTS) -> Path:
    """The file of a method."""
    return folder / (re.sub(r"[^a-z0-9]+", "-", method.lower()) + ".parquet")


def read(method: str, folder: Path = RESULTS) -> pd.DataFrame:
    """Rows of a method; none where it was not run."""
    path = path_of(method, folder)
    return pd.read_parquet(path) if path.exists() else pd.DataFrame(columns=list(COLUMNS))


def write(method: str, rows: pd.DataFrame, folder: Path = RESULTS) -> None:
    """Single precision is enough; sorted, so that equal results are equal files."""
    numbers = dict.fromkeys(COLUMNS[3:], "float32")
    rows = rows.astype(
        {"problem": "category", "repetition": "int8", "epsilon": "float32", **numbers}
    )
    rows = rows.sort_values(["problem", "epsilon", "repetition"], ignore_index=True)
    draft = path_of(method, folder).with_suffix(f".{os.getpid()}")
    folder.mkdir(parents=True, exist_ok=True)
    rows.to_parquet(draft, compression="zstd", index=False)
    draft.replace(path_of(method, folder))


def forget(method: str, asked: list[Problem], folder: Path) -> None:
    """Throw the rows of a method on these problems away."""
    rows = read(method, folder).astype({"problem": str})
    write(method, rows[~rows["problem"].isin([p.name for p in asked])], folder)


def wanted(
    method: Method, problem: Problem, rows: pd.DataFrame, most: int
) -> Iterator[tuple[int, float]]:
    """Repetitions and budgets of a method that are missing."""
    mine = rows[rows["problem"] == problem.name]
    there = set(zip(mine["repetition"], np.round(mine["epsilon"].astype(float), 3), strict=True))
    seconds = float(mine["seconds"].median()) if len(mine) else 0.0
    affordable = next(runs for limit, runs in RUNS if seconds <= limit * method.patience)
    for repetition in range(min(most, max(method.least, min(method.runs, affordable)))):
        for epsilon in method.epsilons(problem):
            if (repetition, round(epsilon, 3)) not in there:
                yield repetition, epsilon


def planned(
    methods: list[Method], asked: list[Problem], folder: Path, most: int, until: float
) -> list[Work]:
    """What is missing: first repetitions before second ones, small problems before large ones."""
    found: dict[tuple[int, str], list[tuple[str, float]]] = {}
    for method in methods:
        rows = read(method.name, folder)
        for problem in asked:
            if method.fits(problem):
                for repetition, epsilon in wanted(method, problem, rows, most):
                    found.setdefault((repetition, problem.name), []).append((method.name, epsilon))
    size = {p.name: p.n * p.d for p in asked}
    keys = sorted(found, key=lambda key: (key[0], size[key[1]]))
    return [Work(name, repetition, tuple(found[repetition, name]), until)
            for repetition, name in keys]  # fmt: skip


def run(
    methods: list[Method], asked: list[Problem], *, folder: Path = RESULTS,
    minutes: float = math.inf, processes: int = 2, runs: int = ALL,
    tell: Callable[[str], None] = print,
) -> int:  # fmt: skip
    """Compute what is missing until it is there or the time is up; return what is left."""
    until = time.time() + 60 * minutes
    for most in sorted({min(1, runs), min(3, runs), runs}):
        work = planned(methods, asked, folder, most, until)
        cells, done, saved = sum(len(w.cells) for w in work), 0, time.time()
        new: dict[str, list[Row]] = {}
        for rows in _mapped(work, processes):
            for method, row in rows:
                new.setdefault(method, []).append(row)
            done += len(rows)
            if time.time() - saved > SAVED:
                _save(new, folder)
                saved = time.time()
                tell(f"{done} of {cells} fits of repetitions up to {most}")
        _save(new, folder)
    left = sum(len(w.cells) for w in planned(methods, asked, folder, runs, until))
    tell(f"{left} fits are left")
    return left


def _save(new: dict[str, list[Row]], folder: Path) -> None:
    for method, rows in new.items():
        old, more = read(method, folder), pd.DataFrame(rows, columns=list(COLUMNS))
        write(method, pd.concat([old, more]) if len(old) else more, folder)
    new.clear()


def _mapped(work: list[Work], processes: int) -> Iterator[list[tuple[str, Row]]]:
    if processes == 1:
        yield from map(_fits, work)
        return
    with multiprocessing.get_context("spawn").Pool(processes) as pool:
        yield from pool.imap_unordered(_fits, work)
        pool.close()
        pool.join()  # so that the workers' peers and files go


def _fits(work: Work) -> list[tuple[str, Row]]:
    if time.time() > work.until:
        return []
    problem = next(p for p in problems() if p.name == work.problem)
    methods = {m.name: m for m in METHODS}
    sample, rows = problem.draw(work.repetition), []
    for name, epsilon in work.cells:
        if time.time() > work.until:
            break
        rows.append((name, fitted(methods[name], problem, sample, epsilon, work.repetition)))
    return rows


def fitted(method: Method, problem: Problem, sample: Any, epsilon: float, repetition: int) -> Row:
    """One row, with seconds of the processor; a method that refuses or fails has no error."""
    row: Row = dict.fromkeys(COLUMNS, math.nan)
    row |= {"problem": problem.name, "epsilon": epsilon, "repetition": repetition}
    begun = time.process_time()
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        try:
            found = method.fit(problem, sample, epsilon, repetition)
        except (PrivtailError, PeerFailed):
            return row | {"seconds": time.process_time() - begun}
        seconds = time.process_time() - begun if found.seconds is None else found.seconds
        return (
            row | dict(problem.scores(sample, found.predicted, found.slopes)) | {"seconds": seconds}
        )
