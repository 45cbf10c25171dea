"""Private regression that large residuals cannot pull far: Huber, absolute and quantile losses."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from privtail.algorithms.result import Result
from privtail.domains import L1, L2, Domain
from privtail.errors import InvalidInput
from privtail.linear_model.fitting import PrivateRegressor, require_number
from privtail.losses import AbsoluteLoss, AnyLoss, HuberLoss, QuantileLoss, RelativeHuberLoss


@dataclass(eq=False, repr=False)
class DPHuberRegressor(PrivateRegressor):
    """Private regression with Huber's loss of a fixed threshold.

    Minimises sum of H(y - Xw - b) + alpha |w|^2, where H(r) is r^2 up to the threshold t and
    2 t |r| - t^2 beyond it. scikit-learn's `HuberRegressor` divides r by a scale that it estimates
    with w; here that scale is bought after a fifth of the steps.

    Parameters
    ----------
    threshold : where the loss becomes linear, in scales of the target: its spread between
        quartiles (or further quantiles) over that of a Gaussian, bought with the budget. By default
        also in scales of the residuals of a first fit, and the lower of both counts. With an
        algorithm that you built yourself: in the units of the target.
    alpha : strength of the penalty, in your units; not of the intercept. By default there is none.

    Everything else is as in `DPLinearRegression`.

    Attributes
    ----------
    threshold_ : the threshold in units of the target.
    """

    kind: ClassVar[str] = "huber"

    threshold: float = 1.35
    alpha: float = 0.0

    def _loss(self) -> AnyLoss:
        require_number("threshold", self.threshold, 0, open_end=True)
        kind = RelativeHuberLoss if isinstance(self.algorithm, str) else HuberLoss
        return kind(threshold=self.threshold)

    def _domain(self, n: int) -> Domain:
        require_number("alpha", self.alpha, 0)
        return L2(alpha=self.alpha / n)

    def _keep(self, result: Result, d: int) -> None:
        super()._keep(result, d)
        chosen = result.threshold
        self.threshold_ = self.threshold * result.unit if chosen is None else chosen


@dataclass(eq=False, repr=False)
class DPLADRegressor(PrivateRegressor):
    """Private least absolute deviations: minimises the mean of |y - Xw - b|, the median's loss.

    Parameters
    ----------
    alpha : strength of the penalty alpha |w|_1, in your units; not of the intercept.

    Everything else is as in `DPLinearRegression`.
    """

    kind: ClassVar[str] = "lad"

    alpha: float = 0.0

    def _loss(self) -> AnyLoss:
        return AbsoluteLoss()

    def _domain(self, n: int) -> Domain:
        require_number("alpha", self.alpha, 0)
        return L1(alpha=self.alpha)


@dataclass(eq=False, repr=False)
class DPQuantileRegressor(PrivateRegressor):
    """Private quantile regression: mean pinball loss + alpha |w|_1, as `QuantileRegressor`.

    Parameters
    ----------
    quantile : which quantile of y given x is modelled, in (0, 1).
    alpha : strength of the penalty, in your units; not of the intercept. By default there is none,
        where scikit-learn has 1: it would silence columns that vary little in their units.

    Everything else is as in `DPLinearRegression`.
    """

    kind: ClassVar[str] = "quantile"

    quantile: float = 0.5
    alpha: float = 0.0

    def _loss(self) -> AnyLoss:
        require_number("quantile", self.quantile, 0, open_end=True)
        if not self.quantile < 1:
            raise InvalidInput(f"quantile must lie in (0, 1), got {self.quantile!r}.")
        return QuantileLoss(quantile=self.quantile)

    def _domain(self, n: int) -> Domain:
        require_number("alpha", self.alpha, 0)
        return L1(alpha=self.alpha)
