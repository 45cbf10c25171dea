"""Evaluations: what they say, of which containers, and what they cost."""

from __future__ import annotations

import math
import re
import warnings
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn import metrics
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import GammaRegressor, LinearRegression, LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import privtail
from privtail import Ledger, compare, evaluate, verify
from privtail.errors import AccuracyWarning, BudgetExceeded, InvalidInput
from privtail.evaluation.curves import Noisy
from privtail.linear_model import (
    DPGammaRegressor,
    DPLinearRegression,
    DPLogisticRegression,
    DPPoissonRegressor,
    DPQuantileRegressor,
    DPTweedieRegressor,
)
from privtail.model import Column, Model

QUIET: dict[str, Any] = {"noise": "simulated", "random_state": 0}
N = 20_000


@pytest.fixture(scope="module")
def numbers() -> tuple[np.ndarray, np.ndarray]:
    chance = np.random.default_rng(0)
    X = chance.normal(size=(N, 3))
    return X, 50 + X @ [1.0, -2.0, 0.5] + chance.normal(size=N)


@pytest.fixture(scope="module")
def labels() -> tuple[np.ndarray, np.ndarray]:
    chance = np.random.default_rng(1)
    X = chance.normal(size=(N, 3))
    odds = X @ [1.0, -2.0, 0.5] - 1
    return X, (chance.random(N) < 1 / (1 + np.exp(-odds))).astype(int)


def near(estimate: Any, truth: float, wide: float) -> None:
    """The interval holds the truth and is no wider than ``wide``; simulated noise, fixed seeds."""
    assert estimate.low <= truth <= estimate.high
    assert estimate.high - estimate.low <= wide


def test_numbers_agree_with_scikit_learn(numbers):
    X, y = numbers
    model = DPLinearRegression(epsilon=1, **QUIET).fit(X[:5000], y[:5000])
    found = evaluate(model, X, y, epsilon=2, **(QUIET | {"random_state": 1}))
    said = model.predict(X)
    near(found["mae"], metrics.mean_absolute_error(y, said), 0.1)
    near(found["rmse"], metrics.root_mean_squared_error(y, said), 0.15)
    near(found["r2"], metrics.r2_score(y, said), 0.1)
    near(found["constant_rmse"], y.std(), 0.3)
    near(found["constant"], y.mean(), 0.4)


def test_labels_agree_with_scikit_learn(labels):
    X, y = labels
    model = DPLogisticRegression(epsilon=1, classes=[0, 1], **QUIET).fit(X[:5000], y[:5000])
    found = evaluate(model, X, y, epsilon=1, **QUIET)
    chance, said = model.predict_proba(X)[:, 1], model.predict(X)
    near(found["accuracy"], metrics.accuracy_score(y, said), 0.03)
    near(found["log_loss"], metrics.log_loss(y, chance), 0.1)
    near(found["auc"], metrics.roc_auc_score(y, chance), 0.03)
    near(found["precision"], metrics.precision_score(y, said), 0.08)
    near(found["recall"], metrics.recall_score(y, said), 0.08)
    near(found["constant_accuracy"], 1 - y.mean(), 0.03)
    curves = found.curves
    assert np.all(np.diff(curves.false_positive_rate) >= 0)
    assert np.all(np.diff(curves.thresholds) > 0)
    assert 0.5 in curves.thresholds
    seen = np.isfinite(curves.observed)
    assert seen.sum() >= 10
    assert np.abs(curves.observed - curves.predicted)[seen].max() < 0.15
    assert found.confusion.shape == (2, 2)
    assert found.plot().axes[0].get_title().startswith("ROC")


@pytest.mark.parametrize("times", [0.1, 0.5, 12.0])
def test_the_area_is_that_of_models_whose_probabilities_are_close_or_extreme(labels, times):
    """Bins a quarter of the log-odds wide, up to 8, made ties: all of these intervals missed it.

    Errors of six deviations; fixed seeds.
    """
    X, y = labels
    model = LogisticRegression().fit(X, y)
    model.coef_, model.intercept_ = times * model.coef_ / 2.5, times * model.intercept_
    found = evaluate(model, X, y, epsilon=5, trusted_rowwise=True, **QUIET)
    area = metrics.roc_auc_score(y, model.decision_function(X))
    near(found["auc"], area, 0.02)
    assert found["auc"].value == pytest.approx(area, abs=0.005)
    assert len(found.curves.thresholds) == 20
    assert 0.5 in found.curves.thresholds
    assert np.nanmax(found.curves.observed) > 0.8


def test_three_labels_have_a_table_and_no_curves(labels):
    X, y = labels
    y = y + (X[:, 2] > 1)
    model = LogisticRegression().fit(X, y)
    found = evaluate(model, X, y, epsilon=1, trusted_rowwise=True, **QUIET)
    truth = metrics.confusion_matrix(y, model.predict(X))
    assert np.abs(found.confusion - truth).max() < 60
    near(found["accuracy"], metrics.accuracy_score(y, model.predict(X)), 0.03)
    near(found["log_loss"], metrics.log_loss(y, model.predict_proba(X)), 0.1)
    assert found.curves is None
    with pytest.raises(InvalidInput, match="two labels only"):
        found.plot()


def test_labels_that_no_row_holds_are_known_to_be_unknown():
    """The constant's log loss was 0 [0, 0], and nothing warned; noise passes once in 40 times."""
    X = np.random.default_rng(0).normal(size=(2_000, 2))
    y = np.where(X[:, 0] > 0, "yes", "no")
    model = DPLogisticRegression(classes=["no", "yes"], noise="simulated", random_state=0).fit(X, y)
    for seed in range(2):
        with pytest.warns(AccuracyWarning, match="bound for constant log loss") as told:
            found = evaluate(
                model, X, np.char.upper(y), epsilon=1.0, noise="simulated", random_state=seed
            )
        assert "Noise hides constant accuracy, AUC, precision, recall" in str(told[1].message)
        assert found["constant_log_loss"].high == math.inf
        assert (found["accuracy"].low, found["accuracy"].high) == (0.0, 1.0)


def test_without_privacy_the_numbers_are_exact(labels):
    X, y = labels
    model = LogisticRegression().fit(X, y)
    found = evaluate(model, X, y, epsilon=math.inf, trusted_rowwise=True)
    assert found["accuracy"].value == pytest.approx(model.score(X, y), abs=1e-6)
    chance = np.clip(model.predict_proba(X), 1e-3, 1)
    assert found["log_loss"].value == pytest.approx(
        -np.log(chance[np.arange(N), y]).mean(), abs=1e-5
    )


def test_the_coverage_of_a_quantile(numbers, tmp_path):
    """On 20 tables the intervals of 95 % hold: chance of a false alarm 1e-4 (17 of 20 or more)."""
    X, y = numbers
    model = DPQuantileRegressor(0.8, epsilon=1, **QUIET).fit(X[:5000], y[:5000])
    truth = (y[5000:] <= model.predict(X[5000:])).mean()
    held = 0
    for seed in range(20):
        rows = np.random.default_rng(seed).choice(np.arange(5000, N), 3000)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            found = evaluate(
                model, X[rows], y[rows], epsilon=1, noise="simulated", random_state=seed
            )
        held += found["coverage"].low <= truth <= found["coverage"].high
        assert found["coverage"].high - found["coverage"].low < 0.1
    assert held >= 17
    assert "quantile 0.8" in str(found)
    model.save(tmp_path / "model.json")
    loaded = privtail.load(tmp_path / "model.json")
    assert loaded.quantile == 0.8
    ledger = Ledger(epsilon=1, delta=1e-6)
    assert "coverage" in evaluate(loaded, X[:500], y[:500], epsilon=1, ledger=ledger)
    assert len(ledger.entries()) == 3
    said = LinearRegression().fit(X, y)
    exact = evaluate(said, X, y, epsilon=math.inf, quantile=0.5, trusted_rowwise=True)
    assert exact["coverage"].value == pytest.approx((y <= said.predict(X)).mean())
    with pytest.raises(InvalidInput, match=r"\(0, 1\)"):
        evaluate(model, X, y, epsilon=1, quantile=1.5)
    labels = LogisticRegression().fit(X, y > 50)
    with pytest.raises(InvalidInput, match="quantile"):
        evaluate(labels, X, y > 50, epsilon=1, quantile=0.5)


def test_counts(numbers):
    X = numbers[0]
    y = np.random.default_rng(2).poisson(np.exp(0.3 * X[:, 0] + 1))
    model = DPPoissonRegressor(epsilon=1, **QUIET).fit(X[:5000], y[:5000])
    found = evaluate(model, X, y, epsilon=1, **QUIET)
    near(found["mae"], metrics.mean_absolute_error(y, model.predict(X)), 0.6)


def test_deviance_of_counts_and_amounts(numbers):
    X = numbers[0]
    chance = np.random.default_rng(2)
    claims = chance.poisson(np.exp(0.5 * X[:, 0] + 1))
    cost = 1000 * np.exp(0.5 * X[:, 0]) * chance.gamma(2.0, 0.5, N)
    premium = np.where(claims > 2, cost, 0.0)
    for power, y, model in (
        (1.0, claims, DPPoissonRegressor(epsilon=2, **QUIET)),
        (2.0, cost, DPGammaRegressor(epsilon=2, **QUIET)),
        (1.5, premium, DPTweedieRegressor(epsilon=2, power=1.5, **QUIET)),
    ):
        said = model.fit(X[:8000], y[:8000]).predict(X)
        for other in (model, model.to_model()):
            found = evaluate(other, X, y, epsilon=8, **QUIET)
            truth = metrics.mean_tweedie_deviance(y, said, power=power)
            near(found["deviance"], truth, 0.2 * truth)
            near(found["d2"], metrics.d2_tweedie_score(y, said, power=power), 0.35)
            constant = metrics.mean_tweedie_deviance(y, np.full(N, y.mean()), power=power)
            near(found["constant_deviance"], constant, 0.35 * constant)
    plain = GammaRegressor().fit(X, cost)
    found = evaluate(plain, X, cost, epsilon=8, power=2, trusted_rowwise=True, **QUIET)
    near(found["d2"], metrics.d2_tweedie_score(cost, plain.predict(X), power=2), 0.35)
    assert "d2" not in evaluate(plain, X, cost, epsilon=2, trusted_rowwise=True, **QUIET)


def test_amounts_that_no_model_allows_count_for_nothing():
    """Neither in the deviance nor in the constant that it is compared with."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(20_000, 2))
    y = rng.poisson(np.exp(0.3 * X[:, 0] + 1)).astype(float)
    model = DPPoissonRegressor(epsilon=5, noise="simulated", random_state=0).fit(X, y)
    y[:4_000] = -50.0
    found = evaluate(model, X, y, epsilon=5, noise="simulated", random_state=0)
    mean = y[4_000:].mean()
    assert found["constant"].low < mean < found["constant"].high
    assert found["r2"].value < 0.5
    assert found["constant"].value == pytest.approx(mean, rel=0.1)


def test_rates_are_compared_with_the_mean_rate(numbers, tmp_path):
    X = numbers[0]
    chance = np.random.default_rng(2)
    years = chance.uniform(0.1, 2.0, N)
    claims = chance.poisson(years * np.exp(0.5 * X[:, 0]))
    model = DPPoissonRegressor(epsilon=2, **QUIET).fit(X, claims, exposure=years)
    found = evaluate(model, X, claims, exposure=years, epsilon=8, **QUIET)
    near(found["constant"], claims.sum() / years.sum(), 0.5)
    near(found["mae"], metrics.mean_absolute_error(claims, model.predict(X, years)), 0.2)
    near(found["d2"], model.score(X, claims, exposure=years), 0.25)
    ledger = Ledger(epsilon=5.0, delta=1e-5)
    with pytest.raises(InvalidInput, match="exposure="):
        evaluate(model, X, claims, epsilon=2, ledger=ledger)
    count = DPPoissonRegressor(epsilon=2, **QUIET).fit(X, claims)
    for pair in ((model, count), (count, model), (count, model.to_model("claims"))):
        with pytest.raises(InvalidInput, match="One of the models predicts rates"):
            compare(*pair, X, claims, epsilon=2, ledger=ledger, exposure=years)
    with pytest.raises(InvalidInput, match="need exposure="):
        compare(model, model, X, claims, epsilon=2, ledger=ledger)
    for call in (partial(evaluate, count), partial(compare, count, count)):
        with pytest.raises(InvalidInput, match="Leave exposure= out"):
            call(X, claims, epsilon=2, ledger=ledger, exposure=years)
    assert ledger.entries() == ()
    frame = pd.DataFrame(X, columns=list("abc")).assign(claims=claims, years=years)
    frame.to_parquet(tmp_path / "p.parquet")
    table = privtail.open_table(tmp_path / "p.parquet")
    columns = [Column(name) for name in "abc"]
    loaded = Model.of(model, target="claims", columns=columns)
    again = evaluate(loaded, table, exposure="years", epsilon=8, **QUIET)
    assert again.to_dict()["numbers"] == found.to_dict()["numbers"]


@pytest.mark.parametrize("power", [1, 1.5])
def test_the_unit_of_an_exposure_changes_no_score(numbers, power):
    """The constant has a least value for its deviance: in the unit of rates, not of targets."""
    X, chance = numbers[0], np.random.default_rng(4)
    years = chance.uniform(0.1, 2.0, N)
    claims = chance.poisson(years * np.exp(0.5 * X[:, 0]))
    kind = DPPoissonRegressor if power == 1 else partial(DPTweedieRegressor, power=power)
    scores = []
    for unit in (1.0, 2.0**20, 2.0**-20):
        model = kind(epsilon=20, **QUIET).fit(X, claims, exposure=unit * years)
        found = evaluate(model, X, claims, exposure=unit * years, epsilon=20, **QUIET)
        names = "rmse", "r2", "constant_rmse", "deviance", "d2", "constant_deviance"
        scores.append([found[name].value for name in names])
    np.testing.assert_allclose(scores[1:], [scores[0]] * 2, rtol=0.01)


def test_models_of_rates_are_compared(numbers, tmp_path):
    """The exposure multiplies both predictions; a row without one does not count."""
    X = numbers[0]
    chance = np.random.default_rng(3)
    years = chance.uniform(0.1, 2.0, N)
    claims = chance.poisson(years * np.exp(0.7 * X[:, 0])).astype(float)
    good, poor = (
        DPPoissonRegressor(epsilon=2, **QUIET).fit(Z, claims, exposure=years)
        for Z in (X, X[:, ::-1])
    )
    wrong = np.abs(claims - good.predict(X, years)) - np.abs(claims - poor.predict(X, years))
    claims[:100], years[:100] = 1e6, 0.0
    found = compare(good, poor, X, claims, exposure=years, epsilon=8, **QUIET)
    assert found.better == "first"
    assert found.p_value < 1e-6
    near(found.difference, wrong[100:].mean(), 0.2)
    frame = pd.DataFrame(X, columns=list("abc")).assign(claims=claims, years=years)
    frame.to_parquet(tmp_path / "p.parquet")
    loaded = [
        Model.of(model, target="claims", columns=[Column(name) for name in "abc"])
        for model in (good, poor)
    ]
    table = privtail.open_table(tmp_path / "p.parquet")
    again = compare(*loaded, table, "claims", exposure="years", epsilon=8, **QUIET)
    assert str(again) == str(found)


def test_what_has_no_deviance_is_refused(numbers, labels):
    model = DPLinearRegression(epsilon=1, **QUIET).fit(*numbers)
    ledger = Ledger(epsilon=5.0, delta=1e-5)
    with pytest.raises(InvalidInput, match="power"):
        evaluate(model, *numbers, epsilon=1, power=3, ledger=ledger)
    classifier = LogisticRegression().fit(*labels)
    with pytest.raises(InvalidInput, match="no exposure"):
        evaluate(classifier, *labels, epsilon=1, exposure=numbers[1], ledger=ledger)
    assert len(ledger.entries()) == 0


def test_every_container_gives_the_same(numbers, tmp_path):
    X, y = numbers
    model = DPLinearRegression(epsilon=1, **QUIET).fit(pd.DataFrame(X, columns=list("abc")), y)
    frame = pd.DataFrame(X, columns=list("abc")).assign(cost=y)
    frame.to_parquet(tmp_path / "rows.parquet")
    frame.to_csv(tmp_path / "rows.csv", index=False)
    loaded = Model.of(model, target="cost", columns=[Column(name) for name in "abc"])
    expected = evaluate(model, frame[list("abc")], y, epsilon=1, **QUIET).to_dict()
    for X_, y_ in (
        (frame, "cost"),
        (frame, None),
        (pl.from_pandas(frame), "cost"),
        ({name: frame[name].to_numpy() for name in frame}, "cost"),
        (privtail.open_table(tmp_path / "rows.parquet"), "cost"),
        (privtail.open_table(tmp_path / "rows.csv"), "cost"),
    ):
        found = evaluate(loaded, X_, y_, epsilon=1, **QUIET).to_dict()
        assert found["numbers"] == expected["numbers"], type(X_)


def test_text_labels_and_categories_of_a_file(tmp_path):
    chance = np.random.default_rng(3)
    city = chance.choice(["Oslo", "Rome"], N)
    late = np.where(chance.random(N) < np.where(city == "Oslo", 0.2, 0.7), "yes", "no")
    frame = pd.DataFrame({"city": city, "late": late})
    frame.to_parquet(tmp_path / "rows.parquet")
    declared = {"city": ["Oslo", "Rome"]}
    model = DPLogisticRegression(epsilon=2, classes=["no", "yes"], categories=declared, **QUIET)
    model.fit(frame[["city"]], frame["late"])
    table = privtail.open_table(tmp_path / "rows.parquet", categories=declared)
    by_file = evaluate(model, table, "late", epsilon=1, **QUIET)
    by_frame = evaluate(model, frame[["city"]], frame["late"], epsilon=1, **QUIET)
    assert by_file.to_dict()["numbers"] == by_frame.to_dict()["numbers"]
    near(by_file["accuracy"], (model.predict(frame[["city"]]) == late).mean(), 0.05)


def test_models_of_others_are_asked_row_by_row(labels):
    X, y = labels[0][:400], labels[1][:400]
    model = RandomForestClassifier(5, random_state=0).fit(X, y)
    one = evaluate(model, X, y, epsilon=1, **QUIET)
    many = evaluate(model, X, y, epsilon=1, trusted_rowwise=True, **QUIET)
    assert one.to_dict()["numbers"] == many.to_dict()["numbers"]
    promised = [s for s in many.statements[0].assumptions if "row i" in s]
    assert promised
    assert not [s for s in one.statements[0].assumptions if "row i" in s]


@pytest.mark.parametrize("composition", ["basic", "gdp"])
def test_the_ledger_is_charged_for_the_whole_and_no_more(numbers, composition):
    X, y = numbers
    model = LinearRegression().fit(X[:500], y[:500])
    ledger = Ledger(epsilon=1.0, delta=1e-6, composition=composition)
    evaluate(model, X, y, epsilon=0.9, trusted_rowwise=True, ledger=ledger)
    assert [entry.label for entry in ledger.entries()] == ["evaluate: target", "evaluate: errors"]
    with pytest.raises(BudgetExceeded, match="Nothing was charged"):
        evaluate(model, X, y, epsilon=0.9, trusted_rowwise=True, ledger=ledger)
    assert len(ledger.entries()) == 2


@pytest.mark.parametrize("delta", [1e-6, 3e-6, 1e-5, 0.1])
@pytest.mark.parametrize("quantile", [None, 0.5])
def test_the_parts_of_a_budget_are_no_more_than_the_whole(numbers, delta, quantile):
    """In doubles a fifth and four fifths of 1e-5 are more than 1e-5: the last plan was refused."""
    X, y = numbers[0][:500], numbers[1][:500]
    model = LinearRegression().fit(X, y)
    ledger = Ledger(epsilon=0.3, delta=delta)
    evaluate(
        model, X, y, epsilon=0.3, delta=delta, quantile=quantile, trusted_rowwise=True,
        ledger=ledger,
    )  # fmt: skip
    assert len(ledger.entries()) == 2 + (quantile is not None)


def test_every_statement_is_verified(numbers, labels):
    X, y = numbers
    model = DPLinearRegression(epsilon=1, **QUIET).fit(X[:5000], y[:5000])
    classifier = LogisticRegression().fit(*labels)
    found = evaluate(model, X, y, epsilon=0.5)
    other = evaluate(classifier, *labels, epsilon=0.5, trusted_rowwise=True)
    third = compare(classifier, classifier, *labels, epsilon=0.5, trusted_rowwise=True)
    for statement in (*found.statements, *other.statements, third.privacy_):
        assert verify(statement).ok
    assert sum(statement.epsilon for statement in found.statements) == pytest.approx(0.5)


def test_persons(numbers):
    X, y = numbers
    model = LinearRegression().fit(X[:500], y[:500])
    asked = {"trusted_rowwise": True, "groups": np.arange(N) // 2, "max_rows": 2, **QUIET}
    found = evaluate(model, X, y, epsilon=2, **asked)
    assert "person" in found.statements[0].unit
    for one in (found, compare(model, model, X, y, epsilon=2, **asked)):
        assert any("not for sampling" in text for text in one.notes)
        assert all(text in str(one) for text in one.notes)
    near(found["mae"], metrics.mean_absolute_error(y, model.predict(X)), 0.3)


def test_too_few_rows_say_so():
    X, y = np.ones((50, 1)), np.arange(50.0)
    model = LinearRegression().fit(X, y)
    with pytest.warns(AccuracyWarning, match="no bound"):
        found = evaluate(model, X, y, epsilon=0.1, trusted_rowwise=True, **QUIET)
    assert not found["r2"].reliable
    assert re.search("no bound for .*R2", str(found))
    assert "columns" not in str(found)
    assert not any("columns" in note for one in found.statements[1:] for note in one.notes)


def test_a_share_of_no_rows_is_told_as_such(labels):
    """No row is predicted to have the second label, so there is no precision: no large errors."""
    X, y = labels
    model = DPLogisticRegression(classes=[0, 1], epsilon=1, **QUIET).fit(X, y)
    model.coef_, model.intercept_ = np.zeros_like(model.coef_), np.array([-1.0])
    with pytest.warns(AccuracyWarning, match="Noise hides precision: too few rows"):
        found = evaluate(model, X, y, epsilon=1, **QUIET)
    assert math.isnan(found["precision"].value)
    assert "large errors" not in str(found)


@pytest.mark.filterwarnings("ignore:The released numbers give no bound")
@pytest.mark.parametrize("epsilon", [0.5, 1])
def test_errors_of_mostly_zeros_are_in_their_intervals_or_have_no_end(epsilon):
    """Noise hides the other rows. Twelve intervals of 95 % miss more than three by chance 2e-3."""
    times = 100.0
    truth = 0.77 * times + 0.23 * 1_400  # the mean of |y - 100|, nearly: few y are below 100
    missed = 0
    for seed in range(12):
        rng = np.random.default_rng(seed)
        y = np.where(rng.random(2_000) < 0.77, 0.0, 100 + rng.gamma(2, 700, 2_000))
        model = LinearRegression().fit(np.array([[0.0], [1.0]]), [times, times])
        found = evaluate(
            model, np.zeros((2_000, 1)), y, epsilon=epsilon, trusted_rowwise=True,
            noise="simulated", random_state=seed,
        )  # fmt: skip
        missed += not found["mae"].low <= truth <= found["mae"].high
        if not found["constant"].reliable:
            assert found["mae"].high == found["constant_rmse"].high == math.inf
    assert missed <= 3


@pytest.mark.filterwarnings("ignore:The released numbers give no bound")
def test_the_errors_of_a_heavy_tail_fit_together():
    """More is clipped of squares: the RMSE was below the MAE in 9 of these 10 evaluations."""
    chance = np.random.default_rng(0)
    X, y = np.ones((2_000, 1)), chance.lognormal(0, 2.5, 2_000)
    model = LinearRegression().fit(X, y)
    for seed in range(10):
        found = evaluate(
            model, X, y, epsilon=2, trusted_rowwise=True, noise="simulated", random_state=seed
        )
        assert found["rmse"].value >= found["mae"].value
        assert found["rmse"].high >= found["mae"].high
        assert found["rmse"].low <= found["rmse"].value <= found["rmse"].high


@pytest.mark.filterwarnings("ignore:The released numbers give no bound")
def test_it_says_how_many_large_errors_noise_may_hide():
    """Twice as many rows as it says, six deviations of a count, show; a third hardly ever do."""
    rows, held = 270, {1 / 3: 0, 2.0: 0}
    for seed in range(6):
        for times in held:
            X = np.random.default_rng(seed).normal(size=(N, 1))
            y = X[:, 0] + 0.1 * np.random.default_rng(seed + 99).normal(size=N)
            y[: round(times * rows)] += 1_000
            model = LinearRegression().fit(X, X[:, 0])
            found = evaluate(
                model, X, y, epsilon=0.5, trusted_rowwise=True, noise="simulated", random_state=seed
            )
            (said,) = (note for note in found.notes if note.startswith("Noise may hide about"))
            assert said in str(found)
            assert int(said.split()[4]) == rows
            held[times] += found["mae"].low <= np.abs(y - X[:, 0]).mean() <= found["mae"].high
    assert held[2.0] == 6
    assert held[1 / 3] <= 2
    exact = evaluate(model, X, y, epsilon=1e6, trusted_rowwise=True, **QUIET)
    assert not any("hide" in note for note in exact.notes)


def test_what_a_constant_that_nobody_knows_explains_is_not_known():
    """92 % zeros: of the noise of their scale, R2 was minus 5e8."""
    chance = np.random.default_rng(0)
    X = np.ones((2_000, 1))
    y = np.where(chance.random(2_000) < 0.08, chance.lognormal(8, 1, 2_000), 0.0)
    model = LinearRegression().fit(X, y)
    with pytest.warns(AccuracyWarning, match="no bound for .*R2"):
        found = evaluate(model, X, y, epsilon=0.5, trusted_rowwise=True, **QUIET)
    assert "R2 and D2 are not known" in " ".join(found.notes)
    assert math.isnan(found["r2"].value)


def test_the_constant_of_rates_is_the_rate_where_its_interval_is_open():
    rng = np.random.default_rng(0)
    years = rng.uniform(0.1, 1.0, 20_000)
    claims = rng.poisson(0.5 * years)
    X = rng.normal(size=(20_000, 1))
    model = DPPoissonRegressor(epsilon=2, **QUIET).fit(X, claims, exposure=years)
    opened = 0
    for seed in range(5):
        found = evaluate(
            model, X, claims, exposure=years, epsilon=0.15, noise="simulated", random_state=seed
        )
        assert found["constant"].value == pytest.approx(0.5, rel=0.3)
        if not found["constant"].reliable:
            opened += 1
            assert found["d2"].low == -math.inf
            assert any("mean rate" in note for note in found.notes)
    assert opened


def test_a_missing_cell_is_not_told(numbers):
    """Prediction of a file warns of missing cells; an evaluation must not."""
    X, y = numbers
    model = DPLinearRegression(epsilon=1, **QUIET).fit(pd.DataFrame(X, columns=list("abc")), y)
    frame = pd.DataFrame(X, columns=list("abc"))
    frame.iloc[0, 0] = np.nan
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        evaluate(model, frame, y, epsilon=1, **QUIET)


def test_bad_input_is_refused_with_what_to_do(numbers):
    X, y = numbers
    model = LinearRegression().fit(X[:500], y[:500])
    frame = pd.DataFrame(X, columns=list("abc")).assign(cost=y)
    for arguments, options, said in (
        ((model, X), {}, "Pass the true targets"),
        ((model, X, y[:10]), {"trusted_rowwise": True}, "must have the 10 rows of y, not"),
        ((model, frame, "cost"), {}, "without that column"),
        ((LinearRegression(), X, y), {"confidence": 2}, "confidence"),
        ((object(), X, y), {}, "has no predict"),
    ):
        with pytest.raises(InvalidInput, match=said):
            evaluate(*arguments, epsilon=1, **options, **QUIET)
    fitted = DPLinearRegression(epsilon=1, **QUIET).fit(X, y)
    with pytest.raises(InvalidInput, match="must have the 3 features of the model"):
        evaluate(fitted, X[:, :2], y, epsilon=1, **QUIET)


@pytest.mark.parametrize("wrong", ["features", "rows", "names"])
def test_what_is_refused_costs_nothing(numbers, wrong):
    """The target was paid for before it showed that the model takes other features."""
    X, y = numbers[0][:500], numbers[1][:500]
    named = {"a": X[:, 0], "b": X[:, 1]}
    model = DPLinearRegression(epsilon=1, **QUIET).fit(named if wrong == "names" else X, y)
    rows = {"features": X[:, :2], "rows": X[1:], "names": {"a": X[:, 0]}}[wrong]
    ledger = Ledger(epsilon=10, delta=1e-3)
    with pytest.raises(InvalidInput):
        evaluate(model, rows, y, epsilon=1, ledger=ledger)
    assert ledger.entries() == ()


@pytest.mark.parametrize("power", [1.0, 1.5, 2.0])
@pytest.mark.parametrize("size", [1e-300, 1e-100, 1e200])
def test_amounts_of_any_size_have_a_deviance(power, size):
    """Powers of a released scale were no numbers: an evaluation ended when half was paid."""
    X = np.random.default_rng(0).normal(size=(500, 2))
    y = size * np.random.default_rng(1).exponential(size=500)
    model = DPPoissonRegressor(epsilon=9, **QUIET).fit(X, np.ones(500))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", AccuracyWarning)
        found = evaluate(model, X, y, epsilon=1e6, power=power, **QUIET)
    assert not math.isnan(found["deviance"].low)


def test_the_better_of_two_models(numbers, labels):
    X, y = numbers
    good, bad = LinearRegression().fit(X, y), LinearRegression().fit(X[:, :1], y)

    class FirstColumn:
        def predict(self, X: Any) -> Any:
            return bad.predict(X[:, :1])

    found = compare(good, FirstColumn(), X, y, epsilon=1, trusted_rowwise=True, **QUIET)
    assert found.better == "first"
    assert found.p_value < 1e-6
    assert "difference of the mean absolute errors, first less second" in str(found)
    assert "p-value below 1e-300" in str(replace(found, p_value=0.0))
    truth = np.abs(y - good.predict(X)).mean() - np.abs(y - bad.predict(X[:, :1])).mean()
    near(found.difference, truth, 0.3)
    X, y = labels
    good, bad = LogisticRegression().fit(X, y), LogisticRegression(C=1e-4).fit(X, y)
    found = compare(bad, good, X, y, epsilon=1, trusted_rowwise=True, **QUIET)
    assert (found.better, found.p_value < 1e-3) == ("second", True)
    assert str(found).startswith("The second model is better")
    assert "difference of the mean log losses" in str(found)
    same = compare(good, good, X, y, epsilon=1, trusted_rowwise=True, **QUIET)
    assert same.p_value > 0.01
    assert str(same).startswith("Neither model is shown to be better")


class Asked:
    """A model of another library, with what it is given."""

    def __init__(self, **has: Any) -> None:
        vars(self).update(has)

    def predict(self, X: Any) -> Any:
        return X[:, 0]

    def predict_proba(self, X: Any) -> Any:
        return np.ones((len(X), 1))


@pytest.mark.parametrize("classes", [[1], [], 0, {0, 1}, np.array(["a"])])
def test_a_model_of_fewer_than_two_labels_is_refused_before_the_charge(labels, classes):
    X, y = labels
    model, ledger = Asked(classes_=classes), Ledger(epsilon=9, delta=1e-5)
    for call in (evaluate, partial(compare, model)):
        with pytest.raises(InvalidInput, match="at least two labels"):
            call(model, X, y, epsilon=1, ledger=ledger)
    assert not ledger.entries()


@pytest.mark.parametrize("quantile", [lambda level: level, None, "median"])
def test_a_quantile_that_is_no_number_is_no_quantile_of_the_model(numbers, quantile):
    X, y = (some[:50] for some in numbers)
    assert "coverage" not in evaluate(Asked(quantile=quantile), X, y, epsilon=9, **QUIET)


@pytest.mark.parametrize(
    ("model", "said"),
    [
        (DPLogisticRegression(), "is not fitted"),
        (DPLogisticRegression, "is not fitted"),
        (LogisticRegression(), "is not fitted"),
        (make_pipeline(StandardScaler(), LogisticRegression()), "is not fitted"),
        ("model.json", "privtail.load"),
    ],
)
def test_what_is_not_fitted_is_refused_before_the_charge(model, said):
    """Its predictions would all fail, and count as zeros that the budget pays for."""
    ledger = Ledger(epsilon=1.0, delta=1e-5)
    with pytest.raises(InvalidInput, match=said):
        evaluate(model, np.ones((50, 2)), np.arange(50.0), epsilon=0.5, ledger=ledger)
    assert not ledger.entries()


def test_a_target_in_other_units_is_noted(numbers):
    """The model is of thousands there; with its own units, and for a quantile, nothing is said."""
    X, y = numbers
    model = LinearRegression().fit(X, y)
    asked = {"epsilon": 1.0, "trusted_rowwise": True, **QUIET}
    assert "units of the target" in str(evaluate(model, X, y / 1_000, **asked))
    assert "units" not in str(evaluate(model, X, y, **asked))
    assert "units" not in str(evaluate(model, X, y - 50, quantile=0.9, **asked))


def test_one_row_is_one_row(numbers):
    X, y = numbers
    model = LinearRegression().fit(X, y)
    with pytest.warns(AccuracyWarning):
        found = evaluate(model, X[:1], y[:1], epsilon=1, **QUIET)
    assert str(found).startswith("1 row; ")


@pytest.mark.parametrize("kind", [pd.DataFrame, pl.DataFrame])
def test_a_model_of_scikit_learn_gets_its_own_columns(numbers, kind):
    """By their names, as models of privtail do: in another order it would fail for every row."""
    X, y = numbers
    columns = {"a": X[:, 0], "b": X[:, 1]}
    model = LinearRegression().fit(kind(columns), y)
    asked = {"epsilon": math.inf, "trusted_rowwise": True}
    expected = evaluate(model, kind(columns), y, **asked)
    more = kind({"z": y, "b": columns["b"], "a": columns["a"]})
    assert evaluate(model, more, y, **asked)["mae"] == expected["mae"]
    assert compare(model, model, more, y, **asked).difference.value == 0


@pytest.mark.parametrize(
    ("X", "said"),
    [
        (pd.DataFrame({"a": np.ones(50), "B": np.ones(50)}), "no column 'b'"),
        (pd.DataFrame(np.ones((50, 3)), columns=["a", "b", "b"]), "have the name 'b'"),
        (np.ones((50, 3)), "takes 2 features, but X has 3"),
    ],
)
def test_columns_that_a_model_was_not_fitted_to_are_refused_before_the_charge(X, said):
    frame = pd.DataFrame({"a": np.arange(50.0), "b": np.arange(50.0) ** 2})
    model, ledger = LinearRegression().fit(frame, frame["a"]), Ledger(epsilon=1.0, delta=1e-5)
    asked = {"epsilon": 0.5, "ledger": ledger}
    for ask in (
        lambda *t: evaluate(model, *t, **asked),
        lambda *t: compare(model, model, *t, **asked),
    ):
        with pytest.raises(InvalidInput, match=said):
            ask(X, frame["a"])
    assert not ledger.entries()


def test_misspelt_labels_are_told_in_a_note(labels):
    """Noise alone was shown, and more rows were advised."""
    X, y = labels
    model = LogisticRegression().fit(X, np.where(y > 0, "yes", "no"))
    asked = {"epsilon": 1, "trusted_rowwise": True, **QUIET}
    with pytest.warns(AccuracyWarning, match="may help"):
        found = evaluate(model, X, np.where(y > 0, "Yes", "No"), **asked)
    assert any("compare the spelling" in note for note in found.notes)
    fine = evaluate(model, X, np.where(y > 0, "yes", "no"), **asked)
    assert not any("compare the spelling" in note for note in fine.notes)


@pytest.mark.parametrize("shares", [(0.995, 0.005), (0.985, 0.015), (0.99, 0.005, 0.005)])
def test_an_interval_holds_the_log_loss_of_shares_of_rare_labels(shares):
    """Below 90 % with a chance of less than 1e-4. By the delta method 64 to 84 % held the truth."""
    chance, held, runs = np.random.default_rng(0), 0, 400
    noisy = Noisy(std=9.0, sampled=True, z=1.96)
    truth = metrics.log_loss(np.arange(len(shares)), [shares] * len(shares), sample_weight=shares)
    for _ in range(runs):
        table = np.column_stack([chance.multinomial(3_000, shares), np.zeros((len(shares), 19))])
        found = noisy.entropy(table + chance.normal(scale=noisy.std, size=table.shape))
        held += found.low <= truth <= found.high
        assert str(found.value) != "-0.0"
    assert held >= 0.9 * runs


def test_labels_that_noise_hides_widen_the_log_loss_of_the_shares():
    found = Noisy(std=6.0, sampled=True, z=1.96).entropy(np.array([[2_990.0], [-8.0]]))
    assert found.value == found.low == 0
    assert 0.005 < found.high < 0.05
    hidden = Noisy(std=6.0, sampled=False, z=1.96).entropy(np.array([[10.0], [9.0]]))
    assert hidden.low == 0
    assert hidden.high == pytest.approx(math.log(2))


def test_a_score_or_column_that_is_not_there_is_answered_with_those_that_are(labels):
    """The table prints AUC and log loss, and their names are auc and log_loss."""
    X, y = labels
    model = LogisticRegression().fit(X, y)
    found = evaluate(model, X, y, epsilon=5.0, trusted_rowwise=True, **QUIET)
    for name, meant in (("AUC", "auc"), ("log loss", "log_loss")):
        with pytest.raises(KeyError, match=f"Is '{meant}' meant. There are: accuracy, "):
            found[name]
    assert "AUC" not in found
    assert found.get("f1") is None
    summary = privtail.summarize(pd.DataFrame({"loan": X[:, 0]}), epsilon=5.0, **QUIET)
    with pytest.raises(KeyError, match=r"no column 'lone'\. Is 'loan' meant"):
        summary["lone"]


def test_two_models_that_agree_are_said_to_be_hidden_by_noise() -> None:
    X = np.random.default_rng(0).normal(size=(2_000, 2))
    model = LinearRegression().fit(X, X[:, 0])
    found = compare(
        model, model, X, X[:, 1], epsilon=1, trusted_rowwise=True, noise="simulated", random_state=0
    )
    assert found.difference.high == np.inf
    assert "cannot be told apart" in str(found)
    (said,) = found.privacy_.notes  # of columns and codes, which a comparison has not, nothing
    assert "losses differ" in said


@pytest.mark.parametrize(
    ("mean", "n", "epsilon", "score"),
    [(0.1, 20_000, 2.0, "constant_rmse"), (0.2, 10_000, 1.0, "constant_deviance")],
)
def test_noise_may_hide_the_counts_above_one(mean: float, n: int, epsilon: float, score: str):
    # Squared errors of 0, 1 and 2 lie at .01, .8 and 3.6: the second says nothing of the third.
    # If intervals held .95, 16 or fewer of 20 would hold in .016 of the cases; noise is seeded.
    model = DPPoissonRegressor(epsilon=math.inf).fit(np.eye(2), [mean, mean])
    k, law = np.arange(12), [math.exp(-mean) * mean**k / math.factorial(k) for k in range(12)]
    truth = {
        "constant_rmse": math.sqrt(mean),
        "constant_deviance": metrics.mean_poisson_deviance(k, np.full(12, mean), sample_weight=law),
    }[score]
    held = 0
    for seed in range(20):
        counts = np.random.default_rng(seed).poisson(mean, n)
        found = evaluate(
            model, np.zeros((n, 2)), counts, epsilon=epsilon, noise="simulated", random_state=seed
        )
        held += found[score].low <= truth <= found[score].high
    assert held > 16
