"""How a budget is divided among the releases of a fit."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

from privtail.trusted.budget import Neighbours
from privtail.trusted.mechanisms.noise import GaussianNoise


@dataclass(frozen=True)
class BudgetFraction:
    """A fraction of the budget, and the noise of the releases that it pays for.

    Gaussian releases of noise m / sqrt(f), whose fractions f add up to 1, cost together what one
    release of noise m costs (Gaussian differential privacy: Dong, Roth and Su 2022, corollary 3.3).
    A noisy top-k costs less than its fraction, and so do histograms that need less precision than
    their fraction pays for. The caller searches for the m at which the whole plan costs the budget.

    Parameters
    ----------
    multiplier : m, the standard deviation of the noise of a sum that costs the whole budget, over
        the bound (radius) of a record's values.
    fraction : f, in (0, 1]: the part of mu^2, where the budget is mu-Gaussian DP.
    neighbours : the neighbour relation of the budget.
    """

    multiplier: float
    fraction: float = 1.0
    neighbours: Neighbours = "replace_one"

    def split(self, weights: Sequence[float]) -> tuple[BudgetFraction, ...]:
        """Divide the fraction in proportion to the weights."""
        total = sum(weights)
        return tuple(replace(self, fraction=self.fraction * weight / total) for weight in weights)

    def mean_noise(self, releases: int = 1) -> GaussianNoise:
        """The noise of each of several means; a replaced record moves one by up to 2 radii."""
        return self._noise(releases, 2.0)

    def histogram_noise(self) -> GaussianNoise:
        """The noise of a histogram or of second moments, moved by up to sqrt 2 radii."""
        return self._noise(1, math.sqrt(2))

    def unit_interval_noise(self) -> GaussianNoise:
        """The noise of a mean of values from 0 to the radius, moved by up to one radius."""
        return self._noise(1, 1.0)

    def _noise(self, releases: int, moved: float) -> GaussianNoise:
        """The noise of releases that a replaced record moves by up to ``moved`` radii.

        A record that is emptied (zero-out neighbours) moves each by up to one radius.
        """
        relative = moved / 2 if self.neighbours == "replace_one" else 1.0
        return GaussianNoise(self.multiplier * relative * math.sqrt(releases / self.fraction))
