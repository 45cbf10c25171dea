"""What happens when workers, the scheduler or the driver die in the middle of a fit."""

from __future__ import annotations

import itertools
import os
import signal
import subprocess
import sys
import threading
import time
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from privtail.errors import InvalidInput
from privtail.linear_model import DPLinearRegression
from privtail.losses import CustomLoss, GeneralLoss, SquaredLoss
from privtail.robust_means import ClippedMean
from privtail.trusted.budget import Budget
from privtail.trusted.cluster import spread
from privtail.trusted.cluster.spread import Spread
from privtail.trusted.curator import Curator
from privtail.trusted.events import Round
from privtail.trusted.ledger import Ledger
from privtail.trusted.mechanisms.noise import GaussianNoise
from privtail.trusted.sampling import Everyone

distributed = pytest.importorskip("distributed")
da = pytest.importorskip("dask.array")
dd = pytest.importorskip("dask.dataframe")
delayed = pytest.importorskip("dask").delayed
pytestmark = [
    pytest.mark.slow,
    pytest.mark.usefixtures("simulated_is_booked"),
    # of distributed, when what it talked to is gone
    pytest.mark.filterwarnings("ignore::ResourceWarning", "ignore::RuntimeWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning"),
]

N, FEATURES = 4000, ["a", "b", "c"]


def rows() -> pd.DataFrame:
    rng = np.random.default_rng(5)
    frame = pd.DataFrame(rng.standard_t(3, (N, 3)), columns=FEATURES)
    return frame.assign(cost=2 * frame["a"] + rng.standard_normal(N))


def spread_out(part: Any = None) -> Any:
    frame, ends = rows(), [0, 0, 900, 901, 2500, N]
    read = delayed(part or (lambda given: given))
    parts = [read(frame.iloc[a:b]) for a, b in itertools.pairwise(ends)]
    return dd.from_delayed(parts, meta=frame.iloc[:0], verify_meta=False)


def model(ledger: Ledger | None = None) -> DPLinearRegression:
    return DPLinearRegression(epsilon=2.0, noise="simulated", random_state=0, ledger=ledger)


def process_ids(client: Any) -> list[int]:
    return list(client.run(os.getpid).values())


@pytest.fixture
def client(processes: Any) -> Iterator[Any]:
    with processes() as made:
        yield made


def disturbed(monkeypatch: pytest.MonkeyPatch, at: int, disturb: Any) -> list[int]:
    """Call ``disturb`` while the question number ``at`` is answered; how many were asked."""
    asked, sums = [0], Spread.sums

    def counting(self: Spread, question: Any) -> Any:
        asked[0] += 1
        if asked[0] == at:
            disturb()
        return sums(self, question)

    monkeypatch.setattr(Spread, "sums", counting)
    return asked


def slowly(given: pd.DataFrame) -> pd.DataFrame:
    time.sleep(0.3)
    return given


@pytest.mark.parametrize("at", [1, 6, 20])
@pytest.mark.parametrize("later", [0.0, 0.02])
def test_a_killed_worker_changes_no_bit(
    client: Any, at: int, later: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    frame = rows()
    expected = model().fit(frame[FEATURES], frame["cost"])
    victim = process_ids(client)[0]

    def kill() -> None:
        threading.Timer(later, os.kill, (victim, signal.SIGKILL)).start()

    asked = disturbed(monkeypatch, at, kill)
    away, ledger = spread_out(), Ledger(epsilon=10.0, delta=1e-5)
    found = model(ledger).fit(away[FEATURES], away["cost"])
    assert asked[0] > 20
    assert victim not in process_ids(client)
    assert found.coef_.tobytes() == expected.coef_.tobytes()
    assert found.intercept_ == expected.intercept_
    assert len(ledger.entries()) == 1


def test_a_killed_worker_changes_nobody_of_the_persons(
    client: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    frame, away = rows(), spread_out()
    who = (frame["b"] * 10).round(), (away["b"] * 10).round()
    fitted = model().set_params(max_rows=2)
    expected = fitted.fit(frame[FEATURES], frame["cost"], groups=who[0]).coef_.tobytes()
    victims = process_ids(client)
    seat = Spread.seat

    def killed(self: Spread, *given: Any) -> None:
        seat(self, *given)
        os.kill(victims[0], signal.SIGKILL)

    monkeypatch.setattr(Spread, "seat", killed)
    disturbed(monkeypatch, 6, lambda: os.kill(victims[1], signal.SIGKILL))
    found = fitted.fit(away[FEATURES], away["cost"], groups=who[1])
    assert not set(victims) & set(process_ids(client))
    assert found.coef_.tobytes() == expected


def test_killed_before_the_charge(client: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Who dies while workers are compared is not asked again; the fit goes on, charged once."""
    frame, away, ledger = rows(), spread_out(), Ledger(epsilon=10.0, delta=1e-5)
    expected = model().fit(frame[FEATURES], frame["cost"])
    victim, run, asked = process_ids(client)[0], type(client).run, []

    def killed(self: Any, *given: Any, **options: Any) -> Any:
        asked.append(given)
        if len(asked) == 1:
            os.kill(victim, signal.SIGKILL)
        return run(self, *given, **options)

    monkeypatch.setattr(type(client), "run", killed)
    found = model(ledger).fit(away[FEATURES], away["cost"])
    assert victim not in process_ids(client)
    assert found.coef_.tobytes() == expected.coef_.tobytes()
    assert len(ledger.entries()) == 1


def test_killed_while_it_reads(client: Any) -> None:
    frame, away = rows(), spread_out(slowly)
    expected = model().fit(frame[FEATURES], frame["cost"])
    victim = process_ids(client)[1]
    threading.Timer(0.4, os.kill, (victim, signal.SIGKILL)).start()
    found = model().fit(away[FEATURES], away["cost"])
    assert victim not in process_ids(client)
    assert found.coef_.tobytes() == expected.coef_.tobytes()


def test_a_graph_that_gives_other_rows_the_second_time(
    client: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    def shaken(given: pd.DataFrame) -> pd.DataFrame:
        return given.sample(frac=1.0, random_state=int.from_bytes(os.urandom(4), "little"))

    away, ledger = spread_out(shaken), Ledger(epsilon=10.0, delta=1e-5)
    victims = process_ids(client)
    disturbed(monkeypatch, 6, lambda: [os.kill(v, signal.SIGKILL) for v in victims])
    before = model(ledger)
    with pytest.raises(InvalidInput, match="is not what it was"):
        before.fit(away[FEATURES], away["cost"])
    assert len(ledger.entries()) == 1
    assert not hasattr(before, "coef_")


def test_a_late_worker_that_rounds_in_another_way(
    processes: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It joins after the probe, and its first answer is refused."""

    def sabotage() -> None:
        from privtail.losses import LogisticLoss
        from privtail.trusted import callbacks
        from privtail.trusted.cluster.probe import probed

        values, derivatives = callbacks._OURS[LogisticLoss]
        callbacks._OURS[LogisticLoss] = (values, lambda *a: derivatives(*a) * (1 + 2**-52))
        probed.cache_clear()

    with processes(1) as client:
        away = spread_out()

        def replace() -> None:
            first = list(client.scheduler_info()["workers"])
            client.cluster.scale(2)
            client.wait_for_workers(2)
            late = [w for w in client.scheduler_info()["workers"] if w not in first]
            client.run(sabotage, workers=late)
            client.retire_workers(first)

        disturbed(monkeypatch, 6, replace)
        ledger = Ledger(epsilon=10.0, delta=1e-5)
        with pytest.raises(InvalidInput, match="computes other bits than another"):
            model(ledger).fit(away[FEATURES], away["cost"])
        assert len(ledger.entries()) == 1


def of_margins() -> CustomLoss:
    return CustomLoss(value=lambda m, y: abs(m - y), derivative=lambda m, y: 1.0 if m > y else -1.0)


def of_records() -> GeneralLoss:
    return GeneralLoss(
        value=lambda w, x, y: (w.ravel() @ x - y) ** 2,
        gradient=lambda w, x, y: (x * (w.ravel() @ x - y))[:, None],
    )


@pytest.mark.parametrize(
    ("loss", "name", "refused"),
    [
        (of_margins(), "_quietly_at_once", True), (of_records(), "_general", True),
        (of_margins(), "_general", False),
    ],
)  # fmt: skip
def test_a_late_worker_that_rounds_an_own_loss_in_another_way(
    processes: Any, monkeypatch: pytest.MonkeyPatch, loss: Any, name: str, refused: bool
) -> None:
    """What is called for each loss of a user is made wrong by a bit on the worker that is late."""

    def sabotage() -> None:
        from privtail.trusted import callbacks

        honest = getattr(callbacks, name)
        setattr(callbacks, name, lambda *given: honest(*given) * (1 + 2**-52))

    def loops_made() -> int:
        from privtail.trusted.losses.called import loop_of

        return int(loop_of.cache_info().misses)

    def descend(X: Any, y: Any) -> None:
        curator = Curator(X, y, budget=Budget(9.0, 1e-6), random_state=0, noise="simulated")
        mean, noise = ClippedMean(1.0), GaussianNoise(9.0)
        event = noise.event(curator.problem.gradient(mean))
        curator.open((Round(events=(event,), times=4),), loss)
        for batch in curator.rounds(Everyone(), 4):
            batch.gradient(loss, np.ones((X.shape[1], 1)), mean).release(noise)

    with processes(1) as client:
        away = spread_out()

        def replace() -> None:
            first = list(client.scheduler_info()["workers"])
            client.cluster.scale(2)
            client.wait_for_workers(2)
            late = [w for w in client.scheduler_info()["workers"] if w not in first]
            client.run(sabotage, workers=late)
            client.retire_workers(first)

        asked = disturbed(monkeypatch, 3, replace)
        if refused:
            with pytest.raises(InvalidInput, match="computes other bits than another"):
                descend(away[FEATURES], away["cost"])
            assert asked == [3]
        else:
            descend(away[FEATURES], away["cost"])
            assert set(client.run(loops_made).values()) == {2}, "one compilation of each function"


def test_a_late_worker_that_computes_alike(processes: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    frame = rows()
    expected = model().fit(frame[FEATURES], frame["cost"])
    with processes(1) as client:
        away = spread_out()

        def replace() -> None:
            first = list(client.scheduler_info()["workers"])
            client.cluster.scale(2)
            client.wait_for_workers(2)
            client.retire_workers(first)

        disturbed(monkeypatch, 6, replace)
        found = model().fit(away[FEATURES], away["cost"])
    assert found.coef_.tobytes() == expected.coef_.tobytes()


def test_rows_beyond_the_memory_of_a_worker(
    processes: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They are spilled while they are counted, and read again for each question."""
    rows_of_part, parts, d = 50_000, 32, 20

    def made(block_info: Any = None) -> Any:
        start = block_info[None]["array-location"][0][0]
        return np.random.default_rng(start).standard_normal((rows_of_part, d))

    chunks = ((rows_of_part,) * parts, (d,))
    X = da.map_blocks(made, chunks=chunks, dtype=float, meta=np.empty((0, d)))
    held = X.compute(scheduler="synchronous")
    expected = gradient(held, held[:, 0])
    again, read = Spread._again, []

    def counting(self: Spread, given: Any) -> Any:
        read.extend(start for _, _, _, starts, _ in given for start in starts)
        return again(self, given)

    monkeypatch.setattr(Spread, "_again", counting)
    monkeypatch.setattr(spread, "MEMORY", 0.3)
    with processes(1, memory_limit="800MB") as client:
        before = process_ids(client)
        assert np.array_equal(gradient(X, X[:, 0]), expected)
        assert process_ids(client) == before
        assert len(read) == parts


def test_a_worker_of_several_threads(processes: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """It gets one task a round, whatever the partitions, and sums on as many threads as it has."""
    frame, tasks = rows(), []
    gathered = Spread._gathered
    monkeypatch.setattr(
        Spread,
        "_gathered",
        lambda self, asked: [tasks.append(len(asked)), gathered(self, asked)][1],
    )

    def counting() -> None:
        from privtail.trusted.cluster import workers

        added = workers.added
        workers.threads_seen = []
        workers.added = lambda *given: [workers.threads_seen.append(given[-1]), added(*given)][1]

    def seen() -> set[int]:
        from privtail.trusted.cluster import workers

        return set(workers.threads_seen)

    expected = gradient(frame[FEATURES], frame["cost"])
    with processes(1, threads_per_worker=2) as client:
        client.run(counting)
        away = spread_out()
        assert np.array_equal(gradient(away[FEATURES], away["cost"]), expected)
        assert tasks[0] == 5
        assert set(tasks[1:]) == {1}
        assert list(client.run(seen).values()) == [{2}]


def gradient(X: Any, y: Any) -> Any:
    curator = Curator(X, y, budget=Budget(1.0, 1e-6), random_state=0, noise="simulated")
    mean, noise = ClippedMean(1.0, blocks=3), GaussianNoise(9.0)
    event = noise.event(curator.problem.gradient(mean))
    curator.open((Round(events=(event,)),), SquaredLoss())
    batch = next(curator.rounds(Everyone(), 1))
    return batch.gradient(SquaredLoss(), np.ones((X.shape[1], 1)), mean).release(noise)


def test_a_lost_scheduler_ends_the_fit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Charged, and nothing released."""
    where = tmp_path / "scheduler.json"
    command = [sys.executable, "-W", "ignore", "-m", "distributed.cli"]
    common = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    scheduler: Any = subprocess.Popen(
        [*command[:-1], "distributed.cli.dask_scheduler", "--port", "0", "--no-dashboard",
         "--scheduler-file", str(where)], **common,
    )  # fmt: skip
    worker: Any = subprocess.Popen(
        [*command[:-1], "distributed.cli.dask_worker", "--nthreads", "1", "--no-dashboard",
         "--death-timeout", "60", "--scheduler-file", str(where)], **common,
    )  # fmt: skip
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            client = distributed.Client(scheduler_file=str(where), timeout=60)
        client.wait_for_workers(1, timeout=60)
        away, ledger = spread_out(), Ledger(epsilon=10.0, delta=1e-5)
        disturbed(monkeypatch, 6, scheduler.kill)
        fitted = model(ledger)
        with pytest.raises(InvalidInput, match="The Dask cluster did not answer"):
            fitted.fit(away[FEATURES], away["cost"])
        assert len(ledger.entries()) == 1
        assert not hasattr(fitted, "coef_")
        client.close(timeout=1)
    finally:
        scheduler.kill()
        worker.terminate()
        worker.wait(30)
        scheduler.wait(30)


KILLED_DRIVER = """
import os, signal, sys, warnings
warnings.simplefilter("ignore")
import dask.dataframe, distributed, pandas
from privtail import Ledger
from privtail.linear_model import DPLinearRegression
from privtail.trusted.cluster.spread import Spread
address, data, ledger = sys.argv[1:]
client = distributed.Client(address)
asked, sums = [0], Spread.sums

def killed(self, question):
    asked[0] += 1
    if asked[0] == 6:
        os.kill(os.getpid(), signal.SIGKILL)
    return sums(self, question)

Spread.sums = killed
frame = dask.dataframe.from_pandas(pandas.read_parquet(data), npartitions=3)
model = DPLinearRegression(epsilon=2.0, ledger=Ledger(ledger))
model.fit(frame[["a", "b", "c"]], frame["cost"])
"""


def test_a_killed_driver_leaves_its_charge(client: Any, tmp_path: Path) -> None:
    """One charge in the ledger's file, and workers that answer the next driver to the bit."""
    place, data, frame = tmp_path / "ledger.jsonl", tmp_path / "rows.parquet", rows()
    frame.to_parquet(data)
    Ledger(place, epsilon=10.0, delta=1e-5)
    address = client.cluster.scheduler_address
    driver = subprocess.run(
        [sys.executable, "-c", KILLED_DRIVER, address, str(data), str(place)],
        check=False, capture_output=True, timeout=300,
    )  # fmt: skip
    assert driver.returncode == -signal.SIGKILL, driver.stderr.decode()[-2000:]
    assert driver.stdout == b""
    [entry] = Ledger(place).entries()
    assert entry.epsilon == pytest.approx(2.0, rel=1e-5)
    away = spread_out()
    found = model().fit(away[FEATURES], away["cost"])
    assert found.coef_.tobytes() == model().fit(frame[FEATURES], frame["cost"]).coef_.tobytes()
