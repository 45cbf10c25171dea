"""Which labels exist: a stability histogram over an unknown domain."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from privtail.errors import InvalidInput
from privtail.trusted.events import Event
from privtail.trusted.mechanisms.samplers import Sampler


@dataclass(frozen=True)
class StabilityHistogram:
    """Releases the labels whose noisy count reaches 1 + k, k about (2/epsilon) log(1/delta).

    Formal guarantee
    ----------------
    (epsilon, delta)-DP under both neighbour relations (Bun, Nissim and Stemmer 2016; ALGORITHMS
    0b.10): discrete Laplace noise of b = 2/epsilon on counts whose l1 sensitivity is 2 under
    replace-one; a label that only one of two neighbours holds has count 1 there and passes with
    probability P(L >= k) = exp(-k/b) / (1 + exp(-1/b)) <= delta, which defines k.
    """

    epsilon: float
    delta: float

    def __post_init__(self) -> None:
        if not (self.epsilon > 0 and 0 < self.delta < 1):
            raise InvalidInput(
                "Buying the labels needs epsilon > 0 and delta in (0, 1). "
                "With delta=0 declare them: classes=[...]."
            )

    @property
    def scale(self) -> float:
        """b; 0 without privacy."""
        return 2.0 / self.epsilon if math.isfinite(self.epsilon) else 0.0

    @property
    def threshold(self) -> int:
        """The smallest noisy count that is released, rounded up."""
        if self.scale == 0:
            return 1
        tail = -math.log(self.delta) - math.log1p(math.exp(-1 / self.scale))
        return 1 + max(0, math.ceil(self.scale * tail * (1 + 1e-12) + 1e-9))

    def event(self) -> Event:
        """The bill, the same whatever is found."""
        return Event(
            law="labels",
            scale=self.scale,
            radius=1.0,
            diameter=2.0,
            coordinates=1,
            delta=self.delta,
            question="labels",
        )

    def release(self, counts: Mapping[Any, int], sampler: Sampler) -> list[Any]:
        """Sorted labels whose noisy count passes."""
        names = sorted(counts, key=lambda label: (str(type(label)), label))
        exact = np.array([counts[name] for name in names], dtype=np.int64)
        noisy = sampler.laplace(exact, self.scale) if self.scale and names else exact
        return [name for name, n in zip(names, noisy, strict=True) if n >= self.threshold]
