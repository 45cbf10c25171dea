"""How steps with momentum add up the noise of gradients."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Doubles = NDArray[np.float64]


def momentum_sums(momentum: float, steps: int) -> Doubles:
    """(steps,) 1 + momentum + momentum^2 + ...: where a move of 1 at each step leads in the end."""
    ages = np.arange(steps, 0, -1)
    return np.asarray((1 - momentum**ages) / (1 - momentum))


def noise_factors(
    rates: Doubles, step_sizes: Doubles, skipped: int, momentum: float
) -> tuple[Doubles, Doubles]:
    """The linear factors from start, and from gradient noise, to the average of the iterates.

    A step contracts each direction by its rate in ``rates`` (r,). After k more steps a move of 1 is
    h(k), with h(k + 1) = (1 - rate) ((1 + momentum) h(k) - momentum h(k - 1)). The first
    ``skipped`` iterates are left out of the average. Returns (r,) the factor of the start, and (r,)
    the root of the sum of squares of the factors of all steps.
    """
    steps = len(step_sizes)

    def impulse_response(before: float) -> Doubles:
        h = [np.full_like(rates, before), np.ones_like(rates)]
        for _ in range(steps):
            h.append((1 - rates) * ((1 + momentum) * h[-1] - momentum * h[-2]))
        return np.array(h[1:])

    start = impulse_response(1.0)[1 + skipped :].mean(axis=0)
    sums = np.vstack([np.zeros_like(rates), np.cumsum(impulse_response(0.0), axis=0)])
    ages = np.arange(steps, 0, -1)
    each = (sums[ages] - sums[np.maximum(ages - (steps - skipped), 0)]) / (steps - skipped)
    return start, np.linalg.norm(step_sizes[:, None] * each, axis=0)
