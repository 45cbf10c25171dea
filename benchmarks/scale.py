"""What a default fit costs a row, and what that means for tables that no machine here can hold.

    python -m benchmarks.scale [ROWS] [FEATURES]

Measured: processor time of whole fits on two sizes of a table, in memory, and on a folder of
Parquet files; the difference over the difference of rows is the cost of a row, without what a fit
costs whatever n is. Planned: core-seconds, minutes and bytes at 1e9 rows, by the formula in
docs/background/scale.md. One thread; noise is exact.
"""

from __future__ import annotations

import os
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

os.environ.setdefault("PRIVTAIL_THREADS", "1")
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np
from numpy.typing import NDArray

import privtail
from privtail.linear_model import DPLinearRegression

PARTS = 4
ROUND = 0.04
"""Seconds that a round of tasks adds on a cluster: the bound of benchmarks/cluster.py."""


def table(n: int, d: int) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Rows of t(3)."""
    rng = np.random.default_rng(0)
    X = rng.standard_t(3, (n, d))
    return X, X @ np.linspace(-1, 1, d) + rng.standard_t(3, n)


def seconds(X: Any, y: Any) -> tuple[float, int]:
    """Processor time of one fit, and how many passes it makes."""
    model = DPLinearRegression(epsilon=1.0)
    start = time.process_time()
    model.fit(X, y)
    return time.process_time() - start, model.plan_.passes


def written(folder: Path, X: NDArray[np.float64], y: NDArray[np.float64]) -> Any:
    """The same table as a folder of Parquet files, opened."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    columns = {f"x{j}": X[:, j] for j in range(X.shape[1])} | {"y": y}
    for part, rows in enumerate(np.array_split(np.arange(len(y)), PARTS)):
        held = pa.table({name: column[rows] for name, column in columns.items()})
        pq.write_table(held, folder / f"part-{part}.parquet")
    return privtail.open_table(folder)


def per_row(n: int, d: int, *, files: bool) -> tuple[float, int]:
    """Nanoseconds of one core that a row costs in a whole fit, and how many passes that makes."""
    sizes, found = (n // 4, n), []
    for size in sizes:
        X, y = table(size, d)
        if files:
            with tempfile.TemporaryDirectory() as folder:
                found.append(seconds(written(Path(folder), X, y), "y"))
        else:
            found.append(seconds(X, y))
    spent = found[1][0] - found[0][0]
    return 1e9 * spent / (sizes[1] - sizes[0]), found[1][1]


def main(n: int, d: int) -> None:
    """Print what was measured, and the plan."""
    seconds(*table(20_000, d))  # compiles
    memory, passes = per_row(n, d, files=False)
    files, _ = per_row(n, d, files=True)
    print(f"{d} features, {passes} passes over the rows, one core, {n:,} rows:")
    print(
        f"  in memory     {memory:8.0f} ns a row for the whole fit, {memory / passes:6.0f} a pass"
    )
    print(f"  from Parquet  {files:8.0f} ns a row for the whole fit, {files / passes:6.0f} a pass")
    print(f"planned for 1e9 rows, {8 * (d + 1)} bytes a row decoded, 4 cores a worker:")
    for workers in (10, 100):
        for name, cost in (("in memory", memory), ("from Parquet", files)):
            core = cost  # nanoseconds a row are core-seconds of 1e9 rows
            minutes = (core / (4 * workers) + passes * ROUND) / 60
            each = 8 * (d + 1) / workers
            print(
                f"  {workers:>3} workers, {name:<12} {core:7.0f} core-seconds, {minutes:5.1f} "
                f"minutes, {each:5.1f} GB a worker if rows stay in memory"
            )


if __name__ == "__main__":
    main(*(int(float(x)) for x in (sys.argv[1:] + ["400000", "50"][len(sys.argv) - 1 :])[:2]))
