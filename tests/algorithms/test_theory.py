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


@pytest.mark.parametrize("promise", [p for p in PROMISES if p.least], ids=lambda p: p.theorem)
@pytest.mark.parametrize("moments", [1.25, 1.5, 2.0])
def test_no_lower_bound_is_above_its_upper_bound_in_n(promise, moments):
    """With constants 1 both may cross at small n: the exponents may not."""
    here = replace(HERE, moments=moments, n=10**12)
    assert promise.least.bound(here) > 0
    second = {"catoni-descent", "holland-spgd", "sample-and-aggregate"}
    if moments == 2.0 or promise.name not in second:
        more = replace(here, n=10**14)
        falls = [b(here) / b(more) for b in (promise.bound, promise.least.bound)]
        assert falls[0] <= falls[1] * (1 + 1e-9)


def test_lower_bounds_have_the_exponents_of_the_paper():
    """Tao et al. 2022, theorems 8 and 9, at v = .5."""
    here = replace(HERE, moments=1.5)
    convex, strong = (promises("median-of-means-descent")[k].least.bound for k in (0, 1))
    for bound, n, d in ((convex, -1 / 3, 0.5 + 1 / 6), (strong, -2 / 3, 1 + 1 / 3)):
        fitted = [math.log(bound(replace(here, **{name: getattr(here, name) * 4})) / bound(here))
                  / math.log(4) for name in ("n", "d")]  # fmt: skip
        assert fitted == pytest.approx([n, d])


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
