"""Samplers of privacy noise.

Formal guarantee
----------------
`ExactSampler` takes random bits from the operating system; OpenDP's samplers take theirs from the
generator of OpenSSL, which the operating system seeds. Values are 64-bit integers; the mechanisms
make sure, from public numbers, that a sum with noise stays far inside their range.

**Continuous noise, correctly rounded.** ``gaussian``, ``scaled_normal`` and
``scaled_laplace_lognormal`` release an integer plus a real number, rounded to the nearest integer.
What leaves is a function of the integer plus noise of exactly the stated law, so every theorem
about that law holds (post-processing), and no last bit shows the size of the noise or the value.
Every uniform variable is an interval of width 2^-128 given by random bits. Interval arithmetic
encloses the real number; while the ends of the enclosure do not round to one integer, more bits are
drawn (`_rounded`). mpmath's functions may miss by a spacing, so each is widened (`_slack`).

``gaussian`` has a short way: `_short_way` encloses the noise, which does not depend on the values,
in the machine's longest floating-point numbers. Nearly always the ends of this enclosure round to
one integer, which is then the same integer; else the long way decides, with the same bits. So which
way a draw takes depends on the noise, and not on the values.

**Integer noise.** The discrete Laplace and the Gumbel noise of a selection are OpenDP's.

Integers with noise are cut at `INTEGER_LIMIT`, which is post-processing.
"""

from __future__ import annotations

import os
import secrets
import threading
from collections.abc import Callable
from functools import cache
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from privtail.trusted.deals import Coins
from privtail.trusted.sensitivity import INTEGER_LIMIT

if TYPE_CHECKING:
    from privtail.trusted.mechanisms.simulated import SimulatedSampler

Integers = NDArray[np.int64]
Doubles = NDArray[np.float64]
_TWO_PI = np.longdouble("6.28318530717958647692528676655900576839433879875")


_HERE, _LOCK = threading.local(), threading.Lock()


Sampler: TypeAlias = "ExactSampler | SimulatedSampler"
"""Draws noise on integers."""


@cache
def _integer_vectors() -> Any:
    from opendp.domains import atom_domain, vector_domain
    from opendp.mod import enable_features

    enable_features("contrib")
    return vector_domain(atom_domain(T="i64"))


def _vector(values: Integers) -> Integers:
    """An array in the form that OpenDP takes at once; a list is converted number by number.

    OpenDP refuses a read-only array.
    """
    return np.require(values, np.int64, ("C", "W"))


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


def _intervals() -> Any:
    """The interval arithmetic of this thread, whose precision is a setting of it.

    mpmath keeps the digits of pi and log 2 for all threads, and is not safe while it finds more of
    them: it finds more here than a draw will ever need, one thread at a time.
    """
    with _LOCK:
        if not hasattr(_HERE, "intervals"):
            from mpmath import MPIntervalContext

            _HERE.intervals = MPIntervalContext()
            _HERE.intervals.prec = 2048
            _HERE.intervals.cos(_HERE.intervals.pi * _HERE.intervals.log(2))
    return _HERE.intervals


def _rounded(formula: Callable[..., Any], cells: list[int]) -> int:
    """``formula(arithmetic, u_1, ..)`` at uniform variables in (0, 1), correctly rounded.

    ``cells`` are the first 128 bits of each variable.
    """
    from mpmath import libmp

    iv, bits = _intervals(), 128
    while True:
        if all(cells):
            iv.prec = bits + 64
            enclosure = formula(iv, *(iv.mpf([k, k + 1]) / 2**bits for k in cells))
            low, high = (libmp.to_int(end, "n") for end in enclosure._mpi_)
            if low == high:
                return min(max(int(low), -INTEGER_LIMIT), INTEGER_LIMIT)
        bits += 64
        cells = [k << 64 | int.from_bytes(os.urandom(8), "big") for k in cells]


def secret() -> bytes:
    """A fresh key that nobody knows, whatever ``random_state``."""
    return os.urandom(32)


def _uniforms(count: int) -> list[int]:
    """The first 128 bits of ``count`` uniform variables."""
    return [int.from_bytes(os.urandom(16), "big") for _ in range(count)]


def _slack(iv: Any) -> Any:
    """A bound of the error of mpmath's functions: 2^10 spacings at 1 to both sides.

    An interval of its exponential may miss the number by one spacing (mpmath issue 1181).
    """
    return iv.mpf([-1, 1]) * iv.mpf(2) ** (10 - iv.prec)


def _log(iv: Any, x: Any) -> Any:
    return iv.log(x) * (1 + _slack(iv))


def _exp(iv: Any, x: Any) -> Any:
    return iv.exp(x) * (1 + _slack(iv))


def _cos(iv: Any, x: Any) -> Any:
    return iv.cos(x) + _slack(iv)


def _normal(iv: Any, u: Any, v: Any) -> Any:
    """A standard normal from two uniform variables (Box and Muller 1958)."""
    return iv.sqrt(-2 * _log(iv, u)) * _cos(iv, 2 * iv.pi * v)


def _noisy(value: int, size: float, scale: float) -> Callable[..., Any]:
    """``value`` + ``size`` x ``scale`` x a standard normal, for `_rounded`."""

    def formula(iv: Any, u: Any, v: Any) -> Any:
        return value + iv.mpf(size) * iv.mpf(scale) * _normal(iv, u, v)

    return formula


def _error() -> Any:
    """The spacing of the machine's longest floats at 1, or what was measured if that is more.

    The type may promise more than the machine holds. A system can switch the processor to shorter
    floats (Windows Subsystem for Linux 1 does), and a C library can take a logarithm in doubles
    (musl does so on aarch64).
    """
    real = np.longdouble
    spacing = abs(3 * (real(4) / 3 - 1) - 1)  # 4/3 is no such float
    return max(np.finfo(real).eps, spacing, _error_of_functions())


@cache
def _error_of_functions() -> Any:
    """The largest error of a logarithm, relative to its value, or of a cosine, at fixed points."""
    _intervals()  # finds the digits that these need, too
    from mpmath import libmp as mp

    real, worst = np.longdouble, np.longdouble(0)
    for k in range(1, 100, 6):
        at = mp.from_man_exp(k, -4)
        logarithm, cosine = (real(mp.to_str(f(at, 160), 45)) for f in (mp.mpf_log, mp.mpf_cos))
        x = real(k) / 16
        worst = max(worst, abs(np.log(x) / logarithm - 1), abs(np.cos(x) - cosine))
    return worst


def _short_way(
    u: NDArray[np.uint64], v: NDArray[np.uint64], scale: float
) -> tuple[Integers, NDArray[np.bool_]]:
    """Rounded normals from the first 64 bits of uniform variables, and where these decide.

    Formal guarantee
    ----------------
    Let e be 16 times `_error`, so at least 16 spacings of the machine's longest floats at 1. They
    round to nearest, as is the default: sums, products and square roots are off by at most half a
    spacing of their value. The one assumption is that logarithms are off by at most e / 4 of their
    value, and cosines by e / 4: four spacings, and four times the largest error that `_error`
    measures. NumPy takes both from the C library. The lists of errors that come with glibc have one
    spacing for logl and two for cosl (libm-test-ulps of aarch64).

    A variable u with first bits k lies in [k, k + 1] / 2^64. So sqrt(-2 log u) lies between its
    values at these ends, each moved by e of itself. The angle 2 pi v, v taken from the middle, is
    off by at most 2 pi (2^-65 + 2 spacings), and its cosine by less than 2^-61 + 2 e. So ``middle``
    is off by at most ``width``: the other 2 e cover the operations of these two lines. If all
    numbers that are so near round to one integer, it is the rounding of the exact number. Infinite
    and undefined numbers decide nothing.
    """
    real = np.longdouble
    e, step = 16 * _error(), real(2) ** -64
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        first = u.astype(real)
        near = np.sqrt(-2 * np.log(np.minimum((first + 1) * step * (1 + e), 1))) * (1 - e)
        far = np.sqrt(-2 * np.log(first * step * (1 - e))) * (1 + e)
        cosine = np.cos(_TWO_PI * (v.astype(real) + real(0.5)) * step)
        middle = (near + far) / 2 * cosine * real(scale)
        width = ((far - near) / 2 + far * (real(2) ** -61 + 4 * e)) * real(scale)
        low, high = np.rint(middle - width), np.rint(middle + width)
        decided = (low == high) & (np.abs(low) < INTEGER_LIMIT)
    return np.where(decided, low, 0).astype(np.int64), decided


class ExactSampler:
    """Noise that protects: nothing in it is seeded, and no draw is used twice."""

    exact = True

    def gaussian(self, values: Integers, scale: float) -> Integers:
        """``values`` plus independent normals of deviation ``scale``, rounded to integers."""
        flat = values.ravel()
        bits = np.frombuffer(os.urandom(32 * flat.size), ">u8").reshape(-1, 2, 2)
        noise, decided = _short_way(bits[:, 0, 0], bits[:, 1, 0], scale)
        noisy: Integers = np.clip(flat + noise, -INTEGER_LIMIT, INTEGER_LIMIT)
        for i in np.flatnonzero(~decided):
            cells = [(int(high) << 64) | int(low) for high, low in bits[i]]
            noisy[i] = _rounded(_noisy(int(flat[i]), 1.0, scale), cells)
        return noisy.reshape(values.shape)

    def laplace(self, values: Integers, scale: float) -> Integers:
        """``values`` plus independent discrete Laplace noise of parameter ``scale``."""
        return np.array(_laplace(scale)(_vector(values)), dtype=np.int64)

    def top(self, values: Integers, scale: float, count: int) -> Integers:
        """Indices of the ``count`` largest of ``values`` plus Gumbel noise of ``scale``."""
        return np.array(_top(scale, count)(_vector(values)), dtype=np.int64)

    def scaled_laplace_lognormal(
        self, values: Integers, sizes: Doubles, scale: float, spread: float
    ) -> Integers:
        """``values`` plus ``sizes`` x ``scale`` x X exp(``spread`` Y), rounded to integers.

        X is Laplace of parameter 1, Y standard normal, both fresh for every entry.
        """

        def one(value: int, size: float) -> Callable[..., Any]:
            def formula(iv: Any, a: Any, b: Any, u: Any, v: Any) -> Any:
                noise = _log(iv, a / b) * _exp(iv, iv.mpf(spread) * _normal(iv, u, v))
                return value + iv.mpf(size) * iv.mpf(scale) * noise

            return formula

        pairs = zip(values.tolist(), sizes.tolist(), strict=True)
        return np.array([_rounded(one(*pair), _uniforms(4)) for pair in pairs], dtype=np.int64)

    def scaled_normal(self, values: Integers, sizes: Doubles, scale: float) -> Integers:
        """``values`` plus ``sizes`` x ``scale`` x independent normals, rounded to integers."""
        pairs = zip(values.tolist(), sizes.tolist(), strict=True)
        noisy = [_rounded(_noisy(*pair, scale), _uniforms(2)) for pair in pairs]
        return np.array(noisy, dtype=np.int64)

    def below(self, count: int) -> int:
        """A uniform whole number in 0 .. count - 1, as secret as the noise."""
        return secrets.randbelow(count)

    def coins(self, rate: float) -> Coins:
        """Fresh independent coins, one for every id, as secret as the noise."""
        return Coins(rate, secret())
