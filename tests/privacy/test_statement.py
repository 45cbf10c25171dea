"""A statement says what its events cost, and no file says less unnoticed."""

from __future__ import annotations

import copy
import json
import math
import os
import pickle
import warnings
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import privtail
from privtail import json_files, linear_model
from privtail.calibration import calibrate
from privtail.errors import AccuracyWarning, InvalidInput
from privtail.robust_means import BoundedMean, ClampedMean, ClippedMean, SmoothedCatoniMean
from privtail.statement import Statement, Verification, verify, verify_all
from privtail.trusted.accountants import cost
from privtail.trusted.budget import Budget
from privtail.trusted.events import Event, Plan, Round, compose
from privtail.trusted.mechanisms.labels import StabilityHistogram
from privtail.trusted.mechanisms.noise import GaussianNoise, LaplaceNoise
from privtail.trusted.mechanisms.selection import LaplaceMax, NoisyMax, NoisyTopK
from privtail.trusted.problem import Problem
from privtail.trusted.sampling import DisjointParts, Everyone, PoissonBatches, Sampling
from privtail.trusted.search import BestTrial

N = 30_162
PROBLEM = Problem(n=N, d=14, intercept=True)


def gaussian(multiplier: float, sampling: Sampling = Everyone()) -> Event:  # noqa: B008
    answer = PROBLEM.sampled(sampling).gradient(ClippedMean(1.0))
    return GaussianNoise(multiplier).event(answer)


def columns(multiplier: float) -> Event:
    return GaussianNoise(multiplier).event(PROBLEM.means(ClippedMean(1.0)))


def full(m: float) -> Plan:
    return (Round(events=(gaussian(m), columns(2 * m)), times=20),)


def poisson(m: float) -> Plan:
    batches = PoissonBatches(0.01)
    return (Round(sampling=batches, events=(gaussian(m, batches),), times=50),)


def parts(m: float) -> Plan:
    dealt = DisjointParts(5)
    return (Round(sampling=dealt, events=(gaussian(m, dealt),), times=5),)


def mixture(m: float) -> Plan:
    top = NoisyTopK(m, 3).event(PROBLEM.scores(9, BoundedMean(1.0)))
    labels = StabilityHistogram(40.0, 1e-8).event(PROBLEM.labels())
    laplace = LaplaceNoise(9 * m).event(PROBLEM.histogram(1, 2))
    return compose((Round(events=(labels, top, laplace)),), full(m))


PLANS = {"full": full, "poisson": poisson, "parts": parts, "mixture": mixture}


def statement(make: Any = full, epsilon: float = 1.0, **changes: Any) -> Statement:
    budget = Budget(epsilon, 1e-6, changes.get("neighbours", "replace_one"))
    arguments: dict[str, Any] = {
        "epsilon": epsilon,
        "delta": 1e-6,
        "n": N,
        "plan": make(calibrate(make, budget)),
        "label": "DPLogisticRegression",
    }
    return Statement(**(arguments | changes))


def written(given: Statement) -> dict[str, Any]:
    """What a reader of the file gets."""
    return json.loads(json.dumps(given.to_json(), allow_nan=False))


# --- what it says ---------------------------------------------------------------------------------


@pytest.mark.parametrize("neighbours", ["replace_one", "zero_out"])
@pytest.mark.parametrize("name", PLANS)
def test_a_private_fit(name, neighbours):
    given = statement(PLANS[name], neighbours=neighbours)
    near = neighbours.replace("_", "-")
    assert given.headline == (
        f"(ε = 1, δ = 1e-06)-differentially private for one row, not several of one person, "
        f"{near} neighbours"
    )
    assert str(given).splitlines()[0] == given.headline
    assert given.spent == cost(given.plan, neighbours).epsilon(1e-6) <= 1
    assert given.private
    result = verify(written(given))
    assert result.ok, str(result)
    assert result.problems == ()
    assert result.claimed == (1.0, 1e-6)
    assert result.recomputed == given.spent
    assert result.headline == given.headline == str(result).splitlines()[0]


@pytest.mark.parametrize(
    ("changes", "headline"),
    [
        ({"noise": "simulated"}, "NOT PRIVATE: simulated noise"),
        ({"noise": "none"}, "NOT PRIVATE: epsilon is infinite"),
        ({"epsilon": math.inf}, "NOT PRIVATE: epsilon is infinite"),
        ({"epsilon": 0.5}, "NOT PRIVATE AS CLAIMED: ε = 0.5 was promised, the releases cost 1"),
        ({"plan": full(0.0)}, "NOT PRIVATE AS CLAIMED: ε = 1 was promised, the releases cost inf"),
    ],
)
def test_not_private_says_so_first(changes, headline):
    given = replace(statement(), **changes)
    assert not given.private
    assert given.headline.startswith(headline)
    for said in ("promised  ", "protects  ", "compares  ", "outside the promise"):
        assert said not in str(given), "of a promise that is not kept"
    for page in (str(given), repr(given), given._repr_html_(), json.dumps(given.to_json())):
        assert "NOT PRIVATE" in page.split("\n", maxsplit=1)[0]
        assert "ly private for" not in page
    result = verify(written(given))
    assert not result.ok
    assert not result
    assert result.problems
    assert str(result).startswith("NOT VERIFIED")


def test_a_promise_is_never_rounded():
    given = statement(epsilon=1.00000049)
    assert "ε = 1.00000049," in given.headline


def test_a_cost_is_rounded_up():
    given = statement(delta=1e-6)
    shown = float(dict(given.facts())["spent"].split()[2])
    assert given.spent <= shown < given.spent * 1.00001
    assert given.mu is not None
    assert float(dict(given.facts())["spent"].split("μ = ")[1].split(";")[0]) >= given.mu


def test_noise_is_from_the_samplers_that_drew_it():
    event = Event(
        law="smooth_gaussian", scale=9.0, radius=1.0, diameter=1.0, unit=1.0, coordinates=1,
        delta=1e-7, smoothness=0.1, question="sample and aggregate",
    )  # fmt: skip
    own = statement(plan=(Round(events=(event,)),))
    both = statement(plan=(Round(events=(event, replace(gaussian(9.0), law="laplace"))),))
    rounded, both_noises = "continuous noise, correctly rounded", dict(both.facts())["noise"]
    assert rounded in dict(own.facts())["noise"]
    assert "OpenDP" not in dict(own.facts())["noise"]
    assert f"OpenDP's samplers and {rounded}" in both_noises
    search = statement(plan=(Round(events=(BestTrial(multiplier=9.0, trials=3).event(),)),))
    assert f"OpenDP's samplers and {rounded}" in dict(search.facts())["noise"]


def test_the_page_tells_everything():
    given = statement(
        mixture, assumptions=("The loss is row-wise (trusted).",), seeded_public_choices=True,
        ledger="entry 3 of budget.jsonl",
    )  # fmt: skip
    text = str(given)
    for part in (
        "DPLogisticRegression",
        "one row, not several of one person",
        "two tables of the same size that differ in one row",
        "entry 3 of budget.jsonl",
        "n = 30162 (public)",
        "ρ = ",
        "exact: OpenDP",
        "drawn from random_state",
        "gradient",
        "    law: noisy max, top 3",
        "The loss is row-wise (trusted).",
        "Running time and memory",
        "invalid='raise'",
        "numpy",
        "dp-accounting",
    ):
        assert part in text, part
    assert "\u03bc = " not in text, "no Gaussian DP for a mixture"
    assert "would cost" in str(replace(given, noise="simulated"))


def test_the_table_divides_as_its_header_says():
    head, first, second = statement().table()
    row = dict(zip(head, first, strict=True))
    multiplier = float(row["std/rad."])
    assert float(row["std/diam."]) == pytest.approx(multiplier / 2, rel=1e-5)
    std = gaussian(multiplier).scale * gaussian(multiplier).unit
    assert float(row["noise std"]) == pytest.approx(std, rel=1e-5)
    assert (row["times"], row["size"], row["sampling"]) == ("20", "15", "everyone")
    assert (row["share"], second[-1]) == ("80.0%", "20.0%")


def test_a_maximum_under_laplace_noise_verifies_and_has_its_share():
    """Its rho is four times that of a Laplace value of the same scale, and of a Gumbel maximum."""

    def peeling(m: float) -> Plan:
        answer = Problem(n=N, d=9).gradient(ClampedMean(1.0))
        one = LaplaceNoise(m).event(answer.take(1))
        return (Round(events=(LaplaceMax(m).event(answer), one, NoisyMax(m).event(answer))),)

    given = statement(peeling)
    head, *rows = given.table()
    shares = [dict(zip(head, row, strict=True))["share"] for row in rows]
    assert shares == ["66.7%", "16.7%", "16.7%"]
    assert "laplace max" in str(given)
    assert verify(given.to_json()).ok


def test_html_escapes_everything():
    evil = "<script>alert('x')</script>"
    plan = (Round(events=(replace(gaussian(100.0), question=evil),)),)
    given = statement(plan=plan, label=evil, assumptions=(evil,), outside=(evil,))
    html = given._repr_html_()
    assert "<script" not in html
    assert html.count("&lt;script&gt;") >= 4


# --- written and read -----------------------------------------------------------------------------


@pytest.mark.parametrize("name", PLANS)
def test_json_restores_an_equal_statement(name):
    given = statement(PLANS[name], assumptions=("a",), seeded_public_choices=True, ledger="entry 1")
    assert Statement.from_json(written(given)) == given
    assert pickle.loads(pickle.dumps(given)) == given  # noqa: S301
    assert copy.deepcopy(given) == given


def test_infinity_survives_strict_json():
    given = replace(statement(plan=full(0.0)), epsilon=math.inf, noise="none")
    assert Statement.from_json(written(given)) == given


@pytest.mark.parametrize("kind", ["statement", "model"])
def test_files(kind, tmp_path):
    given = written(statement())
    path = tmp_path / "file.json"
    path.write_text(json.dumps(given if kind == "statement" else {"statement": given, "coef": [1]}))
    assert verify(path).ok
    assert verify(str(path)) == verify(path)


def test_what_is_no_statement_is_refused_with_what_to_pass():
    found = privtail.private_mean(np.arange(50.0), epsilon=math.inf, method="clamped", threshold=9)
    for odd, mend in ((found, r"Pass its \.privacy_"), (None, "NoneType"), (3, "int")):
        with pytest.raises(InvalidInput, match=mend):
            verify(odd)


def test_a_statement_in_memory_is_verified_as_its_file_is():
    given = statement()
    assert verify(given) == verify(given.to_json())
    for broken in (
        replace(given, epsilon=given.spent / 2),
        replace(given, noise="simulated"),
        replace(given, epsilon=math.inf),
    ):
        assert not verify(broken)
        assert verify(broken) == verify(broken.to_json())
    impossible = (Round(events=(replace(gaussian(100.0), radius=0.0),)),)
    assert not verify(replace(given, plan=impossible))


# --- lies -----------------------------------------------------------------------------------------


def lie(path: str, value: Any) -> Verification:
    """Verify a good statement after one edit; ``...`` deletes."""
    content = written(statement(mixture))
    at: Any = content
    *parents, last = [int(key) if key.isdigit() else key for key in path.split(".")]
    for key in parents:
        at = at[key]
    if value is ...:
        del at[last]
    else:
        at[last] = value
    return verify(content)


@pytest.mark.parametrize(
    ("path", "value", "problem"),
    [
        ("epsilon", 0.9, "claim is below the cost"),
        ("delta", 1e-7, "claim is below the cost"),
        ("neighbours", "zero_out", "headline was edited"),
        ("headline", "(ε = 0.1, δ = 0)-differentially private", "headline was edited"),
        ("headline", ..., "headline was edited"),
        ("spent.epsilon", 0.9, "Edited number: spent epsilon is 0.9"),
        ("spent.epsilon", 1.5, "Edited number: spent epsilon is 1.5"),
        ("spent.epsilon", "inf", "Edited number: spent epsilon is 'inf'"),
        ("spent.epsilon", "tiny", "Edited number"),
        ("spent.mu", 0.1, "Edited number: spent mu is 0.1"),
        ("spent.rho", 1e-9, "Edited number: spent rho"),
        ("spent.rho", 1e9, "Edited number: spent rho"),
        ("spent.rho", 1e308, "Edited number: spent rho"),
        ("spent", ..., "Edited number"),
        ("spent", [], "Edited number"),
        ("plan", [], "No release is listed"),
        ("noise", "simulated", "nothing is private"),
        ("noise", "none", "nothing is private"),
        ("epsilon", "inf", "nothing is private"),
        ("plan.1.times", 21, "claim is below the cost"),
        ("plan.1.times", 19, "Edited number: spent rho"),
        ("plan.1.times", 0, "Edited number: spent rho"),
        ("plan.1", ..., "Edited number: spent rho"),
        ("plan.0.events.1", ..., "Edited number: spent rho"),
        ("plan.0.events.0.delta", 1e-9, "Edited number: spent slack"),
        ("plan.1.events.0.scale", 1e300, "Edited number: spent rho"),
        ("plan.0.events.1.picks", 4, "claim is below the cost"),
        ("plan.0.events.1.picks", 10, "10 picks of 9"),
        ("plan.0.events.2.picks", 2, "2 picks of 3"),
        ("plan.1.events.0.scale", 0.0, "claim is below the cost"),
        ("plan.1.events.0.scale", 1e-300, "claim is below the cost"),
        ("plan.1.events.0.scale", -1.0, "scale must be finite and not negative"),
        ("plan.1.events.0.scale", math.nan, "scale must be finite and not negative"),
        ("plan.1.events.0.scale", math.inf, "scale must be finite and not negative"),
        ("plan.1.events.0.scale", 10**400, "scale must be finite and not negative"),
        ("plan.1.events.0.radius", 0.0, "radius and unit must be positive"),
        ("plan.1.events.0.radius", -1.0, "radius must be finite and not negative"),
        ("plan.1.events.0.diameter", 0.0, "one to two times radius"),
        ("plan.1.events.0.diameter", 2.0**38 * 0.9, "one to two times radius"),
        ("plan.1.events.0.diameter", 2.0**39 * 1.1, "one to two times radius"),
        ("plan.1.events.0.diameter", math.nan, "diameter must be finite"),
        ("plan.1.events.0.unit", 0.0, "radius and unit must be positive"),
        ("plan.1.events.0.delta", 0.1, "does not fit the law"),
        ("plan.1.events.0.law", "cauchy", "the law 'cauchy' is unknown"),
        ("plan.0.events.0.delta", 0.0, "does not fit the law"),
        ("plan.0.events.0.delta", 2.0, "does not fit the law"),
        ("plan.0.sampling", {"kind": "poisson", "rate": 0.5}, "Labels that are found have no"),
        ("plan.1.sampling", {"kind": "poisson", "rate": 0.5}, "Edited number: spent rho"),
    ],
)
def test_every_lie_is_a_problem(path, value, problem):
    result = lie(path, value)
    assert not result.ok
    assert any(problem in sentence for sentence in result.problems), result.problems
    assert all(sentence.isprintable() for sentence in result.problems)
    assert (result.recomputed is None) == ("not computable" in str(result))


@pytest.mark.parametrize(("path", "value"), [("spent.epsilon", 1.0005), ("spent.rho", None)])
def test_an_epsilon_of_another_version_and_no_number_are_no_lies(path, value):
    assert lie(path, value).ok


def whole(max_rows: int | None = None) -> Statement:
    """Every question, law and operation that has a recipe; batches and parts."""
    problem = replace(PROBLEM, max_rows=max_rows or 1)
    batches, dealt = PoissonBatches(0.05), DisjointParts(3)

    def plan(m: float) -> Plan:
        noise, box = GaussianNoise(m), ClampedMean(1.0)
        catoni = problem.gradient(SmoothedCatoniMean(10.0, 2.0, 3))
        signs = problem.means(box).abs()
        picks = NoisyTopK(m, 2)
        events = (
            noise.event(problem.gradient(ClippedMean(2.0, blocks=4)).scale(0.5)),
            noise.event(catoni.take(5)),
            LaplaceNoise(m).event(signs),
            NoisyMax(m).event(problem.gradient(box).mirror()),
            picks.event(problem.scores(6, BoundedMean(1.0))),
            picks.event(problem.separations(box).take(9)),
            noise.event(problem.improvement(box)),
            noise.event(problem.moments(2.5)),
            noise.event(problem.histogram(3, 7)),
            noise.event(problem.histogram(3, 7, pooled=True)),
            noise.event(problem.histogram(3, 7)),
            noise.event(problem.derivative_norms(12)),
            noise.event(problem.invalid_rows()),
            noise.event(problem.derivatives(ClippedMean(2.0, blocks=4))),
            StabilityHistogram(30.0 + m, 1e-8).event(problem.labels()),
        )
        parts = noise.event(problem.sampled(dealt).gradient(ClippedMean(1.0)))
        return (Round(events=events), Round(sampling=dealt, events=(parts,), times=3))

    def sampled(m: float) -> Plan:
        event = GaussianNoise(m).event(problem.sampled(batches).gradient(ClippedMean(1.0)))
        return (Round(sampling=batches, events=(event,), times=9),)

    made = sampled if max_rows == 7 else plan
    return statement(made, epsilon=3.0, max_rows=max_rows)


@pytest.mark.parametrize("max_rows", [None, 1, 3, 7])
def test_every_sensitivity_follows_from_n_the_unit_and_the_question(max_rows):
    result = verify(written(whole(max_rows)))
    assert result.ok, result.problems


def relabelled(content: Any, rows: int | None) -> None:
    """Another unit, with all words that go with it."""
    other = replace(Statement.from_json(content), max_rows=rows)
    content |= {"max_rows": rows, "unit": other.unit, "headline": other.headline}


def searched(rows: int | None) -> Statement:
    """A search alone: its trials are believed, for as many rows as it says."""
    event = BestTrial(multiplier=20.0, trials=3, rows=rows or 1).event()
    return statement(plan=(Round(events=(event,)),), epsilon=1.0, max_rows=rows)


@pytest.mark.parametrize("rows", [None, 1, 3, 7])
def test_the_unit_of_a_search_follows_from_its_event(rows: int | None) -> None:
    """The attack: another unit, with all its words, and nothing in the plan contradicted it."""
    assert searched(rows).spent == searched(None).spent
    content = written(searched(rows))
    assert verify(content).ok
    relabelled(content, 50)
    assert any("radius and diameter must be 50" in text for text in verify(content).problems)
    (event,) = content["plan"][0]["events"]
    event |= {"radius": 50.0, "diameter": 50.0}
    assert any("claim is below the cost" in text for text in verify(content).problems)
    event |= {"unit": 1e6}
    assert any("one coordinate, of unit 1" in text for text in verify(content).problems)


def test_the_check_sees_a_search_that_is_of_any_unit(monkeypatch: pytest.MonkeyPatch) -> None:
    """Sabotage: the event of a search says nothing of its unit."""
    content = written(searched(None))
    relabelled(content, 50)
    assert not verify(content).ok
    monkeypatch.setattr("privtail.statement.verification._underived", lambda *_: ())
    assert verify(content).ok


def test_every_statement_of_a_file_is_verified(tmp_path: Path) -> None:
    """The attack: a model whose own statement is false, with another one beside it that holds."""
    path, false = tmp_path / "model.json", written(searched(None)) | {"epsilon": 1e-3}
    for own in ({"statement": false}, false):
        path.write_text(json.dumps(own | {"statements": [written(searched(None))]}))
        assert list(map(bool, verify_all(path))) == [False, True]
    for odd in ([], {}, None, [1]):
        path.write_text(json.dumps({"statement": written(searched(None)), "statements": odd}))
        with pytest.raises(InvalidInput, match="must be a list of statements"):
            verify_all(path)


@pytest.mark.parametrize("nothing", [{"times": 0}, {"events": []}])
def test_a_plan_that_releases_nothing_costs_nothing_that_can_be_recomputed(nothing: Any) -> None:
    content = written(searched(None)) | {"epsilon": 1e-9}
    content["plan"] = [one | nothing for one in content["plan"]]
    relabelled(content, None)
    content["spent"] = Statement.from_json(content).recomputed()
    assert any("No release is listed" in text for text in verify(content).problems)


def quartered(content: Any) -> None:
    for r in content["plan"]:
        for event in r["events"]:
            event["radius"] /= 4
            event["diameter"] /= 4


def one_signed(content: Any) -> None:
    for event in content["plan"][0]["events"]:
        if event["question"] == "separations":
            event["one_signed"] = True


def fewer_records(content: Any) -> None:
    content["n"] = 500
    content["plan"] = [content["plan"][1] | {"sampling": {"kind": "poisson", "rate": 1e-9}}]


def no_recipe(content: Any) -> None:
    for event in content["plan"][0]["events"]:
        event["recipe"] = []


TAMPERINGS: dict[str, Any] = {
    "fifty rows of a person": lambda content: relabelled(content, 50),
    "a unit in words alone": lambda content: content.update(unit="one person, and all rows"),
    "a unit in numbers alone": lambda content: content.update(max_rows=2),
    "a quartered radius": quartered,
    "scores that move one way": one_signed,
    "a batch of nobody": fewer_records,
    "no derivation": no_recipe,
    "a smaller question": lambda content: content["plan"][0]["events"][7].update(
        recipe=[["invalid rows"]]
    ),
    "an unknown question": lambda content: content["plan"][0]["events"][7].update(
        recipe=[["square root"]]
    ),
    "an unknown operation": lambda content: content["plan"][0]["events"][7]["recipe"].append(
        ["replace", 3]
    ),
    "another n": lambda content: content.update(n=2 * N),
    "parts of a table": lambda content: content["plan"][1]["sampling"].update(parts=30),
}


@pytest.mark.parametrize("name", TAMPERINGS)
def test_no_tampering_with_what_a_release_is_verifies(name):
    content = written(whole())
    assert verify(content).ok
    TAMPERINGS[name](content)
    result = verify(content)
    assert not result.ok
    assert all(sentence.isprintable() for sentence in result.problems)


def test_persons_made_rows_are_noticed():
    content = written(whole(3))
    for rows in (None, 1, 2, 4):
        relabelled(content, rows)
        assert not verify(content).ok, rows


def test_a_verifier_that_believes_sensitivities_is_caught(monkeypatch):
    monkeypatch.setattr("privtail.statement.verification.underived", lambda statement: ())
    passed = set()
    for name, tamper in TAMPERINGS.items():
        content = written(whole())
        tamper(content)
        content["spent"] = Statement.from_json(content).recomputed()
        if verify(content).ok:
            passed.add(name)
    assert {"fifty rows of a person", "a quartered radius", "no derivation"} <= passed


def refused(content: Any) -> bool:
    """Whether this is no statement, or one with problems."""
    try:
        return not verify(content).ok
    except InvalidInput:
        return True


FREE = {"scale", "delta", "times", "picks"}
"""Numbers that a release may have as it likes: noise, failures and counts, which are billed."""


@pytest.mark.parametrize("max_rows", [None, 7])
@pytest.mark.parametrize("factor", [0.25, 0.5, 2, 3, 1 + 1e-12])
def test_every_number_of_a_release_is_derived_or_billed(max_rows, factor):
    """One number after the other: refused, or free, and the cost that is compared is its own."""
    good = written(whole(max_rows))
    places = [
        (i, j, name)
        for i, r in enumerate(good["plan"])
        for j, event in enumerate(r["events"])
        for name, value in event.items()
        if isinstance(value, int | float) and not isinstance(value, bool) and value
    ]
    assert len(places) >= 7
    for i, j, name in places:
        content = copy.deepcopy(good)
        event = content["plan"][i]["events"][j]
        changed = event[name] * factor
        event[name] = int(changed) if isinstance(event[name], int) else changed
        if event[name] == good["plan"][i]["events"][j][name]:
            continue
        try:
            result = verify(content)
        except InvalidInput:
            continue
        if name not in FREE:
            assert not result.ok, (i, j, name)
        if result.ok:
            assert result.recomputed == cost(
                Statement.from_json(content).plan, "replace_one"
            ).epsilon(1e-6)
            assert result.recomputed <= 3.0
    for name in ("n", "rate", "parts"):
        for r in [good] if name == "n" else [x["sampling"] for x in good["plan"]]:
            if name in r:
                before = r[name]
                r[name] = type(before)(before * factor)
                assert r[name] == before or refused(good), name
                r[name] = before


# --- hostile files --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("format", "privtail-model"),
        ("format", ["privtail-statement"]),
        ("version", 2),
        ("version", None),
        ("epsilon", "1"),
        ("epsilon", -1.0),
        ("epsilon", math.nan),
        ("epsilon", True),
        ("epsilon", None),
        ("epsilon", ...),
        ("delta", 1.0),
        ("delta", -1e-9),
        ("delta", []),
        ("n", 0),
        ("n", 1.5),
        ("n", True),
        pytest.param("n", 10**5000, id="n-huge"),
        ("neighbours", "add_one"),
        ("neighbours", ["replace_one"]),
        ("noise", "quiet"),
        ("noise", {}),
        ("seeded_public_choices", 1),
        ("label", "two\nlines"),
        ("ledger", "two\nlines"),
        ("ledger", None),
        ("max_rows", ...),
        ("unit", "\x1b]0;owned\x07"),
        ("assumptions", "a sentence"),
        ("assumptions", [1]),
        ("outside", {"a": 1}),
        ("versions", ["numpy"]),
        ("versions", {"numpy": 2}),
        ("plan", ...),
        ("plan", {}),
        ("plan", [3]),
        ("plan", [{}]),
        ("plan.0.times", -1),
        ("plan.0.times", 1.5),
        ("plan.0.times", True),
        ("plan.0.times", 10**30),
        ("plan.0.times", ...),
        ("plan.0.sampling", "everyone"),
        ("plan.0.sampling", {"kind": "guess"}),
        ("plan.0.sampling", {"kind": ["everyone"]}),
        ("plan.0.sampling", {"kind": "poisson"}),
        ("plan.0.sampling", {"kind": "poisson", "rate": 0.0}),
        ("plan.0.sampling", {"kind": "poisson", "rate": math.nan}),
        ("plan.0.sampling", {"kind": "poisson", "rate": "0.1"}),
        ("plan.0.sampling", {"kind": "parts", "parts": 0}),
        ("plan.0.sampling", {"kind": "parts", "parts": 2.5}),
        ("plan.0.sampling", {"kind": "everyone", "rate": 0.1}),
        ("plan.0.events", {}),
        ("plan.0.events", [[]]),
        ("plan.0.events.0.scale", "1"),
        ("plan.0.events.0.scale", None),
        ("plan.0.events.0.scale", ...),
        ("plan.0.events.0.law", ["gaussian"]),
        ("plan.0.events.0.coordinates", 1.5),
        ("plan.0.events.0.picks", "3"),
        ("plan.0.events.1.picks", 0),
        ("plan.1.events.0.coordinates", 0),
        ("plan.1.events.0.coordinates", -5),
        ("plan.0.events.0.one_signed", 0),
        ("plan.0.events.0.question", "\x1b[2J"),
        ("plan.0.events.0.question", 3),
        ("plan.0.events.0.surprise", 3),
    ],
)
def test_a_hostile_field_is_one_clear_line(path, value):
    with pytest.raises(InvalidInput) as refusal:
        lie(path, value)
    assert str(refusal.value).isprintable()
    assert len(str(refusal.value)) < 300
    assert refusal.value.__cause__ is None


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"{",
        b"[]",
        b"3",
        b"null",
        b"{}",
        b'{"statement": []}',
        b'{"statement": {"statement": {}}}',
        b'{"format": "privtail-statement", "version": 1}',
        b'{"format": "privtail-statement", "version": NaN}',
        b"[" * 1_000_000,
        b"\xff\xfe\x00",
        b"\x00" * 100,
        b'{"n": ' + b"9" * 10_000 + b"}",
    ],
    ids=lambda data: repr(data[:20]),
)
def test_a_hostile_file_is_one_clear_line(data, tmp_path):
    path = tmp_path / "file.json"
    path.write_bytes(data)
    with pytest.raises(InvalidInput):
        verify(path)


@pytest.mark.parametrize("number", ["NaN", "Infinity", "-Infinity", "1e400", "-1e400", "1" * 5_000])
def test_a_number_that_is_no_double_is_no_json(number, tmp_path):
    path = tmp_path / "file.json"
    for edited in (
        json.dumps(written(statement())).replace('"delta": 1e-06', f'"delta": {number}', 1),
        f'{{"statement": {{"epsilon": {number}}}}}',
    ):
        path.write_text(edited)
        with pytest.raises(InvalidInput, match="is not JSON"):
            verify(path)


def test_a_name_stands_once_in_an_object(tmp_path, monkeypatch):
    """Of two values a reader may take either: one that shows the first claims what nobody paid."""
    path, text = tmp_path / "file.json", json.dumps(written(statement()))
    real, small = '"epsilon": 1.0', '"epsilon": 0.01, "epsilon": 1.0'
    for edited, name in (
        (text.replace(real, small, 1), "'epsilon' twice"),
        (text.replace('"times": ', '"times": 1, "times": ', 1), "'times' twice"),
        ('{"\\u001b[2J": 1, "\\u001b[2J": 2}', r"'\\x1b\[2J' twice"),
        (f'{{"{"a" * 999}": 1, "{"a" * 999}": 1}}', r"'a{40}\.\.\.' twice"),
    ):
        assert edited != text
        path.write_text(edited)
        for read in (verify, verify_all, privtail.load, privtail.report):
            with pytest.raises(InvalidInput, match=name) as refusal:
                read(path)
            assert len(str(refusal.value)) < 300 + len(str(path))
    path.write_text(text.replace(real, small, 1))
    monkeypatch.setattr(json_files, "_object", dict)
    assert verify(path).ok, "the twin is caught"


@pytest.mark.parametrize("name", ["missing.json", ".", "pipe", "nul\x00"])
def test_no_file(name, tmp_path):
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(InvalidInput):
        verify(tmp_path / name)
    for source in (3, None, b"{}"):
        with pytest.raises(InvalidInput):
            verify(source)


def test_random_edits_never_end_in_a_traceback(rng):
    """Any value anywhere: a verdict or InvalidInput, and ok only where the numbers say so."""
    values = [..., None, True, 0, -1, 1, 2.5, 1e308, math.nan, math.inf, "", "inf", [], {}, [{}]]
    good = written(statement(mixture))
    verdicts = 0
    for _ in range(400):
        content = copy.deepcopy(good)
        at: Any = content
        while True:
            keys = list(at) if isinstance(at, dict) else range(len(at))
            key = keys[int(rng.integers(len(keys)))]
            if not isinstance(at[key], dict | list) or not at[key] or rng.random() < 0.1:
                break
            at = at[key]
        value = values[int(rng.integers(len(values)))]
        if value is ...:
            del at[key]
        else:
            at[key] = value
        try:
            result = verify(content)
        except InvalidInput:
            continue
        verdicts += 1
        str(result)
        if result.ok:
            assert cost(Statement.from_json(content).plan, "replace_one").epsilon(1e-6) <= 1
    assert verdicts > 50


def test_a_plan_without_a_theorem_is_no_proof():
    content = written(statement(mixture))
    content["plan"][1]["sampling"] = {"kind": "poisson", "rate": 0.5}
    content["plan"][1]["events"] += content["plan"][0]["events"][1:]
    result = verify(content)
    assert not result.ok
    assert result.recomputed is None
    assert result.problems[0].startswith("The cost cannot be recomputed: One Poisson batch")


def test_an_accountant_that_fails_is_no_proof(monkeypatch):
    content = written(statement())

    def broken(*_: object) -> None:
        raise ZeroDivisionError

    monkeypatch.setattr("privtail.statement.verification.cost", broken)
    result = verify(content)
    assert not result.ok
    assert result.recomputed is None
    assert "ZeroDivisionError" in str(result)


def test_importing_it_is_light():
    """The accountant of Poisson batches is imported when it is needed."""
    import subprocess
    import sys

    import privtail

    code = "import sys, privtail.statement; sys.exit('dp_accounting' in sys.modules)"
    environment = os.environ | {"PYTHONPATH": str(Path(privtail.__file__).parents[1])}
    assert (
        subprocess.run([sys.executable, "-c", code], env=environment, check=False).returncode == 0
    )


@pytest.mark.parametrize("noise", ["exact", "simulated"])
def test_results_that_are_not_private_say_so_where_they_are_shown(noise: Any) -> None:
    X = np.random.default_rng(0).normal(size=(300, 2))
    options: Any = {"epsilon": 1.0, "noise": noise, "random_state": 0}
    fitted = linear_model.DPRidge(epsilon=1.0).fit(X, X[:, 0])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", AccuracyWarning)
        results: list[Any] = [
            function(X, **options)
            for function in (
                privtail.private_mean, privtail.private_count, privtail.private_quantile,
                privtail.private_covariance, privtail.summarize,
            )
        ]  # fmt: skip
        results += [
            privtail.private_histogram(X[:, 0], 3, **options),
            privtail.evaluate(fitted, X, X[:, 0], **options),
            privtail.compare(fitted, fitted, X, X[:, 0], **options),
        ]
    for result in results:
        assert ("NOT PRIVATE: simulated noise" in str(result)) == (noise == "simulated")
