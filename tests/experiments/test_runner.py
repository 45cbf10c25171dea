"""A run that is killed goes on where it stopped; what it finds does not depend on how it ran."""

from __future__ import annotations

import math
from dataclasses import replace
from functools import partial

import numpy as np
import pandas as pd
import pytest

import privtail
from experiments import estimates, runner, verified
from experiments.methods import Reference, thinned
from experiments.study import Axis, Choice, DataSet, Grid, Metric, Study, Task
from privtail.domains import Unconstrained
from privtail.losses import SquaredLoss

GRID = Grid(fixed={"n": 30, "d": 2}, points=(1.0, 2.0), epsilons=(1.0,), repetitions=3, varied=1)
CALLS: list[str] = []


def draw(rng, setting):
    X = rng.standard_normal((int(setting["n"]), 2)) * setting["scale"]
    return Task(
        X=X, y=X[:, 0], loss=SquaredLoss(), domain=Unconstrained(),
        measure=lambda w: {"error": float(np.sum(w)), "first": float(X[0, 0])},
    )  # fmt: skip


CHANGED: list[float] = []


def solve(task, setting, name=""):
    CALLS.append(name)
    changed = sum(CHANGED) if name == "two" else 0.0
    return np.full(2, setting["n"] + setting["scale"] + changed)


@pytest.fixture
def study():
    CALLS.clear()
    CHANGED.clear()
    return Study(
        name="made-up", item="figure 0", title="", axis=Axis(name="n", label="n"),
        metrics=(Metric(name="error", label=""),), data=(DataSet(name="law", draw=draw),),
        methods=tuple(
            Reference(name=name, solve=partial(solve, name=name)) for name in ("one", "two")
        ),
        quick=replace(GRID, points=(20.0, 30.0)), full=GRID, delta=lambda n: 1 / n,
        choices=(Choice(name="scale", value=1.0, reason="none", other=2.0),),
    )  # fmt: skip


def run(study, tmp_path, **options):
    path = runner.run_study(
        study, processes=1, build=tmp_path / "build", results=tmp_path / "results",
        grid=study.quick, **options,
    )  # fmt: skip
    return pd.read_parquet(path)


def test_a_killed_run_goes_on_where_it_stopped(study, tmp_path, monkeypatch):
    whole = run(study, tmp_path / "whole")
    cells = len(list(study.cells()))
    assert len(CALLS) == cells
    CALLS.clear()
    run_cell = runner.run_cell

    def killed(*args, **options):
        if len(CALLS) == 5:
            raise KeyboardInterrupt
        return run_cell(*args, **options)

    monkeypatch.setattr(runner, "run_cell", killed)
    with pytest.raises(KeyboardInterrupt):
        run(study, tmp_path)
    assert not (tmp_path / "results").exists(), "no table of half a study"
    monkeypatch.setattr(runner, "run_cell", run_cell)
    told: list[str] = []
    resumed = run(study, tmp_path, tell=told.append)
    assert len(CALLS) == cells + 2, "five before the kill, one of each method again, the rest"
    assert "5 of" in told[0]
    assert not list((tmp_path / "build").iterdir()), "parts go when the table is there"
    assert not len(set(CALLS) - {"one", "two"})
    same = [c for c in runner.COLUMNS if c != "seconds"]
    pd.testing.assert_frame_equal(whole[same], resumed[same])


def test_parts_of_other_code_are_run_again_after_a_kill(study, tmp_path, monkeypatch):
    run_cell = runner.run_cell

    def killed(*args, **options):
        if len(CALLS) == 5:
            raise KeyboardInterrupt
        return run_cell(*args, **options)

    monkeypatch.setattr(runner, "run_cell", killed)
    with pytest.raises(KeyboardInterrupt):
        run(study, tmp_path)
    monkeypatch.setattr(runner, "run_cell", run_cell)
    CHANGED.append(1.0)
    frame = run(study, tmp_path)
    sums = frame[frame["metric"] == "error"].groupby(["method", "x", "variant"], observed=True)
    assert (sums["value"].nunique() == 1).all(), "no part of the code before"


def test_rows_that_the_code_gives_again_stay_unless_it_is_asked_for(study, tmp_path):
    before = run(study, tmp_path)
    cells = len(list(study.cells()))
    CALLS.clear()
    told: list[str] = []
    run(study, tmp_path, tell=told.append)
    assert 0 < len(CALLS) <= 2 * verified.CELLS, "some cells of every line"
    assert told == ["made-up: its rows are those of the present code; --fresh runs it again"]
    CALLS.clear()
    run(study, tmp_path, fresh=True)
    assert len(CALLS) == cells
    CALLS.clear()
    told.clear()
    CHANGED.append(1.0)
    after = run(study, tmp_path, tell=told.append)
    assert told[0] == "made-up: one as before"
    assert CALLS.count("two") > cells / 2
    assert CALLS.count("one") <= verified.CELLS
    assert len(after) == len(before)
    assert set(after["method"]) == {"one", "two"}


def test_a_result_says_of_which_code_it_is_and_what_it_took(study, tmp_path):
    frame = run(study, tmp_path)
    assert set(frame["version"]) == {privtail.__version__}
    said = runner.recorded(tmp_path / "results" / "made-up.parquet")
    fits = float(frame["seconds"].sum()) / len(study.metrics)
    assert float(said["seconds"]) >= fits * 0.99 - 0.001, "written to a thousandth of a second"
    assert runner.recorded(tmp_path / "nothing") == {}


def test_a_fit_takes_a_constant_and_its_work():
    work = np.array([1.0, 2.0, 4.0])
    assert estimates._law(work, 3 + 2 * work) == pytest.approx((3, 2))
    assert estimates._law(np.ones(3), np.full(3, 5.0)) == (0.0, 5.0)


def test_a_half_written_cell_does_not_count(study, tmp_path):
    folder = tmp_path / "build"
    folder.mkdir()
    cell = next(iter(study.cells()))
    inside = folder / "made-up" / "quick"
    inside.mkdir(parents=True)
    (inside / f"{cell.key}.123").write_text("[{", encoding="utf-8")
    assert len(run(study, tmp_path)) > 0


@pytest.mark.parametrize(
    ("other", "why"),
    [
        ({"quick": replace(GRID, points=(20.0, 40.0))}, "its cells are not those of the grid"),
        ({"quick": replace(GRID, points=(20.0,))}, "its cells are not those of the grid"),
        ({"choices": ()}, "its cells are not those of the grid"),
        ({"delta": lambda n: 2 / n}, "delta is "),
        ({"choices": (Choice(name="scale", value=3.0, reason="none", other=2.0),)},
         "error is "),
    ],
)  # fmt: skip
def test_other_numbers_and_other_grids_are_found(study, tmp_path, other, why):
    frame = run(study, tmp_path)
    assert verified.differences(study, frame, full=False) == {}
    wrong = verified.differences(replace(study, **other), frame, full=False)
    assert set(wrong) == {"one", "two"}
    assert all(why in said for said in wrong.values())


def test_a_line_of_other_code_is_found_and_no_other(study, tmp_path):
    frame = run(study, tmp_path)
    CHANGED.append(1e-3)
    assert list(verified.differences(study, frame, full=False)) == ["two"]
    CHANGED[:] = [1e-6]
    assert verified.differences(study, frame, full=False) == {}, "5e-8 of 21: rounding"


def test_cells_that_are_compared_differ_in_most_and_are_cheap(study, tmp_path):
    grid = replace(study.quick, epsilons=(0.5, 1.0))
    study = replace(study, quick=grid)
    frame = run(study, tmp_path)
    frame["seconds"] = np.where(frame["x"] == 30, 50.0, 0.1)
    there = verified.parts(study, frame, full=False)
    cells = verified.picked(there, "one")
    assert [(c.x, c.variant) for c in cells] == [(20.0, ""), (20.0, "scale = 2")]
    frame["seconds"] = np.where(frame["x"] == 30, 0.9, 0.1)
    cells = verified.picked(verified.parts(study, frame, full=False), "one")
    assert [(c.x, c.variant) for c in cells] == [(20.0, ""), (30.0, "scale = 2")]


def test_methods_and_variants_see_the_records_of_their_repetition(study, tmp_path):
    frame = run(study, tmp_path)
    first = frame[(frame["metric"] == "first") & (frame["variant"] == "")]
    assert (first.groupby(["x", "repetition"])["value"].nunique() == 1).all()
    assert first["value"].nunique() == 6
    varied = frame[(frame["metric"] == "error") & (frame["variant"] == "scale = 2")]
    assert sorted(varied["value"].unique()) == [44.0, 64.0]


def test_every_cell_has_its_own_key(study):
    cells = list(study.cells())
    assert len({cell.key for cell in cells}) == len(cells)
    assert len({cell.noise_seed for cell in cells}) == len(cells)


def test_two_processes_find_the_same(tmp_path):
    from experiments.papers import studies

    study = studies()["wang2020-figure-1a"]
    grid = replace(
        study.quick, fixed={"n": 200, "d": 3}, epsilons=(1.0,), repetitions=2, varied=0
    )  # fmt: skip
    frames = [
        pd.read_parquet(runner.run_study(
            study, processes=p, build=tmp_path / "build", results=tmp_path / str(p), grid=grid
        ))
        for p in (1, 2)
    ]  # fmt: skip
    same = [c for c in runner.COLUMNS if c != "seconds"]
    pd.testing.assert_frame_equal(frames[0][same], frames[1][same])


def test_a_path_is_thinned_to_forty_points_with_both_ends():
    path = [np.full((1, 1), t) for t in range(1, 1001)]
    steps = [t for t, _ in thinned(path)]
    assert len(steps) <= 40
    assert steps[0] == 1
    assert steps[-1] == 1000
    assert all(w[0, 0] == t for t, w in thinned(path))
    assert thinned([]) == ()


def test_a_cell_of_no_grid_point_has_no_x(study):
    flat = replace(study, quick=replace(GRID, points=()))
    assert all(math.isnan(cell.x) for cell in flat.cells())


def test_stale_rows_are_named_with_what_mends_them(study, tmp_path, monkeypatch, capsys):
    made, folder = replace(study, full=study.quick), tmp_path / "results"
    monkeypatch.setattr(runner, "chosen", lambda names: [made])
    assert runner.state(made, folder) == "no results"
    assert runner.tell_stale(["made-up"], folder) == 1
    run(study, tmp_path)
    assert runner.state(made, folder).startswith("quick results, verified 2")
    capsys.readouterr()
    assert runner.tell_stale(["made-up"], folder) == 0
    CHANGED.append(1.0)
    assert runner.tell_stale(["made-up"], folder) == 1
    said = capsys.readouterr().out
    assert "made-up, two: " in said
    assert "law, no privacy, epsilon inf, x " in said
    assert "privtail reproduce made-up\n" in said
    assert "1 of 2 lines" in said
    other = replace(made, methods=made.methods[:1], quick=GRID, full=GRID)
    assert runner.state(other, folder) == "quick results, stale: all"


def test_full_rows_stand_beside_the_quick_ones(study, tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(runner, "chosen", lambda names: [study])
    quick, folder = run(study, tmp_path), tmp_path / "results"
    runner.run_study(
        study, full=True, processes=1, build=tmp_path / "build", results=folder
    )  # fmt: skip
    whole = runner.read(study, folder, full=True)
    assert set(whole["x"]) == set(study.full.points) != set(study.quick.points)
    pd.testing.assert_frame_equal(quick, runner.read(study, folder))
    assert runner.state(study, folder).count("verified 2") == 2
    assert runner.tell_stale(["made-up"], folder) == 0
    assert "0 of 4 lines" in capsys.readouterr().out
    CHANGED.append(1.0)
    assert runner.tell_stale(["made-up"], folder) == 1
    assert "privtail reproduce made-up --full\n" in capsys.readouterr().out


def test_the_record_of_a_comparison_names_a_date_and_a_commit(study, tmp_path):
    run(study, tmp_path)
    then = verified.remembered(tmp_path / "results")["made-up"]
    assert set(then) == {"date", "commit"}
    assert len(then["commit"].rstrip("+")) in (0, 7, 8, 9)
    assert verified.remembered(tmp_path) == {}


@pytest.mark.slow
def test_the_stored_rows_are_those_of_the_present_code(capsys):
    """Some cells of every line again, in four minutes; lines whose tables are missing are not."""
    stale = runner.tell_stale(["all"])
    assert not stale, capsys.readouterr().out
