"""scikit-learn estimators with a privacy budget instead of bounds on the data."""

from typing import TYPE_CHECKING, Any

from privtail.linear_model.classification import DPLogisticRegression
from privtail.linear_model.columns import DPMean, DPScaler
from privtail.linear_model.generalized import (
    DPGammaRegressor,
    DPGeneralizedLinearEstimator,
    DPPoissonRegressor,
    DPTweedieRegressor,
)
from privtail.linear_model.planning import FitPlan
from privtail.linear_model.regression import DPElasticNet, DPLasso, DPLinearRegression, DPRidge
from privtail.linear_model.robust import DPHuberRegressor, DPLADRegressor, DPQuantileRegressor
from privtail.linear_model.sparse import DPSparseClassifier, DPSparseRegressor

if TYPE_CHECKING:
    from privtail.linear_model.search import PrivateSearchCV

MODELS: dict[str, type] = {
    model.kind: model
    for model in (
        DPLinearRegression,
        DPRidge,
        DPLasso,
        DPElasticNet,
        DPHuberRegressor,
        DPLADRegressor,
        DPQuantileRegressor,
        DPPoissonRegressor,
        DPGammaRegressor,
        DPTweedieRegressor,
        DPLogisticRegression,
        DPSparseRegressor,
        DPSparseClassifier,
    )
}
"""The estimators by the names of the command line and of written models."""

__all__ = [
    "MODELS",
    "DPElasticNet",
    "DPGammaRegressor",
    "DPGeneralizedLinearEstimator",
    "DPHuberRegressor",
    "DPLADRegressor",
    "DPLasso",
    "DPLinearRegression",
    "DPLogisticRegression",
    "DPMean",
    "DPPoissonRegressor",
    "DPQuantileRegressor",
    "DPRidge",
    "DPScaler",
    "DPSparseClassifier",
    "DPSparseRegressor",
    "DPTweedieRegressor",
    "FitPlan",
    "PrivateSearchCV",
]


def __getattr__(name: str) -> Any:
    """Load the search, and what it needs of the core, when somebody asks for it."""
    if name == "PrivateSearchCV":
        from privtail.linear_model.search import PrivateSearchCV

        return PrivateSearchCV
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
