"""Every study in miniature."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest

from experiments.papers import studies
from experiments.runner import COLUMNS, missing_data, run_cell, table
from experiments.study import Grid

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
def test_every_method_of_a_study_runs_in_miniature(name):
    study = studies()[name]
    if missing_data(study):
        pytest.skip("its data are not here")
    grid = miniature(study.quick)
    rows = []
    for cell in replace(study, quick=grid).cells():
        rows += run_cell(study, cell, full=False, grid=grid)
    frame = table(rows)
    assert tuple(frame.columns) == COLUMNS
    assert set(frame["method"]) == {m.name for m in study.methods}
    assert {m.name for m in study.metrics} <= set(frame["metric"])
    assert not frame["statement"].str.startswith("refused").any()
    private = frame[frame["epsilon"] < math.inf]
    stated = private[private["accounting"] == "at the stated epsilon"]
    assert (stated["epsilon_true"] <= stated["epsilon"] * (1 + 1e-6)).all()
