"""The curator: nothing is read before it is paid for, nothing leaves that was not planned.

Statistical tests state their false-alarm chance. Record and replay: on neighbouring data, with the
same released values, every algorithm makes the same calls and ends at the same bits.
"""

from __future__ import annotations

import copy
import math
import pickle
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from scipy import stats

from privtail.algorithms import (
    TABLE,
    AggregatedMinimizer,
    BoostedAdaSSP,
    CatoniDescent,
    FrankWolfe,
    FrankWolfeCorners,
    HeavyTailedFrankWolfe,
    LaplacePeeling,
    MedianOfMeansDescent,
    MirrorDescent,
    NetSearch,
    NoisyDescent,
    OnePassDescent,
    OneShotPeeling,
    ProximalGradient,
    RandomRoundDescent,
    SparsePeeling,
    StochasticProximalGradient,
    TrimmedDescent,
    TruncatedLasso,
    TruncatedSparseRegression,
)
from privtail.algorithms.bregman import PNorm
from privtail.calibration import calibrated
from privtail.default import ScaledDescent, Tuning
from privtail.domains import L2, L1Ball, L2Ball, Unconstrained
from privtail.errors import (
    BudgetExceeded,
    InvalidInput,
    NotPlanned,
    NotReleased,
    PrivtailError,
)
from privtail.linear_model import MODELS, DPLinearRegression, DPLogisticRegression
from privtail.losses import (
    AbsoluteLoss,
    CustomLoss,
    GeneralLoss,
    LogisticLoss,
    PoissonLoss,
    RelativeHuberLoss,
    SquaredLoss,
)
from privtail.mean import METHODS, private_mean
from privtail.robust_means import (
    BoundedMean,
    ClampedMean,
    ClippedMean,
    SmoothedCatoniMean,
    TruncatedMean,
)
from privtail.trusted import dataset
from privtail.trusted.accountants import cost
from privtail.trusted.accounting.curves import GaussianDP
from privtail.trusted.budget import Budget
from privtail.trusted.curator import Batch, Curator, Opening
from privtail.trusted.events import Event, Plan, Round, plan_from_json
from privtail.trusted.ledger import Ledger
from privtail.trusted.maps import FeatureMap
from privtail.trusted.mechanisms.labels import StabilityHistogram
from privtail.trusted.mechanisms.noise import GaussianNoise, LaplaceNoise
from privtail.trusted.mechanisms.samplers import ExactSampler
from privtail.trusted.mechanisms.selection import NoisyMax
from privtail.trusted.opening import _pays_for
from privtail.trusted.problem import Problem
from privtail.trusted.records import Dense, Sparse, Table
from privtail.trusted.records.targets import Labels, Numbers
from privtail.trusted.sampling import DisjointParts, Everyone, PoissonBatches, Sampling
from privtail.trusted.smooth import questions as smooth

N, D = 60, 3
RNG = np.random.default_rng(0)
X, Y = RNG.standard_t(2, (N, D)), RNG.standard_t(2, N)
MEAN, NOISE = ClippedMean(1.0), GaussianNoise(50.0)
W = np.zeros((D, 1))
SECRET = 87654.321


def curate(
    rounds: tuple[Round, ...] = (), x: Any = X, y: Any = Y, epsilon: float = 5.0, **options: Any
) -> Curator:
    curator = Curator(x, y, budget=Budget(epsilon, 1e-6), **{"random_state": 0, **options})
    if rounds:
        curator.open(rounds)
    return curator


def gradient_event(noise: Any = NOISE, mean: Any = MEAN, sampling: Sampling | None = None) -> Event:
    problem = curate().problem
    problem = problem.sampled(sampling) if sampling else problem
    event: Event = noise.event(problem.gradient(mean))
    return event


def one(times: int = 1, sampling: Sampling | None = None, *events: Event) -> Round:
    sampling = sampling or Everyone()
    return Round(
        sampling=sampling, events=events or (gradient_event(sampling=sampling),), times=times
    )


def release(batch: Batch, noise: Any = NOISE, mean: Any = MEAN) -> Any:
    return batch.gradient(SquaredLoss(), W, mean).release(noise)


# Plan and release


def test_what_was_planned_is_released_and_nothing_more() -> None:
    curator = curate((one(2),))
    batches = curator.rounds(Everyone(), 2)
    first = next(batches)
    assert release(first).shape == (D,)
    with pytest.raises(NotPlanned):
        release(first)
    second = next(batches)
    with pytest.raises(NotPlanned, match="closed"):
        release(first)
    release(second)
    assert list(batches) == []
    with pytest.raises(NotPlanned, match="closed"):
        release(second)
    with pytest.raises(NotPlanned, match="No round"):
        curator.everyone()


def test_an_answer_kept_from_a_closed_batch_stays_closed() -> None:
    curator = curate((one(2),))
    kept = curator.everyone().gradient(SquaredLoss(), W, MEAN)
    curator.everyone()
    for answer in (kept, kept.scale(2.0), kept.negate(), kept.take([0])):
        with pytest.raises(NotPlanned, match="closed"):
            answer.release(NOISE)


SHORT = Tuning(steps=4)
WRONG: dict[str, Any] = {
    "less noise": lambda b: release(b, GaussianNoise(49.0)),
    "more noise": lambda b: release(b, GaussianNoise(51.0)),
    "another law": lambda b: release(b, LaplaceNoise(50.0)),
    "selection": lambda b: release(b, NoisyMax(50.0)),
    "another mean": lambda b: release(b, mean=ClampedMean(1.0)),
    "another question": lambda b: b.histogram([0], [0.0]).release(NOISE),
    "more coordinates": lambda b: b.means(MEAN).mirror().release(NOISE),
    "no noise": lambda b: release(b, GaussianNoise(0.0)),
    "labels": lambda b: Batch.labels(b, StabilityHistogram(5.0, 1e-6)),
}


@pytest.mark.parametrize("name", WRONG)
def test_a_release_that_is_not_the_planned_one_is_refused(name: str) -> None:
    curator = curate((one(),), y=np.array(["a", "b"] * 30), classes=("a", "b"))
    batch = curator.everyone()
    with pytest.raises(NotPlanned) as caught:
        WRONG[name](batch)
    assert "plan" in str(caught.value)
    release(batch)  # the refusal did not use the plan up


def test_fewer_coordinates_than_planned_are_fine() -> None:
    curator = curate((one(),))
    answer = curator.everyone().gradient(SquaredLoss(), W, MEAN).take([1])
    assert answer.release(NOISE).shape == (1,)


@pytest.mark.parametrize("asked", [PoissonBatches(0.5), DisjointParts(2), PoissonBatches(0.25)])
def test_another_sampling_is_refused(asked: Sampling) -> None:
    planned = Everyone() if asked != PoissonBatches(0.25) else PoissonBatches(0.5)
    curator = curate((one(1, planned),))
    with pytest.raises(NotPlanned, match="announces"):
        next(curator.rounds(asked, 1))


def test_a_curator_runs_one_plan() -> None:
    curator = curate()
    with pytest.raises(NotPlanned):
        curator.everyone()
    with pytest.raises(NotPlanned):
        _ = curator.plan
    curator.open((one(),))
    assert curator.plan == (one(),)
    for again in (lambda: curator.open((one(),)), lambda: calibrated(curator, lambda m: (one(),))):
        with pytest.raises(NotPlanned, match="compose"):
            again()


def test_rounds_of_length_zero_are_no_rounds() -> None:
    curator = curate((one(0), one(1)))
    release(curator.everyone())
    with pytest.raises(NotPlanned):
        curator.everyone()


@pytest.mark.parametrize("times", [1.5, 0.5, math.nan])
def test_rounds_are_counted_in_whole_numbers(times: Any) -> None:
    """A half round would be paid by half and never be used up."""
    with pytest.raises(InvalidInput):
        curate((Round(events=(gradient_event(),), times=times),))


def test_a_plan_cannot_grow_after_it_was_paid() -> None:
    events: list[Event] = [gradient_event()]
    rounds = [Round(events=events)]  # type: ignore[arg-type]
    curator = curate()
    curator.open(rounds)  # type: ignore[arg-type]
    events.append(gradient_event(GaussianNoise(0.001)))
    rounds.append(one())
    batch = curator.everyone()
    release(batch)
    with pytest.raises(NotPlanned):
        release(batch, GaussianNoise(0.001))
    with pytest.raises(NotPlanned):
        curator.everyone()


@pytest.mark.parametrize("held", ["given", "shown"])
def test_a_plan_cannot_change_after_it_was_paid(held: str) -> None:
    """Frozen classes can be written to; what was paid for is a copy that nobody else holds."""
    planned = one(1, PoissonBatches(0.01))
    curator = curate((planned,))
    reached = planned if held == "given" else curator.plan[0]
    object.__setattr__(reached.sampling, "rate", 1.0)
    object.__setattr__(reached.events[0], "scale", 1e-3)
    object.__setattr__(reached, "times", 9)
    (kept,) = curator.plan
    assert kept.sampling == PoissonBatches(0.01)
    assert kept.events[0].scale > 1
    assert kept.times == 1
    with pytest.raises(NotPlanned):
        next(curator.rounds(PoissonBatches(1.0), 1))


def test_a_plan_that_is_not_copied_would_be_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("privtail.trusted.curator.own_plan", tuple)
    for held in ("given", "shown"):
        with pytest.raises(AssertionError):
            test_a_plan_cannot_change_after_it_was_paid(held)


# Charging


def till() -> Ledger:
    """A ledger that nothing has been charged to, with room for any plan."""
    return Ledger(epsilon=1e6, delta=0.5)


READERS = [
    (Dense, "rows"), (Sparse, "rows"), (Table, "rows"), (Numbers, "rows"), (Labels, "rows"),
    (Labels, "counts"), (Labels, "_distinct"),
]  # fmt: skip
"""Whatever looks at a cell."""


def guarded(honest: Any, ledger: Ledger) -> Any:
    def read(self: Any, *arguments: Any) -> Any:
        assert ledger.entries(), f"{type(self).__name__} was read before the charge"
        return honest(self, *arguments)

    return read


def guard(monkeypatch: pytest.MonkeyPatch, ledger: Ledger) -> None:
    """Fail on any look at a cell before the ledger was charged."""
    for owner, name in READERS:
        monkeypatch.setattr(owner, name, guarded(getattr(owner, name), ledger))


@pytest.mark.parametrize("classes", [None, (), ("a", "b")], ids=["numbers", "bought", "declared"])
@pytest.mark.parametrize("container", ["array", "csr", "table"])
def test_nothing_is_read_before_it_is_charged(
    container: str, classes: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    ledger = till()
    guard(monkeypatch, ledger)
    y = Y if classes is None else np.array(["a", "b"] * 30)
    columns = {"u": X[:, 0], "v": X[:, 1], "c": np.array(["r", "s", "t"] * 20)}
    x: Any = {"array": X, "csr": sp.csr_matrix(X), "table": columns}[container]
    categories = {"c": ["r"]} if container == "table" else None
    curator = curate(x=x, y=y, ledger=ledger, classes=classes, categories=categories)
    with pytest.raises(NotPlanned):
        curator.everyone()
    multiplier = calibrated(
        curator, lambda m: (one(1, None, GaussianNoise(m).event(curator.problem.gradient(MEAN))),)
    )
    assert len(ledger.entries()) == 1
    batch = curator.everyone()
    if classes == ():
        curator.declare(("a", "b"))
    release(batch, GaussianNoise(multiplier))


def test_the_guard_would_notice(monkeypatch: pytest.MonkeyPatch) -> None:
    guard(monkeypatch, till())
    with pytest.raises(AssertionError, match="before the charge"):
        curate().refuse_non_finite()


def test_a_refused_plan_opens_nothing() -> None:
    curator = curate(ledger=Ledger(epsilon=1e-9, delta=0))
    with pytest.raises(BudgetExceeded):
        curator.open((one(),))
    with pytest.raises(NotPlanned):
        curator.everyone()
    dear = curate()
    with pytest.raises(BudgetExceeded):
        dear.open((one(1, None, gradient_event(GaussianNoise(0.01))),))
    with pytest.raises(NotPlanned):
        dear.everyone()


@pytest.mark.parametrize("neighbours", ["replace_one", "zero_out"])
def test_what_is_planned_is_what_is_spent(neighbours: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """The events that were released, billed again, cost what the ledger was charged."""
    ledger = Ledger(epsilon=1.0, delta=1e-6, neighbours=neighbours)
    spent: list[Event] = []
    honest = Opening.charge

    def charge(self: Opening, event: Event) -> Any:
        spent.append(event)
        return honest(self, event)

    monkeypatch.setattr(Opening, "charge", charge)
    curator = Curator(X, Y, budget=Budget(1.0, 1e-6, neighbours), ledger=ledger)
    algorithm = ScaledDescent(tuning=SHORT)
    m = calibrated(curator, lambda m: algorithm.plan(m, curator.problem))
    algorithm.run(curator, SquaredLoss(), Unconstrained(), m)
    bill = cost(tuple(Round(events=(event,)) for event in spent), neighbours)
    (entry,) = ledger.entries()
    assert bill.epsilon(1e-6) == pytest.approx(entry.epsilon, rel=1e-9)
    assert entry.epsilon <= 1.0
    assert plan_from_json(entry.plan) == curator.plan
    assert len(spent) == sum(len(r.events) * r.times for r in curator.plan)


# Sampling


def ids_of(batch: Batch) -> list[int]:
    ids = batch._sample.within(0, N)
    return list(range(N))[ids] if isinstance(ids, slice) else [int(i) for i in ids]


def test_disjoint_parts_are_disjoint_and_complete() -> None:
    parts = DisjointParts(4)
    curator = curate((one(4, parts),))
    seen = [ids_of(b) for b in curator.rounds(parts, 4)]
    assert sorted(i for part in seen for i in part) == list(range(N))
    assert {len(part) for part in seen} == {N // 4}
    assert seen[0] != sorted(seen[0])[: N // 4] or seen[0] != list(range(N // 4))


def test_one_planned_deal_is_one_deal_however_it_is_asked_for() -> None:
    """A Round of disjoint parts is billed as one deal; asking in pieces must not deal again."""
    parts = DisjointParts(2)
    curator = curate((one(2, parts),))
    seen: list[int] = []
    try:
        for _ in range(2):
            seen += ids_of(next(curator.rounds(parts, 1)))
    except PrivtailError:
        pass  # refusing is as good
    assert len(seen) == len(set(seen))


def test_a_second_lap_sees_the_same_parts() -> None:
    parts = DisjointParts(3)
    curator = curate((one(6, parts),))
    seen = [ids_of(b) for b in curator.rounds(parts, 6)]
    assert seen[:3] == seen[3:]


def test_two_deals_are_two_deals() -> None:
    parts = DisjointParts(2)
    curator = curate((one(2, parts), one(2, parts)))
    seen = [ids_of(b) for _ in range(2) for b in curator.rounds(parts, 2)]
    assert seen[0] != seen[2]


@pytest.mark.parametrize("noise", ["exact", "simulated"])
def test_poisson_batches_include_each_record_at_the_stated_rate(noise: Any) -> None:
    """Binomial tests at 1e-6 in total (Bonferroni); two thirds and three halves are rejected."""
    rate, rounds = 0.2, 400
    sampling = PoissonBatches(rate)
    curator = curate((Round(sampling=sampling, events=(), times=rounds),), noise=noise)
    seen = np.zeros((rounds, N))
    for t, batch in enumerate(curator.rounds(sampling, rounds)):
        seen[t, ids_of(batch)] = 1

    def p_value(wanted: float) -> float:
        everyone = stats.binomtest(int(seen.sum()), seen.size, wanted).pvalue
        each = min(stats.binomtest(int(c), rounds, wanted).pvalue for c in seen.sum(axis=0))
        pairs = stats.binomtest(int((seen[:, 0] * seen[:, 1]).sum()), rounds, wanted**2).pvalue
        return min(3 * everyone, 3 * N * each, 3 * pairs)

    assert p_value(rate) > 1e-6
    assert p_value(rate * 2 / 3) < 1e-6
    assert p_value(rate * 3 / 2) < 1e-6


@pytest.mark.parametrize("sampling", [PoissonBatches(0.3), DisjointParts(3), Everyone()])
def test_who_is_seen_does_not_depend_on_what_is_seen(sampling: Sampling) -> None:
    found = []
    for x, y in ((X, Y), (np.full_like(X, 1e308), np.full_like(Y, np.nan))):
        curator = curate((Round(sampling=sampling, events=(), times=3),), x, y, noise="simulated")
        found.append(
            [ids_of(b) for b in curator.rounds(sampling, 3)]
            + [curator.blocks(k).tolist() for k in (1, 2, 7)]
            + [curator.uniform(1000)]
        )
    assert found[0] == found[1]


def test_a_poisson_batch_opens_once() -> None:
    sampling = PoissonBatches(0.5)
    curator = curate((one(2, sampling),), epsilon=50.0)
    rounds = curator.rounds(sampling, 2)
    first = next(rounds)
    release(first)
    with pytest.raises(NotPlanned):
        release(first)
    second = next(rounds)
    assert ids_of(first) != ids_of(second)  # equal with probability 2^-60
    with pytest.raises(NotPlanned, match="closed"):
        release(first)


def test_an_empty_batch_is_a_batch() -> None:
    sampling = PoissonBatches(1e-9)
    curator = curate((one(1, sampling),), epsilon=50.0)
    assert release(next(curator.rounds(sampling, 1))).shape == (D,)


def test_blocks_have_equal_sizes_and_are_dealt_once() -> None:
    curator = curate()
    for k in (1, 2, 7, 60):
        sizes = np.bincount(curator.blocks(k), minlength=k)
        assert sizes.max() - sizes.min() <= 1
        assert np.array_equal(curator.blocks(k), curator.blocks(k))


# Labels


def test_labels_are_bought_and_then_declared() -> None:
    y = np.array(["a"] * 300 + ["b"] * 300 + ["rare"])
    mechanism = StabilityHistogram(9.0, 1e-7)
    x = np.ones((len(y), 2))
    event = mechanism.event(Problem(n=len(y), d=2).labels())
    curator = curate((Round(events=(event,)), one()), x, y, classes=())
    batch = curator.everyone()
    for cheaper in (StabilityHistogram(8.0, 1e-7), StabilityHistogram(9.0, 2e-7)):
        with pytest.raises(NotPlanned):
            batch.labels(cheaper)
    found = batch.labels(mechanism)
    assert found == ["a", "b"]  # fails below 1e-40
    with pytest.raises(NotPlanned):
        batch.labels(mechanism)
    second = curator.everyone()
    with pytest.raises(InvalidInput, match="Declare"):
        second.gradient(LogisticLoss(), np.zeros((2, 1)), MEAN)
    curator.declare(found)
    undeclared = second.gradient(LogisticLoss(), np.zeros((2, 1)), ClampedMean(10.0))
    assert [int(v) for v in undeclared._value] == [0, 0]


@pytest.mark.parametrize(
    "algorithm",
    [
        ScaledDescent(tuning=SHORT, targets="binary"),
        CatoniDescent(steps=3, step_size=0.1, scale=2.0, smoothing=3.0),
        MedianOfMeansDescent(steps=3, step_size=0.1, threshold=1.0, blocks=3),
    ],
    ids=lambda a: type(a).__name__,
)
@pytest.mark.parametrize("labels", [2, 3])
def test_bought_labels_work_with_every_algorithm(algorithm: Any, labels: int) -> None:
    y = np.arange(3000) % labels
    model = DPLogisticRegression(
        epsilon=5.0, algorithm=algorithm, noise="simulated", random_state=0
    ).fit(np.ones((3000, 2)), y)
    assert model.classes_.tolist() == list(range(labels))


def test_labels_are_charged_when_nothing_is_found() -> None:
    ledger = till()
    mechanism = StabilityHistogram(9.0, 1e-7)
    event = mechanism.event(Problem(n=N, d=D).labels())
    curator = curate((Round(events=(event,)),), y=np.array([None] * N), classes=(), ledger=ledger)
    assert curator.everyone().labels(mechanism) == []
    (bill,) = ledger.entries()
    spent = GaussianDP(math.sqrt(2) / 9).epsilon(bill.delta - 1e-7)
    assert bill.epsilon == pytest.approx(spent, rel=1e-6)


# Callbacks of a user


class ThirdParty:
    """A loss of somebody else: what it does with a record is its own affair."""

    outputs = 1
    name = "theirs"
    targets = "real"
    convex = False
    curvature = math.inf
    lipschitz = math.inf

    def __init__(self, derive: Any) -> None:
        self.derive, self.shapes = derive, set[Any]()

    def values(self, margins: Any, y: Any) -> Any:
        return self.derivatives(margins, y)[:, 0]

    def derivatives(self, margins: Any, y: Any) -> Any:
        self.shapes.add((margins.shape, y.shape))
        return self.derive(margins, y)


def raising(error: BaseException) -> Any:
    def derive(m: Any, y: Any) -> Any:
        if y[0] == 7.0:
            raise error
        return y[:, None]

    return derive


def answering(odd: Any) -> Any:
    return lambda m, y: odd if y[0] == 7.0 else y[:, None]


def mutating(m: Any, y: Any) -> Any:
    out = y[:, None].copy()
    try:
        m[:] = 1e9
        y[:] = 7.0
    except ValueError:
        pass  # read-only, which is fine
    return out


MISBEHAVIOUR = {
    "raises": raising(ValueError(SECRET)),
    "exits": raising(SystemExit(3)),
    "closes": raising(GeneratorExit()),
    "exhausts": raising(MemoryError()),
    "text": answering("no"),
    "nothing": answering(None),
    "wrong shape": answering(np.ones((5, 5))),
    "complex": answering(np.array([[1j]])),
    "ragged": answering([[1.0], [1.0, 2.0]]),
    "NaN": answering(np.array([[math.nan]])),
}


@pytest.mark.parametrize("name", MISBEHAVIOUR)
def test_a_failing_callback_counts_as_zero_and_shows_nothing(name: str) -> None:
    x, y = np.ones((4, 1)), np.array([1.0, 7.0, 3.0, -1.0])
    loss = ThirdParty(MISBEHAVIOUR[name])
    batch = curate((one(1, None),), x, y).everyone()
    answer = batch.gradient(loss, np.zeros((1, 1)), ClampedMean(100.0))
    assert int(answer._value[0]) * answer.sensitivity.unit == pytest.approx(3 / 4)
    assert loss.shapes == {((1, 1), (1,))}
    if name != "wrong shape":
        score = batch.scores(loss, [np.zeros((1, 1))], BoundedMean(100.0))
        assert int(score._value[0]) * score.sensitivity.unit == pytest.approx(4 / 4)


def test_a_callback_cannot_change_what_others_see() -> None:
    x, y = np.ones((4, 1)), np.array([1.0, 2.0, 3.0, -1.0])
    before = (x.copy(), y.copy())
    batch = curate((one(1, None),), x, y).everyone()
    for loss in (
        ThirdParty(mutating),
        GeneralLoss(value=lambda w, x, y: 0.0, gradient=_mutating_gradient),
    ):
        answer = batch.gradient(loss, np.zeros((1, 1)), ClampedMean(100.0))  # type: ignore[arg-type]
        assert int(answer._value[0]) * answer.sensitivity.unit == pytest.approx(5 / 4)
    assert np.array_equal(x, before[0])
    assert np.array_equal(y, before[1])


def _mutating_gradient(w: Any, x: Any, y: Any) -> Any:
    out = np.full(w.shape, y)
    for array in (w, x):
        try:
            array[:] = 1e9
        except ValueError:
            continue
    return out


@pytest.mark.parametrize("trusted", [False, True])
def test_a_general_loss_that_fails_counts_as_zero(trusted: bool) -> None:
    def gradient(w: Any, x: Any, y: Any) -> Any:
        if not trusted and y == 7.0:
            raise SystemExit(SECRET)
        return np.asarray(y)[..., None, None] * np.ones((1, 1)) if trusted else np.full((1, 1), y)

    loss = GeneralLoss(value=lambda w, x, y: 0.0, gradient=gradient, trusted_rowwise=trusted)
    x, y = np.ones((4, 1)), np.array([1.0, 7.0, 3.0, -1.0])
    answer = curate((one(1, None),), x, y).everyone().gradient(loss, W[:1], ClampedMean(100.0))
    expected = 10 / 4 if trusted else 3 / 4
    assert int(answer._value[0]) * answer.sensitivity.unit == pytest.approx(expected)


def test_custom_losses_that_fail_count_as_zero() -> None:
    table = {1.0: 1.0, 3.0: 3.0, -1.0: -1.0}
    interpreted = CustomLoss(value=lambda m, y: 0.0, derivative=lambda m, y: table[y])
    compiled = CustomLoss(value=lambda m, y: 0.0, derivative=lambda m, y: y / (y - 7.0) * (y - 7.0))
    x, y = np.ones((4, 1)), np.array([1.0, 7.0, 3.0, -1.0])
    for loss in (interpreted, compiled):
        answer = curate((one(1, None),), x, y).everyone().gradient(loss, W[:1], ClampedMean(100.0))
        assert int(answer._value[0]) * answer.sensitivity.unit == pytest.approx(3 / 4)


def test_a_subclass_of_our_loss_is_somebody_else_s() -> None:
    class Sly(SquaredLoss):
        def derivatives(self, margins: Any, y: Any) -> Any:
            return np.full(margins.shape, len(y) * 1.0)

    answer = curate((one(1, None),)).everyone().gradient(Sly(), W, ClampedMean(100.0))
    by_record = curate((one(1, None),)).everyone().means(ClampedMean(100.0))
    assert answer._value.tolist() == by_record._value.tolist()


# Nothing is shown


def test_nothing_is_shown_or_pickled() -> None:
    x = np.full((N, D), SECRET)
    for container in (x, sp.csr_matrix(x), {"a": x[:, 0]}):
        curator = curate((Round(events=()),), container, np.full(N, SECRET))
        batch = curator.everyone()
        for thing in (curator, batch, curator._data.records, curator._current):
            for text in (repr(thing), str(thing), f"{thing}"):
                assert "87654" not in text
            for out in (pickle.dumps, copy.copy, copy.deepcopy):
                with pytest.raises(NotReleased):
                    out(thing)


def test_errors_quote_no_cell() -> None:
    x = np.full((N, D), SECRET)
    attempts = [
        lambda: curate(x=x, y=np.full(N - 1, SECRET)),
        lambda: curate(x=x, y=np.array([str(SECRET)] * N)),
        lambda: curate(x=x.astype(str)),
        lambda: curate((one(),), x).everyone().gradient(SquaredLoss(), W[:1], MEAN),
        lambda: release(curate((one(),), x, None).everyone()),
        lambda: curate(x=np.full((N, D), math.nan)).refuse_non_finite(),
        lambda: curate((one(),), sp.csr_matrix(x)).everyone(FeatureMap.of(D, np.ones(D), x[0])),
        lambda: curate((one(),), x).everyone(FeatureMap(-np.ones(D), np.zeros(D))),
        lambda: curate(x=x).declare(["a"]),
    ]
    for attempt in attempts:
        with pytest.raises(PrivtailError) as caught:
            attempt()
        assert "87654" not in str(caught.value)


def test_refusing_comes_before_the_plan() -> None:
    curator = curate((one(),))
    with pytest.raises(NotPlanned):
        curator.refuse_non_finite()
    curate().refuse_non_finite()


def test_without_privacy_it_says_so() -> None:
    assert curate(epsilon=math.inf).noise == "none"
    assert curate(noise="simulated").noise == "simulated"
    assert curate().noise == "exact"
    with pytest.raises(InvalidInput):
        curate(noise="seeded")


def test_the_budget_of_a_curator_cannot_be_exchanged() -> None:
    """With an infinite one, an infinite threshold would let records choose the scale."""
    curator = curate((one(),))
    with pytest.raises(AttributeError):
        curator.budget = Budget(math.inf)


# Record and replay


def _public(argument: Any) -> Any:
    """Bytes of an array, the text of a value, the type of what has an address."""
    if isinstance(argument, np.ndarray):
        return argument.tobytes()
    if isinstance(argument, FeatureMap):
        return argument.scales.tobytes(), argument.offsets.tobytes()
    text = repr(argument)
    return type(argument).__name__ if " at 0x" in text else text


class Tape:
    """Everything that passed between an algorithm and the core, and the noise that was drawn."""

    def __init__(self, played: list[Any] | None = None) -> None:
        self.played = played
        self.drawn: list[Any] = []
        self.calls: list[Any] = []

    def draw(self, name: str, honest: Any) -> Any:
        def draw(sampler: Any, *arguments: Any) -> Any:
            public = [a for a in arguments if np.isscalar(a)]
            shapes = [np.shape(a) for a in arguments]
            self.calls.append((name, public, shapes))
            if self.played is None:
                answer = honest(sampler, *arguments)
            else:
                answer = self.played[len(self.drawn)]
            self.drawn.append(copy.copy(answer))
            return copy.copy(answer)

        return draw

    def listen(self, name: str, honest: Any) -> Any:
        def listen(batch: Any, *arguments: Any, **options: Any) -> Any:
            self.calls.append((name, [_public(a) for a in (batch, *arguments, options)]))
            return honest(batch, *arguments, **options)

        return listen


def taped(monkeypatch: pytest.MonkeyPatch, job: Any, data: Any, played: Any) -> tuple[Any, Tape]:
    tape = Tape(played)
    with monkeypatch.context() as patch:
        for name in (
            "gaussian", "laplace", "top", "coins", "scaled_laplace_lognormal", "scaled_normal"
        ):  # fmt: skip
            patch.setattr(ExactSampler, name, tape.draw(name, getattr(ExactSampler, name)))
        for name in (
            "gradient", "means", "scores", "improvement", "moments", "histogram",
            "derivative_norms", "derivatives", "separations", "gradient_moments",
        ):  # fmt: skip
            patch.setattr(Batch, name, tape.listen(name, getattr(Batch, name)))
        for name in ("trimmed_gradient", "aggregate"):
            patch.setattr(smooth, name, tape.listen(name, getattr(smooth, name)))
        patch.setattr(Opening, "charge", tape.listen("charge", Opening.charge))
        patch.setattr(Curator, "open", tape.listen("open", Curator.open))
        patch.setattr(Curator, "_batch", tape.listen("batch", Curator._batch))
        return job(*data), tape


def algorithm_job(
    algorithm: Any, loss: Any, domain: Any = None, multiplier: float = 5.0, intercept: bool = True
) -> Any:
    def job(x: Any, y: Any) -> Any:
        curator = Curator(x, y, budget=Budget(1e5, 1e-6), random_state=1, intercept=intercept)
        curator.open(algorithm.plan(multiplier, curator.problem))
        result = algorithm.run(curator, loss, domain or Unconstrained(), multiplier)
        assert curator._cursor == [], "the plan was not used up"
        assert curator._current is not None
        assert curator._current._next == len(curator._current._events)
        return [result.w, np.array([result.steps])]

    return job


def mean_job(method: Any, **options: Any) -> Any:
    def job(x: Any, y: Any) -> Any:
        found = private_mean(x, epsilon=20.0, method=method, random_state=1, **options)
        return [np.asarray(v) for v in (found.value, found.noise_std, found.reliable)]

    return job


def estimator_job(model: Any, code: bool = False) -> Any:
    def job(x: Any, y: Any) -> Any:
        labels = np.where(np.arange(len(y)) % 2 == 0, "no", "yes") if code else y
        if code:
            labels[-1] = "no" if y[-1] > 0 else "yes"
        fitted = copy.copy(model).fit(x, labels)
        return [fitted.coef_, np.asarray(fitted.intercept_), np.array([fitted.n_iter_])]

    return job


BALL = L1Ball(radius=2.0)
SPGD = StochasticProximalGradient
JOBS: dict[str, Any] = {
    "CatoniDescent": algorithm_job(
        CatoniDescent(steps=4, step_size=0.1, scale=2.0, smoothing=3.0), SquaredLoss()
    ),
    "ProximalGradient": algorithm_job(
        ProximalGradient(steps=5, step_size=0.1, threshold=1.0), SquaredLoss(), L2(alpha=0.1)
    ),
    "StochasticProximalGradient clipped": algorithm_job(
        SPGD(mean=ClippedMean(1.0), steps=3, step_size=0.1, sampling=PoissonBatches(0.3)),
        SquaredLoss(),
    ),
    "StochasticProximalGradient kamath": algorithm_job(
        SPGD(mean=ClampedMean(1.0, 4), steps=3, step_size=0.1, sampling=PoissonBatches(0.3)),
        SquaredLoss(),
    ),
    "StochasticProximalGradient holland": algorithm_job(
        SPGD(mean=SmoothedCatoniMean(2.0, 1.5), steps=3, step_size=0.1, sampling=PoissonBatches(1)),
        SquaredLoss(),
    ),
    "MedianOfMeansDescent": algorithm_job(
        MedianOfMeansDescent(
            steps=4, step_size=0.1, threshold=1.0, blocks=3, sampling=DisjointParts(4)
        ),
        SquaredLoss(),
    ),
    "TrimmedDescent": algorithm_job(
        TrimmedDescent(steps=3, step_size=0.1, low=-2.0, high=2.0), SquaredLoss()
    ),
    "AggregatedMinimizer": algorithm_job(
        AggregatedMinimizer(blocks=9, radius=3.0, smoothness=0.5, delta=1e-7), SquaredLoss()
    ),
    "ScaledDescent": algorithm_job(ScaledDescent(tuning=SHORT), SquaredLoss()),
    "ScaledDescent by record": algorithm_job(
        ScaledDescent(tuning=SHORT), CustomLoss(value=lambda m, y: m, derivative=lambda m, y: m - y)
    ),
    "FrankWolfe": algorithm_job(
        FrankWolfe(steps=4, step_size=0.3, threshold=1.0), SquaredLoss(), BALL, intercept=False
    ),
    "MirrorDescent": algorithm_job(
        MirrorDescent(steps=4, step_size=0.3, threshold=1.0, geometry=PNorm(1.5)), SquaredLoss(),
        BALL, intercept=False,
    ),
    "FrankWolfeCorners": algorithm_job(
        FrankWolfeCorners(steps=4, step_size=0.3, threshold=1.0), SquaredLoss(), BALL,
        intercept=False,
    ),
    "HeavyTailedFrankWolfe": algorithm_job(
        HeavyTailedFrankWolfe(steps=3, scale=2.0), SquaredLoss(), BALL, intercept=False
    ),
    "TruncatedLasso": algorithm_job(
        TruncatedLasso(steps=3, truncation=2.0, radius=2.0), SquaredLoss(), BALL, intercept=False
    ),
    "TruncatedSparseRegression": algorithm_job(
        TruncatedSparseRegression(steps=3, step_size=0.1, truncation=2.0, sparsity=1),
        SquaredLoss(), L2Ball(radius=1.0), intercept=False,
    ),
    "SparsePeeling one shot": algorithm_job(
        SparsePeeling(
            mean=TruncatedMean(1.0), steps=3, step_size=0.1, peeling=OneShotPeeling(sparsity=2)
        ),
        SquaredLoss(),
    ),
    "SparsePeeling Laplace": algorithm_job(
        SparsePeeling(
            mean=SmoothedCatoniMean(2.0, 1.0), steps=3, step_size=0.1,
            peeling=LaplacePeeling(sparsity=2),
        ),
        SquaredLoss(),
    ),
    "NetSearch": algorithm_job(
        NetSearch(points=60, scale=0.3), AbsoluteLoss(), BALL, intercept=False
    ),
    "NoisyDescent": algorithm_job(
        NoisyDescent(steps=4, step_size=0.1, threshold=1.0), SquaredLoss()
    ),
    "OnePassDescent": algorithm_job(
        OnePassDescent(steps=4, step_size=0.1, threshold=1.0), SquaredLoss()
    ),
    "BoostedAdaSSP": algorithm_job(
        BoostedAdaSSP(steps=3, radius=2.0, threshold=1.0), SquaredLoss()
    ),
    "RandomRoundDescent": algorithm_job(
        RandomRoundDescent(rows=4, steps=5, step_size=0.1, threshold=1.0), SquaredLoss()
    ),
    **{f"private_mean {method}": mean_job(method) for method in METHODS},
    "private_mean blocks": mean_job("clamped", blocks=3),
    "private_mean threshold": mean_job("truncated", threshold=2.0),
    "DPLinearRegression": estimator_job(
        DPLinearRegression(epsilon=20.0, random_state=1, algorithm=ScaledDescent(tuning=SHORT))
    ),
    "DPLogisticRegression": estimator_job(
        DPLogisticRegression(epsilon=20.0, random_state=1, classes=["no", "yes"]), code=True
    ),
    "ScaledDescent counts": algorithm_job(
        ScaledDescent(tuning=SHORT, targets="count"), PoissonLoss()
    ),
    "ScaledDescent kinked": algorithm_job(ScaledDescent(tuning=SHORT), AbsoluteLoss()),
    "ScaledDescent relative": algorithm_job(
        ScaledDescent(tuning=SHORT), RelativeHuberLoss(threshold=1.35)
    ),
    **{
        f"model {name}": estimator_job(kind(epsilon=20.0, random_state=1, count_invalid=0.1))
        for name, kind in MODELS.items()
        if name in ("ridge", "quantile", "poisson")
    },
    "DPLogisticRegression balanced": estimator_job(
        DPLogisticRegression(
            epsilon=20.0, random_state=1, classes=["no", "yes"], class_weight="balanced",
            count_invalid=0.1,
        ),
        code=True,
    ),
    "DPLogisticRegression labels": estimator_job(
        DPLogisticRegression(epsilon=200.0, delta=1e-3, random_state=1), code=True
    ),
}  # fmt: skip


def neighbours_of(x: np.ndarray, y: np.ndarray) -> list[tuple[np.ndarray, np.ndarray]]:
    pairs = []
    for cell, target in ((1e308, -1e308), (math.nan, 1.0), (1e-320, math.inf), (-1e12, 1e300)):
        x2, y2 = x.copy(), y.copy()
        x2[-1], y2[-1] = cell, target
        pairs.append((x2, y2))
    return pairs


@pytest.mark.parametrize("storage", ["dense", "csr"])
@pytest.mark.parametrize("name", JOBS)
def test_equal_releases_on_neighbouring_data_give_equal_everything(
    name: str, storage: str, half: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    make = sp.csr_matrix if storage == "csr" else np.asarray
    if (name, storage) == ("private_mean coinpress", "csr"):
        with pytest.raises(InvalidInput, match="sparse"):
            JOBS[name](make(X), Y)
        return
    reference, tape = taped(monkeypatch, JOBS[name], (make(X), Y), None)
    assert tape.drawn
    assert [c for c in tape.calls if c[0] == "charge"]
    first = (list(JOBS).index(name) + half) % 2
    for x2, y2 in neighbours_of(X, Y)[first : 2 if storage == "csr" else None : 2]:
        found, again = taped(monkeypatch, JOBS[name], (make(x2), y2), tape.drawn)
        assert again.calls == tape.calls
        for a, b in zip(reference, found, strict=True):
            assert a.dtype == b.dtype
            assert a.tobytes() == b.tobytes()


def test_every_published_algorithm_is_replayed() -> None:
    names = " ".join(JOBS)
    assert all(row.algorithm.__name__ in names for row in TABLE)


def test_a_step_count_that_looks_at_the_data_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    class Peeking(ProximalGradient):
        def plan(self, multiplier: float, problem: Any) -> Plan:
            event = GaussianNoise(multiplier).event(problem.gradient(self.mean))
            return (Round(events=(event,), times=9),)

        def run(self, curator: Any, *arguments: Any, **options: Any) -> Any:
            biggest = np.nanmax(np.abs(curator._data.records._X))
            object.__setattr__(self, "steps", 10 if biggest > 1e300 else 3)
            return super().run(curator, *arguments, **options)

    def job(x: Any, y: Any) -> Any:
        curator = Curator(x, y, budget=Budget(1e5, 1e-6), random_state=1)
        algorithm = Peeking(steps=3, step_size=0.1, threshold=1.0)
        curator.open(algorithm.plan(5.0, curator.problem))
        return [algorithm.run(curator, SquaredLoss(), Unconstrained(), 5.0).w]

    _, tape = taped(monkeypatch, job, (X, Y), None)
    with pytest.raises(IndexError):  # it asks for noise that the other run never drew
        taped(monkeypatch, job, neighbours_of(X, Y)[0], tape.drawn)


def test_a_clipping_level_that_looks_at_the_data_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    def job(x: Any, y: Any) -> Any:
        curator = Curator(x, y, budget=Budget(1e5, 1e-6), random_state=1)
        mean = TruncatedMean(float(np.nanmax(np.abs(x))))
        noise = GaussianNoise(5.0)
        curator.open((Round(events=(noise.event(curator.problem.means(mean)),)),))
        return [curator.everyone().means(mean).release(noise)]

    reference, tape = taped(monkeypatch, job, (X, Y), None)
    found, _ = taped(monkeypatch, job, neighbours_of(X, Y)[0], tape.drawn)
    assert reference[0].tobytes() != found[0].tobytes()


# Portability and shapes


def test_threads_is_a_positive_number_everywhere(monkeypatch: pytest.MonkeyPatch) -> None:
    for asked, least in (("3", 3), ("0", 1), ("", 1), ("many", 1)):
        monkeypatch.setenv("PRIVTAIL_THREADS", asked)
        assert dataset.threads() >= least
    monkeypatch.setenv("PRIVTAIL_THREADS", "")
    monkeypatch.delattr("os.sched_getaffinity", raising=False)  # as on macOS
    assert dataset.threads() >= 1


@pytest.mark.parametrize(
    "edges",
    [[], 1.0, [1.0, 1.0], [2.0, 1.0], [math.nan, 1.0], [[1.0, 1.0]], [[1.0], [2.0]], [[[1.0]]]],
)
def test_edges_ascend(edges: Any) -> None:
    with pytest.raises(InvalidInput, match="edges"):
        curate((one(),)).everyone().histogram([0], edges)


def test_public_options_are_checked() -> None:
    with pytest.raises(InvalidInput, match="parts"):
        curate().problem.sampled(DisjointParts(N + 1))
    with pytest.raises(InvalidInput, match="radius"):
        curate((one(),)).everyone().moments(math.inf)
    with pytest.raises(InvalidInput, match="times"):
        Round(events=(), times=-1)
    with pytest.raises(InvalidInput):
        PoissonBatches(0.0)
    with pytest.raises(InvalidInput):
        DisjointParts(0)
    with pytest.raises(InvalidInput, match="at least one row"):
        curate(x=np.zeros((0, 2)), y=None)


@pytest.mark.parametrize("law", ["gaussian", "laplace_lognormal"])
def test_a_plan_pays_for_no_more_coordinates_than_it_has(law: Any) -> None:
    """On any grid; every coordinate of Laplace log-normal noise has a price of its own.

    That price has a part that does not fall with the unit: on another grid it is not paid for.
    """
    planned = Event(
        law=law, scale=8.0, radius=1.0, diameter=2.0, coordinates=3, smoothness=0.1, spread=0.2
    )
    for unit in (1.0, 2.0**-20, 2.0**20):
        sizes = {"scale": 8.0 * unit, "radius": unit, "diameter": 2.0 * unit}
        for count in (1, 2, 3, 4):
            asked = replace(planned, coordinates=count, **sizes)
            known = law == "gaussian" or unit == 1
            assert _pays_for(planned, asked) == (known and count <= 3)


@pytest.mark.parametrize("law", ["laplace_lognormal", "smooth_gaussian"])
def test_more_noise_by_a_smooth_sensitivity_is_paid_for_and_less_is_not(law: Any) -> None:
    planned = Event(
        law=law, scale=8.0, radius=1.0, diameter=1.0, coordinates=3, smoothness=0.1, spread=0.2
    )
    for scale, paid in ((8.0, True), (8.0 + 2.0**-40, True), (8.0 - 2.0**-40, False)):
        assert _pays_for(planned, replace(planned, scale=scale, coordinates=2)) == paid
    for other in ({"radius": 0.5}, {"diameter": 2.0}, {"smoothness": 0.2}, {"spread": 0.1}):
        assert not _pays_for(planned, replace(planned, coordinates=2, **other))
