"""DPLogisticRegression: accuracy, labels declared and bought, manners, and hostile records."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import log_loss, roc_auc_score
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from privtail import Ledger, PrivateSearchCV, open_table
from privtail.algorithms import (
    CatoniDescent,
    MedianOfMeansDescent,
    ProximalGradient,
    StochasticProximalGradient,
)
from privtail.errors import BudgetExceeded, InvalidInput
from privtail.linear_model import DPLogisticRegression
from privtail.robust_means import ClampedMean

SIMULATED = {"noise": "simulated", "random_state": 0}


@pytest.fixture
def labelled(small):
    X, y = small
    return X, np.where(y > 2, "yes", "no")


@pytest.fixture
def three(small):
    X, y = small
    return X, np.array(["low", "mid", "top"])[np.digitize(y, [1.0, 3.0])]


@pytest.mark.parametrize("seed", [0, 1])
def test_the_default_is_as_accurate_as_without_privacy(large, seed):
    """The non-private fit of the comparison reaches .8862."""
    X, y, X_test, y_test = large
    model = DPLogisticRegression(
        epsilon=0.1, delta=1e-5, classes=[False, True], noise="simulated", random_state=seed
    )
    assert model.fit(X, y > 0).score(X_test, y_test > 0) >= 0.885


@pytest.mark.parametrize(("count", "kept"), [(3, 3), (70, 64)])
def test_a_statement_says_how_many_labels_there_was_room_for(count, kept):
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(10_000, 2)), rng.integers(0, count, 10_000) - 5
    model = DPLogisticRegression(**SIMULATED | {"epsilon": 8.0})
    assert "planned for up to 64 classes" in str(model.plan(10_000, 2))
    model.fit(X, y)
    assert model.classes_.tolist() == list(range(-5, kept - 5))
    said = "count as zero" if count > kept else "for 64 classes; 3 were found"
    assert said in model.privacy_.notes[0]
    declared = DPLogisticRegression(classes=[0, 1, 2], **SIMULATED)
    assert not any("64" in note for note in declared.fit(X, y).privacy_.notes)
    assert "classes" not in str(declared.plan(10_000, 2))


def test_labels_declared_and_bought(labelled):
    X, y = labelled
    declared = DPLogisticRegression(classes=["no", "yes"], **SIMULATED).fit(X, y)
    bought = DPLogisticRegression(**SIMULATED).fit(X, y)
    for model in (declared, bought):
        assert list(model.classes_) == ["no", "yes"]
        assert model.score(X, y) > 0.7
        assert set(model.predict(X)) == {"no", "yes"}
    assert [r.events[0].law for r in declared.privacy_.plan] == ["gaussian"] * 8
    assert [r.events[0].law for r in bought.privacy_.plan] == ["gaussian_labels"] + ["gaussian"] * 8
    for model in (declared, bought):
        assert 0.99 < model.privacy_.cost.epsilon(1e-6) <= 1.0


def test_classes_are_sorted_as_in_scikit_learn(labelled):
    """Scorers and calibrators take column k of probabilities for the k-th class in this order."""
    X, y = labelled
    orders = (["no", "yes"], ["yes", "no"], {"yes", "no"}, np.array(["yes", "no"]))
    models = [
        DPLogisticRegression(epsilon=5.0, classes=classes, **SIMULATED).fit(X, y)
        for classes in orders
    ]
    for model in models:
        assert list(model.classes_) == ["no", "yes"]
        assert np.array_equal(model.coef_, models[0].coef_)
        assert roc_auc_score(y, model.predict_proba(X)[:, 1]) > 0.8
        assert log_loss(y, model.predict_proba(X)) < 0.6
        assert np.array_equal(model.predict(X) == "yes", model.decision_function(X) > 0)
    CalibratedClassifierCV(DPLogisticRegression(classes=["yes", "no"], **SIMULATED), cv=2).fit(X, y)
    search = PrivateSearchCV(
        DPLogisticRegression(classes=["yes", "no"]), {"C": [1.0]}, trials=1, **SIMULATED
    ).fit(X, y)
    assert list(search.classes_) == ["no", "yes"]


def test_weights_follow_labels_and_not_positions(labelled):
    X, y = labelled
    options = {"class_weight": {"yes": 50.0}, "epsilon": 50.0, **SIMULATED}
    for classes in (["no", "yes"], ["yes", "no"], None):
        model = DPLogisticRegression(classes=classes, **options).fit(X, y)
        assert np.mean(model.predict(X) == "yes") > 0.8


@pytest.mark.parametrize(
    ("given", "order"),
    [([2, 0.5, 1], [0.5, 1, 2]), (["b", 3, "a", 1.5], [1.5, 3, "a", "b"]), ([10, 9], [9, 10])],
)
def test_bought_and_declared_labels_have_one_order(given, order):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(4_000, 2))
    y = np.array(given, dtype=object)[rng.integers(0, len(given), 4_000)]
    for classes in (given, None):
        model = DPLogisticRegression(**SIMULATED | {"epsilon": 8.0}, classes=classes).fit(X, y)
        assert model.classes_.tolist() == order


def test_labels_that_can_be_read_once_are_refused(labelled):
    with pytest.raises(InvalidInput, match="list of labels"):
        DPLogisticRegression(classes=iter(["no", "yes"])).fit(*labelled)


@pytest.mark.parametrize(
    "values",
    [[0, 1], [1.5, -2.5], [False, True], ["a", "b"]],
    ids=["integers", "floats", "booleans", "strings"],
)
def test_kinds_of_labels(labelled, values):
    X, y = labelled
    target = np.array(values)[(y == "yes").astype(int)]
    for classes in (values, None):
        model = DPLogisticRegression(classes=classes, **SIMULATED).fit(X, target)
        assert np.mean(model.predict(X) == target) > 0.7
        assert set(model.classes_.tolist()) == set(values)


def test_undeclared_labels_are_dropped(labelled):
    """Rows of an undeclared or missing label contribute nothing, to the bit."""
    X, y = labelled
    y = y.astype(object)
    hidden, missing, zeroed = y.copy(), y.copy(), X.copy()
    hidden[::3], missing[::3], zeroed[::3] = "surprise", None, np.nan
    settings = {"classes": ["no", "yes"], **SIMULATED}
    models = [
        DPLogisticRegression(**settings).fit(records, target).coef_
        for records, target in ((X, missing), (X, hidden))
    ]
    assert np.array_equal(*models)
    # A row that is not finite is not counted among the scales either.
    fixed = ProximalGradient(steps=20, step_size=0.5, threshold=1.0)
    models = [
        DPLogisticRegression(algorithm=fixed, **settings).fit(records, target).coef_
        for records, target in ((X, hidden), (zeroed, y))
    ]
    assert np.array_equal(*models)


def test_a_rare_label_is_not_found(labelled):
    X, y = labelled
    y[:3] = "maybe"
    model = DPLogisticRegression(**SIMULATED).fit(X, y)
    assert list(model.classes_) == ["no", "yes"]


@pytest.mark.usefixtures("simulated_is_booked")
def test_too_few_labels(labelled):
    X, y = labelled
    ledger = Ledger(epsilon=1.0, delta=1e-5)
    for classes, message in ((["yes"], "two classes"), ([], "two classes"), (["a"] * 2, "distin")):
        with pytest.raises(InvalidInput, match=message):
            DPLogisticRegression(classes=classes, ledger=ledger, **SIMULATED).fit(X, y)
    assert ledger.entries() == ()
    # What was bought decides, so the budget is spent, and only released labels are told.
    with pytest.raises(
        InvalidInput, match=r"shows one\..*about \d+ of the n.*budget is spent.*classes="
    ):
        DPLogisticRegression(ledger=ledger, **SIMULATED).fit(X, np.full(len(X), "secret"))
    assert len(ledger.entries()) == 1


def test_shapes_of_two_classes(labelled):
    X, y = labelled
    model = DPLogisticRegression(classes=["no", "yes"], **SIMULATED).fit(X, y)
    assert model.coef_.shape == (1, 3)
    assert model.intercept_.shape == (1,)
    assert model.decision_function(X[:5]).shape == (5,)
    assert model.predict_proba(X[:5]).shape == (5, 2)
    assert model.predict_proba(X).sum(axis=1) == pytest.approx(1.0)
    assert model.predict(X[:5]).shape == (5,)
    assert np.array_equal(
        model.predict(X), model.classes_[(model.predict_proba(X)[:, 1] > 0.5).astype(int)]
    )
    assert model.predict_proba(sparse.csr_matrix(X)) == pytest.approx(model.predict_proba(X))


def test_shapes_and_accuracy_of_three_classes(three):
    X, y = three
    for classes in (["low", "mid", "top"], None):
        model = DPLogisticRegression(epsilon=4.0, classes=classes, **SIMULATED).fit(X, y)
        assert model.coef_.shape == (3, 3)
        assert model.intercept_.shape == (3,)
        assert model.decision_function(X[:5]).shape == (5, 3)
        assert model.predict_proba(X).sum(axis=1) == pytest.approx(1.0)
        assert model.score(X, y) > 0.5
        majority = max(np.mean(y == label) for label in set(y))
        assert model.score(X, y) > majority + 0.05


def test_a_class_that_nobody_has_is_improbable(labelled):
    X, y = labelled
    classes = ["no", "yes", "never"]
    model = DPLogisticRegression(epsilon=4.0, classes=classes, **SIMULATED).fit(X, y)
    assert model.predict_proba(X)[:, list(model.classes_).index("never")].mean() < 0.2


ALGORITHMS = {
    "catoni": CatoniDescent(steps=40, step_size=0.5, scale=10.0, smoothing=3.0),
    "proximal": ProximalGradient(steps=60, step_size=0.5, threshold=2.0),
    "stochastic": StochasticProximalGradient(
        mean=ClampedMean(2.0, blocks=3), steps=40, step_size=1.0
    ),
    "medians": MedianOfMeansDescent(steps=40, step_size=0.5, threshold=10.0, blocks=3),
}


@pytest.mark.parametrize("name", ALGORITHMS)
@pytest.mark.parametrize("C", [1.0, 0.01, math.inf])
def test_algorithms_as_objects(labelled, name, C):
    """With the default ridge penalty and without it."""
    X, y = labelled
    model = DPLogisticRegression(
        C, epsilon=20.0, classes=["no", "yes"], algorithm=ALGORITHMS[name], **SIMULATED
    )
    assert model.fit(X, y).score(X, y) > 0.7


def test_the_penalty_shrinks_slopes_and_not_the_intercept(labelled):
    X, y = labelled
    y = np.where(np.arange(len(y)) % 3, "yes", y)
    norms = []
    for C in (1e-5, 1e-3, 1.0):
        model = DPLogisticRegression(C, epsilon=math.inf, classes=["no", "yes"]).fit(X, y)
        norms.append(np.linalg.norm(model.coef_))
        assert model.intercept_[0] > 0.5
    assert norms[0] < norms[1] < norms[2]
    for wrong in (0, -1.0, math.nan):
        with pytest.raises(InvalidInput, match="C must be above 0"):
            DPLogisticRegression(wrong).fit(X, y)


def test_without_privacy_it_agrees_with_scikit_learn(labelled):
    X, y = labelled
    model = DPLogisticRegression(epsilon=math.inf, classes=["no", "yes"]).fit(X, y)
    reference = LogisticRegression().fit(X, y)
    assert np.mean(model.predict(X) == reference.predict(X)) > 0.97
    assert model.privacy_.headline == "NOT PRIVATE: epsilon is infinite"


@pytest.mark.usefixtures("simulated_is_booked")
def test_statement_and_pipeline(labelled):
    X, y = labelled
    ledger = Ledger(epsilon=1.0, delta=1e-4)
    model = DPLogisticRegression(
        epsilon=0.125, delta=1e-6, classes=["no", "yes"], ledger=ledger, **SIMULATED
    )
    assert clone(model).get_params() == model.get_params()
    GridSearchCV(model, {"C": [0.1, 1.0]}, cv=2).fit(X, y)
    assert len(ledger.entries()) == 5
    make_pipeline(StandardScaler(), model).fit(X, y)
    assert len(ledger.entries()) == 6
    exact = DPLogisticRegression(
        epsilon=0.25, delta=1e-6, classes=["no", "yes"], ledger=ledger
    ).fit(X, y)
    assert exact.privacy_.private
    assert 0.24 < exact.privacy_.spent <= 0.25
    with pytest.raises(BudgetExceeded):
        model.fit(X, y)
    assert len(ledger.entries()) == 7


def test_frames_with_declared_categories(labelled):
    X, y = labelled
    frame = pd.DataFrame({"a": X[:, 0], "answer": y})
    model = DPLogisticRegression(
        epsilon=4.0, classes=["no", "yes"], categories={"answer": ["no", "yes"]}, **SIMULATED
    ).fit(frame, y)
    assert model.coef_.shape == (1, 3)
    assert model.coef_[0, 2] > model.coef_[0, 1]


@pytest.mark.usefixtures("few_steps")
@pytest.mark.parametrize("epsilon", [0.05, 1.0, math.inf])
@pytest.mark.parametrize("K", [2, 3])
def test_no_record_is_worth_a_word(hostile, epsilon, K, capsys):
    X, y = hostile
    target = np.arange(len(y)) % K
    model = DPLogisticRegression(epsilon=epsilon, classes=list(range(K)), **SIMULATED)
    model.fit(X, target)
    assert np.isfinite(model.coef_).all()
    assert np.isfinite(model.intercept_).all()
    # The target of one class, of none that was declared, or of missing values.
    label = {0.05: 0.0, 1.0: 99.0, math.inf: math.nan}[epsilon]
    assert np.isfinite(model.fit(X, np.full(len(y), label)).coef_).all()
    assert capsys.readouterr() == ("", "")


def test_more_labels_than_rows_allow_are_warned_of():
    """With a quarter of the budget 88 rows must hold a label for it to be found."""
    model, declared = DPLogisticRegression(), DPLogisticRegression(classes=[0, 1])
    assert any("Declare the classes" in text for text in model.plan(170, 3).warnings)
    assert not any("Declare" in text for text in model.plan(180, 3).warnings)
    assert not any("Declare" in text for text in declared.plan(170, 3).warnings)
    assert "a label is found if 88 rows or more hold it" in str(model.plan(180, 3))
    assert "is found" not in str(declared.plan(180, 3))


@pytest.mark.parametrize(
    ("odd", "says"),
    [("maybe", "not among the declared"), (None, "missing labels"), ("no", "1 class")],
)
@pytest.mark.parametrize("kind", ["frame", "parquet", "csv", "scratch"])
def test_odd_labels_are_refused_on_request(tmp_path, small, odd, says, kind):
    X, y = small
    labels = np.where(y > 2, "yes", "no").astype(object) if odd != "no" else np.full(1_500, "no")
    frame = pd.DataFrame(X, columns=list("abc")).assign(late=labels)
    frame.loc[1_000, "late"] = odd
    ledger = Ledger(epsilon=9, delta=1e-5)
    model = DPLogisticRegression(classes=["no", "yes"], invalid="raise", ledger=ledger)
    if kind == "frame":
        records, target = frame.drop(columns="late"), frame["late"]
    else:
        path = tmp_path / f"t.{kind}"
        (frame.to_csv if kind == "csv" else frame.to_parquet)(path, index=False)
        records = open_table(path, scratch=tmp_path if kind == "scratch" else None)
        target = "late"
    if kind == "csv" and odd is None:
        says = "not among the declared"  # a CSV cannot tell a missing text from an empty one
    with pytest.raises(InvalidInput, match=says):
        model.fit(records, target)
    assert ledger.entries() == ()
