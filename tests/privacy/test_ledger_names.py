"""Ledgers that know analysts, purposes and the data set: who may charge, and how much."""

from __future__ import annotations

import json
import pickle

import numpy as np
import pytest

from privtail import Ledger, evaluate
from privtail.errors import BudgetExceeded, InvalidInput
from privtail.linear_model import DPLinearRegression
from privtail.trusted.events import Event, Round, plan_to_json

X = np.arange(500.0)
TERMS = {"epsilon": 2.0, "delta": 1e-4, "analysts": {"ann": 1.0, "bob": 0.5}, "data_set": "claims"}


PLAN = plan_to_json(
    (
        Round(
            events=(Event(law="gaussian", scale=2.0**30, radius=1.0, diameter=2.0, coordinates=5),),
            times=3,
        ),
    )
)


def spend(ledger, epsilon):
    """A plan of exactly this epsilon, of mu = epsilon / 5."""
    mu = epsilon / 5
    ledger.reserve(
        label="a plan", epsilon=epsilon, delta=1e-6, neighbours="replace_one", plan=PLAN, mu=mu,
        rho=mu**2 / 2,
    )  # fmt: skip


@pytest.fixture(params=["memory", "file"])
def ledger(request, tmp_path):
    path = () if request.param == "memory" else (tmp_path / "budget.jsonl",)
    return Ledger(*path, **TERMS)


def test_entries_carry_who_what_for_and_of_what(ledger):
    own = ledger.by("ann", purpose="tariff 2027", data_set="claims")
    spend(own, 0.25)
    model = DPLinearRegression(epsilon=0.25, ledger=own.by(purpose="inf")).fit(X[:, None], X)
    place = "a ledger in memory" if ledger.path is None else "'budget.jsonl'"
    assert model.privacy_.ledger == (
        f"entry 2 of {place}, data set 'claims', analyst 'ann', purpose 'inf'"
    )
    assert DPLinearRegression(epsilon=0.25).fit(X[:, None], X).privacy_.ledger == ""
    first, second = ledger.entries()
    assert (first.analyst, first.purpose, first.data_set) == ("ann", "tariff 2027", "claims")
    assert (second.analyst, second.purpose) == ("ann", "inf"), "a word, not a number"
    for word in ("claims", "ann", "tariff 2027", "purpose"):
        assert word in str(ledger)
    assert ledger.spent == own.spent
    assert ledger.spent[0] == pytest.approx(0.5, abs=1e-5)


def test_a_share_is_a_limit_within_the_total(ledger):
    ann, bob = ledger.by("ann"), ledger.by("bob")
    spend(bob, 0.5)
    with pytest.raises(BudgetExceeded, match=r"'bob'.*0 is left.*owner"):
        spend(bob, 0.1)
    spend(ann, 0.75)
    with pytest.raises(
        BudgetExceeded, match=r"share of 'ann'.*0\.25 is left.*most epsilon=0\.25\."
    ):
        spend(ann, 0.5)
    spend(ann, 0.25)
    assert len(ledger.entries()) == 3


def test_shares_may_be_more_than_the_total_and_that_holds():
    ledger = Ledger(epsilon=1.0, delta=1e-4, analysts={"ann": 0.8, "bob": 0.8})
    spend(ledger.by("ann"), 0.8)
    with pytest.raises(BudgetExceeded):
        spend(ledger.by("bob"), 0.5)
    spend(ledger.by("bob"), 0.2)


@pytest.mark.parametrize("composition", ["basic", "zcdp", "gdp"])
def test_what_remains_is_of_the_share(composition):
    """An evaluation has two plans, and asks before the first whether both can be paid."""
    ledger = Ledger(epsilon=3.0, delta=1e-4, composition=composition, analysts={"ann": 1.0})
    own = ledger.by("ann")
    alone = Ledger(epsilon=1.0, delta=1e-4, composition=composition)
    assert own.remaining == alone.remaining
    assert ledger.remaining[0] > 2 * own.remaining[0]
    x = np.random.default_rng(0).normal(size=(200, 2))
    model = DPLinearRegression(epsilon=1, noise="simulated", random_state=0).fit(x, x[:, 0])
    with pytest.raises(BudgetExceeded, match="Nothing was charged"):
        evaluate(model, x, x[:, 0], epsilon=1.1, ledger=own)
    assert own.entries() == ()


@pytest.mark.parametrize("composition", ["zcdp", "gdp"])
def test_shares_add_as_the_total_does(composition):
    """Many small plans of a share cost less than their epsilons together."""
    ledger = Ledger(epsilon=2.0, delta=1e-4, composition=composition, analysts={"ann": 1.0})
    own = ledger.by("ann")
    for _ in range(100):
        spend(own, 0.1)
    with pytest.raises(BudgetExceeded, match="'ann'"):
        spend(own, 1.5)
    assert ledger.spent[0] < 1.0


def test_who_is_not_named_or_not_known_is_refused(ledger):
    with pytest.raises(InvalidInput, match="nobody is named"):
        spend(ledger, 0.1)
    with pytest.raises(InvalidInput, match="'eve' is none of them"):
        ledger.by("eve")
    assert ledger.entries() == ()


def test_another_data_set_is_refused(ledger):
    with pytest.raises(InvalidInput, match=r"budget of 'claims'.*'visits'"):
        ledger.by("ann", data_set="visits")
    spend(ledger.by("ann", data_set="claims"), 0.1)
    spend(ledger.by("ann"), 0.1)
    assert [e.data_set for e in ledger.entries()] == ["claims", None]


def test_names_are_one_line_of_text(ledger):
    for odd in ("", "two\nlines", 7):
        with pytest.raises(InvalidInput):
            ledger.by("ann", purpose=odd)
    for odd in ({}, {"ann": 0.0}, {"ann": float("inf")}, {"ann": "1"}, ["ann"]):
        with pytest.raises(InvalidInput):
            Ledger(epsilon=1.0, delta=1e-6, analysts=odd)


def test_a_share_above_the_total_is_refused(tmp_path):
    """It promised an analyst what the ledger would refuse."""
    path = tmp_path / "budget.jsonl"
    for place in (None, path):
        with pytest.raises(
            InvalidInput, match=r"share of 'ann' is epsilon = 2.5, and the total is"
        ):
            Ledger(place, epsilon=2.0, delta=1e-4, analysts={"bob": 2.0, "ann": 2.5})
    assert not path.exists()
    assert Ledger(epsilon=2.0, delta=1e-4, analysts={"ann": 2.0}).terms.analysts == {"ann": 2.0}


def test_a_file_keeps_shares_and_names(tmp_path):
    path = tmp_path / "budget.jsonl"
    own = Ledger(path, **TERMS).by("ann", purpose="tariff")
    spend(own, 0.6)
    again = Ledger(path)
    assert again.terms.analysts == {"ann": 1.0, "bob": 0.5}
    assert again.terms.data_set == "claims"
    with pytest.raises(BudgetExceeded):
        spend(again.by("ann"), 0.6)
    moved = pickle.loads(pickle.dumps(own))  # noqa: S301
    assert dict(moved.names) == {"analyst": "ann", "purpose": "tariff"}
    with pytest.raises(InvalidInput, match="analysts"):
        Ledger(path, analysts={"ann": 5.0})
    with pytest.raises(InvalidInput, match="data_set"):
        Ledger(path, data_set="visits")


def test_a_file_without_names_is_written_as_before(tmp_path):
    path = tmp_path / "budget.jsonl"
    spend(Ledger(path, epsilon=1.0, delta=1e-4), 0.1)
    header, line = map(json.loads, path.read_text().splitlines())
    assert not {"analysts", "data_set"} & header.keys()
    assert not {"analyst", "purpose", "data_set"} & line.keys()


def test_an_altered_name_is_found(tmp_path):
    path = tmp_path / "budget.jsonl"
    spend(Ledger(path, **TERMS).by("ann"), 0.1)
    path.write_text(path.read_text().replace('"analyst": "ann"', '"analyst": "bob"'))
    with pytest.raises(InvalidInput, match="altered"):
        Ledger(path)


def test_nobody_changes_shares_after_the_ledger_was_made(tmp_path):
    given = {"ann": 0.5}
    for path in (None, tmp_path / "budget.jsonl"):
        ledger = Ledger(path, epsilon=2.0, delta=1e-4, analysts=given)
        given["ann"] = 2.0
        with pytest.raises(TypeError):
            ledger.terms.analysts["ann"] = 2.0
        assert ledger.terms.analysts == {"ann": 0.5}
        assert "analysts={'ann': 0.5}" in repr(ledger)
        given["ann"] = 0.5
