"""Checks of public parameters: those of an algorithm, and the arguments of its presets."""

from __future__ import annotations

import functools
import inspect
import math
from collections.abc import Callable
from dataclasses import fields
from numbers import Integral, Real
from operator import index
from typing import Any, ClassVar, ParamSpec, TypeVar

from privtail.errors import IncompatibleParts, InvalidInput, real, require_whole

P = ParamSpec("P")
R = TypeVar("R")

WHOLE = {"steps", "most_steps", "rows", "points", "sparsity", "blocks", "n", "d", "batch"}
"""Counts, of at least 1."""
ANY_SIZE = {"threshold", "scale"}
"""Positive numbers that may be infinite: then nothing is bounded."""
AT_MOST = {"truncation": 1e100, "radius": 1e100}
"""Sizes whose square is a number, too."""
PARTS = {
    "mean": (("range", "blocks"), "ClippedMean(1.0) of privtail.robust_means"),
    "peeling": (("events", "release"), "OneShotPeeling(sparsity=5)"),
    "geometry": (("check", "step"), "Euclidean() of privtail.algorithms.bregman"),
}
"""Parameters that are objects: what they have, and an example."""


class Checked:
    """Abstract: an algorithm whose parameters are checked when it is made.

    What is checked is kept, as a plain number: a number of a class of its own, or one that changes,
    would be another one in the plan than in the run.
    """

    longest_step: ClassVar[float] = math.inf
    fewest_steps: ClassVar[int] = 1

    def __post_init__(self) -> None:
        values: Any = self
        for field in fields(values):
            least = self.fewest_steps if field.name == "steps" else 1
            plain = _checked(field.name, getattr(self, field.name), least, self.longest_step)
            object.__setattr__(self, field.name, plain)


def _checked(name: str, value: Any, least: int, longest_step: float) -> Any:
    if name in WHOLE:
        return require_whole(name, value, least)
    if name in ANY_SIZE:
        size = real(name, value)
        if not size > 0:
            raise InvalidInput(f"{name} must be a number above 0, got {size!r}.")
        return size
    if name in AT_MOST or name == "step_size":
        most = AT_MOST.get(name, longest_step)
        size = _positive(name, value)
        if size > most:
            raise InvalidInput(f"{name} must be at most {most:g}, got {size!r}.")
        return size
    if name == "failure_probability":
        return _probability(name, value)
    if name == "decay":
        decay = real(name, value)
        if not 0 <= decay < math.inf:
            raise InvalidInput(f"decay must be 0 or a number above 0, got {decay!r}.")
        return decay
    if name in PARTS and not all(hasattr(value, part) for part in PARTS[name][0]):
        raise IncompatibleParts(
            f"{name} must be an object such as {PARTS[name][1]}, got a {type(value).__name__}."
        )
    if type(value) is not bool and isinstance(value, Integral):
        return index(value)
    return real(name, value) if isinstance(value, Real) else value


def preset(make: Callable[P, R]) -> Callable[P, R]:
    """A constructor from a theorem; it refuses numbers that the theorem does not cover."""
    signature = inspect.signature(make)

    @functools.wraps(make)
    def checked(*args: P.args, **kwargs: P.kwargs) -> R:
        given = signature.bind(*args, **kwargs).arguments
        for name, value in given.items():
            if name in WHOLE and value is not None:
                require_whole(name, value, 1)
            elif name == "failure_probability":
                _probability(name, value)
            elif isinstance(value, Real) and name not in ("low", "high", "decay", "printed"):
                _positive(name, value)
        weak, strong = given.get("curvature", 1.0), given.get("strong_convexity")
        if strong is not None and strong > weak:
            raise InvalidInput(
                f"strong_convexity must be at most curvature, which is {weak!r}; got {strong!r}."
            )
        return make(*args, **kwargs)

    return checked


def _positive(name: str, value: Any) -> float:
    number = real(name, value)
    if not 0 < number < math.inf:
        raise InvalidInput(f"{name} must be positive and finite, got {number!r}.")
    return number


def _probability(name: str, value: Any) -> float:
    number = real(name, value)
    if not 0 < number < 1:
        raise InvalidInput(f"{name} must lie between 0 and 1, got {number!r}. Use 0.05.")
    return number
