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

    Clipped derivatives make slopes of labels too long, and few or short steps make them too short.
    Predictions of amounts that are cut make slopes too long. For normal margins the length of the
    true ones says how long those of a fit are, so here it follows from theirs. It is NaN where no
    length leads there, or none to what is a standard deviation of the noise longer or shorter:
    slopes that a descent does not bound are mostly noise, and where steps are too few for long
    margins, all of these end alike. It is NaN, too, for labels without a significant gain, whose
    margins are of no length that was measured. It is 1 for other targets, without an intercept and
    without privacy.
    """
    loss = slopes.loss.loss if isinstance(slopes.loss, WeightedLoss) else slopes.loss
    w = slopes.w[: slopes.d] / max(slopes.decision.margin_factor, np.finfo(np.float64).tiny)
    coordinates = slopes.preconditioner.principal_coordinates(w, len(slopes.w))
    found = float(np.linalg.norm(coordinates))
    private = any(run.schedule.std > 0 for run in slopes.runs)
    intercept = len(slopes.w) > slopes.d
    if not (private and intercept and 0 < found < math.inf):
        return 1.0, 0.0
    ends = found * LENGTHS
    if isinstance(loss, LogisticLoss):
        if not slopes.decision.significant:
            return math.nan, math.nan
        ends = np.maximum.accumulate(_lengths_of_fits(slopes, ends))
    elif not isinstance(loss, AmountLoss):
        return 1.0, 0.0

    def part(length: float) -> float:
        at, to = _tilts(slopes, length, ends) if isinstance(loss, AmountLoss) else (length, ends)
        return float(np.interp(at, to, LENGTHS, left=math.nan, right=math.nan))

    unsure = float(np.linalg.norm(coordinates[:, 0] / found * noise))
    deviation = (part(found + unsure) - part(found - unsure)) / 2
    return (math.nan if math.isnan(deviation) else part(found)), deviation


def _tilts(slopes: FittedSlopes, found: float, true: Doubles) -> tuple[float, Doubles]:
    """The mean margin by which amounts are weighted: that of a fit, and those of true lengths (k,).

    With cut predictions q and a variance of the power p of the mean, a fit makes the weighted sums
    of q and of the amounts equal, and those of their products with the margins. The weights are
    q^(1 - p).
    """
    d, log_exposure = slopes.d, math.log(slopes.exposure)
    middle = slopes.preconditioner.with_intercept(slopes.w[:d], len(slopes.w))[d:]
    centre = float((slopes.w[d:] - middle).sum()) + log_exposure
    z, parts = np.polynomial.hermite_e.hermegauss(NODES)
    low, high = (end + log_exposure for end in slopes.margin_range)
    cut = np.clip(centre + found * z, low, high)
    power = cast(AmountLoss, slopes.loss).power

    def mean(logs: Doubles) -> Doubles:
        weights = parts * np.exp(logs - logs.max(axis=-1, keepdims=True))
        return np.asarray(weights @ z / weights.sum(axis=-1))

    return float(mean((2 - power) * cut)), mean((1 - power) * cut + true[:, None] * z)


def _lengths_of_fits(slopes: FittedSlopes, true: Doubles) -> Doubles:
    """To which lengths of margins the steps of a fit come from true ones (k,), without noise.

    The log-odds of two labels are normal, with these deviations and the mean that gives the
    released frequency. Then the mean gradient is known at every model, and so is every step.
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
    """What is left of second moments where rows are shrunk to a ``part`` of a typical length.

    For normal rows of r coordinates: E |x| min(|x|, part sqrt(r)) / r. Whatever the law is, a part
    of 1 leaves half of the released moments at least, whose rows are clipped to twice that length.
    """
    length, square = math.sqrt(2) * math.exp(gammaln((r + 1) / 2) - gammaln(r / 2)), part**2 * r
    return float(chdtr(r + 2, square) + part * length * chdtrc(r + 1, square) / math.sqrt(r))
