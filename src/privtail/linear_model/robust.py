"""Private regression that large residuals cannot pull far: Huber, absolute and quantile losses."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import ClassVar

from privtail.algorithms.result import Result
from privtail.domains import L1, L2, Domain
from privtail.errors import InvalidInput
from privtail.linear_model.fitting import require_number
from privtail.linear_model.regressor import PrivateRegressor
from privtail.losses import AbsoluteLoss, AnyLoss, HuberLoss, QuantileLoss, RelativeHuberLoss


@dataclass(eq=False, repr=False)
class DPHuberRegressor(PrivateRegressor):
    """Private regression with Huber's loss of a fixed threshold.

    Minimises sum of H(y - Xw - b) + alpha |w|^2, where H(r) is r^2 up to the threshold t and
    2 t |r| - t^2 beyond it. scikit-learn's `HuberRegressor` divides r by a scale that it estimates
    with w; here that scale is released after a fifth of the steps.

    Parameters
    ----------
    threshold : float, default=1.35
        Where the loss becomes linear, above 0, as a multiple of a scale. A scale is the distance
        between quartiles (or further quantiles) over that of a standard Gaussian. By default two
        scales are released from the budget, that of the target and that of the residuals of a first
        fit, and the smaller one is used. For an algorithm that you built yourself the threshold is
        in the units of the target.
    alpha : float, default=0.0
        Strength of the penalty, at least 0, in the unit of a squared feature. It is not on the
        intercept.
    heteroscedastic : bool, default=False
        As of `DPLinearRegression`: whether intervals allow for residuals whose spread depends on
        the features. It needs ``algorithm="auto"`` and no penalty.

    Attributes
    ----------
    threshold_ : float
        The threshold in units of the target.

    Examples
    --------
    >>> import numpy as np
    >>> from privtail.linear_model import DPHuberRegressor
    >>> rng = np.random.default_rng(0)
    >>> X = rng.standard_t(2.5, size=(20_000, 2))
    >>> y = X @ [1.0, 2.0] + rng.standard_cauchy(20_000)
    >>> model = DPHuberRegressor(epsilon=1.0, noise="simulated", random_state=0).fit(X, y)
    >>> bool(np.abs(model.coef_ - [1, 2]).max() < 0.2)
    True
    """

    kind: ClassVar[str] = "huber"

    threshold: float = 1.35
    alpha: float = 0.0
    _: KW_ONLY
    heteroscedastic: bool = False

    def _allows_unequal_spread(self) -> bool:
        return self.heteroscedastic

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
    alpha : float, default=0.0
        Strength of the penalty alpha |w|_1, at least 0, in the unit of a feature. It is not on the
        intercept.

    Examples
    --------
    >>> import numpy as np
    >>> from privtail.linear_model import DPLADRegressor
    >>> rng = np.random.default_rng(0)
    >>> X = rng.standard_t(2.5, size=(20_000, 2))
    >>> y = X @ [1.0, 2.0] + rng.standard_cauchy(20_000)
    >>> model = DPLADRegressor(epsilon=1.0, noise="simulated", random_state=0).fit(X, y)
    >>> bool(np.abs(model.coef_ - [1, 2]).max() < 0.2)
    True
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
    quantile : float, default=0.5
        Which quantile of y given x is modelled, in (0, 1).
    alpha : float, default=0.0
        Strength of the penalty, at least 0, in the unit of a feature. It is not on the intercept.
        scikit-learn's default is 1; such a penalty shrinks slopes of columns that vary little in
        their units to nearly zero.

    Examples
    --------
    >>> import numpy as np
    >>> from privtail.linear_model import DPQuantileRegressor
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(20_000, 2))
    >>> y = X @ [1.0, 2.0] + rng.exponential(size=20_000)
    >>> model = DPQuantileRegressor(0.9, noise="simulated", random_state=0).fit(X, y)
    >>> bool(abs((y < model.predict(X)).mean() - 0.9) < 0.03)
    True
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
