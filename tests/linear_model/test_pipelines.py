"""check_pipeline: which steps read records without paying."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.base import BaseEstimator, TransformerMixin
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

from privtail import check_pipeline
from privtail.errors import InvalidInput
from privtail.linear_model import MODELS, DPRidge


def standardized(X):
    """By means of the batch."""
    return (X - X.mean(axis=0)) / X.std(axis=0)


class OfTheBatch(Binarizer):
    """Says that it keeps nothing, and looks at all rows."""

    def transform(self, X, copy=None):
        return standardized(X)


class Untagged(TransformerMixin, BaseEstimator):
    """Tagged as one that needs no fit."""

    def fit(self, X, y=None):
        return self

    def transform(self, X):
        return standardized(X)

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.requires_fit = False
        return tags


class OfTheBatchFunction(FunctionTransformer):
    """A function of one number, and more."""

    def transform(self, X):
        return standardized(X)


UNPAID = {
    **{
        f"function {k}": (make_pipeline(step, DPRidge()), ["functiontransformer"])
        for k, step in enumerate(
            (
                FunctionTransformer(standardized),
                FunctionTransformer(lambda X: X),
                FunctionTransformer(np.cumsum),
                FunctionTransformer(np.matmul),
                FunctionTransformer(np.frompyfunc(abs, 1, 1)),
                FunctionTransformer(np.abs, kw_args={"where": np.array([True])}),
                FunctionTransformer(np.log, np.exp),
                FunctionTransformer(np.log, standardized, check_inverse=False),
            )
        )
    },
    "subclass": (make_pipeline(OfTheBatch(), DPRidge()), ["ofthebatch"]),
    "tagged": (make_pipeline(Untagged(), DPRidge()), ["untagged"]),
    "subclass of a function": (
        make_pipeline(OfTheBatchFunction(np.abs), DPRidge()),
        ["ofthebatchfunction"],
    ),
    "target by its mean": (
        TransformedTargetRegressor(
            DPRidge(), func=standardized, inverse_func=np.exp, check_inverse=False
        ),
        ["func"],
    ),
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
    found = check_pipeline(pipeline)
    assert [step.name for step in found.unpaid] == expected
    assert not found
    assert f"{len(expected)} step" in str(found)
    for step in expected:
        assert step in str(found)


@pytest.mark.parametrize("name", MODELS)
def test_what_pays_or_reads_nothing(name):
    logs = FunctionTransformer(np.log1p, np.expm1, check_inverse=False)
    steps = (Binarizer(), logs, HashingVectorizer(), MODELS[name]())
    found = check_pipeline(make_pipeline("passthrough", *steps))
    assert found
    assert found.unpaid == ()
    assert [step.verdict for step in found.steps] == ["reads nothing"] * 3 + ["pays"]
    assert "every step that reads rows pays" in str(found)
    assert "0 unpaid" in repr(found)


def test_a_target_by_elementwise_functions_reads_nothing():
    model = TransformedTargetRegressor(
        DPRidge(), func=np.log, inverse_func=np.exp, check_inverse=False
    )
    assert check_pipeline(model)
    assert check_pipeline(make_pipeline(FunctionTransformer(), DPRidge()))


def test_what_is_no_estimator():
    with pytest.raises(InvalidInput, match="needs an estimator"):
        check_pipeline([1, 2])
