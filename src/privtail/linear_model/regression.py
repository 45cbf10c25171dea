"""Private least squares, with the penalties of scikit-learn."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import ClassVar

from privtail.domains import L1, L2, Domain, ElasticNet
from privtail.linear_model.fitting import require_number
from privtail.linear_model.regressor import PrivateRegressor
from privtail.losses import AnyLoss, SquaredLoss


@dataclass(eq=False, repr=False)
class DPLinearRegression(PrivateRegressor):
    """Linear regression by private least squares; no bounds on the data are needed.

    Minimises the mean of (y - Xw - b)^2, with large residuals and rows clipped (`conf_int`).

    Parameters
    ----------
    heteroscedastic : bool, default=False
        Whether standard errors and intervals of slopes allow for residuals whose spread depends on
        the features: costs vary more among large firms, for example. This takes one more release,
        about 2 % of the budget, and needs ``algorithm="auto"``. The slopes have the same meaning.

    Examples
    --------
    >>> import numpy as np
    >>> from privtail.linear_model import DPLinearRegression
    >>> X = np.random.default_rng(0).standard_t(2.5, size=(20_000, 3))
    >>> y = X @ [1.0, 2.0, 3.0] + 4.0
    >>> model = DPLinearRegression(epsilon=1.0, noise="simulated", random_state=0).fit(X, y)
    >>> bool(np.abs(model.coef_ - [1, 2, 3]).max() < 0.2)
    True
    """

    kind: ClassVar[str] = "linear"

    _: KW_ONLY
    heteroscedastic: bool = False

    def _loss(self) -> AnyLoss:
        return SquaredLoss()

    def _allows_unequal_spread(self) -> bool:
        return self.heteroscedastic


@dataclass(eq=False, repr=False)
class DPRidge(PrivateRegressor):
    """Private ridge regression: minimises |y - Xw - b|^2 + alpha |w|^2, as scikit-learn's `Ridge`.

    Parameters
    ----------
    alpha : float, default=1.0
        Strength of the penalty, at least 0, in the unit of a squared feature. It is not on the
        intercept. A fit warns if the penalty alone takes more than half of a slope, as it does for
        features that vary little in their units.

    Examples
    --------
    >>> import numpy as np
    >>> from privtail.linear_model import DPRidge
    >>> X = np.random.default_rng(0).standard_t(2.5, size=(20_000, 3))
    >>> y = X @ [1.0, 2.0, 3.0]
    >>> model = DPRidge(10.0, epsilon=1.0, noise="simulated", random_state=0).fit(X, y)
    >>> bool(np.abs(model.coef_ - [1, 2, 3]).max() < 0.2)
    True
    """

    kind: ClassVar[str] = "ridge"

    alpha: float = 1.0

    def _loss(self) -> AnyLoss:
        return SquaredLoss()

    def _domain(self, n: int) -> Domain:
        require_number("alpha", self.alpha, 0)
        return L2(alpha=self.alpha / n)


@dataclass(eq=False, repr=False)
class DPLasso(PrivateRegressor):
    """Private lasso: minimises |y - Xw - b|^2 / (2n) + alpha |w|_1, as scikit-learn's `Lasso`.

    Parameters
    ----------
    alpha : float, default=1.0
        Strength of the penalty, at least 0, in the unit of a feature times that of the target. It
        is not on the intercept. A fit warns if the penalty alone takes more than half of a slope,
        as it does for features that vary little in their units.

    Examples
    --------
    >>> import numpy as np
    >>> from privtail.linear_model import DPLasso
    >>> X = np.random.default_rng(0).standard_t(2.5, size=(20_000, 3))
    >>> y = X @ [1.0, 2.0, 0.0]
    >>> model = DPLasso(0.01, epsilon=1.0, noise="simulated", random_state=0).fit(X, y)
    >>> bool(np.abs(model.coef_ - [1, 2, 0]).max() < 0.3)
    True
    """

    kind: ClassVar[str] = "lasso"

    alpha: float = 1.0

    def _loss(self) -> AnyLoss:
        return SquaredLoss()

    def _domain(self, n: int) -> Domain:
        require_number("alpha", self.alpha, 0)
        return L1(alpha=self.alpha)


@dataclass(eq=False, repr=False)
class DPElasticNet(PrivateRegressor):
    """Private elastic net, with the objective of scikit-learn's `ElasticNet`.

    Minimises |y - Xw - b|^2 / (2n) + alpha (l1_ratio |w|_1 + (1 - l1_ratio) |w|^2 / 2).

    Parameters
    ----------
    alpha : float, default=1.0
        Strength of the penalty, at least 0, for features and target in their own units. It is not
        on the intercept. A fit warns if the penalty alone takes more than half of a slope, as it
        does for features that vary little in their units.
    l1_ratio : float, default=0.5
        Fraction of the l1 norm in the penalty, in [0, 1]; it has no unit.

    Examples
    --------
    >>> import numpy as np
    >>> from privtail.linear_model import DPElasticNet
    >>> X = np.random.default_rng(0).standard_t(2.5, size=(20_000, 3))
    >>> y = X @ [1.0, 2.0, 3.0]
    >>> model = DPElasticNet(0.01, epsilon=1.0, noise="simulated", random_state=0).fit(X, y)
    >>> bool(np.abs(model.coef_ - [1, 2, 3]).max() < 0.3)
    True
    """

    kind: ClassVar[str] = "elastic-net"

    alpha: float = 1.0
    l1_ratio: float = 0.5

    def _loss(self) -> AnyLoss:
        return SquaredLoss()

    def _domain(self, n: int) -> Domain:
        require_number("alpha", self.alpha, 0)
        require_number("l1_ratio", self.l1_ratio, 0)
        return ElasticNet(alpha=self.alpha, l1_ratio=self.l1_ratio)
