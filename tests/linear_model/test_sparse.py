"""Models of few features: what they keep, what they pay, what they refuse."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
import pytest

from privtail import Ledger, PrivateSearchCV
from privtail.algorithms.result import Result
from privtail.errors import InvalidInput
from privtail.linear_model import DPSparseClassifier, DPSparseRegressor
from privtail.linear_model.sparse import thinned
from privtail.summaries.summary import UNUSED

SIMULATED = {"noise": "simulated", "random_state": 0}
SPARSE = (DPSparseRegressor, DPSparseClassifier)


@pytest.fixture(scope="module")
def wide():
    """Forty features in odd units, of which three matter."""
    rng = np.random.default_rng(0)
    units = 10.0 ** rng.integers(-6, 7, 40)
    Z = rng.standard_t(3, (4_000, 40))
    y = 3 * Z[:, 7] - 2 * Z[:, 11] + 2 * Z[:, 39] + rng.standard_t(3, 4_000)
    return Z * units, y


def told(kind, y):
    return y if kind is DPSparseRegressor else (y > 0).astype(int)


def new(kind, sparsity=3, **options):
    declared = {} if kind is DPSparseRegressor else {"classes": [0, 1]}
    return kind(sparsity, **{"epsilon": 2.0, **SIMULATED, **declared, **options})


@pytest.mark.parametrize("kind", SPARSE)
def test_the_features_that_matter_are_found_in_any_unit(kind, wide):
    X, y = wide
    model = new(kind).fit(X, told(kind, y))
    assert list(np.flatnonzero(np.atleast_2d(model.coef_)[0])) == [7, 11, 39]
    assert model.score(X, told(kind, y)) > 0.7
    questions = [e.law for r in model.privacy_.plan for e in r.events]
    assert questions.count("noisy_max") == 1
    assert "gaussian" in questions


@pytest.mark.parametrize("kind", SPARSE)
@pytest.mark.parametrize("sparsity", [1, 5, 100])
@pytest.mark.parametrize("algorithm", ["auto", "sparse-peeling", "proximal-gradient"])
def test_no_output_has_more_slopes_than_it_may(kind, sparsity, algorithm, wide):
    X, y = wide
    for epsilon in (0.5, math.inf):
        if math.isinf(epsilon) and algorithm != "auto":
            continue
        model = new(kind, sparsity, epsilon=epsilon, algorithm=algorithm)
        model.fit(X[:1_000], told(kind, y[:1_000]))
        assert (np.count_nonzero(np.atleast_2d(model.coef_), axis=1) <= sparsity).all()


def test_every_class_has_its_own_support(wide):
    X, y = wide
    model = DPSparseClassifier(2, epsilon=50.0, classes=[0, 1, 2], **SIMULATED)
    model.fit(X, np.digitize(y, [-2, 2]))
    assert model.coef_.shape == (3, 40)
    assert (np.count_nonzero(model.coef_, axis=1) <= 2).all()


def test_thinning_ranks_by_size_in_scales():
    w = np.array([[1.0], [100.0], [-3.0], [1e-300], [0.5]])
    result = Result(w, 1, 1.0, scales=np.array([1.0, 1e-3, 1.0, UNUSED]))
    kept = thinned(result, 2, 4).w[:, 0]
    assert list(kept) == [1.0, 0.0, -3.0, 0.0, 0.5]
    assert list(thinned(result, 9, 4).w[:, 0]) == [1.0, 100.0, -3.0, 0.0, 0.5]


@pytest.mark.parametrize("kind", SPARSE)
def test_hostile_records_cost_no_error(kind, hostile):
    X, y = hostile
    with np.errstate(all="ignore"):
        model = new(kind, 2).fit(X, told(kind, y))
    assert np.isfinite(model.coef_).all()
    assert (np.count_nonzero(np.atleast_2d(model.coef_), axis=1) <= 2).all()


@pytest.mark.parametrize("kind", SPARSE)
def test_refusals_are_free(kind, wide):
    X, y = wide
    ledger = Ledger(epsilon=9.0, delta=1e-3)
    for sparsity in (0, 1.5, -1, None, True):
        with pytest.raises(InvalidInput, match="sparsity"):
            new(kind, sparsity, ledger=ledger).fit(X, told(kind, y))
    assert ledger.entries() == ()
    with pytest.raises(InvalidInput, match="selection"):
        new(kind).fit(X, told(kind, y)).conf_int()


def test_frames_categories_and_a_search(wide):
    X, y = wide
    frame = pd.DataFrame(X[:, :12], columns=[f"c{j}" for j in range(12)])
    frame["side"] = np.where(y > 0, "up", "down")
    model = DPSparseRegressor(2, epsilon=5.0, categories={"side": ["up", "down"]}, **SIMULATED)
    model.fit(frame, y)
    assert np.count_nonzero(model.coef_) <= 2
    assert model.coef_.shape == (14,)
    search = PrivateSearchCV(
        DPSparseRegressor(), {"sparsity": [1, 3]}, epsilon=20.0, trials=4, **SIMULATED
    ).fit(X, y)
    assert search.best_params_["sparsity"] in (1, 3)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("epsilon", [0.1, 0.5, 1.0])
def test_few_records_of_many_features(epsilon):
    """PEERS 5d: d = 100, n = 1,000, ten active; never worse than the constant, by much less."""
    slopes = np.zeros(100)
    slopes[:10] = [1, -1, 0.5, -0.5, 0.25, -0.25, 1, -1, 0.5, -0.5]

    def table(n, seed):
        rng = np.random.default_rng(seed)
        X = rng.lognormal(0, 1.5, (n, 100))
        return X, X @ slopes + 1 + rng.lognormal(0, 1.5, n) - np.exp(1.5**2 / 2)

    Xt, yt = table(20_000, 999)
    errors = []
    for seed in range(5):
        model = DPSparseRegressor(
            10, epsilon=epsilon, delta=1e-3, noise="simulated", random_state=seed
        )
        errors.append(np.sqrt(np.mean((yt - model.fit(*table(1_000, seed)).predict(Xt)) ** 2)))
    assert np.median(errors) <= (1.05 if epsilon < 1 else 0.8) * np.std(yt)
