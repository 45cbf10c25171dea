"""Records on a Dask cluster: the bits of one machine, and what is refused."""

from __future__ import annotations

import functools
import itertools
import subprocess
import sys
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import privtail
from privtail import compilation
from privtail.compilation import Compiled
from privtail.dask_collections import own_tasks
from privtail.errors import InvalidInput
from privtail.features import bins, cross, log, spline
from privtail.linear_model import (
    DPLinearRegression,
    DPLogisticRegression,
    DPPoissonRegressor,
    DPScaler,
)
from privtail.losses import LOSSES, GeneralLoss
from privtail.robust_means import BoundedMean, ClampedMean, ClippedMean
from privtail.trusted.batch import Batch
from privtail.trusted.budget import Budget
from privtail.trusted.cluster import spread
from privtail.trusted.cluster.spread import Spread
from privtail.trusted.curator import Curator
from privtail.trusted.dataset import Dataset
from privtail.trusted.events import Round
from privtail.trusted.ledger import Ledger
from privtail.trusted.maps import FeatureMap, PredictionRanges
from privtail.trusted.sampling import DisjointParts, Everyone, PoissonBatches, Sampling

dd = pytest.importorskip("dask.dataframe")
da = pytest.importorskip("dask.array")
dask = pytest.importorskip("dask")
delayed = dask.delayed
distributed = pytest.importorskip("distributed")
pytestmark = pytest.mark.filterwarnings("ignore::ResourceWarning")

N = 600
FEATURES = ["a", "b", "c"]
CUTS = {1: [0, N], 2: [0, 250, N], 7: [0, 0, 1, 90, 90, 400, 599, N]}
"""Ends of partitions; some of the seven are empty, or of one row."""
every_cut = pytest.mark.parametrize(
    "ends", [pytest.param(CUTS[k], id=str(k), marks=[pytest.mark.slow] * (k == 2)) for k in CUTS]
)
SECRET = "planted-cell"  # noqa: S105  a cell that must not show


def rows() -> pd.DataFrame:
    rng = np.random.default_rng(5)
    frame = pd.DataFrame(rng.standard_t(3, (N, 3)), columns=FEATURES, index=np.arange(N) // 4)
    frame["cost"] = 2 * frame["a"] + rng.standard_normal(N)
    frame["count"] = rng.poisson(np.exp(0.3 * frame["a"].clip(-2, 2)))
    frame["city"] = rng.choice(["Rome", "Oslo", "Bonn"], N)
    frame["sick"] = np.where(frame["cost"] > 0, "yes", "no")
    frame.loc[frame.index[::50], "b"] = np.nan
    frame.iloc[7, 0] = 1e308
    return frame


def spread_out(frame: Any, ends: list[int] = CUTS[7], meta: Any = None) -> Any:
    """The rows in partitions of unknown divisions, whose index repeats itself."""
    parts = [delayed(frame.iloc[a:b]) for a, b in itertools.pairwise(ends)]
    return dd.from_delayed(parts, meta=frame.iloc[:0] if meta is None else meta, verify_meta=False)


def bits(model: Any) -> bytes:
    return model.coef_.tobytes() + np.asarray(model.intercept_).tobytes()


def options(**others: Any) -> dict[str, Any]:
    return {"epsilon": 2.0, "noise": "simulated", "random_state": 0, **others}


@every_cut
def test_bits_of_a_frame(client: Any, ends: list[int]) -> None:
    here, away = rows(), spread_out(rows(), ends)
    expected = DPLinearRegression(**options()).fit(here[FEATURES], here["cost"])
    model = DPLinearRegression(**options()).fit(away[FEATURES], away["cost"])
    assert bits(model) == bits(expected)
    assert model.feature_names_in_.tolist() == FEATURES
    assert set(spread.ASSUMED) <= set(model.privacy_.assumptions)


def test_who_watches_is_told_that_workers_begin(client: Any) -> None:
    away, seen = spread_out(rows(), CUTS[2]), []
    model = DPLinearRegression(**options())
    with privtail.progress.watching(lambda *told: seen.append(told)):
        model.fit(away[FEATURES], away["cost"])
    assert seen[0] == (0, seen[-1][1], "workers")
    assert [done for done, _, _ in seen] == list(range(len(seen)))


def test_a_fit_reads_the_rows_as_often_as_its_plan_says(
    client: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    away, asked = spread_out(rows(), CUTS[2]), []
    ask = Spread._partials
    monkeypatch.setattr(Spread, "_partials", lambda *given: [asked.append(1), ask(*given)][1])
    model = DPLinearRegression(**options()).fit(away[FEATURES], away["cost"])
    assert len(asked) == model.plan_.passes
    assert model.plan_.bytes_per_pass == 8 * N * (len(FEATURES) + 1)


def test_all_workers_are_known(client: Any, held: Spread, monkeypatch: pytest.MonkeyPatch) -> None:
    """Some versions of Dask tell of five, unless asked for all."""
    told = distributed.Client.scheduler_info
    monkeypatch.setattr(
        distributed.Client, "scheduler_info", lambda self, n_workers=1: told(self, n_workers)
    )
    assert len(client.scheduler_info()["workers"]) == 1
    assert len(held._workers()) == 2


def test_bits_of_labels_counts_categories_and_means(client: Any) -> None:
    here, away = rows(), spread_out(rows())
    cities = {"city": ["Oslo", "Rome"]}
    for model, target in (
        (DPLogisticRegression(**options(), classes=["no", "yes"], categories=cities), "sick"),
        (DPLogisticRegression(**options(epsilon=8.0)), "sick"),
        (DPLogisticRegression(**options(), classes=["Oslo", "Bonn", "Rome"]), "city"),
        (DPPoissonRegressor(**options(), categories=cities), "count"),
    ):
        names = [*FEATURES, "city"] if model.categories else FEATURES
        expected = bits(model.fit(here[names], here[target]))
        assert bits(model.fit(away[names], away[target])) == expected
    for column in ("cost", "a"):
        one = privtail.private_mean(here[column], **options())
        other = privtail.private_mean(away[column], **options())
        assert float(one) == float(other)
    scaler = DPScaler(**options())
    expected = scaler.fit(here[FEATURES]).scale_.tobytes()
    assert scaler.fit(away[FEATURES]).scale_.tobytes() == expected


def test_bits_of_arrays(client: Any) -> None:
    frame = rows()
    X, y = frame[FEATURES].to_numpy(), frame["cost"].to_numpy()
    expected = bits(DPLinearRegression(**options()).fit(X, y))
    model = DPLinearRegression(**options())
    with privtail.workers(client):
        model.fit(da.from_array(X, chunks=(230, 2)), da.from_array(y, chunks=230))
    assert bits(model) == expected


def test_the_workers_that_are_named_compute(client: Any) -> None:
    away = spread_out(rows(), CUTS[2])
    with distributed.Client(client.cluster.scheduler_address) as last:
        assert Spread(away[FEATURES], None, None, None)._client is last
        with privtail.workers(client):
            assert Spread(away[FEATURES], None, None, None)._client is client
    with pytest.raises(InvalidInput, match=r"needs a dask.distributed.Client, not a str"):
        privtail.workers("tcp://127.0.0.1:8786")


def test_bits_of_files(client: Any, tmp_path: Path) -> None:
    """Dask would read small files of few columns as one, and those of X and y in other numbers."""
    here = rows()
    for i, part in enumerate(np.array_split(np.arange(N), 8)):
        here.iloc[part].reset_index(drop=True).to_parquet(tmp_path / f"part-{i}.parquet")
    away, model = dd.read_parquet(tmp_path), DPLinearRegression(**options())
    expected = bits(model.fit(here[FEATURES], here["cost"]))
    assert bits(model.fit(away[FEATURES], away["cost"])) == expected


def test_bits_of_exposures(client: Any) -> None:
    here, model = rows(), DPPoissonRegressor(**options())
    here["years"] = np.where(here["b"] > 0, here["b"], np.nan)
    away = spread_out(here)
    expected = bits(model.fit(here[FEATURES], here["count"], exposure=here["years"]))
    assert bits(model.fit(away[FEATURES], away["count"], exposure=away["years"])) == expected
    both = "X and exposure are both Dask collections, or neither"
    with pytest.raises(InvalidInput, match=both):
        model.fit(away[FEATURES], away["count"], exposure=here["years"])
    for X in (here[FEATURES], here[FEATURES].to_numpy()):
        for exposure in (away["years"], da.from_array(here["years"].to_numpy())):
            with pytest.raises(InvalidInput, match=both):
                model.fit(X, here["count"], exposure=exposure)
            with pytest.raises(InvalidInput, match=both):
                privtail.cross_validate(model, X, here["count"], epsilon=1.0, exposure=exposure)


def test_bits_of_declared_features(client: Any) -> None:
    here, away = rows(), spread_out(rows())
    declared = {
        "missing": "indicator", "drop": "first", "categories": {"city": ["Oslo", "Rome"]},
        "features": [bins("a", [-1, 1]), log("b", 5), cross("city", spline("c", [-2, 0, 2]))],
    }  # fmt: skip
    names = [*FEATURES, "city"]
    model = DPLinearRegression(**options(), **declared)
    expected = bits(model.fit(here[names], here["cost"]))
    said = model.predict(here[names])
    assert bits(model.fit(away[names], away["cost"])) == expected
    np.testing.assert_allclose(model.predict(away[names]).compute(), said, rtol=1e-12, atol=1e-14)
    X = here[FEATURES].to_numpy()
    model = DPLinearRegression(**options(), missing="indicator", features=[bins("x0", [-1, 1])])
    expected = bits(model.fit(X, here["cost"]))
    spread_X, y = da.from_array(X, chunks=(250, 2)), da.from_array(here["cost"], chunks=250)
    assert bits(model.fit(spread_X, y)) == expected


def test_rows_that_do_not_fit_are_read_again(client: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """A worker reads its partitions within one task, unless their tasks are not theirs alone."""
    monkeypatch.setattr(Spread, "_fits", lambda _: False)
    here, away = rows(), spread_out(rows(), list(range(0, N + 1, N // 12)))
    expected = privtail.private_mean(here["cost"], **options())
    for frame, tasks in (
        (away, spread.TASKS * 2), (away.persist(), 12), (away.shuffle(on_index=True), 12),
    ):  # fmt: skip
        held = Spread(frame[FEATURES], None, None, None)
        assert len(held._groups()) == tasks
        assert [i for _, places in held._groups() for i in places] == list(range(12))
        if frame is not away:
            assert held._unread is None
    for frame in (away, away.persist()):
        assert float(privtail.private_mean(frame["cost"], **options())) == float(expected)
    for frame in (here, away):
        found = privtail.private_mean(frame["cost"], groups=frame["city"], max_rows=9, **options())
        expected = found if frame is here else expected
    assert float(found) == float(expected)


def test_tasks_that_are_bound_to_workers_are_run_by_dask() -> None:
    one, other = delayed(len)([1]), delayed(len)([2])
    assert [len(tasks) for tasks in own_tasks([one, other], None) or ()] == [1, 1]
    assert own_tasks([one, one + other], None) is None
    assert own_tasks([one, one + other], one.key) is not None
    with dask.annotate(workers=["near the file"]):
        bound = delayed(len)([3])
    assert own_tasks([one, bound], None) is None


def test_partitions_of_one_worker_are_shared(client: Any) -> None:
    here, first = rows(), sorted(client.scheduler_info()["workers"])[:1]
    away = client.persist(spread_out(here), workers=first)
    held = Spread(away[FEATURES], away["cost"], None, None)
    distributed.wait(held._kept)
    shares = [sum(held.lengths[i] for i in places) for _, places in held._groups()]
    assert sorted(shares) == [290, 310]  # of 1, 89, 310, 199 and 1 rows
    model = DPLinearRegression(**options())
    expected = bits(model.fit(here[FEATURES], here["cost"]))
    assert bits(model.fit(away[FEATURES], away["cost"])) == expected


# Persons: 60 with ten rows each, in all partitions, and rows of nobody


def of_persons() -> pd.DataFrame:
    chance = np.random.default_rng(6)
    frame = rows().assign(person=chance.permutation(np.arange(N) % 60).astype(float))
    frame.iloc[::40, frame.columns.get_loc("person")] = np.nan
    return frame.assign(name=frame["person"].map("p{}".format, na_action="ignore"))


@every_cut
def test_bits_of_persons(client: Any, ends: list[int]) -> None:
    here, model = of_persons(), DPLinearRegression(**options(), max_rows=3)
    away = spread_out(here, ends)
    expected = bits(model.fit(here[FEATURES], here["cost"], groups=here["name"]))
    assert bits(model.fit(away[FEATURES], away["cost"], groups=away["name"])) == expected
    assert model.privacy_.unit == "one person, of whose rows at most 3 are used"


def test_bits_of_labels_and_arrays_of_persons(client: Any) -> None:
    here = of_persons()
    away, model = spread_out(here), DPLogisticRegression(**options(epsilon=8.0), max_rows=3)
    expected = bits(model.fit(here[FEATURES], here["sick"], groups=here["name"]))
    assert bits(model.fit(away[FEATURES], away["sick"], groups=away["name"])) == expected
    x, who = here["cost"].to_numpy(), here["person"].to_numpy()
    expected = privtail.private_mean(x, groups=who, max_rows=4, **options())
    x, who = (da.from_array(array, chunks=230) for array in (x, who))
    found = privtail.private_mean(x, groups=who, max_rows=4, **options())
    assert float(found) == float(expected)
    assert float(privtail.private_mean(x, groups=who, max_rows=5, **options())) != float(expected)


@pytest.mark.parametrize("sampling", [Everyone(), PoissonBatches(0.4), DisjointParts(3)])
def test_persons_are_sampled_as_on_one_machine(client: Any, sampling: Sampling) -> None:
    here = of_persons()
    away = spread_out(here)

    def counts(frame: Any) -> list[list[int]]:
        curator = Curator(
            frame[FEATURES], frame["cost"], groups=frame["name"], max_rows=2,
            budget=Budget(1.0, 1e-6), random_state=3, noise="simulated",
        )  # fmt: skip
        curator.open((Round(events=(), sampling=sampling, times=3),))
        return [
            [int(v) for v in batch.histogram([0, -1], [-1.0, 0.0, 1.0])._value]
            for batch in curator.rounds(sampling, 3)
        ]

    assert counts(away) == counts(here)


# Every question


def cubic(w: Any, x: Any, y: float) -> Any:
    return w[: len(x)].ravel() @ x - y**3


def cubic_gradient(w: Any, x: Any, y: float) -> Any:
    return np.append(x, 1.0)[: len(w), None] * np.sign(w.ravel()[: len(x)] @ x - y**3)


def questions_of(b: Batch, loss: Any) -> None:
    d, outputs = b.problem.rows, b.problem.outputs
    w = np.linspace(-1, 1, d * outputs).reshape(d, outputs)
    b.gradient(loss, w, ClippedMean(0.7, blocks=3))
    if isinstance(loss, GeneralLoss):
        b.means(ClampedMean(1.0, blocks=4))
        b.moments(1.7, target=True)
        b.histogram([0, -1], [-1.0, 0.0, 2.0])
        b.histogram([0, 1], [-1.0, 0.0, 2.0], pooled=True)
        b.cell_counts([0, 1], [-1.0, 0.0, 2.0])
        b.column_moments([0, 1])
        b.invalid_rows()
        return
    ranges = PredictionRanges.of(np.tile([-1.0, 1.0], (3, 1)), [-2.0, 2.0])
    b.derivatives(loss, w, ClippedMean(0.5))
    b.scores(loss, [w, -w], BoundedMean(2.0, blocks=2), ranges)
    b.improvement(loss, w, -w, ClampedMean(2.0), ranges)
    b.separations(loss, w, ClampedMean(1.0))
    b.derivative_norms(loss, w, [0.1, 1.0, 10.0])
    if outputs == 1:
        b.gradient_moments(loss, w, ClippedMean(0.7))


@pytest.fixture(scope="module")
def held(client: Any) -> Spread:
    frame = spread_out(rows())
    return Spread(frame[FEATURES], frame["count"], None, {})


@pytest.mark.parametrize("sampling", [Everyone(), PoissonBatches(0.4), DisjointParts(3)])
def test_every_question(held: Spread, sampling: Sampling, monkeypatch: pytest.MonkeyPatch) -> None:
    losses: tuple[Any, ...] = (*LOSSES, GeneralLoss(value=cubic, gradient=cubic_gradient))
    if not isinstance(sampling, Everyone):
        losses = losses[-2:]
    frame, sums, asked = rows(), Dataset.sums, 0

    def both(self: Dataset, question: Any) -> Any:
        nonlocal asked
        asked += 1
        expected = sums(self, question)
        for _ in range(2):  # a task may be run again: a Poisson batch has the same rows
            assert np.array_equal(held.sums(question), expected), question.term
        return expected

    monkeypatch.setattr(Dataset, "sums", both)
    for loss in losses:
        curator = Curator(
            frame[FEATURES], frame["count"], budget=Budget(1.0, 1e-6), random_state=3,
            intercept=True, noise="simulated", outputs=getattr(loss, "outputs", 1),
        )  # fmt: skip
        curator.open((Round(events=(), sampling=sampling),))
        map_ = FeatureMap.of(3, np.linspace(0.5, 2, 3), np.ones(3))
        questions_of(next(curator.rounds(sampling, 1, map_)), loss)
    assert asked > 10


# Partitions that are not what they announce


def test_other_types_in_one_partition(client: Any) -> None:
    """They are read as the collection announces them, cell by cell."""
    here = rows()
    odd = here.iloc[250:].astype({"a": object, "c": object})
    odd.iloc[3, 0], odd["c"] = SECRET, None
    frames = [here.iloc[:250], odd, here.iloc[:0].astype(object)]
    parts = [delayed(part, name=f"odd-{i}") for i, part in enumerate(frames)]
    away = dd.from_delayed(parts, meta=here.iloc[:0], verify_meta=False)
    here.iloc[253, 0], here.iloc[250:, 2] = np.nan, np.nan
    expected = DPLinearRegression(**options()).fit(here[FEATURES], here["cost"])
    model = DPLinearRegression(**options()).fit(away[FEATURES], away["cost"])
    assert bits(model) == bits(expected)


def test_categories_that_dask_found(client: Any) -> None:
    """Dask itself fails to take one column of a frame after ``categorize``."""
    here = rows()
    found = dd.from_pandas(here, npartitions=3).assign(
        count=lambda f: f["count"].astype("category")
    )
    for by, declared in {"city": ["Oslo", "Rome"], "count": [0, 1]}.items():
        known = found.categorize(columns=list({by, "count"}))
        counts = [
            privtail.private_count(X, by=by, categories=declared, **options()).to_dict()
            for X in (here, known, known[["a", by]])
        ]
        assert counts[1] == counts[2] == counts[0]


def test_other_categories_in_one_partition(client: Any) -> None:
    """Those that are declared count, whatever a partition's own type lists, and in which order."""
    here, declared = rows(), ["Oslo", "Rome"]
    lists = (["Rome", "Oslo", "Bonn"], ["Bonn", "Rome"], ["Lima"])
    ends = [0, 200, 400, N]
    frames = [
        here.iloc[a:b].assign(
            city=lambda part, few=listed: pd.Categorical(
                part["city"].where(part["city"].isin(few)), few
            )
        )
        for (a, b), listed in zip(itertools.pairwise(ends), lists, strict=True)
    ]
    parts = [delayed(part, name=f"listed-{i}") for i, part in enumerate(frames)]
    meta = here.iloc[:0].astype({"city": "category"})
    away = dd.from_delayed(parts, meta=meta, verify_meta=False)
    here["city"] = pd.concat([part["city"].astype(object) for part in frames])
    names, model = [*FEATURES, "city"], DPLinearRegression(**options())
    model.set_params(categories={"city": declared})
    expected = bits(model.fit(here[names], here["cost"]))
    assert bits(model.fit(away[names], away["cost"])) == expected


class Drawn:
    """A category that is another one each time."""

    asked = 0

    def __str__(self) -> str:
        Drawn.asked += 1
        return f"city {Drawn.asked}"


def test_what_is_declared_is_the_same_for_all_partitions(client: Any) -> None:
    frame = spread_out(rows())[["a", "city"]]
    reading = Spread(frame, None, None, {"city": [Drawn(), "Rome"]})._reading
    assert reading.categories is not None
    assert set(map(type, reading.categories["city"])) == {str}


def test_columns_are_left_out_by_the_types_that_are_announced(client: Any) -> None:
    here = rows()
    odd = here.astype({"a": object})
    odd.iloc[3, 0] = SECRET
    parts = [delayed(odd, name="announced-0"), delayed(here, name="announced-1")]
    away = dd.from_delayed(parts, meta=here.iloc[:0], verify_meta=False)
    found = privtail.summarize(away[["a", "city"]], **options(epsilon=50.0))
    assert found.left_out == ("city",)
    model = DPLinearRegression(**options()).fit(here[FEATURES], here["cost"])
    with pytest.raises(InvalidInput, match="rows in memory or in files"):
        privtail.evaluate(model, away[FEATURES], away["cost"], **options())


def test_a_failing_graph_quotes_no_cell(client: Any, caplog: pytest.LogCaptureFixture) -> None:
    frame = spread_out(rows().assign(a=SECRET), CUTS[1])
    away = frame.assign(a=frame["a"].map_partitions(lambda a: a.astype(float), meta=("a", float)))
    with pytest.raises(InvalidInput, match="A task failed on a Dask worker") as caught:
        privtail.private_mean(away["a"], **options())
    assert SECRET not in str(caught.getrepr(chain=True, showlocals=False))
    assert caught.value.__cause__ is None and caught.value.__context__ is None  # noqa: PT018
    assert SECRET not in caplog.text


def test_a_graph_that_fails_when_it_is_read_again_quotes_no_cell(
    client: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Spread, "_fits", lambda _: False)
    planted = SECRET + " of a second reading"

    def read(frame: pd.DataFrame, seen: Path) -> pd.DataFrame:
        if seen.exists():
            raise ValueError(planted)
        seen.touch()
        return frame

    parts = [delayed(read)(rows(), tmp_path / f"seen-{i}") for i in range(2)]
    away = dd.from_delayed(parts, meta=rows().iloc[:0], verify_meta=False)
    with pytest.raises(InvalidInput, match="A task failed on a Dask worker"):
        privtail.private_mean(away["cost"], **options())
    assert planted not in str(client.get_worker_logs()) + str(client.get_events())


def test_a_failing_answer_quotes_no_cell(client: Any) -> None:
    """Neither to the driver nor in the logs and events of the cluster."""

    def sabotage(text: str) -> None:
        from privtail.trusted.cluster import workers

        def fail(*_: Any) -> None:
            raise ValueError(text)

        workers.kept, workers._summed = workers._summed, fail

    def repair() -> None:
        from privtail.trusted.cluster import workers

        workers._summed = workers.kept

    away, planted = spread_out(rows(), CUTS[2]), SECRET + " of an answer"
    client.run(sabotage, planted)
    try:
        with pytest.raises(InvalidInput, match="A task failed on a Dask worker") as caught:
            privtail.private_mean(away["cost"], **options())
    finally:
        client.run(repair)
    assert planted not in str(caught.getrepr(chain=True, showlocals=False))
    logs = str(client.get_worker_logs()) + str(client.get_scheduler_logs())
    assert planted not in logs + str(client.get_events())


def test_nothing_shows_a_cell(held: Spread) -> None:
    futures = held._kept or []
    partial = held._partials(held_question())[0]
    shown = repr([held, held._reading, partial, *futures]) + str([f.key for f in futures])
    assert all(repr(value) not in shown for value in rows()["a"])
    assert repr(futures[0].result()) == "Held()"
    assert repr(partial).startswith("<privtail.trusted.cluster.workers.Partial object")


def held_question() -> Any:
    from privtail.trusted.deals import Deal, Listed
    from privtail.trusted.problem import Problem
    from privtail.trusted.questions import Means, Question

    problem = Problem(n=N, d=3)
    box = ClampedMean(1.0).range
    map_ = FeatureMap.of(3, np.ones(3))
    return Question(Means(box), (1, 3, 1), map_, problem, Listed(slice(0, N)), Deal(N, 1, b""))


# Refusals, before anything is charged


def refused(match: str, X: Any, y: Any, model: Any = None, **fit: Any) -> None:
    ledger = Ledger(epsilon=10.0, delta=1e-5)
    model = DPLinearRegression(**options(noise="exact"), ledger=ledger) if model is None else model
    with pytest.raises(InvalidInput, match=match):
        model.fit(X, y, **fit)
    assert not ledger.entries()


def test_what_is_not_in_equal_partitions_is_refused(client: Any) -> None:
    here, away = rows(), spread_out(rows())
    other = spread_out(rows(), [0, 0, 1, 90, 90, 400, 598, N])
    refused("In partition 5, X and y differ in rows: 199 and 198", away[FEATURES], other["cost"])
    refused(
        "X and y differ in partitions: 7 and 2",
        away[FEATURES],
        spread_out(here, CUTS[2])["cost"],
    )
    refused("both Dask collections, or neither", away[FEATURES], here["cost"])
    refused("both Dask collections, or neither", here[FEATURES], away["cost"])
    for groups, match in (
        (here["city"], "X and groups are both Dask collections"),
        (other["city"], "In partition 5, X and groups differ in rows: 199 and 198"),
        (spread_out(here, CUTS[2])["city"], "X and groups differ in partitions: 7 and 2"),
        (away[["city", "sick"]], "this table has 2"),
        (None, "max_rows=2 bounds the rows of one person"),
    ):
        persons = DPLinearRegression(**options(), max_rows=2)
        refused(match, away[FEATURES], away["cost"], groups=groups, model=persons)
    refused("both Dask", here[FEATURES], here["cost"], groups=away["city"], model=persons)
    nothing = spread_out(here, [0, 0, 0])
    refused("all partitions of X are empty", nothing[FEATURES], nothing["cost"])
    parts = [delayed(here), delayed(here.drop(columns="b"))]
    short = dd.from_delayed(parts, meta=here.iloc[:0], verify_meta=False)
    refused("no column 'b'|A task failed", short[FEATURES], short["cost"])


def test_what_needs_one_machine_is_refused(client: Any) -> None:
    away = spread_out(rows())
    X, y = away[FEATURES], away["cost"]
    refused("not numeric", away[[*FEATURES, "city"]], y)
    search = privtail.PrivateSearchCV(DPLinearRegression(), {"fit_intercept": [True, False]})
    refused("Searches and folds deal rows.*privtail.open_table", X, y, model=search)
    plain, ledger = DPLinearRegression(fit_intercept=False), Ledger(epsilon=10.0, delta=1e-5)
    with pytest.raises(InvalidInput, match=r"Searches and folds deal rows.*privtail.open_table"):
        privtail.cross_validate(plain, X, y, epsilon=1.0, ledger=ledger)
    assert not ledger.entries()
    for algorithm in ("trimmed-descent", "sample-and-aggregate"):
        smooth = DPLinearRegression(**options(epsilon=20.0), algorithm=algorithm)
        refused("algorithm='auto' works there", X, y, model=smooth)


def test_refusals_of_invalid_rows_where_they_are_asked_for(client: Any) -> None:
    here = rows()
    odd, away = spread_out(here), spread_out(here.assign(b=0.0))
    strict = DPLinearRegression(**options(), invalid="raise")
    refused("Input X contains NaN", odd[FEATURES], odd["cost"], model=strict)
    refused("Input y contains NaN", away[["a", "c"]], odd["b"], model=strict)
    expected = strict.fit(here[["a", "c"]], here["cost"])
    assert bits(strict.fit(away[["a", "c"]], away["cost"])) == bits(expected)
    few = DPLogisticRegression(**options(), invalid="raise", classes=["no", "maybe"])
    refused("not among the declared classes", away[["a", "c"]], away["sick"], model=few)


def test_the_driver_compiles_nothing(client: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """It sums no rows, and so needs neither Numba's memory nor its time."""

    def called(self: Any, *given: Any) -> Any:
        assert compilation._HERE.interpreted
        return self.function(*given)

    monkeypatch.setattr(Compiled, "__call__", called)
    away = spread_out(rows(), CUTS[2])
    DPLinearRegression(**options()).fit(away[FEATURES], away["cost"])
    DPLogisticRegression(**options(epsilon=8.0)).fit(away[FEATURES], away["sick"])
    cities = ["Oslo", "Bonn", "Rome"]
    DPLogisticRegression(**options(), classes=cities).fit(away[FEATURES], away["city"])


def test_a_worker_of_another_version_is_refused(client: Any) -> None:
    def renamed(version: str) -> None:
        import privtail

        privtail.__version__ = version

    away, before = spread_out(rows(), CUTS[2]), privtail.__version__
    client.run(renamed, "0.0.9")
    try:
        refused("another version of it than this process", away[FEATURES], away["cost"])
    finally:
        client.run(renamed, before)


def test_without_a_client() -> None:
    code = """
import pandas as pd, dask.dataframe as dd, privtail
ddf = dd.from_pandas(pd.DataFrame({"x": [1.0, 2.0]}), npartitions=1)
try:
    privtail.private_mean(ddf["x"], epsilon=1.0)
except privtail.errors.InvalidInput as error:
    assert "client = Client()" in str(error), error
else:
    raise AssertionError
"""
    subprocess.run([sys.executable, "-W", "ignore", "-c", code], check=True, timeout=120)


def test_workers_import_neither_ledger_nor_noise() -> None:
    code = """
import sys
import warnings
import privtail.trusted.cluster.workers
held = {"curator", "ledger", "mechanisms.samplers", "opening", "sensitive"}
assert not held & {name.removeprefix("privtail.trusted.") for name in sys.modules}
"""
    subprocess.run([sys.executable, "-c", code], check=True, timeout=120)


# Predictions


def test_predictions_are_made_when_they_are_computed(client: Any) -> None:
    here, away = rows(), spread_out(rows())
    model = DPLinearRegression(**options()).fit(here[FEATURES], here["cost"])
    found = model.predict(away[FEATURES])
    assert found.npartitions == 7
    series = found.compute()
    assert np.array_equal(series.to_numpy(), model.predict(here[FEATURES]), equal_nan=True)
    assert series.index.equals(here.index)
    labels = DPLogisticRegression(**options(), classes=["no", "yes"])
    labels.fit(here[FEATURES].to_numpy(), here["sick"])
    X = here[FEATURES].to_numpy()
    for method in ("predict", "predict_proba", "decision_function"):
        call = getattr(labels, method)
        lazy = call(da.from_array(X, chunks=(230, 2)))
        assert lazy.shape == call(X).shape
        assert repr(lazy.compute()) == repr(call(X))


def test_a_partition_without_a_category_is_no_warning() -> None:
    here = rows()[["a"]].assign(job=np.where(np.arange(len(rows())) < len(rows()) / 2, "cook", "x"))
    model = DPLinearRegression(**options(), categories={"job": ["cook", "clerk"]})
    model.fit(here, rows()["cost"])
    lazy = model.predict(spread_out(here))
    with warnings.catch_warnings(action="error"):
        found = lazy.compute(scheduler="synchronous")
    assert np.array_equal(found.to_numpy(), model.predict(here), equal_nan=True)


def test_what_is_no_table_of_dask_is_told_so() -> None:
    here, lazy = rows(), delayed(rows())[FEATURES]
    X, y, model = here[FEATURES], here["cost"], DPLinearRegression(**options())
    model.fit(X, y)
    fits = ((lazy, lazy["a"]), (lazy, spread_out(here)["cost"]), (X, lazy["a"]))
    for call in (lambda: model.predict(lazy), *(functools.partial(model.fit, *to) for to in fits)):
        with pytest.raises(InvalidInput, match=r"Delayed is no table|both Dask collections"):
            call()
    away = spread_out(here)
    with pytest.raises(InvalidInput, match=r"pass ddf\[features\]"):
        model.predict({name: away[name] for name in FEATURES})


# Sabotage


def test_a_worker_that_rounds_in_another_way_is_refused(client: Any) -> None:
    def sabotage() -> None:
        from privtail.losses import LogisticLoss
        from privtail.trusted import callbacks
        from privtail.trusted.cluster.probe import probed

        values, derivatives = callbacks._OURS[LogisticLoss]
        off = lambda *given: derivatives(*given) * (1 + 2**-52)  # noqa: E731
        callbacks._OURS[LogisticLoss] = (values, off)
        probed.cache_clear()

    def repair() -> None:
        from privtail.losses import LogisticLoss
        from privtail.trusted import callbacks
        from privtail.trusted.cluster.probe import probed

        callbacks._OURS[LogisticLoss] = LogisticLoss.rowwise
        probed.cache_clear()

    away = spread_out(rows(), CUTS[2])
    client.run(sabotage, workers=list(client.scheduler_info()["workers"])[:1])
    try:
        refused("computes other bits than another", away[FEATURES], away["cost"])
    finally:
        client.run(repair)


def test_a_worker_that_takes_other_logarithms_is_refused(client: Any) -> None:
    """Features are made where the rows are."""

    def sabotage() -> None:
        from privtail.trusted.cluster.probe import probed
        from privtail.trusted.records import encoded

        honest = encoded.xlogy
        encoded.xlogy = lambda *given: honest(*given) * (1 + 2**-52)
        probed.cache_clear()

    def repair() -> None:
        from scipy.special import xlogy

        from privtail.trusted.cluster.probe import probed
        from privtail.trusted.records import encoded

        encoded.xlogy = xlogy
        probed.cache_clear()

    away = spread_out(rows(), CUTS[2])
    client.run(sabotage, workers=list(client.scheduler_info()["workers"])[:1])
    try:
        refused("computes other bits than another", away[FEATURES], away["cost"])
    finally:
        client.run(repair)


def test_a_partition_that_changed_ends_the_fit(held: Spread) -> None:
    kept = held._checksums[5]
    held._checksums[5] = b"another"
    try:
        with pytest.raises(InvalidInput, match="is not what it was"):
            held.sums(held_question())
    finally:
        held._checksums[5] = kept
