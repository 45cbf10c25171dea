"""How long true slopes likely are beside fitted ones, from releases alone."""

from __future__ import annotations

import math
from typing import cast

import numpy as np
from numpy.typing import NDArray
from scipy.special import chdtr, chdtrc, expit, gammaln

from privtail.default.fitted import FittedSlopes
from privtail.losses import AmountLoss, LogisticLoss, WeightedLoss
from privtail.losses.hessians import NODES

Doubles = NDArray[np.float64]

LENGTHS = 2.0 ** (np.arange(-24, 25) / 8)
"""Lengths of true margins that are tried, as multiples of that of the fitted ones."""

EXTREME, HALVINGS = 1e3, 40
"""Mean log-odds are searched by bisection between -EXTREME and EXTREME, with HALVINGS steps."""


def likely_part(slopes: FittedSlopes, noise: Doubles) -> tuple[float, float]:
    """The true slopes as a multiple of the fitted ones, for two labels, counts and amounts.

    It returns the multiple and its deviation, for ``noise`` (r,) along the principal directions.

    The length of margins is their standard deviation. Clipped derivatives make fitted margins of
    labels too long, and few or short steps make them too short. Amounts have cut predictions, which
    make margins too long. For normal margins, the true length decides the length of a fit. So many
    true lengths are tried, and the one that leads to the length of this fit is taken.

    It is NaN where no true length leads to the length of this fit, or to one that is a standard
    deviation of the noise longer or shorter. Then the slopes are mostly noise, or steps are too
    few, so that long margins of any length end alike. It is NaN, too, for labels without a
    significant gain, because the length of their margins was not measured. It is 1 for other
    targets, without an intercept, and without privacy.
    """
    loss = slopes.loss.loss if isinstance(slopes.loss, WeightedLoss) else slopes.loss
    w = slopes.w[: slopes.d] / max(slopes.decision.margin_factor, np.finfo(np.float64).tiny)
    coordinates = slopes.preconditioner.principal_coordinates(w)
    found = float(np.linalg.norm(coordinates))
    private = any(run.schedule.std > 0 for run in slopes.runs)
    intercept = len(slopes.w) > slopes.d
    if not (private and intercept and 0 < found < math.inf):
        return 1.0, 0.0
    ends = found * LENGTHS
    if isinstance(loss, LogisticLoss):
        if not slopes.decision.significant:
            return math.nan, math.nan
        ends = np.maximum.accumulate(_fitted_lengths(slopes, ends))
    elif not isinstance(loss, AmountLoss):
        return 1.0, 0.0

    def part(length: float) -> float:
        at, to = length, ends
        if isinstance(loss, AmountLoss):
            at, to = _weighted_margins(slopes, length, ends)
        return float(np.interp(at, to, LENGTHS, left=math.nan, right=math.nan))

    unsure = float(np.linalg.norm(coordinates[:, 0] / found * noise))
    deviation = (part(found + unsure) - part(found - unsure)) / 2
    return (math.nan if math.isnan(deviation) else part(found)), deviation


def _weighted_margins(slopes: FittedSlopes, found: float, true: Doubles) -> tuple[float, Doubles]:
    """The mean margin weighted by amounts: of a fit of length ``found``, and of true lengths (k,).

    Let q be the cut predictions, and let the variance have the power p of the mean. A fit makes two
    weighted sums of q equal to those of the amounts: the sums themselves, and the sums of products
    with the margins. The weights are q^(1 - p). So a true length leads to the fit whose mean margin
    is the same.
    """
    d, log_exposure = slopes.d, math.log(slopes.exposure)
    middle = slopes.preconditioner.with_intercept(slopes.w[:d])[d:]
    centre = float((slopes.w[d:] - middle).sum()) + log_exposure
    z, parts = np.polynomial.hermite_e.hermegauss(NODES)
    low, high = (end + log_exposure for end in slopes.margin_range)
    cut = np.clip(centre + found * z, low, high)
    power = cast(AmountLoss, slopes.loss).power

    def mean(logs: Doubles) -> Doubles:
        weights = parts * np.exp(logs - logs.max(axis=-1, keepdims=True))
        return np.asarray(weights @ z / weights.sum(axis=-1))

    return float(mean((2 - power) * cut)), mean((1 - power) * cut + true[:, None] * z)


def _fitted_lengths(slopes: FittedSlopes, true: Doubles) -> Doubles:
    """The length of margins at which a fit without noise ends, for each true length (k,).

    The true log-odds are taken to be normal. Their deviation is the true length, and their mean
    gives the released frequency of the label. Then the mean gradient is known at every model, and
    so is every step.
    """
    zero, one = slopes.loss.weights if isinstance(slopes.loss, WeightedLoss) else (1.0, 1.0)
    start = float(slopes.intercept_only[slopes.d :].sum())
    z, parts = np.polynomial.hermite_e.hermegauss(NODES)
    parts, margins = parts / parts.sum(), true[:, None] * z
    frequency = expit(start - math.log(one / zero))
    low, high = (np.full_like(true, end) for end in (-EXTREME, EXTREME))
    for _ in range(HALVINGS):
        middle = (low + high) / 2
        more = expit(middle[:, None] + margins) @ parts > frequency
        low, high = np.where(more, low, middle), np.where(more, middle, high)
    p = expit(low[:, None] + margins)
    active, row = int(slopes.preconditioner.active.sum()), slopes.preconditioner.row_length
    w = np.stack([np.full_like(true, start), np.zeros_like(true)])
    for schedule in (run.schedule for run in slopes.runs):
        most, total, at = schedule.mean.threshold, np.zeros_like(w), w
        length = schedule.step_size * left_of_rows(active, schedule.mean.row_length / row)
        for step in range(schedule.steps):
            q = expit(at[0][:, None] + at[1][:, None] * z)
            g = (1 - p) * np.minimum(zero * q, most) - p * np.minimum(one * (1 - q), most)
            new = at - length * np.stack([g @ parts, g @ (parts * z)])
            total += new if step >= schedule.skipped else 0.0
            at, w = new + schedule.momentum * (new - w), new
        w = total / (schedule.steps - schedule.skipped)
    return np.asarray(w[1])


def left_of_rows(r: int, part: float = 1.0) -> float:
    """The part of second moments that is left if rows are shrunk to a ``part`` of a typical length.

    For normal rows of r coordinates: E |x| min(|x|, part sqrt(r)) / r. Whatever the law is, a part
    of 1 leaves half of the released moments at least, whose rows are clipped to twice that length.
    """
    length, square = math.sqrt(2) * math.exp(gammaln((r + 1) / 2) - gammaln(r / 2)), part**2 * r
    return float(chdtr(r + 2, square) + part * length * chdtrc(r + 1, square) / math.sqrt(r))
