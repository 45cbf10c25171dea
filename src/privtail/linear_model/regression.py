"""Private least squares, with the penalties of scikit-learn."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from privtail.domains import L1, L2, Domain, ElasticNet
from privtail.linear_model.fitting import PrivateRegressor, require_number
from privtail.losses import AnyLoss, SquaredLoss


@dataclass(eq=False, repr=False)
class DPLinearRegression(PrivateRegressor):
    """Linear regression by private least squares; no bounds on the data are needed.

    Parameters
    ----------
    epsilon, delta : the privacy budget of one ``fit``; ``epsilon=inf`` is not private and says so.
    neighbours, algorithm, fit_intercept, invalid, noise, random_state, ledger, verbose,
    categories, max_rows, count_invalid : as in `PrivateLinearModel`.

    Attributes
    ----------
    coef_ : (d,) slopes. intercept_ : float. n_iter_, n_features_in_ : int.
    coef_noise_std_ : (d,) what the noise of the gradients adds to each, as a standard deviation: at
        most this for a convex loss, NaN where no theory gives it (algorithms by name or of your
        own; features that were not selected), inf of a feature that is not used: little but one
        value showed of it. Clipping, early stopping, sampling and the noise of bought scales are
        not in it.
    coef_sampling_std_ : (d,) standard error of each slope from the sampling of the rows alone; NaN
        where nothing that was released tells. ``conf_int(level)`` makes intervals of both, and
        ``summary()`` prints a table of slopes, standard errors, tests and intervals.
    feature_range_ : (d, 2) what predictions clip features to, so that a slope extrapolates no
        farther than what was released of them: a hundred times as far from their centre as their
        histogram shows; [0, 1] of a declared category; infinite where nothing was released.
    target_range_ : (2,) what predictions are clipped to, by the same rule; of counts to the highest
        that the histogram of the counts allows. A constant is not clipped.
    feature_names_in_ : names, if the columns had any.
    privacy_ : the `Statement` of what was spent, on what, under which assumptions.
    report_ : released numbers by name, which say why the model is what it is (`Result.report` of
        `privtail.algorithms`); empty where an algorithm reports nothing.
    warnings_ : what a fit warned of (`privtail.errors.AccuracyWarning`): that all slopes are zero,
        that most rows do not count, that a penalty silences features. From released numbers.
    plan_ : the `FitPlan` of the releases.

    Raises
    ------
    InvalidInput, BudgetExceeded, UnsupportedAccounting

    Notes
    -----
    The promise covers ``fit`` on rows that were not computed from other rows. A scaler, an imputer,
    an encoder or a selector that was fitted on the same rows reads them without paying, and so do
    ``score`` and the scores of a search: `privtail.audit_pipeline` lists such steps. Scaling is
    not needed: features are scaled privately inside the fit.

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

    def _loss(self) -> AnyLoss:
        return SquaredLoss()


@dataclass(eq=False, repr=False)
class DPRidge(PrivateRegressor):
    """Private ridge regression: minimises |y - Xw - b|^2 + alpha |w|^2, as scikit-learn's `Ridge`.

    Parameters
    ----------
    alpha : strength of the penalty, in your units; not of the intercept. A fit warns where the
        penalty alone silences features that vary little in their units.

    Everything else is as in `DPLinearRegression`.
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
    alpha : strength of the penalty, in your units; not of the intercept. A fit warns where the
        penalty alone silences features that vary little in their units.

    Everything else is as in `DPLinearRegression`.
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
    alpha : strength of the penalty, in your units; not of the intercept. A fit warns where the
        penalty alone silences features that vary little in their units.
    l1_ratio : part of the l1 norm in it, in [0, 1].

    Everything else is as in `DPLinearRegression`.
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
