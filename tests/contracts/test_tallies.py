"""Cells of histograms: a compiled search finds what NumPy's finds."""

from __future__ import annotations

import numpy as np
import pytest

from privtail.summaries.histograms import COARSE, FINE, POWERS
from privtail.trusted.kernels import EVERY, NONE, tally

EXTREME = np.array([0.0, 5e-324, 2.2250738585072014e-308, 1e-300, 1.0, 1e300, np.finfo(float).max])


def counted(values, edges, own):
    sums = np.zeros((edges.shape[0], edges.shape[1] + 1))
    tally(values, values.view(np.int64), own, edges, edges.view(np.int64), sums)
    return sums


def by_numpy(values, edges, own):
    sums = np.zeros((edges.shape[0], edges.shape[1] + 1))
    for c in range(len(edges)):
        x = values[(own == EVERY) | (own == c), c]
        cells = np.searchsorted(edges[c], x, side="right")
        sums[c] = np.bincount(cells, minlength=edges.shape[1] + 1)
    return sums


CUTS = {
    "powers of two": POWERS.edges,
    "coarse": COARSE.edges,
    "fine, far from zero": 1e6 + 1e-3 * FINE.edges,
    "around zero": np.array([-1.0, -5e-324, 0.0, 5e-324, 1.0]),
    "minus zero": np.array([-2.0, -0.0, 3.0]),
    "infinite ends": np.array([-np.inf, -1.0, np.inf]),
    "one": np.array([0.5]),
}


def hostile(cuts, rng, columns):
    """Every edge, its neighbours, both zeros, the ends of doubles, and ordinary numbers."""
    near = [np.nextafter(cuts, -np.inf), cuts, np.nextafter(cuts, np.inf)]
    values = np.concatenate(
        [*near, EXTREME, -EXTREME, rng.normal(size=200), 1e6 + rng.normal(size=200)]
    )
    values = values[np.isfinite(values)]
    return np.column_stack([rng.permutation(values) for _ in range(columns)])


@pytest.mark.parametrize("name", CUTS)
def test_cells_are_those_of_a_sorted_search(name):
    rng = np.random.default_rng(0)
    values = hostile(CUTS[name], rng, 3)
    edges = np.tile(CUTS[name], (3, 1))
    own = rng.choice([EVERY, NONE, 0, 1, 2], len(values))
    assert np.array_equal(counted(values, edges, own), by_numpy(values, edges, own))


def test_a_sign_that_is_forgotten_is_caught(monkeypatch):
    """The same check fails where minus zero lies below zero."""

    def wrong(values, edges, own):
        return by_numpy(np.where(values == 0, np.copysign(5e-324, values), values), edges, own)

    values, edges = np.array([[-0.0]]), np.array([[0.0]])
    own = np.full(1, EVERY)
    assert not np.array_equal(counted(values, edges, own), wrong(values, edges, own))


def test_edges_of_every_column_are_its_own():
    rng = np.random.default_rng(1)
    edges = np.sort(rng.normal(size=(4, 9)), axis=1)
    values, own = rng.normal(size=(500, 4)), np.full(500, EVERY)
    assert np.array_equal(counted(values, edges, own), by_numpy(values, edges, own))


def test_a_row_counts_once_in_every_column_that_it_counts_in():
    """What the sensitivity of a histogram rests on."""
    edges = np.tile(POWERS.edges, (5, 1))
    for x in EXTREME:
        one = np.full((1, 5), x)
        assert (counted(one, edges, np.full(1, EVERY)).sum(axis=1) == 1).all()
        assert counted(one, edges, np.full(1, 3)).sum() == 1
        assert counted(one, edges, np.full(1, NONE)).sum() == 0
