"""Discovery of labels: a stability histogram over an unknown domain."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy.special import ndtri_exp

from privtail.errors import InvalidInput
from privtail.trusted.events import Event, read_once
from privtail.trusted.mechanisms.noise import GaussianNoise, require_multiplier
from privtail.trusted.mechanisms.samplers import Sampler
from privtail.trusted.sensitivity import Sensitivity


@dataclass(frozen=True)
class StabilityHistogram:
    """Releases the labels whose noisy count is far above what one person can add.

    Counts of the labels that occur get Gaussian noise of std = ``multiplier`` x l2 radius,
    and those that reach a threshold are released.

    Parameters
    ----------
    multiplier : noise, in units of what one person adds; 0 releases every label that occurs.
    delta : probability that a label shows which only one of two neighbours holds.

    Formal guarantee
    ----------------
    A threshold on noisy counts (Bun, Nissim and Stemmer 2016); with Gaussian noise Gopi et al. 2020
    and Wilkins et al. 2024. Fix two neighbours; they differ in m rows of one person. Let C be
    the labels that both hold, and consider the releases that would be made of C alone. Exchanging
    one row moves two counts by one, so m rows move the counts of C by at most m sqrt 2 in l2 and at
    most 2m of them; emptying them by at most m. What is released of C is post-processing of these
    counts with their noise: it costs what `GaussianNoise` costs on 2m coordinates, in whatever
    theorem the other releases use, before and after.

    A label outside C is the person's own. There are at most m, each with a count of at most m, and
    it shows with probability at most P(Z >= threshold - m) <= delta / m (`rare`): that any does is
    an accident of probability at most delta. The noise of every label is drawn apart, so this is
    independent of what is released of C and of all that went before; and where no own label shows,
    the neighbour releases what it would release of C. So the law of all that the fit releases, also
    of what is chosen after seeing the labels, is within `ButFor` of one in which this release was
    Gaussian: its delta is added once to that of everything else together.
    """

    multiplier: float
    delta: float

    def __post_init__(self) -> None:
        require_multiplier(self)
        read_once(self, "delta", kind=float)
        if not 0 < self.delta < 1:
            raise InvalidInput(
                "Finding labels needs delta in (0, 1). With delta 0, declare the labels as classes."
            )

    def event(self, counted: Sensitivity) -> Event:
        """The event, the same whatever is found; ``counted`` is `Problem.labels`."""
        noise = GaussianNoise(self.multiplier).event(counted)
        return replace(noise, law="gaussian_labels", delta=self.delta)

    def threshold(self, counted: Sensitivity) -> int:
        """The smallest noisy count that is released, on the grid."""
        scale = self.multiplier * counted.radius.l2
        if scale == 0:
            return 1
        rows = counted.radius.l1 * counted.unit
        return math.ceil(counted.radius.linf) + rare(scale, math.log(self.delta) - math.log(rows))

    def release(
        self, counts: Mapping[Any, int], counted: Sensitivity, sampler: Sampler
    ) -> list[Any]:
        """Sorted labels whose noisy count passes."""
        names = sorted(counts, key=lambda label: (str(type(label)), label))
        exact = np.array([counts[name] for name in names], dtype=np.int64) * int(1 / counted.unit)
        scale, threshold = self.multiplier * counted.radius.l2, self.threshold(counted)
        noisy = sampler.gaussian(exact, scale) if scale and names else exact
        return [name for name, n in zip(names, noisy, strict=True) if n >= threshold]


def rare(scale: float, log_probability: float) -> int:
    """A k that rounded normal noise of deviation ``scale`` reaches with at most this probability.

    Formal guarantee
    ----------------
    What rounds to k or more is at least k - 1/2, so more than k - 1 = ceil(scale x quantile). A
    normal variable reaches that with at most the probability exp(``log_probability``). The normal
    quantile is raised by 1e-9, of which its rounding takes a thousandth.
    """
    quantile = max(0.0, -float(ndtri_exp(log_probability))) + 1e-9
    return 1 + math.ceil(scale * quantile)
