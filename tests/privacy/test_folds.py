"""Folds: a record moves no fit of its own fold, and nobody's row but its own."""

from __future__ import annotations

import math
import os
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from privtail import Ledger, PrivateSearchCV, cross_validate, progress
from privtail.errors import BudgetExceeded, InvalidInput, NotPlanned
from privtail.linear_model import DPLinearRegression
from privtail.trusted import folds as folding
from privtail.trusted import row_errors
from privtail.trusted.accountants import cost
from privtail.trusted.accounting.curves import ZeroConcentratedDP
from privtail.trusted.allowance import Allowance
from privtail.trusted.budget import ROW, Budget
from privtail.trusted.curator import Curator
from privtail.trusted.events import Round
from privtail.trusted.folds import Folds
from privtail.trusted.records.persons import Seats
from privtail.trusted.row_errors import FoldedModel, LinearModel, Predicted
from tests.privacy.forks import outcome_of_child, unchecked

ODD = [1e308, -1e308, 5e-324, 0.0, math.nan, math.inf, -math.inf, 3.0]
N, K = 30, 3
ENDLESS = np.array([-np.inf, np.inf])


def dealt(X: Any, y: Any, count: int = K, seed: int = 5, **persons: Any) -> Folds:
    curator = Curator(
        X, y, intercept=True, budget=Budget(1.0, 1e-3), noise="simulated", random_state=seed,
        **persons,
    )  # fmt: skip
    return Folds(curator, X, y, None, count)


def linear(slope: float) -> LinearModel:
    return LinearModel(
        np.full((1, 2), slope), np.zeros(1), np.tile(ENDLESS, (2, 1)), ENDLESS, ENDLESS,
        "identity", None, {},
    )  # fmt: skip


def records() -> tuple[np.ndarray, np.ndarray]:
    chance = np.random.default_rng(2)
    return chance.normal(size=(N, 2)), chance.normal(size=N)


def test_folds_do_not_depend_on_what_a_record_holds() -> None:
    X, y = records()
    folds = dealt(X, y).labels
    assert sorted(np.bincount(folds)) == [10, 10, 10]
    for value in ODD:
        other = X.copy()
        other[7] = value
        assert np.array_equal(dealt(other, y).labels, folds)
    assert not np.array_equal(dealt(X, y, seed=6).labels, folds)


def moved(model: Callable[[np.ndarray], Any]) -> list[int]:
    """Which rows of what is judged move when row 7 is replaced by odd ones."""
    X, y = records()
    folds = dealt(X, y).labels
    judged = Predicted(X, y, model(folds)).errors(0.0, 1.0)._columns
    found: set[int] = set()
    for value in ODD:
        other, target = X.copy(), y.copy()
        other[7], target[7] = value, value
        now = Predicted(other, target, model(folds)).errors(0.0, 1.0)._columns
        differs = ~((judged == now) | (np.isnan(judged) & np.isnan(now)))
        found |= set(np.flatnonzero(differs.any(axis=1)).tolist())
    return sorted(found)


class Centred(FoldedModel):
    """The sabotaged twin: predictions less their mean, which every row moves."""

    def predictions(self, X: Any, labels: int | None) -> Any:
        found = super().predictions(X, labels)
        return np.where(np.isfinite(found), found - np.nanmean(np.clip(found, -9, 9)), np.nan)


def test_a_judged_row_is_a_function_of_its_record_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    models = tuple(map(linear, (1.0, 2.0, 3.0)))
    assert moved(lambda folds: FoldedModel(models, folds)) == [7]
    with pytest.raises(InvalidInput, match="FoldedModel or an OutsideModel"):
        moved(lambda folds: Centred(models, folds))
    monkeypatch.setattr(row_errors, "_own", lambda model: model)
    assert len(moved(lambda folds: Centred(models, folds))) == N


def test_every_row_is_predicted_by_the_model_of_its_own_fold_alone(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    X, y = records()
    folds, honest, predicted = dealt(X, y).labels, LinearModel.predictions, []

    def counted(model: LinearModel, rows: Any, labels: int | None) -> Any:
        predicted.append(len(rows))
        return honest(model, rows, labels)

    monkeypatch.setattr(LinearModel, "predictions", counted)
    found = FoldedModel(tuple(map(linear, (1.0, 2.0, 3.0))), folds).predictions(X, None)
    assert found == pytest.approx(X.sum(axis=1) * (folds + 1.0))
    assert sum(predicted) == len(X)
    with pytest.raises(InvalidInput, match="rows of the folds, not"):
        FoldedModel((linear(1.0),), folds[:3]).predictions(X, None)


def run(folds: Folds, seen: dict[int, Any], rho: float, evaluation: float = 0.0) -> None:
    """One run whose fits, and whose evaluation, spend so much."""

    unit = "row" if folds._curator.unit == ROW else "person"

    def spend(allowance: Allowance, seats: Any, spent: float) -> None:
        allowance.require(seats, exact=True)
        allowance.reserve(
            label="", epsilon=0.0, delta=0.0, neighbours="replace_one", plan=[], rho=spent,
            unit=unit,
        )  # fmt: skip

    def fit(fold: int, X: Any, y: Any, exposure: Any, seats: Any, allowance: Allowance) -> int:
        seen[fold] = np.array(X), np.array(y), seats
        if rho:
            spend(allowance, seats, rho)
        return fold

    def evaluate(model: FoldedModel, seats: Any, allowance: Allowance) -> None:
        seen[K] = model.folds, seats
        spend(allowance, seats, evaluation)

    folds._curator.open((Round(events=(folds.event(8.0),)),))
    folds.run(8.0, fit, lambda fold: linear(1.0), evaluate)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
@pytest.mark.parametrize("checked", [True, False])
@pytest.mark.parametrize("fold", range(K + 1))
def test_a_child_answers_nothing_that_its_parent_has_paid_for(
    fold: int, checked: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A display of progress that forked gave two cross-validations for the price of one."""
    if not checked:
        unchecked(monkeypatch)

    def run_watched(fork: Callable[[], None]) -> None:
        def watch(done: int, planned: int, stage: str) -> None:
            if done == fold:
                fork()

        with progress.watching(watch):
            run(dealt(*records()), {}, rho=1e-4)

    assert outcome_of_child(run_watched) == checked


def test_a_record_is_in_all_fits_but_that_of_its_own_fold() -> None:
    X, y = records()
    for value in ODD:
        other, target = X.copy(), y.copy()
        other[7], target[7] = value, value
        one: dict[int, Any] = {}
        two: dict[int, Any] = {}
        for seen, rows, numbers in ((one, X, y), (two, other, target)):
            run(dealt(rows, numbers), seen, rho=1e-4)
        own = int(dealt(X, y).labels[7])
        for fold in range(K):
            same = np.array_equal(one[fold][0], two[fold][0], equal_nan=True)
            assert same == (fold == own)
            assert len(one[fold][1]) == N - 10


def test_the_parts_add_up_to_the_price() -> None:
    X, y = records()
    folds = dealt(X, y)
    event = folds.event(8.0)
    whole = cost((Round(events=(event,)),), "replace_one")
    assert whole.rho == pytest.approx(1 / 128)
    assert K * Fraction(folds.rho(8.0)) <= Fraction(whole.rho)
    assert whole.epsilon(1e-6) == ZeroConcentratedDP(whole.rho).epsilon(1e-6)
    part = folds.rho(8.0)
    run(dealt(X, y), {}, rho=part, evaluation=part)
    for fits, evaluation in ((part * 1.001, 0.0), (part, part * 1.001)):
        with pytest.raises(BudgetExceeded):
            run(dealt(X, y), {}, rho=fits, evaluation=evaluation)
    with pytest.raises(NotPlanned, match="spent nothing"):
        run(dealt(X, y), {}, rho=0.0)


def test_who_runs_the_folds_cannot_change_them() -> None:
    """Three folds that were called one cost twice what was billed."""
    X, y = records()
    folds = dealt(X, y)
    part, given = folds.rho(8.0), folds.labels
    vars(folds)["count"] = 1
    assert folds.rho(8.0) == part
    given.setflags(write=True)
    given[:] = 0
    assert len(set(folds.labels.tolist())) == K


def test_an_allowance_adds_what_it_admits() -> None:
    allowance = Allowance(0.1, "replace_one", payer=os.getpid())

    def ask(rho: float) -> None:
        allowance.reserve(
            label="", epsilon=1.0, delta=1e-6, neighbours="replace_one", plan=[], rho=rho
        )

    ask(0.06)
    for dear in (0.0401, -1.0, math.nan, math.inf):
        with pytest.raises(BudgetExceeded):
            ask(dear)
    ask(0.04)
    with pytest.raises(BudgetExceeded):
        ask(1e-9)


@pytest.mark.parametrize("value", ODD)
def test_nothing_public_depends_on_a_record(value: float) -> None:
    chance = np.random.default_rng(3)
    X, y = chance.normal(size=(400, 2)), chance.normal(size=400)
    X[11], y[11] = value, value
    found = cross_validate(
        DPLinearRegression(), X, y, epsilon=1e3, cv=2, noise="simulated", random_state=0
    )
    assert len(found) == 5
    assert len(found.models) == 2
    assert all(np.isfinite(model.coef_).all() for model in found.models)


def persons() -> np.ndarray:
    """Ten persons with three rows each, in any order."""
    return np.random.default_rng(4).permutation(np.repeat(np.arange(10.0), 3))


def fits(X: Any, y: Any, ids: np.ndarray, max_rows: int = 2) -> dict[int, Any]:
    """What the fits of a run see, and the evaluation."""
    seen: dict[int, Any] = {}
    run(dealt(X, y, groups=ids, max_rows=max_rows), seen, rho=1e-4, evaluation=1e-4)
    return seen


def missing(seen: dict[int, Any], ids: np.ndarray) -> list[int]:
    """From how many fits each person is missing."""
    there = [set(ids[seen[fold][2].positions]) for fold in range(K)]
    return [sum(person not in one for one in there) for person in np.unique(ids)]


def rows_of_one_person_by_themselves(curator: Any, ids: Any) -> Seats:
    """The sabotaged twin: a row is dealt by its own position, whoever it belongs to."""
    positions = np.intersect1d(curator._kept, ids)
    return Seats(
        n=len(ids), rows=curator.problem.n, max_rows=curator.problem.max_rows,
        positions=positions, leaders=positions,
    )  # fmt: skip


def test_a_person_is_missing_from_the_fit_of_one_fold(monkeypatch: pytest.MonkeyPatch) -> None:
    X, y = records()
    ids = persons()
    seen = fits(X, y, ids)
    assert missing(seen, ids) == [1] * 10
    folds, everybody = seen[K]
    assert np.bincount(ids[everybody.positions].astype(int)).tolist() == [2] * 10
    for fold in range(K):
        inside = np.setdiff1d(everybody.positions, seen[fold][2].positions)
        assert (folds[inside] == fold).all()
        assert seen[fold][2].n == N - 10
    monkeypatch.setattr(folding, "seats_of", rows_of_one_person_by_themselves)
    assert missing(fits(X, y, ids), ids) != [1] * 10


@pytest.mark.parametrize("gone", [False, True])
def test_a_person_moves_no_other_person(gone: bool) -> None:
    """Under replace-one the rows of person 4 are others; under zero-out they are nobody's."""
    X, y = records()
    ids = persons()
    own = ids == 4
    one = fits(X, y, ids)
    for value in ODD:
        other, target = X.copy(), y.copy()
        other[own], target[own] = value, value
        two = fits(other, target, np.where(own, math.nan if gone else 11.0, ids))
        for fold in range(K):
            mine = own[one[fold][2].positions]
            assert gone or np.array_equal(one[fold][2].positions, two[fold][2].positions)
            kept = two[fold][2].positions
            assert np.array_equal(one[fold][2].positions[~mine], kept[~own[kept]])
            assert one[fold][2].n == two[fold][2].n
        assert np.array_equal(one[K][0][~own], two[K][0][~own])


def test_rows_cost_a_person_as_many_as_count() -> None:
    X, y = records()
    whole = {"groups": persons(), "max_rows": 2}
    part = dealt(X, y, **whole).rho(8.0)
    run(dealt(X, y, **whole), {}, rho=part, evaluation=part)
    with pytest.raises(BudgetExceeded):
        run(dealt(X, y, **whole), {}, rho=part * 1.001)
    allowance = Allowance(part, "replace_one", fits(X, y, persons())[0][2], payer=os.getpid())
    with pytest.raises(BudgetExceeded):
        allowance.reserve(
            label="", epsilon=0.0, delta=0.0, neighbours="replace_one", plan=[], rho=part / 2
        )


@pytest.mark.parametrize("kind", ["array", "chunks", "table", "batch", "pandas", "frame"])
@pytest.mark.parametrize("grouped", [False, True])
def test_what_gives_no_rows_is_refused_before_the_charge(kind: str, grouped: bool) -> None:
    """Arrow takes no rows of a view: a search, and folds, paid for that and released nothing."""
    pa, pd = pytest.importorskip("pyarrow"), pytest.importorskip("pandas")
    words = pa.array(["a", "b"] * 30, pa.string_view())
    column = pd.Series(pd.arrays.ArrowExtensionArray(pa.chunked_array([words])))
    held = {
        "array": words, "chunks": pa.chunked_array([words]), "table": pa.table({"k": words}),
        "batch": pa.record_batch({"k": words}), "pandas": column,
        "frame": pd.DataFrame({"k": column}),
    }[kind]  # fmt: skip
    X = held if hasattr(held, "columns") else {"k": held}
    ledger, y, ids = Ledger(epsilon=2.0, delta=1e-5), np.arange(60.0), np.arange(60)
    model = DPLinearRegression(categories={"k": ["a", "b"]}, max_rows=1 if grouped else None)
    rest: dict[str, Any] = {"epsilon": 1.0, "ledger": ledger}
    with pytest.raises(InvalidInput, match="gives no rows at positions"):
        cross_validate(model, X, y, cv=2, groups=ids if grouped else None, **rest)
    search = PrivateSearchCV(
        model, {"fit_intercept": [True]}, trials=1, max_rows=model.max_rows, **rest
    )
    if grouped:  # a search deals persons, all of whom read one table
        search.fit(X, y, ids)
    else:
        with pytest.raises(InvalidInput, match="gives no rows at positions"):
            search.fit(X, y)
    assert len(ledger.entries()) == grouped


def test_one_row_is_refused_with_advice_that_holds() -> None:
    """One row was told to take one fold, which is refused."""
    with pytest.raises(InvalidInput, match="at least two rows"):
        cross_validate(DPLinearRegression(), np.ones((1, 1)), np.ones(1), epsilon=1.0)
