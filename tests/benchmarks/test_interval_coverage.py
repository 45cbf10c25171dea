"""How benchmarks count intervals that hold, and slopes without bounds."""

from __future__ import annotations

import numpy as np
import pytest

from benchmarks.interval_coverage import ends_of, held, refused, width
from privtail.linear_model import DPLinearRegression, DPRidge

OPEN = [-np.inf, np.inf]
ENDS = np.array([
    [[0.0, 2.0], [0.0, 2.0], OPEN],
    [[0.0, 2.0], OPEN, OPEN],
    [[2.0, 4.0], OPEN, [0.0, 2.0]],
])  # fmt: skip


def test_slopes_without_bounds_are_parts_of_refused_fits():
    assert refused(ENDS) == pytest.approx(4 / 3, abs=0.01)
    assert refused(ENDS[:, :1]) == 0


def test_only_intervals_with_ends_count_as_held_or_missed():
    found = held(ENDS, np.ones(3))
    assert found["held"] == pytest.approx(4 / 5)
    assert found["least"] == pytest.approx(2 / 3, abs=1e-4)
    missed = np.array([2 - 0.8 * 2, 1 - 0.8, 1 - 0.8 * 2])
    assert found["held_error"] == pytest.approx(np.sqrt(np.sum(missed**2)) / 5, abs=1e-4)
    assert held(ENDS, np.array([[1.0], [1.0], [3.0]]))["held"] == pytest.approx(4 / 5)
    assert held(ENDS[:1, 2:], np.ones(1)) == {}
    assert np.isnan(held(ENDS[:, 2:], np.ones(1))["least"])


def test_an_interval_made_from_the_true_spread_has_the_width_one():
    errors = np.random.default_rng(0).normal(size=(20_000, 2))
    ends = errors[..., None] + 1.96 * np.array([-1.0, 1.0])
    ends[::2, 1] = OPEN
    assert width(ends, errors) == pytest.approx(1.0, abs=0.03)
    assert width(2 * ends, errors) == pytest.approx(2.0, abs=0.06)


def test_a_fit_without_intervals_has_infinite_ends():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(2_000, 2))
    y = X[:, 0] + rng.normal(size=2_000)
    options = {"epsilon": 5.0, "noise": "simulated", "random_state": 0}
    assert np.isfinite(ends_of(DPLinearRegression(**options).fit(X, y))).all()
    assert refused(ends_of(DPRidge(**options).fit(X, y))[None]) == 1
