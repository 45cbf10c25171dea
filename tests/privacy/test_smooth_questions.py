"""Trimmed means and aggregated functions: hostile records, hostile functions, planned and spent."""

from __future__ import annotations

import json
import math
import os
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy import sparse

from privtail.errors import IncompatibleParts, InvalidInput, NotPlanned
from privtail.losses import GeneralLoss, LogisticLoss, SquaredLoss
from privtail.robust_means import ClippedMean
from privtail.statement import Statement, state, verify
from privtail.trusted import partitions
from privtail.trusted.accountants import cost
from privtail.trusted.budget import Budget
from privtail.trusted.curator import Curator
from privtail.trusted.events import Round
from privtail.trusted.ledger import Ledger
from privtail.trusted.mechanisms.noise import GaussianNoise
from privtail.trusted.mechanisms.registry import MECHANISMS
from privtail.trusted.problem import Problem
from privtail.trusted.sampling import DisjointParts, PoissonBatches
from privtail.trusted.smooth.aggregate import SampleAndAggregate, centre_of_attention
from privtail.trusted.smooth.questions import (
    SMOOTH_MECHANISMS,
    aggregate,
    trimmed_gradient,
)
from privtail.trusted.smooth.trimmed import TrimmedMean, decay, trimmed_sum

HOSTILE = (1e308, -1e308, 1.7e308, 5e-324, math.nan, math.inf, -math.inf, 0.0, -0.0)


def trimmed_mean(multiplier: float = 0.0, trim: int = 5, **more: Any) -> TrimmedMean:
    return TrimmedMean(multiplier=multiplier, trim=trim, **({"low": -3.0, "high": 3.0} | more))


def aggregated(multiplier: float = 0.0, blocks: int = 7, **more: Any) -> SampleAndAggregate:
    arguments = {"radius": 10.0, "smoothness": 0.5, "delta": 1e-6} | more
    return SampleAndAggregate(multiplier=multiplier, blocks=blocks, **arguments)


def opened(mechanism: Any, X: Any, y: Any = None, *, size: int, **more: Any) -> Any:
    """A batch of everyone in which one release of this mechanism is planned and paid."""
    budget = more.pop("budget", Budget(math.inf))
    if y is None and isinstance(mechanism, TrimmedMean):
        y = -np.ones(len(X))
    curator = Curator(X, y, budget=budget, random_state=0, **({"noise": "simulated"} | more))
    curator.open((Round(events=(mechanism.event(curator.problem, size),)),))
    return curator.everyone()


def trimmed_means(batch: Any, mechanism: Any) -> np.ndarray:
    """Trimmed means of the columns: gradients of squared losses at 0, where all targets are -1."""
    return trimmed_gradient(batch, SquaredLoss(), np.zeros((batch.problem.d, 1)), mechanism)


def ask(batch: Any, mechanism: Any) -> np.ndarray:
    """The question of a mechanism, about means."""
    if isinstance(mechanism, TrimmedMean):
        return trimmed_means(batch, mechanism)
    return aggregate(batch, lambda x: x.mean(axis=0), np.zeros(2), mechanism)


def records(n: int = 60, d: int = 2) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(1)
    return rng.standard_t(2, (n, d)), rng.standard_t(2, n)


def naive(values: np.ndarray, trim: int, low: float = -3.0, high: float = 3.0) -> np.ndarray:
    inside = np.sort(np.clip(values, low, high), axis=0)
    return inside[trim : len(inside) - trim].mean(axis=0)


def truncated(values: np.ndarray, trim: int, low: float, high: float) -> np.ndarray:
    """W20 Algorithm 2, line 2: the trimmed mean of the values as they are, then truncated."""
    return np.clip(naive(values, trim, -math.inf, math.inf), low, high)


# --- trimmed means -----------------------------------------------------------------------------


def test_trimmed_means_of_columns() -> None:
    X, _ = records()
    mechanism = trimmed_mean()
    batch = opened(mechanism, X, size=2)
    assert trimmed_means(batch, mechanism) == pytest.approx(naive(X, 5), abs=1e-8)


@pytest.mark.parametrize(("low", "high"), [(-0.5, 0.4), (2.0, 3.0), (-9.0, -8.0)])
def test_trimmed_means_that_are_truncated(low: float, high: float) -> None:
    """The values are not clipped, unless they are beyond ``reach`` intervals."""
    X, _ = records()
    X[0], X[1] = 1e5, -1e5
    for reach in (1e6, 2.0**30):
        mechanism = trimmed_mean(low=low, high=high, reach=reach)
        found = trimmed_means(opened(mechanism, X, size=2), mechanism)
        assert found == pytest.approx(truncated(X, 5, low, high), abs=1e-6)
    clipping = trimmed_mean(low=low, high=high)
    found = trimmed_means(opened(clipping, X, size=2), clipping)
    assert found == pytest.approx(naive(X, 5, low, high), abs=1e-8)
    middling = trimmed_mean(trim=0, low=-1.0, high=1.0, reach=4.0)
    found = trimmed_means(opened(middling, X, size=2), middling)
    assert found == pytest.approx(np.clip(np.clip(X, -4, 4).mean(axis=0), -1, 1), abs=1e-8)


@pytest.mark.parametrize("storage", ["dense", "csr", "fortran", "float32", "frame"])
@pytest.mark.parametrize("intercept", [False, True])
def test_trimmed_gradients(storage: str, intercept: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also in blocks of 7 rows and one coordinate at a time."""
    X, y = records(d=3)
    X = np.where(np.abs(X) < 0.5, 0.0, X).astype(np.float32).astype(float)
    mechanism, w = trimmed_mean(), np.arange(3.0 + intercept)[:, None] / 3
    rows = np.column_stack([X, np.ones(len(X))]) if intercept else X
    expected = naive(rows * (rows @ w - y[:, None]), 5)
    stored = {
        "frame": lambda x: pd.DataFrame(x, columns=list("abc")),
        "csr": sparse.csr_matrix, "fortran": np.asfortranarray, "float32": np.float32,
    }.get(storage, np.asarray)(X)  # fmt: skip
    for small in (False, True):
        if small:
            monkeypatch.setattr(partitions, "BLOCK_ROWS", 7)
            monkeypatch.setattr("privtail.trusted.smooth.questions.KEPT_BYTES", 1)
        batch = opened(mechanism, stored, y, size=len(w), intercept=intercept)
        found = trimmed_gradient(batch, SquaredLoss(), w, mechanism)
        assert found == pytest.approx(expected, abs=1e-7)


def test_trimmed_gradients_of_a_general_loss_and_of_labels() -> None:
    X, y = records()
    w = np.array([[0.5], [-0.2]])
    general = GeneralLoss(
        value=lambda w, x, y: (x @ w[:, 0] - y) ** 2 / 2,
        gradient=lambda w, x, y: x[:, None] * (x @ w[:, 0] - y),
    )
    mechanism = trimmed_mean()
    expected = trimmed_gradient(opened(mechanism, X, y, size=2), SquaredLoss(), w, mechanism)
    found = trimmed_gradient(opened(mechanism, X, y, size=2), general, w, mechanism)
    assert found == pytest.approx(expected, abs=1e-8)
    signs = np.where(y > 0, "up", "down")
    batch = opened(mechanism, X, signs, size=2, classes=["down", "up"])
    slopes = X * (1 / (1 + np.exp(-X @ w)) - (y[:, None] > 0))
    found = trimmed_gradient(batch, LogisticLoss(), w, mechanism)
    assert found == pytest.approx(naive(slopes, 5), abs=1e-8)


@pytest.mark.parametrize("value", HOSTILE)
@pytest.mark.parametrize("place", ["x", "y", "row"])
@pytest.mark.parametrize("reach", [1.0, 1e6])
def test_one_record_moves_a_trimmed_sum_by_no_more_than_its_sensitivity(
    value: float, place: str, reach: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """At the question itself: grid steps of both data sets, and what S says of them."""
    grids: list[np.ndarray] = []
    monkeypatch.setattr(
        TrimmedMean, "release", lambda self, c, p, s: grids.append(c.copy()) or np.zeros(len(c))
    )
    X, y = records(40)
    X[5:20] = X[4]
    other, target = X.copy(), y.copy()
    if place != "y":
        other[7, : 1 if place == "x" else 2] = value
    if place != "x":
        target[7] = value
    mechanism = trimmed_mean(4.0, reach=reach)
    for a, b in ((X, y), (other, target)):
        batch = opened(mechanism, a, b, size=2, budget=Budget(50.0, 1e-3))
        trimmed_gradient(batch, SquaredLoss(), np.array([[1e3], [-2.0]]), mechanism)
    bits, inside = mechanism.bits(batch.problem), mechanism.inside(batch.problem)
    weights = decay(mechanism.t(batch.problem), 5, bits)
    for one, two in zip(*grids, strict=True):
        assert one.min() >= 0
        assert max(one.max(), two.max()) <= 2**bits
        assert (np.sort(one) != np.sort(two)).sum() == 0 or (one != two).sum() == 1
        (f, s), (g, t) = (trimmed_sum(c.copy(), 5, 2**bits, weights, inside) for c in (one, two))
        assert abs(f - g) <= min(s, t)
        assert abs(math.log(s / t)) <= mechanism.t(batch.problem)


@pytest.mark.parametrize("n", [1, 2, 3])
def test_few_records(n: int) -> None:
    mechanism = trimmed_mean(1.0, trim=(n - 1) // 2)
    X = np.full((n, 2), math.nan)
    batch = opened(mechanism, X, size=2, budget=Budget(50.0, 1e-3))
    assert np.isfinite(trimmed_means(batch, mechanism)).all()


@pytest.mark.parametrize("low", [-2.0, 1.0])
def test_a_row_that_cannot_be_used_counts_as_zero_forced_onto_the_interval(low: float) -> None:
    X, _ = records(9, 1)
    X[:5], mechanism = np.nan, trimmed_mean(trim=4, low=low, high=3.0)
    assert trimmed_means(opened(mechanism, X, size=1), mechanism)[0] == pytest.approx(
        np.median(np.clip([*np.zeros(5), *X[5:, 0]], low, 3.0)), abs=1e-9
    )


@pytest.mark.parametrize("reach", [1.0, 64.0])
def test_trimmed_noise_is_the_sensitivity_that_is_billed(reach: float) -> None:
    """Seeded: 4000 equal columns; the median |noise| of a Laplace log-normal is scale log 2."""
    x = np.random.default_rng(0).standard_t(3, 100)
    mechanism = trimmed_mean(3.0, trim=20, low=-20.0, high=20.0, reach=reach)
    batch = opened(mechanism, np.tile(x[:, None], 4000), size=4000, budget=Budget(1e6, 1e-3))
    found = trimmed_means(batch, mechanism)
    bits, inside = mechanism.bits(batch.problem), mechanism.inside(batch.problem)
    grid = mechanism.on_grid(x[:, None], bits)[0]
    weights = decay(mechanism.t(batch.problem), 20, bits)
    total, size = trimmed_sum(grid, 20, 2**bits, weights, inside)
    step = 40.0 * reach / 2**bits / 60
    noise = np.abs((found + 20.0 * reach) / step - total)
    assert np.median(noise) / (
        size * mechanism.scale(batch.problem) * math.log(2)
    ) == pytest.approx(1, abs=0.08)


# --- aggregated functions ----------------------------------------------------------------------


@pytest.mark.parametrize("small", [False, True])
@pytest.mark.parametrize("storage", ["dense", "csr"])
def test_parts_are_a_deal_of_the_valid_rows(
    storage: str, small: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    if small:
        monkeypatch.setattr(partitions, "BLOCK_ROWS", 7)
        monkeypatch.setattr("privtail.trusted.smooth.questions.KEPT_BYTES", 100)
    X, y = records(50)
    X[3, 1], y[9] = math.nan, math.inf
    seen = []

    def function(x: Any, t: Any) -> Any:
        assert not x.flags.writeable
        assert not t.flags.writeable
        seen.append(np.column_stack([x, t]))
        return x.mean(axis=0)

    mechanism = aggregated()
    batch = opened(mechanism, sparse.csr_matrix(X) if storage == "csr" else X, y, size=2)
    found = aggregate(batch, function, np.zeros(2), mechanism)
    assert len(seen) == 7
    assert max(map(len, seen)) - min(map(len, seen)) <= 3
    valid = np.delete(np.column_stack([X, y]), [3, 9], axis=0)
    assert sorted(map(tuple, np.concatenate(seen))) == sorted(map(tuple, valid))
    means = np.array([part[:, :2].mean(axis=0) for part in seen])
    apart = np.sort(np.linalg.norm(means[:, None] - means[None], axis=2), axis=1)
    assert found == pytest.approx(means[np.argmin(apart[:, 4])], abs=1e-6)


def test_a_function_of_records_without_a_target_in_one_dimension() -> None:
    X, _ = records(70, 1)
    mechanism = aggregated()
    found = aggregate(opened(mechanism, X, size=1), lambda x: float(np.median(x)), 0.0, mechanism)
    assert found.shape == ()
    assert abs(float(found)) < 1


def raises(x: Any) -> Any:
    raise ValueError(f"a secret: {x[0, 0]}")


def leaves(x: Any) -> Any:
    raise SystemExit(int(x[0, 0]))


def writes(x: Any) -> Any:
    x[:] = 0
    return x[0]


def interrupts(x: Any) -> Any:
    raise KeyboardInterrupt


FAILING = {
    "raises": raises,
    "interrupts": interrupts,
    "leaves": leaves,
    "writes": writes,
    "text": lambda x: "secret",
    "none": lambda x: None,
    "complex": lambda x: np.array([1j, 2.0]),
    "ragged": lambda x: [[1.0], [2.0, 3.0]],
    "short": lambda x: x[0, :1],
    "long": lambda x: x,
    "nan": lambda x: [math.nan, 0.0],
    "infinite": lambda x: [0.0, -math.inf],
    "divides": lambda x: np.zeros(2) / 0,
    "integers": lambda x: [10**400, 0],
}


@pytest.mark.parametrize("name", FAILING)
def test_a_function_that_fails_says_the_fallback(name: str, capsys: Any) -> None:
    X, _ = records()
    mechanism, fallback = aggregated(), np.array([0.25, -0.5])
    found = aggregate(opened(mechanism, X, size=2), FAILING[name], fallback, mechanism)
    assert found == pytest.approx(fallback)
    assert capsys.readouterr() == ("", "")


@pytest.mark.parametrize("value", HOSTILE)
def test_one_record_moves_one_point(value: float, monkeypatch: pytest.MonkeyPatch) -> None:
    points: list[np.ndarray] = []
    monkeypatch.setattr(
        SampleAndAggregate, "release", lambda self, p, f, s: points.append(p.copy()) or f
    )
    X, _ = records(40)
    other = X.copy()
    other[7, 0] = value
    mechanism = aggregated(4.0)
    for a in (X, other):
        batch = opened(mechanism, a, size=2, budget=Budget(500.0, 1e-5))
        aggregate(batch, lambda x: x.mean(axis=0), np.zeros(2), mechanism)
    assert (points[0] != points[1]).any(axis=1).sum() <= 1
    (c, s), (d, t) = (centre_of_attention(p, 0.5) for p in points)
    assert np.linalg.norm(c - d) <= min(s, t)
    assert abs(math.log(s / t)) <= 0.5


# --- the right to ask --------------------------------------------------------------------------


@pytest.mark.parametrize("sampling", [PoissonBatches(0.5), DisjointParts(2)])
def test_only_everyone_may_be_asked(sampling: Any) -> None:
    X, _ = records()
    for mechanism in (trimmed_mean(), aggregated()):
        curator = Curator(X, budget=Budget(math.inf), noise="simulated")
        event = mechanism.event(curator.problem, 2)
        curator.open((Round(events=(event,), sampling=sampling),))
        (batch,) = curator.rounds(sampling, 1)
        with pytest.raises(InvalidInput, match="Everyone"):
            ask(batch, mechanism)


def test_a_mechanism_opens_its_own_question_only() -> None:
    X, _ = records()
    trimmed = trimmed_mean()
    batch = opened(trimmed, X, size=2)
    assert not set(SMOOTH_MECHANISMS) & set(MECHANISMS)
    with pytest.raises(IncompatibleParts):
        batch.means(ClippedMean(1.0)).release(trimmed)
    with pytest.raises(IncompatibleParts):
        trimmed_means(batch, GaussianNoise(1.0))
    with pytest.raises(IncompatibleParts):
        aggregate(batch, lambda x: x[0], np.zeros(2), trimmed)

    class Cheaper(TrimmedMean):
        def scale(self, problem: Any) -> float:
            return 0.0

    with pytest.raises(IncompatibleParts):
        trimmed_means(batch, Cheaper(multiplier=1.0, trim=5, low=-3.0, high=3.0))
    for point in (np.array([math.nan, 0.0]), np.zeros(0)):
        with pytest.raises(InvalidInput, match="fallback"):
            aggregate(batch, lambda x: x[0], point, aggregated())


def test_a_release_must_be_the_planned_one_and_only_once() -> None:
    X, _ = records()
    planned = trimmed_mean(5.0)
    for other in (
        trimmed_mean(4.9), trimmed_mean(5.0, smoothness=0.2), trimmed_mean(5.0, smoothness=0.05)
    ):  # fmt: skip
        batch = opened(planned, X, size=2, budget=Budget(50.0, 1e-3))
        with pytest.raises(NotPlanned):
            trimmed_means(batch, other)
    batch = opened(planned, X, size=2, budget=Budget(50.0, 1e-3))
    trimmed_means(batch, planned)
    with pytest.raises(NotPlanned):
        trimmed_means(batch, planned)
    planned = aggregated(5.0)
    for change in ({"multiplier": 4.0}, {"smoothness": 0.6}, {"delta": 1e-7}):
        batch = opened(planned, X, size=2, budget=Budget(500.0, 1e-5))
        with pytest.raises(NotPlanned):
            aggregate(
                batch, lambda x: x[0], np.zeros(2), aggregated(**({"multiplier": 5.0} | change))
            )


# --- statements and ledgers --------------------------------------------------------------------


def statement_of(mechanism: Any) -> Statement:
    X, _ = records(200)
    curator = Curator(X, budget=Budget(30.0, 1e-4))
    curator.open((Round(events=(mechanism.event(curator.problem, 2),)),))
    ask(curator.everyone(), mechanism)
    return state(curator)


@pytest.mark.parametrize(
    "mechanism", [trimmed_mean(0.9), aggregated(5.0, blocks=151)], ids=["trimmed", "aggregated"]
)
def test_a_statement_is_verified_from_its_events(mechanism: Any) -> None:
    statement = statement_of(mechanism)
    assert statement.private
    page = statement.to_text()
    assert "× S" in page
    assert "exact: continuous noise, correctly rounded" in " ".join(page.split())
    content = json.loads(json.dumps(statement.to_json()))
    assert Statement.from_json(content) == statement
    assert verify(content).ok
    event = content["plan"][0]["events"][0]
    for name, factor in (("scale", 0.5), ("smoothness", 3.0), ("spread", 0.4)):
        lie = json.loads(json.dumps(content))
        lie["plan"][0]["events"][0][name] = event[name] * factor
        assert verify(lie).ok == (event[name] == 0), name
    for name, value in (
        ("spread", math.nan), ("smoothness", -1.0), ("radius", 0.5), ("law", "gaussian"),
        ("delta", 1.0), ("diameter", 2.0),
    ):  # fmt: skip
        lie = json.loads(json.dumps(content))
        lie["plan"][0]["events"][0][name] = value
        assert not verify(lie).ok, name
    if isinstance(mechanism, SampleAndAggregate):
        assert "depends on its part alone" in page


@pytest.mark.usefixtures("simulated_is_booked")
@pytest.mark.parametrize("composition", ["basic", "zcdp", "gdp"])
def test_ledgers_charge_what_they_have_a_theorem_for(composition: Any, tmp_path: Any) -> None:
    X, _ = records(200)
    ledger = Ledger(
        os.fspath(tmp_path / "budget.jsonl"), epsilon=9.0, delta=1e-4, composition=composition
    )

    def charge(mechanism: Any, size: int) -> None:
        curator = Curator(X, budget=Budget(2.0, 2e-6), ledger=ledger, noise="simulated")
        curator.open((Round(events=(mechanism.event(curator.problem, size),)),))

    if composition == "gdp":
        with pytest.raises(Exception, match=r"mu|Gaussian"):
            charge(trimmed_mean(10.0, trim=20), 2)
        return
    charge(trimmed_mean(10.0, trim=20), 2)
    charge(aggregated(12.0, blocks=151, smoothness=0.01, delta=1e-7), 1)
    first, second = ledger.entries()
    assert first.rho == pytest.approx(1 / 100)
    assert first.slack == 0
    assert second.slack == pytest.approx(1e-7 if composition == "zcdp" else 0.0, rel=1e-9)
    if composition == "zcdp":
        with pytest.raises(Exception, match="slack"):
            charge(aggregated(12.0, blocks=151, smoothness=0.01, delta=1.9e-6), 1)


# --- persons -----------------------------------------------------------------------------------


def test_several_rows_of_a_person_cost_the_square_of_their_number() -> None:
    """The same multiplier costs the same; the noise is larger, and t smaller, by max_rows."""
    mechanism = trimmed_mean(3.0)
    one, four = (Problem(n=200, d=2, max_rows=m) for m in (1, 4))
    bills = [cost((Round(events=(mechanism.event(p, 2),)),), "replace_one") for p in (one, four)]
    assert bills[1].rho == pytest.approx(bills[0].rho)
    assert mechanism.scale(four) == pytest.approx(4 * mechanism.scale(one))
    assert mechanism.t(four) == pytest.approx(mechanism.t(one) / 4)
    row = replace(mechanism.event(four, 2), radius=1.0, diameter=1.0)
    each = cost((Round(events=(row,)),), "replace_one").rho
    assert bills[1].rho == pytest.approx(16 * each)
    with pytest.raises(InvalidInput, match="max_rows=1"):
        aggregated(3.0).event(four, 1)


def test_rows_that_do_not_count_are_not_read() -> None:
    X, _ = records(40, 1)
    X += 1.0
    groups = np.repeat(np.arange(10), 4)
    mechanism = trimmed_mean(trim=0)
    batch = opened(mechanism, X, size=1, groups=groups, max_rows=2)
    (found,) = trimmed_means(batch, mechanism)
    assert abs(found - np.clip(X, -3, 3).mean() / 2) < 0.5
    seen: list[np.ndarray] = []
    single = aggregated()
    batch = opened(single, X, size=1, groups=groups, max_rows=1)
    aggregate(batch, lambda x: seen.append(x.copy()) or x.mean(), 0.0, single)
    rows = np.concatenate(seen)[:, 0]
    assert len(rows) == 10
    owners = [groups[np.flatnonzero(X[:, 0] == v)[0]] for v in rows]
    assert sorted(owners) == list(range(10))


def test_exact_noise_of_both() -> None:
    """Slow samplers, few draws: a release is finite, differs, and lies on the public grid."""
    X, _ = records(200)
    for mechanism in (trimmed_mean(2.0), aggregated(6.0, blocks=31)):
        found = []
        for _ in range(2):
            batch = opened(mechanism, X, size=2, budget=Budget(500.0, 1e-4), noise="exact")
            if isinstance(mechanism, TrimmedMean):
                found.append(trimmed_means(batch, mechanism))
                steps = (found[-1] + 3.0) / (6.0 / 2**batch.problem.bits / 190)
            else:
                found.append(aggregate(batch, lambda x: x.mean(axis=0), np.zeros(2), mechanism))
                steps = found[-1] / (10.0 / 2**29)
            assert np.isfinite(found[-1]).all()
            assert np.abs(steps - np.rint(steps)).max() < 1e-2
        assert (found[0] != found[1]).all()
