"""Labels that are bought: the tail of the noise, exact audits, costs, and what is found."""

from __future__ import annotations

import itertools
import math
import os
from dataclasses import replace
from functools import partial
from typing import Any

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats
from scipy.special import expit, ndtr

from privtail import Ledger
from privtail.calibration import calibrate
from privtail.errors import IncompatibleParts, InvalidInput, UnsupportedAccounting
from privtail.linear_model import DPLogisticRegression, DPSparseClassifier
from privtail.linear_model.classification import LABELS_DELTA
from privtail.linear_model.planning import enough
from privtail.statement import verify
from privtail.trusted.accountants import cost
from privtail.trusted.allowance import Allowance
from privtail.trusted.budget import Budget, Neighbours
from privtail.trusted.curator import Curator
from privtail.trusted.events import Event, Round
from privtail.trusted.mechanisms.labels import StabilityHistogram, rare
from privtail.trusted.mechanisms.noise import GaussianNoise
from privtail.trusted.mechanisms.samplers import ExactSampler
from privtail.trusted.mechanisms.simulated import SimulatedSampler
from privtail.trusted.problem import Problem
from privtail.trusted.records import targets
from privtail.trusted.sampling import PoissonBatches
from privtail.trusted.sensitivity import Sensitivity

ALPHA = 1e-6
COARSE = 2**50
"""So many records leave a grid of 2^-10, on which probabilities are summed exactly."""


def counted(max_rows: int = 1, n: int = COARSE) -> Sensitivity:
    return Problem(n=n, d=1, max_rows=max_rows).labels()


# --- the tail of the noise ------------------------------------------------------------------------


def exceeds(scale: float, k: int) -> mpmath.mpf:
    """P(Z >= k) of rounded normal noise Z."""
    return mpmath.ncdf((mpmath.mpf(1) / 2 - k) / scale)


@pytest.mark.parametrize("scale", [0.3, 1.0, 2.5, 7.0, 23.0])
def test_the_tail_is_a_bound_and_a_close_one(scale: float) -> None:
    """Against exact tails, also at probabilities just beside what some integer is exceeded with."""
    broken = 0
    with mpmath.workdps(50):
        ends = [exceeds(scale, k) for k in (1, 2, 5, int(4 * scale) + 1, int(9 * scale) + 1)]
        beside = [float(p) * factor for p in ends for factor in (1, 1 - 1e-9, 1 + 1e-9)]
        for p in [*beside, 0.7, 0.4, 0.05, 1e-3, 1e-6, 1e-8, 1e-12, 1e-30, 1e-250]:
            if p < 1e-280:
                continue
            k = rare(scale, math.log(p))
            assert k >= 1
            assert exceeds(scale, k) <= p
            assert k <= 2 or scale < 1 or exceeds(scale, k - 3) > p
            broken += exceeds(scale, k - 1) > p
    assert broken  # the twin, without the step by which integers differ from real numbers


def test_rare_at_the_ends() -> None:
    assert rare(1e15, math.log(0.9)) == 2 + math.ceil(1e6)
    assert rare(1.0, math.log(5e-324) - 50) > 39


# --- exact audits ---------------------------------------------------------------------------------


def survival(scale: float, k: int) -> float:
    """P(Z >= k) of rounded normal noise Z, in doubles."""
    return float(ndtr((0.5 - k) / scale))


def law(counts: dict[str, int], names: list[str], mechanism: Any, of: Sensitivity) -> np.ndarray:
    """Probability of every set of labels, (2^names,)."""
    scale = mechanism.multiplier * of.radius.l2
    step, threshold = int(1 / of.unit), mechanism.threshold(of)
    sets = np.ones(1)
    for name in names:
        held = counts.get(name, 0)
        p = survival(scale, threshold - held * step) if held else 0.0
        sets = np.concatenate([sets * (1 - p), sets * p])
    return sets


def divergence(p: np.ndarray, q: np.ndarray, epsilon: float, mu: float) -> float:
    """Of discrete releases, each followed by a Gaussian of parameter ``mu`` that may know them."""
    total = float(p[q == 0].sum())
    p, q = p[(q > 0) & (p > 0)], q[(q > 0) & (p > 0)]
    if mu == 0:
        return total + float(np.maximum(0.0, p - math.exp(epsilon) * q).sum())
    left = epsilon + np.log(q / p)
    here, there = ndtr(mu / 2 - left / mu), ndtr(-mu / 2 - left / mu)
    return total + float(np.maximum(0.0, p * here - math.exp(epsilon) * q * there).sum())


def refuted(
    before: dict[str, int], after: dict[str, int], mechanism: Any, of: Sensitivity,
    neighbours: Neighbours = "replace_one", mu: float = 0.0, span: float = 0.0,
    event: Event | None = None,
) -> bool:  # fmt: skip
    """Whether two neighbours differ by more than is billed, for what is found and what follows.

    What follows is a selection between two with a range of ``span``, and a Gaussian.
    """
    names = sorted(set(before) | set(after))
    laws = [law(counts, names, mechanism, of) for counts in (before, after)]
    events = [event or mechanism.event(of)]
    step = 2.0**20
    if span:
        choices = [np.array([expit(x), expit(-x)]) for x in (span / 2, -span / 2)]
        laws = [np.outer(sets, choice).ravel() for sets, choice in zip(laws, choices, strict=True)]
        top = {"law": "noisy_max", "coordinates": 2}
        events.append(Event(**top, scale=step, radius=span * step / 2, diameter=span * step / 2))
    if mu:
        beside = {"law": "gaussian", "coordinates": 1}
        events.append(Event(**beside, scale=step, radius=mu * step, diameter=mu * step))
    bill = cost((Round(events=tuple(events)),), neighbours)
    deltas = [bill.slack * more for more in (1.0001, 1.01, 1.1, 1.5)]  # the rest is the Gaussian's
    return any(
        divergence(p, q, epsilon, mu) > delta * (1 + 1e-9) + 1e-13
        for delta in (*deltas, 1e-9, 1e-7, 1e-5, 1e-4, 1e-3, 0.01, 0.03, 0.1, 0.2, 0.4)
        if (epsilon := bill.epsilon(delta)) < math.inf
        for p, q in itertools.permutations(laws)
    )


def neighbours_of(
    base: dict[str, int], old: list[str], new: list[str]
) -> tuple[dict[str, int], dict[str, int]]:
    """Counts with one person's rows as they were, and as they are."""
    both = []
    for rows in (old, new):
        counts = dict(base)
        for name in rows:
            counts[name] = counts.get(name, 0) + 1
        both.append({name: count for name, count in counts.items() if count})
    return both[0], both[1]


KNOWN, OWN = ["a", "b", "c"], ["mine", "mine too", "my third"]


@settings(max_examples=150, deadline=None)
@given(st.data())
def test_neighbours_differ_by_no_more_than_is_billed(data: st.DataObject) -> None:
    """Exact, for counts around the threshold, whatever one person's rows hold."""
    m = data.draw(st.integers(1, 3))
    mechanism = StabilityHistogram(
        data.draw(st.sampled_from([0.3, 1.0, 3.0])), data.draw(st.sampled_from([1e-6, 1e-2, 0.3]))
    )
    of = counted(m)
    middle = mechanism.threshold(of) * of.unit
    spread = mechanism.multiplier * m
    base = {name: max(0, round(middle + spread * data.draw(st.floats(-4, 3)))) for name in KNOWN}
    rows = st.lists(st.sampled_from([*KNOWN, *OWN]), max_size=m)
    neighbours: Neighbours = data.draw(st.sampled_from(["replace_one", "zero_out"]))
    old, new = data.draw(rows), [] if neighbours == "zero_out" else data.draw(rows)
    beside = {
        "mu": data.draw(st.sampled_from([0.0, 0.5])),
        "span": data.draw(st.sampled_from([0.0, 1.0])),
    }
    before, after = neighbours_of(base, old, new)
    assert not refuted(before, after, mechanism, of, neighbours, **beside)


class Sabotaged(StabilityHistogram):
    """Released by a threshold that is lower than it should be."""

    def threshold(self, counted: Sensitivity) -> int:
        return max(1, math.ceil(self.lowered(super().threshold(counted), counted)))


class WithoutItsDelta(Sabotaged):
    def lowered(self, threshold: int, counted: Sensitivity) -> float:
        return counted.radius.linf


class OfOneRow(Sabotaged):
    def lowered(self, threshold: int, counted: Sensitivity) -> float:
        return threshold - counted.radius.linf + 1 / counted.unit


def worst(m: int, mechanism: Any) -> list[tuple[dict[str, int], dict[str, int]]]:
    """A person whose rows alone hold a label, hold one each, or move between two at the edge."""
    of = counted(m)
    edge = round(mechanism.threshold(of) * of.unit)
    base = {"a": edge - m // 2, "b": edge - m // 2}
    olds = (["mine"] * m, [f"mine {i}" for i in range(m)], ["a"] * m)
    return [neighbours_of(base, old, ["b"] * m) for old in olds]


@pytest.mark.parametrize("beside", [{}, {"mu": 0.4}])
@pytest.mark.parametrize("m", [1, 4])
@pytest.mark.parametrize("delta", [1e-6, 1e-3])
def test_sabotaged_twins_are_caught(m: int, delta: float, beside: dict[str, float]) -> None:
    of = counted(m)

    def caught(mechanism: StabilityHistogram, **changes: Any) -> bool:
        return any(
            refuted(*pair, mechanism, of, **beside, **changes) for pair in worst(m, mechanism)
        )

    honest = StabilityHistogram(1.0, delta)
    assert not caught(honest)
    assert caught(WithoutItsDelta(1.0, delta))
    assert caught(OfOneRow(1.0, delta)) == (m > 1)
    event = honest.event(of)
    assert caught(honest, event=replace(event, diameter=event.radius))  # 1 in place of sqrt 2
    assert caught(honest, event=replace(event, delta=delta / (2 * m)))


def test_a_label_of_one_person_shows_as_often_as_allowed() -> None:
    """The largest chance that any of m rows' own labels shows, against its bound."""
    for m, delta in itertools.product((1, 2, 7), (1e-3, 1e-6, 1e-9)):
        mechanism, of = StabilityHistogram(3.0, delta), counted(m)
        scale, step = 3.0 * of.radius.l2, int(1 / of.unit)

        def shows(split: list[int]) -> float:
            passing = (survival(scale, mechanism.threshold(of) - c * step) for c in split)  # noqa: B023
            return 1 - math.prod(1 - p for p in passing)

        splits = [[m - j, *[1] * j] for j in range(m)]
        highest = max(map(shows, splits))
        assert delta / m * 0.99 < highest <= delta


# --- sensitivity, and the bill --------------------------------------------------------------------


@pytest.mark.parametrize("m", [1, 2, 5])
def test_counts_move_as_the_sensitivity_says(m: int) -> None:
    of, worst = counted(m), [0.0] * 3
    for old, new in itertools.product(
        itertools.combinations_with_replacement("abcde", m), repeat=2
    ):
        moved = np.array([old.count(v) - new.count(v) for v in "abcde"], dtype=float)
        for i, norm in enumerate((1, 2, np.inf)):
            worst[i] = max(worst[i], float(np.linalg.norm(moved, norm)))
        assert np.count_nonzero(moved) <= of.size
    step = 1 / of.unit
    assert np.array(worst) * step == pytest.approx(
        [of.diameter.l1, of.diameter.l2, of.diameter.linf], rel=1e-12
    )
    assert of.diameter.l2 >= worst[1] * step
    assert (of.radius.l1, of.radius.l2, of.radius.linf) == (m * step,) * 3


def test_labels_are_billed_the_same_whatever_is_found() -> None:
    event = StabilityHistogram(3.0, 1e-7).event(counted(2, n=1000))
    unit = 2.0**-34
    assert (event.law, event.question, event.coordinates) == ("gaussian_labels", "labels", 4)
    assert (event.delta, event.unit, event.std) == (1e-7, unit, 6.0)
    assert (event.scale, event.radius) == (6 / unit, 2 / unit)
    assert event.diameter == pytest.approx(math.sqrt(8) / unit, rel=1e-12)
    for delta in (0.0, 1.0, math.nan):
        with pytest.raises(InvalidInput, match="classes"):
            StabilityHistogram(1.0, delta)
    for multiplier in (-1.0, math.inf, math.nan):
        with pytest.raises(InvalidInput):
            StabilityHistogram(multiplier, 1e-6)


@pytest.mark.parametrize("neighbours", ["replace_one", "zero_out"])
def test_the_cost_is_that_of_a_gaussian_and_a_delta(neighbours: Neighbours) -> None:
    of = Problem(n=1000, d=3).labels()
    found, plain = StabilityHistogram(9.0, 1e-8).event(of), GaussianNoise(9.0).event(of)
    bill, same = (cost((Round(events=(e,)),), neighbours) for e in (found, plain))
    assert bill.epsilon(1e-6) == pytest.approx(same.epsilon(0.99e-6), rel=1e-9)
    assert (bill.mu, bill.rho, bill.slack) == (same.mu, same.rho, pytest.approx(1e-8))
    assert bill.epsilon(1e-8) == bill.epsilon(0.9e-8) == math.inf
    sampled = Round(sampling=PoissonBatches(0.1), events=(found,))
    with pytest.raises(UnsupportedAccounting, match="Everyone"):
        cost((sampled,), neighbours)


def test_a_statement_says_what_its_parameters_hold_but_for() -> None:
    X = np.random.default_rng(0).standard_normal((4000, 2))
    y = X[:, 0] > 0
    found = DPLogisticRegression(epsilon=2.0, random_state=0).fit(X, y).privacy_
    declared = DPLogisticRegression(classes=[False, True], random_state=0).fit(X, y).privacy_
    assert found.slack == found.cost.slack >= LABELS_DELTA * 1e-6
    assert declared.slack == 0.0
    assert "but for 9e-09" in dict(found.facts())["spent"].split("; ")[1]
    assert "but for" not in declared.to_text()
    written = found.to_json()
    assert verify(written)
    written["spent"]["slack"] = 1e-9
    assert not verify(written)
    del written["spent"]["slack"]
    assert not verify(written)


def test_a_trial_of_a_search_finds_no_labels() -> None:
    plan = DPLogisticRegression(epsilon=0.5).plan(10_000, 3)
    with pytest.raises(Exception, match="declared classes"):
        Allowance(1.0, "replace_one", payer=os.getpid()).reserve(
            label="fit", epsilon=0.1, delta=1e-6, neighbours="replace_one", rho=1e-3,
            plan=[{"events": [{"delta": e.delta} for r in plan for e in r.events]}],
        )  # fmt: skip


# --- what is found --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "sampler", [ExactSampler(), SimulatedSampler(0)], ids=["exact", "simulated"]
)
def test_labels_are_found_as_often_as_they_should(sampler: Any) -> None:
    """Own labels at most as often as delta, others 19 times in 20: binomial bounds at ALPHA."""
    mechanism, of = StabilityHistogram(4.0, 0.05), counted(n=10_000)

    def passed(count: int) -> int:
        return len(mechanism.release({f"label{i:04}": count for i in range(4000)}, of, sampler))

    least = enough(mechanism, Problem(n=10_000, d=1))
    own, found = passed(1), passed(least)
    assert stats.binomtest(own, 4000, 0.05, alternative="greater").pvalue > ALPHA
    assert stats.binomtest(own, 4000, 0.04, alternative="less").pvalue > ALPHA
    assert stats.binomtest(found, 4000, 0.95, alternative="less").pvalue > ALPHA
    fewer = passed(least - 2)
    assert stats.binomtest(fewer, 4000, 0.95, alternative="less").pvalue < ALPHA


class Many(list[float]):
    """Two labels that say to be more than 32 bits can count."""

    def __len__(self) -> int:
        return 2**31 + 2


def test_places_of_more_labels_than_32_bits_hold(monkeypatch: pytest.MonkeyPatch) -> None:
    """They wrapped around: a new label of one row gave other rows other codes."""
    places = np.array([0, 2**31 + 1])
    monkeypatch.setattr(targets, "distinct", lambda cells: (Many([0.0, 1.0]), places))
    found = targets.Labels(np.array([0.0, 1.0]), 2)._distinct()
    assert found.positions.tolist() == places.tolist()


def test_few_labels_have_short_places() -> None:
    assert targets.Labels(np.arange(3.0), 3)._distinct().positions.dtype == np.int32


def test_frequent_labels_are_found_sorted() -> None:
    mechanism, of = StabilityHistogram(10.0, 1e-6), counted(n=902)
    counts = {"b": 500, "a": 400, "rare": 2}
    assert mechanism.release(counts, of, ExactSampler()) == ["a", "b"]  # fails below 1e-40
    assert mechanism.release({}, of, ExactSampler()) == []
    assert StabilityHistogram(0.0, 1e-6).release({"a": 1}, of, ExactSampler()) == ["a"]


def test_only_the_histogram_releases_labels() -> None:
    mechanism = WithoutItsDelta(9.0, 1e-7)
    curator = Curator(np.ones((40, 1)), np.arange(40) % 2, budget=Budget(5.0, 1e-6), classes=())
    curator.open((Round(events=(mechanism.event(curator.problem.labels()),)),))
    with pytest.raises(IncompatibleParts, match="StabilityHistogram"):
        curator.everyone().labels(mechanism)


# --- fits -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("epsilon", [0.1, 0.5, 1.0, 3.0])
@pytest.mark.parametrize("max_rows", [1, 3])
def test_other_noise_grows_by_twice_the_part_of_the_rows_that_a_label_needs(
    epsilon: float, max_rows: int
) -> None:
    budget = Budget(epsilon, 1e-6)
    for n in (100_000, 3_000_000):
        problem = Problem(n=n, d=3, max_rows=max_rows)
        of = problem.labels()
        mechanism = DPLogisticRegression(epsilon=epsilon)._labels(problem)
        part = enough(mechanism, problem) / n
        assert part < 0.06
        labels = mechanism.event(of)

        def noise(*others: Event, of: Sensitivity = of) -> float:
            return calibrate(
                lambda m: (Round(events=(*others, GaussianNoise(m).event(of))),), budget
            )

        assert noise(labels) / noise() - 1 == pytest.approx(2 * part, rel=0.25, abs=1e-3)


@pytest.mark.usefixtures("simulated_is_booked")
@pytest.mark.parametrize(
    "model", [DPLogisticRegression, DPSparseClassifier, lambda **o: DPLogisticRegression(
        algorithm="clipped-spgd", **o)], ids=["logistic", "sparse", "batches"],
)  # fmt: skip
@pytest.mark.parametrize("composition", ["basic", "zcdp", "gdp"])
def test_what_was_planned_is_what_is_spent(model: Any, composition: Any) -> None:
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(3000, 3)), rng.integers(0, 2, 3000)
    ledger = Ledger(epsilon=2.0, delta=4e-6, composition=composition)
    fit = model(ledger=ledger, noise="simulated", random_state=0)
    try:
        fit.fit(X, y)
    except UnsupportedAccounting:
        assert composition != "basic"
        assert fit.plan(3000, 3).cost.mu is None
        return
    assert fit.classes_.tolist() == [0, 1]
    assert fit.privacy_.plan == fit.plan_.releases == fit.plan(3000, 3).releases
    assert 0.99 < fit.plan_.epsilon <= 1.0
    (entry,) = ledger.entries()
    assert entry.epsilon == fit.plan_.epsilon
    assert entry.slack == pytest.approx(
        0.0 if composition == "basic" else LABELS_DELTA * 1e-6, rel=1e-3
    )


def test_a_label_of_three_per_cent_is_found() -> None:
    """228 rows hold it, where 152 are needed: missed less often than once in 10^5 fits."""
    y = np.zeros(7_500, dtype=int)
    y[::33] = 1
    X = np.random.default_rng(0).normal(size=(7_500, 2))
    assert sum(y) == 228
    for seed in range(3):
        model = DPLogisticRegression(epsilon=1.0, noise="simulated", random_state=seed).fit(X, y)
        assert model.classes_.tolist() == [0, 1]
    with pytest.raises(
        InvalidInput, match=r"A label needs about 749 of the n = 7,500 rows.* spent"
    ):
        DPLogisticRegression(epsilon=0.1, noise="simulated", random_state=0).fit(X, y)


@pytest.mark.parametrize("model", [DPLogisticRegression, partial(DPSparseClassifier, 1)])
@pytest.mark.parametrize("grouped", [False, True])
def test_too_few_rows_for_two_labels_are_refused_before_the_charge(
    model: Any, grouped: bool
) -> None:
    """88 rows must hold a label; 2 times that of one person."""
    n = 175
    ledger, X = Ledger(epsilon=1.0, delta=1e-6), np.zeros((n, 2))
    groups = {"groups": np.arange(n)} if grouped else {}
    fit = model(epsilon=1.0, ledger=ledger, max_rows=2 if grouped else None)
    with pytest.raises(InvalidInput, match=r"No row was read.*classes=\[") as caught:
        fit.fit(X, np.arange(n) % 2, **groups)
    assert "--classes a,b" in caught.value.cli
    assert not ledger.entries()
    if not grouped:
        assert "about 88 rows hold" in str(caught.value)
        fit = model(epsilon=1.0, noise="simulated", random_state=1)
        assert len(fit.fit(np.zeros((176, 2)), np.arange(176) % 2).classes_) == 2


def test_without_delta_labels_are_declared() -> None:
    with pytest.raises(InvalidInput, match="declare the labels as classes"):
        DPLogisticRegression(delta=0.0).plan(1000, 2)
    X, y = np.ones((50, 1)), np.array(["a"] * 49 + ["b"])
    assert DPLogisticRegression(epsilon=math.inf).fit(X, y).classes_.tolist() == ["a", "b"]


@pytest.mark.parametrize("composition", ["zcdp", "gdp"])
def test_a_ledger_of_the_delta_of_a_fit_has_room_for_its_labels(composition: Any) -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(3_000, 2))
    ledger = Ledger(epsilon=1.0, delta=1e-6, composition=composition)
    model = DPLogisticRegression(epsilon=0.7, delta=1e-6, ledger=ledger, random_state=0)
    assert list(model.fit(X, X[:, 0] > 0).classes_) == [False, True]
