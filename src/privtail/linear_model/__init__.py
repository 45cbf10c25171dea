"""scikit-learn estimators with a privacy budget instead of bounds on the data."""

from privtail.linear_model.classification import DPLogisticRegression
from privtail.linear_model.regression import DPLinearRegression

__all__ = ["DPLinearRegression", "DPLogisticRegression"]
