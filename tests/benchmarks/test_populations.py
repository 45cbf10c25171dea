"""Which slopes the intervals of a fit are for."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from benchmarks.populations import Watched, clipped_slopes, page


def test_clipping_moves_slopes_of_skewed_residuals_alone():
    rng = np.random.default_rng(0)
    X, noise = rng.normal(size=(40_000, 2)), rng.normal(size=40_000)
    w, spread = np.array([1.0, -0.5]), np.exp(X[:, 0] / 2)
    found = []
    for residuals in (noise, noise**2 - 1):
        y = X @ w + spread * residuals
        model = Watched(epsilon=50.0, noise="simulated", random_state=0).fit(X, y)
        found.append(clipped_slopes(model.slopes_, X, y))
        assert found[-1] == pytest.approx(model.coef_, abs=0.05)
    assert found[0] == pytest.approx(w, abs=0.02)
    assert found[1][0] < 0.9


def test_the_page_sets_fits_that_allow_for_unequal_spread_beside_others():
    plain = pd.DataFrame({
        "table": "spread", "n": 2_000, "epsilon": [0.2, 1.0, 5.0], "heteroscedastic": False,
        "fits": 60, "refused": [60, 0, 0], "width": [np.nan, 1.5, 0.9], "held": 0.9,
        "clipped": 0.9, "clipped_least": [np.nan, 0.7, 0.65],
    })  # fmt: skip
    more = plain.assign(heteroscedastic=True, width=1.75, clipped_least=0.93)
    text = page(
        "<!-- begin heteroscedastic -->\n<!-- end heteroscedastic -->", pd.concat([plain, more])
    )
    assert "| spread | 2,000 | – | 70 % → 93 % | 65 % → 93 % | – | 1.50 → 1.75 |" in text
    assert "0.90 → 1.75 |" in text


def test_the_page_has_a_row_for_a_table_that_was_measured():
    cells = pd.DataFrame({
        "table": "hours", "n": 2_000, "epsilon": [0.2, 1.0, 5.0], "heteroscedastic": False,
        "fits": 60, "refused": [60, 6, 0], "width": [np.nan, 0.7, 0.9], "held": [np.nan, 0.6, 0.8],
        "clipped": [np.nan, 0.95, np.nan],
    })  # fmt: skip
    text = page("a\n<!-- begin populations -->\nold\n<!-- end populations -->\nb", cells)
    assert "old" not in text
    assert "| hours | 2,000 | refused | 95 % (10 % refused) | – | refused | 60 % | 80 % |" in text
    assert "| – | 0.70 | 0.90 |" in text
