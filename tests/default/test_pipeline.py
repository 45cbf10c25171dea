"""Which stages a fit has, what they cost, and that a fit releases what it planned."""

from __future__ import annotations

import math
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from scipy import sparse

from privtail.calibration import calibrate
from privtail.default import ScaledDescent, Tuning
from privtail.domains import L1, L2, L1Ball, L2Ball
from privtail.errors import IncompatibleParts, InvalidInput
from privtail.linear_model import (
    DPGeneralizedLinearEstimator,
    DPLinearRegression,
    DPLogisticRegression,
    DPPoissonRegressor,
    DPSparseRegressor,
)
from privtail.losses import (
    LABELS,
    AbsoluteLoss,
    GeneralLoss,
    HuberLoss,
    LogisticLoss,
    MultinomialLoss,
    PoissonLoss,
    QuantileLoss,
    RelativeHuberLoss,
    SquaredLoss,
    TweedieLoss,
    WeightedLoss,
)
from privtail.trusted.accountants import cost
from privtail.trusted.budget import Budget
from privtail.trusted.problem import Problem
from tests.default.conftest import linear, released

SQUARES = ScaledDescent(squares=True)
KINDS = {
    "squares": SQUARES,
    "real": ScaledDescent(),
    "binary": ScaledDescent(targets="binary"),
    "class": ScaledDescent(targets="class", labels=3),
    "count": ScaledDescent(targets="count"),
}


def priced(plan, of="replace_one"):
    return cost(plan, of)


# ---------------------------------------------------------------- the stages and their plan


def stages_of(algorithm, multiplier, problem):
    return [(r.stage, [e.question for e in r.events], r.times)
            for r in algorithm.plan(multiplier, problem)]  # fmt: skip


def test_the_plan_of_numbers():
    problem = Problem(n=10_000, d=3, intercept=True)
    assert stages_of(SQUARES, 42.0, problem) == [
        ("column summaries", ["histogram"] * 2, 4),
        ("intercept-only model", ["derivatives"], 1),
        ("preconditioner", ["moments"], 1),
        ("descent", ["gradient"], 5),
        ("residual histogram", ["derivative norms"], 1),
        ("descent", ["gradient"], 20),
        ("extrapolation", ["improvement"], 1),
        ("intercept by mean residual", ["derivatives"], 1),
        ("acceptance test", ["improvement"] * 2, 1),
    ]
    quantile = stages_of(ScaledDescent(quantile=True), 42.0, problem)
    assert ("intercept-only model", ["derivatives"], 3) in quantile
    assert ("intercept by quantile", ["derivatives"], 3) in quantile


def test_the_plan_of_labels_and_of_counts():
    problem = Problem(n=10_000, d=3, outputs=3, intercept=True)
    names = [name for name, *_ in stages_of(KINDS["class"], 42.0, problem)]
    assert names[:3] == ["column summaries", "label counts", "preconditioner"]
    assert names[-2:] == ["acceptance test", "intercept by label frequencies"]
    weighted = stages_of(replace(KINDS["class"], weighted=True), 42.0, problem)
    assert weighted[-1][0] == "acceptance test", "weights change frequencies on purpose"
    problem = replace(problem, outputs=1)
    names = [name for name, *_ in stages_of(KINDS["count"], 42.0, problem)]
    assert names[:3] == ["column summaries", "target histogram", "intercept-only model"]
    assert names[-2:] == ["intercept by target mean", "acceptance test"]


def test_few_features_are_chosen_and_described_again():
    problem = Problem(n=1_000, d=100, intercept=True)
    plan = ScaledDescent(sparsity=4).plan(6.0, problem)
    names = [r.stage for r in plan]
    chosen = names.index("screening")
    assert names[0] == names[chosen + 1] == "column summaries"
    events = [e for r in plan for e in r.events]
    assert events[0].coordinates == 259, "one histogram for all features"
    (top,) = (e for e in events if e.law == "noisy_max")
    assert (top.picks, top.coordinates) == (4, 100)
    assert [e.coordinates for e in plan[chosen + 1].events] == [4 * 259]


def test_a_stage_costs_its_weight():
    """In parts of what the steps cost; Gaussian-DP parameters add up as squares."""
    tuning = Tuning()
    for squares in (True, False):
        plan = ScaledDescent(squares=squares).plan(
            42.0, Problem(n=10_000, d=3, intercept=True)
        )  # fmt: skip
        squared = [priced((r,)).mu ** 2 for r in plan]
        steps = sum(s for s, r in zip(squared, plan, strict=True) if r.stage == "descent")
        parts = {r.stage: s / steps for s, r in zip(squared, plan, strict=True)}
        assert parts["preconditioner"] == pytest.approx(tuning.other)
        assert parts["residual histogram"] == pytest.approx(tuning.other)
        assert parts["acceptance test"] == pytest.approx(2 * tuning.other)
        assert parts["extrapolation"] == pytest.approx(tuning.other)
        assert parts["intercept-only model"] == pytest.approx(tuning.other)
        assert ("intercept by mean residual" in parts) == squares
        assert parts["column summaries"] == pytest.approx(tuning.column_summaries)


def test_more_than_512_coordinates_have_no_second_moments():
    problem = Problem(n=1_000, d=600, intercept=True)
    assert "moments" not in [e.question for r in SQUARES.plan(9.0, problem) for e in r.events]
    X = np.random.default_rng(0).normal(size=(2_000, 600))
    w = released(X, X[:, 0], epsilon=100.0).w
    assert np.abs(w[1:600]).max() < w[0, 0]


# ---------------------------------------------------------------- regimes


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("d", [3, 100])
def test_a_regime_follows_from_public_numbers(kind, d):
    """Nobody but counts always has slopes, and nobody but many features is selected from."""
    problem = Problem(n=1_000, d=d, outputs=3 if kind == "class" else 1, intercept=True)
    algorithm = KINDS[kind]
    found = [algorithm.choose_stages(m, problem)[0] for m in np.geomspace(0.1, 1e5, 60)]
    order = ["all features", "few features", "intercept only"]
    ranks = [order.index(regime) for regime in found]
    assert ranks == sorted(ranks), "more noise never means more features"
    assert ranks[0] == 0
    assert ("intercept only" in found) == (kind != "count")
    assert ("few features" in found) == (d == 100 and kind != "count")


@pytest.mark.parametrize(
    ("algorithm", "labels"),
    [(SQUARES, 2), (KINDS["binary"], 2), (ScaledDescent(targets="class", labels=8), 8)],
)
def test_few_are_selected_where_noise_over_all_is_large(algorithm, labels):
    """Relative noise of a gradient: multiplier sqrt(25 rows / fraction) / n."""
    tuning = algorithm.tuning
    problem = Problem(n=1_000, d=tuning.many_features, intercept=True)
    fraction = 1 / sum(line.weight for line in algorithm.slope_stages(problem, few=False))
    most = tuning.max_relative_noise * math.sqrt(labels / 2)
    edge = most * 1_000 / math.sqrt(tuning.steps * problem.rows / fraction)
    for multiplier, d, regime in (
        (edge * 1.01, problem.d, "few features"),
        (edge * 0.99, problem.d, "all features"),
        (edge * 1.5, problem.d - 1, "all features"),
    ):
        assert algorithm.choose_stages(multiplier, replace(problem, d=d))[0] == regime
    alone = replace(algorithm, selects=False)
    assert alone.choose_stages(edge * 1.01, problem)[0] == "all features"


def test_sparsity_selects_whatever_the_noise():
    problem = Problem(n=1_000, d=20, intercept=True)
    for sparsity, regime in ((4, "few features"), (20, "all features"), (30, "all features")):
        assert ScaledDescent(sparsity=sparsity).choose_stages(0.1, problem)[0] == regime


@pytest.mark.parametrize("epsilon", [0.01, 0.02])
def test_a_budget_that_hardly_finds_the_target_goes_to_it(epsilon):
    X, y, _ = linear(n=500)
    for algorithm in (SQUARES, ScaledDescent()):
        result = released(X, y, epsilon=epsilon, algorithm=algorithm)
        assert result.report["regime"] == "intercept only"
        assert result.steps == 0
        assert not result.w[:3].any()
        assert not result.report["accepted"]


# ---------------------------------------------------------------- budgets


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("d", "sparsity"), [(1, None), (100, None), (100, 3), (600, None)])
def test_every_budget_has_a_multiplier_and_is_used(kind, d, sparsity):
    """Whatever regime it leads to."""
    algorithm = replace(KINDS[kind], sparsity=sparsity)
    problem = Problem(
        n=3_000, d=d, outputs=3 if kind == "class" else 1, intercept=kind != "real"
    )  # fmt: skip
    for epsilon in (0.01, 0.1, 1.0, 5.0):
        multiplier = calibrate(lambda m: algorithm.plan(m, problem), Budget(epsilon, 1e-5))
        spent = priced(algorithm.plan(multiplier, problem)).epsilon(1e-5)
        assert 0.98 * epsilon < spent <= epsilon


@pytest.mark.parametrize("kind", ["squares", "binary"])
@pytest.mark.parametrize("neighbours", ["replace_one", "zero_out"])
def test_more_noise_costs_less(kind, neighbours):
    """Also where the regime changes: else the search for the noise would meet a step."""
    algorithm = replace(KINDS[kind], neighbours=neighbours)
    problem = Problem(n=1_000, d=100, intercept=True)
    multipliers = np.geomspace(0.3, 3e4, 60)
    assert len({algorithm.choose_stages(m, problem)[0] for m in multipliers}) > 1
    costs = [priced(algorithm.plan(m, problem), neighbours).epsilon(1e-5) for m in multipliers]
    assert all(less < more for more, less in pairwise(costs))


# ---------------------------------------------------------------- what was planned is spent

FITS = {
    "squares": (SquaredLoss(), {}),
    "few": (SquaredLoss(), {"sparsity": 3}),
    "huber": (RelativeHuberLoss(threshold=1.35), {}),
    "absolute": (AbsoluteLoss(), {}),
    "quantile": (QuantileLoss(quantile=0.9), {"sparsity": 3}),
    "labels": (LogisticLoss(), {}),
    "few, labels": (LogisticLoss(), {"sparsity": 3}),
    "weighted": (WeightedLoss(loss=LogisticLoss(), weights=(0.6, 3.0)), {}),
    "three labels": (MultinomialLoss(classes=3), {"labels": 3}),
    "few, three labels": (MultinomialLoss(classes=3), {"labels": 3, "sparsity": 3}),
    "counts": (PoissonLoss(), {}),
    "few, counts": (PoissonLoss(), {"sparsity": 3}),
    "amounts": (TweedieLoss(power=1.5), {}),
}


@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("name", FITS)
def test_what_was_planned_is_what_was_spent(name, intercept, half):
    """`released` asserts that no planned release is left; the curator refuses any other."""
    csr = (list(FITS).index(name) + intercept + half) % 2
    loss, options = FITS[name]
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 6))
    y = rng.normal(size=300)
    if loss.targets != "real":
        y = rng.integers(0, 3, 300).astype(float) % max(2, loss.outputs)
    algorithm = ScaledDescent(
        targets=loss.targets, squares=isinstance(loss, SquaredLoss), tuning=Tuning(steps=6),
        **options,
    )  # fmt: skip
    classes = None if loss.targets not in LABELS else tuple(range(max(2, loss.outputs)))
    for epsilon in (0.05, 8.0):
        result = released(
            sparse.csr_matrix(X) if csr else X, y, loss, epsilon, algorithm, L2(alpha=0.01),
            intercept=intercept, classes=classes,
        )  # fmt: skip
        assert result.w.shape == (6 + intercept, loss.outputs)
        assert np.isfinite(result.w).all()


@pytest.mark.parametrize(("n", "d", "epsilon"), [
    (1_000, 49, 0.3), (1_000, 49, 5.0), (3_000, 60, 1.0), (3_000, 60, 5.0),
])  # fmt: skip
@pytest.mark.parametrize("classes", [None, [0, 1]])
def test_fits_spend_what_was_planned_also_where_labels_are_to_be_found(n, d, epsilon, classes):
    X = np.random.default_rng(0).standard_t(3, (n, d))
    y = (X[:, 0] - 2 * X[:, 1] > 0).astype(int)
    model = DPLogisticRegression(
        classes=classes, epsilon=epsilon, noise="simulated", random_state=0
    ).fit(X, y)
    assert len(model.privacy_.plan) == len(model.plan_.releases)
    assert model.coef_.shape == (1, d)


@pytest.mark.parametrize("steps", [1, 2])
def test_any_number_of_steps_is_enough_for_an_answer(steps):
    X, y, _ = linear(n=500)
    tuning = Tuning(steps=steps)
    assert np.isfinite(released(X, y, algorithm=ScaledDescent(tuning=tuning)).w).all()


# ---------------------------------------------------------------- what a fit is


def test_estimators_build_it():
    assert DPLinearRegression()._default() == SQUARES
    assert DPSparseRegressor(2)._default() == replace(SQUARES, sparsity=2)
    assert DPPoissonRegressor()._default() == KINDS["count"]
    assert DPLogisticRegression()._default() == ScaledDescent(targets="class")
    assert DPLogisticRegression(classes=["a", "b", "c"])._default() == KINDS["class"]
    assert DPLogisticRegression(class_weight={0: 2.0}, classes=[0, 1])._default().weighted
    ball = DPGeneralizedLinearEstimator(domain=L1Ball(radius=1.0))._default()
    assert not ball.selects, "a set ties slopes together"


def test_targets_of_no_kind_are_refused():
    with pytest.raises(InvalidInput, match="'label': give one of real, binary"):
        ScaledDescent(targets="label")


def test_a_loss_without_a_margin_is_refused_before_anything_is_released(watched):
    X, y, _ = linear(n=100)
    loss = GeneralLoss(value=lambda w, x, t: 0.0, gradient=lambda w, x, t: 0 * w)
    object.__setattr__(loss, "outputs", 1)
    with pytest.raises(IncompatibleParts, match="ProximalGradient"):
        watched.fit(ScaledDescent(), X, y, loss)
    with pytest.raises(IncompatibleParts, match="PoissonLoss"):
        watched.fit(KINDS["count"], X, y, SquaredLoss())
    with pytest.raises(IncompatibleParts, match="Pass targets='binary', and labels=K"):
        watched.fit(ScaledDescent(), X, y > 0, LogisticLoss())
    with pytest.raises(IncompatibleParts, match="Pass targets='real'"):
        watched.fit(KINDS["binary"], X, y, SquaredLoss())
    with pytest.raises(IncompatibleParts, match="Pass targets='count'"):
        watched.fit(ScaledDescent(), X, np.abs(y), PoissonLoss())
    with pytest.raises(InvalidInput, match="Leave out start"):
        watched.fit(ScaledDescent(), X, y, SquaredLoss(), start=np.zeros((3, 1)))
    assert watched.noise == []


@pytest.mark.parametrize("epsilon", [0.5, math.inf])
@pytest.mark.parametrize("sizes", [1.0, np.array([1e-3, 1.0, 1e4])], ids=["equal", "wild"])
def test_least_squares_in_any_units(watched, epsilon, sizes):
    X, y, w = linear(sizes=sizes)
    found = watched.fit(
        ScaledDescent(), X, y, SquaredLoss(), intercept=True, epsilon=epsilon, delta=1e-6
    )
    assert np.abs((found[:3, 0] - w) * sizes).max() < 0.25
    assert abs(found[3, 0] - 2.0) < 0.3


@pytest.mark.parametrize(("epsilon", "close"), [(1.0, 2e-3), (math.inf, 1e-6)])
def test_powers_of_two_are_the_same_fit(watched, epsilon, close):
    """But for the grids of what is released and sums of other sizes."""
    X, y, _ = linear()
    sizes = np.array([2.0**-20, 1.0, 2.0**15])
    one, two = (
        watched.fit(ScaledDescent(), *table, SquaredLoss(), intercept=True, epsilon=epsilon)
        for table in ((X, y), (X * sizes, 4 * y))
    )
    assert two[:3, 0] * sizes == pytest.approx(4 * one[:3, 0], rel=close)
    assert two[3, 0] == pytest.approx(4 * one[3, 0], rel=close)


def test_features_are_centred(watched):
    X, y, w = linear(shift=3.0)
    found = watched.fit(ScaledDescent(), X, y, SquaredLoss(), intercept=True)
    assert np.abs(found[:3, 0] - w).max() < 0.3
    assert abs(X.mean(axis=0) @ found[:3, 0] + found[3, 0] - y.mean()) < 0.5


@pytest.mark.parametrize("loss", [SquaredLoss(), HuberLoss(threshold=1.0)])
def test_sparse_records_are_scaled_and_not_centred(watched, loss):
    X, y, w = linear(d=2)
    X[np.abs(X) < 0.5] = 0.0
    y = X @ w + 2.0
    found = watched.fit(ScaledDescent(), sparse.csr_matrix(X), y, loss, intercept=True)
    assert np.abs(found[:2, 0] - w).max() < 0.3


@pytest.mark.parametrize("domain", [L1(alpha=0.01), L2(alpha=0.01), L2Ball(radius=1.0)])
def test_domains_hold_in_the_units_of_the_features(watched, domain):
    X, y, _ = linear()
    found = watched.fit(ScaledDescent(), X, y, SquaredLoss(), domain=domain, intercept=True)
    assert math.isfinite(domain.value(found[:3])), "outside of the set"
    if isinstance(domain, L2Ball):
        assert np.linalg.norm(found[:3]) > 0.5


@pytest.mark.parametrize(
    "loss", [AbsoluteLoss(), QuantileLoss(quantile=0.2), HuberLoss(threshold=1)]
)
def test_losses_with_kinks(loss):
    X, y, w = linear(n=50_000)
    found = released(X, y, loss).w[:, 0]
    assert np.abs(found[:3] - w).max() < 0.3
    if isinstance(loss, QuantileLoss):
        assert np.mean(y < X @ found[:3] + found[3]) == pytest.approx(0.2, abs=0.05)


def test_when_noise_wins_a_fit_is_no_worse_than_a_constant(watched):
    """Within twice its root mean square, whatever the noise."""
    X, y, _ = linear(n=300)
    for seed in range(20):
        found = watched.fit(
            ScaledDescent(), X, y, SquaredLoss(), intercept=True, epsilon=0.05, seed=seed
        )
        assert np.mean((X @ found[:3, 0] + found[3, 0] - y) ** 2) < 4 * np.var(y)


def test_logistic_without_a_numeric_target(watched):
    X, y, w = linear()
    found = watched.fit(
        KINDS["binary"], X, (y > 2).astype(float), LogisticLoss(), intercept=True
    )[:3, 0]  # fmt: skip
    assert found @ w / np.linalg.norm(found) / np.linalg.norm(w) > 0.95
