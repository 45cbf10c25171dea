"""Runs the cells of studies in parallel, survives a kill, and writes one tidy table per study.

    python -m experiments.runner wang2020 --quick

Every finished cell is one small file under ``build/experiments``; a run that was killed goes on
where it stopped. When all cells of a study are there they become ``reports/results/NAME.parquet``,
those of a full grid ``reports/results/full/NAME.parquet``, and the small files go. Of a method
whose rows are there some cells are run again (`experiments.verified`): if they give the stored
numbers its rows stay, else all its cells are run. ``--fresh`` runs everything, ``--stale`` names
the rows that differ and fails if any do.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import shutil
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import replace
from itertools import groupby, product
from multiprocessing.pool import Pool
from pathlib import Path

import pandas as pd

from experiments import verified
from experiments.cells import Row, records_of, run_cell
from experiments.papers import chosen, studies
from experiments.study import Cell, Grid, Study
from privtail.cli.console import counting
from privtail.progress import report

ROOT = Path(__file__).resolve().parents[1]
RESULTS = ROOT / "reports" / "results"
FULL = "full"
"""Folder of the results of full grids, within that of the quick ones."""
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

_GIVEN: dict[str, Study] = {}


def _study(name: str) -> Study:
    return _GIVEN.get(name) or studies()[name]


def table(rows: Iterable[Row]) -> pd.DataFrame:
    """Rows as a frame with the columns of a result."""
    frame = pd.DataFrame(rows, columns=list(COLUMNS))
    return frame.astype(dict.fromkeys(TEXTS, "category"))


def place(results: Path, *, full: bool) -> Path:
    """The folder of the results of one size of grids."""
    return results / FULL if full else results


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
    results = place(results, full=full)
    path, folder = results / f"{study.name}.parquet", build / study.name / _size(full=full)
    old = pd.DataFrame() if fresh else _kept(study, path, full=full)
    here = set() if old.empty else set(old["method"].astype(str))
    cells = [cell for cell in study.cells(full=full) if cell.method not in here]
    if not cells:
        tell(f"{study.name}: its rows are those of the present code; --fresh runs it again")
        verified.remember([study.name], results)
        return path
    if fresh:
        shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True, exist_ok=True)
    files = {cell: folder / f"{cell.key}.json" for cell in cells}
    _drop_old(study, files, full=full)
    missing = [cell for cell in cells if not files[cell].exists()]
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
            report(done, len(missing), study.name)
    rows: list[Row] = []
    seconds = _spent(path, old)
    for cell in cells:
        part = json.loads(files[cell].read_text(encoding="utf-8"))
        rows += part["rows"]
        seconds += part["seconds"]
    write(pd.concat([old, table(rows)]), path, seconds=seconds)
    shutil.rmtree(folder.parent)
    verified.remember([study.name], results)
    return path


def _size(*, full: bool) -> str:
    return "full" if full else "quick"


def _kept(study: Study, path: Path, *, full: bool) -> pd.DataFrame:
    """The rows of a table that the present code gives again."""
    if not path.is_file():
        return pd.DataFrame()
    found = pd.read_parquet(path)
    wrong = verified.differences(study, found, full=full)
    same = [m.name for m in study.methods if m.name not in wrong]
    return found[found["method"].isin(same)]


def _drop_old(study: Study, files: dict[Cell, Path], *, full: bool) -> None:
    """Of every method one finished cell is run again; if it differs, all of them go."""
    for method in study.methods:
        there = [c for c, path in files.items() if c.method == method.name and path.exists()]
        if there:
            stored = json.loads(files[there[0]].read_text(encoding="utf-8"))["rows"]
            if verified.difference(stored, run_cell(study, there[0], full=full)):
                for cell in there:
                    files[cell].unlink()


def read(study: Study, results: Path = RESULTS, *, full: bool = False) -> pd.DataFrame | None:
    """The stored rows of a study."""
    path = place(results, full=full) / f"{study.name}.parquet"
    return pd.read_parquet(path) if path.is_file() else None


def _spent(path: Path, kept: pd.DataFrame) -> float:
    """What the kept rows took, of all seconds that their table took."""
    if kept.empty:
        return 0.0
    fits, all_fits = (one_a_fit(part)["seconds"].sum() for part in (kept, pd.read_parquet(path)))
    return float(recorded(path)["seconds"]) * float(fits / max(all_fits, 1e-9))


def one_a_fit(frame: pd.DataFrame) -> pd.DataFrame:
    """The first row of every fit."""
    cell = ["variant", "dataset", "method", "accounting", "epsilon", "repetition"]
    return frame.drop_duplicates([*cell, "seconds"])


def recorded(path: Path) -> dict[str, str]:
    """What a table says of itself: all its seconds."""
    import pyarrow.parquet as pq

    if not path.is_file():
        return {}
    said = pq.read_schema(path).metadata or {}
    return {key.decode(): value.decode() for key, value in said.items()}


def write(frame: pd.DataFrame, path: Path, *, seconds: float = 0.0) -> None:
    """Write a result atomically; numbers of single precision are enough for figures."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    texts = dict.fromkeys(TEXTS, "category")
    small = frame.astype({"value": "float32", "seconds": "float32", "repetition": "int16"} | texts)
    made = pa.Table.from_pandas(small, preserve_index=False)
    made = made.replace_schema_metadata({"seconds": f"{seconds:.3f}"})
    path.parent.mkdir(parents=True, exist_ok=True)
    draft = path.with_suffix(".draft")
    pq.write_table(made, draft, compression="zstd")
    draft.replace(path)


def _grouped(cells: list[Cell]) -> Iterator[list[Cell]]:
    """Cells of the same records together, at most twelve at a time."""
    for _, group in groupby(cells, key=records_of):
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


def missing_data(study: Study) -> list[str]:
    """Names of the tables that a study reads and that are not there."""
    from privtail.data.catalogue import located

    needed = {name for data in study.data for name in data.needs}
    return sorted(name for name in needed if located(name) is None)


def lacking(study: Study, results: Path = RESULTS, *, full: bool = False) -> list[str]:
    """The methods whose stored cells are not those of the grid."""
    frame = read(study, results, full=full)
    complete: list[str] = []
    if frame is not None:
        there = verified.counts(study, frame, full=full)
        complete = verified.whole(study, frame, there, full=full)
    return [method.name for method in study.methods if method.name not in complete]


def state(study: Study, results: Path = RESULTS) -> str:
    """Whether a study's results are there and whole, and when they were last compared."""
    said = [_state(study, results, full=full) for full in (False, True)]
    return "; ".join(filter(None, said)) or "no results"


def _state(study: Study, results: Path, *, full: bool) -> str:
    if read(study, results, full=full) is None:
        return ""
    said = f"{_size(full=full)} results"
    if lost := lacking(study, results, full=full):
        which = "all" if len(lost) == len(study.methods) else ", ".join(lost)
        return f"{said}, stale: {which}"
    then = verified.remembered(place(results, full=full)).get(study.name)
    return f"{said}, verified {then['date']}" if then else f"{said}, never verified"


def tell_stale(names: list[str], results: Path = RESULTS) -> int:
    """Run some cells of every line again; print which differ and what mends them; 1 if any do.

    Full rows are compared where they are there; quick ones have to be.
    """
    lines, old, asked = 0, 0, chosen(names)
    for study, full in product(asked, (False, True)):
        frame = read(study, results, full=full)
        if full and frame is None:
            continue
        lines += len(study.methods)
        if missing := missing_data(study):
            print(f"{study.name}: not compared, {', '.join(missing)} is missing (privtail data)")
            continue
        wrong = dict.fromkeys((m.name for m in study.methods), "no results")
        if frame is not None:
            wrong = verified.differences(study, frame, full=full)
        for method, why in wrong.items():
            print(f"{study.name}, {method}: {why}")
        if wrong:
            print(f"    privtail reproduce {study.name}{' --full' if full else ''}", flush=True)
        old += len(wrong)
    print(f"{old} of {lines} lines (a method in a study) are not those of the present code")
    return int(bool(old))


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
    parser.add_argument("--stale", action="store_true", help="name the rows that differ")
    parser.add_argument("--out", type=Path, default=RESULTS)
    parser.add_argument("--processes", type=int, default=2)
    asked = parser.parse_args()
    if asked.stale:
        sys.exit(tell_stale(asked.names, asked.out))
    with counting("running studies", "cell"):
        run_all(
            asked.names, full=asked.full, processes=asked.processes, results=asked.out,
            fresh=asked.fresh, tell=lambda text: print(text, file=sys.stderr, flush=True),
        )  # fmt: skip


if __name__ == "__main__":
    main()
