"""What a fitted linear model says: slopes with intervals, a released model, scores of rows."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from functools import partial
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted, validate_data

from privtail.coefficients import CoefficientTable, no_sampling, why_not
from privtail.errors import InvalidInput, told
from privtail.gaps import Gaps
from privtail.linear_model.estimator import PrivateEstimator, checked, is_arrow, names_of
from privtail.mean import interval
from privtail.model import Column, Model
from privtail.model.predicting import finite, scores_of
from privtail.schema.encoding import Design, Encoding
from privtail.trusted.refusals import as_known
from privtail.trusted.tables import column_names, is_file, require_read, table_blocks


class FittedLinearModel(PrivateEstimator):
    """Abstract: what follows from the released numbers of a fit. None of it costs budget."""

    encoding_: Encoding
    _in_partition = False
    """Whether this copy predicts one partition of several, in which a category may be rare."""

    def _design(self) -> Design:
        """From the columns of the fit to features."""
        return self.encoding_.design(self._columns(), self.categories_)

    def _columns(self) -> list[str]:
        """The columns of the fit; ``x0``, ``x1`` ... where X had no names."""
        known = getattr(self, "feature_names_in_", None)
        return (
            [f"x{i}" for i in range(self.n_features_in_)] if known is None else [*map(str, known)]
        )

    def conf_int(
        self, confidence: float = 0.95, *, kind: Literal["population", "noise"] = "population"
    ) -> NDArray[np.float64]:
        """Intervals for the slopes, from released numbers alone; it costs nothing.

        ``kind="population"``: for the slopes of the population that the rows come from. They allow
        for noise and for the sampling error ``coef_sampling_std_``. This error is the sandwich
        estimate of an M-estimator, from released second moments and a histogram of residuals. It
        assumes that residuals are equally spread in all rows, unless ``heteroscedastic=True`` was
        given. For counts, amounts and labels it assumes that margins Xw + b are about Gaussian.

        For counts, amounts and two labels, clipping and few steps multiply all slopes by a common
        factor, and the intervals allow for that. For numbers, the intervals are for clipped slopes:
        those that the same clipping gives on the whole population. Residuals are clipped at
        ``report_["clipping_threshold"]``, and rows shrunk to ``report_["row_length"]``. This is a
        bias if residuals are skewed or effects are not linear, and no interval allows for it. On
        five real tables of 20,000 rows, at epsilon 1 and 5, intervals of 95 % held clipped slopes
        in 88 % to 100 % of the fits, and slopes of least squares in 6 % to 73 %
        (``benchmarks/populations.py``).

        ``kind="noise"``: for the slopes of the same fit without noise. The noise of all steps is
        added up, less what the curvature of the loss makes later steps remove. The curvature
        follows from released second moments and the share of residuals that is not clipped. For a
        loss with a kink it counts as zero. The intervals also allow for shrinkage of slopes, and
        for the common factor. ``benchmarks/intervals.py`` measures how wide both kinds are, and how
        often they hold.

        An interval for the population is infinite if noise hides whether a feature is nearly
        collinear with others, as for nearly equal columns, a total beside its parts, and all
        indicators of a category: leave one out (``drop``). In small tables noise hides this for
        other features, too. The fit may leave out a feature if 99 % of its values or more are
        equal, or noise hides other values. Its slope is then zero, and its interval infinite.

        Parameters
        ----------
        confidence : float, default=0.95
            How often an interval should hold, in (0, 1).
        kind : {"population", "noise"}, default="population"
            What the interval is for.

        Returns
        -------
        ndarray, shape of coef_ and a last axis of 2
            Lower and upper ends, in the units of the slopes.

        Raises
        ------
        InvalidInput
            If no theory gives the noise: with an algorithm of your own or by name, with selected
            features, or if the model is a private constant. Also if the sampling error is not
            known: with a penalty, for least absolute deviations and quantiles, with three labels or
            more, and without privacy. Also with more than 512 coefficients, or if noise hides the
            common factor of all slopes.
        """
        check_is_fitted(self)
        if kind not in ("population", "noise"):
            raise InvalidInput(f'kind must be "population" or "noise", got {told(kind)}.')
        noisy, std = self.plan_.multiplier > 0, self.coef_noise_std_
        why = why_not(std, noisy=noisy)
        if kind == "population":
            why = why or no_sampling(self.coef_sampling_std_, noisy=noisy)
        if why:
            raise InvalidInput(why)
        if kind == "population":
            std = np.hypot(std, self.coef_sampling_std_)
        return interval(self.coef_, np.broadcast_to(std, self.coef_.shape), confidence)

    def summary(self, confidence: float = 0.95) -> CoefficientTable:
        """Slopes with standard errors, z, p values and intervals for the population, by name.

        A base level stands among them with the slope 0. With the log link there are relativities,
        the exponentials of slopes: 1 at a base level. Standard errors allow for noise and sampling.
        Where `conf_int` refuses they are NaN, and the table says why. It costs nothing.

        Parameters
        ----------
        confidence : float, default=0.95
            Confidence of the intervals, in (0, 1).

        Returns
        -------
        CoefficientTable

        Raises
        ------
        InvalidInput
            If ``confidence`` is not in (0, 1).
        """
        check_is_fitted(self)
        return self.to_model().summary(confidence)

    table = summary

    def save(
        self, path: str | os.PathLike[str], *, target: str = "y", overwrite: bool = False
    ) -> None:
        """Write the released model as JSON, for `privtail.load` and the command line.

        Parameters
        ----------
        path : path
            File to write.
        target : str, default="y"
            Name of what the model predicts.
        overwrite : bool, default=False
            Replace an existing file.

        Raises
        ------
        InvalidInput
            If the file exists (without ``overwrite``) or cannot be written.
        """
        self.to_model(target).save(path, overwrite=overwrite)

    def to_model(self, target: str = "y") -> Model:
        """The released model alone, as `privtail.load` returns it.

        Parameters
        ----------
        target : str, default="y"
            Name of what the model predicts.

        Returns
        -------
        Model
            Its columns are called ``x0``, ``x1`` ... where X had no names.
        """
        check_is_fitted(self)
        declared = {name: tuple(labels) for name, labels in self.categories_.items()}
        columns = [Column(name, declared.get(name)) for name in self._columns()]
        return Model.of(self, target=target, columns=columns)

    def to_sklearn(self) -> Any:
        """A plain fitted estimator of scikit-learn with the same slopes; `to_model` encodes for it.

        It takes what ``to_model().design(X)`` gives, and clips nothing.

        Returns
        -------
        LinearRegression, PoissonRegressor or LogisticRegression
            Of `sklearn.linear_model`; see `privtail.export.to_sklearn`.
        """
        return self.to_model().to_sklearn()

    def _designs(self, X: Any) -> Iterable[Any]:
        """Blocks of features to predict with; columns are encoded as in the fit."""
        X = as_known(X)
        require_read(X)
        named = isinstance(X, Mapping) or _is_file(X) or is_arrow(X)
        if named or column_names(X) is not None:
            if not named:
                validate_data(self, X, reset=False, skip_check_array=True)
            known = getattr(self, "feature_names_in_", None)
            names = [str(name) for name in (names_of(X) if known is None else known)]
            if len(names) != self.n_features_in_:
                raise InvalidInput(
                    f"X has {len(names)} features, but {type(self).__name__} is expecting "
                    f"{self.n_features_in_} features as input."
                )
            blocks = table_blocks(X, names, self.categories_, self.encoding_, self.fill_)
            return self._counted(blocks, of_file=_is_file(X))
        if self.categories_:
            raise InvalidInput(
                "This model was fitted on named columns. Pass a data frame: frame.iloc[[0]] is one "
                "row of it, pandas.DataFrame([row]) makes one of a mapping."
            )
        rows = checked(
            partial(
                validate_data, self, reset=False, accept_sparse=self.encoding_.plain and "csr",
                ensure_all_finite=False, ensure_min_samples=0,
            ),
            X,
        )  # fmt: skip
        if self.encoding_.plain:
            return [rows]
        columns = dict(zip(self._columns(), rows.T, strict=True))
        return table_blocks(columns, list(columns), {}, self.encoding_, self.fill_)

    def _counted(self, blocks: Iterable[Any], *, of_file: bool) -> Iterator[Any]:
        """Blocks to predict, and a warning of what is missing in them after the last."""
        gaps = Gaps(self._design().watched())
        yield from gaps.counting(blocks)
        if not self._in_partition:
            gaps.warn(of_file=of_file)

    def get_feature_names_out(self, input_features: Any = None) -> NDArray[Any]:
        """Names of the coefficients, in the order of ``coef_``.

        Parameters
        ----------
        input_features : object, default=None
            Ignored; the names are those of the fit.

        Returns
        -------
        ndarray of str
        """
        check_is_fitted(self)
        return np.array(self._design().names, dtype=object)

    def _margins(self, X: Any) -> NDArray[np.float64]:
        """Scores (rows, K) = X coef^T + intercept; NaN in rows where a number is not finite.

        X is clipped to ``feature_range_``.
        """
        check_is_fitted(self)
        designs = self._designs(X)
        if self.invalid == "raise":
            designs = map(_refused_if_not_finite, designs)
        coef = np.atleast_2d(self.coef_)
        return scores_of(designs, coef, self.intercept_, self.feature_range_)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.allow_nan = self.invalid != "raise"
        tags.target_tags.required = True
        return tags


def _refused_if_not_finite(features: Any) -> Any:
    if not finite(features).all():
        raise InvalidInput(
            "Input X contains NaN or infinity. With invalid='zero' such rows get no prediction."
        )
    return features


def _is_file(X: Any) -> bool:
    return is_file(X) or isinstance(X, str | os.PathLike)
