"""Peeling: the largest entries of a private vector, and their values.

Cai, Wang, Zhang 2019; Tao, Wu, Cheng, Wang 2022, Algorithm 4.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from privtail.algorithms.approximate import require_approximate
from privtail.algorithms.parameters import Checked
from privtail.errors import InvalidInput
from privtail.trusted.budget import Budget
from privtail.trusted.events import Event
from privtail.trusted.mechanisms.noise import GaussianNoise, LaplaceNoise
from privtail.trusted.mechanisms.selection import LaplaceMax, NoisyTopK
from privtail.trusted.sensitive import Sensitive
from privtail.trusted.sensitivity import INTEGER_LIMIT, Sensitivity

Doubles = NDArray[np.float64]


class Peeling(Protocol):
    """Releases a sparse version of a vector: ``sparsity`` entries, and the last ``kept`` ones.

    The vector is a private one plus a public one, ``known``. The public one counts in the
    selection, and is added to the values after their release.
    """

    @property
    def sparsity(self) -> int:
        """Number of entries to select."""
        ...

    def events(self, multiplier: float, vector: Sensitivity, kept: int) -> tuple[Event, ...]:
        """The bills of one release."""
        ...

    def release(
        self, multiplier: float, vector: Sensitive, kept: int, known: Doubles | float = 0.0
    ) -> Doubles:
        """The noisy entries of the support, 0 elsewhere, (size,)."""
        ...


@dataclass(frozen=True, kw_only=True)
class LaplacePeeling(Checked):
    """Peeling as printed (Cai, Wang, Zhang 2019; Tao, Wu, Cheng, Wang 2022, Algorithm 4).

    ``sparsity`` rounds of a maximum under Laplace noise among what is left, then Laplace noise on
    the values, all of one scale b = multiplier x (l-infinity radius).

    **Privacy.** With lambda the l-infinity sensitivity every round is (2 lambda/b)-DP and every
    value (lambda/b)-DP; the accountant composes them, to about 5/2 s lambda^2/b^2 in zCDP.

    **Deviations from the paper.** b comes from the accountant; `printed_multiplier` is the paper's.
    The printed one is private, with more noise than needed: at (1, 1e-5) it spends epsilon = .57 or
    less.

    Parameters
    ----------
    sparsity : int
        How many entries are released, at least 1.

    Examples
    --------
    >>> from privtail.algorithms import LaplacePeeling
    >>> LaplacePeeling(sparsity=3).sparsity
    3
    """

    sparsity: int

    def printed_multiplier(self, budget: Budget) -> float:
        """Line 3: b = 4 lambda sqrt(2 s log(1/delta)) / eps, lambda being twice the radius."""
        require_approximate(budget, "LaplacePeeling.printed_multiplier")
        root = math.sqrt(2 * self.sparsity * math.log(1 / budget.delta))
        return 2 * 4 * root / budget.epsilon

    def events(self, multiplier: float, vector: Sensitivity, kept: int) -> tuple[Event, ...]:
        """One maximum per round, one value per entry."""
        _require_room(self.sparsity, vector.size - kept)
        lengths = replace(vector, one_signed=False)
        left = range(vector.size - kept, vector.size - kept - self.sparsity, -1)
        rounds = tuple(LaplaceMax(multiplier).event(lengths.take(count)) for count in left)
        value = LaplaceNoise(multiplier).event(vector.take(1))
        return rounds + (self.sparsity + kept) * (value,)

    def release(
        self, multiplier: float, vector: Sensitive, kept: int, known: Doubles | float = 0.0
    ) -> Doubles:
        """The entries as printed; then those that are always kept."""
        size = vector.sensitivity.size
        out, known = np.zeros(size), known + np.zeros(size)
        support = list(range(size - kept, size))  # line 1
        left = list(range(size - kept))
        compared = _shifted(vector, known, kept, multiplier)
        for _ in range(self.sparsity):  # lines 2-5
            largest = compared.take(left).abs().release(LaplaceMax(multiplier))
            support += [left.pop(largest)]
        for j in support:  # lines 6-7
            out[j] = vector.take([j]).release(LaplaceNoise(multiplier))[0] + known[j]
        return out


@dataclass(frozen=True, kw_only=True)
class OneShotPeeling(Checked):
    """Peeling with less noise: Gumbel noise selects the entries, Gaussian noise is on their values.

    **Privacy.** The s largest scores under Gumbel noise have the law of s peeled exponential
    mechanisms and cost s eta^2/8 in zCDP; the values cost the same, by the choice of the two
    scales. For equal privacy the noise on the support is about half that of `LaplacePeeling`, and
    Gaussian tails replace those of Laplace on the values.

    Parameters
    ----------
    sparsity : int
        How many entries are released, at least 1.

    Examples
    --------
    >>> from privtail.algorithms import OneShotPeeling
    >>> OneShotPeeling(sparsity=3).sparsity
    3
    """

    sparsity: int

    def events(self, multiplier: float, vector: Sensitivity, kept: int) -> tuple[Event, ...]:
        """The support, then the values."""
        _require_room(self.sparsity, vector.size - kept)
        lengths = replace(vector, one_signed=False).take(vector.size - kept)
        values = vector.take(self.sparsity + kept)
        return self._support(multiplier).event(lengths), GaussianNoise(multiplier).event(values)

    def release(
        self, multiplier: float, vector: Sensitive, kept: int, known: Doubles | float = 0.0
    ) -> Doubles:
        """The support, then the values."""
        size = vector.sensitivity.size
        selection, known = self._support(multiplier), known + np.zeros(size)
        compared = _shifted(vector, known, kept, selection.multiplier)
        lengths = compared.take(np.arange(size - kept)).abs()
        support = [*lengths.release(selection), *range(size - kept, size)]
        out = np.zeros(size)
        out[support] = vector.take(support).release(GaussianNoise(multiplier)) + known[support]
        return out

    def _support(self, multiplier: float) -> NoisyTopK:
        return NoisyTopK(multiplier * math.sqrt(self.sparsity), self.sparsity)


def _require_room(sparsity: int, entries: int) -> None:
    if sparsity > entries:
        raise InvalidInput(
            f"sparsity={sparsity} is more than the {entries} slopes of the model. Use "
            f"sparsity={entries} or less."
        )


def _shifted(vector: Sensitive, known: Doubles, kept: int, multiplier: float) -> Sensitive:
    """``vector + known`` to select from; of a large entry as much as integers hold beside noise."""
    bounds = vector.sensitivity
    left = INTEGER_LIMIT - bounds.magnitude - 40 * multiplier * bounds.radius.linf
    largest = min(2.0**60, left / 2) * bounds.unit
    moved = np.clip(np.nan_to_num(known), -largest, largest)
    moved[len(known) - kept :] = 0.0
    return vector.shift(moved)
