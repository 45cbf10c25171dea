"""Table files give the same bits as memory, in bounded memory, and refuse only what is public."""

from __future__ import annotations

import copy
import os
import pickle
import platform
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import privtail
from privtail.errors import InvalidInput, NotReleased
from privtail.linear_model import DPLinearRegression, DPLogisticRegression
from privtail.losses import LogisticLoss, SquaredLoss
from privtail.published.accelerated_descent import AcceleratedDescent
from privtail.robust_means import BoundedMean, ClippedMean, SmoothedCatoniMean
from privtail.table_files import passes
from privtail.trusted import dataset, partitions
from privtail.trusted.budget import Budget
from privtail.trusted.curator import Curator
from privtail.trusted.events import Round
from privtail.trusted.files import formats, streams
from privtail.trusted.files.folders import Files
from privtail.trusted.files.table import TableFile
from privtail.trusted.maps import FeatureMap
from privtail.trusted.mechanisms.noise import GaussianNoise
from privtail.trusted.records.targets import Labels
from privtail.trusted.sampling import DisjointParts, Everyone, PoissonBatches

pa = pytest.importorskip("pyarrow")
pandas = pytest.importorskip("pandas")
pq = pytest.importorskip("pyarrow.parquet")

N = 5_000
JOBS = {"job": ["clerk", "cook"]}


def frame(n: int = N) -> Any:
    """Numbers of several types with odd cells, a category, two targets."""
    rng = np.random.default_rng(7)
    x = rng.standard_t(2, n)
    x[[0, 17, 4_000 % n]] = [np.inf, 1e308, 5e-324]
    z = rng.standard_normal(n)
    z[rng.random(n) < 0.05] = np.nan
    data = {
        "x": x,
        "count": rng.integers(-3, 2**40, n),
        "z": z,
        "job": rng.choice(["clerk", "cook", "spy", None], n),
        "true": rng.random(n) < 0.3,
    }
    cost = np.where(np.abs(x) < 1e300, x, 0) * 2 + rng.standard_t(3, n)
    cost[5] = np.nan
    late = np.where(cost > 0, "yes", "no").astype(object)
    late[9] = None
    return pandas.DataFrame({**data, "cost": cost, "late": late})


def written(folder: Path, kind: str, data: Any) -> Path:
    """The frame as a file; ``kind`` names format and layout."""
    form, _, layout = kind.partition("-")
    path = folder / f"{kind}.{form}"
    table = pa.Table.from_pandas(data, preserve_index=False)
    if form == "csv":
        data.to_csv(path, index=False)
    elif form == "parquet":
        pq.write_table(table, path, row_group_size=700 if layout == "groups" else len(data))
    elif layout == "stream":
        with pa.ipc.new_stream(path, table.schema) as writer:
            writer.write_table(table, max_chunksize=900)
    else:
        with pa.ipc.new_file(path, table.schema) as writer:
            writer.write_table(table, max_chunksize=None if layout == "whole" else 900)
    return path


FILES = ["parquet-groups", "parquet-whole", "csv", "arrow-chunks", "arrow-whole", "arrow-stream"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: Any) -> Path:
    found: Path = tmp_path_factory.mktemp("files")
    for kind in FILES:
        written(found, kind, frame())
    return found


def table(folder: Path, kind: str, **options: Any) -> TableFile:
    path = folder / f"{kind}.{kind.partition('-')[0]}"
    return privtail.open_table(path, categories=JOBS, **options)


@pytest.mark.parametrize("written", ["DELTA_BYTE_ARRAY", "DELTA_LENGTH_BYTE_ARRAY", "PLAIN", None])
@pytest.mark.parametrize("kind", [pa.string(), pa.large_string()])
def test_labels_of_parquet_however_they_are_written(
    tmp_path: Path, written: Any, kind: Any
) -> None:
    """Some writers turn from a dictionary to another way where cells are long."""
    cells = pa.table({"x": [1.0, 2.0, 3.0], "job": pa.array(["cook", "x" * 999, "clerk"], kind)})
    how = {} if written is None else {"use_dictionary": False, "column_encoding": {"job": written}}
    pq.write_table(cells, tmp_path / "t.parquet", **how)
    stream = streams.Stream(privtail.open_table(tmp_path / "t.parquet", categories=JOBS), None)
    (window,) = stream.windows(None)
    assert window.open()[0].rows(slice(0, 3)).X.tolist() == [[1, 0, 1], [2, 0, 0], [3, 1, 0]]


@pytest.fixture
def small_windows(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(formats, "WINDOW_ROWS", 257)
    monkeypatch.setattr(formats, "TOGETHER", 1)
    monkeypatch.setattr(formats, "RUN_ROWS", 1_000)
    monkeypatch.setattr(formats, "_READ_BYTES", 4_000)
    monkeypatch.setattr(partitions, "BLOCK_ROWS", 100)


SAMPLINGS = [Everyone(), PoissonBatches(0.02), DisjointParts(3)]


def answers(X: Any, y: Any) -> list[np.ndarray]:
    """Integer sums of every kind of question, on batches of every kind."""
    curator = Curator(
        X, y, budget=Budget(float("inf"), 1e-6), noise="simulated", random_state=3, intercept=True,
        categories=JOBS if isinstance(X, pandas.DataFrame) else None,
    )  # fmt: skip
    d = curator.problem.d
    map_ = FeatureMap.of(d, np.full(d, 0.5), np.full(d, 0.25))
    w = np.linspace(-1, 1, d + 1)[:, None]
    free = GaussianNoise(0.0).event(curator.problem.histogram(1, 1))
    curator.open(tuple(Round(sampling=s, events=(free,), times=8) for s in SAMPLINGS))
    found = []
    for sampling in SAMPLINGS:
        rounds = curator.rounds(sampling, 8, map_)
        loss = SquaredLoss()
        found += [
            next(rounds).gradient(loss, w, ClippedMean(2.0)),
            next(rounds).gradient(loss, w, SmoothedCatoniMean(1.0, 3.0, blocks=4)),
            next(rounds).means(ClippedMean(2.0, blocks=3)),
            next(rounds).derivatives(loss, w, ClippedMean(2.0, blocks=3)),
            next(rounds).histogram([0, 2, -1], [-1.0, 0.0, 1.0], pooled=True),
            next(rounds).moments(3.0, target=True),
            next(rounds).gradient_moments(loss, w, ClippedMean(2.0)),
            next(rounds).scores(loss, [w, 2 * w], BoundedMean(4.0)),
        ]
    return [answer._value for answer in found]


@pytest.fixture(scope="module")
def in_memory() -> list[np.ndarray]:
    data = frame().drop(columns="late")
    return answers(data.drop(columns="cost"), data["cost"])


def require_equal(found: list[np.ndarray], expected: list[np.ndarray]) -> None:
    for one, other in zip(found, expected, strict=True):
        assert np.array_equal(one, other)


@pytest.mark.parametrize("copied", [False, True], ids=["stream", "scratch"])
@pytest.mark.parametrize("kind", FILES)
def test_a_file_gives_the_bits_of_memory(
    folder: Path, kind: str, copied: bool, half: int, in_memory: Any, small_windows: None,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    threads = "13"[(list(FILES).index(kind) + copied + half) % 2]
    monkeypatch.setenv("PRIVTAIL_THREADS", threads)
    file = table(folder, kind, drop=["late"], scratch=folder if copied else None)
    require_equal(answers(file, "cost"), in_memory)
    assert sorted(p.stem for p in folder.iterdir()) == sorted(FILES)


def test_a_window_that_is_one_row_off_is_caught(
    folder: Path, in_memory: Any, small_windows: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    honest = partitions.moved
    monkeypatch.setattr(partitions, "moved", lambda ids, start: honest(ids, max(start - 1, 0)))
    file = table(folder, "parquet-groups", drop=["late"])
    with pytest.raises((AssertionError, InvalidInput, IndexError)):
        require_equal(answers(file, "cost"), in_memory)


def test_runs_whose_ids_begin_anew_are_caught(
    folder: Path, in_memory: Any, small_windows: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    honest, first = TableFile.runs, []
    monkeypatch.setattr(
        TableFile, "runs", lambda *of: [(first.append(i) or 0, run) for i, run in honest(*of)]
    )
    file = table(folder, "parquet-groups", drop=["late"])
    with pytest.raises((AssertionError, InvalidInput, IndexError)):
        require_equal(answers(file, "cost"), in_memory)
    assert sorted(set(first)) == list(range(0, N, 1_400))


def test_a_target_in_memory_goes_with_a_file(folder: Path, in_memory: Any) -> None:
    file = table(folder, "parquet-groups", drop=["late", "cost"])
    require_equal(answers(file, frame()["cost"]), in_memory)


@pytest.mark.parametrize("copied", [False, True], ids=["stream", "scratch"])
@pytest.mark.parametrize("kind", ["parquet-groups", "csv", "arrow-stream"])
def test_a_classifier_of_a_file_is_that_of_memory(
    folder: Path, kind: str, copied: bool, half: int
) -> None:
    classes = (None, ["no", "yes"])[(FILES.index(kind) // 2 + copied + half) % 2]
    options: Any = {"epsilon": 3.0, "noise": "simulated", "random_state": 0, "classes": classes}
    data = frame().drop(columns="cost")
    memory = DPLogisticRegression(categories=JOBS, **options).fit(
        data.drop(columns="late"), data["late"]
    )
    file = table(folder, kind, drop=["cost"], scratch=folder if copied else None)
    model = DPLogisticRegression(**options).fit(file, "late")
    assert np.array_equal(model.coef_, memory.coef_)
    assert model.classes_.tolist() == memory.classes_.tolist() == ["no", "yes"]
    if copied:
        again = DPLogisticRegression(**options).fit(file, "late")
        assert np.array_equal(again.coef_, memory.coef_)


@pytest.mark.parametrize("copied", [False, True], ids=["stream", "scratch"])
@pytest.mark.parametrize(
    ("column", "classes"),
    [
        (pa.array([True, False, None] * 400), [False, True]),
        (pa.array([1, 0, 3] * 400), [0, 1]),
        (pa.array([0.5, 0.1, -0.0] * 400, pa.float32()), [0.5, 0.1, 0]),
        (pa.array(["b", "a", None] * 400).dictionary_encode(), ["a", "b"]),
    ],
    ids=["bool", "int", "float32", "dictionary"],
)
def test_labels_of_every_type(
    tmp_path: Path, column: Any, classes: Any, copied: bool, small_windows: None
) -> None:
    data = pa.table({"x": np.arange(1200.0), "y": column})
    pq.write_table(data, tmp_path / "t.parquet", row_group_size=500)
    file = privtail.open_table(tmp_path / "t.parquet", scratch=tmp_path if copied else None)
    memory = Labels(column.to_pandas() if pa.types.is_dictionary(column.type) else column, 1200)
    memory._element = file.schema.element("y")
    memory.declare(tuple(classes))
    curator = Curator(file, "y", budget=Budget(1.0, 1e-6), classes=classes)
    codes = []
    for window in curator._data.windows(True):
        targets = window.open()[1]
        assert targets is not None
        codes.append(targets.rows(slice(0, window.stop - window.start)))
    assert np.array_equal(np.concatenate(codes), memory.rows(slice(0, 1200)), equal_nan=True)
    if copied:
        curator = Curator(file, "y", budget=Budget(1.0, 1e-6), classes=())
        assert curator._data.targets.counts() == memory.counts()  # type: ignore[union-attr]


def test_a_dictionary_entry_without_a_row_is_no_label(tmp_path: Path) -> None:
    column = pa.DictionaryArray.from_arrays(np.zeros(500, np.int32), ["seen", "ghost"])
    data = pa.table({"x": np.zeros(500), "y": column})
    with pa.ipc.new_file(tmp_path / "t.arrow", data.schema) as writer:
        writer.write_table(data)
    curator = Curator(
        privtail.open_table(tmp_path / "t.arrow"), "y", budget=Budget(1.0, 1e-6), classes=()
    )
    (window,) = curator._data.windows(True)
    assert window.open()[1].counts() == {"seen": 500}


# CSV


def csv_sums(folder: Path, text: str, **options: Any) -> np.ndarray:
    """All rows of a CSV as the kernels see them."""
    (folder / "t.csv").write_text(text)
    stream = streams.Stream(TableFile(folder / "t.csv", **options), None)
    rows = [
        w.open()[0].rows(slice(0, w.stop - w.start)).X
        for w in stream.windows(None)
    ]  # fmt: skip
    return np.vstack(rows)


@pytest.mark.parametrize("odd", ["?", "12 abc", "1,5", "", "NA", "0x1", "1_0", "--"])
@pytest.mark.parametrize("row", [0, 1_500, 1_999])
def test_an_odd_cell_drops_its_row_alone(
    tmp_path: Path, odd: str, row: int, small_windows: None
) -> None:
    cells = [f"{i}.5" for i in range(2_000)]
    expected = np.array(cells, dtype=float)
    cells[row], expected[row] = f'"{odd}"', np.nan
    text = "x,y\n" + "".join(f"{cell},1\n" for cell in cells)
    found = csv_sums(tmp_path, text, numeric=["x"] if row == 0 else ())
    assert np.array_equal(found[:, 0], expected, equal_nan=True)
    assert (found[:, 1] == 1).all()


def test_truths_of_a_csv_are_read_row_by_row(tmp_path: Path, small_windows: None) -> None:
    text = "x,b\n" + "1,true\n2,False\n" * 900 + "3,perhaps\n4,\n5,1\n"
    found = csv_sums(tmp_path, text)[:, 1]
    assert np.array_equal(found[:2], [1, 0])
    assert np.array_equal(found[-3:], [np.nan, np.nan, 1], equal_nan=True)


def test_a_messy_csv(tmp_path: Path) -> None:
    text = '\ufeff age ;"no, te";job\r\n 1 ;+2;"a\r\nb"\r\n1e3;.5;c;\r\n'.replace("c;", "c")
    found = csv_sums(tmp_path, text, categories={"job": ["a\r\nb"]})
    assert found.tolist() == [[1, 2, 1], [1000, 0.5, 0]]
    assert TableFile(tmp_path / "t.csv").names == ("age", "no, te", "job")


def test_labels_of_a_csv(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("x,y,zip\n" + "1,1,007\n2,0,7\n3,,\n" * 100)
    file = privtail.open_table(tmp_path / "t.csv", categories={"zip": ["007"]})
    for classes, declared in (((), {"0": 100, "1": 100}), ([0, 1], {0: 100, 1: 100})):
        curator = Curator(file, "y", budget=Budget(1.0, 1e-6), classes=classes)
        (window,) = curator._data.windows(True)
        records, targets = window.open()
        assert targets.counts() == declared
        assert records.rows(slice(0, 3)).X.tolist() == [[1, 1], [2, 0], [3, 0]]


# Passes and memory


@pytest.mark.parametrize("epsilon", [1.0, float("inf")])
@pytest.mark.parametrize("classes", [None, ["no", "yes"], 0], ids=["bought", "declared", "none"])
def test_passes_are_announced(
    folder: Path, epsilon: float, classes: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    if classes is None and epsilon == float("inf"):
        pytest.skip("finding labels costs budget")
    file = table(folder, "parquet-groups", drop=["late" if classes == 0 else "cost"])
    begun = []
    honest = file._format.runs
    monkeypatch.setattr(
        file._format, "runs", lambda *a: (begun.append(1), honest(*a))[1], raising=True
    )
    options: Any = {"epsilon": epsilon, "noise": "simulated", "random_state": 0}
    if epsilon == float("inf"):
        targets: Any = "real" if classes == 0 else "binary"
        options["algorithm"] = AcceleratedDescent(steps=40, targets=targets)
    if classes == 0:
        model: Any = DPLinearRegression(**options).fit(file, "cost")
    else:
        model = DPLogisticRegression(classes=classes, **options).fit(file, "late")
    plan = model.plan(N, 6, 2)
    assert len(begun) == passes(file, plan) == plan.passes
    assert f"{plan.passes} passes over {8e-9 * N * 7:.3g} GB" in plan.to_text()


def test_reading_ahead_is_bounded(
    folder: Path, small_windows: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PRIVTAIL_THREADS", "2")
    monkeypatch.setattr(formats, "WINDOW_ROWS", 20)
    monkeypatch.setattr(formats, "TOGETHER", 1)
    waiting, most, lock = [0], [0], threading.Lock()
    honest_read, honest_open = Files._counted, streams.Stream._opened

    def read(*arguments: Any) -> Any:
        for batch in honest_read(*arguments):
            with lock:
                waiting[0] += 1
                most[0] = max(most[0], waiting[0])
            yield batch

    def opened(*arguments: Any) -> Any:
        with lock:
            waiting[0] -= 1
        return honest_open(*arguments)

    monkeypatch.setattr(Files, "_counted", read)
    monkeypatch.setattr(streams.Stream, "_opened", opened)
    answers(table(folder, "parquet-whole", drop=["late"]), "cost")
    assert 0 < most[0] <= 4


# Refusals


def refused(make: Any) -> str:
    with pytest.raises(InvalidInput) as caught:
        make()
    assert "secret" not in str(caught.value)
    return str(caught.value)


def fit(X: Any, y: Any, classes: Any = None) -> Any:
    return Curator(X, y, budget=Budget(1.0, 1e-6), classes=classes)


def test_a_file_that_changes_is_refused(tmp_path: Path) -> None:
    path = written(tmp_path, "parquet-groups", frame(800))
    file = privtail.open_table(path, categories=JOBS, drop=["late"])
    curator = fit(file, "cost")
    path.write_bytes(path.read_bytes() + b" ")
    os.utime(path, ns=(1, 1))
    assert "Open it again" in refused(lambda: list(curator._data.windows(False)))
    assert "Open it again" in refused(lambda: list(curator._data.windows(False)))


def test_a_row_more_than_counted_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = written(tmp_path, "arrow-chunks", frame(2_000))
    file = privtail.open_table(path, categories=JOBS, drop=["late"])
    for count in (1_999, 2_001):
        monkeypatch.setitem(file._format.__dict__, "lengths", (count,))
        curator = fit(file, "cost")
        assert "Open it again" in refused(lambda c=curator: list(c._data.windows(False)))


TEXT = "a,b,job,when,y\n1,secret,secret,2020-01-01,secret\n"
REFUSED: dict[str, tuple[Any, list[str]]] = {
    "text columns": (
        lambda f: fit(f("t.csv", drop=["when"]), "y"), ["'b', 'job'", 'drop=["b"]'],
    ),
    "a date": (lambda f: fit(f("t.csv", drop=["b", "job"]), "y"), ["'when' of t.csv holds text"]),
    "a target of text": (
        lambda f: fit(f("t.csv", drop=["b", "job", "when"]), "y"), ["'y'", "classifier"],
    ),
    "no such target": (lambda f: fit(f("t.csv"), "z"), ["no column 'z'", "t.csv"]),
    "no column left": (
        lambda f: fit(f("t.csv", drop=["a", "b", "job", "when"]), "y"), ["t.csv needs a column"],
    ),
    "target among the categories": (
        lambda f: fit(f("t.csv", categories={"y": ["q"]}), "y"), ["'y' is the target"],
    ),
    "missing categories": (lambda f: f("t.csv", categories={"c": ["q"]}), ["no column 'c'"]),
    "missing numeric": (lambda f: f("t.csv", numeric=["c"]), ["no column 'c'"]),
    "missing drop": (lambda f: f("t.csv", drop=["c"]), ["no column 'c'"]),
    "categories of one string": (lambda f: f("t.csv", categories={"b": "q"}), ["list"]),
    "drop as one string": (lambda f: f("t.csv", drop="when"), ["drop", "list"]),
    "a name for a frame": (lambda f: fit(frame(100)[["x", "cost"]], "cost"), ["open_table"]),
    "a folder of files of many kinds": (lambda f: f("."), ["bad.arrow is no CSV file", "**/*.csv"]),
    "nothing": (lambda f: f("no.csv"), ["There is no file"]),
    "damaged": (lambda f: f("bad.arrow"), ["damaged Arrow file"]),
    "no room": (
        lambda f: fit(f("n.csv", scratch="gone"), None), ["scratch folder", "cannot be used"],
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
def test_refusals_name_the_mend_and_no_cell(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("t.csv").write_text(TEXT)
    Path("n.csv").write_text("a\n1\n")
    Path("bad.arrow").write_bytes(b"ARROW1\0\0secret" * 9)
    make, words = REFUSED[name]
    message = refused(lambda: make(privtail.open_table))
    for word in words:
        assert word in message


def test_a_scratch_folder_without_room_is_refused_before_and_during(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    needed = "needs 185,088 free bytes"

    def file() -> TableFile:
        return table(folder, "parquet-whole", drop=["late"], scratch=folder)

    def full(*_: Any) -> int:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(streams.shutil, "disk_usage", lambda _: type("Usage", (), {"free": 1000}))
        assert needed in refused(lambda: fit(file(), "cost"))
    with monkeypatch.context() as patch:
        patch.setattr(os, "pwrite", full)
        assert needed in refused(lambda: fit(file(), "cost"))
    assert sorted(p.stem for p in folder.iterdir()) == sorted(FILES)


def test_non_finite_rows_are_refused_when_asked(folder: Path) -> None:
    file = table(folder, "parquet-groups", drop=["late"])
    with pytest.raises(InvalidInput, match="NaN or infinity"):
        DPLinearRegression(invalid="raise").fit(file, "cost")


def test_a_file_and_its_stream_show_and_pickle_nothing(folder: Path) -> None:
    file = table(folder, "parquet-groups", drop=["late"])
    curator = fit(file, "cost")
    for thing in (file, curator._data.records, curator):
        assert "clerk" not in repr(thing)
        for take in (pickle.dumps, copy.copy):
            with pytest.raises(NotReleased):
                take(thing)


def test_means_of_a_file(folder: Path) -> None:
    options: Any = {"epsilon": 1.0, "noise": "simulated", "random_state": 0}
    data = frame()[["x", "z"]]
    path = folder / "csv.csv"
    file = privtail.open_table(path, drop=["late", "cost", "job", "true", "count"])
    assert np.array_equal(
        privtail.private_mean(file, **options).value, privtail.private_mean(data, **options).value
    )


def test_losses_of_labels_stream_too(folder: Path) -> None:
    file = table(folder, "parquet-groups", drop=["cost"])
    curator = Curator(
        file, "late", budget=Budget(float("inf"), 1e-6), classes=["no", "yes"], noise="simulated"
    )
    free = GaussianNoise(0.0).event(curator.problem.histogram(1, 1))
    curator.open((Round(events=(free,)),))
    w = np.zeros((curator.problem.rows, 1))
    value = curator.everyone().gradient(LogisticLoss(), w, ClippedMean(1.0))._value
    assert value.any()


@pytest.mark.parametrize("kind", ["parquet-groups", "csv"])
def test_persons_and_invalid_rows_of_a_file(folder: Path, kind: str, small_windows: None) -> None:
    found = []
    data = frame().drop(columns="cost")
    for X, y in (
        (table(folder, kind, drop=["cost"]), "late"),
        (data.drop(columns="late"), data["late"]),
    ):
        curator = Curator(
            X, y, budget=Budget(float("inf"), 1e-6), noise="simulated", random_state=0,
            classes=["no", "yes"], categories=None if isinstance(y, str) else JOBS,
            groups=np.arange(N) // 7, max_rows=3,
        )  # fmt: skip
        free = GaussianNoise(0.0).event(curator.problem.histogram(1, 1))
        curator.open((Round(sampling=PoissonBatches(0.3), events=(free,), times=2),))
        w = np.linspace(-1, 1, curator.problem.rows)[:, None]
        first, second = curator.rounds(PoissonBatches(0.3), 2)
        del first
        found.append(second.invalid_rows()._value)
        found.append(second.gradient(LogisticLoss(), w, ClippedMean(1.0))._value)
    assert np.array_equal(found[0], found[2])
    assert found[0] > 0
    assert np.array_equal(found[1], found[3])


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="needs glibc")
def test_blocks_of_a_sweep_take_memory_that_was_freed() -> None:
    """A block is 2 MB: from the system it would be 512 pages, each of them fetched by a fault."""
    dataset.keep_freed_memory()
    resource = pytest.importorskip("resource")
    before = 0
    for sweep in range(2):
        before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
        for _ in range(20):
            np.empty((2, 2**17)).fill(sweep)
    assert resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before < 512


@pytest.mark.parametrize(("cells", "rows"), [(10**6, 60), (100, 40), (10, 20)])
def test_windows_of_few_columns_are_decoded_together(
    folder: Path, monkeypatch: pytest.MonkeyPatch, cells: int, rows: int
) -> None:
    monkeypatch.setattr(formats, "WINDOW_ROWS", 20)
    monkeypatch.setattr(formats, "TOGETHER", 3)
    monkeypatch.setattr(formats, "TOGETHER_CELLS", cells)
    file = table(folder, "parquet-whole", drop=["late"])
    names = list(file.features("cost"))[:2]
    sizes = [batch.num_rows for _, run in file.runs(names, set()) for batch in run]
    assert max(sizes) == rows
    assert sum(sizes) == file.n
