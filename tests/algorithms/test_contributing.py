"""The algorithm that CONTRIBUTING.md writes."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from privtail.algorithms import noisy_descent
from privtail.errors import NotPlanned
from privtail.linear_model import DPLinearRegression

QUIET: dict[str, Any] = {"noise": "simulated", "random_state": 0, "epsilon": 1.0}


def written() -> str:
    """Its source."""
    page = (Path(__file__).parents[2] / "CONTRIBUTING.md").read_text(encoding="utf-8")
    (code,) = re.findall(r"^```python\n(.*?)^```", page, flags=re.DOTALL | re.MULTILINE)
    return str(code)


def defined(code: str) -> Any:
    """The class, with the imports that the page names and NumPy."""
    known = {**vars(noisy_descent), "np": np}
    exec(code, known)  # noqa: S102
    return known["AdaptiveDescent"]


def test_the_algorithm_of_contributing_runs() -> None:
    X = np.random.default_rng(0).standard_t(3, size=(20_000, 3))
    y = X @ [1.0, -2.0, 3.0] + np.random.default_rng(1).standard_t(2.5, size=20_000)
    algorithm = defined(written())(steps=50, step_size=0.5, threshold=2.0)
    model = DPLinearRegression(algorithm=algorithm, **QUIET).fit(X, y)
    np.testing.assert_allclose(model.coef_, [1.0, -2.0, 3.0], atol=0.1)


def test_less_noise_than_its_plan_says_is_refused() -> None:
    code = written().replace("GaussianNoise(multiplier)", "GaussianNoise(multiplier / 10)")
    algorithm = defined(code)(steps=50, step_size=0.5, threshold=2.0)
    X = np.random.default_rng(0).normal(size=(2_000, 3))
    with pytest.raises(NotPlanned):
        DPLinearRegression(algorithm=algorithm, **QUIET).fit(X, X[:, 0])
