"""Robust means: a bounded influence function, its range, and a number of public blocks.

Formal guarantee (the lemma)
----------------------------
A row is mapped into a bounded range; rows are dealt by id to k public blocks; the answer is the
coordinatewise median of the k block sums times k/n. Replacing one record moves one block sum by at
most diameter_p(range) in lp, and the median of any coordinate by no more than that block's
coordinate moved; so the answer moves by at most k diameter_p(range) / n in every lp, whatever the
influence function. For even k the median is the mean of the two middle sums: it is kept as their
integer sum on half the unit, which one block moves by no more than its own change. Emptying a
record: radius for diameter. The kernels force whatever an influence function returns onto the
range, so a new mean needs no proof: those of the papers are outside, in `privtail.robust_means`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Protocol

from privtail.errors import IncompatibleParts, InvalidInput, require_whole
from privtail.trusted.kernels import CATONI, CLAMP, FRACTION_DEGREE, TRUNCATE
from privtail.trusted.sensitivity import Norms

__all__ = [
    "CATONI",
    "CLAMP",
    "FRACTION_DEGREE",
    "TRUNCATE",
    "Ball",
    "CheckedMean",
    "Interval",
    "RobustMean",
    "checked_mean",
]  # fmt: skip


@dataclass(frozen=True)
class Ball:
    """Contributions of l2 norm at most ``radius``; 2^b grid steps.

    With a finite ``reach``, row and derivative are shrunk first: the row z to this length, the
    derivative in its margins to radius / reach. So far as that leaves the ball, it is enforced.
    """

    radius: float
    reach: float = math.inf

    def __post_init__(self) -> None:
        if not (self.radius > 0 and self.reach > 0):
            raise InvalidInput("A Ball needs a radius and a reach above zero.")

    def norms(self, size: int, bits: int) -> tuple[Norms, Norms]:
        """Radius and diameter of the range in grid units."""
        R = 2.0**bits
        return Norms(math.inf, R, R), Norms(math.inf, 2 * R, 2 * R)


@dataclass(frozen=True)
class Interval:
    """Entries in [-limit, limit] x ``radius`` (or [0, limit] when ``one_signed``).

    The kernels sum integers up to 2^b as doubles and read the coefficients unchecked, so another
    limit, kind or number of coefficients is refused here.

    Parameters
    ----------
    radius : unit of the entries.
    kind : influence function of `kernels`.
    coefficients : of the smoothed influence, as `catoni_fraction` gives them.
    limit : in units of ``radius``, in (0, 1].
    one_signed : whether the entries are not negative.
    """

    radius: float
    kind: int = CLAMP
    coefficients: tuple[float, ...] = (0.0,) * (2 * FRACTION_DEGREE)
    limit: float = 1.0
    one_signed: bool = False

    def __post_init__(self) -> None:
        known = self.kind in (CLAMP, TRUNCATE, CATONI) and 0 < self.limit <= 1 and self.radius > 0
        unsaid = self.kind == CATONI and not any(self.coefficients)
        if not known or unsaid or len(self.coefficients) != 2 * FRACTION_DEGREE:
            raise InvalidInput(
                "An Interval needs a known kind of influence, a radius above zero, a limit in "
                "(0, 1], and the coefficients of catoni_fraction() for the smoothed one."
            )

    def steps(self, bits: int) -> int:
        """The largest integer an entry can become: ``limit`` rounded down to the grid."""
        return math.floor(self.limit * 2.0**bits)

    def norms(self, size: int, bits: int) -> tuple[Norms, Norms]:
        """Radius and diameter of the range in grid units."""
        c = float(self.steps(bits))
        width = c if self.one_signed else 2 * c
        return Norms(size * c, math.inf, c), Norms(size * width, math.inf, width)


class RobustMean(Protocol):
    """The attributes of a robust mean that the core reads: its range and its blocks."""

    @property
    def blocks(self) -> int:
        """Number of public blocks; 1 is the plain mean."""
        ...

    @property
    def range(self) -> Ball | Interval:
        """The range of contributions, and the influence function that maps them to it."""
        ...


@dataclass(frozen=True)
class CheckedMean:
    """A checked copy of a robust mean: its range and its blocks, in plain numbers."""

    range: Ball | Interval
    blocks: int


def checked_mean(mean: RobustMean) -> CheckedMean:
    """A checked copy of a mean. Its sum and its sensitivity come from this one reading.

    The copy has plain numbers, because an object that divides could look at all that it divides.
    """
    box = mean.range
    blocks = require_whole("blocks", mean.blocks, 1)
    if type(box) is Ball:
        return CheckedMean(Ball(float(box.radius), float(box.reach)), blocks)
    if type(box) is not Interval:
        raise IncompatibleParts(
            "The range of a mean must be a Ball or an Interval: their sensitivities are proved."
        )
    coefficients = tuple(float(c) for c in box.coefficients)
    limit, one_signed = float(box.limit), bool(box.one_signed)
    return CheckedMean(
        Interval(float(box.radius), int(box.kind), coefficients, limit, one_signed), blocks
    )
