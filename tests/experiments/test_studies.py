"""Every study in miniature."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest

from experiments.papers import studies
from experiments.runner import COLUMNS, missing_data, run_cell, table
from experiments.study import AS_PRINTED, AUTO, STATED, Grid

OTHERWISE = {"Algorithm 1, printed bound", "Algorithm 3, line 7", "Algorithm 2, line 8"}
"""Boxes to the letter; at the stated epsilon they are another method of the same study."""
FEW = {"steps": 20, "most_steps": 50, "batch_clipped": 0.5, "batch_holland": 0.5}
"""Choices that would make a run long."""


def miniature(grid: Grid) -> Grid:
    """A grid of few records, few steps, one budget and one repetition."""
    fixed = {k: (min(v, 300) if k in ("n", "rows") else v) for k, v in grid.fixed.items()}
    return replace(
        grid, fixed=FEW | fixed, points=grid.points[:1], epsilons=grid.epsilons[-1:], repetitions=1,
        varied=0,
    )  # fmt: skip


@pytest.mark.parametrize("name", sorted(studies()))
def test_every_method_of_a_study_runs_in_miniature(name, half):
    """The default, which all of them compare with, is run in every third study by `make test`."""
    study = studies()[name]
    if missing_data(study):
        pytest.skip("its data are not here")
    grid, later = miniature(study.quick), sorted(studies()).index(name) % 3 > 0
    cells = list(replace(study, quick=grid).cells())
    assert {cell.method for cell in cells} == {m.name for m in study.methods}
    cells = [cell for cell in cells if (later and cell.method == "auto") == half]
    if not cells:
        return
    rows = []
    for cell in cells:
        rows += run_cell(study, cell, full=False, grid=grid)
    frame = table(rows)
    assert tuple(frame.columns) == COLUMNS
    assert set(frame["method"]) == {cell.method for cell in cells}
    assert {m.name for m in study.metrics} <= set(frame["metric"])
    assert not frame["statement"].str.startswith("refused").any()
    private = frame[frame["epsilon"] < math.inf]
    stated = private[private["accounting"] == "at the stated epsilon"]
    assert (stated["epsilon_true"] <= stated["epsilon"] * (1 + 1e-6)).all()
    printed = private[private["accounting"] == AS_PRINTED]
    assert (printed["epsilon_true"] >= 0).all(), "what the printed noise truly costs is known"


@pytest.mark.parametrize("name", sorted(studies()))
def test_printed_noise_is_drawn_three_ways_together(name):
    study = studies()[name]
    ways = {(m.name, a) for m in study.methods for a in m.accountings}
    if not any(a == AS_PRINTED for _, a in ways):
        return
    assert any(a == AUTO for _, a in ways)
    assert any(a == STATED for _, a in ways)
    lonely = {m for m, a in ways if a == AS_PRINTED and (m, STATED) not in ways}
    assert lonely <= OTHERWISE, "the same method, calibrated"
    shown = {(c.method, c.accounting) for c in study.cells() if not c.variant}
    assert shown == ways
