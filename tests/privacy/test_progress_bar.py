"""The bar of a notebook, and what Ctrl-C says of a ledger."""

from __future__ import annotations

import sys
from types import SimpleNamespace
from typing import ClassVar

import numpy as np
import pytest

from privtail import Ledger, private_mean, progress_bar
from privtail.linear_model import DPRidge
from privtail.progress import report, watching

X, Y = np.ones((50, 2)), np.arange(50.0)
OPTIONS = {"noise": "simulated", "random_state": 0}


class Tqdm:
    """Stands for tqdm's bar, and keeps what it was told."""

    made: ClassVar[list[Tqdm]] = []

    def __init__(self, *, total, desc, unit):
        self.total, self.desc, self.unit, self.n, self.closed = total, desc, unit, 0, False
        self.made.append(self)

    def set_postfix_str(self, text, *, refresh):
        self.stage = text

    def update(self, n):
        self.n += n

    def close(self):
        self.closed = True


def test_every_fit_has_a_bar_of_tqdm(monkeypatch):
    monkeypatch.setitem(sys.modules, "tqdm", SimpleNamespace())
    monkeypatch.setitem(sys.modules, "tqdm.auto", SimpleNamespace(tqdm=Tqdm))
    monkeypatch.setattr(Tqdm, "made", [])
    DPRidge(verbose=1, **OPTIONS).fit(X, Y)
    with progress_bar("means"):
        private_mean(Y, epsilon=1.0, **OPTIONS)
        private_mean(Y, epsilon=1.0, **OPTIONS)
    assert [bar.desc for bar in Tqdm.made] == ["DPRidge", "means", "means"]
    assert all(bar.n == bar.total > 0 and bar.closed for bar in Tqdm.made)


def test_without_tqdm_there_are_lines_with_the_time_left(monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, "tqdm.auto", None)
    with progress_bar("fit"):
        for done in (1, 2, 3):
            report(done, 3, "descent")
    assert capsys.readouterr().err.splitlines() == [
        "fit: 1 of 3 rounds (descent)",
        "fit: 2 of 3 rounds (descent), 0 seconds left",
        "fit: 3 of 3 rounds (descent)",
    ]


def interrupt(*_):
    raise KeyboardInterrupt


@pytest.mark.parametrize("fit", [
    lambda ledger: DPRidge(ledger=ledger).fit(X, Y),
    lambda ledger: private_mean(Y, epsilon=0.5, ledger=ledger),
])  # fmt: skip
def test_an_interrupt_says_what_the_ledger_was_charged(fit, tmp_path):
    ledger = Ledger(tmp_path / "budget.jsonl", epsilon=3.0, delta=1e-5)
    with watching(interrupt), pytest.raises(KeyboardInterrupt) as caught:
        fit(ledger)
    (entry,) = ledger.entries()
    (note,) = caught.value.__notes__
    assert f"was charged ε = {entry.epsilon:.6g}, δ = {entry.delta:.6g}" in note


def test_an_interrupt_before_the_charge_says_that_nothing_was_charged(monkeypatch):
    ledger = Ledger(epsilon=3.0, delta=1e-5)
    monkeypatch.setattr(DPRidge, "_curate", interrupt)
    with pytest.raises(KeyboardInterrupt) as caught:
        DPRidge(ledger=ledger).fit(X, Y)
    assert caught.value.__notes__ == ["The ledger was not charged."]
