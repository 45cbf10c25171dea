"""How a budget is divided among the releases of a fit."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

from privtail.trusted.budget import Neighbours
from privtail.trusted.mechanisms.noise import GaussianNoise


@dataclass(frozen=True)
class Share:
    """A fraction of the budget, and the noise of the releases that it pays for.

    Gaussian releases of noise m / sqrt(f), whose fractions f add up to 1, cost together what one
    release of noise m costs (Gaussian differential privacy: Dong, Roth and Su 2022, corollary 3.3).
    A noisy top-k costs less than its fraction. So do histograms that take more noise than their
    fraction buys, where less is of no use. The caller searches for the m at which the whole plan
    costs the budget.

    Parameters
    ----------
    multiplier : m, the noise of a mean that costs the whole budget, over its sensitivity radius.
    fraction : f, in (0, 1].
    neighbours : the relation. A record that is emptied moves every answer by its radius; one that
        is replaced moves some answers by more than others.
    """

    multiplier: float
    fraction: float = 1.0
    neighbours: Neighbours = "replace_one"

    def divided(self, weights: Sequence[float]) -> tuple[Share, ...]:
        """One share for each weight, in proportion to it."""
        total = sum(weights)
        return tuple(replace(self, fraction=self.fraction * weight / total) for weight in weights)

    def mean_noise(self, releases: int = 1) -> GaussianNoise:
        """The noise of each of so many means.

        A replaced record moves a mean of values in a ball by up to twice the ball's radius.
        """
        return self._noise(releases, 2.0)

    def count_noise(self) -> GaussianNoise:
        """The noise of a histogram, or of a matrix of second moments.

        A replaced record moves these by up to sqrt 2 times the radius.
        """
        return self._noise(1, math.sqrt(2))

    def one_sided_noise(self) -> GaussianNoise:
        """The noise of a mean of values from 0 to the radius; a record moves it by the radius."""
        return self._noise(1, 1.0)

    def _noise(self, releases: int, moved: float) -> GaussianNoise:
        """The noise of releases that a replaced record moves by up to ``moved`` radii."""
        relative = moved / 2 if self.neighbours == "replace_one" else 1.0
        return GaussianNoise(self.multiplier * relative * math.sqrt(releases / self.fraction))
