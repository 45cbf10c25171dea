"""A Dask cluster on this machine: what a round costs beside its sweep, and what a worker adds.

    python -m benchmarks.cluster [overhead] [driver] [workers] [folder] [ceiling] [threads]
                                 [--rows 1000000] [--columns 20] [--rounds 15] [--files FOLDER]

A round is one clipped gradient; workers are processes of one thread each. Ratios are those of
interleaved rounds in one run, of rounds after each other for a folder.

- overhead: a round over next to no rows, and what a cluster takes of a core that has nothing to do.
- driver: the most memory of this process, which holds no rows, in fits of numbers, labels, persons.
- workers: one of two workers has all rows in its memory, or both have halves; where the time goes.
- folder: the same for one worker and two, which read Parquet files in every round. --files says
  where these are kept, and are not written again.
- ceiling: the same gradients without Dask: one process with all rows beside two that have one half
  each. No cluster can gain more from two workers.
- threads: two workers beside two threads in this process, for a round and a whole default fit.

A round passes through five processes: on a machine with other work to do, each of them waits, and
ratios of seconds say little; those of processor time say what a cluster computes in addition.
"""

from __future__ import annotations

import argparse
import itertools
import logging
import multiprocessing
import os
import resource
import statistics
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from benchmarks.protocol import machine, pairs

LIMITS = {2: 40, 64: 100}
"""Milliseconds of overhead that we allow a round of so many partitions."""

PIECE = 2**16
"""Rows that are made at once: a partition needs no memory beside its own."""
FILES, GROUP = 16, 250_000
"""Files of a folder, and rows of a row group."""


def main() -> None:
    """Measure what is asked for, in one order: memory before anything else is held."""
    measures = {
        "overhead": overheads, "driver": driver, "workers": workers, "folder": folder,
        "ceiling": ceiling, "threads": beside_threads,
    }  # fmt: skip
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("what", nargs="*", choices=[*measures, []], default=[])
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--columns", type=int, default=20)
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--files")
    options = parser.parse_args()
    os.environ["PRIVTAIL_THREADS"] = "2"
    warnings.simplefilter("ignore")
    print(machine("numba", "dask", "distributed"), flush=True)
    print(f"{options.rows:,} rows x {options.columns}")
    for name, measure in measures.items():
        if not options.what or name in options.what:
            more = {"files": options.files} if name == "folder" else {}
            measure(options.rows, options.columns, options.rounds, **more)


def overheads(n: int, d: int, rounds: int) -> None:
    """Rounds over one row a partition."""
    with cluster(2) as two, two.as_current():
        before, seconds = spent(two), 3.0
        time.sleep(seconds)
        idle = 100 * (spent(two) - before) / seconds
        print(f"driver, scheduler and two workers that wait take {idle:.0f} % of a core")
        for parts, limit in LIMITS.items():
            work = round_of(*collections(parts, d, parts))
            work()
            times = []
            for _ in range(rounds):
                start = time.perf_counter()
                work()
                times.append(1000 * (time.perf_counter() - start))
            median = statistics.median(times)
            print(f"overhead of a round, {parts} partitions: {median:.0f} ms (at most {limit})")


def driver(n: int, d: int, rounds: int) -> None:
    """Fits on a cluster that is alone on this machine: memory here, and processor time."""
    import dask.array as da

    from privtail.linear_model import DPLinearRegression, DPLogisticRegression

    common = {"epsilon": 1.0, "noise": "simulated", "random_state": 0}
    with cluster(2) as two, two.as_current():
        X, y = held(*collections(n, d, 2))
        groups = da.arange(n, chunks=y.chunks) % max(1, n // 3)
        print(
            f"the rows are {8 * n * (d + 1) / 2**20:.0f} MB; the driver has {resident():.0f} MB",
            flush=True,
        )
        for what, fit in (
            ("numbers", lambda: DPLinearRegression(**common).fit(X, y)),
            ("labels", lambda: DPLogisticRegression(**common, classes=[0, 1]).fit(X, (y > 0) * 1)),
            ("persons", lambda: DPLinearRegression(**common, max_rows=2).fit(X, y, groups=groups)),
        ):
            before = spent(two)
            fit()
            print(
                f"a fit of {what}: the driver has {resident():.0f} MB at most; processors "
                f"{spent(two) - before:.0f} s",
                flush=True,
            )


def workers(n: int, d: int, rounds: int) -> None:
    """Rows in the memory of one worker of a cluster beside halves in that of two."""
    with cluster(2) as two, two.as_current():
        works = [round_of(*held(*collections(n, d, parts))) for parts in (1, 2)]
        show("one worker / two workers", pairs(*works, rounds))
        table([watched(two, work, rounds) for work in works])


def folder(n: int, d: int, rounds: int, files: str | None = None) -> None:
    """One worker, then two, rows in files."""
    import dask.dataframe as dd

    from privtail.trusted.cluster.spread import Spread

    Spread._fits = lambda _: False  # type: ignore[method-assign]  # noqa: SLF001
    with tempfile.TemporaryDirectory() as temporary:
        place = files or temporary
        for i in range(FILES):
            path = Path(place, f"part-{i:02}.parquet")
            if not path.exists():
                write(path, n * i // FILES, n * (i + 1) // FILES, d)
        found = []
        for count in (1, 2):
            with cluster(count) as client, client.as_current():
                frame = dd.read_parquet(place)
                work = round_of(frame.drop(columns="y"), frame["y"])
                found.append(watched(client, work, rounds))
        one, two = (each["a round"] for each in found)
        print(f"one worker / two workers, from Parquet: median {one / two:.2f}")
        table(found)


def watched(client: Any, work: Callable[[], Any], rounds: int) -> dict[str, float]:
    """Where the time of a round goes: milliseconds, medians of rounds, means of busy workers."""
    client.run(watch)
    work()
    before, ends = spent(client), [time.perf_counter()]
    client.run(seen)
    for _ in range(rounds):
        work()
        ends.append(time.perf_counter())
    told = {name: tasks for name, tasks in client.run(seen).items() if tasks}
    used = sum(task["processor"] for tasks in told.values() for task in tasks)
    beside = (spent(client) - before - used) / rounds
    lines: list[dict[str, float]] = []
    for start, stop in itertools.pairwise(ends):
        of_worker = []
        for tasks in told.values():
            here = [task for task in tasks if start <= task["start"] < stop]
            of_worker.append({part: sum(t[part] for t in here) for part in (*PARTS, "took")})
        mean = {k: statistics.fmean(one[k] for one in of_worker) for k in of_worker[0]}
        most = max(one["took"] for one in of_worker)
        lines.append({
            "a round": stop - start,
            "  its sums": mean["sums"],
            "  checksums": mean["checksums"],
            "  reading and laying out": mean["processor"] - mean["sums"] - mean["checksums"],
            "  waits for a core": mean["waited"],
            "  waits for other threads": mean["took"] - mean["processor"] - mean["waited"],
            "  the last worker, beyond the mean": most - mean["took"],
            "  asking, gathering, between tasks": stop - start - most,
            "all processors, beside tasks": beside,
        })  # fmt: skip
    return {line: 1000 * statistics.median(one[line] for one in lines) for line in lines[0]}


PARTS = ("processor", "waited", "sums", "checksums")
"""What is measured of a task: time of its thread on a core, in wait of one; parts of the first."""


def watch() -> None:
    """On a worker: note what each task does with its time, once."""
    from privtail.trusted.cluster import held, workers

    if hasattr(workers, "tasks_seen"):
        return
    workers.tasks_seen, parts = [], dict.fromkeys(("sums", "checksums"), 0.0)

    def timed(part: str, function: Callable[..., Any]) -> Callable[..., Any]:
        def called(*given: Any) -> Any:
            start = time.thread_time()
            try:
                return function(*given)
            finally:
                parts[part] += time.thread_time() - start

        return called

    def waited() -> float:
        told = Path("/proc/thread-self/schedstat")  # of Linux: nanoseconds run, and waited
        return float(told.read_text().split()[1]) / 1e9 if told.exists() else 0.0

    honest = workers.answer

    def answer(*given: Any) -> Any:
        parts.update(dict.fromkeys(parts, 0.0))
        start, ran, stood = time.perf_counter(), time.thread_time(), waited()
        found = honest(*given)
        workers.tasks_seen.append({
            "start": start, "took": time.perf_counter() - start, "waited": waited() - stood,
            "processor": time.thread_time() - ran, **parts,
        })  # fmt: skip
        return found

    workers._summed = timed("sums", workers._summed)  # noqa: SLF001
    held.digested = timed("checksums", held.digested)
    answer.__module__, answer.__qualname__ = honest.__module__, honest.__qualname__
    workers.answer = answer


def seen() -> list[dict[str, float]]:
    """On a worker: what was noted since this was asked the last time."""
    from privtail.trusted.cluster import workers

    told, workers.tasks_seen[:] = list(workers.tasks_seen), []
    return told


def table(found: Sequence[dict[str, float]]) -> None:
    """Milliseconds of one worker and of two, and what would be half of one."""
    print(f"{'milliseconds':36} one worker  two workers  half of one")
    for line, one in found[0].items():
        print(f"{line:36}{one:11.1f}{found[1][line]:13.1f}{one / 2:13.1f}", flush=True)


def write(path: Path, start: int, stop: int, d: int) -> None:
    """A file of the rows start .. stop - 1, in row groups of a quarter of a million."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    schema = pa.schema([(name, pa.float64()) for name in (*(f"x{j}" for j in range(d)), "y")])
    with pq.ParquetWriter(path, schema) as writer:
        for first in range(start, stop, GROUP):
            X = made(first, min(first + GROUP, stop), d)
            writer.write_table(pa.table([*X.T, target(X)], schema=schema))


def ceiling(n: int, d: int, rounds: int) -> None:
    """Gradients of all rows in one process beside halves in two, without Dask."""
    context = multiprocessing.get_context("spawn")

    def asked(*ends: int) -> Callable[[], None]:
        """Processes, each with the rows between two ends, that sum at the same time."""
        pipes = []
        for start, stop in itertools.pairwise(ends):
            ours, theirs = context.Pipe()
            context.Process(target=bare, args=(theirs, start, stop, d), daemon=True).start()
            pipes.append(ours)

        def work() -> None:
            for pipe in pipes:
                pipe.send(None)
            for pipe in pipes:
                pipe.recv()

        return work

    found = pairs(asked(0, n), asked(0, n // 2, n), rounds)
    show("one bare process / two bare processes", found)


def bare(pipe: Any, start: int, stop: int, d: int) -> None:
    """A gradient of some rows for every message."""
    os.environ["PRIVTAIL_THREADS"] = "1"
    X = made(start, stop, d)
    work = round_of(X, target(X))
    with suppress(EOFError):
        while True:
            pipe.recv()
            work()
            pipe.send(None)


def beside_threads(n: int, d: int, rounds: int) -> None:
    """Two workers beside two threads: a round, and the second one of two fits."""
    with cluster(2) as two:
        with two.as_current():
            rows = held(*collections(n, d, 2))
            away, both = fit(*rows, lambda: spent(two)), round_of(*rows)
        X, y = (part.compute(scheduler="threads") for part in collections(n, d, 2))
        show("two workers / two threads", pairs(both, round_of(X, y), rounds))
        here = fit(X, y, time.process_time)
        for what, i in (("a fit", 1), ("its processor time", 2)):
            print(
                f"{what}: two workers {away[i]:.1f} s, two threads {here[i]:.1f} s, "
                f"ratio {away[i] / here[i]:.2f}"
            )
        assert here[0].coef_.tobytes() == away[0].coef_.tobytes(), "other bits"


@contextmanager
def cluster(workers: int) -> Iterator[Any]:
    """A client of a cluster of processes with one thread each, which ends with it."""
    from distributed import Client, LocalCluster

    logging.getLogger("distributed").setLevel(logging.ERROR)
    local = LocalCluster(
        n_workers=workers, threads_per_worker=1, processes=True, dashboard_address=None
    )
    with local, Client(local, set_as_default=False) as client:
        yield client


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
    return X, target(X)


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
    """The rows of one partition."""
    (start, stop), _ = block_info[None]["array-location"]
    return made(start, stop, d)


def made(start: int, stop: int, d: int) -> Any:
    """Rows start .. stop - 1: a formula of their ids, with long tails."""
    import numpy as np

    rows = np.empty((stop - start, d))
    for first in range(start, stop, PIECE):
        last = min(first + PIECE, stop)
        cells = np.arange(first * d + 1, last * d + 1, dtype=np.float64)
        np.multiply(cells, 0.6180339887498949, out=cells)
        cells %= 1.0
        cells -= 0.5
        rows[first - start : last - start] = (cells / (0.26 - cells**2)).reshape(-1, d)
    return rows


def target(X: Any) -> Any:
    """What a fit predicts."""
    return X[:, 0] - X[:, 1] / 2 + X[:, -1] ** 2 / 8


def _nothing(d: int) -> Any:
    import numpy as np

    return np.empty((0, d))


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


def spent(client: Any) -> float:
    """Processor time of this process, which holds the scheduler, and of all workers."""
    return time.process_time() + sum(client.run(time.process_time).values())


def resident() -> float:
    """The most memory that this process had, in MB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def show(what: str, found: dict[str, Any]) -> None:
    """The median ratio of pairs, and that of the least times, which other work disturbs least."""
    ours, theirs = 1000 * found["ours"], 1000 * found["theirs"]
    print(
        f"{what}: {found['ratio']:.2f}; least {ours:.0f} ms / {theirs:.0f} ms, "
        f"ratio {ours / theirs:.2f}",
        flush=True,
    )


if __name__ == "__main__":
    main()
