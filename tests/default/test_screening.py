"""The selection of features: where it cuts them, and what it finds."""

from __future__ import annotations

import math

import numpy as np
import pytest

from privtail.default.screening import CutRange, Screening
from privtail.losses import LogisticLoss, MultinomialLoss, PoissonLoss, SquaredLoss
from privtail.summaries.column_summaries import ColumnSummaries
from privtail.summaries.summary import Summary
from privtail.trusted.budget import Budget
from privtail.trusted.curator import Curator
from privtail.trusted.events import compose
from privtail.trusted.mechanisms.noise import GaussianNoise
from privtail.trusted.problem import Problem

FAINT = 1e-9
D = 60


def curate(X, y, *parts, **options):
    """A curator that lets these stages run, nearly without noise."""
    options = {"intercept": True, "noise": "simulated", "random_state": 0, **options}
    curator = Curator(X, y, budget=Budget(1e30, 1e-6), **options)
    if parts:
        curator.open(compose(*(part.plan(curator.problem) for part in parts)))
    return curator


def pooled(X, y, target=True):
    """What one histogram of all columns says, and the target's own."""
    looks = ColumnSummaries(target=target)
    curator = curate(X, y)
    multiplier = len(X) / 40
    assert looks.pooled(multiplier, curator.problem)
    curator.open(looks.plan(multiplier, curator.problem))
    return looks.run(curator, multiplier)


def table(seed=0, spread=0.0, n=2_000):
    """Lognormal columns in units of 10^U(-spread, spread), and the logarithm of one of them."""
    rng = np.random.default_rng(seed)
    X = rng.lognormal(0, 1.5, (n, D))
    told = np.log(X[:, 7]) / 1.5 + 0.5 * rng.normal(size=n)
    return X * 10.0 ** rng.uniform(-spread, spread, D), told


def reach(X, y, found, loss=None, **options):
    part = CutRange(GaussianNoise(FAINT))
    return part.run(curate(X, y, part, **options), loss or SquaredLoss(), found)


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize(("spread", "expected"), [(0.0, 0.0), (0.2, 0.0), (1.0, math.inf)])
def test_features_are_cut_anywhere_where_they_lie_apart(seed, spread, expected):
    X, y = table(seed, spread)
    assert reach(X, y, pooled(X, y)) == expected


def test_a_reach_is_that_of_the_mean_sign():
    """Columns above their cut in 70 % or in 68 % of all rows: .4 and .36 beside .38."""
    n = 100
    for above, expected in ((70, math.inf), (68, 0.0)):
        X = np.where(np.arange(n)[:, None] < above, 1.0, -1.0) * np.ones((1, D))
        X[:, ::2] *= -1e200
        assert reach(X, np.arange(n) % 2.0, Summary.declared(D), LogisticLoss()) == expected


def test_declared_indicators_do_not_count():
    """Eighty of them, each a sign in half of the rows, beside columns that lie apart."""
    X, y = table(spread=2.0)
    names = [f"kind {j}" for j in range(40)]
    kinds = np.array(["a", "b"])[np.random.default_rng(0).integers(0, 2, (len(X), 40))]
    columns = {f"x{j}": X[:, j] for j in range(D)} | dict(zip(names, kinds.T, strict=True))
    found = Summary.joined([pooled(X, y).take(slice(D)), Summary.declared(81)])
    assert reach(columns, y, found, categories=dict.fromkeys(names, ("a", "b"))) == math.inf


def test_where_the_constant_is_not_in_the_middle_cuts_are_at_zero():
    X, y = table(spread=2.0)
    found = pooled(X, y)
    assert reach(X, y, found) == math.inf
    assert reach(X, y, found, intercept=False) == 0.0
    assert reach(X, np.abs(np.rint(y)), found, PoissonLoss()) == 0.0
    zeros = np.where(y > 1.5, y, 0.0)
    assert reach(X, zeros, pooled(X, zeros)) == 0.0


@pytest.mark.parametrize("n", [1, 1_000, 2**30])
@pytest.mark.parametrize("d", [1, 2**16])
def test_any_table_has_a_reach(n, d):
    """So many columns of so many records add up to less than 2^62."""
    problem = Problem(n=n, d=d, intercept=True)
    (round_,) = CutRange.priced(GaussianNoise(1e4), problem).plan(problem)
    assert round_.events[0].std > 0


def chosen(X, y, loss, found, how_far, **options):
    """The one feature that is selected."""
    outputs = loss.outputs
    part = Screening(sparsity=1, multiplier=FAINT, own=None)
    raw = options.pop("raw", None)
    curator = curate(X, y, part, outputs=outputs, **options)
    return part.run(curator, loss, found, raw, reach=how_far)[1].tolist()


@pytest.mark.parametrize("seed", range(5))
def test_a_feature_is_found_that_the_shared_cut_does_not_part(seed):
    X, y = table(seed)
    X[:, 1::3] *= 1e9
    found = pooled(X, y)
    assert chosen(X, y, SquaredLoss(), found, math.inf) == [7]
    assert chosen(X, y, SquaredLoss(), found, 0.0) != [7]


@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize("seed", range(3))
def test_what_rare_labels_go_with_is_found(seed, classes):
    """Derivatives are centred, their signs are not: 19 of 20 are one."""
    X, told = table(seed, spread=2.0, n=4_000)
    y = (told > np.quantile(told, 0.95)).astype(float)
    y += (classes - 2) * (told < np.quantile(told, 0.05)) * 2
    loss = LogisticLoss() if classes == 2 else MultinomialLoss(classes=3)
    odds = np.log([0.95, 0.05] if classes == 2 else [0.9, 0.05, 0.05])
    raw = np.zeros((D + 1, loss.outputs))
    raw[-1] = odds[1:] - odds[:1] if classes == 2 else odds
    found = pooled(X, y, target=False)
    assert chosen(X, y, loss, found, math.inf, raw=raw) == [7]


def test_features_that_are_chosen_are_not_asked_for():
    X, y = table(spread=2.0)
    part = Screening(sparsity=1, multiplier=FAINT, own=None)
    plan = part.plan(Problem(n=len(X), d=D, intercept=True), 2)
    assert plan[0].events[0].coordinates == D - 2
    curator = curate(X, y)
    curator.open(plan)
    before = np.array([3, 7])
    _, now = part.run(curator, SquaredLoss(), pooled(X, y), None, before, math.inf)
    assert set(before) < set(now)
    assert len(now) == 3
