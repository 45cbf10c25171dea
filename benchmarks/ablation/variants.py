"""Changes of one part or one number of the default: all that knows how it is written."""

from __future__ import annotations

import importlib
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
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


def _number(name: str, *values: float) -> dict[str, tuple[Change, ...]]:
    """Other values of one tuned number."""
    return {f"{name} {value:g}": _tuned(**{name: value}) for value in values}


def _without(stage: str) -> tuple[Change, ...]:
    """No such stage."""
    return (
        Change(f"default.{stage}", "plan", lambda *_: ()),
        Change(f"default.{stage}", "run", lambda *_: None),
    )


PARTS: dict[str, tuple[Change, ...]] = {
    "no outlier check": _without("outliers:CheckOutliers"),
    "no thresholding of slopes": (
        Change("default.steps", "may_be_zero", lambda _: False),
    ),
    "no selection": _tuned(many_features=1_000_000),
    "no second moments": _tuned(most_moments=1, moments=1e-9),
    "no momentum": _tuned(momentum=0.0),
    "no adjusted tails": _tuned(heavier_tails=1e9),
    "no evidence of slopes": (Change("default.steps", "_evidence", lambda *_: 0.0),),
    "no matched frequencies": _without("intercept:MatchFrequencies"),
    "no shorter margins": (Change("default.acceptance", "PARTS", (1.0, 1.0, 1.0)),),
    "no prior of scales": (Change("summaries.prior", "SHOWN", 0.0),),
    "one closer histogram": (
        Change("summaries.column_summaries:ColumnSummaries", "zooms", 1),
    ),
}  # fmt: skip
"""Each without one part; what the part would have cost goes to the others."""

NUMBERS: dict[str, tuple[Change, ...]] = {
    **_number("steps", 12, 50),
    **_number("clipped", 0.1, 0.4),
    **_number("most_walk", 0.5, 2),
    **_number("column_summaries", 0.3, 1.2),
    **_number("moments", 0.05, 0.2),
    **_number("others", 0.025, 0.1),
    **_number("screening", 1.25, 5),
    **_number("crowded", 0.15, 0.6),
    **_number("label_row_length", 0.25, 1),
}
"""Halved, doubled."""

VARIANTS = {"as is": (), OTHER_SEEDS: (), **PARTS, **NUMBERS}


@contextmanager
def changed(variant: str) -> Iterator[None]:
    """The library with one part or number changed."""
    with ExitStack() as stack:
        for owner, name, value in VARIANTS[variant]:
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
