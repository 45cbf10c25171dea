"""Which labels exist: a stability histogram over an unknown domain."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from operator import index
from typing import Any

import numpy as np

from privtail.errors import InvalidInput, require_whole
from privtail.trusted.events import Event, read_once
from privtail.trusted.mechanisms.samplers import Sampler


@dataclass(frozen=True)
class StabilityHistogram:
    """Releases the labels whose noisy count reaches m + k, k about (2m/epsilon) log(m/delta).

    Parameters
    ----------
    epsilon, delta : what the release costs.
    max_rows : m, rows of one person that are counted; 1 protects a row.

    Formal guarantee
    ----------------
    (epsilon, delta)-DP under both neighbour relations (Bun, Nissim and Stemmer 2016; ALGORITHMS
    0b.10): discrete Laplace noise of b = 2m/epsilon on counts whose l1 sensitivity is 2m under
    replace-one. Labels that only one of two neighbours holds belong to the changed person: there
    are at most m, each with a count of at most m, so that one of them passes with probability at
    most m P(L >= k) = m exp(-k/b) / (1 + exp(-1/b)) <= delta, which defines k.

    Let a, a' <= delta be these probabilities on the two sides, S a set of answers and t <= 1 the
    smaller of 1 and e^epsilon times the probability of S, on the other side, from the labels that
    both hold. One side is in S with probability at most a + (1 - a) t <= t + delta (1 - t), and
    e^epsilon times the other's probability, plus delta, is at least (1 - a') t + delta, which is
    no less.
    """

    epsilon: float
    delta: float
    max_rows: int = 1

    def __post_init__(self) -> None:
        read_once(self, "epsilon", "delta", kind=float)
        if not (self.epsilon > 0 and 0 < self.delta < 1):
            raise InvalidInput(
                "Buying the labels needs epsilon > 0 and delta in (0, 1). "
                "With delta=0 declare them: classes=[...]."
            )
        require_whole("max_rows", self.max_rows, 1)
        read_once(self, "max_rows", kind=index)

    @property
    def scale(self) -> float:
        """b; 0 without privacy."""
        return 2.0 * self.max_rows / self.epsilon if math.isfinite(self.epsilon) else 0.0

    @property
    def threshold(self) -> int:
        """The smallest noisy count that is released, rounded up."""
        if self.scale == 0:
            return 1
        tail = math.log(self.max_rows / self.delta) - math.log1p(math.exp(-1 / self.scale))
        return self.max_rows + max(0, math.ceil(self.scale * tail * (1 + 1e-12) + 1e-9))

    def event(self) -> Event:
        """The bill, the same whatever is found."""
        return Event(
            law="labels",
            scale=self.scale,
            radius=float(self.max_rows),
            diameter=2.0 * self.max_rows,
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
