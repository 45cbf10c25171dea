"""The released state of a fit, from which intervals of slopes follow."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

from privtail.default.descent import DescentRun
from privtail.default.fit import Decision, Doubles, Fit
from privtail.default.preconditioner import Preconditioner
from privtail.losses import Loss
from privtail.summaries.residuals import ResidualHistogram
from privtail.summaries.standardization import Standardization


@dataclass(frozen=True, kw_only=True)
class FittedSlopes:
    """The slopes of a fit and the releases that led to them, for `privtail.inference`.

    Attributes
    ----------
    kept : whether the model has these slopes; otherwise its slopes are zero.
    selected : whether features were selected by their correlation with the target.
    rows : the number of usable rows, over the largest number of rows of a person.
    loss, w, and all others : as in `Fit`.
    """

    kept: bool
    selected: bool
    rows: float
    loss: Loss
    w: Doubles
    intercept_only: Doubles
    shrinkage: Doubles
    margin_range: tuple[float, float] | Doubles
    exposure: float
    decision: Decision
    standard: Standardization
    preconditioner: Preconditioner
    runs: tuple[DescentRun, ...]
    residuals: ResidualHistogram
    gradient_moments: tuple[Doubles, float] | None

    @classmethod
    def of(cls, fit: Fit, *, kept: bool, selected: bool) -> Self:
        """The state of a fit at its end."""
        return cls(
            kept=kept, selected=selected,
            rows=fit.problem.n * fit.usable_rows[0] / fit.problem.max_rows,
            loss=fit.loss, w=fit.w, intercept_only=fit.intercept_only, shrinkage=fit.shrinkage,
            margin_range=fit.margin_range, exposure=fit.exposure, decision=fit.decision,
            standard=fit.standard, preconditioner=fit.preconditioner, runs=fit.runs,
            residuals=fit.residuals, gradient_moments=fit.gradient_moments,
        )  # fmt: skip

    @property
    def d(self) -> int:
        """The number of features; the intercept is row d of ``w``."""
        return len(self.shrinkage)
