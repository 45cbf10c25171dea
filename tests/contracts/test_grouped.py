"""Counts and moments of cells, group by group: how far one record moves them."""

from __future__ import annotations

import dataclasses
import itertools
import math
from typing import Any

import numpy as np
import pytest

from privtail.statement.recipes import followed
from privtail.trusted import questions
from privtail.trusted.batch import Batch
from privtail.trusted.budget import Budget
from privtail.trusted.curator import Curator
from privtail.trusted.events import Round
from privtail.trusted.problem import Problem
from privtail.trusted.sensitive import Sensitive
from privtail.trusted.sensitivity import Norms

N, ROW = 12, 4
CELLS = [0.0, -0.0, 1.0, -1.0, 0.5, -0.5, 1e308, -1e308, 5e-324, math.nan, math.inf, -math.inf]
EDGES = [-1e300, -0.5, 0.0, 0.5, 1e300]
REGIONS, KINDS = ("n", "s", "e"), ("a", "b")


def batch(frame: dict[str, Any], **options: Any) -> Batch:
    curator = Curator(
        frame, budget=Budget(1.0, 1e-6), categories={"region": REGIONS, "kind": KINDS},
        random_state=0, **options,
    )  # fmt: skip
    curator.open((Round(events=()),))
    return curator.everyone()


def frame(row: tuple[Any, ...] | None = None) -> dict[str, Any]:
    chance = np.random.default_rng(0)
    x = {
        "u": chance.normal(size=N), "v": chance.normal(size=N),
        "region": np.array([REGIONS[i % 3] for i in range(N)], dtype=object),
        "kind": np.array([KINDS[i % 2] for i in range(N)], dtype=object),
    }  # fmt: skip
    if row is not None:
        for name, cell in zip(x, row, strict=True):
            x[name][ROW] = cell
    return x


BY: dict[str, tuple[tuple[int, ...], ...]] = {
    "no groups": (), "one category": ((2, 3, 4),), "two": ((2, 3, 4), (5, 6)),
}  # fmt: skip
ROWS = [
    *itertools.product(CELLS[:6], CELLS[:6], ("n", "s"), ("a",)),
    *((u, v, r, k) for u in CELLS for v in CELLS[::3] for r in ("s", None, "new") for k in KINDS),
]
GONE = (math.nan, math.nan, None, None)


def answers(b: Batch, by: tuple[tuple[int, ...], ...]) -> tuple[Sensitive, Sensitive]:
    return b.cell_counts([0, 1], EDGES, by), b.column_moments([0, 1], by)


def norms(changes: np.ndarray) -> np.ndarray:
    """The largest l1, l2 and l-infinity norms of some changes, (changes, size)."""
    sizes = np.abs(changes).astype(np.float64)
    each = sizes.sum(axis=1), np.sqrt((sizes**2).sum(axis=1)), sizes.max(axis=1)
    return np.max(each, axis=1)


def check(by: str) -> np.ndarray:
    """The largest part of its bounds that each answer attains: replaced, and emptied."""
    seen = [answers(batch(frame(row)), BY[by]) for row in ROWS]
    empty = answers(batch(frame(GONE)), BY[by])
    worst = np.zeros((2, 2, 3))
    for which in range(2):
        answer = seen[0][which].sensitivity
        values, none = np.array([one[which]._value for one in seen]), empty[which]._value
        replaced = np.max([norms(values - one) for one in values], axis=0)
        for k, (found, of) in enumerate(
            ((replaced, answer.diameter), (norms(values - none), answer.radius))
        ):
            worst[which, k] = found / (of.l1, of.l2, of.linf)
        assert not answer.one_signed or (values >= none).all()
    assert worst.max() <= 1 + 1e-12, worst
    return worst


@pytest.mark.parametrize("by", BY)
def test_no_record_moves_more_than_is_said(by: str) -> None:
    worst = check(by)
    assert worst[:, :, 1:].min() >= 0.999  # l2 and l-infinity are attained
    assert worst[0].min() >= 0.999


def test_a_record_that_counts_in_every_group_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    """The sabotaged twin: a row in two categories at once."""

    def every(self: questions.CellCounts, block: questions.Block, sums: np.ndarray) -> None:
        z = block.rows.transformed()
        for k, (column, edges) in enumerate(zip(self.columns, self.edges, strict=True)):
            x = z[np.isfinite(z[:, column]), column]
            cells = np.searchsorted(edges, x, side="right")
            sums[0, :, k] += np.bincount(cells, minlength=sums.shape[-1])

    monkeypatch.setattr(questions.CellCounts, "add", every)
    with pytest.raises(AssertionError):
        check("one category")


@pytest.mark.parametrize("name", ["cell_counts", "column_moments"])
def test_half_of_a_sensitivity_is_caught(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    right = getattr(Problem, name)

    def half(self: Problem, *sizes: int) -> Any:
        answer = right(self, *sizes)
        d = answer.diameter
        return dataclasses.replace(answer, diameter=Norms(d.l1, d.l2 / 2, d.linf))

    monkeypatch.setattr(Problem, name, half)
    with pytest.raises(AssertionError):
        check("two")


def test_squares_that_are_not_clamped_are_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(np, "clip", lambda x, *_: np.where(np.abs(x) < 2, 1.5 * x, x * 0 + 2))
    with pytest.raises(AssertionError):
        check("no groups")


def test_a_missing_cell_leaves_the_other_columns_alone() -> None:
    """And a row is in the group of both its categories."""
    before, after = (
        batch(frame((u, 0.7, "s", "b"))).cell_counts([0, 1], [0.0], BY["two"])
        for u in (0.3, math.nan)
    )
    counts = (np.array(answer._value).reshape(3, 2, 2, 2) for answer in (before, after))
    change = np.subtract(*counts)
    step = 2**34
    assert np.flatnonzero(change).tolist() == [np.ravel_multi_index((1, 1, 0, 1), change.shape)]
    assert change[1, 1, 0, 1] == step


def test_persons_move_as_much_for_every_row() -> None:
    one, three = (Problem(n=30, d=4, max_rows=m) for m in (1, 3))
    for a, b in (
        (one.cell_counts(2, 5, 3), three.cell_counts(2, 5, 3)),
        (one.column_moments(2, 3), three.column_moments(2, 3)),
    ):
        assert b.diameter.l2 == pytest.approx(3 * a.diameter.l2)
        assert followed(one, a.recipe) == a
        assert followed(three, b.recipe) == b
