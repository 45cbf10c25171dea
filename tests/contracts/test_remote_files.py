"""Files of other file systems, and compressed ones: the bits of local files, no key in an error."""

from __future__ import annotations

import bz2
import gzip
import io
import sys
import traceback
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import privtail
from privtail.cli.accuracy import read_columns
from privtail.errors import InvalidInput
from privtail.linear_model import DPLinearRegression
from privtail.storage import remote
from privtail.trusted.files import folders
from privtail.trusted.ledger import Ledger
from tests.contracts.test_folders import split
from tests.contracts.test_streams import JOBS, N, answers, frame, require_equal

pa = pytest.importorskip("pyarrow")
fsspec = pytest.importorskip("fsspec")

PACKED = {
    "gz": gzip.compress,
    "bz2": bz2.compress,
    "zst": lambda text: pa.compress(text, "zstd", asbytes=True),
}


@pytest.fixture
def memory() -> Any:
    """An empty file system in memory."""
    system = fsspec.filesystem("memory")
    system.store.clear()
    system.pseudo_dirs[:] = [""]
    return system


def copied(folder: Path, system: Any, place: str, pack: Any = bytes, ending: str = "") -> None:
    for file in filter(Path.is_file, folder.rglob("*")):
        name = f"{place}/{file.relative_to(folder).as_posix()}{ending}"
        system.pipe(name, pack(file.read_bytes()))


def refused(data: Any, **options: Any) -> str:
    with pytest.raises(InvalidInput) as caught:
        privtail.open_table(data, **options)
    text = "".join(traceback.format_exception(caught.value))
    assert "secret" not in text
    return str(caught.value)


# ---------------------------------------------------------------- The same bits


@pytest.mark.parametrize("kind", ["parquet", "csv", "arrow", *(f"csv.{e}" for e in PACKED)])
def test_a_remote_folder_gives_the_bits_of_memory(tmp_path: Path, memory: Any, kind: str) -> None:
    form, _, ending = kind.partition(".")
    local = split(tmp_path, f"{form}-groups")
    pack = PACKED.get(ending, bytes)
    copied(local, memory, "/claims", pack, f".{ending}" * bool(ending))
    data = frame().drop(columns="late")
    expected = answers(data.drop(columns="cost"), data["cost"])
    options: Any = {"categories": JOBS, "drop": ["late"]}
    for place in ("memory://claims", "memory://claims/**", ["memory://claims/"]):
        table = privtail.open_table(place, **options)
        assert (table.n, len(table.paths)) == (N, 6)
    require_equal(answers(table, "cost"), expected)


@pytest.mark.parametrize("ending", PACKED)
def test_compressed_files_of_this_machine(tmp_path: Path, ending: str) -> None:
    text = frame().to_csv(index=False).encode()
    plain, packed = tmp_path / "a.csv", tmp_path / f"a.csv.{ending}"
    plain.write_bytes(text)
    packed.write_bytes(PACKED[ending](text))
    tables = [privtail.open_table(path, categories=JOBS, drop=["late"]) for path in (plain, packed)]
    require_equal(*(answers(table, "cost") for table in tables))
    assert tables[1].n == N


def test_a_compressed_file_of_two_parts_is_read_whole(tmp_path: Path) -> None:
    path = tmp_path / "a.csv.gz"
    path.write_bytes(gzip.compress(b"x,y\n1,2\n") + gzip.compress(b"3,4\n"))
    assert read_columns(privtail.open_table(path), ["x"])["x"].tolist() == [1, 3]


def test_a_compressed_file_that_is_cut_short_is_refused(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    rows = "".join(f"{x!r},77777\n" for x in rng.standard_normal(9_000).tolist())
    path = tmp_path / "a.csv.gz"
    path.write_bytes(gzip.compress(f"x,y\n{rows}".encode())[:-20_000])
    with pytest.raises(InvalidInput, match=r"a\.csv\.gz") as caught:
        _ = privtail.open_table(path).n
    assert "77777" not in str(caught.value)


def test_urls_of_local_files_and_of_archives(tmp_path: Path) -> None:
    local = tmp_path / "a b.csv"
    local.write_text("x,y\n1,2\n")
    assert privtail.open_table(local.as_uri()).paths == (local,)
    assert privtail.open_table(tmp_path.as_uri()).paths == (local,)
    with zipfile.ZipFile(tmp_path / "all.zip", "w") as archive:
        archive.write(local, "in/a.csv")
        archive.write(local, "in/b.csv")
    table = privtail.open_table(f"zip://in/*.csv::{(tmp_path / 'all.zip').as_uri()}")
    assert (table.n, read_columns(table, ["x"])["x"].tolist()) == (2, [1, 1])
    assert "named twice" in refused([local.as_uri(), local])


def test_file_systems_of_arrow(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A URL that fsspec lacks the package for goes to PyArrow."""
    (tmp_path / "a.csv").write_text("x,y\n1,2\n")

    def lacking(url: str) -> Any:
        raise ImportError("Install s3fs to access S3")

    monkeypatch.setattr(fsspec.core, "url_to_fs", lacking)
    real = pa.fs.FileSystem
    monkeypatch.setattr(remote, "here", lambda url: None)
    monkeypatch.setattr(
        pa.fs, "FileSystem",
        type("S3", (), {"from_uri": lambda url: real.from_uri(f"file://{tmp_path}")}),
    )  # fmt: skip
    table = privtail.open_table("s3://bucket")
    assert table.n == 1
    (tmp_path / "a.csv").write_text("x,y\n1,2\n3,4\n")
    with pytest.raises(InvalidInput, match="was written to"):
        list(table.batches(["x"], ()))


# ---------------------------------------------------------------- What is refused


def test_what_is_no_table_is_refused(memory: Any) -> None:
    assert "no file memory://" in refused("memory://nothing.csv")
    assert "No file matches memory://nothing" in refused("memory://nothing*")
    memory.pipe("/d/_SUCCESS", b"")
    assert "No file matches" in refused("memory://d")
    memory.pipe("/d/a.csv", b"x,y\n1,2\n")
    assert privtail.open_table("memory://d/[a-z]*").n == 1
    memory.pipe("/d/b.csv", b"x,z\nsecret,2\n")
    text = refused("memory://d")
    assert "memory://d/b.csv has no column 'y'" in text
    assert "is named twice" in refused(["memory://d/a.csv", "memory://d"])
    memory.pipe("/d/_delta_log/0.json", b"{}")
    assert "is a Delta table" in refused("memory://d")


def test_no_key_is_in_an_error(memory: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    lacking = refused("nosuchsystem://user:secret@bucket/a.csv")
    assert "nosuchsystem://bucket/a.csv cannot be read" in lacking
    assert "https://" in refused("https://h.invalid/a.csv?signature=secret")
    with pytest.raises(InvalidInput, match=r"open_table\('s3://bucket/a\.csv'\)"):
        DPLinearRegression().fit("s3://user:secret@bucket/a.csv", "y")

    def failing(*_: Any, **__: Any) -> Any:
        raise RuntimeError("403 for https://bucket/a.csv?signature=secret")

    memory.pipe("/a.csv", b"x,y\n1,2\n")
    table = privtail.open_table("memory://a.csv")
    monkeypatch.setattr(type(memory), "open", failing)
    assert "memory://a.csv cannot be read (RuntimeError)" in refused("memory://a.csv")
    with pytest.raises(InvalidInput, match="RuntimeError") as caught:
        list(table.batches(["x"], ()))
    assert "secret" not in "".join(traceback.format_exception(caught.value))
    monkeypatch.setattr(type(memory), "info", failing)
    assert "memory://a.csv cannot be read" in refused("memory://a.csv")


def test_a_file_system_that_fails_within_a_pass(
    memory: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    buffer = io.BytesIO()
    frame(5_000).to_parquet(buffer, row_group_size=500)
    memory.pipe("/a.parquet", buffer.getvalue())
    table = privtail.open_table("memory://a.parquet", categories=JOBS)
    read = fsspec.implementations.memory.MemoryFile.read
    calls: list[int] = []

    def failing(self: Any, *size: Any) -> Any:
        calls.append(1)
        if len(calls) > 5:
            raise RuntimeError("token=secret")
        return read(self, *size)

    monkeypatch.setattr(fsspec.implementations.memory.MemoryFile, "read", failing, raising=False)
    with pytest.raises(InvalidInput, match=r"memory://a.parquet cannot be read") as caught:
        list(table.batches(list(table.names), ()))
    assert "secret" not in "".join(traceback.format_exception(caught.value))


def test_the_command_line_shows_no_key(
    memory: Any, monkeypatch: pytest.MonkeyPatch, capsys: Any
) -> None:
    from privtail.cli import main

    memory.pipe("/a.csv", b"x,y\n" + b"1,2\n" * 200)
    monkeypatch.setattr(fsspec.core, "url_to_fs", lambda url: (memory, "/a.csv"))
    words = ["--column", "x", "--epsilon", "1", "--noise", "simulated"]
    monkeypatch.setattr(sys, "argv", ["privtail", "mean", "ftp://me:secret@host/a.csv", *words])
    with pytest.raises(SystemExit):
        main()
    said = "".join(capsys.readouterr())
    assert "ftp://host/a.csv: 200 rows" in said
    assert "secret" not in said


def test_a_package_that_is_missing_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "fsspec", None)
    assert "pip install 'privtail[remote]'" in refused("s3://user:secret@bucket/a.csv")


# ---------------------------------------------------------------- Files that change


@pytest.mark.parametrize("fault", ["written", "longer", "gone"])
def test_a_remote_file_that_changes_stops_the_fit(
    tmp_path: Path, memory: Any, fault: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "data").mkdir()
    copied(split(tmp_path / "data", "parquet"), memory, "/claims")
    table = privtail.open_table("memory://claims", categories=JOBS, drop=["late"])
    victim, passes, honest = "/claims/year=2023/b.parquet", [], folders.Files.runs
    content = memory.cat(victim)

    def watched(self: Any, *of: Any) -> Any:
        passes.append(1)
        if len(passes) == 6 and fault == "gone":
            memory.rm(victim)
        elif len(passes) == 6:
            memory.pipe(victim, content * (2 if fault == "longer" else 1))
        return honest(self, *of)

    monkeypatch.setattr(folders.Files, "runs", watched)
    ledger = Ledger(tmp_path / "ledger.jsonl", epsilon=2.0, delta=1e-5)
    model = DPLinearRegression(epsilon=1.0, delta=1e-6, ledger=ledger)
    with pytest.raises(InvalidInput, match=r"memory://claims/year=2023/b\.parquet"):
        model.fit(table, "cost")
    assert len(passes) == 6
    assert not hasattr(model, "coef_")
    assert ledger.spent == pytest.approx((1.0, 1e-6))


def test_a_version_is_known_by_what_the_file_system_says(memory: Any) -> None:
    """Size and time alone do not tell two versions that were written in one second."""
    memory.pipe("/a.csv", b"x,y\n1,2\n")
    told = {"size": 8, "ETag": "one", "LastModified": "noon", "accessed": "now"}
    system: Any = type("S", (), {
        "invalidate_cache": lambda _: None, "info": lambda _, path: dict(told),
        "modified": lambda _, path: "noon",
    })()  # fmt: skip
    file = remote.RemoteFile(system, "a.csv", "s3://a.csv")
    before = file.state()
    told["accessed"] = "later"
    assert file.state() == before
    told["ETag"] = "two"
    assert file.state() != before
