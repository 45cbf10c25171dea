"""The terms of a ledger, its entries, and sums of decimals."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields, replace
from fractions import Fraction
from types import MappingProxyType
from typing import Any, Literal

from privtail.errors import InvalidInput, real, told
from privtail.ledger_texts import share_above_total
from privtail.spelling import printable
from privtail.trusted.budget import Budget, Neighbours

Composition = Literal["basic", "zcdp", "gdp"]
Unit = Literal["row", "person"]
Amount = Fraction | float  # a float only when infinite

NAMES = ("analyst", "purpose", "data_set")
"""What a charge may say of itself."""

SLACK_SHARE = Fraction(1, 100)
"""Part of delta for plans that a theorem describes but for a small probability."""


@dataclass(frozen=True)
class Terms:
    """The total that a ledger promises; fixed for ever when it is made.

    ``data_set`` names what it is a budget of; None for no name. ``analysts`` are those who may
    charge it, with the epsilon that each may spend in all; None for everybody.
    """

    epsilon: float
    delta: float = 0.0
    neighbours: Neighbours = "replace_one"
    composition: Composition = "basic"
    data_set: str | None = None
    analysts: Mapping[str, float] | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "data_set", require_name("data_set", self.data_set))
        object.__setattr__(self, "analysts", _analysts(self.analysts))
        object.__setattr__(self, "epsilon", _number("epsilon", self.epsilon))
        object.__setattr__(self, "delta", _number("delta", self.delta))
        promised = Budget(self.epsilon, self.delta, self.neighbours)
        object.__setattr__(self, "neighbours", promised.neighbours)
        own = [kind for kind in ("basic", "zcdp", "gdp") if kind == self.composition]
        if not own:
            raise InvalidInput(
                f"composition must be 'basic', 'zcdp' or 'gdp', got {told(self.composition)}."
            )
        object.__setattr__(self, "composition", own[0])  # limits and sums are of one
        if self.composition != "basic" and (self.delta < 1e-300 or self.epsilon > 1e100):
            raise InvalidInput(
                f"{self.composition} composition needs an epsilon of at most 1e100 and a delta of "
                f"at least 1e-300; got {self.epsilon!r}, {self.delta!r}.",
                "For example epsilon=1.0, delta=1e-6; composition='basic' takes all.",
                cli="For example --epsilon 1 --delta 1e-6; --composition basic takes all.",
            )

    @classmethod
    def of(cls, given: Mapping[str, Any]) -> Terms:
        """The terms of a new ledger; a finite epsilon needs a delta, be it 0.

        Raises
        ------
        InvalidInput
            If a number is missing or cannot be used, or an analyst may spend more than the total.
        """
        terms = cls(**given)
        if "delta" not in given and math.isfinite(terms.epsilon):
            raise InvalidInput(
                "Say how much delta may be spent in all, since most fits need some and a budget "
                "cannot be changed:",
                f"epsilon={terms.epsilon:g}, delta=1e-5; with delta=0 for pure epsilon-DP alone.",
                cli=f"--epsilon {terms.epsilon:g} --delta 1e-5",
            )
        for name, share in (terms.analysts or {}).items():
            if share > terms.epsilon:
                raise share_above_total(name, share, terms.epsilon)
        return terms

    def of_analyst(self, name: str) -> Terms | None:
        """The limit of one of the analysts; None where there is none."""
        if self.analysts is None:
            return None
        return replace(self, epsilon=min(self.analysts[name], self.epsilon), analysts=None)

    @property
    def content(self) -> dict[str, Any]:
        """The fields by name, as plain numbers, texts and dictionaries."""
        shares = None if self.analysts is None else dict(self.analysts)
        return {f.name: getattr(self, f.name) for f in fields(self)} | {"analysts": shares}

    @functools.cached_property
    def limits(self) -> tuple[Amount, Amount]:
        """Largest sums of losses and of slacks."""
        loss, delta = decimal(self.epsilon), decimal(self.delta)
        if self.composition == "basic":
            return loss, delta
        from privtail.trusted.accounting.curves import GaussianDP, ZeroConcentratedDP

        curve = ZeroConcentratedDP if self.composition == "zcdp" else GaussianDP
        target = self.delta * (1 - float(SLACK_SHARE)) * (1 - 1e-12)
        largest = _largest(lambda x: curve(x).delta(self.epsilon) <= target)
        power = 2 if self.composition == "gdp" else 1
        return Fraction(largest) ** power, delta * SLACK_SHARE

    def __str__(self) -> str:
        return printable(
            f"ε = {self.epsilon:.6g}, δ = {self.delta:.6g}, {self.neighbours.replace('_', '-')} "
            f"neighbours, {self.composition} composition"
        )


@dataclass(frozen=True, kw_only=True)
class Entry:
    """One reserved plan.

    Attributes
    ----------
    number : 1 for the first plan of the ledger.
    label : what was fitted.
    epsilon, delta, mu, rho : its cost; mu and rho where the theorem applies.
    slack : probability that mu (or rho) does not describe the plan.
    neighbours : the relation of the cost.
    plan : its rounds, as JSON.
    time, pid : when, in UTC, and by which process; for the reader only.
    analyst, purpose, data_set : who asked, what for, and of which data set, where that was said.
    unit : whose neighbours: those of one row, or of one person with several.
    """

    number: int
    label: str
    epsilon: float
    delta: float
    mu: float | None
    rho: float | None
    slack: float
    neighbours: Neighbours
    plan: list[dict[str, Any]]
    time: str
    pid: int
    unit: Unit = "row"
    analyst: str | None = None
    purpose: str | None = None
    data_set: str | None = None

    def __post_init__(self) -> None:
        if self.unit not in ("row", "person"):
            raise InvalidInput(f"unit must be 'row' or 'person', got {self.unit!r}.")
        for name in ("label", "time"):
            object.__setattr__(self, name, _line(name, getattr(self, name)))
        for name in NAMES:
            object.__setattr__(self, name, require_name(name, getattr(self, name)))
        for name in ("epsilon", "delta", "mu", "rho", "slack"):
            value = getattr(self, name)
            if value is not None or name not in ("mu", "rho"):
                object.__setattr__(self, name, _number(name, value))
        if self.delta >= 1:
            raise InvalidInput(f"delta must lie in [0, 1), got {self.delta!r}.")


def require_name(name: str, value: object) -> str | None:
    """None, or one line of printable text as it is now; all else is refused."""
    line = None if value is None else _line(name, value)
    if line == "":
        raise InvalidInput(f"{name} must not be empty.")
    return line


def _analysts(given: object) -> Mapping[str, float] | None:
    """A copy of names and limits that nobody can change."""
    if given is None:
        return None
    if not isinstance(given, Mapping) or not given:
        raise InvalidInput(
            'analysts must map each name to an epsilon, for example analysts={"ann": 0.5}.'
        )
    found = {}
    for key, epsilon in given.items():
        name = _line("the name of an analyst", key)
        found[name] = _number(f"the epsilon of {name!r}", epsilon)
        if not 0 < found[name] < math.inf:
            raise InvalidInput(f"The epsilon of {name!r} must be positive and finite.")
    return MappingProxyType(found)


def _line(name: str, value: object) -> str:
    """Plain text: one of a class of its own could compare as another name each time."""
    line = str.__str__(value) if isinstance(value, str) else "\n"
    if not line.isprintable():
        raise InvalidInput(f"{name} must be one line of printable text, got {told(value)}.")
    return line


def _number(name: str, value: object) -> float:
    number = real(name, value)
    if not number >= 0:
        raise InvalidInput(f"{name} must not be negative or NaN, got {value!r}.")
    return number


def decimal(x: float) -> Amount:
    """The decimal number that ``repr`` shows."""
    return Fraction(repr(x)) if math.isfinite(x) else x


def float_above(x: Amount) -> float:
    """The least double whose decimal is not below x."""
    nearest = float(x)
    return nearest if decimal(nearest) >= x else math.nextafter(nearest, math.inf)


def float_below(x: Amount) -> float:
    """The largest double whose decimal is not above x."""
    nearest = float(x)
    return nearest if decimal(nearest) <= x else math.nextafter(nearest, 0.0)


def _largest(admitted: Callable[[float], bool]) -> float:
    """The largest double, up to one part in 10^12 and rounded down, that is admitted."""
    low, high = 0.0, 1.0
    while admitted(high):
        low, high = high, 2 * high
    while high - low > 1e-12 * high and high > 1e-300:
        middle = 0.5 * (low + high)
        low, high = (middle, high) if admitted(middle) else (low, middle)
    return low
