"""A fit that is refused or fails changes nothing; one that ends leaves nothing of the last one."""

from __future__ import annotations

import copy

import numpy as np
import pandas as pd
import pytest
from sklearn.ensemble import BaggingRegressor

from privtail import DPMean, DPScaler, Ledger, PrivateSearchCV
from privtail.errors import BudgetExceeded, InvalidInput
from privtail.linear_model import MODELS, DPRidge
from privtail.trusted.curator import Curator

SIMULATED = {"noise": "simulated", "random_state": 0}
MAKERS = {
    **MODELS,
    "mean": DPMean,
    "scaler": DPScaler,
    "search": lambda **options: PrivateSearchCV(DPRidge(), {"alpha": [1.0]}, trials=1, **options),
}
every = pytest.mark.parametrize("name", MAKERS)


def data(name, columns="ab"):
    X = np.random.default_rng(0).normal(size=(300, len(columns)))
    least = 1.0 if name == "gamma" else 0.0  # gamma has no zeros
    y = X[:, 0] > 0 if "logistic" in name else least + np.round(np.abs(X[:, 0]) * 3)
    return pd.DataFrame(X, columns=list(columns)), y


def fitted(model):
    """Its attributes, of which a fit makes new ones."""
    return {name: value for name, value in vars(model).items() if name.endswith("_")}


@pytest.mark.usefixtures("simulated_is_booked")
@every
def test_a_refused_or_failed_fit_changes_nothing(name, monkeypatch):
    X, y = data(name)
    ledger = Ledger(epsilon=10.0, delta=1e-4)
    model = MAKERS[name](epsilon=6.0, ledger=ledger, **SIMULATED).fit(X, y)
    before, deep = fitted(model), copy.deepcopy({**fitted(model), "ledger": None})
    wider, same = data(name, "pqr")
    with pytest.raises(BudgetExceeded):
        model.fit(wider, same)
    model.set_params(ledger=None)
    with pytest.raises(InvalidInput):
        model.fit(wider, same[:7] if name not in ("mean", "scaler") else None, groups=[1, 2])
    with monkeypatch.context() as broken:
        broken.setattr(Curator, "_batch", lambda *_: (_ for _ in ()).throw(KeyboardInterrupt))
        with pytest.raises(KeyboardInterrupt):
            model.fit(wider, same)
    assert fitted(model).keys() == before.keys()
    for key, value in before.items():
        assert fitted(model)[key] is value
    assert list(model.feature_names_in_) == list(deep["feature_names_in_"])


@every
def test_nothing_of_the_last_fit_is_left(name):
    X, y = data(name)
    model = MAKERS[name](epsilon=6.0, **SIMULATED)
    if hasattr(model, "count_invalid"):
        model.set_params(count_invalid=0.1)
    model.fit(X, y)
    if hasattr(model, "count_invalid"):
        model.set_params(count_invalid=0.0)
    model.leftover_ = 1
    assert model.fit(X.to_numpy(), y) is model
    assert not {"n_invalid_", "feature_names_in_", "leftover_"} & fitted(model).keys()


def test_a_model_is_of_one_fit_as_a_whole(monkeypatch):
    """It was mixed of two fits, if another thread ended one while attributes were set."""
    model = DPRidge(epsilon=6.0, **SIMULATED)
    meanwhile = [lambda: model.set_params(epsilon=2.0).fit(np.ones((40, 3)), np.ones(40))]

    def setting(self, name, value):
        object.__setattr__(self, name, value)
        if self is model and name == "coef_" and meanwhile:
            meanwhile.pop()()

    monkeypatch.setattr(DPRidge, "__setattr__", setting, raising=False)
    X, y = data("ridge")
    model.fit(X, y)
    seen = (model.privacy_.n, model.privacy_.epsilon, len(model.coef_), model.n_features_in_)
    assert seen in [(300, 6.0, 2, 2), (40, 2.0, 3, 3)]
    assert hasattr(model, "feature_names_in_") == (seen[0] == 300)


@every
def test_no_sample_weights_are_none(name):
    X, y = data(name)
    model = MAKERS[name](epsilon=6.0, **SIMULATED).fit(X, y, sample_weight=None)
    assert model.privacy_
    with pytest.raises(InvalidInput, match="sample_weight"):
        model.fit(X, y, sample_weight=np.ones(len(y)))
    if hasattr(model, "score"):
        model.score(X, y, sample_weight=None)


def test_a_wrapper_may_pass_no_weights():
    X, y = data("ridge")
    BaggingRegressor(DPRidge(epsilon=6.0, **SIMULATED), n_estimators=1).fit(
        X, y, sample_weight=None
    )


def lengthened(cats, classes):
    cats["city"].append("Bonn")
    classes.append("maybe")


def emptied(cats, classes):
    cats.clear()
    classes.clear()


def turned(cats, classes):
    cats["city"].reverse()
    classes.reverse()


@pytest.mark.usefixtures("simulated_is_booked")
@pytest.mark.parametrize("changed", [lengthened, emptied, turned])
@pytest.mark.parametrize("when", ["charged", "fitted"])
@pytest.mark.parametrize("searched", [False, True])
def test_a_list_that_changes_later_changes_no_model(changed, when, searched, monkeypatch):
    """The caller's lists were those of the fit and of the model: predictions failed later."""
    frame = data("logistic")[0].assign(city=["Rome", "Oslo", "Pisa"] * 100)
    y, reserve, found = np.where(frame["a"] > 0, "yes", "no"), Ledger.reserve, []
    for change in (lambda *_: None, changed):
        cats, classes = {"city": ["Rome", "Oslo", "Pisa"]}, ["no", "yes"]
        later = {"charged": lambda *_: None, "fitted": lambda *_: None, when: change}

        def charged(self, cats=cats, classes=classes, later=later, **plan):
            later["charged"](cats, classes)
            return reserve(self, **plan)

        monkeypatch.setattr(Ledger, "reserve", charged)
        ledger = Ledger(epsilon=9.0, delta=1e-5)
        model = MODELS["logistic"](categories=cats, classes=classes)
        if searched:
            model = PrivateSearchCV(model, {"C": [1.0]}, trials=1)
        model.set_params(ledger=ledger, **SIMULATED).fit(frame, y)
        later["fitted"](cats, classes)
        found.append((model.predict_proba(frame[:9]).tolist(), model.classes_.tolist()))
        assert len(ledger.entries()) == 1
    assert found[0] == found[1]
