"""A Sensitive shows nothing, and its algebra keeps every bound true."""

from __future__ import annotations

import copy
import math
import operator
import pickle
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from privtail.errors import InvalidInput, NotPlanned, NotReleased, PrivtailError
from privtail.trusted.curator import Opening
from privtail.trusted.events import Event
from privtail.trusted.mechanisms.noise import GaussianNoise
from privtail.trusted.mechanisms.simulated import SimulatedSampler
from privtail.trusted.sensitive import Sensitive
from privtail.trusted.sensitivity import INTEGER_LIMIT, Norms, Sensitivity

SECRET = 87_654_321


def norms_of(change: list[int]) -> Norms:
    """The norms of an integer vector, rounded up."""
    squares = sum(c * c for c in change)
    root = math.isqrt(squares)
    root += root * root < squares
    return Norms(float(sum(map(abs, change))), float(root), float(max(map(abs, change), default=0)))


def sensitive(
    value: Any, change: Norms | None = None, events: tuple[Event, ...] = (), **more: Any
) -> Sensitive:
    array = np.array(value, dtype=np.int64)
    change = change or Norms(math.inf, 4.0, math.inf)
    largest = int(np.abs(array.astype(object)).max(initial=0))
    s = Sensitivity(
        size=array.size, unit=0.25, radius=change, diameter=change, magnitude=largest, **more
    )
    return Sensitive(array, s, Opening(events, SimulatedSampler(0)))


def integers(answer: Sensitive) -> list[int]:
    return [int(v) for v in answer._value]


def holds(before: Sensitive, after: Sensitive) -> None:
    """The difference of two values is within both promised norms, exactly."""
    e = [abs(a - b) for a, b in zip(integers(before), integers(after), strict=True)]
    for promised in (before.sensitivity.radius, before.sensitivity.diameter):
        assert sum(e) <= Fraction(promised.l1)
        assert sum(x * x for x in e) <= Fraction(promised.l2) ** 2
        assert max(e, default=0) <= Fraction(promised.linf)
    assert max(map(abs, integers(before)), default=0) <= before.sensitivity.magnitude


# The door


REFUSED = {
    "float": float,
    "int": int,
    "bool": bool,
    "complex": complex,
    "index": operator.index,
    "len": len,
    "iter": iter,
    "list": list,
    "tuple": tuple,
    "getitem": lambda s: s[0],
    "slice": lambda s: s[:],
    "contains": lambda s: SECRET in s,
    "eq": lambda s: s == SECRET,
    "ne": lambda s: s != SECRET,
    "lt": lambda s: s < SECRET,
    "le": lambda s: s <= SECRET,
    "gt": lambda s: s > SECRET,
    "ge": lambda s: s >= SECRET,
    "sorted": lambda s: sorted([s, s]),
    "max": lambda s: max(s, SECRET),
    "hash": hash,
    "set": lambda s: {s},
    "abs": abs,
    "round": round,
    "floor": math.floor,
    "ceil": math.ceil,
    "trunc": math.trunc,
    "sqrt": math.sqrt,
    "neg": operator.neg,
    "pos": operator.pos,
    "invert": operator.invert,
    "add": lambda s: s + 1,
    "radd": lambda s: 1 + s,
    "sub": lambda s: s - 1,
    "rsub": lambda s: 1 - s,
    "mul": lambda s: s * 2,
    "rmul": lambda s: 2 * s,
    "truediv": lambda s: s / 2,
    "floordiv": lambda s: s // 2,
    "mod": lambda s: s % 2,
    "pow": lambda s: s**2,
    "and": lambda s: s & 1,
    "shift": lambda s: s >> 1,
    "matmul": lambda s: s @ np.ones(1),
    "rmatmul": lambda s: np.ones((1, 1)) @ s,
    "array": np.array,
    "asarray": np.asarray,
    "asarray of a list": lambda s: np.asarray([s], dtype=np.float64),
    "ufunc": np.exp,
    "binary ufunc": lambda s: np.add(s, 1),
    "ufunc method": np.add.reduce,
    "array function": np.sum,
    "concatenate": lambda s: np.concatenate([s, s]),
    "array add": lambda s: np.ones(1) + s,
    "copyto": lambda s: np.copyto(np.zeros(1), s),
    "setitem": lambda s: np.zeros(1).__setitem__(0, s),
    "buffer": memoryview,
    "bytes": bytes,
    "vars": vars,
    "pickle": pickle.dumps,
    "old pickle": lambda s: pickle.dumps(s, protocol=0),
    "copy": copy.copy,
    "deepcopy": copy.deepcopy,
    "reduce": lambda s: s.__reduce_ex__(4),
    "format": lambda s: f"{s:.3f}",
    "percent": lambda s: "%d" % s,  # noqa: UP031
}


@pytest.mark.parametrize("name", REFUSED)
def test_no_way_in_but_release(name: str) -> None:
    with pytest.raises((NotReleased, TypeError, ValueError)) as caught:
        REFUSED[name](sensitive([SECRET]))
    assert "87654321" not in str(caught.value).replace("_", "").replace(",", "")


def test_the_refusals_name_the_way_out() -> None:
    with pytest.raises(NotReleased, match=r"release\(GaussianNoise"):
        float(sensitive([SECRET]))


def test_no_text_shows_the_value() -> None:
    answer = sensitive([SECRET])
    for text in (repr(answer), str(answer), f"{answer}", f"{answer!r}", repr([answer])):
        assert "87654321" not in text
        assert "size=1" in text


@pytest.mark.parametrize("write", [lambda s: setattr(s, "sensitivity", s.sensitivity)])
def test_the_sensitivity_cannot_be_overwritten(write: Any) -> None:
    """Whoever runs outside the core could otherwise pay for less than is released."""
    with pytest.raises(AttributeError):
        write(sensitive([1]))


class Thief:
    """An event that was paid for, and a release without its noise."""

    def __init__(self, planned: Event) -> None:
        self.planned = planned

    def event(self, sensitivity: Sensitivity) -> Event:
        return self.planned

    def release(self, value: Any, sensitivity: Sensitivity, sampler: Any) -> Any:
        return value


class Impostor(GaussianNoise):
    def release(self, value: Any, sensitivity: Sensitivity, sampler: Any) -> Any:
        return value


def test_only_mechanisms_of_the_core_may_open_it() -> None:
    honest = GaussianNoise(100.0)
    event = honest.event(sensitive([SECRET]).sensitivity)
    assert sensitive([SECRET], events=(event,)).release(honest) is not None
    for mechanism in (Thief(event), Impostor(100.0)):
        with pytest.raises(PrivtailError):
            sensitive([SECRET], events=(event,)).release(mechanism)


def test_a_release_that_nobody_planned_is_refused() -> None:
    with pytest.raises(NotPlanned):
        sensitive([SECRET]).release(GaussianNoise(1.0))


# The algebra


small = st.integers(-(2**40), 2**40)


@st.composite
def neighbouring(draw: Any) -> tuple[Sensitive, Sensitive]:
    """Two integer vectors, and a truthful bound on their difference in some of the norms."""
    size = draw(st.integers(1, 6))
    value = draw(st.lists(small, min_size=size, max_size=size))
    scale = draw(st.sampled_from([1, 3, 2**20, 2**34]))
    change = [scale * c for c in draw(st.lists(st.integers(-9, 9), min_size=size, max_size=size))]
    true = norms_of(change)
    known = draw(st.sampled_from(["l1", "l2", "linf", "all"]))
    said = (
        true if known == "all" else replace(Norms(*[math.inf] * 3), **{known: getattr(true, known)})
    )
    other = [a + b for a, b in zip(value, change, strict=True)]
    largest = max(map(abs, [*value, *other]))
    pair = [sensitive(v, said) for v in (value, other)]
    for p in pair:
        object.__setattr__(p.sensitivity, "magnitude", largest)
    return pair[0], pair[1]


@given(neighbouring())
def test_tightened_norms_are_still_true(pair: tuple[Sensitive, Sensitive]) -> None:
    holds(*pair)
    s = pair[0].sensitivity.diameter
    assert s.linf <= s.l2 <= s.l1 * (1 + 1e-12)


@given(neighbouring(), st.floats(1e-9, 1e9), st.data())
def test_unary_operations_keep_bounds(
    pair: tuple[Sensitive, Sensitive], factor: float, data: Any
) -> None:
    a, b = pair
    n = a.sensitivity.size
    vector = data.draw(st.lists(st.floats(-1e6, 1e6), min_size=n, max_size=n))
    chosen = data.draw(st.lists(st.integers(0, n - 1), unique=True))
    for operation in (
        lambda s: s.scale(factor),
        lambda s: s.negate(),
        lambda s: s.abs(),
        lambda s: s.shift(vector),
        lambda s: s.take(chosen),
        lambda s: s.mirror(),
        lambda s: s.shift(vector).abs().negate().take(chosen).scale(2.0),
    ):
        holds(operation(a), operation(b))


def test_values_are_what_the_operations_say() -> None:
    a = sensitive([4, -3, 0])
    assert integers(a.negate()) == [-4, 3, 0]
    assert integers(a.abs()) == [4, 3, 0]
    assert integers(a.take([2, 0])) == [0, 4]
    assert integers(a.mirror()) == [4, -3, 0, -4, 3, 0]
    assert integers(a.shift([0.25, 0.3, -1.0])) == [5, -2, -4]
    assert a.scale(3.0).sensitivity.unit == 0.75
    assert integers(a.scale(3.0)) == integers(a)


def test_norms_are_the_least_that_follow() -> None:
    """Each bound is attained by a vector that obeys the others."""
    cases = [
        (Norms(math.inf, 4.0, math.inf), 9, Norms(12.0, 4.0, 4.0)),
        (Norms(math.inf, math.inf, 2.0), 9, Norms(18.0, 6.0, 2.0)),
        (Norms(6.0, math.inf, math.inf), 4, Norms(6.0, 6.0, 6.0)),
        (Norms(8.0, math.inf, 2.0), 100, Norms(8.0, 4.0, 2.0)),
        (Norms(2.0, 5.0, 9.0), 3, Norms(2.0, 2.0, 2.0)),
        (Norms(math.inf, 4.0, math.inf), 1, Norms(4.0, 4.0, 4.0)),
    ]
    for given_norms, size, least in cases:
        assert given_norms.tightened(size) == least


def test_irrational_norms_are_rounded_up() -> None:
    tight = Norms(math.inf, math.inf, 3.0).tightened(2)
    assert Fraction(tight.l2) ** 2 >= 18
    assert tight.l2 < math.sqrt(18) * (1 + 1e-12)


@pytest.mark.parametrize("one_signed", [True, False])
def test_one_sign_survives_only_where_it_must(one_signed: bool) -> None:
    a = sensitive([1, 2], one_signed=one_signed)
    kept = [
        a.negate(),
        a.scale(2.0),
        a.shift([1, 1]),
        a.take([1]),
    ]
    assert all(b.sensitivity.one_signed == one_signed for b in kept)
    assert not a.abs().sensitivity.one_signed
    assert not a.mirror().sensitivity.one_signed


# Guards


def test_take_wants_each_coordinate_at_most_once() -> None:
    """-1 is the last coordinate under another name: taking it twice doubles what is released."""
    a = sensitive([SECRET, 1])
    for indices in ([0, 0], [1, -1], [0, -2]):
        with pytest.raises(InvalidInput):
            a.take(indices)
    for indices in ([2], [5, 0]):
        with pytest.raises((InvalidInput, IndexError)):
            a.take(indices)
    assert a.take([]).sensitivity.size == 0


@pytest.mark.parametrize("factor", [0.0, -1.0, math.inf, math.nan])
def test_scale_wants_a_positive_finite_factor(factor: float) -> None:
    with pytest.raises(InvalidInput):
        sensitive([1]).scale(factor)


@pytest.mark.parametrize("vector", [[1.0, 2.0], [math.nan], [math.inf], [1e300], []])
def test_shift_wants_a_vector_that_fits_the_grid(vector: list[float]) -> None:
    with pytest.raises(InvalidInput):
        sensitive([1]).shift(vector)


def test_magnitudes_stay_below_the_end_of_the_integers() -> None:
    """Checked from public numbers, before the data matter."""
    base = sensitive([1]).sensitivity
    assert replace(base, magnitude=INTEGER_LIMIT - 1).magnitude == INTEGER_LIMIT - 1
    with pytest.raises(InvalidInput, match="2\\^62"):
        replace(base, magnitude=INTEGER_LIMIT)
    near = sensitive([INTEGER_LIMIT - 1])
    with pytest.raises(InvalidInput, match="2\\^62"):
        near.shift([1.0])
    assert integers(near.negate().abs()) == [INTEGER_LIMIT - 1]


# Sabotage


def test_halved_norms_are_caught() -> None:
    def halved(self: Norms, size: int) -> Norms:
        return Norms(self.l1, self.l2 / 2, self.linf)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Norms, "tightened", halved)
        with pytest.raises(AssertionError):
            holds(sensitive([0, 0], norms_of([3, 4])), sensitive([3, 4], norms_of([3, 4])))


def test_a_mirror_moves_in_both_halves() -> None:
    """By (e, -e), whose l1 and l2 norms are 2 and sqrt 2 times those of e."""
    for change in (Norms(math.inf, 5.0, math.inf), Norms(2.0, math.inf, 1.0)):
        a = sensitive([3, -1, 0, 2], change)
        assert integers(a.mirror()) == [3, -1, 0, 2, -3, 1, 0, -2]
        mirrored, own = a.mirror().sensitivity, a.sensitivity
        for both, one in ((mirrored.radius, own.radius), (mirrored.diameter, own.diameter)):
            assert (both.linf, both.l1) == (one.linf, 2 * one.l1)
            assert both.l2 == pytest.approx(math.sqrt(2) * one.l2, rel=1e-12)


def test_a_mirror_that_forgets_its_second_half_is_caught() -> None:
    a, b = (sensitive(v, norms_of([3, 4])) for v in ([0, 0], [3, 4]))
    holds(a.mirror(), b.mirror())
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Sensitivity, "mirror", lambda self: replace(self, size=2 * self.size))
        with pytest.raises(AssertionError):
            holds(a.mirror(), b.mirror())


def test_taking_twice_is_caught() -> None:
    a, b = (sensitive([v], norms_of([4])) for v in (0, 4))

    def twice(s: Sensitive) -> Sensitive:
        return s._with(s._value[[0, -1]], s.sensitivity)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Sensitive, "__init__", _unchecked)
        with pytest.raises(AssertionError):
            holds(twice(a), twice(b))


def _unchecked(self: Sensitive, value: Any, sensitivity: Sensitivity, opening: Opening) -> None:
    object.__setattr__(self, "_value", value)
    object.__setattr__(self, "_sensitivity", sensitivity)
    object.__setattr__(self, "_opening", opening)
