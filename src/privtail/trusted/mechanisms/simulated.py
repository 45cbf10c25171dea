"""Simulated noise, for experiments: loaded where it is asked for.

Formal guarantee
----------------
None: a seed tells the noise, and the statement says ``NOT PRIVATE``.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from privtail.trusted.deals import Coins
from privtail.trusted.sensitivity import INTEGER_LIMIT

Integers = NDArray[np.int64]
Doubles = NDArray[np.float64]


class SimulatedSampler:
    """Seeded NumPy noise: fast, repeatable, not private."""

    exact = False

    def __init__(self, seed: int | np.random.SeedSequence | None) -> None:
        self._rng = np.random.default_rng(seed)

    def gaussian(self, values: Integers, scale: float) -> Integers:
        noise = np.rint(self._rng.normal(0.0, scale, values.shape))
        return values + noise.astype(np.int64)

    def laplace(self, values: Integers, scale: float) -> Integers:
        p = -np.expm1(-1.0 / scale)
        difference = self._rng.geometric(p, values.shape) - self._rng.geometric(p, values.shape)
        return values + difference

    def top(self, values: Integers, scale: float, count: int) -> Integers:
        noisy = values + self._rng.gumbel(0.0, scale, values.shape)
        return np.argsort(-noisy, kind="stable")[:count]

    def scaled_laplace_lognormal(
        self, values: Integers, sizes: Doubles, scale: float, spread: float
    ) -> Integers:
        x = self._rng.laplace(0.0, 1.0, values.shape)
        y = self._rng.normal(0.0, 1.0, values.shape)
        return _whole(values + sizes * scale * x * np.exp(spread * y))

    def scaled_normal(self, values: Integers, sizes: Doubles, scale: float) -> Integers:
        return _whole(values + sizes * scale * self._rng.normal(0.0, 1.0, values.shape))

    def below(self, count: int) -> int:
        return int(self._rng.integers(count))

    def coins(self, rate: float) -> Coins:
        return Coins(rate, self._rng.bytes(32))


def _whole(x: Doubles) -> Integers:
    return np.clip(np.rint(x), -float(INTEGER_LIMIT), float(INTEGER_LIMIT)).astype(np.int64)
