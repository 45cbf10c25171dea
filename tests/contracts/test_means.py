"""The lemma, over every mean, storage and question: no neighbour moves an answer further than said.

Differences are differences of integers and are compared exactly. Every check has a twin in which
one safeguard of the core is taken away, and the same check finds it.
"""

from __future__ import annotations

import dataclasses
import itertools
import math
import re
import textwrap
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any, ClassVar, NamedTuple

import mpmath as mp
import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

from privtail import robust_means
from privtail.errors import IncompatibleParts, InvalidInput
from privtail.influence import catoni_bound, catoni_fraction, catoni_influence
from privtail.losses import (
    CustomLoss,
    CutLoss,
    GeneralLoss,
    HuberLoss,
    LogisticLoss,
    MultinomialLoss,
    SquaredLoss,
)
from privtail.robust_means import (
    MEANS,
    BoundedMean,
    ClampedMean,
    ClippedMean,
    MallowsMean,
    SmoothedCatoniMean,
    TruncatedMean,
)
from privtail.second_moments import symmetric
from privtail.trusted import callbacks, kernels, maps, partitions, questions
from privtail.trusted.budget import Budget
from privtail.trusted.curator import Batch, Curator
from privtail.trusted.dataset import Dataset
from privtail.trusted.deals import Deal
from privtail.trusted.events import Round
from privtail.trusted.maps import FeatureMap
from privtail.trusted.means import Ball, Interval
from privtail.trusted.mechanisms.noise import GaussianNoise
from privtail.trusted.records import as_records
from privtail.trusted.sampling import Everyone, PoissonBatches
from privtail.trusted.sensitive import Sensitive
from privtail.trusted.sensitivity import Norms

BLOCKS = (1, 2, 3, 5, 8)
STORAGES = ("float64", "float32", "int64", "csr")
HUGE, TINY = 1e308, 5e-324
EXTREMES = (
    0.0, -0.0, 1.0, -1.0, 0.3, 1e-3, HUGE, -HUGE, TINY, -1e-310, 1e-170, 1e200, -1e200, 1e154,
    -1e-154, 1e5, -1e7, 1e12, 1e70, 1e-70, 1e140, 3e-140, math.inf, -math.inf, math.nan,
)  # fmt: skip


@dataclass(frozen=True)
class Wild:
    """A third-party loss: K derivatives that are the target, its square, its inverse..."""

    outputs: int = 1

    name: ClassVar[str] = "wild"
    targets: ClassVar[str] = "real"
    convex: ClassVar[bool] = False
    curvature: ClassVar[float] = math.inf
    lipschitz: ClassVar[float] = math.inf

    def values(self, margins: Any, y: Any) -> Any:
        return y * y + margins[:, 0]

    def derivatives(self, margins: Any, y: Any) -> Any:
        y = y[:, None]
        many = [y, y * y, 1 / y, np.exp(y), np.log(y), y - y * y, margins[:, :1], np.sqrt(y)]
        return np.hstack(many[: self.outputs])


class Pair(NamedTuple):
    """Answers on two neighbouring data sets, in grid integers, and what was promised of them."""

    before: list[int]
    after: list[int]
    promised: Norms


def integers(answer: Sensitive) -> list[int]:
    """What the core never shows."""
    return [int(v) for v in answer._value]


def batch(
    X: Any, y: Any = None, *, seed: int = 3, map: FeatureMap | None = None, **options: Any
) -> Batch:
    """A batch of everyone, by a plan that releases nothing."""
    curator = Curator(X, y, budget=Budget(1.0, 1e-6), random_state=seed, **options)
    curator.open((Round(events=()),))
    return curator.everyone(map)


def ratios(pair: Pair) -> tuple[float, float, float]:
    """Observed over promised in l1, l2 and l-infinity; raises if any exceeds 1, exactly."""
    moved = [abs(a - b) for a, b in zip(pair.before, pair.after, strict=True)]
    l1, squares, linf = sum(moved), sum(m * m for m in moved), max(moved)
    promised = pair.promised
    assert l1 <= Fraction(promised.l1), f"l1 {l1 / promised.l1}"
    assert squares <= Fraction(promised.l2) ** 2, f"l2 {math.sqrt(squares) / promised.l2}"
    assert linf <= Fraction(promised.linf), f"l-infinity {linf / promised.linf}"
    return l1 / promised.l1, math.sqrt(squares) / promised.l2, linf / promised.linf


def stored(X: np.ndarray, storage: str) -> Any:
    """The same records as another container; what a type cannot hold is clipped."""
    with np.errstate(all="ignore"):
        if storage == "csr":
            return sp.csr_matrix(X)
        if storage == "int64":
            return np.clip(np.nan_to_num(X), -(2.0**62), 2.0**62).astype(np.int64)
        return X.astype(storage)


def neighbours(
    X: np.ndarray, y: np.ndarray, row: int, x_new: Any, y_new: float, storage: str
) -> tuple[tuple[Any, Any], tuple[Any, Any], tuple[Any, Any]]:
    """The data, the data with one record replaced, and with that record emptied."""
    X2, y2, gone = X.copy(), y.copy(), y.copy()
    X2[row], y2[row], gone[row] = x_new, y_new, math.nan
    return (stored(X, storage), y), (stored(X2, storage), y2), (stored(X, storage), gone)


def moved(
    ask: Callable[[Any, Any], Sensitive], X: np.ndarray, y: np.ndarray,
    rows: list[tuple[np.ndarray, float]], storage: str, among: int = 0,
) -> Iterator[tuple[Pair, Pair]]:  # fmt: skip
    """Replace and empty one record, of the first ``among``, by every row; the pairs of answers."""
    full = None
    for t, (x_new, y_new) in enumerate(rows):
        same, other, gone = neighbours(X, y, t % (among or len(X)), x_new, y_new, storage)
        full = ask(*same) if full is None else full
        before, promised = integers(full), full.sensitivity
        yield (
            Pair(before, integers(ask(*other)), promised.diameter),
            Pair(before, integers(ask(*gone)), promised.radius),
        )


def adversarial_rows(d: int) -> list[tuple[np.ndarray, float]]:
    """Records that an enemy would choose."""
    rows: list[tuple[np.ndarray, float]] = []
    for x, y in [
        (HUGE, 1.0), (-HUGE, 1.0), (HUGE, HUGE), (1e-170, 1e200), (1e-170, -1e200), (1e200, 1e-170),
        (TINY, HUGE), (HUGE, TINY), (1e-310, 1e308), (1.0, 1.0), (1.0, -1.0), (0.7, 1.0),
        (1e5, -1.0), (1e7, 1.0), (1e12, -1.0), (1e70, 1e70), (1.0000001e70, 1e70), (1e-70, 1e-70),
        (math.inf, 1.0), (math.nan, 1.0), (1.0, math.inf), (0.0, 1.0), (-0.0, HUGE), (1.0, 0.0),
    ]:  # fmt: skip
        spread = np.full(d, x)
        spike = np.zeros(d)
        spike[0] = x
        signs = spread * np.where(np.arange(d) % 2, -1.0, 1.0)
        rows += [(spread, y), (spike, y), (signs, -y)]
    return rows


DATA = np.random.default_rng(11)
N, D = 17, 5
X0 = np.vstack(
    [
        DATA.standard_t(1.5, (N - 3, D)),
        np.full((1, D), HUGE),
        np.full((1, D), -1e-308),
        DATA.normal(size=(1, D)),
    ]
)
X0[0] = X0[1]
Y0 = np.concatenate([DATA.standard_cauchy(N - 2), [-HUGE, TINY]])


MAPS = ("plain", "scaled")


def seen(X: Any, how: str) -> FeatureMap | None:
    """The map of that name, for records X."""
    d = X.shape[1]
    offsets = None if sp.issparse(X) else np.linspace(-2, 2, d)
    return None if how == "plain" else FeatureMap.of(d, np.logspace(-3, 3, d), offsets)


def gradient_pairs(mean: Any, storage: str, rows: list[tuple[np.ndarray, float]], **o: Any) -> Any:
    """Replace and empty one record by every adversarial row; yield the pairs of answers.

    To the ``question`` gradient, or another of a loss, parameters and a mean.
    """
    loss, how, intercept, outputs = o["loss"], o["how"], o["intercept"], o["outputs"]
    X, y = o.get("X", X0), o.get("y", Y0)
    w = o.get("w")
    if w is None:
        w = np.zeros((X.shape[1] + intercept, outputs))

    def ask(X: Any, y: Any) -> Sensitive:
        b = batch(X, y, map=seen(X, how), intercept=intercept, outputs=outputs)
        answer: Sensitive = getattr(b, o.get("question", "gradient"))(loss, w, mean)
        return answer

    for pairs in moved(ask, X, y, rows, storage):
        yield from pairs


ALL = [
    pytest.param(dataclasses.replace(mean, blocks=k), id=f"{type(mean).__name__}{i}-{k}")  # type: ignore[type-var]
    for i, mean in enumerate(MEANS)
    for k in BLOCKS
]
FEW_BLOCKS = [
    pytest.param(*case.values, id=case.id, marks=[pytest.mark.slow] * (case.values[0].blocks > 2))
    for case in ALL
]
"""One sum, and a median of an even number of them, by `make test`: odd ones are gradients' too."""
ONE_EACH = (
    ClippedMean(1.0),
    MallowsMean(0.5, 2.0),
    ClampedMean(1.0),
    TruncatedMean(1.0),
    SmoothedCatoniMean(1.0, 3.0),
)
IDS = [type(m).__name__ for m in ONE_EACH]


# The lemma


SHAPES = [(False, 1), (True, 1), (True, 3), (False, 3)]
"""Whether there is an intercept, and outputs."""


def storages(mean: Any, half: int = 0) -> tuple[str, ...]:
    """Half of all, and every second number of blocks has the other half."""
    return STORAGES[(BLOCKS.index(mean.blocks) + half) % 2 :: 2]


@pytest.mark.parametrize("mean", ALL)
def test_no_adversarial_record_moves_a_gradient_further_than_said(mean: Any, half: int) -> None:
    rows = adversarial_rows(D)
    for t, storage in enumerate(storages(mean)):
        for s, (intercept, outputs) in enumerate(SHAPES):
            how = MAPS[(t + s) % len(MAPS)]
            losses: list[Any] = [Wild(outputs)]
            losses.append(SquaredLoss() if outputs == 1 else MultinomialLoss(classes=3))
            for m, loss in enumerate(losses):
                some = rows[(t + s + m) % 6 + 6 * half :: 12]
                for pair in gradient_pairs(
                    mean, storage, some, loss=loss, how=how, intercept=intercept,
                    outputs=outputs,
                ):  # fmt: skip
                    ratios(pair)


@pytest.mark.parametrize("mean", FEW_BLOCKS)
def test_no_adversarial_record_moves_mean_derivatives_further_than_said(
    mean: Any, half: int
) -> None:
    rows = adversarial_rows(D)
    for t, storage in enumerate(storages(mean)):
        intercept, outputs = SHAPES[(t + mean.blocks) % len(SHAPES)]
        for pair in gradient_pairs(
            mean, storage, rows[t % 2 + 2 * half :: 4], loss=Wild(outputs),
            how=MAPS[t % len(MAPS)], intercept=intercept, outputs=outputs, question="derivatives",
        ):  # fmt: skip
            ratios(pair)


extreme = st.one_of(
    st.sampled_from(EXTREMES), st.floats(width=64), st.floats(-3, 3), st.floats(1e-180, 1e180)
)


@settings(max_examples=60)
@given(data=st.data())
@pytest.mark.parametrize("question", ["gradient", "derivatives"])
@pytest.mark.parametrize("mean", ONE_EACH, ids=IDS)
def test_no_record_at_all_moves_a_gradient_further_than_said(
    mean: Any, question: str, data: Any
) -> None:
    n, d = data.draw(st.integers(1, 6)), data.draw(st.integers(1, 4))
    blocks = data.draw(st.integers(1, n))
    outputs = data.draw(st.sampled_from([1, 3]))
    storage = data.draw(st.sampled_from(STORAGES))
    X = np.array(data.draw(st.lists(extreme, min_size=n * d, max_size=n * d))).reshape(n, d)
    y = np.array(data.draw(st.lists(extreme, min_size=n, max_size=n)))
    x_new = np.array(data.draw(st.lists(extreme, min_size=d, max_size=d)))
    w = np.array(data.draw(st.lists(extreme, min_size=d * outputs, max_size=d * outputs)))
    pairs = gradient_pairs(
        dataclasses.replace(mean, blocks=blocks), storage, [(x_new, data.draw(extreme))],
        loss=Wild(outputs), how=data.draw(st.sampled_from(MAPS)), intercept=False, outputs=outputs,
        X=X, y=y, w=w.reshape(d, outputs), question=question,
    )  # fmt: skip
    for pair in pairs:
        ratios(pair)


@settings(max_examples=400)
@given(
    log_x=st.floats(-323, 308),
    log_r=st.floats(-323, 308),
    log_radius=st.floats(-200, 200),
    direction=st.lists(st.floats(-1, 1), min_size=4, max_size=4),
    intercept=st.booleans(),
    sparse=st.booleans(),
)
def test_a_clipped_row_stays_in_its_ball(
    log_x: float,
    log_r: float,
    log_radius: float,
    direction: list[float],
    intercept: bool,
    sparse: bool,
) -> None:
    X = np.array([direction]) * 10.0**log_x
    b = batch(sp.csr_matrix(X) if sparse else X, -np.array([10.0**log_r]), intercept=intercept)
    w = np.zeros((4 + intercept, 1))
    answer = b.gradient(SquaredLoss(), w, ClippedMean(10.0**log_radius))
    ratios(Pair(integers(answer), [0] * len(w), answer.sensitivity.radius))


def opposed(k: int, d: int) -> tuple[np.ndarray, np.ndarray, int]:
    """Blocks whose sums lie on both sides of one further block; the row that is that block."""
    n = k
    deal = batch(np.zeros((n, 1)))._data.deal(k).labels(0, n)
    row = int(np.flatnonzero(deal == k - 1)[0])
    X = np.where(deal[:, None] < (k - 1) // 2, -1.0, 1.0) * np.full((1, d), HUGE / 4)
    return X, -np.ones(n), row


@pytest.mark.parametrize("mean", ALL)
@pytest.mark.parametrize("d", [1, 6])
def test_the_bound_is_attained(mean: Any, d: int) -> None:
    """So it is the sensitivity, not something larger: at least 0.999 in the norm of the range."""
    X, y, row = opposed(mean.blocks, d)
    ball = isinstance(mean.range, Ball)
    big = HUGE / 4
    if isinstance(mean, TruncatedMean):
        X, big = X / big * mean.threshold, mean.threshold
    if isinstance(mean, MallowsMean):  # a row whose squared length overflows has the weight 0
        X, big = X / big * 1e100, 1e100
    if ball:
        X[:, 1:] = 0.0
    plus, minus, gone = X.copy(), X.copy(), y.copy()
    plus[row], minus[row], gone[row] = X[0] * 0 + big, X[0] * 0 - big, math.nan
    if ball:
        plus[row, 1:] = minus[row, 1:] = 0.0
    w = np.zeros((d, 1))
    answers = [batch(*data).gradient(SquaredLoss(), w, mean) for data in ((plus, y), (minus, y))]
    replaced = ratios(Pair(*map(integers, answers), answers[0].sensitivity.diameter))
    empty = batch(plus, gone).gradient(SquaredLoss(), w, mean)
    emptied = ratios(Pair(integers(answers[0]), integers(empty), empty.sensitivity.radius))
    for attained in (replaced, emptied):
        assert attained[1] >= 0.999
        if not ball:
            assert min(attained) >= 0.999


@pytest.mark.parametrize("mean", ALL)
def test_derivatives_attain_their_bound(mean: Any) -> None:
    """But for a `MallowsMean`: its range has room for rows that are longer than 1."""
    X, _, row = opposed(mean.blocks, 1)
    big = mean.threshold if isinstance(mean, TruncatedMean) else 1e100
    y = np.sign(X[:, 0]) * big
    up, down, gone = y.copy(), y.copy(), y.copy()
    up[row], down[row], gone[row] = big, -big, math.nan
    a, b, c = (batch(X, t).derivatives(SquaredLoss(), [[0.0]], mean) for t in (up, down, gone))
    least = 0.999 / max(1.0, getattr(mean, "row_length", 1.0))
    assert min(ratios(Pair(integers(a), integers(b), a.sensitivity.diameter))) >= least
    assert min(ratios(Pair(integers(a), integers(c), a.sensitivity.radius))) >= least


def test_one_record_alone() -> None:
    for question, mean in itertools.product(("gradient", "derivatives"), ONE_EACH):
        for x, y in adversarial_rows(2):
            full, gone = (
                getattr(batch(x[None, :], np.array([t])), question)(
                    SquaredLoss(), np.ones((2, 1)), mean
                )
                for t in (y, math.nan)
            )
            assert set(integers(gone)) == {0}
            ratios(Pair(integers(full), integers(gone), full.sensitivity.radius))


def test_derivatives_that_are_not_finite_move_nothing_too_far() -> None:
    custom = CustomLoss(
        value=lambda m, y: m, derivative=lambda m, y: y * 1e308 * 10 if y > 1 else y / (y - y)
    )
    general = GeneralLoss(
        value=lambda w, x, y: 0.0, gradient=lambda w, x, y: np.exp(x * y).reshape(w.shape)
    )
    for loss, question in ((custom, "gradient"), (custom, "derivatives"), (general, "gradient")):
        for mean in ONE_EACH:
            for pair in gradient_pairs(
                mean, "float64", adversarial_rows(D)[::2], loss=loss, how="plain",
                intercept=False, outputs=1, question=question,
            ):  # fmt: skip
                ratios(pair)


# The other questions


@pytest.mark.parametrize("mean", FEW_BLOCKS)
def test_column_means(mean: Any, half: int) -> None:
    for storage in storages(mean, half):
        check_column_means(mean, storage)


def check_column_means(mean: Any, storage: str) -> None:
    """Replace and empty one record by every adversarial row, in means of all columns."""
    whole = stored(X0, storage)
    fulls = [batch(whole, map=seen(whole, how)).means(mean) for how in MAPS]
    for t, (x_new, _) in enumerate(adversarial_rows(D)[:: 1 + (storage != "float64")]):
        _, (X, _), _ = neighbours(X0, Y0, t % N, x_new, 0.0, storage)
        full, how = fulls[t % len(MAPS)], MAPS[t % len(MAPS)]
        other = batch(X, map=seen(X, how)).means(mean)
        ratios(Pair(integers(full), integers(other), full.sensitivity.diameter))
        if storage != "int64":
            X = np.array(X0)
            X[t % N] = math.nan
            gone = batch(stored(X, storage), map=seen(stored(X, storage), how)).means(mean)
            ratios(Pair(integers(full), integers(gone), gone.sensitivity.radius))


@pytest.mark.parametrize("question", ["gradient", "means"])
@pytest.mark.parametrize(
    "mean", [BoundedMean(1.0), BoundedMean(2.0, blocks=2), BoundedMean(0.1, 3)]
)
def test_one_signed_ranges_in_every_question(mean: BoundedMean, question: str) -> None:
    """A range [0, bound] is enforced wherever it is accepted; refusing it is fine too."""
    answers = []
    for value in (1e5, -1e5):
        b = batch(np.full((6, 2), value), -np.ones(6))
        try:
            if question == "means":
                answers.append(b.means(mean))
            else:
                answers.append(b.gradient(SquaredLoss(), np.zeros((2, 1)), mean))
        except InvalidInput:
            return
    # Six records were replaced, in any case.
    six = answers[0].sensitivity.diameter
    ratios(Pair(*map(integers, answers), Norms(6 * six.l1, 6 * six.l2, 6 * six.linf)))
    assert all(v >= 0 for answer in answers for v in integers(answer))


@pytest.mark.parametrize("blocks", BLOCKS)
@pytest.mark.parametrize("storage", STORAGES)
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_scores(blocks: int, storage: str) -> None:
    mean = BoundedMean(0.5, blocks=blocks)
    points = [np.full((D, 1), v) for v in (0.0, 1.0, -1e3, HUGE, 1e-200)]
    for s, loss in enumerate((SquaredLoss(), Wild())):

        def ask(X: Any, y: Any, loss: Any = loss) -> Sensitive:
            answer = batch(X, y).scores(loss, points, mean)
            assert answer.sensitivity.one_signed == (blocks == 1)
            return answer

        rows = adversarial_rows(D)[(2 * s + blocks) % 4 :: 4]
        for replaced, emptied in moved(ask, X0, Y0, rows, storage):
            ratios(replaced)
            ratios(emptied)
            if blocks == 1:
                signs = {np.sign(a - b) for a, b in zip(*emptied[:2], strict=True)}
                assert not {1, -1} <= signs


@pytest.mark.parametrize("blocks", BLOCKS)
@pytest.mark.parametrize("storage", STORAGES)
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_improvement(blocks: int, storage: str, half: int) -> None:
    mean = ClampedMean(0.5, blocks=blocks)
    points = [np.full((D, 1), v) for v in (0.0, 1.0, HUGE, 1e-200)]
    steps = list(itertools.permutations(points, 2))
    for s, loss in enumerate((SquaredLoss(), Wild())):
        for t, (w, base) in list(enumerate(steps))[(s + blocks) % 2 :: 2]:

            def ask(X: Any, y: Any, loss: Any = loss, w: Any = w, base: Any = base) -> Sensitive:
                return batch(X, y).improvement(loss, w, base, mean)

            rows = adversarial_rows(D)[::2][t % 3 + 3 * half :: 6]
            for pair in itertools.chain(*moved(ask, X0, Y0, rows, storage)):
                ratios(pair)


@pytest.mark.parametrize("blocks", BLOCKS)
def test_improvement_attains_its_bound(blocks: int) -> None:
    X, _, row = opposed(blocks, 1)
    y = np.where(X[:, 0] < 0, 0.0, 9.0)
    better, worse, gone = y.copy(), y.copy(), y.copy()
    better[row], worse[row], gone[row] = 9.0, 0.0, math.nan
    a, b, c = (
        batch(np.ones_like(X), t).improvement(
            SquaredLoss(), np.full((1, 1), 9.0), np.zeros((1, 1)), ClampedMean(0.7, blocks)
        )
        for t in (better, worse, gone)
    )
    assert min(ratios(Pair(integers(a), integers(b), a.sensitivity.diameter))) >= 0.999
    assert min(ratios(Pair(integers(b), integers(c), a.sensitivity.radius))) >= 0.999


def test_improvement_is_the_mean_of_clamped_gains() -> None:
    X, y = np.arange(-3.0, 5.0)[:, None], np.ones(8)
    w, base = np.full((1, 1), 0.5), np.zeros((1, 1))
    answer = batch(X, y).improvement(SquaredLoss(), w, base, ClampedMean(0.3))
    gains = 0.5 * (1.0 - (0.5 * X[:, 0] - 1) ** 2)
    found = integers(answer)[0] * answer.sensitivity.unit
    assert found == pytest.approx(np.clip(gains, -0.3, 0.3).mean(), abs=1e-8)


def test_improvement_needs_a_clamped_range() -> None:
    b, w = batch(np.ones((3, 1)), np.ones(3)), np.zeros((1, 1))
    for mean in (ClippedMean(1.0), TruncatedMean(1.0), BoundedMean(1.0)):
        with pytest.raises(InvalidInput, match="ClampedMean"):
            b.improvement(SquaredLoss(), w, w, mean)


def check_separations(outputs: int, mean: Any, storage: str, how: str, start: int = 0) -> None:
    """Replace and empty one record by every adversarial row, each with one of three parameters."""
    for t, value in enumerate((0.0, 0.1, HUGE), start):
        w = np.full((D + 1, outputs), value)

        def ask(X: Any, y: Any, w: Any = w) -> Sensitive:
            b = batch(X, y, map=seen(X, how), intercept=True, outputs=outputs)
            return b.separations(Wild(outputs), w, mean)

        for pair in itertools.chain(*moved(ask, X0, Y0, adversarial_rows(D)[t % 3 :: 3], storage)):
            ratios(pair)


@pytest.mark.parametrize("storage", STORAGES)
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_separations(storage: str, half: int) -> None:
    how = MAPS[(STORAGES.index(storage) + half) % len(MAPS)]
    for start, (outputs, threshold) in enumerate(((1, 1e-9), (1, 0.5), (3, 0.5), (3, 1e300))):
        check_separations(outputs, ClampedMean(threshold), storage, how, start)


def test_separations_attain_their_bound() -> None:
    """A record that is on the side of the others, against them, or gone."""
    X, y = np.array([[HUGE, 5.0]] * 3 + [[-HUGE, -5.0]] * 3), np.repeat([1.0, -1.0], 3)
    against, gone = y.copy(), y.copy()
    against[0], gone[0] = -1.0, math.nan
    a, b, c = (
        batch(X, t).separations(Wild(), np.zeros((2, 1)), ClampedMean(0.3))
        for t in (y, against, gone)
    )
    assert min(ratios(Pair(integers(a), integers(b), a.sensitivity.diameter))) >= 0.999
    assert min(ratios(Pair(integers(a), integers(c), a.sensitivity.radius))) >= 0.999


@pytest.mark.parametrize("outputs", [1, 3])
def test_separations_are_mean_derivatives_with_signs(outputs: int) -> None:
    rng = np.random.default_rng(0)
    X, y = np.rint(2 * rng.standard_t(2, (60, D))) / 2, np.arange(60.0) % max(2, outputs)
    X[3], y[4] = math.nan, math.inf
    loss: Any = MultinomialLoss(classes=3) if outputs == 3 else SquaredLoss()
    w, kept = rng.normal(size=(D, outputs)), ~np.isin(np.arange(60), [3, 4])
    answer = batch(X, y, outputs=outputs).separations(loss, w, ClampedMean(0.7))
    c = np.clip(loss.derivatives(X[kept] @ w, y[kept]), -0.7, 0.7)
    found = np.array(integers(answer)) * answer.sensitivity.unit
    assert found == pytest.approx(np.abs(np.sign(X[kept]).T @ c).reshape(-1) / 60, abs=1e-8)


def test_separations_know_no_units() -> None:
    X, y = big_data()
    w, other = np.zeros((7, 1)), FeatureMap.of(7, 2.0 ** np.arange(-60, 80, 20))
    plain, scaled = (
        integers(batch(X, y, map=map_).separations(SquaredLoss(), w, ClampedMean(1.0)))
        for map_ in (None, other)
    )
    assert scaled == plain


def test_separations_need_a_clamped_range_and_one_block() -> None:
    b, w = batch(np.ones((3, 1)), np.ones(3)), np.zeros((1, 1))
    for mean in (ClippedMean(1.0), TruncatedMean(1.0), BoundedMean(1.0), ClampedMean(1.0, 3)):
        with pytest.raises(InvalidInput, match="one block: use ClampedMean"):
            b.separations(SquaredLoss(), w, mean)


def test_separations_of_derivatives_that_are_not_clamped_are_caught(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def rounded(entries: np.ndarray, limit: int, bits: int) -> None:
        entries[:] = np.rint(np.clip(np.nan_to_num(entries), -4.0, 4.0) * 2.0**bits)

    monkeypatch.setattr(questions, "clamp", rounded)
    with pytest.raises(AssertionError, match="l1"):
        check_separations(1, ClampedMean(0.5), "float64", "plain")


def test_separations_by_more_than_a_sign_are_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    """By the value itself, cut at 2."""
    monkeypatch.setattr(np, "sign", lambda z: np.clip(np.rint(z), -2.0, 2.0))
    with pytest.raises(AssertionError, match="l1"):
        test_separations_attain_their_bound()


@pytest.mark.parametrize("blocks", BLOCKS)
@pytest.mark.parametrize("storage", STORAGES)
def test_a_score_does_not_see_the_other_candidates(blocks: int, storage: str) -> None:
    """Whole and partial tiles, one output and three: the integers of each candidate alone."""
    rng, mean = np.random.default_rng(0), BoundedMean(20.0, blocks=blocks)
    X = np.rint(2 * rng.normal(size=(N, D)))
    for loss, y in (
        (SquaredLoss(), rng.normal(size=N)),
        (MultinomialLoss(classes=3), np.arange(N) % 3.0),
    ):
        points = list(rng.normal(size=(2 * questions.TILE + 3, D, loss.outputs)))
        b = batch(stored(X, storage), y, outputs=loss.outputs)
        together = integers(b.scores(loss, points, mean))
        alone = [integers(b.scores(loss, [w], mean))[0] for w in points]
        assert list(together) == alone
        assert len(set(alone)) > questions.TILE


@pytest.mark.parametrize("outputs", [1, 3])
@pytest.mark.parametrize("storage", STORAGES)
def test_no_question_warns_of_a_record(storage: str, outputs: int, half: int) -> None:
    """Warnings are errors here: one that depends on a record would be a release."""
    for x, y in [*adversarial_rows(D)[half::2], (np.full(D, 1e149), 1e151)]:
        w = np.full((D + 1, outputs), 1.0)
        b = batch(
            stored(x[None, :], storage), np.array([y]), map=FeatureMap.of(D, np.full(D, 1e3)),
            intercept=True, outputs=outputs,
        )  # fmt: skip
        for loss in (Wild(outputs), SquaredLoss() if outputs == 1 else MultinomialLoss(classes=3)):
            for mean in ONE_EACH:
                tiny: Any = {"threshold" if hasattr(mean, "threshold") else "scale": 1e-9}
                b.gradient(loss, w, dataclasses.replace(mean, **tiny))
                b.derivatives(loss, w, dataclasses.replace(mean, **tiny))
            b.scores(loss, [w, -w], BoundedMean(1e-9))
            b.improvement(loss, w, -w, ClampedMean(1e-9))
            b.derivative_norms(loss, w, EDGES)
            b.separations(loss, w, ClampedMean(1e-9))
            if outputs == 1:
                b.gradient_moments(loss, w, MallowsMean(1e-9, 1e-3))
        b.moments(1e-9, target=True)
        b.histogram([0, -1], EDGES)


def test_no_type_of_number_warns_of_a_record() -> None:
    """Signalling NaN and extended doubles are numbers that a conversion could complain about."""
    signalling = np.array([[0x7F800001]], dtype=np.uint32).view(np.float32)
    extended = np.array([["1e4000"]], dtype=np.longdouble)
    for X in (signalling, extended):
        for container in (X, {"a": X[:, 0]}):
            batch(container, np.ones(1)).means(ClampedMean(1.0))
        batch(np.ones((1, 1)), X[:, 0]).gradient(SquaredLoss(), np.ones((1, 1)), ClampedMean(1.0))


@pytest.mark.parametrize("blocks", BLOCKS)
def test_scores_attain_their_bound(blocks: int) -> None:
    X, _, row = opposed(blocks, 1)
    y = np.where(X[:, 0] < 0, 0.0, 1e9)
    low, high, gone = y.copy(), y.copy(), y.copy()
    low[row], high[row], gone[row] = 0.0, 1e9, math.nan
    points = [np.zeros((1, 1))] * 3
    a, b, c = (
        batch(X, t).scores(SquaredLoss(), points, BoundedMean(0.7, blocks))
        for t in (low, high, gone)
    )
    assert min(ratios(Pair(integers(a), integers(b), a.sensitivity.diameter))) >= 0.999
    assert min(ratios(Pair(integers(b), integers(c), a.sensitivity.radius))) >= 0.999


@pytest.mark.parametrize("storage", STORAGES)
@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("target", [False, True])
def test_moments(storage: str, intercept: bool, target: bool) -> None:
    for t, radius in enumerate((1.0, 1e-3, 1e100, 1e-100)):

        def ask(X: Any, y: Any, how: str = MAPS[t % 2], radius: float = radius) -> Sensitive:
            return batch(X, y, map=seen(X, how), intercept=intercept).moments(radius, target)

        for replaced, emptied in moved(ask, X0, Y0, adversarial_rows(D)[t::4], storage):
            ratios(replaced)
            if target:
                ratios(emptied)


def test_moments_attain_their_bound() -> None:
    X = np.array([[HUGE, 0.0], [0.0, 1.0]])
    Z = np.array([[0.0, HUGE], [0.0, 1.0]])
    G = np.array([[math.nan, 0.0], [0.0, 1.0]])
    a, b, c = (batch(S).moments(1.0) for S in (X, Z, G))
    assert ratios(Pair(integers(a), integers(b), a.sensitivity.diameter))[1] >= 0.999
    assert ratios(Pair(integers(a), integers(c), a.sensitivity.radius))[1] >= 0.999
    one, other = (batch(np.array([[1.0, s]])).moments(1e-3) for s in (1.0, -1.0))
    assert ratios(Pair(integers(one), integers(other), one.sensitivity.diameter))[2] >= 0.999


GRADIENT_MEANS = (ClippedMean(1.0), MallowsMean(0.7, 2.0), MallowsMean(1e-9, 1e-3))


def check_gradient_moments(loss: Any, mean: Any, storage: str, intercept: bool) -> None:
    w = np.linspace(-1.0, 1.0, D + intercept)[:, None]
    for t in range(2):

        def ask(X: Any, y: Any, how: str = MAPS[t]) -> Sensitive:
            b = batch(X, y, map=seen(X, how), intercept=intercept)
            return b.gradient_moments(loss, w, mean)

        for replaced, emptied in moved(ask, X0, Y0, adversarial_rows(D)[t::2], storage):
            ratios(replaced)
            ratios(emptied)


@pytest.mark.parametrize("storage", STORAGES)
@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("mean", GRADIENT_MEANS, ids=repr)
def test_moments_of_gradients(mean: Any, storage: str, intercept: bool) -> None:
    for loss in (SquaredLoss(), HuberLoss(threshold=0.5), Wild()):
        check_gradient_moments(loss, mean, storage, intercept)


def test_moments_of_gradients_attain_their_bound() -> None:
    X, y, w = np.eye(2) * HUGE, np.ones(2), np.zeros((2, 1))
    Z, gone = X[[1, 1]], np.array([math.nan, 1.0])
    a, b, c = (
        batch(rows, t).gradient_moments(SquaredLoss(), w, ClippedMean(0.3))
        for rows, t in ((X, y), (Z, y), (X, gone))
    )
    assert ratios(Pair(integers(a), integers(b), a.sensitivity.diameter))[1] >= 0.999
    assert ratios(Pair(integers(a), integers(c), a.sensitivity.radius))[1] >= 0.999


@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("mean", GRADIENT_MEANS[:2], ids=repr)
def test_moments_of_gradients_are_those_of_the_clipped_gradients(
    mean: Any, intercept: bool
) -> None:
    rng = np.random.default_rng(0)
    X, y = rng.standard_t(2, (60, D)), rng.standard_t(2, 60)
    X[3], y[4] = math.nan, math.inf
    w = rng.normal(size=(D + intercept, 1))
    answer = batch(X, y, intercept=intercept).gradient_moments(SquaredLoss(), w, mean)
    kept = ~np.isin(np.arange(60), [3, 4])
    rows = np.column_stack([X[kept], np.ones((kept.sum(), int(intercept)))])
    pulls, ball = rows @ w[:, 0] - y[kept], mean.range
    if math.isfinite(ball.reach):
        pulls = np.clip(pulls, -mean.threshold, mean.threshold)
        rows *= np.minimum(1.0, ball.reach / np.linalg.norm(rows, axis=1))[:, None]
    g = rows * pulls[:, None]
    g *= np.minimum(1.0, ball.radius / np.linalg.norm(g, axis=1))[:, None]
    moments = symmetric(np.array(integers(answer)) * answer.sensitivity.unit, g.shape[1])
    assert moments == pytest.approx(g.T @ g / 60, abs=1e-8)


def test_moments_of_gradients_need_one_margin_a_ball_and_one_block() -> None:
    b, w = batch(np.ones((3, 1)), np.ones(3)), np.zeros((1, 1))
    for mean in (ClampedMean(1.0), ClippedMean(1.0, blocks=2)):
        with pytest.raises(IncompatibleParts, match="one margin, a ball and one block"):
            b.gradient_moments(SquaredLoss(), w, mean)
    with pytest.raises(InvalidInput, match="finite threshold"):
        b.gradient_moments(SquaredLoss(), w, ClippedMean(math.inf))
    wide = batch(np.ones((3, 1)), np.arange(3.0), outputs=3)
    with pytest.raises(IncompatibleParts, match="one margin"):
        wide.gradient_moments(MultinomialLoss(classes=3), np.zeros((1, 3)), ClippedMean(1.0))
    general = GeneralLoss(value=lambda w, x, y: y, gradient=lambda w, x, y: w)
    with pytest.raises(IncompatibleParts, match="one margin"):
        b.gradient_moments(general, w, ClippedMean(1.0))


def test_moments_of_gradients_that_leave_their_ball_are_caught(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The sabotaged twin: products are taken of the gradients as they are."""

    def unclipped(
        rows: Any, valid: Any, radius: float, bits: int, margin: float, sums: Any
    ) -> None:
        z = np.clip(rows[valid] / radius, -4.0, 4.0)
        places = np.triu_indices(z.shape[1])
        sums += np.rint(2.0**bits * (z[:, places[0]] * z[:, places[1]]).sum(axis=0))

    monkeypatch.setattr(kernels, "moment_sum", unclipped)
    with pytest.raises(AssertionError, match="l2"):
        check_gradient_moments(SquaredLoss(), ClippedMean(1.0), "float64", True)


EDGES = [-HUGE, -1.0, 0.0, TINY, 1.0, 1e200]


def attained(
    columns: list[int], storage: str, edges: Any = EDGES, **options: Any
) -> tuple[np.ndarray, np.ndarray]:
    """How much of its bounds a histogram attains, where a record is replaced and emptied."""
    worst, worst_emptied = np.zeros(3), np.zeros(3)
    rows = [*adversarial_rows(D), (np.full(D, -5.0), -5.0), (np.full(D, 5.0), 5.0)]
    for t in range(len(rows)):
        row = t % (N - 4)
        X, y = X0.copy(), Y0.copy()
        X[row], y[row] = rows[-1]
        sets = neighbours(X, y, row, *rows[t], storage)
        full, other, empty = (batch(*s).histogram(columns, edges, **options) for s in sets)
        r = ratios(Pair(integers(full), integers(other), full.sensitivity.diameter))
        worst = np.maximum(worst, r)
        if -1 in columns:
            r = ratios(Pair(integers(full), integers(empty), full.sensitivity.radius))
            worst_emptied = np.maximum(worst_emptied, r)
            assert all(a >= b for a, b in zip(integers(full), integers(empty), strict=True))
    return worst, worst_emptied


@pytest.mark.parametrize("pooled", [False, True])
@pytest.mark.parametrize("columns", [[0], [0, 3], [4, -1, 2], list(range(D))])
@pytest.mark.parametrize("storage", STORAGES)
def test_histogram(storage: str, columns: list[int], pooled: bool, half: int) -> None:
    """Of common edges, or of each column's own: they cost the same."""
    own = (STORAGES.index(storage) + len(columns) + pooled + half) % 2 == 1
    edges = np.outer(1.0 + np.arange(len(columns)) / 8, EDGES) if own else EDGES
    worst, worst_emptied = attained(columns, storage, edges, pooled=pooled)
    assert worst.min() >= 0.999
    if -1 in columns:
        assert worst_emptied.min() >= 0.999


def test_every_column_is_counted_between_its_own_edges() -> None:
    edges = np.array([[-1.0, 0.0, 1.0], [2.0, 3.0, 4.0]])
    both = integers(batch(X0, Y0).histogram([3, 0], edges))
    first = integers(batch(X0, Y0).histogram([3], edges[0]))
    second = integers(batch(X0, Y0).histogram([0], edges[1]))
    assert list(both) == [*first, *second]
    common = (batch(X0, Y0).histogram([3, 0], e) for e in (edges[0], edges[[0, 0]]))
    assert len({tuple(integers(counts)) for counts in common}) == 1


def test_a_column_is_one_number() -> None:
    """Lists of columns were votes of many records: one record moved 900 times what it may."""
    with pytest.raises(TypeError):
        batch(np.zeros((1, 12))).histogram([[0] * 1000], [0.0])


@pytest.mark.parametrize("outputs", [1, 3])
@pytest.mark.parametrize("storage", STORAGES)
def test_derivative_norms(storage: str, outputs: int) -> None:
    cuts = 2.0 ** np.arange(-20, 20)
    worst, worst_emptied = np.zeros(3), np.zeros(3)
    for intercept in (False, True):
        w = np.full((D + intercept, outputs), 0.1)

        def ask(X: Any, y: Any, w: Any = w, intercept: bool = intercept) -> Sensitive:
            b = batch(X, y, intercept=intercept, outputs=outputs)
            return b.derivative_norms(Wild(outputs), w, cuts)

        rows = adversarial_rows(D)[intercept::2]
        for replaced, emptied in moved(ask, X0, Y0, rows, storage, among=3):
            worst = np.maximum(worst, ratios(replaced))
            worst_emptied = np.maximum(worst_emptied, ratios(emptied))
    assert worst.min() >= 0.999
    assert worst_emptied.min() >= 0.999


TAME, LABELLED = np.abs(np.random.default_rng(4).normal(size=(N, D))), np.arange(N) % 2.0


def of_labels(question: str, b: Batch) -> Sensitive:
    """An answer about margins that are cut."""
    w = np.full((D, 1), 0.4)
    cut = CutLoss(loss=LogisticLoss(), lowest=-1.0, highest=1.5)
    if question == "gradient of a cut":
        return b.gradient(cut, w, ClampedMean(0.5))
    return b.improvement(cut, w, -w, ClampedMean(0.5))


def attained_with_labels(question: str, storage: str) -> np.ndarray:
    """How much of its bounds such an answer attains, where a record is replaced and emptied."""
    worst = np.zeros((2, 3))
    for t, (x_new, y_new) in enumerate(adversarial_rows(D)):
        label = (0.0, 1.0, y_new)[t % 3]
        sets = neighbours(TAME, LABELLED, t % 3, x_new, label, storage)
        full, other, empty = (of_labels(question, batch(*s)) for s in sets)
        replaced = ratios(Pair(integers(full), integers(other), full.sensitivity.diameter))
        emptied = ratios(Pair(integers(full), integers(empty), full.sensitivity.radius))
        worst = np.maximum(worst, [replaced, emptied])
    return worst


@pytest.mark.parametrize("storage", STORAGES)
@pytest.mark.parametrize("question", ["gradient of a cut", "improvement of a cut"])
def test_margins_that_are_cut(question: str, storage: str) -> None:
    assert attained_with_labels(question, storage).min() >= 0.4


@pytest.mark.parametrize("question", ["gradient of a cut", "improvement of a cut"])
def test_margins_that_are_cut_where_others_end_are_caught(
    question: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def of_the_block(function: Any) -> Any:
        def called(loss: Any, margins: np.ndarray, y: np.ndarray, **held: Any) -> np.ndarray:
            end = float(np.nanmin(margins))
            cut = dataclasses.replace(loss, lowest=-9.0, highest=end)
            return function(cut, margins, y, **held)

        return called

    pair = tuple(map(of_the_block, callbacks._OURS[CutLoss]))
    monkeypatch.setitem(callbacks._OURS, CutLoss, pair)
    with pytest.raises(AssertionError, match=r"l1|l2|l-inf"):
        attained_with_labels(question, "float64")


# One bit string per data set


def everything(b: Batch) -> list[list[int]]:
    """Answers to all questions; ``b`` has one output and a numeric target."""
    w = np.linspace(-1, 1, b.problem.rows)[:, None]
    answers = [b.gradient(SquaredLoss(), w, mean) for mean in (*MEANS, *ONE_EACH)]
    answers += [b.derivatives(SquaredLoss(), w, mean) for mean in MEANS]
    answers += [b.means(mean) for mean in MEANS]
    answers += [
        b.scores(SquaredLoss(), [w, -w], BoundedMean(2.0, blocks=3)),
        b.improvement(SquaredLoss(), w, -w, ClampedMean(2.0, blocks=3)),
        b.separations(SquaredLoss(), w, ClampedMean(2.0)),
        b.moments(1.7, target=True),
        b.gradient_moments(SquaredLoss(), w, MallowsMean(0.7, 2.0)),
        b.histogram([0, 1, -1], EDGES),
        b.histogram([0, 1, -1], EDGES, pooled=True),
        b.histogram([0, -1], [[0.0, 1.0], [-1e308, 1e-320]]),
        b.derivative_norms(SquaredLoss(), w, [0.1, 1.0, 10.0, 1e200]),
    ]
    return [integers(answer) for answer in answers]


def big_data(d: int = 7) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(5)
    n = 700
    X, y = rng.standard_t(1.3, (n, d)), rng.standard_t(1.3, n)
    X[::50], y[::31] = rng.choice(EXTREMES, (len(X[::50]), d)), HUGE
    return X, y


@pytest.mark.parametrize("sparse", [False, True])
def test_sums_do_not_know_blocks_or_threads(sparse: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    X, y = big_data()
    data = sp.csr_matrix(X) if sparse else X
    expected = {n: everything(batch(data[:n], y[:n], intercept=True)) for n in (90, len(y))}
    for n, rows, workers in (
        (90, 1, "1"), (90, 1, "5"), (len(y), 3, "2"), (len(y), 64, "1"), (len(y), 64, "5"),
        (len(y), 500, "2"), (len(y), 500, "5"),
    ):  # fmt: skip
        monkeypatch.setattr(partitions, "BLOCK_ROWS", rows)
        monkeypatch.setenv("PRIVTAIL_THREADS", workers)
        found = everything(batch(data[:n], y[:n], intercept=True))
        assert found == expected[n], (rows, workers)


def test_sums_do_not_know_how_records_are_stored(tmp_path: Any) -> None:
    X, y = big_data()
    expected = everything(batch(X, y))
    wide = np.zeros((2 * len(X), 3 * X.shape[1]))
    wide[::2, ::3] = X
    mapped_file = np.memmap(tmp_path / "x.bin", dtype=np.float64, mode="w+", shape=X.shape)
    mapped_file[:] = X
    mapped_file.flush()
    frozen = X.copy()
    frozen.flags.writeable = False
    raw = np.zeros(X.nbytes + 3, dtype=np.uint8)
    unaligned = raw[3:].view(np.float64).reshape(X.shape)
    unaligned[:] = X
    containers = {
        "fortran": np.asfortranarray(X),
        "strided": wide[::2, ::3],
        "reversed": np.ascontiguousarray(X[::-1])[::-1],
        "memory map": np.memmap(tmp_path / "x.bin", dtype=np.float64, mode="r", shape=X.shape),
        "read-only": frozen,
        "big-endian": X.astype(">f8"),
        "unaligned": unaligned,
        "columns": {f"c{j}": X[:, j] for j in range(X.shape[1])},
    }
    for name, container in containers.items():
        assert everything(batch(container, y)) == expected, name
        assert everything(batch(container, y.astype(">f8"))) == expected, name


def test_sums_do_not_know_the_type_of_the_numbers() -> None:
    X, y = big_data()
    X, y = np.clip(np.rint(np.nan_to_num(X)), -99, 99), np.clip(np.rint(y), -99, 99)
    expected = everything(batch(X, y))
    for kind in ("float16", "float32", "int8", "int16", "int64"):
        assert everything(batch(X.astype(kind), y.astype(kind))) == expected, kind


@pytest.mark.parametrize("d", [1, 3, 4, 7, 16])
def test_dense_and_sparse_are_the_same_bits(d: int) -> None:
    X, y = big_data(d)
    X[np.random.default_rng(1).random(X.shape) < 0.4] = 0.0
    if d < 2:
        X = np.hstack([X, X])
    scales = np.logspace(-1, 1, X.shape[1])
    for intercept in (False, True):
        answers = []
        for data in (X, sp.csr_matrix(X)):
            map_ = FeatureMap.of(X.shape[1], scales)
            answers.append(everything(batch(data, y, map=map_, intercept=intercept)))
        assert answers[0] == answers[1]
        w, b = np.linspace(-2, 3, 3 * X.shape[1]).reshape(-1, 3), np.ones(3)
        blocks = [as_records(data).rows(slice(0, len(X))) for data in (X, sp.csr_matrix(X))]
        dense, sparse = (map_.applied(block).margins(w, b) for block in blocks)
        for one, other in zip(dense, sparse, strict=True):
            assert np.array_equal(one, other, equal_nan=True)


@pytest.mark.parametrize("storage", ["float64", "csr"])
def test_a_column_of_scale_zero_is_a_column_of_zeros(storage: str) -> None:
    """A scale of 2^-1000 left 1e7 of what is 1e308."""
    X, y = np.random.default_rng(0).normal(size=(50, D)), np.ones(50)
    X[:, 1] *= 1e307
    empty, scales = X * (np.arange(D) != 1), np.ones(D)
    expected = everything(batch(stored(empty, storage), y, intercept=True))
    assert everything(batch(stored(X, storage), y, intercept=True)) != expected
    scales[1] = 0.0
    found = batch(stored(X, storage), y, map=FeatureMap.of(D, scales), intercept=True)
    assert everything(found) == expected


def summed_in_lanes(terms: np.ndarray) -> np.ndarray:
    """Row sums (rows,) in the order that the kernels promise."""
    rows, d = terms.shape
    tail = d - d % kernels.LANES
    lanes = np.zeros((rows, kernels.LANES))
    for j in range(0, tail, kernels.LANES):
        lanes += terms[:, j : j + kernels.LANES]
    while lanes.shape[1] > 1:
        half = lanes.shape[1] // 2
        lanes = lanes[:, :half] + lanes[:, half:]
    rest = np.zeros(rows)
    for j in range(tail, d):
        rest += terms[:, j]
    return np.asarray(lanes[:, 0] + rest)


@pytest.mark.parametrize("d", [1, 7, 8, 9, 16, 50])
def test_margins_are_summed_in_the_written_order(d: int) -> None:
    """To the last bit: eight lanes, and no product is contracted into a sum."""
    rng = np.random.default_rng(d)
    X = rng.standard_normal((300, d)) * 10.0 ** rng.integers(-8, 8, (300, d))
    scales, offsets, w = rng.random(d) + 0.5, rng.standard_normal(d), rng.standard_normal((d, 2))
    rows = FeatureMap.of(d, scales, offsets).applied(as_records(X).rows(slice(0, 300)))
    margins, squares, _ = rows.margins(w, np.zeros(2))
    Z = X * scales + offsets
    assert (squares == summed_in_lanes(Z * Z)).all()
    for k in range(2):
        shift = 0.0
        for j in range(d):
            shift += w[j, k] * offsets[j]
        assert (margins[:, k] == summed_in_lanes(X * (w[:, k] * scales)) + shift).all()


def test_a_sparse_row_that_stores_a_column_many_times_is_one_row() -> None:
    """Also when its owner claims that the matrix is canonical already.

    See docs/mathematics.md#l2-norm.
    """
    d, copies = 3, 50
    row = sp.csr_matrix(
        (np.ones(copies), np.zeros(copies, np.int64), np.array([0, copies])), shape=(1, d)
    )
    claimed = row.copy()
    claimed.has_canonical_format = True
    for X in (row, claimed):
        for mean in ONE_EACH:
            once = batch(np.array([[50.0, 0, 0]])).means(mean)
            assert integers(batch(X).means(mean)) == integers(once)


def test_a_row_does_not_know_its_neighbours() -> None:
    """A record's contribution depends on the record: duplicates in a sparse row, other rows not."""
    rng = np.random.default_rng(2)
    values = rng.standard_t(1.2, 60) * 10.0 ** rng.integers(-3, 20, 60)
    columns = np.sort(rng.integers(0, 3, 60))
    fine = (np.array([1.0, 2.0]), np.array([0, 2]))
    messy = (np.array([1.0, 2.0]), np.array([2, 0]))

    def with_neighbour(extra: Any) -> Any:
        data = np.concatenate([values, extra[0]])
        return sp.csr_matrix((data, np.concatenate([columns, extra[1]]), [0, 60, 62]), shape=(2, 3))

    first = [
        as_records(with_neighbour(extra)).rows(slice(0, 2)).block[0].toarray()
        for extra in (fine, messy)
    ]
    assert np.array_equal(*first)


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("outputs", [1, 3, 8])
def test_a_row_does_not_know_its_position(sparse: bool, outputs: int, half: int) -> None:
    """The sum of all equals the sum of each alone, and any order gives the same sum."""
    how = MAPS[(outputs // 3 + sparse + half) % len(MAPS)]
    X, y = big_data()
    X, y = X[:70], np.where(np.isfinite(Y := y[:70]), Y, 1.0)
    order = np.random.default_rng(0).permutation(len(y))
    make = sp.csr_matrix if sparse else np.asarray
    w = np.random.default_rng(1).normal(size=(X.shape[1], outputs))
    loss = MultinomialLoss(classes=outputs) if outputs > 1 else SquaredLoss()
    if outputs > 1:
        y = np.arange(len(y), dtype=np.float64) % outputs
    for mean in ONE_EACH:

        def ask(rows: Any, mean: Any = mean) -> np.ndarray:
            data = make(X[rows])
            b = batch(data, y[rows], map=seen(data, how), outputs=outputs)
            answers = (
                b.gradient(loss, w, mean),
                b.derivatives(loss, w, mean),
                b.derivative_norms(loss, w, 2.0 ** np.arange(-40, 40, 0.01)),
            )
            return np.concatenate([answer._value for answer in answers])

        together = ask(np.arange(len(y)))
        assert (ask(order) == together).all()
        # The grid of a single record may be no finer than that of seventy: both have 34 bits.
        assert (sum(ask([i]) for i in range(len(y))) == together).all()


def test_an_emptied_record_contributes_nothing() -> None:
    X, y = big_data()
    keep = np.arange(len(y)) % 3 > 0
    gone = np.where(keep, y, math.nan)
    for mean in ONE_EACH:
        a = batch(X, gone).gradient(SquaredLoss(), np.ones((7, 1)), mean)
        b = batch(X[keep], y[keep]).gradient(SquaredLoss(), np.ones((7, 1)), mean)
        assert integers(a) == integers(b)


# Sabotage: the same checks, one safeguard less


def halved(monkeypatch: pytest.MonkeyPatch, kind: type) -> None:
    honest = kind.norms  # type: ignore[attr-defined]

    def norms(self: Any, size: int, bits: int) -> tuple[Norms, Norms]:
        radius, diameter = honest(self, size, bits)
        half = [Norms(n.l1 / 2, n.l2 / 2, n.linf / 2) for n in (radius, diameter)]
        return half[0], half[1]

    monkeypatch.setattr(kind, "norms", norms)


@pytest.mark.parametrize("mean", ONE_EACH, ids=IDS)
def test_a_range_that_claims_half_its_width_is_caught(
    mean: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    halved(monkeypatch, type(mean.range))
    with pytest.raises(AssertionError, match="l"):
        test_the_bound_is_attained(mean, 6)
    with pytest.raises(AssertionError, match=r"l1|l2|l-inf"):
        test_no_adversarial_record_moves_a_gradient_further_than_said(mean, half=0)
    with pytest.raises(AssertionError, match=r"l1|l2|l-inf"):
        test_no_adversarial_record_moves_mean_derivatives_further_than_said(mean, half=0)


def test_derivatives_that_are_not_forced_onto_their_range_are_caught(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def believed(
        rows: Any, squares: Any, valid: Any, residuals: Any, labels: Any, intercept: Any,
        range_: Any, bits: int, sums: Any,
    ) -> None:  # fmt: skip
        entries = np.nan_to_num(residuals / range_.radius)[valid]
        np.add.at(sums[:, 0], labels[valid], np.rint(np.clip(entries, -4.0, 4.0) * 2.0**bits))

    monkeypatch.setattr(questions, "contribute", believed)
    for mean in ONE_EACH:
        with pytest.raises(AssertionError, match=r"l1|l2|l-inf"):
            test_no_adversarial_record_moves_mean_derivatives_further_than_said(mean, half=0)


def test_derivatives_that_are_clipped_by_another_record_are_caught(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """By the longest of the block, as if it were one vector."""
    honest = questions.contribute

    def together(rows: Any, squares: Any, valid: Any, residuals: Any, *others: Any) -> None:
        longest = np.abs(np.nan_to_num(residuals[valid])).max(initial=1.0)
        honest(rows, squares, valid, residuals / longest, *others)

    monkeypatch.setattr(questions, "contribute", together)
    with pytest.raises(AssertionError, match=r"l1|l2|l-inf"):
        test_no_adversarial_record_moves_mean_derivatives_further_than_said(
            ClampedMean(1e-3), half=0
        )


def printed_catoni(a: float, smoothing: float) -> float:
    """The closed form as printed: polynomial plus correction (Holland 2019; W20 (9))."""
    b = abs(a) / math.sqrt(smoothing) or TINY
    root = math.sqrt(2)

    def phi(x: float) -> float:
        return 0.5 * math.erfc(-x / root)

    low, high = (root - a) / b, (root + a) / b
    f_low, f_high = phi(-low), phi(-high)
    e_low, e_high = math.exp(-low * low / 2), math.exp(-high * high / 2)
    pi = math.sqrt(2 * math.pi)
    correction = (
        2 * root / 3 * (f_low - f_high)
        - (a - a**3 / 6) * (f_low + f_high)
        + b / pi * (1 - a * a / 2) * (e_high - e_low)
        + a * b * b / 2 * (f_high + f_low + (high * e_high + low * e_low) / pi)
        + b**3 / (6 * pi) * ((2 + low**2) * e_low - (2 + high**2) * e_high)
    )
    return a * (1 - b * b / 2) - a**3 / 6 + correction


def test_the_printed_formula_without_the_final_clamp_is_caught(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def box_dense(X: Any, scales: Any, offsets: Any, valid: Any, residuals: Any, labels: Any,
                  intercept: Any, radius: Any, kind: Any, coefficients: Any, limit: Any, bits: Any,
                  sums: Any) -> None:  # fmt: skip
        for i in np.flatnonzero(valid):
            for j in range(X.shape[1]):
                a = X[i, j] * residuals[i, 0] / radius
                if abs(a) < 1e100:
                    sums[labels[i], 0, j] += np.rint(printed_catoni(a, 3.0) * 2.0**bits)

    rows = [(np.full(D, a), 1.0) for a in (3e7, -3e7, 1e6)]
    X, y = np.ones((4, D)), np.ones(4)
    arguments: dict[str, Any] = {
        "loss": SquaredLoss(), "how": "plain", "intercept": False, "outputs": 1, "X": X, "y": y,
    }  # fmt: skip

    def check() -> None:
        for pair in gradient_pairs(SmoothedCatoniMean(1.0, 3.0), "float64", rows, **arguments):
            ratios(pair)

    check()
    monkeypatch.setattr(kernels, "box_dense", box_dense)
    with pytest.raises(AssertionError, match=r"l1|l2|l-inf"):
        check()


def test_an_influence_that_is_only_believed_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    def influence(entries: Any, kind: Any, coefficients: Any, limit: Any, bits: Any) -> None:
        entries[:] = np.rint(np.clip(np.nan_to_num(entries), -1e6, 1e6) * 2.0**bits)

    monkeypatch.setattr(kernels, "influence", influence)
    with pytest.raises(AssertionError, match=r"l1|l2|l-inf"):
        test_scores(1, "float64")
    with pytest.raises(AssertionError, match=r"l1|l2|l-inf"):
        test_improvement(1, "float64", half=0)


def clip_by_the_norm_of_the_input(guard: bool) -> Any:
    def ball_dense(X: Any, scales: Any, offsets: Any, squares: Any, valid: Any, residuals: Any,
                   labels: Any, intercept: Any, radius: Any, bits: Any, margin: Any, sums: Any
                   ) -> None:  # fmt: skip
        with np.errstate(all="ignore"):
            for i in np.flatnonzero(valid):
                x = X[i] * scales + offsets
                norm = np.sqrt(np.sum(x * x)) * np.linalg.norm(residuals[i])
                factor = 1.0 if not norm > radius else radius / norm
                v = x[:, None] * residuals[i] * factor
                v = np.nan_to_num(v, posinf=0.0, neginf=0.0) / radius * 2.0**bits
                rounded = np.trunc(v) if guard else np.rint(v)
                sums[labels[i]] += np.clip(rounded, -(2.0**52), 2.0**52).T

    return ball_dense


def test_clipping_by_the_norm_of_the_input_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    """docs/mathematics.md#l2-norm: 1e200 x 1e-170 underflows in the norm and not in the product."""
    rows = [(np.full(D, 1e-170), 1e200), (np.full(D, 1.0), 1.0)]
    arguments: dict[str, Any] = {
        "loss": SquaredLoss(), "how": "plain", "intercept": False, "outputs": 1,
        "X": np.ones((2, D)), "y": np.ones(2),
    }  # fmt: skip

    def check() -> None:
        for pair in gradient_pairs(ClippedMean(1.0), "float64", rows, **arguments):
            ratios(pair)

    check()
    monkeypatch.setattr(kernels, "ball_dense", clip_by_the_norm_of_the_input(guard=True))
    with pytest.raises(AssertionError, match=r"l1|l2|l-inf"):
        check()


@dataclass(frozen=True)
class Meddling:
    """A loss that changes the map that a question was given, while it is answered."""

    map: FeatureMap
    scale: float

    outputs: ClassVar[int] = 1
    name: ClassVar[str] = "meddling"
    targets: ClassVar[str] = "real"
    convex: ClassVar[bool] = False
    curvature: ClassVar[float] = math.inf
    lipschitz: ClassVar[float] = math.inf

    def values(self, margins: Any, y: Any) -> Any:
        return np.ones(len(margins))

    def derivatives(self, margins: Any, y: Any) -> Any:
        self.map.scales.flags.writeable = True
        self.map.scales[:] = self.scale
        object.__setattr__(self.map, "offsets", np.full(3, self.scale))
        return np.ones_like(margins)


def check_meddling() -> None:
    for scale, mean in itertools.product((1e-3, 1e6), (ClippedMean(1.0), MallowsMean(1.0, 2.0))):
        answers = []
        for x in (0.0, 1e3):
            given = FeatureMap.of(3, np.ones(3))
            b = batch(np.full((1, 3), x), np.ones(1), map=given)
            answers.append(b.gradient(Meddling(given, scale), np.zeros((3, 1)), mean))
        full, other = answers
        ratios(Pair(integers(full), integers(other), full.sensitivity.radius))


def test_a_question_sees_one_map() -> None:
    check_meddling()


def test_a_batch_keeps_its_map() -> None:
    """Whatever becomes of the one that it was given, or of the arrays that this was made of."""
    X, scales = np.ones((2, 3)), np.array([1.0, 2.0, 3.0])
    given = FeatureMap.of(3, scales)
    b = batch(X, map=given)
    scales[:] = 7.0
    given.scales.flags.writeable = True
    given.scales[:] = 7.0
    answer = b.means(ClampedMean(8.0))
    assert np.array(integers(answer)) * answer.sensitivity.unit == pytest.approx([1.0, 2.0, 3.0])


def test_a_map_that_is_read_twice_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    def sabotaged(rows: Any, *given: Any) -> None:
        changed = rows._rows.transformed(np.full(3, 1e6), np.zeros(3))
        honest(maps.MappedRows.as_they_are(changed), *given)

    honest = questions.contribute
    monkeypatch.setattr(questions, "contribute", sabotaged)
    with pytest.raises(AssertionError, match="l2"):
        check_meddling()


def test_a_map_that_is_not_copied_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Curator, "_mapped", lambda curator, given: given)
    with pytest.raises(AssertionError, match="l2"):
        check_meddling()


def test_rounding_out_of_the_ball_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    """Rounding to nearest without room for it leaves the ball by a few grid steps."""

    def check() -> None:
        rng = np.random.default_rng(8)
        for _ in range(50):
            X = rng.normal(size=(1, 40))
            b = batch(X, -np.full(1, 1e3))
            answer = b.gradient(SquaredLoss(), np.zeros((40, 1)), ClippedMean(1.0))
            ratios(Pair(integers(answer), [0] * 40, answer.sensitivity.radius))

    check()
    monkeypatch.setattr(kernels, "ball_dense", clip_by_the_norm_of_the_input(guard=False))
    with pytest.raises(AssertionError, match="l2"):
        check()


def test_blocks_cut_from_the_realised_records_are_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    """X23 Algorithm 3 as printed: one absent record moves all later ones, over every border."""
    k, size = 5, 5
    x = np.zeros((k, size))
    x[:, 0] = [-1, 1, -1, 1, -1]
    x[:, 1] = -x[:, 0]
    x[-1, 2] = 1
    X, y = 1e3 * x.reshape(-1, 1), -np.ones(k * size)
    gone = y.copy()
    gone[0] = math.nan

    def check() -> None:
        mean = ClampedMean(1.0, k)
        full, empty = (
            batch(X, t).gradient(SquaredLoss(), np.zeros((1, 1)), mean) for t in (y, gone)
        )
        ratios(Pair(integers(full), integers(empty), full.sensitivity.radius))

    check()

    class ByPosition(Deal):
        def labels(self, start: int, stop: int) -> Any:
            places = np.maximum(np.cumsum(np.isfinite(seen[-1])) - 1, 0) // size
            return places[start:stop]

    seen: list[Any] = []

    def by_position(self: Dataset, count: int) -> Deal:
        seen.append(self.targets._y)  # type: ignore[union-attr]
        return ByPosition(n=len(seen[-1]), blocks=count, key=b"")

    monkeypatch.setattr(Dataset, "deal", by_position)
    with pytest.raises(AssertionError, match=r"l1|l2|l-inf"):
        check()


def test_realised_divisors_are_caught() -> None:
    """Median of block means over realised sizes: n = 10, k = 3 moves .667, the lemma allows .6."""

    values = np.array([-1.0] * 3 + [-1.0] + [1.0] * 2 + [1.0] * 4)
    blocks = np.array([0] * 3 + [1] * 3 + [2] * 4)

    def answer(v: np.ndarray, realised: bool) -> float:
        sums = [v[blocks == b].sum() for b in range(3)]
        sizes = [(blocks == b).sum() for b in range(3)] if realised else [10 / 3] * 3
        return float(np.median([s / m for s, m in zip(sums, sizes, strict=True)]))

    other = values.copy()
    other[3] = 1.0
    allowed = 3 * 2 / 10
    assert abs(answer(other, realised=False) - answer(values, realised=False)) <= allowed + 1e-12
    assert abs(answer(other, realised=True) - answer(values, realised=True)) > 0.66


# The influence functions


def quadrature(a: float, smoothing: float) -> float:
    """E phi(a (1 + eta)) to 30 digits."""
    with mp.workdps(30):
        root, top = mp.sqrt(2), 2 * mp.sqrt(2) / 3
        m = mp.mpf(a)
        s = abs(m) / mp.sqrt(smoothing)
        if s == 0:
            return 0.0
        points = sorted(
            {-root, root, *(max(-root, min(root, m + k * s)) for k in range(-12, 13, 3))}
        )
        middle = mp.quad(lambda x: (x - x**3 / 6) * mp.npdf(x, m, s), points)
        upper = top * (mp.erfc((root - m) / (s * mp.sqrt(2))) / 2)
        lower = top * (mp.erfc((root + m) / (s * mp.sqrt(2))) / 2)
        return float(middle + upper - lower)


SMOOTHINGS = (0.3, 0.5, 1.0, 2.0, 3.0, 6.9, 20.0, 60.0, 100.0)


@pytest.mark.parametrize("smoothing", SMOOTHINGS)
def test_smoothed_influence_against_quadrature(smoothing: float) -> None:
    points = [1e-9, 1e-3, 0.1, 0.3, 0.7, 1.0, 1.4, 1.5, 2.2, 5.0, 40.0, 1e5, 1e8]
    found = catoni_influence(np.array(points), smoothing)
    for a, value in zip(points, found, strict=True):
        assert value == pytest.approx(quadrature(a, smoothing), abs=1e-12), a


@pytest.mark.parametrize("smoothing", SMOOTHINGS)
def test_smoothed_influence_is_odd_monotone_and_bounded(smoothing: float) -> None:
    a = np.concatenate([[0.0, TINY], np.logspace(-300, 308, 3000), np.linspace(1e-3, 9, 3000)])
    a = np.sort(a)
    h = catoni_influence(a, smoothing)
    bound = catoni_bound(smoothing)
    assert (np.diff(h) >= -2e-15).all()
    assert (h >= 0).all()
    assert h.max() <= bound
    assert h[-1] == pytest.approx(bound, rel=1e-13)
    assert bound <= 2 * math.sqrt(2) / 3
    assert (catoni_influence(-a, smoothing) == -h).all()


@pytest.mark.parametrize("smoothing", np.geomspace(0.3, 100, 17))
def test_fraction_of_the_smoothed_influence(smoothing: float) -> None:
    """Within 1e-6 everywhere, and what the kernel makes of it never leaves the bound."""
    fraction = np.array(catoni_fraction(float(smoothing), kernels.FRACTION_DEGREE))
    a = np.concatenate([np.logspace(-12, 12, 2000), np.linspace(0, 10, 4000)])
    a = np.concatenate([a, -a])
    bits = 34
    mean = SmoothedCatoniMean(1.0, float(smoothing))
    steps = mean.range.steps(bits)
    assert Fraction(steps, 2**bits) <= Fraction(mean.bound)
    entries = a.copy()
    kernels.influence(entries, kernels.CATONI, fraction, steps, bits)
    assert (np.abs(entries) <= steps).all()
    assert np.abs(entries / 2.0**bits - catoni_influence(a, float(smoothing))).max() < 1.01e-6


def test_the_printed_formula_leaves_its_bound() -> None:
    """Why a clamp is there: 10^6 at a = 3e7 as printed, and .943 is allowed."""
    assert abs(printed_catoni(0.7, 3.0) - catoni_influence(np.array([0.7]), 3.0)[0]) < 1e-12
    assert abs(printed_catoni(3e7, 3.0)) > 1e5


@pytest.mark.parametrize("mean", ONE_EACH, ids=IDS)
@pytest.mark.parametrize("outputs", [1, 3])
@pytest.mark.parametrize("question", ["gradient", "derivatives"])
def test_answers_are_what_the_mean_says(question: str, outputs: int, mean: Any) -> None:
    """Against a transcription in plain NumPy: 1e-6 of the range (Catoni), a few grid steps else."""
    rng = np.random.default_rng(4)
    n, d = 60, 6
    X, y = rng.standard_t(2, (n, d)), np.arange(n) % 3.0
    w = rng.normal(size=(d + 1, outputs))
    loss: Any = SquaredLoss() if outputs == 1 else MultinomialLoss(classes=3)
    for blocks in BLOCKS:
        mean = dataclasses.replace(mean, blocks=blocks)
        scales, offsets = np.linspace(0.5, 2, d), np.linspace(-1, 1, d)
        map_ = FeatureMap.of(d, scales, offsets)
        b = batch(X, y, map=map_, intercept=True, outputs=outputs)
        answer = getattr(b, question)(loss, w, mean)
        Z = np.hstack([X * scales + offsets, np.ones((n, 1))])
        R = loss.derivatives(np.ascontiguousarray(Z @ w), y)
        Z = Z if question == "gradient" else np.ones((n, 1))
        G = np.einsum("ij,ik->ijk", Z, R).reshape(n, -1)
        if isinstance(mean, MallowsMean):
            R = R * np.minimum(1, mean.threshold / np.linalg.norm(R, axis=1, keepdims=True))
            rows = Z * np.minimum(1, mean.row_length / np.linalg.norm(Z, axis=1, keepdims=True))
            G = np.einsum("ij,ik->ijk", rows, R).reshape(n, -1)
        elif isinstance(mean, ClippedMean):
            norms = np.linalg.norm(G, axis=1, keepdims=True)
            G = G * np.minimum(1, mean.threshold / norms)
        elif isinstance(mean, ClampedMean):
            G = np.clip(G, -mean.threshold, mean.threshold)
        elif isinstance(mean, TruncatedMean):
            G = np.where(np.abs(G) <= mean.threshold, G, 0.0)
        else:
            G = mean.scale * catoni_influence(G / mean.scale, mean.smoothing)
        deal = b._data.deal(blocks).labels(0, n)
        sums = np.array([G[deal == k].sum(axis=0) for k in range(blocks)])
        expected = np.median(sums, axis=0) * blocks / n
        found = np.array(integers(answer)) * answer.sensitivity.unit
        assert np.abs(found - expected).max() < 1.1e-6


def test_the_mean_of_contributing_is_what_it_says() -> None:
    page = (Path(__file__).parents[2] / "CONTRIBUTING.md").read_text(encoding="utf-8")
    written, _ = re.findall(r"```python\n(.*?)```", page, flags=re.DOTALL)
    known = dict(vars(robust_means))
    exec(textwrap.dedent(written), known)  # noqa: S102
    box = known["SoftClampMean"](2.0).range
    x = np.array([0.0, 1e-3, -0.5, 2.0, -7.0, 1e6, HUGE, -math.inf, math.nan])
    steps = x / box.radius
    kernels.influence(steps, box.kind, np.array(box.coefficients), box.steps(34), 34)
    expected = np.array([0.0, 1e-3 / 1.0005, -0.4, 1.0, -14 / 9, 2 / (1 + 2e-6), 2.0, -2.0, 0.0])
    np.testing.assert_allclose(steps * box.radius * 2.0**-34, expected, atol=2e-10)


# Shapes, refusals and the non-private limit


@pytest.mark.parametrize("loss", [SquaredLoss(), Wild()])
def test_an_infinite_threshold_without_privacy_is_the_plain_gradient(loss: Any) -> None:
    rng = np.random.default_rng(0)
    X, y = rng.standard_t(2, (200, 4)), rng.standard_t(2, 200)
    w = rng.normal(size=(5, 1))
    curator = Curator(X, y, budget=Budget(math.inf), intercept=True)
    mean = ClippedMean(math.inf)
    plan = (Round(events=(GaussianNoise(0.0).event(curator.problem.gradient(mean)),)),)
    curator.open(plan)
    assert curator.noise == "none"
    found = curator.everyone().gradient(loss, w, mean).release(GaussianNoise(0.0))
    Z = np.hstack([X, np.ones((200, 1))])
    with np.errstate(all="ignore"):
        expected = Z.T @ loss.derivatives(np.ascontiguousarray(Z @ w), y)[:, 0] / 200
    scale = np.abs(Z * y[:, None]).max()
    assert np.abs(found - expected).max() < 1e-8 * scale


def test_an_infinite_threshold_with_privacy_is_refused() -> None:
    b = batch(np.ones((3, 2)), np.ones(3))
    with pytest.raises(InvalidInput, match="infinite"):
        b.gradient(SquaredLoss(), np.zeros((2, 1)), ClippedMean(math.inf))
    with pytest.raises(InvalidInput):
        b.means(ClippedMean(math.inf))


@pytest.mark.parametrize(
    "make",
    [ClippedMean, ClampedMean, TruncatedMean, BoundedMean, lambda t: SmoothedCatoniMean(t, 3.0)],
)
@pytest.mark.parametrize("broken", [0.0, -1.0, math.nan])
def test_thresholds_are_positive(make: Any, broken: float) -> None:
    with pytest.raises(InvalidInput):
        make(broken)


def test_more_blocks_than_records_are_refused() -> None:
    with pytest.raises(InvalidInput, match="blocks"):
        batch(np.ones((2, 1)), np.ones(2)).gradient(
            SquaredLoss(), np.zeros((1, 1)), ClampedMean(1.0, blocks=3)
        )


def test_scores_need_a_one_signed_range() -> None:
    b = batch(np.ones((2, 1)), np.ones(2))
    with pytest.raises(InvalidInput, match="BoundedMean"):
        b.scores(SquaredLoss(), [np.zeros((1, 1))], ClampedMean(1.0))


def test_the_divisor_is_public() -> None:
    """Of a Poisson batch the expected size divides, whatever was drawn; of a median, n/k."""
    curator = Curator(np.ones((40, 2)), np.ones(40), budget=Budget(1.0, 1e-6))
    everyone = curator.problem.gradient(ClippedMean(1.0))
    poisson = curator.problem.sampled(PoissonBatches(0.25)).gradient(ClippedMean(1.0))
    assert poisson.unit == 4 * everyone.unit
    assert curator.problem.sampled(Everyone()) == curator.problem
    for k, factor in ((2, 1.0), (3, 3.0), (4, 2.0), (5, 5.0)):
        assert curator.problem.gradient(ClippedMean(1.0, k)).unit == pytest.approx(
            factor * everyone.unit
        )


def test_intervals_round_their_ends_down() -> None:
    for limit in (1.0, 0.1, 1 / 3, 2.0**-40):
        assert Fraction(Interval(1.0, limit=limit).steps(34), 2**34) <= Fraction(limit)
