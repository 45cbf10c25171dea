"""Published algorithms by name: standardized features, one plan, sensible fits."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone

from privtail.algorithms import (
    FrankWolfe,
    FrankWolfeCorners,
    LaplacePeeling,
    MirrorDescent,
    NetSearch,
    OneShotPeeling,
    ProximalGradient,
    SparsePeeling,
    TruncatedSparseRegression,
)
from privtail.algorithms.bregman import Entropy, PNorm
from privtail.default import ScaledDescent
from privtail.domains import Box, GroupLasso, L1Ball, L2Ball
from privtail.errors import IncompatibleParts, InvalidInput
from privtail.linear_model import (
    DPGeneralizedLinearEstimator,
    DPLADRegressor,
    DPLinearRegression,
    DPLogisticRegression,
    DPQuantileRegressor,
    PrivateSearchCV,
)
from privtail.losses import GeneralLoss
from privtail.published import NAMES
from privtail.robust_means import TruncatedMean
from privtail.statement import verify
from privtail.trusted.ledger import Ledger

SIMULATED = {"noise": "simulated", "random_state": 0}
LARGE = {"sample-and-aggregate"}
"""Refuses a small table, and learns from a large one only."""
every_name = pytest.mark.parametrize("name", [name for name in NAMES if name not in LARGE])


@pytest.fixture(scope="module")
def table():
    rng = np.random.default_rng(0)
    X = rng.standard_t(3, (20_000, 4)) * [1.0, 100.0, 1e-3, 5.0] + [0.0, 50.0, 0.0, -5.0]
    signal = (X - [0.0, 50.0, 0.0, -5.0]) @ [1.0, -0.01, 500.0, 0.0]
    return X, 10 + 2 * signal + rng.standard_t(3, 20_000), signal > 0


@every_name
def test_a_named_algorithm_learns_in_any_units(table, name):
    X, y, above = table
    line = DPLinearRegression(epsilon=3.0, algorithm=name, **SIMULATED).fit(X, y)
    assert np.sqrt(np.mean((line.predict(X) - y) ** 2)) < 0.85 * np.std(y)
    sign = DPLogisticRegression(epsilon=3.0, algorithm=name, classes=[False, True], **SIMULATED)
    assert sign.fit(X, above).score(X, above) > 0.7


def test_a_target_that_is_mostly_zero_is_fitted():
    """The acceptance test asked for residuals that only the default measures, after the charge."""
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(2_000, 2)), np.where(rng.random(2_000) < 0.2, rng.random(2_000), 0.0)
    model = DPLinearRegression(epsilon=2.0, algorithm="proximal-gradient", **SIMULATED)
    assert np.isfinite(model.fit(X, y).coef_).all()


@every_name
@pytest.mark.parametrize("neighbours", ["replace_one", "zero_out"])
def test_a_named_algorithm_is_charged_once_and_verifies(table, name, neighbours):
    X, y, _ = table
    ledger = Ledger(epsilon=1.0, delta=1e-5, neighbours=neighbours)
    model = DPLinearRegression(
        epsilon=0.8, delta=1e-6, neighbours=neighbours, algorithm=name, ledger=ledger
    ).fit(X[:500], y[:500])
    (entry,) = ledger.entries()
    assert 0.78 < entry.epsilon <= 0.8
    assert model.privacy_.spent == entry.epsilon
    assert verify(model.privacy_.to_json()).ok
    shown = [*str(model.privacy_).splitlines()[1:], *str(model.plan_).splitlines()]
    assert max(map(len, shown)) <= 80, "a terminal breaks the table"


def test_noise_that_follows_the_data_has_no_public_size(table):
    X, y, _ = table
    model = DPLinearRegression(algorithm="trimmed-descent", **SIMULATED).fit(X[:500], y[:500])
    assert model.plan_.steps == 30
    assert np.isnan(model.plan_.noise_error)
    assert np.isnan(model.coef_noise_std_).all()
    assert "noise error  not public" in str(model.plan_)
    assert "× S" in str(model.privacy_)


@pytest.mark.parametrize("sparsity", [1, 2])
@pytest.mark.parametrize("printed", [True, False])
def test_a_step_that_selects_and_measures_is_one_step(table, sparsity, printed):
    X, y, _ = table
    peeling = (LaplacePeeling if printed else OneShotPeeling)(sparsity=sparsity)
    algorithm = SparsePeeling(mean=TruncatedMean(2.0), steps=4, step_size=0.5, peeling=peeling)
    model = DPLinearRegression(algorithm=algorithm, fit_intercept=False, **SIMULATED).fit(X, y)
    assert model.plan_.steps == model.n_iter_ == 4


@pytest.mark.parametrize("name", ["clipped-spgd", "catoni-descent"])
def test_sparse_records_and_bought_labels(table, name):
    X, y, above = table
    DPLinearRegression(algorithm=name, **SIMULATED).fit(sparse.csr_matrix(X), y)
    model = DPLogisticRegression(epsilon=3.0, algorithm=name, **SIMULATED).fit(X, above)
    assert model.classes_.tolist() == [False, True]


@pytest.mark.parametrize("heavy", [False, True])
def test_a_target_far_from_zero_can_be_peeled(heavy):
    rng = np.random.default_rng(0)
    X = rng.standard_t(3, (6_000, 3)) if heavy else rng.standard_normal((6_000, 3))
    y = 4 * X[:, 0] + rng.standard_normal(6_000) + 1e6
    model = DPLinearRegression(epsilon=3.0, algorithm="sparse-peeling", **SIMULATED)
    assert model.fit(X, y).score(X, y) > 0.7
    search = PrivateSearchCV(model, {"fit_intercept": [True]}, trials=1, epsilon=5.0, **SIMULATED)
    assert search.fit(X, y).score(X, y) > 0.7


@pytest.mark.usefixtures("simulated_is_booked")
@pytest.mark.parametrize(
    ("name", "max_rows"),
    [(name, rows) for name in NAMES for rows in (1, 2) if rows == 1 or name not in LARGE],
)
def test_what_was_planned_is_what_runs_on_bought_labels(name, max_rows, half):
    cases = (2, "replace_one"), (3, "zero_out")
    labels, neighbours = cases[(list(NAMES).index(name) + max_rows + half) % 2]
    X = np.random.default_rng(0).standard_normal((2_000, 1))
    y = np.digitize(X[:, 0], [0.0, 0.8][: labels - 1])
    ledger = Ledger(epsilon=50.0, delta=1e-5, neighbours=neighbours)
    model = DPLogisticRegression(
        epsilon=40.0, neighbours=neighbours, algorithm=name, max_rows=max_rows, ledger=ledger,
        class_weight="balanced", count_invalid=0.01, **SIMULATED,
    ).fit(X, y, np.arange(2_000) // max_rows)  # fmt: skip
    assert model.classes_.tolist() == list(range(labels))
    (entry,) = ledger.entries()
    assert entry.epsilon == model.plan_.epsilon <= 40.0


def test_what_does_not_exist_or_fit_is_refused_before_the_charge(table):
    X, y, _ = table
    ledger = Ledger(epsilon=1.0, delta=1e-5)
    for arguments in (
        {"algorithm": "catoni_descent"},
        {"algorithm": 7},
        {"algorithm": "frank-wolfe"},
        {"algorithm": "clipped-spgd", "delta": 0.0},
        {"algorithm": "clipped-spgd", "epsilon": math.inf},
    ):
        with pytest.raises(InvalidInput, match="algorithm"):
            DPLinearRegression(**({"ledger": ledger} | arguments)).fit(X, y)
    assert ledger.entries() == ()


GENERAL = GeneralLoss(
    value=lambda w, x, y: (y - x @ w[:-1, 0]) ** 2,
    gradient=lambda w, x, y: np.append(2 * (x @ w[:-1, 0] - y) * x, 0.0)[:, None],
)


@pytest.mark.usefixtures("simulated_is_booked")
@pytest.mark.parametrize(
    "model",
    [
        DPLADRegressor(algorithm="sample-and-aggregate"),
        DPQuantileRegressor(algorithm="sample-and-aggregate"),
        *(
            DPGeneralizedLinearEstimator(loss=GENERAL, algorithm=algorithm)
            for algorithm in (*NAMES, "auto", ScaledDescent())
        ),
        DPGeneralizedLinearEstimator(loss=GENERAL, epsilon=math.inf),
        DPGeneralizedLinearEstimator(
            loss=GENERAL,
            algorithm=TruncatedSparseRegression(steps=2, step_size=0.1, truncation=1.0, sparsity=1),
        ),
        DPLinearRegression(algorithm=ScaledDescent(targets="count")),
        DPLogisticRegression(algorithm=ScaledDescent(targets="count"), classes=[0, 1]),
        DPLogisticRegression(algorithm=ScaledDescent(targets="count")),
    ],
    ids=lambda model: f"{type(model).__name__}-{model.algorithm}"[:50],
)
def test_a_loss_that_an_algorithm_does_not_take_is_refused_before_the_charge(table, model):
    X, y, _ = table
    budget = 100.0 if math.isfinite(model.epsilon) else math.inf
    ledger = Ledger(epsilon=budget, delta=1e-5)
    spends = {"epsilon": 50.0} if math.isfinite(model.epsilon) else {}
    with pytest.raises(IncompatibleParts):
        clone(model).set_params(ledger=ledger, **spends, **SIMULATED).fit(X[:3_000], y[:3_000])
    assert ledger.entries() == ()


CORNERS = FrankWolfe(steps=3, step_size=0.1, threshold=1.0)
BALL = L2Ball(radius=2.0)
UNEVEN = L1Ball(radius=1.0).scaled([1.0, 2.0, 3.0, 4.0])
ONE_STEP = ProximalGradient(steps=2, step_size=0.1, threshold=1.0)


@pytest.mark.parametrize(
    ("algorithm", "settings", "says"),
    [
        (CORNERS, {"domain": BALL}, "an intercept is in none"),
        (
            NetSearch(points=9, scale=1.0),
            {"domain": BALL, "loss": "absolute"},
            "an intercept is in none",
        ),
        (
            MirrorDescent(steps=3, step_size=0.1, threshold=1.0, geometry=Entropy()),
            {"domain": L1Ball(radius=2.0), "fit_intercept": False},
            "Simplex",
        ),
        (
            FrankWolfeCorners(steps=3, step_size=0.1, threshold=1.0),
            {"domain": UNEVEN, "fit_intercept": False},
            "corners of this domain have different lengths",
        ),
        (
            MirrorDescent(steps=3, step_size=0.1, threshold=1.0, geometry=PNorm(1.5)),
            {"domain": UNEVEN, "fit_intercept": False},
            "corners of this domain have different lengths",
        ),
        (CORNERS, {}, "Domains that fit: L2Ball"),
        ("auto", {"domain": GroupLasso(alpha=0.1, groups=[[0, 1]])}, "such as ProximalGradient"),
        ("catoni-descent", {"domain": GroupLasso(alpha=0.1, groups=[[0, 1]])}, "ProximalGradient"),
        (ONE_STEP, {"domain": GroupLasso(alpha=0.1, groups=[[0, 9]])}, "features below 4"),
        (ONE_STEP, {"domain": Box(low=[0.0, 0.0], high=[1.0, 1.0])}, "4 features"),
    ],
    ids=lambda part: part if isinstance(part, str) else type(part).__name__,
)  # fmt: skip
def test_a_domain_that_an_algorithm_cannot_use_is_refused_before_the_charge(
    table, algorithm, settings, says
):
    X, y, _ = table
    ledger = Ledger(epsilon=2.0, delta=1e-5)
    model = DPGeneralizedLinearEstimator(algorithm=algorithm, ledger=ledger, **settings)
    with pytest.raises((IncompatibleParts, InvalidInput), match=says):
        model.fit(X[:300], y[:300])
    assert ledger.entries() == ()
    with pytest.raises((IncompatibleParts, InvalidInput), match=says):
        model.plan(300, X.shape[1])


def test_the_plan_of_an_algorithm_in_units_of_the_data_does_not_guess_at_its_noise():
    """With amounts of thousands it warned of noise of 10,000 target scales; slopes were right."""
    rng = np.random.default_rng(0)
    X = 1000 * rng.standard_t(3, (3_000, 4))
    y = X @ [1.0, -1.0, 0.5, 0.0] + 1000 * rng.standard_t(3, 3_000)
    algorithm = ProximalGradient(steps=30, step_size=3e-7, threshold=5e6)
    model = DPGeneralizedLinearEstimator(algorithm=algorithm, epsilon=5.0, **SIMULATED)
    plan = model.plan(3_000, 4)
    assert np.isnan(plan.noise_error)
    assert plan.warnings == ()
    assert "noise error  not known: the algorithm runs in the units of your data" in str(plan)
    model.fit(X, y)  # a warning would be an error
    assert "standardized slope" in str(
        model.set_params(algorithm="proximal-gradient").plan(3_000, 4)
    )
