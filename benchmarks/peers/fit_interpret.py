"""DP-EBM of interpret: an additive model of binned features, which need not be linear."""

from __future__ import annotations

from typing import Any

import numpy as np
from interpret.privacy import DPExplainableBoostingClassifier, DPExplainableBoostingRegressor
from protocol import Answer, Request, serve


def fit(records: dict[str, Any], request: Request) -> Answer:
    """With public bounds of every feature, and of the target or the labels."""
    X, y, bounds = records["X"], records["y"], request["bounds"]
    options: dict[str, Any] = {
        "epsilon": request["epsilon"], "delta": float(records["delta"]), "n_jobs": 1,
        "random_state": request["seed"], "composition": "gdp",
        "privacy_bounds": {i: (-b, b) for i, b in enumerate(bounds["features"])},
        "feature_types": ["continuous"] * X.shape[1],
    }  # fmt: skip
    if int(records["classes"]):
        model = DPExplainableBoostingClassifier(**options).fit(X, y.astype(int))
        return {"predicted": model.predict(records["X_test"]).astype(float).tolist()}
    target = bounds["target"]
    model = DPExplainableBoostingRegressor(
        privacy_target_min=-target, privacy_target_max=target, **options
    ).fit(X, np.clip(y, -target, target))
    return {"predicted": model.predict(records["X_test"]).tolist()}


serve(fit)
