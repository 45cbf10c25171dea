"""Later methods on easy records, and the page that shows them."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest

from benchmarks import held_out
from benchmarks.comparison import peers
from benchmarks.comparison.problems import Problem, Sample

PAGE = Path(__file__).parents[2] / "docs" / "held-out.md"


@pytest.fixture
def easy():
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, (20_000, 2))
    y = X @ [0.5, -0.3] + 0.1 * rng.standard_normal(20_000)
    return Sample(X=X[:15_000], y=y[:15_000], X_test=X[15_000:], y_test=y[15_000:])


@pytest.mark.parametrize("name", [n for n in held_out.METHODS if n != "auto"])
def test_every_other_method_finds_a_plain_line(easy, name):
    if name.startswith("DP-EBM") and not peers.available("interpret"):
        pytest.skip("make peers")
    problem = Problem(name="easy", group="laws", draw=lambda _: easy, n=15_000, d=2, delta=1e-8)
    best = max(held_out.median_of(method, problem, easy, 1) for method in held_out.METHODS[name])
    assert best > 0.8


def test_a_depth_is_safe_while_shallow_regions_are_small_beside_deep_ones():
    """Of equal volumes: e^(-g/4) has to be below 1e-6/8 e^-0.5, with g up to 48 - k."""
    flat = np.zeros(200)
    needed = math.ceil(4 * (0.5 + math.log(8e6)))
    found = held_out.safe_distance(flat, 100, 0.5, 1e-6)
    assert found == 99 - 1 - needed
    assert held_out.safe_distance(flat, 100, 0.5, 1e-12) < found
    assert held_out.safe_distance(-10.0 * np.arange(200), 100, 0.5, 1e-6) == -1


def test_a_point_of_a_depth_is_not_in_the_next_box():
    sides = np.sort(np.random.default_rng(1).standard_normal((3, 40)), axis=1)
    for seed in range(20):
        point = held_out.inside(sides, 5, np.random.default_rng(seed))
        assert (point >= sides[:, 4]).all()
        assert (point <= sides[:, -5]).all()
        assert ((point < sides[:, 5]) | (point > sides[:, -6])).any()


def test_refusals_are_no_numbers(easy):
    few = Sample(X=easy.X[:12], y=easy.y[:12], X_test=easy.X_test, y_test=easy.y_test)
    problem = Problem(name="few", group="laws", draw=lambda _: few, n=12, d=2, delta=1e-2)
    assert math.isnan(held_out.median_of(held_out.METHODS["TukeyEM, best"][0], problem, few, 1))


def test_the_page_has_a_column_for_every_method_and_a_row_for_every_table():
    rows = [line.strip("| ").split(" | ") for line in PAGE.read_text("utf-8").splitlines()
            if line[:1] == "|"]  # fmt: skip
    assert rows[0] == ["table", "n", "d", *held_out.METHODS]
    tables = rows[2 : 2 + len(held_out.TABLES) + 1]
    assert {len(row) for row in tables} == {len(rows[0])}
    others = rows[2 + len(tables) :]
    assert others[0] == ["auto against", "tables", "ahead", "behind"]
    for name, count, ahead, behind in others[2:]:
        pairs = [(row[3], row[rows[0].index(name)]) for row in tables]
        ours, theirs = np.array([pair for pair in pairs if "–" not in pair], float).T
        assert int(count) == len(ours)
        assert int(ahead) == np.sum(ours > theirs + 0.01)
        assert int(behind) == np.sum(ours < theirs - 0.01)
    assert [row[0] for row in others[2:]] == list(held_out.METHODS)[1:-1]


def test_the_noise_of_mixing_is_what_a_search_over_all_orders_finds():
    scale, rows, delta = held_out.mixing_scale(0.5, 1e-8, 60), 60, 1e-8
    a = np.linspace(1.0001, scale - 1e-3, 1_000_000)
    sketches = a * np.log(1 - 1 / scale) - np.log(1 - a / scale)
    slack = (np.log(1 / delta) + (a - 1) * np.log(1 - 1 / a) - np.log(a)) / (a - 1)
    each = held_out.MIXINGS * rows / 2 * sketches / (a - 1) + slack
    noise = math.sqrt(2 * math.log(1.25 / delta) * rows) / scale
    assert each.min() + noise == pytest.approx(0.5, rel=1e-4)
    assert held_out.mixing_scale(0.25, delta, rows) > scale
