"""Seconds until a user has a model: the import, the first fit, the fits after it.

``python -m benchmarks.fit``. Each line is the best of three processes with two threads, and exact
noise; processor time, of both threads, is what a busy machine does not change. n = 1e5, d = 10,
epsilon = 1, delta = 1e-6.
"""

from __future__ import annotations

import json
import os
import shutil
import sys
import tempfile
import time
from pathlib import Path

from benchmarks.protocol import PROCESSES, in_a_process, machine


def measured() -> dict[str, float]:
    """Times of one process."""
    import numpy as np

    start = time.perf_counter()
    import privtail  # noqa: F401

    light = time.perf_counter() - start
    from privtail import linear_model

    estimator = getattr(linear_model, "DPRidge", linear_model.DPLinearRegression)
    rng = np.random.default_rng(0)
    X = np.exp(1.5 * rng.standard_normal((100_000, 10)))
    y = X @ np.linspace(-1, 1, 10) + rng.standard_normal(100_000)
    times, used = [], []
    for _ in range(6):
        start, busy = time.perf_counter(), time.process_time()
        estimator(epsilon=1.0, delta=1e-6).fit(X, y)
        times.append(time.perf_counter() - start)
        used.append(time.process_time() - busy)
    later, processor = min(times[1:]), min(used[1:])
    return {
        "import": light,
        "first": times[0] - later,
        "first_cpu": used[0] - processor,
        "later": later,
        "later_cpu": processor,
    }


def main() -> None:
    """Measure in fresh processes and print the table."""
    import privtail

    print(machine("numba", "opendp"))
    source = Path(privtail.__file__).parent
    with tempfile.TemporaryDirectory() as folder:
        there = Path(folder)
        package = there / "site" / "privtail"
        shutil.copytree(source, package, ignore=shutil.ignore_patterns("__pycache__"))
        nowhere = there / "a file, not a folder"
        nowhere.touch()
        path = os.pathsep.join(p for p in (str(package.parent), os.environ.get("PYTHONPATH")) if p)

        def best(name: str, count: int, **environment: str) -> None:
            runs = [
                in_a_process("-m", "benchmarks.fit", "--measure", PYTHONPATH=path, **environment)
                for _ in range(count)
            ]
            least = [min(run[key] for run in runs) for key in runs[0]]
            print(f"{name:28}", *(f"{value:12.3f}" for value in least), sep="", flush=True)

        columns = ("import", "first, more", "(processor)", "later", "(processor)")
        print(f"\n{'seconds':28}", *(f"{name:>12}" for name in columns), sep="")
        best("nothing cached", 1, NUMBA_CACHE_DIR=str(there / "cache"))
        best("cached on disk", PROCESSES, NUMBA_CACHE_DIR=str(there / "cache"))
        best("no folder can be written", 1, NUMBA_CACHE_DIR=str(nowhere), HOME=str(nowhere))
    print(f"{'at most':28}{0.3:12}{6.0:12}{'':12}{1.0:12}")


if __name__ == "__main__":
    if sys.argv[1:2] == ["--measure"]:
        print(json.dumps(measured()))
    else:
        main()
