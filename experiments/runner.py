"""Runs the cells of studies in parallel, survives a kill, and writes one tidy table per study.

    python -m experiments.runner wang2020 --quick

Every finished cell is one small file under ``build/experiments``; a run that was killed goes on
where it stopped. When all cells of a study are there they become ``reports/results/NAME.parquet``
and the small files go. Cells made by other code are never used again.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import math
import multiprocessing
import os
import shutil
import sys
import time
import warnings
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from functools import cache
from itertools import groupby
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

import privtail
from experiments.papers import chosen, studies
from experiments.study import Cell, DataSet, Grid, Outcome, Study, Task

ROOT = Path(__file__).resolve().parents[1]
RESULTS = ROOT / "reports" / "results"
BUILD = ROOT / "build" / "experiments"
THREADS = (
    "OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS",
    "PRIVTAIL_THREADS",
)  # fmt: skip

COLUMNS = (
    "study", "variant", "dataset", "method", "accounting", "epsilon", "epsilon_true", "delta", "n",
    "d", "axis", "x", "repetition", "metric", "value", "seconds", "version", "statement",
)  # fmt: skip
TEXTS = ("study", "variant", "dataset", "method", "accounting", "axis", "metric", "version",
         "statement")  # fmt: skip

SECONDS = "seconds"
"""A metric that every study may ask for: the time of the fit."""

Row = dict[str, Any]


def run_cell(study: Study, cell: Cell, *, full: bool, grid: Grid | None = None) -> list[Row]:
    """The rows of one cell; its seconds are those of the processor in the fit alone."""
    setting = study.setting(cell, grid or study.grid(full=full))
    task = _drawn(study.name, cell.dataset, cell.data_seed.entropy, tuple(setting.items()))
    cell = replace(cell, delta=study.delta(task.n), neighbours=study.neighbours)
    method = next(m for m in study.methods if m.name == cell.method)
    began = time.process_time()
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        try:
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


def _drawn(study: str, dataset: str, seed: Any, setting: tuple[tuple[str, float], ...]) -> Task:
    """The records of a cell; those of the last cell are kept, since many cells share them."""
    key = (study, dataset, seed, setting)
    if key not in _LAST:
        _LAST.clear()
        data = _data(study, dataset)
        _LAST[key] = data.draw(np.random.default_rng(np.random.SeedSequence(seed)), dict(setting))
    return _LAST[key]


def _data(study: str, dataset: str) -> DataSet:
    return next(d for d in _study(study).data if d.name == dataset)


_GIVEN: dict[str, Study] = {}


def _study(name: str) -> Study:
    return _GIVEN.get(name) or studies()[name]


def table(rows: Iterable[Row]) -> pd.DataFrame:
    """Rows as a frame with the columns of a result."""
    frame = pd.DataFrame(rows, columns=list(COLUMNS))
    return frame.astype(dict.fromkeys(TEXTS, "category"))


def run_study(
    study: Study,
    *,
    full: bool = False,
    processes: int = 2,
    build: Path = BUILD,
    results: Path = RESULTS,
    tell: Callable[[str], None] = lambda _: None,
    grid: Grid | None = None,
) -> Path:
    """Run what is not there yet, and write the table. ``grid`` replaces the study's own."""
    _GIVEN[study.name] = study = study if grid is None else replace(study, quick=grid, full=grid)
    cells = list(study.cells(full=full))
    folder = build / f"{study.name}-{_fingerprint(study, full=full)}"
    folder.mkdir(parents=True, exist_ok=True)
    missing = [cell for cell in cells if not (folder / f"{cell.key}.json").exists()]
    began, told = time.monotonic(), 0.0
    if len(missing) < len(cells):
        tell(f"{study.name}: {len(cells) - len(missing)} of {len(cells)} cells were there")
    batches = [(study.name, full, list(group), folder) for group in _grouped(missing)]
    done = 0
    for count in _mapped(batches, processes):
        done += count
        spent = time.monotonic() - began
        if spent - told > 5 or done == len(missing):
            told = spent
            left = spent / done * (len(missing) - done)
            tell(f"{study.name}: {done} of {len(missing)} cells, {left:.0f} s left")
    rows: list[Row] = []
    for cell in cells:
        rows += json.loads((folder / f"{cell.key}.json").read_text(encoding="utf-8"))
    path = results / f"{study.name}.parquet"
    write(table(rows), path, full=full)
    shutil.rmtree(folder)
    return path


def write(frame: pd.DataFrame, path: Path, *, full: bool) -> None:
    """Write a result atomically; numbers of single precision are enough for figures."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    small = frame.astype({"value": "float32", "seconds": "float32", "repetition": "int16"})
    made = pa.Table.from_pandas(small, preserve_index=False)
    made = made.replace_schema_metadata({"grid": "full" if full else "quick"})
    path.parent.mkdir(parents=True, exist_ok=True)
    draft = path.with_suffix(".draft")
    pq.write_table(made, draft, compression="zstd")
    draft.replace(path)


def _grouped(cells: list[Cell]) -> Iterator[list[Cell]]:
    """Cells of the same records together, at most twelve at a time."""
    for _, group in groupby(cells, key=lambda c: (c.variant, c.dataset, c.x, c.repetition)):
        together = list(group)
        for start in range(0, len(together), 12):
            yield together[start : start + 12]


def _mapped(batches: list[Any], processes: int) -> Iterator[int]:
    if processes == 1 or len(batches) < 2:
        yield from map(_batch, batches)
        return
    for name in THREADS:
        os.environ.setdefault(name, "1")
    context = multiprocessing.get_context("spawn")
    with context.Pool(processes, initializer=_receive, initargs=(_shipped(),)) as pool:
        yield from pool.imap_unordered(_batch, batches)


def _shipped() -> dict[str, tuple[Grid, Grid]]:
    """Grids of studies that are not run with their own; a study itself cannot be pickled."""
    return {n: (s.quick, s.full) for n, s in _GIVEN.items() if n in studies()}


def _receive(grids: dict[str, tuple[Grid, Grid]]) -> None:
    for name, (quick, full) in grids.items():
        _GIVEN[name] = replace(studies()[name], quick=quick, full=full)


def _batch(work: tuple[str, bool, list[Cell], Path]) -> int:
    name, full, cells, folder = work
    for cell in cells:
        rows = run_cell(_study(name), cell, full=full)
        path = folder / f"{cell.key}.json"
        draft = path.with_suffix(f".{os.getpid()}")
        draft.write_text(json.dumps(rows), encoding="utf-8")
        draft.replace(path)
    return len(cells)


def _fingerprint(study: Study, *, full: bool) -> str:
    """Of all code that a result depends on, and of the grid."""
    grid = study.grid(full=full)
    return hashlib.sha256(f"{_sources(study.paper)}{full}{grid}".encode()).hexdigest()[:12]


@cache
def _sources(paper: str) -> str:
    here = Path(__file__).parent
    files = [
        *sorted(Path(privtail.__file__).parent.rglob("*.py")),
        *sorted((here / "data").glob("*.py")),
        here / "study.py", here / "methods.py", *sorted(here.glob(f"{paper}*.py")),
    ]  # fmt: skip
    return hashlib.sha256(b"".join(f.read_bytes() for f in files if f.exists())).hexdigest()


def missing_data(study: Study) -> list[str]:
    """Names of the tables that a study reads and that are not there."""
    from privtail.data.catalogue import located

    needed = {name for data in study.data for name in data.needs}
    return sorted(name for name in needed if located(name) is None)


def estimate(study: Study, *, full: bool, results: Path = RESULTS) -> float | None:
    """Seconds on two cores, from the measured seconds of the results that are there; else None.

    Where they are of the other grid, a method's seconds are taken to grow as n d.
    """
    path = results / f"{study.name}.parquet"
    if not path.is_file():
        return None
    frame = pd.read_parquet(path)
    cell = ["variant", "dataset", "method", "accounting", "epsilon", "repetition", "n", "d"]
    fits = frame.drop_duplicates([*cell, "seconds"])
    rate = (fits["seconds"] / (fits["n"] * fits["d"])).groupby(fits["method"], observed=True).mean()
    n, d = float(fits["n"].mean()), float(fits["d"].mean())
    grid, total = study.grid(full=full), 0.0
    for one in study.cells(full=full):
        numbers = study.setting(one, grid)
        total += float(rate.get(one.method, 0.0)) * numbers.get("n", n) * numbers.get("d", d)
    return total / 2


def run_all(
    names: list[str], *, full: bool, processes: int = 2, results: Path = RESULTS,
    tell: Callable[[str], None] = lambda _: None,
) -> list[Path]:  # fmt: skip
    """Run studies, one after the other; skip those whose data are missing, and say so."""
    paths = []
    for study in chosen(names):
        missing = missing_data(study)
        if missing:
            tell(f"{study.name}: skipped, {', '.join(missing)} is missing (privtail data)")
            continue
        paths.append(run_study(study, full=full, processes=processes, results=results, tell=tell))
    return paths


def main() -> None:
    """Run the studies that were asked for."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("names", nargs="+", metavar="NAME", help="a paper, a study, or all")
    size = parser.add_mutually_exclusive_group()
    size.add_argument("--quick", action="store_true", help="small grids (the default)")
    size.add_argument("--full", action="store_true", help="the papers' grids")
    parser.add_argument("--out", type=Path, default=RESULTS)
    parser.add_argument("--processes", type=int, default=2)
    asked = parser.parse_args()
    run_all(
        asked.names, full=asked.full, processes=asked.processes, results=asked.out,
        tell=lambda text: print(text, file=sys.stderr, flush=True),
    )  # fmt: skip


if __name__ == "__main__":
    main()
