"""What theorems promise: rates, not numbers."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest

from privtail.algorithms import TABLE
from privtail.algorithms.theory import MEANS, PROMISES, WITHOUT, Setting, promises
from privtail.errors import InvalidInput

HERE = Setting(n=100_000, d=20, epsilon=1.0)


def exponent(promise, name, factor=4.0):
    """Of n, d or epsilon in a bound."""
    value = getattr(HERE, name) * factor
    moved = replace(HERE, **{name: int(value) if name != "epsilon" else value})
    return math.log(promise.bound(moved) / promise.bound(HERE)) / math.log(factor)


def test_promises_are_on_rows_of_the_table():
    promised = {p.name for p in PROMISES}
    assert promised.isdisjoint(WITHOUT)
    assert promised | set(WITHOUT) == {row.name for row in TABLE} | set(MEANS) | {"auto"}
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
        ("catoni-descent", 1, 2.0, "d", 2 / 3),
        ("sample-and-aggregate", 0, 2.0, "epsilon", -4.0),
        ("proximal-gradient", 0, 2.0, "d", 0.25),
        ("median-of-means-descent", 1, 1.5, "n", -2 / 3),
        ("median-of-means-descent", 1, 1.5, "d", 4 / 3),
        ("truncated-mean", 0, 1.5, "n", -1 / 3),
        ("truncated-mean", 0, 1.5, "d", 0.0),
        ("truncated-mean", 1, 1.5, "epsilon", -1 / 3),
        ("truncated-mean", 1, 1.5, "d", 2 / 3),
        ("sparse-peeling", 0, 2.0, "epsilon", -1.0),
        ("net-search", 0, 1.25, "epsilon", -0.2),
        ("truncated-lasso", 0, 2.0, "n", -0.4),
    ],
)
def test_the_exponents_are_those_of_the_papers(monkeypatch, name, place, moments, of, expected):
    monkeypatch.setitem(globals(), "HERE", replace(HERE, moments=moments))
    assert exponent(promises(name)[place], of) == pytest.approx(expected, abs=1e-9)


@pytest.mark.parametrize("promise", [p for p in PROMISES if p.least], ids=lambda p: p.theorem)
@pytest.mark.parametrize("moments", [1.25, 1.5, 2.0])
def test_no_lower_bound_is_above_its_upper_bound_in_n(promise, moments):
    """With constants 1 both may cross at small n: the exponents may not.

    The 1 % is for a second term that has not vanished, as in theorem 6 of Tao et al.
    """
    here = replace(HERE, moments=moments, n=10**12)
    assert promise.least.bound(here) > 0
    second = {"catoni-descent", "holland-spgd", "sample-and-aggregate"}
    if moments == 2.0 or promise.name not in second:
        more = replace(here, n=10**14)
        falls = [b(here) / b(more) for b in (promise.bound, promise.least.bound)]
        assert falls[0] <= falls[1] * 1.01


def test_theorem_6_of_tao_et_al_has_two_terms():
    """d^((1+4v)/(2+2v)) (n eps)^(-v/(1+v)) and d^((3+12v)/(2+2v)) (n eps)^(-3v/(1+v))."""
    n, d, v = 1e5, 20, 0.5
    here = Setting(n=int(n), d=d, epsilon=1.0, moments=1 + v)
    first = d ** ((1 + 4 * v) / (2 + 2 * v)) * n ** (-v / (1 + v))
    second = d ** ((3 + 12 * v) / (2 + 2 * v)) * n ** (-3 * v / (1 + v))
    assert promises("median-of-means-descent")[0].bound(here) == pytest.approx(first + second)


def test_logarithms_that_a_theorem_prints_are_in_its_bound():
    """(2) of Tao et al., corollaries 1 and 2 of Xie et al., (7) of Wang and Xu: not in O~."""
    n, d, s, delta = 100_000, 20, 3, 1e-8
    here = Setting(n=n, d=d, epsilon=0.5, delta=delta, sparsity=s)
    size, root = n * 0.5, math.sqrt(math.log(1 / delta))
    steps = [2.0**half for half in range(64)]
    for name, expected in {
        "sparse-peeling": s**1.5 * math.log(n) * math.log(d) * root / size,
        "kamath-spgd": min(
            T**-0.5 + d**1.5 * (math.sqrt(d * T) * root / size) ** 0.5 for T in steps
        ),
        "holland-spgd": min(T**-0.5 + d * T**0.25 * root**0.5 / math.sqrt(size) for T in steps),
        "net-search": math.sqrt(d * math.log(n) / size),
    }.items():
        assert promises(name)[0].bound(here) == pytest.approx(expected, rel=1e-12), name


@pytest.mark.parametrize("promise", PROMISES, ids=lambda p: f"{p.name}, {p.theorem}")
def test_a_formula_names_what_its_bound_depends_on(promise):
    other = promise.bound(replace(HERE, delta=1e-9)) != promise.bound(HERE)
    assert other == ("delta" in promise.formula)


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
    for promise in PROMISES:
        assert bool(promise.studies) == bool(promise.line)
        for name in promise.studies:
            assert promise.line in {m.name for m in papers.studies()[name].methods}


def test_the_nearest_measured_number_has_its_sizes(tmp_path):
    papers = pytest.importorskip("experiments.papers")
    from experiments.nearest import nearest
    from experiments.runner import table, write

    study = papers.studies()["wang2019-table-1-n"]
    row = {"study": study.name, "variant": "", "dataset": "synthetic", "method": "Algorithm 2",
           "accounting": "at the stated epsilon", "epsilon_true": 1.0, "delta": 1e-6, "axis": "n",
           "seconds": 0.0, "version": "0", "statement": ""}  # fmt: skip
    rows = [
        row | {"epsilon": epsilon, "n": n, "x": n, "d": 50, "repetition": r, "metric": metric,
               "value": value + r}
        for epsilon, n, metric, value in (
            (1.0, 1000, "gap", 10.0), (1.0, 9000, "gap", 20.0), (0.1, 9000, "gap", 30.0),
            (1.0, 9000, "gradient_norm", 40.0),
        )
        for r in range(3)
    ]  # fmt: skip
    write(table(rows), tmp_path / f"{study.name}.parquet")
    asked = {"n": 10_000, "d": 50, "epsilon": 0.9}
    said = nearest([study.name], "Algorithm 2", "Frank-Wolfe gap", asked, tmp_path)
    assert said == (
        "Frank-Wolfe gap 21 at n = 9,000, d = 50, ε = 1 (synthetic; Algorithm 2 in "
        "wang2019-table-1-n)"
    )
    first = nearest([study.name], "Algorithm 2", "excess risk", asked, tmp_path)
    assert first.startswith("norm of the generalized gradient 41 at"), "a study's first metric"
    assert nearest([study.name], "Algorithm 4", "Frank-Wolfe gap", asked, tmp_path) == ""
    assert nearest([], "", "excess risk", asked, tmp_path) == ""


def test_refusals():
    with pytest.raises(InvalidInput, match="No theorem has a rate for 'auto': it is from no paper"):
        promises("auto")
    for wrong in ({"epsilon": 0.0}, {"epsilon": math.inf}, {"delta": 1.0}, {"moments": 1.0},
                  {"n": 1}, {"d": 0}, {"sparsity": 0}):  # fmt: skip
        with pytest.raises(InvalidInput):
            replace(HERE, **wrong)
