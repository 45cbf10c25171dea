"""How large, steep and curved a loss is."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

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


def normal_margins(typical: float) -> tuple[Doubles, Doubles]:
    """Nodes and weights of a mean over normal margins with the root mean square ``typical``."""
    nodes, weights = np.polynomial.hermite_e.hermegauss(96)
    return typical * nodes, weights / weights.sum()


def expected_gains(
    candidates: Sequence[tuple[float, float, tuple[float, float]]], truths: Doubles,
    typical: float, middle: float,
) -> Doubles:  # fmt: skip
    """Expected gains of the margins of two labels over ``middle``: candidates by ``truths``.

    Log-odds are ``middle`` plus a true factor times `normal_margins`. Those of a candidate are
    ``middle`` plus its factor times the same, cut at its ends. Its gains are clamped, and in units
    of the clamp. A candidate is a factor, a clamp and ends.
    """
    z, weights = normal_margins(typical)
    factors, clamps = np.array([(factor, clamp) for factor, clamp, _ in candidates]).T[:, :, None]
    cuts = np.array([ends for _, _, ends in candidates])
    moved = np.clip(middle + factors * z, cuts[:, :1], cuts[:, 1:]) - middle
    zero = np.logaddexp(0, middle) - np.logaddexp(0, middle + moved)
    one, zero = (np.clip(gain, -clamps, clamps) * weights for gain in (zero + moved, zero))
    p = expit(middle + truths[:, None] * z)
    return np.asarray((one @ p.T + zero @ (1 - p).T) / clamps)


def longest_without_loss(
    middle: float, ends: Doubles, gain: float, most: float, heaviest: float = 1.0
) -> float:
    """How many times as long margins of two labels may be without a loss, ``most`` at most.

    Margins are ``middle`` plus offsets between two ``ends``, and have the mean ``gain`` over
    ``middle``. With offsets and ends c times as long it is at least

        c gain - heaviest max over the ends e of (K(c e) - c K(e)),    c >= 1,

    whatever the offsets are. For K(m), the softplus at middle + m above its tangent at middle, is
    convex. So K(c m) - c K(m) grows with the length of m, and all else is linear in m. For c < 1
    the gain is at least c gain. ``heaviest`` is the largest weight of a label.
    """

    def convex(offsets: Doubles) -> Doubles:
        above = np.logaddexp(0, middle + offsets) - np.logaddexp(0, middle)
        return np.asarray(above - offsets * expit(middle))

    times = np.append(most * 2.0 ** (-np.arange(97) / 8), min(most, 1.0))
    longer = times[:, None]
    costs = (convex(longer * ends) - longer * convex(ends)).max(axis=1)
    return float(times[(times <= 1) | (times * gain >= heaviest * costs)].max())


def margin_gap(intercept: Doubles) -> float:
    """The largest margin of an intercept-only model of labels, less the second largest.

    ``intercept`` has the shape (1, K), or (0, K) without an intercept.
    """
    if intercept.size == 0:
        return 0.0
    margins = np.sort(intercept[0]) if intercept.size > 1 else np.array([0.0, abs(intercept[0, 0])])
    return float(margins[-1] - margins[-2])


def _margin_of(loss: float) -> float:
    """The margin whose softplus is this loss, above 0."""
    return loss + math.log(-math.expm1(-loss))
