"""One person with several rows: no neighbour moves an answer further than said, in any question.

Neighbours differ in all rows of one person: exchanged for those of a new person in the same
positions, or emptied. Differences are differences of integers and are compared exactly. Every check
has a twin in which one safeguard is taken away, and the same check finds it.
"""

from __future__ import annotations

import dataclasses
import json
import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np
import pytest
import scipy.sparse as sp

from privtail.calibration import calibrated
from privtail.errors import InvalidInput, NotPlanned, NotReleased, UnsupportedAccounting
from privtail.losses import SquaredLoss
from privtail.robust_means import MEANS, BoundedMean, ClampedMean, ClippedMean
from privtail.statement import state, verify
from privtail.trusted.accountants import cost
from privtail.trusted.budget import Budget
from privtail.trusted.curator import Batch, Curator
from privtail.trusted.events import Round, plan_from_json, plan_to_json
from privtail.trusted.ledger import Ledger
from privtail.trusted.mechanisms.labels import StabilityHistogram
from privtail.trusted.mechanisms.noise import GaussianNoise, LaplaceNoise
from privtail.trusted.mechanisms.selection import NoisyMax
from privtail.trusted.problem import Problem
from privtail.trusted.records import persons as persons_module
from privtail.trusted.records.persons import Persons
from privtail.trusted.sampling import DisjointParts, Everyone, PoissonBatches, Sampling
from privtail.trusted.sensitive import Sensitive
from privtail.trusted.sensitivity import Norms

N, D = 40, 3
HUGE, TINY = 1e308, 5e-324
BLOCKS = (1, 2, 3, 8)
EDGES = [-HUGE, -1.0, 0.0, TINY, 1.0, 1e200]
DATA = np.random.default_rng(5)
X0, Y0 = DATA.standard_t(1.5, (N, D)), DATA.standard_cauchy(N)
X0[0], X0[1] = HUGE, X0[2]


@dataclass(frozen=True)
class Wild:
    """A loss that makes infinities and NaN out of finite rows."""

    outputs: int = 1
    name: ClassVar[str] = "wild"
    targets: ClassVar[str] = "real"
    convex: ClassVar[bool] = False
    curvature: ClassVar[float] = math.inf
    lipschitz: ClassVar[float] = math.inf

    def values(self, margins: Any, y: Any) -> Any:
        return y * y + margins[:, 0]

    def derivatives(self, margins: Any, y: Any) -> Any:
        return (np.exp(y) - y * y)[:, None]


def owners(max_rows: int, n: int = N) -> np.ndarray:
    """Persons with 1, m and 5m rows at scattered positions; the rest of the rows are singles."""
    ids = np.arange(100, 100 + n)
    seats = np.random.default_rng(1).permutation(n)
    for person, size in enumerate((5 * max_rows, max_rows, max_rows + 1)):
        ids[seats[:size]] = person
        seats = seats[size:]
    return ids.astype(object)


def curate(
    x: Any, y: Any, groups: Any, max_rows: int, sampling: Sampling | None = None, **options: Any
) -> Batch:
    sampling = sampling or Everyone()
    curator = Curator(
        x, y, groups=groups, max_rows=max_rows, budget=Budget(1.0, 1e-6), noise="simulated",
        random_state=3, **options,
    )  # fmt: skip
    curator.open((Round(sampling=sampling, events=(), times=1),))
    return next(curator.rounds(sampling, 1))


def integers(answer: Sensitive) -> list[int]:
    return [int(v) for v in answer._value]


def ratios(before: Sensitive, after: Sensitive, promised: Norms) -> np.ndarray:
    """Moved over promised in l1, l2, l-infinity; raises where that exceeds 1, exactly."""
    moved = [abs(a - b) for a, b in zip(integers(before), integers(after), strict=True)]
    l1, squares, linf = sum(moved), sum(v * v for v in moved), max(moved)
    assert l1 <= Fraction(promised.l1), f"l1 {l1 / promised.l1}"
    assert squares <= Fraction(promised.l2) ** 2, f"l2 {math.sqrt(squares) / promised.l2}"
    assert linf <= Fraction(promised.linf), f"l-infinity {linf / promised.linf}"
    return np.array([l1 / promised.l1, math.sqrt(squares) / promised.l2, linf / promised.linf])


# Neighbours: the same positions, other rows


def rewritten(cell: float, target: float, mixed: bool) -> Callable[[int], tuple[Any, Any]]:
    """Rows of one person: all alike, or with signs and gaps in between."""

    def rows(count: int) -> tuple[Any, Any]:
        x, y = np.full((count, D), cell), np.full(count, target)
        if mixed:
            x[::2] *= -1
            x[1::3, 0] = math.nan
            y[2::4] = math.inf
        return x, y

    return rows


CELLS = (
    (HUGE, 1.0), (-HUGE, 1.0), (1.0, HUGE), (1e-170, 1e200), (TINY, HUGE), (0.7, -1.0),
    (-5.0, -5.0), (5.0, 5.0), (math.nan, 1.0), (1.0, math.inf), (0.0, 0.0),
)  # fmt: skip
PEOPLE = [rewritten(*pair, mixed) for mixed in (False, True) for pair in CELLS]

Data = tuple[Any, Any, Any]


def neighbours(groups: np.ndarray, person: Any, now: Any, then: Any) -> tuple[Data, Data, Data]:
    """One person's rows as they are, those of a new person there, and nothing there."""
    seats = np.flatnonzero([g == person for g in groups])
    found: list[Data] = []
    for rows, name in ((now, person), (then, 777), (then, None)):
        x, y, ids = X0[: len(groups)].copy(), Y0[: len(groups)].copy(), groups.copy()
        x[seats], y[seats] = rows(len(seats))
        ids[seats] = name
        found.append((x, y, ids))
    return found[0], found[1], found[2]


Question = Callable[[Batch], Sensitive]


def check(
    question: Question,
    max_rows: int,
    people: Any = PEOPLE,
    sampling: Sampling | None = None,
    groups: np.ndarray | None = None,
    storage: Callable[[Any], Any] = np.asarray,
    options: dict[str, Any] | None = None,
) -> tuple[np.ndarray, np.ndarray]:
    """The largest ratios, replaced and emptied; raises if any exceeds 1."""
    groups = owners(max_rows) if groups is None else groups
    worst, emptied = np.zeros(3), np.zeros(3)
    for t, then in enumerate(people):
        person = groups[0] if (groups == groups[0]).all() else t % 3
        sets = neighbours(groups, person, people[t - 1], then)
        full, other, empty = (
            question(curate(storage(x), y, ids, max_rows, sampling, **(options or {})))
            for x, y, ids in sets
        )
        bounds = full.sensitivity
        worst = np.maximum(worst, ratios(full, other, bounds.diameter))
        emptied = np.maximum(emptied, ratios(full, empty, bounds.radius))
        if bounds.one_signed:
            pairs = zip(integers(full), integers(empty), strict=True)
            assert all(a >= b for a, b in pairs), "emptying moves one way"
    return worst, emptied


W = np.full((D, 1), 0.1)
POINTS = [np.full((D, 1), v) for v in (0.0, 1.0, -1e3, HUGE)]
ALL_MEANS = [
    pytest.param(dataclasses.replace(mean, blocks=k), id=f"{type(mean).__name__}{i}-{k}")  # type: ignore[type-var]
    for i, mean in enumerate(MEANS)
    for k in BLOCKS
]
QUESTIONS: dict[str, Question] = {
    "scores 1": lambda b: b.scores(SquaredLoss(), POINTS, BoundedMean(0.5)),
    "scores 2": lambda b: b.scores(SquaredLoss(), POINTS, BoundedMean(0.5, 2)),
    "scores 3": lambda b: b.scores(Wild(), POINTS, BoundedMean(0.5, 3)),
    "scores 8": lambda b: b.scores(SquaredLoss(), POINTS, BoundedMean(0.5, 8)),
    "moments": lambda b: b.moments(1.0),
    "moments with target": lambda b: b.moments(1e-3, target=True),
    "moments of gradients": lambda b: b.gradient_moments(Wild(), W, ClippedMean(0.5)),
    "histogram": lambda b: b.histogram([0, 2, -1], EDGES),
    "histogram of one": lambda b: b.histogram([1], EDGES),
    "histogram of own edges": lambda b: b.histogram([0, -1], [EDGES, 0.75 * np.array(EDGES)]),
    "pooled histogram": lambda b: b.histogram([0, 1, -1], EDGES, pooled=True),
    "cell counts": lambda b: b.cell_counts([0, 2], EDGES, [[1]]),
    "column moments": lambda b: b.column_moments([0, 2]),
    "derivative norms": lambda b: b.derivative_norms(Wild(), W, 2.0 ** np.arange(-20, 20)),
    "derivatives": lambda b: b.derivatives(Wild(), W, ClippedMean(0.5)),
    "derivatives 3": lambda b: b.derivatives(SquaredLoss(), W, ClampedMean(0.5, 3)),
    "separations": lambda b: b.separations(Wild(), W, ClampedMean(0.5)),
    "invalid rows": lambda b: b.invalid_rows(),
    "gradient": lambda b: b.gradient(SquaredLoss(), W, ClippedMean(1.0)),
}


@pytest.mark.parametrize("max_rows", [1, 3])
@pytest.mark.parametrize("mean", ALL_MEANS)
def test_gradients_and_means(mean: Any, max_rows: int) -> None:
    for t, loss in enumerate((SquaredLoss(), Wild())):
        some = PEOPLE[(t + mean.blocks) % 4 :: 4]
        check(lambda b: b.gradient(loss, W, mean), max_rows, some)  # noqa: B023
    check(lambda b: b.means(mean), max_rows, PEOPLE[mean.blocks % 2 :: 2])


@pytest.mark.parametrize("sampling", [Everyone(), PoissonBatches(0.6), DisjointParts(2)])
@pytest.mark.parametrize("max_rows", [1, 3])
@pytest.mark.parametrize("name", QUESTIONS)
def test_all_other_questions(name: str, max_rows: int, sampling: Sampling) -> None:
    some = PEOPLE if sampling == Everyone() else PEOPLE[max_rows // 3 :: 2]
    check(QUESTIONS[name], max_rows, some, sampling)


@pytest.mark.parametrize("name", QUESTIONS)
def test_sparse_rows_and_an_intercept(name: str) -> None:
    if not any(word in name for word in ("gradient", "derivative", "scores", "separations")):
        check(QUESTIONS[name], 2, PEOPLE[::3], storage=sp.csr_matrix, options={"intercept": True})
    check(QUESTIONS[name], 2, PEOPLE[::3], storage=sp.csr_matrix)


@pytest.mark.parametrize("name", QUESTIONS)
@pytest.mark.parametrize("n", [1, 2, 12])
def test_one_person_alone(name: str, n: int) -> None:
    """All rows are one person's."""
    if n < 8 and name[-1] in "238":
        return
    alone = np.array(["anna"] * n, dtype=object)
    for max_rows in (1, 3, 20):
        check(QUESTIONS[name], max_rows, PEOPLE[::2], groups=alone)


ATTAINED: dict[str, tuple[Question, Any, Any]] = {
    "clipped": (
        lambda b: b.means(ClippedMean(1.0)), rewritten(5.0, 5.0, False),
        rewritten(-5.0, 5.0, False),
    ),
    "box": (
        lambda b: b.means(ClampedMean(1.0)), rewritten(5.0, 5.0, False),
        rewritten(-5.0, 5.0, False),
    ),
    "histogram": (
        QUESTIONS["histogram"], rewritten(5.0, 5.0, False), rewritten(-5.0, -5.0, False),
    ),
    "derivative norms": (
        QUESTIONS["derivative norms"], rewritten(1e-3, 1e-3, False), rewritten(100.0, 5.0, False),
    ),
    "derivatives": (
        QUESTIONS["derivatives"], rewritten(0.0, 1.0, False), rewritten(HUGE, -5.0, False),
    ),
    "separations": (
        QUESTIONS["separations"], rewritten(HUGE, 5.0, False), rewritten(HUGE, -5.0, False),
    ),
    "invalid rows": (
        QUESTIONS["invalid rows"], rewritten(math.nan, 1.0, False), rewritten(1.0, 1.0, False),
    ),
    "scores": (
        lambda b: b.scores(SquaredLoss(), [0 * W, W], BoundedMean(0.5)),
        rewritten(0.0, 1e9, False), rewritten(0.0, 0.0, False),
    ),
}  # fmt: skip


def attained(name: str, max_rows: int = 3) -> float:
    question, now, then = ATTAINED[name]
    worst, emptied = check(question, max_rows, [now, then] * 3)
    return float(min(worst.max(), emptied.max()))


@pytest.mark.parametrize("name", ATTAINED)
def test_the_bound_is_attained(name: str) -> None:
    """By a person with m, m + 1 or 5m rows: so it is the sensitivity, not something larger."""
    for max_rows in (1, 3):
        assert attained(name, max_rows) >= 0.999


@pytest.mark.parametrize("blocks", [3, 8])
def test_medians_of_blocks_need_the_factor(blocks: int) -> None:
    """Three rows in three blocks, or all in one: every deal stays below, one row's bound does not.

    n = blocks: every position is a block. The sums of the others lie on both sides.
    """
    reached = 0.0
    for seed in range(20):
        rng = np.random.default_rng(seed)
        groups = np.arange(10, 10 + 3 * blocks).astype(object)
        mine = rng.permutation(3 * blocks)[:3]
        groups[mine] = 1
        x = rng.uniform(-2, 2, (3 * blocks, 1))
        answers = []
        for value in (1e9, -1e9):
            x[mine] = value
            b = curate(x.copy(), None, groups, 3)
            answers.append(b.means(ClampedMean(1.0, blocks)))
        one = Problem(n=3 * blocks, d=1).means(ClampedMean(1.0, blocks)).diameter
        ratios(answers[0], answers[1], answers[0].sensitivity.diameter)
        moved = abs(answers[0]._value - answers[1]._value).max()
        reached = max(reached, float(moved) / one.linf)
    assert reached > 1.0


# Twins


def test_rows_beyond_the_cap_are_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    honest = Persons.seats
    monkeypatch.setattr(Persons, "seats", lambda self, order, m: honest(self, order, 10**6))
    for name in ATTAINED:
        with pytest.raises(AssertionError, match=r"l1|l2|l-inf"):
            attained(name)


def test_the_sensitivity_of_one_row_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Norms, "times", lambda self, factor: self)
    for name in ATTAINED:
        with pytest.raises(AssertionError, match=r"l1|l2|l-inf"):
            attained(name)
    for blocks in (3, 8):
        with pytest.raises(AssertionError, match=r"l1|l2|l-inf"):
            test_medians_of_blocks_need_the_factor(blocks)


def test_products_of_norms_are_rounded_up() -> None:
    for x in (1.0, math.sqrt(2) * 2.0**34, 0.1, 2.0**53 + 2, 3.3e15, math.inf):
        for factor in (1, 3, 7, 10**6 + 1):
            (product,) = {*dataclasses.astuple(Norms(x, x, x).times(factor))}
            if math.isfinite(x):
                assert 0 <= Fraction(product) - Fraction(x) * factor <= Fraction(math.ulp(product))
            else:
                assert product == math.inf


# Whose rows count, and who is sampled


def ids_of(b: Batch) -> list[int]:
    ids = b._sample.within(0, b._problem.most)
    assert not isinstance(ids, slice)
    return [int(i) for i in ids]


def seats_of_others(groups: np.ndarray, person: Any, sampling: Sampling) -> list[list[int]]:
    """Who is seen in six rounds, the positions of one person left out."""
    mine = set(np.flatnonzero([g == person for g in groups]).tolist())
    curator = Curator(
        np.ones((len(groups), 1)), groups=groups, max_rows=2, budget=Budget(1.0, 1e-6),
        noise="simulated", random_state=0,
    )  # fmt: skip
    curator.open((Round(sampling=sampling, events=(), times=6),))
    seen = [ids_of(b) for b in curator.rounds(sampling, 6)]
    return [[i for i in ids if i not in mine] for ids in seen]


SAMPLINGS = pytest.mark.parametrize(
    "sampling", [Everyone(), PoissonBatches(0.5), DisjointParts(3)], ids=["all", "coins", "parts"]
)


def others_stay(sampling: Sampling) -> bool:
    """Whether exchanging or emptying somebody leaves everybody else where they were."""
    groups = owners(2)
    groups[0] = None
    same = True
    for person in (0, 1, 2, groups[-1]):
        before = seats_of_others(groups, person, sampling)
        for name in (-1, 10**9, "zoe", None, math.nan):
            other = np.array([name if g == person else g for g in groups], dtype=object)
            mine = np.flatnonzero([g == person for g in groups])
            after = seats_of_others(other, name, sampling)
            after = [[i for i in ids if i not in mine] for ids in after]
            same &= before == after
    return same


@SAMPLINGS
def test_nobody_else_s_seat_depends_on_one_person(sampling: Sampling) -> None:
    assert others_stay(sampling)


@pytest.mark.parametrize("sampling", [PoissonBatches(0.5), DisjointParts(3)])
def test_coins_by_number_of_the_person_are_caught(
    sampling: Sampling, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With one person less, or one who sorts elsewhere, everybody would draw another coin."""
    honest = Persons.seats

    def numbered(self: Persons, order: Any, max_rows: int) -> Any:
        positions, _ = honest(self, order, max_rows)
        _, person = persons_module.distinct(self._groups)
        return positions, person[positions]

    monkeypatch.setattr(Persons, "seats", numbered)
    assert not others_stay(sampling)


def all_or_nothing(sampling: Sampling) -> tuple[bool, np.ndarray]:
    """Whether persons are seen whole; how often each of them is."""
    groups, rounds = owners(3), 300
    curator = Curator(
        np.ones((N, 1)), groups=groups, max_rows=3, budget=Budget(1.0, 1e-6), random_state=0
    )
    curator.open((Round(sampling=sampling, events=(), times=rounds),))
    names = sorted(set(groups))
    counts = np.array(
        [
            [sum(groups[i] == name for i in ids_of(b)) for name in names]
            for b in curator.rounds(sampling, rounds)
        ]
    )
    sizes = np.array([min(3, (groups == name).sum()) for name in names])
    return bool(((counts == 0) | (counts == sizes)).all()), (counts > 0).mean(axis=0)


@pytest.mark.parametrize("sampling", [PoissonBatches(0.3), DisjointParts(3)])
def test_persons_are_sampled_whole_and_at_the_stated_rate(sampling: Sampling) -> None:
    whole, seen = all_or_nothing(sampling)
    assert whole
    rate = sampling.rate if isinstance(sampling, PoissonBatches) else 1 / 3
    if isinstance(sampling, PoissonBatches):  # 5.5 standard deviations for each of 22 persons
        assert (abs(seen - rate) < 5.5 * math.sqrt(rate * (1 - rate) / 300)).all()
    else:  # everybody is in one part of a deal
        assert np.allclose(seen, rate)


@pytest.mark.parametrize("sampling", [PoissonBatches(0.3), DisjointParts(3)])
def test_coins_per_row_are_caught(sampling: Sampling, monkeypatch: pytest.MonkeyPatch) -> None:
    honest = Persons.seats

    def by_row(self: Persons, order: Any, max_rows: int) -> Any:
        positions, _ = honest(self, order, max_rows)
        return positions, positions

    monkeypatch.setattr(Persons, "seats", by_row)
    whole, seen = all_or_nothing(sampling)
    assert not whole
    if isinstance(sampling, PoissonBatches):
        assert seen.max() > 0.3 + 5.5 * math.sqrt(0.21 / 300)


def test_rows_are_kept_by_public_chance_and_never_by_value() -> None:
    groups = np.repeat(np.arange(10), 4)
    columns = (np.ones((N, 1)), np.full((N, 1), math.nan), np.arange(N)[::-1, None] * 1e300)
    kept = [ids_of(curate(x, None, groups, 2)) for x in columns]
    assert kept[0] == kept[1] == kept[2] == sorted(kept[0])
    assert np.bincount(groups[kept[0]]).tolist() == [2] * 10
    first = [4 * p + r for p in range(10) for r in (0, 1)]
    assert kept[0] != first  # files come sorted: the first rows are not the ones that count


def test_missing_ids_belong_to_nobody() -> None:
    groups = np.array([None, "a", math.nan, "b", "a", None], dtype=object)
    for ids in (groups, np.array([math.nan, 1.0, math.nan, 2.0, 1.0, math.nan])):
        b = curate(np.ones((6, 1)), None, ids, 5)
        assert ids_of(b) == [1, 3, 4]
    nobody = curate(np.ones((3, 1)), np.ones(3), np.array([None] * 3, dtype=object), 2)
    assert ids_of(nobody) == []
    assert integers(nobody.invalid_rows()) == [0]
    assert integers(nobody.means(ClampedMean(1.0))) == [0]


def test_equal_ids_are_one_person_in_every_container() -> None:
    pandas = pytest.importorskip("pandas")
    polars = pytest.importorskip("polars")
    numbers, text = [3, 1, 3, 2, 3, 1], ["c", "a", "c", "b", "c", "a"]
    containers = [
        numbers, text, tuple(text), np.array(numbers), np.array(text), np.array(numbers, float),
        np.array(numbers, np.uint8), np.array(text, "S1"), np.array([3, 1.0, 3.0, 2, "3", True],
        dtype=object)[[0, 1, 2, 3, 0, 5]], pandas.Series(numbers), pandas.Series(text),
        pandas.Series(text, dtype="category"), pandas.Series(numbers, dtype="Int64"),
        pandas.to_datetime(pandas.Series(numbers)), polars.Series(numbers), polars.Series(text),
    ]  # fmt: skip
    kept = {tuple(ids_of(curate(np.ones((6, 1)), None, c, 1))) for c in containers}
    assert len(kept) == 1
    assert [numbers[i] for i in sorted(kept.pop(), key=lambda i: numbers[i])] == [1, 2, 3]


def test_different_ids_are_different_persons_in_every_container() -> None:
    """Ids that are one as doubles, and times that are one in microseconds."""
    pandas = pytest.importorskip("pandas")
    polars = pytest.importorskip("polars")
    arrow = pytest.importorskip("pyarrow")
    near, times = np.array([2**60, 2**60 + 1, 1, 2]), np.array([1, 2, 3, 10**9])
    ids, clock = polars.Series(near), polars.Series(times)
    containers = [
        near, near.tolist(), near.astype(object), ids, arrow.array(near), pandas.Series(near),
        pandas.Series(near, dtype="Int64"), pandas.Series(near, dtype="category"),
        near.view("M8[ns]"), list(near.view("M8[ns]")), pandas.Series(near.view("M8[ns]")),
        pandas.Series(near.view("M8[ns]")).dt.tz_localize("UTC"), ids.cast(polars.Datetime("ns")),
        ids.cast(polars.Duration("ns")), clock.cast(polars.Time), pandas.to_timedelta(near),
        arrow.array(times).view(arrow.time64("ns")),
    ]  # fmt: skip
    for container in containers:
        assert ids_of(curate(np.ones((4, 1)), None, container, 1)) == [0, 1, 2, 3]


def test_without_groups_nothing_changes() -> None:
    curator = Curator(X0, Y0, budget=Budget(1.0, 1e-6), random_state=3)
    curator.open((Round(events=()),))
    b = curator.everyone()
    assert b._sample.within(0, N) == slice(0, N)
    assert b.problem == Problem(n=N, d=D)
    alone = curate(X0, Y0, np.arange(N), 1)
    for question in QUESTIONS.values():
        assert question(alone).sensitivity == question(b).sensitivity
    once = QUESTIONS["moments"]
    assert integers(once(alone)) == integers(once(b))


# Noise, bills and statements


def test_events_carry_the_factor() -> None:
    one, five = Problem(n=N, d=D), Problem(n=N, d=D, max_rows=5)
    for noise in (GaussianNoise(2.0), LaplaceNoise(2.0)):
        a, b = (noise.event(p.sampled(PoissonBatches(0.5)).invalid_rows()) for p in (one, five))
        assert (b.scale, b.radius, b.diameter) == (5 * a.scale, 5 * a.radius, 5 * a.diameter)
    a, b = (NoisyMax(2.0).event(p.scores(4, BoundedMean(1.0))) for p in (one, five))
    assert (b.scale, b.radius, b.diameter) == (5 * a.scale, 5 * a.radius, 5 * a.diameter)
    assert a.one_signed
    assert b.one_signed
    assert one.means(ClippedMean(1.0)).magnitude == five.means(ClippedMean(1.0)).magnitude


def test_noise_that_leaves_the_integers_is_refused() -> None:
    answer = Problem(n=N, d=D, max_rows=10**9).means(ClippedMean(1.0))
    with pytest.raises(InvalidInput, match="too small"):
        GaussianNoise(100.0).event(answer)


@pytest.mark.parametrize("neighbours", ["replace_one", "zero_out"])
@SAMPLINGS
def test_the_statement_says_person_and_can_be_verified(sampling: Any, neighbours: Any) -> None:
    curator = Curator(
        X0, Y0, groups=owners(3), max_rows=3, budget=Budget(1.0, 1e-6, neighbours), random_state=0
    )
    mean = ClippedMean(1.0)
    problem = curator.problem.sampled(sampling)
    answer = problem.means(mean)
    m = calibrated(
        curator,
        lambda m: (Round(sampling=sampling, events=(GaussianNoise(m).event(answer),), times=3),),
    )
    for b in curator.rounds(sampling, 3):
        b.means(mean).release(GaussianNoise(m))
    told = state(curator)
    assert "for one person, of whose rows at most 3 are used, " in told.headline
    assert dict(told.facts())["protects"] == "one person, of whose rows at most 3 are used"
    assert "the rows of one person" in dict(told.facts())["compares"]
    assert any("belong together" in sentence for sentence in told.assumptions)
    written = json.loads(json.dumps(told.to_json()))
    assert verify(written)
    assert plan_from_json(plan_to_json(curator.plan)) == curator.plan
    assert told.spent == cost(curator.plan, neighbours).epsilon(1e-6)
    written["unit"] = "one family"
    assert not verify(written)


def test_without_groups_the_statement_says_row() -> None:
    curator = Curator(X0, budget=Budget(1.0, 1e-6))
    curator.open(())
    assert "for one row, not several of one person, " in state(curator).headline
    single = Curator(X0, groups=np.arange(N), max_rows=1, budget=Budget(1.0, 1e-6))
    assert single.unit == "one person, of whose rows at most 1 is used"


def test_a_ledger_of_rows_does_not_pay_for_persons() -> None:
    ledger = Ledger(epsilon=5.0, delta=1e-4)
    event = GaussianNoise(9.0).event(Problem(n=N, d=D, max_rows=2).means(ClippedMean(1.0)))
    rows: dict[str, Any] = {}
    persons: dict[str, Any] = {"groups": owners(2), "max_rows": 2}
    for options in (rows, persons, rows):
        curator = Curator(X0, Y0, budget=Budget(2.0, 1e-6), ledger=ledger, **options)
        if options is rows:
            curator.open((Round(events=(event,)),))
            continue
        with pytest.raises(UnsupportedAccounting, match="row"):
            curator.open((Round(events=(event,)),))


# Labels


def counted(y: Any, groups: Any, max_rows: int) -> dict[Any, int]:
    b = curate(np.ones((len(y), 1)), y, groups, max_rows, classes=())
    targets: Any = b._data.targets
    return dict(targets.counts(b._sample.within(0, len(y))))


@pytest.mark.parametrize("max_rows", [1, 3])
def test_a_person_moves_at_most_two_m_counts_and_hides_no_label(max_rows: int) -> None:
    groups = owners(max_rows)
    common = np.array([f"c{i % 3}" for i in range(N)], dtype=object)
    worst = 0
    for person in (0, 1, 2):
        mine = np.flatnonzero([g == person for g in groups])
        y = common.copy()
        y[mine] = "c0"
        before = counted(y, groups, max_rows)
        for labels in (["new"] * len(mine), [f"n{i}" for i in mine], [None] * len(mine)):
            z = y.copy()
            z[mine] = labels
            after = counted(z, groups, max_rows)
            names = set(before) | set(after)
            worst = max(worst, sum(abs(before.get(v, 0) - after.get(v, 0)) for v in names))
            strange = {v: c for v, c in after.items() if v not in before}
            assert len(strange) <= max_rows
            assert sum(strange.values()) <= max_rows
            assert min(after.values()) > 0
    assert worst == 2 * max_rows


def test_labels_are_bought_for_persons() -> None:
    y = np.array(["a", "b"] * 300 + ["mine"] * 200, dtype=object)
    groups = np.array([*range(600), *[-1] * 200])
    curator = Curator(
        np.ones((800, 2)), y, groups=groups, max_rows=4, classes=(), budget=Budget(3.0, 1e-4),
        random_state=0,
    )  # fmt: skip
    mechanism = StabilityHistogram(5.0, 1e-7)
    curator.open((Round(events=(mechanism.event(curator.problem.labels()),)),))
    b = curator.everyone()
    with pytest.raises(NotPlanned):
        b.labels(StabilityHistogram(5.0, 1e-6))
    assert b.labels(mechanism) == ["a", "b"]  # one person's 200 rows count four times
    with pytest.raises(InvalidInput, match="Everyone"):
        curate(np.ones((800, 2)), y, groups, 4, PoissonBatches(0.5), classes=()).labels(mechanism)


def test_a_plan_for_rows_pays_for_persons_with_the_noise_of_persons_only() -> None:
    """Events are paid by noise per sensitivity; less noise than that is refused."""
    mean = ClippedMean(1.0)
    event = GaussianNoise(9.0).event(Problem(n=N, d=D).means(mean))
    curator = Curator(X0, Y0, groups=owners(3), max_rows=3, budget=Budget(9.0, 1e-6))
    curator.open((Round(events=(event,)),))
    answer = curator.everyone().means(mean)
    with pytest.raises(NotPlanned):
        answer.release(GaussianNoise(3.0))
    assert GaussianNoise(9.0).event(answer.sensitivity).scale == 3 * event.scale
    answer.release(GaussianNoise(9.0))


# Refusals


@pytest.mark.parametrize(
    ("groups", "max_rows", "match"),
    [
        (np.arange(N), None, "groups needs max_rows"),
        (None, 3, "groups="),
        (np.arange(N - 1), 3, r"shape \(40,\)"),
        (np.ones((N, 2)), 3, r"shape \(40,\)"),
        ("customer", 3, "names a column"),
        (np.arange(N), 0, "max_rows"),
        (np.arange(N), -2, "max_rows"),
        (np.arange(N), 2.5, "max_rows"),
        (np.arange(N), True, "max_rows"),
        (np.arange(N), "3", "max_rows"),
    ],
)
def test_refusals(groups: Any, max_rows: Any, match: str) -> None:
    with pytest.raises(InvalidInput, match=match):
        Curator(X0, Y0, groups=groups, max_rows=max_rows, budget=Budget(1.0, 1e-6))


@pytest.mark.parametrize("max_rows", [0, 1.0, None])
def test_a_problem_wants_whole_rows(max_rows: Any) -> None:
    with pytest.raises(InvalidInput, match="max_rows"):
        Problem(n=3, d=1, max_rows=max_rows)


def test_ids_are_read_after_the_charge_and_shown_to_nobody(monkeypatch: pytest.MonkeyPatch) -> None:
    reads: list[int] = []
    honest = persons_module.distinct

    def read(*cells: Any) -> Any:
        reads.append(1)
        return honest(*cells)

    monkeypatch.setattr(persons_module, "distinct", read)
    groups = np.full(N, "secret-4711", dtype=object)
    curator = Curator(X0, Y0, groups=groups, max_rows=2, budget=Budget(1.0, 1e-6))
    with pytest.raises(NotPlanned):
        curator.everyone()
    assert reads == []
    held = curator._persons
    assert held is not None
    with pytest.raises(NotReleased):
        held.__reduce__()
    curator.open((Round(events=(), times=2),))
    for b in curator.rounds(Everyone(), 2):
        assert "4711" not in repr(b)
    assert reads == [1]
    assert "4711" not in repr(curator) + repr(held)
