"""How large, steep and curved a loss is."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from privtail.compilation import interpreted
from privtail.losses.numeric import QuantileLoss, SquaredLoss
from privtail.losses.protocol import Loss

Doubles = NDArray[np.float64]


def curvature_of(loss: Loss, unit: float) -> float:
    """The largest second derivative of a loss; for a loss with a kink, its slope over ``unit``."""
    found = loss.curvature if loss.curvature < math.inf else loss.lipschitz / unit
    return found if 0 < found < math.inf else 1.0


def kinked(loss: Loss) -> bool:
    """Whether the derivative of a loss jumps: no curvature bounds how fast it changes."""
    return loss.lipschitz < math.inf == loss.curvature


def loss_off_by(loss: Loss, unit: float) -> float:
    """The loss of a margin that is off by ``unit``; of a quantile loss the usual one there.

    It is 1 if that is zero or not finite.
    """
    if isinstance(loss, QuantileLoss):
        return unit * loss.usual
    if isinstance(loss, SquaredLoss):  # in closed form: who asks a cluster may have no compiler
        bound = 0.5 * unit * unit
    else:
        missed, hit = loss.values(np.array([[unit], [0.0]]), np.zeros(2))
        bound = float(missed - hit)
    return bound if 0 < bound < math.inf else 1.0


def largest_derivative(loss: Loss, intercept: Doubles) -> float:
    """The largest derivative (its l2 norm) of a loss of labels at an intercept-only model."""
    labels = np.arange(max(2, loss.outputs), dtype=np.float64)
    margins = np.repeat(intercept.sum(axis=0, keepdims=True), len(labels), axis=0)
    with interpreted():
        return float(np.linalg.norm(loss.derivatives(margins, labels), axis=1).max())


def margin_gap(intercept: Doubles) -> float:
    """The largest margin of an intercept-only model of labels, less the second largest.

    ``intercept`` has the shape (1, K), or (0, K) without an intercept.
    """
    if intercept.size == 0:
        return 0.0
    margins = np.sort(intercept[0]) if intercept.size > 1 else np.array([0.0, abs(intercept[0, 0])])
    return float(margins[-1] - margins[-2])
