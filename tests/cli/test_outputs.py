"""Where results go: what is there is written through, and what was paid for is not lost."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from pathlib import Path

import pytest

import privtail
from privtail.errors import InvalidInput
from privtail.written import written_whole

FIT = ("fit", "claims.csv", "--target", "cost", "--model", "linear", "--drop", "job", "--drop",
       "note", "--drop", "late", "--epsilon", 1, "--noise", "simulated", "--seed", 0)  # fmt: skip
MEAN = ("mean", "claims.csv", "--column", "days", "--epsilon", 1, "--noise", "simulated")
ENVIRONMENT = {**os.environ, "PYTHONPATH": str(Path(privtail.__file__).parents[1])}


def process(*words, **options):
    """The command in a process of its own, with its own standard output."""
    return subprocess.run(
        [sys.executable, "-m", "privtail.cli", *map(str, words)],
        env=ENVIRONMENT, stderr=subprocess.PIPE, text=True, check=False, **options,
    )  # fmt: skip


def test_a_link_stays_and_its_file_is_replaced(tmp_path):
    kept, link = tmp_path / "inside" / "model.json", tmp_path / "link.json"
    kept.parent.mkdir()
    kept.write_text("old")
    link.symlink_to(kept)
    with pytest.raises(InvalidInput, match="exists already"), written_whole(link, overwrite=False):
        pass
    with written_whole(link, overwrite=True) as file:
        file.write(b"new")
    assert link.is_symlink()
    assert kept.read_text() == "new"
    dangling = tmp_path / "dangling.json"
    dangling.symlink_to(tmp_path / "inside" / "later.json")
    with written_whole(dangling, overwrite=False) as file:
        file.write(b"new")
    assert (tmp_path / "inside" / "later.json").read_text() == "new"
    assert sorted(p.name for p in kept.parent.iterdir()) == ["later.json", "model.json"]


def test_what_is_no_regular_file_is_written_to(tmp_path):
    pipe, read = tmp_path / "pipe", []
    os.mkfifo(pipe)
    reader = threading.Thread(target=lambda: read.append(pipe.read_text()))
    reader.start()
    with written_whole(pipe, overwrite=True) as file:
        file.write(b"whole")
    reader.join()
    assert read == ["whole"]
    assert pipe.is_fifo()
    (tmp_path / "null").symlink_to("/dev/null")
    with written_whole(tmp_path / "null", overwrite=True) as file:
        file.write(b"whole")
    assert Path("/dev/null").is_char_device()
    assert (tmp_path / "null").is_symlink()
    assert sorted(p.name for p in tmp_path.iterdir()) == ["null", "pipe"]


@pytest.mark.parametrize("name", ["x" * 250, "/proc/model.json"])
def test_a_file_that_cannot_be_written_is_refused_before_the_charge(shell, table, name):
    """Permissions may say of both that they can be."""
    shell("budget", "budget.jsonl", "--epsilon", 9, "--delta", "1e-5")
    before = Path("budget.jsonl").read_bytes()
    for verb in (FIT, MEAN):
        words = [word for word in verb if word not in ("--noise", "simulated")]
        error = shell.refused(*words, "--delta", "1e-6", "--ledger", "budget.jsonl", "--out", name)
        assert "cannot be written" in error
    assert Path("budget.jsonl").read_bytes() == before


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no device that is always full")
def test_a_full_disk_loses_nothing_that_was_paid_for(shell, table):
    with Path("/dev/full").open("w") as full:
        found = process(*MEAN, stdout=full)
        assert found.returncode == 0
        (path,) = shell.folder.glob("privtail-mean-*.txt")
        assert f"What the budget paid for is in {path}" in found.stderr
        assert path.read_text().startswith("days = ")
        found = process(*FIT, stdout=full, cwd=shell.folder)
        assert found.returncode == 0
        assert json.loads(Path("model.json").read_text())["coef"]
        assert "wrote model.json" in found.stderr
        found = process("predict", "model.json", "claims.csv", stdout=full)
    assert found.returncode == 2
    assert found.stderr.splitlines()[-1].endswith("No space left on device.")
    assert "report" not in found.stderr
    found = process(*FIT, "--out", "/dev/full", "--force", stdout=subprocess.PIPE)
    assert found.returncode == 2
    assert json.loads(found.stdout)["coef"]
    assert found.stderr.splitlines()[-1] == (
        "Error. /dev/full cannot be written: No space left on device. Choose another place."
    )


def test_no_standard_output_loses_nothing_that_was_paid_for(shell, table):
    """As where a shell has closed it: Python has none then, and nothing fails."""
    closed = ["sh", "-c", 'exec "$@" >&-', "sh", sys.executable, "-m", "privtail.cli"]
    for words, code in (
        (MEAN, 0),
        (("plan", "--rows", 9, "--features", 1, "--model", "linear", "--epsilon", 1), 2),
    ):
        found = subprocess.run(
            [*closed, *map(str, words)],
            env=ENVIRONMENT, stderr=subprocess.PIPE, text=True, check=False,
        )  # fmt: skip
        assert found.returncode == code
        assert "tandard output" in found.stderr
    (path,) = shell.folder.glob("privtail-mean-*.txt")
    assert path.read_text().startswith("days = ")


def test_a_closed_pipe_loses_no_statement(shell, table):
    for words in (MEAN, FIT):
        reading, writing = os.pipe()
        os.close(reading)
        found = process(*words, stdout=writing)
        os.close(writing)
        assert found.returncode == 0
        assert "What the budget paid for is in" in found.stderr
    reading, writing = os.pipe()
    os.close(reading)
    silent = [sys.executable, "-m", "privtail.cli", *map(str, FIT), "--out", "silent.json"]
    buffered = {**ENVIRONMENT, "PYTHONUNBUFFERED": ""}  # else nothing is left to write at the end
    code = subprocess.call(silent, env=buffered, stdout=writing, stderr=writing)
    os.close(writing)
    assert code == 0
    assert json.loads(Path("silent.json").read_text())["coef"]
    assert len(list(Path.cwd().glob("privtail-statement-*.txt"))) == 2
    reading, writing = os.pipe()
    os.close(reading)
    found = process("predict", "model.json", "claims.csv", stdout=writing)
    os.close(writing)
    assert found.returncode == 141
    assert found.stderr == ""


@pytest.mark.parametrize("mode", [0o600, 0o640, 0o444])
def test_a_file_that_is_replaced_may_be_read_by_the_same_people(tmp_path, mode):
    """Predictions that were kept from others became readable, by --force."""
    path = tmp_path / "predictions.csv"
    path.write_text("old")
    path.chmod(mode)
    with written_whole(path, overwrite=True) as file:
        assert Path(file.name).stat().st_mode & 0o777 == mode
        file.write(b"new")
    assert path.read_text() == "new"
    assert path.stat().st_mode & 0o777 == mode


def test_a_folder_that_cannot_be_looked_into(shell, table, monkeypatch):
    def closed(path, **_):
        raise PermissionError(13, "Permission denied", str(path))

    monkeypatch.setattr(Path, "exists", closed)
    assert shell.refused(*FIT) == "Error. model.json: Permission denied."
