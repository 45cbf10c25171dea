"""The budget that may be spent: (epsilon, delta) under a stated neighbour relation."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

from privtail.errors import InvalidInput, real, told

Neighbours = Literal["replace_one", "zero_out"]
NEIGHBOURS: tuple[Neighbours, ...] = ("replace_one", "zero_out")

ROW = "one row, not several of one person"
"""What is protected without ``groups``."""


def protected(max_rows: int | None) -> str:
    """The protected unit in words: a row, or a person of whom at most ``max_rows`` rows count."""
    if max_rows is None:
        return ROW
    return f"one person, of whose rows at most {max_rows} {'are' if max_rows > 1 else 'is'} used"


@dataclass(frozen=True)
class Budget:
    """An (epsilon, delta) guarantee and the relation it is stated for.

    Parameters
    ----------
    epsilon : float
        Above 0, or ``math.inf`` for no privacy at all: then no noise is drawn and every statement
        says ``not private``.
    delta : float, default=0.0
        In [0, 1). Zero asks for pure epsilon-DP.
    neighbours : {"replace_one", "zero_out"}, default="replace_one"
        ``"replace_one"``: two data sets of n rows differ in one row. ``"zero_out"``: one of n
        public slots is filled or empty; an empty slot contributes 0.

    Raises
    ------
    InvalidInput
        If a number is outside its range or the relation is unknown.

    Examples
    --------
    >>> from privtail import Budget
    >>> Budget(1.0, 1e-6).private
    True
    """

    epsilon: float
    delta: float = 0.0
    neighbours: Neighbours = "replace_one"

    def __post_init__(self) -> None:
        for name in ("epsilon", "delta"):
            object.__setattr__(self, name, real(name, getattr(self, name)))
        if not self.epsilon > 0 or math.isnan(self.epsilon):
            raise InvalidInput(
                f"epsilon must be positive, got {self.epsilon!r}. Typical values lie between 0.1 "
                "and 10;",
                "epsilon=float('inf') fits without privacy and says so.",
                cli="--epsilon inf fits without privacy and says so.",
            )
        if not 0 <= self.delta < 1:
            raise InvalidInput(
                f"delta must lie in [0, 1), got {self.delta!r}. Choose it well below 1/n,",
                "for example delta=1e-6.",
                cli="for example --delta 1e-6.",
            )
        if self.neighbours not in NEIGHBOURS:
            raise InvalidInput(
                f"neighbours must be one of {', '.join(map(repr, NEIGHBOURS))}, "
                f"got {told(self.neighbours)}."
            )
        plain = NEIGHBOURS[NEIGHBOURS.index(self.neighbours)]  # what is billed is what is said
        object.__setattr__(self, "neighbours", plain)

    @property
    def private(self) -> bool:
        """False exactly when epsilon is infinite."""
        return math.isfinite(self.epsilon)
