"""The result of a fit: the model, the messages to the user, and the report."""

from __future__ import annotations

from typing import Any

import numpy as np

from privtail.algorithms.result import Result
from privtail.default.fit import Fit
from privtail.default.fitted import FittedSlopes
from privtail.losses import HuberLoss
from privtail.summaries.summary import UNUSED

NO_LOCATION = (
    "The target could not be located: no cell of its histogram is above the noise. The slopes "
    "are set to zero, and the intercept is not reliable. Either the budget is too small for so "
    "few rows; or too few rows count (in others a number is missing or not finite, or they are "
    "beyond max_rows, or belong to no person); or half of the target lies beyond 2^64 (1.8e19), "
    "where the histogram ends: divide a target of such a size by a public number."
)
NO_SCALE = (
    "The scale of the target could not be estimated, so the slopes are set to zero. This "
    "happens where most values are equal, or smaller than 2^-64 (5.4e-20), where the histogram "
    "ends: multiply a target of such a size by a public number. It also happens where the "
    "target is far from zero compared with its spread: subtract a public typical value."
)
NO_SLOPES = "The budget is too small for slopes, which are zero: all of it went to the intercept."
NARROWED = (
    "The budget is too small to locate the target more closely than in a range of width "
    "{width:.2g}, which holds most of it. The intercept may be off by as much, and slopes "
    "depend little on other values."
)
UNSURE = "The noise is so large that the location of the target may be wrong."
SUBTRACT = (
    "It costs budget to locate a target far from zero: if a typical value is public, subtract it."
)
NO_FEATURE = (
    "No feature is used, so the model predicts a constant. Each feature seems to hold one value "
    "only, or too few rows hold a declared category, or noise hides all amounts above zero."
)
NO_GAIN = (
    "The improvement over an intercept-only model is not significant, so the slopes are set to "
    "zero. More rows or a larger epsilon may help."
)
HARMFUL = (
    "Slopes improve most predictions, but seem to worsen a few far more, so they are set to zero. "
    "Look for codes such as -999, and for huge values, in the features and the target."
)
PENALIZED = "The penalty or the constraint sets all slopes to zero. Choose a weaker one."
UNPROVEN = (
    "The improvement over an intercept-only model is not significant. The slopes are kept, "
    "because they likely help"
)
EVEN = ", or because labels are about equally frequent, so that a constant would only guess"
MEDIAN_ZERO = (
    "The median of the target is zero. If few rows hold most of its sum, noise may hide the "
    "largest of them, and predictions are too low on average. privtail.private_mean estimates the "
    "mean, with an interval."
)
OVERSHOOTS = (
    "Predictions are clipped near the range that was found for the features and the target, "
    "because the model surely predicts worse beyond it. Typical causes are a code for missing "
    "values (-999) and an effect that levels off: remove the code, or take logarithms."
)


def result_of(fit: Fit, regime: str, multiplier: float) -> Result:
    """The model, or the intercept-only model where there are reasons against slopes.

    ``report_["reasons"]`` holds these reasons, and ``report_["accepted"]`` whether there are none.
    """
    standard, problem, decision = fit.standard, fit.problem, fit.decision
    reasons = _reasons(fit, regime)
    notes = reasons or (f"{UNPROVEN}{EVEN * fit.has_labels}.",) * (not decision.significant)
    constant = fit.intercept_only.copy()
    constant[-1] -= fit.excess_move
    imprecise = _imprecise(fit) if regime != "intercept only" else ()  # there it is a reason
    return Result(
        standard.raw(constant if reasons else fit.w, problem),
        fit.steps,
        multiplier,
        unit=standard.target.scale,
        scales=standard.scales,
        centres=standard.centres,
        margin_range=fit.margin_range,
        slopes=FittedSlopes.of(fit, kept=not reasons, selected=regime == "few features"),
        notes=(
            *notes,
            *imprecise,
            *(MEDIAN_ZERO,) * fit.mostly_zero,
            *(OVERSHOOTS,) * (fit.overshoots and not reasons),
            *fit.notes,
        ),
        rows=fit.usable_rows,
        threshold=fit.loss.threshold if isinstance(fit.loss, HuberLoss) else None,
        ranges=None if regime == "intercept only" else fit.ranges(),
        report=_report(fit, regime, reasons),
    )


def _reasons(fit: Fit, regime: str) -> tuple[str, ...]:
    """Sentences on why the intercept-only model is returned; none if slopes are kept."""
    target = fit.standard.target
    if not target.detected:
        return (NO_LOCATION, SUBTRACT)
    if target.only_zeros:
        return (NO_SCALE,)
    if regime == "intercept only":
        doubts = (*_imprecise(fit), *(UNSURE,) * fit.target_doubtful)
        return (NO_SLOPES, *doubts, *(SUBTRACT,) * bool(doubts))
    if not fit.standard.used.any():
        return (NO_FEATURE,)
    sloped, (near, far) = bool(fit.w[: fit.problem.d].any()), fit.decision.gains
    if fit.decision.kept and sloped:
        return ()
    if target.without_scale:
        return (NO_SCALE,)
    if not sloped and fit.decision.margin_factor > 0:
        return (PENALIZED,)
    harmful = min(near, -far) > fit.tuning.significant and not fit.has_labels
    return (HARMFUL if harmful else NO_GAIN,)


def _imprecise(fit: Fit) -> tuple[str, ...]:
    """The message that a numeric target is located in a wide range only."""
    target = fit.standard.target
    if not (target.without_scale and fit.problem.intercept):
        return ()
    return (NARROWED.format(width=2 * float(fit.summary.window()[1][fit.problem.d])),)


def _report(fit: Fit, regime: str, reasons: tuple[str, ...]) -> dict[str, Any]:
    """``report_``: released numbers by name. `Result.report` lists them."""
    standard, summary, d = fit.standard, fit.summary, fit.problem.d
    scales, decision = summary.scales[:d], fit.decision
    found: dict[str, Any] = {
        "regime": regime,
        "feature_location": summary.centres[:d],
        "feature_scale": np.where(scales < UNUSED, scales, np.nan),
        "feature_used": standard.used,
    }
    if fit.given_loss.targets == "real":
        found["target_location"] = standard.target.location
        found["target_scale"] = standard.target.scale
    if regime != "intercept only":
        found["gain_over_noise"] = decision.gains
    if fit.has_labels:
        found["margins_kept"] = decision.margin_factor
    if fit.runs:
        last = fit.runs[-1].schedule.mean
        found |= {"row_length": last.row_length, "clipping_threshold": last.threshold}
        if fit.given_loss.targets == "real":
            found["reach"] = fit.reach
    return {**found, "accepted": not reasons, "reasons": reasons}
