"""diffprivlib: least squares by the functional mechanism, logistic regression by its objective."""

from __future__ import annotations

from typing import Any

import numpy as np
from diffprivlib.models import LinearRegression, LogisticRegression
from protocol import Answer, Request, linear, serve


def fit(records: dict[str, Any], request: Request) -> Answer:
    """With public bounds of every feature and of the target, or of the norm of a row."""
    X, y, bounds = records["X"], records["y"], request["bounds"]
    features = np.array(bounds["features"])
    if int(records["classes"]):
        # One norm for all columns, so columns are first divided by their bounds, which are public.
        model = LogisticRegression(
            epsilon=request["epsilon"], data_norm=bounds["row"], random_state=request["seed"],
            max_iter=300,
        ).fit(X / features, y.astype(int))  # fmt: skip
        return linear(model.coef_ / features, model.intercept_)
    target = bounds["target"]
    regression = LinearRegression(
        epsilon=request["epsilon"], bounds_X=(-features, features), bounds_y=(-target, target),
        random_state=request["seed"],
    ).fit(np.clip(X, -features, features), np.clip(y, -target, target))  # fmt: skip
    return linear(regression.coef_, regression.intercept_)


serve(fit)
