"""What is private about columns alone: their means, and a scaler that pays for what it learns."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import OneToOneFeatureMixin, TransformerMixin
from sklearn.utils.validation import check_array, check_is_fitted, validate_data

from privtail.calibration import calibrated
from privtail.errors import InvalidInput
from privtail.linear_model.estimator import PrivateEstimator, as_a_whole, checked
from privtail.mean import Method, mean_of
from privtail.promised import warn_of_delta
from privtail.statement import Statement, state
from privtail.summaries.column_summaries import ColumnSummaries
from privtail.trusted.refusals import as_known
from privtail.trusted.tables import is_file, require_read, table_blocks

Doubles = NDArray[np.float64]


@dataclass(eq=False, repr=False)
class DPMean(PrivateEstimator):
    """Private means of columns, without bounds on the data: `private_mean` as an estimator.

    Sizes between 2^-64 and 2^64 (1.8e19) are measured. Multiply a column of smaller or larger ones
    by a public number first.

    Parameters
    ----------
    method : {"clipped", "clamped", "truncated", "catoni", "ksu", "coinpress"}, default="clipped"
        How the influence of one row is limited. ``"clipped"`` shortens the numbers of a row to a
        common length. The others are published alternatives, which `private_mean` describes. All
        release centre and scale of every column first.

    Attributes
    ----------
    mean_ : ndarray of shape (n_features,)
        Means, in the units of the columns.
    noise_std_ : ndarray of shape (n_features,)
        Standard deviation of the noise in them; public.
    reliable_ : ndarray of bool, shape (n_features,)
        Whether the error of a mean is bounded on both sides.
    estimate_ : MeanEstimate
        What `private_mean` returns.
    warnings_ : tuple of str
        What the fit warned of.

    Examples
    --------
    >>> import numpy as np
    >>> from privtail import DPMean
    >>> X = np.random.default_rng(0).pareto(2.5, (100_000, 2)) * [1, 100]
    >>> model = DPMean(epsilon=1.0, noise="simulated", random_state=0).fit(X)
    >>> np.abs(model.mean_ / X.mean(axis=0) - 1).max() < 0.05
    np.True_
    """

    method: Method = "clipped"

    @as_a_whole
    def fit(self, X: Any, y: Any = None, groups: Any = None, **unknown: Any) -> Self:
        """Release the means of the columns; charges the ledger once.

        Parameters
        ----------
        X : array, CSR matrix, data frame or table of `privtail.open_table`
            Columns (n, d).
        y : Any, default=None
            Ignored.
        groups : array of shape (n,), default=None
            The person of each row. Then persons are protected, with ``max_rows`` rows at most.
        **unknown : Any
            Nothing else is accepted.

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
        self._refuse(unknown)
        curator = self._entrusted(X, groups=groups)
        warn_of_delta(curator.budget, curator.problem.n)
        found = mean_of(curator, method=self.method)
        names = getattr(self, "feature_names_in_", [f"x{j}" for j in range(self.n_features_in_)])
        found = replace(found, columns=tuple(map(str, names)))
        self.mean_, self.noise_std_, self.reliable_ = found.value, found.noise_std, found.reliable
        self.estimate_, self.warnings_ = found, found.warnings_
        self.privacy_: Statement = found.privacy_
        return self

    def conf_int(self, confidence: float = 0.95, *, sampling: bool = True) -> Doubles:
        """Intervals for the means; see `MeanEstimate.conf_int`.

        Parameters
        ----------
        confidence : float, default=0.95
            How often an interval should hold, in (0, 1).
        sampling : bool, default=True
            Allow for the sampling error, too: the intervals are for the means of the population.
            False allows for noise and clipping: they are for the means of these very rows.

        Returns
        -------
        ndarray of shape (n_features, 2)
            Lower and upper ends, in the units of the columns.
        """
        check_is_fitted(self)
        return self.estimate_.conf_int(confidence, sampling=sampling)

    def __sklearn_tags__(self) -> Any:
        return _sparse_too(super().__sklearn_tags__())


@dataclass(eq=False, repr=False)
class DPScaler(OneToOneFeatureMixin, TransformerMixin, PrivateEstimator):  # type: ignore[misc]
    """Private centring and scaling of columns by quantiles, as scikit-learn's `RobustScaler`.

    The estimators of privtail do not need it: they scale inside their fit. It is for pipelines
    with other private steps, and it pays for what it learns.

    Parameters
    ----------
    with_centering : bool, default=True
        Subtract medians.
    with_scaling : bool, default=True
        Divide by spreads.

    Attributes
    ----------
    center_ : ndarray of shape (n_features,) or None
        Medians.
    scale_ : ndarray of shape (n_features,) or None
        Distance between the quartiles (or wider quantiles, if quartiles are equal), divided by
        that of a standard Gaussian, to about a fifth; 1 for a column of zeros.
    reliable_ : ndarray of bool, shape (n_features,)
        Whether the histogram of a column rose above its noise. If not, its centre is 0 and its
        scale that of all columns together.

    Examples
    --------
    >>> import numpy as np
    >>> from privtail import DPScaler
    >>> X = np.random.default_rng(0).normal(5, [1e-3, 1e3], (50_000, 2))
    >>> Z = DPScaler(epsilon=1.0, noise="simulated", random_state=0).fit_transform(X)
    >>> bool(np.abs(Z.std(axis=0) - 1).max() < 0.1)
    True
    """

    with_centering: bool = True
    with_scaling: bool = True

    @as_a_whole
    def fit(self, X: Any, y: Any = None, groups: Any = None, **unknown: Any) -> Self:
        """Release centre and scale of the columns; charges the ledger once.

        Parameters
        ----------
        X : array, CSR matrix, data frame or table of `privtail.open_table`
            Columns (n, d). A sparse matrix needs ``with_centering=False``.
        y : Any, default=None
            Ignored.
        groups : array of shape (n,), default=None
            The person of each row. Then persons are protected, with ``max_rows`` rows at most.
        **unknown : Any
            Nothing else is accepted.

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
        if self.with_centering and hasattr(X, "tocsr"):
            raise InvalidInput(
                "Cannot center sparse matrices: pass with_centering=False to DPScaler."
            )
        self._refuse(unknown)
        curator = self._entrusted(X, groups=groups)
        warn_of_delta(curator.budget, curator.problem.n)
        summaries = ColumnSummaries()
        multiplier = calibrated(curator, lambda m: summaries.plan(m, curator.problem))
        found = summaries.run(curator, multiplier)
        self.center_ = found.centres if self.with_centering else None
        self.scale_ = np.where(found.only_zeros, 1.0, found.scales) if self.with_scaling else None
        self.reliable_ = found.detected
        self.privacy_: Statement = state(curator)
        return self

    def transform(self, X: Any) -> Any:
        """(x - center_) / scale_ of every row.

        Parameters
        ----------
        X : array, CSR matrix, data frame or table
            Columns (rows, d).

        Returns
        -------
        ndarray or CSR matrix, shape of X

        Raises
        ------
        InvalidInput
            If the columns are not those of the fit, or cannot be used.
        NotFittedError
            If ``fit`` was not called before.
        """
        X = self._checked(X)
        if self.center_ is not None:
            X = X - self.center_
        return X if self.scale_ is None else _times(X, 1 / self.scale_)

    def inverse_transform(self, X: Any) -> Any:
        """Back to the units of the data.

        Parameters
        ----------
        X : array or CSR matrix
            Transformed columns (rows, d).

        Returns
        -------
        ndarray or CSR matrix, shape of X

        Raises
        ------
        InvalidInput
            If the columns are not those of the fit, or cannot be used.
        NotFittedError
            If ``fit`` was not called before.
        """
        check_is_fitted(self)
        X = checked(partial(check_array, **self._numbers()), X)
        if self.scale_ is not None:
            X = _times(X, self.scale_)
        return X if self.center_ is None else X + self.center_

    @property
    def _strict(self) -> bool:
        return self.invalid == "raise"

    def _checked(self, X: Any) -> Any:
        check_is_fitted(self)
        X = as_known(X)
        require_read(X)
        if isinstance(X, Mapping) or is_file(X):
            blocks = table_blocks(X, list(self.feature_names_in_), {})
            X = np.concatenate([np.empty((0, self.n_features_in_)), *blocks])
            return check_array(X, ensure_all_finite=self._strict)
        return checked(partial(validate_data, self, reset=False, **self._numbers()), X)

    def _numbers(self) -> dict[str, Any]:
        """What scikit-learn is to check of rows: they are numbers, of which some may be missing."""
        return {
            "accept_sparse": "csr", "dtype": np.float64, "ensure_all_finite": self._strict,
            "ensure_min_samples": 0,
        }  # fmt: skip

    def __sklearn_tags__(self) -> Any:
        tags = _sparse_too(super().__sklearn_tags__())
        tags.input_tags.sparse = not self.with_centering
        tags.input_tags.allow_nan = not self._strict
        tags.transformer_tags.preserves_dtype = ["float64"]
        return tags


def _sparse_too(tags: Any) -> Any:
    tags.input_tags.sparse = True
    return tags


def _times(X: Any, factors: Doubles) -> Any:
    """Columns times factors, dense or sparse."""
    return X.multiply(factors[None, :]).tocsr() if hasattr(X, "multiply") else X * factors
