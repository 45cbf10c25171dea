"""What a fit hands over to whoever asks how far its slopes are off."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import NDArray

from privtail.default.descent import Run
from privtail.default.fit import Decision, Fit
from privtail.default.preconditioner import Preconditioner
from privtail.losses import Loss
from privtail.summaries.residuals import ResidualHistogram
from privtail.summaries.standardization import Standardization

Doubles = NDArray[np.float64]


@dataclass(frozen=True, kw_only=True)
class FittedSlopes:
    """Slopes, and what was released on the way to them: `privtail.inference` reads it.

    Attributes
    ----------
    kept : whether the model has these slopes, or zeros in their place.
    selected : whether the features were selected by what they tell of the target.
    rows : how many rows count, those of one person as one.
    loss, w, constant, shrunk, and all others : as in `Fit`.
    """

    kept: bool
    selected: bool
    rows: float
    loss: Loss
    w: Doubles
    constant: Doubles
    shrunk: Doubles
    margins: tuple[float, float]
    exposure: float
    decision: Decision
    standard: Standardization
    preconditioner: Preconditioner
    runs: tuple[Run, ...]
    residuals: ResidualHistogram

    @classmethod
    def of(cls, fit: Fit, *, kept: bool, selected: bool) -> Self:
        """The state of a fit at its end."""
        return cls(
            kept=kept, selected=selected,
            rows=fit.problem.n * fit.part_that_counts[0] / fit.problem.max_rows,
            loss=fit.loss, w=fit.w, constant=fit.constant, shrunk=fit.shrunk, margins=fit.margins,
            exposure=fit.exposure, decision=fit.decision, standard=fit.standard,
            preconditioner=fit.preconditioner, runs=fit.runs, residuals=fit.residuals,
        )  # fmt: skip

    @property
    def d(self) -> int:
        """The number of features; a row of ``w`` below them is the intercept."""
        return len(self.shrunk)
