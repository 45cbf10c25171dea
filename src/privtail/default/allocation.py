"""How a budget is divided among the releases of a fit."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

from privtail.trusted.budget import Neighbours
from privtail.trusted.mechanisms.noise import GaussianNoise


@dataclass(frozen=True)
class Allocation:
    """Noise of every release: all of them together cost what one mean of noise ``m`` would.

    Gaussian releases of noise m / sqrt(f), whose fractions f add up to 1, compose to one of noise m
    (Gaussian differential privacy: Dong, Roth and Su 2022, corollary 3.3). A noisy top-k costs less
    than its fraction, and so do releases that need less noise than they may have; m is found by
    search for what the plan really costs.

    Parameters
    ----------
    multiplier : m, the noise over the sensitivity radius of a mean that costs the whole budget.
    weights : budget weight of every stage of the fit; a fraction is a weight over their sum.
    neighbours : the relation. A record that is emptied moves every answer by its radius; one that
        is replaced moves some answers by more than others.
    """

    multiplier: float
    weights: Mapping[str, float]
    neighbours: Neighbours = "replace_one"

    def mean_noise(self, stage: str, releases: float = 1) -> GaussianNoise:
        """Of each of so many means that share the fraction of a stage.

        A replaced record moves a mean of values in a ball by up to twice the ball's radius.
        """
        return self._noise(stage, releases, 2.0)

    def count_noise(self, stage: str, releases: float = 1) -> GaussianNoise:
        """Of each of so many histograms, or matrices of second moments.

        A replaced record moves these by up to sqrt 2 times the radius.
        """
        return self._noise(stage, releases, math.sqrt(2))

    def one_sided_noise(self, stage: str) -> GaussianNoise:
        """Of a mean of values from 0 to the radius, which a record moves by up to the radius."""
        return self._noise(stage, 1, 1.0)

    def _noise(self, stage: str, releases: float, moved: float) -> GaussianNoise:
        """Of releases that a replaced record moves by up to ``moved`` times the radius."""
        fraction = self.weights[stage] / sum(self.weights.values())
        relative = moved / 2 if self.neighbours == "replace_one" else 1.0
        return GaussianNoise(self.multiplier * relative * math.sqrt(releases / fraction))
