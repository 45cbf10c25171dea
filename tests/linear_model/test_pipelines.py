"""audit_pipeline: which steps read records without paying."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.compose import ColumnTransformer, TransformedTargetRegressor
from sklearn.decomposition import PCA
from sklearn.ensemble import StackingRegressor
from sklearn.feature_extraction.text import HashingVectorizer
from sklearn.feature_selection import SelectKBest
from sklearn.impute import SimpleImputer
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import FeatureUnion, make_pipeline
from sklearn.preprocessing import (
    Binarizer,
    FunctionTransformer,
    Normalizer,
    OneHotEncoder,
    PolynomialFeatures,
    StandardScaler,
)

from privtail import audit_pipeline
from privtail.errors import InvalidInput
from privtail.linear_model import MODELS, DPRidge

UNPAID = {
    "scaler": (make_pipeline(StandardScaler(), DPRidge()), ["standardscaler"]),
    "imputer and selector": (
        make_pipeline(SimpleImputer(), SelectKBest(), DPRidge()),
        ["simpleimputer", "selectkbest"],
    ),
    "columns": (
        make_pipeline(
            ColumnTransformer(
                [
                    ("numbers", make_pipeline(SimpleImputer(), Normalizer()), ["a"]),
                    ("words", OneHotEncoder(), ["b"]),
                    ("away", "drop", ["c"]),
                ],
                remainder=StandardScaler(),
            ),
            DPRidge(),
        ),
        [
            "columntransformer.numbers.simpleimputer", "columntransformer.words",
            "columntransformer.remainder",
        ],
    ),
    "union": (
        make_pipeline(FeatureUnion([("p", PolynomialFeatures()), ("q", PCA())]), DPRidge()),
        ["featureunion.q"],
    ),
    "target": (
        TransformedTargetRegressor(DPRidge(), transformer=StandardScaler()),
        ["transformer"],
    ),
    "target function": (
        TransformedTargetRegressor(DPRidge(), func=np.log, inverse_func=np.exp),
        ["func"],
    ),
    "search": (GridSearchCV(DPRidge(), {"alpha": [1.0]}), ["GridSearchCV"]),
    "stack": (StackingRegressor([("one", DPRidge())]), ["StackingRegressor"]),
    "not ours": (PCA(), ["PCA"]),
    "simulated": (DPRidge(noise="simulated"), ["DPRidge"]),
    "infinite": (make_pipeline(DPRidge(epsilon=float("inf"))), ["dpridge"]),
}  # fmt: skip


@pytest.mark.parametrize("name", UNPAID)
def test_what_reads_without_paying(name):
    pipeline, expected = UNPAID[name]
    audit = audit_pipeline(pipeline)
    assert [step.name for step in audit.unpaid] == expected
    assert not audit
    assert f"{len(expected)} step" in str(audit)
    for step in expected:
        assert step in str(audit)


@pytest.mark.parametrize("name", MODELS)
def test_what_pays_or_reads_nothing(name):
    steps = (Binarizer(), FunctionTransformer(np.abs), HashingVectorizer(), MODELS[name]())
    audit = audit_pipeline(make_pipeline("passthrough", *steps))
    assert audit
    assert audit.unpaid == ()
    assert [step.verdict for step in audit.steps] == ["reads nothing"] * 3 + ["pays"]
    assert "every step that reads records pays" in str(audit)
    assert "0 unpaid" in repr(audit)


def test_what_is_no_estimator():
    with pytest.raises(InvalidInput, match="needs an estimator"):
        audit_pipeline([1, 2])
