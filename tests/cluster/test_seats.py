"""Whose rows count where a person is in several partitions: the seats of one machine.

Tasks are called here without a cluster, on partitions that hypothesis cuts.
"""

from __future__ import annotations

import itertools
import math
import pickle
import zlib
from collections.abc import Callable, Sequence
from decimal import Decimal
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from privtail.errors import InvalidInput
from privtail.trusted.cluster import seats
from privtail.trusted.cluster.held import CHANGED, Held, Reading, Sent, require_one_type, spelt
from privtail.trusted.cluster.seats import Seated, decided, joined, shared
from privtail.trusted.deals import Deal
from privtail.trusted.records.persons import Persons
from privtail.trusted.records.persons import _identity as identity

Pair = tuple[list[int], list[int]]
IDS = [
    "anna", b"anna", "1", 1, 1.0, True, 2**60, 2**60 + 1, 10**5000, 5e-324, 1e308, 0.0, -0.0,
    math.inf, Decimal("1.0"), "\ud800", "", None, math.nan, pd.NA, (1, 2), Decimal("0.1"), "0.1",
]  # fmt: skip
"""Some are the same person, and some nobody."""
KEY = bytes(range(32))


def held(ids: Any, announced: Any = None) -> Held:
    empty = ids[:0] if announced is None else announced
    reading = Reading(np.empty((0, 1)), None, empty, None, False, KEY)
    return Held(np.zeros((len(ids), 1)), None, ids, reading)


def here(ids: Any, order: Deal, max_rows: int) -> Pair:
    positions, leaders = Persons(ids, order.n).seats(order.labels(0, order.n), max_rows)
    return positions.tolist(), leaders.tolist()


def away(
    ids: Any, order: Deal, max_rows: int, cuts: Sequence[int], shares: int,
    carried: Callable[[Any], Any] = lambda value: value,
) -> Pair:  # fmt: skip
    """What the tasks of a fit decide; ``carried`` is what goes from one of them to another."""
    ends = [0, *sorted(cuts), len(ids)]
    parts = [held(ids[a:b]) for a, b in itertools.pairwise(ends)]
    owned = [
        carried(shared(Sent((order, shares, KEY, start, part.checksum)), part))
        for part, start in zip(parts, ends[:-1], strict=True)
    ]
    found = [carried(decided([o[k] for o in owned], max_rows, ends)) for k in range(shares)]
    told = [joined([one[i] for one in found]) for i in range(len(parts))]
    assert not any(one.refused for one in told)
    for one, (a, b) in zip(told, itertools.pairwise(ends), strict=True):
        assert all(a <= position < b for position in one.positions)
    positions, leaders = ([getattr(one, name) for one in told] for name in ("positions", "leaders"))
    return np.concatenate(positions).tolist(), np.concatenate(leaders).tolist()


@st.composite
def tables(draw: st.DrawFn) -> tuple[Any, list[int], int, int]:
    n = draw(st.integers(1, 30))
    ids = np.empty(n, dtype=object)
    ids[:] = draw(st.lists(st.sampled_from(IDS), min_size=n, max_size=n))
    cuts = draw(st.lists(st.integers(0, n), max_size=6))
    return ids, cuts, draw(st.integers(1, 4)), draw(st.integers(1, 3))


@settings(max_examples=150)
@given(tables(), st.binary(min_size=32, max_size=32))
def test_seats_are_those_of_one_machine(table: Any, key: bytes) -> None:
    ids, cuts, shares, max_rows = table
    order = Deal(len(ids), len(ids), key)
    carried = lambda value: pickle.loads(pickle.dumps(value))  # noqa: E731, S301
    assert away(ids, order, max_rows, cuts, shares, carried) == here(ids, order, max_rows)


@settings(max_examples=100)
@given(tables(), st.sampled_from(["new", -1, None]))
def test_nobody_else_moves(table: Any, other: Any) -> None:
    """One person exchanged for a new one, or emptied, in the same positions."""
    ids, cuts, shares, max_rows = table
    order, mine = Deal(len(ids), len(ids), bytes(32)), {i for i, v in enumerate(ids) if v is IDS[0]}
    after = ids.copy()
    after[sorted(mine)] = other
    before, then = (
        list(zip(*away(v, order, max_rows, cuts, shares), strict=True)) for v in (ids, after)
    )
    assert sum(position in mine for position, _ in before) == min(max_rows, len(mine))
    assert [p for p in before if p[0] not in mine] == [p for p in then if p[0] not in mine]


@pytest.mark.parametrize(
    "ids",
    [
        pd.Series([3, 1, 3, 2, 3, 1]), pd.Series([3.0, 1, 3, None, 3, 1]),
        pd.Series([3, 1, 3, None, 3, 1], dtype="Int64"), pd.Series([*"cacbc", None]),
        pd.Series([*"cacbc", None], dtype="category"), pd.Series([*"cacbc", None], dtype="string"),
        pd.Series(pd.to_datetime([3, 1, 3, None, 3, 1])), np.array([*"cacbca"]),
        np.array([*"cacbca"], "S1"),
    ],
    ids=lambda ids: str(ids.dtype),
)  # fmt: skip
def test_seats_of_columns_of_every_type(ids: Any) -> None:
    order = Deal(6, 6, bytes(32))
    assert away(ids, order, 2, [1, 1, 4], 2) == here(ids, order, 2)


# Sabotage: the comparison above finds each


def sabotaged(monkeypatch: pytest.MonkeyPatch, name: str, value: Any) -> None:
    monkeypatch.setattr(seats, name, value)
    ids, order = np.repeat(["anna", "bob"], 6).astype(object), Deal(12, 12, bytes(32))
    with pytest.raises(AssertionError):
        assert away(ids, order, 2, [2, 5, 8], 2) == here(ids, order, 2)


def test_a_share_that_differs_by_process_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    """As Python's own hash of text would: one person would count in two shares."""
    calls = itertools.count()
    sabotaged(monkeypatch, "_share", lambda one, shares, key: next(calls) % shares)


def test_persons_that_are_decided_by_partition_are_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    honest = seats.seated

    def apart(person: Any, positions: Any, priority: Any, max_rows: int) -> Any:
        return honest(2 * person + (positions > 4), positions, priority, max_rows)

    sabotaged(monkeypatch, "seated", apart)


def test_bytes_tell_ids_apart() -> None:
    forms = {form for form in map(identity, IDS) if form is not None}
    assert len({spelt(form) for form in forms}) == len(forms)
    assert spelt(identity(True)) == spelt(identity(1.0)) == spelt(identity(np.uint8(1)))
    assert spelt(identity(-0.0)) == spelt(identity(0))


def test_nobody_can_make_ids_that_all_fall_into_one_share() -> None:
    """Its worker would hold them all; a checksum without a key let them be chosen."""
    chosen = [one for one in range(4000) if zlib.crc32(spelt(one)) % 8 == 0]
    for key in (KEY, bytes(32)):
        sizes = np.bincount([seats._share(one, 8, key) for one in chosen], minlength=8)
        assert sizes.max() < 2 * len(chosen) / 8
    assert {seats._share(None, 8, KEY)} == {-1}


# Refusals


@pytest.mark.parametrize(
    "announced",
    [
        pd.Series([], dtype=object),
        pd.Series([], dtype=pd.CategoricalDtype(pd.Index([1, "a"], dtype=object))),
    ],
    ids=["cells", "categories"],
)
def test_ids_that_are_objects_are_refused(announced: pd.Series[Any]) -> None:
    """One id is whole in one partition, and a double in another, which rounds it: two persons."""
    with pytest.raises(InvalidInput, match="one type"):
        require_one_type(announced)
    for typed in ("int64", "float64", "string", "str", "datetime64[ns]"):
        require_one_type(announced.astype("string").astype(typed))


def test_ids_of_another_type_than_announced_are_refused() -> None:
    for ids, announced in (
        (pd.Series(["1", "2"]), pd.Series([], dtype=np.int64)),
        (pd.Series([1, 2]), pd.Series([], dtype=object)),
        (pd.Series(["a"], dtype="string"), pd.Series([], dtype=object)),
        (pd.Series([1], dtype="datetime64[s]"), pd.Series([], dtype="datetime64[ns]")),
        (pd.Series([1.0, None]), pd.Series([], dtype=np.int64)),  # doubles round large ids
        (pd.Series([1.0], dtype=np.float32), pd.Series([], dtype=np.float64)),
        (
            pd.Series(["a"], dtype=pd.StringDtype("python")),
            pd.Series([], dtype=pd.StringDtype("pyarrow")),
        ),
    ):
        assert "another type than the collection announces" in held(ids, announced).refused
    for ids, announced in (
        (pd.Series([1], dtype=np.int32), pd.Series([], dtype=np.int64)),
        (pd.Series([], dtype=object), pd.Series([], dtype=np.int64)),
        (np.array(["abc"]), np.array([], dtype="U1")),
    ):
        assert not held(ids, announced).refused


def test_ids_that_changed_are_refused() -> None:
    """A person may have moved to a partition that was read before."""
    one, other = held(np.array([1, 2])), held(np.array([1, 3]))
    assert one.checksum != other.checksum
    order = Deal(2, 2, bytes(32))
    for part, refused in ((one, ""), (other, CHANGED)):
        owned = shared(Sent((order, 2, KEY, 0, one.checksum)), part)
        told = [decided([share], 1, [0, 2])[0] for share in owned]
        assert joined(told).refused == refused


def test_a_task_that_fails_tells_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: Any) -> None:
        raise ValueError("secret-4711")

    monkeypatch.setattr(seats, "seated", fail)
    (share,) = shared(Sent((Deal(2, 2, bytes(32)), 1, KEY, 0, held(np.array([1, 2])).checksum)),
                      held(np.array([1, 2])))  # fmt: skip
    (told,) = decided([share], 1, [0, 2])
    assert "A task failed" in told.refused
    assert "4711" not in told.refused + repr((share, told))
    assert isinstance(told, Seated)
