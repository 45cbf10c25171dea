"""One cell of a study: its records, its fit, and its rows.

A cell's rows are a function of the code and of the cell alone: its key gives all seeds.
"""

from __future__ import annotations

import math
import time
import warnings
from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Any

import numpy as np

import privtail
from experiments.study import Cell, DataSet, Grid, Outcome, Study, Task
from privtail.progress import watching

SECONDS = "seconds"
"""A metric that every study may ask for: the time of the fit."""

Row = dict[str, Any]


def run_cell(study: Study, cell: Cell, *, full: bool, grid: Grid | None = None) -> list[Row]:
    """The rows of one cell; its seconds are those of the processor in the fit alone."""
    setting = study.setting(cell, grid or study.grid(full=full))
    task = _drawn(study, cell, setting)
    cell = replace(cell, delta=study.delta(task.n), neighbours=study.neighbours)
    method = next(m for m in study.methods if m.name == cell.method)
    began = time.process_time()
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        try:
            with watching(lambda *_: None):  # rounds of its fits are no cells
                outcome = method.run(task, cell, setting, cell.noise_seed)
        except privtail.errors.PrivtailError as refused:
            failed = np.full((task.d + task.intercept, 1), np.nan)
            outcome = Outcome(w=failed, epsilon_true=math.nan, statement=f"refused: {refused}")
        seconds = time.process_time() - began
        return list(_rows(study, cell, task, outcome, seconds))


def _rows(study: Study, cell: Cell, task: Task, outcome: Outcome, seconds: float) -> Iterator[Row]:
    points: Iterable[tuple[float, Any]]
    if study.axis.name == "iteration":
        points = outcome.path or ((math.nan, outcome.w),)
    else:
        points = ((cell.epsilon if study.axis.name == "epsilon" else cell.x, outcome.w),)
    for x, w in points:
        for metric, value in {**task.measure(w), SECONDS: seconds}.items():
            if metric == SECONDS and all(m.name != SECONDS for m in study.metrics):
                continue
            yield {
                "study": study.name, "variant": cell.variant, "dataset": cell.dataset,
                "method": cell.method, "accounting": cell.accounting, "epsilon": cell.epsilon,
                "epsilon_true": outcome.epsilon_true, "delta": cell.delta, "n": task.n,
                "d": task.d, "axis": study.axis.name, "x": float(x),
                "repetition": cell.repetition, "metric": metric, "value": float(value),
                "seconds": seconds, "version": privtail.__version__,
                "statement": outcome.statement,
            }  # fmt: skip


_LAST: dict[tuple[Any, ...], Task] = {}


def _drawn(study: Study, cell: Cell, setting: dict[str, float]) -> Task:
    """The records of a cell; those of the last cell are kept, since many cells share them."""
    seed, data = cell.data_seed, _data(study, cell.dataset)
    key = (data, seed.entropy, tuple(setting.items()))
    if key not in _LAST:
        _LAST.clear()
        _LAST[key] = data.draw(np.random.default_rng(seed), setting)
    return _LAST[key]


def _data(study: Study, name: str) -> DataSet:
    return next(data for data in study.data if data.name == name)


def records_of(cell: Cell) -> tuple[str, str, float, int]:
    """What cells of the same records have in common."""
    return cell.variant, cell.dataset, cell.x, cell.repetition
