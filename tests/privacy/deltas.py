"""The delta of a bill at an epsilon, from its epsilons: bills answer with epsilons alone."""

from __future__ import annotations

import math

from privtail.trusted.accountants import Cost


def delta_of(bill: Cost, epsilon: float) -> float:
    """The least delta, up to one part in 10^11, at which a bill is of this epsilon at most."""
    if bill.epsilon(0.0) <= epsilon:
        return 0.0
    low, high = -80.0, 0.0
    for _ in range(43):
        middle = (low + high) / 2
        low, high = (low, middle) if bill.epsilon(math.exp(middle)) <= epsilon else (middle, high)
    return math.exp(high)
