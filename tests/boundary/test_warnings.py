"""A warning points at the line of the user that called privtail."""

from __future__ import annotations

import ast
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import privtail
from privtail.linear_model import DPLinearRegression, DPLogisticRegression, DPPoissonRegressor
from privtail.progress import watching

X = np.random.default_rng(0).normal(size=(60, 2))
Y = np.where(np.arange(60) == 7, 50.0, 0.0)
FRAME = pd.DataFrame({"a": Y, "b": X[:, 0], "g": "north"})
TINY: dict[str, Any] = {"epsilon": 0.1, "noise": "simulated", "random_state": 0}


def fails(*_: object) -> None:
    raise OSError


def watched() -> None:
    with watching(fails):
        privtail.private_mean(X, epsilon=10, noise="simulated")


CALLS = {
    "mean": lambda: privtail.private_mean(Y, **TINY),
    "mean by": lambda: privtail.private_mean(FRAME, by="g", categories=["north"], **TINY),
    "quantile": lambda: privtail.private_quantile(Y, 0.999, **TINY),
    "histogram": lambda: privtail.private_histogram(Y, **TINY),
    "summary": lambda: privtail.summarize(FRAME[["a"]], **TINY),
    "covariance": lambda: privtail.private_covariance(FRAME[["a", "b"]], **TINY),
    "correlation": lambda: privtail.private_correlation(FRAME[["a", "b"]], **TINY),
    "evaluate": lambda: privtail.evaluate(
        DPLinearRegression(epsilon=float("inf")).fit(X, X[:, 0]), X, Y, **TINY
    ),
    "cross-validation": lambda: privtail.cross_validate(DPLinearRegression(), X, Y, **TINY),
    "fit": lambda: DPLinearRegression(**TINY).fit(X, Y),
    "delta": lambda: DPPoissonRegressor(**TINY, delta=0.1).fit(X, Y),
    "labels": lambda: DPLogisticRegression(**TINY, classes=[0, 50]).fit(X, Y),
    "target": lambda: DPLinearRegression(**TINY).fit(FRAME[["a"]], FRAME["a"]),
    "column of a target": lambda: DPLinearRegression(**TINY).fit(X, Y[:, None]),
    "progress": watched,
}


@pytest.mark.parametrize("name", CALLS)
def test_a_warning_points_at_the_line_of_the_caller(name):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        CALLS[name]()
    assert caught
    assert {one.filename for one in caught} == {__file__}


def test_no_other_code_warns():
    """All warnings go through the one function that finds the line."""
    for path in Path(privtail.__file__).parent.rglob("*.py"):
        if path.name != "errors.py":
            called = ast.walk(ast.parse(path.read_text(encoding="utf-8")))
            names = {ast.unparse(node.func) for node in called if isinstance(node, ast.Call)}
            assert "warnings.warn" not in names, path
