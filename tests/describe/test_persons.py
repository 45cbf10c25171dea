"""A column of a file, by its name, says whose each row is: in Python and on the command line."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

import privtail
from privtail.cli.application import application
from privtail.errors import AccuracyWarning, InvalidInput
from privtail.linear_model import DPLinearRegression

OPTIONS: Any = {"epsilon": 5, "max_rows": 3, "noise": "simulated", "random_state": 0}
N = 3_000
QUESTIONS: dict[str, Callable[..., Any]] = {
    "mean": lambda x, **how: privtail.private_mean(x, **how).value,
    "quantile": lambda x, **how: privtail.private_quantile(x, **how).value,
    "summary": lambda x, **how: privtail.summarize(x, **how).to_dict(),
    "count": lambda x, **how: float(privtail.private_count(x, **how)),
    "covariance": lambda x, **how: privtail.private_covariance(x, **how).value,
    "correlation": lambda x, **how: privtail.private_correlation(x, **how).value,
}


def visits() -> pd.DataFrame:
    chance = np.random.default_rng(0)
    ids = chance.integers(0, N // 3, N)
    return pd.DataFrame({
        "person": [f"P{i}\u00e9" for i in ids], "days": chance.exponential(3, N),
        "cost": chance.lognormal(3, 1, N),
    })  # fmt: skip


@pytest.fixture(params=["csv", "parquet"])
def path(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    path = tmp_path / f"visits.{request.param}"
    if request.param == "csv":
        visits().to_csv(path, index=False)
    else:
        visits().to_parquet(path, index=False)
    return path


@pytest.mark.parametrize("question", QUESTIONS)
def test_a_name_says_what_an_array_says(question: str, path: Path) -> None:
    ask, frame = QUESTIONS[question], visits()
    named = ask(privtail.open_table(path), groups="person", **OPTIONS)
    given = ask(frame.drop(columns="person"), groups=frame["person"], **OPTIONS)
    np.testing.assert_equal(named, given)


def test_of_groups_histograms_and_evaluations_too(path: Path) -> None:
    frame, table = visits(), privtail.open_table(path)
    count = privtail.private_count(
        table, by="days", categories={"days": [1.0, 2.0]}, groups="person", **OPTIONS
    )
    assert count.groups == ((1.0,), (2.0,))
    one = privtail.open_table(path, drop=["cost"])
    assert len(privtail.private_histogram(one, 4, groups="person", **OPTIONS).counts) == 4
    model = DPLinearRegression(epsilon=5, noise="simulated", random_state=0)
    model.fit(frame[["days"]], frame["cost"])
    for held in (table, path):
        found = privtail.evaluate(model, held, "cost", groups="person", **OPTIONS)
        ids = frame["person"]
        same = privtail.evaluate(model, frame[["days"]], frame["cost"], groups=ids, **OPTIONS)
        assert found["mae"].value == same["mae"].value


def test_counts_of_persons_say_what_they_leave_out() -> None:
    """A count of visits at max_rows=1 is far below the number of visits, and its interval too."""
    frame, many = visits(), {**OPTIONS, "max_rows": 1}
    column = frame["days"]
    said = "Rows of a person beyond max_rows, and rows of no person, are in no count."
    count = privtail.private_count(column, groups=frame["person"], **many)
    assert count.conf_int()[1] < 0.5 * N
    found = privtail.private_histogram(column, 4, groups=frame["person"], **many)
    for text in (repr(count), count._repr_html_(), str(found), found._repr_html_()):
        assert said in text
    alone = {**OPTIONS, "max_rows": None}
    assert said not in repr(privtail.private_count(column, **alone))
    assert said not in str(privtail.private_histogram(column, 4, **alone))


def test_a_wrong_name_is_refused_and_costs_nothing(path: Path) -> None:
    ledger = privtail.Ledger(epsilon=10, delta=1e-3)
    with pytest.raises(InvalidInput, match="Is 'person' meant"):
        privtail.summarize(privtail.open_table(path), groups="persom", ledger=ledger, **OPTIONS)
    with pytest.raises(InvalidInput, match="Of a data frame pass two parts"):
        privtail.summarize(visits(), groups="person", ledger=ledger, **OPTIONS)
    assert ledger.spent[0] == 0


@pytest.mark.parametrize("verb", ["mean", "summarize", "covariance", "correlation"])
def test_commands_take_ids_that_are_text(verb: str, path: Path) -> None:
    result = CliRunner().invoke(application, [
        verb, str(path), "--column", "days", "--column", "cost", "--groups", "person",
        "--max-rows", "3", "--epsilon", "5",
    ])  # fmt: skip
    assert result.exit_code == 0, result.output
    assert "one person, of whose rows" in result.output


def test_a_summary_says_that_rows_beyond_max_rows_count_as_missing() -> None:
    frame = visits()
    found = privtail.summarize(frame[["days"]], groups=frame["person"], **OPTIONS)
    assert "beyond max_rows" in repr(found)
    assert "beyond max_rows" in found._repr_html_()
    assert "beyond max_rows" not in repr(privtail.summarize(frame[["days"]], epsilon=5))


def test_a_column_that_noise_hides_does_not_make_other_intervals_nan() -> None:
    """An evaluation of persons had an interval of NaN if one of its means was not reliable."""
    rng = np.random.default_rng(0)
    persons = np.repeat(np.arange(1_000), 2)
    hidden = np.where(np.arange(2_000) < 2, 1e6, 0.0)
    with pytest.warns(AccuracyWarning):
        found = privtail.private_mean(
            np.column_stack([rng.normal(size=2_000), hidden]), epsilon=2.0, groups=persons,
            max_rows=2, noise="simulated", random_state=0,
        )  # fmt: skip
    assert found.reliable.tolist() == [True, False]
    with pytest.raises(InvalidInput, match="sampling error is not known"):
        found.conf_int()
    assert np.isfinite(found.conf_int(sampling=False)[0]).all()
