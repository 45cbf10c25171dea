"""Defects that were found and mended, each with the smallest case that showed it.

Those that another file tests already are not repeated here.
"""

from __future__ import annotations

import functools
import math
import os
import re
import threading
import time
import warnings
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import Any, ClassVar

import numpy as np
import pytest
import scipy.sparse as sp

from privtail import open_table, private_count
from privtail.algorithms import ProximalGradient
from privtail.calibration import calibrated
from privtail.cli.accuracy import read_columns
from privtail.domains import Unconstrained
from privtail.errors import BudgetExceeded, IncompatibleParts, InvalidInput, NotPlanned
from privtail.linear_model import DPLinearRegression, DPLogisticRegression
from privtail.losses import (
    AbsoluteLoss,
    CustomLoss,
    CutLoss,
    GeneralLoss,
    LogisticLoss,
    LogTruncatedLoss,
    MultinomialLoss,
    PoissonLoss,
    SquaredLoss,
    TruncatedLoss,
    WeightedLoss,
)
from privtail.mean import private_mean
from privtail.robust_means import (
    BoundedMean,
    ClampedMean,
    ClippedMean,
    MallowsMean,
    SmoothedCatoniMean,
)
from privtail.statement import state
from privtail.trusted import callbacks, dataset, partitions, sensitive
from privtail.trusted.accountants import cost
from privtail.trusted.budget import Budget
from privtail.trusted.curator import Curator
from privtail.trusted.events import Event, Round
from privtail.trusted.files.cells import distinct
from privtail.trusted.files.streams import Stream
from privtail.trusted.files.table import TableFile
from privtail.trusted.ledger import Ledger
from privtail.trusted.losses.rowwise import Rowwise
from privtail.trusted.maps import FeatureMap
from privtail.trusted.means import Ball, Interval
from privtail.trusted.mechanisms.noise import GaussianNoise
from privtail.trusted.mechanisms.selection import NoisyTopK
from privtail.trusted.problem import Problem
from privtail.trusted.records import as_records, opened
from privtail.trusted.records.persons import Persons
from privtail.trusted.records.targets import Labels, Numbers, canonical_label
from privtail.trusted.sampling import DisjointParts
from privtail.trusted.sensitivity import Norms
from privtail.trusted.tables import person_ids

pandas = pytest.importorskip("pandas")
pa = pytest.importorskip("pyarrow")

import pyarrow.parquet as pq

NOISE, MEAN = GaussianNoise(9.0), ClippedMean(1.0)


def curate(x: Any, y: Any = None, mean: Any = MEAN, times: int = 1, **options: Any) -> Curator:
    """A curator with ``times`` means of the columns, paid for."""
    records = as_records(x)
    event = NOISE.event(Problem(n=records.n, d=records.d).means(mean))
    curator = Curator(x, y, budget=Budget(9.0, 1e-6), random_state=0, **options)
    curator.open((Round(events=(event,), times=times),))
    return curator


def units(answer: Any) -> list[float]:
    """The value that nobody may see, in real units."""
    return [float(v) * answer.sensitivity.unit for v in answer._value]


# Means, deals and indices


@dataclass(frozen=True)
class Asked:
    """A mean of somebody else."""

    range: Any
    blocks: Any = 1


@pytest.mark.parametrize("mean", [BoundedMean(1.0), Asked(Interval(1.0, one_signed=True))])
def test_a_one_signed_range_is_for_scores_alone(mean: Any) -> None:
    """Entries were clamped to [-1, 1] and billed as if to [0, 1]."""
    problem, batch = Problem(n=3, d=2), curate(np.ones((3, 2)), np.ones(3)).everyone()
    for ask in (
        lambda: problem.means(mean),
        lambda: problem.gradient(mean),
        lambda: batch.means(mean),
        lambda: batch.gradient(SquaredLoss(), np.zeros((2, 1)), mean),
    ):
        with pytest.raises(InvalidInput, match="scores"):
            ask()


def test_one_deal_asked_for_in_pieces_is_one_deal() -> None:
    """Every call of rounds() dealt anew, so that a record was seen ten times for the price of 1."""
    parts, n = DisjointParts(10), 1000
    curator = Curator(np.ones((n, 1)), budget=Budget(5.0, 1e-6), random_state=0)
    event = NOISE.event(curator.problem.sampled(parts).means(MEAN))
    curator.open((Round(sampling=parts, events=(event,), times=10),))
    seen = np.zeros(n, dtype=int)
    for _ in range(10):
        for batch in curator.rounds(parts, 1):
            seen[batch._sample.within(0, n)] += 1
            batch.means(MEAN).release(NOISE)
    assert (seen == 1).all()


@pytest.mark.parametrize("indices", [[-1], [0, -1], [1, 1], [True], [False, True], [0.0], [2], "0"])
def test_take_wants_distinct_whole_indices(indices: Any) -> None:
    answer = curate(np.ones((3, 2))).everyone().means(MEAN)
    with pytest.raises(InvalidInput, match="take needs"):
        answer.take(indices)
    assert answer.take([]).sensitivity.size == 0
    assert units(answer.take(np.array([1], np.uint8))) == units(answer)[1:]


def test_take_takes_the_indices_that_were_checked(monkeypatch: pytest.MonkeyPatch) -> None:
    """Another thread may write to the array: a coordinate that is taken twice costs more."""
    answer = curate(np.array([[0.1, 0.2]])).everyone().means(MEAN)
    indices, whole = np.array([0, 1]), units(answer)

    def written(seen: Any) -> Any:
        indices[:] = 1
        return set(seen)

    monkeypatch.setattr(sensitive, "set", written, raising=False)
    assert units(answer.take(indices)) == whole
    assert indices.tolist() == [1, 1]


@pytest.mark.parametrize("count", [2.5, 2.0, math.nan, True, "2", None])
def test_counts_are_whole_numbers(count: Any) -> None:
    """A round of 2.5 repetitions was billed as 2.5 and made without end."""
    event: dict[str, Any] = {"law": "gaussian", "scale": 9.0, "radius": 1.0, "diameter": 2.0}
    scores = Problem(n=3, d=1).scores(4, BoundedMean(1.0))
    for make in (
        lambda: Round(events=(), times=count),
        lambda: DisjointParts(count),
        lambda: Event(**event, coordinates=count),
        lambda: Event(**event, coordinates=1, picks=count),
        lambda: NoisyTopK(1.0, count).event(scores),
        lambda: Problem(n=3, d=1).means(Asked(Ball(1.0), count)),
        lambda: curate(np.ones((3, 1))).blocks(count),
    ):
        with pytest.raises((InvalidInput, TypeError)):
            make()


class Forgetful(Interval):
    """An author who forgot the square root of the size."""

    def norms(self, size: int, bits: int) -> tuple[Norms, Norms]:
        c = float(self.steps(bits))
        return Norms(c, c, c), Norms(2 * c, 2 * c, 2 * c)


class Flat(Ball):
    """The same for a ball."""


@pytest.mark.parametrize("range_", [Forgetful(1.0), Flat(1.0), Forgetful(1.0, one_signed=True)])
def test_a_range_is_one_whose_sensitivity_is_proved(range_: Any) -> None:
    problem = Problem(n=3, d=50)
    ask: list[Any] = [problem.means, problem.gradient, lambda mean: problem.scores(2, mean)]
    for question in ask[2:] if range_ == Forgetful(1.0, one_signed=True) else ask[:2]:
        with pytest.raises(IncompatibleParts, match="proved"):
            question(Asked(range_))


class Fickle:
    """A mean that is another one whenever it is asked."""

    def __init__(self) -> None:
        self.reads = {"range": 0, "blocks": 0}

    @property
    def range(self) -> Interval:
        self.reads["range"] += 1
        return Interval(10.0 ** self.reads["range"])

    @property
    def blocks(self) -> int:
        self.reads["blocks"] += 1
        return self.reads["blocks"]


@pytest.mark.parametrize("question", ["means", "gradient"])
def test_a_mean_is_read_once(question: str) -> None:
    """Else the sum is bounded by one range and billed by another."""
    mean, batch = Fickle(), curate(np.full((4, 1), 1e6), np.full(4, -1e6)).everyone()
    answer = (
        batch.means(mean)
        if question == "means"
        else batch.gradient(SquaredLoss(), np.zeros((1, 1)), mean)
    )
    assert mean.reads == {"range": 1, "blocks": 1}
    assert units(answer) == [10.0]


# Labels


@pytest.mark.parametrize(
    "make",
    [
        np.array,
        pandas.Series,
        lambda cells: pandas.Series(cells, dtype="boolean"),
        lambda cells: pa.chunked_array([cells]),
    ],
    ids=["numpy", "pandas", "nullable", "arrow"],
)
def test_a_column_of_booleans_gives_booleans(make: Any) -> None:
    labels = Labels(make([True, False, True]), 3)
    found = labels.restored(sorted(labels.counts()))
    assert [(v, type(v)) for v in found] == [(False, bool), (True, bool)]
    numbers = Labels([1, True, 0.0], 3)
    assert [type(v) for v in numbers.restored(sorted(numbers.counts()))] == [int, int]


@pytest.mark.parametrize("last", ["1", "1.0", "b", "", "2020-01-01", "true", "0x10"])
def test_no_cell_of_a_csv_decides_how_other_labels_are_written(last: str, tmp_path: Any) -> None:
    path = tmp_path / "t.csv"
    path.write_text("x,y\n" + "0,0\n0,1\n" * 300 + f"0,{last}\n")
    column = read_columns(TableFile(path), ["x"], {"y": ()})["y"]
    labels = Labels(column, len(column))
    frequent = [label for label, count in labels.counts().items() if count > 100]
    assert frequent == ["0", "1"]
    assert column.dtype == object
    assert "" not in labels.counts()


ODD = [
    pandas.NA, pandas.NaT, Decimal("sNaN"), Decimal("NaN"), np.zeros(2), np.zeros(0), np.ones(1),
    np.ones((2, 2)), np.datetime64("NaT"), np.float32("nan"), None,
]  # fmt: skip


@pytest.mark.parametrize("odd", ODD, ids=lambda odd: f"{type(odd).__name__} {odd!s:.5}")
def test_an_odd_cell_among_labels_is_missing(odd: Any) -> None:
    y = np.empty(5, dtype=object)
    y[:] = "a"
    y[3] = odd
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for cells in (y, list(y)):
            labels = Labels(cells, 5)
            labels.declare(("a", "b"))
            assert dict(labels.counts()) == {"a": 4}
            assert np.isnan(labels.rows(slice(0, 5))).tolist() == [0, 0, 0, 1, 0]
    assert not caught


@pytest.mark.parametrize("dtype", ["float32", "Float32", "float[pyarrow]", "float64"])
def test_declared_labels_meet_a_column_of_single_precision(dtype: str) -> None:
    labels = Labels(pandas.Series([0.1, 1.5, 0.3], dtype=dtype), 3)
    labels.declare((0.1, 1.5))
    assert np.array_equal(labels.rows(slice(0, 3)), [0, 1, np.nan], equal_nan=True)


def test_declared_labels_of_two_kinds_keep_their_kinds() -> None:
    x = np.random.default_rng(0).normal(size=(2000, 1))
    y = np.array(["a" if v > 0 else 1 for v in x[:, 0]], dtype=object)
    model = DPLogisticRegression(
        epsilon=5.0, classes=[1, "a"], noise="simulated", random_state=0
    ).fit(x, y)
    assert set(model.predict(x).tolist()) == {1, "a"}
    assert {type(v) for v in model.predict(x).tolist()} == {int, str}


# Losses of a user


class Theirs:
    """A loss of somebody else."""

    name, outputs, targets, convex = "theirs", 1, "real", False
    curvature = lipschitz = math.inf

    def values(self, margins: Any, y: Any) -> Any:
        return y

    def derivatives(self, margins: Any, y: Any) -> Any:
        return y[:, None]


@pytest.mark.parametrize("error", [ValueError, SystemExit, None])
def test_a_failing_record_does_not_empty_its_block(error: Any) -> None:
    """All of a block counted as 0, so that one record moved the sum by the block's size."""

    def gradient(w: Any, x: Any, y: Any) -> Any:
        if (y < 0).any() and error is not None:
            raise error
        return np.lib.scimath.sqrt(y)[:, None, None]

    loss = GeneralLoss(value=lambda w, x, y: y, gradient=gradient, trusted_rowwise=True)
    y = np.ones(8)
    y[0] = -1.0
    curator = curate(np.ones((8, 1)), y)
    answer = curator.everyone().gradient(loss, np.zeros((1, 1)), ClampedMean(1.0))
    assert units(answer) == pytest.approx([7 / 8])
    printed = str(state(curator))
    assert "'general' are pure" in printed
    assert "'general' is row-wise" in printed


QUESTIONS = {
    "gradient": lambda batch, loss, w: batch.gradient(loss, w, MEAN),
    "scores": lambda batch, loss, w: batch.scores(loss, [w], BoundedMean(1.0)),
    "improvement": lambda batch, loss, w: batch.improvement(loss, w, w, ClampedMean(1.0)),
    "derivative_norms": lambda batch, loss, w: batch.derivative_norms(loss, w, [1.0]),
    "derivatives": lambda batch, loss, w: batch.derivatives(loss, w, ClampedMean(1.0)),
    "separations": lambda batch, loss, w: batch.separations(loss, w, ClampedMean(1.0)),
    "gradient_moments": lambda batch, loss, w: batch.gradient_moments(loss, w, MEAN),
}
FUNCTIONS: dict[str, Any] = {"value": lambda m, y: m, "derivative": lambda m, y: m - y}


@pytest.mark.parametrize("question", QUESTIONS)
@pytest.mark.parametrize(
    "loss", [CustomLoss(**FUNCTIONS), Theirs(), SquaredLoss(), LogisticLoss()], ids=lambda x: x.name
)
def test_what_the_promise_rests_on_is_printed(loss: Any, question: str) -> None:
    curator = curate(np.ones((8, 1)), np.ones(8))
    QUESTIONS[question](curator.everyone(), loss, np.zeros((1, 1)))
    said = [text for text in state(curator).assumptions if "pure" in text]
    assert len(said) == (loss.name in {"custom", "theirs"})
    assert all(repr(loss.name) in text for text in said)


# A loss of somebody else sees one record at a time, however it is wrapped


class Onlooker:
    """A pure loss that adds up whatever block it is shown."""

    name, outputs, targets, convex = "onlooker", 1, "real", True
    curvature, lipschitz = 1.0, 1.0

    def __init__(self) -> None:
        self.seen: set[int] = set()

    def values(self, margins: Any, y: Any) -> Any:
        self.seen.add(len(y))
        return np.full(len(y), float((y > 0).any()))

    def derivatives(self, margins: Any, y: Any) -> Any:
        return self.values(margins, y)[:, None]

    @property
    def rowwise(self) -> Rowwise:
        """What a loss that holds it would call."""
        return Rowwise(lambda _, *block: self.values(*block), lambda _, *b: self.derivatives(*b))


class OnlookingNumber(float):
    """A parameter that is shown all that is divided by it."""

    __array_ufunc__ = None

    def __rtruediv__(self, block: Any) -> Any:
        return np.full(block.shape, float(np.ptp(block) > 0))


class OnlookingGeneral(GeneralLoss):
    """Its rows would be whole blocks."""

    trusted_rowwise = property(lambda self: False, lambda self, value: None)  # type: ignore[assignment]

    def gradients(self, w: Any, X: Any, y: Any) -> Any:
        return np.full((len(y), *w.shape), float((y > 0).any()))


def _with_an_attribute(loss: Any) -> Any:
    onlooker = Onlooker()
    for name in ("values", "derivatives"):
        object.__setattr__(loss, name, getattr(onlooker, name))
    return loss


def _weighted() -> Any:
    loss = WeightedLoss(loss=LogisticLoss(), weights=(1.0, 1.0))
    object.__setattr__(loss, "loss", Onlooker())
    return loss


def _general(w: Any, x: Any, y: Any) -> Any:
    return np.full(w.shape, float(np.any(y > 0)))


WRAPPED = {
    "plain": Onlooker,
    "truncated": lambda: TruncatedLoss(loss=Onlooker(), bound=2.0),  # type: ignore[arg-type]
    "of an instance": lambda: _with_an_attribute(SquaredLoss()),
    "truncated of an instance": lambda: TruncatedLoss(
        loss=_with_an_attribute(SquaredLoss()), bound=2.0
    ),
    "weighted": _weighted,
    "parameter": lambda: PoissonLoss(mean=OnlookingNumber(1.0)),
    "general": lambda: OnlookingGeneral(value=_general, gradient=_general),
}


def moved(loss: Any) -> float:
    """How far one record moves the mean gradient that it stands in, in records."""
    n = 8
    answers = []
    for last in (0.0, 1.0):
        y = np.zeros(n)
        y[-1] = last
        curator = curate(np.ones((n, 1)), y)
        answers.append(units(curator.everyone().gradient(loss, np.zeros((1, 1)), ClampedMean(1.0))))
    return n * abs(answers[0][0] - answers[1][0])


@pytest.mark.parametrize("loss", WRAPPED.values(), ids=list(WRAPPED))
def test_no_wrapper_hands_trust_to_the_loss_in_it(loss: Any) -> None:
    """A truncated loss of a user saw the block: one record moved the sum by n."""
    assert moved(loss()) <= 1
    curator = curate(np.ones((8, 1)), np.ones(8))
    curator.everyone().gradient(loss(), np.zeros((1, 1)), ClampedMean(1.0))
    assert any("pure" in text for text in state(curator).assumptions)


@pytest.mark.parametrize("name", ["truncated", "weighted", "of an instance"])
def test_a_core_that_believes_wrappers_is_caught(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def believe(loss: Any) -> Any:
        functions = (
            (lambda loss, *block: loss.values(*block)),
            (lambda loss, *block: loss.derivatives(*block)),
        )
        return tuple(functools.partial(callbacks._at_once, f, loss) for f in functions)

    monkeypatch.setattr(callbacks, "_of_margins", believe)
    assert moved(WRAPPED[name]()) == 8


def test_the_functions_called_are_those_of_the_type_at_import(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    honest = moved(SquaredLoss())
    monkeypatch.setattr(SquaredLoss, "derivatives", Onlooker().derivatives)
    assert moved(SquaredLoss()) == honest


@pytest.mark.parametrize(
    "loss",
    [
        LogisticLoss(),
        WeightedLoss(loss=LogisticLoss(), weights=(1.0, 1.0)),
        CutLoss(loss=LogisticLoss(), lowest=-9.0, highest=9.0),
        CutLoss(
            loss=WeightedLoss(loss=LogisticLoss(), weights=(1.0, 1.0)), lowest=-9.0, highest=9.0
        ),
    ],
    ids=lambda loss: loss.name,
)
def test_so_are_those_of_a_loss_that_another_holds(
    loss: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One record moved the sum by n: the loops of what is held were looked up at every block."""
    honest = moved(loss)
    monkeypatch.setattr(LogisticLoss, "rowwise", Onlooker().rowwise)
    assert moved(loss) == honest <= 1


@pytest.mark.parametrize("scale", [-1.0, -0.3])
def test_no_number_of_a_loss_lets_a_loop_read_beyond_its_table(scale: float) -> None:
    """A scale that was changed after its check read other memory: other rows, or nobody's."""
    loss = LogTruncatedLoss(scale=1.0)
    object.__setattr__(loss, "scale", scale)
    y = np.array([0.0, 0.5, 1.5, -2.0, 3.0, math.nan])
    values = loss.values(np.zeros((y.size, 1)), y) * scale
    assert ((values >= 0) & (values <= math.log(loss.order)) | np.isnan(values)).all()


def test_a_range_divides_by_a_plain_number() -> None:
    """A radius with a division of its own saw the losses of a block."""
    answers = []
    for last in (0.0, 1.0):
        y = np.zeros(8)
        y[-1] = last
        mean = Asked(Interval(OnlookingNumber(1.0), one_signed=True))
        batch = curate(np.ones((8, 1)), y).everyone()
        answers.append(units(batch.scores(AbsoluteLoss(), [np.zeros((1, 1))], mean))[0])
    assert 8 * abs(answers[0] - answers[1]) <= 1


# One charge, one release


class Slow(list[Any]):
    """Whoever looks here takes long enough to be overtaken."""

    def __getitem__(self, key: Any) -> Any:
        found = super().__getitem__(key)
        time.sleep(0.05)
        return found


def together(of: str, locked: bool) -> int:
    """How often four threads get what was paid for once (a release) or twice (a batch)."""
    owner: Any = curate(np.ones((3, 1)), times=2)
    act = owner.everyone
    if of == "batch":
        owner._cursor = Slow(owner._cursor)
    else:
        answer = owner.everyone().means(MEAN)
        act, owner = (lambda: answer.release(NOISE)), answer._opening
        owner._events = Slow(owner._events)
    if not locked:
        owner._lock = nullcontext()
    start, made = threading.Barrier(4), []

    def run() -> None:
        start.wait()
        try:
            made.append(act())
        except NotPlanned:
            return

    threads = [threading.Thread(target=run) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return len(made)


@pytest.mark.parametrize(("of", "paid"), [("release", 1), ("batch", 2)])
def test_threads_share_what_was_paid_for(of: str, paid: int) -> None:
    assert together(of, locked=True) == paid
    assert together(of, locked=False) > paid  # so the lock is what keeps them apart


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
@pytest.mark.parametrize("of", ["answer", "batch", "question"])
def test_a_child_releases_nothing_that_its_parent_has_paid_for(of: str) -> None:
    curator = curate(np.ones((3, 1)))
    batch = curator.everyone() if of != "batch" else None
    answer = batch.means(MEAN) if batch and of == "answer" else None

    def release() -> Any:
        asked = batch or curator.everyone()
        return (asked.means(MEAN) if answer is None else answer).release(NOISE)

    child = os.fork()
    if child == 0:
        code = 1
        try:
            release()
        except NotPlanned:
            code = 0
        finally:
            os._exit(code)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert release().shape == (1,)


def test_simulated_noise_and_public_deals_are_independent() -> None:
    """They were one stream: a block deal told the noise."""
    curator = curate(np.ones((3, 1)), noise="simulated")
    noise: Any = curator._sampler
    assert not set(curator._public.random(99)) & set(noise._rng.random(99))


# Containers


CELLS: list[Any] = [
    "no",
    "",
    b"x",
    None,
    math.nan,
    10**400,
    1j,
    np.complex128(1j),
    np.ones(1),
    [1.0],
    {},
]


@pytest.mark.parametrize("cell", CELLS, ids=lambda cell: f"{type(cell).__name__} {cell!s:.4}")
def test_lists_are_accepted_whatever_their_cells(cell: Any) -> None:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        targets = Numbers([1.0, cell, "3"], 3).rows(slice(0, 3))
        column = as_records({"a": [1, cell, True]}).rows(slice(0, 3)).X  # type: ignore[union-attr]
    assert not caught
    assert np.array_equal(targets, [1.0, math.nan, 3.0], equal_nan=True)
    assert np.array_equal(column, [[1.0], [math.nan], [1.0]], equal_nan=True)


@pytest.mark.parametrize(
    "cells", [[True, False], [1, 2], [1.5, 2.5], [Decimal(1), Decimal(2)]], ids=str
)
@pytest.mark.parametrize("library", ["pyarrow", "polars"])
def test_a_missing_cell_changes_no_verdict(cells: Any, library: str) -> None:
    made = []
    for last in (cells[1], None):
        if library == "pyarrow":
            frame = pa.table({"a": pa.array([cells[0], last], pa.array(cells).type)})
        else:
            polars = pytest.importorskip("polars")
            frame = polars.DataFrame({"a": polars.Series([cells[0], last], strict=False)})
        made.append(as_records(frame).rows(slice(0, 2)).X[:, 0])  # type: ignore[union-attr]
    assert made[0].tolist() == [float(v) for v in cells]
    assert np.array_equal(made[1], [float(cells[0]), np.nan], equal_nan=True)


def test_tables_of_arrow_are_tables() -> None:
    table = pa.table({"a": [1, 2], "c": ["u", None]})
    records = as_records(table, {"c": ["u", "v"]})
    assert records.rows(slice(0, 2)).X.tolist() == [[1, 1, 0], [2, 0, 0]]  # type: ignore[union-attr]


def garbled() -> Any:
    """Two cells of text, the second of which is not UTF-8."""
    offsets = pa.py_buffer(np.array([0, 1, 8], np.int32).tobytes())
    return pa.Array.from_buffers(pa.string(), 2, [None, offsets, pa.py_buffer(b"asecr\xff\xfet")])


@pytest.mark.parametrize("declared", [("a",), ("true", "false"), (1, 2), ()])
def test_bytes_that_are_no_text_show_nothing(declared: Any, tmp_path: Any) -> None:
    """An error of PyArrow quoted the cell."""
    pq.write_table(pa.table({"y": garbled()}), tmp_path / "t.parquet")
    file = TableFile(tmp_path / "t.parquet")
    assert read_columns(file, [], {"y": declared})["y"].tolist() == ["a", "secr��t"]
    with pytest.raises(InvalidInput, match="most of its first cells are not numbers"):
        read_columns(file, ["y"])
    assert Labels(garbled(), 2).counts() == {"a": 1, "secr��t": 1}
    series = pandas.Series(
        pandas.arrays.ArrowStringArray(pa.chunked_array([garbled().cast(pa.large_string())]))
    )
    (tmp_path / "t.csv").write_bytes(b"y\n" + b"a\n" * 2**20 + b"secr\xff\xfet\n")
    assert Labels(series, 2).counts() == {"a": 1, "secr��t": 1}
    rows = as_records({"y": series}, {"y": ["a"]}).rows(slice(0, 2))
    assert rows.X.tolist() == [[1.0], [0.0]]  # type: ignore[union-attr]
    for read in (lambda: read_columns(TableFile(tmp_path / "t.csv"), [], {"y": declared}),):
        with pytest.raises(InvalidInput, match="UTF-8") as caught:
            read()
        assert "secr" not in str(caught.value)
        assert caught.value.__suppress_context__


def broken(**parts: Any) -> sp.csr_matrix:
    X = sp.csr_matrix((np.ones(2), [0, 1], [0, 1, 2]), shape=(2, 3))
    for name, value in parts.items():
        setattr(X, name, np.array(value))
    return X


MALFORMED: dict[str, dict[str, Any]] = {
    "column too large": {"indices": [0, 7]},
    "column negative": {"indices": [0, -1]},
    "columns of doubles": {"indices": [0.0, 1.0]},
    "pointer too large": {"indptr": [0, 1, 9]},
    "pointers fall": {"indptr": [0, 2, 1]},
    "pointers fall, unsigned": {"indptr": np.array([0, 2, 1], np.uint32)},
    "pointers begin late": {"indptr": [1, 1, 2]},
    "pointers missing": {"indptr": [0, 2]},
    "no pointers": {"indptr": np.zeros(0, int)},
    "entries missing": {"data": [1.0]},
}


@pytest.mark.parametrize("name", MALFORMED)
def test_a_malformed_matrix_is_refused_before_the_charge(name: str) -> None:
    ledger = Ledger(epsilon=1.0, delta=1e-5)
    with pytest.raises(InvalidInput, match="malformed"):
        as_records(broken(**MALFORMED[name]))
    with pytest.raises(InvalidInput, match="malformed"):
        private_mean(broken(**MALFORMED[name]), epsilon=0.5, ledger=ledger)
    assert ledger.entries() == ()


class Liar(np.ndarray):
    """Claims rows that it does not have."""

    def __getitem__(self, key: Any) -> Any:
        return np.full((7, 1), 1e6)


@pytest.mark.filterwarnings("ignore::PendingDeprecationWarning")
def test_a_subclass_of_an_array_is_refused_unless_it_is_of_numpy() -> None:
    x = np.full((3, 1), 0.5)
    assert units(curate(np.asmatrix(x)).everyone().means(MEAN)) == [0.5]
    for read in (curate, lambda odd: Numbers(odd, 3), lambda odd: Labels(odd, 3)):
        with pytest.raises(
            InvalidInput, match=r"derived from ndarray of numpy.*numpy.asarray\(x\)"
        ):
            read(x.view(Liar))


def test_masked_arrays_are_refused() -> None:
    """What is masked was counted."""
    masked = np.ma.masked_array(np.ones(3), mask=[False, True, True])
    for make in (
        lambda: as_records(masked.reshape(-1, 1)),
        lambda: as_records({"a": masked}),
        lambda: as_records({"a": masked}, {"a": [1.0]}),
        lambda: Numbers(masked, 3),
        lambda: Labels(masked, 3),
    ):
        with pytest.raises(InvalidInput, match="filled"):
            make()


SHAPES = {
    "name twice": (pandas.DataFrame(np.ones((3, 2)), columns=["a", "a"]), "distinct"),
    "names no strings": (pandas.DataFrame(np.ones((3, 2)), columns=[1, "1"]), "strings"),
    "name twice in Arrow": (pa.table([pa.array([1]), pa.array([2])], ["a", "a"]), "distinct"),
    "column of two dimensions": ({"a": np.ones((3, 2))}, "one-dimensional"),
}


@pytest.mark.parametrize("name", SHAPES)
def test_tables_that_cannot_be_understood_are_refused(name: str) -> None:
    table, says = SHAPES[name]
    with pytest.raises(InvalidInput, match=says):
        as_records(table)


# Refusals


def test_non_finite_rows_can_be_refused_with_labels_still_to_buy() -> None:
    x = np.random.default_rng(0).normal(size=(3000, 2))
    model = DPLogisticRegression(epsilon=5.0, invalid="raise", noise="simulated", random_state=0)
    assert model.fit(x, (x[:, 0] > 0).astype(int)).classes_.tolist() == [0, 1]
    x[0, 0] = math.nan
    with pytest.raises(InvalidInput, match="NaN"):
        model.fit(x, (x[:, 1] > 0).astype(int))


class Picky(ProximalGradient):
    """Needs what no regularizer has."""

    needs: ClassVar[tuple[str, ...]] = ("minimize_linear",)


PICKY = Picky(steps=2, step_size=0.1, threshold=1.0)
X, Y = np.ones((40, 2)), np.arange(40) % 2
REFUSED: dict[str, Any] = {
    "half a block": lambda **o: private_mean(X, blocks=2.5, **o),  # type: ignore[arg-type]
    "no block": lambda **o: private_mean(X, blocks=math.nan, **o),  # type: ignore[arg-type]
    "centre of another size": lambda **o: private_mean(X, threshold=1.0, centre=[1, 2, 3], **o),
    "centre nowhere": lambda **o: private_mean(X, threshold=1.0, centre=math.nan, **o),
    "centre without threshold": lambda **o: private_mean(X, centre=1.0, **o),
    "sparse centre": lambda **o: private_mean(sp.csr_matrix(X), threshold=1.0, centre=1.0, **o),
    "domain": lambda **o: DPLinearRegression(algorithm=PICKY, **o).fit(X, Y),
    "domain of a classifier": lambda **o: DPLogisticRegression(
        algorithm=PICKY, classes=[0, 1], **o
    ).fit(X, Y),
    "domain with labels to buy": lambda **o: DPLogisticRegression(algorithm=PICKY, **o).fit(X, Y),
    "one class": lambda **o: DPLogisticRegression(classes=[0], **o).fit(X, Y),
    "classes twice": lambda **o: DPLogisticRegression(classes=[0, 1, 1.0], **o).fit(X, Y),
}


@pytest.mark.parametrize("name", REFUSED)
def test_a_refusal_is_free(name: str) -> None:
    ledger = Ledger(epsilon=1.0, delta=1e-5)
    with pytest.raises((InvalidInput, IncompatibleParts)):
        REFUSED[name](epsilon=0.5, ledger=ledger)
    assert ledger.entries() == ()


@dataclass(frozen=True)
class _Range:
    range: Any
    blocks: int = 1


@pytest.mark.parametrize("limit", [0.25, 1.0])
def test_scores_stay_in_the_range_whose_sensitivity_is_billed(limit: float) -> None:
    """A range with a limit below 1 was billed for that limit, and the losses went up to 1."""
    mean, x, y = _Range(Interval(1.0, limit=limit, one_signed=True)), np.ones((3, 1)), np.ones(3)
    problem, exact = Problem(n=3, d=1), GaussianNoise(0.0)
    answer = problem.scores(1, mean)
    curator = Curator(x * 1e308, y, budget=Budget(math.inf), random_state=0)
    curator.open((Round(events=(exact.event(answer),)),))
    (found,) = curator.everyone().scores(SquaredLoss(), [[[1.0]]], mean).release(exact)
    assert found == limit
    assert answer.radius.l2 * answer.unit * 3 == pytest.approx(limit)


@pytest.mark.parametrize(
    "odd",
    [
        {"kind": 2},
        {"kind": 2, "coefficients": (0.0,) * 23},
        {"kind": 3},
        {"limit": 2.0},
        {"limit": math.nan},
        {"limit": 0.0},
    ],
)
def test_no_interval_lets_a_kernel_read_beyond_its_coefficients(odd: Any) -> None:
    with pytest.raises(InvalidInput, match="An Interval needs"):
        Interval(1.0, **odd)


@pytest.mark.parametrize("kind", ["int8", "uint8"])
def test_a_full_dictionary_takes_a_missing_cell(kind: str, tmp_path: Any) -> None:
    """The place of a missing cell did not fit the indices of a dictionary: an error of one cell."""
    names = [f"v{i}" for i in range(128 if kind == "int8" else 256)]
    cells = [0, None, 1] * 200
    column = pa.DictionaryArray.from_arrays(pa.array(cells, kind), pa.array(names))
    file = _arrow_file(tmp_path, column)
    counts = _counts_of(file)
    assert counts == {"v0": 200, "v1": 200}


def _arrow_file(folder: Any, labels: Any) -> Any:
    """An Arrow file of one feature and these labels."""
    table = pa.table({"x": np.ones(len(labels)), "label": labels})
    with pa.ipc.new_file(str(folder / "a.arrow"), table.schema) as writer:
        writer.write_table(table)
    return folder / "a.arrow"


def _counts_of(path: Any) -> dict[Any, int]:
    """How often each label of the column ``label`` occurs, summed over the windows."""
    stream = Stream(TableFile(path), "label")
    counts: dict[Any, int] = {}
    for window in stream.windows(stream.target(())):
        part = window.open()[1]
        assert isinstance(part, Labels)
        for label, count in part.counts().items():
            counts[label] = counts.get(label, 0) + count
    return counts


@pytest.mark.parametrize("cell", [2**62, -(2**62), None, 0])
@pytest.mark.parametrize("kind", ["timestamp[us]", "date64[ms]", "time64[ns]"])
def test_a_date_out_of_range_is_a_label_like_others(cell: Any, kind: str, tmp_path: Any) -> None:
    """A year that Python has no date for raised OverflowError, after the charge."""
    typed = {"timestamp[us]": pa.timestamp("us"), "date64[ms]": pa.date64()}
    column = pa.array([0, 0, cell], typed.get(kind, pa.time64("ns")))
    file = _arrow_file(tmp_path, column)
    assert sum(_counts_of(file).values()) == (2 if cell is None else 3)


@pytest.mark.parametrize("others", [1, 9])
def test_the_size_of_a_dictionary_decides_no_label(others: int) -> None:
    """Decimals of a dictionary were numbers or text, as the dictionary was large or small."""
    values = pa.array([Decimal(i) for i in range(others)], pa.decimal128(9, 2))
    column = pa.DictionaryArray.from_arrays(pa.array([0, 0, 0], "int32"), values)
    found = distinct(column)
    assert canonical_label(found.values[found.positions[0]]) == 0


@pytest.mark.parametrize("kind", [pa.binary(), pa.large_binary(), pa.binary_view()], ids=str)
def test_bytes_that_are_no_text_are_labels(kind: Any, tmp_path: Any) -> None:
    cells = pa.array([b"a", b"\xff", None], pa.binary()).cast(kind)
    assert Labels(cells, 3).counts() == {"a": 1, "\ufffd": 1}
    assert _counts_of(_arrow_file(tmp_path, cells)) == {"a": 1, "\ufffd": 1}


_UNUSABLE = {
    "list": pa.array([[1], [2]]),
    "record": pa.array([{"a": 1}, {"a": 2}]),
    "interval": pa.array([(1, 2, 3), None], pa.month_day_nano_interval()),
    "uuid": pa.array([b"1" * 16, b"\xff" * 16], pa.binary(16)).cast(pa.uuid()),
}


@pytest.mark.parametrize("cells", _UNUSABLE.values(), ids=_UNUSABLE)
def test_lists_are_no_labels_and_that_is_said_before_the_charge(cells: Any, tmp_path: Any) -> None:
    """The error was Arrow's own; of uuids in memory it was raised if one cell is no UTF-8."""
    file = _arrow_file(tmp_path, cells)
    with pytest.raises(InvalidInput, match="not numbers or text"):
        Stream(TableFile(file), "label").target(())
    listed = pa.DictionaryArray.from_arrays(pa.array([1, 0]), cells)
    for values in (cells, pa.chunked_array([cells]), listed):
        with pytest.raises(InvalidInput, match="not numbers or text"):
            Labels(values, 2)
        with pytest.raises(InvalidInput, match="not numbers or text"):
            Persons(values, 2)


def test_times_of_an_unknown_zone_are_refused_before_the_charge(tmp_path: Any) -> None:
    """Arrow's own error was raised after the charge. As ids they are numbers, and serve."""
    cells = pa.array([1, 2], pa.timestamp("s", tz="Mars/Phobos"))
    said = "a time zone that this machine does not know"
    with pytest.raises(InvalidInput, match=rf"Column 'label'.*{said}.*days since"):
        Stream(TableFile(_arrow_file(tmp_path, cells)), "label").target(())
    for values in (cells, cells.dictionary_encode()):
        with pytest.raises(InvalidInput, match=said):
            Labels(values, 2)
    assert Persons(cells, 2).seats(np.arange(2), 1)[0].tolist() == [0, 1]
    ledger = Ledger(epsilon=1, delta=1e-6)
    frame = pa.table({"x": [1.0, 2.0], "when": cells})
    for table, by in ((frame, "when"), (open_table(_arrow_file(tmp_path, cells)), "label")):
        with pytest.raises(InvalidInput, match=said):
            private_count(table, by=by, categories=["2020"], epsilon=1, ledger=ledger)
    assert not ledger.entries()


_ALIKE = {
    "beyond doubles": pa.array([2**53 + 1, 2**53] * 3, pa.int64()),
    "unsigned": pa.array([2**64 - 1, 2**64 - 2] * 3, pa.uint64()),
    "decimals": pa.array([Decimal(2**53 + 1), Decimal(2**53)] * 3, pa.decimal128(30, 2)),
    "no UTF-8": pa.array([b"J\xfcrgen", b"J\xf6rgen"] * 3, pa.binary()).cast(
        pa.string(), safe=False
    ),
}


@pytest.mark.parametrize("container", ["file", "arrow", "dictionary"])
@pytest.mark.parametrize("name", _ALIKE)
def test_two_persons_are_never_taken_for_one(name: str, container: str, tmp_path: Any) -> None:
    """Ids of a file became doubles, and bytes U+FFFD: the seats of one hung on the other's rows."""
    ids = _ALIKE[name]
    if container == "file":
        pq.write_table(pa.table({"id": ids}), tmp_path / "a.parquet")
        groups = person_ids(TableFile(tmp_path / "a.parquet"), "id")
    else:
        groups = ids if container == "arrow" else ids.dictionary_encode()
    seats, leaders = Persons(groups, 6).seats(np.arange(6), 2)
    assert seats.tolist() == [0, 1, 2, 3]
    assert leaders.tolist() == [0, 1, 0, 1]


def test_bytes_are_ids_as_they_are() -> None:
    ids = np.array([b"\xff", b"\xfe", b"\xff", None], dtype=object)
    seats, leaders = Persons(ids, 4).seats(np.arange(4), 1)
    assert (seats.tolist(), leaders.tolist()) == ([0, 1], [0, 1])


def test_a_scratch_copy_is_that_of_its_classes(tmp_path: Any) -> None:
    """0 == False: the copy made for numbers was handed out for truths, or the other way."""
    file = tmp_path / "a.csv"
    file.write_text("x,y\n" + "1.5,1\n2.5,0\n" * 8)
    table = TableFile(file, scratch=tmp_path)
    for classes, least in (([0, 1], 0), ([False, True], -1)):
        targets = opened(table, "y", classes, None)[1]
        assert isinstance(targets, Labels)
        assert targets.codes(slice(None)).min() == least


def test_the_map_of_a_batch_is_checked_when_the_batch_is_made() -> None:
    """Kernels read it unchecked. A map that is refused opens no batch."""
    curator = curate(np.ones((4, 2)))
    for scales, offsets in (
        (np.ones(1), np.zeros(1)),
        (np.ones(2), np.zeros(1)),
        (np.array([1.0, -1.0]), np.zeros(2)),
        (np.array([1.0, math.inf]), np.zeros(2)),
        (np.ones(2), np.array([0.0, math.nan])),
    ):
        with pytest.raises(InvalidInput, match="scales"):
            curator.everyone(FeatureMap(scales, offsets))
    with pytest.raises(InvalidInput, match=re.escape("FeatureMap.of(d, scales, offsets)")):
        curator.everyone(np.ones(2))  # type: ignore[arg-type]
    curator.everyone(FeatureMap.of(2, [2.0, 3.0], [1.0, 0.0]))


def test_sparse_records_are_not_centred() -> None:
    """Whatever they hold: that is refused when the batch is made, which then is still there."""
    for x in (np.zeros((4, 2)), np.ones((4, 2))):
        curator = curate(sp.csr_matrix(x))
        with pytest.raises(InvalidInput, match="sparse matrix cannot be centred"):
            curator.everyone(FeatureMap.of(2, np.ones(2), [0.0, 1.0]))
        curator.everyone(FeatureMap.of(2, np.ones(2), [0.0, 0.0]))


def _columns_of(cells: list[int | None]) -> dict[str, Any]:
    polars = pytest.importorskip("polars")
    categories = sorted({cell for cell in cells if cell is not None})
    return {
        "polars": polars.Series(cells, dtype=polars.UInt64),
        "category": pandas.Series(pandas.Categorical(cells, categories=categories)),
        "categorical": pandas.Categorical(cells, categories=categories),
        "nullable": pandas.Series(cells, dtype="UInt64"),
        "arrow": pa.array(cells, pa.uint64()),
    }


@pytest.mark.parametrize("name", _columns_of([1]))
def test_a_missing_cell_leaves_the_others_whole(name: str) -> None:
    """One null turned all ids and labels into doubles: those beyond 2^53 became others."""
    cells = [2**64 - 1, None, 2**64 - 2, 2**64 - 1, 2**64 - 2]
    column = _columns_of(cells)[name]
    seats, leaders = Persons(column, 5).seats(np.arange(5), 5)
    assert (seats.tolist(), leaders.tolist()) == ([0, 2, 3, 4], [0, 2, 0, 2])
    assert Labels(column, 5).counts() == {2**64 - 1: 2, 2**64 - 2: 2}


_EXTREMES = [0.0, 5e-324, 1e-160, 1.0, -3.0, 1e77, 1e154, -1e308, 1.79e308, math.inf, math.nan]
_HEAVY_LOSSES: list[Any] = [
    SquaredLoss(),
    LogisticLoss(),
    PoissonLoss(),
    MultinomialLoss(classes=3),
    WeightedLoss(loss=LogisticLoss(), weights=(1e-300, 1e300)),
    CustomLoss(value=lambda m, y: 1e308 * m * m, derivative=lambda m, y: m / y),
]


def _questions(loss: Any, p: int) -> dict[str, Callable[[Any], Any]]:
    w, far, zero = (np.full((p, loss.outputs), v) for v in (0.5, 1e200, 0.0))
    own: dict[str, Callable[[Any], Any]] = {
        "moments of gradients": lambda b: b.gradient_moments(loss, far, ClippedMean(1e-200)),
        "moments of short gradients": lambda b: b.gradient_moments(loss, w, MallowsMean(1.0, 2.0)),
    }
    cuts = [1e-320, 1.0, 1e300]
    return {
        "clipped": lambda b: b.gradient(loss, far, ClippedMean(1e-200)),
        "clamped": lambda b: b.gradient(loss, w, ClampedMean(1e300)),
        "Catoni": lambda b: b.gradient(loss, w, SmoothedCatoniMean(1.0, 1.0)),
        "scores": lambda b: b.scores(loss, [w, far, zero], BoundedMean(1e-300)),
        "improvement": lambda b: b.improvement(loss, far, zero, ClampedMean(1e308)),
        "small improvement": lambda b: b.improvement(loss, w, far, ClampedMean(1e-320)),
        "moments": lambda b: b.moments(1e-200, target=True),
        "histogram": lambda b: b.histogram((0, -1), [-1e308, 0.0, 1e-320]),
        "votes": lambda b: b.histogram((0, 1), [0.0], pooled=True),
        "norms": lambda b: b.derivative_norms(loss, w, cuts),
        "clipped derivatives": lambda b: b.derivatives(loss, far, ClippedMean(1e-200)),
        "clamped derivatives": lambda b: b.derivatives(loss, w, ClampedMean(1e300)),
        "invalid": lambda b: b.invalid_rows(),
        **(own if loss.outputs == 1 else {}),
    }


@pytest.mark.parametrize("loss", _HEAVY_LOSSES, ids=lambda loss: loss.name)
def test_every_answer_is_a_sum_of_bounded_records(
    loss: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each record alone, all others missing: within the bounds, and the same bits as in company."""
    rng, n, d = np.random.default_rng(0), 14, 9
    x, y = rng.choice(_EXTREMES, (n, d)), rng.choice([0, 1, 2, *_EXTREMES], n)
    x[::2] = rng.normal(size=(n // 2, d))

    def ask(who: Any, question: Any) -> tuple[list[int], Any]:
        missing = ~np.isin(np.arange(n), who)
        seen_x, seen_y = x.copy(), y.copy()
        seen_x[missing], seen_y[missing] = math.nan, math.nan
        curator = Curator(
            seen_x, seen_y, budget=Budget(math.inf), random_state=0, intercept=True,
            outputs=loss.outputs,
        )  # fmt: skip
        curator.open((Round(events=()),))
        answer = question(curator.everyone(FeatureMap.of(d, np.full(d, 1.5), np.full(d, 0.25))))
        return answer._value.tolist(), answer.sensitivity

    for name, question in _questions(loss, d + 1).items():
        whole, bound = ask(np.arange(n), question)
        nobody = np.array(ask([], question)[0])
        alone = [np.array(ask([i], question)[0]) - nobody for i in range(n)]
        for change in ([int(v) for v in one] for one in alone):
            assert sum(map(abs, change)) <= bound.radius.l1, name
            assert sum(v * v for v in change) <= bound.radius.l2**2 * (1 + 1e-15), name
            assert max(map(abs, change)) <= bound.radius.linf, name
        assert (nobody + sum(alone)).tolist() == whole, name
        monkeypatch.setattr(partitions, "BLOCK_ROWS", 3)
        for threads in ("1", "3"):
            monkeypatch.setenv("PRIVTAIL_THREADS", threads)
            assert ask(np.arange(n), question)[0] == whole, name
        monkeypatch.undo()


@pytest.mark.parametrize("threads", ["1", "3"])
@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt])
@pytest.mark.parametrize("where", ["work", "source"])
def test_a_sweep_that_fails_gives_nothing_and_closes_its_source(
    where: str, error: Any, threads: str
) -> None:
    closed = []

    def shares() -> Any:
        try:
            for i in range(50):
                if (where, i) == ("source", 20):
                    raise error
                yield i
        finally:
            closed.append(True)

    def work(share: Any) -> Any:
        if (where, share) == ("work", 20):
            raise error
        return np.ones(1, np.int64)

    with pytest.raises(error):
        dataset.added(work, [shares()], (1,), int(threads))
    assert closed == [True]


@pytest.mark.parametrize("threads", [1, 2, 8])
def test_every_share_of_every_run_is_added_once(threads: int) -> None:
    """However threads meet: one that finds nothing left may not end what another still sums."""

    def run(size: int) -> Any:
        for i in range(size):
            time.sleep(1e-5 * (i % 3))
            yield i

    def work(share: Any) -> Any:
        time.sleep(1e-4 * (share % 2))
        return np.array([1, share], np.int64)

    sizes = (0, 1, 7, 30, 2)
    for some in ((), sizes[:1], sizes[1:2], sizes[3:4], sizes, sizes * 3):
        expected = [sum(some), sum(k * (k - 1) // 2 for k in some)]
        for _ in range(5):
            found = dataset.added(work, [run(size) for size in some], (2,), threads)
            assert found.tolist() == expected


def test_a_matrix_that_is_changed_during_a_fit_is_not_read() -> None:
    X = sp.csr_matrix(np.ones((6, 3)))
    curator = Curator(X, np.ones(6), budget=Budget(math.inf, 0.0), noise="simulated")
    algorithm = ProximalGradient(steps=2, step_size=0.1, threshold=1.0)
    multiplier = calibrated(curator, lambda m: algorithm.plan(m, curator.problem))
    X.indices[:] = 10**9
    with pytest.raises(InvalidInput, match="changed during the fit"):
        algorithm.run(curator, SquaredLoss(), Unconstrained(), multiplier)


# What was planned is what is released


def planned(event: Any, budget: Budget, **options: Any) -> Curator:
    """A curator of four ones and a plan of this one event."""
    curator = Curator(np.ones((4, 1)), budget=budget, **options)
    curator.open((Round(events=(event,)),))
    return curator


@pytest.mark.parametrize("neighbours", ["replace_one", "zero_out"])
def test_what_is_free_opens_nothing(neighbours: Any) -> None:
    """An event that no record moves costs nothing without noise; it matched any exact release."""
    free = Event(law="gaussian", scale=0, radius=0, diameter=0, coordinates=1, question="means")
    curator = planned(free, Budget(1e-3, 0.0, neighbours))
    with pytest.raises(NotPlanned):
        curator.everyone().means(MEAN).release(GaussianNoise(0.0))


def test_no_class_of_somebody_else_is_planned() -> None:
    """Equal to all others, an event or a sampling was billed as one thing and used as another."""

    class Same(Event):
        def __eq__(self, other: object) -> bool:
            return True

        __hash__ = None  # type: ignore[assignment]

    class Some(DisjointParts):
        def __ne__(self, other: object) -> bool:
            return False

    event = NOISE.event(Problem(n=4, d=1).means(MEAN))
    faint = Same(law="gaussian", scale=1e15, radius=1, diameter=1, coordinates=1)
    with pytest.raises(InvalidInput, match="derived"):
        Round(events=(faint,))
    with pytest.raises(InvalidInput, match="derived"):
        Round(sampling=Some(4), events=(event,), times=4)


def test_the_sizes_of_a_batch_cannot_be_exchanged() -> None:
    """With those of one row, a person's rows got the noise of one."""
    event = NOISE.event(Problem(n=4, d=1).means(MEAN))
    curator = planned(event, Budget(1.0, 1e-6), groups=["a"] * 4, max_rows=4)
    batch = curator.everyone()
    with pytest.raises(AttributeError):
        batch.problem = Problem(n=4, d=1)  # type: ignore[misc]


class Shrinking(float):
    """A number of which ever less is left."""

    factor = 1.0

    def __mul__(self, other: Any) -> Any:
        self.factor *= 1e-9
        return float(self) * self.factor * 1e9 * other


def test_a_multiplier_is_read_once() -> None:
    """Else the bill has one noise and the release another."""
    curator = planned(NOISE.event(Problem(n=4, d=1).means(MEAN)), Budget(2.0, 1e-6))
    found = curator.everyone().means(MEAN).release(GaussianNoise(Shrinking(9.0)))
    assert abs(float(found[0]) - 1) > 1e-6  # the chance of a false alarm is about 1e-7


class Free(int):
    """A number whose multiples are nothing."""

    def __rmul__(self, other: Any) -> Any:
        return 0


def test_counts_of_a_bill_are_plain_numbers() -> None:
    """Five picks were billed as none, and as few repetitions."""
    scores = Problem(n=4, d=9).means(ClampedMean(1.0))
    event = NoisyTopK(1.0, Free(5)).event(scores)
    honest = NoisyTopK(1.0, 5).event(scores)
    cheap = replace(honest, picks=Free(5))
    for plan in ((Round(events=(event,)),), (Round(events=(cheap,), times=Free(1)),)):
        assert cost(plan, "replace_one").epsilon(0.0) == cost(
            (Round(events=(honest,)),), "replace_one"
        ).epsilon(0.0)


def test_only_an_infinite_cost_lets_records_choose_a_threshold() -> None:
    """The budget of a fit was infinite, its ledger was not and added the cost of a finite one."""
    x = np.full((4, 1), 1e9)
    ledger = Ledger(epsilon=2.0, delta=1e-6)
    curator = Curator(x, np.ones(4), budget=Budget(math.inf, 1e-6), ledger=ledger)
    event = NOISE.event(curator.problem.gradient(ClippedMean(1.0)))
    curator.open((Round(events=(event,)),))
    assert 0 < ledger.spent[0] < 2
    with pytest.raises(InvalidInput, match="infinite threshold"):
        curator.everyone().gradient(SquaredLoss(), np.ones((1, 1)), ClippedMean(math.inf))
    curator = Curator(x, np.ones(4), budget=Budget(math.inf, 1e-6), ledger=ledger)
    event = NOISE.event(curator.problem.gradient(ClippedMean(math.inf)))
    with pytest.raises(InvalidInput, match="infinite threshold"):
        curator.open((Round(events=(event,)),))


@pytest.mark.parametrize("spent", [0, 1, 2])
def test_an_editor_that_takes_the_last_line_end_refunds_nothing(spent: int, tmp_path: Any) -> None:
    """The last plan counted as torn, and was cut off; a budget could even be exchanged."""
    path = tmp_path / "budget.jsonl"

    def charge(ledger: Ledger) -> None:
        ledger.reserve(label="fit", epsilon=0.4, delta=0.0, neighbours="replace_one", plan=[])

    for _ in range(spent):
        charge(Ledger(path, epsilon=1.0, delta=0))
    Ledger(path, epsilon=1.0, delta=0)
    path.write_bytes(path.read_bytes().removesuffix(b"\n"))
    assert len(Ledger(path).entries()) == spent
    with pytest.raises(InvalidInput, match="cannot be changed"):
        Ledger(path, epsilon=9.0)
    path.write_bytes(path.read_bytes().removesuffix(b"\n"))
    if spent < 2:
        charge(Ledger(path))
        assert len(Ledger(path).entries()) == spent + 1
    else:
        with pytest.raises(BudgetExceeded):
            charge(Ledger(path))
