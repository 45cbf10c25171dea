"""Nothing is released that was not charged, and nothing is charged beyond the budget."""

from __future__ import annotations

import copy
import fcntl
import hashlib
import itertools
import json
import math
import os
import pickle
import random
import re
import subprocess
import sys
import threading
import time
from fractions import Fraction
from functools import reduce
from operator import add
from pathlib import Path
from typing import Any

import mpmath
import numpy as np
import pytest

import privtail
from privtail.errors import BudgetExceeded, InvalidInput, UnsupportedAccounting
from privtail.ledger_texts import digits_above, digits_below
from privtail.ledgers import telling_charge
from privtail.linear_model import DPLogisticRegression, DPMean, DPRidge
from privtail.mean import private_mean
from privtail.robust_means import ClampedMean
from privtail.trusted import journal as module
from privtail.trusted.budget import Budget
from privtail.trusted.curator import Curator
from privtail.trusted.events import Event, Plan, Round, plan_to_json
from privtail.trusted.ledger import Ledger
from privtail.trusted.mechanisms.noise import GaussianNoise

PLAN = plan_to_json(
    (
        Round(
            events=(Event(law="gaussian", scale=2.0**30, radius=1.0, diameter=2.0, coordinates=5),),
            times=3,
        ),
    )
)


def reserve(ledger: Ledger, epsilon: float = 0.1, delta: float = 0.0, **changes: Any) -> Any:
    arguments: dict[str, Any] = {
        "label": "DPLogisticRegression",
        "epsilon": epsilon,
        "delta": delta,
        "neighbours": "replace_one",
        "plan": PLAN,
    }
    return ledger.reserve(**(arguments | changes))


def spawn(code: str, *arguments: object) -> subprocess.Popen[str]:
    """Start a Python that sees the same privtail."""
    environment = os.environ | {"PYTHONPATH": str(Path(privtail.__file__).parents[1])}
    return subprocess.Popen(
        [sys.executable, "-c", code, *map(str, arguments)],
        env=environment,
        stdout=subprocess.PIPE,
        text=True,
    )


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "budget.jsonl"


@pytest.fixture
def no_fsync(monkeypatch: pytest.MonkeyPatch) -> None:
    """For tests of what is written, not of when."""
    monkeypatch.setattr(os, "fsync", lambda fd: None)


# --- sums -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("where", ["memory", "file"])
def test_ten_tenths_fill_one_exactly(where, path):
    ledger = Ledger(path if where == "file" else None, epsilon=1.0, delta=1e-5)
    for _ in range(10):
        reserve(ledger, 0.1, 1e-6)
    assert ledger.spent == (1.0, 1e-5)
    assert ledger.remaining == (0.0, 0.0)
    assert reduce(add, [0.1] * 10) != 1.0, "doubles alone would not do this"
    with pytest.raises(BudgetExceeded, match="Nothing can be released any more"):
        reserve(ledger, 5e-324)
    assert len(ledger.entries()) == 10


def test_what_is_left_can_be_typed_and_then_nothing_is_left():
    ledger = Ledger(epsilon=0.3, delta=0.0)
    reserve(ledger, 0.1)
    assert ledger.remaining == (0.2, 0.0)
    reserve(ledger, ledger.remaining[0])
    assert ledger.spent == (0.3, 0.0)
    assert 0.1 + 0.2 > 0.3


def test_remaining_never_overstates(rng):
    for _ in range(200):
        ledger = Ledger(epsilon=float(rng.uniform(0.1, 10)), delta=1e-5)
        for epsilon in rng.uniform(0, 0.02, size=5):
            reserve(ledger, epsilon, 1e-7)
        exact = sum(Fraction(repr(e.epsilon)) for e in ledger.entries())
        total = Fraction(repr(ledger.terms.epsilon))
        assert exact <= Fraction(repr(ledger.spent[0]))
        assert exact + Fraction(repr(ledger.remaining[0])) <= total
        reserve(ledger, *ledger.remaining)
        with pytest.raises(BudgetExceeded):
            reserve(ledger, 1e-12)


def test_the_refusal_says_what_to_type():
    ledger = Ledger(epsilon=1.0, delta=1e-6)
    reserve(ledger, 0.7, 4e-7)
    with pytest.raises(BudgetExceeded) as refusal:
        reserve(ledger, 0.5, 1e-6)
    text = str(refusal.value)
    for part in (
        "DPLogisticRegression asks for epsilon=0.5, delta=1e-06",
        "has epsilon=0.3, delta=6e-07 left",
        "No row was read",
        "Ask for at most epsilon=0.3, delta=6e-07",
    ):
        assert part in text
    reserve(ledger, 0.3, 6e-7)


def test_delta_alone_can_be_too_much():
    ledger = Ledger(epsilon=10.0, delta=1e-6)
    reserve(ledger, 1.0, 1e-6)
    with pytest.raises(BudgetExceeded, match=r"epsilon=9, delta=0 "):
        reserve(ledger, 1.0, 1e-9)


# --- the other two filters ------------------------------------------------------------------------


def gaussian(mu: float) -> Plan:
    scale = 2.0**30
    event = Event(
        law="gaussian", scale=scale, radius=mu * scale / 2, diameter=mu * scale, coordinates=5
    )
    return (Round(events=(event,)),)


def charge(ledger: Ledger, plan: Plan, delta: float = 1e-6, cost: Any = None) -> Any:
    from privtail.trusted.accountants import cost as price

    bill = cost or price(plan, "replace_one")
    return ledger.reserve(
        label="fit",
        epsilon=bill.epsilon(delta),
        delta=delta,
        mu=bill.mu,
        rho=bill.rho,
        neighbours="replace_one",
        plan=plan_to_json(plan),
    )


@pytest.mark.parametrize("composition", ["zcdp", "gdp"])
@pytest.mark.parametrize(("epsilon", "delta"), [(1.0, 1e-6), (0.1, 1e-9), (8.0, 1e-5)])
def test_filters_stop_at_the_accountants_number(composition, epsilon, delta):
    from privtail.trusted.accountants import cost
    from privtail.trusted.accounting.curves import GaussianDP, ZeroConcentratedDP

    def together(times):
        """What so many fits cost."""
        if composition == "zcdp":
            return ZeroConcentratedDP(times * bill.rho).epsilon
        return GaussianDP(math.sqrt(times) * bill.mu).epsilon

    ledger = Ledger(epsilon=epsilon, delta=delta, composition=composition)
    plan, admitted = gaussian(epsilon / 40), 0
    bill = cost(plan, "replace_one")
    while True:
        try:
            charge(ledger, plan, delta, bill)
        except BudgetExceeded as refusal:
            assert "with Gaussian noise" in str(refusal)  # noqa: PT017
            break
        admitted += 1
    assert together(admitted)(delta) <= epsilon
    # The hundredth of delta kept for slack costs at most one fit in a hundred.
    assert together(admitted + 1)(delta * 0.98) > epsilon
    assert ledger.spent[0] <= epsilon
    assert admitted > epsilon / cost(plan, "replace_one").epsilon(delta), "better than basic"


@pytest.mark.parametrize("composition", ["zcdp", "gdp"])
def test_what_the_filters_leave_can_be_typed(composition):
    from privtail.calibration import calibrate
    from privtail.trusted.budget import Budget

    ledger = Ledger(epsilon=1.0, delta=1e-6, composition=composition)
    for _ in range(3):
        charge(ledger, gaussian(0.1))
    left = ledger.remaining
    assert 0 < left[0] < 1
    multiplier = calibrate(lambda m: gaussian(1 / m), Budget(*left))
    charge(ledger, gaussian(1 / multiplier))
    with pytest.raises(BudgetExceeded):
        charge(ledger, gaussian(0.01))


@pytest.mark.parametrize(("composition", "missing"), [("zcdp", "rho"), ("gdp", "mu")])
def test_a_plan_without_the_theorem_is_refused(composition, missing):
    ledger = Ledger(epsilon=1.0, delta=1e-6, composition=composition)
    with pytest.raises(UnsupportedAccounting, match=f"no {missing}"):
        reserve(ledger, **({"rho": 0.1, "mu": 0.1} | {missing: None}))


@pytest.mark.parametrize(
    ("composition", "rho", "known"),
    [("zcdp", None, "basic"), ("gdp", None, "basic"), ("gdp", 1e-3, "zcdp")],
)
def test_the_ledger_that_a_refusal_names_takes_the_plan(composition, rho, known):
    with pytest.raises(UnsupportedAccounting, match=f"composition='{known}'") as refused:
        reserve(Ledger(epsilon=1.0, delta=1e-6, composition=composition), mu=None, rho=rho)
    assert refused.value.cli.endswith(f"--composition {known}.")
    reserve(Ledger(epsilon=1.0, delta=1e-6, composition=known), mu=None, rho=rho)


def test_slack_has_a_limit_of_its_own():
    labels = Event(
        law="gaussian_labels", scale=2.0**36, radius=2.0**30, diameter=2.0**30, coordinates=2,
        delta=0.4 * 1e-8,
    )  # fmt: skip
    plan = plan_to_json((Round(events=(labels,)),))
    for composition in ("zcdp", "gdp"):
        ledger = Ledger(epsilon=1.0, delta=1e-6, composition=composition)
        for _ in range(2):
            reserve(ledger, mu=1e-2, rho=1e-4, plan=plan)
        with pytest.raises(BudgetExceeded, match="Declare labels"):
            reserve(ledger, mu=1e-2, rho=1e-4, plan=plan)
        reserve(ledger, mu=1e-2, rho=1e-4)


# --- what does not fit ----------------------------------------------------------------------------


def test_neighbours_do_not_mix():
    with pytest.raises(UnsupportedAccounting, match="neighbours='replace_one'"):
        reserve(Ledger(epsilon=1.0, delta=0.0), neighbours="zero_out")


@pytest.mark.parametrize(("first", "second"), [("row", "person"), ("person", "row")])
def test_rows_and_persons_do_not_mix(path, first, second):
    for ledger in (Ledger(epsilon=1.0, delta=0.0), Ledger(path, epsilon=1.0, delta=0.0)):
        reserve(ledger, unit=first)
        with pytest.raises(UnsupportedAccounting, match=f"one {first} loses"):
            reserve(ledger, unit=second)
        reserve(ledger, unit=first)
        assert [e.unit for e in ledger.entries()] == [first, first]
    with pytest.raises(InvalidInput, match="unit"):
        reserve(Ledger(epsilon=1.0, delta=0.0), unit="family")


@pytest.mark.parametrize("composition", ["basic", "zcdp", "gdp"])
def test_no_privacy_on_a_private_ledger(composition):
    ledger = Ledger(epsilon=1.0, delta=1e-6, composition=composition)
    with pytest.raises(BudgetExceeded, match=r"epsilon=float\('inf'\)"):
        reserve(ledger, math.inf)
    assert ledger.entries() == ()


def test_a_ledger_for_no_privacy_only_counts(path):
    ledger = Ledger(path, epsilon=math.inf)
    reserve(ledger, math.inf, mu=math.inf)
    reserve(ledger, 1.0)
    assert Ledger(path).terms.epsilon == math.inf
    assert ledger.entries()[0].mu == math.inf
    assert ledger.spent[0] == ledger.remaining[0] == math.inf


@pytest.mark.parametrize(
    "changes",
    [
        {"epsilon": math.nan},
        {"epsilon": -1.0},
        {"epsilon": "0.1"},
        {"epsilon": True},
        {"epsilon": None},
        {"epsilon": 10**400},
        {"mu": 10**400},
        {"delta": 1.0},
        {"delta": -1e-9},
        {"mu": math.nan},
        {"rho": -0.1},
        {"label": "two\nlines"},
        {"label": "\x1b[2Jgone"},
        {"label": 3},
        {"plan": [{"events": 1}]},
    ],
    ids=lambda changes: str(changes)[:40],
)
def test_numbers_that_cannot_be_charged(changes):
    ledger = Ledger(epsilon=1.0, delta=1e-6)
    with pytest.raises(InvalidInput):
        reserve(ledger, **changes)
    assert ledger.entries() == ()


@pytest.mark.parametrize(
    "terms",
    [
        {},
        {"epsilon": 0.0},
        {"epsilon": math.nan},
        {"epsilon": "1"},
        {"epsilon": 10**400},
        {"epsilon": 1.0, "delta": 10**400},
        {"epsilon": 1.0, "delta": 1.0},
        {"epsilon": 1.0, "neighbours": "add_one"},
        {"epsilon": 1.0, "composition": "pld"},
        {"epsilon": 1.0, "composition": "gdp"},
        {"epsilon": math.inf, "delta": 1e-6, "composition": "zcdp"},
        {"epsilon": 1e200, "delta": 1e-6, "composition": "gdp"},
        {"epsilon": 1e154, "delta": 1e-6, "composition": "zcdp"},
        {"epsilon": 1.0, "delta": 1e-320, "composition": "zcdp"},
        {"epsilon": 1.0, "delta": 1e-320, "composition": "gdp"},
    ],
    ids=lambda terms: str(terms)[:40],
)
def test_budgets_that_cannot_be_promised(terms, path):
    for where in (None, path):
        with pytest.raises(InvalidInput):
            Ledger(where, **terms)
    assert not path.exists()


@pytest.mark.parametrize("composition", ["zcdp", "gdp"])
def test_the_largest_budget_has_limits(composition):
    """Of a larger one they raised a ValueError of mathematics, when the first plan was charged."""
    ledger = Ledger(epsilon=1e100, delta=1e-6, composition=composition)
    assert ledger.remaining[0] == pytest.approx(1e100, rel=1e-3)


@pytest.mark.parametrize("delta", [1e-300, 1e-9, 0.3])
@pytest.mark.parametrize("epsilon", [1e-9, 1e-3, 1.0, 50.0])
def test_both_limits_together_cost_no_more_than_delta(epsilon, delta):
    """Of 1e-320, which has few bits, the part for losses was rounded up: 1.0004 delta in all."""
    squared, slack = Ledger(epsilon=epsilon, delta=delta, composition="gdp").terms.limits
    with mpmath.workdps(400):
        mu = mpmath.sqrt(mpmath.mpf(squared.numerator) / squared.denominator)
        ends = (mpmath.ncdf(side * mu / 2 - epsilon / mu) for side in (1, -1))
        spent = next(ends) - mpmath.exp(epsilon) * next(ends)
        assert spent + mpmath.mpf(slack.numerator) / slack.denominator <= mpmath.mpf(delta)


def test_a_new_ledger_is_asked_about_delta(path):
    """It was 0 without a word, which pays for no fit of Gaussian noise."""
    for where in (None, path):
        with pytest.raises(InvalidInput, match=r"epsilon=2, delta=1e-5; with delta=0"):
            Ledger(where, epsilon=2.0)
    assert not path.exists()
    path.touch()
    with pytest.raises(InvalidInput, match="how much delta"):
        Ledger(path, epsilon=2.0)
    assert Ledger(epsilon=2.0, delta=0).terms.delta == 0
    assert Ledger(path, epsilon=2.0, delta=0).terms.delta == 0


FITS = {
    "ridge": lambda X, **options: DPRidge(**options).fit(X, X[:, 0]),
    "mean": lambda X, **options: DPMean(**options).fit(X),
    "logistic": lambda X, **options: DPLogisticRegression(**options).fit(X, X[:, 0] > 0),
    "private_mean": private_mean,
}


@pytest.mark.parametrize("fit", FITS.values(), ids=list(FITS))
def test_simulated_noise_is_not_booked_as_private(fit, path):
    """It was charged as if it protected somebody."""
    X = np.random.default_rng(0).normal(size=(500, 2))
    options = {"epsilon": 2.0, "noise": "simulated"}
    for ledger in (Ledger(epsilon=3.0, delta=1e-5), Ledger(path, epsilon=3.0, delta=1e-5)):
        with pytest.raises(InvalidInput, match="ledger=None"):
            fit(X, ledger=ledger, **options)
        assert ledger.entries() == ()
    nothing = Ledger(epsilon=math.inf, delta=1e-3)
    fit(X, ledger=nothing, **options)
    assert len(nothing.entries()) == 1


def test_simulated_noise_without_a_budget_is_not_booked_as_private():
    """A plan of a finite cost was charged, though its noise was seeded and its budget infinite."""
    X, ledger = np.zeros((50, 2)), Ledger(epsilon=100.0, delta=1e-5)
    budget = Budget(math.inf, 1e-6)
    curator = Curator(X, budget=budget, ledger=ledger, noise="simulated", random_state=0)
    answer = curator.problem.means(ClampedMean(1.0))
    with pytest.raises(InvalidInput, match="ledger=None"):
        curator.open((Round(events=(GaussianNoise(5.0).event(answer),)),))
    assert ledger.entries() == ()


# --- files ----------------------------------------------------------------------------------------


def test_the_file_keeps_its_own_budget(path):
    reserve(Ledger(path, epsilon=2.0, delta=1e-6, composition="zcdp"), 0.5, 1e-6, rho=0.01)
    again = Ledger(path)
    assert repr(again) == (
        f"Ledger('{path}', epsilon=2.0, delta=1e-06, neighbours='replace_one', composition='zcdp')"
    )
    assert Ledger(path, epsilon=2.0).terms == again.terms
    (entry,) = again.entries()
    assert (entry.number, entry.label, entry.rho, entry.plan) == (
        1,
        "DPLogisticRegression",
        0.01,
        PLAN,
    )
    for change in ({"epsilon": 3.0}, {"delta": 1e-7}, {"neighbours": "zero_out"}):
        with pytest.raises(InvalidInput, match="budget cannot be changed") as refusal:
            Ledger(path, **({"epsilon": 2.0} | change))
        name, value = next(iter(change.items()))
        assert f"has {name}={getattr(again.terms, name)!r}" in str(refusal.value)
        assert f"{name}={value!r} was asked for" in str(refusal.value)


def test_text_for_people(path):
    ledger = Ledger(path, epsilon=1.0, delta=1e-6)
    assert "\n\n" not in str(ledger)
    reserve(ledger, 0.25, 1e-7)
    text = str(ledger)
    for part in (str(path), "ε = 1, δ = 1e-06", "left    ε = 0.75, δ = 9e-07", "DPLogisticReg"):
        assert part in text


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda p: p / "missing" / "budget.jsonl", "mkdir -p"),
        (lambda p: p, "is not a file"),
        (lambda p: p / "model.json", "not a privtail ledger"),
        (lambda p: p / "lines.jsonl", "not a privtail ledger"),
        (lambda p: p / "pipe", "is not a file"),
        (lambda p: p / "model.json" / "budget.jsonl", "is not a file"),
    ],
)
@pytest.mark.parametrize("terms", [{}, {"epsilon": 1.0, "delta": 0.0}])
def test_paths_that_cannot_be_ledgers(make, message, terms, tmp_path):
    (tmp_path / "model.json").write_text('{"format": "privtail-model"}')
    (tmp_path / "lines.jsonl").write_text('{"a": 1}\n{"a": 2}\n')
    os.mkfifo(tmp_path / "pipe")
    before = {f: f.read_text() for f in tmp_path.glob("*.json*")}
    with pytest.raises(InvalidInput, match=message) as refusal:
        Ledger(make(tmp_path), **terms)
    assert "\n" not in str(refusal.value)
    assert before == {f: f.read_text() for f in tmp_path.glob("*.json*")}


def test_no_ledger_yet(path):
    start = re.escape(f"To start one: Ledger('{path}', epsilon=1.0")
    with pytest.raises(InvalidInput, match=start):
        Ledger(path)
    path.touch()
    with pytest.raises(InvalidInput, match=rf"is empty\. {start}") as refused:
        Ledger(path)
    assert refused.value.cli.endswith(f"privtail budget {path} --epsilon 1 --delta 1e-6")
    Ledger(path, epsilon=1.0, delta=0.0)
    assert Ledger(path).terms.epsilon == 1.0


@pytest.mark.parametrize("call", ["open", "flock", "read", "ftruncate"])
@pytest.mark.parametrize("number", ["EACCES", "EROFS", "ENOLCK", "EIO"])
def test_the_system_says_no(call, number, path, monkeypatch):
    import errno
    import fcntl

    def refuse(*_: object) -> None:
        raise OSError(getattr(errno, number), os.strerror(getattr(errno, number)))

    ledger = Ledger(path, epsilon=1.0, delta=0.0)
    with monkeypatch.context() as patch:
        patch.setattr(fcntl if call == "flock" else os, call, refuse)
        with pytest.raises(InvalidInput, match="chmod" if number == "EACCES" else "local"):
            reserve(ledger)
    assert reserve(ledger).number == 1


def test_a_folder_that_cannot_be_synchronized(path, monkeypatch):
    def refuse(_: object) -> None:
        raise OSError(5, "Input/output error")

    with monkeypatch.context() as patch:
        patch.setattr(module, "_sync_directory", refuse)
        with pytest.raises(InvalidInput, match=r"Input/output error\. Put it on a local"):
            Ledger(path, epsilon=1.0, delta=0.0)
    assert reserve(Ledger(path, epsilon=1.0, delta=0.0)).number == 1


def test_a_full_disk_wastes_nothing_and_hides_nothing(path, monkeypatch, no_fsync):
    ledger = Ledger(path, epsilon=1.0, delta=0.0)
    reserve(ledger)
    write = os.write

    def full(fd: int, data: bytes) -> int:
        if len(data) < 100:
            raise OSError(28, "No space left on device")
        return write(fd, data[:50])

    with monkeypatch.context() as patch:
        patch.setattr(os, "write", full)
        with pytest.raises(InvalidInput, match="No space left"):
            reserve(ledger)
    assert len(ledger.entries()) == 1
    assert reserve(ledger).number == 2


def test_platforms_without_flock_say_so(path, monkeypatch):
    monkeypatch.setattr(sys, "platform", "win32")
    with pytest.raises(InvalidInput, match="flock"):
        Ledger(path, epsilon=1.0, delta=0.0)
    reserve(Ledger(epsilon=1.0, delta=0.0))


# --- crashes --------------------------------------------------------------------------------------


def test_every_prefix_of_a_line_is_cut_off(path, no_fsync):
    ledger = Ledger(path, epsilon=1.0, delta=0.0)
    reserve(ledger)
    whole = path.read_bytes()
    reserve(ledger)
    line = path.read_bytes()[len(whole) :]
    for length in range(len(line) - 1):
        path.write_bytes(whole + line[:length])
        ledger = Ledger(path)
        assert ledger.spent == (0.1, 0.0)
        assert path.read_bytes() == whole + line[:length], "readers cut nothing"
        assert reserve(ledger).number == 2
        assert len(Ledger(path).entries()) == 2
        assert path.read_bytes().count(b"\n") == 3
    for end in (b"", b"\n"):
        path.write_bytes(whole + line[:-1] + end)
        assert Ledger(path).spent == (0.2, 0.0), "a whole line may have been confirmed: it counts"


def test_every_prefix_of_a_header_is_begun_again(path, no_fsync):
    Ledger(path, epsilon=1.0, delta=1e-6)
    header = path.read_bytes()
    for length in range(len(header) - 1):
        path.write_bytes(header[:length])
        with pytest.raises(InvalidInput, match="is empty"):
            Ledger(path)
        Ledger(path, epsilon=2.0, delta=0.0)
        assert Ledger(path).terms.epsilon == 2.0


KILLED = """
import os, sys, time
from privtail.trusted.ledger import Ledger
ledger = Ledger(sys.argv[1])
releases = os.open(sys.argv[2], os.O_WRONLY | os.O_APPEND)
plan, honest = eval(sys.argv[3]), sys.argv[4] == "honest"
def charge():
    return ledger.reserve(label=f"{os.getpid()}-{i}", epsilon=1e-6, delta=0.0, plan=plan,
                          neighbours="replace_one")
print("ready", flush=True)
for i in range(100_000):
    if honest:
        charge()
    os.write(releases, f"{os.getpid()}-{i}\\n".encode())
    if not honest:
        time.sleep(0.02)
        charge()
"""


def killed(path: Path, order: str, pauses: list[float]) -> tuple[int, int, list[str]]:
    """Charges, releases, and releases without a charge, after ``kill -9`` at these times."""
    Ledger(path, epsilon=1.0, delta=0.0)
    file = path.with_suffix(".releases")
    file.touch()
    for pause in pauses:
        child = spawn(KILLED, path, file, PLAN, order)
        assert child.stdout.readline() == "ready\n"
        time.sleep(pause)
        child.kill()
        child.communicate()
    labels = [entry.label for entry in Ledger(path).entries()]
    released = file.read_text().split()
    assert len(set(labels)) == len(labels)
    assert reserve(Ledger(path), 1e-6).number == len(labels) + 1
    return len(labels), len(released), sorted(set(released) - set(labels))


def test_kill_never_leaves_a_release_without_its_charge(path):
    pauses = [random.Random(k).uniform(0, 0.12) for k in range(25)]  # noqa: S311
    charges, releases, uncharged = killed(path, "honest", pauses)
    assert not uncharged
    assert releases <= charges <= releases + len(pauses)
    assert releases > len(pauses), "the children did work"
    print(f"{len(pauses)} kills: {charges} charges, {releases} releases, 0 uncharged")  # noqa: T201


def test_kill_catches_a_release_before_its_charge(path):
    assert killed(path, "sabotaged", [0.03, 0.04, 0.05, 0.06])[2]


# --- tampering ------------------------------------------------------------------------------------


def edited(lines: list[bytes], how: str) -> tuple[list[bytes], int]:
    """The lines after an edit, and the number of the line that shows it."""
    if how == "altered":
        lines[2] = lines[2].replace(b'"epsilon": 0.1', b'"epsilon": 0.0')
        return lines, 3
    if how == "last altered":
        lines[4] = lines[4].replace(b'"epsilon": 0.1', b'"epsilon": 0.0')
        return lines, 5
    if how == "budget raised":
        lines[0] = lines[0].replace(b'"epsilon": 1.0', b'"epsilon": 9.0')
        return lines, 1
    if how == "deleted":
        return lines[:2] + lines[3:], 3
    if how == "swapped":
        return [*lines[:2], lines[3], lines[2], *lines[4:]], 3
    if how == "repeated":
        return [*lines, lines[-1]], 6
    if how == "spaces":
        lines[3] = lines[3].replace(b"\n", b" \n")
        return lines, 4
    if how == "zeros":
        lines[4] = bytes(len(lines[4]) - 1) + b"\n"
        return lines, 5
    if how == "empty line":
        return [*lines[:3], b"\n", *lines[3:]], 4
    if how == "deep":
        lines[1] = b"[" * 100_000 + b"\n"
        return lines, 2
    if how == "said twice":
        body = lines[1][: -module._SEAL_LENGTH - 1].replace(
            b'"epsilon"', b'"epsilon": 0, "epsilon"'
        )
        seal = hashlib.sha256(body + b"}").hexdigest()
        return [lines[0], body + (module._SEAL % seal).encode() + b"\n", *lines[2:]], 2
    assert how == "resealed"
    line, _ = module._sealed({"number": 2, "previous": lines[1][-67:-3].decode()})
    return [*lines[:2], line], 3


HOW = (
    "altered",
    "last altered",
    "budget raised",
    "deleted",
    "swapped",
    "repeated",
    "spaces",
    "zeros",
    "empty line",
    "deep",
    "said twice",
    "resealed",
)


@pytest.mark.parametrize("how", HOW)
def test_tampering_names_the_line(how, path, no_fsync):
    ledger = Ledger(path, epsilon=1.0, delta=0.0)
    for _ in range(4):
        reserve(ledger)
    lines, number = edited(path.read_bytes().splitlines(keepends=True), how)
    path.write_bytes(b"".join(lines))
    for action in (lambda: Ledger(path), lambda: reserve(ledger), lambda: ledger.spent):
        with pytest.raises(InvalidInput, match=f"Line {number} of the ledger"):
            action()
    assert path.read_bytes() == b"".join(lines)


@pytest.mark.parametrize("how", ["shortened", "exchanged", "begun again", "gone"])
def test_a_process_remembers_what_it_saw(how, path, no_fsync):
    ledger = Ledger(path, epsilon=1.0, delta=0.0)
    for _ in range(3):
        reserve(ledger)
    if how == "shortened":
        path.write_bytes(b"".join(path.read_bytes().splitlines(keepends=True)[:-1]))
    else:
        path.unlink()
    if how == "exchanged":
        for _ in range(4):
            reserve(Ledger(path, epsilon=1.0, delta=0.0), label="other")
    if how == "begun again":
        Ledger(path, epsilon=1.0, delta=0.0)
    with pytest.raises(InvalidInput, match="has been removed" if how != "gone" else "no ledger"):
        reserve(ledger)


def test_who_made_a_ledger_remembers_it(path):
    """A file with a budget of 1 was charged 5, by a process that had begun another one there."""
    made = Ledger(path, epsilon=10.0, delta=0.0)
    path.unlink()
    other = Ledger(path, epsilon=1.0, delta=0.0)
    with pytest.raises(InvalidInput, match=r"Line 1 of the ledger .* has been removed"):
        reserve(made, 5.0)
    assert other.spent == (0.0, 0.0)


def test_sealed_lines_open_to_what_was_sealed():
    content = {"label": 'é "quoted" ε', "epsilon": 0.1, "plan": PLAN}
    line, seal = module._sealed(content)
    assert module._opened(line[:-1]) == (content, seal)
    assert json.loads(line)["sha256"] == seal


# --- copies, threads, processes -------------------------------------------------------------------


@pytest.mark.parametrize("where", ["memory", "file"])
def test_copies_are_the_same_ledger(where, path):
    from sklearn.base import BaseEstimator, clone

    class Estimator(BaseEstimator):
        def __init__(self, ledger=None):
            self.ledger = ledger

    ledger = Ledger(path if where == "file" else None, epsilon=1.0, delta=0.0)
    for twin in (copy.copy(ledger), copy.deepcopy(ledger), clone(Estimator(ledger)).ledger):
        assert twin is ledger
    reserve(clone(Estimator(ledger)).ledger)
    assert ledger.spent == (0.1, 0.0)


def test_a_ledger_in_memory_cannot_be_pickled():
    import joblib

    ledger = Ledger(epsilon=1.0, delta=0.0)
    with pytest.raises(InvalidInput, match=r"Use a file: Ledger\('budget.jsonl', epsilon=1.0"):
        pickle.dumps({"ledger": ledger})
    with pytest.raises(InvalidInput, match="n_jobs=1"):
        joblib.hash(ledger)


def test_a_ledger_in_memory_cannot_be_forked():
    ledger = Ledger(epsilon=1.0, delta=0.0)
    ledger._pages._pid += 1
    with pytest.raises(InvalidInput, match="forked"):
        reserve(ledger)


def test_a_file_ledger_pickles_as_its_path(path, monkeypatch, tmp_path):
    import joblib

    monkeypatch.chdir(tmp_path)
    ledger = Ledger(path.name, epsilon=1.0, delta=0.0)
    monkeypatch.chdir("/")
    twin = pickle.loads(pickle.dumps(ledger))  # noqa: S301
    reserve(twin, 0.25)
    joblib.dump(ledger, tmp_path / "model.joblib")
    reserve(joblib.load(tmp_path / "model.joblib"), 0.25)
    assert ledger.spent == (0.5, 0.0)
    path.unlink()
    with pytest.raises(InvalidInput, match="There is no ledger at"):
        joblib.load(tmp_path / "model.joblib")


@pytest.mark.parametrize("where", ["memory", "file"])
def test_threads_do_not_overspend(where, path, no_fsync):
    ledger = Ledger(path if where == "file" else None, epsilon=1.0, delta=0.0)
    outcomes: list[bool] = []

    def fit() -> None:
        for _ in range(5):
            try:
                reserve(ledger)
                outcomes.append(True)
            except BudgetExceeded:
                outcomes.append(False)

    threads = [threading.Thread(target=fit) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert outcomes.count(True) == 10
    assert outcomes.count(False) == 30
    assert [e.number for e in ledger.entries()] == list(range(1, 11))


RACE = """
import os, sys, time
import privtail.trusted.journal as module
from privtail.trusted.ledger import Ledger
from privtail.errors import BudgetExceeded, PrivtailError
if sys.argv[4] == "sabotaged":
    module.fcntl.flock = lambda *_: None
    module._read = lambda fd, read=module._read: (read(fd), time.sleep(0.05))[0]
ledger = Ledger(sys.argv[1])
print("ready", flush=True)
patience = time.monotonic() + 60
while not os.path.exists(sys.argv[2]) and time.monotonic() < patience:
    time.sleep(0.002)
try:
    ledger.reserve(label="fit", epsilon=0.1, delta=1e-7, neighbours="replace_one",
                   plan=eval(sys.argv[3]))
    print("charged")
except BudgetExceeded:
    print("refused")
except PrivtailError as error:
    print("failed")
"""


def race(path: Path, how: str, processes: int) -> list[str]:
    Ledger(path, epsilon=1.0, delta=1e-6)
    start = path.with_suffix(".go")
    children = [spawn(RACE, path, start, PLAN, how) for _ in range(processes)]
    assert all(child.stdout.readline() == "ready\n" for child in children)
    start.touch()
    return [child.communicate()[0].strip() for child in children]


def test_fifty_processes_for_ten_fits(path):
    outcomes = race(path, "honest", 50)
    assert outcomes.count("charged") == 10
    assert outcomes.count("refused") == 40
    ledger = Ledger(path)
    assert len(ledger.entries()) == 10
    assert len({e.pid for e in ledger.entries()}) == 10
    assert ledger.spent == (1.0, 1e-6)


def test_the_race_catches_a_missing_lock(path):
    assert race(path, "sabotaged", 15).count("charged") > 10


def test_printed_amounts_are_rounded_to_the_safe_side():
    for number in range(1_000):
        x = 10.0 ** (number / 50 - 12)
        below, above = Fraction(f"{digits_below(x):g}"), Fraction(f"{digits_above(x):g}")
        assert below <= Fraction(repr(x)) <= above < below * Fraction("1.00002")
    for same in (0.0, 0.3, 1e-6, math.inf):
        assert digits_below(same) == digits_above(same) == same


def test_a_notebook_shows_the_page_of_a_ledger():
    ledger = Ledger(epsilon=1.0, delta=1e-6)
    assert "&" not in ledger.to_text()
    assert ledger._repr_html_() == f"<pre>{ledger.to_text()}</pre>"


def interrupting(moment):
    """A profiler that is Ctrl-C the next time Python looks for signals, after ``moment`` times."""
    left = [moment]

    def look(frame, event, _):
        file = Path(frame.f_code.co_filename).stem
        if event in ("call", "c_return") and file in ("contextlib", "journal", "ledger"):
            left[0] -= 1
            if left[0] == 0:
                sys.setprofile(None)
                raise KeyboardInterrupt

    return look


@pytest.mark.parametrize("where", ["file", "memory"])
def test_an_interrupt_leaves_no_lock_behind(where, path, no_fsync):
    """One Ctrl-C in 600 came while a ledger was locked: the note on the charge waited for ever."""
    ledger = Ledger(path if where == "file" else None, epsilon=1.0, delta=0.0)
    interrupts = []
    for moment in itertools.count(1):
        try:
            with telling_charge(ledger):
                sys.setprofile(interrupting(moment))
                ledger.entries()
                sys.setprofile(None)
                break
        except KeyboardInterrupt as interrupt:
            interrupts.append(interrupt)  # a notebook keeps the last one, too
        finally:
            sys.setprofile(None)
        if where == "file":
            with path.open() as file:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        else:
            assert not ledger._pages._lock.locked()
    assert len(interrupts) > 5
    assert all("was not charged" in one.__notes__[0] for one in interrupts)
