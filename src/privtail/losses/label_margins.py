"""How long margins of labels should be: what models with shorter margins gain in log loss."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

Doubles = NDArray[np.float64]


Ends = tuple[float, float]
"""The least and the largest log-odds: of the second of two labels, or of the most frequent one."""


class Candidate(NamedTuple):
    """A model of labels whose mean gain over the base is released.

    Its margins are those of the base plus ``factor`` times the fitted difference from the base,
    clipped to ``ends``. The gain of a record is clamped at ``clamp``, in nats.
    """

    factor: float
    clamp: float
    ends: Ends


def unclamped(middle: float, clamp: float, weights: Sequence[float] = (1.0, 1.0)) -> Ends:
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


def best_factor(
    candidates: Sequence[Candidate], gains: Doubles, deviation: float, typical: float, middle: float
) -> tuple[float, float, float, float]:
    """The factor of the margins that gains most, its gain, its significance and its deviation.

    The model is that of `_expected_gains`. The true factor, and a common scale near 1 of all gains,
    are fitted to the noisy ``gains`` by least squares. Factors are searched on a grid from 1 down
    to 2^-12 in eighths of an octave (so within 5 %), and at zero.

    The significance is that of a matched filter: the sum of the gains, weighted by their expected
    values, in standard deviations of its noise. The largest over all factors counts as two tests
    (`bonferroni`), because the first gain has most of the weight, or the others have. ``gains`` and
    ``deviation``, that of their noise, are in units of the clamps.

    The last number is the posterior standard deviation of the true factor, for a uniform prior.
    """
    z, weights = _normal_margins(typical)
    truths = np.append(2.0 ** (-np.arange(97) / 8), 0.0)
    expected = _expected_gains(candidates, truths, typical, middle) / deviation
    released = gains / deviation
    scales = np.maximum((released @ expected + 1) / (np.sum(expected**2, axis=0) + 1), 0.0)
    errors = np.sum((scales * expected - released[:, None]) ** 2, axis=0) + (scales - 1) ** 2
    best = int(errors.argmin())
    factor = float(truths[best])
    own = np.logaddexp(0, middle) - np.logaddexp(0, middle + factor * z)
    gain = float((own + factor * z * expit(middle + factor * z)) @ weights)
    filters = np.maximum(expected, 0.0)
    lengths = np.maximum(np.linalg.norm(filters, axis=0), np.finfo(np.float64).tiny)
    significance = float((released @ filters / lengths).max())
    likelihoods = truths * np.exp((errors[best] - errors) / 2)  # times the spacing of the grid
    total = max(float(likelihoods.sum()), 1e-300)
    std = math.sqrt(float(likelihoods @ (truths - factor) ** 2) / total)
    rounding = factor * math.log(2) / 8 / math.sqrt(12)
    return factor, float(scales[best]) * gain, significance, math.hypot(std, rounding)


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


def _expected_gains(
    candidates: Sequence[Candidate], truths: Doubles, typical: float, middle: float
) -> Doubles:  # fmt: skip
    """Expected gains of the margins of two labels over ``middle``: candidates by ``truths``.

    Log-odds are ``middle`` plus a true factor times `_normal_margins`. Those of a candidate are
    ``middle`` plus its factor times the same, cut at its ends. Its gains are clamped, and in units
    of the clamp.
    """
    z, weights = _normal_margins(typical)
    factors, clamps = np.array([(factor, clamp) for factor, clamp, _ in candidates]).T[:, :, None]
    cuts = np.array([ends for _, _, ends in candidates])
    moved = np.clip(middle + factors * z, cuts[:, :1], cuts[:, 1:]) - middle
    zero = np.logaddexp(0, middle) - np.logaddexp(0, middle + moved)
    one, zero = (np.clip(gain, -clamps, clamps) * weights for gain in (zero + moved, zero))
    p = expit(middle + truths[:, None] * z)
    return np.asarray((one @ p.T + zero @ (1 - p).T) / clamps)


def _normal_margins(typical: float) -> tuple[Doubles, Doubles]:
    """Nodes and weights of a mean over normal margins with the root mean square ``typical``."""
    nodes, weights = np.polynomial.hermite_e.hermegauss(96)
    return typical * nodes, weights / weights.sum()


def _margin_of(loss: float) -> float:
    """The margin whose softplus is this loss, above 0."""
    return loss + math.log(-math.expm1(-loss))
