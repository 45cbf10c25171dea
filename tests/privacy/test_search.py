"""The best of a secret number of trials: its price, its neighbours, and what stays secret."""

from __future__ import annotations

import math
import os
import pickle
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from dp_accounting import GaussianDpEvent, NeighboringRelation, dp_event, rdp
from scipy import sparse, stats
from sklearn.base import clone
from sklearn.utils.estimator_checks import estimator_checks_generator

from privtail import Ledger, PrivateSearchCV, cross_validate, open_table, progress
from privtail.calibration import calibrate
from privtail.domains import L2
from privtail.errors import (
    BudgetExceeded,
    DeltaWarning,
    InvalidInput,
    NotPlanned,
    NotReleased,
    UnsupportedAccounting,
)
from privtail.linear_model import (
    DPGeneralizedLinearEstimator,
    DPHuberRegressor,
    DPLinearRegression,
    DPLogisticRegression,
    DPPoissonRegressor,
    DPRidge,
)
from privtail.losses import AbsoluteLoss, CustomLoss, PoissonLoss
from privtail.robust_means import BoundedMean, ClampedMean
from privtail.statement import Statement, verify
from privtail.trusted.accountants import cost
from privtail.trusted.accounting.curves import GaussianDP
from privtail.trusted.allowance import Allowance
from privtail.trusted.budget import Budget
from privtail.trusted.curator import Curator
from privtail.trusted.events import Event, Round
from privtail.trusted.maps import MappedRows, PredictionRanges
from privtail.trusted.mechanisms.labels import StabilityHistogram
from privtail.trusted.mechanisms.noise import GaussianNoise
from privtail.trusted.mechanisms.samplers import ExactSampler
from privtail.trusted.mechanisms.simulated import SimulatedSampler
from privtail.trusted.problem import Problem
from privtail.trusted.records.persons import Persons
from privtail.trusted.sampling import DisjointParts, PoissonBatches
from privtail.trusted.search import BestTrial, Found, Score, TrialSearch, best_of
from tests.privacy.forks import outcome_of_child, unchecked

SIMULATED = {"noise": "simulated", "random_state": 0}


def price(multiplier: float, trials: int, near: Any = "replace_one") -> Any:
    event = BestTrial(multiplier=multiplier, trials=trials).event()
    return cost((Round(events=(event,)),), near)


# --- what it costs --------------------------------------------------------------------------------


def law(shift: float, trials: int, kind: str) -> tuple[np.ndarray, float]:
    """Density of the best of many N(shift, 1), for a geometric or a fixed number, on a grid."""
    y = np.linspace(-20, 20, 400_001)
    one = stats.norm.pdf(y - shift)
    if kind == "fixed":
        return one * trials * np.exp((trials - 1) * stats.norm.logcdf(y - shift)), y[1] - y[0]
    g = 1 / trials
    return one * g / (g + (1 - g) * stats.norm.sf(y - shift)) ** 2, y[1] - y[0]


def exact_delta(epsilon: float, mu: float, trials: int, kind: str = "geometric") -> float:
    """The hockey-stick divergence of trials that are one Gaussian each, in the worse direction."""
    (a, h), (b, _) = law(0.0, trials, kind), law(mu, trials, kind)
    gaps = (a - math.exp(epsilon) * b, b - math.exp(epsilon) * a)
    return max(float(np.maximum(gap, 0).sum() * h) for gap in gaps)


@pytest.mark.parametrize("trials", [1, 3, 10, 100])
@pytest.mark.parametrize("mu", [0.5, 1.0, 2.0])
def test_the_exact_law_costs_no_more(mu: float, trials: int) -> None:
    bill = price(1 / mu, trials)
    for delta in (1e-6, 1e-3, 0.05):
        epsilon = bill.epsilon(delta)
        assert exact_delta(epsilon, mu, trials) <= delta * (1 + 1e-6)
        assert epsilon >= GaussianDP(mu).epsilon(delta)


def test_one_trial_charged_and_a_number_that_is_no_secret_are_caught() -> None:
    charged_once = GaussianDP(1.0).epsilon(0.05)
    assert exact_delta(charged_once, 1.0, 10) > 0.15
    counted = price(1.0, 100).epsilon(0.05)
    assert exact_delta(counted, 1.0, 100, "fixed") > 0.2
    assert exact_delta(counted, 1.0, 100) < 1e-12


@pytest.mark.parametrize("rho", [1e-3, 0.02, 0.3])
@pytest.mark.parametrize("trials", [2, 10, 40])
def test_dp_accounting_agrees(rho: float, trials: int) -> None:
    orders = [1 + x / 50 for x in range(1, 500)] + list(range(11, 2_000, 3))
    theirs = rdp.RdpAccountant(orders, NeighboringRelation.ADD_OR_REMOVE_ONE)
    one = GaussianDpEvent(1 / math.sqrt(2 * rho))
    theirs.compose(dp_event.RepeatAndSelectDpEvent(one, trials, 1))
    ours = price(1 / math.sqrt(2 * rho), trials)
    assert ours.epsilon(1e-6) == pytest.approx(theirs.get_epsilon(1e-6), rel=2e-3)


def test_searches_compose_with_what_stands_beside_them() -> None:
    search = Round(events=(BestTrial(multiplier=5.0, trials=10).event(),))
    step = 2.0**30
    gaussian = Event(law="gaussian", scale=10 * step, radius=step, diameter=step, coordinates=3)
    labels = StabilityHistogram(20.0, 1e-8).event(Problem(n=1000, d=1).labels())
    alone = cost((search,), "replace_one").epsilon(1e-5)
    beside = cost((Round(events=(gaussian,)), search), "replace_one").epsilon(1e-5)
    twice = cost((search, search), "replace_one").epsilon(1e-5)
    all_three = cost((Round(events=(gaussian, labels)), search), "replace_one")
    assert alone < beside < all_three.epsilon(1e-5) < twice < 2 * alone
    assert all_three.epsilon(1e-9) == math.inf
    assert all_three.mu is all_three.rho is None
    parts = Round(sampling=DisjointParts(4), events=search.events, times=4)
    assert cost((parts,), "zero_out").epsilon(1e-5) == alone
    sampled = Round(sampling=PoissonBatches(0.1), events=search.events)
    for plan in ((sampled,), (search, Round(sampling=PoissonBatches(0.1), events=(gaussian,)))):
        with pytest.raises(UnsupportedAccounting, match="search"):
            cost(plan, "replace_one")
    with pytest.raises(UnsupportedAccounting, match="search"):
        calibrate(
            lambda m: (Round(events=(BestTrial(multiplier=m, trials=3).event(),)),), Budget(1.0)
        )


def test_the_statement_recomputes_and_refuses_edits() -> None:
    event = BestTrial(multiplier=12.0, trials=10).event()
    plan = (Round(events=(event,)),)
    spent = cost(plan, "replace_one").epsilon(1e-6)
    written = Statement(epsilon=spent, delta=1e-6, n=100, plan=plan).to_json()
    assert verify(written)
    assert Statement.from_json(written).plan == plan
    assert "best trial of 10 on average" in Statement.from_json(written).to_text()
    for name, value in (("trials", 100), ("scale", 6.0)):
        edited = Statement(epsilon=spent, delta=1e-6, n=100, plan=plan).to_json()
        edited["plan"][0]["events"][0][name] = value
        assert not verify(edited)
    for name, value in (("trials", 0), ("trials", 2.5), ("law", "gaussian")):
        edited["plan"][0]["events"][0] = {**written["plan"][0]["events"][0], name: value}
        try:
            assert not verify(edited)
        except InvalidInput:
            continue


def test_an_allowance_pays_once_for_what_it_may() -> None:
    def ask(allowance: Allowance, **changes: Any) -> None:
        allowance.reserve(
            **{
                "label": "a fit", "epsilon": 1.0, "delta": 1e-6, "neighbours": "replace_one",
                "plan": [], "rho": 0.1, **changes,
            }
        )  # fmt: skip

    dear = [
        {"rho": 0.1001}, {"rho": None}, {"rho": math.nan}, {"neighbours": "zero_out"},
        {"unit": "person"}, {"plan": [{"events": [{"delta": 1e-9}]}]},
    ]  # fmt: skip
    for changes in dear:
        allowance = Allowance(0.1, "replace_one", payer=os.getpid())
        with pytest.raises(BudgetExceeded):
            ask(allowance, **changes)
        assert not allowance.spent
    ask(allowance)
    assert allowance.spent
    with pytest.raises(BudgetExceeded):
        ask(allowance)


class Careless(DPRidge):
    """An estimator whose fits draw simulated noise, whatever it was told."""

    def fit(self, *rows: Any, **options: Any) -> Any:
        self.set_params(**SIMULATED)
        return super().fit(*rows, **options)


def test_what_promises_exact_noise_admits_no_other() -> None:
    """The statement said exact noise, and the noise of the fits was seeded."""
    X = np.random.default_rng(0).normal(size=(400, 2))
    with pytest.raises(NotPlanned, match="exact noise"):
        PrivateSearchCV(Careless(), {"alpha": [1.0]}, trials=1).fit(X, X[:, 0])
    with pytest.raises(NotPlanned, match="exact noise"):
        cross_validate(Careless(), X, X[:, 0], epsilon=1.0, cv=2)
    PrivateSearchCV(Careless(), {"alpha": [1.0]}, trials=1, **SIMULATED).fit(X, X[:, 0])


# --- the core -------------------------------------------------------------------------------------

ENDLESS = PredictionRanges.of([[-math.inf, math.inf]], [-math.inf, math.inf])


def searched(
    y: np.ndarray,
    seed: int,
    *,
    multiplier: float = 1.0,
    trials: int = 10,
    fit: Any = None,
    score: Any = None,
) -> Any:
    """One search on (n, 1) records of zeros and targets y, with candidates 0 and 1 as models."""

    def constant(which: int, part: Any, allowance: Allowance, seed: int) -> tuple[int, Any, Any]:
        allowance.reserve(
            label="", epsilon=0.0, delta=0.0, neighbours="replace_one", plan=[], rho=0.0
        )
        return which, np.array([[0.0], [float(which)]]), ENDLESS

    mechanism = BestTrial(multiplier=multiplier, trials=trials)
    X = np.zeros((len(y), 1))
    budget = Budget(1e6 if multiplier else math.inf, 1e-3)
    curator = Curator(X, y, budget=budget, noise="simulated", random_state=seed)
    search = TrialSearch(curator, X, y, len(y) // 2, noise="simulated")
    curator.open((Round(events=(mechanism.event(),)),))
    return search.run(mechanism, 2, fit or constant, score or Score(AbsoluteLoss(), 4.0))


HOSTILE = [1e308, -1e308, math.nan, math.inf, -math.inf, 5e-324, -0.0, 0.0, 1.0]


@pytest.mark.parametrize("value", HOSTILE)
def test_a_hostile_record_moves_a_score_by_no_more_than_its_share(value: float) -> None:
    """Without noise the mean loss of 4 held-out records, clamped to [0, 4], moves by at most 1."""
    for n in (2, 8):
        found = []
        for last in (0.0, value):
            y = np.zeros(n)
            y[:] = 0.0
            y[-1] = last
            found.append(searched(y, seed=1, multiplier=0.0, trials=1).loss)
        assert abs(found[1] - found[0]) <= 4.0 / (n // 2)
        assert 0 <= min(found) <= max(found) <= 4.0


def test_a_hostile_count_moves_a_score_by_what_both_sides_of_its_clamp_allow() -> None:
    """Twice what is billed for a loss that is not negative; so much is reached."""
    score = Score(PoissonLoss(), 4.0, np.array([[0.0], [-2.0]]))
    moved = []
    for seed in range(6):
        losses = []
        for value in (*HOSTILE, 100.0, -7.0):
            y = np.zeros(6)
            y[-1] = value
            found = searched(y, seed, multiplier=0.0, trials=1, score=score)
            losses.append(found.loss)
            assert -4.0 <= found.loss <= 4.0
        moved.append(max(losses) - min(losses))
    assert max(moved) <= 2 * 4.0 / 3
    assert max(moved) > 4.0 / 3
    mechanism, curator = (
        BestTrial(multiplier=5.0, trials=3),
        Curator(np.zeros((6, 1)), np.zeros(6), budget=Budget(1.0, 1e-3)),
    )
    search = TrialSearch(curator, np.zeros((6, 1)), np.zeros(6), 3, noise="exact")
    assert search.noise(mechanism, score) == pytest.approx(5.0 * 2 * 4.0 / 3)


def test_better_candidates_win_and_the_noise_is_as_stated() -> None:
    y = np.ones(200)
    mechanism = BestTrial(multiplier=5.0, trials=20)
    wins = [searched(y, seed, multiplier=5.0, trials=20).candidate for seed in range(60)]
    assert np.mean(wins) > 0.8
    curator = Curator(np.zeros((200, 1)), y, budget=Budget(1.0, 1e-3))
    search = TrialSearch(curator, np.zeros((200, 1)), y, 100, noise="exact")
    assert search.noise(mechanism, Score(AbsoluteLoss(), 4.0)) == pytest.approx(5.0 * 4.0 / 100)
    assert search.problem.n == search.problem.expected == 100
    losses = [searched(np.zeros(200), seed, multiplier=5.0, trials=1).loss for seed in range(400)]
    assert np.std(losses) == pytest.approx(math.hypot(0.2, 0.5), rel=0.1)


def test_the_number_of_trials_is_geometric() -> None:
    """Chance of a false alarm 1e-6: a chi-squared test of 2,000 counts, mean 4."""
    counts = []
    for seed in range(2_000):
        called: list[int] = []
        outcome = Found(0, None, 0.0)
        best_of(lambda: called.append(1) or outcome, 4, SimulatedSampler(seed))  # noqa: B023
        counts.append(len(called))
    expected = stats.geom(0.25).pmf(np.arange(1, 12)) * len(counts)
    seen = np.array([np.sum(np.array(counts) == k) for k in range(1, 12)])
    assert stats.chi2(11).sf(np.sum((seen - expected) ** 2 / expected)) > 1e-6
    exact = [ExactSampler().below(4) for _ in range(4_000)]
    assert stats.chisquare(np.bincount(exact, minlength=4)).pvalue > 1e-6
    wrong = stats.geom(0.4).pmf(np.arange(1, 12)) * len(counts)
    assert stats.chi2(11).sf(np.sum((seen - wrong) ** 2 / wrong)) < 1e-6


def test_a_fit_that_pays_nothing_or_too_much_is_refused() -> None:
    def free(which: int, part: Any, allowance: Allowance, seed: int) -> tuple[int, Any, Any]:
        return which, np.zeros((2, 1)), ENDLESS

    def dear(which: int, part: Any, allowance: Any, seed: int) -> tuple[int, Any, Any]:
        model = DPLinearRegression(epsilon=50.0, ledger=allowance).fit(part.X, part.y)
        return which, np.zeros((2, 1)) + model.intercept_, ENDLESS

    with pytest.raises(Exception, match="spent nothing"):
        searched(np.zeros(50), 0, fit=free)
    with pytest.raises(BudgetExceeded, match="trial of this search"):
        searched(np.zeros(50), 0, fit=dear)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
@pytest.mark.parametrize("checked", [True, False])
@pytest.mark.parametrize("before", [True, False])
def test_a_child_finds_nothing_that_its_parent_has_paid_for(
    before: bool, checked: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A fit that forked before its charge, or after it, found two outcomes for one charge."""
    if not checked:
        unchecked(monkeypatch)

    def run(fork: Callable[[], None]) -> None:
        def forking(which: int, part: Any, allowance: Allowance, seed: int) -> Any:
            if before:
                fork()
            allowance.reserve(
                label="", epsilon=0.0, delta=0.0, neighbours="replace_one", plan=[], rho=0.0
            )
            fork()
            return which, np.zeros((2, 1)), ENDLESS

        searched(np.zeros(50), 0, fit=forking)

    assert outcome_of_child(run) == checked


def test_parts_are_disjoint_and_public() -> None:
    parts = []
    for y in (np.arange(10.0), np.arange(10.0) * 1e300):
        X = y[:, None]
        curator = Curator(X, y, budget=Budget(1.0, 1e-3), random_state=3)
        search = TrialSearch(curator, X, y, 4, noise="exact")
        train, held = search._part(search._first), search._part(search._last)
        assert len(train.y) == 6
        assert len(held.y) == 4
        assert sorted([*train.y, *held.y]) == list(y)
        assert list(train.X[:, 0]) == list(train.y)
        parts.append(np.searchsorted(y, held.y))
    assert list(parts[0]) == list(parts[1])
    with pytest.raises(InvalidInput, match="held out"):
        TrialSearch(curator, X, y, 10)


def test_a_model_that_is_no_number_loses() -> None:
    def broken(which: int, part: Any, allowance: Allowance, seed: int) -> tuple[int, Any, Any]:
        allowance.reserve(
            label="", epsilon=0.0, delta=0.0, neighbours="replace_one", plan=[], rho=0.0
        )
        return which, np.array([[0.0], [math.nan]]), ENDLESS

    assert searched(np.ones(20), 0, multiplier=0.0, trials=1, fit=broken).loss == 4.0


# --- what is scored is what the model predicts ----------------------------------------------------

NARROW = PredictionRanges.of([[-3.0, 2.0]], [-4.0, 5.0])
WIDEST = [1e308, -1e308, math.nan, math.inf, -math.inf, 5e-324, -2.5, 0.7, 1.9]


def scored(X: Any, y: np.ndarray, score: Any = None, ranges: Any = NARROW) -> float:
    """The mean score of the margin 2 x + .5 on all records, without noise."""
    score = score or Score(AbsoluteLoss(), 4.0)
    curator = Curator(X, y, intercept=True, budget=Budget(math.inf, 1e-3), random_state=0)
    none = GaussianNoise(0.0)
    curator.open((Round(events=(none.event(score.answer(curator.problem)),)),))
    return score.release(curator.everyone(), np.array([[2.0], [0.5]]), ranges, none)


def clipped_losses(X: np.ndarray, y: np.ndarray) -> np.ndarray:
    """`scored`, record by record."""
    margins = np.clip(2.0 * np.clip(X[:, 0], -3.0, 2.0) + 0.5, -4.0, 5.0)
    return np.where(np.isfinite(X[:, 0]), np.minimum(np.abs(margins - y), 4.0), 0.0)


@pytest.mark.parametrize("container", [np.asarray, sparse.csr_matrix])
def test_features_and_margins_are_clipped_as_predictions_are(container: Any) -> None:
    rng = np.random.default_rng(0)
    X, y = 4 * rng.standard_t(2, (60, 1)), rng.normal(size=60)
    X[rng.random(60) < 0.3] = 0.0
    expected = clipped_losses(X, y).mean()
    assert scored(container(X), y) == pytest.approx(expected, abs=1e-6)
    assert abs(scored(container(X), y, ranges=ENDLESS) - expected) > 0.05
    score = Score(PoissonLoss(), 4.0, np.array([[0.0], [1.0]]))
    counts = rng.poisson(3.0, 60).astype(float)
    margins = np.clip(2.0 * np.clip(X[:, 0], -3.0, 2.0) + 0.5, -4.0, 5.0)
    losses = np.exp(margins) - counts * margins - (math.e - counts)
    mean = np.clip(losses, -4.0, 4.0).mean()
    assert scored(container(X), counts, score) == pytest.approx(mean, abs=1e-6)


def changes_by_one_record() -> float:
    """By how much the sum of four scores moves when the last record becomes a hostile one."""
    sums = []
    for value in WIDEST:
        for target in (0.0, *WIDEST):
            X, y = np.array([[0.3], [-2.0], [1.5], [value]]), np.array([0.0, -1.5, 2.5, target])
            sums.append(4 * scored(X, y))
    return max(sums) - min(sums)


def test_a_hostile_record_moves_a_clipped_score_by_no_more_than_its_share() -> None:
    assert 3.9 < changes_by_one_record() <= 4.0 + 1e-9


def test_ranges_that_follow_the_records_are_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    """Twin: a range is half of what the records of the block show."""

    def clipped(rows: MappedRows, ranges: np.ndarray) -> MappedRows:
        z = rows.transformed()
        end = np.abs(z[np.isfinite(z)]).max() / 2
        return MappedRows.as_they_are(np.where(np.isfinite(z), np.clip(z, -end, end), z))

    monkeypatch.setattr(MappedRows, "clipped", clipped)
    assert changes_by_one_record() > 4.1


@pytest.mark.parametrize(
    ("features", "margins"),
    [([[1.0, 0.0]], [0.0, 1.0]), ([[0.0, 1.0]], [1.0, 0.0]), ([[0.0, 1.0]], [math.nan, 1.0]),
     ([0.0, 1.0], [0.0, 1.0]), ([[0.0, 1.0, 2.0]], [0.0, 1.0])],
)  # fmt: skip
def test_ranges_that_are_none_are_refused(features: Any, margins: Any) -> None:
    with pytest.raises(InvalidInput, match="low and a high end"):
        PredictionRanges.of(features, margins)


# --- persons with several rows --------------------------------------------------------------------

COUNTED = 2
WHOSE = np.array([3, 3, 3, 3, 5, 5, 7, 8, 9, 9, 9, 1], dtype=object)


def of_persons(
    y: np.ndarray, groups: np.ndarray, seed: int, near: Any = "replace_one", fit: Any = None
) -> tuple[TrialSearch, Any]:
    """One trial without noise: the mean of y in the training part, the loss of 0 in the other."""
    budget, X = Budget(math.inf, 1e-3, near), y[:, None].copy()

    def mean(which: int, part: Any, allowance: Allowance, chance: int) -> tuple[Any, Any, Any]:
        own = Curator(
            part.X, budget=budget, ledger=allowance, random_state=chance, groups=part.groups,
            max_rows=COUNTED,
        )  # fmt: skip
        own.open((Round(events=(GaussianNoise(0.0).event(own.problem.means(RANGE)),)),))
        mean = own.everyone().means(RANGE).release(GaussianNoise(0.0))[0]
        return mean, np.zeros((2, 1)), ENDLESS

    curator = Curator(X, y, budget=budget, random_state=seed, groups=groups, max_rows=COUNTED)
    search = TrialSearch(curator, X, y, len(y) // 3, noise="exact")
    mechanism = BestTrial(multiplier=0.0, trials=1, rows=COUNTED)
    curator.open((Round(events=(mechanism.event(),)),))
    return search, search.run(mechanism, 1, fit or mean, Score(AbsoluteLoss(), 4.0))


RANGE = ClampedMean(4.0)


def torn(y: np.ndarray, groups: np.ndarray, seed: int, value: float) -> set[str]:
    """Which releases move when person 3 brings other rows, checked against what is billed."""
    other = np.where(groups == 3, value, y)
    ids = np.where(groups == 3, 4, groups)
    (search, one), (_, two) = of_persons(y, groups, seed), of_persons(other, ids, seed)
    problem = search.problem
    assert abs(one.model - two.model) <= problem.means(RANGE).diameter.linf * (
        problem.means(RANGE).unit
    )
    assert abs(one.loss - two.loss) <= COUNTED * 4.0 / (len(y) // 3)
    return {name for name in ("model", "loss") if getattr(one, name) != getattr(two, name)}


@pytest.mark.parametrize("value", HOSTILE)
def test_all_rows_of_a_person_are_in_one_part(value: float) -> None:
    found = [torn(np.full(12, 2.0), WHOSE, seed, value) for seed in range(12)]
    assert max(map(len, found)) == 1
    assert {"model"} in found
    assert {"loss"} in found


def test_persons_dealt_row_by_row_are_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    seats = Persons.seats

    def by_rows(self: Persons, priority: Any, max_rows: int) -> Any:
        positions, _ = seats(self, priority, max_rows)
        return positions, positions

    monkeypatch.setattr(Persons, "seats", by_rows)
    found = [torn(np.full(12, 2.0), WHOSE, seed, 4.0) for seed in range(12)]
    assert {"model", "loss"} in found


def test_who_is_there_moves_nobody_else() -> None:
    """Under zero-out neither parts, sizes nor noise tell that a person is absent."""
    y, gone = np.arange(12.0), WHOSE.copy()
    gone[WHOSE == 3] = None
    for seed in range(12):
        with_her, without = (of_persons(y, ids, seed, "zero_out")[0] for ids in (WHOSE, gone))
        assert with_her.problem == without.problem
        assert with_her.problem.n == 8
        assert with_her.problem.most == 12
        mechanism, one = BestTrial(multiplier=3.0, trials=5), Score(AbsoluteLoss(), 1.0)
        assert with_her.noise(mechanism, one) == without.noise(mechanism, one)
        assert with_her.noise(mechanism, one) >= COUNTED * 3.0 / 4
        places = []
        for part in ("_training", "_held_out"):
            full, rest = (getattr(s, part).groups for s in (with_her, without))
            assert [p for p in full.positions if WHOSE[p] != 3] == list(rest.positions)
            assert (full.n, full.rows) == (rest.n, rest.rows)
            places += list(full.positions)
        counted = {i: sum(WHOSE[p] == i for p in places) for i in set(WHOSE)}
        assert counted == {i: min(COUNTED, sum(i == WHOSE)) for i in counted}


def test_grids_have_room_for_a_part_that_holds_everybody() -> None:
    part, whole = Problem(n=10, d=1, most=2**40), Problem(n=2**40, d=1)
    assert part.bits == whole.bits < Problem(n=10, d=1).bits
    answer = part.scores(1, BoundedMean(1.0))
    assert answer.magnitude == whole.scores(1, BoundedMean(1.0)).magnitude
    assert answer.unit == pytest.approx(2.0**-part.bits / 10)
    assert Problem(n=10, d=1).most == 10


def test_a_trial_holds_the_persons_that_were_dealt_to_it_and_no_others() -> None:
    y = np.ones(12)
    wrong: list[tuple[dict[str, Any], type[Exception]]] = [
        ({"groups": WHOSE, "max_rows": COUNTED}, NotPlanned),
        ({}, NotPlanned),
        ({"max_rows": 1}, InvalidInput),
        ({"X": y[:5, None]}, InvalidInput),
    ]
    for changes, error in wrong:

        def fit(which: int, part: Any, allowance: Allowance, chance: int) -> tuple[Any, Any, Any]:
            options = {"groups": part.groups, "max_rows": COUNTED, "X": part.X}
            options = {**options, **changes} if changes else {"X": part.X}  # noqa: B023
            Curator(**options, budget=Budget(math.inf, 1e-3), ledger=allowance)
            raise AssertionError

        with pytest.raises(error):
            of_persons(y, WHOSE, 0, fit=fit)
    search, _ = of_persons(y, WHOSE, 0)
    assert "positions" not in repr(search._training)
    with pytest.raises(NotReleased):
        pickle.dumps(search._training)


# --- the estimator --------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def line() -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    X = rng.standard_t(3, (2_000, 4))
    return X, X @ [1.0, 2.0, 3.0, 4.0] + rng.standard_t(3, 2_000)


GRID = {"alpha": [1.0, 1e3, 1e7]}


def test_it_chooses_and_charges_once(line: Any) -> None:
    X, y = line
    ledger = Ledger(epsilon=2.0, delta=1e-5)
    search = PrivateSearchCV(
        DPRidge(), GRID, trials=5, epsilon=1.5, ledger=ledger, random_state=0
    ).fit(X, y)
    assert [(e.label, e.epsilon) for e in ledger.entries()] == [
        ("PrivateSearchCV", search.privacy_.spent)
    ]
    assert 1.45 < search.privacy_.spent <= 1.5
    assert verify(search.privacy_.to_json())
    assert search.predict(X) == pytest.approx(search.best_estimator_.predict(X))
    assert search.best_estimator_.privacy_ == search.privacy_
    assert search.best_estimator_.ledger is None
    assert 0.4 < search.trial_epsilon_ < 1.0
    assert search.score_noise_std_ > 0
    with pytest.raises(BudgetExceeded):
        PrivateSearchCV(DPRidge(), GRID, ledger=ledger).fit(X, y)
    chosen = PrivateSearchCV(DPRidge(), GRID, epsilon=5.0, trials=8, **SIMULATED).fit(X, y)
    assert chosen.best_params_["alpha"] < 1e7
    assert chosen.score(X, y) > 0.6


def test_a_search_scores_what_its_model_predicts() -> None:
    """Counts of features with heavy tails: .45 better than a constant; .3 without their range."""
    rng = np.random.default_rng(0)
    x = rng.standard_t(1.5, 20_000)
    y = rng.poisson(np.exp(np.minimum(x, 1.0))).astype(float)
    search = PrivateSearchCV(
        DPPoissonRegressor(), {"alpha": [0.0]}, trials=1, epsilon=20.0, **SIMULATED
    ).fit(x[:, None], y)
    assert search.best_score_ == pytest.approx(0.45, abs=0.03)


def test_labels_and_containers(line: Any) -> None:
    X, y = line
    frame = pd.DataFrame(X, columns=list("abcd"))
    X, y, frame = X[:200], y[:200], frame[:200]
    for labels, classes in ((y > 0, [False, True]), (np.digitize(y, [-3, 3]), [0, 1, 2])):
        grid = {"C": [1e-7, 1.0], "fit_intercept": [True, False]}
        model = DPLogisticRegression(classes=classes)
        search = PrivateSearchCV(model, grid, trials=1, **SIMULATED)
        others = (pl.DataFrame(frame), pa.table(frame), dict(frame)) if len(classes) == 2 else ()
        for records in (X, frame, *others):
            search.fit(records, labels)
            assert list(search.classes_) == classes
            assert search.predict_proba(records).shape == (len(y), len(classes))
            assert 0 < search.best_score_ < 1.1
        assert search.score(frame, labels) > 0.3
        assert list(search.feature_names_in_) == list("abcd")
        assert (
            PrivateSearchCV(search.estimator, grid, **SIMULATED)
            .fit(sparse.csr_matrix(X), list(labels))
            .n_features_in_
            == 4
        )
    categories = {"e": ["x", "y"]}
    frame["e"] = np.where(X[:, 0] > 0, "x", "y")
    model = DPRidge(categories=categories)
    search = PrivateSearchCV(model, GRID, trials=1, **SIMULATED).fit(frame, y)
    assert search.best_estimator_.coef_.shape == (6,)


@pytest.mark.usefixtures("simulated_is_booked")
def test_nothing_tells_how_many_trials_there_were(line: Any, capfd: Any) -> None:
    """Whatever the number, the same warnings, progress, output, attributes and ledger entries."""
    X, y = line
    X, y = X[:400], y[:400]
    seen = []
    for seed in range(4):
        heard: list[tuple[int, int]] = []
        ledger = Ledger(epsilon=2.0, delta=0.1)
        search = PrivateSearchCV(
            DPRidge(verbose=1), GRID, trials=5, delta=0.05, ledger=ledger, noise="simulated",
            random_state=seed,
        )  # fmt: skip
        with (
            warnings.catch_warnings(record=True) as warned,
            progress.watching(
                lambda *told: heard.append(told[:2])  # noqa: B023
            ),
        ):
            warnings.simplefilter("always")
            search.fit(X, y)
        warned = [w for w in warned if issubclass(w.category, DeltaWarning)]
        names = sorted(set(vars(search)) | set(vars(search.best_estimator_)))
        seen.append((len(warned), heard, names, capfd.readouterr(), len(ledger.entries())))
        assert search.best_estimator_.random_state == seed
    assert all(one == seen[0] for one in seen)
    assert seen[0][0] == 1
    assert seen[0][1] == [(1, 5), (2, 5), (3, 5), (4, 5), (5, 5)]


def test_without_privacy_it_still_searches(line: Any) -> None:
    X, y = line
    search = PrivateSearchCV(DPRidge(), GRID, epsilon=math.inf, trials=10, **SIMULATED).fit(X, y)
    assert search.best_params_["alpha"] < 1e7
    assert not search.privacy_.private


def test_what_cannot_be_searched_is_refused_for_free(line: Any) -> None:
    from sklearn.linear_model import Ridge

    X, y = line
    ledger = Ledger(epsilon=1.0, delta=1e-5)
    odd: list[tuple[Any, Any, dict[str, Any], type[Exception], str]] = [
        (Ridge(), GRID, {}, InvalidInput, "privtail.linear_model"),
        (DPRidge(), {"epsilon": [1.0, 9.0]}, {}, InvalidInput, "epsilon is not searched"),
        (DPRidge(), {"alpah": [1.0]}, {}, InvalidInput, "There are: algorithm, alpha, fit_inter"),
        (DPRidge(), {"algorithm__steps": [1]}, {}, InvalidInput, "no parameter of DPRidge"),
        (DPRidge(), {"alpha": [-1.0]}, {}, InvalidInput, "alpha"),
        (DPHuberRegressor(), {"threshold": [1.0, -1.0]}, {}, InvalidInput, "threshold"),
        (DPRidge(), {"fit_intercept": [True, "no"]}, {}, InvalidInput, "True or False"),
        (
            DPHuberRegressor(heteroscedastic=True),
            {"alpha": [0.0, 1.0]},
            {},
            InvalidInput,
            "Leave heteroscedastic out",
        ),
        (DPRidge(), {}, {}, InvalidInput, "param_grid"),
        (DPRidge(), iter([GRID]), {}, InvalidInput, "read once alone"),
        (DPLogisticRegression(classes=2), {"C": [1.0]}, {}, InvalidInput, "list of labels, got 2"),
        (DPRidge(), GRID, {"trials": 0}, InvalidInput, "trials"),
        (DPRidge(), GRID, {"held_out": 1.0}, InvalidInput, "held_out"),
        (DPRidge(), GRID, {"delta": 0.0}, UnsupportedAccounting, "search"),
        (DPRidge(), GRID, {"epsilon": 0.2, "delta": 0.1}, InvalidInput, "delta=0.1 is too large"),
        (DPRidge(algorithm="clipped-spgd"), GRID, {}, UnsupportedAccounting, "full batches"),
        (
            DPGeneralizedLinearEstimator(loss="sigmoid"),
            {"domain": [None]},
            {},
            InvalidInput,
            "DPLogisticRegression",
        ),
        (DPLogisticRegression(), {"C": [1.0]}, {}, InvalidInput, "declare"),
        (
            DPGeneralizedLinearEstimator(),
            {"loss": ["squared", "poisson"]},
            {},
            InvalidInput,
            "Search them apart",
        ),
    ]
    for model, grid, options, kind, match in odd:
        with pytest.raises(kind, match=match):
            PrivateSearchCV(model, grid, **{"ledger": ledger, **options}).fit(X, y)
    search = PrivateSearchCV(DPRidge(), GRID, ledger=ledger)
    with pytest.raises(InvalidInput, match="y is None"):
        search.fit(X)
    with pytest.raises(InvalidInput, match="sample_weight"):
        search.fit(X, y, sample_weight=y)
    with pytest.raises(InvalidInput, match="groups needs max_rows"):
        search.fit(X, y, groups=np.arange(len(y)))
    for groups in (None, np.arange(len(y))):  # else persons seem to be protected, and are not
        with pytest.raises(InvalidInput, match=r"PrivateSearchCV\(..., max_rows=3\)"):
            PrivateSearchCV(DPRidge(max_rows=3), GRID, ledger=ledger).fit(X, y, groups=groups)
    with pytest.raises(InvalidInput, match="n_samples = 1"):
        search.fit(X[:1], y[:1])
    trimmed = PrivateSearchCV(DPRidge(algorithm="trimmed-descent"), GRID, ledger=ledger, max_rows=2)
    with pytest.raises(InvalidInput, match="Choose another algorithm"):
        trimmed.fit(X, y, groups=np.arange(len(y)))
    assert ledger.entries() == ()


def test_persons_are_charged_once_and_what_was_planned(line: Any) -> None:
    X, y = line
    groups = np.arange(len(y)) // 2
    ledger = Ledger(epsilon=3.0, delta=1e-5)
    search = PrivateSearchCV(
        DPRidge(), GRID, trials=3, epsilon=2.5, ledger=ledger, random_state=0, max_rows=2
    ).fit(X, y, groups)
    (entry,) = ledger.entries()
    assert entry.unit == "person"
    assert entry.epsilon == search.privacy_.spent
    assert 2.4 < entry.epsilon <= 2.5
    assert "one person, of whose rows at most 2" in search.privacy_.unit
    assert verify(search.privacy_.to_json())
    assert search.best_estimator_.max_rows == 2
    assert search.best_estimator_.plan_.problem.max_rows == 2
    rows = PrivateSearchCV(DPRidge(), GRID, trials=3, epsilon=2.5, random_state=0).fit(X, y)
    assert search.score_noise_std_ == pytest.approx(2 * rows.score_noise_std_, rel=0.6)
    with pytest.raises(UnsupportedAccounting, match="one person"):
        PrivateSearchCV(DPRidge(), GRID, epsilon=0.1, ledger=ledger).fit(X, y)
    labels = PrivateSearchCV(
        DPLogisticRegression(classes=[False, True]), {"C": [1.0, 2.0]}, max_rows=2, **SIMULATED
    ).fit(X, y > 0, groups=groups.astype(str))
    assert list(labels.classes_) == [False, True]


@pytest.mark.parametrize(("mean", "whose"), [(0.2, None), (3.0, None), (3.0, 2)])
def test_counts_are_scored_against_a_constant(mean: float, whose: int | None) -> None:
    rng = np.random.default_rng(1)
    X = rng.normal(size=(3_000, 2))
    y = rng.poisson(mean * np.exp(X @ [0.8, 0.0]))
    groups = None if whose is None else np.arange(len(y)) // whose
    grid = {"alpha": [1e-3, 1e5]}
    for model in (DPPoissonRegressor(), DPGeneralizedLinearEstimator(loss="poisson")):
        values = grid if hasattr(model, "alpha") else {"domain": [L2(alpha=a) for a in (1e-3, 1e5)]}
        search = PrivateSearchCV(
            model, values, trials=6, epsilon=20.0, max_rows=whose, **SIMULATED
        ).fit(X, y, groups)
        assert search.best_estimator_.coef_[0] > 0.3
        assert 0.05 < search.best_score_ < 3 * mean
        assert 0 < search.score_noise_std_ < 0.1


@pytest.mark.parametrize("kind", ["parquet", "csv", "arrow"])
def test_a_file_is_searched_like_its_frame(line: Any, tmp_path: Any, kind: str) -> None:
    X, y = (part[:200] for part in line)
    frame = pd.DataFrame(X, columns=list("abcd"))
    frame["kind"], frame["whose"], frame["y"] = np.where(y > 0, "u", "v"), np.arange(200) // 3, y
    path = tmp_path / f"table.{kind}"
    if kind == "parquet":
        frame.to_parquet(path, row_group_size=30)
    elif kind == "csv":
        frame.to_csv(path, index=False)
    else:
        frame.to_feather(path)
    features = frame[[*"abcd", "kind"]]
    model = DPRidge(categories={"kind": ["u", "v"]})
    for scratch in (None, tmp_path):
        table = open_table(path, drop=["whose"], scratch=scratch)
        here = PrivateSearchCV(model, GRID, trials=1, **SIMULATED).fit(table, "y")
        there = PrivateSearchCV(model, GRID, trials=1, **SIMULATED).fit(features, y)
        assert here.best_score_ == there.best_score_
        assert list(here.best_estimator_.coef_) == list(there.best_estimator_.coef_)
        assert here.predict(table) == pytest.approx(there.predict(features))
        assert here.best_estimator_.categories == model.categories
        table = open_table(path, categories=model.categories, scratch=scratch)
        search = PrivateSearchCV(DPRidge(), GRID, trials=1, max_rows=2, epsilon=5.0, **SIMULATED)
        persons = search.fit(table, "y", "whose")
        same = PrivateSearchCV(
            model, GRID, trials=1, max_rows=2, epsilon=5.0, **SIMULATED
        ).fit(features, y, frame["whose"])  # fmt: skip
        assert persons.best_score_ == same.best_score_
        assert list(persons.feature_names_in_) == [*"abcd", "kind"]
        counted = PrivateSearchCV(model, GRID, trials=1, **SIMULATED).fit(
            open_table(path, drop=["whose", "y"], scratch=scratch), y
        )
        assert counted.n_features_in_ == 5


def test_a_part_of_a_file_is_some_of_its_rows(tmp_path: Any) -> None:
    path = tmp_path / "table.csv"
    path.write_text("a,y\n" + "".join(f"{i},{10 * i}\n" for i in range(50)))
    whole = open_table(path)
    some = np.array([3, 4, 40])
    part = whole.part(some)
    assert (whole.n, part.n, part.declaring({}).n) == (50, 3, 3)
    rows = [part.numbers(batch.columns[0]).tolist() for batch in part.batches(["y"], ())]
    assert rows == [[30.0, 40.0, 400.0]]
    path.write_text("a,y\n1,2\n")
    with pytest.raises(InvalidInput, match="written to"):
        list(part.batches(["y"], ()))


def test_columns_without_names_and_objects_are_read(line: Any) -> None:
    X, y = (part[:200] for part in line)
    frame = pd.DataFrame(X)
    search = PrivateSearchCV(DPRidge(), GRID, trials=2, **SIMULATED).fit(frame, y)
    assert not hasattr(search, "feature_names_in_")
    assert search.predict(frame).shape == y.shape
    search.set_params(invalid="raise").fit(X.astype(object), y)


def test_what_a_loss_asks_to_be_believed_is_in_the_statement(line: Any) -> None:
    X, y = (part[:200] for part in line)
    own = CustomLoss(value=lambda m, y: abs(m - y), derivative=lambda m, y: 1.0 if m > y else -1.0)
    grid = {"loss": [own]}
    search = PrivateSearchCV(DPGeneralizedLinearEstimator(), grid, trials=1, **SIMULATED).fit(X, y)
    assert any("are pure" in sentence for sentence in search.privacy_.assumptions)
    assert set(search.best_estimator_.privacy_.notes) == set(search.privacy_.notes)


def test_a_search_that_is_stopped_has_paid(line: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    ledger, calls = Ledger(epsilon=2.0, delta=1e-5), []

    def fit(self: Any, *records: Any) -> None:
        calls.append(1)
        raise KeyboardInterrupt

    search = PrivateSearchCV(DPRidge(), GRID, epsilon=1.5, ledger=ledger)
    with monkeypatch.context() as patched:
        patched.setattr(DPRidge, "fit", fit)
        with pytest.raises(KeyboardInterrupt):
            search.fit(*line)
    assert [e.label for e in ledger.entries()] == ["PrivateSearchCV"]
    assert calls == [1]
    assert not hasattr(search, "best_estimator_")
    with pytest.raises(BudgetExceeded):
        search.fit(*line)


def test_copies_pickles_and_grids(line: Any) -> None:
    X, y = (part[:300] for part in line)
    grids = [{"alpha": [1.0]}, {"alpha": [2.0], "fit_intercept": [False]}]
    search = PrivateSearchCV(DPRidge(), grids, trials=3, **SIMULATED).fit(X, y)
    assert search.best_params_ in (
        {"alpha": 1.0},
        {"alpha": 2.0, "fit_intercept": False},
    )
    again = pickle.loads(pickle.dumps(search))  # noqa: S301
    assert list(again.predict(X)) == list(search.predict(X))
    assert clone(search).fit(X, y).best_score_ == search.best_score_
    for trials in (10**7, 10**30):
        with pytest.raises(InvalidInput, match="at most"):
            BestTrial(multiplier=1.0, trials=trials)
    for grid in ({"alpha": []}, {"alpha": 1.0}, "alpha", {"algorithm": "auto"}):
        with pytest.raises(InvalidInput, match="param_grid"):
            PrivateSearchCV(DPRidge(), grid, **SIMULATED).fit(X, y)


def checks() -> Any:
    search = PrivateSearchCV(
        DPRidge(), {"alpha": [1e-3, 1e-2]}, trials=2, epsilon=1e6, delta=1e-3, invalid="raise",
        **SIMULATED,
    )  # fmt: skip
    for estimator, check in estimator_checks_generator(search):
        yield pytest.param(estimator, check, id=check.func.__name__)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")  # checks fit tiny tables and warn of what they do to them
@pytest.mark.parametrize(("estimator", "check"), list(checks()))
def test_scikit_learns_checks(estimator: Any, check: Any) -> None:
    check(estimator)
