"""What a caller has set for floating-point errors ends no fit, and changes none."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest
from scipy import special

from privtail import summarize
from privtail.compilation import steady
from privtail.errors import AccuracyWarning, PrivacyWarning
from privtail.linear_model import MODELS, DPLinearRegression, DPMean, DPScaler
from privtail.mean import private_mean
from privtail.published.names import NAMES

OPTIONS: dict[str, Any] = {"epsilon": 1.0, "delta": 1e-6, "noise": "simulated", "random_state": 0}
SPARSE = {"sparse": {"sparsity": 2}, "sparse-logistic": {"sparsity": 2}}


@pytest.fixture(scope="module")
def odd() -> tuple[Any, Any]:
    """Rows that overflow, underflow, or hold no number."""
    rng = np.random.default_rng(0)
    X = rng.standard_t(2, size=(2_000, 3))
    X[:4] = np.array([1e308, np.nan, 0.0, 1e-320])[:, None]
    with np.errstate(all="ignore"):
        return X, X @ [1.0, -2.0, 0.5] + rng.normal(size=len(X))


def fits(X: Any, y: Any) -> dict[str, Any]:
    """Everything that fits, as functions that return numbers."""
    labels, counts = (y > 0) * 1.0, np.nan_to_num(np.clip(np.abs(y), 0, 9)).round()

    def of(name: str) -> Any:
        more = {"classes": [0.0, 1.0]} if "logistic" in name else {}
        model = MODELS[name](**OPTIONS, **more, **SPARSE.get(name, {}))
        target = labels if "logistic" in name else counts if name == "poisson" else y
        return lambda: model.fit(X, target).coef_

    def by(name: str) -> Any:
        return lambda: DPLinearRegression(algorithm=name, **OPTIONS).fit(X, y).coef_

    return (
        {name: of(name) for name in MODELS}
        | {name: by(name) for name in NAMES}
        | {
            "mean": lambda: np.asarray(private_mean(X, **OPTIONS)),
            "DPMean": lambda: DPMean(**OPTIONS).fit(X).mean_,
            "DPScaler": lambda: DPScaler(**OPTIONS).fit(X).scale_,
        }
    )


LATER = set(sorted(NAMES)[::2]) | {"sample-and-aggregate"}
"""Published algorithms that `make check` tries, which take the questions that others take, too."""


@pytest.mark.parametrize("name", [
    pytest.param(name, marks=[pytest.mark.slow] * (name in LATER))
    for name in (*MODELS, *NAMES, "mean", "DPMean", "DPScaler")
])  # fmt: skip
def test_no_error_state_ends_a_fit(name: str, odd: Any) -> None:
    """`seterr(all="raise")` ended fits at an underflow, some of which depend on a record."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PrivacyWarning)
        warnings.simplefilter("ignore", AccuracyWarning)
        usual = fits(*odd)[name]()
        with np.errstate(all="raise"), special.errstate(all="raise"):
            strict = fits(*odd)[name]()
    assert np.array_equal(usual, strict)


def test_an_unsteady_function_is_caught() -> None:
    def underflow() -> Any:
        return np.exp(np.array([-1e6]))

    def singular() -> Any:
        return special.gammaln(np.array([0.0]))

    with np.errstate(all="raise"), special.errstate(all="raise"):
        with pytest.raises(FloatingPointError):
            underflow()
        with pytest.raises(special.SpecialFunctionError):
            singular()
        assert steady(underflow)() == 0
        assert steady(singular)() == np.inf


def test_numpy_warns_of_no_number() -> None:
    """Of one that overflows, say, which only some record has."""

    def overflow() -> Any:
        return np.array([1e308]) * 10

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with np.errstate(all="warn"):
            with pytest.raises(RuntimeWarning, match="overflow"):
                overflow()
            assert steady(overflow)() == np.inf


def test_what_was_paid_for_is_returned_when_warnings_are_errors() -> None:
    x = np.where(np.arange(3_000) % 2 == 0, 1e308, 0.0)
    with warnings.catch_warnings():
        warnings.simplefilter("error", RuntimeWarning)
        warnings.simplefilter("ignore", AccuracyWarning)
        options = {**OPTIONS, "epsilon": 1e6}
        private_mean(np.column_stack([x, -x]), **options)
        summarize({"x": x}, **options)
        private_mean({"x": x, "k": ["a"] * 3_000}, by="k", categories=["a"], **options)
