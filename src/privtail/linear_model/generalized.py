"""Private generalized linear models: counts, amounts, and any loss with any penalty."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Self, cast

import numpy as np
from numpy.typing import NDArray

from privtail.default import ScaledDescent
from privtail.domains import L2, Domain, Unconstrained
from privtail.errors import InvalidInput, real
from privtail.linear_model.estimator import as_a_whole
from privtail.linear_model.fitting import require_number
from privtail.linear_model.planning import FitPlan
from privtail.linear_model.regressor import PrivateRegressor
from privtail.losses import (
    AMOUNTS,
    AmountLoss,
    AnyLoss,
    PoissonLoss,
    Targets,
    TweedieLoss,
    loss_by_name,
    require_power,
)
from privtail.model.predicting import GENERALIZED, Link, usable_exposure


@dataclass(eq=False, repr=False)
class LogLinearRegressor(PrivateRegressor):
    """Abstract: a model of counts or amounts, E[y] = exp(Xw + b), or exposure times that.

    Attributes
    ----------
    exposure_ : str or None
        Name of the exposure that ``fit`` was given, as a saved model holds it.
    """

    link: ClassVar[Link] = "log"

    alpha: float = 0.0

    def _domain(self, n: int) -> Domain:
        require_number("alpha", self.alpha, 0)
        return L2(alpha=self.alpha)

    @as_a_whole
    def fit(
        self, X: Any, y: Any = None, groups: Any = None, exposure: Any = None, **unknown: Any
    ) -> Self:  # fmt: skip
        """Fit the model; charges the ledger once.

        Parameters
        ----------
        X : array, CSR matrix, data frame, mapping, Arrow table or table of `privtail.open_table`
            Features (n, d). Rows with a missing or non-finite number count as zero.
        y : array of shape (n,) or str, default=None
            Target; needed. With a table of `privtail.open_table` the name of its column, and with a
            Dask data frame the column itself, ``ddf["cost"]``.
        groups : array of shape (n,) or str, default=None
            The person of each row. Then persons are protected, with ``max_rows`` rows at most.
        exposure : array of shape (n,) or str, default=None
            On how much of something each target was counted, such as years insured, in any unit;
            of a table the name of its column. E[y] is then exposure exp(Xw + b): the logarithm of
            the exposure is an offset of the margin, as in R and statsmodels. It is private, like
            any column. A row counts for nothing where it is not positive and finite. For counts,
            scikit-learn's idiom gives the same model: ``fit(X, y / exposure,
            sample_weight=exposure)``. With a variance of power p it would take the weights
            ``exposure ** (2 - p)``: of a severity, where p is 2, all rows weigh the same.
        **unknown : Any
            Nothing else is accepted; ``sample_weight`` is refused with a reason.

        Returns
        -------
        self

        Raises
        ------
        InvalidInput
            If a parameter or the data cannot be used.
        BudgetExceeded
            If the ledger has too little left. No row was read.
        UnsupportedAccounting
            If no theorem gives the cost of these releases for these neighbours.
        """
        if exposure is not None and self.algorithm != "auto":
            raise InvalidInput(
                "exposure works with the default algorithm alone.",
                'Use algorithm="auto".',
                cli="Use --algorithm auto.",
            )
        curator = self._curate(X, y, groups, unknown, exposure=exposure)
        self.exposure_ = None if exposure is None else _name(exposure)
        return self._learned(curator)

    def plan(
        self, n: int, d: int, indicators: int | Sequence[int] = 0, exposure: bool = False
    ) -> FitPlan:
        """What ``fit`` will release, and what it will cost; reads no data.

        Parameters
        ----------
        n : int
            Number of rows.
        d : int
            Number of features, after declared categories are encoded.
        indicators : int or sequence of int, default=0
            How many of the d features each category, or column with bins, has; and a 1 for each
            other feature in [0, 1] by declaration. A number alone is that of one category.
        exposure : bool, default=False
            Whether there will be an exposure.

        Returns
        -------
        FitPlan

        Raises
        ------
        InvalidInput
            If a number or a parameter of the estimator cannot be used.
        UnsupportedAccounting
            If no theorem is known for the releases of the algorithm.
        """
        plan = super().plan(n, d, indicators)
        return self.planned(replace(plan.problem, exposure=True)) if exposure else plan

    def predict(self, X: Any, exposure: Any = None) -> NDArray[np.float64]:
        """Expected counts or amounts: a rate, or the rate times the exposure.

        Parameters
        ----------
        X : array, CSR matrix, data frame, mapping, Arrow table, table or path
            Features (rows, d), in the units of the fit; a file by its path.
        exposure : array of shape (rows,), default=None
            For how long, or how much, each row was observed; above 0. None is 1 for all.

        Returns
        -------
        ndarray of shape (rows,)
            Rates lie in ``target_range_``. NaN where a number of the row is missing or not finite,
            or the exposure not positive and finite; with ``invalid="raise"`` a row with the former
            is refused. A Dask collection for a Dask collection, with the same partitions.

        Raises
        ------
        InvalidInput
            If the columns are not those of the fit, or cannot be used.
        NotFittedError
            If ``fit`` was not called before.
        """
        rates: NDArray[np.float64] = super().predict(X)
        if exposure is None:
            return rates
        rates = np.asarray(rates)
        return np.asarray(rates * usable_exposure(exposure, len(rates)))

    def score(
        self, X: Any, y: Any, sample_weight: Any = None, exposure: Any = None
    ) -> float:  # fmt: skip
        """D^2 of predictions, as scikit-learn's scores: the part of the deviance that is explained.

        It is computed from rows without noise: outside the promise, unless the rows are public.
        Use `privtail.evaluate` for private rows.

        Parameters
        ----------
        X : array or data frame
            Features (rows, d).
        y : array of shape (rows,)
            Target.
        sample_weight : array of shape (rows,) or None, default=None
            Weights of the rows.
        exposure : array of shape (rows,), default=None
            For how long, or how much, each row was observed. The score is then that of the rates
            ``y / exposure``. A number counts for all rows.

        Returns
        -------
        float

        Raises
        ------
        InvalidInput
            If the columns are not those of the fit, or cannot be used; if a model of rates is given
            neither exposures nor weights.
        NotFittedError
            If ``fit`` was not called before.
        """
        if exposure is None:
            if getattr(self, "exposure_", None) is not None and sample_weight is None:
                raise InvalidInput(
                    "This model predicts rates: pass exposure=, one number for each of these rows, "
                    "or exposure=1 if the targets are rates."
                )
            return super().score(X, y, sample_weight)
        shares, power = usable_exposure(exposure, len(y)), cast(AmountLoss, self._loss()).power
        weights = shares ** (2 - power)
        weights = weights if sample_weight is None else weights * np.asarray(sample_weight)
        return super().score(X, np.asarray(y, dtype=np.float64) / shares, weights)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.positive_only = True
        return tags


def _name(exposure: Any) -> str:
    """What the exposure is called."""
    named = exposure if isinstance(exposure, str) else getattr(exposure, "name", None)
    return str(named or "exposure")


@dataclass(eq=False, repr=False)
class DPPoissonRegressor(LogLinearRegressor):
    """Private Poisson regression of counts, E[y] = exp(Xw + b), as `PoissonRegressor`.

    Minimises the mean of exp(m) - y m (half the deviance, but for a constant) + alpha/2 |w|^2. The
    mean of the counts is released first. ``score`` is D^2. No prediction exceeds
    ``target_range_[1]``, which follows from the highest count that the same histogram shows.

    Parameters
    ----------
    alpha : float, default=0.0
        Strength of the penalty, at least 0, in the unit of a squared feature. It is not on the
        intercept. scikit-learn's default is 1; such a penalty shrinks slopes of columns that vary
        little in their units to nearly zero.

    Examples
    --------
    >>> import numpy as np
    >>> from privtail.linear_model import DPPoissonRegressor
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(20_000, 2))
    >>> y = rng.poisson(np.exp(X @ [0.5, -0.5]))
    >>> model = DPPoissonRegressor(epsilon=1.0, noise="simulated", random_state=0).fit(X, y)
    >>> bool(np.abs(model.coef_ - [0.5, -0.5]).max() < 0.1)
    True
    """

    kind: ClassVar[str] = "poisson"

    _target_kind = "count"

    def _loss(self) -> AnyLoss:
        return PoissonLoss()


@dataclass(eq=False, repr=False)
class DPTweedieRegressor(LogLinearRegressor):
    """Private regression of amounts of which many may be zero, as `TweedieRegressor`.

    E[y] = exp(Xw + b) and a variance in proportion to E[y] ** power: what a policy costs in a year
    (its pure premium), rainfall. Minimises the mean of half the unit deviance + alpha/2 |w|^2. The
    mean of the amounts is released first. ``score`` is D^2 of this power. No prediction lies above
    ``target_range_[1]``, the highest amount that the same histogram shows, or below
    ``target_range_[0]``, which is below the mean by the same factor. A negative amount is taken for
    zero. Amounts between 1e-13 and 1e13 are measured: multiply smaller or larger ones by a public
    number first.

    Parameters
    ----------
    alpha : float, default=0.0
        Strength of the penalty, at least 0, in the unit of a squared feature, times that of the
        target to the power 2 - ``power``. It is not on the intercept. scikit-learn's default is 1;
        such a penalty shrinks slopes of columns that vary little in their units to nearly zero.
    power : float, default=1.5
        Power of the mean in the variance, from 1 to 2: 1 for counts (as `DPPoissonRegressor`),
        between 1 and 2 for amounts of which many are zero, 2 for positive ones (as
        `DPGammaRegressor`). scikit-learn's default is 0: use `DPLinearRegression` for that.

    Examples
    --------
    >>> import numpy as np
    >>> from privtail.linear_model import DPTweedieRegressor
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(50_000, 2))
    >>> claims = rng.poisson(np.exp(X[:, 0] / 2 - 1))
    >>> cost = rng.gamma(np.maximum(claims, 1e-9), 1000.0)
    >>> model = DPTweedieRegressor(power=1.5, epsilon=1.0, noise="simulated", random_state=0)
    >>> bool(np.abs(model.fit(X, cost).coef_ - [0.5, 0.0]).max() < 0.1)
    True
    """

    kind: ClassVar[str] = "tweedie"

    power: float = 1.5

    _target_kind = "amount"

    def _loss(self) -> AnyLoss:
        require_power(real("power", self.power))
        return TweedieLoss(power=float(self.power))


@dataclass(eq=False, repr=False)
class DPGammaRegressor(LogLinearRegressor):
    """Private regression of positive amounts, E[y] = exp(Xw + b), as `GammaRegressor`.

    For amounts whose spread is in proportion to what is expected: the cost of a claim (its
    severity), a length of stay. Minimises the mean of m + y exp(-m) (half the deviance, but for a
    constant) + alpha/2 |w|^2. It is `DPTweedieRegressor` with power 2. ``score`` needs
    amounts above zero. In a fit a negative amount is taken for zero, and a row with zero counts.

    Parameters
    ----------
    alpha : float, default=0.0
        Strength of the penalty, at least 0, in the unit of a squared feature. It is not on the
        intercept. scikit-learn's default is 1; such a penalty shrinks slopes of columns that vary
        little in their units to nearly zero.

    Examples
    --------
    >>> import numpy as np
    >>> from privtail.linear_model import DPGammaRegressor
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(20_000, 2))
    >>> cost = 1000 * np.exp(X @ [0.5, 0.0]) * rng.gamma(2.0, 0.5, 20_000)
    >>> model = DPGammaRegressor(epsilon=1.0, noise="simulated", random_state=0).fit(X, cost)
    >>> bool(np.abs(model.coef_ - [0.5, 0.0]).max() < 0.1)
    True
    """

    kind: ClassVar[str] = "gamma"

    _target_kind = "amount"

    def _loss(self) -> AnyLoss:
        return TweedieLoss(power=2.0)


@dataclass(eq=False, repr=False)
class DPGeneralizedLinearEstimator(PrivateRegressor):
    """Private linear model of numbers, with your choice of loss, penalty or set, and algorithm.

    ``predict`` returns margins, for counts and amounts their exponentials. For labels use
    `DPLogisticRegression`.

    Parameters
    ----------
    loss : str or loss, default="squared"
        A name of `privtail.losses.LOSSES` that needs no parameter, or a loss such as
        `HuberLoss(threshold=2.0)` or `CustomLoss(value=..., derivative=...)`.
    domain : domain or None, default=None
        A penalty or a set of `privtail.domains`, for slopes in the unit of the target over that of
        a feature; None for none. The intercept is never in it.

    Examples
    --------
    >>> import numpy as np
    >>> from privtail.domains import L1
    >>> from privtail.linear_model import DPGeneralizedLinearEstimator
    >>> X = np.random.default_rng(0).standard_t(2.5, size=(20_000, 2))
    >>> y = X @ [1.0, 2.0]
    >>> lasso = L1(alpha=0.01)
    >>> model = DPGeneralizedLinearEstimator("squared", lasso, noise="simulated", random_state=0)
    >>> bool(np.abs(model.fit(X, y).coef_ - [1, 2]).max() < 0.2)
    True
    """

    kind: ClassVar[str] = GENERALIZED

    loss: Any = "squared"
    domain: Any = None

    @property
    def link(self) -> Link:  # type: ignore[override]
        """What a prediction is."""
        return "log" if self._loss().targets in AMOUNTS else "identity"

    def _loss(self) -> AnyLoss:
        loss: Any = loss_by_name(self.loss) if isinstance(self.loss, str) else self.loss
        if not (hasattr(loss, "targets") and hasattr(loss, "values")):
            raise InvalidInput(
                'loss must be a name such as "squared", or a loss of privtail.losses, got '
                f"{type(loss).__name__}."
            )
        if getattr(loss, "outputs", 1) != 1:
            raise InvalidInput(
                f"This estimator has one margin for a row, and the loss has {loss.outputs}. Use "
                "DPLogisticRegression(classes=[...]) for labels."
            )
        return loss  # type: ignore[no-any-return]

    def _domain(self, n: int) -> Domain:
        domain: Any = Unconstrained() if self.domain is None else self.domain
        if not (hasattr(domain, "prox") and hasattr(domain, "scaled")):
            raise InvalidInput(
                "domain must be one of privtail.domains, for example L1(alpha=0.1), or None."
            )
        return domain  # type: ignore[no-any-return]

    def _default(self) -> ScaledDescent:
        return replace(super()._default(), selects=self.domain is None)

    @property
    def _target_kind(self) -> Targets:  # type: ignore[override]
        return self._loss().targets
