"""Where privacy noise comes from.

Formal guarantee
----------------
`ExactSampler` draws with OpenDP's samplers on 64-bit integers: the discrete Gaussian and discrete
Laplace of exactly the stated parameter, and Gumbel noise for selection, all from the operating
system's randomness. OpenDP saturates at the ends of int64; the mechanisms make sure, from public
numbers, that this cannot happen. Noise whose size is private must not show it in its last bits:
``scaled_laplace_lognormal`` and ``scaled_normal`` release value + size x noise, a real number,
correctly rounded to an integer. Every uniform variable starts as an interval of width 2^-128 given
by random bits; interval arithmetic encloses the real number, and while its ends do not round to one
integer, more bits are drawn. So what leaves is the rounding of the exact law. `SimulatedSampler`
has the same laws (its rounded normal is within a factor 1 + 1/(24 s^2) of the discrete Gaussian),
is seeded and fast, and is for experiments only.
"""

from __future__ import annotations

import os
import secrets
from collections.abc import Callable
from functools import cache
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from privtail.trusted.deals import Coins

Integers = NDArray[np.int64]
Doubles = NDArray[np.float64]
LARGEST = 2**62
"""Rounded noise is cut here, which is post-processing."""


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

    def scaled_laplace_lognormal(
        self, values: Integers, sizes: Doubles, scale: float, spread: float
    ) -> Integers:
        """``values`` plus ``sizes`` x ``scale`` x X exp(``spread`` Y), rounded to integers.

        X is Laplace of parameter 1, Y standard normal, both fresh for every entry.
        """
        ...

    def scaled_normal(self, values: Integers, sizes: Doubles, scale: float) -> Integers:
        """``values`` plus ``sizes`` x ``scale`` x independent normals, rounded to integers."""
        ...

    def below(self, count: int) -> int:
        """A uniform whole number in 0 .. count - 1, as secret as the noise."""
        ...

    def coins(self, rate: float) -> Coins:
        """Fresh independent coins, one for every id, as secret as the noise."""
        ...


@cache
def _integer_vectors() -> Any:
    from opendp.domains import atom_domain, vector_domain
    from opendp.mod import enable_features

    enable_features("contrib")
    return vector_domain(atom_domain(T="i64"))


def _vector(values: Integers) -> Integers:
    """As OpenDP takes it at once; a list would be converted number by number.

    It refuses what is read-only.
    """
    return np.require(values, np.int64, ("C", "W"))


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


@cache
def _intervals() -> Any:
    from mpmath.ctx_iv import MPIntervalContext

    return MPIntervalContext()


def _rounded(formula: Callable[..., Any], uniforms: int) -> int:
    """``formula(arithmetic, u_1, ..)`` at uniform variables in (0, 1), correctly rounded."""
    from mpmath.libmp import to_int

    iv, bits = _intervals(), 128
    cells = [int.from_bytes(os.urandom(16), "big") for _ in range(uniforms)]
    while True:
        if all(cells):
            iv.prec = bits + 64
            enclosure = formula(iv, *(iv.mpf([k, k + 1]) / 2**bits for k in cells))
            low, high = (to_int(end, "n") for end in enclosure._mpi_)
            if low == high:
                return min(max(int(low), -LARGEST), LARGEST)
        bits += 64
        cells = [k << 64 | int.from_bytes(os.urandom(8), "big") for k in cells]


def _normal(iv: Any, u: Any, v: Any) -> Any:
    """A standard normal from two uniform variables (Box and Muller 1958)."""
    return iv.sqrt(-2 * iv.log(u)) * iv.cos(2 * iv.pi * v)


class ExactSampler:
    """OpenDP's samplers and the operating system's coins."""

    exact = True

    def gaussian(self, values: Integers, scale: float) -> Integers:
        return np.array(_gaussian(scale)(_vector(values)), dtype=np.int64)

    def laplace(self, values: Integers, scale: float) -> Integers:
        return np.array(_laplace(scale)(_vector(values)), dtype=np.int64)

    def top(self, values: Integers, scale: float, count: int) -> Integers:
        return np.array(_top(scale, count)(_vector(values)), dtype=np.int64)

    def scaled_laplace_lognormal(
        self, values: Integers, sizes: Doubles, scale: float, spread: float
    ) -> Integers:
        def one(value: int, size: float) -> Callable[..., Any]:
            def formula(iv: Any, a: Any, b: Any, u: Any, v: Any) -> Any:
                noise = iv.log(a / b) * iv.exp(iv.mpf(spread) * _normal(iv, u, v))
                return value + iv.mpf(size) * iv.mpf(scale) * noise

            return formula

        pairs = zip(values.tolist(), sizes.tolist(), strict=True)
        return np.array([_rounded(one(*pair), 4) for pair in pairs], dtype=np.int64)

    def scaled_normal(self, values: Integers, sizes: Doubles, scale: float) -> Integers:
        def one(value: int, size: float) -> Callable[..., Any]:
            def formula(iv: Any, u: Any, v: Any) -> Any:
                return value + iv.mpf(size) * iv.mpf(scale) * _normal(iv, u, v)

            return formula

        pairs = zip(values.tolist(), sizes.tolist(), strict=True)
        return np.array([_rounded(one(*pair), 2) for pair in pairs], dtype=np.int64)

    def below(self, count: int) -> int:
        return secrets.randbelow(count)

    def coins(self, rate: float) -> Coins:
        return Coins(rate, os.urandom(32))


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
    return np.clip(np.rint(x), -float(LARGEST), float(LARGEST)).astype(np.int64)
