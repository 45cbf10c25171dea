"""Changes of one part or one number of the default: all that knows how it is written."""

from __future__ import annotations

import importlib
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any, NamedTuple
from unittest import mock


class Change(NamedTuple):
    """``name`` of a module, or a field's default of a class, below ``privtail.``; the new value."""

    owner: str
    name: str
    value: Any


OTHER_SEEDS = "other seeds"
"""Not a change: what noise alone does to the comparison."""

_SCALED = "default.scaled_descent:ScaledDescent"


def _number(name: str, *values: float) -> dict[str, tuple[Change, ...]]:
    """Other values of a parameter of `ScaledDescent`."""
    return {f"{name} {value:g}": (Change(_SCALED, name, value),) for value in values}


def _uncalibrated(_: Any, curator: Any, loss: Any, w: Any, constant: Any) -> Any:
    return importlib.import_module("privtail.default.calibration").Calibrated(w)


PARTS: dict[str, tuple[Change, ...]] = {
    "no wide threshold": (Change(_SCALED, "_wide", lambda *_: (0, False)),),
    "no outlier check": (
        Change("default.outliers:OutlierCheck", "plan", lambda *_: ()),
        Change("default.outliers:OutlierCheck", "run", lambda *_: False),
    ),
    "no calibration": (
        Change("default.calibration:Calibration", "plan", lambda *_: ()),
        Change("default.calibration:Calibration", "run", _uncalibrated),
    ),
    "no prior of scales": (Change("summaries.prior", "SHOWN", 0.0),),
    "no selection": (Change("default.few_features", "MANY", 1_000_000),),
    "no short descent": (
        Change("default.short_descent:ShortDescent", "_noisy", lambda *_: False),
    ),
    "no leaving halfway": (Change("default.descent", "STAYING", 0.0),),
    "no thresholding": (
        Change(
            "default.descent:Descent", "thinned",
            lambda self, w, threshold, steps, _: self.run(w, threshold, steps),
        ),
    ),
    "one closer histogram": (
        Change("summaries.column_summaries:ColumnSummaries", "zooms", 1),
    ),
}  # fmt: skip
"""Each without one part; what the part would have cost goes to the others."""

NUMBERS: dict[str, tuple[Change, ...]] = {
    **_number("steps", 12, 50),
    **_number("level", 0.6, 0.9),
    **_number("most_noise", 0.5, 2),
    **_number("scale_share", 0.3, 1.2),
    **_number("moment_share", 0.05, 0.2),
    **_number("size_share", 0.025, 0.1),
    **_number("comparison_share", 0.025, 0.1),
    "largest share 12": (Change("default.scaled_descent", "LARGEST_SHARE", 12.0),),
    "largest share 48": (Change("default.scaled_descent", "LARGEST_SHARE", 48.0),),
}
"""Halved, doubled; labels have a ``scale_share`` of their own."""

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
