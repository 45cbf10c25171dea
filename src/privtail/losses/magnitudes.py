"""How large, steep and curved a loss is."""

from __future__ import annotations

import math
from collections.abc import Sequence

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


def unclamped(
    middle: float, clamp: float, weights: Sequence[float] = (1.0, 1.0)
) -> tuple[float, float]:
    """The margins of two labels between which no gain over the margin ``middle`` is clamped.

    Beyond them a label may lose more than a clamp, and the more frequent one gain it. So far
    records gain on average if their margins are on the side of the more frequent label, whatever
    their labels. Between the ends records gain only if log loss falls.
    """

    def end(middle: float, losing: float, gaining: float) -> float:
        loss = float(np.logaddexp(0, middle)) + clamp / losing
        left = float(np.logaddexp(0, -middle)) - clamp / gaining
        most = _margin_of(loss)
        return min(most, -_margin_of(left)) if left > 0 else most

    return -end(-middle, weights[1], weights[0]), end(middle, weights[0], weights[1])


def _margin_of(loss: float) -> float:
    """The margin whose softplus is this loss, above 0."""
    return loss + math.log(-math.expm1(-loss))
