"""Fields of a written statement, with their types."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import Any

from privtail.errors import InvalidInput
from privtail.trusted.events import (
    Plan,
    plan_from_json,
)

MOST = 2**40


def read_plan(rounds: object) -> Plan:
    """A plan whose every field has its type; whether the numbers make sense is another question."""
    read = [
        _read_round(require_type(dict, "a round", r)) for r in require_type(list, "plan", rounds)
    ]
    try:
        return plan_from_json(read)
    except InvalidInput as error:
        raise InvalidInput(f"The plan of this statement cannot be read. {error}") from None


def _read_round(r: dict[str, Any]) -> dict[str, Any]:
    sampling = dict(require_type(dict, "sampling", r.get("sampling")))
    require_line("kind", sampling.get("kind"))
    if "rate" in sampling:
        sampling["rate"] = as_number("rate", sampling["rate"])
    if "parts" in sampling:
        sampling["parts"] = as_integer("parts", sampling["parts"])
    events = [
        _read_event(require_type(dict, "an event", e))
        for e in require_type(list, "events", r.get("events"))
    ]
    stage = require_line("stage", r.get("stage", ""))
    times = as_integer("times", r.get("times"))
    return {"sampling": sampling, "times": times, "events": events, "stage": stage}


def _read_event(event: dict[str, Any]) -> dict[str, Any]:
    readers: dict[str, Callable[[str, object], Any]] = {
        "law": require_line,
        "question": require_line,
        "coordinates": as_integer,
        "picks": as_integer,
        "trials": as_integer,
        "one_signed": functools.partial(require_type, bool),
        "unit": lambda name, value: as_number(name, from_number(value)),
        "recipe": _read_recipe,
    }
    return {name: readers.get(name, as_number)(name, value) for name, value in event.items()}


def _read_recipe(name: str, value: object) -> list[list[Any]]:
    steps = require_type(list, name, value)
    return [[from_number(x) for x in require_type(list, name, step)] for step in steps]


def require_type(kind: type[Any], name: str, value: object) -> Any:
    """The value, which is refused if it is of another type."""
    if not isinstance(value, kind):
        raise wrong_field(name, f"a {kind.__name__}", value)
    return value


def require_line(name: str, value: object) -> str:
    """Text of one printable line, or a refusal."""
    if not isinstance(value, str) or not value.isprintable():
        raise wrong_field(name, "one line of printable text", value)
    return value


def as_number(name: str, value: object) -> float:
    """A double, or a refusal."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise wrong_field(name, "a number", value)
    try:
        return float(value)
    except OverflowError:
        return math.inf


def as_integer(name: str, value: object) -> int:
    """A whole number of a sane size, or a refusal."""
    if isinstance(value, bool) or not isinstance(value, int) or abs(value) > MOST:
        raise wrong_field(name, "an integer below 2^40", value)
    return value


def wrong_field(name: str, must_be: str, value: object) -> InvalidInput:
    """The refusal of a field."""
    return InvalidInput(f"In a privacy statement {name} must be {must_be}, got {brief(value)}.")


def brief(value: object) -> str:
    """A short picture of anything; never fails."""
    small = isinstance(value, int) and abs(value) <= MOST
    if small or value is None or isinstance(value, str | float):
        return repr(value)[:80]
    return f"something of type {type(value).__name__}"


def to_number(x: float | None) -> float | str | None:
    """JSON has no infinity."""
    return "inf" if x == math.inf else x


def from_number(x: object) -> object:
    """Inverse of `to_number`."""
    return math.inf if x == "inf" else x
