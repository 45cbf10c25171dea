"""Selection: which coordinates are largest, by Gumbel noise or by Laplace noise."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from privtail.errors import InvalidInput
from privtail.trusted.events import Event, read_whole
from privtail.trusted.mechanisms.noise import billed, require_multiplier
from privtail.trusted.mechanisms.samplers import Sampler
from privtail.trusted.sensitivity import Sensitivity


@dataclass(frozen=True)
class NoisyTopK:
    """Indices of the ``picks`` largest scores under Gumbel noise of ``multiplier`` x l-inf radius.

    Formal guarantee
    ----------------
    Adding Gumbel(b) and taking the largest is the exponential mechanism with exponent score/b.
    If one record changes all scores within a range G (twice the l-infinity sensitivity; once if
    the change has one sign for all of them), it is G/b-bounded-range, hence (G/b)-DP and
    (G/b)^2/8-zCDP; the one-shot top k has the law of k peeled selections and costs k times that,
    or what `BoundedRange` says.
    """

    multiplier: float
    picks: int

    def __post_init__(self) -> None:
        require_multiplier(self)
        read_whole(self, picks=1)

    def event(self, sensitivity: Sensitivity) -> Event:
        """The bill of one release."""
        if self.picks > sensitivity.size:
            raise InvalidInput(
                f"picks must be at most {sensitivity.size}, the number of scores; got {self.picks}."
            )
        return billed(
            "noisy_max", self.multiplier, sensitivity, "linf",
            picks=self.picks, one_signed=sensitivity.one_signed,
        )  # fmt: skip

    def release(
        self, value: NDArray[np.int64], sensitivity: Sensitivity, sampler: Sampler
    ) -> NDArray[np.int64]:
        """The chosen indices, largest noisy score first, shape (picks,)."""
        scale = self.multiplier * sensitivity.radius.linf
        if scale == 0:
            return np.argsort(-value, kind="stable")[: self.picks]
        return sampler.top(value, scale, self.picks)


@dataclass(frozen=True)
class NoisyMax:
    """The index of the largest score: `NoisyTopK` with one pick."""

    multiplier: float

    def __post_init__(self) -> None:
        require_multiplier(self)

    def event(self, sensitivity: Sensitivity) -> Event:
        """The bill of one release."""
        return NoisyTopK(self.multiplier, 1).event(sensitivity)

    def release(self, value: NDArray[np.int64], sensitivity: Sensitivity, sampler: Sampler) -> int:
        """The chosen index."""
        return int(NoisyTopK(self.multiplier, 1).release(value, sensitivity, sampler)[0])


@dataclass(frozen=True)
class LaplaceMax:
    """The index of the largest score under discrete Laplace noise of ``multiplier`` x l-inf radius.

    Ties go to the first. `NoisyMax` makes the same choice at a lower cost; this one is in the
    peeling of Cai, Wang and Zhang 2019.

    Formal guarantee
    ----------------
    Fix the noise of all scores but j. Then j wins iff its own noise reaches an integer threshold
    t = max over the others of (score + noise) minus score j, or t + 1 where an earlier one ties. If
    one record changes all scores within a range G (twice the l-infinity sensitivity; once if the
    change has one sign for all of them), t moves by at most G, and so does t + 1. For the discrete
    Laplace P(Z = k + G) >= e^(-G/b) P(Z = k), hence P(Z >= t + G) >= e^(-G/b) P(Z >= t): every
    choice, and so every set of choices, is (G/b)-DP. It is not of bounded range.
    """

    multiplier: float

    def __post_init__(self) -> None:
        require_multiplier(self)

    def event(self, sensitivity: Sensitivity) -> Event:
        """The bill of one release."""
        return replace(NoisyMax(self.multiplier).event(sensitivity), law="laplace_max")

    def release(self, value: NDArray[np.int64], sensitivity: Sensitivity, sampler: Sampler) -> int:
        """The chosen index."""
        scale = self.multiplier * sensitivity.radius.linf
        return int(np.argmax(sampler.laplace(value, scale) if scale > 0 else value))
