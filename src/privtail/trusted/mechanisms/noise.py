"""Additive noise on integers: rounded Gaussian, and discrete Laplace."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privtail.errors import InvalidInput
from privtail.trusted.events import Event, Law, read_once
from privtail.trusted.mechanisms.samplers import Sampler
from privtail.trusted.sensitivity import INTEGER_LIMIT, Sensitivity


def billed(law: Law, multiplier: float, sensitivity: Sensitivity, norm: str, **also: Any) -> Event:
    """The bill of noise of ``multiplier`` x the radius in a norm ("l1", "l2" or "linf").

    Noise that could reach the end of 64-bit integers is refused, from public numbers.
    """
    radius = getattr(sensitivity.radius, norm)
    scale = multiplier * radius
    if sensitivity.magnitude + 40 * scale >= INTEGER_LIMIT:
        raise InvalidInput(
            "The budget is too small: its noise is larger than exact arithmetic can hold, and than "
            "any result. Raise epsilon; of an algorithm with a number of steps, fewer help too."
        )
    return Event(
        law=law,
        scale=scale,
        radius=radius,
        diameter=getattr(sensitivity.diameter, norm),
        coordinates=sensitivity.size,
        unit=sensitivity.unit,
        question=sensitivity.question,
        recipe=sensitivity.recipe,
        **also,
    )


def require_multiplier(mechanism: Any) -> None:
    """A noise multiplier is finite and not negative; 0 is the non-private limit."""
    read_once(mechanism, "multiplier", kind=float)
    if not 0 <= mechanism.multiplier < float("inf"):
        raise InvalidInput(
            f"multiplier must be finite and not negative, got {mechanism.multiplier!r}."
        )


@dataclass(frozen=True)
class GaussianNoise:
    """Gaussian noise with std = ``multiplier`` x l2 radius on every coordinate, then rounding.

    Formal guarantee
    ----------------
    Let D be the l2 sensitivity (``radius`` under zero-out, ``diameter`` under replace-one) and s
    the standard deviation, both in grid units. What leaves is the exact integers plus normal noise,
    correctly rounded to integers (`ExactSampler`). Rounding is post-processing of the Gaussian
    mechanism, so the release is exactly (D/s)-GDP (Dong, Roth and Su 2022) and (D/s)^2/2-zCDP (Bun
    and Steinke 2016), at any s.
    """

    multiplier: float

    def __post_init__(self) -> None:
        require_multiplier(self)

    def event(self, sensitivity: Sensitivity) -> Event:
        """The bill of one release."""
        return billed("gaussian", self.multiplier, sensitivity, "l2")

    def release(
        self, value: NDArray[np.int64], sensitivity: Sensitivity, sampler: Sampler
    ) -> NDArray[np.float64]:
        """Noisy value in real units, shape (size,)."""
        scale = self.multiplier * sensitivity.radius.l2
        noisy = sampler.gaussian(value, scale) if scale > 0 else value
        return noisy.astype(np.float64) * sensitivity.unit


@dataclass(frozen=True)
class LaplaceNoise:
    """Discrete Laplace noise with parameter ``multiplier`` x l1 radius on every coordinate.

    Formal guarantee
    ----------------
    With integer l1 sensitivity D and parameter b the release is pure (D/b)-DP; in zCDP it costs
    (D/b) tanh(D/(2b)), not the smaller figure of the continuous law.
    """

    multiplier: float

    def __post_init__(self) -> None:
        require_multiplier(self)

    def event(self, sensitivity: Sensitivity) -> Event:
        """The bill of one release."""
        return billed("laplace", self.multiplier, sensitivity, "l1")

    def release(
        self, value: NDArray[np.int64], sensitivity: Sensitivity, sampler: Sampler
    ) -> NDArray[np.float64]:
        """Noisy value in real units, shape (size,)."""
        scale = self.multiplier * sensitivity.radius.l1
        noisy = sampler.laplace(value, scale) if scale > 0 else value
        return noisy.astype(np.float64) * sensitivity.unit
