"""Covariances and correlations of columns: intervals, missing cells, containers, extremes."""

from __future__ import annotations

import json
import math
import re
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from privtail import Ledger, private_correlation, private_covariance, verify
from privtail.errors import AccuracyWarning, InvalidInput

SIMULATED: Any = {"noise": "simulated", "random_state": 0}
N = 20_000


def frame(law: str = "normal", seed: int = 0) -> pd.DataFrame:
    """Two columns with latent correlation .6, in units of 1 and 10, the second around 1000."""
    rng = np.random.default_rng(seed)
    z = rng.multivariate_normal([0, 0], [[1, 0.6], [0.6, 1]], N)
    if law == "t(3)":
        z /= np.sqrt(rng.chisquare(3, N) / 3)[:, None]
    if law == "lognormal":
        z = np.exp(z)
    return pd.DataFrame({"a": z[:, 0], "b": 1000 + 10 * z[:, 1], "text": "x"})


TRUE = {
    "normal": np.array([[1.0, 6.0], [6.0, 100.0]]),
    "t(3)": np.array([[3.0, 18.0], [18.0, 300.0]]),
    "lognormal": math.e
    * np.array([[math.e - 1, 10 * math.expm1(0.6)], [10 * math.expm1(0.6), 100 * (math.e - 1)]]),
}


@pytest.mark.filterwarnings("ignore::privtail.errors.AccuracyWarning")
@pytest.mark.parametrize("law", TRUE)
def test_intervals_hold(law: str) -> None:
    """Of 8 x 3 covariances and 8 correlations at 95 %; 6 misses have a chance of one in 200."""
    held, true = [], TRUE[law]
    root = np.sqrt(np.diag(true))
    for seed in range(8):
        table, chance = frame(law, seed), {"noise": "simulated", "random_state": seed}
        found = private_covariance(table, epsilon=5, **chance)
        held += list(((found.low <= true) & (true <= found.high))[np.triu_indices(2)])
        found = private_correlation(table, epsilon=5, **chance)
        r = true[0, 1] / (root[0] * root[1])
        held.append(found.low[0, 1] <= r <= found.high[0, 1])
        assert (np.abs(found.value) <= 1).all()
        assert (np.diag(found.value) == 1).all()
    assert np.sum(held) >= len(held) - 5


@pytest.mark.filterwarnings("ignore::privtail.errors.AccuracyWarning")
def test_a_column_without_numbers_leaves_no_entry_reliable() -> None:
    """No row counts then, and noise in the place of it is no covariance."""
    for seed in range(10):
        table, chance = frame(seed=seed).assign(b=np.nan), {"random_state": seed}
        found = private_covariance(table, epsilon=1, noise="simulated", **chance)
        assert not found.reliable.any()
        found = private_correlation(table, epsilon=1, noise="simulated", **chance)
        assert not found.reliable[0, 1]
    assert private_covariance(frame().head(5_000), epsilon=1, **SIMULATED).reliable.all()


def test_gaussian_columns_are_found_well() -> None:
    found = private_correlation(frame(), epsilon=5, **SIMULATED)
    assert found.columns == ("a", "b")
    assert found.reliable.all()
    assert found.value[0, 1] == pytest.approx(0.6, abs=0.03)
    assert found.high[0, 1] - found.low[0, 1] < 0.3
    whole = private_covariance(frame(), epsilon=math.inf, delta=0)
    np.testing.assert_allclose(whole.value, np.cov(frame()[["a", "b"]].T), rtol=0.02)


def test_a_row_with_a_missing_cell_does_not_count() -> None:
    table = frame()
    table.loc[: N // 4, "a"] = math.nan
    table.loc[: N // 4, "b"] = 1e308
    found = private_covariance(table, epsilon=5, **SIMULATED)
    assert ((found.low <= TRUE["normal"]) & (TRUE["normal"] <= found.high)).all()


def test_noise_alone_is_made_semidefinite() -> None:
    x = np.random.default_rng(0).normal(size=(60, 4))
    with pytest.warns(AccuracyWarning, match="of 10 entries (is|are) not reliable"):
        raw = private_covariance(x, epsilon=0.5, **SIMULATED)
    with pytest.warns(AccuracyWarning):
        mended = private_covariance(x, epsilon=0.5, semidefinite=True, **SIMULATED)
    with pytest.warns(AccuracyWarning):
        corr = private_correlation(x, epsilon=0.5, semidefinite=True, **SIMULATED)
    assert np.linalg.eigvalsh(raw.value).min() < 0
    assert np.linalg.eigvalsh(mended.value).min() > -1e-9 * np.abs(mended.value).max()
    assert np.linalg.eigvalsh(corr.value).min() > -1e-9
    assert (np.diag(corr.value) == 1).all()


HOSTILE = {
    "huge": np.full((50, 2), 1e308), "missing": np.full((50, 2), math.nan),
    "zeros": np.zeros((50, 2)), "infinite": np.full((50, 2), -math.inf),
    "mixed": np.tile([1e308, 5e-324], (50, 1)),
}  # fmt: skip


@pytest.mark.filterwarnings("ignore::privtail.errors.AccuracyWarning")
@pytest.mark.parametrize("ask", [private_covariance, private_correlation])
@pytest.mark.parametrize("name", HOSTILE)
def test_no_input_is_an_error(ask: Any, name: str) -> None:
    for epsilon in (0.1, 10.0, math.inf):
        found = ask(HOSTILE[name], epsilon=epsilon, **SIMULATED)
        assert found.value.shape == (2, 2)
        assert np.isfinite(found.value).all()
        assert (found.low <= found.high).all()


@pytest.mark.filterwarnings("ignore::privtail.errors.AccuracyWarning")
def test_all_containers_say_the_same_and_the_statement_verifies(tmp_path: Path) -> None:
    table = frame()[["a", "b"]][:2_000]
    table.to_csv(tmp_path / "t.csv", index=False)
    table.to_parquet(tmp_path / "t.parquet")
    asked = [table, tmp_path / "t.csv", tmp_path / "t.parquet"]
    said = [private_covariance(x, epsilon=20, **SIMULATED).value.tolist() for x in asked]
    assert said[1:] == said[:-1]
    exact = private_correlation(table, epsilon=1)
    assert not verify(exact.privacy_).problems
    assert exact.privacy_.epsilon <= 1
    assert json.loads(json.dumps(exact.to_dict()))["columns"] == ["a", "b"]
    assert exact.to_frame().shape == (2, 2)
    assert "a, b: " in repr(exact)
    with pytest.raises(InvalidInput, match="No column"):
        private_covariance(frame()[["text"]], epsilon=1)
    with pytest.raises(InvalidInput, match="confidence"):
        private_correlation(table, epsilon=1, confidence=1.5)


@pytest.mark.parametrize("ask", [private_covariance, private_correlation])
def test_columns_of_text_are_left_out_and_named(ask: Any) -> None:
    found = ask(frame(), epsilon=20, **SIMULATED)
    assert found.left_out == ("text",)
    said = "These columns are left out because they hold no numbers: text."
    assert said in repr(found)
    assert said in found._repr_html_()
    assert found.to_dict()["left_out"] == ["text"]


def test_one_column_has_no_correlation() -> None:
    """A text column is none of numbers: what is left is refused before the charge."""
    frame = pd.DataFrame({"x": np.arange(50.0), "city": "Oslo"})
    ledger = Ledger(epsilon=1, delta=1e-5)
    with pytest.raises(InvalidInput, match=r"two columns of numbers .* 'city'"):
        private_correlation(frame, epsilon=1, ledger=ledger)
    assert ledger.entries() == ()
    assert private_covariance(frame, epsilon=math.inf).value.shape == (1, 1)


def test_a_note_says_how_many_far_rows_noise_may_hide() -> None:
    found = [private_covariance(frame(), epsilon=e, **SIMULATED) for e in (0.5, 5.0)]
    rows = [int(re.search(r"hide about (\d+) rows", " ".join(x.privacy_.notes))[1]) for x in found]
    assert 5 * rows[1] < rows[0] < 10 * rows[1]
    assert 100 < rows[0] < 300
    exact = private_covariance(frame(), epsilon=math.inf, delta=0)
    assert not any("hide about" in note for note in exact.privacy_.notes)
