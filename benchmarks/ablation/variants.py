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

VARIANTS: dict[str, tuple[Change, ...]] = {
    "as is": (),
    OTHER_SEEDS: (),
    "50 steps": (Change("algorithms.scaled_descent:ScaledDescent", "steps", 50),),
    "25 steps": (Change("algorithms.scaled_descent:ScaledDescent", "steps", 25),),
    "scale_share x 2": (Change("algorithms.scaled_descent:ScaledDescent", "scale_share", 1.2),),
    "scale_share / 2": (Change("algorithms.scaled_descent:ScaledDescent", "scale_share", 0.3),),
}


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
