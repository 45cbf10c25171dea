"""The sensitivity of an answer: how far one record can change it, from public numbers alone.

Formal guarantee
----------------
A `Sensitivity` bounds, in units of the integer grid, the change of an int64 vector when one record
is emptied (``radius``, zero-out neighbours) or replaced (``diameter``, replace-one neighbours), in
the norms l1, l2 and l-infinity. After every operation these are still bounds:

* ``scale``, ``shift``, ``negate``: a constant factor, constant or sign; the bounds stay.
* ``abs``: | |a| - |b| | <= |a - b| in every coordinate; the bounds stay.
* ``take``: a norm of fewer coordinates is not larger.
* ``mirror``: (a, -a) changes by (e, -e), whose l1 and l2 norms are 2 and sqrt 2 times those of e.

All norms are then tightened by |e|_inf <= |e|_2 <= |e|_1, |e|_2^2 <= |e|_1 |e|_inf,
|e|_2 <= sqrt(size) |e|_inf and |e|_1 <= sqrt(size) |e|_2, rounded up. The largest magnitude that
any data could produce is below 2^62, checked from public numbers before any record is read.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

from privtail.errors import InvalidInput, require_whole

INTEGER_LIMIT = 2**62


def _up(x: float) -> float:
    """Next double above a computed positive bound; exact integers below 2^53 stay."""
    exact = x < 2**53 and x == int(x)
    return x if exact else math.nextafter(x * (1 + 2**-50), math.inf)


def _times(x: float, factor: int) -> float:
    """The product, rounded up."""
    product = x * factor
    exact = math.isinf(product) or Fraction(product) >= Fraction(x) * factor
    return product if exact else math.nextafter(product, math.inf)


@dataclass(frozen=True)
class Norms:
    """Upper bounds on the l1, l2 and l-infinity norm of a change, in grid units."""

    l1: float
    l2: float
    linf: float

    def times(self, factor: int) -> Norms:
        """Bounds on ``factor`` such changes, one after the other (triangle inequality)."""
        return Norms(*(_times(x, factor) for x in (self.l1, self.l2, self.linf)))

    def tightened(self, size: int) -> Norms:
        """The least bounds that follow from these for a vector of ``size`` coordinates."""
        linf = min(self.linf, self.l2, self.l1)
        l2 = min(self.l2, self.l1)
        for candidate in (math.sqrt(size) * linf, math.sqrt(self.l1 * linf)):
            l2 = min(l2, _up(candidate))
        l1 = min(self.l1, size * linf, _up(math.sqrt(size) * l2))
        return Norms(l1, l2, linf)


@dataclass(frozen=True)
class Sensitivity:
    """The public facts of an answer before its release: size, unit, and bounds of its change.

    Attributes
    ----------
    size : number of coordinates.
    unit : real value of one grid step.
    radius, diameter : bounds on the change under ``zero_out`` and ``replace_one`` of the unit of
        privacy: one row, or one person.
    magnitude : the largest absolute integer that any data could produce.
    one_signed : every record moves all coordinates in one direction.
    question : the name of the question, for the statement.
    recipe : the question with its public parameters, then every operation on the answer that
        changes the bounds or the unit. `verify` derives the same sensitivity from it.
    """

    size: int
    unit: float
    radius: Norms
    diameter: Norms
    magnitude: int
    one_signed: bool = False
    question: str = ""
    recipe: tuple[tuple[Any, ...], ...] = ()

    def __post_init__(self) -> None:
        if self.magnitude >= INTEGER_LIMIT:
            raise InvalidInput(
                f"The sum for {self.question or 'this question'} could reach 2^"
                f"{self.magnitude.bit_length()}, beyond the 2^62 of exact integers. Use fewer "
                "rows per batch (PoissonBatches or DisjointParts)."
            )
        object.__setattr__(self, "radius", self.radius.tightened(self.size))
        object.__setattr__(self, "diameter", self.diameter.tightened(self.size))

    def take(self, count: int) -> Sensitivity:
        """The bounds for ``count`` of the coordinates."""
        count = require_whole("count", count, 0)
        if count > self.size:
            raise InvalidInput(f"Cannot take {count} of {self.size} coordinates.")
        return replace(self, size=count, recipe=(*self.recipe, ("take", count)))

    def scale(self, factor: float) -> Sensitivity:
        """The bounds for the value times a positive number."""
        recipe = (*self.recipe, ("scale", float(factor)))
        return replace(self, unit=self.unit * factor, recipe=recipe)

    def abs(self) -> Sensitivity:
        """The bounds for absolute values."""
        return replace(self, one_signed=False, recipe=(*self.recipe, ("abs",)))

    def mirror(self) -> Sensitivity:
        """The bounds for the value followed by its negative."""

        def doubled(e: Norms) -> Norms:
            return Norms(2 * e.l1, _up(math.sqrt(2) * e.l2), e.linf)

        return replace(
            self,
            size=2 * self.size,
            radius=doubled(self.radius),
            diameter=doubled(self.diameter),
            one_signed=False,
            recipe=(*self.recipe, ("mirror",)),
        )
