"""Checks of public parameters: of an algorithm, and of what its presets by theorems are given."""

from __future__ import annotations

import functools
import inspect
import math
from collections.abc import Callable
from dataclasses import fields
from numbers import Real
from typing import Any, ClassVar, ParamSpec, TypeVar

from privtail.errors import IncompatibleParts, InvalidInput, real, require_whole

P = ParamSpec("P")
R = TypeVar("R")

WHOLE = {"steps", "most_steps", "rows", "points", "sparsity", "blocks", "n", "d", "batch"}
"""Counts, of at least 1."""
ANY_SIZE = {"threshold", "scale"}
"""Positive numbers that may be infinite: then nothing is bounded."""
PARTS = {
    "mean": (("range", "blocks"), "ClippedMean(1.0) of privtail.robust_means"),
    "peeling": (("events", "release"), "OneShotPeeling(sparsity=5)"),
    "geometry": (("check", "step"), "Euclidean() of privtail.algorithms.bregman"),
}
"""Parameters that are objects: what they have, and an example."""


class Checked:
    """Abstract: an algorithm whose parameters are checked when it is made."""

    longest_step: ClassVar[float] = math.inf

    def __post_init__(self) -> None:
        values: Any = self
        for field in fields(values):
            _check(field.name, getattr(self, field.name), self.longest_step)


def _check(name: str, value: Any, longest_step: float) -> None:
    if name in WHOLE:
        require_whole(name, value, 1)
    elif name in ANY_SIZE:
        if not real(name, value) > 0:
            raise InvalidInput(f"{name} must be a number above 0, got {value!r}.")
    elif name == "step_size":
        _require_positive(name, value)
        if value > longest_step:
            raise InvalidInput(f"step_size must be at most {longest_step:g}, got {value!r}.")
    elif name in ("truncation", "radius"):
        _require_positive(name, value)
    elif name == "failure_probability":
        _require_probability(name, value)
    elif name == "decay" and not 0 <= real(name, value) < math.inf:
        raise InvalidInput(f"decay must be 0 or a number above 0, got {value!r}.")
    elif name in PARTS and not all(hasattr(value, part) for part in PARTS[name][0]):
        raise IncompatibleParts(
            f"{name} must be an object such as {PARTS[name][1]}, got a {type(value).__name__}."
        )


def preset(make: Callable[P, R]) -> Callable[P, R]:
    """A constructor by a theorem that refuses numbers of which the theorem does not speak."""
    signature = inspect.signature(make)

    @functools.wraps(make)
    def checked(*args: P.args, **kwargs: P.kwargs) -> R:
        given = signature.bind(*args, **kwargs).arguments
        for name, value in given.items():
            if name in WHOLE and value is not None:
                require_whole(name, value, 1)
            elif name == "failure_probability":
                _require_probability(name, value)
            elif isinstance(value, Real) and name not in ("low", "high", "decay", "printed"):
                _require_positive(name, value)
        weak, strong = given.get("curvature", 1.0), given.get("strong_convexity")
        if strong is not None and strong > weak:
            raise InvalidInput(
                f"strong_convexity must be at most curvature, which is {weak!r}; got {strong!r}."
            )
        return make(*args, **kwargs)

    return checked


def _require_positive(name: str, value: Any) -> None:
    if not 0 < real(name, value) < math.inf:
        raise InvalidInput(f"{name} must be positive and finite, got {value!r}.")


def _require_probability(name: str, value: Any) -> None:
    if not 0 < real(name, value) < 1:
        raise InvalidInput(f"{name} must lie between 0 and 1, got {value!r}. Use 0.05.")
