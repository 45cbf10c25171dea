"""A folder of files gives the bits of one file; what is public of the files alone refuses one."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import privtail
from privtail.cli.accuracy import read_columns
from privtail.errors import InvalidInput
from privtail.linear_model import DPLinearRegression, DPLogisticRegression
from privtail.schema.dialect import Dialect
from privtail.schema.partitions import partition_values
from privtail.trusted import partitions
from privtail.trusted.budget import Budget
from privtail.trusted.curator import Curator
from privtail.trusted.files import folders, formats
from privtail.trusted.files import table as files
from privtail.trusted.files.folders import Files
from privtail.trusted.files.table import TableFile
from privtail.trusted.ledger import Ledger
from privtail.trusted.tables import person_ids
from tests.contracts.test_streams import (
    JOBS,
    N,
    answers,
    frame,
    require_equal,
    written,
)

pa = pytest.importorskip("pyarrow")
pq = pytest.importorskip("pyarrow.parquet")

CUTS = [0, 1, 1, 1_300, 1_301, 4_000, N]
"""Files of one row, of none, and of many."""


def split(folder: Path, kind: str, names: list[str] | None = None) -> Path:
    """The rows of `frame` in files of their own, some in folders, and files that do not count."""
    data, form = frame(), kind.partition("-")[0]
    names = names or ["a", "b", "c", "year=2023/a", "year=2023/b", "year=2024/a"]
    for name, start, stop in zip(names, CUTS, CUTS[1:], strict=False):
        whole = written(folder, kind, data[:100])
        schema = pa.Table.from_pandas(data[:100], preserve_index=False).schema
        path = folder / f"{name}.{form}"
        path.parent.mkdir(exist_ok=True)
        if form == "csv":
            data[start:stop].to_csv(path, index=False)
        else:
            rows = pa.Table.from_pandas(data[start:stop], schema=schema, preserve_index=False)
            if form == "parquet":
                pq.write_table(rows, path, row_group_size=700)
            else:
                with pa.ipc.new_file(path, schema) as writer:
                    writer.write_table(rows)
        if whole != path:
            whole.unlink()
    (folder / "_SUCCESS").touch()
    (folder / ".part-0.crc").write_bytes(b"crc")
    (folder / "_temporary").mkdir()
    (folder / "_temporary" / f"a.{form}").write_bytes(b"half of it")
    return folder


@pytest.fixture(scope="module")
def parts(tmp_path_factory: Any) -> dict[str, Path]:
    kinds = ["parquet", "csv", "arrow"]
    return {kind: split(tmp_path_factory.mktemp(kind), f"{kind}-groups") for kind in kinds}


@pytest.fixture(scope="module")
def memory() -> list[np.ndarray]:
    data = frame().drop(columns="late")
    return answers(data.drop(columns="cost"), data["cost"])


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(formats, "WINDOW_ROWS", 257)
    monkeypatch.setattr(formats, "TOGETHER", 1)
    monkeypatch.setattr(formats, "RUN_ROWS", 300)
    monkeypatch.setattr(partitions, "BLOCK_ROWS", 100)


# ---------------------------------------------------------------- The same bits


@pytest.mark.parametrize(
    ("kind", "copied", "threads"),
    [
        pytest.param(kind, copied, str(2**k), marks=[pytest.mark.slow] * ((i + copied) % 3 != k))
        for i, kind in enumerate(("parquet", "csv", "arrow"))
        for copied in (False, True)
        for k in range(3)
    ],
)
def test_a_folder_gives_the_bits_of_memory(
    parts: dict[str, Path], kind: str, copied: bool, threads: str, memory: Any,
    small: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    monkeypatch.setenv("PRIVTAIL_THREADS", threads)
    scratch = tmp_path if copied else None
    file = privtail.open_table(parts[kind], categories=JOBS, drop=["late"], scratch=scratch)
    assert file.n == N
    require_equal(answers(file, "cost"), memory)


def test_a_folder_in_another_order_is_caught(
    parts: dict[str, Path],
    memory: Any,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    honest = files.listed
    monkeypatch.setattr(files, "listed", lambda data: (Path("x"), honest(data)[1][::-1]))
    file = privtail.open_table(parts["parquet"], categories=JOBS, drop=["late"])
    with pytest.raises(AssertionError):
        require_equal(answers(file, "cost"), memory)


@pytest.mark.parametrize("threads", ["1", "2"])
def test_models_of_a_folder_are_those_of_one_file(
    parts: dict[str, Path], threads: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PRIVTAIL_THREADS", threads)
    one = written(tmp_path, "parquet-groups", frame())
    options: Any = {"epsilon": 3.0, "noise": "simulated", "random_state": 0}
    tables = [
        lambda drop: privtail.open_table(parts["parquet"], categories=JOBS, drop=drop),
        lambda drop: privtail.open_table(one, categories=JOBS, drop=drop),
    ]
    lines = [DPLinearRegression(**options).fit(open_(["late"]), "cost") for open_ in tables]
    assert np.array_equal(lines[0].coef_, lines[1].coef_)
    assert lines[0].intercept_ == lines[1].intercept_
    found = DPLinearRegression(categories=JOBS, **options).fit(
        frame().drop(columns=["late", "cost"]), frame()["cost"]
    )
    assert np.array_equal(lines[0].coef_, found.coef_)
    labels = [DPLogisticRegression(**options).fit(open_(["cost"]), "late") for open_ in tables]
    assert np.array_equal(labels[0].coef_, labels[1].coef_)
    assert labels[0].classes_.tolist() == labels[1].classes_.tolist()


def test_persons_whose_rows_are_in_several_files(tmp_path: Path) -> None:
    who = np.arange(60) % 7
    for i, start in enumerate(range(0, 60, 20)):
        part = slice(start, start + 20)
        columns = {"who": who[part].astype(str), "x": np.arange(60.0)[part], "y": np.ones(20)}
        pq.write_table(pa.table(columns), tmp_path / f"{i}.parquet")
    table = privtail.open_table(tmp_path)
    assert person_ids(table, "who").tolist() == [str(i).encode() for i in who]
    options: Any = {"epsilon": 3.0, "noise": "simulated", "random_state": 0, "max_rows": 2}
    found = DPLinearRegression(**options).fit(table, "y", groups="who")
    same = DPLinearRegression(**options).fit(
        {"x": np.arange(60.0)}, np.ones(60), groups=who.astype(str)
    )
    assert np.array_equal(found.coef_, same.coef_)


def test_ids_are_never_rounded_to_doubles(tmp_path: Path) -> None:
    """A writer makes doubles where one id is missing, and 2^60 and 2^60 + 1 are one double."""
    ids = [2**60, 2**60 + 1]
    some(tmp_path / "a.parquet", who=pa.array(ids, pa.int64()), x=[0.0, 1.0])
    some(tmp_path / "b.parquet", who=pa.nulls(1), x=[2.0])
    some(tmp_path / "c.parquet", who=pa.array([7], pa.uint32()), x=[3.0])
    assert person_ids(privtail.open_table(tmp_path), "who").tolist() == [*ids, None, 7]
    for other in (pa.float64(), pa.uint64()):
        some(tmp_path / "d.parquet", who=pa.array([None], other), x=[4.0])
        with pytest.raises(InvalidInput, match="two persons one person"):
            person_ids(privtail.open_table(tmp_path), "who")


# ---------------------------------------------------------------- Which files, in which order


def some(path: Path, **columns: Any) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(pa.table(columns or {"x": [1.0], "y": [2.0]}), path)
    return path


def refused(data: Any, **options: Any) -> str:
    with pytest.raises(InvalidInput) as caught:
        privtail.open_table(data, **options)
    assert "secret" not in str(caught.value)
    return str(caught.value)


def names(data: Any) -> list[str]:
    return [path.name for path in privtail.open_table(data).paths]


def test_folders_patterns_and_lists(tmp_path: Path) -> None:
    a, b = some(tmp_path / "y=1" / "a.parquet"), some(tmp_path / "y=2" / "b.parquet")
    odd = some(tmp_path / "d[1].parquet")
    some(tmp_path / "c.parquet")
    hidden = some(tmp_path / "_tmp" / "e.parquet")
    everything = ["c.parquet", "d[1].parquet", "a.parquet", "b.parquet"]
    assert names(tmp_path) == names(str(tmp_path)) == names(f"{tmp_path}/*") == everything
    assert names(f"{tmp_path}/**/*.parquet") == everything
    assert names(f"{tmp_path}/y=*") == names([b, a]) == ["a.parquet", "b.parquet"]
    assert names([tmp_path / "y=2", f"{tmp_path}/c*"]) == ["c.parquet", "b.parquet"]
    assert names(odd) == ["d[1].parquet"]
    assert names(f"{tmp_path}/_t*/*") == names(hidden) == ["e.parquet"]
    assert privtail.open_table(tmp_path).names == ("x", "y")
    assert "no column 'year'" in refused(tmp_path, numeric=["year"])


def test_files_that_are_added_later_do_not_count(tmp_path: Path) -> None:
    some(tmp_path / "a.parquet")
    table = privtail.open_table(tmp_path)
    some(tmp_path / "b.parquet")
    assert table.without("x").n == 1


@pytest.mark.parametrize("link", [os.symlink, os.link])
def test_one_file_under_two_names_is_refused(tmp_path: Path, link: Any) -> None:
    a = some(tmp_path / "a.parquet")
    assert "is named twice" in refused([a, tmp_path])
    link(a, tmp_path / "b.parquet")
    assert "b.parquet is the file" in refused(tmp_path)


@pytest.mark.parametrize(
    "url",
    [
        "local://{}/a.parquet", "file://{}/a.parquet", "simplecache::file://{}/a.parquet",
        "dir://a.parquet::file://{}",
    ],
)  # fmt: skip
def test_one_file_under_two_addresses_is_refused(tmp_path: Path, url: str) -> None:
    a = some(tmp_path / "a.parquet")
    assert "count twice" in refused([a, url.format(tmp_path)])
    assert privtail.open_table(url.format(tmp_path)).n == 1
    with pytest.raises(InvalidInput, match="count twice"):
        Files("it", (a, a), Dialect(), ())


def test_a_listing_that_names_a_file_twice_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What finds the files is outside the core, and is not believed."""
    a = some(tmp_path / "a.parquet")
    monkeypatch.setattr(files, "listed", lambda data: (a, (a, a)))
    with pytest.raises(InvalidInput, match="count twice"):
        privtail.open_table(a)


def test_derived_tables_are_of_the_same_opened_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "a.csv"
    path.write_text("x,job,who\n" + "".join(f"{i},a,{i}\n" for i in range(20)))
    file = privtail.open_table(path)
    assert file.n == 20
    monkeypatch.setattr(files, "Files", None)
    monkeypatch.setattr(files, "listed", None)
    typed = file.without("who").declaring({"job": ("a", "b")})
    assert (file.kept(), typed.kept()) == (("x", "job", "who"), ("x", "job"))
    assert (file.categories, typed.categories) == ({}, {"job": ("a", "b")})
    some = typed.exposed("x").part(np.arange(4, 14)).part(np.array([0, 9]))
    assert (some.n, some.exposure, file.exposure) == (2, "x", None)
    assert [batch["x"].to_pylist() for batch in some.batches(["x"], ())] == [["4", "13"]]


def test_links_to_folders_are_followed(tmp_path: Path) -> None:
    some(tmp_path / "elsewhere" / "a.parquet")
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "link").symlink_to(tmp_path / "elsewhere")
    assert names(tmp_path / "data") == names(f"{tmp_path}/data/**/*.parquet") == ["a.parquet"]


def test_nothing_to_read_is_refused(tmp_path: Path) -> None:
    assert "holds no file" in refused(tmp_path)
    (tmp_path / "_SUCCESS").touch()
    assert "holds no file" in refused(tmp_path)
    assert "No file matches" in refused(tmp_path / "*.parquet")
    assert "list of files is empty" in refused([])
    assert "There is no file" in refused(tmp_path / "a.parquet")
    assert "a.parquet cannot be read" in refused([tmp_path / "a.parquet", tmp_path / "b.parquet"])
    for data in (3, [3], frame(50), b"a"):
        assert "or a list of paths" in refused(data)
        assert refused(data).endswith("Pass a data frame in memory as it is, without open_table.")
    for name in ("a", "b"):
        some(tmp_path / f"{name}.parquet", x=pa.array([], pa.float64()))
    with pytest.raises(InvalidInput, match="has no rows"):
        _ = privtail.open_table(tmp_path).n


def test_files_of_other_formats_are_refused(tmp_path: Path) -> None:
    for name in ("a", "b"):
        some(tmp_path / f"{name}.parquet")
    odd = tmp_path / "c.csv"
    odd.write_text("x,y\n1,secret\n")
    text = refused(tmp_path)
    assert f"{odd} is no Parquet file" in text
    assert f"'{tmp_path}/**/*.parquet'" in text
    assert len(names(f"{tmp_path}/**/*.parquet")) == 2
    assert "Name files of one format" in refused([odd, tmp_path / "a.parquet"])
    odd.write_bytes(b"")
    assert "c.csv is empty, so it is no Parquet file" in refused(tmp_path)
    odd.write_bytes(b"PAR1secret")
    assert "c.csv is a damaged Parquet file" in refused(tmp_path)
    odd.unlink()
    (tmp_path / "_delta_log").mkdir()
    assert "is a Delta table" in refused(tmp_path)


# ---------------------------------------------------------------- Columns that differ

ODD: dict[str, tuple[Any, list[str]]] = {
    "another type": (pa.array(["secret"]), ["values of type text", "values of type double"]),
    "truths": (pa.array([True]), ["values of type bool", "values of type double"]),
    "missing": (None, ["has no column 'x'", "has one"]),
}


@pytest.mark.parametrize("first", [False, True], ids=["last", "first"])
@pytest.mark.parametrize(("column", "says"), ODD.values(), ids=ODD)
def test_the_odd_file_and_column_are_named(
    tmp_path: Path, column: Any, says: list[str], first: bool
) -> None:
    for name in ("b", "c"):
        some(tmp_path / f"{name}.parquet", x=[0.5], z=[1.0], y=[2.0])
    columns = {"z": [1.0], "y": [2.0]} | ({} if column is None else {"x": column})
    odd = some(tmp_path / f"{'a' if first else 'd'}.parquet", **columns)
    text = refused(tmp_path)
    assert all(part in text for part in [str(odd), "'x'", 'drop=["x"]', *says])
    table = privtail.open_table(tmp_path, drop=["x"])
    assert table.features("y") == ("z",)
    assert table.n == 3
    lazy = TableFile(tmp_path)
    with pytest.raises(InvalidInput, match="'x'"):
        Curator(lazy, "y", budget=Budget(1.0, 1e-6))
    with pytest.raises(InvalidInput, match="'x'"):
        read_columns(lazy, ["x"])


def test_a_column_of_one_file_alone_is_named(tmp_path: Path) -> None:
    for name in ("a", "b"):
        some(tmp_path / f"{name}.parquet")
    some(tmp_path / "c.parquet", x=[1.0], y=[2.0], more=[3.0])
    assert "c.parquet has a column 'more', but" in refused(tmp_path)
    assert privtail.open_table(tmp_path, drop=["more"]).features("y") == ("x",)


def test_text_may_be_written_in_any_way(tmp_path: Path) -> None:
    text = pa.array(["a", "b", None])
    kinds = [
        text, text.cast(pa.large_string()), text.dictionary_encode(),
        pa.array(["b", "c", "a"]).dictionary_encode().cast(pa.dictionary(pa.int8(), "string")),
    ]  # fmt: skip
    for i, cells in enumerate(kinds):
        some(tmp_path / f"{i}.parquet", job=cells, x=[1.0, 2.0, 3.0])
    table = privtail.open_table(tmp_path, categories={"job": ["a", "b"]})
    expected = ["a", "b", None] * 3 + ["b", "c", "a"]
    assert read_columns(table, [], {"job": ["a"]})["job"].tolist() == expected
    assert [v and v.decode() for v in table.ids("job")] == expected
    curator = Curator(table, None, budget=Budget(1.0, 1e-6))
    rows = np.concatenate(
        [w.open()[0].rows(slice(None)).transformed(np.ones(3), np.zeros(3))
         for w in curator._data.windows(False)]
    )  # fmt: skip
    assert rows[:, 0].tolist() == [cell == "a" for cell in expected]
    assert rows[:, 1].tolist() == [cell == "b" for cell in expected]


ALIKE: dict[str, list[Any]] = {
    "no values": [pa.array([0.5, 2.0]), pa.nulls(1), pa.array([None], pa.float64())],
    "no values first": [pa.nulls(2), pa.array([1.0])],
    "whole numbers": [pa.array([0.5, None]), pa.array([3]), pa.array([4], pa.uint8())],
    "narrow numbers": [pa.array([1, 2], pa.int8()), pa.array([0.5], pa.float32())],
    "numbers of a dictionary": [pa.array([0.5]), pa.array([7, 8]).dictionary_encode()],
    "large numbers": [pa.array([0.5]), pa.array([2**62 + 1])],
}


@pytest.mark.parametrize("columns", ALIKE.values(), ids=ALIKE)
def test_numbers_of_other_types_are_doubles_and_no_values_are_missing(
    tmp_path: Path, columns: list[Any]
) -> None:
    """The bits of one file of doubles: a type that a writer took from its cells means nothing."""
    for i, cells in enumerate(columns):
        some(tmp_path / "many" / f"{i}.parquet", x=cells, y=np.arange(1.0, 1 + len(cells)))
    many = privtail.open_table(tmp_path / "many")
    cells = [float("nan" if v is None else v) for part in columns for v in part.to_pylist()]
    y = np.concatenate([np.arange(1.0, 1 + len(part)) for part in columns])
    one = privtail.open_table(some(tmp_path / "one.parquet", x=np.array(cells), y=y))
    np.testing.assert_array_equal(read_columns(many, ["x"])["x"], cells)
    options: Any = {"epsilon": 3.0, "noise": "simulated", "random_state": 0}
    found, same = (DPLinearRegression(**options).fit(table, "y") for table in (many, one))
    assert np.array_equal(found.coef_, same.coef_)
    assert found.intercept_ == same.intercept_


def test_labels_of_several_types(tmp_path: Path) -> None:
    for i, cells in enumerate([pa.array([1, 2]), pa.array([2.0, 1.5]), pa.nulls(1)]):
        some(tmp_path / f"{i}.parquet", who=cells, job=pa.array(["a"] * len(cells)))
    some(tmp_path / "3.parquet", who=pa.array([1]), job=pa.nulls(1))
    some(tmp_path / "4.parquet", who=pa.array([1]), job=pa.array(["b"]).dictionary_encode())
    table = privtail.open_table(tmp_path, categories={"who": [1, 2], "job": ["a", "b"]})
    who = [1, 2, 2, 1.5, None, 1, 1]
    curator = Curator(table, None, budget=Budget(1.0, 1e-6))
    rows = np.concatenate(
        [w.open()[0].rows(slice(None)).transformed(np.ones(4), np.zeros(4))
         for w in curator._data.windows(False)]
    )  # fmt: skip
    assert [one.tolist() for one in rows.T] == [
        [one == 1 for one in who], [one == 2 for one in who],
        [1, 1, 1, 1, 1, 0, 0], [0, 0, 0, 0, 0, 0, 1],
    ]  # fmt: skip


# ---------------------------------------------------------------- Columns of folders


def hive(folder: Path, kind: str = "parquet") -> Path:
    none = "__HIVE_DEFAULT_PARTITION__"
    for year, region in (("2023", "no%20rth"), ("2024", "south"), ("2024", "x"), ("2025", none)):
        path = folder / f"year={year}" / f"region={region}" / f"a.{kind}"
        path.parent.mkdir(parents=True)
        x = np.arange(40.0) + int(year)
        rows = pa.table({"x": x, "y": x % 7})
        if kind == "csv":
            rows.to_pandas().to_csv(path, index=False)
        else:
            pq.write_table(rows, path)
    return folder


@pytest.mark.parametrize("kind", ["parquet", "csv"])
def test_names_of_folders_become_columns_if_they_are_declared(tmp_path: Path, kind: str) -> None:
    folder = hive(tmp_path, kind)
    assert privtail.open_table(folder).names == ("x", "y")
    regions = {"region": ["no rth", "south"]}
    table = privtail.open_table(folder, categories=regions, partition_columns=["year", "region"])
    assert table.names == ("x", "y", "year", "region")
    frame = pd.DataFrame(
        {
            "x": np.concatenate([np.arange(40.0) + one for one in (2023, 2024, 2024, 2025)]),
            "year": np.repeat([2023, 2024, 2024, 2025], 40),
            "region": np.repeat(["no rth", "south", "x", None], 40),
        }
    )
    y = np.concatenate([(np.arange(40.0) + one) % 7 for one in (2023, 2024, 2024, 2025)])
    options: Any = {"epsilon": 3.0, "noise": "simulated", "random_state": 0}
    found = DPLinearRegression(**options).fit(table, "y")
    same = DPLinearRegression(categories=regions, **options).fit(frame, y)
    assert np.array_equal(found.coef_, same.coef_)
    said = "The names of folders are public. They are columns of the table: year, region."
    assert said in found.privacy_.assumptions
    assert said not in same.privacy_.assumptions
    by_year = DPLinearRegression(**options, max_rows=40).fit(
        privtail.open_table(folder, partition_columns=["year"]), "y", groups="year"
    )
    assert by_year.n_features_in_ == 1
    model = found.to_model()
    np.testing.assert_array_equal(model.predict(table), model.predict(frame))
    counts = Curator(table, "year", classes=[2023, 2024], budget=Budget(1.0, 1e-6))
    assert sum(w.stop - w.start for w in counts._data.windows(True)) == 160


def test_numbers_among_names_of_folders() -> None:
    def values(*names: str) -> list[Any]:
        return partition_values([f"a/b={name}/c.csv" for name in names], "b")

    assert values("1", "02") == [1, 2]
    assert values("1", "2.5") == [1.0, 2.5]
    assert values("1", "x=y") == ["1", "x=y"]
    assert values("1", "__HIVE_DEFAULT_PARTITION__") == [1, None]
    assert values(str(2**64)) == [2.0**64]
    assert partition_values(["b=1/b=2/c.csv"], "b") == [2]


def test_partition_columns_that_are_none_are_refused(tmp_path: Path) -> None:
    hive(tmp_path)
    assert "in no folder 'years=...'" in refused(tmp_path, partition_columns=["years"])
    assert "partition_columns=['year']" in refused(tmp_path, partition_columns="year")
    some(tmp_path / "year=2022" / "a.parquet", x=[1.0], y=[1.0], year=[1.0])
    text = refused(tmp_path, partition_columns=["year"])
    assert "year=2022/a.parquet has a column 'year' of its own" in text
    some(tmp_path / "year=2022" / "a.parquet", x=[1.0], y=[1.0])
    text = refused(tmp_path, partition_columns=["year", "region"])
    assert "year=2022/a.parquet is in no folder 'region=...'" in text


def test_columns_may_stand_in_another_order_and_an_index_in_some_files(tmp_path: Path) -> None:
    some(tmp_path / "a.parquet", x=[1.0], y=[2.0])
    some(tmp_path / "b.parquet", y=[4.0], x=[3.0])
    frame(50)[["x"]].assign(y=0.0)[48:].to_parquet(tmp_path / "c.parquet")
    frame(50)[["x"]].assign(y=0.0)[::25].to_parquet(tmp_path / "d.parquet")
    table = privtail.open_table(tmp_path)
    assert table.features("y") == ("x",)
    assert read_columns(table, ["x", "y"])["y"].tolist() == [2.0, 4.0, 0, 0, 0, 0]


def test_no_cell_decides_what_is_refused(tmp_path: Path) -> None:
    """Cells of one type, however odd: the same columns, shapes and windows."""
    seen = []
    for cells in ([0.0, 1.0, 2.0], [np.nan, np.inf, 1e308], [None, None, None]):
        some(tmp_path / "a.parquet", x=pa.array(cells, pa.float64()), y=[1.0, 2.0, 3.0])
        some(tmp_path / "b.parquet", x=pa.array([1.0]), y=[1.0])
        curator = Curator(privtail.open_table(tmp_path), "y", budget=Budget(1.0, 1e-6))
        windows = [(w.start, w.stop) for w in curator._data.windows(False)]
        seen.append((curator.problem.n, curator.problem.d, windows))
    assert seen[0] == seen[1] == seen[2] == (4, 1, [(0, 3), (3, 4)])


# ---------------------------------------------------------------- Files that change


@pytest.mark.parametrize("fault", ["touched", "longer", "gone", "replaced", "alike", "rewritten"])
@pytest.mark.parametrize("kind", ["parquet", "csv"])
def test_a_file_that_changes_between_passes_stops_the_fit(
    tmp_path: Path, kind: str, fault: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "data").mkdir()
    folder = split(tmp_path / "data", kind)
    table = privtail.open_table(folder, categories=JOBS, drop=["late"])
    victim, passes, honest = folder / "year=2023" / f"b.{kind}", [], folders.Files.runs
    content = victim.read_bytes()

    def watched(self: Any, *of: Any) -> Any:
        passes.append(1)
        if len(passes) == 6:
            if fault == "touched":
                os.utime(victim, ns=(1, 1))
            elif fault == "longer":
                victim.write_bytes(content + content)
            elif fault == "gone":
                victim.unlink()
            elif fault == "rewritten":
                then = victim.stat().st_mtime_ns
                victim.write_bytes(content)
                os.utime(victim, ns=(then, then))
            else:
                then = 2 if fault == "replaced" else victim.stat().st_mtime_ns
                other = victim.with_name("new")
                other.write_bytes(content)
                os.utime(other, ns=(then, then))
                other.replace(victim)
        return honest(self, *of)

    monkeypatch.setattr(folders.Files, "runs", watched)
    ledger = Ledger(tmp_path / "ledger.jsonl", epsilon=2.0, delta=1e-5)
    model = DPLinearRegression(epsilon=1.0, delta=1e-6, ledger=ledger)
    with pytest.raises(InvalidInput) as caught:
        model.fit(table, "cost")
    assert str(victim) in str(caught.value)
    assert len(passes) == 6
    assert not hasattr(model, "coef_")
    assert ledger.spent == pytest.approx((1.0, 1e-6))


@pytest.mark.parametrize("fault", ["longer", "gone"])
@pytest.mark.parametrize("kind", ["parquet", "csv"])
@pytest.mark.parametrize("what", ["fit", "mean", "summary"])
def test_a_file_that_changed_since_it_was_opened_costs_nothing(
    tmp_path: Path, kind: str, fault: str, what: str
) -> None:
    folder = split(tmp_path, kind)
    table = privtail.open_table(folder, categories=JOBS, drop=["late"])
    victim = folder / "year=2023" / f"b.{kind}"
    if fault == "longer":
        victim.write_bytes(victim.read_bytes() * 2)
    else:
        victim.unlink()
    ledger = Ledger(epsilon=2.0, delta=1e-5)
    call = {
        "fit": lambda: DPLinearRegression(epsilon=1.0, ledger=ledger).fit(table, "cost"),
        "mean": lambda: privtail.private_mean(table, epsilon=1.0, ledger=ledger),
        "summary": lambda: privtail.summarize(table, epsilon=1.0, ledger=ledger),
    }[what]
    with pytest.raises(InvalidInput, match=r"b\.(parquet|csv)"):
        call()
    assert ledger.spent == (0.0, 0.0)
