"""A query is run once, and its rows are the records, with the bits of the same rows in memory."""

from __future__ import annotations

import os
import tempfile
import traceback
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import privtail
from privtail.cli.accuracy import read_columns
from privtail.errors import InvalidInput
from privtail.linear_model import DPLinearRegression
from privtail.storage import queries
from tests.contracts.test_folders import refused, some
from tests.contracts.test_streams import JOBS, N, answers, frame, require_equal

pa = pytest.importorskip("pyarrow")
pl = pytest.importorskip("polars")
ds = pytest.importorskip("pyarrow.dataset")


def lazy(data: Any) -> Any:
    return pl.from_pandas(data).lazy()


def dataset(data: Any) -> Any:
    return ds.dataset(pa.Table.from_pandas(data, preserve_index=False))


@pytest.mark.parametrize("query", [lazy, dataset])
def test_a_query_gives_the_bits_of_its_rows(query: Any) -> None:
    data = frame()
    table = privtail.open_table(query(data), categories=JOBS, drop=["late"])
    assert table.n == N
    require_equal(
        answers(table, "cost"), answers(data.drop(columns=["late", "cost"]), data["cost"])
    )


def test_queries_over_files_and_filters(tmp_path: Path) -> None:
    for i in range(3):
        x = np.arange(20.0) + i
        some(tmp_path / f"part={i}" / "a.parquet", x=x, y=x % 5)
    files = ds.dataset(tmp_path, partitioning="hive")
    assert privtail.open_table(files).names == ("x", "y", "part")
    few = privtail.open_table(files.filter(ds.field("x") > 9.5))
    found = privtail.open_table(
        pl.scan_parquet(f"{tmp_path}/*/a.parquet", hive_partitioning=True).filter(pl.col("x") > 9.5)
    )
    assert few.n == found.n == 33
    options: Any = {"epsilon": 3.0, "noise": "simulated", "random_state": 0}
    model = DPLinearRegression(**options).fit(found, "y")
    assert queries.ASSUMPTION in model.privacy_.assumptions
    assert np.array_equal(model.coef_, DPLinearRegression(**options).fit(few, "y").coef_)
    plain = model.to_model()
    np.testing.assert_array_equal(plain.predict(files), plain.predict(files.to_table()))
    assert len(plain.predict(pl.scan_parquet(tmp_path, hive_partitioning=True))) == 60


def test_a_query_is_run_once(tmp_path: Path) -> None:
    """One that gives other rows each time would change records between passes."""
    runs: list[int] = []

    def other(batch: Any) -> Any:
        runs.append(1)
        return batch.with_columns(x=pl.lit(float(len(runs))))

    query = pl.LazyFrame({"x": [0.0] * 50, "y": [1.0] * 50}).map_batches(
        other, schema={"x": pl.Float64, "y": pl.Float64}
    )
    table = privtail.open_table(query, scratch=tmp_path, categories={"x": [1.0, 2.0]})
    for one in (table, table.without("y"), table.declaring({"y": [1.0]})):
        for _ in range(3):
            assert read_columns(one, ["x"])["x"].tolist() == [1.0] * 50
    DPLinearRegression(epsilon=1, noise="simulated").fit(table, "y")
    assert len(runs) == 1
    assert list(tmp_path.iterdir()) == []


def test_a_query_that_fails_quotes_no_cell(monkeypatch: pytest.MonkeyPatch) -> None:
    text = pl.LazyFrame({"x": ["secret"]}).select(pl.col("x").cast(pl.Float64))
    with pytest.raises(InvalidInput, match=r"The query fails \(InvalidOperationError\)") as caught:
        privtail.open_table(text)
    assert "secret" not in "".join(traceback.format_exception(caught.value))
    assert "has no column 'z'" in refused(pl.LazyFrame({"x": [1.0]}), drop=["z"])
    with pytest.raises(InvalidInput, match="the LazyFrame has no rows"):
        _ = privtail.open_table(pl.LazyFrame({"x": []}, {"x": pl.Float64})).n
    full = "cannot be written to /nowhere: No such file"
    assert full in refused(pl.LazyFrame({"x": [1.0]}), scratch="/nowhere")
    with pytest.raises(InvalidInput, match=r"call collect\(\) first"):
        DPLinearRegression().fit(text, [1.0])


def test_a_query_that_panics_is_refused_like_one_that_fails(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A panic of polars is no `Exception`, and quotes what it likes."""

    def panics(*_: object) -> None:
        raise pl.exceptions.PanicException("secret")

    monkeypatch.setattr(queries, "_write", panics)
    with pytest.raises(InvalidInput, match=r"The query fails \(PanicException\)") as caught:
        privtail.open_table(pl.LazyFrame({"x": [1.0]}))
    assert "secret" not in "".join(traceback.format_exception(caught.value))


def test_the_rows_are_in_no_file_that_has_a_name(monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[Any] = []
    honest = tempfile.TemporaryFile

    def watched(**options: Any) -> Any:
        made.append(honest(**options))
        return made[-1]

    monkeypatch.setattr(tempfile, "TemporaryFile", watched)
    seen: list[int] = []
    write = queries._write

    def counted(query: Any, file: Any) -> None:
        write(query, file)
        seen.append(os.fstat(file.fileno()).st_nlink)

    monkeypatch.setattr(queries, "_write", counted)
    table = privtail.open_table(pl.LazyFrame({"x": [1.0, 2.0]}))
    assert (seen, made[0].closed, read_columns(table, ["x"])["x"].tolist()) == ([0], True, [1, 2])
