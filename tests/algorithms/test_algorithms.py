"""What every algorithm of the table has to do."""

from __future__ import annotations

import inspect
import itertools
import math
import re
from dataclasses import FrozenInstanceError, dataclass, fields, replace

import numpy as np
import pytest
from scipy import sparse
from scipy.special import expit

from privtail import open_table
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
from privtail.default import AUTO, ScaledDescent
from privtail.domains import L1, L2Ball, Unconstrained
from privtail.errors import (
    BudgetExceeded,
    IncompatibleParts,
    InvalidInput,
    UnsupportedAccounting,
)
from privtail.published import NAMES
from privtail.published.names import OBJECTS, named
from privtail.robust_means import ClampedMean, ClippedMean, SmoothedCatoniMean, TruncatedMean
from privtail.table_files import passes as announced
from privtail.trusted import partitions
from privtail.trusted.accountants import cost
from privtail.trusted.budget import NEIGHBOURS, Budget
from privtail.trusted.events import SMOOTH, Round, plan_to_json
from privtail.trusted.files import formats
from privtail.trusted.ledger import Ledger
from privtail.trusted.maps import FeatureMap
from privtail.trusted.problem import Problem
from privtail.trusted.sampling import DisjointParts, PoissonBatches

EXAMPLES = {
    "auto": [
        ScaledDescent(),
        ScaledDescent(squares=True),
        ScaledDescent(squares=True, sparsity=1),
    ],
    "catoni-descent": [CatoniDescent(steps=4, step_size=0.1, scale=3.0, smoothing=3.0)],
    "proximal-gradient": [ProximalGradient(steps=5, step_size=0.1, threshold=1.0)],
    "clipped-spgd": [
        StochasticProximalGradient(mean=ClippedMean(1.0), steps=6, step_size=0.1),
    ],
    "kamath-spgd": [
        StochasticProximalGradient(
            mean=ClampedMean(1.0, blocks=3), steps=6, step_size=0.1, sampling=PoissonBatches(0.3)
        ),
    ],
    "holland-spgd": [
        StochasticProximalGradient(
            mean=SmoothedCatoniMean(1.0, 1.5), steps=6, step_size=0.1, sampling=PoissonBatches(0.5)
        ),
    ],
    "median-of-means-descent": [
        MedianOfMeansDescent(steps=4, step_size=0.1, threshold=1.0, blocks=5),
        MedianOfMeansDescent(
            steps=4, step_size=0.1, threshold=1.0, blocks=4, sampling=DisjointParts(4)
        ),
    ],
    "frank-wolfe": [FrankWolfe(steps=5, step_size=0.1, threshold=1.0)],
    "mirror-descent": [MirrorDescent(steps=5, step_size=0.1, threshold=1.0)],
    "frank-wolfe-corners": [FrankWolfeCorners(steps=5, step_size=0.1, threshold=1.0)],
    "heavy-tailed-frank-wolfe": [HeavyTailedFrankWolfe(steps=4, scale=2.0)],
    "truncated-lasso": [TruncatedLasso(steps=4, truncation=2.0)],
    "truncated-sparse-regression": [
        TruncatedSparseRegression(steps=4, step_size=0.1, truncation=2.0, sparsity=1)
    ],
    "smoothed-peeling": [
        SparsePeeling.smoothed(steps=4, step_size=0.1, scale=2.0, sparsity=1),
    ],
    "sparse-peeling": [
        SparsePeeling(
            mean=TruncatedMean(1.0), steps=4, step_size=0.1, peeling=OneShotPeeling(sparsity=1)
        ),
        SparsePeeling(
            mean=TruncatedMean(1.0), steps=4, step_size=0.1, peeling=LaplacePeeling(sparsity=1)
        ),
    ],
    "net-search": [NetSearch(points=57, scale=0.3), NetSearch(points=4, scale=0.3, order=1.3)],
    "noisy-descent": [NoisyDescent(steps=5, step_size=0.1, threshold=1.0)],
    "random-round-descent": [RandomRoundDescent(rows=10, steps=5, step_size=0.1, threshold=1.0)],
    "trimmed-descent": [
        TrimmedDescent(steps=4, step_size=0.1, low=-3.0, high=3.0),
        TrimmedDescent(steps=3, step_size=0.1, low=-1.0, high=9.0, trim=0, smoothness=0.3),
    ],
    "clipped-trimmed-descent": [
        TrimmedDescent.clipped(steps=4, step_size=0.1, low=-3.0, high=3.0),
    ],
    "sample-and-aggregate": [
        AggregatedMinimizer(blocks=9, radius=3.0, smoothness=0.5, delta=1e-6),
    ],
    "boosted-adassp": [BoostedAdaSSP(steps=4, radius=3.0, threshold=2.0)],
    "one-pass-descent": [OnePassDescent(steps=4, step_size=0.1, threshold=1.0)],
}
"""At least one algorithm of every row; a new row needs one here."""

LARGE = {"sample-and-aggregate"}

NOT_MEANS = ("histogram", "derivative norms", "moments")
"""Cannot run on a few hundred records: held to the same in files of their own."""

STREAMED = {
    "sample-and-aggregate": [
        AggregatedMinimizer(blocks=900, radius=3.0, smoothness=0.02, delta=5e-6, iterations=5)
    ],
}
"""Larger examples of those that need more records."""

ALL = [(row.name, a) for row in TABLE if row.name not in LARGE for a in EXAMPLES[row.name]]
every_algorithm = pytest.mark.parametrize(
    "algorithm", [a for _, a in ALL], ids=[f"{name}-{i}" for i, (name, _) in enumerate(ALL)]
)


def test_the_table_is_a_table():
    assert [row.name for row in (AUTO, *TABLE)] == list(EXAMPLES)
    assert {"auto", *NAMES, *OBJECTS} == set(EXAMPLES)
    assert not set(NAMES) & set(OBJECTS)
    for row in (AUTO, *TABLE):
        assert all(isinstance(example, row.algorithm) for example in EXAMPLES[row.name])
        assert all(isinstance(cell, str) for cell in (row.name, row.paper, row.box, row.must_know))


@every_algorithm
def test_an_algorithm_is_a_frozen_value(algorithm):
    assert replace(algorithm) == algorithm
    assert hash(replace(algorithm)) == hash(algorithm)
    assert eval(repr(algorithm), vars(inspect.getmodule(type(algorithm)))) == algorithm  # noqa: S307
    with pytest.raises(FrozenInstanceError):
        algorithm.steps = 1
    with pytest.raises(TypeError):
        type(algorithm)(1)
    assert all(f.kw_only for f in fields(algorithm))


@pytest.mark.parametrize("row", TABLE, ids=[row.name for row in TABLE])
def test_a_docstring_says_what_is_promised_and_what_is_changed(row):
    doc = inspect.getdoc(row.algorithm)
    assert "**Privacy.**" in doc
    assert "**Utility.**" in doc
    if row.paper != "-":
        assert re.search(r"^=+  =+  =+\npaper +here +meaning\n=+  =+  =+\n", doc, re.MULTILINE)
        assert "**Deviations from the paper.**" in doc
        assert hasattr(row.algorithm, "from_theory")


def spent(charged):
    """The plan that was in fact released, repetitions of a round collected."""
    rounds = []
    for sampling, released in charged:
        events = tuple(replace(e, unit=1.0) for e in released)  # a threshold may change on the way
        if rounds and (rounds[-1].sampling, rounds[-1].events) == (sampling, events):
            rounds[-1] = replace(rounds[-1], times=rounds[-1].times + 1)
        else:
            rounds.append(Round(sampling=sampling, events=events))
    return tuple(rounds)


def priced(plan):
    """A plan without what only readers see."""
    return tuple(
        replace(r, events=tuple(replace(e, unit=1.0, question="") for e in r.events)) for r in plan
    )


@every_algorithm
@pytest.mark.parametrize("epsilon", [0.1, 1.0, 5.0, math.inf])
def test_planned_is_spent_and_within_the_budget(watched, make_problem, algorithm, epsilon, half):
    neighbours = NEIGHBOURS[(epsilon in (0.1, 5.0)) ^ half]
    X, y, loss = make_problem("squared", 300, 2)
    ledger = Ledger(epsilon=epsilon, delta=1e-5, neighbours=neighbours)
    w = watched.fit(
        algorithm, X, y, loss, epsilon=epsilon, neighbours=neighbours, ledger=ledger,
        intercept=True,
    )  # fmt: skip
    assert np.isfinite(w).all()
    plan = watched.curator.plan
    assert plan == algorithm.plan(watched.multiplier, watched.curator.problem)
    assert (watched.curator.problem.n, watched.curator.problem.d) == (300, 2)
    assert priced(spent(watched.charged)) == priced(plan)

    bill = cost(plan, neighbours).epsilon(1e-5)
    assert bill == cost(spent(watched.charged), neighbours).epsilon(1e-5)
    assert bill <= epsilon
    (entry,) = ledger.entries()
    assert entry.plan == plan_to_json(plan)
    assert entry.epsilon == bill == ledger.spent[0]
    if math.isinf(epsilon):
        assert watched.multiplier == 0
        assert not any(np.any(z) for z in watched.noise)
    else:
        assert bill >= 0.99 * epsilon, "budget is left over"
        assert all(np.any(z) for z in watched.noise)


@every_algorithm
def test_the_ledger_refuses_what_it_cannot_pay_before_anything_is_drawn(
    watched, make_problem, algorithm
):
    X, y, loss = make_problem("squared", 300, 2)
    ledger = Ledger(epsilon=0.5, delta=1e-5)
    with pytest.raises(BudgetExceeded):
        watched.fit(algorithm, X, y, loss, epsilon=1.0, ledger=ledger)
    assert ledger.entries() == ()
    assert watched.noise == []
    assert watched.batches == []


def laws(algorithm):
    """The laws of all noise of an algorithm."""
    return {e.law for r in algorithm.plan(2.0, Problem(n=300, d=2)) for e in r.events}


@every_algorithm
def test_gaussian_noise_is_not_pure_and_other_noise_is(watched, make_problem, algorithm):
    X, y, loss = make_problem("squared", 300, 2)
    if not laws(algorithm) & {"gaussian", "laplace_lognormal"}:
        watched.fit(algorithm, X, y, loss, delta=0.0)
        return
    with pytest.raises(UnsupportedAccounting, match="delta"):
        watched.fit(algorithm, X, y, loss, delta=0.0)


@every_algorithm
def test_replace_one_pays_the_diameter_and_zero_out_the_radius(algorithm):
    """All ranges are symmetric: twice the noise, but for Poisson batches and histograms.

    A smooth sensitivity is that of a replaced value under both relations.
    """
    problem = Problem(n=300, d=2)
    for r in algorithm.plan(2.0, problem):
        for event in r.events:
            if event.question == "gradient" and laws(algorithm) == {"gaussian"}:
                assert event.scale == pytest.approx(2.0 * event.radius)
            factor = math.sqrt(2) if event.question in NOT_MEANS else 2.0
            factor = 1.0 if event.question == "scores" or event.law in SMOOTH else factor
            assert event.diameter == pytest.approx(factor * event.radius, rel=1e-6)


@every_algorithm
def test_the_multiplier_is_a_factor_on_every_noise(algorithm):
    problem = Problem(n=300, d=2)
    once, twice = (algorithm.plan(m, problem) for m in (2_000.0, 4_000.0))
    for a, b in zip(once, twice, strict=True):
        assert (a.sampling, a.times) == (b.sampling, b.times)
        for e, f in zip(a.events, b.events, strict=True):
            assert f.scale == pytest.approx(2 * e.scale)
            assert replace(f, scale=e.scale, smoothness=e.smoothness) == e


@every_algorithm
def test_more_noise_costs_less_where_some_noise_is_fixed(algorithm):
    """Looks at the data need no less noise than a part of n, however small the multiplier."""
    plans = [algorithm.plan(m, Problem(n=3_000, d=2)) for m in (3.0, 6.0, 300.0)]
    for less, more in itertools.pairwise(plans):
        alone = len(more) < len(less)  # an intercept-only model
        events = [[e.scale for r in plan for e in r.events] for plan in (less, more)]
        assert alone or all(a <= b for a, b in zip(*events, strict=True))
        assert cost(more, "replace_one").epsilon(1e-6) < cost(less, "replace_one").epsilon(1e-6)


@every_algorithm
@pytest.mark.parametrize("kind", ["squared", "logistic"])
def test_a_seed_repeats_a_simulated_run(watched, make_problem, algorithm, kind):
    if isinstance(algorithm, ScaledDescent) and kind == "logistic":
        algorithm = replace(algorithm, targets="binary")
    X, y, loss = make_problem(kind, 300, 2)
    first, again, other = (watched.fit(algorithm, X, y, loss, seed=s) for s in (1, 1, 2))
    assert np.array_equal(first, again)
    assert not np.array_equal(first, other) or "gaussian" not in laws(algorithm) or not first.any()


@every_algorithm
def test_sparse_records_give_what_dense_ones_give(watched, make_problem, algorithm):
    """Equal up to the order in which a margin is summed; the default does not centre them."""
    X, y, loss = make_problem("squared", 300, 2)
    X[np.abs(X) < 0.7] = 0
    intercept = not isinstance(algorithm, ScaledDescent)
    dense, csr = (
        watched.fit(algorithm, storage, y, loss, intercept=intercept)
        for storage in (X, sparse.csr_matrix(X))
    )
    assert np.abs(dense - csr).max() < 1e-6


@pytest.mark.parametrize("name", [row.name for row in TABLE])
def test_mapped_features_give_what_such_features_give(watched, make_problem, name):
    """To the bit where the scales are powers of two, which no product rounds."""
    X, y, loss = make_problem("squared", 3_000 if name in LARGE else 300, 3)
    scales, same = np.array([2.0, 0.25, 8.0]), []
    for algorithm in STREAMED.get(name, EXAMPLES[name]):
        mapped = watched.fit(algorithm, X, y, loss, map=FeatureMap.of(3, scales), epsilon=50.0)
        of_such = watched.fit(algorithm, X * scales, y, loss, epsilon=50.0)
        assert np.array_equal(mapped, of_such), algorithm
        same.append(np.array_equal(mapped, watched.fit(algorithm, X, y, loss, epsilon=50.0)))
    assert not all(same)


@pytest.mark.parametrize("name", EXAMPLES)
def test_a_streamed_file_gives_the_bits_of_memory(
    watched, make_problem, name, half, tmp_path, monkeypatch
):
    """Whatever the windows; and the passes are those that were announced."""
    neighbours = NEIGHBOURS[(list(EXAMPLES).index(name) + half) % 2]
    arrow, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    X, y, loss = make_problem("squared", 3_000 if name in LARGE else 700, 3)
    columns = {f"x{j}": column for j, column in enumerate(X.T)}
    parquet.write_table(arrow.table({**columns, "y": y}), tmp_path / "t.parquet", row_group_size=90)
    monkeypatch.setattr(formats, "WINDOW_ROWS", 64)
    monkeypatch.setattr(formats, "TOGETHER", 1)
    monkeypatch.setattr("privtail.trusted.smooth.questions.KEPT_BYTES", 20_000)
    monkeypatch.setattr(partitions, "BLOCK_ROWS", 50)
    for algorithm in STREAMED.get(name, EXAMPLES[name]):
        file, passes = open_table(tmp_path / "t.parquet"), []
        runs = file._format.runs
        monkeypatch.setattr(
            file._format, "runs", lambda *a, b=runs, p=passes: (p.append(1), b(*a))[1]
        )
        memory = watched.fit(algorithm, X, y, loss, neighbours=neighbours, intercept=True)
        streamed = watched.fit(algorithm, file, "y", loss, neighbours=neighbours, intercept=True)
        assert np.array_equal(memory, streamed)
        plan = watched.curator.plan
        if len({e.law for r in plan for e in r.events}) > 1:  # a support and its values
            assert len(passes) <= announced(file, plan)
        else:
            assert len(passes) == announced(file, plan)


@every_algorithm
@pytest.mark.parametrize("n", [50, 9])
def test_one_feature_and_few_records(watched, make_problem, algorithm, n):
    X, y, loss = make_problem("squared", n, 1)
    w = watched.fit(algorithm, X, y, loss)
    assert w.shape == (1, 1)
    assert np.isfinite(w).all()


@every_algorithm
@pytest.mark.parametrize("intercept", [False, True])
def test_nothing_in_the_records_raises_or_warns(watched, algorithm, intercept):
    rng = np.random.default_rng(0)
    X = rng.standard_cauchy((60, 3))
    X[0], X[1, 1], X[2], X[3], X[4] = np.nan, np.inf, 1e308, -1e308, 5e-324
    y = rng.standard_cauchy(60)
    y[5:8] = np.nan, -np.inf, 1e300
    from privtail.losses import SquaredLoss

    for records, target in (
        (X, y),
        (np.full((60, 3), np.nan), y),
        (np.zeros((60, 3)), np.zeros(60)),
        (np.full((60, 3), 1e300), np.full(60, -1e300)),
        (X, np.full(60, np.nan)),
    ):
        w = watched.fit(algorithm, records, target, SquaredLoss(), intercept=intercept)
        assert np.isfinite(w).all()


@every_algorithm
def test_multinomial(watched, make_problem, algorithm):
    if isinstance(algorithm, ScaledDescent):
        algorithm = replace(algorithm, targets="binary")
    X, y, loss = make_problem("multinomial", 300, 2)
    w = watched.fit(algorithm, X, y, loss, intercept=True)
    outputs = 1 if isinstance(algorithm, NetSearch | BoostedAdaSSP) else 3
    assert w.shape == (watched.curator.problem.rows, outputs)


@dataclass(frozen=True)
class Shapeless:
    """A domain without operations."""

    def value(self, w):
        return 0.0


@every_algorithm
def test_a_domain_without_the_operation_is_refused_with_a_list(watched, make_problem, algorithm):
    X, y, loss = make_problem("squared", 60, 2)
    with pytest.raises(IncompatibleParts) as refusal:
        watched.fit(algorithm, X, y, loss, domain=Shapeless())
    text = str(refusal.value)
    assert type(algorithm).__name__ in text
    assert f"Shapeless has no `{algorithm.needs[0]}`" in text
    assert "L1Ball" in text.split("Domains that fit:")[1]
    assert watched.noise == []


# --- without privacy: the method itself ------------------------------------------------------


def descend(X, y, link, steps, step, prox):
    """Plain proximal gradient descent; all iterates."""
    w = [np.zeros(X.shape[1])]
    for t in range(steps):
        g = X.T @ (link(X @ w[-1]) - y) / len(X)
        w.append(prox(w[-1] - step(t) * g, step(t)))
    return w


PLAIN = {
    "catoni-descent": (
        CatoniDescent(steps=8, step_size=0.2, scale=3e4, smoothing=3.0),
        lambda t: 0.2,
        lambda w, picks: w[-1],
    ),
    "proximal-gradient": (
        ProximalGradient(steps=9, step_size=0.2, threshold=math.inf),
        lambda t: 0.2,
        lambda w, picks: w[picks[-1]],
    ),
    "clipped-spgd": (
        StochasticProximalGradient(mean=ClippedMean(1e4), steps=8, step_size=0.2),
        lambda t: 0.2 / math.sqrt(t + 1),
        lambda w, picks: np.mean(w[1:], axis=0),
    ),
    "median-of-means-descent": (
        MedianOfMeansDescent(steps=8, step_size=0.2, threshold=1e4, blocks=1),
        lambda t: 0.2,
        lambda w, picks: np.mean(w[1:], axis=0),
    ),
}


@pytest.mark.parametrize("name", PLAIN)
@pytest.mark.parametrize("kind", ["squared", "logistic"])
@pytest.mark.parametrize(
    ("domain", "prox"),
    [
        (Unconstrained(), lambda w, step: w),
        (L1(alpha=0.1), lambda w, step: np.sign(w) * np.maximum(np.abs(w) - 0.1 * step, 0)),
        (L2Ball(radius=0.3), lambda w, step: w * min(1, 0.3 / np.linalg.norm(w))),
    ],
    ids=["free", "l1", "ball"],
)
def test_without_privacy_it_is_plain_descent(watched, make_problem, name, kind, domain, prox):
    algorithm, step, chosen = PLAIN[name]
    _, y, loss = make_problem(kind, 400, 3)
    X = np.random.default_rng(3).normal(size=(400, 3))
    w = watched.fit(algorithm, X, y, loss, domain=domain, epsilon=math.inf)
    link = expit if kind == "logistic" else (lambda margin: margin)
    expected = chosen(descend(X, y, link, 8, step, prox), watched.picks)
    assert np.abs(w[:, 0] - expected).max() < 1e-6


# --- parameters that no paper speaks of ---------------------------------------------------------

WRONG = {
    "steps": (0, -1, 2.5, True),
    "rows": (0,),
    "points": (0,),
    "blocks": (0,),
    "sparsity": (0,),
    "step_size": (0.0, -1.0, math.nan, math.inf, "0.1"),
    "threshold": (0.0, -1.0, math.nan),
    "scale": (0.0, math.nan),
    "truncation": (0.0, math.inf, 1e101),
    "radius": (-1.0, math.nan, 1e101),
    "decay": (-0.5, math.inf),
    "mean": (1.0,),
    "peeling": (3,),
    "geometry": (2,),
}


@every_algorithm
def test_a_parameter_out_of_its_range_is_refused_when_the_algorithm_is_made(algorithm):
    if isinstance(algorithm, ScaledDescent):
        return
    names = [field.name for field in fields(algorithm) if field.name in WRONG]
    assert names
    for name in names:
        for wrong in WRONG[name]:
            with pytest.raises((InvalidInput, IncompatibleParts), match=f"^{name} must be"):
                replace(algorithm, **{name: wrong})


@every_algorithm
def test_a_parameter_is_kept_as_it_was_checked(algorithm):
    """A number of a class of its own could be another one in the run than in the plan."""
    if isinstance(algorithm, ScaledDescent):
        return

    class Size(float):
        def __float__(self):
            return float.__float__(self)

    class Count(int):
        def __index__(self):
            return int.__index__(self)

    own = {float: Size, int: Count}
    plain = {f.name: getattr(algorithm, f.name) for f in fields(algorithm)}
    odd = {name: own[type(x)](x) for name, x in plain.items() if type(x) in own}
    kept = replace(algorithm, **odd)
    assert odd
    assert {name: (type(getattr(kept, name)), getattr(kept, name)) for name in odd} == {
        name: (type(plain[name]), plain[name]) for name in odd
    }


@pytest.mark.parametrize("kind", [FrankWolfe, FrankWolfeCorners])
def test_no_step_of_frank_wolfe_leaves_the_domain(kind):
    kind(steps=2, step_size=1.0, threshold=1.0)
    with pytest.raises(InvalidInput, match="step_size must be at most 1"):
        kind(steps=2, step_size=1.5, threshold=1.0)


BUDGET = Budget(1.0, 1e-6)
CATONI = {"second_moment": 1.0, "curvature": 1.0}
HOLLAND = {"batch": 10, "second_moment": 1.0, "step_size": 0.1}


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (lambda: CatoniDescent.from_theory(0, 3, BUDGET, **CATONI), "n must be a whole number"),
        (lambda: CatoniDescent.from_theory(9, 3, BUDGET, second_moment=-1.0, curvature=1.0),
         "second_moment must be positive"),
        (lambda: CatoniDescent.from_theory(9, 3, BUDGET, **CATONI, failure_probability=2.0),
         "failure_probability must lie between 0 and 1"),
        (lambda: CatoniDescent.from_theory(9, 3, BUDGET, **CATONI, strong_convexity=2.0),
         "strong_convexity must be at most curvature"),
        (lambda: CatoniDescent.from_theory(9, 3, BUDGET, **CATONI, batch=10), "Leave it out"),
        (lambda: StochasticProximalGradient.holland(99, Budget(1.0), **HOLLAND), "delta > 0"),
        (lambda: StochasticProximalGradient.kamath(99, 3, Budget(1.0), step_size=0.1, batch=10),
         "delta > 0"),
        (lambda: StochasticProximalGradient.clipped(99, batch=0, threshold=1.0, step_size=0.1),
         "batch must be a whole number"),
        (lambda: named("net-search", BUDGET, 1.0, targets="real"),
         r"algorithm=NetSearch\(\.\.\.\); help"),
    ],
)  # fmt: skip
def test_a_preset_says_which_number_its_theorem_does_not_allow(make, says):
    with pytest.raises(InvalidInput, match=says):
        make()


@pytest.mark.parametrize("kind", [LaplacePeeling, OneShotPeeling])
def test_no_more_slopes_are_kept_than_there_are(kind):
    peeling = kind(sparsity=4)
    algorithm = SparsePeeling(mean=ClippedMean(1.0), steps=2, step_size=0.1, peeling=peeling)
    with pytest.raises(InvalidInput, match="Use sparsity=3 or less"):
        algorithm.plan(1.0, Problem(n=100, d=3, intercept=True))
    assert algorithm.plan(1.0, Problem(n=100, d=4, intercept=True))
