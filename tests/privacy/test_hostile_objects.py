"""Objects of outside code: what was checked and billed is what is asked."""

from __future__ import annotations

import enum
import math
import os
import sys
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta, timezone, tzinfo
from datetime import time as clock_time
from decimal import Decimal
from fractions import Fraction
from ipaddress import IPv4Address
from numbers import Integral
from types import SimpleNamespace
from uuid import UUID
from zoneinfo import ZoneInfo

import mpmath
import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from scipy import sparse

from privtail import Ledger, evaluate, private_mean, summarize
from privtail.compilation import interpreted
from privtail.errors import BudgetExceeded, IncompatibleParts, InvalidInput, NotPlanned
from privtail.linear_model import DPRidge
from privtail.losses import CutLoss, GeneralLoss, LogisticLoss, PoissonLoss, SquaredLoss
from privtail.robust_means import ClampedMean, ClippedMean
from privtail.schema.dialect import Dialect
from privtail.schema.encoding import Encoding
from privtail.schema.features import Bins, Cross, Log
from privtail.trusted import batch as batch_module
from privtail.trusted import callbacks, questions, sensitive
from privtail.trusted import records as records_module
from privtail.trusted.allowance import Allowance
from privtail.trusted.batch import Batch
from privtail.trusted.budget import Budget
from privtail.trusted.curator import Curator
from privtail.trusted.dataset import Dataset
from privtail.trusted.deals import Listed
from privtail.trusted.entries import Terms
from privtail.trusted.events import Event, Round
from privtail.trusted.files.streams import Stream
from privtail.trusted.files.table import TableFile
from privtail.trusted.folds import Folds
from privtail.trusted.losses import rowwise
from privtail.trusted.losses.loops import logistic_derivatives
from privtail.trusted.maps import FeatureMap, PredictionRanges
from privtail.trusted.means import Ball, CheckedMean, Interval, checked_mean
from privtail.trusted.mechanisms.noise import GaussianNoise
from privtail.trusted.mechanisms.selection import NoisyTopK
from privtail.trusted.opening import Opening
from privtail.trusted.problem import Problem
from privtail.trusted.records import arrays as arrays_module
from privtail.trusted.records import as_records, dense, opened
from privtail.trusted.records import persons as persons_module
from privtail.trusted.records import sparse as sparse_module
from privtail.trusted.records.arrays import require_apart
from privtail.trusted.records.persons import Persons, Seats, _identity
from privtail.trusted.records.targets import Labels, canonical_label
from privtail.trusted.row_errors import (
    ROWWISE_MODEL,
    FoldedModel,
    LinearModel,
    OutsideModel,
    Predicted,
)
from privtail.trusted.sampling import DisjointParts, Everyone, PoissonBatches
from privtail.trusted.search import BestTrial, TrialSearch
from privtail.trusted.smooth.aggregate import SampleAndAggregate
from privtail.trusted.smooth.questions import aggregate, trimmed_gradient
from privtail.trusted.smooth.trimmed import TrimmedMean

SIMULATED = {"noise": "simulated", "random_state": 0}


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


class Hides(PredictionRanges):
    """Ranges that seem to be none."""

    def __bool__(self):
        return False


def test_ranges_that_seem_to_be_none_are_copied():
    """Where such ranges were taken as they were, their ends saw the margins of a whole block."""
    X, y, w = np.zeros((10, 2)), np.zeros(10), np.zeros((2, 1))
    ranges = Hides(np.full((2, 2), np.inf), (Looks(), Looks()))
    with pytest.raises(TypeError):
        batch(X, y).improvement(PoissonLoss(), w, w, ClampedMean(1.0), ranges)


@pytest.mark.parametrize("shape", [(1, 2), (2, 2), (10, 2)])
def test_ranges_of_margins_are_as_many_as_the_margins(shape):
    """An end for each row would be one for a place in a block, and not for a record."""
    X, y, w = np.zeros((10, 2)), np.zeros(10), np.zeros((2, 1))
    ranges, mean = PredictionRanges(np.full((2, 2), np.inf), np.zeros(shape)), ClampedMean(1.0)
    if shape == (1, 2):
        batch(X, y).improvement(PoissonLoss(), w, w, mean, ranges)
        return
    with pytest.raises(InvalidInput, match="range"):
        batch(X, y).improvement(PoissonLoss(), w, w, mean, ranges)
    cut = CutLoss(loss=LogisticLoss(), lowest=(0.0,) * shape[0], highest=(1.0,) * shape[0])
    with pytest.raises(ValueError, match="broadcast"):
        batch(X, y).improvement(cut, w, w, mean)


class OfAll:
    """An end of margins that depends on a whole block of records."""

    def __array_ufunc__(self, ufunc, method, margins, *ends, **_):
        return np.full(margins.shape, 1.0 if (np.abs(margins) > 1e5).any() else 0.0)

    def __float__(self):
        return -9.0


class Swaps:
    """A mean that changes the loss while the question is asked."""

    blocks = 1

    def __init__(self, loss):
        self.loss = loss

    @property
    def range(self):
        object.__setattr__(self.loss, "lowest", OfAll())
        return Interval(1.0)


def ask_with_swap(records):
    loss = CutLoss(loss=LogisticLoss(), lowest=-9.0, highest=9.0)
    return records.gradient(loss, np.array([[1.0], [0.0]]), Swaps(loss))


def test_a_loss_that_changes_after_its_check_moves_one_record_alone(monkeypatch):
    X, y = np.zeros((1_000, 2)), np.zeros(1_000)
    X[:, 0] = 1.0
    X2 = X.copy()
    X2[3, 0] = 1e9
    assert moved(ask_with_swap, X, y, X2, y) <= 1
    monkeypatch.setattr(callbacks, "_copy", lambda loss: loss)
    monkeypatch.setattr(callbacks, "built_in", lambda loss: True)
    assert moved(ask_with_swap, X, y, X2, y) <= 1, "what is read is made a number"
    monkeypatch.setattr(rowwise, "_ends", lambda end, _: end)
    assert moved(ask_with_swap, X, y, X2, y) > 1, "the twin is caught"


def alike(kind, **own):
    """A class of somebody else that says that it is ``kind``, in a set and beside it."""

    class Says(type):
        def __hash__(cls):
            return hash(kind)

        def __eq__(cls, other):
            return other is kind or other is cls

    fields = getattr(kind, "__dataclass_fields__", {})
    return Says("Alike", (), {"__dataclass_fields__": fields, **own})


def test_no_class_passes_for_ours_by_saying_so(monkeypatch):
    """A mechanism that did released the exact mean; a model and a loss saw all rows at once."""
    seen = []

    def look(self, margins, y):
        seen.append(len(y))
        return np.zeros((len(y), 1))

    about = {"name": "odd", "outputs": 1, "targets": "binary", "lipschitz": 1.0, "curvature": 1.0}
    loss = alike(
        CutLoss, derivatives=look, values=look, lowest=property(lambda _: OfAll()), **about
    )()
    vars(loss).update(loss=LogisticLoss(), lowest=-9.0, highest=9.0)
    X, y = np.zeros((1_000, 2)), np.zeros(1_000)
    X[:, 0] = 1.0
    X2 = X.copy()
    X2[3, 0] = 1e9

    def ask(records):
        return records.gradient(loss, np.array([[1.0], [0.0]]), ClampedMean(1.0))

    assert moved(ask, X, y, X2, y) <= 1
    assert set(seen) == {1}
    assert "pure" in str(callbacks.core_loss(loss).assumptions)

    noise = alike(GaussianNoise)()
    with pytest.raises(IncompatibleParts, match="opened by one of"):
        batch(X, y).means(ClampedMean(1.0)).release(noise)
    with pytest.raises(InvalidInput, match="A model must be"):
        Predicted(X, y, alike(OutsideModel)())
    with pytest.raises(InvalidInput, match="no class derived"):
        Round(sampling=alike(PoissonBatches)(), events=())
    for feature in (Bins, Log):
        with pytest.raises(InvalidInput, match="features takes names"):
            Encoding(features=[alike(feature)()])
    monkeypatch.setattr(sensitive, "is_one_of", lambda value, kinds: type(value) in kinds)
    monkeypatch.setattr(sensitive, "replace", lambda mechanism: mechanism)
    with pytest.raises(AttributeError, match="event"):
        batch(X, y).means(ClampedMean(1.0)).release(noise)


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


class Truths:
    """What is true or false as it is asked for."""

    def __init__(self, *answers):
        self.answers = list(answers)

    def __bool__(self):
        return self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]


def test_a_histogram_is_pooled_for_its_bill_and_its_counts_alike(monkeypatch):
    X = np.zeros((50, 4))
    X2 = X.copy()
    X2[3] = 5.0

    def ask(records):
        pooled = Truths(True, True, True, False, True)
        return records.histogram(range(4), [1.0], pooled)

    assert moved(ask, X, X[:, 0], X2, X[:, 0]) <= 1
    monkeypatch.setattr(batch_module, "bool", lambda x: x, raising=False)
    assert moved(ask, X, X[:, 0], X2, X[:, 0]) > 1, "the twin is caught"


class Cheap(str):
    """Text that its bill takes for another law than its release does."""

    __slots__ = ()
    __hash__ = str.__hash__

    def __eq__(self, other):
        return other in ("noisy_max", "gaussian") and not str.__eq__(self, "")

    def __ne__(self, other):
        return not self == other


def test_events_hold_plain_values():
    event = Event(
        law=Cheap("gaussian"), scale=1.0, radius=1.0, diameter=2.0, coordinates=1,
        one_signed=Truths(True, False), question=Cheap("gradient"),
    )  # fmt: skip
    assert type(event.law) is type(event.question) is str
    assert event.one_signed is True
    with pytest.raises(TypeError):
        Event(law=Looks(), scale=1.0, radius=1.0, diameter=2.0, coordinates=1)


class Either(str):
    """A relation of neighbours that is replace-one where it is read and zero-out in the bill."""

    __slots__ = ()
    __hash__ = str.__hash__

    def __eq__(self, other):
        return str.__eq__(other, "zero_out")


def test_a_budget_is_billed_for_the_relation_that_it_says():
    budget = Budget(1.0, 1e-6, Either("replace_one"))
    assert type(budget.neighbours) is str
    assert budget.neighbours == "zero_out"  # what it is billed as
    assert type(Terms(1.0, 1e-6, neighbours=Either("replace_one")).neighbours) is str


class Composes(str):
    """A composition that is basic where a limit is read, and Gaussian where costs are added."""

    __slots__ = ()
    __hash__ = str.__hash__

    def __eq__(self, other):
        limits = sys._getframe(1).f_code.co_name == "limits"
        return str.__eq__(other, "basic" if limits else "gdp")


def test_a_ledger_composes_in_one_way():
    """Squares of Gaussian costs were held against a limit of epsilons: 60 means of .25 were one."""
    terms, honest = (Terms(1.0, 1e-4, composition=c) for c in (Composes("basic"), "gdp"))
    assert type(terms.composition) is str
    assert terms.limits == honest.limits


class OneOfAll(int):
    __array_ufunc__ = None

    def __gt__(self, ranks):
        raise AssertionError("it saw which rows belong together")


def test_problems_hold_plain_numbers():
    problem = Problem(
        n=OneOfAll(10), d=OneOfAll(2), outputs=OneOfAll(1), max_rows=OneOfAll(3), most=OneOfAll(10),
        intercept=Truths(True), exposure=Truths(False),
    )  # fmt: skip
    named = (problem.n, problem.d, problem.outputs, problem.max_rows, problem.most)
    assert {type(number) for number in named} == {int}
    assert problem.intercept is True
    assert problem.exposure is False


def test_persons_are_seated_by_a_plain_number():
    ids = np.repeat(np.arange(10), 2)
    curator = Curator(
        np.ones((20, 1)), budget=Budget(1.0, 1e-6), groups=ids, max_rows=OneOfAll(1),
        noise="simulated",
    )  # fmt: skip
    mean, noise = ClampedMean(1.0), GaussianNoise(50.0)
    curator.open((Round(events=(noise.event(curator.problem.means(mean)),)),))
    assert np.isfinite(curator.everyone().means(mean).release(noise)).all()


def released(X, spoil):
    """A release by a mechanism that was changed after it was made."""
    noise = GaussianNoise(50.0)
    spoil(noise)
    curator = Curator(X, budget=Budget(1.0, 1e-6), noise="simulated", random_state=0)
    mean = ClampedMean(1.0)
    curator.open((Round(events=(GaussianNoise(50.0).event(curator.problem.means(mean)),)),))
    return curator.everyone().means(mean).release(noise)


class Fades(float):
    """Noise that is there for the bill, and gone for the release."""

    left = 1

    def __mul__(self, other):
        self.left -= 1
        return 50.0 * other if self.left >= 0 else 0.0


def test_a_mechanism_that_was_changed_draws_what_is_billed(monkeypatch):
    seen = []

    def spies(noise):
        object.__setattr__(noise, "release", lambda *args: seen.append(args))

    def fades(noise):
        object.__setattr__(noise, "multiplier", Fades(50.0))

    X = np.ones((20, 1))
    honest = released(X, lambda noise: None)
    assert released(X, spies) == released(X, fades) == honest
    assert not seen
    monkeypatch.setattr(sensitive, "replace", lambda mechanism, **_: mechanism)
    released(X, spies)
    assert seen, "the twin is caught"
    assert released(X, fades) == 1.0, "and so is this one, which draws no noise"


def seated(ids, max_rows=2):
    persons = Persons(ids, len(ids))
    return persons.seats(np.arange(len(ids)), max_rows)[0].tolist()


@pytest.mark.parametrize(
    "other",
    [Decimal("0.1"), Fraction(1, 3), date(2020, 1, 1), UUID(int=7), complex(1, 2)],
    ids=lambda x: type(x).__name__,
)
def test_a_person_is_not_the_one_whose_id_looks_like_it(monkeypatch, other):
    """Were they one, the seats of who stays would follow from who leaves."""
    assert seated([other, other, str(other), str(other)]) == [0, 1, 2, 3]
    assert seated([other, "b", other, other]) == [0, 1, 2], "and everybody is one person"
    monkeypatch.setattr(persons_module, "_identity", canonical_label)
    assert len(seated([other, other, str(other), str(other)])) < 4, "the twin is caught"


class Rounded(float):
    """A number that shows few of its digits, and says of others that they are equal."""

    def __str__(self):
        return f"{float(self):.3g}"

    def __float__(self):
        return 1.0

    def __int__(self):
        return 1

    __repr__ = __str__


class Named(enum.Enum):
    ANNA = 1
    BERT = 2

    def __str__(self):
        return "a person"

    __repr__ = __str__


class Zone(tzinfo):
    """A time zone that shows nothing of itself."""

    def __init__(self, hours):
        self.hours = hours

    def utcoffset(self, _):
        return timedelta(hours=self.hours)

    def __repr__(self):
        return "Zone()"

    __str__ = __repr__


class Number(int):
    """A whole number that shows nothing of itself, and stays of its class."""

    def __str__(self):
        return "1"

    def to_bytes(self, length=1, byteorder="big", *, signed=False):
        return bytes(length)

    def __mul__(self, _):
        return self

    def __floordiv__(self, _):
        return self

    __repr__ = __format__ = __str__
    __rmul__ = __mul__


def hidden(number):
    """A fraction of such a number."""
    found = Fraction(3, 7)
    found._numerator = Number(number)
    return found


BERLIN, LIMA = (ZoneInfo(name) for name in ("Europe/Berlin", "America/Lima"))
ALIKE = {
    "digits": [mpmath.mpf(10) ** 15, mpmath.mpf(10) ** 15 + mpmath.mpf("0.5")],
    "derived": [Rounded(1.25), Rounded(1.251)],
    "members": list(Named),
    "zones": [clock_time(12, tzinfo=BERLIN), clock_time(12, tzinfo=LIMA)],
    "zones of somebody": [clock_time(12, tzinfo=Zone(hours)) for hours in (1, 2)],
    "intervals": [pd.Interval(Rounded(1.25), Rounded(end)) for end in (2.501, 2.502)],
    "periods": [pd.Period(ordinal=2**last, freq="M") for last in (40, 62)],
    "addresses": [IPv4Address(Number(last)) for last in (1, 2)],
    "fractions": [hidden(4), hidden(5)],
    "enumerations": [enum.Enum("Person", ["ANNA"])["ANNA"] for _ in range(2)],
    "calendars": [pd.offsets.CustomBusinessDay(holidays=[f"2020-01-0{i}"]) for i in (1, 2)],
}


@pytest.mark.parametrize("ids", ALIKE.values(), ids=ALIKE)
def test_persons_whose_ids_show_one_text_are_two_or_nobody(monkeypatch, ids):
    """The attack: with one row a person, the row of the second counts once the first leaves."""
    assert (1 in seated(ids, 1)) == (1 in seated(["gone", ids[1]], 1))
    shown = str if str(ids[0]) == str(ids[1]) else repr
    monkeypatch.setattr(persons_module, "_identity", shown)
    assert (1 in seated(ids, 1)) != (1 in seated(["gone", ids[1]], 1)), "the twin is caught"


def test_intervals_of_equal_ends_are_one_person():
    equal = [pd.Interval(0, 1), pd.Interval(0.0, 1.0), pd.Interval(np.int8(0), 1)]
    assert seated(equal, max_rows=1) == [0]
    other = [pd.Interval(0, 1), pd.Interval(0, 2), pd.Interval(0, 1, closed="both"), "(0, 1]"]
    assert seated(other, max_rows=1) == [0, 1, 2, 3]


def test_equal_numbers_are_one_person():
    assert seated([1, 1.0, True, Decimal("1.00"), Fraction(2, 2), np.int8(1)]) == [0, 1]


NOON, EAST = datetime.fromisoformat("2020-01-01T12:00"), timezone(timedelta(hours=2))
ONE_TIME = {
    "clock": [
        NOON, pd.Timestamp(NOON), pd.Timestamp(NOON).as_unit("s"), np.datetime64("2020-01-01T12"),
        np.datetime64(NOON, "ns"),
    ],
    "moment": [
        NOON.replace(tzinfo=UTC), datetime(2020, 1, 1, 14, tzinfo=EAST),
        pd.Timestamp(NOON, tz="UTC"), pd.Timestamp("2020-01-01T07", tz="America/New_York"),
    ],
    "midnight": [
        date(2020, 1, 1), datetime.fromisoformat("2020-01-01"), pd.Timestamp("2020"),
        np.datetime64("2020"), np.datetime64("2020-01", "M"),
    ],
    "a second": [datetime.fromisoformat("1970-01-01T00:00:01"), np.datetime64(10**18, "as")],
    "duration": [
        timedelta(days=7), pd.Timedelta(days=7), np.timedelta64(1, "W"), np.timedelta64(168, "h"),
    ],
    "months": [np.timedelta64(1, "Y"), np.timedelta64(12, "M")],
    "far": [np.datetime64(2**60, "Y"), np.datetime64(2**60, "Y")],
    "farther": [pd.Timestamp(np.datetime64("30000-01-01", "s"))] * 2,
}  # fmt: skip


def test_one_time_is_one_person(monkeypatch):
    """Two classes of equal times gave one person the rows of two."""
    for cells in ONE_TIME.values():
        assert seated([*cells, *cells], max_rows=1) == [0], cells
    monkeypatch.setattr(persons_module, "time_form", lambda _: None)
    assert len(seated(ONE_TIME["clock"], max_rows=1)) > 1, "the twin is caught"


def test_different_times_are_different_persons():
    apart = [
        *(cells[0] for cells in ONE_TIME.values()),
        pd.Timestamp(NOON) + pd.Timedelta(1, "ns"), np.datetime64(1, "as"),
        np.datetime64(2**60 + 1, "Y"), np.datetime64(1, "ns"), np.timedelta64(1, "ns"),
        np.timedelta64(12),
        pd.Timestamp(np.datetime64("30001-01-01", "s")), str(NOON), 1,
    ]  # fmt: skip
    assert seated(apart, max_rows=1) == list(range(len(apart)))
    assert seated([pd.NaT, np.datetime64("NaT"), np.timedelta64("NaT")]) == [], "of nobody"


class Lent:
    """An array that lends what it keeps."""

    def __init__(self, kept):
        self.kept = kept

    def __array__(self, dtype=None, copy=None):
        return self.kept


def test_a_trimmed_mean_is_not_paid_for_on_another_grid():
    """Of its price one part does not fall with the unit: .57 would be charged for 5.22."""
    curator = Curator(np.zeros((200, 1)), np.zeros(200), budget=Budget(20.0, 1e-6))
    mean = TrimmedMean(multiplier=1.0, trim=20, low=-1.0, high=1.0, smoothness=0.999)
    dear, unit = mean.event(curator.problem, 1), 2.0**-20
    cheap = replace(dear, scale=dear.scale * unit, radius=unit, diameter=unit)
    curator.open((Round(events=(cheap,)),))
    with pytest.raises(NotPlanned):
        trimmed_gradient(curator.everyone(), SquaredLoss(), np.zeros((1, 1)), mean)


def test_a_point_that_is_lent_shows_no_cell():
    """A function of a part could write into the point that it is told of."""
    X, kept = np.zeros((200, 1)), np.zeros(1)
    X[7] = 123456.0

    def function(part):
        kept[0] = max(kept[0], part.max())
        return np.zeros(1)

    mechanism = SampleAndAggregate(
        multiplier=30.0, blocks=40, radius=1e-3, smoothness=0.1, delta=1e-6
    )
    curator = Curator(X, budget=Budget(50.0, 1e-3))
    curator.open((Round(events=(mechanism.event(curator.problem, 1),)),))
    assert abs(aggregate(curator.everyone(), function, Lent(kept), mechanism)) < 1e4


def line(**changes):
    known = {
        "coef": np.ones((1, 1)),
        "intercept": np.zeros(1),
        "feature_range": np.array([[-9.0, 9.0]]),
        "margin_range": np.array([-9.0, 9.0]),
        "target_range": np.array([-9.0, 9.0]),
    }
    return LinearModel(**(known | changes), link="identity", names=None, categories={})


def test_models_hold_numbers_of_their_own():
    kept = np.ones((1, 1))
    model = line(coef=Lent(kept))
    kept[0] = 7.0
    assert model.coef[0, 0] == 1.0


class Says:
    """What asks all rows at once is no model."""

    assumptions = ()

    def predictions(self, X, labels):
        return np.full(len(X), X.max())


class Twice:
    """Yes, then no."""

    def __init__(self):
        self.answers = [True, False]

    def __bool__(self):
        return self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]


def test_judged_models_are_of_three_kinds_and_read_once():
    X, y = np.zeros((6, 1)), np.zeros(6)
    with pytest.raises(InvalidInput, match="OutsideModel"):
        Predicted(X, y, Says())
    with pytest.raises(InvalidInput, match="released"):
        FoldedModel((Says(),), np.zeros(6, np.int64))
    outside = OutsideModel(lambda rows: rows[:, 0], trusted_rowwise=Twice())
    assert outside.trusted_rowwise is True
    assert ROWWISE_MODEL in outside.assumptions


def test_the_power_of_a_deviance_is_a_number():
    class Sees:
        def __rsub__(self, other):
            raise AssertionError

    with pytest.raises(TypeError):
        Predicted(np.zeros((6, 1)), np.ones(6), line()).errors(1.0, 1.0, Sees())


def test_a_fold_is_allowed_what_it_pays():
    class Liar(float):
        reads = 0

        def __float__(self):
            Liar.reads += 1
            return 1e6 if Liar.reads == 1 else 0.01

    curator = Curator(np.zeros((20, 1)), np.zeros(20), budget=Budget(1.0, 1e-6), **SIMULATED)
    folds, allowed = Folds(curator, np.zeros((20, 1)), np.zeros(20), None, 4), []
    curator.open((Round(events=(folds.event(1e6),)),))

    def fit(_fold, _X, _y, _exposure, _seats, allowance):
        allowed.append(allowance._rho)
        raise LookupError

    with pytest.raises((LookupError, NotPlanned)):
        folds.run(Liar(1e6), fit, None, None)
    assert all(rho == folds.rho(1e6) for rho in allowed)
    with pytest.raises(AttributeError):
        folds.labels = np.full(20, -1)


def test_records_held_out_are_a_plain_number():
    class Held(int):
        __array_ufunc__ = None

        def __gt__(self, other):
            return np.ones(len(other), np.int64)

    X, y = np.zeros((20, 1)), np.zeros(20)
    curator = Curator(X, y, budget=Budget(1.0, 1e-6), intercept=True, **SIMULATED)
    search = TrialSearch(curator, X, y, Held(5))
    assert (len(search._first), len(search._last)) == (15, 5)


def test_seats_cannot_be_written_to_and_go_with_an_allowance():
    seats = Seats(n=50, rows=50, max_rows=1, positions=np.arange(50), leaders=np.arange(50))
    for places in (seats.positions, seats.leaders):
        with pytest.raises(ValueError, match="read-only"):
            places[:] = 0
        with pytest.raises(ValueError, match="WRITEABLE"):
            places.flags.writeable = True
    with pytest.raises(NotPlanned, match="allowance"):
        Curator(np.zeros((50, 1)), groups=seats, max_rows=1, budget=Budget(1.0, 1e-6))


def test_a_feature_that_changed_sees_one_row():
    class Sees:
        __array_ufunc__ = None

        def __radd__(self, x):
            return np.full(len(x), x.max())

        def __bool__(self):
            return False

    encoding = Encoding(features=[Log("a")])
    object.__setattr__(encoding.features[0], "plus", Sees())
    frame = pd.DataFrame({"a": [1.0, 1.0, 1.0, 9.0]})
    with pytest.raises(InvalidInput, match="finite number"):
        as_records(frame, encoding=encoding)


def test_a_range_has_a_size():
    for size in ((1.0, 0.0), (0.0,), (math.nan,)):
        with pytest.raises(InvalidInput, match="above zero"):
            Ball(*size)
    for radius in (0.0, -1.0, math.nan):
        with pytest.raises(InvalidInput, match="above zero"):
            Interval(radius)
    shrunk = Ball(1.0)
    object.__setattr__(shrunk, "radius", -1.0)
    with pytest.raises(InvalidInput, match="above zero"):
        checked_mean(CheckedMean(shrunk, 1))


class Answers:
    """A whole number that is another one each time it is read."""

    def __init__(self, *answers):
        self.answers = list(answers)

    def __index__(self):
        return self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]

    __int__ = __index__

    def __eq__(self, other):
        return True

    __hash__ = None


Integral.register(Answers)


@pytest.mark.parametrize(
    ("one", "name"),
    [
        (DisjointParts(5), "parts"),
        (TrimmedMean(multiplier=1.0, trim=5, low=0.0, high=1.0), "trim"),
        (SampleAndAggregate(multiplier=1, blocks=5, radius=1, smoothness=0.5, delta=0), "blocks"),
        (NoisyTopK(1.0, 5), "picks"),
        (BestTrial(multiplier=1.0, trials=5), "trials"),
        (Round(events=(), times=5), "times"),
        (Problem(n=9, d=1, max_rows=5), "max_rows"),
    ],
    ids=lambda x: x if isinstance(x, str) else "",
)  # fmt: skip
def test_a_count_is_kept_as_it_was_checked(one, name):
    object.__setattr__(one, name, Answers(5, -3))
    assert getattr(replace(one), name) == 5


def test_no_round_takes_from_a_bill():
    """One that is planned minus once would pay for another."""
    curator = Curator(np.ones((20, 1)), budget=Budget(0.1, 1e-6), **SIMULATED)
    event = GaussianNoise(1e-3).event(curator.problem.means(ClampedMean(1.0)))
    fewer = SimpleNamespace(
        sampling=Everyone(), events=(event,), times=Answers(1, -1), stage=""
    )  # fmt: skip
    with pytest.raises(BudgetExceeded):
        curator.open((Round(events=(event,)), fewer))


def test_a_rate_is_kept_as_it_was_checked():
    class Rate(float):
        def __gt__(self, _):
            return True

        __le__ = __gt__

        def __float__(self):
            return -3.0

    with pytest.raises(InvalidInput, match="got -3"):
        PoissonBatches(Rate(0.5))


def test_what_is_charged_is_what_the_budget_was_checked_for():
    class Two(Budget):
        def __getattribute__(self, name):
            return next(deltas) if name == "delta" else super().__getattribute__(name)

    deltas = iter([0.0, 0.0, 0.0, *[0.99] * 9])
    with pytest.raises(InvalidInput, match="no class derived"):
        Curator(np.ones((20, 1)), budget=Two(1.0))
    changed = Budget(1.0, 1e-6)
    curator = Curator(np.ones((20, 1)), budget=changed)
    object.__setattr__(changed, "delta", 0.99)
    assert curator.budget.delta == 1e-6


def test_seats_are_billed_for_the_rows_that_they_have():
    seats = Seats(n=50, rows=50, max_rows=9, positions=np.arange(50), leaders=np.zeros(50, int))
    allowance = Allowance(1.0, "replace_one", seats, payer=os.getpid())
    options = {"groups": seats, "budget": Budget(1.0, 1e-6), "ledger": allowance}
    with pytest.raises(InvalidInput, match="max_rows that they were made of"):
        Curator(np.zeros((50, 1)), max_rows=Answers(1), **options)


class Shout(str):
    """Text that quotes a cell when it is compared."""

    __slots__ = ()

    def __hash__(self):
        raise LookupError("a cell")


class Priced(Decimal):
    def __str__(self):
        return Shout("x")

    def is_finite(self):
        return False

    def __eq__(self, other):
        return self is other

    __hash__ = Decimal.__hash__


class Kind(type):
    def __getattribute__(cls, name):
        return Shout("k") if name == "__qualname__" else type.__getattribute__(cls, name)


class Odd(metaclass=Kind):
    def __str__(self):
        return "odd"


@pytest.mark.parametrize("cell", [Priced("5"), Odd()], ids=["number", "class"])
def test_no_cell_raises_when_it_is_compared(cell):
    assert sum(Labels([cell, "b"], 2).counts().values()) == 2
    assert seated([cell, "b"]) == [1]
    assert _identity(cell) is None
    assert type(canonical_label(cell)) is str


@pytest.mark.parametrize(
    "ids",
    [
        pa.array([0, 90_000], pa.int64()).view(pa.date64()),
        np.array([np.datetime64(1, "ns"), np.datetime64(1, "ps")], object),
        np.array([np.timedelta64(1, "ns"), 1], object),
        [pd.Period("2020", freq="h"), pd.Period("2020", freq="min")],
        [pd.Period("2020Q1", freq="Q-DEC"), pd.Period("2020Q1", freq="Q-JAN")],
        [np.void(b"\xff"), np.void(b"\xfe")],
    ],
    ids=["day", "unit", "number", "length", "quarter", "bytes"],
)
def test_persons_are_apart_whose_ids_look_alike(ids):
    """Two persons that were one had the seats of one: who left moved the other's rows."""
    persons = Persons(ids, 2)
    assert persons.seats(np.arange(2), 1)[0].tolist() == [0, 1]


class Moved(datetime):
    """A time that tells NumPy of another one."""

    asm8 = np.datetime64(0, "ns")


def test_a_time_of_a_class_of_its_own_is_what_its_fields_say():
    """Persons that were one had the seats of one, as above."""
    first, second = Moved(2020, 1, 1), Moved(2021, 1, 1)
    assert Persons([first, second], 2).seats(np.arange(2), 1)[0].tolist() == [0, 1]
    assert _identity(first) == _identity(pd.Timestamp("2020-01-01"))


class Longer(list):
    """A list that is longer where it is counted than where its places are made."""

    read = 0

    def __iter__(self):
        self.read += 1
        return iter(["a", "b", "c"] if self.read == 1 else ["a", "b"])


@pytest.mark.parametrize("cell", ["a", "c"])
def test_categories_are_read_once(cell):
    frame = pd.DataFrame({"x": ["a", "b", cell]})
    records = as_records(frame, {"x": Longer("abc")})
    assert records.rows(slice(0, 3)).dense().sum() == 3
    assert records.d == 3


@pytest.mark.parametrize("make", [lambda f: f, lambda f: Cross(f, "b")], ids=["alone", "crossed"])
@pytest.mark.parametrize("cell", [1.0, 9.0])
def test_features_are_read_once(make, cell):
    feature = Bins("a", (0.0,))
    encoding = Encoding(features=[make(feature)])
    frame = pd.DataFrame({"a": [-1.0, cell], "b": [1.0, 1.0]})
    records = as_records(frame, encoding=encoding)
    held = encoding.features[0]
    for one in (feature, getattr(held, "left", held)):
        object.__setattr__(one, "edges", (0.0, 5.0))
    assert records.rows(slice(0, 2)).dense()[:, : records.d].sum() > 0


def test_an_encoding_is_ours():
    class Mine(Encoding):
        def design(self, *_):
            raise AssertionError("it was asked")

    with pytest.raises(InvalidInput, match="no class derived"):
        as_records(pd.DataFrame({"a": [1.0]}), encoding=Mine("indicator"))
    with pytest.raises(InvalidInput, match="of your own"):
        Encoding(features=[type("Binned", (Bins,), {})("a", (0.0,))])


@pytest.mark.parametrize("place", [None, "budget.jsonl"])
def test_an_analyst_has_one_name(place, tmp_path):
    class Name(str):
        __slots__ = ()
        __hash__ = str.__hash__

        def __eq__(self, other):
            return sys._getframe(1).f_code.co_name not in ("_require_share", "<listcomp>")

    path = place and tmp_path / place
    ledger = Ledger(path, epsilon=10.0, delta=1e-3, analysts={"ann": 0.1, "bob": 1.0})
    own = ledger.by(Name("ann"))
    charge = {"label": "x", "epsilon": 0.1, "delta": 0.0, "neighbours": "replace_one", "plan": []}
    own.reserve(**charge)
    with pytest.raises(BudgetExceeded, match="share of 'ann'"):
        own.reserve(**charge)
    assert [type(e.analyst) for e in ledger.entries()] == [str]


def summed(records):
    return records.gradient(LogisticLoss(), np.zeros((1, 1)), ClippedMean(1.0))


@pytest.mark.parametrize("number", [1e3, np.inf, np.nan])
def test_rows_are_as_long_as_when_their_length_was_taken(monkeypatch, tmp_path, number):
    """Another thread may write to an array between the two, and another process to a map."""
    X = np.memmap(tmp_path / "rows", np.float64, "w+", shape=(50, 1))
    contribute = questions.contribute

    def sizes(written, rows):
        def late(*given):
            written[:] = number
            contribute(*given)

        written[:] = 0.1
        monkeypatch.setattr(questions, "contribute", late)
        asked = summed(batch(rows, np.zeros(50)))
        return np.abs(asked._value.astype(float)).max() / asked.sensitivity.radius.linf

    own = np.empty((50, 2))
    assert sizes(X, X) <= 50
    assert sizes(X, np.frombuffer(memoryview(X), np.float64).reshape(50, 1)) <= 50
    for table in (own[:, :1], np.asfortranarray(own)[:, :1], np.empty((50, 1))):
        assert sizes(table, table) <= 50
    monkeypatch.setattr(dense.Dense, "rows", lambda self, ids: dense.DenseRows(self._X[ids]))
    assert sizes(table, table) > 1_000, "the twin is caught"


def test_nobody_else_decides_how_the_core_runs(monkeypatch):
    X, y = np.linspace(-1, 1, 50)[:, None], np.zeros(50)
    expected = summed(batch(X, y))._value
    monkeypatch.setattr(logistic_derivatives, "function", None)
    with interpreted():
        assert (summed(batch(X, y))._value == expected).all()


def test_blocks_of_a_file_are_read_alike(tmp_path):
    """Which rows are one block, other rows decide: in a CSV by how long their cells are."""
    (tmp_path / "a.csv").write_text("x\n1.5\n")
    with pytest.raises(InvalidInput, match="no class derived"):
        TableFile(tmp_path / "a.csv", dialect=object.__new__(type("Mine", (Dialect,), {})))
    dialect = Dialect(decimal=Shout(","), encoding=Shout("utf-8"))
    assert {type(dialect.decimal), type(dialect.encoding)} == {str}
    odd = Dialect()
    object.__setattr__(odd, "decimal", Shout(","))
    assert type(TableFile(tmp_path / "a.csv", dialect=odd).dialect.decimal) is str


def test_blocks_of_a_file_are_predicted_alike():
    model = line()
    names, listed = [Shout("x")], ["a", "b"]
    own = replace(model, names=names, categories={"x": listed})
    names[0] = "y"
    listed.append("c")
    assert own.names == ("x",)
    assert type(own.names[0]) is str
    assert own.categories == {"x": ("a", "b")}
    with pytest.raises(InvalidInput, match="known links"):
        replace(model, link="probit")
    with pytest.raises(InvalidInput, match="must have an Encoding"):
        replace(model, encoding=object.__new__(type("Mine", (Encoding,), {})))


class Itself(str):
    """Text that stays of its class when it is asked for its text."""

    __slots__ = ()

    def __str__(self):
        return self


def test_what_is_declared_is_plain(tmp_path):
    """In every block of rows it is asked for again."""
    names = Itself("x"), Itself("k")
    features = [names[0], Bins(names[0], (0.0,)), Cross(*names)]
    own = Encoding(Itself("drop"), {names[1]: Itself("a")}, features)
    held = own.features
    asked = own.missing, *own.drop, *own.drop.values(), held[0], held[1].column
    assert {*map(type, (*asked, held[2].left, held[2].right))} == {str}
    assert type(Encoding(drop=Itself("first")).drop) is str
    (tmp_path / "a.csv").write_text("x,k,t,y\n1,a,true,2\n")
    listed = {names[1]: [Itself("a")], Itself("t"): [Itself("true"), Itself("false")]}
    table = TableFile(tmp_path / "a.csv").declaring({}).declaring(listed).exposed(names[0])
    found = table.categories
    labels = [label for one in found.values() for label in one]
    dialect = Dialect(partition_columns=names)
    asked = *found, *labels, table.exposure, *dialect.partition_columns
    assert {*map(type, (*asked, Stream(table, Itself("y"))._target))} == {str}
    assert TableFile(tmp_path / "a.csv", categories=listed).categories == found
    assert table.ids(names[1]).tolist() == ["a"]


@pytest.mark.parametrize("cell", ["a", "c"])
def test_a_column_or_a_row_of_a_frame_is_no_attribute(cell):
    """Of a frame with such names an attribute is a cell, and a cell refused the fit."""
    frame = pd.DataFrame({"dtype": [cell, *"a" * 49], "v": 1.0}, ["kind", *range(49)])
    model = DPRidge(epsilon=1.0, categories={"dtype": ["a", "c"]}, **SIMULATED)
    assert model.fit(frame, np.zeros(50)).n_features_in_ == 2
    labelled = pd.Series([cell.replace("c", "dictionary<"), "b"], ["type", "schema"])
    require_apart({"x": labelled})


class Watching(TableFile):
    """A file that shows every block of rows to somebody else."""

    seen = 0

    def numbers(self, column):
        Watching.seen = max(Watching.seen, len(column))
        return super().numbers(column)


def test_a_file_is_ours(monkeypatch, tmp_path):
    path = tmp_path / "a.parquet"
    pd.DataFrame({"x": np.arange(50.0), "y": np.zeros(50)}).to_parquet(path)
    model = DPRidge(epsilon=1.0, **SIMULATED).fit(TableFile(path), "y")
    assert model.n_features_in_ == 1
    for call in (
        lambda: DPRidge(epsilon=1.0).fit(Watching(path), "y"),
        lambda: evaluate(model, Watching(path), "y", epsilon=1.0),
        lambda: summarize(Watching(path), epsilon=1.0),
        lambda: private_mean(Watching(path), epsilon=1.0),
    ):
        with pytest.raises(InvalidInput):
            call()
    assert Watching.seen == 0
    monkeypatch.setattr(records_module, "is_file", lambda X: isinstance(X, TableFile))
    opened(Watching(path), "y", None, None)[0].windows(None).__next__().open()
    assert Watching.seen > 1, "the twin is caught"


class FreeOfCharge(Ledger):
    def reserve(self, **_):
        """Charge nothing."""


@pytest.mark.parametrize("call", [
    lambda X, ledger: DPRidge(epsilon=1.0, ledger=ledger).fit(X, X[:, 0]),
    lambda X, ledger: private_mean(X, epsilon=1.0, ledger=ledger),
    lambda X, ledger: Curator(X, budget=Budget(1.0), ledger=ledger),
])  # fmt: skip
def test_a_ledger_is_ours(call):
    """Its charge was left out, and the statement named an entry that nobody had written."""
    with pytest.raises(InvalidInput, match="ledger must be"):
        call(np.zeros((50, 1)), FreeOfCharge(epsilon=1.0, delta=1e-6))
    duck = SimpleNamespace(reserve=lambda **_: "entry 7")
    with pytest.raises(InvalidInput, match="ledger must be"):
        call(np.zeros((50, 1)), duck)


class Centred(sparse.csr_matrix):
    """A matrix whose rows depend on all rows."""

    def __getitem__(self, ids):
        return sparse.csr_matrix(super().__getitem__(ids).toarray() - self.toarray().mean(axis=0))


def test_a_sparse_matrix_is_of_scipys_own_class(monkeypatch):
    X = np.zeros((1_000, 2))
    X[:, 0] = 1.0
    X2 = X.copy()
    X2[3, 0] = 1e9
    y = np.zeros(1_000)

    def ask(records):
        return records.means(ClampedMean(1.0))

    for read in (as_records, sparse_module.Sparse):
        with pytest.raises(InvalidInput, match=r"class|CSR matrix of SciPy"):
            read(Centred(X))
    monkeypatch.setattr(arrays_module, "is_read_elsewhere", lambda values: False)
    monkeypatch.setattr(sparse_module, "is_one_of", isinstance)
    assert moved(ask, Centred(X), y, Centred(X2), y) > 1, "the twin is caught"
