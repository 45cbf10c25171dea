"""Features that are declared of columns: functions of one row and public numbers.

Each has one way to be written, `str`, which `parsed` reads: on the command line, and in models.
"""

from __future__ import annotations

import functools
import itertools
import json
import math
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privtail.errors import InvalidInput, told

Doubles = NDArray[np.float64]

FORMS = (
    "bins(age, 20, 40), spline(age, 20, 40, 60), log(income), log(income, 1), "
    "cross(region, fuel), or the name of a column"
)
DEGREES = (1, 3)
_DEEPEST = 8


@dataclass(frozen=True)
class Bins:
    """Which of the intervals between ``edges`` a number lies in; see `privtail.features.bins`."""

    column: str
    edges: tuple[float, ...]

    def __post_init__(self) -> None:
        object.__setattr__(self, "column", _column("bins", self.column))
        object.__setattr__(self, "edges", _ascending("bins", "edges", self.edges, 1))

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns that it is a function of."""
        return (self.column,)

    @property
    def levels(self) -> tuple[str, ...]:
        """Names of the intervals; each holds its lower end."""
        edges = [f"{edge:g}" for edge in self.edges]
        if len(set(edges)) < len(edges):
            edges = [repr(edge) for edge in self.edges]
        name = self.column
        between = (f"{low}<={name}<{high}" for low, high in itertools.pairwise(edges))
        return f"{name}<{edges[0]}", *between, f"{name}>={edges[-1]}"

    def __str__(self) -> str:
        return _written("bins", self.column, *self.edges)


@dataclass(frozen=True)
class Spline:
    """A B-spline basis over ``knots``; see `privtail.features.spline`."""

    column: str
    knots: tuple[float, ...]
    degree: int = 3

    def __post_init__(self) -> None:
        object.__setattr__(self, "column", _column("spline", self.column))
        object.__setattr__(self, "knots", _ascending("spline", "knots", self.knots, 2))
        if isinstance(self.degree, bool) or self.degree not in DEGREES:
            raise InvalidInput(f"spline needs degree=1 or degree=3, got {told(self.degree)}.")
        object.__setattr__(self, "degree", DEGREES[DEGREES.index(self.degree)])
        _pieces(self.knots, self.degree)  # which refuses knots: a fit would do so after its charge

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns that it is a function of."""
        return (self.column,)

    @property
    def levels(self) -> tuple[str, ...]:
        """Names of the functions of the basis but the first: all of them add up to 1."""
        count = len(self.knots) + self.degree - 2
        return tuple(f"spline({self.column})[{k}]" for k in range(1, count + 1))

    @property
    def pieces(self) -> Doubles:
        """(degree + 1, intervals, features): polynomials of x minus the knot to its left.

        The highest power comes first.
        """
        return _pieces(self.knots, self.degree)

    def __str__(self) -> str:
        name = "spline" if self.degree == 3 else "linear_spline"
        return _written(name, self.column, *self.knots)


@dataclass(frozen=True)
class Log:
    """The logarithm of a column plus a number; see `privtail.features.log`."""

    column: str
    plus: float = 0.0

    def __post_init__(self) -> None:
        object.__setattr__(self, "column", _column("log", self.column))
        object.__setattr__(self, "plus", _number("log", "plus", self.plus))

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns that it is a function of."""
        return (self.column,)

    @property
    def levels(self) -> tuple[str, ...]:
        """Its name."""
        more = f"{self.plus:+g}" if self.plus else ""
        return (f"log({self.column}{more})",)

    def __str__(self) -> str:
        return _written("log", self.column, *([self.plus] if self.plus else []))


@dataclass(frozen=True)
class Cross:
    """Products of the features of two columns; see `privtail.features.cross`."""

    left: Feature
    right: Feature

    def __post_init__(self) -> None:
        for name in ("left", "right"):
            side = getattr(self, name)
            if any(type(side) is kind for kind in (Bins, Spline, Log, Cross)):
                object.__setattr__(self, name, replace(side))
            elif isinstance(side, str):
                object.__setattr__(self, name, str.__str__(side))
            else:
                raise InvalidInput(
                    f"cross takes names of columns and features of them, got {told(side)}."
                )
        if self.left == self.right:
            raise InvalidInput(f"cross needs two different columns, got {self.left!r} twice.")
        if self.depth > _DEEPEST:
            raise InvalidInput(f"A cross may hold crosses {_DEEPEST} deep at most. Leave one out.")

    @property
    def depth(self) -> int:
        """How many crosses are in each other."""
        return 1 + max(s.depth if isinstance(s, Cross) else 0 for s in (self.left, self.right))

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns that it is a function of."""
        sides = ((s,) if isinstance(s, str) else s.columns for s in (self.left, self.right))
        return tuple(dict.fromkeys(name for side in sides for name in side))

    def __str__(self) -> str:
        return f"cross({written(self.left)}, {written(self.right)})"


OfOneColumn = Bins | Spline | Log
Feature = str | Bins | Spline | Log | Cross
"""A column as it is, or what is made of columns."""


def written(feature: Feature) -> str:
    """A feature as `parsed` reads it."""
    return _name(feature) if isinstance(feature, str) else str(feature)


def parsed(text: str) -> Feature:
    """The feature that somebody typed.

    Names that hold a comma, a bracket, a quote or a space at an end are typed in double quotes, as
    in JSON.

    Raises
    ------
    InvalidInput
        If the text is none, with the forms that there are.
    """
    words = list(_words(text))
    try:
        feature, rest = _feature(words, text)
    except (IndexError, RecursionError):
        raise _unread(text) from None
    if rest:
        raise _unread(text)
    return feature


# --- reading --------------------------------------------------------------------------------------

_WORD = re.compile(r'\s*(?:(?P<quoted>"(?:[^"\\]|\\.)*")|(?P<mark>[(),])|(?P<plain>[^(),"]+))')


def _words(text: str) -> Iterator[tuple[str, str]]:
    """Kind and text of one word after the other: ``quoted``, ``mark`` or ``plain``."""
    place, text = 0, text.strip()
    while place < len(text):
        found = _WORD.match(text, place)
        if found is None or found.lastgroup is None:
            raise _unread(text)
        word = found[found.lastgroup]
        if found.lastgroup == "quoted":
            try:
                word = json.loads(word)
            except ValueError:
                raise _unread(text) from None
        yield found.lastgroup, word.strip() if found.lastgroup == "plain" else word
        place = found.end()


def _feature(words: list[tuple[str, str]], text: str) -> tuple[Feature, list[tuple[str, str]]]:
    """The first feature among words, and the words after it."""
    (kind, name), rest = words[0], words[1:]
    if kind == "mark" or not name:
        raise _unread(text)
    if kind == "quoted" or not rest or rest[0] != ("mark", "("):
        return name, rest
    arguments: list[Feature] = []
    rest = rest[1:]
    while True:
        one, rest = _feature(rest, text)
        arguments.append(one)
        mark, rest = rest[0], rest[1:]
        if mark == ("mark", ")"):
            return _called(name, arguments, text), rest
        if mark != ("mark", ","):
            raise _unread(text)


def _called(name: str, arguments: list[Feature], text: str) -> Feature:
    if name == "cross" and len(arguments) == 2:
        return Cross(*arguments)
    column, numbers = arguments[0], arguments[1:]
    if not isinstance(column, str):
        raise _unread(text)
    try:
        values = tuple(float(one) for one in numbers)  # type: ignore[arg-type]
    except (TypeError, ValueError):
        raise _unread(text) from None
    if name == "bins":
        return Bins(column, values)
    if name in ("spline", "linear_spline"):
        return Spline(column, values, 3 if name == "spline" else 1)
    if name == "log" and len(values) <= 1:
        return Log(column, *values)
    raise _unread(text)


def _unread(text: str) -> InvalidInput:
    return InvalidInput(f"The feature {text!r} is not understood. Type one of these: {FORMS}.")


# --- writing --------------------------------------------------------------------------------------


def _written(name: str, column: str, *numbers: float) -> str:
    shown = (str(int(x)) if x.is_integer() and abs(x) < 1e15 else repr(x) for x in numbers)
    return f"{name}({', '.join([_name(column), *shown])})"


def _name(column: str) -> str:
    plain = re.fullmatch(r'[^(),"\s]([^(),"]*[^(),"\s])?', column)
    return column if plain else json.dumps(column, ensure_ascii=False)


# --- checks ---------------------------------------------------------------------------------------


def _column(of: str, name: Any) -> str:
    if not isinstance(name, str) or not name:
        raise InvalidInput(f"{of} takes the name of a column first, got {told(name)}.")
    return str.__str__(name)


def _number(of: str, what: str, value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, Real) or not math.isfinite(value):
        raise InvalidInput(f"{what} of {of} must be a finite number, got {told(value)}.")
    return float(value)


def _ascending(of: str, what: str, values: Any, least: int) -> tuple[float, ...]:
    listed = isinstance(values, Sequence | np.ndarray) and not isinstance(values, str)
    if not listed or len(values) < least:
        given = f"a list of {len(values)}" if listed else told(values)
        raise InvalidInput(
            f"{of} needs a list of {least} or more public {what}, got {given}.",
            "privtail.features.private_knots(column, epsilon=...) releases such a list.",
            cli=f"Type for example: --feature '{of}(age, 20, 40, 60)'",
        )
    numbers = tuple(_number(of, what, value) for value in values)
    if any(high <= low for low, high in itertools.pairwise(numbers)):
        raise InvalidInput(f"{what} of {of} must ascend. Sort them, and give each once.")
    return numbers


@functools.lru_cache(maxsize=64)
def _pieces(knots: tuple[float, ...], degree: int) -> Doubles:
    from scipy.interpolate import BSpline

    t = np.array([*[knots[0]] * degree, *knots, *[knots[-1]] * degree])
    basis, left = BSpline(t, np.eye(len(knots) + degree - 1), degree), np.array(knots[:-1])
    with np.errstate(all="ignore"):
        powers = [basis.derivative(m)(left) / math.factorial(m) if m else basis(left)
                  for m in range(degree, -1, -1)]  # fmt: skip
    pieces = np.array(powers)[:, :, 1:]
    if not np.isfinite(pieces).all():
        raise InvalidInput(
            f"The knots {list(knots)} are too near each other, or too far apart, for splines. Take "
            "others."
        )
    pieces.flags.writeable = False
    return pieces
