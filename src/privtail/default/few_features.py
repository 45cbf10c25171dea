"""Few features where noise over all of them would hide every slope."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import ClassVar, Self

from numpy.typing import ArrayLike

from privtail.algorithms.protocol import Algorithm, require_loss
from privtail.algorithms.result import Result
from privtail.default.scaled_descent import ScaledDescent
from privtail.default.short_descent import ShortDescent
from privtail.domains import Domain
from privtail.losses import LABELS, AnyLoss
from privtail.trusted.curator import Curator
from privtail.trusted.events import Plan
from privtail.trusted.problem import Problem

FEW = 10
"""How many features are selected at most where nothing is known of their number."""

MANY = 5 * FEW
"""From so many features on, some may be left out."""

CROWDED = 0.5
"""Length of a gradient's noise over all features from which it is too much, for numbers.

Gradients of standardized rows with residuals of 1 have length 1 where one feature tells all.
"""

CROWDED_LABELS = 0.7
"""The same for two labels: directions of slopes matter more than their lengths.

For K labels sqrt(K / 2) times as much: the more there are, the less ten features tell them apart.
"""


@dataclass(frozen=True, kw_only=True)
class FewOrAll:
    """``few`` where noise over many features would hide every slope, else ``every``.

    Which of the two is decided by public numbers: n, d and the noise.

    Parameters
    ----------
    few : selects `FEW` features and fits their slopes.
    every : fits all slopes.
    labels : how many are declared; 2 where they are still to buy, for a plan comes first.

    **Privacy.** That of the algorithm that runs.

    **Utility.** None proved; measured in ``benchmarks/accuracy.py``.
    """

    few: ShortDescent
    every: Algorithm
    labels: int = 2

    needs: ClassVar[tuple[str, ...]] = ("prox", "scaled")
    in_typical_rows: ClassVar[bool] = True

    @classmethod
    def of(cls, fine: ScaledDescent, every: Algorithm, labels: int = 2) -> Self:
        """With `ShortDescent` and ``fine`` on selected features."""
        return cls(few=selecting(fine, FEW), every=every, labels=labels)

    def plan(self, multiplier: float, problem: Problem) -> Plan:
        """That of the algorithm that runs."""
        return self._chosen(multiplier, problem).plan(multiplier, problem)

    def takes(self, loss: AnyLoss, problem: Problem) -> None:
        """A loss that both take."""
        for algorithm in (self.few, self.every):
            require_loss(algorithm, loss, problem)

    def run(
        self, curator: Curator, loss: AnyLoss, domain: Domain, multiplier: float,
        start: ArrayLike | None = None,
    ) -> Result:  # fmt: skip
        """One of the two; parameters in the units of the raw features."""
        chosen = self._chosen(multiplier, curator.problem)
        return chosen.run(curator, loss, domain, multiplier, start)

    def _chosen(self, multiplier: float, problem: Problem) -> Algorithm:
        noise = multiplier * problem.max_rows / problem.n * math.sqrt(problem.d)
        most = CROWDED
        if self.few.targets in LABELS:
            most = CROWDED_LABELS * math.sqrt(self.labels / 2)
        return self.few if problem.d >= MANY and noise > most else self.every


def selecting(fine: ScaledDescent, sparsity: int) -> ShortDescent:
    """A selection of so many features, and a descent on them: ``fine`` where noise is small."""
    return ShortDescent(
        sparsity=sparsity, targets=fine.targets, squares=fine.squares,
        fine=replace(fine, sparsity=sparsity),
    )  # fmt: skip
