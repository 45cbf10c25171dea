"""A file larger than memory should be: one pass beside a bare PyArrow scan, and peak memory.

    python -m benchmarks.files [--rows 20000000] [--format parquet|csv|arrow] [--parts 8]

Writes ``rows`` x 10 doubles and a target to a temporary folder, in one file or in ``parts``. Each
measurement runs in a process of its own: one fits through a `Curator` (clipped gradients) and
reports the time of every pass and the peak memory of the first; between them is a bare scan of the
same columns by `pyarrow.dataset` with as many threads (``PRIVTAIL_THREADS``).
"""

from __future__ import annotations

import argparse
import json
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

COLUMNS = 10
ROUNDS = 5


def main() -> None:
    """Write the file, measure, print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=20_000_000)
    parser.add_argument("--group", type=int, default=1_000_000, help="rows of a row group")
    parser.add_argument("--format", choices=["parquet", "csv", "arrow"], default="parquet")
    parser.add_argument("--parts", type=int, default=1, help="files that hold the rows")
    parser.add_argument("--scratch", action="store_true")
    parser.add_argument("--measure", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.measure:
        measure(options.measure, options.scratch)
        return
    with tempfile.TemporaryDirectory() as folder:
        part, size = options.rows // options.parts, 0.0
        for i in range(options.parts):
            path = Path(folder) / f"part-{i:03}.{options.format}"
            write(path, part, options.group, seed=i)
            size += path.stat().st_size / 2**30
        print(
            f"{options.rows:,} rows x {COLUMNS} and a target, {options.format}, {size:.2f} GiB in "
            f"{options.parts} files"
        )
        command = [sys.executable, "-m", "benchmarks.files", "--measure", folder]
        found = subprocess.run(
            command + ["--scratch"] * options.scratch, check=True, stdout=subprocess.PIPE
        )
        report(json.loads(found.stdout))


def write(path: Path, rows: int, group: int, seed: int) -> None:
    """A file of standard normal columns x0 .. x9 and y, written group by group."""
    import numpy as np
    import pyarrow as pa
    import pyarrow.csv
    import pyarrow.parquet

    names = [*(f"x{j}" for j in range(COLUMNS)), "y"]
    schema = pa.schema([(name, pa.float64()) for name in names])
    writers = {
        ".parquet": lambda: pa.parquet.ParquetWriter(path, schema),
        ".csv": lambda: pa.csv.CSVWriter(path, schema),
        ".arrow": lambda: pa.ipc.new_file(path, schema),
    }
    rng = np.random.default_rng(seed)
    with writers[path.suffix]() as writer:
        for start in range(0, rows, group):
            X = rng.standard_normal((COLUMNS, min(group, rows - start)))
            y = X.sum(axis=0) + rng.standard_t(3, X.shape[1])
            writer.write_table(pa.table([*X, y], schema=schema))


def measure(path: Path, scratch: bool) -> None:
    """Passes of a curator, a bare scan between them; JSON on standard output."""
    import numpy as np

    from privtail import Budget, open_table
    from privtail.losses import SquaredLoss
    from privtail.robust_means import ClippedMean
    from privtail.trusted.curator import Curator
    from privtail.trusted.events import Round
    from privtail.trusted.mechanisms.noise import GaussianNoise
    from privtail.trusted.sampling import Everyone

    first = peak()
    start = time.perf_counter()
    table = open_table(path, scratch=path if scratch else None)
    curator = Curator(table, "y", budget=Budget(1.0, 1e-6), noise="simulated", random_state=0)
    opening = time.perf_counter() - start
    mean, noise = ClippedMean(5.0), GaussianNoise(100.0)
    event = noise.event(curator.problem.gradient(mean))
    curator.open((Round(events=(event,), times=ROUNDS + 1),))
    passes, scans, most = [], [], 0.0
    ours: list[Any] = []
    theirs: list[Any] = []
    for number, batch in enumerate(curator.rounds(Everyone(), ROUNDS + 1)):
        start, before = time.perf_counter(), used()
        batch.gradient(SquaredLoss(), np.zeros((COLUMNS, 1)), mean).release(noise)
        middle, between = time.perf_counter(), used()
        most = most or peak()
        scan(path)
        if number:  # the first pass loads the kernels
            passes.append(middle - start)
            scans.append(time.perf_counter() - middle)
            ours.append(between - before)
            theirs.append(used() - between)
    found = {"passes": passes, "scans": scans, "before": first, "peak": most, "opening": opening}
    work = (1e9 / curator.problem.n * np.median(one, axis=0) for one in (ours, theirs))
    print(json.dumps({**found, "work": [one.tolist() for one in work]}))


def used() -> Any:
    """Processor time so far, in seconds: of this process, and of the system for it."""
    import numpy as np

    found = resource.getrusage(resource.RUSAGE_SELF)
    return np.array([found.ru_utime, found.ru_stime])


def scan(path: Path) -> int:
    """Decode every batch with as many threads as a pass has, and do nothing with it."""
    import pyarrow as pa
    import pyarrow.dataset

    from privtail.trusted.dataset import threads

    pa.set_cpu_count(threads())
    kind = next(path.iterdir()).suffix[1:]
    data = pa.dataset.dataset(path, format={"arrow": "ipc"}.get(kind, kind))
    batches = data.to_batches(use_threads=threads() > 1)
    return sum(batch.num_rows for batch in batches)


def peak() -> float:
    """Peak resident memory so far, in MB."""
    status = Path("/proc/self/status")  # getrusage counts what the parent held when it forked
    if status.exists():
        return int(status.read_text().partition("VmHWM:")[2].split()[0]) / 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20


def report(found: dict) -> None:
    """Print medians, their ratio and the memory."""
    ours, bare = statistics.median(found["passes"]), statistics.median(found["scans"])
    print(f"opening           {found['opening']:8.2f} s")
    print(f"one pass          {ours:8.2f} s   (median of {ROUNDS}, interleaved)")
    print(f"bare scan         {bare:8.2f} s   -> a pass runs at {bare / ours:.0%} of it")
    for what, (own, system) in zip(("pass", "scan"), found["work"], strict=True):
        print(f"work of a {what}    {own:8.0f} ns a row, and {system:.0f} of the system for it")
    print(f"peak memory       {found['peak']:8.0f} MB  ({found['before']:.0f} MB before)")


if __name__ == "__main__":
    main()
