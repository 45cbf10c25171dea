"""What code of a user shows beside its answers, and who may spend an allowance."""

from __future__ import annotations

import copy
import math
import os
import pickle
import signal
import threading
import time
import warnings
from _thread import interrupt_main
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pandas as pd
import pytest

from privtail.algorithms import ProximalGradient
from privtail.errors import BudgetExceeded, IncompatibleParts, NotReleased
from privtail.linear_model import DPGeneralizedLinearEstimator
from privtail.losses import CustomLoss, CutLoss, GeneralLoss, MultinomialLoss, TruncatedLoss
from privtail.robust_means import ClippedMean
from privtail.trusted import callbacks
from privtail.trusted.allowance import Allowance
from privtail.trusted.budget import Budget
from privtail.trusted.curator import Curator
from privtail.trusted.events import Round
from privtail.trusted.losses.called import by_record
from privtail.trusted.mechanisms.noise import GaussianNoise
from privtail.trusted.records.arrays import as_labels, as_numbers
from privtail.trusted.records.dense import Dense, DenseRows
from privtail.trusted.sampling import PoissonBatches

X = np.random.default_rng(0).normal(size=(50, 2))
ONE_STEP = ProximalGradient(steps=2, step_size=0.1, threshold=1.0)


def value(margin: float, y: float) -> float:
    return 0.5 * (margin - y) ** 2


def derivative(margin: float, y: float) -> float:
    if y > 8:
        with warnings.catch_warnings():
            warnings.simplefilter("always")
            warnings.warn(f"a secret: {y}", stacklevel=1)
        warnings.warn(f"a secret: {y}", stacklevel=1)
    return margin - y


def gradient(w: Any, x: Any, y: Any) -> Any:
    return x[:, None] * derivative(float(x @ w[:, 0]), y)


CUSTOM = CustomLoss(value=value, derivative=derivative)


class Own:
    """A loss of margins that is none of ours."""

    name, targets, outputs = "own", "real", 1
    convex, curvature, lipschitz = True, 1.0, np.inf

    def values(self, margins: Any, y: Any) -> Any:
        return np.array([value(m, t) for m, t in zip(margins[:, 0], y, strict=True)])

    def derivatives(self, margins: Any, y: Any) -> Any:
        return np.array([[derivative(m, t)] for m, t in zip(margins[:, 0], y, strict=True)])


LOSSES: dict[str, Any] = {
    "custom": CUSTOM,
    "general": GeneralLoss(value=lambda w, x, y: 0.0, gradient=gradient),
    "truncated": TruncatedLoss(loss=CUSTOM, bound=10.0),
    "own": Own(),
}


@pytest.mark.parametrize("name", LOSSES)
def test_what_a_loss_warns_of_a_record_is_not_shown(name: str) -> None:
    y = np.where(np.arange(50) == 49, 9.0, X[:, 0])
    model = DPGeneralizedLinearEstimator(
        LOSSES[name], algorithm=ONE_STEP, fit_intercept=False, noise="simulated", random_state=0
    )
    filters = list(warnings.filters)
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        model.fit(X, y)
    assert [str(w.message) for w in seen if "secret" in str(w.message)] == []
    assert warnings.filters == filters


def test_the_check_sees_the_warning() -> None:
    """Sabotage: the loss called by itself."""
    with pytest.warns(UserWarning, match="a secret: 9"):
        CUSTOM.derivatives(np.zeros((1, 1)), np.full(1, 9.0))


def test_what_a_function_of_a_part_warns_is_not_shown() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        point = callbacks.on_part(lambda x: [derivative(0.0, 9.0)], np.ones((2, 1)), None, 1)
    assert point == pytest.approx([-9.0])


def test_threads_leave_the_filters_as_they_were() -> None:
    filters = list(warnings.filters)

    def call(_: int) -> Any:
        return callbacks.core_loss(CUSTOM).derivatives(np.zeros((20, 1)), np.full(20, 9.0))

    with ThreadPoolExecutor(8) as pool:
        assert len(list(pool.map(call, range(200)))) == 200
    assert warnings.filters == filters


def fails(error: type[BaseException]) -> dict[str, Any]:
    """Losses that fail at one record, in plain Python alone."""

    def value(margin: float, y: float) -> float:
        return float(str(margin - y))

    def derivative(margin: float, y: float) -> float:
        if y > 8:
            raise error
        return float(str(margin - y))

    def gradient(w: Any, x: Any, y: Any) -> Any:
        return x[:, None] * derivative(float(x @ w[:, 0]), y)

    class Own:
        name, targets, outputs = "own", "real", 1
        convex, curvature, lipschitz = True, 1.0, np.inf

        def values(self, margins: Any, y: Any) -> Any:
            return np.array([value(m, t) for m, t in zip(margins[:, 0], y, strict=True)])

        def derivatives(self, margins: Any, y: Any) -> Any:
            return np.array([[derivative(m, t)] for m, t in zip(margins[:, 0], y, strict=True)])

    custom = CustomLoss(value=value, derivative=derivative)
    return {
        "custom": custom,
        "general": GeneralLoss(value=lambda w, x, y: 0.0, gradient=gradient),
        "truncated": TruncatedLoss(loss=custom, bound=10.0),
        "own": Own(),
    }


def fitted(loss: Any) -> Any:
    y = np.where(np.arange(50) == 49, 9.0, X[:, 0])
    model = DPGeneralizedLinearEstimator(
        loss, algorithm=ONE_STEP, fit_intercept=False, noise="simulated", random_state=0
    )
    return model.fit(X, y).coef_.tolist()


@pytest.mark.parametrize("threads", ["1", "3"])
@pytest.mark.parametrize("name", LOSSES)
def test_an_interrupt_of_a_loss_is_a_failure_of_its_record(
    name: str, threads: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PRIVTAIL_THREADS", threads)
    failures = [fitted(fails(error)[name]) for error in (ValueError, SystemExit)]
    assert fitted(fails(KeyboardInterrupt)[name]) == failures[0] == failures[1]


@pytest.mark.parametrize("name", LOSSES)
def test_an_interrupt_in_the_main_thread_is_caught(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Sabotage: callbacks that are called where Ctrl-C strikes too."""
    monkeypatch.setenv("PRIVTAIL_THREADS", "1")
    monkeypatch.setattr(callbacks, "apart", lambda call: call())
    with pytest.raises(KeyboardInterrupt):
        fitted(fails(KeyboardInterrupt)[name])


@pytest.mark.parametrize("threads", ["1", "3"])
def test_ctrl_c_ends_a_fit_while_a_loss_is_called(
    threads: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PRIVTAIL_THREADS", threads)
    usual = signal.signal(signal.SIGINT, signal.default_int_handler)  # ignored in a background job
    called, done = threading.Event(), threading.Event()

    def slow(margin: float, y: float) -> float:
        called.set()
        done.wait(30)
        return float(str(margin - y))

    def strike() -> None:
        called.wait(30)
        interrupt_main()
        time.sleep(0.3)
        done.set()

    hand = threading.Thread(target=strike)
    hand.start()
    try:
        with pytest.raises(KeyboardInterrupt):
            fitted(CustomLoss(value=slow, derivative=slow))
        hand.join()
    finally:
        signal.signal(signal.SIGINT, usual)


@pytest.mark.parametrize("read", [as_numbers, as_labels])
def test_a_signalling_nan_is_read_without_a_warning(read: Any) -> None:
    odd = np.array([0x7FA00000], np.uint32).view(np.float32)
    cells = pd.arrays.SparseArray(np.concatenate([np.ones(2, np.float32), odd]), fill_value=0)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert len(read(pd.Series(cells))) == 3


class Lengthening(Own):
    """A loss that writes into the table that it is fitted on while it is called."""

    def __init__(self, table: Any, column: Any) -> None:
        self.table, self.column = table, column

    def derivatives(self, margins: Any, y: Any) -> Any:
        self.table *= 1e9
        self.column *= 1e9
        return super().derivatives(margins, y)


def lengthened(custom: bool) -> float:
    """The length of a mean of gradients, each clipped to 1."""
    table, column = np.ones((4, 2)), np.full(4, 3.0)
    own = Lengthening(table, column)

    def derivative(margin: float, y: float) -> float:
        return float(str(own.derivatives(np.full((1, 1), margin), np.full(1, y))[0, 0]))

    loss = CustomLoss(value=value, derivative=derivative) if custom else own
    curator = Curator(table, column, budget=Budget(math.inf), intercept=False)
    noise = GaussianNoise(1e-6)
    curator.open((Round(events=(noise.event(curator.problem.gradient(ClippedMean(1.0))),)),))
    answer = curator.everyone().gradient(loss, np.zeros((2, 1)), ClippedMean(1.0))
    return float(np.linalg.norm(answer.release(noise)))


@pytest.mark.parametrize("custom", [True, False])
def test_a_loss_that_writes_into_the_rows_lengthens_none(custom: bool) -> None:
    assert 0.9 < lengthened(custom) < 1.001


def views(self: Dense, ids: Any) -> DenseRows:
    return DenseRows(self._X[ids])


@pytest.mark.parametrize("custom", [True, False])
def test_views_of_rows_that_are_written_to_are_caught(
    custom: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Dense, "rows", views)
    assert lengthened(custom) > 1e6


@pytest.mark.parametrize("copied", [copy.copy, copy.deepcopy])
def test_copies_of_an_allowance_are_the_same(copied: Any) -> None:
    allowance = Allowance(0.5, "replace_one", payer=os.getpid())
    other = copied(allowance)
    asked: dict[str, Any] = {"label": "fit", "epsilon": 1.0, "delta": 0.0, "plan": [], "rho": 0.5}
    allowance.reserve(neighbours="replace_one", **asked)
    with pytest.raises(BudgetExceeded):
        other.reserve(neighbours="replace_one", **asked)
    with pytest.raises(NotReleased):
        pickle.dumps(allowance)


def test_a_row_that_fails_does_not_change_how_others_are_rounded() -> None:
    """The attack: a product rounds a row by how many rows there are, and one that fails split them.

    Here what is said tells how many rows there are.
    """

    def gradient(w: Any, x: Any, y: Any) -> Any:
        if (x > 1e6).any():
            raise OverflowError
        return x + len(x) * 1e-9

    x = np.random.default_rng(0).normal(size=(30, 2))
    w, y = np.zeros(2), np.zeros(30)
    before = by_record(gradient, True, w, x, y, (2,))
    x[7, 1] = 1e9
    after = by_record(gradient, True, w, x, y, (2,))
    assert set(np.flatnonzero((before != after).any(axis=1))) == {7}
    assert np.isnan(after[7]).all()
    x[:] = 1e9
    assert np.isnan(by_record(gradient, True, w, x, y, (2,))).all()


def test_what_is_said_of_single_rows_alone_is_taken_row_by_row() -> None:
    def gradient(w: Any, x: Any, y: Any) -> Any:
        if len(x) > 1:
            raise ValueError
        return x

    x = np.arange(6.0).reshape(3, 2)
    assert np.array_equal(by_record(gradient, True, np.zeros(2), x, np.zeros(3), (2,)), x)


@pytest.mark.parametrize("outputs", [1, 2])
def test_a_loss_of_other_margins_is_refused_before_a_row_is_sampled(outputs: int) -> None:
    """The attack: the error counted the rows that secret coins had sampled, after the charge."""
    curator = Curator(X, X[:, 0], outputs=outputs, budget=Budget(math.inf, 0.1, "replace_one"))
    batches, mean = PoissonBatches(0.5), ClippedMean(1.0)
    events = (GaussianNoise(0.0).event(curator.problem.sampled(batches).gradient(mean)),)
    curator.open((Round(sampling=batches, events=events),))
    batch = next(curator.rounds(batches, 1))
    three = MultinomialLoss(classes=3)
    cut = CutLoss(loss=three, lowest=-1.0, highest=1.0)
    truncated = TruncatedLoss(loss=three, bound=1.0)
    for loss in (three, cut, truncated):
        with pytest.raises(IncompatibleParts, match=r"^Give Curator\(outputs=\.\.\.\) the margins"):
            batch.gradient(loss, np.zeros((2, outputs)), mean)
