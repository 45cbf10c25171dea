"""Cross-validation: what it says, what it costs, and what it refuses."""

from __future__ import annotations

import math
import warnings
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn import metrics
from sklearn.linear_model import LinearRegression

from privtail import Ledger, PrivateSearchCV, cross_validate, open_table, verify
from privtail.errors import AccuracyWarning, BudgetExceeded, InvalidInput, UnsupportedAccounting
from privtail.linear_model import (
    DPLinearRegression,
    DPLogisticRegression,
    DPPoissonRegressor,
)

QUIET: dict[str, Any] = {"noise": "simulated", "random_state": 0}
N = 8_000


@pytest.fixture(scope="module")
def numbers() -> tuple[np.ndarray, np.ndarray]:
    chance = np.random.default_rng(0)
    X = chance.normal(size=(N, 3))
    return X, 50 + X @ [1.0, -2.0, 0.5] + chance.normal(size=N)


def test_the_numbers_are_of_models_on_rows_that_they_were_not_fitted_to(numbers):
    X, y = numbers
    found = cross_validate(DPLinearRegression(), X, y, epsilon=math.inf, cv=4, random_state=3)
    said = np.column_stack([model.predict(X) for model in found.models])
    errors = np.abs(said - y[:, None]).mean(axis=0)
    assert len(found.models) == 4
    assert found["mae"].value == pytest.approx(errors.mean(), rel=0.02)
    assert found.n == N


def test_labels_and_their_curves(numbers):
    X = numbers[0]
    y = (X[:, 0] + np.random.default_rng(1).logistic(size=N) > 0).astype(int)
    found = cross_validate(DPLogisticRegression(classes=[0, 1]), X, y, epsilon=3, **QUIET)
    truth = np.mean([metrics.accuracy_score(y, model.predict(X)) for model in found.models])
    assert found["accuracy"].low <= truth <= found["accuracy"].high
    assert found["accuracy"].high - found["accuracy"].low < 0.05
    assert found.curves is not None


def test_all_is_charged_once_and_is_at_most_what_was_asked_for(numbers):
    X, y = numbers
    ledger = Ledger(epsilon=3, delta=1e-5)
    found = cross_validate(DPLinearRegression(), X[:500], y[:500], epsilon=2, cv=3, ledger=ledger)
    (entry,) = ledger.entries()
    assert entry.label == "cross_validate(DPLinearRegression)"
    assert 1.99 < entry.epsilon <= 2
    (statement,) = found.statements
    assert verify(statement.to_json())
    assert all(model.privacy_ is statement for model in found.models)
    assert "3 fits and their evaluation" in str(statement)
    assert "secret" not in str(statement)
    with pytest.raises(BudgetExceeded):
        cross_validate(DPLinearRegression(), X, y, epsilon=2, ledger=ledger)
    assert len(ledger.entries()) == 1


def test_a_ledger_in_zcdp_takes_it(numbers):
    X, y = numbers
    ledger = Ledger(epsilon=3, delta=1e-5, composition="zcdp")
    cross_validate(DPLinearRegression(), X[:500], y[:500], epsilon=1, cv=2, ledger=ledger)
    assert ledger.entries()[0].rho == pytest.approx(0.0227, abs=0.002)


def test_frames_files_and_exposures(tmp_path, numbers):
    X = numbers[0][:2000]
    chance = np.random.default_rng(4)
    years = chance.uniform(0.5, 1.5, len(X))
    y = chance.poisson(years * np.exp(0.3 * X[:, 0] + 1))
    frame = pd.DataFrame(X, columns=["a", "b", "c"])
    model = DPPoissonRegressor()
    options = {"epsilon": 20, "cv": 2, "exposure": years, **QUIET}
    held = cross_validate(model, frame, y, **options)
    frame.assign(y=y, years=years).to_parquet(tmp_path / "x.parquet")
    table = open_table(tmp_path / "x.parquet")
    read = cross_validate(model, table, "y", **{**options, "exposure": "years"})
    assert held["mae"].value == pytest.approx(read["mae"].value)
    assert "deviance" in held
    assert held.models[0].exposure_ is not None


def test_of_what_models_warned_is_said():
    """Slopes of noise are set to zero; the note of all that say so counts them."""
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(400, 3)), rng.normal(size=400)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", AccuracyWarning)
        found = cross_validate(
            DPLinearRegression(), X, y, epsilon=1, noise="simulated", random_state=0
        )
    texts = {text for model in found.models for text in model.warnings_}
    assert texts
    for text in texts:
        count = sum(text in model.warnings_ for model in found.models)
        assert f"{count} of 5 models warned: {text}" in found.notes
    assert "models warned: " in str(found)


def test_what_a_search_refuses_is_compared_here(numbers):
    X, y = numbers[0][:2000].copy(), numbers[1][:2000]
    X[::7, 1] = np.nan
    model = DPLinearRegression(missing="indicator")
    with pytest.raises(InvalidInput, match="cross_validate"):
        PrivateSearchCV(model, {"fit_intercept": [True]}, **QUIET).fit(X, y)
    counts = PrivateSearchCV(DPPoissonRegressor(), {"alpha": [0.0, 1.0]}, **QUIET)
    with pytest.raises(InvalidInput, match="exposure"):
        counts.fit(X, y, exposure=np.ones(len(y)))
    found = cross_validate(model, X, y, epsilon=20, cv=2, **QUIET)
    assert found["mae"].low < 2 < found["constant_rmse"].high
    assert all(np.isfinite(m.predict(X[:7])).all() for m in found.models)


@pytest.mark.parametrize("kind", ["array", "file"])
def test_persons_are_in_one_fold_each(tmp_path, kind):
    """One charge, of persons; the errors hold the effect of a person, which no fit has seen."""
    rng = np.random.default_rng(0)
    ids = rng.permutation(np.repeat(np.arange(2_000), 5))
    X = rng.normal(size=(10_000, 2))
    y = X @ [1.0, -1.0] + rng.normal(size=2_000)[ids]
    ledger = Ledger(epsilon=20, delta=1e-3)
    given: Any = X, y
    groups: Any = ids
    if kind == "file":
        path = tmp_path / "visits.parquet"
        pd.DataFrame({"a": X[:, 0], "b": X[:, 1], "cost": y, "id": ids}).to_parquet(path)
        given, groups = (open_table(path), "cost"), "id"
    found = cross_validate(
        DPLinearRegression(max_rows=5), *given, epsilon=20, groups=groups, ledger=ledger
    )
    actual = np.abs(y - X @ [1.0, -1.0]).mean()
    assert found["mae"].low < actual + 0.1
    assert actual - 0.1 < found["mae"].high
    assert "person" in str(found.statements[0])
    assert len(ledger.entries()) == 1
    assert any("rows of a person are not independent" in note for note in found.notes)
    assert not verify(found.statements[0]).problems


def test_of_labels_and_counts_persons_are_dealt_too():
    rng = np.random.default_rng(0)
    ids, X = np.repeat(np.arange(2_000), 3), rng.normal(size=(6_000, 2))
    y = (X[:, 0] + rng.logistic(size=6_000) > 0).astype(int)
    found = cross_validate(
        DPLogisticRegression(classes=[0, 1], max_rows=3), X, y, epsilon=30, groups=ids, **QUIET
    )
    assert found["accuracy"].value == pytest.approx(0.69, abs=0.03)
    times = rng.uniform(0.5, 1.5, 6_000)
    counts = rng.poisson(times * np.exp(0.3 * X[:, 0] + 0.5))
    found = cross_validate(
        DPPoissonRegressor(max_rows=3), X, counts, epsilon=30, groups=ids, exposure=times, **QUIET
    )
    assert found["mae"].value < found["constant_rmse"].value


def test_what_it_refuses(numbers):
    X, y = numbers

    def refused(estimator: Any, match: str, kind: Any = InvalidInput, **changes: Any) -> None:
        ledger = Ledger(epsilon=10, delta=1e-3)
        with pytest.raises(kind, match=match):
            cross_validate(estimator, X, y, **{"epsilon": 1, "ledger": ledger, **changes})
        assert not ledger.entries()

    refused(LinearRegression(), "privtail.linear_model")
    refused(DPLogisticRegression(), "declare them")
    refused(DPLinearRegression(max_rows=2), "groups does not say")
    refused(DPLinearRegression(), "groups needs max_rows", groups=np.arange(N))
    refused(DPLinearRegression(), "cv", cv=1)
    refused(DPLinearRegression(), "folds", cv=N + 1)
    refused(DPLinearRegression(), "exposure", exposure=np.ones(N))
    refused(DPLinearRegression(), "confidence", confidence=2)
    refused(DPLinearRegression(), "delta", kind=UnsupportedAccounting, delta=0)


@pytest.mark.parametrize("persons", [False, True])
def test_an_estimator_that_changes_after_the_charge_changes_nothing(persons, monkeypatch):
    """Somebody who watches, or another thread, may set its parameters while it runs."""
    rng = np.random.default_rng(0)
    X, ids = rng.normal(size=(400, 2)), np.repeat(np.arange(200), 2)
    ledger, reserve = Ledger(epsilon=20, delta=1e-3), Ledger.reserve
    for name, value in {"epsilon": 1e6, "max_rows": 7, "fit_intercept": False}.items():
        model = DPLinearRegression(max_rows=2 if persons else None)

        def charged(self, model=model, name=name, value=value, **plan):
            setattr(model, name, value)
            return reserve(self, **plan)

        monkeypatch.setattr(Ledger, "reserve", charged)
        found = cross_validate(
            model, X, X[:, 0], epsilon=2, ledger=ledger, groups=ids if persons else None
        )
        assert getattr(model, name) == value
        assert found.statements[0].epsilon == 2
        assert all(one.fit_intercept for one in found.models)
        assert {one.max_rows for one in found.models} == {2 if persons else None}
    assert len(ledger.entries()) == 3
    assert ledger.spent[0] <= 6
