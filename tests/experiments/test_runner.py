"""A run that is killed goes on where it stopped; what it finds does not depend on how it ran."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

import privtail
from experiments import reach, runner
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


def solve(task, setting):
    CALLS.append("solve")
    return np.full(2, setting["n"] + setting["scale"])


@pytest.fixture
def study():
    CALLS.clear()
    return Study(
        name="made-up", item="figure 0", title="", axis=Axis(name="n", label="n"),
        metrics=(Metric(name="error", label=""),), data=(DataSet(name="law", draw=draw),),
        methods=(Reference(name="one", solve=solve), Reference(name="two", solve=solve)),
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
    assert len(CALLS) == cells, "five before the kill, the rest after it"
    assert "5 of" in told[0]
    assert not list((tmp_path / "build").iterdir()), "parts go when the table is there"
    same = [c for c in runner.COLUMNS if c != "seconds"]
    pd.testing.assert_frame_equal(whole[same], resumed[same])


def test_what_is_finished_is_not_run_again_unless_it_is_asked_for(study, tmp_path, monkeypatch):
    run(study, tmp_path)
    CALLS.clear()
    told: list[str] = []
    run(study, tmp_path, tell=told.append)
    assert not CALLS
    assert told == ["made-up: finished before; --fresh runs it again"]
    run(study, tmp_path, fresh=True)
    assert len(CALLS) == len(list(study.cells()))
    CALLS.clear()
    of_old = runner.marks
    monkeypatch.setattr(runner, "marks", lambda s, full: of_old(s, full=full) | {"two": "other"})
    told.clear()
    before = pd.read_parquet(tmp_path / "results" / "made-up.parquet")
    after = run(study, tmp_path, tell=told.append)
    assert told[0] == "made-up: one as before"
    assert len(CALLS) == len(list(study.cells())) / 2, "those of one method alone"
    assert len(after) == len(before)
    assert set(after["method"]) == {"one", "two"}


def test_a_result_says_of_which_code_it_is_and_what_it_took(study, tmp_path):
    frame = run(study, tmp_path)
    assert set(frame["version"]) == {privtail.__version__}
    said = runner.recorded(tmp_path / "results" / "made-up.parquet")
    assert said["grid"] == "full" or said["grid"] == "quick"
    assert float(said["seconds"]) >= float(frame["seconds"].sum()) / len(study.metrics) * 0.99
    assert runner.recorded(tmp_path / "nothing") == {}


def test_docstrings_and_claims_are_no_code():
    plain = 'def f():\n    """Says."""\n    return 1\nC = [Claim("a", g(2))]\n'
    said = 'def f():\n    """Says more."""\n    return 1\nC = [Claim("b", h(3))]\n'
    assert reach.bare(plain) == reach.bare(said)
    assert reach.bare(plain) != reach.bare("def f():\n    return 2\nC = [Claim()]\n")


def test_a_fit_takes_a_constant_and_its_work():
    work = np.array([1.0, 2.0, 4.0])
    assert runner._law(work, 3 + 2 * work) == pytest.approx((3, 2))
    assert runner._law(np.ones(3), np.full(3, 5.0)) == (0.0, 5.0)


def test_a_half_written_cell_does_not_count(study, tmp_path):
    folder = tmp_path / "build"
    folder.mkdir()
    cell = next(iter(study.cells()))
    inside = folder / "made-up"
    inside.mkdir()
    mark = runner.marks(study, full=False)[cell.method]
    (inside / f"{cell.key}-{mark}.123").write_text("[{", encoding="utf-8")
    assert len(run(study, tmp_path)) > 0


def test_other_numbers_and_other_grids_never_share_cells(study):
    one = runner.marks(study, full=False)
    assert one != runner.marks(study, full=True)
    assert one != runner.marks(replace(study, delta=lambda n: 2 / n), full=False)
    assert one != runner.marks(replace(study, choices=()), full=False)
    assert one == runner.marks(replace(study, title="another", claims=()), full=False)


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


def test_a_result_is_up_to_date_until_its_code_changes(study, tmp_path, monkeypatch, capsys):
    run(study, tmp_path)
    made = replace(study, full=study.quick)
    folder = tmp_path / "results"
    assert runner.state(made, tmp_path / "none") == "no results"
    assert runner.state(made, folder) == "quick results, up to date"
    monkeypatch.setattr(runner, "chosen", lambda names: [made])
    assert runner.tell_stale(["made-up"], folder) == 0
    of_old = runner.marks
    monkeypatch.setattr(runner, "marks", lambda s, full: of_old(s, full=full) | {"two": "other"})
    assert runner.state(made, folder) == "quick results, stale: two"
    assert runner.tell_stale(["made-up"], folder) == 1
    assert "privtail reproduce made-up" in capsys.readouterr().out
    monkeypatch.setattr(runner, "marks", lambda s, full: dict.fromkeys(("one", "two"), "other"))
    assert runner.state(made, folder) == "quick results, stale: all"


DEFAULT = "privtail.default.pipeline"


def reached(name, method):
    """The modules that a method of a study reaches."""
    from experiments.papers import studies

    study = studies()[name]
    walk = reach._Walk()
    walk.follow(next(m for m in study.methods if m.name == method))
    return reach.modules_behind(walk.modules)


def test_a_change_of_the_default_ages_its_rows_alone(monkeypatch):
    from experiments.papers import studies

    study = studies()["wang2020-figure-1a"]
    assert DEFAULT in reached(study.name, "auto")
    assert DEFAULT not in reached(study.name, "Algorithm 4")
    assert "privtail.algorithms.catoni_descent" in reached(study.name, "Algorithm 4")
    assert "privtail.algorithms.trimmed_descent" not in reached(study.name, "Algorithm 4")
    before = runner.marks(study, full=False)
    code = reach._code

    def changed(where):
        monkeypatch.setattr(reach, "_code", lambda name: code(name) + "changed" * (name == where))
        after = runner.marks(study, full=False)
        return {name for name in before if before[name] != after[name]}

    assert changed(DEFAULT) == {"auto"}
    assert changed("privtail.algorithms.catoni_descent") >= {"Algorithm 4", "RGD"}
    assert "Algorithm 3, κ = 2" not in changed("privtail.algorithms.catoni_descent")
    assert changed("privtail.trusted.kernels") == set(before)
    assert changed("experiments.data.linear_lognormal") == set(before), "the records"
    assert changed("privtail.trusted.cluster.client") == set()


def test_functions_of_a_study_count_where_they_are_named():
    from experiments import wang2020, wang2020_aggregate

    def pieces(one):
        walk = reach._Walk()
        walk.follow(one)
        return "".join(walk.pieces)

    assert "balanced" in pieces(wang2020.PRIVATE_ALGORITHM_FOUR)
    assert "balanced" not in pieces(wang2020.ALGORITHM_FOUR)
    assert "failure_probability" in pieces(wang2020.PRIVATE_ALGORITHM_FOUR), "it calls catoni"
    deltas = [pieces(module.STUDIES[0].delta) for module in (wang2020, wang2020_aggregate)]
    assert "Lambda" in deltas[0]
    assert deltas[0] != deltas[1]


@pytest.mark.parametrize("name", ["auto", "Algorithm 4", "Algorithm 3, κ = 2"])
def test_every_module_that_a_fit_runs_is_reached(name):
    """In a process of its own; what is left out on purpose is named in `OUTSIDE`."""
    import subprocess
    import sys

    program = f"""
import sys
from dataclasses import replace
from experiments import reach, runner
from experiments.papers import studies
study = studies()["wang2020-figure-1a"]
method = next(m for m in study.methods if m.name == {name!r})
walk = reach._Walk()
walk.follow([method, [d.draw for d in study.data]])
seen = set()
def watch(frame, event, _):
    module = frame.f_globals.get("__name__", "")
    if module.startswith("privtail") and frame.f_code.co_name not in ("<module>", "__getattr__"):
        seen.add(module)
grid = replace(study.quick, fixed={{"n": 300, "d": 3}}, epsilons=(1.0,), repetitions=1, varied=0)
cells = [c for c in replace(study, quick=grid).cells() if c.method == method.name]
sys.setprofile(watch)
for cell in cells:
    runner.run_cell(study, cell, full=False, grid=grid)
sys.setprofile(None)
lost = seen - reach.modules_behind(walk.modules) - {{"privtail"}}
print(sorted(m for m in lost if not reach._outside(m)))
"""
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=False,
        cwd=runner.ROOT,
    )  # fmt: skip
    assert done.stdout.strip() == "[]", done.stdout + done.stderr[-2000:]
