"""Changes of one part or one number of the default: all that knows how it is written."""

from __future__ import annotations

import importlib
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import fields
from typing import Any, NamedTuple
from unittest import mock

from privtail.default import Tuning


class Change(NamedTuple):
    """``name`` of a module, or a field's default of a class, below ``privtail.``; the new value."""

    owner: str
    name: str
    value: Any


OTHER_SEEDS = "other seeds"
"""Not a change: what noise alone does to the comparison."""

_SCALED = "default.pipeline:ScaledDescent"


def _tuned(**values: float) -> tuple[Change, ...]:
    """Other tuned numbers."""
    return (Change(_SCALED, "tuning", Tuning(**values)),)  # type: ignore[arg-type]


def _without(stage: str) -> tuple[Change, ...]:
    """No such stage."""
    return (
        Change(f"default.{stage}", "plan", lambda *_: ()),
        Change(f"default.{stage}", "run", lambda *_: None),
    )


PARTS: dict[str, tuple[Change, ...]] = {
    "no limit of extrapolation": _without("acceptance:LimitExtrapolation"),
    "no thresholding of slopes": (
        Change("default.steps", "may_be_zero", lambda _: False),
    ),
    "no selection": _tuned(many_features=1_000_000),
    "no second moments": _tuned(max_moments=1),
    "no momentum": _tuned(momentum=0.0),
    "no adjusted tails": _tuned(heavy_tail_ratio=1e9),
    "no matched frequencies": _without("labels:MatchFrequencies"),
    "no prior of scales": (Change("summaries.prior", "LEAST_DETECTED", 0.0),),
    "one closer histogram": (
        Change("summaries.column_summaries:ColumnSummaries", "zooms", 1),
    ),
}  # fmt: skip
"""Each without one part; what the part would have cost goes to the others."""

VARIANTS = {"as is": (), OTHER_SEEDS: (), **PARTS}


def changes(variant: str) -> tuple[Change, ...]:
    """Those of one of the `VARIANTS`, or of "NAME VALUE ...": tuned numbers and other values."""
    if variant in VARIANTS:
        return VARIANTS[variant]
    words, numbers = variant.split(), {field.name: field.default for field in fields(Tuning)}
    if len(words) % 2 or not numbers.keys() >= set(words[::2]):
        raise ValueError(f"{variant!r} is none of {[*VARIANTS]}, and names no number of Tuning.")
    given = zip(words[::2], words[1::2], strict=True)
    return _tuned(**{name: type(numbers[name])(value) for name, value in given})


@contextmanager
def changed(variant: str) -> Iterator[None]:
    """The library with one part or number changed."""
    with ExitStack() as stack:
        for owner, name, value in changes(variant):
            module, _, inner = owner.partition(":")
            where = importlib.import_module(f"privtail.{module}")
            for part in inner.split(".") if inner else ():
                where = getattr(where, part)
            defaults = getattr(getattr(where, "__init__", None), "__kwdefaults__", None) or {}
            stack.enter_context(
                mock.patch.dict(defaults, {name: value})
                if name in defaults
                else mock.patch.object(where, name, value)
            )
        yield
