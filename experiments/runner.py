"""Runs the cells of studies in parallel, survives a kill, and writes one tidy table per study.

    python -m experiments.runner wang2020 --quick

Every finished cell is one small file under ``build/experiments``; a run that was killed goes on
where it stopped. When all cells of a study are there they become ``reports/results/NAME.parquet``
and the small files go. Rows of a method whose code and grid are the present ones stay in the table
and are not run again (`experiments.reach` says which code that is); the others are stale.
``--fresh`` runs everything again, ``--stale`` names what is stale and fails if anything is.
"""

from __future__ import annotations

import argparse
import json
import math
import multiprocessing
import os
import shutil
import sys
import time
import warnings
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import replace
from itertools import groupby
from multiprocessing.pool import Pool
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from scipy.optimize import nnls

import privtail
from experiments import reach
from experiments.papers import chosen, studies
from experiments.study import ITERATION, STATED, Cell, DataSet, Grid, Outcome, Study, Task

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
    fresh: bool = False,
    pool: Pool | None = None,
) -> Path:
    """Run what is not there yet, and write the table. ``grid`` replaces the study's own.

    With ``fresh`` nothing that is there is used; ``pool`` are `workers` that are there already.
    """
    _GIVEN[study.name] = study = study if grid is None else replace(study, quick=grid, full=grid)
    now = marks(study, full=full)
    path, folder = results / f"{study.name}.parquet", build / study.name
    old = pd.DataFrame() if fresh else _kept(path, now)
    here = set() if old.empty else set(old["method"].astype(str))
    cells = [cell for cell in study.cells(full=full) if cell.method not in here]
    if not cells:
        tell(f"{study.name}: finished before; --fresh runs it again")
        return path
    if fresh:
        shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True, exist_ok=True)
    files = {cell: folder / f"{cell.key}-{now[cell.method]}.json" for cell in cells}
    missing = [cell for cell in cells if not files[cell].exists()]
    began, told = time.monotonic(), 0.0
    if here:
        tell(f"{study.name}: {', '.join(sorted(here))} as before")
    if len(missing) < len(cells):
        tell(f"{study.name}: {len(cells) - len(missing)} of {len(cells)} cells were there")
    batches = [
        (study.name, full, [(cell, files[cell]) for cell in group]) for group in _grouped(missing)
    ]
    done = 0
    with nullcontext(pool) if pool or not batches else workers(processes) as there:
        for count in there.imap_unordered(_batch, batches) if there else map(_batch, batches):
            done += count
            spent = time.monotonic() - began
            if spent - told > 5 or done == len(missing):
                told = spent
                left = spent / done * (len(missing) - done)
                tell(f"{study.name}: {done} of {len(missing)} cells, {left:.0f} s left")
    rows: list[Row] = []
    seconds = _spent(path, old)
    for cell in cells:
        part = json.loads(files[cell].read_text(encoding="utf-8"))
        rows += part["rows"]
        seconds += part["seconds"]
    write(pd.concat([old, table(rows)]), path, full=full, marks=now, seconds=seconds)
    shutil.rmtree(folder)
    return path


def _kept(path: Path, now: dict[str, str]) -> pd.DataFrame:
    """The rows of a table whose methods have the present marks."""
    before = json.loads(recorded(path).get("marks", "{}"))
    same = [name for name, mark in now.items() if before.get(name) == mark]
    frame = pd.read_parquet(path) if same else pd.DataFrame({"method": []})
    return frame[frame["method"].isin(same)]


def _spent(path: Path, kept: pd.DataFrame) -> float:
    """What the kept rows took, of all seconds that their table took."""
    if kept.empty:
        return 0.0
    fits, all_fits = (_fits(frame)["seconds"].sum() for frame in (kept, pd.read_parquet(path)))
    return float(recorded(path)["seconds"]) * float(fits / max(all_fits, 1e-9))


def _fits(frame: pd.DataFrame) -> pd.DataFrame:
    cell = ["variant", "dataset", "method", "accounting", "epsilon", "repetition"]
    return frame.drop_duplicates([*cell, "seconds"])


def recorded(path: Path) -> dict[str, str]:
    """What a table says of itself: its grid, the marks of its methods' code, all its seconds."""
    import pyarrow.parquet as pq

    if not path.is_file():
        return {}
    said = pq.read_schema(path).metadata or {}
    return {key.decode(): value.decode() for key, value in said.items()}


def write(
    frame: pd.DataFrame, path: Path, *, full: bool, marks: dict[str, str], seconds: float = 0.0
) -> None:
    """Write a result atomically; numbers of single precision are enough for figures."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    texts = dict.fromkeys(TEXTS, "category")
    small = frame.astype({"value": "float32", "seconds": "float32", "repetition": "int16"} | texts)
    made = pa.Table.from_pandas(small, preserve_index=False)
    made = made.replace_schema_metadata(
        {
            "grid": "full" if full else "quick",
            "marks": json.dumps(marks, ensure_ascii=False),
            "seconds": f"{seconds:.3f}",
        }
    )
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


@contextmanager
def workers(processes: int) -> Iterator[Pool | None]:
    """Processes for one study or for many, which keep what they compiled; None for this one."""
    if processes == 1:
        yield None
        return
    for name in THREADS:
        os.environ.setdefault(name, "1")
    context = multiprocessing.get_context("spawn")
    with context.Pool(processes, initializer=_receive, initargs=(_shipped(),)) as pool:
        yield pool


def _shipped() -> dict[str, tuple[Grid, Grid]]:
    """Grids of studies that are not run with their own; a study itself cannot be pickled."""
    return {n: (s.quick, s.full) for n, s in _GIVEN.items() if n in studies()}


def _receive(grids: dict[str, tuple[Grid, Grid]]) -> None:
    for name, (quick, full) in grids.items():
        _GIVEN[name] = replace(studies()[name], quick=quick, full=full)


def _batch(work: tuple[str, bool, list[tuple[Cell, Path]]]) -> int:
    name, full, cells = work
    for cell, path in cells:
        began = time.process_time()
        rows = run_cell(_study(name), cell, full=full)
        part = {"rows": rows, "seconds": time.process_time() - began}
        draft = path.with_suffix(f".{os.getpid()}")
        draft.write_text(json.dumps(part), encoding="utf-8")
        draft.replace(path)
    return len(cells)


def marks(study: Study, *, full: bool) -> dict[str, str]:
    """By method: a mark of all code and numbers that its rows depend on."""
    shared = (
        [(d.name, d.draw) for d in study.data], [m.name for m in study.metrics], study.axis.name,
        [(c.name, c.value, c.other, c.reading) for c in study.choices], study.grid(full=full), full,
        study.delta, study.neighbours,
    )  # fmt: skip
    return {method.name: reach.mark(method, *shared) for method in study.methods}


def stale(study: Study, results: Path = RESULTS) -> list[str]:
    """The methods whose rows are missing or of other code or another grid."""
    said = recorded(results / f"{study.name}.parquet")
    before = json.loads(said.get("marks", "{}"))
    now = marks(study, full=said.get("grid") == "full")
    return [name for name, mark in now.items() if before.get(name) != mark]


def missing_data(study: Study) -> list[str]:
    """Names of the tables that a study reads and that are not there."""
    from privtail.data.catalogue import located

    needed = {name for data in study.data for name in data.needs}
    return sorted(name for name in needed if located(name) is None)


def state(study: Study, results: Path = RESULTS) -> str:
    """Whether a study's results are there, and of the present code and grid."""
    said = recorded(results / f"{study.name}.parquet")
    if not said:
        return "no results"
    old = stale(study, results)
    which = "all" if len(old) == len(study.methods) else ", ".join(old)
    return f"{said.get('grid', 'quick')} results, {f'stale: {which}' if old else 'up to date'}"


def mends(study: Study, results: Path = RESULTS) -> str:
    """The command that makes a study's results those of the present code."""
    full = recorded(results / f"{study.name}.parquet").get("grid") == "full"
    return f"privtail reproduce {study.name}{' --full' if full else ''}"


def tell_stale(names: list[str], results: Path = RESULTS) -> int:
    """Print what is stale and the commands that mend it; 1 if anything is."""
    old = [study for study in chosen(names) if stale(study, results)]
    for study in old:
        print(f"{study.name}: {state(study, results)}\n    {mends(study, results)}")
    print(f"{len(old)} of {len(chosen(names))} studies have stale rows")
    return int(bool(old))


SIZES = ("n", "rows", "records")
WORK = ("d", "steps", "most_steps", "points")
"""Numbers of a cell that its fit is taken to be linear in, besides the largest of `SIZES`."""


def estimate(study: Study, *, full: bool, results: Path = RESULTS) -> float | None:
    """Seconds on two cores, from the measured seconds of the results that are there; else None.

    A fit of a method takes a constant and so much for each unit of its work (`WORK`), both by least
    squares from the measured fits. To draw records and to measure takes as large a part as it did.
    """
    path = results / f"{study.name}.parquet"
    if not path.is_file():
        return None
    said = recorded(path)
    measured = study.grid(full=said.get("grid") == "full")
    frame = pd.read_parquet(path)
    fits = _fits(frame)
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


def run_all(
    names: list[str], *, full: bool, processes: int = 2, results: Path = RESULTS,
    tell: Callable[[str], None] = lambda _: None, fresh: bool = False,
) -> list[Path]:  # fmt: skip
    """Run studies, one after the other; skip those whose data are missing, and say so."""
    paths, asked = [], chosen(names)
    with workers(processes) as pool:
        for place, study in enumerate(asked, 1):
            missing = missing_data(study)
            if missing:
                tell(f"{study.name}: skipped, {', '.join(missing)} is missing (privtail data)")
                continue
            if len(asked) > 1:
                tell(f"study {place} of {len(asked)}")
            paths.append(run_study(
                study, full=full, processes=processes, build=BUILD, results=results, tell=tell,
                fresh=fresh, pool=pool,
            ))  # fmt: skip
    return paths


def main() -> None:
    """Run the studies that were asked for."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("names", nargs="+", metavar="NAME", help="a paper, a study, or all")
    size = parser.add_mutually_exclusive_group()
    size.add_argument("--quick", action="store_true", help="small grids (the default)")
    size.add_argument("--full", action="store_true", help="the papers' grids")
    parser.add_argument("--fresh", action="store_true", help="run again what is finished")
    parser.add_argument("--stale", action="store_true", help="name what is stale; run nothing")
    parser.add_argument("--out", type=Path, default=RESULTS)
    parser.add_argument("--processes", type=int, default=2)
    asked = parser.parse_args()
    if asked.stale:
        sys.exit(tell_stale(asked.names, asked.out))
    run_all(
        asked.names, full=asked.full, processes=asked.processes, results=asked.out,
        fresh=asked.fresh, tell=lambda text: print(text, file=sys.stderr, flush=True),
    )  # fmt: skip


if __name__ == "__main__":
    main()
