"""Objects of outside code: what was checked and billed is what is asked."""

from __future__ import annotations

import numpy as np
import pytest

from privtail.losses import GeneralLoss, PoissonLoss
from privtail.trusted import callbacks
from privtail.trusted.batch import Batch
from privtail.trusted.dataset import Dataset
from privtail.trusted.deals import Listed
from privtail.trusted.maps import FeatureMap, PredictionRanges
from privtail.trusted.means import ClampedMean, ClippedMean, Interval
from privtail.trusted.opening import Opening
from privtail.trusted.problem import Problem
from privtail.trusted.records import opened
from privtail.trusted.records.persons import _identity
from privtail.trusted.sampling import DisjointParts, PoissonBatches


def batch(X, y):
    records, targets = opened(X, y, None, None)
    n, d = X.shape
    return Batch(
        Dataset(records, targets, bytes(32)), Problem(n=n, d=d), Listed(slice(0, n)),
        Opening((), None), map_=FeatureMap.of(d, np.ones(d)), everyone=True, private=True,
        assume=lambda _: None,
    )  # fmt: skip


def moved(ask, X, y, X2, y2):
    """How far a neighbour moves a sum, in the largest bill of one number."""
    one, other = ask(batch(X, y)), ask(batch(X2, y2))
    return np.abs(one._value - other._value).max() / one.sensitivity.diameter.linf


class EveryRecord(float):
    def __mul__(self, other):
        return 2**64 - 1


class FirstPart(int):
    def __rmod__(self, other):
        return 0


def test_samplings_hold_plain_numbers():
    assert type(PoissonBatches(EveryRecord(0.01)).rate) is float
    assert type(DisjointParts(FirstPart(100)).parts) is int


class Looks:
    def __array_ufunc__(self, *_, **__):
        raise AssertionError("it saw what it is compared with")


def test_ranges_are_copies():
    X, y = np.zeros((10, 2)), np.zeros(10)
    ranges = PredictionRanges(np.full((2, 2), np.inf), (Looks(), Looks()))
    with pytest.raises(TypeError):
        batch(X, y).improvement(
            PoissonLoss(), np.zeros((2, 1)), np.zeros((2, 1)), ClampedMean(1.0), ranges
        )


class OfAll:
    """Divides a block of records by what depends on all of them."""

    __array_ufunc__ = None

    def __bool__(self):
        return True

    def __rtruediv__(self, values):
        return np.full(values.shape, 1.0 if (np.abs(values) > 1e5).any() else 0.0)


class Swaps:
    """A mean that changes the loss while the question is asked."""

    blocks = 1

    def __init__(self, loss):
        self.loss = loss

    @property
    def range(self):
        object.__setattr__(self.loss, "mean", OfAll())
        return Interval(1.0)


def ask_with_swap(records):
    loss = PoissonLoss()
    return records.gradient(loss, np.zeros((2, 1)), Swaps(loss))


def test_a_loss_that_changes_after_its_check_moves_one_record_alone(monkeypatch):
    X, y = np.zeros((1_000, 2)), np.zeros(1_000)
    X[:, 0], y2 = 1.0, y.copy()
    y2[3] = 1e9
    assert moved(ask_with_swap, X, y, X, y2) <= 1
    monkeypatch.setattr(callbacks, "_copy", lambda loss: loss)
    monkeypatch.setattr(callbacks, "built_in", lambda loss: isinstance(loss, PoissonLoss))
    assert moved(ask_with_swap, X, y, X, y2) > 1, "the twin is caught"


def kinked(w, X, y):
    X = np.asarray_chkfinite(X)
    return (np.sign(X @ w[:, 0] - y)[:, None] * X)[:, :, None]


def test_a_cell_that_is_no_number_does_not_change_how_others_are_asked():
    """A block that raises is asked row by row, where sums are rounded otherwise: at a kink, 50."""
    rng = np.random.default_rng(0)
    X, w = rng.standard_normal((2_000, 50)), rng.standard_normal((50, 1))
    X[:, 0] = 1.0
    y = np.array([X[i : i + 1] @ w[:, 0] for i in range(len(X))])[:, 0]
    other = X.copy()
    other[7, 3] = np.nan
    loss = GeneralLoss(value=lambda w, x, y: 0 * y, gradient=kinked, trusted_rowwise=True)

    def ask(records):
        return records.gradient(loss, w, ClampedMean(1.0))

    assert moved(ask, X, y, other, y) <= 1


def transposed(w, X, y):
    residuals = (X @ w)[:, 0] - y
    return np.array([residuals * X[:, j] for j in range(X.shape[1])]).T[:, :, None]


def test_gradients_in_any_memory_order_are_summed():
    X = np.random.default_rng(0).standard_normal((100, 9))
    loss = GeneralLoss(value=lambda w, x, y: 0 * y, gradient=transposed, trusted_rowwise=True)
    answer = batch(X, X[:, 0].copy()).gradient(loss, np.zeros((9, 1)), ClippedMean(1.0))
    assert np.asarray(answer._value).any()


class NoHash(bytes):
    __hash__ = None


def test_a_person_is_named_by_plain_bytes():
    assert type(_identity(NoHash(b"a"))) is bytes
    assert _identity(NoHash(b"a")) == b"a"
