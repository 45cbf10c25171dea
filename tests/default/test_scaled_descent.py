"""The default: accurate without knowing anything, and the same in every unit."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pandas as pd
import pyarrow.parquet as pq
import pytest
from scipy import sparse
from sklearn.linear_model import HuberRegressor, LinearRegression, QuantileRegressor

from privtail.calibration import calibrated
from privtail.data import ADULT, adult_schema
from privtail.default import ScaledDescent
from privtail.default import descent as averaged_descent
from privtail.default.counts import CountDescent
from privtail.default.descent import Descent, _shares
from privtail.default.preconditioner import Preconditioner, likely
from privtail.default.residuals import CELLS, EDGES
from privtail.default.short_descent import ShortDescent
from privtail.default.standardization import tail_adjusted
from privtail.domains import L1, L2, L2Ball, Unconstrained
from privtail.errors import IncompatibleParts
from privtail.linear_model import DPHuberRegressor, DPLADRegressor, DPLinearRegression
from privtail.losses import (
    AbsoluteLoss,
    GeneralLoss,
    HuberLoss,
    LogisticLoss,
    PoissonLoss,
    QuantileLoss,
    SquaredLoss,
)
from privtail.summaries.histograms import Histogram
from privtail.summaries.summary import BEYOND, Summary
from privtail.trusted.accountants import cost
from privtail.trusted.budget import Budget
from privtail.trusted.curator import Curator
from privtail.trusted.means import MallowsMean
from privtail.trusted.problem import Problem


def linear(n=20_000, d=3, seed=0, sizes=1.0, shift=0.0):
    rng = np.random.default_rng(seed)
    X = rng.standard_t(4, (n, d)) * sizes + shift
    w = np.array([1.0, -1.0, 0.5])[:d] / sizes
    return X, X @ w + 2.0 + rng.standard_t(2.5, n), w


def spent(plan):
    """Squared Gaussian-DP parameters of the rounds."""
    return [cost((r,), "replace_one").mu ** 2 for r in plan]


def test_the_plan_is_the_eight_stages():
    problem = Problem(n=10_000, d=3, intercept=True)
    plan = ScaledDescent(squares=True).plan(42.0, problem)
    assert [(r.events[0].question, r.times) for r in plan] == [
        ("histogram", 4),
        ("gradient", 1),
        ("moments", 1),
        ("gradient", 5),
        ("derivative norms", 1),
        ("gradient", 20),
        ("gradient", 1),
        ("improvement", 1),
        ("scores", 1),
    ]
    # Shares of the squared Gaussian-DP parameter, in units of that of the descent.
    mus = spent(plan)
    descent = mus[3] + mus[5]
    assert descent == pytest.approx(100 * (2 / 42) ** 2)
    shares = [mus[j] / descent for j in (1, 2, 6, 7, 8)]
    few = 10 / 3  # three features: gains cost as much more
    assert shares == pytest.approx([0.05, 0.1, 0.05, 0.1 * few, 0.02])


def test_a_small_budget_finds_the_target_first():
    problem = Problem(n=10_000, d=3)
    algorithm = ScaledDescent(scale_share=0.1)
    for multiplier, noise in ((1_414.2, 816.5), (1_555.6, 833.3), (4_242.6, 833.3)):
        plan = algorithm.plan(multiplier, problem)
        assert plan[0].times == 4
        assert plan[0].events[-1].std == pytest.approx(noise, rel=1e-3)
    mus = spent(algorithm.plan(1e6, problem))
    assert mus[0] / (100 * (2 / 1e6) ** 2) == pytest.approx(24.0, rel=1e-6)


@pytest.mark.parametrize(
    ("targets", "multiplier", "share"),
    [("real", 60.0, 0.45), ("real", 104.0, 0.45), ("real", 112.0, 0.5165), ("real", 121.0, 0.6),
     ("class", 60.0, 0.45), ("class", 134.0, 0.517), ("class", 145.0, 0.6)],
)  # fmt: skip
def test_scales_that_are_found_take_less(targets, multiplier, share):
    looks = ScaledDescent(targets=targets).plan(
        10 * multiplier, Problem(n=10_000, d=10, outputs=1)
    )[0]
    assert looks.events[0].question == "histogram"
    assert sum(spent((looks,))) * multiplier**2 / 4 == pytest.approx(share, abs=0.01)


@pytest.mark.parametrize("squares", [True, False])
def test_a_constant_costs_what_all_stages_would_where_it_takes_over(squares):
    """Else the search for the noise that a budget pays for would meet a step."""
    problem, algorithm = Problem(n=10_000, d=3, intercept=True), ScaledDescent(squares=squares)

    def has_slopes(multiplier):
        return any(r.events[0].question == "moments" for r in algorithm.plan(multiplier, problem))

    few, many = 1.0, 1e6
    assert has_slopes(few)
    assert not has_slopes(many)
    while many / few > 1 + 1e-9:
        middle = math.sqrt(few * many)
        few, many = (middle, many) if has_slopes(middle) else (few, middle)
    stages, constant = (sum(spent(algorithm.plan(m, problem))) for m in (few, many))
    assert stages == pytest.approx(constant, rel=1e-6 if squares else 2e-3)


def test_a_large_budget_goes_to_the_steps():
    problem = Problem(n=1_000_000, d=3, intercept=True)
    plan = ScaledDescent(squares=True).plan(4.0, problem)
    steps = [r for r in plan if r.times > 3]
    assert sum(spent(plan)) < 1.3 * sum(spent(steps))


@pytest.mark.parametrize(("targets", "sparsity"), [("real", None), ("binary", 4), ("binary", None)])
def test_labels_without_a_selection_look_at_features_apart(targets, sparsity):
    problem = Problem(n=1_000, d=20, intercept=True)
    plan = ScaledDescent(targets=targets, sparsity=sparsity).plan(300.0, problem)
    apart = targets == "binary" and sparsity is None
    assert plan[0].events[0].coordinates == 259 * (20 if apart else 1)


def test_sparsity_buys_a_selection_and_the_scales_of_what_it_found():
    problem = Problem(n=1_000, d=100, intercept=True)
    plan = ScaledDescent(sparsity=4).plan(200.0, problem)
    events = [e for r in plan for e in r.events]
    assert events[0].coordinates == 259, "one histogram for all features"
    (top,) = (e for e in events if e.law == "noisy_max")
    assert (top.picks, top.coordinates) == (4, 100)
    assert [e.coordinates for e in events if e.question == "histogram"][-1:] == [4 * 259]


@pytest.mark.parametrize("epsilon", [0.5, 1.0, math.inf])
@pytest.mark.parametrize("sizes", [1.0, np.array([1e-3, 1.0, 1e4])], ids=["equal", "wild"])
def test_least_squares_in_any_units(watched, epsilon, sizes):
    X, y, w = linear(sizes=sizes)
    found = watched.fit(
        ScaledDescent(), X, y, SquaredLoss(), intercept=True, epsilon=epsilon, delta=1e-6
    )
    assert np.abs((found[:3, 0] - w) * sizes).max() < 0.25
    assert abs(found[3, 0] - 2.0) < 0.3


def test_powers_of_two_are_the_same_fit(watched):
    X, y, _ = linear()
    sizes = np.array([2.0**-20, 1.0, 2.0**15])
    one = watched.fit(ScaledDescent(), X, y, SquaredLoss(), intercept=True, epsilon=math.inf)
    two = watched.fit(
        ScaledDescent(), X * sizes, 4 * y, SquaredLoss(), intercept=True, epsilon=math.inf
    )
    assert two[:3, 0] * sizes == pytest.approx(4 * one[:3, 0], rel=1e-6)
    assert two[3, 0] == pytest.approx(4 * one[3, 0], rel=1e-6)


def test_features_are_centred(watched):
    X, y, w = linear(shift=3.0)
    found = watched.fit(ScaledDescent(), X, y, SquaredLoss(), intercept=True)
    assert np.abs(found[:3, 0] - w).max() < 0.3
    assert abs(X.mean(axis=0) @ found[:3, 0] + found[3, 0] - y.mean()) < 0.5


def test_when_noise_wins_the_slopes_are_zero(watched):
    """T5 of PEERS 5e: never worse than twice the constant."""
    X, y, _ = linear(n=300)
    for seed in range(20):
        found = watched.fit(
            ScaledDescent(), X, y, SquaredLoss(), intercept=True, epsilon=0.05, seed=seed
        )
        risk = np.mean((X @ found[:3, 0] + found[3, 0] - y) ** 2)
        assert risk < 4 * np.var(y)


def released(X, y, loss=None, epsilon=1.0, algorithm=None, seed=0):
    curator = Curator(
        X, y, budget=Budget(epsilon, 1e-6), noise="simulated", random_state=seed, intercept=True
    )
    algorithm = algorithm or ScaledDescent()
    multiplier = calibrated(curator, lambda m: algorithm.plan(m, curator.problem))
    return algorithm.run(curator, loss or SquaredLoss(), Unconstrained(), multiplier)


def test_shrinking_says_so():
    X, y, _ = linear()
    assert released(X, y).notes == ()
    noise = np.random.default_rng(1).normal(size=len(y))
    for target, epsilon, note in (
        (noise, 0.1, "is not significant, so the slopes"),
        (np.full_like(y, 7.0), 1.0, "scale of the target was not found"),
        (y[:300], 0.05, "does not rise above the noise"),
    ):
        result = released(X[: len(target)], target, epsilon=epsilon)
        assert not result.w[:3].any()
        assert note in result.notes[0]
        assert len(result.notes) == 1 + result.notes[-1].startswith("A target far from zero")


@pytest.mark.parametrize(("size", "note"), [(1e30, "divide"), (1e-30, "multiply")])
def test_a_target_of_a_size_that_no_cell_tells_is_to_be_rescaled(size, note):
    X, y, _ = linear()
    notes = released(X, size * y).notes
    assert f"{note} a target of such a size by a public number" in notes[0]


def kinked(q):
    return QuantileLoss(quantile=q)


@pytest.mark.parametrize("loss", [AbsoluteLoss(), kinked(0.5), kinked(0.2), HuberLoss(threshold=1)])
def test_losses_with_kinks(loss):
    X, y, w = linear(n=50_000)
    found = released(X, y, loss).w[:, 0]
    assert np.abs(found[:3] - w).max() < 0.3
    if loss == kinked(0.2):
        assert np.mean(y < X @ found[:3] + found[3]) == pytest.approx(0.2, abs=0.05)


def test_at_a_kink_steps_shrink_until_the_fit_is_that_without_noise():
    """Steps of one length go to and fro for ever: 10 % worse on these counts."""
    rng = np.random.default_rng(1)
    X = rng.poisson(1.0, (8_000, 2)).astype(float)
    y = rng.poisson(X[:, 0] / 2).astype(float)
    fair = QuantileRegressor(quantile=0.5, alpha=0).fit(X, y).predict(X)
    ours = DPLADRegressor(epsilon=50, noise="simulated", random_state=0).fit(X, y).predict(X)
    assert np.mean(np.abs(y - ours)) < 1.02 * np.mean(np.abs(y - fair))


@pytest.mark.parametrize("rate", [-1.0, 2.0, 7.0])
def test_counts_with_an_exponential_link(rate):
    rng = np.random.default_rng(0)
    X, w = rng.normal(size=(20_000, 3)), np.array([0.5, -0.5, 0.2])
    y = rng.poisson(np.exp(X @ w + rate)).astype(float)
    counts = CountDescent(inner=ScaledDescent(targets="count"))
    found = released(X, y, PoissonLoss(), algorithm=counts).w[:, 0]
    assert np.abs(found[:3] - w).max() < 0.2
    assert abs(found[3] - rate) < 0.2


@pytest.mark.parametrize(
    "domain", [Unconstrained(), L1(alpha=0.01), L2(alpha=0.01), L2Ball(radius=1.0)]
)
def test_domains_hold_in_the_units_of_the_features(watched, domain):
    X, y, _ = linear()
    found = watched.fit(ScaledDescent(), X, y, SquaredLoss(), domain=domain, intercept=True)
    assert math.isfinite(domain.value(found[:3])), "outside of the set"
    if isinstance(domain, L2Ball):
        assert np.linalg.norm(found[:3]) > 0.5


@pytest.mark.parametrize("loss", [SquaredLoss(), HuberLoss(threshold=1.0)])
def test_sparse_records_are_scaled_and_not_centred(watched, loss):
    X, y, w = linear(d=2)
    X[np.abs(X) < 0.5] = 0.0
    y = X @ w + 2.0
    found = watched.fit(ScaledDescent(), sparse.csr_matrix(X), y, loss, intercept=True)
    assert np.abs(found[:2, 0] - w).max() < 0.3


def test_skewed_noise_moves_no_slope_and_the_intercept_is_a_mean():
    """In a tenth of the runs the comparison widens farther: slopes are off by .02 to .1 then."""
    rng = np.random.default_rng(0)
    X, w = rng.lognormal(0, 1.5, (100_000, 4)), np.array([1.0, -1.0, 0.5, 0.0])
    y = X @ w + rng.lognormal(0, 1.5, len(X))
    algorithm = ScaledDescent(squares=True)
    found = [released(X, y, algorithm=algorithm, seed=s).w[:, 0] for s in range(3)]
    assert np.median([np.linalg.norm(v[:4] - w) for v in found]) < 0.01
    assert found[1][4] == pytest.approx(np.exp(1.125), rel=0.1)


def test_correlated_features_are_told_apart():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(50_000, 1)) + 0.3 * rng.normal(size=(50_000, 3))
    w = np.array([1.0, -1.0, 0.5])
    found = released(X, X @ w + rng.normal(size=len(X))).w[:3, 0]
    assert np.abs(found - w).max() < 0.15


def test_residuals_that_depend_on_features_call_for_least_squares():
    """Most targets are zero: the robust fit says zero, the mean does not."""
    rng = np.random.default_rng(0)
    X = rng.uniform(0, 1, (50_000, 2))
    y = np.where(rng.uniform(size=len(X)) < 0.3 * X[:, 0], 10.0, 0.0)
    found = released(X, y, epsilon=2.0, algorithm=ScaledDescent(squares=True)).w[:, 0]
    assert found == pytest.approx([3.0, 0.0, 0.0], abs=0.5)


def test_a_feature_of_heavier_tails_than_the_target_is_fitted_where_its_squares_are():
    """Its slope in the bulk would lead far away where it is large: to 2.7 times the constant."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(20_000, 5))
    X[:, 0] = np.exp(2 * rng.normal(size=20_000))
    y = np.minimum(X[:, 0], 2.0) + X[:, 1] + rng.normal(size=20_000)
    model = DPLinearRegression(epsilon=1, noise="simulated", random_state=0).fit(X, y)
    assert np.mean((y - model.predict(X)) ** 2) < 0.9 * np.var(y)


def test_units_grow_with_the_reach_of_tails_that_are_heavier_than_usual():
    columns, ones = 5, np.ones(5)
    reach = np.array([1.0, 2.0, 12.0, 1.0, 2.0])  # the last one is the target's
    yes = ones > 0
    found = Summary(0 * ones, 3 * ones, 3 * reach, ones, -ones, ones, yes, yes, ones, ~yes)
    assert tail_adjusted(found).scales.tolist() == [3, 3, 3 * 4.0**2, 3, 3]
    heavy = replace(found, deviations=np.where(np.arange(columns) == 4, 36.0, found.deviations))
    assert tail_adjusted(heavy).scales.tolist() == found.scales.tolist()
    alike = replace(found, deviations=12 * found.scales)
    assert tail_adjusted(alike).scales.tolist() == found.scales.tolist()
    unknown = replace(found, scales=np.full(columns, BEYOND), deviations=np.full(columns, BEYOND))
    assert tail_adjusted(unknown).scales.tolist() == unknown.scales.tolist()


def test_one_noisy_cell_beside_a_tail_does_not_change_the_unit_of_a_feature():
    """A slope was missed by fifty times its error: .88 in place of 1."""
    rng = np.random.default_rng(0)
    X = rng.standard_t(3, (50_000, 3))
    y = X @ [1.0, 2.0, -1.0] + rng.normal(size=50_000)
    model = DPLinearRegression(epsilon=5, noise="simulated", random_state=0).fit(X, y)
    assert model.coef_ == pytest.approx([1.0, 2.0, -1.0], abs=0.02)


def test_hubers_threshold_is_that_of_scikit_learn_where_the_target_is_wider_than_residuals():
    rng = np.random.default_rng(4)
    X = rng.normal(size=(20_000, 3))
    y = X @ [3.0, -2.0, 1.0] + rng.lognormal(0, 1, 20_000)
    twin = HuberRegressor(alpha=0.0).fit(X, y)
    model = DPHuberRegressor(
        epsilon=2.0, delta=1e-6, alpha=0.0, noise="simulated", random_state=0
    ).fit(X, y)  # fmt: skip
    assert model.threshold_ == pytest.approx(1.35 * twin.scale_, rel=0.4)
    assert model.coef_ == pytest.approx(twin.coef_, abs=0.05)
    assert model.intercept_ == pytest.approx(twin.intercept_, abs=0.1)


def test_adult_incomes_are_fitted_as_by_least_squares():
    """Capital gains: few rows, long, and clipped by the robust fit, decide the slopes."""
    schema, table = adult_schema(), pq.read_table(ADULT).to_pandas()
    y = (table["income"] == ">50K").to_numpy(np.float64)
    X = table[[*schema["numeric"], *schema["categories"]]]
    options = {"noise": "simulated", "random_state": 0, "categories": schema["categories"]}
    model = DPLinearRegression(epsilon=2.0, delta=1e-6, **options).fit(X, y)
    best = LinearRegression().fit(pd.get_dummies(X), y).predict(pd.get_dummies(X))
    errors = [math.sqrt(np.mean((found - y) ** 2)) for found in (y.mean(), model.predict(X), best)]
    assert errors[0] - errors[1] > 0.75 * (errors[0] - errors[2])


@pytest.mark.parametrize("unit", [1e-9, 1.0, 1e9])
def test_moves_are_kept_as_far_as_noise_does_not_explain_them(unit):
    noise = unit**2 * np.ones(20)
    assert _shares(unit * np.full((20, 1), 3.0), noise) == pytest.approx(1 - 1 / 9)
    assert not _shares(unit * np.full((20, 1), 0.9), noise).any()
    noisier = noise * np.repeat([1, 9], 10)
    shares = _shares(unit * np.full((20, 1), 4.0), noisier)
    assert shares[10:] / (1 - shares[10:]) * 9 == pytest.approx(shares[:10] / (1 - shares[:10]))
    assert np.mean(16 * (1 - shares) / noisier * unit**2) == pytest.approx(1)
    assert np.all(_shares(unit * np.ones((20, 1)), 0 * noise) == 1)


@pytest.mark.parametrize(("domain", "apart"), [(Unconstrained(), True), (L1(alpha=0.01), False)])
def test_only_without_a_penalty_are_directions_shortened_apart(watched, domain, apart, monkeypatch):
    """Slopes of which a penalty keeps some at zero would not be at zero any more."""
    kept, slopes = [], Preconditioner.slopes

    def seen(self, coordinates, d):
        kept.append(coordinates)
        return slopes(self, coordinates, d)

    monkeypatch.setattr(Preconditioner, "slopes", seen)
    monkeypatch.setattr(averaged_descent, "_shares", lambda move, _: np.eye(1, len(move))[0])
    rng = np.random.default_rng(0)
    X = rng.normal(size=(5_000, 4))
    watched.fit(ScaledDescent(squares=True), X, X[:, 0] + rng.normal(size=5_000), SquaredLoss(),
                domain=domain, intercept=True)  # fmt: skip
    assert np.all(kept[-1][1:] == 0) == apart


def test_noise_of_a_wider_threshold_is_stated_as_far_as_its_move_is_kept(monkeypatch):
    rng, stated = np.random.default_rng(0), []
    X = rng.normal(size=(20_000, 4))
    y = X @ np.ones(4) + rng.standard_t(2, 20_000)
    for share in (0.0, 0.5, 1.0):
        monkeypatch.setattr(averaged_descent, "_shares", lambda _, v, s=share: np.full_like(v, s))
        model = DPLinearRegression(epsilon=2.0, delta=1e-6, noise="simulated", random_state=0)
        stated.append(model.fit(X, y).coef_noise_std_)
    assert np.all(stated[2] > 1.5 * stated[0])
    assert stated[1] == pytest.approx((stated[0] + stated[2]) / 2, rel=0.05)


def test_light_tails_lose_little_to_a_wider_threshold():
    """Slopes of length 2.2: .088. Noise of moves kept by chance made it .133.

    Were noise told by the curvature that is seen, it would be .103.
    """
    errors = []
    for seed in range(9):
        rng, w = np.random.default_rng(seed), np.resize([0.5, -0.5], 20)
        X = rng.normal(size=(10_000, 20))
        y = X @ w + rng.normal(size=10_000)
        model = DPLinearRegression(epsilon=1.0, delta=1e-6, noise="simulated", random_state=seed)
        errors.append(np.linalg.norm(model.fit(X, y).coef_ - w))
    assert math.sqrt(np.mean(np.square(errors))) < 0.095


def test_a_wider_threshold_keeps_what_noise_does_not_explain():
    """Counts, mostly zero: three narrower thresholds, one by one, lost two fifths of the slopes."""
    closed = []
    for seed in range(3):
        rng = np.random.default_rng(seed)
        X = rng.normal(size=(20_000, 1)) + 0.5 * rng.normal(size=(20_000, 10))
        y = rng.negative_binomial(0.3, 1 / (1 + 2 * np.exp(0.7 * (X[:, 0] - X[:, 1]))))
        model = DPLinearRegression(epsilon=2.0, delta=1e-6, noise="simulated", random_state=seed)
        found = model.fit(X, y).predict(X), LinearRegression().fit(X, y).predict(X)
        gains = [np.var(y) - np.mean((fit - y) ** 2) for fit in found]
        closed.append(gains[0] / gains[1])
    assert np.mean(closed) > 0.65


def test_noise_of_a_wider_threshold_walks_in_residuals(monkeypatch):
    """The scale of a target that is mostly zero says nothing of the others."""
    walks, made = [], Descent._phase

    def seen(self, *arguments, **named):
        phase = made(self, *arguments, **named)
        far = np.linalg.norm(averaged_descent._lasting(phase.momentum, phase.steps))
        walk = phase.length * phase.std * far * self._metric.spread
        walks.append(walk / self._most)
        return phase

    monkeypatch.setattr(Descent, "_phase", seen)
    rng = np.random.default_rng(0)
    X = rng.normal(size=(20_000, 50))
    y = np.where(rng.random(20_000) < 0.4, rng.lognormal(0.0, 2.5, 20_000), 0.0)
    DPLinearRegression(epsilon=3.0, delta=1e-6, noise="simulated", random_state=0).fit(X, y)
    assert walks[-1] > 2
    assert max(walks[:-1]) < 1 + 1e-9


def test_an_intercept_that_noise_hides_is_that_of_the_constant():
    """Steps of clipped residuals went to .3 of the mean: RMSE 2 % above that of a constant.

    Noise of the released mean is a quarter of it.
    """
    for seed in range(8):
        rng = np.random.default_rng(seed)
        X = rng.normal(size=(3_000, 8))
        some = rng.random(3_000) < 1 / (1 + np.exp(1.5 - 1.3 * X[:, 0]))
        y = np.where(some, np.maximum(0, 10 + 5 * X[:, 0]), 0)
        model = DPLinearRegression(epsilon=0.7, delta=1e-6, noise="simulated", random_state=seed)
        fit = model.fit(X, y).predict(X)
        assert np.mean(fit) > 0.55 * np.mean(y)
        assert np.mean((fit - y) ** 2) < 1.02 * np.var(y)


def test_selected_features_alone_are_used():
    rng = np.random.default_rng(0)
    X = rng.standard_t(3, (5_000, 60))
    y = X[:, 7] - X[:, 30] + rng.normal(size=len(X))
    found = released(X, y, epsilon=2.0, algorithm=ScaledDescent(squares=True, sparsity=2)).w[:60, 0]
    assert set(np.flatnonzero(np.abs(found) > 1e-100)) == {7, 30}
    assert found[[7, 30]] == pytest.approx([1.0, -1.0], abs=0.3)


def test_many_coordinates_have_no_metric():
    problem = Problem(n=1_000, d=600, intercept=True)
    assert "moments" not in [
        e.question for r in ScaledDescent().plan(9.0, problem) for e in r.events
    ]
    rng = np.random.default_rng(0)
    X = rng.normal(size=(2_000, 600))
    result = released(X, X[:, 0], epsilon=100.0)
    assert np.abs(result.w[1:600]).max() < result.w[0, 0]


def test_logistic_without_a_numeric_target(watched):
    X, y, w = linear()
    algorithm = ScaledDescent(targets="binary")
    found = watched.fit(algorithm, X, (y > 2).astype(float), LogisticLoss(), intercept=True)
    slopes = found[:3, 0]
    assert slopes @ w / np.linalg.norm(slopes) / np.linalg.norm(w) > 0.95


def of_labels(n=4_000, level=2.0):
    X, y, _ = linear(n=n)
    return X, (y > level).astype(float)


def test_rows_of_labels_are_shrunk_to_half_of_their_length(watched):
    """Typical rows of d features and an intercept have length sqrt(d + 1)."""
    X, y = of_labels()
    algorithm = ScaledDescent(targets="binary", steps=10)
    watched.fit(algorithm, X, y, LogisticLoss(), intercept=True, epsilon=0.2)
    events = [e for _, events in watched.charged for e in events if e.question == "gradient"]
    steepest = 1 / (1 + math.exp(-abs(math.log(1 / y.mean() - 1))))
    assert events[0].radius * events[0].unit * len(y) == pytest.approx(
        0.5 * math.sqrt(4) * steepest, rel=0.1
    )


@pytest.mark.parametrize(
    ("algorithm", "short"),
    [
        (ScaledDescent(squares=True), 1.0),
        (ScaledDescent(targets="binary"), 0.5),
        (ShortDescent(fine=ScaledDescent(targets="binary"), targets="binary"), 0.5),
    ],
)
def test_the_metric_knows_how_short_rows_are(watched, monkeypatch, algorithm, short):
    metrics, bought = [], Preconditioner.bought

    def seen(*args):
        metrics.append(bought(*args))
        return metrics[-1]

    monkeypatch.setattr(Preconditioner, "bought", seen)
    monkeypatch.setattr(ShortDescent, "_noisy", lambda *_: True)
    X, y = of_labels()
    loss = SquaredLoss() if algorithm.targets == "real" else LogisticLoss()
    watched.fit(algorithm, X, y, loss, intercept=True, epsilon=5.0)
    assert [metric.short for metric in metrics] == [short]


def metric(squares, std, active=None):
    active = np.ones(len(squares), dtype=np.bool_) if active is None else np.array(active)
    return Preconditioner._of(np.diag(np.asarray(squares, dtype=float)), std, active, 3.0)


def test_noise_walks_less_far_where_features_go_together():
    """As far as it does in directions as long as they are: here four short ones and a long one."""
    alike, apart_ = metric([1.0] * 5, 0.4), metric([4.6, 0.1, 0.1, 0.1, 0.1], 0.4)
    true = np.array([4.6, 0.1, 0.1, 0.1, 0.1])
    moved = np.sqrt(np.sum(true / apart_.values**2))
    assert apart_.spread == pytest.approx(moved, rel=0.1)
    assert apart_.spread < 0.8 * alike.spread
    assert alike.spread == pytest.approx(np.sqrt(np.sum(1 / alike.values**2)))
    assert metric([-1.0] * 5, 0.4).spread > alike.spread  # nothing was seen: all are taken for 1


def test_likely_curvatures_are_nearer_than_those_that_were_seen():
    """Twenty directions, half of them of no curvature, under noise of a spectral norm of 1."""
    rng, true = np.random.default_rng(0), np.repeat([0.0, 2.0], 10)
    std = 1 / np.sqrt(40)
    raw, cleaned = [], []
    for _ in range(50):
        noise = rng.normal(size=(20, 20)) * std / 2
        seen, vectors = np.linalg.eigh(np.diag(true) + noise + noise.T)
        there = np.einsum("jk,j,jk->k", vectors, true, vectors)
        raw.append(seen - there)
        cleaned.append(likely(seen, std) - there)
    assert np.std(cleaned) < 0.5 * np.std(raw)
    assert np.array_equal(likely(true, 0.0), true)


def test_steps_of_short_rows_do_not_follow_noise():
    """Ten directions alike: what noise shows of them differs two or three times as much."""
    noise = np.random.default_rng(0).normal(size=(10, 10)) * 0.05
    active = np.ones(10, dtype=np.bool_)
    short, whole = (
        Preconditioner._of(np.eye(10) + noise + noise.T, 0.1, active, 3.2, s) for s in (0.5, 1)
    )
    assert short.hidden == whole.hidden < 1
    assert np.ptp(short.values) < 0.5 * np.ptp(whole.values)


def test_a_start_stays_where_it_is_when_units_grow(watched):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(5_000, 3))
    X[:500, 0] *= 3.0
    w = np.array([[1.0], [-1.0], [0.5], [2.0]])
    found = watched.fit(
        ScaledDescent(steps=1), X, X @ w[:3, 0] + 2.0, SquaredLoss(), intercept=True, start=w,
        epsilon=math.inf,
    )  # fmt: skip
    assert found == pytest.approx(w, abs=0.02)


def test_noise_walks_as_far_as_it_takes_to_turn_a_frequent_label(watched, monkeypatch):
    most = []

    class Seen(Descent):
        def __init__(self, *args):
            most.append(args[-1])
            super().__init__(*args)

    monkeypatch.setattr("privtail.default.stages.Descent", Seen)
    algorithm = ScaledDescent(targets="binary", steps=2)
    for level in (2.0, 6.0):
        X, y = of_labels(level=level)
        watched.fit(algorithm, X, y, LogisticLoss(), intercept=True, epsilon=math.inf)
    assert most == [1.0, pytest.approx(math.log(1 / y.mean() - 1))]


def test_a_loss_without_a_margin_is_refused_before_anything_is_released(watched):
    X, y, _ = linear(n=100)
    loss = GeneralLoss(value=lambda w, x, t: 0.0, gradient=lambda w, x, t: 0 * w)
    object.__setattr__(loss, "outputs", 1)
    with pytest.raises(IncompatibleParts, match="ProximalGradient"):
        watched.fit(ScaledDescent(), X, y, loss)
    assert watched.noise == []


def test_one_step_is_enough_for_an_answer(watched):
    X, y, _ = linear(n=2_000)
    found = watched.fit(ScaledDescent(steps=1), X, y, SquaredLoss(), intercept=True)
    assert np.isfinite(found).all()


def test_a_start_is_used(watched):
    X, y, _ = linear(n=2_000)
    start = np.array([[0.0], [0.0], [0.0], [2.0]])
    one, other = (
        watched.fit(
            replace(ScaledDescent(), steps=2), X, y, SquaredLoss(), intercept=True, start=s,
            epsilon=math.inf,
        )
        for s in (start, start + 5.0)
    )  # fmt: skip
    assert not np.allclose(one, other)


def test_missing_rows_do_not_pull_the_intercept_of_least_squares():
    """Half are missing: a mean over all n rows went from the centre, 7.4, half of the way to it."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(100_000, 3))
    y = X @ [3.0, -3.0, 1.5] + rng.lognormal(2.0, 1.0, 100_000)
    X[rng.random(len(X)) < 0.5, 0] = np.nan
    found = [
        DPLinearRegression(epsilon=1.0, noise="simulated", random_state=seed).fit(X, y).intercept_
        for seed in range(5)
    ]
    assert np.abs(np.array(found) - math.exp(2.5)).max() < 0.6


@pytest.mark.parametrize("estimator", [DPLinearRegression, DPHuberRegressor])
@pytest.mark.parametrize("complete", [0.4, 0.1])
def test_the_few_rows_that_are_complete_are_fitted(estimator, complete):
    """Of half or more of n nothing shows; of those that count it does, and the statement says so.

    With a tenth no slope was found, and predictions were farther off than those of a constant.
    """
    rng = np.random.default_rng(0)
    X = rng.lognormal(size=(50_000, 5))
    y = X @ [1.0, -1.0, 0.5, 0.0, 0.0] + rng.normal(size=50_000)
    missing = np.where(rng.random(X.shape) > complete**0.2, np.nan, X)
    model = estimator(epsilon=1.0, delta=1e-6, noise="simulated", random_state=0).fit(missing, y)
    assert np.mean((model.predict(X) - y) ** 2) < 0.12 * np.var(y)
    assert any("the others hold a number" in note for note in model.privacy_.notes)


def test_a_heavy_tail_shows_where_rows_are_missing():
    """Half: the few large residuals were left out with the noise, and clipped at 11 of 90."""
    rng, n = np.random.default_rng(0), 100_000
    sizes = np.abs(rng.lognormal(2.0, 1.0, n // 2) - 9.0)
    counts = np.bincount(np.searchsorted(EDGES, sizes), minlength=len(EDGES) + 1)
    noisy = Histogram(counts + rng.normal(0, 50, len(counts)), CELLS, 50.0)
    assert EDGES[np.flatnonzero(noisy.above_noise(n))[-1]] > 60
    assert EDGES[np.flatnonzero(noisy.surest_run(n / 4))[-1]] < 20


def test_a_run_of_sizes_does_not_reach_over_many_cells_of_noise():
    """Of 300 histograms two showed residuals of 2^22 and more, where the largest is near 2^5."""
    rng, largest = np.random.default_rng(0), []
    for _ in range(300):
        cells = np.searchsorted(EDGES, rng.lognormal(0, 1, 1_000))
        counts = np.bincount(cells, minlength=len(EDGES) + 1) + rng.normal(0, 50, len(EDGES) + 1)
        seen = np.flatnonzero(Histogram(counts, CELLS, 50.0).above_noise(1_000))
        largest.extend(EDGES[seen[-1:]])
    assert len(largest) > 250
    assert max(largest) < 2**8


def test_missing_rows_do_not_pull_the_constant_that_slopes_are_compared_with():
    """It would be 9.8 of 12.2, and noise in slopes would be kept for the sake of the intercept."""
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(100_000, 3)), rng.lognormal(2.0, 1.0, 100_000)
    X[rng.random(len(X)) < 0.5, 0] = np.nan
    for seed in range(3):
        model = DPLinearRegression(epsilon=1.0, noise="simulated", random_state=seed).fit(X, y)
        assert not model.coef_.any()
        assert abs(model.intercept_ - math.exp(2.5)) < 1.0


def test_one_feature_that_does_not_show_does_not_hide_the_others():
    """Noise hides a feature or two of ten, of units from 1e-6 to 1e6, in most of these fits.

    Were its unit guessed too small, all rows would be as long as its values, and shrunk: then 11 of
    these 20 fits are the constant, whose error is 3.6.
    """
    errors = []
    for seed in range(20):
        rng = np.random.default_rng(seed)
        units = 10.0 ** rng.permutation(np.linspace(-6, 6, 10))
        X, Z = rng.normal(size=(2, 1_000, 10))
        w = np.array([1, -1, 0.5, -0.5, 0.25, -0.25, 1, -1, 2, -2])
        y = X @ w + rng.standard_t(3, 1_000)
        model = DPLinearRegression(epsilon=1.0, noise="simulated", random_state=seed)
        errors.append(np.std(model.fit(X * units, y).predict(Z * units) - Z @ w))
    assert np.sum(np.array(errors) < 3.2) >= 16
    assert np.median(errors) < 2.2


def test_amounts_that_are_rare_and_large_are_no_disaster():
    """Their zeros show and they do not: a unit of 1, found in noise, made 1 fit in 5 useless."""
    errors = []
    for seed in range(15):
        rng = np.random.default_rng(seed)
        G = rng.normal(size=(10_000, 5))
        A = np.where(rng.random((10_000, 20)) < 0.003, 1e6 * rng.lognormal(size=(10_000, 20)), 0.0)
        X, y = np.hstack([G, A]), G.sum(axis=1) + rng.normal(size=10_000)
        model = DPLinearRegression(epsilon=1.0, noise="simulated", random_state=seed)
        errors.append(np.std(model.fit(X[:5_000], y[:5_000]).predict(X[5_000:]) - y[5_000:]))
    assert max(errors) < 0.5 * math.sqrt(6)


def test_three_good_slopes_are_not_given_up_for_a_constant():
    """n epsilon is 500, half of the variance explained; 9 of 15 were, asked as of ten features."""
    given_up = 0
    for seed in range(15):
        rng = np.random.default_rng(seed)
        X = rng.normal(size=(1_000, 3))
        y = X @ [1.0, -1.0, 1.0] + math.sqrt(3) * rng.normal(size=1_000)
        model = DPLinearRegression(epsilon=0.5, noise="simulated", random_state=seed).fit(X, y)
        given_up += not model.coef_.any()
    assert given_up <= 5


def test_a_constant_of_a_target_whose_scale_was_not_found_is_where_the_steps_led():
    """Fifteen million spreads from zero: the bought mean is off by more than three in most fits."""
    off = []
    for seed in range(6):
        rng = np.random.default_rng(seed)
        X = rng.normal(size=(2_000, 20))
        y = X @ rng.normal(size=20) / np.sqrt(20) + rng.normal(size=2_000) + 1.5e7
        model = DPLinearRegression(
            epsilon=0.5, delta=1e-6, noise="simulated", random_state=seed
        ).fit(X, y)
        off.append(np.sqrt(np.mean((model.predict(X) - y) ** 2)) / y.std())
    assert np.median(off) < 3


@pytest.mark.parametrize("skipped", [0, 3])
@pytest.mark.parametrize(("shrinking", "momentum"), [(False, 0.5), (True, 0.0)])
def test_what_an_average_keeps_of_its_steps_is_that_of_the_steps_written_out(
    skipped, shrinking, momentum
):  # fmt: skip
    steps, rates = 9, np.array([0.0, 0.2, 1.0])
    mean = MallowsMean(1.0, 1.0)
    phase = averaged_descent._Phase(mean, steps, 0.3, 1.0, shrinking, skipped, momentum)
    lasting, left = averaged_descent._kept(rates, phase)

    def average(rate, start, moves):
        w = at = start
        path = []
        for move in moves:
            new = (1 - rate) * at + move
            at, w = new + momentum * (new - w), new
            path.append(w)
        return np.mean(path[skipped:])

    for rate, kept, noise in zip(rates, lasting, left, strict=True):
        assert kept == pytest.approx(average(rate, 1.0, np.zeros(steps)))
        each = [average(rate, 0.0, move) for move in np.diag(phase.lengths)]
        assert noise == pytest.approx(np.linalg.norm(each))
