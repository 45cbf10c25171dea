"""Errors of a model of numbers."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privtail.calibration import calibrated
from privtail.coefficients import normal_quantile
from privtail.errors import InvalidInput
from privtail.evaluation.result import Estimate, Evaluation
from privtail.mean import MeanEstimate, mean_of
from privtail.promised import Promised
from privtail.robust_means import ClampedMean
from privtail.statement import Statement, state
from privtail.trusted import row_errors
from privtail.trusted.curator import Curator
from privtail.trusted.events import Round
from privtail.trusted.mechanisms.noise import GaussianNoise
from privtail.trusted.row_errors import AnyModel

Doubles = NDArray[np.float64]

CENTRE, COVERAGE = 0.2, 0.3
"""Parts of epsilon and of delta: for the mean and scale of the target, and for the coverage."""

HALF = ClampedMean(0.5)
"""The mean of columns that lie in [-1/2, 1/2]."""

LEAST = 1e-3
"""The constant has a deviance only if it is positive: it is at least this part of the scale.

With an exposure the constant is a rate. Then the rate times the mean exposure is at least that.
"""

PERSONS = (
    "The intervals are for noise and clipping, not for sampling, because the rows of a person are "
    "not independent."
)
COVERED = (
    "The coverage is the share of targets that are at most the prediction; the model is of the "
    "quantile {quantile:g}."
)
NO_CENTRE = (
    "The mean of the target, or its mean rate, is not reliable, so the constant is a poor one: its "
    "errors are too large, and R2 and D2 have no lower end."
)
HIDDEN = (
    "The mean of the target is not reliable: noise may hide rows of any size, so errors have no "
    "upper end, and R2 and D2 are not known."
)
HIDDEN_ERRORS = (
    "Noise may hide about {rows:,} rows with errors far larger than all others, and a few times as "
    "many if these differ in size. No value above, and no finite end of an interval, allows for "
    "them. More rows or a larger epsilon may help."
)
WORSE = (
    "The squared errors of the model are larger than those of the constant. Compare the units of "
    "the target, and of the features, with those of the fit."
)


def of_numbers(
    model: AnyModel, X: Any, y: Any, promised: Promised, confidence: float, exposure: Any = None,
    power: float | None = None, quantile: float | None = None,
) -> Evaluation:  # fmt: skip
    """Errors of the model, and of the constant that predicts the released mean, or mean rate.

    With a ``quantile`` also how many targets are at most the prediction.
    """
    promised.require_left()
    centre, rest, *coverage = parts_of(quantile)
    predicted = row_errors.Predicted(X, y, model, exposure)
    target = predicted.target(power).curator(**promised.options("evaluate: target", centre))
    n = target.problem.n
    promised.warn(n)
    mean = mean_of(target)
    spread, constant = float(mean.sampling_std[0]) * math.sqrt(n), _constant(mean, confidence)
    scale = spread if 0 < spread < math.inf else 1.0
    reliable = bool(mean.reliable.all()) and math.isfinite(constant.high - constant.low)
    exposed = float(mean.value[-1]) if exposure is not None and mean.value[-1] > 0 else 1.0
    least = LEAST * scale / exposed if power is not None else -math.inf
    rows = predicted.errors(max(constant.value, least), scale, power)
    errors = rows.curator(**promised.options("evaluate: errors", rest))
    # `unbounded` names what is doubtful.
    found = mean_of(errors, method="clamped", errors=True, hidden=HIDDEN_ERRORS)
    # R2 is made of two means: both are in their intervals with this chance, or more.
    ends, both = (ends_of(found, one) for one in (confidence, (1 + confidence) / 2))
    detected = bool(mean.reliable.all())
    if not detected:
        # Most targets are then one number, and so are their errors, beside which noise hides the
        # same rows: the histograms of the errors show no more of them.
        ends[:, 1] = both[:, 1] = math.inf
    # A mean of squares is at least the square of a mean, and more of it is clipped.
    values = found.value.copy()
    values[1] = max(values[1], max(values[0], 0.0) ** 2)
    for pairs in (ends, both):
        pairs[1, 1] = max(pairs[1, 1], max(pairs[0, 1], 0.0) ** 2)
    numbers = {
        "mae": Estimate(*(scale * _of_positive(values[0], ends[0], abs))),
        "rmse": Estimate(*(scale * _of_positive(values[1], ends[1], _root))),
        "r2": _part_explained(values[1:3], both[1:3], reliable, detected),
        "constant": constant,
        "constant_rmse": Estimate(*(scale * _of_positive(values[2], ends[2], _root))),
    }
    if power is not None:
        unit = row_errors.deviance_unit(max(constant.value, least), scale, power)
        numbers |= {
            "deviance": Estimate(*(unit * _of_positive(values[3], ends[3], abs))),
            "d2": _part_explained(values[3:], both[3:], reliable, detected),
            "constant_deviance": Estimate(*(unit * _of_positive(values[4], ends[4], abs))),
        }
    statements: tuple[Statement, ...] = (mean.privacy_, found.privacy_)
    for part in coverage:
        below = predicted.below().curator(**promised.options("evaluate: coverage", part))
        numbers["coverage"] = _covered(below, confidence, sampled=promised.groups is None)
        statements += (state(below),)
    notes = (
        *(() if reliable else (NO_CENTRE,)),
        *(() if detected else (HIDDEN,)),
        *((WORSE,) if quantile is None and numbers["r2"].high < 0 else ()),
        *(() if quantile is None else (COVERED.format(quantile=quantile),)),
        *(() if promised.groups is None else (PERSONS,)),
        *found.privacy_.notes,
    )
    return Evaluation(numbers, None, None, None, confidence, n, statements, notes)


def parts_of(quantile: float | None) -> tuple[float, ...]:
    """Parts of epsilon and of delta: for the target, for errors, and for a quantile's coverage."""
    return (CENTRE, 0.8) if quantile is None else (CENTRE, 0.5, COVERAGE)


def _covered(curator: Curator, confidence: float, *, sampled: bool) -> Estimate:
    """The share of targets that are at most the prediction, among the rows that count."""
    n, answer = curator.problem.n, curator.problem.means(HALF)
    multiplier = calibrated(
        curator,
        lambda m: (Round(stage="coverage", events=(GaussianNoise(m).event(answer),)),),
    )
    noise = GaussianNoise(multiplier)
    half, above = curator.everyone().means(HALF).release(noise)
    std = noise.event(answer).std
    part = max(2 * float(half), 2 * std, 1 / n)
    away = float(above) / part
    share, rows = min(max(away + 0.5, 0.0), 1.0), part * n
    # "Plus four" (Agresti and Coull 1998): a share of 1 in the sample is not surely 1.
    added = (rows * share + 2) / (rows + 4)
    deviation = math.hypot(std / part, 2 * std * away / part)
    if sampled:
        deviation = math.hypot(deviation, math.sqrt(added * (1 - added) / (rows + 4)))
    reach = normal_quantile(confidence) * deviation
    return Estimate(share, max(share - reach, 0.0), min(share + reach, 1.0))


def ends_of(means: MeanEstimate, confidence: float) -> Doubles:
    """Ends of intervals for the means, (columns, 2); without sampling error for persons."""
    try:
        return means.conf_int(confidence)
    except InvalidInput:
        return means.conf_int(confidence, sampling=False)


def _root(x: Any) -> Any:
    return np.sqrt(np.maximum(x, 0.0))


def _of_positive(value: float, ends: Doubles, of: Any) -> Doubles:
    """Value and ends (3,), cut at zero, and then put into an ascending function.

    If noise has put the value below zero, the upper end moves up by as much as the value does.
    """
    low, high = ends
    return np.asarray(of(np.maximum([value, low, high - min(value, 0.0)], 0.0)))


def _constant(mean: MeanEstimate, confidence: float) -> Estimate:
    """The released mean with its interval; with exposures the mean over their mean."""
    if len(mean.value) == 1:
        return Estimate(float(mean.value[0]), *ends_of(mean, confidence)[0])
    ends = ends_of(mean, (1 + confidence) / 2)
    least, most = (float(x) for x in ends[1])
    if mean.value[1] <= 0:
        return Estimate(float(mean.value[0]), -math.inf, math.inf)
    rate = float(mean.value[0] / mean.value[1])
    if least <= 0:
        return Estimate(rate, -math.inf, math.inf)
    low, high = (float(x) for x in ends[0])
    return Estimate(rate, low / (most if low > 0 else least), high / least)


def _part_explained(value: Doubles, ends: Doubles, reliable: bool, detected: bool) -> Estimate:
    """1 less the ratio of an error of the model to that of the constant, such as R2.

    The first of ``value`` and ``ends`` is the model's error, the second the constant's.
    """
    best = 1 - max(ends[0, 0], 0.0) / ends[1, 1] if 0 < ends[1, 1] < math.inf else 1.0
    worst = 1 - ends[0, 1] / ends[1, 0] if reliable and ends[1, 0] > 0 else -math.inf
    part = 1 - max(value[0], 0.0) / value[1] if detected and value[1] > 0 else math.nan
    return Estimate(float(part), float(worst), float(best))
