"""Where privacy noise comes from.

Formal guarantee
----------------
`ExactSampler` draws with OpenDP's samplers on 64-bit integers: the discrete Gaussian and discrete
Laplace of exactly the stated parameter, and Gumbel noise for selection, all from the operating
system's randomness. OpenDP saturates at the ends of int64; the mechanisms make sure, from public
numbers, that this cannot happen. `SimulatedSampler` has the same laws (its rounded normal is
within a factor 1 + 1/(24 s^2) of the discrete Gaussian), is seeded and fast, and is for
experiments only.
"""

from __future__ import annotations

import os
from functools import cache
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

Integers = NDArray[np.int64]


class Sampler(Protocol):
    """Draws noise on integers."""

    exact: bool

    def gaussian(self, values: Integers, scale: float) -> Integers:
        """``values`` plus independent discrete Gaussians of parameter ``scale``."""
        ...

    def laplace(self, values: Integers, scale: float) -> Integers:
        """``values`` plus independent discrete Laplace noise of parameter ``scale``."""
        ...

    def top(self, values: Integers, scale: float, count: int) -> Integers:
        """Indices of the ``count`` largest of ``values`` plus Gumbel noise of ``scale``."""
        ...

    def coins(self, count: int, rate: float) -> NDArray[np.bool_]:
        """Independent coins that are True with probability ``rate``, rounded down to 2^-64."""
        ...


def _threshold(rate: float) -> np.uint64:
    return np.uint64(min(int(rate * 2**64), 2**64 - 1))


@cache
def _integer_vectors() -> Any:
    from opendp.domains import atom_domain, vector_domain
    from opendp.mod import enable_features

    enable_features("contrib")
    return vector_domain(atom_domain(T="i64"))


@cache
def _gaussian(scale: float) -> Any:
    from opendp.measurements import make_gaussian
    from opendp.metrics import l2_distance

    return make_gaussian(_integer_vectors(), l2_distance(T="f64"), scale=scale)


@cache
def _laplace(scale: float) -> Any:
    from opendp.measurements import make_laplace
    from opendp.metrics import l1_distance

    return make_laplace(_integer_vectors(), l1_distance(T="i64"), scale=scale)


@cache
def _top(scale: float, count: int) -> Any:
    from opendp.measurements import make_noisy_top_k
    from opendp.measures import zero_concentrated_divergence
    from opendp.metrics import linf_distance

    # Under zCDP OpenDP's noise is Gumbel; its `scale` is that of the Gumbel law.
    return make_noisy_top_k(
        _integer_vectors(), linf_distance(T="i64"), zero_concentrated_divergence(), count, scale
    )


class ExactSampler:
    """OpenDP's samplers and the operating system's coins."""

    exact = True

    def gaussian(self, values: Integers, scale: float) -> Integers:
        return np.array(_gaussian(scale)(values.tolist()), dtype=np.int64)

    def laplace(self, values: Integers, scale: float) -> Integers:
        return np.array(_laplace(scale)(values.tolist()), dtype=np.int64)

    def top(self, values: Integers, scale: float, count: int) -> Integers:
        return np.array(_top(scale, count)(values.tolist()), dtype=np.int64)

    def coins(self, count: int, rate: float) -> NDArray[np.bool_]:
        if rate == 1:
            return np.ones(count, dtype=np.bool_)
        words = np.frombuffer(os.urandom(8 * count), dtype=np.uint64)
        return words < _threshold(rate)


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

    def coins(self, count: int, rate: float) -> NDArray[np.bool_]:
        return self._rng.random(count) < rate
