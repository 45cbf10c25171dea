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
from privtail.errors import DeltaWarning
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


LABELS = DPLogisticRegression(epsilon=float("inf"), classes=[0, 1]).fit(X, np.arange(60) % 2)
NUMBERS = DPLinearRegression(epsilon=float("inf")).fit(X, X[:, 0] + np.arange(60))
RELEASES = {
    "mean": lambda **more: privtail.private_mean(X, **more),
    "mean by": lambda **more: privtail.private_mean(FRAME, by="g", categories=["north"], **more),
    "count": lambda **more: privtail.private_count(FRAME, by="g", categories=["north"], **more),
    "quantile": lambda **more: privtail.private_quantile(X, **more),
    "histogram": lambda **more: privtail.private_histogram(Y, **more),
    "summary": lambda **more: privtail.summarize(X, **more),
    "covariance": lambda **more: privtail.private_covariance(X, **more),
    "evaluate": lambda **more: privtail.evaluate(NUMBERS, X, Y, **more),
    "evaluate labels": lambda **more: privtail.evaluate(LABELS, X, np.arange(60) % 2, **more),
    "compare": lambda **more: privtail.compare(NUMBERS, NUMBERS, X, Y, **more),
    "compare labels": lambda **more: privtail.compare(LABELS, LABELS, X, np.arange(60) % 2, **more),
    "cross-validation": lambda **more: privtail.cross_validate(DPLinearRegression(), X, Y, **more),
    "columns": lambda **more: privtail.DPMean(**more).fit(X),
    "scales": lambda **more: privtail.DPScaler(**more).fit(X),
}


@pytest.mark.parametrize("name", RELEASES)
def test_every_release_warns_once_of_a_delta_above_one_of_the_rows(name):
    """Fits alone did; a mean of 60 rows at delta = .1 said nothing."""
    said = []
    for delta in (0.1, 1e-3):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            RELEASES[name](**TINY | {"epsilon": 1.0}, delta=delta)
        said.append([one for one in caught if issubclass(one.category, DeltaWarning)])
    (large,), small = said
    assert "A stronger promise costs little: a delta of 0.001." in str(large.message)
    assert large.filename == __file__
    assert small == []


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
