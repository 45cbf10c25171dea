"""``privtail reproduce`` and ``privtail data``."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest

pytest.importorskip("typer")
pytest.importorskip("pandas")

from typer.testing import CliRunner

import privtail.cli.reproduce as verb
from experiments import papers, runner
from experiments.study import DataSet
from privtail.cli.application import application
from privtail.data import ADULT
from privtail.data.catalogue import CATALOGUE, folder, located


def privtail(*words, code=0):
    result = CliRunner().invoke(application, [str(word) for word in words])
    assert result.exit_code == code, result.output
    return result


def test_the_list_names_every_study_its_item_its_time_and_its_data():
    said = privtail("reproduce", "LIST").stdout
    for study in papers.studies().values():
        assert study.name in said
        assert study.title in said
    assert "data here" in said
    assert "results, " in said or "no results" in said
    assert "All: quick" in said
    assert "on two cores" in said


def test_an_unknown_name_is_refused():
    said = privtail("reproduce", "wang1820", code=2).stderr
    assert "no study 'wang1820'" in said
    assert "privtail reproduce LIST" in said


def test_without_the_repository_it_says_what_to_do(monkeypatch, tmp_path):
    monkeypatch.setattr(verb.privtail, "__file__", str(tmp_path / "a" / "b" / "c.py"))
    assert "make reproduce" in privtail("reproduce", "LIST", code=2).stderr


def test_without_a_library_it_names_it(monkeypatch):
    monkeypatch.setattr(verb, "NEEDED", ("pandas", "nosuchlibrary"))
    assert "pip install nosuchlibrary" in privtail("reproduce", "LIST", code=2).stderr


def test_a_run_ends_with_its_verdicts_and_skips_what_has_no_data(monkeypatch, tmp_path):
    from dataclasses import replace

    kept = papers.studies()["wang2020-figure-4a"]
    small = replace(kept.quick, points=(100.0, 200.0), epsilons=(1.0,), repetitions=2, varied=0)
    mine = replace(kept, quick=small)
    law = DataSet(name="a table", draw=kept.data[0].draw, needs=("news",))
    lost = replace(mine, name="wang2020-lost", data=(law,))
    monkeypatch.setenv("PRIVTAIL_DATA", str(tmp_path / "nowhere"))
    monkeypatch.setattr(runner, "chosen", lambda names: [mine, lost])
    monkeypatch.setattr(runner, "BUILD", tmp_path / "build")
    monkeypatch.setitem(runner._GIVEN, mine.name, mine)
    result = privtail("reproduce", kept.name, "--out", tmp_path, "--processes", 1)
    assert (tmp_path / f"{kept.name}.parquet").is_file()
    assert "The error falls as n grows." in result.stdout
    assert "skipped, news is missing (privtail data)" in result.stderr
    assert "study 1 of 2" in result.stderr


def test_data_says_what_is_here_and_where_the_rest_is(monkeypatch, tmp_path):
    monkeypatch.setenv("PRIVTAIL_DATA", str(tmp_path))
    said = privtail("data").stdout
    for info in CATALOGUE.values():
        for fact in (info.name, info.doi, info.sha256, info.licence, info.file):
            assert fact in said
    assert located("adult") == ADULT
    assert located("covertype") is None


def test_tables_are_looked_for_beside_the_checkout(monkeypatch, tmp_path):
    monkeypatch.delenv("PRIVTAIL_DATA", raising=False)
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    assert folder() is None
    (tmp_path / "shared" / "data").mkdir(parents=True)
    assert folder() == Path("../shared/data")


def test_a_file_that_is_another_is_named(monkeypatch, tmp_path):
    monkeypatch.setenv("PRIVTAIL_DATA", str(tmp_path))
    file = tmp_path / CATALOGUE["news"].file
    file.parent.mkdir()
    file.write_bytes(b"something else")
    said = privtail("data", "--check").stdout
    assert said.count("ANOTHER FILE") == 1
    assert said.count("the checksum agrees") == 1, "Adult"


def test_adult_in_the_package_is_the_one_of_the_catalogue():
    assert hashlib.sha256(ADULT.read_bytes()).hexdigest() == CATALOGUE["adult"].sha256
