"""What theorems promise: rates, not numbers."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest

from privtail.algorithms import TABLE
from privtail.algorithms.theory import PROMISES, Setting, promises
from privtail.errors import InvalidInput

HERE = Setting(n=100_000, d=20, epsilon=1.0)


def exponent(promise, name, factor=4.0):
    """Of n, d or epsilon in a bound."""
    value = getattr(HERE, name) * factor
    moved = replace(HERE, **{name: int(value) if name != "epsilon" else value})
    return math.log(promise.bound(moved) / promise.bound(HERE)) / math.log(factor)


def test_promises_are_on_rows_of_the_table():
    assert {p.name for p in PROMISES} <= {row.name for row in TABLE}
    assert len({(p.name, p.theorem) for p in PROMISES}) == len(PROMISES)


@pytest.mark.parametrize("promise", PROMISES, ids=lambda p: f"{p.name}, {p.theorem}")
def test_more_records_and_more_budget_promise_less_risk(promise):
    assert 0 < promise.bound(HERE) < math.inf
    assert exponent(promise, "n") < 0
    assert exponent(promise, "epsilon") < 0
    assert exponent(promise, "d") >= 0


@pytest.mark.parametrize(
    ("name", "place", "moments", "of", "expected"),
    [
        ("catoni-descent", 0, 2.0, "epsilon", -2.0),
        ("catoni-descent", 0, 2.0, "d", 2.0),
        ("catoni-descent", 1, 2.0, "n", -1 / 3),
        ("sample-and-aggregate", 0, 2.0, "epsilon", -4.0),
        ("proximal-gradient", 0, 2.0, "d", 0.25),
        ("median-of-means-descent", 0, 1.5, "n", -1 / 3),
        ("median-of-means-descent", 1, 1.5, "n", -2 / 3),
        ("median-of-means-descent", 1, 1.5, "d", 4 / 3),
        ("sparse-peeling", 0, 2.0, "n", -1.0),
        ("net-search", 0, 1.25, "n", -0.2),
        ("truncated-lasso", 0, 2.0, "n", -0.4),
    ],
)
def test_the_exponents_are_those_of_the_papers(monkeypatch, name, place, moments, of, expected):
    monkeypatch.setitem(globals(), "HERE", replace(HERE, moments=moments))
    assert exponent(promises(name)[place], of) == pytest.approx(expected, abs=1e-9)


def test_studies_are_there():
    papers = pytest.importorskip("experiments.papers")
    assert {s for p in PROMISES for s in p.studies} <= set(papers.studies())


def test_refusals():
    with pytest.raises(InvalidInput, match="There is no theorem on 'auto'"):
        promises("auto")
    for wrong in ({"epsilon": 0.0}, {"epsilon": math.inf}, {"delta": 1.0}, {"moments": 1.0},
                  {"n": 1}, {"d": 0}, {"sparsity": 0}):  # fmt: skip
        with pytest.raises(InvalidInput):
            replace(HERE, **wrong)
