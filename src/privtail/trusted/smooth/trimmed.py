"""Trimmed means with noise in proportion to their smooth sensitivity."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cache

import numpy as np
from numpy.typing import NDArray

from privtail.compilation import compiled
from privtail.errors import InvalidInput
from privtail.trusted.events import Event, read_once, read_whole
from privtail.trusted.mechanisms.noise import require_multiplier
from privtail.trusted.mechanisms.samplers import Sampler
from privtail.trusted.problem import Problem

Integers = NDArray[np.int64]
Doubles = NDArray[np.float64]
ROUNDING = 2.0**-40
"""Taken off the smoothness for what floating point can do to the logarithm of a sensitivity."""
WIDEST = 2.0**30
"""The largest width of the interval of values over that of their mean."""


@dataclass(frozen=True, kw_only=True)
class TrimmedMean:
    """Mean of each coordinate without its ``trim`` smallest and largest values (Bun, Steinke 2019).

    Parameters
    ----------
    multiplier : 1/epsilon of one coordinate, which costs epsilon^2/2 in zCDP; for all rows of a
        person that count.
    trim : m, how many values are left out at either end; 2 m < n.
    low, high : a, b: public bounds, onto which the trimmed mean is truncated.
    reach : values are forced onto a public interval ``reach`` times as wide as [a, b] around the
        same middle. With 1 every value is clipped onto [a, b] and the mean is never truncated.
        Every record has a value: 0, forced onto that interval, where there is none.
    smoothness : t as a part of epsilon, below 1. With more of it the noise follows the middle of
        the data closer, and is larger.

    Formal guarantee
    ----------------
    Values are whole steps of a grid on the interval of values, whose ends are p_0 and p_(n+1);
    p_1 <= .. <= p_n are the sorted values of n records, n public. Replacing one value moves the
    sum of p_(m+1) .. p_(n-m) by at most max(p_(n-m+1) - p_(m+1), p_(n-m) - p_m), which in any data
    set that k replacements can reach is at most p_j - p_i with j - i = n - 2 m + k, i <= m + 1 and
    j >= n - m. The sum is then truncated onto n - 2 m times [low, high], also in whole steps, of
    width C: truncation moves no two sums apart, and no two truncated sums are farther apart than C.
    So

        S = max min(C, p_j - p_i) exp(-t (j - i - (n - 2 m)))

    over those i, j is at least the local sensitivity of the truncated sum, and one replacement
    changes every k by at most 1: log S moves by at most t. Where truncation cannot bind, S is the
    least such bound (attained). Where it can, S may exceed it: the least one asks which sums can be
    reached inside [low, high], a subset sum. The maximum with one grid step keeps both.
    The floating-point S is within a factor 1 +- 2^-46 of the true one, for which `ROUNDING` is
    taken off t before S is computed. Noise S/s X e^(sigma Y) costs what `lognormal_rho` proves,
    whatever sigma, and is added to the sum exactly before it is rounded to the grid. Neither S nor
    a bound that depends on it is released. Replacing a value by 0 (``zero_out``) is a replacement.
    Rows that do not count have the value 0. A person's ``max_rows`` rows are that many replacements
    one after the other, and cost the square of their number (Bun and Steinke 2016).
    """

    multiplier: float
    trim: int
    low: float
    high: float
    smoothness: float = 0.1
    reach: float = 1.0

    def __post_init__(self) -> None:
        require_multiplier(self)
        read_whole(self, trim=0)
        read_once(self, "low", "high", "smoothness", "reach", kind=float)
        if not (-math.inf < self.low < self.high < math.inf and self.high - self.low < math.inf):
            raise InvalidInput(
                f"A trimmed mean needs finite bounds low < high, got {self.low!r}, {self.high!r}."
            )
        if not 0 < self.smoothness < 1:
            raise InvalidInput(f"smoothness must lie in (0, 1), got {self.smoothness!r}.")
        first, last = self.ends
        if not (1 <= self.reach <= WIDEST and last - first < math.inf):
            raise InvalidInput(
                f"reach must lie between 1 and 2**30, and high - low times reach be finite; got "
                f"reach={self.reach!r}."
            )

    @property
    def ends(self) -> tuple[float, float]:
        """The interval onto which values are forced."""
        more = (self.reach - 1) / 2 * (self.high - self.low)
        return self.low - more, self.high + more

    def bits(self, problem: Problem) -> int:
        """Grid bits b: the interval of values spans 2^b steps, and n of them stay below 2^61."""
        room = 60 - max(1, problem.most - 1).bit_length()
        return min(problem.bits + math.ceil(math.log2(self.reach)), room)

    def inside(self, problem: Problem) -> tuple[int, int]:
        """The interval of truncated sums, in grid steps."""
        top, kept = 2 ** self.bits(problem), problem.n - 2 * self.trim
        outside = round(top * (0.5 - 0.5 / self.reach))
        return kept * outside, kept * (top - outside)

    def t(self, problem: Problem) -> float:
        """The smoothness of S that is paid for."""
        return self.smoothness / self._noise(problem) if self.multiplier else 0.0

    def scale(self, problem: Problem) -> float:
        """1/s with s = exp(-3 sigma^2/2) (epsilon - t/sigma) of a row; 0 without privacy."""
        spread = best_spread(self.smoothness)
        bent = math.exp(1.5 * spread**2) / (1 - self.smoothness / spread)
        return float(self._noise(problem) * bent)

    def event(self, problem: Problem, size: int) -> Event:
        """The bill of ``size`` trimmed means."""
        if problem.most > problem.n:
            raise InvalidInput(
                "A trimmed mean needs the exact number of rows, and of a part of the persons of "
                "a table nobody knows it. Choose another algorithm."
            )
        if 2 * self.trim >= problem.n:
            raise InvalidInput(
                f"Trimming {self.trim} of {problem.n} rows at both ends leaves none. "
                f"Use trim={problem.n // 10}."
            )
        if self.multiplier and self.t(problem) <= 2 * ROUNDING:
            raise InvalidInput(
                "The budget of one trimmed mean is too small for floating point. Raise epsilon; of "
                "an algorithm with a number of steps, fewer help too."
            )
        return Event(
            law="laplace_lognormal",
            scale=self.scale(problem),
            radius=float(problem.max_rows),
            diameter=float(problem.max_rows),
            coordinates=size,
            smoothness=self.t(problem),
            spread=best_spread(self.smoothness) if self.multiplier else 0.0,
            unit=self._step(problem),
            question="trimmed means",
        )

    def on_grid(self, values: Doubles, bits: int) -> Integers:
        """Values (rows, size) as grid steps 0 .. 2^bits of their interval, (size, rows).

        What is no number counts as 0.
        """
        columns = np.empty(values.shape[::-1], np.int64)
        grid_steps(values, *self.ends, 2.0**bits, columns)
        return columns

    def release(self, columns: Integers, problem: Problem, sampler: Sampler) -> Doubles:
        """Trimmed means (size,) of grid steps (size, n), rearranged in place, in real units."""
        bits, inside = self.bits(problem), self.inside(problem)
        weights = decay(self.t(problem), self.trim, bits)
        sums = np.zeros(len(columns), np.int64)
        sizes = np.zeros(len(columns))
        for j, values in enumerate(columns):
            sums[j], sizes[j] = trimmed_sum(values, self.trim, 2**bits, weights, inside)
        if self.multiplier:
            spread = best_spread(self.smoothness)
            sums = sampler.scaled_laplace_lognormal(sums, sizes, self.scale(problem), spread)
        return np.asarray(self.ends[0] + sums * self._step(problem), dtype=np.float64)

    def _noise(self, problem: Problem) -> float:
        """1/epsilon of a row, such that a person's rows together cost 1/multiplier."""
        return self.multiplier * problem.max_rows

    def _step(self, problem: Problem) -> float:
        first, last = self.ends
        return (last - first) * 2.0 ** -self.bits(problem) / (problem.n - 2 * self.trim)


@cache
def best_spread(smoothness: float) -> float:
    """The sigma of least variance 2 exp(2 sigma^2)/s^2: 5 sigma^3 = t/epsilon (5 sigma^2 + 1)."""
    low, high = smoothness, 3.0
    for _ in range(100):
        middle = 0.5 * (low + high)
        if 5 * middle**3 < smoothness * (5 * middle**2 + 1):
            low = middle
        else:
            high = middle
    return high


def decay(t: float, trim: int, bits: int) -> Doubles:
    """exp(-t k) for k = 0, 1, .. 2 trim + 1, until 2^bits of it is below one grid step."""
    steps = 2 * trim + 1
    if t == 0:
        return np.ones(1)
    rate = t - ROUNDING
    k = np.arange(1 + min(steps, math.ceil(bits * math.log(2) / rate)), dtype=np.float64)
    return np.exp(-rate * k)


def trimmed_sum(
    values: Integers, trim: int, top: int, weights: Doubles, inside: tuple[int, int]
) -> tuple[int, float]:
    """Sum of the middle of the grid steps 0 .. ``top``, truncated onto ``inside``, and its S.

    Rearranges ``values`` in place: only what is left out at either end is sorted.
    """
    n, m = len(values), trim
    values.partition(m)
    if n > 2 * m + 1:
        values[m + 1 :].partition(n - 2 * m - 2)
    values[:m].sort()
    values[n - m :].sort()
    total = int(values[m : n - m].sum())
    low = np.concatenate([[0], values[: m + 1]])
    high = np.concatenate([values[n - m - 1 :], [top]])
    size = smooth_sensitivity(low, high, weights, inside[1] - inside[0])
    return min(max(total, inside[0]), inside[1]), max(1.0, size)


@compiled
def grid_steps(values: Doubles, low: float, high: float, top: float, columns: Integers) -> None:
    """columns[j, i] = values[i, j] forced onto [low, high], in ``top`` steps of it."""
    width = high - low
    for j in range(values.shape[1]):
        for i in range(values.shape[0]):
            x = 0.0 if np.isnan(values[i, j]) else values[i, j]
            x = min(max(x, low), high)
            columns[j, i] = np.int64(min(max(np.rint((x - low) / width * top), 0.0), top))


@compiled
def smooth_sensitivity(low: Integers, high: Integers, weights: Doubles, most: int) -> float:
    """The maximum of min(most, high[j] - low[i]) weights[k], k = m + j - i, over i, j = 0 .. m + 1.

    Pairs without a weight are left out. O(m log m): with weights e^(-t k), if at some i a column's
    term is no larger than that of a later column, it is no larger at any later i, for the later
    column's difference over the earlier's, both cut at ``most``, rises with i. So the row in the
    middle says which columns earlier and later rows can leave out. A column counts as beaten only
    by more than rounding can do; columns without a term in this row beat nothing.
    """
    m = len(low) - 2
    best = 0.0
    work = [(0, m + 1, 0, m + 1)]
    while len(work) > 0:
        first, last, left, right = work.pop()
        i = (first + last) // 2
        start, stop = max(left, i - m), min(right, i - m + len(weights) - 1)
        row = 0.0
        for j in range(start, stop + 1):
            row = max(row, min(most, high[j] - low[i]) * weights[m + j - i])
        best = max(best, row)
        # Columns that earlier rows need end at b, those that later rows need begin at a.
        a, b = stop + 1, start
        if row > 0:
            beaten = row * (1 - 2.0**-44)
            for j in range(start, stop + 1):
                if min(most, high[j] - low[i]) * weights[m + j - i] >= beaten:
                    a, b = min(a, j), j
        if start > right:
            a, b = left, right
        elif stop < start:
            a, b = left, left - 1
        if first < i and left <= b:
            work.append((first, i - 1, left, b))
        if i < last and a <= right and start <= right:
            work.append((i + 1, last, a, right))
    return best
