"""How long a study takes, from the measured seconds of its results."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from scipy.optimize import nnls

from experiments.runner import RESULTS, one_a_fit, recorded
from experiments.study import ITERATION, STATED, Cell, Grid, Study

SIZES = ("n", "rows", "records")
WORK = ("d", "steps", "most_steps", "points")
"""Numbers of a cell that its fit is taken to be linear in, besides the largest of `SIZES`."""


def estimate(study: Study, *, full: bool, results: Path = RESULTS) -> float | None:
    """Seconds on two cores, from the measured seconds of the quick results; None without them.

    A fit of a method takes a constant and so much for each unit of its work (`WORK`), both by least
    squares from the measured fits. To draw records and to measure takes as large a part as it did.
    """
    path = results / f"{study.name}.parquet"
    if not path.is_file():
        return None
    said = recorded(path)
    measured = study.quick
    frame = pd.read_parquet(path)
    fits = one_a_fit(frame)
    grown = not (measured.points == () or study.axis.name == ITERATION)
    xs = fits["x"].astype(float) if grown else pd.Series(math.nan, fits.index)
    work = [_work(study, measured, v, x) for v, x in zip(fits["variant"], xs, strict=True)]
    fits = fits.assign(work=work)
    laws = {
        str(name): _law(part["work"].to_numpy(float), part["seconds"].to_numpy(float))
        for name, part in fits.groupby("method", observed=True)
    }
    grid, total = study.grid(full=full), 0.0
    for one in study.cells(full=full):
        constant, rate = laws.get(one.method, (0.0, 0.0))
        total += constant + rate * _work(study, grid, one.variant, one.x)
    fitting = float(fits["seconds"].sum())
    return max(1.0, float(said.get("seconds", 0.0)) / max(fitting, 1e-9)) * total / 2


def _work(study: Study, grid: Grid, variant: str, x: float) -> float:
    cell = Cell(
        study=study.name, variant=variant, dataset="", method="", accounting=STATED, epsilon=1.0,
        x=x, repetition=0,
    )  # fmt: skip
    numbers = study.setting(cell, grid)
    records = max((numbers[name] for name in SIZES if name in numbers), default=1.0)
    return records * math.prod(numbers.get(name, 1.0) for name in WORK)


def _law(work: Any, seconds: Any) -> tuple[float, float]:
    """Constant and rate of a method; where all its work is the same, all of it is rate."""
    if np.ptp(work) == 0:
        return 0.0, float(seconds.mean() / work[0])
    constant, rate = nnls(np.column_stack([np.ones_like(work), work]), seconds)[0]
    return float(constant), float(rate)
