"""A Dask cluster on this machine: what a round costs beside its sweep, and what a worker adds.

    python benchmarks/cluster.py [--rows 1000000] [--columns 20] [--rounds 15] [--partitions 2 64]

Rows are made on the workers, whose processes have one thread each, and stay there. A round is one
clipped gradient.
Numbers and ratios of interleaved rounds in one run: a round over next to no rows, which is all
overhead; one worker beside two; two workers beside two threads in this process; and the same of
a whole default fit, the second one of each. A round passes through five processes: on a machine
with other work to do, each of them waits, and ratios of seconds say little; those of processor time
say what a cluster computes in addition, and that rows are read once more for it. The memory of
this process, the driver, is read after the fit on the cluster and before it holds any rows.
"""

from __future__ import annotations

import argparse
import logging
import os
import resource
import statistics
import sys
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))
from protocol import machine, pairs

LIMITS = {2: 40, 64: 100}
"""Milliseconds of overhead that we allow a round of so many partitions."""

PIECE = 2**16
"""Rows that are made at once: a partition needs no memory beside its own."""


def main() -> None:
    """Start clusters, measure, print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--columns", type=int, default=20)
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--partitions", type=int, nargs="+", default=sorted(LIMITS))
    options = parser.parse_args()
    os.environ["PRIVTAIL_THREADS"] = "2"
    warnings.simplefilter("ignore")

    print(machine("numba", "dask", "distributed"))
    n, d, rounds = options.rows, options.columns, options.rounds
    with cluster(2) as two, cluster(1) as one:
        with two.as_current():
            for parts in options.partitions:
                overhead(parts, d, rounds)
            print(f"\n{n:,} rows x {d}")
            before = resident()
            rows = held(*collections(n, d, 2))
            away = fit(*rows, lambda: spent(two))
            print(
                f"the driver had {before:.0f} MB before the fit and {resident():.0f} MB at most; "
                f"the rows are {8 * n * (d + 1) / 2**20:.0f} MB"
            )
            others(*rows, lambda: spent(two), away[2])
            both = round_of(*rows)
        with one.as_current():
            alone = round_of(*held(*collections(n, d, 1)))
        found = pairs(alone, both, rounds)
        show("one worker / two workers", found)
        X, y = (part.compute(scheduler="threads") for part in collections(n, d, 2))
        show("two workers / two threads", pairs(both, round_of(X, y), rounds))
        here = fit(X, y, time.process_time)
        for what, i in (("a fit", 1), ("its processor time", 2)):
            print(
                f"{what}: two workers {away[i]:.1f} s, two threads {here[i]:.1f} s, "
                f"ratio {away[i] / here[i]:.2f}"
            )
        assert here[0].coef_.tobytes() == away[0].coef_.tobytes(), "other bits"


def cluster(workers: int) -> Any:
    """A client of a cluster of processes with one thread each."""
    from distributed import Client, LocalCluster

    logging.getLogger("distributed").setLevel(logging.ERROR)
    local = LocalCluster(
        n_workers=workers, threads_per_worker=1, processes=True, dashboard_address=None
    )
    return Client(local, set_as_default=False)


def collections(n: int, d: int, parts: int) -> tuple[Any, Any]:
    """Rows and a target, made on the workers, the same whatever ``parts``."""
    import dask.array as da

    X = da.map_blocks(
        block,
        d,
        chunks=(lengths(n, parts), (d,)),
        dtype=float,
        meta=_nothing(d),
        name=f"X-{n}-{parts}",
    )
    return X, X[:, 0] - X[:, 1] / 2 + X[:, -1] ** 2 / 8


def held(X: Any, y: Any) -> tuple[Any, Any]:
    """The same, in the memory of the workers."""
    from dask import persist
    from distributed import wait

    rows: tuple[Any, Any] = persist(X, y)
    wait(rows)
    return rows


def lengths(n: int, parts: int) -> tuple[int, ...]:
    """About equal lengths that add up to n."""
    return tuple(n * (k + 1) // parts - n * k // parts for k in range(parts))


def block(d: int, block_info: Any = None) -> Any:
    """The rows of one partition: a formula of their ids, with long tails."""
    import numpy as np

    (start, stop), _ = block_info[None]["array-location"]
    rows = np.empty((stop - start, d))
    for first in range(start, stop, PIECE):
        last = min(first + PIECE, stop)
        cells = np.arange(first * d + 1, last * d + 1, dtype=np.float64)
        np.multiply(cells, 0.6180339887498949, out=cells)
        cells %= 1.0
        cells -= 0.5
        rows[first - start : last - start] = (cells / (0.26 - cells**2)).reshape(-1, d)
    return rows


def _nothing(d: int) -> Any:
    import numpy as np

    return np.empty((0, d))


def overhead(parts: int, d: int, rounds: int) -> None:
    """Rounds over one row a partition."""
    work = round_of(*collections(parts, d, parts))
    work()
    times = []
    for _ in range(rounds):
        start = time.perf_counter()
        work()
        times.append(1000 * (time.perf_counter() - start))
    limit = f" (at most {LIMITS[parts]})" if parts in LIMITS else ""
    print(f"overhead of a round, {parts} partitions: {statistics.median(times):.0f} ms{limit}")


def round_of(X: Any, y: Any) -> Callable[[], Any]:
    """One gradient after the other of the same records."""
    import numpy as np

    from privtail.losses import SquaredLoss
    from privtail.robust_means import ClippedMean
    from privtail.trusted.budget import Budget
    from privtail.trusted.curator import Curator
    from privtail.trusted.events import Round
    from privtail.trusted.sampling import Everyone

    curator = Curator(X, y, budget=Budget(1.0, 1e-6), intercept=True, noise="simulated")
    rounds, mean = 10**6, ClippedMean(1.0)
    curator.open((Round(events=(), times=rounds),), SquaredLoss())
    batches = curator.rounds(Everyone(), rounds)
    w = np.zeros((curator.problem.rows, 1))
    return lambda: next(batches).gradient(SquaredLoss(), w, mean)


def fit(X: Any, y: Any, spent: Callable[[], float]) -> tuple[Any, float, float]:
    """A default fit, and the seconds of a second one, on the clock and of all processors."""
    from privtail.linear_model import DPLinearRegression

    model = DPLinearRegression(epsilon=1.0, noise="simulated", random_state=0).fit(X, y)
    start, before = time.perf_counter(), spent()
    model.fit(X, y)
    return model, time.perf_counter() - start, spent() - before


def others(X: Any, y: Any, spent: Callable[[], float], rows: float) -> None:
    """A fit of labels, and one of persons with three rows each, who are in all partitions.

    A fit that protects rows has ``spent`` so many seconds of processors.
    """
    import dask.array as da

    from privtail.linear_model import DPLinearRegression, DPLogisticRegression

    labels = DPLogisticRegression(epsilon=1.0, noise="simulated", random_state=0, classes=[0, 1])
    labels.fit(X, (y > 0).astype(int))
    print(f"the driver had {resident():.0f} MB at most with a fit of labels")
    groups = da.arange(len(y), chunks=y.chunks) % max(1, len(y) // 3)
    persons = DPLinearRegression(epsilon=1.0, noise="simulated", random_state=0, max_rows=2)
    before = spent()
    persons.fit(X, y, groups=groups)
    print(
        f"and {resident():.0f} MB with a fit of persons, whose processor time is "
        f"{(spent() - before) / rows:.2f} times that of rows"
    )


def spent(client: Any) -> float:
    """Processor time of this process, which holds the scheduler, and of all workers."""
    return time.process_time() + sum(client.run(time.process_time).values())


def resident() -> float:
    """The most memory that this process had, in MB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def show(what: str, found: dict[str, Any]) -> None:
    """A ratio of rounds, and the least time of either."""
    print(
        f"{what}: {found['ratio']:.2f} ({1000 * found['ours']:.0f} ms, "
        f"{1000 * found['theirs']:.0f} ms)"
    )


if __name__ == "__main__":
    main()
