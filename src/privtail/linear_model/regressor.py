"""Regression: one number for every row."""

from __future__ import annotations

import functools
import math
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import RegressorMixin
from sklearn.metrics import d2_tweedie_score, r2_score

from privtail.algorithms.result import Result
from privtail.default import ScaledDescent
from privtail.domains import L2, Domain, Unconstrained
from privtail.errors import InvalidInput, told
from privtail.linear_model.estimator import as_a_whole
from privtail.linear_model.fitting import PrivateLinearModel
from privtail.linear_model.partitionwise import partitionwise
from privtail.losses import AbsoluteLoss, AmountLoss, AnyLoss, QuantileLoss, SquaredLoss
from privtail.model.predicting import LARGEST_LOG, expected_counts
from privtail.trusted.curator import Curator


class PrivateRegressor(RegressorMixin, PrivateLinearModel):  # type: ignore[misc]
    """Abstract: a model of one number.

    Attributes
    ----------
    coef_ : ndarray of shape (n_features,)
        Slopes, in units of the target per unit of the feature.
    intercept_ : float
        Prediction where all features are 0; 0.0 without an intercept.
    target_range_ : ndarray of shape (2,)
        Ends to which predictions are clipped, by the rule of ``feature_range_``. For counts the
        lower end is half the noise of their mean, and the upper end follows from the highest count
        that a private histogram shows. A constant is not clipped.
    """

    @property
    def variance_power(self) -> float | None:
        """The power of the mean in the variance, which names a deviance; None for numbers."""
        loss = self._loss()
        return loss.power if isinstance(loss, AmountLoss) else None

    @property
    def modelled_quantile(self) -> float | None:
        """Which quantile of the target is predicted, of the losses that have one."""
        return getattr(self._loss(), "quantile", None)

    def objective(self) -> AnyLoss:
        """The loss whose mean is minimised, one of `privtail.losses`."""
        return self._loss()

    def _domain(self, n: int) -> Domain:
        return Unconstrained()

    def _allows_unequal_spread(self) -> bool:
        """Whether standard errors allow for residuals whose spread depends on the features."""
        return False

    def _require_parameters(self) -> None:
        super()._require_parameters()
        self._loss()
        unequal = self._allows_unequal_spread()
        if not isinstance(unequal, bool | np.bool_):
            raise InvalidInput(f"heteroscedastic must be True or False, got {told(unequal)}.")
        default = isinstance(self.algorithm, str) and self.algorithm == "auto"
        if unequal and not (default and self._domain(1) in (Unconstrained(), L2(alpha=0.0))):
            raise InvalidInput(
                'heteroscedastic=True is for standard errors, which only algorithm="auto" without '
                "a penalty has. Leave heteroscedastic out, or the algorithm and alpha."
            )

    def _default(self) -> ScaledDescent:
        loss = self._loss()
        return ScaledDescent(
            targets=self._target_kind,
            squares=isinstance(loss, SquaredLoss),
            quantile=isinstance(loss, QuantileLoss | AbsoluteLoss),
            heteroscedastic=self._allows_unequal_spread(),
            neighbours=self.neighbours,
        )

    @as_a_whole
    def fit(self, X: Any, y: Any = None, groups: Any = None, **unknown: Any) -> Self:
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
        return self._learned(self._curate(X, y, groups, unknown))

    def _learned(self, curator: Curator) -> Self:
        """The fit itself, of rows that were handed over."""
        plan = self._open(curator)
        algorithm, domain = self._algorithm(), self._domain(curator.problem.n)
        with self._watched():
            self._count(curator)
            result = self._run(curator, algorithm, self._loss(), domain, plan.multiplier)
        self._keep(result, curator.problem.d)
        return self

    def _keep(self, result: Result, d: int) -> None:
        self.coef_ = result.w[:d, 0]
        self.intercept_ = float(result.w[d, 0]) if self.fit_intercept else 0.0
        self.target_range_ = result.target_range(d)
        if self.link == "log":
            self.target_range_ = np.exp(np.minimum(result.margin_range, LARGEST_LOG))

    @partitionwise
    def predict(self, X: Any) -> NDArray[np.float64]:
        """Predictions for rows; for counts, expected counts.

        Parameters
        ----------
        X : array, CSR matrix, data frame, mapping, Arrow table, table or path
            Features (rows, d), in the units of the fit; a file by its path.

        Returns
        -------
        ndarray of shape (rows,)
            NaN where a number of the row is missing or not finite; with ``invalid="raise"`` such a
            row is refused. A Dask collection for a Dask collection, with the same partitions.

        Raises
        ------
        InvalidInput
            If the columns are not those of the fit, or cannot be used.
        NotFittedError
            If ``fit`` was not called before.
        """
        margins = self._margins(X)[:, 0]
        numbers = expected_counts(margins) if self.link == "log" else margins
        return np.asarray(np.clip(numbers, *self.target_range_))

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """R^2 of predictions (of counts and amounts D^2, of deviance), as scikit-learn's scores.

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

        Returns
        -------
        float
            D^2 of targets that are all equal is NaN.

        Raises
        ------
        InvalidInput
            If the columns are not those of the fit, or cannot be used.
        NotFittedError
            If ``fit`` was not called before.
        """
        power, score = self.variance_power, r2_score
        if power is not None:
            score = functools.partial(d2_tweedie_score, power=power)
        predicted = self.predict(X)
        try:
            return float(score(y, predicted, sample_weight=sample_weight))
        except ZeroDivisionError:  # of deviance: all targets are equal
            return math.nan
