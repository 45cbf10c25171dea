"""The result of a fit: model, messages, and what is reported of every stage."""

from __future__ import annotations

from typing import Any

import numpy as np

from privtail.algorithms.result import Result
from privtail.default.constant import NO_LOCATION, NO_SCALE
from privtail.default.fit import Fit
from privtail.default.standardization import without_slopes
from privtail.losses import HuberLoss
from privtail.summaries.summary import BEYOND

NO_GAIN = (
    "The improvement over an intercept-only model is not significant, so the slopes are set to "
    "zero. More rows or a larger epsilon would help."
)
UNPROVEN = (
    "The improvement over an intercept-only model is not significant. The slopes are kept because "
    "it is likely, because they stand out from their noise, or because labels are about equally "
    "frequent, where an intercept-only model is no better than a coin."
)
SHORTER = (
    "The model was more confident than it is accurate, or noise hides how confident it may be: its "
    "margins are multiplied by {:.2g}."
)

SHORT = 0.5
"""A message says so where less than this part of the margins of labels is kept."""


def finished(fit: Fit, regime: str, multiplier: float) -> Result:
    """The model, or the intercept-only model where there are reasons against slopes."""
    standard, problem, decision = fit.standard, fit.problem, fit.decision
    reasons = fit.reasons or _reasons(fit)
    constant = fit.constant
    if standard.target.detected and not standard.target.has_scale:
        constant = without_slopes(fit.w if not standard.target.only_zeros else constant, problem)
    before = np.abs(fit.w[: problem.d]).max(axis=1) / max(decision.part, 1e-12)
    noise = fit.noise + (1 - decision.part) * before
    notes = reasons or (
        (UNPROVEN,) * (not decision.significant)
        + (SHORTER.format(decision.part),) * bool(decision.part < SHORT)
    )
    return Result(
        standard.raw(constant if reasons else fit.w, problem),
        fit.steps,
        multiplier,
        unit=standard.target.scale,
        scales=standard.scales,
        margin_range=fit.margins,
        noise=np.zeros(problem.d)
        if reasons
        else _stated(fit, noise, selected=regime == "few features"),
        notes=(*notes, *fit.remarks),
        rows=fit.rows,
        threshold=fit.loss.threshold if isinstance(fit.loss, HuberLoss) else None,
        ranges=None if regime == "intercept only" else fit.summary.ranges(),
        report=_report(fit, regime, reasons),
    )


def _reasons(fit: Fit) -> tuple[str, ...]:
    """Why the slopes are set to zero; where only zeros were detected, slopes have no unit."""
    target = fit.standard.target
    if not target.detected:
        return (NO_LOCATION,)
    if target.only_zeros:
        return (NO_SCALE,)
    if fit.decision.kept:
        return ()
    return (NO_GAIN if target.scale_known else NO_SCALE,)


def _stated(fit: Fit, noise: Any, *, selected: bool) -> Any:
    """(d,) in scales of the target; inf of a feature that is not used: nothing bounds its slope.

    NaN where some were ``selected``, after which no theory gives the noise of the others.
    """
    unused = np.nan if selected else np.inf
    return np.where(fit.standard.used, noise / fit.standard.target.scale, unused)


def _report(fit: Fit, regime: str, reasons: tuple[str, ...]) -> dict[str, Any]:
    """Released numbers by name; see `privtail.algorithms.result.Result.report`."""
    standard, summary, d = fit.standard, fit.summary, fit.problem.d
    scales, decision = summary.scales[:d], fit.decision
    found: dict[str, Any] = {
        "regime": regime,
        "feature_location": summary.centres[:d],
        "feature_scale": np.where(scales < BEYOND, scales, np.nan),
        "feature_used": standard.used,
    }
    if fit.given.targets == "real":
        found["target_location"] = standard.target.location
        found["target_scale"] = standard.target.scale
    found["gain_over_noise"] = decision.gains
    if fit.labels:
        found["margins_kept"] = decision.part
    return {**found, **fit.report, "accepted": not reasons, "reasons": reasons}
