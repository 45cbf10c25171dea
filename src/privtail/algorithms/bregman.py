"""Bregman proximal steps: argmin over u in C of <g, u> + V(u, x)/step + r(u), where it is known.

V(u, x) = h(u) - h(x) - <grad h(x), u - x> for a distance generating function h that is strongly
convex with modulus 1 in a norm: the words of mirror descent.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar, Protocol, Self

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import brentq

from privtail.domains import L1, Domain, L1Ball, Simplex, Within, require
from privtail.errors import IncompatibleParts, InvalidInput

Doubles = NDArray[np.float64]


class Geometry(Protocol):
    """A distance generating function, and the domains on which its proximal step is known."""

    needs: ClassVar[tuple[str, ...]]

    def check(self, domain: Domain) -> None:
        """Raise IncompatibleParts if the step is not known on this domain."""
        ...

    def step(self, domain: Domain, x: Doubles, g: Doubles, step: float) -> Doubles:
        """The minimiser, of the shape of x."""
        ...


@dataclass(frozen=True)
class Euclidean:
    """h(x) = |x|_2^2 / 2: the proximal gradient step, on every domain with a prox."""

    needs: ClassVar[tuple[str, ...]] = ("prox",)

    def check(self, domain: Domain) -> None:
        """Every domain with a prox will do."""
        require(domain, *self.needs, needed_by="Euclidean")

    def step(self, domain: Domain, x: Doubles, g: Doubles, step: float) -> Doubles:
        """The prox of x - step g."""
        return domain.prox(x - step * g, step)


@dataclass(frozen=True)
class Entropy:
    """h(x) = R sum_j x_j log x_j on the simplex of radius R; modulus 1 in the l1 norm.

    The step multiplies: x_j exp(-step g_j / R), scaled back onto the simplex. A coordinate that is
    0 stays 0.
    """

    needs: ClassVar[tuple[str, ...]] = ("axes", "project")

    def check(self, domain: Domain) -> None:
        """A simplex with corners of one length."""
        if not isinstance(domain, Simplex):
            raise IncompatibleParts("Entropy is the geometry of a Simplex: give domain=Simplex().")

    def step(self, domain: Domain, x: Doubles, g: Doubles, step: float) -> Doubles:
        """Multiplicative weights."""
        self.check(domain)
        radius, _ = domain.axes(*x.shape)  # type: ignore[attr-defined]
        with np.errstate(divide="ignore"):
            exponent = np.log(x) - step * g / radius
        u = np.exp(exponent - np.max(exponent))
        return np.asarray(u * (radius / np.sum(u)))


@dataclass(frozen=True)
class PNorm:
    """h(x) = |x|_p^2 / (2 (p - 1)), 1 < p <= 2, on an l1 ball, with an l1 penalty or without.

    Modulus 1 in the p-norm. On d coordinates p = 1 + 1/log(d) makes it that of the l1 norm up to
    a factor e (`sharp`).

    The step solves grad h(u) = soft(z, level), z = grad h(x) - step g, where the level is the
    penalty's plus the least multiplier that brings u into the ball.
    """

    p: float

    needs: ClassVar[tuple[str, ...]] = ("prox",)

    def __post_init__(self) -> None:
        if not 1 < self.p <= 2:
            raise InvalidInput(f"p must lie in (1, 2], got {self.p!r}.")

    @classmethod
    def sharp(cls, d: int) -> Self:
        """The p of an l1 ball in d dimensions."""
        return cls(1 + 1 / max(1.0, math.log(d)))

    def check(self, domain: Domain) -> None:
        """An l1 ball with corners of one length, or an l1 penalty within it."""
        _ball_and_penalty(domain)

    def step(self, domain: Domain, x: Doubles, g: Doubles, step: float) -> Doubles:
        """The minimiser by one unknown, the level."""
        ball, penalty = _ball_and_penalty(domain)
        radius, _ = ball.axes(*x.shape)
        z = _power_map(x, self.p) / (self.p - 1) - step * g
        least = np.broadcast_to(penalty.coefficients(x, step)[0], x.shape)

        def point(multiplier: float) -> Doubles:
            soft = np.sign(z) * np.maximum(np.abs(z) - least - multiplier, 0.0)
            return _power_map((self.p - 1) * soft, self.p / (self.p - 1))

        def excess(multiplier: float) -> float:
            return float(np.sum(np.abs(point(multiplier)))) - radius

        top = float(np.max(np.abs(z)))
        if excess(0.0) <= 0:
            return point(0.0)
        return point(brentq(excess, 0.0, top, xtol=1e-15 * top, rtol=1e-14))


def _ball_and_penalty(domain: Domain) -> tuple[L1Ball, L1]:
    penalty, ball = L1(alpha=0.0), domain
    if isinstance(domain, Within):
        penalty, ball = domain.regularizer, domain.constraint
    if not (isinstance(ball, L1Ball) and isinstance(penalty, L1)):
        raise IncompatibleParts(
            "PNorm is the geometry of an L1Ball, or of an L1 penalty within(L1(...), L1Ball(...))."
        )
    return ball, penalty


def _power_map(x: Doubles, p: float) -> Doubles:
    """The gradient of |x|_p^2 / 2, computed in units of the largest entry."""
    top = float(np.max(np.abs(x), initial=0.0))
    if top == 0:
        return np.zeros_like(x)
    unit = np.abs(x) / top
    norm = float(np.sum(unit**p)) ** (1 / p)
    return np.asarray(top * np.sign(x) * unit ** (p - 1) * norm ** (2 - p))
