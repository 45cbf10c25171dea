"""A declared day or time matches its rows in every container, or is refused."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import privtail
from privtail.errors import InvalidInput
from privtail.linear_model import DPLinearRegression, DPLogisticRegression
from privtail.trusted.records.targets import Labels

DAYS = np.array(["2020-01-01", "2020-01-01", "2020-02-01", "NaT"] * 3, "M8[us]")
CLOCK = pd.Series(DAYS)
MOMENT = CLOCK.dt.tz_localize("UTC")
CONTAINERS = {
    "numpy": DAYS,
    "days": DAYS.astype("M8[D]"),
    "microseconds": CLOCK,
    "nanoseconds": CLOCK.astype("M8[ns]"),
    "category": CLOCK.astype("category"),
    "Arrow in pandas": CLOCK.astype("timestamp[us][pyarrow]"),
    "polars": pl.from_pandas(CLOCK),
    "nanoseconds of polars": pl.from_pandas(CLOCK).dt.cast_time_unit("ns"),
    "Arrow": pa.array(CLOCK),
    "dictionary": pa.array(CLOCK).dictionary_encode(),
}
DATES = {"polars": pl.from_pandas(CLOCK).dt.date(), "Arrow": pa.array(CLOCK).cast(pa.date32())}
ZONED = {
    "pandas": MOMENT,
    "elsewhere": MOMENT.dt.tz_convert("Europe/Berlin"),
    "category": MOMENT.astype("category"),
    "polars": pl.from_pandas(MOMENT).dt.convert_time_zone("Europe/Paris"),
    "Arrow": pa.array(MOMENT),
}
NEW_YEAR = (
    "2020-01-01",
    "2020-01-01 00:00:00",
    "2020-01-01T00:00",
    date(2020, 1, 1),
    datetime(2020, 1, 1),  # noqa: DTZ001
    np.datetime64("2020-01-01"),
    pd.Timestamp("2020-01-01"),
)
MIDNIGHT = (
    "2020-01-01 00:00:00+00:00",
    "2020-01-01T01:00:00+01:00",
    datetime(2020, 1, 1, tzinfo=UTC),
    pd.Timestamp("2020-01-01", tz="UTC"),
)


def coded(values: Any, declared: Any) -> list[int]:
    """Codes of the rows of a column of these categories."""
    labels = Labels(values, len(values), column="start")
    labels.declare(tuple(declared))
    return labels.codes(slice(None)).tolist()


@pytest.mark.parametrize("name", CONTAINERS)
def test_a_day_is_found_in_times_without_a_zone(name):
    for declared in NEW_YEAR:
        assert coded(CONTAINERS[name], (declared, "2020-02-01")) == [0, 0, 1, -1] * 3, declared
    for odd in (*MIDNIGHT, "New Year", 20200101, True, None, timedelta(1)):
        with pytest.raises(InvalidInput, match="no row would match"):
            coded(CONTAINERS[name], (odd, "2020-02-01"))
    with pytest.raises(InvalidInput, match=r"distinct|twice"):
        coded(CONTAINERS[name], ("2020-01-01", date(2020, 1, 1)))


@pytest.mark.parametrize("name", DATES)
def test_a_day_is_found_among_days(name):
    for declared in (NEW_YEAR[0], date(2020, 1, 1), np.datetime64("2020-01-01")):
        assert coded(DATES[name], (declared, "2020-02-01")) == [0, 0, 1, -1] * 3, declared
    with pytest.raises(InvalidInput, match="no row would match"):
        coded(DATES[name], ("2020-01-01 10:00:00", "2020-02-01"))


@pytest.mark.parametrize("name", ZONED)
def test_a_moment_is_found_in_times_with_a_zone(name):
    for declared in MIDNIGHT:
        later = pd.Timestamp("2020-02-01", tz="UTC")
        assert coded(ZONED[name], (declared, later)) == [0, 0, 1, -1] * 3, declared
    for odd in NEW_YEAR[:1]:
        with pytest.raises(InvalidInput, match=r"14:00:00\+00:00"):
            coded(ZONED[name], (odd,))


def test_durations_are_found_and_their_text_is_refused():
    spans = CLOCK - CLOCK.min()
    for values in (spans, pl.from_pandas(spans), spans.astype("category"), spans.to_numpy()):
        for declared in (timedelta(31), np.timedelta64(31, "D"), pd.Timedelta("31 days")):
            assert coded(values, (timedelta(0), declared)) == [0, 0, 1, -1] * 3
        with pytest.raises(InvalidInput, match=r"objects of datetime.timedelta"):
            coded(values, ("31 days",))


def test_objects_of_datetime_are_refused_for_text(tmp_path):
    """How the text writes them is not known; a date has one form."""
    text = pd.Series(["2020-01-01", "2020-02-01"])
    assert coded(text, (date(2020, 1, 1),)) == [0, -1]
    text.to_frame("start").assign(x=1.0).to_csv(tmp_path / "t.csv", index=False)
    table = privtail.open_table(tmp_path / "t.csv")
    with pytest.raises(InvalidInput, match="Declare its text"):
        coded(text, (pd.Timestamp("2020-01-01"),))
    with pytest.raises(InvalidInput, match="Declare its text"):
        privtail.private_count(
            table, by="start", categories=[pd.Timestamp("2020-01-01")], epsilon=1
        )


@pytest.mark.parametrize("name", ["microseconds", "nanoseconds", "category", "polars", "Arrow"])
def test_counts_fits_and_files_agree(name, tmp_path):
    """One declaration counts the same rows, gives the same slopes, and labels the same targets."""
    how: dict[str, Any] = {"epsilon": float("inf"), "categories": {"start": ["2020-01-01"]}}
    y = np.tile([1.0, 1.0, 0.0, 0.5], 3)
    pq.write_table(pa.table({"start": pa.array(CLOCK), "y": y}), tmp_path / "t.parquet")
    table = privtail.open_table(tmp_path / "t.parquet", categories=how["categories"])
    columns = {"start": CONTAINERS[name]}
    counted = privtail.private_count(columns, by="start", **how)
    assert counted.to_dict() == {"2020-01-01": 6.0}
    expected = DPLinearRegression(epsilon=how["epsilon"]).fit(table, "y").coef_
    assert DPLinearRegression(**how).fit(columns, y).coef_.tolist() == expected.tolist()
    classifier = DPLogisticRegression(
        epsilon=how["epsilon"], classes=["2020-01-01", "2020-02-01"]
    ).fit(y[:, None], CONTAINERS[name])
    assert classifier.predict([[1.0], [0.0]]).tolist() == ["2020-01-01", "2020-02-01"]
