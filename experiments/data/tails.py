"""Laws with heavy tails whose moments are known."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from experiments.study import Doubles


class Tail(Protocol):
    """A law on the line."""

    @property
    def name(self) -> str:
        """As figures call it."""
        ...

    @property
    def mean(self) -> float:
        """E X."""
        ...

    def moment(self, order: float) -> float:
        """E |X|^order, infinite where it does not exist."""
        ...

    def draw(self, rng: np.random.Generator, shape: tuple[int, ...]) -> Doubles:
        """Independent copies."""
        ...


@dataclass(frozen=True)
class Pareto:
    """P(X > x) = x^-shape for x >= 1."""

    shape: float

    @property
    def name(self) -> str:
        return f"Pareto({self.shape:g})"

    @property
    def mean(self) -> float:
        return self.moment(1.0)

    def moment(self, order: float) -> float:
        return self.shape / (self.shape - order) if order < self.shape else math.inf

    def draw(self, rng: np.random.Generator, shape: tuple[int, ...]) -> Doubles:
        return 1.0 + rng.pareto(self.shape, shape)


@dataclass(frozen=True)
class StudentT:
    """Student's t; symmetric about 0."""

    degrees: float

    @property
    def name(self) -> str:
        return f"t({self.degrees:g})"

    @property
    def mean(self) -> float:
        return 0.0

    def moment(self, order: float) -> float:
        nu, p = self.degrees, order
        if p >= nu:
            return math.inf
        logs = math.lgamma((p + 1) / 2) + math.lgamma((nu - p) / 2) - math.lgamma(nu / 2)
        return float(nu ** (p / 2)) * math.exp(logs) / math.sqrt(math.pi)

    def draw(self, rng: np.random.Generator, shape: tuple[int, ...]) -> Doubles:
        return rng.standard_t(self.degrees, shape)


@dataclass(frozen=True)
class Laplace:
    """Density exp(-|x|)/2: symmetric, and sub-exponential."""

    name: str = "Laplace"
    mean: float = 0.0

    def moment(self, order: float) -> float:
        return math.gamma(order + 1)

    def draw(self, rng: np.random.Generator, shape: tuple[int, ...]) -> Doubles:
        return rng.laplace(size=shape)


@dataclass(frozen=True)
class Lognormal:
    """exp(sigma Z), Z standard normal; all moments exist."""

    sigma: float

    @property
    def name(self) -> str:
        return f"lognormal({self.sigma:g})"

    @property
    def mean(self) -> float:
        return self.moment(1.0)

    def moment(self, order: float) -> float:
        return math.exp((order * self.sigma) ** 2 / 2)

    def draw(self, rng: np.random.Generator, shape: tuple[int, ...]) -> Doubles:
        return rng.lognormal(0.0, self.sigma, shape)


def barely(order: float) -> float:
    """Shape (or degrees of freedom) for which moments up to ``order`` exist, and few beyond."""
    return order + 0.1
