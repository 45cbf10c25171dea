"""How the defaults do on targets that nobody chose: columns of real tables, from the others.

    python -m benchmarks.columns [TABLE ...] [--columns 12] [--epsilon 2] [--seeds 3] [--tasks TASK]
    python -m benchmarks.columns packages [--packages build/tables] ...

Tables are those of `../shared/data`, or those of ``benchmarks/packaged.py``, which says how to
install them.

Up to 40,000 rows of every table; two thirds to fit, the rest to test. A column at random is what
the others predict; copies of it (correlation above .98) are left out, and columns of fewer than six
values are no targets. Lines are those of ``benchmarks/real.py`` (logistic: whether the column is
above its median). At the end, over all fits of targets that scikit-learn predicts better than a
constant: the geometric mean of the error over the constant's, the share of fits more than 5 % above
the constant, the worst fit. One row of the table news, in the part that tests, has 701 where the
next has 1: it decides all errors there.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from benchmarks.packaged import INSTALLED, numbers, require_packages
from benchmarks.real import (
    BLOG,
    CROPS,
    FOREST,
    HEADER,
    LABELS,
    NEWS,
    NUMBERS,
    WIDE,
    Fits,
    Table,
    fits,
    loaded,
)
from privtail.data.catalogue import BESIDE, folder

Doubles = NDArray[np.float64]

FILES = {"blog": BLOG, "crops": CROPS, "forest": FOREST, "news": NEWS, "wide": WIDE}

PACKAGES = "packages"
"""All tables of packages."""

ROWS, VALUES, COPY = 40_000, 6, 0.98


def sources(names: list[str], data: Path, packages: Path) -> Iterator[tuple[str, pd.DataFrame]]:
    """Tables, by name."""
    for name in names:
        if name == PACKAGES:
            yield from numbers(packages)
        else:
            yield name, loaded(data, FILES[name])


def tables(name: str, table: pd.DataFrame, columns: int, tasks: list[str]) -> Iterator[Table]:
    """So many columns of a table as targets."""
    rng = np.random.default_rng(0)
    rows = table.to_numpy(np.float64)[rng.permutation(len(table))[:ROWS]]
    varying = [j for j in range(rows.shape[1]) if len(np.unique(rows[:, j])) >= VALUES]
    cut = 2 * len(rows) // 3
    for target in rng.permutation(varying)[:columns]:
        y = rows[:, target]
        X = np.delete(rows, target, axis=1)
        X = X[:, ~(np.abs(_correlations(X[:cut], y[:cut])) > COPY)]
        title = f"{name} {table.columns[target]}"
        for task in tasks:
            seen = (y > np.median(y[:cut])).astype(int) if task in LABELS else y
            if len(np.unique(seen[:cut])) > 1:
                yield Table(title, X[:cut], seen[:cut], X[cut:], seen[cut:], (task,))


def _correlations(X: Doubles, y: Doubles) -> Doubles:
    """(d,) with y; 0 of a constant."""
    X, y = X - X.mean(axis=0), y - y.mean()
    lengths = np.linalg.norm(X, axis=0) * np.linalg.norm(y)
    return np.asarray(np.divide(y @ X, lengths, out=np.zeros(X.shape[1]), where=lengths > 0))


def summary(every: list[Fits], task: str, epsilon: float) -> str:
    """One line for all fits of a task at a budget."""
    told = [each for each in every if (each.task, each.epsilon) == (task, epsilon)]
    told = [each for each in told if each.without_privacy < each.constant]
    if not told:
        return f"{task} at epsilon {epsilon:g}: nothing that a straight line predicts"
    errors = np.concatenate([each.ours / each.constant for each in told])
    return (
        f"{task} at epsilon {epsilon:g}: {len(errors)} fits, error over the constant's: "
        f"geometric mean {np.exp(np.mean(np.log(errors))):.4f}, "
        f"more than 1.05 in {np.mean(errors > 1.05):.1%}, worst {errors.max():.3f}"
    )


def main() -> None:
    """Print a line for every target, then the summary."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    names = ", ".join((*FILES, PACKAGES))
    parser.add_argument("tables", nargs="*", metavar="TABLE", help=names)
    parser.add_argument("--columns", type=int, default=12)
    parser.add_argument("--epsilon", type=float, nargs="+", default=[2.0])
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--tasks", nargs="+", choices=NUMBERS + LABELS, default=["linear"])
    parser.add_argument("--data", type=Path, default=folder() or Path(BESIDE))
    parser.add_argument("--packages", type=Path, default=INSTALLED)
    asked = parser.parse_args()
    if unknown := set(asked.tables) - {*FILES, PACKAGES}:
        parser.error(f"unknown table {min(unknown)!r}; there are {names}")
    if PACKAGES in asked.tables:
        require_packages(parser, asked.packages)
    print(HEADER)
    every = []
    for name, table in sources(asked.tables or [*FILES], asked.data, asked.packages):
        chosen = tables(name, table, asked.columns, asked.tasks)
        for each in fits(chosen, asked.epsilon, asked.seeds):
            every.append(each)
            print(each, flush=True)
    for task in asked.tasks:
        for epsilon in asked.epsilon:
            print(summary(every, task, epsilon))


if __name__ == "__main__":
    main()
